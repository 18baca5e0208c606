//! Instructions of folders, in a real sandbox.

use std::os::unix::fs::symlink;

use serde_json::Value;
use serde_json::json;

use super::test_box::TestBox;
use crate::support::ScriptedModel;
use crate::support::test_env::run;

#[test]
fn instructions_of_folders_are_told_in_a_real_sandbox() {
    let Some(env) = TestBox::new() else { return };
    env.write("AGENTS.md", "Read @docs/style.md first. Not @secret.md.\n");
    env.write("docs/style.md", "Be brief.\n");
    env.write("web/AGENTS.md", "Use tabs here. See @../docs/web.md.\n");
    env.write("docs/web.md", "No frameworks.\n");
    env.write("web/page.html", "<p>\n");
    std::fs::write(env.beside("secret.md"), "TOP SECRET\n").expect("written");
    symlink(env.beside("secret.md"), env.path("secret.md")).expect("linked");
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "cat web/page.html"}))
        .calls("read_file", json!({"path": "web/page.html"}))
        .calls(
            "write_file",
            json!({"path": "web/new.html", "content": "<p>\n"}),
        )
        .says("Done.")
        .start_blocking();
    let mut command = env.here(&["run", "--output", "jsonl", "--model", "scripted"]);
    command.args(["--endpoint", &model.endpoint(), "go"]);
    let done = run(&mut command).expect(0);
    model.assert_append_only();
    let told = |n: usize| model.requests()[n]["messages"].to_string();
    assert!(
        told(0).contains("(docs/style.md, imported by AGENTS.md):\\nBe brief.\\n"),
        "{}",
        told(0)
    );
    assert!(!told(3).contains("TOP SECRET"));
    // A command is not noticed, a file tool is, once.
    assert!(!told(1).contains("Use tabs here"), "{}", told(1));
    let last = told(3);
    let heading =
        "The project's own instructions for files in web (web/AGENTS.md):\\nUse tabs here.";
    assert!(told(2).contains(heading), "{}", told(2));
    assert_eq!(last.matches(heading).count(), 1, "{last}");
    assert!(
        last.contains("(docs/web.md, imported by web/AGENTS.md):\\nNo frameworks.\\n"),
        "{last}"
    );
    let text = done.text();
    let names: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"))
        .filter(|event| event["type"] == "context_added")
        .map(|event| event["instructions"].clone())
        .collect();
    assert_eq!(
        names,
        [
            json!(["AGENTS.md", "docs/style.md"]),
            json!(["web/AGENTS.md", "docs/web.md"])
        ]
    );
    env.assert_no_container();
}
