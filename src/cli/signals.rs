use std::sync::Arc;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering;

use tokio::signal::unix::SignalKind;
use tokio::signal::unix::signal;

use crate::app::Interrupt;
use crate::app::exit_code;

/// How many signals are taken before we stop waiting for a clean end.
const PATIENCE: u8 = 4;

/// What the person or the system told us by signals.
#[derive(Clone, Default)]
pub(super) struct Signals {
    terminated: Arc<AtomicU8>,
}

impl Signals {
    /// Begins to listen: Ctrl-C goes to `interrupt`, SIGTERM and SIGHUP end the run.
    pub(super) fn listen(interrupt: &Interrupt) -> std::io::Result<Self> {
        let signals = Self::default();
        let mut presses = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hangup = signal(SignalKind::hangup())?;
        let terminated = Arc::clone(&signals.terminated);
        let interrupt = interrupt.clone();
        tokio::spawn(async move {
            let mut n_presses = 0;
            loop {
                tokio::select! {
                    _ = presses.recv() => {
                        n_presses += 1;
                        interrupt.press();
                    }
                    _ = terminate.recv() => {
                        n_presses += 1;
                        // The second one is for a command that takes its time to end.
                        if terminated.swap(exit_code::TERMINATED, Ordering::Relaxed) == exit_code::TERMINATED {
                            interrupt.press();
                        }
                        interrupt.end();
                    }
                    _ = hangup.recv() => {
                        terminated.store(129, Ordering::Relaxed);
                        interrupt.end();
                    }
                }
                if n_presses >= PATIENCE {
                    // Nothing is lost by this: the log is written as it goes, and the box ends with us.
                    let code = match terminated.load(Ordering::Relaxed) {
                        0 => exit_code::INTERRUPTED,
                        signal => signal,
                    };
                    std::process::exit(i32::from(code));
                }
            }
        });
        Ok(signals)
    }

    /// Returns the exit code: the given one, unless a signal decided.
    pub(super) fn exit_code(&self, code: u8) -> u8 {
        match self.terminated.load(Ordering::Relaxed) {
            0 => code,
            signal if code == exit_code::INTERRUPTED => signal,
            _ => code,
        }
    }
}
