//! Keeps the conversation within the model's window.

use std::time::Duration;

use async_recursion::async_recursion as boxed;

use super::Agent;
use super::Interrupt;
use super::budget::LEAST_ANSWER;
use super::summary;
use super::summary::SummaryInput;
use super::unread_results;
use super::window_gauge::ASSUMED_WINDOW;
use podbay_event::Kind;
use podbay_event::Usage;
use podbay_llm as llm;

/// Assumed percentage of a refused conversation that fits into a window of unknown size.
const REFUSED_PERCENT: u64 = 95;
/// Percentage of a refused conversation that is kept if the window is unknown and only results can
/// be shortened.
const UNTOLD_PERCENT: u64 = 60;
/// Maximum number of tokens reserved for the answer to results that fill the window.
const ANSWER_MAX: u64 = 1024;

/// The outcome of a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WindowFit {
    /// The conversation fits, as far as known.
    Enough,
    /// Nothing could be freed.
    None,
}

/// Tokens of the conversation and of the window, as far as a refusal reports them.
type ReportedSizes = (Option<u64>, Option<u64>);

/// The model's part of a summary; `None` if it failed.
struct SummaryText(Option<String>);

impl Agent {
    /// Notes in the log what the session has come to, put together without the model; returns it.
    pub fn checkpoint(&mut self) -> String {
        let summary = summary::compose(
            self.conversation.history(),
            &SummaryInput::default(),
            usize::MAX,
        );
        self.emit(Kind::CheckpointMade {
            summary: summary.clone(),
        });
        summary
    }

    /// Looks how full the window is, before each request; warns, makes room.
    pub(super) async fn watch(
        &mut self,
        within: Duration,
        usage: &mut Usage,
        interrupt: &Interrupt,
    ) -> WindowFit {
        let window = self.gauge.window(&self.client).unwrap_or(ASSUMED_WINDOW);
        let used = self
            .gauge
            .used(&self.conversation, &self.client, interrupt.run())
            .await;
        let percent = used.saturating_mul(100) / window;
        if let Some(passed) = self.gauge.passed(percent, &self.options.context_warnings) {
            self.emit(Kind::ContextNear {
                percent: passed,
                used,
                window,
            });
        }
        let at = u64::from(self.options.compact_percent);
        if at == 0 || percent < at {
            return WindowFit::Enough;
        }
        self.make_room(
            (window, with_answer(window)),
            used,
            within,
            usage,
            interrupt,
        )
        .await
    }

    /// Returns the sizes that a refusal reports for the conversation and the window, and whether it
    /// is certainly about them. If not, a number must be close to the conversation's length, or
    /// more than half of the window must be full.
    pub(super) async fn refusal_sizes(
        &mut self,
        error: &llm::Error,
        interrupt: &Interrupt,
    ) -> Option<(ReportedSizes, bool)> {
        if let llm::Error::ContextExceeded { prompt, context } = error.root() {
            return Some(((*prompt, *context), true));
        }
        if !error.may_be_too_long() {
            return None;
        }
        let (used, window) = self.fullness(interrupt).await;
        if let Some((more, less)) = error
            .two_sizes()
            .filter(|(more, _)| more / 2 <= used && used / 2 <= *more)
        {
            return Some(((Some(more), Some(less)), false));
        }
        window
            .filter(|window| used > window / 2)
            .map(|_| ((None, None), false))
    }

    /// Compacts the conversation after the server has refused it.
    pub(super) async fn refused(
        &mut self,
        said: ReportedSizes,
        within: Duration,
        usage: &mut Usage,
        interrupt: &Interrupt,
    ) -> WindowFit {
        self.gauge
            .refused(said.0, said.1, self.conversation.prompt().n_bytes());
        let used = self
            .gauge
            .used(&self.conversation, &self.client, interrupt.run())
            .await;
        if let (Some(prompt), Some(window)) = said
            && prompt.saturating_add(LEAST_ANSWER) <= window
            && used.saturating_mul(100)
                < window.saturating_mul(u64::from(self.options.compact_percent))
        {
            // The answer was to be too long: now its maximum length is known.
            return WindowFit::Enough;
        }
        // A reported window may be that of all slots together: the refusal is decisive.
        let most = used.saturating_mul(REFUSED_PERCENT) / 100;
        let told = self.gauge.window(&self.client);
        let window = told.map_or(most, |window| window.min(used.max(1))).max(1);
        // By how much it is too long is unknown.
        let most = told.map_or(used.saturating_mul(UNTOLD_PERCENT) / 100, |_| {
            with_answer(window)
        });
        self.make_room((window, most), used, within, usage, interrupt)
            .await
    }

