//! Commands that certainly only read.
//!
//! A program gets into these tables only where every option that writes or runs something is known and left out. In doubt a command is not
//! here, and a person is asked.

use std::collections::BTreeSet;

use super::allowed;
use super::awk;
use super::builtins;
use super::sed;
use super::variables::is_own;
use super::words::before_dashes;
use super::words::may_be_option;
use super::words::may_begin_option;
use super::words::may_have;
use super::words::operands;
use podbay_code::shell::Assignment;
use podbay_code::shell::Command;
use podbay_code::shell::Redirection;
use podbay_code::shell::Script;
use podbay_code::shell::Word;
use podbay_code::shell::WordKind;

/// Programs that neither write nor run anything, whatever they are given.
const ANYTHING: [&str; 74] = [
    ":",
    "b2sum",
    "basename",
    "break",
    "cat",
    "cd",
    "cksum",
    "cmp",
    "column",
    "comm",
    "continue",
    "cut",
    "dirname",
    "du",
    "df",
    "echo",
    "egrep",
    "exit",
    "expand",
    "expr",
    "false",
    "fgrep",
    "fmt",
    "fold",
    "free",
    "grep",
    "groups",
    "head",
    "hexdump",
    "id",
    "join",
    "jq",
    "ls",
    "lsblk",
    "lscpu",
    "md5sum",
    "nl",
    "nproc",
    "numfmt",
    "od",
    "paste",
    "pgrep",
    "popd",
    "printenv",
    "ps",
    "pushd",
    "pwd",
    "readelf",
    "readlink",
    "realpath",
    "return",
    "rev",
    "seq",
    "sha1sum",
    "sha224sum",
    "sha256sum",
    "sha384sum",
    "sha512sum",
    "shasum",
    "shift",
    "sleep",
    "stat",
    "strings",
    "sum",
    "tac",
    "tail",
    "tr",
    "true",
    "tty",
    "type",
    "uname",
    "wc",
    "which",
    "yes",
];

/// Programs that only read but for these options: letters, and long ones.
const BUT: [(&str, &str, &[&str]); 14] = [
    ("date", "s", &["--set"]),
    ("diff", "l", &["--paginate"]),
    ("eza", "", &[]),
    ("fd", "xX", &["--exec", "--exec-batch"]),
    ("file", "C", &["--compile"]),
    // Its own file of devices.
    ("lsof", "D", &[]),
    ("nm", "p", &["--plugin"]),
    ("objdump", "p", &["--plugin"]),
    ("rg", "z", &["--pre", "--pre-glob", "--hostname-bin", "--search-zip"]),
    ("size", "p", &["--plugin"]),
    ("sort", "oST", &["--output", "--compress-program", "--temporary-directory", "--buffer-size"]),
    ("tokei", "", &[]),
    ("tree", "oR", &["--output"]),
    ("whoami", "", &[]),
];

/// Programs that say which version they are. Those that a file of the project may put another program in the place of, such as the
/// toolchain of `cargo` and `go`, are none of them, nor those that load plugins of the project first, such as `pytest` and `flake8`.
const VERSIONED: [&str; 28] = [
    "bash",
    "black",
    "clang",
    "cmake",
    "curl",
    "docker",
    "eslint",
    "g++",
    "gcc",
    "java",
    "javac",
    "make",
    "mypy",
    "ninja",
    "node",
    "npm",
    "perl",
    "php",
    "pip",
    "pip3",
    "python",
    "python3",
    "ruby",
    "ruff",
    "shellcheck",
    "sqlite3",
    "tsc",
    "uv",
];

/// Those to which `-v` says the same, and not to say more of what they do.
const VERSIONED_IN_SHORT: [&str; 7] = ["docker", "make", "node", "npm", "perl", "php", "ruby"];

/// Returns whether a command certainly only reads. These variables hold names of files and nothing else.
pub(super) fn only_reads(command: &Command, files: &BTreeSet<&str>) -> bool {
    if !around(command, files) {
        return false;
    }
    let Some(program) = command.program() else { return true };
    let Some(name) = program.known() else { return false };
    if !builtins::declares_no_list(name, &command.assignments) {
        return false;
    }
    // What it starts is judged on its own. A function's name says nothing here: the same word may reach a program, in front of its definition,
    // in another shell or behind a program that starts it.
    command.starts_another || program_reads(name, command.arguments())
}

