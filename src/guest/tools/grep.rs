use std::fs::File;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use grep_regex::RegexMatcher;
use grep_regex::RegexMatcherBuilder;
use grep_searcher::BinaryDetection;
use grep_searcher::Searcher;
use grep_searcher::SearcherBuilder;
use ignore::Match;
use ignore::overrides::Override;
use ignore::overrides::OverrideBuilder;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::fcntl::openat;
use nix::sys::stat::Mode;
use nix::sys::stat::SFlag;

use super::MAX_OUTPUT;
use super::Workspace;
use super::grep_collect::Collector;
use super::grep_sink::FileSink;
use super::ignore_rules::Rules;
use super::invalid;
use super::pattern::SIGNS;
use super::pattern::check_length;
use super::pattern::split_commas;
use super::stop::Stop;
use super::stop::Stoppable;
use super::walk::Entry;
use super::walk::Kind;
use super::walk::Visitor;
use super::walk::Walk;
use crate::root::as_path;
use crate::root::file_type;
use podbay_wire::BytesPath;
use podbay_wire::Fault;
use podbay_wire::Grep;
use podbay_wire::GrepOutput;
use podbay_wire::Matches;
use podbay_wire::protected_name;

/// Bounds on what is asked for.
const MAX_RESULTS: u32 = 10_000;
const MAX_CONTEXT: u32 = 50;
const MAX_TIMEOUT: Duration = Duration::from_mins(10);

/// Bytes that a compiled expression and its tables may take.
const MAX_REGEX: usize = 16 * 1024 * 1024;

/// Longest line that is searched; a file with a longer one counts as unreadable.
const MAX_LINE: usize = 64 * 1024 * 1024;

/// Searches file contents as ripgrep does: same expressions, same rules about ignored, hidden and binary files.
///
/// A `glob` is matched from the project's folder, as ripgrep would there, and from `path`, as models mean it.
pub(super) fn run(workspace: &Workspace, call: &Grep, stop: &AtomicBool) -> Result<Matches, Fault> {
    let timeout = Duration::from_millis(call.timeout_ms).min(MAX_TIMEOUT);
    let stop = &Stop::new(stop, Some(Instant::now() + timeout));
    let root = &workspace.root;
    let (matcher, is_multi_line) = compile(call)?;
    let relative = root.relative(&call.path)?;
    let prefix = relative.as_bytes().strip_suffix(b"/").unwrap_or(relative.as_bytes());
    let n_results = call.max_results.clamp(1, MAX_RESULTS);
    let search = Search {
        matcher,
        is_multi_line,
        context: if call.output == GrepOutput::Content { call.context.min(MAX_CONTEXT) as usize } else { 0 },
        output: call.output,
        n_results: u64::from(n_results),
        globs: globs(call, prefix)?,
        stop,
        collector: Collector::new(u64::from(n_results), MAX_OUTPUT),
        n_unreadable: AtomicU32::new(0),
        protected: call.protected,
        n_protected: AtomicU32::new(0),
        n_binary: AtomicU32::new(0),
    };
    let mut n_unreadable = 0;
    let is_folder = file_type(&root.look(&call.path)?) == SFlag::S_IFDIR;
    if is_folder {
        let base = root.descend(&call.path)?;
        root.refuse_secret(&call.path, &base, call.protected)?;
        let rules = Some(Rules::above(root, prefix));
        n_unreadable +=
            Walk { base: &base, prefix, rules, hidden: false, max_depth: usize::MAX, in_breadth: false, stop }.run(&search).n_unreadable;
    } else {
        let (file, _) = root.open_file(&call.path)?;
        root.refuse_secret(&call.path, &file, call.protected)?;
        // A file that was named is searched even if it is binary.
        search.file(&mut search.worker(BinaryDetection::convert(0)), prefix, file);
    }
    if stop.is_cancelled() {
        return Err(Fault::Cancelled);
    }
    n_unreadable += search.n_unreadable.into_inner();
    let n_protected = search.n_protected.into_inner();
    let n_binary = search.n_binary.into_inner();
    let (files, truncated) = search.collector.finish();
    let cursor = workspace.cursors.keep("grep", files.iter().map(|file| file.path.clone()));
    let n_matches = files.iter().map(|file| file.count).sum();
    let (truncated, timed_out) = (truncated || stop.is_late(), stop.is_late());
    Ok(Matches { output: call.output, files, n_matches, truncated, timed_out, n_unreadable, n_protected, n_binary, cursor })
}

struct Search<'a> {
    matcher: RegexMatcher,
    is_multi_line: bool,
    context: usize,
    output: GrepOutput,
    n_results: u64,
    globs: Vec<Override>,
    stop: &'a Stop<'a>,
    collector: Collector,
    n_unreadable: AtomicU32,
    /// Whether files whose names say that they hold secrets are searched too.
    protected: bool,
    n_protected: AtomicU32,
    n_binary: AtomicU32,
}

