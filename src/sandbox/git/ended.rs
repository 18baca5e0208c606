use std::path::PathBuf;

use super::session::with_causes;
use crate::Error;
use podbay_event::Kind;
use podbay_guest::keep::git::MOVING_OUT;
use podbay_wire::BytesPath;
use podbay_wire::keep::ImportedRepository;
use podbay_wire::keep::IndexImport;
use podbay_wire::keep::MayRun;
use podbay_wire::keep::MovedOutGit;
use podbay_wire::keep::MovedOutRepository;
use podbay_wire::keep::MovedRef;
use podbay_wire::keep::NamedList;
use podbay_wire::keep::PendingGit;
use podbay_wire::keep::SettledGit;
use podbay_wire::keep::short_ref_name;

/// How many items of one kind are listed, and how much of a path: the rest is counted.
const MOST_TOLD: usize = 20;
const MOST_OF_PATH: usize = 180;

/// What was imported from a session's git, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    pub(super) settled: SettledGit,
    /// The volume where the rest stays, and the one for nested repositories.
    pub(super) volume: String,
    pub(super) volume_of_below: String,
    /// The folder of repositories that the session created.
    pub(super) aside: PathBuf,
    /// The review that it was part of, and still is if not all was imported.
    pub(super) review: Option<String>,
}

impl Ended {
    /// Returns the end of a session that did nothing with git.
    pub(crate) fn unused() -> Self {
        Self {
            settled: SettledGit {
                is_settled: true,
                ..SettledGit::default()
            },
            ..Self::default()
        }
    }

    /// Returns the imports, one for each repository.
    pub fn taken(&self) -> impl Iterator<Item = &ImportedRepository> {
        self.settled.imported.repositories.iter().filter(|one| {
            !one.moved.is_empty()
                || one.n_more.moved > 0
                || !one.stashes.is_empty()
                || one.head.is_some()
                || one.index == IndexImport::Taken
        })
    }

    /// Removes the imported parts from those that were pending.
    pub fn remove_taken(&self, waiting: &mut PendingGit) {
        waiting.remove_taken(&self.settled.imported);
    }

    /// Returns whether nothing is pending or left anywhere.
    pub fn is_settled(&self) -> bool {
        self.settled.is_settled
    }

    /// Returns auto-run files in its commits, because of which nothing was imported.
    pub fn held(&self) -> &NamedList<MayRun> {
        &self.settled.held
    }

    /// Returns what was committed, stashed or staged and may run on the user's machine later, even
    /// without a file in the project.
    pub fn may_run(&self) -> &NamedList<MayRun> {
        &self.settled.may_run
    }

    /// Returns one with auto-run files, for tests.
    #[doc(hidden)]
    pub fn holding(may_run: NamedList<MayRun>) -> Self {
        Self {
            settled: SettledGit {
                may_run,
                ..SettledGit::default()
            },
            ..Self::default()
        }
    }

    /// Describes them, filtered; those that are only counted are always included.
    pub fn may_run_words(&self, is_wanted: impl Fn(&MayRun) -> bool) -> Vec<String> {
        let may_run = self.may_run();
        let words = |file: &MayRun| {
            format!(
                "{}: {} (it is in what was done with git)",
                file.path, file.why
            )
        };
        let mut told: Vec<String> = may_run
            .first
            .iter()
            .filter(|file| is_wanted(file))
            .map(words)
            .collect();
        told.extend(more(may_run.n.saturating_sub(may_run.first.len() as u64)));
        told
    }

    /// Returns an event about auto-run files of a session that is no longer reported otherwise.
    pub fn told_what_may_run(&self) -> Option<Kind> {
        let mut words = self.may_run_words(|_| true);
        let n_more = words.len().saturating_sub(MOST_TOLD) as u64;
        words.truncate(MOST_TOLD);
        words.extend(more(n_more));
        let message = format!(
            "what an earlier session did with git holds what may run on your machine: {}",
            words.join("; ")
        );
        (!words.is_empty()).then_some(Kind::Warning { message })
    }

