use std::time::Duration;

use async_recursion::async_recursion as boxed;
use bollard::models::VolumeCreateRequest;
use bollard::query_parameters::RemoveVolumeOptions;
use bollard::query_parameters::UploadToContainerOptionsBuilder;
use tokio_util::sync::CancellationToken;

use super::ContainerSpec;
use super::Engine;
use super::Error;
use super::Labels;
use super::Mount;
use super::bounded::bounded;

/// Where a filler container mounts the volume it fills.
const TARGET: &str = "/fill";

/// An entry to put into a volume.
#[derive(Clone, Debug)]
pub struct VolumeFile {
    /// Relative to the volume.
    pub path: String,
    pub mode: u32,
    pub uid: u64,
    pub gid: u64,
    pub content: Content,
}

#[derive(Clone, Debug)]
pub enum Content {
    Folder,
    Bytes(bytes::Bytes),
    /// A hard link to a file that comes before this one.
    Link(String),
}

impl VolumeFile {
    /// Makes an executable of root's that all can run and nobody can read: uid 0 of a container has
    /// no `CAP_DAC_OVERRIDE`.
    pub fn program(path: &str, content: Vec<u8>) -> Self {
        Self {
            path: path.to_owned(),
            mode: 0o111,
            uid: 0,
            gid: 0,
            content: Content::Bytes(content.into()),
        }
    }

    /// Makes a file of root's that all can read.
    pub fn text(path: &str, content: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            mode: 0o444,
            uid: 0,
            gid: 0,
            content: Content::Bytes(content.into().into()),
        }
    }

    /// Makes a folder.
    pub fn folder(path: &str, mode: u32, (uid, gid): (u32, u32)) -> Self {
        Self {
            path: path.to_owned(),
            mode,
            uid: uid.into(),
            gid: gid.into(),
            content: Content::Folder,
        }
    }

    /// Makes a hard link to a file that comes before it.
    pub fn link(path: &str, to: &str) -> Self {
        Self {
            path: path.to_owned(),
            mode: 0o111,
            uid: 0,
            gid: 0,
            content: Content::Link(to.to_owned()),
        }
    }
}

impl Engine {
    /// Returns the path of a volume's folder on the engine's machine; `None` if there is no volume
    /// of this name.
    #[boxed]
    pub async fn volume_folder(
        &self,
        name: &str,
        cancel: &CancellationToken,
    ) -> Result<Option<String>, Error> {
        match bounded(
            || format!("look at the volume `{name}`"),
            cancel,
            self.timeout,
            self.docker.inspect_volume(name),
        )
        .await
        {
            Ok(volume) => Ok(Some(volume.mountpoint)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    #[boxed]
    pub async fn create_volume(
        &self,
        name: &str,
        labels: &Labels,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let request = VolumeCreateRequest {
            name: Some(name.to_owned()),
            labels: Some(labels.to_map()),
            ..VolumeCreateRequest::default()
        };
        bounded(
            || format!("create the volume `{name}`"),
            cancel,
            self.timeout,
            self.docker.create_volume(request),
        )
        .await
        .map(|_| ())
    }

    /// Creates a volume that the engine mounts on use: file system type, device, and options as for
    /// `mount -o`.
    #[boxed]
    pub async fn create_mounted_volume(
        &self,
        name: &str,
        labels: &Labels,
        (kind, device, options): (&str, &str, &str),
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let driver_opts = [("type", kind), ("device", device), ("o", options)]
            .map(|(key, value)| (key.to_owned(), value.to_owned()));
        let request = VolumeCreateRequest {
            name: Some(name.to_owned()),
            driver: Some("local".to_owned()),
            driver_opts: Some(driver_opts.into()),
            labels: Some(labels.to_map()),
            ..VolumeCreateRequest::default()
        };
        bounded(
            || format!("create the volume `{name}`"),
            cancel,
            self.timeout,
            self.docker.create_volume(request),
        )
        .await
        .map(|_| ())
    }

    /// Removes the volume; one that is gone or in use is left.
    #[boxed]
    pub async fn remove_volume(
        &self,
        name: &str,
        cancel: &CancellationToken,
    ) -> Result<bool, Error> {
        let request = self.docker.remove_volume(name, None::<RemoveVolumeOptions>);
        match bounded(
            || format!("remove the volume `{name}`"),
            cancel,
            self.timeout,
            request,
        )
        .await
        {
            Ok(()) => Ok(true),
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Puts files into a volume by means of a container that is created from `filler` and never
    /// started.
    ///
    /// The engine unpacks an archive on the host's side of a container; on one that has run a
    /// model's command that is an attack surface (CVE-2018-15664, CVE-2026-41567), so this is the
    /// only place that does it.
    #[boxed]
    pub async fn fill_volume(
        &self,
        volume: &str,
        filler: &ContainerSpec,
        files: &[VolumeFile],
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let archive = archive(files).map_err(|source| Error::Lost {
            doing: format!("pack the files of the volume `{volume}`"),
            source: source.into(),
        })?;
        let mut spec = filler.clone();
        // So that it cannot run anything even by mistake.
        spec.entrypoint = vec!["/never-started".to_owned()];
        spec.mounts = vec![Mount::Volume {
            name: volume.to_owned(),
            target: TARGET.to_owned(),
            read_only: false,
        }];
        let id = self.create(&spec, cancel).await?;
        let options = UploadToContainerOptionsBuilder::default()
            .path(TARGET)
            .build();
        let request =
            self.docker
                .upload_to_container(&id.0, Some(options), bollard::body_full(archive));
        let within = self.timeout + Duration::from_secs(60);
        let outcome = bounded(
            || format!("fill the volume `{volume}`"),
            cancel,
            within,
            request,
        )
        .await;
        // A hanging engine must not delay the caller who waits for the volume.
        self.discard_soon(&id).await;
        outcome
    }
}

pub(super) fn archive(files: &[VolumeFile]) -> std::io::Result<bytes::Bytes> {
    let mut archive = tar::Builder::new(Vec::new());
    for file in files {
        let mut header = tar::Header::new_gnu();
        header.set_mode(file.mode);
        header.set_uid(file.uid);
        header.set_gid(file.gid);
        let path = &file.path;
        match &file.content {
            Content::Bytes(content) => {
                header.set_entry_type(tar::EntryType::Regular);
                header.set_size(content.len() as u64);
                archive.append_data(&mut header, path, content.as_ref())?;
            }
            Content::Link(to) => {
                header.set_entry_type(tar::EntryType::Link);
                header.set_size(0);
                archive.append_link(&mut header, path, to)?;
            }
            Content::Folder => {
                header.set_entry_type(tar::EntryType::Directory);
                header.set_size(0);
                archive.append_data(&mut header, path, std::io::empty())?;
            }
        }
    }
    archive.into_inner().map(bytes::Bytes::from)
}
