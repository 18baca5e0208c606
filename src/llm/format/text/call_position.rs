//! Tests that position decides whether a call counts, not the words around it.

use super::format_corpus::FORMATS;
use super::format_corpus::Format;
use super::format_corpus::LS;
use super::format_corpus::READ;
use super::format_corpus::check;
use super::format_corpus::read;
use super::format_corpus::tools;
use super::*;
use podbay_soak as soak;

const BARE: &str = r#"{"name": "bash", "arguments": {"command": "ls -l"}}"#;

/// Various words before a call: an explanation, a prohibition, a quote, an announcement.
const WORDS: [&str; 12] = [
    "I look.\n",
    "Never run this:\n",
    "For example: ",
    "The file says: ",
    "> ",
    "- a\n- ",
    "1. First ",
    "| ",
    "<!-- ",
    "It reads \"",
    "Output:\n\n    ",
    "A call looks like this:\n\n",
];

/// Returns the formats whose calls begin with a token, which counts anywhere on a line.
fn marked() -> Vec<&'static Format> {
    let is_marked = |format: &&Format| {
        format.one.starts_with(['<', ']'])
            || format.one.starts_with("[TOOL") && !format.one.starts_with("[TOOL_CALLS][")
    };
    let all: Vec<&Format> = FORMATS.iter().filter(is_marked).collect();
    assert!(all.len() > 30, "{}", all.len());
    all
}

/// Checks that a text is content, and that it looks like a call of `bash`.
#[track_caller]
fn is_unclear(text: &str) {
    let parsed = parse(text, &tools(), None);
    read(text, None);
    let unclear = parsed
        .incomplete
        .map(|incomplete| (incomplete.part, incomplete.name));
    assert_eq!(
        (parsed.calls.len(), parsed.content.as_str()),
        (0, text.trim()),
        "{text}"
    );
    assert_eq!(
        unclear,
        Some((IncompletePart::Unclear, Some("bash".to_owned()))),
        "{text}"
    );
}

#[test]
fn a_marked_call_counts_anywhere_outside_of_code() {
    for format in marked() {
        for words in soak::sample(WORDS, 4) {
            let text = format!("{words}{}", format.one);
            let (content, _, calls, incomplete) = read(&text, None);
            assert_eq!(
                (content.as_str(), calls, incomplete),
                (words.trim(), vec![LS.to_owned()], None),
                "{}: {text}",
                format.name
            );
        }
        for behind in [" is what I run.", ", then I wait.", "\n\nNow I wait."] {
            let text = format!("I look: {}{behind}", format.one);
            assert_eq!(read(&text, None).2, [LS], "{}: {text}", format.name);
        }
        let text = format!("Either {} or\n{}", format.one, format.one);
        assert_eq!(read(&text, None).2, [LS, LS], "{}: {text}", format.name);
    }
}

#[test]
fn a_marked_call_in_code_is_content() {
    for format in FORMATS {
        let text = format!("For example:\n````text\n{}\n````\nlists files.", format.one);
        let (content, _, calls, _) = read(&text, None);
        assert_eq!(calls, [""; 0], "{} in a fence", format.name);
        assert!(
            content.starts_with("For example:") && content.ends_with("lists files."),
            "{content}"
        );
        if !format.one.contains(['\n', '`']) {
            let text = format!("A call is written `{}` there.", format.one);
            assert_eq!(
                read(&text, None).2,
                [""; 0],
                "{} in code: {text}",
                format.name
            );
        }
        let unknown = format.one.replace("bash", "smash");
        assert_eq!(
            read(&unknown, None).2,
            [""; 0],
            "{}: {unknown}",
            format.name
        );
    }
    let call = FORMATS[0].one;
    for text in [
        format!("```rust\nlet x = {{}};\n```\n```text\n{call}\n```"),
        format!("~~~text\n{call}\n~~~"),
        format!("```\n{call}"),
    ] {
        if !text.ends_with("</tool_call>") {
            assert_eq!(read(&text, None).2, [""; 0], "{text}");
        }
    }
}

#[test]
fn an_unmarked_call_counts_only_alone() {
    for bare in [
        BARE,
        "[bash(command=\"ls -l\")]",
        "bash(command=\"ls -l\")",
        "bash\n{\"command\": \"ls -l\"}",
    ] {
        check("alone", bare, "", "", &[LS], None);
        check(
            "with blanks",
            &format!("\n\n  {bare}\n"),
            "",
            "",
            &[LS],
            None,
        );
        check(
            "behind a thought",
            &format!("<think>Hm.</think>\n{bare}"),
            "",
            "Hm.",
            &[LS],
            None,
        );
        check("two", &format!("{bare}\n{bare}"), "", "", &[LS, LS], None);
        for words in [
            "I look:\n",
            "Let me look.\n\n",
            "Never run this:\n",
            "It says:\n\n",
            "Ich sehe nach:\n",
        ] {
            is_unclear(&format!("{words}{bare}"));
        }
        for behind in ["\nThat lists them.", "\n\nDone."] {
            is_unclear(&format!("{bare}{behind}"));
        }
    }
    check(
        "a certain one goes before",
        &format!("{}\n{BARE}\n", FORMATS[0].one),
        BARE,
        "",
        &[LS],
        None,
    );
    check(
        "wherever it stands",
        &format!("{BARE}\n{}", FORMATS[0].one),
        BARE,
        "",
        &[LS],
        None,
    );
}

