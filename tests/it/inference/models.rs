//! `podbay models`, against a server that behaves like the hub.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::hub::Hub;
use super::hub::model;
use super::hub::sha256;
use crate::doctor::diagnosis;
use crate::doctor::line;
use crate::support::test_env::TestEnv;
use crate::support::test_env::is_root;
use crate::support::test_env::run;
use crate::support::test_env::start;
use crate::support::test_env::until;

/// Large enough for two connections.
const SIZE: usize = 33 << 20;

pub(super) const NAME: &str = "qwen2.5-coder-7b";
pub(super) const FILE: &str =
    "hub/Qwen--Qwen2.5-Coder-7B-Instruct-GGUF/qwen2.5-coder-7b-instruct-q4_k_m.gguf";

pub(super) struct Case {
    pub(super) env: TestEnv,
    pub(super) hub: Hub,
    pub(super) file: Vec<u8>,
}

impl Case {
    pub(super) fn new(size: usize) -> Self {
        let file = model(size);
        Self {
            env: TestEnv::new(),
            hub: Hub::start(file.clone()),
            file,
        }
    }

    pub(super) fn models(&self, arguments: &[&str]) -> Command {
        let mut command = self.env.podbay(&["models"]);
        command
            .args(arguments)
            .env("PODBAY_INFERENCE_HUB", &self.hub.url)
            .env("PODBAY_INFERENCE_DOWNLOAD_TIMEOUT", "10s");
        command
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.env.state().join("models").join(name)
    }

    #[track_caller]
    pub(super) fn arrived(&self, path: &Path) {
        assert!(fs::read(path).expect("it has its name") == self.file);
        let (part, notes) = (
            path.with_added_extension("part"),
            path.with_added_extension("part.json"),
        );
        assert!(!part.exists() && !notes.exists());
    }
}

/// Bytes that the notes of an unfinished download promise.
fn promised(path: &Path) -> u64 {
    let notes = fs::read(path.with_added_extension("part.json")).unwrap_or_default();
    let notes: serde_json::Value = serde_json::from_slice(&notes).unwrap_or_default();
    notes["segments"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|segment| segment[2].as_u64())
        .sum()
}

#[test]
fn a_model_that_lies_in_the_users_own_folder_is_not_loaded() {
    let case = Case::new(4096);
    let own = case.env.beside("models");
    fs::create_dir(&own).expect("made");
    let path = own.join(FILE.rsplit('/').next().expect("a name"));
    fs::write(&path, &case.file).expect("written");
    let mut pull = case.models(&["pull", NAME]);
    let done = run(pull.env("PODBAY_MODELS", &own)).expect(0);
    let shown = path.to_str().expect("text");
    assert!(done.text().contains(shown), "{}", done.text());
    assert_eq!(case.hub.asked().len(), 0, "nothing was asked for");
    assert!(!case.path(FILE).exists(), "and nothing was copied");
    // Elsewhere it is loaded as ever.
    run(&mut case.models(&["pull", NAME])).expect(0);
    case.arrived(&case.path(FILE));
}

#[test]
fn a_pull_that_is_killed_three_times_loads_each_byte_about_once() {
    let case = Case::new(SIZE);
    let path = case.path(FILE);
    case.hub.manners().slowly = Some(Duration::from_millis(3));
    let mut before = 0;
    for _ in 0..3 {
        let pulling = start(&mut case.models(&["pull", NAME]));
        assert!(until(|| promised(&path) > before), "it gets further");
        pulling.signal(Signal::SIGKILL);
        assert_eq!(pulling.wait().code, 128 + 9);
        assert!(!path.exists());
        before = promised(&path);
        let info = run(&mut case.models(&["info", NAME, "--json"]))
            .expect(0)
            .json();
        assert_eq!(
            (info["state"].as_str(), info["loaded"].as_u64()),
            (Some("partial"), Some(before))
        );
    }
    case.hub.manners().slowly = None;
    let n_before = case.hub.ranges().len();
    let done = run(&mut case.models(&["pull", NAME])).expect(0);
    assert!(done.text().contains(&sha256(&case.file)), "{}", done.text());
    case.arrived(&path);
    let later = case.hub.ranges().split_off(n_before);
    assert!(
        !later.contains(&"bytes=0-17301503".to_owned()),
        "the first part continues: {later:?}"
    );

    // What is here is not loaded again, only checked.
    let n_before = case.hub.asked().len();
    run(&mut case.models(&["pull", NAME])).expect(0);
    assert_eq!(case.hub.asked().len(), n_before);
    let info = run(&mut case.models(&["info", NAME, "--json"]))
        .expect(0)
        .json();
    assert_eq!(
        (&info["state"], &info["tried"], &info["size"]),
        (&"here".into(), &true.into(), &SIZE.into())
    );
    assert_eq!(
        (&info["files"][0]["sha256"], &info["files"][0]["checked"]),
        (&sha256(&case.file).into(), &true.into())
    );
}

