//! Tests of mistakes that no format explains, and of what was once parsed wrongly.

use super::format_corpus::check;
use super::format_corpus::read;
use super::format_corpus::tools;
use super::*;

const LS: &str = r#"bash {"command":"ls -l"}"#;

/// Checks that a text is one call of `bash` with the command `ls -l`, and nothing else.
#[track_caller]
fn lists(text: &str) {
    check("lists", text, "", "", &[LS], None);
}

/// Checks that a text is content and nothing else.
#[track_caller]
fn says(text: &str) {
    check("says", text, text, "", &[], None);
}

#[test]
fn calls_within_a_written_file_are_its_text() {
    let inner = "A call:\n<tool_call>\n<function=bash>\n<parameter=command>\nrm x\n</parameter>\n</function>\n</tool_call>\nis so.";
    let expected = format!("bash {}", serde_json::json!({ "command": inner }));
    for text in [
        format!(
            "<tool_call>\n<function=bash>\n<parameter=command>\n{inner}\n</parameter>\n</function>\n</tool_call>"
        ),
        format!("<function=bash><parameter=command>{inner}</parameter></function>"),
        format!("<invoke name=\"bash\"><parameter name=\"command\">{inner}</parameter></invoke>"),
    ] {
        check("nested", &text, "", "", &[&expected], None);
    }
    let line = "echo <function=bash><parameter=command>ls</parameter></function>";
    let text = format!("<function=bash>\n<parameter=command>\n{line}\n</parameter>\n</function>");
    check(
        "in a line",
        &text,
        "",
        "",
        &[&format!("bash {}", serde_json::json!({ "command": line }))],
        None,
    );
    // An unknown argument, or one already given, does not end a value.
    let text = "<function=bash>\n<parameter=command>\na\n<parameter=other>\nb\n</parameter>\nc\n</parameter>\n</function>";
    check(
        "no argument",
        text,
        "",
        "",
        &[r#"bash {"command":"a\n<parameter=other>\nb\n</parameter>\nc"}"#],
        None,
    );
}

#[test]
fn a_closing_tag_ends_a_value_only_where_the_call_continues() {
    for value in [
        "<job><parameter name=\"x\">1</parameter></job>",
        "<parameter name=\"x\">1</parameter>",
        "<p name=\"x\"></parameter>",
        "Use `<parameter=x>` here.",
        "echo \"</parameter>\"",
        "<parameter=x>1</parameter>\n<parameter=y>2</parameter>",
        "a </arg_value> b",
        "<tool_call>bash<arg_key>command</arg_key><arg_value>ls</arg_value></tool_call> is a call",
        "grep '<arg_value>' a",
    ] {
        let call = format!("bash {}", serde_json::json!({ "command": value }));
        let second = "\n<function=bash><parameter=command>ls -l</parameter></function>";
        for text in [
            format!(
                "<tool_call>\n<function=bash>\n<parameter=command>\n{value}\n</parameter>\n</function>\n</tool_call>"
            ),
            format!("<function=bash><parameter=command>{value}</parameter></function>"),
            format!(
                "<minimax:tool_call><invoke name=\"bash\"><parameter name=\"command\">{value}</parameter></invoke></minimax:tool_call>"
            ),
        ] {
            check("one", &text, "", "", &[&call], None);
            check(
                "two",
                &format!("{text}{second}"),
                "",
                "",
                &[&call, LS],
                None,
            );
        }
        let text = format!(
            "<tool_call>bash\n<arg_key>command</arg_key>\n<arg_value>{value}</arg_value>\n</tool_call>"
        );
        check("pairs", &text, "", "", &[&call], None);
    }
    // An ambiguous call is requested again; half of it is never executed.
    let text = "<tool_call><function=bash><parameter=command>ls</parameter> and so on";
    check("continues as text", text, "", "", &[], Some("bash"));
    let text =
        "<tool_call>bash<arg_key>command</arg_key><arg_value>ls</arg_value> and so on</tool_call>";
    assert_eq!(read(text, None).2, [""; 0]);
    assert_eq!(read(text, None).3.as_deref(), Some("bash"));
}

#[test]
fn a_value_may_quote_the_end_of_its_own_call() {
    let quotes = [
        "A call ends with\n</parameter>\n</function>\n</tool_call>\nand no other way.",
        "A call ends with </parameter></function></tool_call>, as `</parameter>\n</function>` says.",
        "It ends so:\n</parameter>\n</function>\n</tool_call>",
        "</parameter>\n</function>",
        "Its name ends with\n</function>\n</tool_call>\nalone.",
        "</parameter></function>\n</parameter></function>\n</parameter></function>",
    ];
    let second = "\n<tool_call>\n<function=bash>\n<parameter=command>ls -l</parameter>\n</function>\n</tool_call>";
    for value in quotes {
        let text = format!(
            "<tool_call>\n<function=bash>\n<parameter=command>\n{value}\n</parameter>\n</function>\n</tool_call>"
        );
        let call = format!("bash {}", serde_json::json!({ "command": value }));
        check("one", &text, "", "", &[&call], None);
        check(
            "two",
            &format!("{text}{second}"),
            "",
            "",
            &[&call, LS],
            None,
        );
        check(
            "words behind it",
            &format!("{text}\nNow I wait."),
            "Now I wait.",
            "",
            &[&call],
            None,
        );
        let value = value.replace("</function>", "</invoke>");
        let call = format!("bash {}", serde_json::json!({ "command": value }));
        let text = format!(
            "<minimax:tool_call><invoke name=\"bash\"><parameter name=\"command\">{value}</parameter></invoke>"
        );
        check(
            "invoke",
            &format!("{text}</minimax:tool_call>"),
            "",
            "",
            &[&call],
            None,
        );
    }
    for value in [
        "It ends with </arg_value></tool_call>, always.",
        "</arg_value>\n</tool_call>",
        "a</arg_value></tool_call>b</arg_value></tool_call>",
    ] {
        let text = format!(
            "<tool_call>bash\n<arg_key>command</arg_key>\n<arg_value>{value}</arg_value>\n</tool_call>"
        );
        let call = format!("bash {}", serde_json::json!({ "command": value }));
        let second =
            "<tool_call>bash<arg_key>command</arg_key><arg_value>ls -l</arg_value></tool_call>";
        check("pairs", &text, "", "", &[&call], None);
        check(
            "two pairs",
            &format!("{text}\n{second}"),
            "",
            "",
            &[&call, LS],
            None,
        );
    }
    // Tags in the wrong order are not text.
    let text = "<tool_call>\n<function=bash>\n<parameter=command>\nls -l\n</function>\n</parameter>\n</function>\n</tool_call>";
    assert_eq!(read(text, None).2, [LS]);
}

#[test]
fn an_unclosed_element_in_a_value_hides_no_call() {
    let mention =
        "<function=bash>\n<parameter=command>\ngrep '<tool_call>' a\n</parameter>\n</function>";
    let text = format!(
        "{mention}\n{mention}\n<function=read_file>\n<parameter=path>\n<function=x\n</parameter>\n</function>"
    );
    let grep = r#"bash {"command":"grep '<tool_call>' a"}"#;
    check(
        "mentions",
        &text,
        "",
        "",
        &[grep, grep, r#"read_file {"path":"<function=x"}"#],
        None,
    );
}

#[test]
fn a_mentioned_element_does_not_claim_the_end_of_its_value() {
    for value in [
        "grep \"<function=\" a.txt",
        "grep \"<function=bash>\" a.txt",
        "grep \"<function=unknown>\" a.txt",
        "grep \"<function=bash><parameter=command>\" a.txt",
        "echo '<tool_call>' '<seed:tool_call>'",
        "echo '<tool_call>\n<function=bash>\n<parameter=command>'",
        "cat <<X\n<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>\nX",
        "cat <<X\n```\n<tool_call>\n<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>\n</tool_call>\n```\nX",
    ] {
        let bash = format!("bash {}", serde_json::json!({"command": value}));
        for (begin, end) in [
            ("<tool_call>\n", "\n</tool_call>"),
            ("<seed:tool_call>\n", "\n</seed:tool_call>"),
            ("", ""),
        ] {
            let text = format!(
                "{begin}<function=bash>\n<parameter=command>\n{value}\n</parameter>\n</function>{end}"
            );
            check(value, &text, "", "", &[&bash], None);
            let two = format!(
                "{begin}<function=read_file>\n<parameter=path>\n{value}\n</parameter>\n<parameter=limit>\n5\n</parameter>\n</function>{end}"
            );
            let read = format!(
                "read_file {}",
                serde_json::json!({"path": value, "limit": 5})
            );
            check(value, &two, "", "", &[&read], None);
            check(
                value,
                &format!("{two}\n{text}"),
                "",
                "",
                &[&read, &bash],
                None,
            );
        }
    }
    // An element that begins on its own line may have claimed the end of the call, unless the
    // enclosing element ends as well.
    let begun = "cat <<X\n```xml\n<function=bash>\n<parameter=command>\n```\nX";
    let text = format!("<function=bash>\n<parameter=command>\n{begun}\n</parameter>\n</function>");
    check("nobody knows", &text, "", "", &[], Some("bash"));
    let bash = format!("bash {}", serde_json::json!({"command": begun}));
    check(
        "ended",
        &format!("<tool_call>\n{text}\n</tool_call>"),
        "",
        "",
        &[&bash],
        None,
    );
    // Where only the argument's own closing tag is missing, elements are still matched.
    let inner = "a <function=bash><parameter=command>ls</parameter></function> b";
    let text = format!(
        "<tool_call>\n<function=bash>\n<parameter=command>\n{inner}\n</function>\n</tool_call>"
    );
    check(
        "forgotten",
        &text,
        "",
        "",
        &[&format!("bash {}", serde_json::json!({"command": inner}))],
        None,
    );
}

#[test]
fn crlf_line_ends_belong_to_the_tags_as_well() {
    lists(
        "<tool_call>\r\n<function=bash>\r\n<parameter=command>\r\nls -l\r\n</parameter>\r\n</function>\r\n</tool_call>\r\n",
    );
    lists(
        "<tool_call>bash\r\n<arg_key>command</arg_key>\r\n<arg_value>\r\nls -l\r\n</arg_value>\r\n</tool_call>",
    );
    lists("```json\r\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ls -l\"}}\r\n```\r\n");
    lists("bash\r\n{\"command\": \"ls -l\"}\r\n");
    let text = "<function=bash>\r\n<parameter=command>\r\na\r\nb\r\n</parameter>\r\n</function>";
    check(
        "within",
        text,
        "",
        "",
        &[r#"bash {"command":"a\r\nb"}"#],
        None,
    );
}

#[test]
fn python_strings_have_the_value_that_python_gives_them() {
    lists("[bash(command=r'ls -l')]");
    lists("[bash(command='ls ' '-l')]");
    lists("[bash(command='ls ' + \"-l\")]");
    lists("[bash(command=('ls '\n  '-l'))]");
    lists("[bash(command='\\x6cs \\055l')]");
    lists("[bash(**{'command': 'ls -l'})]");
    check(
        "not escaped",
        "[bash(command='it's')]",
        "",
        "",
        &[r#"bash {"command":"it's"}"#],
        None,
    );
    check(
        "a pattern",
        r"[bash(command=r'grep \d+')]",
        "",
        "",
        &[r#"bash {"command":"grep \\d+"}"#],
        None,
    );
    // The value of a placeholder is unknown.
    says("[bash(command=f'ls {folder}')]");
}

#[test]
fn a_repeated_schema_is_no_call() {
    let schema = r#"{"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}"#;
    says(&format!(
        r#"{{"name": "bash", "description": "Runs.", "parameters": {schema}}}"#
    ));
    says(&format!(
        r#"[{{"type": "function", "function": {{"name": "bash", "parameters": {schema}}}}}]"#
    ));
    let (_, _, calls, _) = read(
        &format!(r#"<tool_call>{{"name": "bash", "arguments": {schema}}}</tool_call>"#),
        None,
    );
    assert_eq!(calls, [""; 0]);
    // A command about schemas is a command.
    let text = r#"{"name": "bash", "arguments": {"command": "echo '{\"type\": \"object\", \"properties\": {}}'"}}"#;
    assert_eq!(read(text, None).2.len(), 1);
}

#[test]
fn superfluous_brackets_are_skipped() {
    let object = r#"{"name": "bash", "arguments": {"command": "ls -l"}}"#;
    for text in [
        format!("<tool_call>{object}}}</tool_call>"),
        format!("<tool_call>\n{object}}}\n</tool_call>"),
        format!("<tool_call>[{object}}}]</tool_call>"),
        format!("{object}}}"),
        format!("```json\n{object}}}\n```"),
        format!("[TOOL_CALLS][{object}]]"),
        "[TOOL_CALLS]bash[ARGS]{\"command\": \"ls -l\"}}".to_owned(),
        "<function=bash>{\"command\": \"ls -l\"}}</function>".to_owned(),
    ] {
        lists(&text);
    }
    let text = format!("<tool_call>{object}}}\n{object}</tool_call>");
    check("and another", &text, "", "", &[LS, LS], None);
}

#[test]
fn kimi_deepseek_and_hunyuan_vary_their_marks() {
    let kimi = "<|tool_call_begin|> functions.bash:0 <|tool_call_argument_begin|> {\"command\": \"ls -l\"} <|tool_call_end|>";
    lists(&format!(
        "<|tool_call_section_begin|>\n{kimi}\n<|tool_call_section_end|>"
    ));
    check(
        "kimi",
        &format!("◁think▷hm◁/think▷<|tool_calls_section_begin|>{kimi}<|im_end|>"),
        "",
        "hm",
        &[LS],
        None,
    );
    let arguments = "bash\n```json\n{\"command\": \"ls -l\"}\n```<｜tool▁call▁end｜>";
    lists(&format!(
        "<｜tool▁calls▁begin｜>function<｜tool▁sep｜>{arguments}<｜tool▁calls▁end｜>"
    ));
    lists(&format!(
        "<｜tool▁calls｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>{arguments}"
    ));
    check(
        "r1",
        &format!("<think>hm</think>\n\nfunction<｜tool▁sep｜>{arguments}"),
        "",
        "hm",
        &[LS],
        None,
    );
    lists(
        "<tool_calls>\n<tool_call>bash\n```json\n{\"command\": \"ls -l\"}\n```\n</tool_call>\n</tool_calls>",
    );
    lists(
        "<tool_calls><tool_call>bash<tool_sep>\n<arg_key>command</arg_key>\n<arg_value>ls -l</arg_value>\n</tool_call></tool_calls>",
    );
    let calls = "<tool_calls>\n[{\"name\": \"bash\", \"arguments\": {\"command\": \"ls -l\"}}]\n</tool_calls>";
    check(
        "hunyuan",
        &format!("<think>\nhm\n</think>\n<answer>\n{calls}\n</answer>"),
        "",
        "hm",
        &[LS],
        None,
    );
    let step = "<steptml:invoke name=\"bash\"><steptml:parameter name=\"command\">ls -l</steptml:parameter></steptml:invoke>";
    let step = format!(
        "<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜>{step}<｜tool_call_end｜><｜tool_calls_end｜>"
    );
    // Calls of Step 3 and of Apertus are not parsed but reported.
    let apertus = "<|tools_prefix|>[{\"bash\": {\"command\": \"ls -l\"}}]<|tools_suffix|>";
    for text in [step.as_str(), apertus] {
        assert_eq!(
            parse(text, &tools(), None).incomplete.map(|left| left.part),
            Some(IncompletePart::Unreadable),
            "{text}"
        );
    }
    check(
        "hunyuan's answer",
        "<think>\nhm\n</think>\n<answer>\nHello\n</answer>",
        "Hello",
        "hm",
        &[],
        None,
    );
}

#[test]
fn granite_announces_thoughts_in_words() {
    let text = "Here is my thought process:\nI list.\nHere is my response:\nDone.";
    check("granite", text, "Done.", "I list.", &[], None);
    check(
        "granite 3",
        "Here's my thought process: Hm. Here's my response: Done.",
        "Done.",
        "Hm.",
        &[],
        None,
    );
    says("Done. Here is my thought process: none.\nHere is my response: none.");
}

#[test]
fn whole_numbers_keep_all_their_digits() {
    let long = "12345678901234567890123456789";
    for text in [
        format!(
            "<tool_call>{{\"name\": \"read_file\", \"arguments\": {{\"path\":\"a\",\"limit\":{long}}}}}</tool_call>"
        ),
        format!(
            "<tool_call>{{'name': 'read_file', 'arguments': {{'path': 'a', 'limit': {long},}}}}</tool_call>"
        ),
        format!(
            "{{\"name\": \"read_file\", \"arguments\": \"{{\\\"path\\\": \\\"a\\\", \\\"limit\\\": {long}}}\"}}"
        ),
        format!(
            "<function=read_file>\n<parameter=path>\na\n</parameter>\n<parameter=limit>\n{long}\n</parameter>\n</function>"
        ),
        format!("[read_file(path='a', limit={long})]"),
    ] {
        let calls = parse(&text, &tools(), None).calls;
        assert_eq!(
            calls.iter().map(Call::compact).collect::<Vec<_>>(),
            [format!("{{\"path\":\"a\",\"limit\":{long}}}")],
            "{text}"
        );
    }
}

#[test]
fn a_tools_element_in_a_file_is_text() {
    for text in [
        "<agent>\n  <tools>\n    <entry name=\"bash\"/>\n  </tools>\n</agent>",
        "<tools>bash</tools>",
        "It ends with <tools>",
    ] {
        check("an element", text, text, "", &[], None);
    }
    let call =
        "<tool_call>{\"name\": \"bash\", \"arguments\": {\"command\": \"ls -l\"}}</tool_call>";
    check(
        "behind one",
        &format!("I look through the <tools>\n\n{call}"),
        "I look through the <tools>",
        "",
        &[LS],
        None,
    );
    let told = "<tools>\n{\"name\": \"bash\", \"description\": \"runs\", \"parameters\": {\"command\": \"text\"}}\n</tools>";
    assert!(
        parse(told, &tools(), None).calls.is_empty(),
        "it tells of a tool"
    );
}

#[test]
fn calls_joined_on_one_line_are_all_parsed() {
    let call = |command: &str| {
        format!(
            "<tool_call>\n{{\"name\": \"bash\", \"arguments\": {{\"command\": \"{command}\"}}}}\n</tool_call>"
        )
    };
    let function = |command: &str| {
        format!("<function=bash>\n<parameter=command>\n{command}\n</parameter>\n</function>")
    };
    let mistral = |command: &str| {
        format!(
            "[TOOL_CALLS][{{\"name\": \"bash\", \"arguments\": {{\"command\": \"{command}\"}}}}]"
        )
    };
    for between in [
        ",\n",
        ", ",
        ";",
        " and ",
        ", and then\n",
        " or ",
        ", but not ",
        ". ",
        "\n\n",
    ] {
        for (first, second) in [
            (call("a"), call("b")),
            (function("a"), function("b")),
            (mistral("a"), mistral("b")),
        ] {
            let text = format!("I do both:\n{first}{between}{second}");
            assert_eq!(
                read(&text, None).2,
                ["bash {\"command\":\"a\"}", "bash {\"command\":\"b\"}"],
                "{text}"
            );
        }
    }
}
