//! What in a project leads programs on the person's machine to other files of it, whatever those are called: settings and hooks of
//! git, links that have the names of files that run, and repositories without a `.git`.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::time::Duration;
use std::time::Instant;

use crate::keep::bare::folded_path;
use crate::keep::git::End;
use crate::keep::git::Folder;
use crate::keep::git::Kind;
use crate::keep::git::Way;
use crate::keep::git::is_repository;
use crate::keep::git::obeyed;
use crate::root::join;
use podbay_wire::BytesPath;

const BY_SETTINGS: &str = "git runs or obeys it, as the settings, the hooks or the links of a repository say";
const MODULE: &str = "python may load it where the settings or the hooks of a repository start it there";
const IN_REPOSITORY: &str = "git obeys it in the repository that this folder is";

/// What git obeys of a repository's own files.
const OBEYED: [&[u8]; 5] = [b"config", b"config.worktree", b"hooks", b"HEAD", b"commondir"];

/// How long the project is looked through.
const LOOK: Duration = Duration::from_secs(20);
/// Longer paths cannot be used from the project's folder.
const MAX_PATH: usize = 4000;

/// What the names of modules of python end in, and what those of a package begin with that run first.
const MODULES: [&str; 4] = [".py", ".pyw", ".so", ".pyd"];
const FIRST: [&str; 2] = ["__init__.", "__main__."];

#[derive(Debug, Default)]
pub(super) struct Leads {
    /// Paths, as any file system takes them, with why what is there, or in there, may run.
    paths: BTreeMap<String, String>,
    /// Folders that python looks for modules in.
    modules: BTreeSet<String>,
    /// Hooks or settings name more than was looked at.
    pub(super) is_cut: bool,
}

impl Leads {
    /// Looks through a project. `place` is where it is on the person's machine, `known` what is known of before; `by_name` says why a link of
    /// this path leads to what may run.
    pub(super) fn of(project: &Folder, place: &[u8], known: &[BytesPath], by_name: impl Fn(&BytesPath) -> Option<String>) -> Self {
        let mut walk = Walk { project, place, gits: Vec::new(), leads: Self::default() };
        walk.run(by_name);
        let found = obeyed(project, walk.gits.iter(), place);
        for path in found.said.iter().chain(known) {
            walk.follow(path.as_bytes(), BY_SETTINGS);
        }
        walk.leads.is_cut = found.is_cut;
        walk.leads.modules = found.modules.iter().map(|folder| folded_path(folder.as_bytes())).collect();
        walk.leads
    }

    /// Returns why something there may run.
    pub(super) fn to(&self, path: &[u8]) -> Option<String> {
        if self.paths.is_empty() && self.modules.is_empty() {
            return None;
        }
        let path = folded_path(path);
        if self.is_module(&path) {
            return Some(MODULE.to_owned());
        }
        let mut above = path.as_str();
        loop {
            if let Some(why) = self.paths.get(above) {
                return Some(why.clone());
            }
            above = above.rsplit_once('/')?.0;
        }
    }

    /// Whether python may find it as a module: a file, or what begins a package.
    fn is_module(&self, path: &str) -> bool {
        let parted =
            |path: &str| path.rsplit_once('/').map_or((String::new(), path.to_owned()), |(above, name)| (above.into(), name.into()));
        let (folder, name) = parted(path);
        if self.modules.is_empty() || !MODULES.iter().any(|end| name.ends_with(end)) {
            return false;
        }
        let begins = || FIRST.iter().any(|first| name.starts_with(first)) && !folder.is_empty();
        self.modules.contains(&folder) || begins() && self.modules.contains(&parted(&folder).0)
    }

    /// Returns why something that lies below there may run.
    pub(super) fn below(&self, path: &[u8]) -> Option<String> {
        let within = folded_path(path) + "/";
        self.paths.range(within.clone()..).next().filter(|(path, _)| path.starts_with(&within)).map(|(_, why)| why.clone())
    }

    fn add(&mut self, path: &[u8], why: &str) {
        // All of the project is nothing that could be said of a file.
        if !path.is_empty() {
            self.paths.entry(folded_path(path)).or_insert_with(|| why.to_owned());
        }
    }
}

struct Walk<'a> {
    project: &'a Folder,
    place: &'a [u8],
    gits: Vec<BytesPath>,
    leads: Leads,
}

impl Walk<'_> {
    fn run(&mut self, by_name: impl Fn(&BytesPath) -> Option<String>) {
        let end = Instant::now() + LOOK;
        let Ok(device) = self.project.stat(b".").map(|stat| stat.st_dev) else { return };
        let mut folders = vec![Vec::new()];
        while let Some(folder) = folders.pop().filter(|_| Instant::now() < end) {
            let Ok(names) = self.project.names(&folder) else { continue };
            if is_repository(&names) {
                for name in OBEYED {
                    self.follow(&join(&folder, name), IN_REPOSITORY);
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
                        if let Some(why) = by_name(&path) {
                            self.follow(path.as_bytes(), &format!("the link {path} leads to it: {why}"));
                        }
                    }
                    Kind::Folder | Kind::File if is_git => self.gits.push(BytesPath::from_bytes(path)),
                    Kind::Folder if path.len() <= MAX_PATH && self.project.stat(&path).is_ok_and(|stat| stat.st_dev == device) => {
                        folders.push(path);
                    }
                    Kind::Folder | Kind::File | Kind::Special => {}
                }
            }
        }
    }

    /// Adds a path and all that links make of it on the way, as the kernel would follow them, but for those outside of the project.
    fn follow(&mut self, path: &[u8], why: &str) {
        self.leads.add(path, why);
        let way = Way::of(self.project, self.place, path);
        for link in &way.links {
            self.leads.add(link, why);
        }
        if let End::Inside(end) = &way.end {
            self.leads.add(end, why);
        }
    }
}