    /// Replaces long old results by references; if that is not enough, all but the last messages by
    /// a summary. Results that the model has not read yet stay, as long as everything has at most
    /// `most` tokens; otherwise long ones lose their middles. If even that is not enough they are
    /// replaced, and then the messages.
    async fn make_room(
        &mut self,
        (window, most): (u64, u64),
        before: u64,
        within: Duration,
        usage: &mut Usage,
        interrupt: &Interrupt,
    ) -> WindowFit {
        let cancel = interrupt.run().clone();
        let mut now = self
            .evict_old_results(window, self.options.keep_turns.max(1), before, &cancel)
            .await;
        if now < before
            && now.saturating_mul(100) / window < u64::from(self.options.compact_to_percent)
        {
            return WindowFit::Enough;
        }
        let head = self.conversation.history().n_context();
        let n_unread = unread_results::count(self.conversation.history());
        let mut tail = self.tail(window, now).max(n_unread);
        // A summary of a message or two is no shorter than they are.
        if self.n_replaced(head, tail) < 2 {
            now = self.evict_old_results(window, 1, now, &cancel).await;
            if self.is_freed(before, now, window) {
                return WindowFit::Enough;
            }
            tail = n_unread;
        }
        let mut words: Option<SummaryText> = None;
        if self.n_replaced(head, tail) >= 2
            && (n_unread == 0 || self.is_worth_a_summary(head, tail))
        {
            let Some(asked) = self
                .request_summary((window, now), "", within, usage, interrupt)
                .await
            else {
                return WindowFit::Enough;
            };
            let past = self.conversation.history().clone();
            now = self
                .replace(&past, asked.0.as_deref(), (head, tail), now, &cancel)
                .await;
            if !self.is_freed(before, now, window) {
                now = self.evict_old_results(window, 1, now, &cancel).await;
            }
            if !self.is_freed(before, now, window) && tail > n_unread {
                now = self
                    .replace(&past, asked.0.as_deref(), (head, n_unread), now, &cancel)
                    .await;
            }
            words = Some(asked);
            if self.is_freed(before, now, window) {
                return WindowFit::Enough;
            }
        }
        if n_unread > 0 {
            now = self.shorten_unread(most, now, &cancel).await;
            if now <= most {
                return WindowFit::Enough;
            }
            now = self.evict_old_results(window, 0, now, &cancel).await;
            if !self.is_freed(before, now, window) && self.n_replaced(head, 0) >= 2 {
                if words.is_none() {
                    words = self
                        .request_summary((window, now), "", within, usage, interrupt)
                        .await;
                }
                let Some(asked) = &words else {
                    return WindowFit::Enough;
                };
                let past = self.conversation.history().clone();
                now = self
                    .replace(&past, asked.0.as_deref(), (head, 0), now, &cancel)
                    .await;
            }
        }
        let is_less = words.is_none() && now < before && now < window;
        if is_less || self.is_freed(before, now, window) {
            WindowFit::Enough
        } else {
            WindowFit::None
        }
    }

    /// Replaces all but the last messages by a summary at the user's request; `focus` is what it
    /// should keep above all, or empty. Returns its cost, and whether it was shorter than what it
    /// replaced.
    #[boxed]
    pub async fn compact(&mut self, focus: &str, interrupt: &Interrupt) -> (Usage, bool) {
        let mut usage = Usage::default();
        let (used, window) = self.fullness(interrupt).await;
        // A conversation that is everything leaves as little space as one that is nearly full.
        let window = window.map_or(used, |window| window.min(used)).max(1);
        let head = self.conversation.history().n_context();
        let tail = match self.tail(window, used) {
            tail if self.n_replaced(head, tail) >= 2 => tail,
            _ => 0,
        };
        if self.n_replaced(head, tail) < 2 {
            return (usage, false);
        }
        let room = self.gauge.window(&self.client).unwrap_or(ASSUMED_WINDOW);
        let asked = self
            .request_summary(
                (room, used),
                focus,
                self.options.time(),
                &mut usage,
                interrupt,
            )
            .await;
        let Some(SummaryText(words)) = asked else {
            return (usage, false);
        };
        let past = self.conversation.history().clone();
        let cancel = interrupt.run().clone();
        let after = self
            .replace(&past, words.as_deref(), (head, tail), used, &cancel)
            .await;
        (usage, after < used)
    }

