//! Moves a session's repositories out of the project: first to names that git does not know, then
//! to the folder where they are kept.

use std::collections::BTreeMap;
use std::collections::HashSet;
use std::time::Instant;

use super::bounded_copy::BoundedCopy;
use super::bounded_copy::CopyAllowance;
use super::bounded_copy::CopyError;
use super::find::MOVING_OUT;
use super::repository_layout::is_part;
use super::untrusted_folder::FileKind;
use super::untrusted_folder::UntrustedFolder;
use super::untrusted_folder::failed;
use crate::root::join;
use crate::root::split;
use podbay_wire::BytesPath;
use podbay_wire::Fault;
use podbay_wire::keep::FoundGit;
use podbay_wire::keep::FoundRepository;
use podbay_wire::keep::GitKind;
use podbay_wire::keep::MOST_NAMED;
use podbay_wire::keep::MovedOutGit;
use podbay_wire::keep::MovedOutRepository;
use podbay_wire::keep::NamedList;

/// Prefix of an incomplete copy.
const HALF: &str = ".half-";

/// The repositories that are moved out of a project for one session.
pub(super) struct MoveOut<'a> {
    project: &'a UntrustedFolder,
    /// Whether the search at the start was complete.
    has_seen_all: bool,
    /// The state at the start: repositories by path, and names of repository parts in folders that
    /// are none.
    before: BTreeMap<&'a BytesPath, &'a GitKind>,
    parts: &'a [BytesPath],
    kept: &'a UntrustedFolder,
    id: &'a str,
    copy: BoundedCopy<'a>,
    end: Instant,
    waiting: Vec<RenamedRepository>,
    n_waiting_bytes: usize,
    /// Our own temporary names in folders that are searched again.
    own: HashSet<Vec<u8>>,
    /// What could not even be renamed.
    stuck: HashSet<BytesPath>,
    n_taken: u64,
    /// Whether the disk is full: nothing more is written then.
    is_full: bool,
    is_late: bool,
    /// Whether anything was changed.
    has_moved: bool,
    done: MovedOutGit,
    /// Entries that are reported first.
    first: Vec<MovedOutRepository>,
}

/// A repository that was renamed, so that git does not find it any more.
struct RenamedRepository {
    aside: MovedOutRepository,
    path: Vec<u8>,
    number: u64,
}

impl<'a> MoveOut<'a> {
    pub(super) fn new(
        project: &'a UntrustedFolder,
        start: &'a FoundGit,
        (kept, id): (&'a UntrustedFolder, &'a str),
        room: CopyAllowance,
        end: Instant,
    ) -> Self {
        Self {
            project,
            has_seen_all: start.whole,
            before: start
                .repositories
                .iter()
                .map(|one| (&one.path, &one.kind))
                .collect(),
            parts: &start.parts,
            kept,
            id,
            copy: BoundedCopy::new(project, kept, room, end),
            end,
            waiting: Vec::new(),
            n_waiting_bytes: 0,
            own: HashSet::new(),
            stuck: HashSet::new(),
            n_taken: 0,
            is_full: false,
            is_late: false,
            has_moved: false,
            done: MovedOutGit::default(),
            first: Vec::new(),
        }
    }

    #[cfg(test)]
    pub(super) fn end(&self) -> Instant {
        self.end
    }

    pub(super) fn n_waiting_bytes(&self) -> usize {
        self.n_waiting_bytes
    }

    /// Renames a repository if it is new. Returns the folder that was a repository, where its other
    /// files stay.
    pub(super) fn take(&mut self, one: &FoundRepository) -> Option<Vec<u8>> {
        let path = one.path.as_bytes();
        // It may have been moved with one that it lies in.
        if !self.is_new(one) || !path.is_empty() && self.project.kind(path).is_none() {
            return None;
        }
        let number = self.n_taken;
        self.n_taken += 1;
        let taken = if one.kind == GitKind::Bare {
            self.take_parts(path, number)
        } else {
            Ok(false)
        };
        let taken = match taken {
            Ok(true) => return Some(path.to_vec()),
            Ok(false) => self.take_whole(one, number),
            Err(fault) => Err(fault),
        };
        // One that cannot be moved must not keep the others in the project.
        if let Err(fault) = taken {
            self.stuck.insert(one.path.clone());
            self.tell(MovedOutRepository {
                problem: Some(fault_message(&fault)),
                ..MovedOutRepository::at(&one.path)
            });
        }
        None
    }

    /// A submodule's repository lies in one that a session could not write to, or is moved with it.
    fn is_new(&self, one: &FoundRepository) -> bool {
        match one.kind {
            GitKind::Module => false,
            _ if self.stuck.contains(&one.path) => false,
            GitKind::OnItsWay => !self.own.contains(one.path.as_bytes()),
            _ => self.before.get(&one.path) != Some(&&one.kind),
        }
    }

