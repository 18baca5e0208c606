//! A session's log as somebody may have left it: reading, showing and repairing never panic, and what was repaired reads.
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use podbay::session;

static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("podbay-fuzz-{}.jsonl", std::process::id())));

fuzz_target!(|data: &[u8]| {
    fs::write(&*FILE, data).expect("the temp folder can be written");
    let before = session::read(&FILE);
    if let Ok(records) = &before {
        let _ = session::show(records);
    }
    let repaired = session::repair_tail(&FILE);
    let after = session::read(&FILE);
    if before.is_ok() && repaired.is_ok() {
        assert!(after.is_ok(), "a repair must not lose a log that could be read");
    }
});
