//! Changes that are pending wait, are shown, and are applied only as a user asks.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;
use podbay_soak as soak;
use serde_json::Value;
use serde_json::json;
use sha2::Digest;
use sha2::Sha256;

use super::chat::Talk;
use super::cut_off;
use super::cut_off::cut_off;
use super::git::git;
use super::git::give_all;
use super::test_box::TestBox;
use super::test_box::alone_with_gc;
use super::test_box::docker;
use crate::support::ScriptedModel;
use crate::support::test_env::Done;
use crate::support::test_env::TestEnv;
use crate::support::test_env::is_root;
use crate::support::test_env::run;
use crate::support::test_env::start;
use crate::support::test_env::within;

/// Changes a project in each way there is.
const CHANGE: &str = "echo new > made.txt; echo two >> kept.txt; rm gone.txt; chmod +x mode.sh; mkdir -p deep/er && mv moved.txt deep/er/; \
                      ln -s kept.txt link; printf 'a\\0b' > binary; mv folder renamed";

fn fill(env: &TestBox) {
    for (path, content) in [
        ("kept.txt", "one\n"),
        ("gone.txt", "gone\n"),
        ("mode.sh", "true\n"),
        ("moved.txt", "moved\n"),
        ("folder/in.txt", "in\n"),
        (".env", "SECRET=sesame\n"),
    ] {
        env.write(path, content);
    }
}

/// Returns every path of the project with what is there: kind, mode and content.
pub(super) fn state(env: &TestBox) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    enter(&env.project(), &env.project(), &mut all);
    all
}

fn enter(root: &Path, folder: &Path, all: &mut BTreeMap<PathBuf, String>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let facts = path.symlink_metadata().expect("it is there");
        let content = if facts.is_symlink() {
            path.read_link().expect("a link").display().to_string()
        } else if facts.is_dir() {
            enter(root, &path, all);
            String::new()
        } else {
            let bytes = std::fs::read(&path).expect("a file");
            // What is long is told by its hash: who compares hundreds of megabytes does not read
            // them.
            if bytes.len() > 200 {
                format!("{} bytes, {:x?}", bytes.len(), Sha256::digest(&bytes))
            } else {
                format!("{:?}", String::from_utf8_lossy(&bytes))
            }
        };
        all.insert(
            path.strip_prefix(root).expect("below").to_owned(),
            format!("{:o} {content}", facts.mode()),
        );
    }
}

pub(super) fn held_back(env: &TestBox, command: &str, flags: &[&str]) -> Value {
    held_back_to(env, command, flags, 0)
}

/// The same for a run that ends with this code.
pub(super) fn held_back_to(env: &TestBox, command: &str, flags: &[&str], code: i32) -> Value {
    let model = ScriptedModel::new()
        .calls("bash", json!({ "command": command }))
        .says("Done.")
        .start_blocking();
    let mut task = env.task(&model, &["change it all", "--changes", "review"]);
    run(task.args(flags)).expect(code).json()
}

pub(super) fn review(env: &TestBox, arguments: &[&str]) -> Done {
    let mut command = env.podbay(&["review"]);
    run(command.args(arguments).arg("-C").arg(env.project()))
}

pub(super) fn volumes(env: &TestBox) -> Vec<String> {
    let project = format!("label=dev.podbay.project={}", env.key());
    let listed = docker(&[
        "volume",
        "ls",
        "--quiet",
        "--filter",
        &project,
        "--filter",
        "label=dev.podbay.role=review",
    ]);
    listed.lines().map(str::to_owned).collect()
}

