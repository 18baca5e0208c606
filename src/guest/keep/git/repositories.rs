//! Finds the repositories of a project, however git reaches them, and the working trees that each
//! of them has there: paths in the config are relative to those.

use std::collections::BTreeSet;

use super::config::ConfigEntry;
use super::find::MAX_POINTER;
use super::link_path::LinkPath;
use super::link_path::PathEnd;
use super::project_paths::ProjectPaths;
use super::repository_layout::is_repository;
use super::repository_layout::modules;
use super::repository_layout::pointed;
use super::untrusted_folder::FileKind;
use super::untrusted_folder::UntrustedFolder;
use crate::root::join;
use crate::root::split;

/// Most repositories that are examined.
pub(super) const MAX_REPOSITORIES: usize = 300;
/// Most working trees that are examined: several may share a repository.
const MAX_TREES: usize = 1000;

/// The repository at the top of a project.
pub(super) const TOP: &[u8] = b".git";

/// A repository with one of its working trees in the project.
#[derive(Debug)]
pub(super) struct Repository {
    /// Config files, relative to the examined folder.
    pub(super) settings: [Vec<u8>; 2],
    /// The default folder of hooks; `None`: its hooks are not examined here.
    pub(super) hooks: Option<Vec<u8>>,
    pub(super) tree: Vec<u8>,
}

/// The repositories of a project that were found.
#[derive(Debug)]
pub(super) struct Repositories<'a> {
    paths: &'a ProjectPaths<'a>,
    pub(super) found: Vec<Repository>,
    /// Config files of repositories outside of the project, by the text of their paths.
    pub(super) outside: BTreeSet<Vec<u8>>,
    /// Found repositories, each with a working tree.
    seen: BTreeSet<(Vec<u8>, Vec<u8>)>,
}

impl<'a> Repositories<'a> {
    /// Finds the repositories that each `.git` of the project is or leads to.
    pub(super) fn of_project(paths: &'a ProjectPaths<'a>, gits: &BTreeSet<&[u8]>) -> Self {
        let mut all = Self::new(paths);
        all.gits(gits);
        all
    }

    /// Finds a repository elsewhere whose working tree is in the project, and those of its
    /// submodules. `own` is the private folder of the working tree.
    pub(super) fn elsewhere(
        paths: &'a ProjectPaths<'a>,
        real: &UntrustedFolder,
        own: &[u8],
        tree: &[u8],
    ) -> Self {
        let mut all = Self::new(paths);
        all.add_elsewhere(real, b"", own, tree);
        all
    }

    fn new(paths: &'a ProjectPaths<'a>) -> Self {
        Self {
            paths,
            found: Vec::new(),
            outside: BTreeSet::new(),
            seen: BTreeSet::new(),
        }
    }

    /// Adds the repositories that each `.git` is or leads to.
    fn gits(&mut self, gits: &BTreeSet<&[u8]>) {
        let mut pointers = Vec::new();
        let mut folders = Vec::new();
        for git in gits {
            let end = LinkPath::of(self.paths.project, self.paths.place, git).end;
            let PathEnd::Inside(end) = end else { continue };
            let tree = split(git).0.to_vec();
            match self.paths.project.kind(&end) {
                Some(FileKind::Folder) => folders.push((end, tree)),
                Some(FileKind::File) => {
                    let text = self
                        .paths
                        .project
                        .read(&end, MAX_POINTER)
                        .ok()
                        .flatten()
                        .unwrap_or_default();
                    pointers.extend(pointed(&text).map(|to| (to.to_vec(), tree)));
                }
                _ => {}
            }
        }
        for (git, tree) in &folders {
            self.repository(git, tree);
        }
        for (to, tree) in &pointers {
            self.pointer(to, tree);
            // The repository may have been moved since.
            let (above, name) = split(to);
            if split(above).1 == b"worktrees" {
                for (git, _) in &folders {
                    self.linked(git, name, tree);
                }
            }
        }
    }

