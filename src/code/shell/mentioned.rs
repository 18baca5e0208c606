//! Files that a command is given: a program that is not known to leave them as they are may write what it likes into them.

use super::Command;
use super::LineProgram;
use super::Word;
use super::runs;
use super::written::key;

/// Programs that write into no file which their words name, or in a way that is read by itself, or no more than another form of what is there.
const LEAVING: [&str; 135] = [
    ".",
    "[",
    "[[",
    "ack",
    "ag",
    "alias",
    "autoflake",
    "autopep8",
    "basename",
    "bashate",
    "bat",
    "black",
    "cat",
    "cd",
    "checkbashisms",
    "chgrp",
    "chmod",
    "chown",
    "cloc",
    "cmp",
    "comm",
    "command",
    "coverage",
    "cp",
    "cut",
    "dd",
    "declare",
    "diff",
    "dirname",
    "du",
    "echo",
    "egrep",
    "eslint",
    "exec",
    "exit",
    "expand",
    "export",
    "false",
    "fgrep",
    "file",
    "find",
    "flake8",
    "fold",
    "gdb",
    "getfacl",
    "gofmt",
    "grep",
    "head",
    "hexdump",
    "hyperfine",
    "install",
    "isort",
    "jq",
    "kill",
    "killall",
    "ldd",
    "less",
    "let",
    "link",
    "ln",
    "local",
    "logger",
    "ls",
    "lsof",
    "ltrace",
    "man",
    "md5sum",
    "mkdir",
    "mv",
    "mypy",
    "nl",
    "nm",
    "objdump",
    "od",
    "paste",
    "perf",
    "pgrep",
    "pkill",
    "popd",
    "pre-commit",
    "prettier",
    "printf",
    "pushd",
    "pwd",
    "pyflakes",
    "pylint",
    "pytest",
    "read",
    "readelf",
    "readlink",
    "readonly",
    "realpath",
    "return",
    "rg",
    "rm",
    "rmdir",
    "rsync",
    "ruff",
    "rustfmt",
    "sed",
    "set",
    "setfacl",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "shellcheck",
    "size",
    "sleep",
    "source",
    "standard",
    "stat",
    "strace",
    "strings",
    "tac",
    "tail",
    "tee",
    "test",
    "time",
    "touch",
    "tr",
    "trap",
    "true",
    "type",
    "typeset",
    "umask",
    "unlink",
    "unset",
    "valgrind",
    "wait",
    "wc",
    "which",
    "xargs",
    "yamllint",
    "yapf",
    "zip",
];
/// Programs that make what they are asked for, by rules that are the project's.
const BUILDING: [&str; 25] = [
    "c++", "cargo", "cc", "clang", "clang++", "cmake", "docker", "dotnet", "g++", "gcc", "ghc", "gmake", "go", "gradle", "javac", "just",
    "make", "mvn", "ninja", "npm", "pnpm", "rustc", "tcc", "yarn", "zig",
];

/// Verbs of git that write files which their words name.
const GIT_WRITING: [&str; 6] = ["bundle", "checkout-index", "fast-export", "interpret-trailers", "mailinfo", "merge-file"];

/// Returns the files, by the last parts of their names, that a command may write because its words name them.
pub(super) fn files(command: &Command) -> impl Iterator<Item = String> {
    let name = command.name().unwrap_or_default();
    // What comes before the compiler is text of whatever kind, and what was built is given the words behind.
    let runs = |word: &Word| matches!(word.text.as_str(), "-E" | "cp" | "exec" | "run" | "start");
    let is_text = BUILDING.contains(&name) && command.arguments().iter().any(runs);
    let leaves = command.words.is_empty()
        || LEAVING.contains(&name)
        || (BUILDING.contains(&name) && !is_text)
        || runs::only_checks(command)
        || only_prints(command);
    // Also one that leaves what it looks at writes where an option says so; what a compiler makes is another form of its sources.
    let tells = leaves && LEAVING.contains(&name);
    let said = command.arguments().windows(2).filter(|pair| tells && may_name_output(&pair[0])).map(|pair| key(&pair[1]));
    let glued_to = command.arguments().iter().filter(|word| tells && may_name_output(word));
    let said: Vec<String> = said.chain(glued_to.filter_map(|word| Some(key(&Word::unknown(word.text.split_once('=')?.1))))).collect();
    let words = if leaves { &[] } else { command.arguments() };
    let run = if leaves { None } else { run_by(command) };
    // To git most words name files that it reads: those that it writes stand in an option.
    let is_git = name == "git" && !command.arguments().iter().any(|word| GIT_WRITING.contains(&word.text.as_str()));
    let named = words.iter().enumerate().flat_map(move |(at, word)| {
        let is_behind = at > 0 && may_name_output(&words[at - 1]);
        let whole = (!is_git || is_behind).then_some(word.text.as_str());
        let attached = word.text.split_once('=').map(|(_, value)| value).filter(|_| !is_git || may_name_output(word));
        [whole, attached, glued(word)].into_iter().flatten().map(|text| Word { text: text.to_owned(), ..word.clone() })
    });
    // `GIT_TRACE=FILE`, `OUT=FILE`.
    let told = if leaves { &[][..] } else { &command.assignments };
    let told = told.iter().filter_map(|set| set.value.clone());
    named.chain(told).map(|word| key(&word)).filter(move |file| run.as_ref() != Some(file)).chain(said)
}

