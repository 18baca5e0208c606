use std::collections::HashMap;
use std::io;
use std::io::Write;

use podbay_event::CUT_OFF;
use podbay_event::CallStatus;
use podbay_event::Decision;
use podbay_event::Event;
use podbay_event::Kind;

use super::Paint;
use super::Progress;
use super::agent_lines::AgentLines;
use super::agent_lines::ShowCalls;
use super::agent_lines::innermost;
use super::call;
use super::note;
use super::note::SHOWN_LINES;
use super::note::Tone;
use super::output::Output;
use super::run_summary::run_summary;
use super::run_summary::run_word;
use super::text;
use super::text::Cleaner;
use super::turn_summary::TurnCount;

/// Said of a message that broke off.
const CUT_SHORT: &str = "(cut short)";

/// How events are to be shown.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// For the error stream; the answer itself is never coloured.
    pub paint: Paint,
    /// Show the model's words as they come. Without it the output stream gets the answer alone,
    /// when it is complete: that is what a script wants that reads it. A run's is the one that its
    /// end tells, put together where it came in pieces.
    pub stream: bool,
    /// Show the output of commands as it comes.
    pub tool_output: bool,
    pub thinking: bool,
}

/// Shows events as text: the model's answer on `out`, everything else on `err`.
pub struct Plain<O, E> {
    out: O,
    err: E,
    look: Look,
    progress: Progress,
    message: Message,
    /// Something was written on `out` before, so that a blank line is due.
    answered: bool,
    /// What is said next continues what was said last, or says it again.
    continues: bool,
    /// Each message without a call is an answer, as in a chat.
    each: bool,
    /// Messages that are an answer of their own or pieces of one, where only the end tells.
    said: Vec<Said>,
    thinking: Option<Cleaner>,
    calls: HashMap<String, Call>,
    /// What the calls of the last message are, in words, by their ids.
    wanted: HashMap<String, String>,
    agents: AgentLines,
    turn: TurnCount,
}

/// The model's message under way.
#[derive(Default)]
struct Message {
    cleaner: Cleaner,
    /// What is not yet shown: newlines that may turn out to be the last ones, or all of it where
    /// nothing is streamed.
    held: String,
    shown: bool,
    streamed: bool,
}

struct Said {
    text: String,
    interrupted: bool,
}

struct Call {
    head: String,
    output: Output,
    /// How many programs it started.
    n_ran: u64,
}

impl<O: Write, E: Write> Plain<O, E> {
    pub fn new(out: O, err: E, look: Look, progress: Progress) -> Self {
        Self {
            out,
            err,
            look,
            progress,
            message: Message::default(),
            answered: false,
            continues: false,
            each: false,
            said: Vec::new(),
            thinking: None,
            calls: HashMap::new(),
            wanted: HashMap::new(),
            agents: AgentLines::default(),
            turn: TurnCount::default(),
        }
    }

    /// Takes each message without a call for an answer: in a chat the end is too late for it.
    #[must_use]
    pub fn with_each_answer(self) -> Self {
        Self { each: true, ..self }
    }

    /// Shows one event, at once.
    pub fn event(&mut self, event: &Event) -> io::Result<()> {
        if let Kind::Progress(progress) = &event.kind {
            self.progress.show(progress);
            return Ok(());
        }
        if !matches!(event.kind, Kind::ThinkingDelta { .. }) {
            self.end_thinking()?;
        }
        // A spinner must go before the bars are taken away (they cannot be changed meanwhile), and
        // before a question is asked.
        if matches!(
            innermost(&event.kind),
            Kind::CallFinished { .. }
                | Kind::PermissionAsked { .. }
                | Kind::QuestionAsked { .. }
                | Kind::RunFinished { .. }
        ) {
            self.progress.working(None);
        }
        let progress = self.progress.clone();
        progress.suspend(|| self.show(&event.kind))?;
        if let Some(summary) = self.turn.take(&event.kind).filter(|_| self.each) {
            self.progress.working(None);
            self.remark(&summary)?;
        }
        if let Some(now) = self.agents.now(&event.kind) {
            self.progress.working(Some(&now));
        }
        if let Kind::CallStarted { call, .. } = &event.kind
            && !self.look.tool_output
        {
            let head = self
                .calls
                .get(call)
                .map(|call| call.head.as_str())
                .unwrap_or_default();
            self.progress
                .working(Some(head.lines().next().unwrap_or_default()));
        }
        Ok(())
    }

    /// Shows a line of the program's own, which is no event.
    pub fn remark(&mut self, words: &str) -> io::Result<()> {
        let line = self.look.paint.dim(words);
        let progress = self.progress.clone();
        progress.suspend(|| self.note(&line))
    }

    /// Returns the streams, when nothing more comes.
    pub fn finish(mut self) -> io::Result<(O, E)> {
        self.progress.working(None);
        self.end_thinking()?;
        self.end_message(None, false, false)?;
        // With no end nobody says what of it the answer is.
        for said in std::mem::take(&mut self.said) {
            self.print(&said.text)?;
        }
        Ok((self.out, self.err))
    }

