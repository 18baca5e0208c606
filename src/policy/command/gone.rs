//! Deletions that git only has to record: `git ls-files -d | xargs git rm` names files which are gone already.

use std::collections::BTreeSet;

use super::git;
use super::git::Use;
use crate::code::shell;
use crate::code::shell::Command;
use crate::code::shell::Script;
use crate::code::shell::Word;
use crate::event::Capability;

/// The longest substitution that is read once more.
const INSIDE_MAX: usize = 256;

/// Opens the gate for `git rm` where nothing but such a list could hold an option: names that git lists of files which are gone.
pub(super) fn judge(script: &Script, needs: &mut [BTreeSet<Capability>]) {
    let reads = |command: &Command| command.redirections.iter().any(|redirection| redirection.operator.starts_with('<'));
    // What is behind the last command of a pipe belongs to all of it.
    let is_redirected = script.commands.iter().any(|command| command.words.is_empty() && reads(command));
    for (at, command) in script.commands.iter().enumerate() {
        let removes = command.name() == Some("git") && command.arguments().first().and_then(Word::known) == Some("rm");
        let is_gated = |need: &Capability| matches!(need, Capability::GatedGit { operation } if operation == "rm -f");
        if !removes || !needs[at].iter().any(is_gated) {
            continue;
        }
        let is_handed = command.is_started
            && !is_redirected
            && matches!(&script.commands[..at], [.., list, xargs] if !reads(list) && !reads(xargs) && is_fed(list, xargs));
        let is_listed = |word: &Word| (word.text == "…" && is_handed) || lists_within(word);
        let words: Vec<Word> = command.words.iter().filter(|word| !is_listed(word)).cloned().collect();
        let is_new = words.len() < command.words.len();
        if is_new && git::read(&Command { words, ..command.clone() }) == Some(Use::Changes) {
            needs[at].retain(|need| !is_gated(need));
            needs[at].insert(Capability::ChangeSessionGit);
        }
    }
}

/// Returns whether `xargs` hands on what such a list says, and nothing else.
fn is_fed(list: &Command, xargs: &Command) -> bool {
    let is_plain = |word: &Word| word.known().is_some_and(|text| !text.starts_with("--arg-file") && !text.starts_with("-a"));
    xargs.name() == Some("xargs") && xargs.piped && xargs.arguments().iter().all(is_plain) && lists_gone(list)
}

/// `$(git ls-files -d)`
fn lists_within(word: &Word) -> bool {
    let inside = word.text.strip_prefix("$(").and_then(|rest| rest.strip_suffix(')'));
    inside.filter(|inside| word.known().is_none() && inside.len() <= INSIDE_MAX).is_some_and(|inside| {
        let script = shell::read(inside);
        script.is_known() && matches!(script.commands.as_slice(), [command] if lists_gone(command))
    })
}

/// Returns whether git lists names of files that are gone, and of no others.
fn lists_gone(command: &Command) -> bool {
    let Some([verb, rest @ ..]) = Some(command.arguments()).filter(|_| command.name() == Some("git")) else { return false };
    let words: Option<Vec<&str>> = rest.iter().map(Word::known).collect();
    let (Some(verb), Some(words)) = (verb.known(), words) else { return false };
    let has = |option: &str| words.contains(&option);
    let only = |options: &[&str]| words.iter().all(|word| !word.starts_with('-') || options.contains(word));
    match verb {
        "ls-files" => (has("-d") || has("--deleted")) && only(&["-d", "--deleted", "-z", "--full-name", "--"]),
        "diff" => {
            const OPTIONS: [&str; 8] = ["--name-only", "--diff-filter=D", "-z", "--cached", "--staged", "--no-renames", "--relative", "--"];
            has("--name-only") && has("--diff-filter=D") && only(&OPTIONS)
        }
        _ => false,
    }
}
