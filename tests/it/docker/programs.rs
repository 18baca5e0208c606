//! Ordinary programs under the real profile and limits: each works, or says no with a sentence in
//! docs/bad-days.md.
//!
//! The rows are in `programs.toml`.

use std::fmt::Write;

use podbay_soak as soak;
use regex::Regex;
use serde::Deserialize;
use serde_json::json;

use super::test_box::TestBox;
use super::test_box::docker;
use crate::support::test_env::run;

#[derive(Deserialize)]
struct Table {
    row: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    image: String,
    #[serde(default)]
    soak: bool,
    run: String,
    seen: String,
    /// Words of the sentence about what is refused.
    no: Option<String>,
}

fn rows() -> Vec<Row> {
    let table: Table = toml::from_str(include_str!("programs.toml")).expect("a table of rows");
    table.row
}

/// Runs rows in one sandbox, each in a folder of its own.
#[track_caller]
fn assert_all_work<'a>(env: &TestBox, image: &str, rows: impl Iterator<Item = &'a Row>) {
    let flags = ["--image", image];
    run(env.here(&["up", "--no-model"]).args(flags)).expect(0);
    let mut problems = String::new();
    for (n, row) in rows.enumerate() {
        let command = format!("mkdir row{n}; cd row{n}; {}", row.run);
        let arguments = json!({ "command": command }).to_string();
        let done = run(env.here(&["call"]).args(flags).args(["bash", &arguments]));
        let seen = Regex::new(&row.seen).expect("a regular expression");
        if !seen.is_match(&done.text()) {
            let (name, said) = (&row.name, done.text());
            let _ = writeln!(
                problems,
                "{name}: no `{}` in: {said}{}",
                row.seen, done.stderr
            );
        }
    }
    run(&mut env.here(&["down"])).expect(0);
    assert!(problems.is_empty(), "{problems}");
}

/// Twenty programs, compilers among them, in one sandbox: 15 s.
#[test]
fn programs_of_the_workspace_image_work() {
    let Some(env) = TestBox::new() else { return };
    let rows = rows();
    let rows = rows.iter().filter(|row| row.image == "workspace");
    let whole = soak::is_whole();
    assert_all_work(
        &env,
        "podbay/workspace",
        rows.filter(|row| whole || !row.soak),
    );
}

#[test]
#[ignore = "just soak: builds an image of 2 GB from Debian's archive"]
fn programs_that_people_add_to_an_image_work() {
    const IMAGE: &str = "podbay-test/programs";
    let Some(env) = TestBox::new() else { return };
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/docker/programs");
    // Archives of a fixed day are out of date by intention.
    let options = "APT_OPTIONS=-o Acquire::Check-Valid-Until=false";
    docker(&[
        "build",
        "--quiet",
        "--build-arg",
        options,
        "--tag",
        IMAGE,
        folder,
    ]);
    let rows = rows();
    assert_all_work(
        &env,
        IMAGE,
        rows.iter().filter(|row| row.image == "programs"),
    );
}

#[test]
fn what_says_no_has_its_sentence() {
    let rows = rows();
    let page = include_str!("../../../docs/bad-days.md");
    let (_, part) = page
        .split_once("## Programs that are refused something")
        .expect("the part");
    let part = part.split("\n## ").next().unwrap_or_default();
    for row in &rows {
        if let Some(words) = &row.no {
            assert!(part.contains(words), "{}: `{words}`", row.name);
        }
    }
    let n_quick = rows
        .iter()
        .filter(|row| row.image == "workspace" && !row.soak);
    assert!(n_quick.count() >= 20 && rows.len() >= 60);
}
