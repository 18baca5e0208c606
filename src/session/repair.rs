use std::fs::OpenOptions;
use std::io;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::path::PathBuf;

use super::Error;
use super::log_file;
use super::record::LinePiece;
use super::record::pieces;

/// A repair of the end of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogRepair {
    /// The last line has a whole record and lacked its newline.
    Ended,
    /// The last record was incomplete; it was moved to a backup.
    Cut { bytes: u64, kept: PathBuf },
}

/// Makes sure that a log ends with a newline, so that an append cannot be fused to the last line.
///
/// The removed bytes are kept in a file beside it, `….jsonl.bak`.
pub fn repair_tail(path: &Path) -> Result<Option<LogRepair>, Error> {
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)
        .map_err(Error::io("open", path))?;
    let (start, tail) = last_line(&mut file).map_err(Error::io("read", path))?;
    if tail.is_empty() {
        return Ok(None);
    }
    let mut is_worth_reading = false;
    pieces(&tail, false, |piece| {
        is_worth_reading |= matches!(piece, LinePiece::Record(_));
    });
    if is_worth_reading {
        // Readers skip the damaged part of the line; removing it would remove the record too.
        file.seek(SeekFrom::End(0))
            .and_then(|_| file.write_all(b"\n"))
            .map_err(Error::io("repair", path))?;
        return Ok(Some(LogRepair::Ended));
    }
    let mut kept = path.as_os_str().to_owned();
    kept.push(".bak");
    let kept = PathBuf::from(kept);
    let keep = || -> io::Result<()> {
        let mut file = log_file::open_append(&kept, false)?;
        file.write_all(&tail)?;
        file.write_all(b"\n")?;
        file.sync_data()
    };
    keep().map_err(Error::io("write", &kept))?;
    file.set_len(start)
        .and_then(|()| file.sync_data())
        .map_err(Error::io("repair", path))?;
    Ok(Some(LogRepair::Cut {
        bytes: tail.len() as u64,
        kept,
    }))
}

/// Returns what follows the last newline, and its offset.
fn last_line(file: &mut (impl Read + Seek)) -> io::Result<(u64, Vec<u8>)> {
    const BLOCK: u64 = 64 << 10;
    let mut start = file.seek(SeekFrom::End(0))?;
    let mut blocks = Vec::new();
    while start > 0 {
        let length = BLOCK.min(start);
        file.seek(SeekFrom::Start(start - length))?;
        let mut block = vec![0; length as usize];
        file.read_exact(&mut block)?;
        if let Some(newline) = block.iter().rposition(|byte| *byte == b'\n') {
            start = start - length + newline as u64 + 1;
            blocks.push(block.split_off(newline + 1));
            break;
        }
        start -= length;
        blocks.push(block);
    }
    blocks.reverse();
    Ok((start, blocks.concat()))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[track_caller]
    fn check(text: &str, start: u64, tail: &str) {
        let found = last_line(&mut Cursor::new(text)).expect("memory can be read");
        assert_eq!(found, (start, tail.as_bytes().to_vec()));
    }

    #[test]
    fn a_whole_record_in_a_damaged_line_is_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.jsonl");
        let torn = "{\"type\":\"user_mess{\"type\":\"interrupted\",\"at\":\"2026-11-21T10:00:00Z\"}{\"type\":\"ca";
        std::fs::write(&path, torn).expect("written");
        assert_eq!(
            repair_tail(&path).expect("repaired"),
            Some(LogRepair::Ended)
        );
        assert_eq!(
            std::fs::read_to_string(&path).expect("readable"),
            format!("{torn}\n")
        );
        std::fs::write(&path, &torn[..20]).expect("written");
        assert!(matches!(
            repair_tail(&path),
            Ok(Some(LogRepair::Cut { bytes: 20, .. }))
        ));
    }

    #[test]
    fn the_last_line_is_found_across_read_blocks() {
        check("", 0, "");
        check("a\n", 2, "");
        check("a\nbc", 2, "bc");
        check("abc", 0, "abc");
        let long = "x".repeat(200_000);
        check(&format!("a\n{long}"), 2, &long);
    }
}
