//! The volumes in which a session's changes are pending, and how its containers see them.

use podbay_engine as engine;
use podbay_engine::ContainerSpec;
use podbay_engine::Engine;
use podbay_engine::Labels;
use podbay_engine::Leftover;
use podbay_engine::Mount;
use podbay_engine::Role;
use podbay_event::SessionId;
use tokio_util::sync::CancellationToken;

use super::Error;
use super::Project;
use super::git;
use super::overlay::overlay;
use super::scratch::CarriedFolder;

/// Names the volumes of one review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) session: SessionId,
    pub(super) kind: Kind,
    /// Whether the session has a git folder of its own.
    pub(super) has_git: bool,
    /// Each turn goes into the project at its end.
    pub(super) by_turn: bool,
    /// The copy of such a session: it gets a new one after each turn.
    pub(super) view: Option<u32>,
}

/// How a session comes to its copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// What is laid over the project takes up its changes.
    LaidOver,
    /// The whole project is just being copied.
    Copying,
    /// It was.
    Copied,
}

impl Held {
    /// Finds out which kind of copy a session has or is to have.
    pub(super) async fn of(
        engine: &Engine,
        session: &SessionId,
        cancel: &CancellationToken,
    ) -> Result<Self, Error> {
        let has_git = git::is_there(engine, session, cancel).await?;
        let copied = Self {
            session: session.clone(),
            kind: Kind::Copied,
            has_git,
            by_turn: false,
            view: None,
        };
        // It is made when all is copied.
        let folder = engine
            .volume_folder(&copied.copy(), cancel)
            .await
            .map_err(Error::engine("look at what was pending"))?;
        if folder.is_some() {
            return Ok(copied);
        }
        let view = last_view(&copied.copies(engine, cancel).await?, &copied.upper());
        Ok(Self {
            kind: Kind::LaidOver,
            view,
            ..copied
        })
    }

    /// Returns the names of all its copies that are there.
    pub(super) async fn copies(
        &self,
        engine: &Engine,
        cancel: &CancellationToken,
    ) -> Result<Vec<String>, Error> {
        let volumes = engine
            .volumes(cancel)
            .await
            .map_err(Error::engine("look at what was pending"))?;
        let name = |leftover: Leftover| match leftover {
            Leftover::Volume { name, labels, .. }
                if labels.role == Role::Review
                    && labels.session.as_ref() == Some(&self.session) =>
            {
                Some(name)
            }
            _ => None,
        };
        Ok(volumes
            .into_iter()
            .filter_map(name)
            .filter(|name| *name != self.upper())
            .collect())
    }

    /// Returns the next copy that the session works on.
    pub(super) fn next_view(&self) -> Self {
        Self {
            view: Some(self.view() + 1),
            ..self.clone()
        }
    }

    pub(super) fn view(&self) -> u32 {
        self.view.unwrap_or(0)
    }

    /// Whether each turn goes into the project at its end.
    pub(super) fn is_by_turn(&self) -> bool {
        self.by_turn
    }

    /// Where in the volume of what the session changes the layer of its copy lies.
    pub(super) fn layer(&self) -> String {
        self.view
            .map_or_else(String::new, |view| format!("v/{view}/"))
    }

    pub(super) fn is_laid_over(&self) -> bool {
        self.kind == Kind::LaidOver
    }

    pub(super) fn session(&self) -> &SessionId {
        &self.session
    }

    /// What the session changed.
    pub(super) fn upper(&self) -> String {
        upper_of(&self.session)
    }

    /// The project with these changes.
    pub(super) fn copy(&self) -> String {
        let kind = match (self.kind, self.view) {
            (Kind::LaidOver, Some(view)) => format!("turn-{view}"),
            (Kind::LaidOver, None) => "copy".to_owned(),
            (Kind::Copying | Kind::Copied, _) => "whole".to_owned(),
        };
        format!("podbay-review-{}-{kind}", self.session)
    }

