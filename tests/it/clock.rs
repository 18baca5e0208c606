//! REL-09: the clock that people and network time set may jump; no deadline, lease or lock may jump
//! with it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Who reads the clock that can be set, how often, and what for. Everything else measures time with
/// one that only goes forward.
const READERS: &[(&str, usize, &str)] = &[
    ("app/doctor/mod.rs", 3, "compares it with the engine's"),
    (
        "app/gc.rs",
        1,
        "how old a session's file is, which is dated by it; at worst one is kept longer, or goes earlier, within its count",
    ),
    ("app/job.rs", 1, "when a detached command ended, to be read"),
    (
        "engine/events.rs",
        2,
        "the engine dates events by it; the moment also ticks by the other clock, for a jump in between",
    ),
    (
        "engine/kept_facts.rs",
        1,
        "how old the facts of an engine are; at worst it is asked once more, or they count longer while the same process answers",
    ),
    (
        "engine/sweep.rs",
        1,
        "the age of guests of other builds that nobody uses; at worst one is applied again",
    ),
    ("event/kind.rs", 1, "the date of an event, to be read"),
    (
        "guest/attack/resources.rs",
        1,
        "a part of a file's name; a name that is there already is refused",
    ),
    (
        "guest/disk.rs",
        2,
        "files are dated by it; the session's start also ticks by the other clock, for a jump in between",
    ),
    (
        "guest/facts.rs",
        1,
        "the session's start, for a sandbox in the place of this one",
    ),
    (
        "guest/keep/git/import_marker.rs",
        1,
        "the age of a lock that a killed import left; waited for is a bound, and the lock must still be the same file",
    ),
    (
        "guest/keep/review.rs",
        1,
        "the date of a review, to be read",
    ),
    (
        "guest/keep/snapshot.rs",
        1,
        "files are dated by it; which changed too lately to be remembered as read, at worst one is read again",
    ),
    (
        "guest/keep/undo/work.rs",
        1,
        "the date of a turn, to be read",
    ),
    (
        "llm/exchange.rs",
        1,
        "a server may name a date to come back at; the pause is bounded",
    ),
    (
        "sandbox/lock.rs",
        1,
        "the date in a lock file, to be read; the lock is the kernel's",
    ),
    (
        "session/command_record.rs",
        3,
        "when a command began, tried a host and ended, to be read",
    ),
    (
        "session/job.rs",
        2,
        "when a detached command began; at worst the record of one that has ended is forgotten too early",
    ),
    (
        "session/memory_folder.rs",
        1,
        "the date of a note; at worst another one than the oldest makes room, never the new one",
    ),
];

#[test]
fn rel_09_no_deadline_uses_a_clock_that_can_be_set() {
    let mut found = BTreeMap::new();
    count(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        "",
        &mut found,
    );
    let known: BTreeMap<String, usize> = READERS
        .iter()
        .map(|&(file, count, _)| (file.to_owned(), count))
        .collect();
    assert_eq!(
        found, known,
        "left: who reads the clock; right: who is known to, and why no jump of it does harm"
    );
}

fn count(folder: &Path, prefix: &str, found: &mut BTreeMap<String, usize>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            count(&entry.path(), &format!("{name}/"), found);
            continue;
        }
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        // What tests do is no matter.
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        let n_reads = [
            "SystemTime::now",
            "Timestamp::now",
            "Zoned::now",
            "time::now",
        ]
        .iter()
        .map(|word| text.matches(word).count())
        .sum();
        if n_reads > 0 {
            found.insert(name, n_reads);
        }
    }
}
