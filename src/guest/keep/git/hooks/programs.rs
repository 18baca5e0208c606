//! Which settings of git name programs that it runs, or files that lead it to some, and which paths may be meant by what they say.

use std::collections::BTreeSet;

use super::All;
use super::MAX_SAID;
use super::config::Entry;
use super::is_in_git;
use super::python;
use crate::guest::keep::git::Kind;
use crate::guest::root::join;
use crate::guest::root::split;

/// Longest value that is looked through, and how many paths one may name.
const MAX_VALUE: usize = 20_000;
const MAX_PATHS: usize = 300;
/// How many names without their ends a command or a script may have, and how often it may go to another folder.
const MAX_COMPLETED: usize = 200;
const MAX_MOVES: usize = 60;
/// Longest name that is looked at.
const MAX_NAME: usize = 4096;
/// How many short options stand together before the value of the last.
const MAX_OPTIONS: usize = 6;

/// What the names of settings end in, of whatever section, whose values git gives to a shell or starts: `gpg.ssh.defaultKeyCommand`,
/// `filter.x.process`, `merge.x.driver`, `credential.helper`, those of later versions and of programs beside git among them.
const PROGRAM_ENDS: [&str; 16] = [
    "askpass",
    "clean",
    "cmd",
    "command",
    "difffilter",
    "driver",
    "editor",
    "external",
    "helper",
    "hook",
    "pager",
    "process",
    "program",
    "smudge",
    "textconv",
    "tunnel",
];

/// Others that do, with their sections; `*`: all keys.
const PROGRAMS: [(&str, &str); 19] = [
    ("browser", "path"),
    ("core", "fsmonitor"),
    ("core", "gitproxy"),
    ("core", "virtualfilesystem"),
    ("difftool", "path"),
    ("instaweb", "httpd"),
    ("instaweb", "modulepath"),
    ("lfs", "args"),
    ("lfs", "path"),
    ("man", "path"),
    ("mergetool", "path"),
    ("pager", "*"),
    ("remote", "receivepack"),
    ("remote", "uploadpack"),
    ("sendemail", "smtpserver"),
    ("submodule", "update"),
    ("svn", "authorsprog"),
    ("web", "browser"),
    ("alias", "*"),
];

/// Settings whose values are one path: attributes lead to programs, and hooks are copied from the folder.
const FILES: [(&str, &str); 2] = [("core", "attributesfile"), ("init", "templatedir")];

/// Words of a git command that have it run others; the value of an option may be a part of its word.
const RUNNING: [&[u8]; 6] = [b"run", b"foreach", b"filter-branch", b"send-email", b"ext", b"-u"];
const RUNNING_STARTS: [&[u8]; 14] = [
    b"-c",
    b"-x",
    b"-O",
    b"--exec",
    b"--extcmd",
    b"--config",
    b"--open-files-in-pager",
    b"--upload-pack",
    b"--receive-pack",
    b"--template",
    b"--smtp-server",
    b"--module-path",
    b"--httpd",
    b"--authors-prog",
];
const RUNNING_ENDS: [&[u8]; 2] = [b"-filter", b"-cmd"];

/// What begins an address that is a command.
const COMMAND: &[u8] = b"ext::";

/// Programs that take a file's name without its end, and the ends that they try.
const COMPLETING: [&[u8]; 8] = [b"node", b"nodejs", b"bun", b"deno", b"electron", b"ruby", b"ts-node", b"tsx"];
const COMPLETED: [&str; 7] = [".js", ".cjs", ".mjs", ".json", ".node", ".rb", ".ts"];

/// What of a folder interpreters start that are given it.
const STARTED: [&[u8]; 2] = [b"__main__.py", b"index.js"];

/// Others that take the name of a file that they run.
const RUNNERS: [&[u8]; 12] = [b"source", b"sh", b"bash", b"dash", b"ash", b"zsh", b"ksh", b"fish", b"perl", b"php", b"lua", b"tclsh"];

/// What stands before the name of a folder in which a command goes on.
const MOVING: [&[u8]; 5] = [b"cd", b"chdir", b"pushd", b"-C", b"--chdir"];

/// How many folders commands go to, or name, are looked into for what else they name.
const MAX_FOLDERS: usize = 80;

/// In how many places a command may be that went from one folder to another.
const MAX_PLACES: usize = 20;

