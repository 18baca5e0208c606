//! The supervisor's side of the gate: a thread answers the kernel's questions while the call lives.
//!
//! A program is judged twice: before the exec, so that it can be refused with an error, and after
//! it, when nothing can be exchanged any more. A program that could not be read before (its process
//! was not readable), or that was exchanged meanwhile, is killed then, before it runs.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::OnceLock;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use nix::errno::Errno;

use super::ancestry::Ancestry;
use super::ancestry::Context;
use super::denied::DeniedPrograms;
use super::exit_code::hold;
use super::exit_code::kill_held;
use super::folder_rename;
use super::identity::Identities;
use super::invocations::Invocations;
use super::listener::Listener;
use super::listener::Question;
use super::listener::Received;
use super::process;
use super::process::Program;
use super::program_log::ProgramLog;
use super::questions::Questions;
use super::ticket::Ticket;
use super::verdict::Verdict;
use super::verdict::judge;
use super::write_zone::WriteZones;
use super::writes::Writes;
use crate::call_filter::CHECKPOINT;
use crate::exit_stop;
use crate::order::Order;
use crate::unix::exit_now;
use podbay_wire::Because;
use podbay_wire::Denied;
use podbay_wire::ExecEffect;
use podbay_wire::ExecRule;
use podbay_wire::Programs;

/// Stack of the thread, in bytes; its buffers are on the heap.
pub(super) const STACK: usize = 256 * 1024;

/// How long after its exec was allowed a process may take to show up; later it is inspected from
/// outside.
const BEGINS: Duration = Duration::from_secs(1);

/// The gate of one call.
#[derive(Debug)]
pub(crate) struct Gate {
    /// Set once the call's first process has its filter.
    listener: OnceLock<Listener>,
    rules: Vec<ExecRule>,
    /// In mode `ask`, the call is held at its first write.
    pub(super) writes: Option<Writes>,
    /// Folders are renamed in the kernel's place.
    pub(super) renames: bool,
    /// Socket to the guest, for questions to the host.
    pub(super) teller: OwnedFd,
    state: Mutex<State>,
    /// Held while a folder is renamed.
    renaming: Mutex<()>,
    /// The call is over: renames stop.
    is_over: AtomicBool,
}

#[derive(Debug)]
pub(super) struct State {
    program_log: ProgramLog,
    pub(super) denied: DeniedPrograms,
    ancestry: Ancestry,
    identities: Identities,
    /// The process that will become the call's own shell, until it has.
    pub(super) to_begin: Option<i32>,
    /// Programs whose exec was allowed and has not been seen, by process.
    pub(super) tickets: HashMap<i32, Ticket>,
    pub(super) questions: Questions,
}

impl Gate {
    /// Starts the thread. `main` is the call's first process, whose first program is the call
    /// itself.
    ///
    /// `first` waits until that process has its filter, and returns the listener; then a byte on
    /// the descriptor that it also returns starts the process.
    pub(crate) fn open(
        first: impl FnOnce() -> (io::Result<Option<Listener>>, OwnedFd) + Send + 'static,
        main: i32,
        order: &Order,
        teller: OwnedFd,
    ) -> io::Result<Arc<Self>> {
        let rules = order.rules.clone();
        let writes = order.write_gate.as_ref().map(|gate| {
            // Files created for a command get the mode that the command's own umask leaves.
            nix::sys::stat::umask(nix::sys::stat::Mode::empty());
            Writes {
                zones: WriteZones::new(gate, &order.workspace, order.variable(b"HOME=")),
                shell: order.argv.clone(),
            }
        });
        let state = State {
            program_log: ProgramLog::default(),
            denied: DeniedPrograms::default(),
            ancestry: Ancestry::of(std::process::id() as i32),
            identities: Identities::of(order.programs.clone()),
            to_begin: Some(main),
            tickets: HashMap::new(),
            questions: Questions::default(),
        };
        let gate = Arc::new(Self {
            listener: OnceLock::new(),
            rules,
            writes,
            renames: order.may_rename(),
            teller,
            state: Mutex::new(state),
            renaming: Mutex::default(),
            is_over: AtomicBool::new(false),
        });
        let serving = Arc::clone(&gate);
        std::thread::Builder::new()
            .name("gate".to_owned())
            .stack_size(STACK)
            .spawn(move || {
                if catch_unwind(AssertUnwindSafe(|| serving.serve(first))).is_err() {
                    // Without the thread every program would wait forever, so the call ends as if
                    // its supervisor had been killed.
                    exit_now(1);
                }
            })?;
        Ok(gate)
    }

