//! Files that the user names in a message by `@path`: the model reads them with it.

use std::time::Duration;

use async_recursion::async_recursion as boxed;

use super::Chat;
use super::Interrupt;
use podbay_wire::Call;
use podbay_wire::Output;
use podbay_wire::ReadFile;

/// Characters of one file that go with a message.
const MOST_CHARS: usize = 50_000;
/// Files of one message.
const MOST_FILES: usize = 20;
const WITHIN: Duration = Duration::from_secs(10);

/// Suffixes of images, which the model is shown rather than told.
const IMAGES: [&str; 5] = ["png", "jpg", "jpeg", "gif", "webp"];

impl Chat {
    /// Puts the files that a message names behind it. What is no file of the project stays a word.
    /// Returns what the user should know of it, too.
    #[boxed]
    pub async fn attach(&self, message: &str, interrupt: &Interrupt) -> (String, Vec<String>) {
        let mut whole = message.to_owned();
        let mut notes = Vec::new();
        for path in named(message) {
            let call = Call::ReadFile(ReadFile {
                path: Some(path.as_str().into()),
                offset: 1,
                limit: MOST_CHARS as u64,
                max_bytes: 4 * MOST_CHARS as u64,
                cursor: None,
                max_files: 1,
                images: false,
                protected: false,
            });
            let peeked = self
                .pipeline()
                .peek(call, Box::new(|_, _| {}), interrupt.run(), WITHIN)
                .await;
            let Ok(Some(Output::Read(read))) = peeked else {
                continue;
            };
            let Some(file) = read.files.first().filter(|file| file.fault.is_none()) else {
                continue;
            };
            let end = file
                .text
                .char_indices()
                .nth(MOST_CHARS)
                .map_or(file.text.len(), |(at, _)| at);
            let is_cut = file.more || end < file.text.len();
            let cut = if is_cut { " (the start of it)" } else { "" };
            whole.push_str(&format!(
                "\n\nThe file {path}{cut}:\n```\n{}\n```",
                file.text[..end].trim_end_matches('\n')
            ));
            let n_lines = file.text[..end].lines().count();
            notes.push(match n_lines {
                _ if is_cut => {
                    format!(
                        "{path}: the first {n_lines} lines go with the message, the rest is cut"
                    )
                }
                1 => format!("{path}: 1 line goes with the message"),
                _ => format!("{path}: {n_lines} lines go with the message"),
            });
        }
        (whole, notes)
    }
}

/// Returns the paths that a message names, each once.
fn named(message: &str) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    for (at, _) in message.match_indices('@') {
        let is_begun = message[..at]
            .chars()
            .next_back()
            .is_none_or(|c| c.is_whitespace() || c == '(');
        if !is_begun {
            continue;
        }
        let rest = &message[at + 1..];
        // A name with blanks stands between quotation marks.
        let quoted = rest
            .strip_prefix('"')
            .and_then(|rest| rest.split_once('"'))
            .map(|(path, _)| path);
        let path = quoted.unwrap_or_else(|| {
            let word = rest.split(char::is_whitespace).next().unwrap_or_default();
            word.trim_end_matches([',', ';', ':', ')', '?', '!', '.'])
        });
        let suffix = path.rsplit_once('.').map_or("", |(_, suffix)| suffix);
        let is_image = IMAGES.contains(&suffix.to_ascii_lowercase().as_str());
        if !path.is_empty() && !is_image && !paths.iter().any(|known| known == path) {
            paths.push(path.to_owned());
        }
    }
    paths.truncate(MOST_FILES);
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_behind_an_at_sign_is_named_once_and_images_are_not() {
        assert_eq!(
            named("see @src/a.py, (@b.md) and @src/a.py; me@c.org @shot.PNG @"),
            ["src/a.py", "b.md"]
        );
        assert_eq!(named("see @\"a b.txt\", please"), ["a b.txt"]);
        assert_eq!(named(&"@a @b ".repeat(40)), ["a", "b"]);
    }
}
