//! The slash commands that are about more than the next turn.

use super::execution_report;
use super::execution_report::ReportFormat;
use super::execution_report::write_new;
use super::face::Face;
use super::prompts::Prompts;
use super::setup::Setup;
use super::setup::api_key;
use podbay_app as app;
use podbay_app::Chat;
use podbay_app::Interrupt;
use podbay_app::NetworkMode;
use podbay_app::Place;
use podbay_app::Resume;
use podbay_app::Undo;
use podbay_config as config;
use podbay_event::SessionId;
use podbay_ui::Paint;
use podbay_ui::text;
use podbay_ui::tui::CANCELLED;
use podbay_ui::tui::Facts;
use podbay_ui::tui::Tui;

/// Sessions that are listed.
const MOST_SESSIONS: usize = 15;
/// Sessions to pick from.
const MOST_PICKED: usize = 9;

/// What became of a command.
pub(super) enum Did {
    Said,
    /// It is a message for the model.
    Message(String),
    /// The session ends, and another one is opened.
    Other(Other),
}

/// Which session is opened next.
pub(super) enum Other {
    New,
    Resume(String),
    /// A copy of this one.
    Fork,
    /// This one, without the last messages.
    Rewind(u32),
    /// This one, with another model.
    Model(String),
}

impl Other {
    /// Sets the place for it, once `session` has ended.
    pub(super) fn prepare(
        self,
        session: &SessionId,
        place: &mut Place,
        setup: &Setup,
    ) -> Result<(), app::Error> {
        let this = session.as_str();
        place.resume = match self {
            Self::New => None,
            Self::Resume(id) => {
                // Said before anything is opened.
                let (id, project) = app::session_project(&setup.state, &id)?;
                app::check_project(&id, &project, &place.project)?;
                Some(Resume::Id(id.to_string()))
            }
            Self::Fork => {
                let copy = app::fork_session(&setup.state, this)?;
                Some(Resume::Id(copy.to_string()))
            }
            Self::Rewind(n) => {
                app::rewind_session(&setup.state, this, n, &place.config)?;
                Some(Resume::Id(this.to_owned()))
            }
            Self::Model(name) => {
                app::set_model(&mut place.config, name);
                Some(Resume::Id(this.to_owned()))
            }
        };
        Ok(())
    }
}

/// Returns what is known before anything is started.
pub(super) fn facts(place: &Place) -> Facts {
    let sandbox = &place.config.sandbox;
    let project = place
        .project
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let network = network_words(&place.config);
    Facts {
        project,
        mode: place.mode.as_str().to_owned(),
        model: place.config.llm.model.clone().unwrap_or_default(),
        limits: format!("{} cores, {}, {network}", sandbox.cpus, sandbox.memory),
        branch: None,
        has_plan_mode: !app::is_attached(&place.config),
    }
}

fn network_words(config: &config::Config) -> &'static str {
    match config.network.mode() {
        NetworkMode::None => "no network",
        NetworkMode::Allowlist => "allowed hosts",
        NetworkMode::Open => "open network",
    }
}

