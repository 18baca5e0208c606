//! `podbay debug parse`: what is understood of a model's text, for people.

use std::fs;
use std::fs::File;

use serde_json::json;

use crate::support::test_env::TestEnv;
use crate::support::test_env::run;

#[test]
fn a_text_is_shown_as_it_is_understood() {
    let env = TestEnv::new();
    let text = "<think>List it.</think>I look.\n<tool_call>{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}</tool_call><|im_end|>";
    let done = parse(&env, &[], text.as_bytes(), 0);
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&done).expect("an object"),
        json!({
            "content": "I look.",
            "reasoning": "List it.",
            "calls": [{"name": "bash", "arguments": {"command": "ls"}}],
            "incomplete": null,
        })
    );
    assert_eq!(done.lines().count(), 1);
    let done = parse(&env, &[], b"<tool_call>{\"name\": \"bash\", \"argu", 0);
    assert!(
        done.ends_with(
            "\"incomplete\":{\"part\":\"call\",\"name\":\"bash\",\"text\":\"<tool_call>{\\\"name\\\": \\\"bash\\\", \\\"argu\"}}\n"
        ),
        "{done}"
    );
    assert_eq!(
        parse(&env, &[], b"", 0),
        "{\"content\":\"\",\"reasoning\":\"\",\"calls\":[],\"incomplete\":null}\n"
    );
}

#[test]
fn the_given_tools_and_no_others_are_known() {
    let env = TestEnv::new();
    let tools = env.beside("tools.json");
    fs::write(&tools, r#"["weather"]"#).expect("written");
    let tools = tools.to_str().expect("a path in UTF-8");
    let text = b"[weather(city=\"Bonn\")]";
    let calls = r#""calls":[{"name":"weather","arguments":{"city":"Bonn"}}]"#;
    assert!(parse(&env, &["--tools", tools], text, 0).contains(calls));
    assert!(parse(&env, &[], text, 0).contains("\"calls\":[]"));
    // Another name of one of our own, as a session takes it.
    assert!(
        parse(&env, &[], b"<tool_call>\n{\"name\": \"list_dir\", \"arguments\": {\"path\": \".\"}}\n</tool_call>", 0)
            .contains("\"calls\":[{\"name\":\"list_dir\"")
    );
    let hinted = parse(
        &env,
        &["--template-hint", "deepseek-r1"],
        b"hm</think>yes",
        0,
    );
    assert!(
        hinted.starts_with(r#"{"content":"yes","reasoning":"hm""#),
        "{hinted}"
    );
}

#[test]
fn bad_input_is_code_2_with_a_remedy() {
    let env = TestEnv::new();
    let broken = env.beside("broken.json");
    fs::write(&broken, "[{}]").expect("written");
    let broken = broken.to_str().expect("a path in UTF-8");
    for (args, text, words) in [
        (&[][..], &b"caf\xE9"[..], "not UTF-8: byte 4"),
        (
            &["--tools", "/nowhere.json"],
            b"",
            "/nowhere.json cannot be read",
        ),
        (&["--tools", broken], b"", "entry 1 of the list"),
        (
            &["--template-hint", "vicuna"],
            b"",
            "no template is known by the name `vicuna`",
        ),
    ] {
        let said = parse(&env, args, text, 2);
        assert!(said.contains(words) && said.contains("hint: "), "{said}");
    }
    run(&mut env.podbay(&["debug", "prase"]))
        .expect(2)
        .says(&["podbay debug prase", "podbay debug parse"]);
}

/// Runs the command on a text; returns what it prints, or for a failure what it says.
#[track_caller]
fn parse(env: &TestEnv, args: &[&str], text: &[u8], code: i32) -> String {
    let file = env.beside("answer.txt");
    fs::write(&file, text).expect("written");
    let mut command = env.podbay(&[&["debug", "parse"], args].concat());
    command.stdin(File::open(&file).expect("opened"));
    let done = run(&mut command).expect(code);
    if code == 0 { done.text() } else { done.stderr }
}
