//! Properties that hold for any text.

use proptest::prelude::*;

use super::format_corpus::tools;
use super::*;
use podbay_soak as soak;

/// Fragments of all formats, to be combined in ways that no model would.
const BITS: &[&str] = &[
    "<tool_call>",
    "</tool_call>",
    "<tool>",
    "</tool>",
    "<|tool_call|>",
    "[TOOL_CALL]",
    "[/TOOL_CALL]",
    "[TOOL_CALLS]",
    "[ARGS]",
    "<function=bash>",
    "<parameter=command>",
    "</parameter>",
    "</function>",
    "<invoke name=\"bash\">",
    "</invoke>",
    "<arg_key>command</arg_key>",
    "<arg_value>",
    "</arg_value>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁sep｜>",
    "<｜tool▁call▁end｜>",
    "<|tool_call_begin|>",
    "<|tool_call_argument_begin|>",
    "<|tool_call_end|>",
    "<|channel|>",
    "analysis",
    "final",
    "commentary to=functions.bash",
    "<|message|>",
    "<|end|>",
    "<|start|>",
    "<|call|>",
    "<think>",
    "</think>",
    "[THINK]",
    "[/THINK]",
    "<|python_tag|>",
    "<|tool_call>",
    "call:bash",
    "<|\"|>",
    "<tool_call|>",
    "```",
    "```json\n",
    "`",
    "~~~",
    "\n",
    "\n\n",
    " ",
    "{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}",
    "{\"name\": \"bash\", ",
    "\"arguments\": {",
    "\"command\": \"ls\"",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "\"",
    "'",
    ",",
    ";",
    "\\",
    "bash",
    "bash(command=\"ls\")",
    "functools[",
    "Action: ",
    ">>>",
    "read_file",
    "For example, ",
    "word",
    "é",
    "🦀",
    "<",
    "<|",
    "<tool_ca",
    "<｜",
    "◁think▷",
    "\r\n",
    "<parameter=other>\n",
    "</parameter>\n</function>\n</tool_call>",
    "</arg_value></tool_call>",
    "\n</function>",
    "\n<parameter=command>\n",
    "<tool_calls>",
    "</tool_calls>",
    "<tool_sep>",
    "<|tool_calls_section_begin|>",
    "  \n",
    "<answer>",
    "<｜tool▁calls｜>",
    "function<｜tool▁sep｜>bash\n",
    "Here is my thought process:",
    "Here is my response:",
    "[bash(command=r'l' ",
    "**{",
    "12345678901234567890123",
    "\"properties\": {}",
    "null",
    "1",
    "<|im_end|>",
    "<|im_start|>",
    "assistant",
    "user",
    "<|start|>",
    "<|endoftext|>",
    "\nHuman: ",
    "[INST]",
    "<tool_response>",
    "all\n",
    ">>>all\n",
    ">>>bash\n{\"command\": \"ls\"}",
    "<|recipient|>",
    "<|content|>",
    "to=functions.bash",
    "<|tool_sep|>",
    "{\\\"name\\\": \\\"bash\\\", \\\"arguments\\\": {}}",
    "{\\\"",
    "\\\\\\\"",
    "]<]minimax[>[<invoke name=\"bash\">",
    "]<]minimax[>[<command>",
    "]<]minimax[>[</command>",
    "]<]minimax[>[</invoke>",
    "]<]minimax[>[",
    "<|open|>call tool=\"bash\" index=\"1\"<|sep|>",
    "<|open|>argument key=\"command\"<|sep|>",
    "<|close|>argument<|sep|>",
    "<|close|>call<|sep|>",
    "<|END_THINKING|>",
    "<|START_TEXT|>",
    "<function name=\"bash\">",
    "<param name=\"command\">",
    "</param>",
    "<![CDATA[",
    "]]>",
    "<｜DSML｜tool_calls>",
    "<|DSML|invoke name=\"bash\">",
    "<tool_call>{\"name\": \"fly\", \"arguments\": {}}",
    "[TOOL_CALLS]fly[ARGS]{}",
    "<function=fly>",
    "[fly(to=1)]",
];

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(
        prop_oneof![6 => prop::sample::select(BITS).prop_map(str::to_owned), 1 => ".{0,6}"],
        0..24,
    )
    .prop_map(|bits| bits.concat())
}

