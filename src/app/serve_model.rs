use std::path::Path;

use tokio_util::sync::CancellationToken;

use super::Error;
use crate::config::Config;
use crate::event::ProgressSink;
use crate::inference;
use crate::inference::Paths;

/// Returns the command line of the model server for a container that compose has made, and clears the way for its socket.
///
/// The model must be here: this container has no network.
pub async fn model_server(
    config: &Config,
    home: &Path,
    socket: &Path,
    key: &Path,
    progress: &ProgressSink,
    cancel: &CancellationToken,
) -> Result<Vec<String>, Error> {
    let options = inference::Options { download_retries: 0, ..config.inference.clone() };
    let model = inference::resolve(&options, &Paths::new(home), progress, cancel).await.map_err(|error| match error {
        inference::Error::Download { .. }
        | inference::Error::File { .. }
        | inference::Error::Engine { .. }
        | inference::Error::NoSpace { .. } => {
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
            return Err(Error::Io { doing: format!("remove the old socket {}", socket.display()), source });
        }
        _ => {}
    }
    inference::command(&model, &options, socket, key).map_err(Error::Inference)
}
