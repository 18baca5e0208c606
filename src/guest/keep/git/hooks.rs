//! What the person's git obeys in the project because the settings of a repository there say so:
//! folders with hooks, files of settings that others include, and programs; because links in a
//! repository lead there; or because the hooks of one name it. Whoever can write them runs programs
//! at the person's next git command.

mod named;

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub(crate) use self::named::named_in;
use super::config;
use super::config::Entry;
use super::find::MAX_POINTER;
use super::folder::Folder;
use super::folder::Kind;
use super::project_paths::MAX_CONFIG;
use super::project_paths::ProjectPaths;
use super::record::Start;
use super::repositories::MAX_REPOSITORIES;
use super::repositories::Repositories;
use super::repositories::Repository;
use super::repositories::TOP;
use super::repository::pointed;
use super::repository::work_tree;
use super::way::End;
use super::way::Way;
use crate::root::join;
use crate::root::split;
use podbay_wire::BytesPath;
use podbay_wire::keep::Obeyed;

/// How deep git itself follows.
const MAX_DEPTH: usize = 10;
/// How many files of settings are read for one repository.
const MAX_FILES: usize = 64;

/// The folder that husky has git look for hooks in: what is there runs those beside it.
pub(super) const HUSKYS: &[u8] = b"_";

/// How many folders of hooks, and folders in them, are looked through for links, and how many of
/// those are followed.
const MAX_FOLDERS: usize = 100;
const MAX_LINKS: usize = 1000;

/// Longest list of paths as settings have them.
const MAX_SAID: usize = 1000;

/// What git looks for in a folder of hooks.
pub const HOOKS: [&str; 28] = [
    "applypatch-msg",
    "pre-applypatch",
    "post-applypatch",
    "pre-commit",
    "pre-merge-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "pre-rebase",
    "post-checkout",
    "post-merge",
    "pre-push",
    "pre-receive",
    "update",
    "proc-receive",
    "post-receive",
    "post-update",
    "reference-transaction",
    "push-to-checkout",
    "pre-auto-gc",
    "post-rewrite",
    "sendemail-validate",
    "fsmonitor-watchman",
    "p4-changelist",
    "p4-prepare-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
    "post-index-change",
];

/// Returns what git obeys in a project. `gits` are the `.git` below the top, folders and files;
/// `place` is where the project's folder is on the person's machine, as far as that is known.
///
/// Of several values of one setting all count: which of them git takes may depend on what is
/// checked out. What the person's settings for all repositories say is not known here.
pub fn obeyed<'a>(
    project: &Folder,
    gits: impl Iterator<Item = &'a BytesPath>,
    place: &[u8],
) -> Obeyed {
    let paths = ProjectPaths::new(project, place);
    let gits: BTreeSet<&[u8]> = [TOP]
        .into_iter()
        .chain(gits.map(BytesPath::as_bytes))
        .take(MAX_REPOSITORIES)
        .collect();
    let Repositories { found, outside, .. } = Repositories::of_project(&paths, &gits);
    let mut all = All::new(&paths);
    for Repository {
        settings,
        hooks,
        tree,
    } in found
    {
        all.settings(project, true, &settings, &tree);
        if let Some(hooks) = hooks {
            all.hooks(&hooks, &tree);
        }
    }
    all.unread.extend(outside);
    all.done()
}

/// Returns the same for a project that is a working tree of a repository elsewhere: `name` is that
/// of a linked worktree there, and empty for the only one.
pub fn obeyed_in_worktree(project: &Folder, real: &Folder, name: &[u8], place: &[u8]) -> Obeyed {
    obeyed_elsewhere(project, real, name, b"", place)
}

