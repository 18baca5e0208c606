//! Protected names that a program is told to open in a language of its own: `python3 -c 'open(".env")'`, `ed x <<< 'w .env'`.
//!
//! A name counts where what opens a file is given it. One that is only text (`line != ".env"`), that is put together or held by a variable of that
//! language, is not known by this: a secret that is there is hidden in the sandbox all the same.

use std::collections::BTreeSet;

use super::protected::secret;
use podbay_code::shell::Command;
use podbay_code::shell::is_language;

/// Programs that take an order a line.
const BY_LINES: [&str; 13] = ["ed", "ex", "mysql", "nvim", "psql", "red", "rview", "rvim", "sqlite3", "vi", "view", "vim", "vimdiff"];
/// Orders of any of them that open a file.
const ORDERS: [&str; 31] = [
    ".backup", ".import", ".log", ".once", ".open", ".output", ".read", ".restore", ".save", "E", "W", "\\copy", "\\g", "\\i", "\\o",
    "\\w", "attach", "e", "edit", "f", "r", "read", "saveas", "source", "tee", "vacuum", "w", "wq", "write", "x", "xit",
];
/// Those whose texts are read by themselves.
const READ: [&str; 4] = ["awk", "gawk", "mawk", "nawk"];
/// Functions and methods that are given a file: the last part of their names, in lower case.
const OPENING: [&str; 48] = [
    "appendfile",
    "appendfilesync",
    "chmod",
    "chown",
    "config",
    "connect",
    "copy",
    "copy2",
    "copyfile",
    "copyfilesync",
    "cp",
    "cpsync",
    "createreadstream",
    "createwritestream",
    "dofile",
    "file",
    "file_get_contents",
    "file_put_contents",
    "fopen",
    "foreach",
    "getlines",
    "link",
    "load_dotenv",
    "loadtxt",
    "makedirs",
    "mkfifo",
    "move",
    "mv",
    "open",
    "opensync",
    "read_csv",
    "readfile",
    "readfilesync",
    "readlines",
    "rename",
    "renamesync",
    "require",
    "rm",
    "rmsync",
    "savetxt",
    "symlink",
    "sysopen",
    "touch",
    "truncate",
    "unlink",
    "unlinksync",
    "writefile",
    "writefilesync",
];
/// Methods that many kinds of things have, with those of which they open a file.
const OF_FILES: [(&str, [&str; 4]); 6] = [
    ("delete", ["File", "Files", "FileUtils", "Pathname"]),
    ("new", ["File", "Pathname", "Files", "IO"]),
    ("read", ["File", "IO", "Pathname", "Files"]),
    ("remove", ["os", "fs", "shutil", "FileUtils"]),
    ("replace", ["os", "shutil", "Path", "pathlib"]),
    ("write", ["File", "IO", "Pathname", "Files"]),
];
/// What is done with a path behind it, which opens the file: `Path(".env").read_text()`.
const METHODS: [&str; 14] = [
    "chmod",
    "hardlink_to",
    "mkdir",
    "open",
    "read_bytes",
    "read_text",
    "rename",
    "replace",
    "rmdir",
    "symlink_to",
    "touch",
    "unlink",
    "write_bytes",
    "write_text",
];
const QUOTES: [char; 3] = ['"', '\'', '`'];
/// Longest name that is looked at, in bytes.
const NAME_MAX: usize = 512;
/// How far in front of a name is looked for what it is given to, in bytes.
const BEFORE_MAX: usize = 200;

/// Returns the names of secrets that the texts of a command have opened.
pub(super) fn names(command: &Command) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let Some(name) = command.name() else { return names };
    let in_files = command.run_files().filter(|(language, _)| is_read(language)).map(|(_, text)| text);
    in_files.for_each(|text| opened(text, &mut names));
    let is_by_lines = BY_LINES.contains(&name);
    if !is_by_lines && !is_read(name) {
        return names;
    }
    for text in command.told() {
        if is_by_lines { ordered(text, &mut names) } else { opened(text, &mut names) }
    }
    // `F=.env perl -e 'open F, $ENV{F}'`
    command.assignments.iter().filter_map(|set| set.value.as_ref()).for_each(|value| secret(&value.text, &mut names));
    names
}

