use std::process::ExitStatus;
use std::time::Duration;

use tokio_util::io::ReaderStream;
use tokio_util::sync::CancellationToken;

use super::Engine;
use super::Error;
use super::Labels;
use super::Role;
use super::debian_archive::ChosenBuildArgs;
use super::host_program::HostProgram;
use super::host_program::LastLines;
use super::recipes::BASE_SCRIPT;
use super::recipes::base_hash;
use podbay_event::InstanceId;
use podbay_event::Progress;
use podbay_event::ProgressSink;
use podbay_event::Unit;

/// The script's exit code for missing tools; its last line names their packages.
const TOOLS_MISSING: i32 = 3;

/// Time limit for making a base image; a slow mirror takes longest.
const WITHIN: Duration = Duration::from_mins(30);

/// Returns the name of our own base image.
pub(super) fn base_name(suite: &str) -> String {
    format!("podbay/base-{suite}")
}

/// Makes a base image from Debian's archive with our script.
///
/// Installs missing tools if `allow_install` is set and this is root; `progress` announces it.
pub(super) async fn make(
    engine: &Engine,
    suite: &str,
    chosen: &ChosenBuildArgs,
    allow_install: bool,
    progress: &ProgressSink,
    cancel: &CancellationToken,
) -> Result<(), Error> {
    let no_base = |problem: String| Error::NoBase {
        suite: suite.to_owned(),
        problem,
    };
    if !nix::unistd::geteuid().is_root() {
        return Err(no_base("making one needs root".to_owned()));
    }
    let (status, said) = match run(engine, suite, chosen, progress, cancel).await? {
        (status, said) if status.code() == Some(TOOLS_MISSING) => {
            let packages: Vec<String> = said
                .last()
                .rsplit(':')
                .next()
                .unwrap_or_default()
                .split_whitespace()
                .map(str::to_owned)
                .collect();
            if !allow_install {
                return Err(Error::MissingTools {
                    suite: suite.to_owned(),
                    packages,
                });
            }
            install(&packages, progress, cancel).await?;
            run(engine, suite, chosen, progress, cancel).await?
        }
        other => other,
    };
    if status.success() {
        Ok(())
    } else {
        Err(no_base(format!(
            "making one failed\nits last lines were:\n  {said}"
        )))
    }
}

/// Runs the script once; the image gets its name only if the script succeeds.
async fn run(
    engine: &Engine,
    suite: &str,
    chosen: &ChosenBuildArgs,
    progress: &ProgressSink,
    cancel: &CancellationToken,
) -> Result<(ExitStatus, LastLines), Error> {
    let failed = |source| Error::Program {
        program: "make.sh",
        source,
    };
    let folder = tempfile::Builder::new()
        .prefix("podbay-")
        .tempdir()
        .map_err(failed)?;
    let script = folder.path().join("make.sh");
    std::fs::write(&script, BASE_SCRIPT).map_err(failed)?;
    let script = script.to_str().ok_or_else(|| {
        failed(std::io::Error::other(
            "the folder for temporary files is not UTF-8",
        ))
    })?;
    // Run through the interpreter: temporary folders are often mounted noexec.
    let mirror = chosen
        .mirror()
        .map(|mirror| format!("DEBIAN_MIRROR={mirror}"));
    let words: Vec<&str> = ["env"]
        .into_iter()
        .chain(mirror.as_deref())
        .chain(["sh", script, suite])
        .collect();
    let mut program = HostProgram::start(&words).map_err(failed)?;
    let tar = ReaderStream::with_capacity(program.stdout(), 256 * 1024);
    let task = format!("making a base image of Debian {suite}");
    let said = program.said({
        let (task, progress) = (task.clone(), progress.clone());
        move |line| progress(step(&task, line, false))
    });
    // A temporary name: an engine may accept a truncated tar as complete.
    let unfinished = format!("{}:unfinished-{}", base_name(suite), InstanceId::random());
    let labels = Labels {
        spec: Some(base_hash(chosen)),
        ..Labels::new(Role::Image)
    };
    let mut changes = vec!["CMD [\"bash\"]".to_owned()];
    changes.extend(
        labels
            .to_map()
            .iter()
            .map(|(name, value)| format!("LABEL {name}=\"{value}\"")),
    );
    let imported = engine.import(&unfinished, tar, changes, WITHIN, cancel);
    let ended = async {
        let said = said.await;
        (program.ended().await, said)
    };
    let outcome = {
        let mut ended = std::pin::pin!(ended);
        let mut imported = std::pin::pin!(imported);
        tokio::select! {
            (status, said) = &mut ended => {
                // If the script failed, the import's result does not matter, only that it has
                // ended.
                let imported = imported.await;
                match status {
                    Ok(status) if status.success() => imported.map(|()| (status, said)),
                    Ok(status) => Ok((status, said)),
                    Err(source) => Err(failed(source)),
                }
            }
            imported = &mut imported => match (imported, tokio::time::timeout(Duration::from_secs(2), ended).await) {
                (Err(error @ Error::Cancelled { .. }), _) => Err(error),
                (_, Ok((Err(source), _))) => Err(failed(source)),
                // A script that ends early leaves the engine without a tar: the script's error is
                // the cause.
                (_, Ok((Ok(status), said))) if !status.success() => Ok((status, said)),
                (Ok(()), Ok((Ok(status), said))) => Ok((status, said)),
                (Ok(()), Err(_)) => Err(failed(std::io::Error::from(std::io::ErrorKind::TimedOut))),
                (Err(error), _) => Err(error),
            },
        }
    };
    let outcome = match outcome {
        Ok((status, said)) if status.success() => engine
            .tag_image(&unfinished, &base_name(suite), cancel)
            .await
            .map(|()| (status, said)),
        Ok(failed) => Ok(failed),
        Err(error) => {
            program.end().await;
            Err(error)
        }
    };
    // Also after a failure; the clean-up ignores cancellation.
    match engine
        .remove_image(&unfinished, &CancellationToken::new())
        .await
    {
        Ok(()) => {}
        Err(error) if error.is_not_found() => {}
        Err(error) => tracing::warn!(%error, "an unfinished image was not removed"),
    }
    progress(step(&task, "", true));
    outcome
}

