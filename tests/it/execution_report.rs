//! The execution report of a run, in each of its forms and places.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::Value;

use crate::support::test_env::Done;
use crate::support::test_env::TestEnv;
use crate::support::test_env::run;

/// A whole run where no engine is available.
fn demo(env: &TestEnv, more: &[&str]) -> Done {
    run(env
        .here(&["run", "--demo"])
        .args(more)
        .current_dir(env.project())
        .env("DOCKER_HOST", "unix:///nonexistent"))
}

#[test]
fn a_run_shows_its_report_or_writes_it_in_the_form_that_the_name_says() {
    let env = TestEnv::new();
    let done = demo(&env, &["--report"]).expect(0);
    let done = done.says(&[
        "--- EXECUTION REPORT ---",
        "## Actions Performed",
        "- <<edit_file()>> notes.py (ok, ",
        "- <<bash()>> python3 test_notes.py (failed, ",
        "## Files Modified",
        "- <<notes.py>>",
        "## Technical Summary",
        "- result: done",
        "--- END REPORT ---",
    ]);
    assert!(!done.text().contains("REPORT"), "the answer is alone there");
    assert!(
        !done.stderr.contains("## Files Deleted"),
        "no section is empty: {}",
        done.stderr
    );
    assert!(!demo(&env, &[]).expect(0).stderr.contains("REPORT"));
    let by_setting = run(env
        .here(&["run", "--demo"])
        .env("DOCKER_HOST", "unix:///nonexistent")
        .env("PODBAY_UI_REPORT", "true"));
    assert!(by_setting.expect(0).stderr.contains("--- END REPORT ---"));

    for (name, begin) in [
        ("report.md", "# Execution report of session "),
        ("report.html", "<!doctype html>"),
        ("report.json", "{\"session\":\""),
        ("report.txt", "--- EXECUTION REPORT ---"),
    ] {
        env.write(name, "what an earlier run wrote ".repeat(1000));
        let done = demo(&env, &[&format!("--report={name}")]).expect(0);
        assert!(!done.stderr.contains("EXECUTION REPORT"));
        let written = env.read(name);
        assert!(written.starts_with(begin), "{name}: {written}");
        assert!(!written.contains("an earlier run"), "{written}");
    }
    let report: Value = serde_json::from_str(&env.read("report.json")).expect("JSON");
    assert_eq!(report["modified"]["first"][0]["path"], "notes.py");
    assert_eq!(report["status"], "completed");
    assert!(report["requests"].as_u64() > Some(0), "{report}");
}

#[test]
fn the_report_of_a_session_that_is_over_is_the_one_that_its_run_showed() {
    let env = TestEnv::new();
    let done = demo(&env, &["--report"]).expect(0);
    let begin = done.stderr.find("--- EXECUTION").expect("it is shown");
    let shown = run(&mut env.podbay(&["sessions", "report", "last"])).expect(0);
    assert!(
        done.stderr[begin..].starts_with(&shown.text()),
        "{}\n\n{}",
        done.stderr,
        shown.text()
    );
    let markdown = run(&mut env.podbay(&["sessions", "report", "--format", "markdown"]));
    let markdown = markdown.expect(0).text();
    assert!(
        markdown.contains("\n## Files Modified\n\n- `notes.py`\n"),
        "{markdown}"
    );
}

/// P-18: what the agent could have made in the project leads a report nowhere else.
#[test]
fn a_report_is_written_through_no_link_of_the_project() {
    let env = TestEnv::new();
    let outside = env.home().join("profile.md");
    fs::write(&outside, "mine").expect("written");
    symlink(&outside, env.project().join("report.md")).expect("made");
    symlink(env.home(), env.project().join("out")).expect("made");
    demo(&env, &["--report=report.md"])
        .expect(1)
        .says(&["report.md"]);
    demo(&env, &["--report=out/profile.md"])
        .expect(2)
        .says(&["a link in the project leads `out/profile.md` to "]);
    assert_eq!(fs::read_to_string(&outside).expect("there"), "mine");
    demo(&env, &["--report=report"])
        .expect(2)
        .says(&["its name ends with none that is known", ".html"]);

    // Places of the user's own are taken, in the project and out of it.
    fs::create_dir(env.project().join("reports")).expect("made");
    demo(&env, &["--report=reports/a.md"]).expect(0);
    let path = env.home().join("b.md");
    demo(&env, &[&format!("--report={}", path.display())]).expect(0);
    for path in [env.project().join("reports/a.md"), path] {
        let written = fs::read_to_string(&path).expect("written");
        assert!(written.starts_with("# Execution report"), "{written}");
    }
}
