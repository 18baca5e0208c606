use std::borrow::Borrow;

use thiserror::Error;

use super::Action;
use super::RuleScope;
use super::capabilities;
use super::command_pattern::CommandPattern;
use super::exec_rules::forms;
use super::host_call::FOREIGN;
use super::parsed_command::ParsedCommand;
use super::path_pattern::PathPattern;
use super::paths::paths;
use super::program_table;
use super::tool::BACKGROUND;
use super::tool::BRANCH;
use super::tool::branch;
use super::tool::subject;
use super::tool::tool;
use podbay_code::shell::Command;
use podbay_event::Capability;
use podbay_wire::BytesPath;
use podbay_wire::Call;
use podbay_wire::RuleSubject;

/// A standing answer of the user: `TOOL` or `TOOL(PATTERN)`.
/// For file tools the pattern is a glob over the path (`write_file(src/**)`), or a regular
/// expression over it between slashes (`write_file(/^src/.*[.]rs$/)`); for `git_branch` it is one
/// over the name of the branch. For `bash` it is an exact command, a pattern with `*` over the
/// words of each command that the script starts (`bash(git log *)`), or a regular expression over
/// them (`bash(/^cargo (test|check)/)`).
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
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if tool.is_empty() || !(tool.bytes().all(is_name) || is_foreign(tool)) {
            return Err(bad(
                "it must start with a tool's name, such as `bash` or `write_file(src/**)`"
                    .to_owned(),
            ));
        }
        let pattern = match pattern {
            None => None,
            Some(pattern) if matches!(pattern.trim(), "" | "//") => {
                let problem = format!(
                    "the pattern between the parentheses is empty; write `{tool}` alone to match all of its calls"
                );
                return Err(bad(problem));
            }
            Some(pattern) if let Some(behind) = after_closing_parenthesis(pattern) => {
                return Err(bad(format!(
                    "after its closing `)` comes `{behind})`; write one rule for each pattern"
                )));
            }
            Some(pattern) if is_shell(tool) => Some(Pattern::Command(
                CommandPattern::parse(pattern).map_err(bad)?,
            )),
            Some(_) if subject(tool) == RuleSubject::Nothing => {
                let problem = format!(
                    "`{tool}` takes no path that a pattern could match; write `{tool}` alone to match all of its calls"
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

    /// Sets who starts the programs that it matches, and the reason given to the model.
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

    fn command_pattern_of(&self) -> Option<&CommandPattern> {
        match &self.pattern {
            Some(Pattern::Command(pattern)) => Some(pattern),
            Some(Pattern::Path(_)) | None => None,
        }
    }

    /// Returns the pattern over the words of commands, if it is one.
    pub(super) fn words(&self) -> Option<&str> {
        self.command_pattern_of().and_then(CommandPattern::words)
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether the action belongs to its tool. A background command belongs to `bash` too,
    /// whichever tool starts it.
    pub(super) fn is_of(&self, action: &Action) -> bool {
        let in_background = matches!(action, Action::Box(Call::Bash(bash)) if bash.background);
        self.is_for(tool(action)) || (in_background && self.tool == BACKGROUND)
    }

    /// Returns whether it is about the tool of this name: it names that, or tools of MCP servers by
    /// their beginning.
    pub(super) fn is_for(&self, tool: &str) -> bool {
        match self.tool.strip_suffix('*') {
            Some(begin) => tool.starts_with(begin),
            None => self.tool == tool,
        }
    }

    /// Returns whether it matches all calls of the tool of this name.
    pub(super) fn is_whole_for(&self, tool: &str) -> bool {
        self.pattern.is_none() && self.is_for(tool)
    }

    /// Returns the tools that it matches entirely.
    pub(super) fn whole_tools(&self) -> impl Iterator<Item = &str> {
        let in_background = (self.tool == "bash").then_some(BACKGROUND);
        let is_whole = self.pattern.is_none();
        [self.tool.as_str()]
            .into_iter()
            .chain(in_background)
            .filter(move |_| is_whole)
    }

    /// Returns whether it matches some paths and not others.
    pub(super) fn has_path_pattern(&self) -> bool {
        matches!(self.pattern, Some(Pattern::Path(_)))
    }

    /// Returns whether an allow rule matches this action: in doubt it does not.
    pub(super) fn matches(&self, action: &Action, reading: Option<&ParsedCommand>) -> bool {
        if !self.is_of(action) {
            return false;
        }
        match (&self.pattern, reading) {
            (Some(Pattern::Path(pattern)), _) if self.tool == BRANCH => {
                branch(action).is_some_and(|name| pattern.matches_branch(name, false))
            }
            (Some(Pattern::Path(pattern)), _) => {
                let paths = paths(action);
                // Every path must be allowed.
                !paths.is_empty()
                    && paths.iter().all(|path| pattern.matches(path, false))
                    && protected(action).all(|name| pattern.names(&name))
            }
            (_, Some(reading)) => self.names(reading) || all_allowed(&[self], reading),
            // A rule for a whole tool is not meant for protected names.
            (pattern, None) => pattern.is_none() && protected(action).next().is_none(),
        }
    }

    /// Returns whether a deny or ask rule may match this action: a path with `..` is also matched
    /// by its lexical target, and one command of several is enough. A script that cannot be parsed
    /// completely may match where the sandbox does not report its programs; with `are_seen` it
    /// does, and matches the rule against each.
    pub(super) fn may_match(
        &self,
        action: &Action,
        reading: Option<&ParsedCommand>,
        are_seen: bool,
    ) -> bool {
        if !self.is_of(action) {
            return false;
        }
        match (&self.pattern, reading) {
            (None, _) => true,
            (Some(Pattern::Path(pattern)), _) if self.tool == BRANCH => {
                branch(action).is_some_and(|name| pattern.matches_branch(name, true))
            }
            // One denied path denies the call, and so does one within a folder it processes.
            (Some(Pattern::Path(pattern)), _) => {
                paths(action).iter().any(|path| pattern.matches(path, true))
                    || pattern.is_in(action)
            }
            (Some(Pattern::Command(pattern)), Some(reading)) => {
                // A hook on the host runs in no sandbox.
                let is_held = are_seen && matches!(action, Action::Box(_));
                pattern.names(reading)
                    || pattern.is_started_by(reading)
                    || !is_held && self.applies_to_programs() && pattern.may_be_started_by(reading)
            }
            (Some(Pattern::Command(_)), None) => false,
        }
    }

    /// Returns whether it can be matched against running programs; otherwise it matches scripts
    /// only.
    fn applies_to_programs(&self) -> bool {
        self.words().is_some_and(|words| !forms(words).is_empty())
    }

    /// Returns whether it equals the whole script.
    pub(super) fn names(&self, reading: &ParsedCommand) -> bool {
        self.command_pattern_of()
            .is_some_and(|pattern| pattern.names(reading))
    }

    /// Returns whether it names a specific program: a whole tool, a regular expression and `*` do
    /// not.
    pub(super) fn names_its_program(&self) -> bool {
        self.words()
            .and_then(|words| words.split_whitespace().next())
            .is_some_and(|first| !first.contains('*'))
    }

    /// Returns the literal words of a command with which it grants entries of the program table.
    pub(super) fn literal_words(&self) -> Vec<&str> {
        self.command_pattern_of()
            .map_or_else(Vec::new, CommandPattern::literal_prefix_words)
    }

    /// Returns whether it allows one command, which needs this decision of the user.
    pub(super) fn allows(&self, command: &Command, decides: Option<&Capability>) -> bool {
        let opens = |capability: &Capability| {
            let is_blocked = matches!(capability, Capability::BlockedCommand { .. });
            !is_blocked
                && program_table::required_decision(&self.literal_words()).as_ref()
                    == Some(capability)
        };
        let fits = match &self.pattern {
            Some(Pattern::Command(pattern)) => pattern.allows(command),
            Some(Pattern::Path(_)) => false,
            None => is_shell(&self.tool),
        };
        fits && decides.is_none_or(opens)
    }

    /// Returns whether it matches an example, which is a path or a command.
    pub(super) fn speaks_of(&self, example: &str, allows: bool) -> bool {
        let reading = || ParsedCommand::new(example);
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
                self.names(&reading) || all_allowed(&[self], &reading)
            }
        }
    }
}

/// Returns whether each command of a script is allowed by one of the rules, and the script starts
/// no others.
pub(super) fn all_allowed<R: Borrow<Rule>>(rules: &[R], reading: &ParsedCommand) -> bool {
    let rules = rules.iter().map(Borrow::borrow);
    // A rule for the whole tool also covers what cannot be parsed.
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

/// Returns whether this names tools of MCP servers: one, or all whose names begin so.
fn is_foreign(tool: &str) -> bool {
    let name = tool.strip_suffix('*').unwrap_or(tool);
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    name.starts_with(FOREIGN) && name.bytes().all(is_name)
}

/// Returns what follows the closing parenthesis of a pattern, if it is not the last character. One
/// in quotes closes nothing.
fn after_closing_parenthesis(pattern: &str) -> Option<&str> {
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

/// Returns whether a tool's rules match commands instead of paths.
fn is_shell(tool: &str) -> bool {
    subject(tool) == RuleSubject::Commands
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
