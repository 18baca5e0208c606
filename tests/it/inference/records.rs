//! Models whose record, the small file beside them, is damaged.

use std::fs;
use std::path::Path;

use super::hub::sha256;
use super::models::Case;
use super::models::FILE;
use super::models::NAME;
use crate::doctor::diagnosis;
use crate::doctor::line;
use crate::support::test_env::run;

fn damage(path: &Path, record: &str) {
    assert!(path.exists(), "{}", path.display());
    fs::write(path.with_added_extension("json"), record).expect("written");
}

/// Checks that a model is listed with what is wrong with it and what helps.
#[track_caller]
fn is_told_of(case: &Case, name: &str) {
    let remedies = [
        format!("`podbay models pull {name}` repairs it"),
        format!("`podbay models rm {name}` removes it"),
    ];
    let words = [
        "warning: the model ",
        name,
        ".gguf.json` is damaged",
        &remedies[0],
        &remedies[1],
    ];
    let listed = run(&mut case.models(&["list"])).expect(0).says(&words);
    assert!(
        listed
            .text()
            .lines()
            .any(|line| line.starts_with(name) && line.ends_with("damaged")),
        "{}",
        listed.text()
    );
    let info = run(&mut case.models(&["info", name, "--json"]))
        .expect(0)
        .json();
    assert_eq!(info["state"], "damaged");
    assert!(
        info["damage"]
            .as_str()
            .is_some_and(|text| text.contains(&remedies[0])),
        "{info}"
    );
    // Who wants to use it hears the same.
    let mut doctor = case.env.podbay(&["doctor", "--json"]);
    let found = diagnosis(
        doctor
            .env("DOCKER_HOST", "unix:///nonexistent/docker.sock")
            .env("PODBAY_INFERENCE_MODEL", name),
        1,
    );
    line(
        &found,
        "model",
        "file",
        "fail",
        &[name, "is damaged", &remedies[0]],
    );
}

#[track_caller]
fn is_here(case: &Case, name: &str) {
    let info = run(&mut case.models(&["info", name, "--json"]))
        .expect(0)
        .json();
    assert_eq!(
        (&info["state"], &info["files"][0]["sha256"]),
        (&"here".into(), &sha256(&case.file).into()),
        "{info}"
    );
}

#[test]
fn a_model_whose_record_is_damaged_is_listed_and_a_pull_puts_it_right() {
    let case = Case::new(100_000);
    // One of the list.
    run(&mut case.models(&["pull", NAME])).expect(0);
    damage(&case.path(FILE), "{\"version\":1,\"model\":");
    is_told_of(&case, NAME);
    run(&mut case.models(&["pull", NAME])).expect(0);
    is_here(&case, NAME);

    // One of the hub: where it lies says where it came from, so that its bytes are checked too.
    run(&mut case.models(&["pull", "hf:me/mine/mine.gguf"])).expect(0);
    let path = case.path("hub/me--mine/mine.gguf");
    damage(&path, "{\"version\":2}");
    fs::write(&path, "GGUF and nothing of a model").expect("written");
    is_told_of(&case, "mine");
    run(&mut case.models(&["pull", "mine"])).expect(0);
    case.arrived(&path);
    is_here(&case, "mine");
}

