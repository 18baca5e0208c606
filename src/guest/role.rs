//! The roles of the guest's processes, and the order in which a process starts.
//!
//! | role | process | ends |
//! | --- | --- | --- |
//! | `serve` | PID 1 of a one-shot sandbox, or started by the engine beside `init` | at the end of its input |
//! | `init` | PID 1 of `podbay up` | without controllers for the time of the lease |
//! | `listen` | PID 1 of a sandbox that compose keeps | at a TERM from outside |
//! | `keep` | PID 1 of the keeper | at the end of its input |
//! | `prepare` | a container that fills the volumes of such a sandbox | when it is done |
//! | `attack` | a command of `podbay doctor --attack` | when it has its finding |
//! | `spawner` | tests only: elsewhere `serve` forks it | at the end of its socket |
//!
//! The order matters: no other process may read this one before it holds anything; signals are
//! blocked before there is a thread that could take one; the spawner is forked while there is one
//! thread and little memory; threads come last.

use std::ffi::OsString;
use std::io;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use std::time::Instant;

use nix::sys::signalfd::SignalFd;
use tokio::io::unix::AsyncFd;

use super::attack;
use super::build::build_id;
use super::build::is_static;
use super::compose_overlap;
use super::home;
use super::home::Home;
use super::init;
use super::keep;
use super::listen;
use super::memory;
use super::network;
use super::prepare;
use super::process_tree;
use super::serve::serve;
use super::session::Setup;
use super::spawner;
use super::spawner_client::Spawner;
use super::stdio::Pipe;
use super::unix::Fork;
use super::unix::Reaped;
use super::unix::block_signals;
use super::unix::exit_now;
use super::unix::fork_single_threaded;
use super::unix::kill;
use super::unix::reap;
use super::unix::set_dumpable;
use super::unix::watch;
use super::variables;

/// `podbay up` ends after so long without a controller.
const LEASE: Duration = Duration::from_mins(30);

/// How long a `serve` that is not PID 1 waits for its spawner to end everything.
const SPAWNER_ENDS: Duration = Duration::from_secs(3);

enum Role {
    Serve {
        workspace: PathBuf,
    },
    Init {
        lease: Duration,
        sockets: Option<PathBuf>,
    },
    Listen {
        socket: PathBuf,
        workspace: PathBuf,
    },
    Keep {
        workspace: PathBuf,
        state: PathBuf,
        layer: PathBuf,
    },
    Prepare(Vec<Step>),
    Spawner,
}

/// One preparation step.
enum Step {
    Apart { project: PathBuf, compose: PathBuf },
    Install { folder: PathBuf },
    Open { folder: PathBuf },
    OpenVolume { source: String, folder: PathBuf },
    Key { file: PathBuf },
    Check { uid: u32, path: PathBuf },
}

