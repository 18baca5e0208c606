//! The hot paths, each as a piece of work that can be done again and again with the same input.

use std::hint::black_box;

use podbay::event::CallStatus;
use podbay::event::ToolCall;
use podbay::event::ToolMode;
use podbay::llm::Message;
use podbay::llm::Prompt;
use podbay::llm::ToolSpec;
use podbay::llm::sse;
use podbay::llm::text;
use podbay::tools;
use podbay::tools::Catalogue;
use podbay::wire::BytesPath;
use podbay::wire::CallId;
use podbay::wire::GrepOutput;
use podbay::wire::LeftOut;
use podbay::wire::MatchedFile;
use podbay::wire::MatchedLine;
use podbay::wire::Matches;
use podbay::wire::Output;
use podbay::wire::frame;
use podbay::wire::message::Data;
use podbay::wire::message::Stream;
use podbay::wire::message::ToHost;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::Outcome;
use super::ready;

/// Says that this process only does some work.
pub(super) const FLAG: &str = "--work";

pub(super) struct Work {
    pub(super) name: &'static str,
    /// For people.
    pub(super) what: &'static str,
    pub(super) unit: &'static str,
    /// Units in one round.
    pub(super) n_units: fn() -> u64,
    /// Prepares, then does so many rounds.
    run: fn(u64) -> Outcome<()>,
}

pub(super) const ALL: &[Work] = &[
    Work {
        name: "text-prose",
        what: "calls looked for in a model's text: 1 MB of prose in pieces of a token",
        unit: "byte",
        n_units: || prose().len() as u64,
        run: |rounds| parse(&prose(), rounds, 0),
    },
    Work {
        name: "text-calls",
        what: "calls read from a model's text: 100 calls between prose, in pieces of a token",
        unit: "call",
        n_units: || N_CALLS,
        run: |rounds| parse(&calls(), rounds, N_CALLS as usize),
    },
    Work {
        name: "sse",
        what: "a recorded stream of 1,000 events taken apart, in packets of 1,400 bytes",
        unit: "event",
        n_units: || N_EVENTS as u64,
        run: decode_stream,
    },
    Work {
        name: "frame-encode",
        what: "a frame with 4 KB of a command's output written",
        unit: "frame",
        n_units: || N_FRAMES,
        run: encode_frames,
    },
    Work {
        name: "frame-decode",
        what: "the same frame read",
        unit: "frame",
        n_units: || N_FRAMES,
        run: decode_frames,
    },
    Work {
        name: "read-file",
        what: "`read_file` of 200 lines (12.6 KB): schema, policy, events, rendering; without the sandbox",
        unit: "call",
        n_units: || N_PIPELINE,
        run: |rounds| {
            pipeline(
                rounds,
                "read_file",
                r#"{"path":"src/main.rs"}"#,
                &ready::file(),
                "200",
            )
        },
    },
    Work {
        name: "grep",
        what: "`grep` with 100 matches in 20 files, the same way",
        unit: "call",
        n_units: || N_PIPELINE,
        run: |rounds| {
            pipeline(
                rounds,
                "grep",
                r#"{"pattern":"needle"}"#,
                &matches(),
                "src/file_19.rs",
            )
        },
    },
    Work {
        name: "prompt",
        what: "the beginning of a request with 200 messages and the standard tools put together anew",
        unit: "message",
        n_units: || N_MESSAGES as u64,
        run: prompts,
    },
];

/// Does the rounds of a piece of work that the command line names.
pub(super) fn run(name: Option<&str>, rounds: Option<&str>) -> Outcome<()> {
    let name = name.ok_or("no work is named")?;
    let work = ALL
        .iter()
        .find(|work| work.name == name)
        .ok_or_else(|| format!("there is no work `{name}`"))?;
    let rounds = rounds.ok_or("the number of rounds is missing")?.parse()?;
    (work.run)(rounds)
}

const SENTENCE: &str = "The function reads a line, and if x < 3 it returns `None`; otherwise it continues as {before} and says why.\n";

fn prose() -> String {
    SENTENCE.repeat((1 << 20) / SENTENCE.len())
}

const N_CALLS: u64 = 100;

fn calls() -> String {
    let call = "<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"src/main.rs\", \"offset\": 5, \"limit\": 40}}\n</tool_call>\n";
    format!("{SENTENCE}{call}").repeat(N_CALLS as usize)
}

/// The tools of a session, as the model knows of them.
fn specs() -> Vec<ToolSpec> {
    let spec = |tool: &tools::Tool| ToolSpec {
        name: tool.name.to_owned(),
        description: tool.description.to_owned(),
        parameters: tool.parameters.clone(),
    };
    Catalogue::new(&tools::Options::default())
        .tools()
        .iter()
        .map(spec)
        .collect()
}

fn parse(text: &str, rounds: u64, n_calls: usize) -> Outcome<()> {
    let known = text::Tools::new(&specs());
    for _ in 0..rounds {
        let mut parser = text::Parser::new(&known, None);
        let mut n_found = 0;
        let mut on =
            |piece| n_found += usize::from(matches!(black_box(piece), text::Piece::Call(_)));
        // A token of English is about four characters.
        let mut rest = black_box(text);
        while !rest.is_empty() {
            let (token, after) = rest.split_at(rest.floor_char_boundary(4));
            parser.feed(token, &mut on);
            rest = after;
        }
        let incomplete = parser.finish(&mut on);
        if n_found != n_calls || incomplete.is_some() {
            return Err(format!(
                "{n_found} calls were found instead of {n_calls}, and something incomplete: {}",
                incomplete.is_some()
            )
            .into());
        }
    }
    Ok(())
}

