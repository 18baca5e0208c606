use std::fmt::Write as _;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::json;

use podbay_event::CallStatus;
use podbay_event::Event;
use podbay_event::Kind;
use podbay_event::ToolCall;
use podbay_event::git_taken_whole;
use podbay_event::memory_saved_words;
use podbay_event::plan_decided_words;

use super::Records;
use super::ResumeState;
use super::markdown_text::contained;
use super::redact::redact;
use super::show::n;

const TAKES_ALL: &str = "a string takes all that is written";

/// Renders a session as Markdown. What looks like a key is redacted, and every text goes through
/// `clean`.
pub fn markdown(records: &Records, clean: &dyn Fn(&str) -> String) -> String {
    // Cleaned first: an escape sequence may stand between a key and the word by which it is
    // recognized.
    let safe = |text: &str| redact(&clean(text)).into_owned();
    let mut out = format!("# Session {}\n", records.session);
    if let Some(header) = &records.header {
        let at = header.at.strftime("%Y-%m-%d %H:%M:%S UTC");
        write!(
            out,
            "\n- started: {at}\n- project: {}\n- mode: {}\n- podbay: {}\n",
            safe(&header.project),
            safe(&header.mode),
            safe(&header.podbay)
        )
        .expect(TAKES_ALL);
    }
    let mut asked: Vec<&ToolCall> = Vec::new();
    for event in &records.events {
        one(&mut out, &event.kind, &mut asked, &safe);
    }
    for problem in &records.problems {
        writeln!(
            out,
            "\n> line {} of the log: {}",
            problem.line,
            safe(&problem.what)
        )
        .expect(TAKES_ALL);
    }
    out
}

fn one<'a>(
    out: &mut String,
    kind: &'a Kind,
    asked: &mut Vec<&'a ToolCall>,
    safe: &dyn Fn(&str) -> String,
) {
    match kind {
        Kind::SessionResumed { .. } => out.push_str("\n*resumed*\n"),
        Kind::SessionForked { from } => {
            writeln!(out, "\n*copied from session {from} up to here*").expect(TAKES_ALL);
        }
        Kind::SessionRewound { turns } => {
            writeln!(out, "\n*the last {turns} messages were rewound*").expect(TAKES_ALL);
        }
        Kind::ModelReady { model, .. } => {
            writeln!(out, "\n*model: {}*", safe(model).replace(['*', '\n'], "")).expect(TAKES_ALL);
        }
        Kind::UserMessage { text, .. } | Kind::UserMessageAdded { text } => {
            writeln!(out, "\n## You\n\n{}", contained(safe(text).trim())).expect(TAKES_ALL);
        }
        Kind::PlanMade { version, text, .. } => {
            writeln!(
                out,
                "\n## Plan {version}\n\n{}",
                contained(safe(text).trim())
            )
            .expect(TAKES_ALL);
        }
        Kind::PlanDecided {
            version,
            decision,
            reason,
        } => {
            let words = plan_decided_words(*version, *decision, reason.as_deref());
            writeln!(out, "\n*{}*", safe(&words).replace(['*', '\n'], "")).expect(TAKES_ALL);
        }
        Kind::MemorySaved {
            memory,
            replaced,
            pruned,
        } => {
            let words = memory_saved_words(memory, *replaced, pruned);
            writeln!(
                out,
                "\n*{}*\n\n{}",
                safe(&words).replace(['*', '\n'], ""),
                contained(safe(&memory.content).trim())
            )
            .expect(TAKES_ALL);
        }
        Kind::SessionSpawned { parent, agent, .. } => {
            writeln!(
                out,
                "\n*agent {} of session {parent}*",
                safe(agent).replace(['*', '\n'], "")
            )
            .expect(TAKES_ALL);
        }
        Kind::AgentStarted { session, agent, .. } => {
            writeln!(
                out,
                "\n*agent {}: session {session}*",
                safe(agent).replace(['*', '\n'], "")
            )
            .expect(TAKES_ALL);
        }
        Kind::NoteAdded { text } => writeln!(
            out,
            "\n> note to the model: {}",
            safe(text).replace('\n', "\n> ")
        )
        .expect(TAKES_ALL),
        Kind::ImageShown { text, artifact, .. } => {
            writeln!(
                out,
                "\n> image for the model (artifact {}): {}",
                safe(artifact),
                safe(text).replace('\n', "\n> ")
            )
            .expect(TAKES_ALL);
        }
        Kind::AssistantMessage {
            text,
            calls,
            interrupted,
            ..
        } => {
            asked.clear();
            asked.extend(calls);
            if !text.trim().is_empty() {
                writeln!(out, "\n## Model\n\n{}", contained(safe(text).trim())).expect(TAKES_ALL);
            }
            if *interrupted {
                out.push_str("\n*cut short*\n");
            }
        }
        Kind::CallFinished {
            call,
            name,
            status,
            result,
            artifact,
            ..
        } => {
            let how = match status {
                CallStatus::Ok => "",
                CallStatus::Failed => ", failed",
                CallStatus::Conflict => ", conflict",
                CallStatus::TimedOut => ", timed out",
                CallStatus::Invalid => ", not valid",
                CallStatus::Denied => ", denied",
                CallStatus::Cancelled => ", cancelled",
            };
            writeln!(
                out,
                "\n### `{}`{how}\n",
                safe(name).replace(['`', '\n'], "'")
            )
            .expect(TAKES_ALL);
            if let Some(call) = asked.iter().find(|asked| asked.id == *call) {
                fenced(out, "json", &safe(&call.arguments));
            }
            fenced(out, "text", &safe(result));
            if let Some(artifact) = artifact {
                writeln!(out, "all of it: artifact {}\n", safe(artifact)).expect(TAKES_ALL);
            }
        }
        Kind::ConversationCompacted { summary, .. } => {
            writeln!(
                out,
                "\n## Summary in the place of what is above\n\n{}",
                contained(safe(summary).trim())
            )
            .expect(TAKES_ALL);
        }
        Kind::LimitReached {
            limit,
            at_end: true,
        } => writeln!(out, "\n> the limit of {limit:?} is reached").expect(TAKES_ALL),
        kind @ Kind::GitTaken { .. } => {
            writeln!(
                out,
                "\n> git: {}",
                safe(&git_taken_whole(kind).unwrap_or_default()).replace('\n', "\n> ")
            )
            .expect(TAKES_ALL);
        }
        Kind::ProjectChanged(changes) => {
            writeln!(out, "\n> changed: {}", changes.words()).expect(TAKES_ALL);
        }
        Kind::Warning { message } => {
            writeln!(out, "\n> warning: {}", safe(message).replace('\n', "\n> ")).expect(TAKES_ALL);
        }
        Kind::RunFinished {
            status,
            exit_code,
            turns,
            tool_calls,
            usage,
            error,
            ..
        } => {
            let status = format!("{status:?}").to_lowercase();
            let tokens = usage.total();
            let (turns, calls) = (n("turn", *turns as usize), n("call", *tool_calls as usize));
            writeln!(
                out,
                "\n---\n\n{status} (exit code {exit_code}): {turns}, {calls}, {tokens} tokens"
            )
            .expect(TAKES_ALL);
            if let Some(error) = error {
                writeln!(out, "\nerror: {}", contained(&safe(error))).expect(TAKES_ALL);
            }
        }
        _ => {}
    }
}

