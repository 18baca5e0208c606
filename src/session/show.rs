use std::collections::HashMap;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::io;
use std::io::BufReader;
use std::io::Write;
use std::path::Path;

use podbay_event::AgentEnd;
use podbay_event::Answer;
use podbay_event::CallStatus;
use podbay_event::Capability;
use podbay_event::Decision;
use podbay_event::Event;
use podbay_event::HookOutcome;
use podbay_event::Kind;
use podbay_event::LimitKind;
use podbay_event::RunStatus;
use podbay_event::ToolCall;
use podbay_event::git_taken_whole;
use podbay_event::hidden_names;
use podbay_event::json_line;
use podbay_event::memory_saved_words;
use podbay_event::plan_decided_words;
use podbay_event::plan_mode_words;
use podbay_event::program_words;
use podbay_wire::Program;

use super::Error;
use super::Records;
use super::log_file;
use super::record;

/// Most lines of a result or a command that are shown; the log has all.
const LINES_MAX: usize = 12;

/// Renders a session as plain text: messages, calls and how they ended.
///
/// The text is not sanitised; clean it before it reaches a terminal.
pub fn show(records: &Records) -> String {
    let mut text = String::new();
    let unended = unended(&records.events);
    let mut calls = Calls::default();
    for (index, event) in records.events.iter().enumerate() {
        if !calls.take(&mut text, &event.kind, unended.contains(&index)) {
            one(&mut text, event);
        }
    }
    calls.give_up(&mut text);
    for problem in &records.problems {
        writeln!(text, "! line {} of the log: {}", problem.line, problem.what).expect(TAKES_ALL);
    }
    text
}

/// Writes the whole records of a log unchanged, one line each; returns how many.
pub fn raw(path: &Path, out: &mut impl Write) -> Result<u64, Error> {
    let file = log_file::open_log(path)?;
    let mut n_records = 0;
    let mut failed: Option<io::Error> = None;
    let scanned = record::scan(BufReader::new(file), |_, piece| {
        if let record::LinePiece::Record(value) = piece
            && failed.is_none()
        {
            let line = json_line(&value).expect("a JSON value is JSON");
            failed = writeln!(out, "{line}").err();
            n_records += 1;
        }
    });
    scanned
        .and(failed.map_or(Ok(n_records), Err))
        .map_err(Error::io("export", path))
}

const TAKES_ALL: &str = "a string takes all that is written";

/// Returns the starts of calls that never end. Some servers give every call the same id, so an end
/// belongs to the latest start.
fn unended(events: &[Event]) -> HashSet<usize> {
    let mut open: HashMap<&str, usize> = HashMap::new();
    let mut unended = HashSet::new();
    for (index, event) in events.iter().enumerate() {
        match &event.kind {
            Kind::CallStarted { call, .. } => unended.extend(open.insert(call, index)),
            Kind::CallFinished { call, .. } => {
                open.remove(call.as_str());
            }
            _ => {}
        }
    }
    unended.extend(open.into_values());
    unended
}

/// Calls in progress. A call is shown at its end, since parallel calls end in any order.
#[derive(Default)]
struct Calls<'a> {
    /// The model's calls by their ids: a call that was refused never started, so its arguments are
    /// nowhere else.
    asked: HashMap<&'a str, &'a ToolCall>,
    open: Vec<CallInProgress<'a>>,
}

#[derive(Default)]
struct CallInProgress<'a> {
    call: &'a str,
    /// The decision, as text.
    decided: String,
    /// The user's answer, as text.
    answered: String,
    /// What a program of it asks permission for.
    wanted: Option<String>,
    /// What it was denied while it ran.
    refused: Vec<&'a str>,
    began: Option<(&'a str, &'a str)>,
    /// The programs it started, as text.
    ran: String,
}

