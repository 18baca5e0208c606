//! What the pipeline adds to a call: schema, policy, events and rendering.

use podbay::event::CallStatus;
use podbay::event::ToolCall;
use tokio_util::sync::CancellationToken;

use super::Outcome;
use super::ready;
use super::table::Table;
use super::table::Times;

const ROUNDS: usize = 2000;
/// Most that a call may cost, in milliseconds.
const BAR: f64 = 0.2;

pub(super) fn rows(table: &mut Table) -> Outcome<()> {
    let pipeline = ready::pipeline(ready::file())?;
    let call = ToolCall {
        id: "c1".to_owned(),
        name: "read_file".to_owned(),
        arguments: r#"{"path": "src/main.rs"}"#.to_owned(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    let cancel = CancellationToken::new();
    let mut ours = Times::default();
    for _ in 0..ROUNDS {
        let finished = ours.add(|| runtime.block_on(pipeline.run(&call, &cancel)))?;
        if finished.status != CallStatus::Ok {
            return Err(format!("the call did not succeed: {}", finished.text).into());
        }
    }
    let what = "a call through the pipeline before a sandbox that answers at once: `read_file` of 200 lines, 12.6 KB";
    table.figure(
        what,
        &ours.show(),
        "≤ 0.2 ms",
        ours.at(50).as_secs_f64() * 1000.0 <= BAR,
    );
    Ok(())
}
