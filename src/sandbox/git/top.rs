use std::fs;
use std::path::Path;
use std::path::PathBuf;

use crate::Project;
use crate::project::git_folder;
use podbay_engine::Mount;
use podbay_guest::keep::git::linked;
use podbay_wire::BytesPath;
use podbay_wire::keep::GitSource;

/// Where a keeper mounts the session's folder, and the repository of a linked worktree.
pub(super) const SESSION: &str = "/session/0";
const REAL: &str = "/real/0";

/// Where it writes the pointer of a linked worktree.
const POINTER_AT: &str = "/below/pointer";

/// Where a sandbox mounts the session's folder if that cannot be at `.git`.
pub(super) const BESIDE: &str = "/run/podbay/session";

/// Returns where a sandbox mounts a real repository, by its number.
pub(super) fn lent_at(number: usize) -> String {
    format!("/run/podbay/git/{number}")
}

/// The kind of `.git` at the top of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Top {
    Folder,
    /// A file, as in a linked worktree: the repository it belongs to, and the worktree's name
    /// there.
    Worktree {
        common: PathBuf,
        name: BytesPath,
    },
    /// None, or one that cannot have a session folder.
    None,
}

impl Top {
    /// Inspects only the `.git`. The keeper verifies it.
    pub(super) fn of(project: &Project) -> Self {
        let Ok(facts) = fs::symlink_metadata(project.path().join(".git")) else {
            return Self::None;
        };
        if facts.is_dir() {
            return Self::Folder;
        }
        let named = git_folder(project.path()).ok().flatten();
        let named = named.and_then(|path| linked(&BytesPath::from(project.path().join(path))));
        let Some((common, name)) = named else {
            return Self::None;
        };
        // The engine needs a path without symlinks.
        match fs::canonicalize(common.as_path()) {
            Ok(common) if common.is_dir() && common.to_str().is_some() => {
                Self::Worktree { common, name }
            }
            _ => Self::None,
        }
    }

    /// Returns the source for the keeper.
    pub(super) fn source(&self, project: &Project) -> Option<GitSource> {
        let source = |real: &str, worktree, session_in_box: &str| GitSource {
            path: ".git".into(),
            real: real.into(),
            worktree,
            session: SESSION.into(),
            pointer: matches!(self, Self::Worktree { .. }).then(|| POINTER_AT.into()),
            real_in_box: lent_at(0).as_str().into(),
            session_in_box: session_in_box.into(),
        };
        match self {
            Self::Folder => Some(source("/workspace/.git", None, "/workspace/.git")),
            Self::Worktree { name, .. } => {
                let file = BytesPath::from(project.path().join(".git"));
                Some(source(REAL, Some((name.clone(), file)), BESIDE))
            }
            Self::None => None,
        }
    }

    /// Returns the keeper's mounts besides the project: to import, it writes to the repository and
    /// reads the session's folder; to prepare, the reverse.
    pub(super) fn mounts(&self, volume: &str, imports: bool) -> Vec<Mount> {
        let mut mounts = Vec::new();
        if *self != Self::None {
            let (name, target) = (volume.to_owned(), SESSION.to_owned());
            mounts.push(if imports {
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
            });
        }
        if let Self::Worktree { common, .. } = self
            && let Some(source) = common.to_str()
        {
            mounts.push(Mount::Bind {
                source: source.to_owned(),
                target: REAL.to_owned(),
                read_only: !imports,
            });
        }
        mounts
    }

    /// Returns the object folder of the repository.
    pub(super) fn objects(&self, project: &Project) -> Option<PathBuf> {
        match self {
            Self::Folder => Some(project.path().join(".git/objects")),
            Self::Worktree { common, .. } => Some(common.join("objects")),
            Self::None => None,
        }
    }
}

/// Returns whether a path is a folder and no symlink.
pub(super) fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|facts| facts.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_dot_git_are_distinguished() {
        let place = tempfile::tempdir().expect("a folder");
        let root = fs::canonicalize(place.path()).expect("a path");
        let project = root.join("project");
        fs::create_dir_all(&project).expect("made");
        fs::create_dir_all(root.join("main/.git/worktrees/side")).expect("made");
        let top = || {
            Top::of(&Project::open(&project, None, Path::new("/nonexistent")).expect("a project"))
        };
        assert_eq!(top(), Top::None);
        let common = root.join("main/.git");
        for named in [
            format!("{}/worktrees/side", common.display()),
            "../main/.git/worktrees/side".to_owned(),
        ] {
            fs::write(project.join(".git"), format!("gitdir: {named}\n")).expect("written");
            assert_eq!(
                top(),
                Top::Worktree {
                    common: common.clone(),
                    name: "side".into()
                },
                "{named}"
            );
        }
        for named in [
            "../main/.git/modules/side",
            "/nowhere/worktrees/side",
            "../main",
        ] {
            fs::write(project.join(".git"), format!("gitdir: {named}\n")).expect("written");
            assert_eq!(top(), Top::None, "{named}");
        }
        fs::remove_file(project.join(".git")).expect("removed");
        fs::create_dir(project.join(".git")).expect("made");
        assert_eq!(top(), Top::Folder);
    }
}
