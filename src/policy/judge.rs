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
use super::capabilities;
use super::exact::only_once;
use super::exec_rules::exec_rules;
use super::narrower::narrower;
use super::paths::folder;
use super::programs;
use super::question::Question;
use super::reading::Reading;
use super::rule::everything_is_allowed;
use podbay_event::Answer;
use podbay_event::Capability;
use podbay_event::Decision;
use podbay_wire::BytesPath;
use podbay_wire::Call;
use podbay_wire::ExecEffect;
use podbay_wire::ExecGate;
use podbay_wire::ExecRule;
use podbay_wire::MAX_RULES;
use podbay_wire::WriteGate;
use podbay_wire::are_too_many;

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

/// Everything a verdict depends on: the mode, the person's rules, and their answers that hold for
/// more than one call.
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
    /// The sandbox sees which programs a command starts, and holds the rules against each; and it
    /// can hold a command at its first write.
    sees_programs: bool,
    /// What a command writes without a question.
    unasked_writes: Vec<String>,
}

/// What policy says of one action.
#[derive(Debug)]
pub enum Verdict {
    Allow {
        action: Approved<Action>,
        reason: String,
    },
    Ask(Question),
    Deny {
        reason: String,
        capabilities: Vec<Capability>,
    },
}

impl Policy {
    pub fn new(mode: Mode, options: &Options) -> Result<Self, RuleError> {
        let parse = |rules: &[String]| {
            rules
                .iter()
                .map(|rule| Rule::parse(rule))
                .collect::<Result<Vec<_>, _>>()
        };
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
            sees_programs: false,
            unasked_writes: options.unasked_writes.clone(),
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
        let own: Vec<ExecRule> = [&self.deny, &self.gate, &self.ask]
            .into_iter()
            .flatten()
            .flat_map(|rule| exec_rules(rule, ExecEffect::Deny, ""))
            .collect();
        let Some(last) = own.last() else {
            return Ok(());
        };
        let built_in = programs::exec_rules(ExecEffect::Deny, &[]);
        if !are_too_many(&[own.as_slice(), &built_in].concat()) {
            return Ok(());
        }
        let problem = format!(
            "there are more rules about commands than go with one; {MAX_RULES} is the most, and 32 KiB of them, with {} that are built in",
            built_in.len()
        );
        Err(RuleError {
            rule: last.rule.clone(),
            problem,
        })
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
        (
            self.allowed.iter().cloned().collect(),
            self.always.iter().cloned().collect(),
        )
    }

    /// Takes an answer back; returns whether it held.
    pub fn forget(&mut self, exact: &Exact) -> bool {
        let was_for_session = self.allowed.remove(exact);
        self.always.remove(exact) || was_for_session
    }

    /// Learns in which folder commands run from now on: what a person allowed in one is not allowed
    /// in another.
    pub fn move_to(&mut self, directory: &BytesPath) {
        // Where it is not certain, no command is the same as one before.
        self.here = folder(directory).unwrap_or_else(|| directory.to_text());
    }

    /// Learns whether the sandbox holds rules against each program that a command starts. As long
    /// as nobody said, it does not.
    pub fn held_by(&mut self, gate: ExecGate) {
        self.sees_programs = gate == ExecGate::Works;
    }

    /// Judges one action. A denial wins over everything, a gate over what was allowed, a person's
    /// word over the mode.
    ///
    /// A command that may run takes along what the programs that it starts may be: which those are
    /// is seen in the sandbox alone.
    pub fn judge(&self, action: Action) -> Verdict {
        let reading = Reading::of(&action);
        let reading = reading.as_ref();
        let programs = [self.programs(&action), self.built_in(&action, reading)].concat();
        match self.judge_as_it_stands(action, reading) {
            Verdict::Allow { action, reason } => Verdict::Allow {
                action: action.under(&programs),
                reason,
            },
            Verdict::Ask(question) => Verdict::Ask(Question {
                programs: programs.into(),
                ..question
            }),
            denied @ Verdict::Deny { .. } => denied,
        }
    }

