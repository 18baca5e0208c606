//! An agent that another one started: what it is told, and how it is stopped.

use super::Agent;
use super::Ledger;
use super::Profile;
use super::system_prompt;

/// What each of them is told, whatever its type.
const RULES: &str = "\nYou work for another agent, which gave you one task and reads nothing but your last answer. Nobody else reads along.\n\
                     - Do this task and nothing else. What it does not say, find out; what cannot be found out, say.\n\
                     - End with an answer that stands by itself: what you found or did, with the files and lines, and what you could not do.";

/// Returns the system prompt of an agent: the rules of all, those of its type, and what the agent
/// that started it adds.
pub fn sub_agent_prompt(of_type: &str, added: Option<&str>) -> String {
    let mut prompt = system_prompt(Profile::Standard);
    prompt.push_str(RULES);
    for words in [Some(of_type), added].into_iter().flatten() {
        let words = words.trim();
        if !words.is_empty() {
            prompt.push_str("\n\n");
            prompt.push_str(words);
        }
    }
    prompt
}

impl Agent {
    /// Has what the session's agents use count together.
    #[must_use]
    pub fn with_ledger(mut self, ledger: &Ledger) -> Self {
        self.account = ledger.main();
        self
    }

    /// The same for an agent that another one started.
    #[must_use]
    pub fn for_another(mut self, ledger: &Ledger) -> Self {
        self.account = ledger.open();
        self
    }
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::Interrupt;

    #[test]
    fn an_agent_ends_with_the_call_that_started_it() {
        let (cancel, haste) = (CancellationToken::new(), CancellationToken::new());
        let interrupt = Interrupt::under(&cancel, &haste);
        let step = interrupt.step();
        cancel.cancel();
        assert!(step.is_cancelled() && interrupt.is_ended());
        assert!(!interrupt.haste().is_cancelled());
        // Its own end ends nothing above it.
        let cancel = CancellationToken::new();
        Interrupt::under(&cancel, &haste).end();
        assert!(!cancel.is_cancelled());
    }

    #[test]
    fn a_prompt_begins_with_the_rules_of_all() {
        let prompt = sub_agent_prompt("Look around.", Some("  "));
        assert!(prompt.starts_with(&system_prompt(Profile::Standard)));
        assert!(
            prompt.ends_with("could not do.\n\nLook around."),
            "{prompt}"
        );
    }
}