    /// Describes what stays in the session's folder, with the reasons.
    pub fn not_taken(&self) -> Vec<String> {
        let mut words = self.not_taken_words(usize::MAX);
        words.extend(more(self.n_not_taken().saturating_sub(words.len() as u64)));
        words
    }

    fn not_taken_words(&self, most: usize) -> Vec<String> {
        let of = |one: &ImportedRepository| -> Vec<String> {
            let place = place(&one.path);
            one.not_imported
                .iter()
                .map(|left| format!("{}{place}: {}", left.what, left.why))
                .take(most)
                .collect()
        };
        self.settled
            .imported
            .repositories
            .iter()
            .flat_map(of)
            .take(most)
            .collect()
    }

    fn n_not_taken(&self) -> u64 {
        self.settled
            .imported
            .repositories
            .iter()
            .map(|one| one.not_imported.len() as u64 + one.n_more.not_imported)
            .sum()
    }

    /// Names the volumes in which something stays.
    fn volumes(&self) -> Vec<String> {
        let left = self
            .settled
            .imported
            .repositories
            .iter()
            .filter(|one| !one.is_whole());
        let (top, below): (Vec<_>, Vec<_>) = left.partition(|one| {
            one.path.as_bytes() == b".git" || one.path.as_bytes().starts_with(b".git/")
        });
        let named = [
            (&self.volume, top.is_empty()),
            (&self.volume_of_below, below.is_empty()),
        ];
        named
            .into_iter()
            .filter(|(_, is_empty)| !is_empty)
            .map(|(name, _)| format!("`{name}`"))
            .collect()
    }

    /// Describes the repositories that the session created, and where each was moved.
    pub fn moved_aside(&self) -> Vec<String> {
        let moved = &self.settled.aside.moved;
        let mut words: Vec<String> = moved
            .first
            .iter()
            .map(|aside| self.aside_words(aside, ToString::to_string))
            .collect();
        words.extend(more(moved.n.saturating_sub(words.len() as u64)));
        words
    }

    /// `shown` renders a path.
    fn aside_words(
        &self,
        aside: &MovedOutRepository,
        shown: impl Fn(&BytesPath) -> String,
    ) -> String {
        let mut now = match (
            &aside.kept,
            aside.left.as_ref().map(&shown),
            &aside.waits,
            &aside.problem,
        ) {
            (Some(kept), None, ..) => {
                format!("is now {}", self.aside.join(kept.as_path()).display())
            }
            (Some(kept), Some(left), ..) => {
                format!(
                    "is now {}, and what could not be removed of it is now {left}",
                    self.aside.join(kept.as_path()).display()
                )
            }
            (None, Some(left), _, None) => {
                format!("is more than is copied at once and is now {left}")
            }
            (None, Some(left), ..) => format!("could not be copied and is now {left}"),
            (None, None, Some(waits), _) => {
                format!(
                    "is now {} and waits there for the next session, as there was no more time",
                    shown(waits)
                )
            }
            (None, None, None, _) => "could not be moved".to_owned(),
        };
        if let Some(problem) = &aside.problem {
            now = format!("{now} ({problem})");
        }
        let restored = if aside.is_restored {
            ", and what stood there before is back"
        } else {
            ""
        };
        if aside.parts.is_empty() {
            return format!("{} {now}{restored}", shown(&aside.path));
        }
        let mut parts: Vec<String> = aside.parts.first.iter().map(ToString::to_string).collect();
        parts.extend(more(aside.parts.n.saturating_sub(parts.len() as u64)));
        let folder = if aside.path.is_empty() {
            "the project's own folder".to_owned()
        } else {
            shown(&aside.path)
        };
        format!(
            "what made {folder} one ({}) {now}, and all else in there stays where it is",
            parts.join(", ")
        )
    }

