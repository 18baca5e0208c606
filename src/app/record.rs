use std::sync::Arc;
use std::sync::Mutex;

use super::Error;
use super::tried_hosts::TriedHosts;
use super::veil::Veil;
use podbay_event::Event;
use podbay_event::Kind;
use podbay_event::Secret;
use podbay_event::SessionId;
use podbay_event::Sink;
use podbay_session::Log;
use podbay_session::Options;
use podbay_session::State;

/// Where everything that happens goes: into the session's log first, then to whoever watches. An
/// answer without a call waits for the record behind it there.
#[derive(Clone)]
pub(super) struct Recorder {
    log: Arc<Mutex<Log>>,
    watcher: Sink,
    warnings: Arc<Mutex<Vec<String>>>,
    tried_hosts: Arc<Mutex<Option<TriedHosts>>>,
    veil: Arc<Veil>,
    session: SessionId,
}

impl Recorder {
    /// Begins a session's log.
    pub(super) fn begin(
        state: &State,
        options: &Options,
        header: Kind,
        key: Option<&Secret>,
        watcher: Sink,
    ) -> Result<Self, Error> {
        let header = Event::now(header);
        let log = Log::create(state, &header, options, key).map_err(Error::Session)?;
        watcher(header);
        Ok(Self::over(log, key, watcher))
    }

    /// Continues with a session's log.
    pub(super) fn resume(mut log: Log, key: Option<&Secret>, watcher: Sink) -> Self {
        if let Some(key) = key {
            log.hide(key.clone());
        }
        Self::over(log, key, watcher)
    }

    fn over(log: Log, key: Option<&Secret>, watcher: Sink) -> Self {
        let session = log.session().clone();
        Self {
            log: Arc::new(Mutex::new(log)),
            watcher,
            warnings: Arc::default(),
            tried_hosts: Arc::default(),
            veil: Arc::new(Veil::new(key)),
            session,
        }
    }

    pub(super) fn session(&self) -> &SessionId {
        &self.session
    }

    /// Returns the sink that the rooms send their events to.
    pub(super) fn sink(&self) -> Sink {
        let recorder = self.clone();
        Arc::new(move |event| recorder.take(event))
    }

    pub(super) fn emit(&self, kind: Kind) {
        self.take(Event::now(kind));
    }

    pub(super) fn warn(&self, message: impl Into<String>) {
        self.emit(Kind::Warning {
            message: message.into(),
        });
    }

    /// Returns what was warned about so far.
    pub(super) fn warnings(&self) -> Vec<String> {
        self.warnings
            .lock()
            .expect("nothing panics while it holds this lock")
            .clone()
    }

    /// Returns the hosts that were tried so far; nothing where none was.
    pub(super) fn tried_hosts(&self) -> Option<TriedHosts> {
        self.tried_hosts
            .lock()
            .expect("nothing panics while it holds this lock")
            .clone()
    }

    /// Puts what was written so far beyond a power cut.
    pub(super) fn sync(&self) {
        let outcome = self
            .log
            .lock()
            .expect("nothing panics while it holds this lock")
            .sync();
        if let Err(error) = outcome {
            self.show_warning(with_causes(&error));
        }
    }

    /// Returns why the log on disk lacks something, if it does.
    pub(super) fn unwritten(&self) -> Option<String> {
        let log = self
            .log
            .lock()
            .expect("nothing panics while it holds this lock");
        (log.pending() > 0).then(|| {
            format!(
                "{} records could not be written to {}",
                log.pending(),
                log.path().display()
            )
        })
    }

    fn take(&self, event: Event) {
        let (outcome, ends_turn) = {
            let mut log = self
                .log
                .lock()
                .expect("nothing panics while it holds this lock");
            let was_answered = log.holds_answer();
            let outcome = log.append(&event);
            // The end of a turn: what it cost to get here is worth a sync.
            let is_end = matches!(
                event.kind,
                Kind::AssistantMessage { .. } | Kind::RunFinished { .. }
            ) || was_answered && event.durable();
            (outcome, is_end && !log.holds_answer())
        };
        if let Kind::Warning { message } = &event.kind {
            self.warnings
                .lock()
                .expect("nothing panics while it holds this lock")
                .push(message.clone());
        }
        if let Kind::NetworkAttempted(attempt) = &event.kind {
            self.tried_hosts
                .lock()
                .expect("nothing panics while it holds this lock")
                .get_or_insert_default()
                .take(attempt);
        }
        for event in self.veil.pass(event) {
            (self.watcher)(event);
        }
        if let Err(error) = outcome {
            // The log is where this cannot go.
            self.show_warning(with_causes(&error));
        }
        if ends_turn {
            self.sync();
        }
    }

    fn show_warning(&self, message: String) {
        self.warnings
            .lock()
            .expect("nothing panics while it holds this lock")
            .push(message.clone());
        (self.watcher)(Event::now(Kind::Warning { message }));
    }
}

/// Returns an error with its whole chain, as one line.
pub(super) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
