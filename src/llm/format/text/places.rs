//! Where a call stands decides whether it is one: in code, in a list, in a sentence or a thought it is an example as well.

use super::corpus::FORMATS;
use super::corpus::LS;
use super::corpus::READ;
use super::corpus::check;
use super::corpus::read;
use super::corpus::tools;
use super::*;

#[test]
fn examples_are_no_calls() {
    for format in FORMATS {
        let unknown = format.one.replace("bash", "smash");
        let (_, _, calls, incomplete) = read(&unknown, None);
        assert_eq!((calls, incomplete), (vec![], None), "{}: {unknown}", format.name);
        let (content, _, calls, _) = read(&format!("For example:\n````text\n{}\n````\nlists files.", format.one), None);
        assert_eq!(calls, [""; 0], "{} in a fence", format.name);
        assert!(content.starts_with("For example:") && content.ends_with("lists files."), "{content}");
        if !format.one.contains(['\n', '`']) {
            let text = format!("A call is written `{}` there.", format.one);
            check(&format!("{} in code", format.name), &text, &text, "", &[], None);
            // Without a word that says so: whoever quotes what a file says to run must not run it.
            for text in [
                format!("The file says: {} which I will not do.", format.one),
                format!("Never write {}.", format.one),
                format!("> {}\n\nstands in the file.", format.one),
                format!("<!-- {} -->", format.one),
                format!("| {} | lists |", format.one),
                format!("It reads \"{}\", so I stop.", format.one),
                format!("Output:\n\n    {}\n", format.one),
                format!("Output:\n\n\t{}\n", format.one),
                format!("1. Hermes: {}\n2. another", format.one),
                format!("- {}", format.one),
                format!("For example: {}", format.one),
            ] {
                assert_eq!(read(&text, None).2, [""; 0], "{} in a sentence: {text}", format.name);
            }
        }
    }
}

/// In a list stands what could be done, and what is to be done: it is asked about, and never carried out in part.
#[test]
fn calls_in_lists_and_indented_code_are_content_as_a_whole() {
    for format in FORMATS {
        let indented = |indent: &str| format.one.replace('\n', &format!("\n{indent}"));
        let mut texts = vec![
            (format!("1. First I look:\n   {}\n2. Then I write.", indented("   ")), true),
            (format!("- a\n\n  {}", indented("  ")), true),
        ];
        // Of more than one line, of which the first one is no call's yet.
        if format.one.starts_with(['<', '[']) && format.name != "functionary 2" {
            texts.push((format!("    {}", indented("    ")), true));
            texts.push((format!("- a\n- {}", format.one), true));
            texts.push((format!("For example: {}", format.one), false));
            texts.push((format!("> {}", format.one), false));
        }
        for (text, _) in &texts {
            assert_eq!(read(text, None).2, [""; 0], "{}: {text}", format.name);
        }
        if format.one.starts_with('<') {
            for (text, is_asked) in texts {
                let parsed = parse(&text, &tools(), None);
                assert_eq!((parsed.mentions.len(), parsed.incomplete), (usize::from(is_asked), None), "{}: {text}", format.name);
            }
            let (_, _, calls, _) = read(&format!("- a\n- b\n\nI look.\n{}", format.one), None);
            assert_eq!(calls, [LS], "{}: behind a list", format.name);
        }
    }
}

#[test]
fn python_behind_words_for_a_person_is_asked_about() {
    let code = "```python\nbash(command=\"ls -l\")\n```";
    let told = ["Replace the last line by this one:", "Add this to your notebook:", "The bug is in the last line. It should be:"];
    let described = [
        "The script removes its input at the end:",
        "I looked. Your main function lists the folder:",
        "This code cleans up behind itself.",
    ];
    for words in told.into_iter().chain(described) {
        let text = format!("{words}\n{code}");
        let parsed = parse(&text, &tools(), None);
        assert_eq!((parsed.content.as_str(), parsed.calls.len(), parsed.mentions.len()), (text.as_str(), 0, 1), "{words}");
    }
    for words in
        ["", "I list the files:\n", "Let me look:\n", "Ich sehe nach:\n", "I use it to add a line:\n", "The script needs to be read.\n"]
    {
        check("announced", &format!("{words}{code}"), words.trim_end(), "", &[LS], None);
    }
}

