mod contents;
mod filters;

pub(super) use self::contents::MAX_CONFIG;
use self::contents::RepositoryContents;
#[cfg(test)]
pub(super) use self::filters::MAX_ATTRIBUTES;
use super::config;
use super::hidden_files;
use super::hooks::obeyed_paths;
use super::hooks::obeyed_paths_in_worktree;
use super::reflogs;
use super::refs;
use super::refs::Head;
use super::repository_layout::is_bare;
use super::repository_layout::modules;
use super::repository_layout::work_tree;
use super::session_config::SessionConfig;
use super::session_start::SessionStart;
use super::session_start::StartedRepository;
use super::session_start::check_id;
use super::stash;
use super::untrusted_folder::FileKind;
use super::untrusted_folder::UntrustedFolder;
use crate::root::join;
use podbay_wire::BytesPath;
use podbay_wire::Fault;
use podbay_wire::keep::FoundGit;
use podbay_wire::keep::GitKind;
use podbay_wire::keep::GitRefusal;
use podbay_wire::keep::OutsideRepositories;
use podbay_wire::keep::PreparedGit;
use podbay_wire::keep::PreparedRepository;
use podbay_wire::keep::UserGitSettings;

const MAX_SMALL: u64 = 16 << 20;

/// Files that exist in a repository during a merge or the like.
pub(crate) const UNDER_WAY: [(&[u8], &str); 6] = [
    (b"MERGE_HEAD", "a merge"),
    (b"CHERRY_PICK_HEAD", "a cherry-pick"),
    (b"REVERT_HEAD", "a revert"),
    (b"rebase-merge", "a rebase"),
    (b"rebase-apply", "a rebase, or `git am`,"),
    (b"sequencer", "a series of cherry-picks or reverts"),
];

/// A repository that a session is to work in.
#[derive(Debug)]
pub struct PrepareSource<'a> {
    /// Path of its `.git`, relative to the project's folder.
    pub path: BytesPath,
    /// The real repository; for a linked worktree, the main one.
    pub real: &'a UntrustedFolder,
    /// If the project is a linked worktree: its name in the repository, and the path of its `.git`
    /// file as recorded there.
    pub worktree: Option<(BytesPath, BytesPath)>,
    /// The folder to fill, which is empty, or was left by an incomplete preparation.
    pub session: &'a UntrustedFolder,
    /// Its path for a later import.
    pub session_at: BytesPath,
    /// Paths in the sandbox of the real repository and, for a linked worktree, of the session's
    /// folder.
    pub real_in_box: BytesPath,
    pub session_in_box: BytesPath,
}

/// Makes a session's git folders, without running git.
///
/// A session that has its folder is refused: the work in it must not be lost. `hidden` are files
/// and folders of the project that are masked in the sandbox, `place` is the path of the project on
/// the user's machine, and `outside` what was read there. Each repository that git cannot write to
/// is named with the reason, and has no folder; the others are prepared all the same.
pub fn prepare(
    project: &UntrustedFolder,
    found: FoundGit,
    sources: &[PrepareSource<'_>],
    hidden: &[BytesPath],
    person: &UserGitSettings,
    (place, outside): (&[u8], &OutsideRepositories),
    (state, id): (&UntrustedFolder, &str),
) -> Result<PreparedGit, Fault> {
    check_id(id)?;
    if SessionStart::read(state, id)?.is_some_and(|start| !start.repositories.is_empty()) {
        // The session's work in it is nowhere else.
        let problem = "has a git folder already; import or discard its work before a new one is \
            made"
            .to_owned();
        return Err(Fault::Invalid {
            field: format!("session {id}"),
            problem,
        });
    }
    SessionStart::forget(state, id)?;
    let mut all = Preparation {
        project,
        place,
        hidden,
        person,
        prepared: Vec::new(),
        started: Vec::new(),
        indexes: Vec::new(),
    };
    for source in sources {
        for (name, _) in source
            .session
            .names(b"")
            .map_err(|errno| super::untrusted_folder::failed("list", b"", &errno.into()))?
        {
            source.session.remove(&name)?;
        }
        all.prepare(&PreparePlace {
            source,
            inside: Vec::new(),
            is_module: false,
        })?;
    }
    let gits = found.repositories.iter().filter(|one| {
        matches!(
            one.kind,
            GitKind::Folder | GitKind::Pointer { .. } | GitKind::Link { .. }
        )
    });
    let mut obeyed = obeyed_paths(project, gits.map(|one| &one.path), place);
    for (source, (name, _)) in sources
        .iter()
        .filter_map(|source| Some((source, source.worktree.as_ref()?)))
    {
        let there = obeyed_paths_in_worktree(project, source.real, name.as_bytes(), place);
        obeyed.paths.extend(there.paths);
        obeyed.unread.extend(there.unread);
        obeyed.said.extend(there.said);
    }
    outside.add_to(&mut obeyed);
    let prepared = PreparedGit {
        repositories: all.prepared,
        n_more: 0,
        obeyed,
    };
    let mut start = SessionStart::new(project, found, all.started);
    start.prepared.clone_from(&prepared);
    start.write(state, id, &all.indexes)?;
    Ok(prepared)
}

struct Preparation<'a> {
    project: &'a UntrustedFolder,
    /// Its path on the user's machine.
    place: &'a [u8],
    hidden: &'a [BytesPath],
    person: &'a UserGitSettings,
    prepared: Vec<PreparedRepository>,
    started: Vec<StartedRepository>,
    indexes: Vec<Option<Vec<u8>>>,
}

