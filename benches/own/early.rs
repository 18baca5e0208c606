//! What is gained by a call that only reads and begins while the model still writes.

use std::sync::Arc;
use std::time::Duration;

use podbay::agent;
use podbay::agent::Interrupt;
use podbay::sandbox;
use podbay::session::History;
use podbay::tools::Later;
use podbay::tools::OnChunk;
use podbay::tools::Workspace;
use podbay::wire::Call;
use podbay::wire::GrepOutput;
use podbay::wire::LeftOut;
use podbay::wire::Matches;
use podbay::wire::Output;
use podbay::wire::Written;
use serde_json::Value;
use serde_json::json;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use super::Outcome;
use super::agent::agent;
use super::scripted_model::ScriptedModel;
use super::table::Table;
use super::table::Times;

/// How long the model continues writing behind the call that reads.
const WRITES: Duration = Duration::from_millis(100);
/// How long that call takes.
const READS: Duration = Duration::from_millis(100);
const ROUNDS: usize = 15;

/// Two answers of the same pieces at the same times. In the one the call that reads is complete
/// before the model continues, in the other its last brace comes with the end of the answer, so that
/// nobody could begin it before.
pub(super) fn rows(table: &mut Table) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let (mut early, mut late) = (Times::default(), Times::default());
    for _ in 0..ROUNDS {
        turn(&runtime, &mut early, true)?;
        turn(&runtime, &mut late, false)?;
    }
    let what = format!(
        "a turn with a `grep` of {} ms behind which the model writes on for {} ms, against one whose `grep` is complete with the answer's end",
        READS.as_millis(),
        WRITES.as_millis()
    );
    table.row(&what, &early, &late, Some(0.75));
    Ok(())
}

/// Measures one task of two requests: a turn, and the last word, which comes at once.
fn turn(runtime: &Runtime, times: &mut Times, is_early: bool) -> Outcome<()> {
    let go_on = CancellationToken::new();
    let brace = more(0, "}");
    let (before, behind) = if is_early {
        (brace.as_str(), "")
    } else {
        ("", brace.as_str())
    };
    let first = begun(0, "grep", "{\"pattern\": \"x\"")
        + before
        + &begun(1, "write_file", "{\"path\": \"a.txt\", ");
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]});
    let second = more(1, "\"content\": \"one line\\n\"}")
        + behind
        + &format!("data: {end}\n\ndata: [DONE]\n\n");
    let model = ScriptedModel::new()
        .raw_sse_in_halves(&first, &go_on, &second)
        .says("Done.")
        .start_blocking();
    let sink: podbay::event::Sink = Arc::new(|_event| {});
    let options = agent::Options::default();
    let mut agent = runtime.block_on(agent(
        &model.endpoint(),
        History::default(),
        Arc::new(Slow),
        sink,
        options,
    ))?;
    let interrupt = Interrupt::new();
    let outcome = times.add(|| {
        runtime.block_on(async {
            let writes = async {
                tokio::time::sleep(WRITES).await;
                go_on.cancel();
            };
            tokio::join!(agent.run("Look, and write.", &interrupt), writes).0
        })
    });
    if outcome.n_succeeded != 2 {
        return Err(format!("the turn that was to be measured went wrong: {outcome:?}").into());
    }
    Ok(())
}

fn delta(delta: &Value) -> String {
    format!(
        "data: {}\n\n",
        json!({"choices": [{"index": 0, "delta": delta}]})
    )
}

fn begun(index: u32, name: &str, arguments: &str) -> String {
    delta(
        &json!({"tool_calls": [{"index": index, "id": format!("c{index}"), "function": {"name": name, "arguments": arguments}}]}),
    )
}

fn more(index: u32, arguments: &str) -> String {
    delta(&json!({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]}))
}

/// A sandbox in which searching takes its time and nothing else does.
struct Slow;

impl Workspace for Slow {
    fn call<'a>(
        &'a self,
        call: Call,
        _on_chunk: OnChunk<'a>,
        _cancel: &'a CancellationToken,
        _deadline: Duration,
    ) -> Later<'a, Result<Output, sandbox::Error>> {
        Box::pin(async move {
            if let Call::WriteFile(write) = call {
                let bytes = write.content.len() as u64;
                return Ok(Output::Written(Written {
                    path: write.path,
                    bytes,
                    created: true,
                    appended: false,
                    notes: Vec::new(),
                    memos: Vec::new(),
                }));
            }
            tokio::time::sleep(READS).await;
            Ok(Output::Matches(nothing()))
        })
    }
}

fn nothing() -> Matches {
    Matches {
        output: GrepOutput::Content,
        files: Vec::new(),
        n_matches: 0,
        truncated: false,
        timed_out: false,
        n_unreadable: 0,
        n_protected: 0,
        n_binary: 0,
        n_too_long: 0,
        cursor: None,
        left_out: LeftOut::default(),
        hint: None,
    }
}
