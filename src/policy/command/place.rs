//! Where a path leads by its letters: into the project, or out of it.

use super::git_folder;
use super::git_folder::fits;
use super::ground::Ground;
use podbay_code::shell;
use podbay_code::shell::ABOVE;
use podbay_code::shell::GIT_FOLDER;
use podbay_code::shell::HERE;
use podbay_code::shell::TOP;
use podbay_code::shell::with_value;

/// Folders outside of the project that a command may do with as it likes.
const SCRATCH: [&str; 4] = ["tmp", "var/tmp", "dev/shm", "run/user"];
/// How the home folder is written.
pub(super) const HOMES: [&str; 3] = ["~", "$HOME", "${HOME}"];

/// What the project's own folder is called.
pub(super) const PROJECT: &str = "the whole project";

/// What the project's git folder is called, and what in it commits are known by.
pub(super) const COMMITS: &str = "the project's commits";

/// A folder or file, from the root or the home folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) is_home: bool,
    pub(super) parts: Vec<String>,
}

impl Place {
    pub(super) fn project() -> Self {
        Self { is_home: false, parts: vec!["workspace".to_owned()] }
    }

    pub(super) fn is_in_project(&self) -> bool {
        !self.is_home && self.parts.first().is_some_and(|first| first == "workspace")
    }

    pub(super) fn follow(&mut self, path: &str) {
        for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
            if part != ".." {
                self.parts.push(part.to_owned());
            } else if self.parts.pop().is_none() && self.is_home {
                *self = Self { is_home: false, parts: vec!["home".to_owned()] };
            }
        }
    }

    /// Returns whether it lies in another place, or is that.
    pub(super) fn is_below(&self, other: &Self) -> bool {
        self.is_home == other.is_home && self.parts.starts_with(&other.parts)
    }

    /// Returns the folder that it lies in.
    pub(super) fn above(&self) -> Self {
        let n_parts = self.parts.len().saturating_sub(1);
        Self { is_home: self.is_home, parts: self.parts[..n_parts].to_vec() }
    }

    /// Returns how it is written.
    pub(super) fn path(&self) -> String {
        let root = if self.is_home { "~/" } else { "/" };
        format!("{root}{}", self.parts.join("/"))
    }

    /// Takes off what leads through a process's own root or folder: `/proc/self/cwd`.
    fn through_process(&mut self, here: Option<&Place>) {
        let [proc, process, link, rest @ ..] = self.parts.as_slice() else { return };
        if self.is_home || proc != "proc" || !(process.contains("self") || process.starts_with('$')) {
            return;
        }
        let rest = rest.to_vec();
        match (link.as_str(), here) {
            ("root", _) => self.parts = rest,
            ("cwd", Some(here)) => {
                *self = here.clone();
                self.parts.extend(rest);
            }
            _ => {}
        }
    }

    /// Takes off what stands for everything in a folder; returns whether there was any.
    fn without_stars(&mut self) -> bool {
        let n_parts = self.parts.len();
        while self.parts.pop_if(|part| takes_any(part)).is_some() {}
        self.parts.len() < n_parts
    }

    /// Returns what nobody would want to lose whole, if this is it.
    fn precious(&self, has_stars: bool) -> Option<String> {
        match self.parts.as_slice() {
            [] if self.is_home => Some("the home folder".to_owned()),
            _ if self.is_home => None,
            [] => Some("the root folder".to_owned()),
            [one] if fits(one, "workspace") => Some(PROJECT.to_owned()),
            [one, git, inside @ ..] if fits(one, "workspace") && fits(git, ".git") && git_folder::holds_commits(inside) => {
                Some(COMMITS.to_owned())
            }
            [one] if one == "tmp" && has_stars => None,
            [one] => Some(format!("/{one}")),
            [home, _] if home == "home" => Some("the home folder".to_owned()),
            [one, two] if one == "usr" || (one == "var" && two == "lib") => Some(format!("/{one}/{two}")),
            _ => None,
        }
    }
}

/// Returns whether a part of a path is a pattern that stands for everything in a folder, or nearly.
pub(super) fn takes_any(part: &str) -> bool {
    // `{a..z}*` is a list of letters, too.
    let letters = part.starts_with('{') && part.contains("..");
    let part = if letters { &part.replacen('{', "[", 1).replacen("..", "-", 1).replacen('}', "]", 1) } else { part };
    part.contains(['*', '?']) && (part.chars().all(|c| "*?.[]!^".contains(c)) || (part.contains('[') && takes_most(part)))
}

