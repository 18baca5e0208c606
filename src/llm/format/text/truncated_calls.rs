//! Tests that a truncated call is never executed, wherever it was cut: half a value may be half a
//! file.

use super::format_corpus::FORMATS;
use super::format_corpus::LS;
use super::format_corpus::check;
use super::format_corpus::tools;
use super::*;
use podbay_soak as soak;

/// Returns calls of `bash` with this command, in each form that puts arguments between tags.
fn calls(value: &str) -> Vec<String> {
    let mut all = Vec::new();
    for line in ["", "\n"] {
        let function = format!(
            "<function=bash>{line}<parameter=command>{line}{value}{line}</parameter>{line}</function>"
        );
        let invoke = |tag: &str| {
            format!(
                "<{tag} name=\"bash\">{line}<parameter name=\"command\">{line}{value}{line}</parameter>{line}</{tag}>"
            )
        };
        let pairs =
            format!("bash{line}<arg_key>command</arg_key>{line}<arg_value>{value}</arg_value>");
        for (begin, end) in [
            ("<tool_call>", "</tool_call>"),
            ("<seed:tool_call>", "</seed:tool_call>"),
            ("", ""),
        ] {
            all.push(format!("{begin}{line}{function}{line}{end}"));
        }
        for (begin, end) in [("<minimax:tool_call>", "</minimax:tool_call>"), ("", "")] {
            all.push(format!("{begin}{line}{}{line}{end}", invoke("invoke")));
            all.push(format!("{begin}{line}{}{line}{end}", invoke("function")));
        }
        all.push(format!("<tool_call>{pairs}{line}</tool_call>"));
    }
    all.iter().map(|text| text.trim().to_owned()).collect()
}

#[test]
fn a_truncated_file_about_calls_is_not_written() {
    let names = [
        "hermes, qwen",
        "qwen3-coder, nemotron 3",
        "seed-oss",
        "minimax m2",
        "glm 4.5 and later",
        "llama 3, functionary 3.1",
    ];
    let examples = FORMATS
        .iter()
        .filter(|format| names.contains(&format.name))
        .flat_map(|format| [format.one, format.two]);
    let named =
        "<function name=\"bash\">\n<parameter name=\"command\">\nls\n</parameter>\n</function>";
    for example in examples.chain([
        named,
        "",
        "<parameter=x>1</parameter>",
        "half </parameter> more",
    ]) {
        let value = format!("# Use\n\n{example}\n\nand once more:\n{example}\nis all.");
        for text in calls(&value) {
            let whole = parse(&text, &tools(), None);
            assert_eq!((whole.calls.len(), whole.incomplete), (1, None), "{text}");
            assert!(whole.calls[0].arguments.contains("is all."), "{text}");
            for (at, _) in soak::sample(text.char_indices(), 10) {
                let parsed = parse(&text[..at], &tools(), None);
                // A part of the very last tag is enough where pairs mark the ends of values.
                let is_whole = text.contains("<arg_key>")
                    && text[at..].len() < "</tool_call>".len()
                    && parsed.calls == whole.calls;
                assert!(
                    parsed.calls.is_empty() || is_whole,
                    "{}\n---\n{:?}",
                    &text[..at],
                    parsed.calls
                );
                if !is_whole && text.find("command").is_some_and(|begun| at > begun) {
                    let name = parsed.incomplete.and_then(|incomplete| incomplete.name);
                    assert_eq!(name.as_deref(), Some("bash"), "{}", &text[..at]);
                }
            }
        }
    }
}

#[test]
fn a_tagged_call_without_a_closing_tag_is_truncated() {
    let call = "<function=bash>\n<parameter=command>\nls -l\n</parameter>\n</function>";
    for text in [
        format!("<tool_call>\n{call}"),
        format!("<tool_call>\n{call}\n</tool_c"),
        format!("<seed:tool_call>{call}</tool_call>"),
        call.replace("</function>", "</func"),
        call.replace("</function>", "</tool_call>"),
        call.replace("</function>", ""),
        format!("<tool_call>\n{call}\nand half a file more"),
    ] {
        check("cut", &text, "", "", &[], Some("bash"));
    }
    check("forgotten around it", call, "", "", &[LS], None);
    check(
        "begun outside",
        &format!("{call}\n</tool_call>"),
        "",
        "",
        &[LS],
        None,
    );
    check(
        "ended around it",
        &format!(
            "<tool_call>\n{}</tool_call>",
            call.replace("</function>", "")
        ),
        "",
        "",
        &[LS],
        None,
    );
    check(
        "another follows",
        &format!("<tool_call>\n{call}\n<tool_call>\n{call}\n</tool_call>"),
        "",
        "",
        &[LS, LS],
        None,
    );
}

#[test]
fn an_empty_list_of_calls_at_the_end_is_truncated() {
    let kimi = "<|tool_calls_section_begin|><|tool_call_begin|>";
    let deepseek = "<\u{ff5c}tool\u{2581}calls\u{2581}begin\u{ff5c}><\u{ff5c}tool\u{2581}call\u{2581}begin\u{ff5c}>";
    let dsml = "<\u{ff5c}DSML\u{ff5c}function_calls>\n<\u{ff5c}DSML\u{ff5c}invoke name=";
    let minimax = "]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name=";
    for begin in [kimi, deepseek, dsml, minimax] {
        for (at, _) in begin.char_indices().filter(|(at, _)| *at >= 12) {
            let text = format!("I look.\n{}", &begin[..at]);
            check("cut", &text, "I look.", "", &[], Some(""));
        }
    }
    check(
        "spoken of",
        "<|tool_calls_section_begin|> begins them.",
        "begins them.",
        "",
        &[],
        None,
    );
}

#[test]
fn a_final_mark_begins_a_call_only_at_the_beginning_of_a_line() {
    let ends = |text: &str| {
        parse(text, &tools(), None)
            .incomplete
            .is_some_and(|incomplete| ends_with_mark(text, &incomplete))
    };
    for text in [
        "<tool_call>",
        "Let me look at the file.\n<tool_call>\n",
        "<tool_call>\n<function=",
        "[TOOL_CALLS]",
        "<|tool_call_start|>",
        "<minimax:tool_call>\n<invoke",
        "Let me look.\n<tool_call></tool_call>",
        "I look.\n<tool_call>\n{\"na",
        "For example:\n<tool_call>",
        "The token that begins a call is\n\n<tool_call>",
    ] {
        assert!(ends(text), "{text}");
    }
    for text in [
        "It begins with <tool_call>",
        "It begins with `<tool_call>`",
        "`<tool_call>`",
        "> <tool_call>",
        "<tool_c",
        "<tool_call>\nis how it begins.",
        "It ends with <tools>",
    ] {
        assert!(!ends(text), "{text}");
    }
}

#[test]
fn a_partial_closing_token_after_a_call_is_not_content() {
    let kimi = "<|tool_calls_section_begin|><|tool_call_begin|>functions.bash:0<|tool_call_argument_begin|>{\"command\": \"ls -l\"}<|tool_call_end|>";
    let harmony = "<|channel|>commentary to=functions.bash<|message|>{\"command\": \"ls -l\"}";
    for (call, end) in [(kimi, "<|tool_calls_section_end|>"), (harmony, "<|call|>")] {
        for (at, _) in end.char_indices() {
            let text = format!("{call}{}", &end[..at]);
            let parsed = parse(&text, &tools(), None);
            assert_eq!(
                (parsed.calls.len(), parsed.content.as_str()),
                (1, ""),
                "{text}"
            );
        }
    }
}