#[test]
fn a_file_that_was_damaged_is_loaded_again_by_a_pull() {
    let case = Case::new(100_000);
    let path = case.path(FILE);
    run(&mut case.models(&["pull", NAME])).expect(0);
    let mut damaged = case.file.clone();
    damaged[50_000] ^= 1;
    fs::write(&path, &damaged).expect("written");
    run(&mut case.models(&["pull", NAME])).expect(0).says(&[
        "warning:",
        FILE,
        "was damaged, and was loaded again",
    ]);
    case.arrived(&path);
    let done = run(&mut case.models(&["pull", NAME])).expect(0);
    assert!(!done.stderr.contains("damaged"), "{}", done.stderr);

    // And where the hub itself sends something else than it announces, nothing is kept.
    fs::write(&path, &damaged).expect("written");
    case.hub.manners().sha256 = Some(sha256(&case.file));
    case.hub.manners().file = Arc::new(damaged);
    run(&mut case.models(&["pull", NAME])).expect(6).says(&[
        "SHA-256",
        &sha256(&case.file),
        "hint:",
    ]);
    assert!(!path.exists() && !path.with_added_extension("part").exists());
}

#[test]
fn a_damaged_file_is_told_of_also_where_no_other_can_be_had() {
    let case = Case::new(100_000);
    let path = case.path(FILE);
    for (variable, value, code, words) in [
        (
            "PODBAY_INFERENCE_HUB",
            "http://127.0.0.1:9",
            6,
            "127.0.0.1:9",
        ),
        ("PODBAY_OFFLINE", "true", 2, "`offline` is set"),
    ] {
        run(&mut case.models(&["pull", NAME])).expect(0);
        let mut damaged = case.file.clone();
        damaged[50_000] ^= 1;
        fs::write(&path, &damaged).expect("written");
        let mut command = case.models(&["pull", NAME]);
        command
            .env(variable, value)
            .env("PODBAY_INFERENCE_DOWNLOAD_RETRIES", "0");
        let done = run(&mut command).expect(code).says(&[
            "damaged",
            &sha256(&damaged),
            &sha256(&case.file),
            words,
            "hint:",
        ]);
        assert_eq!(
            done.stderr
                .lines()
                .filter(|line| line.starts_with("error:"))
                .count(),
            1,
            "{}",
            done.stderr
        );
        assert!(!path.exists(), "nobody takes it for a good one");
    }
}

#[test]
fn a_pull_that_is_stopped_says_so_and_what_becomes_of_it() {
    let case = Case::new(4 << 20);
    case.hub.manners().slowly = Some(Duration::from_millis(20));
    let pulling = start(&mut case.models(&["pull", NAME]));
    assert!(until(|| promised(&case.path(FILE)) > 0));
    pulling.signal(Signal::SIGINT);
    let done = pulling.wait().expect(130).says(&[
        "error: interrupted",
        &format!("downloading the model {NAME}"),
        "the next attempt resumes there",
    ]);
    assert!(!done.stderr.contains("server"), "{}", done.stderr);
}

