//! Which files a command runs: by a shell, or by a program that takes them for a program or for rules.

use super::Command;
use super::LineProgram;
use super::Word;
use super::sed_script;
use super::written::key;

/// Shells and commands of theirs that run a file.
pub const RUNNING: [&str; 16] =
    ["bash", "sh", "dash", "ash", "zsh", "ksh", "rbash", "mksh", "lksh", "yash", "posh", "fish", "csh", "tcsh", "source", "."];

/// Files that a shell of these reads first where it is a login shell.
const STARTUP: [&str; 5] = [".bash_login", ".bash_profile", ".profile", ".zprofile", "profile"];

/// Programs that run a program in a language of their own.
const LANGUAGES: [&str; 24] = [
    "awk", "bun", "coverage", "deno", "expect", "gawk", "julia", "lua", "luajit", "mawk", "mysql", "nawk", "node", "nodejs", "perl", "php",
    "prove", "psql", "pypy", "python", "Rscript", "ruby", "sqlite", "tclsh",
];

/// Programs that read rules of the folder they run in, with the verbs behind which they do, where not all do, and the files' names.
const RULES: [(&str, &[&str], &[&str]); 51] = [
    ("ant", &[], &["build.xml"]),
    ("bazel", &[], &["BUILD", "BUILD.bazel", "MODULE.bazel", "WORKSPACE"]),
    ("bun", &[], &["package.json"]),
    ("cap", &[], &["Capfile"]),
    ("cargo", CARGO, &["build.rs"]),
    ("cmake", &[], &["CMakeLists.txt", "build.ninja", "Makefile"]),
    ("composer", &[], &["composer.json"]),
    ("ctest", &[], &["CTestTestfile.cmake"]),
    ("deno", &["task"], &["deno.json", "deno.jsonc", "package.json"]),
    ("doit", &[], &["dodo.py"]),
    ("fab", &[], &["fabfile.py"]),
    ("foreman", &[], &["Procfile"]),
    ("gmake", &[], MAKEFILES),
    ("gradle", &[], GRADLE),
    ("gradlew", &[], GRADLE),
    ("grunt", &[], &["Gruntfile.js"]),
    ("gulp", &[], &["gulpfile.js", "gulpfile.mjs", "gulpfile.ts"]),
    ("hatch", &[], &["pyproject.toml", "hatch.toml"]),
    ("honcho", &[], &["Procfile"]),
    ("invoke", &[], &["tasks.py"]),
    ("just", &[], &["justfile", "Justfile", ".justfile"]),
    ("lefthook", &[], &["lefthook.yml"]),
    ("mage", &[], &["magefile.go"]),
    ("make", &[], MAKEFILES),
    ("meson", &[], &["meson.build", "build.ninja"]),
    ("mise", &["r", "run"], &["mise.toml", ".mise.toml"]),
    ("mix", &[], &["mix.exs"]),
    ("mvn", &[], &["pom.xml"]),
    ("ninja", &[], &["build.ninja"]),
    ("node", &["--run"], &["package.json"]),
    ("nox", &[], &["noxfile.py"]),
    ("npm", &[], &["package.json"]),
    ("pdm", &["run"], &["pyproject.toml"]),
    ("pip", PIP, &["setup.py"]),
    ("pip3", PIP, &["setup.py"]),
    ("pixi", &["run"], &["pixi.toml", "pyproject.toml"]),
    ("pnpm", &[], &["package.json"]),
    ("poe", &[], &["pyproject.toml"]),
    ("pre-commit", &[], &[".pre-commit-config.yaml"]),
    ("rake", &[], &["Rakefile", "rakefile"]),
    ("rollup", &[], &["rollup.config.js", "rollup.config.mjs"]),
    ("rye", &["run"], &["pyproject.toml"]),
    ("sbt", &[], &["build.sbt"]),
    ("scons", &[], &["SConstruct", "SConscript"]),
    ("task", &[], &["Taskfile.yml", "Taskfile.yaml"]),
    ("tox", &[], &["tox.ini"]),
    ("turbo", &[], &["package.json"]),
    ("uv", &["build", "pip", "run", "sync"], &["setup.py"]),
    ("vite", &[], &["vite.config.js", "vite.config.mjs", "vite.config.ts"]),
    ("webpack", &[], &["webpack.config.js"]),
    ("yarn", &[], &["package.json"]),
];
const MAKEFILES: &[&str] = &["Makefile", "makefile", "GNUmakefile"];
const GRADLE: &[&str] = &["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"];
const PIP: &[&str] = &["install", "wheel"];
const CARGO: &[&str] = &["b", "bench", "build", "c", "check", "clippy", "d", "doc", "install", "nextest", "r", "run", "rustc", "t", "test"];

