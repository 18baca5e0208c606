//! The model: the endpoint where one is set, else the file and the server of our own.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::check::Check;
use super::check::Group;
use super::check::chain;
use podbay_config::Config;
use podbay_engine::Facts;
use podbay_event::ByteSize;
use podbay_event::ProgressSink;
use podbay_event::Secret;
use podbay_event::ToolMode;
use podbay_inference as inference;
use podbay_inference::Health;
use podbay_inference::Model;
use podbay_inference::ModelServer;
use podbay_inference::Paths;
use podbay_inference::Presence;
use podbay_inference::ServerState;
use podbay_inference::Store;
use podbay_llm as llm;
use podbay_llm::Client;
use podbay_llm::Endpoint;
use podbay_llm::ProbeResult;

const GROUP: Group = Group::Model;

/// How long a server may take to say what it serves: somebody waits at the screen.
const PROBE: Duration = Duration::from_secs(8);

/// Asks the endpoint what it is. The key is sent to it alone, and only where it may be.
pub(super) async fn endpoint(
    text: &str,
    config: &Config,
    key: Option<Secret>,
    cancel: &CancellationToken,
) -> Vec<Check> {
    let failed = |error: llm::Error| {
        let hint = error.hint();
        Check::error(
            GROUP,
            "endpoint",
            &error,
            hint,
            "check its address, and that it runs",
        )
    };
    let endpoint = match Endpoint::parse(text) {
        Ok(endpoint) => endpoint,
        Err(error) => return vec![failed(error.into())],
    };
    let mut checks = plain(&endpoint).into_iter().collect::<Vec<_>>();
    let shown = endpoint.to_string();
    let answer = match Client::new(endpoint, key, config.llm.clone()) {
        Ok(client) => {
            client
                .probe(cancel, config.llm.probe_timeout().min(PROBE))
                .await
        }
        Err(error) => Err(error),
    };
    checks.insert(
        0,
        match answer {
            Ok(probed) => Check::ok(GROUP, "endpoint", format!("{shown}: {}", serves(&probed))),
            Err(error) => failed(error),
        },
    );
    checks
}

/// Warns of an address that others on the way can read along; one with a key is refused by the
/// client itself.
fn plain(endpoint: &Endpoint) -> Option<Check> {
    (!endpoint.may_carry_key()).then(|| {
        let detail = format!("{endpoint} is plain HTTP: anyone on the network path can read your code and change the answers");
        Check::warn(GROUP, "encryption", detail, "use an https address; a key is never sent to this one")
    })
}

/// Returns what a server serves, in words.
pub(super) fn serves(probed: &ProbeResult) -> String {
    let context = probed.context.map_or_else(String::new, |context| {
        format!(", {context} tokens of context")
    });
    format!(
        "{}{context}, tools {} ({})",
        probed.model,
        mode_word(probed.tools),
        probed.reason
    )
}

pub(super) fn mode_word(mode: ToolMode) -> &'static str {
    match mode {
        ToolMode::Native => "native",
        ToolMode::Constrained => "constrained",
        ToolMode::Text => "by text",
    }
}

/// Where the model of the settings is.
enum Found {
    Here(Box<Model>),
    /// It has a name and will be loaded: so many bytes.
    Absent {
        name: String,
        size: u64,
    },
}

/// Looks for the model of our own server without loading anything.
async fn find(
    config: &Config,
    paths: &Paths,
    cancel: &CancellationToken,
) -> Result<Found, inference::Error> {
    let offline = true;
    let store = Store::new(&config.inference, paths, offline)?;
    // One that is damaged is no model to load, and what is wrong with it is said by whoever wants
    // it.
    let is_absent = |presence| matches!(presence, Presence::Absent | Presence::Partial(_));
    if let Some(listed) = store.wanted()?.filter(|listed| is_absent(listed.presence)) {
        return Ok(Found::Absent {
            name: listed.entry.id,
            size: listed.entry.size,
        });
    }
    let progress: ProgressSink = std::sync::Arc::new(|_| {});
    store
        .resolve(&progress, cancel)
        .await
        .map(|model| Found::Here(Box::new(model)))
}

