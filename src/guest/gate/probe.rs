//! Whether this kernel supports the gate: tried once, at the guest's start.

use std::sync::mpsc;
use std::time::Duration;

use super::listener::Listener;
use super::listener::Received;
use crate::call_filter;
use podbay_wire::message::ExecGate;

/// How long the kernel may take to deliver a question; it takes microseconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// Lets a thread make a filtered system call, and sees whether the kernel asks. The filter ends
/// with the thread.
pub fn probe_exec_gate() -> ExecGate {
    let (sender, receiver) = mpsc::channel();
    let host_answers = std::thread::Builder::new()
        .name("probe".to_owned())
        .stack_size(128 * 1024)
        .spawn(move || {
            let listener = call_filter::ask_about_parents();
            let may_ask = listener.is_ok();
            let _ = sender.send(listener);
            if may_ask {
                nix::unistd::getppid();
            }
        });
    let Ok(host_answers) = host_answers else {
        return ExecGate::Absent;
    };
    let found = match receiver.recv() {
        Ok(Ok(fd)) => answer(&Listener::new(fd)),
        Ok(Err(error)) if error.raw_os_error() == Some(libc::EBUSY) => ExecGate::Taken,
        Ok(Err(_)) | Err(_) => ExecGate::Absent,
    };
    let _ = host_answers.join();
    found
}

fn answer(listener: &Listener) -> ExecGate {
    match listener.wait(Some(PATIENCE)) {
        // The asking thread gets an error when the listener is closed.
        Received::Question(question) if listener.can_continue(question.id).is_ok() => {
            ExecGate::Works
        }
        _ => ExecGate::Absent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_filter::AskedCalls;
    use crate::call_filter::Tracing;

    #[test]
    fn the_gate_works_unless_another_listener_is_installed() {
        assert_eq!(probe_exec_gate(), ExecGate::Works, "this kernel asks");
        let below = std::thread::spawn(|| {
            let listener =
                call_filter::apply(Tracing::Own, AskedCalls::default()).expect("applied");
            assert!(listener.is_some());
            probe_exec_gate()
        });
        assert_eq!(below.join().expect("no panic"), ExecGate::Taken);
        assert_eq!(
            probe_exec_gate(),
            ExecGate::Works,
            "the filter was that thread's own"
        );
    }
}