#[test]
fn what_a_run_changed_waits_and_is_shown_brought_in_in_parts_and_discarded() {
    let Some(env) = TestBox::new() else { return };
    fill(&env);
    let before = state(&env);
    let model = ScriptedModel::new()
        .calls("bash", json!({ "command": CHANGE }))
        .says("Done.")
        .start_blocking();
    let done = run(&mut env.task(&model, &["change it all", "--changes", "review"]))
        .expect(0)
        .says(&[
            "pending review",
            "deleted gone.txt",
            "renamed moved.txt -> deep/er/moved.txt",
            "podbay review apply",
        ]);
    assert!(!done.stderr.contains("changes are live"), "{}", done.stderr);
    let result = done.json();
    let id = result["review"].as_str().expect("a review").to_owned();
    assert_eq!(
        (&result["applied"], &result["session"]),
        (&json!(false), &json!(id))
    );
    assert_eq!(
        result["changes"]["created"],
        json!([
            "binary",
            "deep/er/moved.txt",
            "link",
            "made.txt",
            "renamed/in.txt"
        ]),
        "{result}"
    );
    assert_eq!(
        result["changes"]["deleted"],
        json!(["folder/in.txt", "gone.txt", "moved.txt"])
    );
    assert_eq!(state(&env), before, "nothing is changed in the project");
    env.assert_no_container();
    let listed = review(&env, &["list"]).expect(0).text();
    assert!(
        listed.contains(&id) && listed.contains("change it all"),
        "{listed}"
    );
    let status = run(&mut env.here(&["status"])).expect(0).text();
    assert!(status.contains(&id), "{status}");
    let shown = review(&env, &["diff"]).expect(0).text();
    for words in [
        "+two\n",
        "-gone\n",
        "old mode 100644\nnew mode 100755",
        "rename from moved.txt\nrename to deep/er/moved.txt",
        "new file mode 120000",
        "Binary files a/binary and b/binary differ",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert!(
        !shown.contains('\u{1b}') && !shown.contains("sesame"),
        "{shown}"
    );
    let shown = review(&env, &["diff", &id[..6], "kept.txt"])
        .expect(0)
        .text();
    assert!(
        shown.contains("+two") && !shown.contains("made.txt"),
        "{shown}"
    );
    review(&env, &["diff", "nowhere"])
        .expect(1)
        .says(&["cannot select by `nowhere`"]);
    let done = review(&env, &["apply", "--only", "made.txt", "--only", "deep"])
        .expect(0)
        .text();
    assert!(
        done.contains("deep/er/moved.txt") && done.contains("still waiting"),
        "{done}"
    );
    assert_eq!(
        (
            env.read("made.txt").as_str(),
            env.read("kept.txt").as_str(),
            env.path("gone.txt").exists()
        ),
        ("new\n", "one\n", true)
    );
    review(&env, &["discard"]).expect(0);
    assert_eq!(
        (env.read("made.txt").as_str(), env.read("kept.txt").as_str()),
        ("new\n", "one\n"),
        "what was applied stays"
    );
    assert_eq!(
        review(&env, &["list"]).expect(0).text(),
        "no pending review\n"
    );
    review(&env, &["apply"])
        .expect(2)
        .says(&["no pending review"]);
    review(&env, &["discard", &id])
        .expect(1)
        .says(&["no such review", &id]);
    assert_eq!(volumes(&env), Vec::<String>::new());
    env.assert_no_container();
}

#[test]
fn a_run_holds_its_changes_back_unless_it_is_told_otherwise() {
    let Some(env) = TestBox::new() else { return };
    let model = || {
        ScriptedModel::new()
            .calls("bash", json!({"command": "echo new > made.txt"}))
            .says("Done.")
            .start_blocking()
    };
    let (held, live) = (model(), model());
    let result = run(env
        .task(&held, &["work"])
        .env_remove("PODBAY_SANDBOX_CHANGES"))
    .expect(0)
    .json();
    assert!(
        result["review"].is_string() && !env.path("made.txt").exists(),
        "{result}"
    );
    run(env
        .task(&live, &["work", "--changes", "live"])
        .env_remove("PODBAY_SANDBOX_CHANGES"))
    .expect(0);
    assert!(env.path("made.txt").exists());
    run(&mut env.task(&live, &["work", "--apply"]))
        .expect(2)
        .says(&["here changes are live"]);
    run(env
        .here(&["chat", "--apply"])
        .env_remove("PODBAY_SANDBOX_CHANGES"))
    .expect(2)
    .says(&["turn by turn"]);
    run(&mut env.here(&["review"]))
        .expect(2)
        .says(&["no terminal", "podbay review diff"]);
    review(&env, &["discard"]).expect(0);
    env.assert_no_container();
}

#[test]
fn all_of_it_is_brought_in_as_one_turn_that_can_be_taken_back() {
    let Some(env) = TestBox::new() else { return };
    fill(&env);
    let before = state(&env);
    let result = held_back(&env, CHANGE, &["--apply"]);
    assert_eq!(
        (&result["applied"], &result["review"]),
        (&json!(true), &Value::Null),
        "{result}"
    );
    assert_eq!(
        (
            env.read("kept.txt").as_str(),
            env.read("renamed/in.txt").as_str()
        ),
        ("one\ntwo\n", "in\n")
    );
    let facts = env.path("made.txt").metadata().expect("there");
    assert_eq!(
        (facts.uid(), facts.gid()),
        crate::support::test_env::owner()
    );
    assert_eq!(volumes(&env), Vec::<String>::new());
    run(&mut env.here(&["undo"])).expect(0);
    assert_eq!(state(&env), before);
    // A run that changes nothing leaves nothing.
    let result = held_back(&env, "true", &[]);
    assert_eq!(
        (&result["review"], &result["changes"]["created"]),
        (&Value::Null, &json!([]))
    );
    assert_eq!(volumes(&env), Vec::<String>::new());
    env.assert_no_container();
}

#[test]
fn what_a_task_did_that_was_not_done_is_not_brought_in_at_once() {
    let Some(env) = TestBox::new() else { return };
    fill(&env);
    let before = state(&env);
    let not_done: [(&[&str], i32); 2] = [
        (&["--max-turns", "2"], 3),
        (&["--deny", "bash(touch no.txt)"], 4),
    ];
    for (flags, code) in not_done {
        let model = ScriptedModel::new()
            .calls("bash", json!({ "command": CHANGE }))
            .calls("bash", json!({"command": "touch no.txt"}))
            .says("That is as far as I came.")
            .start_blocking();
        let mut task = env.task(&model, &["work", "--changes", "review", "--apply"]);
        let result = run(task.args(flags)).expect(code).json();
        assert_eq!(
            (&result["applied"], state(&env)),
            (&json!(false), before.clone()),
            "{result}"
        );
        let id = result["review"].as_str().expect("it waits").to_owned();
        assert!(
            review(&env, &["diff", &id])
                .expect(0)
                .text()
                .contains("+two"),
            "{result}"
        );
        review(&env, &["discard", &id]).expect(0);
    }
    env.assert_no_container();
}

#[test]
fn what_is_brought_in_at_once_does_not_wait_and_what_is_left_is_named_with_the_way_to_it() {
    let Some(env) = TestBox::new() else { return };
    let command = "echo ./on-enter > .envrc; echo fine > fine.txt";
    let model = ScriptedModel::new()
        .calls("bash", json!({ "command": command }))
        .says("Done.")
        .start_blocking();
    let done = run(&mut env.task(&model, &["work", "--changes", "review", "--apply"])).expect(9);
    let done = done.says(&[
        "1 file changed, pending review",
        "new     .envrc",
        "--accept-auto-run",
    ]);
    let (said, result) = (done.stderr.clone(), done.json());
    assert!(
        env.path("fine.txt").exists()
            && !env.path(".envrc").exists()
            && !said.contains("new     fine.txt"),
        "{said}"
    );
    assert_eq!(
        (&result["status"], &result["exit_code"], &result["error"]),
        (&json!("completed"), &json!(9), &Value::Null),
        "{result}"
    );
    assert!(
        review(&env, &["apply"])
            .expect(9)
            .text()
            .contains("nothing was applied")
    );
    assert!(
        review(&env, &["apply", "--accept-auto-run"])
            .expect(0)
            .text()
            .contains(".envrc: direnv obeys it by itself")
    );
    assert!(env.path(".envrc").exists());
    assert_eq!(volumes(&env), Vec::<String>::new());
}

#[test]
fn what_runs_by_itself_comes_with_a_run_that_says_yes_and_what_you_run_with_any() {
    let Some(env) = TestBox::new() else { return };
    env.write("package.json", "{\"version\":\"1.0.0\"}\n");
    env.write(".github/workflows/ci.yml", "old\n");
    let bump = "sed -i s/1.0.0/1.0.1/ package.json; echo new > .github/workflows/ci.yml; printf 'all:\\n' > Makefile";
    let result = held_back(&env, bump, &["--apply"]);
    assert_eq!(
        (&result["applied"], &result["review"]),
        (&json!(true), &Value::Null),
        "{result}"
    );
    assert!(
        env.read("package.json").contains("1.0.1") && env.path("Makefile").exists(),
        "{result}"
    );
    assert_eq!(env.read(".github/workflows/ci.yml"), "new\n");
    for name in [
        "package.json: npm",
        "Makefile: make obeys it when you run it",
        ".github/workflows/ci.yml: a CI server",
    ] {
        assert!(
            result["may_run"].to_string().contains(name),
            "{name}: {result}"
        );
    }
    held_back(&env, "echo x > .envrc", &["--apply", "--accept-auto-run"]);
    assert_eq!(env.read(".envrc"), "x\n");
    let model = ScriptedModel::new().says("Done.").start_blocking();
    run(&mut env.task(
        &model,
        &["work", "--changes", "review", "--accept-auto-run"],
    ))
    .expect(2)
    .says(&["there is no --apply"]);
    env.assert_no_container();
}

#[test]
fn a_terminal_is_asked_before_the_review_of_an_older_session_is_discarded() {
    let Some(env) = TestBox::new() else { return };
    let older = held_back(&env, "echo x > one.txt", &[]);
    let newer = held_back(&env, "echo x > two.txt", &[]);
    let id = |result: &Value| result["review"].as_str().expect("an id").to_owned();
    let (older, newer) = (id(&older), id(&newer));
    let listed = |form: &[&str]| {
        let mut command = env.podbay(&["review", "list"]);
        run(command.args(form).arg("-C").arg(env.project()))
            .expect(0)
            .json()
    };
    let reviews = listed(&["--json"]);
    assert_eq!(reviews["n"], 2, "{reviews}");
    assert_eq!(reviews, listed(&["--output", "json"]));
    let question = format!(
        "Discard the changes of session {older}, which is not this project's last one? [y/N] "
    );
    let mut talk = Talk::run(&env, &env.project(), &["review", "discard", &older]);
    talk.sees(&question);
    std::thread::sleep(Duration::from_millis(600));
    talk.types("\n");
    assert_eq!(talk.ends(), 1);
    assert_eq!(listed(&["--json"])["n"], 2, "it is still there");
    let discards = |words: &[&str]| Talk::run(&env, &env.project(), words).ends();
    assert_eq!(discards(&["review", "discard", &newer]), 0);
    assert_eq!(discards(&["review", "discard", "--yes", &older]), 0);
    assert_eq!(listed(&["--json"])["n"], 0);
}

#[test]
fn a_person_at_a_terminal_is_asked_about_what_runs_by_itself() {
    let Some(env) = TestBox::new() else { return };
    let question = "Apply what runs by itself on your machine, too? [y/N] ";
    let answered = |words: &[&str], keys: &str| {
        let mut talk = Talk::run(&env, &env.project(), words);
        let shown = talk.sees(question);
        assert!(
            shown.contains(".envrc may run on your machine: direnv obeys it by itself"),
            "{shown}"
        );
        // Keys that come before the question can be read are thrown away.
        std::thread::sleep(Duration::from_millis(600));
        talk.types(keys);
        talk.ends()
    };
    held_back(&env, "echo x > .envrc; echo fine > fine.txt", &[]);
    assert_eq!(answered(&["review", "apply"], "\n"), 9);
    assert!(env.path("fine.txt").exists() && !env.path(".envrc").exists());
    assert_eq!(answered(&["review", "apply"], "y\n"), 0);
    assert_eq!(
        (env.read(".envrc").as_str(), volumes(&env)),
        ("x\n", Vec::new())
    );
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "echo y > .envrc"}))
        .says("Done.")
        .start_blocking();
    let endpoint = model.endpoint();
    let words = [
        "run",
        "work",
        "--changes",
        "review",
        "--apply",
        "--model",
        "scripted",
        "--endpoint",
        &endpoint,
    ];
    assert_eq!(answered(&words, "y\n"), 0);
    assert_eq!(env.read(".envrc"), "y\n");
    env.assert_no_container();
}

