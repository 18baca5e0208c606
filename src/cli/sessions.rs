use std::ffi::OsString;
use std::io::Write;

use clap::Subcommand;
use clap::ValueEnum;

use super::args::ConfigFlags;
use super::args::FormatFlags;
use super::args::SessionFlags;
use super::chat;
use super::delivery::Delivery;
use super::execution_report;
use super::execution_report::ReportFormat;
use super::findings::out_paint;
use super::later;
use super::other_session::is_meant;
use super::setup::Setup;
use podbay_app as app;
use podbay_app::exit_code;
use podbay_ui as ui;
use podbay_ui::text;

#[derive(Debug, Subcommand)]
pub(super) enum SessionsCommand {
    /// List sessions, newest first
    List {
        #[command(flatten)]
        format: FormatFlags,
        /// How many to list
        #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
        lines: usize,
    },
    /// Show what happened in a session
    Show {
        /// Its id, the beginning of one, its name, or `last`: the one of all projects that was
        /// worked on last
        #[arg(value_name = "ID", default_value = "last")]
        id: String,
        /// Print the records as they are
        #[arg(long)]
        json: bool,
        /// Print its plan alone: this version, or without a number, or with 0, the last one
        #[arg(
            long,
            value_name = "VERSION",
            num_args = 0..=1,
            require_equals = true,
            default_missing_value = "0",
            conflicts_with = "json"
        )]
        plan: Option<u32>,
    },
    /// Open a chat that continues a session, in its own project
    Resume {
        /// Its id, the beginning of one, its name, or `last`: the one of all projects that was
        /// worked on last
        #[arg(value_name = "ID", default_value = "last")]
        id: String,
        #[command(flatten)]
        session: Box<SessionFlags>,
    },
    /// Copy a session into a new one that continues by itself
    Fork {
        /// Its id, the beginning of one, its name, or `last`: the one of all projects that was
        /// worked on last
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Print a session in a form for elsewhere; what looks like a key is masked
    Export {
        /// Its id, the beginning of one, its name, or `last`: the one of all projects that was
        /// worked on last
        #[arg(value_name = "ID", default_value = "last")]
        id: String,
        /// Which form
        #[arg(long, value_enum, default_value_t)]
        format: ExportFormat,
    },
    /// Print what a session did: files, commands, tests, denials, tokens and time
    Report {
        /// Its id, the beginning of one, its name, or `last`: the one of all projects that was
        /// worked on last
        #[arg(value_name = "ID", default_value = "last")]
        id: String,
        /// Which form
        #[arg(long, value_enum, default_value_t)]
        format: ReportFormat,
    },
    /// Undo the last messages, with all that came of them; files stay as they are
    Rewind {
        /// Its id, the beginning of one, its name, or `last`: the one of all projects that was
        /// worked on last
        #[arg(value_name = "ID")]
        id: String,
        /// How many of your messages
        #[arg(value_name = "N")]
        messages: u32,
    },
    /// Give a session a name, by which it is found as by its id
    Rename {
        /// Its id, the beginning of one, its name, or `last`: the one of all projects that was
        /// worked on last
        #[arg(value_name = "ID")]
        id: String,
        /// The name; an empty one takes it away
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Remove sessions, with all that was kept of their outputs
    Rm {
        /// Ids, beginnings of them, names, or `last`: the one of all projects that was worked on
        /// last
        #[arg(value_name = "ID", required = true)]
        ids: Vec<String>,
        /// Do not ask, also where one is not the last session of the project you are in
        #[arg(long, short)]
        yes: bool,
    },
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

/// The forms of an exported session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ExportFormat {
    /// For people
    #[default]
    Markdown,
    /// A page for a browser
    Html,
    /// One object: the messages and all events
    Json,
}

/// Returns a session as a page for a browser.
pub(super) fn html(state: &app::State, id: &str) -> Result<String, app::Error> {
    let markdown = app::export_markdown(state, id, &text::clean)?;
    Ok(ui::html_page(&format!("Podbay session {id}"), &markdown))
}

pub(super) async fn sessions(command: SessionsCommand) -> Result<u8, app::Error> {
    let setup = Setup::new(&ConfigFlags::default(), Vec::new())?;
    let mut out = Delivery::default();
    match command {
        SessionsCommand::List { format, lines } => {
            let listed = app::list_sessions(&setup.state, lines)?;
            if format.is_json() {
                let _ = ui::json::result(&mut out, &listed);
            } else {
                let zone = app::local_time();
                for summary in &listed.sessions {
                    let line = text::line(&app::session_line(summary, &zone));
                    let _ = writeln!(out, "{line}");
                }
            }
            if !listed.passed_over.is_empty() {
                super::say(&format!(
                    "warning: {}\n",
                    text::line(&app::not_listed(&listed.passed_over))
                ));
            }
        }
        SessionsCommand::Show { id, json: true, .. } => {
            app::raw_session(&setup.state, &id, &mut out)?;
        }
        SessionsCommand::Show {
            id,
            plan: Some(version),
            ..
        } => {
            let plan = app::session_plan(&setup.state, &id, Some(version).filter(|n| *n > 0))?;
            let _ = writeln!(out, "{}", text::clean(plan.trim_end()));
        }
        SessionsCommand::Show { id, .. } => {
            let shown = app::show_session(&setup.state, &id)?;
            let _ = write!(out, "{}", text::clean(&shown));
        }
        SessionsCommand::Resume { id, session } => {
            let (session_id, project) = app::session_project(&setup.state, &id)?;
            let mut flags = *session;
            if !app::is_attached(&setup.config) && flags.place.path.is_none() {
                flags.place.path = Some(project);
            }
            flags.resume = Some(session_id.to_string());
            return Box::pin(chat::chat(flags)).await;
        }
        SessionsCommand::Fork { id } => {
            let fork = app::fork_session(&setup.state, &id)?;
            let _ = writeln!(out, "{fork}");
        }
        SessionsCommand::Export { id, format } => {
            let exported = match format {
                ExportFormat::Markdown => app::export_markdown(&setup.state, &id, &text::clean)?,
                ExportFormat::Html => html(&setup.state, &id)?,
                ExportFormat::Json => app::export_json(&setup.state, &id, &text::clean)? + "\n",
            };
            let _ = write!(out, "{exported}");
        }
        SessionsCommand::Report { id, format } => {
            let report = execution_report::of_session(&setup.state, &id)?;
            let paint = out_paint(&setup.config.ui);
            let _ = write!(out, "{}", format.render(&report, paint));
        }
        SessionsCommand::Rewind { id, messages } => {
            let (session, left) = app::rewind_session(&setup.state, &id, messages, &setup.config)?;
            let _ = writeln!(
                out,
                "session {}: {messages} rolled back, {left} left (files are unchanged)",
                text::line(&session)
            );
        }
        SessionsCommand::Rename { id, name } => {
            let session = app::rename_session(&setup.state, &id, &name)?;
            let called = if name.trim().is_empty() {
                "has no name now".to_owned()
            } else {
                format!("is called {}", text::line(name.trim()))
            };
            let _ = writeln!(out, "session {} {called}", text::line(&session));
        }
        SessionsCommand::Rm { ids, yes } => {
            let place = setup.place_without_key(None, app::Mode::Auto)?;
            let sessions = app::session_ids(&setup.state, &ids)?;
            let others = app::other_sessions(&place, sessions);
            let cancel = tokio_util::sync::CancellationToken::new();
            if !is_meant("Remove", &others, yes, &cancel).await {
                return Ok(exit_code::FAILED);
            }
            // All are found before the first is removed: a word that is wrong removes nothing.
            for session in app::remove_sessions(&setup.state, &ids)? {
                let _ = writeln!(out, "removed session {}", text::line(&session));
            }
        }
        SessionsCommand::Other(words) => {
            let known = [
                "list", "show", "resume", "fork", "export", "report", "rewind", "rename", "rm",
            ];
            return Err(later::below("sessions", &known, &words));
        }
    }
    out.end()?;
    Ok(exit_code::DONE)
}
