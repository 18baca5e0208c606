//! Where a path leads by its letters: into the project, or out of it.

use std::collections::HashMap;

use crate::code::shell::Command;
use crate::code::shell::Script;
use crate::code::shell::Word;
use crate::code::shell::WordKind;
use crate::wire::BytesPath;
use crate::wire::protected_name;

/// Folders outside of the project that a command may do with as it likes.
const SCRATCH: [&str; 4] = ["tmp", "var/tmp", "dev/shm", "run/user"];
/// How the home folder is written.
const HOMES: [&str; 3] = ["~", "$HOME", "${HOME}"];
/// How the folder is written that a command runs in.
const HERE: [&str; 10] =
    ["$PWD", "${PWD}", "${PWD%/}", "~+", "$(pwd)", "`pwd`", "$(realpath .)", "$(readlink -f .)", "$(readlink -e .)", "$(pwd -P)"];
/// How the project's own folder is asked for.
const TOP: [&str; 2] = ["$(git rev-parse --show-toplevel)", "`git rev-parse --show-toplevel`"];

/// What the project's own folder is called.
pub(super) const PROJECT: &str = "the whole project";

/// Where a command stands, as far as that can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ground {
    /// How many folders below the project's top it may be at the most.
    depth: usize,
    /// The folder itself, where every change of folders up to there is known.
    here: Option<Place>,
}

/// A folder or file, from the root or the home folder.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    is_home: bool,
    parts: Vec<String>,
}

impl Ground {
    /// Returns the protected folder that it lies in, if it does.
    pub(super) fn secret(&self) -> Option<String> {
        let path = self.here.as_ref()?.parts.join("/");
        protected_name(&BytesPath::from_text(&path)).filter(|protected| protected.is_secret).map(|protected| protected.name)
    }
}

impl Place {
    fn project() -> Self {
        Self { is_home: false, parts: vec!["workspace".to_owned()] }
    }

    fn is_in_project(&self) -> bool {
        !self.is_home && self.parts.first().is_some_and(|first| first == "workspace")
    }

    fn follow(&mut self, path: &str) {
        for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
            if part != ".." {
                self.parts.push(part.to_owned());
            } else if self.parts.pop().is_none() && self.is_home {
                *self = Self { is_home: false, parts: vec!["home".to_owned()] };
            }
        }
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
        let is_any = |part: &String| {
            // `{a..z}*` is a list of letters, too.
            let letters = part.starts_with('{') && part.contains("..");
            let part = if letters { &part.replacen('{', "[", 1).replacen("..", "-", 1).replacen('}', "]", 1) } else { part };
            part.contains(['*', '?']) && (part.chars().all(|c| "*?.[]!^".contains(c)) || (part.contains('[') && takes_most(part)))
        };
        let n_parts = self.parts.len();
        while self.parts.pop_if(|part| is_any(part)).is_some() {}
        self.parts.len() < n_parts
    }

    /// Returns what nobody would want to lose whole, if this is it.
    fn precious(&self, has_stars: bool) -> Option<String> {
        match self.parts.as_slice() {
            [] if self.is_home => Some("the home folder".to_owned()),
            _ if self.is_home => None,
            [] => Some("the root folder".to_owned()),
            [one] if one == "workspace" => Some(PROJECT.to_owned()),
            [one] if one == "tmp" && has_stars => None,
            [one] => Some(format!("/{one}")),
            _ => None,
        }
    }
}

