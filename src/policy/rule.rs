use std::borrow::Cow;
use std::collections::BTreeSet;

use regex::Regex;
use thiserror::Error;

use super::RuleScope;
use super::capabilities;
use super::command::Reading;
use super::command::plain_git;
use super::exec_rules::exec_rules;
use super::glob;
use super::paths::paths;
use super::pattern::PathPattern;
use super::pattern::regex;
use super::tool::BACKGROUND;
use super::tool::BRANCH;
use super::tool::HOOK;
use super::tool::branch;
use super::tool::tool;
use super::version::same_program;
use super::version::shorter;
use crate::Action;
use crate::exact::trimmed;
use podbay_code::shell::Command;
use podbay_code::shell::Script;
use podbay_code::shell::WordKind;
use podbay_event::Capability;
use podbay_wire::BytesPath;
use podbay_wire::Call;
use podbay_wire::ExecEffect;
use podbay_wire::Shell;

/// Tools whose calls name neither a path nor a command.
const PATHLESS: [&str; 9] =
    ["ask_user", "env", "get_process_output", "list_processes", "more_tools", "stop_process", "task_list", "think", "update_config"];

/// A person's standing answer: `TOOL` or `TOOL(PATTERN)`.
///
/// For file tools the pattern is a glob over the path (`write_file(src/**)`), or a regular expression over it between slashes
/// (`write_file(/^src/.*[.]rs$/)`); for `git_branch` it is one over the name of the branch. For `bash` it is a whole command to the letter, a pattern with
/// `*` over the words of each command that the text starts (`bash(git log *)`), or a regular expression over them (`bash(/^cargo (test|check)/)`).
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
    Command(String),
    Commands(String),
    Regex(Regex),
}

#[derive(Debug, Error)]
#[error("the rule `{rule}` cannot be used: {problem}")]
pub struct RuleError {
    pub rule: String,
    pub problem: String,
}

