//! Whether a model that was asked about a call meant it, told by the answer that it gives then.

use serde_json::Value;

use super::task::Task;
use crate::event::ToolCall;
use crate::llm::Reply;
use crate::llm::Unsure;
use crate::llm::shown;
use crate::llm::text::only_shows;

/// Words by which an answer that holds nothing else says that what was asked about was shown.
const ONLY_SHOWN: [&str; 12] = [
    "for you to read",
    "only show",
    "just show",
    "not meant",
    "n't meant",
    "an example",
    "examples",
    "a quote",
    "quoted",
    "ein beispiel",
    "nur gezeigt",
    "nicht gemeint",
];
/// Longest answer of that kind, in bytes.
const MAX_REMARK: usize = 200;

/// "No" in the languages that models are asked in most, as an answer begins with it.
const NO: [&str; 15] = ["no", "nope", "nein", "non", "não", "nao", "nee", "nej", "nei", "nie", "nem", "нет", "ні", "όχι", "không"];
/// Words that take a "no" back: it denied that the call was only shown.
const INSISTS: [&str; 13] = [
    "i meant it",
    "i mean it",
    "i did mean it",
    "it was meant",
    "it is meant",
    "not quoted",
    "n't quoted",
    "not a quote",
    "not an example",
    "n't an example",
    "not just show",
    "not only show",
    "war ernst gemeint",
];
/// The same where no blank parts the words.
const JOINED: [&str; 6] = ["不是", "不，", "不。", "いいえ", "아니요", "아니오"];

/// Words of a line before a colon that shows what stands behind it.
const SHOWN: [&str; 20] = [
    "example",
    "examples",
    "line",
    "lines",
    "quote",
    "quotes",
    "quoted",
    "quotation",
    "show",
    "shows",
    "showed",
    "shown",
    "format",
    "syntax",
    "written",
    "wrote",
    "beispiel",
    "zeile",
    "zitat",
    "ejemplo",
];
/// Words by which an answer, wherever it has them, says that a call is not to be made.
const REFUSES: [&str; 16] = [
    "not run",
    "never run",
    "n't run",
    "not make it",
    "n't make it",
    "not execute",
    "n't execute",
    "never execute",
    "not carry",
    "not be run",
    "not to be run",
    "not meant",
    "n't meant",
    "only show",
    "just show",
    "an example",
];
/// Words by which an answer that begins with "no" acts all the same.
const ACTS: [&str; 10] = ["i run", "i'll", "i will", "i am going to", "i'm going to", "let me", "now i", "i make", "i call", "running"];

/// What an answer says of the calls that it was asked about and has again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Meant,
    Shown,
    /// Neither is plain: it is asked about once more.
    Unclear,
}

impl Task {
    /// Takes the calls that the model makes again right when it was asked about them, where they end its answer and the words before them neither
    /// show nor refuse them: they were meant. With a plain "no" before them they were not, wherever they stand in the text. All else is no answer
    /// to the question.
    pub(super) fn settle(&self, reply: &mut Reply) {
        if let Some(unsure) = reply.unsure.as_ref().filter(|unsure| self.is_confirmed(&unsure.calls)) {
            match said(&reply.text, &unsure.text) {
                Said::Meant => reply.confirm(),
                Said::Shown => reply.unsure = None,
                Said::Unclear => {}
            }
            return;
        }
        if !self.is_confirmed(&reply.calls) {
            return;
        }
        // One that the server reports is made, whatever was said.
        let Some(source) = &reply.source else { return };
        let said = said(source, &reply.text);
        if said == Said::Meant {
            return;
        }
        let words = std::mem::replace(&mut reply.text, source.clone());
        let calls = std::mem::take(&mut reply.calls);
        reply.source = None;
        reply.recovered = false;
        reply.unsure = (said == Said::Unclear).then_some(Unsure { calls, text: words, is_shown: false });
    }

    /// Returns whether an answer neither shows nor refuses the calls that end it.
    pub(super) fn means(source: &str, reply: &Reply) -> bool {
        said(source, &reply.text) == Said::Meant
    }

