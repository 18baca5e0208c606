use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::fcntl::OFlag;
use nix::sys::stat::FileStat;
use nix::sys::stat::SFlag;
use nix::sys::stat::fstatat;

use super::invalid;
use super::made_folders::MadeFolders;
use super::made_folders::make_folders;
use super::made_folders::refuse_backslash;
use super::save::Parents;
use crate::beneath::Links;
use crate::root::Root;
use crate::root::fault;
use crate::root::file_type;
use crate::root::join;
use crate::root::split;
use podbay_wire::BytesPath;
use podbay_wire::Fault;
use podbay_wire::protected_name;

/// A name in an open folder, whatever exists there. Unlike [`super::save::TargetFile`] it follows
/// no link: to delete or move a link is to delete or move the link itself.
#[derive(Debug)]
pub(super) struct TargetEntry {
    /// As the model gave it.
    pub(super) path: BytesPath,
    /// From the project's folder, without a trailing slash.
    pub(super) shown: BytesPath,
    /// Its path from the project's folder, with links resolved.
    pub(super) real: Vec<u8>,
    pub(super) folder: OwnedFd,
    pub(super) name: Vec<u8>,
    pub(super) stat: Option<FileStat>,
    pub(super) made: MadeFolders,
}

impl TargetEntry {
    /// Resolves a path; the project's own folder is refused. A protected name is refused unless it
    /// is allowed.
    pub(super) fn find(
        root: &Root,
        path: &BytesPath,
        protected: bool,
        parents: Parents,
    ) -> Result<Self, Fault> {
        let relative = root.relative(path)?;
        let bytes = relative.as_bytes();
        let bare = bytes.strip_suffix(b"/").unwrap_or(bytes);
        if path.is_empty() {
            return Err(invalid("path", "is empty; name a file or a folder"));
        }
        let (parent, name) = split(bare);
        if bare.is_empty() {
            return Err(refused(
                path,
                "is the project's own folder; name something in it",
            ));
        }
        if name == b".." {
            // Only the kernel knows where that leads; it fails if that is outside.
            root.open_directory(path)?;
            return Err(refused(path, "ends in `..`; name the folder itself"));
        }
        let mut made = MadeFolders::default();
        let folder =
            match root
                .beneath()
                .open(parent, OFlag::O_RDONLY | OFlag::O_DIRECTORY, Links::Follow)
            {
                Err(Errno::ENOENT) if parents == Parents::Make => {
                    make_folders(root, path, parent, &mut made)?
                }
                other => other.map_err(|errno| root.fault(path, errno))?,
            };
        let stat = match fstatat(&folder, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(stat) => Some(stat),
            Err(Errno::ENOENT) => None,
            Err(errno) => return Err(fault(path, errno)),
        };
        if bytes.ends_with(b"/")
            && stat
                .as_ref()
                .is_some_and(|stat| file_type(stat) != SFlag::S_IFDIR)
        {
            return Err(Fault::NotDirectory { path: path.clone() });
        }
        if stat.is_none() && parents == Parents::Make {
            refuse_backslash(path, name)?;
        }
        root.refuse_protected(path, &folder, name, protected)?;
        let real = join(root.real(path, &folder)?.as_bytes(), name);
        Ok(Self {
            path: path.clone(),
            shown: BytesPath::from_bytes(bare),
            real,
            name: name.to_vec(),
            folder,
            stat,
            made,
        })
    }

    /// Returns the metadata; a missing entry is a fault that suggests similar names.
    pub(super) fn there(&self, root: &Root) -> Result<&FileStat, Fault> {
        self.stat
            .as_ref()
            .ok_or_else(|| root.fault(&self.path, Errno::ENOENT))
    }

    pub(super) fn is_folder(&self) -> bool {
        self.stat
            .as_ref()
            .is_some_and(|stat| file_type(stat) == SFlag::S_IFDIR)
    }

    /// Refuses entries that must stay in place, whatever was allowed.
    pub(super) fn refuse_rooted(&self) -> Result<(), Fault> {
        if is_rooted(&self.name) {
            return Err(refused(
                &self.path,
                "belongs to git or to Podbay and stays where it is",
            ));
        }
        Ok(())
    }
}

/// Returns whether a name is that of a repository's folder or of Podbay's, or what some file
/// systems treat as one.
pub(super) fn is_rooted(name: &[u8]) -> bool {
    protected_name(&BytesPath::from_bytes(name)).is_some_and(|found| {
        let plain: String = found.name.chars().filter(char::is_ascii).collect();
        matches!(
            plain
                .trim_end_matches(['.', ' '])
                .to_ascii_lowercase()
                .as_str(),
            ".git" | ".podbay"
        )
    })
}

pub(super) fn refused(path: &BytesPath, problem: impl Into<String>) -> Fault {
    Fault::Refused {
        path: path.clone(),
        problem: problem.into(),
    }
}
