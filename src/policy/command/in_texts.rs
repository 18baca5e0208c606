//! Protected names that a program is told to open in a language of its own: `python3 -c 'open(".env")'`, `ed x <<< 'w .env'`.
//!
//! A name counts where what opens a file is given it. One that is only text (`line != ".env"`), that is put together or held by a variable of that
//! language, is not known by this: a secret that is there is hidden in the sandbox all the same.

use std::collections::BTreeSet;

use super::protected::secret;
use crate::code::shell::Command;
use crate::code::shell::is_language;

/// Programs that take an order a line.
const BY_LINES: [&str; 13] = ["ed", "ex", "mysql", "nvim", "psql", "red", "rview", "rvim", "sqlite3", "vi", "view", "vim", "vimdiff"];
/// Their orders that open a file.
const ORDERS: [&str; 25] = [
    ".backup", ".import", ".once", ".output", ".read", ".restore", ".save", "\\copy", "\\g", "\\i", "\\o", "\\w", "E", "W", "attach", "e",
    "edit", "f", "r", "read", "saveas", "tee", "w", "wq", "write",
];
/// Those whose texts are read by themselves.
const READ: [&str; 4] = ["awk", "gawk", "mawk", "nawk"];
/// Functions and methods that are given a file: the last part of their names, in lower case.
const OPENING: [&str; 44] = [
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
    "join",
    "link",
    "load_dotenv",
    "loadtxt",
    "move",
    "open",
    "opensync",
    "path",
    "purepath",
    "readfile",
    "readfilesync",
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
const QUOTES: [char; 3] = ['"', '\'', '`'];
/// How far in front of a name is looked for what it is given to, in bytes.
const BEFORE_MAX: usize = 200;

/// Returns the names of secrets that the texts of a command have opened.
pub(super) fn names(command: &Command) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let Some(name) = command.name() else { return names };
    let is_by_lines = BY_LINES.contains(&name);
    if !is_by_lines && (!is_language(name) || READ.contains(&name)) {
        return names;
    }
    for text in command.told().chain(command.runs.iter().map(String::as_str)) {
        if is_by_lines { ordered(text, &mut names) } else { opened(text, &mut names) }
    }
    // `F=.env perl -e 'open F, $ENV{F}'`
    command.assignments.iter().filter_map(|set| set.value.as_ref()).for_each(|value| secret(&value.text, &mut names));
    names
}

/// Adds the names behind orders: `w .env`, `.output '.env'`.
fn ordered(text: &str, names: &mut BTreeSet<String>) {
    let mut before = "";
    for word in text.split(|c: char| c.is_whitespace() || matches!(c, ';' | '|')) {
        if ORDERS.contains(&before) {
            secret(word.trim_matches(QUOTES), names);
        }
        // With the lines it is about in front, and as an order that overwrites: `1,5w!`.
        let order =
            word.trim_start_matches(|c: char| c.is_ascii_digit() || ":,.$%+".contains(c) && !word.starts_with('.')).trim_end_matches('!');
        before = if word.eq_ignore_ascii_case("attach") { "attach" } else { order };
    }
}

/// Adds the names in quotes that are given to what opens a file.
fn opened(text: &str, names: &mut BTreeSet<String>) {
    let mut from = 0;
    while let Some(begin) = text[from..].find(QUOTES).map(|at| from + at) {
        let quote = text[begin..].chars().next().unwrap_or('"');
        let Some(end) = text[begin + 1..].find(quote).map(|at| begin + 1 + at) else { return };
        let mut found = BTreeSet::new();
        // Of perl's `open`: `">.env"`.
        secret(text[begin + 1..end].trim_start_matches(['>', '<', '+', ' ']), &mut found);
        if !found.is_empty() && is_given_to_opening(&text[text.floor_char_boundary(begin.saturating_sub(BEFORE_MAX))..begin]) {
            names.append(&mut found);
        }
        from = end + 1;
    }
}

/// Returns whether what stands right behind a text is one of the things that a function is given which opens a file.
fn is_given_to_opening(before: &str) -> bool {
    // `Path(x) / ".env"`
    if before.trim_end().ends_with(" /") {
        return true;
    }
    let mut depth = 0_i32;
    let mut begin = 0;
    for (at, c) in before.char_indices().rev() {
        match c {
            ')' | ']' | '}' => depth += 1,
            '(' if depth == 0 => {
                if is_opening(before[..at].trim_end()) {
                    return true;
                }
                // `open(os.path.join(d, ".env"))`, `open((".env"))`
                if !before[..at].ends_with('(') {
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
    before[begin..].split_whitespace().any(|word| is_opening(word.trim_end_matches(',')) && !word.contains('('))
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
        let script = crate::code::shell::read(text);
        let found: BTreeSet<String> = script.commands.iter().flat_map(names).collect();
        assert_eq!(found, expected.iter().map(|name| (*name).to_owned()).collect(), "{text}");
    }

    #[test]
    fn a_name_counts_where_something_opens_it() {
        check("python3 -c 'open(\".env\", \"w\")'", &[".env"]);
        check("python3 -c 'import os; open(os.path.join(\"a\", \".env\"))'", &[".env"]);
        check("python3 -c 'print((Path(d) / \".env\").read_text())'", &[".env"]);
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
        check("python3 -m pytest -k \".env\"", &[]);
        check("perl -pi -e 's/\".env\"/\".env.local\"/' a.txt", &[]);
        check("ed -s README.md <<'E'\n1i\nCopy .env.example to .env and edit it.\n.\nw\nE", &[]);
        check("sqlite3 a.db \"insert into t values ('.env')\"", &[]);
        check("echo 'open(\".env\")'", &[]);
    }
}