#[test]
fn a_call_in_a_fence_counts_only_as_the_whole_answer() {
    let tagged = format!("<tool_call>{BARE}</tool_call>");
    for (word, call) in [
        ("json", BARE),
        ("", BARE),
        ("tool_call", BARE),
        ("xml", &tagged),
        ("python", "bash(command=\"ls -l\")"),
        ("tool_code", "bash(command=\"ls -l\")"),
    ] {
        for mark in ["```", "~~~", "~~~~"] {
            let fence = format!("{mark}{word}\n{call}\n{mark}");
            check("alone", &fence, "", "", &[LS], None);
            check(
                "two",
                &format!("{fence}\n\n{fence}\n"),
                "",
                "",
                &[LS, LS],
                None,
            );
            for words in [
                "I list the files:\n",
                "For example:\n\n",
                "Add this to your script:\n",
            ] {
                is_unclear(&format!("{words}{fence}"));
            }
            is_unclear(&format!("{fence}\nThat lists them."));
        }
    }
    // A language that no call is written in.
    for text in [
        format!("```rust\n{BARE}\n```"),
        format!("```text\n{tagged}\n```"),
    ] {
        assert_eq!(read(&text, None).2, [""; 0], "{text}");
    }
}

#[test]
fn a_truncated_call_in_a_fence_counts_only_as_the_whole_answer() {
    let half = "```xml\n<tool_call>\n<function=bash>\n<parameter=command>\nls\n</tool_call>\n```";
    for (before, behind) in [
        ("It writes:\n\n", ""),
        ("For example:\n\n", "\n\nBoth ends are missing."),
        ("", "\nThat is half of one."),
    ] {
        let text = format!("{before}{half}{behind}");
        let parsed = parse(&text, &tools(), None);
        assert_eq!(
            (parsed.content.as_str(), parsed.calls.len()),
            (text.as_str(), 0),
            "{text}"
        );
    }
    assert!(
        parse(half, &tools(), None)
            .incomplete
            .is_some_and(|incomplete| incomplete.part == IncompletePart::Call)
    );
}

#[test]
fn text_before_an_unopened_thought_end_is_a_thought() {
    for format in FORMATS.iter().filter(|format| format.one.starts_with('<')) {
        for gap in ["", " ", "\n\n"] {
            let text = format!("I list\nthe files.</think>{gap}{}", format.one);
            check(format.name, &text, "", "I list\nthe files.", &[LS], None);
        }
        // Calls considered in a thought do not count where an answer or call follows.
        for (behind, calls) in [("No.", vec![]), (READ_CALL, vec![READ])] {
            let text = format!("I could {} or not.</think>{behind}", format.one);
            let parsed = read(&text, None);
            assert_eq!(
                (parsed.2, parsed.0.as_str()),
                (
                    calls.iter().map(|call| (*call).to_owned()).collect(),
                    if calls.is_empty() { "No." } else { "" }
                ),
                "{text}"
            );
            assert!(
                parsed.1.starts_with("I could") && parsed.1.contains("or not."),
                "{text}: {}",
                parsed.1
            );
        }
        // Where nothing follows they count.
        assert_eq!(
            read(&format!("I do it: {}</think>\n", format.one), None).2,
            [LS],
            "{}",
            format.name
        );
    }
    for (thought, answer) in [
        ("The tag", "ends it."),
        ("> quoted", "Yes."),
        ("For example: a.", "b"),
        ("First, I think.\nSo done.", "The answer is 4."),
    ] {
        check(
            "words",
            &format!("{thought}</think> {answer}"),
            answer,
            thought,
            &[],
            None,
        );
    }
    // One within code ends nothing, nor does one after a thought with its own opening token.
    for text in [
        "It is written `</think>`.",
        "```\n</think>\n```\n\nends it.",
    ] {
        check("in code", text, text, "", &[], None);
    }
    check(
        "a second",
        "<think>Hm.</think>The tag </think> ends it.",
        "The tag </think> ends it.",
        "Hm.",
        &[],
        None,
    );
}

const READ_CALL: &str =
    "<tool>{\"tool\":\"read_file\",\"params\":{\"path\":\"a b.txt\",\"limit\":5}}</tool>";

#[test]
fn calls_in_thoughts_count_only_if_nothing_follows() {
    let call = FORMATS[0].one;
    check(
        "alone",
        &format!("<think>I call {call}"),
        "",
        "I call",
        &[LS],
        None,
    );
    check(
        "closed",
        &format!("<think>I call {call}</think>\n"),
        "",
        "I call",
        &[LS],
        None,
    );
    let thought = format!("I could {call} or not.");
    check(
        "answered",
        &format!("<think>{thought}</think>No."),
        "No.",
        &thought,
        &[],
        None,
    );
    check(
        "called",
        &format!("<think>{thought}</think>{READ_CALL}"),
        "",
        &thought,
        &[READ],
        None,
    );
    check(
        "both",
        &format!("<think>I do {call}\n{call}</think>"),
        "",
        "I do",
        &[LS, LS],
        None,
    );
}
