//! The volumes in which a project's package managers keep what they got: one for each, never shared
//! between projects.

use async_recursion::async_recursion as boxed;
use podbay_engine as engine;
use podbay_engine::ContainerSpec;
use podbay_engine::Engine;
use podbay_engine::Labels;
use podbay_engine::Leftover;
use podbay_engine::Mount;
use podbay_engine::Owner;
use podbay_engine::Role;
use podbay_engine::VolumeFile;
use podbay_wire::CACHE_OWNED;
use sha2::Digest;
use tokio_util::sync::CancellationToken;

use super::super::Error;
use super::super::Project;
use super::super::Spec;
use super::super::guest_volume::filler_of_others;
use super::Ecosystem;
use super::ecosystem;

/// A cache in a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheMount {
    pub ecosystem: &'static Ecosystem,
    volume: String,
    writable: bool,
}

impl CacheMount {
    /// Returns the same for an install phase.
    #[must_use]
    pub fn writable(self) -> Self {
        Self {
            writable: true,
            ..self
        }
    }

    /// Puts it into a container, and tells commands of it.
    pub(in super::super) fn mount(&self, container: &mut ContainerSpec) {
        container.mounts.push(Mount::Volume {
            name: self.volume.clone(),
            target: self.ecosystem.mounted_at(),
            read_only: !self.writable,
        });
        let image = container.image.clone();
        let set = self.ecosystem.variables(&image);
        let name = |pair: &str| pair.split('=').next().unwrap_or_default().to_owned();
        let names: Vec<String> = set.iter().map(|pair| name(pair)).collect();
        container.env.retain(|pair| !names.contains(&name(pair)));
        container.env.extend(set);
        let path = container
            .env
            .iter_mut()
            .find(|pair| pair.starts_with("PATH="));
        if let (Some(path), Some(folder)) = (path, self.ecosystem.path(&image)) {
            // Last, so that nothing that was installed takes the place of a program of the image.
            path.push(':');
            path.push_str(&folder);
        }
    }
}

/// A cache of any project.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cache {
    /// Where its project is, or was.
    pub project: String,
    /// The package manager's name.
    pub ecosystem: String,
    pub volume: String,
    /// What the project is known by, wherever it lies.
    pub key: String,
    /// Whether this machine has made it.
    is_ours: bool,
}

/// Names the volume. Device and inode name the project's folder; with its path beside them, another
/// folder that gets the same inode later has a volume of its own.
fn volume_name(project: &Project, ecosystem: &Ecosystem) -> String {
    let digest = sha2::Sha256::digest(project.text().as_bytes());
    let path: String = digest
        .iter()
        .take(4)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("podbay-cache-{}-{}-{path}", ecosystem.name, project.key())
}

/// Returns those of a project's caches that are there, of these ecosystems.
#[boxed]
pub async fn present_caches(
    engine: &Engine,
    project: &Project,
    ecosystems: &[&'static Ecosystem],
    cancel: &CancellationToken,
) -> Result<Vec<CacheMount>, Error> {
    let mut found = Vec::new();
    for &ecosystem in ecosystems {
        let volume = volume_name(project, ecosystem);
        let folder = engine
            .volume_folder(&volume, cancel)
            .await
            .map_err(Error::engine("look for the caches of the project"))?;
        if folder.is_some() {
            found.push(CacheMount {
                ecosystem,
                volume,
                writable: false,
            });
        }
    }
    Ok(found)
}

/// Makes a cache of a project where it is missing, with a folder that the sandbox's user owns.
///
/// One that is there is left as it is: packages' code has run on it, and an engine unpacks nothing
/// onto what such code has written.
#[boxed]
pub async fn make_cache(
    engine: &Engine,
    spec: &Spec,
    ecosystem: &'static Ecosystem,
    cancel: &CancellationToken,
) -> Result<CacheMount, Error> {
    let volume = volume_name(&spec.project, ecosystem);
    let make = async {
        if engine.volume_folder(&volume, cancel).await?.is_some() {
            return Ok(());
        }
        let labels = Labels {
            project: Some(spec.project.key()),
            path: Some(spec.project.text().to_owned()),
            owner: Some(Owner::current()),
            cache: Some(ecosystem.name.clone()),
            ..Labels::new(Role::Cache)
        };
        engine.create_volume(&volume, &labels, cancel).await?;
        let folder = VolumeFile::folder(&format!("{CACHE_OWNED}/"), 0o755, spec.ids());
        let filled = engine
            .fill_volume(&volume, &filler_of_others(spec), &[folder], cancel)
            .await;
        if filled.is_err() {
            // One without that folder would be of no use to the next installation.
            let removed = engine
                .remove_volume(&volume, &CancellationToken::new())
                .await;
            drop(removed.inspect_err(|error| tracing::debug!(%error, volume, "a cache is left")));
        }
        filled
    };
    make.await
        .map_err(Error::engine("make a cache of the project"))?;
    Ok(CacheMount {
        ecosystem,
        volume,
        writable: false,
    })
}

/// Lists the caches of all projects, by project.
#[boxed]
pub async fn caches(
    engine: &Engine,
    cancel: &CancellationToken,
) -> Result<Vec<Cache>, engine::Error> {
    let of = |found: Leftover| match found {
        Leftover::Volume { name, labels, .. } if labels.role == Role::Cache => Some(Cache {
            project: labels.path?,
            ecosystem: labels.cache?,
            volume: name,
            key: labels.project?,
            is_ours: labels.owner.as_ref().is_some_and(Owner::is_of_this_machine),
        }),
        _ => None,
    };
    let volumes = engine.volumes(cancel).await?;
    let mut all: Vec<Cache> = volumes.into_iter().filter_map(of).collect();
    all.sort();
    Ok(all)
}

/// Lists the caches of projects whose folder is not where it was, or is another one by now.
#[boxed]
pub async fn abandoned_caches(
    engine: &Engine,
    cancel: &CancellationToken,
) -> Result<Vec<Cache>, engine::Error> {
    let mut all = caches(engine, cancel).await?;
    all.retain(|cache| cache.is_ours && !Project::is_there(&cache.project, &cache.key));
    Ok(all)
}

impl Cache {
    /// Returns whether it is one of this project.
    pub fn is_of(&self, project: &Project) -> bool {
        ecosystem(&self.ecosystem).is_some_and(|row| volume_name(project, row) == self.volume)
    }
}
