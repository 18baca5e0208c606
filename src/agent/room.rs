//! Keeping the conversation within the model's window.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Agent;
use super::Interrupt;
use super::summary;
use crate::event::Evicted;
use crate::event::Kind;
use crate::event::Progress;
use crate::event::Unit;
use crate::event::Usage;
use crate::llm::Finish;
use crate::llm::Message;
use crate::llm::Prompt;
use crate::llm::Request;

/// Share of the window that the messages kept as they are may take, in percent.
const TAIL_PERCENT: u64 = 25;
/// Results shorter than this are not worth setting aside, in bytes.
const LEAST_EVICTED: usize = 600;
/// Most tokens of a summary, and the share of the window it may take.
const SUMMARY_MAX: u64 = 1024;
/// What is known of a window that nobody has told, when the server refuses a conversation: it holds less than that.
const REFUSED_PERCENT: u64 = 95;

/// What became of making room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// The conversation fits, as far as anybody can tell.
    Enough,
    /// Nothing could be freed.
    None,
}

impl Agent {
    /// Looks how full the window is, before each request; warns, keeps a checkpoint, makes room.
    pub(super) async fn watch(&mut self, within: Duration, usage: &mut Usage, interrupt: &Interrupt) -> Room {
        let Some(window) = self.gauge.window(&self.client) else { return Room::Enough };
        let used = self.gauge.used(&self.conversation, &self.client, interrupt.run()).await;
        let percent = used.saturating_mul(100) / window;
        if let Some(passed) = self.gauge.passed(percent, &self.options.context_warnings) {
            self.emit(Kind::ContextNear { percent: passed, used, window });
        }
        if percent >= u64::from(self.options.checkpoint_percent) && !self.gauge.has_checkpoint {
            self.gauge.has_checkpoint = true;
            self.emit(Kind::CheckpointMade { summary: summary::compose(self.conversation.history(), None) });
        }
        let at = u64::from(self.options.compact_percent);
        if at == 0 || percent < at {
            return Room::Enough;
        }
        self.make_room(window, used, within, usage, interrupt).await
    }

    /// Makes room after the server has refused the conversation.
    pub(super) async fn refused(
        &mut self,
        said: (Option<u64>, Option<u64>),
        within: Duration,
        usage: &mut Usage,
        interrupt: &Interrupt,
    ) -> Room {
        self.gauge.refused(said.0, said.1, self.conversation.prompt().n_bytes());
        let used = self.gauge.used(&self.conversation, &self.client, interrupt.run()).await;
        // A window that was told may be that of all slots together: the refusal is what counts.
        let most = used.saturating_mul(REFUSED_PERCENT) / 100;
        let window = self.gauge.window(&self.client).map_or(most, |window| window.min(used.max(1)));
        self.make_room(window.max(1), used, within, usage, interrupt).await
    }

    /// Sets long old results aside; where that is not enough, a summary replaces all but the last messages.
    async fn make_room(&mut self, window: u64, before: u64, within: Duration, usage: &mut Usage, interrupt: &Interrupt) -> Room {
        let cancel = interrupt.run().clone();
        let n_bytes = self.conversation.prompt().n_bytes();
        let evicted = self.long_results(window);
        if !evicted.is_empty() {
            self.emit(Kind::ResultsEvicted { results: evicted.clone() });
            self.conversation.evict(&evicted);
            self.gauge.shrunk(before, n_bytes, self.conversation.prompt().n_bytes());
        }
        let now = self.gauge.used(&self.conversation, &self.client, &cancel).await;
        if !evicted.is_empty() && now.saturating_mul(100) / window < u64::from(self.options.checkpoint_percent) {
            return Room::Enough;
        }
        let history = self.conversation.history();
        let (head, tail) = (history.n_context(), self.tail(window));
        let n_replaced = history.messages().len().saturating_sub(head + tail);
        // A summary of a message or two is no shorter than they are.
        if n_replaced < 2 {
            return if now < before && now < window { Room::Enough } else { Room::None };
        }
        let words = self.summarize(window, now, within, usage, interrupt).await;
        if interrupt.is_ended() {
            return Room::Enough;
        }
        let summary = summary::compose(self.conversation.history(), words.as_deref());
        let n_bytes = self.conversation.prompt().n_bytes();
        self.conversation.compact(&summary, head, tail);
        self.gauge.shrunk(now, n_bytes, self.conversation.prompt().n_bytes());
        let after = self.gauge.used(&self.conversation, &self.client, &cancel).await;
        let short = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        self.emit(Kind::ConversationCompacted { summary, head: short(head), tail: short(tail), before, after });
        let compact = u64::from(if self.options.compact_percent == 0 { 100 } else { self.options.compact_percent });
        let frees = after.saturating_mul(10) < before.saturating_mul(9) && after.saturating_mul(100) < window.saturating_mul(compact);
        if frees { Room::Enough } else { Room::None }
    }

