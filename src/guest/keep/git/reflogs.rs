//! Reflogs, of which a session gets the ends.

use std::collections::BTreeSet;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;

use super::refs::Head;
use super::refs::object;
use super::stash;
use super::untrusted_folder::FileKind;
use super::untrusted_folder::UntrustedFolder;
use crate::root::join;
use podbay_wire::Fault;

/// Most bytes that are copied from the end of a log, and of all logs.
const MAX_LOG: usize = 256 * 1024;
const MAX_LOGS: usize = 8 << 20;
const MAX_LOG_FILES: usize = 200;
const MAX_LOG_FILE: u64 = 256 << 20;
/// Most bytes that are read from the end of a session's log.
const MAX_READ: u64 = 4 << 20;

/// The log of `HEAD`, relative to the private folder of a worktree.
pub(super) const HEAD: &[u8] = b"logs/HEAD";

/// Copies the logs in these folders of a repository, each once.
pub(crate) fn copy(
    real: &UntrustedFolder,
    session: &UntrustedFolder,
    tops: &[Vec<u8>; 2],
    head: &Head,
) -> Result<(), Fault> {
    let mut room = MAX_LOGS;
    copy_below(real, session, &tops[0], head, &mut room)?;
    if tops[0] == tops[1] {
        Ok(())
    } else {
        copy_below(real, session, &tops[1], head, &mut room)
    }
}

/// Copies the ends of logs: of `HEAD`, of the stash, and of all branches, or of the checked-out one
/// if there are very many.
fn copy_below(
    real: &UntrustedFolder,
    session: &UntrustedFolder,
    top: &[u8],
    head: &Head,
    room: &mut usize,
) -> Result<(), Fault> {
    let mut paths = vec![top.to_vec()];
    let mut files = Vec::new();
    while let Some(path) = paths.pop() {
        for (name, kind) in real.names(&path).unwrap_or_default() {
            let path = join(&path, &name);
            match kind {
                FileKind::Folder => paths.push(path),
                FileKind::File => files.push(path),
                FileKind::Link | FileKind::Special => {}
            }
        }
        if files.len() + paths.len() > MAX_LOG_FILES {
            let branch = if let Head::Branch { name } = head {
                name.as_bytes()
            } else {
                b"HEAD"
            };
            files = [b"HEAD", branch, stash::NAME]
                .map(|name| join(top, name))
                .to_vec();
            files.dedup();
            break;
        }
    }
    for path in files {
        let is_stash = path.ends_with(stash::LOG);
        let Ok(Some(text)) = real.read(&path, MAX_LOG_FILE) else {
            continue;
        };
        let text = tail(
            &text,
            if is_stash {
                stash::MAX_LOG as usize
            } else {
                MAX_LOG
            },
        );
        if text.len() <= *room || is_stash {
            *room = room.saturating_sub(text.len());
            session.write(&path, text)?;
        }
    }
    Ok(())
}

/// Returns the commits of a detached HEAD that were left for something else, each once, the last
/// first. Those that `git rebase`, `git commit --amend` and `git reset` replaced have other
/// messages in the log.
pub(super) fn left_behind(folder: &UntrustedFolder, log: &[u8]) -> Vec<String> {
    let text = end_of(folder, log).unwrap_or_default();
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    let amended: BTreeSet<String> = lines
        .iter()
        .filter(|line| has_message(line, b"commit (amend)"))
        .filter_map(|line| object(line.get(..40)?))
        .collect();
    let mut seen = BTreeSet::new();
    let mut left = Vec::new();
    for (at, line) in lines.iter().enumerate().rev() {
        // A commit that was only visited was made elsewhere.
        let is_made = at == 0 || !has_message(lines[at - 1], b"checkout: ");
        left.extend(
            left_by(line).filter(|object| {
                is_made && !amended.contains(object) && seen.insert(object.clone())
            }),
        );
    }
    left
}

fn has_message(line: &[u8], begin: &[u8]) -> bool {
    memchr::memchr(b'\t', line).is_some_and(|tab| line[tab + 1..].starts_with(begin))
}

