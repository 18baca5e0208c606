//! Cache of file contents by metadata, so that unchanged files need not be read again.
//!
//! A file counts as unchanged if size, times and inode are as they were. Its change time (ctime),
//! which no program can set, must also be well before the time of reading: clocks of file systems
//! are coarse, and a file can be changed twice in a tick. This is git's rule about racy entries;
//! such files are not entered.

use std::collections::HashMap;
use std::time::Duration;
use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use nix::sys::stat::FileStat;
use sha2::Digest;
use sha2::Sha256;

use super::Error;
use super::encoding::put_bytes;
use super::encoding::take;
use super::encoding::take_bytes;
use super::object::ObjectId;
use super::read::Stamp;
use super::read::stamp;
use super::state_folder::StateFolder;

/// Longer than the tick of any file system: FAT counts in two seconds.
const TICK: Duration = Duration::from_secs(2);

const STAMP: usize = size_of::<Stamp>();

/// A file's content as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CachedFile {
    pub(super) name: Vec<u8>,
    pub(super) stamp: Stamp,
    pub(super) object: ObjectId,
}

/// By folder; sorted by name within one.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Cache(pub(super) HashMap<Vec<u8>, Vec<CachedFile>>);

impl Cache {
    /// Reads the cache; a missing or broken one is empty.
    pub(super) fn load(folder: &StateFolder, name: &str) -> Result<Self, Error> {
        Ok(folder
            .read(name)?
            .and_then(|bytes| Self::decode(&bytes))
            .unwrap_or_default())
    }

    pub(super) fn save(&self, folder: &StateFolder, name: &str) -> Result<(), Error> {
        folder.replace_unflushed(name, &self.encode())
    }

    pub(super) fn find(&self, folder: &[u8], name: &[u8], stat: &FileStat) -> Option<ObjectId> {
        let folder = self.0.get(folder)?;
        let at = folder
            .binary_search_by(|known| known.name.as_slice().cmp(name))
            .ok()?;
        (folder[at].stamp == stamp(stat)).then_some(folder[at].object)
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (folder, files) in &self.0 {
            put_bytes(&mut out, folder);
            out.extend_from_slice(&(files.len() as u32).to_le_bytes());
            for file in files {
                put_bytes(&mut out, &file.name);
                file.stamp
                    .iter()
                    .for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
                out.extend_from_slice(file.object.as_bytes());
            }
        }
        let hash = Sha256::digest(&out);
        out.extend_from_slice(&hash);
        out
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (mut bytes, hash) = bytes.split_last_chunk::<32>()?;
        if Sha256::digest(bytes)[..] != hash[..] {
            return None;
        }
        let mut folders = HashMap::new();
        while !bytes.is_empty() {
            let folder = take_bytes(&mut bytes)?.to_vec();
            let n = u32::from_le_bytes(take(&mut bytes)?);
            let mut files = Vec::with_capacity((n as usize).min(bytes.len() / STAMP));
            for _ in 0..n {
                let name = take_bytes(&mut bytes)?.to_vec();
                let mut numbers = [0; 6];
                for number in &mut numbers {
                    *number = i64::from_le_bytes(take(&mut bytes)?);
                }
                files.push(CachedFile {
                    name,
                    stamp: numbers,
                    object: ObjectId::from_bytes(take(&mut bytes)?),
                });
            }
            folders.insert(folder, files);
        }
        Some(Self(folders))
    }
}

/// Returns the last change time, in seconds and nanoseconds, at which a file that is read from now
/// on may be entered.
pub(super) fn settled_before(now: SystemTime) -> (i64, i64) {
    let since = now
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .saturating_sub(TICK);
    (since.as_secs() as i64, i64::from(since.subsec_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_cache_is_loaded_and_a_broken_one_is_empty() {
        let state = tempfile::tempdir().expect("a folder");
        let folder = StateFolder::open(state.path()).expect("opens");
        assert_eq!(
            Cache::load(&folder, "cache").expect("loads"),
            Cache::default()
        );
        let known = |name: &[u8]| CachedFile {
            name: name.to_vec(),
            stamp: [1, -2, 3, 4, 5, 6],
            object: ObjectId::of(name),
        };
        let cache = Cache(HashMap::from([
            (Vec::new(), vec![known(b"a"), known(b"b\n\xff")]),
            (b"in".to_vec(), vec![known(b"c")]),
        ]));
        cache.save(&folder, "cache").expect("saves");
        assert_eq!(Cache::load(&folder, "cache").expect("loads"), cache);
        let mut bytes = cache.encode();
        bytes[3] ^= 1;
        assert_eq!(Cache::decode(&bytes), None);
        assert_eq!(Cache::decode(&cache.encode()[1..]), None);
        assert_eq!(Cache::decode(b""), None);
    }
}
