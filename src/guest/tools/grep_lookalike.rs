//! Searching by look-alike characters after a search that found nothing: the same quotes, dashes,
//! blanks and compositions as for an edit. A single place is returned with a note; several are only
//! listed.

use std::io::Read;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use grep_matcher::Matcher;

use super::edit_file::MAX_BYTES;
use super::encoded_text::EncodedText;
use super::grep_pattern::Expression;
use super::grep_pattern::LineEnds;
use super::grep_pattern::compile;
use super::grep_pattern::is_operator;
use super::grep_sink::shorten;
use super::read_file::SNIFFED;
use super::read_file::binary_kind;
use super::stop::Stop;
use crate::lookalike::normalize;
use crate::lookalike::normalize_with;
use crate::root::Root;
use podbay_wire::BytesPath;
use podbay_wire::Grep;
use podbay_wire::GrepOutput;
use podbay_wire::MatchedFile;
use podbay_wire::MatchedLine;

/// Most files searched again.
const MOST_FILES: usize = 2000;

/// Most bytes of them in all.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// Places listed where there are several.
const MOST_NAMED: usize = 3;

/// Files that can contain the characters in another form: those that are not pure ASCII, or all
/// files where the expression is not.
#[derive(Debug)]
pub(super) struct Candidates {
    all: bool,
    has_match: AtomicBool,
    paths: Mutex<Vec<Vec<u8>>>,
}

impl Candidates {
    pub(super) fn new(pattern: &str) -> Self {
        Self {
            all: !pattern.is_ascii(),
            has_match: AtomicBool::new(false),
            paths: Mutex::default(),
        }
    }

    /// Notes a file that was searched. Once there is a match none is needed.
    pub(super) fn note(&self, path: &[u8], has_match: bool, has_letters: bool) {
        if has_match {
            self.has_match.store(true, Ordering::Relaxed);
        } else if (self.all || has_letters) && !self.has_match.load(Ordering::Relaxed) {
            let mut paths = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
            if paths.len() < MOST_FILES {
                paths.push(path.to_vec());
            }
        }
    }

    fn into_paths(self) -> Vec<Vec<u8>> {
        let mut paths = self
            .paths
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        paths.sort_unstable();
        paths
    }
}

/// The match, and the note about it.
pub(super) struct LookalikeMatch {
    pub(super) file: Option<MatchedFile>,
    pub(super) said: String,
}

/// Searches the candidates by look-alike characters; `None`: there are none of these either.
pub(super) fn find(
    root: &Root,
    call: &Grep,
    candidates: Candidates,
    stop: &Stop<'_>,
) -> Option<LookalikeMatch> {
    let pattern = normalize_with(&call.pattern, |letter| {
        if is_operator(letter) {
            format!("\\{letter}")
        } else {
            letter.to_string()
        }
    });
    let Expression { matcher, ends, .. } = compile(&Grep {
        pattern,
        ..call.clone()
    })
    .ok()?;
    let mut places: Vec<(Vec<u8>, u64)> = Vec::new();
    let mut only = None;
    let mut left = MOST_BYTES;
    for path in candidates.into_paths() {
        if stop.is_set() || places.len() >= MOST_NAMED {
            break;
        }
        let Some(text) = text_of(root, &path, call.protected, ends, &mut left) else {
            continue;
        };
        let plain_text = normalize(&text);
        let (mut counted, mut line, mut lines) = (0, 1, Vec::new());
        let _ = matcher.find_iter(plain_text.as_bytes(), |found| {
            line += count_lines(&plain_text.as_bytes()[counted..found.start()]);
            counted = found.start();
            let inside = &plain_text.as_bytes()[found.start()..found.end()];
            let last = line + count_lines(inside.strip_suffix(b"\n").unwrap_or(inside));
            if lines.last().is_none_or(|(_, last)| *last < line) {
                lines.push((line, last));
            }
            lines.len() < MOST_NAMED
        });
        places.extend(lines.iter().map(|(line, _)| (path.clone(), *line)));
        if let ([lines], 1) = (lines.as_slice(), places.len()) {
            only = Some(shown(call, &path, &text, *lines));
        }
    }
    match places.as_slice() {
        [] => None,
        [_] => Some(LookalikeMatch {
            file: only,
            said: "nothing matches exactly: this is the only place that looks alike".to_owned(),
        }),
        several => {
            let named: Vec<String> = several
                .iter()
                .map(|(path, line)| format!("{}:{line}", BytesPath::from_bytes(path.as_slice())))
                .collect();
            let said = format!(
                "look-alike characters occur in several places, such as {}: copy the text from there",
                named.join(", ")
            );
            Some(LookalikeMatch { file: None, said })
        }
    }
}

/// Returns a file's text as it is searched.
fn text_of(
    root: &Root,
    path: &[u8],
    protected: bool,
    ends: LineEnds,
    left: &mut u64,
) -> Option<String> {
    let path = BytesPath::from_bytes(path);
    let (file, _) = root.open_file(&path).ok()?;
    root.refuse_secret(&path, &file, protected).ok()?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES.min(*left) + 1)
        .read_to_end(&mut bytes)
        .ok()?;
    *left = left.checked_sub(bytes.len() as u64)?;
    if bytes.len() as u64 > MAX_BYTES || binary_kind(&bytes[..bytes.len().min(SNIFFED)]).is_some() {
        return None;
    }
    let text = EncodedText::of(&bytes).text.into_owned();
    Some(if ends == LineEnds::Plain {
        text.replace("\r\n", "\n")
    } else {
        text
    })
}

fn count_lines(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64
}

/// Returns lines in the output form that was asked for.
fn shown(call: &Grep, path: &[u8], text: &str, (first, last): (u64, u64)) -> MatchedFile {
    let context = u64::from(call.context);
    let near = first.saturating_sub(context)..=last.saturating_add(context);
    let lines = (1..)
        .zip(text.lines())
        .filter(|(number, _)| call.output == GrepOutput::Content && near.contains(number));
    let lines = lines.map(|(number, line)| {
        let (text, cut) = shorten(line.as_bytes(), || 0);
        MatchedLine {
            number,
            text,
            cut,
            matched: (first..=last).contains(&number),
        }
    });
    MatchedFile {
        path: BytesPath::from_bytes(path),
        count: last - first + 1,
        lines: lines.collect(),
        binary: false,
    }
}
