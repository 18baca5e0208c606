use super::Action;
use super::Approved;
use super::ExactCall;
use podbay_event::Answer;
use podbay_event::Capability;
use podbay_event::Lasting;
use podbay_wire::ExecRule;

/// An action that waits for the user's answer.
#[derive(Debug)]
pub struct Question {
    pub(super) action: Action,
    pub capabilities: Vec<Capability>,
    /// The scope of a lasting answer.
    pub(super) exact: Option<ExactCall>,
    /// Why an approval can only hold once.
    pub(super) reason_for_once: Option<String>,
    /// The answer may be that all edits are allowed.
    pub(super) covers_edits: bool,
    /// The rule that requires the question, if any.
    pub(super) rule: Option<String>,
    /// Rules for the programs that it starts.
    pub(super) programs: Box<[ExecRule]>,
}

impl Question {
    pub fn action(&self) -> &Action {
        &self.action
    }

    /// Returns the rule that requires the question, if any.
    pub fn rule(&self) -> Option<&str> {
        self.rule.as_deref()
    }

    /// Returns what a lasting approval would cover, or why it can only hold once.
    pub fn lasting(&self) -> Result<&ExactCall, &str> {
        match (&self.reason_for_once, &self.exact) {
            (None, Some(exact)) => Ok(exact),
            (because, _) => Err(because
                .as_deref()
                .unwrap_or("it cannot be recognized later")),
        }
    }

    /// Describes to the user what a lasting approval would cover; `always`: answers can be stored
    /// for the project.
    pub fn lasting_scope(&self, always: bool) -> Lasting {
        // A stored answer includes its directory; otherwise nothing else shows where the last `cd`
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
                edits: self.covers_edits,
            },
            (Err(because), Some(folder)) => Lasting::Once {
                because: format!("it runs in {folder}; {because}"),
            },
            (Err(because), None) => Lasting::Once {
                because: because.to_owned(),
            },
        }
    }

    /// Turns an approving answer into an approval; `None` for a denial.
    pub fn answered(self, answer: Answer) -> Option<Approved<Action>> {
        match answer {
            Answer::Allow | Answer::AllowSession | Answer::AllowEdits | Answer::AllowAlways => {
                Some(
                    Approved::by_name(self.action)
                        .answered()
                        .with_program_rules(&self.programs),
                )
            }
            Answer::Deny | Answer::DenySession | Answer::Quit => None,
        }
    }
}
