use std::fs::File;
use std::io;
use std::io::Read;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::fcntl::openat;
use nix::fcntl::readlinkat;
use nix::sys::stat::FileStat;
use nix::sys::stat::Mode;
use nix::sys::stat::SFlag;
use nix::sys::stat::fstat;
use zip::write::SimpleFileOptions;

use super::ArchiveKind;
use super::MAX_BYTES;
use super::MAX_ENTRIES;
use crate::beneath::Links;
use crate::root::as_path;
use crate::root::check_regular;
use crate::root::fault;
use crate::root::file_type;
use crate::root::join;
use crate::root::names;
use crate::root::split;
use crate::tools::Workspace;
use crate::tools::contents::open_folder;
use crate::tools::copy_file::StagedCopy;
use crate::tools::copy_file::refuse_destination;
use crate::tools::save::Parents;
use crate::tools::save::errno_of;
use crate::tools::stop::Stop;
use crate::tools::stop::Stoppable;
use crate::tools::target_entry::TargetEntry;
use crate::tools::target_entry::is_rooted;
use crate::tools::target_entry::refused;
use crate::tools::walk;
use crate::tools::walk::Name;
use podbay_wire::Archive;
use podbay_wire::BytesPath;
use podbay_wire::Change;
use podbay_wire::Changed;
use podbay_wire::Fault;
use podbay_wire::FileChange;
use podbay_wire::Protected;
use podbay_wire::protected_name;

/// Greatest depth of folders.
const MAX_DEPTH: usize = 64;

/// Packs into a temporary file beside the archive's path and renames it: a reader sees nothing or
/// all of it.
pub(super) fn run(
    workspace: &Workspace,
    call: &Archive,
    kind: ArchiveKind,
    source: &BytesPath,
    stop: &Stop<'_>,
) -> Result<Changed, Fault> {
    let root = &workspace.root;
    let _changing = workspace.changing();
    let flags = OFlag::O_RDONLY;
    let opened = root
        .beneath()
        .open(root.relative(source)?.as_bytes(), flags, Links::Follow)
        .map_err(|errno| root.fault(source, errno))?;
    root.refuse_secret(source, &opened, call.protected)?;
    let stat = fstat(&opened).map_err(|errno| fault(source, errno))?;
    let real = root.real(source, &opened)?;
    if real.as_bytes().split(|byte| *byte == b'/').any(is_rooted) {
        return Err(refused(
            source,
            "belongs to git or to Podbay and is never packed; name another folder, or read the files you need",
        ));
    }
    let mut destination = TargetEntry::find(root, &call.archive, call.protected, Parents::Make)?;
    if destination.stat.is_some() && !destination.is_folder() {
        let remedy = "name another archive, or delete this one first".to_owned();
        return Err(Fault::Exists {
            path: call.archive.clone(),
            remedy,
        });
    }
    refuse_destination(false, &destination, false)?;
    let copy = StagedCopy::beside(&destination, false);
    let file = copy.make()?;
    let mut packing = Packing {
        call,
        source,
        own: fstat(&file).map_err(|errno| fault(&call.archive, errno))?,
        writer: Writer::new(kind, file),
        left: MAX_BYTES,
        n_entries: 0,
        n_left_out: 0,
        n_special: 0,
        stop,
    };
    // Names in the archive start with the source's own name; with nothing for the project's folder.
    let name = split(
        real.as_bytes()
            .strip_suffix(b"/")
            .unwrap_or(real.as_bytes()),
    )
    .1
    .to_vec();
    if file_type(&stat) == SFlag::S_IFDIR {
        packing.folder(opened.as_fd(), real.as_bytes(), &name, 0)?;
    } else {
        check_regular(source, &stat)?;
        packing.file(&File::from(opened), &stat, source, &name)?;
    }
    let Packing {
        writer,
        n_entries,
        n_left_out,
        n_special,
        ..
    } = packing;
    if n_entries == 0 {
        return Err(refused(source, "contains nothing that can be packed"));
    }
    writer
        .finish()
        .map_err(|error| fault(&call.archive, errno_of(&error)))?;
    copy.rename(false)?;
    drop(copy);
    destination.made.keep();
    let mut notes = vec![format!("{n_entries} files and folders are in it")];
    if n_left_out > 0 {
        notes.push(format!(
            "left out, because their names are protected: {n_left_out}"
        ));
    }
    if n_special > 0 {
        notes.push(format!(
            "left out, because they are named pipes, sockets or devices: {n_special}"
        ));
    }
    let change = FileChange {
        path: destination.shown,
        change: Change::Created,
        notes,
        ..FileChange::default()
    };
    Ok(Changed {
        files: vec![change],
        dry_run: false,
        memos: Vec::new(),
    })
}

