//! Names of sessions. Each is a file beside its log, since logs only grow.

use std::fs;
use std::io;
use std::io::Read;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use super::Error;
use super::SessionFile;
use super::State;
use super::log_file;
use super::session_file;

/// Most characters of a name.
const MAX: usize = 60;

/// Names a session, so that it is found by its name as by its id; an empty name removes it.
pub fn rename(state: &State, found: &SessionFile, name: &str) -> Result<(), Error> {
    let name = name.trim();
    let path = path(&found.path);
    if name.is_empty() {
        return match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::io("remove", &path)(error))
            }
            _ => Ok(()),
        };
    }
    check(name)?;
    is_free(state, found, name)?;
    let temporary = tempfile::NamedTempFile::new_in(state.sessions()).and_then(|mut file| {
        file.write_all(name.as_bytes())?;
        file.as_file().sync_data()?;
        file.persist(&path).map(drop).map_err(|error| error.error)
    });
    temporary.map_err(Error::io("write", &path))
}

/// Refuses a name that another session has, or that is the beginning of another one's id.
fn is_free(state: &State, found: &SessionFile, name: &str) -> Result<(), Error> {
    for other in session_file::files(state)?
        .into_iter()
        .filter(|other| other.session != found.session)
    {
        let how = if other.session.as_str().starts_with(name) {
            "this is the id of another session, or its beginning"
        } else if name_of(&other.path).as_deref() == Some(name) {
            "another session has this name"
        } else {
            continue;
        };
        return Err(Error::NameTaken {
            name: name.to_owned(),
            how,
            session: other.session.to_string(),
        });
    }
    Ok(())
}

/// Returns the name of the session with this log, if it has one.
pub(super) fn name_of(log: &Path) -> Option<String> {
    let mut name = String::new();
    log_file::open_read(&path(log))
        .ok()?
        .take(4 * MAX as u64)
        .read_to_string(&mut name)
        .ok()?;
    // An editor ends a file with a newline.
    let name = name.trim();
    (!name.is_empty() && check(name).is_ok()).then(|| name.to_owned())
}

/// Returns the path of a session's name.
pub(super) fn path(log: &Path) -> PathBuf {
    log.with_extension("name")
}

fn check(name: &str) -> Result<(), Error> {
    let problem = if name.chars().count() > MAX {
        format!("it is longer than {MAX} characters")
    } else if name.chars().any(char::is_control) {
        "it holds a control character".to_owned()
    } else if name == "last" {
        "this word means the session used last".to_owned()
    } else {
        return Ok(());
    };
    Err(Error::BadName {
        name: name.to_owned(),
        problem,
    })
}
