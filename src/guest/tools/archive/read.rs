use std::fs::File;
use std::io;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;

use zip::result::ZipError;

use super::ArchiveKind;
use super::GET_WHOLE;
use super::MAX_BYTES;
use super::MAX_ENTRIES;
use super::too_large;
use super::too_many;
use crate::tools::Workspace;
use crate::tools::stop::Stop;
use crate::tools::stop::Stoppable;
use crate::tools::target_entry::refused;
use podbay_wire::Archive;
use podbay_wire::BytesPath;
use podbay_wire::Fault;

/// Longest target of a link, in bytes.
const MAX_TARGET: u64 = 4096;
/// Most bytes of headers in total: 16 KiB per entry would allow names without end.
const MAX_HEADERS: u64 = 16 * 1024 * 1024;
/// Zip's end-of-central-directory record: its signature, and its largest size.
const END_MARK: &[u8] = b"PK\x05\x06";
const END_MAX: u64 = 22 + 65_535;

/// One entry of an archive.
pub(super) struct Entry {
    /// As written in the archive.
    pub(super) name: Vec<u8>,
    pub(super) what: EntryContent,
    /// Size, as declared in the archive.
    pub(super) bytes: u64,
}

pub(super) enum EntryContent {
    File { may_run: bool },
    Folder,
    Link { target: Vec<u8> },
}

/// Called for each entry; for a file with a reader of its content.
pub(super) type Visit<'a> = &'a mut dyn FnMut(Entry, &mut dyn Read) -> Result<(), Fault>;

pub(super) fn open(workspace: &Workspace, call: &Archive) -> Result<File, Fault> {
    let (file, stat) = workspace.root.open_file(&call.archive)?;
    workspace
        .root
        .refuse_secret(&call.archive, &file, call.protected)?;
    if stat.st_size as u64 > MAX_BYTES {
        return Err(Fault::TooLarge {
            path: call.archive.clone(),
            bytes: stat.st_size as u64,
            limit: MAX_BYTES,
        });
    }
    Ok(file)
}

/// Visits all entries of an archive from its beginning. An entry that is no file, folder or
/// symbolic link refuses the whole archive.
pub(super) fn each(
    path: &BytesPath,
    mut file: File,
    kind: ArchiveKind,
    stop: &Stop<'_>,
    visit: Visit<'_>,
) -> Result<(), Fault> {
    file.seek(SeekFrom::Start(0))
        .map_err(|error| broken(path, &error, stop))?;
    match kind {
        ArchiveKind::Zip => each_of_zip(path, file, stop, visit),
        ArchiveKind::Tar => each_of_tar(path, Stoppable::new(file, stop), stop, visit),
        ArchiveKind::TarGz => each_of_tar(
            path,
            flate2::read::MultiGzDecoder::new(Stoppable::new(file, stop)),
            stop,
            visit,
        ),
    }
}

fn each_of_zip(
    path: &BytesPath,
    file: File,
    stop: &Stop<'_>,
    visit: Visit<'_>,
) -> Result<(), Fault> {
    let bad = |error: ZipError| match error {
        ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED) => refused(
            path,
            "is encrypted, and this tool takes no password; if you know it, use bash (unzip -P), otherwise ask the user for the content",
        ),
        ZipError::UnsupportedArchive(why) => refused(
            path,
            format!("is a zip variant that this tool does not read ({why}); use bash"),
        ),
        error => refused(
            path,
            format!(
                "cannot be read as a zip: it is damaged, truncated or not a zip ({error}); {GET_WHOLE}"
            ),
        ),
    };
    let counts = refuse_many_names(path, &file)?;
    let mut archive = zip::ZipArchive::new(file).map_err(bad)?;
    if archive.len() as u64 > MAX_ENTRIES {
        return Err(too_many(path));
    }
    // Of two entries with one name the library keeps only the last.
    if !counts.contains(&(archive.len() as u64)) {
        return Err(refused(
            path,
            "contains a name more than once, and only the last entry could be read; use bash (unzip)",
        ));
    }
    for at in 0..archive.len() {
        let mut inner = archive.by_index(at).map_err(bad)?;
        let name = inner.name_raw().to_vec();
        let name = if std::str::from_utf8(&name).is_ok() {
            name
        } else {
            inner.name().map_err(bad)?.into_owned().into_bytes()
        };
        let mode = inner.unix_mode().unwrap_or(0);
        let bytes = inner.size();
        let what = match mode & libc::S_IFMT {
            libc::S_IFLNK => {
                let mut target = Vec::new();
                (&mut inner)
                    .take(MAX_TARGET)
                    .read_to_end(&mut target)
                    .map_err(|error| broken(path, &error, stop))?;
                EntryContent::Link { target }
            }
            _ if name.ends_with(b"/") => EntryContent::Folder,
            0 | libc::S_IFREG => EntryContent::File {
                may_run: mode & 0o100 != 0,
            },
            libc::S_IFDIR => EntryContent::Folder,
            _ => return Err(odd(path, &name)),
        };
        visit(Entry { name, what, bytes }, &mut inner)?;
    }
    Ok(())
}

