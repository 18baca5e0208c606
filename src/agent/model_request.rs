//! One request to the model, and what is recorded about it.

use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use super::Agent;
use super::Failure;
use super::Interrupt;
use super::answer_text::text_beside_calls;
use super::budget::LEAST_ANSWER;
use super::budget::limit_message;
use super::early_calls::EarlyCalls;
use super::task::Task;
use super::window_gauge;
use podbay_event::GIVEN_UP;
use podbay_event::Kind;
use podbay_event::LimitKind;
use podbay_event::Progress;
use podbay_event::Unit;
use podbay_event::Usage;
use podbay_llm as llm;
use podbay_llm::Finish;
use podbay_llm::Prompt;
use podbay_llm::Reply;
use podbay_llm::Request;
use podbay_llm::Update;

/// The warning if the final answer of a task at its limit was truncated.
const INCOMPLETE: &str = "the last answer is incomplete: it reached its token limit";
/// Tokens reserved for a final answer when the window is nearly full.
const SHORT: u64 = 512;
/// Labels of progress bars.
const LOADS: &str = "the model server loads its model";
const AWAY: &str = "waiting for the model server";

impl Agent {
    /// Requests a summary of the state without tools. A failure at this point is not reported as an
    /// error of its own.
    pub(super) async fn last_answer(
        &mut self,
        task: &mut Task,
        kind: LimitKind,
        text: &str,
        interrupt: &Interrupt,
    ) -> Option<Failure> {
        if kind == LimitKind::Context {
            // There is no space for another answer; the last one stands.
            return None;
        }
        if self.options.max_turns > 0 && task.spent.turns >= self.options.max_turns {
            // The only turn was the last one.
            return None;
        }
        self.note(&limit_message(kind, text));
        let max_tokens = self.last_answer_tokens();
        self.make_last_room(max_tokens.min(SHORT), None, interrupt)
            .await;
        let at_most = self
            .left(task, interrupt)
            .await
            .map(|(_, left)| left.max(LEAST_ANSWER));
        let (held, was_held) = (self.quirks.is_held, self.quirks.was_held);
        let request = Request {
            no_tools: true,
            held,
            was_held,
            max_tokens: Some(max_tokens),
            at_most,
            ..Request::default()
        };
        let was_cut = task.cut.is_some() && !task.response.is_empty();
        task.spent.turns += 1;
        let begun = Instant::now();
        let mut outcome = self
            .ask(
                task,
                &request,
                self.options.time_for_last_answer(),
                interrupt,
            )
            .await;
        if let Err(error) = &outcome
            && let llm::Error::ContextExceeded { prompt, context } = error.root()
            && error.partial().is_none()
        {
            self.make_last_room(max_tokens.min(SHORT), Some((*prompt, *context)), interrupt)
                .await;
            let left = self
                .options
                .time_for_last_answer()
                .saturating_sub(begun.elapsed());
            outcome = self.ask(task, &request, left, interrupt).await;
        }
        match outcome {
            Ok(reply) => {
                if reply.finish == Finish::ContentFilter {
                    self.emit(Kind::Warning {
                        message: "the model server's content filter cut the last answer".to_owned(),
                    });
                }
                let words = text_beside_calls(
                    reply.written.as_ref().unwrap_or(&reply.text),
                    self.conversation.prompt().known(),
                );
                if words.is_some() {
                    self.emit(Kind::Warning {
                        message: "the last answer ends with a call, which is not executed"
                            .to_owned(),
                    });
                }
                let said = words.unwrap_or(reply.text);
                // A partial answer from before is better than none, and so is text that is not a
                // call.
                let is_said = !said.trim().is_empty();
                if is_said {
                    task.response = said;
                }
                if is_said && reply.finish == Finish::Length || !is_said && was_cut {
                    self.emit(Kind::Warning {
                        message: INCOMPLETE.to_owned(),
                    });
                }
                None
            }
            Err(error) if matches!(error.root(), llm::Error::Cancelled) => {
                Some(Failure::Model(error))
            }
            Err(error) => {
                if error.partial().is_none() {
                    task.spent.turns -= 1;
                }
                self.emit(Kind::Warning {
                    message: format!("no summary: {}", error.root()),
                });
                if was_cut {
                    self.emit(Kind::Warning {
                        message: INCOMPLETE.to_owned(),
                    });
                }
                None
            }
        }
    }