/// The same for a working tree below the top, whose file `.git` leads out of the project; `place`
/// must be known, `git` and `real` are the file and the repository. `None`: its settings cannot be
/// read, or say that its files are elsewhere.
pub fn obeyed_below(
    project: &Folder,
    git: &[u8],
    (real, at): (&Folder, &Path),
    name: &[u8],
    place: &[u8],
) -> Option<Obeyed> {
    let tree = split(git).0;
    let entries = config::parse(&real.read(b"config", MAX_CONFIG).ok().flatten()?).ok()?;
    let said = entries
        .iter()
        .rfind(|entry| entry.is("core", "worktree"))
        .and_then(|entry| entry.value.as_deref());
    // A linked worktree is where it is.
    if let Some(said) = said.filter(|_| name.is_empty()) {
        let at = at.as_os_str().as_bytes();
        let whole = if said.starts_with(b"/") {
            work_tree(b"", &said[1..])
        } else {
            work_tree(at, said)
        };
        if whole? != join(place.strip_prefix(b"/")?, tree) {
            return None;
        }
    }
    Some(obeyed_elsewhere(project, real, name, tree, place))
}

fn obeyed_elsewhere(
    project: &Folder,
    real: &Folder,
    name: &[u8],
    tree: &[u8],
    place: &[u8],
) -> Obeyed {
    let paths = ProjectPaths::new(project, place);
    let own = if name.is_empty() {
        Vec::new()
    } else {
        join(b"worktrees", name)
    };
    let mut all = All::new(&paths);
    for Repository { settings, tree, .. } in Repositories::elsewhere(&paths, real, &own, tree).found
    {
        all.settings(real, false, &settings, &tree);
    }
    all.hooks_elsewhere(real, tree);
    all.done()
}

/// Returns where a file `.git` below the top of a project leads that lies outside of it, and the
/// settings there as [`Obeyed`] names them; `None`: it leads into the project, or nowhere.
pub fn outside(project: &Folder, git: &[u8], place: &[u8]) -> Option<(BytesPath, BytesPath)> {
    let text = project.read(git, MAX_POINTER).ok().flatten()?;
    let (to, tree) = (pointed(&text)?, split(git).0);
    let paths = ProjectPaths::new(project, place);
    let is_outside = !tree.is_empty() && paths.meant(tree, to).is_none();
    is_outside.then(|| {
        (
            BytesPath::from_bytes(to),
            BytesPath::from_bytes(paths.outside(tree, to)),
        )
    })
}

/// Returns what git obeys in a project as it was said when a session began: settings elsewhere, as
/// of a linked worktree, are not seen later. `starts` is where that was written down.
pub fn obeyed_at_start(starts: &Path, id: &str) -> Vec<BytesPath> {
    let start = Folder::open(starts)
        .ok()
        .and_then(|starts| Start::read(&starts, id).ok().flatten());
    start
        .map(|start| start.prepared.obeyed.said)
        .unwrap_or_default()
}

/// Returns where the files of a repository of the project are, from the project's folder; `None`:
/// it does not say, or not in the project.
///
/// `place` is where the project's folder is on the person's machine.
pub(crate) fn work_tree_of(project: &Folder, place: &[u8], git: &[u8]) -> Option<Vec<u8>> {
    let (above, name) = split(git);
    if name == TOP {
        return Some(above.to_vec());
    }
    ProjectPaths::new(project, place).said_trees(git).pop()
}

struct All<'a> {
    project: &'a Folder,
    paths_of: &'a ProjectPaths<'a>,
    paths: BTreeSet<Vec<u8>>,
    unread: BTreeSet<Vec<u8>>,
    /// Some of what is in `unread` was read and names more than is looked at, or is longer.
    is_cut: bool,
    said: BTreeSet<Vec<u8>>,
    programs: BTreeSet<Vec<u8>>,
    /// How many names of texts were looked for.
    n_words: usize,
    /// Hooks that were read, each with the working tree that it runs in.
    texts: BTreeSet<(Vec<u8>, Vec<u8>)>,
}

impl<'a> All<'a> {
    fn new(paths_of: &'a ProjectPaths<'a>) -> Self {
        let (paths, unread, said, programs) = Default::default();
        let (is_cut, n_words, texts) = Default::default();
        Self {
            project: paths_of.project,
            paths_of,
            paths,
            unread,
            is_cut,
            said,
            programs,
            n_words,
            texts,
        }
    }