/// One repository: a source, or a submodule in it.
struct PreparePlace<'a> {
    source: &'a PrepareSource<'a>,
    /// Empty, or `modules/NAME`.
    inside: Vec<u8>,
    is_module: bool,
}

impl PreparePlace<'_> {
    fn path(&self) -> Vec<u8> {
        join_both(self.source.path.as_bytes(), &self.inside)
    }

    /// Returns a shared path, both in the real repository and in the session's folder.
    fn common(&self, name: &[u8]) -> Vec<u8> {
        join_both(&self.inside, name)
    }

    /// Returns a path in the private folder of the worktree.
    fn private(&self, name: &[u8]) -> Vec<u8> {
        match &self.source.worktree {
            Some((worktree, _)) => [b"worktrees/", worktree.as_bytes(), b"/", name].concat(),
            None => self.common(name),
        }
    }

    /// Returns where objects are borrowed from, as for git's `alternates`.
    fn borrowed(&self) -> Vec<u8> {
        [
            join_both(self.source.real_in_box.as_bytes(), &self.common(b"objects")).as_slice(),
            b"\n",
        ]
        .concat()
    }

    fn read(&self, path: &[u8], limit: u64) -> Result<Option<Vec<u8>>, GitRefusal> {
        self.source
            .real
            .read(path, limit)
            .map_err(|fault| match fault {
                Fault::NotRegular { path, kind } if kind == "symbolic link" => {
                    GitRefusal::Linked { path }
                }
                fault => broken(path, &fault),
            })
    }

    fn kind(&self, path: &[u8]) -> Option<FileKind> {
        self.source.real.kind(path)
    }
}

