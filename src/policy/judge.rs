use std::collections::BTreeSet;

use serde::Deserialize;
use serde::Serialize;

use super::Action;
use super::Approved;
use super::Autonomy;
use super::ExactCall;
use super::HostCall;
use super::Options;
use super::Rule;
use super::RuleDecision;
use super::RuleEntry;
use super::RuleError;
use super::capabilities;
use super::exact_call::reason_for_once;
use super::exec_rules::exec_rules;
use super::narrower_search::narrower_search_note;
use super::parsed_command::ParsedCommand;
use super::paths::folder;
use super::program_table;
use super::question::Question;
use super::rule::all_allowed;
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

/// Why plan mode denies a call.
const PLANNING: &str = "plan mode is on, in which nothing changes the project: read, run commands that only read or write below /tmp, then \
                        call create_plan with your plan; with the user's approval plan mode ends";

/// How much is allowed without asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Everything within the sandbox is allowed: the sandbox contains it.
    Auto,
    /// Every change is asked about.
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

/// Everything a verdict depends on: the mode, the user's rules, and their lasting answers.
#[derive(Clone, Debug)]
pub struct Policy {
    pub(super) mode: Mode,
    /// Each change and each command is asked about.
    pub(super) is_architect: bool,
    allow: Vec<Rule>,
    pub(super) ask: Vec<Rule>,
    pub(super) gate: Vec<Rule>,
    deny: Vec<Rule>,
    /// Lasting answers of this session.
    pub(super) allowed: BTreeSet<ExactCall>,
    pub(super) refused: BTreeSet<ExactCall>,
    /// Lasting answers for the whole project.
    pub(super) always: BTreeSet<ExactCall>,
    /// The working directory of commands, as far as it is known.
    pub(super) here: String,
    /// The sandbox can match rules against each program that a command starts, and suspend a
    /// command at its first write.
    sees_programs: bool,
    /// What a command writes without a question.
    unasked_writes: Vec<String>,
    /// Plan mode: the sandbox cannot write to the project.
    is_planning: bool,
}