/// Returns the commits that existing branches pointed to at some time, by their logs: git does not
/// warn when a branch is moved away from a commit.
pub(super) fn once_on_branches(folder: &UntrustedFolder) -> BTreeSet<String> {
    let mut waiting = vec![b"logs/refs/heads".to_vec()];
    let mut once = BTreeSet::new();
    let (mut n_files, mut n_bytes) = (0, 0);
    while let Some(path) = waiting.pop() {
        for (name, kind) in folder.names(&path).unwrap_or_default() {
            let path = join(&path, &name);
            match kind {
                FileKind::Folder => waiting.push(path),
                FileKind::File => {
                    let text = end_of(folder, &path).unwrap_or_default();
                    (n_files, n_bytes) = (n_files + 1, n_bytes + text.len());
                    once.extend(
                        text.split(|byte| *byte == b'\n')
                            .filter_map(|line| object(line.get(41..81)?)),
                    );
                }
                FileKind::Link | FileKind::Special => {}
            }
            if n_files + waiting.len() > MAX_LOG_FILES || n_bytes > MAX_LOGS {
                return once;
            }
        }
    }
    once
}

/// Reads whole lines from the end of a log of any length.
fn end_of(folder: &UntrustedFolder, log: &[u8]) -> Option<Vec<u8>> {
    let (mut file, stat) = folder.open_file(log).ok()??;
    let start = (stat.st_size as u64).saturating_sub(MAX_READ);
    file.seek(SeekFrom::Start(start)).ok()?;
    let mut text = Vec::new();
    file.take(MAX_READ).read_to_end(&mut text).ok()?;
    let whole = if start == 0 {
        0
    } else {
        memchr::memchr(b'\n', &text).map_or(text.len(), |end| end + 1)
    };
    text.drain(..whole);
    Some(text)
}

/// Returns the commit that was left according to a log line.
fn left_by(line: &[u8]) -> Option<String> {
    let (ids, message) = line.split_at(memchr::memchr(b'\t', line)?);
    let from = message.strip_prefix(b"\tcheckout: moving from ")?;
    let left = object(from.get(..40)?).filter(|_| from[40..].starts_with(b" to "))?;
    // If a branch was made of it, it was not left.
    let new = ids.strip_prefix(left.as_bytes())?.strip_prefix(b" ")?;
    (!new.starts_with(left.as_bytes())).then_some(left)
}

/// Returns whole lines from the end.
fn tail(text: &[u8], limit: usize) -> &[u8] {
    let Some(start) = text.len().checked_sub(limit).filter(|start| *start > 0) else {
        return text;
    };
    match memchr::memchr(b'\n', &text[start..]) {
        Some(end) => &text[start + end + 1..],
        None => b"",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn left_commits_are_read_from_the_end_of_a_reflog() {
        let (one, two, three) = ("1".repeat(40), "2".repeat(40), "3".repeat(40));
        let who = "A <a@b> 1700000000 +0000";
        let left = |object: &str| {
            format!("{object} {three} {who}\tcheckout: moving from {object} to main\n")
        };
        let other = |words: &str| format!("{one} {three} {who}\t{words}\n");
        let place = tempfile::tempdir().expect("a folder");
        let check = |text: String, expected: &[&String]| {
            std::fs::write(place.path().join("log"), text).expect("written");
            let folder = UntrustedFolder::open(place.path()).expect("opens");
            assert_eq!(
                left_behind(&folder, b"log").iter().collect::<Vec<_>>(),
                expected
            );
        };
        check(String::new(), &[]);
        let commit = other("commit: 1");
        check(
            [
                left(&one),
                commit.clone(),
                left(&two),
                commit.clone(),
                left(&one),
                commit.clone(),
            ]
            .concat(),
            &[&one, &two],
        );
        // A visited commit was not made there, and an amended one exists in another form.
        check([commit.clone(), left(&one), left(&two)].concat(), &[&one]);
        check(
            [
                commit.clone(),
                left(&one),
                other("checkout: moving from main to x"),
                other("commit (amend): 1"),
            ]
            .concat(),
            &[],
        );
        let nothing = [
            "checkout: moving from main to side".to_owned(),
            format!("rebase (start): checkout {one}"),
            format!("reset: moving to {one}"),
            format!("checkout: moving from {two} to main"),
            format!("checkout: moving from {one}x to main"),
            format!("checkout: moving from {}", &one[..39]),
        ];
        check(
            format!("{one} {one} {who}\tcheckout: moving from {one} to side\n"),
            &[],
        );
        check(
            nothing
                .iter()
                .map(|words| other(words))
                .chain(["odd".to_owned()])
                .collect(),
            &[],
        );
        check(
            [
                left(&one),
                other(&"x".repeat(MAX_READ as usize)),
                commit,
                left(&two),
            ]
            .concat(),
            &[&two],
        );
    }
}
