use std::borrow::Borrow;

use thiserror::Error;

use super::Action;
use super::RuleScope;
use super::capabilities;
use super::command_pattern::CommandPattern;
use super::exec_rules::forms;
use super::paths::paths;
use super::pattern::PathPattern;
use super::programs;
use super::reading::Reading;
use super::tool::BACKGROUND;
use super::tool::BRANCH;
use super::tool::HOOK;
use super::tool::branch;
use super::tool::tool;
use podbay_code::shell::Command;
use podbay_event::Capability;
use podbay_wire::BytesPath;
use podbay_wire::Call;

/// Tools whose calls name neither a path nor a command.
const PATHLESS: [&str; 9] = [
    "ask_user",
    "env",
    "get_process_output",
    "list_processes",
    "more_tools",
    "stop_process",
    "task_list",
    "think",
    "update_config",
];

/// A person's standing answer: `TOOL` or `TOOL(PATTERN)`.
///
/// For file tools the pattern is a glob over the path (`write_file(src/**)`), or a regular
/// expression over it between slashes (`write_file(/^src/.*[.]rs$/)`); for `git_branch` it is one
/// over the name of the branch. For `bash` it is a whole command to the letter, a pattern with `*`
/// over the words of each command that the text starts (`bash(git log *)`), or a regular expression
/// over them (`bash(/^cargo (test|check)/)`).
#[derive(Clone, Debug)]
pub struct Rule {
    text: String,
    tool: String,
    pattern: Option<Pattern>,
    scope: RuleScope,
    justification: String,
}

#[derive(Clone, Debug)]
enum Pattern {
    Path(PathPattern),
    Command(CommandPattern),
}

#[derive(Debug, Error)]
#[error("the rule `{rule}` cannot be used: {problem}")]
pub struct RuleError {
    pub rule: String,
    pub problem: String,
}

