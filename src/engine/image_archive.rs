//! Exports and imports images as archives, in a stream.

use std::pin::Pin;
use std::time::Duration;

use async_recursion::async_recursion as boxed;
use bollard::query_parameters::ImportImageOptionsBuilder;
use bytes::Bytes;
use futures::Stream;
use futures::StreamExt;
use tokio_util::sync::CancellationToken;

use super::Engine;
use super::Error;
use super::bounded::bounded;

/// The engine packs the whole archive before it sends the first byte, and unpacks all before it
/// answers.
const PATIENCE: Duration = Duration::from_mins(30);

/// An archive of images that the engine is sending.
pub struct SavedImages {
    stream: Pin<Box<dyn Stream<Item = Result<Bytes, bollard::errors::Error>> + Send>>,
    cancel: CancellationToken,
    idle: Duration,
}

impl SavedImages {
    /// Returns the next chunk; `None` at the end.
    #[boxed]
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        let stream = &mut self.stream;
        let piece = async { stream.next().await.transpose() };
        bounded(|| "save images".to_owned(), &self.cancel, self.idle, piece).await
    }
}

impl Engine {
    /// Exports these images, named with their tags: without one the engine exports every tag.
    ///
    /// Images that share layers share them in the archive. Waits at most `idle` for each chunk;
    /// `None` means half an hour.
    pub fn save_images(
        &self,
        names: &[&str],
        idle: Option<Duration>,
        cancel: &CancellationToken,
    ) -> SavedImages {
        let docker = self.docker.clone().with_timeout(PATIENCE);
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        // The client's stream borrows the names; this task owns both.
        let (send, mut receive) = tokio::sync::mpsc::channel(4);
        let done = cancel.clone();
        tokio::spawn(async move {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let mut stream = docker.export_images(&names);
            loop {
                let piece = tokio::select! {
                    () = done.cancelled() => return,
                    piece = stream.next() => piece,
                };
                let Some(piece) = piece else { return };
                if send.send(piece).await.is_err() {
                    return;
                }
            }
        });
        let stream = futures::stream::poll_fn(move |context| receive.poll_recv(context));
        SavedImages {
            stream: Box::pin(stream),
            cancel: cancel.clone(),
            idle: idle.unwrap_or(PATIENCE),
        }
    }

    /// Imports an archive of images; either all are present afterwards, or the error says why not.
    pub async fn load_images<S>(
        &self,
        tar: S,
        within: Option<Duration>,
        cancel: &CancellationToken,
    ) -> Result<(), Error>
    where
        S: Stream<Item = Result<Bytes, std::io::Error>> + Send + 'static,
    {
        let docker = self.docker.clone().with_timeout(PATIENCE);
        let options = ImportImageOptionsBuilder::default().quiet(true).build();
        let mut stream = docker.import_image(options, bollard::body_try_stream(tar), None);
        let read = async {
            while let Some(item) = stream.next().await {
                if let Some(message) = item?.error_detail.and_then(|detail| detail.message) {
                    return Err(bollard::errors::Error::DockerStreamError { error: message });
                }
            }
            Ok(())
        };
        bounded(
            || "load images".to_owned(),
            cancel,
            within.unwrap_or(PATIENCE),
            read,
        )
        .await
    }
}

/// Returns an image's name with its tag, `latest` by default; `None` for a digest, which names no
/// tag.
pub fn with_tag(name: &str) -> Option<String> {
    if name.contains('@') {
        return None;
    }
    let has_tag = name
        .rsplit_once(':')
        .is_some_and(|(_, tag)| !tag.contains('/'));
    Some(if has_tag {
        name.to_owned()
    } else {
        format!("{name}:latest")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_gets_its_tag() {
        assert_eq!(
            with_tag("podbay/workspace").as_deref(),
            Some("podbay/workspace:latest")
        );
        assert_eq!(
            with_tag("localhost:5000/a").as_deref(),
            Some("localhost:5000/a:latest")
        );
        assert_eq!(with_tag("debian:13").as_deref(), Some("debian:13"));
        assert_eq!(with_tag("debian@sha256:00"), None);
    }
}
