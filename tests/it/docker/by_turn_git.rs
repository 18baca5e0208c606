//! Turns of a chat in projects with more than one working tree.

use serde_json::json;

use super::chat::Talk;
use super::git;
use super::git_below::make_linked;
use super::review::volumes;
use crate::support::ScriptedModel;
use crate::support::TestEnv;

/// Has a chat do one command a turn, and looks for the end of each.
fn turns(env: &super::test_box::TestBox, commands: &[&str]) {
    let mut model = ScriptedModel::new();
    for (at, command) in commands.iter().enumerate() {
        model = model
            .calls("bash", json!({ "command": command }))
            .says(&format!("Done {at}."));
    }
    let model = model.start_blocking();
    let mut talk = Talk::begin(env, &env.project(), &model, &["--mode", "auto"]);
    for at in 0..commands.len() {
        talk.sees("> ");
        talk.types("continue\n");
        talk.sees(&format!("Done {at}."));
    }
    talk.sees("> ");
    talk.leaves();
}

/// Two chats of two turns each: 8 s.
#[test]
fn turns_commit_in_submodules_and_in_linked_worktrees() {
    let Some(env) = git::full_repository() else {
        return;
    };
    turns(
        &env,
        &[
            "cd sub && git checkout -q -b work && echo x > x && git add x && git commit -q -m inside && cd .. && git add sub && git commit -q -m around",
            "cd /workspace/sub && cat x && echo y >> x && git commit -q -a -m further && cd .. && git add sub && git commit -q -m again",
        ],
    );
    assert_eq!(
        git::git(&env, &["log", "-2", "--format=%s"]),
        "again\naround\n"
    );
    assert_eq!(
        git::git(&env, &["-C", "sub", "log", "-2", "--format=%s", "work"]),
        "further\ninside\n"
    );
    assert_eq!(
        (
            env.read("sub/x").as_str(),
            git::git(&env, &["status", "--porcelain"]).as_str()
        ),
        ("x\ny\n", "")
    );
    assert_eq!(volumes(&env), Vec::<String>::new());

    let env = git::repository().expect("the first one was made");
    let main = make_linked(&env);
    git::give_all(&main);
    git::give_all(&env.project());
    TestEnv::give(&env.project());
    turns(
        &env,
        &[
            "echo two >> a.txt; git commit -q -a -m two",
            "cat a.txt; echo three >> a.txt; git commit -q -a -m three",
        ],
    );
    assert_eq!(git::git(&env, &["log", "--format=%s"]), "three\ntwo\none\n");
    assert_eq!(
        (
            env.read("a.txt").as_str(),
            git::git(&env, &["status", "--porcelain"]).as_str()
        ),
        ("one\ntwo\nthree\n", "")
    );
    assert_eq!(volumes(&env), Vec::<String>::new());
}
