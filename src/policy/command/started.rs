//! Programs that start others from a text in a language of their own, which no shell reads: `sed` and `awk`.

use std::collections::BTreeSet;

use super::awk;
use super::sed_script;
use crate::code::shell;
use crate::code::shell::Command;
use crate::code::shell::Doubt;
use crate::code::shell::Redirection;
use crate::code::shell::Script;
use crate::code::shell::Word;
use crate::code::shell::WordKind;
use crate::code::shell::expansion_end;

/// Programs that say what is there, or what a file says, and make nothing of it.
const SAYING: [&str; 10] = ["basename", "cat", "date", "dirname", "git", "head", "hostname", "nproc", "uname", "whoami"];

/// Returns why a script may start more than its commands, for what their own languages may start.
pub(super) fn doubt(script: &Script) -> Option<Doubt> {
    let mut known = None;
    script.commands.iter().enumerate().find_map(|(at, command)| {
        let name = command.name()?;
        let may_start = match name {
            "sed" | "gsed" => sed_script::may_start(&told(script, at, known.get_or_insert_with(|| Known::of(script)))),
            "awk" | "gawk" | "mawk" | "nawk" | "original-awk" => awk::may_start(command.arguments()),
            _ => false,
        };
        may_start.then(|| Doubt { what: name.to_owned(), why: "its own script may start programs that cannot be read" })
    })
}

/// What is known of a script's variables.
struct Known<'a> {
    /// Those that hold the names of files.
    files: BTreeSet<&'a str>,
    /// Those whose values the script puts together, or takes from elsewhere.
    put_together: BTreeSet<&'a str>,
    writes: bool,
}

impl<'a> Known<'a> {
    fn of(script: &'a Script) -> Self {
        let mut known = Self {
            files: shell::looped_files(script),
            put_together: script.values.iter().map(|value| value.variable.as_str()).collect(),
            writes: script.commands.iter().any(|command| command.redirections.iter().any(Redirection::writes)),
        };
        let names = |word: &'a Word| word.text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        for command in &script.commands {
            let set = command.assignments.iter().filter(|set| !set.value.as_ref().is_some_and(|value| known.is_plain(value)));
            let set: Vec<&str> = set.map(|set| set.name.as_str()).collect();
            known.put_together.extend(set);
            let gives = command.name().is_some_and(super::unset::gives);
            known.put_together.extend(command.arguments().iter().filter(|_| gives).flat_map(names));
        }
        known
    }

    /// Returns whether a value ends no part of a script, or is what is there, and nothing that the script wrote.
    fn is_plain(&self, value: &Word) -> bool {
        match value.known() {
            Some(text) => text.chars().all(|c| c.is_ascii_alphanumeric() || "._-+".contains(c)),
            None => shell::HERE.contains(&value.text.as_str()) || self.says(&value.text),
        }
    }

    fn says(&self, text: &str) -> bool {
        let inside = text.strip_prefix("$(").and_then(|rest| rest.strip_suffix(')'));
        inside.is_some_and(|inside| {
            let is_one = !inside.contains(['|', ';', '&', '`', '(', '<', '>', '\n']);
            is_one && inside.split_whitespace().next().is_some_and(|program| SAYING.contains(&program)) && !self.writes
        })
    }

    /// Returns whether an expansion is a text that nothing in the script puts together.
    fn is_text(&self, expansion: &str) -> bool {
        if shell::HERE.contains(&expansion) || self.says(expansion) {
            return true;
        }
        let name = expansion.strip_prefix('$').unwrap_or(expansion);
        let name = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name);
        let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        begins && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') && !self.put_together.contains(name)
    }
}

/// Returns the words of `sed` with a name in the place of each that is a file, and of what a variable puts into a script: that is no more than a
/// text, as long as nobody wrote it for something else.
fn told(script: &Script, at: usize, known: &Known<'_>) -> Vec<Word> {
    let command = &script.commands[at];
    let word = |text: String| Word { text, kind: WordKind::Known, plain: false, quoted: false };
    // Where a script is expected that is none which can be read.
    let file = || word("./file".to_owned());
    let is_listed = command.is_started && lists_files(&script.commands[..at]);
    let is_looped = |told: &Word| shell::quoted_variable(told).is_some_and(|name| known.files.contains(name));
    let told = |told: &Word| match told.kind {
        WordKind::Pattern if shell::names_file(told) => file(),
        WordKind::Known | WordKind::Pattern => told.clone(),
        WordKind::Unknown if is_looped(told) || (told.text == "…" && is_listed) => file(),
        WordKind::Unknown => filled(told, known).map_or_else(|| told.clone(), word),
    };
    command.arguments().iter().map(told).collect()
}

/// Returns whether `xargs` is the last of these, and is given the names of files as they lie there.
fn lists_files(before: &[Command]) -> bool {
    let [.., list, xargs] = before else { return false };
    let verb = list.arguments().first().and_then(Word::known);
    let lists = match list.name() {
        Some("find") => verb.is_some_and(|place| place.starts_with(|c: char| c.is_ascii_alphanumeric() || "./".contains(c))),
        Some("git") => verb == Some("ls-files"),
        _ => false,
    };
    let prints = |word: &Word| word.known().is_none_or(|text| text.contains("printf") || text.starts_with("-exec"));
    lists && xargs.name() == Some("xargs") && xargs.piped && !list.arguments().iter().any(prints)
}

/// Returns a script with a letter in the place of each of its expansions, where none becomes more than a text that stands there.
fn filled(word: &Word, known: &Known<'_>) -> Option<String> {
    let (mut made, mut rest) = (String::new(), word.text.as_str());
    if !word.quoted || rest.starts_with(['$', '`', '-']) {
        return None;
    }
    while let Some(begin) = rest.find(['$', '`']) {
        made.push_str(&rest[..begin]);
        let (expansion, behind) = rest[begin..].split_at(expansion_end(&rest[begin..]));
        // The last line, or the end of a pattern.
        if expansion == "$" {
            made.push('$');
        } else if known.is_text(expansion) {
            made.push('x');
        } else {
            return None;
        }
        rest = behind;
    }
    made.push_str(rest);
    Some(made)
}
