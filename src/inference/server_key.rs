//! The API key of the model server, in a file that only the server and the user can read.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::Error;
use super::Paths;
use super::atomic_file;
use super::plan::KEY;
use podbay_event::Secret;

impl Paths {
    /// Returns the key of the running server.
    pub(super) fn read_key(&self) -> Option<Secret> {
        let text = fs::read_to_string(self.key_folder().join(KEY)).ok()?;
        Some(text.trim())
            .filter(|key| !key.is_empty())
            .map(Secret::new)
    }

    /// Creates a key for a new server.
    pub(super) fn write_key(&self, (uid, gid): (u32, u32)) -> Result<Secret, Error> {
        let path = self.key_folder().join(KEY);
        let failed = |source| Error::File {
            doing: "write",
            path: path.clone(),
            source,
        };
        let mut bytes = [0_u8; 32];
        getrandom::fill(&mut bytes).map_err(|error| failed(std::io::Error::other(error)))?;
        let key = URL_SAFE_NO_PAD.encode(bytes);
        let part = atomic_file::part_of(&path);
        atomic_file::remove(&part)?;
        let mut out = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&part)
            .map_err(failed)?;
        out.write_all(key.as_bytes()).map_err(failed)?;
        if nix::unistd::geteuid().is_root() {
            std::os::unix::fs::fchown(&out, Some(uid), Some(gid)).map_err(failed)?;
        }
        fs::rename(&part, &path).map_err(failed)?;
        Ok(Secret::new(key))
    }
}
