//! One running command: its output under credit, its input, its limits, and its end.

use std::collections::VecDeque;
use std::fmt::Write;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::Ordering;
use std::time::Duration;

use nix::errno::Errno;
use tokio::time::Instant;

use super::cgroup::Counters;
use super::child::Stdio;
use super::host::Line;
use super::host::Word;
use super::order::Order;
use super::order::Report;
use super::order::Stage;
use super::order::Stop;
use super::process::Control;
use super::pty;
use super::ring::Ring;
use super::session::Session;
use super::stdio::Pipe;
use super::unix::kill;
use crate::wire::CommandEnded;
use crate::wire::End;
use crate::wire::Fault;
use crate::wire::Limit;
use crate::wire::message::CHUNK;
use crate::wire::message::Stream;

/// How long a command may take to be started; it is under a millisecond unless a process of ours was stopped.
const START: Duration = Duration::from_secs(10);

/// How long after KILL something may still be there before the box ends.
const KILLED: Duration = Duration::from_secs(2);

/// How long a cancelled call waits for a host that takes none of what is left.
const UNWANTED: Duration = Duration::from_secs(1);

/// What is read at the most after the end; only a process of another call that was handed the pipe can have more.
const MAX_REST: u64 = 4 * 1024 * 1024;

/// Most bytes of a tail, whatever is asked for.
const MAX_TAIL: u64 = 4 * 1024 * 1024;

/// What to run, and how.
pub(super) struct Plan {
    pub(super) order: Order,
    pub(super) stdio: Stdio,
    /// What it prints, each with the stream it goes out on.
    pub(super) sources: Vec<(Pipe, Stream)>,
    pub(super) input: Input,
    pub(super) timeout: Option<Duration>,
    pub(super) grace: Duration,
    pub(super) stream_bytes: u64,
    pub(super) tail_bytes: u64,
}

/// Where the person's input goes.
pub(super) enum Input {
    Nowhere,
    Pipe(Pipe),
    /// To the first source, which is a terminal.
    Terminal,
}

/// A command that was started.
pub(super) struct Started {
    pub(super) control: Control,
    pub(super) supervisor: i32,
    pub(super) pid: i32,
    /// What had to be done for it.
    pub(super) note: Option<String>,
}

/// Starts a command and waits until it is executed.
///
/// Where background commands hold all processes of the box, nothing could ever end them, because `kill` is a process too. So they are
/// ended, and the command gets its second try.
pub(super) async fn start(session: &Session, order: &Order, stdio: Stdio) -> Result<Started, Fault> {
    match try_start(session, order, &stdio).await {
        Err(Failure { stage: Stage::Fork, errno: Errno::EAGAIN, .. }) if session.n_background() > 0 => {
            let n_ended = session.end_background().await;
            let mut started = try_start(session, order, &stdio).await.map_err(|failure| failure.fault)?;
            started.note = Some(format!("the sandbox had no free process left; {n_ended} background command(s) were ended"));
            Ok(started)
        }
        result => result.map_err(|failure| failure.fault),
    }
}

/// Why a command does not run.
struct Failure {
    stage: Stage,
    errno: Errno,
    fault: Fault,
}

async fn try_start(session: &Session, order: &Order, stdio: &Stdio) -> Result<Started, Failure> {
    let failure = |fault| Failure { stage: Stage::Order, errno: Errno::UnknownErrno, fault };
    let control = session.spawner.start(order, stdio).await.map_err(|error| {
        failure(Fault::NotStarted { problem: format!("the guest cannot reach the process that starts commands: {error}") })
    })?;
    match tokio::time::timeout(START, control.next()).await {
        Ok(Some(Report::Started { supervisor, pid })) => Ok(Started { control, supervisor, pid, note: None }),
        Ok(Some(Report::Failed { stage, errno })) => {
            let errno = Errno::from_raw(errno);
            Err(Failure { stage, errno, fault: not_started(session, order, stage, errno) })
        }
        Ok(Some(Report::Ended { .. }) | None) => Err(failure(lost_supervisor())),
        Err(_elapsed) => Err(failure(session.end_box("the process that starts commands does not answer any more".to_owned()))),
    }
}