    /// Adds the repository that the `.git` file of a working tree leads to.
    fn pointer(&mut self, to: &[u8], tree: &[u8]) {
        let is_linked = |path: &[u8]| split(split(path).0).1 == b"worktrees";
        let fits = |path: &Vec<u8>| {
            if is_linked(to) {
                is_linked(path) && self.paths.project.kind(path) == Some(FileKind::Folder)
            } else {
                is_repository(&self.paths.project.names(path).unwrap_or_default())
            }
        };
        let meant = self.paths.resolve(tree, to);
        let is_within = meant.is_some();
        match meant.or_else(|| self.paths.by_suffix(to)).filter(fits) {
            Some(path) if is_linked(to) => {
                let (above, name) = split(&path);
                self.linked(split(above).0, name, tree);
            }
            Some(path) => self.repository(&path, tree),
            // The host reads that of the project itself.
            None if is_within || tree.is_empty() || self.is_known_to_the_host(tree, to) => {}
            None => drop(self.outside.insert(self.paths.outside(tree, to))),
        }
    }

    /// Whether a repository is a submodule's of one that the host always reads: of one around the
    /// project, or of the project's own, where that lies elsewhere.
    fn is_known_to_the_host(&self, tree: &[u8], to: &[u8]) -> bool {
        let (Some(to), false) = (
            self.paths.whole(tree, to),
            split(split(to).0).1 == b"worktrees",
        ) else {
            return false;
        };
        let around = self
            .paths
            .place
            .iter()
            .enumerate()
            .filter(|(_, byte)| **byte == b'/')
            .map(|(at, _)| [&self.paths.place[..at], b"/.git"].concat());
        let text = self
            .paths
            .project
            .read(TOP, MAX_POINTER)
            .ok()
            .flatten()
            .unwrap_or_default();
        let own = pointed(&text).and_then(|to| self.paths.whole(b"", to));
        around
            .chain(own)
            .any(|git| to.starts_with(&[&git, b"/modules/".as_slice()].concat()))
    }

    /// Adds a repository as a linked worktree sees it.
    fn linked(&mut self, git: &[u8], name: &[u8], tree: &[u8]) {
        let own = join(&join(git, b"worktrees"), name);
        if self.paths.project.kind(&own) != Some(FileKind::Folder) || !self.is_new(&own, tree) {
            return;
        }
        self.add(git, &own, tree);
        self.modules(&own, tree);
    }

    /// Adds a repository with the working tree around it, and with those that its config names.
    fn repository(&mut self, git: &[u8], tree: &[u8]) {
        for tree in [tree.to_vec()]
            .into_iter()
            .chain(self.paths.configured_trees(git))
        {
            if self.is_new(git, &tree) {
                self.add(git, git, &tree);
                self.modules(git, &tree);
            }
        }
    }

    fn add(&mut self, git: &[u8], own: &[u8], tree: &[u8]) {
        let settings = [join(git, b"config"), join(own, b"config.worktree")];
        self.found.push(Repository {
            settings,
            hooks: Some(join(git, b"hooks")),
            tree: tree.to_vec(),
        });
    }

    fn is_new(&mut self, git: &[u8], tree: &[u8]) -> bool {
        self.seen.len() < MAX_TREES && self.seen.insert((git.to_vec(), tree.to_vec()))
    }

    /// Adds the repositories of submodules, which lie within another one.
    fn modules(&mut self, git: &[u8], tree: &[u8]) {
        let found = modules(self.paths.project, git).unwrap_or_default();
        let trees = self.module_trees(tree, git, &found);
        for (module, named) in found.iter().zip(trees).take(MAX_REPOSITORIES) {
            let mut trees = self.paths.configured_trees(module);
            // Git removes the setting when the submodule is deinitialized, and writes it again from
            // these.
            trees.extend(named);
            for tree in trees {
                self.repository(module, &tree);
            }
        }
    }

    /// Adds a repository elsewhere, and those of its submodules.
    fn add_elsewhere(&mut self, real: &UntrustedFolder, git: &[u8], own: &[u8], tree: &[u8]) {
        if !self.is_new(own, tree) {
            return;
        }
        let settings = [join(git, b"config"), join(own, b"config.worktree")];
        self.found.push(Repository {
            settings,
            hooks: None,
            tree: tree.to_vec(),
        });
        let found = modules(real, own).unwrap_or_default();
        let trees = self.module_trees(tree, own, &found);
        for (module, named) in found.iter().zip(trees).take(MAX_REPOSITORIES) {
            for tree in &named {
                self.add_elsewhere(real, module, module, tree);
            }
        }
    }