#[test]
fn two_pulls_of_one_model_share_one_download() {
    let case = Case::new(4 << 20);
    case.hub.manners().slowly = Some(Duration::from_millis(5));
    let first = start(&mut case.models(&["pull", NAME]));
    let path = case.path(FILE);
    assert!(until(|| path.with_added_extension("part").exists()));
    // By another name it is the same file.
    let second = start(&mut case.models(&[
        "pull",
        "hf:Qwen/Qwen2.5-Coder-7B-Instruct-GGUF/qwen2.5-coder-7b-instruct-q4_k_m.gguf",
    ]));
    first.wait().expect(0);
    second
        .wait()
        .expect(0)
        .says(&["waiting for another Podbay"]);
    case.arrived(&path);
    assert_eq!(
        case.hub
            .asked()
            .iter()
            .filter(|asked| !asked.is_hub)
            .count(),
        2,
        "the first question and the file, once"
    );
}

#[test]
fn a_model_can_be_named_by_address_and_by_path() {
    let case = Case::new(100_000);
    let url = format!("{}/some/where/m-1.gguf", case.hub.store);
    let done = run(&mut case.models(&["pull", &url]))
        .expect(0)
        .says(&["no hash was known"]);
    assert!(done.text().starts_with("m-1  "), "{}", done.text());
    let listed = run(&mut case.models(&["list", "--json"])).expect(0).json();
    let names: Vec<_> = listed["models"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|model| model["state"] == "here")
        .collect();
    assert!(names.len() == 1 && names[0]["name"] == "m-1", "{names:?}");
    // Its name is enough from now on.
    let info = run(&mut case.models(&["info", "m-1", "--json"]))
        .expect(0)
        .json();
    assert_eq!(info["files"][0]["source"], url);
    run(&mut case.models(&["rm", "m-1"])).expect(0);
    run(&mut case.models(&["info", "m-1"]))
        .expect(2)
        .says(&["there is no model `m-1`"]);

    let own = case.env.beside("own.gguf");
    fs::write(&own, &case.file).expect("written");
    let done = run(&mut case.models(&["pull", own.to_str().expect("text")])).expect(0);
    assert!(done.text().contains(&sha256(&case.file)), "{}", done.text());
    case.arrived(&case.path("local/own.gguf"));
    // Removed by its name; the user's own file stays.
    run(&mut case.models(&["rm", "own"])).expect(0);
    assert!(own.exists() && !case.path("local/own.gguf").exists());
}

#[test]
fn what_is_no_model_is_refused_with_a_remedy() {
    let case = Case::new(100_000);
    for (name, code, words) in [
        ("gpt-9", 2, "there is no model `gpt-9`"),
        ("hf:a/b", 2, "no owner, repository and file"),
        ("http://models.example/m.gguf", 2, "not encrypted"),
        ("https://models.example/", 2, "not that of a .gguf file"),
        ("./absent.gguf", 2, "no such file"),
    ] {
        run(&mut case.models(&["pull", name]))
            .expect(code)
            .says(&[words, "hint:"]);
    }
    for (status, hint) in [
        (
            "401 Unauthorized",
            "wants a token, in the variable that `inference.hub_token_env` names",
        ),
        ("404 Not Found", "spelling"),
    ] {
        case.hub.manners().status = Some(status);
        run(&mut case.models(&["pull", NAME]))
            .expect(6)
            .says(&[status, hint]);
    }
    run(case
        .models(&["pull", NAME])
        .env("PODBAY_INFERENCE_HUB", "http://models.example"))
    .expect(2)
    .says(&["inference.hub", "https://"]);
    run(case.models(&["pull", NAME]).env("PODBAY_OFFLINE", "true"))
        .expect(2)
        .says(&["`offline` is set"]);
    // Nobody is there: said soon, also where nothing was named.
    for arguments in [vec!["pull", NAME], vec!["pull"]] {
        run(case
            .models(&arguments)
            .env("PODBAY_INFERENCE_HUB", "http://127.0.0.1:9"))
        .expect(6)
        .says(&["http://127.0.0.1:9"]);
    }
}

