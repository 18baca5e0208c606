//! A file's text as a model is shown it: UTF-16 decoded, and line ends without carriage returns.
//! Searches run over this text, so that a model finds what it was shown.

use std::io;
use std::io::Read;

use encoding_rs_io::DecodeReaderBytes;
use encoding_rs_io::DecodeReaderBytesBuilder;

use super::grep_pattern::LineEnds;

/// Bytes decoded at once.
const DECODED: usize = 8 * 1024;

/// Returns a reader of a file's text; `buffer` is reused from file to file.
pub(super) fn text<R: Read>(
    file: R,
    ends: LineEnds,
    buffer: &mut Vec<u8>,
) -> io::Result<WithoutReturns<DecodeReaderBytes<R, &mut Vec<u8>>>> {
    buffer.resize(DECODED, 0);
    let decoded = DecodeReaderBytesBuilder::new()
        .utf8_passthru(true)
        .strip_bom(true)
        .build_with_buffer(file, buffer)?;
    Ok(WithoutReturns {
        reader: decoded,
        is_plain: ends == LineEnds::Plain,
        next: None,
    })
}

/// Removes the carriage return before each line feed.
pub(super) struct WithoutReturns<R> {
    reader: R,
    is_plain: bool,
    /// A byte that was read and not returned yet: mostly a carriage return, for which the next byte
    /// decides whether it ends a line.
    next: Option<u8>,
}

impl<R: Read> Read for WithoutReturns<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.is_plain {
            return self.reader.read(buffer);
        }
        if buffer.len() < 2 {
            return self.read_one(buffer);
        }
        loop {
            let n_before = usize::from(self.next.is_some());
            if let Some(byte) = self.next {
                buffer[0] = byte;
            }
            let n = self.reader.read(&mut buffer[n_before..])?;
            self.next = None;
            if n == 0 {
                return Ok(n_before);
            }
            let mut n = n_before + n;
            if buffer[n - 1] == b'\r' {
                self.next = Some(b'\r');
                n -= 1;
            }
            if n > 0 {
                return Ok(joined(&mut buffer[..n]));
            }
        }
    }
}

impl<R: Read> WithoutReturns<R> {
    fn read_one(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(place) = buffer.first_mut() else {
            return Ok(0);
        };
        let mut byte = [0];
        let first = match self.next.take() {
            Some(next) => next,
            None if self.reader.read(&mut byte)? == 0 => return Ok(0),
            None => byte[0],
        };
        *place = first;
        if first == b'\r' {
            match self.reader.read(&mut byte)? {
                0 => {}
                _ if byte[0] == b'\n' => *place = b'\n',
                _ => self.next = Some(byte[0]),
            }
        }
        Ok(1)
    }
}

/// Removes carriage returns before line feeds in place; returns the remaining length.
fn joined(bytes: &mut [u8]) -> usize {
    let Some(first) = memchr::memmem::find(bytes, b"\r\n") else {
        return bytes.len();
    };
    let (mut to, mut from) = (first, first + 1);
    while from < bytes.len() {
        let end = memchr::memmem::find(&bytes[from..], b"\r\n").map_or(bytes.len(), |at| from + at);
        bytes.copy_within(from..end, to);
        to += end - from;
        from = end + 1;
    }
    to
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns at most so many bytes per read.
    struct Bit<'a>(&'a [u8], usize);

    impl Read for Bit<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let most = self.1.min(buffer.len());
            self.0.read(&mut buffer[..most])
        }
    }

    fn read(bytes: &[u8], ends: LineEnds, given: usize, asked: usize) -> Vec<u8> {
        let mut space = Vec::new();
        let mut reader = text(Bit(bytes, given), ends, &mut space).expect("a reader");
        let (mut out, mut part) = (Vec::new(), vec![0; asked]);
        loop {
            let n = reader.read(&mut part).expect("read");
            if n == 0 {
                return out;
            }
            out.extend_from_slice(&part[..n]);
        }
    }

    #[track_caller]
    fn check(bytes: &[u8], plain: &[u8]) {
        assert_eq!(read(bytes, LineEnds::Plain, 1000, 1000), plain);
        assert_eq!(read(plain, LineEnds::Plain, 1000, 1000), plain);
    }

    #[test]
    fn lines_are_read_as_they_are_shown() {
        check(
            b"one {\r\n  two\r\n}\r\n\r\nlast",
            b"one {\n  two\n}\n\nlast",
        );
        check(b"one\ntwo\n", b"one\ntwo\n");
        check(b"a\rb\r", b"a\rb\r");
        assert_eq!(read(b"a\r\r\n", LineEnds::Plain, 1000, 1000), b"a\r\n");
        check(b"", b"");
        check(b"\r\n", b"\n");
        check(b"\xef\xbb\xbfone\r\n", b"one\n");
        check(b"\xff\xfeo\0n\0e\0\r\0\n\0", b"one\n");
        check(
            b"\xfe\xff\0o\0n\0e\0\r\0\n\x0d\x0a",
            "one\n\u{d0a}".as_bytes(),
        );
    }

    #[test]
    fn carriage_returns_are_read_where_the_pattern_asks_for_them() {
        assert_eq!(
            read(b"one\r\ntwo\r\n", LineEnds::AsTheyAre, 3, 3),
            b"one\r\ntwo\r\n"
        );
    }

    proptest! {
        #[test]
        fn it_is_the_same_however_it_is_read(bytes in "[ab\r\n]{0,40}", given in 1_usize..5, asked in 1_usize..5) {
            let expected = bytes.replace("\r\n", "\n");
            prop_assert_eq!(read(bytes.as_bytes(), LineEnds::Plain, given, asked), expected.into_bytes());
        }
    }
}
