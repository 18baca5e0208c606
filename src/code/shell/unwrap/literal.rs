//! Text for a shell that stands, as it is, in a program of another language: `system("…")`.

use super::super::Command;
use super::Inner;
use super::Unwrapped;

/// Languages whose programs stand in the words of a command.
const LANGUAGES: [&str; 10] = ["awk", "gawk", "lua", "mawk", "nawk", "node", "perl", "php", "python", "ruby"];
/// What hands a text to a shell.
const HANDING: [&str; 4] = ["system(", "popen(", "execSync(", "getoutput("];
/// Most of such texts that are read.
const TEXTS_MAX: usize = 8;

/// Adds the texts that such a program hands to a shell, where they are written out.
pub(super) fn handed(name: &str, command: &Command, unwrapped: &mut Unwrapped) {
    if !LANGUAGES.contains(&name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')) {
        return;
    }
    let programs = command.arguments().iter().map(|word| word.text.as_str()).chain(read(name, command));
    let behind = programs.flat_map(|text| HANDING.iter().flat_map(move |call| text.split(call).skip(1)));
    for rest in behind.take(TEXTS_MAX) {
        let rest = rest.trim_start();
        let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'' | '`')) else { continue };
        let Some((text, _)) = rest[1..].split_once(quote) else { continue };
        if !text.trim().is_empty() {
            unwrapped.inner.push(Inner::Text(text.to_owned()));
        }
    }
}

/// Returns the texts that a command reads its program from: those that it is given, where its words name none.
fn read<'a>(name: &str, command: &'a Command) -> impl Iterator<Item = &'a str> {
    // What `awk` reads is always data.
    let names_none = !name.ends_with("awk") && command.arguments().iter().all(|word| is_plain_option(&word.text));
    let texts = command.redirections.iter().filter(|redirection| redirection.operator.starts_with("<<"));
    let texts = texts.filter_map(|redirection| Some(redirection.target.as_ref()?.text.as_str()));
    texts.chain(command.given.as_deref()).filter(move |_| names_none)
}

/// Returns whether a word is an option that names no program, or says to read it.
fn is_plain_option(text: &str) -> bool {
    const NAMING: [&str; 6] = ["-c", "-e", "-E", "-m", "-p", "-r"];
    text.starts_with('-') && !NAMING.iter().any(|option| text.starts_with(option))
}
