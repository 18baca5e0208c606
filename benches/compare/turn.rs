//! Our own time between the model's answers, and how fast they are shown.

use std::process::Stdio;
use std::time::Duration;

use serde_json::json;

use super::Outcome;
use super::cold::of_a_run;
use super::place::Place;
use super::scripted_model::ScriptedModel;
use super::table::Table;
use super::table::Times;

/// Tokens of the long answer. A token of English is about four characters, and a server sends each
/// as an event of its own.
const N_TOKENS: usize = 200_000;
const TOKEN: &str = "word";

pub(super) fn rows(place: &Place, table: &mut Table, rounds: usize) -> Outcome<()> {
    turns(place, table, rounds)?;
    streaming(place, table)
}

/// From the last byte of an answer to the last byte of the next request: reading the calls, the
/// whole pipeline with one `read_file` in the sandbox, the log on the disk, the next request.
fn turns(place: &Place, table: &mut Table, rounds: usize) -> Outcome<()> {
    let mut script = ScriptedModel::new();
    for round in 0..rounds {
        script = script.calls(
            "read_file",
            json!({"path": "four_kb.txt", "offset": round % 60 + 1, "limit": 5}),
        );
    }
    let model = script.says("Done.").start_blocking();
    let folder = place.project.to_string_lossy().into_owned();
    let turns = (rounds + 10).to_string();
    let arguments = [
        "run",
        "-C",
        &folder,
        "--endpoint",
        &model.endpoint(),
        "--max-turns",
        &turns,
        "--output",
        "json",
        "read it all",
    ];
    let status = place
        .command(&arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    if !status.success() {
        return Err(format!("the run that was to be measured ended with {status}").into());
    }
    let ours = Times(model.pauses());
    let what = "our own time for a turn, `read_file` in the sandbox and writing the log included";
    table.figure(
        what,
        &ours.show(),
        "≤ 5 ms",
        ours.at(50) <= Duration::from_millis(5),
    );
    Ok(())
}

/// A long answer against a short one, so that the start of the program and of the sandbox is not
/// counted.
fn streaming(place: &Place, table: &mut Table) -> Outcome<()> {
    let event = format!(
        "data: {}\n\n",
        json!({"choices": [{"index": 0, "delta": {"content": TOKEN}}]})
    );
    let end = format!(
        "data: {}\n\ndata: [DONE]\n\n",
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    );
    let answer = |n: usize| ScriptedModel::new().raw_sse(&format!("{}{end}", event.repeat(n)));
    let (mut speed, mut memory) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let short = of_a_run(place, answer(10))?;
        let long = of_a_run(place, answer(N_TOKENS))?;
        let seconds = long
            .time
            .saturating_sub(short.time)
            .max(Duration::from_millis(1))
            .as_secs_f64();
        speed.push((N_TOKENS as f64 / seconds) as u64);
        memory.push(long.memory.saturating_sub(short.memory));
    }
    speed.sort_unstable();
    memory.sort_unstable();
    let (speed, grown) = (speed[1], memory[1] as f64 / 1e6);
    table.figure(
        "streamed text shown, an event for each token",
        &format!("{speed} tokens/s"),
        "≥ 20000 tokens/s",
        speed >= 20_000,
    );
    // The answer itself is kept: in the conversation, for the log and for the report.
    let text = (N_TOKENS * TOKEN.len()) as f64 / 1e6;
    let what = format!("memory that an answer of {N_TOKENS} tokens ({text:.1} MB of text) adds");
    table.figure(
        &what,
        &format!("{grown:.1} MB"),
        "flat: ≤ 10 × the text",
        grown <= 10.0 * text,
    );
    Ok(())
}
