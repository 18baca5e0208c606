//! A disk that fills up while the log is written does not end a run.

use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use serde_json::json;

use super::test_box::TestBox;
use crate::support::ScriptedModel;
use crate::support::test_env::is_root;
use crate::support::test_env::run;
use crate::support::test_env::start;

/// A file system of a few pages.
struct Tiny(PathBuf);

impl Tiny {
    fn mount(path: PathBuf) -> Self {
        std::fs::create_dir(&path).expect("made");
        let done = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=512k,mode=0700", "none"])
            .arg(&path)
            .status();
        assert!(
            done.expect("the `mount` command").success(),
            "{}",
            path.display()
        );
        Self(path)
    }

    fn fill(&self) {
        let piece = [b'x'; 4096];
        let mut file = std::fs::File::create(self.0.join("ballast")).expect("made");
        while std::io::Write::write_all(&mut file, &piece).is_ok() {}
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Tiny {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_is_warned_about_once_and_the_run_goes_on_and_is_no_success() {
    let Some(env) = TestBox::new() else { return };
    if !is_root("a disk that is full") {
        return;
    }
    let disk = Tiny::mount(env.beside("tiny"));
    let mut model = ScriptedModel::new().calls(
        "bash",
        json!({"command": "touch begun; while ! test -e go; do sleep 0.05; done"}),
    );
    for n in 0..3 {
        model = model.calls(
            "bash",
            json!({"command": format!("seq {n} 3000; touch ran{n}")}),
        );
    }
    let model = model.says("All done.").start_blocking();
    let mut command = env.task(&model, &["fill it"]);
    let started = start(command.env("PODBAY_HOME", disk.path()));
    env.wait_for("begun");
    disk.fill();
    env.write("go", "");
    let done = started.wait().expect(1);
    let result = done.json();
    assert_eq!(
        (&result["status"], &result["response"]),
        (&json!("failed"), &json!("All done."))
    );
    assert!(
        result["error"]["message"]
            .to_string()
            .contains("lacks its end")
            && result["error"]["hints"][0].is_string(),
        "{result}"
    );
    let warned: Vec<_> = result["warnings"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|one| one.to_string().contains("session log"))
        .collect();
    assert_eq!(warned.len(), 1, "{}", result["warnings"]);
    assert!(
        warned[0].to_string().contains("No space left"),
        "{}",
        warned[0]
    );
    assert!(env.path("ran2").exists());

    // What is there is whole.
    let mut command = env.podbay(&["sessions", "show"]);
    let shown = run(command.env("PODBAY_HOME", disk.path()))
        .expect(0)
        .text();
    assert!(
        shown.contains("touch begun") && !shown.contains("! line"),
        "{shown}"
    );
    std::fs::remove_file(disk.path().join("ballast")).expect("removed");
    env.assert_no_container();
}

#[test]
fn a_disk_that_is_full_from_the_start_is_an_error_with_a_remedy() {
    let Some(env) = TestBox::new() else { return };
    if !is_root("a disk that is full") {
        return;
    }
    let disk = Tiny::mount(env.beside("tiny"));
    let model = ScriptedModel::new().start_blocking();
    for path in ["sessions", "artifacts", "locks", "models", "run"] {
        std::fs::create_dir(disk.path().join(path)).expect("made");
    }
    disk.fill();
    let mut command = env.task(&model, &["look"]);
    let result = run(command.env("PODBAY_HOME", disk.path())).json();
    assert_ne!(result["exit_code"], 0);
    assert!(
        result["error"]["hints"].to_string().contains("PODBAY_HOME"),
        "{}",
        result["error"]
    );
    assert_eq!(model.requests().len(), 0);
}
