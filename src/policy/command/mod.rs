//! What a shell command needs, from what the room `code` read of it.
//!
//! None of this is a boundary: it asks less often where a command certainly only reads, and stops early what nobody would want. Whatever is
//! not known for certain needs to run in the box, which holds.

mod allowed;
mod awk;
mod builtins;
#[cfg(test)]
mod corpus;
mod git;
mod git_names;
mod reading;
mod sed;
mod started;
mod variables;
mod words;

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::collections::HashMap;

use self::git::Use;
pub(super) use self::git::plain as plain_git;
use crate::exact::trimmed;
use crate::programs;
use podbay_code::shell;
use podbay_code::shell::Command;
use podbay_code::shell::Doubt;
use podbay_code::shell::Function;
use podbay_code::shell::Script;
use podbay_code::shell::Word;
use podbay_event::Capability;
use podbay_wire::Shell;

/// A command of the shell, read once for everything that asks about it.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    /// The text, without blanks around it.
    pub(super) text: String,
    pub(super) script: Script,
    /// What each command of the script needs, in their order.
    pub(super) needs: Vec<BTreeSet<Capability>>,
    /// What all of it needs.
    pub(super) capabilities: Vec<Capability>,
    /// What in it bash alone reads the way it was read, where another shell carries it out.
    pub(super) only_in_bash: Option<&'static str>,
}

impl Reading {
    /// Reads a command as bash does. Where another shell carries it out, whatever that may read otherwise is in doubt.
    pub(super) fn new(text: &str, working_directory: Option<&str>, shell: Shell) -> Self {
        let mut script = shell::read_with_marks(text);
        let needs = judged(&script, working_directory);
        let mut all: BTreeSet<Capability> = needs.iter().flatten().cloned().collect();
        script.without_marks();
        let otherwise = || shell::only_in_bash(text).or_else(|| shell::built_into_bash(&script));
        let only_in_bash = if shell == Shell::Bash { None } else { otherwise() };
        if let Some(what) = only_in_bash {
            script.doubts.insert(0, Doubt { what: what.to_owned(), why: "no bash runs it, and a plain sh may read this otherwise" });
        }
        script.doubts.extend(started::doubt(&script));
        let is_blocked = all.iter().any(|capability| matches!(capability, Capability::BlockedCommand { .. }));
        let only_reads = script.is_known() && !is_blocked && !script.commands.is_empty() && !all.contains(&Capability::RunInBox);
        if !only_reads {
            all.remove(&Capability::ReadFiles);
            all.insert(Capability::RunInBox);
        }
        Self { text: trimmed(text).to_owned(), script, needs, capabilities: all.into_iter().collect(), only_in_bash }
    }
}

/// Returns what each command of a script needs.
fn judged(script: &Script, working_directory: Option<&str>) -> Vec<BTreeSet<Capability>> {
    let files = reading::files(script);
    let names = git_names::names(script, &files);
    let whole = Whole { is_elsewhere: git::may_be_elsewhere(script, working_directory), names, files };
    let mut needs: Vec<_> = script.commands.iter().map(|command| needs(command, &whole)).collect();
    through_functions(script, &whole, &mut needs);
    needs
}

/// Takes the call of a function for one that only reads where that certainly is what the name means, and all that it does reads.
fn through_functions(script: &Script, whole: &Whole<'_>, needs: &mut [BTreeSet<Capability>]) {
    // `unset f` takes the function away, so that the name means a program again.
    if script.functions.is_empty() || script.commands.iter().any(|command| command.name() == Some("unset")) {
        return;
    }
    let runs = BTreeSet::from([Capability::RunInBox]);
    let reads = BTreeSet::from([Capability::ReadFiles]);
    // By name; none for one that is defined twice. Whether the body only reads is looked at once.
    let mut functions: HashMap<&str, Option<(&Function, Option<bool>)>> = HashMap::new();
    for function in &script.functions {
        functions.entry(&function.name).and_modify(|known| *known = None).or_insert(Some((function, None)));
    }
    for (at, command) in script.commands.iter().enumerate().filter(|(_, command)| !command.is_started) {
        let Some(name) = command.program().and_then(Word::known) else { continue };
        let Some(Some((function, only_reads))) = functions.get_mut(name) else { continue };
        let is_it = function.is_certain && function.shell == command.shell && function.body.end <= at && !function.body.is_empty();
        if !is_it || needs[at] != runs || !reading::around(command, &whole.files) {
            continue;
        }
        let body = needs.get(function.body.clone()).unwrap_or_default();
        if *only_reads.get_or_insert_with(|| body.iter().all(|needs| *needs == reads)) {
            needs[at].clone_from(&reads);
        }
    }
}

/// What the whole script says of each of its commands.
struct Whole<'a> {
    /// Git may look at another repository than the project's.
    is_elsewhere: bool,
    /// Variables that hold names of files and nothing else.
    files: BTreeSet<&'a str>,
    /// Variables whose values are no options.
    names: BTreeMap<&'a str, git_names::Named>,
}

/// Returns what one command needs.
fn needs(command: &Command, whole: &Whole<'_>) -> BTreeSet<Capability> {
    let words: Vec<&str> = command.words.iter().map_while(Word::known).collect();
    let decides: Option<Capability> = programs::decides(&words);
    let git = git::read(&git_names::with_names(command, &whole.names));
    let only_reads = decides.is_none()
        && match git {
            Some(git) => git == Use::Reads && !whole.is_elsewhere && reading::around(command, &whole.files),
            None => reading::only_reads(command, &whole.files),
        };
    let changes = (git == Some(Use::Changes)).then_some(Capability::ChangeSessionGit);
    let runs = if only_reads { Capability::ReadFiles } else { Capability::RunInBox };
    decides.into_iter().chain(changes).chain([runs]).collect()
}