#[test]
fn a_branch_that_changes_what_runs_is_checked_out_in_a_view_and_held_at_the_apply() {
    let Some(env) = TestBox::new() else { return };
    env.write(".github/workflows/ci.yml", "old\n");
    env.write(".vscode/tasks.json", "{}\n");
    env.write(".husky/pre-commit", "true\n");
    give_all(&env.project());
    git(&env, &["init", "-q", "-b", "main"]);
    git(&env, &["add", "."]);
    git(&env, &["commit", "-q", "-m", "one"]);
    git(&env, &["checkout", "-q", "-b", "side"]);
    for path in [
        ".github/workflows/ci.yml",
        ".vscode/tasks.json",
        ".husky/pre-commit",
    ] {
        env.write(path, "side\n");
    }
    git(&env, &["commit", "-q", "-a", "-m", "side"]);
    git(&env, &["checkout", "-q", "main"]);
    give_all(&env.project());
    let result = held_back(
        &env,
        "set -e; git switch -q side; cat .github/workflows/ci.yml .vscode/tasks.json .husky/pre-commit > seen",
        &[],
    );
    let done = review(&env, &["apply", "--no-commits"]).expect(9).text();
    assert_eq!(
        (
            env.read("seen").as_str(),
            env.read(".github/workflows/ci.yml").as_str()
        ),
        ("side\nside\nside\n", "side\n"),
        "{result} {done}"
    );
    assert_eq!(
        (
            env.read(".vscode/tasks.json").as_str(),
            env.read(".husky/pre-commit").as_str()
        ),
        ("{}\n", "true\n"),
        "{done}"
    );
    review(&env, &["discard"]).expect(0);
    // Live they cannot be changed.
    let live = ScriptedModel::new().calls(
        "bash",
        json!({"command": "echo live > .vscode/tasks.json; echo live > .github/workflows/ci.yml"}),
    );
    let live = live.says("Done.").start_blocking();
    run(&mut env.task(&live, &["work", "--changes", "live"])).expect(0);
    assert_eq!(
        (
            env.read(".vscode/tasks.json").as_str(),
            env.read(".github/workflows/ci.yml").as_str()
        ),
        ("{}\n", "side\n")
    );
    env.assert_no_container();
}