/// Where programs of the machine are: a path in there is not one to the project in disguise.
const SYSTEM: [&[u8]; 9] = [b"/bin/", b"/dev/", b"/etc/", b"/lib/", b"/nix/", b"/proc/", b"/sbin/", b"/snap/", b"/usr/"];

impl All<'_> {
    /// Counts the files of a working tree that settings have git run. They are named where they are new or changed, and not read-only: what the
    /// person has git run is as often as not what they work on. `file` is where the settings stand.
    pub(super) fn programs(&mut self, tree: &[u8], entries: &[Entry], file: &[u8]) {
        for words in entries.iter().map(said).filter(|words| !words.is_nothing()) {
            self.commands(tree, tree, &words, file);
        }
    }

    /// Counts what commands name that start in a working tree, where it `counts`, and returns the files among it. `own` is the folder of the
    /// script that they stand in, and `source` the file.
    pub(super) fn named(
        &mut self,
        tree: &[u8],
        own: &[u8],
        words: &Words,
        source: &[u8],
        counts: impl Fn(&Self, &[u8]) -> bool,
    ) -> Vec<Vec<u8>> {
        let mut folders = vec![tree.to_vec()];
        if own != tree {
            folders.push(own.to_vec());
        }
        let n_starts = folders.len();
        let mut is_cut = words.is_cut | !self.go_on_in(&mut folders, &words.moves);
        // Where they start or go to, or their script lies, what is not there yet counts as well; and what they name may be a folder that they
        // go to in another way.
        let n_sure = folders.len();
        for one in &words.said {
            if let Said::Path(said) | Said::Word(said) = one
                && let Some(path) = self.place_of(tree, said)
                && self.project.kind(&path) == Some(Kind::Folder)
                && path != tree
            {
                is_cut |= !add_folder(&mut folders, path);
            }
        }
        let mut found = Vec::new();
        for one in &words.said {
            match one {
                Said::Modules(folder) => folders[..n_starts].iter().for_each(|from| self.module_folder(from, folder)),
                Said::Path(said) => {
                    let places = folders.iter().enumerate().filter_map(|(at, from)| Some((self.place_of(from, said)?, at < n_sure)));
                    found.extend(places);
                }
                Said::Word(word) => found.extend(folders.iter().filter_map(|from| Some((self.place_of(from, word)?, false)))),
            }
        }
        found.retain(|(path, _)| counts(self, path));
        for (path, is_path) in &found {
            self.program(path, *is_path);
        }
        if is_cut || self.programs.len() > MAX_SAID || self.deeper.len() > MAX_SAID {
            self.cut(source.to_vec());
        }
        let is_file = |path: &Vec<u8>| matches!(self.project.kind(path), Some(Kind::File | Kind::Link));
        found.into_iter().map(|(path, _)| path).filter(is_file).collect()
    }

    /// Adds the folders that commands go to: from where they start, whether they are there yet or not, and from where the move before led, unless
    /// that is there and holds no such folder. Returns whether there was room for all.
    fn go_on_in(&self, folders: &mut Vec<Vec<u8>>, moves: &[Vec<Vec<u8>>]) -> bool {
        let starts = folders.clone();
        let places = |from: &[Vec<u8>], spelled: &[Vec<u8>]| -> Vec<(bool, Vec<u8>)> {
            let to = |from: &Vec<u8>| {
                let is_there = self.project.kind(from) == Some(Kind::Folder);
                spelled.iter().filter_map(move |said| Some((is_there, self.place_of(from, said)?))).collect::<Vec<_>>()
            };
            from.iter().flat_map(to).collect()
        };
        let mut has_room = true;
        for spelled in moves {
            for (_, place) in places(&starts, spelled) {
                has_room &= add_folder(folders, place);
            }
        }
        let mut here: Vec<Vec<u8>> = Vec::new();
        for spelled in moves {
            let further = places(&here, spelled).into_iter().filter(|(_, place)| !is_in_git(place));
            let further =
                further.filter(|(is_there, place)| !is_there || self.project.kind(place) == Some(Kind::Folder)).map(|(_, place)| place);
            here = further.chain(places(&starts, spelled).into_iter().map(|(_, place)| place)).collect();
            here.sort_unstable();
            here.dedup();
            here.truncate(MAX_PLACES);
            for place in &here {
                has_room &= add_folder(folders, place.clone());
            }
        }
        has_room
    }

    fn place_of(&self, from: &[u8], said: &[u8]) -> Option<Vec<u8>> {
        self.place(from, said).filter(|path| !path.is_empty())
    }

    fn place(&self, from: &[u8], said: &[u8]) -> Option<Vec<u8>> {
        self.meant(from, said).or_else(|| self.by_another_way(said).filter(|_| !is_system(said)))
    }

    /// Counts a folder that python looks for modules in; the working tree's own is where a command starts.
    fn module_folder(&mut self, from: &[u8], folder: &[u8]) {
        let path = self.place(from, folder).filter(|path| !is_in_git(path));
        self.modules.extend(path);
    }

    /// `is_path`: whether it counts also where nothing is yet. Of a folder what programs start in it does, and not all else.
    fn program(&mut self, path: &[u8], is_path: bool) {
        match self.project.kind(path) {
            Some(Kind::Folder) => STARTED.iter().for_each(|name| self.say_program(join(path, name))),
            Some(Kind::File | Kind::Link) => self.say_program(path.to_vec()),
            None if is_path => self.say_program(path.to_vec()),
            Some(Kind::Special) | None => {}
        }
    }

    fn say_program(&mut self, path: Vec<u8>) {
        if !is_in_git(&path) {
            if self.is_deeper {
                self.deeper.insert(path)
            } else {
                self.programs.insert(path)
            };
        }
    }
}

