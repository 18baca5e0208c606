//! Operations on a session that is not running: fork, rewind, prune.

use std::fs;
use std::io;
use std::time::Duration;
use std::time::SystemTime;

use podbay_event::Event;
use podbay_event::Kind;
use podbay_event::SessionId;

use super::Error;
use super::Log;
use super::Options;
use super::ResumeState;
use super::SessionFile;
use super::State;
use super::log_file;
use super::read;
use super::remove;
use super::session_file;
use super::show;
use super::state;

/// Copies a session, with its artifacts, into a new independent one. Records of unknown types are
/// copied too.
pub fn fork(state: &State, found: &SessionFile) -> Result<SessionFile, Error> {
    log_file::own_file(&found.path)?;
    let records = read(&found.path)?;
    let session = SessionId::random();
    let now = Event::now(Kind::SessionForked {
        from: records.session.clone(),
    });
    let path = state
        .sessions()
        .join(session_file::file_name(now.at, &session));
    let mut lines = Vec::new();
    show::raw(&found.path, &mut lines)?;
    let lines = String::from_utf8(lines).expect("JSON is text");
    let header = records
        .events
        .first()
        .filter(|event| matches!(event.kind, Kind::SessionStarted { .. }))
        .cloned();
    let Some(mut header) = header else {
        return Err(Error::Headless {
            path: found.path.clone(),
        });
    };
    if let Kind::SessionStarted { session: id, .. } = &mut header.kind {
        id.clone_from(&session);
    }
    let mut rest: Vec<&str> = lines.lines().collect();
    if let Some(at) = rest
        .iter()
        .position(|line| line.starts_with(r#"{"type":"session_started""#))
    {
        rest.remove(at);
    }
    let line = |event: &Event| {
        podbay_event::json_line(event)
            .expect("an event is made of strings, numbers and lists of them")
    };
    let mut text = line(&header);
    for line in rest.into_iter().chain([line(&now).as_str()]) {
        text.push('\n');
        text.push_str(line);
    }
    text.push('\n');
    copy_artifacts(state, &records.session, &session)?;
    // Atomic: the file appears complete or not at all.
    let temporary = tempfile::Builder::new()
        .prefix(".new-")
        .tempfile_in(state.sessions());
    let write = |mut file: tempfile::NamedTempFile| -> io::Result<()> {
        io::Write::write_all(&mut file, text.as_bytes())?;
        file.as_file().sync_data()?;
        file.persist_noclobber(&path)
            .map(drop)
            .map_err(|error| error.error)
    };
    temporary
        .and_then(write)
        .map_err(Error::io("write", &path))?;
    Ok(SessionFile { session, path })
}

fn copy_artifacts(state: &State, from: &SessionId, to: &SessionId) -> Result<(), Error> {
    let (from, to) = (state.artifacts(from), state.artifacts(to));
    let entries = match fs::read_dir(&from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(Error::io("read", &from))?,
    };
    state::own(&to)?;
    for entry in entries {
        let name = entry.map_err(Error::io("read", &from))?.file_name();
        // It was deleted in this moment to make room, or is no artifact.
        let Ok(mut file) = log_file::open_read(&from.join(&name)) else {
            continue;
        };
        let mut copy = log_file::open_append(&to.join(&name), true)
            .map_err(Error::io("write", to.join(&name)))?;
        io::copy(&mut file, &mut copy).map_err(Error::io("write", to.join(&name)))?;
    }
    Ok(())
}

/// Rewinds the user's last messages and all that followed them; the log keeps the records. Returns
/// how many messages are left.
pub fn rewind(
    state: &State,
    found: &SessionFile,
    turns: u32,
    options: &Options,
) -> Result<usize, Error> {
    let (mut log, records, _) = Log::resume(state, &found.path, options)?;
    let there = ResumeState::of(&records.events).history.n_turns();
    if turns == 0 || turns as usize > there {
        return Err(Error::TooFarBack {
            session: records.session.to_string(),
            wanted: turns,
            there,
        });
    }
    log.append(&Event::now(Kind::SessionRewound { turns }))?;
    log.sync()?;
    Ok(there - turns as usize)
}

/// Removes sessions that are older than the settings allow, or too many; a session that is being
/// written stays.
pub fn prune(state: &State, options: &Options, now: SystemTime) -> Result<Vec<SessionId>, Error> {
    let mut all: Vec<(SystemTime, SessionFile)> = Vec::new();
    for found in session_file::files(state)? {
        // By the file's modification time: the last record's timestamp may come from a clock that
        // was wrong.
        let written = fs::symlink_metadata(&found.path).and_then(|metadata| metadata.modified());
        all.extend(written.ok().map(|written| (written, found)));
    }
    all.sort_by_key(|(written, _)| std::cmp::Reverse(*written));
    let oldest = match options.keep_days {
        0 => None,
        days => now.checked_sub(Duration::from_secs(u64::from(days) * 24 * 3600)),
    };
    let most = if options.keep_sessions == 0 {
        usize::MAX
    } else {
        options.keep_sessions as usize
    };
    let mut removed = Vec::new();
    for (at, (written, found)) in all.into_iter().enumerate() {
        if at < most && oldest.is_none_or(|oldest| written >= oldest) {
            continue;
        }
        match remove(state, &found) {
            Ok(()) => removed.push(found.session),
            Err(Error::Busy { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(removed)
}