    /// Describes the repositories that are only counted.
    fn rest_of_aside(&self) -> Option<String> {
        let MovedOutGit {
            moved,
            n_left,
            n_waiting,
            n_stuck,
            ..
        } = &self.settled.aside;
        let n_more = moved.n.checked_sub(MOST_TOLD as u64).filter(|n| *n > 0)?;
        let n_kept = moved.n.saturating_sub(n_left + n_waiting + n_stuck);
        let places = [
            (n_kept, format!("in {}", self.aside.display())),
            (*n_left, "in the project under names that begin with `.podbay-left-`, which git does not know".to_owned()),
            (*n_waiting, "in the project under names that begin with `.podbay-aside-`, and wait there for the next session".to_owned()),
            (*n_stuck, "still where they were".to_owned()),
        ];
        let places: Vec<String> = places
            .iter()
            .filter(|(n, _)| *n > 0)
            .map(|(n, place)| format!("{n} are {place}"))
            .collect();
        Some(format!(
            "{n_more} more repositories than are named here were made in this session, or put in another's place; of all {}, {}",
            moved.n,
            places.join("; ")
        ))
    }

    /// Returns the events that report it.
    pub fn told(&self) -> Vec<Kind> {
        let mut told: Vec<Kind> = self
            .taken()
            .map(|one| taken(one, self.review.is_some()))
            .collect();
        let mut warn = |message: String| told.push(Kind::Warning { message });
        let mut not_taken = self.not_taken_words(MOST_TOLD);
        if self.n_not_taken() > 0 {
            not_taken.extend(more(
                self.n_not_taken().saturating_sub(not_taken.len() as u64),
            ));
            let volumes = self.volumes().join(" and ");
            let stays = match &self.review {
                Some(id) => format!(
                    "it waits in the volume {volumes}, and `podbay review discard {id}` drops it"
                ),
                None if self.settled.goes_on => {
                    format!(
                        "it waits in the volume {volumes}, and the next session in this project continues it"
                    )
                }
                None => format!(
                    "it stays in the volume {volumes}, and docs/guides/git.md says how to look at it and how to let it go"
                ),
            };
            warn(format!(
                "not everything that the session did with git was taken over: {}; {stays}",
                not_taken.join("; ")
            ));
        }
        let repositories = &self.settled.imported.repositories;
        let notes: Vec<String> = repositories
            .iter()
            .flat_map(|one| {
                one.notes
                    .iter()
                    .map(|note| format!("git{}: {note}", place(&one.path)))
            })
            .collect();
        let n_notes =
            notes.len() as u64 + repositories.iter().map(|one| one.n_more.notes).sum::<u64>();
        notes.into_iter().take(MOST_TOLD).for_each(&mut warn);
        if let Some(more) = more(n_notes.saturating_sub(MOST_TOLD as u64)) {
            warn(format!("git: {more} such notes"));
        }
        if self.settled.imported.n_more > 0 {
            warn(format!(
                "git: {} more repositories are not named here",
                self.settled.imported.n_more
            ));
        }
        let MovedOutGit {
            moved,
            whole,
            is_late,
            is_unsure,
            ..
        } = &self.settled.aside;
        for aside in moved.first.iter().take(MOST_TOLD) {
            let words = self.aside_words(aside, short_path);
            warn(if has_our_name(&aside.path) {
                format!(
                    "something had a name that repositories get on their way out of the project, whether it is one or not: {words}; if it is, \
                     git on your machine would run what its hooks and settings say, so look before you move it back"
                )
            } else {
                format!(
                    "a repository was made in this session, or put in another's place: {words}; git on your machine would run what its hooks \
                     and settings say, so look at them before you move it back"
                )
            });
        }
        self.rest_of_aside().into_iter().for_each(&mut warn);
        if *is_unsure {
            warn(
                "the project could not be looked through to its end when this session began: what was moved may have been there before, and is \
                 all where it was moved to"
                    .to_owned(),
            );
        }
        if *is_late {
            warn(
                "there was no time to move everything out of the project that this session made for git; the next session in it continues that"
                    .to_owned(),
            );
        }
        if !whole && (!moved.is_empty() || *is_late) {
            warn(
                "not every folder of the project was searched for repositories that this session \
                made"
                    .to_owned(),
            );
        }
        told
    }