/// Judges the file of the model, and whether the engine's machine can hold it.
pub(super) async fn file(
    config: &Config,
    paths: &Paths,
    engine: Option<&Facts>,
    cancel: &CancellationToken,
) -> Vec<Check> {
    match find(config, paths, cancel).await {
        Ok(Found::Here(model)) => {
            let mut checks = vec![here(&model)];
            checks.extend(engine.map(|facts| memory(&model, facts.memory, config)));
            checks
        }
        Ok(Found::Absent { name, size: bytes }) => vec![Check::warn(
            GROUP,
            "file",
            format!(
                "{name} ({}) is not here, or not all of it",
                ByteSize::new(bytes).rounded()
            ),
            "the first run loads it; `podbay quickstart` does so now, and --model FILE.gguf names another one",
        )],
        Err(error) => {
            let hint = error.hint();
            vec![Check::error(
                GROUP,
                "file",
                &error,
                hint,
                "name another model: inference.model, or --model FILE.gguf",
            )]
        }
    }
}

fn here(model: &Model) -> Check {
    let detail = format!("{}, {}", model.name, ByteSize::new(model.size).rounded());
    if model.is_smoke {
        let remedy = "name a better one: inference.model, --model FILE.gguf, or an endpoint";
        return Check::warn(
            GROUP,
            "file",
            format!("{detail}: it proves the set-up and writes no good code"),
            remedy,
        );
    }
    Check::ok(GROUP, "file", detail)
}

fn memory(model: &Model, machine: u64, config: &Config) -> Check {
    match inference::measure(model, machine, &config.inference) {
        Ok((context, bytes)) => {
            let of = if machine > 0 {
                format!(" of {}", ByteSize::new(machine).rounded())
            } else {
                String::new()
            };
            Check::ok(
                GROUP,
                "memory",
                format!(
                    "{}{of}, for {context} tokens of context",
                    ByteSize::new(bytes).rounded()
                ),
            )
        }
        Err(error @ inference::Error::TooLarge { .. }) => {
            let remedy = "use a smaller model, or a shorter context: inference.context";
            Check::fail(GROUP, "memory", chain(&error), remedy)
        }
        Err(error) => {
            let hint = error.hint();
            Check::error(
                GROUP,
                "memory",
                &error,
                hint,
                "check the section [inference] of the settings",
            )
        }
    }
}

/// Looks at our own model server and, where it runs, asks what it serves. That wakes none that
/// sleeps.
pub(super) async fn server(
    server: &ModelServer,
    config: &Config,
    cancel: &CancellationToken,
) -> Check {
    let state = match server.state(cancel).await {
        Ok(state) => state,
        Err(error) => {
            let hint = error.hint();
            return Check::error(GROUP, "server", &error, hint, "try `docker info`");
        }
    };
    let is_ready = state
        .as_ref()
        .is_some_and(|state| state.running && state.health == Health::Ready);
    let probed = if is_ready {
        probe(server, config, cancel).await
    } else {
        None
    };
    judge(state.as_ref(), probed.as_ref())
}

async fn probe(
    server: &ModelServer,
    config: &Config,
    cancel: &CancellationToken,
) -> Option<ProbeResult> {
    let (endpoint, key) = server.endpoint_and_key(cancel).await.ok()??;
    Client::new(endpoint, Some(key), config.llm.clone())
        .ok()?
        .probe(cancel, PROBE)
        .await
        .ok()
}

