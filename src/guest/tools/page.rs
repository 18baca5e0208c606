use std::io;
use std::io::BufRead;

/// Longest line shown whole; longer ones are generated text, and would crowd out the rest.
pub(super) const MAX_LINE: usize = 4096;

/// How far the rest of a file is read only to count its lines.
const MAX_COUNTED: u64 = 8 * 1024 * 1024;

/// How far a page is searched for lines behind truncated ones before it ends.
const MAX_SCANNED: u64 = 64 * 1024 * 1024;

/// The lines of a file that are wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineRange {
    /// Counted from 1.
    pub(super) first_line: u64,
    pub(super) n_lines: u64,
    pub(super) n_bytes: usize,
}

/// Lines of a file, as bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) text: Vec<u8>,
    pub(super) n_lines: u64,
    pub(super) total_lines: Option<u64>,
    pub(super) more: bool,
    pub(super) cut_lines: u32,
}

/// Result of reading a page.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PageResult {
    Page(Page),
    /// The first wanted line is behind the end of a file with this many lines.
    BehindTheEnd(u64),
}

/// Reads a page and discards the rest. `size` is how many bytes the reader will return, as far as
/// known.
pub(super) fn read(reader: impl BufRead, size: u64, wanted: LineRange) -> io::Result<PageResult> {
    let mut lines = Lines {
        reader,
        position: 0,
    };
    let mut line = Vec::new();
    for n_before in 1..wanted.first_line {
        if lines.next(0, &mut line)?.is_none() {
            return Ok(PageResult::BehindTheEnd(n_before - 1));
        }
    }
    let mut page = Page::default();
    let started = lines.position;
    while page.n_lines < wanted.n_lines {
        if lines.position - started > MAX_SCANNED {
            break;
        }
        line.clear();
        let Some(length) = lines.next(MAX_LINE, &mut line)? else {
            if page.n_lines == 0 && wanted.first_line > 1 {
                return Ok(PageResult::BehindTheEnd(wanted.first_line - 1));
            }
            page.total_lines = Some(wanted.first_line - 1 + page.n_lines);
            return Ok(PageResult::Page(page));
        };
        let was_cut = truncate(&mut line, length, wanted.n_bytes);
        if page.n_lines > 0 && page.text.len() + line.len() > wanted.n_bytes {
            // This line was read but belongs to the next page.
            page.more = true;
            page.total_lines = lines
                .count_rest(size)?
                .map(|n| wanted.first_line + page.n_lines + n);
            return Ok(PageResult::Page(page));
        }
        page.cut_lines += u32::from(was_cut);
        page.text.append(&mut line);
        page.n_lines += 1;
    }
    page.more = !lines.reader.fill_buf()?.is_empty();
    page.total_lines = lines
        .count_rest(size)?
        .map(|n| wanted.first_line - 1 + page.n_lines + n);
    Ok(PageResult::Page(page))
}

/// Truncates a line of `length` bytes that was not read whole, or that does not fit a page of
/// `n_bytes`; appends a note to it.
fn truncate(line: &mut Vec<u8>, length: u64, n_bytes: usize) -> bool {
    let keep = MAX_LINE.min(n_bytes);
    if length <= keep as u64 {
        return false;
    }
    line.truncate(keep);
    // A split character would make the file look like invalid UTF-8.
    let start = line
        .iter()
        .rposition(|byte| byte & 0xc0 != 0x80)
        .unwrap_or(0);
    if line.len() - start < 4 && std::str::from_utf8(&line[start..]).is_err() {
        line.truncate(start);
    }
    line.extend_from_slice(
        format!(" [… this line is truncated here; it has {length} bytes]\n").as_bytes(),
    );
    true
}

struct Lines<R> {
    reader: R,
    /// Bytes read so far.
    position: u64,
}

impl<R: BufRead> Lines<R> {
    /// Reads one line with its end and keeps its first `keep` bytes; returns its whole length, or
    /// `None` at the end of the file.
    fn next(&mut self, keep: usize, line: &mut Vec<u8>) -> io::Result<Option<u64>> {
        let mut length = 0;
        loop {
            let buffer = self.reader.fill_buf()?;
            let end = memchr::memchr(b'\n', buffer);
            let n = end.map_or(buffer.len(), |at| at + 1);
            let room = keep.saturating_sub(line.len()).min(n);
            line.extend_from_slice(&buffer[..room]);
            self.reader.consume(n);
            self.position += n as u64;
            length += n as u64;
            if end.is_some() {
                return Ok(Some(length));
            }
            if n == 0 {
                return Ok(Some(length).filter(|length| *length > 0));
            }
        }
    }

