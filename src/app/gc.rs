use std::time::SystemTime;

use super::Error;
use async_recursion::async_recursion as boxed;
use podbay_config::Config;
use podbay_engine as engine;
use podbay_engine::Engine;
use podbay_engine::SweepReport;
use podbay_event::SessionId;
use podbay_sandbox as sandbox;
use podbay_sandbox::Abandoned;
use podbay_sandbox::git::LeftGit;
use podbay_session as session;
use podbay_session::State;
use tokio_util::sync::CancellationToken;

/// What was removed, and what waits for the user's word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    pub swept: SweepReport,
    /// Snapshots that were left: their projects may be on a disk that is not there now.
    pub abandoned: Vec<Abandoned>,
    /// What sessions did with git, was not all taken over and was left.
    pub left_git: Vec<LeftGit>,
}

/// What goes only where somebody asks for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Also {
    /// Snapshots of projects that are not there any more.
    pub snapshots: bool,
    /// What sessions did with git that was not all taken over.
    pub git: bool,
}

/// Removes what nobody will come back for: containers whose controller has ended, guest volumes of
/// other builds, caches of projects that are not there any more, and what is to go `also`.
#[boxed]
pub async fn gc(
    config: &Config,
    also: Also,
    cancel: &CancellationToken,
) -> Result<Collected, Error> {
    if let Ok(root) = State::find(|name| std::env::var_os(name)) {
        engine::keep_machine_id(&root);
    }
    let engine = Engine::connect(&config.engine, cancel)
        .await
        .map_err(Error::Engine)?;
    let age = config.engine.keep_guest.duration();
    let mut swept = engine
        .sweep(&sandbox::guest_volume_name(), Some(age), cancel)
        .await
        .map_err(Error::Engine)?;
    if cancel.is_cancelled() {
        return Err(Error::GivenUp {
            removed: swept.removed,
            left: swept.failed,
        });
    }
    let caches = sandbox::abandoned_caches(&engine, cancel)
        .await
        .map_err(Error::Engine)?;
    let mut abandoned = sandbox::abandoned(&engine, cancel)
        .await
        .map_err(Error::Engine)?;
    let mut left_git = sandbox::git::left(&engine, cancel)
        .await
        .map_err(Error::Engine)?;
    // What was downloaded can be downloaded again.
    let mut wanted: Vec<String> = caches.into_iter().map(|cache| cache.volume).collect();
    if also.snapshots {
        wanted.extend(
            std::mem::take(&mut abandoned)
                .into_iter()
                .map(|Abandoned { volume, .. }| volume),
        );
    }
    if also.git {
        wanted.extend(
            std::mem::take(&mut left_git)
                .into_iter()
                .map(|LeftGit { volume, .. }| volume),
        );
    }
    for volume in wanted {
        match engine.remove_volume(&volume, cancel).await {
            Ok(true) => swept.removed.push(volume),
            Ok(false) => {}
            Err(error) => swept.failed.push((volume, error.with_causes())),
        }
    }
    for (name, problem) in &mut swept.failed {
        *problem = format!("{problem}; {}", engine::how_to_remove(name));
    }
    Ok(Collected {
        swept,
        abandoned,
        left_git,
    })
}

/// Removes sessions that the settings (`session.keep_days`, `session.keep_sessions`) do not keep.
pub fn prune_sessions(state: &State, config: &Config) -> Result<Vec<SessionId>, Error> {
    session::prune(state, &config.session, SystemTime::now()).map_err(Error::Session)
}