#[test]
fn a_model_of_unknown_origin_is_believed_once_more_or_removed() {
    let case = Case::new(100_000);
    let own = case.env.beside("own.gguf");
    fs::write(&own, &case.file).expect("written");
    run(&mut case.models(&["pull", own.to_str().expect("text")])).expect(0);
    run(&mut case.models(&["pull", &format!("{}/some/where/m-1.gguf", case.hub.store)])).expect(0);
    fs::remove_file(&own).expect("removed");
    let folder = fs::read_dir(case.path("url"))
        .expect("made")
        .flatten()
        .next()
        .expect("a folder")
        .path();
    for (name, path) in [
        ("own", case.path("local/own.gguf")),
        ("m-1", folder.join("m-1.gguf")),
    ] {
        damage(&path, "\0\0\0");
        is_told_of(&case, name);
        let n_asked = case.hub.asked().len();
        run(&mut case.models(&["pull", name]))
            .expect(0)
            .says(&["no hash was known"]);
        assert_eq!(case.hub.asked().len(), n_asked, "there is nobody to ask");
        case.arrived(&path);
        is_here(&case, name);

        // What is no model any more is believed by nobody.
        damage(&path, "");
        fs::write(&path, "GGUF and nothing of a model").expect("written");
        run(&mut case.models(&["pull", name]))
            .expect(2)
            .says(&[".gguf` cannot be used", "hint:"]);
        is_told_of(&case, name);
        run(&mut case.models(&["rm", name])).expect(0);
        assert!(!path.exists() && !path.with_added_extension("json").exists());
        run(&mut case.models(&["info", name]))
            .expect(2)
            .says(&[&format!("there is no model `{name}`")]);
    }
}

/// Changes one field of a record.
fn tamper(path: &Path, key: &str, value: serde_json::Value) {
    let record = path.with_added_extension("json");
    let mut fields: serde_json::Value =
        serde_json::from_slice(&fs::read(&record).expect("a record")).expect("JSON");
    fields[key] = value;
    fs::write(record, fields.to_string()).expect("written");
}

#[test]
fn a_record_with_another_size_than_its_file_is_damaged_and_put_right() {
    let case = Case::new(100_000);
    let path = case.path("hub/me--mine/mine.gguf");
    run(&mut case.models(&["pull", "hf:me/mine/mine.gguf"])).expect(0);
    tamper(&path, "size", 5.into());
    let words = [
        "warning: the model mine",
        "tells of 5 bytes, and the file has 100000",
        "`podbay models pull mine` repairs it",
    ];
    let listed = run(&mut case.models(&["list"])).expect(0).says(&words);
    assert!(
        listed
            .text()
            .lines()
            .any(|line| line.starts_with("mine") && line.ends_with("damaged")),
        "{}",
        listed.text()
    );
    let n_asked = case.hub.asked().len();
    let done = run(&mut case.models(&["pull", "mine"])).expect(0);
    assert!(
        !done.stderr.contains("no hash was known"),
        "{}",
        done.stderr
    );
    assert_eq!(case.hub.asked().len(), n_asked, "the file is the right one");
    is_here(&case, "mine");

    // Where it is the file that is short, it is loaded again.
    fs::write(&path, &case.file[..50_000]).expect("written");
    run(&mut case.models(&["info", "mine"])).expect(0);
    run(&mut case.models(&["pull", "mine"]))
        .expect(0)
        .says(&["was damaged, and was loaded again"]);
    case.arrived(&path);
    is_here(&case, "mine");
}

#[test]
fn a_folder_in_the_place_of_a_record_is_removed_or_told_of_before_anything_is_lost() {
    let case = Case::new(100_000);
    let path = case.path(FILE);
    let record = path.with_added_extension("json");
    let blocked = || {
        run(&mut case.models(&["pull", NAME])).expect(0);
        fs::remove_file(&record).expect("a record");
        fs::create_dir(&record).expect("made");
    };
    blocked();
    run(&mut case.models(&["list"])).expect(0).says(&[
        "a folder lies at",
        FILE,
        "in the place of its record",
    ]);
    run(&mut case.models(&["pull", NAME])).expect(0);
    is_here(&case, NAME);
    blocked();
    run(&mut case.models(&["rm", NAME])).expect(0);
    assert!(!path.exists() && !record.exists());

    blocked();
    fs::write(record.join("mine"), "").expect("written");
    for command in ["pull", "rm"] {
        let words = [
            "a folder that cannot be removed",
            FILE,
            "hint: nothing was changed; move that folder away: mv '",
        ];
        run(&mut case.models(&[command, NAME]))
            .expect(6)
            .says(&words);
        assert!(path.exists() && record.join("mine").exists());
    }
}
