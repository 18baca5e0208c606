//! Where blocks end by their first closing token.
//!
//! A text may begin a block at every few bytes and end none of them, so that looking for each one's
//! end would take as long as all of the text is. What was looked for once is kept, and going
//! through the text once for each token is all that it costs.

/// The places of closing tokens in a text that does not change.
#[derive(Debug, Default)]
pub(super) struct Ends {
    /// Where each token stands next, from the place on from which it was looked for last; `None`:
    /// nowhere.
    next: Vec<(&'static str, Option<usize>)>,
}

impl Ends {
    /// Forgets all places: the text is another one.
    pub(super) fn clear(&mut self) {
        self.next.clear();
    }

    /// Returns where the first of these tokens from `begin` on ends, and adds to `work` the bytes
    /// that were looked at. Later calls may not begin before earlier ones.
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
    fn each_token_is_looked_for_once() {
        const CLOSERS: &[&str] = &["</a>", "</b>"];
        let text = format!("{}</b> </b>", "<a>".repeat(1000));
        let (mut ends, mut work) = (Ends::default(), 0);
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
