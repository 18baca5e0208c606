//! Going on with an earlier session.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use super::Error;
use super::Place;
use super::PlanStart;
use super::demo;
use super::record::Recorder;
use podbay_agent::Profile;
use podbay_event::Event;
use podbay_event::Kind;
use podbay_event::SessionId;
use podbay_event::Sink;
use podbay_event::ToolMode;
use podbay_llm::Prompt;
use podbay_llm::ToolSpec;
use podbay_session as session;
use podbay_session::Artifacts;
use podbay_session::LatestSession;
use podbay_session::Log;
use podbay_session::LogRepair;
use podbay_session::OpenCall;
use podbay_session::PromptPrefix;
use podbay_session::Records;
use podbay_session::ResumeState;
use podbay_session::SessionFile;
use podbay_session::State;

/// How many logs are looked at for one that was interrupted.
const MOST_RECENT: usize = 50;

/// Which session to continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resume {
    /// By its id, the beginning of one, or `last`: the one of this project that was worked on last.
    Id(String),
    /// The one of this project that was worked on last.
    Latest,
}

/// What a session is opened for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Aim<'a> {
    /// This task.
    Task(&'a str),
    /// The task that an earlier run left open.
    Open,
    /// A conversation with a user.
    Chat,
}

impl<'a> Aim<'a> {
    pub(super) fn task(self) -> Option<&'a str> {
        match self {
            Self::Task(task) => Some(task),
            Self::Open | Self::Chat => None,
        }
    }
}

/// Opens the log of an earlier session and everything in it that matters. Nothing in the log is
/// executed again, and nothing that was allowed in it is allowed now.
pub(super) fn open(
    place: &Place,
    project: &str,
    wanted: &Resume,
    aim: Aim<'_>,
    watcher: &Sink,
) -> Result<(Recorder, ResumeState), Error> {
    let latest = match wanted {
        Resume::Id(id) if id != "last" => {
            session::find(&place.state, id).map(|found| LatestSession {
                found,
                passed_over: Vec::new(),
            })
        }
        // Of this project, whatever was worked on elsewhere since.
        Resume::Id(_) | Resume::Latest => session::find_latest(&place.state, project),
    };
    let LatestSession { found, passed_over } = latest.map_err(Error::Session)?;
    check(
        &session::read(&found.path).map_err(Error::Session)?,
        &found,
        project,
        (aim, place.plan),
    )?;
    let (log, mut records, repair) =
        Log::resume(&place.state, &found.path, &place.config.session).map_err(Error::Session)?;
    let recorder = Recorder::resume(log, place.api_key.as_ref(), Arc::clone(watcher));
    let mut past = ResumeState::of(&records.events);
    recorder.emit(Kind::SessionResumed {
        podbay: env!("CARGO_PKG_VERSION").to_owned(),
        mode: place.mode.as_str().to_owned(),
        task: aim.task().map(ToOwned::to_owned),
    });
    if !passed_over.is_empty() {
        recorder.warn(format!(
            "this is the last session that can be read; logs were written since: {}",
            session::few(&passed_over)
        ));
    }
    for warning in problems(&records, repair.as_ref(), &past) {
        recorder.warn(warning);
    }
    if !past.open.is_empty() {
        for open in past.open.iter().map(OpenCall::close) {
            recorder.emit(open.clone());
            records.events.push(Event::now(open));
        }
        past = ResumeState::of(&records.events);
    }
    match past.load_images(&Artifacts::new(&place.state, recorder.session(), &place.config.session)) {
        0 => {}
        n => recorder.warn(format!("{n} of the images that the model was shown are no longer kept; it has the words about them alone")),
    }
    recorder.sync();
    Ok((recorder, past))
}

/// Returns what the log of a session holds, for whoever looks at it again before it continues; nothing
/// where it cannot be read, which opening it will say.
pub fn past_events(state: &State, wanted: &Resume, project: &Path) -> Vec<Event> {
    let found = match wanted {
        Resume::Id(id) if id != "last" => session::find(state, id).ok(),
        Resume::Id(_) | Resume::Latest => {
            let Ok(project) = project.canonicalize() else {
                return Vec::new();
            };
            session::find_latest(state, &project.to_string_lossy())
                .ok()
                .map(|latest| latest.found)
        }
    };
    found
        .and_then(|found| session::read(&found.path).ok())
        .map(|records| records.events)
        .unwrap_or_default()
}

