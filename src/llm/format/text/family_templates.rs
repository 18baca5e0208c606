//! Tests of what each family's templates teach besides the one shape in `format_corpus`:
//! recipients, thoughts that the prompt began, values of several lines, types, calls without
//! arguments, truncated texts.

use serde_json::json;

use super::format_corpus::LS;
use super::format_corpus::READ;
use super::format_corpus::check;
use super::format_corpus::tools;
use super::*;
use crate::message::ToolSpec;

/// Tools with more types than those of the corpus.
fn typed() -> Tools {
    let properties = json!({
        "path": {"type": "string"}, "content": {"type": "string"}, "limit": {"type": "integer"}, "all": {"type": "boolean"},
        "names": {"type": "array", "items": {"type": "string"}}, "options": {"type": "object"},
    });
    let spec = |name: &str, parameters| ToolSpec {
        name: name.into(),
        description: String::new(),
        parameters: json!({"type": "object", "properties": parameters}),
    };
    Tools::new(&[
        spec("write_file", properties),
        spec("git_status", json!({})),
    ])
}

/// Checks the calls of such tools, whole and character by character.
#[track_caller]
fn calls(text: &str, expected: &[serde_json::Value]) {
    let parsed = parse(text, &typed(), None);
    let mut pieces = Parsed::default();
    let mut parser = Parser::new(&typed(), None);
    text.split_inclusive(|_: char| true)
        .for_each(|piece| parser.feed(piece, &mut |piece| pieces.add(piece)));
    let incomplete = parser.finish(&mut |piece| pieces.add(piece));
    assert_eq!(pieces.ended(incomplete), parsed, "{text}");
    let read = |call: &Call| {
        json!([
            call.name,
            serde_json::from_str::<serde_json::Value>(&call.arguments).expect("JSON")
        ])
    };
    assert_eq!(
        parsed.calls.iter().map(read).collect::<Vec<_>>(),
        expected,
        "{text}"
    );
    assert_eq!(
        (parsed.content.as_str(), &parsed.incomplete),
        ("", &None),
        "{text}"
    );
}

#[test]
fn functionary_begins_with_a_header_without_its_mark() {
    let call = "bash\n{\"command\": \"ls -l\"}";
    check(
        "words, then a call",
        &format!("all\nI list.\n>>>{call}"),
        "I list.",
        "",
        &[LS],
        None,
    );
    check(
        "in one line",
        &format!("all\nI list the files.>>>{call}<|eot_id|>"),
        "I list the files.",
        "",
        &[LS],
        None,
    );
    check(
        "nothing said",
        &format!("all\n>>>{call}"),
        "",
        "",
        &[LS],
        None,
    );
    check(
        "words again",
        "all\n\nI list.\n>>>all\nDone.",
        "I list.\nDone.",
        "",
        &[],
        None,
    );
    check(
        "a call first",
        &format!("{call}\n>>>read_file\n{{\"path\": \"a b.txt\", \"limit\": 5}}"),
        "",
        "",
        &[LS, READ],
        None,
    );
    check(
        "cut",
        "all\nI list.\n>>>bash\n{\"comm",
        "I list.",
        "",
        &[],
        Some("bash"),
    );
    check(
        "behind a thought",
        &format!("<think>hm</think>all\nI list.\n>>>{call}"),
        "I list.",
        "hm",
        &[LS],
        None,
    );
    assert_eq!(
        format_corpus::read("all\nHello.", Some("functionary")),
        ("Hello.".into(), String::new(), vec![], None)
    );
    // Version 2 has another mark.
    check(
        "to everybody",
        "<|from|>assistant\n<|recipient|>all\n<|content|>Hello.<|stop|>",
        "Hello.",
        "",
        &[],
        None,
    );
    check(
        "without its mark",
        " all\n<|content|>Hello.<|stop|>",
        "Hello.",
        "",
        &[],
        None,
    );
    check(
        "a call without it",
        " bash\n<|content|>{\"command\": \"ls -l\"}<|stop|>",
        "",
        "",
        &[LS],
        None,
    );
    let text = "<|recipient|>all\n<|content|>I list.\n<|from|>assistant\n<|recipient|>bash\n<|content|>{\"command\": \"ls -l\"}<|stop|>";
    check("both", text, "I list.", "", &[LS], None);
}

