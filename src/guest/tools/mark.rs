//! A digest of a file's content, by which two versions are compared. A file that was only touched
//! or renamed keeps its mark; other bytes give another mark, whatever size and time say.

use std::fs::File;
use std::io;
use std::io::BufRead;
use std::io::Read;

use nix::sys::stat::FileStat;
use nix::sys::stat::fstat;
use sha2::Digest;
use sha2::Sha256;

use super::edit_file::MAX_BYTES;
use podbay_wire::Mark;

/// Returns the mark of a text.
pub(super) fn of_text(text: &[u8]) -> Mark {
    shown(Sha256::digest(text).as_slice())
}

/// Returns the mark of an open file, read from its beginning.
pub(super) fn of_file(file: &File, stat: &FileStat) -> io::Result<Mark> {
    let mut marking = MarkingReader::new(file, stat);
    if !marking.is_too_large {
        io::copy(&mut marking, &mut io::sink())?;
    }
    marking.finish(file)
}

/// A reader that computes the mark of all bytes read through it.
pub(super) struct MarkingReader<R> {
    inner: R,
    digest: Sha256,
    n_bytes: u64,
    is_too_large: bool,
}

impl<R: Read> MarkingReader<R> {
    /// A file larger than the file tools edit is not digested: that costs more than it is worth.
    pub(super) fn new(inner: R, stat: &FileStat) -> Self {
        Self {
            inner,
            digest: Sha256::new(),
            n_bytes: 0,
            is_too_large: stat.st_size as u64 > MAX_BYTES,
        }
    }

    /// Returns the mark of what was read; for a larger file one made of its metadata.
    pub(super) fn finish(self, file: &File) -> io::Result<Mark> {
        if !self.is_too_large {
            return Ok(shown(self.digest.finalize().as_slice()));
        }
        let stat = fstat(file)?;
        let (changed, noted) = (
            (stat.st_mtime, stat.st_mtime_nsec),
            (stat.st_ctime, stat.st_ctime_nsec),
        );
        Ok(Mark(format!(
            "stat:{}:{}:{}.{}:{}.{}",
            stat.st_size, stat.st_ino, changed.0, changed.1, noted.0, noted.1
        )))
    }
}

impl<R: Read> Read for MarkingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        if !self.is_too_large {
            self.n_bytes += n as u64;
            self.is_too_large = self.n_bytes > MAX_BYTES;
            self.digest.update(&buffer[..n]);
        }
        Ok(n)
    }
}

/// Reads to the end, so that the mark covers the whole file.
pub(super) fn read_on<R: Read>(reader: &mut io::BufReader<MarkingReader<R>>) -> io::Result<()> {
    while !reader.get_ref().is_too_large {
        let n = reader.fill_buf()?.len();
        if n == 0 {
            break;
        }
        reader.consume(n);
    }
    Ok(())
}

fn shown(digest: &[u8]) -> Mark {
    use std::fmt::Write;
    let mut text = "sha256:".to_owned();
    for byte in digest {
        let _ = write!(text, "{byte:02x}");
    }
    Mark(text)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_mark_covers_all_bytes_however_they_are_read() {
        let mut file = tempfile::tempfile().expect("a file");
        let text = "line\n".repeat(50_000);
        file.write_all(text.as_bytes()).expect("written");
        let look = |file: &File| {
            use std::io::Seek;
            let mut file = file;
            file.rewind().expect("a file");
            let stat = fstat(file).expect("a file");
            let whole = of_file(file, &stat).expect("reads");
            file.rewind().expect("a file");
            let mut reader = io::BufReader::new(MarkingReader::new(file, &stat));
            let mut line = String::new();
            reader.read_line(&mut line).expect("reads");
            read_on(&mut reader).expect("reads");
            assert_eq!(reader.into_inner().finish(file).expect("reads"), whole);
            whole
        };
        assert_eq!(look(&file), of_text(text.as_bytes()));
        file.set_len(MAX_BYTES + 1).expect("grows");
        let large = look(&file);
        assert!(
            large.0.starts_with("stat:") && large == look(&file),
            "{large:?}"
        );
        file.set_len(MAX_BYTES + 2).expect("grows");
        assert_ne!(look(&file), large);
    }
}
