use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::fcntl::readlinkat;
use nix::sys::stat::FileStat;
use nix::sys::stat::Mode;
use nix::sys::stat::SFlag;
use nix::sys::stat::fstat;
use nix::sys::stat::makedev;

use super::beneath::Beneath;
use super::beneath::Links;
use super::proc;
use super::tools::similar_names::SimilarNames;
use podbay_wire::BytesPath;
use podbay_wire::Fault;
use podbay_wire::Protected;
use podbay_wire::protected_name;

/// Where the project is mounted in every sandbox.
pub(crate) const MOUNT: &str = "/workspace";

/// Most links searched for the one that leads out.
const MAX_LINKS: u32 = 40;

/// Most names compared for a "did you mean".
pub(crate) const MAX_NAMES: usize = 10_000;

/// A folder with more names than this is not described by them.
const MOST_BESIDE: usize = 12;

/// The project's folder: the only access to its files.
#[derive(Debug)]
pub struct Root {
    beneath: Beneath,
    /// The folder's absolute name as the model knows it. Removing it only makes a path relative;
    /// the kernel decides whether that path stays inside.
    mount: Vec<u8>,
    /// Nothing is written: changes are only checked.
    only_checks: bool,
}

impl Root {
    pub fn open(path: &Path) -> io::Result<Self> {
        let fd = nix::fcntl::open(
            path,
            OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC,
            Mode::empty(),
        )?;
        Ok(Self {
            beneath: Beneath::new(fd),
            mount: MOUNT.as_bytes().to_vec(),
            only_checks: false,
        })
    }

    /// Returns the same, with no link followed.
    pub(crate) fn by_name(&self) -> io::Result<Self> {
        Ok(Self {
            beneath: self.beneath.without_links()?,
            mount: self.mount.clone(),
            only_checks: self.only_checks,
        })
    }

    /// Returns the same, in which changes are only checked.
    pub(crate) fn checking(&self) -> io::Result<Self> {
        Ok(Self {
            beneath: self.beneath.try_clone()?,
            mount: self.mount.clone(),
            only_checks: true,
        })
    }

    pub(crate) fn only_checks(&self) -> bool {
        self.only_checks
    }

    /// Refuses a link that was found on the way, where none is followed.
    pub(crate) fn refuse_link(&self, path: &BytesPath) -> Result<(), Fault> {
        if self.beneath.refuses_links() {
            Err(self.led_elsewhere(path))
        } else {
            Ok(())
        }
    }

    fn led_elsewhere(&self, path: &BytesPath) -> Fault {
        let real = || {
            let relative = self.relative(path).ok()?;
            let followed = self.beneath.with_links().ok()?;
            let (mut there, mut behind) = (relative.as_bytes(), Vec::new());
            // The end may be missing because it is to be created; its parent folder exists.
            let opened = loop {
                match followed.open(there, OFlag::O_PATH, Links::Follow) {
                    Err(Errno::ENOENT) if !there.is_empty() => {
                        let (parent, name) = split(there);
                        behind = if behind.is_empty() {
                            name.to_vec()
                        } else {
                            join(name, &behind)
                        };
                        there = parent;
                    }
                    other => break other.ok()?,
                }
            };
            let real = self.real(path, opened).ok()?;
            let real = if behind.is_empty() {
                real
            } else {
                BytesPath::from_bytes(join(real.as_bytes(), &behind))
            };
            Some(real).filter(|real| !real.is_empty() && *real != relative)
        };
        let (to, remedy) = match real() {
            Some(real) => (format!(" to {real}"), format!("name {real} itself")),
            None => (String::new(), "name the path itself".to_owned()),
        };
        let problem = format!(
            "is a symbolic link, or leads through one{to}, and this call may use only paths without links, because rules or the user decide by name: {remedy}"
        );
        Fault::Refused {
            path: path.clone(),
            problem,
        }
    }

