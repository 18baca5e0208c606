//! Tracks whether the current position is in a code fence or inline code, where a call does not
//! count, and whether it begins a line.

use super::openers;

/// Most backticks that are read as one mark: a looping model may write nothing else.
pub(super) const MARKS_MAX: usize = 128;
/// Bytes within a line at which something may begin or end. A table, as nearly every byte of an
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
pub(super) struct CodeContext {
    /// Only whitespace so far on this line.
    blank: bool,
    /// Inline code: how many backticks opened it, 0 for none.
    code: usize,
    /// The open fence: its character, and how many opened it.
    fence: Option<(u8, usize)>,
    /// `>>>` names a recipient, so it counts within a line as well.
    addresses: bool,
}

impl Default for CodeContext {
    fn default() -> Self {
        Self {
            blank: true,
            code: 0,
            fence: None,
            addresses: false,
        }
    }
}

impl CodeContext {
    pub(super) fn is_blank(&self) -> bool {
        self.blank
    }

    /// Starts anew, outside of all code.
    pub(super) fn restart(&mut self) {
        *self = Self {
            addresses: self.addresses,
            ..Self::default()
        };
    }

    /// Notes that the model names a recipient for each part of the text.
    pub(super) fn addresses(&mut self) {
        self.addresses = true;
    }

    /// Returns the next position where something may begin, or the end of the text, and updates the
    /// state up to there.
    /// `in_the_open` says whether to look for unmarked calls.
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

    /// Advances past text that is content.
    pub(super) fn pass(&mut self, text: &str) {
        match text.rfind('\n') {
            Some(at) => {
                self.blank = text[at..].trim().is_empty();
                self.code = 0;
            }
            None => self.blank &= text.trim().is_empty(),
        }
    }

    /// Advances past marks that open or close code.
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