#[test]
fn a_tool_name_as_the_whole_answer_is_content() {
    for text in ["bash", "Your shell is\n\nbash", "Use\nread_file\n"] {
        let (content, _, calls, incomplete) = super::format_corpus::read(text, None);
        assert_eq!(
            (content.trim(), calls.len(), incomplete),
            (text.trim(), 0, None)
        );
    }
}

#[test]
fn words_like_functionarys_headers_are_content() {
    for text in [
        "all\nclean\ninstall",
        "all",
        "all\nHello.",
        "all\nSee >>> print(x)\nand >>>bash is good.",
        ">>> print(x)\n1\n>>> all\n>>> bash",
        "> > > all\n>>>> bash\n{\"command\": \"ls -l\"}",
        "<<<<<<< HEAD\na\n=======\nb\n>>>>>>> bash\n{}",
        ">>>bash is what I run.\n>>>all of it",
        "all\n```\n>>>bash\n{\"command\": \"ls -l\"}\n```",
        "It is all\n>>> x",
    ] {
        check("words", text, text, "", &[], None);
    }
}

#[test]
fn gpt_oss_may_name_the_tool_after_its_role() {
    let call = "<|message|>{\"command\": \"ls -l\"}<|call|>";
    for head in [
        " to=functions.bash<|channel|>commentary <|constrain|>json",
        " to=functions.bash<|channel|>commentary json",
        "to=bash <|channel|>analysis",
        "<|channel|>analysis<|message|><|end|><|start|>assistant to=functions.bash<|channel|>commentary",
        "<|channel|>analysis to=functions.bash code",
    ] {
        check(head, &format!("{head}{call}"), "", "", &[LS], None);
    }
    check(
        "cut",
        " to=functions.bash<|channel|>commen",
        "",
        "",
        &[],
        Some("bash"),
    );
    calls(
        "<|channel|>commentary to=functions.git_status<|message|><|call|>",
        &[json!(["git_status", {}])],
    );
    for text in [
        "to=functions.bash is how it is addressed.",
        "to=bash",
        "to=functions.other<|channel|>commentary<|message|>{}",
    ] {
        assert_eq!(parse(text, &tools(), None).calls, [], "{text}");
    }
    let stray = "<|channel|>commentary to=assistant<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Yes.";
    check("a header too many", stray, "Yes.", "hm", &[], None);
}

#[test]
fn thoughts_end_at_the_tokens_of_their_template() {
    let check = |text: &str| self::check("thought", text, "Yes.", "I know.", &[], None);
    check("I know.<|END_THINKING|><|START_RESPONSE|>Yes.<|END_RESPONSE|>");
    check("<|START_THINKING|>I know.<|START_TEXT|>Yes.<|END_TEXT|>");
    check("<mm:think>I know.</mm:think>Yes.[e~[");
    check("I know.\n</mm:think>\nYes.");
    check(
        "<|open|>think<|sep|>I know.<|close|>think<|sep|><|open|>response<|sep|>Yes.<|close|>response<|sep|><|close|>message<|sep|>",
    );
    check(
        "I know.<|close|>think<|sep|><|open|>response<|sep|>Yes.<|close|>response<|sep|><|end_of_msg|>",
    );
    check("I know.</think><response>Yes.</response>");
    check("<|channel>thought\nI know.<channel|>Yes.<channel|>");
    let action = "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"bash\", \"parameters\": {\"command\": \"ls -l\"}}\n]<|END_ACTION|>";
    self::check(
        "command-r7b",
        &format!("I look.<|END_THINKING|>{action}<|END_OF_TURN_TOKEN|>"),
        "",
        "I look.",
        &[LS],
        None,
    );
    self::check(
        "its thought has no end",
        &format!("<|START_THINKING|>I look.{action}"),
        "",
        "I look.",
        &[LS],
        None,
    );
    self::check(
        "bare",
        "Use <|END_THINKING|> there.",
        "there.",
        "Use",
        &[],
        None,
    );
}

/// Contents of a written file: whitespace at both ends, quotes, markup.
const FILES: [&str; 3] = [
    "\tx = \"q\"\n\n<a href='#'>\\n</a>\n  ]\n",
    "one line\n",
    "no end",
];

