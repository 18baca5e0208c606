//! What the model has last seen of the files that a call changes, so that changes made since by
//! others are not overwritten.
//!
//! A file counts as seen when it was read, and when a file tool changed it. A change by a command
//! does not count: the model was not shown it. Only changes by line number, whole replacements and
//! removals are checked; an edit that names the text which it replaces finds it or fails.
//!
//! A file with several names (hard links) is also known by an identity that is not a path: a change
//! by another name than the one it was read by is checked as well.
//!
//! The host remembers, and sends with each call what it knows of the files in it. Where a name
//! leads to another file, the call ends before any change and asks the host for the names that it
//! needs.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs::File;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::fcntl::openat;
use nix::sys::stat::FileStat;
use nix::sys::stat::Mode;
use nix::sys::stat::SFlag;
use nix::sys::stat::fstat;

use super::Workspace;
use super::mark;
use super::save::TargetFile;
use super::save::errno_of;
use super::target_entry::TargetEntry;
use crate::beneath::Links;
use crate::root::Root;
use crate::root::fault;
use crate::root::file_type;
use podbay_wire::BytesPath;
use podbay_wire::Call;
use podbay_wire::Fault;
use podbay_wire::Known;
use podbay_wire::Mark;
use podbay_wire::Memo;
use podbay_wire::Output;
use podbay_wire::below;

/// What is known of files in one call, and what the host must remember after it. Paths start at the
/// project's folder, with links resolved.
#[derive(Debug, Default)]
pub(super) struct SeenFiles {
    /// `None`: the host keeps no memory.
    told: Option<Vec<BytesPath>>,
    known: BTreeMap<Vec<u8>, Mark>,
    /// The identities of files with several names, by the name used in the call.
    shared: RefCell<BTreeMap<Vec<u8>, Vec<u8>>>,
    untold: RefCell<BTreeSet<BytesPath>>,
    memos: RefCell<Vec<Memo>>,
}

impl SeenFiles {
    /// Takes what the host sent with a call. Calls that only read need nothing.
    pub(super) fn of(call: &Call) -> Self {
        let facts = call.facts();
        let Some(Known { told, files }) = facts.known().map(Cow::into_owned) else {
            return Self::default();
        };
        let known = files
            .into_iter()
            .map(|file| (file.path.as_bytes().to_vec(), file.mark))
            .collect();
        Self {
            told: Some(told),
            known,
            ..Self::default()
        }
    }

    /// Returns a file's path from the project's folder, and registers its identity if it has other
    /// names.
    pub(super) fn real(&self, root: &Root, place: &TargetFile) -> Result<Vec<u8>, Fault> {
        let real = place.real(root)?;
        if let Some(stat) = place.stat() {
            self.share(&real, stat);
        }
        Ok(real)
    }

    /// Registers the identity of a file with other names. It contains a zero byte, which no path
    /// does.
    pub(super) fn share(&self, real: &[u8], stat: &FileStat) {
        if stat.st_nlink > 1 && self.told.is_some() {
            let shared = format!("\0{}:{}", stat.st_dev, stat.st_ino).into_bytes();
            self.shared.borrow_mut().insert(real.to_vec(), shared);
        }
    }

    /// Returns the mark of a file when it was last seen; `None`: it never was, or the host must be
    /// asked first.
    pub(super) fn last(&self, real: &[u8]) -> Option<&Mark> {
        let told = self.told.as_ref()?;
        let shared = self.shared.borrow();
        let shared = shared.get(real).map(Vec::as_slice);
        for name in [Some(real), shared].into_iter().flatten() {
            if !told
                .iter()
                .any(|told| below(name, told.as_bytes()).is_some())
            {
                self.untold.borrow_mut().insert(BytesPath::from_bytes(name));
            }
        }
        // The mark of the name used last is stored under the shared identity.
        shared
            .and_then(|shared| self.known.get(shared))
            .or_else(|| self.known.get(real))
    }

    /// Fails until the host has sent what it knows. Called before any change.
    pub(super) fn settle(&self) -> Result<(), Fault> {
        let paths: Vec<BytesPath> = self.untold.borrow().iter().cloned().collect();
        if paths.is_empty() {
            Ok(())
        } else {
            Err(Fault::Untold { paths })
        }
    }

    /// Returns whether a file that was seen has changed since.
    pub(super) fn is_stale(&self, real: &[u8], now: &[u8]) -> bool {
        self.last(real)
            .is_some_and(|last| *last != mark::of_text(now))
    }

    /// Turns a fault into "changed since it was seen" where that is the reason.
    pub(super) fn outdated(&self, real: &[u8], now: &[u8], fault: Fault) -> Fault {
        if self.is_stale(real, now) {
            Fault::Outdated {
                misfit: Box::new(fault),
            }
        } else {
            fault
        }
    }

