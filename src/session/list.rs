use std::fs::File;
use std::io;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;
use std::path::Path;
use std::path::PathBuf;

use jiff::Timestamp;
use serde::Serialize;

use crate::event::Event;
use crate::event::Kind;
use crate::event::RunStatus;
use crate::event::SessionId;

use super::Error;
use super::Header;
use super::State;
use super::disk;
use super::find;
use super::record;

/// How much of a log's head and tail is read at first, and at most.
const FIRST: u64 = 32 << 10;
const MOST: u64 = 2 << 20;
const TITLE_CHARS: usize = 120;

/// A session in a few words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Summary {
    pub session: SessionId,
    pub started: Timestamp,
    pub project: String,
    pub mode: String,
    /// The first line of the task, else of the first message.
    pub title: String,
    /// `None`: it is still running, or it was cut short.
    pub status: Option<RunStatus>,
    /// `None` where counting would mean reading all of a long log.
    pub turns: Option<u32>,
    pub tool_calls: Option<u32>,
    pub path: PathBuf,
}

/// Returns all sessions, the newest first. Only the head and the tail of each log are read; files that hold no session are left out.
pub fn list(state: &State) -> Result<Vec<Summary>, Error> {
    let mut all: Vec<Summary> = find::files(state)?.iter().filter_map(|found| summarize(&found.path).ok().flatten()).collect();
    all.sort_by(|a, b| b.started.cmp(&a.started).then_with(|| a.session.cmp(&b.session)));
    Ok(all)
}

fn summarize(path: &Path) -> io::Result<Option<Summary>> {
    let mut file = disk::open_read(path)?;
    let length = file.metadata()?.len();
    let Some(head) = grow(length, |size| Ok(events(&read_at(&mut file, 0, size)?)), |head| title(head).is_some())? else {
        return Ok(None);
    };
    let Some(header) = head.first().and_then(Header::of) else { return Ok(None) };
    let whole = length <= FIRST;
    let tail = if whole {
        head.clone()
    } else {
        let tail = grow(length, |size| Ok(events(&read_at(&mut file, length - size, size)?)), |tail| !tail.is_empty())?;
        tail.unwrap_or_default()
    };
    // A message or a resumption behind the last end means that the session went on from there.
    let ended = tail.iter().rposition(|event| matches!(event.kind, Kind::RunFinished { .. }));
    let went_on = ended
        .is_some_and(|end| tail[end..].iter().any(|event| matches!(event.kind, Kind::UserMessage { .. } | Kind::SessionResumed { .. })));
    let (mut status, mut turns, mut tool_calls) = (None, None, None);
    if let Some(Kind::RunFinished { status: how, turns: n_turns, tool_calls: n_calls, .. }) = ended.map(|end| &tail[end].kind)
        && !went_on
    {
        (status, turns, tool_calls) = (Some(*how), Some(*n_turns), Some(*n_calls));
    } else if whole {
        let count = |is: fn(&Kind) -> bool| Some(head.iter().filter(|event| is(&event.kind)).count() as u32);
        turns = count(|kind| matches!(kind, Kind::AssistantMessage { .. }));
        tool_calls = count(|kind| matches!(kind, Kind::CallStarted { .. }));
    }
    let title = title(&head).unwrap_or_default();
    Ok(Some(Summary {
        session: header.session,
        started: header.at,
        project: header.project,
        mode: header.mode,
        title,
        status,
        turns,
        tool_calls,
        path: path.to_owned(),
    }))
}

/// Reads more and more, until it is enough or all.
fn grow(
    length: u64,
    mut read: impl FnMut(u64) -> io::Result<Vec<Event>>,
    enough: impl Fn(&[Event]) -> bool,
) -> io::Result<Option<Vec<Event>>> {
    let mut size = FIRST;
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
        if let record::Piece::Record(value) = piece {
            events.extend(record::to_event(value).0);
        }
    });
    scanned.expect("memory can be read");
    events
}

fn title(head: &[Event]) -> Option<String> {
    let text = head.iter().find_map(|event| match &event.kind {
        Kind::SessionStarted { task: Some(text), .. } | Kind::UserMessage { text, .. } => Some(text),
        _ => None,
    })?;
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match line.char_indices().nth(TITLE_CHARS) {
        Some((end, _)) => Some(format!("{}…", &line[..end])),
        None => Some(line.to_owned()),
    }
}
