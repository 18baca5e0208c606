//! Changes to several files, all or none.
//!
//! Everything is read and changed in memory first. Then each new text is written beside its file,
//! so that a full disk shows before anything is changed; then each file is exchanged for its new
//! version, which keeps the old one under the other name until all are done. If one exchange fails,
//! those before it are rolled back. A call that is cancelled ends before the first exchange or not
//! at all.

use std::collections::hash_map::RandomState;
use std::fs::File;
use std::hash::BuildHasher;
use std::io::Read;
use std::io::Write;
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::fcntl::OFlag;
use nix::fcntl::RenameFlags;
use nix::fcntl::openat;
use nix::fcntl::renameat;
use nix::fcntl::renameat2;
use nix::sys::stat::FileStat;
use nix::sys::stat::Mode;
use nix::sys::stat::fchmod;
use nix::sys::stat::fstat;
use nix::sys::stat::fstatat;
use nix::unistd::Gid;
use nix::unistd::UnlinkatFlags;
use nix::unistd::fchown;
use nix::unistd::unlinkat;

use super::Workspace;
use super::edit_file::MAX_BYTES;
use super::edit_file::check_text;
use super::edit_file::too_large;
use super::edit_report::count_lines;
use super::encoded_text::EncodedText;
use super::invalid;
use super::mark;
use super::save::Parents;
use super::save::TargetFile;
use super::save::errno_of;
use super::save::is_same;
use super::seen::SeenFiles;
use super::stop::Stop;
use super::target_entry::refused;
use crate::root::fault;
use podbay_wire::BytesPath;
use podbay_wire::Fault;

/// Most files of one call; each keeps its folder open.
const MAX_FILES: usize = 500;

/// Most bytes of text in memory at once.
const MAX_TOTAL: u64 = 64 * 1024 * 1024;

/// Files that change together.
#[derive(Debug, Default)]
pub(super) struct Transaction {
    files: Vec<Change>,
    bytes: u64,
}

/// A file of the transaction, as resolved by one of its names.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenedFile {
    /// Its index among the changes.
    pub(super) at: usize,
    /// Whether this name is a symbolic link. Another name of the same file may not be one.
    pub(super) by_link: bool,
}

/// One file, before and after.
#[derive(Debug)]
struct Change {
    place: TargetFile,
    /// Its path with links resolved: two names of one file are one change.
    real: Vec<u8>,
    shown: BytesPath,
    before: Option<(Vec<u8>, FileStat)>,
    now: Option<Vec<u8>>,
    /// Permissions of a new file that takes the place of another.
    mode: Option<u32>,
    /// A name beside the file: first of the new text, after the exchange of the old one.
    beside: Option<String>,
    /// The file that this one takes the place of.
    from: Option<usize>,
}

impl Transaction {
    /// Adds a file with its content; a file that was added before, by any name, is the same change.
    pub(super) fn open(
        &mut self,
        workspace: &Workspace,
        seen: &SeenFiles,
        path: &BytesPath,
        protected: bool,
        parents: Parents,
        must_be_text: bool,
    ) -> Result<OpenedFile, Fault> {
        let root = &workspace.root;
        let place = TargetFile::find(root, path, protected, parents)?;
        let real = seen.real(root, &place)?;
        let by_link = place.linked;
        if let Some(at) = self.files.iter().position(|file| file.real == real) {
            return Ok(OpenedFile { at, by_link });
        }
        if self.files.len() == MAX_FILES {
            return Err(invalid(
                "path",
                format!("is one file too many: {MAX_FILES} can be changed in one call"),
            ));
        }
        // Asks the host for what is known of it, which is needed at the end.
        let _ = seen.last(&real);
        let before = if place.exists() {
            Some(read(&place, path, must_be_text)?)
        } else {
            None
        };
        self.bytes += before.as_ref().map_or(0, |(text, _)| text.len() as u64);
        if self.bytes > MAX_TOTAL {
            return Err(Fault::TooLarge {
                path: path.clone(),
                bytes: self.bytes,
                limit: MAX_TOTAL,
            });
        }
        let now = before.as_ref().map(|(text, _)| text.clone());
        self.files.push(Change {
            place,
            real,
            shown: root.relative(path)?,
            before,
            now,
            mode: None,
            beside: None,
            from: None,
        });
        Ok(OpenedFile {
            at: self.files.len() - 1,
            by_link,
        })
    }