    /// Returns whether the model makes the very calls again that it was asked about.
    pub(super) fn is_confirmed(&self, calls: &[ToolCall]) -> bool {
        let value = |call: &ToolCall| serde_json::from_str::<Value>(&call.arguments).unwrap_or_else(|_| call.arguments.as_str().into());
        !calls.is_empty()
            && calls.len() == self.open.asked.len()
            && calls.iter().zip(&self.open.asked).all(|(again, call)| again.name == call.name && value(again) == value(call))
    }
}

/// Returns whether an answer only says that what the model was asked about was shown to the person: what they are to read stands in its answer
/// before that, which it was to give again.
pub(super) fn only_denies(answer: &str) -> bool {
    let answer = answer.trim();
    let is_remark = answer.len() <= MAX_REMARK && !answer.contains(['\n', '<', '{', '[', '`', ':']);
    let lower = answer.to_lowercase().replace('\u{2019}', "'");
    is_remark && (denies(answer) || ONLY_SHOWN.iter().any(|words| lower.contains(words)))
}

/// Returns what a whole answer says of its calls, beside which it has these words.
fn said(whole: &str, words: &str) -> Said {
    if denies(whole) {
        let begin = beginning(whole);
        return if ACTS.iter().any(|acts| begin.contains(acts)) { Said::Unclear } else { Said::Shown };
    }
    let (whole, words) = (shown::undressed(whole), shown::undressed(words));
    let (whole, words) = (whole.trim(), words.trim());
    if !whole.starts_with(words) {
        // Some of them stand behind a call.
        return Said::Unclear;
    }
    if insists(whole) {
        return Said::Meant;
    }
    let lower = words.to_lowercase().replace('\u{2019}', "'");
    let line = lower.rsplit('\n').next().unwrap_or_default();
    let introduces = line.ends_with(':') && line.split(|c: char| !c.is_alphanumeric()).any(|word| SHOWN.contains(&word));
    if introduces || only_shows(words) || REFUSES.iter().any(|refuses| lower.contains(refuses)) { Said::Unclear } else { Said::Meant }
}

/// Returns the first words of an answer, before any call.
fn beginning(answer: &str) -> String {
    let begin = answer.trim_start().chars().take(200).collect::<String>().to_lowercase().replace('\u{2019}', "'");
    // The call itself says nothing of it.
    begin.split(['<', '{', '[', '`']).next().unwrap_or_default().to_owned()
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
    let words = beginning(answer);
    INSISTS.iter().any(|insists| words.contains(insists))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_meant_where_it_ends_an_answer_that_neither_shows_nor_refuses_it() {
        let call = "<tool_call>\n{\"name\": \"bash\"}\n</tool_call>";
        for (before, expected) in [
            ("", Said::Meant),
            ("Yes, I meant it:\n", Said::Meant),
            ("No problem, I make it:\n", Said::Meant),
            ("No, this was not an example. I run it now:\n", Said::Meant),
            ("I run it now:\n```json\n", Said::Meant),
            ("No, I only showed it:\n", Said::Shown),
            ("No. I run it now:\n", Said::Unclear),
            ("The line in the file is this:\n", Said::Unclear),
            ("It was a quote:\n", Said::Unclear),
            ("I only show it again.\n", Said::Unclear),
            ("I will not run it, as it is dangerous.\nHere it is again:\n", Said::Unclear),
            ("For example:\n", Said::Unclear),
            ("> ", Said::Unclear),
        ] {
            assert_eq!(said(&format!("{before}{call}\n"), before), expected, "{before}");
        }
        for behind in ["That does it.", "\nI wait."] {
            assert_eq!(said(&format!("Yes.\n{call}\n{behind}"), &format!("Yes.\n\n{behind}")), Said::Unclear, "{behind}");
        }
    }

    #[test]
    fn a_remark_on_a_call_is_no_answer_of_its_own() {
        for answer in
            ["No, that is for you to read.", "No.", "Nein, das war nur ein Beispiel.", "It was only an example.", "I quoted the file."]
        {
            assert!(only_denies(answer), "{answer}");
        }
        for answer in [
            "",
            "Done.",
            "No problem, I did it.",
            "It is written so:",
            "No. The whole answer: it is short.",
            "No, it is this:\n\n{\"name\": \"bash\"}",
            "The tests were not run.",
        ] {
            assert!(!only_denies(answer), "{answer}");
        }
        assert!(!only_denies(&format!("No. {}", "The file says many things. ".repeat(9))), "it is long");
    }

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
