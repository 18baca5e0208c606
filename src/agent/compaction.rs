//! Shortens a conversation: references instead of long results, results without their middles, a
//! summary.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Agent;
use super::Interrupt;
use super::budget;
use super::budget::LEAST_ANSWER;
use super::budget::Spent;
use super::summary;
use super::summary::SummaryInput;
use super::unread_results;
use podbay_event::Evicted;
use podbay_event::GIVEN_UP;
use podbay_event::Kind;
use podbay_event::LimitKind;
use podbay_event::Progress;
use podbay_event::Unit;
use podbay_event::Usage;
use podbay_llm::Finish;
use podbay_llm::Message;
use podbay_llm::Prompt;
use podbay_llm::Request;
use podbay_session::History;

/// Maximum percentage of the window for messages that are kept unchanged.
const TAIL_PERCENT: u64 = 25;
/// Shorter results are not worth replacing, in bytes.
const LEAST_EVICTED: usize = 600;
/// Maximum tokens of a summary, and its maximum percentage of the window.
const SUMMARY_MAX: u64 = 1024;

impl Agent {
    /// Returns whether a summary of these messages can free enough.
    pub(super) fn is_worth_a_summary(&self, head: usize, tail: usize) -> bool {
        let messages = self
            .conversation
            .history()
            .messages()
            .skip(head)
            .take(self.n_replaced(head, tail));
        messages.map(size).sum::<usize>().saturating_mul(10) > self.conversation.prompt().n_bytes()
    }

    /// Returns how many messages a summary would replace.
    pub(super) fn n_replaced(&self, head: usize, tail: usize) -> usize {
        self.conversation
            .history()
            .messages()
            .len()
            .saturating_sub(head + tail)
    }

    /// Replaces long results older than the last `n_kept` answers by references; returns the
    /// conversation's tokens afterwards.
    pub(super) async fn evict_old_results(
        &mut self,
        window: u64,
        n_kept: u32,
        before: u64,
        cancel: &CancellationToken,
    ) -> u64 {
        let evicted = self.long_results(window, n_kept);
        if evicted.is_empty() {
            before
        } else {
            self.evict(evicted, before, cancel).await
        }
    }

    async fn evict(
        &mut self,
        evicted: Vec<Evicted>,
        before: u64,
        cancel: &CancellationToken,
    ) -> u64 {
        let n_bytes = self.conversation.prompt().n_bytes();
        self.conversation.evict(&evicted);
        self.emit(Kind::ResultsEvicted { results: evicted });
        self.gauge
            .record_shrink(before, n_bytes, self.conversation.prompt().n_bytes());
        self.gauge
            .used(&self.conversation, &self.client, cancel)
            .await
    }

    /// Replaces all messages but the first `head` and the last `tail` by a summary; returns the
    /// conversation's tokens afterwards. A summary is at most half as long as what it replaces, and
    /// is used only if it is shorter.
    pub(super) async fn replace(
        &mut self,
        past: &History,
        words: Option<&str>,
        (head, tail): (usize, usize),
        before: u64,
        cancel: &CancellationToken,
    ) -> u64 {
        let n_bytes = self.conversation.prompt().n_bytes();
        let replaced = self
            .conversation
            .history()
            .messages()
            .skip(head)
            .take(self.n_replaced(head, tail))
            .map(size)
            .sum::<usize>();
        let said = summary::said_whole(past);
        let kept = said.as_ref().and_then(|said| {
            self.pipeline
                .keep(&format!("said_{}", past.said().len()), said)
        });
        let to_do = if words.is_none() {
            self.pipeline.open_tasks()
        } else {
            Vec::new()
        };
        let summary = summary::compose(
            past,
            &SummaryInput {
                words,
                said: kept.as_deref(),
                to_do: &to_do,
            },
            replaced / 2,
        );
        let mut shorter = self.conversation.clone();
        shorter.compact(&summary, head, tail);
        if shorter.prompt().n_bytes() >= n_bytes {
            return before;
        }
        self.conversation = shorter;
        self.folder_instructions.forget();
        self.gauge
            .record_shrink(before, n_bytes, self.conversation.prompt().n_bytes());
        let after = self
            .gauge
            .used(&self.conversation, &self.client, cancel)
            .await;
        let short = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        self.emit(Kind::ConversationCompacted {
            summary,
            head: short(head),
            tail: short(tail),
            before,
            after,
        });
        after
    }

    /// Finds long results older than the last `n_kept` answers, and stores each as an artifact.
    fn long_results(&self, window: u64, n_kept: u32) -> Vec<Evicted> {
        let history = self.conversation.history();
        let least = usize::try_from(window / 25)
            .unwrap_or(usize::MAX)
            .max(LEAST_EVICTED);
        let mut n_answers = 0;
        let mut evicted = Vec::new();
        for message in history.messages().rev() {
            match message {
                Message::Assistant { .. } => n_answers += 1,
                Message::ToolResult {
                    call, name, text, ..
                } if n_answers >= n_kept && text.len() > least => {
                    // A result that cannot be stored stays.
                    if let Some(id) = self.pipeline.keep(call, text) {
                        let text = format!(
                            "[this result of {name} was set aside to make room ({} bytes); read_file with path \"artifact:{id}\" shows it]",
                            text.len()
                        );
                        evicted.push(Evicted {
                            call: call.clone(),
                            text,
                        });
                    }
                }
                _ => {}
            }
        }
        evicted.reverse();
        evicted
    }

