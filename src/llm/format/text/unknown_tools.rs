//! Tests calls of unknown tools in all formats: calls where a token marks them, content elsewhere.

use super::format_corpus::FORMATS;
use super::format_corpus::Format;
use super::format_corpus::tools;
use super::*;
use crate::format::unknown_tool;

/// Returns the content and the calls of an answer, as if it were complete.
fn read(text: &str) -> (String, Vec<String>) {
    let known = parse(text, &tools(), None);
    let read = unknown_tool::read(
        text,
        Parser::new(&tools().and_any(), None),
        &known,
        &tools(),
    );
    let parsed = read.unwrap_or(known).ended(None);
    (
        parsed.content,
        parsed
            .calls
            .into_iter()
            .map(|call| format!("{} {}", call.name, call.compact()))
            .collect(),
    )
}

/// Returns a text with calls of an unknown tool in place of those of `bash`.
fn smash(text: &str) -> String {
    text.replace("bash", "smash")
}

/// Returns whether a token marks the calls of a format: anything else may be data.
fn is_marked(format: &Format) -> bool {
    let in_the_open = [
        "```",
        "[bash",
        "[{",
        "{",
        "bash",
        "Action:",
        "<function name=",
    ];
    !in_the_open
        .iter()
        .any(|begin| format.one.starts_with(begin))
        && format.name != "command-r"
}

const SMASH: &str = r#"smash {"command":"ls -l"}"#;
const READ: &str = r#"read_file {"path":"a b.txt","limit":5}"#;

#[test]
fn marked_calls_of_unknown_tools_are_calls_in_each_format() {
    let marked: Vec<&Format> = FORMATS.iter().filter(|format| is_marked(format)).collect();
    assert!(marked.len() > 30, "{}", marked.len());
    for format in marked {
        for (words, end) in [
            ("", ""),
            ("I look.\n\n", "\n"),
            ("<think>\nHm.\n</think>\n\n", ""),
        ] {
            let text = format!("{words}{}{end}", smash(format.one));
            let said = if words.starts_with('I') {
                "I look."
            } else {
                ""
            };
            assert_eq!(
                read(&text),
                (said.to_owned(), vec![SMASH.to_owned()]),
                "{}: {text}",
                format.name
            );
        }
        // Beside a known tool's call it keeps its position.
        assert_eq!(
            read(&smash(format.two)),
            (String::new(), vec![SMASH.to_owned(), READ.to_owned()]),
            "{}",
            format.name
        );
    }
}

#[test]
fn gpt_oss_calls_its_own_tools() {
    for header in [
        "analysis to=python code",
        "commentary to=python code",
        "analysis to=python <|constrain|>code",
    ] {
        for end in ["<|call|>", ""] {
            let text = format!(
                "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>{header}<|message|>import os; print(1){end}"
            );
            assert_eq!(
                read(&text),
                (
                    String::new(),
                    vec!["python {\"input\":\"import os; print(1)\"}".to_owned()]
                ),
                "{text}"
            );
        }
    }
}

#[test]
fn possible_examples_and_data_stay_content() {
    for format in FORMATS {
        let one = smash(format.one);
        for text in [
            format!("For example:\n````text\n{one}\n````\nlists files."),
            smash(format.cut),
        ] {
            assert_eq!(read(&text).1, [""; 0], "{}: {text}", format.name);
        }
        if !is_marked(format) {
            assert_eq!(read(&one).1, [""; 0], "{}: {one}", format.name);
        }
    }
    for text in [
        "The <tool_call> tag is put around calls.",
        "<tool_call>smash</tool_call>",
        "<tool_call>{\"name\": \"tool_name\", \"arguments\": {}}</tool_call>",
        "[TOOL_CALLS] is what Mistral writes.",
        "<tool>smash it</tool>",
        "def f(x):\n    return [smash(x=1)]\n",
        "{\"name\": \"package\", \"args\": {}}",
        ">>> smash\n{\"a\": 1}",
    ] {
        assert_eq!(read(text).1, [""; 0], "{text}");
    }
}

#[test]
fn calls_of_unknown_tools_are_the_same_for_any_split() {
    let tools = tools().and_any();
    for format in FORMATS {
        let text = format!("I look.\n{}\nDone.", smash(format.two));
        let mut pieces = Parsed::default();
        let mut parser = Parser::new(&tools, None);
        for piece in text.split_inclusive(|_: char| true) {
            parser.feed(piece, &mut |piece| pieces.add(piece));
        }
        let incomplete = parser.finish(&mut |piece| pieces.add(piece));
        assert_eq!(
            pieces.ended(incomplete),
            parse(&text, &tools, None),
            "{}",
            format.name
        );
    }
}
