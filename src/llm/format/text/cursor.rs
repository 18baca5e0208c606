//! A position in a text that may still grow.

/// Why parsing stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The text ends here; more of it would decide.
    NeedsMore,
    /// This is no call, whatever follows.
    NoMatch,
}

pub(super) type Read<T> = Result<T, Stop>;

/// Reads forward and records how far it looked.
/// Every byte that a parser examines passes through here, which guarantees two things: a decision
/// made before the end of the text holds whatever is appended, and the range of a failed attempt is
/// known, so that it is not scanned again.
#[derive(Debug)]
pub(super) struct Cursor<'t> {
    text: &'t str,
    at: usize,
    /// The text is complete.
    last: bool,
    /// The furthest byte that was examined.
    seen: usize,
    /// Elements within values are not matched to their closing tags.
    flat: bool,
    /// An element had no closing tag, so the value was read with elements ignored.
    unbalanced: bool,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(text: &'t str, at: usize, last: bool) -> Self {
        Self {
            text,
            at,
            last,
            seen: at,
            flat: false,
            unbalanced: false,
        }
    }

    /// Sets whether to read values without matching the elements in them: after one without a
    /// closing tag, searching again would be quadratic.
    pub(super) fn flat(self, flat: bool) -> Self {
        Self { flat, ..self }
    }

    /// Returns whether the text is complete.
    pub(super) fn is_last(&self) -> bool {
        self.last
    }

    pub(super) fn is_flat(&self) -> bool {
        self.flat
    }

    /// Stops matching elements where one has no closing tag in a complete text; returns whether it
    /// did.
    pub(super) fn flatten(&mut self) -> bool {
        self.unbalanced |= self.last && !self.flat;
        self.flat |= self.last;
        self.last
    }

    /// Stops matching elements for the rest of this cursor's text, complete or not.
    pub(super) fn stay_flat(&mut self) {
        self.flat = true;
    }

    pub(super) fn is_unbalanced(&self) -> bool {
        self.unbalanced
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn seen(&self) -> usize {
        self.seen
    }

    /// Moves back to an earlier position, to try another form or to leave the rest to another
    /// parser.
    pub(super) fn go(&mut self, at: usize) {
        self.at = at;
    }

    /// Returns the text from `begin` to here.
    pub(super) fn since(&self, begin: usize) -> &'t str {
        &self.text[begin..self.at]
    }

    fn see(&mut self, place: usize) {
        self.seen = self.seen.max(place.min(self.text.len()));
    }

    pub(super) fn peek(&mut self) -> Read<u8> {
        self.see(self.at);
        self.text
            .as_bytes()
            .get(self.at)
            .copied()
            .ok_or(Stop::NeedsMore)
    }

    /// Like [`Self::peek`]; `None` at the end of a complete text.
    pub(super) fn peek_or_end(&mut self) -> Read<Option<u8>> {
        match self.peek() {
            Ok(byte) => Ok(Some(byte)),
            Err(_) if self.last => Ok(None),
            Err(stop) => Err(stop),
        }
    }

    /// Returns the character here and advances past it.
    pub(super) fn next(&mut self) -> Read<char> {
        self.peek()?;
        let c = self.text[self.at..].chars().next().ok_or(Stop::NeedsMore)?;
        self.at += c.len_utf8();
        Ok(c)
    }

    /// Skips spaces and line ends.
    pub(super) fn spaces(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest
            .iter()
            .take_while(|byte| byte.is_ascii_whitespace())
            .count();
        self.see(self.at);
    }

    /// Consumes and returns bytes that match; needs a further byte, or a complete text, to know
    /// where they end.
    pub(super) fn run(&mut self, of: impl Fn(u8) -> bool) -> Read<&'t str> {
        let begin = self.at;
        while let Some(byte) = self.peek_or_end()? {
            if !of(byte) || !byte.is_ascii() {
                break;
            }
            self.at += 1;
        }
        Ok(self.since(begin))
    }

    /// Like [`Self::run`], but at most `n_max` bytes, after which no further byte is needed.
    pub(super) fn run_of(&mut self, n_max: usize, of: impl Fn(u8) -> bool) -> Read<&'t str> {
        let begin = self.at;
        while self.at - begin < n_max
            && self
                .peek_or_end()?
                .is_some_and(|byte| of(byte) && byte.is_ascii())
        {
            self.at += 1;
        }
        Ok(self.since(begin))
    }

    /// Returns the matching bytes available so far; more may follow.
    pub(super) fn ahead(&mut self, of: impl Fn(u8) -> bool) -> &'t str {
        let rest = &self.text[self.at..];
        let n = rest
            .bytes()
            .take_while(|byte| byte.is_ascii() && of(*byte))
            .count();
        self.see(self.at + n);
        &rest[..n]
    }

    /// Consumes `token` if it is here.
    pub(super) fn take(&mut self, token: &str) -> Read<bool> {
        let rest = &self.text.as_bytes()[self.at..];
        let same = rest
            .iter()
            .zip(token.as_bytes())
            .take_while(|(a, b)| a == b)
            .count();
        self.see(self.at + same);
        if same == token.len() {
            self.at += same;
            Ok(true)
        } else if same == rest.len() && !self.last {
            Err(Stop::NeedsMore)
        } else {
            Ok(false)
        }
    }

    /// Consumes a closing token. Where a complete text ends within the token, it counts as present:
    /// the rest was truncated.
    pub(super) fn close(&mut self, token: &str) -> Read<bool> {
        let rest = &self.text[self.at..];
        // One byte alone could begin anything.
        if self.last && rest.len() > 1 && token.starts_with(rest) {
            self.at = self.text.len();
            self.see(self.at);
            return Ok(true);
        }
        self.take(token)
    }

    /// Consumes the first of some closing tokens that is here.
    pub(super) fn close_any(&mut self, tokens: &[&str]) -> Read<bool> {
        let mut cut = false;
        for token in tokens {
            match self.close(token) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(_) => cut = true,
            }
        }
        if cut { Err(Stop::NeedsMore) } else { Ok(false) }
    }

    /// Returns whether the text is complete and ends within a token.
    pub(super) fn is_cut_within(&self, token: &str) -> bool {
        self.last && token.starts_with(&self.text[self.at..])
    }

    /// Returns whether the text is complete and ends within the tag that begins here.
    pub(super) fn ends_in_tag(&self) -> bool {
        const MOST: usize = 64;
        let rest = &self.text.as_bytes()[self.at..];
        self.last && rest.len() <= MOST && rest.first() == Some(&b'<') && !rest.contains(&b'>')
    }

    /// Consumes `token`; fails with `NoMatch` where it is absent.
    pub(super) fn expect(&mut self, token: &str) -> Read<()> {
        let is_cut = self.is_cut_within(token);
        if self.take(token)? {
            Ok(())
        } else {
            Err(if is_cut {
                Stop::NeedsMore
            } else {
                Stop::NoMatch
            })
        }
    }

    /// Consumes the first of some tokens that is here; needs more text where it ends within one of
    /// them.
    pub(super) fn take_any(&mut self, tokens: &[&str]) -> Read<bool> {
        let mut cut = false;
        for token in tokens {
            match self.take(token) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(_) => cut = true,
            }
        }
        if cut { Err(Stop::NeedsMore) } else { Ok(false) }
    }

    /// Advances to the next `byte` and returns its position; `None` where a complete text contains
    /// no more of them.
    pub(super) fn ahead_to(&mut self, byte: u8) -> Read<Option<usize>> {
        if let Some(n) = memchr::memchr(byte, &self.text.as_bytes()[self.at..]) {
            self.at += n;
            self.see(self.at);
            return Ok(Some(self.at));
        }
        self.see(self.text.len());
        if self.last {
            Ok(None)
        } else {
            Err(Stop::NeedsMore)
        }
    }

    /// Consumes everything up to and including `token`; returns what precedes it.
    pub(super) fn until(&mut self, token: &str) -> Read<&'t str> {
        let found = memchr::memmem::find(&self.text.as_bytes()[self.at..], token.as_bytes());
        let Some(found) = found else {
            self.see(self.text.len());
            return Err(Stop::NeedsMore);
        };
        let begin = self.at;
        self.at += found + token.len();
        self.see(self.at);
        Ok(&self.text[begin..begin + found])
    }
}
