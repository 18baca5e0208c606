//! The logs of names, of which a session gets the ends.

use super::folder::Folder;
use super::folder::Kind;
use super::refs::Head;
use super::stash;
use crate::guest::root::join;
use crate::wire::Fault;

/// How much of a log is taken over from its end, and how much of all.
const MAX_LOG: usize = 256 * 1024;
const MAX_LOGS: usize = 8 << 20;
const MAX_LOG_FILES: usize = 200;
const MAX_LOG_FILE: u64 = 256 << 20;

/// Takes over what stands in these folders of a repository, each once.
pub(crate) fn copy(real: &Folder, session: &Folder, tops: &[Vec<u8>; 2], head: &Head) -> Result<(), Fault> {
    let mut room = MAX_LOGS;
    copy_below(real, session, &tops[0], head, &mut room)?;
    if tops[0] == tops[1] { Ok(()) } else { copy_below(real, session, &tops[1], head, &mut room) }
}

/// Takes over the ends of logs: what was checked out lately, the stashes, and of the branches all, or of very many the one that is checked out.
fn copy_below(real: &Folder, session: &Folder, top: &[u8], head: &Head, room: &mut usize) -> Result<(), Fault> {
    let mut paths = vec![top.to_vec()];
    let mut files = Vec::new();
    while let Some(path) = paths.pop() {
        for (name, kind) in real.names(&path).unwrap_or_default() {
            let path = join(&path, &name);
            match kind {
                Kind::Folder => paths.push(path),
                Kind::File => files.push(path),
                Kind::Link | Kind::Special => {}
            }
        }
        if files.len() + paths.len() > MAX_LOG_FILES {
            let branch = if let Head::Branch { name } = head { name.as_bytes() } else { b"HEAD" };
            files = [b"HEAD", branch, stash::NAME].map(|name| join(top, name)).to_vec();
            files.dedup();
            break;
        }
    }
    for path in files {
        let is_stash = path.ends_with(stash::LOG);
        let Ok(Some(text)) = real.read(&path, MAX_LOG_FILE) else { continue };
        let text = tail(&text, if is_stash { stash::MAX_LOG as usize } else { MAX_LOG });
        if text.len() <= *room || is_stash {
            *room = room.saturating_sub(text.len());
            session.write(&path, text)?;
        }
    }
    Ok(())
}

/// Returns whole lines from the end.
fn tail(text: &[u8], limit: usize) -> &[u8] {
    let Some(start) = text.len().checked_sub(limit).filter(|start| *start > 0) else { return text };
    match memchr::memchr(b'\n', &text[start..]) {
        Some(end) => &text[start + end + 1..],
        None => b"",
    }
}
