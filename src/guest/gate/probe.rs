//! Whether the kernel lets a supervisor be asked at all: tried once, at the guest's start.

use std::sync::mpsc;
use std::time::Duration;

use super::listener::Asked;
use super::listener::Listener;
use crate::call_filter;
use podbay_wire::message::ExecGate;

/// How long the kernel may take to hand a question on; it takes microseconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// Has a thread of its own ask, under a filter that ends with it.
pub fn find() -> ExecGate {
    let (sender, receiver) = mpsc::channel();
    let asking = std::thread::Builder::new()
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
    let Ok(asking) = asking else {
        return ExecGate::Absent;
    };
    let found = match receiver.recv() {
        Ok(Ok(fd)) => answer(&Listener::new(fd)),
        Ok(Err(error)) if error.raw_os_error() == Some(libc::EBUSY) => ExecGate::Taken,
        Ok(Err(_)) | Err(_) => ExecGate::Absent,
    };
    let _ = asking.join();
    found
}

fn answer(listener: &Listener) -> ExecGate {
    match listener.wait(Some(PATIENCE)) {
        // Whoever asked gets an error when the listener is closed.
        Asked::Question(question) if listener.can_go_on(question.id).is_ok() => ExecGate::Works,
        _ => ExecGate::Absent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_filter::Tracing;
    use crate::call_filter::Watched;

    #[test]
    fn where_nobody_else_is_asked_it_works_and_below_another_listener_it_is_taken() {
        assert_eq!(find(), ExecGate::Works, "this kernel asks");
        let below = std::thread::spawn(|| {
            let listener = call_filter::apply(Tracing::Own, Watched::default()).expect("applied");
            assert!(listener.is_some());
            find()
        });
        assert_eq!(below.join().expect("no panic"), ExecGate::Taken);
        assert_eq!(find(), ExecGate::Works, "the filter was that thread's own");
    }
}