fn not_started(session: &Session, order: &Order, stage: Stage, errno: Errno) -> Fault {
    let name =
        String::from_utf8_lossy(if order.program.is_empty() { order.argv.first().map_or(&[][..], Vec::as_slice) } else { &order.program });
    let problem = match (stage, errno) {
        // Kept apart from other failures: shells have exit codes of their own for these two.
        (Stage::Execute, Errno::ENOENT) => return Fault::NotFound { path: name.as_ref().into(), similar: Vec::new(), beside: Vec::new() },
        (Stage::Execute, Errno::EACCES) => return Fault::PermissionDenied { path: name.as_ref().into() },
        (Stage::Fork, Errno::EAGAIN) => {
            let limit = session.cgroup.n_processes().map_or(String::new(), |limit| format!(" (limit {limit})"));
            format!("the sandbox has no free process{limit}; end background processes first")
        }
        (Stage::Fork | Stage::Order, errno) => errno.desc().to_owned(),
        (Stage::Prepare, Errno::EACCES) => "its directory may not be entered".to_owned(),
        (Stage::Prepare, errno) => format!("its surroundings cannot be set up: {}", errno.desc()),
        (Stage::Execute, Errno::E2BIG) => "its arguments are too long".to_owned(),
        (Stage::Execute, errno) => format!("`{name}`: {}", errno.desc()),
    };
    Fault::NotStarted { problem }
}

fn lost_supervisor() -> Fault {
    Fault::Io {
        doing: "run the command".to_owned(),
        problem: "its supervisor was killed from inside the sandbox; all it had started was ended".to_owned(),
    }
}

/// Runs a command to its end. The directory in the answer is for the caller to fill in.
pub(super) async fn run(session: &Session, line: &mut Line, plan: Plan) -> Result<CommandEnded, Fault> {
    let began = Instant::now();
    let Plan { order, stdio, sources, input, timeout, grace, stream_bytes, tail_bytes } = plan;
    let count = Count::begin(session);
    let mut started = start(session, &order, stdio).await?;
    let note = started.note.take();
    let mut run = Run {
        session,
        count,
        timeout,
        order: &order,
        line,
        started,
        sources: sources.into_iter().map(Source::from).collect(),
        input: Feed { input, pending: VecDeque::new(), at: 0, ended: false },
        stopping: Stopping::No { timeout_at: timeout.map(|timeout| began + timeout) },
        why: None,
        grace,
        ended: None,
        to_stream: stream_bytes,
        tail: Ring::new(tail_bytes.min(MAX_TAIL) as usize),
        output_bytes: 0,
        buffer: vec![0; CHUNK],
    };
    let (status, n_survivors) = run.until_end().await?;
    let end = match (run.why, status.code(), status.signal()) {
        (Some(Why::Cancelled), ..) => End::Cancelled,
        (_, Some(code), _) => End::Exited { code },
        (_, None, signal) => End::Signaled { signal: signal.unwrap_or(libc::SIGKILL) },
    };
    let limit = match run.why {
        Some(Why::Cancelled) => None,
        Some(Why::Timeout) => Some(Limit::Time { ms: timeout.unwrap_or_default().as_millis() as u64 }),
        None => run.count.limit(status),
    };
    Ok(CommandEnded {
        end,
        limit,
        working_directory: None,
        output_bytes: run.output_bytes,
        omitted_bytes: run.tail.n_dropped(),
        n_survivors,
        duration_ms: began.elapsed().as_millis() as u64,
        note,
    })
}

/// The counters of the box before a command, and whether it runs alone.
struct Count<'session> {
    session: &'session Session,
    before: Counters,
    /// The number of this command; `None` where others were running.
    alone_as: Option<usize>,
}

impl<'session> Count<'session> {
    fn begin(session: &'session Session) -> Self {
        let n_running = session.n_running.fetch_add(1, Ordering::Relaxed);
        let number = session.n_started.fetch_add(1, Ordering::Relaxed) + 1;
        let alone_as = (n_running == 0 && session.n_background() == 0).then_some(number);
        Self { session, before: session.cgroup.counters(), alone_as }
    }

