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

/// The bit that says "symbolic link" in the engine's notation of a file's mode, which is that of the language it is written in.
const LINK: u32 = 1 << 27;

/// Questions to the engine at once. It mounts the image for each, which takes a processor: more of them bring nothing.
const AT_ONCE: usize = 4;

/// What the engine says of links that never end, before the path on its own machine.
const CIRCLE: &str = "too many links in ";

/// A symbolic link in an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageLink {
    pub path: String,
    /// Where it leads in the end, from the image's root; `None`: in a circle.
    pub target: Option<String>,
}

impl Engine {
    /// Returns which of these paths are symbolic links in an image, seen through a container that is created from `spec` and never started.
    ///
    /// A path that is not there is none. `on_answer` is told how many paths were looked at.
    pub async fn links(
        &self,
        spec: &ContainerSpec,
        paths: &[String],
        on_answer: impl Fn(usize) + Sync,
        cancel: &CancellationToken,
    ) -> Result<Vec<ImageLink>, Error> {
        let mut spec = spec.clone();
        // Not even by mistake could it run anything.
        spec.entrypoint = vec!["/never-started".to_owned()];
        let id = match self.create(&spec, cancel).await {
            Ok(id) => id,
            // The engine makes the image's volumes at once, and meets such a link first.
            Err(error) => return circle(&error.to_string(), paths).map(|link| vec![link]).ok_or(error),
        };
        let (id, image) = (&id, &spec.image);
        let asked = paths.iter().map(|path| self.link(id, image, path, cancel));
        let answers = futures::stream::iter(asked).buffered(AT_ONCE).enumerate().map(|(at, answer)| {
            on_answer(at + 1);
            answer
        });
        let found: Result<Vec<_>, Error> = answers.try_collect().await;
        self.remove(id).await?;
        Ok(found?.into_iter().flatten().collect())
    }

    async fn link(&self, id: &ContainerId, image: &str, path: &str, cancel: &CancellationToken) -> Result<Option<ImageLink>, Error> {
        let options = ContainerArchiveInfoOptionsBuilder::default().path(path).build();
        let doing = || format!("look at `{path}` in the image `{image}`");
        let request = self.docker.get_container_archive_info(&id.0, Some(options));
        match bounded(doing, cancel, self.timeout, request).await {
            Ok(found) if found.file_mode & LINK != 0 => Ok(Some(ImageLink { target: Some(found.link_target), path: path.to_owned() })),
            Ok(_) => Ok(None),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => {
                let words = self.words(id, path, cancel).await.unwrap_or_default();
                circle(&words, &[path.to_owned()]).map(Some).ok_or(error)
            }
        }
    }

    /// Returns why the engine cannot look at a path: the answer to that question has no body, so it is asked for the file itself.
    async fn words(&self, id: &ContainerId, path: &str, cancel: &CancellationToken) -> Option<String> {
        let options = DownloadFromContainerOptionsBuilder::default().path(path).build();
        let mut file = self.docker.download_from_container(&id.0, Some(options));
        let begun = async { file.next().await.transpose() };
        bounded(|| format!("look at `{path}`"), cancel, self.timeout, begun).await.err().map(|error| error.to_string())
    }
}

/// Reads from the engine's words which of these paths leads in a circle, if they say so.
fn circle(words: &str, paths: &[String]) -> Option<ImageLink> {
    let (_, place) = words.split_once(CIRCLE)?;
    // The path stands behind that of the folder in which the engine has the image.
    let path = paths.iter().filter(|path| place.trim_end().ends_with(path.as_str())).max_by_key(|path| path.len()).or(paths.first())?;
    Some(ImageLink { path: path.clone(), target: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_in_a_circle_are_known_by_the_words_of_the_engine() {
        let paths = ["/srv", "/a", "/srv/a", "/srv/a/data"].map(str::to_owned);
        let found = |words: &str| circle(words, &paths).map(|link| link.path);
        let said =
            "create the container: the engine refused (500): evalSymlinksInScope: too many links in /var/lib/docker/overlay2/9/merged";
        assert_eq!(found(&format!("{said}/srv/a")).as_deref(), Some("/srv/a"));
        assert_eq!(found(&format!("{said}/srv/a/data")).as_deref(), Some("/srv/a/data"));
        assert_eq!(found(said).as_deref(), Some("/srv"), "another engine may name no path at all");
        assert_eq!(found("the engine refused (500): the disk is on fire"), None);
    }
}
