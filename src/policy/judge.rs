use std::collections::BTreeSet;

use serde::Deserialize;
use serde::Serialize;

use super::Action;
use super::Approved;
use super::Options;
use super::Rule;
use super::RuleError;
use super::capabilities;
use crate::event::Answer;
use crate::event::Capability;
use crate::event::Decision;

/// How much is allowed without asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// What stays in the box is allowed: the box holds.
    Auto,
    /// Whatever changes something is asked about.
    Ask,
    /// Reading only.
    Deny,
}

impl Mode {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// Everything a verdict depends on: the mode, the person's rules, and what they allowed for this session.
#[derive(Clone, Debug)]
pub struct Policy {
    mode: Mode,
    allow: Vec<Rule>,
    deny: Vec<Rule>,
    granted: BTreeSet<Capability>,
}

/// What policy says of one action.
#[derive(Debug)]
pub enum Verdict {
    Allow { action: Approved<Action>, reason: String },
    Ask(Question),
    Deny { reason: String, capabilities: Vec<Capability> },
}

/// An action that waits for a person's answer.
#[derive(Debug)]
pub struct Question {
    action: Action,
    pub capabilities: Vec<Capability>,
}

impl Question {
    pub fn action(&self) -> &Action {
        &self.action
    }

    /// Turns the answer into an approval, or gives the action up.
    pub fn answered(self, answer: Answer) -> Option<Approved<Action>> {
        match answer {
            Answer::Allow | Answer::AllowSession => Some(Approved::action(self.action)),
            Answer::Deny | Answer::Quit => None,
        }
    }
}

impl Policy {
    pub fn new(mode: Mode, options: &Options) -> Result<Self, RuleError> {
        let parse = |rules: &[String]| rules.iter().map(|rule| Rule::parse(rule)).collect::<Result<Vec<_>, _>>();
        Ok(Self { mode, allow: parse(&options.allow)?, deny: parse(&options.deny)?, granted: BTreeSet::new() })
    }

    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Remembers that a person allowed these capabilities until the session ends.
    pub fn grant(&mut self, capabilities: &[Capability]) {
        self.granted.extend(capabilities.iter().cloned());
    }

    /// Judges one action. A denial wins over everything, a person's word over the mode.
    pub fn judge(&self, action: Action) -> Verdict {
        let capabilities = capabilities(&action);
        if let Some(rule) = self.deny.iter().find(|rule| rule.may_match(&action)) {
            return Verdict::Deny { reason: format!("the rule `{}` denies it", rule.text()), capabilities };
        }
        let (decision, because) = self.by_mode(&capabilities);
        if decision == Decision::Deny && self.mode == Mode::Deny {
            return Verdict::Deny { reason: format!("mode deny only allows reading, not to {because}"), capabilities };
        }
        if decision == Decision::Allow {
            return Verdict::Allow { action: Approved::action(action), reason: format!("mode {} allows it", self.mode.as_str()) };
        }
        if let Some(rule) = self.allow.iter().find(|rule| rule.matches(&action)) {
            let reason = format!("the rule `{}` allows it", rule.text());
            return Verdict::Allow { action: Approved::action(action), reason };
        }
        if capabilities.iter().all(|capability| self.granted.contains(capability) || self.decide(capability) == Decision::Allow) {
            return Verdict::Allow { action: Approved::action(action), reason: "it was allowed for this session".to_owned() };
        }
        match decision {
            Decision::Ask => Verdict::Ask(Question { action, capabilities }),
            _ => Verdict::Deny { reason: format!("mode {} does not allow to {because}", self.mode.as_str()), capabilities },
        }
    }

    fn by_mode(&self, capabilities: &[Capability]) -> (Decision, String) {
        let strictest = capabilities.iter().max_by_key(|capability| match self.decide(capability) {
            Decision::Allow => 0,
            Decision::Ask => 1,
            Decision::Deny => 2,
        });
        strictest.map_or((Decision::Allow, String::new()), |capability| (self.decide(capability), capability.describe()))
    }

    /// The table of modes and capabilities that scripts depend on.
    fn decide(&self, capability: &Capability) -> Decision {
        match (capability, self.mode) {
            (Capability::ReadFiles, _)
            | (Capability::SpawnAgent, Mode::Auto | Mode::Ask)
            | (Capability::WriteFiles | Capability::RunInBox | Capability::ChangeSessionGit, Mode::Auto) => Decision::Allow,
            (_, Mode::Ask) => Decision::Ask,
            (_, Mode::Auto | Mode::Deny) => Decision::Deny,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Bash;
    use crate::wire::Call;
    use crate::wire::ListDirectory;
    use crate::wire::WriteFile;

    fn write(path: &str) -> Action {
        Action::Box(Call::WriteFile(WriteFile { path: path.into(), content: String::new(), append: false, protected: false }))
    }

    fn list() -> Action {
        Action::Box(Call::ListDirectory(ListDirectory {
            path: ".".into(),
            recursive: false,
            show_hidden: false,
            show_size: false,
            max_entries: 1,
        }))
    }

    fn bash() -> Action {
        let (timeout_ms, grace_ms, stream_bytes, tail_bytes) = (1, 1, 1, 1);
        let command = "make".to_owned();
        Action::Box(Call::Bash(Bash {
            command,
            working_directory: None,
            timeout_ms,
            grace_ms,
            stream_bytes,
            tail_bytes,
            background: false,
        }))
    }

    #[track_caller]
    fn check(mode: Mode, options: &Options, action: Action, expected: Decision) {
        let policy = Policy::new(mode, options).expect("good rules");
        let found = match policy.judge(action) {
            Verdict::Allow { .. } => Decision::Allow,
            Verdict::Ask(_) => Decision::Ask,
            Verdict::Deny { .. } => Decision::Deny,
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn the_table_is_the_one_that_scripts_depend_on() {
        let none = Options::default();
        let rows = [
            (list(), [Decision::Ask, Decision::Allow, Decision::Deny].map(|_| Decision::Allow)),
            (write("a.rs"), [Decision::Ask, Decision::Allow, Decision::Deny]),
            (bash(), [Decision::Ask, Decision::Allow, Decision::Deny]),
            (write(".env"), [Decision::Ask, Decision::Deny, Decision::Deny]),
        ];
        for (action, [ask, auto, deny]) in rows {
            check(Mode::Ask, &none, action.clone(), ask);
            check(Mode::Auto, &none, action.clone(), auto);
            check(Mode::Deny, &none, action, deny);
        }
    }

    #[test]
    fn a_denial_wins_and_a_rule_opens_what_the_mode_would_ask() {
        let rules = Options { allow: vec!["write_file".into()], deny: vec!["write_file(secret/**)".into()] };
        check(Mode::Ask, &rules, write("a.rs"), Decision::Allow);
        check(Mode::Ask, &rules, write("secret/a"), Decision::Deny);
        check(Mode::Deny, &rules, write("a.rs"), Decision::Deny);
        check(Mode::Auto, &rules, write(".env"), Decision::Allow);
    }

    #[test]
    fn what_was_granted_for_the_session_is_not_asked_again() {
        let mut policy = Policy::new(Mode::Ask, &Options::default()).expect("no rules");
        let Verdict::Ask(question) = policy.judge(bash()) else { panic!("must ask") };
        policy.grant(&question.capabilities);
        assert!(matches!(policy.judge(bash()), Verdict::Allow { .. }));
        assert!(matches!(policy.judge(write("a")), Verdict::Ask(_)));
        assert!(question.answered(Answer::Deny).is_none());
    }
}