    /// Returns whether the box has refused a process since the command began.
    fn refused_forks(&self) -> bool {
        self.session.cgroup.counters().refused_forks > self.before.refused_forks
    }

    /// Returns the limit of the box that this command ran into.
    ///
    /// The counters are the whole box's. A command that died of KILL is taken for the one that was meant; otherwise it must have been
    /// the only one.
    fn limit(&self, status: ExitStatus) -> Option<Limit> {
        let after = self.session.cgroup.counters();
        let alone = self.alone_as == Some(self.session.n_started.load(Ordering::Relaxed));
        let killed = status.signal() == Some(libc::SIGKILL) || status.code() == Some(128 + libc::SIGKILL);
        if after.oom_kills > self.before.oom_kills && (killed || alone) {
            return Some(Limit::Memory { bytes: self.session.cgroup.memory_bytes().unwrap_or(0) });
        }
        let refused = after.refused_forks > self.before.refused_forks && (alone || !status.success());
        refused.then(|| Limit::Processes { count: self.session.cgroup.n_processes().unwrap_or(0) })
    }
}

impl Drop for Count<'_> {
    fn drop(&mut self) {
        self.session.n_running.fetch_sub(1, Ordering::Relaxed);
    }
}

struct Source {
    pipe: Pipe,
    stream: Stream,
    is_open: bool,
}

impl From<(Pipe, Stream)> for Source {
    fn from((pipe, stream): (Pipe, Stream)) -> Self {
        Self { pipe, stream, is_open: true }
    }
}

/// Input on its way; the host learns that a piece is consumed when its last byte is.
struct Feed {
    input: Input,
    pending: VecDeque<Piece>,
    /// How much of the first piece is written.
    at: usize,
    ended: bool,
}

struct Piece {
    data: Vec<u8>,
    /// The host gave credit for it; a terminal's end of input is made here.
    is_from_host: bool,
}

#[derive(Clone, Copy)]
enum Why {
    Cancelled,
    Timeout,
}

#[derive(Clone, Copy)]
enum Stopping {
    No { timeout_at: Option<Instant> },
    Asked { kill_at: Instant },
    Killed { gone_at: Instant },
}

enum Next {
    Word(Word),
    Readable(usize),
    Writable,
    Report(Option<Report>),
    Time,
}

struct Run<'call> {
    session: &'call Session,
    count: Count<'call>,
    timeout: Option<Duration>,
    order: &'call Order,
    line: &'call mut Line,
    started: Started,
    sources: Vec<Source>,
    input: Feed,
    stopping: Stopping,
    why: Option<Why>,
    grace: Duration,
    ended: Option<Over>,
    /// How much more is sent as it comes.
    to_stream: u64,
    tail: Ring,
    output_bytes: u64,
    buffer: Vec<u8>,
}

/// All processes have ended; what they wrote may still be on its way.
struct Over {
    status: ExitStatus,
    n_survivors: u32,
    /// When a cancelled call stops to wait for credit.
    until: Option<Instant>,
    n_read: u64,
}

