//! Handles an answer without a call: the end of the task, a question about what it shows, or the
//! beginning of a longer answer.

use super::Agent;
use super::Failure;
use super::Options;
use super::answer_text::combine_answers;
use super::answer_text::text_beside_calls;
use super::nudge::LOOKS_LIKE;
use super::nudge::nudge;
use super::run::NextStep;
use super::task::Task;
use podbay_event::CUT_OFF;
use podbay_event::Kind;
use podbay_event::LimitKind;
use podbay_event::RunStatus;
use podbay_llm::Finish;
use podbay_llm::Reply;

/// The message to a model whose answer the server's filter truncated.
const FILTERED: &str = "Your last answer was cut by the content filter of the server, and nothing of it was executed. Give the whole \
                        answer again in other words, or go another way.";

impl Agent {
    /// Requests an answer again that the server's filter truncated: what it was to say or do is
    /// unknown.
    pub(super) fn filtered(&mut self, task: &mut Task, text: String) -> NextStep {
        self.emit(Kind::Warning {
            message: "the model server's content filter cut the answer; nothing of it is executed"
                .to_owned(),
        });
        // Only the part that passed the filter exists.
        task.response = text;
        task.n_filtered += 1;
        if task.n_filtered >= self.options.misunderstandings {
            return NextStep::Failed(Failure::Filtered {
                count: task.n_filtered,
            });
        }
        self.note_open(task, FILTERED);
        NextStep::GoOn
    }

    pub(super) fn answered(&mut self, task: &mut Task, reply: &Reply) -> NextStep {
        if reply.text.trim().is_empty() {
            task.n_silent += 1;
            if task.n_silent >= self.options.misunderstandings {
                if let Some(first) = task
                    .open
                    .answer
                    .take()
                    .filter(|first| !first.trim().is_empty())
                {
                    task.response = first;
                    return NextStep::Done(completed(&self.options, task));
                }
                return NextStep::Failed(Failure::Silent {
                    count: task.n_silent,
                });
            }
            // In a task of a single turn no tool can be called, whatever the model was told.
            if !task.is_talk {
                self.learn_from_silence(reply);
            }
            let cut = "Your answer reached the limit of tokens before it said anything. Think less, then call a tool, or say what you did and what you saw.";
            let empty = "Your answer was empty. Call a tool, or say what you did and what you saw.";
            self.note_open(
                task,
                if reply.finish == Finish::Length {
                    cut
                } else {
                    empty
                },
            );
            return NextStep::GoOn;
        }
        // As written: where no tool can be called, calls are removed from the text.
        if task.is_talk
            && let Some(words) = text_beside_calls(
                reply.written.as_ref().unwrap_or(&reply.text),
                self.conversation.prompt().known(),
            )
        {
            // It was to answer, but wanted to do something first.
            task.response = words;
            return NextStep::Limit(LimitKind::Turns);
        }
        if reply.finish == Finish::Length
            && task.open.pieces.len() < self.options.misunderstandings as usize
        {
            // A continuation in plain text still belongs to the object.
            task.open.in_object =
                reply.is_in_object || task.open.in_object && !task.open.pieces.is_empty();
            task.open.pieces.push(reply.text.clone());
            self.note_open(task, CUT_OFF);
            return NextStep::GoOn;
        }
        // Once per task, whatever it looks like.
        if task.open.answer.is_none()
            && !task.is_talk
            && !self.conversation.prompt().tools().is_empty()
        {
            let words = if reply.looks_like_call {
                Some(LOOKS_LIKE)
            } else {
                nudge(&reply.text, task.has_worked)
            };
            if let Some(words) = words {
                task.open.answer = Some(task.whole(&reply.text));
                self.note_open(task, words);
                return NextStep::GoOn;
            }
        }
        let n_pieces = task.open.pieces.len() + 1;
        let (first, later) = (task.open.answer.take(), task.whole(&reply.text));
        task.response = combine_answers(&first.unwrap_or_default(), later);
        if reply.finish == Finish::Length {
            // The next message may continue it; readers of this one must know that it is
            // incomplete.
            let message = format!(
                "the answer is incomplete: it reached the token limit of one answer {}; \
                 raise `llm.max_output_tokens`, or ask for less at once",
                if n_pieces == 1 {
                    "and is not continued".to_owned()
                } else {
                    format!("{n_pieces} times in a row")
                },
            );
            self.emit(Kind::Warning { message });
            return NextStep::Ended(LimitKind::Tokens);
        }
        NextStep::Done(completed(&self.options, task))
    }
}

fn completed(options: &Options, task: &Task) -> RunStatus {
    let denied = task.blocked || (options.deny_is_failure && !task.denied.is_empty());
    if denied {
        RunStatus::Blocked
    } else {
        RunStatus::Completed
    }
}
