//! `podbay mcp`: which servers there are, and what the user decides about them.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use clap::Subcommand;
use clap::ValueHint;
use serde::Serialize;

use super::args::ConfigFlags;
use super::args::FormatFlags;
use super::confirmed::confirmed;
use super::delivery::deliver;
use super::delivery::deliver_json;
use super::later;
use super::setup;
use super::setup::Setup;
use podbay_app as app;
use podbay_app::McpPlace;
use podbay_app::McpServer;
use podbay_app::McpServerState;
use podbay_app::McpSource;
use podbay_app::McpState;
use podbay_app::McpStatus;
use podbay_app::McpToolChange;
use podbay_app::exit_code;
use podbay_ui::text;

#[derive(Debug, Subcommand)]
pub(super) enum McpCommand {
    /// List the servers of the settings and of the project, and which of them a session starts
    List(McpListArgs),
    /// Enable the servers that a project's `.mcp.json` names, once you have read them
    Trust(McpTrustArgs),
    /// Show what a server says of its tools otherwise than before, and accept it
    Accept(McpAcceptArgs),
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

#[derive(Debug, Args)]
pub(super) struct McpListArgs {
    #[command(flatten)]
    project: McpProject,
    #[command(flatten)]
    format: FormatFlags,
}

#[derive(Debug, Args)]
pub(super) struct McpTrustArgs {
    #[command(flatten)]
    project: McpProject,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Take it back
    #[arg(long, conflicts_with = "yes")]
    revoke: bool,
}

#[derive(Debug, Args)]
pub(super) struct McpAcceptArgs {
    /// The server's name
    #[arg(value_name = "NAME", value_hint = ValueHint::Other)]
    name: String,
    #[command(flatten)]
    project: McpProject,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

#[derive(Debug, Args)]
struct McpProject {
    /// Project folder
    #[arg(long, short = 'C', value_name = "DIR", aliases = ["working-dir", "workdir"])]
    path: Option<PathBuf>,
    #[command(flatten)]
    config: ConfigFlags,
}

impl McpProject {
    fn open(&self) -> Result<(Setup, PathBuf), app::Error> {
        let setup = Setup::in_project(&self.config, self.path.as_deref(), Vec::new())?;
        setup.check_folder(self.path.as_deref())?;
        Ok((setup, setup::folder(self.path.as_deref())?))
    }
}

pub(super) async fn mcp(command: McpCommand) -> Result<u8, app::Error> {
    match command {
        McpCommand::List(args) => list(&args),
        McpCommand::Trust(args) if args.revoke => revoke(&args),
        McpCommand::Trust(args) => trust(&args).await,
        McpCommand::Accept(args) => accept(&args).await,
        McpCommand::Other(words) => Err(later::below("mcp", &["list", "trust", "accept"], &words)),
    }
}

/// The servers, as a script reads them.
#[derive(Serialize)]
struct ServerList<'a> {
    servers: &'a [McpServer],
}

fn list(args: &McpListArgs) -> Result<u8, app::Error> {
    let (setup, folder) = args.project.open()?;
    let servers = app::mcp_servers(&setup.config, &folder, &setup.state)?;
    if args.format.is_json() {
        deliver_json(&ServerList { servers: &servers })?;
        return Ok(exit_code::DONE);
    }
    if servers.is_empty() {
        super::say("no MCP servers are named: `[mcp.servers.NAME]` in your settings names one\n");
        return Ok(exit_code::DONE);
    }
    let mut out = String::new();
    for server in &servers {
        let state = match &server.state {
            McpServerState::On => "on".to_owned(),
            McpServerState::Off { why } => format!("off: {why}"),
        };
        Description {
            name: &server.name,
            source: server.source,
            state: &state,
            command: &server.command,
            place: server.place,
            tools: &server.tools,
        }
        .write(&mut out);
        if server.n_changed > 0 {
            let _ = writeln!(
                out,
                "    changed  {} tools wait for you: `podbay mcp accept {}`",
                server.n_changed,
                text::line(&server.name)
            );
        }
    }
    deliver(&out)?;
    Ok(exit_code::DONE)
}

/// Returns what the servers of a session are doing, for the chat.
pub(super) fn session_servers(servers: &[McpStatus]) -> String {
    if servers.is_empty() {
        return "This session has no MCP servers; `[mcp.servers.NAME]` in the settings names one."
            .to_owned();
    }
    let mut out = String::new();
    for server in servers {
        let state = match &server.state {
            McpState::Off { why } => format!("off: {why}"),
            McpState::Idle => "not running; the next call starts it".to_owned(),
            McpState::Running => "running".to_owned(),
            McpState::Failed { why } => format!("failed: {why}; the next call starts it again"),
        };
        Description {
            name: &server.name,
            source: server.source,
            state: &state,
            command: &server.command,
            place: server.place,
            tools: &server.tools,
        }
        .write(&mut out);
        for note in &server.notes {
            let _ = writeln!(out, "    note     {}", text::line(note));
        }
    }
    out.trim_end().to_owned()
}

/// What is said of a server, in a session and without one.
struct Description<'a> {
    name: &'a str,
    source: McpSource,
    state: &'a str,
    command: &'a str,
    place: McpPlace,
    tools: &'a [String],
}