/// Runs the guest; `arguments` are those after `podbay guest`.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let result = match arguments.as_slice() {
        // An ordinary command: with the guest's own setup it would not test what commands can do.
        [role, id, arguments @ ..] if role == "attack" => {
            attack::run(&id.to_string_lossy(), arguments).map_err(|error| error.to_string())
        }
        _ => serve_as(arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            // If stderr is closed, the message is lost.
            let _ = writeln!(io::stderr(), "podbay guest: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn serve_as(arguments: Vec<OsString>) -> Result<(), String> {
    parse(arguments.into_iter()).and_then(|role| {
        if !is_static() {
            return Err(
                "this podbay needs libraries that a sandbox may not have; build it with `+crt-static` (see .cargo/config.toml)".to_owned()
            );
        }
        run(role).map_err(|error| error.to_string())
    })
}

/// The steps of `prepare`.
const STEPS: [&str; 6] = [
    "--apart",
    "--install",
    "--open",
    "--open-volume",
    "--check",
    "--key",
];

fn parse(mut arguments: impl Iterator<Item = OsString>) -> Result<Role, String> {
    const USAGE: &str = "usage: podbay guest serve [--workspace DIR] | init [--lease SECONDS [--sockets DIR]] | listen --socket PATH [--workspace DIR] | \
                         keep [--layer DIR | --workspace DIR --state DIR] | \
                         prepare [--apart PROJECT:FOLDER] [--check UID:PATH]… [--install DIR] [--open DIR]… \
                         [--open-volume SOURCE:DIR]… [--key FILE] | attack ID [ARGUMENT…] | spawner";
    let role = arguments.next().unwrap_or_default();
    let options: Vec<OsString> = arguments.collect();
    match (role.to_str(), options.as_slice()) {
        (Some("serve"), []) => Ok(Role::Serve {
            workspace: PathBuf::from("/workspace"),
        }),
        (Some("serve"), [name, folder]) if name == "--workspace" => Ok(Role::Serve {
            workspace: PathBuf::from(folder),
        }),
        (Some("keep"), []) => Ok(keep_in_sandbox(PathBuf::new())),
        (Some("keep"), [name, layer]) if name == "--layer" => {
            Ok(keep_in_sandbox(PathBuf::from(layer)))
        }
        (Some("keep"), [name, folder, other, state])
            if name == "--workspace" && other == "--state" =>
        {
            Ok(Role::Keep {
                workspace: PathBuf::from(folder),
                state: PathBuf::from(state),
                layer: PathBuf::new(),
            })
        }
        (Some("init"), []) => Ok(Role::Init {
            lease: LEASE,
            sockets: None,
        }),
        (Some("init"), [name, seconds, sockets @ ..]) if name == "--lease" => {
            let seconds = seconds
                .to_str()
                .and_then(|text| text.parse().ok())
                .ok_or(USAGE)?;
            Ok(Role::Init {
                lease: Duration::from_secs(seconds),
                sockets: match sockets {
                    [] => None,
                    [name, folder] if name == "--sockets" => Some(PathBuf::from(folder)),
                    _ => return Err(USAGE.to_owned()),
                },
            })
        }
        (Some("listen"), [name, socket]) if name == "--socket" => Ok(Role::Listen {
            socket: PathBuf::from(socket),
            workspace: PathBuf::from("/workspace"),
        }),
        (Some("listen"), [name, socket, at, folder])
            if name == "--socket" && at == "--workspace" =>
        {
            Ok(Role::Listen {
                socket: PathBuf::from(socket),
                workspace: PathBuf::from(folder),
            })
        }
        (Some("prepare"), steps @ [_, ..]) => {
            // A compose.yaml of a newer Podbay than this program, whose image was not rebuilt.
            if let Some(unknown) = steps
                .iter()
                .step_by(2)
                .find(|step| !STEPS.iter().any(|known| *step == known))
            {
                return Err(format!(
                    "this build ({}) knows no step `{}`: the image is older than compose.yaml, or not of the same Podbay\nhint: make the \
                     images anew with `podbay images build` or `docker compose build`, and start again",
                    env!("CARGO_PKG_VERSION"),
                    unknown.to_string_lossy().escape_debug()
                ));
            }
            // Without a guest nothing starts. So a compose.yaml that does not let us check the
            // project's location gets none.
            let place = |name: &str| steps.iter().step_by(2).position(|step| step == name);
            if place("--install")
                .is_some_and(|install| place("--apart").is_none_or(|apart| apart > install))
            {
                return Err(format!(
                    "this compose.yaml does not have `--apart` before `--install`: it is older than the image (build {}), or was changed, and \
                     whether commands could write it is not looked at\nhint: take the compose.yaml of this Podbay, from a checkout or by \
                     `podbay init`, which lays one where none is",
                    env!("CARGO_PKG_VERSION")
                ));
            }
            let step = |pair: &[OsString]| match pair {
                [name, pair] if name == "--apart" => {
                    let (project, compose) = pair.to_str()?.split_once(':')?;
                    Some(Step::Apart {
                        project: PathBuf::from(project),
                        compose: PathBuf::from(compose),
                    })
                }
                [name, folder] if name == "--install" => Some(Step::Install {
                    folder: PathBuf::from(folder),
                }),
                [name, folder] if name == "--open" => Some(Step::Open {
                    folder: PathBuf::from(folder),
                }),
                [name, mount] if name == "--open-volume" => {
                    // The mount's source may contain a colon; the mount point is compose.yaml's.
                    let (source, folder) = mount.to_str()?.rsplit_once(':')?;
                    Some(Step::OpenVolume {
                        source: source.to_owned(),
                        folder: PathBuf::from(folder),
                    })
                }
                [name, owner] if name == "--check" => {
                    let (uid, path) = owner.to_str()?.split_once(':')?;
                    Some(Step::Check {
                        uid: uid.parse().ok()?,
                        path: PathBuf::from(path),
                    })
                }
                [name, file] if name == "--key" => Some(Step::Key {
                    file: PathBuf::from(file),
                }),
                _ => None,
            };
            steps
                .chunks(2)
                .map(step)
                .collect::<Option<Vec<_>>>()
                .map(Role::Prepare)
                .ok_or_else(|| USAGE.to_owned())
        }
        (Some("spawner"), []) => Ok(Role::Spawner),
        _ => Err(USAGE.to_owned()),
    }
}

/// `layer`: the folder below a session's changes with those of the copy that it works on now.
fn keep_in_sandbox(layer: PathBuf) -> Role {
    Role::Keep {
        workspace: PathBuf::from("/workspace"),
        state: PathBuf::from("/keep/state"),
        layer,
    }
}

fn run(role: Role) -> io::Result<()> {
    set_dumpable(false)?;
    block_signals()?;
    let environment = take_environment();
    memory::limit_arenas();
    match role {
        Role::Init { lease, sockets } => {
            // It is idle for as long as the sandbox lives.
            memory::release_program_pages();
            init::run(lease, sockets, &environment)
        }
        Role::Listen { socket, workspace } => {
            memory::release_program_pages();
            listen::run(socket, workspace, environment)
        }
        Role::Prepare(steps) => steps.iter().try_for_each(|step| match step {
            Step::Apart { project, compose } => compose_overlap::refuse(project, compose),
            Step::Install { folder } => prepare::install(folder),
            Step::Open { folder } => prepare::open(folder),
            Step::OpenVolume { source, folder } => prepare::open_volume(source, folder),
            Step::Key { file } => prepare::key(file),
            Step::Check { uid, path } => prepare::check(path, *uid),
        }),
        Role::Spawner => {
            let socket = io::stdin().as_fd().try_clone_to_owned()?;
            spawner::detach_stdio()?;
            spawner::run(socket)
        }
        Role::Keep {
            workspace,
            state,
            layer,
        } => {
            let places = keep::Places {
                workspace,
                state,
                copy: PathBuf::from("/review/copy"),
                upper: Path::new("/review/upper").join(layer).join("up"),
                views: PathBuf::from("/review/upper/v"),
                git: PathBuf::from("/review/git"),
                aside: PathBuf::from("/aside"),
                scratch: PathBuf::from("/tmp"),
            };
            keep::run(&places, io::stdin(), io::stdout().lock(), || exit_now(0))
        }
        Role::Serve { workspace } => {
            let (input, output) = (
                io::stdin().as_fd().try_clone_to_owned()?,
                io::stdout().as_fd().try_clone_to_owned()?,
            );
            let sharing = if process_tree::is_in_sandbox() && !process_tree::is_in_own_sandbox() {
                Sharing::Shared
            } else {
                Sharing::Alone
            };
            run_serve(workspace, environment, sharing, input, output)
        }
    }
}

/// Whether other controllers use the sandbox as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sharing {
    Alone,
    Shared,
}

