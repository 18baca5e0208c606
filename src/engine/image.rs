use std::collections::HashMap;
use std::time::Duration;

use async_recursion::async_recursion as boxed;
use bollard::models::BuildInfo;
use bollard::query_parameters::BuildImageOptionsBuilder;
use bollard::query_parameters::CreateImageOptionsBuilder;
use bollard::query_parameters::ListImagesOptionsBuilder;
use bollard::query_parameters::RemoveImageOptionsBuilder;
use bollard::query_parameters::TagImageOptionsBuilder;
use bytes::Bytes;
use futures::Stream;
use futures::StreamExt;
use tokio_util::sync::CancellationToken;

use super::Engine;
use super::Error;
use super::Labels;
use super::bounded::bounded;
use podbay_event::Progress;
use podbay_event::ProgressSink;
use podbay_event::Unit;

/// How long one step of a build may print nothing.
const STEP: Duration = Duration::from_mins(10);

/// Facts about an image, as the engine reports them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageFacts {
    pub id: String,
    pub tags: Vec<String>,
    pub labels: Option<Labels>,
    /// Paths for which the engine would create a writable volume.
    pub volumes: Vec<String>,
    /// `NAME=value`, as the image sets them.
    pub env: Vec<String>,
    pub architecture: String,
    /// Bytes on the engine's disk.
    pub size: u64,
}

/// An image to build from embedded files.
pub struct BuildImage<'a> {
    pub tag: &'a str,
    /// Path and bytes of every file of the build context, including `Dockerfile`; `true` makes one
    /// executable.
    pub files: &'a [(String, Bytes, bool)],
    pub args: &'a HashMap<String, String>,
    pub labels: &'a Labels,
    /// Network of the build's steps; `None` is the engine's default.
    pub network: Option<&'a str>,
}

impl Engine {
    /// Returns the facts about an image; `None` if the engine has no such image.
    #[boxed]
    pub async fn image(
        &self,
        name: &str,
        cancel: &CancellationToken,
    ) -> Result<Option<ImageFacts>, Error> {
        let doing = || format!("look at the image `{name}`");
        let found =
            match bounded(doing, cancel, self.timeout, self.docker.inspect_image(name)).await {
                Ok(found) => found,
                Err(error) if error.is_not_found() => return Ok(None),
                Err(error) => return Err(error),
            };
        let config = found.config.unwrap_or_default();
        Ok(Some(ImageFacts {
            id: found.id.unwrap_or_default(),
            tags: found.repo_tags.unwrap_or_default(),
            labels: config.labels.as_ref().and_then(Labels::from_map),
            volumes: config.volumes.unwrap_or_default(),
            env: config.env.unwrap_or_default(),
            architecture: found.architecture.unwrap_or_default(),
            size: found
                .size
                .and_then(|bytes| u64::try_from(bytes).ok())
                .unwrap_or(0),
        }))
    }

    /// Lists the images with our labels.
    #[boxed]
    pub async fn images(&self, cancel: &CancellationToken) -> Result<Vec<ImageFacts>, Error> {
        let filters = HashMap::from([(
            "label".to_owned(),
            vec![format!("{}role", super::label::PREFIX)],
        )]);
        self.list(&filters, "list our images", cancel).await
    }

    /// Lists all images. A list has neither volumes nor variables of one.
    pub(super) async fn all_images(
        &self,
        cancel: &CancellationToken,
    ) -> Result<Vec<ImageFacts>, Error> {
        self.list(&HashMap::new(), "list images", cancel).await
    }

    async fn list(
        &self,
        filters: &HashMap<String, Vec<String>>,
        doing: &str,
        cancel: &CancellationToken,
    ) -> Result<Vec<ImageFacts>, Error> {
        let options = ListImagesOptionsBuilder::default().filters(filters).build();
        let found = bounded(
            || doing.to_owned(),
            cancel,
            self.timeout,
            self.docker.list_images(Some(options)),
        )
        .await?;
        Ok(found
            .into_iter()
            .map(|image| ImageFacts {
                id: image.id,
                tags: image.repo_tags,
                labels: Labels::from_map(&image.labels),
                volumes: Vec::new(),
                env: Vec::new(),
                architecture: String::new(),
                size: u64::try_from(image.size).unwrap_or(0),
            })
            .collect())
    }