/// Returns whether a pattern with lists of letters takes names that begin with half of the alphabet: `[a-z]*`.
fn takes_most(pattern: &str) -> bool {
    let mut text = String::from("^");
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        // A `]` right behind the opening is a letter, and a class has one of its own.
        let list = rest.get(2..).and_then(|behind| Some(behind.find(']')? + 3)).filter(|_| c == '[');
        let list = list.map(|end| if rest[..end].contains("[:") && rest[end..].starts_with(']') { end + 1 } else { end });
        match (c, list) {
            ('[', Some(end)) => {
                let inside = &rest[1..end];
                text.push('[');
                text.push_str(&inside.strip_prefix('!').map_or_else(|| inside.to_owned(), |inside| format!("^{inside}")));
                rest = &rest[end..];
                continue;
            }
            ('*', _) => text.push_str(".*"),
            ('?', _) => text.push('.'),
            _ => text.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
        }
        rest = &rest[c.len_utf8()..];
    }
    let Ok(regex) = regex::RegexBuilder::new(&format!("{text}$")).size_limit(1 << 16).build() else { return false };
    ('a'..='z').filter(|first| regex.is_match(&format!("{first}ore"))).count() >= 13
}

/// Returns where each command of a script stands, one after the other; a shell within another begins where that one is.
pub(super) fn grounds(script: &Script, working_directory: Option<&str>) -> Vec<Ground> {
    let depth = depth(script, working_directory);
    let mut begin = Place::project();
    match working_directory {
        Some(path) if path.starts_with('/') => begin = resolve(path, None).unwrap_or(begin),
        Some(path) => begin.follow(path),
        None => {}
    }
    let mut stands: HashMap<usize, Option<Place>> = HashMap::from([(0, Some(begin))]);
    // What `env -C` starts, it starts elsewhere.
    let mut only_next: Option<Option<Place>> = None;
    // Where each shell was before, and where `pushd` came from.
    let mut before: HashMap<usize, Option<Place>> = HashMap::new();
    let mut pushed: HashMap<usize, Vec<Option<Place>>> = HashMap::new();
    let mut grounds = Vec::with_capacity(script.commands.len());
    // Behind a program that starts another one, `cd` would be a program of its own, which takes nobody along.
    let mut takes_along = true;
    for command in &script.commands {
        let takes_along = std::mem::replace(&mut takes_along, !command.starts_another || goes_along(command));
        let mut shell = command.shell;
        while !stands.contains_key(&shell) {
            shell = shell.checked_sub(1).and_then(|at| script.shells.get(at)).copied().unwrap_or_default();
        }
        let stand = stands.get(&shell).cloned().flatten();
        let here = only_next.take().unwrap_or_else(|| stand.clone());
        let after = match command.name() {
            Some("cd" | "pushd" | "popd") if !takes_along => stand,
            Some("cd") if command.arguments().first().is_some_and(goes_back) => {
                let gone = before.remove(&command.shell).or_else(|| before.get(&shell).cloned());
                // Where it was nowhere before it stays.
                gone.unwrap_or_else(|| here.clone())
            }
            Some("cd") => moved(command.arguments(), here.as_ref()),
            Some("pushd") => {
                pushed.entry(shell).or_default().push(here.clone());
                moved(command.arguments(), here.as_ref())
            }
            // Without a folder to go back to it fails.
            Some("popd") => pushed.get_mut(&shell).and_then(Vec::pop).unwrap_or_else(|| here.clone()),
            Some("env") => {
                only_next = chdir(command.arguments()).map(|to| to.known().and_then(|path| resolve(path, here.as_ref())));
                stand
            }
            _ => stand,
        };
        if matches!(command.name(), Some("cd" | "pushd" | "popd")) && takes_along {
            before.insert(command.shell, here.clone());
        }
        stands.insert(command.shell, after);
        grounds.push(Ground { depth, here });
    }
    grounds
}

/// Returns whether what a command starts is done by the shell itself.
fn goes_along(command: &Command) -> bool {
    matches!(command.name(), Some("command" | "builtin" | "eval" | "time" | "trap" | "alias"))
}

/// Returns whether a word is where the shell was before.
fn goes_back(word: &Word) -> bool {
    matches!(word.text.trim_end_matches('/'), "-" | "~-" | "$OLDPWD" | "${OLDPWD}")
}

