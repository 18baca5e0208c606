use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::path::Path;

use jiff::Timestamp;
use serde_json::Value;

use podbay_event::Event;
use podbay_event::Kind;
use podbay_event::SessionId;

use super::Error;
use super::VERSION;
use super::log_file;
use super::session_file;

/// Most bytes of a line; our records are much shorter.
const LINE_MAX: u64 = 64 << 20;

/// The contents of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct Records {
    pub session: SessionId,
    /// `None` if the first record is damaged; the rest can still be read.
    pub header: Option<Header>,
    /// All whole records in order, the header's included.
    pub events: Vec<Event>,
    /// What could not be read.
    pub problems: Vec<LogProblem>,
}

/// The first record of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    pub at: Timestamp,
    pub session: SessionId,
    pub podbay: String,
    pub project: String,
    pub mode: String,
    pub task: Option<String>,
}

impl Header {
    pub(super) fn of(event: &Event) -> Option<Self> {
        let Kind::SessionStarted {
            session,
            podbay,
            project,
            mode,
            task,
            ..
        } = &event.kind
        else {
            return None;
        };
        Some(Self {
            at: event.at,
            session: session.clone(),
            podbay: podbay.clone(),
            project: project.clone(),
            mode: mode.clone(),
            task: task.clone(),
        })
    }
}

/// A line, or a part of one, that is no record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogProblem {
    /// Counted from 1.
    pub line: u64,
    pub what: String,
    /// Whether it is a record of a known type that could not be parsed; it is among the events, as
    /// one of an unknown type.
    pub is_unread: bool,
}

/// Reads a log, however it ended.
///
/// An incomplete last line, blocks of zero bytes, records fused to one line and records of unknown
/// types are tolerated; only a file without any record, and one of a newer format, is an error.
pub fn read(path: &Path) -> Result<Records, Error> {
    let file = log_file::open_log(path)?;
    let mut events = Vec::new();
    let mut problems = Vec::new();
    scan(BufReader::new(file), |line, found| match found {
        LinePiece::Record(value) => {
            let (event, problem) = to_event(value);
            problems.extend(problem.map(|what| LogProblem {
                line,
                what,
                is_unread: event.is_some(),
            }));
            events.extend(event);
        }
        LinePiece::Damage(what) => problems.push(LogProblem {
            line,
            what,
            is_unread: false,
        }),
    })
    .map_err(Error::io("read", path))?;
    if let Some(Kind::SessionStarted { version, .. }) =
        events.first().map(|event: &Event| &event.kind)
        && *version != VERSION
    {
        return Err(Error::OtherVersion {
            path: path.to_owned(),
            version: *version,
        });
    }
    let header = events.first().and_then(Header::of);
    if let (Some(header), Some(named)) = (&header, session_file::session_of(path))
        && header.session != named
    {
        let what = format!(
            "the log is named after session {named}, and says that it is that of {}",
            header.session
        );
        problems.push(LogProblem {
            line: 1,
            what,
            is_unread: false,
        });
    }
    let named = header
        .as_ref()
        .map(|header| header.session.clone())
        .or_else(|| session_file::session_of(path));
    match named {
        Some(session) if !events.is_empty() => Ok(Records {
            session,
            header,
            events,
            problems,
        }),
        _ => Err(Error::NoRecords {
            path: path.to_owned(),
            problem: problems.into_iter().next(),
        }),
    }
}

/// A part of a line.
pub(super) enum LinePiece {
    Record(Value),
    Damage(String),
}

/// Reads a log line by line, in bounded memory.
pub(super) fn scan(
    mut reader: impl BufRead,
    mut found: impl FnMut(u64, LinePiece),
) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    for line in 1.. {
        bytes.clear();
        let n_read = reader
            .by_ref()
            .take(LINE_MAX)
            .read_until(b'\n', &mut bytes)?;
        if n_read == 0 {
            break;
        }
        let ended = bytes.last() == Some(&b'\n');
        pieces(&bytes, ended, |piece| found(line, piece));
    }
    Ok(())
}

/// Splits a line: no record if it is blank, usually one, several where writes were fused.
pub(super) fn pieces(line: &[u8], ended: bool, mut found: impl FnMut(LinePiece)) {
    let mut rest = line;
    let mut skipped = false;
    loop {
        let blank = rest
            .iter()
            .take_while(|byte| byte.is_ascii_whitespace() || **byte == 0)
            .count();
        let zeros = rest[..blank].contains(&0);
        rest = &rest[blank..];
        if zeros {
            found(LinePiece::Damage("a block of zero bytes".to_owned()));
        }
        if rest.is_empty() {
            return;
        }
        let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) if value.is_object() => {
                rest = &rest[values.byte_offset()..];
                skipped = false;
                found(LinePiece::Record(value));
            }
            _ => {
                if !skipped {
                    let what = if ended {
                        "a damaged record"
                    } else {
                        "a torn last record"
                    };
                    found(LinePiece::Damage(what.to_owned()));
                }
                // A torn record may be followed by a whole one: every record begins with its type.
                skipped = true;
                let start = br#"{"type":""#;
                match rest[1..]
                    .windows(start.len())
                    .position(|window| window == start)
                {
                    Some(offset) => rest = &rest[1 + offset..],
                    None => return,
                }
            }
        }
    }
}

/// Parses a record. One that has a timestamp but does not parse otherwise is kept as unknown, and
/// reported.
pub(super) fn to_event(value: Value) -> (Option<Event>, Option<String>) {
    let at = value
        .get("at")
        .and_then(Value::as_str)
        .and_then(|at| at.parse::<Timestamp>().ok());
    let name = value
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or("?")
        .to_owned();
    match (serde_json::from_value::<Event>(value), at) {
        (Ok(event), _) => (Some(event), None),
        (Err(error), Some(at)) => (
            Some(Event {
                at,
                kind: Kind::Unknown,
            }),
            Some(format!("a record `{name}` that does not read: {error}")),
        ),
        (Err(error), None) => (None, Some(format!("no event: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &[u8], expected: &[&str]) {
        let mut all = Vec::new();
        pieces(line, line.ends_with(b"\n"), |piece| {
            all.push(match piece {
                LinePiece::Record(value) => value.to_string(),
                LinePiece::Damage(what) => what,
            });
        });
        assert_eq!(all, expected);
    }

    #[test]
    fn whole_records_in_a_damaged_line_are_read() {
        check(b"{\"type\":\"a\"}\n", &[r#"{"type":"a"}"#]);
        check(b"\n", &[]);
        check(
            b"{\"type\":\"a\"}{\"type\":\"b\"}\n",
            &[r#"{"type":"a"}"#, r#"{"type":"b"}"#],
        );
        check(
            b"{\"type\":\"a\",\"te{\"type\":\"b\"}\n",
            &["a damaged record", r#"{"type":"b"}"#],
        );
        check(
            b"\0\0\0{\"type\":\"a\"}\n",
            &["a block of zero bytes", r#"{"type":"a"}"#],
        );
        check(
            b"{\"type\":\"a\"}\0\0",
            &[r#"{"type":"a"}"#, "a block of zero bytes"],
        );
        check(b"{\"type\":\"a", &["a torn last record"]);
        check(b"\xff\xfe\n", &["a damaged record"]);
        check(b"[1]\n", &["a damaged record"]);
    }
}