/// Installs packages on this machine: the only change to it, so it is announced first.
async fn install(
    packages: &[String],
    progress: &ProgressSink,
    cancel: &CancellationToken,
) -> Result<(), Error> {
    // The names come from our script; its last line must not become an option.
    let names: Vec<&str> = packages
        .iter()
        .map(String::as_str)
        .filter(|name| name.starts_with(|c: char| c.is_ascii_alphanumeric()))
        .collect();
    let task = format!("installing {} on this machine", names.join(", "));
    progress(step(&task, "", false));
    let mut argv = vec!["apt-get", "-q", "-y", "--no-install-recommends", "install"];
    argv.extend(&names);
    // The package lists are usually recent enough; new ones are fetched only if they are not.
    let mut outcome = finish(&argv, &task, progress, cancel).await?;
    if outcome.is_err() {
        outcome = match finish(&["apt-get", "-q", "update"], &task, progress, cancel).await? {
            Ok(()) => finish(&argv, &task, progress, cancel).await?,
            failed => failed,
        };
    }
    progress(step(&task, "", true));
    outcome.map_err(|said| Error::Program {
        program: "apt-get",
        source: std::io::Error::other(said.to_string()),
    })
}

/// Runs a program to its end; the inner error is its output.
async fn finish(
    argv: &[&str],
    task: &str,
    progress: &ProgressSink,
    cancel: &CancellationToken,
) -> Result<Result<(), LastLines>, Error> {
    let failed = |source| Error::Program {
        program: "apt-get",
        source,
    };
    let mut program = HostProgram::start(argv).map_err(failed)?;
    let out = super::host_program::read(program.stdout(), |line| progress(step(task, line, false)));
    let said = program.said(|_| {});
    let ended = async {
        let (_, said) = tokio::join!(out, said);
        program.ended().await.map(|status| (status, said))
    };
    let outcome = tokio::select! {
        () = cancel.cancelled() => None,
        outcome = tokio::time::timeout(WITHIN, ended) => Some(outcome),
    };
    match outcome {
        Some(Ok(outcome)) => {
            let (status, said) = outcome.map_err(failed)?;
            Ok(if status.success() { Ok(()) } else { Err(said) })
        }
        Some(Err(_)) => {
            program.end().await;
            Err(failed(std::io::Error::from(std::io::ErrorKind::TimedOut)))
        }
        None => {
            program.end().await;
            Err(Error::Cancelled {
                doing: task.to_owned(),
            })
        }
    }
}

fn step(task: &str, detail: &str, finished: bool) -> Progress {
    Progress {
        task: task.to_owned(),
        done: 0,
        total: None,
        unit: Unit::Steps,
        detail: detail.to_owned(),
        finished,
    }
}
