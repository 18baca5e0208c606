//! Images as archives: out of the engine and into it, piece by piece.

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

/// The engine packs all of it before it sends the first byte, and unpacks all of it before it
/// answers.
const PATIENCE: Duration = Duration::from_mins(30);

/// An archive of images that the engine is writing.
pub struct SavedImages {
    stream: Pin<Box<dyn Stream<Item = Result<Bytes, bollard::errors::Error>> + Send>>,
    cancel: CancellationToken,
    idle: Duration,
}

impl SavedImages {
    /// Returns the next piece, `None` after the last.
    #[boxed]
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        let stream = &mut self.stream;
        let piece = async { stream.next().await.transpose() };
        bounded(|| "save images".to_owned(), &self.cancel, self.idle, piece).await
    }
}

impl Engine {
    /// Starts an archive of these images, with names that have a tag: without one the engine saves
    /// every tag there is.
    ///
    /// Images that share layers share them in the archive too. It waits at most `idle` for each
    /// piece, `None` stands for half an hour.
    pub fn save_images(
        &self,
        names: &[&str],
        idle: Option<Duration>,
        cancel: &CancellationToken,
    ) -> SavedImages {
        let docker = self.docker.clone().with_timeout(PATIENCE);
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        // The client's stream borrows the names until it has sent them; this one owns both.
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

    /// Gives the engine an archive of images; all of them are there afterwards, or an error says
    /// why not.
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

/// Returns an image's name with its tag, `latest` where it has none; `None` for a digest, which
/// names no tag.
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
