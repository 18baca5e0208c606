//! Who may run what the text wrote into files: a program that it starts later, whatever the file is called by then.
//!
//! Which file a program runs cannot be followed through all that copies, renames and reads in. So what the text writes is taken for what the next
//! one is given that may run anything. That a file says something and is only written, looked at or committed, is no matter.

use std::collections::BTreeMap;

use crate::code::shell::Command;
use crate::code::shell::Script;
use crate::code::shell::Word;
use crate::code::shell::WrittenText;

const SHELLS: [&str; 16] =
    ["bash", "sh", "dash", "ash", "zsh", "ksh", "rbash", "mksh", "lksh", "yash", "posh", "fish", "csh", "tcsh", "source", "."];
/// Programs that make or test what the project holds: they run sources, settings and scripts, and no text for people.
const BUILDERS: [&str; 30] = [
    "bazel", "bun", "bundle", "cargo", "cmake", "conda", "eslint", "gem", "gmake", "go", "gradle", "jest", "just", "make", "meson", "mvn",
    "ninja", "npm", "pip", "pip3", "pnpm", "poetry", "prettier", "pytest", "rake", "task", "tox", "uv", "vitest", "yarn",
];
/// What the shell does itself, and programs, that start nothing and are in no other list.
const QUIET: [&str; 46] = [
    ":",
    "alias",
    "apt",
    "apt-get",
    "basename",
    "break",
    "builtin",
    "cd",
    "command",
    "continue",
    "curl",
    "date",
    "dirname",
    "docker",
    "echo",
    "exec",
    "exit",
    "false",
    "getopts",
    "gh",
    "gofmt",
    "hash",
    "helm",
    "install",
    "jobs",
    "kubectl",
    "ln",
    "mapfile",
    "mkfifo",
    "podman",
    "popd",
    "printf",
    "pushd",
    "pwd",
    "readarray",
    "return",
    "rsync",
    "rustfmt",
    "shift",
    "sleep",
    "sync",
    "terraform",
    "time",
    "true",
    "wget",
    "xargs",
];
/// Those of them that only look, unless one of these verbs is among the words.
const RUNNING: [(&str, &[&str]); 2] = [("cargo", &["bench", "nextest", "r", "run", "t", "test"]), ("go", &["generate", "run", "test"])];
/// Texts for people: how their names end, or what they are called.
const DOCUMENTS: [&str; 4] = [".md", ".rst", ".txt", ".adoc"];
const CALLED: [&str; 8] = ["authors", "changelog", "contributing", "license", "notes", "notice", "readme", "todo"];

/// What a command may run of files that were written before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hears {
    Nothing,
    /// Settings of git, and its hooks.
    Settings,
    /// All but texts for people.
    Sources,
    All,
}

/// Returns what was written that commands may run, by their places: each text stands with the first one that may. `is_data` says of which
/// commands the words start nothing.
pub(super) fn heard(script: &Script, is_data: impl Fn(&Command) -> bool) -> BTreeMap<usize, Vec<&str>> {
    let mut heard = BTreeMap::new();
    if script.written.is_empty() {
        return heard;
    }
    let sets_git = script.commands.iter().any(sets_git);
    let mut coming = script.written.iter().peekable();
    let mut waiting: Vec<&WrittenText> = Vec::new();
    for (at, command) in script.commands.iter().enumerate() {
        while let Some(written) = coming.next_if(|written| written.at < at) {
            waiting.push(written);
        }
        if waiting.is_empty() {
            continue;
        }
        let hears = hears(command, sets_git, &is_data);
        if hears == Hears::Nothing {
            continue;
        }
        // What is run by its name is read as what it is.
        let run = by_name(command);
        waiting.retain(|written| run != Some(written.file.as_str()));
        let texts: Vec<&str> = waiting.extract_if(.., |written| takes(hears, &written.file)).map(|written| written.text.as_str()).collect();
        if !texts.is_empty() {
            heard.insert(at, texts);
        }
    }
    heard
}

/// Returns the file that a command has a shell run, by the last part of its name.
fn by_name(command: &Command) -> Option<&str> {
    let program = command.program()?;
    if !SHELLS.contains(&command.name()?) {
        return program.text.contains('/').then(|| program.text.rsplit('/').next()).flatten();
    }
    command.arguments().iter().find(|word| !word.text.starts_with(['-', '+'])).and_then(|word| word.text.rsplit('/').next())
}

fn hears(command: &Command, sets_git: bool, is_data: impl Fn(&Command) -> bool) -> Hears {
    let Some(program) = command.program().filter(|_| !command.starts_another) else { return Hears::Nothing };
    let Some(name) = command.name() else { return Hears::All };
    if name == "git" {
        return if sets_git { Hears::All } else { Hears::Settings };
    }
    if SHELLS.contains(&name) {
        // A text for it is read by itself, and one that it only checks is not run.
        let options = command.arguments().iter().take_while(|word| word.text.starts_with(['-', '+']));
        let is_text = |word: &Word| !word.text.starts_with("--") && word.text.contains('c') || word.text == "-n";
        return if options.clone().any(is_text) { Hears::Nothing } else { Hears::All };
    }
    let arguments = command.arguments();
    if !arguments.is_empty() && arguments.iter().all(|word| matches!(word.text.as_str(), "--version" | "-v" | "-V" | "--help")) {
        return Hears::Nothing;
    }
    // `python3 -m pytest`
    if name.starts_with("python") && arguments.first().is_some_and(|word| word.text == "-m") {
        return Hears::Sources;
    }
    if BUILDERS.contains(&name) {
        let verbs = RUNNING.iter().find(|(known, _)| *known == name).map(|(_, verbs)| *verbs);
        let is_run = verbs.is_none_or(|verbs| arguments.iter().any(|word| verbs.contains(&word.text.as_str())));
        return if is_run { Hears::Sources } else { Hears::Nothing };
    }
    if program.text.contains('/') && !program.text.starts_with("/bin/") && !program.text.starts_with("/usr/bin/") {
        return Hears::All;
    }
    if QUIET.contains(&name) || is_data(command) { Hears::Nothing } else { Hears::All }
}

fn takes(hears: Hears, file: &str) -> bool {
    match hears {
        Hears::Nothing => false,
        Hears::Settings => is_of_git(file),
        Hears::Sources => !DOCUMENTS.iter().any(|ending| file.ends_with(ending)) && !CALLED.contains(&file.to_lowercase().as_str()),
        Hears::All => true,
    }
}

/// Returns whether git may take a file for settings, or for a hook.
fn is_of_git(file: &str) -> bool {
    let is_hook = ["applypatch-msg", "commit-msg", "fsmonitor", "post-", "pre-", "prepare-", "push-to", "reference-", "update"];
    matches!(file, "config" | "config.worktree" | ".gitconfig" | "gitconfig" | ".gitattributes" | "attributes" | ".gitmodules")
        || is_hook.iter().any(|begin| file.starts_with(begin))
}

/// Returns whether a command may write settings of git without saying so to git.
fn sets_git(command: &Command) -> bool {
    let is_it = |word: &Word| {
        let text = word.text.trim_end_matches('/');
        text.contains(".git/") || text.ends_with("gitconfig") || text.ends_with("git/config") || text.ends_with("/hooks")
    };
    let targets =
        command.redirections.iter().filter(|redirection| redirection.writes()).filter_map(|redirection| redirection.target.as_ref());
    let copies = matches!(command.name(), Some("cp" | "dd" | "install" | "ln" | "mv" | "rsync" | "sed" | "tee"));
    targets.chain(command.arguments().iter().filter(|_| copies)).any(is_it)
}
