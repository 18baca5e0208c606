//! A call is held at its first write, until the host has answered for the whole of it.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::stat::SFlag;
use nix::unistd::AccessFlags;
use nix::unistd::access;

use super::handed_open;
use super::handed_open::Opener;
use super::listener::Question;
use super::process;
use super::process::Arguments;
use super::process::Program;
use super::questions;
use super::questions::About;
use super::questions::Held;
use super::questions::Waits;
use super::supervise::Gate;
use super::supervise::State;
use super::write_calls;
use super::write_calls::Expects;
use super::write_calls::Opening;
use super::write_calls::Target;
use super::write_calls::WriteCall;
use super::write_path;
use super::write_path::Found;
use super::write_path::Unseen;
use super::write_zone::Zone;
use super::write_zone::Zones;
use podbay_wire::AskedProgram;
use podbay_wire::AskedWrite;
use podbay_wire::Because;
use podbay_wire::WriteChange;

/// What is said where a process may not be looked into.
const UNKNOWN: &str = "(its process hides where)";

/// How often an open is tried whose path changes all the time.
const TRIES: usize = 8;

/// What is known of the writes of a call.
#[derive(Debug)]
pub(super) struct Writes {
    pub(super) zones: Zones,
    /// The arguments of the call's own shell, which hold the whole command.
    pub(super) shell: Vec<Vec<u8>>,
}

/// A write, and what it leads to.
#[derive(Debug)]
struct Write {
    /// What is asked about; it may be nothing.
    asked: Vec<AskedWrite>,
    open: Option<(Found, Opening)>,
}

/// What becomes of a write.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// It leads to what is free, or to protected names that were asked about.
    Free,
    /// The whole call may write.
    Allowed,
    Denied(AskedWrite),
    Asked(About, AskedWrite),
}

impl Writes {
    /// Returns what a process executes. Of the call's own shell it is the name: its arguments are
    /// the command, which the host knows.
    fn writer(&self, process: i32) -> Option<Program> {
        let program = process::begun(process)?;
        if program.argv.words != self.shell {
            return Some(program);
        }
        let words = program.argv.words.into_iter().take(1).collect();
        Some(Program {
            argv: Arguments {
                words,
                truncated: false,
            },
            ..program
        })
    }
}

impl Gate {
    /// Judges a system call that may write.
    pub(super) fn write(self: &Arc<Self>, question: &Question) {
        let (id, thread) = (question.id, question.thread);
        if self.state().to_begin == Some(thread) {
            // What becomes the call's shell is still ours.
            return self.listener().go_on(id);
        }
        let Some(writes) = &self.writes else {
            return self.listener().go_on(id);
        };
        let Some(process) = process::process_of(thread) else {
            return self.listener().go_on(id);
        };
        for _ in 0..TRIES {
            let write = match look(&writes.zones, process, question) {
                Ok(Some(write)) => write,
                Ok(None) => return self.listener().go_on(id),
                Err(errno) => return self.listener().refuse(id, errno),
            };
            if !self.listener().is_waiting(id) {
                return;
            }
            let mut state = self.state();
            match verdict(&write.asked, |about| state.questions.answer(about)) {
                Verdict::Denied(asked) => {
                    if let Some(program) = writes.writer(process) {
                        state
                            .denied
                            .add(&program.argv, Because::Write { path: asked.path }, false);
                    }
                    return self.listener().refuse(id, Errno::EACCES);
                }
                Verdict::Asked(about, asked) => {
                    return self.ask_about_write(&mut state, question, process, about, asked);
                }
                Verdict::Allowed => {
                    drop(state);
                    return self.let_go(question);
                }
                Verdict::Free => drop(state),
            }
            let Some((found, opening)) = write.open else {
                return self.let_go(question);
            };
            if self.open_file(question, process, &found, opening) {
                return;
            }
        }
        self.listener().refuse(id, Errno::ELOOP);
    }

    fn ask_about_write(
        &self,
        state: &mut State,
        question: &Question,
        process: i32,
        about: About,
        write: AskedWrite,
    ) {
        let Some(program) = self
            .writes
            .as_ref()
            .and_then(|writes| writes.writer(process))
        else {
            return self.listener().refuse(question.id, Errno::EACCES);
        };
        let asked = AskedProgram {
            write: Some(write),
            ..questions::question(&program, process::directory(process), "")
        };
        self.hold(
            state,
            Held {
                id: question.id,
                process,
                about,
                asked,
                waits: Waits::Write(*question),
            },
        );
    }

    /// Leaves a write to the kernel, or to who renames in its place.
    fn let_go(self: &Arc<Self>, question: &Question) {
        match question.call {
            call if self.renames && crate::call_filter::RENAMES.contains(&call) => {
                self.rename(question);
            }
            _ => self.listener().go_on(question.id),
        }
    }

