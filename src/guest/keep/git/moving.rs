//! Repositories of a session on their way out of the project: first under names that git does not
//! know, then to where they are kept.

use std::collections::BTreeMap;
use std::collections::HashSet;
use std::time::Instant;

use super::copy::Copy;
use super::copy::Room;
use super::copy::Stop;
use super::find::ON_ITS_WAY;
use super::folder::Folder;
use super::folder::Kind;
use super::folder::failed;
use super::repository::is_part;
use crate::root::join;
use crate::root::split;
use podbay_wire::BytesPath;
use podbay_wire::Fault;
use podbay_wire::keep::Aside;
use podbay_wire::keep::AsideGit;
use podbay_wire::keep::FoundGit;
use podbay_wire::keep::FoundRepository;
use podbay_wire::keep::GitKind;
use podbay_wire::keep::MOST_NAMED;
use podbay_wire::keep::Named;

/// What begins the name of something that is not copied to its end.
const HALF: &str = ".half-";

/// What is taken out of a project for one session.
pub(super) struct Moving<'a> {
    project: &'a Folder,
    /// Whether all was seen that there was at the start.
    has_seen_all: bool,
    /// What there was: repositories by their place, and names that git knows in folders that are
    /// none.
    before: BTreeMap<&'a BytesPath, &'a GitKind>,
    parts: &'a [BytesPath],
    kept: &'a Folder,
    id: &'a str,
    copy: Copy<'a>,
    end: Instant,
    waiting: Vec<Waiting>,
    n_waiting_bytes: usize,
    /// Names that we gave in folders that are looked into once more.
    own: HashSet<Vec<u8>>,
    /// What could not even be renamed.
    stuck: HashSet<BytesPath>,
    n_taken: u64,
    /// Whether the disk is full: nothing more is written there.
    is_full: bool,
    is_late: bool,
    /// Whether anything is otherwise than it was.
    has_moved: bool,
    done: AsideGit,
    /// What a person has to know of before all others.
    first: Vec<Aside>,
}

/// Something that git does not know any more.
struct Waiting {
    aside: Aside,
    path: Vec<u8>,
    number: u64,
}