#[test]
fn values_are_exact_including_their_last_line_end() {
    for file in FILES {
        check_file(file);
    }
}

#[track_caller]
fn check_file(file: &str) {
    let quoted = json!(file).to_string();
    let object = format!("{{\"path\": \"a\", \"content\": {quoted}}}");
    let named = format!("{{\"name\": \"write_file\", \"arguments\": {object}}}");
    let invoke = |prefix: &str, text: &str| {
        format!(
            "<{prefix}invoke name=\"write_file\">\n<{prefix}parameter name=\"path\"{text}>a</{prefix}parameter>\n<{prefix}parameter name=\"content\"{text}>{file}</{prefix}parameter>\n</{prefix}invoke>"
        )
    };
    let mark = "]<]minimax[>[";
    let argument = |key: &str, text: &str| {
        format!(
            "<|open|>argument key=\"{key}\" type=\"string\"<|sep|>{text}<|close|>argument<|sep|>"
        )
    };
    for text in [
        format!("<tool_call>\n{named}\n</tool_call>"),
        format!(
            "<tool_call>\n<function=write_file>\n<parameter=path>\na\n</parameter>\n<parameter=content>\n{file}\n</parameter>\n</function>\n</tool_call>"
        ),
        format!(
            "<seed:tool_call>\n<function=write_file>\n<parameter=path>a</parameter>\n<parameter=content>{file}</parameter>\n</function>\n</seed:tool_call>"
        ),
        format!(
            "<minimax:tool_call>\n{}\n</minimax:tool_call>",
            invoke("", "")
        ),
        format!(
            "<｜DSML｜tool_calls>\n{}\n</｜DSML｜tool_calls>",
            invoke("｜DSML｜", " string=\"true\"")
        ),
        format!(
            "{mark}<tool_call>\n{mark}<invoke name=\"write_file\">{mark}<path>a{mark}</path>{mark}<content>{file}{mark}</content>{mark}</invoke>\n{mark}</tool_call>"
        ),
        format!(
            "<tool_call>write_file\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n<arg_key>content</arg_key>\n<arg_value>{file}</arg_value>\n</tool_call>"
        ),
        format!(
            "<|open|>tools<|sep|><|open|>call tool=\"write_file\" index=\"1\"<|sep|>{}{}<|close|>call<|sep|><|close|>tools<|sep|>",
            argument("path", "a"),
            argument("content", file)
        ),
        format!(
            "<function name=\"write_file\"><param name=\"path\">a</param><param name=\"content\"><![CDATA[{file}]]></param></function>"
        ),
        format!(
            "<|tool_call>call:write_file{{path:<|\"|>a<|\"|>,content:<|\"|>{file}<|\"|>}}<tool_call|>"
        ),
        format!("<|tool_call_start|>[write_file(path=\"a\", content={quoted})]<|tool_call_end|>"),
        format!("<TOOLCALL>[{named}]</TOOLCALL>"),
        format!("<|tool_call|>[{named}]"),
        format!("[TOOL_CALLS]write_file[ARGS]{object}"),
        format!(">>>write_file\n{object}"),
        format!(
            "<|START_ACTION|>[{{\"tool_call_id\": \"0\", \"tool_name\": \"write_file\", \"parameters\": {object}}}]<|END_ACTION|>"
        ),
        format!(
            "<|tool_call_begin|>functions.write_file:0<|tool_call_argument_begin|>{object}<|tool_call_end|>"
        ),
        format!(
            "<|channel|>commentary to=functions.write_file <|constrain|>json<|message|>{object}<|call|>"
        ),
    ] {
        calls(
            &text,
            &[json!(["write_file", {"path": "a", "content": file}])],
        );
    }
}

