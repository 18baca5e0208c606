//! Commands that certainly only read.
//!
//! A program gets into these tables only where every option that writes or runs something is known and left out. In doubt a command is not
//! here, and a person is asked.

use std::sync::LazyLock;

use regex::Regex;

use super::words::may_be_option;
use super::words::may_have;
use super::words::operands;
use crate::code::shell::Assignment;
use crate::code::shell::Command;
use crate::code::shell::Redirection;
use crate::code::shell::Script;
use crate::code::shell::Word;
use crate::code::shell::WordKind;

/// Programs that neither write nor run anything, whatever they are given.
const ANYTHING: [&str; 71] = [
    ":",
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
    "getconf",
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
    "lsof",
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
    "sha256sum",
    "sha512sum",
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
];

/// Programs that only read but for these options: letters, and long ones.
const BUT: [(&str, &str, &[&str]); 13] = [
    ("date", "s", &["--set"]),
    ("diff", "l", &["--paginate"]),
    ("eza", "", &[]),
    ("fd", "xX", &["--exec", "--exec-batch"]),
    ("file", "C", &["--compile"]),
    ("nm", "p", &["--plugin"]),
    ("objdump", "p", &["--plugin"]),
    ("rg", "z", &["--pre", "--pre-glob", "--hostname-bin", "--search-zip"]),
    ("size", "p", &["--plugin"]),
    ("sort", "oST", &["--output", "--compress-program", "--temporary-directory", "--buffer-size"]),
    ("tokei", "", &[]),
    ("tree", "oR", &["--output"]),
    ("whoami", "", &[]),
];

/// Programs that say which version they are.
const VERSIONED: [&str; 26] = [
    "bash", "cargo", "clang", "cmake", "curl", "docker", "g++", "gcc", "go", "java", "javac", "make", "ninja", "node", "npm", "perl",
    "php", "pip", "pip3", "python", "python3", "ruby", "rustc", "rustup", "sqlite3", "uv",
];

/// Variables that change no more than how something looks.
const LOOKS: [&str; 9] = ["LANG", "LC_ALL", "LC_CTYPE", "LC_COLLATE", "LC_MESSAGES", "TZ", "COLUMNS", "LINES", "NO_COLOR"];

/// Builtins that read the value of a list once more.
const DECLARES: [&str; 6] = ["local", "declare", "typeset", "export", "readonly", "unset"];

/// Returns whether a command certainly only reads.
pub(super) fn only_reads(command: &Command, script: &Script) -> bool {
    if !around(command) {
        return false;
    }
    let Some(program) = command.program() else { return true };
    let Some(name) = program.known() else { return false };
    if DECLARES.contains(&name) && !command.assignments.iter().all(is_no_list) {
        return false;
    }
    // What it starts is judged on its own.
    command.starts_another || script.functions.iter().any(|function| function.name == name) || program_reads(name, command.arguments())
}

/// Returns whether what stands around a program changes nothing: no file is written, no variable set that programs obey.
pub(super) fn around(command: &Command) -> bool {
    command.redirections.iter().all(is_harmless) && command.assignments.iter().all(|assignment| is_own(&assignment.name))
}

/// A value that no declaration takes for the text of a list, which it would expand.
fn is_no_list(assignment: &Assignment) -> bool {
    assignment.value.as_ref().is_none_or(|value| value.known().is_some_and(is_plain_value))
}

fn is_plain_value(text: &str) -> bool {
    !text.contains(['(', '$', '`', '['])
}

fn is_harmless(redirection: &Redirection) -> bool {
    let Some(target) = &redirection.target else { return true };
    if redirection.writes() {
        return matches!(target.known(), Some("/dev/null" | "/dev/stdout" | "/dev/stderr"));
    }
    // `<&NAME` and the like was looked at above; a name is never a device that talks.
    !redirection.reads() || !target.text.starts_with("/dev/")
}

/// A variable of the script's own: programs take their orders from names in capitals.
fn is_own(name: &str) -> bool {
    LOOKS.contains(&name) || name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
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
        return are_certain(arguments) && !has_file && !may_have(arguments, letters, long);
    }
    if VERSIONED.contains(&name) && matches!(arguments, [one] if matches!(one.known(), Some("--version" | "-V"))) {
        return true;
    }
    match name {
        // A list's place in it would be computed.
        "test" | "[" | "[[" => {
            !arguments.iter().any(|word| matches!(word.text.as_str(), "-v" | "-R") || may_be_option(word) && word.kind == WordKind::Pattern)
        }
        "printf" => arguments.first().is_some_and(|word| word.known().is_some_and(|text| !text.starts_with("-v"))),
        "read" => arguments.iter().all(|word| word.known().is_some_and(|text| is_read_option(text) || is_variable(text))),
        "set" => sets(arguments),
        "wait" => arguments.iter().all(|word| word.known().is_some_and(is_job)),
        _ if DECLARES.contains(&name) => names_own_variables(arguments),
        "env" | "hostname" => arguments.is_empty(),
        "command" => arguments.first().is_some_and(|word| matches!(word.known(), Some("-v" | "-V"))),
        "uniq" => are_certain(arguments) && operands(arguments).count() <= 1 && arguments.iter().all(|word| word.known().is_some()),
        "find" => find(arguments),
        "sed" => sed(arguments),
        "tar" => {
            matches!(arguments.first().and_then(Word::known), Some("tf" | "-tf" | "tvf" | "-tvf" | "tzf" | "-tzf"))
                && names_one(&arguments[1..])
        }
        "unzip" => matches!(arguments.first().and_then(Word::known), Some("-l" | "-v")) && names_one(&arguments[1..]),
        "go" => matches!(arguments, [one] if one.known() == Some("version")),
        _ => false,
    }
}

