//! Whether a model that was asked about a call meant it, told by the answer that it gives then.

use serde_json::Value;

use super::task::Task;
use crate::event::ToolCall;
use crate::llm::Reply;

/// "No" in the languages that models are asked in most, as an answer begins with it.
const NO: [&str; 15] = ["no", "nope", "nein", "non", "não", "nao", "nee", "nej", "nei", "nie", "nem", "нет", "ні", "όχι", "không"];
/// Words that take a "no" back: it denied that the call was only shown.
const INSISTS: [&str; 11] = [
    "i meant it",
    "i mean it",
    "i did mean it",
    "it was meant",
    "it is meant",
    "not quoted",
    "n't quoted",
    "not a quote",
    "not just show",
    "not only show",
    "war ernst gemeint",
];
/// The same where no blank parts the words.
const JOINED: [&str; 6] = ["不是", "不，", "不。", "いいえ", "아니요", "아니오"];

impl Task {
    /// Takes the calls that the model makes again right when it was asked about them, whatever follows: they were meant. With a plain "no" before
    /// them they were not, wherever they stand in the text.
    pub(super) fn settle(&self, reply: &mut Reply) {
        let denies = denies(&reply.text);
        let is_unsure = reply.unsure.as_ref().is_some_and(|unsure| self.is_confirmed(&unsure.calls));
        match (is_unsure, denies) {
            (true, false) => reply.confirm(),
            (true, true) => reply.unsure = None,
            (false, true) if self.is_confirmed(&reply.calls) => {
                if let Some(source) = reply.source.take() {
                    reply.text = source;
                    reply.calls.clear();
                    reply.recovered = false;
                }
            }
            (false, _) => {}
        }
    }

    /// Returns whether the model makes the very calls again that it was asked about.
    pub(super) fn is_confirmed(&self, calls: &[ToolCall]) -> bool {
        let value = |call: &ToolCall| serde_json::from_str::<Value>(&call.arguments).unwrap_or_else(|_| call.arguments.as_str().into());
        !calls.is_empty()
            && calls.len() == self.open.asked.len()
            && calls.iter().zip(&self.open.asked).all(|(again, call)| again.name == call.name && value(again) == value(call))
    }
}

/// Returns whether an answer begins with a plain "no": "No problem" is none.
fn denies(whole: &str) -> bool {
    let begin = whole.trim_start_matches(|c: char| !c.is_alphabetic()).chars().take(32);
    let answer = begin.collect::<String>().to_lowercase();
    let end = answer.find(|c: char| !c.is_alphabetic()).unwrap_or(answer.len());
    let (word, rest) = answer.split_at(end);
    let is_plain = !rest.trim_start_matches([' ', '\t']).starts_with(char::is_alphanumeric);
    (NO.contains(&word) && is_plain || JOINED.iter().any(|no| answer.starts_with(no))) && !insists(whole)
}

/// Returns whether an answer says, in its first words, that a call was meant all the same.
fn insists(answer: &str) -> bool {
    let begin = answer.trim_start().chars().take(200).collect::<String>().to_lowercase().replace('\u{2019}', "'");
    // The call itself says nothing of it.
    let words = begin.split(['<', '{', '[', '`']).next().unwrap_or_default();
    INSISTS.iter().any(|insists| words.contains(insists))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_no_is_known_in_many_languages() {
        for answer in [
            "No.",
            "No, I only showed it:",
            "**No** – it is an example",
            "no\nIt was shown.",
            "Nein, das war ein Beispiel.",
            "No, it was not meant.",
            "No, I quoted it:",
            "不是。",
            "いいえ、",
        ] {
            assert!(denies(answer), "{answer}");
        }
        for answer in [
            "",
            "No problem, I run it:",
            "Now I run it:",
            "Not only that.",
            "Yes.",
            "Nothing else:",
            "不过",
            "I meant it. No, really.",
            "No, it was not quoted, I meant it:",
            "No \u{2013} it wasn\u{2019}t quoted.\n<tool_call>",
        ] {
            assert!(!denies(answer), "{answer}");
        }
    }
}
