//! Hashes and atomic file writes, shared by downloading and unpacking.

use std::fs;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;

use serde::Serialize;
use sha2::Digest;
use sha2::Sha256;

use super::Error;
use podbay_event::ByteSize;

/// Bytes that stay free on the disk.
const MARGIN: u64 = 32 << 20;

pub(super) fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

pub(super) fn hex(digest: &[u8]) -> String {
    digest.iter().fold(String::with_capacity(64), |text, byte| {
        text + &format!("{byte:02x}")
    })
}

/// Returns the temporary name of a file that is not complete.
pub(super) fn part_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    PathBuf::from(name)
}

/// Renames a complete file to its final name. Its bytes are synced first, so that the name never
/// refers to an incomplete file after a power cut.
pub(super) fn finish(file: &File, part: &Path, path: &Path) -> Result<(), Error> {
    let failed = |source| Error::File {
        doing: "write",
        path: path.to_owned(),
        source,
    };
    // The model server, which may run as another user, mounts this file alone.
    file.set_permissions(fs::Permissions::from_mode(0o644))
        .map_err(failed)?;
    file.sync_all().map_err(failed)?;
    fs::rename(part, path).map_err(failed)
}

/// Writes a small file atomically.
pub(super) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let failed = |source| Error::File {
        doing: "write",
        path: path.to_owned(),
        source,
    };
    let text = serde_json::to_vec(value).map_err(|error| failed(error.into()))?;
    let part = part_of(path);
    remove(&part)?;
    let mut out = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&part)
        .map_err(failed)?;
    out.write_all(&text).map_err(failed)?;
    fs::rename(&part, path).map_err(failed)
}

/// Removes a file, if it exists.
pub(super) fn remove(path: &Path) -> Result<bool, Error> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(Error::File {
            doing: "remove",
            path: path.to_owned(),
            source,
        }),
    }
}

/// Checks that the file fits on the folder's disk, before a long download fails for it.
pub(super) fn check_space(folder: &Path, needed: u64) -> Result<(), Error> {
    let failed = |source: nix::Error| Error::File {
        doing: "look at",
        path: folder.to_owned(),
        source: source.into(),
    };
    let disk = nix::sys::statvfs::statvfs(folder).map_err(failed)?;
    let free = disk.blocks_available().saturating_mul(disk.fragment_size());
    if needed > 0 && free < needed.saturating_add(MARGIN) {
        let needed = ByteSize::new(needed.saturating_add(MARGIN));
        return Err(Error::NoSpace {
            folder: folder.to_owned(),
            needed,
            free: ByteSize::new(free),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_does_not_fit_is_refused_before_the_download() {
        let folder = tempfile::tempdir().expect("a folder");
        check_space(folder.path(), 1).expect("one byte fits");
        let error = check_space(folder.path(), u64::MAX / 2).expect_err("nothing is that large");
        assert!(
            matches!(error, Error::NoSpace { .. }) && error.hint().is_some(),
            "{error}"
        );
    }
}
