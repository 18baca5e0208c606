//! The supervisor's side: a thread of its own answers the kernel's questions for as long as the
//! call lives.
//!
//! A program is judged twice: before the exec, so that it can be refused with an error, and after
//! it, where nothing can be exchanged any more. What was not read before (a process may forbid to
//! be looked into), or was exchanged meanwhile, is ended then, before it has begun.

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
use super::forms::Forms;
use super::identity::Identities;
use super::listener::Asked;
use super::listener::Listener;
use super::listener::Question;
use super::process;
use super::process::Program;
use super::questions::Questions;
use super::ran::Ran;
use super::rename_folder;
use super::ticket::Ticket;
use super::verdict::Verdict;
use super::verdict::judge;
use super::write_zone::Zones;
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

/// Bytes of the thread's stack; what it reads lies elsewhere.
pub(super) const STACK: usize = 256 * 1024;

/// How long after it may execute a program a process is expected to stand there with it; one that
/// does not is looked at from outside.
const BEGINS: Duration = Duration::from_secs(1);

/// The gate of one call.
#[derive(Debug)]
pub(crate) struct Gate {
    /// Where the kernel asks, once the call's first process has its filter.
    listener: OnceLock<Listener>,
    rules: Vec<ExecRule>,
    /// The call is held at its first write.
    pub(super) writes: Option<Writes>,
    /// Folders are renamed in the kernel's place.
    pub(super) renames: bool,
    /// Where questions go that the host is to answer.
    pub(super) teller: OwnedFd,
    state: Mutex<State>,
    /// Held while a folder is renamed.
    renaming: Mutex<()>,
    /// The call is over, so that no rename goes on.
    is_over: AtomicBool,
}

#[derive(Debug)]
pub(super) struct State {
    ran: Ran,
    pub(super) denied: DeniedPrograms,
    ancestry: Ancestry,
    identities: Identities,
    /// The process that becomes the call's own shell, as long as it has not.
    pub(super) to_begin: Option<i32>,
    /// What was let go on and does not stand there yet, by its process.
    pub(super) tickets: HashMap<i32, Ticket>,
    pub(super) questions: Questions,
}

