//! Tests of applications that are killed or run into a full disk.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::BufRead;
use std::io::BufReader;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::thread;
use std::time::Instant;

use nix::errno::Errno;

use super::*;
use crate::keep::ObjectId;
use crate::keep::swap::IS_WITHOUT_FLAGS;
use crate::keep::testing::Scene;
use crate::keep::testing::SmallDisk;
use crate::keep::testing::left;
use podbay_soak as soak;

/// Tells the child process where to work, and between which states.
const PLACE: &str = "PODBAY_TEST_KEEP_PLACE";
const STATES: &str = "PODBAY_TEST_KEEP_STATES";

/// What the child process prints when it starts, and when it ends.
const BEGINS: &str = "begins";
const ENDS: &str = "ends";

fn build(scene: &Scene) -> (ObjectId, ObjectId) {
    for n in 0..10 {
        scene.write(format!("modified/{n}"), format!("old {n}").repeat(500));
        scene.write(format!("deleted/{n}/file"), "deleted");
        scene.write(format!("turned/{n}"), "a file");
    }
    scene.write("closed/file", "1");
    scene.mode("closed", 0o555);
    let before = scene.take().id;
    scene.remove("deleted");
    for n in 0..10 {
        scene.write(format!("modified/{n}"), format!("new {n}").repeat(500));
        scene.write(format!("created/{n}/file"), "created");
        scene.remove(&format!("turned/{n}"));
        for k in 0..5 {
            scene.write(format!("turned/{n}/deep/{k}/file"), "a folder");
        }
    }
    scene.mode("closed", 0o755);
    scene.write("closed/file", "2");
    scene.mode("closed", 0o500);
    (before, scene.take().id)
}

/// The child process; without the variable it does nothing.
#[test]
fn child_process_of_the_crash_tests() {
    let (Ok(place), Ok(states)) = (env::var(PLACE), env::var(STATES)) else {
        return;
    };
    let scene = Scene::of_another(PathBuf::from(place));
    let (from, to) = states.split_once(' ').expect("two states");
    let [from, to] = [from, to].map(|id| ObjectId::parse(id).expect("a state"));
    let mut store = scene.store();
    say(BEGINS);
    apply(
        &scene.project(),
        &scene.state(),
        &mut store,
        &Scene::request(from, to),
        |_, _, _| Ok(()),
    )
    .expect("applied");
    say(ENDS);
}

#[expect(clippy::print_stdout, reason = "the first process reads it")]
fn say(word: &str) {
    println!("\n{word}");
}

