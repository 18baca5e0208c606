use std::collections::BTreeSet;

use serde::Deserialize;
use serde::Serialize;

use super::Action;
use super::Approved;
use super::Autonomy;
use super::Exact;
use super::Example;
use super::Options;
use super::Rule;
use super::RuleDecision;
use super::RuleError;
use super::action::reading_of;
use super::capabilities;
use super::command::Reading;
use super::exact::only_once;
use super::paths::plain;
use super::rule::everything_is_allowed;
use crate::event::Answer;
use crate::event::Capability;
use crate::event::Decision;
use crate::wire::BytesPath;
use crate::wire::Call;

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

/// Everything a verdict depends on: the mode, the person's rules, and their answers that hold for more than one call.
#[derive(Clone, Debug)]
pub struct Policy {
    mode: Mode,
    /// Each change and each command is asked about.
    is_architect: bool,
    allow: Vec<Rule>,
    ask: Vec<Rule>,
    gate: Vec<Rule>,
    deny: Vec<Rule>,
    /// Answers of this session.
    allowed: BTreeSet<Exact>,
    refused: BTreeSet<Exact>,
    /// Those that the person gave for the whole project.
    always: BTreeSet<Exact>,
    /// The folder that commands run in, as far as it was told.
    here: String,
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
    /// What an answer that lasts would be about.
    exact: Option<Exact>,
    /// Why a yes can only hold once.
    only_once: Option<String>,
}

impl Question {
    pub fn action(&self) -> &Action {
        &self.action
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
            Answer::Allow | Answer::AllowSession | Answer::AllowAlways => Some(Approved::action(self.action)),
            Answer::Deny | Answer::DenySession | Answer::Quit => None,
        }
    }
}

impl Policy {
    pub fn new(mode: Mode, options: &Options) -> Result<Self, RuleError> {
        let parse = |rules: &[String]| rules.iter().map(|rule| Rule::parse(rule)).collect::<Result<Vec<_>, _>>();
        let mut policy = Self {
            mode,
            is_architect: mode == Mode::Ask && options.autonomy == Some(Autonomy::Architect),
            allow: parse(&options.allow)?,
            ask: parse(&options.ask)?,
            gate: parse(&options.gate)?,
            deny: parse(&options.deny)?,
            allowed: BTreeSet::new(),
            refused: BTreeSet::new(),
            always: BTreeSet::new(),
            here: String::new(),
        };
        for example in &options.rules {
            let rule = tried(example)?;
            match example.decision {
                RuleDecision::Allow => policy.allow.push(rule),
                RuleDecision::Ask => policy.ask.push(rule),
                RuleDecision::Gate => policy.gate.push(rule),
                RuleDecision::Deny => policy.deny.push(rule),
            }
        }
        Ok(policy)
    }

    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Changes the mode; one that is named takes the place of an autonomy.
    pub fn set_mode(&mut self, mode: Mode) {
        self.mode = mode;
        self.is_architect = false;
    }

    /// Returns whether the person wants to decide everything.
    pub fn is_architect(&self) -> bool {
        self.is_architect
    }

    /// Remembers what an answer says of later calls; one that cannot last says nothing of them.
    pub fn remember(&mut self, question: &Question, answer: Answer) {
        match (answer, question.lasting()) {
            (Answer::AllowSession, Ok(exact)) => self.allowed.extend([exact.clone()]),
            (Answer::AllowAlways, Ok(exact)) => self.always.extend([exact.clone()]),
            (Answer::DenySession, _) => self.refused.extend(question.exact.clone()),
            _ => {}
        }
    }

    /// Remembers what was allowed for the project in earlier sessions.
    pub fn recall(&mut self, answers: impl IntoIterator<Item = Exact>) {
        self.always.extend(answers);
    }

    /// Returns what was allowed for the session, then what for the project.
    pub fn answers(&self) -> (Vec<Exact>, Vec<Exact>) {
        (self.allowed.iter().cloned().collect(), self.always.iter().cloned().collect())
    }

    /// Takes an answer back; returns whether it held.
    pub fn forget(&mut self, exact: &Exact) -> bool {
        let was_for_session = self.allowed.remove(exact);
        self.always.remove(exact) || was_for_session
    }

    /// Learns in which folder commands run from now on: what a person allowed in one is not allowed in another.
    pub fn move_to(&mut self, directory: &BytesPath) {
        // Where it is not certain, no command is the same as one before.
        self.here = plain(directory, false).unwrap_or_else(|| directory.to_text());
    }

