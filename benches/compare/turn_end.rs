//! The end of a turn in a chat, whole: what the session changed goes into the project, and a new
//! sandbox takes over. A user who typed ahead waits for both.

use std::time::Instant;

use podbay::event::SessionId;
use podbay::event::ToolCall;
use podbay::sandbox::EndedTurn;
use serde_json::json;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use super::Outcome;
use super::place::Place;
use super::starts;
use super::table::Table;
use super::table::Times;
use super::warm::Session;
use super::warm::Warm;

const N_FILES: usize = 10_000;
const N_CHANGED: usize = 3;
/// In milliseconds.
const END_BAR: u128 = 60;
const READY_BAR: u128 = 300;

pub(super) fn rows(
    runtime: &Runtime,
    place: &Place,
    table: &mut Table,
    rounds: usize,
) -> Outcome<()> {
    let project = starts::project(place, "turn_end", N_FILES)?;
    let mounted = format!("{}:/workspace", project.display());
    let id = SessionId::random();
    let warm = runtime.block_on(Warm::start_as(place, &project, Session::ByTurn(&id)))?;
    let (mut ends, mut ready, mut peer) = (Times::default(), Times::default(), Times::default());
    let mut measured = Ok(());
    for round in 1..=rounds {
        measured = one_turn(runtime, &warm, round, &mut ends, &mut ready);
        if measured.is_err() {
            break;
        }
        peer.add(|| starts::docker_run(&mounted))?;
    }
    // Removes the volumes of the session's changes, too.
    runtime.block_on(warm.sandbox.end_by_turn());
    runtime.block_on(warm.sandbox.close());
    measured?;
    let what = format!(
        "whole end of a turn, {N_CHANGED} files changed in a project of {N_FILES}, against `docker run --rm --network none -v … true`"
    );
    table.row(&what, &ends, &peer, None);
    bar(table, &ends, END_BAR);
    let what = "from the answer to the result of a `read_file` that was typed ahead, in the next sandbox, against the same";
    table.row(what, &ready, &peer, None);
    bar(table, &ready, READY_BAR);
    Ok(())
}

fn bar(table: &mut Table, times: &Times, most_ms: u128) {
    let ms = times.at(50).as_millis();
    table.figure(
        "its median",
        &format!("{ms} ms"),
        &format!("≤ {most_ms} ms"),
        ms <= most_ms,
    );
}

fn one_turn(
    runtime: &Runtime,
    warm: &Warm,
    round: usize,
    ends: &mut Times,
    ready: &mut Times,
) -> Outcome<()> {
    let call = |name: &str, arguments: serde_json::Value| ToolCall {
        id: "1".to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_string(),
    };
    let _inside = runtime.enter();
    warm.sandbox.begin_turn("bench", round as u64, "bench");
    let names: Vec<String> = (0..N_CHANGED)
        .map(|n| format!("folder_{}/file_{}.txt", n * 20, n * 20 * starts::A_FOLDER))
        .collect();
    let command = format!("for f in {}; do echo {round} > $f; done", names.join(" "));
    runtime.block_on(warm.call(&call("bash", json!({"command": command}))))?;
    let answered = Instant::now();
    let ended = ends.add(|| runtime.block_on(warm.sandbox.end_turn(&CancellationToken::new())));
    runtime.block_on(warm.call(&call("read_file", json!({"path": names[0]}))))?;
    ready.0.push(answered.elapsed());
    match ended {
        Some(EndedTurn::Came(turn)) if turn.turn.came.changes.n == N_CHANGED as u64 => Ok(()),
        Some(EndedTurn::Came(turn)) => {
            Err(format!("{} files came of {N_CHANGED}", turn.turn.came.changes.n).into())
        }
        _ => Err("the changes of the turn did not come".into()),
    }
}
