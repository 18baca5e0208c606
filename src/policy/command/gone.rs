//! Deletions that git only has to record: `git ls-files -d | xargs git rm` names files which are gone already.

use std::collections::BTreeSet;

use super::git;
use super::git::Use;
use podbay_code::shell;
use podbay_code::shell::Command;
use podbay_code::shell::Script;
use podbay_code::shell::Word;
use podbay_event::Capability;

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
            // With anything before, in a group or a function, nobody knows what else is handed on.
            && matches!(&script.commands[..at], [list, xargs] if !reads(list) && !reads(xargs) && is_fed(list, xargs));
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
    const OPTIONS: [&str; 9] = ["-0", "-r", "-0r", "-r0", "--null", "--no-run-if-empty", "-t", "-n", "-L"];
    let mut options = xargs.arguments().iter().map(Word::known).take_while(|word| word.is_none_or(|word| word.starts_with('-')));
    let is_plain = options.all(|word| word.is_some_and(|word| OPTIONS.contains(&word)));
    xargs.name() == Some("xargs") && xargs.piped && is_plain && lists_gone(list)
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
            // Between two commits a file may be gone that is there.
            let named = words.iter().take_while(|word| **word != "--").any(|word| !word.starts_with('-') && *word != "HEAD");
            has("--name-only") && has("--diff-filter=D") && only(&OPTIONS) && !named
        }
        _ => false,
    }
}
