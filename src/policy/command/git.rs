//! What a git command does: reads, changes the session's repository, or destroys what git keeps.

use super::git_checkout::throws_away;
use super::git_names::without_names;
use super::git_verbs::CHANGES;
use super::git_verbs::READS;
use super::words;
use super::words::has;
use super::words::may_have;
use podbay_code::shell::Command;
use podbay_code::shell::Script;
use podbay_code::shell::Word;
use podbay_code::shell::WordKind;

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

/// Long options of those that write a file or run a program.
const RUNS_OR_WRITES: [&str; 8] = [
    "--output",
    "--ext-diff",
    "--textconv",
    "--filters",
    "--open-files-in-pager",
    "--exec",
    "--upload-pack",
    // The program that looks at signatures is named by the settings.
    "--show-signature",
];

/// Returns what a command does with git; `None` for another program.
pub(super) fn read(command: &Command) -> Option<Use> {
    let name = command.name()?;
    // As in git's own folder of programs.
    if let Some(verb) = name.strip_prefix("git-").filter(|verb| READS.contains(verb) || CHANGES.contains(verb)) {
        return Some(gated(verb, command.arguments()).map_or(Use::Changes, Use::Gated));
    }
    if name != "git" {
        return None;
    }
    if command.assignments.iter().any(|assignment| assignment.name.starts_with("GIT_CONFIG")) {
        return Some(Use::Gated("an operation that cannot be read".to_owned()));
    }
    let mut arguments = command.arguments();
    let mut is_plain = command.program().is_some_and(|program| program.text == "git");
    let mut is_elsewhere = false;
    while let Some((first, rest)) = arguments.split_first() {
        match first.known() {
            None => return Some(Use::Gated("an operation that cannot be read".to_owned())),
            Some(option @ ("-C" | "-c")) => {
                is_elsewhere |= option == "-C";
                // What a setting runs, the reading looked into; some lose things by themselves.
                let setting = rest.first().map(|word| word.text.to_ascii_lowercase()).unwrap_or_default();
                if option == "-c" && (setting.starts_with("alias.") || decides_what_is_kept(&setting)) {
                    return Some(Use::Gated("an operation that cannot be read".to_owned()));
                }
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
    // A name of the person's own, or a program that git does not bring: what it does is not said here.
    if !READS.contains(&verb) && !CHANGES.contains(&verb) {
        return Some(Use::Gated("an operation that cannot be read".to_owned()));
    }
    Some(match is_plain && reads(verb, rest) {
        true if is_elsewhere => Use::ReadsElsewhere,
        true => Use::Reads,
        false => Use::Changes,
    })
}

/// Returns a command of git as a rule names it: without what stands in front of the verb, and by the verb where it is a program of its own.
pub(crate) fn plain(command: &Command) -> Option<Command> {
    const VALUED: [&str; 8] = ["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--config-env", "--attr-source"];
    let name = command.name()?;
    let mut words = vec![Word { text: "git".to_owned(), kind: WordKind::Known, plain: true, quoted: false }];
    if let Some(verb) = name.strip_prefix("git-").filter(|verb| !verb.is_empty()) {
        words.push(Word { text: verb.to_owned(), ..words[0].clone() });
        words.extend(command.arguments().iter().cloned());
    } else if name == "git" {
        let mut rest = command.arguments();
        while let Some((first, behind)) = rest.split_first().filter(|(first, _)| first.text.starts_with('-')) {
            rest = if VALUED.contains(&first.text.as_str()) { behind.get(1..).unwrap_or_default() } else { behind };
        }
        words.extend(rest.iter().cloned());
    } else {
        return None;
    }
    Some(Command { words, ..command.clone() })
}

/// Returns whether git may look at another repository than the project's: after a change of folders.
pub(super) fn may_be_elsewhere(script: &Script, working_directory: Option<&str>) -> bool {
    let is_top = working_directory.is_none_or(|path| matches!(path.trim_end_matches('/'), "" | "." | "/workspace"));
    let moves = |command: &Command| match command.name() {
        // Back to the top of the project it is the project's own.
        Some("cd") if matches!(command.arguments(), [one] if matches!(one.known(), Some("/workspace" | "/workspace/"))) => false,
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
    if rest.iter().any(asks_for_signature) {
        return false;
    }
    if READS.contains(&verb) {
        return true;
    }
    if matches!(verb, "branch" | "tag" | "config") && rest.iter().any(takes_back) {
        return false;
    }
    let only = |allowed: &[&str]| rest.iter().all(|word| word.known().is_some_and(|text| allowed.contains(&text) || says_how(text)));
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
        "reflog" => matches!(first, None | Some("show")) || rest.iter().all(shows_reflog),
        // `--lost-found` writes what it finds.
        "fsck" => only(&[
            "--full",
            "--strict",
            "--unreachable",
            "--dangling",
            "--no-dangling",
            "--no-reflogs",
            "--connectivity-only",
            "--name-objects",
            "--root",
            "--tags",
            "--cache",
            "-v",
            "--verbose",
            "--progress",
            "--no-progress",
        ]),
        // For a page of the manual a program of the settings is started.
        "help" => only(&["-a", "--all", "-g", "--guides", "-c", "--config", "--no-verbose", "--no-aliases"]),
        "var" => matches!(rest, [one] if one.known().is_some_and(|name| name == "-l" || name.starts_with("GIT_"))),
        "submodule" => first == Some("status"),
        "notes" => matches!(first, Some("list" | "show")),
        "bisect" => first == Some("log"),
        "config" => {
            let asks = matches!(first, Some("get" | "list" | "--get" | "--get-all" | "--list" | "-l" | "--get-regexp"));
            (asks || names_a_setting(rest))
                && !may_have(rest, "e", &["--add", "--unset", "--replace-all", "--edit", "--remove-section", "--rename-section"])
        }
        "symbolic-ref" => rest.len() <= 2 && words::operands(rest).count() == 1 && !may_have(rest, "dm", &["--delete"]),
        _ => false,
    }
}

/// Words with which `git reflog` shows: anything else may be a verb of it.
fn shows_reflog(word: &Word) -> bool {
    let is_number = |text: &str| text.strip_prefix('-').is_some_and(|n| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()));
    word.known().is_some_and(|text| {
        matches!(text, "HEAD" | "@" | "--all" | "--oneline" | "--no-abbrev" | "--relative-date")
            || text.starts_with("--date=")
            || is_number(text)
    })
}

/// A format that shows signatures: `%GG`, `%(signature:grade)`.
fn asks_for_signature(word: &Word) -> bool {
    let is_format = word.text.starts_with("--") || word.text.contains('%');
    is_format && (word.text.contains("%G") || word.text.contains("signature"))
}

/// An option that says how what is listed is sorted and shown.
fn says_how(text: &str) -> bool {
    ["--sort=", "--format=", "--color=", "--column=", "--abbrev="].iter().any(|option| text.starts_with(option))
}

/// `git config user.name`, alone or from one of the files: with a value behind it it would set it.
fn names_a_setting(rest: &[Word]) -> bool {
    let rest = match rest {
        [scope, rest @ ..] if matches!(scope.known(), Some("--global" | "--local" | "--system" | "--worktree")) => rest,
        rest => rest,
    };
    matches!(rest, [one] if one.known().is_some_and(|name| name.contains('.') && !name.starts_with('-')))
}

/// `--no-list` and the like undo an option that made the verb one that reads: what follows is then a name to be made.
fn takes_back(word: &Word) -> bool {
    const OPTIONS_OF_THEIR_OWN: [&str; 6] = ["--no-merged", "--no-contains", "--no-color", "--no-column", "--no-abbrev", "--no-includes"];
    let option = word.text.split('=').next().unwrap_or_default();
    option.starts_with("--no-") && !OPTIONS_OF_THEIR_OWN.contains(&option)
}

/// Returns the operation that loses something or reaches others.
///
/// `commit --amend` is none: the commit it replaces stays in the reflog of the session's own repository.
fn gated(verb: &str, rest: &[Word]) -> Option<String> {
    let named = without_names(verb, rest);
    let rest = named.as_slice();
    let first = rest.first().map(|word| word.text.as_str());
    let is_unknown_first = rest.first().is_some_and(words::may_be_option);
    let force = || may_have(rest, "f", &["--force"]);
    let operation = match verb {
        "push" if only_tries_to_push(rest) => return None,
        "push" | "send-email" | "send-pack" | "filter-branch" | "filter-repo" | "prune" => verb,
        "svn" if matches!(first, Some("dcommit")) => "svn dcommit",
        "p4" if matches!(first, Some("submit")) => "p4 submit",
        "lfs" if matches!(first, Some("push" | "prune")) => "lfs push",
        "lfs" if matches!(first, Some("migrate")) => "lfs migrate",
        "reset" if may_have(rest, "", &["--hard", "--merge", "--keep"]) => "reset --hard",
        // A setting, or a form of `--force` that nobody thought of, removes as well.
        "clean" if !is_dry_run(rest) => "clean -f",
        "checkout-index" if may_have(rest, "fa", &["--force", "--all"]) => "checkout of files",
        "read-tree" if may_have(rest, "u", &["--reset"]) => "reset --hard",
        "subtree" if matches!(first, Some("push")) || is_unknown_first => "push",
        "checkout" if throws_away(rest) => "checkout of files",
        "restore" if !has(rest, "S", &["--staged"]) || may_have(rest, "W", &["--worktree"]) => "restore",
        "switch" if may_have(rest, "f", &["--force", "--discard-changes"]) => "switch --discard-changes",
        // A branch of that name that is there already is put elsewhere.
        "checkout" if may_have(rest, "B", &[]) => "checkout -B",
        "switch" if may_have(rest, "C", &["--force-create"]) => "switch -C",
        "fetch" | "pull" if force() || rest.iter().any(|word| word.text.starts_with('+')) => "fetch --force",
        "branch" if may_have(rest, "DMCf", &["--force"]) => "branch -D",
        "tag" if may_have(rest, "df", &["--delete", "--force"]) => "tag -d",
        "stash" if matches!(first, Some("drop" | "clear")) || is_unknown_first => "stash drop",
        // Further on, such a word may be what another option is given.
        "rebase" if !matches!(first, Some("--abort" | "--continue" | "--skip" | "--quit" | "--show-current-patch")) => "rebase",
        "reflog" if matches!(first, Some("expire" | "delete" | "drop")) || is_unknown_first => "reflog expire",
        "gc" if may_have(rest, "", &["--prune"]) => "gc --prune",
        "update-ref" if may_have(rest, "d", &["--stdin", "--delete"]) => "update-ref -d",
        "update-ref" if !makes_new(rest) => "update-ref",
        "symbolic-ref" if may_have(rest, "d", &["--delete"]) => "symbolic-ref -d",
        "config" if sets_what_is_kept(rest) => "config of what git keeps",
        "fast-import" if may_have(rest, "", &["--force"]) => "fast-import --force",
        "notes" if matches!(first, Some("remove" | "prune")) => "notes remove",
        "rm" if only_from_index(rest) => return None,
        "rm" if may_have(rest, "r", &[]) && words::operands(rest).any(is_all) => "rm of all files",
        "worktree" if matches!(first, Some("add")) && may_have(rest, "B", &[]) => "checkout -B",
        "worktree" if matches!(first, Some("remove")) && force() => "worktree remove -f",
        "submodule" if matches!(first, Some("deinit")) && force() => "submodule deinit -f",
        "submodule" if matches!(first, Some("update")) && force() => "submodule update -f",
        "apply" if may_have(rest, "R", &["--reverse"]) => "apply -R",
        "rm" if force() => "rm -f",
        "mv" if force() => "mv -f",
        "repack" if may_have(rest, "d", &[]) => "repack -d",
        _ => return None,
    };
    Some(operation.to_owned())
}

/// `git rm --cached`, which leaves the files where they are: `git add` brings them back.
pub(super) fn only_from_index(rest: &[Word]) -> bool {
    let is_plain = |word: &Word| {
        let is_option = word.text.starts_with('-');
        matches!(word.text.as_str(), "--" | "--cached" | "--force" | "--ignore-unmatch" | "--quiet")
            || !is_option
            || (!word.text.starts_with("--") && word.text[1..].chars().all(|c| "rfqn".contains(c)))
    };
    has(rest, "", &["--cached"]) && !rest.iter().any(words::may_be_option) && rest.iter().all(is_plain)
}

/// A `push` that certainly changes nothing there: it says `-n`, and every other option is known to take no value and to take nothing back.
fn only_tries_to_push(rest: &[Word]) -> bool {
    const FLAGS: [&str; 12] = [
        "--all",
        "--delete",
        "--dry-run",
        "--follow-tags",
        "--force",
        "--force-with-lease",
        "--mirror",
        "--porcelain",
        "--prune",
        "--set-upstream",
        "--tags",
        "--verbose",
    ];
    let options = || rest.iter().take_while(|word| word.text != "--").filter(|word| word.text.starts_with('-'));
    let letters = |word: &Word| word.text.strip_prefix('-').is_some_and(|rest| rest.chars().all(|c| "nfuvqd".contains(c)));
    let says_so = |word: &Word| word.text == "--dry-run" || (letters(word) && word.text.contains('n'));
    let is_plain = |word: &Word| letters(word) || FLAGS.contains(&word.text.as_str());
    !rest.iter().any(words::may_be_option) && options().all(is_plain) && options().any(says_so)
}

/// Returns whether a setting says how long git keeps what nothing names any more.
fn decides_what_is_kept(setting: &str) -> bool {
    const HARMLESS: [&str; 4] = ["gc.auto", "gc.autodetach", "gc.autopacklimit", "gc.logexpiry"];
    let name = setting.split('=').next().unwrap_or(setting);
    name.starts_with("gc.") && !HARMLESS.contains(&name)
}

/// `git config gc.pruneExpire now`, and the removal of it all by its section.
fn sets_what_is_kept(rest: &[Word]) -> bool {
    let asks = matches!(rest.first().map(|word| word.text.as_str()), Some("get" | "list" | "--get" | "--get-all" | "--list" | "-l"));
    !asks && !names_a_setting(rest) && rest.iter().any(|word| decides_what_is_kept(&word.text.to_ascii_lowercase()))
}

/// An `update-ref` that makes a reference only where there is none: it says that the old value is nothing.
fn makes_new(rest: &[Word]) -> bool {
    let is_nothing = |word: &&Word| word.kind == WordKind::Known && word.text.chars().all(|c| c == '0');
    let operands: Vec<&Word> = words::operands(rest).collect();
    matches!(operands.as_slice(), [.., _, _, old] if is_nothing(old)) && !rest.iter().any(words::may_be_option)
}

/// A path that stands for all there is.
fn is_all(word: &Word) -> bool {
    let text = word.text.as_str();
    // All but what is named, or all by a pattern of git's that names nothing.
    let by_magic = [":!", ":^", ":(exclude"].iter().any(|magic| text.starts_with(magic)) || text.starts_with(":(") && text.ends_with(')');
    by_magic || text.chars().all(|c| "./*".contains(c)) || matches!(text, ":/" | "/workspace" | "$PWD")
}

/// A `clean` that certainly removes nothing: it says `-n`, and every other option is known to take no value and to take nothing back.
fn is_dry_run(rest: &[Word]) -> bool {
    let options = || rest.iter().take_while(|word| word.text != "--").filter(|word| word.text.starts_with('-'));
    let letters = |word: &Word| word.text.strip_prefix('-').is_some_and(|rest| rest.chars().all(|c| "ndxXfq".contains(c)));
    let says_so = |word: &Word| word.text == "--dry-run" || (letters(word) && word.text.contains('n'));
    let is_plain = |word: &Word| letters(word) || matches!(word.text.as_str(), "--dry-run" | "--force" | "--quiet");
    !rest.iter().any(words::may_be_option) && options().all(is_plain) && options().any(says_so)
}