    fn take_whole(&mut self, one: &FoundRepository, number: u64) -> Result<(), Fault> {
        let path = one.path.as_bytes();
        let mut waiting = path.to_vec();
        if one.kind != GitKind::OnItsWay {
            waiting = free(
                self.project,
                &join(split(path).0, &self.name(MOVING_OUT, number)),
            );
            self.project
                .rename_beside(path, &waiting)
                .map_err(|errno| failed("move aside", path, &errno.into()))?;
            self.has_moved = true;
        }
        let mut aside = MovedOutRepository::at(&one.path);
        aside.problem = self.disarm(&waiting);
        if let Some(GitKind::Pointer { to }) = self.before.get(&one.path) {
            match self
                .project
                .write(path, &[b"gitdir: ", to.as_bytes(), b"\n"].concat())
            {
                Ok(()) => aside.is_restored = true,
                Err(fault) => {
                    aside.problem = Some(format!(
                        "the original `.git` file was not restored: {}",
                        fault_message(&fault)
                    ));
                }
            }
        }
        self.wait(RenamedRepository {
            aside,
            path: waiting,
            number,
        });
        Ok(())
    }

    /// Moves the parts of a repository out of a folder that holds other files; returns whether it
    /// does.
    fn take_parts(&mut self, path: &[u8], number: u64) -> Result<bool, Fault> {
        let Some(parts) = parts_alone(self.project, path, self.parts)? else {
            return Ok(false);
        };
        let waiting = free(self.project, &join(path, &self.name(MOVING_OUT, number)));
        let names: Vec<(Vec<u8>, Vec<u8>)> = parts
            .iter()
            .map(|name| (name.clone(), disarmed(name)))
            .collect();
        let gathered = self.project.move_into_new(path, split(&waiting).1, &names);
        let mut aside = MovedOutRepository::at(&BytesPath::from_bytes(path));
        if gathered.is_ok() {
            aside.parts = parts.into_iter().map(BytesPath::from_bytes).collect();
        } else {
            // What was moved before the failure is a repository of its own.
            aside = MovedOutRepository::at(&BytesPath::from_bytes(waiting.clone()));
        }
        if self.project.kind(&waiting).is_some() {
            self.has_moved = true;
            self.own.insert(waiting.clone());
            self.wait(RenamedRepository {
                aside,
                path: waiting,
                number,
            });
        }
        gathered
            .map(|()| true)
            .map_err(|errno| failed("move aside", path, &errno.into()))
    }

    /// Makes sure that what was renamed is no repository under any name: a folder without a `HEAD`
    /// is none.
    fn disarm(&self, waiting: &[u8]) -> Option<String> {
        if self.project.kind(waiting) != Some(FileKind::Folder) {
            return None;
        }
        // If it cannot be opened, nothing can be copied, which is reported then.
        let _ = self.project.unlock(waiting);
        let head = join(waiting, b"HEAD");
        self.project.kind(&head)?;
        let renamed = self.project.rename(
            &head,
            &free(self.project, &join(waiting, &disarmed(b"HEAD"))),
        );
        renamed
            .err()
            .map(|errno| fault_message(&failed("rename", &head, &errno.into())))
    }

    fn wait(&mut self, waiting: RenamedRepository) {
        self.n_waiting_bytes += waiting.path.len() + waiting.aside.path.as_bytes().len();
        self.waiting.push(waiting);
    }

    /// Copies all renamed repositories to where they are kept, as far as time and allowance last.
    /// Returns folders that stay, in which there may be more.
    pub(super) fn copy_all(&mut self) -> Vec<Vec<u8>> {
        let mut left = Vec::new();
        self.n_waiting_bytes = 0;
        for waiting in std::mem::take(&mut self.waiting) {
            let RenamedRepository {
                mut aside,
                path,
                number,
            } = waiting;
            if Instant::now() > self.end {
                self.is_late = true;
                aside.waits = Some(BytesPath::from_bytes(path));
            } else {
                self.has_moved = true;
                self.copy(&mut aside, &path, number);
                left.extend(aside.left.as_ref().map(|left| left.as_bytes().to_vec()));
            }
            self.tell(aside);
        }
        left
    }

