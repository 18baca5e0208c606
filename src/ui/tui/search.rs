//! Ctrl-R: a message of the history by some of its words.

/// What is looked for, and which of the messages that hold it is shown.
#[derive(Debug, Default)]
pub(super) struct Search {
    pub(super) words: String,
    skipped: usize,
}

impl Search {
    /// Returns the newest message with these words but those that were passed over.
    pub(super) fn found<'a>(&self, history: &'a [String]) -> Option<&'a String> {
        let words = self.words.to_lowercase();
        let mut holding = history
            .iter()
            .rev()
            .filter(|message| message.to_lowercase().contains(&words));
        holding.nth(self.skipped)
    }

    pub(super) fn type_letter(&mut self, letter: char) {
        self.words.push(letter);
        self.skipped = 0;
    }

    pub(super) fn backspace(&mut self) {
        self.words.pop();
        self.skipped = 0;
    }

    pub(super) fn older(&mut self, history: &[String]) {
        self.skipped += 1;
        if self.found(history).is_none() {
            self.skipped -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_message_that_holds_the_words_comes_first() {
        let history = ["fix the Test", "run it", "test again"].map(str::to_owned);
        let mut search = Search::default();
        search.type_letter('t');
        search.type_letter('e');
        assert_eq!(search.found(&history), Some(&history[2]));
        search.older(&history);
        assert_eq!(search.found(&history), Some(&history[0]));
        search.older(&history);
        assert_eq!(search.found(&history), Some(&history[0]));
        search.type_letter('x');
        assert_eq!(search.found(&history), None);
    }
}
