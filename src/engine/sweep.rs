use std::collections::HashMap;
use std::time::Duration;

use async_recursion::async_recursion as boxed;
use bollard::query_parameters::ListContainersOptionsBuilder;
use bollard::query_parameters::ListVolumesOptionsBuilder;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::ContainerId;
use super::Engine;
use super::Error;
use super::Labels;
use super::Role;
use super::bounded::bounded;
use super::label::PREFIX;

/// Suffix of the name of a sandbox that is about to replace another one.
pub const NEXT: &str = "-next";
/// Suffix of the name of the replaced sandbox meanwhile.
pub const OLD: &str = "-old";

/// One of our objects, orphaned or in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leftover {
    Container {
        id: ContainerId,
        name: String,
        labels: Labels,
        running: bool,
    },
    Volume {
        name: String,
        labels: Labels,
        created: Option<Timestamp>,
    },
}

impl Leftover {
    /// Returns whether it is orphaned: a container, or a volume of a gateway or a sandbox,
    /// whose owner has ended, or a guest volume other than `guest_volume` that is older than `age`.
    ///
    /// The model server and the sandbox of `podbay up` belong to no process, so they are never
    /// orphaned. Until such a sandbox has its name it belongs to its creator; one that has lost its
    /// name and ended is orphaned.
    pub fn is_orphan(&self, guest_volume: &str, age: Duration) -> bool {
        match self {
            Self::Container {
                labels,
                name,
                running,
                ..
            } => {
                let is_somebodys = match labels.role {
                    Role::Workspace | Role::Keeper | Role::Gateway | Role::Filler => true,
                    Role::Environment => name.ends_with(NEXT) || (name.ends_with(OLD) && !running),
                    _ => false,
                };
                // An unknown owner may be alive: an image can bring labels along, and a newer
                // Podbay may use another format.
                is_somebodys && labels.owner.as_ref().is_some_and(super::Owner::is_gone)
            }
            Self::Volume {
                name,
                labels,
                created,
            } => match labels.role {
                Role::Guest => name != guest_volume && is_older(*created, age, Timestamp::now()),
                // There is nothing in it but a socket, or scratch files of a sandbox that the engine
                // did not remove with it.
                Role::Gateway | Role::Workspace => {
                    labels.owner.as_ref().is_some_and(super::Owner::is_gone)
                }
                _ => false,
            },
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Self::Container { name, .. } | Self::Volume { name, .. } => name,
        }
    }
}

/// The result of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// Names of the removed objects.
    pub removed: Vec<String>,
    /// Names of objects that could not be removed, each with the reason.
    pub failed: Vec<(String, String)>,
}

impl Engine {
    /// Lists every container with our labels, running or not.
    #[boxed]
    pub async fn containers(&self, cancel: &CancellationToken) -> Result<Vec<Leftover>, Error> {
        let options = ListContainersOptionsBuilder::default()
            .all(true)
            .filters(&ours())
            .build();
        let found = bounded(
            || "list our containers".to_owned(),
            cancel,
            self.timeout,
            self.docker.list_containers(Some(options)),
        )
        .await?;
        Ok(found
            .into_iter()
            .filter_map(|container| {
                Some(Leftover::Container {
                    labels: Labels::from_map(container.labels.as_ref()?)?,
                    name: container
                        .names
                        .and_then(|names| {
                            names
                                .first()
                                .map(|name| name.trim_start_matches('/').to_owned())
                        })
                        .unwrap_or_default(),
                    id: ContainerId(container.id?),
                    running: container
                        .state
                        .is_some_and(|state| state.to_string() == "running"),
                })
            })
            .collect())
    }

    /// Lists every volume with our labels.
    #[boxed]
    pub async fn volumes(&self, cancel: &CancellationToken) -> Result<Vec<Leftover>, Error> {
        let options = ListVolumesOptionsBuilder::default()
            .filters(&ours())
            .build();
        let found = bounded(
            || "list our volumes".to_owned(),
            cancel,
            self.timeout,
            self.docker.list_volumes(Some(options)),
        )
        .await?;
        Ok(found
            .volumes
            .unwrap_or_default()
            .into_iter()
            .filter_map(|volume| {
                Some(Leftover::Volume {
                    labels: Labels::from_map(&volume.labels)?,
                    name: volume.name,
                    created: volume.created_at.and_then(|at| at.parse().ok()),
                })
            })
            .collect())
    }