    /// Lists the ids of untagged images that are stages of our builds.
    pub(super) async fn stages(
        &self,
        mark: &str,
        cancel: &CancellationToken,
    ) -> Result<Vec<String>, Error> {
        let label = format!("{}stage={mark}", super::label::PREFIX);
        let filters = HashMap::from([
            ("label".to_owned(), vec![label]),
            ("dangling".to_owned(), vec!["true".to_owned()]),
        ]);
        let options = ListImagesOptionsBuilder::default()
            .filters(&filters)
            .build();
        let found = bounded(
            || "list stages of a build".to_owned(),
            cancel,
            self.timeout,
            self.docker.list_images(Some(options)),
        )
        .await?;
        Ok(found.into_iter().map(|image| image.id).collect())
    }

    #[boxed]
    pub async fn remove_image(&self, name: &str, cancel: &CancellationToken) -> Result<(), Error> {
        let options = RemoveImageOptionsBuilder::default().force(false).build();
        let request = self.docker.remove_image(name, Some(options), None);
        bounded(
            || format!("remove the image `{name}`"),
            cancel,
            self.timeout,
            request,
        )
        .await
        .map(|_| ())
    }

    /// Adds a name to an image, with the tag `latest`; another image of that name loses it.
    #[boxed]
    pub async fn tag_image(
        &self,
        image: &str,
        name: &str,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let options = TagImageOptionsBuilder::default()
            .repo(name)
            .tag("latest")
            .build();
        let request = self.docker.tag_image(image, Some(options));
        bounded(
            || format!("name the image `{name}`"),
            cancel,
            self.timeout,
            request,
        )
        .await
    }

    /// Pulls an image. A registry that sends nothing for `first_byte` counts as unreachable.
    #[boxed]
    pub async fn pull(
        &self,
        name: &str,
        first_byte: Duration,
        progress: &ProgressSink,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let (repository, tag) = split_tag(name);
        let options = CreateImageOptionsBuilder::default()
            .from_image(repository)
            .tag(tag)
            .build();
        let mut stream = self.docker.create_image(Some(options), None, None);
        let task = format!("pulling {name}");
        let fail = |message: String| Error::Pull {
            image: name.to_owned(),
            message,
        };
        let mut layers: HashMap<String, (u64, u64)> = HashMap::new();
        let mut patience = first_byte;
        loop {
            let item = tokio::select! {
                () = cancel.cancelled() => return Err(Error::Cancelled { doing: format!("pull the image `{name}`") }),
                item = tokio::time::timeout(patience, stream.next()) => item,
            };
            let info = match item {
                Err(_) => {
                    return Err(fail(format!(
                        "the registry said nothing for {} s",
                        patience.as_secs()
                    )));
                }
                Ok(None) => break,
                Ok(Some(Err(source))) => return Err(fail(source.to_string())),
                Ok(Some(Ok(info))) => info,
            };
            // Once data came, the network may just be slow.
            patience = Duration::from_secs(120);
            if let Some(message) = info.error_detail.and_then(|detail| detail.message) {
                return Err(fail(message));
            }
            if let (Some(layer), Some(detail)) = (info.id, info.progress_detail)
                && info.status.as_deref() == Some("Downloading")
            {
                let number = |value: Option<i64>| {
                    value
                        .and_then(|bytes| u64::try_from(bytes).ok())
                        .unwrap_or(0)
                };
                layers.insert(layer, (number(detail.current), number(detail.total)));
            }
            let (done, total) = layers.values().fold((0, 0), |(done, total), layer| {
                (done + layer.0, total + layer.1)
            });
            progress(Progress {
                task: task.clone(),
                done,
                total: (total > 0).then_some(total),
                unit: Unit::Bytes,
                detail: info.status.unwrap_or_default(),
                finished: false,
            });
        }
        progress(Progress {
            task,
            done: 0,
            total: None,
            unit: Unit::Bytes,
            detail: String::new(),
            finished: true,
        });
        Ok(())
    }

    /// Imports a tar of a root file system as an image of one layer.
    pub async fn import<S>(
        &self,
        tag: &str,
        tar: S,
        changes: Vec<String>,
        within: Duration,
        cancel: &CancellationToken,
    ) -> Result<(), Error>
    where
        S: Stream<Item = Result<Bytes, std::io::Error>> + Send + 'static,
    {
        let (repository, version) = split_tag(tag);
        let options = CreateImageOptionsBuilder::default()
            .from_src("-")
            .repo(repository)
            .tag(version)
            .changes(changes)
            .build();
        // The engine answers at the end of the tar, which may take up to `within` to create.
        let docker = self.docker.clone().with_timeout(within);
        let mut stream =
            docker.create_image(Some(options), Some(bollard::body_try_stream(tar)), None);
        let read = async {
            while let Some(item) = stream.next().await {
                if let Some(message) = item?.error_detail.and_then(|detail| detail.message) {
                    return Err(bollard::errors::Error::DockerStreamError { error: message });
                }
            }
            Ok(())
        };
        bounded(|| format!("import the image `{tag}`"), cancel, within, read).await
    }

