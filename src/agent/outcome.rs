use thiserror::Error;

use podbay_event::LimitKind;
use podbay_event::RunStatus;
use podbay_event::Usage;
use podbay_llm as llm;
use podbay_tools::FileChangeKind;
use podbay_tools::PipelineError;
use podbay_wire::BytesPath;

/// How a task ended.
#[derive(Debug)]
pub struct Outcome {
    pub status: RunStatus,
    /// The model's final answer.
    pub response: String,
    pub turns: u32,
    pub tool_calls: u32,
    pub usage: Usage,
    pub limit: Option<LimitKind>,
    pub failure: Option<Failure>,
    /// What was denied, one line each.
    pub denied: Vec<String>,
    /// Calls that ran successfully.
    pub n_succeeded: u32,
    /// Files that file tools changed.
    pub changed: Vec<(BytesPath, FileChangeKind)>,
}

/// Why a task could not continue.
#[derive(Debug, Error)]
pub enum Failure {
    #[error("cannot use the model")]
    Model(#[source] llm::Error),
    #[error("cannot use the sandbox")]
    Sandbox(#[source] PipelineError),
    #[error("the model gave {count} unusable answers in a row")]
    Misunderstood {
        count: u32,
        last: String,
        is_cut: bool,
    },
    #[error(
        "the cost of this run is unknown: the model server does not report it, and no price is set"
    )]
    NoPrice,
    #[error("{problem}")]
    Images { problem: String },
    #[error("the model server's content filter cut the model's answer{}", if *.count == 1 { String::new() } else { format!(" {count} times in a row") })]
    Filtered { count: u32 },
    #[error("the model gave no answer {count} times in a row")]
    Silent { count: u32 },
}

impl Failure {
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Model(error) => error.hint(),
            Self::Sandbox(PipelineError::Sandbox(error)) => error.hint(),
            Self::Misunderstood { is_cut: true, .. } => Some(
                "raise `llm.max_output_tokens` for longer calls, or ask for less at once".to_owned(),
            ),
            Self::Misunderstood { .. } => {
                Some("a larger model helps; `llm.tool_mode = \"constrained\"` enforces the form of every answer if the server supports it".to_owned())
            }
            Self::NoPrice => Some(
                "set its price in [providers.NAME] or [llm] (`price = { prompt = 0.5, completion = 1.5 }`, dollars per million tokens), or \
                 limit the run with --max-tokens instead of --max-cost"
                    .to_owned(),
            ),
            Self::Images { .. } => Some(
                "an image after an @ is a PNG, JPEG, GIF or WebP file of at most 4 MiB; without the @ it is an ordinary name"
                    .to_owned(),
            ),
            Self::Filtered { .. } => {
                Some("rephrase the task, or use a server without such a filter; its operator knows what it blocks".to_owned())
            }
            Self::Silent { .. } => Some(
                "a larger model helps; one that thinks long needs a larger `llm.max_output_tokens`; the model server's own log may say more"
                    .to_owned(),
            ),
        }
    }

    /// Returns whether the model server's own log may say why.
    pub fn is_of_server(&self) -> bool {
        match self {
            Self::Model(error) => error.is_of_server(),
            Self::Silent { .. } => true,
            Self::Sandbox(_)
            | Self::Misunderstood { .. }
            | Self::Filtered { .. }
            | Self::NoPrice
            | Self::Images { .. } => false,
        }
    }
}