    /// Judges one action. A denial wins over everything, a gate over what was allowed, a person's word over the mode.
    pub fn judge(&self, action: Action) -> Verdict {
        let reading = reading_of(&action);
        let reading = reading.as_ref();
        let capabilities = reading.map_or_else(|| capabilities(&action), |reading| reading.capabilities.clone());
        if let Some(rule) = self.deny.iter().find(|rule| rule.may_match(&action, reading)) {
            return Verdict::Deny { reason: format!("the rule `{}` denies it{}", rule.text(), doubt(reading)), capabilities };
        }
        let exact = Exact::of(&action, &self.here);
        if exact.as_ref().is_some_and(|exact| self.refused.contains(exact)) {
            return Verdict::Deny { reason: "the person said no to exactly this for the whole session".to_owned(), capabilities };
        }
        let (decision, because) = self.by_mode(&capabilities);
        // Reading a command asks less often; where nothing may change it is not what the promise rests on.
        if self.mode == Mode::Deny && (decision == Decision::Deny || reading.is_some()) {
            let because = if decision == Decision::Deny { because } else { Capability::RunInBox.describe() };
            return Verdict::Deny { reason: format!("mode deny only allows reading, not to {because}"), capabilities };
        }
        if let Some(rule) = self.gate.iter().find(|rule| rule.may_match(&action, reading)) {
            let mode = self.mode.as_str();
            let reason = format!("the rule `{}` wants a person's word, and mode {mode} asks nobody{}", rule.text(), doubt(reading));
            return if self.mode == Mode::Ask {
                let only_once = Some(format!("the rule `{}` wants a word each time", rule.text()));
                Verdict::Ask(Question { action, capabilities, exact, only_once })
            } else {
                Verdict::Deny { reason, capabilities }
            };
        }
        // What was answered was asked in mode ask, about exactly this.
        let asks_each_time = self.is_architect && is_work(&action);
        if self.mode == Mode::Ask
            && !asks_each_time
            && let Some(since) = exact.as_ref().and_then(|exact| self.answer_to(exact))
            && only_once(reading, &capabilities, exact.as_ref()).is_none()
        {
            return Verdict::Allow { action: Approved::action(action), reason: format!("the person allowed exactly this {since}") };
        }
        let asks = self.mode == Mode::Ask && (asks_each_time || self.ask.iter().any(|rule| rule.may_match(&action, reading)));
        if decision == Decision::Allow && !asks {
            return Verdict::Allow { action: Approved::action(action), reason: format!("mode {} allows it", self.mode.as_str()) };
        }
        if !asks && let Some(allowed) = self.allowed(&action, reading) {
            return Verdict::Allow { action: Approved::action(action), reason: format!("{allowed} allows it") };
        }
        if asks || decision == Decision::Ask {
            let only_once = if asks_each_time {
                Some("with the autonomy `architect` each change and each command is asked about".to_owned())
            } else {
                only_once(reading, &capabilities, exact.as_ref())
            };
            return Verdict::Ask(Question { action, capabilities, exact, only_once });
        }
        let remedy = capabilities.iter().find(|capability| self.decide(capability) == Decision::Deny).map_or("", remedy);
        Verdict::Deny { reason: format!("mode {} does not allow to {because}{remedy}", self.mode.as_str()), capabilities }
    }

    /// Judges a command that the person's own settings tie to a moment. They asked for it, so that no mode asks again; what a rule denies or
    /// gates and what is blocked stays so.
    pub fn judge_hook(&self, action: Action) -> Verdict {
        let reading = reading_of(&action);
        let reading = reading.as_ref();
        let capabilities = capabilities(&action);
        let rules = [(&self.deny, "denies it"), (&self.gate, "wants a person's word, and a hook asks nobody")];
        for (rules, does) in rules {
            if let Some(rule) = rules.iter().find(|rule| rule.may_match(&action, reading)) {
                return Verdict::Deny { reason: format!("the rule `{}` {does}{}", rule.text(), doubt(reading)), capabilities };
            }
        }
        if let Some(allowed) = self.allowed(&action, reading) {
            return Verdict::Allow { action: Approved::action(action), reason: format!("{allowed} allows it") };
        }
        if let Some(blocked) = capabilities.iter().find(|capability| matches!(capability, Capability::BlockedCommand { .. })) {
            return Verdict::Deny { reason: format!("no hook may {}", blocked.describe()), capabilities };
        }
        Verdict::Allow { action: Approved::action(action), reason: "the person's settings ask for it".to_owned() }
    }

