//! The supervisor's side: a thread of its own answers the kernel's questions for as long as the call lives.

use std::io;
use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use nix::errno::Errno;

use super::exit_code::hold;
use super::listener::Asked;
use super::listener::Listener;
use super::listener::Question;
use super::process;
use super::ran::Ran;
use crate::exit_stop;
use crate::unix::exit_now;
use podbay_wire::Programs;

/// Bytes of the thread's stack; what it reads lies elsewhere.
const STACK: usize = 256 * 1024;

/// The gate of one call.
#[derive(Debug)]
pub(crate) struct Gate {
    listener: Listener,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    ran: Ran,
    /// The process that becomes the call's own shell, as long as it has not.
    to_begin: Option<i32>,
}

impl Gate {
    /// Begins to answer; `main` is the call's first process, whose first program is the call itself.
    pub(crate) fn open(listener: Listener, main: i32) -> io::Result<Arc<Self>> {
        let gate = Arc::new(Self { listener, state: Mutex::new(State { ran: Ran::default(), to_begin: Some(main) }) });
        let serving = Arc::clone(&gate);
        std::thread::Builder::new().name("gate".to_owned()).stack_size(STACK).spawn(move || {
            if catch_unwind(AssertUnwindSafe(|| serving.serve())).is_err() {
                // Without it every program would wait for ever. So the call ends, as where a command kills its supervisor.
                exit_now(1);
            }
        })?;
        Ok(gate)
    }

    /// Returns what was started, once all of it has ended.
    pub(crate) fn programs(&self) -> Programs {
        self.state().ran.take()
    }

    fn serve(&self) {
        loop {
            match self.listener.wait(None) {
                Asked::Question(question) => self.answer(&question),
                Asked::Nothing => {}
                Asked::Over => return,
            }
        }
    }

    fn answer(&self, question: &Question) {
        let id = question.id;
        match question.call {
            libc::SYS_ptrace if exit_stop::may_stop(question) => self.listener.go_on(id),
            libc::SYS_ptrace => self.listener.refuse(id, Errno::EPERM),
            // A program that has not begun, so that its one thread has the number of its process.
            _ => {
                self.begun(question);
                self.listener.go_on(id);
            }
        }
    }

    fn begun(&self, question: &Question) {
        let process = question.thread;
        let mut state = self.state();
        if state.to_begin == Some(process) {
            state.to_begin = None;
            return;
        }
        let (begun, directory, held) = (process::begun(process), process::directory(process), hold(process));
        // Its number may be another's by now.
        if let Some(begun) = begun.filter(|_| self.listener.is_waiting(question.id)) {
            state.ran.add(&begun.argv, directory, held);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