#[test]
fn tildes_fence_as_backticks_do() {
    let call = "{\"name\": \"bash\", \"arguments\": {\"command\": \"ls -l\"}}";
    for mark in ["```", "~~~", "~~~~"] {
        check("alone", &format!("{mark}json\n{call}\n{mark}"), "", "", &[LS], None);
        let example = format!("For example:\n{mark}json\n{call}\n{mark}\nlists.");
        check("an example", &example, &example, "", &[], None);
        let tagged = format!("{mark}text\n<tool_call>{call}</tool_call>\n{mark}");
        check("other code", &tagged, &tagged, "", &[], None);
    }
}

#[test]
fn a_call_on_the_line_where_a_thought_ends_is_one() {
    for format in FORMATS.iter().filter(|format| format.one.starts_with(['<', '[']) && format.name != "xlam, a bare list") {
        // Of more than one line, of which the first one is no call's yet, and in the open.
        if format.name == "functionary 2" || format.name.starts_with("pythonic") {
            continue;
        }
        for gap in ["", " ", "\n\n"] {
            let text = format!("I list\nthe files.</think>{gap}{}", format.one);
            check(format.name, &text, "", "I list\nthe files.", &[LS], None);
        }
        let text = format!("For example: a.</think>{}", format.one);
        let (content, reasoning, calls, _) = read(&text, None);
        assert_eq!((content.starts_with("For example: a.</think>"), reasoning.as_str(), calls), (true, "", vec![]), "{text}");
    }
}

#[test]
fn calls_in_thoughts_count_only_if_nothing_else_came_of_them() {
    let call = FORMATS[0].one;
    check("alone", &format!("<think>I call {call}"), "", "I call", &[LS], None);
    check("closed", &format!("<think>I call {call}</think>\n"), "", "I call", &[LS], None);
    let thought = format!("I could {call} or not.");
    check("answered", &format!("<think>{thought}</think>No."), "No.", &thought, &[], None);
    let two = format!("<think>{thought}</think>{}", "<tool>{\"tool\":\"read_file\",\"params\":{\"path\":\"a b.txt\",\"limit\":5}}</tool>");
    check("called", &two, "", &thought, &[READ], None);
    // Words between two of them weigh one against the other.
    let weighed = parse(&format!("<think>Either {call}\nor {call}</think>\n"), &tools(), None);
    assert_eq!((weighed.calls.len(), weighed.mentions.len(), weighed.content.as_str()), (0, 2, ""));
    assert_eq!(weighed.reasoning, format!("Either {call}\nor {call}"));
    check("both", &format!("<think>I do {call}\n{call}</think>"), "", "I do", &[LS, LS], None);
}

#[test]
fn a_likely_call_gives_way_to_a_certain_one() {
    let likely = "{\"name\": \"bash\", \"arguments\": {\"command\": \"rm x\"}}";
    let text = format!("```json\n{likely}\n```\nBetter:\n{}", FORMATS[0].one);
    check("certain last", &text, &format!("```json\n{likely}\n```\nBetter:"), "", &[LS], None);
    let text = format!("{}\n{likely}\n", FORMATS[0].one);
    check("certain first", &text, likely, "", &[LS], None);
    let text = format!("For example:\n```json\n{likely}\n```\nThat would remove it.");
    check("an example", &text, &text, "", &[], None);
    let text = format!("The object {likely} says so.\n{likely} is what it is.");
    check("in a sentence", &text, &text, "", &[], None);
    let text = format!("```rust\nlet x = {{}};\n```\n```text\n{likely}\n```");
    check("other code", &text, &text, "", &[], None);
}

/// A tag says that a call is meant; in the open, words before it may say that it is not.
#[test]
fn a_call_in_the_open_that_words_forbid_or_recall_is_asked_about() {
    let call = "{\"name\": \"bash\", \"arguments\": {\"command\": \"ls -l\"}}";
    for open in [call.to_owned(), format!("```json\n{call}\n```"), "[bash(command=\"ls -l\")]".to_owned()] {
        for words in [
            "Never run this:\n",
            "All is done. Do not run:\n\n",
            "I did it. For reference, the call I made earlier:\n",
            "If I were asked to, I would run:\n",
            "Don't try\n",
        ] {
            let parsed = parse(&format!("{words}{open}"), &tools(), None);
            read(&format!("{words}{open}"), None);
            assert_eq!((parsed.calls.len(), parsed.mentions.len()), (0, 1), "{words}{open}");
            assert!(parsed.content.ends_with(&open), "{}", parsed.content);
        }
        for words in ["I don't see it. Let me look:\n", "I would like to look:\n", "Never mind.\nI look:\n", "Nevertheless:\n"] {
            check(words, &format!("{words}{open}"), words.trim_end(), "", &[LS], None);
        }
    }
}

