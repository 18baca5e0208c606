//! What downloading and unpacking share: hashes, and files that appear whole or not at all.

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

/// Left free on the disk beside what we write.
const MARGIN: u64 = 32 << 20;

pub(super) fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

pub(super) fn hex(digest: &[u8]) -> String {
    digest.iter().fold(String::with_capacity(64), |text, byte| {
        text + &format!("{byte:02x}")
    })
}

/// Returns the name under which a file is written until it is whole.
pub(super) fn part_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    PathBuf::from(name)
}

/// Gives a whole file its name. Its bytes are on the disk first: a name must never lead to less
/// after a power cut.
pub(super) fn finish(file: &File, part: &Path, path: &Path) -> Result<(), Error> {
    let failed = |source| Error::File {
        doing: "write",
        path: path.to_owned(),
        source,
    };
    // The model server, which may run as another user, gets this file alone.
    file.set_permissions(fs::Permissions::from_mode(0o644))
        .map_err(failed)?;
    file.sync_all().map_err(failed)?;
    fs::rename(part, path).map_err(failed)
}

/// Writes a small file anew, whole or not at all.
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

/// Removes a file that may be gone already.
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

/// Checks that so many bytes fit into a folder's disk, before an hour of loading shows that they do
/// not.
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
    fn a_file_that_cannot_fit_is_refused_before_it_is_loaded() {
        let folder = tempfile::tempdir().expect("a folder");
        check_space(folder.path(), 1).expect("one byte fits");
        let error = check_space(folder.path(), u64::MAX / 2).expect_err("nothing is that large");
        assert!(
            matches!(error, Error::NoSpace { .. }) && error.hint().is_some(),
            "{error}"
        );
    }
}
