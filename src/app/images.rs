use async_recursion::async_recursion as boxed;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::Error;
use podbay_config::Config;
use podbay_engine::Engine;
use podbay_engine::ImageState;
use podbay_engine::ListedImage;
use podbay_engine::Provision;
use podbay_event::ProgressSink;
use podbay_session::State;

/// The controller's own image, which compose runs it from.
const CONTROLLER: &str = "podbay/podbay";

/// Builds Podbay's own images, the named ones or those that compose.yaml names; returns their names
/// and ids.
#[boxed]
pub async fn build_images(
    config: &Config,
    state: &State,
    names: &[String],
    install: bool,
    progress: &ProgressSink,
    cancel: &CancellationToken,
) -> Result<Vec<(String, String)>, Error> {
    if let Some(name) = names.iter().find(|name| !Provision::is_own(name)) {
        return Err(Error::usage(
            format!("`{name}` is no image of Podbay's own"),
            format!(
                "there are {}; any other image is built by its own means",
                Provision::own_names().join(", ")
            ),
        ));
    }
    let engine = Engine::connect(&config.engine, cancel)
        .await
        .map_err(Error::Engine)?;
    let provision = Provision::new(
        &engine,
        &config.engine,
        config.offline,
        state.locks(),
        progress,
    )
    .allow_install(install);
    let needed = [
        podbay_sandbox::DEFAULT_IMAGE.to_owned(),
        podbay_inference::DEFAULT_IMAGE.to_owned(),
        CONTROLLER.to_owned(),
    ];
    let names = if names.is_empty() { &needed[..] } else { names };
    let mut built = Vec::new();
    for name in names {
        let image = provision.build(name, cancel).await.map_err(Error::Engine)?;
        built.push((name.clone(), image.id));
    }
    Ok(built)
}

/// One image of ours in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImageLine {
    pub name: String,
    /// `present`, `outdated` or `absent`.
    pub state: &'static str,
    pub size_mib: Option<u64>,
}

/// Lists Podbay's own images, whether they are there or not.
#[boxed]
pub async fn list_images(
    config: &Config,
    state: &State,
    progress: &ProgressSink,
    cancel: &CancellationToken,
) -> Result<Vec<ImageLine>, Error> {
    let engine = Engine::connect(&config.engine, cancel)
        .await
        .map_err(Error::Engine)?;
    let listed = Provision::new(
        &engine,
        &config.engine,
        config.offline,
        state.locks(),
        progress,
    )
    .list(cancel)
    .await
    .map_err(Error::Engine)?;
    let line = |image: ListedImage| ImageLine {
        name: image.name,
        state: match image.state {
            ImageState::Present => "present",
            ImageState::Outdated => "outdated",
            ImageState::Absent => "absent",
        },
        size_mib: image.facts.map(|facts| facts.size >> 20),
    };
    Ok(listed.into_iter().map(line).collect())
}
