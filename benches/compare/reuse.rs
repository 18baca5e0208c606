//! How much of what a session sends the real server has read before: the requests are those of the
//! real program, and what the model answers in it is a script, since a small model does as it
//! likes.

use serde_json::Value;
use serde_json::json;

use super::Outcome;
use super::model::Server;
use super::place::Place;
use super::scripted_model::ScriptedModel;
use super::table::Table;

/// Requests of the session.
const TURNS: usize = 20;

/// `native`: the server's template knows tools, and its model knows of them by it.
pub(super) async fn rows(
    place: &Place,
    server: &Server,
    native: bool,
    table: &mut Table,
) -> Outcome<()> {
    let folder = place.project.to_string_lossy().into_owned();
    let run = |model: ScriptedModel, words: &[&str]| -> Outcome<Vec<Value>> {
        let model = if native { model } else { model.without_tools() }.start_blocking();
        place.podbay(
            &[
                &[
                    "run",
                    "-C",
                    &folder,
                    "--max-turns",
                    "40",
                    "--endpoint",
                    &model.endpoint(),
                ],
                words,
            ]
            .concat(),
        )?;
        Ok(model.requests())
    };
    let session = run(script(), &["Look what is here, step by step."])?;
    let resumed = run(
        ScriptedModel::new().says("Nothing more."),
        &["--continue", "What else is there?"],
    )?;
    if session.len() != TURNS || resumed.is_empty() {
        return Err(format!(
            "the session made {} requests, and {} when it continued",
            session.len(),
            resumed.len()
        )
        .into());
    }
    let mut read: Vec<(u64, u64)> = Vec::new();
    for request in session.iter().chain(resumed.first()) {
        read.push(server.read(request).await?);
    }
    let percent = |cached: u64, before: u64| 100.0 * cached as f64 / before.max(1) as f64;
    let row = |table: &mut Table, what: &str, pairs: &[(u64, u64)], bar: f64| {
        // What the server keeps of its own answers is not counted.
        let cached: u64 = pairs.windows(2).map(|pair| pair[1].1.min(pair[0].0)).sum();
        let before: u64 = pairs[..pairs.len() - 1]
            .iter()
            .map(|(prompt, _)| prompt)
            .sum();
        let percent = percent(cached, before);
        table.figure(
            what,
            &format!("{percent:.1} %"),
            &format!("≥ {bar} %"),
            percent >= bar,
        );
    };
    let told = if native {
        "told natively"
    } else {
        "told by schema"
    };
    let what = format!(
        "prompt tokens reused, real llama-server, a scripted session of {TURNS} turns with results of tools, {told}"
    );
    row(table, &what, &read[..TURNS], 99.0);
    let what =
        format!("prompt tokens reused, the first request after that session was resumed, {told}");
    row(table, &what, &read[TURNS - 1..], 95.0);
    Ok(())
}

/// Commands whose results differ, one after the other, and an answer.
fn script() -> ScriptedModel {
    let calls = (1..TURNS).fold(ScriptedModel::new(), |model, n| {
        model.calls(
            "bash",
            json!({"command": format!("echo step {n}; seq {n} {}", n + 40)}),
        )
    });
    calls.says("That is all.")
}
