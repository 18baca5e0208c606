//! What the images here are, for engines whose ids do not tell: containerd's image store calls an
//! image by a manifest that every engine writes anew, so the same image has another id on each
//! machine. What it packs up holds the configuration, whose hash is the same everywhere.

use std::io;
use std::io::Read;

use bytes::Buf;
use bytes::Bytes;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Error;
use super::archive::Archive;
use super::archive::Problem;
use super::file::Meter;
use super::manifest::Image;
use crate as app;
use podbay_engine::Engine;
use podbay_event::ProgressSink;

/// Returns images that are here with the hashes of their configurations. The engine packs them up
/// for it, and nothing of that is kept.
pub(super) async fn look(
    engine: &Engine,
    names: &[&str],
    progress: &ProgressSink,
    cancel: &CancellationToken,
) -> Result<Vec<Image>, app::Error> {
    let mut saved = engine.save_images(names, None, cancel);
    let mut meter = Meter::new("comparing the images that are here", None, progress);
    let (send, receive) = mpsc::channel(4);
    let reading = tokio::task::spawn_blocking(move || read(receive));
    while let Some(bytes) = saved.next().await.map_err(app::Error::Engine)? {
        meter.add(bytes.len() as u64);
        // A reader that has had enough says why itself.
        if send.send(bytes).await.is_err() {
            break;
        }
    }
    drop(send);
    let found = reading.await.expect("reading an archive does not panic");
    found.map_err(|problem| {
        let problem = match problem {
            Problem::Read(source) => source.to_string(),
            Problem::Odd(problem) => problem,
        };
        Error::NotLoaded {
            problem: format!("what is here cannot be compared: {problem}"),
        }
        .into()
    })
}

fn read(receive: mpsc::Receiver<Bytes>) -> Result<Vec<Image>, Problem> {
    Archive::inspect(Pieces {
        receive,
        piece: Bytes::new(),
    })?
    .images()
}

/// What comes in pieces, as one file.
struct Pieces {
    receive: mpsc::Receiver<Bytes>,
    piece: Bytes,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.receive.blocking_recv() {
                Some(piece) => self.piece = piece,
                None => return Ok(0),
            }
        }
        let n = buffer.len().min(self.piece.len());
        self.piece.copy_to_slice(&mut buffer[..n]);
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use sha2::Digest;
    use sha2::Sha256;

    use super::super::archive::header;
    use super::super::file::hex;
    use super::*;

    #[test]
    fn an_archive_in_pieces_tells_the_images_by_their_configurations() {
        let (config, layer) = (br#"{"rootfs":{}}"#.to_vec(), b"a layer".to_vec());
        let blob = |bytes: &[u8]| format!("blobs/sha256/{}", hex(&Sha256::digest(bytes)));
        let list = format!(
            r#"[{{"Config":"{}","RepoTags":["a:1"],"Layers":["{}"]}}]"#,
            blob(&config),
            blob(&layer)
        );
        let mut out = tar::Builder::new(Vec::new());
        for (path, content) in [
            (blob(&layer), layer),
            (blob(&config), config.clone()),
            ("manifest.json".to_owned(), list.into_bytes()),
        ] {
            out.append_data(&mut header(content.len() as u64), path, content.as_slice())
                .expect("written");
        }
        let archive = out.into_inner().expect("written");
        let told = |archive: &[u8]| {
            let (send, receive) = mpsc::channel(archive.len());
            for piece in archive.chunks(700) {
                send.try_send(Bytes::copy_from_slice(piece)).expect("room");
                send.try_send(Bytes::new()).expect("room");
            }
            drop(send);
            read(receive)
        };
        let expected = Image {
            name: "a:1".to_owned(),
            config: hex(&Sha256::digest(&config)),
        };
        assert_eq!(told(&archive).expect("an archive"), [expected]);
        assert!(told(&archive[..1400]).is_err(), "half of it tells nothing");
    }
}
