//! Commands that run on the user's own machine: only where their own settings say so, and within
//! their limits.

use std::time::Duration;
use std::time::Instant;

use serde_json::json;

use super::test_box::TestBox;
use crate::support::ScriptedModel;
use crate::support::TestEnv;
use crate::support::test_env::run;

/// Writes the user's own settings.
fn own(env: &TestEnv, text: &str) {
    let folder = env.home().join(".config/podbay");
    std::fs::create_dir_all(&folder).expect("made");
    std::fs::write(folder.join("config.toml"), text).expect("written");
}

fn write() -> ScriptedModel {
    ScriptedModel::new()
        .calls("write_file", json!({"path": "a.txt", "content": "one\n"}))
        .says("Done.")
}

#[test]
fn a_hook_of_the_persons_own_runs_on_the_host_and_one_of_a_project_never_does() {
    let Some(env) = TestBox::new() else { return };
    let told = env.beside("told");
    std::fs::create_dir(&told).expect("made");
    let shown = told.display();
    own(
        &env,
        &format!(
            "[llm]\napi_key_env = \"OUR_KEY\"\n[[hooks.pre_tool_use]]\nwhere = \"host\"\n\
             run = \"cat > {shown}/input; pwd > {shown}/folder; env > {shown}/environment; true\"\n\
             [[hooks.stop]]\nwhere = \"host\"\nrun = \"cat > {shown}/stop; yes | head -c 50000000\"\n\
             [[hooks.post_tool_use]]\nrun = \"pwd > in-the-sandbox\"\n"
        ),
    );
    env.write(
        ".podbay/config.toml",
        format!("[[hooks.stop]]\nwhere = \"host\"\nrun = \"touch {shown}/project\"\n"),
    );
    run(env
        .podbay(&["config", "trust", "--yes", "-C"])
        .arg(env.project()));
    let model = write().start_blocking();
    let mut command = env.task(&model, &["write"]);
    run(command.env("OUR_KEY", "sesame").env("MINE", "visible")).expect(0);
    let read = |name: &str| {
        std::fs::read_to_string(told.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    let input: serde_json::Value = serde_json::from_str(&read("input")).expect("JSON");
    assert_eq!(
        (&input["event"], &input["tool_input"]["path"]),
        (&json!("pre_tool_use"), &json!("a.txt"))
    );
    assert_eq!(read("folder").trim(), env.project().display().to_string());
    let environment = read("environment");
    assert!(
        environment.contains("MINE=visible") && environment.contains("PODBAY_TOOL_NAME=write_file"),
        "{environment}"
    );
    assert!(!environment.contains("sesame"), "{environment}");
    assert!(read("stop").contains("\"completed\""));
    // The other place, for comparison; and a project's settings have no word in this one.
    assert_eq!(env.read("in-the-sandbox"), "/workspace\n");
    assert!(!told.join("project").exists());
    env.assert_no_container();
}

#[test]
fn a_hook_on_the_host_that_hangs_or_says_no_holds_back_the_call_and_leaves_nothing_running() {
    let Some(env) = TestBox::new() else { return };
    let late = env.beside("late");
    own(
        &env,
        &format!(
            "[[hooks.pre_tool_use]]\nwhere = \"host\"\ntimeout = \"1s\"\nif = {{ tool = \"write_file\" }}\n\
             run = \"(sleep 6; touch {}) & sleep 600\"\n\
             [[hooks.pre_tool_use]]\nwhere = \"host\"\nif = {{ tool = \"bash\" }}\nrun = \"echo not today >&2; exit 2\"\n",
            late.display()
        ),
    );
    let model = ScriptedModel::new()
        .calls("write_file", json!({"path": "a.txt", "content": "one\n"}))
        .calls("bash", json!({"command": "touch b.txt"}))
        .says("Done.")
        .start_blocking();
    let begun = Instant::now();
    run(&mut env.task(&model, &["write"])).expect(4);
    let told = model.requests().last().expect("requests")["messages"].to_string();
    assert!(told.contains("& sleep 600`: it timed out"), "{told}");
    assert!(
        told.contains("a hook of the user blocks it: not today"),
        "{told}"
    );
    assert!(!env.path("a.txt").exists() && !env.path("b.txt").exists());
    std::thread::sleep(Duration::from_secs(7).saturating_sub(begun.elapsed()));
    assert!(!late.exists(), "what it had started was ended with it");
    env.assert_no_container();
}