/// What may be a path in what a setting says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Said {
    /// Is a folder that python looks for modules in; empty: the one that it starts in.
    Modules(Vec<u8>),
    /// Is one, whether something is there or not.
    Path(Vec<u8>),
    /// Is none unless a file has this name.
    Word(Vec<u8>),
}

/// What a command or a script may name.
#[derive(Debug, Default)]
pub(super) struct Words {
    pub(super) said: BTreeSet<Said>,
    /// Folders in which it goes on, in their order, each as it may be spelled.
    pub(super) moves: Vec<Vec<Vec<u8>>>,
    /// It names more than is looked at.
    pub(super) is_cut: bool,
}

impl Words {
    fn is_nothing(&self) -> bool {
        self.said.is_empty() && !self.is_cut
    }

    fn add(&mut self, one: Said, most: usize) {
        let is_known = self.said.contains(&one);
        if !is_known && self.said.len() < most {
            self.said.insert(one);
        } else {
            self.is_cut |= !is_known;
        }
    }
}

/// Adds a folder where there is room for it; returns whether it is there then.
fn add_folder(folders: &mut Vec<Vec<u8>>, folder: Vec<u8>) -> bool {
    let is_known = folders.contains(&folder);
    if !is_known && folders.len() < MAX_FOLDERS {
        folders.push(folder);
        return true;
    }
    is_known
}

/// Returns what a setting says of files that git runs, or obeys so that it runs some.
fn said(entry: &Entry) -> Words {
    let Some(value) = entry.value.as_deref().filter(|value| !value.is_empty()) else { return Words::default() };
    let fits = |(section, key): &(&str, &str)| entry.section == *section && (*key == "*" || entry.key == *key);
    if FILES.iter().any(fits) {
        return Words { said: BTreeSet::from([Said::Path(value.to_vec())]), ..Words::default() };
    }
    // `url.BASE.insteadOf` has what is put in the other's place in its name.
    let base = entry.subsection.as_deref().filter(|base| entry.section == "url" && base.starts_with(COMMAND));
    if let Some(command) = base.or_else(|| value.trim_ascii_start().starts_with(COMMAND).then_some(value)) {
        return within(command);
    }
    let is_program = PROGRAMS.iter().any(fits) || PROGRAM_ENDS.iter().any(|end| entry.key.ends_with(end));
    let starts = match entry.section.as_str() {
        "alias" => value.trim_ascii_start().starts_with(b"!") || pieces(value).any(|(_, piece)| is_running(piece)),
        "submodule" if entry.key == "update" => value.starts_with(b"!"),
        _ => true,
    };
    if is_program && starts { within(value) } else { Words::default() }
}

/// Looks through a command in settings, unless it is too long for that.
fn within(value: &[u8]) -> Words {
    if value.len() > MAX_VALUE { Words { is_cut: true, ..Words::default() } } else { words(value, MAX_PATHS) }
}