    /// Returns the path relative to the project's folder, without `.` and doubled slashes; `..`
    /// stays for the kernel.
    pub fn relative(&self, path: &BytesPath) -> Result<BytesPath, Fault> {
        let mut bytes = path.as_bytes();
        if bytes.contains(&0) {
            return Err(Fault::Invalid {
                field: shown(path),
                problem: "contains a NUL byte, which no file name can have".into(),
            });
        }
        if bytes.starts_with(b"/") {
            bytes = match bytes.strip_prefix(self.mount.as_slice()) {
                Some(rest) if rest.is_empty() || rest.starts_with(b"/") => rest,
                _ => return Err(Fault::Outside { path: path.clone() }),
            };
        }
        let mut relative = Vec::with_capacity(bytes.len());
        for name in bytes
            .split(|byte| *byte == b'/')
            .filter(|name| !name.is_empty() && *name != b".")
        {
            if !relative.is_empty() {
                relative.push(b'/');
            }
            relative.extend_from_slice(name);
        }
        // A trailing slash means "this must be a folder", which the kernel checks too.
        if !relative.is_empty() && (bytes.ends_with(b"/") || bytes.ends_with(b"/.")) {
            relative.push(b'/');
        }
        Ok(BytesPath::from_bytes(relative))
    }

    /// Opens a folder for reading its names or for `fchdir`; an empty path is the project's own
    /// folder.
    pub fn open_directory(&self, path: &BytesPath) -> Result<OwnedFd, Fault> {
        let relative = self.relative(path)?;
        self.beneath
            .open(
                relative.as_bytes(),
                OFlag::O_RDONLY | OFlag::O_DIRECTORY,
                Links::Follow,
            )
            .map_err(|errno| self.fault(path, errno))
    }

