//! The full-screen chat at a terminal: how soon it is there, how soon a key is shown beside a stream
//! that is as fast as it can be, and what it needs of the machine.

use std::process::Command;
use std::time::Duration;
use std::time::Instant;

use serde_json::Value;
use serde_json::json;

use super::Outcome;
use super::place::Place;
use super::scripted_model::ScriptedModel;
use super::table::Table;
use super::table::Times;
use super::terminal::Terminal;

/// Messages of the session that is resumed: a call and its result each.
const N_CALLS: usize = 2500;
// An answer may have 4 MiB of text.
const N_TOKENS: usize = 700_000;
const N_KEYS: usize = 20;
/// What the last token says.
const END: &str = "THE-END";
const SHORT_END: &str = "SHORT-END";
/// Shown in the empty editor.
const EMPTY: &str = "type a task";

pub(super) fn rows(place: &Place, table: &mut Table, rounds: usize) -> Outcome<()> {
    starts(place, table, rounds)?;
    stream(place, table)?;
    lines(place, table)
}

fn chat(place: &Place, endpoint: &str, more: &[&str]) -> Command {
    let folder = place.project.to_string_lossy();
    let mut arguments = vec![
        "chat", "-C", &folder, "--mode", "auto", "--model", "scripted",
    ];
    arguments.extend(["--endpoint", endpoint]);
    arguments.extend(more);
    place.command(&arguments)
}

fn leave(mut terminal: Terminal) -> Outcome<()> {
    terminal.types("/quit\r")?;
    terminal.ends()
}

/// From the start of the program to the first frame, and to the first key that is shown.
fn starts(place: &Place, table: &mut Table, rounds: usize) -> Outcome<()> {
    let model = ScriptedModel::new().start_blocking();
    let mut shell = Command::new("/bin/bash");
    shell
        .args(["--norc", "-i"])
        .env_clear()
        .env("PS1", "ready>");
    let (mut paint, mut ready) = (Times::default(), Times::default());
    let (mut prompt, mut echo) = (Times::default(), Times::default());
    for _ in 0..rounds {
        let begun = Instant::now();
        let mut terminal = Terminal::start(&chat(place, &model.endpoint(), &[]))?;
        terminal.sees(EMPTY)?;
        paint.0.push(begun.elapsed());
        terminal.types("z")?;
        terminal.sees("› z")?;
        ready.0.push(begun.elapsed());
        terminal.types("\x15")?;
        // The end of one chat does not fall into the start of the next.
        terminal.sees("lists keys")?;
        leave(terminal)?;
        let begun = Instant::now();
        let mut terminal = Terminal::start(&shell)?;
        terminal.sees("ready>")?;
        prompt.0.push(begun.elapsed());
        terminal.types("z")?;
        terminal.sees("ready>z")?;
        echo.0.push(begun.elapsed());
        terminal.types("\x15exit\r")?;
        terminal.ends()?;
    }
    let what = "`podbay chat` to its first frame, against the prompt of `bash --norc`";
    table.row(what, &paint, &prompt, None);
    bar(table, "the first frame", paint.at(50), 50);
    let what = "the same to the first key that is shown";
    table.row(what, &ready, &echo, None);
    bar(table, "the first key", ready.at(50), 100);
    Ok(())
}

fn bar(table: &mut Table, what: &str, time: Duration, most_ms: u64) {
    let ms = time.as_secs_f64() * 1000.0;
    table.figure(
        &format!("{what}, at the median"),
        &format!("{ms:.1} ms"),
        &format!("≤ {most_ms} ms"),
        time <= Duration::from_millis(most_ms),
    );
}