    /// Counts the lines that follow, where that is cheap.
    fn count_rest(&mut self, size: u64) -> io::Result<Option<u64>> {
        if size.saturating_sub(self.position) > MAX_COUNTED {
            return Ok(None);
        }
        // The file may grow meanwhile, or never end, as some below /proc.
        let last = self.position + MAX_COUNTED;
        let mut n_lines = 0;
        let mut ends_in_line = false;
        while self.position <= last {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                return Ok(Some(n_lines + u64::from(ends_in_line)));
            }
            n_lines += memchr::memchr_iter(b'\n', buffer).count() as u64;
            ends_in_line = !buffer.ends_with(b"\n");
            let n = buffer.len();
            self.reader.consume(n);
            self.position += n as u64;
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(
        text: &str,
        wanted: (u64, u64, usize),
        expected: &str,
        more: bool,
        total: Option<u64>,
    ) {
        let wanted = LineRange {
            first_line: wanted.0,
            n_lines: wanted.1,
            n_bytes: wanted.2,
        };
        let found = read(text.as_bytes(), text.len() as u64, wanted).expect("memory reads");
        let PageResult::Page(page) = found else {
            panic!("{found:?}")
        };
        assert_eq!(
            (
                String::from_utf8_lossy(&page.text).as_ref(),
                page.more,
                page.total_lines
            ),
            (expected, more, total)
        );
    }

    #[test]
    fn pages_keep_their_line_ends() {
        check("a\r\nb\nc", (1, 10, 100), "a\r\nb\nc", false, Some(3));
        check("a\r\nb\nc", (2, 1, 100), "b\n", true, Some(3));
        check("a\nb\n", (2, 9, 100), "b\n", false, Some(2));
        check("\n\n", (1, 1, 100), "\n", true, Some(2));
        check("", (1, 9, 100), "", false, Some(0));
    }

    #[test]
    fn a_page_ends_before_the_line_that_does_not_fit() {
        check(
            "aaaa\nbbbb\ncccc\n",
            (1, 9, 10),
            "aaaa\nbbbb\n",
            true,
            Some(3),
        );
        check(
            "aaaa\nbbbb\ncccc",
            (1, 9, 12),
            "aaaa\nbbbb\n",
            true,
            Some(3),
        );
    }

    #[test]
    fn a_first_line_over_the_bound_is_truncated_with_a_note() {
        check(
            "ééééé\nb\n",
            (1, 1, 5),
            "éé [… this line is truncated here; it has 11 bytes]\n",
            true,
            Some(2),
        );
    }

    #[test]
    fn long_lines_are_truncated_at_a_character_boundary() {
        let text = format!("{}é\nnext\n", "x".repeat(MAX_LINE - 1));
        let wanted = LineRange {
            first_line: 1,
            n_lines: 9,
            n_bytes: 100_000,
        };
        let Ok(PageResult::Page(page)) = read(text.as_bytes(), 0, wanted) else {
            panic!("reads")
        };
        assert_eq!((page.n_lines, page.cut_lines), (2, 1));
        let text = String::from_utf8(page.text).expect("still UTF-8");
        assert!(text.ends_with("bytes]\nnext\n"), "{text}");
    }

    #[test]
    fn an_offset_behind_the_end_reports_the_number_of_lines() {
        let behind = |text: &str, first_line| {
            read(
                text.as_bytes(),
                0,
                LineRange {
                    first_line,
                    n_lines: 5,
                    n_bytes: 100,
                },
            )
            .expect("memory reads")
        };
        assert_eq!(behind("a\nb\n", 3), PageResult::BehindTheEnd(2));
        assert_eq!(behind("a\nb", 9), PageResult::BehindTheEnd(2));
        assert_eq!(behind("", 2), PageResult::BehindTheEnd(0));
    }
}