    /// Builds an image with the engine's own builder. The output of each step goes to `progress`.
    #[boxed]
    pub async fn build(
        &self,
        build: &BuildImage<'_>,
        progress: &ProgressSink,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let fail = |message: String| Error::Build {
            image: build.tag.to_owned(),
            message,
        };
        let context = context(build.files).map_err(|error| fail(error.to_string()))?;
        let mut options = BuildImageOptionsBuilder::default()
            .t(build.tag)
            .dockerfile("Dockerfile")
            .buildargs(build.args)
            .labels(&build.labels.to_map())
            .rm(true)
            .forcerm(true);
        if let Some(network) = build.network {
            options = options.networkmode(network);
        }
        let task = format!("building {}", build.tag);
        let docker = self.docker.clone().with_timeout(STEP);
        let mut stream =
            docker.build_image(options.build(), None, Some(bollard::body_full(context)));
        let mut steps = Steps::default();
        loop {
            let item = tokio::select! {
                () = cancel.cancelled() => return Err(Error::Cancelled { doing: format!("build the image `{}`", build.tag) }),
                item = tokio::time::timeout(STEP, stream.next()) => item,
            };
            match item {
                Err(_) => {
                    return Err(fail(format!(
                        "a step printed nothing for {} s",
                        STEP.as_secs()
                    )));
                }
                Ok(None) => break,
                Ok(Some(Err(source))) => return Err(fail(steps.explain(&source.to_string()))),
                Ok(Some(Ok(info))) => {
                    if let Some(message) = steps.take(info) {
                        return Err(fail(steps.explain(&message)));
                    }
                    let (done, total) = steps.position;
                    progress(Progress {
                        task: task.clone(),
                        done,
                        total: (total > 0).then_some(total),
                        unit: Unit::Steps,
                        detail: steps.lines.last().cloned().unwrap_or_default(),
                        finished: false,
                    });
                }
            }
        }
        progress(Progress {
            task,
            done: steps.position.1,
            total: Some(steps.position.1),
            unit: Unit::Steps,
            detail: String::new(),
            finished: true,
        });
        Ok(())
    }
}

/// The output of a build so far: its step and its last lines, which explain a failure best.
#[derive(Default)]
struct Steps {
    lines: Vec<String>,
    position: (u64, u64),
}

impl Steps {
    /// Handles one message; returns the error in it, if there is one.
    fn take(&mut self, info: BuildInfo) -> Option<String> {
        if let Some(message) = info.error_detail.and_then(|detail| detail.message) {
            return Some(message);
        }
        for line in info
            .stream
            .unwrap_or_default()
            .lines()
            .map(str::trim_end)
            .filter(|line| !line.is_empty())
        {
            if let Some((at, of)) = line
                .strip_prefix("Step ")
                .and_then(|rest| rest.split(' ').next())
                .and_then(|pair| pair.split_once('/'))
            {
                self.position = (at.parse().unwrap_or(0), of.parse().unwrap_or(0));
            }
            if self.lines.len() == 12 {
                self.lines.remove(0);
            }
            self.lines.push(line.to_owned());
        }
        None
    }

    fn explain(&self, message: &str) -> String {
        if self.lines.is_empty() {
            message.to_owned()
        } else {
            format!(
                "{message}\nits last lines were:\n  {}",
                self.lines.join("\n  ")
            )
        }
    }
}

fn context(files: &[(String, Bytes, bool)]) -> std::io::Result<Bytes> {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, content, executable) in files {
        let mut header = tar::Header::new_gnu();
        header.set_mode(if *executable { 0o755 } else { 0o644 });
        header.set_size(content.len() as u64);
        archive.append_data(&mut header, path, content.as_ref())?;
    }
    archive.into_inner().map(Bytes::from)
}

/// Splits `repository:tag`; a colon before the last slash belongs to a registry's port, and a
/// digest is no tag.
pub(super) fn split_tag(name: &str) -> (&str, &str) {
    if let Some((repository, digest)) = name.split_once('@') {
        return (repository, digest);
    }
    match name.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => (repository, tag),
        _ => (name, "latest"),
    }
}

#[cfg(test)]
mod tests {
    use super::split_tag;

    #[test]
    fn a_registry_port_is_no_tag() {
        assert_eq!(split_tag("debian:trixie"), ("debian", "trixie"));
        assert_eq!(
            split_tag("localhost:5000/a"),
            ("localhost:5000/a", "latest")
        );
        assert_eq!(split_tag("a@sha256:00"), ("a", "sha256:00"));
    }
}