    /// Returns the programs that ran and those that were denied, once all have ended.
    pub(crate) fn programs(&self) -> (Programs, Vec<Denied>) {
        let mut state = self.state();
        (state.program_log.take(), state.denied.take())
    }

    /// Stops renames in progress, and waits until they have stopped. Their callers are gone.
    pub(crate) fn end_renames(&self) -> MutexGuard<'_, ()> {
        self.is_over.store(true, Ordering::Relaxed);
        self.renaming.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(self: &Arc<Self>, first: impl FnOnce() -> (io::Result<Option<Listener>>, OwnedFd)) {
        // Without its filter the process does not start, and reports the reason itself.
        let (Ok(listener), starter) = first() else {
            return;
        };
        let is_asked = listener.is_some_and(|listener| self.listener.set(listener).is_ok());
        // If it is gone meanwhile, there is nothing to start.
        let _ = nix::unistd::write(&starter, &[1]);
        drop(starter);
        if !is_asked {
            return;
        }
        loop {
            let within = (!self.state().tickets.is_empty()).then_some(BEGINS);
            match self.listener().wait(within) {
                Received::Question(question) => self.answer(&question),
                Received::Nothing => self.inspect_late(),
                Received::Closed => return,
            }
        }
    }

    pub(super) fn listener(&self) -> &Listener {
        self.listener
            .get()
            .expect("what is asked about came over it")
    }

    fn answer(self: &Arc<Self>, question: &Question) {
        let id = question.id;
        match question.call {
            libc::SYS_ptrace if exit_stop::may_stop(question) => self.listener().continue_call(id),
            libc::SYS_ptrace => self.listener().refuse(id, Errno::EPERM),
            libc::SYS_execve | libc::SYS_execveat => self.before_exec(question),
            call if call == CHECKPOINT.0 => self.after_exec(question),
            _ if self.writes.is_some() => self.write(question),
            _ => self.rename(question),
        }
    }

    /// Renames a folder in the kernel's place, and leaves everything else to the kernel.
    pub(super) fn rename(self: &Arc<Self>, question: &Question) {
        let id = question.id;
        let Ok(Some((from, to, flags))) = process::folder_to_rename(question) else {
            return self.listener().continue_call(id);
        };
        if !self.listener().is_waiting(id) {
            return;
        }
        let gate = Arc::clone(self);
        let renaming = std::thread::Builder::new()
            .name("rename".to_owned())
            .stack_size(STACK)
            .spawn(move || {
                let _one_at_a_time = gate.renaming.lock().unwrap_or_else(PoisonError::into_inner);
                match folder_rename::rename(&from, &to, flags, &gate.is_over) {
                    Ok(()) => gate.listener().done(id),
                    Err(errno) => gate.listener().refuse(id, errno),
                }
            });
        if renaming.is_err() {
            self.listener().continue_call(id);
        }
    }

    /// Judges a program before its exec, as far as it can be read.
    fn before_exec(&self, question: &Question) {
        let thread = question.thread;
        let mut state = self.state();
        if state.to_begin == Some(thread) {
            return self.listener().continue_call(question.id);
        }
        // Only the first thread of a process can be held; after the exec the program has that
        // thread's id.
        let process = if hold(thread).is_some() {
            Some(thread)
        } else {
            process::process_of(thread)
        };
        let (Some(process), Ok(program)) = (process, process::before_exec(question)) else {
            return self.listener().continue_call(question.id);
        };
        let context = state.context(process, thread);
        let (_, verdict) = self.judge(&mut state, process, &program, context);
        if !self.listener().is_waiting(question.id) {
            return;
        }
        let ticket = Ticket::new(&program, context);
        match verdict {
            Some(Verdict {
                effect: ExecEffect::Ask,
                because,
            }) => {
                self.ask(
                    &mut state,
                    question.id,
                    process,
                    &program,
                    &because,
                    Some(ticket),
                );
            }
            Some(Verdict {
                effect: ExecEffect::Deny,
                because,
            }) => {
                state.denied.add(&program.argv, because, false);
                self.listener().refuse(question.id, Errno::EACCES);
            }
            None => {
                state.tickets.insert(process, ticket);
                self.listener().continue_call(question.id);
            }
        }
    }

