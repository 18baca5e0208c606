use std::path::Path;

use async_recursion::async_recursion as boxed;
use tokio_util::sync::CancellationToken;

use super::Error;
use podbay_config::Config;
use podbay_event::ProgressSink;
use podbay_inference as inference;
use podbay_inference::Paths;
use podbay_inference::Store;

/// Returns the command line of the model server for a container that compose has made, and clears
/// the way for its socket.
///
/// The model must be here: this container has no network.
#[boxed]
pub async fn model_server(
    config: &Config,
    home: &Path,
    socket: &Path,
    key: &Path,
    progress: &ProgressSink,
    cancel: &CancellationToken,
) -> Result<Vec<String>, Error> {
    let options = &config.inference;
    let offline = true;
    let store = Store::new(options, &Paths::new(home), offline).map_err(Error::Inference)?;
    let model = store.resolve(progress, cancel).await.map_err(|error| match error {
        // Where it is not here, neither may be its folder, in which whoever loads a model waits for
        // others.
        inference::Error::Offline { .. } | inference::Error::File { .. } | inference::Error::Engine { .. } => {
            let name = options.model.as_deref().unwrap_or("of the settings");
            Error::usage(
                format!("the model {name} is not here, and a model server has no network to load it by"),
                "`docker compose run --rm models` loads it; PODBAY_MODEL in `.env` names it, PODBAY_MODELS a folder of your own files",
            )
        }
        error => Error::Inference(error),
    })?;
    match std::fs::remove_file(socket) {
        // llama.cpp does not start where a file has its socket's name.
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            return Err(Error::Io {
                doing: format!("remove the old socket {}", socket.display()),
                source,
            });
        }
        _ => {}
    }
    inference::command(&model, options, socket, key).map_err(Error::Inference)
}