fn in_pieces(text: &str, cuts: &[usize], tools: &Tools, hint: Option<Hint>) -> Parsed {
    let mut cuts: Vec<usize> = cuts
        .iter()
        .map(|cut| text.floor_char_boundary(cut % (text.len() + 1)))
        .collect();
    cuts.extend([0, text.len()]);
    cuts.sort_unstable();
    let mut parsed = Parsed::default();
    let mut parser = Parser::new(tools, hint);
    for pair in cuts.windows(2) {
        parser.feed(&text[pair[0]..pair[1]], &mut |piece| parsed.add(piece));
    }
    let incomplete = parser.finish(&mut |piece| parsed.add(piece));
    parsed.ended(incomplete)
}

/// Returns how many bytes were examined, fed in pieces of a size.
fn work(text: &str, step: usize) -> u64 {
    let mut parser = Parser::new(&tools(), None);
    let mut begin = 0;
    while begin < text.len() {
        let end = text.ceil_char_boundary((begin + step).min(text.len()));
        parser.feed(&text[begin..end], &mut |_| {});
        begin = end;
    }
    parser.end();
    parser.work()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn any_text_parses_the_same_for_any_split(
        text in text(),
        cuts in prop::collection::vec(any::<usize>(), 0..12),
        hint in prop::option::of(prop::sample::select(Hint::names())),
    ) {
        let hint = hint.and_then(Hint::find);
        let all: Vec<usize> = (0..text.len()).collect();
        for tools in [tools(), tools().and_any()] {
            let whole = parse(&text, &tools, hint);
            prop_assert_eq!(&in_pieces(&text, &cuts, &tools, hint), &whole);
            prop_assert_eq!(&in_pieces(&text, &all, &tools, hint), &whole);
            for call in &whole.calls {
                prop_assert!(serde_json::from_str::<serde_json::Map<_, _>>(&call.arguments).is_ok(), "{}", call.arguments);
            }
        }
    }

    #[test]
    fn text_without_marks_is_unchanged(text in "[a-zA-Z0-9 .,:;!?\n(){}*#_é-]{0,200}") {
        let parsed = parse(&text, &tools(), None);
        prop_assert_eq!(parsed, Parsed { content: text.trim().to_owned(), ..Parsed::default() });
    }
}

/// Returns `head`, and `bit` repeated up to a size.
fn repeated(head: &str, bit: &str, size: usize) -> String {
    let mut text = head.to_owned();
    while text.len() < size {
        text.push_str(bit);
    }
    text
}

/// Found by fuzzing: the search for quotes covered more of the text where it came in pieces.
#[test]
fn quoting_after_a_long_line_is_the_same_for_any_split() {
    for begin in ["    ", "", "> ", "- "] {
        for call in ["<function_call>", "<|python_tag|>bash(command='ls')"] {
            for n in [60, 78, 79, 80, 81, 150, 300] {
                let text = format!("{begin}^tx{}|<|pytho>> {call}", "\u{fffd}".repeat(n));
                let whole = parse(&text, &tools(), None);
                for step in [1, 4, 100] {
                    let cuts: Vec<usize> = (0..text.len()).step_by(step).collect();
                    assert_eq!(in_pieces(&text, &cuts, &tools(), None), whole, "{text}");
                }
            }
        }
    }
}

