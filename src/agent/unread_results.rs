//! Shortens results that the model has not read yet: it asked for them, so a summary cannot replace
//! them. If they are too long for the window each loses its middle, the longest ones first.

use podbay_llm::Message;
use podbay_session::History;

/// Minimum size that a result keeps, in bytes.
const LEAST: usize = 600;
/// Size of the notice that replaces a middle, in bytes.
const WORDS: usize = 160;

/// A result that is too long, and how much of it may stay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LongResult {
    pub(super) call: String,
    pub(super) text: String,
    /// In bytes, including the notice about what is left out.
    pub(super) most: usize,
}

impl LongResult {
    /// Returns the shortened text; `id` is the artifact with the complete one.
    pub(super) fn shortened(&self, id: &str) -> String {
        let most = self.most.saturating_sub(WORDS);
        // With short lines, a complete line says more than two halves.
        let head = self.text.floor_char_boundary(most * 2 / 3);
        let head = self.text[..head]
            .rfind('\n')
            .filter(|at| head - at < most / 6)
            .map_or(head, |at| at + 1);
        let tail = self.text.ceil_char_boundary(self.text.len() - most / 3);
        let tail = self.text[tail..]
            .find('\n')
            .filter(|at| *at < most / 6)
            .map_or(tail, |at| tail + at + 1);
        format!(
            "{}\n[{} bytes were left out here to make room; read_file with path \"artifact:{id}\" shows all of it, in parts with offset and \
             limit]\n{}",
            self.text[..head].trim_end(),
            tail - head,
            &self.text[tail..]
        )
    }
}

/// Returns how many messages at the end were not yet sent to the model: its last answer, with the
/// results of its calls. None if there were no results.
pub(super) fn count(history: &History) -> usize {
    let n_behind = history
        .messages()
        .rev()
        .position(|message| matches!(message, Message::Assistant { .. }))
        .unwrap_or(0);
    let has_result = history
        .messages()
        .rev()
        .take(n_behind)
        .any(|message| matches!(message, Message::ToolResult { .. }));
    if has_result { n_behind + 1 } else { 0 }
}

/// Returns which of these results to shorten to which size, so that together they lose `n_bytes`,
/// as far as possible.
pub(super) fn too_long(history: &History, n_bytes: usize) -> Vec<LongResult> {
    let results: Vec<(&String, &String)> = history
        .messages()
        .rev()
        .take(count(history))
        .filter_map(|message| {
            if let Message::ToolResult { call, text, .. } = message {
                Some((call, text))
            } else {
                None
            }
        })
        .collect();
    let most = most(
        results.iter().map(|(_, text)| text.len()).collect(),
        n_bytes,
    );
    let is_too_long = |text: &str| text.len() > most + WORDS;
    let found = results
        .into_iter()
        .rev()
        .filter(|(_, text)| is_too_long(text));
    found
        .map(|(call, text)| LongResult {
            call: call.clone(),
            text: text.clone(),
            most,
        })
        .collect()
}

/// Returns the maximum length with which all of them together lose `n_bytes`.
fn most(mut sizes: Vec<usize>, n_bytes: usize) -> usize {
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let mut above = 0;
    for (at, size) in sizes.iter().enumerate() {
        above += size;
        let n = at + 1;
        let next = sizes.get(n).copied().unwrap_or(0);
        // Truncated to the next one's length these lose enough.
        if above - next * n >= n_bytes {
            return ((above - n_bytes) / n).max(LEAST);
        }
    }
    LEAST
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use podbay_event::ToolCall;
    use podbay_soak as soak;

    fn history(results: &[&str]) -> History {
        let mut history = History::default();
        history.say("compare them");
        let call = |n: usize| ToolCall {
            id: format!("c{n}"),
            name: "read_file".into(),
            arguments: "{}".into(),
        };
        let calls = (0..results.len()).map(call).collect();
        history.push(Message::Assistant {
            text: String::new(),
            thinking: String::new(),
            calls,
            raw: None,
        });
        for (n, text) in results.iter().enumerate() {
            history.push(Message::ToolResult {
                call: format!("c{n}"),
                name: "read_file".into(),
                text: (*text).into(),
                is_error: false,
            });
        }
        history
    }

    #[test]
    fn the_last_answers_results_are_unread_until_the_next_one() {
        let mut history = history(&["one", "two"]);
        assert_eq!(count(&history), 3);
        history.push(Message::user("Note from Podbay: continue"));
        assert_eq!(count(&history), 4);
        history.push(Message::assistant("Read."));
        assert_eq!(count(&history), 0);
        history.say("and now?");
        assert_eq!((count(&history), count(&History::default())), (0, 0));
    }

    #[test]
    fn the_longest_results_lose_their_middles_and_others_stay() {
        let (long, short) = ("a line of it\n".repeat(1000), "short\n".repeat(100));
        let history = history(&[&long, &short, &long]);
        let found = too_long(&history, 20_000);
        assert_eq!(
            found
                .iter()
                .map(|found| found.call.as_str())
                .collect::<Vec<_>>(),
            ["c0", "c2"]
        );
        let text = found[0].shortened("c0");
        assert!(
            text.len() <= 3000
                && text.starts_with("a line of it\n")
                && text.ends_with("a line of it\n"),
            "{} {text}",
            text.len()
        );
        assert!(
            text.lines().all(|line| line == "a line of it"
                || line.starts_with('[') && line.contains("artifact:c0")),
            "{text}"
        );
        assert_eq!(too_long(&history, usize::MAX / 2)[0].most, LEAST);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(soak::whole_or(256, 16)))]
        #[test]
        fn results_lose_as_much_as_needed(texts in prop::collection::vec("[a-zé\n]{0,5000}", 1..8), share in 0..100_usize) {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let (history, all) = (history(&texts), texts.iter().map(|text| text.len()).sum::<usize>());
            let n_bytes = all * share / 100;
            let found = too_long(&history, n_bytes);
            let mut lost = 0;
            for long in &found {
                let short = long.shortened("an-id");
                prop_assert!(short.len() < long.text.len() && short.len() <= long.most + WORDS, "{} {}", short.len(), long.most);
                lost += long.text.len() - short.len();
            }
            // A result barely longer than its share stays complete.
            let whole = texts.len() * WORDS;
            prop_assert!(lost + whole >= n_bytes || found.iter().all(|long| long.most == LEAST), "{lost} of {n_bytes}");
        }
    }
}