    /// Finds long results that are older than the last answers, and keeps each as an artifact.
    fn long_results(&self, window: u64) -> Vec<Evicted> {
        let history = self.conversation.history();
        let least = usize::try_from(window / 25).unwrap_or(usize::MAX).max(LEAST_EVICTED);
        let mut n_answers = 0;
        let mut evicted = Vec::new();
        for message in history.messages().rev() {
            match message {
                Message::Assistant { .. } => n_answers += 1,
                Message::ToolResult { call, name, text, .. } if n_answers >= self.options.keep_turns && text.len() > least => {
                    // What cannot be kept stays where it is.
                    if let Some(id) = self.pipeline.keep(call, text) {
                        let text = format!(
                            "[this result of {name} was set aside to make room ({} bytes); read_file with path \"artifact:{id}\" shows it]",
                            text.len()
                        );
                        evicted.push(Evicted { call: call.clone(), text });
                    }
                }
                _ => {}
            }
        }
        evicted.reverse();
        evicted
    }

    /// Returns how many messages at the end stay: those of the last answers, as far as they are small enough.
    fn tail(&self, window: u64) -> usize {
        let history = self.conversation.history();
        let most = usize::try_from(window.saturating_mul(4 * TAIL_PERCENT) / 100).unwrap_or(usize::MAX);
        let sizes: Vec<usize> = history.messages().rev().map(size).collect();
        let fits = |tail: &&usize| sizes[..**tail].iter().sum::<usize>() <= most;
        let tails = history.tails();
        let last = tails.len().saturating_sub(self.options.keep_turns as usize);
        tails[last..].iter().find(fits).copied().unwrap_or(0)
    }

    /// Has the model write its part of the summary; `None` where it cannot.
    async fn summarize(&self, window: u64, used: u64, within: Duration, usage: &mut Usage, interrupt: &Interrupt) -> Option<String> {
        let max_tokens = SUMMARY_MAX.min(window / 8).max(32);
        let step = |finished| Progress {
            task: "the model sums up the conversation".to_owned(),
            done: 0,
            total: None,
            unit: Unit::Steps,
            detail: String::new(),
            finished,
        };
        self.emit(Kind::Progress(step(false)));
        let prompt = self.conversation.prompt();
        // At the end of what the server has in its cache, where that fits; else of what it is told of it.
        let fits = used.saturating_add(max_tokens).saturating_add(200) < window;
        let asked = if fits {
            let mut prompt = prompt.clone();
            prompt.push(&Message::user(summary::ASK));
            prompt
        } else {
            let most = usize::try_from(window.saturating_mul(2)).unwrap_or(usize::MAX);
            let text = summary::transcript(self.conversation.history(), most);
            let mut prompt = Prompt::new("You sum up conversations.", &[], prompt.mode());
            prompt.push(&Message::user(format!("{text}\n{}", summary::ASK)));
            prompt
        };
        let request = Request { no_tools: true, max_tokens: Some(max_tokens), ..Request::default() };
        let cancel: CancellationToken = interrupt.step();
        let outcome = self.client.stream(&asked, &request, &mut |_| {}, &cancel, within).await;
        interrupt.idle();
        self.emit(Kind::Progress(step(true)));
        match outcome {
            Ok(reply) => {
                *usage += reply.usage;
                (reply.finish != Finish::Interrupted).then_some(reply.text)
            }
            Err(error) => {
                let sink = Arc::clone(&self.sink);
                sink(
                    Kind::Warning {
                        message: format!("the model could not sum up the conversation, so a list of what was done stands in: {error}"),
                    }
                    .into(),
                );
                None
            }
        }
    }
}

fn size(message: &Message) -> usize {
    match message {
        Message::System { text } | Message::User { text } | Message::ToolResult { text, .. } => text.len(),
        Message::Assistant { text, thinking, calls, .. } => {
            text.len() + thinking.len() + calls.iter().map(|call| call.arguments.len() + call.name.len()).sum::<usize>()
        }
    }
}
