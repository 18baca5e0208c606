//! Finds where blocks end by their first closing token.
//! A text may open a block at every few bytes and close none of them, so searching for each one's
//! end separately would be quadratic. Results are cached, which costs one pass over the text per
//! token.

/// The positions of closing tokens in a text that does not change.
#[derive(Debug, Default)]
pub(super) struct BlockEnds {
    /// The next position of each token, searched from the latest start; `None`: it does not occur
    /// again.
    next: Vec<(&'static str, Option<usize>)>,
}

impl BlockEnds {
    /// Forgets all positions: the text has changed.
    pub(super) fn clear(&mut self) {
        self.next.clear();
    }

    /// Returns the end of the first of these tokens from `begin` on, and adds the number of
    /// examined bytes to `work`. `begin` may not decrease between calls.
    pub(super) fn first(
        &mut self,
        text: &str,
        begin: usize,
        closers: &'static [&'static str],
        work: &mut u64,
    ) -> Option<usize> {
        closers
            .iter()
            .filter_map(|closer| Some(self.place(text, begin, closer, work)? + closer.len()))
            .min()
    }

    fn place(
        &mut self,
        text: &str,
        begin: usize,
        closer: &'static str,
        work: &mut u64,
    ) -> Option<usize> {
        let known = self.next.iter().position(|(token, _)| *token == closer);
        if let Some((_, place)) = known.map(|at| self.next[at])
            && place.is_none_or(|place| place >= begin)
        {
            return place;
        }
        let place =
            memchr::memmem::find(&text.as_bytes()[begin..], closer.as_bytes()).map(|at| begin + at);
        *work += (place.unwrap_or(text.len()) - begin) as u64;
        match known {
            Some(at) => self.next[at].1 = place,
            None => self.next.push((closer, place)),
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_token_is_searched_for_once() {
        const CLOSERS: &[&str] = &["</a>", "</b>"];
        let text = format!("{}</b> </b>", "<a>".repeat(1000));
        let (mut ends, mut work) = (BlockEnds::default(), 0);
        for begin in (0..3000).step_by(3) {
            assert_eq!(ends.first(&text, begin, CLOSERS, &mut work), Some(3004));
        }
        assert!(work < 2 * text.len() as u64, "{work}");
        assert_eq!(
            ends.first(&text, 3001, CLOSERS, &mut work),
            Some(text.len())
        );
        assert_eq!(ends.first(&text, 3006, CLOSERS, &mut work), None);
        ends.clear();
        assert_eq!(ends.first("</a>", 0, CLOSERS, &mut work), Some(4));
    }
}