/// Refuses a session of another project.
pub fn check_project(session: &SessionId, its: &Path, here: &Path) -> Result<(), Error> {
    if here.canonicalize().is_ok_and(|here| here == its) {
        return Ok(());
    }
    Err(Error::usage(
        format!("the session {session} belongs to {}", its.display()),
        format!(
            "continue it there: podbay --resume {session} -C '{}'",
            its.display()
        ),
    ))
}

/// Returns the session of this project that was worked on last where it has no end. One that
/// somebody works with now has none yet, and a copy that nobody continued is as it was left.
/// Only the newest logs are looked at.
pub(super) fn broken_off(state: &State, project: &str) -> Option<SessionId> {
    let mut here = session::recent(state)
        .ok()?
        .take(MOST_RECENT)
        .filter(|summary| summary.project == project && summary.parent.is_none());
    let last = here.find(|summary| {
        !summary.title.is_empty()
            && !summary.is_copy
            && (summary.status.is_some() || !session::is_held(&summary.path))
    })?;
    last.status.is_none().then_some(last.session)
}

/// Refuses the session of an agent: it is part of another one.
fn not_an_agents(records: &Records, session: &SessionId) -> Result<(), Error> {
    let Some((parent, agent)) = session::spawned(&records.events) else {
        return Ok(());
    };
    Err(Error::usage(
        format!("the session {session} is that of an agent ({agent}) of session {parent}"),
        format!("resume that one: podbay --resume {parent}"),
    ))
}

/// Refuses what cannot be resumed, before anything is touched.
fn check(
    records: &Records,
    found: &SessionFile,
    project: &str,
    (aim, plan): (Aim<'_>, PlanStart),
) -> Result<(), Error> {
    let Some(header) = &records.header else {
        return Err(Error::Session(session::Error::Headless {
            path: found.path.clone(),
        }));
    };
    not_a_demonstration(&found.session, &header.project)?;
    not_an_agents(records, &found.session)?;
    if header.project != project {
        return Err(Error::usage(
            format!(
                "the session {} belongs to {}, and this is {project}",
                found.session, header.project
            ),
            format!("resume it there: -C '{}'", header.project),
        ));
    }
    let past = ResumeState::of(&records.events);
    if plan == PlanStart::Implement {
        return past.plan.map(|_| ()).ok_or_else(|| {
            Error::usage(
                format!("the session {} has no plan", found.session),
                format!(
                    "have one made: podbay run --resume {} --plan \"…\"",
                    found.session
                ),
            )
        });
    }
    if matches!(aim, Aim::Open) && past.is_done() {
        return Err(Error::usage(
            format!("the session {} has no open task", found.session),
            format!(
                "give it a new one: podbay run --resume {} \"…\"",
                found.session
            ),
        ));
    }
    Ok(())
}

/// Refuses a session of a demonstration: its model was a script, and its files are gone.
pub(super) fn not_a_demonstration(session: &SessionId, project: &str) -> Result<(), Error> {
    if project == demo::PROJECT {
        return Err(Error::usage(
            format!(
                "the session {session} is a demonstration, which cannot be resumed: its model was a script, its files are gone"
            ),
            format!(
                "read it with podbay sessions show {session}, or begin a task of your own: podbay run \"…\""
            ),
        ));
    }
    Ok(())
}

/// Returns what a user should know of a log that is not as it was written.
fn problems(records: &Records, repair: Option<&LogRepair>, past: &ResumeState) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(first) = records.problems.first() {
        warnings.push(format!(
            "the session's log is damaged in {}, first in line {} ({}); what is whole in it is used",
            if records.problems.len() == 1 { "one place".to_owned() } else { format!("{} places", records.problems.len()) },
            first.line,
            first.what
        ));
    }
    if let Some(LogRepair::Cut { bytes, kept }) = repair {
        warnings.push(format!(
            "the last {bytes} bytes of the session's log were no whole record; they are kept in {}",
            kept.display()
        ));
    }
    // What does not read was said above.
    match past.n_unknown.saturating_sub(records.problems.iter().filter(|problem| problem.is_unread).count()) {
        0 => {}
        1 => warnings.push("the session's log has a record that this version does not know; it is passed over".to_owned()),
        n => warnings.push(format!("the session's log has {n} records that this version does not know; they are passed over")),
    }
    match past.n_unshown {
        0 => {}
        n => warnings.push(format!(
            "the last message names {n} more image{} that the model was not shown: Podbay was stopped before; name what it is to see again, \
             with an @",
            if n == 1 { "" } else { "s" }
        )),
    }
    warnings
}

