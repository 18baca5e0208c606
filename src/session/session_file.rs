use std::fs;
use std::fs::TryLockError;
use std::io;
use std::path::Path;
use std::path::PathBuf;

use jiff::Timestamp;

use podbay_event::SessionId;

use super::Error;
use super::State;
use super::list::last;
use super::log::hold;
use super::log_file;
use super::session_name;

/// The log of a session, and its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionFile {
    pub session: SessionId,
    pub path: PathBuf,
}

/// Finds a session by its id, its name, the beginning of its id, or the word `last`: the one used
/// last, in any project.
pub fn find(state: &State, wanted: &str) -> Result<SessionFile, Error> {
    if wanted == "last" {
        return last(state, |_| true).map(|summary| summary.found());
    }
    let all = files(state)?;
    if let Some(exact) = all.iter().find(|found| found.session.as_str() == wanted) {
        return Ok(exact.clone());
    }
    let named: Vec<&SessionFile> = all
        .iter()
        .filter(|found| session_name::name_of(&found.path).as_deref() == Some(wanted))
        .collect();
    match named.as_slice() {
        [] => {}
        [one] => return Ok((*one).clone()),
        several => {
            let matches = several
                .iter()
                .map(|found| found.session.to_string())
                .collect();
            return Err(Error::Ambiguous {
                wanted: wanted.to_owned(),
                matches,
            });
        }
    }
    let mut matches: Vec<SessionFile> = all
        .iter()
        .filter(|found| !wanted.is_empty() && found.session.as_str().starts_with(wanted))
        .cloned()
        .collect();
    match matches.len() {
        1 => Ok(matches.remove(0)),
        0 if all.is_empty() => Err(Error::NoSession {
            passed_over: Vec::new(),
        }),
        0 => Err(Error::UnknownSession {
            wanted: wanted.to_owned(),
            near: near(wanted, &all),
        }),
        _ => Err(Error::Ambiguous {
            wanted: wanted.to_owned(),
            matches: matches
                .iter()
                .map(|found| found.session.to_string())
                .collect(),
        }),
    }
}

/// Returns whether a process is writing this log.
pub fn is_held(log: &Path) -> bool {
    let shared = log_file::open_read(log).map(|file| file.try_lock_shared());
    matches!(shared, Ok(Err(TryLockError::WouldBlock)))
}

/// Removes a session: its log, the backup of a repair, its name and its artifacts.
pub fn remove(state: &State, found: &SessionFile) -> Result<(), Error> {
    // The lock is held until the files are removed, so that no running session loses its log.
    let _held = match log_file::open_read(&found.path) {
        Ok(file) => {
            hold(&file, &found.path)?;
            Some(file)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        // A file that is no log of ours can still be removed.
        Err(_) => None,
    };
    let gone = |result: io::Result<()>| match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    };
    let artifacts = state.artifacts(&found.session);
    gone(fs::remove_dir_all(&artifacts)).map_err(Error::io("remove", &artifacts))?;
    let mut kept = found.path.as_os_str().to_owned();
    kept.push(".bak");
    gone(fs::remove_file(&kept)).map_err(Error::io("remove", &kept))?;
    let named = session_name::path(&found.path);
    gone(fs::remove_file(&named)).map_err(Error::io("remove", &named))?;
    gone(fs::remove_file(&found.path)).map_err(Error::io("remove", &found.path))
}

pub(super) fn file_name(at: Timestamp, session: &SessionId) -> String {
    format!("{}_{session}.jsonl", at.strftime("%Y-%m-%d"))
}

/// Returns the session's id in the name of its log.
pub(super) fn session_of(path: &Path) -> Option<SessionId> {
    let (date, session) = path
        .file_name()?
        .to_str()?
        .strip_suffix(".jsonl")?
        .split_once('_')?;
    // Any year, also a negative one.
    let is_date = date
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'-');
    session.parse().ok().filter(|_| is_date)
}

/// Returns all logs, in no order.
pub(super) fn files(state: &State) -> Result<Vec<SessionFile>, Error> {
    let folder = state.sessions();
    let mut all = Vec::new();
    for entry in fs::read_dir(&folder).map_err(Error::io("read", &folder))? {
        let path = entry.map_err(Error::io("read", &folder))?.path();
        if let Some(session) = session_of(&path) {
            all.push(SessionFile { session, path });
        }
    }
    Ok(all)
}

/// Returns ids that may have been meant: one or two characters off, or with the text inside.
fn near(wanted: &str, all: &[SessionFile]) -> Vec<String> {
    let mut close: Vec<(usize, &str)> = all
        .iter()
        .map(|found| found.session.as_str())
        .filter_map(|id| {
            // An abbreviation is compared with as many characters of the id as it has.
            let head = &id[..id.len().min(wanted.len())];
            let off = head
                .bytes()
                .zip(wanted.bytes())
                .filter(|(a, b)| a != b)
                .count()
                + wanted.len()
                - head.len();
            (off <= 2 && off < wanted.len() || wanted.len() >= 3 && id.contains(wanted))
                .then_some((off, id))
        })
        .collect();
    close.sort_unstable();
    close
        .into_iter()
        .take(5)
        .map(|(_, id)| id.to_owned())
        .collect()
}