fn judge(state: Option<&ServerState>, probed: Option<&ProbeResult>) -> Check {
    let Some(state) = state.filter(|state| state.running) else {
        return Check::ok(GROUP, "server", "does not run; the first run starts it");
    };
    match (&state.health, probed) {
        (Health::Ready, Some(probed)) => Check::ok(
            GROUP,
            "server",
            format!("runs and is ready: {}", serves(probed)),
        ),
        (Health::Ready, None) => {
            let remedy = "`podbay logs` shows its last words; `podbay down` ends it, and the next run starts another";
            Check::warn(
                GROUP,
                "server",
                format!("{} is ready and does not say what it serves", state.name),
                remedy,
            )
        }
        (Health::Loading, _) => Check::ok(GROUP, "server", "loads its model"),
        (Health::NoAnswer(why), _) => {
            let remedy = "the next run replaces it; `podbay logs` shows its last words";
            Check::warn(
                GROUP,
                "server",
                format!("{} runs and does not answer: {why}", state.name),
                remedy,
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Status;
    use podbay_engine::ContainerId;
    use podbay_event::ByteSize;
    use podbay_llm::Server;
    use podbay_llm::control::ControlTokens;

    fn model() -> Model {
        Model {
            name: "qwen".to_owned(),
            files: Vec::new(),
            identities: Vec::new(),
            size: 4 << 30,
            changed: 0,
            context: Some(32_768),
            bytes_per_token: Some(128 << 10),
            is_smoke: false,
            note: None,
        }
    }

    #[track_caller]
    fn check(found: &Check, status: Status, words: &str) {
        assert_eq!(
            (found.status, found.remedy.is_some()),
            (status, status != Status::Ok),
            "{found:?}"
        );
        assert!(found.detail.contains(words), "{found:?}");
    }

    #[test]
    fn a_model_that_does_not_fit_fails_and_the_smallest_is_warned_about() {
        let mut config = Config::default();
        check(&here(&model()), Status::Ok, "qwen, 4.0 GiB");
        check(
            &here(&Model {
                is_smoke: true,
                ..model()
            }),
            Status::Warn,
            "no good code",
        );
        check(
            &memory(&model(), 16 << 30, &config),
            Status::Ok,
            "of 16.0 GiB, for 32768 tokens",
        );
        check(&memory(&model(), 0, &config), Status::Ok, "32768");
        check(&memory(&model(), 4 << 30, &config), Status::Fail, "needs");
        config.inference.memory = Some(ByteSize::new(1));
        check(
            &memory(&model(), 16 << 30, &config),
            Status::Fail,
            "inference.memory",
        );
        config.inference.memory = Some(ByteSize::gib(8));
        check(&memory(&model(), 16 << 30, &config), Status::Ok, "8.0 GiB");
    }

    #[test]
    fn a_server_is_judged_by_how_it_answers() {
        let state = |running, health| ServerState {
            name: "podbay-llama-server-x".to_owned(),
            container: ContainerId("x".to_owned()),
            running,
            started_at: String::new(),
            image: String::new(),
            health,
            endpoint: String::new(),
        };
        let probed = ProbeResult {
            model: "qwen".to_owned(),
            context: Some(8192),
            n_slots: None,
            n_busy: None,
            tools: ToolMode::Constrained,
            reason: "no tools".to_owned(),
            images: false,
            tokens: ControlTokens::default(),
            server: Server::LlamaCpp,
        };
        check(&judge(None, None), Status::Ok, "does not run");
        check(
            &judge(Some(&state(false, Health::Ready)), None),
            Status::Ok,
            "does not run",
        );
        check(
            &judge(Some(&state(true, Health::Loading)), None),
            Status::Ok,
            "loads",
        );
        check(
            &judge(Some(&state(true, Health::Ready)), Some(&probed)),
            Status::Ok,
            "qwen, 8192 tokens of context, tools constrained",
        );
        check(
            &judge(Some(&state(true, Health::Ready)), None),
            Status::Warn,
            "does not say",
        );
        check(
            &judge(
                Some(&state(true, Health::NoAnswer("silence".to_owned()))),
                None,
            ),
            Status::Warn,
            "silence",
        );
    }

    #[test]
    fn plain_http_beyond_this_machine_is_warned_about() {
        let at = |text: &str| Endpoint::parse(text).expect("an address");
        assert!(
            plain(&at("http://192.0.2.7:8000/v1"))
                .is_some_and(|check| check.status == Status::Warn)
        );
        for fine in [
            "https://192.0.2.7/v1",
            "http://127.0.0.1:8000/v1",
            "unix:/run/s.sock",
        ] {
            assert_eq!(plain(&at(fine)), None, "{fine}");
        }
    }
}
