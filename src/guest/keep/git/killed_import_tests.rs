//! Tests of an import that is killed with all of its processes, as at the end of its container.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Child;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use nix::sys::signal::Signal;
use nix::sys::signal::kill;
use nix::unistd::Pid;

use super::many_refs_tests::give;
use super::sample::Sample;
use super::sample::SampleSession;
use super::sample::fingerprint;
use super::sample::import_at;
use crate::process_tree;
use podbay_soak as soak;
use podbay_wire::keep::ImportedGit;

/// Tells the child process where to work.
const PLACE: &str = "PODBAY_TEST_IMPORT";
const NAME: &str = "keep::git::killed_import_tests::a_killed_import_is_finished_by_the_next";

#[test]
fn a_killed_import_is_finished_by_the_next() {
    if let Some(place) = std::env::var_os(PLACE) {
        import_at(Path::new(&place), "project/.git");
        return;
    }
    let sample = left_by_a_session();
    let begun = Instant::now();
    assert!(!end_after(start(&sample), None));
    let takes = begun.elapsed();
    let rounds = soak::n_kills(4);
    let mut n_killed = 0;
    let mut whole = None;
    for round in 0..rounds {
        let sample = left_by_a_session();
        if end_after(start(&sample), Some(takes * round / rounds)) {
            n_killed += 1;
        }
        let imported = sample.import();
        check(&sample, &imported);
        assert_eq!(sample.import(), imported);
        // They differ in times only.
        let names: Vec<String> = imported.repositories[0]
            .moved
            .iter()
            .map(|moved| moved.name.to_text())
            .collect();
        assert_eq!(whole.get_or_insert_with(|| names.clone()), &names);
    }
    assert!(
        n_killed > soak::whole_or(rounds / 4, 0),
        "only {n_killed} were killed before they were done"
    );
}

fn left_by_a_session() -> Sample {
    let sample = Sample::new();
    sample.commit("a", "1\n");
    sample.write("b", "person");
    sample.git(&["add", "b"]);
    let session = SampleSession::of(sample);
    session.sample.write("c", "1\n");
    session.git(&["add", "c"]);
    session.git(&["commit", "-q", "-m", "c", "--", "c"]);
    session.git(&["branch", "deep/other"]);
    session.git(&["tag", "v1"]);
    give(
        &session.sample,
        "update-ref --stdin",
        &(0..60)
            .map(|n| format!("create refs/heads/many/{n:02} HEAD\n"))
            .collect::<String>(),
    );
    session.git(&["checkout", "-q", "-b", "new"]);
    session.sample.write("c", "stashed");
    session.git(&["stash", "-q", "--", "c"]);
    session.end()
}

#[track_caller]
fn check(sample: &Sample, imported: &ImportedGit) {
    assert!(imported.is_whole(), "{imported:?}");
    sample.git(&["fsck", "--strict", "--no-dangling"]);
    assert_eq!(
        sample.git(&["status", "--porcelain", "--branch"]),
        "## new\nA  b\n"
    );
    assert_eq!(sample.git(&["log", "--format=%s", "main"]), "c\na\n");
    assert_eq!(sample.git(&["stash", "list"]).lines().count(), 1);
    assert_eq!(sample.git(&["for-each-ref", "refs/podbay"]), "");
    let is_left = |path: &str| path.strip_suffix(".lock").is_some() || path.contains("/tmp_");
    let left: Vec<_> = fingerprint(&sample.path(".git"))
        .into_keys()
        .filter(|path| is_left(&path.to_string_lossy()))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    // The user continues.
    sample.git(&["commit", "-q", "-m", "b"]);
    sample.git(&["reset", "-q", "--soft", "HEAD~1"]);
}

#[expect(clippy::disallowed_methods, reason = "the test starts itself")]
fn start(sample: &Sample) -> Child {
    let program = std::env::current_exe().expect("this test");
    std::process::Command::new(program)
        .args(["--exact", NAME])
        .env(PLACE, sample.beside(""))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("started")
}

/// Kills a process and its children after a delay from the start of its import, or never; returns
/// whether it was still running.
fn end_after(mut child: Child, delay: Option<Duration>) -> bool {
    let pid = child.id() as i32;
    // Until then nothing can be left behind.
    while process_tree::children(pid).is_empty() && child.try_wait().expect("asked").is_none() {
        std::thread::sleep(Duration::from_micros(200));
    }
    match delay {
        Some(delay) => std::thread::sleep(delay),
        None => drop(child.wait().expect("waited")),
    }
    // Stopped processes start no others, once that is seen.
    let _ = kill(Pid::from_raw(pid), Signal::SIGSTOP);
    let started = process_tree::below(vec![pid]);
    for one in &started {
        let _ = kill(Pid::from_raw(*one), Signal::SIGKILL);
    }
    let _ = child.kill();
    let was_killed = child.wait().expect("waited").signal() == Some(Signal::SIGKILL as i32);
    for one in started {
        while std::fs::metadata(format!("/proc/{one}")).is_ok() && !is_dead(one) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    was_killed
}

/// It may stay a zombie without a parent that waits for it.
fn is_dead(pid: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    status
        .rsplit_once(')')
        .is_none_or(|(_, rest)| rest.trim_start().starts_with('Z'))
}
