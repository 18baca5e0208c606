//! A session's log as somebody may have left it: reading, showing and repairing never panic, what
//! was repaired reads, and whoever goes on with it leaves no call without an end.
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use podbay::event::Event;
use podbay::event::Kind;
use podbay::session;
use podbay::session::OpenCall;
use podbay::session::ResumeState;

static FILE: LazyLock<PathBuf> = LazyLock::new(|| {
    std::env::temp_dir().join(format!("podbay-fuzz-{}.jsonl", std::process::id()))
});

fuzz_target!(|data: &[u8]| {
    fs::write(&*FILE, data).expect("the temp folder can be written");
    let before = session::read(&FILE);
    if let Ok(records) = &before {
        let _ = session::show(records);
        let mut events = records.events.clone();
        let ends: Vec<Kind> = ResumeState::of(&events)
            .open
            .iter()
            .map(OpenCall::close)
            .collect();
        events.extend(ends.into_iter().map(Event::now));
        assert!(
            ResumeState::of(&events).open.is_empty(),
            "what was closed is open again"
        );
    }
    let repaired = session::repair_tail(&FILE);
    let after = session::read(&FILE);
    if before.is_ok() && repaired.is_ok() {
        assert!(
            after.is_ok(),
            "a repair must not lose a log that could be read"
        );
    }
});