    /// Returns an event about an import that could not be attempted.
    pub(crate) fn failed(volume: &str, error: &Error) -> Kind {
        let cause = if matches!(error, Error::Cancelled) {
            "there was no time left for it".to_owned()
        } else {
            with_causes(error)
        };
        let message = format!(
            "what the session did with git was not taken over ({cause}); the next session in this project tries it again (`{volume}`)"
        );
        Kind::Warning { message }
    }
}

/// Returns whether a path has a name that Podbay gives to moved repositories, or that a command
/// imitates.
fn has_our_name(path: &BytesPath) -> bool {
    path.as_bytes()
        .rsplit(|byte| *byte == b'/')
        .next()
        .is_some_and(|name| name.starts_with(MOVING_OUT.as_bytes()))
}

fn taken(one: &ImportedRepository, waited: bool) -> Kind {
    Kind::GitTaken {
        repository: if one.path.as_bytes() == b".git" {
            None
        } else {
            Some(one.path.to_string())
        },
        branches: one.moved.iter().map(branch).collect(),
        n_more: u32::try_from(one.n_more.moved).unwrap_or(u32::MAX),
        stashes: one.stashes.clone(),
        head: one
            .head
            .as_deref()
            .map(|name| short_ref_name(name).to_owned()),
        staged: one.index == IndexImport::Taken,
        waited,
    }
}

/// Describes a moved reference: `main 0123456..89abcde`.
fn branch(moved: &MovedRef) -> String {
    let commit = |object: &str| object.chars().take(7).collect::<String>();
    let name = moved.name.to_string();
    let from = moved
        .old
        .as_deref()
        .map_or_else(|| "new, ".to_owned(), |old| format!("{}..", commit(old)));
    format!("{} {from}{}", short_ref_name(&name), commit(&moved.new))
}

fn more(n: u64) -> Option<String> {
    (n > 0).then(|| format!("and {n} more"))
}

/// Returns a path for display: the middle of a long one is omitted, its file name kept.
fn short_path(path: &BytesPath) -> String {
    let text = path.to_string();
    let n_chars = text.chars().count();
    if n_chars <= MOST_OF_PATH {
        return text;
    }
    let head: String = text.chars().take(MOST_OF_PATH / 3).collect();
    let tail: String = text.chars().skip(n_chars - MOST_OF_PATH / 3 * 2).collect();
    format!("{head}…{tail}")
}

