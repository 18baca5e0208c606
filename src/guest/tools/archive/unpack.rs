use std::collections::BTreeSet;
use std::collections::hash_map::RandomState;
use std::fs::File;
use std::hash::BuildHasher;
use std::io::Read;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::fcntl::RenameFlags;
use nix::fcntl::openat;
use nix::fcntl::renameat;
use nix::fcntl::renameat2;
use nix::sys::stat::Mode;
use nix::sys::stat::mkdirat;
use nix::unistd::symlinkat;

use super::ArchiveKind;
use super::MAX_BYTES;
use super::WITH_BASH;
use super::names::check_link;
use super::names::parts;
use super::read;
use super::read::EntryContent;
use super::read::broken;
use super::too_large;
use crate::root::as_path;
use crate::root::fault;
use crate::root::join;
use crate::root::names;
use crate::tools::Workspace;
use crate::tools::contents;
use crate::tools::made_folders::MadeFolders;
use crate::tools::made_folders::make_folders;
use crate::tools::save::errno_of;
use crate::tools::stop::Stop;
use crate::tools::target_entry::is_rooted;
use crate::tools::target_entry::refused;
use podbay_wire::Archive;
use podbay_wire::BytesPath;
use podbay_wire::Change;
use podbay_wire::Changed;
use podbay_wire::Fault;
use podbay_wire::FileChange;
use podbay_wire::protected_name;

/// Unpacks into a temporary folder beside the target, then renames each top entry to its place; all
/// of it or nothing.
pub(super) fn run(
    workspace: &Workspace,
    call: &Archive,
    kind: ArchiveKind,
    into: &BytesPath,
    stop: &Stop<'_>,
) -> Result<Changed, Fault> {
    let root = &workspace.root;
    let file = read::open(workspace, call)?;
    let _changing = workspace.changing();
    let relative = root.relative(into)?;
    let mut made = MadeFolders::default();
    let folder = make_folders(root, into, relative.as_bytes(), &mut made)?;
    let real = root.real(into, &folder)?;
    let look = |file: &File| {
        file.try_clone()
            .map_err(|error| broken(&call.archive, &error, stop))
    };
    let found = Contents::look(call, into, real.as_bytes(), look(&file)?, kind, stop)?;
    let stage = StagingFolder::new(into, &folder)?;
    stage.fill(call, file, kind, stop)?;
    stage.name_all(&found.tops)?;
    drop(stage);
    made.keep();
    let shown = BytesPath::from_bytes(
        relative
            .as_bytes()
            .strip_suffix(b"/")
            .unwrap_or(relative.as_bytes()),
    );
    let at = |name: &[u8]| BytesPath::from_bytes(join(shown.as_bytes(), name));
    let files = found.tops.iter().map(|name| FileChange {
        path: at(name),
        change: Change::Created,
        entries: found.folders.contains(name).then(|| found.inside(name)),
        ..FileChange::default()
    });
    Ok(Changed {
        files: files.collect(),
        dry_run: false,
        memos: Vec::new(),
    })
}

/// The inspected entries of an archive.
struct Contents {
    /// First components of all names, and those of them that are folders.
    tops: Vec<Vec<u8>>,
    folders: BTreeSet<Vec<u8>>,
    all: Vec<Vec<u8>>,
}