#[test]
fn a_run_that_goes_on_after_a_part_was_brought_in_goes_on_from_there() {
    let Some(env) = TestBox::new() else { return };
    fill(&env);
    let id = held_back(&env, "echo two >> kept.txt; echo more > gone.txt", &[])["review"]
        .as_str()
        .expect("it waits")
        .to_owned();
    review(&env, &["apply", "--only", "kept.txt"]).expect(0);
    let more = ScriptedModel::new()
        .calls("bash", json!({"command": "echo three >> kept.txt"}))
        .says("Done.")
        .start_blocking();
    run(&mut env.task(&more, &["continue", "--continue", "--changes", "review"])).expect(0);
    let shown = review(&env, &["diff", &id, "kept.txt"]).expect(0).text();
    assert!(
        shown.contains("+three") && !shown.contains("+two"),
        "{shown}"
    );
    review(&env, &["apply"]).expect(0);
    assert_eq!(
        (env.read("kept.txt").as_str(), env.read("gone.txt").as_str()),
        ("one\ntwo\nthree\n", "more\n")
    );
    assert_eq!(volumes(&env), Vec::<String>::new());
    env.assert_no_container();
}

#[test]
fn a_folder_that_a_run_renamed_stays_whole_when_the_old_one_is_gone() {
    let Some(env) = TestBox::new() else { return };
    let go_on = |command: &str, flags: &[&str]| {
        held_back(&env, command, &[&["--continue"][..], flags].concat())
    };
    for name in ["1", "2"] {
        env.write(&format!("src/{name}"), format!("{name}\n"));
    }
    env.write(".envrc", "true\n");
    // What runs by itself waits on; the rest is applied, and with it the old name goes from the
    // project.
    held_back_to(
        &env,
        "mv src lib; echo agent >> lib/1; echo x >> .envrc",
        &["--apply"],
        9,
    );
    assert!(!env.path("src").exists());
    let read = || (env.read("lib/1"), env.read("lib/2"));
    let whole = ("1\nagent\n".to_owned(), "2\n".to_owned());
    assert_eq!(read(), whole);
    held_back_to(&env, "true", &["--continue", "--apply"], 9);
    assert_eq!(read(), whole, "nothing was done");
    review(&env, &["discard"]).expect(0);
    // So it is when the user gives the folder another name.
    held_back(&env, "mv lib new; echo more >> new/1", &[]);
    std::fs::rename(env.path("lib"), env.path("other")).expect("renamed");
    let result = go_on("cat new/2 > copied.txt", &[]);
    assert_eq!(
        result["changes"]["created"],
        json!(["copied.txt", "new/1", "new/2"]),
        "{result}"
    );
    let shown = review(&env, &["diff"]).expect(0).text();
    assert!(shown.contains("+agent\n+more\n"), "{shown}");
    review(&env, &["apply"]).expect(0);
    assert_eq!(
        (env.read("new/1").as_str(), env.read("copied.txt").as_str()),
        ("1\nagent\nmore\n", "2\n")
    );
    assert!(env.path("other/1").exists());
    env.assert_no_container();
}

#[test]
fn a_folder_of_the_project_is_renamed_though_the_kernel_does_not_and_a_masked_one_stays() {
    let Some(env) = TestBox::new() else { return };
    let rename =
        |from: &str, to: &str| format!("python3 -c 'import os; os.rename(\"{from}\", \"{to}\")'");
    for name in [
        "src/1",
        "src/deep/2",
        "plain/3",
        "over/4",
        "conf/key/.env",
        "conf/5",
    ] {
        env.write(name, format!("{name}\n"));
    }
    git(&env, &["init", "-q", "-b", "main"]);
    git(&env, &["add", "plain", "src"]);
    git(&env, &["commit", "-q", "-m", "one"]);
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": rename("src", "lib")}))
        .calls("bash", json!({"command": "git mv plain moved && git status --short plain moved"}))
        .calls(
            "bash",
            json!({"command": format!("mkdir empty full && touch full/x && {} && ! {}", rename("over", "empty"), rename("lib", "full"))}),
        )
        .calls("bash", json!({"command": rename("conf", "other")}))
        .calls("bash", json!({"command": "mkdir new && touch new/6 && mv new newer && ls lib lib/deep moved empty conf newer"}))
        .says("Done.")
        .start_blocking();
    run(&mut env.task(&model, &["rename them", "--changes", "review"])).expect(0);
    let told = model.requests().last().expect("a request").to_string();
    assert!(told.contains("R  plain/3 -> moved/3"), "{told}");
    assert!(
        told.contains("conf:\\n5\\nkey\\n\\nempty:\\n4\\n\\nlib:\\n1\\ndeep\\n\\nlib/deep:\\n2\\n\\nmoved:\\n3\\n\\nnewer:\\n6"),
        "{told}"
    );
    // What is masked keeps its name, so that it stays masked.
    assert!(told.contains("cross-device link"), "{told}");
    review(&env, &["apply"]).expect(0);
    assert_eq!(
        (
            env.read("lib/deep/2").as_str(),
            env.read("moved/3").as_str(),
            env.path("src").exists()
        ),
        ("src/deep/2\n", "plain/3\n", false)
    );
    assert_eq!(env.read("conf/key/.env"), "conf/key/.env\n");
    env.assert_no_container();
}

#[test]
fn nothing_goes_on_in_a_copy_in_which_an_earlier_version_renamed_a_folder() {
    let Some(env) = TestBox::new() else { return };
    if !is_root("a folder is renamed as earlier versions did") {
        return;
    }
    env.write("src/deep/1", "1\n");
    env.write("plain.txt", "one\n");
    let id = held_back(&env, "echo two >> plain.txt", &[])["review"]
        .as_str()
        .expect("an id")
        .to_owned();
    let volume = docker(&[
        "volume",
        "inspect",
        "--format",
        "{{.Mountpoint}}",
        &format!("podbay-review-{id}"),
    ]);
    let (volume, place) = (volume.trim(), tempfile::tempdir().expect("a folder"));
    let project = env.project();
    let options = format!(
        "lowerdir={},upperdir={volume}/up,workdir={volume}/wk,redirect_dir=on,xino=off",
        project.display()
    );
    let flags = nix::mount::MsFlags::empty();
    nix::mount::mount(
        Some("overlay"),
        place.path(),
        Some("overlay"),
        flags,
        Some(options.as_str()),
    )
    .expect("laid over");
    std::fs::rename(
        place.path().join("src/deep"),
        place.path().join("src/deeper"),
    )
    .expect("renamed");
    nix::mount::umount(place.path()).expect("unmounted");
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "echo three >> plain.txt"}))
        .says("Done.")
        .start_blocking();
    let mut task = env.task(&model, &["continue", "--changes", "review", "--continue"]);
    run(&mut task).expect(5).says(&[
        "the folder `src/deeper` was renamed",
        "the copy cannot be used any more",
    ]);
    // What was seen at its end comes all the same.
    review(&env, &["apply"]).expect(0);
    assert_eq!(
        (
            env.read("plain.txt").as_str(),
            env.read("src/deep/1").as_str()
        ),
        ("one\ntwo\n", "1\n")
    );
    assert_eq!(volumes(&env), Vec::<String>::new());
    env.assert_no_container();
}

