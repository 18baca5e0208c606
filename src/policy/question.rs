use super::Action;
use super::Approved;
use super::Exact;
use podbay_event::Answer;
use podbay_event::Capability;
use podbay_event::Lasting;
use podbay_wire::ExecRule;

/// An action that waits for a person's answer.
#[derive(Debug)]
pub struct Question {
    pub(super) action: Action,
    pub capabilities: Vec<Capability>,
    /// What an answer that lasts would be about.
    pub(super) exact: Option<Exact>,
    /// Why a yes can only hold once.
    pub(super) only_once: Option<String>,
    /// The rule that wants it asked, where it is one.
    pub(super) rule: Option<String>,
    /// What the programs that it starts may be.
    pub(super) programs: Box<[ExecRule]>,
}

impl Question {
    pub fn action(&self) -> &Action {
        &self.action
    }

    /// Returns the rule that wants it asked, where it is one.
    pub fn rule(&self) -> Option<&str> {
        self.rule.as_deref()
    }

    /// Returns what a yes may hold for besides this call, or why for nothing else.
    pub fn lasting(&self) -> Result<&Exact, &str> {
        match (&self.only_once, &self.exact) {
            (None, Some(exact)) => Ok(exact),
            (because, _) => Err(because.as_deref().unwrap_or("it cannot be known again")),
        }
    }

    /// Says to the person what a yes may hold for; `always`: answers can be kept for the project.
    pub fn told(&self, always: bool) -> Lasting {
        // What is remembered names its folder; of the rest nothing else shows where the last `cd`
        // led.
        let folder = self
            .exact
            .as_ref()
            .map(|exact| exact.directory.as_str())
            .filter(|folder| !folder.is_empty());
        match (self.lasting(), folder) {
            (Ok(exact), _) => Lasting::Exactly {
                what: exact.words(),
                always,
            },
            (Err(because), Some(folder)) => Lasting::Once {
                because: format!("it runs in {folder}; {because}"),
            },
            (Err(because), None) => Lasting::Once {
                because: because.to_owned(),
            },
        }
    }

    /// Turns the answer into an approval, or gives the action up.
    pub fn answered(self, answer: Answer) -> Option<Approved<Action>> {
        match answer {
            Answer::Allow | Answer::AllowSession | Answer::AllowAlways => Some(
                Approved::by_name(self.action)
                    .answered()
                    .under(&self.programs),
            ),
            Answer::Deny | Answer::DenySession | Answer::Quit => None,
        }
    }
}
