use std::path::PathBuf;

use super::session::with_causes;
use crate::event::Kind;
use crate::sandbox::Error;
use crate::wire::BytesPath;
use crate::wire::keep::Aside;
use crate::wire::keep::ImportedRepository;
use crate::wire::keep::IndexImport;
use crate::wire::keep::MayRun;
use crate::wire::keep::MovedRef;
use crate::wire::keep::Named;
use crate::wire::keep::SettledGit;
use crate::wire::keep::WaitingGit;
use crate::wire::keep::short;

/// What of a session's git is the person's now, and what is not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    pub(super) settled: SettledGit,
    /// Where what was not taken over stays, and where if it is of a repository below the top.
    pub(super) volume: String,
    pub(super) volume_of_below: String,
    /// Where repositories are that the session made.
    pub(super) aside: PathBuf,
    /// The review that it waited in, and waits in still where not all was taken over.
    pub(super) review: Option<String>,
}

impl Ended {
    /// What was taken over, one for each repository of which something was.
    pub fn taken(&self) -> impl Iterator<Item = &ImportedRepository> {
        self.settled
            .imported
            .repositories
            .iter()
            .filter(|one| !one.moved.is_empty() || !one.stashes.is_empty() || one.head.is_some() || one.index == IndexImport::Taken)
    }

    /// Leaves out of what waited before what is the person's now.
    pub fn remove_taken(&self, waiting: &mut WaitingGit) {
        waiting.remove_taken(&self.settled.imported);
    }

    /// Whether nothing of it waits or stays anywhere else.
    pub fn is_settled(&self) -> bool {
        self.settled.is_settled
    }

    /// What its commits hold that may run on the person's machine, because of which nothing was taken over.
    pub fn held(&self) -> &Named<MayRun> {
        &self.settled.held
    }

    /// What stays in the session's folder, with why.
    pub fn not_taken(&self) -> Vec<String> {
        let of = |one: &ImportedRepository| -> Vec<String> {
            let place = place(&one.path);
            one.not_imported.iter().map(|left| format!("{}{place}: {}", left.what, left.why)).collect()
        };
        self.settled.imported.repositories.iter().flat_map(of).collect()
    }

    /// Names the volumes in which something stays.
    fn volumes(&self) -> Vec<String> {
        let left = self.settled.imported.repositories.iter().filter(|one| !one.not_imported.is_empty());
        let (top, below): (Vec<_>, Vec<_>) =
            left.partition(|one| one.path.as_bytes() == b".git" || one.path.as_bytes().starts_with(b".git/"));
        let named = [(&self.volume, top.is_empty()), (&self.volume_of_below, below.is_empty())];
        named.into_iter().filter(|(_, is_empty)| !is_empty).map(|(name, _)| format!("`{name}`")).collect()
    }

    /// Where repositories were that the session made, and where each is now.
    pub fn moved_aside(&self) -> Vec<String> {
        self.settled.aside.moved.iter().map(|aside| self.aside_words(aside)).collect()
    }

    fn aside_words(&self, aside: &Aside) -> String {
        let now = match (&aside.kept, &aside.left, &aside.problem) {
            (_, _, Some(problem)) => format!("could not be moved: {problem}"),
            (Some(kept), ..) => format!("is now {}", self.aside.join(kept.as_path()).display()),
            (None, Some(left), _) => format!("is too large to be copied and is now {left}"),
            (None, None, None) => "is gone".to_owned(),
        };
        let restored = if aside.is_restored { ", and what stood there before is back" } else { "" };
        if aside.parts.is_empty() {
            return format!("{} {now}{restored}", aside.path);
        }
        let parts = aside.parts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let folder = if aside.path.is_empty() { "the project's own folder".to_owned() } else { aside.path.to_string() };
        format!("what made {folder} one ({parts}) {now}, and all else in there stays where it is")
    }

    /// Tells it, as events.
    pub fn told(&self) -> Vec<Kind> {
        let mut told: Vec<Kind> = self.taken().map(taken).collect();
        let warn = |message: String| Kind::Warning { message };
        let not_taken = self.not_taken();
        if !not_taken.is_empty() {
            let volumes = self.volumes().join(" and ");
            let stays = match &self.review {
                Some(id) => format!("it waits in the volume {volumes}, and `podbay review discard {id}` drops it"),
                None => format!("it stays in the volume {volumes}, and docs/guides/git.md says how to look at it and how to let it go"),
            };
            told.push(warn(format!("not everything that the session did with git was taken over: {}; {stays}", not_taken.join("; "))));
        }
        told.extend(self.settled.imported.repositories.iter().flat_map(|one| {
            let place = place(&one.path);
            one.notes.iter().map(move |note| Kind::Warning { message: format!("git{place}: {note}") })
        }));
        told.extend(self.moved_aside().into_iter().map(|words| {
            warn(format!(
                "a repository was made in this session, or put in another's place: {words}; git on your machine would run what its hooks and \
                 settings say, so look at them before you move it back"
            ))
        }));
        if !self.settled.aside.whole && !self.settled.aside.moved.is_empty() {
            told.push(warn("not every folder of the project was looked into for repositories that this session made".to_owned()));
        }
        told
    }