    /// Opens a file for a process; returns whether it has its answer.
    fn open_file(
        &self,
        question: &Question,
        process: i32,
        found: &Found,
        opening: Opening,
    ) -> bool {
        let id = question.id;
        match handed_open::opener(process, found) {
            Opener::Kernel => self.listener().go_on(id),
            Opener::Refused(errno) => self.listener().refuse(id, errno),
            Opener::Supervisor => {
                let was_missing = found.there.is_none();
                let opened = self.hand_over(id, process, found, opening);
                // Something has come there since.
                return !(was_missing && opened == Err(Errno::ELOOP));
            }
        }
        true
    }

    /// Opens a file and hands it over. Where that fails, so does the call, but for a link that has
    /// come in the place of nothing.
    fn hand_over(
        &self,
        id: u64,
        process: i32,
        found: &Found,
        opening: Opening,
    ) -> Result<(), Errno> {
        let opened = handed_open::open(found, opening, process::umask(process));
        let close_on_exec = opening.flags & libc::O_CLOEXEC != 0;
        let done = opened.and_then(|file| self.listener().hand_over(id, &file, close_on_exec));
        match done {
            Err(Errno::ELOOP) if found.there.is_none() => {}
            Err(errno) => self.listener().refuse(id, errno),
            Ok(()) => {}
        }
        done
    }
}

/// Sees what a system call would change; `None`: nothing. An error: it fails so.
fn look(zones: &Zones, process: i32, question: &Question) -> Result<Option<Write>, Errno> {
    let find = |at, follow| match write_path::find(process, question.thread, at, follow) {
        Ok(found) => Ok(Some(found)),
        Err(Unseen::Unreadable) => Ok(None),
        Err(Unseen::Nowhere(errno)) => Err(errno),
    };
    let unknown = |change| AskedWrite {
        path: UNKNOWN.into(),
        change,
        protected: false,
    };
    match write_calls::of(question) {
        None => Ok(None),
        Some(WriteCall::Open { at, opening }) => {
            let exclusive =
                opening.flags & (libc::O_CREAT | libc::O_EXCL) == (libc::O_CREAT | libc::O_EXCL);
            let follow = opening.flags & libc::O_NOFOLLOW == 0 && !exclusive;
            let Some(found) = find(at, follow)? else {
                return Ok(Some(Write {
                    asked: vec![unknown(WriteChange::Write)],
                    open: None,
                }));
            };
            let asked = if is_written(&found, opening)? {
                ask(zones, process, &found, WriteChange::Write)
            } else {
                None
            };
            Ok(Some(Write {
                asked: asked.into_iter().collect(),
                open: Some((found, opening)),
            }))
        }
        Some(WriteCall::Change(targets)) => {
            let (mut asked, mut mounts) = (Vec::new(), Vec::new());
            for Target {
                at,
                follow,
                expects,
                change,
            } in targets
            {
                let Some(found) = find(at, follow)? else {
                    asked.push(unknown(change));
                    continue;
                };
                match (expects, &found.there) {
                    (Expects::There, None) => return Err(Errno::ENOENT),
                    (Expects::Missing, Some(_)) => return Err(Errno::EEXIST),
                    _ => {}
                }
                mounts.extend(found.mount());
                if may_change(&found, change) {
                    asked.extend(ask(zones, process, &found, change));
                }
            }
            // Nothing is linked or renamed from one mount to another.
            if mounts.windows(2).any(|pair| pair[0] != pair[1]) {
                return Err(Errno::EXDEV);
            }
            Ok(Some(Write { asked, open: None }))
        }
    }
}

fn ask(zones: &Zones, process: i32, found: &Found, change: WriteChange) -> Option<AskedWrite> {
    match zones.of(process, found, change == WriteChange::MakeFolder) {
        Zone::Free => None,
        Zone::Asked { path, protected } => Some(AskedWrite {
            path,
            change,
            protected,
        }),
    }
}

/// Returns whether an open changes what it leads to. An error: it fails so, and needs no question.
fn is_written(found: &Found, Opening { flags, .. }: Opening) -> Result<bool, Errno> {
    const TMPFILE: i32 = libc::O_TMPFILE & !libc::O_DIRECTORY;
    let creates = flags & libc::O_CREAT != 0;
    let Some(there) = &found.there else {
        return match &found.within {
            Some(_) if creates && found.is_folder_path => Err(Errno::EISDIR),
            Some((folder, _)) if creates => may_write(folder).map(|()| true),
            _ => Err(Errno::ENOENT),
        };
    };
    match there.kind() {
        _ if creates && flags & libc::O_EXCL != 0 => Err(Errno::EEXIST),
        SFlag::S_IFREG if flags & (libc::O_ACCMODE | libc::O_TRUNC) != 0 => {
            may_write(&there.fd).map(|()| true)
        }
        // What the kernel says of processes, it says to each of them: who opens it matters.
        SFlag::S_IFREG => Ok(found.path.starts_with(b"/proc/")),
        SFlag::S_IFDIR if flags & TMPFILE != 0 => may_write(&there.fd).map(|()| true),
        _ => Ok(false),
    }
}

