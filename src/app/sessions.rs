use std::io::Write;
use std::path::PathBuf;

use super::Error;
use super::demo;
use super::resume::not_a_demonstration;
use crate::config::Config;
use crate::event::SessionId;
use crate::session;
use crate::session::Found;
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
    let turns = summary.turns.map_or_else(String::new, |turns| format!(", {turns} turn{}", if turns == 1 { "" } else { "s" }));
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

/// Returns which session is to go on and the folder that it worked in; the last one is never a demonstration, which cannot.
pub fn session_project(state: &State, wanted: &str) -> Result<(SessionId, PathBuf), Error> {
    if wanted == "last" {
        let last = list_sessions(state)?.into_iter().find(|summary| summary.project != demo::PROJECT);
        let last = last.ok_or(Error::Session(session::Error::NoSession))?;
        return Ok((last.session, PathBuf::from(last.project)));
    }
    let found = session::find(state, wanted).map_err(Error::Session)?;
    let records = session::read(&found.path).map_err(Error::Session)?;
    let header = records.header.ok_or(Error::Session(session::Error::Headless { path: found.path }))?;
    not_a_demonstration(&found.session, &header.project)?;
    Ok((found.session, PathBuf::from(header.project)))
}

/// Copies a session; returns the new one's id.
pub fn fork_session(state: &State, wanted: &str) -> Result<SessionId, Error> {
    let found = session::find(state, wanted).map_err(Error::Session)?;
    session::fork(state, &found).map(|fork| fork.session).map_err(Error::Session)
}

/// Takes back the last messages of a session; returns how many of them are left.
pub fn rewind_session(state: &State, wanted: &str, messages: u32, config: &Config) -> Result<usize, Error> {
    let found = session::find(state, wanted).map_err(Error::Session)?;
    session::rewind(state, &found, messages, &config.session).map_err(Error::Session)
}

/// Removes sessions; one that is not found keeps all of them.
pub fn remove_sessions(state: &State, wanted: &[String]) -> Result<Vec<SessionId>, Error> {
    let mut all: Vec<Found> = Vec::new();
    for one in wanted {
        let found = session::find(state, one).map_err(Error::Session)?;
        if !all.contains(&found) {
            all.push(found);
        }
    }
    for found in &all {
        session::remove(state, found).map_err(Error::Session)?;
    }
    Ok(all.into_iter().map(|found| found.session).collect())
}

/// Returns a session as Markdown; `clean` frees texts of what a terminal would obey.
pub fn export_markdown(state: &State, wanted: &str, clean: &dyn Fn(&str) -> String) -> Result<String, Error> {
    let found = session::find(state, wanted).map_err(Error::Session)?;
    let records = session::read(&found.path).map_err(Error::Session)?;
    Ok(session::markdown(&records, clean))
}

/// Returns a session as one JSON object.
pub fn export_json(state: &State, wanted: &str, clean: &dyn Fn(&str) -> String) -> Result<String, Error> {
    let found = session::find(state, wanted).map_err(Error::Session)?;
    let records = session::read(&found.path).map_err(Error::Session)?;
    Ok(crate::event::json_line(&session::json(&records, clean)).unwrap_or_default())
}
