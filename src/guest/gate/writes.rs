//! Holds a call at its first write until the host has answered for the whole call.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::stat::SFlag;
use nix::unistd::AccessFlags;
use nix::unistd::access;

use super::call_gate::Gate;
use super::call_gate::State;
use super::emulated_open;
use super::emulated_open::Opener;
use super::listener::Question;
use super::process;
use super::process::Arguments;
use super::process::Program;
use super::questions;
use super::questions::HeldAt;
use super::questions::PendingCall;
use super::questions::Subject;
use super::resolved_path;
use super::resolved_path::ResolveError;
use super::resolved_path::ResolvedPath;
use super::write_calls;
use super::write_calls::Expects;
use super::write_calls::Opening;
use super::write_calls::WriteCall;
use super::write_calls::WriteTarget;
use super::write_zone::WriteZone;
use super::write_zone::WriteZones;
use podbay_wire::AskedProgram;
use podbay_wire::AskedWrite;
use podbay_wire::Because;
use podbay_wire::WriteChange;

/// Shown in place of a path where the process is not readable.
const UNKNOWN: &str = "(its process hides where)";

/// How often an open is retried while its path keeps changing.
const TRIES: usize = 8;

/// What decides about the writes of a call.
#[derive(Debug)]
pub(super) struct Writes {
    pub(super) zones: WriteZones,
    /// The arguments of the call's own shell, which contain the whole command.
    pub(super) shell: Vec<Vec<u8>>,
}

/// A write, and where it leads.
#[derive(Debug)]
struct Write {
    /// What is asked about; may be empty.
    asked: Vec<AskedWrite>,
    open: Option<(ResolvedPath, Opening)>,
}

/// What happens to a write.
#[derive(Debug, PartialEq, Eq)]
enum WriteVerdict {
    /// It leads to a free zone, or to protected names that were approved.
    Free,
    /// The whole call may write.
    Allowed,
    Denied(AskedWrite),
    Asked(Subject, AskedWrite),
}

impl Writes {
    /// Returns the program that writes. Of the call's own shell only the name: its arguments are
    /// the command, which the host knows.
    fn writer(&self, process: i32) -> Option<Program> {
        let program = process::after_exec(process)?;
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
            // The process that will become the call's shell still runs our own code.
            return self.listener().continue_call(id);
        }
        let Some(writes) = &self.writes else {
            return self.listener().continue_call(id);
        };
        let Some(process) = process::process_of(thread) else {
            return self.listener().continue_call(id);
        };
        for _ in 0..TRIES {
            let write = match inspect(&writes.zones, process, question) {
                Ok(Some(write)) => write,
                Ok(None) => return self.listener().continue_call(id),
                Err(errno) => return self.listener().refuse(id, errno),
            };
            if !self.listener().is_waiting(id) {
                return;
            }
            let mut state = self.state();
            match verdict(&write.asked, |about| state.questions.answer(about)) {
                WriteVerdict::Denied(asked) => {
                    if let Some(program) = writes.writer(process) {
                        state
                            .denied
                            .add(&program.argv, Because::Write { path: asked.path }, false);
                    }
                    return self.listener().refuse(id, Errno::EACCES);
                }
                WriteVerdict::Asked(about, asked) => {
                    return self.ask_about_write(&mut state, question, process, about, asked);
                }
                WriteVerdict::Allowed => {
                    drop(state);
                    return self.leave_to_kernel(question);
                }
                WriteVerdict::Free => drop(state),
            }
            let Some((found, opening)) = write.open else {
                return self.leave_to_kernel(question);
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
        about: Subject,
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
            PendingCall {
                id: question.id,
                process,
                about,
                asked,
                waits: HeldAt::Write(*question),
            },
        );
    }

    /// Leaves a write to the kernel, or to the rename in its place.
    fn leave_to_kernel(self: &Arc<Self>, question: &Question) {
        match question.call {
            call if self.renames && crate::call_filter::RENAMES.contains(&call) => {
                self.rename(question);
            }
            _ => self.listener().continue_call(question.id),
        }
    }

