use super::BREAK;
use super::LOOKED_AT;
use super::Tokens;

/// Makes broken control tokens whole in a text that comes in pieces.
///
/// What may still be the beginning of one waits for the next piece: of ordinary text at most one
/// character.
#[derive(Clone, Debug)]
pub struct Flow {
    tokens: Tokens,
    held: String,
}

impl Flow {
    pub fn new(tokens: &Tokens) -> Self {
        Self {
            tokens: tokens.clone(),
            held: String::new(),
        }
    }

    /// Takes a piece; returns what can be shown now.
    pub fn feed(&mut self, piece: &str) -> String {
        self.held.push_str(piece);
        let at = self.undecided().unwrap_or(self.held.len());
        let shown = self.tokens.restore_before(&self.held, at);
        self.held.drain(..at);
        shown
    }

    /// Returns what was held back, when nothing more comes.
    pub fn end(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        self.tokens.restore(&held).into_owned()
    }

    /// Returns where something begins of which only what follows tells whether it is a broken
    /// token.
    fn undecided(&self) -> Option<usize> {
        let mut begins = self
            .held
            .char_indices()
            .filter(|(_, c)| self.tokens.may_begin(*c));
        begins.find_map(|(at, first)| {
            let after = &self.held[at + first.len_utf8()..];
            let is_open = after.is_empty()
                || after
                    .strip_prefix(BREAK)
                    .is_some_and(|after| after.chars().nth(LOOKED_AT - 1).is_none())
                    && !self.tokens.is_broken(&self.held[at..]);
            is_open.then_some(at)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ordinary_text_does_not_wait() {
        let mut flow = Flow::new(&Tokens::default());
        assert_eq!(
            [
                flow.feed("a < b"),
                flow.feed(" [x"),
                flow.feed("] <"),
                flow.feed("p>"),
                flow.end()
            ],
            ["a < b", " [x", "] ", "<p>", ""]
        );
        assert_eq!(
            [
                flow.feed("<\u{200b}"),
                flow.feed("|im_e"),
                flow.feed("nd|>!"),
                flow.end()
            ],
            ["", "", "<|im_end|>!", ""]
        );
    }

    proptest! {
        #[test]
        fn pieces_come_to_the_same_as_the_whole(
            pieces in prop::collection::vec("([<|>\\[\\]a-c]|<s>|\u{200b}|<\u{200b}|<\u{200b}\\|im_end\\|>|[INST]|<\u{200b}<\u{200b}SYS>>|@@e|@\u{200b}@e){0,6}", 0..8),
            with_own in any::<bool>(),
        ) {
            let tokens = if with_own { Tokens::of_template("<SYS>{{ '@@e@@' }}", []) } else { Tokens::default() };
            let mut flow = Flow::new(&tokens);
            let mut shown: String = pieces.iter().map(|piece| flow.feed(piece)).collect();
            shown.push_str(&flow.end());
            let text = pieces.concat();
            prop_assert_eq!(shown, tokens.restore(&text).into_owned());
        }
    }
}