/// Returns whether a word of a git command has it run another one.
fn is_running(word: &[u8]) -> bool {
    RUNNING.contains(&word)
        || RUNNING_STARTS.iter().any(|start| word.starts_with(start))
        || word.starts_with(b"--") && RUNNING_ENDS.iter().any(|end| word.ends_with(end))
}

/// Returns whether a path is one of the machine's own.
fn is_system(path: &[u8]) -> bool {
    SYSTEM.iter().any(|folder| path.starts_with(folder))
}

/// Returns what in a command, or in the lines of a script, may be a path: `most` of it in the order in which it stands there. It is not read as a
/// shell does, which may come to run other commands of its own in turn: what is in quotes counts as a whole and in its parts, and what follows a
/// variable counts from the top of the working tree, where git runs it, and from any folder above the project, as from the person's own.
pub(super) fn words(value: &[u8], most: usize) -> Words {
    let mut words = Words::default();
    for folder in python::folders(value) {
        words.add(Said::Modules(folder), most);
    }
    let value = without_breaks(value);
    // A command of one line alone may be a name with blanks in it.
    let whole = Some(value.trim_ascii()).filter(|whole| whole.contains(&b' ') && !whole.contains(&b'\n') && whole.len() <= MAX_NAME);
    if let Some(whole) = whole {
        words.add(Said::Word(whole.to_vec()), most);
    }
    let mut completed = BTreeSet::new();
    let has_program = pieces(&value).any(|(_, piece)| completes(split(piece).1));
    let mut is_first = true;
    for line in value.split(|byte| *byte == b'\n') {
        let mut in_line: Vec<Said> = blanks(line).iter().flat_map(|name| of_name(name)).collect();
        let (mut last, mut runs): (&[u8], bool) = (b"", false);
        for (before, piece) in pieces(line) {
            let name = split(piece).1;
            let is_known = !before.is_some_and(|byte| b"${(".contains(&byte));
            match piece {
                [b'-', rest @ ..] => in_line.extend(attached(rest)),
                _ if last == b"-m" => in_line.extend(module(piece)),
                _ if piece.contains(&b'/') => in_line.extend(spelled(before, piece).into_iter().map(Said::Path)),
                // What stands first is looked for on the person's own path.
                _ if is_first => {}
                _ if runs && is_known || piece.iter().skip(1).rev().skip(1).any(|byte| *byte == b'.') => {
                    in_line.push(Said::Path(piece.to_vec()));
                }
                _ => in_line.push(Said::Word(piece.to_vec())),
            }
            // Options may stand between a program and the name of what it runs, but for those that have a command behind them.
            runs = RUNNERS.contains(&name) || completes(name) || runs && piece.starts_with(b"-") && !piece.contains(&b'c');
            (last, is_first) = (piece, false);
        }
        // A path may stand anywhere before the program; a word that is one stands beside it.
        let is_beside = pieces(line).any(|(_, piece)| completes(split(piece).1));
        completed.extend(in_line.iter().filter(|one| is_beside || has_program && matches!(one, Said::Path(_))).cloned());
        for one in in_line {
            words.add(one, most);
        }
        for spelled in moves(line) {
            words.is_cut |= words.moves.len() == MAX_MOVES;
            if words.moves.len() < MAX_MOVES {
                words.moves.push(spelled);
            }
        }
    }
    // They are ours, and take no place of what stands there.
    words.is_cut |= completed.len() > MAX_COMPLETED;
    for one in completed.into_iter().take(MAX_COMPLETED) {
        let with = |name: &[u8], end: &str| [name, end.as_bytes()].concat();
        words.said.extend(COMPLETED.iter().filter_map(|end| match &one {
            Said::Path(path) => Some(Said::Path(with(path, end))),
            Said::Word(word) => Some(Said::Word(with(word, end))),
            Said::Modules(_) => None,
        }));
    }
    words
}

/// Returns whether this is the name of a program that takes files without the ends of their names, or of a variable that has it.
fn completes(name: &[u8]) -> bool {
    let is_of_name = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'-';
    let end = name.iter().position(|byte| !is_of_name(byte)).unwrap_or(name.len());
    // `node.name` is a field of something.
    COMPLETING.contains(&name[..end].to_ascii_lowercase().as_slice()) && name.get(end) != Some(&b'.')
}

/// Has lines that go on in the next one be one.
fn without_breaks(value: &[u8]) -> Vec<u8> {
    let mut joined = Vec::with_capacity(value.len());
    for line in value.split_inclusive(|byte| *byte == b'\n') {
        joined.extend_from_slice(line.strip_suffix(b"\\\n").unwrap_or(line));
    }
    joined
}