/// Returns whether a pattern with lists of letters takes names that begin with half of the alphabet: `[a-z]*`.
fn takes_most(pattern: &str) -> bool {
    ('a'..='z').filter(|first| shell::fits(pattern.as_bytes(), format!("{first}ore").as_bytes())).count() >= 13
}

/// Returns what follows one of these in front of a path.
fn behind<'a>(path: &'a str, beginnings: &[&str]) -> Option<&'a str> {
    let is_end = |rest: &&str| rest.is_empty() || rest.starts_with('/');
    let rest = |beginning: &&str| {
        // `${HOME:?}` and the like are what `${HOME}` is.
        let open =
            beginning.strip_suffix('}').and_then(|open| path.strip_prefix(open)).filter(|rest| rest.starts_with([':', '-', '?', '=']));
        let braced = open.and_then(|rest| rest.split_once('}')).map(|(_, rest)| rest);
        path.strip_prefix(beginning).filter(is_end).or(braced.filter(is_end))
    };
    beginnings.iter().find_map(rest)
}

/// Returns what follows the home folder in front of a path, also where it is that of a user by name.
fn behind_home(path: &str) -> Option<&str> {
    let of_somebody = || {
        let rest = path.strip_prefix('~')?;
        let end = rest.find('/').unwrap_or(rest.len());
        let is_name = rest[..end].bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-'));
        is_name.then(|| &rest[end..])
    };
    behind(path, &HOMES).or_else(of_somebody)
}

/// Returns whether a path says itself where it begins.
fn is_rooted(path: &str) -> bool {
    path.starts_with('/') || behind_home(path).is_some()
}

pub(super) fn resolve(path: &str, here: Option<&Place>) -> Option<Place> {
    let (mut place, rest) = match behind_home(path) {
        Some(rest) => (Place { is_home: true, parts: Vec::new() }, rest),
        None if path.starts_with('/') => (Place { is_home: false, parts: Vec::new() }, path),
        None => match behind(path, &TOP) {
            Some(rest) => (Place::project(), rest),
            None => match from_git(path, here?).or_else(|| from_here(path, here?)) {
                Some(found) => found,
                None => (here?.clone(), behind(path, &HERE).unwrap_or(path)),
            },
        },
    };
    place.follow(rest);
    place.through_process(here);
    Some(place)
}

/// Returns where a path begins that asks git for the folder of its own, and what follows that. Anywhere in the project it is that of all of it.
fn from_git<'a>(path: &'a str, here: &Place) -> Option<(Place, &'a str)> {
    let rest = behind(path, &GIT_FOLDER)?;
    let mut place = if here.is_in_project() { Place::project() } else { here.clone() };
    place.follow(".git");
    Some((place, rest))
}

/// Returns where a path begins that is written with the folder above, or with a part of the own one cut off, and what follows that.
fn from_here<'a>(path: &'a str, here: &Place) -> Option<(Place, &'a str)> {
    let mut place = here.clone();
    if let Some(rest) = behind(path, &ABOVE) {
        place.follow("..");
        return Some((place, rest));
    }
    let end = path.strip_prefix("${PWD%").filter(|_| !here.is_home)?.find('}')? + "${PWD%}".len();
    let (folder, rest) = path.split_at(end);
    let cut = with_value("PWD", &format!("/{}", here.parts.join("/")), folder)?;
    place.parts.clear();
    place.follow(&cut);
    Some((place, rest))
}

/// Returns a path from the root as it is written at its shortest: `//dev/./x` is `/dev/x`.
pub(super) fn absolute(path: &str) -> Option<String> {
    let place = resolve(path, None).filter(|place| !place.is_home)?;
    Some(format!("/{}", place.parts.join("/")))
}

/// Returns what a path names that nobody would want to lose whole: the root, the home folder, a folder of the system, the project, what
/// lies beyond it.
pub(super) fn precious(path: &str, ground: &Ground) -> Option<String> {
    if path.is_empty() {
        return None;
    }
    if !is_rooted(path) {
        let depth = match &ground.here {
            Some(here) if here.is_in_project() => Some(here.parts.len() - 1),
            Some(_) => None,
            None => Some(ground.depth),
        };
        if depth.is_some_and(|depth| climbs(behind(path, &HERE).unwrap_or(path), depth)) {
            return Some("what lies beyond the project".to_owned());
        }
    }
    let mut place = resolve(path, ground.here.as_deref())?;
    let has_stars = place.without_stars();
    place.precious(has_stars)
}

/// The same, but for the project itself where it is not named: `.` and `*` are what many programs are given.
pub(super) fn precious_by_name(path: &str, ground: &Ground) -> Option<String> {
    let is_project = |place: &mut Place| {
        place.without_stars();
        *place == Place::project()
    };
    let is_meant = is_rooted(path) || !resolve(path, ground.here.as_deref()).as_mut().is_some_and(is_project);
    precious(path, ground).filter(|_| is_meant)
}

