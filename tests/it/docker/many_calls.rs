//! Thousands of calls in one session: neither the engine nor the controller keeps anything of a
//! call that is over.

use podbay_soak as soak;
use serde_json::Value;
use serde_json::json;

use super::inspect::inspect;
use super::test_box::TestBox;
use crate::support::ScriptedModel;
use crate::support::test_env::start;
use crate::support::test_env::within;

/// Calls of one turn.
const AT_ONCE: usize = 24;
/// Turns of them before the first look, and between it and the second.
const BEFORE: usize = 8;
const BETWEEN: usize = 84;
/// The same in `cargo test`. A summary of what was said takes one answer of the script's; with this
/// number it is none of the two looks.
const BETWEEN_IN_PART: usize = 30;

/// What a controller holds.
#[derive(Debug)]
struct Held {
    descriptors: usize,
    threads: usize,
    /// Memory that is its own, in KiB: what is only mapped from its program does not count.
    memory: u64,
}

impl Held {
    fn of(pid: u32) -> Self {
        let entries = |name: &str| {
            std::fs::read_dir(format!("/proc/{pid}/{name}"))
                .expect("it runs")
                .count()
        };
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
        let anonymous = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"))
            .expect("a line");
        let memory = anonymous
            .trim()
            .trim_end_matches(" kB")
            .parse()
            .expect("a number");
        Self {
            descriptors: entries("fd"),
            threads: entries("task"),
            memory,
        }
    }
}

#[test]
fn r_14_thousands_of_calls_leave_engine_and_controller_as_they_were() {
    let Some(env) = TestBox::new() else { return };
    env.write("file", "content\n");
    let turn = |number: usize| {
        (0..AT_ONCE).map(move |at| match at % 4 {
            0 => ("bash", json!({"command": format!("echo {number}.{at}")})),
            1 => (
                "read_file",
                json!({"path": "file", "offset": 1, "limit": number * AT_ONCE + at + 1}),
            ),
            2 => ("grep", json!({"pattern": format!("{number}x{at}")})),
            _ => (
                "list_directory",
                json!({"path": ".", "max_entries": number * AT_ONCE + at + 1}),
            ),
        })
    };
    let between = soak::whole_or(BETWEEN, BETWEEN_IN_PART);
    let look = |name: &str| {
        (
            "bash",
            json!({"command": format!("touch {name}; while ! test -e after-{name}; do sleep 0.02; done")}),
        )
    };
    let model = (0..BEFORE).fold(ScriptedModel::new(), |model, number| {
        model.calls_many(turn(number))
    });
    let model = model.calls_many([look("first")]);
    let model =
        (BEFORE..BEFORE + between).fold(model, |model, number| model.calls_many(turn(number)));
    let model = model
        .calls_many([look("second")])
        .says("Done.")
        .start_blocking();
    let started = start(env.task(&model, &["work"]).args(["--max-turns", "1000"]));
    let mut held = Vec::new();
    for name in ["first", "second"] {
        let patience = std::time::Duration::from_mins(3);
        assert!(
            within(patience, || env.path(name).exists()),
            "{name} did not appear"
        );
        held.push(Held::of(started.pid()));
        let container = inspect(&env.container());
        assert_eq!(
            container["ExecIDs"],
            Value::Null,
            "not one call is an exec of the engine's"
        );
        env.write(&format!("after-{name}"), "");
    }
    let report = started.wait().expect(0).json();
    assert!(
        report["tool_calls"]
            .as_u64()
            .is_some_and(|calls| calls >= soak::whole_or(2000, 800)),
        "{report}"
    );
    let [first, second] = &held[..] else {
        panic!("{held:?}")
    };
    assert!(
        second.descriptors <= first.descriptors + 2 && second.threads <= first.threads + 4,
        "{held:?}"
    );
    // The conversation itself is kept: some hundred bytes a call, a few times over while a request
    // is written.
    assert!(second.memory <= first.memory + 24 * 1024, "{held:?}");
    env.assert_no_container();
}