/// Returns the file that a command runs, which it therefore only reads.
fn run_by(command: &Command) -> Option<String> {
    let of_language = || {
        let first = command.arguments().iter().find(|word| !word.text.starts_with('-'));
        first.filter(|_| command.name().is_some_and(runs::is_language))
    };
    runs::script(command, None).map(|(file, _)| file).or_else(of_language).map(key)
}

/// Returns whether a program that stands in the command itself does nothing but print what it makes of the lines of its files.
fn only_prints(command: &Command) -> bool {
    match command.name() {
        Some("perl" | "ruby") => LineProgram::of(command).is_some_and(|program| program.only_edits() && !program.is_in_place),
        Some("awk" | "gawk" | "mawk" | "nawk") => {
            let is_told = |word: &Word| {
                word.known().is_none_or(|text| text.starts_with('-') || text.contains(['>', '|', '@']) || text.contains("system"))
            };
            !command.arguments().iter().any(is_told)
        }
        _ => false,
    }
}

/// Returns whether an option may say which file is written: `-o`, `--output`, `--outp`, `--output-directory`, `--junitxml`.
fn may_name_output(option: &Word) -> bool {
    ["-o", "--o", "--log-file", "--junit"].iter().any(|begin| option.text.starts_with(begin))
}

/// Returns what stands right behind the letter of an option.
fn glued(word: &Word) -> Option<&str> {
    let rest = word.text.strip_prefix('-').filter(|rest| !rest.starts_with('-'))?;
    rest.get(1..).filter(|rest| !rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_may_write_is_among_its_words() {
        for (text, expected) in [
            ("foo a.sh", &["a.sh"][..]),
            ("foo --into=d/a.sh x", &["a.sh"]),
            ("foo -oa.sh", &["a.sh"]),
            ("uniq x a.sh", &["a.sh"]),
            ("python3 gen.py a.sh", &["a.sh"]),
            ("bash gen.sh a.sh", &["a.sh"]),
            ("./gen.sh a.sh", &["a.sh"]),
            ("git log --outp=a.sh", &["a.sh"]),
            ("git diff --output a.sh", &["a.sh"]),
            ("git archive -o a.sh HEAD", &["a.sh"]),
            ("git merge-file a.sh b c", &["a.sh"]),
            ("git fast-export --export-marks=a.sh", &["a.sh"]),
            ("GIT_TRACE=$PWD/a.sh git status", &["a.sh"]),
            ("tree -o a.sh", &["a.sh"]),
            ("cc -E -P a.c -o a.sh", &["a.sh"]),
        ] {
            let script = crate::shell::read(text);
            let found: Vec<String> = files(&script.commands[0]).collect();
            assert!(expected.iter().all(|file| found.iter().any(|known| known == file)), "{text}: {found:?}");
        }
    }

    #[test]
    fn what_a_program_only_reads_or_runs_is_not() {
        for text in [
            "chmod +x a.sh",
            "bash a.sh",
            "bash -n a.sh",
            "sh -x d/a.sh",
            "./a.sh",
            "shellcheck a.sh",
            "git add a.sh",
            "git diff a.sh",
            "git commit -m a.sh",
            "python3 a.sh",
            "gcc a.c -o a.sh",
            "make a.sh",
            "[ -f a.sh ]",
        ] {
            let script = crate::shell::read(text);
            assert!(files(&script.commands[0]).all(|file| file != "a.sh"), "{text}");
        }
    }
}
