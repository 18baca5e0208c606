//! What `sed` has a shell run: the command behind `e`, and what `s` makes of a line with that flag.

use super::super::Command;
use super::super::sed_script;
use super::super::sed_script::BETWEEN;
use super::super::sed_script::SedScripts;
use super::super::sed_script::behind_addresses;
use super::super::sed_script::delimited;
use super::super::sed_script::step;
use super::Inner;
use super::Unwrapped;
use super::shell::read_by;

/// Most texts that are read.
const TEXTS_MAX: usize = 8;

/// Adds the texts that a shell is handed. What the files say is none of them.
pub(super) fn sed(command: &Command, unwrapped: &mut Unwrapped) {
    let told = SedScripts::of(command.arguments());
    let given = sed_script::given(command);
    for text in told.scripts.iter().copied().chain(given).flat_map(texts).take(TEXTS_MAX) {
        read_by("sh", &text, unwrapped);
        unwrapped.inner.push(Inner::Text(text));
    }
}

/// Returns the texts that a script in a file hands to a shell.
pub(super) fn started_by(script: &str) -> impl Iterator<Item = Inner> {
    texts(script).into_iter().take(TEXTS_MAX).map(Inner::Text)
}

/// Returns what a script has a shell run, as far as it can be read.
fn texts(script: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut rest = script.trim_start_matches(BETWEEN);
    while !rest.is_empty() {
        let Some((text, after)) = step(rest).map(|after| (String::new(), after)).or_else(|| started(rest)) else { break };
        texts.extend(Some(text).filter(|text| !text.is_empty()));
        rest = after.trim_start_matches(BETWEEN);
    }
    texts
}

/// Takes off a command that starts something; returns what that is, too.
fn started(text: &str) -> Option<(String, &str)> {
    let command = behind_addresses(text)?;
    let behind = command.get(1..)?;
    match command.chars().next()? {
        'e' => {
            let (line, after) = behind.split_once('\n').unwrap_or((behind, ""));
            Some((line.trim().to_owned(), after))
        }
        's' => {
            let mark = behind.chars().next()?;
            let new = delimited(behind.strip_prefix(mark)?, mark, true)?;
            let flags = delimited(new, mark, false)?;
            let rest = flags.trim_start_matches(|c: char| c.is_ascii_digit() || "gpiImMe".contains(c));
            let runs = flags[..flags.len() - rest.len()].contains('e');
            runs.then(|| (made(&new[..new.len() - flags.len() - mark.len_utf8()]), rest))
        }
        _ => None,
    }
}

/// Returns the text that is put in; what it takes from the line is not known.
fn made(new: &str) -> String {
    let mut made = String::new();
    let mut letters = new.chars();
    while let Some(c) = letters.next() {
        match c {
            '&' => made.push('…'),
            '\\' => match letters.next() {
                Some('n') => made.push('\n'),
                Some(digit) if digit.is_ascii_digit() => made.push('…'),
                Some(c) => made.push(c),
                None => {}
            },
            c => made.push(c),
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::texts;

    #[track_caller]
    fn check(script: &str, expected: &[&str]) {
        assert_eq!(texts(script), expected, "{script}");
    }

    #[test]
    fn what_a_shell_is_handed_is_told_from_what_is_edited() {
        check("1e rm -rf *", &["rm -rf *"]);
        check("p;$!e make\nd", &["make"]);
        check("s/x/rm -rf ./e", &["rm -rf ."]);
        check("s|x|a \\| b\\nc &|2ge;e d", &["a | b\nc …", "d"]);
        check("e", &[]);
        check("s/.*/rm/;s/e/e rm/", &[]);
        check("a\\\ne rm", &[]);
        check("s/[/]e rm/x/e", &[]);
    }
}