/// Returns whether what is precious is a folder within one of the system: `/usr/lib`.
pub(super) fn is_within_system(what: &str) -> bool {
    what.matches('/').count() > 1
}

/// Returns whether a path asks for the folder that a command stands in, or for the project's own.
pub(super) fn is_folder_here(path: &str) -> bool {
    behind(path, &TOP).or_else(|| behind(path, &HERE)).is_some()
}

/// How a path stands for the whole project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whole {
    /// The folder itself.
    Folder,
    /// All that lies in it.
    Content,
}

/// Returns how a path stands for the whole project, if it certainly does.
pub(super) fn whole(path: &str, ground: &Ground) -> Option<Whole> {
    let mut place = resolve(path, ground.here.as_deref()).filter(|_| !path.is_empty())?;
    let has_stars = place.without_stars();
    let whole = if has_stars { Whole::Content } else { Whole::Folder };
    (place == Place::project()).then_some(whole)
}

/// Returns whether a path certainly leads out of the project.
pub(super) fn is_beyond(path: &str, ground: &Ground) -> bool {
    resolve(path, ground.here.as_deref()).is_some_and(|place| !place.is_in_project())
}

/// Returns whether a path leads to something outside of the project and of the folders for passing things.
pub(super) fn is_outside(path: &str, ground: &Ground) -> bool {
    if let Some(rest) = path.strip_prefix('/') {
        let path = rest.trim_start_matches('/');
        let is_in = |folder: &str| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        let at_top = path.trim_end_matches('/') == "workspace";
        return path.split('/').any(|part| part == "..") || !(at_top || is_in("workspace") || SCRATCH.iter().any(|folder| is_in(folder)));
    }
    match resolve(path, ground.here.as_deref()) {
        Some(place) if !place.is_home && !place.is_in_project() => {
            let path = place.parts.join("/");
            !SCRATCH.iter().any(|folder| path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
        }
        _ => precious_by_name(path, ground).is_some_and(|what| what != COMMITS),
    }
}

fn climbs(path: &str, depth: usize) -> bool {
    let mut at = depth as isize;
    for part in path.split('/') {
        match part {
            ".." => at -= 1,
            "" | "." => {}
            _ => at += 1,
        }
        if at < 0 {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::super::ground::grounds;
    use super::*;

    fn ground(here: &str) -> Ground {
        let script = podbay_code::shell::read("ls");
        grounds(&script, Some(here)).remove(0)
    }

    #[test]
    fn what_is_precious_is_known_by_its_path() {
        for path in [
            "/",
            "//",
            "/.",
            "/*",
            "/../",
            "/usr",
            "/etc/*",
            "/usr/lib",
            "/usr/local/*",
            "/var/lib",
            "/home/agent",
            "/home/agent/*",
            "/usr/..",
            "~",
            "~/",
            "~/*",
            "~/..",
            "$HOME",
            "${HOME}/*",
            "${HOME:?}/*",
            "${HOME:-/root}",
            "~root",
            "~me/*",
            "..",
            "../x",
            "a/../../b",
            "*",
            ".",
            "./",
            "./*",
            ".*",
            "*/",
            "**/*",
            "$PWD",
            "$(pwd)/*",
            "a/..",
            "/workspace/.",
        ] {
            assert!(precious(path, &ground("")).is_some(), "{path}");
        }
        for path in [
            "a",
            "./a",
            "a/../b",
            "target",
            "a/*",
            "*.o",
            "*/target",
            "/tmp/x",
            "/tmp/*",
            "/workspace/a",
            "/var/lib/apt/lists/*",
            "/usr/local/go",
            "/home/agent/.cache",
            "/var/cache/*",
            "~/.cache",
            "$HOME/x",
            "",
            "$X",
            "$PWD/a",
        ] {
            assert!(precious(path, &ground("")).is_none(), "{path}");
        }
        assert!(precious("../x", &ground("a")).is_none() && precious("../../x", &ground("a")).is_some());
        assert!(precious("*", &ground("a")).is_none() && precious("../*", &ground("/workspace/a")).is_some());
        assert!(precious("home", &ground("/")).is_some() && precious("*", &ground("/home/")).is_some());
        assert!(precious("x", &ground("/tmp")).is_none() && precious("*", &ground("/tmp")).is_none());
        assert!(precious_by_name("*", &ground("")).is_none() && precious_by_name("usr", &ground("/")).is_some());
    }
}
