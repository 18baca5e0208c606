use std::io;

use super::Run;
use crate::wire::message::CHUNK;
use crate::wire::message::Stream;

/// What is read at the most after the end; only a process of another call that was handed the pipe can have more.
const MAX_REST: u64 = 4 * 1024 * 1024;

impl Run<'_> {
    /// Reads once from a source that may have something.
    pub(super) fn read(&mut self, at: usize) {
        let limit = self.piece();
        let source = &self.sources[at];
        match source.pipe.try_read(&mut self.buffer[..limit]) {
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            // A terminal whose other end is closed gives EIO.
            Ok(0) | Err(_) => self.sources[at].is_open = false,
            Ok(n_read) => self.take_in(source.stream, n_read),
        }
    }

    /// After the end: takes what is still in the pipes, then sends the tail, as far as there is credit.
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
                        let stream = self.sources[at].stream;
                        self.take_in(stream, n_read);
                    }
                    // All that could write has ended: nothing there now means nothing any more.
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
        if self.to_stream == 0 { CHUNK } else { CHUNK.min(self.line.room()).min(usize::try_from(self.to_stream).unwrap_or(usize::MAX)) }
    }

    fn take_in(&mut self, stream: Stream, n_read: usize) {
        let data = &self.buffer[..n_read];
        self.output_bytes += n_read as u64;
        if self.to_stream == 0 {
            self.tail.push(data);
        } else {
            self.to_stream -= n_read as u64;
            self.line.chunk(stream, data.to_vec());
        }
    }
}