/// Keys beside a long answer, at the end of a long conversation.
fn stream(place: &Place, table: &mut Table) -> Outcome<()> {
    let session = long_session(place)?;
    let model = ScriptedModel::new()
        .raw_sse(&answer(10, SHORT_END))
        .raw_sse(&answer(N_TOKENS, END))
        .start_blocking();
    let more = ["--resume", &session];
    let mut terminal = Terminal::start(&chat(place, &model.endpoint(), &more))?;
    terminal.sees(EMPTY)?;
    terminal.types("short\r")?;
    terminal.sees(SHORT_END)?;
    let before = terminal.most_memory()?;
    let (begun, n_before) = (Instant::now(), terminal.n_frames());
    terminal.types("long\r")?;
    terminal.sees("writing")?;
    let mut keys = Times::default();
    let mut typed = "› ".to_owned();
    for _ in 0..N_KEYS {
        std::thread::sleep(Duration::from_millis(40));
        typed.push('z');
        keys.add(|| {
            terminal.types("z")?;
            terminal.sees(&typed)
        })?;
    }
    let is_beside = !terminal.shows(END);
    terminal.types("\x15")?;
    terminal.sees(END)?;
    let (time, n_frames) = (begun.elapsed(), terminal.n_frames() - n_before);
    let grown = terminal.most_memory()?.saturating_sub(before);
    leave(terminal)?;
    if !is_beside {
        let ms = time.as_millis();
        return Err(format!("the answer took {ms} ms, less than typing all keys").into());
    }
    let messages = 2 * N_CALLS;
    let what = format!(
        "a key is shown, beside an answer of {N_TOKENS} tokens that streams, behind {messages} messages"
    );
    table.note(&what, &keys.show(), "");
    bar(table, "a key", keys.at(50), 16);
    let seconds = time.as_secs_f64();
    let speed = (N_TOKENS as f64 / seconds) as u64;
    table.figure(
        "tokens of that answer on the screen, an event for each",
        &format!("{speed} tokens/s"),
        "≥ 20000 tokens/s",
        speed >= 20_000,
    );
    let frames = n_frames as f64 / seconds;
    table.figure(
        "frames meanwhile, keys included",
        &format!("{frames:.0} frames/s"),
        "≤ 60 frames/s",
        frames <= 60.5,
    );
    let mb = grown as f64 / 1e6;
    let text = answer(N_TOKENS, END).len() as f64 / 1e6;
    table.note(
        &format!("memory that it added; the events are {text:.0} MB"),
        &format!("{mb:.1} MB"),
        "",
    );
    Ok(())
}

/// An answer as events of a stream, one for each token.
fn answer(n: usize, last: &str) -> String {
    let event = |text: &str| {
        let delta = json!({"choices": [{"index": 0, "delta": {"content": text}}]});
        format!("data: {delta}\n\n")
    };
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let words: String = (1..n)
        .map(|n| match n {
            _ if n % 160 == 0 => event("\n\n"),
            _ if n % 16 == 0 => event("\n"),
            _ => event("word "),
        })
        .collect();
    format!("{words}{}data: {end}\n\ndata: [DONE]\n\n", event(last))
}

/// Makes a session of many calls; returns its id.
fn long_session(place: &Place) -> Outcome<String> {
    let mut script = ScriptedModel::new();
    for n in 0..N_CALLS {
        let arguments = json!({"path": "four_kb.txt", "offset": n % 60 + 1, "limit": 1});
        script = script.calls("read_file", arguments);
    }
    let model = script.says("Done.").start_blocking();
    let (folder, turns) = (place.project.to_string_lossy(), (N_CALLS + 10).to_string());
    let endpoint = model.endpoint();
    let mut arguments = vec![
        "run", "-C", &folder, "--mode", "auto", "--model", "scripted",
    ];
    arguments.extend(["--endpoint", &endpoint, "--max-turns", &turns]);
    arguments.extend(["--output", "json", "read it all"]);
    let output = place.command(&arguments).output()?;
    let said: Value = serde_json::from_slice(&output.stdout)?;
    let id = said["session"].as_str();
    Ok(id.ok_or("the run names no session")?.to_owned())
}

/// What the controller has in memory, on a screen and in lines.
fn lines(place: &Place, table: &mut Table) -> Outcome<()> {
    for (face, ready, most) in [("--tui", EMPTY, 50.0), ("--classic", "> ", 40.0)] {
        let model = ScriptedModel::new()
            .calls("bash", json!({"command": "seq 200000"}))
            .says(&format!("{}{END}", "word ".repeat(4000)))
            .start_blocking();
        let mut terminal = Terminal::start(&chat(place, &model.endpoint(), &[face]))?;
        terminal.sees(ready)?;
        terminal.types("count\r")?;
        terminal.sees(END)?;
        let mb = terminal.most_memory()? as f64 / 1e6;
        leave(terminal)?;
        table.figure(
            &format!("most memory of the controller in a chat of one turn, `{face}`"),
            &format!("{mb:.1} MB"),
            &format!("≤ {most} MB"),
            mb <= most,
        );
    }
    Ok(())
}
