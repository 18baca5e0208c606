//! Where objects arrive: in a folder of our own in the person's repository. Of a git that fails on
//! the way, such as for a full disk, or is killed, nothing stays among their packs, where nobody
//! could tell it from what a git of theirs is just writing.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::path::PathBuf;

use crate::keep::git::folder::Folder;
use crate::keep::git::folder::Kind;
use crate::keep::git::folder::failed;
use crate::root::join;
use podbay_wire::Fault;

/// Returns where the folder of a session is. Git takes away what is called so when that is old,
/// should nobody come back for it.
pub(crate) fn place(id: &str) -> Vec<u8> {
    format!("objects/tmp_objdir-podbay-{id}").into_bytes()
}

/// That folder; dropped, it is gone with all that is still in it.
pub(super) struct Incoming<'a> {
    real: &'a Folder,
    place: Vec<u8>,
    pub(super) path: PathBuf,
}

impl<'a> Incoming<'a> {
    pub(super) fn make(real: &'a Folder, real_path: &Path, id: &str) -> Result<Self, Fault> {
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

    /// Puts the packs that have arrived among the others. An index comes last: with that a pack is
    /// there.
    pub(super) fn put(&self) -> Result<(), Fault> {
        let from = self.below(b"pack");
        let names = self
            .real
            .names(&from)
            .map_err(|errno| failed("list", &from, &errno.into()))?;
        let mut names: Vec<Vec<u8>> = names
            .into_iter()
            .filter(|(name, kind)| *kind == Kind::File && is_whole(name))
            .map(|(name, _)| name)
            .collect();
        names.sort_by_key(|name| name.ends_with(b".idx"));
        if !names.is_empty() {
            // A repository that was restored without its empty folders has none.
            self.real.make(b"objects/pack")?;
        }
        for name in names {
            let to = join(b"objects/pack", &name);
            // One of that name holds the same.
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

impl Drop for Incoming<'_> {
    fn drop(&mut self) {
        let _ = self.real.remove(&self.place);
    }
}

/// Whether it is a part of a pack that has come to its end.
fn is_whole(name: &[u8]) -> bool {
    name.starts_with(b"pack-") && !name.ends_with(b".keep")
}
