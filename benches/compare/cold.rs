//! Whole processes from nothing: one call, the version, the memory of a run.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;

use super::Outcome;
use super::place::Place;
use super::place::program;
use super::place::run;
use super::scripted_model::ScriptedModel;
use super::table::Table;
use super::table::Times;

pub(super) fn rows(place: &Place, table: &mut Table, rounds: usize) -> Outcome<()> {
    call(place, table, rounds)?;
    version(table, 2 * rounds)?;
    memory(place, table)
}

fn call(place: &Place, table: &mut Table, rounds: usize) -> Outcome<()> {
    let folder = place.project.to_string_lossy().into_owned();
    let ours_once = || {
        place.podbay(&[
            "call",
            "-C",
            &folder,
            "read_file",
            r#"{"path":"four_kb.txt"}"#,
        ])
    };
    let image = podbay::sandbox::DEFAULT_IMAGE;
    let peer_once = || {
        run(
            "docker",
            &["run", "--rm", "--network", "none", image, "true"],
        )
    };
    // The first of a build brings the guest's volume along.
    ours_once()?;
    peer_once()?;
    let (mut ours, mut peer) = (Times::default(), Times::default());
    for _ in 0..rounds {
        ours.add(ours_once)?;
        peer.add(peer_once)?;
    }
    table.row(
        "whole `podbay call` of one read, cold, against `docker run --rm --network none … true`",
        &ours,
        &peer,
        Some(0.7),
    );
    Ok(())
}

fn version(table: &mut Table, rounds: usize) -> Outcome<()> {
    let mut ours = Times::default();
    for _ in 0..rounds {
        ours.add(|| run(program(), &["--version"]))?;
    }
    table.figure(
        "`podbay --version`",
        &ours.show(),
        "≤ 10 ms",
        ours.at(50) <= Duration::from_millis(10),
    );
    Ok(())
}

/// Resident memory of the controller while a run continues.
fn memory(place: &Place, table: &mut Table) -> Outcome<()> {
    let mut all = Vec::new();
    for _ in 0..3 {
        // Bringing the guest's volume along, once a build, takes more.
        place.podbay(&[
            "call",
            "-C",
            &place.project.to_string_lossy(),
            "read_file",
            r#"{"path":"four_kb.txt"}"#,
        ])?;
        let script = ScriptedModel::new()
            .calls("read_file", json!({"path": "four_kb.txt"}))
            .calls("bash", json!({"command": "seq 200000; sleep 1"}))
            .says(&"word ".repeat(4000));
        all.push(of_a_run(place, script)?.memory);
    }
    all.sort_unstable();
    let megabytes = all[all.len() / 2] as f64 / 1e6;
    let what = "controller's resident memory, at its most during a run (median of three)";
    table.figure(
        what,
        &format!("{megabytes:.1} MB"),
        "≤ 40 MB",
        megabytes <= 40.0,
    );
    Ok(())
}

/// What a whole run took.
pub(super) struct Run {
    /// Bytes that were resident at the most.
    pub(super) memory: u64,
    pub(super) time: Duration,
}

/// Runs a script to its end, its words going to nobody.
pub(super) fn of_a_run(place: &Place, script: ScriptedModel) -> Outcome<Run> {
    of_a_run_with(place, script, &[])
}

/// The same, with these arguments more.
pub(super) fn of_a_run_with(place: &Place, script: ScriptedModel, more: &[&str]) -> Outcome<Run> {
    let model = script.start_blocking();
    let folder = place.project.to_string_lossy().into_owned();
    let begun = std::time::Instant::now();
    let mut child = place
        .command(&[
            "run",
            "-C",
            &folder,
            "--endpoint",
            &model.endpoint(),
            "read and count",
        ])
        .args(more)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let mut memory = 0;
    let status = loop {
        // The high water mark is the kernel's own; it can be read until the process has ended.
        memory = memory.max(high_water_mark(child.id()).unwrap_or(0));
        if let Some(status) = child.try_wait()? {
            break status;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    if !status.success() {
        return Err(format!("the run that was to be measured ended with {status}").into());
    }
    Ok(Run {
        memory,
        time: begun.elapsed(),
    })
}

pub(super) fn high_water_mark(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(
        line.trim()
            .trim_end_matches("kB")
            .trim()
            .parse::<u64>()
            .ok()?
            * 1024,
    )
}