impl<'a> Moving<'a> {
    pub(super) fn new(
        project: &'a Folder,
        start: &'a FoundGit,
        (kept, id): (&'a Folder, &'a str),
        room: Room,
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
            copy: Copy::new(project, kept, room, end),
            end,
            waiting: Vec::new(),
            n_waiting_bytes: 0,
            own: HashSet::new(),
            stuck: HashSet::new(),
            n_taken: 0,
            is_full: false,
            is_late: false,
            has_moved: false,
            done: AsideGit::default(),
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

    /// Puts something out of the way of git if it is new. Returns the folder that was a repository,
    /// where the rest of that stays.
    pub(super) fn take(&mut self, one: &FoundRepository) -> Option<Vec<u8>> {
        let path = one.path.as_bytes();
        // It may have gone along with one that it lies in.
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
        // One that cannot be moved must not keep the others in.
        if let Err(fault) = taken {
            self.stuck.insert(one.path.clone());
            self.tell(Aside {
                problem: Some(in_words(&fault)),
                ..Aside::at(&one.path)
            });
        }
        None
    }

    /// A submodule's repository lies in one that a session could not write to, or goes along with
    /// it.
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
                &join(split(path).0, &self.name(ON_ITS_WAY, number)),
            );
            self.project
                .rename_beside(path, &waiting)
                .map_err(|errno| failed("move aside", path, &errno.into()))?;
            self.has_moved = true;
        }
        let mut aside = Aside::at(&one.path);
        aside.problem = self.disarm(&waiting);
        if let Some(GitKind::Pointer { to }) = self.before.get(&one.path) {
            match self
                .project
                .write(path, &[b"gitdir: ", to.as_bytes(), b"\n"].concat())
            {
                Ok(()) => aside.is_restored = true,
                Err(fault) => {
                    aside.problem = Some(format!(
                        "what stood there before is not back: {}",
                        in_words(&fault)
                    ));
                }
            }
        }
        self.wait(Waiting {
            aside,
            path: waiting,
            number,
        });
        Ok(())
    }

    /// Takes out of a folder that is a repository what makes it one, if there is anything else in
    /// it; returns whether there is.
    fn take_parts(&mut self, path: &[u8], number: u64) -> Result<bool, Fault> {
        let Some(parts) = parts_alone(self.project, path, self.parts)? else {
            return Ok(false);
        };
        let waiting = free(self.project, &join(path, &self.name(ON_ITS_WAY, number)));
        let names: Vec<(Vec<u8>, Vec<u8>)> = parts
            .iter()
            .map(|name| (name.clone(), disarmed(name)))
            .collect();
        let gathered = self.project.gather(path, split(&waiting).1, &names);
        let mut aside = Aside::at(&BytesPath::from_bytes(path));
        if gathered.is_ok() {
            aside.parts = parts.into_iter().map(BytesPath::from_bytes).collect();
        } else {
            // What was moved before that failed goes by its own.
            aside = Aside::at(&BytesPath::from_bytes(waiting.clone()));
        }
        if self.project.kind(&waiting).is_some() {
            self.has_moved = true;
            self.own.insert(waiting.clone());
            self.wait(Waiting {
                aside,
                path: waiting,
                number,
            });
        }
        gathered
            .map(|()| true)
            .map_err(|errno| failed("move aside", path, &errno.into()))
    }

    /// Sees to it that what was renamed is no repository, whatever its name is: a folder without a
    /// `HEAD` is none.
    fn disarm(&self, waiting: &[u8]) -> Option<String> {
        if self.project.kind(waiting) != Some(Kind::Folder) {
            return None;
        }
        // Where it cannot be opened nothing can be copied, and that is said then.
        let _ = self.project.unlock(waiting);
        let head = join(waiting, b"HEAD");
        self.project.kind(&head)?;
        let renamed = self.project.rename(
            &head,
            &free(self.project, &join(waiting, &disarmed(b"HEAD"))),
        );
        renamed
            .err()
            .map(|errno| in_words(&failed("rename", &head, &errno.into())))
    }

    fn wait(&mut self, waiting: Waiting) {
        self.n_waiting_bytes += waiting.path.len() + waiting.aside.path.as_bytes().len();
        self.waiting.push(waiting);
    }

    /// Copies all that waits to where it is kept, as long as there is time and room. Returns
    /// folders that stay, in which there may be more.
    pub(super) fn copy_all(&mut self) -> Vec<Vec<u8>> {
        let mut left = Vec::new();
        self.n_waiting_bytes = 0;
        for waiting in std::mem::take(&mut self.waiting) {
            let Waiting {
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

    fn copy(&mut self, aside: &mut Aside, path: &[u8], number: u64) {
        let place = free(self.kept, format!("{}-{number}", self.id).as_bytes());
        // What a keeper leaves that was killed meanwhile is not taken for all of it, and goes with
        // the next copy.
        let half = format!("{HALF}{}", self.id).into_bytes();
        let _ = self.kept.remove(&half);
        let (parent, name) = split(path);
        let copied = if self.is_full {
            Err(Stop::Fault(Fault::NoSpace {
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
                    Err(fault) => Some(in_words(&fault)),
                }
            }
            Err(stop) => {
                // Half of it is of no use to anybody, and may have taken the last room on the disk.
                let _ = self.kept.remove(&half);
                match stop {
                    Stop::TooMuch => None,
                    Stop::Late => Some("there was no more time for it".to_owned()),
                    Stop::Fault(fault) => {
                        self.is_full |= matches!(fault, Fault::NoSpace { .. });
                        Some(in_words(&fault))
                    }
                }
            }
        };
        aside.problem = aside.problem.take().or(problem);
        // Under yet another name, so that nobody tries again.
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

    fn tell(&mut self, aside: Aside) {
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

    /// Returns what came of it. `is_over`: whether there was time for the whole project.
    pub(super) fn told(self, whole: bool, is_over: bool) -> AsideGit {
        let Named { n, first } = self.done.moved;
        let first = self
            .first
            .into_iter()
            .chain(first)
            .take(MOST_NAMED)
            .collect();
        // Where nothing could be done in all that time there will be nothing the next time either.
        let is_late = (self.is_late || !is_over) && self.has_moved;
        AsideGit {
            is_unsure: n > 0 && !self.has_seen_all,
            moved: Named { n, first },
            whole,
            is_late,
            ..self.done
        }
    }
}

/// Says what is wrong to a person.
fn in_words(fault: &Fault) -> String {
    match fault {
        Fault::NoSpace { .. } => "there is no space left on the device".to_owned(),
        fault => fault.to_string(),
    }
}

/// Returns what alone is moved of a folder that is a repository; `None`: it is, with all that is in
/// it.
///
/// Where there is anything else in the folder it may be the person's: it stays, and so does what
/// had its name when the session began, since that alone made no repository of the folder. Without
/// the rest it makes none now.
fn parts_alone(
    project: &Folder,
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
    // The project's own folder stays in any case. What git looks for first goes first.
    parts.sort_by_key(|name| (!is_head(name), !name.eq_ignore_ascii_case(b"commondir")));
    Ok((path.is_empty() || parts.len() < n_all).then_some(parts))
}

/// A folder without a file of this name is no repository.
fn is_head(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"HEAD")
}

/// Returns a name under which git does not look for it.
fn disarmed(name: &[u8]) -> Vec<u8> {
    if is_head(name) {
        [name, b".aside"].concat()
    } else {
        name.to_vec()
    }
}

/// Returns a name that nothing has.
fn free(folder: &Folder, wanted: &[u8]) -> Vec<u8> {
    let mut name = wanted.to_vec();
    let mut n_tried = 0;
    while folder.kind(&name).is_some() {
        n_tried += 1;
        name = [wanted, format!("-{n_tried}").as_bytes()].concat();
    }
    name
}
