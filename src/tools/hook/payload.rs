//! What a hook receives: a JSON object on its standard input, and an abridged form in its
//! environment.

use serde::Serialize;
use serde_json::Value;

use super::Hook;
use super::placeholder;
use podbay_event::CallStatus;
use podbay_event::Moment;
use podbay_event::SessionId;
use podbay_policy::BACKGROUND;

/// Most characters of a result, and of a variable.
const SHORT: usize = 10_000;

/// One moment, as it is passed to a hook.
#[derive(Debug, Serialize)]
pub(super) struct HookPayload<'a> {
    pub(super) event: Moment,
    pub(super) session: Option<&'a SessionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) call: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_name: Option<&'a str>,
    /// The arguments after renaming and repair.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_input: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_status: Option<CallStatus>,
    /// The first 10,000 characters of the model's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_result: Option<&'a str>,
    /// The user's message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) prompt: Option<&'a str>,
    /// How a task ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<&'a str>,
}

impl<'a> HookPayload<'a> {
    pub(super) fn new(event: Moment, session: Option<&'a SessionId>) -> Self {
        Self {
            event,
            session,
            call: None,
            tool_name: None,
            tool_input: None,
            tool_status: None,
            tool_result: None,
            prompt: None,
            status: None,
        }
    }

    /// Returns whether a hook's condition matches.
    pub(super) fn is_for(&self, hook: &Hook) -> bool {
        let condition = &hook.condition;
        let is_tool = self
            .tool_name
            .is_none_or(|name| condition.tool == "*" || self.is_of(name, &condition.tool));
        let wanted = condition.input_contains.as_str();
        is_tool
            && (wanted.is_empty()
                || self.prompt.is_some_and(|prompt| prompt.contains(wanted))
                || self.tool_input.is_some_and(|input| holds(input, wanted)))
    }

    /// Returns whether a tool's call matches the tool that a hook names. A background command also
    /// matches `bash`, whichever tool starts it, as it does for rules.
    fn is_of(&self, name: &str, named: &str) -> bool {
        let in_background = || {
            self.tool_input
                .is_some_and(|input| input["background"] == true)
        };
        match (name, named) {
            (BACKGROUND, "bash") => true,
            ("bash", BACKGROUND) => in_background(),
            (name, named) => name == named,
        }
    }

    pub(super) fn json(&self) -> String {
        serde_json::to_string(self).expect("strings and JSON values have a JSON form")
    }

    /// Returns the variables of a hook's command. NULs are removed, since a variable cannot hold
    /// one.
    pub(super) fn environment(&self, command: &str) -> Vec<(String, String)> {
        let failed = self
            .tool_status
            .is_some_and(|status| status != CallStatus::Ok);
        let input = self.tool_input.map(Value::to_string);
        let all = [
            ("PODBAY_HOOK", Some(self.event.as_str())),
            ("PODBAY_SESSION", self.session.map(SessionId::as_str)),
            ("PODBAY_TOOL_NAME", self.tool_name),
            ("PODBAY_TOOL_ARGS", input.as_deref()),
            ("PODBAY_TOOL_RESULT", self.tool_result.filter(|_| !failed)),
            ("PODBAY_TOOL_ERROR", self.tool_result.filter(|_| failed)),
        ];
        let whole = input
            .as_deref()
            .filter(|_| placeholder::wants_input(command))
            .map(|input| (placeholder::INPUT_VARIABLE, input));
        let all = all
            .into_iter()
            .filter_map(|(name, value)| Some((name, short(value?))))
            .chain(whole);
        all.map(|(name, value)| (name.to_owned(), value.replace('\0', "")))
            .collect()
    }
}

/// Returns the start of a text, up to the bound.
pub(super) fn short(text: &str) -> &str {
    text.char_indices()
        .nth(SHORT)
        .map_or(text, |(end, _)| &text[..end])
}

