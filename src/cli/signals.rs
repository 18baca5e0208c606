use std::sync::OnceLock;

use tokio::signal::unix::SignalKind;
use tokio::signal::unix::signal;

use podbay_app::Interrupt;
use podbay_app::exit_code;

/// How many signals in a row are taken before we stop waiting for a clean end.
const PATIENCE: u8 = 4;

/// The signals since the run last continued behind one: a press that ended a call, and nothing else,
/// is forgotten with that call.
#[derive(Default)]
struct InARow(u8);

impl InARow {
    /// Takes a signal that `interrupt` has heard of; returns whether nothing is waited for any
    /// longer.
    fn is_enough(&mut self, interrupt: &Interrupt) -> bool {
        self.0 = if interrupt.is_ended() {
            self.0.saturating_add(1)
        } else {
            1
        };
        self.0 >= PATIENCE
    }
}

/// What signals tell; they are the process's own, and so is its exit code.
static TOLD: OnceLock<Interrupt> = OnceLock::new();

/// Returns the exit code of the process: the given one, unless a signal decided. Every command's
/// code goes through here.
pub(super) fn decided(code: u8) -> u8 {
    TOLD.get()
        .map_or(code, |interrupt| exit_code::after(interrupt, code))
}

/// What the user or the system told us by signals.
#[derive(Clone)]
pub(super) struct Signals {
    interrupt: Interrupt,
}

impl Signals {
    /// Begins to listen: Ctrl-C is a press of `interrupt`, SIGTERM and SIGHUP end the run.
    pub(super) fn listen(interrupt: &Interrupt) -> std::io::Result<Self> {
        let mut presses = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hangup = signal(SignalKind::hangup())?;
        let told = interrupt.clone();
        // A command listens once.
        let _ = TOLD.set(interrupt.clone());
        tokio::spawn(async move {
            let mut in_a_row = InARow::default();
            loop {
                tokio::select! {
                    _ = presses.recv() => told.press(),
                    _ = terminate.recv() => {
                        // The second one is for a command that takes its time to end.
                        if told.end_by(exit_code::TERMINATED) {
                            told.press();
                        }
                    }
                    _ = hangup.recv() => {
                        told.end_by(exit_code::HUNG_UP);
                    }
                }
                if in_a_row.is_enough(&told) {
                    // Nothing is lost by this: the log is written as it goes, and the sandbox ends with
                    // us.
                    super::raw::restore();
                    podbay_ui::tui::restore();
                    std::process::exit(i32::from(
                        told.exit_code().unwrap_or(exit_code::INTERRUPTED),
                    ));
                }
            }
        });
        Ok(Self {
            interrupt: interrupt.clone(),
        })
    }

    /// Returns the exit code: the given one, unless a signal decided.
    pub(super) fn exit_code(&self, code: u8) -> u8 {
        exit_code::after(&self.interrupt, code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presses_that_each_end_one_call_are_never_enough() {
        let interrupt = Interrupt::new();
        let mut in_a_row = InARow::default();
        for _ in 0..20 {
            assert!(!in_a_row.is_enough(&interrupt), "the run continues");
        }
        interrupt.end();
        let enough: Vec<bool> = (0..3).map(|_| in_a_row.is_enough(&interrupt)).collect();
        assert_eq!(enough, [false, false, true]);
    }
}
