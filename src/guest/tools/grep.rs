use std::fs::File;
use std::io;
use std::io::Read;
use std::io::Seek;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use grep_regex::RegexMatcher;
use grep_searcher::BinaryDetection;
use grep_searcher::Searcher;
use grep_searcher::SearcherBuilder;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::fcntl::openat;
use nix::sys::stat::Mode;
use nix::sys::stat::SFlag;

use super::MAX_OUTPUT;
use super::Workspace;
use super::detected_encoding::DetectedEncoding;
use super::edit_file::MAX_BYTES;
use super::encoded_text::EncodedText;
use super::glob::split_mount;
use super::glob_lookalike;
use super::glob_lookalike::LookalikeMatch;
use super::grep_collect::Collector;
use super::grep_lookalike;
use super::grep_lookalike::Candidates;
use super::grep_pattern::Expression;
use super::grep_pattern::LineEnds;
use super::grep_pattern::compile;
use super::grep_pattern::hint;
use super::grep_sink::FileSink;
use super::grep_text::text;
use super::ignore_rules::IgnoreRules;
use super::patterns::Patterns;
use super::patterns::Start;
use super::read_file::SNIFFED;
use super::read_file::binary_kind;
use super::skipped::SkipCounts;
use super::stop::Stop;
use super::stop::Stoppable;
use super::walk::Entry;
use super::walk::Kind;
use super::walk::SkipReason;
use super::walk::Visitor;
use super::walk::Walk;
use crate::root::file_type;
use podbay_wire::BytesPath;
use podbay_wire::Fault;
use podbay_wire::Grep;
use podbay_wire::GrepOutput;
use podbay_wire::Matches;
use podbay_wire::protected_name;

/// Bounds on the arguments.
const MAX_RESULTS: u32 = 10_000;
const MAX_CONTEXT: u32 = 50;
const MAX_TIMEOUT: Duration = Duration::from_mins(10);

/// Longest line that is searched; the rest of a file with a longer one is not.
const MAX_LINE: usize = 64 * 1024 * 1024;