#[test]
fn mistakes_in_ones_own_list_are_named_and_break_nothing() {
    let case = Case::new(100_000);
    let list = case.env.home().join(".config/podbay/models.toml");
    fs::create_dir_all(list.parent().expect("a folder")).expect("made");
    let mine = "[[model]]\nid = \"mine\"\nsource = { kind = \"hub\", repository = \"me/mine\", files = [\"mine.gguf\"] }\n";
    fs::write(
        &list,
        format!(
            "{mine}\n[[model]]\nid = \"bad\"\nsise = 1\nsource = {{ kind = \"url\", files = [] }}\n"
        ),
    )
    .expect("written");
    let place = format!("{}:7", list.display());
    let done = run(&mut case.models(&["list"])).expect(0).says(&[
        &place,
        "there is no key `sise`",
        "docs/guides/models.md",
    ]);
    assert!(
        done.text().contains("\nmine ") && done.text().contains(NAME),
        "{}",
        done.text()
    );
    run(&mut case.models(&["pull", "bad"]))
        .expect(2)
        .says(&["there is no model `bad`", &place]);
    // Whoever uses the list hears of it.
    run(&mut case.models(&["pull", "mine"]))
        .expect(0)
        .says(&["warning: ", &place]);
    case.arrived(&case.path("hub/me--mine/mine.gguf"));
    run(&mut case.models(&["info", "mine"]))
        .expect(0)
        .says(&[&place]);
    let mut doctor = case.env.podbay(&["doctor", "--json"]);
    let found = diagnosis(
        doctor.env("DOCKER_HOST", "unix:///nonexistent/docker.sock"),
        1,
    );
    line(
        &found,
        "settings",
        "list of models",
        "warn",
        &[&place, "there is no key `sise`"],
    );
    run(&mut case.models(&["rm", "mine"]))
        .expect(0)
        .says(&[&place]);

    // Where the name is unknown each mistake has a line of its own: one of them may be why.
    fs::write(
        &list,
        format!("{mine}\n[[model]]\nid = \"bad\"\nsise = 1\n\n[[model]]\nid = 7\n"),
    )
    .expect("written");
    let done = run(&mut case.models(&["info", "bad"])).expect(2);
    let hints: Vec<&str> = done
        .stderr
        .lines()
        .filter(|line| line.starts_with("hint: "))
        .collect();
    assert!(
        hints.len() >= 3
            && hints[0].starts_with("hint: name one of ")
            && !hints[0].contains("models.toml"),
        "{hints:?}"
    );
    assert!(
        hints[1..]
            .iter()
            .all(|hint| hint.starts_with("hint: in your own list of models: ")),
        "{hints:?}"
    );
}