/// Returns where `cd` leads.
fn moved(arguments: &[Word], here: Option<&Place>) -> Option<Place> {
    match arguments.iter().find(|word| word.text == "-" || !word.text.starts_with('-')) {
        None => Some(Place { is_home: true, parts: Vec::new() }),
        Some(word) if word.text == "-" => None,
        // The home folder is known however it is written.
        Some(word) if word.kind == WordKind::Known || HOMES.contains(&word.text.trim_end_matches('/')) => resolve(&word.text, here),
        Some(_) => None,
    }
}

/// Returns the folder that `env -C` names.
fn chdir(arguments: &[Word]) -> Option<Word> {
    let at = arguments.iter().position(|word| word.text == "-C" || word.text.starts_with("--chdir"))?;
    match arguments[at].text.split_once('=') {
        Some((_, path)) => Some(Word { text: path.to_owned(), ..arguments[at].clone() }),
        None => arguments.get(at + 1).cloned(),
    }
}

/// Returns how many folders below the project's top a command may be when it names a path with `..`.
///
/// The working directory and every `cd` of the script are counted together: that is the deepest it can be.
fn depth(script: &Script, working_directory: Option<&str>) -> usize {
    let below = |path: &str| {
        let parts = path.strip_prefix("/workspace").unwrap_or(path).split('/');
        parts.filter(|part| !part.is_empty() && *part != "." && *part != "..").count()
    };
    let changes = script.commands.iter().filter(|command: &&Command| matches!(command.name(), Some("cd" | "pushd")));
    let depths = changes.filter_map(|command| command.arguments().first()).map(|word| match word.kind {
        WordKind::Known => below(&word.text),
        // Anywhere.
        WordKind::Pattern | WordKind::Unknown => 100,
    });
    depths.sum::<usize>() + working_directory.map_or(0, below)
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

fn resolve(path: &str, here: Option<&Place>) -> Option<Place> {
    let (mut place, rest) = match behind_home(path) {
        Some(rest) => (Place { is_home: true, parts: Vec::new() }, rest),
        None if path.starts_with('/') => (Place { is_home: false, parts: Vec::new() }, path),
        None => match behind(path, &TOP) {
            Some(rest) => (Place::project(), rest),
            None => (here?.clone(), behind(path, &HERE).unwrap_or(path)),
        },
    };
    place.follow(rest);
    place.through_process(here);
    Some(place)
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
    let mut place = resolve(path, ground.here.as_ref())?;
    let has_stars = place.without_stars();
    place.precious(has_stars)
}

/// The same, but for the project itself where it is not named: `.` and `*` are what many programs are given.
pub(super) fn precious_by_name(path: &str, ground: &Ground) -> Option<String> {
    let is_project = |place: &mut Place| {
        place.without_stars();
        *place == Place::project()
    };
    let is_meant = is_rooted(path) || !resolve(path, ground.here.as_ref()).as_mut().is_some_and(is_project);
    precious(path, ground).filter(|_| is_meant)
}

/// Returns whether a path certainly leads out of the project.
pub(super) fn is_beyond(path: &str, ground: &Ground) -> bool {
    resolve(path, ground.here.as_ref()).is_some_and(|place| !place.is_in_project())
}

/// Returns whether a path leads to something outside of the project and of the folders for passing things.
pub(super) fn is_outside(path: &str, ground: &Ground) -> bool {
    if let Some(rest) = path.strip_prefix('/') {
        let path = rest.trim_start_matches('/');
        let is_in = |folder: &str| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        let at_top = path.trim_end_matches('/') == "workspace";
        return path.split('/').any(|part| part == "..") || !(at_top || is_in("workspace") || SCRATCH.iter().any(|folder| is_in(folder)));
    }
    match resolve(path, ground.here.as_ref()) {
        Some(place) if !place.is_home && !place.is_in_project() => {
            let path = place.parts.join("/");
            !SCRATCH.iter().any(|folder| path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
        }
        _ => precious_by_name(path, ground).is_some(),
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
    use super::*;

    fn ground(here: &str) -> Ground {
        let script = crate::code::shell::read("ls");
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