/// Returns whether what stands around a program changes nothing: no file is written, no variable set that programs obey.
pub(super) fn around(command: &Command, files: &BTreeSet<&str>) -> bool {
    // Where `read` splits lines concerns nobody else.
    let of_read = |name: &str| name == "IFS" && command.name() == Some("read");
    let own = |assignment: &Assignment| is_own(&assignment.name) || of_read(&assignment.name);
    command.redirections.iter().all(|redirection| is_harmless(redirection, files)) && command.assignments.iter().all(own)
}

fn is_harmless(redirection: &Redirection, files: &BTreeSet<&str>) -> bool {
    let Some(target) = &redirection.target else { return true };
    if redirection.writes() {
        return matches!(target.known(), Some("/dev/null" | "/dev/stdout" | "/dev/stderr"));
    }
    // `<&NAME` and the like was looked at above; a name is never a device that talks, and what is not known may be one.
    let bare = target.text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).or_else(|| target.text.strip_prefix('$'));
    let is_file = target.kind == WordKind::Unknown && bare.is_some_and(|name| files.contains(name));
    !redirection.reads() || is_file || (!target.text.starts_with("/dev/") && !may_begin_option(target))
}

/// Returns the variables that hold names of files and nothing else: a loop goes through them, no name is a device that talks, and nothing else
/// gives the variable a value.
pub(super) fn files(script: &Script) -> BTreeSet<&str> {
    const SET: [&str; 9] = ["read", "mapfile", "readarray", "declare", "typeset", "local", "export", "readonly", "getopts"];
    let is_file = |word: &Word| word.kind != WordKind::Unknown && !word.text.starts_with("/dev/");
    let names = |word: &Word, variable: &str| word.known().is_none_or(|text| text.split(['=', '[', '+']).next() == Some(variable));
    let is_set = |variable: &str| {
        script.commands.iter().filter(|command| found_one_by_one(command) != Some(variable)).any(|command| {
            let sets = command.name().is_some_and(|name| SET.contains(&name));
            command.assignments.iter().any(|set| set.name == variable)
                || (sets && command.arguments().iter().any(|word| names(word, variable)))
        })
    };
    let found = script.commands.iter().filter_map(found_one_by_one);
    let mut files: BTreeSet<&str> = script.values.iter().map(|value| value.variable.as_str()).chain(found).collect();
    files.retain(|variable| {
        let mut values = script.values.iter().filter(|value| value.variable == *variable);
        values.all(|value| is_file(&value.word)) && !is_set(variable)
    });
    files
}

/// Returns the variable into which `read` puts what `find` finds, one after the other: no line's end in a name makes two of one.
fn found_one_by_one(command: &Command) -> Option<&str> {
    let arguments = command.arguments();
    let until_zero = arguments.windows(2).any(|pair| pair[0].text == "-d" && pair[1].known() == Some(""));
    let [options @ .., last] = arguments else { return None };
    let is_one = options.iter().all(|word| word.text.is_empty() || matches!(word.text.as_str(), "-r" | "-d" | "-rd"));
    let is_known = command.name() == Some("read") && command.takes_paths && until_zero && is_one;
    last.known().filter(|name| is_known && is_own(name))
}

