//! Keeping the conversation within the model's window.

use std::time::Duration;

use async_recursion::async_recursion as boxed;

use super::Agent;
use super::Interrupt;
use super::budget::LEAST_ANSWER;
use super::summary;
use super::summary::Parts;
use super::unread;
use podbay_event::Kind;
use podbay_event::Usage;
use podbay_llm as llm;

/// What is known of a window that nobody has told, when the server refuses a conversation: it holds
/// less than that.
const REFUSED_PERCENT: u64 = 95;
/// What is kept of a conversation that was refused, where nobody told the window and results are
/// all that can be shortened.
const UNTOLD_PERCENT: u64 = 60;
/// Most tokens that are kept free for the answer to results which fill the window.
const ANSWER_MAX: u64 = 1024;

/// What became of making room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// The conversation fits, as far as anybody can tell.
    Enough,
    /// Nothing could be freed.
    None,
}

/// Tokens of the conversation and of the window, as far as a refusal tells them.
type Said = (Option<u64>, Option<u64>);

/// What the model wrote of a summary; `None` where it could not.
struct Words(Option<String>);

impl Agent {
    /// Looks how full the window is, before each request; warns, keeps a checkpoint, makes room.
    pub(super) async fn watch(
        &mut self,
        within: Duration,
        usage: &mut Usage,
        interrupt: &Interrupt,
    ) -> Room {
        let Some(window) = self.gauge.window(&self.client) else {
            return Room::Enough;
        };
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
        if percent >= u64::from(self.options.checkpoint_percent) && !self.gauge.has_checkpoint {
            self.gauge.has_checkpoint = true;
            self.emit(Kind::CheckpointMade {
                summary: summary::compose(
                    self.conversation.history(),
                    &Parts::default(),
                    usize::MAX,
                ),
            });
        }
        let at = u64::from(self.options.compact_percent);
        if at == 0 || percent < at {
            return Room::Enough;
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

    /// Returns what a refusal says of the conversation's length and the window's, and whether it is
    /// sure to be about them. Where it is not, a number must be near that length, or more than half
    /// of the window must be full.
    pub(super) async fn says_too_long(
        &mut self,
        error: &llm::Error,
        interrupt: &Interrupt,
    ) -> Option<(Said, bool)> {
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

    /// Makes room after the server has refused the conversation.
    pub(super) async fn refused(
        &mut self,
        said: Said,
        within: Duration,
        usage: &mut Usage,
        interrupt: &Interrupt,
    ) -> Room {
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
            // It was the answer that was to be too long: now it is known how long it may be.
            return Room::Enough;
        }
        // A window that was told may be that of all slots together: the refusal is what counts.
        let most = used.saturating_mul(REFUSED_PERCENT) / 100;
        let told = self.gauge.window(&self.client);
        let window = told.map_or(most, |window| window.min(used.max(1))).max(1);
        // Nobody knows how much too long it was.
        let most = told.map_or(used.saturating_mul(UNTOLD_PERCENT) / 100, |_| {
            with_answer(window)
        });
        self.make_room((window, most), used, within, usage, interrupt)
            .await
    }

    /// Sets long old results aside; where that is not enough, a summary replaces all but the last
    /// messages. What the model has not read yet stays, as long as all is `most` tokens; where it
    /// is more, long results of it lose their middles. Where even that leaves no room they go, and
    /// then the messages.
    async fn make_room(
        &mut self,
        (window, most): (u64, u64),
        before: u64,
        within: Duration,
        usage: &mut Usage,
        interrupt: &Interrupt,
    ) -> Room {
        let cancel = interrupt.run().clone();
        let mut now = self
            .set_aside(window, self.options.keep_turns.max(1), before, &cancel)
            .await;
        if now < before
            && now.saturating_mul(100) / window < u64::from(self.options.checkpoint_percent)
        {
            return Room::Enough;
        }
        let head = self.conversation.history().n_context();
        let n_unread = unread::count(self.conversation.history());
        let mut tail = self.tail(window, now).max(n_unread);
        // A summary of a message or two is no shorter than they are.
        if self.n_replaced(head, tail) < 2 {
            now = self.set_aside(window, 1, now, &cancel).await;
            if self.is_freed(before, now, window) {
                return Room::Enough;
            }
            tail = n_unread;
        }
        let mut words: Option<Words> = None;
        if self.n_replaced(head, tail) >= 2
            && (n_unread == 0 || self.is_worth_a_summary(head, tail))
        {
            let Some(asked) = self
                .sum_up((window, now), "", within, usage, interrupt)
                .await
            else {
                return Room::Enough;
            };
            let past = self.conversation.history().clone();
            now = self
                .replace(&past, asked.0.as_deref(), (head, tail), now, &cancel)
                .await;
            if !self.is_freed(before, now, window) {
                now = self.set_aside(window, 1, now, &cancel).await;
            }
            if !self.is_freed(before, now, window) && tail > n_unread {
                now = self
                    .replace(&past, asked.0.as_deref(), (head, n_unread), now, &cancel)
                    .await;
            }
            words = Some(asked);
            if self.is_freed(before, now, window) {
                return Room::Enough;
            }
        }
        if n_unread > 0 {
            now = self.shorten_unread(most, now, &cancel).await;
            if now <= most {
                return Room::Enough;
            }
            now = self.set_aside(window, 0, now, &cancel).await;
            if !self.is_freed(before, now, window) && self.n_replaced(head, 0) >= 2 {
                if words.is_none() {
                    words = self
                        .sum_up((window, now), "", within, usage, interrupt)
                        .await;
                }
                let Some(asked) = &words else {
                    return Room::Enough;
                };
                let past = self.conversation.history().clone();
                now = self
                    .replace(&past, asked.0.as_deref(), (head, 0), now, &cancel)
                    .await;
            }
        }
        let is_less = words.is_none() && now < before && now < window;
        if is_less || self.is_freed(before, now, window) {
            Room::Enough
        } else {
            Room::None
        }
    }

    /// Has a summary replace all but the last messages because the person asks for it; `focus` is
    /// what it should keep above all, or nothing. Returns what it cost, and whether there was
    /// anything to replace that is longer than a summary of it.
    #[boxed]
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
        if self.n_replaced(head, tail) < 2 {
            return (usage, false);
        }
        let room = self.gauge.window(&self.client).unwrap_or(u64::MAX);
        let asked = self
            .sum_up(
                (room, used),
                focus,
                self.options.time(),
                &mut usage,
                interrupt,
            )
            .await;
        let Some(Words(words)) = asked else {
            return (usage, false);
        };
        let past = self.conversation.history().clone();
        let cancel = interrupt.run().clone();
        let after = self
            .replace(&past, words.as_deref(), (head, tail), used, &cancel)
            .await;
        (usage, after < used)
    }

    /// Asks the model for the words of a summary; `None`: a hook forbids it, or somebody ended it.
    async fn sum_up(
        &mut self,
        fullness: (u64, u64),
        focus: &str,
        within: Duration,
        usage: &mut Usage,
        interrupt: &Interrupt,
    ) -> Option<Words> {
        if !self.before_summary(interrupt.run()).await {
            return None;
        }
        let words = self
            .summarize(fullness, focus, within, usage, interrupt)
            .await;
        (!interrupt.is_ended()).then_some(Words(words))
    }

    /// Returns how many tokens the conversation is, and how many the model reads at once, where
    /// that is known.
    #[boxed]
    pub async fn fullness(&mut self, interrupt: &Interrupt) -> (u64, Option<u64>) {
        let used = self
            .gauge
            .used(&self.conversation, &self.client, interrupt.run())
            .await;
        (used, self.gauge.window(&self.client))
    }

    /// Makes room for a last answer of so many tokens without asking the model for anything else;
    /// `said` is what a refusal told.
    pub(super) async fn make_last_room(
        &mut self,
        tokens: u64,
        said: Option<Said>,
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
        let mut now = self.set_aside(window, 1, used, &cancel).await;
        if now > most {
            now = self.shorten_unread(most, now, &cancel).await;
        }
        if now > most {
            self.set_aside(window, 0, now, &cancel).await;
        }
    }

    /// Returns how long an answer the window holds beside the conversation, where it is known; a
    /// short one is tried in any case.
    pub(super) async fn room_for_answer(&mut self, interrupt: &Interrupt) -> Option<u64> {
        let (used, window) = self.fullness(interrupt).await;
        Some(window?.saturating_sub(used).max(LEAST_ANSWER))
    }

    /// Returns whether the window holds the shortest answer beside the conversation.
    pub(super) async fn holds_an_answer(&mut self, interrupt: &Interrupt) -> bool {
        let (used, window) = self.fullness(interrupt).await;
        window.is_none_or(|window| used.saturating_add(LEAST_ANSWER) <= window)
    }

    /// Says why a full window ends the task, and what helps.
    pub(super) async fn warn_of_full_window(&mut self, interrupt: &Interrupt) {
        let (used, window) = self.fullness(interrupt).await;
        let window =
            window.map_or_else(|| "fewer than that".to_owned(), |window| window.to_string());
        let message = format!(
            "the conversation is {used} tokens, the model reads {window} at once with its answer, and no more room could be made: a shorter \
             task, fewer files or `--tools small` makes it shorter; else give the model server a larger window, and say so in `llm.context` \
             where that is set"
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

/// Returns how many tokens a conversation may be for an answer to fit beside it.
fn with_answer(window: u64) -> u64 {
    window.saturating_sub((window / 8).clamp(LEAST_ANSWER, ANSWER_MAX))
}