    /// Removes containers, and volumes of gateways and sandboxes, whose owner has ended, and where `others` says so
    /// the guest volumes of other builds that are older than that.
    ///
    /// A volume in use stays, as does one that another build may be about to use: two builds side
    /// by side do not interfere.
    #[boxed]
    pub async fn sweep(
        &self,
        guest_volume: &str,
        others: Option<Duration>,
        cancel: &CancellationToken,
    ) -> Result<SweepReport, Error> {
        let mut swept = SweepReport::default();
        for leftover in self.containers(cancel).await? {
            let is_orphan = leftover.is_orphan(guest_volume, Duration::ZERO);
            let Leftover::Container { id, name, .. } = leftover else {
                continue;
            };
            if !is_orphan {
                continue;
            }
            if cancel.is_cancelled() {
                swept
                    .failed
                    .push((name, "there was no more time for it".to_owned()));
                continue;
            }
            match self.remove_and_look(&id).await {
                Ok(()) => swept.removed.push(name),
                Err(error) => swept.failed.push((name, error.with_causes())),
            }
        }
        if !cancel.is_cancelled() {
            for leftover in self.volumes(cancel).await? {
                let is_orphan = leftover.is_orphan(guest_volume, others.unwrap_or(Duration::MAX));
                let Leftover::Volume { name, labels, .. } = leftover else {
                    continue;
                };
                // One whose age the engine does not tell is old enough for those who ask alone.
                let is_asked =
                    others.is_some() || matches!(labels.role, Role::Gateway | Role::Workspace);
                if is_orphan && is_asked {
                    match self.remove_volume(&name, cancel).await {
                        Ok(true) => swept.removed.push(name),
                        Ok(false) => {}
                        Err(error) => swept.failed.push((name, error.with_causes())),
                    }
                }
            }
        }
        Ok(swept)
    }
}

/// Returns whether an object is older than `age`. If the engine does not report its age, only being
/// in use protects it.
fn is_older(created: Option<Timestamp>, age: Duration, now: Timestamp) -> bool {
    created.is_none_or(|created| {
        Duration::try_from(now.duration_since(created)).unwrap_or_default() >= age
    })
}

fn ours() -> HashMap<String, Vec<String>> {
    HashMap::from([("label".to_owned(), vec![format!("{PREFIX}role")])])
}

#[cfg(test)]
mod tests {
    use super::super::Owner;
    use super::*;

    #[track_caller]
    fn check(role: Role, name: &str, running: bool, owner: Option<Owner>, is_orphan: bool) {
        let labels = Labels {
            owner,
            ..Labels::new(role)
        };
        let found = Leftover::Container {
            id: ContainerId("x".to_owned()),
            name: name.to_owned(),
            labels,
            running,
        };
        assert_eq!(
            found.is_orphan("podbay-guest-own", Duration::ZERO),
            is_orphan,
            "{found:?}"
        );
    }

    #[test]
    fn a_container_is_orphaned_only_if_its_owner_surely_ended() {
        for role in [Role::Workspace, Role::Keeper, Role::Gateway, Role::Filler] {
            check(role, "a", true, Some(Owner::ended()), true);
            check(role, "a", true, Some(Owner::current()), false);
            // An image may bring the label of a role along, and a newer Podbay may name owners
            // differently.
            check(role, "a", true, None, false);
        }
        check(
            Role::Environment,
            "e-next",
            true,
            Some(Owner::ended()),
            true,
        );
        check(
            Role::Environment,
            "e-next",
            true,
            Some(Owner::current()),
            false,
        );
        check(
            Role::Environment,
            "e-old",
            false,
            Some(Owner::ended()),
            true,
        );
        check(
            Role::Environment,
            "e-old",
            true,
            Some(Owner::ended()),
            false,
        );
        check(Role::Environment, "e", false, Some(Owner::ended()), false);
        check(Role::ModelServer, "m", true, Some(Owner::ended()), false);
    }

    #[test]
    fn only_guest_volumes_of_other_builds_are_swept() {
        for (role, is_orphan) in [
            (Role::Guest, true),
            (Role::Keep, false),
            (Role::Cache, false),
            (Role::Review, false),
        ] {
            let found = Leftover::Volume {
                name: "v".to_owned(),
                labels: Labels::new(role),
                created: None,
            };
            assert_eq!(
                found.is_orphan("podbay-guest-own", Duration::ZERO),
                is_orphan,
                "{found:?}"
            );
        }
    }

    #[test]
    fn volumes_of_gateways_and_sandboxes_go_once_their_owner_has_ended() {
        let check = |role: Role, owner: Option<Owner>, is_orphan: bool| {
            let labels = Labels {
                owner,
                ..Labels::new(role)
            };
            let found = Leftover::Volume {
                name: "v".to_owned(),
                labels,
                created: None,
            };
            assert_eq!(
                found.is_orphan("podbay-guest-own", Duration::MAX),
                is_orphan,
                "{found:?}"
            );
        };
        for role in [Role::Gateway, Role::Workspace] {
            check(role, Some(Owner::ended()), true);
            check(role, Some(Owner::current()), false);
            check(role, None, false);
        }
        // That of `podbay up` outlives its creator.
        check(Role::Environment, Some(Owner::ended()), false);
    }

    #[test]
    fn only_objects_that_are_old_enough_are_swept() {
        let hour = Duration::from_secs(3600);
        let now: Timestamp = "2026-11-22T12:00:00Z".parse().expect("a time");
        let check = |created: &str, age| is_older(created.parse().ok(), age, now);
        assert!(check("2026-11-22T11:00:00Z", hour) && !check("2026-11-22T11:00:01Z", hour));
        assert!(check("2026-11-22T12:00:00Z", Duration::ZERO));
        // An engine whose clock is ahead.
        assert!(!check("2026-11-22T12:30:00+00:00", hour));
        assert!(check("nobody knows", hour));
    }
}
