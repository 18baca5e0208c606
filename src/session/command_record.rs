//! Records in `events.jsonl` of what is done without a session: `call`, `sh`, `undo`, `review`.

use std::time::Instant;

use jiff::Timestamp;
use serde::Serialize;

use podbay_event::NetworkAttempt;
use podbay_event::json_line;

use super::Options;
use super::State;
use super::journal::Journal;
use super::redact::redact;

/// A command under way. Its beginning is written before it does anything.
pub struct CommandRecord {
    journal: Journal,
    command: &'static str,
    project: String,
    begun: Instant,
    is_over: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line<'a> {
    CommandStarted {
        at: Timestamp,
        command: &'static str,
        project: &'a str,
        /// What it is to do, in words; what looks like a key is masked.
        detail: &'a str,
    },
    NetworkAttempted {
        at: Timestamp,
        command: &'static str,
        project: &'a str,
        attempt: &'a NetworkAttempt,
    },
    CommandEnded {
        at: Timestamp,
        command: &'static str,
        project: &'a str,
        exit_code: u8,
        duration_ms: u64,
    },
}

impl CommandRecord {
    pub fn begin(
        state: &State,
        options: &Options,
        command: &'static str,
        project: String,
        detail: &str,
    ) -> Self {
        let mut record = Self {
            journal: Journal::new(state.events(), options.events_max.bytes()),
            command,
            project,
            begun: Instant::now(),
            is_over: false,
        };
        let project = record.project.clone();
        record.write(&Line::CommandStarted {
            at: Timestamp::now(),
            command,
            project: &project,
            detail: &redact(detail),
        });
        record
    }

    /// Notes that something in its sandbox tried to reach a host.
    pub fn network(&mut self, attempt: &NetworkAttempt) {
        let (project, command) = (self.project.clone(), self.command);
        self.write(&Line::NetworkAttempted {
            at: Timestamp::now(),
            command,
            project: &project,
            attempt,
        });
    }

    /// Notes how it ended, once.
    pub fn end(&mut self, exit_code: u8) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        let (project, command) = (self.project.clone(), self.command);
        self.write(&Line::CommandEnded {
            at: Timestamp::now(),
            command,
            project: &project,
            exit_code,
            duration_ms: u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        });
    }

    fn write(&mut self, line: &Line<'_>) {
        let line = json_line(line).expect("a record is made of strings and numbers");
        self.journal.append(&(line + "\n"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_command_leaves_its_beginning_and_its_end() {
        let temp = tempfile::tempdir().expect("a folder");
        let state = State::open(&temp.path().join("state")).expect("opens");
        let options = Options::default();
        let detail = "bash {\"command\":\"echo sk-ant-REDACTED\"}";
        let mut record =
            CommandRecord::begin(&state, &options, "call", "/project".to_owned(), detail);
        record.end(4);
        record.end(0);
        let text = std::fs::read_to_string(state.events()).expect("written");
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert_eq!(lines[0]["type"], "command_started");
        assert_eq!(lines[0]["command"], "call");
        assert!(!text.contains("sk-ant-api03"), "{text}");
        assert_eq!(lines[1]["type"], "command_ended");
        assert_eq!(lines[1]["exit_code"], 4);
        assert_eq!(lines[1]["project"], "/project");
    }
}
