//! Pack files, which hold the stored contents.
//!
//! A pack is written by one snapshot and never changed: the contents one after the other, then a
//! list of them, then the offset of that list and its hash. It gets its name only once all of that
//! is on the disk, so a visible pack is complete.

use std::fs::File;
use std::io::BufWriter;
use std::io::Write;
use std::os::unix::fs::FileExt;

use sha2::Digest;
use sha2::Sha256;

use super::Error;
use super::object::ObjectId;
use super::state_folder::StateFolder;
use super::state_folder::failed;
use crate::tools::save::errno_of;

const MAGIC: &[u8; 8] = b"podbay\x00\x01";
const ENTRY: usize = ObjectId::LENGTH + 8 + 8 + 8 + 1;
const TRAILER: usize = 8 + 8 + 32;

/// Location of a content in its pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PackLocation {
    pub(super) at: u64,
    /// Bytes in the pack, and of the content itself.
    pub(super) n_stored: u64,
    pub(super) n_bytes: u64,
    pub(super) is_deflated: bool,
}

/// A complete pack.
#[derive(Debug)]
pub(super) struct Pack {
    pub(super) name: String,
    pub(super) n_bytes: u64,
    file: File,
}

impl Pack {
    /// Opens a pack and reads its list of contents.
    pub(super) fn open(
        folder: &StateFolder,
        name: &str,
    ) -> Result<(Self, Vec<(ObjectId, PackLocation)>), Error> {
        let file = folder.open_file(name)?;
        let broken = || Error::Unreadable {
            name: name.to_owned(),
            problem: "its end is not as it was written".to_owned(),
        };
        let n_bytes = file
            .metadata()
            .map_err(|error| failed("look at", name)(errno_of(&error)))?
            .len();
        let read = |from: u64, to: u64| {
            let length = to
                .checked_sub(from)
                .and_then(|length| usize::try_from(length).ok())
                .ok_or_else(broken)?;
            let mut bytes = vec![0; length];
            file.read_exact_at(&mut bytes, from)
                .map_err(|error| failed("read", name)(errno_of(&error)))?;
            Ok(bytes)
        };
        let list_ends = n_bytes.checked_sub(TRAILER as u64).ok_or_else(broken)?;
        let trailer = read(list_ends, n_bytes)?;
        let list_begins = u64_at(&trailer, 0);
        if list_begins > list_ends
            || !(list_ends - list_begins).is_multiple_of(ENTRY as u64)
            || trailer[8..16] != MAGIC[..]
        {
            return Err(broken());
        }
        let list = read(list_begins, list_ends)?;
        if Sha256::digest(&list)[..] != trailer[16..] {
            return Err(broken());
        }
        let places = list.as_chunks::<ENTRY>().0.iter().map(decode).collect();
        Ok((
            Self {
                name: name.to_owned(),
                n_bytes,
                file,
            },
            places,
        ))
    }

    pub(super) fn read(&self, place: &PackLocation) -> Result<Vec<u8>, Error> {
        let mut stored = vec![0; usize::try_from(place.n_stored).unwrap_or(usize::MAX)];
        self.file
            .read_exact_at(&mut stored, place.at)
            .map_err(|error| failed("read", &self.name)(errno_of(&error)))?;
        Ok(stored)
    }
}

/// A pack that is being written; removed when dropped unfinished.
pub(super) struct NewPack<'a> {
    folder: &'a StateFolder,
    name: String,
    file: Option<BufWriter<File>>,
    at: u64,
    places: Vec<(ObjectId, PackLocation)>,
}

impl<'a> NewPack<'a> {
    pub(super) fn begin(folder: &'a StateFolder, name: String) -> Result<Self, Error> {
        let file = BufWriter::with_capacity(1 << 20, folder.begin(&name)?);
        Ok(Self {
            folder,
            name,
            file: Some(file),
            at: 0,
            places: Vec::new(),
        })
    }

    /// Returns the present length of the pack.
    pub(super) fn n_bytes(&self) -> u64 {
        self.at + (self.places.len() * ENTRY + TRAILER) as u64
    }

    pub(super) fn add(
        &mut self,
        id: ObjectId,
        stored: &[u8],
        n_bytes: u64,
        is_deflated: bool,
    ) -> Result<(), Error> {
        self.write(stored)?;
        let n_stored = stored.len() as u64;
        self.places.push((
            id,
            PackLocation {
                at: self.at,
                n_stored,
                n_bytes,
                is_deflated,
            },
        ));
        self.at += n_stored;
        Ok(())
    }

    /// Makes the pack visible.
    pub(super) fn finish(mut self) -> Result<(), Error> {
        let mut list = Vec::with_capacity(self.places.len() * ENTRY + TRAILER);
        for (id, place) in &self.places {
            list.extend_from_slice(id.as_bytes());
            for number in [place.at, place.n_stored, place.n_bytes] {
                list.extend_from_slice(&number.to_le_bytes());
            }
            list.push(u8::from(place.is_deflated));
        }
        let hash = Sha256::digest(&list);
        list.extend_from_slice(&self.at.to_le_bytes());
        list.extend_from_slice(MAGIC);
        list.extend_from_slice(&hash);
        self.write(&list)?;
        let writer = self.file.take().expect("a pack is finished once");
        let file = writer
            .into_inner()
            .map_err(|error| failed("write", &self.name)(errno_of(error.error())));
        let finished = file.and_then(|file| self.folder.finish(&self.name, &file));
        if finished.is_err() {
            self.folder.give_up(&self.name);
        }
        finished
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let file = self
            .file
            .as_mut()
            .expect("a pack is written before it is finished");
        file.write_all(bytes)
            .map_err(|error| failed("write", &self.name)(errno_of(&error)))
    }
}

impl Drop for NewPack<'_> {
    fn drop(&mut self) {
        if let Some(writer) = self.file.take() {
            // The buffer is not to be written.
            let _ = writer.into_parts();
            self.folder.give_up(&self.name);
        }
    }
}

fn decode(entry: &[u8; ENTRY]) -> (ObjectId, PackLocation) {
    let (id, numbers) = entry
        .split_first_chunk()
        .expect("an entry begins with its name");
    let place = PackLocation {
        at: u64_at(numbers, 0),
        n_stored: u64_at(numbers, 8),
        n_bytes: u64_at(numbers, 16),
        is_deflated: numbers[24] != 0,
    };
    (ObjectId::from_bytes(*id), place)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("the entry is longer"))
}