    /// Requests the model's part of a summary; `None` if a hook forbids it, or it was interrupted.
    async fn request_summary(
        &mut self,
        fullness: (u64, u64),
        focus: &str,
        within: Duration,
        usage: &mut Usage,
        interrupt: &Interrupt,
    ) -> Option<SummaryText> {
        if !self.before_summary(interrupt.run()).await {
            return None;
        }
        let words = self
            .summarize(fullness, focus, within, usage, interrupt)
            .await;
        (!interrupt.is_ended()).then_some(SummaryText(words))
    }

    /// Returns how many tokens the conversation has, and the size of the window if known.
    #[boxed]
    pub async fn fullness(&mut self, interrupt: &Interrupt) -> (u64, Option<u64>) {
        let used = self
            .gauge
            .used(&self.conversation, &self.client, interrupt.run())
            .await;
        (used, self.gauge.window(&self.client))
    }

    /// Makes space for a final answer of so many tokens without another request to the model;
    /// `said` holds the sizes from a refusal.
    pub(super) async fn make_last_room(
        &mut self,
        tokens: u64,
        said: Option<ReportedSizes>,
        interrupt: &Interrupt,
    ) {
        let cancel = interrupt.run().clone();
        if let Some((prompt, window)) = said {
            self.gauge
                .refused(prompt, window, self.conversation.prompt().n_bytes());
        }
        let (used, window) = self.fullness(interrupt).await;
        let most = match (window, said) {
            (Some(window), _) => window.saturating_sub(tokens),
            (None, Some(_)) => used.saturating_mul(UNTOLD_PERCENT) / 100,
            (None, None) => return,
        };
        if used <= most {
            return;
        }
        let window = window.unwrap_or(used).max(1);
        let mut now = self.evict_old_results(window, 1, used, &cancel).await;
        if now > most {
            now = self.shorten_unread(most, now, &cancel).await;
        }
        if now > most {
            self.evict_old_results(window, 0, now, &cancel).await;
        }
    }

    /// Returns the maximum length of an answer that still fits into the window, if known; a short
    /// one is tried in any case.
    pub(super) async fn room_for_answer(&mut self, interrupt: &Interrupt) -> Option<u64> {
        let (used, window) = self.fullness(interrupt).await;
        Some(window?.saturating_sub(used).max(LEAST_ANSWER))
    }

    /// Returns whether the shortest answer still fits into the window.
    pub(super) async fn has_room_for_answer(&mut self, interrupt: &Interrupt) -> bool {
        let (used, window) = self.fullness(interrupt).await;
        window.is_none_or(|window| used.saturating_add(LEAST_ANSWER) <= window)
    }

    /// Warns that a full window ends the task, and says what helps.
    pub(super) async fn warn_of_full_window(&mut self, interrupt: &Interrupt) {
        let (used, window) = self.fullness(interrupt).await;
        let window =
            window.map_or_else(|| "fewer than that".to_owned(), |window| window.to_string());
        let message = format!(
            "the conversation has {used} tokens, the window including the answer {window}, and it cannot be compacted further: shorten the \
             task, use fewer files or `--tools small`; or give the model server a larger window, and adapt `llm.context` if it is set"
        );
        self.emit(Kind::Warning { message });
    }

    fn is_freed(&self, before: u64, after: u64, window: u64) -> bool {
        let compact = u64::from(if self.options.compact_percent == 0 {
            100
        } else {
            self.options.compact_percent
        });
        after.saturating_mul(10) < before.saturating_mul(9)
            && after.saturating_mul(100) < window.saturating_mul(compact)
    }
}

/// Returns the maximum size of a conversation that leaves space for an answer.
fn with_answer(window: u64) -> u64 {
    window.saturating_sub((window / 8).clamp(LEAST_ANSWER, ANSWER_MAX))
}
