//! Answers that come in pieces, as each reached the most tokens that one may have: what was cut
//! within an example is text, and what was cut within a call is asked for again.

use super::Agent;
use super::task::Task;
use podbay_event::HalfCall;
use podbay_event::Kind;
use podbay_event::ToolCall;
use podbay_llm as llm;
use podbay_llm::Fences;
use podbay_llm::Finish;
use podbay_llm::Reply;
use podbay_llm::call_tail::TAIL_NOTICE;
use podbay_llm::call_tail::ends_arguments;
use podbay_llm::call_tail::is_tail;
use podbay_llm::text::Tools;

impl Agent {
    /// Takes a call that was cut within a block of code for the text that it most likely is. Where
    /// it was meant, that shows once all of it came.
    pub(super) fn take_as_text(&self, task: &Task, reply: &mut Reply) {
        self.take_back_calls(task, reply);
        if let Some(written) = &reply.written
            && (reply.finish == Finish::Length || ends_in_block(&task.open.pieces.concat()))
        {
            // In a piece neither blanks at its end nor the end of a call are noise.
            reply.text.clone_from(written);
        } else if let (Some(written), false) = (&reply.written, task.open.pieces.is_empty()) {
            // Nor are blanks that part it from the piece before.
            let blanks = &written[..written.len() - written.trim_start().len()];
            reply.text = blanks.to_owned() + reply.text.trim_start();
        }
        if task.open.in_object
            && reply.written.is_some()
            && reply.finish != Finish::Length
            && !task.open.pieces.is_empty()
            && let Some(words) = before_end_of_object(&reply.text)
        {
            reply.text = words;
        }
        let Some(half) = reply
            .half
            .as_ref()
            .filter(|half| reply.calls.is_empty() && !half.is_reported)
        else {
            return;
        };
        let whole = half.before.clone() + &half.begun;
        if reply.text.ends_with(&half.begun)
            || !ends_in_block(&(task.open.pieces.concat() + &whole))
        {
            return;
        }
        // It was held back, as calls are not shown as text.
        self.emit(Kind::TextDelta {
            text: half.begun.clone(),
        });
        (reply.text, reply.fault) = (whole, None);
    }

    /// Takes calls for text that are none where they stand in the whole answer, with the pieces
    /// before this one: in a block of code that began there, or behind words, where they have no
    /// mark.
    fn take_back_calls(&self, task: &Task, reply: &mut Reply) {
        let Some(source) = reply.source.take().filter(|_| !task.open.pieces.is_empty()) else {
            return;
        };
        let pieces = task.open.pieces.concat();
        let whole = llm::text::parse(
            &(pieces + &source),
            self.conversation.prompt().known(),
            None,
        );
        let is_made = |call: &ToolCall| {
            whole
                .calls
                .iter()
                .any(|made| made.name == call.name && made.arguments == call.arguments)
        };
        if !reply.calls.iter().all(is_made) {
            reply.calls.clear();
            reply.recovered = false;
            reply.text = source;
        }
    }
}

impl Task {
    /// Returns what to tell a model that went on with a call that was cut, which it was to make
    /// anew.
    pub(super) fn tail(&mut self, reply: &Reply, tools: &Tools) -> Option<String> {
        let before = self.open.half.take();
        if let Some(half) = &reply.half {
            // Where it is taken for text the pieces belong together.
            let goes_on = if reply.fault.is_none() {
                self.open.pieces.concat()
            } else {
                String::new()
            };
            self.open.half = Some(HalfCall {
                before: goes_on + &half.before,
                ..half.clone()
            });
            return None;
        }
        let mut half = before?;
        let piece = reply.written.as_ref().unwrap_or(&reply.text);
        if reply.finish == Finish::Length {
            half.begun.push_str(piece);
            self.open.half = Some(half);
            return None;
        }
        if !is_end(&half, piece, tools) {
            return None;
        }
        // It may well try once more, from the same beginning on.
        self.open.half = Some(half);
        self.open.pieces.clear();
        Some(TAIL_NOTICE.to_owned())
    }
}

fn is_end(half: &HalfCall, piece: &str, tools: &Tools) -> bool {
    if half.is_reported {
        ends_arguments(&half.begun, piece)
    } else {
        is_tail(&(half.before.clone() + &half.begun), piece, tools)
    }
}

/// Returns the words of a piece that ends the object in which the piece before it stood, read as a
/// part of the object's text where it is written as one.
fn before_end_of_object(piece: &str) -> Option<String> {
    let object = piece.trim_end().trim_end_matches('`').trim_end();
    let words = object.strip_suffix('}')?.trim_end().strip_suffix('"')?;
    let count = |sign: &str| words.matches(sign).count();
    // A quote that is escaped ends nothing, and what begins in the piece itself ends there too.
    let is_own = count("{") > count("}") || (count("\"") - count("\\\"")) % 2 == 1;
    if words.ends_with('\\') || is_own {
        return None;
    }
    Some(serde_json::from_str(&format!("\"{words}\"")).unwrap_or_else(|_| words.to_owned()))
}

/// Returns whether a text ends within a block of code.
pub(super) fn ends_in_block(text: &str) -> bool {
    let mut fences = Fences::default();
    for line in text.lines() {
        fences.take(line);
    }
    fences.is_open()
}