    /// Says that it could not even be tried.
    pub(in crate::sandbox) fn failed(volume: &str, error: &Error) -> Kind {
        let cause = if matches!(error, Error::Cancelled) { "there was no more time for it".to_owned() } else { with_causes(error) };
        let message = format!(
            "what the session did with git was not taken over ({cause}); the next session in this project tries it again (`{volume}`)"
        );
        Kind::Warning { message }
    }
}

fn taken(one: &ImportedRepository) -> Kind {
    Kind::GitTaken {
        repository: if one.path.as_bytes() == b".git" { None } else { Some(one.path.to_string()) },
        branches: one.moved.iter().map(branch).collect(),
        stashes: one.stashes.clone(),
        head: one.head.as_deref().map(|name| short(name).to_owned()),
        staged: one.index == IndexImport::Taken,
    }
}

/// One name that moved, in words: `main 0123456..89abcde`.
fn branch(moved: &MovedRef) -> String {
    let commit = |object: &str| object.chars().take(7).collect::<String>();
    let name = moved.name.to_string();
    let from = moved.old.as_deref().map_or_else(|| "new, ".to_owned(), |old| format!("{}..", commit(old)));
    format!("{} {from}{}", short(&name), commit(&moved.new))
}

fn place(path: &BytesPath) -> String {
    if path.as_bytes() == b".git" { String::new() } else { format!(" of {path}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::keep::AsideGit;
    use crate::wire::keep::FoundRepository;
    use crate::wire::keep::GitKind;
    use crate::wire::keep::ImportedGit;
    use crate::wire::keep::NotImported;

    #[test]
    fn what_is_the_persons_now_and_what_is_not_is_told_apart() {
        let moved =
            |name: &str, old: Option<&str>| MovedRef { name: name.into(), old: old.map(|digit| digit.repeat(40)), new: "2".repeat(40) };
        let top = ImportedRepository {
            path: ".git".into(),
            moved: vec![moved("refs/heads/main", Some("1")), moved("refs/tags/v1", None)],
            index: IndexImport::Taken,
            not_imported: vec![NotImported { what: "refs/heads/side".into(), why: "was moved here meanwhile".to_owned() }],
            ..ImportedRepository::default()
        };
        let module = ImportedRepository {
            path: ".git/modules/sub".into(),
            notes: vec!["x was deleted".to_owned()],
            ..ImportedRepository::default()
        };
        let mut aside = Aside::of(&FoundRepository { path: "new/.git".into(), kind: GitKind::Folder });
        aside.kept = Some("s-0".into());
        let mut parts = Aside::of(&FoundRepository { path: "lib".into(), kind: GitKind::Bare });
        (parts.kept, parts.parts) = (Some("s-1".into()), vec!["HEAD".into(), "refs".into()]);
        let ended = Ended {
            settled: SettledGit {
                imported: ImportedGit { repositories: vec![module, top] },
                aside: AsideGit { moved: vec![aside, parts], whole: true },
                is_settled: false,
                held: Named::default(),
            },
            volume: "podbay-git-s".to_owned(),
            volume_of_below: "podbay-below-s".to_owned(),
            aside: "/state/aside/s".into(),
            review: None,
        };
        let told = ended.told();
        let Kind::GitTaken { repository: None, branches, staged: true, head: None, .. } = &told[0] else { panic!("{told:?}") };
        assert_eq!(branches, &["main 1111111..2222222", "tags/v1 new, 2222222"]);
        let words: Vec<&str> =
            told[1..].iter().map(|kind| if let Kind::Warning { message } = kind { message.as_str() } else { "" }).collect();
        assert!(words[0].contains("refs/heads/side: was moved here meanwhile; it stays in the volume `podbay-git-s`"), "{words:?}");
        assert_eq!(words[1], "git of .git/modules/sub: x was deleted");
        assert!(words[2].contains("new/.git is now /state/aside/s/s-0; git on your machine"), "{words:?}");
        let parts =
            "what made lib one (HEAD, refs) is now /state/aside/s/s-1, and all else in there stays where it is; git on your machine";
        assert!(words[3].contains(parts), "{words:?}");
        assert_eq!(words.len(), 4);
        let mut ended = ended;
        ended.settled.imported.repositories[0].path = "sub/.git".into();
        ended.settled.imported.repositories[0].not_imported = vec![NotImported { what: "HEAD".into(), why: "x".to_owned() }];
        assert_eq!(ended.volumes(), ["`podbay-git-s`", "`podbay-below-s`"]);
    }
}
