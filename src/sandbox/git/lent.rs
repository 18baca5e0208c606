use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::below::Below;
use super::below::LentBelow;
use super::top::BESIDE;
use super::top::Top;
use super::top::is_folder;
use super::top::lent_at;
use crate::Error;
use crate::Project;
use crate::way;
use podbay_engine::ContainerSpec;
use podbay_engine::Mount;
use podbay_wire::BytesPath;
use podbay_wire::keep::PreparedGit;

/// Most submodule repositories whose objects a sandbox sees.
const MOST_MODULES: usize = 64;

/// The path of `.git` in a sandbox.
pub(crate) const DOT_GIT: &str = "/workspace/.git";

/// What a sandbox gets of git: the session's folders, and the objects of the real repositories
/// read-only. Nothing else: real settings hold credentials, and references and hooks are not needed
/// there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lent {
    top: Option<LentTop>,
    below: Vec<LentBelow>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct LentTop {
    volume: String,
    /// The `.git` file that points a linked worktree to the session's folder, on the engine's
    /// machine.
    pointer: Option<String>,
    objects: Objects,
}

impl Lent {
    /// Predicts what a project's sandbox gets, so that it can be started while the session's folder
    /// is prepared; `None` if it must wait.
    pub(super) fn guess(project: &Project, top: &Top, volume: &str) -> Option<Self> {
        let lent = Self::of(
            project,
            (top, volume),
            &Below::default(),
            &PreparedGit::default(),
            None,
        )?;
        (*top == Top::Folder && !is_folder(&project.path().join(".git/modules"))).then_some(lent)
    }

    /// Returns what a sandbox gets; `None` if there is no suitable repository. `folder` is the
    /// path, on the engine's machine, of the volume with what is mounted by path.
    pub(super) fn of(
        project: &Project,
        (top, volume): (&Top, &str),
        below: &Below,
        prepared: &PreparedGit,
        folder: Option<&str>,
    ) -> Option<Self> {
        let pointer = folder.map(|folder| format!("{folder}/{POINTER}"));
        let lent_top = top.objects(project).and_then(|objects| {
            let pointer = if matches!(top, Top::Worktree { .. }) {
                Some(pointer?)
            } else {
                None
            };
            let objects = Objects::of(project, ".git", &objects, &lent_at(0), prepared)?;
            Some(LentTop {
                volume: volume.to_owned(),
                pointer,
                objects,
            })
        });
        let is_good = |git: &str| {
            prepared
                .repositories
                .iter()
                .any(|one| one.path.as_bytes() == git.as_bytes() && one.refused.is_none())
        };
        let numbered = below
            .gits
            .iter()
            .enumerate()
            .filter(|(_, git)| is_good(git));
        let below = numbered
            .filter_map(|(at, git)| LentBelow::of(project, git, at, prepared, folder?))
            .collect();
        Self {
            top: lent_top,
            below,
        }
        .unless_empty()
    }

    fn unless_empty(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }

    /// Returns the part that is unchanged; `is_same_top` says whether the `.git` at the top is.
    pub(super) fn still(self, is_same_top: bool) -> Option<Self> {
        let top = self
            .top
            .filter(|top| is_same_top && top.objects.check().is_ok());
        let below = self
            .below
            .into_iter()
            .filter(|below| below.check().is_ok())
            .collect();
        Self { top, below }.unless_empty()
    }

    pub(super) fn has_top(&self) -> bool {
        self.top.is_some()
    }

    /// Returns whether the session's folder is mounted at a place of the project, or above it.
    pub(crate) fn is_in_place_of(&self, place: &BytesPath) -> bool {
        let rest = |below: &LentBelow| {
            place
                .as_bytes()
                .strip_prefix(below.git.as_bytes())
                .map(<[u8]>::to_vec)
        };
        self.below
            .iter()
            .filter_map(rest)
            .any(|rest| rest.starts_with(b"/"))
    }

    /// Checks that the real repositories are unchanged, just before the engine resolves their
    /// paths.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.top.iter().try_for_each(|top| top.objects.check())?;
        self.below.iter().try_for_each(LentBelow::check)
    }

    /// Mounts the session's folders over the real ones, which the sandbox does not see then.
    pub(crate) fn mount(&self, container: &mut ContainerSpec) {
        if let Some(top) = &self.top {
            container.readonly_paths.retain(|path| path != DOT_GIT);
            let target = if top.pointer.is_some() {
                BESIDE
            } else {
                DOT_GIT
            };
            container.mounts.push(Mount::Volume {
                name: top.volume.clone(),
                target: target.to_owned(),
                read_only: false,
            });
            if let Some(source) = &top.pointer {
                container.mounts.push(Mount::OfVolume {
                    source: source.clone(),
                    target: DOT_GIT.to_owned(),
                    read_only: true,
                });
            }
            container.mounts.extend(top.objects.mounts());
        }
        for below in &self.below {
            let target = below.target();
            let is_outside = |path: &String| {
                path.strip_prefix(&target)
                    .is_none_or(|rest| !rest.is_empty() && !rest.starts_with('/'))
            };
            container.readonly_paths.retain(is_outside);
            container.masked_paths.retain(is_outside);
            container.mounts.push(below.mount());
            container.mounts.extend(below.objects());
        }
    }
}

/// The object folders of a repository and its submodules, on the host, and their mount points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Objects {
    folders: Vec<(String, String)>,
}

impl Objects {
    /// `own` is the repository's object folder, `git` its `.git` relative to the project.
    pub(super) fn of(
        project: &Project,
        git: &str,
        own: &Path,
        lent_at: &str,
        prepared: &PreparedGit,
    ) -> Option<Self> {
        let text = |path: &Path| path.to_str().map(str::to_owned);
        if !is_folder(own) {
            return None;
        }
        let mut folders = vec![(text(own)?, format!("{lent_at}/objects"))];
        let inside = prepared.repositories.iter().filter_map(|one| {
            text(one.path.as_path())?
                .strip_prefix(git)?
                .strip_prefix('/')
                .map(str::to_owned)
        });
        for inside in inside.take(MOST_MODULES) {
            let objects = project.path().join(git).join(&inside).join("objects");
            if let Some(source) = text(&objects).filter(|_| is_folder(&objects)) {
                folders.push((source, format!("{lent_at}/{inside}/objects")));
            }
        }
        Some(Self { folders })
    }

    /// Checks that none of them is reached through a symlink.
    pub(super) fn check(&self) -> Result<(), Error> {
        for (source, _) in &self.folders {
            let gone = || Error::Uncovered {
                path: source.clone(),
            };
            let facts = fs::symlink_metadata(source).map_err(|_| gone())?;
            if !facts.is_dir() {
                return Err(gone());
            }
            way::walk(Path::new(source), (facts.dev(), facts.ino())).map_err(|_| gone())?;
        }
        Ok(())
    }

    pub(super) fn mounts(&self) -> impl Iterator<Item = Mount> {
        self.folders.iter().map(|(source, target)| Mount::Bind {
            source: source.clone(),
            target: target.clone(),
            read_only: true,
        })
    }
}

/// Name of the file that points a linked worktree to the session's folder, in the volume that no
/// sandbox mounts as a whole.
pub(super) const POINTER: &str = "pointer";