    /// Opens a file for a process; returns whether the process has its answer.
    fn open_file(
        &self,
        question: &Question,
        process: i32,
        found: &ResolvedPath,
        opening: Opening,
    ) -> bool {
        let id = question.id;
        match emulated_open::opener(process, found) {
            Opener::Kernel => self.listener().continue_call(id),
            Opener::Refused(errno) => self.listener().refuse(id, errno),
            Opener::Supervisor => {
                let was_missing = found.there.is_none();
                let opened = self.answer_with_file(id, process, found, opening);
                // A link has appeared there since.
                return !(was_missing && opened == Err(Errno::ELOOP));
            }
        }
        true
    }

    /// Opens a file and passes it to the process. A failure is the call's error, except when a link
    /// has appeared at a missing name.
    fn answer_with_file(
        &self,
        id: u64,
        process: i32,
        found: &ResolvedPath,
        opening: Opening,
    ) -> Result<(), Errno> {
        let opened = emulated_open::open(found, opening, process::umask(process));
        let close_on_exec = opening.flags & libc::O_CLOEXEC != 0;
        let done =
            opened.and_then(|file| self.listener().answer_with_file(id, &file, close_on_exec));
        match done {
            Err(Errno::ELOOP) if found.there.is_none() => {}
            Err(errno) => self.listener().refuse(id, errno),
            Ok(()) => {}
        }
        done
    }
}

/// Inspects what a system call would change; `None`: nothing. An error: the call fails with it.
fn inspect(zones: &WriteZones, process: i32, question: &Question) -> Result<Option<Write>, Errno> {
    let find = |at, follow| match resolved_path::find(process, question.thread, at, follow) {
        Ok(found) => Ok(Some(found)),
        Err(ResolveError::Unreadable) => Ok(None),
        Err(ResolveError::Nowhere(errno)) => Err(errno),
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
            for WriteTarget {
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
                    (Expects::HeldEntry, None) => return Err(Errno::ENOENT),
                    (Expects::Missing, Some(_)) => return Err(Errno::EEXIST),
                    _ => {}
                }
                mounts.extend(found.mount());
                if may_change(&found, change) {
                    asked.extend(ask(zones, process, &found, change));
                }
            }
            // No link or rename crosses mounts.
            if mounts.windows(2).any(|pair| pair[0] != pair[1]) {
                return Err(Errno::EXDEV);
            }
            Ok(Some(Write { asked, open: None }))
        }
    }
}

fn ask(
    zones: &WriteZones,
    process: i32,
    found: &ResolvedPath,
    change: WriteChange,
) -> Option<AskedWrite> {
    match zones.of(process, found, change == WriteChange::MakeFolder) {
        WriteZone::Free => None,
        WriteZone::Asked { path, protected } => Some(AskedWrite {
            path,
            change,
            protected,
        }),
    }
}

/// Returns whether an open changes the file. An error: the call fails with it, and needs no
/// question.
fn is_written(found: &ResolvedPath, Opening { flags, .. }: Opening) -> Result<bool, Errno> {
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
        // Files of `/proc` depend on the process that opens them.
        SFlag::S_IFREG => Ok(found.path.starts_with(b"/proc/")),
        SFlag::S_IFDIR if flags & TMPFILE != 0 => may_write(&there.fd).map(|()| true),
        _ => Ok(false),
    }
}

/// Returns whether the kernel would let this user make a change, judged by mount and folder.
fn may_change(found: &ResolvedPath, change: WriteChange) -> bool {
    match (&found.there, &found.within, change) {
        // The owner may do this without the right to write.
        (Some(there), _, WriteChange::Attributes | WriteChange::Link) => {
            may_write(&there.fd) != Err(Errno::EROFS)
        }
        (Some(there), _, WriteChange::Write) => may_write(&there.fd).is_ok(),
        (_, Some((folder, _)), _) => may_write(folder).is_ok(),
        _ => true,
    }
}

