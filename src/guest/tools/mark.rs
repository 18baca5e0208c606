//! What a file holds, as short as two looks at it can be compared by: a digest of its content. A
//! file that was only touched, or got another name, holds what it held; one that holds other bytes
//! is another, whatever its size and time say.

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

/// Makes the mark of a text.
pub(super) fn of_text(text: &[u8]) -> Mark {
    shown(Sha256::digest(text).as_slice())
}

/// Makes the mark of an open file, from its beginning.
pub(super) fn of_file(file: &File, stat: &FileStat) -> io::Result<Mark> {
    let mut marking = Marking::new(file, stat);
    if !marking.is_too_large {
        io::copy(&mut marking, &mut io::sink())?;
    }
    marking.finish(file)
}

/// A reader that makes the mark of all that is read through it.
pub(super) struct Marking<R> {
    inner: R,
    digest: Sha256,
    n_bytes: u64,
    is_too_large: bool,
}

impl<R: Read> Marking<R> {
    /// Of a file that is larger than what a file tool changes, its digest would cost too much for
    /// what it is worth.
    pub(super) fn new(inner: R, stat: &FileStat) -> Self {
        Self {
            inner,
            digest: Sha256::new(),
            n_bytes: 0,
            is_too_large: stat.st_size as u64 > MAX_BYTES,
        }
    }

    /// Returns the mark of what was read; a larger file goes by what the kernel says of it.
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

impl<R: Read> Read for Marking<R> {
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

/// Reads on to the end, so that the mark is that of the whole file.
pub(super) fn read_on<R: Read>(reader: &mut io::BufReader<Marking<R>>) -> io::Result<()> {
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
    fn a_mark_is_that_of_all_bytes_however_they_are_read() {
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
            let mut reader = io::BufReader::new(Marking::new(file, &stat));
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
