//! Where in its line, and in which code, a text is: what stands in code is no call.

use super::openers;

/// Most marks of code that are taken together: a model that goes in circles may write nothing else.
pub(super) const MARKS_MAX: usize = 128;
/// Bytes within a line at which something may begin or end; looked up, as nearly every byte of an
/// answer is none of them.
static STOPS: [bool; 256] = {
    let mut stops = [false; 256];
    let mut byte = 0_u8;
    loop {
        stops[byte as usize] = matches!(byte, b'\n' | b'`') || openers::may_begin(byte);
        if byte == u8::MAX {
            break stops;
        }
        byte += 1;
    }
};

#[derive(Debug)]
pub(super) struct Line {
    /// Nothing but blanks so far.
    blank: bool,
    /// Code within the line: how many marks began it.
    code: usize,
    /// The fence that is open: its mark, and how many.
    fence: Option<(u8, usize)>,
    /// `>>>` says to whom something goes, so that it counts within a line as well.
    addresses: bool,
}

impl Default for Line {
    fn default() -> Self {
        Self {
            blank: true,
            code: 0,
            fence: None,
            addresses: false,
        }
    }
}

impl Line {
    pub(super) fn is_blank(&self) -> bool {
        self.blank
    }

    /// Begins anew, outside of all code.
    pub(super) fn restart(&mut self) {
        *self = Self {
            addresses: self.addresses,
            ..Self::default()
        };
    }

    /// Says that this text is written by a model that says to whom each part of it goes.
    pub(super) fn addresses(&mut self) {
        self.addresses = true;
    }

    /// Goes on to the next place where something may begin, and returns it, or the end of the text.
    ///
    /// `in_the_open` says whether calls that no token marks are looked for.
    pub(super) fn scan(
        &mut self,
        text: &str,
        begin: usize,
        last: bool,
        in_the_open: bool,
    ) -> usize {
        let bytes = text.as_bytes();
        let mut at = begin;
        let addresses = in_the_open && self.addresses;
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'\n' => {
                    self.blank = true;
                    self.code = 0;
                }
                b' ' | b'\t' | b'\r' => {}
                _ if self.fence.is_some() => {
                    let (mark, n) = self.fence.unwrap_or_default();
                    if self.blank && byte == mark {
                        let run = bytes[at..]
                            .iter()
                            .take(MARKS_MAX)
                            .take_while(|byte| **byte == mark)
                            .count();
                        if at + run == bytes.len() && run < MARKS_MAX && !last {
                            return at;
                        }
                        if run >= n {
                            self.fence = None;
                        }
                        at += run;
                        self.blank = false;
                        continue;
                    }
                    self.blank = false;
                    at = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |n| at + n);
                    continue;
                }
                b'`' => return at,
                b'~' if self.blank => return at,
                _ if self.code > 0 => self.blank = false,
                _ if openers::may_begin(byte) || addresses && byte == b'>' => return at,
                _ if self.blank
                    && in_the_open
                    && (byte.is_ascii_alphabetic() || matches!(byte, b'{' | b'>' | b'_')) =>
                {
                    return at;
                }
                _ => {
                    self.blank = false;
                    let next = |byte: &u8| STOPS[usize::from(*byte)] || addresses && *byte == b'>';
                    at = bytes[at..]
                        .iter()
                        .position(next)
                        .map_or(bytes.len(), |n| at + n);
                    continue;
                }
            }
            at += 1;
        }
        at
    }

    /// Steps over text that is content.
    pub(super) fn pass(&mut self, text: &str) {
        match text.rfind('\n') {
            Some(at) => {
                self.blank = text[at..].trim().is_empty();
                self.code = 0;
            }
            None => self.blank &= text.trim().is_empty(),
        }
    }

    /// Steps over marks that begin or end code.
    pub(super) fn code(&mut self, mark: u8, n: usize) {
        if self.blank && n >= 3 && self.code == 0 {
            self.fence = Some((mark, n));
        } else if mark == b'`' {
            if self.code == 0 {
                self.code = n;
            } else if self.code == n {
                self.code = 0;
            }
        }
        self.blank = false;
    }
}
