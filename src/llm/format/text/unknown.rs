//! Calls of tools that do not exist, in all formats: where a token marks them they are calls, and
//! elsewhere they stay text.

use super::corpus::FORMATS;
use super::corpus::Format;
use super::corpus::tools;
use super::*;
use crate::format::unknown;

/// Returns the words and the calls of an answer, read as it is where it comes to an end.
fn read(text: &str) -> (String, Vec<String>) {
    let known = parse(text, &tools(), None);
    let read = unknown::read(
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

/// Returns a text with calls of a tool that does not exist in the place of those of `bash`.
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
fn a_marked_call_of_an_unknown_tool_is_one_in_each_format() {
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
        // Beside one that exists it has its place.
        assert_eq!(
            read(&smash(format.two)),
            (String::new(), vec![SMASH.to_owned(), READ.to_owned()]),
            "{}",
            format.name
        );
    }
}

#[test]
fn what_gpt_oss_writes_for_a_tool_of_its_own_is_a_call_of_it() {
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
fn what_may_be_an_example_or_data_stays_text() {
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
fn such_calls_are_the_same_however_the_text_is_cut() {
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
