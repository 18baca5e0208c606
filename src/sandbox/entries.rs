//! What stands at the top of a project and is obeyed by programs on the host: `.git` by git,
//! `.podbay` by us.
//!
//! A sandbox has them read-only, as they stood when it started. What is put in their place later, or
//! made where there was none, it does not protect; here that is noticed.

use std::fs::symlink_metadata;
use std::io;
use std::os::unix::fs::MetadataExt;

use nix::errno::Errno;
use nix::fcntl::RenameFlags;
use nix::fcntl::renameat2;

use super::Project;
use podbay_event::InstanceId;

/// Which file or folder stands under a name.
type Identity = (u64, u64);

/// The two entries as they stood at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Entries {
    git: Option<Identity>,
    settings: Option<Identity>,
}

impl Entries {
    pub(super) fn of(project: &Project) -> Self {
        let identity = |name: &str| {
            symlink_metadata(project.path().join(name))
                .ok()
                .map(|facts| (facts.dev(), facts.ino()))
        };
        Self {
            git: identity(".git"),
            settings: identity(".podbay"),
        }
    }

    /// Returns the name of an entry that stood there, and no longer does or is another one now.
    ///
    /// Commands cannot do that, as both are mount points for them. When the user does it, the sandbox
    /// is left with nothing to protect.
    pub(super) fn gone(self, now: Self) -> Option<&'static str> {
        let is_gone =
            |before: Option<Identity>, now: Option<Identity>| before.is_some() && before != now;
        let pairs = [
            (".git", self.git, now.git),
            (".podbay", self.settings, now.settings),
        ];
        pairs
            .into_iter()
            .find_map(|(name, before, now)| is_gone(before, now).then_some(name))
    }

    pub(super) fn has_git(self) -> bool {
        self.git.is_some()
    }

    /// Returns whether the `.git` is the user's: it is the one that a sandbox was made with, and at
    /// no time in the session there was none.
    pub(super) fn is_git_theirs(self, was_away: bool, project: &Project) -> bool {
        let now = Self::of(project);
        now.git.is_none() || (self.git == now.git && !was_away)
    }

    /// Moves a `.git` aside that was made since, whatever it is, and returns its new name.
    /// `was_away`: at some time in the session there was none, so that one with the same inode was
    /// made as well.
    ///
    /// Commands could make it, with hooks and settings of their choice, and the user's next git
    /// command would run what they say. It stays in the project: the state folder may lie on
    /// another disk, and nothing of a project is copied by the host.
    pub(super) fn set_git_aside(
        self,
        was_away: bool,
        project: &Project,
    ) -> io::Result<Option<String>> {
        let now = Self::of(project);
        if now.git.is_none() || (self.git == now.git && !was_away) {
            return Ok(None);
        }
        let name = format!(".git-from-sandbox-{}", InstanceId::random());
        let folder = std::fs::File::open(project.path())?;
        match renameat2(
            &folder,
            ".git",
            &folder,
            name.as_str(),
            RenameFlags::RENAME_NOREPLACE,
        ) {
            Ok(()) => Ok(Some(name)),
            Err(Errno::ENOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn what_was_replaced_is_named_and_what_was_made_is_set_aside() {
        let folder = tempfile::tempdir().expect("a folder");
        let project =
            Project::open(folder.path(), None, Path::new("/nonexistent")).expect("a project");
        let at = |name: &str| folder.path().join(name);
        let none = Entries::of(&project);
        assert_eq!(
            none.set_git_aside(false, &project).expect("nothing to do"),
            None
        );
        fs::create_dir_all(at(".git/hooks")).expect("made");
        fs::create_dir(at(".podbay")).expect("made");
        let both = Entries::of(&project);
        assert_eq!(none.gone(both), None, "what is made is another matter");
        assert_eq!(both.gone(both), None);
        assert_eq!(
            both.set_git_aside(false, &project).expect("nothing to do"),
            None,
            "it was there"
        );
        fs::rename(at(".podbay"), at("old")).expect("moved");
        assert_eq!(both.gone(Entries::of(&project)), Some(".podbay"));
        fs::rename(at(".git"), at("older")).expect("moved");
        fs::create_dir(at(".git")).expect("made");
        assert_eq!(both.gone(Entries::of(&project)), Some(".git"));

        let replaced = both
            .set_git_aside(false, &project)
            .expect("moved")
            .expect("it is not the one from the start");
        assert!(at(&replaced).is_dir() && !at(".git").exists());
        fs::create_dir(at(".git")).expect("made");
        let name = none
            .set_git_aside(false, &project)
            .expect("moved")
            .expect("there was one");
        assert!(at(&name).is_dir() && !at(".git").exists());
        // A link is moved, and not what it leads to.
        std::os::unix::fs::symlink(at("older"), at(".git")).expect("linked");
        let link = none
            .set_git_aside(false, &project)
            .expect("moved")
            .expect("there was one");
        assert!(at(&link).is_symlink() && at("older/hooks").is_dir() && link != name);
        // The one from the start was removed, and what was made later got its inode.
        fs::rename(at("older"), at(".git")).expect("moved");
        assert_eq!(
            both.set_git_aside(false, &project).expect("nothing to do"),
            None,
            "it is back"
        );
        assert!(both.set_git_aside(true, &project).expect("moved").is_some());
    }
}