struct Packing<'a> {
    call: &'a Archive,
    source: &'a BytesPath,
    /// The archive itself, which may lie in the packed folder.
    own: FileStat,
    writer: Writer,
    left: u64,
    n_entries: u64,
    n_left_out: u64,
    /// Named pipes, sockets and devices: reading them may never end.
    n_special: u64,
    stop: &'a Stop<'a>,
}

impl Packing<'_> {
    fn folder(
        &mut self,
        folder: BorrowedFd<'_>,
        real: &[u8],
        name: &[u8],
        depth: usize,
    ) -> Result<(), Fault> {
        let shown = BytesPath::from_bytes(real);
        let failed = |errno| fault(&shown, errno);
        if depth > MAX_DEPTH {
            return Err(refused(
                &shown,
                "is nested too deeply for this tool; use bash",
            ));
        }
        if !name.is_empty() {
            self.count()?;
            let stat = fstat(folder).map_err(failed)?;
            self.writer
                .folder(name, &stat)
                .map_err(|error| self.unwritten(&error))?;
        }
        let names = open_folder(folder, b".")
            .and_then(|folder| walk::list(folder.as_fd(), self.stop))
            .map_err(failed)?
            .0;
        let mut names: Vec<&Name> = names.iter().collect();
        // The same files make the same archive.
        names.sort_by(|a, b| a.name.cmp(&b.name));
        for inner in names {
            self.one(folder, real, name, inner, depth)?;
        }
        Ok(())
    }

    fn one(
        &mut self,
        folder: BorrowedFd<'_>,
        real: &[u8],
        name: &[u8],
        inner: &Name,
        depth: usize,
    ) -> Result<(), Fault> {
        if self.stop.is_set() {
            return Err(Fault::Cancelled);
        }
        let (real, name) = (join(real, &inner.name), join(name, &inner.name));
        let shown = BytesPath::from_bytes(real.clone());
        let failed = |errno| fault(&shown, errno);
        let is_named = |protected: &Protected| self.call.protected && names(self.source, protected);
        let is_refused =
            protected_name(&shown).is_some_and(|found| found.is_secret && !is_named(&found));
        if is_rooted(&inner.name) || is_refused {
            self.n_left_out += 1;
            return Ok(());
        }
        match inner.kind {
            walk::Kind::Folder => {
                let opened = open_folder(folder, &inner.name).map_err(failed)?;
                self.folder(opened.as_fd(), &real, &name, depth + 1)
            }
            walk::Kind::Link => {
                self.count()?;
                let target = readlinkat(folder, &*inner.name)
                    .map_err(failed)?
                    .into_encoded_bytes();
                self.writer
                    .link(&name, &target)
                    .map_err(|error| self.unwritten(&error))
            }
            walk::Kind::File | walk::Kind::Other => {
                let flags = OFlag::O_RDONLY
                    | OFlag::O_NOFOLLOW
                    | OFlag::O_NONBLOCK
                    | OFlag::O_NOCTTY
                    | OFlag::O_CLOEXEC;
                let opened: OwnedFd = match openat(folder, &*inner.name, flags, Mode::empty()) {
                    // A socket.
                    Err(Errno::ENXIO) => {
                        self.n_special += 1;
                        return Ok(());
                    }
                    opened => opened.map_err(failed)?,
                };
                let stat = fstat(&opened).map_err(failed)?;
                if file_type(&stat) != SFlag::S_IFREG {
                    self.n_special += 1;
                    return Ok(());
                }
                if (stat.st_dev, stat.st_ino) == (self.own.st_dev, self.own.st_ino) {
                    return Ok(());
                }
                self.file(&File::from(opened), &stat, &shown, &name)
            }
        }
    }

    fn file(
        &mut self,
        file: &File,
        stat: &FileStat,
        shown: &BytesPath,
        name: &[u8],
    ) -> Result<(), Fault> {
        self.count()?;
        let bytes = stat.st_size as u64;
        self.left = self.left.checked_sub(bytes).ok_or_else(|| {
            refused(
                &self.call.archive,
                format!(
                    "would hold more than {} MiB; pack less, or use bash",
                    MAX_BYTES >> 20
                ),
            )
        })?;
        let content = Stoppable::new(file, self.stop).take(bytes);
        match self.writer.file(name, stat, content) {
            Ok(written) if written == bytes => Ok(()),
            Ok(_) => Err(Fault::Changed {
                path: shown.clone(),
            }),
            Err(_) if self.stop.is_cancelled() => Err(Fault::Cancelled),
            Err(error) => Err(self.unwritten(&error)),
        }
    }

    fn count(&mut self) -> Result<(), Fault> {
        self.n_entries += 1;
        if self.n_entries > MAX_ENTRIES {
            return Err(refused(
                &self.call.archive,
                format!(
                    "would hold more than {MAX_ENTRIES} files and folders; pack less, or use bash"
                ),
            ));
        }
        Ok(())
    }

    fn unwritten(&self, error: &io::Error) -> Fault {
        match error.raw_os_error() {
            Some(_) => fault(&self.call.archive, errno_of(error)),
            None => refused(&self.call.archive, format!("cannot be created: {error}")),
        }
    }
}