/// Returns which paths a part of a command with a slash in it may be, by what stands before it: what a variable is nobody knows.
pub(super) fn spelled(before: Option<u8>, piece: &[u8]) -> Vec<Vec<u8>> {
    let (first, rest) = piece.split_at(memchr::memchr(b'/', piece).unwrap_or_default());
    let is_variable = before == Some(b'$') && !first.is_empty();
    let mut paths = Vec::new();
    if is_variable || first.is_empty() && before.is_some_and(|byte| b")}\"'`".contains(&byte)) {
        paths.extend(behind_variable(rest));
    }
    if !is_variable {
        paths.push(piece.to_vec());
    }
    paths
}

/// Returns which paths may be meant by what stands behind a variable, with its slash: that may be the top of the working tree, the person's own
/// folder, or one below the top, as that of git is, from which the path leads up again.
fn behind_variable(rest: &[u8]) -> Vec<Vec<u8>> {
    let mut paths = vec![rest[1..].to_vec(), [b"~", rest].concat()];
    let mut parts: Vec<&[u8]> = Vec::new();
    let mut leads_up = false;
    for part in rest.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b".")) {
        match part {
            b".." => leads_up |= parts.pop().is_none(),
            part => parts.push(part),
        }
    }
    if leads_up {
        paths.push(parts.join(&b'/'));
    }
    paths
}

/// Returns what a name may be that has blanks in it, or stands alone as where a command goes.
fn spelled_whole(name: &[u8]) -> Vec<Vec<u8>> {
    let Some(at) = name.iter().rposition(|byte| b"$)}`".contains(byte)) else { return vec![name.to_vec()] };
    let rest = &name[at + 1..];
    match memchr::memchr(b'/', rest) {
        Some(slash) if slash == 0 || name[at] == b'$' => behind_variable(&rest[slash..]),
        // What a variable has as a whole nobody knows.
        None if name[at] == b'$' || rest.is_empty() => Vec::new(),
        _ => vec![rest.to_vec()],
    }
}

fn of_name(name: &[u8]) -> Vec<Said> {
    if !name.contains(&b'/') {
        return vec![Said::Word(name.to_vec())];
    }
    // What stands before it may be a variable with quotes of its own.
    let behind = if name.starts_with(b"/") { behind_variable(name) } else { Vec::new() };
    behind.into_iter().chain(spelled_whole(name)).map(Said::Path).collect()
}

/// Returns the folders in which the commands of a line go on, each as it may be spelled.
fn moves(line: &[u8]) -> impl Iterator<Item = Vec<Vec<u8>>> {
    let behind = placed(line).filter(|(_, piece)| MOVING.contains(piece)).map(|(start, piece)| &line[start + piece.len()..]);
    behind.map(argument).filter(|argument| !argument.is_empty()).map(|argument| spelled_whole(&argument)).filter(|all| !all.is_empty())
}

/// Returns the first argument of a command that is no option, without its quotes.
fn argument(rest: &[u8]) -> Vec<u8> {
    let mut word = Vec::new();
    let mut open: Vec<u8> = Vec::new();
    let mut is_escaped = false;
    for byte in rest.iter().copied().take(MAX_NAME) {
        let is_end = open.is_empty() && !is_escaped && (byte.is_ascii_whitespace() || b";&|)=".contains(&byte));
        if is_end && (word.is_empty() || word.starts_with(b"-")) && !b";&|)".contains(&byte) {
            word.clear();
            continue;
        }
        match byte {
            _ if is_end => break,
            b'\\' if !is_escaped => {
                is_escaped = true;
                continue;
            }
            b'"' | b'\'' | b'`' | b')' if open.last() == Some(&byte) => {
                open.pop();
                word.extend(b"`)".contains(&byte).then_some(byte));
            }
            // In single quotes all stands for itself, and so does one in double quotes.
            _ if open.last() == Some(&b'\'') || byte == b'\'' && open.last() == Some(&b'"') => word.push(byte),
            b'"' | b'\'' => open.push(byte),
            b'(' | b'`' => {
                open.push(if byte == b'(' { b')' } else { byte });
                word.push(byte);
            }
            _ => word.push(byte),
        }
        is_escaped = false;
    }
    if word.starts_with(b"-") { Vec::new() } else { word }
}

