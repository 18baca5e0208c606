//! A call into a sandbox that runs already.

use std::time::Duration;

use podbay::event::ToolCall;
use serde_json::json;
use tokio::runtime::Runtime;

use super::Outcome;
use super::peer::MiniSweAgent;
use super::place::run;
use super::table::Table;
use super::table::Times;
use super::warm::Warm;

pub(super) fn rows(
    runtime: &Runtime,
    warm: &Warm,
    table: &mut Table,
    rounds: usize,
) -> Outcome<()> {
    let read = ToolCall {
        id: "read".to_owned(),
        name: "read_file".to_owned(),
        arguments: r#"{"path":"four_kb.txt"}"#.to_owned(),
    };
    let command = ToolCall {
        id: "true".to_owned(),
        name: "bash".to_owned(),
        arguments: r#"{"command":"true"}"#.to_owned(),
    };
    // How long a shell of the sandbox takes for the same, by its own clock.
    let script = "s=$(date +%s%N); for n in 1 2 3 4 5; do bash -c true; done; e=$(date +%s%N); echo $(((e - s) / 5))";
    let own_loop = ToolCall {
        id: "loop".to_owned(),
        name: "bash".to_owned(),
        arguments: json!({"command": script}).to_string(),
    };
    let call = |call: &ToolCall| runtime.block_on(warm.call(call));
    for _ in 0..5 {
        call(&read)?;
        call(&command)?;
    }
    let (mut ours, mut peer) = (Times::default(), Times::default());
    for _ in 0..rounds.min(50) {
        for _ in 0..8 {
            ours.add(|| call(&read))?;
        }
        peer.add(|| {
            run(
                "docker",
                &["exec", &warm.container, "cat", "/workspace/four_kb.txt"],
            )
        })?;
    }
    table.row(
        "`read_file` of 4 KB in a running sandbox, against `docker exec … cat`",
        &ours,
        &peer,
        Some(0.01),
    );

    let (mut ours, mut peer, mut inside) = (Times::default(), Times::default(), Times::default());
    for _ in 0..rounds {
        ours.add(|| call(&command))?;
        peer.add(|| run("bash", &["-c", "true"]))?;
        inside
            .0
            .push(Duration::from_nanos(call(&own_loop)?.trim().parse()?));
    }
    table.row(
        "`bash` with `true` in a running sandbox, against `bash -c true` on the host",
        &ours,
        &peer,
        Some(2.0),
    );
    table.row(
        "the same, against `bash -c true` started by a shell in that sandbox: what the image's file system costs",
        &ours,
        &inside,
        None,
    );

    let mut other = MiniSweAgent::start()?;
    let (mut ours, mut peer) = (Times::default(), Times::default());
    for _ in 0..rounds.min(50) {
        ours.add(|| call(&command))?;
        peer.0.push(other.execute("true")?);
    }
    let what = format!(
        "the same, against a command in the Docker environment of mini-swe-agent {}",
        other.version()
    );
    table.row(&what, &ours, &peer, None);
    Ok(())
}
