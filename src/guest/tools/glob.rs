use std::cmp::Reverse;
use std::sync::atomic::AtomicBool;

use ignore::gitignore::Gitignore;
use nix::fcntl::AtFlags;
use nix::sys::stat::FileStat;
use nix::sys::stat::SFlag;
use nix::sys::stat::fstatat;

use super::MAX_OUTPUT;
use super::Workspace;
use super::bounded::Smallest;
use super::ignore_rules::Rules;
use super::invalid;
use super::pattern::Pattern;
use super::pattern::excluded;
use super::stop::Stop;
use super::walk::Entry;
use super::walk::Kind;
use super::walk::Visitor;
use super::walk::Walk;
use crate::root::MOUNT;
use crate::root::Root;
use crate::root::as_path;
use crate::root::file_type;
use crate::root::join;
use podbay_wire::BytesPath;
use podbay_wire::Fault;
use podbay_wire::FoundFiles;
use podbay_wire::Glob;

/// Most files given, whatever is asked for.
const MAX_RESULTS: u32 = 10_000;

/// Finds files by a pattern for their paths below `path`, the newest first.
///
/// What git ignores is left out, also where there is no repository, and so are hidden names. Both are found where the pattern
/// leaves no doubt that they are meant: a pattern with a name that starts with a dot finds hidden names; the folders before
/// its first wildcard are entered even if they are ignored (`target/doc/*.html`); a pattern without a wildcard finds the very
/// file it names. Links to files of the project are found like files.
pub(super) fn run(workspace: &Workspace, call: &Glob, stop: &AtomicBool) -> Result<FoundFiles, Fault> {
    let stop = &Stop::new(stop, None);
    let root = &workspace.root;
    let (path, text) = split_mount(root, call);
    let pattern = Pattern::new(text)?;
    let exclude = call.exclude.as_deref().filter(|exclude| !exclude.is_empty()).map(excluded).transpose()?;
    let above = root.relative(&path)?;
    // The folder that was named must be there; one that the pattern implies need not.
    root.open_directory(&path)?;
    let start = BytesPath::from_bytes(join(trimmed(above.as_bytes()), pattern.folder.as_bytes()));
    let start = BytesPath::from_bytes(trimmed(root.relative(&start)?.as_bytes()));
    let base = match root.descend(&start) {
        Ok(base) => base,
        Err(fault @ Fault::Outside { .. }) => return Err(fault),
        // It begins with a slash, and there is no such folder here: most likely one of the machine is meant.
        Err(_) if text.starts_with('/') && text == call.pattern && above.as_bytes().is_empty() => {
            let problem =
                format!("only {MOUNT} is searched, and there is no folder `{}` in it; name a folder of the project", pattern.folder);
            return Err(invalid("pattern", problem));
        }
        Err(_) => return Ok(FoundFiles { paths: vec![], truncated: false, n_unreadable: 0, cursor: None }),
    };
    let walk = Walk {
        base: &base,
        prefix: start.as_bytes(),
        rules: Some(Rules::above(root, start.as_bytes())),
        hidden: pattern.names_hidden,
        max_depth: pattern.max_depth,
        in_breadth: false,
        stop,
    };
    let n = call.max_results.clamp(1, MAX_RESULTS) as usize;
    let n_start = if start.is_empty() { 0 } else { start.as_bytes().len() + 1 };
    let finder = Finder { root, pattern: &pattern, exclude, n_start, n_above: trimmed(above.as_bytes()).len(), n };
    let walked = walk.run(&finder);
    if stop.is_cancelled() {
        return Err(Fault::Cancelled);
    }
    let n_unreadable = walked.n_unreadable;
    let (mut found, n_seen) = Smallest::merge(walked.states, n);
    if found.is_empty() && pattern.is_literal {
        found.extend(named(root, &join(trimmed(above.as_bytes()), text.as_bytes())));
    }
    let mut paths = Vec::with_capacity(found.len());
    let mut n_bytes = 0;
    for (_, path) in found {
        n_bytes += path.len() + 16;
        if n_bytes > MAX_OUTPUT {
            break;
        }
        paths.push(BytesPath::from_bytes(path));
    }
    let truncated = n_seen > paths.len() as u64;
    let cursor = workspace.cursors.keep("glob", paths.iter().cloned());
    Ok(FoundFiles { paths, truncated, n_unreadable, cursor })
}

/// Takes the project's folder off a pattern that was given with it; such a pattern is not relative to `path`.
fn split_mount<'a>(root: &Root, call: &'a Glob) -> (BytesPath, &'a str) {
    if !call.pattern.starts_with('/') {
        return (call.path.clone(), &call.pattern);
    }
    match std::str::from_utf8(root.mount()).ok().and_then(|mount| call.pattern.strip_prefix(mount)) {
        Some(rest) if rest.starts_with('/') => (BytesPath::default(), rest),
        // Gitignore's way to say "here and not deeper".
        _ => (call.path.clone(), &call.pattern),
    }
}

/// Drops the slash that says "a folder".
fn trimmed(path: &[u8]) -> &[u8] {
    path.strip_suffix(b"/").unwrap_or(path)
}

struct Finder<'a> {
    root: &'a Root,
    pattern: &'a Pattern,
    exclude: Option<Gitignore>,
    /// Bytes of a shown path before what the pattern is matched with.
    n_start: usize,
    /// Bytes of a full path before what `exclude` is matched with.
    n_above: usize,
    n: usize,
}

type Found = (Reverse<(i64, i64)>, Vec<u8>);

impl Visitor for Finder<'_> {
    type State = Smallest<Found>;

    fn select(&self, entry: &Entry<'_>) -> Option<bool> {
        // The pattern is cheaper than the rules and leaves out more.
        if entry.kind != Kind::Folder && !self.pattern.is_match(&entry.path()[self.n_start..]) {
            return Some(false);
        }
        let full = if self.n_above == 0 { entry.full } else { &entry.full[self.n_above + 1..] };
        let exclude = self.exclude.as_ref()?;
        exclude.matched(as_path(full), entry.kind == Kind::Folder).is_ignore().then_some(false)
    }

    fn visit(&self, state: &mut Self::State, entry: &Entry<'_>) {
        let stat = match entry.kind {
            Kind::File => fstatat(entry.folder, entry.name, AtFlags::AT_SYMLINK_NOFOLLOW).ok(),
            Kind::Link => self.root.look(&BytesPath::from_bytes(entry.path())).ok().filter(is_file),
            Kind::Folder | Kind::Other => None,
        };
        let Some(stat) = stat else { return };
        let time = modified(&stat);
        let is_before = |last: &Found| (time, entry.path()) < (last.0, last.1.as_slice());
        state.offer(self.n, is_before, || Some((time, entry.path().to_vec())));
    }
}

/// Looks for a file by its whole path, which no rule hides from somebody who knows it.
fn named(root: &Root, path: &[u8]) -> Option<Found> {
    let path = root.relative(&BytesPath::from_bytes(path)).ok()?;
    let stat = root.look(&path).ok().filter(is_file)?;
    Some((modified(&stat), path.as_bytes().to_vec()))
}

fn is_file(stat: &FileStat) -> bool {
    file_type(stat) == SFlag::S_IFREG
}

fn modified(stat: &FileStat) -> Reverse<(i64, i64)> {
    Reverse((stat.st_mtime, stat.st_mtime_nsec))
}