    /// Sends the conversation and records the reply.
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
        let mut early = EarlyCalls::new(&self.pipeline, &self.places, &cancel);
        let mut awaited = None;
        let mut show = |update: Update| {
            match &update {
                Update::CallReady(ready) => early.take(ready),
                Update::Retrying { .. } | Update::Loading { .. } | Update::Away { .. } => {
                    early.anew();
                }
                _ => {}
            }
            let awaits = match &update {
                Update::Loading { .. } => Some(LOADS),
                Update::Away { .. } => Some(AWAY),
                _ => None,
            };
            if awaited != awaits
                && let Some(task) = std::mem::replace(&mut awaited, awaits)
            {
                sink(waited_for(task, "").into());
            }
            for kind in shown(update) {
                sink(kind.into());
            }
        };
        let request = &Request {
            room: self.room_for_answer(interrupt).await,
            ..request.clone()
        };
        self.emit(Kind::ModelAsked);
        self.conversation.asked();
        let outcome = self
            .client
            .stream(
                self.conversation.prompt(),
                request,
                &mut show,
                &cancel,
                within,
            )
            .await;
        if let Some(task) = awaited {
            // A failed wait is not reported as done.
            let is_in_vain = outcome.as_ref().map_or_else(
                |error| error.partial().is_none(),
                |reply| reply.finish == Finish::Interrupted,
            );
            self.emit(waited_for(task, if is_in_vain { GIVEN_UP } else { "" }));
        }
        interrupt.idle();
        let (mut reply, error) = match outcome {
            Ok(reply) => (reply, None),
            // The part received before the failure was shown, so it is recorded too.
            Err(error) => (error.partial().cloned().unwrap_or_default(), Some(error)),
        };
        self.treat_as_text(task, &mut reply);
        let n_bytes = self.conversation.prompt().n_bytes();
        let interrupted = error.is_some() || reply.finish == Finish::Interrupted;
        if interrupted || request.no_tools || reply.finish == Finish::ContentFilter {
            // They will not be executed, and servers refuse a conversation in which a call has no
            // result.
            reply.calls.clear();
        }
        task.early = early.end(&reply.calls).await;
        let usage = self.usage_of(self.conversation.prompt(), &reply);
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
                cut: reply.finish == Finish::Length,
                duration_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            });
            if !reply.text.is_empty() || !reply.calls.is_empty() {
                self.conversation.push(reply.message());
            }
        }
        // An impossible count is ignored; the conversation is then estimated.
        if error.is_none() && window_gauge::is_possible(&reply.usage, self.gauge.told(&self.client))
        {
            self.warn_of_truncation(n_bytes, reply.usage.prompt);
            self.gauge
                .counted(&reply.usage, n_bytes, self.conversation.prompt().n_bytes());
        }
        error.map_or(Ok(reply), Err)
    }

    /// Warns if the server counts fewer tokens for a conversation that only grew: it may read only
    /// the end of it.
    fn warn_of_truncation(&mut self, n_bytes: usize, prompt: u64) {
        let prompt_now = self.conversation.prompt();
        if prompt_now.replays_thinking() {
            // Its template may drop old reasoning, and it refuses what is too long.
            return;
        }
        if let Some(before) = self.gauge.shorter(n_bytes, prompt) {
            let message = format!(
                "the model server counted {prompt} tokens in a conversation of which it had counted {before} before: it seems to drop the \
                 beginning silently. Give its model a larger window (Ollama: `num_ctx` or OLLAMA_CONTEXT_LENGTH) and set \
                 `llm.context` to its size"
            );
            self.emit(Kind::Warning { message });
        }
    }

    /// Returns an answer's usage: as counted by the server, else estimated from its size.
    pub(super) fn usage_of(&self, prompt: &Prompt, reply: &Reply) -> Usage {
        match reply.usage.total() {
            0 => self.client.options().price.priced(estimate(prompt, reply)),
            _ => reply.usage,
        }
    }

    /// Returns the token limit of a final answer: a few paragraphs, unless the options allow less.
    fn last_answer_tokens(&self) -> u64 {
        let set = self
            .client
            .options()
            .max_output_tokens
            .and_then(|tokens| u64::try_from(tokens).ok());
        set.unwrap_or(1024).min(1024)
    }

    pub(super) fn time_left(&self, task: &Task) -> Duration {
        let most = self.client.options().request_timeout();
        match self.options.timeout.get() {
            0 => most,
            seconds => Duration::from_secs(seconds)
                .saturating_sub(task.begun.elapsed())
                .min(most),
        }
    }
}