    fn copy(&mut self, aside: &mut MovedOutRepository, path: &[u8], number: u64) {
        let place = free(self.kept, format!("{}-{number}", self.id).as_bytes());
        // An incomplete copy of a killed keeper is recognized by its name, and replaced by the next
        // copy.
        let half = format!("{HALF}{}", self.id).into_bytes();
        let _ = self.kept.remove(&half);
        let (parent, name) = split(path);
        let copied = if self.is_full {
            Err(CopyError::Fault(Fault::NoSpace {
                path: BytesPath::from_bytes(path),
            }))
        } else {
            self.copy
                .copy(parent, name, &half)
                .and_then(|n_passed_over| match self.kept.rename(&half, &place) {
                    Ok(()) => Ok(n_passed_over),
                    Err(errno) => Err(failed("rename", &half, &errno.into()).into()),
                })
        };
        let problem = match copied {
            Ok(n_passed_over) => {
                aside.n_passed_over = n_passed_over;
                aside.kept = Some(BytesPath::from_bytes(place));
                match self.project.remove_from_locked(path) {
                    Ok(()) => return,
                    Err(fault) => Some(fault_message(&fault)),
                }
            }
            Err(stop) => {
                // An incomplete copy is of no use, and may have filled the disk.
                let _ = self.kept.remove(&half);
                match stop {
                    CopyError::TooMuch => None,
                    CopyError::Late => Some("there was no time left for it".to_owned()),
                    CopyError::Fault(fault) => {
                        self.is_full |= matches!(fault, Fault::NoSpace { .. });
                        Some(fault_message(&fault))
                    }
                }
            }
        };
        aside.problem = aside.problem.take().or(problem);
        // A third name, so that it is not tried again.
        let left = free(
            self.project,
            &join(parent, &self.name(".podbay-left-", number)),
        );
        let is_renamed = self.project.rename_beside(path, &left).is_ok();
        aside.left = Some(BytesPath::from_bytes(if is_renamed {
            left
        } else {
            path.to_vec()
        }));
    }

    fn name(&self, prefix: &str, number: u64) -> Vec<u8> {
        format!("{prefix}{}-{number}", self.id).into_bytes()
    }

    fn tell(&mut self, aside: MovedOutRepository) {
        self.done.n_waiting += u64::from(aside.waits.is_some());
        self.done.n_left += u64::from(aside.left.is_some());
        self.done.n_stuck += u64::from(aside.is_stuck());
        if aside.problem.is_none() && aside.left.is_none() && aside.waits.is_none() {
            self.done.moved.add(aside);
        } else {
            self.done.moved.n += 1;
            if self.first.len() < MOST_NAMED {
                self.first.push(aside);
            }
        }
    }

    /// Returns the report. `is_over`: whether the search of the project was finished.
    pub(super) fn told(self, whole: bool, is_over: bool) -> MovedOutGit {
        let NamedList { n, first } = self.done.moved;
        let first = self
            .first
            .into_iter()
            .chain(first)
            .take(MOST_NAMED)
            .collect();
        // If nothing was done in all that time, nothing will be the next time either.
        let is_late = (self.is_late || !is_over) && self.has_moved;
        MovedOutGit {
            is_unsure: n > 0 && !self.has_seen_all,
            moved: NamedList { n, first },
            whole,
            is_late,
            ..self.done
        }
    }
}

/// Returns a fault as a message for the user.
fn fault_message(fault: &Fault) -> String {
    match fault {
        Fault::NoSpace { .. } => "there is no space left on the device".to_owned(),
        fault => fault.to_string(),
    }
}

/// Returns the parts of a repository's folder to be moved alone; `None`: the folder is moved as a
/// whole.
///
/// Other files in the folder may be the user's: those stay, and so do entries whose names existed
/// when the session began, since they alone made no repository of the folder. Without the rest they
/// do not now.
fn parts_alone(
    project: &UntrustedFolder,
    path: &[u8],
    at_start: &[BytesPath],
) -> Result<Option<Vec<Vec<u8>>>, Fault> {
    let names = project
        .names_of_locked(path)
        .map_err(|errno| failed("list", path, &errno.into()))?;
    let is_theirs = |name: &[u8]| {
        at_start
            .binary_search(&BytesPath::from_bytes(join(path, name)))
            .is_ok()
    };
    let n_all = names.len();
    let mut parts: Vec<Vec<u8>> = names
        .into_iter()
        .map(|(name, _)| name)
        .filter(|name| is_part(name) && !is_theirs(name))
        .collect();
    // The project's own folder always stays. What git looks for first is moved first.
    parts.sort_by_key(|name| (!is_head(name), !name.eq_ignore_ascii_case(b"commondir")));
    Ok((path.is_empty() || parts.len() < n_all).then_some(parts))
}

/// A folder without a file of this name is no repository.
fn is_head(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"HEAD")
}

/// Returns a name that git does not look for.
fn disarmed(name: &[u8]) -> Vec<u8> {
    if is_head(name) {
        [name, b".aside"].concat()
    } else {
        name.to_vec()
    }
}

/// Returns an unused name.
fn free(folder: &UntrustedFolder, wanted: &[u8]) -> Vec<u8> {
    let mut name = wanted.to_vec();
    let mut n_tried = 0;
    while folder.kind(&name).is_some() {
        n_tried += 1;
        name = [wanted, format!("-{n_tried}").as_bytes()].concat();
    }
    name
}