    /// Returns how long a yes to exactly this holds, if there is one.
    fn answer_to(&self, exact: &Exact) -> Option<&'static str> {
        match (self.allowed.contains(exact), self.always.contains(exact)) {
            (_, true) => Some("for good in this project"),
            (true, false) => Some("for this session"),
            (false, false) => None,
        }
    }

    /// Judges what the person does themselves: nobody asks them about their own words. What a rule denies stays denied, and so does whatever is
    /// more than reading in a mode that they chose for that.
    pub fn judge_by_hand(&self, action: Action) -> Verdict {
        let reading = reading_of(&action);
        let reading = reading.as_ref();
        let capabilities = capabilities(&action);
        if let Some(rule) = self.deny.iter().find(|rule| rule.may_match(&action, reading)) {
            return Verdict::Deny { reason: format!("the rule `{}` denies it{}", rule.text(), doubt(reading)), capabilities };
        }
        if self.mode == Mode::Deny && !action.is_read_only() {
            return Verdict::Deny { reason: "mode deny only allows reading".to_owned(), capabilities };
        }
        Verdict::Allow { action: Approved::action(action), reason: "the person typed it".to_owned() }
    }

    /// Returns the rule that allows an action, or says that several do together.
    fn allowed(&self, action: &Action, reading: Option<&Reading>) -> Option<String> {
        let one = self.allow.iter().find(|rule| rule.matches(action, reading)).map(|rule| format!("the rule `{}`", rule.text()));
        let rules: Vec<&Rule> = self.allow.iter().filter(|rule| rule.is_of(action)).collect();
        let together = || reading.filter(|reading| everything_is_allowed(&rules, reading)).map(|_| "a rule for each command".to_owned());
        one.or_else(together)
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
            | (Capability::SpawnAgent | Capability::UpdateInstructions, Mode::Auto | Mode::Ask)
            | (Capability::WriteFiles | Capability::RunInBox | Capability::ChangeSessionGit, Mode::Auto) => Decision::Allow,
            (_, Mode::Ask) => Decision::Ask,
            (_, Mode::Auto | Mode::Deny) => Decision::Deny,
        }
    }
}

/// Returns whether an architect wants to decide about it: whatever changes something, and every command. Their instructions for agents they get
/// to see afterwards.
fn is_work(action: &Action) -> bool {
    !action.is_read_only() && !matches!(action, Action::Box(Call::UpdateConfig(_)))
}

/// Reads a rule and tries it on its examples.
fn tried(example: &Example) -> Result<Rule, RuleError> {
    let rule = Rule::parse(&example.rule)?;
    let allows = example.decision == RuleDecision::Allow;
    let bad = |problem: String| Err(RuleError { rule: example.rule.clone(), problem });
    if let Some(text) = example.speaks_of.iter().find(|text| !rule.speaks_of(text, allows)) {
        return bad(format!("it does not speak of its example `{text}`; change the rule, or take the example out of `speaks_of`"));
    }
    if let Some(text) = example.not_of.iter().find(|text| rule.speaks_of(text, allows)) {
        return bad(format!("it speaks of `{text}`, which is an example of what it should not; change the rule, or `not_of`"));
    }
    Ok(rule)
}

/// Says what could not be read, where a rule may have matched for that alone.
fn doubt(reading: Option<&Reading>) -> String {
    let doubt = reading.and_then(|reading| reading.script.doubts.first());
    doubt.map_or_else(String::new, |doubt| format!(" (not all of the command can be read: {doubt}; write it out, one command at a time)"))
}

