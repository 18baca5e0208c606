//! Keeping the conversation within the model's window.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Agent;
use super::Interrupt;
use super::budget::LEAST_ANSWER;
use super::summary;
use crate::event::Evicted;
use crate::event::GIVEN_UP;
use crate::event::Kind;
use crate::event::Progress;
use crate::event::Unit;
use crate::event::Usage;
use crate::llm::Finish;
use crate::llm::Message;
use crate::llm::Prompt;
use crate::llm::Request;
use crate::session::History;

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
            self.emit(Kind::CheckpointMade { summary: summary::compose(self.conversation.history(), None, usize::MAX) });
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

    /// Sets long old results aside; where that is not enough, a summary replaces all but the last messages. Where even these leave no room
    /// their long results go, and then they.
    async fn make_room(&mut self, window: u64, before: u64, within: Duration, usage: &mut Usage, interrupt: &Interrupt) -> Room {
        let cancel = interrupt.run().clone();
        let mut now = self.set_aside(window, self.options.keep_turns, before, &cancel).await;
        if now < before && now.saturating_mul(100) / window < u64::from(self.options.checkpoint_percent) {
            return Room::Enough;
        }
        let head = self.conversation.history().n_context();
        let mut tail = self.tail(window, now);
        // A summary of a message or two is no shorter than they are.
        if self.n_replaced(head, tail) < 2 {
            now = self.set_aside(window, 0, now, &cancel).await;
            if self.is_freed(before, now, window) {
                return Room::Enough;
            }
            tail = 0;
        }
        if self.n_replaced(head, tail) < 2 {
            return if now < before && now < window { Room::Enough } else { Room::None };
        }
        if !self.before_summary(&cancel).await {
            return Room::Enough;
        }
        let words = self.summarize((window, now), "", within, usage, interrupt).await;
        if interrupt.is_ended() {
            return Room::Enough;
        }
        let past = self.conversation.history().clone();
        now = self.replace(&past, words.as_deref(), (head, tail), now, &cancel).await;
        if !self.is_freed(before, now, window) {
            now = self.set_aside(window, 0, now, &cancel).await;
        }
        if !self.is_freed(before, now, window) && tail > 0 {
            now = self.replace(&past, words.as_deref(), (head, 0), now, &cancel).await;
        }
        if self.is_freed(before, now, window) { Room::Enough } else { Room::None }
    }

    /// Has a summary replace all but the last messages because the person asks for it; `focus` is what it should keep above all, or nothing.
    /// Returns what it cost, and whether there was anything to replace that is longer than a summary of it.
    pub async fn compact(&mut self, focus: &str, interrupt: &Interrupt) -> (Usage, bool) {
        let mut usage = Usage::default();
        let (used, window) = self.fullness(interrupt).await;
        // A conversation that is all there is leaves as little as one that is nearly full.
        let window = window.map_or(used, |window| window.min(used)).max(1);
        let head = self.conversation.history().n_context();
        let tail = match self.tail(window, used) {
            tail if self.n_replaced(head, tail) >= 2 => tail,
            _ => 0,
        };
        let cancel = interrupt.run().clone();
        if self.n_replaced(head, tail) < 2 || !self.before_summary(&cancel).await {
            return (usage, false);
        }
        let room = self.gauge.window(&self.client).unwrap_or(u64::MAX);
        let words = self.summarize((room, used), focus, self.options.time(), &mut usage, interrupt).await;
        if interrupt.is_ended() {
            return (usage, false);
        }
        let past = self.conversation.history().clone();
        let after = self.replace(&past, words.as_deref(), (head, tail), used, &cancel).await;
        (usage, after < used)
    }

    /// Returns how many tokens the conversation is, and how many the model reads at once, where that is known.
    pub async fn fullness(&mut self, interrupt: &Interrupt) -> (u64, Option<u64>) {
        let used = self.gauge.used(&self.conversation, &self.client, interrupt.run()).await;
        (used, self.gauge.window(&self.client))
    }

    /// Returns whether the window holds the shortest answer beside the conversation.
    pub(super) async fn holds_an_answer(&mut self, interrupt: &Interrupt) -> bool {
        let (used, window) = self.fullness(interrupt).await;
        window.is_none_or(|window| used.saturating_add(LEAST_ANSWER) <= window)
    }

    /// Says why a full window ends the task, and what helps.
    pub(super) async fn warn_of_full_window(&mut self, interrupt: &Interrupt) {
        let (used, window) = self.fullness(interrupt).await;
        let window = window.map_or_else(|| "fewer than that".to_owned(), |window| window.to_string());
        let message = format!(
            "the conversation is {used} tokens, the model reads {window} at once with its answer, and no more room could be made: a shorter \
             task, fewer files or `--tools small` makes it shorter; else give the model server a larger window, and say so in `llm.context` \
             where that is set"
        );
        self.emit(Kind::Warning { message });
    }

    fn is_freed(&self, before: u64, after: u64, window: u64) -> bool {
        let compact = u64::from(if self.options.compact_percent == 0 { 100 } else { self.options.compact_percent });
        after.saturating_mul(10) < before.saturating_mul(9) && after.saturating_mul(100) < window.saturating_mul(compact)
    }

    /// Returns how many messages a summary would stand for.
    fn n_replaced(&self, head: usize, tail: usize) -> usize {
        self.conversation.history().messages().len().saturating_sub(head + tail)
    }

    /// Puts references in the place of long results that are older than the last `n_kept` answers; returns how many tokens the
    /// conversation is then.
    async fn set_aside(&mut self, window: u64, n_kept: u32, before: u64, cancel: &CancellationToken) -> u64 {
        let evicted = self.long_results(window, n_kept);
        if evicted.is_empty() {
            return before;
        }
        let n_bytes = self.conversation.prompt().n_bytes();
        self.emit(Kind::ResultsEvicted { results: evicted.clone() });
        self.conversation.evict(&evicted);
        self.gauge.shrunk(before, n_bytes, self.conversation.prompt().n_bytes());
        self.gauge.used(&self.conversation, &self.client, cancel).await
    }

    /// Puts a summary of the past in the place of all messages but the first `head` and the last `tail`; returns how many tokens the
    /// conversation is then. A summary is half as long as what it stands for at the most, and none is taken that is no shorter.
    async fn replace(
        &mut self,
        past: &History,
        words: Option<&str>,
        (head, tail): (usize, usize),
        before: u64,
        cancel: &CancellationToken,
    ) -> u64 {
        let n_bytes = self.conversation.prompt().n_bytes();
        let replaced = self.conversation.history().messages().skip(head).take(self.n_replaced(head, tail)).map(size).sum::<usize>();
        let summary = summary::compose(past, words, replaced / 2);
        let mut shorter = self.conversation.clone();
        shorter.compact(&summary, head, tail);
        if shorter.prompt().n_bytes() >= n_bytes {
            return before;
        }
        self.conversation = shorter;
        self.gauge.shrunk(before, n_bytes, self.conversation.prompt().n_bytes());
        let after = self.gauge.used(&self.conversation, &self.client, cancel).await;
        let short = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        self.emit(Kind::ConversationCompacted { summary, head: short(head), tail: short(tail), before, after });
        after
    }

    /// Finds long results that are older than the last `n_kept` answers, and keeps each as an artifact.
    fn long_results(&self, window: u64, n_kept: u32) -> Vec<Evicted> {
        let history = self.conversation.history();
        let least = usize::try_from(window / 25).unwrap_or(usize::MAX).max(LEAST_EVICTED);
        let mut n_answers = 0;
        let mut evicted = Vec::new();
        for message in history.messages().rev() {
            match message {
                Message::Assistant { .. } => n_answers += 1,
                Message::ToolResult { call, name, text, .. } if n_answers >= n_kept && text.len() > least => {
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
    fn tail(&self, window: u64, used: u64) -> usize {
        let history = self.conversation.history();
        // As many bytes as this conversation has for so many tokens: a page of digits may have one for each.
        let n_bytes = self.conversation.prompt().n_bytes() as u64;
        let most = u128::from(window.saturating_mul(TAIL_PERCENT) / 100) * u128::from(n_bytes) / u128::from(used.max(1));
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let sizes: Vec<usize> = history.messages().rev().map(size).collect();
        let fits = |tail: &&usize| sizes[..**tail].iter().sum::<usize>() <= most;
        let tails = history.tails();
        let last = tails.len().saturating_sub(self.options.keep_turns as usize);
        tails[last..].iter().find(fits).copied().unwrap_or(0)
    }

    /// Has the model write its part of the summary; `None` where it cannot.
    async fn summarize(
        &self,
        (window, used): (u64, u64),
        focus: &str,
        within: Duration,
        usage: &mut Usage,
        interrupt: &Interrupt,
    ) -> Option<String> {
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
            prompt.push(&Message::user(summary::ask(focus)));
            prompt
        } else {
            let most = usize::try_from(window.saturating_mul(2)).unwrap_or(usize::MAX);
            let text = summary::transcript(self.conversation.history(), most);
            let mut prompt = Prompt::new("You sum up conversations.", &[], prompt.mode()).with_tokens(prompt.tokens());
            prompt.push(&Message::user(format!("{text}\n{}", summary::ask(focus))));
            prompt
        };
        let request = Request { no_tools: true, max_tokens: Some(max_tokens), ..Request::default() };
        let cancel: CancellationToken = interrupt.step();
        let outcome = self.client.stream(&asked, &request, &mut |_| {}, &cancel, within).await;
        interrupt.idle();
        let is_summed_up = outcome.as_ref().is_ok_and(|reply| !reply.text.trim().is_empty());
        let how = if is_summed_up { String::new() } else { GIVEN_UP.to_owned() };
        self.emit(Kind::Progress(Progress { detail: how, ..step(true) }));
        match outcome {
            Ok(reply) => {
                *usage += reply.usage;
                (!matches!(reply.finish, Finish::Interrupted | Finish::ContentFilter)).then_some(reply.text)
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
        Message::System { text } | Message::User { text } | Message::Image { text, .. } | Message::ToolResult { text, .. } => text.len(),
        Message::Assistant { text, thinking, calls, .. } => {
            text.len() + thinking.len() + calls.iter().map(|call| call.arguments.len() + call.name.len()).sum::<usize>()
        }
    }
}
