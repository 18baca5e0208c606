use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::top::BESIDE;
use super::top::LENT;
use super::top::Top;
use super::top::is_folder;
use crate::engine::ContainerSpec;
use crate::engine::Mount;
use crate::sandbox::Error;
use crate::sandbox::Project;
use crate::sandbox::way;
use crate::wire::keep::PreparedGit;

/// Most repositories of submodules that a box sees the objects of.
const MOST_MODULES: usize = 64;

/// The `.git` of a box.
pub(in crate::sandbox) const DOT_GIT: &str = "/workspace/.git";

/// What a box has of git: the session's folder, and read-only of the real repositories the objects and nothing else. Their settings hold what
/// gets in elsewhere, and names and hooks are nobody's concern in there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::sandbox) struct Lent {
    volume: String,
    /// Folders on the host, and where below the lent repository they are seen.
    objects: Vec<(String, String)>,
    /// The file that leads a linked worktree to the session's folder, on the engine's machine.
    pointer: Option<String>,
}

impl Lent {
    /// Returns what a project's box most probably gets, so that it can be made while the session's folder is; `None`: that must be awaited.
    pub(super) fn guess(project: &Project, top: &Top, volume: &str) -> Option<Self> {
        let lent = Self::of(project, top, volume, &PreparedGit::default(), None)?;
        (*top == Top::Folder && !is_folder(&project.path().join(".git/modules"))).then_some(lent)
    }

    /// Returns what a box gets; `None`: there is no repository that a box could have a folder for. `volume_folder`: where the volume is.
    pub(super) fn of(project: &Project, top: &Top, volume: &str, prepared: &PreparedGit, volume_folder: Option<&str>) -> Option<Self> {
        let text = |path: &Path| path.to_str().map(str::to_owned);
        let objects = top.objects(project)?;
        if !is_folder(&objects) {
            return None;
        }
        let mut lent = vec![(text(&objects)?, format!("{LENT}/objects"))];
        let pointer = match top {
            Top::Worktree { .. } => Some(format!("{}/{POINTER}", volume_folder?)),
            Top::Folder | Top::None => None,
        };
        for repository in prepared.repositories.iter().filter(|one| one.path.as_bytes() != b".git").take(MOST_MODULES) {
            let Some(inside) = text(repository.path.as_path()).and_then(|path| path.strip_prefix(".git/").map(str::to_owned)) else {
                continue;
            };
            let objects = project.path().join(".git").join(&inside).join("objects");
            if let Some(source) = text(&objects).filter(|_| is_folder(&objects)) {
                lent.push((source, format!("{LENT}/{inside}/objects")));
            }
        }
        Some(Self { volume: volume.to_owned(), objects: lent, pointer })
    }

    /// Checks that what is lent is what it was, just before the engine looks it up.
    pub(in crate::sandbox) fn check(&self) -> Result<(), Error> {
        for (source, _) in &self.objects {
            let gone = || Error::Uncovered { path: source.clone() };
            let facts = fs::symlink_metadata(source).map_err(|_| gone())?;
            if !facts.is_dir() {
                return Err(gone());
            }
            way::walk(Path::new(source), (facts.dev(), facts.ino())).map_err(|_| gone())?;
        }
        Ok(())
    }

    /// Puts the session's folder in the place of the real one, which is not in the box any more then.
    pub(in crate::sandbox) fn mount(&self, container: &mut ContainerSpec) {
        container.readonly_paths.retain(|path| path != DOT_GIT);
        let target = if self.pointer.is_some() { BESIDE } else { DOT_GIT };
        container.mounts.push(Mount::Volume { name: self.volume.clone(), target: target.to_owned(), read_only: false });
        if let Some(source) = &self.pointer {
            container.mounts.push(Mount::FileOfVolume { source: source.clone(), target: DOT_GIT.to_owned() });
        }
        container.mounts.extend(self.objects.iter().map(|(source, target)| Mount::Bind {
            source: source.clone(),
            target: target.clone(),
            read_only: true,
        }));
    }
}

/// The name in the session's folder of the file that leads there.
pub(super) const POINTER: &str = "podbay-pointer";