impl Description<'_> {
    fn write(&self, out: &mut String) {
        let source = match self.source {
            McpSource::Settings => "settings",
            McpSource::Project => ".mcp.json",
        };
        let _ = writeln!(
            out,
            "{}  ({source})  {}\n    command  {}",
            text::line(self.name),
            text::line(self.state),
            text::line(self.command)
        );
        if self.place == McpPlace::Host {
            let _ = writeln!(out, "    where    on your machine, outside of the sandbox");
        }
        if !self.tools.is_empty() {
            let _ = writeln!(out, "    tools    {}", text::line(&self.tools.join(", ")));
        }
    }
}

fn revoke(args: &McpTrustArgs) -> Result<u8, app::Error> {
    let (setup, folder) = args.project.open()?;
    deliver(if app::revoke_project_mcp(&folder, &setup.state)? {
        "its MCP servers are not started any more\n"
    } else {
        "none of its MCP servers was enabled\n"
    })?;
    Ok(exit_code::DONE)
}

async fn trust(args: &McpTrustArgs) -> Result<u8, app::Error> {
    let (setup, folder) = args.project.open()?;
    let Some(own) = app::project_mcp(&folder, &setup.state)? else {
        return Err(app::Error::usage(
            "there is no `.mcp.json` here that could be enabled",
            "name the project with -C DIR",
        ));
    };
    let path = text::line(&own.file.path().to_string_lossy());
    if own.is_enabled() {
        deliver(&format!("the servers of {path} are enabled already\n"))?;
        return Ok(exit_code::DONE);
    }
    let mut shown = format!(
        "{path} names these servers, which would run in the sandbox, or be reached through its gateway:\n\n"
    );
    for line in own.lines() {
        let _ = writeln!(shown, "  {}", text::line(&line));
    }
    super::say(&shown);
    if let Err(problem) = &own.servers {
        return Err(app::Error::usage(
            format!("{path} cannot be read: {}", text::line(problem)),
            "it is a JSON object with `mcpServers`",
        ));
    }
    if !args.yes && !confirmed("Enable them as they are shown here?", "nothing was enabled").await?
    {
        return Ok(exit_code::FAILED);
    }
    app::trust_project_mcp(&own, &setup.state)?;
    deliver(&format!(
        "the servers of {path} are enabled, until it changes\n"
    ))?;
    Ok(exit_code::DONE)
}

async fn accept(args: &McpAcceptArgs) -> Result<u8, app::Error> {
    let (setup, folder) = args.project.open()?;
    let shown = app::changed_tools(&setup.config, &folder, &setup.state, &args.name)?;
    if shown.changes.is_empty() {
        deliver("its tools are described as you know them\n")?;
        return Ok(exit_code::DONE);
    }
    super::say(&shown.changes.iter().map(change).collect::<String>());
    if !args.yes
        && !confirmed(
            "Let a model read it as it is shown here?",
            "nothing was accepted",
        )
        .await?
    {
        return Ok(exit_code::FAILED);
    }
    app::accept_tools(&shown, &setup.state)?;
    deliver("the next session offers them\n")?;
    Ok(exit_code::DONE)
}

fn change(change: &McpToolChange) -> String {
    let mut out = format!("{}\n", text::line(&change.name));
    match &change.before {
        Some(before) if *before != change.after => {
            let _ = writeln!(out, "  before  {}", text::line(before));
        }
        Some(_) => {}
        None => out.push_str("  before  (no such tool)\n"),
    }
    let _ = writeln!(out, "  now     {}", text::line(&change.after));
    if change.has_other_arguments {
        out.push_str("  its arguments are others, too\n");
    }
    out
}