/// A zip declares its number of names at its end; the library reads all of them before the first is
/// visited. Returns the declared counts: one, plus those of signatures that occur by chance.
fn refuse_many_names(path: &BytesPath, mut file: &File) -> Result<Vec<u64>, Fault> {
    let mut end = Vec::new();
    let length = file.seek(SeekFrom::End(0)).unwrap_or(0);
    let read = file
        .seek(SeekFrom::Start(length.saturating_sub(END_MAX)))
        .and_then(|_| file.take(END_MAX).read_to_end(&mut end));
    read.and_then(|_| file.seek(SeekFrom::Start(0)))
        .map_err(|error| refused(path, format!("cannot be read: {error}; {GET_WHOLE}")))?;
    let marks = end.windows(12).filter(|bytes| bytes.starts_with(END_MARK));
    let counts: Vec<u64> = marks
        .map(|bytes| u64::from(u16::from_le_bytes([bytes[10], bytes[11]])))
        .collect();
    if counts.iter().any(|n| *n > MAX_ENTRIES) {
        Err(too_many(path))
    } else {
        Ok(counts)
    }
}

fn each_of_tar(
    path: &BytesPath,
    source: impl Read,
    stop: &Stop<'_>,
    visit: Visit<'_>,
) -> Result<(), Fault> {
    // One byte more than allowed tells that there is more.
    let smallest = source.take(MAX_BYTES + MAX_HEADERS + 1);
    let mut archive = tar::Archive::new(smallest);
    let mut n = 0;
    for entry in archive
        .entries()
        .map_err(|error| broken(path, &error, stop))?
    {
        let mut inner = entry.map_err(|error| broken(path, &error, stop))?;
        n += 1;
        if n > MAX_ENTRIES {
            return Err(too_many(path));
        }
        let name = inner.path_bytes().into_owned();
        let bytes = inner.size();
        let what = match inner.header().entry_type() {
            tar::EntryType::Regular | tar::EntryType::Continuous | tar::EntryType::GNUSparse => {
                EntryContent::File {
                    may_run: inner.header().mode().is_ok_and(|mode| mode & 0o100 != 0),
                }
            }
            tar::EntryType::Directory => EntryContent::Folder,
            tar::EntryType::Symlink => EntryContent::Link {
                target: inner
                    .link_name_bytes()
                    .map(std::borrow::Cow::into_owned)
                    .unwrap_or_default(),
            },
            tar::EntryType::XGlobalHeader => continue,
            _ => return Err(odd(path, &name)),
        };
        if bytes > MAX_BYTES {
            return Err(too_large(path));
        }
        visit(Entry { name, what, bytes }, &mut inner)?;
    }
    if archive.into_inner().limit() == 0 {
        return Err(too_large(path));
    }
    if n == 0 {
        return Err(refused(path, format!("is empty or not a tar; {GET_WHOLE}")));
    }
    Ok(())
}

fn odd(path: &BytesPath, name: &[u8]) -> Fault {
    let shown = BytesPath::from_bytes(name).to_string();
    refused(
        path,
        format!(
            "the entry `{shown}` is a hard link, a device or another special entry; use bash for this archive"
        ),
    )
}

pub(super) fn broken(path: &BytesPath, error: &io::Error, stop: &Stop<'_>) -> Fault {
    if stop.is_cancelled() {
        return Fault::Cancelled;
    }
    refused(
        path,
        format!(
            "is damaged, truncated or not the kind of archive that its name says ({error}); {GET_WHOLE}"
        ),
    )
}