#[expect(
    clippy::disallowed_methods,
    reason = "only a process of its own can be killed"
)]
fn start(scene: &Scene, from: ObjectId, to: ObjectId) -> (Child, impl Iterator<Item = String>) {
    let mut child = Command::new(env::current_exe().expect("this test"))
        .args([
            "--exact",
            "keep::apply::crash_tests::child_process_of_the_crash_tests",
            "--nocapture",
        ])
        .env(PLACE, scene.folder())
        .env(STATES, format!("{from} {to}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let lines = BufReader::new(child.stdout.take().expect("piped"))
        .lines()
        .map_while(Result::ok);
    (child, lines)
}

/// Checks that each file is as in one of the two states, none half written.
fn check_whole(scene: &Scene, one: &BTreeMap<PathBuf, String>, other: &BTreeMap<PathBuf, String>) {
    for (path, told) in scene.all() {
        let is_ours = path
            .iter()
            .any(|name| name.as_encoded_bytes().starts_with(b".podbay-"));
        // A folder is opened while an entry in it is changed.
        if is_ours || told.starts_with("folder") {
            continue;
        }
        assert!(
            [one, other]
                .into_iter()
                .any(|state| state.get(&path) == Some(&told)),
            "{path:?}: {told}"
        );
    }
    let all = scene.all();
    for turned in (0..10).map(|n| PathBuf::from(format!("turned/{n}"))) {
        let under = |state: &BTreeMap<PathBuf, String>| {
            let of_it = state.iter().filter(|(path, _)| path.starts_with(&turned));
            of_it
                .map(|(path, told)| {
                    (
                        path.clone(),
                        if told.starts_with("folder") {
                            "folder"
                        } else {
                            told
                        }
                        .to_owned(),
                    )
                })
                .collect::<Vec<_>>()
        };
        let there = under(&all);
        assert!(
            [one, other].into_iter().any(|state| under(state) == there),
            "{turned:?} is neither: {there:?}"
        );
    }
    for (path, told) in one.iter().filter(|(path, told)| {
        told.starts_with("file")
            && other
                .get(*path)
                .is_some_and(|other| other.starts_with("file"))
    }) {
        assert!(
            scene.path(path.as_os_str().as_encoded_bytes()).exists(),
            "{path:?} is in both states, and gone: {told}"
        );
    }
}

#[test]
fn a_kill_at_any_moment_leaves_whole_files_and_a_resume_finishes() {
    let scene = Scene::new();
    let (before, after) = build(&scene);
    let new = scene.all();
    scene.apply(after, before);
    let old = scene.all();
    let start_time = Instant::now();
    scene.apply(before, after);
    let whole = start_time.elapsed();
    let rounds = soak::n_kills(20);
    let mut random = soak::Random::seeded();
    let mut n_unfinished = 0;
    for n in 0..rounds {
        let (from, to, expected) = if n % 2 == 0 {
            (after, before, &old)
        } else {
            (before, after, &new)
        };
        let (mut child, mut lines) = start(&scene, from, to);
        assert!(lines.any(|line| line == BEGINS), "it begins");
        // Spread over the time that it takes, a little beyond its end.
        thread::sleep(whole.mul_f64(1.2 * random.below(1000) as f64 / 1000.0));
        child.kill().expect("killed");
        child.wait().expect("ended");
        let has_ended = lines.any(|line| line == ENDS);
        check_whole(&scene, &old, &new);
        n_unfinished += u32::from(!has_ended);
        if let Some(applied) = scene.resume() {
            assert_eq!(
                (applied.conflicts.n, applied.refused.n, &applied.stopped),
                (0, 0, &None)
            );
        } else if !has_ended {
            // It was killed before the journal was written, or after it was removed.
            scene.apply(from, to);
        }
        assert_eq!(&scene.all(), expected, "round {n}");
    }
    assert!(
        n_unfinished > soak::whole_or(rounds / 4, 0),
        "only {n_unfinished} were in the middle of it"
    );
}

fn noise(seed: u64, n_bytes: usize) -> Vec<u8> {
    (seed..)
        .flat_map(|n| *ObjectId::of(&n.to_le_bytes()).as_bytes())
        .take(n_bytes)
        .collect()
}

#[test]
fn an_apply_stopped_by_a_full_disk_is_finished_when_there_is_room() {
    let scene = Scene::new();
    let Some(_small) = SmallDisk::mount(scene.root(), "1m") else {
        return;
    };
    for n in 0..6 {
        scene.write(format!("{n}"), noise(n * 10_000, 100_000));
    }
    let before = scene.take().id;
    let old = scene.all();
    for n in 0..6 {
        scene.remove(&n.to_string());
    }
    scene.write("filler", noise(1_000_000, 700_000));
    let after = scene.take().id;
    scene.write("mine", noise(2_000_000, 200_000));
    let mut request = Scene::request(after, before);
    request.only = (0..6)
        .map(|n| BytesPath::from(n.to_string().as_str()))
        .collect();
    let applied = scene.ask(&request);
    assert_eq!(applied.stopped.as_deref(), Some("No space left on device"));
    let mut in_already: Vec<String> = scene
        .all()
        .into_keys()
        .map(|path| path.display().to_string())
        .collect();
    in_already.retain(|path| path != "mine" && path != "filler");
    let told: Vec<String> = applied
        .changed
        .first
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(told, in_already, "what is in already is told");
    for (path, told) in scene.all() {
        assert!(
            old.get(&path) == Some(&told)
                || path.to_str() == Some("mine")
                || path.to_str() == Some("filler"),
            "{path:?}"
        );
    }
    scene.remove("mine");
    scene.remove("filler");
    let applied = scene.resume().expect("it is not forgotten");
    assert_eq!((applied.stopped, applied.changed.n), (None, 6));
    assert_eq!(scene.all(), old);
}

#[test]
fn a_full_disk_leaves_paths_that_change_their_type_as_they_are() {
    for is_folder in [false, true] {
        let scene = Scene::new();
        let Some(_small) = SmallDisk::mount(scene.root(), "1m") else {
            return;
        };
        let small = if is_folder {
            "turned/deep/small"
        } else {
            "turned"
        };
        let large = if is_folder {
            "turned"
        } else {
            "turned/deep/large"
        };
        scene.write(small, "old");
        scene.write("gone", noise(0, 200_000));
        let before = scene.take().id;
        scene.remove("turned");
        scene.remove("gone");
        scene.write(large, noise(10_000, 400_000));
        let after = scene.take().id;
        let new = scene.all();
        scene.apply(after, before);
        let old = scene.all();
        scene.write("mine", noise(20_000, 700_000));
        let applied = scene.ask(&Scene::request(before, after));
        assert_eq!(applied.stopped.as_deref(), Some("No space left on device"));
        let there = |but: &[&str]| {
            scene
                .all()
                .into_iter()
                .filter(|(path, _)| !but.iter().any(|but| path.as_os_str() == *but))
                .collect::<BTreeMap<_, _>>()
        };
        let old: BTreeMap<_, _> = old
            .into_iter()
            .filter(|(path, _)| path.as_os_str() != "gone")
            .collect();
        assert_eq!(there(&["mine"]), old, "what only goes makes room before");
        // Still not half written after a resume without room.
        assert!(
            scene
                .resume()
                .expect("it is not forgotten")
                .stopped
                .is_some()
        );
        assert_eq!(there(&["mine"]), old);
        scene.remove("mine");
        assert_eq!(scene.resume().expect("it is not forgotten").stopped, None);
        assert_eq!(scene.all(), new);
    }
}

/// A file that is to become a folder and a folder that is to become a file, with the journal, and
/// the state before and after.
struct TypeChangeScene {
    scene: Scene,
    journal: Journal,
    old: BTreeMap<PathBuf, String>,
    new: BTreeMap<PathBuf, String>,
}

impl TypeChangeScene {
    fn new() -> Self {
        let scene = Scene::new();
        scene.write("a", "1");
        scene.write("c/d", "1");
        scene.write("c/e/f", "1");
        let before = scene.take().id;
        let old = scene.all();
        scene.remove("a");
        scene.remove("c");
        scene.write("a/b", "2");
        scene.write("a/g/h", "2");
        scene.write("c", "2");
        let after = scene.take().id;
        let new = scene.all();
        scene.apply(after, before);
        let wanted = wanted_changes(&scene.store(), &Scene::request(before, after)).expect("known");
        let journal = make_plan(
            &scene.project(),
            &mut scene.store(),
            &Scene::request(before, after),
            wanted,
            Outcome::default(),
            BTreeMap::new(),
        );
        let journal = journal.expect("planned");
        journal.save(&scene.state()).expect("saved");
        Self {
            scene,
            journal,
            old,
            new,
        }
    }

    fn beside(&self, path: &str, end: &str) -> String {
        let number = self
            .journal
            .changes
            .iter()
            .position(|change| change.path.as_bytes() == path.as_bytes())
            .expect("it changes");
        format!(".podbay-{}-{number}.{end}", self.journal.token)
    }

    /// The state after a kill before the exchange.
    fn ready() -> Self {
        let turned = Self::new();
        turned.scene.write(turned.beside("a", "new") + "/b", "2");
        turned.scene.write(turned.beside("a", "new") + "/g/h", "2");
        turned.scene.write(turned.beside("c", "new"), "2");
        turned
    }

    /// The state after the exchange.
    fn changed() -> Self {
        let turned = Self::ready();
        for path in ["a", "c"] {
            fs::rename(turned.scene.path(path), turned.scene.path("aside")).expect("renamed");
            fs::rename(
                turned.scene.path(turned.beside(path, "new")),
                turned.scene.path(path),
            )
            .expect("renamed");
            fs::rename(
                turned.scene.path("aside"),
                turned.scene.path(turned.beside(path, "new")),
            )
            .expect("renamed");
        }
        turned
    }

    #[track_caller]
    fn check_given_up(&self, expected: &BTreeMap<PathBuf, String>) {
        assert!(
            abandon(&self.scene.project(), &self.scene.state(), |_, _| Ok(())).expect("given up")
        );
        assert_eq!(&self.scene.all(), expected);
    }

    #[track_caller]
    fn check_finished(&self, expected: &BTreeMap<PathBuf, String>) -> ApplyOutcome {
        let applied = self.scene.resume().expect("it is not forgotten");
        assert_eq!(&self.scene.all(), expected);
        applied
    }
}

/// Half of the new entries were made ready.
fn half_ready() -> TypeChangeScene {
    let turned = TypeChangeScene::ready();
    turned.scene.remove(&(turned.beside("a", "new") + "/g/h"));
    turned.scene.write(
        turned.beside("a", "new") + "/" + &turned.beside("a/b", "part"),
        "hal",
    );
    turned.scene.write(turned.beside("c", "part"), "hal");
    turned
}

/// Half of the old entries were removed.
fn half_removed() -> TypeChangeScene {
    let turned = TypeChangeScene::changed();
    turned.scene.remove(&(turned.beside("c", "new") + "/e"));
    turned.scene.remove(&turned.beside("a", "new"));
    turned
}

/// On a file system without exchange: the old entries are gone, the new ones are not in their
/// places yet.
fn between() -> TypeChangeScene {
    let turned = TypeChangeScene::ready();
    turned.scene.remove("a");
    turned.scene.remove("c");
    turned
}

#[test]
fn an_exchange_of_folder_and_file_can_be_finished_or_given_up_after_any_kill() {
    let all = [
        TypeChangeScene::new,
        TypeChangeScene::ready,
        half_ready,
        TypeChangeScene::changed,
        half_removed,
        between,
    ];
    for (n, killed) in all.into_iter().enumerate() {
        let turned = killed();
        turned.check_given_up(if n < 3 { &turned.old } else { &turned.new });
        let turned = killed();
        assert_eq!(turned.check_finished(&turned.new).conflicts.n, 0);
    }
}

#[test]
fn without_rename_exchange_the_old_entry_is_removed_before_the_new_one_comes() {
    IS_WITHOUT_FLAGS.set(true);
    for killed in [TypeChangeScene::new, half_ready, between] {
        let turned = killed();
        assert_eq!(turned.check_finished(&turned.new).conflicts.n, 0);
    }
    IS_WITHOUT_FLAGS.set(false);
}

#[test]
fn concurrent_changes_during_an_exchange_of_folder_and_file_are_not_lost() {
    // A change before the exchange: nothing is started.
    let turned = TypeChangeScene::new();
    turned.scene.write("c/e/mine", "mine");
    let mut expected = turned.old.clone();
    expected.extend(
        turned
            .new
            .iter()
            .filter(|(path, _)| path.starts_with("a"))
            .map(|(path, told)| (path.clone(), told.clone())),
    );
    expected.insert("c/e/mine".into(), "file 644 \"mine\"".to_owned());
    let applied = turned.check_finished(&expected);
    assert_eq!(left(&applied.conflicts).len(), 4, "{:?}", applied.conflicts);
    // A change between look and exchange: the two are exchanged back.
    let turned = TypeChangeScene::changed();
    turned
        .scene
        .write(turned.beside("c", "new") + "/e/mine", "mine");
    turned.scene.write(turned.beside("a", "new"), "mine");
    let mut expected: BTreeMap<_, _> = expected
        .into_iter()
        .filter(|(path, _)| path.starts_with("c"))
        .collect();
    expected.insert("a".into(), "file 644 \"mine\"".to_owned());
    turned.check_finished(&expected);
    // A change after the exchange: it is kept and reported.
    let turned = half_removed();
    let kept = turned.beside("c", "new");
    turned.scene.write(format!("{kept}/mine"), "mine");
    let mut expected = turned.new.clone();
    expected.insert(kept.clone().into(), "folder 755".to_owned());
    expected.insert(
        format!("{kept}/mine").into(),
        "file 644 \"mine\"".to_owned(),
    );
    let applied = turned.check_finished(&expected);
    assert!(
        left(&applied.refused)[0].ends_with(&format!("is kept beside it as {kept}")),
        "{:?}",
        applied.refused
    );
}

#[test]
fn a_snapshot_that_fails_on_a_full_disk_damages_no_other_snapshot() {
    let scene = Scene::new();
    let Some(_small) = SmallDisk::mount(scene.folder().join("state"), "1m") else {
        return;
    };
    scene.write("first", noise(0, 300_000));
    let first = scene.take().id;
    scene.write("second", noise(100_000, 2_000_000));
    let refused = crate::keep::snapshot::take(
        &scene.project(),
        &scene.state(),
        &mut scene.store(),
        "cache",
    );
    assert!(
        matches!(
            &refused,
            Err(Error::State {
                source: Errno::ENOSPC,
                ..
            })
        ),
        "{refused:?}"
    );
    assert!(
        refused
            .expect_err("refused")
            .to_string()
            .contains("the disk is full")
    );
    scene.remove("second");
    assert_eq!(scene.take().id, first);
    scene.remove("first");
    let empty = scene.take().id;
    assert_eq!(scene.apply(empty, first).changed.n, 1);
    assert_eq!(
        fs::read(scene.path("first")).expect("there"),
        noise(0, 300_000)
    );
}
