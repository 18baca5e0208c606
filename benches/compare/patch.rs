//! A patch of many files, against git in the same sandbox.

use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

use podbay::event::ToolCall;
use serde_json::json;
use tokio::runtime::Runtime;

use super::Outcome;
use super::place::Place;
use super::place::belongs_to_somebody;
use super::table::Table;
use super::table::Times;
use super::warm::Warm;

const N_FILES: usize = 100;
/// Lines of each file; the patch changes the one in the middle.
const N_LINES: usize = 40;
/// Most that a patch may take, in milliseconds.
const BAR: f64 = 50.0;

pub(super) fn rows(
    runtime: &Runtime,
    place: &Place,
    table: &mut Table,
    rounds: usize,
) -> Outcome<()> {
    let project = place.project.with_file_name("patched");
    fs::create_dir(&project)?;
    for file in 0..N_FILES {
        fs::write(project.join(format!("file_{file}.txt")), text(0))?;
    }
    for round in 0..rounds {
        fs::write(project.join(format!("{round}.diff")), diff(2 * round + 1))?;
    }
    belongs_to_somebody(&project)?;
    let warm = runtime.block_on(Warm::start(place, &project))?;
    let result = measure(runtime, &warm, table, rounds);
    runtime.block_on(warm.sandbox.close());
    result
}

fn measure(runtime: &Runtime, warm: &Warm, table: &mut Table, rounds: usize) -> Outcome<()> {
    let call = |name: &str, arguments: serde_json::Value| {
        runtime.block_on(warm.call(&ToolCall {
            id: name.to_owned(),
            name: name.to_owned(),
            arguments: arguments.to_string(),
        }))
    };
    let (mut ours, mut peer) = (Times::default(), Times::default());
    for round in 0..rounds {
        ours.add(|| call("apply_patch", json!({"patch": diff(2 * round)})))?;
        // By the clock of the sandbox, so that the shell around it is not counted.
        let command = format!(
            "s=$(date +%s%N); git apply {round}.diff || exit; e=$(date +%s%N); echo $((e - s))"
        );
        peer.0.push(Duration::from_nanos(
            call("bash", json!({"command": command}))?.trim().parse()?,
        ));
    }
    table.row("`apply_patch` of 100 files, against `git apply` in the same sandbox, which need not be all or nothing", &ours, &peer, None);
    let ms = ours.at(50).as_secs_f64() * 1000.0;
    table.figure("the same", &format!("{ms:.0} ms"), "≤ 50 ms", ms <= BAR);
    Ok(())
}

fn text(version: usize) -> String {
    let mut text = String::new();
    for line in 0..N_LINES {
        let _ = if line == N_LINES / 2 {
            writeln!(text, "version {version}")
        } else {
            writeln!(text, "line {line} of the file")
        };
    }
    text
}

/// Returns a patch that brings all files from one version to the next.
fn diff(from: usize) -> String {
    let mut text = String::new();
    let (to, at) = (from + 1, N_LINES / 2);
    for file in 0..N_FILES {
        let _ = write!(
            text,
            "--- a/file_{file}.txt\n+++ b/file_{file}.txt\n@@ -{at},3 +{at},3 @@\n line {} of the file\n",
            at - 1
        );
        let _ = write!(
            text,
            "-version {from}\n+version {to}\n line {} of the file\n",
            at + 1
        );
    }
    text
}
