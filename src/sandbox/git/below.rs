use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use super::lent::Objects;
use super::top::is_folder;
use super::top::lent_at;
use super::volume;
use crate::Error;
use crate::Project;
use crate::Spec;
use crate::way;
use podbay_engine as engine;
use podbay_engine::Mount;
use podbay_wire::keep::GitSource;
use podbay_wire::keep::PreparedGit;

/// Most nested repositories with a session folder of their own.
const MOST: usize = 16;

/// Where a keeper sees the session folders of nested repositories.
pub(super) const BELOW: &str = "/below";

/// Nested repositories that get a session folder each, as paths of their `.git`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Below {
    pub(super) gits: Vec<String>,
    /// Notes about those that get none.
    pub(super) notes: Vec<String>,
}

impl Below {
    /// Selects them from the sandbox's masks: the controller does not search the project.
    pub(super) fn of(spec: &Spec, engine: &engine::Facts) -> Self {
        let path = |git: &String| spec.project.path().join(git);
        let mut gits: Vec<String> = spec
            .covers
            .repositories()
            .filter(|git| is_folder(&path(git)))
            .cloned()
            .collect();
        let mut notes = Vec::new();
        let mut note = |gits: &[String], why: &str| {
            if !gits.is_empty() {
                notes.push(format!(
                    "git can only read in this session at {}: {why}",
                    gits.join(", ")
                ));
            }
        };
        // The engine needs a path on its own machine.
        if !engine.local || engine.desktop {
            note(
                &gits,
                "an engine on another machine, or in a virtual one, cannot be given a folder of the session's for it",
            );
            return Self {
                gits: Vec::new(),
                notes,
            };
        }
        let (held, movable): (Vec<String>, Vec<String>) =
            gits.into_iter().partition(|git| spec.covers.is_held(git));
        note(
            &movable,
            "the folders above could be moved away: there are more such folders than can be held in place",
        );
        gits = held;
        let left = gits.split_off(gits.len().min(MOST));
        note(
            &left,
            &format!("no more than {MOST} repositories below the top have a folder in a session"),
        );
        Self { gits, notes }
    }

    /// A pending review has one folder, that of the repository at the top.
    pub(super) fn of_review(spec: &Spec) -> Self {
        let gits: Vec<&str> = spec
            .covers
            .repositories()
            .filter(|git| is_folder(&spec.project.path().join(git)))
            .map(String::as_str)
            .collect();
        let words = || {
            format!(
                "git can only read in this session at {}: what is pending waits for the repository at the top alone",
                gits.join(", ")
            )
        };
        Self {
            gits: Vec::new(),
            notes: (!gits.is_empty()).then(words).into_iter().collect(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.gits.is_empty()
    }

    /// Returns the sources for the keeper.
    pub(super) fn sources(&self) -> impl Iterator<Item = GitSource> {
        self.gits.iter().enumerate().map(|(at, git)| GitSource {
            path: git.as_str().into(),
            real: format!("/workspace/{git}").as_str().into(),
            worktree: None,
            session: format!("{BELOW}/{at}").as_str().into(),
            pointer: None,
            real_in_box: lent_at(at + 1).as_str().into(),
            session_in_box: format!("/workspace/{git}").as_str().into(),
        })
    }
}

/// Returns the keeper's mount of the volume with their folders.
pub(super) fn mount(id: &str, imports: bool) -> Mount {
    let (name, target) = (volume::name_of_below(id), BELOW.to_owned());
    if imports {
        Mount::Volume {
            name,
            target,
            read_only: true,
        }
    } else {
        Mount::Seeded {
            name,
            target,
            read_only: false,
        }
    }
}

/// A nested repository in a sandbox, with the session's folder in place of the real one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LentBelow {
    /// From the project's folder.
    pub(super) git: String,
    /// The session's folder, on the engine's machine.
    source: String,
    /// The real `.git`, and its identity.
    real: PathBuf,
    identity: (u64, u64),
    objects: Objects,
}

impl LentBelow {
    /// Returns one by its number, if it exists; `folder` is the path of the volume.
    pub(super) fn of(
        project: &Project,
        git: &str,
        at: usize,
        prepared: &PreparedGit,
        folder: &str,
    ) -> Option<Self> {
        let real = project.path().join(git);
        let facts = fs::symlink_metadata(&real)
            .ok()
            .filter(fs::Metadata::is_dir)?;
        let objects = Objects::of(
            project,
            git,
            &real.join("objects"),
            &lent_at(at + 1),
            prepared,
        )?;
        Some(Self {
            git: git.to_owned(),
            source: format!("{folder}/{at}"),
            real,
            identity: (facts.dev(), facts.ino()),
            objects,
        })
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        way::walk(&self.real, self.identity).map_err(|_| Error::Uncovered {
            path: self.git.clone(),
        })?;
        self.objects.check()
    }

    pub(super) fn objects(&self) -> impl Iterator<Item = Mount> {
        self.objects.mounts()
    }

    pub(super) fn mount(&self) -> Mount {
        Mount::OfVolume {
            source: self.source.clone(),
            target: self.target(),
            read_only: false,
        }
    }

    pub(super) fn target(&self) -> String {
        format!("/workspace/{}", self.git)
    }
}