    fn show(&mut self, kind: &Kind) -> io::Result<()> {
        let paint = self.look.paint;
        match kind {
            Kind::TextDelta { text } => {
                self.message.streamed = true;
                let text = self.message.cleaner.push(text.as_bytes());
                self.answer(&text)
            }
            Kind::ThinkingDelta { text } => self.think(text),
            Kind::AssistantMessage {
                text,
                calls,
                interrupted,
                ..
            } => {
                self.wanted = calls
                    .iter()
                    .map(|call| (call.id.clone(), call::head(&call.name, &call.arguments)))
                    .collect();
                let whole = (!self.message.streamed).then_some(text.as_str());
                self.end_message(whole, !calls.is_empty(), *interrupted)?;
                self.continues = *interrupted;
                // Of what is kept until the end it is said then.
                if *interrupted && !self.waits() {
                    self.note(&paint.warn(CUT_SHORT))
                } else {
                    Ok(())
                }
            }
            Kind::NoteAdded { text } => {
                self.continues |= text == CUT_OFF;
                Ok(())
            }
            Kind::CallStarted {
                call,
                name,
                arguments,
            } => {
                let head = call::head(name, arguments);
                if self.look.tool_output {
                    self.note(&format!("-> {head}"))?;
                }
                self.calls.insert(
                    call.clone(),
                    Call {
                        head,
                        output: Output::default(),
                        n_ran: 0,
                    },
                );
                Ok(())
            }
            Kind::CallOutput { call, text } if self.look.tool_output => {
                let lines = self
                    .calls
                    .get_mut(call)
                    .map(|call| call.output.push(text))
                    .unwrap_or_default();
                self.lines(&lines)
            }
            // What a hook or a background command started is in the log.
            Kind::CallRan {
                call,
                programs,
                n_more,
                hook: None,
                background: None,
            } => {
                if let Some(call) = self.calls.get_mut(call) {
                    call.n_ran = programs
                        .iter()
                        .fold(*n_more, |sum, program| sum.saturating_add(program.count));
                }
                Ok(())
            }
            Kind::CallFinished {
                call,
                name,
                status,
                result,
                duration_ms,
                ..
            } => self.finished(call, name, *status, result, *duration_ms),
            Kind::CallDecided {
                name,
                call,
                decision: Decision::Deny,
                reason,
            } => {
                let wanted = self.wanted.remove(call);
                let begun = self.calls.get(call).map(|call| call.head.clone());
                let head = wanted.or(begun).unwrap_or_else(|| text::line(name));
                self.note(&paint.warn(&format!(
                    "denied: {head}: {}",
                    call::bounded(reason, SHOWN_LINES)
                )))
            }
            // What became of a run's changes is said behind it, with how they are decided on.
            Kind::ProjectChanged(_) if !self.each => Ok(()),
            // The error is not shown here: whoever began the run says it once, with its cause and
            // its remedy.
            Kind::RunFinished {
                status,
                response,
                turns,
                tool_calls,
                usage,
                limit,
                duration_ms,
                ..
            } => {
                self.end_message(None, false, false)?;
                if self.waits() {
                    let response = text::clean(response);
                    self.leave_behind(&response)?;
                    self.print(&response)?;
                }
                let status = run_word(*status, *limit);
                let sum = run_summary(*turns, *tool_calls, usage, *duration_ms);
                self.note(&paint.dim(&format!("{status}: {sum}")))
            }
            Kind::AgentStarted { .. } | Kind::AgentEvent { .. } | Kind::AgentFinished { .. } => {
                match self.agents.line(kind, ShowCalls::Ended, paint) {
                    Some(line) => self.note(&line),
                    None => Ok(()),
                }
            }
            kind => match note::note(kind) {
                Some((tone, words)) => {
                    let words = match tone {
                        Tone::Plain => words,
                        Tone::Dim => paint.dim(&words),
                        Tone::Warn => paint.warn(&words),
                        Tone::Bad => paint.bad(&words),
                    };
                    self.note(&words)
                }
                None => Ok(()),
            },
        }
    }

    fn finished(
        &mut self,
        call: &str,
        name: &str,
        status: CallStatus,
        result: &str,
        duration_ms: u64,
    ) -> io::Result<()> {
        let paint = self.look.paint;
        let n_ran = self.calls.get(call).map_or(0, |call| call.n_ran);
        let end = call::end(status, duration_ms, n_ran, paint);
        let failed = matches!(
            status,
            CallStatus::Failed | CallStatus::Conflict | CallStatus::TimedOut | CallStatus::Invalid
        );
        let known = self.calls.remove(call);
        if self.look.tool_output
            && let Some(call) = known
        {
            let has_lines = call.output.has_lines();
            let rest = call.output.finish();
            let has_printed = has_lines || !rest.is_empty();
            self.lines(&rest)?;
            self.note(&format!("   {end}"))?;
            // What it printed is on the screen; what became of one that printed nothing is not.
            return if failed && has_printed {
                self.why(&call::ending(&text::clean(result)))
            } else {
                self.failure(failed, result)
            };
        }
        let head = known.map_or_else(|| text::line(name), |call| call.head);
        self.note(&format!("-> {head} {end}"))?;
        self.failure(failed, result)
    }