    /// Returns what the person's rules about an action's tool say of programs.
    fn programs(&self, action: &Action) -> Vec<ExecRule> {
        let asks_nobody = match (self.mode, action) {
            (_, Action::Box(Call::Hook(_))) => "it wants a person's word, and a hook asks nobody",
            (Mode::Ask, _) => "",
            (Mode::Auto, _) => "it wants a person's word, and mode auto asks nobody",
            (Mode::Deny, _) => "it wants a person's word, and mode deny asks nobody",
        };
        let gates = if asks_nobody.is_empty() {
            ExecEffect::Ask
        } else {
            ExecEffect::Deny
        };
        let asks: &[Rule] = if gates == ExecEffect::Ask {
            &self.ask
        } else {
            &[]
        };
        let of = |rules: &[Rule], effect: ExecEffect, because: &str| -> Vec<ExecRule> {
            rules
                .iter()
                .filter(|rule| rule.is_of(action))
                .flat_map(|rule| exec_rules(rule, effect, because))
                .collect()
        };
        [
            of(&self.deny, ExecEffect::Deny, ""),
            of(&self.gate, gates, asks_nobody),
            of(asks, ExecEffect::Ask, ""),
        ]
        .concat()
    }

    /// Returns what the table of programs says of those that a command of the model starts,
    /// whatever starts them; nothing where rules of the person's that name a program each allow all
    /// that it says.
    fn built_in(&self, action: &Action, reading: Option<&Reading>) -> Vec<ExecRule> {
        let Some(reading) = reading.filter(|_| matches!(action, Action::Box(Call::Bash(_)))) else {
            return Vec::new();
        };
        let rules: Vec<&Rule> = self
            .allow
            .iter()
            .filter(|rule| rule.is_of(action) && rule.names_its_program())
            .collect();
        if rules.iter().any(|rule| rule.names(reading)) || everything_is_allowed(&rules, reading) {
            return Vec::new();
        }
        let opened: Vec<Vec<&str>> = rules.iter().map(|rule| rule.literal_words()).collect();
        programs::exec_rules(
            if self.mode == Mode::Ask {
                ExecEffect::Ask
            } else {
                ExecEffect::Deny
            },
            &opened,
        )
    }

