//! What an event says in a line or a few, wherever it is shown: beside the answer and the calls,
//! which each way to show a run shows in its own manner.

use podbay_event::Kind;
use podbay_event::LimitKind;
use podbay_event::git_taken;
use podbay_event::hidden_names;
use podbay_event::memory_saved_words;
use podbay_event::plan_decided_words;
use podbay_event::plan_mode_words;

use super::call;
use super::text;

/// Lines of a text of others that are shown.
pub(super) const SHOWN_LINES: usize = 3;
/// Names of a list that are shown in one line.
const MOST_NAMES: usize = 8;
/// Lines of a note that was saved for later sessions.
const MEMORY_LINES: usize = 8;

/// How a note is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Dim,
    Warn,
    Bad,
}

/// Returns what an event says, clean; `None`: it is part of a message, a call, a question or a
/// number, or says nothing to a reader.
pub(super) fn note(kind: &Kind) -> Option<(Tone, String)> {
    let note = match kind {
        Kind::ModelReady { model, reason, .. } => {
            let reason = if reason.is_empty() {
                String::new()
            } else {
                format!(" ({})", text::line(reason))
            };
            (Tone::Dim, format!("model: {}{reason}", text::line(model)))
        }
        Kind::ToolModeChanged { from, to, reason } => (
            Tone::Warn,
            format!(
                "tool calls: {} instead of {} from here on ({}); `llm.tool_mode` sets it for good",
                to.as_str(),
                from.as_str(),
                text::line(reason)
            ),
        ),
        Kind::SandboxStarted {
            image,
            duration_ms,
            hidden,
            tracked,
        } => {
            let hidden = match few(&hidden_names(hidden, tracked)) {
                names if names.is_empty() => names,
                names => format!("; masked: {names}"),
            };
            let started = call::duration(*duration_ms);
            let image = text::line(image);
            (
                Tone::Dim,
                format!("sandbox: {image}, started in {started}{hidden}"),
            )
        }
        Kind::SandboxLost { reason } => (
            Tone::Warn,
            format!(
                "the sandbox ended: {}",
                call::bounded(reason, SHOWN_LINES)
            ),
        ),
        Kind::LimitReached { limit, at_end } => {
            let how = if *at_end { "is reached" } else { "is near" };
            (
                Tone::Warn,
                format!("the limit of {} {how}", limit_word(*limit)),
            )
        }
        Kind::Interrupted => (Tone::Warn, "interrupted".to_owned()),
        Kind::UserMessageAdded { text } => (
            Tone::Plain,
            format!("› {}", call::bounded(text, usize::MAX - 1)),
        ),
        // What is allowed is no news; the log has it.
        Kind::NetworkAttempted(attempt) if attempt.allowed && attempt.failure.is_none() => {
            return None;
        }
        Kind::NetworkAttempted(attempt) => {
            let words = call::bounded(&attempt.words(), usize::MAX - 1);
            (Tone::Warn, format!("network: {words}"))
        }
        kind @ Kind::GitTaken { .. } => {
            let words = git_taken(kind).unwrap_or_default();
            (
                Tone::Plain,
                format!("git: {}", call::bounded(&words, usize::MAX - 1)),
            )
        }
        Kind::ContextAdded { instructions, .. } if instructions.is_empty() => return None,
        Kind::ContextAdded { instructions, .. } => {
            let names: Vec<String> = instructions.iter().map(|name| text::line(name)).collect();
            (Tone::Dim, format!("instructions: {}", names.join(", ")))
        }
        Kind::Warning { message } => {
            (Tone::Warn, format!("warning: {}", call::warning(message)))
        }
        Kind::ModeChanged { mode } => (
            Tone::Dim,
            format!("mode {} from here on", text::line(mode)),
        ),
        Kind::PlanModeChanged { on, ended, .. } => {
            (Tone::Dim, text::line(&plan_mode_words(*on, ended)))
        }
        Kind::PlanMade {
            version, edited, ..
        } => {
            let by = if *edited {
                ", as the user changed it"
            } else {
                ""
            };
            (Tone::Dim, format!("plan {version} is saved{by}"))
        }
        Kind::PlanDecided {
            version,
            decision,
            reason,
        } => {
            let words = plan_decided_words(*version, *decision, reason.as_deref());
            (Tone::Dim, text::line(&words))
        }
        Kind::MemorySaved {
            memory,
            replaced,
            pruned,
        } => {
            let words = text::line(&memory_saved_words(memory, *replaced, pruned));
            let content = call::bounded(&memory.content, MEMORY_LINES);
            (Tone::Plain, format!("{words}\n   {content}"))
        }
        Kind::SessionResumed { .. } => (Tone::Dim, "session resumed".to_owned()),
        // How much is used, not which of the shares that are warned of was passed.
        Kind::ContextNear { used, window, .. } => {
            let percent = used.saturating_mul(100) / (*window).max(1);
            (
                Tone::Warn,
                format!("{percent} % of the model's window are used ({used} of {window} tokens)"),
            )
        }
        Kind::ResultsEvicted { results } => {
            let (sum, were, them) = match results.len() {
                1 => ("1 old result".to_owned(), "was", "it"),
                n => (format!("{n} old results"), "were", "them"),
            };
            (
                Tone::Dim,
                format!("made room: {sum} {were} set aside; the model can read {them} again"),
            )
        }
        Kind::ConversationCompacted { before, after, .. } => (
            Tone::Dim,
            format!(
                "made room: a summary replaces the older messages ({before} -> {after} tokens)"
            ),
        ),
        Kind::ProjectChanged(changes) => (Tone::Plain, changes.words()),
        // Messages, calls, numbers and progress, which have a place of their own.
        Kind::TextDelta { .. }
        | Kind::ThinkingDelta { .. }
        | Kind::AssistantMessage { .. }
        | Kind::CallDecided { .. }
        | Kind::CallStarted { .. }
        | Kind::CallOutput { .. }
        | Kind::CallRan { .. }
        | Kind::CallFinished { .. }
        | Kind::Progress(_)
        | Kind::RunFinished { .. }
        | Kind::AgentStarted { .. }
        | Kind::AgentEvent { .. }
        | Kind::AgentFinished { .. }
        // What was typed is on the screen already, questions are asked by `ask`, and the rest says
        // nothing to a reader.
        | Kind::SessionStarted { .. }
        | Kind::SessionForked { .. }
        | Kind::SessionSpawned { .. }
        | Kind::SessionRewound { .. }
        | Kind::PromptBegun { .. }
        | Kind::NoteAdded { .. }
        | Kind::ImageShown { .. }
        | Kind::ImagesTakenOut { .. }
        | Kind::ModelAsked
        | Kind::CheckpointMade { .. }
        | Kind::AnswerOpen(_)
        | Kind::TaskEnded(_)
        | Kind::UserMessage { .. }
        | Kind::PermissionAsked { .. }
        | Kind::PermissionAnswered { .. }
        | Kind::QuestionAsked { .. }
        | Kind::DenialsEscalated { .. }
        | Kind::HookEnded { .. }
        | Kind::Unknown => return None,
    };
    Some(note)
}

pub(super) fn limit_word(limit: LimitKind) -> &'static str {
    match limit {
        LimitKind::Turns => "turns",
        LimitKind::Time => "time",
        LimitKind::Tokens => "tokens",
        LimitKind::Cost => "cost",
        LimitKind::Stuck => "repeated calls",
        LimitKind::Context => "context",
    }
}

/// Names the first of a list, which may be long.
fn few(names: &[String]) -> String {
    let mut shown: Vec<String> = names
        .iter()
        .take(MOST_NAMES)
        .map(|name| text::line(name))
        .collect();
    if names.len() > MOST_NAMES {
        shown.push(format!("and {} more", names.len() - MOST_NAMES));
    }
    shown.join(", ")
}