impl Rule {
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let bad = |problem: String| RuleError {
            rule: text.to_owned(),
            problem,
        };
        let text = text.trim();
        let (tool, pattern) = match text.split_once('(') {
            Some((tool, rest)) => {
                let pattern = rest
                    .strip_suffix(')')
                    .ok_or_else(|| bad("it ends without `)`".to_owned()))?;
                (tool.trim(), Some(pattern))
            }
            None => (text, None),
        };
        if tool.is_empty()
            || !tool
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        {
            return Err(bad(
                "it must start with a tool's name, such as `bash` or `write_file(src/**)`"
                    .to_owned(),
            ));
        }
        let pattern = match pattern {
            None => None,
            Some(pattern) if matches!(pattern.trim(), "" | "//") => {
                let problem = format!(
                    "the pattern between the parentheses is empty; write `{tool}` alone to speak of all of its calls"
                );
                return Err(bad(problem));
            }
            Some(pattern) if let Some(behind) = behind_the_end(pattern) => {
                return Err(bad(format!(
                    "behind its closing `)` stands `{behind})`; write one rule for each pattern"
                )));
            }
            Some(pattern) if is_shell(tool) => Some(Pattern::Command(
                CommandPattern::parse(pattern).map_err(bad)?,
            )),
            Some(_) if PATHLESS.contains(&tool) => {
                let problem = format!(
                    "`{tool}` names no path that a pattern could be about; write `{tool}` alone to speak of all of its calls"
                );
                return Err(bad(problem));
            }
            Some(pattern) => Some(Pattern::Path(
                PathPattern::parse(pattern.trim()).map_err(bad)?,
            )),
        };
        let (scope, justification) = (RuleScope::Own, String::new());
        Ok(Self {
            text: text.to_owned(),
            tool: tool.to_owned(),
            pattern,
            scope,
            justification,
        })
    }

    /// The same rule, which says by whom a program is started that it speaks of, and what the model
    /// is told.
    #[must_use]
    pub(super) fn with(self, scope: RuleScope, justification: &str) -> Self {
        Self {
            scope,
            justification: justification.to_owned(),
            ..self
        }
    }

    pub(super) fn scope(&self) -> RuleScope {
        self.scope
    }

    pub(super) fn justification(&self) -> &str {
        &self.justification
    }

    fn of_commands(&self) -> Option<&CommandPattern> {
        match &self.pattern {
            Some(Pattern::Command(pattern)) => Some(pattern),
            Some(Pattern::Path(_)) | None => None,
        }
    }

    /// Returns the pattern over the words of commands, where it is one.
    pub(super) fn words(&self) -> Option<&str> {
        self.of_commands().and_then(CommandPattern::words)
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether its tool is the one of this action. A command that stays in the background
    /// is one of `bash` too, whichever tool starts it.
    pub(super) fn is_of(&self, action: &Action) -> bool {
        let in_background = matches!(action, Action::Box(Call::Bash(bash)) if bash.background);
        self.tool == tool(action) || (in_background && self.tool == BACKGROUND)
    }

    /// Returns the tools all of whose calls it speaks of.
    pub(super) fn whole_tools(&self) -> impl Iterator<Item = &str> {
        let in_background = (self.tool == "bash").then_some(BACKGROUND);
        let is_whole = self.pattern.is_none();
        [self.tool.as_str()]
            .into_iter()
            .chain(in_background)
            .filter(move |_| is_whole)
    }

    /// Returns whether it speaks of some paths and not of others.
    pub(super) fn is_of_paths(&self) -> bool {
        matches!(self.pattern, Some(Pattern::Path(_)))
    }

    /// Returns whether it speaks of this action, for a rule that allows: in doubt it does not.
    pub(super) fn matches(&self, action: &Action, reading: Option<&Reading>) -> bool {
        if !self.is_of(action) {
            return false;
        }
        match (&self.pattern, reading) {
            (Some(Pattern::Path(pattern)), _) if self.tool == BRANCH => {
                branch(action).is_some_and(|name| pattern.is_of_branch(name, false))
            }
            (Some(Pattern::Path(pattern)), _) => {
                let paths = paths(action);
                // What is allowed must be allowed for each path.
                !paths.is_empty()
                    && paths.iter().all(|path| pattern.matches(path, false))
                    && protected(action).all(|name| pattern.names(&name))
            }
            (_, Some(reading)) => self.names(reading) || everything_is_allowed(&[self], reading),
            // A whole tool is not what somebody means by a file that is protected by its name.
            (pattern, None) => pattern.is_none() && protected(action).next().is_none(),
        }
    }

    /// Returns whether it may speak of this action, for a rule that denies or asks: a path with
    /// `..` is also taken for what it leads to by its letters, and one command of many is enough.
    /// Of a script that does not say all that it starts it may speak where the sandbox does not see
    /// which programs that are; `are_seen`: it does, and holds the rule against each.
    pub(super) fn may_match(
        &self,
        action: &Action,
        reading: Option<&Reading>,
        are_seen: bool,
    ) -> bool {
        if !self.is_of(action) {
            return false;
        }
        match (&self.pattern, reading) {
            (None, _) => true,
            (Some(Pattern::Path(pattern)), _) if self.tool == BRANCH => {
                branch(action).is_some_and(|name| pattern.is_of_branch(name, true))
            }
            // One path that is denied denies the call, and so does one that a folder takes along.
            (Some(Pattern::Path(pattern)), _) => {
                paths(action).iter().any(|path| pattern.matches(path, true))
                    || pattern.is_in(action)
            }
            (Some(Pattern::Command(pattern)), Some(reading)) => {
                // A hook on the host is in no sandbox.
                let is_held = are_seen && matches!(action, Action::Box(_));
                pattern.names(reading)
                    || pattern.is_started_by(reading)
                    || !is_held && self.is_of_programs() && pattern.may_be_started_by(reading)
            }
            (Some(Pattern::Command(_)), None) => false,
        }
    }

    /// Returns whether it can be held against the programs that run; any other speaks of scripts
    /// alone.
    fn is_of_programs(&self) -> bool {
        self.words().is_some_and(|words| !forms(words).is_empty())
    }

    /// Returns whether it says the whole script to the letter.
    pub(super) fn names(&self, reading: &Reading) -> bool {
        self.of_commands()
            .is_some_and(|pattern| pattern.names(reading))
    }

    /// Returns whether it says which program it is about: a whole tool, a regular expression and a
    /// `*` do not.
    pub(super) fn names_its_program(&self) -> bool {
        self.words()
            .and_then(|words| words.split_whitespace().next())
            .is_some_and(|first| !first.contains('*'))
    }

    /// Returns the words of commands that it says to the letter, by which it opens what is in the
    /// table of programs.
    pub(super) fn literal_words(&self) -> Vec<&str> {
        self.of_commands()
            .map_or_else(Vec::new, CommandPattern::literal_words)
    }

    /// Returns whether it allows one command, about which a person has this to decide.
    pub(super) fn allows(&self, command: &Command, decides: Option<&Capability>) -> bool {
        let opens = |capability: &Capability| {
            let is_blocked = matches!(capability, Capability::BlockedCommand { .. });
            !is_blocked && programs::decides(&self.literal_words()).as_ref() == Some(capability)
        };
        let fits = match &self.pattern {
            Some(Pattern::Command(pattern)) => pattern.allows(command),
            Some(Pattern::Path(_)) => false,
            None => is_shell(&self.tool),
        };
        fits && decides.is_none_or(opens)
    }

    /// Returns whether it speaks of an example, which stands for a path or a command.
    pub(super) fn speaks_of(&self, example: &str, allows: bool) -> bool {
        let reading = || Reading::new(example);
        match &self.pattern {
            Some(Pattern::Path(pattern)) => {
                pattern.matches(&BytesPath::from_text(example), !allows)
            }
            Some(Pattern::Command(pattern)) if !allows => {
                let reading = reading();
                pattern.names(&reading) || pattern.is_started_by(&reading)
            }
            None if !allows || !is_shell(&self.tool) => true,
            Some(Pattern::Command(_)) | None => {
                let reading = reading();
                self.names(&reading) || everything_is_allowed(&[self], &reading)
            }
        }
    }
}