/// Searches file contents as ripgrep does: same expressions, same rules about ignored, hidden and
/// binary files. Line ends differ: they are searched as they are shown. `glob` selects files as in
/// the tool of that name.
pub(super) fn run(workspace: &Workspace, call: &Grep, stop: &AtomicBool) -> Result<Matches, Fault> {
    let timeout = Duration::from_millis(call.timeout_ms).min(MAX_TIMEOUT);
    let stop = &Stop::new(stop, Some(Instant::now() + timeout));
    let root = &workspace.root;
    let Expression {
        matcher,
        is_multi_line,
        ends,
    } = compile(call)?;
    let relative = root.relative(&call.path)?;
    let prefix = relative
        .as_bytes()
        .strip_suffix(b"/")
        .unwrap_or(relative.as_bytes());
    let n_results = call.max_results.clamp(1, MAX_RESULTS);
    let is_folder = file_type(&root.look(&call.path)?) == SFlag::S_IFDIR;
    let glob = call
        .glob
        .as_deref()
        .filter(|glob| is_folder && !glob.trim().is_empty());
    let patterns = match glob {
        Some(glob) => {
            let (_, text) = split_mount(root, &call.path, glob);
            // A whole path starts at the project's folder, and never leaves the folder that is
            // searched.
            let is_whole = text.len() < glob.len();
            Patterns::new(
                root,
                prefix,
                "glob",
                if is_whole && !prefix.is_empty() {
                    text.trim_start_matches('/')
                } else {
                    text
                },
            )?
        }
        None => Patterns::all(prefix),
    };
    let search = Search {
        matcher,
        is_multi_line,
        ends,
        context: if call.output == GrepOutput::Content {
            call.context.min(MAX_CONTEXT) as usize
        } else {
            0
        },
        output: call.output,
        n_results: u64::from(n_results),
        patterns,
        stop,
        collector: Collector::new(u64::from(n_results), MAX_OUTPUT),
        n_unreadable: AtomicU32::new(0),
        n_too_long: AtomicU32::new(0),
        protected: call.protected,
        n_protected: AtomicU32::new(0),
        n_binary: AtomicU32::new(0),
        n_files: AtomicU32::new(0),
        candidates: Candidates::new(&call.pattern),
    };
    let mut n_unreadable = 0;
    let mut skipped = Vec::new();
    if is_folder {
        root.refuse_secret(&call.path, root.descend(&call.path)?, call.protected)?;
        for Start { base, path } in search.patterns.starts(root)? {
            if root.refuse_secret(&path, &base, call.protected).is_err() {
                search.n_protected.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            let walk = Walk {
                base: &base,
                prefix: path.as_bytes(),
                rules: (!call.include_ignored).then(|| IgnoreRules::above(root, path.as_bytes())),
                hidden: call.include_ignored || search.patterns.names_hidden(),
                max_depth: usize::MAX,
                in_breadth: false,
                stop,
            };
            let walked = walk.run(&search);
            n_unreadable += walked.n_unreadable;
            skipped.extend(walked.states.into_iter().map(|state| state.skipped));
        }
    } else {
        let (file, _) = root.open_file(&call.path)?;
        root.refuse_secret(&call.path, &file, call.protected)?;
        // A file that was named is searched even if it is binary.
        search.file(
            &mut search.worker(BinaryDetection::convert(0)),
            prefix,
            &file,
        );
    }
    let mut said = search.patterns.notes.clone();
    if glob.is_some() && search.n_files.load(Ordering::Relaxed) == 0 {
        match glob_lookalike::find(root, &search.patterns, call.include_ignored, stop)? {
            LookalikeMatch::Nothing => said.extend(search.patterns.backslashes(root)),
            LookalikeMatch::Only(path) => {
                let (file, _) = root.open_file(&path)?;
                if root.refuse_secret(&path, &file, call.protected).is_ok() {
                    said.push(glob_lookalike::note(&path));
                    search.file(
                        &mut search.worker(BinaryDetection::quit(0)),
                        path.as_bytes(),
                        &file,
                    );
                }
            }
            LookalikeMatch::Several(several) => said.push(several),
        }
    }
    if stop.is_cancelled() {
        return Err(Fault::Cancelled);
    }
    n_unreadable += search.n_unreadable.into_inner();
    let (n_protected, n_binary, n_too_long) = (
        search.n_protected.into_inner(),
        search.n_binary.into_inner(),
        search.n_too_long.into_inner(),
    );
    let (mut files, truncated) = search.collector.finish();
    if files.is_empty()
        && !stop.is_set()
        && let Some(found) = grep_lookalike::find(root, call, search.candidates, stop)
    {
        files.extend(found.file);
        said.push(found.said);
    }
    let cursor = workspace
        .cursors
        .keep("grep", files.iter().map(|file| file.path.clone()));
    let n_matches = files.iter().map(|file| file.count).sum();
    said.extend(if files.is_empty() {
        hint(&call.pattern)
    } else {
        None
    });
    let hint = (!said.is_empty()).then(|| said.join("; "));
    Ok(Matches {
        output: call.output,
        files,
        n_matches,
        truncated: truncated || stop.is_late(),
        timed_out: stop.is_late(),
        n_unreadable,
        n_protected,
        n_binary,
        n_too_long,
        cursor,
        left_out: SkipCounts::sum(skipped),
        hint,
    })
}

struct Search<'a> {
    matcher: RegexMatcher,
    is_multi_line: bool,
    ends: LineEnds,
    context: usize,
    output: GrepOutput,
    n_results: u64,
    patterns: Patterns,
    stop: &'a Stop<'a>,
    collector: Collector,
    n_unreadable: AtomicU32,
    n_too_long: AtomicU32,
    /// Whether files with protected names are searched too.
    protected: bool,
    n_protected: AtomicU32,
    n_binary: AtomicU32,
    /// Files that were searched.
    n_files: AtomicU32,
    candidates: Candidates,
}

/// State of one thread: the searcher's buffers, and an expression with caches of its own.
struct Worker {
    searcher: Searcher,
    matcher: RegexMatcher,
    decoded: Vec<u8>,
}