#[test]
fn what_is_dangerous_is_not_brought_in_and_what_runs_by_itself_only_when_asked() {
    let Some(env) = TestBox::new() else { return };
    fill(&env);
    env.write(".git/HEAD", "ref: refs/heads/main\n");
    env.write(".vscode/settings.json", "{}\n");
    // What reads commands would stop most of it before.
    env.write(
        "attack.sh",
        "cat .env; mv .vscode aside; echo x > .git/hooks; cp /bin/true suid; chmod 4755 suid; ln -s /etc/passwd out; ln -s ../.. up; \
         mkfifo pipe; mkdir -p sub/.git/hooks && echo x > sub/.git/hooks/post-checkout; echo all: > Makefile; \
         mkdir .husky && echo x > .husky/pre-push; echo x > .envrc; echo fine > fine.txt; true",
    );
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "sh attack.sh"}))
        .says("Done.")
        .start_blocking();
    let result = run(&mut env.task(&model, &["work", "--changes", "review"]))
        .expect(0)
        .says(&["may run on your machine:"])
        .json();
    let told = model.requests().last().expect("a request").to_string();
    assert!(
        !told.contains("sesame"),
        "a secret is hidden in the copy too: {told}"
    );
    assert!(
        result["may_run"].to_string().contains("Makefile"),
        "{result}"
    );
    let done = review(&env, &["apply"]).expect(9).text();
    for words in [
        "out would be a link to /etc/passwd",
        "up would be a link",
        "pipe is not in the snapshot",
        "sub/.git is in a git folder",
    ] {
        assert!(done.contains(words), "{words}: {done}");
    }
    for words in [
        ".envrc may run on your machine: ",
        ".husky/pre-push may run on your machine: ",
        "--accept-auto-run",
    ] {
        assert!(done.contains(words), "{words}: {done}");
    }
    assert_eq!(env.read("fine.txt"), "fine\n");
    assert_eq!(
        env.path("suid").metadata().expect("there").mode() & 0o7777,
        0o755,
        "no command can set the bit"
    );
    for path in [
        "out",
        "up",
        "pipe",
        "sub/.git",
        ".envrc",
        ".husky",
        ".git/hooks",
    ] {
        assert!(env.path(path).symlink_metadata().is_err(), "{path}");
    }
    assert_eq!(env.read("Makefile"), "all:\n");
    review(&env, &["apply", "--accept-auto-run"]).expect(9);
    assert!(
        env.path(".envrc").exists()
            && env.path(".husky/pre-push").exists()
            && !env.path("sub/.git").exists()
    );
    review(&env, &["discard"]).expect(0);
    env.assert_no_container();
}

#[test]
fn what_the_person_changed_meanwhile_stays_or_is_put_together() {
    let Some(env) = TestBox::new() else { return };
    env.write("both.txt", "one\ntwo\nthree\nfour\nfive\n");
    env.write("clash.txt", "old\n");
    env.write("theirs.txt", "old\n");
    let id = held_back(
        &env,
        "sed -i s/one/1/ both.txt; echo new > clash.txt; echo x > made.txt",
        &[],
    )["review"]
        .clone();
    env.write("both.txt", "one\ntwo\nthree\nfour\n5\n");
    env.write("clash.txt", "the user's\n");
    env.write("theirs.txt", "the user's\n");
    let shown = review(&env, &["diff"]).expect(0).text();
    assert!(!shown.contains("theirs.txt"), "{shown}");
    let done = review(&env, &["apply"]).expect(9).text();
    assert!(
        done.contains("left as it is: both.txt was changed by another program since"),
        "{done}"
    );
    assert_eq!(
        (env.read("both.txt").as_str(), env.read("made.txt").as_str()),
        ("one\ntwo\nthree\nfour\n5\n", "x\n")
    );
    let done = review(&env, &["apply", id.as_str().expect("an id"), "--merge"])
        .expect(9)
        .text();
    assert!(
        done.contains("both.txt (lines of both sides put together)"),
        "{done}"
    );
    assert_eq!(
        (
            env.read("both.txt").as_str(),
            env.read("clash.txt").as_str()
        ),
        ("1\ntwo\nthree\nfour\n5\n", "the user's\n")
    );
    assert_eq!(env.read("theirs.txt"), "the user's\n");
    review(&env, &["discard"]).expect(0);
    env.assert_no_container();
}

#[test]
fn what_waits_is_not_lost_while_its_project_is_elsewhere() {
    let Some(env) = TestBox::new() else { return };
    let _alone = alone_with_gc();
    fill(&env);
    let id = held_back(&env, "echo new > made.txt", &[])["review"]
        .as_str()
        .expect("an id")
        .to_owned();
    let (here, away) = (env.project(), env.project().with_extension("away"));
    std::fs::rename(&here, &away).expect("renamed");
    let there = |words: &[&str]| run(env.podbay(&["review"]).args(words).arg("-C").arg(&away));
    let listed = there(&["list"]).expect(0).text();
    assert!(
        listed.contains(&format!(
            "{id}  of the project as it was at {}",
            here.display()
        )),
        "{listed}"
    );
    for words in [&["diff", &*id][..], &["apply", &id], &["discard", &id]] {
        there(words)
            .expect(2)
            .says(&["is of the project at", "move the project back"]);
    }
    let collected = run(&mut env.podbay(&["gc", "--snapshots"]))
        .expect(0)
        .text();
    assert!(
        !collected.contains(&here.display().to_string()),
        "{collected}"
    );
    std::fs::rename(&away, &here).expect("renamed");
    review(&env, &["apply"]).expect(0);
    assert_eq!(env.read("made.txt"), "new\n");
    env.assert_no_container();
}

