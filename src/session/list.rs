use std::collections::BTreeMap;
use std::fs;
use std::fs::File;
use std::io;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;
use std::path::Path;
use std::path::PathBuf;

use jiff::Timestamp;
use serde::Serialize;

use podbay_event::Event;
use podbay_event::Kind;
use podbay_event::RunStatus;
use podbay_event::SessionId;

use super::Error;
use super::Header;
use super::State;
use super::VERSION;
use super::log_file;
use super::record;
use super::session_file;
use super::session_name;

/// How much of a log's head and tail is read at first, in bytes.
const FIRST: u64 = 32 << 10;
/// How much of a log is read at first for its first line alone.
const FIRST_LINE: u64 = 1 << 10;
const MOST: u64 = 2 << 20;
const TITLE_CHARS: usize = 120;

/// The session of a project that was used last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatestSession {
    pub found: session_file::SessionFile,
    /// Logs that were written later and could not be read, each with the reason.
    pub passed_over: Vec<String>,
}

/// A list of sessions, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SessionList {
    pub sessions: Vec<SessionSummary>,
    /// Logs of the same days that cannot be read, each with the reason.
    pub passed_over: Vec<String>,
}

/// A short description of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SessionSummary {
    /// The id in the log's name, by which it is found; the first line of a hand-made copy names
    /// another one.
    pub session: SessionId,
    pub started: Timestamp,
    pub project: String,
    pub mode: String,
    /// The name that the user gave it.
    pub name: Option<String>,
    /// The session of which it is an agent's.
    pub parent: Option<SessionId>,
    /// The type of that agent.
    pub agent: Option<String>,
    /// The first line of the task, else of the first message.
    pub title: String,
    /// `None` if it is still running, or was killed.
    pub status: Option<RunStatus>,
    /// `None` where counting would mean reading a long log whole.
    pub turns: Option<u32>,
    pub tool_calls: Option<u32>,
    pub path: PathBuf,
    /// Whether it was copied from another session and not continued since.
    #[serde(skip)]
    pub is_copy: bool,
}

impl SessionSummary {
    /// Returns its log.
    pub fn found(&self) -> session_file::SessionFile {
        session_file::SessionFile {
            session: self.session.clone(),
            path: self.path.clone(),
        }
    }
}

/// Returns at most `most` sessions, the newest first, and unreadable logs with the reason.
///
/// Logs are read day by day, by the date in their names: first lines to sort them, then head and
/// tail of those that are returned.
pub fn list(state: &State, most: usize) -> Result<SessionList, Error> {
    let day = |path: &Path| {
        path.file_name()
            .and_then(|name| name.to_str())
            .and_then(|name| name.split('_').next())
            .map(str::to_owned)
    };
    let mut days: BTreeMap<Option<String>, Vec<PathBuf>> = BTreeMap::new();
    for found in session_file::files(state)? {
        days.entry(day(&found.path)).or_default().push(found.path);
    }
    let mut listed = SessionList {
        sessions: Vec::new(),
        passed_over: Vec::new(),
    };
    for mut paths in days.into_values().rev() {
        if listed.sessions.len() >= most {
            break;
        }
        paths.sort_unstable();
        let mut begun: Vec<(Header, PathBuf)> = Vec::new();
        for path in paths {
            match begin(&path) {
                Ok(Some(header)) => begun.push((header, path)),
                Ok(None) => listed.passed_over.push(format!(
                    "{}: {}",
                    path.display(),
                    without_beginning(&path)
                )),
                Err(error) => listed
                    .passed_over
                    .push(format!("{}: {error}", path.display())),
            }
        }
        begun.sort_by(|(a, _), (b, _)| b.at.cmp(&a.at).then_with(|| a.session.cmp(&b.session)));
        let room = most - listed.sessions.len();
        listed.sessions.extend(
            begun
                .iter()
                .filter_map(|(_, path)| summarize(path).ok().flatten())
                .take(room),
        );
    }
    Ok(listed)
}

/// Returns the header of a log.
fn begin(path: &Path) -> io::Result<Option<Header>> {
    let mut file = log_file::open_read(path)?;
    let length = file.metadata()?.len();
    let head = grow(
        FIRST_LINE,
        length,
        |size| Ok(events(&read_at(&mut file, 0, size)?)),
        |head| !head.is_empty(),
    )?;
    Ok(head.and_then(|head| head.first().and_then(Header::of)))
}

