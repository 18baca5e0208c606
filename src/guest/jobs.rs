//! The background commands of a session, also after their end.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use nix::fcntl::FallocateFlags;
use nix::fcntl::fallocate;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::order::StopOrder;
use super::process_tree::kill_in_place_of;
use super::spawner_client::Control;
use podbay_wire::Background;
use podbay_wire::Denied;
use podbay_wire::End;
use podbay_wire::Fault;
use podbay_wire::MAX_RAN;
use podbay_wire::Process;
use podbay_wire::Processes;
use podbay_wire::Programs;
use podbay_wire::RanInBackground;
use podbay_wire::shown_text;

/// Most commands that are remembered; of the ended ones the oldest is forgotten.
const MOST: usize = 64;
/// Bytes shown of a command line.
const MAX_COMMAND: usize = 200;
/// Characters of a command line where it is only named.
const MAX_NAMED: usize = 60;
/// Bytes read from the end of a log.
const MAX_TAIL: u64 = 256 * 1024;
/// How long a process may take to disappear after KILL; a fork bomb takes a while.
const GONE: Duration = Duration::from_secs(10);
/// Pause between two checks whether its supervisor was stopped meanwhile.
const AGAIN: Duration = Duration::from_millis(50);

/// A background command.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) id: i32,
    pub(super) supervisor: i32,
    pub(super) command: String,
    /// Its output, held open: another file may get its name.
    pub(super) log: File,
    pub(super) began: Instant,
    pub(super) control: Arc<Control>,
    ended: Option<(Instant, End)>,
    /// What it had started, from its end until the host was told.
    ran: Option<(Programs, Vec<Denied>)>,
}

impl Job {
    pub(super) fn new(
        id: i32,
        supervisor: i32,
        command: &str,
        log: File,
        began: Instant,
        control: Arc<Control>,
    ) -> Self {
        let end = command.floor_char_boundary(MAX_COMMAND);
        let command = if end < command.len() {
            format!("{}…", &command[..end])
        } else {
            command.to_owned()
        };
        Self {
            id,
            supervisor,
            command,
            log,
            began,
            control,
            ended: None,
            ran: None,
        }
    }

    /// The same job, which has ended by now.
    pub(super) fn over(self, end: End) -> Self {
        Self {
            ended: Some((Instant::now(), end)),
            ..self
        }
    }

    fn shown(&self) -> Process {
        let until = self.ended.map_or_else(Instant::now, |(at, _)| at);
        Process {
            id: self.id,
            command: self.command.clone(),
            end: self
                .ended
                .map_or(End::Running { pid: self.id }, |(_, end)| end),
            duration_ms: until.saturating_duration_since(self.began).as_millis() as u64,
            output_bytes: self.log.metadata().map_or(0, |metadata| metadata.len()),
        }
    }

    /// Returns the last lines of its output.
    fn tail(&self, n_lines: u32) -> String {
        let length = self.log.metadata().map_or(0, |metadata| metadata.len());
        let from = length.saturating_sub(MAX_TAIL);
        let mut bytes = vec![0; (length - from) as usize];
        let mut at = 0;
        while let Ok(n) = self.log.read_at(&mut bytes[at..], from + at as u64)
            && n > 0
        {
            at += n;
        }
        bytes.truncate(at);
        last_lines(&shown_text(&bytes), n_lines as usize).to_owned()
    }
}

/// Frees the oldest part of a log that takes more than `most` bytes; returns whether it did.
///
/// The writer continues at the end of the file, whose length stays that of all output.
pub(super) fn drop_oldest(log: &File, most: u64) -> bool {
    let Ok(metadata) = log.metadata() else {
        return false;
    };
    let gone = metadata.len().saturating_sub(most / 2);
    if metadata.blocks() * 512 <= most || gone == 0 {
        return false;
    }
    let hole = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
    // Where the file system cannot punch holes, all of it stays.
    fallocate(log, hole, 0, i64::try_from(gone).unwrap_or(i64::MAX)).is_ok()
        || log.set_len(0).is_ok()
}

fn last_lines(text: &str, n: usize) -> &str {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let start = body
        .rmatch_indices('\n')
        .nth(n.saturating_sub(1))
        .map_or(0, |(at, _)| at + 1);
    &text[start..]
}

/// All jobs, in the order in which they were started.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    jobs: Mutex<Vec<Job>>,
    changed: Notify,
}

impl Jobs {
    pub(super) fn add(&self, job: Job) {
        let mut jobs = self.lock();
        if jobs.len() >= MOST
            && let Some(oldest) = jobs.iter().position(|job| job.ended.is_some())
        {
            jobs.remove(oldest);
        }
        jobs.push(job);
    }

    pub(super) fn ended(&self, control: &Arc<Control>, end: End, ran: (Programs, Vec<Denied>)) {
        if let Some(job) = self
            .lock()
            .iter_mut()
            .find(|job| Arc::ptr_eq(&job.control, control))
        {
            job.ended = Some((Instant::now(), end));
            job.ran = Some(ran);
        }
        self.changed.notify_waiters();
    }

    /// Returns the supervisors of the running ones.
    pub(super) fn supervisors(&self) -> Vec<i32> {
        self.lock()
            .iter()
            .filter(|job| job.ended.is_none())
            .map(|job| job.supervisor)
            .collect()
    }