/// Waits until a sandbox has this file in its copy, and returns its id.
#[track_caller]
pub(super) fn box_with(env: &TestBox, name: &str) -> String {
    let is_there = |container: &String| {
        let looked = Command::new("docker")
            .args([
                "exec",
                container,
                "test",
                "-e",
                &format!("/workspace/{name}"),
            ])
            .output();
        looked.is_ok_and(|done| done.status.success())
    };
    let mut found = None;
    within(Duration::from_secs(30), || {
        found = env.boxes().into_iter().find(is_there);
        found.is_some()
    });
    found.unwrap_or_else(|| panic!("{name} did not appear"))
}

#[test]
fn a_secret_whose_folder_was_moved_in_the_copy_is_hidden_in_the_next_box_too() {
    let Some(env) = TestBox::new() else { return };
    env.write("sub/.env", "SECRET=sesame\n");
    env.write("sub/plain.txt", "plain\n");
    // A folder of the project is copied, and what is hidden stays where it is.
    env.write("make.sh", "mkdir own; echo SECRET=sesame > own/.env; mv sub other; cat sub/.env other/.env > told.txt; true\n");
    held_back(&env, "sh make.sh", &[]);
    let model = ScriptedModel::new()
        // One of its own the session can move. The sandbox ends itself where something is no longer
        // covered.
        .calls("bash", json!({"command": "mv own another; sleep 20"}))
        .calls("bash", json!({"command": "cat told.txt; grep -r 'sesa[m]e' own another sub other; tr a-z A-Z < other/plain.txt"}))
        .says("Done.")
        .start_blocking();
    run(&mut env.task(&model, &["work", "--changes", "review", "--continue"])).expect(0);
    let told = model.requests().last().expect("a request").to_string();
    assert!(
        told.contains("covered there no longer. A new one takes its place"),
        "{told}"
    );
    assert!(told.contains("PLAIN") && !told.contains("sesame"), "{told}");
    assert_eq!(env.read("sub/.env"), "SECRET=sesame\n");
    review(&env, &["discard"]).expect(0);
    env.assert_no_container();
}

#[test]
fn a_secret_moved_to_where_nobody_looks_is_hidden_in_the_next_box_too() {
    let Some(env) = TestBox::new() else { return };
    env.write(".gitignore", "target/\n");
    env.write("sub/.env", "SECRET=sesame\n");
    env.write("sub/.ssh/id_rsa", "sesame\n");
    env.write("sub/plain.txt", "plain\n");
    env.write("conf/settings.txt", "sesame\n");
    env.write("vendor/.git/config", "[http]\n\textraHeader = sesame\n");
    symlink("conf/settings.txt", env.project().join(".env.local")).expect("linked");
    let mv = |words: &str| json!({ "command": words });
    let read = "grep -r 'sesa[m]e' . ; tr a-z A-Z < target/a/b/sub2/plain.txt";
    // Each of them is a copy without what is hidden, which stays where it is.
    let model = ScriptedModel::new()
        .calls("bash", mv("mkdir -p target/a/b; mv sub target/a/b/sub2"))
        .calls("bash", mv("mv conf conf2"))
        .calls("bash", mv("mv vendor target/a/b/vendor"))
        .calls("bash", json!({ "command": read }))
        .says("Done.")
        .start_blocking();
    run(&mut env.task(&model, &["work", "--changes", "review"])).expect(0);
    let told = model.requests().last().expect("a request").to_string();
    assert!(!told.contains("covered there no longer"), "{told}");
    assert!(told.contains("PLAIN") && !told.contains("sesame"), "{told}");
    // Whoever continues the session has a sandbox that covered nothing before.
    let model = ScriptedModel::new()
        .calls("bash", json!({ "command": read }))
        .says("Done.")
        .start_blocking();
    run(&mut env.task(&model, &["continue", "--changes", "review", "--continue"])).expect(0);
    let told = model.requests().last().expect("a request").to_string();
    assert!(told.contains("PLAIN") && !told.contains("sesame"), "{told}");
    review(&env, &["discard"]).expect(0);
    env.assert_no_container();
}

#[test]
fn a_run_that_was_killed_is_reviewed_and_gone_on_with() {
    let Some(env) = TestBox::new() else { return };
    fill(&env);
    let before = state(&env);
    let command = format!("{CHANGE}; echo begun; sleep 600");
    let model = ScriptedModel::new()
        .calls("bash", json!({ "command": command }))
        .start_blocking();
    let task = start(&mut env.task(&model, &["change it all", "--changes", "review"]));
    box_with(&env, "renamed");
    for id in env.boxes() {
        let mounts = docker(&["inspect", "--format", "{{json .HostConfig.Mounts}}", &id]);
        assert!(
            !mounts.contains(env.project().to_str().expect("UTF-8"))
                && mounts.contains("/workspace"),
            "{mounts}"
        );
    }
    let busy = review(&env, &["diff"]).expect(5);
    assert!(
        busy.stderr.contains("is at work on the review"),
        "{}",
        busy.stderr
    );
    task.signal(Signal::SIGKILL);
    task.wait();
    env.assert_no_container();
    assert_eq!(state(&env), before);
    {
        let _alone = alone_with_gc();
        run(&mut env.podbay(&["gc"])).expect(0);
    }
    assert_eq!(volumes(&env).len(), 2, "nothing that waits is swept");
    assert!(
        review(&env, &["list"])
            .expect(0)
            .text()
            .contains("at work, or cut off")
    );
    // The session continues where it was, and sees what it changed.
    let model = ScriptedModel::new()
        .calls(
            "bash",
            json!({"command": "cat made.txt; echo more > more.txt"}),
        )
        .says("Done.")
        .start_blocking();
    let result = run(&mut env.task(&model, &["continue", "--changes", "review", "--continue"]))
        .expect(0)
        .json();
    assert!(
        model
            .requests()
            .last()
            .expect("a request")
            .to_string()
            .contains("new")
    );
    assert!(
        result["changes"]["created"]
            .to_string()
            .contains("more.txt"),
        "{result}"
    );
    let done = review(&env, &["apply"]).expect(0).text();
    assert!(
        done.contains("renamed/in.txt") && done.contains("more.txt"),
        "{done}"
    );
    assert_eq!(
        (env.read("made.txt").as_str(), volumes(&env).len()),
        ("new\n", 0)
    );
    env.assert_no_container();
}

