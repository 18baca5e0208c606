use std::fs::File;
use std::io;
use std::io::Read;

use nix::errno::Errno;
use nix::unistd::Whence;
use nix::unistd::lseek;

/// Copies a file's data so that its holes stay holes: a virtual machine's disk may be larger than
/// the one it lies on. Returns the number of copied bytes.
pub(super) fn copy(source: &File, mut target: &File, size: i64) -> io::Result<u64> {
    let (mut at, mut n_bytes) = (0, 0);
    loop {
        let begin = match lseek(source, at, Whence::SeekData) {
            // No more data, or none at all.
            Err(Errno::ENXIO) => break,
            // Some file systems do not support holes.
            Err(Errno::EINVAL) => at,
            other => other?,
        };
        let end = lseek(source, begin, Whence::SeekHole)
            .unwrap_or(i64::MAX)
            .max(begin);
        lseek(source, begin, Whence::SeekSet)?;
        lseek(target, begin, Whence::SeekSet)?;
        let n_copied = io::copy(&mut source.take((end - begin) as u64), &mut target)?;
        n_bytes += n_copied;
        at = begin + n_copied as i64;
        if n_copied == 0 || end == i64::MAX {
            break;
        }
    }
    target.set_len(at.max(size) as u64)?;
    Ok(n_bytes)
}