fn program_reads(name: &str, arguments: &[Word]) -> bool {
    // `./ls` is somebody else's.
    let name = ["/bin/", "/usr/bin/"].iter().find_map(|folder| name.strip_prefix(folder)).unwrap_or(name);
    if ANYTHING.contains(&name) {
        return true;
    }
    if let Some((_, letters, long)) = BUT.iter().find(|(known, ..)| *known == name) {
        // Some take more options from the file behind an `@`.
        let has_file = arguments.iter().any(|word| word.text.starts_with('@'));
        let acts = has_file || may_have(arguments, letters, long) || (name == "date" && sets_clock(arguments));
        return are_certain(arguments) && !acts;
    }
    if let [one] = arguments
        && (VERSIONED.contains(&name) && matches!(one.known(), Some("--version" | "-V"))
            || VERSIONED_IN_SHORT.contains(&name) && one.known() == Some("-v"))
    {
        return true;
    }
    if let Some(only_reads) = builtins::only_reads(name, arguments).or_else(|| allowed::only_reads(name, arguments)) {
        return only_reads;
    }
    match name {
        "java" => matches!(arguments, [one] if one.known() == Some("-version")),
        "tee" => arguments.iter().all(|word| {
            matches!(
                word.known(),
                Some("/dev/null" | "/dev/stdout" | "/dev/stderr" | "-a" | "-i" | "-p" | "--append" | "--ignore-interrupts")
            )
        }),
        "ip" => allowed::ip(arguments),
        "top" => allowed::top(arguments),
        // A script around `grep`, which takes names apart.
        "zgrep" | "zegrep" | "zfgrep" => arguments.iter().all(|word| word.known().is_some_and(|text| !text.contains('\n'))),
        "env" | "hostname" => arguments.is_empty(),
        "command" => arguments.first().is_some_and(|word| matches!(word.known(), Some("-v" | "-V"))),
        "uniq" => are_certain(arguments) && operands(arguments).count() <= 1 && arguments.iter().all(|word| word.known().is_some()),
        "find" => find(arguments),
        "sed" => sed::only_reads(arguments),
        "awk" | "gawk" | "mawk" | "nawk" => awk::only_reads(arguments),
        "tar" => {
            matches!(arguments.first().and_then(Word::known), Some("tf" | "-tf" | "tvf" | "-tvf" | "tzf" | "-tzf"))
                && names_one(&arguments[1..])
        }
        "unzip" => matches!(arguments.first().and_then(Word::known), Some("-l" | "-v")) && names_one(&arguments[1..]),
        _ => false,
    }
}

/// `date 01011200` sets the clock.
fn sets_clock(arguments: &[Word]) -> bool {
    let is_time = |text: &str| text.len() >= 8 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    arguments.iter().any(|word| word.known().is_none_or(is_time))
}

/// Returns whether no word may turn out to be an option.
pub(super) fn are_certain(arguments: &[Word]) -> bool {
    !before_dashes(arguments).iter().any(may_be_option)
}

/// One file, certainly no option and no place on another machine.
fn names_one(arguments: &[Word]) -> bool {
    matches!(arguments, [one] if one.known().is_some_and(|text| !text.starts_with('-') && !text.contains(':')))
}

/// Programs behind `-exec` are judged on their own.
fn find(arguments: &[Word]) -> bool {
    let acts = |word: &Word| {
        let text = word.text.as_str();
        text == "-delete" || text == "-fls" || text.starts_with("-fprint") || text.starts_with("-files0-from")
    };
    // The names of files that take the place of `*.rs` end in that, as nothing does that acts.
    let is_suffix =
        |text: &str| text.strip_prefix("*.").is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_alphanumeric()));
    let is_certain = |(at, word): (usize, &Word)| match word.kind {
        WordKind::Known => true,
        WordKind::Pattern => {
            let before = at.checked_sub(1).and_then(|at| arguments.get(at)).map_or("", |word| word.text.as_str());
            !may_be_option(word) || (matches!(before, "-name" | "-iname") && is_suffix(&word.text))
        }
        WordKind::Unknown => false,
    };
    !arguments.iter().any(acts) && arguments.iter().enumerate().all(is_certain)
}

#[cfg(test)]
mod tests {
    use super::super::Reading;
    use podbay_event::Capability;
    use podbay_wire::Shell;

    #[track_caller]
    fn check(command: &str, reads: bool) {
        let found = Reading::new(command, None, Shell::Bash).capabilities == [Capability::ReadFiles];
        assert_eq!(found, reads, "{command}");
    }

    #[test]
    fn options_that_write_or_run_are_known_however_they_are_written() {
        for command in [
            "sort -o x f",
            "sort -ox f",
            "sort -uo x f",
            "sort --output=x f",
            "sort --out x f",
            "sort --compress-program=./x f",
            "sort *",
            "sort $X f",
            "rg --pre ./x a",
            "rg --pre=./x a",
            "date -s now",
            "date --se=now",
            "tree -o x",
            "uniq a b",
            "find . -delete",
            "find . -fprintf x p",
            "find $X",
            "fd -x rm",
            "file -C -m x",
            "git diff --output=x",
            "git diff --outp=x",
            "git log --ext-diff",
            "git grep -Oless x",
            "./ls",
            "cat > x",
            "PATH=. ls",
        ] {
            check(command, false);
        }
        for command in
            ["sort -u f", "sort src/*.rs", "sort -- *", "rg -n a src", "date +%F", "tree -L 2", "uniq -c", "find . -name *.rs", "/bin/ls"]
        {
            check(command, true);
        }
    }
}