#[test]
fn an_application_killed_at_any_moment_leaves_whole_files_and_is_finished_by_the_next() {
    let Some(env) = TestBox::new() else { return };
    let n_kills = soak::n_kills(2);
    cut_off::fill(&env);
    let old = state(&env);
    let change = &format!(
        "for f in folder*/modified*; do sed -i s/old/new/ $f; done; rm -r gone; {}",
        cut_off::MAKE
    );
    held_back(&env, change, &["--apply"]);
    let new = state(&env);
    run(&mut env.here(&["undo"])).expect(0);
    assert_eq!(state(&env), old);
    let mut n_cut_off = 0;
    for n in 0..n_kills {
        let id = held_back(&env, change, &[])["review"]
            .as_str()
            .expect("a review")
            .to_owned();
        let task = start(
            env.podbay(&["review", "apply", &id, "-C"])
                .arg(env.project()),
        );
        let there = cut_off(&env, task, &[&old, &new], || {
            // Somewhere between its first change and its last: they are few milliseconds in all.
            if n % 2 == 0 {
                within(Duration::from_secs(20), || !env.path("gone/9").exists());
            } else {
                std::thread::sleep(Duration::from_millis(u64::from(n % 40) * 50));
            }
        });
        n_cut_off += u32::from(there != old && there != new);
        let listed = review(&env, &["list"]).expect(0).text();
        if listed.contains("nothing is kept of it") {
            review(&env, &["discard", &id]).expect(0);
        } else if listed.contains(&id) {
            review(&env, &["apply", &id]).expect(0);
        }
        assert_eq!(state(&env), new, "round {n}");
        // However many turns it took.
        run(&mut env.here(&["undo", "2"])).expect(0);
        if state(&env) != old {
            // The one that was finished by somebody else was undone in its own turn.
            run(&mut env.here(&["undo", "9"])).expect(0);
        }
        assert_eq!(state(&env), old, "round {n}");
    }
    env.assert_no_container();
    // A few kills may all miss it.
    assert!(
        n_cut_off > 0 || n_kills < 20,
        "none of {n_kills} was in the middle of it"
    );
}

/// Bytes that nothing makes smaller.
pub(super) fn noise(seed: u64, n_bytes: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..n_bytes / 8)
        .flat_map(|_| next().to_le_bytes())
        .collect()
}

#[test]
fn the_model_is_asked_beside_the_first_snapshot_and_nothing_runs_before_that_is_whole() {
    let Some(env) = TestBox::new() else { return };
    for n in 1..=4 {
        env.write(&format!("large{n}"), noise(n, 60 << 20));
    }
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "echo new > made.txt"}))
        .says("Done.")
        .start_blocking();
    let task = start(&mut env.task(&model, &["work", "--changes", "review"]));
    assert!(
        within(Duration::from_secs(60), || !model.requests().is_empty()),
        "the model was not asked"
    );
    let keeper = env.keeper();
    // On a busy machine the engine cannot freeze what waits for the disk just then.
    let pause = || {
        Command::new("docker")
            .args(["pause", &keeper])
            .output()
            .is_ok_and(|done| done.status.success())
    };
    assert!(
        within(Duration::from_secs(30), pause),
        "the keeper is not paused"
    );
    let has_run = within(Duration::from_secs(2), || model.requests().len() > 1);
    docker(&["unpause", &keeper]);
    assert!(
        !has_run,
        "a command ran before it was kept how the project is, or the model was asked after it"
    );
    let result = task.wait().expect(0).json();
    assert_eq!(
        result["changes"]["created"],
        json!(["made.txt"]),
        "{result}"
    );
    review(&env, &["apply"]).expect(0);
    assert_eq!(
        (env.read("made.txt").as_str(), volumes(&env)),
        ("new\n", Vec::new())
    );
    env.assert_no_container();
}

#[test]
fn where_it_cannot_be_kept_how_the_project_is_nothing_is_changed_and_nothing_stays() {
    let Some(env) = TestBox::new() else { return };
    for n in 1..=4 {
        env.write(&format!("large{n}"), noise(n, 30 << 20));
    }
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "echo new > made.txt"}))
        .says("Done.")
        .start_blocking();
    let task = start(&mut env.task(&model, &["work", "--changes", "review"]));
    assert!(
        within(Duration::from_secs(60), || !model.requests().is_empty()),
        "the model was not asked"
    );
    // Twice: the first one that ends is begun anew.
    for _ in 0..2 {
        let keeper = env.keeper();
        docker(&["kill", &keeper]);
        assert!(
            within(Duration::from_secs(20), || !env
                .containers()
                .contains(&keeper)),
            "it is still there"
        );
    }
    let done = task.wait().expect(5).says(&[
        "how the project is could not be kept before something is changed, so nothing was",
    ]);
    let result = done.json();
    assert_eq!(
        (&result["review"], &result["changes"]["created"]),
        (&Value::Null, &json!([])),
        "{result}"
    );
    assert_eq!((model.requests().len(), volumes(&env)), (1, Vec::new()));
    assert!(!env.path("made.txt").exists());
    env.assert_no_container();
}

#[test]
fn odd_names_of_projects_are_laid_over_as_they_are() {
    let Some(env) = TestBox::new() else { return };
    for name in [
        "a:b",
        "a,upperdir=b",
        "a,ro",
        "back\\slash",
        "blank \"quote\" ü",
        "x,nosuid",
    ] {
        let folder = env.beside(name);
        std::fs::create_dir(&folder).expect("made");
        std::fs::write(folder.join("file"), "old\n").expect("written");
        for path in [&folder, &folder.join("file")] {
            TestEnv::give(path);
        }
        let model = ScriptedModel::new()
            .calls(
                "bash",
                json!({"command": "cat file; echo new > file; mount"}),
            )
            .says("Done.")
            .start_blocking();
        let mut task = env.podbay(&[
            "run",
            "--output",
            "json",
            "--model",
            "scripted",
            "--changes",
            "review",
            "--apply",
            "--endpoint",
        ]);
        let result = run(task
            .arg(model.endpoint())
            .arg("-C")
            .arg(&folder)
            .arg("work"))
        .expect(0)
        .json();
        assert_eq!(result["applied"], json!(true), "{name}: {result}");
        assert_eq!(
            std::fs::read_to_string(folder.join("file")).expect("there"),
            "new\n",
            "{name}"
        );
        let facts = std::fs::metadata(&folder).expect("there");
        let filter = format!("label=dev.podbay.project={}-{}", facts.dev(), facts.ino());
        for volume in docker(&["volume", "ls", "--quiet", "--filter", &filter]).lines() {
            docker(&["volume", "rm", volume]);
        }
    }
}