impl Run<'_> {
    async fn until_end(&mut self) -> Result<(ExitStatus, u32), Fault> {
        loop {
            if let Some(over) = &self.ended
                && self.sources.iter().all(|source| !source.is_open)
                && self.tail.len() == 0
            {
                return Ok((over.status, over.n_survivors));
            }
            let next = self.next().await;
            self.handle(next)?;
        }
    }

    async fn next(&mut self) -> Next {
        let may_read = self.ended.is_none() && (self.to_stream == 0 || self.line.room() > 0);
        let source = |at: usize| self.sources.get(at).filter(|source| may_read && source.is_open);
        let (first, second) = (source(0), source(1));
        let sink = if self.input.pending.is_empty() || self.ended.is_some() { None } else { sink(&self.input.input, &self.sources) };
        let time = self.next_time();
        tokio::select! {
            word = self.line.next() => Next::Word(word),
            report = self.started.control.next(), if self.ended.is_none() => Next::Report(report),
            () = readable(first), if first.is_some() => Next::Readable(0),
            () = readable(second), if second.is_some() => Next::Readable(1),
            () = writable(sink), if sink.is_some() => Next::Writable,
            () = tokio::time::sleep_until(time.unwrap_or_else(Instant::now)), if time.is_some() => Next::Time,
        }
    }

    fn next_time(&self) -> Option<Instant> {
        match (&self.ended, self.stopping) {
            (Some(over), _) => over.until,
            (None, Stopping::No { timeout_at }) => timeout_at,
            (None, Stopping::Asked { kill_at }) => Some(kill_at),
            (None, Stopping::Killed { gone_at }) => Some(gone_at),
        }
    }

    fn handle(&mut self, next: Next) -> Result<(), Fault> {
        match next {
            Next::Word(word) => self.heard(word),
            Next::Readable(at) => self.read(at),
            Next::Writable => self.feed(),
            Next::Report(Some(Report::Ended { status, n_survivors })) => {
                let until = matches!(self.why, Some(Why::Cancelled)).then(|| Instant::now() + UNWANTED);
                let status = ExitStatus::from_raw(status);
                self.ended = Some(Over { status, n_survivors: n_survivors as u32, until, n_read: 0 });
                self.finish();
            }
            Next::Report(Some(Report::Failed { stage, errno })) => {
                return Err(not_started(self.session, self.order, stage, Errno::from_raw(errno)));
            }
            Next::Report(Some(Report::Started { .. })) => {}
            Next::Report(None) => return Err(lost_supervisor()),
            Next::Time => return self.time_is_up(),
        }
        Ok(())
    }

    fn heard(&mut self, word: Word) {
        match word {
            Word::Credit(bytes) => {
                self.line.add_room(bytes);
                if self.ended.is_some() {
                    self.finish();
                }
            }
            Word::Input(data) if data.is_empty() => {
                self.input.ended = true;
                self.feed();
            }
            Word::Input(data) => {
                self.input.pending.push_back(Piece { data, is_from_host: true });
                self.feed();
            }
            Word::Resize { rows, columns } => {
                if let (Input::Terminal, Some(source)) = (&self.input.input, self.sources.first()) {
                    // A terminal that is gone needs no size.
                    let _ = pty::resize(source.pipe.file(), rows, columns);
                }
            }
            Word::Cancel => match &mut self.ended {
                Some(over) => over.until = over.until.or(Some(Instant::now() + UNWANTED)),
                None => self.stop(Why::Cancelled),
            },
        }
    }

    /// Asks the command to end; asked again, does not wait for that.
    fn stop(&mut self, why: Why) {
        self.why = self.why.or(Some(why));
        match self.stopping {
            Stopping::No { .. } if !self.grace.is_zero() => {
                self.started.control.order(Stop::Term);
                self.stopping = Stopping::Asked { kill_at: Instant::now() + self.grace };
            }
            Stopping::No { .. } | Stopping::Asked { .. } => {
                self.started.control.order(Stop::Kill);
                // A command can stop its supervisor, which is of the same user; that must not save it.
                kill(self.started.supervisor, libc::SIGCONT);
                self.stopping = Stopping::Killed { gone_at: Instant::now() + KILLED };
            }
            Stopping::Killed { .. } => {}
        }
    }

    fn time_is_up(&mut self) -> Result<(), Fault> {
        if self.ended.is_some() {
            for source in &mut self.sources {
                source.is_open = false;
            }
            self.tail.clear();
            return Ok(());
        }
        match self.stopping {
            Stopping::No { .. } | Stopping::Asked { .. } => self.stop(Why::Timeout),
            Stopping::Killed { .. } => {
                return Err(self.session.end_box(self.not_emptied()));
            }
        }
        Ok(())
    }

    /// Says what could not be ended, and which limits the command had met: that it was killed for one is the model's only hint.
    fn not_emptied(&self) -> String {
        let mut reason = "processes of a command were still there 2 s after they were killed".to_owned();
        if let (Some(Why::Timeout), Some(timeout)) = (self.why, self.timeout) {
            let _ = write!(reason, "; the command ran longer than its limit of {} s", timeout.as_secs_f64().ceil());
        }
        if self.count.refused_forks()
            && let Some(limit) = self.session.cgroup.n_processes()
        {
            let _ = write!(reason, "; it ran into the limit of {limit} processes in the sandbox");
        }
        reason
    }

    /// Reads once from a source that may have something.
    fn read(&mut self, at: usize) {
        let limit = self.piece();
        let source = &self.sources[at];
        match source.pipe.try_read(&mut self.buffer[..limit]) {
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            // A terminal whose other end is closed gives EIO.
            Ok(0) | Err(_) => self.sources[at].is_open = false,
            Ok(n_read) => self.take_in(source.stream, n_read),
        }
    }

    /// After the end: takes what is still in the pipes, then sends the tail, as far as there is credit.
    fn finish(&mut self) {
        for at in 0..self.sources.len() {
            while self.sources[at].is_open && (self.to_stream == 0 || self.line.room() > 0) {
                let limit = self.piece();
                let result = self.sources[at].pipe.read_now(&mut self.buffer[..limit]);
                let Some(over) = &mut self.ended else { return };
                match result {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Ok(n_read) if n_read > 0 && over.n_read < MAX_REST => {
                        over.n_read += n_read as u64;
                        let stream = self.sources[at].stream;
                        self.take_in(stream, n_read);
                    }
                    // All that could write has ended: nothing there now means nothing any more.
                    Ok(_) | Err(_) => self.sources[at].is_open = false,
                }
            }
        }
        if self.sources.iter().all(|source| !source.is_open) {
            while self.tail.len() > 0 && self.line.room() > 0 {
                let piece = self.tail.take(CHUNK.min(self.line.room()));
                self.line.chunk(Stream::Tail, piece);
            }
        }
    }

    /// Returns how much to read at once.
    fn piece(&self) -> usize {
        if self.to_stream == 0 { CHUNK } else { CHUNK.min(self.line.room()).min(usize::try_from(self.to_stream).unwrap_or(usize::MAX)) }
    }

    fn take_in(&mut self, stream: Stream, n_read: usize) {
        let data = &self.buffer[..n_read];
        self.output_bytes += n_read as u64;
        if self.to_stream == 0 {
            self.tail.push(data);
        } else {
            self.to_stream -= n_read as u64;
            self.line.chunk(stream, data.to_vec());
        }
    }

    /// Writes what the command takes now.
    fn feed(&mut self) {
        /// What a terminal's line discipline takes for the end of the input.
        const END_OF_INPUT: u8 = 4;

        while let Some(piece) = self.input.pending.front() {
            let rest = &piece.data[self.input.at..];
            let written = match sink(&self.input.input, &self.sources) {
                Some(sink) => sink.try_write(rest),
                None => Ok(rest.len()),
            };
            match written {
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => return,
                Ok(n_written) if n_written < rest.len() => self.input.at += n_written,
                // Written to its end, or nobody reads any more: the host is told either way that it may send more.
                Ok(_) | Err(_) => {
                    if piece.is_from_host {
                        self.line.consumed(piece.data.len());
                    }
                    self.input.pending.pop_front();
                    self.input.at = 0;
                }
            }
        }
        if self.input.ended {
            self.input.ended = false;
            match &self.input.input {
                Input::Pipe(_) => self.input.input = Input::Nowhere,
                Input::Terminal => {
                    self.input.pending.push_back(Piece { data: vec![END_OF_INPUT], is_from_host: false });
                    self.feed();
                }
                Input::Nowhere => {}
            }
        }
    }
}

/// Returns what takes the input.
fn sink<'call>(input: &'call Input, sources: &'call [Source]) -> Option<&'call Pipe> {
    match input {
        Input::Nowhere => None,
        Input::Pipe(pipe) => Some(pipe),
        Input::Terminal => sources.first().map(|source| &source.pipe),
    }
}

async fn readable(source: Option<&Source>) {
    match source {
        Some(source) => source.pipe.readable().await,
        None => std::future::pending().await,
    }
}

async fn writable(sink: Option<&Pipe>) {
    match sink {
        Some(sink) => sink.writable().await,
        None => std::future::pending().await,
    }
}