/// Asks the kernel whether this user, which is also the command's, may write to an open file.
fn may_write(fd: &OwnedFd) -> Result<(), Errno> {
    access(resolved_path::openable(fd).as_str(), AccessFlags::W_OK)
}

/// Returns what happens to a write, by the answers so far.
fn verdict(asked: &[AskedWrite], answer: impl Fn(&Subject) -> Option<bool>) -> WriteVerdict {
    let call = answer(&Subject::Writes);
    let name = |write: &AskedWrite| write.protected.then(|| Subject::Name(write.path.clone()));
    let (mut is_allowed, mut open): (bool, Option<&AskedWrite>) = (false, None);
    for write in asked {
        match (name(write).and_then(|name| answer(&name)), call) {
            (Some(false), _) | (None, Some(false)) => return WriteVerdict::Denied(write.clone()),
            (None, Some(true)) if !write.protected => is_allowed = true,
            (None, _) if open.is_none_or(|open| write.protected && !open.protected) => {
                open = Some(write);
            }
            (Some(true) | None, _) => {}
        }
    }
    match open {
        Some(write) => WriteVerdict::Asked(name(write).unwrap_or(Subject::Writes), write.clone()),
        None if is_allowed => WriteVerdict::Allowed,
        None => WriteVerdict::Free,
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

    fn name(path: &str) -> Subject {
        Subject::Name(BytesPath::from(path))
    }

    /// Judges writes against the answers given.
    fn judged(paths: &[&str], answers: &[(Subject, bool)]) -> WriteVerdict {
        let asked: Vec<AskedWrite> = paths.iter().map(|path| write(path)).collect();
        verdict(&asked, |about| {
            answers
                .iter()
                .find(|(answered, _)| answered == about)
                .map(|(_, yes)| *yes)
        })
    }

    #[test]
    fn a_call_is_asked_about_once_for_all_its_writes() {
        assert_eq!(judged(&[], &[]), WriteVerdict::Free);
        assert_eq!(
            judged(&["x"], &[]),
            WriteVerdict::Asked(Subject::Writes, write("x"))
        );
        assert_eq!(
            judged(&["x"], &[(Subject::Writes, true)]),
            WriteVerdict::Allowed
        );
        assert_eq!(
            judged(&["x"], &[(Subject::Writes, false)]),
            WriteVerdict::Denied(write("x"))
        );
        assert_eq!(
            judged(&[".env"], &[(Subject::Writes, false)]),
            WriteVerdict::Denied(write(".env"))
        );
    }

    #[test]
    fn protected_names_are_asked_about_first_and_each() {
        assert_eq!(
            judged(&["x", ".env"], &[]),
            WriteVerdict::Asked(name(".env"), write(".env"))
        );
        assert_eq!(
            judged(&["x", ".env"], &[(name(".env"), true)]),
            WriteVerdict::Asked(Subject::Writes, write("x"))
        );
        assert_eq!(
            judged(&["x"], &[(name(".env"), false)]),
            WriteVerdict::Asked(Subject::Writes, write("x"))
        );
        assert_eq!(
            judged(&["x", ".env"], &[(Subject::Writes, true)]),
            WriteVerdict::Asked(name(".env"), write(".env"))
        );
        let answered = [(Subject::Writes, true), (name(".env"), true)];
        assert_eq!(judged(&["x", ".env"], &answered), WriteVerdict::Allowed);
        assert_eq!(judged(&[".env"], &answered), WriteVerdict::Free);
        assert_eq!(
            judged(&[".npmrc"], &answered),
            WriteVerdict::Asked(name(".npmrc"), write(".npmrc"))
        );
        let refused = [(Subject::Writes, true), (name(".env"), false)];
        assert_eq!(
            judged(&["x", ".env"], &refused),
            WriteVerdict::Denied(write(".env"))
        );
        assert_eq!(judged(&["x"], &refused), WriteVerdict::Allowed);
    }
}