    fn judge_as_it_stands(&self, action: Action, reading: Option<&Reading>) -> Verdict {
        let capabilities = self.needs(&action, reading);
        if let Some(rule) = self
            .deny
            .iter()
            .find(|rule| rule.may_match(&action, reading, self.sees_programs))
        {
            return Verdict::Deny {
                reason: format!(
                    "the rule `{}` denies it{}",
                    rule.text(),
                    reason_of(rule, &action, reading)
                ),
                capabilities,
            };
        }
        let exact = Exact::of(&action, &self.here);
        if exact
            .as_ref()
            .is_some_and(|exact| self.refused.contains(exact))
        {
            return Verdict::Deny {
                reason: "the user said no to exactly this for the whole session".to_owned(),
                capabilities,
            };
        }
        let (decision, because) = self.by_mode(&capabilities);
        if self.mode == Mode::Deny && decision == Decision::Deny {
            return Verdict::Deny {
                reason: format!("mode deny only allows reading, not to {because}"),
                capabilities,
            };
        }
        if let Some(rule) = self
            .gate
            .iter()
            .find(|rule| rule.may_match(&action, reading, self.sees_programs))
        {
            if self.mode == Mode::Ask {
                let only_once = Some(format!("the rule `{}` wants a word each time", rule.text()));
                return self.question(action, reading, exact, only_once, Some(rule));
            }
            let mode = self.mode.as_str();
            let reason = format!(
                "the rule `{}` wants a person's word, and mode {mode} asks nobody{}",
                rule.text(),
                reason_of(rule, &action, reading)
            );
            return Verdict::Deny {
                reason,
                capabilities,
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
            return Verdict::Allow {
                action,
                reason: format!("the person allowed exactly this {since}"),
            };
        }
        let rule = self
            .ask
            .iter()
            .filter(|_| self.mode == Mode::Ask)
            .find(|rule| rule.may_match(&action, reading, self.sees_programs));
        let asks = self.mode == Mode::Ask && asks_each_time || rule.is_some();
        if decision == Decision::Allow && !asks {
            return Verdict::Allow {
                action: self.approved(action),
                reason: format!("mode {} allows it", self.mode.as_str()),
            };
        }
        if !asks && let Some(allowed) = self.allowed(&action, reading) {
            return Verdict::Allow {
                action: Approved::by_name(action),
                reason: format!("{allowed} allows it"),
            };
        }
        if !asks && decision == Decision::Ask && self.can_be_held(&action, &capabilities) {
            let gate = WriteGate {
                unasked: self.unasked_writes.clone(),
            };
            let action = self.approved(action).held_at_its_first_write(gate);
            return Verdict::Allow {
                action,
                reason: "it is held at its first write".to_owned(),
            };
        }
        if asks || decision == Decision::Ask {
            let only_once = if asks_each_time {
                Some(
                    "with the autonomy `architect` each change and each command is asked about"
                        .to_owned(),
                )
            } else {
                only_once(reading, &capabilities, exact.as_ref())
            };
            return self.question(action, reading, exact, only_once, rule);
        }
        let remedy = capabilities
            .iter()
            .find(|capability| self.decide(capability) == Decision::Deny)
            .map_or("", |capability| remedy(capability));
        Verdict::Deny {
            reason: format!(
                "mode {} does not allow to {because}{remedy}",
                self.mode.as_str()
            ),
            capabilities,
        }
    }

    /// Makes a question of an action, or refuses one that no question shows whole.
    fn question(
        &self,
        action: Action,
        reading: Option<&Reading>,
        exact: Option<Exact>,
        only_once: Option<String>,
        rule: Option<&Rule>,
    ) -> Verdict {
        let capabilities = self.needs(&action, reading);
        if let Some(reason) = reading.and_then(Reading::too_long) {
            return Verdict::Deny {
                reason,
                capabilities,
            };
        }
        let rule = rule.map(|rule| rule.text().to_owned());
        Verdict::Ask(Question {
            action,
            capabilities,
            exact,
            only_once,
            rule,
            programs: Box::default(),
        })
    }

    /// Returns what an action needs that no rule of the person's opens.
    fn needs(&self, action: &Action, reading: Option<&Reading>) -> Vec<Capability> {
        let Some(reading) = reading.filter(|_| matches!(action, Action::Box(Call::Bash(_)))) else {
            return capabilities(action);
        };
        let rules: Vec<&Rule> = self
            .allow
            .iter()
            .filter(|rule| rule.is_of(action))
            .collect();
        reading.capabilities_but(|command, decides| {
            rules.iter().any(|rule| rule.allows(command, Some(decides)))
        })
    }

    /// Returns whether a command can be let run until it writes: nothing that it says is for a
    /// person to decide, and a person can be asked later.
    fn can_be_held(&self, action: &Action, capabilities: &[Capability]) -> bool {
        let in_foreground = matches!(action, Action::Box(Call::Bash(bash)) if !bash.background);
        self.sees_programs && in_foreground && capabilities == [Capability::RunInSandbox]
    }

    /// Judges a command that the person's own settings tie to a moment. They asked for it, so that
    /// no mode asks again; what a rule denies or gates and what is blocked stays so.
    pub fn judge_hook(&self, action: Action) -> Verdict {
        let reading = Reading::of(&action);
        let reading = reading.as_ref();
        let capabilities = capabilities(&action);
        let programs = self.programs(&action);
        let rules = [
            (&self.deny, "denies it"),
            (&self.gate, "wants a person's word, and a hook asks nobody"),
        ];
        for (rules, does) in rules {
            if let Some(rule) = rules
                .iter()
                .find(|rule| rule.may_match(&action, reading, self.sees_programs))
            {
                return Verdict::Deny {
                    reason: format!(
                        "the rule `{}` {does}{}",
                        rule.text(),
                        reason_of(rule, &action, reading)
                    ),
                    capabilities,
                };
            }
        }
        if let Some(allowed) = self.allowed(&action, reading) {
            return Verdict::Allow {
                action: Approved::by_name(action).under(&programs),
                reason: format!("{allowed} allows it"),
            };
        }
        if let Some(blocked) = capabilities
            .iter()
            .find(|capability| matches!(capability, Capability::BlockedCommand { .. }))
        {
            return Verdict::Deny {
                reason: format!("no hook may {}", blocked.describe()),
                capabilities,
            };
        }
        let programs = [programs, programs::blocked_rules()].concat();
        Verdict::Allow {
            action: Approved::action(action).under(&programs),
            reason: "the person's settings ask for it".to_owned(),
        }
    }

    /// Returns how long a yes to exactly this holds, if there is one.
    fn answer_to(&self, exact: &Exact) -> Option<&'static str> {
        match (self.allowed.contains(exact), self.always.contains(exact)) {
            (_, true) => Some("for good in this project"),
            (true, false) => Some("for this session"),
            (false, false) => None,
        }
    }

