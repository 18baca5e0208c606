//! Where fetched objects arrive: in a folder of our own in the user's repository. If git fails on
//! the way, such as on a full disk, or is killed, nothing stays among the user's packs, where it
//! could not be told from a pack that their git is writing.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::path::PathBuf;

use crate::keep::git::untrusted_folder::FileKind;
use crate::keep::git::untrusted_folder::UntrustedFolder;
use crate::keep::git::untrusted_folder::failed;
use crate::root::join;
use podbay_wire::Fault;

/// Returns the folder for a session. Its name is one that git removes when it is old, in case no
/// keeper returns to it.
pub(crate) fn place(id: &str) -> Vec<u8> {
    format!("objects/tmp_objdir-podbay-{id}").into_bytes()
}

/// That folder; removed with its contents when dropped.
pub(super) struct IncomingPacks<'a> {
    real: &'a UntrustedFolder,
    place: Vec<u8>,
    pub(super) path: PathBuf,
}

impl<'a> IncomingPacks<'a> {
    pub(super) fn make(
        real: &'a UntrustedFolder,
        real_path: &Path,
        id: &str,
    ) -> Result<Self, Fault> {
        let place = place(id);
        real.remove(&place)?;
        let incoming = Self {
            real,
            path: real_path.join(std::ffi::OsStr::from_bytes(&place)),
            place,
        };
        real.make(&incoming.below(b"pack"))?;
        let theirs = [real_path.join("objects").as_os_str().as_bytes(), b"\n"].concat();
        real.write(&incoming.below(b"info/alternates"), &theirs)?;
        Ok(incoming)
    }

    /// Moves the complete packs among the others. An index is moved last, since it makes its pack
    /// visible.
    pub(super) fn put(&self) -> Result<(), Fault> {
        let from = self.below(b"pack");
        let names = self
            .real
            .names(&from)
            .map_err(|errno| failed("list", &from, &errno.into()))?;
        let mut names: Vec<Vec<u8>> = names
            .into_iter()
            .filter(|(name, kind)| *kind == FileKind::File && is_whole(name))
            .map(|(name, _)| name)
            .collect();
        names.sort_by_key(|name| name.ends_with(b".idx"));
        if !names.is_empty() {
            // A repository that was restored without its empty folders has none.
            self.real.make(b"objects/pack")?;
        }
        for name in names {
            let to = join(b"objects/pack", &name);
            // A pack of that name holds the same.
            if self.real.kind(&to).is_none() {
                self.real
                    .rename(&join(&from, &name), &to)
                    .map_err(|errno| failed("put", &to, &errno.into()))?;
            }
        }
        Ok(())
    }

    fn below(&self, path: &[u8]) -> Vec<u8> {
        join(&self.place, path)
    }
}

impl Drop for IncomingPacks<'_> {
    fn drop(&mut self) {
        let _ = self.real.remove(&self.place);
    }
}

/// Whether it is a part of a complete pack.
fn is_whole(name: &[u8]) -> bool {
    name.starts_with(b"pack-") && !name.ends_with(b".keep")
}
