//! What a shell command needs, from what the room `code` read of it.
//!
//! None of this is a boundary: it asks less often where a command certainly only reads, and stops early what nobody would want. Whatever is
//! not known for certain needs to run in the box, which holds.

mod blocked;
#[cfg(test)]
mod corpus;
mod git;
mod network;
mod place;
mod protected;
mod reading;
mod words;

use std::collections::BTreeSet;

use self::git::Use;
use crate::code::shell;
use crate::code::shell::Command;
use crate::code::shell::Script;
use crate::event::Capability;
use crate::policy::exact::trimmed;

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
}

impl Reading {
    pub(super) fn new(text: &str, working_directory: Option<&str>) -> Self {
        let script = shell::read(text);
        let depth = place::depth(&script, working_directory);
        let is_elsewhere = git::may_be_elsewhere(&script, working_directory);
        let needs: Vec<_> = script.commands.iter().map(|command| needs(command, &script, depth, is_elsewhere)).collect();
        let mut all: BTreeSet<Capability> = needs.iter().flatten().cloned().collect();
        if let Some(function) = script.functions.iter().find(|function| function.n_own_calls > 1) {
            let reason = format!("the function `{}` starts itself more than once", function.name);
            all.insert(Capability::BlockedCommand { reason });
        }
        let is_blocked = all.iter().any(|capability| matches!(capability, Capability::BlockedCommand { .. }));
        let only_reads = script.is_known() && !is_blocked && !script.commands.is_empty() && !all.contains(&Capability::RunInBox);
        if !only_reads {
            all.remove(&Capability::ReadFiles);
            all.insert(Capability::RunInBox);
        }
        Self { text: trimmed(text).to_owned(), script, needs, capabilities: all.into_iter().collect() }
    }
}

/// Returns what one command needs.
fn needs(command: &Command, script: &Script, depth: usize, is_elsewhere: bool) -> BTreeSet<Capability> {
    let mut needs = BTreeSet::new();
    if let Some(reason) = blocked::reason(command, depth) {
        needs.insert(Capability::BlockedCommand { reason });
    }
    let git = git::read(command);
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
        Some(git) => git == Use::Reads && !is_elsewhere && reading::around(command),
        None => reading::only_reads(command, script),
    };
    needs.extend(hosts.into_iter().map(|host| Capability::Network { host }));
    needs.extend(protected::names(command, only_reads).into_iter().map(|name| Capability::ProtectedName { name }));
    needs.insert(if only_reads { Capability::ReadFiles } else { Capability::RunInBox });
    needs
}
