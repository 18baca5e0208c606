//! A place in text that may still grow.

/// Why reading went no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The text ends here; what follows would decide.
    More,
    /// This is no call, whatever follows.
    No,
}

pub(super) type Read<T> = Result<T, Stop>;

/// Reads forward and remembers how far it looked.
///
/// All that a reader learns comes through here, so two things hold: a decision made before the end
/// of the text stands whatever is added, and what was looked at in vain is known, so that nobody
/// looks at it again.
#[derive(Debug)]
pub(super) struct Cursor<'t> {
    text: &'t str,
    at: usize,
    /// Nothing will be added to the text.
    last: bool,
    /// The furthest byte that was looked at.
    seen: usize,
    /// Elements within values are not followed to their ends.
    flat: bool,
    /// Such an element had no end, so that the value was read without following them.
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

    /// Reads values without following the elements in them: one without an end was met before, and
    /// once is enough to look for it.
    pub(super) fn flat(self, flat: bool) -> Self {
        Self { flat, ..self }
    }

    /// Returns whether nothing will be added to the text.
    pub(super) fn is_last(&self) -> bool {
        self.last
    }

    pub(super) fn is_flat(&self) -> bool {
        self.flat
    }

    /// Gives up following elements where one has no end in a text that does not grow; returns
    /// whether it does.
    pub(super) fn flatten(&mut self) -> bool {
        self.unbalanced |= self.last && !self.flat;
        self.flat |= self.last;
        self.last
    }

    /// Gives up following elements up to the end of what this cursor reads, however the text goes
    /// on.
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

    /// Goes to a place that was passed before, for another attempt or to leave the rest to others.
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
        self.text.as_bytes().get(self.at).copied().ok_or(Stop::More)
    }

    /// Like [`Self::peek`]; the end of a text that does not grow is no byte.
    pub(super) fn peek_or_end(&mut self) -> Read<Option<u8>> {
        match self.peek() {
            Ok(byte) => Ok(Some(byte)),
            Err(_) if self.last => Ok(None),
            Err(stop) => Err(stop),
        }
    }

    /// Returns the character here and steps over it.
    pub(super) fn next(&mut self) -> Read<char> {
        self.peek()?;
        let c = self.text[self.at..].chars().next().ok_or(Stop::More)?;
        self.at += c.len_utf8();
        Ok(c)
    }

    /// Steps over blanks and line ends.
    pub(super) fn spaces(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest
            .iter()
            .take_while(|byte| byte.is_ascii_whitespace())
            .count();
        self.see(self.at);
    }

    /// Steps over bytes of a kind and returns them; the text must go on behind them or be at its
    /// end.
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

    /// Like [`Self::run`], and at most `n_max` of them: of so many nobody waits for what follows.
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

    /// Returns the bytes of a kind that are here so far; more of them may come.
    pub(super) fn ahead(&mut self, of: impl Fn(u8) -> bool) -> &'t str {
        let rest = &self.text[self.at..];
        let n = rest
            .bytes()
            .take_while(|byte| byte.is_ascii() && of(*byte))
            .count();
        self.see(self.at + n);
        &rest[..n]
    }

    /// Steps over `token` if it is here.
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
            Err(Stop::More)
        } else {
            Ok(false)
        }
    }

    /// Steps over a token that ends something. Where the text ends within it, it counts as here:
    /// the rest was cut off.
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

    /// Steps over the first of some tokens that is here.
    pub(super) fn close_any(&mut self, tokens: &[&str]) -> Read<bool> {
        let mut cut = false;
        for token in tokens {
            match self.close(token) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(_) => cut = true,
            }
        }
        if cut { Err(Stop::More) } else { Ok(false) }
    }

    /// Returns whether the text, which does not grow, ends within a token.
    pub(super) fn is_cut_within(&self, token: &str) -> bool {
        self.last && token.starts_with(&self.text[self.at..])
    }

    /// Returns whether the text, which does not grow, ends within whatever tag begins here.
    pub(super) fn ends_in_tag(&self) -> bool {
        const MOST: usize = 64;
        let rest = &self.text.as_bytes()[self.at..];
        self.last && rest.len() <= MOST && rest.first() == Some(&b'<') && !rest.contains(&b'>')
    }

    /// Steps over `token`, without which this is no call.
    pub(super) fn expect(&mut self, token: &str) -> Read<()> {
        let is_cut = self.is_cut_within(token);
        if self.take(token)? {
            Ok(())
        } else {
            Err(if is_cut { Stop::More } else { Stop::No })
        }
    }

    /// Steps over the first of some tokens that is here; a text that ends within one of them
    /// decides nothing.
    pub(super) fn take_any(&mut self, tokens: &[&str]) -> Read<bool> {
        let mut cut = false;
        for token in tokens {
            match self.take(token) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(_) => cut = true,
            }
        }
        if cut { Err(Stop::More) } else { Ok(false) }
    }

    /// Goes to the next `byte` and returns where it is; there is none where the text does not grow
    /// and holds no more of them.
    pub(super) fn ahead_to(&mut self, byte: u8) -> Read<Option<usize>> {
        if let Some(n) = memchr::memchr(byte, &self.text.as_bytes()[self.at..]) {
            self.at += n;
            self.see(self.at);
            return Ok(Some(self.at));
        }
        self.see(self.text.len());
        if self.last { Ok(None) } else { Err(Stop::More) }
    }

    /// Steps over everything up to and with `token`; returns what is before it.
    pub(super) fn until(&mut self, token: &str) -> Read<&'t str> {
        let found = memchr::memmem::find(&self.text.as_bytes()[self.at..], token.as_bytes());
        let Some(found) = found else {
            self.see(self.text.len());
            return Err(Stop::More);
        };
        let begin = self.at;
        self.at += found + token.len();
        self.see(self.at);
        Ok(&self.text[begin..begin + found])
    }
}