/// Returns what may be a path in a word of short options, behind its dash: the value of one may follow it without a blank.
fn attached(options: &[u8]) -> Vec<Said> {
    // What a long one has behind `=` is a word of its own.
    if options.len() < 2 || options.starts_with(b"-") {
        return Vec::new();
    }
    let ends = (1..options.len().min(MAX_OPTIONS)).map(|at| &options[at..]);
    let mut said: Vec<Said> = ends.map(|end| Said::Word(end.to_vec())).collect();
    if let Some(at) = options.iter().take(MAX_OPTIONS).position(|byte| *byte == b'm') {
        said.extend(module(&options[at + 1..]).into_iter().map(|one| match one {
            Said::Path(path) if at > 0 => Said::Word(path),
            one => one,
        }));
    }
    if options.contains(&b'/') {
        said.push(Said::Path(options[1..].to_vec()));
    }
    said
}

/// Returns the parts of a command between what no plain word has in it, each with what stands before it.
pub(super) fn pieces(value: &[u8]) -> impl Iterator<Item = (Option<u8>, &[u8])> {
    placed(value).map(|(start, piece)| (start.checked_sub(1).map(|before| value[before]), piece))
}

/// The same with where each begins.
fn placed(value: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let is_border = |byte: &u8| byte.is_ascii_whitespace() || b"\"'`;|&()<>{}=:,!$\\".contains(byte);
    let mut at = 0;
    value.split(is_border).filter_map(move |piece| {
        let start = at;
        at += piece.len() + 1;
        (!piece.is_empty()).then_some((start, piece))
    })
}

/// Returns what in a line stands in quotes, or behind backslashes, and has blanks: names may have some.
fn blanks(line: &[u8]) -> Vec<Vec<u8>> {
    let mut found: Vec<Vec<u8>> = Vec::new();
    for quote in *b"\"'" {
        let parts: Vec<&[u8]> = line.split(|byte| *byte == quote).collect();
        // Where one stands for itself, as in "don't", nobody knows which are a pair.
        let step = if parts.len().is_multiple_of(2) { 1 } else { 2 };
        let inner = parts.iter().take(parts.len() - 1).skip(1).step_by(step);
        found.extend(inner.filter(|part| part.contains(&b' ') && part.len() <= MAX_NAME).map(|part| part.to_vec()));
    }
    let mut word = Vec::new();
    let mut has_blank = false;
    let mut bytes = line.iter().copied().chain([b' ']);
    while let Some(byte) = bytes.next() {
        if byte == b'\\' {
            let escaped = bytes.next();
            has_blank |= escaped == Some(b' ');
            word.extend(escaped);
        } else if byte.is_ascii_whitespace() || b"\"'`;|&()<>".contains(&byte) {
            if has_blank && word.len() <= MAX_NAME {
                found.push(word.clone());
            }
            word.clear();
            has_blank = false;
        } else {
            word.push(byte);
        }
    }
    found
}

