//! The bundle's own tar: fixed order, plain headers, and reading that counts, hashes and can be
//! stopped.

use std::fs::File;
use std::io;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;
use std::time::Instant;

use sha2::Digest;
use sha2::Sha256;
use tokio_util::sync::CancellationToken;

use super::Error;
use super::archive::header;
use super::manifest::FORMAT;
use super::manifest::MANIFEST;
use super::manifest::MOST_MANIFEST;
use super::manifest::Manifest;
use super::shape;
use podbay_event::ByteSize;
use podbay_event::Progress;
use podbay_event::ProgressSink;
use podbay_event::Unit;
use podbay_event::json_fault;

/// What a tar counts in.
pub(super) const BLOCK: u64 = 512;

/// Left free beside what we write.
const MARGIN: u64 = 64 << 20;

pub(super) fn hex(digest: &[u8]) -> String {
    digest.iter().fold(String::with_capacity(64), |text, byte| {
        text + &format!("{byte:02x}")
    })
}

/// Returns an error about a path.
pub(super) fn failed(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> Error + use<> {
    let path = path.to_owned();
    move |source| Error::File {
        doing,
        path: path.clone(),
        source,
    }
}

/// Returns the header of one entry, as bytes.
pub(super) fn entry(path: &str, size: u64) -> io::Result<[u8; BLOCK as usize]> {
    let mut header = header(size);
    header.set_path(path)?;
    header.set_cksum();
    Ok(*header.as_bytes())
}

/// Returns the bytes that an entry takes, with its header and what fills its last block.
pub(super) fn span(size: u64) -> u64 {
    BLOCK + size.next_multiple_of(BLOCK)
}

/// Checks that so many bytes fit into a folder's disk.
pub(super) fn check_space(folder: &Path, needed: u64) -> Result<(), Error> {
    let disk = nix::sys::statvfs::statvfs(folder)
        .map_err(|source| failed("look at", folder)(source.into()))?;
    let free = disk.blocks_available().saturating_mul(disk.fragment_size());
    let needed = needed.saturating_add(MARGIN);
    if free < needed {
        return Err(Error::NoSpace {
            folder: folder.to_owned(),
            needed: ByteSize::new(needed),
            free: ByteSize::new(free),
        });
    }
    Ok(())
}

/// Opens a file without waiting for anybody, as a named pipe would have it, and says what it is.
pub(super) fn regular(path: &Path) -> Result<(File, std::fs::Metadata), Error> {
    let mut options = std::fs::OpenOptions::new();
    let file = options
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
        .map_err(failed("open", path))?;
    let facts = file.metadata().map_err(failed("look at", path))?;
    Ok((file, facts))
}

/// Reads the manifest and checks that the rest of the file is as long as it says.
pub(super) fn open(path: &Path) -> Result<(File, Manifest, u64), Error> {
    let none = |problem: &str| Error::NotABundle {
        path: path.to_owned(),
        problem: problem.to_owned(),
    };
    let (mut file, facts) = regular(path)?;
    if !facts.is_file() {
        return Err(none("it is not a regular file"));
    }
    let size = match read_header(&mut file).map_err(failed("read", path))? {
        Some((name, size)) if name == MANIFEST.as_bytes() && size <= MOST_MANIFEST => size,
        Some(_) => return Err(none("its first entry is not a bundle's manifest")),
        None => return Err(none("it does not begin like one")),
    };
    let mut text = vec![0; size as usize];
    let found = facts.len();
    let cut = |_| Error::Truncated {
        path: path.to_owned(),
        expected: span(size),
        found,
    };
    file.read_exact(&mut text).map_err(cut)?;
    let broken = |error| Error::Damaged {
        path: path.to_owned(),
        problem: format!("its manifest {}", json_fault(&error)),
    };
    let value = serde_json::from_slice(&text).map_err(broken)?;
    let odd = |problem| Error::Refused {
        path: path.to_owned(),
        problem: format!("in its manifest {problem}"),
    };
    let (found_format, made_by) = shape::head(&value).map_err(odd)?;
    if found_format != FORMAT {
        let made_by = made_by
            .chars()
            .filter(|c| !c.is_control())
            .take(40)
            .collect();
        return Err(Error::Version {
            path: path.to_owned(),
            found: found_format,
            made_by,
            reads: FORMAT,
        });
    }
    let manifest = shape::manifest(&value).map_err(odd)?;
    manifest.check().map_err(|problem| Error::Refused {
        path: path.to_owned(),
        problem,
    })?;
    let begin = span(size);
    let expected = begin
        + manifest
            .entries()
            .iter()
            .map(|entry| span(entry.1))
            .sum::<u64>()
        + 2 * BLOCK;
    match found.cmp(&expected) {
        std::cmp::Ordering::Less => Err(Error::Truncated {
            path: path.to_owned(),
            expected,
            found,
        }),
        std::cmp::Ordering::Greater => Err(Error::Refused {
            path: path.to_owned(),
            problem: format!("{} bytes follow its end", found - expected),
        }),
        std::cmp::Ordering::Equal => Ok((file, manifest, begin)),
    }
}

/// Goes to an entry and checks that it is the one that has to come there. The file then stands at
/// its first byte.
pub(super) fn go_to(
    file: &mut File,
    at: u64,
    name: &str,
    size: u64,
    path: &Path,
) -> Result<(), Error> {
    file.seek(SeekFrom::Start(at))
        .map_err(failed("read", path))?;
    match read_header(file).map_err(failed("read", path))? {
        Some((found, n)) if found == name.as_bytes() && n == size => Ok(()),
        Some((found, _)) => {
            let found = String::from_utf8_lossy(&found).escape_debug().to_string();
            Err(Error::Refused {
                path: path.to_owned(),
                problem: format!("where `{name}` should be there is `{found}`"),
            })
        }
        None => Err(Error::Damaged {
            path: path.to_owned(),
            problem: format!("the header of `{name}` is broken"),
        }),
    }
}

/// Reads a header of a regular file: its name and size. `None` where the bytes are no such header.
fn read_header(file: &mut File) -> io::Result<Option<(Vec<u8>, u64)>> {
    let mut block = [0; BLOCK as usize];
    match file.read_exact(&mut block) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let header = tar::Header::from_byte_slice(&block);
    let sum: u32 = block
        .iter()
        .enumerate()
        .map(|(at, &byte)| {
            if (148..156).contains(&at) {
                32
            } else {
                u32::from(byte)
            }
        })
        .sum();
    if header.cksum().ok() != Some(sum) || header.entry_type() != tar::EntryType::Regular {
        return Ok(None);
    }
    let Ok(size) = header.entry_size() else {
        return Ok(None);
    };
    Ok(Some((header.path_bytes().into_owned(), size)))
}

/// Shows how far one part is, not too often.
pub(super) struct Meter {
    task: String,
    total: Option<u64>,
    done: u64,
    progress: ProgressSink,
    shown: Instant,
}

impl Meter {
    pub(super) fn new(
        task: impl Into<String>,
        total: Option<u64>,
        progress: &ProgressSink,
    ) -> Self {
        Self {
            task: task.into(),
            total,
            done: 0,
            progress: progress.clone(),
            shown: Instant::now(),
        }
    }

    pub(super) fn add(&mut self, n: u64) {
        self.done += n;
        if self.shown.elapsed() > Duration::from_millis(100) {
            self.shown = Instant::now();
            self.show(false);
        }
    }

    fn show(&self, finished: bool) {
        (self.progress)(Progress {
            task: self.task.clone(),
            done: self.done,
            total: self.total,
            unit: Unit::Bytes,
            detail: String::new(),
            finished,
        });
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.show(true);
    }
}

/// A reader that counts and hashes what passes, and ends when it is told to.
pub(super) struct Watched<R> {
    inner: R,
    hasher: Sha256,
    n: u64,
    meter: Meter,
    cancel: CancellationToken,
}

impl<R: Read> Watched<R> {
    pub(super) fn new(inner: R, meter: Meter, cancel: &CancellationToken) -> Self {
        Self {
            inner,
            hasher: Sha256::new(),
            n: 0,
            meter,
            cancel: cancel.clone(),
        }
    }

    /// Returns how many bytes came, and their hash.
    pub(super) fn end(&self) -> (u64, String) {
        (self.n, hex(&self.hasher.clone().finalize()))
    }
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() {
            return Err(io::Error::other("interrupted"));
        }
        let n = self.inner.read(buffer)?;
        self.hasher.update(&buffer[..n]);
        self.n += n as u64;
        self.meter.add(n as u64);
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_fit_is_refused_beforehand() {
        let folder = tempfile::tempdir().expect("a folder");
        check_space(folder.path(), 1).expect("one byte fits");
        let error = check_space(folder.path(), u64::MAX / 2).expect_err("nothing is that large");
        assert!(matches!(error, Error::NoSpace { .. }), "{error}");
    }

    #[test]
    fn large_entries_have_a_header_too() {
        let block = entry("models/a.gguf", 1 << 40).expect("a header");
        let header = tar::Header::from_byte_slice(&block);
        assert_eq!(header.entry_size().expect("a size"), 1 << 40);
        assert_eq!((span(0), span(1), span(512)), (512, 1024, 1024));
    }

    #[test]
    fn what_is_wrong_in_a_manifest_is_said_with_its_part_and_a_remedy() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("b.tar");
        for (text, words, remedy) in [
            (
                "{\"format\":1,",
                "is damaged: its manifest ends in the middle",
                "copy it again",
            ),
            (
                "{\"format\":1;}",
                "is damaged: its manifest is no JSON from line 1, column 12 on",
                "copy it again",
            ),
            (
                "{\"format\":1,\"podbay\":\"1\"}",
                "is refused: in its manifest `archive` is missing",
                "do not use this file",
            ),
            (
                "[]",
                "is refused: in its manifest it is a list",
                "do not use this file",
            ),
            ("{\"format\":9}", "has format 9", "make it anew"),
        ] {
            let mut bytes = entry(MANIFEST, text.len() as u64)
                .expect("a header")
                .to_vec();
            bytes.extend_from_slice(text.as_bytes());
            std::fs::write(&path, &bytes).expect("written");
            let error = open(&path).expect_err("it is none");
            assert!(
                error.to_string().contains(words) && error.hint().contains(remedy),
                "{error}"
            );
        }
    }
}
