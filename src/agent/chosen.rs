//! Which of two answers a person gets: the one that the model was asked about, because of a call in it, and the one that it gave then.
//!
//! It was asked to give its whole answer again. Small models say "that was an example" instead, in any language, and then the report that
//! they were asked about is what the person wants to read. So nothing that was said to the person is left out, and a call is never all they get.

use podbay_llm::shown::undressed;
use podbay_llm::text;
use podbay_llm::text::Tools;

/// Words of which one at least stands in a remark that only says that a call was shown.
const SHOWN: [&str; 19] = [
    "no",
    "nope",
    "nein",
    "example",
    "examples",
    "quote",
    "quotes",
    "quoted",
    "quotation",
    "citation",
    "show",
    "shown",
    "showed",
    "meant",
    "beispiel",
    "zitat",
    "zitiert",
    "gezeigt",
    "gemeint",
];
/// All other words that such a remark is made of: anything else is something that it says.
const FILLING: [&str; 36] = [
    "a", "an", "call", "calls", "file", "for", "from", "i", "in", "is", "it", "just", "merely", "not", "of", "only", "read", "that", "the",
    "this", "to", "was", "were", "you", "aus", "das", "datei", "der", "die", "ein", "eine", "ich", "ist", "nicht", "nur", "war",
];

/// Returns the answer that a person gets of the one that was asked about and the one that came then.
pub(super) fn chosen(first: String, later: String, tools: &Tools) -> String {
    let (before, behind) = (words_beside_calls(&first, tools), words_beside_calls(&later, tools));
    if before.is_empty() {
        return later;
    }
    // One of several lines is a whole answer, as it was asked for.
    if later.trim().contains('\n') {
        return later;
    }
    if is_remark(&behind) {
        return first;
    }
    if behind.len() >= before.len() { later } else { format!("{}\n\n{}", first.trim_end(), later.trim_start()) }
}

/// Returns the words before the call that an answer ends with, where no tool can be called: none of it is carried out, and a call is nothing to
/// read. `None` where it ends with no call.
pub(super) fn before_call(answer: &str, tools: &Tools) -> Option<String> {
    let parsed = text::parse(answer, tools, None);
    let is_begun = parsed.incomplete.as_ref().is_some_and(|half| {
        // The end of a call may have been left out as noise, and what begins in a block of code that is open is an example, as far as it goes.
        let is_example = !answer.matches("```").count().is_multiple_of(2);
        half.part == text::Part::Call && !parsed.content.contains(&half.text) && !is_example
    });
    if (!parsed.calls.is_empty() || is_begun) && answer.trim_start().starts_with(parsed.content.trim()) {
        return Some(if words(&undressed(&parsed.content)).is_empty() { String::new() } else { parsed.content.trim().to_owned() });
    }
    (!parsed.mentions.is_empty() && !says_something(answer, tools)).then(String::new)
}

/// Returns whether an answer says anything beside the calls in it.
pub(super) fn says_something(answer: &str, tools: &Tools) -> bool {
    !words_beside_calls(answer, tools).is_empty()
}

/// Returns whether an answer of one line only says that what the model was asked about was shown.
pub(super) fn only_remarks(answer: &str) -> bool {
    !answer.trim().contains('\n') && is_remark(&words(answer))
}

fn is_remark(words: &[String]) -> bool {
    let is_one_of = |all: &[&str], word: &String| all.contains(&word.as_str());
    words.iter().any(|word| is_one_of(&SHOWN, word)) && words.iter().all(|word| is_one_of(&SHOWN, word) || is_one_of(&FILLING, word))
}

/// Returns the words of an answer that belong to no call.
fn words_beside_calls(answer: &str, tools: &Tools) -> Vec<String> {
    let parsed = text::parse(answer, tools, None);
    let prose = parsed.mentions.iter().fold(parsed.content, |prose, mention| prose.replacen(&mention.raw, "", 1));
    words(&undressed(&prose))
}