/// Does what the command asks for.
pub(super) async fn other(
    name: &str,
    rest: &str,
    chat: &mut Chat,
    face: &Face,
    setup: &Setup,
    last: Option<&str>,
    interrupt: &Interrupt,
) -> Did {
    let said = match name {
        "new" | "clear" => return Did::Other(Other::New),
        "fork" => return Did::Other(Other::Fork),
        "retry" => match last {
            Some(message) => return Did::Message(message.to_owned()),
            None => Ok("There is no message to send again.".to_owned()),
        },
        "rewind" => match rest {
            "" if chat.n_turns() == 0 => Ok("There is no message to rewind.".to_owned()),
            "" => return Did::Other(Other::Rewind(1)),
            number => match number.parse::<u32>() {
                // Refused before the session ends: its sandbox stays.
                Ok(n @ 1..) if n as usize > chat.n_turns() => {
                    Ok(format!("There are {} messages to rewind.", chat.n_turns()))
                }
                Ok(n @ 1..) => return Did::Other(Other::Rewind(n)),
                _ => Ok("/rewind takes how many of your messages, a number from 1.".to_owned()),
            },
        },
        "model" if !rest.is_empty() => match other_model(rest, setup, interrupt).await {
            Ok(()) => return Did::Other(Other::Model(rest.to_owned())),
            Err(error) => Err(error),
        },
        "model" => {
            let models = match api_key(&setup.config) {
                Ok(key) => app::other_models(&setup.config, key, interrupt.run()).await,
                Err(error) => Err(error),
            };
            models.map(|models| {
                let of = models.map_or_else(String::new, |models| format!(": {models}"));
                let model = chat.model();
                format!("{model} answers; /model NAME continues with another one{of}.")
            })
        }
        "session" | "resume" => match sessions(rest, chat, setup) {
            Ok(Some(id)) => match another(&id, chat, setup) {
                Ok(()) => return Did::Other(Other::Resume(id)),
                Err(error) => Err(error),
            },
            Ok(None) => match face.tui().filter(|_| name == "resume") {
                Some(tui) => match pick(tui, chat, setup).await {
                    Ok(Some(id)) => return Did::Other(Other::Resume(id)),
                    Ok(None) => return Did::Said,
                    Err(error) => Err(error),
                },
                None => list(chat, setup),
            },
            Err(said) => said,
        },
        "rename" if rest.is_empty() => Ok("Say the name behind /rename.".to_owned()),
        "rename" => rename(rest, chat, setup),
        "btw" if rest.is_empty() => Ok("Say it behind /btw.".to_owned()),
        "btw" => {
            chat.tell(rest);
            Ok("The model reads it with your next message.".to_owned())
        }
        "add" if rest.is_empty() => Ok("Name a file behind /add.".to_owned()),
        "add" => match face.tui() {
            Some(tui) => {
                tui.prefill(&format!("@{rest} "));
                return Did::Said;
            }
            None => Ok(format!("Name it in your message: @{rest}")),
        },
        "think" => match face.tui() {
            Some(tui) => {
                tui.toggle_thinking();
                return Did::Said;
            }
            None => Ok("`ui.show_thinking = true` in the settings shows it.".to_owned()),
        },
        "copy" => match face.tui() {
            _ if chat.last_response().is_empty() => Ok("There is no answer to copy.".to_owned()),
            Some(tui) => {
                tui.copy(chat.last_response());
                Ok("The last answer was handed to the terminal's clipboard.".to_owned())
            }
            None => Ok("/copy needs the screen of --tui.".to_owned()),
        },
        "stats" => super::stats::in_chat(chat, setup),
        "status" => Ok(status(chat, setup)),
        "tools" => Ok(chat.tools().join(", ")),
        "mcp" => Ok(super::mcp::session_servers(&chat.mcp_servers())),
        "export" => export(rest, chat, setup),
        "report" => report(rest, chat, face, setup),
        "diff" => chat
            .undo(Undo::Diff { n: u32::MAX }, interrupt)
            .await
            .map(|answer| super::undo::told(&answer).0),
        "checkpoint" => Ok(chat.checkpoint()),
        "config" => Ok(config::render(&setup.settings.loaded)),
        "init" => init(chat, setup),
        "doctor" => super::doctor::in_chat(chat.project(), interrupt).await,
        "debug" => Ok(format!(
            "state folder  {}\nlog           podbay sessions show {} --json\nmore          PODBAY_LOG=podbay=debug",
            setup.state.root().display(),
            chat.session()
        )),
        "prompt" => {
            let of_servers = chat.mcp_prompts(interrupt.run()).await;
            Ok(Prompts::of(chat.project()).list(&of_servers))
        }
        "memory" => super::memory::in_chat(rest, chat, face, setup).await,
        "agents" => Ok(super::agents::in_chat(chat, setup)),
        "skills" => super::skills::in_chat(rest, chat, setup),
        // The chat has seen to the others.
        _ => return Did::Said,
    };
    match said {
        // It is shown already.
        Ok(words) if words.is_empty() => {}
        Ok(words) => face.say(&format!("{}\n", text::clean(words.trim_end()))),
        Err(error) => face.fail(&error),
    }
    Did::Said
}

fn status(chat: &Chat, setup: &Setup) -> String {
    let sandbox = &setup.config.sandbox;
    format!(
        "session  {}\nmodel    {}\nmode     {}{}\nsandbox  {} cores, {}, {} processes, {}\n",
        chat.session(),
        chat.model(),
        chat.mode().as_str(),
        if chat.is_planning() {
            ", plan mode"
        } else {
            ""
        },
        sandbox.cpus,
        sandbox.memory,
        sandbox.pids,
        network_words(&setup.config),
    )
}

fn rename(name: &str, chat: &Chat, setup: &Setup) -> Result<String, app::Error> {
    app::rename_session(&setup.state, chat.session().as_str(), name)?;
    Ok(format!("This session is called {name} from now on."))
}

/// Returns the session to continue; `None`: they are to be listed.
fn sessions(
    rest: &str,
    chat: &Chat,
    setup: &Setup,
) -> Result<Option<String>, Result<String, app::Error>> {
    let (verb, name) = rest.split_once(' ').unwrap_or((rest, ""));
    match (verb, name.trim()) {
        ("" | "list", "") => Ok(None),
        ("save", name) if !name.is_empty() => Err(rename(name, chat, setup)),
        ("load", id) if !id.is_empty() => Ok(Some(id.to_owned())),
        ("delete", id) if !id.is_empty() => {
            Err(app::remove_sessions(&setup.state, &[id.to_owned()])
                .map(|_| format!("{id} is removed.")))
        }
        (id, "") if !matches!(id, "save" | "load" | "delete") => Ok(Some(id.to_owned())),
        _ => Err(Ok(
            "Say which one: its id, the beginning of one, or its name.".to_owned(),
        )),
    }
}

