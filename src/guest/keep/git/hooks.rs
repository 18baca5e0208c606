//! Paths in the project that the user's git obeys: folders of hooks, included config files and
//! programs that a repository's config names; targets of links in a repository; and files that its
//! hooks name. A session that can write them runs programs at the user's next git command. This
//! only advises.

mod named_files;

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub(crate) use self::named_files::named_in;
use super::config;
use super::config::ConfigEntry;
use super::find::MAX_POINTER;
use super::link_path::LinkPath;
use super::link_path::PathEnd;
use super::project_paths::MAX_CONFIG;
use super::project_paths::ProjectPaths;
use super::repositories::MAX_REPOSITORIES;
use super::repositories::Repositories;
use super::repositories::Repository;
use super::repositories::TOP;
use super::repository_layout::pointed;
use super::repository_layout::work_tree;
use super::session_start::SessionStart;
use super::untrusted_folder::FileKind;
use super::untrusted_folder::UntrustedFolder;
use crate::root::join;
use crate::root::split;
use podbay_wire::BytesPath;
use podbay_wire::keep::ObeyedPaths;

/// Git's own limit of nested includes.
const MAX_DEPTH: usize = 10;
/// Most config files that are read for one repository.
const MAX_FILES: usize = 64;

/// The folder that husky sets as `core.hooksPath`: its hooks run the files beside it.
pub(super) const HUSKYS: &[u8] = b"_";

/// Most folders of hooks, with their subfolders, that are searched for links, and most links that
/// are followed.
const MAX_FOLDERS: usize = 100;
const MAX_LINKS: usize = 1000;

/// Most reported paths as written in the config.
const MAX_SAID: usize = 1000;

/// Names of hooks that git runs.
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

