//! Tool calls that are only described, for servers that support neither tools nor schemas.
//! The system prompt shows one form, chosen because no template has it as a control token, so that
//! the history can repeat it unchanged. The answer is parsed in any form (`text`): many models fall
//! back to the form that they were trained on.

use serde_json::Value;

use super::constrained;
use super::fences::Fences;
use super::native;
use super::text::Incomplete;
use super::text::IncompletePart;
use crate::control::ControlTokens;
use crate::dialect::ChatMessage;
use crate::message::ToolSpec;
use crate::stream::Finish;
use podbay_event::ToolCall;

/// Returns the part of the system prompt that describes the tools.
pub(crate) fn instructions(tools: &[ToolSpec]) -> String {
    if tools.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "\n\n# How to use tools\n\n\
         To use a tool, write its call on a line of its own, like this:\n\
         <tool>{\"tool\": \"NAME\", \"arguments\": {...}}</tool>\n\
         Then stop: the result comes in the next message. A reply without a call is your answer to the user. Answer only when the task is \
         done.\n\n# Tools\n",
    );
    constrained::list(tools, &mut out);
    out
}

/// Returns an assistant's message as the model wrote it, or would have written it.
pub(crate) fn assistant(
    text: &str,
    calls: &[ToolCall],
    raw: Option<&str>,
    tokens: &ControlTokens,
) -> ChatMessage<'static> {
    let mut content = raw.unwrap_or(text).to_owned();
    if raw.is_none() {
        for call in calls {
            if !content.is_empty() {
                content.push('\n');
            }
            let (name, arguments) = (
                Value::from(call.name.as_str()),
                native::arguments(&call.arguments),
            );
            content.push_str(&format!(
                "<tool>{{\"tool\": {name}, \"arguments\": {arguments}}}</tool>"
            ));
        }
    }
    ChatMessage::new("assistant", tokens.neutralise(&content).into_owned())
}

/// Returns the message for a model whose call names no tool, if `text` contains one in the form
/// that was shown to it, outside of code blocks. `is_bare`: the form shown was an object without
/// tags.
pub(crate) fn unknown_tool(text: &str, is_bare: bool) -> Option<String> {
    let is_call = |line: &str| {
        line.trim_start().starts_with("<tool>{") || line.trim_start().starts_with("<tool_call>")
    };
    let (open, close) = if is_bare {
        ("", "")
    } else {
        ("<tool>", "</tool>")
    };
    let mut fences = Fences::default();
    let mut is_shown = |line: &str| fences.take(line) || fences.is_open();
    text.lines().any(|line| !is_shown(line) && is_call(line)).then(|| {
        format!(
            "Your reply has a tool call that is not valid, or names no tool of yours. Write it again: {open}{{\"tool\": \"NAME\", \
             \"arguments\": {{...}}}}{close}, with a name and arguments from the list of tools."
        )
    })
}

/// Returns the message for a model whose call was truncated, with the cause where it is known.
pub(crate) fn cut_off(name: Option<&str>, finish: Option<Finish>) -> String {
    let of = name.map_or_else(String::new, |name| format!(" of {name}"));
    let by = match finish {
        Some(Finish::Length) => "by the limit of tokens for one answer, before its end,",
        _ => "before its end",
    };
    format!(
        "Your call{of} was cut off {by} and was not executed. Make it again, shorter: several small calls instead of one long one."
    )
}

/// Returns the message for a model whose call could not be parsed.
fn unreadable(name: Option<&str>) -> String {
    let of = name.map_or_else(String::new, |name| format!(" of {name}"));
    format!(
        "Your call{of} could not be read and was not executed. Write it again as plain JSON: single braces, names and texts in double \
         quotes, no comments, nothing beside the object. Only your tools can be called; code by itself runs nowhere."
    )
}

/// Returns the message for a model whose call was incomplete or not recognized as a call.
pub(crate) fn not_carried_out(incomplete: &Incomplete, finish: Option<Finish>) -> Option<String> {
    match incomplete.part {
        IncompletePart::Call => Some(cut_off(incomplete.name.as_deref(), finish)),
        IncompletePart::Unreadable => Some(unreadable(incomplete.name.as_deref())),
        IncompletePart::Reasoning | IncompletePart::Unclear => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::format::text;

    #[test]
    fn the_form_in_the_prompt_is_parsed_and_survives_the_history() {
        let tool = ToolSpec {
            name: "bash".into(),
            description: "Runs.".into(),
            parameters: json!({"type": "object"}),
        };
        insta::assert_snapshot!(instructions(std::slice::from_ref(&tool)).trim(), @r#"
        # How to use tools

        To use a tool, write its call on a line of its own, like this:
        <tool>{"tool": "NAME", "arguments": {...}}</tool>
        Then stop: the result comes in the next message. A reply without a call is your answer to the user. Answer only when the task is done.

        # Tools

        bash: Runs.
        "#);
        let call = ToolCall {
            id: "c".into(),
            name: "bash".into(),
            arguments: "{\"command\": \"ls\"}".into(),
        };
        let message = assistant(
            "I look.",
            std::slice::from_ref(&call),
            None,
            &ControlTokens::default(),
        );
        let content = message.text.as_ref();
        assert_eq!(
            content,
            "I look.\n<tool>{\"tool\": \"bash\", \"arguments\": {\"command\": \"ls\"}}</tool>"
        );
        let parsed = text::parse(content, &text::Tools::new([&tool]), None);
        assert_eq!(
            parsed.calls,
            [text::Call {
                name: "bash".into(),
                arguments: call.arguments
            }]
        );
        assert_eq!(instructions(&[]), "");
        assert!(
            unknown_tool("I fly:\n<tool>{\"tool\": \"fly\"}</tool>", false).is_some()
                && unknown_tool("The <tool> tag.", false).is_none()
        );
    }
}
