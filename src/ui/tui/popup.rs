//! What can be completed where the cursor is: slash commands, files, words behind a command.

use super::editor::Editor;
use crate::fuzzy;
use crate::slash;

/// Entries that are shown at once.
pub(super) const MOST_SHOWN: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// What is put into the line.
    pub(super) words: String,
    pub(super) help: String,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Popup {
    /// Where what is completed begins.
    pub(super) from: usize,
    pub(super) choices: Vec<Choice>,
    pub(super) at: usize,
}

impl Popup {
    /// Returns what fits the words before the cursor.
    pub(super) fn of(
        editor: &Editor,
        files: &[String],
        custom: &[(String, String)],
    ) -> Option<Self> {
        Self::behind(&editor.text()[..editor.cursor()], files, custom)
    }

    fn behind(before: &str, files: &[String], custom: &[(String, String)]) -> Option<Self> {
        if before.starts_with('/') && !before.contains(char::is_whitespace) {
            return Self::some(0, commands(before, custom));
        }
        let from = before.rfind('@')?;
        let is_begun = before[..from]
            .chars()
            .next_back()
            .is_none_or(|c| c.is_whitespace() || c == '(');
        let typed = &before[from + 1..];
        // A name with blanks stands between quotation marks.
        let typed = match typed.strip_prefix('"') {
            Some(quoted) if !quoted.contains('"') => quoted,
            Some(_) => return None,
            None if typed.contains(char::is_whitespace) => return None,
            None => typed,
        };
        if !is_begun {
            return None;
        }
        let found = fuzzy::best(typed, files, 100);
        let choice = |path: &String| Choice {
            words: if path.contains(char::is_whitespace) {
                format!("@\"{path}\"")
            } else {
                format!("@{path}")
            },
            help: String::new(),
        };
        Self::some(from, found.into_iter().map(choice).collect())
    }

    fn some(from: usize, choices: Vec<Choice>) -> Option<Self> {
        (!choices.is_empty()).then_some(Self {
            from,
            choices,
            at: 0,
        })
    }

    pub(super) fn next(&mut self) {
        self.at = (self.at + 1) % self.choices.len().max(1);
    }

    pub(super) fn previous(&mut self) {
        let n = self.choices.len().max(1);
        self.at = (self.at + n - 1) % n;
    }

    pub(super) fn chosen(&self) -> Option<&Choice> {
        self.choices.get(self.at)
    }
}

/// Returns what fits these words, each with its help, and where what it completes begins.
pub(crate) fn completions(
    before: &str,
    files: &[String],
    custom: &[(String, String)],
) -> Option<(usize, Vec<(String, String)>)> {
    let popup = Popup::behind(before, files, custom)?;
    let found = popup
        .choices
        .into_iter()
        .map(|choice| (choice.words, choice.help))
        .collect();
    Some((popup.from, found))
}

fn commands(typed: &str, custom: &[(String, String)]) -> Vec<Choice> {
    let known = slash::COMMANDS.iter().map(|command| Choice {
        words: format!("/{}", command.name),
        help: command.help.to_owned(),
    });
    let custom = custom.iter().map(|(name, help)| Choice {
        words: format!("/{name}"),
        help: help.clone(),
    });
    let all: Vec<Choice> = known.chain(custom).collect();
    let mut found: Vec<Choice> = all
        .iter()
        .filter(|choice| choice.words.starts_with(typed))
        .cloned()
        .collect();
    // Another name leads to the command that has it.
    let alias = typed.trim_start_matches('/');
    for command in slash::COMMANDS {
        let is_alias = !alias.is_empty() && command.aliases.contains(&alias);
        let words = format!("/{}", command.name);
        if is_alias && !found.iter().any(|choice| choice.words == words) {
            found.push(Choice {
                words,
                help: command.help.to_owned(),
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn popup(text: &str) -> Vec<String> {
        let mut editor = Editor::default();
        editor.insert(text);
        let files = [
            "src/app.py",
            "src/main.rs",
            "docs/application.md",
            "a b.txt",
        ]
        .map(str::to_owned);
        let popup = Popup::of(&editor, &files, &[("deploy".to_owned(), "mine".to_owned())]);
        let choices = popup.map(|popup| popup.choices).unwrap_or_default();
        choices.into_iter().map(|choice| choice.words).collect()
    }

    #[test]
    fn commands_and_files_are_completed_where_they_may_stand() {
        assert_eq!(popup("/und"), ["/undo"]);
        assert_eq!(popup("/ctx"), ["/context"]);
        assert_eq!(popup("/dep"), ["/deploy"]);
        assert_eq!(popup("see @app"), ["@src/app.py", "@docs/application.md"]);
        assert_eq!(popup("see @sman"), ["@src/main.rs"]);
        assert_eq!(popup("see @b.t"), ["@\"a b.txt\""]);
        assert_eq!(popup("see @\"a b"), ["@\"a b.txt\""]);
        for nothing in ["", "undo", "a /undo", "me@app", "@app x", "/undo 3"] {
            assert!(popup(nothing).is_empty(), "{nothing}");
        }
        assert!(popup("/").len() > 20);
    }
}