/// Returns whether no word may turn out to be an option.
fn are_certain(arguments: &[Word]) -> bool {
    let unknown = |word: &Word| may_be_option(word) || (word.kind == WordKind::Unknown && !word.text.starts_with("<("));
    let dashes = arguments.iter().position(|word| word.text == "--").unwrap_or(arguments.len());
    !arguments[..dashes].iter().any(unknown)
}

fn is_variable(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

fn names_own_variables(arguments: &[Word]) -> bool {
    arguments.iter().all(|word| match word.known() {
        Some("-r" | "-a" | "-A" | "-x" | "-g" | "-p") => true,
        Some(text) => text.split_once('=').map_or(is_variable(text), |(name, value)| is_variable(name) && is_plain_value(value)),
        None => false,
    })
}

/// One file, certainly no option and no place on another machine.
fn names_one(arguments: &[Word]) -> bool {
    matches!(arguments, [one] if one.known().is_some_and(|text| !text.starts_with('-') && !text.contains(':')))
}

fn is_read_option(text: &str) -> bool {
    text.strip_prefix('-').is_some_and(|letters| letters.chars().all(|c| "rsa".contains(c)))
}

fn is_job(text: &str) -> bool {
    let number = text.strip_prefix('%').unwrap_or(text);
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// `set` with options that only make the shell stop earlier or say more: `-k` would make variables of a program's words.
fn sets(arguments: &[Word]) -> bool {
    const NAMES: [&str; 7] = ["pipefail", "errexit", "nounset", "xtrace", "verbose", "noglob", "noclobber"];
    let mut wants_name = false;
    for word in arguments {
        let Some(text) = word.known() else { return false };
        if std::mem::take(&mut wants_name) {
            if !NAMES.contains(&text) {
                return false;
            }
            continue;
        }
        let Some(letters) = text.strip_prefix(['-', '+']) else { return false };
        if text == "--" {
            return true;
        }
        if letters.is_empty() || !letters.chars().all(|c| "euxvfCo".contains(c)) {
            return false;
        }
        wants_name = letters.contains('o');
    }
    true
}

/// Programs behind `-exec` are judged on their own.
fn find(arguments: &[Word]) -> bool {
    let acts = |word: &Word| {
        let text = word.text.as_str();
        text == "-delete" || text == "-fls" || text.starts_with("-fprint") || text.starts_with("-files0-from")
    };
    let is_certain = |word: &Word| match word.kind {
        WordKind::Known => true,
        WordKind::Pattern => !may_be_option(word) || word.text.starts_with('*'),
        WordKind::Unknown => false,
    };
    !arguments.iter().any(acts) && arguments.iter().all(is_certain)
}

/// `sed` that prints, deletes lines or replaces in what it prints: no `w`, no `e`, no file changed.
fn sed(arguments: &[Word]) -> bool {
    static STEP: LazyLock<Regex> = LazyLock::new(|| {
        let place = r"([0-9]+(~[0-9]+)?|\$|/([^/\\\n]|\\[^\n])*/)";
        let replace = ["/", r"\|", "#", ",", ":", "@"].map(|mark| {
            let inner = mark.trim_start_matches('\\');
            format!(r"s{mark}([^{inner}\\\n]|\\[^\n])*{mark}([^{inner}\\\n]|\\[^\n])*{mark}[gIip0-9]*")
        });
        let step = format!(r"^\s*({place}(,\s*(\+?{place}))?)?\s*!?\s*([pdq=]|{})\s*$", replace.join("|"));
        Regex::new(&step).expect("a pattern of our own")
    });
    if !are_certain(arguments) {
        return false;
    }
    let mut scripts = Vec::new();
    let mut words = arguments.iter();
    let mut has_script = false;
    while let Some(word) = words.next() {
        match word.text.as_str() {
            "-n" | "-E" | "-r" | "-u" | "-z" | "-nE" | "-En" | "-nr" | "-rn" | "--quiet" | "--silent" | "--regexp-extended" => {}
            "-e" | "-ne" | "-Ee" | "-nEe" => {
                has_script = true;
                scripts.extend(words.next().and_then(Word::known));
            }
            text if text.starts_with('-') && text != "-" => return false,
            text if !has_script => {
                has_script = true;
                scripts.push(text);
            }
            _ => {}
        }
    }
    let is_step = |text: &str| STEP.is_match(text);
    !scripts.is_empty() && scripts.iter().all(|script| is_step(script) || script.split([';', '\n']).all(is_step))
}

#[cfg(test)]
mod tests {
    use super::super::Reading;
    use crate::event::Capability;

    #[track_caller]
    fn check(command: &str, reads: bool) {
        let found = Reading::new(command, None).capabilities == [Capability::ReadFiles];
        assert_eq!(found, reads, "{command}");
    }

    #[test]
    fn sed_reads_where_its_script_only_prints() {
        for script in ["1,5p", "$p", "/a/p", "/a/,/b/p", "10q", "s/a/b/", "s|a|b|g", r"s/a\/b/c/", "1d;2p", "/^$/d", "10,+5p"] {
            check(&format!("sed -n '{script}' f"), true);
        }
        for script in
            ["w out", "s/a/b/w out", "s/a/b/e", "1e rm x", "e", "s/x/;p;/w out", "r f", "1i\\ x", "s;a;b;w x", "/a/{w x\n}", "$!N;w x"]
        {
            check(&format!("sed -n '{script}' f"), false);
        }
        for command in ["sed -i s/a/b/ f", "sed -ni s/a/b/ f", "sed --in-place=x s/a/b/ f", "sed -f f", "sed s/a/b/ -i f", "sed s/a/b/ $f"]
        {
            check(command, false);
        }
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