/// Programs that look for sources by themselves: what their names end with, and the verbs behind which they run what they make of those.
const SOURCES: [(&str, &[&str], &[&str]); 15] = [
    ("cargo", &["bench", "nextest", "r", "run", "t", "test"], &[".rs", "Cargo.toml", "config.toml"]),
    ("cmake", &[], &[".cmake"]),
    ("dotnet", &["run", "test"], &[".cs", ".csproj"]),
    ("gmake", &[], MAKE_PARTS),
    ("go", &["generate", "run", "test"], &[".go"]),
    ("gradle", &["run", "test"], &[".java", ".kt"]),
    ("jest", &[], SCRIPT_TESTS),
    ("make", &[], MAKE_PARTS),
    ("mvn", &["test", "verify"], &[".java", ".kt"]),
    ("npm", &["t", "test"], SCRIPT_TESTS),
    ("pip", &[], &["pyproject.toml", "setup.cfg"]),
    ("pip3", &[], &["pyproject.toml", "setup.cfg"]),
    ("swift", &["run", "test"], &[".swift"]),
    ("vitest", &[], SCRIPT_TESTS),
    ("zig", &["build", "run", "test"], &[".zig"]),
];
const MAKE_PARTS: &[&str] = &[".mk", ".mak"];
const SCRIPT_TESTS: &[&str] = &[".test.js", ".test.ts", ".spec.js", ".spec.ts"];

/// Programs that make one of the files they are given, or run tests in them.
const COMPILERS: [&str; 18] = [
    "c++", "cc", "clang", "clang++", "dotnet", "g++", "gcc", "ghc", "go", "java", "javac", "kotlinc", "pytest", "rustc", "swift", "tcc",
    "ts-node", "tsx",
];

/// What parts words in a text of another language.
const BETWEEN: &str = " \t\n\r;|&(){}[]$`'\"=,:!<>@#\\";
/// Most names that are looked at in one text.
const NAMES_MAX: usize = 256;

/// Returns the file that a command has a shell run, with the words that it is given: one that it names, or that it reads; `before` is what pipes
/// into it.
pub(super) fn script<'a>(command: &'a Command, before: Option<&'a Command>) -> Option<(&'a Word, Vec<Word>)> {
    let program = command.program()?;
    if !RUNNING.contains(&command.name()?) {
        return program.text.contains('/').then(|| (program, command.words.clone()));
    }
    if only_checks(command) {
        return None;
    }
    // Behind it stands a text, and no file.
    let has = |letter: char| {
        let is_it = |word: &Word| word.text.starts_with('-') && !word.text.starts_with("--") && word.text.contains(letter);
        command.arguments().iter().take_while(|word| word.text.starts_with(['-', '+'])).any(is_it)
    };
    if has('c') {
        return None;
    }
    let first = first_operand(command.arguments()).map(|at| at + 1);
    if let Some(at) = first.filter(|at| !has('s') && !is_stream(&command.words[*at].text)) {
        return Some((&command.words[at], command.words[at..].to_vec()));
    }
    let read = command.redirections.iter().rev().find(|redirection| redirection.operator.starts_with('<'));
    let passed = || {
        let before = before.filter(|before| command.piped && matches!(before.name(), Some("cat" | "head" | "tail")))?;
        before.arguments().iter().find(|word| !word.text.starts_with('-'))
    };
    let file = match read {
        Some(read) => read.target.as_ref().filter(|_| read.reads()),
        None => passed(),
    };
    let words = [program].into_iter().chain(first.into_iter().flat_map(|at| &command.words[at..])).cloned().collect();
    Some((file?, words))
}

/// Returns where the first word of a shell stands that is no option, and belongs to none: `-o pipefail`, `+x`.
fn first_operand(arguments: &[Word]) -> Option<usize> {
    let takes_value = |option: &str| {
        let letters = option.strip_prefix(['-', '+']).filter(|letters| !letters.starts_with('-'));
        letters.is_some_and(|letters| letters.contains(['o', 'O'])) || matches!(option, "--rcfile" | "--init-file")
    };
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        if !word.text.starts_with(['-', '+']) {
            return Some(at);
        }
        at += 1 + usize::from(takes_value(&word.text));
    }
    None
}

