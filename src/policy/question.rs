use super::Action;
use super::Approved;
use super::Exact;
use crate::event::Answer;
use crate::event::Capability;

/// An action that waits for a person's answer.
#[derive(Debug)]
pub struct Question {
    pub(super) action: Action,
    pub capabilities: Vec<Capability>,
    /// What an answer that lasts would be about.
    pub(super) exact: Option<Exact>,
    /// Why a yes can only hold once.
    pub(super) only_once: Option<String>,
    /// What could be done so that it need not be asked.
    pub(super) remedy: Option<String>,
}

impl Question {
    pub fn action(&self) -> &Action {
        &self.action
    }

    /// Returns what whoever made the call can do where nobody answers.
    pub fn remedy(&self) -> Option<&str> {
        self.remedy.as_deref()
    }

    /// Returns what a yes may hold for besides this call, or why for nothing else.
    pub fn lasting(&self) -> Result<&Exact, &str> {
        match (&self.only_once, &self.exact) {
            (None, Some(exact)) => Ok(exact),
            (because, _) => Err(because.as_deref().unwrap_or("it cannot be known again")),
        }
    }

    /// Turns the answer into an approval, or gives the action up.
    pub fn answered(self, answer: Answer) -> Option<Approved<Action>> {
        match answer {
            Answer::Allow | Answer::AllowSession | Answer::AllowAlways => Some(Approved::by_name(self.action)),
            Answer::Deny | Answer::DenySession | Answer::Quit => None,
        }
    }
}
