//! Adapts requests to what the model and its server turn out to support, for the rest of the
//! session.
//! Each step goes one way, from native tool calls over a schema to plain text, so it ends. If the
//! user set `llm.tool_mode`, only the position of the system prompt changes, which costs the model
//! nothing.

use std::time::Duration;

use super::Agent;
use super::Interrupt;
use super::budget::LEAST_ANSWER;
use super::budget::left;
use super::model_request::too_late;
use super::task::Task;
use podbay_event::CallStatus;
use podbay_event::Kind;
use podbay_event::LimitKind;
use podbay_event::ToolCall;
use podbay_event::ToolMode;
use podbay_event::ToolTold;
use podbay_llm as llm;
use podbay_llm::Finish;
use podbay_llm::Objection;
use podbay_llm::Reply;
use podbay_llm::Request;
use podbay_llm::ToolModeChoice;
use podbay_tools::MissingArguments;

/// Answers in a row with incomplete calls until the tool mode changes.
const MAX_LACKING: u32 = 2;
/// Answers in a row that do not conform to their schema until no schema is requested any more.
const MAX_UNHELD: u32 = 2;
/// How often one answer with a lost rest is requested again, unless the settings allow fewer
/// retries.
const MAX_LOST: u32 = 2;
/// The message to the model in that case.
const LOST: &str = "The rest of your last answer was lost. Give the whole answer again.";

/// What was learnt about how to send requests to this model.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ModelQuirks {
    /// Answers are constrained to a schema although tools are offered natively: what was sent stays
    /// unchanged.
    pub(super) is_held: bool,
    /// Tools were offered by a schema before they were offered by text: the model sees its own
    /// objects, and may continue to use them.
    pub(super) was_held: bool,
    /// The system prompt is sent as part of the user's first message.
    pub(super) is_folded: bool,
    /// A call that the server parsed has succeeded.
    pub(super) calls_work: bool,
    n_lacking: u32,
    /// Answers in a row that did not conform to their schema.
    n_unheld: u32,
}

impl Agent {
    /// Sends the request, and changes its form if the server objects.
    pub(super) async fn ask_adapting(
        &mut self,
        task: &mut Task,
        interrupt: &Interrupt,
    ) -> Result<Reply, llm::Error> {
        self.switch_to_text();
        let mut n_lost = 0;
        loop {
            let left = self.left(task, interrupt).await;
            let at_most = left.map(|(_, left)| left.max(LEAST_ANSWER));
            let goes_on = !task.open.pieces.is_empty();
            let (held, was_held) = (self.quirks.is_held, self.quirks.was_held);
            let request = Request {
                held,
                was_held,
                at_most,
                no_tools: task.is_talk,
                goes_on,
                ..Request::default()
            };
            let outcome = self
                .ask(task, &request, self.time_left(task), interrupt)
                .await;
            task.cut = left
                .map(|(kind, _)| kind)
                .filter(|_| outcome.as_ref().is_ok_and(|reply| is_cut(reply, at_most)));
            let Err(error) = &outcome else { return outcome };
            if interrupt.is_ended() || self.time_left(task).is_zero() {
                return outcome;
            }
            let why = error.root().to_string();
            let pause = match error.objection() {
                Some(objection) if self.adapt(objection, &why) => Some(Duration::ZERO),
                Some(objection) if objection != Objection::Unreadable => None,
                _ => self.retry_pause(error, &mut n_lost, self.time_left(task)),
            };
            let Some(pause) = pause else { return outcome };
            if !self.rest(pause, task, interrupt).await {
                return Ok(error.partial().cloned().unwrap_or_default());
            }
            // The part received so far is already in it.
            if !self.conversation.history().is_open() {
                self.note(LOST);
            }
        }
    }

