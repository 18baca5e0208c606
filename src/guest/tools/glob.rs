use std::cmp::Reverse;
use std::sync::atomic::AtomicBool;

use nix::fcntl::AtFlags;
use nix::sys::stat::FileStat;
use nix::sys::stat::SFlag;
use nix::sys::stat::fstatat;

use super::MAX_OUTPUT;
use super::Workspace;
use super::glob_lookalike;
use super::glob_lookalike::LookalikeMatch;
use super::ignore_rules::IgnoreRules;
use super::invalid;
use super::pattern::excluded;
use super::patterns::Patterns;
use super::patterns::Start;
use super::skipped::SkipCounts;
use super::smallest::Smallest;
use super::stop::Stop;
use super::walk::Entry;
use super::walk::Kind;
use super::walk::SkipReason;
use super::walk::Visitor;
use super::walk::Walk;
use crate::root::MOUNT;
use crate::root::Root;
use crate::root::file_type;
use crate::root::join;
use podbay_wire::BytesPath;
use podbay_wire::Fault;
use podbay_wire::FoundFiles;
use podbay_wire::Glob;

/// Most files returned, whatever is asked for.
const MAX_RESULTS: u32 = 10_000;

/// Finds files by glob patterns for their paths below `path`, newest first.
///
/// Ignored files (also outside of a repository) and hidden names are left out, except where the
/// pattern clearly means them: a pattern with a name that starts with a dot finds hidden names; the
/// folders before its first wildcard are entered even if ignored (`target/doc/*.html`); an ignored
/// file is found by a pattern that restricts its name (`*.log`); a pattern without a wildcard finds
/// exactly the file it names. Links to files of the project are found like files.
pub(super) fn run(
    workspace: &Workspace,
    call: &Glob,
    stop: &AtomicBool,
) -> Result<FoundFiles, Fault> {
    let stop = &Stop::new(stop, None);
    let root = &workspace.root;
    let (path, text) = split_mount(root, &call.path, &call.pattern);
    let relative = root.relative(&path)?;
    let above = trimmed(relative.as_bytes());
    let mut patterns = Patterns::new(root, above, "pattern", text)?;
    if let Some(exclude) = call
        .exclude
        .as_deref()
        .filter(|exclude| !exclude.is_empty())
    {
        patterns = patterns.without(excluded("exclude", exclude)?);
    }
    // The folder given must exist; one that the pattern implies need not.
    root.open_directory(&path)?;
    let starts = patterns.starts(root)?;
    // It begins with a slash, and there is no such folder in the project: most likely one of the
    // machine is meant.
    if let (true, [pattern]) = (starts.is_empty(), patterns.wanted.as_slice())
        && text.starts_with('/')
        && text == call.pattern
        && above.is_empty()
    {
        let problem = format!(
            "only {MOUNT} is searched, and there is no folder `{}` in it; name a folder of the project",
            pattern.folder
        );
        return Err(invalid("pattern", problem));
    }
    let n = call.max_results.clamp(1, MAX_RESULTS) as usize;
    let finder = Finder {
        root,
        patterns: &patterns,
        n,
    };
    let mut states = Vec::new();
    let mut n_unreadable = 0;
    for Start { base, path } in &starts {
        let walk = Walk {
            base,
            prefix: path.as_bytes(),
            rules: (!call.include_ignored).then(|| IgnoreRules::above(root, path.as_bytes())),
            hidden: call.include_ignored || patterns.names_hidden(),
            max_depth: usize::MAX,
            in_breadth: false,
            stop,
        };
        let walked = walk.run(&finder);
        states.extend(walked.states);
        n_unreadable += walked.n_unreadable;
    }
    if stop.is_cancelled() {
        return Err(Fault::Cancelled);
    }
    let (found, skipped): (Vec<_>, Vec<_>) = states.into_iter().unzip();
    let (mut found, n_seen) = Smallest::merge(found, n);
    if found.is_empty() {
        found.extend(
            patterns
                .wanted
                .iter()
                .filter_map(|pattern| named(root, &join(above, pattern.text.as_bytes()))),
        );
    }
    let skipped = SkipCounts::sum(skipped);
    let mut notes = patterns.notes.clone();
    if found.is_empty() && !stop.is_set() {
        match glob_lookalike::find(root, &patterns, call.include_ignored, stop)? {
            LookalikeMatch::Nothing => notes.extend(patterns.backslashes(root)),
            LookalikeMatch::Only(path) => {
                notes.push(glob_lookalike::note(&path));
                found.push((Reverse((0, 0)), path.as_bytes().to_vec()));
            }
            LookalikeMatch::Several(note) => notes.push(note),
        }
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
    Ok(FoundFiles {
        paths,
        truncated,
        n_unreadable,
        cursor,
        left_out: skipped,
        notes,
    })
}

/// Removes the project's folder from the front of a pattern; such a pattern is not relative to
/// `path`.
pub(super) fn split_mount<'a>(
    root: &Root,
    path: &BytesPath,
    pattern: &'a str,
) -> (BytesPath, &'a str) {
    if !pattern.starts_with('/') {
        return (path.clone(), pattern);
    }
    match std::str::from_utf8(root.mount())
        .ok()
        .and_then(|mount| pattern.strip_prefix(mount))
    {
        Some(rest) if rest.starts_with('/') => (BytesPath::default(), rest),
        // Gitignore's notation for "here and not deeper".
        _ => (path.clone(), pattern),
    }
}

/// Removes the trailing slash that means "a folder".
fn trimmed(path: &[u8]) -> &[u8] {
    path.strip_suffix(b"/").unwrap_or(path)
}

struct Finder<'a> {
    root: &'a Root,
    patterns: &'a Patterns,
    n: usize,
}

type FoundFile = (Reverse<(i64, i64)>, Vec<u8>);

impl Visitor for Finder<'_> {
    type State = (Smallest<FoundFile>, SkipCounts);

    fn select(&self, entry: &Entry<'_>) -> Option<bool> {
        self.patterns.select(entry)
    }

    fn pass_over(&self, (_, skipped): &mut Self::State, entry: &Entry<'_>, why: SkipReason) {
        skipped.note(entry, why);
    }

    fn visit(&self, (found, _): &mut Self::State, entry: &Entry<'_>) {
        let stat = match entry.kind {
            Kind::File => fstatat(entry.folder, entry.name, AtFlags::AT_SYMLINK_NOFOLLOW).ok(),
            Kind::Link => self
                .root
                .look(&BytesPath::from_bytes(entry.path()))
                .ok()
                .filter(is_file),
            Kind::Folder | Kind::Other => None,
        };
        let Some(stat) = stat else { return };
        let time = modified(&stat);
        let is_before = |last: &FoundFile| (time, entry.path()) < (last.0, last.1.as_slice());
        found.offer(self.n, is_before, || Some((time, entry.path().to_vec())));
    }
}

/// Looks for a file by its whole path, regardless of ignore rules.
fn named(root: &Root, path: &[u8]) -> Option<FoundFile> {
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
