//! What in a command, or in the lines of a script, may be a path, and where it goes on.

use std::collections::BTreeSet;

use super::python;
use crate::root::split;

/// How many names without their ends a command or a script may have, and how often it may go to another folder.
const MAX_COMPLETED: usize = 200;
const MAX_MOVES: usize = 60;
/// Longest name that is looked at.
const MAX_NAME: usize = 4096;
/// How many short options stand together before the value of the last.
const MAX_OPTIONS: usize = 6;

/// Programs that take a file's name without its end, and the ends that they try.
const COMPLETING: [&[u8]; 8] = [b"node", b"nodejs", b"bun", b"deno", b"electron", b"ruby", b"ts-node", b"tsx"];
const COMPLETED: [&str; 7] = [".js", ".cjs", ".mjs", ".json", ".node", ".rb", ".ts"];

/// Others that take the name of a file that they run, beside python.
pub(super) const RUNNERS: [&[u8]; 12] =
    [b"source", b"sh", b"bash", b"dash", b"ash", b"zsh", b"ksh", b"fish", b"perl", b"php", b"lua", b"tclsh"];

/// What stands before the name of a folder in which a command goes on.
const MOVING: [&[u8]; 5] = [b"cd", b"chdir", b"pushd", b"-C", b"--chdir"];

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
    pub(super) fn is_nothing(&self) -> bool {
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
