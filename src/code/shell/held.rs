//! Values that name the folder of a command: that is the one where a variable was given the value, and not the one where it is used.
//!
//! Such a value is put in its place with a mark, which names the command that gave it. Where that one stood, policy knows. No text can write a
//! mark itself, as all that expands in a text is written otherwise while it is read.

use std::borrow::Cow;

use super::Command;
use super::Script;
use super::Word;
use super::WordKind;
use super::values::ABOVE;
use super::values::HERE;

/// How a mark begins, which is `$PWD` to a shell, too; what follows is the place of the command and the number of what it wrote.
const MARK: &str = "${PWD:=";
/// How a text's own expansion is written that looks like one.
const NO_MARK: &str = "${PWD:-";

/// Returns an expansion that a text has itself, which is no mark.
pub(super) fn own(expansion: &str) -> Cow<'_, str> {
    if expansion.contains(MARK) { Cow::Owned(expansion.replace(MARK, NO_MARK)) } else { Cow::Borrowed(expansion) }
}

/// Returns a value with the mark of the command at this place, where it begins with the folder of that.
pub(super) fn marked(value: String, at: usize) -> String {
    let is_end = |rest: &str| rest.is_empty() || rest.starts_with('/');
    let mut written = HERE.iter().chain(&ABOVE).enumerate();
    let found = written.find_map(|(number, folder)| Some((number, value.strip_prefix(folder).filter(|rest| is_end(rest))?)));
    found.map(|(number, rest)| format!("{MARK}{at}.{number}}}{rest}")).unwrap_or(value)
}

/// Returns what follows the mark that a text begins with.
pub(super) fn behind(text: &str) -> Option<&str> {
    text.strip_prefix(MARK)?.split_once('}').map(|(_, rest)| rest)
}

/// Returns a text with folders in the places of its marks, each from the place of its command and what that wrote; `None` where it has none.
fn with_folders(text: &str, folder: &impl Fn(usize, &'static str) -> Option<String>) -> Option<String> {
    let (mut made, mut rest) = (String::new(), text);
    while let Some((before, (mark, behind))) = rest.split_once(MARK).and_then(|(before, inside)| Some((before, inside.split_once('}')?))) {
        let named =
            mark.split_once('.').and_then(|(at, number)| Some((at.parse().ok()?, *HERE.iter().chain(&ABOVE).nth(number.parse().ok()?)?)));
        made.push_str(before);
        match named {
            Some((at, written)) => made.push_str(folder(at, written).as_deref().unwrap_or(written)),
            None => made.extend([MARK, mark, "}"]),
        }
        rest = behind;
    }
    (rest.len() < text.len()).then(|| made + rest)
}

impl Command {
    /// Returns the same with folders in the places of its marks; `None` where it has none. What the function does not know stays what it was.
    pub fn with_folders(&self, folder: impl Fn(usize, &'static str) -> Option<String>) -> Option<Self> {
        let is_marked = |word: &Word| word.kind == WordKind::Unknown && word.text.contains(MARK);
        let targets = self.redirections.iter().filter_map(|redirection| redirection.target.as_ref());
        if !self.words.iter().chain(targets).any(is_marked) {
            return None;
        }
        let mut made = self.clone();
        let targets = made.redirections.iter_mut().filter_map(|redirection| redirection.target.as_mut());
        for word in made.words.iter_mut().chain(targets).filter(|word| is_marked(word)) {
            let Some(text) = with_folders(&word.text, &folder) else { continue };
            let kind = match text.as_str() {
                text if text.contains(['$', '`']) || text.contains("<(") => WordKind::Unknown,
                text if !word.quoted && text.contains(['*', '?']) => WordKind::Pattern,
                _ => WordKind::Known,
            };
            *word = Word { text, kind, ..word.clone() };
        }
        Some(made)
    }
}

impl Script {
    /// Takes the marks off.
    pub fn without_marks(&mut self) {
        for command in &mut self.commands {
            if let Some(made) = command.with_folders(|_, _| None) {
                *command = made;
            }
        }
        for doubt in &mut self.doubts {
            if let Some(what) = with_folders(&doubt.what, &|_, _| None) {
                doubt.what = what;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_stands_for_a_folder_and_leaves_no_trace() {
        for (value, place) in [
            ("$PWD", "/3"),
            ("$(pwd)/src", "/3/src"),
            ("${PWD%/}/*", "/3/*"),
            ("$(dirname \"$PWD\")/x", "/3/../x"),
            ("$PWDX", "$PWDX"),
            ("/a/$PWD", "/a/$PWD"),
            ("x", "x"),
        ] {
            let marked = marked(value.to_owned(), 3);
            let to = |at: usize, written: &str| Some(format!("/{at}{}", if written.contains("dirname") { "/.." } else { "" }));
            assert_eq!(with_folders(&marked, &to).unwrap_or_else(|| marked.clone()), place, "{value}");
            assert_eq!(with_folders(&marked, &|_, _| None).unwrap_or(marked), value);
        }
    }

    #[test]
    fn no_text_writes_a_mark_itself() {
        for text in ["rm \"${PWD:=1.0}\"", "rm ${X:-${PWD:=1.0}}", "A=${PWD:=1.0}; rm $A", "rm \"$(cd ${PWD:=1.0} && pwd)\""] {
            let read = super::super::read_with_marks(text);
            let is_marked = |command: &Command| {
                command
                    .with_folders(|at, _| (at == 1).then(String::new))
                    .is_some_and(|made| made.words.iter().any(|word| word.text.is_empty()))
            };
            assert!(!read.commands.iter().any(is_marked), "{text}: {read:?}");
        }
    }
}
