//! What the server is, asked before the first message. The kinds of servers ([`super::provider`])
//! are asked in turn, and evidence decides how tools are told.

use std::time::Duration;

use async_recursion::async_recursion as boxed;
use tokio_util::sync::CancellationToken;

use super::asking::Asking;
use super::client::Client;
use super::control::Tokens;
use super::error::Error;
use super::options::Options;
use super::options::ToolModeChoice;
use super::provider;
use super::provider::Compatible;
use super::provider::LlamaCpp;
use super::provider::Vllm;
use super::refusal::KeyFrom;
use podbay_event::ToolMode;

/// What was found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probed {
    pub model: String,
    /// Tokens per slot; `None` where the server does not say.
    pub context: Option<u64>,
    /// Conversations the server holds at once.
    pub n_slots: Option<u32>,
    /// How many of them had work when it was asked; `None` where the server does not say.
    pub n_busy: Option<u32>,
    pub tools: ToolMode,
    /// Why tools are told that way.
    pub reason: String,
    pub server: Server,
    /// The model can be shown images, as far as the server says.
    pub images: bool,
    /// What its template makes of it beside the control tokens of all models.
    pub tokens: Tokens,
}

impl Probed {
    /// Returns whether the model's thinking should go back with its messages; other servers may
    /// refuse the field.
    pub fn replay_thinking(&self) -> bool {
        self.server.provider().replays_thinking()
    }

    /// Returns whether an answer can be held to a schema over a conversation that tells of tools by
    /// the server's own means.
    pub fn holds_calls(&self) -> bool {
        self.server.provider().holds_calls()
    }

    /// Returns whether every slot had work, so that an answer has to wait.
    pub fn is_full(&self) -> bool {
        self.n_slots
            .zip(self.n_busy)
            .is_some_and(|(n_slots, n_busy)| n_busy >= n_slots)
    }

    /// Takes what the settings say, where they do.
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
}

impl Server {
    pub(super) fn provider(self) -> &'static dyn provider::Provider {
        match self {
            Self::LlamaCpp => &LlamaCpp,
            Self::Vllm => &Vllm,
            Self::Other => &Compatible,
        }
    }
}

impl Client {
    /// Asks the server what it is, within `timeout`; waits for its model to load within the same
    /// time.
    #[boxed]
    pub async fn probe(
        &self,
        cancel: &CancellationToken,
        timeout: Duration,
    ) -> Result<Probed, Error> {
        self.ask_what_it_is(cancel, timeout).await.map_err(|error| {
            match error.with_key_from(|| KeyFrom::of(self.options())) {
                // No answer was begun that more time could finish.
                Error::Timeout { after } => Error::NoAnswer {
                    endpoint: self.inner().shown_endpoint.clone(),
                    after,
                },
                other => other,
            }
        })
    }

    async fn ask_what_it_is(
        &self,
        cancel: &CancellationToken,
        timeout: Duration,
    ) -> Result<Probed, Error> {
        let asking = Asking::new(self, cancel, timeout);
        let mut n_tried = 0;
        loop {
            let error = match self.ask_each_kind(&asking).await {
                // Nobody listens there: whoever waits for a server that is being started asks again
                // by himself.
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

    async fn ask_each_kind(&self, asking: &Asking<'_>) -> Result<Probed, Error> {
        let options = self.options();
        for kind in provider::KINDS {
            if let Some(probed) = kind.probe(asking, options).await? {
                let probed = probed.chosen(options);
                self.remember(&probed);
                return Ok(probed);
            }
        }
        Err(Error::Protocol {
            problem: "it is no kind of model server that is known".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probed() -> Probed {
        Probed {
            model: "m".to_owned(),
            context: None,
            n_slots: None,
            n_busy: None,
            tools: ToolMode::Constrained,
            reason: "the model's chat template has no tools".to_owned(),
            server: Server::LlamaCpp,
            images: false,
            tokens: Tokens::default(),
        }
    }

    #[test]
    fn a_server_is_full_only_if_it_says_so() {
        let full = |n_slots, n_busy| {
            Probed {
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
    fn what_is_set_goes_before_what_is_found() {
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
            Probed {
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
            Probed {
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
