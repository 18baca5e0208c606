use std::collections::BTreeSet;

use async_recursion::async_recursion as boxed;
use sha2::Digest;
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::Project;
use crate::Spec;
use crate::guest_volume::filler_of_others;
use podbay_engine as engine;
use podbay_engine::Engine;
use podbay_engine::Labels;
use podbay_engine::Leftover;
use podbay_engine::Owner;
use podbay_engine::Role;
use podbay_engine::VolumeFile;

/// Names the volume in which the keeper keeps what must outlive a session: snapshots, and how a
/// session's git began.
///
/// Device and inode name the project's folder; with its path beside them, another folder that gets
/// the same inode later has a volume of its own.
fn name(project: &Project) -> String {
    let digest = sha2::Sha256::digest(project.text().as_bytes());
    let path: String = digest
        .iter()
        .take(4)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("podbay-keep-{}-{path}", project.key())
}

/// Makes the volume where it is missing. The keeper's image has the folder in it that the keeper
/// owns; `again`: it is made all the same, because the keeper cannot write there.
pub(super) async fn ready(
    engine: &Engine,
    spec: &Spec,
    again: bool,
    cancel: &CancellationToken,
) -> Result<String, Error> {
    let name = name(&spec.project);
    let failed = Error::engine("make the volume for snapshots of the project");
    let exchange = async {
        if engine.volume_folder(&name, cancel).await?.is_some() && !again {
            return Ok(());
        }
        let labels = Labels {
            project: Some(spec.project.key()),
            path: Some(spec.project.text().to_owned()),
            owner: Some(Owner::current()),
            ..Labels::new(Role::Keep)
        };
        engine.create_volume(&name, &labels, cancel).await?;
        if again {
            own(engine, spec, &name, cancel).await?;
        }
        Ok(())
    };
    exchange.await.map_err(failed)?;
    Ok(name)
}

/// Snapshots of a project whose folder is not where it was, or is another one by now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abandoned {
    pub volume: String,
    /// Where the project was.
    pub path: String,
}

/// Lists them. What another machine has made cannot be judged, and what a review needs that waits
/// is no less wanted for its project being away.
#[boxed]
pub async fn abandoned(
    engine: &Engine,
    cancel: &CancellationToken,
) -> Result<Vec<Abandoned>, engine::Error> {
    let volumes = engine.volumes(cancel).await?;
    let reviewed: BTreeSet<String> = volumes
        .iter()
        .filter_map(|found| match found {
            Leftover::Volume { labels, .. } if labels.role == Role::Review => {
                labels.project.clone()
            }
            _ => None,
        })
        .collect();
    Ok(volumes
        .into_iter()
        .filter_map(|found| match found {
            Leftover::Volume { name, labels, .. } if labels.role == Role::Keep => {
                let is_ours = labels.owner.as_ref().is_some_and(Owner::is_of_this_machine);
                let path = labels.path.filter(|path| {
                    is_ours
                        && labels.project.is_some_and(|key| {
                            !reviewed.contains(&key) && !Project::is_there(path, &key)
                        })
                })?;
                Some(Abandoned { volume: name, path })
            }
            _ => None,
        })
        .collect())
}

/// Makes a folder in a volume that belongs to the user that sandboxes of the project run as, and to
/// nobody else.
async fn own(
    engine: &Engine,
    spec: &Spec,
    volume: &str,
    cancel: &CancellationToken,
) -> Result<(), engine::Error> {
    // The engine leaves the volume's own folder as it is, which is root's.
    let folder = VolumeFile::folder("state/", 0o700, spec.ids());
    engine
        .fill_volume(volume, &filler_of_others(spec), &[folder], cancel)
        .await
}
