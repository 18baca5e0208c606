//! Whether a model that was asked about a call meant it, told by the answer that it gives then.

use super::Agent;
use super::task::Task;
use podbay_event::ToolCall;
use podbay_llm::Reply;
use podbay_llm::Unsure;
use podbay_llm::shown;
use podbay_llm::text::only_shows;

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

/// "Yes" in the same languages.
const YES: [&str; 18] =
    ["yes", "yep", "yeah", "yup", "ja", "jawohl", "oui", "sí", "sì", "sim", "да", "так", "tak", "ano", "igen", "ναι", "evet", "vâng"];
/// The same where no blank parts the words.
const JOINED_YES: [&str; 7] = ["是的", "是，", "是。", "はい", "네", "예,", "예."];

/// Words of a line before a colon that shows what stands behind it.
const SHOWN: [&str; 12] =
    ["example", "examples", "quote", "quotes", "quoted", "quotation", "show", "shows", "showed", "shown", "beispiel", "zitat"];
/// Words of such a line that are as well those of our own question, or of how a call is made.
const OF_FORM: [&str; 9] = ["line", "lines", "format", "form", "syntax", "written", "wrote", "zeile", "ejemplo"];
/// Words that repeat what the model was asked for: the call itself, again, on a line of its own, as plain JSON.
const AS_ASKED: [&str; 16] = [
    "again",
    "asked",
    "its own",
    "json",
    "my call",
    "once more",
    "one line",
    "own line",
    "requested",
    "separate line",
    "single line",
    "the call",
    "this call",
    "tool call",
    "erneut",
    "noch einmal",
];
/// Words of a line that speaks of something which holds a call.
const HOLDERS: [&str; 13] =
    ["file", "readme", "page", "log", "document", "output", "result", "text", "calls", "there", "datei", "seite", "says"];
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

impl Agent {
    /// Takes the calls that the model makes again right when it was asked about them, where they end its answer and the words before them neither
    /// show nor refuse them: they were meant. With a plain "no" before them they were not, wherever they stand in the text. All else is no answer
    /// to the question.
    pub(super) fn take_confirmed(&self, task: &Task, reply: &mut Reply) {
        // It may have begun to say so in the pieces before this one.
        let before = task.open.pieces.concat();
        if let Some(unsure) = reply.unsure.as_ref().filter(|unsure| self.is_confirmed(task, &unsure.calls)) {
            match said(&(before.clone() + &reply.text), &(before + &unsure.text)) {
                Said::Meant => reply.confirm(),
                Said::Shown => reply.unsure = None,
                Said::Unclear => {}
            }
            return;
        }
        if !self.is_confirmed(task, &reply.calls) {
            return;
        }
        // One that the server reports is made, whatever was said.
        let Some(source) = &reply.source else { return };
        let said = said(&(before.clone() + source), &(before + &reply.text));
        if said == Said::Meant {
            return;
        }
        let words = std::mem::replace(&mut reply.text, source.clone());
        let calls = std::mem::take(&mut reply.calls);
        reply.source = None;
        reply.recovered = false;
        reply.unsure = (said == Said::Unclear).then_some(Unsure { calls, text: words, is_shown: false });
    }

    /// Returns whether the model makes calls again that it was asked about, all or some of them, however they are written.
    pub(super) fn is_confirmed(&self, task: &Task, calls: &[ToolCall]) -> bool {
        let asked: Vec<String> = task.open.asked.iter().map(|call| self.meaning(call)).collect();
        !calls.is_empty() && calls.iter().all(|call| asked.contains(&self.meaning(call)))
    }

    /// Returns what is equal for calls that mean the same.
    pub(super) fn meaning(&self, call: &ToolCall) -> String {
        self.pipeline.catalogue.canonical(&call.name, &call.arguments)
    }
}

/// Returns whether an answer neither shows nor refuses the calls that end it.
pub(super) fn means(source: &str, reply: &Reply) -> bool {
    said(source, &reply.text) == Said::Meant
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
    if REFUSES.iter().any(|refuses| lower.contains(refuses)) {
        return Said::Unclear;
    }
    // Our own words, and no line of something.
    let is_shown =
        || introduces(lower.rsplit('\n').next().unwrap_or_default()) || only_shows(&words.replace("line of its own", "own line"));
    if !affirms(whole) && is_shown() { Said::Unclear } else { Said::Meant }
}

/// Returns whether a line shows what stands behind it: as an example, as what something holds. One in the words of our own question does not.
fn introduces(line: &str) -> bool {
    let has = |all: &[&str]| line.split(|c: char| !c.is_alphanumeric()).any(|word| all.contains(&word));
    let is_as_asked = || AS_ASKED.iter().any(|words| line.contains(words));
    line.ends_with(':') && (has(&SHOWN) || has(&OF_FORM) && (has(&HOLDERS) || !is_as_asked()))
}

/// Returns whether an answer begins with a plain "yes".
fn affirms(whole: &str) -> bool {
    let begin = whole.trim_start_matches(|c: char| !c.is_alphabetic()).chars().take(32);
    let answer = begin.collect::<String>().to_lowercase();
    let word = answer.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
    YES.contains(&word) || JOINED_YES.iter().any(|yes| answer.starts_with(yes))
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
            // In the words that it was asked with, and with any behind a "yes".
            ("Here it is on a line of its own:\n", Said::Meant),
            ("Here it is again, as plain JSON on a line of its own:\n", Said::Meant),
            ("The call, written again in plain JSON format:\n", Said::Meant),
            ("I make the call in the requested format:\n", Said::Meant),
            ("Yes. It is written in this form:\n", Said::Meant),
            ("Ja, die Zeile ist diese:\n", Said::Meant),
            ("はい。\n", Said::Meant),
            ("Yes, it was an example:\n", Said::Unclear),
            ("Yes, but I will not run it:\n", Said::Unclear),
            ("It is written so:\n", Said::Unclear),
            ("The call in the file is written again:\n", Said::Unclear),
        ] {
            assert_eq!(said(&format!("{before}{call}\n"), before), expected, "{before}");
        }
        for behind in ["That does it.", "\nI wait."] {
            assert_eq!(said(&format!("Yes.\n{call}\n{behind}"), &format!("Yes.\n\n{behind}")), Said::Unclear, "{behind}");
        }
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