    /// Opens a folder as a command's working directory, which needs no permission to read its
    /// names.
    ///
    /// A link with an absolute target inside the project is followed here: a command may work
    /// anywhere, so an exchange of the link gains nothing, and the kernel checks its target like
    /// any other path.
    pub(crate) fn open_place(&self, path: &BytesPath) -> Result<OwnedFd, Fault> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY;
        let mut way = path.clone();
        for _ in 0..MAX_LINKS {
            let relative = self.relative(&way)?;
            match self.beneath.open(relative.as_bytes(), flags, Links::Follow) {
                Err(Errno::EXDEV) => match self.past_absolute_link(&way) {
                    Some(next) => way = next,
                    None => return Err(Fault::Outside { path: path.clone() }),
                },
                other => return other.map_err(|errno| self.fault(path, errno)),
            }
        }
        Err(Fault::Outside { path: path.clone() })
    }

    /// Opens a folder as a base that a walk cannot leave.
    pub(crate) fn descend(&self, path: &BytesPath) -> Result<Beneath, Fault> {
        let relative = self.relative(path)?;
        self.beneath
            .descend(relative.as_bytes())
            .map_err(|errno| self.fault(path, errno))
    }

    /// Opens a regular file for reading; anything else is a fault and never blocks.
    pub(crate) fn open_file(&self, path: &BytesPath) -> Result<(File, FileStat), Fault> {
        let relative = self.relative(path)?;
        if relative.is_empty() {
            return Err(not_a_file(path));
        }
        let fault = |errno| self.fault(path, errno);
        let fd = self
            .beneath
            .open(relative.as_bytes(), OFlag::O_RDONLY, Links::Follow)
            .map_err(fault)?;
        let stat = fstat(&fd).map_err(fault)?;
        check_regular(path, &stat)?;
        Ok((File::from(fd), stat))
    }

    /// Returns the metadata of a path without opening it.
    pub(crate) fn look(&self, path: &BytesPath) -> Result<FileStat, Fault> {
        let relative = self.relative(path)?;
        let fd = self
            .beneath
            .open(relative.as_bytes(), OFlag::O_PATH, Links::Follow)
            .map_err(|errno| self.fault(path, errno))?;
        fstat(&fd).map_err(|errno| self.fault(path, errno))
    }

    pub(crate) fn beneath(&self) -> &Beneath {
        &self.beneath
    }

    pub(crate) fn mount(&self) -> &[u8] {
        &self.mount
    }

    /// Turns an error of the kernel about `path` into a fault that the model can act on.
    pub(crate) fn fault(&self, path: &BytesPath, errno: Errno) -> Fault {
        match errno {
            Errno::ELOOP if self.beneath.refuses_links() => self.led_elsewhere(path),
            Errno::ENOENT => {
                if let Some((link, target)) = self.dangling_link(path) {
                    return Fault::DanglingLink {
                        path: path.clone(),
                        link,
                        target,
                    };
                }
                let (similar, beside) = self.similar(path);
                Fault::NotFound {
                    path: path.clone(),
                    similar,
                    beside,
                }
            }
            Errno::EXDEV => match self.absolute_link(path) {
                Some((target, _)) => self.outside(path, &target),
                None => fault(path, errno),
            },
            other => fault(path, other),
        }
    }

    /// The fault for a path through a link with an absolute target: such a link is never followed,
    /// but may well mean a file of the project.
    pub(crate) fn outside(&self, path: &BytesPath, target: &[u8]) -> Fault {
        let target = BytesPath::from_bytes(target);
        match self.relative(&target) {
            Ok(_) => Fault::AbsoluteLink {
                path: path.clone(),
                target,
            },
            Err(_) => Fault::Outside { path: path.clone() },
        }
    }

    /// Returns the path continued from the target of the absolute link that made the kernel refuse
    /// this one, if there is one.
    fn past_absolute_link(&self, path: &BytesPath) -> Option<BytesPath> {
        let (target, rest) = self.absolute_link(path)?;
        Some(BytesPath::from_bytes([target, rest].concat()))
    }

    /// Returns the absolute target of the link that made the kernel refuse a path, if there is one,
    /// and the rest of the path after it.
    fn absolute_link(&self, path: &BytesPath) -> Option<(Vec<u8>, Vec<u8>)> {
        let mut way = self.relative(path).ok()?.as_bytes().to_vec();
        for _ in 0..MAX_LINKS {
            let ends = way
                .iter()
                .enumerate()
                .filter(|(_, byte)| **byte == b'/')
                .map(|(at, _)| at);
            let refused = |end: usize| {
                self.beneath
                    .open(&way[..end], OFlag::O_PATH, Links::Follow)
                    .err()
                    == Some(Errno::EXDEV)
            };
            let end = ends
                .chain([way.len()])
                .find(|&end| end > 0 && refused(end))?;
            let (parent, name) = split(&way[..end]);
            let folder = self
                .beneath
                .open(parent, OFlag::O_PATH | OFlag::O_DIRECTORY, Links::Follow)
                .ok()?;
            let target = readlinkat(&folder, name).ok()?.into_encoded_bytes();
            if target.starts_with(b"/") {
                return Some((target, way[end..].to_vec()));
            }
            way = [join(parent, &target), way[end..].to_vec()].concat();
        }
        None
    }

    /// Returns the dangling link on a path, if there is one, and its target; of several the last
    /// one.
    fn dangling_link(&self, path: &BytesPath) -> Option<(BytesPath, BytesPath)> {
        let mut way = self.relative(path).ok()?.as_bytes().to_vec();
        let mut found = None;
        for _ in 0..MAX_LINKS {
            let ends = way
                .iter()
                .enumerate()
                .filter(|(_, byte)| **byte == b'/')
                .map(|(at, _)| at);
            let is_missing = |end: usize| {
                self.beneath
                    .open(&way[..end], OFlag::O_PATH, Links::Follow)
                    .err()
                    == Some(Errno::ENOENT)
            };
            let Some(end) = ends
                .chain([way.len()])
                .find(|&end| end > 0 && is_missing(end))
            else {
                break;
            };
            let (parent, name) = split(&way[..end]);
            let Ok(folder) =
                self.beneath
                    .open(parent, OFlag::O_PATH | OFlag::O_DIRECTORY, Links::Follow)
            else {
                break;
            };
            let Ok(target) = readlinkat(&folder, name) else {
                break;
            };
            let target = target.into_encoded_bytes();
            found = Some((
                BytesPath::from_bytes(&way[..end]),
                BytesPath::from_bytes(target.as_slice()),
            ));
            way = [join(parent, &target), way[end..].to_vec()].concat();
        }
        found
    }

    /// Refuses an open file if its name is a secret's, whatever path led there; `approved` is
    /// policy's decision on that path. Returns its real path, as [`Root::real`] does.
    pub(crate) fn refuse_secret(
        &self,
        path: &BytesPath,
        opened: impl AsFd,
        approved: bool,
    ) -> Result<BytesPath, Fault> {
        let name = self.real(path, opened)?;
        match protected_name(&name) {
            Some(protected) if protected.is_secret && !(approved && names(path, &protected)) => {
                Err(Fault::Protected {
                    path: path.clone(),
                    name,
                })
            }
            _ => Ok(name),
        }
    }

    /// Refuses a name in an open folder if it is protected from changes, whatever path led there;
    /// `approved` is policy's decision on that path.
    pub(crate) fn refuse_protected(
        &self,
        path: &BytesPath,
        folder: impl AsFd,
        name: &[u8],
        approved: bool,
    ) -> Result<(), Fault> {
        let folder = self.real(path, folder)?;
        let name = BytesPath::from_bytes(join(folder.as_bytes(), name));
        match protected_name(&name) {
            Some(protected) if !(approved && names(path, &protected)) => Err(Fault::Protected {
                path: path.clone(),
                name,
            }),
            _ => Ok(()),
        }
    }

    /// Returns the path of an open file from the project's folder, by the kernel's name.
    pub(crate) fn real(&self, path: &BytesPath, opened: impl AsFd) -> Result<BytesPath, Fault> {
        let failed = |errno: Errno| Fault::Io {
            doing: format!("find out where {path} leads"),
            problem: errno.desc().into(),
        };
        let root = where_is(&self.beneath).map_err(failed)?;
        let found = where_is(opened).map_err(failed)?;
        let inside = match found.strip_prefix(root.as_slice()) {
            Some(b"") => b"".as_slice(),
            Some([b'/', rest @ ..]) => rest,
            // It was moved meanwhile; its whole name is checked then.
            _ => &found,
        };
        Ok(BytesPath::from_bytes(inside))
    }

    /// Returns existing names similar to a missing `path`: files of the same folder or, where a
    /// folder is missing, folders beside it. Then some of all names there, where none is similar.
    fn similar(&self, path: &BytesPath) -> (Vec<BytesPath>, Vec<BytesPath>) {
        let Ok(relative) = self.relative(path) else {
            return (Vec::new(), Vec::new());
        };
        if let Some(slashed) = with_slashes(&relative).filter(|slashed| self.look(slashed).is_ok())
        {
            return (vec![slashed], Vec::new());
        }
        let mut missing = relative
            .as_bytes()
            .strip_suffix(b"/")
            .unwrap_or(relative.as_bytes());
        loop {
            let (parent, name) = split(missing);
            match self
                .beneath
                .open(parent, OFlag::O_RDONLY | OFlag::O_DIRECTORY, Links::Follow)
            {
                Ok(fd) => return names_like(fd, parent, name),
                Err(Errno::ENOENT) if !parent.is_empty() => missing = parent,
                Err(_) => return (Vec::new(), Vec::new()),
            }
        }
    }
}