/// Returns whether a text occurs in one of the strings, or in the JSON of the whole.
fn holds(input: &Value, wanted: &str) -> bool {
    fn in_strings(input: &Value, wanted: &str) -> bool {
        match input {
            Value::String(text) => text.contains(wanted),
            Value::Array(items) => items.iter().any(|item| in_strings(item, wanted)),
            Value::Object(fields) => fields.values().any(|field| in_strings(field, wanted)),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }
    in_strings(input, wanted) || input.to_string().contains(wanted)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::hook::options::Condition;

    fn hook(tool: &str, input_contains: &str) -> Hook {
        let condition = Condition {
            tool: tool.to_owned(),
            input_contains: input_contains.to_owned(),
        };
        Hook {
            run: String::new(),
            condition,
            place: super::super::HookPlace::Sandbox,
            timeout: None,
        }
    }

    #[test]
    fn a_hook_matches_the_tool_and_the_input_it_names() {
        let input = json!({"path": "src/a \"b\".rs", "edits": [{"new_string": "x"}]});
        let told = HookPayload {
            tool_name: Some("edit_file"),
            tool_input: Some(&input),
            ..HookPayload::new(Moment::PreToolUse, None)
        };
        for (tool, contains) in [
            ("*", ""),
            ("edit_file", "src/"),
            ("*", "a \"b\""),
            ("*", r#""new_string":"x""#),
        ] {
            assert!(told.is_for(&hook(tool, contains)), "{tool} {contains}");
        }
        for (tool, contains) in [("bash", ""), ("edit_file", "lib/"), ("edit", "")] {
            assert!(!told.is_for(&hook(tool, contains)), "{tool} {contains}");
        }
        let in_background = json!({"command": "x", "background": true});
        for (name, input, of_bash, of_background) in [
            (
                "start_background_process",
                json!({"command": "x"}),
                true,
                true,
            ),
            ("bash", in_background, true, true),
            ("bash", json!({"command": "x"}), true, false),
        ] {
            let told = HookPayload {
                tool_name: Some(name),
                tool_input: Some(&input),
                ..HookPayload::new(Moment::PreToolUse, None)
            };
            assert_eq!(
                (
                    told.is_for(&hook("bash", "")),
                    told.is_for(&hook(BACKGROUND, ""))
                ),
                (of_bash, of_background),
                "{name} {input}"
            );
        }
        let said = HookPayload {
            prompt: Some("deploy it"),
            ..HookPayload::new(Moment::UserPrompt, None)
        };
        assert!(said.is_for(&hook("bash", "deploy")) && !said.is_for(&hook("*", "test")));
    }

    #[test]
    fn hook_variables_are_bounded_and_failures_have_their_own() {
        let result = "é".repeat(20_000);
        let mut told = HookPayload {
            tool_result: Some(&result),
            tool_status: Some(CallStatus::Ok),
            ..HookPayload::new(Moment::PostToolUse, None)
        };
        let value = |told: &HookPayload<'_>, name: &str| {
            told.environment("log {{tool_input}}")
                .into_iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| value)
        };
        assert_eq!(
            value(&told, "PODBAY_TOOL_RESULT").map(|value| value.chars().count()),
            Some(SHORT)
        );
        assert_eq!(
            (
                value(&told, "PODBAY_TOOL_ERROR"),
                value(&told, "PODBAY_HOOK").as_deref()
            ),
            (None, Some("post_tool_use"))
        );
        let input = json!({"path": &result});
        told.tool_input = Some(&input);
        assert_eq!(
            value(&told, "PODBAY_TOOL_ARGS").map(|value| value.chars().count()),
            Some(SHORT)
        );
        assert_eq!(
            value(&told, "PODBAY_TOOL_INPUT"),
            Some(input.to_string()),
            "what is looked at whole is whole"
        );
        assert!(
            !told
                .environment("log")
                .iter()
                .any(|(name, _)| name == "PODBAY_TOOL_INPUT")
        );
        told.tool_status = Some(CallStatus::Failed);
        told.tool_result = Some("a\0b");
        assert_eq!(value(&told, "PODBAY_TOOL_ERROR").as_deref(), Some("ab"));
    }
}