const N_EVENTS: usize = 1000;

fn decode_stream(rounds: u64) -> Outcome<()> {
    let chunk = json!({
        "choices": [{"finish_reason": null, "index": 0, "delta": {"content": " word"}}],
        "created": 1_763_800_000, "id": "chatcmpl-0", "model": "m.gguf", "system_fingerprint": "b1", "object": "chat.completion.chunk",
    });
    let stream = format!("data: {chunk}\n\n").repeat(N_EVENTS);
    for _ in 0..rounds {
        let mut decoder = sse::Decoder::default();
        let (mut events, mut n_events) = (Vec::new(), 0);
        for packet in black_box(&stream).as_bytes().chunks(1400) {
            decoder.feed(packet, &mut events)?;
            n_events += events.len();
            black_box(&events);
            events.clear();
        }
        if n_events != N_EVENTS {
            return Err(format!("{n_events} events came out instead of {N_EVENTS}").into());
        }
    }
    Ok(())
}

const N_FRAMES: u64 = 200;

fn chunk() -> ToHost {
    let data = SENTENCE.bytes().cycle().take(4096).collect();
    ToHost::Chunk {
        id: CallId(7),
        stream: Stream::Stdout,
        data: Data(data),
    }
}

fn encode_frames(rounds: u64) -> Outcome<()> {
    let chunk = chunk();
    for _ in 0..rounds * N_FRAMES {
        black_box(frame::encode(black_box(&chunk))?);
    }
    Ok(())
}

fn decode_frames(rounds: u64) -> Outcome<()> {
    let chunk = chunk();
    let bytes = frame::encode(&chunk)?;
    for _ in 0..rounds * N_FRAMES {
        black_box(frame::decode::<ToHost>(black_box(&bytes))?);
    }
    if frame::decode::<ToHost>(&bytes)? == chunk {
        Ok(())
    } else {
        Err("the frame read back is another".into())
    }
}

const N_PIPELINE: u64 = 20;

fn matches() -> Output {
    let line = |number| MatchedLine {
        number,
        text: "    let needle = haystack.find(\"needle\");".to_owned(),
        cut: false,
        matched: true,
    };
    let file = |number| MatchedFile {
        path: BytesPath::from(format!("src/file_{number}.rs").as_str()),
        count: 5,
        lines: (1..6).map(|at| line(at * 17)).collect(),
        binary: false,
    };
    let files = (0..20).map(file).collect();
    Output::Matches(Matches {
        output: GrepOutput::Content,
        files,
        n_matches: 100,
        truncated: false,
        timed_out: false,
        n_unreadable: 0,
        n_protected: 0,
        n_binary: 0,
        n_too_long: 0,
        cursor: None,
        left_out: LeftOut::default(),
        hint: None,
    })
}

/// Carries calls out with a sandbox that answers at once, so that all that is counted is ours.
fn pipeline(
    rounds: u64,
    name: &str,
    arguments: &str,
    output: &Output,
    expected: &str,
) -> Outcome<()> {
    let pipeline = ready::pipeline(output.clone())?;
    let call = ToolCall {
        id: "c1".to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    runtime.block_on(async {
        let cancel = CancellationToken::new();
        for _ in 0..rounds * N_PIPELINE {
            let finished = pipeline.run(black_box(&call), &cancel).await?;
            if finished.status != CallStatus::Ok || !finished.text.contains(expected) {
                return Err(format!("the call did not succeed: {}", finished.text).into());
            }
        }
        Ok(())
    })
}

const N_MESSAGES: usize = 200;

/// A task, then calls and their results in turns.
fn history() -> Vec<Message> {
    let mut messages = vec![Message::user(
        "Fix the failing test and say what was wrong.",
    )];
    let page = SENTENCE.repeat(20);
    for at in 1..N_MESSAGES {
        let id = format!("call_{}", at / 2);
        messages.push(if at % 2 == 1 {
            let arguments = format!(r#"{{"path":"src/file_{at}.rs","offset":1,"limit":40}}"#);
            let call = ToolCall {
                id,
                name: "read_file".to_owned(),
                arguments,
            };
            Message::Assistant {
                text: "I look at the next one.".to_owned(),
                thinking: String::new(),
                calls: vec![call],
                raw: None,
            }
        } else {
            let call = format!("call_{}", at / 2 - 1);
            Message::ToolResult {
                call,
                name: "read_file".to_owned(),
                text: page.clone(),
                is_error: false,
            }
        });
    }
    messages
}

fn prompts(rounds: u64) -> Outcome<()> {
    let (specs, history) = (specs(), history());
    for _ in 0..rounds {
        let mut prompt = Prompt::new("You work on a project.", &specs, ToolMode::Native);
        for message in black_box(&history) {
            prompt.push(message);
        }
        let head = black_box(prompt.head());
        if head.matches("\"role\":\"tool\"").count() != N_MESSAGES / 2 - 1 {
            return Err("messages are missing in the request".into());
        }
    }
    Ok(())
}
