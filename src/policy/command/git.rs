//! What a git command does: reads, changes the session's repository, or destroys what git keeps.

use super::words;
use super::words::has;
use super::words::may_have;
use crate::code::shell::Command;
use crate::code::shell::Script;
use crate::code::shell::Word;

/// What git is used for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Reads,
    /// It reads a repository whose settings may name programs.
    ReadsElsewhere,
    Changes,
    /// An operation that loses something, or reaches others.
    Gated(String),
}

/// Verbs that only read, whatever their options but those in [`RUNS_OR_WRITES`].
const READS: [&str; 28] = [
    "annotate",
    "blame",
    "cat-file",
    "check-attr",
    "check-ignore",
    "cherry",
    "count-objects",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "for-each-ref",
    "grep",
    "log",
    "ls-files",
    "ls-tree",
    "merge-base",
    "name-rev",
    "range-diff",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show",
    "show-ref",
    "status",
    "version",
    "whatchanged",
];

/// Long options of those that write a file or run a program.
const RUNS_OR_WRITES: [&str; 7] = ["--output", "--ext-diff", "--textconv", "--filters", "--open-files-in-pager", "--exec", "--upload-pack"];

/// Returns what a command does with git; `None` for another program.
pub(super) fn read(command: &Command) -> Option<Use> {
    if command.name() != Some("git") {
        return None;
    }
    let mut arguments = command.arguments();
    let mut is_plain = command.program().is_some_and(|program| program.text == "git");
    let mut is_elsewhere = false;
    while let Some((first, rest)) = arguments.split_first() {
        match first.known() {
            None => return Some(Use::Gated("an operation that cannot be read".to_owned())),
            // What a setting runs, the reading looked into.
            Some(option @ ("-C" | "-c")) => {
                is_elsewhere |= option == "-C";
                arguments = rest.get(1..).unwrap_or_default();
            }
            Some("--no-pager" | "-P" | "--version" | "--no-optional-locks" | "--literal-pathspecs") => arguments = rest,
            Some("--git-dir" | "--work-tree" | "--namespace" | "--super-prefix" | "--config-env" | "--attr-source") => {
                is_plain = false;
                arguments = rest.get(1..).unwrap_or_default();
            }
            Some(text) if text.starts_with('-') => {
                is_plain = false;
                arguments = rest;
            }
            Some(_) => break,
        }
    }
    let Some((verb, rest)) = arguments.split_first() else { return Some(Use::Reads) };
    let verb = verb.known()?;
    if let Some(operation) = gated(verb, rest) {
        return Some(Use::Gated(operation));
    }
    Some(match is_plain && reads(verb, rest) {
        true if is_elsewhere => Use::ReadsElsewhere,
        true => Use::Reads,
        false => Use::Changes,
    })
}

/// Returns whether git may look at another repository than the project's: after a change of folders.
pub(super) fn may_be_elsewhere(script: &Script, working_directory: Option<&str>) -> bool {
    let is_top = working_directory.is_none_or(|path| matches!(path.trim_end_matches('/'), "" | "." | "/workspace"));
    let moves = |command: &Command| match command.name() {
        Some("cd" | "pushd" | "popd") => true,
        Some("env") => may_have(command.arguments(), "C", &["--chdir"]),
        Some("find" | "gfind") => command.arguments().iter().any(|word| matches!(word.text.as_str(), "-execdir" | "-okdir")),
        _ => false,
    };
    working_directory == Some("/") || !is_top || script.commands.iter().any(moves)
}

fn reads(verb: &str, rest: &[Word]) -> bool {
    let first = rest.first().map(|word| word.text.as_str());
    // A shortened name counts; a word that is not known may be anything.
    if may_have(rest, "", &RUNS_OR_WRITES) || (verb == "grep" && may_have(rest, "O", &[])) {
        return false;
    }
    if READS.contains(&verb) {
        return true;
    }
    let only = |allowed: &[&str]| rest.iter().all(|word| word.known().is_some_and(|text| allowed.contains(&text)));
    match verb {
        "branch" => {
            let lists = has(rest, "", &["--list", "--show-current", "--contains", "--merged", "--no-merged", "--points-at"]);
            only(&["-a", "-r", "-v", "-vv", "-av", "-avv", "--all", "--remotes", "--verbose", "--no-color"])
                || (lists
                    && !may_have(
                        rest,
                        "dDmMcCfut",
                        &["--delete", "--move", "--copy", "--force", "--set-upstream-to", "--edit-description"],
                    ))
        }
        "tag" => {
            only(&["-l", "--list", "-n"])
                || (has(rest, "l", &["--list", "--contains", "--points-at"])
                    && !may_have(rest, "dfasmFu", &["--delete", "--force", "--message"]))
        }
        "remote" => only(&["-v", "--verbose"]) || first == Some("get-url"),
        "stash" => matches!(first, Some("list" | "show")),
        "worktree" => first == Some("list"),
        "reflog" => matches!(first, None | Some("show")),
        "submodule" => first == Some("status"),
        "notes" => matches!(first, Some("list" | "show")),
        "bisect" => first == Some("log"),
        "config" => {
            matches!(first, Some("get" | "list" | "--get" | "--get-all" | "--list" | "-l" | "--get-regexp"))
                && !may_have(rest, "e", &["--add", "--unset", "--replace-all", "--edit", "--remove-section", "--rename-section"])
        }
        "symbolic-ref" => rest.len() <= 2 && words::operands(rest).count() == 1 && !may_have(rest, "dm", &["--delete"]),
        _ => false,
    }
}