/// The decision about one action.
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
            is_planning: false,
        };
        for example in &options.rules {
            let rule = parse_entry(example)?;
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

    /// Rules beyond the limit could not be sent with a command.
    fn refuse_too_many(&self) -> Result<(), RuleError> {
        let own: Vec<ExecRule> = [&self.deny, &self.gate, &self.ask]
            .into_iter()
            .flatten()
            .flat_map(|rule| exec_rules(rule, ExecEffect::Deny, ""))
            .collect();
        let Some(last) = own.last() else {
            return Ok(());
        };
        let built_in = program_table::exec_rules(ExecEffect::Deny, &[]);
        if !are_too_many(&[own.as_slice(), &built_in].concat()) {
            return Ok(());
        }
        let problem = format!(
            "there are too many rules about commands: at most {MAX_RULES} and 32 KiB are sent with a command, including {} built-in ones",
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

    /// Returns the tools that the user's rules deny entirely, whatever the mode.
    pub fn denied_tools(&self) -> BTreeSet<&str> {
        self.deny.iter().flat_map(Rule::whole_tools).collect()
    }

    /// Returns whether the user's rules deny all calls of the tool of this name, whatever the mode.
    pub fn denies_tool(&self, tool: &str) -> bool {
        self.deny.iter().any(|rule| rule.is_whole_for(tool))
    }

    /// Changes the mode; an explicit mode replaces an autonomy.
    pub fn set_mode(&mut self, mode: Mode) {
        self.mode = mode;
        self.is_architect = false;
    }

    pub fn is_planning(&self) -> bool {
        self.is_planning
    }

    /// Begins or ends plan mode. The sandbox is to be one in which the project is read-only: that
    /// holds commands, whatever they are; this only keeps the tools for changes from trying.
    pub fn set_planning(&mut self, is_planning: bool) {
        self.is_planning = is_planning;
    }

    /// Returns whether plan mode leaves an action to the sandbox: it only reads, or is a command,
    /// which cannot write to the project. Calls of an agent are judged by the same plan mode.
    fn is_for_planning(action: &Action) -> bool {
        action.is_read_only()
            || matches!(
                action,
                Action::Box(Call::Bash(_) | Call::Processes(_)) | Action::Host(HostCall::Spawn(_))
            )
    }

    /// Returns whether the user wants to decide everything.
    pub fn is_architect(&self) -> bool {
        self.is_architect
    }

    /// Sets the working directory of commands: what the user allowed in one is not allowed in
    /// another.
    pub fn set_directory(&mut self, directory: &BytesPath) {
        // Where it is not certain, no command equals an earlier one.
        self.here = folder(directory).unwrap_or_else(|| directory.to_text());
    }

    /// Sets whether the sandbox matches rules against each program that a command starts. Initially
    /// it does not.
    pub fn set_exec_gate(&mut self, gate: ExecGate) {
        self.sees_programs = gate == ExecGate::Works;
    }

    /// Judges one action. A denial wins over everything, a gate over lasting answers, the user's
    /// answers and rules over the mode.
    /// A command that may run carries rules for the programs that it starts: which those are is
    /// known in the sandbox alone.
    pub fn judge(&self, action: Action) -> Verdict {
        let reading = ParsedCommand::of(&action);
        let reading = reading.as_ref();
        let programs = [self.programs(&action), self.built_in(&action, reading)].concat();
        match self.judge_call(action, reading) {
            Verdict::Allow { action, reason } => Verdict::Allow {
                action: action.with_program_rules(&programs),
                reason,
            },
            Verdict::Ask(question) => Verdict::Ask(Question {
                programs: programs.into(),
                ..question
            }),
            denied @ Verdict::Deny { .. } => denied,
        }
    }

    /// Returns the exec rules for an action's tool from the user's rules.
    fn programs(&self, action: &Action) -> Vec<ExecRule> {
        let asks_nobody = match (self.mode, action) {
            (_, Action::Box(Call::Hook(_))) => {
                "it needs the user's approval, which a hook cannot ask for"
            }
            (Mode::Ask, _) => "",
            (Mode::Auto, _) => "it needs the user's approval, and mode auto never asks",
            (Mode::Deny, _) => "it needs the user's approval, and mode deny never asks",
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

    /// Returns the exec rules of the program table for a command of the model; empty where the
    /// user's rules each name a program and together allow the whole command.
    fn built_in(&self, action: &Action, reading: Option<&ParsedCommand>) -> Vec<ExecRule> {
        let Some(reading) = reading.filter(|_| matches!(action, Action::Box(Call::Bash(_)))) else {
            return Vec::new();
        };
        let rules: Vec<&Rule> = self
            .allow
            .iter()
            .filter(|rule| rule.is_of(action) && rule.names_its_program())
            .collect();
        if rules.iter().any(|rule| rule.names(reading)) || all_allowed(&rules, reading) {
            return Vec::new();
        }
        let opened: Vec<Vec<&str>> = rules.iter().map(|rule| rule.literal_words()).collect();
        program_table::exec_rules(
            if self.mode == Mode::Ask {
                ExecEffect::Ask
            } else {
                ExecEffect::Deny
            },
            &opened,
        )
    }

    fn judge_call(&self, action: Action, reading: Option<&ParsedCommand>) -> Verdict {
        let capabilities = self.needs(&action, reading);
        if let Some(rule) = self
            .deny
            .iter()
            .find(|rule| rule.may_match(&action, reading, self.sees_programs))
        {
            return Verdict::Deny {
                reason: denied_by(rule, &action, reading),
                capabilities,
            };
        }
        if self.is_planning && !Self::is_for_planning(&action) {
            return Verdict::Deny {
                reason: PLANNING.to_owned(),
                capabilities,
            };
        }
        let exact = ExactCall::of(&action, &self.here);
        if exact
            .as_ref()
            .is_some_and(|exact| self.refused.contains(exact))
        {
            return Verdict::Deny {
                reason: "the user denied exactly this for the session".to_owned(),
                capabilities,
            };
        }
        let (decision, because) = self.decision_by_mode(&capabilities);
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
                let reason_for_once = Some(format!(
                    "the rule `{}` requires approval each time",
                    rule.text()
                ));
                return self.question(action, reading, exact, reason_for_once, Some(rule));
            }
            let mode = self.mode.as_str();
            let reason = format!(
                "the rule `{}` requires approval, and mode {mode} never asks{}",
                rule.text(),
                unparsed_note(rule, &action, reading)
            );
            return Verdict::Deny {
                reason,
                capabilities,
            };
        }
        // It was answered in mode ask, for exactly this call.
        let asks_each_time = self.is_architect && !action.is_read_only();
        if self.mode == Mode::Ask
            && !asks_each_time
            && let Some(since) = exact.as_ref().and_then(|exact| self.lasting_answer(exact))
            && reason_for_once(reading, &capabilities, exact.as_ref()).is_none()
        {
            let action = Approved::by_name(action).answered();
            return Verdict::Allow {
                action,
                reason: format!("the user allowed exactly this {since}"),
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
        if !asks
            && decision == Decision::Ask
            && let Some(begun) = self.allowed_beginning(&action, reading, &capabilities)
        {
            return Verdict::Allow {
                action: Approved::by_name(action),
                reason: format!("the user allowed `{begun} …` for this session"),
            };
        }
        if !asks && decision == Decision::Ask && self.allows_edit(&action, &capabilities) {
            return Verdict::Allow {
                action: self.approved(action),
                reason: "the user allowed all edits for this session".to_owned(),
            };
        }
        let is_apart = matches!(action, Action::Host(HostCall::RunApart(_)));
        if !asks && decision == Decision::Ask && is_apart && !self.is_architect {
            return Verdict::Allow {
                action: self.approved(action),
                reason: "it runs in a sandbox of its own, with nothing of the project".to_owned(),
            };
        }
        if !asks
            && decision == Decision::Ask
            && self.may_run_until_first_write(&action, &capabilities)
        {
            if self.is_planning {
                return Verdict::Allow {
                    action: self.approved(action),
                    reason: "in plan mode it cannot write to the project".to_owned(),
                };
            }
            let gate = WriteGate {
                unasked: self.unasked_writes.clone(),
            };
            let action = self.approved(action).gated_at_first_write(gate);
            return Verdict::Allow {
                action,
                reason: "it asks at its first write".to_owned(),
            };
        }
        if asks || decision == Decision::Ask {
            let reason_for_once = if asks_each_time {
                Some("autonomy `architect` asks about each change and each command".to_owned())
            } else {
                reason_for_once(reading, &capabilities, exact.as_ref())
            };
            return self.question(action, reading, exact, reason_for_once, rule);
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

    /// Turns an action into a question, or refuses one too long to be shown completely.
    fn question(
        &self,
        action: Action,
        reading: Option<&ParsedCommand>,
        exact: Option<ExactCall>,
        reason_for_once: Option<String>,
        rule: Option<&Rule>,
    ) -> Verdict {
        let capabilities = self.needs(&action, reading);
        if let Some(reason) = reading.and_then(ParsedCommand::too_long) {
            return Verdict::Deny {
                reason,
                capabilities,
            };
        }
        let covers_edits = rule.is_none() && self.may_allow_edits(&action, &capabilities);
        let rule = rule.map(|rule| rule.text().to_owned());
        Verdict::Ask(Question {
            action,
            covers_edits,
            capabilities,
            exact,
            reason_for_once,
            rule,
            programs: Box::default(),
        })
    }

    /// Returns the required capabilities that no rule of the user grants.
    fn needs(&self, action: &Action, reading: Option<&ParsedCommand>) -> Vec<Capability> {
        let Some(reading) = reading.filter(|_| matches!(action, Action::Box(Call::Bash(_)))) else {
            return capabilities(action);
        };
        let rules: Vec<&Rule> = self
            .allow
            .iter()
            .filter(|rule| rule.is_of(action))
            .collect();
        reading.capabilities_except(|command, decides| {
            rules.iter().any(|rule| rule.allows(command, Some(decides)))
        })
    }

    /// Returns whether a command may run until its first write: nothing in it needs the user's
    /// decision in advance, and the user can be asked later.
    fn may_run_until_first_write(&self, action: &Action, capabilities: &[Capability]) -> bool {
        let in_foreground = matches!(action, Action::Box(Call::Bash(bash)) if !bash.background);
        self.sees_programs && in_foreground && capabilities == [Capability::RunInSandbox]
    }

    /// Judges a command that the user's own settings attach to a moment. They requested it, so no
    /// mode asks again; denials, gates and blocked programs still apply.
    pub fn judge_hook(&self, action: Action) -> Verdict {
        let reading = ParsedCommand::of(&action);
        let reading = reading.as_ref();
        let capabilities = capabilities(&action);
        let programs = self.programs(&action);
        let rules = [
            (&self.deny, "denies it"),
            (&self.gate, "requires approval, which a hook cannot ask for"),
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
                        unparsed_note(rule, &action, reading)
                    ),
                    capabilities,
                };
            }
        }
        if let Some(allowed) = self.allowed(&action, reading) {
            return Verdict::Allow {
                action: Approved::by_name(action).with_program_rules(&programs),
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
        let programs = [programs, program_table::blocked_rules()].concat();
        Verdict::Allow {
            action: Approved::action(action).with_program_rules(&programs),
            reason: "the user's settings request it".to_owned(),
        }
    }

    /// Judges what the user does themselves: they are not asked about their own input. Denials
    /// still apply, and in mode deny everything but reading is denied.
    pub fn judge_by_hand(&self, action: Action) -> Verdict {
        let reading = ParsedCommand::of(&action);
        let reading = reading.as_ref();
        let capabilities = capabilities(&action);
        if let Some(rule) = self
            .deny
            .iter()
            .find(|rule| rule.may_match(&action, reading, self.sees_programs))
        {
            return Verdict::Deny {
                reason: denied_by(rule, &action, reading),
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
        // The user said what they want.
        Verdict::Allow {
            action: self
                .approved(action)
                .answered()
                .with_program_rules(&programs),
            reason: "the user typed it".to_owned(),
        }
    }

    /// Approves an action that no rule and no answer covers. If a rule about paths exists for that
    /// tool, a link could lead to one of them.
    pub(super) fn approved(&self, action: Action) -> Approved<Action> {
        let mut against = self.deny.iter().chain(&self.gate).chain(&self.ask);
        if against.any(|rule| rule.is_of(&action) && rule.has_path_pattern()) {
            Approved::by_name(action)
        } else {
            Approved::action(action)
        }
    }

    /// Returns the rule that allows an action, or that several do together.
    fn allowed(&self, action: &Action, reading: Option<&ParsedCommand>) -> Option<String> {
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
                .filter(|reading| all_allowed(&rules, reading))
                .map(|_| "a rule for each command".to_owned())
        };
        one.or_else(together)
    }

    fn decision_by_mode(&self, capabilities: &[Capability]) -> (Decision, String) {
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
                Capability::WriteFiles
                | Capability::RunInSandbox
                | Capability::ChangeSessionGit
                | Capability::SaveMemory,
                Mode::Auto,
            ) => Decision::Allow,
            // What it reaches is the user's to decide, as each host is, in mode auto too.
            (Capability::InstallDependencies { .. }, Mode::Auto) | (_, Mode::Ask) => Decision::Ask,
            (_, Mode::Auto | Mode::Deny) => Decision::Deny,
        }
    }
}

/// Parses a rule and checks it against its examples.
fn parse_entry(example: &RuleEntry) -> Result<Rule, RuleError> {
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
            "it does not match its example `{text}`; change the rule, or take the example out of `speaks_of`"
        ));
    }
    if let Some(text) = example
        .not_of
        .iter()
        .find(|text| rule.speaks_of(text, allows))
    {
        return bad(format!(
            "it matches `{text}`, which `not_of` excludes; change the rule, or `not_of`"
        ));
    }
    Ok(rule)
}

/// Says which rule denies it, and why a user wrote it.
fn denied_by(rule: &Rule, action: &Action, reading: Option<&ParsedCommand>) -> String {
    let why = match rule.justification() {
        "" => String::new(),
        why => format!(": {why}"),
    };
    let note = unparsed_note(rule, action, reading);
    format!("the rule `{}` denies it{why}{note}", rule.text())
}

/// Describes what could not be parsed, or is only named, if a rule may have matched only for that
/// reason.
fn unparsed_note(rule: &Rule, action: &Action, reading: Option<&ParsedCommand>) -> String {
    if let Some(narrower) = narrower_search_note(rule, action) {
        return narrower;
    }
    reading.map_or_else(String::new, ParsedCommand::unknown)
}

/// What the model can do instead.
fn remedy(capability: &Capability) -> &'static str {
    match capability {
        Capability::BlockedCommand { .. } => "; do without it",
        Capability::GatedGit { .. } => {
            "; leave it to the user, and say in your answer what should be run"
        }
        Capability::Network { .. } => "; work with what is in the project, and say what is missing",
        Capability::UseHostServer { .. } | Capability::UseServerWithKey { .. } => {
            "; the user allows a tool of it with `--allow TOOL` or in `policy.allow`"
        }
        Capability::ProtectedName { .. } => "; leave that file alone, and say what should be in it",
        _ => "",
    }
}