impl<'a> Calls<'a> {
    /// Handles an event of a call; returns whether it was one. `is_last` says that the call which
    /// starts here never ends.
    fn take(&mut self, text: &mut String, kind: &'a Kind, is_last: bool) -> bool {
        match kind {
            Kind::AssistantMessage { calls, .. } => {
                self.give_up(text);
                self.asked
                    .extend(calls.iter().map(|call| (call.id.as_str(), call)));
                return false;
            }
            Kind::RunFinished { .. } | Kind::UserMessage { .. } => {
                self.give_up(text);
                return false;
            }
            Kind::CallDecided {
                call,
                name,
                decision,
                reason,
            } if *decision != Decision::Allow => {
                let open = self.open(call);
                if open.began.is_some() {
                    open.refused.push(reason);
                } else {
                    let decision = if *decision == Decision::Deny {
                        "denied"
                    } else {
                        "asked about"
                    };
                    open.decided = format!("  {name} was {decision}: {reason}\n");
                }
            }
            Kind::PermissionAsked { call, capabilities } => {
                let wanted: Vec<String> =
                    capabilities.iter().filter_map(Capability::wanted).collect();
                if !wanted.is_empty() {
                    self.open(call).wanted = Some(wanted.join(", and "));
                }
            }
            Kind::PermissionAnswered {
                call,
                answer,
                reason,
            } => {
                let answer = match answer {
                    Answer::Allow => "allowed it",
                    Answer::AllowSession => "allowed it for the session",
                    Answer::AllowEdits => "allowed it, and all edits for the session",
                    Answer::AllowAlways => "allowed it for good in this project",
                    Answer::Deny => "denied it",
                    Answer::DenySession => "denied it for the session",
                    Answer::Quit => "denied it and ended the session",
                };
                let reason = reason
                    .as_ref()
                    .map_or_else(String::new, |reason| format!(": {reason}"));
                let open = self.open(call);
                let wanted = open
                    .wanted
                    .take()
                    .map(|wanted| format!("{wanted}: "))
                    .unwrap_or_default();
                // A call may be asked about again while it runs.
                writeln!(open.answered, "   {wanted}you {answer}{reason}").expect(TAKES_ALL);
            }
            Kind::CallStarted {
                call,
                name,
                arguments,
            } => {
                self.open(call).began = Some((name, arguments));
                if is_last {
                    let open = self.close(call);
                    head(text, name, arguments);
                    text.push_str(&open.answered);
                    text.push_str("   interrupted\n");
                }
            }
            Kind::CallRan {
                call,
                programs,
                n_more,
                hook: None,
                background: None,
            } => self.open(call).ran = ran(programs, *n_more),
            Kind::CallFinished {
                call,
                name,
                status,
                result,
                artifact,
                duration_ms,
                ..
            } => {
                let open = self.close(call);
                let asked = self
                    .asked
                    .get(call.as_str())
                    .map_or("", |call| call.arguments.as_str());
                let (name, arguments) = open.began.unwrap_or((name, asked));
                head(text, name, arguments);
                // The decision is part of the result, which the model reads too.
                text.push_str(&open.answered);
                if let Some(wanted) = &open.wanted {
                    writeln!(text, "   {wanted}: not answered").expect(TAKES_ALL);
                }
                writeln!(
                    text,
                    "   {}, {}",
                    status_word(*status),
                    duration(*duration_ms)
                )
                .expect(TAKES_ALL);
                let shown = first_lines(result);
                if !result.trim().is_empty() {
                    writeln!(text, "   {shown}").expect(TAKES_ALL);
                }
                for reason in open
                    .refused
                    .iter()
                    .filter(|reason| !shown.contains(**reason))
                {
                    writeln!(text, "   denied: {reason}").expect(TAKES_ALL);
                }
                text.push_str(&open.ran);
                if let Some(artifact) = artifact {
                    writeln!(text, "   all of it: artifact {artifact}").expect(TAKES_ALL);
                }
            }
            _ => return false,
        }
        true
    }

    fn open(&mut self, call: &'a str) -> &mut CallInProgress<'a> {
        let at = self
            .open
            .iter()
            .position(|open| open.call == call)
            .unwrap_or(self.open.len());
        if at == self.open.len() {
            self.open.push(CallInProgress {
                call,
                ..CallInProgress::default()
            });
        }
        &mut self.open[at]
    }

    fn close(&mut self, call: &str) -> CallInProgress<'a> {
        let at = self.open.iter().position(|open| open.call == call);
        at.map_or_else(CallInProgress::default, |at| self.open.remove(at))
    }

