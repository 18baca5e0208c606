//! Decides which events of a stream are progress: a server that repeats itself while its model
//! hangs is as idle as a silent one.

use super::chunk::Choice;
use super::chunk::Chunk;
use super::chunk::count;
use crate::provider::calls::MAX_CALLS;

/// What was received so far.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// How much of the prompt was read.
    processed: Option<u64>,
    /// The last token counts: by `usage`, by `timings`.
    sums: (Option<u64>, Option<u64>),
    n_named: usize,
    has_reason: bool,
}

impl Progress {
    /// Returns whether a chunk contains anything new.
    /// The announcement of a call without arguments counts once; more announcements than an answer
    /// may have calls do not count.
    pub(super) fn is_made_by(&mut self, chunk: &Chunk<'_>) -> bool {
        let mut is_made = false;
        if let Some(progress) = &chunk.prompt_progress {
            let processed = Some(count(progress.processed));
            is_made |= processed > self.processed;
            self.processed = self.processed.max(processed);
        }
        let usage = chunk
            .usage
            .as_ref()
            .map(|usage| count(usage.prompt_tokens) + count(usage.completion_tokens));
        let timings = chunk
            .timings
            .as_ref()
            .map(|timings| count(timings.prompt_n) + count(timings.predicted_n));
        let sums = (usage.or(self.sums.0), timings.or(self.sums.1));
        is_made |= std::mem::replace(&mut self.sums, sums) != sums;
        for choice in chunk.choices.iter().flatten() {
            is_made |= self.is_made_by_choice(choice);
        }
        is_made
    }

    fn is_made_by_choice(&mut self, choice: &Choice<'_>) -> bool {
        let mut is_made =
            choice.finish_reason.is_some() && !std::mem::replace(&mut self.has_reason, true);
        for delta in choice.delta.iter().chain(&choice.message) {
            is_made |= delta.says_more();
            if delta.names_a_call() {
                self.n_named += 1;
                is_made |= self.n_named <= MAX_CALLS;
            }
        }
        is_made
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(chunk: &Value, again: &Value) {
        let mut progress = Progress::default();
        let (chunk, again) = (chunk.to_string(), again.to_string());
        let read = |text| serde_json::from_str::<Chunk<'_>>(text).expect("a chunk");
        assert!(progress.is_made_by(&read(&chunk)), "{chunk}");
        assert!(!progress.is_made_by(&read(&chunk)), "twice: {chunk}");
        assert!(progress.is_made_by(&read(&again)), "{again}");
    }

    #[test]
    fn repetitions_are_no_progress() {
        let read =
            |processed: u64| json!({"prompt_progress": {"total": 10, "processed": processed}});
        check(&read(3), &read(4));
        let used =
            |n: u64| json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": n}});
        check(&used(3), &used(4));
        let timed = |n: u64| json!({"choices": [], "timings": {"predicted_n": n}});
        check(&timed(0), &timed(1));
        let word = json!({"choices": [{"delta": {"content": "x"}}]});
        check(
            &json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}),
            &word,
        );
    }

    #[test]
    fn text_and_arguments_are_always_progress() {
        for delta in [
            json!({"content": "x"}),
            json!({"reasoning_content": "x"}),
            json!({"tool_calls": [{"index": 0, "function": {"arguments": "x"}}]}),
            json!({"tool_calls": [{"index": 0, "arguments": {"a": 1}}]}),
            json!({"function_call": {"arguments": "x"}}),
        ] {
            let text = json!({"choices": [{"delta": delta}]}).to_string();
            let (mut progress, chunk) = (
                Progress::default(),
                serde_json::from_str(&text).expect("a chunk"),
            );
            assert!((0..100).all(|_| progress.is_made_by(&chunk)), "{text}");
        }
    }

    #[test]
    fn call_names_are_progress_only_up_to_the_maximum_of_calls() {
        for delta in [
            json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "bash", "arguments": ""}}]}),
            json!({"tool_calls": [{"index": 0, "name": "bash"}]}),
            json!({"function_call": {"name": "bash"}}),
        ] {
            let text = json!({"choices": [{"delta": delta}]}).to_string();
            let (mut progress, chunk) = (
                Progress::default(),
                serde_json::from_str(&text).expect("a chunk"),
            );
            assert_eq!(
                (0..100).filter(|_| progress.is_made_by(&chunk)).count(),
                MAX_CALLS,
                "{text}"
            );
        }
        for delta in [
            json!({"role": "assistant", "content": ""}),
            json!({"tool_calls": [{"index": 0, "id": "c"}]}),
            json!({}),
        ] {
            let text = json!({"choices": [{"delta": delta}]}).to_string();
            assert!(
                !Progress::default().is_made_by(&serde_json::from_str(&text).expect("a chunk")),
                "{text}"
            );
        }
    }
}