fn place(path: &BytesPath) -> String {
    if path.as_bytes() == b".git" {
        String::new()
    } else {
        format!(" of {path}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podbay_wire::keep::ImportedGit;
    use podbay_wire::keep::MoreImported;
    use podbay_wire::keep::NotImported;
    use podbay_wire::keep::RunTrigger;

    #[test]
    fn imported_and_remaining_git_changes_are_reported_separately() {
        let moved = |name: &str, old: Option<&str>| MovedRef {
            name: name.into(),
            old: old.map(|digit| digit.repeat(40)),
            new: "2".repeat(40),
        };
        let top = ImportedRepository {
            path: ".git".into(),
            moved: vec![
                moved("refs/heads/main", Some("1")),
                moved("refs/tags/v1", None),
            ],
            index: IndexImport::Taken,
            not_imported: vec![NotImported {
                what: "refs/heads/side".into(),
                why: "moved here meanwhile".to_owned(),
            }],
            ..ImportedRepository::default()
        };
        let module = ImportedRepository {
            path: ".git/modules/sub".into(),
            notes: vec!["x was deleted".to_owned()],
            ..ImportedRepository::default()
        };
        let mut aside = MovedOutRepository::at(&"new/.git".into());
        aside.kept = Some("s-0".into());
        let mut parts = MovedOutRepository::at(&"lib".into());
        (parts.kept, parts.parts) = (
            Some("s-1".into()),
            ["HEAD", "refs"].map(BytesPath::from).into_iter().collect(),
        );
        let ended = Ended {
            settled: SettledGit {
                imported: ImportedGit {
                    repositories: vec![module, top],
                    n_more: 0,
                },
                aside: MovedOutGit {
                    moved: [aside, parts].into_iter().collect(),
                    whole: true,
                    ..MovedOutGit::default()
                },
                is_settled: false,
                goes_on: false,
                held: NamedList::default(),
                may_run: NamedList::default(),
            },
            volume: "podbay-git-s".to_owned(),
            volume_of_below: "podbay-below-s".to_owned(),
            aside: "/state/aside/s".into(),
            review: None,
        };
        let told = ended.told();
        let Kind::GitTaken {
            repository: None,
            branches,
            staged: true,
            head: None,
            ..
        } = &told[0]
        else {
            panic!("{told:?}")
        };
        assert_eq!(branches, &["main 1111111..2222222", "tags/v1 new, 2222222"]);
        let words: Vec<&str> = told[1..]
            .iter()
            .map(|kind| {
                if let Kind::Warning { message } = kind {
                    message.as_str()
                } else {
                    ""
                }
            })
            .collect();
        assert!(
            words[0].contains(
                "refs/heads/side: moved here meanwhile; it stays in the volume `podbay-git-s`"
            ),
            "{words:?}"
        );
        assert_eq!(words[1], "git of .git/modules/sub: x was deleted");
        assert!(
            words[2].contains("new/.git is now /state/aside/s/s-0; git on your machine"),
            "{words:?}"
        );
        let going_on = Ended {
            settled: SettledGit {
                goes_on: true,
                ..ended.settled.clone()
            },
            ..ended.clone()
        };
        let Kind::Warning { message } = &going_on.told()[1] else {
            panic!("{going_on:?}")
        };
        assert!(
            message.ends_with("it waits in the volume `podbay-git-s`, and the next session in this project continues it"),
            "{message}"
        );
        let parts = "what made lib one (HEAD, refs) is now /state/aside/s/s-1, and all else in there stays where it is; git on your machine";
        assert!(words[3].contains(parts), "{words:?}");
        assert_eq!(words.len(), 4);
        check_many(&ended);
        let mut ended = ended;
        ended.settled.imported.repositories[0].path = "sub/.git".into();
        ended.settled.imported.repositories[0].not_imported = vec![NotImported {
            what: "HEAD".into(),
            why: "x".to_owned(),
        }];
        assert_eq!(ended.volumes(), ["`podbay-git-s`", "`podbay-below-s`"]);
    }

    #[test]
    fn a_path_that_imitates_a_moved_repository_is_not_called_one() {
        let said = |path: &str| {
            let mut aside = MovedOutRepository::at(&path.into());
            aside.kept = Some("s-0".into());
            let moved = [aside].into_iter().collect();
            let settled = SettledGit {
                aside: MovedOutGit {
                    moved,
                    whole: true,
                    ..MovedOutGit::default()
                },
                ..SettledGit::default()
            };
            match (Ended {
                settled,
                ..Ended::default()
            })
            .told()
            .as_slice()
            {
                [Kind::Warning { message }] => message.clone(),
                other => panic!("{other:?}"),
            }
        };
        assert!(
            said("deep/.podbay-aside-x").starts_with("something had a name that repositories get"),
            "{}",
            said("deep/.podbay-aside-x")
        );
        for path in ["lib/.git", ".podbay-aside-x/.git"] {
            assert!(
                said(path).starts_with("a repository was made in this session"),
                "{}",
                said(path)
            );
        }
    }

    /// The same for a session with thousands of each.
    #[track_caller]
    fn check_many(ended: &Ended) {
        let mut ended = ended.clone();
        let place = vec!["deep".repeat(50); 18].join("/");
        let one = |n: usize| MovedOutRepository {
            kept: Some(format!("s-{n}").as_str().into()),
            ..MovedOutRepository::at(&format!("{place}/{n}/.git").as_str().into())
        };
        let mut first: Vec<MovedOutRepository> = (0..200).map(one).collect();
        (first[0].kept, first[0].left) = (
            None,
            Some(format!("{place}/0/.podbay-left-s-0").as_str().into()),
        );
        (first[1].kept, first[1].problem) = (None, Some("not permitted".to_owned()));
        let moved = NamedList { n: 5000, first };
        ended.settled.aside = MovedOutGit {
            moved,
            n_left: 1,
            n_stuck: 1,
            n_waiting: 10,
            whole: true,
            is_late: true,
            is_unsure: true,
        };
        let top = &mut ended.settled.imported.repositories[1];
        top.not_imported = vec![top.not_imported[0].clone(); 150];
        top.notes = vec!["y was deleted".to_owned(); 150];
        top.n_more = MoreImported {
            moved: 40,
            not_imported: 800,
            notes: 50,
        };
        let told = ended.told();
        let words: Vec<&str> = told
            .iter()
            .filter_map(|kind| {
                if let Kind::Warning { message } = kind {
                    Some(message.as_str())
                } else {
                    None
                }
            })
            .collect();
        assert!(
            words.len() <= 3 * MOST_TOLD && words.concat().len() < 30_000,
            "{} lines, {} bytes",
            words.len(),
            words.concat().len()
        );
        let has = |part: &str| {
            assert!(
                words.iter().any(|line| line.contains(part)),
                "{part}: {words:#?}"
            );
        };
        has("; and 930 more; it stays in the volume `podbay-git-s`");
        has("git: and 181 more such notes");
        has("…");
        has("/0/.git is more than is copied at once and is now");
        has("/.podbay-left-s-0; git on your machine");
        has("/1/.git could not be moved (not permitted); git on your machine");
        has(
            "4980 more repositories than are named here were made in this session, or put in another's place; of all 5000, 4988 are in /state/aside/s; 1 are in the project under names that begin with `.podbay-left-`, which git does not know; 10 are in the project",
        );
        has("1 are still where they were");
        has("the next session in it continues that");
        let Kind::GitTaken {
            branches,
            n_more: 40,
            ..
        } = &told[0]
        else {
            panic!("{told:?}")
        };
        assert_eq!(branches.len(), 2);
        let (moved, not_taken) = (ended.moved_aside(), ended.not_taken());
        assert_eq!(
            (
                moved.len(),
                moved[200].as_str(),
                not_taken.len(),
                not_taken[150].as_str()
            ),
            (201, "and 4800 more", 151, "and 800 more")
        );
        assert!(
            moved[0].contains(&place),
            "all of it is in the report for scripts"
        );
    }
    #[test]
    fn auto_run_files_of_an_earlier_session_are_listed_and_bounded() {
        assert_eq!(Ended::default().told_what_may_run(), None);
        let of = |n: usize| MayRun {
            path: format!("{n}/Makefile").as_str().into(),
            why: "a build runs it".to_owned(),
            when: RunTrigger::ByItself,
        };
        let said = |n: usize| match Ended::holding((0..n).map(of).collect()).told_what_may_run() {
            Some(Kind::Warning { message }) => message,
            other => panic!("{other:?}"),
        };
        assert!(said(1).ends_with("may run on your machine: 0/Makefile: a build runs it (it is in what was done with git)"), "{}", said(1));
        assert!(
            said(30).ends_with(
                "19/Makefile: a build runs it (it is in what was done with git); and 10 more"
            ),
            "{}",
            said(30)
        );
    }
}