/// Serves one controller; this process must still have one thread.
pub(super) fn run_serve(
    workspace: PathBuf,
    mut environment: Vec<Vec<u8>>,
    sharing: Sharing,
    input: OwnedFd,
    output: OwnedFd,
) -> io::Result<()> {
    let (ours, theirs) = spawner::pair()?;
    let spawner_pid = match fork_single_threaded()? {
        Fork::Parent(pid) => pid,
        Fork::Child => {
            // They would stay open in it when the serving process is gone.
            drop((ours, input, output));
            let ended = spawner::detach_stdio().and_then(|()| spawner::run(theirs));
            exit_now(i32::from(ended.is_err()))
        }
    };
    drop(theirs);
    if std::process::id() == 1 {
        network::start()?;
    }
    home::make_missing(&environment);
    // Not before the fork: the lock on it would be the spawner's as well.
    let home = if sharing == Sharing::Shared {
        Some(Home::begin(&mut environment)?)
    } else {
        None
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let result = runtime.block_on(serve_stream(workspace, environment, ours, input, output));
    drop(runtime);
    if std::process::id() != 1 {
        wait_for_spawner(spawner_pid);
    }
    // When no writer is left.
    drop(home);
    result
}

async fn serve_stream(
    workspace: PathBuf,
    environment: Vec<Vec<u8>>,
    spawner: OwnedFd,
    input: OwnedFd,
    output: OwnedFd,
) -> io::Result<()> {
    let input = Pipe::new(input)?;
    let output = Pipe::new(output)?;
    let setup = Setup {
        workspace,
        scratch: PathBuf::from("/tmp"),
        environment,
        spawner: Spawner::new(spawner)?,
        build: build_id(),
    };
    let signals = watch(init::signals()?)?;
    tokio::select! {
        served = serve(input, output, setup) => served.map_err(io::Error::other),
        result = listen(&signals) => result,
    }
}

/// Reaps ended children; returns on a TERM from outside of the sandbox.
async fn listen(signals: &AsyncFd<SignalFd>) -> io::Result<()> {
    loop {
        let mut guard = signals.readable().await?;
        if init::told_to_end(signals.get_ref()) {
            return Ok(());
        }
        while let Reaped::Ended(_) = reap() {}
        guard.clear_ready();
    }
}

/// Its socket is closed by now, so it ends what it started; PID 1 need not wait, the kernel does
/// the same and faster.
fn wait_for_spawner(pid: i32) {
    let end = Instant::now() + SPAWNER_ENDS;
    while Instant::now() < end {
        match reap() {
            Reaped::Running => std::thread::sleep(Duration::from_millis(2)),
            Reaped::Ended(_) => {}
            Reaped::NoChildren => return,
        }
    }
    kill(pid, libc::SIGKILL);
}

/// Returns the environment for commands, and clears this process's own.
///
/// The host puts nothing of the user's into it; an image's own variables (`JAVA_HOME`,
/// `RUSTUP_HOME`) are kept, as far as they are [passed on](variables::passed_on).
#[expect(
    unsafe_code,
    reason = "clearing the environment is unsafe where other threads could read it"
)]
fn take_environment() -> Vec<Vec<u8>> {
    let passed = std::env::vars_os().filter_map(|(name, value)| {
        let value = variables::passed_on(&name.to_string_lossy(), value.as_bytes())?;
        Some((name.into_vec(), value))
    });
    let mut environment: Vec<(Vec<u8>, Vec<u8>)> =
        passed.filter(|(_, value)| !value.is_empty()).collect();
    for (name, default) in variables::DEFAULTS {
        if environment
            .iter()
            .all(|(found, _)| found != name.as_bytes())
        {
            environment.push((name.into(), default.into()));
        }
    }
    // SAFETY: this process still has one thread.
    unsafe { libc::clearenv() };
    environment
        .into_iter()
        .map(|(name, value)| [name, b"=".to_vec(), value].concat())
        .collect()
}

#[cfg(test)]
mod tests;