impl Contents {
    fn look(
        call: &Archive,
        into: &BytesPath,
        real: &[u8],
        file: File,
        kind: ArchiveKind,
        stop: &Stop<'_>,
    ) -> Result<Self, Fault> {
        let mut found = Self {
            tops: Vec::new(),
            folders: BTreeSet::new(),
            all: Vec::new(),
        };
        let mut seen = BTreeSet::new();
        let mut left = MAX_BYTES;
        read::each(&call.archive, file, kind, stop, &mut |entry, _| {
            let parts = parts(&call.archive, &entry.name)?;
            let Some(top) = parts.first() else {
                return Ok(());
            };
            let name = parts.join(&b'/');
            let path = BytesPath::from_bytes(join(real, &name));
            let is_refused = protected_name(&path)
                .is_some_and(|protected| !(call.protected && names(into, &protected)));
            if parts.iter().any(|part| is_rooted(part)) || is_refused {
                return Err(refused(
                    &call.archive,
                    format!("contains {path}, whose name is protected; {WITH_BASH}"),
                ));
            }
            let is_folder = matches!(entry.what, EntryContent::Folder);
            if let EntryContent::Link { target } = &entry.what {
                check_link(&call.archive, &parts, target)?;
            }
            left = left
                .checked_sub(entry.bytes)
                .ok_or_else(|| too_large(&call.archive))?;
            if parts.len() > 1 || is_folder {
                found.folders.insert(top.clone());
            }
            if !found.tops.contains(top) {
                found.tops.push(top.clone());
            }
            if seen.insert(name.clone()) {
                found.all.push(name);
            } else if !is_folder {
                return Err(refused(
                    &call.archive,
                    format!("contains {path} twice; {WITH_BASH}"),
                ));
            }
            Ok(())
        })?;
        if found.all.is_empty() {
            return Err(refused(
                &call.archive,
                "is empty, so there is nothing to unpack; continue without it, or download it again",
            ));
        }
        Ok(found)
    }

    /// Returns how many entries a folder contains.
    fn inside(&self, folder: &[u8]) -> u64 {
        self.all
            .iter()
            .filter(|name| {
                name.strip_prefix(folder)
                    .is_some_and(|rest| rest.starts_with(b"/"))
            })
            .count() as u64
    }
}

/// A temporary folder without a final name; removed with its contents when it is dropped.
struct StagingFolder<'a> {
    into: &'a BytesPath,
    folder: &'a OwnedFd,
    name: String,
    opened: OwnedFd,
}

impl<'a> StagingFolder<'a> {
    fn new(into: &'a BytesPath, folder: &'a OwnedFd) -> Result<Self, Fault> {
        let failed = |errno| fault(into, errno);
        let name = format!(".podbay-{:016x}.tmp", RandomState::new().hash_one(into));
        mkdirat(folder, name.as_str(), Mode::from_bits_truncate(0o700)).map_err(failed)?;
        let opened = contents::open_folder(folder, name.as_bytes()).map_err(failed)?;
        Ok(Self {
            into,
            folder,
            name,
            opened,
        })
    }

    /// Links come last, so that no file is written through one.
    fn fill(
        &self,
        call: &Archive,
        file: File,
        kind: ArchiveKind,
        stop: &Stop<'_>,
    ) -> Result<(), Fault> {
        let mut links = Vec::new();
        let mut left = MAX_BYTES;
        read::each(&call.archive, file, kind, stop, &mut |entry, content| {
            if stop.is_set() {
                return Err(Fault::Cancelled);
            }
            let parts = parts(&call.archive, &entry.name)?;
            let Some((name, folders)) = parts.split_last() else {
                return Ok(());
            };
            let done = match entry.what {
                EntryContent::Folder => self.folder_of(&parts).map(drop),
                EntryContent::File { may_run } => {
                    let folder = self.folder_of(folders);
                    folder.and_then(|folder| {
                        self.write(
                            &folder, &parts, name, may_run, content, call, &mut left, stop,
                        )
                    })
                }
                EntryContent::Link { target } => {
                    links.push((parts, target));
                    Ok(())
                }
            };
            done.map_err(|fault| of_entry(&call.archive, &entry.name, fault))
        })?;
        for (parts, target) in links {
            let Some((name, folders)) = parts.split_last() else {
                continue;
            };
            check_link(&call.archive, &parts, &target)?;
            let made = self.folder_of(folders).and_then(|folder| {
                symlinkat(as_path(&target), &folder, name.as_slice())
                    .map_err(|errno| fault(&self.at(&parts), errno))
            });
            made.map_err(|fault| of_entry(&call.archive, &parts.join(&b'/'), fault))?;
        }
        Ok(())
    }

    /// Returns the path that an entry would have.
    fn at(&self, parts: &[Vec<u8>]) -> BytesPath {
        BytesPath::from_bytes(join(self.into.as_bytes(), &parts.join(&b'/')))
    }