    /// Shows calls that neither started nor ended.
    fn give_up(&mut self, text: &mut String) {
        for open in self.open.drain(..).filter(|open| open.began.is_none()) {
            text.push_str(&open.decided);
            text.push_str(&open.answered);
        }
    }
}

/// Lists the programs that ran, one on a line.
fn ran(programs: &[Program], n_more: u64) -> String {
    let mut text = String::new();
    for program in programs.iter().take(LINES_MAX) {
        let words = program_words(program);
        let times = if program.count > 1 {
            format!(" ({} times)", program.count)
        } else {
            String::new()
        };
        let code = program
            .exit_code
            .filter(|&code| code != 0)
            .map_or_else(String::new, |code| format!(" [exit code {code}]"));
        writeln!(text, "   ran {words}{times}{code}").expect(TAKES_ALL);
    }
    let others = programs
        .iter()
        .skip(LINES_MAX)
        .fold(n_more, |sum, program| sum.saturating_add(program.count));
    if others > 0 {
        writeln!(text, "   ran {others} more").expect(TAKES_ALL);
    }
    text
}

fn head(text: &mut String, name: &str, arguments: &str) {
    writeln!(
        text,
        "\n{}",
        format!("-> {name} {}", first_lines(arguments)).trim_end()
    )
    .expect(TAKES_ALL);
}