    /// Returns after which pause an answer with a lost rest is requested again, if at all, and
    /// emits a notice.
    /// Nothing of it was executed: read-only calls that had begun early are cancelled by now, and
    /// were not reported.
    fn retry_pause(
        &self,
        error: &llm::Error,
        n_lost: &mut u32,
        left: Duration,
    ) -> Option<Duration> {
        // The model may write the next one so that its server can parse it.
        let is_unreadable = error.objection() == Some(Objection::Unreadable);
        if error.partial().is_none() && !is_unreadable
            || *n_lost >= MAX_LOST.min(self.client.options().retries)
        {
            return None;
        }
        // A server that reported a failure itself gets a moment; a lost connection is reopened at
        // once.
        let (pause, when) = if error.is_lost() || is_unreadable {
            (Duration::ZERO, String::new())
        } else if error.is_given_up() {
            let pause = self.client.pause_before(error, *n_lost)?;
            (pause, format!(" in {:.1} s", pause.as_secs_f64()))
        } else {
            return None;
        };
        *n_lost += 1;
        let then = if left <= pause {
            too_late(pause, left)
        } else {
            format!("the model is asked for all of it again{when}")
        };
        let what = if is_unreadable {
            "no answer came"
        } else {
            "the answer broke off"
        };
        let message = format!("{what}: {}; {then}", error.root());
        self.emit(Kind::Warning { message });
        Some(pause)
    }

    /// Sleeps, but no longer than the task has time; returns false if the user interrupted it.
    async fn rest(&self, pause: Duration, task: &Task, interrupt: &Interrupt) -> bool {
        if pause.is_zero() {
            return true;
        }
        let step = interrupt.step();
        let goes_on = tokio::time::timeout(pause.min(self.time_left(task)), step.cancelled())
            .await
            .is_err();
        interrupt.idle();
        goes_on
    }

    /// Returns how many tokens the next answer may have, if the task has a limit, and which limit
    /// that is.
    pub(super) async fn left(
        &mut self,
        task: &Task,
        interrupt: &Interrupt,
    ) -> Option<(LimitKind, u64)> {
        let (spent, limits) = self.account.shared(&task.spent, &self.options);
        if limits.max_tokens == 0 && limits.max_cost <= 0.0 {
            return None;
        }
        let prompt = self
            .gauge
            .used(&self.conversation, &self.client, interrupt.run())
            .await;
        left(prompt, &spent, &limits, &self.client.options().price)
    }

    /// Changes the form of requests; returns whether there is another one.
    fn adapt(&mut self, objection: Objection, why: &str) -> bool {
        let mode = self.conversation.prompt().mode();
        match objection {
            Objection::Image => return self.remove_images(why),
            Objection::Thinking if !self.conversation.prompt().replays_thinking() => {
                self.emit(Kind::Warning {
                    message: format!(
                        "the model's reasoning is sent back with its answers from now on: {why}"
                    ),
                });
                self.conversation.replay_thinking();
                self.rewrite(mode);
            }
            Objection::Roles | Objection::Tools
                if mode == ToolMode::Native && self.may_change() =>
            {
                self.change_mode(ToolMode::Constrained, why);
            }
            Objection::Roles | Objection::System if !self.quirks.is_folded => {
                self.quirks.is_folded = true;
                self.emit(Kind::Warning {
                    message: format!("the system prompt is sent with the task from now on: {why}"),
                });
                self.rewrite(mode);
            }
            Objection::Schema if self.quirks.is_held => {
                self.quirks.is_held = false;
                self.change_mode(ToolMode::Constrained, why);
            }
            Objection::Schema | Objection::Unreadable
                if mode == ToolMode::Constrained && self.may_change() =>
            {
                self.change_mode(ToolMode::Text, why);
            }
            Objection::Unreadable
                if mode == ToolMode::Native && !self.quirks.is_held && self.may_change() =>
            {
                if self
                    .client
                    .probed()
                    .is_some_and(|probed| probed.holds_calls())
                {
                    self.quirks.is_held = true;
                    self.announce(mode, ToolMode::Constrained, why);
                } else {
                    self.change_mode(ToolMode::Constrained, why);
                }
            }
            Objection::Unreadable if self.quirks.is_held => {
                self.quirks.is_held = false;
                self.change_mode(ToolMode::Constrained, why);
            }
            _ => return false,
        }
        true
    }

    /// Removes the images from the conversation, since every later request would be refused because
    /// of them too; returns whether there were any.
    fn remove_images(&mut self, why: &str) -> bool {
        let n_images = self.conversation.remove_images();
        if n_images == 0 {
            return false;
        }
        self.gauge.rewritten();
        let blind = why.to_ascii_lowercase().contains("support");
        self.emit(Kind::ImagesTakenOut { blind });
        if blind {
            // No image is shown from now on; reading one returns an alternative instead.
            self.pipeline.set_images(false);
        }
        let images = if n_images == 1 {
            "an image was".to_owned()
        } else {
            format!("{n_images} images were")
        };
        self.emit(Kind::Warning {
            message: format!("{images} removed from the conversation: {why}"),
        });
        self.note(
            "The model server cannot read an image that you asked for, so you are shown none of those above. Do not describe what you have \
             not seen; continue without it.",
        );
        true
    }