    /// Judges a program after its exec, before it runs.
    fn after_exec(&self, question: &Question) {
        // Before a program runs its process has one thread, whose id is the process's.
        let process = question.thread;
        let mut state = self.state();
        if state.to_begin == Some(process) {
            state.to_begin = None;
            state.ancestry.note(process, Context::TOP);
            return self.listener().continue_call(question.id);
        }
        let held = hold(process);
        let Some(program) = process::after_exec(process) else {
            return self.listener().continue_call(question.id);
        };
        let (directory, ticket) = (process::directory(process), state.tickets.remove(&process));
        if !self.listener().is_waiting(question.id) {
            return;
        }
        match self.note_execution(&mut state, process, &program, ticket.as_ref()) {
            // What could not be read before the exec is asked about now: the process waits here
            // too, and cannot be exchanged any more.
            Some(Verdict {
                effect: ExecEffect::Ask,
                because,
            }) => {
                state.program_log.add(&program.argv, directory, held);
                return self.ask(&mut state, question.id, process, &program, &because, None);
            }
            Some(Verdict {
                effect: ExecEffect::Deny,
                because,
            }) => {
                state.denied.add(&program.argv, because, true);
                return self.end(question.id, held.as_ref());
            }
            None => {}
        }
        state.program_log.add(&program.argv, directory, held);
        self.listener().continue_call(question.id);
    }

    /// Kills a process whose program has not run yet.
    pub(super) fn end(&self, question: u64, held: Option<&OwnedFd>) {
        if let Some(held) = held {
            kill_held(held);
        }
        // If the kill fails, the program gets no thread-local memory, and crashes.
        self.listener().refuse(question, Errno::EACCES);
    }

    /// Judges and notes what a process now executes; returns the reason for a denial.
    fn note_execution(
        &self,
        state: &mut State,
        process: i32,
        program: &Program,
        ticket: Option<&Ticket>,
    ) -> Option<Verdict> {
        if self.rules.is_empty() {
            return None;
        }
        let context =
            ticket.map_or_else(|| state.context(process, process), |ticket| ticket.context);
        let (invocations, verdict) = self.judge(state, process, program, context);
        state.ancestry.note(process, context.of(invocations.own()));
        let verdict = verdict?;
        match ticket.filter(|ticket| ticket.is_allowed && verdict.effect == ExecEffect::Ask) {
            Some(ticket) if ticket.allows(program) => None,
            // The host approved another program than this one.
            Some(_) => Some(Verdict {
                effect: ExecEffect::Deny,
                because: Because::Changed,
            }),
            None => Some(verdict),
        }
    }

    fn judge(
        &self,
        state: &mut State,
        process: i32,
        program: &Program,
        context: Context,
    ) -> (Invocations, Option<Verdict>) {
        let invocations = Invocations::of(process, program, &mut state.identities);
        let called_as = program
            .argv
            .words
            .first()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let verdict = judge(&self.rules, &invocations, called_as, context);
        (invocations, verdict)
    }

    /// Inspects processes that were allowed an exec and have not been seen since: the exec failed,
    /// or the program never makes the call that is asked about.
    fn inspect_late(&self) {
        let mut state = self.state();
        let now = Instant::now();
        let late: Vec<i32> = state
            .tickets
            .iter()
            .filter(|(_, ticket)| now - ticket.since >= BEGINS)
            .map(|(&process, _)| process)
            .collect();
        for process in late {
            let (ticket, held) = (state.tickets.remove(&process), hold(process));
            let (Some(ticket), Some(held), Some(program)) =
                (ticket, held, process::after_exec(process))
            else {
                continue;
            };
            // After a failed exec the process is still the old program.
            if !ticket.is_of(&program) {
                continue;
            }
            if let Some(Verdict { because, .. }) =
                self.note_execution(&mut state, process, &program, Some(&ticket))
            {
                state.denied.add(&program.argv, because, true);
                kill_held(&held);
            } else {
                let directory = process::directory(process);
                state.program_log.add(&program.argv, directory, Some(held));
            }
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns the context in which a program starts in a process; `thread` belongs to it.
    fn context(&self, process: i32, thread: i32) -> Context {
        self.ancestry.context(process).unwrap_or_else(|| {
            // The starting process is gone. Its fork still executes the same program.
            let form = process::executed_by(thread);
            form.map_or(Context::TOP, |form| Context::TOP.of(&form))
        })
    }
}
