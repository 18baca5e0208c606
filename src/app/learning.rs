//! The end of a session in which tools were used: what is worth keeping is proposed, where the user
//! wants that.

use std::time::Duration;

use super::Interrupt;
use super::record::with_causes;
use super::seat::Seat;
use podbay_event::Usage;

/// How long the model may take; the user waits for it.
const WITHIN: Duration = Duration::from_secs(60);

/// Asks the model once for notes and stores them as proposals. Returns what that has used.
pub(super) async fn learn(seat: &mut Seat, tool_calls: u32, interrupt: &Interrupt) -> Usage {
    let Some(memories) = seat.learner.clone().filter(|_| tool_calls > 0) else {
        return Usage::default();
    };
    if interrupt.is_ended() {
        return Usage::default();
    }
    let (notes, usage) = seat.agent.ask_what_was_learnt(WITHIN, interrupt).await;
    let mut names = Vec::new();
    for note in notes {
        match memories.propose(&note) {
            Ok(saved) => names.push(saved.memory.name),
            Err(error) => seat.recorder.warn(format!(
                "a note that the model proposes is not usable: {}",
                with_causes(&error)
            )),
        }
    }
    if let Some(first) = names.first() {
        let n_notes = match names.len() {
            1 => "1 note is".to_owned(),
            n => format!("{n} notes are"),
        };
        seat.recorder.warn(format!(
            "{n_notes} proposed for later sessions: {}; none counts until you keep it: `podbay memory keep {first}`",
            names.join(", ")
        ));
    }
    usage
}