    /// Checks whether an empty answer may be caused by the tools: a server that cannot offer them
    /// to its model may send nothing at all.
    pub(super) fn learn_from_silence(&mut self, reply: &Reply) {
        let is_mute = reply.text.trim().is_empty()
            && reply.thinking.trim().is_empty()
            && reply.finish != Finish::Length;
        if is_mute && self.uses_native_only() && !self.quirks.calls_work {
            self.change_mode(
                ToolMode::Constrained,
                "the model gave an empty answer with native tool calls",
            );
        }
    }

    /// Checks whether answers violate the schema that was requested.
    pub(super) fn learn_from_form(&mut self, reply: &Reply) {
        let is_asked = self.conversation.prompt().mode() == ToolMode::Constrained;
        self.quirks.n_unheld = if is_asked && reply.is_unheld {
            self.quirks.n_unheld + 1
        } else {
            0
        };
    }

    /// Offers tools by text if a server accepts a schema without enforcing it. Must be called only
    /// when every call has its result.
    fn switch_to_text(&mut self) {
        if self.quirks.n_unheld >= MAX_UNHELD
            && self.conversation.prompt().mode() == ToolMode::Constrained
            && self.may_change()
        {
            self.quirks.n_unheld = 0;
            self.change_mode(
                ToolMode::Text,
                "answers did not conform to the requested schema",
            );
        }
    }

    /// Checks whether calls lack required arguments, which a schema would prevent.
    pub(super) fn learn_from_calls(&mut self, calls: &[ToolCall], statuses: &[CallStatus]) {
        self.quirks.calls_work |= statuses.contains(&CallStatus::Ok);
        let invalid = calls
            .iter()
            .zip(statuses)
            .filter(|(_, status)| **status == CallStatus::Invalid);
        let lacks = invalid.filter_map(|(call, _)| {
            self.pipeline
                .catalogue
                .missing_arguments(&call.name, &call.arguments)
        });
        self.quirks.n_lacking = match lacks.max() {
            None => 0,
            Some(MissingArguments::Some) => self.quirks.n_lacking + 1,
            Some(MissingArguments::All) => MAX_LACKING,
        };
        if self.quirks.n_lacking >= MAX_LACKING && self.uses_native_only() {
            self.change_mode(ToolMode::Constrained, "calls lacked required arguments");
        }
    }

    /// Returns whether tools are offered, and answers parsed, natively only, and that may change.
    fn uses_native_only(&self) -> bool {
        let prompt = self.conversation.prompt();
        prompt.mode() == ToolMode::Native
            && !prompt.tools().is_empty()
            && !self.quirks.is_held
            && self.may_change()
    }

    pub(super) fn may_change(&self) -> bool {
        self.client.options().tool_mode == ToolModeChoice::Auto
    }

    fn change_mode(&mut self, to: ToolMode, why: &str) {
        self.quirks.was_held |=
            (self.conversation.prompt().mode(), to) == (ToolMode::Constrained, ToolMode::Text);
        self.announce(self.conversation.prompt().mode(), to, why);
        self.rewrite(to);
    }

    fn announce(&self, from: ToolMode, to: ToolMode, why: &str) {
        self.emit(Kind::ToolModeChanged {
            from,
            to,
            reason: why.to_owned(),
        });
    }

    /// Rewrites the conversation; the server reads all of it again.
    fn rewrite(&mut self, mode: ToolMode) {
        self.conversation.rewrite(mode, self.quirks.is_folded);
        self.gauge.rewritten();
        let prompt = self.conversation.prompt();
        let told = |tool: &llm::ToolSpec| ToolTold {
            name: tool.name.clone(),
            description: tool.description.clone(),
            parameters: tool.parameters.clone(),
        };
        self.emit(Kind::PromptBegun {
            system: prompt.system().to_owned(),
            tools: prompt.tools().iter().map(told).collect(),
            mode,
            thinking: prompt.replays_thinking(),
            folded: self.quirks.is_folded,
        });
    }
}

/// Returns whether an answer was truncated by a limit of its task.
fn is_cut(reply: &Reply, at_most: Option<u64>) -> bool {
    reply.finish == Finish::Length && at_most.is_some_and(|most| reply.usage.completion >= most)
}
