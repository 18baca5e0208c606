use std::io::Write;

use super::args::ConfigFlags;
use super::args::SessionsCommand;
use super::delivery::Delivery;
use super::later;
use super::setup::Setup;
use crate::app;
use crate::app::exit_code;
use crate::ui::text;

pub(super) fn sessions(command: SessionsCommand) -> Result<u8, app::Error> {
    let setup = Setup::new(&ConfigFlags::default(), Vec::new())?;
    let mut out = Delivery::default();
    match command {
        SessionsCommand::List { json, lines } => {
            for summary in app::list_sessions(&setup.state)?.into_iter().take(lines) {
                let line = if json { app::session_json(&summary) } else { text::line(&app::session_line(&summary)) };
                let _ = writeln!(out, "{line}");
            }
        }
        SessionsCommand::Show { id, json: true } => app::raw_session(&setup.state, &id, &mut out)?,
        SessionsCommand::Show { id, json: false } => {
            let shown = app::show_session(&setup.state, &id)?;
            let _ = write!(out, "{}", text::clean(&shown));
        }
        SessionsCommand::Other(words) => return Err(later::below("sessions", &["list", "show"], &words)),
    }
    out.end()?;
    Ok(exit_code::DONE)
}