    /// Refuses to remove or replace an entry that has changed since it was seen.
    pub(super) fn refuse_stale(&self, target_entry: &TargetEntry) -> Result<(), Fault> {
        let is_file = target_entry
            .stat
            .as_ref()
            .is_some_and(|stat| file_type(stat) == SFlag::S_IFREG);
        let Some(last) = self.last(&target_entry.real).filter(|_| is_file) else {
            return Ok(());
        };
        if mark_on(target_entry)? == *last {
            Ok(())
        } else {
            Err(Fault::Stale {
                path: target_entry.path.clone(),
            })
        }
    }

    /// Records the mark of a known file at its new place.
    pub(super) fn record_move(&self, target_entry: &TargetEntry) {
        if let Ok(mark) = mark_on(target_entry) {
            self.note_change(&target_entry.real, mark);
        }
    }

    /// Refuses to remove a folder where a seen file in it has changed.
    pub(super) fn refuse_stale_below(
        &self,
        workspace: &Workspace,
        folder: &[u8],
    ) -> Result<(), Fault> {
        // Asks the host about everything below.
        let _ = self.last(folder);
        let is_path = |path: &[u8]| !path.starts_with(b"\0");
        for (path, last) in self
            .known
            .iter()
            .filter(|(path, _)| is_path(path) && below(path, folder).is_some())
        {
            let shown = BytesPath::from_bytes(path.clone());
            let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
            match workspace.root.beneath().open(path, flags, Links::Follow) {
                Ok(opened) => {
                    let file = File::from(opened);
                    let stat = fstat(&file).map_err(|errno| fault(&shown, errno))?;
                    if file_type(&stat) == SFlag::S_IFREG && mark_of(&file, &shown)? != *last {
                        return Err(Fault::Stale { path: shown });
                    }
                }
                // It was removed or replaced by something else: nothing that was seen can be lost.
                Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => {}
                Err(errno) => return Err(fault(&shown, errno)),
            }
        }
        Ok(())
    }

    /// Records that the model was shown a part of a file, or all of it.
    pub(super) fn read(
        &self,
        real: BytesPath,
        mark: Mark,
        first_line: u64,
        n_lines: u64,
        more: bool,
    ) {
        self.note_shared(real.as_bytes(), &mark);
        self.note(Memo::Read {
            path: real,
            mark,
            first_line,
            n_lines,
            more,
        });
    }

    /// Records that the model wrote a whole file.
    pub(super) fn wrote(&self, real: &[u8], text: &[u8]) {
        let mark = mark::of_text(text);
        self.note_shared(real, &mark);
        self.note(Memo::Wrote {
            path: BytesPath::from_bytes(real),
            mark,
        });
    }

    /// Records a change of a part of a file. Changes made by others before stay unseen.
    pub(super) fn changed(&self, real: &[u8], before: &[u8], after: &[u8]) {
        if self.told.is_some() && !self.is_stale(real, before) {
            self.note_change(real, mark::of_text(after));
        }
    }

    /// Records the same for a file that is not in memory.
    pub(super) fn note_change(&self, real: &[u8], mark: Mark) {
        self.note_shared(real, &mark);
        self.note(Memo::Changed {
            path: BytesPath::from_bytes(real),
            mark,
        });
    }

    /// Records the mark of a file with several names under their shared identity.
    fn note_shared(&self, real: &[u8], mark: &Mark) {
        if let Some(shared) = self.shared.borrow().get(real) {
            self.note(Memo::Changed {
                path: BytesPath::from_bytes(shared.clone()),
                mark: mark.clone(),
            });
        }
    }

    /// Records that the model removed or replaced an entry, with everything below it.
    pub(super) fn forget(&self, real: &[u8]) {
        self.note(Memo::Gone {
            path: BytesPath::from_bytes(real),
        });
    }

    /// Records that a file or folder has a new name.
    pub(super) fn moved(&self, from: &[u8], to: &[u8]) {
        self.note(Memo::Moved {
            from: BytesPath::from_bytes(from),
            to: BytesPath::from_bytes(to),
        });
    }

    /// Records a memo.
    pub(super) fn note(&self, memo: Memo) {
        if self.told.is_some() {
            self.memos.borrow_mut().push(memo);
        }
    }

    /// Adds the memos to a call's output. A call that lacked knowledge has done nothing.
    pub(super) fn end(self, mut output: Output) -> Output {
        if let (Output::Fault(_), Err(untold)) = (&output, self.settle()) {
            return Output::Fault(untold);
        }
        output.set_memos(self.memos.into_inner());
        output
    }
}

fn mark_on(target_entry: &TargetEntry) -> Result<Mark, Fault> {
    let flags = OFlag::O_RDONLY
        | OFlag::O_NOFOLLOW
        | OFlag::O_NONBLOCK
        | OFlag::O_NOCTTY
        | OFlag::O_CLOEXEC;
    let opened = openat(
        &target_entry.folder,
        target_entry.name.as_slice(),
        flags,
        Mode::empty(),
    )
    .map_err(|errno| fault(&target_entry.path, errno))?;
    mark_of(&File::from(opened), &target_entry.path)
}

fn mark_of(file: &File, path: &BytesPath) -> Result<Mark, Fault> {
    let stat = fstat(file).map_err(|errno| fault(path, errno))?;
    mark::of_file(file, &stat).map_err(|error| fault(path, errno_of(&error)))
}