/// Only the plainest words count before a tag.
#[test]
fn a_tagged_call_that_words_plainly_forbid_is_asked_about() {
    let call = FORMATS[0].one;
    let cut = call.strip_suffix("\n</tool_call>").expect("its end");
    for words in [
        "Never run the following:\n",
        "I looked. I must never do this:\n\n",
        "I must not do this:\n",
        "Don't run:\n",
        "I won\u{2019}t call it:\n",
        "You should never run this command:\n",
    ] {
        for call in [call, cut] {
            for (text, reasoning) in [(format!("{words}{call}"), ""), (format!("<think>{words}{call}</think>"), call)] {
                let parsed = parse(&text, &tools(), None);
                read(&text, None);
                assert_eq!((parsed.calls.len(), parsed.mentions.len()), (0, 1), "{text}: {parsed:?}");
                assert!(parsed.reasoning.ends_with(reasoning), "{parsed:?}");
            }
        }
        let parsed = parse(&format!("<think>{words}{call}</think>No."), &tools(), None);
        assert_eq!((parsed.content.as_str(), parsed.calls.len(), parsed.mentions.len()), ("No.", 0, 0), "{words}");
    }
    for words in [
        "I don't know what is in it:\n",
        "I must not break it, so I run this:\n",
        "Never mind. I look:\n",
        "Do not worry:\n",
        "Let me see why the tests don't run:\n",
        "I don't use cargo because there is no network:\n",
        "The build will not run without this step:\n",
        "Do not run as root - check the user:\n",
        "I do not see it.\n",
    ] {
        check(words, &format!("{words}{call}"), words.trim_end(), "", &[LS], None);
        check(words, &format!("<think>{words}{call}</think>"), "", words.trim_end(), &[LS], None);
    }
}

/// What is shown to a person at the end of an answer looks like a call in all but the words before it.
#[test]
fn a_call_that_is_shown_to_the_person_is_asked_about() {
    let call = r#"{"name": "bash", "arguments": {"command": "ls -l"}}"#;
    let python = r#"bash(command="ls -l")"#;
    let tagged = format!("<tool_call>{call}</tool_call>");
    let fenced = [format!("```json\n{call}\n```"), format!("```python\n{python}\n```"), format!("```xml\n{tagged}\n```"), call.to_owned()];
    let is_asked = |text: &str| {
        let parsed = parse(text, &tools(), None);
        // Whole, and in any pieces.
        read(text, None);
        assert_eq!((parsed.calls.len(), parsed.mentions.len()), (0, 1), "{text}");
        assert!(text.ends_with(parsed.content.lines().last().expect("a line")), "{}", parsed.content);
    };
    for words in [
        "You can delete the build folder with:",
        "To remove the folder yourself:",
        "Yes. The agent's tool call syntax is:",
        "I added this to the docs:",
        "The test file contains:",
        "Here is the code of demo.py:",
        "I changed the last line of main.py to:",
        "I found this in log.txt:",
        "The last line of the file is:",
        "The new content of tools.json:",
        "The file README.md says:",
        "A call has this form:",
        "The tool takes a command, as JSON:",
        "You have a tool for that. It is called like this:",
        "Tools are objects with a name and arguments; every call is one of them:",
        "Usage:",
        "A typical invocation:",
        "You call it with an object:",
        "I won't run this:",
        "I'm not going to make this call:",
        "I can't do this without your approval:",
        "I made these calls:",
        "All done. Earlier I called:",
        "Once you agree, I will call:",
        "Do you want me to list the files?",
        "Create a file named `tool.json` with the following content:",
        "The request body is:",
        "Save the following as call.json:",
    ] {
        for shown in &fenced {
            is_asked(&format!("{words}\n{shown}"));
        }
    }
    is_asked(&format!("def bash(command):\n    pass\n{python}"));
    // Whoever does something says that otherwise, and often what it is about.
    for words in [
        "Let me see what README.md says:",
        "I'll list the files.",
        "I can't see the files directly, so I list them:",
        "Let me check why the server can't start:",
        "The tests won't run without dependencies, so I'll look for them:",
        "Since you want me to list the files, I'll do that:",
        "The search returned nothing, trying a wider pattern:",
        "I will check what the folder contains:",
        "Checking the folder.",
        "Listing the contents of the folder:",
        "Reading what the file contains now:",
        "I would like to see the contents of the folder.",
        "I need to see what it says, so that you can go on:",
        "Next:",
        "To list the files, I will use bash:",
        "Here is the call:",
        "I call it like this:",
        "Here is the tool call in JSON format:",
        "The function call, as JSON:",
        "I check what it takes:",
        "Now I use the format that was asked for:",
        "That takes a moment. I look:",
        "Ich sehe nach:",
    ] {
        for meant in &fenced {
            check(words, &format!("{words}\n{meant}"), words, "", &[LS], None);
        }
        check(words, &format!("{words}\n{tagged}"), words, "", &[LS], None);
    }
    for words in ["A call looks like this:", "For example:", "The format is:\n", "An example call:"] {
        is_asked(&format!("{words}\n{tagged}"));
    }
    for words in ["Let me see what it looks like:", "I will read the example:", "For example, I could look. I look:\n\nSo:"] {
        check(words, &format!("{words}\n{tagged}"), words, "", &[LS], None);
    }
    // A tag alone says that one is meant. What follows a shown one is shown too, and never carried out in its place.
    check("a tag", &format!("The file says:\n{tagged}"), "The file says:", "", &[LS], None);
    let other = call.replace("-l", "-a");
    for two in [
        format!("You can clean up with:\n```json\n{call}\n```\n\n```json\n{other}\n```"),
        format!("You can clean up with:\n```json\n{call}\n```\nor with:\n```json\n{other}\n```"),
        format!("For example:\n```json\n{call}\n```\n```json\n{other}\n```"),
        format!("- {tagged}\n<tool_call>{other}</tool_call>"),
    ] {
        assert_eq!(read(&two, None).2, [""; 0], "{two}");
    }
    let text = format!("You can look with:\n```json\n{other}\n```\nLet me do that:\n```json\n{call}\n```");
    assert_eq!(read(&text, None).2, [LS], "{text}");
    check("a sentence of a kind", &format!("The file says what to do.\n{tagged}"), "The file says what to do.", "", &[LS], None);
}