/// Returns the path with backslashes as separators.
pub(crate) fn with_slashes(path: &BytesPath) -> Option<BytesPath> {
    let bytes = path.as_bytes();
    let slashed = || {
        bytes
            .iter()
            .map(|byte| if *byte == b'\\' { b'/' } else { *byte })
            .collect::<Vec<u8>>()
    };
    bytes
        .contains(&b'\\')
        .then(|| BytesPath::from_bytes(slashed()))
}

/// Splits off the last name; the parent of a single name is empty.
pub fn split(relative: &[u8]) -> (&[u8], &[u8]) {
    match relative.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&relative[..at], &relative[at + 1..]),
        None => (b"", relative),
    }
}

/// Joins a folder, which may be empty, and a name.
pub fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(folder.len() + 1 + name.len());
    path.extend_from_slice(folder);
    if !folder.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

pub(crate) fn file_type(stat: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits())
}

/// Refuses anything but a regular file.
pub(crate) fn check_regular(path: &BytesPath, stat: &FileStat) -> Result<(), Fault> {
    let kind = match file_type(stat) {
        SFlag::S_IFREG => return Ok(()),
        SFlag::S_IFDIR => return Err(Fault::IsDirectory { path: path.clone() }),
        SFlag::S_IFIFO => "named pipe",
        SFlag::S_IFSOCK => "socket",
        SFlag::S_IFBLK => "block device",
        // The engine mounts the null device over masked files; no process in a sandbox can create a
        // device.
        SFlag::S_IFCHR if stat.st_rdev == makedev(1, 3) => {
            return Err(Fault::Hidden { path: path.clone() });
        }
        SFlag::S_IFCHR => "character device",
        _ => "special file",
    };
    Err(Fault::NotRegular {
        path: path.clone(),
        kind: kind.into(),
    })
}