/// Two file systems, each laid over the one below: the kernel lays no third one over them.
struct Stack(Vec<PathBuf>);

impl Stack {
    fn mount(env: &TestBox) -> Self {
        let mut mounted = Self(Vec::new());
        for floor in ["one", "two"] {
            let [lower, upper, work] =
                ["lower", "upper", "work"].map(|name| env.beside(&format!("{floor}-{name}")));
            for folder in [&lower, &upper, &work] {
                std::fs::create_dir(folder).expect("made");
                TestEnv::give(folder);
            }
            let lower = mounted.0.last().cloned().unwrap_or(lower);
            let place = if floor == "one" {
                env.beside("one")
            } else {
                env.project()
            };
            std::fs::create_dir_all(&place).expect("made");
            let options = format!(
                "lowerdir={},upperdir={},workdir={}",
                lower.display(),
                upper.display(),
                work.display()
            );
            let flags = nix::mount::MsFlags::empty();
            nix::mount::mount(
                Some("overlay"),
                &place,
                Some("overlay"),
                flags,
                Some(options.as_str()),
            )
            .expect("root may");
            mounted.0.push(place);
        }
        mounted
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        for place in self.0.iter().rev() {
            let _ = nix::mount::umount2(place, nix::mount::MntFlags::MNT_DETACH);
        }
    }
}

#[test]
fn where_nothing_can_be_laid_over_a_project_it_is_copied() {
    let Some(env) = TestBox::new() else { return };
    if !is_root("a project that nothing can be laid over is copied") {
        return;
    }
    let stack = Stack::mount(&env);
    fill(&env);
    let before = state(&env);
    let model = ScriptedModel::new()
        .calls("bash", json!({ "command": CHANGE }))
        .says("Done.")
        .start_blocking();
    let result = run(&mut env.task(&model, &["change it all", "--changes", "review"]))
        .expect(0)
        .json();
    let warnings = result["warnings"].to_string();
    assert!(
        warnings.contains("copy of the whole project (6 files")
            && warnings.contains("can be laid over it"),
        "{warnings}"
    );
    assert_eq!(
        result["changes"]["deleted"],
        json!(["folder/in.txt", "gone.txt", "moved.txt"])
    );
    assert_eq!(state(&env), before);
    let shown = review(&env, &["diff"]).expect(0).text();
    assert!(
        shown.contains("+two") && !shown.contains("sesame"),
        "{shown}"
    );
    // It continues in the same copy.
    let model = ScriptedModel::new()
        .calls(
            "bash",
            json!({"command": "cat made.txt; echo more > more.txt"}),
        )
        .says("Done.")
        .start_blocking();
    let result = run(&mut env.task(&model, &["continue", "--changes", "review", "--continue"]))
        .expect(0)
        .json();
    assert!(
        result["changes"]["created"]
            .to_string()
            .contains("more.txt"),
        "{result}"
    );
    review(&env, &["apply"]).expect(0);
    assert_eq!(
        (
            env.read("kept.txt").as_str(),
            env.read("renamed/in.txt").as_str(),
            env.read("more.txt").as_str()
        ),
        ("one\ntwo\n", "in\n", "more\n")
    );
    assert_eq!(volumes(&env), Vec::<String>::new());
    env.assert_no_container();
    // By the folder that is mounted there: without it the project is another one.
    let kept = docker(&[
        "volume",
        "ls",
        "--quiet",
        "--filter",
        &format!("label=dev.podbay.project={}", env.key()),
    ]);
    kept.lines()
        .for_each(|volume| _ = docker(&["volume", "rm", volume]));
    drop(stack);
}

#[test]
fn two_runs_whose_changes_are_held_back_stand_side_by_side() {
    let Some(env) = TestBox::new() else { return };
    env.write("file", "old\n");
    let begin = |n: u32| {
        let model = ScriptedModel::new()
            .calls(
                "bash",
                json!({"command": format!("cat file; echo {n} > file; echo {n} > made{n}")}),
            )
            .says("Done.")
            .start_blocking();
        let task = start(&mut env.task(&model, &["work", "--changes", "review"]));
        (model, task)
    };
    let both = [begin(1), begin(2)];
    let ids: Vec<String> = both
        .into_iter()
        .map(|(model, task)| {
            let result = task.wait().expect(0).json();
            assert!(
                model
                    .requests()
                    .last()
                    .expect("a request")
                    .to_string()
                    .contains("old")
            );
            result["review"].as_str().expect("a review").to_owned()
        })
        .collect();
    review(&env, &["diff"])
        .expect(2)
        .says(&["several reviews wait", &ids[0], &ids[1]]);
    review(&env, &["apply", &ids[0]]).expect(0);
    assert_eq!(
        (env.read("file").as_str(), env.path("made2").exists()),
        ("1\n", false)
    );
    let done = review(&env, &["apply", &ids[1]]).expect(9).text();
    assert!(
        done.contains("file was changed by another program since") && env.path("made2").exists(),
        "{done}"
    );
    review(&env, &["discard", &ids[1]]).expect(0);
    assert_eq!(volumes(&env), Vec::<String>::new());
    env.assert_no_container();
}

#[test]
fn modes_of_folders_are_those_of_the_project_and_are_kept() {
    let Some(env) = TestBox::new() else { return };
    env.write("closed/file", "old\n");
    std::fs::set_permissions(env.path("closed"), std::fs::Permissions::from_mode(0o500))
        .expect("ours");
    let command = "chmod u+w closed && echo new > closed/file && chmod u-w closed; stat -c %a .";
    let mode = env.project().metadata().expect("there").mode() & 0o777;
    let model = ScriptedModel::new()
        .calls("bash", json!({ "command": command }))
        .says("Done.")
        .start_blocking();
    run(&mut env.task(&model, &["work", "--changes", "review", "--apply"])).expect(0);
    let told = model.requests().last().expect("a request").to_string();
    assert!(told.contains(&format!("{mode:o}")), "{told}");
    assert_eq!(
        (
            env.read("closed/file").as_str(),
            env.path("closed").metadata().expect("there").mode() & 0o777
        ),
        ("new\n", 0o500)
    );
    env.assert_no_container();
}