#[test]
fn a_model_that_is_copied_from_this_machine_is_not_called_untried() {
    let case = Case::new(100_000);
    let (list, own) = (
        case.env.home().join(".config/podbay/models.toml"),
        case.env.beside("own.gguf"),
    );
    fs::create_dir_all(list.parent().expect("a folder")).expect("made");
    let entry = |id: &str, path: &Path| {
        format!("[[model]]\nid = \"{id}\"\nsource = {{ kind = \"path\", files = [{path:?}] }}\n")
    };
    fs::write(
        &list,
        entry("own", &own) + &entry("away", &case.env.beside("away.gguf")),
    )
    .expect("written");
    fs::write(&own, &case.file).expect("written");
    let row = |name: &str, row: &str| {
        let text = run(&mut case.models(&["info", name])).expect(0).text();
        text.lines()
            .find_map(|line| line.strip_prefix(row))
            .unwrap_or_else(|| panic!("{text}"))
            .trim()
            .to_owned()
    };
    assert_eq!(row("own", "state"), "not copied yet");
    assert_eq!(row("own", "size"), "97.7 KiB (100000 bytes)");
    assert_eq!(
        (row("away", "size"), row("away", "memory")),
        ("unknown".to_owned(), "unknown".to_owned())
    );
    let listed = run(&mut case.models(&["list"])).expect(0).text();
    assert!(
        listed
            .lines()
            .any(|line| line.starts_with("own ") && line.ends_with("not copied yet")),
        "{listed}"
    );
    run(&mut case.models(&["pull", "own"])).expect(0);
    assert_eq!(row("own", "state"), "here");

    // What is no model is said at once where that can be seen, else at the pull; it is never here.
    let (text, folder, cut) = (
        case.env.beside("text.gguf"),
        case.env.beside("folder.gguf"),
        case.env.beside("cut.gguf"),
    );
    fs::write(&text, "no model").expect("written");
    fs::create_dir(&folder).expect("made");
    fs::write(&cut, &case.file[..60]).expect("written");
    fs::write(
        &list,
        entry("text", &text) + &entry("folder", &folder) + &entry("cut", &cut),
    )
    .expect("written");
    let words = [
        "text.gguf` is not a GGUF file",
        "folder.gguf` is a folder (name the .gguf file in it)",
    ];
    let listed = run(&mut case.models(&["list"]))
        .expect(0)
        .says(&words)
        .text();
    assert!(
        !listed
            .lines()
            .any(|line| line.starts_with("text ") || line.starts_with("folder ")),
        "{listed}"
    );
    run(&mut case.models(&["pull", "text"]))
        .expect(2)
        .says(&["there is no model `text`", words[0]]);
    run(&mut case.models(&["pull", "cut"]))
        .expect(2)
        .says(&["cut.gguf` cannot be used: ", "hint: name another file"]);
    assert_eq!(row("cut", "state"), "not copied yet");
    assert_eq!(
        fs::read_dir(case.path("local"))
            .expect("made")
            .filter(|entry| {
                entry
                    .as_ref()
                    .is_ok_and(|entry| entry.file_name().to_string_lossy().starts_with("cut"))
            })
            .count(),
        0
    );

    // A list that cannot be read costs all of it, and nothing else is said.
    fs::write(&list, "[[model").expect("written");
    let mut doctor = case.env.podbay(&["doctor", "--json"]);
    let found = diagnosis(
        doctor.env("DOCKER_HOST", "unix:///nonexistent/docker.sock"),
        1,
    );
    line(
        &found,
        "settings",
        "list of models",
        "warn",
        &["none of its models is known", "correct that file"],
    );
    assert!(!found.to_string().contains("the others hold"), "{found}");
}

#[test]
fn a_disk_that_fills_up_is_said_and_the_pull_goes_on_later() {
    if !is_root("a pull onto a disk that fills up") {
        return;
    }
    let case = Case::new(48 << 20);
    let disk = case.env.beside("disk");
    fs::create_dir(&disk).expect("made");
    let mount = |size: &str| {
        let target = disk.as_path();
        nix::mount::mount(
            Some("tmpfs"),
            target,
            Some("tmpfs"),
            nix::mount::MsFlags::empty(),
            Some(size),
        )
        .expect("mounted");
        Mounted(disk.clone())
    };
    let pull = || {
        let mut command = case.models(&["pull", NAME]);
        command.env("PODBAY_HOME", &disk);
        command
    };
    // Known before a byte is loaded.
    let mounted = mount("size=40m");
    run(&mut pull()).expect(6).says(&[
        "needs 80.0 MiB on the disk, and 40.0 MiB are free: 40.0 MiB too little",
        "make room",
    ]);
    assert_eq!(case.hub.ranges(), ["bytes=0-3"]);
    drop(mounted);

    // Somebody else fills it up meanwhile.
    let mounted = mount("size=90m");
    case.hub.manners().slowly = Some(Duration::from_millis(1));
    let pulling = start(&mut pull());
    let path = disk.join("models").join(FILE);
    assert!(until(|| promised(&path) > 0));
    let mut filler = fs::File::create(disk.join("filler")).expect("made");
    let block = vec![0; 1 << 16];
    while filler.write_all(&block).is_ok() {}
    pulling
        .wait()
        .expect(6)
        .says(&["No space left on device", "make room on this disk"]);
    assert!(!path.exists());
    drop(filler);
    fs::remove_file(disk.join("filler")).expect("removed");
    case.hub.manners().slowly = None;
    run(&mut pull()).expect(0);
    case.arrived(&path);
    drop(mounted);
}

struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        // A test that failed has said so already.
        let _ = nix::mount::umount2(&self.0, nix::mount::MntFlags::MNT_DETACH);
    }
}