    /// Judges what the person does themselves: nobody asks them about their own words. What a rule
    /// denies stays denied, and so does whatever is more than reading in a mode that they chose for
    /// that.
    pub fn judge_by_hand(&self, action: Action) -> Verdict {
        let reading = Reading::of(&action);
        let reading = reading.as_ref();
        let capabilities = capabilities(&action);
        if let Some(rule) = self
            .deny
            .iter()
            .find(|rule| rule.may_match(&action, reading, self.sees_programs))
        {
            return Verdict::Deny {
                reason: format!(
                    "the rule `{}` denies it{}",
                    rule.text(),
                    reason_of(rule, &action, reading)
                ),
                capabilities,
            };
        }
        if self.mode == Mode::Deny && !action.is_read_only() {
            return Verdict::Deny {
                reason: "mode deny only allows reading".to_owned(),
                capabilities,
            };
        }
        let programs = self.programs(&action);
        // They said what they want.
        Verdict::Allow {
            action: self.approved(action).answered().under(&programs),
            reason: "the person typed it".to_owned(),
        }
    }

    /// Approves what no rule and no person spoke of. Where a rule speaks of paths of that tool, a
    /// link could lead to one of them.
    fn approved(&self, action: Action) -> Approved<Action> {
        let mut against = self.deny.iter().chain(&self.gate).chain(&self.ask);
        if against.any(|rule| rule.is_of(&action) && rule.is_of_paths()) {
            Approved::by_name(action)
        } else {
            Approved::action(action)
        }
    }

    /// Returns the rule that allows an action, or says that several do together.
    fn allowed(&self, action: &Action, reading: Option<&Reading>) -> Option<String> {
        let one = self
            .allow
            .iter()
            .find(|rule| rule.matches(action, reading))
            .map(|rule| format!("the rule `{}`", rule.text()));
        let rules: Vec<&Rule> = self
            .allow
            .iter()
            .filter(|rule| rule.is_of(action))
            .collect();
        let together = || {
            reading
                .filter(|reading| everything_is_allowed(&rules, reading))
                .map(|_| "a rule for each command".to_owned())
        };
        one.or_else(together)
    }

    fn by_mode(&self, capabilities: &[Capability]) -> (Decision, String) {
        let strictest =
            capabilities
                .iter()
                .max_by_key(|capability| match self.decide(capability) {
                    Decision::Allow => 0,
                    Decision::Ask => 1,
                    Decision::Deny => 2,
                });
        strictest.map_or((Decision::Allow, String::new()), |capability| {
            (self.decide(capability), capability.describe())
        })
    }

    /// The table of modes and capabilities that scripts depend on.
    fn decide(&self, capability: &Capability) -> Decision {
        match (capability, self.mode) {
            (Capability::ReadFiles, _)
            | (Capability::SpawnAgent | Capability::UpdateInstructions, Mode::Auto | Mode::Ask)
            | (
                Capability::WriteFiles | Capability::RunInSandbox | Capability::ChangeSessionGit,
                Mode::Auto,
            ) => Decision::Allow,
            (_, Mode::Ask) => Decision::Ask,
            (_, Mode::Auto | Mode::Deny) => Decision::Deny,
        }
    }
}

/// Reads a rule and tries it on its examples.
fn tried(example: &Example) -> Result<Rule, RuleError> {
    let rule = Rule::parse(&example.rule)?.with(example.scope, &example.justification);
    let allows = example.decision == RuleDecision::Allow;
    let bad = |problem: String| {
        Err(RuleError {
            rule: example.rule.clone(),
            problem,
        })
    };
    if let Some(text) = example
        .speaks_of
        .iter()
        .find(|text| !rule.speaks_of(text, allows))
    {
        return bad(format!(
            "it does not speak of its example `{text}`; change the rule, or take the example out of `speaks_of`"
        ));
    }
    if let Some(text) = example
        .not_of
        .iter()
        .find(|text| rule.speaks_of(text, allows))
    {
        return bad(format!(
            "it speaks of `{text}`, which is an example of what it should not; change the rule, or `not_of`"
        ));
    }
    Ok(rule)
}

/// Says what could not be read, or is only named, where a rule may have matched for that alone.
fn reason_of(rule: &Rule, action: &Action, reading: Option<&Reading>) -> String {
    if let Some(narrower) = narrower(rule, action) {
        return narrower;
    }
    reading.map_or_else(String::new, Reading::unknown)
}

/// What the model can do instead.
fn remedy(capability: &Capability) -> &'static str {
    match capability {
        Capability::BlockedCommand { .. } => "; do without it",
        Capability::GatedGit { .. } => {
            "; leave it to the person, and say in your answer what should be run"
        }
        Capability::Network { .. } => "; work with what is in the project, and say what is missing",
        Capability::ProtectedName { .. } => "; leave that file alone, and say what should be in it",
        _ => "",
    }
}
