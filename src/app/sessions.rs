use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use jiff::tz::TimeZone;

use super::Error;
use super::Place;
use super::bench::Ground;
use super::demo;
use super::resume::not_a_demonstration;
use podbay_config::Config;
use podbay_event::ExecutionReport;
use podbay_event::Kind;
use podbay_event::SessionId;
use podbay_session as session;
use podbay_session::SessionFile;
use podbay_session::SessionList;
use podbay_session::SessionSummary;
use podbay_session::State;
use podbay_session::Stats;

/// Lists so many sessions, newest first, and what was passed over.
pub fn list_sessions(state: &State, most: usize) -> Result<SessionList, Error> {
    session::list(state, most).map_err(Error::Session)
}

/// Returns those of these sessions, each once, that are not the one of the project which was worked
/// on last.
pub fn other_sessions(place: &Place, sessions: impl IntoIterator<Item = String>) -> Vec<String> {
    let last = Ground::open(place)
        .ok()
        .and_then(|ground| session::find_latest(&place.state, &ground.text()).ok())
        .map(|latest| latest.found.session);
    let mut others = Vec::new();
    for name in sessions {
        let is_last = last.as_ref().is_some_and(|last| last.as_str() == name);
        if !is_last && !others.contains(&name) {
            others.push(name);
        }
    }
    others
}

/// Returns the ids of these sessions; one that is not found is an error.
pub fn session_ids(state: &State, wanted: &[String]) -> Result<Vec<String>, Error> {
    let id = |wanted: &String| {
        session::find(state, wanted)
            .map(|found| found.session.to_string())
            .map_err(Error::Session)
    };
    wanted.iter().map(id).collect()
}

/// Says which logs a list leaves out, why, and what can be done about them.
pub fn not_listed(passed_over: &[String]) -> String {
    format!(
        "{}; `podbay sessions show ID` shows what is whole in one, `podbay sessions rm ID` takes one away",
        session::few(passed_over)
    )
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
    session::raw(&found.path, out)
        .map(|_| ())
        .map_err(Error::Session)
}

/// Returns the time zone of this machine, in which lists tell times.
pub fn local_time() -> TimeZone {
    TimeZone::system()
}

/// Returns a session as one line of a list, with the time that a clock in `zone` shows.
pub fn session_line(summary: &SessionSummary, zone: &TimeZone) -> String {
    let status = summary.status.map_or_else(
        || "unfinished".to_owned(),
        |status| format!("{status:?}").to_lowercase(),
    );
    let turns = summary.turns.map_or_else(String::new, |turns| {
        format!(", {turns} turn{}", if turns == 1 { "" } else { "s" })
    });
    let name = summary
        .name
        .as_ref()
        .map_or_else(String::new, |name| format!("[{name}] "));
    let of = match (&summary.agent, &summary.parent) {
        (Some(agent), Some(parent)) => format!("agent {agent} of {parent}: "),
        _ => String::new(),
    };
    format!(
        "{}  {}  {status:<11}  {name}{of}{}{turns}  ({})",
        summary.session,
        summary
            .started
            .to_zoned(zone.clone())
            .strftime("%Y-%m-%d %H:%M"),
        summary.title,
        summary.project
    )
}

/// Returns which session is to continue and the folder that it worked in; the last one is never a
/// demonstration, which cannot.
pub fn session_project(state: &State, wanted: &str) -> Result<(SessionId, PathBuf), Error> {
    if wanted == "last" {
        let last = session::last(state, |summary| summary.project != demo::PROJECT)
            .map_err(Error::Session)?;
        return Ok((last.session, PathBuf::from(last.project)));
    }
    let found = session::find(state, wanted).map_err(Error::Session)?;
    let records = session::read(&found.path).map_err(Error::Session)?;
    let header = records
        .header
        .ok_or(Error::Session(session::Error::Headless {
            path: found.path,
        }))?;
    not_a_demonstration(&found.session, &header.project)?;
    Ok((found.session, PathBuf::from(header.project)))
}

/// Copies a session; returns the new one's id.
pub fn fork_session(state: &State, wanted: &str) -> Result<SessionId, Error> {
    let found = session::find(state, wanted).map_err(Error::Session)?;
    session::fork(state, &found)
        .map(|fork| fork.session)
        .map_err(Error::Session)
}

/// Gives a session a name, or takes it away; returns which one it is, in words.
pub fn rename_session(state: &State, wanted: &str, name: &str) -> Result<String, Error> {
    let found = session::find(state, wanted).map_err(Error::Session)?;
    session::rename(state, &found, name).map_err(Error::Session)?;
    Ok(which(&found))
}

