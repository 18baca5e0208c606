//! Text for a shell that stands, as it is, in a program of another language: `system("…")`.

use super::super::Word;
use super::Inner;
use super::Unwrapped;

/// Languages whose programs stand in the words of a command.
const LANGUAGES: [&str; 10] = ["awk", "gawk", "lua", "mawk", "nawk", "node", "perl", "php", "python", "ruby"];
/// What hands a text to a shell.
const HANDING: [&str; 4] = ["system(", "popen(", "execSync(", "getoutput("];
/// What does so in Python where it is told to: `shell=True`. In another folder, `cwd=`, the text is about what is there.
const HANDING_IF_TOLD: [&str; 4] = ["run(", "call(", "check_output(", "Popen("];
/// Most of such texts that are read.
const TEXTS_MAX: usize = 8;

/// Adds the texts that such a program hands to a shell, where they are written out.
pub(super) fn handed(name: &str, arguments: &[Word], unwrapped: &mut Unwrapped) {
    if !LANGUAGES.contains(&name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')) {
        return;
    }
    let programs = arguments.iter().map(|word| word.text.as_str());
    let behind = programs.flat_map(|text| {
        let told: &[&str] =
            if text.contains("subprocess") && text.contains("shell=True") && !text.contains("cwd=") { &HANDING_IF_TOLD } else { &[] };
        HANDING.iter().map(|call| (call, false)).chain(told.iter().map(|call| (call, true))).flat_map(move |(call, is_told)| {
            // `dry_run(` and `mock.call(` are others.
            let is_it = move |at: usize| !is_told || is_python(text, at);
            text.match_indices(call).filter(move |(at, _)| is_it(*at)).map(|(at, call)| &text[at + call.len()..])
        })
    });
    for rest in behind.take(TEXTS_MAX) {
        let rest = rest.trim_start();
        let rest = rest.strip_prefix("shell=True").map_or(rest, |rest| rest.trim_start_matches([',', ' ']));
        let rest = rest.strip_prefix("args=").unwrap_or(rest);
        let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'' | '`')) else { continue };
        let Some((text, _)) = rest[1..].split_once(quote) else { continue };
        if !text.trim().is_empty() {
            unwrapped.inner.push(Inner::Text(text.to_owned()));
        }
    }
}

/// Returns whether the function whose name begins here is one of Python's `subprocess`, by whatever name that was brought in.
fn is_python(text: &str, at: usize) -> bool {
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    let before = text[..at].strip_suffix("check_").unwrap_or(&text[..at]);
    match before.strip_suffix('.') {
        Some(before) => {
            let module = &before[before.trim_end_matches(is_letter).len()..];
            module == "subprocess" || (!module.is_empty() && text.contains(&format!("subprocess as {module}")))
        }
        None => !before.ends_with(is_letter),
    }
}
