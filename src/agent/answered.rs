//! What an answer without a call comes to: the end of the task, a question about what it shows, or its next piece.

use super::Agent;
use super::Failure;
use super::Options;
use super::chosen::before_call;
use super::chosen::chosen;
use super::chosen::only_remarks;
use super::chosen::says_something;
use super::nudge::UNREAD;
use super::nudge::UNSURE;
use super::nudge::nudge;
use super::nudge::nudge_to_announced;
use super::nudge::nudge_to_run;
use super::nudge::waits;
use super::run::Next;
use super::task::Task;
use podbay_event::CUT_OFF;
use podbay_event::Kind;
use podbay_event::LimitKind;
use podbay_event::RunStatus;
use podbay_event::ToolMode;
use podbay_llm as llm;
use podbay_llm::Finish;
use podbay_llm::Reply;
use podbay_llm::Unsure;

/// Said where the server's filter cut what the model said.
const FILTERED: &str = "Your last answer was cut by the content filter of the server, and nothing of it was carried out. Give the whole \
                        answer again in other words, or go another way.";
/// How much oftener it is asked about calls that it was shown, where each is another one.
const MAX_SHOWN: u32 = 3;

impl Agent {
    /// Asks again for an answer that the server's filter cut, which is none: nobody knows what it was to say and to do.
    pub(super) fn filtered(&mut self, task: &mut Task, text: String) -> Next {
        self.emit(Kind::Warning { message: "the model server's content filter cut the answer; nothing of it is carried out".to_owned() });
        // What was let through is all that there may ever be.
        task.response = text;
        task.n_filtered += 1;
        if task.n_filtered >= self.options.misunderstandings {
            return Next::Failed(Failure::Filtered { count: task.n_filtered });
        }
        self.note_open(task, FILTERED);
        Next::GoOn
    }

    pub(super) fn answered(&mut self, task: &mut Task, reply: &Reply) -> Next {
        if reply.text.trim().is_empty() {
            task.n_silent += 1;
            if task.n_silent >= self.options.misunderstandings {
                let tools = self.conversation.prompt().known();
                if let Some(first) = task.open.answer.take().filter(|first| says_something(first, tools)) {
                    task.response = first;
                    return Next::Done(completed(&self.options, task));
                }
                return Next::Failed(Failure::Silent { count: task.n_silent });
            }
            // With a single turn no tool can be called, whatever the model was told.
            if !task.is_talk {
                self.learn_from_silence(reply);
            }
            let cut = "Your answer reached the limit of tokens before it said anything. Think less, then call a tool, or say what you did and what you saw.";
            let empty = "Your answer was empty. Call a tool, or say what you did and what you saw.";
            self.note_open(task, if reply.finish == Finish::Length { cut } else { empty });
            return Next::GoOn;
        }
        // As it was written: where no tool can be called, calls are left out of the text.
        if task.is_talk
            && let Some(words) = before_call(reply.written.as_ref().unwrap_or(&reply.text), self.conversation.prompt().known())
        {
            // It was to answer, and wanted to do something first.
            task.response = words;
            return Next::Limit(LimitKind::Turns);
        }
        if reply.finish == Finish::Length && task.open.pieces.len() < self.options.misunderstandings as usize {
            // A piece that goes on in plain words is in it still.
            task.open.in_object = reply.is_in_object || task.open.in_object && !task.open.pieces.is_empty();
            task.open.pieces.push(reply.text.clone());
            task.open.doubted.extend(reply.unsure.iter().flat_map(|unsure| unsure.calls.clone()));
            self.note_open(task, CUT_OFF);
            return Next::GoOn;
        }
        let unsure = task.unsure(reply);
        // Once, and again where the model meant it the time before, or comes with another call when it is asked about one.
        if let Some(unsure) = &unsure
            && !task.is_talk
            && !unsure.calls.is_empty()
            && task.open.n_asked >= self.most_questions(task, unsure)
        {
            // Another call each time is no answer to the question, and none of them is what the person is to read.
            task.response.clone_from(&unsure.text);
            return Next::Failed(Failure::Misunderstood { count: task.open.n_asked, last: UNSURE.to_owned(), is_cut: false });
        }
        if let Some(unsure) = &unsure
            && !task.is_talk
            && unsure.calls.is_empty()
            && task.open.n_asked > 0
            && (ends_as_call(&reply.text) || waits(&reply.text))
        {
            // What is said behind one may speak of it; but nothing is.
            task.response.clear();
            task.open.pieces.clear();
            return Next::Failed(Failure::Misunderstood { count: task.open.n_asked + 1, last: UNREAD.to_owned(), is_cut: false });
        }
        if let Some(unsure) = &unsure
            && !task.is_talk
            && (task.open.answer.as_ref().is_none_or(String::is_empty) || !unsure.calls.is_empty())
        {
            task.open.n_asked += 1;
            task.open.answer = Some(task.whole(&reply.text));
            task.open.asked.clone_from(&unsure.calls);
            task.open.by_text = true;
            self.note_open(task, if unsure.calls.is_empty() { UNREAD } else { UNSURE });
            return Next::GoOn;
        }
        // Asked about one command, it may well show the next one once it has done something.
        let is_first = task.open.answer.is_none();
        if task.open.answer.as_ref().is_none_or(String::is_empty)
            && !task.is_talk
            && !self.conversation.prompt().tools().is_empty()
            && let Some(words) = nudge(&reply.text, task.has_worked).filter(|_| is_first).or_else(|| self.nudge_to_run(task, &reply.text))
        {
            task.open.answer = Some(task.whole(&reply.text));
            self.note_open(task, words);
            return Next::GoOn;
        }
        let n_pieces = task.open.pieces.len() + 1;
        task.response = self.of_both(task, &reply.text);
        if reply.finish == Finish::Length {
            // The next message may go on with it; whoever reads this one must know that it has no end.
            let message = format!(
                "the answer is incomplete: it reached the most tokens that one answer may have {}; a larger `llm.max_output_tokens`, or \
                 a task that asks for less at once, lets it come to its end",
                if n_pieces == 1 { "and is not gone on with".to_owned() } else { format!("{n_pieces} times in a row") },
            );
            self.emit(Kind::Warning { message });
            return Next::Ended(LimitKind::Tokens);
        }
        Next::Done(completed(&self.options, task))
    }

