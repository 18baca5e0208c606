//! One request and what is recorded of it.

use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use super::Agent;
use super::Failure;
use super::Interrupt;
use super::budget::LEAST_ANSWER;
use super::budget::last_word;
use super::early::Starter;
use super::task::Task;
use crate::event::Kind;
use crate::event::LimitKind;
use crate::event::Progress;
use crate::event::Unit;
use crate::event::Usage;
use crate::llm;
use crate::llm::Finish;
use crate::llm::Prompt;
use crate::llm::Reply;
use crate::llm::Request;
use crate::llm::Update;

impl Agent {
    /// Lets the model say where things stand, without tools. That it fails now is no news worth an error of its own.
    pub(super) async fn last_answer(&mut self, task: &mut Task, kind: LimitKind, text: &str, interrupt: &Interrupt) -> Option<Failure> {
        if kind == LimitKind::Context {
            // There is no room for another word; what was said last stands.
            return None;
        }
        if self.options.max_turns > 0 && task.spent.turns >= self.options.max_turns {
            // The only turn was the last one.
            return None;
        }
        self.note(&last_word(kind, text));
        let at_most = self.left(task, interrupt).await.map(|(_, left)| left.max(LEAST_ANSWER));
        let request = Request { no_tools: true, max_tokens: Some(self.last_answer_tokens()), at_most, ..Request::default() };
        task.spent.turns += 1;
        match self.ask(task, &request, self.options.time_for_last_answer(), interrupt).await {
            Ok(reply) => {
                if reply.finish == Finish::ContentFilter {
                    self.emit(Kind::Warning { message: "the model server's content filter cut the last answer".to_owned() });
                }
                // Half an answer from before is more than none.
                if !reply.text.trim().is_empty() {
                    task.response = reply.text;
                }
                None
            }
            Err(error) if matches!(error.root(), llm::Error::Cancelled) => Some(Failure::Model(error)),
            Err(error) => {
                self.emit(Kind::Warning { message: format!("no summary: {}", error.root()) });
                None
            }
        }
    }

    /// Sends the conversation and records what comes back.
    pub(super) async fn ask(
        &mut self,
        task: &mut Task,
        request: &Request,
        within: Duration,
        interrupt: &Interrupt,
    ) -> Result<Reply, llm::Error> {
        let begun = Instant::now();
        let sink = Arc::clone(&self.sink);
        let cancel = interrupt.step();
        let mut early = Starter::new(&self.pipeline, &self.places, &cancel);
        let mut show = |update: Update| {
            match &update {
                Update::CallReady(ready) => early.take(ready),
                Update::Retrying { .. } | Update::Loading { .. } => early.anew(),
                _ => {}
            }
            if let Some(kind) = shown(update) {
                sink(kind.into());
            }
        };
        self.emit(Kind::ModelAsked);
        self.conversation.asked();
        let outcome = self.client.stream(self.conversation.prompt(), request, &mut show, &cancel, within).await;
        interrupt.idle();
        let (mut reply, error) = match outcome {
            Ok(reply) => (reply, None),
            // What came before it broke off was shown, so it is recorded too.
            Err(error) => (error.partial().cloned().unwrap_or_default(), Some(error)),
        };
        // Made again when it was asked about, it was meant, whatever follows it.
        if reply.unsure.as_ref().is_some_and(|unsure| task.is_confirmed(&unsure.calls)) {
            task.asked.clear();
            reply.confirm();
        }
        let n_bytes = self.conversation.prompt().n_bytes();
        let interrupted = error.is_some() || reply.finish == Finish::Interrupted;
        if interrupted || request.no_tools || reply.finish == Finish::ContentFilter {
            // They will not be carried out, and a conversation in which a call has no result is refused.
            reply.calls.clear();
        }
        task.early = early.end(&reply.calls).await;
        let usage = match reply.usage.total() {
            0 => self.client.options().price.priced(estimate(self.conversation.prompt(), &reply)),
            _ => reply.usage,
        };
        task.is_unpriced |= error.is_none() && usage.cost_usd.is_none();
        if error.is_none() || !reply.text.is_empty() {
            task.spent.usage += usage;
            self.emit(Kind::AssistantMessage {
                text: reply.text.clone(),
                thinking: reply.thinking.clone(),
                calls: reply.calls.clone(),
                raw: reply.raw.clone(),
                usage,
                interrupted,
                duration_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            });
            if !reply.text.is_empty() || !reply.calls.is_empty() {
                self.conversation.push(reply.message());
            }
        }
        if error.is_none() {
            self.gauge.counted(&reply.usage, n_bytes, self.conversation.prompt().n_bytes());
        }
        error.map_or(Ok(reply), Err)
    }

    /// Returns how long a last answer may be: a few paragraphs, unless answers are to be shorter still.
    fn last_answer_tokens(&self) -> u64 {
        let set = self.client.options().max_output_tokens.and_then(|tokens| u64::try_from(tokens).ok());
        set.unwrap_or(1024).min(1024)
    }

    pub(super) fn time_left(&self, task: &Task) -> Duration {
        let most = self.client.options().request_timeout();
        match self.options.timeout.get() {
            0 => most,
            seconds => Duration::from_secs(seconds).saturating_sub(task.begun.elapsed()).min(most),
        }
    }
}

fn shown(update: Update) -> Option<Kind> {
    match update {
        Update::Text(text) => Some(Kind::TextDelta { text }),
        Update::Thinking(text) => Some(Kind::ThinkingDelta { text }),
        Update::CallStarted { .. } | Update::CallReady(_) => None,
        // What is read in a moment needs no bar.
        Update::Prefill { total, .. } if total < 1024 => None,
        Update::Prefill { done, total } => Some(Kind::Progress(Progress {
            task: "the model reads".to_owned(),
            done,
            total: Some(total),
            unit: Unit::Tokens,
            detail: String::new(),
            finished: done >= total,
        })),
        Update::Loading { waited } => Some(Kind::Progress(Progress {
            task: "the model server loads its model".to_owned(),
            done: waited.as_secs(),
            total: None,
            unit: Unit::Steps,
            detail: String::new(),
            finished: false,
        })),
        Update::Retrying { attempt, wait, reason } => {
            Some(Kind::Warning { message: format!("{reason}; trying again in {:.1} s (attempt {attempt})", wait.as_secs_f64()) })
        }
    }
}

/// Counts four bytes a token where the server counts nothing.
fn estimate(prompt: &Prompt, reply: &Reply) -> Usage {
    let written = reply.text.len() + reply.thinking.len() + reply.calls.iter().map(|call| call.arguments.len()).sum::<usize>();
    Usage { prompt: prompt.n_bytes() as u64 / 4, cached: 0, completion: written as u64 / 4, cost_usd: None }
}
