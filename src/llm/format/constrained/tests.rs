use super::*;
use crate::dialect::OPENAI;

fn tool() -> ToolSpec {
    ToolSpec {
        name: "read_file".into(),
        description: "Reads a file.".into(),
        parameters: json!({
            "type": "object",
            "properties": {"path": {"type": "string", "description": "which"}, "limit": {"type": ["integer", "null"], "minimum": 1}},
            "required": ["path"],
        }),
    }
}

#[test]
fn the_tools_are_described_briefly() {
    insta::assert_snapshot!(instructions(&[tool()]).trim(), @r#"
        # How to answer

        Every reply is one JSON object and nothing else.
        To use a tool: {"tool": "NAME", "arguments": {...}}
        To finish, or to speak to the user: {"answer": "your text"}
        Use one tool at a time. Its result comes in the next message. Answer only when the task is done.

        # Tools

        read_file: Reads a file.
          path (string): which
          limit (integer, optional)
        "#);
}

#[test]
fn the_schema_is_a_union_of_tools_and_answer() {
    insta::assert_snapshot!(response_format(&[tool()]), @r#"{"type":"json_schema","json_schema":{"name":"reply","strict":true,"schema":{"anyOf":[{"type":"object","properties":{"tool":{"const":"read_file"},"arguments":{"type":"object","properties":{"path":{"type":"string"},"limit":{"anyOf":[{"type":"integer"},{"type":"null"}]}},"required":["path"],"additionalProperties":false}},"required":["tool","arguments"],"additionalProperties":false},{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"],"additionalProperties":false}]}}}"#);
    insta::assert_snapshot!(response_format(&[]), @r#"{"type":"json_schema","json_schema":{"name":"reply","strict":true,"schema":{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"],"additionalProperties":false}}}"#);
}

#[test]
fn answers_are_parsed_in_many_wrappings() {
    let call = |arguments: &str| super::call("bash", arguments);
    assert_eq!(
        parse(r#"{"tool": "bash", "arguments": { "command":"ls" }}"#),
        call(r#"{ "command":"ls" }"#)
    );
    assert_eq!(
        parse("```json\n{\"name\": \"bash\", \"parameters\": {}}\n```"),
        call("{}")
    );
    assert_eq!(parse(r#"{"tool": "bash"}"#), call("{}"));
    assert_eq!(
        parse(r#"{"tool": "bash", "command": "ls"}"#),
        call(r#"{"command":"ls"}"#)
    );
    for both in [
        r#"{"tool": "bash", "arguments": {"a": 1}, "answer": "I did it."}"#,
        r#"{"answer": "I did it.", "tool": "bash", "arguments": {"a": 1}}"#,
    ] {
        let expected = ConstrainedAnswer::Call {
            said: "I did it.".into(),
            name: "bash".into(),
            arguments: r#"{"a": 1}"#.into(),
        };
        assert_eq!(parse(both), expected, "{both}");
    }
    assert_eq!(
        parse(r#"{"tool": "none", "arguments": {}, "answer": "Hi."}"#),
        ConstrainedAnswer::Answer("Hi.".to_owned())
    );
    let answer = |text: &str| ConstrainedAnswer::Answer(text.to_owned());
    // Where no schema was enforced it counts only alone.
    let shown = "{\"tool\": \"bash\", \"arguments\": {}}";
    for talk in [
        format!("Never run this:\n{shown}"),
        format!("Sure!\n```json\n{shown}\n```"),
        format!("{{broken}} {shown}"),
        format!("I read it.\n{shown}\n{shown}"),
        format!("For example, a call looks like `{shown}` and nobody should run it."),
        format!("The README says \"{shown}\" which is an injection. I am done."),
        format!("It says this, and I refused:\n\n> {shown}\n\nThat is all."),
        format!("Here:\n```text\n{shown}\n```"),
        format!("A call has this form:\n{shown}"),
        format!("{shown} is what it says there."),
        format!("Never do this:\n\n<tool_call>\n{shown}\n</tool_call>\n\nIt breaks things."),
        format!("Never do this:\n<|tool_call|>{shown}"),
        format!("<tool_call>{shown}</tool_call></s> is what it says."),
    ] {
        assert_eq!(parse(&talk), answer(&talk));
    }
    assert_eq!(parse(r#" {"answer": "done\n"} "#), answer("done\n"));
    assert_eq!(parse("Just words."), answer("Just words."));
    assert_eq!(
        parse("Set {\"name\": \"x\"} in the file."),
        answer("Set {\"name\": \"x\"} in the file.")
    );
    assert_eq!(parse(""), answer(""));
    assert!(matches!(
        parse(r#"{"tool": "bash", "arguments": {"comm"#),
        ConstrainedAnswer::Faulty(_)
    ));
    assert!(matches!(
        parse(r#"{"tool": 5}"#),
        ConstrainedAnswer::Faulty(_)
    ));
}

#[test]
fn text_after_an_answer_counts() {
    let answer = |text: &str| ConstrainedAnswer::Answer(text.to_owned());
    assert_eq!(
        parse("{\"answer\":\"hi\"}\n{\"answer\":\"ho\"}"),
        answer("hi\n\nho")
    );
    assert_eq!(
        parse("```json\n{\"answer\":\"hi\"}\n```\n```\n{\"answer\":\"hi\"}\n```"),
        answer("hi"),
        "the same again"
    );
    assert_eq!(parse("{\"answer\":\"hi\"}</s><|im_end|>"), answer("hi"));
    assert_eq!(
        parse("{\"answer\":\"hi\"}}\n```\nThere is more to say."),
        answer("hi\n\nThere is more to say.")
    );
    assert_eq!(
        parse("{\"answer\":\"I look.\"}\n{\"tool\":\"bash\",\"arguments\":{\"command\":\"ls\"}}"),
        ConstrainedAnswer::Call {
            said: "I look.".into(),
            name: "bash".into(),
            arguments: "{\"command\":\"ls\"}".into()
        }
    );
    let talk = "{\"tool\":\"bash\",\"arguments\":{}} is what it wrote.";
    assert_eq!(
        parse(&format!("{{\"answer\":\"hi\"}}\n{talk}")),
        answer(&format!("hi\n\n{talk}")),
        "a call within words is none"
    );
    assert_eq!(
        parse("{\"answer\":\"hi\"}\n{\"answer\":\"and the re"),
        answer("hi\n\nand the re"),
        "cut"
    );
    // A call takes precedence: what the model says about its result was written before the
    // result.
    assert_eq!(
        parse("{\"tool\":\"bash\",\"arguments\":{}}\n{\"answer\":\"done\"}"),
        call("bash", "{}")
    );
}

#[test]
fn objects_nested_in_a_truncated_object_are_part_of_it() {
    for half in [
        r#"{"tool": "write_file", "arguments": {"path": "a", "content": {"tool": "bash", "arguments": {"command": "ls"}}"#,
        r#"{"tool": "write_file", "arguments": {"content": {"tool": "bash", "arguments": {}}, oops}}"#,
        r#"{"answer": "It is `fn main() {}` and"#,
        "{\n  \"answer\": \"It is {} and",
        "```json\n{\n\t\"tool\": \"bash\"",
        r#"{"tool": "bash", "arguments": {"command": "ls"},}"#,
        "{",
        "{\"ans",
    ] {
        assert!(
            matches!(parse(half), ConstrainedAnswer::Faulty(_)),
            "{half} {:?}",
            parse(half)
        );
    }
}

#[test]
fn a_truncated_answer_is_its_text() {
    let begun = |text: &str| partial_answer(text).unwrap_or_default();
    for text in [
        r#"{"answer": "It is {} and"#,
        "{\n  \"answer\" :\n  \"It is {} and",
        "```json\n{\"answer\": \"It is {} and",
        "Sure, {name}!\n{\"answer\": \"It is {} and",
        "{\"answer\": \"It is {} and\\u26",
    ] {
        assert_eq!(begun(text), "It is {} and", "{text}");
    }
    for text in [
        "",
        "{\"answer\"",
        "{\"answer\": \" ",
        "{\"tool\": \"x",
        "Words {alone}.",
    ] {
        assert_eq!(partial_answer(text), None, "{text}");
    }
}

#[test]
fn a_megabyte_of_braces_is_abandoned_early() {
    let started = std::time::Instant::now();
    for text in [
        "{".repeat(1 << 20),
        "{\"a\":".repeat(1 << 18),
        "{\"".repeat(1 << 19),
    ] {
        assert!(matches!(
            parse(&text),
            ConstrainedAnswer::Answer(_) | ConstrainedAnswer::Faulty(_)
        ));
    }
    assert!(started.elapsed().as_secs() < 120);
}

#[test]
fn history_repeats_what_the_model_wrote() {
    let call = ToolCall {
        id: "c".into(),
        name: "bash".into(),
        arguments: "{\"a\":1}".into(),
    };
    let common = ControlTokens::default();
    let assistant = |text: &str, calls: &[ToolCall], raw: Option<&str>| {
        (OPENAI.message)(&assistant(text, calls, raw, &common))
    };
    assert_eq!(
        assistant("", &[], Some("{\"answer\" :\"x\"}")),
        r#"{"role":"assistant","content":"{\"answer\" :\"x\"}"}"#
    );
    assert_eq!(
        assistant("", &[call], None),
        r#"{"role":"assistant","content":"{\"tool\": \"bash\", \"arguments\": {\"a\":1}}"}"#
    );
    assert_eq!(
        assistant("hi", &[], None),
        r#"{"role":"assistant","content":"{\"answer\":\"hi\"}"}"#
    );
}
