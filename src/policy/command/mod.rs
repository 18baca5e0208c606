//! What a shell command needs, from what the room `code` read of it.
//!
//! None of this is a boundary: it asks less often where a command certainly only reads, and stops early what nobody would want. Whatever is
//! not known for certain needs to run in the box, which holds.

mod allowed;
mod apart;
mod awk;
mod besides;
mod blocked;
mod bomb;
mod builtins;
#[cfg(test)]
mod corpus;
mod emptied;
mod ending;
mod extended;
mod fed;
mod finding;
mod git;
mod git_checkout;
mod git_folder;
mod git_names;
mod git_verbs;
mod gone;
mod ground;
mod handed;
mod heard;
mod in_place;
mod in_texts;
mod links;
mod mention;
mod mode;
mod network;
mod place;
mod protected;
mod reading;
mod renamed;
mod sed;
mod setting;
mod started;
mod taking;
mod undoing;
mod unset;
mod variables;
mod words;

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::collections::HashMap;

use self::git::Use;
pub(super) use self::git::plain as plain_git;
use self::ground::Ground;
pub(super) use self::mention::Around;
pub(super) use self::mention::NAMES_MAX;
pub(super) use self::mention::PROGRAMS;
pub(super) use self::mention::named;
use crate::exact::trimmed;
use podbay_code::shell;
use podbay_code::shell::Command;
use podbay_code::shell::Doubt;
use podbay_code::shell::Function;
use podbay_code::shell::Script;
use podbay_code::shell::Word;
use podbay_event::Capability;
use podbay_wire::Shell;

/// Commands with variables into which values are put, and values that are put into each.
const VALUES_MAX: usize = 32;

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
        let (needs, mut all) = judged(&script, text, working_directory);
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

/// Returns what each command of a script needs, and what all of it does.
fn judged(script: &Script, text: &str, working_directory: Option<&str>) -> (Vec<BTreeSet<Capability>>, BTreeSet<Capability>) {
    let grounds = ground::grounds(script, working_directory);
    let placed = ground::placed(script, &grounds);
    let script = placed.as_ref().unwrap_or(script);
    let files = reading::files(script);
    let whole = Whole {
        is_elsewhere: git::may_be_elsewhere(script, working_directory),
        names: git_names::names(script, &files),
        files,
        made: ground::made(script),
        may_be_apart: apart::may_be(script, text),
    };
    let mut needs: Vec<_> = script.commands.iter().zip(&grounds).map(|(command, ground)| needs(command, ground, &whole)).collect();
    through_functions(script, &whole, &mut needs);
    let through = protected::values(script);
    for (command, needs) in script.commands.iter().zip(&mut needs).filter(|_| !through.is_empty()) {
        let may_open = protected::may_open(command);
        let targets = command.redirections.iter().filter(|redirection| may_open || redirection.writes());
        let targets = targets.filter_map(|redirection| redirection.target.as_ref());
        let opens = command.words.iter().filter(|_| may_open).chain(targets).any(|word| word.known().is_none());
        needs.extend(through.iter().filter(|_| opens).map(|name| Capability::ProtectedName { name: name.clone() }));
    }
    for (at, name) in protected::among_hidden(script) {
        needs[at].insert(Capability::ProtectedName { name });
    }
    for (at, name) in handed::names(script) {
        needs[at].insert(Capability::ProtectedName { name });
    }
    for (at, reason) in fed::blocked(script, &grounds) {
        needs[at].insert(Capability::BlockedCommand { reason });
    }
    undoing::judge(script, &grounds, &mut needs);
    gone::judge(script, &mut needs);
    for (at, reason) in renamed::blocked(script, &grounds) {
        needs[at].insert(Capability::BlockedCommand { reason });
    }
    for (at, reason) in besides::blocked(script, &grounds) {
        needs[at].insert(Capability::BlockedCommand { reason });
    }
    // Each value that a loop or a list may put in a command counts.
    let putting =
        script.commands.iter().zip(&grounds).zip(&mut needs).filter(|((command, _), _)| !script.values.is_empty() && has_unknown(command));
    for (((command, ground), needs), _) in putting.zip(0..VALUES_MAX) {
        let made = script.values.iter().take(VALUES_MAX).filter_map(|value| value.put_in(command));
        let only_reads = !needs.contains(&Capability::RunInBox);
        for made in made {
            needs.extend(blocked::reason(&made, ground).map(|reason| Capability::BlockedCommand { reason }));
            needs.extend(protected::names(&made, ground, only_reads).into_iter().map(|name| Capability::ProtectedName { name }));
        }
    }
    let mut all: BTreeSet<Capability> = needs.iter().flatten().cloned().collect();
    if let Some(function) = bomb::find(script) {
        let reason = format!("the function `{function}` starts itself more than once");
        all.insert(Capability::BlockedCommand { reason });
    }
    all.extend(extended::reason(text, &grounds).map(|reason| Capability::BlockedCommand { reason }));
    (needs, all)
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

fn has_unknown(command: &Command) -> bool {
    let targets = command.redirections.iter().filter_map(|redirection| redirection.target.as_ref());
    command.words.iter().chain(targets).any(|word| word.known().is_none())
}

/// What the whole script says of each of its commands.
struct Whole<'a> {
    /// Git may look at another repository than the project's.
    is_elsewhere: bool,
    /// Variables that hold names of files and nothing else.
    files: BTreeSet<&'a str>,
    /// Variables whose values are no options.
    names: BTreeMap<&'a str, git_names::Named>,
    /// Variables that hold the name of a folder that was made for passing.
    made: BTreeSet<&'a str>,
    /// Nothing in it says that a folder elsewhere is a part of the project's repository.
    may_be_apart: bool,
}

/// Returns what one command needs.
fn needs(command: &Command, ground: &Ground, whole: &Whole<'_>) -> BTreeSet<Capability> {
    let mut needs = BTreeSet::new();
    if let Some(reason) = blocked::reason(&ground::with_made(command, &whole.made), ground) {
        needs.insert(Capability::BlockedCommand { reason });
    }
    let git = git::read(&git_names::with_names(command, &whole.names)).map(|git| match git {
        Use::Gated(operation) if whole.may_be_apart && apart::keeps(command, &operation, ground, &whole.made) => Use::Changes,
        git => git,
    });
    match &git {
        Some(Use::Gated(operation)) => {
            needs.insert(Capability::GatedGit { operation: operation.clone() });
        }
        Some(Use::Changes) => {
            needs.insert(Capability::ChangeSessionGit);
        }
        Some(Use::Reads | Use::ReadsElsewhere) | None => {}
    }
    let hosts = network::hosts(command);
    if network::publishes(command) {
        needs.insert(Capability::ChangeOutsideBox);
    }
    let only_reads = match git {
        _ if !needs.is_empty() || !hosts.is_empty() => false,
        Some(git) => git == Use::Reads && !whole.is_elsewhere && reading::around(command, &whole.files),
        None => reading::only_reads(command, &whole.files),
    };
    needs.extend(hosts.into_iter().map(|host| Capability::Network { host }));
    needs.extend(protected::names(command, ground, only_reads).into_iter().map(|name| Capability::ProtectedName { name }));
    needs.insert(if only_reads { Capability::ReadFiles } else { Capability::RunInBox });
    needs
}
