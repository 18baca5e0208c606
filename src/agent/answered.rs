//! What an answer without a call comes to: the end of the task, a question about what it shows, or
//! its next piece.

use super::Agent;
use super::Failure;
use super::Options;
use super::last_words::before_call;
use super::last_words::both;
use super::nudge::LOOKS_LIKE;
use super::nudge::nudge;
use super::run::Next;
use super::task::Task;
use podbay_event::CUT_OFF;
use podbay_event::Kind;
use podbay_event::LimitKind;
use podbay_event::RunStatus;
use podbay_llm::Finish;
use podbay_llm::Reply;

/// Said where the server's filter cut what the model said.
const FILTERED: &str = "Your last answer was cut by the content filter of the server, and nothing of it was carried out. Give the whole \
                        answer again in other words, or go another way.";

impl Agent {
    /// Asks again for an answer that the server's filter cut, which is none: nobody knows what it
    /// was to say and to do.
    pub(super) fn filtered(&mut self, task: &mut Task, text: String) -> Next {
        self.emit(Kind::Warning {
            message:
                "the model server's content filter cut the answer; nothing of it is carried out"
                    .to_owned(),
        });
        // What was let through is all that there may ever be.
        task.response = text;
        task.n_filtered += 1;
        if task.n_filtered >= self.options.misunderstandings {
            return Next::Failed(Failure::Filtered {
                count: task.n_filtered,
            });
        }
        self.note_open(task, FILTERED);
        Next::GoOn
    }

    pub(super) fn answered(&mut self, task: &mut Task, reply: &Reply) -> Next {
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
                    return Next::Done(completed(&self.options, task));
                }
                return Next::Failed(Failure::Silent {
                    count: task.n_silent,
                });
            }
            // With a single turn no tool can be called, whatever the model was told.
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
            return Next::GoOn;
        }
        // As it was written: where no tool can be called, calls are left out of the text.
        if task.is_talk
            && let Some(words) = before_call(
                reply.written.as_ref().unwrap_or(&reply.text),
                self.conversation.prompt().known(),
            )
        {
            // It was to answer, and wanted to do something first.
            task.response = words;
            return Next::Limit(LimitKind::Turns);
        }
        if reply.finish == Finish::Length
            && task.open.pieces.len() < self.options.misunderstandings as usize
        {
            // A piece that goes on in plain words is in it still.
            task.open.in_object =
                reply.is_in_object || task.open.in_object && !task.open.pieces.is_empty();
            task.open.pieces.push(reply.text.clone());
            self.note_open(task, CUT_OFF);
            return Next::GoOn;
        }
        // Once in a task, whatever it looks like.
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
                return Next::GoOn;
            }
        }
        let n_pieces = task.open.pieces.len() + 1;
        let (first, later) = (task.open.answer.take(), task.whole(&reply.text));
        task.response = both(&first.unwrap_or_default(), later);
        if reply.finish == Finish::Length {
            // The next message may go on with it; whoever reads this one must know that it has no
            // end.
            let message = format!(
                "the answer is incomplete: it reached the most tokens that one answer may have {}; a larger `llm.max_output_tokens`, or \
                 a task that asks for less at once, lets it come to its end",
                if n_pieces == 1 {
                    "and is not gone on with".to_owned()
                } else {
                    format!("{n_pieces} times in a row")
                },
            );
            self.emit(Kind::Warning { message });
            return Next::Ended(LimitKind::Tokens);
        }
        Next::Done(completed(&self.options, task))
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