    /// Returns the working trees of each submodule: those that the outer repository's files name,
    /// or else the one of its name.
    fn module_trees(&self, tree: &[u8], git: &[u8], modules: &[Vec<u8>]) -> Vec<Vec<Vec<u8>>> {
        let entries = if modules.is_empty() {
            Vec::new()
        } else {
            self.paths.entries(&join(tree, b".gitmodules"))
        };
        let within = join(git, b"modules/");
        let trees = modules.iter().map(|module| {
            let name = module.strip_prefix(within.as_slice()).unwrap_or_default();
            let is_its = |entry: &&ConfigEntry| {
                entry.section == "submodule"
                    && entry.subsection.as_deref() == Some(name)
                    && entry.key == "path"
            };
            let paths = entries
                .iter()
                .filter(is_its)
                .filter_map(|entry| entry.value.as_deref());
            let found: BTreeSet<Vec<u8>> = paths
                .chain([name])
                .filter_map(|path| self.paths.resolve(tree, path))
                .collect();
            found.into_iter().filter(|path| path != tree).collect()
        });
        trees.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::hooks::obeyed_paths_in_worktree;
    use super::super::hooks::tests::look;
    use super::super::hooks::tests::place;
    use super::super::sample::LinkedSample;
    use super::super::sample::Sample;
    use super::*;
    use podbay_wire::BytesPath;
    use podbay_wire::keep::ObeyedPaths;

    #[track_caller]
    fn check(sample: &Sample, gits: &[&str], hooks: &str) {
        let found = look(sample, gits);
        assert!(found.said.contains(&hooks.into()), "{hooks}: {found:?}");
        assert!(
            found.paths.contains(&hooks.into()) == sample.path(hooks).exists(),
            "{hooks}: {found:?}"
        );
        assert_eq!(found.unread, [], "{hooks}");
    }

    #[test]
    fn a_submodule_is_found_with_and_without_a_configured_worktree() {
        let sample = Sample::with_submodules();
        sample.git(&["mv", "sub", "moved"]);
        sample.write("moved/hk/pre-commit", "x");
        sample.git_in("moved", &["config", "core.hooksPath", "hk"]);
        check(&sample, &[], "moved/hk");
        // Git moves the setting to another file.
        sample.git_in("moved", &["sparse-checkout", "set", "--no-cone", "/*"]);
        sample.git_in("moved", &["sparse-checkout", "disable"]);
        let read = |name: &str| {
            fs::read_to_string(sample.path(&format!(".git/modules/sub/{name}"))).expect("read")
        };
        assert!(
            read("config.worktree").contains("worktree =")
                && !read("config").contains("worktree =")
        );
        fs::rename(sample.path(".gitmodules"), sample.path("kept")).expect("moved");
        check(&sample, &[], "moved/hk");
        fs::remove_file(sample.path(".git/modules/sub/config.worktree")).expect("removed");
        check(&sample, &["moved/.git"], "moved/hk");
        fs::rename(sample.path("kept"), sample.path(".gitmodules")).expect("moved");
        check(&sample, &[], "moved/hk");
        // It is deinitialized, and restored by the user's next command.
        sample.git(&["submodule", "--quiet", "deinit", "-f", "moved"]);
        assert!(!sample.path("moved/hk").exists());
        check(&sample, &[], "moved/hk");
        fs::remove_file(sample.path(".gitmodules")).expect("removed");
        check(&sample, &[], "sub/hk");
    }

    #[test]
    fn a_linked_worktree_of_any_repository_is_found() {
        let sample = Sample::with_submodules();
        sample.git_in("sub", &["worktree", "add", "-q", "../tree", "-b", "tree"]);
        sample.git_in("sub", &["config", "core.hooksPath", "hk"]);
        sample.write("tree/hk/pre-commit", "x");
        check(&sample, &["sub/.git", "tree/.git"], "tree/hk");
        let sample = Sample::new();
        sample.commit("file", "1");
        sample.git(&["clone", "-q", "--bare", ".", "repo.git"]);
        sample.git_in(
            "repo.git",
            &["worktree", "add", "-q", "../tree", "-b", "tree"],
        );
        sample.git_in("repo.git", &["config", "core.hooksPath", "hk"]);
        sample.git_in("repo.git", &["config", "filter.f.clean", "tools/clean"]);
        sample.write("tree/hk/pre-commit", "x");
        check(&sample, &["tree/.git"], "tree/hk");
        assert!(
            look(&sample, &["tree/.git"])
                .said
                .contains(&"tree/tools/clean".into())
        );
    }

    #[test]
    fn a_working_tree_apart_from_its_repository_is_found() {
        let sample = Sample::new();
        fs::create_dir(sample.path("gits")).expect("made");
        sample.git(&["init", "-q", "--separate-git-dir", "gits/sub", "sub"]);
        sample.git_in("sub", &["config", "core.hooksPath", "hk"]);
        sample.write("sub/hk/pre-commit", "x");
        check(&sample, &["sub/.git"], "sub/hk");
        sample.write("src/own/pre-commit", "x");
        sample.git(&["config", "core.hooksPath", "own"]);
        sample.git(&["config", "core.worktree", "../src"]);
        check(&sample, &["sub/.git"], "src/own");
        let whole = sample.path("src").display().to_string();
        sample.git(&["config", "core.worktree", &whole]);
        check(&sample, &[], "src/own");
    }

    #[test]
    fn a_repository_outside_of_the_project_is_named_unless_the_host_reads_it() {
        let sample = Sample::new();
        sample.write("sub/.git", "gitdir: ../.git/modules/sub\n");
        sample.write("absent/.git", "gitdir: ../not/there\n");
        sample.write("tree/.git", "gitdir: /elsewhere/main/.git/worktrees/tree\n");
        sample.write("apart/.git", "gitdir: ../../beside\n");
        sample.write("a/.git", "gitdir: /elsewhere/.git/modules/a\n");
        sample.write("b/.git", "gitdir: ../../.git/modules/../b/modules/c\n");
        sample.write("around/.git", "gitdir: ../../.git/modules/around\n");
        sample.write("w/.git", "gitdir: ../../.git/modules/around/worktrees/w\n");
        let gits = [
            "a/.git",
            "absent/.git",
            "apart/.git",
            "around/.git",
            "b/.git",
            "sub/.git",
            "tree/.git",
            "w/.git",
        ];
        let unread: Vec<String> = look(&sample, &gits)
            .unread
            .iter()
            .map(BytesPath::to_text)
            .collect();
        let above = sample
            .path("")
            .parent()
            .expect("a folder")
            .display()
            .to_string();
        let beside = [".git/b/modules/c", ".git/modules/around", "beside"]
            .map(|path| format!("{above}/{path}/config"));
        let elsewhere = [
            "/elsewhere/.git/modules/a/config",
            "/elsewhere/main/.git/config",
        ]
        .map(str::to_owned);
        let mut expected = [elsewhere.to_vec(), beside.to_vec()].concat();
        expected.sort();
        assert_eq!(unread, expected);
        // The project is a submodule, with others in it.
        fs::rename(sample.path(".git"), sample.beside("git")).expect("moved");
        sample.write(".git", "gitdir: /elsewhere/.git/modules/a\n");
        sample.write("b/.git", "gitdir: /elsewhere/.git/modules/a/modules/b\n");
        sample.write("c/.git", "gitdir: /elsewhere/.git/modules/b/modules/c\n");
        let unread: Vec<String> = look(&sample, &["b/.git", "c/.git"])
            .unread
            .iter()
            .map(BytesPath::to_text)
            .collect();
        assert_eq!(unread, ["/elsewhere/.git/modules/b/modules/c/config"]);
        let linked = LinkedSample::new();
        assert_eq!(look(&linked.sample, &[]), ObeyedPaths::default());
        // So it does with those of its submodules.
        let module = linked.main.join(".git/worktrees/project/modules/sub");
        for folder in ["objects", "refs"] {
            fs::create_dir_all(module.join(folder)).expect("made");
        }
        fs::write(module.join("HEAD"), "ref: refs/heads/main\n").expect("written");
        fs::write(module.join("config"), "[core]\nhooksPath = hk\n").expect("written");
        let real = UntrustedFolder::open(&linked.main.join(".git")).expect("opens");
        let found = obeyed_paths_in_worktree(
            &UntrustedFolder::open(&linked.sample.path("")).expect("opens"),
            &real,
            b"project",
            place(&linked.sample).as_bytes(),
        );
        assert_eq!(found.said, ["sub/hk".into()]);
    }
}