/// What the model can do instead.
fn remedy(capability: &Capability) -> &'static str {
    match capability {
        Capability::BlockedCommand { .. } => "; do it another way, within the project",
        Capability::GatedGit { .. } => "; leave it to the person, and say in your answer what should be run",
        Capability::Network { .. } => "; work with what is in the project, and say what is missing",
        Capability::ProtectedName { .. } => "; leave that file alone, and say what should be in it",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::HostCall;
    use crate::wire::Bash;
    use crate::wire::CopyFile;
    use crate::wire::Hook;
    use crate::wire::ListDirectory;
    use crate::wire::MoveFile;
    use crate::wire::WriteFile;

    fn write(path: &str) -> Action {
        Action::Box(Call::WriteFile(WriteFile { path: path.into(), content: String::new(), append: false, protected: false }))
    }

    fn moved(source: &str, destination: &str) -> Action {
        let (source, destination) = (source.into(), destination.into());
        Action::Box(Call::MoveFile(MoveFile { source, destination, overwrite: false, protected: false }))
    }

    fn copied(source: &str, destination: &str) -> Action {
        let (source, destination) = (source.into(), destination.into());
        Action::Box(Call::CopyFile(CopyFile { source, destination, recursive: false, overwrite: false, protected: false }))
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
            (moved("a", "b"), [Decision::Ask, Decision::Allow, Decision::Deny]),
            (moved("server.key", "b"), [Decision::Ask, Decision::Deny, Decision::Deny]),
            (moved("a", ".git/hooks/x"), [Decision::Ask, Decision::Deny, Decision::Deny]),
            (copied(".env", "b"), [Decision::Ask, Decision::Deny, Decision::Deny]),
            (copied("server.key", "b"), [Decision::Ask, Decision::Allow, Decision::Deny]),
        ];
        for (action, [ask, auto, deny]) in rows {
            check(Mode::Ask, &none, action.clone(), ask);
            check(Mode::Auto, &none, action.clone(), auto);
            check(Mode::Deny, &none, action, deny);
        }
    }

    #[test]
    fn a_denial_wins_and_a_rule_opens_what_the_mode_would_ask() {
        let rules = Options { allow: vec!["write_file".into()], deny: vec!["write_file(secret/**)".into()], ..Options::default() };
        check(Mode::Ask, &rules, write("a.rs"), Decision::Allow);
        check(Mode::Ask, &rules, write("secret/a"), Decision::Deny);
        check(Mode::Deny, &rules, write("a.rs"), Decision::Deny);
        check(Mode::Auto, &rules, write(".env"), Decision::Allow);
    }

    fn shell(command: &str) -> Action {
        let Action::Box(Call::Bash(bash)) = bash() else { unreachable!("it is one") };
        Action::Box(Call::Bash(Bash { command: command.to_owned(), ..bash }))
    }

    #[test]
    fn a_gate_wants_a_word_each_time_and_denies_where_nobody_is_asked() {
        let rules = Options { allow: vec!["bash(cargo *)".into()], gate: vec!["bash(cargo install *)".into()], ..Options::default() };
        check(Mode::Ask, &rules, shell("cargo test"), Decision::Allow);
        check(Mode::Ask, &rules, shell("cargo install x"), Decision::Ask);
        check(Mode::Auto, &rules, shell("cargo install x"), Decision::Deny);
        check(Mode::Auto, &rules, shell("$X"), Decision::Deny);
        let mut policy = Policy::new(Mode::Ask, &rules).expect("good rules");
        let question = asked(&policy, shell("cargo install x"));
        assert_eq!(question.lasting(), Err("the rule `bash(cargo install *)` wants a word each time"));
        policy.remember(&question, Answer::AllowAlways);
        // Nor does an answer from before there was the rule.
        policy.recall(Exact::of(&shell("cargo install x"), ""));
        assert!(matches!(policy.judge(shell("cargo install x")), Verdict::Ask(_)));
    }

    #[test]
    fn a_hook_is_asked_for_by_the_settings_and_held_by_rules_of_its_own() {
        let hook = |command: &str| {
            let hook = Hook {
                command: command.to_owned(),
                input: String::new(),
                environment: Vec::new(),
                timeout_ms: 1000,
                grace_ms: 0,
                output_bytes: 0,
            };
            [Action::Box(Call::Hook(hook.clone())), Action::Host(HostCall::Hook(hook))]
        };
        let rules =
            Options { deny: vec!["bash".into(), "hook(curl *)".into()], gate: vec!["hook(git push *)".into()], ..Options::default() };
        for mode in [Mode::Auto, Mode::Ask, Mode::Deny] {
            let policy = Policy::new(mode, &rules).expect("good rules");
            let allows = |command: &str| hook(command).map(|action| matches!(policy.judge_hook(action), Verdict::Allow { .. }));
            assert_eq!(allows("cargo fmt --check"), [true, true]);
            for denied in ["curl x", "git push origin", "rm -rf /"] {
                assert_eq!(allows(denied), [false, false], "{denied}");
            }
        }
        let to_the_letter = Options { allow: vec!["hook(rm -rf /)".into()], ..Options::default() };
        let policy = Policy::new(Mode::Auto, &to_the_letter).expect("good rules");
        assert!(hook("rm -rf /").map(|action| matches!(policy.judge_hook(action), Verdict::Allow { .. })).into_iter().all(|allows| allows));
    }

    #[test]
    fn a_rule_that_asks_wins_over_one_that_allows_and_counts_in_mode_ask() {
        let rules = Options { allow: vec!["bash(git *)".into()], ask: vec!["bash(git log *)".into()], ..Options::default() };
        check(Mode::Ask, &rules, shell("git log"), Decision::Ask);
        check(Mode::Ask, &rules, shell("git diff"), Decision::Allow);
        check(Mode::Auto, &rules, shell("git log"), Decision::Allow);
        check(Mode::Deny, &rules, shell("git diff"), Decision::Deny);
    }

    #[test]
    fn a_blocked_command_is_asked_about_each_time() {
        let mut policy = Policy::new(Mode::Ask, &Options::default()).expect("no rules");
        for command in ["rm -rf /", "git push --force", "npm publish"] {
            let question = asked(&policy, shell(command));
            assert!(question.lasting().is_err_and(|because| because.ends_with("is asked about each time")), "{command}");
            policy.remember(&question, Answer::AllowSession);
            policy.recall(Exact::of(&shell(command), ""));
            assert!(matches!(policy.judge(shell(command)), Verdict::Ask(_)), "{command}");
        }
        let to_the_letter = Options { allow: vec!["bash(rm -rf /)".into()], ..Options::default() };
        check(Mode::Auto, &to_the_letter, shell("rm -rf /"), Decision::Allow);
        let Verdict::Deny { reason, .. } = Policy::new(Mode::Auto, &Options::default()).expect("no rules").judge(shell("rm -rf /")) else {
            panic!("must deny")
        };
        assert_eq!(
            reason,
            "mode auto does not allow to run a blocked command (it removes the root folder); do it another way, within the project"
        );
    }

    #[test]
    fn examples_of_a_rule_are_tried_when_it_is_read() {
        let example = |speaks_of: &str, not_of: &str| Example {
            decision: RuleDecision::Allow,
            rule: "bash(git commit *)".to_owned(),
            speaks_of: vec![speaks_of.to_owned()],
            not_of: vec![not_of.to_owned()],
        };
        let new = |example| Policy::new(Mode::Ask, &Options { rules: vec![example], ..Options::default() });
        let policy = new(example("git commit -m x", "git commit; rm x")).expect("good examples");
        assert!(matches!(policy.judge(shell("git commit -m y")), Verdict::Allow { .. }));
        for (bad, part) in [
            (example("git push", "x"), "does not speak of its example `git push`"),
            (example("git commit", "git commit -a"), "`git commit -a`"),
        ] {
            let error = new(bad).expect_err("a bad example").to_string();
            assert!(error.contains("the rule `bash(git commit *)` cannot be used") && error.contains(part), "{error}");
        }
    }

    #[track_caller]
    fn asked(policy: &Policy, action: Action) -> Question {
        match policy.judge(action) {
            Verdict::Ask(question) => question,
            verdict => panic!("it is not asked: {verdict:?}"),
        }
    }

    fn is_allowed(policy: &Policy, action: Action) -> bool {
        matches!(policy.judge(action), Verdict::Allow { .. })
    }

    #[test]
    fn an_answer_that_lasts_speaks_of_exactly_what_was_asked() {
        for answer in [Answer::AllowSession, Answer::AllowAlways] {
            let mut policy = Policy::new(Mode::Ask, &Options::default()).expect("no rules");
            for action in [shell("cargo test -p 'a*b'"), write("src/a*.rs"), moved("a", "b")] {
                let question = asked(&policy, action.clone());
                policy.remember(&question, answer);
                assert!(is_allowed(&policy, action));
                assert!(question.answered(answer).is_some());
            }
            let others = [
                shell("cargo test -p axb"),
                shell("cargo test -p 'a*b' -q"),
                shell("cargo test -p 'a*b'; touch x"),
                shell("cargo"),
                write("src/ab.rs"),
                write("src/a*.rs.bak"),
                write("x/../src/a*.rs"),
                moved("a", "c"),
                moved("b", "a"),
                copied("a", "b"),
            ];
            for other in others {
                assert!(matches!(policy.judge(other.clone()), Verdict::Ask(_)), "{other:?}");
            }
            policy.move_to(&"sub".into());
            assert!(!is_allowed(&policy, shell("cargo test -p 'a*b'")), "in another folder");
            assert!(is_allowed(&policy, write("src/a*.rs")), "files are named from the project's");
            policy.move_to(&"/workspace".into());
            assert!(is_allowed(&policy, shell("cargo test -p 'a*b'")));
        }
    }

    #[test]
    fn an_architect_is_asked_about_each_change_and_each_command_each_time() {
        let rules = Options { autonomy: Some(Autonomy::Architect), allow: vec!["bash".into(), "write_file".into()], ..Options::default() };
        let mut policy = Policy::new(Mode::Ask, &rules).expect("good rules");
        for action in [shell("ls"), shell("cargo test"), write("a"), moved("a", "b")] {
            let question = asked(&policy, action.clone());
            assert!(question.lasting().is_err_and(|because| because.contains("`architect`")));
            policy.remember(&question, Answer::AllowSession);
            policy.recall(Exact::of(&action, ""));
            asked(&policy, action);
        }
        assert!(is_allowed(&policy, list()) && policy.is_architect());
        let update = serde_json::json!({"section": "A", "content": "b"});
        let update = serde_json::from_value(update).map(|update| Action::Box(Call::UpdateConfig(update)));
        assert!(update.is_ok_and(|update| is_allowed(&policy, update)), "it is the one exception");
        check(Mode::Auto, &rules, write("a"), Decision::Allow);
        assert!(!Policy::new(Mode::Auto, &rules).expect("good rules").is_architect(), "a mode that is named wins");
    }

    #[test]
    fn what_cannot_be_read_for_certain_is_allowed_once_only() {
        let mut policy = Policy::new(Mode::Ask, &Options::default()).expect("no rules");
        for command in ["$X", "rm *.o", "make $(cat x)", "eval \"$x\"", "cargo test $1", "A=$B make", "make > $X", "sh x.sh; . y", "("] {
            let question = asked(&policy, shell(command));
            assert!(question.lasting().is_err(), "{command}");
            policy.remember(&question, Answer::AllowAlways);
            policy.recall(Exact::of(&shell(command), ""));
            assert!(matches!(policy.judge(shell(command)), Verdict::Ask(_)), "{command}");
            assert!(question.answered(Answer::AllowAlways).is_some(), "this once");
        }
        assert!(asked(&policy, write("x/../a")).lasting().is_err(), "nor a path with ..");
        let long = format!("make {}", "x".repeat(5000));
        assert!(asked(&policy, shell(&long)).lasting().is_err_and(|because| because.contains("too long")));
    }

    #[test]
    fn a_no_for_the_session_is_not_asked_again_and_wins_over_what_is_allowed() {
        let rules = Options { allow: vec!["bash(make *)".into()], ask: vec!["bash(make *)".into()], ..Options::default() };
        let mut policy = Policy::new(Mode::Ask, &rules).expect("good rules");
        for command in ["make install", "make $X"] {
            let question = asked(&policy, shell(command));
            policy.remember(&question, Answer::DenySession);
            assert!(question.answered(Answer::DenySession).is_none());
            assert!(matches!(policy.judge(shell(command)), Verdict::Deny { .. }));
        }
        assert!(matches!(policy.judge(shell("make all")), Verdict::Ask(_)));
    }

    #[test]
    fn a_yes_for_good_opens_no_other_mode_and_nothing_that_is_denied() {
        let answers = [Exact::of(&shell("cat .env"), ""), Exact::of(&write("a"), ""), Exact::of(&shell("make"), "")];
        let rules = Options { deny: vec!["write_file(a)".into()], ..Options::default() };
        for (mode, allowed) in [(Mode::Ask, [true, false, true]), (Mode::Auto, [false, false, true]), (Mode::Deny, [false; 3])] {
            let mut policy = Policy::new(mode, &rules).expect("good rules");
            policy.recall(answers.iter().flatten().cloned());
            assert_eq!([shell("cat .env"), write("a"), shell("make")].map(|action| is_allowed(&policy, action)), allowed, "{mode:?}");
        }
        let mut policy = Policy::new(Mode::Ask, &Options::default()).expect("no rules");
        policy.recall(answers.into_iter().flatten());
        let make = Exact::of(&shell("make"), "").expect("exact");
        assert!(policy.forget(&make) && !policy.forget(&make) && !is_allowed(&policy, shell("make")));
    }
}