/// Refuses a session that cannot be continued here, before this one ends.
fn another(id: &str, chat: &Chat, setup: &Setup) -> Result<(), app::Error> {
    let (id, project) = app::session_project(&setup.state, id)?;
    app::check_project(&id, &project, chat.project())
}

/// Refuses a model that cannot answer, before this session ends.
async fn other_model(name: &str, setup: &Setup, interrupt: &Interrupt) -> Result<(), app::Error> {
    let key = api_key(&setup.config)?;
    app::check_model(&setup.config, &setup.state, key, name, interrupt.run()).await
}

/// Has the user pick a session of this project; `None`: none, which is said.
async fn pick(tui: &Tui, chat: &Chat, setup: &Setup) -> Result<Option<String>, app::Error> {
    let listed = app::list_sessions(&setup.state, MOST_SESSIONS)?;
    let here = chat.project().canonicalize().unwrap_or_default();
    let others: Vec<_> = listed
        .sessions
        .iter()
        .filter(|summary| summary.session != *chat.session())
        .filter(|summary| std::path::Path::new(&summary.project) == here)
        .take(MOST_PICKED)
        .collect();
    if others.is_empty() {
        tui.say("There is no other session to pick; /resume ID continues one of this project.");
        return Ok(None);
    }
    let lines: Vec<String> = others
        .iter()
        .map(|summary| text::line(&app::session_line(summary, &app::local_time())))
        .collect();
    let Some(picked) = tui.pick("Which session continues?", &lines).await else {
        return Ok(None);
    };
    let at = lines.iter().position(|line| *line == picked);
    let id = match at.and_then(|at| others.get(at)) {
        Some(summary) => summary.session.to_string(),
        None if picked == CANCELLED => return Ok(None),
        // An id in the user's own words.
        None => picked,
    };
    another(&id, chat, setup)?;
    Ok(Some(id))
}

fn list(chat: &Chat, setup: &Setup) -> Result<String, app::Error> {
    let listed = app::list_sessions(&setup.state, MOST_SESSIONS)?;
    let mut out = format!("this one: {}\n", chat.session());
    for summary in &listed.sessions {
        out.push_str(&text::line(&app::session_line(summary, &app::local_time())));
        out.push('\n');
    }
    out.push_str("/resume ID continues one of this project\n");
    Ok(out)
}

/// Writes the session to a file that is not there yet.
fn export(rest: &str, chat: &Chat, setup: &Setup) -> Result<String, app::Error> {
    let mut words = rest.split_whitespace();
    let (format, path) = match words.next() {
        Some(format @ ("md" | "html" | "json")) => (format, words.next()),
        other => ("md", other),
    };
    let id = chat.session().as_str();
    let text = match format {
        "json" => app::export_json(&setup.state, id, &text::clean)?,
        "html" => super::sessions::html(&setup.state, id)?,
        _ => app::export_markdown(&setup.state, id, &text::clean)?,
    };
    let path = path.map_or_else(|| format!("podbay-{id}.{format}"), str::to_owned);
    write_new(&path, &text, chat.project())?;
    Ok(format!("written to {path}"))
}

/// Shows what the session did, or writes it to a file that is not there yet.
fn report(rest: &str, chat: &Chat, face: &Face, setup: &Setup) -> Result<String, app::Error> {
    let id = chat.session().as_str();
    let report = execution_report::of_session(&setup.state, id)?;
    let mut words = rest.split_whitespace();
    let (format, end) = match words.next() {
        None => {
            match face.tui() {
                Some(tui) => tui.report(report),
                None => face.say(&ReportFormat::Text.render(&report, face.terminal().paint)),
            }
            return Ok(String::new());
        }
        Some("md") => (ReportFormat::Markdown, "md"),
        Some("html") => (ReportFormat::Html, "html"),
        Some("json") => (ReportFormat::Json, "json"),
        Some(_) => {
            return Ok(
                "/report takes md, html or json, and the path of a file to write.".to_owned(),
            );
        }
    };
    let path = words
        .next()
        .map_or_else(|| format!("report-{id}.{end}"), str::to_owned);
    write_new(&path, &format.render(&report, Paint::NONE), chat.project())?;
    Ok(format!("written to {path}"))
}

fn init(chat: &Chat, setup: &Setup) -> Result<String, app::Error> {
    let done = app::init(chat.project(), setup.state.root())?;
    let mut out = String::new();
    for made in &done.made {
        out.push_str(&format!("made {made}\n"));
    }
    for kept in &done.kept {
        out.push_str(&format!("{kept} is there already\n"));
    }
    Ok(out)
}
