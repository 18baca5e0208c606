//! What a session costs that keeps how the project was, and how long it takes to find what it
//! changed.

use std::fs;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use podbay::event::SessionId;
use podbay::event::ToolCall;
use serde_json::json;
use tokio::runtime::Runtime;

use super::Outcome;
use super::place::Place;
use super::place::belongs_to_somebody;
use super::search;
use super::table::Table;
use super::table::Times;
use super::warm::Session;
use super::warm::Warm;

/// Files that the session changes in a project of 100,000.
const N_CHANGED: usize = 100;
const BAR: Duration = Duration::from_millis(1500);

pub(super) fn rows(
    runtime: &Runtime,
    place: &Place,
    table: &mut Table,
    rounds: usize,
) -> Outcome<()> {
    first_call(runtime, place, table, rounds)?;
    review(runtime, place, table)
}

/// What the first call of a session is.
struct First {
    what: &'static str,
    /// In milliseconds; `None`: no session that a model works in is so.
    bar: Option<u128>,
    name: &'static str,
    /// How long a model takes before it makes that call.
    thought: Duration,
    /// A file to hide comes before each.
    is_changing: bool,
}

const AT_ONCE: First = First {
    what: "",
    bar: None,
    name: "write_file",
    thought: Duration::ZERO,
    is_changing: false,
};

const FIRST: [First; 4] = [
    First {
        what: "one that reads, nothing to hide that was not hidden before",
        bar: Some(50),
        name: "read_file",
        ..AT_ONCE
    },
    First {
        what: "one that writes, of a model that thought for 0.3 s",
        bar: Some(50),
        thought: Duration::from_millis(300),
        ..AT_ONCE
    },
    First {
        what: "one that writes as soon as the sandbox is there, which no model does",
        ..AT_ONCE
    },
    First {
        what: "the same, a new file to hide",
        bar: Some(200),
        is_changing: true,
        ..AT_ONCE
    },
];

/// A turn is begun beside the model's thinking, and the first call that may change something waits
/// for what is kept.
fn first_call(runtime: &Runtime, place: &Place, table: &mut Table, rounds: usize) -> Outcome<()> {
    let project = place.project.with_file_name("kept");
    fs::create_dir(&project)?;
    for number in 0..10 {
        fs::write(
            project.join(format!("file_{number}.txt")),
            format!("file {number}\n"),
        )?;
    }
    belongs_to_somebody(&project)?;
    for first in FIRST {
        let (mut with, mut without) = (Times::default(), Times::default());
        for round in 0..rounds {
            for (times, is_kept) in [(&mut without, false), (&mut with, true)] {
                if first.is_changing {
                    let name = project.join(format!("{round}-{is_kept}.pem"));
                    fs::write(&name, "-----BEGIN PRIVATE KEY-----\n")?;
                    belongs_to_somebody(&project)?;
                }
                let id = SessionId::random();
                let session = if is_kept {
                    Session::Live(&id)
                } else {
                    Session::None
                };
                let arguments = match first.name {
                    "read_file" => json!({"path": "file_0.txt"}),
                    _ => json!({"path": "new.txt", "content": format!("{round} {is_kept}\n")}),
                };
                let begun = Instant::now();
                let warm = runtime.block_on(Warm::start_as(place, &project, session))?;
                thread::sleep(first.thought);
                let call = ToolCall {
                    id: "1".to_owned(),
                    name: first.name.to_owned(),
                    arguments: arguments.to_string(),
                };
                let done = runtime.block_on(warm.call(&call));
                times.0.push(begun.elapsed().saturating_sub(first.thought));
                runtime.block_on(warm.sandbox.close());
                done?;
            }
        }
        table.row(
            &format!(
                "first call of a sandbox with turns kept, against without: {}",
                first.what
            ),
            &with,
            &without,
            None,
        );
        let added = with.at(50).saturating_sub(without.at(50)).as_millis();
        match first.bar {
            Some(bar) => table.figure(
                "what that adds",
                &format!("{added} ms"),
                &format!("≤ {bar} ms"),
                added <= bar,
            ),
            None => table.note("what that adds", &format!("{added} ms"), ""),
        }
    }
    Ok(())
}

fn review(runtime: &Runtime, place: &Place, table: &mut Table) -> Outcome<()> {
    let project = place.project.with_file_name("reviewed");
    search::make(&project)?;
    let mut times = Times::default();
    for round in 0..3 {
        let id = SessionId::random();
        let warm = runtime.block_on(Warm::start_as(place, &project, Session::HeldBack(&id)))?;
        let command = format!(
            "for n in $(seq 0 {}); do echo round {round} >> folder_$n/file_$n.*; done",
            N_CHANGED - 1
        );
        let changed = runtime.block_on(warm.call(&ToolCall {
            id: "1".to_owned(),
            name: "bash".to_owned(),
            arguments: json!({"command": command}).to_string(),
        }));
        let pending = times.add(|| runtime.block_on(warm.sandbox.end_review()));
        runtime.block_on(warm.sandbox.close());
        changed?;
        match pending {
            Some(Ok(pending)) if pending.changes.n == N_CHANGED as u64 => {}
            other => {
                return Err(format!(
                    "{N_CHANGED} changes were made, and this was found: {other:?}"
                )
                .into());
            }
        }
        place.podbay(&[
            "review",
            "discard",
            "-C",
            &project.to_string_lossy(),
            id.as_str(),
        ])?;
    }
    let what = format!(
        "finding the {N_CHANGED} files of 100,000 that a session changed, the end of its sandbox included"
    );
    table.figure(
        &what,
        &format!("{} ms", times.at(50).as_millis()),
        &format!("≤ {} ms", BAR.as_millis()),
        times.at(50) <= BAR,
    );
    Ok(())
}
