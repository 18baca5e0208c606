//! An image with nothing in it, for a container that runs our own program from a volume and needs
//! nothing else: no shell, no library, no variable of another image.

use async_recursion::async_recursion as boxed;
use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::Engine;
use super::Error;
use super::ImageFacts;
use super::Labels;
use super::Role;

/// Its name. What is in it never changes, so that there is one for all versions.
pub const EMPTY_IMAGE: &str = "podbay/empty";

impl Engine {
    /// Returns the image, made first where it is missing.
    #[boxed]
    pub async fn empty_image(&self, cancel: &CancellationToken) -> Result<ImageFacts, Error> {
        if let Some(image) = self.image(EMPTY_IMAGE, cancel).await? {
            return Ok(image);
        }
        let doing = || format!("make the image `{EMPTY_IMAGE}`");
        let tar = one_folder().map_err(|source| Error::Lost {
            doing: doing(),
            source: source.into(),
        })?;
        let changes = Labels::new(Role::Image)
            .to_map()
            .iter()
            .map(|(name, value)| format!("LABEL {name}=\"{value}\""))
            .collect();
        let parts = futures::stream::iter([Ok(tar)]);
        self.import(EMPTY_IMAGE, parts, changes, self.timeout, cancel)
            .await?;
        self.image(EMPTY_IMAGE, cancel)
            .await?
            .ok_or_else(|| Error::Answer {
                doing: doing(),
                status: 200,
                message: "it is not there after that".to_owned(),
            })
    }
}

/// Engines take no tar without an entry.
fn one_folder() -> std::io::Result<Bytes> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Directory);
    header.set_mode(0o755);
    header.set_size(0);
    archive.append_data(&mut header, "run/", std::io::empty())?;
    archive.into_inner().map(Bytes::from)
}