/// Returns the operation that loses something or reaches others.
///
/// `commit --amend` is none: the commit it replaces stays in the reflog of the session's own repository.
fn gated(verb: &str, rest: &[Word]) -> Option<String> {
    let first = rest.first().map(|word| word.text.as_str());
    let is_unknown_first = rest.first().is_some_and(words::may_be_option);
    let force = || may_have(rest, "f", &["--force"]);
    let operation = match verb {
        "push" | "send-email" | "send-pack" | "filter-branch" | "filter-repo" | "prune" => verb,
        "svn" if matches!(first, Some("dcommit")) => "svn dcommit",
        "p4" if matches!(first, Some("submit")) => "p4 submit",
        "lfs" if matches!(first, Some("push" | "prune")) => "lfs push",
        "reset" if may_have(rest, "", &["--hard", "--merge", "--keep"]) => "reset --hard",
        // A setting, or a form of `--force` that nobody thought of, removes as well.
        "clean" if !is_dry_run(rest) => "clean -f",
        "checkout-index" if may_have(rest, "fa", &["--force", "--all"]) => "checkout of files",
        "read-tree" if may_have(rest, "u", &["--reset"]) => "reset --hard",
        "subtree" if matches!(first, Some("push")) || is_unknown_first => "push",
        "checkout" if throws_away(rest) => "checkout of files",
        "restore" if !has(rest, "S", &["--staged"]) || may_have(rest, "W", &["--worktree"]) => "restore",
        "switch" if may_have(rest, "f", &["--force", "--discard-changes"]) => "switch --discard-changes",
        "branch" if may_have(rest, "DMf", &["--force"]) => "branch -D",
        "tag" if may_have(rest, "d", &["--delete"]) => "tag -d",
        "stash" if matches!(first, Some("drop" | "clear")) || is_unknown_first => "stash drop",
        // Further on, such a word may be what another option is given.
        "rebase" if !matches!(first, Some("--abort" | "--continue" | "--skip" | "--quit" | "--show-current-patch")) => "rebase",
        "reflog" if matches!(first, Some("expire" | "delete" | "drop")) || is_unknown_first => "reflog expire",
        "gc" if may_have(rest, "", &["--prune"]) => "gc --prune",
        "update-ref" if may_have(rest, "d", &["--stdin", "--delete"]) => "update-ref -d",
        "worktree" if matches!(first, Some("remove")) && force() => "worktree remove -f",
        "submodule" if matches!(first, Some("deinit")) && force() => "submodule deinit -f",
        _ => return None,
    };
    Some(operation.to_owned())
}

/// A `clean` that certainly removes nothing: it says `-n`, and every other option is known to take no value and to take nothing back.
fn is_dry_run(rest: &[Word]) -> bool {
    let options = || rest.iter().take_while(|word| word.text != "--").filter(|word| word.text.starts_with('-'));
    let letters = |word: &Word| word.text.strip_prefix('-').is_some_and(|rest| rest.chars().all(|c| "ndxXfq".contains(c)));
    let says_so = |word: &Word| word.text == "--dry-run" || (letters(word) && word.text.contains('n'));
    let is_plain = |word: &Word| letters(word) || matches!(word.text.as_str(), "--dry-run" | "--force" | "--quiet");
    !rest.iter().any(words::may_be_option) && options().all(is_plain) && options().any(says_so)
}

/// A checkout that writes over files, as against one that changes branches. In doubt it writes.
fn throws_away(rest: &[Word]) -> bool {
    if may_have(rest, "fp", &["--force", "--ours", "--theirs", "--patch", "--pathspec-from-file"])
        || rest.iter().any(|word| word.text == "--")
    {
        return true;
    }
    let takes_back = rest.iter().any(|word| word.text.starts_with("--no-"));
    if !takes_back && has(rest, "bB", &["--orphan", "--detach", "--track"]) {
        return false;
    }
    let operands: Vec<&Word> = words::operands(rest).collect();
    match operands.as_slice() {
        [] => false,
        [one] => one.known().is_none_or(looks_like_a_file),
        _ => true,
    }
}

fn looks_like_a_file(text: &str) -> bool {
    let last = text.rsplit('/').next().unwrap_or(text);
    let suffix = last.rsplit_once('.').map_or("", |(_, suffix)| suffix);
    let has_suffix = (1..=5).contains(&suffix.len()) && suffix.bytes().all(|byte| byte.is_ascii_alphabetic());
    text == "." || text == ".." || text.starts_with(['.', '/', ':']) || text.ends_with('/') || has_suffix
}
