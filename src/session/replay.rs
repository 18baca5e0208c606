//! Replays the events of a log and rebuilds the conversation.

use super::images;
use super::resume_state::Fullness;
use super::resume_state::NOT_BEGUN;
use super::resume_state::OpenCall;
use super::resume_state::PromptPrefix;
use super::resume_state::ResumeState;
use super::resume_state::UNKNOWN_END;
use podbay_event::CallStatus;
use podbay_event::Kind;
use podbay_event::OpenAnswer;
use podbay_event::Plan;
use podbay_event::RunStatus;
use podbay_event::TaskEnd;
use podbay_event::ToolCall;
use podbay_event::ToolMode;
use podbay_llm::message::Message;

/// Stands where a damaged log lacks the messages between two answers.
pub(super) const MISSING: &str = "(a message is missing here)";

/// The tool whose calls make the session's task list.
const TASKS: &str = "task_list";

/// A call of the last answer.
struct AskedCall {
    call: ToolCall,
    begun: bool,
    result: Option<(CallStatus, String)>,
}

impl AskedCall {
    fn open(self) -> OpenCall {
        OpenCall {
            call: self.call,
            begun: self.begun,
        }
    }
}

#[derive(Default)]
pub(super) struct Replay {
    past: ResumeState,
    /// The calls of the last answer, until each has its result: results are in the order of the
    /// calls.
    calls: Vec<AskedCall>,
    /// A call that may change the task list, and its arguments, until it has ended.
    listing: Option<(String, String)>,
    /// The state before each message of the user, for rewinding.
    before: Vec<RewindPoint>,
    /// Whether the last answer is complete and has no calls.
    is_answered: bool,
    /// The last answer made a plan, which may be the end of its task.
    is_planned: bool,
}

struct RewindPoint {
    /// Length of `ResumeState::tasks`.
    n_tasks: usize,
    /// Length of `ResumeState::seen`.
    n_seen: usize,
    /// Length of `ResumeState::instructions`.
    n_instructions: usize,
    /// How the task before ended.
    ended: Option<TaskEnd>,
}

impl Replay {
    /// Ends the replay: calls of the last answer without a result are open.
    pub(super) fn end(self) -> ResumeState {
        let open = self
            .calls
            .into_iter()
            .filter(|call| call.result.is_none())
            .map(AskedCall::open)
            .collect();
        ResumeState { open, ..self.past }
    }

