use bollard::query_parameters::ContainerArchiveInfoOptionsBuilder;
use futures::StreamExt;
use futures::TryStreamExt;
use tokio_util::sync::CancellationToken;

use super::ContainerId;
use super::ContainerSpec;
use super::Engine;
use super::Error;
use super::bounded::bounded;

/// The bit that says "symbolic link" in the engine's notation of a file's mode, which is that of the language it is written in.
const LINK: u32 = 1 << 27;

/// Questions to the engine at once: it mounts the image for each.
const AT_ONCE: usize = 4;

/// A symbolic link in an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageLink {
    pub path: String,
    /// Where it leads in the end, from the image's root.
    pub target: String,
}

impl Engine {
    /// Returns which of these paths are symbolic links in an image, seen through a container that is created from `spec` and never started.
    ///
    /// A path that is not there is none.
    pub async fn links(&self, spec: &ContainerSpec, paths: &[String], cancel: &CancellationToken) -> Result<Vec<ImageLink>, Error> {
        let mut spec = spec.clone();
        // Not even by mistake could it run anything.
        spec.entrypoint = vec!["/never-started".to_owned()];
        let id = self.create(&spec, cancel).await?;
        let (id, image) = (&id, &spec.image);
        let asked = paths.iter().map(|path| self.link(id, image, path, cancel));
        let found: Result<Vec<_>, Error> = futures::stream::iter(asked).buffered(AT_ONCE).try_collect().await;
        self.remove(id).await?;
        Ok(found?.into_iter().flatten().collect())
    }

    async fn link(&self, id: &ContainerId, image: &str, path: &str, cancel: &CancellationToken) -> Result<Option<ImageLink>, Error> {
        let options = ContainerArchiveInfoOptionsBuilder::default().path(path).build();
        let doing = || format!("look at `{path}` in the image `{image}`");
        let request = self.docker.get_container_archive_info(&id.0, Some(options));
        match bounded(doing, cancel, self.timeout, request).await {
            Ok(found) if found.file_mode & LINK != 0 => Ok(Some(ImageLink { target: found.link_target, path: path.to_owned() })),
            Ok(_) => Ok(None),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }
}