/// Returns the files that `python -m` runs.
fn module(name: &[u8]) -> Vec<Said> {
    let path: Vec<u8> = name.iter().map(|byte| if *byte == b'.' { b'/' } else { *byte }).collect();
    [&b".py"[..], b"/__main__.py", b"/__init__.py"].iter().map(|end| Said::Path([&path, *end].concat())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paths; one with a blank and no slash is one where there is such a file.
    #[track_caller]
    fn check(name: &str, value: &str, paths: &[&str]) {
        let (section, rest) = name.split_once('.').expect("a section");
        let (subsection, key) = rest.rsplit_once('.').map_or((None, rest), |(subsection, key)| (Some(subsection.as_bytes()), key));
        let entry = Entry::new(section, subsection, &key.to_lowercase(), value.as_bytes());
        let said = said(&entry).said;
        for path in paths {
            let expected = path.as_bytes().to_vec();
            let expected = if path.contains(' ') && !path.contains('/') { Said::Word(expected) } else { Said::Path(expected) };
            assert!(said.contains(&expected), "{name} = {value}: {path} is not in {said:?}");
        }
        let n_paths = said.iter().filter(|one| matches!(one, Said::Path(path) if !path.contains(&b' '))).count();
        assert_eq!(n_paths, paths.iter().filter(|path| !path.contains(' ')).count(), "{name} = {value}: {said:?}");
    }

    #[test]
    fn settings_that_name_programs_are_known() {
        for name in [
            "core.fsmonitor",
            "core.sshCommand",
            "core.pager",
            "core.editor",
            "sequence.editor",
            "pager.log",
            "gpg.program",
            "gpg.ssh.program",
            "gpg.ssh.defaultKeyCommand",
            "filter.a.clean",
            "filter.a.b.smudge",
            "filter.a.process",
            "diff.external",
            "diff.a.command",
            "diff.a.textconv",
            "merge.a.driver",
            "mergetool.a.cmd",
            "difftool.a.path",
            "credential.helper",
            "credential.https://example.org.helper",
            "interactive.diffFilter",
            "trailer.sign.cmd",
            "uploadpack.packObjectsHook",
            "gc.recentObjectsHook",
            "remote.origin.uploadpack",
            "tar.xz.command",
            "sendemail.toCmd",
            "hook.lint.command",
            "core.attributesFile",
            "init.templateDir",
        ] {
            check(name, "tools/run", &["tools/run"]);
        }
        check("alias.x", "!tools/run", &["tools/run"]);
        check("alias.x", "-c core.pager=tools/run log", &["core.pager", "tools/run"]);
        for running in [
            "grep -O",
            "grep --open-files-in-pager=",
            "fetch --upload-pack ",
            "filter-branch --tree-filter ",
            "send-email --to-cmd=",
            "rebase -x",
            "clone --template ",
            "fetch ext::",
        ] {
            check("alias.x", &format!("{running}tools/run"), &["tools/run"]);
        }
        for name in ["svn.authorsProg", "instaweb.modulePath"] {
            check(name, "tools/run", &["tools/run"]);
        }
        for name in ["branch.z.remote", "remote.a.pushurl", "submodule.a.url", "url.ext::tools/run .insteadOf"] {
            check(name, "ext::tools/run x", &["tools/run"]);
        }
        check("url.ext::tools/run .insteadOf", "https://example.org/", &["tools/run"]);
        check("submodule.a.update", "!tools/run", &["tools/run"]);
        check("remote.a.url", "ext::tools/run %S", &["tools/run"]);
        for name in
            ["alias.x", "remote.origin.url", "submodule.a.update", "submodule.a.url", "branch.main.merge", "core.worktree", "user.name"]
        {
            check(name, "tools/run", &[]);
        }
    }

    #[test]
    fn paths_are_found_in_whatever_a_command_looks_like() {
        let check = |value: &str, paths: &[&str]| check("filter.a.clean", value, paths);
        check("./tools/clean.sh %f", &["./tools/clean.sh"]);
        check("python3 clean.py --rules=rules/a", &["clean.py", "rules/a"]);
        check("sh -c 'tools/x \"$1\"' -", &["tools/x"]);
        check("\"$(git rev-parse --show-toplevel)/tools/x\"", &["/tools/x", "tools/x", "~/tools/x"]);
        check("$PWD/tools/x && ${TOP}/y/z", &["tools/x", "~/tools/x", "/y/z", "y/z", "~/y/z"]);
        check("awk -ft/show.awk -nft/other.awk", &["t/show.awk", "ft/other.awk"]);
        check("ssh -F./t/config", &["./t/config"]);
        check("python3 -mt.p.x", &["t/p/x.py", "t/p/x/__main__.py", "t/p/x/__init__.py"]);
        let completed = ["t/x", "t/x.js", "t/x.cjs", "t/x.mjs", "t/x.json", "t/x.node", "t/x.rb", "t/x.ts"];
        for command in ["node t/x", "node -rt/x", "/usr/bin/ruby t/x"] {
            let paths = said(&Entry::new("filter", Some(b"a"), "clean", command.as_bytes())).said;
            for path in completed {
                assert!(paths.contains(&Said::Path(path.as_bytes().to_vec())), "{command}: {path} is not in {paths:?}");
            }
        }
        check("\"my tools/run it\" %f", &["my tools/run it", "tools/run"]);
        check("my\\ tools/run", &["my tools/run", "tools/run"]);
        check("python -m tools.clean", &["tools/clean.py", "tools/clean/__main__.py", "tools/clean/__init__.py"]);
        check("PATH=bin/x:$PATH less -R", &["bin/x"]);
        check("less", &[]);
        check("true", &[]);
        check("", &[]);
    }
}