    /// Replays the next event.
    pub(super) fn take(&mut self, kind: &Kind) {
        match kind {
            Kind::SessionStarted { task, .. } => self.past.task.clone_from(task),
            Kind::SessionResumed { task, .. } => {
                self.past.status = None;
                // A session that was continued has shown them.
                self.past.n_unshown = 0;
                if task.is_some() {
                    self.past.task.clone_from(task);
                    self.past.ended = None;
                }
            }
            Kind::SessionRewound { turns } => {
                self.give_up();
                let before = self.past.history.n_turns();
                self.past.history.rewind(*turns as usize);
                let left = self
                    .before
                    .len()
                    .saturating_sub(before - self.past.history.n_turns());
                self.past.fullness.counted = None;
                self.past.open_answer = OpenAnswer::default();
                self.past.ended = None;
                if let Some(before) = self.before.drain(left..).next() {
                    self.past.tasks.truncate(before.n_tasks);
                    self.past.seen.truncate(before.n_seen);
                    self.past.instructions.truncate(before.n_instructions);
                    // The user's next message shows that the end was reported.
                    (self.past.ended, self.past.is_told) = (before.ended, true);
                }
                // Older logs do not say it; their last answer does.
                let status = self
                    .past
                    .ended
                    .as_ref()
                    .map_or(RunStatus::Completed, |ended| ended.status);
                (self.past.status, self.past.task) = (Some(status), None);
            }
            Kind::PromptBegun {
                system,
                tools,
                mode,
                thinking,
                folded,
            } => {
                let (system, tools) = (system.clone(), tools.clone());
                self.past.beginning = Some(PromptPrefix {
                    system,
                    tools,
                    mode: *mode,
                    thinking: *thinking,
                    folded: *folded,
                });
                self.past.fullness.counted = None;
                // Tools passed by a schema constrain answers anyway.
                self.past.is_held &= *mode == ToolMode::Native;
            }
            // Only the parsing changes, unless a new prefix follows.
            Kind::ToolModeChanged { from, to, .. } => {
                self.past.is_held = (*from, *to) == (ToolMode::Native, ToolMode::Constrained);
                self.past.was_held |= (*from, *to) == (ToolMode::Constrained, ToolMode::Text);
            }
            Kind::ContextAdded {
                text,
                instructions,
                seen,
            } => {
                self.past.is_told |= self.past.ended.is_some();
                self.past.seen.extend_from_slice(seen);
                self.past.instructions.extend_from_slice(instructions);
                self.give_up();
                self.past.history.tell(text);
            }
            // After the end of a task, both come from the user's own actions, such as rewinding:
            // the user knows how it ended.
            Kind::NoteAdded { text } => {
                self.past.is_told |= self.past.ended.is_some();
                self.give_up();
                // This note replaces an image that could not be stored.
                self.past.n_unshown = self.past.n_unshown.saturating_sub(1);
                self.past.history.push(Message::user(text));
            }
            Kind::ImageShown {
                text,
                media_type,
                artifact,
            } => {
                self.give_up();
                self.past.n_unshown = self.past.n_unshown.saturating_sub(1);
                self.past.history.push(Message::Image {
                    text: text.clone(),
                    url: images::name(artifact, media_type),
                });
            }
            Kind::ImagesTakenOut { blind } => {
                self.give_up();
                self.past.history.take_images_out();
                self.past.fullness.counted = None;
                self.past.is_blind |= blind;
            }
            Kind::UserMessage { text, images } => {
                self.give_up();
                let (n_tasks, n_seen) = (self.past.tasks.len(), self.past.seen.len());
                self.before.push(RewindPoint {
                    n_tasks,
                    n_seen,
                    n_instructions: self.past.instructions.len(),
                    ended: self.past.ended.take(),
                });
                (self.is_answered, self.is_planned) = (false, false);
                self.past.open_answer = OpenAnswer::default();
                self.past.n_unshown = *images;
                (self.past.status, self.past.task) = (None, None);
                self.past.history.say(text);
            }
            Kind::UserMessageAdded { text } => {
                self.give_up();
                self.past.history.say_more(text);
            }
            Kind::ModelAsked => {
                self.past.ended = None;
                (self.is_answered, self.is_planned) = (false, false);
                self.give_up();
                self.past.history.asked();
            }
            Kind::AnswerOpen(open) => self.past.open_answer.clone_from(open),
            // A repeated record is redundant, and in a damaged log it may follow no answer at all.
            Kind::TaskEnded(ended)
                if self.past.ended.is_none()
                    && (self.is_answered || self.is_planned || !ended.is_settled()) =>
            {
                (self.past.ended, self.past.is_told) = (Some(ended.clone()), false);
            }
            Kind::AssistantMessage {
                text,
                thinking,
                calls,
                raw,
                usage,
                interrupted,
                cut,
                ..
            } => {
                self.answer(text, thinking, calls, raw.as_ref());
                self.is_answered = !interrupted && calls.is_empty();
                if !interrupted {
                    self.close_answer(text, calls, *cut);
                }
                // An empty answer is not in the conversation, so its position would be unknown.
                if !interrupted && (!text.is_empty() || !calls.is_empty()) {
                    self.past.fullness.counted = Some(*usage);
                }
            }
            Kind::CallStarted {
                call,
                name,
                arguments,
            } => {
                if name == TASKS {
                    self.listing = Some((call.clone(), arguments.clone()));
                }
                if let Some(asked) = self.calls.iter_mut().find(|asked| asked.call.id == *call) {
                    asked.begun = true;
                }
            }
            Kind::CallFinished {
                call,
                status,
                result,
                seen,
                ..
            } => {
                self.past.seen.extend_from_slice(seen);
                if let Some((_, arguments)) = self.listing.take_if(|(listing, _)| listing == call)
                    && *status == CallStatus::Ok
                {
                    self.past.tasks.push(arguments);
                }
                if let Some(asked) = self
                    .calls
                    .iter_mut()
                    .find(|asked| asked.call.id == *call && asked.result.is_none())
                {
                    asked.result = Some((*status, result.clone()));
                }
                if self.calls.iter().all(|asked| asked.result.is_some()) {
                    self.give_up();
                }
            }
            Kind::ResultsEvicted { results } => {
                self.give_up();
                self.past.history.evict(results);
                self.past.fullness = Fullness::default();
            }
            Kind::ConversationCompacted {
                summary,
                head,
                tail,
                ..
            } => {
                self.give_up();
                self.past
                    .history
                    .compact(summary, *head as usize, *tail as usize);
                self.past.instructions.clear();
                self.past.fullness = Fullness::default();
            }
            Kind::PlanModeChanged { on, .. } => self.past.planning = *on,
            Kind::PlanMade { version, text, .. } => {
                self.past.plan = Some(Plan {
                    version: *version,
                    text: text.clone(),
                    decision: None,
                });
                self.is_planned = true;
            }
            Kind::PlanDecided {
                version, decision, ..
            } => {
                if let Some(plan) = &mut self.past.plan
                    && plan.version == *version
                {
                    plan.decision = Some(*decision);
                }
            }
            Kind::ContextNear { percent, .. } => self.past.fullness.warned = *percent,
            Kind::RunFinished {
                status, response, ..
            } => {
                // A task that was stopped, or failed, while it ended has not reported its end; a
                // chat without a message has no task.
                let is_its_end =
                    |ended: &TaskEnd| ended.status == *status && ended.response == *response;
                match &self.past.ended {
                    Some(ended) if is_its_end(ended) => {
                        (self.past.status, self.past.is_told) = (Some(*status), true);
                    }
                    Some(ended) => self.past.status = Some(ended.status),
                    None => self.past.status = Some(*status),
                }
            }
            Kind::Unknown => self.past.n_unknown += 1,
            _ => {}
        }
    }

