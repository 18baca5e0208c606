use std::io::Read;

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

/// Read, write and search permission for everybody.
const OPEN: u32 = 0o777;

/// Most bytes of an archive with one file that is read.
const LONGEST_FILE: usize = 256 << 10;

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
    /// Whether every user may read it, write to it and search it.
    pub is_open: bool,
}

/// What was looked for in an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageLook {
    pub entries: Vec<ImageEntry>,
    /// Content of the regular files that were to be read, by their paths; a missing or large one is
    /// left out.
    pub files: Vec<(String, Vec<u8>)>,
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
    /// checked so far. The content of the files at `read` is returned, too.
    pub async fn entries(
        &self,
        spec: &ContainerSpec,
        paths: &[String],
        read: &[String],
        on_answer: impl Fn(usize) + Sync,
        cancel: &CancellationToken,
    ) -> Result<ImageLook, Error> {
        let mut spec = spec.clone();
        // So that it cannot run anything even by mistake.
        spec.entrypoint = vec!["/never-started".to_owned()];
        let id = match self.create(&spec, cancel).await {
            Ok(id) => id,
            // The engine creates the image's volumes at once, and meets such a symlink first.
            Err(error) => {
                return circle(&error.to_string(), paths)
                    .map(|entry| ImageLook {
                        entries: vec![entry],
                        files: Vec::new(),
                    })
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
        let mut files = Vec::new();
        for path in read {
            if found.is_ok()
                && let Some(content) = self.file(id, path, cancel).await
            {
                files.push((path.clone(), content));
            }
        }
        self.discard(id).await;
        Ok(ImageLook {
            entries: found?.into_iter().flatten().collect(),
            files,
        })
    }

    /// Returns the content of a regular file; `None`: there is none, or it is too large.
    async fn file(
        &self,
        id: &ContainerId,
        path: &str,
        cancel: &CancellationToken,
    ) -> Option<Vec<u8>> {
        let options = DownloadFromContainerOptionsBuilder::default()
            .path(path)
            .build();
        let mut stream = self.docker.download_from_container(&id.0, Some(options));
        let read = async {
            let mut archive = Vec::new();
            while let Some(part) = stream.next().await {
                archive.extend_from_slice(&part?);
                if archive.len() > LONGEST_FILE {
                    break;
                }
            }
            Ok(archive)
        };
        let archive = bounded(|| format!("read `{path}`"), cancel, self.timeout, read)
            .await
            .ok()?;
        only_file(&archive)
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
                    is_open: found.file_mode & OPEN == OPEN,
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
        is_open: false,
    })
}

/// Returns the content of the one regular file of an archive.
fn only_file(archive: &[u8]) -> Option<Vec<u8>> {
    let mut archive = tar::Archive::new(archive);
    let mut entry = archive.entries().ok()?.next()?.ok()?;
    if !entry.header().entry_type().is_file() {
        return None;
    }
    let mut content = Vec::new();
    entry.read_to_end(&mut content).ok()?;
    Some(content)
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

    #[test]
    fn a_regular_file_is_read_out_of_its_archive() {
        let packed = |kind: tar::EntryType, content: &[u8]| {
            let mut archive = tar::Builder::new(Vec::new());
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(kind);
            header.set_mode(0o644);
            header.set_size(content.len() as u64);
            archive
                .append_data(&mut header, "passwd", content)
                .expect("packed");
            archive.into_inner().expect("packed")
        };
        let file = packed(tar::EntryType::Regular, b"root:x:0:0");
        assert_eq!(only_file(&file).as_deref(), Some(&b"root:x:0:0"[..]));
        assert_eq!(only_file(&packed(tar::EntryType::Directory, b"")), None);
        assert_eq!(only_file(&file[..100]), None, "truncated");
        assert_eq!(only_file(b""), None);
    }
}