enum Writer {
    Zip(Box<zip::ZipWriter<File>>),
    Tar(Box<tar::Builder<File>>),
    TarGz(Box<tar::Builder<flate2::write::GzEncoder<File>>>),
}

impl Writer {
    fn new(kind: ArchiveKind, file: File) -> Self {
        match kind {
            ArchiveKind::Zip => Self::Zip(Box::new(zip::ZipWriter::new(file))),
            ArchiveKind::Tar => Self::Tar(Box::new(tar::Builder::new(file))),
            ArchiveKind::TarGz => Self::TarGz(Box::new(tar::Builder::new(
                flate2::write::GzEncoder::new(file, flate2::Compression::default()),
            ))),
        }
    }

    fn folder(&mut self, name: &[u8], stat: &FileStat) -> io::Result<()> {
        match self {
            Self::Zip(zip) => Ok(zip.add_directory(text(name)?, options(stat))?),
            Self::Tar(tar) => append(tar, name, tar::EntryType::Directory, stat, io::empty()),
            Self::TarGz(tar) => append(tar, name, tar::EntryType::Directory, stat, io::empty()),
        }
    }

    fn link(&mut self, name: &[u8], target: &[u8]) -> io::Result<()> {
        match self {
            Self::Zip(zip) => {
                Ok(zip.add_symlink(text(name)?, text(target)?, SimpleFileOptions::default())?)
            }
            Self::Tar(tar) => append_link(tar, name, target),
            Self::TarGz(tar) => append_link(tar, name, target),
        }
    }

    /// Returns how many bytes the file really had; a tar reserves exactly the declared size.
    fn file(&mut self, name: &[u8], stat: &FileStat, content: impl Read) -> io::Result<u64> {
        let mut content = CountingReader {
            inner: content,
            n: 0,
        };
        match self {
            Self::Zip(zip) => {
                zip.start_file(text(name)?, options(stat))?;
                io::copy(&mut content, zip)?;
            }
            Self::Tar(tar) => append(tar, name, tar::EntryType::Regular, stat, &mut content)?,
            Self::TarGz(tar) => append(tar, name, tar::EntryType::Regular, stat, &mut content)?,
        }
        Ok(content.n)
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::Zip(zip) => zip.finish()?.flush(),
            Self::Tar(tar) => tar.into_inner()?.flush(),
            Self::TarGz(tar) => tar.into_inner()?.finish()?.flush(),
        }
    }
}

struct CountingReader<R> {
    inner: R,
    n: u64,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.n += n as u64;
        Ok(n)
    }
}

fn text(name: &[u8]) -> io::Result<&str> {
    std::str::from_utf8(name).map_err(|_| {
        io::Error::other("a name is not UTF-8, which zip requires; create a tar instead")
    })
}

fn options(stat: &FileStat) -> SimpleFileOptions {
    SimpleFileOptions::default().unix_permissions(stat.st_mode & 0o777)
}

fn header(kind: tar::EntryType, mode: u32, bytes: u64, at: i64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(bytes);
    header.set_mtime(u64::try_from(at).unwrap_or(0));
    header
}

fn append<W: Write>(
    tar: &mut tar::Builder<W>,
    name: &[u8],
    kind: tar::EntryType,
    stat: &FileStat,
    content: impl Read,
) -> io::Result<()> {
    let bytes = if kind == tar::EntryType::Directory {
        0
    } else {
        stat.st_size as u64
    };
    tar.append_data(
        &mut header(kind, stat.st_mode & 0o777, bytes, stat.st_mtime),
        as_path(name),
        content,
    )
}

fn append_link<W: Write>(tar: &mut tar::Builder<W>, name: &[u8], target: &[u8]) -> io::Result<()> {
    tar.append_link(
        &mut header(tar::EntryType::Symlink, 0o777, 0, 0),
        as_path(name),
        as_path(target),
    )
}