    /// Shows what became of a call that failed.
    fn failure(&mut self, failed: bool, result: &str) -> io::Result<()> {
        if failed {
            self.why(&call::result(&text::clean(result), SHOWN_LINES))
        } else {
            Ok(())
        }
    }

    fn why(&mut self, words: &str) -> io::Result<()> {
        if words.is_empty() {
            Ok(())
        } else {
            self.note(&self.look.paint.dim(&format!("   {words}")))
        }
    }

    /// Takes more of the answer. Blank lines at its start and end never come out.
    fn answer(&mut self, text: &str) -> io::Result<()> {
        self.message.held.push_str(text);
        if !self.look.stream {
            return Ok(());
        }
        let held = std::mem::take(&mut self.message.held);
        let body = if self.message.shown {
            held.as_str()
        } else {
            held.trim_start_matches(['\n', ' ', '\t'])
        };
        let end = body.trim_end().len();
        let (now, later) = body.split_at(end);
        if !now.is_empty() {
            let is_first = !std::mem::replace(&mut self.message.shown, true);
            if is_first && std::mem::replace(&mut self.answered, true) && !self.continues {
                self.out.write_all(b"\n")?;
            }
            self.out.write_all(now.as_bytes())?;
            self.out.flush()?;
        }
        later.clone_into(&mut self.message.held);
        Ok(())
    }

    /// Ends the message under way; `whole` is its text where none of it was streamed.
    fn end_message(
        &mut self,
        whole: Option<&str>,
        has_calls: bool,
        interrupted: bool,
    ) -> io::Result<()> {
        let mut rest = whole
            .map(|text| self.message.cleaner.push(text.as_bytes()))
            .unwrap_or_default();
        rest.push_str(&self.message.cleaner.finish());
        self.answer(&rest)?;
        let message = std::mem::take(&mut self.message);
        if message.shown {
            self.out.write_all(b"\n")?;
        } else if !self.look.stream {
            let text = message.held.trim();
            if text.is_empty() {
                return Ok(());
            }
            // Words before a call are about the work; the answer is what comes with no call.
            if has_calls {
                self.leave_behind("")?;
                return self.note(text);
            }
            if self.waits() {
                self.said.push(Said {
                    text: text.to_owned(),
                    interrupted,
                });
                return Ok(());
            }
            return self.print(text);
        }
        self.out.flush()
    }

    /// Returns whether only the end tells what the answer is.
    fn waits(&self) -> bool {
        !self.look.stream && !self.each
    }

    /// Shows beside the answer what was said and is no part of it.
    fn leave_behind(&mut self, answer: &str) -> io::Result<()> {
        for said in std::mem::take(&mut self.said) {
            if !answer.contains(&said.text) {
                self.note(&said.text)?;
                if said.interrupted {
                    self.note(&self.look.paint.warn(CUT_SHORT))?;
                }
            }
        }
        Ok(())
    }

    /// Prints a whole answer.
    fn print(&mut self, answer: &str) -> io::Result<()> {
        let answer = answer.trim();
        if !answer.is_empty() {
            let blank = if std::mem::replace(&mut self.answered, true) && !self.continues {
                "\n"
            } else {
                ""
            };
            writeln!(self.out, "{blank}{answer}")?;
        }
        self.out.flush()
    }

    fn think(&mut self, text: &str) -> io::Result<()> {
        if !self.look.thinking {
            return Ok(());
        }
        let text = self.thinking.get_or_insert_default().push(text.as_bytes());
        write!(self.err, "{}", self.look.paint.dim(&text))?;
        self.err.flush()
    }

    fn end_thinking(&mut self) -> io::Result<()> {
        let Some(mut cleaner) = self.thinking.take() else {
            return Ok(());
        };
        let rest = cleaner.finish();
        writeln!(self.err, "{}", self.look.paint.dim(&rest))?;
        self.err.flush()
    }

    fn lines(&mut self, lines: &[String]) -> io::Result<()> {
        for line in lines {
            let line = self.look.paint.dim(&format!("   {line}"));
            self.note(&line)?;
        }
        Ok(())
    }

    /// Writes a line that is not the answer.
    fn note(&mut self, line: &str) -> io::Result<()> {
        if self.message.shown {
            // The answer is in the middle of a line, which on a terminal is this one.
            writeln!(self.err)?;
        }
        writeln!(self.err, "{line}")?;
        self.err.flush()
    }
}
