//! What in a project leads programs on the user's machine to other files of it, whatever their
//! names: settings and hooks of git, files that run without being asked for and name others, links
//! with the names of such files, and repositories without a `.git`.

use std::collections::BTreeMap;
use std::time::Duration;
use std::time::Instant;

use super::RunReason;
use crate::auto_run_names::Group;
use crate::auto_run_names::naming_group;
use crate::auto_run_names::whole_folder_group;
use crate::keep::bare_repository::folded_path;
use crate::keep::git::FileKind;
use crate::keep::git::LinkPath;
use crate::keep::git::PathEnd;
use crate::keep::git::UntrustedFolder;
use crate::keep::git::is_repository;
use crate::keep::git::named_in;
use crate::keep::git::obeyed_paths;
use crate::root::join;
use crate::root::split;
use podbay_wire::BytesPath;
use podbay_wire::keep::RunTrigger;

const BY_SETTINGS: &str =
    "git runs or obeys it because of the config, hooks or links of a repository";
const IN_REPOSITORY: &str = "git obeys it, since its folder is a bare repository";

/// Files of a repository that git obeys.
const OBEYED: [&[u8]; 5] = [
    b"config",
    b"config.worktree",
    b"hooks",
    b"HEAD",
    b"commondir",
];

/// Most files that are read for the names in them.
const MAX_NAMING: usize = 100;

/// Time for the search of the project.
const WALK_TIME: Duration = Duration::from_secs(20);
/// Longer paths cannot be used from the project's folder.
const MAX_PATH: usize = 4000;

#[derive(Debug, Default)]
pub(super) struct References {
    /// Paths, folded as any file system may, with the reason why what is at or below them may run.
    paths: BTreeMap<String, RunReason>,
    /// Whether hooks or settings name more than was examined.
    pub(super) is_cut: bool,
}

impl References {
    /// Searches a project. `place` is its path on the user's machine, `known` what is known
    /// already; `by_name` returns why a link of this path leads to what may run.
    pub(super) fn of(
        project: &UntrustedFolder,
        place: &[u8],
        known: &[BytesPath],
        by_name: impl Fn(&BytesPath) -> Option<RunReason>,
    ) -> Self {
        let mut walk = ReferenceWalk {
            project,
            place,
            gits: Vec::new(),
            naming: Vec::new(),
            leads: Self::default(),
        };
        walk.run(by_name);
        let found = obeyed_paths(project, walk.gits.iter(), place);
        for path in found.said.iter().chain(known) {
            walk.follow(path.as_bytes(), &RunReason::by_itself(BY_SETTINGS));
        }
        for (file, group) in std::mem::take(&mut walk.naming) {
            walk.name(&file, group);
        }
        walk.leads.is_cut |= found.is_cut;
        walk.leads
    }

    /// Returns why the entry at a path may run.
    pub(super) fn to(&self, path: &[u8]) -> Option<RunReason> {
        if self.paths.is_empty() {
            return None;
        }
        let path = folded_path(path);
        let mut above = path.as_str();
        loop {
            if let Some(runs) = self.paths.get(above) {
                return Some(runs.clone());
            }
            above = above.rsplit_once('/')?.0;
        }
    }

    /// Returns why an entry below a path may run.
    pub(super) fn below(&self, path: &[u8]) -> Option<RunReason> {
        let within = folded_path(path) + "/";
        self.paths
            .range(within.clone()..)
            .next()
            .filter(|(path, _)| path.starts_with(&within))
            .map(|(_, runs)| runs.clone())
    }

    fn add(&mut self, path: &[u8], runs: &RunReason) {
        // The whole project is too much to name a single file for.
        if path.is_empty() {
            return;
        }
        let known = self
            .paths
            .entry(folded_path(path))
            .or_insert_with(|| runs.clone());
        if known.when != RunTrigger::ByItself && runs.when == RunTrigger::ByItself {
            known.clone_from(runs);
        }
    }
}

struct ReferenceWalk<'a> {
    project: &'a UntrustedFolder,
    place: &'a [u8],
    gits: Vec<BytesPath>,
    /// Files that run without being asked for and may name others.
    naming: Vec<(BytesPath, &'static Group)>,
    leads: References,
}

impl ReferenceWalk<'_> {
    fn run(&mut self, by_name: impl Fn(&BytesPath) -> Option<RunReason>) {
        let end = Instant::now() + WALK_TIME;
        let Ok(device) = self.project.stat(b".").map(|stat| stat.st_dev) else {
            return;
        };
        let mut folders = vec![Vec::new()];
        while let Some(folder) = folders.pop().filter(|_| Instant::now() < end) {
            let Ok(names) = self.project.names(&folder) else {
                continue;
            };
            if is_repository(&names) {
                for name in OBEYED {
                    self.follow(&join(&folder, name), &RunReason::by_itself(IN_REPOSITORY));
                }
            }
            for (name, kind) in names {
                let path = join(&folder, &name);
                let is_git = name.eq_ignore_ascii_case(b".git");
                match kind {
                    FileKind::Link => {
                        if is_git {
                            self.gits.push(BytesPath::from_bytes(path.clone()));
                        }
                        let path = BytesPath::from_bytes(path);
                        if let Some(RunReason { why, when }) = by_name(&path) {
                            let why = format!("the link {path} leads to it: {why}");
                            self.follow(path.as_bytes(), &RunReason { why, when });
                        }
                    }
                    FileKind::Folder | FileKind::File if is_git => {
                        self.gits.push(BytesPath::from_bytes(path));
                    }
                    FileKind::Folder
                        if path.len() <= MAX_PATH
                            && self
                                .project
                                .stat(&path)
                                .is_ok_and(|stat| stat.st_dev == device) =>
                    {
                        folders.push(path);
                    }
                    FileKind::File => self.note_naming_file(BytesPath::from_bytes(path)),
                    FileKind::Folder | FileKind::Special => {}
                }
            }
        }
    }

    /// Files in packages name files of their own.
    fn note_naming_file(&mut self, path: BytesPath) {
        let Some(group) = naming_group(&path) else {
            return;
        };
        let mut above = split(path.as_bytes()).0;
        while !above.is_empty() {
            if whole_folder_group(&BytesPath::from_bytes(above), true).is_some() {
                return;
            }
            above = split(above).0;
        }
        if self.naming.len() < MAX_NAMING {
            self.naming.push((path, group));
        } else {
            self.leads.is_cut = true;
        }
    }

    /// Adds the files that an auto-run file names: relative to the project's folder, to its own,
    /// and to the one above that.
    fn name(&mut self, file: &BytesPath, group: &Group) {
        let own = split(file.as_bytes()).0;
        let why = format!("{file} names it, and {}", group.why());
        for path in named_in(
            self.project,
            self.place,
            file.as_bytes(),
            &[b"", own, split(own).0],
        ) {
            if path != file.as_bytes() {
                self.follow(&path, &RunReason::by_itself(&why));
            }
        }
    }

    /// Adds a path, and each path that links on the way turn it into, as the kernel would follow
    /// them; links out of the project are not followed.
    fn follow(&mut self, path: &[u8], runs: &RunReason) {
        self.leads.add(path, runs);
        let way = LinkPath::of(self.project, self.place, path);
        for link in &way.links {
            self.leads.add(link, runs);
        }
        if let PathEnd::Inside(end) = &way.end {
            self.leads.add(end, runs);
        }
    }
}