/// Returns the sessions, those used last first. Sorted by file modification time, since records of
/// jumping clocks cannot be compared. After a clock was set back, the newer session may come
/// second; `--resume ID` names it. Logs are read lazily.
pub fn recent(state: &State) -> Result<impl Iterator<Item = SessionSummary>, Error> {
    Ok(as_written(state)?
        .into_iter()
        .filter_map(|path| summarize(&path).ok().flatten()))
}

/// Finds the session of a project that was used last, never one of an agent, and the unreadable logs written later, each
/// with the reason: one of them may be the wanted one.
pub fn find_latest(state: &State, project: &str) -> Result<LatestSession, Error> {
    let is_own = |summary: &SessionSummary| summary.project == project && summary.parent.is_none();
    match last_of(state, is_own)? {
        (Some(found), passed_over) => Ok(LatestSession {
            found: found.found(),
            passed_over,
        }),
        (None, passed_over) => Err(Error::NoSessionHere {
            project: project.to_owned(),
            passed_over,
        }),
    }
}

/// Finds the last session that matches, in any project; never one of an agent.
pub fn last(
    state: &State,
    wanted: impl Fn(&SessionSummary) -> bool,
) -> Result<SessionSummary, Error> {
    match last_of(state, |summary| summary.parent.is_none() && wanted(summary))? {
        (Some(summary), _) => Ok(summary),
        (None, passed_over) => Err(Error::NoSession { passed_over }),
    }
}

/// Returns the last session that matches, and the unreadable logs written later.
fn last_of(
    state: &State,
    wanted: impl Fn(&SessionSummary) -> bool,
) -> Result<(Option<SessionSummary>, Vec<String>), Error> {
    let mut passed_over = Vec::new();
    for path in as_written(state)? {
        match summarize(&path) {
            Ok(Some(summary)) if wanted(&summary) => return Ok((Some(summary), passed_over)),
            Ok(Some(_)) => {}
            Ok(None) => {
                passed_over.push(format!("{}: {}", path.display(), without_beginning(&path)));
            }
            Err(error) => passed_over.push(format!("{}: {error}", path.display())),
        }
    }
    Ok((None, passed_over))
}

/// Returns all logs, those written last first.
fn as_written(state: &State) -> Result<Vec<PathBuf>, Error> {
    let written = |found: &session_file::SessionFile| {
        fs::symlink_metadata(&found.path)
            .and_then(|metadata| metadata.modified())
            .ok()
    };
    let mut all: Vec<_> = session_file::files(state)?
        .into_iter()
        .map(|found| (written(&found), found.path))
        .collect();
    all.sort_unstable_by(|a, b| b.cmp(a));
    Ok(all.into_iter().map(|(_, path)| path).collect())
}

/// Says why a log has no header.
fn without_beginning(path: &Path) -> String {
    let read = || {
        let mut file = log_file::open_read(path)?;
        let length = file.metadata()?.len();
        read_at(&mut file, 0, length.min(FIRST))
    };
    let bytes: Vec<u8> = match read() {
        Ok(bytes) => bytes,
        Err(error) => return error.to_string(),
    };
    let mut version = None;
    let (mut first, mut problem) = (true, None);
    let scanned = record::scan(bytes.as_slice(), |line, piece| {
        let what = match piece {
            record::LinePiece::Record(value) => {
                version = version
                    .or_else(|| value.get("version")?.as_u64())
                    .filter(|_| value["type"] == "session_started")
                    .or(version);
                if first {
                    record::to_event(value).1
                } else {
                    None
                }
            }
            record::LinePiece::Damage(what) => Some(what),
        };
        if std::mem::replace(&mut first, false) {
            problem = what.map(|what| format!("line {line}: {what}"));
        }
    });
    match version.filter(|version| scanned.is_ok() && *version != u64::from(VERSION)) {
        Some(version) if version > u64::from(VERSION) => {
            format!("a newer Podbay wrote it, in format {version}")
        }
        Some(version) => format!("an older Podbay wrote it, in format {version}"),
        None if bytes.is_empty() => "it is empty".to_owned(),
        None => problem.unwrap_or_else(|| "no session begins in it".to_owned()),
    }
}