    /// Makes the volumes of the folders that a session takes from one sandbox to the next.
    /// `options` are those of a mount in memory; where there are none the volume is on disk.
    pub(super) async fn make_carried<'o>(
        &self,
        engine: &Engine,
        project: &Project,
        carried: &[CarriedFolder],
        options: impl Fn(&str) -> Option<&'o str>,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let failed = Error::engine("make the temporary folders of the session");
        let labels = self.labels(project);
        let exchange = async {
            for CarriedFolder { volume, target } in carried {
                // One that is there stays as it is.
                let Some(options) = options(target) else {
                    engine.create_volume(volume, &labels, cancel).await?;
                    continue;
                };
                if engine.volume_folder(volume, cancel).await?.is_none() {
                    let mounted = ("tmpfs", "tmpfs", options);
                    engine
                        .create_mounted_volume(volume, &labels, mounted, cancel)
                        .await?;
                }
            }
            Ok::<(), engine::Error>(())
        };
        exchange.await.map_err(failed)
    }

    pub(super) fn labels(&self, project: &Project) -> Labels {
        Labels {
            project: Some(project.key()),
            path: Some(project.text().to_owned()),
            session: Some(self.session.clone()),
            ..Labels::new(Role::Review)
        }
    }

    pub(super) fn take_the_place_of_the_project(&self, container: &mut ContainerSpec) {
        container
            .mounts
            .retain(|mount| !matches!(mount, Mount::Bind { .. }));
        container.mounts.push(Mount::Volume {
            name: self.copy(),
            target: "/workspace".to_owned(),
            read_only: false,
        });
    }

    /// Shows both to a keeper.
    pub(super) fn show(&self, container: &mut ContainerSpec) {
        let (has_copy, has_upper) = match self.kind {
            Kind::LaidOver => (true, true),
            Kind::Copying => (false, true),
            Kind::Copied => (true, false),
        };
        // It has the copy show what the user changes, and makes the folders of the next one.
        let read_only = self.kind != Kind::Copying && !self.by_turn;
        if self.has_git {
            container.mounts.push(Mount::Volume {
                name: git::volume_of(&self.session),
                target: "/review/git".to_owned(),
                read_only: true,
            });
        }
        container.mounts.extend(has_copy.then(|| Mount::Volume {
            name: self.copy(),
            target: "/review/copy".to_owned(),
            read_only,
        }));
        container.mounts.extend(has_upper.then(|| Mount::Seeded {
            name: self.upper(),
            target: "/review/upper".to_owned(),
            read_only,
        }));
    }

    /// Makes the volume that the session works on. One that is there may be of a path that the
    /// project had before.
    pub(super) async fn ready(
        &self,
        engine: &Engine,
        project: &Project,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let exchange = async {
            let Some(folder) = engine.volume_folder(&self.upper(), cancel).await? else {
                return Ok(false);
            };
            engine.remove_volume(&self.copy(), cancel).await?;
            let (options, whole) = (
                overlay(project.text(), &folder, &self.layer()),
                format!("{folder}/up"),
            );
            let mounted = if self.is_laid_over() {
                ("overlay", "overlay", options.as_str())
            } else {
                ("none", whole.as_str(), "bind")
            };
            engine
                .create_mounted_volume(&self.copy(), &self.labels(project), mounted, cancel)
                .await?;
            Ok(true)
        };
        if exchange
            .await
            .map_err(Error::engine("make the copy that the session works on"))?
        {
            Ok(())
        } else {
            Err(Error::NotStarted {
                problem: format!("the volume `{}` of the review is gone", self.upper()),
            })
        }
    }
}

pub(super) fn upper_of(session: &SessionId) -> String {
    format!("podbay-review-{session}")
}

/// Returns the number of the newest copy of a session whose turns go into the project, if one is
/// among the volumes. `upper`: what their names begin with.
pub(super) fn last_view(volumes: &[String], upper: &str) -> Option<u32> {
    let number = |name: &String| {
        name.strip_prefix(upper)?
            .strip_prefix("-turn-")?
            .parse()
            .ok()
    };
    volumes.iter().filter_map(number).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_copy_is_the_one_of_the_highest_number() {
        let volumes = |names: &[&str]| {
            names
                .iter()
                .map(|&name| name.to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            last_view(&volumes(&["podbay-review-s-copy"]), "podbay-review-s"),
            None
        );
        assert_eq!(
            last_view(
                &volumes(&[
                    "podbay-review-s-turn-9",
                    "podbay-review-s-turn-10",
                    "x-turn-11"
                ]),
                "podbay-review-s"
            ),
            Some(10)
        );
    }
}
