use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;
use std::time::Instant;

use tokio_util::sync::CancellationToken;

/// A second press within this time ends the run instead of the step.
const TWICE: Duration = Duration::from_secs(2);

/// The user's control over a run: the first Ctrl-C ends the current step, the second one the run,
/// immediately.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    run: CancellationToken,
    haste: CancellationToken,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    step: Option<CancellationToken>,
    pressed: Option<Instant>,
    /// The first press ends the whole turn.
    ends_turns: bool,
    /// It was pressed since the last turn.
    is_turn_over: bool,
    /// A turn is under way, also between its steps.
    is_in_turn: bool,
    /// The exit code, if a signal ended the run.
    exit_code: Option<u8>,
}

impl Interrupt {
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the control over an agent that another one started: it ends when `cancel` is
    /// cancelled.
    #[must_use]
    pub fn under(cancel: &CancellationToken, haste: &CancellationToken) -> Self {
        Self {
            run: cancel.child_token(),
            haste: haste.clone(),
            ..Self::default()
        }
    }

    /// Handles one press of Ctrl-C. Without a current step it ends the run.
    pub fn press(&self) {
        let mut state = self
            .state
            .lock()
            .expect("nothing panics while it holds this lock");
        let again = state.pressed.is_some_and(|at| at.elapsed() < TWICE);
        state.pressed = Some(Instant::now());
        match state.step.clone() {
            Some(step) if !step.is_cancelled() && !again => {
                step.cancel();
                state.is_turn_over = state.ends_turns;
            }
            // Between two steps it is about the turn all the same.
            None if state.is_in_turn && state.ends_turns && !again => state.is_turn_over = true,
            step => {
                if step.is_some() || self.run.is_cancelled() {
                    self.haste.cancel();
                }
                self.run.cancel();
            }
        }
    }

    /// Ends the current step like a press, without counting as one.
    pub(super) fn end_step(&self) {
        if let Some(step) = &self
            .state
            .lock()
            .expect("nothing panics while it holds this lock")
            .step
        {
            step.cancel();
        }
    }

    /// Ends the run and its current step.
    pub fn end(&self) {
        self.run.cancel();
    }

    /// Ends the run because of a signal, whose exit code the run then has. Returns whether the same
    /// signal came before.
    pub fn end_by(&self, exit_code: u8) -> bool {
        let before = self
            .state
            .lock()
            .expect("nothing panics while it holds this lock")
            .exit_code
            .replace(exit_code);
        self.end();
        before == Some(exit_code)
    }

    /// Returns the exit code of the signal that ended the run; `None` if no signal did.
    pub fn exit_code(&self) -> Option<u8> {
        self.state
            .lock()
            .expect("nothing panics while it holds this lock")
            .exit_code
    }

    pub fn is_ended(&self) -> bool {
        self.run.is_cancelled()
    }

    /// Returns the token that is cancelled when the run ends.
    pub fn run(&self) -> &CancellationToken {
        &self.run
    }

    /// Returns the token that is cancelled when graceful ends are to be skipped.
    pub fn haste(&self) -> &CancellationToken {
        &self.haste
    }

    /// Begins a step that a press can end by itself.
    pub fn step(&self) -> CancellationToken {
        let token = self.run.child_token();
        let mut state = self
            .state
            .lock()
            .expect("nothing panics while it holds this lock");
        if state.is_in_turn && state.is_turn_over {
            token.cancel();
        }
        state.step = Some(token.clone());
        drop(state);
        token
    }

    /// Makes the first press end the whole turn, so that the user can decide how to continue.
    pub fn end_turns(&self) {
        self.state
            .lock()
            .expect("nothing panics while it holds this lock")
            .ends_turns = true;
    }

    /// Begins a turn: earlier presses no longer count.
    pub fn begin_turn(&self) {
        let mut state = self
            .state
            .lock()
            .expect("nothing panics while it holds this lock");
        state.is_turn_over = false;
        state.is_in_turn = true;
        state.pressed = None;
    }

    /// Ends a turn: what is pressed from here on is about the run.
    pub fn end_turn(&self) {
        self.state
            .lock()
            .expect("nothing panics while it holds this lock")
            .is_in_turn = false;
    }

    /// Returns whether the current turn or the run is to end.
    pub fn is_turn_over(&self) -> bool {
        self.is_ended()
            || self
                .state
                .lock()
                .expect("nothing panics while it holds this lock")
                .is_turn_over
    }

    /// Marks that no step is running: a press now ends the run.
    pub fn idle(&self) {
        self.state
            .lock()
            .expect("nothing panics while it holds this lock")
            .step = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_press_ends_the_step_and_two_the_run() {
        let interrupt = Interrupt::new();
        let step = interrupt.step();
        interrupt.press();
        assert!(step.is_cancelled() && !interrupt.is_ended() && !interrupt.haste().is_cancelled());
        let next = interrupt.step();
        interrupt.press();
        assert!(next.is_cancelled() && interrupt.is_ended() && interrupt.haste().is_cancelled());
    }

    #[test]
    fn the_first_press_can_end_the_turn_but_not_the_next_one() {
        let interrupt = Interrupt::new();
        interrupt.step();
        interrupt.press();
        assert!(!interrupt.is_turn_over());
        let interrupt = Interrupt::new();
        interrupt.end_turns();
        interrupt.step();
        interrupt.press();
        assert!(interrupt.is_turn_over() && !interrupt.is_ended());
        interrupt.idle();
        assert!(interrupt.is_turn_over());
        interrupt.begin_turn();
        assert!(!interrupt.is_turn_over());
    }

    #[test]
    fn between_two_steps_a_press_ends_the_turn_and_the_next_step() {
        let interrupt = Interrupt::new();
        interrupt.end_turns();
        interrupt.begin_turn();
        interrupt.step();
        interrupt.idle();
        interrupt.press();
        assert!(interrupt.is_turn_over() && !interrupt.is_ended());
        assert!(interrupt.step().is_cancelled());
        interrupt.end_turn();
        interrupt.idle();
        assert!(!interrupt.step().is_cancelled());
    }

    #[test]
    fn without_a_step_one_press_ends_the_run() {
        let interrupt = Interrupt::new();
        interrupt.step();
        interrupt.idle();
        interrupt.press();
        assert!(interrupt.is_ended() && !interrupt.haste().is_cancelled());
        interrupt.press();
        assert!(interrupt.haste().is_cancelled());
    }
}