/// Returns a short description of a session; `None` if its file holds none.
pub fn summary(found: &session_file::SessionFile) -> Option<SessionSummary> {
    summarize(&found.path).ok().flatten()
}

fn summarize(path: &Path) -> io::Result<Option<SessionSummary>> {
    let mut file = log_file::open_read(path)?;
    let length = file.metadata()?.len();
    let Some(head) = grow(
        FIRST,
        length,
        |size| Ok(events(&read_at(&mut file, 0, size)?)),
        |head| title(head).is_some(),
    )?
    else {
        return Ok(None);
    };
    let Some(header) = head.first().and_then(Header::of) else {
        return Ok(None);
    };
    let whole = length <= FIRST;
    let tail = if whole {
        head.clone()
    } else {
        let tail = grow(
            FIRST,
            length,
            |size| Ok(events(&read_at(&mut file, length - size, size)?)),
            |tail| !tail.is_empty(),
        )?;
        tail.unwrap_or_default()
    };
    // A message or a resumption after the last end means that the session was continued.
    let ended = tail
        .iter()
        .rposition(|event| matches!(event.kind, Kind::RunFinished { .. }));
    let went_on = ended.is_some_and(|end| {
        tail[end..].iter().any(|event| {
            matches!(
                event.kind,
                Kind::UserMessage { .. } | Kind::SessionResumed { .. }
            )
        })
    });
    let (mut status, mut turns, mut tool_calls) = (None, None, None);
    if let Some(Kind::RunFinished {
        status: how,
        turns: n_turns,
        tool_calls: n_calls,
        ..
    }) = ended.map(|end| &tail[end].kind)
        && !went_on
    {
        (status, turns, tool_calls) = (Some(*how), Some(*n_turns), Some(*n_calls));
    } else if whole {
        let count = |is: fn(&Kind) -> bool| {
            Some(head.iter().filter(|event| is(&event.kind)).count() as u32)
        };
        turns = count(|kind| matches!(kind, Kind::AssistantMessage { .. }));
        tool_calls = count(|kind| matches!(kind, Kind::CallStarted { .. }));
    }
    let title = title(&head).unwrap_or_default();
    let (parent, agent) = spawned(&head).unzip();
    Ok(Some(SessionSummary {
        session: session_file::session_of(path).unwrap_or(header.session),
        started: header.at,
        project: header.project,
        mode: header.mode,
        name: session_name::name_of(path),
        parent,
        agent,
        title,
        status,
        turns,
        tool_calls,
        path: path.to_owned(),
        is_copy: tail
            .last()
            .is_some_and(|event| matches!(event.kind, Kind::SessionForked { .. })),
    }))
}

/// Reads more and more of the file until `enough` returns a result, or all is read.
fn grow(
    first: u64,
    length: u64,
    mut read: impl FnMut(u64) -> io::Result<Vec<Event>>,
    enough: impl Fn(&[Event]) -> bool,
) -> io::Result<Option<Vec<Event>>> {
    let mut size = first;
    loop {
        let events = read(size.min(length))?;
        if enough(&events) || size >= length || size >= MOST {
            return Ok((!events.is_empty()).then_some(events));
        }
        size *= 8;
    }
}

fn read_at(file: &mut File, start: u64, size: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::with_capacity(size as usize);
    file.take(size).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn events(bytes: &[u8]) -> Vec<Event> {
    let mut events = Vec::new();
    let scanned = record::scan(bytes, |_, piece| {
        if let record::LinePiece::Record(value) = piece {
            events.extend(record::to_event(value).0);
        }
    });
    scanned.expect("memory can be read");
    events
}

/// Returns the session of which a log is an agent's, and the agent's type.
pub fn spawned(events: &[Event]) -> Option<(SessionId, String)> {
    events.iter().take(2).find_map(|event| match &event.kind {
        Kind::SessionSpawned { parent, agent, .. } => Some((parent.clone(), agent.clone())),
        _ => None,
    })
}

fn title(head: &[Event]) -> Option<String> {
    let text = head.iter().find_map(|event| match &event.kind {
        Kind::SessionStarted {
            task: Some(text), ..
        }
        | Kind::UserMessage { text, .. } => Some(text),
        _ => None,
    })?;
    let line = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    match line.char_indices().nth(TITLE_CHARS) {
        Some((end, _)) => Some(format!("{}…", &line[..end])),
        None => Some(line.to_owned()),
    }
}