/// Returns whether a shell reads what it is given and runs nothing of it.
pub(super) fn only_checks(command: &Command) -> bool {
    let options = command.arguments().iter().take_while(|word| word.text.starts_with(['-', '+']));
    options.map(|word| word.text.as_str()).eq(["-n"])
}

/// Returns whether a path leads to what a program is given to read, and to no file that is there.
pub(super) fn is_stream(path: &str) -> bool {
    path == "-" || path.split('/').any(|part| matches!(part, "dev" | "proc"))
}

/// Returns whether an option makes a shell one that reads its start-up files.
fn is_login(word: &Word) -> bool {
    word.text == "--login" || word.text.strip_prefix('-').is_some_and(|letters| !letters.starts_with('-') && letters.contains('l'))
}

fn is_python(name: &str) -> bool {
    name.starts_with("python")
}

/// Returns whether a command takes a file for a module of `python` wherever that looks for those: `PYTHONPATH=. python3 a.py`.
pub(super) fn is_module(command: &Command, file: &str) -> bool {
    let is_told = command.assignments.iter().any(|set| set.name == "PYTHONPATH");
    is_told && file.strip_suffix(".py").is_some() && command.name().is_some_and(is_python)
}

/// Returns whether a program runs programs in a language of its own.
pub fn is_language(name: &str) -> bool {
    LANGUAGES.contains(&name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.'))
}

/// Returns the files that are named to a compiler, or in the text of a program of another language: it may run them, and may only read them.
pub(super) fn named(command: &Command) -> Vec<String> {
    let Some(name) = command.name() else { return Vec::new() };
    if COMPILERS.contains(&name) {
        return command.arguments().iter().filter(|word| !word.text.starts_with('-')).map(key).collect();
    }
    if !is_language(name) {
        return Vec::new();
    }
    let texts = command
        .documents()
        .chain(command.arguments())
        .map(|word| word.text.as_str())
        .filter(|text| text.contains(['"', '\'', '(', '\n']) || text.contains("import "))
        .chain(command.given.as_deref());
    // `PYTHONSTARTUP=a.py`, `NODE_OPTIONS='-r ./a.js'`.
    let texts = texts.chain(command.assignments.iter().filter_map(|set| Some(set.value.as_ref()?.text.as_str())));
    let parts = texts.flat_map(|text| text.split(|c| BETWEEN.contains(c))).filter(|part| !part.is_empty()).take(NAMES_MAX);
    // `import a`
    parts.map(|part| key(&Word::unknown(part))).flat_map(|file| [format!("{file}.py"), file]).collect()
}

/// What a program does with a source that it looks for by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It runs what it makes of it.
    Run,
    /// It only reads it, or may.
    Read,
}

/// Returns what a program does with a file that it looks for by its name.
pub(super) fn taken_by_itself(command: &Command, file: &str) -> Option<Taken> {
    let is_test = |stem: &str| stem == "conftest" || stem.starts_with("test_") || stem.ends_with("_test");
    if file.strip_suffix(".py").is_some_and(is_test) {
        let is_run = command.name() == Some("pytest") || command.arguments().iter().any(|word| word.text == "pytest");
        return is_run.then_some(Taken::Run);
    }
    let name = tool(command)?;
    let (_, running, _) =
        SOURCES.iter().find(|(known, _, endings)| *known == name && endings.iter().any(|ending| file.ends_with(ending)))?;
    Some(if running.is_empty() || has_verb(command, running) { Taken::Run } else { Taken::Read })
}

/// Returns whether a program looks for sources by itself.
pub(super) fn looks_for_sources(command: &Command) -> bool {
    let is_known = |name: &str| name == "pytest" || SOURCES.iter().any(|(known, ..)| *known == name);
    tool(command).is_some_and(is_known) || command.arguments().iter().any(|word| word.text == "pytest")
}

/// Returns a program's name; of `python3 -m NAME` that of the module.
fn tool(command: &Command) -> Option<&str> {
    let name = command.name()?;
    match command.arguments() {
        [option, module, ..] if name.starts_with("python") && option.text == "-m" => module.known(),
        _ => Some(name),
    }
}

fn has_verb(command: &Command, verbs: &[&str]) -> bool {
    command.arguments().iter().any(|word| word.known().is_none_or(|text| verbs.contains(&text)))
}

