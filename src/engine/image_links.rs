use async_recursion::async_recursion as boxed;
use bollard::query_parameters::ContainerArchiveInfoOptionsBuilder;
use bollard::query_parameters::DownloadFromContainerOptionsBuilder;
use futures::StreamExt;
use futures::TryStreamExt;
use tokio_util::sync::CancellationToken;

use super::ContainerId;
use super::ContainerSpec;
use super::Engine;
use super::Error;
use super::bounded::bounded;

/// Mode bits for folder and symlink, in the notation of Go's `fs.FileMode`.
const FOLDER: u32 = 1 << 31;
const LINK: u32 = 1 << 27;

/// Parallel requests. The engine mounts the image for each, which takes a core: more of them gain
/// nothing.
const AT_ONCE: usize = 4;

/// The engine's message about a symlink loop, before the path on its own machine.
const CIRCLE: &str = "too many links in ";

/// Its message about a path that continues below a file.
const BEHIND_FILE: &str = "not a directory";

/// What is at a path of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageEntry {
    pub path: String,
    pub kind: EntryKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryKind {
    Folder,
    /// A symlink, and its final target, from the image's root.
    Link(String),
    /// A symlink loop.
    Circle,
    /// A file, or another type.
    Other,
}

impl Engine {
    /// Returns what is at these paths in an image, by means of a container that is created from
    /// `spec` and never started.
    ///
    /// A missing path, or one below a file, is left out. `on_answer` receives the number of paths
    /// checked so far.
    pub async fn entries(
        &self,
        spec: &ContainerSpec,
        paths: &[String],
        on_answer: impl Fn(usize) + Sync,
        cancel: &CancellationToken,
    ) -> Result<Vec<ImageEntry>, Error> {
        let mut spec = spec.clone();
        // So that it cannot run anything even by mistake.
        spec.entrypoint = vec!["/never-started".to_owned()];
        let id = match self.create(&spec, cancel).await {
            Ok(id) => id,
            // The engine creates the image's volumes at once, and meets such a symlink first.
            Err(error) => {
                return circle(&error.to_string(), paths)
                    .map(|entry| vec![entry])
                    .ok_or(error);
            }
        };
        let (id, image) = (&id, &spec.image);
        let asked: Vec<_> = paths
            .iter()
            .map(|path| self.entry(id, image, path, cancel))
            .collect();
        let answers = futures::stream::iter(asked)
            .buffered(AT_ONCE)
            .enumerate()
            .map(|(at, answer)| {
                on_answer(at + 1);
                answer
            });
        let found: Result<Vec<_>, Error> = answers.try_collect().await;
        self.discard(id).await;
        Ok(found?.into_iter().flatten().collect())
    }

    #[boxed]
    async fn entry(
        &self,
        id: &ContainerId,
        image: &str,
        path: &str,
        cancel: &CancellationToken,
    ) -> Result<Option<ImageEntry>, Error> {
        let options = ContainerArchiveInfoOptionsBuilder::default()
            .path(path)
            .build();
        let doing = || format!("look at `{path}` in the image `{image}`");
        let request = self.docker.get_container_archive_info(&id.0, Some(options));
        match bounded(doing, cancel, self.timeout, request).await {
            Ok(found) => {
                let kind = match found.file_mode {
                    mode if mode & LINK != 0 => EntryKind::Link(found.link_target),
                    mode if mode & FOLDER != 0 => EntryKind::Folder,
                    _ => EntryKind::Other,
                };
                Ok(Some(ImageEntry {
                    path: path.to_owned(),
                    kind,
                }))
            }
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => {
                let words = self.words(id, path, cancel).await.unwrap_or_default();
                if words.contains(BEHIND_FILE) {
                    return Ok(None);
                }
                circle(&words, &[path.to_owned()]).map(Some).ok_or(error)
            }
        }
    }

    /// Returns why the engine cannot inspect a path: the response of that request has no body, so
    /// the file itself is requested.
    async fn words(
        &self,
        id: &ContainerId,
        path: &str,
        cancel: &CancellationToken,
    ) -> Option<String> {
        let options = DownloadFromContainerOptionsBuilder::default()
            .path(path)
            .build();
        let mut file = self.docker.download_from_container(&id.0, Some(options));
        let begun = async { file.next().await.transpose() };
        bounded(|| format!("look at `{path}`"), cancel, self.timeout, begun)
            .await
            .err()
            .map(|error| error.to_string())
    }
}

/// Finds which of these paths is a symlink loop in the engine's message, if it says so.
fn circle(words: &str, paths: &[String]) -> Option<ImageEntry> {
    let (_, place) = words.split_once(CIRCLE)?;
    // The path follows that of the folder in which the engine mounts the image.
    let path = paths
        .iter()
        .filter(|path| place.trim_end().ends_with(path.as_str()))
        .max_by_key(|path| path.len())
        .or(paths.first())?;
    Some(ImageEntry {
        path: path.clone(),
        kind: EntryKind::Circle,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symlink_loops_are_recognized_in_the_engines_message() {
        let paths = ["/srv", "/a", "/srv/a", "/srv/a/data"].map(str::to_owned);
        let found = |words: &str| circle(words, &paths).map(|entry| entry.path);
        let said = "create the container: the engine refused (500): evalSymlinksInScope: too many links in /var/lib/docker/overlay2/9/merged";
        assert_eq!(found(&format!("{said}/srv/a")).as_deref(), Some("/srv/a"));
        assert_eq!(
            found(&format!("{said}/srv/a/data")).as_deref(),
            Some("/srv/a/data")
        );
        assert_eq!(
            found(said).as_deref(),
            Some("/srv"),
            "another engine may name no path at all"
        );
        assert_eq!(found("the engine refused (500): the disk is on fire"), None);
    }
}
