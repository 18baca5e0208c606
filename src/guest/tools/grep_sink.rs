use std::io;

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::Searcher;
use grep_searcher::Sink;
use grep_searcher::SinkContext;
use grep_searcher::SinkFinish;
use grep_searcher::SinkMatch;

use super::grep_collect::FileMatches;
use podbay_wire::GrepOutput;
use podbay_wire::MatchedLine;
use podbay_wire::shown_text;

/// Most bytes of a line shown; a longer one is shown around its match.
const MAX_LINE: usize = 500;

/// How many of them come before the match.
const BEFORE: usize = 150;

/// Records what the searcher finds in one file, within bounds.
pub(super) struct FileSink<'a> {
    pub(super) hit: FileMatches,
    matcher: &'a RegexMatcher,
    output: GrepOutput,
    /// Remaining lines; the first match beyond them ends the search of the file.
    n_lines: u64,
    n_bytes: usize,
}

impl<'a> FileSink<'a> {
    pub(super) fn new(
        matcher: &'a RegexMatcher,
        output: GrepOutput,
        n_lines: u64,
        n_bytes: usize,
    ) -> Self {
        Self {
            hit: FileMatches::default(),
            matcher,
            output,
            n_lines,
            n_bytes,
        }
    }

    fn record(&mut self, number: u64, line: &[u8], matched: bool) {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let (text, cut) = shorten(line, || {
            if matched {
                self.matcher
                    .find(line)
                    .ok()
                    .flatten()
                    .map_or(0, |found| found.start())
            } else {
                0
            }
        });
        self.n_bytes = self.n_bytes.saturating_sub(text.len() + 64);
        self.hit.broken |= std::str::from_utf8(line).is_err();
        self.hit.lines.push(MatchedLine {
            number,
            text,
            cut,
            matched,
        });
    }
}

impl Sink for FileSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if self.output == GrepOutput::FilesOnly {
            self.hit.count = 1;
            return Ok(false);
        }
        // A named binary file: only the fact of a match can be shown.
        if self.hit.binary
            && searcher.binary_detection().convert_byte().is_some()
            && self.output == GrepOutput::Content
        {
            self.hit.count += 1;
            return Ok(false);
        }
        for (number, line) in (found.line_number().unwrap_or(1)..).zip(found.lines()) {
            self.hit.count += 1;
            if self.output == GrepOutput::Content {
                // One match beyond the recorded ones is enough to say "more".
                if self.n_lines == 0 || self.n_bytes == 0 {
                    return Ok(false);
                }
                self.n_lines -= 1;
                self.record(number, line, true);
            }
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        if self.output == GrepOutput::Content && self.n_lines > 0 && self.n_bytes > 0 {
            self.record(context.line_number().unwrap_or(0), context.bytes(), false);
        }
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.hit.binary = true;
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.hit.binary |= finish.binary_byte_offset().is_some();
        if self.hit.binary {
            self.hit.lines.clear();
        }
        Ok(())
    }
}

/// Returns a line as text; a long one is truncated around the position that `start` returns.
pub(super) fn shorten(line: &[u8], start: impl FnOnce() -> usize) -> (String, bool) {
    if line.len() <= MAX_LINE {
        return (shown_text(line).into_owned(), false);
    }
    let is_boundary = |at: usize| line.get(at).is_none_or(|byte| byte & 0xc0 != 0x80);
    let mut from = start()
        .min(line.len())
        .saturating_sub(BEFORE)
        .min(line.len() - MAX_LINE);
    let mut to = from + MAX_LINE;
    // Invalid UTF-8 may have no character boundary near; then any position will do.
    from = (from..from + 4).find(|at| is_boundary(*at)).unwrap_or(from);
    to = (to - 4..=to)
        .rev()
        .find(|at| is_boundary(*at))
        .unwrap_or(to);
    let before = if from > 0 { "…" } else { "" };
    let after = if to < line.len() { "…" } else { "" };
    (
        format!("{before}{}{after}", shown_text(&line[from..to])),
        true,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, start: usize, expected: &str) {
        assert_eq!(shorten(line.as_bytes(), || start).0, expected);
    }

    #[test]
    fn a_search_ends_at_the_first_match_beyond_the_bound() {
        let text = "x\n".repeat(1000);
        let matcher = RegexMatcher::new("x").expect("an expression");
        for (output, n_lines, n_bytes, count, taken) in [
            (GrepOutput::Content, 2, 10_000, 3, 2),
            (GrepOutput::Content, 10, 3 * 65, 4, 3),
            (GrepOutput::Content, 1000, 1_000_000, 1000, 1000),
            (GrepOutput::Count, 2, 10_000, 1000, 0),
            (GrepOutput::FilesOnly, 2, 10_000, 1, 0),
        ] {
            let mut sink = FileSink::new(&matcher, output, n_lines, n_bytes);
            Searcher::new()
                .search_slice(&matcher, text.as_bytes(), &mut sink)
                .expect("searched");
            assert_eq!(
                (sink.hit.count, sink.hit.lines.len()),
                (count, taken),
                "{output:?} {n_lines} {n_bytes}"
            );
        }
    }

    #[test]
    fn long_lines_are_truncated_around_the_match() {
        let a = |n: usize| "a".repeat(n);
        check("short", 3, "short");
        check(&a(501), 0, &format!("{}…", a(500)));
        check(
            &format!("{}HERE{}", a(1000), a(1000)),
            1000,
            &format!("…{}HERE{}…", a(150), a(346)),
        );
        check(
            &format!("{}HERE", a(1000)),
            1000,
            &format!("…{}HERE", a(496)),
        );
        check(&"é".repeat(400), 401, &format!("…{}…", "é".repeat(249)));
    }
}