fn one(text: &mut String, event: &Event) {
    match &event.kind {
        Kind::SessionStarted {
            session,
            podbay,
            project,
            mode,
            task,
            ..
        } => {
            let at = event.at.strftime("%Y-%m-%d %H:%M:%S UTC");
            writeln!(
                text,
                "session {session}, {at}\nproject {project}, mode {mode}, podbay {podbay}"
            )
            .expect(TAKES_ALL);
            if let Some(task) = task {
                said(text, "task", task);
            }
        }
        Kind::ModelReady { model, context, .. } => {
            let context = context
                .map(|tokens| format!(", {tokens} tokens of context"))
                .unwrap_or_default();
            writeln!(text, "model {model}{context}").expect(TAKES_ALL);
        }
        Kind::ToolModeChanged { from, to, reason } => {
            writeln!(
                text,
                "! tool calls: {} instead of {}: {reason}",
                to.as_str(),
                from.as_str()
            )
            .expect(TAKES_ALL);
        }
        Kind::SandboxStarted {
            image,
            duration_ms,
            hidden,
            tracked,
        } => {
            writeln!(
                text,
                "sandbox {image}, started in {}",
                duration(*duration_ms)
            )
            .expect(TAKES_ALL);
            if !hidden.is_empty() {
                writeln!(text, "masked: {}", hidden_names(hidden, tracked).join(", "))
                    .expect(TAKES_ALL);
            }
        }
        Kind::SandboxLost { reason } => {
            writeln!(text, "! the sandbox ended: {reason}").expect(TAKES_ALL);
        }
        Kind::ContextAdded {
            text: context,
            instructions,
            ..
        } => {
            if !instructions.is_empty() {
                writeln!(text, "instructions {}", instructions.join(", ")).expect(TAKES_ALL);
            }
            writeln!(
                text,
                "(the model was told {} bytes about the project)",
                context.len()
            )
            .expect(TAKES_ALL);
        }
        Kind::SessionResumed { podbay, mode, .. } => {
            let at = event.at.strftime("%Y-%m-%d %H:%M:%S UTC");
            writeln!(text, "\nresumed {at}, mode {mode}, podbay {podbay}").expect(TAKES_ALL);
        }
        Kind::SessionForked { from } => {
            writeln!(text, "\n(copied from session {from} up to here)").expect(TAKES_ALL);
        }
        Kind::SessionSpawned { parent, agent, .. } => {
            writeln!(text, "agent {agent} of session {parent}").expect(TAKES_ALL);
        }
        Kind::AgentStarted {
            session,
            agent,
            description,
            ..
        } => {
            writeln!(
                text,
                "\n(the agent {agent} was started, session {session}: {description})"
            )
            .expect(TAKES_ALL);
        }
        Kind::AgentFinished {
            agent,
            status,
            limit,
            verdict,
            turns,
            tool_calls,
            usage,
            error,
            ..
        } => {
            let end = AgentEnd {
                agent,
                status: *status,
                limit: *limit,
                verdict: *verdict,
                turns: *turns,
                tool_calls: *tool_calls,
                usage,
            };
            let error = error
                .as_ref()
                .map_or_else(String::new, |error| format!(": {error}"));
            writeln!(text, "({}{error})", end.words()).expect(TAKES_ALL);
        }
        Kind::SessionRewound { turns } => {
            writeln!(text, "\n(the last {turns} messages were rewound)").expect(TAKES_ALL);
        }
        Kind::NoteAdded { text: note } => {
            writeln!(text, "\n(the model was told: {})", first_lines(note)).expect(TAKES_ALL);
        }
        Kind::ContextNear { used, window, .. } => {
            let percent = used.saturating_mul(100) / (*window).max(1);
            writeln!(
                text,
                "! {percent} % of the model's window are used ({used} of {window} tokens)"
            )
            .expect(TAKES_ALL);
        }
        Kind::ResultsEvicted { results } => {
            let were = if results.len() == 1 { "was" } else { "were" };
            writeln!(
                text,
                "(made room: {} {were} set aside)",
                n("result", results.len())
            )
            .expect(TAKES_ALL);
        }
        Kind::ConversationCompacted {
            summary,
            before,
            after,
            ..
        } => {
            writeln!(text, "(made room: {before} -> {after} tokens; the model reads this instead of what is above)").expect(TAKES_ALL);
            said(text, "summary", summary);
        }
        Kind::UserMessage { text: message, .. } | Kind::UserMessageAdded { text: message } => {
            said(text, "you", message);
        }
        Kind::AssistantMessage {
            text: message,
            interrupted,
            ..
        } => {
            if !message.trim().is_empty() {
                said(text, "model", message);
            }
            if *interrupted {
                text.push_str("(cut short)\n");
            }
        }
        Kind::LimitReached { limit, at_end } => {
            let how = if *at_end { "reached" } else { "near" };
            writeln!(text, "! the limit of {} is {how}", limit_word(*limit)).expect(TAKES_ALL);
        }
        Kind::Interrupted => text.push_str("! interrupted\n"),
        Kind::NetworkAttempted(attempt) => {
            writeln!(text, "network: {}", attempt.words()).expect(TAKES_ALL);
        }
        kind @ Kind::GitTaken { .. } => {
            writeln!(
                text,
                "git: {}",
                git_taken_whole(kind)
                    .unwrap_or_default()
                    .replace('\n', "\n   ")
            )
            .expect(TAKES_ALL);
        }
        Kind::ProjectChanged(changes) => {
            writeln!(text, "changed: {}", changes.words()).expect(TAKES_ALL);
        }
        Kind::Warning { message } => writeln!(text, "! {message}").expect(TAKES_ALL),
        Kind::RunFinished {
            status,
            exit_code,
            turns,
            tool_calls,
            usage,
            error,
            duration_ms,
            ..
        } => {
            let status = run_word(*status);
            let tokens = usage.total();
            let (turns, calls) = (n("turn", *turns as usize), n("call", *tool_calls as usize));
            write!(
                text,
                "\n{status} (exit code {exit_code}): {turns}, {calls}, {tokens} tokens, "
            )
            .expect(TAKES_ALL);
            writeln!(text, "{}", duration(*duration_ms)).expect(TAKES_ALL);
            if let Some(error) = error {
                writeln!(text, "error: {error}").expect(TAKES_ALL);
            }
        }
        Kind::ImageShown {
            text: words,
            artifact,
            ..
        } => {
            writeln!(
                text,
                "\n(the model was shown an image, artifact {artifact}: {})",
                first_lines(words)
            )
            .expect(TAKES_ALL);
        }
        Kind::ImagesTakenOut { .. } => {
            text.push_str("(the images were taken out of the conversation)\n");
        }
        // A hook that passed is visible by its effects.
        Kind::HookEnded {
            moment,
            run,
            outcome: HookOutcome::Blocked,
            said,
            ..
        } => {
            writeln!(
                text,
                "! the hook `{run}` ({}) blocked it: {}",
                moment.as_str(),
                first_lines(said)
            )
            .expect(TAKES_ALL);
        }
        Kind::CallRan {
            programs,
            n_more,
            background: Some(command),
            ..
        } => {
            write!(
                text,
                "the background command `{command}` started\n{}",
                ran(programs, *n_more)
            )
            .expect(TAKES_ALL);
        }
        Kind::CallRan {
            programs,
            n_more,
            hook: Some(hook),
            ..
        } => {
            write!(
                text,
                "the hook `{hook}` started\n{}",
                ran(programs, *n_more)
            )
            .expect(TAKES_ALL);
        }
        Kind::Unknown => text.push_str("(a record that this version does not know)\n"),
        Kind::ModeChanged { mode } => {
            writeln!(text, "\n(mode {mode} from here on)").expect(TAKES_ALL);
        }
        Kind::PlanModeChanged { on, ended, .. } => {
            writeln!(text, "\n({})", plan_mode_words(*on, ended)).expect(TAKES_ALL);
        }
        Kind::PlanMade {
            version,
            text: plan,
            edited,
        } => {
            let by = if *edited {
                ", as the user changed it"
            } else {
                ""
            };
            said(text, &format!("plan {version}{by}"), plan);
        }
        Kind::PlanDecided {
            version,
            decision,
            reason,
        } => {
            let words = plan_decided_words(*version, *decision, reason.as_deref());
            writeln!(text, "\n({words})").expect(TAKES_ALL);
        }
        Kind::MemorySaved {
            memory,
            replaced,
            pruned,
        } => {
            let words = memory_saved_words(memory, *replaced, pruned);
            said(text, &words, &memory.content);
        }
        // A warning beside it says the same.
        Kind::DenialsEscalated { .. }
        | Kind::PromptBegun { .. }
        | Kind::HookEnded { .. }
        | Kind::ModelAsked
        | Kind::CheckpointMade { .. }
        | Kind::AnswerOpen(_)
        | Kind::TaskEnded(_)
        | Kind::CallDecided { .. }
        | Kind::PermissionAsked { .. }
        | Kind::PermissionAnswered { .. }
        | Kind::QuestionAsked { .. }
        | Kind::CallStarted { .. }
        | Kind::CallRan { .. }
        | Kind::CallFinished { .. }
        | Kind::TextDelta { .. }
        | Kind::ThinkingDelta { .. }
        | Kind::CallOutput { .. }
        | Kind::AgentEvent { .. }
        | Kind::Progress(_) => {}
    }
}

