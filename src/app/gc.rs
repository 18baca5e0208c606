use super::Error;
use crate::config::Config;
use crate::engine::Engine;
use crate::engine::Swept;
use crate::sandbox;
use tokio_util::sync::CancellationToken;

/// Removes what nobody will come back for: containers whose controller has ended, guest volumes of other builds.
pub async fn gc(config: &Config, cancel: &CancellationToken) -> Result<Swept, Error> {
    let engine = Engine::connect(&config.engine, cancel).await.map_err(Error::Engine)?;
    engine.sweep(&sandbox::guest_volume_name(), Some(config.engine.keep_guest.duration()), cancel).await.map_err(Error::Engine)
}