/// Returns whether a change is one that the kernel lets this user make, as far as the mounts and
/// the folder say.
fn may_change(found: &Found, change: WriteChange) -> bool {
    match (&found.there, &found.within, change) {
        // The owner needs no right to write.
        (Some(there), _, WriteChange::Attributes | WriteChange::Link) => {
            may_write(&there.fd) != Err(Errno::EROFS)
        }
        (Some(there), _, WriteChange::Write) => may_write(&there.fd).is_ok(),
        (_, Some((folder, _)), _) => may_write(folder).is_ok(),
        _ => true,
    }
}

/// Asks the kernel whether this user, who is the command's, may write to what is held.
fn may_write(fd: &OwnedFd) -> Result<(), Errno> {
    access(write_path::way(fd).as_str(), AccessFlags::W_OK)
}

/// Says what becomes of a write by what is answered already.
fn verdict(asked: &[AskedWrite], answer: impl Fn(&About) -> Option<bool>) -> Verdict {
    let call = answer(&About::Writes);
    let name = |write: &AskedWrite| write.protected.then(|| About::Name(write.path.clone()));
    let (mut is_allowed, mut open): (bool, Option<&AskedWrite>) = (false, None);
    for write in asked {
        match (name(write).and_then(|name| answer(&name)), call) {
            (Some(false), _) | (None, Some(false)) => return Verdict::Denied(write.clone()),
            (None, Some(true)) if !write.protected => is_allowed = true,
            (None, _) if open.is_none_or(|open| write.protected && !open.protected) => {
                open = Some(write);
            }
            (Some(true) | None, _) => {}
        }
    }
    match open {
        Some(write) => Verdict::Asked(name(write).unwrap_or(About::Writes), write.clone()),
        None if is_allowed => Verdict::Allowed,
        None => Verdict::Free,
    }
}

#[cfg(test)]
mod tests {
    use podbay_wire::BytesPath;

    use super::*;

    fn write(path: &str) -> AskedWrite {
        AskedWrite {
            path: path.into(),
            change: WriteChange::Write,
            protected: path.starts_with('.'),
        }
    }

    fn name(path: &str) -> About {
        About::Name(BytesPath::from(path))
    }

    /// Judges writes where so much is answered.
    fn judged(paths: &[&str], answers: &[(About, bool)]) -> Verdict {
        let asked: Vec<AskedWrite> = paths.iter().map(|path| write(path)).collect();
        verdict(&asked, |about| {
            answers
                .iter()
                .find(|(answered, _)| answered == about)
                .map(|(_, yes)| *yes)
        })
    }

    #[test]
    fn a_call_is_asked_about_once_and_an_answer_is_for_all_of_it() {
        assert_eq!(judged(&[], &[]), Verdict::Free);
        assert_eq!(
            judged(&["x"], &[]),
            Verdict::Asked(About::Writes, write("x"))
        );
        assert_eq!(judged(&["x"], &[(About::Writes, true)]), Verdict::Allowed);
        assert_eq!(
            judged(&["x"], &[(About::Writes, false)]),
            Verdict::Denied(write("x"))
        );
        assert_eq!(
            judged(&[".env"], &[(About::Writes, false)]),
            Verdict::Denied(write(".env"))
        );
    }

    #[test]
    fn a_protected_name_is_asked_about_by_itself_and_first() {
        assert_eq!(
            judged(&["x", ".env"], &[]),
            Verdict::Asked(name(".env"), write(".env"))
        );
        assert_eq!(
            judged(&["x", ".env"], &[(name(".env"), true)]),
            Verdict::Asked(About::Writes, write("x"))
        );
        assert_eq!(
            judged(&["x"], &[(name(".env"), false)]),
            Verdict::Asked(About::Writes, write("x"))
        );
        assert_eq!(
            judged(&["x", ".env"], &[(About::Writes, true)]),
            Verdict::Asked(name(".env"), write(".env"))
        );
        let answered = [(About::Writes, true), (name(".env"), true)];
        assert_eq!(judged(&["x", ".env"], &answered), Verdict::Allowed);
        assert_eq!(judged(&[".env"], &answered), Verdict::Free);
        assert_eq!(
            judged(&[".npmrc"], &answered),
            Verdict::Asked(name(".npmrc"), write(".npmrc"))
        );
        let refused = [(About::Writes, true), (name(".env"), false)];
        assert_eq!(
            judged(&["x", ".env"], &refused),
            Verdict::Denied(write(".env"))
        );
        assert_eq!(judged(&["x"], &refused), Verdict::Allowed);
    }
}