/// Returns the paths that git obeys in a project. `gits` are the `.git` below the top, folders and
/// files; `place` is the path of the project's folder on the user's machine, if known.
///
/// All values of a setting count: which of them git uses may depend on the checkout. The user's
/// global settings are not known here.
pub fn obeyed_paths<'a>(
    project: &UntrustedFolder,
    gits: impl Iterator<Item = &'a BytesPath>,
    place: &[u8],
) -> ObeyedPaths {
    let paths = ProjectPaths::new(project, place);
    let gits: BTreeSet<&[u8]> = [TOP]
        .into_iter()
        .chain(gits.map(BytesPath::as_bytes))
        .take(MAX_REPOSITORIES)
        .collect();
    let Repositories { found, outside, .. } = Repositories::of_project(&paths, &gits);
    let mut all = ObeyedScan::new(&paths);
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
/// of the linked worktree, and empty for the main one.
pub fn obeyed_paths_in_worktree(
    project: &UntrustedFolder,
    real: &UntrustedFolder,
    name: &[u8],
    place: &[u8],
) -> ObeyedPaths {
    obeyed_paths_elsewhere(project, real, name, b"", place)
}

/// Returns the same for a working tree below the top whose `.git` file leads out of the project;
/// `place` must be known, `git` and `real` are the file and the repository. `None`: its config
/// cannot be read, or puts its files elsewhere.
pub fn obeyed_paths_below(
    project: &UntrustedFolder,
    git: &[u8],
    (real, at): (&UntrustedFolder, &Path),
    name: &[u8],
    place: &[u8],
) -> Option<ObeyedPaths> {
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
    Some(obeyed_paths_elsewhere(project, real, name, tree, place))
}

fn obeyed_paths_elsewhere(
    project: &UntrustedFolder,
    real: &UntrustedFolder,
    name: &[u8],
    tree: &[u8],
    place: &[u8],
) -> ObeyedPaths {
    let paths = ProjectPaths::new(project, place);
    let own = if name.is_empty() {
        Vec::new()
    } else {
        join(b"worktrees", name)
    };
    let mut all = ObeyedScan::new(&paths);
    for Repository { settings, tree, .. } in Repositories::elsewhere(&paths, real, &own, tree).found
    {
        all.settings(real, false, &settings, &tree);
    }
    all.hooks_elsewhere(real, tree);
    all.done()
}

/// Returns where a `.git` file below the top leads that points out of the project, and the config
/// there as in [`ObeyedPaths`]; `None`: it leads into the project, or nowhere.
pub fn outside_repository(
    project: &UntrustedFolder,
    git: &[u8],
    place: &[u8],
) -> Option<(BytesPath, BytesPath)> {
    let text = project.read(git, MAX_POINTER).ok().flatten()?;
    let (to, tree) = (pointed(&text)?, split(git).0);
    let paths = ProjectPaths::new(project, place);
    let is_outside = !tree.is_empty() && paths.resolve(tree, to).is_none();
    is_outside.then(|| {
        (
            BytesPath::from_bytes(to),
            BytesPath::from_bytes(paths.outside(tree, to)),
        )
    })
}

/// Returns the paths that git obeyed when a session began: config elsewhere, as of a linked
/// worktree, is not visible later. `starts` is the folder of the records.
pub fn obeyed_paths_at_start(starts: &Path, id: &str) -> Vec<BytesPath> {
    let start = UntrustedFolder::open(starts)
        .ok()
        .and_then(|starts| SessionStart::read(&starts, id).ok().flatten());
    start
        .map(|start| start.prepared.obeyed.said)
        .unwrap_or_default()
}

/// Returns the working tree of a repository of the project, relative to the project's folder;
/// `None`: unknown, or not in the project.
///
/// `place` is the path of the project's folder on the user's machine.
pub(crate) fn work_tree_of(project: &UntrustedFolder, place: &[u8], git: &[u8]) -> Option<Vec<u8>> {
    let (above, name) = split(git);
    if name == TOP {
        return Some(above.to_vec());
    }
    ProjectPaths::new(project, place)
        .configured_trees(git)
        .pop()
}

struct ObeyedScan<'a> {
    project: &'a UntrustedFolder,
    paths_of: &'a ProjectPaths<'a>,
    paths: BTreeSet<Vec<u8>>,
    unread: BTreeSet<Vec<u8>>,
    /// Whether files in `unread` were read in part, because they name more than is examined, or are
    /// too long.
    is_cut: bool,
    said: BTreeSet<Vec<u8>>,
    programs: BTreeSet<Vec<u8>>,
    /// How many names in scripts were looked up.
    n_words: usize,
    /// Hooks that were read, each with the working tree that it runs in.
    texts: BTreeSet<(Vec<u8>, Vec<u8>)>,
}

impl<'a> ObeyedScan<'a> {
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