/// Returns the names of the files that rules for `make` read in.
pub(super) fn included(rules: &str) -> Vec<String> {
    let named = |line: &str| {
        let rest = ["include ", "-include ", "sinclude "].iter().find_map(|begin| line.trim_start().strip_prefix(begin))?;
        Some(rest.split_whitespace().map(|word| key(&Word::unknown(word))).collect::<Vec<_>>())
    };
    rules.lines().filter_map(named).flatten().take(NAMES_MAX).collect()
}

/// Returns whether it is `make` that a command starts.
pub(super) fn is_make(command: &Command) -> bool {
    matches!(command.name(), Some("make" | "gmake"))
}

/// Returns the files that a command may take for a program of its language, or for rules; `before` is what pipes into it.
pub(super) fn programs(command: &Command, before: Option<&Command>) -> Vec<String> {
    let Some(name) = command.name() else { return Vec::new() };
    if RUNNING.contains(&name) && command.arguments().iter().any(is_login) {
        return STARTUP.map(ToOwned::to_owned).to_vec();
    }
    if matches!(name, "sed" | "gsed") {
        let words = command.arguments();
        let behind = words.windows(2).filter(|pair| sed_script::is_script_option(&pair[0].text)).map(|pair| pair[1].text.as_str());
        let glued = words.iter().filter_map(|word| word.text.strip_prefix("--file=").or_else(|| sed_script::behind_letter(&word.text)));
        return behind.chain(glued).map(|file| key(&Word::unknown(file))).collect();
    }
    let is_language = is_language(name);
    let rules = tool(command).and_then(|tool| RULES.iter().find(|(known, ..)| *known == tool));
    let rules = rules.filter(|(_, verbs, _)| verbs.is_empty() || has_verb(command, verbs)).map(|(.., files)| *files);
    if !is_language && rules.is_none() {
        return Vec::new();
    }
    let mut files: Vec<String> = rules.unwrap_or_default().iter().map(|file| (*file).to_owned()).collect();
    // `CC=./a.sh make`
    let set = command.assignments.iter().filter_map(|set| set.value.as_ref()).filter(|value| value.text.contains('/'));
    files.extend(set.map(key));
    // `python3 FOLDER`, and what it reads in by itself where it finds that.
    let by_itself = ["__main__.py", "sitecustomize.py", "usercustomize.py"];
    files.extend(by_itself.iter().filter(|_| is_python(name)).map(|file| (*file).to_owned()));
    let read = command.redirections.iter().filter(|redirection| redirection.reads()).filter_map(|redirection| redirection.target.as_ref());
    files.extend(read.map(key));
    let piped = before.filter(|before| command.piped && matches!(before.name(), Some("cat" | "head" | "tail" | "tee" | "sed")));
    files.extend(piped.into_iter().flat_map(Command::arguments).map(key));
    // The first word, and what an option is given: behind it, behind a sign, or right behind its letter.
    let only_edits = LineProgram::of(command).is_some_and(|program| program.only_edits());
    let (mut is_behind_option, mut has_first) = (false, rules.is_some() || only_edits);
    for word in command.arguments() {
        let text = word.text.as_str();
        if let Some(option) = text.strip_prefix('-') {
            let value = option.split_once('=').map(|(_, value)| value).or_else(|| option.get(1..).filter(|_| !option.starts_with('-')));
            files.extend(value.filter(|value| !value.is_empty()).map(|value| key(&Word { text: value.to_owned(), ..word.clone() })));
            is_behind_option = true;
            continue;
        }
        if (is_behind_option && !only_edits) || !has_first {
            files.push(key(word));
            // `python3 -m NAME`, `python3 -m NAME.PART`
            files.extend(is_language.then(|| format!("{}.py", key(word))));
            files.extend(key(word).split_once('.').filter(|_| is_python(name)).map(|(module, _)| format!("{module}.py")));
        }
        has_first |= !is_behind_option;
        is_behind_option = false;
    }
    files
}

/// Returns whether it is a shell that reads a file which is run by its own name, as far as the file's first line says it.
pub(super) fn is_for_shell(text: &str) -> bool {
    interpreter(text).is_none_or(|name| RUNNING.contains(&name) && !matches!(name, "source" | "."))
}

