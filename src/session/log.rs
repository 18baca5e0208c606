use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::File;
use std::fs::TryLockError;
use std::path::Path;
use std::path::PathBuf;

use podbay_event::Event;
use podbay_event::Kind;
use podbay_event::Secret;
use podbay_event::SessionId;
use podbay_event::json_line;

use super::Error;
use super::LogRepair;
use super::Options;
use super::Records;
use super::State;
use super::VERSION;
use super::journal::Journal;
use super::log_file;
use super::log_file::LogFile;
use super::metrics::Metrics;
use super::read;
use super::repair_tail;
use super::session_file;
use super::state;

/// Most bytes of records that wait in memory while the disk fails.
const PENDING_MAX: usize = 16 << 20;

/// The log of one session, open for appending.
///
/// A full or broken disk never ends a run: records that cannot be written wait in memory and are
/// written first at the next append.
pub struct Log {
    path: PathBuf,
    session: SessionId,
    disk: Box<dyn LogFile>,
    /// The length of the file up to the last whole record.
    good: u64,
    pending: VecDeque<String>,
    pending_bytes: usize,
    /// The last pending record is an answer that is written with the next one.
    holds_answer: bool,
    lost: u64,
    told: bool,
    told_lost: bool,
    journal: Journal,
    metrics: Metrics,
    secrets: Vec<Secret>,
}

impl Log {
    /// Creates a log, whose first record is `header`. `secrets` are redacted in that record too.
    pub fn create(
        state: &State,
        header: &Event,
        options: &Options,
        secret: Option<&Secret>,
    ) -> Result<Self, Error> {
        let Kind::SessionStarted {
            version: VERSION,
            session,
            ..
        } = &header.kind
        else {
            return Err(Error::NotAHeader {
                got: kind_name(header),
            });
        };
        state::own(&state.sessions())?;
        let path = state
            .sessions()
            .join(session_file::file_name(header.at, session));
        let file = log_file::open_append(&path, true).map_err(Error::io("make", &path))?;
        hold(&file, &path)?;
        let mut log = Self::over(
            path,
            session.clone(),
            Box::new(file),
            0,
            Journal::new(state.events(), options.events_max.bytes()),
            Journal::new(state.metrics(), options.events_max.bytes()),
        );
        secret
            .cloned()
            .into_iter()
            .for_each(|secret| log.hide(secret));
        log.append(header)?;
        Ok(log)
    }

    /// Opens an existing log: reads it, repairs its end, and appends from there.
    ///
    /// A log that another user owns or may write, one of a newer format, and one that another
    /// process writes are refused before anything is changed.
    pub fn resume(
        state: &State,
        path: &Path,
        options: &Options,
    ) -> Result<(Self, Records, Option<LogRepair>), Error> {
        log_file::own_file(path)?;
        // Read first: a log of a newer format is refused before anything is changed.
        let length = std::fs::symlink_metadata(path)
            .map_err(Error::io("look at", path))?
            .len();
        let records = read(path)?;
        let file = log_file::open_append(path, false).map_err(Error::io("open", path))?;
        hold(&file, path)?;
        // Records that another process wrote meanwhile belong to it too.
        let records = if file.metadata().is_ok_and(|now| now.len() == length) {
            records
        } else {
            read(path)?
        };
        let repair = repair_tail(path)?;
        let good = file.metadata().map_err(Error::io("look at", path))?.len();
        let session = records.session.clone();
        let mut log = Self::over(
            path.to_owned(),
            session,
            Box::new(file),
            good,
            Journal::new(state.events(), options.events_max.bytes()),
            Journal::new(state.metrics(), options.events_max.bytes()),
        );
        log.metrics.resume(&records.events);
        Ok((log, records, repair))
    }