    /// Returns what the person gets of the last answer and the one that the model was asked about before, if it was.
    fn of_both(&self, task: &mut Task, last: &str) -> String {
        let later = task.whole(last);
        let Some(first) = task.open.answer.take().filter(|first| !first.trim().is_empty()) else { return later };
        let tools = self.conversation.prompt().known();
        if task.open.n_asked > 0 {
            return chosen(first, later, tools);
        }
        // After a nudge what is said last may well be a correction, unless it only says that none is needed.
        if only_remarks(&later) && says_something(&first, tools) { first } else { later }
    }

    /// Returns how often the model is asked about calls that it does not make plainly. A text may show several, and each is a question of its own.
    fn most_questions(&self, task: &Task, unsure: &Unsure) -> u32 {
        let is_other = unsure.is_shown && !self.is_confirmed(task, &unsure.calls);
        self.options.misunderstandings.saturating_mul(if is_other { MAX_SHOWN } else { 1 })
    }

    fn nudge_to_run(&self, task: &Task, answer: &str) -> Option<&'static str> {
        let prompt = self.conversation.prompt();
        if !prompt.tools().iter().any(|tool| tool.name == "bash") {
            return None;
        }
        // A model whose server reports its calls makes them there.
        let is_by_text = prompt.mode() != ToolMode::Native || self.learnt.is_held;
        if is_by_text { nudge_to_run(answer, task.has_worked) } else { nudge_to_announced(answer) }
    }
}

/// Returns whether an answer has an end like that of a call, with no words behind.
fn ends_as_call(text: &str) -> bool {
    llm::shown::undressed(text).trim_end().ends_with(['>', '}', ']'])
}

fn completed(options: &Options, task: &Task) -> RunStatus {
    let denied = task.blocked || (options.deny_is_failure && !task.denied.is_empty());
    if denied { RunStatus::Blocked } else { RunStatus::Completed }
}
