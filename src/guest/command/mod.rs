//! A running command: its output under flow control, its input, its limits, and its end.

mod counter_snapshot;
mod input;
mod output;
mod start;
mod stop;
mod watch;

use std::collections::VecDeque;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use nix::errno::Errno;
use tokio::time::Instant;

use self::counter_snapshot::CounterSnapshot;
use self::counter_snapshot::file_size;
use self::counter_snapshot::met_file_size;
pub(super) use self::input::Input;
use self::input::InputQueue;
use self::input::Piece;
use self::input::sink;
use self::output::PhraseDetector;
pub(super) use self::start::SPAWNER_KILLED;
use self::start::Started;
use self::start::lost_supervisor;
pub(super) use self::start::not_started;
pub(super) use self::start::start;
use self::stop::StopReason;
use self::stop::Stopping;
use self::watch::ResourceWatch;
use crate::call_channel::CallChannel;
use crate::call_channel::HostMessage;
use crate::child::Stdio;
use crate::disk::OwnShare;
use crate::order::Order;
use crate::order::Report;
use crate::project_growth::WriteBlock;
use crate::pty;
use crate::rescue;
use crate::ring::Ring;
use crate::session::Session;
use crate::stdio::Pipe;
use podbay_wire::CommandEnded;
use podbay_wire::Denied;
use podbay_wire::End;
use podbay_wire::Fault;
use podbay_wire::Limit;
use podbay_wire::Programs;
use podbay_wire::message::CHUNK;
use podbay_wire::message::Stream;
use podbay_wire::size;

/// How long a cancelled call waits for a host that reads no more output.
const UNWANTED: Duration = Duration::from_secs(1);

/// Largest tail, whatever a call asks for, in bytes.
const MAX_TAIL: u64 = 4 * 1024 * 1024;

/// What to run, and how.
pub(super) struct CommandPlan {
    pub(super) order: Order,
    pub(super) stdio: Stdio,
    /// Its outputs, each with its stream.
    pub(super) sources: Vec<(Pipe, Stream)>,
    pub(super) input: Input,
    pub(super) timeout: Option<Duration>,
    pub(super) grace: Duration,
    pub(super) stream_bytes: u64,
    pub(super) tail_bytes: u64,
}

/// Runs a command to its end. The directory in the answer is for the caller to fill in.
pub(super) async fn run(
    session: &Session,
    line: &mut CallChannel,
    plan: CommandPlan,
) -> Result<CommandEnded, Fault> {
    let began = Instant::now();
    let CommandPlan {
        mut order,
        stdio,
        sources,
        input,
        timeout,
        grace,
        stream_bytes,
        tail_bytes,
    } = plan;
    // On a full disk a command may still remove files, so it runs, but can write to none.
    let shut = session.shut().await;
    order.no_writing = shut.is_some();
    order.renames = session.is_overlay;
    order.workspace = session.directories.top();
    let count = CounterSnapshot::begin(session);
    let n_rescues = rescue::n_ended();
    let watch = ResourceWatch::begin(
        session,
        if shut.is_some() {
            OwnShare::WriteBlock
        } else {
            OwnShare::Some
        },
    );
    let mut started = start(session, &order, stdio).await?;
    let note = started.note.take();
    let mut run = RunningCommand {
        session,
        count,
        watch,
        timeout,
        order: &order,
        line,
        started,
        sources: sources.into_iter().map(Source::from).collect(),
        input: InputQueue {
            input,
            pending: VecDeque::new(),
            at: 0,
            ended: false,
        },
        stopping: Stopping::No {
            timeout_at: timeout.map(|timeout| began + timeout),
        },
        why: None,
        rescue: rescue::SpawnerRescue::default(),
        grace,
        ended: None,
        to_stream: stream_bytes,
        tail: Ring::new(tail_bytes.min(MAX_TAIL) as usize),
        output_bytes: 0,
        asked_at: None,
        waited: Duration::ZERO,
        programs: Programs::default(),
        denied: Vec::new(),
        buffer: vec![0; CHUNK],
    };
    let (status, n_survivors) = run.until_end().await?;
    let end = match (run.why, status.code(), status.signal()) {
        (Some(StopReason::Cancelled), ..) => End::Cancelled,
        (_, Some(code), _) => End::Exited { code },
        (_, None, signal) => End::Signaled {
            signal: signal.unwrap_or(libc::SIGKILL),
        },
    };
    let saw_a_writer = run.watch.saw_a_writer();
    let met_file_size = met_file_size(
        status,
        saw_a_writer || run.sources.iter().any(|source| source.ear.is_found()),
    );
    let limit = match run.why {
        Some(StopReason::Cancelled) => None,
        Some(StopReason::Timeout) => Some(Limit::Time {
            ms: timeout.unwrap_or_default().as_millis() as u64,
        }),
        Some(StopReason::Crossed(limit)) => Some(limit),
        None if met_file_size && (shut.is_some() || saw_a_writer) => {
            file_size().map(|bytes| Limit::FileSize { bytes })
        }
        None => run.count.limit(status),
    };
    // A command can lower its own limit, and signal itself: without a writer the cause is unknown.
    let too_large = (met_file_size && run.why.is_none() && limit.is_none()).then(file_size).flatten().map(|bytes| {
        format!("it ended as if a file became too large: the sandbox allows {}, unless the command has set a lower limit", size(bytes))
    });
    let (limit, crossed) = match shut {
        // The cause was not the file's size: the disk is full.
        Some(shut) => (
            limit.map(|limit| {
                if matches!(limit, Limit::FileSize { .. }) {
                    shut.limit
                } else {
                    limit
                }
            }),
            Some(write_block_note(session, &shut)),
        ),
        None if limit.is_some() => (limit, None),
        // The command ended by itself, but it crossed the disk limit: the caller must know.
        None => {
            let crossed = run.watch.last_look(session, run.started.supervisor).await;
            (
                None,
                crossed
                    .map(|limit| format!("it ended by itself, but {limit}: remove what is not needed, nothing can be written before that")),
            )
        }
    };
    let is_killed =
        status.signal() == Some(libc::SIGKILL) || status.code() == Some(128 + libc::SIGKILL);
    let rescued = (limit.is_none() && is_killed && rescue::n_ended() > n_rescues).then(|| {
        let limit = timeout.map_or_else(String::new, |timeout| {
            format!(" before its limit of {} s", timeout.as_secs_f64().ceil())
        });
        format!("killed{limit}: a command here repeatedly stopped the sandbox's own processes")
    });
    let starved = if matches!(limit, Some(Limit::Memory { .. })) {
        None
    } else {
        run.count.starved()
    };
    let crowded = run.crowded(limit);
    let full = if status.success() {
        None
    } else {
        session.full()
    };
    let note = [
        session.told(),
        rescued,
        too_large,
        note,
        crossed,
        starved,
        crowded,
        full,
    ]
    .into_iter()
    .flatten()
    .reduce(|all, note| format!("{all}; {note}"));
    Ok(CommandEnded {
        end,
        limit,
        culprit: run.watch.culprit(limit),
        working_directory: None,
        output_bytes: run.output_bytes,
        omitted_bytes: run.tail.n_dropped(),
        omitted_in_line: run.tail.n_dropped() > 0 && run.tail.n_dropped_lines() == 0,
        n_survivors,
        duration_ms: began.elapsed().saturating_sub(run.waited).as_millis() as u64,
        note,
        programs: run.programs,
        denied: run.denied.into(),
    })
}

