//! Our own code alone, without a sandbox and without a model: reading calls in text, going on with a long session.

use std::fmt::Write as _;
use std::fs;
use std::hint::black_box;
use std::time::Duration;
use std::time::Instant;

use podbay::agent::Conversation;
use podbay::event::ToolMode;
use podbay::llm::Prompt;
use podbay::llm::ToolSpec;
use podbay::llm::text;
use podbay::session;
use podbay::session::Log;
use podbay::session::Past;
use podbay::session::State;
use podbay::tools;
use podbay::tools::Catalogue;
use serde_json::json;

use super::Outcome;
use super::table::Table;
use super::table::Times;

pub(super) fn rows(table: &mut Table, rounds: usize) -> Outcome<()> {
    parser(table, rounds)?;
    resuming(table, rounds)
}

fn specs() -> Vec<ToolSpec> {
    let spec = |tool: &tools::Tool| ToolSpec {
        name: tool.name.to_owned(),
        description: tool.description.to_owned(),
        parameters: tool.parameters.clone(),
    };
    Catalogue::new(&tools::Options::default()).tools().iter().map(spec).collect()
}

/// Ordinary text, in which calls are looked for and none is found.
fn parser(table: &mut Table, rounds: usize) -> Outcome<()> {
    let sentence = "The function reads a line, and if x < 3 it returns `None`; otherwise it goes on as {before} and says why.\n";
    let prose = sentence.repeat((8 << 20) / sentence.len());
    let known = text::Tools::new(&specs());
    let mut times = Times::default();
    for _ in 0..rounds {
        let parsed = times.add(|| black_box(text::parse(black_box(&prose), &known, None)));
        if parsed.content != prose || !parsed.calls.is_empty() {
            return Err("the parser changed ordinary text".into());
        }
    }
    let speed = prose.len() as f64 / 1e6 / times.at(50).as_secs_f64();
    table.figure("calls looked for in ordinary text", &format!("{speed:.0} MB/s"), "≥ 100 MB/s", speed >= 100.0);
    Ok(())
}

/// What `--resume` does before it asks the model: the log checked and read, its conversation written anew.
fn resuming(table: &mut Table, rounds: usize) -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let state = State::open(folder.path())?;
    let path = state.sessions().join("2026-11-22_abcdefghjkmn.jsonl");
    let (log, n_calls) = long_log()?;
    fs::write(&path, &log)?;
    let mut times = Times::default();
    for _ in 0..rounds {
        let begun = Instant::now();
        let past = Past::of(&session::read(&path)?.events);
        drop(past);
        let (log, records, repair) = Log::resume(&state, &path, &session::Options::default())?;
        let past = Past::of(&records.events);
        let beginning = past.beginning.as_ref().ok_or("the log has no beginning")?;
        let prompt = Prompt::new(&beginning.system, &specs(), beginning.mode);
        let head = Conversation::over(prompt, past.history.clone()).prompt().head();
        times.0.push(begun.elapsed());
        if repair.is_some() || !records.problems.is_empty() || head.matches("\"role\":\"tool\"").count() != n_calls {
            return Err(format!("the log was not read whole: {:?}", records.problems.first()).into());
        }
        drop(log);
    }
    let what = format!(
        "going on with a session of {:.1} MB ({n_calls} calls): its log read, its conversation written anew",
        log.len() as f64 / 1e6
    );
    table.figure(&what, &times.show(), "≤ 300 ms", times.at(50) <= Duration::from_millis(300));
    Ok(())
}

/// Returns a log of 10 MB as a long session leaves it, and how many calls are in it.
fn long_log() -> Outcome<(String, usize)> {
    let at = "2026-11-22T10:00:00Z";
    let usage = json!({"prompt": 900, "cached": 800, "completion": 20, "cost_usd": null});
    let page = "    let needle = haystack.find(\"needle\").unwrap_or_default();\n".repeat(60);
    let mut log = String::new();
    let mut add = |record: serde_json::Value| writeln!(log, "{record}");
    add(
        json!({"type": "session_started", "at": at, "version": session::VERSION, "session": "abcdefghjkmn", "podbay": "0.1.0", "project": "/p", "mode": "auto", "task": "fix it"}),
    )?;
    add(json!({"type": "prompt_begun", "at": at, "system": "You work.", "tools": [], "mode": ToolMode::Native, "thinking": false}))?;
    add(json!({"type": "user_message", "at": at, "text": "fix it"}))?;
    let n_calls = 10_000_000 / (page.len() + 1000);
    for number in 0..n_calls {
        let (call, arguments) = (format!("c{number}"), format!("{{\"path\":\"src/file_{number}.rs\"}}"));
        let calls = json!([{"id": call, "name": "read_file", "arguments": arguments}]);
        add(json!({"type": "model_asked", "at": at}))?;
        add(
            json!({"type": "assistant_message", "at": at, "text": "I look at the next one.", "thinking": "", "calls": calls, "usage": usage, "interrupted": false, "duration_ms": 900}),
        )?;
        add(json!({"type": "call_decided", "at": at, "call": call, "name": "read_file", "decision": "allow", "reason": "mode auto"}))?;
        add(json!({"type": "call_started", "at": at, "call": call, "name": "read_file", "arguments": arguments}))?;
        add(
            json!({"type": "call_finished", "at": at, "call": call, "name": "read_file", "status": "ok", "result": page, "artifact": null, "duration_ms": 1}),
        )?;
    }
    Ok((log, n_calls))
}
