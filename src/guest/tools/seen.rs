//! What the model has last seen of the files that a call changes, so that what somebody else did to
//! one since is not lost under it.
//!
//! A file counts as seen when it was read, and when one of the file tools changed it. What a
//! command changed does not: the model was not shown it. Only those changes ask that go by a line's
//! number, put a whole new text there or take the file away; a change that names the text which it
//! replaces finds it, or does not.
//!
//! A file with several names (hard links) is known by a name of its own besides, which is no path:
//! whatever name it was read by, a change by another one asks as well.
//!
//! The host remembers, and says with each call what it knows of the files in it. Where a name leads
//! to another file than it says, the call ends with the names that it must tell of, before anything
//! is done.

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
use super::save::Place;
use super::save::errno_of;
use super::spot::Spot;
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

/// What is known of files in one call, and what is to be remembered of them behind it. Paths are
/// those from the project's folder, whatever links they were named through.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// `None`: nobody remembers anything.
    told: Option<Vec<BytesPath>>,
    known: BTreeMap<Vec<u8>, Mark>,
    /// What files with several names are known by, from the name that a call gives.
    shared: RefCell<BTreeMap<Vec<u8>, Vec<u8>>>,
    untold: RefCell<BTreeSet<BytesPath>>,
    memos: RefCell<Vec<Memo>>,
}