    /// Returns how many messages at the end stay: those of the last answers, if they are small
    /// enough.
    pub(super) fn tail(&self, window: u64, used: u64) -> usize {
        let history = self.conversation.history();
        // By this conversation's ratio of bytes to tokens: a page of digits may have one byte per
        // token.
        let n_bytes = self.conversation.prompt().n_bytes() as u64;
        let most = u128::from(window.saturating_mul(TAIL_PERCENT) / 100) * u128::from(n_bytes)
            / u128::from(used.max(1));
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let sizes: Vec<usize> = history.messages().rev().map(size).collect();
        let fits = |tail: &&usize| sizes[..**tail].iter().sum::<usize>() <= most;
        let tails = history.tails();
        let last = tails.len().saturating_sub(self.options.keep_turns as usize);
        tails[last..].iter().find(fits).copied().unwrap_or(0)
    }

    /// Requests the model's part of the summary; `None` if it fails.
    pub(super) async fn summarize(
        &self,
        (window, used): (u64, u64),
        focus: &str,
        within: Duration,
        usage: &mut Usage,
        interrupt: &Interrupt,
    ) -> Option<String> {
        let max_tokens = SUMMARY_MAX.min(window / 8).max(32);
        let step = |finished| Progress {
            task: "the model summarizes the conversation".to_owned(),
            done: 0,
            total: None,
            unit: Unit::Steps,
            detail: String::new(),
            finished,
        };
        self.emit(Kind::Progress(step(false)));
        let prompt = self.conversation.prompt();
        // After the cached conversation, if that fits; else from a transcript.
        let fits = used.saturating_add(max_tokens).saturating_add(200) < window;
        let asked = if fits {
            let mut prompt = prompt.clone();
            prompt.push(&Message::user(summary::ask(focus)));
            prompt
        } else {
            let most = usize::try_from(window.saturating_mul(2)).unwrap_or(usize::MAX);
            let text = summary::transcript(self.conversation.history(), most);
            let mut prompt = Prompt::new("You sum up conversations.", &[], prompt.mode())
                .with_dialect(prompt.dialect())
                .with_tokens(prompt.tokens());
            prompt.push(&Message::user(format!("{text}\n{}", summary::ask(focus))));
            prompt
        };
        let budget = budget::left(
            used,
            &Spent {
                usage: *usage,
                ..Spent::default()
            },
            &self.options,
            &self.client.options().price,
        );
        if let Some((limit, left)) = budget
            && left < max_tokens.saturating_add(LEAST_ANSWER)
        {
            let budget = if limit == LimitKind::Cost {
                "cost"
            } else {
                "tokens"
            };
            let message = format!(
                "the budget of {budget} is too small for the model to summarize the conversation: a list of what was done is used instead"
            );
            self.emit(Kind::Progress(Progress {
                detail: GIVEN_UP.to_owned(),
                ..step(true)
            }));
            self.emit(Kind::Warning { message });
            return None;
        }
        let (held, was_held) = (self.quirks.is_held, self.quirks.was_held);
        let request = Request {
            no_tools: true,
            held,
            was_held,
            max_tokens: Some(max_tokens),
            ..Request::default()
        };
        let cancel: CancellationToken = interrupt.step();
        let outcome = self
            .client
            .stream(&asked, &request, &mut |_| {}, &cancel, within)
            .await;
        interrupt.idle();
        let is_summed_up = outcome
            .as_ref()
            .is_ok_and(|reply| !reply.text.trim().is_empty());
        let how = if is_summed_up {
            String::new()
        } else {
            GIVEN_UP.to_owned()
        };
        self.emit(Kind::Progress(Progress {
            detail: how,
            ..step(true)
        }));
        match outcome {
            Ok(reply) => {
                *usage += self.usage_of(&asked, &reply);
                (!matches!(reply.finish, Finish::Interrupted | Finish::ContentFilter))
                    .then_some(reply.text)
            }
            Err(error) => {
                // The part received before a failure was paid for all the same.
                if let Some(partial) = error.partial() {
                    *usage += self.usage_of(&asked, partial);
                }
                let message = format!(
                    "the model could not summarize the conversation, so a list of what was done is used instead: {error}"
                );
                self.emit(Kind::Warning { message });
                None
            }
        }
    }

    /// Removes the middles of long results that the model has not read yet, until the conversation
    /// has at most `most` tokens; returns its tokens afterwards.
    pub(super) async fn shorten_unread(
        &mut self,
        most: u64,
        before: u64,
        cancel: &CancellationToken,
    ) -> u64 {
        let mut now = before;
        // Dense text has more tokens than estimated from its bytes.
        for _ in 0..3 {
            if now <= most {
                break;
            }
            let n_bytes = u128::from(now - most) * self.conversation.prompt().n_bytes() as u128
                / u128::from(now);
            let shortened = self.shortened(usize::try_from(n_bytes).unwrap_or(usize::MAX));
            if shortened.is_empty() {
                break;
            }
            now = self.evict(shortened, now, cancel).await;
        }
        now
    }

    fn shortened(&self, n_bytes: usize) -> Vec<Evicted> {
        let too_long = unread_results::too_long(self.conversation.history(), n_bytes);
        // A result that cannot be stored stays.
        let kept = |long: &unread_results::LongResult| {
            let id = self.pipeline.keep(&long.call, &long.text)?;
            Some(Evicted {
                call: long.call.clone(),
                text: long.shortened(&id),
            })
        };
        too_long.iter().filter_map(kept).collect()
    }
}

fn size(message: &Message) -> usize {
    match message {
        Message::System { text }
        | Message::User { text }
        | Message::Image { text, .. }
        | Message::ToolResult { text, .. } => text.len(),
        Message::Assistant {
            text,
            thinking,
            calls,
            ..
        } => {
            text.len()
                + thinking.len()
                + calls
                    .iter()
                    .map(|call| call.arguments.len() + call.name.len())
                    .sum::<usize>()
        }
    }
}