impl Gate {
    /// Begins to answer. `main` is the call's first process, whose first program is the call
    /// itself.
    ///
    /// `first` waits until that process has its filter, and returns where the kernel asks; then
    /// what it returns besides lets the process begin.
    pub(crate) fn open(
        first: impl FnOnce() -> (io::Result<Option<Listener>>, OwnedFd) + Send + 'static,
        main: i32,
        order: &Order,
        teller: OwnedFd,
    ) -> io::Result<Arc<Self>> {
        let rules = order.rules.clone();
        let writes = order.write_gate.as_ref().map(|gate| {
            // What is made for a command gets the mode that the command's own mask leaves.
            nix::sys::stat::umask(nix::sys::stat::Mode::empty());
            Writes {
                zones: Zones::new(gate, &order.workspace, order.variable(b"HOME=")),
                shell: order.argv.clone(),
            }
        });
        let state = State {
            ran: Ran::default(),
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
                    // Without it every program would wait for ever. So the call ends, as where a
                    // command kills its supervisor.
                    exit_now(1);
                }
            })?;
        Ok(gate)
    }

    /// Returns what was started, and what was not let run, once all of it has ended.
    pub(crate) fn programs(&self) -> (Programs, Vec<Denied>) {
        let mut state = self.state();
        (state.ran.take(), state.denied.take())
    }

    /// Stops renames that are under way, and waits until they have. Whoever asked for them is gone.
    pub(crate) fn end_renames(&self) -> MutexGuard<'_, ()> {
        self.is_over.store(true, Ordering::Relaxed);
        self.renaming.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(self: &Arc<Self>, first: impl FnOnce() -> (io::Result<Option<Listener>>, OwnedFd)) {
        // Where the process did not get its filter, it is not let begin, and says why itself.
        let (Ok(listener), starter) = first() else {
            return;
        };
        let is_asked = listener.is_some_and(|listener| self.listener.set(listener).is_ok());
        // If it is gone meanwhile, there is nothing to begin.
        let _ = nix::unistd::write(&starter, &[1]);
        drop(starter);
        if !is_asked {
            return;
        }
        loop {
            let within = (!self.state().tickets.is_empty()).then_some(BEGINS);
            match self.listener().wait(within) {
                Asked::Question(question) => self.answer(&question),
                Asked::Nothing => self.look_at_late(),
                Asked::Over => return,
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
            libc::SYS_ptrace if exit_stop::may_stop(question) => self.listener().go_on(id),
            libc::SYS_ptrace => self.listener().refuse(id, Errno::EPERM),
            libc::SYS_execve | libc::SYS_execveat => self.wanted(question),
            call if call == CHECKPOINT.0 => self.begun(question),
            _ if self.writes.is_some() => self.write(question),
            _ => self.rename(question),
        }
    }

    /// Renames a folder in the kernel's place, and leaves everything else to the kernel.
    pub(super) fn rename(self: &Arc<Self>, question: &Question) {
        let id = question.id;
        let Ok(Some((from, to, flags))) = process::folder_to_rename(question) else {
            return self.listener().go_on(id);
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
                match rename_folder::rename(&from, &to, flags, &gate.is_over) {
                    Ok(()) => gate.listener().done(id),
                    Err(errno) => gate.listener().refuse(id, errno),
                }
            });
        if renaming.is_err() {
            self.listener().go_on(id);
        }
    }

    /// Judges what is to be executed, as far as it can be read.
    fn wanted(&self, question: &Question) {
        let thread = question.thread;
        let mut state = self.state();
        if state.to_begin == Some(thread) {
            return self.listener().go_on(question.id);
        }
        // Only the first thread of a process can be held; to the kernel the program will have that
        // one's number.
        let process = if hold(thread).is_some() {
            Some(thread)
        } else {
            process::process_of(thread)
        };
        let (Some(process), Ok(program)) = (process, process::wanted(question)) else {
            return self.listener().go_on(question.id);
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
                self.listener().go_on(question.id);
            }
        }
    }

    /// Judges what stands there and has not begun.
    fn begun(&self, question: &Question) {
        // Before a program begins its process has one thread, with its own number.
        let process = question.thread;
        let mut state = self.state();
        if state.to_begin == Some(process) {
            state.to_begin = None;
            state.ancestry.begun(process, Context::TOP);
            return self.listener().go_on(question.id);
        }
        let held = hold(process);
        let Some(program) = process::begun(process) else {
            return self.listener().go_on(question.id);
        };
        let (directory, ticket) = (process::directory(process), state.tickets.remove(&process));
        if !self.listener().is_waiting(question.id) {
            return;
        }
        match self.look_at(&mut state, process, &program, ticket.as_ref()) {
            // What could not be read before is asked about now: it stands still here, too, and can
            // be exchanged no more.
            Some(Verdict {
                effect: ExecEffect::Ask,
                because,
            }) => {
                state.ran.add(&program.argv, directory, held);
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
        state.ran.add(&program.argv, directory, held);
        self.listener().go_on(question.id);
    }

    /// Ends a process whose program has not begun.
    pub(super) fn end(&self, question: u64, held: Option<&OwnedFd>) {
        if let Some(held) = held {
            kill_held(held);
        }
        // Where it cannot be ended it does not get to its memory, and falls over.
        self.listener().refuse(question, Errno::EACCES);
    }

    /// Judges what a process executes by now, and notes it; returns why it may not.
    fn look_at(
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
        let (forms, verdict) = self.judge(state, process, program, context);
        state.ancestry.begun(process, context.of(forms.own()));
        let verdict = verdict?;
        match ticket.filter(|ticket| ticket.is_allowed && verdict.effect == ExecEffect::Ask) {
            Some(ticket) if ticket.allows(program) => None,
            // Whoever was asked saw another one.
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
    ) -> (Forms, Option<Verdict>) {
        let forms = Forms::of(process, program, &mut state.identities);
        let called_as = program
            .argv
            .words
            .first()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let verdict = judge(&self.rules, &forms, called_as, context);
        (forms, verdict)
    }

    /// Looks from outside at processes that were let go on and have not been seen since: their exec
    /// failed, or what they execute never asks.
    fn look_at_late(&self) {
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
            let (Some(ticket), Some(held), Some(program)) = (ticket, held, process::begun(process))
            else {
                continue;
            };
            // One whose exec failed goes on as what it was.
            if !ticket.is_of(&program) {
                continue;
            }
            if let Some(Verdict { because, .. }) =
                self.look_at(&mut state, process, &program, Some(&ticket))
            {
                state.denied.add(&program.argv, because, true);
                kill_held(&held);
            } else {
                let directory = process::directory(process);
                state.ran.add(&program.argv, directory, Some(held));
            }
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns by whom a program is started in a process, of which this is a thread.
    fn context(&self, process: i32, thread: i32) -> Context {
        self.ancestry.context(process).unwrap_or_else(|| {
            // Whoever started this one is gone. What it is a fork of says the kernel.
            let form = process::executed_by(thread);
            form.map_or(Context::TOP, |form| Context::TOP.of(&form))
        })
    }
}
