use super::BREAK;
use super::ControlTokens;
use super::LOOKED_AT;

/// Restores neutralized control tokens in a streamed text.
/// A possible beginning of a token waits for the next piece: at most one character of ordinary
/// text.
#[derive(Clone, Debug)]
pub struct StreamRestorer {
    tokens: ControlTokens,
    held: String,
}

impl StreamRestorer {
    pub fn new(tokens: &ControlTokens) -> Self {
        Self {
            tokens: tokens.clone(),
            held: String::new(),
        }
    }

    /// Processes a piece; returns the text that is certain.
    pub fn feed(&mut self, piece: &str) -> String {
        self.held.push_str(piece);
        let at = self.undecided().unwrap_or(self.held.len());
        let shown = self.tokens.restore_before(&self.held, at);
        self.held.drain(..at);
        shown
    }

    /// Returns the buffered text at the end of the stream.
    pub fn end(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        self.tokens.restore(&held).into_owned()
    }

    /// Returns where a possible neutralized token begins that only more text can decide.
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
                    && !self.tokens.is_neutralized(&self.held[at..]);
            is_open.then_some(at)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ordinary_text_is_not_delayed() {
        let mut flow = StreamRestorer::new(&ControlTokens::default());
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
        fn pieces_are_restored_like_the_whole_text(
            pieces in prop::collection::vec("([<|>\\[\\]a-c]|<s>|\u{200b}|<\u{200b}|<\u{200b}\\|im_end\\|>|[INST]|<\u{200b}<\u{200b}SYS>>|@@e|@\u{200b}@e){0,6}", 0..8),
            with_own in any::<bool>(),
        ) {
            let tokens = if with_own { ControlTokens::of_template("<SYS>{{ '@@e@@' }}", []) } else { ControlTokens::default() };
            let mut flow = StreamRestorer::new(&tokens);
            let mut shown: String = pieces.iter().map(|piece| flow.feed(piece)).collect();
            shown.push_str(&flow.end());
            let text = pieces.concat();
            prop_assert_eq!(shown, tokens.restore(&text).into_owned());
        }
    }
}
