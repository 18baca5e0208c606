//! How long it takes to continue a long session.

use std::fs;
use std::time::Duration;

use podbay::agent::Conversation;
use podbay::event::CallStatus;
use podbay::event::Event;
use podbay::event::Kind;
use podbay::event::SessionId;
use podbay::event::ToolCall;
use podbay::event::ToolMode;
use podbay::event::Usage;
use podbay::llm::Prompt;
use podbay::session;
use podbay::session::Log;
use podbay::session::Options;
use podbay::session::ResumeState;
use podbay::session::State;

use super::Outcome;
use super::table::Table;
use super::table::Times;

/// Bytes of the log.
const SIZE: u64 = 10_000_000;
/// Bytes of one result: what a page of a file or a test's output has.
const RESULT: usize = 8000;
const ROUNDS: usize = 15;

pub(super) fn rows(table: &mut Table) -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let state = State::open(&folder.path().join("state"))?;
    let path = write(&state)?;
    let size = fs::metadata(&path)?.len();
    let (mut ours, mut peer) = (Times::default(), Times::default());
    let mut n_messages = 0;
    for _ in 0..ROUNDS {
        n_messages = ours.add(|| resume(&state, &path))?;
        peer.add(|| fs::read(&path).map(|bytes| bytes.len()))?;
    }
    let what = format!(
        "continuing with a session of {:.1} MB and {n_messages} messages, against reading the file",
        size as f64 / 1e6
    );
    table.row(&what, &ours, &peer, None);
    table.figure(
        "the same",
        &format!("{} ms", ours.at(50).as_millis()),
        "≤ 300 ms",
        ours.at(50) <= Duration::from_millis(300),
    );
    Ok(())
}

/// All that `--continue` does with the log: it is looked at before it is opened, and the
/// conversation is made as it was sent.
fn resume(state: &State, path: &std::path::Path) -> Outcome<usize> {
    let before = session::read(path)?;
    let _status = ResumeState::of(&before.events).status;
    let (_log, records, _repair) = Log::resume(state, path, &Options::default())?;
    let past = ResumeState::of(&records.events);
    let conversation = Conversation::resume(
        Prompt::new("You work.", &[], ToolMode::Native),
        past.history,
    );
    Ok(conversation.history().messages().len())
}

/// Writes a session of many calls.
fn write(state: &State) -> Outcome<std::path::PathBuf> {
    let session = SessionId::random();
    let header = Kind::SessionStarted {
        version: session::VERSION,
        session,
        podbay: "0".to_owned(),
        project: "/p".to_owned(),
        mode: "auto".to_owned(),
        task: None,
    };
    let mut log = Log::create(state, &Event::now(header), &Options::default(), None)?;
    let line = "pub(crate) fn name(&self) -> &str { self.names.first().map_or(\"\", String::as_str) } // \u{e9}\t\n";
    let result = line.repeat(RESULT / line.len());
    log.append(&Event::now(Kind::UserMessage {
        text: "Read all of it.".to_owned(),
        images: 0,
    }))?;
    let mut n_bytes = 0;
    let mut number = 0;
    while n_bytes < SIZE {
        let call = ToolCall {
            id: format!("call_{number}"),
            name: "read_file".to_owned(),
            arguments: format!("{{\"path\":\"{number}.rs\"}}"),
        };
        let answer = Kind::AssistantMessage {
            text: "I read on.".to_owned(),
            thinking: "The next one.".to_owned(),
            calls: vec![call.clone()],
            raw: None,
            usage: Usage::default(),
            interrupted: false,
            cut: false,
            duration_ms: 1,
        };
        let started = Kind::CallStarted {
            call: call.id.clone(),
            name: call.name.clone(),
            arguments: call.arguments,
        };
        let finished = Kind::CallFinished {
            call: call.id,
            name: call.name,
            status: CallStatus::Ok,
            result: result.clone(),
            artifact: None,
            duration_ms: 1,
            seen: vec![],
        };
        for kind in [Kind::ModelAsked, answer, started, finished] {
            log.append(&Event::now(kind))?;
        }
        n_bytes = fs::metadata(log.path())?.len();
        number += 1;
    }
    log.sync()?;
    Ok(log.path().to_owned())
}
