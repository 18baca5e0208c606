//! What in a project leads programs on the person's machine to other files of it, whatever those
//! are called: settings and hooks of git, files that run by themselves and name others, links that
//! have the names of files that run, and repositories without a `.git`.

use std::collections::BTreeMap;
use std::time::Duration;
use std::time::Instant;

use super::Runs;
use crate::keep::bare::folded_path;
use crate::keep::git::End;
use crate::keep::git::Folder;
use crate::keep::git::Kind;
use crate::keep::git::Way;
use crate::keep::git::is_repository;
use crate::keep::git::named_in;
use crate::keep::git::obeyed;
use crate::names_that_run::Group;
use crate::names_that_run::names_of_wholes;
use crate::names_that_run::names_that_name;
use crate::root::join;
use crate::root::split;
use podbay_wire::BytesPath;
use podbay_wire::keep::When;

const BY_SETTINGS: &str =
    "git runs or obeys it, as the settings, the hooks or the links of a repository say";
const IN_REPOSITORY: &str = "git obeys it in the repository that this folder is";

/// What git obeys of a repository's own files.
const OBEYED: [&[u8]; 5] = [
    b"config",
    b"config.worktree",
    b"hooks",
    b"HEAD",
    b"commondir",
];

/// How many files are read for what they name.
const MAX_NAMING: usize = 100;

/// How long the project is looked through.
const LOOK: Duration = Duration::from_secs(20);
/// Longer paths cannot be used from the project's folder.
const MAX_PATH: usize = 4000;

#[derive(Debug, Default)]
pub(super) struct Leads {
    /// Paths, as any file system takes them, with why what is there, or in there, may run.
    paths: BTreeMap<String, Runs>,
    /// Hooks or settings name more than was looked at.
    pub(super) is_cut: bool,
}

impl Leads {
    /// Looks through a project. `place` is where it is on the person's machine, `known` what is
    /// known of before; `by_name` says why a link of this path leads to what may run.
    pub(super) fn of(
        project: &Folder,
        place: &[u8],
        known: &[BytesPath],
        by_name: impl Fn(&BytesPath) -> Option<Runs>,
    ) -> Self {
        let mut walk = Walk {
            project,
            place,
            gits: Vec::new(),
            naming: Vec::new(),
            leads: Self::default(),
        };
        walk.run(by_name);
        let found = obeyed(project, walk.gits.iter(), place);
        for path in found.said.iter().chain(known) {
            walk.follow(path.as_bytes(), &Runs::by_itself(BY_SETTINGS));
        }
        for (file, group) in std::mem::take(&mut walk.naming) {
            walk.name(&file, group);
        }
        walk.leads.is_cut |= found.is_cut;
        walk.leads
    }

    /// Returns why something there may run.
    pub(super) fn to(&self, path: &[u8]) -> Option<Runs> {
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

    /// Returns why something that lies below there may run.
    pub(super) fn below(&self, path: &[u8]) -> Option<Runs> {
        let within = folded_path(path) + "/";
        self.paths
            .range(within.clone()..)
            .next()
            .filter(|(path, _)| path.starts_with(&within))
            .map(|(_, runs)| runs.clone())
    }

    fn add(&mut self, path: &[u8], runs: &Runs) {
        // All of the project is nothing that could be said of a file.
        if path.is_empty() {
            return;
        }
        let known = self
            .paths
            .entry(folded_path(path))
            .or_insert_with(|| runs.clone());
        if known.when != When::ByItself && runs.when == When::ByItself {
            known.clone_from(runs);
        }
    }
}

struct Walk<'a> {
    project: &'a Folder,
    place: &'a [u8],
    gits: Vec<BytesPath>,
    /// Files that run by themselves and may name others.
    naming: Vec<(BytesPath, &'static Group)>,
    leads: Leads,
}

impl Walk<'_> {
    fn run(&mut self, by_name: impl Fn(&BytesPath) -> Option<Runs>) {
        let end = Instant::now() + LOOK;
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
                    self.follow(&join(&folder, name), &Runs::by_itself(IN_REPOSITORY));
                }
            }
            for (name, kind) in names {
                let path = join(&folder, &name);
                let is_git = name.eq_ignore_ascii_case(b".git");
                match kind {
                    Kind::Link => {
                        if is_git {
                            self.gits.push(BytesPath::from_bytes(path.clone()));
                        }
                        let path = BytesPath::from_bytes(path);
                        if let Some(Runs { why, when }) = by_name(&path) {
                            let why = format!("the link {path} leads to it: {why}");
                            self.follow(path.as_bytes(), &Runs { why, when });
                        }
                    }
                    Kind::Folder | Kind::File if is_git => {
                        self.gits.push(BytesPath::from_bytes(path));
                    }
                    Kind::Folder
                        if path.len() <= MAX_PATH
                            && self
                                .project
                                .stat(&path)
                                .is_ok_and(|stat| stat.st_dev == device) =>
                    {
                        folders.push(path);
                    }
                    Kind::File => self.note_naming(BytesPath::from_bytes(path)),
                    Kind::Folder | Kind::Special => {}
                }
            }
        }
    }

    /// What lies in packages of others names files of theirs.
    fn note_naming(&mut self, path: BytesPath) {
        let Some(group) = names_that_name(&path) else {
            return;
        };
        let mut above = split(path.as_bytes()).0;
        while !above.is_empty() {
            if names_of_wholes(&BytesPath::from_bytes(above), true).is_some() {
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

    /// Adds what a file names that runs by itself: from the project's folder, its own, and the one
    /// above that.
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
                self.follow(&path, &Runs::by_itself(&why));
            }
        }
    }

    /// Adds a path and all that links make of it on the way, as the kernel would follow them, but
    /// for those outside of the project.
    fn follow(&mut self, path: &[u8], runs: &Runs) {
        self.leads.add(path, runs);
        let way = Way::of(self.project, self.place, path);
        for link in &way.links {
            self.leads.add(link, runs);
        }
        if let End::Inside(end) = &way.end {
            self.leads.add(end, runs);
        }
    }
}