fn write_block_note(session: &Session, shut: &WriteBlock) -> String {
    let next = if session.has_room() {
        "there is space again"
    } else {
        "remove what is not needed"
    };
    format!("{shut}: this command could remove files and write to none, not in /tmp either; {next}")
}

struct Source {
    pipe: Pipe,
    stream: Stream,
    is_open: bool,
    ear: PhraseDetector,
}

impl From<(Pipe, Stream)> for Source {
    fn from((pipe, stream): (Pipe, Stream)) -> Self {
        Self {
            pipe,
            stream,
            is_open: true,
            ear: PhraseDetector::default(),
        }
    }
}

enum Next {
    HostMessage(HostMessage),
    Readable(usize),
    Writable,
    Report(Option<Report>),
    Look,
    Time,
}

struct RunningCommand<'call> {
    session: &'call Session,
    count: CounterSnapshot<'call>,
    watch: ResourceWatch,
    timeout: Option<Duration>,
    order: &'call Order,
    line: &'call mut CallChannel,
    started: Started,
    sources: Vec<Source>,
    input: InputQueue,
    stopping: Stopping,
    why: Option<StopReason>,
    rescue: rescue::SpawnerRescue,
    grace: Duration,
    ended: Option<AfterExit>,
    /// How many more bytes are streamed.
    to_stream: u64,
    tail: Ring,
    output_bytes: u64,
    /// Since when the host is being asked, and for how long in total before.
    asked_at: Option<Instant>,
    waited: Duration,
    programs: Programs,
    denied: Vec<Denied>,
    buffer: Vec<u8>,
}

/// All processes have ended; their output may still be in the pipes.
struct AfterExit {
    status: ExitStatus,
    n_survivors: u32,
    /// When a cancelled call stops waiting for credit.
    until: Option<Instant>,
    n_read: u64,
}

