//! Detects an answer that only continues a truncated call of the answer before: the end of a call
//! is neither a call nor an answer.

use serde::de::IgnoredAny;

use super::text;
use super::text::IncompletePart;
use super::text::Tools;

/// The message for a model that wrote one.
pub const TAIL_NOTICE: &str = "Your answer is the end of a call whose beginning was cut off. No call is put together from two answers, and nothing was \
                        executed. Make the whole call again, shorter: several small calls instead of one long one.";

/// Returns whether `rest` only continues a call reported by the server: appended to `arguments`, an
/// incomplete object, it completes them.
pub fn ends_arguments(arguments: &str, rest: &str) -> bool {
    let whole = arguments.to_owned() + rest;
    let mut values = serde_json::Deserializer::from_str(&whole).into_iter::<IgnoredAny>();
    // Where nothing was begun, an object is an answer like any other.
    arguments.trim_start().starts_with('{')
        && matches!(values.next(), Some(Ok(_)))
        && values.byte_offset() > arguments.len()
}

/// Returns whether `rest` only continues `half`, whose last call is unterminated: together they
/// form a call, or `rest` ends one that it never began.
pub fn is_tail(half: &str, rest: &str, tools: &Tools) -> bool {
    let whole = text::parse(&(half.to_owned() + rest), tools, None);
    let is_call = !whole.calls.is_empty()
        || whole
            .incomplete
            .is_some_and(|incomplete| incomplete.part == IncompletePart::Unreadable);
    is_call || ends_what_it_never_began(rest)
}

fn ends_what_it_never_began(rest: &str) -> bool {
    let Some((_, tag)) = rest
        .trim_end()
        .strip_suffix('>')
        .and_then(|rest| rest.rsplit_once("</"))
    else {
        return false;
    };
    let is_name = tag
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '-'));
    is_name
        && ["tool", "function", "invoke", "parameter", "arg_value"]
            .iter()
            .any(|word| tag.contains(word))
        && !rest.contains(&format!("<{tag}"))
}

#[cfg(test)]
mod tests {
    use super::super::text::Tools;
    use super::ends_arguments;
    use super::is_tail;
    use crate::ToolSpec;

    fn tools() -> Tools {
        Tools::new(&[ToolSpec {
            name: "bash".into(),
            description: String::new(),
            parameters: serde_json::json!({"type": "object"}),
        }])
    }

    #[track_caller]
    fn check(half: &str, rest: &str, expected: bool) {
        assert_eq!(is_tail(half, rest, &tools()), expected, "{half}|{rest}");
    }

    #[test]
    fn a_call_split_over_two_answers_is_detected_in_every_form() {
        for whole in [
            "I will.\n<tool_call>\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ls -l\"}}\n</tool_call>",
            "<tool>{\"tool\": \"bash\", \"arguments\": {\"command\": \"ls -l\"}}</tool>",
            "<function=bash>\n<parameter=command>\nls -l\n</parameter>\n</function>",
            "{\"name\": \"bash\", \"arguments\": {\"command\": \"ls -l\"}}",
            "```json\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ls -l\"}}\n```",
        ] {
            let (half, rest) = whole.split_at(whole.find("-l").expect("there"));
            check(half, rest, true);
            check(half, "I cannot write all of that in one call.", false);
        }
        // It may not fit to the byte, and text may follow.
        check(
            "<tool_call>\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ls",
            " -l\"}\n</tool_call>",
            true,
        );
        check(
            "<tool_call>\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ls",
            " -l\"}}\n</tool_call>\nThat is done.",
            true,
        );
    }

    #[test]
    fn arguments_split_over_two_answers_are_detected() {
        let half = "{\"path\": \"a\", \"content\": \"half a fi";
        assert!(ends_arguments(half, "le\"}"));
        assert!(ends_arguments(half, "le\"}}\n</tool_call>"));
        assert!(ends_arguments("{", "\"path\": \"a\"}"));
        for rest in [
            "I cannot write that.",
            "The file \"a\" is too long.",
            "le",
            "",
            "{\"path\": \"a\", \"content\": \"\"}",
        ] {
            assert!(!ends_arguments(half, rest), "{rest}");
        }
        assert!(!ends_arguments("", "{\"status\": \"ok\"}"));
    }

    #[test]
    fn an_example_split_over_two_answers_is_no_call() {
        let half = "Example:\n```\n<tool_call>\n{\"name\": \"bash\", ";
        check(
            half,
            "\"arguments\": {\"command\": \"ls\"}}\n</tool_call>\n```\nand that is all.",
            false,
        );
        check(half, "I stop here <b>bold</b>", false);
    }
}
