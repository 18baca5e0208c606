use std::io::Write;

use super::Error;
use crate::session;
use crate::session::State;
use crate::session::Summary;

/// Lists the sessions, newest first.
pub fn list_sessions(state: &State) -> Result<Vec<Summary>, Error> {
    session::list(state).map_err(Error::Session)
}

/// Returns one session as readable text; `wanted` is an id, the beginning of one, or `last`.
pub fn show_session(state: &State, wanted: &str) -> Result<String, Error> {
    let found = session::find(state, wanted).map_err(Error::Session)?;
    let records = session::read(&found.path).map_err(Error::Session)?;
    Ok(session::show(&records))
}

/// Writes one session's records as they are, a line each.
pub fn raw_session(state: &State, wanted: &str, out: &mut impl Write) -> Result<(), Error> {
    let found = session::find(state, wanted).map_err(Error::Session)?;
    session::raw(&found.path, out).map(|_| ()).map_err(Error::Session)
}

/// Returns a session as one line of a list.
pub fn session_line(summary: &Summary) -> String {
    let status = summary.status.map_or_else(|| "unfinished".to_owned(), |status| format!("{status:?}").to_lowercase());
    let turns = summary.turns.map_or_else(String::new, |turns| format!(", {turns} turns"));
    format!(
        "{}  {}  {status:<11}  {}{turns}  ({})",
        summary.session,
        summary.started.strftime("%Y-%m-%d %H:%M"),
        summary.title,
        summary.project
    )
}

/// Returns a session as one JSON object.
pub fn session_json(summary: &Summary) -> String {
    crate::event::json_line(summary).unwrap_or_default()
}