#[test]
fn a_hostile_megabyte_is_parsed_in_linear_time() {
    const MOST: u64 = 48;
    let mut bits: Vec<String> = BITS.iter().map(|bit| (*bit).to_owned()).collect();
    for opener in [
        "<tool_call>",
        "[TOOL_CALLS]",
        "```json\n",
        "\n",
        "<|python_tag|>",
        "functools",
        "\n[",
        "<think>",
        "<tool>",
    ] {
        for body in [
            "{\"name\": \"bash\", \"arguments\": {\"command\": \"ls",
            "{\"name\":\"bash\",\"arguments\":",
            "[{\"name\":",
            "{\\\"name\\\": ",
            "{'name': 'bash', 'x': '",
        ] {
            bits.push(format!("{opener}{body}"));
            bits.push(format!("{opener}{body}</tool_call>"));
            bits.push(format!("{opener}{body}\n```\n"));
        }
    }
    bits.push("<tool_call>{\"a\":\"</tool_call>".to_owned());
    bits.push("<function=bash><parameter=command>\n".to_owned());
    bits.push("<function=bash>\n<parameter=command>\n<".to_owned());
    bits.push("<|channel|>commentary to=functions.bash ".to_owned());
    for end in [
        "</parameter></function>",
        "\n</function>\nx",
        "</parameter>\n</function>\n</tool_call>\nx",
        "\n</function></parameter>x",
    ] {
        bits.push(format!("<function=bash><parameter=command>{end}"));
        bits.push(end.to_owned());
        bits.push(format!("<tool_call>\n<function=bash>\n<parameter=command>\n<function=x><parameter=y>{end}\n</tool_call>\n"));
        bits.push(format!("<tool_call>\n<function=bash>\n<parameter=command>\n<function=<function={end}\n</tool_call>\n"));
    }
    bits.push("<tool_call>bash<arg_key>command</arg_key><arg_value>a</arg_value></tool_call>b</arg_value></tool_call>".to_owned());
    let check = |head: &str, bit: &str, size, step| {
        let text = repeated(head, bit, size);
        let looks = work(&text, step) / text.len() as u64;
        assert!(
            looks <= MOST,
            "{looks} looks at each byte of {head}{bit} in steps of {step}"
        );
    };
    for bit in soak::sample(&bits, 10) {
        // Quadratic work would already be a thousand times as much here.
        for (head, step) in [
            ("", 12 << 10),
            ("", 700),
            (
                "<tool_call>{\"name\": \"bash\", \"arguments\": {\"command\": \"",
                64,
            ),
            ("<think>", 700),
        ] {
            check(head, bit, 12 << 10, step);
        }
    }
    let (mega, part) = soak::whole_or((1 << 20, 1 << 17), (1 << 17, 1 << 14));
    for bit in ["<tool_call>{\"a\":\"</tool_call>", "<"] {
        check("", bit, mega, mega);
    }
    // Closing tokens that are missing, or far away.
    for opener in [
        "<|tool_call|>x ",
        "<|python_tag|>x ",
        "<|python_start|>x ",
        "<tool_call>x ",
    ] {
        check("<tool_call>{\"a\":\"</tool_call>", opener, mega, mega);
        check("<tool_call>{\"a\":\"</tool_call>", opener, part, 700);
    }
    check("<|tool_calls_section_begin|>", " ", part, 16);
    // What a looping model streams: a single character, one token at a time.
    for byte in soak::sample(b' '..=b'~', 10) {
        for head in ["", "```\n", "~~~~\n", "x", "<think>", "{", "["] {
            check(head, char::from(byte).encode_utf8(&mut [0; 4]), 6 << 10, 3);
        }
    }
}

#[test]
fn many_backticks_parse_the_same_for_any_split() {
    for head in ["", "x ", "```\n", "~~~\n", "a\n"] {
        for (mark, tail) in [
            (
                "`",
                "\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}\n```",
            ),
            ("~", "json\nx"),
            ("`", " x ` y"),
        ] {
            for n in [3, 127, 128, 129, 256, 400] {
                let text = head.to_owned() + &mark.repeat(n) + tail;
                let whole = parse(&text, &tools(), None);
                for step in [1, 3, 128] {
                    let cuts: Vec<usize> = (0..text.len()).step_by(step).collect();
                    assert_eq!(in_pieces(&text, &cuts, &tools(), None), whole, "{text}");
                }
            }
        }
    }
}

/// Buffered text is scanned once, however many calls there are.
#[test]
fn many_unmarked_calls_are_parsed_in_linear_time() {
    let started = std::time::Instant::now();
    for line in [
        "bash(command=\"x\")\n",
        "[bash(command=\"x\")]\n\n",
        "bash\n{\"command\":\"ls\"}\n",
        "read_file(path=\"x\")\n",
    ] {
        let n = soak::whole_or(20_000, 5_000);
        let parsed = parse(&line.repeat(n), &tools(), None);
        assert!(
            parsed.calls.len() == n && parsed.content.is_empty(),
            "{line}"
        );
    }
    assert!(started.elapsed().as_secs() < 120, "{:?}", started.elapsed());
}