    /// Names the running job that a supervisor belongs to.
    pub(super) fn named(&self, supervisor: i32) -> Option<String> {
        let jobs = self.lock();
        let job = jobs
            .iter()
            .find(|job| job.ended.is_none() && job.supervisor == supervisor)?;
        let command: String = job
            .command
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .take(MAX_NAMED)
            .collect();
        Some(format!(
            "the background command {} (`{}`)",
            job.id,
            command.trim()
        ))
    }

    /// Returns what ended ones had started, each once.
    fn take_ran(&self) -> Vec<RanInBackground> {
        self.lock()
            .iter_mut()
            .filter_map(|job| {
                let (programs, denied) = job.ran.take()?;
                if programs.is_empty() && denied.is_empty() {
                    return None;
                }
                let command = job.command.clone();
                Some(RanInBackground {
                    command,
                    programs,
                    denied,
                })
            })
            .take(MAX_RAN)
            .collect()
    }

    /// Runs a call; where no further process can be started, a job is killed without TERM, since
    /// each process that ends makes room for others.
    pub(super) async fn serve(
        &self,
        call: &Processes,
        is_crowded: bool,
    ) -> Result<Background, Fault> {
        let served = match call {
            Processes::List => Ok(Background {
                processes: self.lock().iter().map(Job::shown).collect(),
                printed: None,
                directory: None,
                ran: Vec::new(),
            }),
            Processes::Output { id, tail_lines } => self.one(*id, |job| Background {
                processes: vec![job.shown()],
                printed: Some(job.tail(*tail_lines)),
                directory: None,
                ran: Vec::new(),
            }),
            Processes::Stop { id, .. } if is_crowded => self.stop(*id, None).await,
            Processes::Stop { id, grace_ms } => {
                self.stop(*id, Some(Duration::from_millis(*grace_ms))).await
            }
        }?;
        Ok(Background {
            ran: self.take_ran(),
            ..served
        })
    }

    /// Stops a job: TERM, then KILL after `grace`; without one, KILL at once.
    async fn stop(&self, id: Option<i32>, grace: Option<Duration>) -> Result<Background, Fault> {
        let (id, supervisor, control, is_over) = self.one(id, |job| {
            (
                job.id,
                job.supervisor,
                Arc::clone(&job.control),
                job.ended.is_some(),
            )
        })?;
        if !is_over {
            if grace.is_some() {
                control.order(StopOrder::Term);
            }
            if !self.ends_within(&control, grace.unwrap_or_default()).await {
                if grace.is_none() {
                    control.kill_at_once();
                } else {
                    control.kill();
                }
                let told = Instant::now();
                while !self.ends_within(&control, AGAIN).await && told.elapsed() < GONE {
                    // A command can stop its supervisor, which has the same user; it must be killed
                    // all the same.
                    kill_in_place_of(supervisor);
                    control.insist(told.elapsed());
                }
                if !self.ends_within(&control, Duration::ZERO).await {
                    return Err(Fault::Io {
                        doing: format!("stop process {id}"),
                        problem: "it still exists after it was killed".to_owned(),
                    });
                }
            }
        }
        self.one(Some(id), |job| Background {
            processes: vec![job.shown()],
            printed: None,
            directory: None,
            ran: Vec::new(),
        })
    }

    async fn ends_within(&self, control: &Arc<Control>, time: Duration) -> bool {
        let is_over = || {
            self.lock()
                .iter()
                .all(|job| !Arc::ptr_eq(&job.control, control) || job.ended.is_some())
        };
        let over = async {
            loop {
                let changed = self.changed.notified();
                tokio::pin!(changed);
                // From here on every change is seen.
                changed.as_mut().enable();
                if is_over() {
                    return;
                }
                changed.await;
            }
        };
        tokio::time::timeout(time, over).await.is_ok()
    }

    /// Applies `with` to the job that is meant.
    fn one<T>(&self, id: Option<i32>, with: impl FnOnce(&Job) -> T) -> Result<T, Fault> {
        let jobs = self.lock();
        let found = match id {
            None => jobs.last(),
            // A reused pid means the newer job.
            Some(id) => jobs.iter().rev().find(|job| job.id == id),
        };
        found.map(with).ok_or_else(|| {
            let known: Vec<String> = jobs.iter().map(|job| job.id.to_string()).collect();
            let problem = match (id, known.as_slice()) {
                (_, []) => "no command was started in the background in this session".to_owned(),
                (Some(id), known) => format!(
                    "there is no background process {id}; there are {}",
                    known.join(", ")
                ),
                (None, _) => "there is none".to_owned(),
            };
            Fault::Invalid {
                field: "process_id".to_owned(),
                problem,
            }
        })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Job>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_whole() {
        for (text, n, expected) in [
            ("a\nb\nc\n", 2, "b\nc\n"),
            ("a\nb\nc", 2, "b\nc"),
            ("a\n", 5, "a\n"),
            ("", 3, ""),
            ("a\n\n\n", 2, "\n\n"),
            ("a\nb", 1, "b"),
        ] {
            assert_eq!(last_lines(text, n), expected, "{text:?} {n}");
        }
    }
}
