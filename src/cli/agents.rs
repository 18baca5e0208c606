//! `podbay agents` and `/agents`: the types of agents that the model may start.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use clap::Subcommand;

use super::args::ConfigFlags;
use super::args::FormatFlags;
use super::delivery::deliver;
use super::delivery::deliver_json;
use super::later;
use super::setup;
use super::setup::Setup;
use podbay_app as app;
use podbay_app::AgentList;
use podbay_app::AgentSource;
use podbay_app::Chat;
use podbay_app::exit_code;
use podbay_ui::text;

#[derive(Debug, Subcommand)]
pub(super) enum AgentsCommand {
    /// List the types of agents that sessions in this project have
    List(AgentsListArgs),
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

#[derive(Debug, Args)]
pub(super) struct AgentsListArgs {
    /// Project folder
    #[arg(long, short = 'C', value_name = "DIR", aliases = ["working-dir", "workdir"])]
    path: Option<PathBuf>,
    #[command(flatten)]
    config: ConfigFlags,
    #[command(flatten)]
    format: FormatFlags,
}

pub(super) fn agents(command: &AgentsCommand) -> Result<u8, app::Error> {
    match command {
        AgentsCommand::List(args) => {
            let path = args.path.as_deref();
            let setup = Setup::in_project(&args.config, path, Vec::new())?;
            setup.check_folder(path)?;
            let list = app::agents(&setup.config, &setup::folder(path)?);
            if args.format.is_json() {
                deliver_json(&list)?;
            } else {
                deliver(&words(&list))?;
            }
        }
        AgentsCommand::Other(words) => return Err(later::below("agents", &["list"], words)),
    }
    Ok(exit_code::DONE)
}

/// Returns what `/agents` says.
pub(super) fn in_chat(chat: &Chat, setup: &Setup) -> String {
    words(&app::agents(&setup.config, chat.project()))
}

fn words(list: &AgentList) -> String {
    let mut out = String::new();
    for line in &list.agents {
        let agent = &line.agent;
        let whose = match line.source {
            AgentSource::BuiltIn => "",
            AgentSource::User => "yours, ",
            AgentSource::Project => "the project's, ",
        };
        let reads = if agent.only_reads { ", only reads" } else { "" };
        let model = agent.model.as_ref().map_or_else(String::new, |model| {
            format!(", model {}", text::line(model))
        });
        let _ = writeln!(
            out,
            "{}  ({whose}{} requests{reads}{model})  {}",
            text::line(&agent.name),
            agent.turns,
            text::line(&agent.description)
        );
    }
    for problem in &list.problems {
        let _ = writeln!(out, "careful: {}", text::line(problem));
    }
    if !list.enabled {
        out.push_str("they are switched off: the model starts none (`agents.enabled`)\n");
    }
    out
}
