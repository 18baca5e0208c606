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
    /// The model's last words.
    pub response: String,
    pub turns: u32,
    pub tool_calls: u32,
    pub usage: Usage,
    pub limit: Option<LimitKind>,
    pub failure: Option<Failure>,
    /// What was denied, one line each.
    pub denied: Vec<String>,
    /// Calls that ran and did what was asked.
    pub n_succeeded: u32,
    /// Files that file tools touched.
    pub changed: Vec<(BytesPath, FileChangeKind)>,
}

/// Why a task could not go on.
#[derive(Debug, Error)]
pub enum Failure {
    #[error("the model could not be had")]
    Model(#[source] llm::Error),
    #[error("the sandbox could not be had")]
    Sandbox(#[source] PipelineError),
    #[error("the model's answers could not be understood {count} times in a row")]
    Misunderstood {
        count: u32,
        last: String,
        is_cut: bool,
    },
    #[error(
        "what this run costs cannot be known: the model server does not say, and no price is named for it"
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
                "a larger `llm.max_output_tokens` lets a long call come to its end; a task that asks for less at once has shorter ones".to_owned(),
            ),
            Self::Misunderstood { .. } => {
                Some("a larger model helps; `llm.tool_mode = \"constrained\"` makes every answer fit where the server can".to_owned())
            }
            Self::NoPrice => Some(
                "name its price in [providers.NAME] or [llm] (`price = { prompt = 0.5, completion = 1.5 }`, dollars for a million tokens), or \
                 bound the run with --max-tokens instead of --max-cost"
                    .to_owned(),
            ),
            Self::Images { .. } => Some(
                "a file of the project that stands behind an @ is a PNG, JPEG, GIF or WebP of at most 4 MiB; without the @ it is a name like any other"
                    .to_owned(),
            ),
            Self::Filtered { .. } => {
                Some("say the task in other words, or use a server without such a filter; what it lets through is said by whoever runs it".to_owned())
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