impl Rule {
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let bad = |problem: String| RuleError { rule: text.to_owned(), problem };
        let text = text.trim();
        let (tool, pattern) = match text.split_once('(') {
            Some((tool, rest)) => {
                let pattern = rest.strip_suffix(')').ok_or_else(|| bad("it ends without `)`".to_owned()))?;
                (tool.trim(), Some(pattern))
            }
            None => (text, None),
        };
        if tool.is_empty() || !tool.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_') {
            return Err(bad("it must start with a tool's name, such as `bash` or `write_file(src/**)`".to_owned()));
        }
        let pattern = match pattern {
            None => None,
            Some(pattern) if matches!(pattern.trim(), "" | "//") => {
                let problem = format!("the pattern between the parentheses is empty; write `{tool}` alone to speak of all of its calls");
                return Err(bad(problem));
            }
            Some(pattern) if let Some(behind) = behind_the_end(pattern) => {
                return Err(bad(format!("behind its closing `)` stands `{behind})`; write one rule for each pattern")));
            }
            Some(pattern) if is_shell(tool) => Some(command_pattern(pattern).map_err(bad)?),
            Some(_) if PATHLESS.contains(&tool) => {
                let problem =
                    format!("`{tool}` names no path that a pattern could be about; write `{tool}` alone to speak of all of its calls");
                return Err(bad(problem));
            }
            Some(pattern) => Some(Pattern::Path(PathPattern::parse(pattern.trim()).map_err(bad)?)),
        };
        let (scope, justification) = (RuleScope::Own, String::new());
        Ok(Self { text: text.to_owned(), tool: tool.to_owned(), pattern, scope, justification })
    }

    /// The same rule, which says by whom a program is started that it speaks of, and what the model is told.
    #[must_use]
    pub(super) fn with(self, scope: RuleScope, justification: &str) -> Self {
        Self { scope, justification: justification.to_owned(), ..self }
    }

    pub(super) fn scope(&self) -> RuleScope {
        self.scope
    }

    pub(super) fn justification(&self) -> &str {
        &self.justification
    }

    /// Returns the pattern over the words of commands, where it is one.
    pub(super) fn words(&self) -> Option<&str> {
        match &self.pattern {
            Some(Pattern::Command(words) | Pattern::Commands(words)) => Some(words),
            Some(Pattern::Path(_) | Pattern::Regex(_)) | None => None,
        }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether its tool is the one of this action. A command that stays in the background is one of `bash` too, whichever tool
    /// starts it.
    pub(super) fn is_of(&self, action: &Action) -> bool {
        let in_background = matches!(action, Action::Box(Call::Bash(bash)) if bash.background);
        self.tool == tool(action) || (in_background && self.tool == BACKGROUND)
    }

    /// Returns the tools all of whose calls it speaks of.
    pub(super) fn whole_tools(&self) -> impl Iterator<Item = &str> {
        let in_background = (self.tool == "bash").then_some(BACKGROUND);
        let is_whole = self.pattern.is_none();
        [self.tool.as_str()].into_iter().chain(in_background).filter(move |_| is_whole)
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

    /// Returns whether it may speak of this action, for a rule that denies or asks: a path with `..` is also taken for what it leads to by
    /// its letters, and one command of many is enough. A script that may do more than can be read is meant where nobody sees which programs it
    /// starts; `are_seen`: the sandbox does, and holds the rule against each.
    pub(super) fn may_match(&self, action: &Action, reading: Option<&Reading>, are_seen: bool) -> bool {
        if !self.is_of(action) {
            return false;
        }
        match (&self.pattern, reading) {
            (None, _) => true,
            (Some(Pattern::Path(pattern)), _) if self.tool == BRANCH => branch(action).is_some_and(|name| pattern.is_of_branch(name, true)),
            // One path that is denied denies the call, and so does one that a folder takes along.
            (Some(Pattern::Path(pattern)), _) => paths(action).iter().any(|path| pattern.matches(path, true)) || pattern.is_in(action),
            (Some(_), Some(reading)) => {
                // A hook on the host is in no sandbox.
                let is_held = are_seen && matches!(action, Action::Box(_)) && self.is_of_programs();
                let starts = if is_held { self.starts(&reading.script) } else { self.may_start(&reading.script) };
                self.names(reading) || starts || !(is_held || reading.script.is_known())
            }
            (Some(_), None) => false,
        }
    }

    /// Returns whether the sandbox can hold it against the programs that a command starts.
    fn is_of_programs(&self) -> bool {
        !exec_rules(self, ExecEffect::Deny, "").is_empty()
    }

    /// Returns whether it says the whole command to the letter.
    pub(super) fn names(&self, reading: &Reading) -> bool {
        match &self.pattern {
            Some(Pattern::Command(text) | Pattern::Commands(text)) => trimmed(text) == reading.text,
            Some(Pattern::Path(_) | Pattern::Regex(_)) | None => false,
        }
    }

    /// Returns whether a pattern allows one command: it must be written plainly, all of its words known, with nothing around it.
    fn allows(&self, command: &Command, needs: &BTreeSet<Capability>) -> bool {
        if !is_shell(&self.tool) {
            return false;
        }
        let opens = |capability: &Capability| match capability {
            Capability::BlockedCommand { .. } | Capability::ChangeOutsideBox => false,
            Capability::GatedGit { operation } => self.literal().is_some_and(|literal| {
                operation.split_whitespace().next().is_some_and(|verb| literal.split_whitespace().any(|word| word == verb))
            }),
            Capability::ProtectedName { name } => self.literal().is_some_and(|literal| literal.contains(name.as_str())),
            _ => true,
        };
        if !needs.iter().all(opens) {
            return false;
        }
        if self.pattern.is_none() {
            return true;
        }
        let is_plain = command.program().is_some_and(|program| program.plain)
            && command.assignments.is_empty()
            && command.words.iter().all(|word| word.kind == WordKind::Known)
            && !command.redirections.iter().any(writes_a_file);
        is_plain && self.fits(&written(command, false))
    }

    /// Returns whether a script has a command that it speaks of, as it is written.
    fn starts(&self, script: &Script) -> bool {
        script.commands.iter().any(|command| forms(command).any(|command| self.is_of_command(&command)))
    }

    /// Returns the same, or whether one may turn out to be such a command.
    fn may_start(&self, script: &Script) -> bool {
        self.starts(script) || script.commands.iter().any(|command| forms(command).any(|command| self.may_be(&command)))
    }

    /// Returns the program that the pattern is about, where it begins with one.
    fn program(&self) -> Option<&str> {
        self.literal().and_then(|literal| literal.split(' ').next()).filter(|first| !first.is_empty())
    }

    fn is_of_command(&self, command: &Command) -> bool {
        let whole = written(command, false);
        let short = written(command, true);
        self.fits(&whole) || self.fits(&short) || self.is_version(command, &short)
    }

    /// Returns whether a word that is not known may be what the pattern goes on with.
    fn may_be(&self, command: &Command) -> bool {
        let Some(Pattern::Commands(_) | Pattern::Command(_)) = &self.pattern else { return false };
        let Some(literal) = self.literal() else { return false };
        let Some(unknown) = command.words.iter().position(|word| word.kind != WordKind::Known) else { return false };
        let mut known = command.clone();
        known.words.truncate(unknown);
        [written(&known, false), written(&known, true)].iter().any(|text| literal.starts_with(&format!("{text} ")))
    }

    /// Returns whether it speaks of a program by another version's name: `python3.13` and `python` are also `python3`.
    fn is_version(&self, command: &Command, short: &str) -> bool {
        let Some(name) = command.name() else { return false };
        let rest = short.strip_prefix(name).unwrap_or_default().trim_start();
        self.fits_versions(name, rest)
    }

    /// Returns whether it speaks of a program with these words behind it, by one of its versions' names.
    fn fits_versions(&self, name: &str, rest: &str) -> bool {
        let with = |name: &str| if rest.is_empty() { name.to_owned() } else { format!("{name} {rest}") };
        if self.fits(&with(name)) {
            return true;
        }
        let of_rule = self.program().filter(|first| same_program(name, first));
        of_rule.is_some_and(|first| self.fits(&with(first))) || shorter(name).any(|short| self.fits(&with(short)))
    }

    /// Returns whether a command's words are what the pattern says; `git log *` is also `git log`.
    fn fits(&self, text: &str) -> bool {
        match &self.pattern {
            Some(Pattern::Command(pattern)) => pattern == text,
            Some(Pattern::Commands(pattern)) => {
                glob::matches(pattern, text, false) || pattern.strip_suffix(" *").is_some_and(|short| glob::matches(short, text, false))
            }
            Some(Pattern::Regex(regex)) => regex.is_match(text),
            Some(Pattern::Path(_)) | None => false,
        }
    }

    /// Returns what the pattern says before its first `*`.
    fn literal(&self) -> Option<&str> {
        match &self.pattern {
            Some(Pattern::Command(text) | Pattern::Commands(text)) => text.split('*').next(),
            Some(Pattern::Path(_) | Pattern::Regex(_)) | None => None,
        }
    }

    /// Returns whether it speaks of an example, which stands for a path or a command.
    pub(super) fn speaks_of(&self, example: &str, allows: bool) -> bool {
        match &self.pattern {
            None if !is_shell(&self.tool) || !allows => true,
            Some(Pattern::Path(pattern)) => pattern.matches(&BytesPath::from_text(example), !allows),
            Some(_) | None => {
                // Which shell will read it is not known yet; an example says what is meant.
                let reading = Reading::new(example, None, Shell::Bash);
                if allows {
                    return self.names(&reading) || everything_is_allowed(&[self], &reading);
                }
                self.names(&reading) || !reading.script.is_known() || self.may_start(&reading.script)
            }
        }
    }
}

/// Returns a command as it is written, and as one of git is without the options in front of its verb.
fn forms(command: &Command) -> impl Iterator<Item = Cow<'_, Command>> {
    let own = (!command.words.is_empty()).then_some(Cow::Borrowed(command));
    own.into_iter().chain(plain_git(command).map(Cow::Owned))
}

