//! What an agent costs that only reads: how long it takes to begin, beside a turn of the agent that
//! starts it, and what eight of them at once add to the controller's memory.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use serde_json::json;

use super::Outcome;
use super::cold::of_a_run_with;
use super::place::Place;
use super::scripted_model::ScriptedModel;
use super::table::Table;
use super::table::Times;

const N_AGENTS: usize = 8;

/// How long each agent's model takes for its last answer, so that all of them are there at once.
const WRITES: Duration = Duration::from_millis(40);

pub(super) fn rows(place: &Place, table: &mut Table, rounds: usize) -> Outcome<()> {
    begins(place, table, rounds)?;
    many(place, table)
}

fn spawn(number: usize) -> Value {
    json!({
        "agent_type": "explore",
        "description": format!("look at file {number}"),
        "task": format!("Read four_kb.txt from line {} on.", number % 60 + 1),
    })
}

fn read(number: usize) -> Value {
    json!({"path": "four_kb.txt", "offset": number % 60 + 1, "limit": 5})
}

/// From the last byte of the answer that starts an agent to the agent's first request, against a
/// turn of the same run with one `read_file`.
fn begins(place: &Place, table: &mut Table, rounds: usize) -> Outcome<()> {
    let mut script = ScriptedModel::new().slots(2, Some(0));
    for round in 0..rounds {
        script = script
            .calls("read_file", read(round))
            .calls("spawn_agent", spawn(round))
            // The agent's own.
            .calls("read_file", read(round))
            .says(&format!("Line {round} is like the others."));
    }
    let model = script.says("Done.").start_blocking();
    let folder = place.project.to_string_lossy().into_owned();
    let turns = (rounds * 4 + 10).to_string();
    let status = place
        .command(&[
            "run",
            "-C",
            &folder,
            "--endpoint",
            &model.endpoint(),
            "--max-turns",
            &turns,
            "look at it all",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    if !status.success() {
        return Err(format!("the run with agents ended with {status}").into());
    }
    let pauses = model.pauses();
    if pauses.len() != rounds * 4 {
        return Err(format!("{} requests in place of {}", pauses.len(), rounds * 4).into());
    }
    let of = |at: usize| Times(pauses.iter().skip(at).step_by(4).copied().collect());
    let (turn, begins, first_call) = (of(0), of(1), of(2));
    let more = begins.at(50).saturating_sub(turn.at(50));
    table.figure(
        &format!(
            "an agent that only reads begins: its first request after the call that starts it (a turn beside it: {})",
            turn.show()
        ),
        &begins.show(),
        "≤ 30 ms over a turn",
        more <= Duration::from_millis(30),
    );
    let what = "its first call, for which its sandbox is made, against that turn";
    table.row(what, &first_call, &turn, None);
    Ok(())
}

fn many(place: &Place, table: &mut Table) -> Outcome<()> {
    let settings = place.project.with_file_name("agents.toml");
    fs::write(&settings, format!("[agents]\nparallel = {N_AGENTS}\n"))?;
    let settings = settings.to_string_lossy().into_owned();
    let mut all = Vec::new();
    for _ in 0..3 {
        let calls = (0..N_AGENTS).map(|number| ("spawn_agent", spawn(number)));
        let mut script = ScriptedModel::new()
            .slots(N_AGENTS as u64, Some(0))
            .calls_many(calls);
        // Whose request comes first is chance; each ends with the words.
        for number in 0..N_AGENTS {
            script = script.calls("read_file", read(number));
        }
        for _ in 0..N_AGENTS {
            script = script.drips(&"word ".repeat(200), 20, WRITES);
        }
        let script = script.says("Done.");
        let more = ["--config", settings.as_str(), "--max-turns", "100"];
        all.push(of_a_run_with(place, script, &more)?.memory);
    }
    all.sort_unstable();
    let megabytes = all[all.len() / 2] as f64 / 1e6;
    table.figure(
        "controller's resident memory, at its most during a run with 8 agents at once (median of three)",
        &format!("{megabytes:.1} MB"),
        "≤ 90 MB",
        megabytes <= 90.0,
    );
    Ok(())
}
