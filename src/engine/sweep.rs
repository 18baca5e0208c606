use std::collections::HashMap;

use bollard::query_parameters::ListContainersOptionsBuilder;
use bollard::query_parameters::ListVolumesOptionsBuilder;
use tokio_util::sync::CancellationToken;

use super::ContainerId;
use super::Engine;
use super::Error;
use super::Labels;
use super::Role;
use super::bounded::bounded;
use super::label::PREFIX;

/// One object of ours that nobody will come back for, or that is in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leftover {
    Container { id: ContainerId, name: String, labels: Labels, running: bool },
    Volume { name: String, labels: Labels },
}

/// What a sweep did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Names of what was removed.
    pub removed: Vec<String>,
    /// Names of what could not be removed, with the reason.
    pub failed: Vec<(String, String)>,
}

impl Engine {
    /// Lists every container that carries our labels, running or not.
    pub async fn containers(&self, cancel: &CancellationToken) -> Result<Vec<Leftover>, Error> {
        let options = ListContainersOptionsBuilder::default().all(true).filters(&ours()).build();
        let found = bounded(|| "list our containers".to_owned(), cancel, self.timeout, self.docker.list_containers(Some(options))).await?;
        Ok(found
            .into_iter()
            .filter_map(|container| {
                Some(Leftover::Container {
                    labels: Labels::from_map(container.labels.as_ref()?)?,
                    name: container
                        .names
                        .and_then(|names| names.first().map(|name| name.trim_start_matches('/').to_owned()))
                        .unwrap_or_default(),
                    id: ContainerId(container.id?),
                    running: container.state.is_some_and(|state| state.to_string() == "running"),
                })
            })
            .collect())
    }

    /// Lists every volume that carries our labels.
    pub async fn volumes(&self, cancel: &CancellationToken) -> Result<Vec<Leftover>, Error> {
        let options = ListVolumesOptionsBuilder::default().filters(&ours()).build();
        let found = bounded(|| "list our volumes".to_owned(), cancel, self.timeout, self.docker.list_volumes(Some(options))).await?;
        Ok(found
            .volumes
            .unwrap_or_default()
            .into_iter()
            .filter_map(|volume| Some(Leftover::Volume { labels: Labels::from_map(&volume.labels)?, name: volume.name }))
            .collect())
    }

    /// Removes containers whose owner has ended, and with `thorough` the guest volumes of other builds.
    ///
    /// Neither the model server nor the environment of `podbay up` belongs to a process, so neither is a leftover.
    pub async fn sweep(&self, guest_volume: &str, thorough: bool, cancel: &CancellationToken) -> Result<Swept, Error> {
        let mut swept = Swept::default();
        for leftover in self.containers(cancel).await? {
            let Leftover::Container { id, name, labels, .. } = leftover else { continue };
            let by_owner = matches!(labels.role, Role::Workspace | Role::Filler);
            if by_owner && labels.owner.as_ref().is_none_or(super::Owner::is_gone) {
                match self.remove(&id).await {
                    Ok(()) => swept.removed.push(name),
                    Err(error) => swept.failed.push((name, error.to_string())),
                }
            }
        }
        if thorough {
            for leftover in self.volumes(cancel).await? {
                let Leftover::Volume { name, labels } = leftover else { continue };
                if labels.role == Role::Guest && name != guest_volume {
                    match self.remove_volume(&name, cancel).await {
                        Ok(true) => swept.removed.push(name),
                        Ok(false) => {}
                        Err(error) => swept.failed.push((name, error.to_string())),
                    }
                }
            }
        }
        Ok(swept)
    }
}

fn ours() -> HashMap<String, Vec<String>> {
    HashMap::from([("label".to_owned(), vec![format!("{PREFIX}role")])])
}
