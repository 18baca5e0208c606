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
use super::exec_rules::exec_rules;
use super::paths::folder;
use super::question::Question;
use super::rule::everything_is_allowed;
use podbay_event::Answer;
use podbay_event::Capability;
use podbay_event::Decision;
use podbay_wire::BytesPath;
use podbay_wire::Call;
use podbay_wire::ExecEffect;
use podbay_wire::ExecGate;
use podbay_wire::ExecRule;
use podbay_wire::Glob;
use podbay_wire::Grep;
use podbay_wire::MAX_RULES;
use podbay_wire::Shell;
use podbay_wire::are_too_many;

/// The longest command that a person is asked about, as it is written in a call: the question shows all of it.
const ASKED_MAX: usize = 64 << 10;

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
    /// What carries them out.
    shell: Shell,
    /// The sandbox sees which programs a command starts, and holds the rules against each.
    sees_programs: bool,
}

/// What policy says of one action.
#[derive(Debug)]
pub enum Verdict {
    Allow { action: Approved<Action>, reason: String },
    Ask(Question),
    Deny { reason: String, capabilities: Vec<Capability> },
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
            shell: Shell::Plain,
            sees_programs: false,
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
        policy.refuse_too_many()?;
        Ok(policy)
    }

    /// What does not fit with a call would not hold.
    fn refuse_too_many(&self) -> Result<(), RuleError> {
        let all: Vec<ExecRule> =
            [&self.deny, &self.gate, &self.ask].into_iter().flatten().flat_map(|rule| exec_rules(rule, ExecEffect::Deny, "")).collect();
        match all.last() {
            Some(last) if are_too_many(&all) => {
                let problem = format!("there are more rules about commands than go with one; {MAX_RULES} is the most, and 32 KiB of them");
                Err(RuleError { rule: last.rule.clone(), problem })
            }
            _ => Ok(()),
        }
    }

    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns the tools all of whose calls the person's rules deny, whatever the mode.
    pub fn denied_tools(&self) -> BTreeSet<&str> {
        self.deny.iter().flat_map(Rule::whole_tools).collect()
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
        self.here = folder(directory).unwrap_or_else(|| directory.to_text());
    }

    /// Learns what carries out commands. As long as nobody said, it is a shell that does not know what bash has besides.
    pub fn read_by(&mut self, shell: Shell) {
        self.shell = shell;
    }

    /// Learns whether the sandbox holds rules against each program that a command starts. As long as nobody said, it does not.
    pub fn held_by(&mut self, gate: ExecGate) {
        self.sees_programs = gate == ExecGate::Works;
    }

    /// Judges one action. A denial wins over everything, a gate over what was allowed, a person's word over the mode.
    ///
    /// A command that may run takes along what the programs that it starts may be: which those are is seen in the sandbox alone.
    pub fn judge(&self, action: Action) -> Verdict {
        let programs = self.programs(&action);
        match self.judge_as_it_stands(action) {
            Verdict::Allow { action, reason } => Verdict::Allow { action: action.under(&programs), reason },
            Verdict::Ask(question) => Verdict::Ask(Question { programs: programs.into(), ..question }),
            denied @ Verdict::Deny { .. } => denied,
        }
    }

    /// Returns what the rules about an action's tool say of programs.
    fn programs(&self, action: &Action) -> Vec<ExecRule> {
        let asks_nobody = match (self.mode, action) {
            (_, Action::Box(Call::Hook(_))) => "it wants a person's word, and a hook asks nobody",
            (Mode::Ask, _) => "",
            (Mode::Auto, _) => "it wants a person's word, and mode auto asks nobody",
            (Mode::Deny, _) => "it wants a person's word, and mode deny asks nobody",
        };
        let gates = if asks_nobody.is_empty() { ExecEffect::Ask } else { ExecEffect::Deny };
        let asks: &[Rule] = if gates == ExecEffect::Ask { &self.ask } else { &[] };
        let of = |rules: &[Rule], effect: ExecEffect, because: &str| -> Vec<ExecRule> {
            rules.iter().filter(|rule| rule.is_of(action)).flat_map(|rule| exec_rules(rule, effect, because)).collect()
        };
        [of(&self.deny, ExecEffect::Deny, ""), of(&self.gate, gates, asks_nobody), of(asks, ExecEffect::Ask, "")].concat()
    }

    fn judge_as_it_stands(&self, action: Action) -> Verdict {
        let reading = reading_of(&action, &self.here, self.shell);
        let reading = reading.as_ref();
        let capabilities = reading.map_or_else(|| capabilities(&action), |reading| reading.capabilities.clone());
        if let Some(rule) = self.deny.iter().find(|rule| rule.may_match(&action, reading, self.sees_programs)) {
            return Verdict::Deny {
                reason: format!("the rule `{}` denies it{}", rule.text(), reason_of(rule, &action, reading)),
                capabilities,
            };
        }
        let exact = Exact::of(&action, &self.here);
        let remedy_of_shell = reading.and_then(in_no_bash);
        if exact.as_ref().is_some_and(|exact| self.refused.contains(exact)) {
            return Verdict::Deny { reason: "the person said no to exactly this for the whole session".to_owned(), capabilities };
        }
        let (decision, because) = self.by_mode(&capabilities);
        // Reading a command asks less often; where nothing may change it is not what the promise rests on.
        if self.mode == Mode::Deny && (decision == Decision::Deny || reading.is_some()) {
            let because = if decision == Decision::Deny { because } else { Capability::RunInBox.describe() };
            return Verdict::Deny { reason: format!("mode deny only allows reading, not to {because}"), capabilities };
        }
        if let Some(rule) = self.gate.iter().find(|rule| rule.may_match(&action, reading, self.sees_programs)) {
            let mode = self.mode.as_str();
            let reason = format!(
                "the rule `{}` wants a person's word, and mode {mode} asks nobody{}",
                rule.text(),
                reason_of(rule, &action, reading)
            );
            return if self.mode == Mode::Ask {
                if let Some(reason) = reading.and_then(too_long) {
                    return Verdict::Deny { reason, capabilities };
                }
                let only_once = Some(format!("the rule `{}` wants a word each time", rule.text()));
                let rule = Some(rule.text().to_owned());
                Verdict::Ask(Question { action, capabilities, exact, only_once, rule, remedy: remedy_of_shell, programs: Box::default() })
            } else {
                Verdict::Deny { reason, capabilities }
            };
        }
        // What was answered was asked in mode ask, about exactly this.
        let asks_each_time = self.is_architect && !action.is_read_only();
        if self.mode == Mode::Ask
            && !asks_each_time
            && let Some(since) = exact.as_ref().and_then(|exact| self.answer_to(exact))
            && only_once(reading, &capabilities, exact.as_ref()).is_none()
        {
            let action = Approved::by_name(action).answered();
            return Verdict::Allow { action, reason: format!("the person allowed exactly this {since}") };
        }
        let rule = self.ask.iter().filter(|_| self.mode == Mode::Ask).find(|rule| rule.may_match(&action, reading, self.sees_programs));
        let asks = self.mode == Mode::Ask && asks_each_time || rule.is_some();
        if self.mode == Mode::Auto
            && self.allowed(&action, reading).is_none()
            && let Some(remedy) = remedy_of_shell
        {
            return Verdict::Deny { reason: format!("it cannot be told what it does: {remedy}"), capabilities };
        }
        if decision == Decision::Allow && !asks {
            return Verdict::Allow { action: self.approved(action), reason: format!("mode {} allows it", self.mode.as_str()) };
        }
        if !asks && let Some(allowed) = self.allowed(&action, reading) {
            return Verdict::Allow { action: Approved::by_name(action), reason: format!("{allowed} allows it") };
        }
        if asks || decision == Decision::Ask {
            if let Some(reason) = reading.and_then(too_long) {
                return Verdict::Deny { reason, capabilities };
            }
            let only_once = if asks_each_time {
                Some("with the autonomy `architect` each change and each command is asked about".to_owned())
            } else {
                only_once(reading, &capabilities, exact.as_ref())
            };
            let rule = rule.map(|rule| rule.text().to_owned());
            return Verdict::Ask(Question {
                action,
                capabilities,
                exact,
                only_once,
                rule,
                remedy: remedy_of_shell,
                programs: Box::default(),
            });
        }
        let remedy =
            capabilities.iter().find(|capability| self.decide(capability) == Decision::Deny).map_or("", |capability| remedy(capability));
        Verdict::Deny { reason: format!("mode {} does not allow to {because}{remedy}", self.mode.as_str()), capabilities }
    }

    /// Judges a command that the person's own settings tie to a moment. They asked for it, so that no mode asks again; what a rule denies or
    /// gates and what is blocked stays so.
    pub fn judge_hook(&self, action: Action) -> Verdict {
        let reading = reading_of(&action, &self.here, self.shell);
        let reading = reading.as_ref();
        let capabilities = capabilities(&action);
        let programs = self.programs(&action);
        let rules = [(&self.deny, "denies it"), (&self.gate, "wants a person's word, and a hook asks nobody")];
        for (rules, does) in rules {
            if let Some(rule) = rules.iter().find(|rule| rule.may_match(&action, reading, self.sees_programs)) {
                return Verdict::Deny {
                    reason: format!("the rule `{}` {does}{}", rule.text(), reason_of(rule, &action, reading)),
                    capabilities,
                };
            }
        }
        if let Some(allowed) = self.allowed(&action, reading) {
            return Verdict::Allow { action: Approved::by_name(action).under(&programs), reason: format!("{allowed} allows it") };
        }
        if let Some(blocked) = capabilities.iter().find(|capability| matches!(capability, Capability::BlockedCommand { .. })) {
            return Verdict::Deny { reason: format!("no hook may {}", blocked.describe()), capabilities };
        }
        Verdict::Allow { action: Approved::action(action).under(&programs), reason: "the person's settings ask for it".to_owned() }
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
        let reading = reading_of(&action, &self.here, self.shell);
        let reading = reading.as_ref();
        let capabilities = capabilities(&action);
        if let Some(rule) = self.deny.iter().find(|rule| rule.may_match(&action, reading, self.sees_programs)) {
            return Verdict::Deny {
                reason: format!("the rule `{}` denies it{}", rule.text(), reason_of(rule, &action, reading)),
                capabilities,
            };
        }
        if self.mode == Mode::Deny && !action.is_read_only() {
            return Verdict::Deny { reason: "mode deny only allows reading".to_owned(), capabilities };
        }
        let programs = self.programs(&action);
        // They said what they want.
        Verdict::Allow { action: self.approved(action).answered().under(&programs), reason: "the person typed it".to_owned() }
    }

    /// Approves what no rule and no person spoke of. Where a rule speaks of paths of that tool, a link could lead to one of them.
    fn approved(&self, action: Action) -> Approved<Action> {
        let mut against = self.deny.iter().chain(&self.gate).chain(&self.ask);
        if against.any(|rule| rule.is_of(&action) && rule.is_of_paths()) { Approved::by_name(action) } else { Approved::action(action) }
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

/// Reads a rule and tries it on its examples.
fn tried(example: &Example) -> Result<Rule, RuleError> {
    let rule = Rule::parse(&example.rule)?.with(example.scope, &example.justification);
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

/// Says what could not be read, or is only named, where a rule may have matched for that alone.
fn reason_of(rule: &Rule, action: &Action, reading: Option<&Reading>) -> String {
    if let Some(narrower) = narrower(rule, action) {
        return narrower;
    }
    let doubt = reading.and_then(|reading| reading.script.doubts.first());
    doubt.map_or_else(String::new, |doubt| format!(" (not all of the command can be read: {doubt}; write it out, one command at a time)"))
}

/// Returns how a search names the one folder that its pattern is about, where a rule speaks of others: it is judged by the folder it begins in.
fn narrower(rule: &Rule, action: &Action) -> Option<String> {
    let (above, pattern, called) = match action {
        Action::Box(Call::Glob(glob)) => (&glob.path, &glob.pattern, "pattern"),
        Action::Box(Call::Grep(grep)) => (&grep.path, grep.glob.as_ref()?, "glob"),
        _ => return None,
    };
    let wild = pattern.find(['*', '?', '[', '{', '\\']).unwrap_or(pattern.len());
    let (folder, rest) = pattern.split_at(pattern[..wild].rfind('/')?);
    let mut folder = folder;
    // A slash at its beginning stands for the folder that is searched.
    while let Some(rest) = folder.strip_prefix("./").or_else(|| folder.strip_prefix('/')) {
        folder = rest;
    }
    if folder.split('/').any(|part| part == "..") {
        return None;
    }
    let above = above.to_text();
    let path = if above == "." { folder.to_owned() } else { format!("{}/{folder}", above.trim_end_matches('/')) };
    // With its slash it stays in that folder, as it was meant.
    let narrow = match action {
        Action::Box(Call::Grep(grep)) => Call::Grep(Grep { path: BytesPath::from_text(&path), ..grep.clone() }),
        Action::Box(Call::Glob(glob)) => Call::Glob(Glob { path: BytesPath::from_text(&path), pattern: rest.to_owned(), ..glob.clone() }),
        _ => return None,
    };
    let call = serde_json::json!({ "path": path, called: rest });
    (!folder.is_empty() && !rule.may_match(&Action::Box(narrow), None, false))
        .then(|| format!(" (it begins in `{above}`, which may hold what the rule is about; name the folder in `path`: {call})"))
}

/// Says why nobody is asked about a command: what a question would have to leave out, a person would allow unseen.
fn too_long(reading: &Reading) -> Option<String> {
    let n_bytes = serde_json::Value::from(reading.text.as_str()).to_string().len();
    (n_bytes > ASKED_MAX).then(|| {
        format!(
            "a person would have to be asked, and a command of {n_bytes} bytes is more than a question shows (64 KiB); write what is long into a file \
             with write_file, and run a short command"
        )
    })
}

/// Says why a shell other than bash may make something else of a command.
fn in_no_bash(reading: &Reading) -> Option<String> {
    let what = reading.only_in_bash?;
    Some(format!("the sandbox has no bash, and its sh may read `{what}` otherwise; write it in the way of a plain sh"))
}

/// What the model can do instead.
fn remedy(capability: &Capability) -> &'static str {
    match capability {
        Capability::BlockedCommand { .. } => "; do without it",
        Capability::GatedGit { .. } => "; leave it to the person, and say in your answer what should be run",
        Capability::Network { .. } => "; work with what is in the project, and say what is missing",
        Capability::ProtectedName { .. } => "; leave that file alone, and say what should be in it",
        _ => "",
    }
}