/// State of one thread of a walk.
#[derive(Default)]
struct WalkState {
    worker: Option<Box<Worker>>,
    skipped: SkipCounts,
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
            // The text is already decoded.
            .bom_sniffing(false)
            .build();
        Worker {
            searcher,
            matcher: self.matcher.clone(),
            decoded: Vec::new(),
        }
    }

    fn file(&self, worker: &mut Worker, path: &[u8], file: &File) {
        let Worker {
            searcher,
            matcher,
            decoded,
        } = worker;
        let sink = || FileSink::new(matcher, self.output, self.n_results, MAX_OUTPUT);
        let mut search = |file: &mut dyn Read| {
            let mut sink = sink();
            let mut noting = ObservingReader {
                reader: Stoppable::new(file, self.stop),
                noted: Observed::default(),
            };
            let text = text(&mut noting, self.ends, decoded);
            let searched = text.and_then(|text| searcher.search_reader(&*matcher, text, &mut sink));
            (searched, sink.hit, noting.noted)
        };
        self.n_files.fetch_add(1, Ordering::Relaxed);
        let (mut searched, mut hit, noted) = search(&mut &*file);
        let may_be_encoded =
            hit.broken || hit.binary || noted.is_odd() || (hit.count == 0 && noted.has_letters);
        if may_be_encoded
            && searched.is_ok()
            && let Some(text) = in_encoding(file)
        {
            (searched, hit, _) = search(&mut text.as_bytes());
        }
        if let Err(error) = searched
            && !self.stop.is_set()
        {
            // The searcher's own error, for a line that does not fit, has no errno.
            let count = if error.raw_os_error().is_none() {
                &self.n_too_long
            } else {
                &self.n_unreadable
            };
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.candidates
            .note(path, hit.count > 0, noted.has_letters || may_be_encoded);
        if hit.count > 0 {
            self.collector.add(path, hit);
        } else if hit.binary && searcher.binary_detection().quit_byte().is_some() {
            self.n_binary.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Notes bytes that may stand for something else than they look like.
struct ObservingReader<R> {
    reader: R,
    noted: Observed,
}

#[derive(Clone, Copy, Debug, Default)]
struct Observed {
    /// Some of it is not ASCII, which would be the same in every encoding.
    has_letters: bool,
    switches: bool,
    has_returns: bool,
    has_line_feeds: bool,
}

impl Observed {
    /// Returns whether its ASCII may be something else, or its line ends may be unusual.
    fn is_odd(self) -> bool {
        self.switches || (self.has_returns && !self.has_line_feeds)
    }
}

impl<R: Read> Read for ObservingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.reader.read(buffer)?;
        let (read, noted) = (&buffer[..n], &mut self.noted);
        noted.has_letters = noted.has_letters || !read.is_ascii();
        noted.switches = noted.switches || DetectedEncoding::may_switch(read);
        noted.has_line_feeds = noted.has_line_feeds || memchr::memchr(b'\n', read).is_some();
        noted.has_returns =
            noted.has_returns || (!noted.has_line_feeds && memchr::memchr(b'\r', read).is_some());
        Ok(n)
    }
}

/// Returns the decoded text of a file whose bytes are not its text; `None`: they are, or it is not
/// text, or too long to decode.
fn in_encoding(mut file: &File) -> Option<String> {
    file.rewind().ok()?;
    let mut bytes = Vec::new();
    file.take(SNIFFED as u64).read_to_end(&mut bytes).ok()?;
    if binary_kind(&bytes).is_some() {
        return None;
    }
    file.take(MAX_BYTES + 1 - bytes.len() as u64)
        .read_to_end(&mut bytes)
        .ok()?;
    let encoded_text = EncodedText::of(&bytes);
    if bytes.len() as u64 > MAX_BYTES || encoded_text.is_plain() || encoded_text.is_broken() {
        return None;
    }
    Some(encoded_text.text.into_owned())
}

impl Visitor for Search<'_> {
    type State = WalkState;

    fn select(&self, entry: &Entry<'_>) -> Option<bool> {
        if !matches!(entry.kind, Kind::File | Kind::Folder) || !self.collector.wants(entry.path()) {
            return Some(false);
        }
        self.patterns.select(entry)
    }

    fn pass_over(&self, state: &mut WalkState, entry: &Entry<'_>, why: SkipReason) {
        state.skipped.note(entry, why);
    }

    fn visit(&self, state: &mut WalkState, entry: &Entry<'_>) {
        if entry.kind != Kind::File {
            return;
        }
        // The walk follows no link, and its start was checked: the name is the real one.
        if !self.protected
            && protected_name(&BytesPath::from_bytes(entry.path()))
                .is_some_and(|protected| protected.is_secret)
        {
            self.n_protected.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let flags = OFlag::O_RDONLY
            | OFlag::O_NOFOLLOW
            | OFlag::O_NONBLOCK
            | OFlag::O_NOCTTY
            | OFlag::O_CLOEXEC;
        match openat(entry.folder, entry.name, flags, Mode::empty()) {
            Ok(fd) => {
                let worker = state
                    .worker
                    .get_or_insert_with(|| Box::new(self.worker(BinaryDetection::quit(0))));
                self.file(worker, entry.path(), &File::from(fd));
            }
            // It was deleted meanwhile.
            Err(Errno::ENOENT) => {}
            Err(_) => {
                self.n_unreadable.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}
