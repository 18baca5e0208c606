//! Our own time for a turn where much was said before.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use podbay::agent;
use podbay::agent::Interrupt;
use podbay::event::Event;
use podbay::event::Kind;
use podbay::event::SessionId;
use podbay::event::ToolCall;
use podbay::llm::Message;
use podbay::sandbox;
use podbay::session;
use podbay::session::History;
use podbay::session::Log;
use podbay::session::State;
use podbay::tools::Later;
use podbay::tools::OnChunk;
use podbay::tools::Workspace;
use podbay::wire::Call;
use podbay::wire::Output;
use podbay::wire::Written;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::Outcome;
use super::agent::agent;
use super::scripted_model::ScriptedModel;
use super::table::Table;
use super::table::Times;

/// Messages that stand there when it is measured.
const MESSAGES: usize = 200;
/// Bytes of each result among them.
const RESULT: usize = 2000;
const TURNS: u32 = 60;

/// From the last byte of an answer to the last byte of the next request. The sandbox answers at
/// once, so that nothing else is measured.
pub(super) fn rows(table: &mut Table) -> Outcome<()> {
    let mut script = ScriptedModel::new().context(1_000_000);
    for turn in 0..TURNS {
        script = script.calls(
            "write_file",
            json!({"path": format!("{turn}.txt"), "content": "one line\n"}),
        );
    }
    let model = script.says("Done.").start_blocking();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let folder = tempfile::tempdir()?;
    let outcome = runtime.block_on(work(
        &State::open(&folder.path().join("state"))?,
        &model.endpoint(),
    ))?;
    if outcome.tool_calls != TURNS {
        return Err(format!(
            "the run that was to be measured ended after {} calls",
            outcome.tool_calls
        )
        .into());
    }
    let ours = Times(model.pauses());
    let what = format!(
        "our own time for a turn behind {MESSAGES} messages of {} kB, writing the log included",
        MESSAGES * RESULT / 2000
    );
    table.figure(
        &what,
        &ours.show(),
        "≤ 5 ms",
        ours.at(50) <= Duration::from_millis(5),
    );
    Ok(())
}

fn history() -> History {
    let mut history = History::default();
    history.say("Read all of it.");
    for number in 0..MESSAGES / 2 {
        let call = ToolCall {
            id: format!("old_{number}"),
            name: "read_file".to_owned(),
            arguments: "{\"path\":\"a.rs\"}".to_owned(),
        };
        let (id, name) = (call.id.clone(), call.name.clone());
        history.push(Message::Assistant {
            text: "I read on.".to_owned(),
            thinking: String::new(),
            calls: vec![call],
            raw: None,
        });
        let text = "let line = \"of a file\";\n".repeat(RESULT / 24);
        history.push(Message::ToolResult {
            call: id,
            name,
            text,
            is_error: false,
        });
        history.asked();
    }
    history
}

async fn work(state: &State, endpoint: &str) -> Outcome<agent::Outcome> {
    let header = Kind::SessionStarted {
        version: session::VERSION,
        session: SessionId::random(),
        podbay: "0".to_owned(),
        project: "/p".to_owned(),
        mode: "auto".to_owned(),
        task: None,
    };
    let log = Mutex::new(Log::create(
        state,
        &Event::now(header),
        &session::Options::default(),
        None,
    )?);
    let sink: podbay::event::Sink = Arc::new(move |event: Event| {
        let mut log = log.lock().expect("nothing panics while it holds this lock");
        let ends_turn = matches!(event.kind, Kind::AssistantMessage { .. });
        let written = log
            .append(&event)
            .and_then(|()| if ends_turn { log.sync() } else { Ok(()) });
        written.expect("the temp folder can be written");
    });
    let options = agent::Options {
        max_turns: TURNS + 10,
        ..agent::Options::default()
    };
    let mut agent = agent(endpoint, history(), Arc::new(AtOnce), sink, options).await?;
    Ok(agent.run("Continue.", &Interrupt::new()).await)
}

/// A sandbox that has done everything already.
struct AtOnce;

impl Workspace for AtOnce {
    fn call<'a>(
        &'a self,
        call: Call,
        _on_chunk: OnChunk<'a>,
        _cancel: &'a CancellationToken,
        _deadline: Duration,
    ) -> Later<'a, Result<Output, sandbox::Error>> {
        let Call::WriteFile(write) = call else {
            unreachable!("the script only writes files")
        };
        let bytes = write.content.len() as u64;
        let written = Written {
            path: write.path,
            bytes,
            created: true,
            appended: false,
            notes: Vec::new(),
            memos: Vec::new(),
        };
        Box::pin(std::future::ready(Ok(Output::Written(written))))
    }
}
