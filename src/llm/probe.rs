//! Detects the server's kind and properties before the first message. Each kind
//! ([`super::provider`]) is tried in turn, and evidence decides how tools are offered.

use std::time::Duration;

use async_recursion::async_recursion as boxed;
use tokio_util::sync::CancellationToken;

use super::client::Client;
use super::control::ControlTokens;
use super::error::Error;
use super::options::Options;
use super::options::ToolModeChoice;
use super::provider;
use super::provider::Api;
use super::provider::Compatible;
use super::provider::LlamaCpp;
use super::provider::Vllm;
use super::refusal::KeySource;
use super::server_query::ServerQuery;
use podbay_event::ToolMode;

/// The properties of the server and its model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeResult {
    pub model: String,
    /// Tokens per slot; `None` if the server does not say.
    pub context: Option<u64>,
    /// How many conversations the server holds at once.
    pub n_slots: Option<u32>,
    /// How many of them were busy during the probe; `None` if the server does not say.
    pub n_busy: Option<u32>,
    pub tools: ToolMode,
    /// Why this tool mode was chosen.
    pub reason: String,
    pub server: Server,
    /// The model accepts images, as far as the server says.
    pub images: bool,
    /// The control tokens of its template besides those common to all models.
    pub tokens: ControlTokens,
}

impl ProbeResult {
    /// Returns whether the model's reasoning should be sent back with its messages; other servers
    /// may refuse the field.
    pub fn replay_thinking(&self) -> bool {
        self.server.provider().quirks().replays_thinking
    }

    /// Returns whether an answer can be constrained to a schema while tools are offered natively.
    pub fn holds_calls(&self) -> bool {
        self.server.provider().quirks().holds_calls
    }

    /// Returns whether every slot was busy, so that an answer has to wait.
    pub fn is_full(&self) -> bool {
        self.n_slots
            .zip(self.n_busy)
            .is_some_and(|(n_slots, n_busy)| n_busy >= n_slots)
    }

    /// Overrides the result with what the options set.
    fn chosen(mut self, options: &Options) -> Self {
        let set = Some(options.context).filter(|tokens| *tokens > 0);
        self.context = self.context.into_iter().chain(set).min();
        self.images = options.images.unwrap_or(self.images);
        self.tools = match options.tool_mode {
            ToolModeChoice::Auto => return self,
            ToolModeChoice::Native => ToolMode::Native,
            ToolModeChoice::Constrained => ToolMode::Constrained,
            ToolModeChoice::Text => ToolMode::Text,
        };
        "set by llm.tool_mode".clone_into(&mut self.reason);
        self
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    LlamaCpp,
    Vllm,
    /// Any other OpenAI-compatible server.
    Other,
    /// The only kind of server with an API of its own.
    Only(Api),
}

impl Server {
    pub(super) fn provider(self) -> &'static dyn provider::Provider {
        match self {
            Self::LlamaCpp => &LlamaCpp,
            Self::Vllm => &Vllm,
            Self::Other => &Compatible,
            Self::Only(api) => *api
                .chat()
                .kinds()
                .last()
                .expect("each API has a kind that accepts any server"),
        }
    }

    /// Returns what is assumed before the probe.
    pub(super) fn default_of(api: Api) -> Self {
        if api == Api::default() {
            Self::Other
        } else {
            Self::Only(api)
        }
    }
}

impl Client {
    /// Probes the server within `timeout`, including the time for its model to load.
    #[boxed]
    pub async fn probe(
        &self,
        cancel: &CancellationToken,
        timeout: Duration,
    ) -> Result<ProbeResult, Error> {
        self.probe_server(cancel, timeout).await.map_err(|error| {
            match error.with_key_source(|| KeySource::of(self.options())) {
                // A longer timeout would not help: no answer has begun.
                Error::Timeout { after } => Error::NoAnswer {
                    endpoint: self.inner().shown_endpoint.clone(),
                    after,
                },
                other => other,
            }
        })
    }

    async fn probe_server(
        &self,
        cancel: &CancellationToken,
        timeout: Duration,
    ) -> Result<ProbeResult, Error> {
        let asking = ServerQuery::new(self, cancel, timeout);
        let mut n_tried = 0;
        loop {
            let error = match self.ask_each_kind(&asking).await {
                // Nothing listens there: a caller that waits for a starting server retries by
                // itself.
                Err(error)
                    if !matches!(
                        error,
                        Error::Unreachable { .. } | Error::ModelLoading { .. }
                    ) =>
                {
                    error
                }
                other => return other,
            };
            let Some(pause) = self
                .pause_before(&error, n_tried)
                .filter(|pause| *pause < asking.left())
            else {
                return Err(error);
            };
            n_tried += 1;
            asking.pause(pause).await?;
        }
    }

    async fn ask_each_kind(&self, asking: &ServerQuery<'_>) -> Result<ProbeResult, Error> {
        let options = self.options();
        for kind in self.api().kinds() {
            if let Some(probed) = kind.probe(asking, options).await? {
                let probed = probed.chosen(options);
                self.remember(&probed);
                return Ok(probed);
            }
        }
        Err(Error::Protocol {
            problem: "it is not a known kind of model server".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probed() -> ProbeResult {
        ProbeResult {
            model: "m".to_owned(),
            context: None,
            n_slots: None,
            n_busy: None,
            tools: ToolMode::Constrained,
            reason: "the model's chat template has no tools".to_owned(),
            server: Server::LlamaCpp,
            images: false,
            tokens: ControlTokens::default(),
        }
    }

    #[test]
    fn a_server_is_full_only_if_it_reports_it() {
        let full = |n_slots, n_busy| {
            ProbeResult {
                n_slots,
                n_busy,
                ..probed()
            }
            .is_full()
        };
        assert_eq!(
            [full(Some(1), Some(1)), full(Some(2), Some(2))],
            [true, true]
        );
        assert_eq!(
            [
                full(Some(2), Some(1)),
                full(Some(1), None),
                full(None, Some(1)),
                full(None, None)
            ],
            [false; 4]
        );
    }

    #[test]
    fn options_override_probe_results() {
        let probed = probed();
        assert_eq!(probed.clone().chosen(&Options::default()), probed);
        for (choice, mode) in [
            (ToolModeChoice::Native, ToolMode::Native),
            (ToolModeChoice::Constrained, ToolMode::Constrained),
            (ToolModeChoice::Text, ToolMode::Text),
        ] {
            let chosen = probed.clone().chosen(&Options {
                tool_mode: choice,
                ..Options::default()
            });
            assert_eq!(
                (chosen.tools, chosen.reason.as_str()),
                (mode, "set by llm.tool_mode")
            );
        }
        let context = |told, set| {
            ProbeResult {
                context: told,
                ..probed.clone()
            }
            .chosen(&Options {
                context: set,
                ..Options::default()
            })
            .context
        };
        assert_eq!([context(None, 0), context(None, 4096)], [None, Some(4096)]);
        assert_eq!(
            [
                context(Some(8192), 0),
                context(Some(8192), 4096),
                context(Some(8192), 16_384)
            ],
            [8192, 4096, 8192].map(Some)
        );
        let images = |told, set| {
            ProbeResult {
                images: told,
                ..probed.clone()
            }
            .chosen(&Options {
                images: set,
                ..Options::default()
            })
            .images
        };
        assert_eq!(
            [
                images(false, None),
                images(false, Some(true)),
                images(true, None),
                images(true, Some(false))
            ],
            [false, true, true, false]
        );
    }
}
