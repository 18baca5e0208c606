//! Asks otherwise where a model or its server cannot do what was asked: by the evidence of what
//! came back, and for the rest of the session.
//!
//! Each step goes one way, from the server's own calls over a schema to plain text, so it ends. A
//! person's `llm.tool_mode` holds: then only where the system prompt stands is changed, which costs
//! the model nothing.

use std::time::Duration;

use super::Agent;
use super::Interrupt;
use super::ask::too_late;
use super::budget::LEAST_ANSWER;
use super::budget::left;
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

/// Answers in a row whose calls lack something, until the model is told of tools otherwise.
const MAX_LACKING: u32 = 2;
/// Answers in a row that a schema should have made otherwise, until nothing is asked by one.
const MAX_UNHELD: u32 = 2;
/// How often one answer whose rest was lost is asked for again, unless the settings allow fewer
/// retries.
const MAX_LOST: u32 = 2;
/// Said then.
const LOST: &str = "The rest of your last answer was lost. Give the whole answer again.";

/// What was learnt of the way this model has to be asked.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Learnt {
    /// Answers are held to a schema although tools are told by the server's own means: what was
    /// sent stays as it is.
    pub(super) is_held: bool,
    /// Tools were told by a schema before they were told by text: the model sees its own objects,
    /// and may go on with them.
    pub(super) was_held: bool,
    /// The system prompt goes with the first words of the person.
    pub(super) is_folded: bool,
    /// A call that the server understood succeeded.
    pub(super) calls_work: bool,
    n_lacking: u32,
    /// Answers in a row that no schema held.
    n_unheld: u32,
}

