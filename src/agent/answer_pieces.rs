//! Handles answers that come in several pieces because each reached the token limit: a truncated
//! example is text, and a truncated call is requested again.

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
    /// Treats a call truncated within a code block as text, which it most likely is. The complete
    /// text decides whether it was meant as a call.
    pub(super) fn treat_as_text(&self, task: &Task, reply: &mut Reply) {
        self.demote_calls_in_code(task, reply);
        if let Some(written) = &reply.written
            && (reply.finish == Finish::Length || ends_in_block(&task.open.pieces.concat()))
        {
            // Within a piece neither trailing whitespace nor the end of a call are noise.
            reply.text.clone_from(written);
        } else if let (Some(written), false) = (&reply.written, task.open.pieces.is_empty()) {
            // Nor is whitespace that separates it from the piece before.
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
        // It was not shown yet, since calls are not shown as text.
        self.emit(Kind::TextDelta {
            text: half.begun.clone(),
        });
        (reply.text, reply.fault) = (whole, None);
    }

    /// Treats calls as text that do not count in the whole answer, including the pieces before this
    /// one: within a code block that began there, or unmarked after text.
    fn demote_calls_in_code(&self, task: &Task, reply: &mut Reply) {
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
    /// Returns the message to a model that continued a truncated call instead of writing it again.
    pub(super) fn tail(&mut self, reply: &Reply, tools: &Tools) -> Option<String> {
        let before = self.open.half.take();
        if let Some(half) = &reply.half {
            // If it is treated as text the pieces belong together.
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
        // It may try once more, from the same beginning.
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

/// Returns the text of a piece that closes the object begun in the piece before, decoded as the
/// rest of a JSON string if it is written as one.
fn before_end_of_object(piece: &str) -> Option<String> {
    let object = piece.trim_end().trim_end_matches('`').trim_end();
    let words = object.strip_suffix('}')?.trim_end().strip_suffix('"')?;
    let count = |sign: &str| words.matches(sign).count();
    // An escaped quote closes nothing, and a string opened in the piece itself is closed there too.
    let is_own = count("{") > count("}") || (count("\"") - count("\\\"")) % 2 == 1;
    if words.ends_with('\\') || is_own {
        return None;
    }
    Some(serde_json::from_str(&format!("\"{words}\"")).unwrap_or_else(|_| words.to_owned()))
}

/// Returns whether a text ends within a code block.
pub(super) fn ends_in_block(text: &str) -> bool {
    let mut fences = Fences::default();
    for line in text.lines() {
        fences.take(line);
    }
    fences.is_open()
}