fn said(text: &mut String, who: &str, message: &str) {
    writeln!(text, "\n{who}:\n{}", message.trim()).expect(TAKES_ALL);
}

fn first_lines(text: &str) -> String {
    let mut lines: Vec<&str> = text.trim_end().lines().collect();
    let more = lines.len().saturating_sub(LINES_MAX);
    lines.truncate(LINES_MAX);
    let mut shown = lines.join("\n   ");
    if more > 0 {
        write!(shown, "\n   … {more} more lines").expect(TAKES_ALL);
    }
    shown
}

fn duration(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1000),
    }
}

fn status_word(status: CallStatus) -> &'static str {
    match status {
        CallStatus::Ok => "ok",
        CallStatus::Failed => "failed",
        CallStatus::Conflict => "conflict",
        CallStatus::TimedOut => "timed out",
        CallStatus::Invalid => "invalid",
        CallStatus::Denied => "denied",
        CallStatus::Cancelled => "cancelled",
    }
}

fn run_word(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Completed => "completed",
        RunStatus::Failed => "failed",
        RunStatus::Limit => "stopped at a limit",
        RunStatus::Blocked => "blocked",
        RunStatus::Interrupted => "interrupted",
    }
}

fn limit_word(limit: LimitKind) -> &'static str {
    match limit {
        LimitKind::Turns => "turns",
        LimitKind::Time => "time",
        LimitKind::Tokens => "tokens",
        LimitKind::Cost => "cost",
        LimitKind::Stuck => "repeated calls",
        LimitKind::Context => "context",
    }
}

/// Returns a count with its noun.
pub(super) fn n(what: &str, count: usize) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