    /// Opens a folder in the temporary folder, creating what is missing.
    fn folder_of(&self, parts: &[Vec<u8>]) -> Result<OwnedFd, Fault> {
        let failed = |errno| fault(&self.at(parts), errno);
        let mut here = contents::open_folder(&self.opened, b".").map_err(failed)?;
        for part in parts {
            match mkdirat(&here, part.as_slice(), Mode::from_bits_truncate(0o777)) {
                Ok(()) | Err(Errno::EEXIST) => {}
                Err(errno) => return Err(failed(errno)),
            }
            here = contents::open_folder(&here, part).map_err(failed)?;
        }
        Ok(here)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "one place writes an entry and applies every bound to it"
    )]
    fn write(
        &self,
        folder: &OwnedFd,
        parts: &[Vec<u8>],
        name: &[u8],
        may_run: bool,
        content: &mut dyn Read,
        call: &Archive,
        left: &mut u64,
        stop: &Stop<'_>,
    ) -> Result<(), Fault> {
        let flags =
            OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mode = Mode::from_bits_truncate(if may_run { 0o777 } else { 0o666 });
        let target =
            openat(folder, name, flags, mode).map_err(|errno| fault(&self.at(parts), errno))?;
        let mut target = File::from(target);
        let mut buffer = vec![0; 64 * 1024];
        loop {
            if stop.is_set() {
                return Err(Fault::Cancelled);
            }
            let n = content
                .read(&mut buffer)
                .map_err(|error| broken(&call.archive, &error, stop))?;
            if n == 0 {
                return Ok(());
            }
            // The declared size is not trusted.
            *left = left
                .checked_sub(n as u64)
                .ok_or_else(|| too_large(&call.archive))?;
            target
                .write_all(&buffer[..n])
                .map_err(|error| fault(&self.at(parts), errno_of(&error)))?;
        }
    }

    /// Renames all top entries to their places. If a name is taken, those already renamed are moved
    /// back.
    fn name_all(&self, names: &[Vec<u8>]) -> Result<(), Fault> {
        for (at, name) in names.iter().enumerate() {
            let Err(errno) = self.name_one(name) else {
                continue;
            };
            for given in names[..at].iter().rev() {
                let _ = renameat(
                    self.folder,
                    given.as_slice(),
                    &self.opened,
                    given.as_slice(),
                );
            }
            let path = BytesPath::from_bytes(join(self.into.as_bytes(), name));
            return Err(match errno {
                Errno::EEXIST | Errno::ENOTEMPTY | Errno::ENOTDIR | Errno::EISDIR => {
                    Fault::Exists {
                        path,
                        remedy: "nothing is replaced, so name a new folder as output_path"
                            .to_owned(),
                    }
                }
                errno => fault(&path, errno),
            });
        }
        Ok(())
    }

    fn name_one(&self, name: &[u8]) -> Result<(), Errno> {
        match renameat2(
            &self.opened,
            name,
            self.folder,
            name,
            RenameFlags::RENAME_NOREPLACE,
        ) {
            // Some file systems know no rename flags; an existing entry is then looked for.
            Err(Errno::EINVAL | Errno::ENOSYS) => {
                let there = nix::sys::stat::fstatat(
                    self.folder,
                    name,
                    nix::fcntl::AtFlags::AT_SYMLINK_NOFOLLOW,
                );
                if there.is_ok() {
                    Err(Errno::EEXIST)
                } else {
                    renameat(&self.opened, name, self.folder, name)
                }
            }
            other => other,
        }
    }
}

impl Drop for StagingFolder<'_> {
    fn drop(&mut self) {
        // Only what this call created is in it.
        let _ = contents::remove(
            self.folder.as_fd(),
            self.name.as_bytes(),
            self.name.as_bytes(),
            &mut 0,
        );
    }
}

/// Adds the entry and the archive to a fault.
fn of_entry(archive: &BytesPath, name: &[u8], fault: Fault) -> Fault {
    match fault {
        Fault::Cancelled | Fault::TooLarge { .. } | Fault::NoSpace { .. } => fault,
        other => {
            let shown: String = BytesPath::from_bytes(name)
                .to_string()
                .chars()
                .take(200)
                .collect();
            refused(
                archive,
                format!("the entry `{shown}` cannot be unpacked: {other}; nothing was unpacked"),
            )
        }
    }
}