/// Undoes the last messages of a session; returns which one it is, in words, and how many of
/// them are left.
pub fn rewind_session(
    state: &State,
    wanted: &str,
    messages: u32,
    config: &Config,
) -> Result<(String, usize), Error> {
    let found = session::find(state, wanted).map_err(Error::Session)?;
    let left = session::rewind(state, &found, messages, &config.session).map_err(Error::Session)?;
    Ok((which(&found), left))
}

/// Says which session this is: `last` and a few letters of an id may not mean the one that a user
/// thinks of.
fn which(found: &SessionFile) -> String {
    match session::summary(found) {
        Some(summary) if !summary.title.is_empty() => {
            format!("{} ({})", found.session, summary.title)
        }
        _ => found.session.to_string(),
    }
}

/// Removes sessions with those of their agents, and says in words which they were; one that is not
/// found keeps all of them.
pub fn remove_sessions(state: &State, wanted: &[String]) -> Result<Vec<String>, Error> {
    let mut all: Vec<SessionFile> = Vec::new();
    for one in wanted {
        let found = session::find(state, one).map_err(Error::Session)?;
        if !all.contains(&found) {
            all.push(found);
        }
    }
    let agents: Vec<SessionSummary> = session::recent(state)
        .map_err(Error::Session)?
        .filter(|summary| summary.parent.is_some())
        .collect();
    let mut at = 0;
    while let Some(above) = all.get(at).map(|found| found.session.clone()) {
        let of_it = agents
            .iter()
            .filter(|agent| agent.parent.as_ref() == Some(&above));
        for found in of_it.map(SessionSummary::found) {
            if !all.contains(&found) {
                all.push(found);
            }
        }
        at += 1;
    }
    let mut removed = Vec::new();
    for found in &all {
        let words = which(found);
        session::remove(state, found).map_err(Error::Session)?;
        removed.push(words);
    }
    Ok(removed)
}

/// Returns a session as Markdown; `clean` frees texts of what a terminal would obey.
pub fn export_markdown(
    state: &State,
    wanted: &str,
    clean: &dyn Fn(&str) -> String,
) -> Result<String, Error> {
    let found = session::find(state, wanted).map_err(Error::Session)?;
    let records = session::read(&found.path).map_err(Error::Session)?;
    Ok(session::markdown(&records, clean))
}

/// Returns what a session did. What looks like a key is redacted, and every text goes through
/// `clean`.
pub fn execution_report(
    state: &State,
    wanted: &str,
    clean: &dyn Fn(&str) -> String,
) -> Result<ExecutionReport, Error> {
    let found = session::find(state, wanted).map_err(Error::Session)?;
    let records = session::read(&found.path).map_err(Error::Session)?;
    let report = ExecutionReport::of(&records.events);
    session::redacted(&report, clean).ok_or(Error::Bug)
}

/// Returns what the sessions of a project took, or without one those of all.
pub fn stats(state: &State, project: Option<&Path>) -> Result<Stats, Error> {
    let project = project.map(|project| project.to_string_lossy());
    Stats::of_all(state, project.as_deref()).map_err(Error::Session)
}

/// Returns what one session took.
pub fn session_stats(state: &State, wanted: &str) -> Result<Stats, Error> {
    let found = session::find(state, wanted).map_err(Error::Session)?;
    let records = session::read(&found.path).map_err(Error::Session)?;
    Ok(Stats::of_session(&records.events))
}

/// Returns a plan of a session, in Markdown: this version, or the last one.
pub fn session_plan(state: &State, wanted: &str, version: Option<u32>) -> Result<String, Error> {
    let found = session::find(state, wanted).map_err(Error::Session)?;
    let records = session::read(&found.path).map_err(Error::Session)?;
    let mut plans = records
        .events
        .into_iter()
        .filter_map(|event| match event.kind {
            Kind::PlanMade { version, text, .. } => Some((version, text)),
            _ => None,
        });
    let plan = match version {
        Some(version) => plans.find(|(made, _)| *made == version),
        None => plans.next_back(),
    };
    plan.map(|(_, text)| text).ok_or_else(|| {
        let session = &found.session;
        match version {
            None => Error::usage(
                format!("the session {session} has no plan"),
                "podbay run --plan, or /plan on in a chat, has one made",
            ),
            Some(version) => Error::usage(
                format!("the session {session} has no plan {version}"),
                format!("podbay sessions show {session} shows all of them"),
            ),
        }
    })
}

/// Returns a session as one JSON object.
pub fn export_json(
    state: &State,
    wanted: &str,
    clean: &dyn Fn(&str) -> String,
) -> Result<String, Error> {
    let found = session::find(state, wanted).map_err(Error::Session)?;
    let records = session::read(&found.path).map_err(Error::Session)?;
    Ok(podbay_event::json_line(&session::json(&records, clean)).unwrap_or_default())
}