#[test]
fn types_follow_the_schema_and_arguments_may_be_missing() {
    let expected = [
        json!(["write_file", {"path": "1", "limit": 5, "all": true, "names": ["a", "b"], "options": {"k": [1, null]}}]),
        json!(["git_status", {}]),
    ];
    let values = [
        ("path", "1"),
        ("limit", "5"),
        ("all", "true"),
        ("names", "[\"a\", \"b\"]"),
        ("options", "{\"k\": [1, null]}"),
    ];
    let each = |one: &dyn Fn(&str, &str) -> String| {
        values
            .iter()
            .map(|(key, value)| one(key, value))
            .collect::<String>()
    };
    let function = |lines: &str| {
        let all =
            each(&|key, value| format!("<parameter={key}>{lines}{value}{lines}</parameter>\n"));
        format!("<function=write_file>\n{all}</function>")
    };
    let invoke = each(&|key, value| format!("<parameter name=\"{key}\">{value}</parameter>\n"));
    let pairs =
        each(&|key, value| format!("<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n"));
    let arguments = each(&|key, value| {
        format!("<|open|>argument key=\"{key}\" type=\"x\"<|sep|>{value}<|close|>argument<|sep|>")
    });
    let mark = "]<]minimax[>[";
    let flat = each(&|key, value| {
        let value = match key {
            "names" => format!("{mark}<item>a{mark}</item>{mark}<item>b{mark}</item>"),
            "options" => format!(
                "{mark}<k>{mark}<item>1{mark}</item>{mark}<item>null{mark}</item>{mark}</k>"
            ),
            _ => value.to_owned(),
        };
        format!("{mark}<{key}>{value}{mark}</{key}>")
    });
    for text in [
        format!("<tool_call>\n{}\n</tool_call>\n<tool_call>\n<function=git_status>\n</function>\n</tool_call>", function("\n")),
        format!("<seed:tool_call>\n{}\n<function=git_status>\n</function>\n</seed:tool_call>", function("")),
        format!("<minimax:tool_call>\n<invoke name=\"write_file\">\n{invoke}</invoke>\n<invoke name=\"git_status\">\n</invoke>\n</minimax:tool_call>"),
        format!("<tool_call>write_file\n{pairs}</tool_call>\n<tool_call>git_status\n</tool_call>"),
        format!("<|open|>call tool=\"write_file\" index=\"1\"<|sep|>{arguments}<|close|>call<|sep|><|open|>call tool=\"git_status\" index=\"2\"<|sep|><|close|>call<|sep|>"),
        format!("{mark}<tool_call>\n{mark}<invoke name=\"write_file\">{flat}{mark}</invoke>\n{mark}<invoke name=\"git_status\">{mark}</invoke>\n{mark}</tool_call>"),
        "<|tool_call_start|>[write_file(path=\"1\", limit=5, all=true, names=['a', \"b\"], options={'k': [1, None]}), git_status()]<|tool_call_end|>".to_owned(),
        "<|tool_call>call:write_file{path:<|\"|>1<|\"|>,limit:5,all:true,names:[<|\"|>a<|\"|>,<|\"|>b<|\"|>],options:{k:[1,null]}}<tool_call|><|tool_call>call:git_status{}<tool_call|>".to_owned(),
    ] {
        calls(&text, &expected);
    }
    // A list in Python syntax.
    let text = "<function=write_file>\n<parameter=names>\n['a', \"b\"]\n</parameter>\n</function>";
    calls(text, &[json!(["write_file", {"names": ["a", "b"]}])]);
}

#[test]
fn a_truncated_name_begins_a_call() {
    for text in [
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.ba",
        "<|tool_calls_begin|><|tool_call_begin|>function<|tool_s",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>functi",
        "[TOOL_CALLS]ba",
        "<|recipient|>ba",
        "<|open|>tools<|sep|><|open|>call tool=\"ba",
        "]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name=\"ba",
    ] {
        check("cut", text, "", "", &[], Some(""));
        let whole = format!("{}\n{text}", format_corpus::FORMATS[0].one);
        check("behind a whole one", &whole, "", "", &[LS], Some(""));
    }
}

