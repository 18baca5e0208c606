//! Protected names in what a program is told in a language of its own: `python3 -c 'open(".env")'`, `ed x <<< 'w .env'`.
//!
//! A name counts where it stands as one. What such a text puts together, or what lies in a file, is not known by this: a secret that is there is
//! hidden in the sandbox all the same.

use std::collections::BTreeSet;

use super::protected::secret;
use crate::code::shell::Command;
use crate::code::shell::is_language;

/// Programs whose orders name files without quotes around them.
const BY_LINES: [&str; 13] = ["ed", "ex", "mysql", "nvim", "psql", "red", "rview", "rvim", "sqlite3", "vi", "view", "vim", "vimdiff"];
/// Those whose texts are read by themselves.
const READ: [&str; 4] = ["awk", "gawk", "mawk", "nawk"];
const QUOTES: [char; 3] = ['"', '\'', '`'];
/// What else may stand around a name: `q(.env)`, `<.env>`, `%w[.env]`.
const BRACKETS: [char; 9] = ['(', ')', '[', ']', '{', '}', '<', '>', '|'];

/// Returns the names of secrets that the texts of a command name.
pub(super) fn names(command: &Command) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let Some(name) = command.name() else { return names };
    let is_by_lines = BY_LINES.contains(&name);
    if !is_by_lines && (!is_language(name) || READ.contains(&name)) {
        return names;
    }
    let given = command.redirections.iter().filter(|redirection| redirection.operator.starts_with("<<"));
    let given = given.filter_map(|redirection| redirection.target.as_ref());
    let texts = command.arguments().iter().chain(given).map(|word| word.text.as_str()).chain(command.given.as_deref());
    for text in texts {
        look(text, is_by_lines, &mut names);
    }
    names
}

fn look(text: &str, is_by_lines: bool, names: &mut BTreeSet<String>) {
    let mut before = None;
    for part in text.split_inclusive(|c: char| QUOTES.contains(&c) || BRACKETS.contains(&c) || (is_by_lines && c.is_whitespace())) {
        let end = part.chars().next_back().filter(|c| QUOTES.contains(c) || BRACKETS.contains(c) || c.is_whitespace());
        let name = part.strip_suffix(|c| Some(c) == end).unwrap_or(part).trim_matches(['+', '&', ' ', '\t', '!']);
        // `process.env[…]` is a variable, and `{...process.env}` all of them.
        let is_quoted = is_by_lines || before.is_some_and(|c| QUOTES.contains(&c));
        let is_path = is_quoted || (name.starts_with(['.', '/', '~']) && !name.starts_with("...")) || name.contains('/');
        if is_path && !name.contains(|c: char| c.is_whitespace() || c == '\\') {
            secret(name, names);
        }
        before = end;
    }
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
    fn a_name_counts_where_it_stands_as_one() {
        check("python3 -c 'open(\".env\", \"w\")'", &[".env"]);
        check("perl -e 'open F, q(>.env)'", &[".env"]);
        check("ruby -e 'puts File.read \"config/../.env.production\"'", &[".env.production"]);
        check("python3 - <<'E'\nopen('/workspace/.ssh/x')\nE", &[".ssh"]);
        check("ed a <<< 'w .env'", &[".env"]);
        check("sqlite3 a.db '.output .env' 'select 1'", &[".env"]);
        check("vim -es -c 'w! .env' a", &[".env"]);
    }

    #[test]
    fn a_variable_and_a_line_of_text_are_no_names() {
        check("node -e 'console.log(process.env[\"HOME\"], {...process.env})'", &[]);
        check("node -p process.env.HOME", &[]);
        check("python3 -c \"open('.gitignore', 'a').write('.env\\n')\"", &[]);
        check("python3 -c 'print(\"put it into .env or so\")'", &[]);
        check("echo 'open(\".env\")'", &[]);
    }
}
