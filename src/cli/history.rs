//! What was typed in chats, for the arrow up and Ctrl-R: one JSON string a line in the state folder.

use std::fs;
use std::io;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use podbay_app::State;

/// Messages that are offered.
const MOST: usize = 1000;
/// A longer message is not kept.
const LONGEST: usize = 16 << 10;
/// When the file is larger it is written anew with the messages that are offered.
const FILE_MAX: u64 = 4 << 20;

pub(super) struct History {
    path: PathBuf,
}

impl History {
    pub(super) fn of(state: &State) -> Self {
        Self {
            path: state.root().join("history.jsonl"),
        }
    }

    /// Returns the last messages, the oldest first; what cannot be read is as if it were not there.
    pub(super) fn read(&self) -> Vec<String> {
        let text = fs::read(&self.path).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let all: Vec<String> = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        all[all.len().saturating_sub(MOST)..].to_vec()
    }

    /// Adds a message. A history that cannot be written is no reason to stop.
    pub(super) fn add(&self, message: &str) {
        if message.trim().is_empty() || message.len() > LONGEST {
            return;
        }
        if let Err(error) = self.append(message) {
            tracing::debug!(%error, "the history could not be written");
        }
    }

    fn append(&self, message: &str) -> io::Result<()> {
        if fs::metadata(&self.path).is_ok_and(|meta| meta.len() > FILE_MAX) {
            let kept: String = self.read().iter().map(|message| line(message)).collect();
            let beside = self.path.with_extension("new");
            self.open(&beside, true)?.write_all(kept.as_bytes())?;
            fs::rename(&beside, &self.path)?;
        }
        // Two chats at once each add whole lines.
        self.open(&self.path, false)?
            .write_all(line(message).as_bytes())
    }

    #[expect(clippy::unused_self, reason = "it is the history's own way of opening")]
    fn open(&self, path: &std::path::Path, anew: bool) -> io::Result<fs::File> {
        fs::OpenOptions::new()
            .create(true)
            .append(!anew)
            .write(true)
            .truncate(anew)
            .mode(0o600)
            .open(path)
    }
}

fn line(message: &str) -> String {
    let mut line = serde_json::to_string(message).unwrap_or_default();
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn messages_are_there_in_the_next_chat_and_for_their_user_alone() {
        let temp = tempfile::tempdir().expect("a folder");
        let state = State::open(&temp.path().join("state")).expect("opens");
        let history = History::of(&state);
        assert_eq!(history.read(), Vec::<String>::new());
        history.add("first");
        history.add("two\nlines \u{1b}[2J");
        history.add("  ");
        history.add(&"x".repeat(LONGEST + 1));
        assert_eq!(
            History::of(&state).read(),
            ["first", "two\nlines \u{1b}[2J"]
        );
        let mode = fs::metadata(&history.path).expect("is there").permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
        fs::write(&history.path, "torn\n\"good\"\n\"to").expect("ours");
        assert_eq!(history.read(), ["good"]);
        fs::write(&history.path, "\"y\"\n".repeat(2 << 20)).expect("ours");
        history.add("last");
        let all = history.read();
        assert_eq!((all.len(), all.last()), (MOST, Some(&"last".to_owned())));
        assert!(fs::metadata(&history.path).expect("is there").len() < 10_000);
    }
}