    /// Reads the settings of one working tree. `in_project`: whether the files are of the project,
    /// where a command could change them.
    fn settings(&mut self, folder: &Folder, in_project: bool, files: &[Vec<u8>], tree: &[u8]) {
        let mut waiting: Vec<(Vec<u8>, usize)> =
            files.iter().map(|file| (file.clone(), 0)).collect();
        let mut seen = BTreeSet::new();
        let mut hooks = Vec::new();
        while let Some((file, depth)) = waiting.pop() {
            if !seen.insert(file.clone()) {
                continue;
            }
            // What stands in it is said from where the link is.
            let end = if in_project {
                self.lead(&file)
            } else {
                Some(file.clone())
            };
            let entries: Option<Vec<Entry>> = end
                .and_then(|end| folder.read(&end, MAX_CONFIG).ok().flatten())
                .and_then(|text| config::parse(&text).ok())
                .filter(|_| seen.len() <= MAX_FILES);
            let Some(entries) = entries else {
                // A repository's own need not be there, and one that cannot be read is told of
                // elsewhere.
                if depth > 0 {
                    self.unread.insert(file);
                }
                continue;
            };
            if depth > 0 && in_project {
                self.add(file.clone());
            }
            self.programs(tree, &entries, &file);
            for entry in entries {
                let Some(value) = entry.value.as_deref().filter(|value| !value.is_empty()) else {
                    continue;
                };
                if entry.is("core", "hookspath") {
                    hooks.push(value.to_vec());
                } else if matches!(entry.section.as_str(), "include" | "includeif")
                    && entry.key == "path"
                {
                    // Elsewhere nothing is known of where that file is.
                    if (in_project || value.starts_with(b"/") || value.starts_with(b"~"))
                        && let Some(path) = self
                            .paths_of
                            .meant(split(&file).0, value)
                            .or_else(|| self.paths_of.by_another_way(value))
                    {
                        self.say(path);
                    }
                    match self.paths_of.inside(split(&file).0, value, in_project) {
                        Some(path) if depth < MAX_DEPTH || seen.contains(&path) => {
                            waiting.push((path, depth + 1));
                        }
                        Some(path) => drop(self.unread.insert(path)),
                        None => {
                            self.unread.insert(value.to_vec());
                            // It may be another one: both are told of.
                            waiting.extend(
                                self.paths_of
                                    .by_another_way(value)
                                    .filter(|_| in_project && depth < MAX_DEPTH)
                                    .map(|path| (path, depth + 1)),
                            );
                        }
                    }
                }
            }
        }
        for said in hooks {
            let by_another_way = self.paths_of.by_another_way(&said);
            match self
                .paths_of
                .meant(tree, &said)
                .or_else(|| by_another_way.clone())
            {
                // Of a folder that is all of a working tree only the hooks count.
                Some(path) if path == tree => HOOKS
                    .iter()
                    .for_each(|hook| self.say(join(tree, hook.as_bytes()))),
                Some(path) => self.say(path),
                None => {}
            }
            if let Some(path) = self.paths_of.inside(tree, &said, true).or(by_another_way) {
                self.hooks(&path, tree);
                // Nothing of it is read-only as a whole where it is all of the project.
                if !path.is_empty() {
                    self.add(path);
                }
            }
        }
    }

    /// Counts where links lead that stand for a folder of hooks or lie in it, since git runs what
    /// is there, and what the hooks name.
    fn hooks(&mut self, folder: &[u8], tree: &[u8]) {
        let mut waiting = vec![folder.to_vec()];
        let mut seen = BTreeSet::new();
        let mut n_links = 0;
        while let Some(path) = waiting.pop() {
            let Some(end) = self.lead(&path) else {
                continue;
            };
            if seen.len() >= MAX_FOLDERS || !seen.insert(end.clone()) {
                continue;
            }
            if end.is_empty() || end == tree {
                // Of a folder that is all of a working tree only the hooks count.
                for hook in HOOKS.map(|hook| join(&end, hook.as_bytes())) {
                    let leads_to = self.lead(&hook);
                    self.hook(&leads_to.unwrap_or_else(|| hook.clone()), tree);
                    self.say(hook.clone());
                    self.add(hook);
                }
                continue;
            }
            // Where a link leads.
            self.hook(&end, tree);
            if path == folder {
                self.hook_texts(&end, tree);
            }
            for (name, kind) in self.project.names(&end).unwrap_or_default() {
                if matches!(kind, Kind::Link | Kind::Folder) && n_links < MAX_LINKS {
                    n_links += 1;
                    waiting.push(join(&end, &name));
                }
            }
        }
    }

