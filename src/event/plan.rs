use serde::Deserialize;
use serde::Serialize;

/// A plan that was made in a session. Each change of it is a version of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// From 1, in the order in which they were made.
    pub version: u32,
    /// Markdown.
    pub text: String,
    /// What the user decided about it; `None`: nothing yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<PlanDecision>,
}

/// What becomes of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanDecision {
    /// It is implemented.
    Approved,
    /// The user wants another one.
    Revise,
    Discarded,
}

/// What a user says to a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanAnswer {
    /// `edited`: as they changed it.
    Approve {
        edited: Option<String>,
    },
    /// What is to be different.
    Revise(Option<String>),
    Discard,
}

impl PlanAnswer {
    pub fn decision(&self) -> PlanDecision {
        match self {
            Self::Approve { .. } => PlanDecision::Approved,
            Self::Revise(_) => PlanDecision::Revise,
            Self::Discard => PlanDecision::Discarded,
        }
    }
}

/// Says that plan mode began or ended.
pub fn plan_mode_words(on: bool, ended: &[String]) -> String {
    let mode = if on {
        "plan mode is on: the project is read-only"
    } else {
        "plan mode is off: commands can write to the project"
    };
    if ended.is_empty() {
        mode.to_owned()
    } else {
        format!(
            "{mode}; what ran in the background has ended: {}",
            ended.join(", ")
        )
    }
}

/// Says what became of a plan.
pub fn plan_decided_words(version: u32, decision: PlanDecision, reason: Option<&str>) -> String {
    let what = match decision {
        PlanDecision::Approved => "approved",
        PlanDecision::Revise => "to be revised",
        PlanDecision::Discarded => "discarded",
    };
    let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
    format!("plan {version} is {what}{reason}")
}
