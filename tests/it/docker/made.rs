//! `.git` and `.podbay` that are made, or put in another's place, while a sandbox lives.

use serde_json::json;

use super::test_box::TestBox;
use crate::support::ScriptedModel;
use crate::support::TestEnv;
use crate::support::test_env::run;
use crate::support::test_env::start;

/// Makes a repository whose settings would run a program at the next `git status`.
const MAKE: &str = "mkdir -p .git/hooks && echo 'touch pwned' > .git/hooks/post-index-change && echo '[core] fsmonitor = /workspace/evil' > .git/config";

/// Returns the names at the top of the project that are a `.git` moved aside.
fn aside(env: &TestBox) -> Vec<String> {
    let names = std::fs::read_dir(env.project())
        .expect("the project")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    names
        .filter(|name| name.starts_with(".git-from-sandbox-"))
        .collect()
}

#[test]
fn g_02_a_git_that_a_command_made_is_moved_aside() {
    let Some(env) = TestBox::new() else { return };
    let bash = json!({ "command": MAKE });
    run(&mut env.here(&["call", "bash", &bash.to_string()]))
        .expect(0)
        .says(&["a `.git` was made in this session and is now `.git-from-sandbox-"]);
    let first = aside(&env);
    assert!(!env.path(".git").exists() && first.len() == 1, "{first:?}");
    assert!(
        env.read(&format!("{}/config", first[0]))
            .contains("fsmonitor"),
        "nothing is lost"
    );

    // The same after a whole run, which has it in its result, and for a link.
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "mkdir evil && ln -s evil .git"}))
        .says("Done.")
        .start_blocking();
    let result = run(&mut env.task(&model, &["work"])).expect(0).json();
    let warnings = result["warnings"].to_string();
    assert!(
        warnings.contains(".git is now ") && warnings.contains("/aside/"),
        "{result:#}"
    );
    assert_eq!(
        result["git"]["moved_aside"].as_array().map(Vec::len),
        Some(1),
        "{result:#}"
    );
    assert_eq!(result["may_run"], json!([]), "it runs nowhere by now");
    assert!(!env.path(".git").is_symlink() && env.path("evil").is_dir() && aside(&env).len() == 1);

    // What a user does by hand in the sandbox, and what was there before, stays; and it is
    // protected from then on.
    run(&mut env.here(&["sh", "--", "mkdir", "-p", ".git/hooks"])).expect(0);
    run(&mut env.here(&["call", "bash", r#"{"command":"touch .git/hooks/x"}"#])).expect(1);
    assert!(env.path(".git/hooks").is_dir() && !env.path(".git/hooks/x").exists());
    assert_eq!(aside(&env).len(), 1);
    env.assert_no_container();
}

#[test]
fn what_is_replaced_meanwhile_is_protected_from_the_next_call_on() {
    let Some(env) = TestBox::new() else { return };
    for name in [".git", ".podbay"] {
        env.write(&format!("{name}/config.toml"), "# old\n");
        let touch = format!("echo evil >> {name}/config.toml; touch {name}/new");
        let model = ScriptedModel::new()
            .calls("bash", json!({"command": format!("touch begun{name}; while ! test -e go{name}; do sleep 0.05; done")}))
            .calls("bash", json!({ "command": touch }))
            .calls("bash", json!({ "command": touch }))
            .says("Done.")
            .start_blocking();
        let task = start(&mut env.task(&model, &["work"]));
        env.wait_for(&format!("begun{name}"));
        std::fs::rename(env.path(name), env.path(&format!("away{name}"))).expect("moved");
        env.write(&format!("{name}/config.toml"), "# new\n");
        TestEnv::give(&env.path(name));
        env.write(&format!("go{name}"), "");
        task.wait().expect(0);
        let told = model
            .requests()
            .iter()
            .map(ToString::to_string)
            .collect::<String>();
        assert!(
            told.contains(&format!("`{name}` of the project was replaced or removed")),
            "{told}"
        );
        assert!(told.contains("Read-only file system"), "{told}");
        assert_eq!(env.read(&format!("{name}/config.toml")), "# new\n");
        assert!(!env.path(&format!("{name}/new")).exists());
    }
    env.assert_no_container();
}

#[test]
fn g_02_a_git_that_takes_the_place_of_a_removed_one_is_moved_aside() {
    let Some(env) = TestBox::new() else { return };
    env.write(".git/HEAD", "ref: refs/heads/main\n");
    let model = ScriptedModel::new()
        .calls(
            "bash",
            json!({"command": "touch begun; while ! test -e go; do sleep 0.05; done"}),
        )
        .calls("bash", json!({"command": MAKE}))
        .calls("bash", json!({"command": MAKE}))
        .says("Done.")
        .start_blocking();
    let task = start(&mut env.task(&model, &["work"]));
    env.wait_for("begun");
    std::fs::remove_dir_all(env.path(".git")).expect("removed");
    env.write("go", "");
    let result = task.wait().expect(0).json();
    assert!(
        result["warnings"].to_string().contains(".git is now "),
        "{result:#}"
    );
    assert!(!env.path(".git").exists() && aside(&env).is_empty());
    env.assert_no_container();
}