impl Agent {
    /// Asks, and asks otherwise where the server objects to the way it was asked.
    pub(super) async fn ask_adapting(
        &mut self,
        task: &mut Task,
        interrupt: &Interrupt,
    ) -> Result<Reply, llm::Error> {
        self.tell_by_text();
        let mut n_lost = 0;
        loop {
            let left = self.left(task, interrupt).await;
            let at_most = left.map(|(_, left)| left.max(LEAST_ANSWER));
            let goes_on = !task.open.pieces.is_empty();
            let (held, was_held) = (self.learnt.is_held, self.learnt.was_held);
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
                _ => self.asks_again(error, &mut n_lost, self.time_left(task)),
            };
            let Some(pause) = pause else { return outcome };
            if !self.rest(pause, task, interrupt).await {
                return Ok(error.partial().cloned().unwrap_or_default());
            }
            // What had come of the answer stands there already.
            if !self.conversation.history().is_open() {
                self.note(LOST);
            }
        }
    }

    /// Returns after how long an answer whose rest was lost is asked for again, if it is, and says
    /// so.
    ///
    /// Nothing of it was carried out: calls that only read and had begun early are taken back by
    /// now, and nobody heard of them.
    fn asks_again(&self, error: &llm::Error, n_lost: &mut u32, left: Duration) -> Option<Duration> {
        // The model may write the next one so that its server can read it.
        let is_unreadable = error.objection() == Some(Objection::Unreadable);
        if error.partial().is_none() && !is_unreadable
            || *n_lost >= MAX_LOST.min(self.client.options().retries)
        {
            return None;
        }
        // A server that says itself that it failed gets a moment; a connection is made anew at
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

    /// Lets time pass, but no more than the task has; returns false where the person ended that.
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

    /// Returns how many tokens the next answer may have, where the task has a limit, and which
    /// limit that is.
    pub(super) async fn left(
        &mut self,
        task: &Task,
        interrupt: &Interrupt,
    ) -> Option<(LimitKind, u64)> {
        if self.options.max_tokens == 0 && self.options.max_cost <= 0.0 {
            return None;
        }
        let prompt = self
            .gauge
            .used(&self.conversation, &self.client, interrupt.run())
            .await;
        left(
            prompt,
            &task.spent,
            &self.options,
            &self.client.options().price,
        )
    }

    /// Changes the way of asking; returns whether there is another one.
    fn adapt(&mut self, objection: Objection, why: &str) -> bool {
        let mode = self.conversation.prompt().mode();
        match objection {
            Objection::Image => return self.take_images_out(why),
            Objection::Thinking if !self.conversation.prompt().replays_thinking() => {
                self.emit(Kind::Warning {
                    message: format!(
                        "the model's thinking goes back with its answers from here on: {why}"
                    ),
                });
                self.conversation.replay_thinking();
                self.retell(mode);
            }
            Objection::Roles | Objection::Tools
                if mode == ToolMode::Native && self.may_change() =>
            {
                self.change_mode(ToolMode::Constrained, why);
            }
            Objection::Roles | Objection::System if !self.learnt.is_folded => {
                self.learnt.is_folded = true;
                self.emit(Kind::Warning {
                    message: format!("the system prompt goes with the task from here on: {why}"),
                });
                self.retell(mode);
            }
            Objection::Schema if self.learnt.is_held => {
                self.learnt.is_held = false;
                self.change_mode(ToolMode::Constrained, why);
            }
            Objection::Schema | Objection::Unreadable
                if mode == ToolMode::Constrained && self.may_change() =>
            {
                self.change_mode(ToolMode::Text, why);
            }
            Objection::Unreadable
                if mode == ToolMode::Native && !self.learnt.is_held && self.may_change() =>
            {
                if self
                    .client
                    .probed()
                    .is_some_and(|probed| probed.holds_calls())
                {
                    self.learnt.is_held = true;
                    self.announce(mode, ToolMode::Constrained, why);
                } else {
                    self.change_mode(ToolMode::Constrained, why);
                }
            }
            Objection::Unreadable if self.learnt.is_held => {
                self.learnt.is_held = false;
                self.change_mode(ToolMode::Constrained, why);
            }
            _ => return false,
        }
        true
    }

    /// Takes the images out of the conversation, since every later request would be refused for
    /// them too; returns whether there were any.
    fn take_images_out(&mut self, why: &str) -> bool {
        let n_images = self.conversation.take_images_out();
        if n_images == 0 {
            return false;
        }
        self.gauge.retold();
        let blind = why.to_ascii_lowercase().contains("support");
        self.emit(Kind::ImagesTakenOut { blind });
        if blind {
            // None is shown from here on: what can be done instead is the result of reading one
            // then.
            self.pipeline.set_images(false);
        }
        let images = if n_images == 1 {
            "an image was".to_owned()
        } else {
            format!("{n_images} images were")
        };
        self.emit(Kind::Warning {
            message: format!("{images} taken out of the conversation: {why}"),
        });
        self.note(
            "The model server cannot read an image that you asked for, so you are shown none of those above. Do not describe what you have \
             not seen; go on without it.",
        );
        true
    }

    /// Looks whether an answer without a word may come of the tools: a server that cannot tell its
    /// model about them may say nothing at all.
    pub(super) fn learn_from_silence(&mut self, reply: &Reply) {
        let is_mute = reply.text.trim().is_empty()
            && reply.thinking.trim().is_empty()
            && reply.finish != Finish::Length;
        if is_mute && self.is_plainly_native() && !self.learnt.calls_work {
            self.change_mode(
                ToolMode::Constrained,
                "the model answered without a word when it was told of tools by the server's own means",
            );
        }
    }

    /// Looks whether answers come that a schema would not have let through.
    pub(super) fn learn_from_form(&mut self, reply: &Reply) {
        let is_asked = self.conversation.prompt().mode() == ToolMode::Constrained;
        self.learnt.n_unheld = if is_asked && reply.is_unheld {
            self.learnt.n_unheld + 1
        } else {
            0
        };
    }

    /// Tells of tools by text where a server takes a schema and holds its model to none. To be
    /// called where every call has its result.
    fn tell_by_text(&mut self) {
        if self.learnt.n_unheld >= MAX_UNHELD
            && self.conversation.prompt().mode() == ToolMode::Constrained
            && self.may_change()
        {
            self.learnt.n_unheld = 0;
            self.change_mode(
                ToolMode::Text,
                "answers came that are not held to the schema they were asked for by",
            );
        }
    }

    /// Looks whether calls come without what they must have, which a schema would not let happen.
    pub(super) fn learn_from_calls(&mut self, calls: &[ToolCall], statuses: &[CallStatus]) {
        self.learnt.calls_work |= statuses.contains(&CallStatus::Ok);
        let invalid = calls
            .iter()
            .zip(statuses)
            .filter(|(_, status)| **status == CallStatus::Invalid);
        let lacks = invalid.filter_map(|(call, _)| {
            self.pipeline
                .catalogue
                .missing_arguments(&call.name, &call.arguments)
        });
        self.learnt.n_lacking = match lacks.max() {
            None => 0,
            Some(MissingArguments::Some) => self.learnt.n_lacking + 1,
            Some(MissingArguments::All) => MAX_LACKING,
        };
        if self.learnt.n_lacking >= MAX_LACKING && self.is_plainly_native() {
            self.change_mode(
                ToolMode::Constrained,
                "calls came without arguments that they must have",
            );
        }
    }

    /// Returns whether tools are told, and answers read, by the server's own means alone, and that
    /// may change.
    fn is_plainly_native(&self) -> bool {
        let prompt = self.conversation.prompt();
        prompt.mode() == ToolMode::Native
            && !prompt.tools().is_empty()
            && !self.learnt.is_held
            && self.may_change()
    }

    pub(super) fn may_change(&self) -> bool {
        self.client.options().tool_mode == ToolModeChoice::Auto
    }

    fn change_mode(&mut self, to: ToolMode, why: &str) {
        self.learnt.was_held |=
            (self.conversation.prompt().mode(), to) == (ToolMode::Constrained, ToolMode::Text);
        self.announce(self.conversation.prompt().mode(), to, why);
        self.retell(to);
    }

    fn announce(&self, from: ToolMode, to: ToolMode, why: &str) {
        self.emit(Kind::ToolModeChanged {
            from,
            to,
            reason: why.to_owned(),
        });
    }

    /// Writes the conversation anew; the server reads all of it again.
    fn retell(&mut self, mode: ToolMode) {
        self.conversation.retell(mode, self.learnt.is_folded);
        self.gauge.retold();
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
            folded: self.learnt.is_folded,
        });
    }
}

/// Returns whether an answer was cut where a limit of its task had it end.
fn is_cut(reply: &Reply, at_most: Option<u64>) -> bool {
    reply.finish == Finish::Length && at_most.is_some_and(|most| reply.usage.completion >= most)
}