    /// Returns whether an added file has this path.
    pub(super) fn is_at(&self, at: usize, real: &[u8]) -> bool {
        self.files[at].real == real
    }

    /// Returns a file's current text, if it exists.
    pub(super) fn text(&self, at: usize) -> Option<&Vec<u8>> {
        self.files[at].now.as_ref()
    }

    pub(super) fn set(&mut self, at: usize, text: Option<Vec<u8>>) {
        self.files[at].now = text;
    }

    /// Returns whether a file existed before.
    pub(super) fn was_there(&self, at: usize) -> bool {
        self.files[at].before.is_some()
    }

    /// Gives a new file the permissions of another.
    pub(super) fn take_mode(&mut self, at: usize, from: usize) {
        self.files[at].mode = self.files[from]
            .before
            .as_ref()
            .map(|(_, stat)| stat.st_mode & 0o777);
        self.files[at].from = Some(from);
    }

    pub(super) fn shown(&self, at: usize) -> &BytesPath {
        &self.files[at].shown
    }

    /// Returns whether a file had other names as well (hard links).
    pub(super) fn has_other_names(&self, at: usize) -> bool {
        self.files[at]
            .before
            .as_ref()
            .is_some_and(|(_, stat)| stat.st_nlink > 1)
    }

    pub(super) fn has_changed(&self, at: usize) -> bool {
        let file = &self.files[at];
        file.before.as_ref().map(|(text, _)| text) != file.now.as_ref()
    }

    /// Returns how many lines of a file are added, and how many removed.
    pub(super) fn lines(&self, at: usize) -> (u64, u64) {
        let file = &self.files[at];
        let before = EncodedText::of(file.before.as_ref().map_or(&[][..], |(text, _)| text));
        let now = EncodedText::of(file.now.as_deref().unwrap_or_default());
        count_lines(before.text.as_bytes(), now.text.as_bytes())
    }

    /// Returns whether a file has changed since the model saw it.
    pub(super) fn is_stale(&self, at: usize, seen: &SeenFiles) -> bool {
        let file = &self.files[at];
        file.before
            .as_ref()
            .is_some_and(|(text, _)| seen.is_stale(&file.real, text))
    }

    /// Turns a fault into "changed since it was seen" where that is the reason.
    pub(super) fn outdated(&self, at: usize, seen: &SeenFiles, fault: Fault) -> Fault {
        let file = &self.files[at];
        match &file.before {
            Some((text, _)) => seen.outdated(&file.real, text, fault),
            None => fault,
        }
    }

    /// Makes all changes, or none.
    pub(super) fn commit(mut self, seen: &SeenFiles, stop: &Stop<'_>) -> Result<(), Fault> {
        seen.settle()?;
        for file in &mut self.files {
            file.place.end_check()?;
            file.prepare()?;
            if stop.is_cancelled() {
                return Err(Fault::Cancelled);
            }
        }
        for at in 0..self.files.len() {
            if let Err(fault) = self.files[at].make() {
                let fault = self.by_two_names(at).unwrap_or(fault);
                return Err(self.roll_back(at, fault));
            }
        }
        for file in &mut self.files {
            file.clear();
            file.place.made.keep();
        }
        self.note(seen);
        Ok(())
    }

    /// The fault for a file that was already changed by another of its names.
    fn by_two_names(&self, at: usize) -> Option<Fault> {
        let id = |file: &Change| {
            file.before
                .as_ref()
                .map(|(_, stat)| (stat.st_dev, stat.st_ino))
        };
        let file = &self.files[at];
        let twin = self.files[..at]
            .iter()
            .find(|twin| id(twin).is_some() && id(twin) == id(file))?;
        let problem = format!(
            "is the same file as {} (a hard link); name it by one of the two alone, wherever it is to change",
            twin.shown
        );
        Some(refused(&file.shown, problem))
    }

    /// Records what the files are now. One that takes another's place counts as seen as that one
    /// did.
    fn note(&self, seen: &SeenFiles) {
        let source = |file: &Change| {
            file.from.and_then(|from| {
                Some((&self.files[from].real, &self.files[from].before.as_ref()?.0))
            })
        };
        for file in &self.files {
            if let Some((from, _)) = source(file) {
                seen.moved(from, &file.real);
            }
        }
        for gone in self
            .files
            .iter()
            .filter(|file| file.before.is_some() && file.now.is_none())
        {
            seen.forget(&gone.real);
        }
        for file in &self.files {
            match (&file.before, &file.now, source(file)) {
                (None, Some(now), Some((from, before))) if !seen.is_stale(from, before) => {
                    seen.note_change(&file.real, mark::of_text(now));
                }
                (None, Some(now), None) => seen.wrote(&file.real, now),
                (Some((before, _)), Some(now), _) if before != now => {
                    seen.changed(&file.real, before, now);
                }
                _ => {}
            }
        }
    }