impl RunningCommand<'_> {
    async fn until_end(&mut self) -> Result<(ExitStatus, u32), Fault> {
        loop {
            if let Some(over) = &self.ended
                && self.sources.iter().all(|source| !source.is_open)
                && self.tail.len() == 0
            {
                return Ok((over.status, over.n_survivors));
            }
            match self.next().await {
                Next::Report(None) => return Err(lost_supervisor(self.session).await),
                Next::Look => {
                    if let Some(limit) =
                        self.watch.look(self.session, self.started.supervisor).await
                        && self.why.is_none()
                    {
                        self.grace = Duration::ZERO;
                        self.stop(StopReason::Crossed(limit));
                    }
                }
                next => self.handle(next)?,
            }
        }
    }

    async fn next(&mut self) -> Next {
        let may_read = self.ended.is_none() && (self.to_stream == 0 || self.line.room() > 0);
        let source = |at: usize| {
            self.sources
                .get(at)
                .filter(|source| may_read && source.is_open)
        };
        let (first, second) = (source(0), source(1));
        let sink = if self.input.pending.is_empty() || self.ended.is_some() {
            None
        } else {
            sink(&self.input.input, &self.sources)
        };
        let time = self.next_time();
        let may_look = self.ended.is_none() && matches!(self.stopping, Stopping::No { .. });
        tokio::select! {
            word = self.line.next() => Next::HostMessage(word),
            report = self.started.control.next(), if self.ended.is_none() => Next::Report(report),
            () = readable(first), if first.is_some() => Next::Readable(0),
            () = readable(second), if second.is_some() => Next::Readable(1),
            () = writable(sink), if sink.is_some() => Next::Writable,
            () = tokio::time::sleep_until(self.watch.at()), if may_look => Next::Look,
            () = tokio::time::sleep_until(time.unwrap_or_else(Instant::now)), if time.is_some() => Next::Time,
        }
    }

    fn handle(&mut self, next: Next) -> Result<(), Fault> {
        match next {
            Next::HostMessage(word) => self.handle_message(word),
            Next::Readable(at) => self.read(at),
            Next::Writable => self.input.write(&self.sources, self.line),
            Next::Report(Some(Report::Ended {
                status,
                n_survivors,
            })) => {
                let until = matches!(self.why, Some(StopReason::Cancelled))
                    .then(|| Instant::now() + UNWANTED);
                let status = ExitStatus::from_raw(status);
                self.ended = Some(AfterExit {
                    status,
                    n_survivors: n_survivors as u32,
                    until,
                    n_read: 0,
                });
                self.finish();
            }
            Next::Report(Some(Report::Failed { stage, errno })) => {
                return Err(not_started(
                    self.session,
                    self.order,
                    stage,
                    Errno::from_raw(errno),
                ));
            }
            // The slow ones are handled by the async caller.
            Next::Report(Some(Report::Ran { programs, denied })) => {
                (self.programs, self.denied) = (programs, denied);
            }
            Next::Report(Some(Report::Asks { question, program }))
                if matches!(self.stopping, Stopping::No { .. }) =>
            {
                self.asked_at = self.asked_at.or(Some(Instant::now()));
                self.line.ask(question, *program);
            }
            Next::Report(Some(Report::Asks { question, .. })) => {
                self.started.control.answer(question, false);
            }
            Next::Report(Some(Report::Started { .. }) | None) | Next::Look => {}
            Next::Time => return self.time_is_up(),
        }
        Ok(())
    }

    fn handle_message(&mut self, word: HostMessage) {
        match word {
            HostMessage::Credit(bytes) => {
                self.line.add_room(bytes);
                if self.ended.is_some() {
                    self.finish();
                }
            }
            HostMessage::Input(data) if data.is_empty() => {
                self.input.ended = true;
                self.input.write(&self.sources, self.line);
            }
            HostMessage::Input(data) => {
                self.input.pending.push_back(Piece {
                    data,
                    is_from_host: true,
                });
                self.input.write(&self.sources, self.line);
            }
            HostMessage::Resize { rows, columns } => {
                if let (Input::Terminal, Some(source)) = (&self.input.input, self.sources.first()) {
                    // A closed terminal needs no size.
                    let _ = pty::resize(source.pipe.file(), rows, columns);
                }
            }
            HostMessage::Answer { question, go_on } => {
                self.wait_no_longer();
                self.started.control.answer(question, go_on);
            }
            HostMessage::Cancel => match &mut self.ended {
                Some(over) => over.until = over.until.or(Some(Instant::now() + UNWANTED)),
                None => self.stop(StopReason::Cancelled),
            },
        }
    }

    /// Resumes the command's clock, which stopped while the host was asked.
    fn wait_no_longer(&mut self) {
        let Some(asked_at) = self.asked_at.take() else {
            return;
        };
        self.waited += asked_at.elapsed();
        if let Stopping::No {
            timeout_at: Some(timeout_at),
        } = &mut self.stopping
        {
            *timeout_at += asked_at.elapsed();
        }
    }

    /// Notes on the process limit for a command that met a limit: that it was met, where that did
    /// not end the command, and which command has most processes.
    fn crowded(&self, limit: Option<Limit>) -> Option<String> {
        let met = match limit? {
            Limit::Processes { .. } => None,
            _ if self.count.refused_forks() || self.watch.is_crowded() => {
                let count = self.session.cgroup.n_processes()?;
                Some(format!(
                    "meanwhile it met the limit of {count} processes in the sandbox, `sandbox.pids`"
                ))
            }
            _ => return None,
        };
        let others = self.watch.crowd(self.session, self.started.supervisor);
        [met, others]
            .into_iter()
            .flatten()
            .reduce(|all, note| format!("{all}; {note}"))
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
