use std::os::fd::AsFd;
use std::os::fd::OwnedFd;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;

use super::project::Project;
use super::read::Found;
use crate::root::split;

/// What stands at a path of the project now, and the folder it lies in: whatever is done to it is
/// done through that folder.
pub(super) struct Look {
    /// `None` where there is no such folder, or a link on the way to it.
    pub(super) folder: Option<OwnedFd>,
    pub(super) found: Found,
}

/// Whether a file system could take the name for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Plain,
    /// Only the folder's own list tells whether the very name is there.
    Ambiguous,
}

impl Look {
    pub(super) fn at(project: &Project, path: &[u8], kind: Name) -> Result<Self, Errno> {
        let (parent, name) = split(path);
        if kind == Name::Ambiguous && !parent.is_empty() && !is_there(project, parent)? {
            return Ok(Self {
                folder: None,
                found: Found::Nothing,
            });
        }
        let folder = match project.folder(parent) {
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => {
                return Ok(Self {
                    folder: None,
                    found: Found::Nothing,
                });
            }
            other => other?,
        };
        let mut found = Found::at(&folder, name)?;
        if kind == Name::Ambiguous && !matches!(found, Found::Nothing) && !is_listed(&folder, name)?
        {
            found = Found::Nothing;
        }
        Ok(Self {
            folder: Some(folder),
            found,
        })
    }
}

/// Whether each folder on the way has the very name it has in the path.
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
    fn a_name_that_could_be_another_one_is_looked_for_letter_by_letter() {
        let scene = Scene::new();
        scene.write("Folder/Deep/File", "x");
        for (path, is_there, has_folder) in [
            ("Folder/Deep/File", true, true),
            ("Folder/Deep/file", false, true),
            ("Folder/deep/File", false, false),
            ("Folder/Deep/File/x", false, false),
            ("Folder", true, true),
        ] {
            for kind in [Name::Plain, Name::Ambiguous] {
                let look = Look::at(&scene.project(), path.as_bytes(), kind).expect("looked");
                assert_eq!(
                    (look.found.node().is_some(), look.folder.is_some()),
                    (is_there, has_folder),
                    "{path}"
                );
            }
        }
    }
}
