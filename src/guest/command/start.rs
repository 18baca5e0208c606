use std::time::Duration;

use nix::errno::Errno;
use tokio::time::error::Elapsed;

use crate::child::Stdio;
use crate::order::Order;
use crate::order::Report;
use crate::order::Stage;
use crate::rescue;
use crate::session::Session;
use crate::spawner_client::Control;
use podbay_wire::Fault;

/// How long a command may take to start; under a millisecond unless a process of ours was stopped.
const START: Duration = Duration::from_secs(10);

/// Pause between two checks for stopped processes.
const AGAIN: Duration = Duration::from_millis(50);

/// How long after a supervisor's end to check whether the spawner was killed too.
const BOTH_GONE: Duration = Duration::from_millis(200);

/// Why a command within its own bound may fail to start: the environment of the image counts too.
const TOO_LONG: &str = "one of its arguments is longer than 128 KiB, or all of them and its environment are too long together; write the text to a file and name that";

/// Why the sandbox ends then.
pub(crate) const SPAWNER_KILLED: &str =
    "the process that starts commands was killed from inside the sandbox";

/// A command that was started.
pub(crate) struct Started {
    pub(crate) control: Control,
    pub(crate) supervisor: i32,
    pub(crate) pid: i32,
    /// What had to be done for it.
    pub(crate) note: Option<String>,
}

/// Starts a command and waits until it is executed.
///
/// Where background commands use all processes of the sandbox, nothing could ever end them, because
/// `kill` is a process too. So they are ended, and the command is started again.
pub(crate) async fn start(
    session: &Session,
    order: &Order,
    stdio: Stdio,
) -> Result<Started, Fault> {
    let with_programs;
    let order = if order.gated {
        with_programs = session.with_programs(order).await;
        &with_programs
    } else {
        order
    };
    match try_start(session, order, &stdio).await {
        Err(Failure {
            stage: Stage::Fork,
            errno: Errno::EAGAIN,
            ..
        }) if session.n_background() > 0 => {
            let n_ended = session.end_background().await;
            let mut started = match try_start(session, order, &stdio).await {
                Ok(started) => started,
                // Processes that cannot be ended would block the sandbox forever.
                Err(Failure {
                    stage: Stage::Fork,
                    errno: Errno::EAGAIN,
                    ..
                }) if session.n_background() > 0 => {
                    return Err(session.end_box(session.not_ended()));
                }
                Err(failure) => return Err(failure.fault),
            };
            started.note = Some(format!(
                "the sandbox had no free process left; background commands were ended: {n_ended}"
            ));
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
    let failure = |fault| Failure {
        stage: Stage::Order,
        errno: Errno::UnknownErrno,
        fault,
    };
    let control = session.spawner.start(order, stdio).await.map_err(|error| {
        let problem = match error.kind() {
            std::io::ErrorKind::ArgumentListTooLong => TOO_LONG.to_owned(),
            _ => format!("the guest cannot reach the process that starts commands: {error}"),
        };
        failure(Fault::NotStarted { problem })
    })?;
    match first_report(session, &control).await {
        Ok(Some(Report::Started { supervisor, pid })) => Ok(Started {
            control,
            supervisor,
            pid,
            note: None,
        }),
        Ok(Some(Report::Failed { stage, errno })) => {
            let errno = Errno::from_raw(errno);
            Err(Failure {
                stage,
                errno,
                fault: not_started(session, order, stage, errno),
            })
        }
        Ok(Some(Report::Ended { .. } | Report::Ran { .. } | Report::Asks { .. }) | None) => {
            Err(failure(lost_supervisor(session).await))
        }
        Err(_elapsed) => Err(failure(
            session.end_box("the process that starts commands does not respond".to_owned()),
        )),
    }
}

/// Waits for a supervisor's first report, and wakes the processes that send it: background commands
/// can stop them.
async fn first_report(session: &Session, control: &Control) -> Result<Option<Report>, Elapsed> {
    let mut rescue = rescue::SpawnerRescue::default();
    let watched = async {
        loop {
            match tokio::time::timeout(AGAIN, control.next()).await {
                Ok(report) => return report,
                Err(_elapsed) if rescue.look() => session.tell_of_stopping(),
                Err(_elapsed) => {}
            }
        }
    };
    tokio::time::timeout(START, watched).await
}

pub(crate) fn not_started(session: &Session, order: &Order, stage: Stage, errno: Errno) -> Fault {
    let name = String::from_utf8_lossy(if order.program.is_empty() {
        order.argv.first().map_or(&[][..], Vec::as_slice)
    } else {
        &order.program
    });
    let problem = match (stage, errno) {
        // Separate from other failures: shells have exit codes for these two.
        (Stage::Execute, Errno::ENOENT) => return Fault::NotFound { path: name.as_ref().into(), similar: Vec::new(), beside: Vec::new() },
        (Stage::Execute, Errno::EACCES) => return Fault::PermissionDenied { path: name.as_ref().into() },
        (Stage::Fork, Errno::EAGAIN) => {
            let limit = session.cgroup.n_processes().map_or(String::new(), |limit| format!(" (limit {limit})"));
            format!("the sandbox has no free process{limit}; end background processes first")
        }
        (Stage::Fork | Stage::Order, errno) => errno.desc().to_owned(),
        (Stage::Hold, _) => {
            "in mode ask it is held at its first write, and this kernel cannot do that: it asks another program around the \
                             sandbox already, or is older than Linux 5.9; allow the command by a rule, or use mode auto"
                .to_owned()
        }
        (Stage::Prepare, Errno::EACCES) => "its working directory is not accessible".to_owned(),
        (Stage::Prepare, errno) => format!("its environment cannot be set up: {}", errno.desc()),
        (Stage::Execute, Errno::E2BIG) => TOO_LONG.to_owned(),
        (Stage::Execute, Errno::ENOEXEC) => {
            format!("`{name}` is not a program for this architecture ({}); use an image that is built for it", std::env::consts::ARCH)
        }
        (Stage::Execute, errno) => format!("`{name}`: {}", errno.desc()),
    };
    Fault::NotStarted { problem }
}

/// Returns the fault for a supervisor that is gone. Its killer mostly killed the spawner too, which
/// ends the sandbox: that is reported with this call, so that the next one gets a new sandbox and
/// works.
pub(super) async fn lost_supervisor(session: &Session) -> Fault {
    if tokio::time::timeout(BOTH_GONE, session.spawner.gone())
        .await
        .is_ok()
    {
        return session.end_box(SPAWNER_KILLED.to_owned());
    }
    Fault::Io {
        doing: "run the command".to_owned(),
        problem: "its supervisor was killed from inside the sandbox; all its processes were ended"
            .to_owned(),
    }
}