impl Preparation<'_> {
    /// Prepares a repository and its submodules; returns whether git can write there.
    fn prepare(&mut self, place: &PreparePlace<'_>) -> Result<bool, Fault> {
        let mut prepared = PreparedRepository {
            path: BytesPath::from_bytes(place.path()),
            refused: None,
            notes: Vec::new(),
            n_refs: 0,
            hidden: Vec::new(),
            pointer: None,
        };
        match self.look(place) {
            Ok(contents) => {
                // A submodule that cannot be prepared: git would die of it in every command about
                // the files around it.
                let mut passed_over = Vec::new();
                let inside = place.private(b"");
                let inside = inside.strip_suffix(b"/").unwrap_or(&inside);
                for module in modules(place.source.real, inside).unwrap_or_default() {
                    let name = module[join(inside, b"modules").len() + 1..].to_vec();
                    let inner = PreparePlace {
                        source: place.source,
                        inside: module,
                        is_module: true,
                    };
                    if !self.prepare(&inner)? {
                        passed_over.push(name);
                    }
                }
                self.write(place, contents, &passed_over, &mut prepared)?;
                self.prepared.push(prepared);
                Ok(true)
            }
            Err(refusal) => {
                if place.is_module {
                    write_view(place)?;
                }
                prepared.refused = Some(refusal);
                self.prepared.push(prepared);
                Ok(false)
            }
        }
    }

    fn write(
        &mut self,
        place: &PreparePlace<'_>,
        contents: RepositoryContents,
        passed_over: &[Vec<u8>],
        prepared: &mut PreparedRepository,
    ) -> Result<(), Fault> {
        let RepositoryContents {
            mut settings,
            work_tree,
            head,
            refs,
            index,
        } = contents;
        let (real, session) = (place.source.real, place.source.session);
        let mut exclude = self.own_rules(&mut settings, &work_tree);
        for folder in [
            &b"objects/pack"[..],
            b"objects/info",
            b"refs/heads",
            b"refs/tags",
            b"info",
        ] {
            session.make(&place.common(folder))?;
        }
        let mut kept = settings.kept;
        if place.is_module
            && let Some(said) = &settings.work_tree
        {
            kept.push(config::ConfigEntry::new("core", None, "worktree", said));
        }
        for name in passed_over {
            kept.push(config::ConfigEntry::new(
                "submodule",
                Some(name),
                "ignore",
                b"all",
            ));
        }
        session.write(&place.common(b"config"), &config::write(&kept))?;
        session.write(&place.common(b"objects/info/alternates"), &place.borrowed())?;
        session.write(
            &place.common(b"packed-refs"),
            &refs::packed_text(&refs.bound),
        )?;
        for (name, to) in &refs.symbolic {
            session.write(
                &place.common(name.as_bytes()),
                &[b"ref: ", to.as_bytes(), b"\n"].concat(),
            )?;
        }
        for name in [&b"shallow"[..], b"info/attributes"] {
            if let Ok(Some(bytes)) = real.read(&place.common(name), MAX_SMALL) {
                session.write(&place.common(name), &bytes)?;
            }
        }
        let hidden = hidden_files::below(self.hidden, &work_tree);
        exclude.extend(
            real.read(&place.common(b"info/exclude"), MAX_SMALL)
                .ok()
                .flatten()
                .unwrap_or_default(),
        );
        hidden_files::in_exclude(&mut exclude, &hidden);
        session.write(&place.common(b"info/exclude"), &exclude)?;
        session.write(&place.private(b"HEAD"), &head.to_text())?;
        if let Ok(Some(bytes)) = real.read(&place.private(b"info/sparse-checkout"), MAX_SMALL) {
            session.write(&place.private(b"info/sparse-checkout"), &bytes)?;
        }
        reflogs::copy(
            real,
            session,
            &[place.common(b"logs"), place.private(b"logs")],
            &head,
        )?;
        if let Some((worktree, _)) = &place.source.worktree {
            // Its own folder must be a repository, too.
            let main = Head::read(real, b"HEAD")
                .ok()
                .flatten()
                .unwrap_or_else(|| head.clone());
            // If a bare repository's `HEAD` names a branch, git would treat that as checked out
            // there, and let no worktree have it.
            let commit = head.commit(&refs.bound).filter(|_| is_bare(real)).cloned();
            let main = commit.map_or(main, |object| Head::Commit { object });
            session.write(b"HEAD", &main.to_text())?;
            session.write(&place.private(b"commondir"), b"../..\n")?;
            session.write(
                &place.private(b"gitdir"),
                &[b"/workspace/", place.source.path.as_bytes(), b"\n"].concat(),
            )?;
            let at = join_both(place.source.session_in_box.as_bytes(), b"worktrees");
            prepared.pointer = Some(BytesPath::from_bytes(
                [b"gitdir: ", at.as_slice(), b"/", worktree.as_bytes(), b"\n"].concat(),
            ));
        }
        if let Some((bytes, mut index)) = index.clone() {
            prepared.hidden = hidden_files::in_index(&mut index, &hidden);
            let bytes = if prepared.hidden.is_empty() {
                bytes
            } else {
                index.write()
            };
            session.write(&place.private(b"index"), &bytes)?;
        }
        prepared.n_refs = refs.bound.len() as u64;
        prepared.notes = settings.notes;
        prepared.notes.extend(
            refs.odd
                .iter()
                .take(20)
                .map(|(name, why)| format!("{name} {why}, and is missing in the session")),
        );
        let folder = real.descend(&place.common(b".")).map_err(|errno| {
            super::untrusted_folder::failed("open", &place.inside, &errno.into())
        })?;
        self.started.push(StartedRepository {
            session: place.source.session_at.clone(),
            inside: BytesPath::from_bytes(place.inside.clone()),
            path: prepared.path.clone(),
            worktree: place.source.worktree.as_ref().map(|(name, _)| name.clone()),
            head,
            refs: refs.bound,
            symbolic: refs.symbolic,
            stashes: stash::read(&folder).unwrap_or_default(),
            left_behind: reflogs::left_behind(session, &place.private(reflogs::HEAD))
                .into_iter()
                .collect(),
            has_index: index.is_some(),
        });
        self.indexes.push(index.map(|(bytes, _)| bytes));
        Ok(())
    }
}