#[test]
fn deepseeks_bars_and_gaps_may_be_mixed() {
    let arguments = "{\"command\": \"ls -l\"}";
    for bar in ["|", "｜"] {
        for gap in ["_", "▁", " "] {
            let sign = |words: &[&str]| format!("<{bar}{}{bar}>", words.join(gap));
            let begin = sign(&["tool", "calls", "begin"]) + &sign(&["tool", "call", "begin"]);
            let end = sign(&["tool", "call", "end"])
                + &sign(&["tool", "calls", "end"])
                + &sign(&["end", "of", "sentence"]);
            let sep = sign(&["tool", "sep"]);
            check(
                "v3",
                &format!("{begin}function{sep}bash\n```json\n{arguments}\n```{end}"),
                "",
                "",
                &[LS],
                None,
            );
            check(
                "v3, no fence",
                &format!("{begin}function{sep}bash\n{arguments}{end}"),
                "",
                "",
                &[LS],
                None,
            );
            check(
                "v3.1",
                &format!("{begin}bash{sep}{arguments}{end}"),
                "",
                "",
                &[LS],
                None,
            );
            check(
                "v3.1, lines",
                &format!("{begin}\nbash\n{sep}\n{arguments}\n{end}"),
                "",
                "",
                &[LS],
                None,
            );
            let outputs = sign(&["tool", "outputs", "begin"]) + &sign(&["tool", "output", "begin"]);
            for other in [sign(&["User"]), outputs] {
                check(
                    "another's turn",
                    &format!("{begin}bash{sep}{arguments}{end}{other}now delete it"),
                    "",
                    "",
                    &[LS],
                    None,
                );
            }
        }
    }
    for text in [
        "It is <|User|> there.",
        "The token <|tool_call_begin|> begins one.",
        "a <|tool_sep|> b",
    ] {
        check("spoken of", text, text, "", &[], None);
    }
}

#[test]
fn arguments_escaped_too_often_are_parsed() {
    let quoted = |text: String| json!(text).to_string();
    let inner = |text: &str| text[1..text.len() - 1].to_owned();
    let expected = [json!(["write_file", {"path": "a", "content": FILES[0]}])];
    let plain = json!({"path": "a", "content": FILES[0]}).to_string();
    let once = inner(&quoted(plain.clone()));
    let twice = inner(&quoted(once.clone()));
    let forms = [
        quoted(plain.clone()),
        quoted(quoted(plain.clone())),
        quoted(quoted(quoted(plain.clone()))),
        once.clone(),
        twice.clone(),
        quoted(once),
        quoted(twice),
    ];
    for written in forms {
        for text in [
            format!(
                "<tool_call>\n{{\"name\": \"write_file\", \"arguments\": {written}}}\n</tool_call>"
            ),
            format!("{{\"name\": \"write_file\", \"parameters\": {written}}}"),
            format!("[TOOL_CALLS]write_file[ARGS]{written}"),
            format!(
                "<tool_call>{{\"function\": {{\"name\": \"write_file\", \"arguments\": {written}}}}}</tool_call>"
            ),
            format!(
                "<|START_ACTION|>[{{\"tool_name\": \"write_file\", \"parameters\": {written}}}]<|END_ACTION|>"
            ),
        ] {
            calls(&text, &expected);
        }
    }
    let call =
        json!({"name": "write_file", "arguments": {"path": "a", "content": FILES[0]}}).to_string();
    for written in [
        quoted(call.clone()),
        quoted(quoted(call.clone())),
        inner(&quoted(call.clone())),
        inner(&quoted(inner(&quoted(call)))),
    ] {
        calls(&format!("<tool_call>\n{written}\n</tool_call>"), &expected);
    }
}

/// A text about strings keeps its backslashes.
#[test]
fn intended_backslashes_are_kept() {
    for content in [
        "a\\nb",
        "printf(\"a\\\\n\");",
        "{\\\"x\\\": \\\"y\\\"}",
        "\\",
        "\\\\\"",
        "C:\\new\\",
        "\\\\u00e9",
        "{\\\\\"x\\\\\": 1}",
    ] {
        let arguments = json!({"path": "a", "content": content});
        let texts = [
            arguments.to_string(),
            json!(arguments.to_string()).to_string(),
        ];
        for written in texts {
            calls(
                &format!(
                    "<tool_call>{{\"name\": \"write_file\", \"arguments\": {written}}}</tool_call>"
                ),
                &[json!(["write_file", arguments])],
            );
        }
        let text = format!(
            "<function=write_file>\n<parameter=path>\na\n</parameter>\n<parameter=content>\n{content}\n</parameter>\n</function>"
        );
        calls(&text, &[json!(["write_file", arguments])]);
    }
}