/// Returns whether each command of a script is allowed by one of the rules, and the script starts
/// no others.
pub(super) fn everything_is_allowed<R: Borrow<Rule>>(rules: &[R], reading: &Reading) -> bool {
    let rules = rules.iter().map(Borrow::borrow);
    // A rule for the whole tool speaks of what cannot be read, too.
    let opens_all = |rule: &Rule| {
        rule.pattern.is_none()
            && reading
                .commands()
                .all(|(command, decides)| rule.allows(command, decides))
    };
    let is_known = reading.script.is_known() && !reading.script.commands.is_empty();
    rules.clone().any(opens_all)
        || is_known
            && reading
                .commands()
                .all(|(command, decides)| rules.clone().any(|rule| rule.allows(command, decides)))
}

/// Returns what stands behind the parenthesis that closes a pattern, where that is not the last
/// one. One in quotes closes nothing.
fn behind_the_end(pattern: &str) -> Option<&str> {
    if pattern.len() > 1 && pattern.starts_with('/') && pattern.ends_with('/') {
        return None;
    }
    let (mut n_open, mut quote) = (0_usize, None);
    for (at, c) in pattern.char_indices() {
        match (c, quote) {
            (_, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) => quote = Some(c),
            ('(', None) => n_open += 1,
            (')', None) if n_open == 0 => return Some(&pattern[at + 1..]),
            (')', None) => n_open -= 1,
            _ => {}
        }
    }
    None
}

/// Returns whether a tool's rules speak of commands, not of paths.
fn is_shell(tool: &str) -> bool {
    ["bash", BACKGROUND, HOOK].contains(&tool)
}

/// Returns the protected names among the paths of a call that is no command.
fn protected(action: &Action) -> impl Iterator<Item = String> {
    capabilities(action)
        .into_iter()
        .filter_map(|capability| match capability {
            Capability::ProtectedName { name } => Some(name),
            _ => None,
        })
}
