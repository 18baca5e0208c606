use std::io;

use super::RunningCommand;
use podbay_wire::message::CHUNK;
use podbay_wire::message::Stream;

/// Most bytes read after the end; only a process of another call that received the pipe can write
/// more.
const MAX_REST: u64 = 4 * 1024 * 1024;

/// What shells print about a program that was killed for its file size. The first letter differs.
const TOO_LARGE: &[u8] = b"ile size limit exceeded";

/// Detects this phrase in output that arrives in pieces.
#[derive(Default)]
pub(super) struct PhraseDetector {
    last: Vec<u8>,
    is_found: bool,
}

impl PhraseDetector {
    fn listen(&mut self, data: &[u8]) {
        if self.is_found {
            return;
        }
        let keep = TOO_LARGE.len() - 1;
        let has = |text: &[u8]| memchr::memmem::find(text, TOO_LARGE).is_some();
        self.last.extend(&data[..data.len().min(keep)]);
        self.is_found = has(data) || has(&self.last);
        // The phrase may begin at the end of this piece.
        if let Some(at) = data.len().checked_sub(keep) {
            self.last.clear();
            self.last.extend(&data[at..]);
        }
        self.last.drain(..self.last.len().saturating_sub(keep));
    }

    pub(super) fn is_found(&self) -> bool {
        self.is_found
    }
}

impl RunningCommand<'_> {
    /// Reads once from a source that may have data.
    pub(super) fn read(&mut self, at: usize) {
        let limit = self.piece();
        let source = &self.sources[at];
        match source.pipe.try_read(&mut self.buffer[..limit]) {
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) => {}
            // A terminal whose other end is closed gives EIO.
            Ok(0) | Err(_) => self.sources[at].is_open = false,
            Ok(n_read) => self.take_in(at, n_read),
        }
    }

    /// After the end: reads what is left in the pipes, then sends the tail, as far as there is
    /// credit.
    pub(super) fn finish(&mut self) {
        for at in 0..self.sources.len() {
            while self.sources[at].is_open && (self.to_stream == 0 || self.line.room() > 0) {
                let limit = self.piece();
                let result = self.sources[at].pipe.read_now(&mut self.buffer[..limit]);
                let Some(over) = &mut self.ended else { return };
                match result {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Ok(n_read) if n_read > 0 && over.n_read < MAX_REST => {
                        over.n_read += n_read as u64;
                        self.take_in(at, n_read);
                    }
                    // All writers have ended: an empty pipe stays empty.
                    Ok(_) | Err(_) => self.sources[at].is_open = false,
                }
            }
        }
        if self.sources.iter().all(|source| !source.is_open) {
            while self.tail.len() > 0 && self.line.room() > 0 {
                let piece = self.tail.take(CHUNK.min(self.line.room()));
                self.line.chunk(Stream::Tail, piece);
            }
        }
    }

    /// Returns how much to read at once.
    fn piece(&self) -> usize {
        if self.to_stream == 0 {
            CHUNK
        } else {
            CHUNK
                .min(self.line.room())
                .min(usize::try_from(self.to_stream).unwrap_or(usize::MAX))
        }
    }

    fn take_in(&mut self, at: usize, n_read: usize) {
        let data = &self.buffer[..n_read];
        let source = &mut self.sources[at];
        source.ear.listen(data);
        self.output_bytes += n_read as u64;
        if self.to_stream == 0 {
            self.tail.push(data);
        } else {
            self.to_stream -= n_read as u64;
            self.line.chunk(source.stream, data.to_vec());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pieces: &[&str], expected: bool) {
        let mut ear = PhraseDetector::default();
        for piece in pieces {
            ear.listen(piece.as_bytes());
        }
        assert_eq!(ear.is_found(), expected, "{pieces:?}");
    }

    #[test]
    fn the_shells_phrase_is_detected_in_any_pieces() {
        let words = "bash: 12 File size limit exceeded head -c 1G /dev/zero > large";
        check(&[words], true);
        for at in 0..words.len() {
            check(&[&words[..at], &words[at..]], true);
            check(&["x", &words[..at], "", &words[at..], "y"], true);
            check(&[&words[..at], "-", &words[at..]], !(11..33).contains(&at));
        }
        check(
            &words
                .chars()
                .map(String::from)
                .collect::<Vec<_>>()
                .iter()
                .map(String::as_str)
                .collect::<Vec<_>>(),
            true,
        );
        check(&["file size limit", " exceeded"], true);
        check(
            &["File size limit", "x", " exceeded", &"x".repeat(1000)],
            false,
        );
        check(&[], false);
    }
}