    fn answer(&mut self, text: &str, thinking: &str, calls: &[ToolCall], raw: Option<&String>) {
        self.give_up();
        // An answer follows a request, whether an older log records it or not.
        self.past.history.asked();
        if text.is_empty() && calls.is_empty() {
            return;
        }
        if !self.past.history.is_open() {
            self.past.history.push(Message::user(MISSING));
        }
        self.past.history.push(Message::Assistant {
            text: text.to_owned(),
            thinking: thinking.to_owned(),
            calls: calls.to_vec(),
            raw: raw.cloned(),
        });
        self.calls = calls
            .iter()
            .map(|call| AskedCall {
                call: call.clone(),
                begun: false,
                result: None,
            })
            .collect();
    }

    /// Assumes that the answer responds to the last message; what is still open has its own record,
    /// unless the log ends before it.
    fn close_answer(&mut self, text: &str, calls: &[ToolCall], is_cut: bool) {
        let open = &mut self.past.open_answer;
        if is_cut && calls.is_empty() {
            // An answer that was cut off before a call does not respond to a question yet.
            if !text.is_empty() {
                open.pieces.push(text.to_owned());
            }
            return;
        }
        if !calls.is_empty() {
            open.acted();
        }
    }

    /// Adds the results of the last answer to the conversation; a missing one is marked if
    /// something follows.
    fn give_up(&mut self) {
        for AskedCall {
            call,
            begun,
            result,
        } in std::mem::take(&mut self.calls)
        {
            let lost = if begun { UNKNOWN_END } else { NOT_BEGUN };
            let (status, text) = result.unwrap_or_else(|| (CallStatus::Cancelled, lost.to_owned()));
            self.past.history.push(Message::ToolResult {
                call: call.id,
                name: call.name,
                text,
                is_error: status != CallStatus::Ok,
            });
        }
    }
}