fn is_read(language: &str) -> bool {
    is_language(language) && !READ.contains(&language)
}

/// Adds the names behind orders: `1,5w! .env`, `.output '.env'`.
fn ordered(text: &str, names: &mut BTreeSet<String>) {
    for line in text.split(['\n', ';', '|']) {
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else { continue };
        // The lines that it is about stand in front.
        let order = first.trim_start_matches(|c: char| c.is_ascii_digit() || (":,$%+".contains(c)));
        let order = order.trim_end_matches('!').trim_start_matches(|c| c == '.' && !first.starts_with('.')).to_owned();
        let order = if first.starts_with(|c: char| c.is_ascii_alphabetic()) && order.len() > 2 { order.to_lowercase() } else { order };
        if ORDERS.contains(&order.as_str()) {
            words.for_each(|word| secret(word.trim_matches(QUOTES).trim_start_matches(['>', '!']), names));
        }
    }
}

/// Adds the names in quotes that are given to what opens a file. A quotation mark may stand for itself, as in `don't`, so each one may begin a
/// text.
fn opened(text: &str, names: &mut BTreeSet<String>) {
    for (begin, mark) in text.match_indices(QUOTES) {
        let behind = &text[begin + 1..];
        let within = &behind[..behind.floor_char_boundary(NAME_MAX)];
        let Some((name, _)) = within.split_once(mark).filter(|(name, _)| !name.contains('\n')) else { continue };
        let mut found = BTreeSet::new();
        // Of perl's `open`: `">.env"`.
        secret(name.trim_start_matches(['>', '<', '+', ' ']), &mut found);
        let before = || &text[text.floor_char_boundary(begin.saturating_sub(BEFORE_MAX))..begin];
        if !found.is_empty() && (is_given_to_opening(before()) || is_path_opened(&behind[name.len() + 1..])) {
            names.append(&mut found);
        }
    }
}

/// Returns whether a method that opens a file stands behind a path, and brackets that end there.
fn is_path_opened(behind: &str) -> bool {
    let Some(method) = behind.trim_start_matches([')', ' ']).strip_prefix('.').filter(|_| behind.starts_with(')')) else { return false };
    METHODS.iter().any(|known| method.strip_prefix(known).is_some_and(|rest| rest.starts_with('(')))
}

/// Returns whether what stands right behind a text is one of the things that a function is given which opens a file.
fn is_given_to_opening(before: &str) -> bool {
    let mut depth = 0_i32;
    let mut begin = 0;
    for (at, c) in before.char_indices().rev() {
        match c {
            ')' | ']' | '}' => depth += 1,
            '(' if depth == 0 => {
                let callee = before[..at].trim_end();
                if is_opening(callee) {
                    return true;
                }
                // `open(os.path.join(d, ".env"))`, `open((".env"))`
                if !callee.ends_with(['(', ',']) && !callee.ends_with("path.join") && !callee.ends_with("Path") {
                    return false;
                }
            }
            // It is one of a list, or a key.
            '[' | '{' if depth == 0 => return false,
            '(' | '[' | '{' => depth -= 1,
            ';' | '\n' if depth == 0 => {
                begin = at + 1;
                break;
            }
            _ => {}
        }
    }
    // Without brackets: `File.read ".env"`, `open F, ">.env"`.
    let is_plain = |word: &str| !word.contains(|c| c == '(' || QUOTES.contains(&c));
    before[begin..].split_whitespace().any(|word| is_plain(word) && is_opening(word.trim_end_matches(',')))
}

