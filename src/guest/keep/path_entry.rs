use std::os::fd::AsFd;
use std::os::fd::OwnedFd;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;

use super::project::Project;
use super::read::FoundEntry;
use crate::root::split;

/// The entry at a path of the project, and the opened folder around it: all changes of the entry
/// are made through that folder.
pub(super) struct PathEntry {
    /// `None` where there is no such folder, or a link on the way to it.
    pub(super) folder: Option<OwnedFd>,
    pub(super) found: FoundEntry,
}

/// Whether a file system could confuse the name with another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameCheck {
    Plain,
    /// Only the folder's list of names tells whether this very name exists.
    Ambiguous,
}

impl PathEntry {
    pub(super) fn at(project: &Project, path: &[u8], kind: NameCheck) -> Result<Self, Errno> {
        let (parent, name) = split(path);
        if kind == NameCheck::Ambiguous && !parent.is_empty() && !is_there(project, parent)? {
            return Ok(Self {
                folder: None,
                found: FoundEntry::Nothing,
            });
        }
        let folder = match project.folder(parent) {
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => {
                return Ok(Self {
                    folder: None,
                    found: FoundEntry::Nothing,
                });
            }
            other => other?,
        };
        let mut found = FoundEntry::at(&folder, name)?;
        if kind == NameCheck::Ambiguous
            && !matches!(found, FoundEntry::Nothing)
            && !is_listed(&folder, name)?
        {
            found = FoundEntry::Nothing;
        }
        Ok(Self {
            folder: Some(folder),
            found,
        })
    }
}

/// Whether each folder on the path has exactly the name in the path.
fn is_there(project: &Project, path: &[u8]) -> Result<bool, Errno> {
    let ends = path
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'/')
        .map(|(at, _)| at)
        .chain([path.len()]);
    for end in ends {
        let (parent, name) = split(&path[..end]);
        match project
            .folder(parent)
            .and_then(|folder| is_listed(&folder, name))
        {
            Ok(true) => {}
            Ok(false) | Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => return Ok(false),
            Err(errno) => return Err(errno),
        }
    }
    Ok(true)
}

fn is_listed(folder: impl AsFd, name: &[u8]) -> Result<bool, Errno> {
    let mut entries = Dir::openat(
        folder,
        ".",
        OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC,
        Mode::empty(),
    )?;
    for entry in entries.iter() {
        if entry?.file_name().to_bytes() == name {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keep::testing::Scene;

    #[test]
    fn an_ambiguous_name_must_match_exactly() {
        let scene = Scene::new();
        scene.write("Folder/Deep/File", "x");
        for (path, is_there, has_folder) in [
            ("Folder/Deep/File", true, true),
            ("Folder/Deep/file", false, true),
            ("Folder/deep/File", false, false),
            ("Folder/Deep/File/x", false, false),
            ("Folder", true, true),
        ] {
            for kind in [NameCheck::Plain, NameCheck::Ambiguous] {
                let look = PathEntry::at(&scene.project(), path.as_bytes(), kind).expect("looked");
                assert_eq!(
                    (look.found.node().is_some(), look.folder.is_some()),
                    (is_there, has_folder),
                    "{path}"
                );
            }
        }
    }
}