/// What each thread has for itself: the searcher's buffers, and an expression whose caches nobody else waits for.
struct Worker {
    searcher: Searcher,
    matcher: RegexMatcher,
}

impl Search<'_> {
    fn worker(&self, binary: BinaryDetection) -> Worker {
        let searcher = SearcherBuilder::new()
            .line_number(self.output == GrepOutput::Content)
            .before_context(self.context)
            .after_context(self.context)
            .binary_detection(binary)
            .multi_line(self.is_multi_line)
            .heap_limit(Some(MAX_LINE))
            .build();
        Worker { searcher, matcher: self.matcher.clone() }
    }

    fn file(&self, worker: &mut Worker, path: &[u8], file: File) {
        let Worker { searcher, matcher } = worker;
        let mut sink = FileSink::new(matcher, self.output, self.n_results, MAX_OUTPUT);
        let searched = searcher.search_reader(&*matcher, Stoppable::new(file, self.stop), &mut sink);
        if searched.is_err() && !self.stop.is_set() {
            self.n_unreadable.fetch_add(1, Ordering::Relaxed);
        }
        let hit = sink.hit;
        if hit.count > 0 {
            self.collector.add(path, hit);
        } else if hit.binary && searcher.binary_detection().quit_byte().is_some() {
            self.n_binary.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Visitor for Search<'_> {
    type State = Option<Box<Worker>>;

    fn select(&self, entry: &Entry<'_>) -> Option<bool> {
        let is_folder = entry.kind == Kind::Folder;
        if !is_folder && entry.kind != Kind::File || !self.collector.wants(entry.path()) {
            return Some(false);
        }
        let mut selected = None;
        for globs in &self.globs {
            match globs.matched(as_path(entry.full), is_folder) {
                Match::Whitelist(_) => return Some(true),
                Match::Ignore(_) => selected = Some(false),
                Match::None => {}
            }
        }
        selected
    }

    fn visit(&self, state: &mut Self::State, entry: &Entry<'_>) {
        if entry.kind != Kind::File {
            return;
        }
        // The walk follows no link, and where it started was looked at: the name is what it says.
        if !self.protected && protected_name(&BytesPath::from_bytes(entry.path())).is_some_and(|protected| protected.is_secret) {
            self.n_protected.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        match openat(entry.folder, entry.name, flags, Mode::empty()) {
            Ok(fd) => {
                let worker = state.get_or_insert_with(|| Box::new(self.worker(BinaryDetection::quit(0))));
                self.file(worker, entry.path(), File::from(fd));
            }
            // It went away meanwhile.
            Err(Errno::ENOENT) => {}
            Err(_) => {
                self.n_unreadable.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Compiles the expression; one that speaks of line ends makes the search go over several lines at once.
fn compile(call: &Grep) -> Result<(RegexMatcher, bool), Fault> {
    check_length("pattern", &call.pattern)?;
    let build = |terminator: Option<u8>| {
        RegexMatcherBuilder::new()
            .case_insensitive(call.case_insensitive)
            .multi_line(true)
            .line_terminator(terminator)
            .size_limit(MAX_REGEX)
            .dfa_size_limit(MAX_REGEX)
            .build(&call.pattern)
    };
    match build(Some(b'\n')) {
        Ok(matcher) => Ok((matcher, false)),
        Err(error) => match build(None) {
            Ok(matcher) => Ok((matcher, true)),
            Err(_) => Err(invalid("pattern", format!("{error}{}", hint(&call.pattern, &error.to_string())))),
        },
    }
}

/// Offers the pattern as plain text, which is mostly what was meant where it is no expression.
fn hint(pattern: &str, error: &str) -> String {
    if error.contains("size limit") {
        return "\nuse fewer or smaller repetitions such as {1000}".into();
    }
    if pattern.len() > 200 {
        return String::new();
    }
    let mut text = String::with_capacity(2 * pattern.len());
    for char in pattern.chars() {
        if r"\.+*?()|[]{}^$".contains(char) {
            text.push('\\');
        }
        text.push(char);
    }
    format!("\nto search for this very text, use: {text}")
}

fn globs(call: &Grep, prefix: &[u8]) -> Result<Vec<Override>, Fault> {
    let Some(text) = call.glob.as_deref().filter(|text| !text.trim().is_empty()) else { return Ok(Vec::new()) };
    check_length("glob", text)?;
    let mut full = vec![b'/'];
    full.extend_from_slice(prefix);
    let places = if prefix.is_empty() { vec![b"/".as_slice()] } else { vec![b"/", full.as_slice()] };
    let build = |place: &[u8]| {
        let mut builder = OverrideBuilder::new(as_path(place));
        for glob in split_commas(text) {
            builder.add(glob)?;
        }
        builder.build()
    };
    places.into_iter().map(|place| build(place).map_err(|error| invalid("glob", format!("{error}; {SIGNS}")))).collect()
}
