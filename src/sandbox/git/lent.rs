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

/// Most repositories of submodules of one that a box sees the objects of.
const MOST_MODULES: usize = 64;

/// The `.git` of a box.
pub(crate) const DOT_GIT: &str = "/workspace/.git";

/// What a box has of git: the session's folders, and read-only of the real repositories the objects
/// and nothing else. Their settings hold what gets in elsewhere, and names and hooks are nobody's
/// concern in there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lent {
    top: Option<LentTop>,
    below: Vec<LentBelow>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct LentTop {
    volume: String,
    /// The file that leads a linked worktree to the session's folder, on the engine's machine.
    pointer: Option<String>,
    objects: Objects,
}

impl Lent {
    /// Returns what a project's box most probably gets, so that it can be made while the session's
    /// folder is; `None`: that must be awaited.
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

    /// Returns what a box gets; `None`: there is no repository that a box could have a folder for.
    /// `folder`: where the volume is on the engine's machine that has what is mounted by its path.
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

    /// Returns what of it is what it was; `is_same_top`: whether the `.git` at the top is.
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

    /// Returns whether the session's folder is at a place of the project, or above it.
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

    /// Checks that what is lent is what it was, just before the engine looks it up.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.top.iter().try_for_each(|top| top.objects.check())?;
        self.below.iter().try_for_each(LentBelow::check)
    }

    /// Puts the session's folders in the place of the real ones, which are not in the box any more
    /// then.
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

/// The folders of objects of a repository and of those of its submodules, on the host, and where
/// each is seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Objects {
    folders: Vec<(String, String)>,
}

impl Objects {
    /// `own` is the repository's own folder of objects, `git` its `.git` from the project's folder.
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

    /// Checks that no link leads to one of them.
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

/// The name of the file that leads a linked worktree to the session's folder, in the volume that no
/// box has.
pub(super) const POINTER: &str = "pointer";