impl Preparation<'_> {
    /// Returns the user's own exclude rules; the repository's come after them, since those take
    /// precedence.
    fn own_rules(&self, settings: &mut SessionConfig, work_tree: &[u8]) -> Vec<u8> {
        let mut rules = match &settings.excludes {
            None => self.person.ignored.as_bytes().to_vec(),
            Some(said) => {
                // What the session may not read is not read for it here either.
                let is_hidden = |path: &[u8]| {
                    self.hidden
                        .iter()
                        .any(|hidden| is_at_or_below(path, hidden.as_bytes()))
                };
                let inside = self
                    .in_project(said, work_tree)
                    .filter(|path| !is_hidden(path));
                let read =
                    inside.and_then(|path| self.project.read(&path, MAX_CONFIG).ok().flatten());
                if read.is_none() && !said.is_empty() {
                    let said = BytesPath::from_bytes(said.as_slice());
                    settings.notes.push(format!(
                        "the rules of {said} (core.excludesFile) do not \
                        apply in the session"
                    ));
                }
                read.unwrap_or_default()
            }
        };
        if rules.last().is_some_and(|byte| *byte != b'\n') {
            rules.push(b'\n');
        }
        rules
    }

    /// Returns the path in the project of a file that a repository's config names; `None`: outside
    /// of it.
    fn in_project(&self, said: &[u8], folder: &[u8]) -> Option<Vec<u8>> {
        match said
            .strip_prefix(self.place)
            .and_then(|rest| rest.strip_prefix(b"/"))
        {
            Some(inside) if !self.place.is_empty() => work_tree(b"", inside),
            _ if said.is_empty() || said.starts_with(b"/") || said.starts_with(b"~") => None,
            _ => work_tree(folder, said),
        }
    }
}

fn is_at_or_below(path: &[u8], folder: &[u8]) -> bool {
    path.strip_prefix(folder)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// Makes the folder of a submodule that git cannot work in: the least with which git does not die
/// around it.
fn write_view(place: &PreparePlace<'_>) -> Result<(), Fault> {
    let (real, session) = (place.source.real, place.source.session);
    for folder in [&b"objects/pack"[..], b"objects/info", b"refs/heads"] {
        session.make(&place.common(folder))?;
    }
    let refs = real
        .descend(&place.common(b"."))
        .ok()
        .and_then(|folder| refs::read(&folder).ok())
        .unwrap_or_default();
    let head = Head::read(real, &place.common(b"HEAD")).ok().flatten();
    let commit = head
        .as_ref()
        .and_then(|head| head.commit(&refs.bound))
        .cloned();
    let head = commit.map_or(
        Head::Branch {
            name: "refs/heads/main".into(),
        },
        |object| Head::Commit { object },
    );
    session.write(&place.common(b"HEAD"), &head.to_text())?;
    let bare = config::ConfigEntry::new("core", None, "bare", b"false");
    session.write(&place.common(b"config"), &config::write(&[bare]))?;
    session.write(&place.common(b"objects/info/alternates"), &place.borrowed())
}

/// Joins two paths of which either may be empty.
fn join_both(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if name.is_empty() {
        folder.to_vec()
    } else {
        join(folder, name)
    }
}

fn broken(path: &[u8], fault: &Fault) -> GitRefusal {
    GitRefusal::Broken {
        path: BytesPath::from_bytes(path),
        problem: fault.to_string(),
    }
}