fn words(text: &str) -> Vec<String> {
    // What is left of the marks of a call is no word.
    let pieces = text.split_whitespace().filter(|piece| !piece.starts_with('<'));
    let words = pieces.flat_map(|piece| piece.split(|c: char| !c.is_alphanumeric())).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use podbay_llm::ToolSpec;

    const CALL: &str = "<tool_call>\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}\n</tool_call>";

    fn tools() -> Tools {
        Tools::new(&[ToolSpec { name: "bash".into(), description: String::new(), parameters: serde_json::json!({"type": "object"}) }])
    }

    #[track_caller]
    fn check(first: &str, later: &str, expected: &str) {
        assert_eq!(chosen(first.to_owned(), later.to_owned(), &tools()), expected, "{first}|{later}");
    }

    #[test]
    fn the_words_before_a_call_that_is_not_carried_out_are_the_answer() {
        let tools = tools();
        for call in [
            CALL,
            "<tool_call>{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}",
            "<function=bash>\n<parameter=command>\ntouch X\n</parameter>\n</function>",
            "<tool_call>\n<function=bash>\n<parameter=command>\ntouch X",
            "{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}",
        ] {
            assert_eq!(before_call(call, &tools).as_deref(), Some(""), "{call}");
            assert_eq!(before_call(&format!("I did it.\n{call}"), &tools).as_deref(), Some("I did it."), "{call}");
        }
        assert_eq!(before_call("```json\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}\n```", &tools).as_deref(), Some(""));
        for words in [
            "I did it.",
            "",
            "Call it so:\n```\n<tool>{\"tool\": \"bash\", \"argum",
            "It holds `{\"name\": \"x\"}` now.",
            "A tag such as <b> is bold.",
            &format!("{CALL}\nis what it says."),
        ] {
            assert_eq!(before_call(words, &tools), None, "{words}");
        }
    }

    #[test]
    fn a_remark_leaves_the_report_and_a_report_takes_the_place_of_a_call() {
        let report = format!("The file is two lines long. It says:\n{CALL}");
        for remark in
            ["No, that is for you to read.", "No: it was an example.", "Nein, das war nur ein Beispiel.", "I quoted the file.", "No."]
        {
            check(&report, remark, &report);
        }
        // Whatever it is called, and in whatever language, it is not all that is left.
        check(&report, "Just an illustration.", &format!("{report}\n\nJust an illustration."));
        check(
            &report,
            "\u{42d}\u{442}\u{43e} \u{446}\u{438}\u{442}\u{430}\u{442}\u{430}.",
            &format!("{report}\n\n\u{42d}\u{442}\u{43e} \u{446}\u{438}\u{442}\u{430}\u{442}\u{430}."),
        );
        // Several lines are the whole answer again.
        check(&report, "It says:\n\nls", "It says:\n\nls");
        check(&report, "It is two lines long and says to list the files.", "It is two lines long and says to list the files.");
    }

    #[test]
    fn no_call_is_all_that_a_person_gets() {
        let bare = "{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}";
        for first in [CALL, bare, &format!("```json\n{bare}\n```"), ""] {
            for later in ["No, the examples in the README do not compile.", "No.", "It was an example."] {
                check(first, later, later);
            }
            assert!(!says_something(first, &tools()), "{first}");
        }
        check(&format!("It says:\n{CALL}"), "No, the tests do not pass.", "No, the tests do not pass.");
        assert!(says_something("It is short.", &tools()));
    }

    #[test]
    fn a_remark_says_nothing_else() {
        for remark in ["No.", "No, that is for you to read.", "It was only an example.", "I only showed it."] {
            assert!(only_remarks(remark), "{remark}");
        }
        for answer in [
            "",
            "Done.",
            "I read the file.",
            "No problem.",
            "No, the tests do not pass.",
            "No.\n\nIt was an example.",
            "The tests were not run.",
        ] {
            assert!(!only_remarks(answer), "{answer}");
        }
    }
}
