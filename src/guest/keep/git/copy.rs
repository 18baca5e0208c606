use nix::unistd::symlinkat;

use super::folder::Folder;
use super::folder::Kind;
use super::folder::failed;
use crate::guest::root::join;
use crate::guest::root::split;
use crate::wire::Fault;

/// How much of one is kept; of a larger one nothing is copied, and it stays where it is under a name that git does not know.
pub(super) const MAX_BYTES: u64 = 2 << 30;
const MAX_FILES: u64 = 500_000;
const MAX_DEPTH: usize = 500;

/// Takes along what a session made, whatever it is.
pub(super) struct Copy<'a> {
    from: &'a Folder,
    to: &'a Folder,
    n_bytes: u64,
    n_files: u64,
    /// Pipes and the like, and what could not be read.
    n_passed_over: u64,
}

impl<'a> Copy<'a> {
    pub(super) fn new(from: &'a Folder, to: &'a Folder) -> Self {
        Self { from, to, n_bytes: 0, n_files: 0, n_passed_over: 0 }
    }

    pub(super) fn n_passed_over(&self) -> u64 {
        self.n_passed_over
    }

    /// Copies whatever has this name; returns whether it was small enough.
    pub(super) fn copy(&mut self, from: &[u8], to: &[u8]) -> Result<bool, Fault> {
        self.go(from, to, 0)
    }

    fn go(&mut self, from: &[u8], to: &[u8], depth: usize) -> Result<bool, Fault> {
        self.n_files += 1;
        if self.n_files > MAX_FILES || depth > MAX_DEPTH {
            return Ok(false);
        }
        match self.from.kind(from) {
            Some(Kind::Folder) => {
                self.to.make(to)?;
                let _ = self.from.unlock(from);
                let Ok(names) = self.from.names(from) else {
                    self.n_passed_over += 1;
                    return Ok(true);
                };
                for (name, _) in names {
                    if !self.go(&join(from, &name), &join(to, &name), depth + 1)? {
                        return Ok(false);
                    }
                }
            }
            Some(Kind::Link) => {
                let (parent, name) = split(to);
                let made = self.from.link_target(from).and_then(|target| symlinkat(target.as_slice(), self.to.descend(parent)?, name));
                self.n_passed_over += u64::from(made.is_err());
            }
            Some(Kind::File) => {
                let Ok(Some((mut file, stat))) = self.from.open_file(from) else {
                    self.n_passed_over += 1;
                    return Ok(true);
                };
                self.n_bytes += stat.st_size as u64;
                if self.n_bytes > MAX_BYTES {
                    return Ok(false);
                }
                // Nothing in there is to be run by accident.
                let mut copy = self.to.create(to, 0o600)?;
                std::io::copy(&mut file, &mut copy).map_err(|error| failed("copy", from, &error))?;
            }
            Some(Kind::Special) => self.n_passed_over += 1,
            None => {}
        }
        Ok(true)
    }
}
