use std::time::Duration;

use async_recursion::async_recursion as boxed;
use tokio_util::sync::CancellationToken;

use super::Engine;
use super::Error;
use super::Labels;
use super::Role;
use super::VolumeFile;
use super::volume::archive;

/// How long the engine may take to make one: it is some kilobytes.
const WITHIN: Duration = Duration::from_secs(60);

impl Engine {
    /// Makes an image that has these folders and nothing else.
    ///
    /// A new volume that a container of it has at one of them gets what lies there, with owners and
    /// modes: no container has to be made to fill it.
    #[boxed]
    pub async fn make_folders_image(
        &self,
        tag: &str,
        folders: &[VolumeFile],
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let archive = archive(folders).map_err(|source| Error::Lost {
            doing: format!("pack the folders of the image `{tag}`"),
            source: source.into(),
        })?;
        let labels = Labels::new(Role::Image).to_map();
        let changes = labels
            .iter()
            .map(|(name, value)| format!("LABEL {name}=\"{value}\""))
            .collect();
        let whole = futures::stream::iter([Ok(archive)]);
        self.import(tag, whole, changes, WITHIN, cancel).await
    }
}
