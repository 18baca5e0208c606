//! Jobs: commands that `podbay sh --detach` leaves in the sandbox of `podbay up`. A process of this
//! program, in the background, holds each of them.

use std::path::Path;
use std::time::Duration;

use async_recursion::async_recursion as boxed;
use jiff::Timestamp;
use nix::sys::signal::Signal;
use nix::sys::signal::kill;
use nix::unistd::Pid;

use super::Error;
use super::Front;
use super::Place;
use super::shell::ShellCommand;
use super::shell::ShellUpdate;
use super::shell::shell;
use podbay_session::JobRecord;
use podbay_session::JobState;
use podbay_session::JobWriter;
use podbay_session::Jobs;
use podbay_session::State;

/// Between two looks at a job.
const PAUSE: Duration = Duration::from_millis(20);

/// How long a job may take to end once it was told to, beyond its own time for that.
const STOPPING: Duration = Duration::from_secs(30);

const NO_SANDBOX: &str = "a detached command stays in the sandbox of `podbay up`, and there is none that fits: none is up, or it was made with other settings, or what it masks has changed";

/// Makes the record of a job that another process is to hold.
pub fn begin_job(state: &State, project: &Path, command: &str) -> Result<JobRecord, Error> {
    let project = project.to_string_lossy();
    Jobs::of(state)
        .begin(&project, command)
        .map_err(failed("make the record of the job"))
}

/// Holds a job until it ends; what goes wrong is in its record.
#[boxed]
pub async fn hold_job(
    place: &Place,
    command: ShellCommand,
    id: &str,
    front: &Front,
) -> Result<u8, Error> {
    let mut writer = Jobs::of(&place.state)
        .hold(id)
        .map_err(failed("hold the job"))?;
    let held = Box::pin(run(place, command, &mut writer, front)).await;
    let (state, code) = match &held {
        Ok((code, note)) => (
            JobState::Ended {
                exit_code: *code,
                note: note.clone(),
                ended_at: Timestamp::now(),
            },
            *code,
        ),
        Err(error) => (
            JobState::Failed {
                problem: std::iter::once(error.to_string())
                    .chain(error.causes())
                    .chain(error.hints())
                    .collect::<Vec<_>>()
                    .join("; "),
            },
            error.exit_code(),
        ),
    };
    writer
        .set(state)
        .map_err(failed("write the record of the job"))?;
    held.map(|_| code)
}

async fn run(
    place: &Place,
    command: ShellCommand,
    writer: &mut JobWriter,
    front: &Front,
) -> Result<(u8, Option<String>), Error> {
    let mut shell = shell(place, command, front).await?;
    if !shell.is_joined() {
        shell.close().await;
        return Err(Error::usage(
            NO_SANDBOX,
            "`podbay down`, then `podbay up --no-model`, starts one that fits; `podbay status` shows what is up",
        ));
    }
    shell.input().close();
    let pid = std::process::id();
    let mut written = writer.set(JobState::Running { pid });
    let mut is_told = false;
    let ended = loop {
        let stop = front.interrupt.run();
        let update = tokio::select! {
            update = shell.recv() => update,
            () = stop.cancelled(), if !is_told => {
                is_told = true;
                shell.cancel();
                continue;
            }
        };
        match update {
            ShellUpdate::Stdout(bytes) | ShellUpdate::Stderr(bytes) => {
                written = written.and_then(|()| writer.keep(&bytes));
            }
            ShellUpdate::Ended { code, note } => break Ok((code, note)),
            ShellUpdate::Failed { problem } => {
                break Ok((super::exit_code::SHELL_FAILED, Some(problem)));
            }
        }
        if written.is_err() && !std::mem::replace(&mut is_told, true) {
            // A job whose output is lost is of no use.
            shell.cancel();
        }
    };
    shell.close().await;
    written.map_err(failed("keep the output of the job"))?;
    ended
}

/// Waits until a job has started, or could not be; `is_alive` tells whether its process is there.
pub async fn started_job(
    state: &State,
    id: &str,
    mut is_alive: impl FnMut() -> bool + Send,
) -> Result<JobRecord, Error> {
    loop {
        let was_alive = is_alive();
        let job = job(state, id)?;
        match &job.state {
            JobState::Starting if was_alive => tokio::time::sleep(PAUSE).await,
            JobState::Starting => {
                return Err(Error::usage(
                    "the process that was to hold the job ended before it began",
                    "`podbay sh -- CMD` says what is wrong",
                ));
            }
            JobState::Failed { problem } => {
                return Err(Error::Usage {
                    problem: problem.clone(),
                    hint: None,
                });
            }
            JobState::Running { .. } | JobState::Ended { .. } => return Ok(job),
        }
    }
}

/// Returns all jobs, the newest first.
pub fn list_jobs(state: &State) -> Result<Vec<JobRecord>, Error> {
    Jobs::of(state).list().map_err(failed("list the jobs"))
}

/// Returns a job by its id, or by a beginning that only it has.
pub fn job(state: &State, id: &str) -> Result<JobRecord, Error> {
    let found = Jobs::of(state)
        .find(id)
        .map_err(failed("look for the job"))?;
    found.ok_or_else(|| {
        Error::usage(
            format!("there is no job `{id}`, or more than one begins so"),
            "`podbay jobs list` shows them",
        )
    })
}

/// Passes on what a job prints; with `follow` until it ends.
pub async fn job_output(
    state: &State,
    id: &str,
    follow: bool,
    mut write: impl FnMut(&[u8]) -> bool + Send,
    front: &Front,
) -> Result<(), Error> {
    let id = job(state, id)?.id;
    let mut from = 0;
    loop {
        let is_over = !matches!(
            job(state, &id)?.state,
            JobState::Starting | JobState::Running { .. }
        );
        let bytes = Jobs::of(state)
            .output(&id, from)
            .map_err(failed("read the output of the job"))?;
        if bytes.is_empty() {
            if is_over || !follow {
                return Ok(());
            }
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => {}
                () = front.interrupt.run().cancelled() => return Ok(()),
            }
            continue;
        }
        from += bytes.len() as u64;
        if !write(&bytes) {
            return Ok(());
        }
    }
}

/// Ends a job, and waits until it has.
#[boxed]
pub async fn stop_job(state: &State, id: &str) -> Result<JobRecord, Error> {
    let id = job(state, id)?.id;
    let begun = tokio::time::Instant::now();
    let mut is_told = false;
    loop {
        let job = job(state, &id)?;
        match &job.state {
            JobState::Running { pid } if !is_told => {
                is_told = true;
                // The record said a moment ago that the process is there.
                let pid = Pid::from_raw(i32::try_from(*pid).unwrap_or(i32::MAX));
                let _ = kill(pid, Signal::SIGTERM);
            }
            JobState::Starting | JobState::Running { .. } => {}
            JobState::Ended { .. } | JobState::Failed { .. } => return Ok(job),
        }
        if begun.elapsed() > STOPPING {
            return Err(Error::usage(
                format!("the job {id} does not end"),
                "`podbay down` ends the sandbox with all that runs in it",
            ));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn failed(doing: &'static str) -> impl Fn(std::io::Error) -> Error {
    move |source| Error::Io {
        doing: doing.to_owned(),
        source,
    }
}