    /// Counts where links lead that are hooks of a repository elsewhere, and what its hooks name,
    /// as far as that can be told of one whose place is not known.
    fn hooks_elsewhere(&mut self, real: &Folder, tree: &[u8]) {
        let inside = real.names(b"hooks").unwrap_or_default();
        for (name, _) in inside
            .iter()
            .filter(|(_, kind)| *kind == Kind::File)
            .take(MAX_LINKS)
        {
            self.hook_of(real, &join(b"hooks", name), tree, tree);
        }
        let links = inside
            .into_iter()
            .filter(|(_, kind)| *kind == Kind::Link)
            .map(|(name, _)| join(b"hooks", &name));
        for link in [b"hooks".to_vec()].into_iter().chain(links.take(MAX_LINKS)) {
            let Ok(target) = real.link_target(&link) else {
                continue;
            };
            let whole = target
                .starts_with(b"/")
                .then(|| self.paths_of.meant(b"", &target))
                .flatten();
            if let Some(path) = whole.or_else(|| self.paths_of.by_another_way(&target)) {
                self.hooks(&path, tree);
                self.say(path.clone());
                self.add(path);
            }
        }
    }

    /// Counts what links make of a path of the project, if it is a link or lies behind one, and
    /// returns where they lead in the project.
    fn lead(&mut self, path: &[u8]) -> Option<Vec<u8>> {
        let way = Way::of(self.project, self.paths_of.place, path);
        let end = match way.end {
            End::Inside(end) => end,
            End::Outside(path) => self.paths_of.by_another_way(&path)?,
            End::Nowhere => return None,
        };
        if way.links.is_empty() {
            return Some(end);
        }
        way.spelled.into_iter().for_each(|path| self.say(path));
        // Of all of the project nothing can be said.
        if !end.is_empty() {
            self.say(end.clone());
            self.add(end.clone());
        }
        Some(end)
    }

    fn say(&mut self, path: Vec<u8>) {
        if !is_in_git(&path) {
            self.said.insert(path);
        }
    }

    /// Says of a file that not all that it names is known.
    fn cut(&mut self, source: Vec<u8>) {
        self.unread.insert(source);
        self.is_cut = true;
    }

    /// What lies in a repository is as protected as that.
    fn add(&mut self, path: Vec<u8>) {
        if !is_in_git(&path) && matches!(self.project.kind(&path), Some(Kind::Folder | Kind::File))
        {
            self.paths.insert(path);
        }
    }

    fn done(self) -> Obeyed {
        let texts = |paths: BTreeSet<Vec<u8>>, most| {
            paths
                .into_iter()
                .take(most)
                .map(BytesPath::from_bytes)
                .collect()
        };
        let is_new = |path: &&Vec<u8>| !self.said.contains(*path);
        let programs = self.programs.iter().filter(is_new).take(MAX_SAID);
        let said = self
            .said
            .iter()
            .take(MAX_SAID)
            .chain(programs)
            .cloned()
            .collect();
        Obeyed {
            paths: texts(self.paths, MAX_FILES),
            unread: texts(self.unread, MAX_FILES),
            is_cut: self.is_cut,
            said: texts(said, 2 * MAX_SAID),
        }
    }
}

fn is_in_git(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/')
        .any(|part| part.eq_ignore_ascii_case(TOP))
}

#[cfg(test)]
pub(super) mod tests;