/// Returns whether each command of a script only reads or is allowed by one of the rules, and nothing else may be started.
pub(super) fn everything_is_allowed(rules: &[&Rule], reading: &Reading) -> bool {
    let is_blocked = |capability: &Capability| matches!(capability, Capability::BlockedCommand { .. });
    // What hides behind what another shell reads otherwise, no rule speaks of.
    if reading.only_in_bash.is_some() || reading.capabilities.iter().any(is_blocked) {
        return false;
    }
    // A rule for all of bash speaks of what cannot be read, too; gates and protected names it does not open.
    let opens_all = |rule: &Rule| {
        rule.pattern.is_none() && reading.needs.iter().zip(&reading.script.commands).all(|(needs, command)| rule.allows(command, needs))
    };
    if rules.iter().copied().any(opens_all) {
        return true;
    }
    let mut commands = reading.script.commands.iter().zip(&reading.needs);
    let is_harmless = |command: &Command, needs: &BTreeSet<Capability>| {
        !command.starts_another && needs.iter().all(|need| *need == Capability::ReadFiles)
    };
    reading.script.is_known()
        && !reading.script.commands.is_empty()
        && commands.all(|(command, needs)| is_harmless(command, needs) || rules.iter().copied().any(|rule| rule.allows(command, needs)))
}

/// Returns what stands behind the parenthesis that closes a pattern, where that is not the last one. One in quotes closes nothing.
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

fn command_pattern(pattern: &str) -> Result<Pattern, String> {
    if let Some(inside) = pattern.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')).filter(|inside| !inside.is_empty()) {
        return regex(inside).map(Pattern::Regex);
    }
    Ok(if pattern.contains('*') { Pattern::Commands(pattern.to_owned()) } else { Pattern::Command(pattern.to_owned()) })
}

fn writes_a_file(redirection: &podbay_code::shell::Redirection) -> bool {
    redirection.writes() && redirection.target.as_ref().and_then(podbay_code::shell::Word::known) != Some("/dev/null")
}

/// Returns a command as text: its words with one blank between them, those with blanks in quotes.
fn written(command: &Command, without_folders: bool) -> String {
    let mut text = String::new();
    for (at, word) in command.words.iter().enumerate() {
        if at > 0 {
            text.push(' ');
        }
        let part = if at == 0 && without_folders { word.text.rsplit('/').next().unwrap_or(&word.text) } else { &word.text };
        if part.is_empty() || part.contains(char::is_whitespace) {
            text.push('\'');
            text.push_str(part);
            text.push('\'');
        } else {
            text.push_str(part);
        }
    }
    text
}

/// Returns whether a tool's rules speak of commands, not of paths.
fn is_shell(tool: &str) -> bool {
    ["bash", BACKGROUND, HOOK].contains(&tool)
}

/// Returns the protected names among the paths of a call that is no command.
fn protected(action: &Action) -> impl Iterator<Item = String> {
    capabilities(action).into_iter().filter_map(|capability| match capability {
        Capability::ProtectedName { name } => Some(name),
        _ => None,
    })
}