/// Returns the program that a file's first line names to read it.
pub(super) fn interpreter(text: &str) -> Option<&str> {
    let line = text.strip_prefix("#!")?.lines().next().unwrap_or_default();
    let mut names = line.split_whitespace().map(|word| word.rsplit('/').next().unwrap_or(word));
    let first = names.next().unwrap_or_default();
    // `env -S python3 -u`
    Some(if first == "env" { names.find(|name| !name.starts_with('-')).unwrap_or_default() } else { first })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, files: &[&str]) {
        let script = crate::shell::read(text);
        let command = script.commands.last().expect("a command");
        let before = script.commands.len().checked_sub(2).map(|at| &script.commands[at]);
        let mut all = programs(command, before);
        all.extend(named(command));
        all.extend(super::script(command, before).map(|(file, _)| key(file)));
        for file in files {
            assert!(all.iter().any(|known| known == file), "{text}: {all:?}");
        }
        assert!(!files.is_empty() || all.is_empty(), "{text}: {all:?}");
    }

    #[test]
    fn what_a_command_runs_is_found() {
        check("./a.sh x", &["a.sh"]);
        check("d/e/a.sh", &["a.sh"]);
        check("\"$D\"/a.sh", &["a.sh"]);
        check("bash -x d/a.sh", &["a.sh"]);
        check("python3.13 -u a.py x", &["a.py"]);
        check("python3 -m mod", &["mod.py"]);
        check("node -r ./hook.js a.js", &["hook.js", "a.js"]);
        check("node --require=./hook.js a.js", &["hook.js", "a.js"]);
        check("awk -fa.awk x", &["a.awk"]);
        check("perl < a.pl", &["a.pl"]);
        check("make -C d all", &["Makefile"]);
        check("make -fM.mk", &["M.mk"]);
        check("make --file=d/M.mk", &["M.mk"]);
        check("npm test", &["package.json"]);
        check("cargo -q run", &["build.rs"]);
        check("cargo fmt", &[]);
        check("cmake --build build", &["build.ninja", "CMakeLists.txt"]);
        check("python3 -m pip install .", &["setup.py"]);
        check("pip list", &[]);
        check("cat a.py | python3", &["a.py"]);
        check("python3 -m json.tool x", &["json.py", "sitecustomize.py"]);
        check("python3 -c \"exec(open('d/a.py').read())\"", &["a.py"]);
        check("gcc -O2 a.c", &["a.c"]);
        check("go run main.go", &["main.go"]);
        check("NODE_OPTIONS='-r ./a.js' node", &["a.js"]);
        check("perl -ne 'do shift' a.pl", &["a.pl"]);
        check("bash -l a.sh", &[".profile", ".bash_profile", "a.sh"]);
        check("sh --login a.sh", &[".profile", "a.sh"]);
        check("bash < d/a.sh", &["a.sh"]);
        check("bash -s x < a.sh", &["a.sh"]);
        check("sh /dev/stdin < a.sh", &["a.sh"]);
        check("cat a.sh | sh", &["a.sh"]);
        check("ls a.sh", &[]);
        check("ls a.sh | sh", &[]);
        check("sh <<< a.sh", &[]);
        check("bash -ec 'ls x/y'", &[]);
        check("grep x a.py", &[]);
    }

    #[test]
    fn sources_that_a_program_looks_for_are_run_or_read() {
        for (text, file, taken) in [
            ("cargo run", "main.rs", Some(Taken::Run)),
            ("cargo build", "main.rs", Some(Taken::Read)),
            ("cargo run", "main.go", None),
            ("go run .", "main.go", Some(Taken::Run)),
            ("go build ./...", "main.go", Some(Taken::Read)),
            ("make", "rules.mk", Some(Taken::Run)),
            ("pip install .", "pyproject.toml", Some(Taken::Run)),
            ("pytest", "test_a.py", Some(Taken::Run)),
            ("ls", "test_a.py", None),
        ] {
            let script = crate::shell::read(text);
            assert_eq!(taken_by_itself(&script.commands[0], file), taken, "{text} {file}");
        }
    }

    #[test]
    fn what_rules_read_in_is_named_by_them() {
        assert_eq!(included("include a.mk d/b.mk\n-include $(X)/c\nall:\n\tinclude x"), ["a.mk", "b.mk", "c", "x"]);
    }

    #[test]
    fn the_first_line_says_who_reads_it() {
        for (text, is_for_shell) in [
            ("rm x", true),
            ("#!/bin/sh -e\nrm x", true),
            ("#!/usr/bin/env bash\nrm x", true),
            ("#!/usr/bin/env python3\n", false),
            ("#!/bin/rm --sh\n", false),
            ("#!/usr/bin/env -S rm sh\n", false),
        ] {
            assert_eq!(super::is_for_shell(text), is_for_shell, "{text}");
        }
    }
}
