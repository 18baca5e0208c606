use std::time::SystemTime;

use super::Error;
use crate::config::Config;
use crate::engine;
use crate::engine::Engine;
use crate::engine::Swept;
use crate::event::SessionId;
use crate::sandbox;
use crate::session;
use crate::session::State;
use tokio_util::sync::CancellationToken;

/// Removes what nobody will come back for: containers whose controller has ended, guest volumes of other builds.
pub async fn gc(config: &Config, cancel: &CancellationToken) -> Result<Swept, Error> {
    if let Ok(root) = State::find(|name| std::env::var_os(name)) {
        engine::keep_machine_id(&root);
    }
    let engine = Engine::connect(&config.engine, cancel).await.map_err(Error::Engine)?;
    let age = config.engine.keep_guest.duration();
    let mut swept = engine.sweep(&sandbox::guest_volume_name(), Some(age), cancel).await.map_err(Error::Engine)?;
    if cancel.is_cancelled() {
        return Err(Error::GivenUp { removed: swept.removed, left: swept.failed });
    }
    for (name, problem) in &mut swept.failed {
        *problem = format!("{problem}; {}", engine::how_to_remove(name));
    }
    Ok(swept)
}

/// Removes sessions that the settings (`session.keep_days`, `session.keep_sessions`) do not keep.
pub fn prune_sessions(state: &State, config: &Config) -> Result<Vec<SessionId>, Error> {
    session::prune(state, &config.session, SystemTime::now()).map_err(Error::Session)
}
