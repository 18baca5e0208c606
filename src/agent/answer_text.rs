//! Builds the answer text for the user from answers that end with a call that is not executed, and
//! from two answers if the model was asked about the first one.

use podbay_llm::text;
use podbay_llm::text::IncompletePart;
use podbay_llm::text::Tools;

/// Returns the text beside the calls of an answer, in a turn without tools: none of them is
/// executed, and their source is not readable text. `None` if it has no call.
pub(super) fn text_beside_calls(answer: &str, tools: &Tools) -> Option<String> {
    let parsed = text::parse(answer, tools, None);
    let is_begun = |half: &text::Incomplete| {
        half.part == IncompletePart::Call
            && (half.name.is_some() || text::ends_with_mark(answer, half))
    };
    (!parsed.calls.is_empty() || parsed.incomplete.as_ref().is_some_and(is_begun))
        .then(|| parsed.content.trim().to_owned())
}

/// Combines the answer that the model was asked about, if any, with the one it gave then. If the
/// second has several lines it is a complete answer; a single line means that the first one stands.
pub(super) fn combine_answers(first: &str, later: String) -> String {
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
    fn text_before_an_unexecuted_call_is_the_answer() {
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
            assert_eq!(
                text_beside_calls(call, &tools).as_deref(),
                Some(""),
                "{call}"
            );
            assert_eq!(
                text_beside_calls(&format!("I did it.\n{call}"), &tools).as_deref(),
                Some("I did it."),
                "{call}"
            );
        }
        let bare = "{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}";
        for alone in [bare, &format!("```json\n{bare}\n```")] {
            assert_eq!(
                text_beside_calls(alone, &tools).as_deref(),
                Some(""),
                "{alone}"
            );
            assert_eq!(
                text_beside_calls(&format!("I did it.\n{alone}"), &tools),
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
            assert_eq!(text_beside_calls(words, &tools), None, "{words}");
        }
    }

    #[test]
    fn both_answers_are_combined_without_loss() {
        let check = |first: &str, later: &str, expected: &str| {
            assert_eq!(
                combine_answers(first, later.to_owned()),
                expected,
                "{first}|{later}"
            );
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
