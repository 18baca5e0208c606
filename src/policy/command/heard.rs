//! Who may run what the text wrote into files: a program that it starts later, whatever the file is called by then.
//!
//! Which file a program runs cannot be followed through all that copies, renames and reads in. So what the text writes is taken for what the next
//! one is given that may run anything. That a file says something and is only written, looked at or committed, is no matter.

use std::collections::BTreeMap;

use podbay_code::shell::Command;
use podbay_code::shell::RUNNING as RUNNING_FILES;
use podbay_code::shell::Script;
use podbay_code::shell::Word;
use podbay_code::shell::WrittenText;
use podbay_code::shell::is_language;

/// Programs that make or test what the project holds: they run sources, settings and scripts, and no text for people.
const BUILDERS: [&str; 52] = [
    "bazel",
    "bun",
    "bundle",
    "cargo",
    "cc",
    "clang",
    "cmake",
    "composer",
    "conda",
    "ctest",
    "dotnet",
    "eslint",
    "gcc",
    "gem",
    "gmake",
    "go",
    "gradle",
    "hatch",
    "hugo",
    "jest",
    "just",
    "make",
    "mdbook",
    "meson",
    "mix",
    "mkdocs",
    "mvn",
    "ninja",
    "nox",
    "npm",
    "npx",
    "pandoc",
    "phpunit",
    "pip",
    "pip3",
    "pnpm",
    "poetry",
    "pre-commit",
    "prettier",
    "pytest",
    "rake",
    "rspec",
    "swift",
    "task",
    "tox",
    "tsc",
    "turbo",
    "uv",
    "vite",
    "vitest",
    "webpack",
    "yarn",
];
/// What the shell does itself, and programs, that start nothing and are in no other list.
const QUIET: [&str; 55] = [
    ":",
    "actionlint",
    "alias",
    "apt",
    "apt-get",
    "basename",
    "break",
    "builtin",
    "cd",
    "codespell",
    "command",
    "continue",
    "convert",
    "curl",
    "date",
    "dirname",
    "docker",
    "dot",
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
    "msgfmt",
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
    "vale",
    "wget",
    "xargs",
    "xmllint",
    "yamllint",
    "zip",
];
/// Those of them that only look, unless one of these verbs is among the words.
const RUNNING: [(&str, &[&str]); 2] = [("cargo", &["bench", "nextest", "r", "run", "t", "test"]), ("go", &["generate", "run", "test"])];
/// Texts for people: how their names end, or what they are called.
const DOCUMENTS: [&str; 10] = [".adoc", ".csv", ".html", ".log", ".markdown", ".md", ".mdx", ".org", ".rst", ".txt"];
const CALLED: [&str; 8] = ["authors", "changelog", "contributing", "license", "notes", "notice", "readme", "todo"];

/// Programs that only say their version for `-v`.
const TELLING: [&str; 4] = ["node", "perl", "php", "ruby"];
/// What is found nowhere, wherever programs are looked for.
const BUILT_IN: [&str; 14] =
    ["[", "alias", "cd", "declare", "echo", "exit", "export", "false", "local", "printf", "read", "set", "true", "unset"];

/// What the whole text says of who runs what.
#[derive(Clone, Copy)]
struct Around {
    /// It writes settings of git without saying so to git.
    sets_git: bool,
    /// It says where programs are looked for.
    sets_path: bool,
}

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
    let around = Around { sets_git: script.commands.iter().any(sets_git), sets_path: script.commands.iter().any(sets_path) };
    let mut coming = script.written.iter().peekable();
    let mut waiting: Vec<&WrittenText> = Vec::new();
    for (at, command) in script.commands.iter().enumerate() {
        while let Some(written) = coming.next_if(|written| script.repeats || written.at < at) {
            waiting.push(written);
        }
        if waiting.is_empty() {
            continue;
        }
        let hears = hears(command, around, &is_data);
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
    if !RUNNING_FILES.contains(&command.name()?) {
        return program.text.contains('/').then(|| program.text.rsplit('/').next()).flatten();
    }
    operand(command)?.text.rsplit('/').next()
}

/// Returns the first word of a shell that is no option, and belongs to none.
fn operand(command: &Command) -> Option<&Word> {
    let mut words = command.arguments().iter();
    while let Some(word) = words.next() {
        if !word.text.starts_with(['-', '+']) {
            return Some(word);
        }
        if !word.text.starts_with("--") && word.text.contains(['o', 'O']) {
            words.next();
        }
    }
    None
}

fn hears(command: &Command, around: Around, is_data: impl Fn(&Command) -> bool) -> Hears {
    let Some(program) = command.program().filter(|_| !command.starts_another) else { return Hears::Nothing };
    let Some(name) = command.name() else { return Hears::All };
    if name == "git" {
        return if around.sets_git { Hears::All } else { Hears::Settings };
    }
    let arguments = command.arguments();
    if RUNNING_FILES.contains(&name) {
        // A text for it is read by itself, and one that it only checks is not run.
        let options: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).take_while(|text| text.starts_with(['-', '+'])).collect();
        let is_text = options.iter().any(|text| !text.starts_with("--") && text.contains('c'));
        let enters = operand(command).is_some_and(|word| word.text.ends_with("bin/activate"));
        return if is_text || enters || options == ["-n"] { Hears::Nothing } else { Hears::All };
    }
    let is_by_path = program.text.contains('/') && !program.text.starts_with("/bin/") && !program.text.starts_with("/usr/bin/");
    if let [only] = arguments
        && !is_by_path
        && (only.text == "--version" && !matches!(name, "pytest" | "flake8") || only.text == "-v" && TELLING.contains(&name))
    {
        return Hears::Nothing;
    }
    // `python3 -m pytest`, and what stands in the words, which is read: they take no text for people for a program.
    let is_module = |word: &Word| word.text == "-m" && name.starts_with("python");
    if is_language(name) && arguments.first().is_some_and(|word| is_module(word) || matches!(word.text.as_str(), "-c" | "-e")) {
        return Hears::Sources;
    }
    if BUILDERS.contains(&name) {
        let verbs = RUNNING.iter().find(|(known, _)| *known == name).map(|(_, verbs)| *verbs);
        let runs = |text: &str| text.contains("tool") || text.starts_with("--config") || verbs.is_some_and(|verbs| verbs.contains(&text));
        let is_run = verbs.is_none() || arguments.iter().any(|word| runs(&word.text));
        return if is_run { Hears::Sources } else { Hears::Nothing };
    }
    if is_by_path || around.sets_path && !BUILT_IN.contains(&name) {
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
    let goes = |word: &Word| word.text.trim_end_matches('/').split('/').any(|part| part == ".git");
    let is_there = matches!(command.name(), Some("cd" | "pushd")) && command.arguments().iter().any(goes);
    is_there || targets.chain(command.arguments().iter().filter(|_| copies)).any(is_it)
}

fn sets_path(command: &Command) -> bool {
    command.assignments.iter().any(|set| set.name == "PATH") || command.arguments().iter().any(|word| word.text.starts_with("PATH="))
}