/// Returns the name of an open file or folder; of a deleted one, its former name.
pub(super) fn where_is(opened: impl AsFd) -> Result<Vec<u8>, Errno> {
    let name = proc::link(&format!("self/fd/{}", opened.as_fd().as_raw_fd()))?;
    Ok(name
        .strip_suffix(b" (deleted)")
        .map_or_else(|| name.clone(), <[u8]>::to_vec))
}

/// The fault for a path that names the project's folder, or nothing, where a file is needed.
pub(crate) fn not_a_file(path: &BytesPath) -> Fault {
    if path.is_empty() {
        Fault::Invalid {
            field: "path".into(),
            problem: "is empty; name a file".into(),
        }
    } else {
        Fault::IsDirectory { path: path.clone() }
    }
}

/// Shortens an invalid path for an error.
fn shown(path: &BytesPath) -> String {
    const MOST: usize = 80;
    let text = path.to_string();
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Like [`Root::fault`], without a search for similar names.
pub(crate) fn fault(path: &BytesPath, errno: Errno) -> Fault {
    let (text, path) = (shown(path), path.clone());
    match errno {
        Errno::ENOENT => Fault::NotFound { path, similar: Vec::new(), beside: Vec::new() },
        Errno::EXDEV => Fault::Outside { path },
        Errno::ENOTDIR => Fault::NotDirectory { path },
        Errno::EISDIR => Fault::IsDirectory { path },
        Errno::EACCES | Errno::EPERM => Fault::PermissionDenied { path },
        Errno::EROFS | Errno::EBUSY => Fault::ReadOnly { path },
        Errno::ENOSPC | Errno::EDQUOT => Fault::NoSpace { path },
        Errno::EAGAIN | Errno::ESTALE => Fault::Changed { path },
        Errno::ENXIO => Fault::NotRegular { path, kind: "socket or pipe".into() },
        Errno::ENAMETOOLONG => Fault::Invalid { field: text, problem: "is too long (255 bytes for a name, 4095 for a path)".into() },
        Errno::ELOOP => Fault::Invalid {
            field: text,
            problem: "leads through a cycle of symbolic links, or through too many, or through one that this kernel cannot follow safely"
                .into(),
        },
        other => Fault::Io { doing: format!("open {path}"), problem: other.desc().into() },
    }
}

fn names_like(folder: OwnedFd, parent: &[u8], name: &[u8]) -> (Vec<BytesPath>, Vec<BytesPath>) {
    let Ok(folder) = Dir::from_fd(folder) else {
        return (Vec::new(), Vec::new());
    };
    let mut similar = SimilarNames::to(name);
    let mut all: Vec<Vec<u8>> = Vec::new();
    for entry in folder.into_iter().take(MAX_NAMES).flatten() {
        let candidate = entry.file_name().to_bytes();
        // The name itself exists for others, but not for this call.
        if candidate != b"." && candidate != b".." && candidate != name {
            similar.offer(candidate);
            if !candidate.starts_with(b".") {
                all.push(candidate.to_vec());
            }
        }
    }
    all.sort();
    let whole = |names: Vec<Vec<u8>>| -> Vec<BytesPath> {
        names
            .into_iter()
            .map(|found| BytesPath::from_bytes(join(parent, &found)))
            .collect()
    };
    let similar = whole(similar.best());
    // A few names are a hint; a whole folder would be an unrequested listing.
    let beside = if similar.is_empty() && all.len() <= MOST_BESIDE {
        whole(all)
    } else {
        Vec::new()
    };
    (similar, beside)
}

impl AsFd for Root {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.beneath.as_fd()
    }
}

/// Bytes as the path type that `ignore` and `globset` match on.
pub(crate) fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}
/// Returns whether a path itself ends with this protected name. The approval of a call covers the
/// paths it shows, not what a link leads to, nor another path of the same call.
pub(crate) fn names(path: &BytesPath, protected: &Protected) -> bool {
    protected_name(path).is_some_and(|named| named.name.eq_ignore_ascii_case(&protected.name))
}