/// Returns the beginning that an earlier run's requests had, so that the server finds them in its
/// cache; `None` where this run's must differ.
pub(super) fn same_beginning(
    past: &ResumeState,
    tools: &[ToolSpec],
    mode: ToolMode,
    thinking: bool,
    profile: Profile,
) -> Option<Prompt> {
    let beginning = past.beginning.as_ref()?;
    let before: HashSet<&str> = beginning
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    let now: HashSet<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let is_same = beginning.mode == mode
        && beginning.thinking == thinking
        && Profile::of(&beginning.system) == profile;
    (before == now && is_same).then(|| prompt_of(beginning))
}

fn prompt_of(beginning: &PromptPrefix) -> Prompt {
    let spec = |tool: &podbay_event::ToolTold| ToolSpec {
        name: tool.name.clone(),
        description: tool.description.clone(),
        parameters: tool.parameters.clone(),
    };
    let tools: Vec<ToolSpec> = beginning.tools.iter().map(spec).collect();
    let prompt = Prompt::new(&beginning.system, &tools, beginning.mode)
        .with_thinking_replayed(beginning.thinking);
    prompt.with_system_folded(beginning.folded)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::Duration;
    use std::time::SystemTime;

    use super::*;
    use podbay_event::RunStatus;
    use podbay_session::Options;

    /// Begins a session that was worked on so many seconds ago; nobody else writes it when the log
    /// that is returned is dropped.
    fn begin(state: &State, id: &str, project: &str, age: u64, rest: &[Kind]) -> Log {
        let started = Kind::SessionStarted {
            version: session::VERSION,
            session: id.parse().expect("an id"),
            podbay: "0".to_owned(),
            project: project.to_owned(),
            mode: "auto".to_owned(),
            task: Some("work".to_owned()),
        };
        let mut log =
            Log::create(state, &Event::now(started), &Options::default(), None).expect("a new log");
        for kind in rest {
            log.append(&Event::now(kind.clone())).expect("writes");
        }
        let found = session::find(state, id).expect("there");
        let at = SystemTime::now() - Duration::from_secs(age);
        File::options()
            .append(true)
            .open(found.path)
            .and_then(|file| file.set_modified(at))
            .expect("ours");
        log
    }

    #[test]
    fn what_was_broken_off_here_is_found_whatever_was_done_elsewhere_since() {
        let temp = tempfile::tempdir().expect("a folder");
        let state = &State::open(&temp.path().join("state")).expect("opens");
        let broken = || broken_off(state, "/here").map(|id| id.to_string());
        assert_eq!(broken(), None);
        drop(begin(state, "aaaaaaaaaaaa", "/here", 100, &[]));
        drop(begin(state, "bbbbbbbbbbbb", "/else", 90, &[]));
        assert_eq!(
            broken().as_deref(),
            Some("aaaaaaaaaaaa"),
            "a run elsewhere hides nothing"
        );
        let held = begin(state, "cccccccccccc", "/here", 80, &[]);
        drop(begin(
            state,
            "dddddddddddd",
            "/here",
            70,
            &[Kind::SessionForked {
                from: "cccccccccccc".parse().expect("an id"),
            }],
        ));
        assert_eq!(
            broken().as_deref(),
            Some("aaaaaaaaaaaa"),
            "a running one is left alone, and so is its copy"
        );
        drop(held);
        assert_eq!(broken().as_deref(), Some("cccccccccccc"));
        let done = Kind::RunFinished {
            status: RunStatus::Completed,
            exit_code: 0,
            response: String::new(),
            turns: 1,
            tool_calls: 0,
            usage: podbay_event::Usage::default(),
            limit: None,
            error: None,
            duration_ms: 1,
        };
        drop(begin(state, "eeeeeeeeeeee", "/here", 60, &[done]));
        assert_eq!(broken(), None, "what came after it has its end");
    }
}