    fn roll_back(&mut self, n_made: usize, fault: Fault) -> Fault {
        let mut left = Vec::new();
        for file in self.files[..n_made].iter_mut().rev() {
            if file.restore().is_err() {
                left.push(file.shown.to_string());
            }
        }
        if left.is_empty() {
            return fault;
        }
        Fault::Io {
            doing: "change all files or none".into(),
            problem: format!(
                "{fault}; these have changed all the same: {}; read them again, then change them back, or make the rest of the change by itself",
                left.join(", ")
            ),
        }
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        // First the texts written beside files, then the folders created for them, the innermost
        // first.
        self.files.iter_mut().for_each(Change::clear);
        while self.files.pop().is_some() {}
    }
}

impl Change {
    /// Writes the new text beside the file, where the two can be exchanged.
    fn prepare(&mut self) -> Result<(), Fault> {
        match (&self.before, &self.now) {
            (None, Some(text)) => {
                let name = self.new_name();
                self.beside = Some(name);
                let mode = Mode::from_bits_truncate(self.mode.unwrap_or(0o666));
                self.write_beside(text, mode)
                    .map_err(|errno| self.failed(errno))?;
            }
            (Some(_), None) => self.place.check_writable()?,
            (Some((before, stat)), Some(text)) if before != text => {
                self.place.check_writable()?;
                match self.place.writable(OFlag::empty()) {
                    // A running program cannot be written to but can be replaced.
                    Ok(_) | Err(Errno::ETXTBSY) => {}
                    Err(errno) => return Err(self.failed(errno)),
                }
                if stat.st_nlink == 1 {
                    let stat = *stat;
                    self.beside = Some(self.new_name());
                    self.stand_in(&stat)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Writes the new text into a file like the old one; where that is not possible, the old one
    /// will be written in place.
    fn stand_in(&mut self, old: &FileStat) -> Result<(), Fault> {
        let text = self.now.as_deref().unwrap_or_default();
        let made = self
            .write_beside(text, Mode::from_bits_truncate(0o600))
            .and_then(|file| {
                let new = fstat(&file)?;
                if new.st_uid != old.st_uid {
                    return Err(Errno::EPERM);
                }
                if new.st_gid != old.st_gid {
                    fchown(&file, None, Some(Gid::from_raw(old.st_gid)))?;
                }
                fchmod(&file, Mode::from_bits_truncate(old.st_mode & 0o1777))
            });
        match made {
            Ok(()) => Ok(()),
            Err(errno @ (Errno::ENOSPC | Errno::EDQUOT | Errno::EFBIG)) => Err(self.failed(errno)),
            Err(_) => {
                self.clear();
                Ok(())
            }
        }
    }

    fn make(&mut self) -> Result<(), Fault> {
        match (&self.before, &self.now) {
            (None, Some(_)) => {
                let beside = self.beside.take().expect("it was prepared");
                let made = self.give_name(&beside);
                made.map_err(|errno| {
                    self.beside = Some(beside);
                    if errno == Errno::EEXIST {
                        Fault::Changed {
                            path: self.shown.clone(),
                        }
                    } else {
                        self.failed(errno)
                    }
                })
            }
            (Some((_, stat)), None) => {
                self.check_same(stat)?;
                let beside = self.new_name();
                let folder = self.place.folder.as_fd();
                renameat(folder, self.place.name.as_slice(), folder, beside.as_str())
                    .map_err(|errno| self.failed(errno))?;
                self.beside = Some(beside);
                Ok(())
            }
            (Some((before, stat)), Some(text)) if before != text => {
                self.check_same(stat)?;
                if let Some(beside) = self.beside.clone() {
                    match self.exchange(&beside) {
                        // A mount point can be written to but not replaced.
                        Err(Errno::EBUSY | Errno::EXDEV) => self.clear(),
                        other => return other.map_err(|errno| self.failed(errno)),
                    }
                }
                let (before, stat) = self.before.as_ref().expect("it was there");
                let text = self.now.as_deref().unwrap_or_default();
                self.place
                    .write_in_place(text, Some(stat))
                    .inspect_err(|_| {
                        let _ = self.place.write_in_place(before, None);
                    })
            }
            _ => Ok(()),
        }
    }

    /// Restores what was there.
    fn restore(&mut self) -> Result<(), Fault> {
        let folder = self.place.folder.as_fd();
        match (&self.before, &self.now, &self.beside) {
            (None, Some(_), _) => unlinkat(
                folder,
                self.place.name.as_slice(),
                UnlinkatFlags::NoRemoveDir,
            )
            .map_err(|errno| self.failed(errno)),
            // Under the other name is the old file itself.
            (Some(_), _, Some(beside)) => {
                renameat(folder, beside.as_str(), folder, self.place.name.as_slice())
                    .map_err(|errno| self.failed(errno))?;
                self.beside = None;
                Ok(())
            }
            (Some((before, _)), Some(text), None) if before != text => {
                self.place.write_in_place(before, None)
            }
            _ => Ok(()),
        }
    }

    fn exchange(&mut self, beside: &str) -> Result<(), Errno> {
        let folder = self.place.folder.as_fd();
        let name = self.place.name.as_slice();
        match renameat2(folder, beside, folder, name, RenameFlags::RENAME_EXCHANGE) {
            // Some file systems know no rename flags: for a moment nothing has the name.
            Err(Errno::EINVAL | Errno::ENOSYS) => {
                let old = self.new_name();
                renameat(folder, name, folder, old.as_str())?;
                if let Err(errno) = renameat(folder, beside, folder, name) {
                    let _ = renameat(folder, old.as_str(), folder, name);
                    return Err(errno);
                }
                self.beside = Some(old);
                Ok(())
            }
            other => other,
        }
    }

    fn give_name(&self, beside: &str) -> Result<(), Errno> {
        let folder = self.place.folder.as_fd();
        let name = self.place.name.as_slice();
        match renameat2(folder, beside, folder, name, RenameFlags::RENAME_NOREPLACE) {
            Err(Errno::EINVAL | Errno::ENOSYS) => renameat(folder, beside, folder, name),
            other => other,
        }
    }

    fn check_same(&self, read: &FileStat) -> Result<(), Fault> {
        let now = fstatat(
            &self.place.folder,
            self.place.name.as_slice(),
            AtFlags::AT_SYMLINK_NOFOLLOW,
        );
        if now.is_ok_and(|now| is_same(read, &now)) {
            Ok(())
        } else {
            Err(Fault::Changed {
                path: self.shown.clone(),
            })
        }
    }

    fn write_beside(&self, text: &[u8], mode: Mode) -> Result<File, Errno> {
        let flags =
            OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let name = self.beside.as_deref().expect("a name was chosen");
        let mut file = File::from(openat(&self.place.folder, name, flags, mode)?);
        file.write_all(text).map_err(|error| errno_of(&error))?;
        Ok(file)
    }

    /// `O_EXCL` protects; the random name avoids collisions.
    fn new_name(&self) -> String {
        format!(
            ".podbay-{:016x}.tmp",
            RandomState::new().hash_one(&self.place.name)
        )
    }

    /// Removes the file beside: an unused new text, or the replaced old one.
    fn clear(&mut self) {
        if let Some(beside) = self.beside.take() {
            let _ = unlinkat(
                &self.place.folder,
                beside.as_str(),
                UnlinkatFlags::NoRemoveDir,
            );
        }
    }

    fn failed(&self, errno: Errno) -> Fault {
        fault(&self.shown, errno)
    }
}

/// Reads a file that is to be changed, which must be text unless it is only removed or renamed.
pub(super) fn read(
    place: &TargetFile,
    path: &BytesPath,
    must_be_text: bool,
) -> Result<(Vec<u8>, FileStat), Fault> {
    let (file, stat) = place.open()?;
    let mut text = Vec::new();
    file.take(MAX_BYTES + 1)
        .read_to_end(&mut text)
        .map_err(|error| Fault::Io {
            doing: format!("read {path}"),
            problem: error.to_string(),
        })?;
    if text.len() as u64 > MAX_BYTES {
        return Err(too_large(
            path,
            (stat.st_size as u64).max(text.len() as u64),
        ));
    }
    if must_be_text {
        check_text(path, &text)?;
    }
    Ok((text, stat))
}