/// Returns whether a text ends with the name of what opens a file.
fn is_opening(text: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let (rest, last) = text.split_at(text.trim_end_matches(is_part).len());
    let of = rest.trim_end_matches(['.', ':']);
    let of = &of[of.trim_end_matches(is_part).len()..];
    OPENING.contains(&last.to_lowercase().as_str()) || OF_FILES.iter().any(|(method, owners)| *method == last && owners.contains(&of))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let script = podbay_code::shell::read(text);
        let found: BTreeSet<String> = script.commands.iter().flat_map(names).collect();
        assert_eq!(found, expected.iter().map(|name| (*name).to_owned()).collect(), "{text}");
    }

    #[test]
    fn a_name_counts_where_something_opens_it() {
        check("python3 -c 'open(\".env\", \"w\")'", &[".env"]);
        check("python3 -c 'import os; open(os.path.join(\"a\", \".env\"))'", &[".env"]);
        check("python3 -c 'print((Path(d) / \".env\").read_text()); Path(\".netrc\").unlink()'", &[".env", ".netrc"]);
        check("python3 - <<'E'\n# don't worry\nopen('.env', 'w')\nE", &[".env"]);
        check("cat > s <<'E'\n#!/usr/bin/env python3\nopen('.env', 'w')\nE\nchmod +x s; ./s", &[".env"]);
        check("python3 -c 'import os; os.rename(\"a.txt\", \".env\"); os.remove(\".netrc\")'", &[".env", ".netrc"]);
        check("python3 - <<'E'\nwith open('/workspace/.ssh/x') as f:\n  pass\nE", &[".ssh"]);
        check("cat > x.py <<'E'\nopen('.env', 'w')\nE\npython3 x.py", &[".env"]);
        check("node -e 'require(\"fs\").writeFileSync(`.env`, \"x\")'", &[".env"]);
        check("perl -e 'open F, \">.env\"'", &[".env"]);
        check("ruby -e 'puts File.read \"config/../.env.production\"'", &[".env.production"]);
        check("F=.env perl -e 'open F, $ENV{F}'", &[".env"]);
        check("ed a <<< 'w .env'", &[".env"]);
        check("sqlite3 a.db '.output .env' 'select 1'", &[".env"]);
        check("sqlite3 a.db \"ATTACH '.env' AS e\"", &[".env"]);
        check("vim -es -c '1,5w! .env' a", &[".env"]);
    }

    #[test]
    fn a_name_that_is_only_text_does_not() {
        check("node -e 'console.log(process.env[\"HOME\"], {...process.env})'", &[]);
        check("python3 -c \"open('.gitignore', 'a').write('.env')\"", &[]);
        check("python3 -c 'lines = open(\".gitignore\").read(); print(\".env\" not in lines)'", &[]);
        check("python3 -c 'skip = [\".git\", \".env\", \"env\"]'", &[]);
        check("python3 -c 's = s.replace(\".env\", \".env.local\"); l.remove(\".env\")'", &[]);
        check("python3 -c 'd = {\"client_secret.json\": 1}; print(\"~/.ssh/config\")'", &[]);
        check("python3 -c 'print(\",\".join(x for x in a if x != \".env\"), Path(\".env\").exists(), \"\".join((\".env\", \"a\")))'", &[]);
        check("python3 -c 'p = tmp_path / \".env\"; print(os.path.exists(os.path.join(d, \".env\")))'", &[]);
        check("perl -e 'print \"touch \", \".env\"'", &[]);
        check("ed -s README.md <<'E'\n$a\nThen edit .env and run it.\n.\nE", &[]);
        check("sqlite3 a.db \"insert into t values ('then edit .env and so on')\"", &[]);
        check("python3 -m pytest -k \".env\"", &[]);
        check("perl -pi -e 's/\".env\"/\".env.local\"/' a.txt", &[]);
        check("ed -s README.md <<'E'\n1i\nCopy .env.example to .env and edit it.\n.\nw\nE", &[]);
        check("sqlite3 a.db \"insert into t values ('.env')\"", &[]);
        check("echo 'open(\".env\")'", &[]);
    }
}