impl Seen {
    /// Takes what the host says with a call. Who only reads changes nothing that would have to be
    /// known.
    pub(super) fn of(call: &Call) -> Self {
        let known = match call {
            Call::ReadFile(_) => Some(Known::default()),
            call => call.known().cloned(),
        };
        let Some(Known { told, files }) = known else {
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

    /// Returns where a file lies from the project's folder, and from then on knows it by its other
    /// names, too.
    pub(super) fn real(&self, root: &Root, place: &Place) -> Result<Vec<u8>, Fault> {
        let real = place.real(root)?;
        if let Some(stat) = place.stat() {
            self.share(&real, stat);
        }
        Ok(real)
    }

    /// Knows a file by its other names, too, if it has any. No path has a zero byte in it.
    pub(super) fn share(&self, real: &[u8], stat: &FileStat) {
        if stat.st_nlink > 1 && self.told.is_some() {
            let shared = format!("\0{}:{}", stat.st_dev, stat.st_ino).into_bytes();
            self.shared.borrow_mut().insert(real.to_vec(), shared);
        }
    }

    /// Returns what the file was like when it was last seen; `None`: it never was, or the host has
    /// to say so first.
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
        // By whichever name it was seen last, that is noted under the shared one.
        shared
            .and_then(|shared| self.known.get(shared))
            .or_else(|| self.known.get(real))
    }

    /// Refuses to go on before the host has said what it knows. It comes before whatever changes
    /// anything.
    pub(super) fn settle(&self) -> Result<(), Fault> {
        let paths: Vec<BytesPath> = self.untold.borrow().iter().cloned().collect();
        if paths.is_empty() {
            Ok(())
        } else {
            Err(Fault::Untold { paths })
        }
    }

    /// Returns whether a file that was seen holds something else now.
    pub(super) fn is_stale(&self, real: &[u8], now: &[u8]) -> bool {
        self.last(real)
            .is_some_and(|last| *last != mark::of_text(now))
    }

    /// Makes of what does not fit a file that has changed since it was seen.
    pub(super) fn outdated(&self, real: &[u8], now: &[u8], fault: Fault) -> Fault {
        if self.is_stale(real, now) {
            Fault::Outdated {
                misfit: Box::new(fault),
            }
        } else {
            fault
        }
    }

    /// Refuses to take away or to replace what stands on a spot where it is not what was seen.
    pub(super) fn refuse_stale(&self, spot: &Spot) -> Result<(), Fault> {
        let is_file = spot
            .stat
            .as_ref()
            .is_some_and(|stat| file_type(stat) == SFlag::S_IFREG);
        let Some(last) = self.last(&spot.real).filter(|_| is_file) else {
            return Ok(());
        };
        if mark_on(spot)? == *last {
            Ok(())
        } else {
            Err(Fault::Stale {
                path: spot.path.clone(),
            })
        }
    }

    /// Notes what a file that was known is like on its new spot.
    pub(super) fn look_again(&self, spot: &Spot) {
        if let Ok(mark) = mark_on(spot) {
            self.note_change(&spot.real, mark);
        }
    }

    /// Refuses to take away a folder where something in it that was seen is another now.
    pub(super) fn refuse_stale_below(
        &self,
        workspace: &Workspace,
        folder: &[u8],
    ) -> Result<(), Fault> {
        // Whether all below was told.
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
                // Somebody took it away, or put something else there: of what was seen nothing is
                // left to lose.
                Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => {}
                Err(errno) => return Err(fault(&shown, errno)),
            }
        }
        Ok(())
    }

    /// Notes that the model was shown a part of a file, or all of it.
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

    /// Notes that the model wrote all of a file.
    pub(super) fn wrote(&self, real: &[u8], text: &[u8]) {
        let mark = mark::of_text(text);
        self.note_shared(real, &mark);
        self.note(Memo::Wrote {
            path: BytesPath::from_bytes(real),
            mark,
        });
    }

    /// Notes what became of a file by a change of a part of it. What somebody else had done to it
    /// before stays unseen.
    pub(super) fn changed(&self, real: &[u8], before: &[u8], after: &[u8]) {
        if self.told.is_some() && !self.is_stale(real, before) {
            self.note_change(real, mark::of_text(after));
        }
    }

    /// The same, of a file that is not in memory.
    pub(super) fn note_change(&self, real: &[u8], mark: Mark) {
        self.note_shared(real, &mark);
        self.note(Memo::Changed {
            path: BytesPath::from_bytes(real),
            mark,
        });
    }

    /// Notes what a file with several names is like under the one that they share.
    fn note_shared(&self, real: &[u8], mark: &Mark) {
        if let Some(shared) = self.shared.borrow().get(real) {
            self.note(Memo::Changed {
                path: BytesPath::from_bytes(shared.clone()),
                mark: mark.clone(),
            });
        }
    }

    /// Notes that the model itself had what stood there, and below it, taken away or replaced.
    pub(super) fn forget(&self, real: &[u8]) {
        self.note(Memo::Gone {
            path: BytesPath::from_bytes(real),
        });
    }

    /// Notes that a file, or what lies below a folder, is known by another name now.
    pub(super) fn moved(&self, from: &[u8], to: &[u8]) {
        self.note(Memo::Moved {
            from: BytesPath::from_bytes(from),
            to: BytesPath::from_bytes(to),
        });
    }

    /// Notes whatever is to be remembered.
    pub(super) fn note(&self, memo: Memo) {
        if self.told.is_some() {
            self.memos.borrow_mut().push(memo);
        }
    }

    /// Puts what is to be remembered into what came of the call. What could not be known was not
    /// done.
    pub(super) fn end(self, mut output: Output) -> Output {
        if let (Output::Fault(_), Err(untold)) = (&output, self.settle()) {
            return Output::Fault(untold);
        }
        output.set_memos(self.memos.into_inner());
        output
    }
}

fn mark_on(spot: &Spot) -> Result<Mark, Fault> {
    let flags = OFlag::O_RDONLY
        | OFlag::O_NOFOLLOW
        | OFlag::O_NONBLOCK
        | OFlag::O_NOCTTY
        | OFlag::O_CLOEXEC;
    let opened = openat(&spot.folder, spot.name.as_slice(), flags, Mode::empty())
        .map_err(|errno| fault(&spot.path, errno))?;
    mark_of(&File::from(opened), &spot.path)
}

fn mark_of(file: &File, path: &BytesPath) -> Result<Mark, Fault> {
    let stat = fstat(file).map_err(|errno| fault(path, errno))?;
    mark::of_file(file, &stat).map_err(|error| fault(path, errno_of(&error)))
}
