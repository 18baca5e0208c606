//! What a first start offers: which model may answer, and how much the agent decides by itself.

use std::time::Duration;

use async_recursion::async_recursion as boxed;
use futures::future::join_all;
use tokio_util::sync::CancellationToken;

use super::models::list_models;
use podbay_config::Config;
use podbay_llm::Client;
use podbay_llm::Endpoint;
use podbay_llm::Options;
use podbay_session::State;

/// Where servers of this machine listen unless they are told otherwise.
pub const LOCAL_SERVERS: [(u16, &str); 4] = [
    (11434, "Ollama"),
    (1234, "LM Studio"),
    (8000, "vLLM"),
    (8080, "llama-server"),
];

/// Services whose key an environment variable may hold: the variable, the service, its address.
const SERVICES: [(&str, &str, &str); 5] = [
    ("OPENAI_API_KEY", "openai", "https://api.openai.com/v1"),
    (
        "OPENROUTER_API_KEY",
        "openrouter",
        "https://openrouter.ai/api/v1",
    ),
    ("MISTRAL_API_KEY", "mistral", "https://api.mistral.ai/v1"),
    ("GROQ_API_KEY", "groq", "https://api.groq.com/openai/v1"),
    (
        "DEEPSEEK_API_KEY",
        "deepseek",
        "https://api.deepseek.com/v1",
    ),
];

/// How long a server of this machine may take to say what it serves.
const ANSWERS: Duration = Duration::from_millis(800);

/// Bytes in a second of a connection of 100 Mbit/s.
const PACE: u64 = 12_500_000;

/// A model that may answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelOffer {
    /// A model server of our own, with the model that fits this machine.
    Own {
        id: String,
        size: u64,
        is_here: bool,
        /// It only proves the set-up.
        is_smoke: bool,
    },
    /// A server that answers on this machine.
    Server {
        name: &'static str,
        endpoint: String,
        model: String,
    },
    /// A service whose key is in the environment.
    Service {
        name: &'static str,
        address: &'static str,
        variable: &'static str,
    },
}

impl ModelOffer {
    /// Returns its title, and what it takes.
    pub fn words(&self) -> (String, String) {
        match self {
            Self::Own {
                id,
                size,
                is_here,
                is_smoke,
            } => {
                let what = if *is_smoke {
                    ": it proves the set-up and writes no good code"
                } else {
                    ""
                };
                let load = if *is_here {
                    "is here already".to_owned()
                } else {
                    let minutes = size.div_ceil(PACE).div_ceil(60);
                    format!(
                        "{} to load, about {minutes} min at 100 Mbit/s",
                        podbay_event::ByteSize::new(*size).rounded()
                    )
                };
                (
                    "Podbay's own model server".to_owned(),
                    format!("{id}, {load}{what}"),
                )
            }
            Self::Server {
                name,
                endpoint,
                model,
            } => (
                format!("{name} on this machine"),
                format!("{endpoint}, with {model}"),
            ),
            Self::Service {
                name,
                address,
                variable,
            } => (
                format!("{name}, by the key in {variable}"),
                format!("{address}; your code is sent there"),
            ),
        }
    }

    /// Whether the user has to name the model.
    pub fn asks_for_model(&self) -> bool {
        matches!(self, Self::Service { .. })
    }

    /// Returns the settings that choose it.
    pub fn settings(&self, model: &str) -> Vec<(String, String)> {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        match self {
            Self::Own { is_smoke: true, .. } => Vec::new(),
            Self::Own { id, .. } => vec![pair("inference.model", id)],
            Self::Server { endpoint, .. } => vec![pair("llm.endpoint", endpoint)],
            Self::Service {
                name,
                address,
                variable,
            } => {
                let of = |key: &str, value: &str| pair(&format!("providers.{name}.{key}"), value);
                vec![
                    of("base_url", address),
                    of("api_key_env", variable),
                    of("model", model),
                    pair("llm.provider", name),
                ]
            }
        }
    }
}

/// How much the agent decides by itself in a chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreedomOffer {
    pub title: &'static str,
    pub detail: &'static str,
    settings: &'static [(&'static str, &'static str)],
}

