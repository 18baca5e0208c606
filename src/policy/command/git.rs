//! What a git command does: reads, changes the session's repository, or destroys what git keeps.

use super::words;
use super::words::has;
use super::words::may_have;
use podbay_code::shell::Command;
use podbay_code::shell::Script;
use podbay_code::shell::Word;
use podbay_code::shell::WordKind;
use podbay_wire::GIT_READS as READS;
use podbay_wire::behind_git_options;

/// What git is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Reads,
    /// It reads a repository whose settings may name programs.
    ReadsElsewhere,
    Changes,
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
    if name.strip_prefix("git-").is_some_and(|verb| READS.contains(&verb)) {
        return Some(Use::Changes);
    }
    if name != "git" {
        return None;
    }
    let mut arguments = command.arguments();
    let is_set = command.assignments.iter().any(|assignment| assignment.name.starts_with("GIT_CONFIG"));
    let mut is_plain = !is_set && command.program().is_some_and(|program| program.text == "git");
    let mut is_elsewhere = false;
    while let Some((first, rest)) = arguments.split_first() {
        match first.known() {
            None => return Some(Use::Changes),
            Some(option @ ("-C" | "-c")) => {
                is_elsewhere |= option == "-C";
                // What a setting runs, the reading looked into; an alias means another verb.
                let setting = rest.first().map(|word| word.text.to_ascii_lowercase()).unwrap_or_default();
                is_plain &= option == "-C" || !setting.starts_with("alias.");
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
    Some(match is_plain && reads(verb, rest) {
        true if is_elsewhere => Use::ReadsElsewhere,
        true => Use::Reads,
        false => Use::Changes,
    })
}

/// Returns a command of git as a rule names it: without what stands in front of the verb, and by the verb where it is a program of its own.
pub(crate) fn plain(command: &Command) -> Option<Command> {
    let name = command.name()?;
    let mut words = vec![Word { text: "git".to_owned(), kind: WordKind::Known, plain: true, quoted: false }];
    if let Some(verb) = name.strip_prefix("git-").filter(|verb| !verb.is_empty()) {
        words.push(Word { text: verb.to_owned(), ..words[0].clone() });
        words.extend(command.arguments().iter().cloned());
    } else if name == "git" {
        let texts: Vec<&str> = command.arguments().iter().map(|word| word.text.as_str()).collect();
        let rest = &command.arguments()[texts.len() - behind_git_options(&texts).len()..];
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