    fn over(
        path: PathBuf,
        session: SessionId,
        disk: Box<dyn LogFile>,
        good: u64,
        journal: Journal,
        metrics: Journal,
    ) -> Self {
        let metrics = Metrics::new(session.clone(), metrics);
        Self {
            path,
            session,
            disk,
            good,
            pending: VecDeque::new(),
            pending_bytes: 0,
            holds_answer: false,
            lost: 0,
            told: false,
            told_lost: false,
            journal,
            metrics,
            secrets: Vec::new(),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Redacts a value in all records from now on; it is written as `***`.
    pub fn hide(&mut self, secret: Secret) {
        // A shorter secret would match ordinary text.
        if secret.expose().len() >= 6 {
            self.secrets.push(secret);
        }
    }

    /// Returns how many records wait to be written.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Returns whether the last pending record is an answer that waits for the next one.
    pub fn holds_answer(&self) -> bool {
        self.holds_answer
    }

    /// Appends an event, if it is durable.
    ///
    /// An answer without calls is written together with the next record, in one write: that record
    /// says what it led to, and a process killed between the two would leave an answer of which it
    /// is unknown whether it was the last.
    ///
    /// An error is returned once per failure of the disk and deserves a warning; the log keeps
    /// retrying. `Ok` does not mean that the record is written: see [`Log::pending`].
    pub fn append(&mut self, event: &Event) -> Result<(), Error> {
        if !event.durable() {
            return Ok(());
        }
        let line = self.line(event);
        // The shared journal is a convenience: the session's own log is complete.
        self.journal.append(&self.in_journal(event, &line));
        self.metrics.take(event);
        let mut newly_lost = false;
        let is_full = self.pending_bytes + line.len() > PENDING_MAX;
        let flushed_before = if is_full && self.holds_answer {
            self.flush()
        } else {
            Ok(())
        };
        if self.pending_bytes + line.len() > PENDING_MAX {
            self.lost += 1;
            newly_lost = !std::mem::replace(&mut self.told_lost, true);
        } else {
            self.pending_bytes += line.len();
            match self.pending.back_mut().filter(|_| self.holds_answer) {
                Some(answer) => answer.push_str(&line),
                None => self.pending.push_back(line),
            }
            self.holds_answer = match &event.kind {
                Kind::AssistantMessage {
                    calls, interrupted, ..
                } => calls.is_empty() && !interrupted,
                // A warning may come from anywhere, and says nothing about the answer.
                Kind::Warning { .. } => self.holds_answer,
                _ => false,
            };
        }
        let flushed = flushed_before.and(if self.holds_answer {
            Ok(())
        } else {
            self.flush()
        });
        if newly_lost && !self.pending.is_empty() {
            return Err(Error::Lost {
                path: self.path.clone(),
                lost: self.lost,
            });
        }
        flushed
    }

    /// Writes the pending records and waits until they are on disk. Called at the end of each turn.
    pub fn sync(&mut self) -> Result<(), Error> {
        self.flush()?;
        self.journal.sync();
        match self.disk.sync() {
            Err(source) if !std::mem::replace(&mut self.told, true) => Err(Error::Unwritten {
                path: self.path.clone(),
                source,
            }),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.holds_answer = false;
        while let Some(line) = self.pending.front() {
            if let Err(source) = self.disk.append(line.as_bytes()) {
                // A partial record must not stay: the next one would be fused to it. If even this
                // fails, the reader copes.
                let _ = self.disk.truncate(self.good);
                let told = std::mem::replace(&mut self.told, true);
                return if told {
                    Ok(())
                } else {
                    Err(Error::Unwritten {
                        path: self.path.clone(),
                        source,
                    })
                };
            }
            self.good += line.len() as u64;
            self.pending_bytes -= line.len();
            self.pending.pop_front();
        }
        self.told = false;
        if self.lost > 0 {
            let message = format!(
                "the session log has a gap: {} records could not be kept while the disk refused them",
                self.lost
            );
            self.lost = 0;
            self.told_lost = false;
            let line = self.line(&Event::now(Kind::Warning { message }));
            self.pending_bytes += line.len();
            self.pending.push_back(line);
            return self.flush();
        }
        Ok(())
    }

    /// Returns a record as the journal of all sessions has it: with the session that it is of.
    fn in_journal<'a>(&self, event: &Event, line: &'a str) -> Cow<'a, str> {
        match (&event.kind, line.strip_prefix('{')) {
            // It names its session itself.
            (Kind::SessionStarted { .. }, _) | (_, None) => Cow::Borrowed(line),
            (_, Some(rest)) => Cow::Owned(format!("{{\"session\":\"{}\",{rest}", self.session)),
        }
    }

    fn line(&self, event: &Event) -> String {
        let mut line =
            json_line(event).expect("an event is made of strings, numbers and lists of them");
        for secret in &self.secrets {
            line = secret.hide_in_json(line);
        }
        line.push('\n');
        line
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let _ = self.flush();
        if !self.pending.is_empty() {
            tracing::warn!(path = %self.path.display(), records = self.pending.len(), "the session log ends without its last records");
        }
    }
}

/// Locks the file, so that one process alone appends. Does nothing on a file system without locks.
pub(super) fn hold(file: &File, path: &Path) -> Result<(), Error> {
    match log_file::lock_soon(file) {
        Err(TryLockError::WouldBlock) => Err(Error::Busy {
            path: path.to_owned(),
            pid: log_file::holder(file),
        }),
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}

fn kind_name(event: &Event) -> String {
    match &event.kind {
        Kind::SessionStarted { version, .. } => format!("version {version}"),
        _ => "another event".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;
    use std::sync::Mutex;

    use super::*;

    /// A disk of limited size; a record that does not fit is written in part, as on a real one.
    struct Small {
        bytes: Arc<Mutex<Vec<u8>>>,
        room: Arc<Mutex<usize>>,
    }

    impl LogFile for Small {
        fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
            let room = *self
                .room
                .lock()
                .expect("no test panics while it holds this");
            let mut disk = self
                .bytes
                .lock()
                .expect("no test panics while it holds this");
            let fits = room.saturating_sub(disk.len()).min(bytes.len());
            disk.extend_from_slice(&bytes[..fits]);
            if fits < bytes.len() {
                Err(io::ErrorKind::StorageFull.into())
            } else {
                Ok(())
            }
        }

        fn truncate(&mut self, length: u64) -> io::Result<()> {
            self.bytes
                .lock()
                .expect("no test panics while it holds this")
                .truncate(length as usize);
            Ok(())
        }

        fn sync(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Full {
        log: Log,
        bytes: Arc<Mutex<Vec<u8>>>,
        room: Arc<Mutex<usize>>,
    }

    impl Full {
        fn new(room: usize) -> Self {
            let (bytes, room) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(room)));
            let disk = Small {
                bytes: Arc::clone(&bytes),
                room: Arc::clone(&room),
            };
            let log = Log::over(
                "log".into(),
                SessionId::random(),
                Box::new(disk),
                0,
                Journal::nowhere(),
                Journal::nowhere(),
            );
            Self { log, bytes, room }
        }

        fn say(&mut self, text: &str) -> Result<(), Error> {
            let kind = Kind::UserMessage {
                text: text.into(),
                images: 0,
            };
            self.log.append(&Event {
                at: "2026-11-21T10:00:00Z".parse().expect("a time"),
                kind,
            })
        }

        fn set_room(&self, room: usize) {
            *self
                .room
                .lock()
                .expect("no test panics while it holds this") = room;
        }

        fn texts(&self) -> Vec<String> {
            let bytes = self
                .bytes
                .lock()
                .expect("no test panics while it holds this");
            std::str::from_utf8(&bytes)
                .expect("whole characters")
                .lines()
                .map(|line| {
                    match serde_json::from_str::<Event>(line)
                        .expect("a whole record")
                        .kind
                    {
                        Kind::UserMessage { text, .. } => text,
                        Kind::Warning { message } => message,
                        other => panic!("unexpected {other:?}"),
                    }
                })
                .collect()
        }
    }

    #[test]
    fn a_full_disk_is_reported_once_and_loses_nothing() {
        let mut full = Full::new(100);
        full.say("one").expect("fits");
        let error = full
            .say("two, which is too long for what is left")
            .expect_err("told");
        assert_eq!(
            error.to_string(),
            "write the session log `log`; its records are kept in memory until it can be written"
        );
        assert_eq!(
            error.hint().as_deref(),
            Some("the disk is full: free some space, or set PODBAY_HOME")
        );
        full.say("three").expect("not told again");
        assert_eq!(full.texts(), ["one"], "half a record was undone");
        assert_eq!(full.log.pending(), 2);
        full.set_room(10_000);
        full.log.sync().expect("all goes out");
        full.say("four").expect("continues");
        assert_eq!(
            full.texts(),
            [
                "one",
                "two, which is too long for what is left",
                "three",
                "four"
            ]
        );
        full.set_room(0);
        full.say("five").expect_err("a new trouble is told anew");
    }

    #[test]
    fn an_answer_is_written_together_with_the_next_record() {
        let answer = |calls: &[&str]| {
            let call = |id: &&str| podbay_event::ToolCall {
                id: (*id).into(),
                name: "bash".into(),
                arguments: "{}".into(),
            };
            let (text, thinking, calls) = (
                "Done.".to_owned(),
                String::new(),
                calls.iter().map(call).collect(),
            );
            let usage = podbay_event::Usage::default();
            Event::now(Kind::AssistantMessage {
                text,
                thinking,
                calls,
                raw: None,
                usage,
                interrupted: false,
                cut: false,
                duration_ms: 1,
            })
        };
        let mut full = Full::new(10_000);
        let n_lines = |full: &Full| {
            let bytes = full
                .bytes
                .lock()
                .expect("no test panics while it holds this");
            std::str::from_utf8(&bytes)
                .expect("whole characters")
                .lines()
                .count()
        };
        full.log.append(&answer(&["c1"])).expect("written");
        assert_eq!(
            (n_lines(&full), full.log.holds_answer()),
            (1, false),
            "its calls come next"
        );
        full.log.append(&answer(&[])).expect("held");
        full.log
            .append(&Event::now(Kind::TextDelta { text: "a".into() }))
            .expect("passed over");
        full.log
            .append(&Event::now(Kind::Warning {
                message: "of something else".into(),
            }))
            .expect("waits, too");
        assert_eq!((n_lines(&full), full.log.holds_answer()), (1, true));
        full.say("what became of it").expect("written");
        assert_eq!((n_lines(&full), full.log.holds_answer()), (4, false));
        // Written both or not at all: a partial write is rolled back.
        full.log.append(&answer(&[])).expect("held");
        full.set_room(
            full.bytes
                .lock()
                .expect("no test panics while it holds this")
                .len()
                + 300,
        );
        full.say(&"x".repeat(300)).expect_err("told");
        assert_eq!(n_lines(&full), 4);
        full.set_room(10_000);
        full.log.append(&answer(&[])).expect("held");
        full.log.sync().expect("all goes out");
        assert_eq!(
            (n_lines(&full), full.log.holds_answer()),
            (7, false),
            "nobody has to wait for what may never come"
        );
    }

    #[test]
    fn a_write_error_of_dev_full_does_not_end_the_log() {
        let file = File::options()
            .append(true)
            .open("/dev/full")
            .expect("every Linux has it");
        let mut log = Log::over(
            "log".into(),
            SessionId::random(),
            Box::new(file),
            0,
            Journal::nowhere(),
            Journal::nowhere(),
        );
        let error = log
            .append(&Event::now(Kind::Interrupted))
            .expect_err("told");
        assert!(
            matches!(error, Error::Unwritten { source, .. } if source.kind() == io::ErrorKind::StorageFull)
        );
        log.append(&Event::now(Kind::Interrupted))
            .expect("told once");
        assert_eq!(log.pending(), 2);
    }

    #[test]
    fn records_lost_from_memory_are_counted_in_the_log() {
        let mut full = Full::new(0);
        let long = "x".repeat(PENDING_MAX / 2 - 1000);
        full.say(&long).expect_err("told");
        full.say(&long).expect("waits");
        let error = full.say(&long).expect_err("told that records are lost");
        assert!(matches!(error, Error::Lost { lost: 1, .. }), "{error}");
        full.say(&long).expect("not told again");
        full.set_room(usize::MAX);
        full.log.sync().expect("all goes out");
        let texts = full.texts();
        assert_eq!(texts.len(), 3);
        assert_eq!(
            texts[2],
            "the session log has a gap: 2 records could not be kept while the disk refused them"
        );
    }

    #[test]
    fn a_redacted_secret_is_never_written() {
        let mut full = Full::new(10_000);
        full.log.hide(Secret::new("sk-\"quoted\"-123"));
        full.log.hide(Secret::new("a"));
        full.say("the key is sk-\"quoted\"-123, and a word")
            .expect("writes");
        assert_eq!(full.texts(), ["the key is ***, and a word"]);
    }
}