/// The choices, the recommended one first.
pub const FREEDOMS: [FreedomOffer; 4] = [
    FreedomOffer {
        title: "It works freely (recommended)",
        detail: "each turn's changes are shown, and can be undone",
        settings: &[
            ("policy.chat_autonomy", "auto"),
            ("sandbox.chat_changes", "turn"),
        ],
    },
    FreedomOffer {
        title: "It shows each turn's changes first",
        detail: "you apply or drop them before they reach your files",
        settings: &[
            ("policy.chat_autonomy", "auto"),
            ("sandbox.chat_changes", "review"),
        ],
    },
    FreedomOffer {
        title: "It asks before each change",
        detail: "reading needs no question; changes can be undone",
        settings: &[
            ("policy.chat_autonomy", "ask"),
            ("sandbox.chat_changes", "turn"),
        ],
    },
    FreedomOffer {
        title: "You are the architect",
        detail: "it asks about each step, and about what the task leaves open",
        settings: &[
            ("policy.chat_autonomy", "architect"),
            ("sandbox.chat_changes", "turn"),
        ],
    },
];

impl FreedomOffer {
    /// Returns the settings that choose it.
    pub fn settings(&self) -> Vec<(String, String)> {
        self.settings
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }
}

/// Returns the models that may answer here. `key` says whether a variable holds one.
#[boxed]
pub async fn model_offers(
    config: &Config,
    state: &State,
    key: &(dyn Fn(&str) -> bool + Sync),
    cancel: &CancellationToken,
) -> Vec<ModelOffer> {
    let mut offers = servers_at(&LOCAL_SERVERS, cancel).await;
    if let Ok(models) = list_models(config, state)
        && let Some(name) = models.default
        && let Some(line) = models.models.into_iter().find(|line| line.name == name)
    {
        // A server that answers already has its model; ours may have to load one.
        offers.push(ModelOffer::Own {
            is_smoke: line.parameters.is_some_and(|billions| billions < 0.5),
            is_here: line.state == "here",
            id: name,
            size: line.size,
        });
    }
    let with_key = SERVICES.iter().filter(|(variable, ..)| key(variable));
    offers.extend(
        with_key.map(|(variable, name, address)| ModelOffer::Service {
            name,
            address,
            variable,
        }),
    );
    offers
}

/// Returns those of these ports of this machine where a model server answers.
#[boxed]
pub async fn servers_at(
    ports: &[(u16, &'static str)],
    cancel: &CancellationToken,
) -> Vec<ModelOffer> {
    let look = ports
        .iter()
        .map(|(port, name)| server_at(*port, name, cancel));
    join_all(look).await.into_iter().flatten().collect()
}

async fn server_at(
    port: u16,
    name: &'static str,
    cancel: &CancellationToken,
) -> Option<ModelOffer> {
    let endpoint = format!("http://127.0.0.1:{port}/v1");
    let options = Options {
        connect_timeout_s: 0.3,
        retries: 0,
        ..Options::default()
    };
    let client = Client::new(Endpoint::parse(&endpoint).ok()?, None, options).ok()?;
    let probed = client.probe(cancel, ANSWERS).await.ok()?;
    Some(ModelOffer::Server {
        name,
        endpoint,
        model: probed.model,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use podbay_config::SettingsFile;

    #[test]
    fn every_choice_is_settings_that_can_be_read() {
        let offers = [
            ModelOffer::Own {
                id: "qwen2.5-coder-7b".to_owned(),
                size: 4_700_000_000,
                is_here: false,
                is_smoke: false,
            },
            ModelOffer::Server {
                name: "Ollama",
                endpoint: "http://127.0.0.1:11434/v1".to_owned(),
                model: "qwen".to_owned(),
            },
            ModelOffer::Service {
                name: "openai",
                address: "https://api.openai.com/v1",
                variable: "OPENAI_API_KEY",
            },
        ];
        let temp = tempfile::tempdir().expect("a folder");
        for (n, offer) in offers.iter().enumerate() {
            for (m, freedom) in FREEDOMS.iter().enumerate() {
                let path = temp.path().join(format!("{n}{m}/config.toml"));
                let mut file = SettingsFile::open(&path).expect("opens");
                for (key, value) in [offer.settings("gpt"), freedom.settings()].concat() {
                    file.set::<Config>(&key, &value).expect("it is set");
                }
                let sources = podbay_config::Sources {
                    user: Some(path),
                    user_text: Some(file.text().to_owned()),
                    ..podbay_config::Sources::default()
                };
                let loaded = Config::load(&sources).expect("it reads");
                assert_eq!(loaded.warnings, Vec::<String>::new());
            }
        }
        assert_eq!(
            offers[0].words().1,
            "qwen2.5-coder-7b, 4.4 GiB to load, about 7 min at 100 Mbit/s"
        );
    }
}