    /// Reads the config of one working tree. `in_project`: whether the files belong to the project,
    /// where a command could change them.
    fn settings(
        &mut self,
        folder: &UntrustedFolder,
        in_project: bool,
        files: &[Vec<u8>],
        tree: &[u8],
    ) {
        let mut waiting: Vec<(Vec<u8>, usize)> =
            files.iter().map(|file| (file.clone(), 0)).collect();
        let mut seen = BTreeSet::new();
        let mut hooks = Vec::new();
        while let Some((file, depth)) = waiting.pop() {
            if !seen.insert(file.clone()) {
                continue;
            }
            // Paths in it are relative to the folder of the link.
            let end = if in_project {
                self.lead(&file)
            } else {
                Some(file.clone())
            };
            let entries: Option<Vec<ConfigEntry>> = end
                .and_then(|end| folder.read(&end, MAX_CONFIG).ok().flatten())
                .and_then(|text| config::parse(&text).ok())
                .filter(|_| seen.len() <= MAX_FILES);
            let Some(entries) = entries else {
                // A repository's own config may be missing; an unreadable one is reported
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
                    // The absolute path of a repository elsewhere is not known.
                    if (in_project || value.starts_with(b"/") || value.starts_with(b"~"))
                        && let Some(path) = self
                            .paths_of
                            .resolve(split(&file).0, value)
                            .or_else(|| self.paths_of.by_suffix(value))
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
                            // It may be another file: both are reported.
                            waiting.extend(
                                self.paths_of
                                    .by_suffix(value)
                                    .filter(|_| in_project && depth < MAX_DEPTH)
                                    .map(|path| (path, depth + 1)),
                            );
                        }
                    }
                }
            }
        }
        for said in hooks {
            let by_another_way = self.paths_of.by_suffix(&said);
            match self
                .paths_of
                .resolve(tree, &said)
                .or_else(|| by_another_way.clone())
            {
                // If the folder is the whole working tree, only the hooks count.
                Some(path) if path == tree => HOOKS
                    .iter()
                    .for_each(|hook| self.say(join(tree, hook.as_bytes()))),
                Some(path) => self.say(path),
                None => {}
            }
            if let Some(path) = self.paths_of.inside(tree, &said, true).or(by_another_way) {
                self.hooks(&path, tree);
                // The whole project is not made read-only.
                if !path.is_empty() {
                    self.add(path);
                }
            }
        }
    }

    /// Adds the targets of links that are a folder of hooks or lie in one, since git runs those,
    /// and the files that the hooks name.
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
                // If the folder is the whole working tree, only the hooks count.
                for hook in HOOKS.map(|hook| join(&end, hook.as_bytes())) {
                    let leads_to = self.lead(&hook);
                    self.hook(&leads_to.unwrap_or_else(|| hook.clone()), tree);
                    self.say(hook.clone());
                    self.add(hook);
                }
                continue;
            }
            // The target of a link.
            self.hook(&end, tree);
            if path == folder {
                self.hook_scripts(&end, tree);
            }
            for (name, kind) in self.project.names(&end).unwrap_or_default() {
                if matches!(kind, FileKind::Link | FileKind::Folder) && n_links < MAX_LINKS {
                    n_links += 1;
                    waiting.push(join(&end, &name));
                }
            }
        }
    }

    /// Adds the targets of links that are hooks of a repository elsewhere, and the files that its
    /// hooks name, as far as can be told without knowing its path.
    fn hooks_elsewhere(&mut self, real: &UntrustedFolder, tree: &[u8]) {
        let inside = real.names(b"hooks").unwrap_or_default();
        for (name, _) in inside
            .iter()
            .filter(|(_, kind)| *kind == FileKind::File)
            .take(MAX_LINKS)
        {
            self.hook_of(real, &join(b"hooks", name), tree, tree);
        }
        let links = inside
            .into_iter()
            .filter(|(_, kind)| *kind == FileKind::Link)
            .map(|(name, _)| join(b"hooks", &name));
        for link in [b"hooks".to_vec()].into_iter().chain(links.take(MAX_LINKS)) {
            let Ok(target) = real.link_target(&link) else {
                continue;
            };
            let whole = target
                .starts_with(b"/")
                .then(|| self.paths_of.resolve(b"", &target))
                .flatten();
            if let Some(path) = whole.or_else(|| self.paths_of.by_suffix(&target)) {
                self.hooks(&path, tree);
                self.say(path.clone());
                self.add(path);
            }
        }
    }

    /// Adds the paths that links turn a path of the project into, and returns where it leads in the
    /// project.
    fn lead(&mut self, path: &[u8]) -> Option<Vec<u8>> {
        let way = LinkPath::of(self.project, self.paths_of.place, path);
        let end = match way.end {
            PathEnd::Inside(end) => end,
            PathEnd::Outside(path) => self.paths_of.by_suffix(&path)?,
            PathEnd::Nowhere => return None,
        };
        if way.links.is_empty() {
            return Some(end);
        }
        way.spelled.into_iter().for_each(|path| self.say(path));
        // The whole project is not added.
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

    /// Reports that a file names more than was examined.
    fn cut(&mut self, source: Vec<u8>) {
        self.unread.insert(source);
        self.is_cut = true;
    }

    /// Adds a path, unless it lies in a repository, which is protected as a whole.
    fn add(&mut self, path: Vec<u8>) {
        if !is_in_git(&path)
            && matches!(
                self.project.kind(&path),
                Some(FileKind::Folder | FileKind::File)
            )
        {
            self.paths.insert(path);
        }
    }

    fn done(self) -> ObeyedPaths {
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
        ObeyedPaths {
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
