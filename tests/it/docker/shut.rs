//! A session that closes the project's own folder, or one below, to whoever has it.

use std::os::unix::fs::MetadataExt;

use serde_json::Value;
use serde_json::json;

use super::git::git;
use super::git::repository;
use super::git::session;
use super::review::held_back;
use super::review::review;
use super::test_box::TestBox;
use super::undo::undo;

/// Changes two files, commits one of them, and closes a folder in a way that no rule knows.
fn work_and_close(folder: &str, mode: &str) -> String {
    format!(
        "echo two >> a.txt; git commit -qam two; echo two >> sub/in.txt; python3 -c \"import os; os.chmod('/workspace{folder}', 0o{mode})\""
    )
}

fn project() -> Option<TestBox> {
    let env = repository()?;
    env.write("sub/in.txt", "one\n");
    Some(env)
}

fn mode(env: &TestBox, path: &str) -> u32 {
    std::fs::metadata(env.path(path)).expect("there").mode() & 0o7777
}

fn warnings(result: &Value) -> Vec<String> {
    let all = result["warnings"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|warning| warning.as_str().expect("text").to_owned());
    all.filter(|warning| !warning.contains("known holes"))
        .collect()
}

#[test]
fn the_projects_own_folder_is_open_again_after_a_command_that_closed_it() {
    for (closed, open) in [("0000", 0o700), ("0311", 0o711)] {
        let Some(env) = project() else { return };
        let (result, told) = session(&env, &[&work_and_close("", closed), "echo three >> a.txt"]);
        assert_eq!((warnings(&result), mode(&env, "")), (vec![], open));
        assert!(
            told.contains(&format!("was removed (mode {closed})")),
            "{told}"
        );
        assert_eq!(
            result["changes"]["modified"],
            json!([".", "a.txt", "sub/in.txt"]),
            "the mode of the project's own folder too"
        );
        assert!(git(&env, &["log", "--format=%s"]).starts_with("two\n"));
        undo(&env, &[]).expect(0);
        assert_eq!(
            (env.read("a.txt"), env.read("sub/in.txt")),
            ("one\n".to_owned(), "one\n".to_owned())
        );
        let (result, _) = session(&env, &["echo four >> a.txt"]);
        assert_eq!(warnings(&result), [""; 0]);
        assert_eq!(env.read("a.txt"), "one\nfour\n");
        // The same of a copy, in which it is the last that happens.
        let Some(env) = project() else { return };
        let before = mode(&env, "");
        let result = held_back(&env, &work_and_close("", closed), &[]);
        assert_eq!(
            result["changes"]["modified"],
            json!(["a.txt", "sub/in.txt"]),
            "{result}"
        );
        review(&env, &["apply"]).expect(0);
        assert_eq!(
            (env.read("a.txt"), env.read("sub/in.txt")),
            ("one\ntwo\n".to_owned(), "one\ntwo\n".to_owned())
        );
        assert!(git(&env, &["log", "--format=%s"]).starts_with("two\n"));
        assert_eq!(mode(&env, ""), before, "it is the copy's");
        env.assert_no_container();
    }
}

#[test]
fn what_is_in_a_folder_that_a_session_closed_is_named_and_stays() {
    for closed in ["0000", "0311"] {
        let Some(env) = project() else { return };
        let (result, _) = session(&env, &[&work_and_close("/sub", closed)]);
        assert!(
            git(&env, &["log", "--format=%s"]).starts_with("two\n"),
            "{result}"
        );
        assert_eq!(
            mode(&env, "sub"),
            u32::from_str_radix(closed, 8).expect("a mode")
        );
        // Where nobody could look, nothing is overwritten.
        let undone = undo(&env, &[]).expect(1).text();
        assert!(
            undone.contains("sub/in.txt was not captured at the end of the turn"),
            "{undone}"
        );
        assert_eq!(
            (env.read("a.txt"), env.read("sub/in.txt"), mode(&env, "sub")),
            ("one\n".to_owned(), "one\ntwo\n".to_owned(), 0o755)
        );
        let (result, _) = session(&env, &["echo three >> sub/in.txt"]);
        assert_eq!(warnings(&result), [""; 0]);
        let Some(env) = project() else { return };
        held_back(&env, &work_and_close("/sub", closed), &[]);
        let applied = review(&env, &["apply"]).expect(9).text();
        assert!(applied.contains("sub is not in the snapshot"), "{applied}");
        assert_eq!(
            (env.read("a.txt"), env.read("sub/in.txt")),
            ("one\ntwo\n".to_owned(), "one\n".to_owned())
        );
        // The commit is there, and comes when it is asked for.
        review(&env, &["apply", "--commits"]).says(&["git: imported from the session"]);
        assert!(git(&env, &["log", "--format=%s"]).starts_with("two\n"));
        env.assert_no_container();
    }
}
