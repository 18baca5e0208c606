use std::fs::File;
use std::io;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;

use zip::result::ZipError;

use super::GET_WHOLE;
use super::Kind;
use super::MAX_BYTES;
use super::MAX_ENTRIES;
use super::too_large;
use super::too_many;
use crate::tools::Workspace;
use crate::tools::spot::refused;
use crate::tools::stop::Stop;
use crate::tools::stop::Stoppable;
use podbay_wire::Archive;
use podbay_wire::BytesPath;
use podbay_wire::Fault;

/// Longest target of a link.
const MAX_TARGET: u64 = 4096;
/// Bytes that headers may take besides the files: 16 KiB for each would be long names without end.
const MAX_HEADERS: u64 = 16 * 1024 * 1024;
/// The end of a zip's list of names: its mark, and how much follows it at the most.
const END_MARK: &[u8] = b"PK\x05\x06";
const END_MAX: u64 = 22 + 65_535;

/// One entry of an archive.
pub(super) struct Entry {
    /// As it is written there.
    pub(super) name: Vec<u8>,
    pub(super) what: What,
    /// Size, as it is written there.
    pub(super) bytes: u64,
}

pub(super) enum What {
    File { may_run: bool },
    Folder,
    Link { target: Vec<u8> },
}

/// Gets each entry and, of a file, what is in it.
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

/// Goes through an archive from its beginning; whatever is neither a file, a folder nor a symbolic
/// link refuses all of it.
pub(super) fn each(
    path: &BytesPath,
    mut file: File,
    kind: Kind,
    stop: &Stop<'_>,
    visit: Visit<'_>,
) -> Result<(), Fault> {
    file.seek(SeekFrom::Start(0))
        .map_err(|error| broken(path, &error, stop))?;
    match kind {
        Kind::Zip => each_of_zip(path, file, stop, visit),
        Kind::Tar => each_of_tar(path, Stoppable::new(file, stop), stop, visit),
        Kind::TarGz => each_of_tar(
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
            "is encrypted, and no password can be given here; where you know it, use bash (unzip -P), or else ask for what is in it",
        ),
        ZipError::UnsupportedArchive(why) => refused(
            path,
            format!("is a zip of a kind that is not read here ({why}); use bash for it"),
        ),
        error => refused(
            path,
            format!(
                "cannot be read as a zip, so it is damaged, cut off or none ({error}); {GET_WHOLE}"
            ),
        ),
    };
    let counts = refuse_many_names(path, &file)?;
    let mut archive = zip::ZipArchive::new(file).map_err(bad)?;
    if archive.len() as u64 > MAX_ENTRIES {
        return Err(too_many(path));
    }
    // Of two entries with one name the library keeps the last.
    if !counts.contains(&(archive.len() as u64)) {
        return Err(refused(
            path,
            "holds a name more than once, and only the last of them could be read; use bash (unzip) for it",
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
                What::Link { target }
            }
            _ if name.ends_with(b"/") => What::Folder,
            0 | libc::S_IFREG => What::File {
                may_run: mode & 0o100 != 0,
            },
            libc::S_IFDIR => What::Folder,
            _ => return Err(odd(path, &name)),
        };
        visit(Entry { name, what, bytes }, &mut inner)?;
    }
    Ok(())
}

/// A zip says at its end how many names it has; all are read before the first can be looked at.
/// Returns what it says: once, but for marks that stand there by chance.
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
    // One byte more than there may be tells that there is more.
    let bounded = source.take(MAX_BYTES + MAX_HEADERS + 1);
    let mut archive = tar::Archive::new(bounded);
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
                What::File {
                    may_run: inner.header().mode().is_ok_and(|mode| mode & 0o100 != 0),
                }
            }
            tar::EntryType::Directory => What::Folder,
            tar::EntryType::Symlink => What::Link {
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
        return Err(refused(
            path,
            format!("holds nothing, or is no tar; {GET_WHOLE}"),
        ));
    }
    Ok(())
}

fn odd(path: &BytesPath, name: &[u8]) -> Fault {
    let shown = BytesPath::from_bytes(name).to_string();
    refused(
        path,
        format!(
            "the entry `{shown}` is a hard link, a device or something else that is no file; use bash for this archive"
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
            "is damaged, cut off or no archive of the kind that its name says ({error}); {GET_WHOLE}"
        ),
    )
}
