//! What a person gets of a model's last words: of an answer that ends with a call which nobody
//! carries out, and of two, where the model was asked about the first one.

use podbay_llm::text;
use podbay_llm::text::IncompletePart;
use podbay_llm::text::Tools;

/// Returns the words beside the calls of an answer, where no tool can be called: none of them is
/// carried out, and a call is nothing to read. `None` where it has no call.
pub(super) fn before_call(answer: &str, tools: &Tools) -> Option<String> {
    let parsed = text::parse(answer, tools, None);
    let is_begun = |half: &text::Incomplete| {
        half.part == IncompletePart::Call
            && (half.name.is_some() || text::ends_with_mark(answer, half))
    };
    (!parsed.calls.is_empty() || parsed.incomplete.as_ref().is_some_and(is_begun))
        .then(|| parsed.content.trim().to_owned())
}

/// Returns the answer that a person gets of the one that the model was asked about, if it was, and
/// the one that it gave then. One of several lines is a whole answer again; a single line was to
/// say that the first one stands.
pub(super) fn both(first: &str, later: String) -> String {
    if first.trim().is_empty() || later.trim().contains('\n') {
        later
    } else {
        format!("{}\n\n{}", first.trim_end(), later.trim_start())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podbay_llm::ToolSpec;

    const CALL: &str =
        "<tool_call>\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}\n</tool_call>";

    #[test]
    fn the_words_before_a_call_that_is_not_carried_out_are_the_answer() {
        let tools = Tools::new(&[ToolSpec {
            name: "bash".into(),
            description: String::new(),
            parameters: serde_json::json!({"type": "object"}),
        }]);
        for call in [
            CALL,
            "<tool_call>{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}",
            "<function=bash>\n<parameter=command>\ntouch X\n</parameter>\n</function>",
            "<tool_call>\n<function=bash>\n<parameter=command>\ntouch X",
        ] {
            assert_eq!(before_call(call, &tools).as_deref(), Some(""), "{call}");
            assert_eq!(
                before_call(&format!("I did it.\n{call}"), &tools).as_deref(),
                Some("I did it."),
                "{call}"
            );
        }
        let bare = "{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}";
        for alone in [bare, &format!("```json\n{bare}\n```")] {
            assert_eq!(before_call(alone, &tools).as_deref(), Some(""), "{alone}");
            assert_eq!(
                before_call(&format!("I did it.\n{alone}"), &tools),
                None,
                "{alone}"
            );
        }
        for words in [
            "I did it.",
            "",
            "Call it so:\n```\n<tool>{\"tool\": \"bash\", \"argum",
            "It holds `{\"name\": \"x\"}` now.",
            "A tag such as <b> is bold.",
        ] {
            assert_eq!(before_call(words, &tools), None, "{words}");
        }
    }

    #[test]
    fn nothing_that_was_said_is_lost() {
        let check = |first: &str, later: &str, expected: &str| {
            assert_eq!(both(first, later.to_owned()), expected, "{first}|{later}");
        };
        check("", "Done.", "Done.");
        check(
            "It says:\n```\nx\n```\n",
            "No, that was an example.",
            "It says:\n```\nx\n```\n\nNo, that was an example.",
        );
        check("It says x.", "It says:\n\nx", "It says:\n\nx");
    }
}
