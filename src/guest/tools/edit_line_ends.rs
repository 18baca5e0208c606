//! Line ends of text that is inserted into a file.

use std::ops::Range;

use memchr::memmem;

/// The line ends of a text, queried at ascending positions.
pub(super) struct LineEndFitter<'a> {
    text: &'a [u8],
    /// The first newline at or after the last queried position. A one-line text can have a hundred
    /// thousand places; searching from each would read it as often.
    next: Option<usize>,
    last: Option<usize>,
}

impl<'a> LineEndFitter<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self {
            text,
            next: memchr::memchr(b'\n', text),
            last: memchr::memrchr(b'\n', text),
        }
    }

    /// Gives the new text the line ends of its place, unless the model wrote `\r` itself and so
    /// means it exactly.
    ///
    /// Places are queried in ascending order.
    pub(super) fn fit(&mut self, new: &[u8], old: &[u8], place: &Range<usize>) -> Vec<u8> {
        let there = &self.text[place.clone()];
        if there != old && is_mixed(there) {
            return with_own_line_ends(&without_returns(new).0, there);
        }
        let has_returns = self.has_returns(place.start);
        let (plain, returns) = without_returns(new);
        if has_returns && !(old.contains(&b'\r') && there == old) {
            return with_returns(&plain);
        }
        // If the model's old text also had to be freed of `\r`, its `\r\n` is a habit and not a
        // wish.
        if !has_returns && !returns.is_empty() && old.contains(&b'\r') && there != old {
            return plain;
        }
        new.to_vec()
    }

    /// Returns whether the first line that ends after this position, or else the last one before,
    /// ends with `\r\n`.
    fn has_returns(&mut self, from: usize) -> bool {
        if self.next.is_some_and(|at| at < from) {
            self.next = memchr::memchr(b'\n', &self.text[from..]).map(|at| from + at);
        }
        self.next
            .or(self.last)
            .is_some_and(|at| at > 0 && self.text[at - 1] == b'\r')
    }
}

fn is_mixed(text: &[u8]) -> bool {
    let (n_returns, n) = n_line_ends(text);
    n_returns > 0 && n_returns < n
}

/// Returns how many lines end in `\r\n`, and how many end at all.
pub(super) fn n_line_ends(text: &[u8]) -> (usize, usize) {
    (
        memmem::find_iter(text, b"\r\n").count(),
        memchr::memchr_iter(b'\n', text).count(),
    )
}

/// Gives a text the line ends of the text that it replaces: unchanged first and last lines keep
/// their own, and those between get the end of the first line removed.
fn with_own_line_ends(plain: &[u8], there: &[u8]) -> Vec<u8> {
    let bare = |line: &&[u8]| {
        line.strip_suffix(b"\r\n")
            .map(|line| [line, b"\n"].concat())
            .unwrap_or(line.to_vec())
    };
    let new: Vec<&[u8]> = plain.split_inclusive(|byte| *byte == b'\n').collect();
    let old: Vec<&[u8]> = there.split_inclusive(|byte| *byte == b'\n').collect();
    let stays = |(new, old): &(&&[u8], &&[u8])| **new == bare(old);
    let n_head = new.iter().zip(&old).take_while(stays).count();
    let n_tail = new[n_head..]
        .iter()
        .rev()
        .zip(old[n_head..].iter().rev())
        .take_while(stays)
        .count();
    let (gone, tail) = old[n_head..].split_at(old.len() - n_head - n_tail);
    let ended = gone
        .iter()
        .chain(old[..n_head].iter().rev())
        .find(|line| line.ends_with(b"\n"));
    let between = new[n_head..new.len() - n_tail].concat();
    let between = if ended.is_some_and(|line| line.ends_with(b"\r\n")) {
        with_returns(&between)
    } else {
        between
    };
    [old[..n_head].concat(), between, tail.concat()].concat()
}

fn with_returns(plain: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(plain.len() + plain.len() / 16);
    for line in plain.split_inclusive(|byte| *byte == b'\n') {
        match line.strip_suffix(b"\n") {
            Some(line) => {
                out.extend_from_slice(line);
                out.extend_from_slice(b"\r\n");
            }
            None => out.extend_from_slice(line),
        }
    }
    out
}

/// Removes the `\r` of every `\r\n`; also returns where, as positions of the `\n` in the result.
pub(super) fn without_returns(text: &[u8]) -> (Vec<u8>, Vec<usize>) {
    let mut plain = Vec::with_capacity(text.len());
    let mut returns = Vec::new();
    let mut rest = text;
    while let Some(at) = memmem::find(rest, b"\r\n") {
        plain.extend_from_slice(&rest[..at]);
        returns.push(plain.len());
        plain.push(b'\n');
        rest = &rest[at + 2..];
    }
    plain.extend_from_slice(rest);
    (plain, returns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_takes_the_ends_of_its_line_or_of_the_line_before() {
        let text = b"a a\na a\r\na a";
        let mut ends = LineEndFitter::new(text);
        let fitted = [0, 2, 4, 6, 9, 11].map(|at| ends.fit(b"\n", b"a", &(at..at + 1)));
        let expected: [&[u8]; 6] = [b"\n", b"\n", b"\r\n", b"\r\n", b"\r\n", b"\r\n"];
        assert_eq!(fitted, expected);
    }
}
