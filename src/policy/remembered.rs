//! Answers that last: what the user allowed or refused for the session, and what for the project.

use super::Action;
use super::ExactCall;
use super::Mode;
use super::Policy;
use super::Question;
use super::exact_call::reason_for_once;
use super::parsed_command::ParsedCommand;
use podbay_event::Answer;
use podbay_event::Capability;
use podbay_event::LastingCommand;
use podbay_wire::AskedProgram;
use podbay_wire::Call;

/// Words of a command that an answer for the session names at most, and at least.
const MOST_WORDS: usize = 3;
const LEAST_WORDS: usize = 2;

/// What a lasting answer covers that the user gives while a command waits in its middle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastingScope {
    /// Until the session ends.
    session: ExactCall,
    /// In the project.
    project: Option<ExactCall>,
}

impl LastingScope {
    /// Returns it in words; `always`: answers can be stored for the project.
    pub fn words(&self, always: bool) -> LastingCommand {
        LastingCommand {
            session: self.session.words(),
            project: self
                .project
                .as_ref()
                .filter(|_| always)
                .map(ExactCall::words),
        }
    }

    /// Returns what is stored for the project.
    pub fn project(&self) -> Option<&ExactCall> {
        self.project.as_ref()
    }
}

impl Policy {
    /// Records an answer for later calls; a one-time answer is ignored.
    pub fn remember(&mut self, question: &Question, answer: Answer) {
        match (answer, question.lasting()) {
            (Answer::AllowSession, Ok(exact)) => self.allowed.extend([exact.clone()]),
            (Answer::AllowAlways, Ok(exact)) => self.always.extend([exact.clone()]),
            (Answer::AllowEdits, _) if question.covers_edits => {
                self.allowed.insert(ExactCall::all_edits());
            }
            (Answer::DenySession, _) => self.refused.extend(question.exact.clone()),
            _ => {}
        }
    }

    /// Restores the answers for the project from earlier sessions.
    pub fn restore_answers(&mut self, answers: impl IntoIterator<Item = ExactCall>) {
        self.always.extend(answers);
    }

    /// Returns what was allowed for the session, then what for the project.
    pub fn answers(&self) -> (Vec<ExactCall>, Vec<ExactCall>) {
        (
            self.allowed.iter().cloned().collect(),
            self.always.iter().cloned().collect(),
        )
    }

    /// Revokes an answer; returns whether it existed.
    pub fn forget(&mut self, exact: &ExactCall) -> bool {
        let was_for_session = self.allowed.remove(exact);
        self.always.remove(exact) || was_for_session
    }

    /// Returns what a lasting answer would cover while this command waits for its first write;
    /// `None`: it can be allowed once only. For a session that is the beginning of the command where
    /// its words are plain.
    pub fn lasting_scope_of(&self, action: &Action) -> Option<LastingScope> {
        let Action::Box(Call::Bash(_)) = action else {
            return None;
        };
        let reading = ParsedCommand::of(action)?;
        let exact = ExactCall::of(action, &self.here)?;
        let capabilities = reading.capabilities();
        let is_once = reason_for_once(Some(&reading), &capabilities, Some(&exact)).is_some();
        if is_once || self.mode != Mode::Ask || self.is_architect {
            return None;
        }
        let session = beginning(&reading)
            .map_or_else(|| exact.clone(), |begun| exact.clone().beginning(&begun));
        Some(LastingScope {
            session,
            project: Some(exact),
        })
    }

    /// Returns what a lasting answer would cover about a program that a rule of the user's asks
    /// about: one with exactly these arguments, in this folder. What a gate or Podbay's own table asks
    /// about can be allowed once only.
    pub fn lasting_scope_of_program(&self, program: &AskedProgram) -> Option<LastingScope> {
        let is_named = |rule: &super::Rule| rule.text() == program.rule;
        if program.truncated
            || program.write.is_some()
            || self.is_architect
            || self.gate.iter().any(is_named)
            || !self.ask.iter().any(is_named)
        {
            return None;
        }
        Some(LastingScope {
            session: ExactCall::of_program(program),
            project: None,
        })
    }

    /// Returns whether the user allowed exactly this program for the session.
    pub fn allows_program(&self, program: &AskedProgram) -> bool {
        self.lasting_scope_of_program(program)
            .is_some_and(|scope| self.allowed.contains(&scope.session))
    }

    /// Records an answer about a command that waits in its middle.
    pub fn remember_scope(&mut self, scope: &LastingScope, answer: Answer) {
        match (answer, &scope.project) {
            (Answer::AllowSession, _) => self.allowed.extend([scope.session.clone()]),
            (Answer::AllowAlways, Some(exact)) => self.always.extend([exact.clone()]),
            _ => {}
        }
    }

    /// Returns the beginning of a command that the user allowed for the session, whatever comes
    /// behind it.
    pub(super) fn allowed_beginning(
        &self,
        action: &Action,
        reading: Option<&ParsedCommand>,
        capabilities: &[Capability],
    ) -> Option<String> {
        let Action::Box(Call::Bash(_)) = action else {
            return None;
        };
        let reading = reading?;
        let exact = ExactCall::of(action, &self.here)?;
        if reason_for_once(Some(reading), capabilities, Some(&exact)).is_some() {
            return None;
        }
        let words = plain_words(reading)?;
        (LEAST_WORDS..=words.len())
            .map(|n| words[..n].join(" "))
            .find(|begun| self.allowed.contains(&exact.clone().beginning(begun)))
    }

    /// Returns whether the user allowed all edits, and this is one of those.
    pub(super) fn allows_edit(&self, action: &Action, capabilities: &[Capability]) -> bool {
        self.allowed.contains(&ExactCall::all_edits()) && self.may_allow_edits(action, capabilities)
    }

    /// Returns whether an answer that allows all edits would cover this call: it is made by a tool
    /// for edits, and needs nothing else, such as a protected name.
    pub(super) fn may_allow_edits(&self, action: &Action, capabilities: &[Capability]) -> bool {
        self.mode == Mode::Ask
            && !self.is_architect
            && capabilities == [Capability::WriteFiles]
            && matches!(action, Action::Box(call) if call.can_be_checked())
    }

    /// Returns how long an approval of exactly this call lasts, if there is one.
    pub(super) fn lasting_answer(&self, exact: &ExactCall) -> Option<&'static str> {
        match (self.allowed.contains(exact), self.always.contains(exact)) {
            (_, true) => Some("permanently for this project"),
            (true, false) => Some("for this session"),
            (false, false) => None,
        }
    }
}

/// Returns the beginning of a script that is one command, by which later ones are recognized.
fn beginning(reading: &ParsedCommand) -> Option<String> {
    plain_words(reading).map(|words| words.join(" "))
}

/// Returns the first words of a script that is one command, where enough of them are plain: a
/// program's name, and words that are neither options nor paths.
fn plain_words(reading: &ParsedCommand) -> Option<Vec<&str>> {
    let [command] = reading.script.commands.as_slice() else {
        return None;
    };
    if !reading.script.is_known() || command.writes || command.sets_variables {
        return None;
    }
    let is_plain = |word: &&str| {
        word.starts_with(|c: char| c.is_ascii_alphanumeric())
            && word
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':'))
    };
    let words: Vec<&str> = command
        .known()
        .into_iter()
        .take(MOST_WORDS)
        .take_while(is_plain)
        .collect();
    (words.len() >= LEAST_WORDS).then_some(words)
}