/// Says that a pause exceeds the time left: there is no retry after it.
pub(super) fn too_late(pause: Duration, left: Duration) -> String {
    let (pause, left) = (pause.as_secs_f64(), left.as_secs_f64());
    format!("a retry in {pause:.1} s would be too late: the time is over in {left:.1} s")
}

/// Reports how long something has been waited for, and the limit.
fn waiting(task: &str, waited: Duration, most: Option<Duration>) -> Kind {
    let total = most.map(|most| most.as_secs());
    let done = waited.as_secs().min(total.unwrap_or(u64::MAX));
    Kind::Progress(Progress {
        task: task.to_owned(),
        done,
        total,
        unit: Unit::Seconds,
        detail: String::new(),
        finished: false,
    })
}

/// Reports the end of a wait, with the outcome if it failed.
fn waited_for(task: &str, how: &str) -> Kind {
    let (task, detail) = (task.to_owned(), how.to_owned());
    Kind::Progress(Progress {
        task,
        done: 0,
        total: None,
        unit: Unit::Seconds,
        detail,
        finished: true,
    })
}

/// Returns the events for an update.
fn shown(update: Update) -> Vec<Kind> {
    let kind = match update {
        Update::Text(text) => Kind::TextDelta { text },
        Update::Thinking(text) => Kind::ThinkingDelta { text },
        Update::CallStarted { .. } | Update::CallReady(_) => return Vec::new(),
        // A short prefill needs no progress bar.
        Update::Prefill { total, .. } if total < 1024 => return Vec::new(),
        Update::Prefill { done, total } => Kind::Progress(Progress {
            task: "the model reads".to_owned(),
            done,
            total: Some(total),
            unit: Unit::Tokens,
            detail: String::new(),
            finished: done >= total,
        }),
        Update::Loading { waited } => waiting(LOADS, waited, None),
        Update::Away {
            waited,
            most,
            reason,
        } => {
            let mut kinds = vec![waiting(AWAY, waited, Some(most))];
            if waited.is_zero() {
                let message = format!(
                    "{reason}; trying again for up to {} s",
                    most.as_secs_f64().round()
                );
                kinds.insert(0, Kind::Warning { message });
            }
            return kinds;
        }
        Update::Changed { reason, change } => Kind::Warning {
            message: format!("{reason}; {change}"),
        },
        Update::Retrying {
            attempt,
            wait,
            left,
            reason,
        } => {
            let message = match left {
                Some(left) if left <= wait => format!("{reason}; {}", too_late(wait, left)),
                _ => format!(
                    "{reason}; trying again in {:.1} s (attempt {attempt})",
                    wait.as_secs_f64()
                ),
            };
            Kind::Warning { message }
        }
    };
    vec![kind]
}

/// Estimates one token per four bytes if the server counts nothing.
fn estimate(prompt: &Prompt, reply: &Reply) -> Usage {
    let written = reply.text.len()
        + reply.thinking.len()
        + reply
            .calls
            .iter()
            .map(|call| call.arguments.len())
            .sum::<usize>();
    Usage {
        prompt: prompt.n_bytes() as u64 / 4,
        cached: 0,
        completion: written as u64 / 4,
        cost_usd: None,
    }
}
