//! `podbay call`: one tool call, its result and its exit code.

use super::test_box::TestBox;
use crate::support::test_env::Done;
use crate::support::test_env::run;

fn call(env: &TestBox, arguments: &[&str]) -> Done {
    let mut command = env.here(&["call"]);
    run(command.args(arguments))
}

#[test]
fn a_call_prints_what_the_model_would_read() {
    let Some(env) = TestBox::new() else { return };
    env.write("README.md", "# Notes\nsecond\n");
    let done = call(&env, &["read_file", r#"{"path":"README.md"}"#]).expect(0);
    assert_eq!(done.text(), "1\t# Notes\n2\tsecond\n");
    assert_eq!(
        call(&env, &["bash", r#"{"command":"echo $((40+2)); exit 3"}"#])
            .expect(1)
            .text(),
        "42\n[exit code 3]"
    );
    for (arguments, words) in [
        (r#"{"pth":"README.md"}"#, "`pth` is not known"),
        (r#"{"path":["a"]}"#, "`path`"),
        ("{", "not valid JSON"),
    ] {
        let text = call(&env, &["read_file", arguments]).expect(1).text();
        assert!(text.contains(words), "{text}");
    }
    assert!(
        call(&env, &["fly", "{}"])
            .expect(1)
            .text()
            .contains("there is no tool `fly`")
    );
    env.assert_no_container();
}

#[test]
fn what_is_denied_does_not_happen() {
    let Some(env) = TestBox::new() else { return };
    let write = r#"{"path":"a.txt","content":"x"}"#;
    let text = call(&env, &["--mode", "deny", "write_file", write])
        .expect(4)
        .text();
    assert!(text.starts_with("Denied:"), "{text}");
    call(&env, &["--mode", "ask", "write_file", write]).expect(4);
    call(&env, &["write_file", r#"{"path":".env","content":"x"}"#]).expect(4);
    assert_eq!(
        std::fs::read_dir(env.project()).expect("a folder").count(),
        0
    );
    call(&env, &["write_file", write]).expect(0);
    assert_eq!(env.read("a.txt"), "x");
}

/// It would be run on the user's machine in place of the source, and git shows nothing of it.
#[test]
fn python_keeps_nothing_that_it_compiled_in_the_project() {
    let Some(env) = TestBox::new() else { return };
    env.write("notes.py", "print('imported')\n");
    let import = |more: &str| {
        let command = serde_json::json!({ "command": format!("{more} python3 -c 'import notes'") });
        assert_eq!(
            call(&env, &["bash", &command.to_string()]).expect(0).text(),
            "imported\n"
        );
        std::fs::read_dir(env.project())
            .expect("the project")
            .count()
    };
    assert_eq!(import(""), 1);
    assert_eq!(
        import("PYTHONDONTWRITEBYTECODE="),
        2,
        "without that it does"
    );
}

#[test]
fn without_an_engine_there_is_no_box() {
    let Some(env) = TestBox::new() else { return };
    let mut command = env.here(&["call", "list_directory", "{}"]);
    run(command.env("DOCKER_HOST", "unix:///nonexistent.sock"))
        .expect(5)
        .says(&["error:", "no such socket", "hint:"]);
}