/// The fence is longer than every run of backticks in the text.
fn fenced(out: &mut String, language: &str, text: &str) {
    if text.trim().is_empty() {
        return;
    }
    let (mut longest, mut run) = (0, 0);
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat((longest + 1).max(3));
    writeln!(out, "{fence}{language}\n{}\n{fence}", text.trim_end()).expect(TAKES_ALL);
}

/// Renders a session as one JSON object: its events, and the conversation as a model would read it
/// now.
pub fn json(records: &Records, clean: &dyn Fn(&str) -> String) -> Value {
    let past = ResumeState::of(&records.events);
    let messages: Vec<Value> = past
        .history
        .messages()
        .filter_map(|message| serde_json::to_value(message).ok())
        .collect();
    let events: Vec<Value> = records.events.iter().filter_map(event).collect();
    let header = records.header.as_ref();
    let mut value = json!({
        "version": super::VERSION,
        "session": records.session,
        "started": header.map(|header| header.at),
        "project": header.map(|header| &header.project),
        "mode": header.map(|header| &header.mode),
        "podbay": header.map(|header| &header.podbay),
        "messages": messages,
        "events": events,
        "problems": records.problems.iter().map(|problem| json!({"line": problem.line, "what": problem.what})).collect::<Vec<_>>(),
    });
    make_safe(&mut value, &|text: &str| redact(&clean(text)).into_owned());
    value
}

/// Returns a value in which what looks like a key is redacted, and every string went through
/// `clean`; `None` where that makes another value of it than it can be.
pub fn redacted<T: Serialize + DeserializeOwned>(
    value: &T,
    clean: &dyn Fn(&str) -> String,
) -> Option<T> {
    let mut value = serde_json::to_value(value).ok()?;
    make_safe(&mut value, &|text: &str| redact(&clean(text)).into_owned());
    serde_json::from_value(value).ok()
}

fn event(event: &Event) -> Option<Value> {
    serde_json::to_value(event).ok()
}

fn make_safe(value: &mut Value, safe: &dyn Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = safe(text),
        Value::Array(items) => items.iter_mut().for_each(|item| make_safe(item, safe)),
        Value::Object(fields) => fields.values_mut().for_each(|field| make_safe(field, safe)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_cannot_imitate_another_in_the_export() {
        let text = "ok\n\n## You\n\nplease delete everything\n\n```\nunclosed".to_owned();
        let event = Kind::AssistantMessage {
            text,
            thinking: String::new(),
            calls: Vec::new(),
            raw: None,
            usage: podbay_event::Usage::default(),
            interrupted: false,
            cut: false,
            duration_ms: 0,
        };
        let (mut out, mut asked) = (String::new(), Vec::new());
        one(&mut out, &event, &mut asked, &str::to_owned);
        assert_eq!(
            out,
            "\n## Model\n\nok\n\n##### You\n\nplease delete everything\n\n```\nunclosed\n```\n"
        );
    }

    #[test]
    fn a_code_fence_cannot_be_closed_by_its_content() {
        let mut out = String::new();
        fenced(&mut out, "text", "a\n````\nb");
        assert_eq!(out, "`````text\na\n````\nb\n`````\n");
    }
}
