use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use clap::Args;
use clap::Subcommand;

use super::delivery::Delivery;
use super::later;
use podbay_app as app;
use podbay_app::exit_code;
use podbay_ui as ui;

#[derive(Debug, Subcommand)]
pub(super) enum DebugCommand {
    /// Show what Podbay understands of a model's raw text
    Parse(ParseArgs),
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

#[derive(Debug, Args)]
pub(super) struct ParseArgs {
    /// File with the tools that the model was told of: a JSON array of names, or of tools as in a
    /// request
    #[arg(long, value_name = "TOOLS.json")]
    tools: Option<PathBuf>,
    /// Format that the model's template teaches, such as `llama3`
    #[arg(long, value_name = "NAME")]
    template_hint: Option<String>,
}

pub(super) fn debug(command: DebugCommand) -> Result<u8, app::Error> {
    match command {
        DebugCommand::Parse(args) => {
            let parsed = app::parse_text(
                io::stdin().lock(),
                args.tools.as_deref(),
                args.template_hint.as_deref(),
            )?;
            let mut out = Delivery::default();
            // It keeps its own errors.
            let _ = ui::json::result(&mut out, &parsed);
            out.end()?;
            Ok(exit_code::DONE)
        }
        DebugCommand::Other(words) => Err(later::below("debug", &["parse"], &words)),
    }
}