#[test]
fn what_looks_like_a_call_in_the_channel_of_the_answer_is_asked_about() {
    let call = r#"{"name": "bash", "arguments": {"command": "ls -l"}}"#;
    let tagged = format!("<tool_call>{call}</tool_call>");
    for shown in [call.to_owned(), tagged.clone(), format!("```\n{tagged}\n```"), format!("```json\n{call}\n```")] {
        let text = format!("<|channel|>final<|message|>Use this.\n{shown}<|return|>");
        let parsed = parse(&text, &tools(), None);
        read(&text, None);
        assert_eq!((parsed.calls.len(), parsed.mentions.len()), (0, 1), "{text}");
        assert!(parsed.content.starts_with("Use this.") && parsed.content.contains("ls -l"), "{}", parsed.content);
        // In the channel of words before a call it may be one.
        let text = format!("<|channel|>commentary<|message|>I look.\n{shown}");
        assert_eq!(read(&text, None).2, [LS], "{text}");
    }
}

#[test]
fn what_marks_its_own_end_may_have_words_behind_it() {
    let text = "<|tool_call_start|>[bash(command=\"ls -l\")]<|tool_call_end|>Checking the current status.<|im_end|>";
    check("LFM2", text, "Checking the current status.", "", &[LS], None);
}

#[test]
fn a_thought_without_a_beginning_ends_between_two_sentences() {
    check(
        "without a blank",
        "First, I think.\nSo done.</think>The answer is 4.",
        "The answer is 4.",
        "First, I think.\nSo done.",
        &[],
        None,
    );
    for spoken in [
        "The tag </think> ends it.",
        "It is written `</think>`.",
        "Write '</think>' there.",
        "It is '</think>'\n\nand ends it.",
        "It is `</think>`\n\nand ends it.",
        "'</think>'\n\nends it.",
        "`</think>`\n\nends it.",
        "\"</think>\"\n\nends it.",
        "```\n</think>\n```\n\nends it.",
        "It reads:\n\n    </think>\n\nand ends it.",
        "> </think>\n\nends it.",
        "It is\n- </think>\n- or another.",
    ] {
        check("spoken of", spoken, spoken, "", &[], None);
    }
}
