use std::io;
use std::io::Write;

use super::args::ConfigFlags;
use super::args::SessionsCommand;
use super::setup::Setup;
use crate::app;
use crate::app::exit_code;
use crate::ui::text;

pub(super) fn sessions(command: SessionsCommand) -> Result<u8, app::Error> {
    let setup = Setup::new(&ConfigFlags::default(), Vec::new())?;
    match command {
        SessionsCommand::List { json, lines } => {
            for summary in app::list_sessions(&setup.state)?.into_iter().take(lines) {
                let line = if json { app::session_json(&summary) } else { text::line(&app::session_line(&summary)) };
                let _ = writeln!(io::stdout(), "{line}");
            }
        }
        SessionsCommand::Show { id, json: true } => app::raw_session(&setup.state, &id, &mut io::stdout())?,
        SessionsCommand::Show { id, json: false } => {
            let shown = app::show_session(&setup.state, &id)?;
            let _ = write!(io::stdout(), "{}", text::clean(&shown));
        }
    }
    Ok(exit_code::DONE)
}
