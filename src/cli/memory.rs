//! `podbay memory` and `/memory`: notes of sessions for later ones.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use clap::Subcommand;
use clap::ValueHint;

use super::args::ConfigFlags;
use super::args::FormatFlags;
use super::delivery::deliver;
use super::delivery::deliver_json;
use super::face::Face;
use super::later;
use super::setup;
use super::setup::Setup;
use podbay_app as app;
use podbay_app::Chat;
use podbay_app::Memories;
use podbay_app::MemoryLines;
use podbay_app::exit_code;
use podbay_ui::edit_text;
use podbay_ui::text;

#[derive(Debug, Subcommand)]
pub(super) enum MemoryCommand {
    /// List the notes that sessions in this project are shown
    List(MemoryListArgs),
    /// Show a note
    Show(MemoryNameArgs),
    /// Keep a note that the model proposed
    Keep(MemoryNameArgs),
    /// Remove a note
    Forget(MemoryNameArgs),
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

#[derive(Debug, Args)]
pub(super) struct MemoryListArgs {
    #[command(flatten)]
    place: MemoryPlace,
    #[command(flatten)]
    format: FormatFlags,
}

#[derive(Debug, Args)]
pub(super) struct MemoryNameArgs {
    /// The note's name; `global/NAME` for one of all projects, `proposed/NAME` for a proposal
    #[arg(value_name = "NAME", value_hint = ValueHint::Other)]
    name: String,
    #[command(flatten)]
    place: MemoryPlace,
}

#[derive(Debug, Args)]
struct MemoryPlace {
    /// Project folder
    #[arg(long, short = 'C', value_name = "DIR", aliases = ["working-dir", "workdir"])]
    path: Option<PathBuf>,
    #[command(flatten)]
    config: ConfigFlags,
}

impl MemoryPlace {
    fn open(&self) -> Result<(Setup, Memories), app::Error> {
        let setup = Setup::in_project(&self.config, self.path.as_deref(), Vec::new())?;
        setup.check_folder(self.path.as_deref())?;
        let folder = setup::folder(self.path.as_deref())?;
        let memories = app::memories(&setup.config, &folder, &setup.state)?;
        Ok((setup, memories))
    }
}

pub(super) fn memory(command: &MemoryCommand) -> Result<u8, app::Error> {
    match command {
        MemoryCommand::List(args) => {
            let (setup, memories) = args.place.open()?;
            let lines = app::list_memories(&setup.config, &memories);
            if args.format.is_json() {
                deliver_json(&lines)?;
            } else {
                deliver(&list(&lines))?;
            }
        }
        MemoryCommand::Show(args) => {
            let (_, memories) = args.place.open()?;
            deliver(&text::clean(&show(&args.name, &memories)?))?;
        }
        MemoryCommand::Keep(args) => {
            let (_, memories) = args.place.open()?;
            deliver(&keep(&args.name, &memories)?)?;
        }
        MemoryCommand::Forget(args) => {
            let (_, memories) = args.place.open()?;
            deliver(&forget(&args.name, &memories)?)?;
        }
        MemoryCommand::Other(words) => {
            let verbs = ["list", "show", "keep", "forget"];
            return Err(later::below("memory", &verbs, words));
        }
    }
    Ok(exit_code::DONE)
}

/// Does what `/memory` asks for, and says it.
pub(super) async fn in_chat(
    rest: &str,
    chat: &Chat,
    face: &Face,
    setup: &Setup,
) -> Result<String, app::Error> {
    let memories = app::memories(&setup.config, chat.project(), &setup.state)?;
    let (verb, name) = rest.split_once(' ').unwrap_or((rest, ""));
    match (verb, name.trim()) {
        ("" | "list", "") => Ok(list(&app::list_memories(&setup.config, &memories))),
        ("show", name) if !name.is_empty() => show(name, &memories),
        ("edit", name) if !name.is_empty() => edit(name, &memories, face).await,
        ("keep", name) if !name.is_empty() => keep(name, &memories),
        ("forget", name) if !name.is_empty() => forget(name, &memories).map(|said| {
            format!("{said}What this session has read of it stays; later ones are not shown it.\n")
        }),
        _ => Ok(
            "/memory lists the notes; /memory show, edit, keep or forget takes the NAME of one."
                .to_owned(),
        ),
    }
}

fn list(lines: &MemoryLines) -> String {
    let mut out = String::new();
    for line in lines.memories.iter().chain(&lines.proposed) {
        let _ = writeln!(
            out,
            "{} ({}, {})  {}",
            text::line(&line.name),
            line.kind.as_str(),
            line.saved,
            text::line(&line.description)
        );
    }
    if lines.memories.is_empty() {
        out.push_str("no notes for this project\n");
    }
    if !lines.proposed.is_empty() {
        out.push_str(
            "those that are proposed count once you keep them: `podbay memory keep NAME`\n",
        );
    }
    for problem in &lines.problems {
        let _ = writeln!(out, "not used: {}", text::line(problem));
    }
    if !lines.enabled {
        out.push_str("they are switched off: no session is shown them (`memory.enabled`)\n");
    }
    out
}

fn show(name: &str, memories: &Memories) -> Result<String, app::Error> {
    memories
        .text(name)
        .map_err(failed)?
        .ok_or_else(|| unknown(name))
}

fn keep(name: &str, memories: &Memories) -> Result<String, app::Error> {
    let kept = memories.keep(name).map_err(failed)?;
    let kept = kept.ok_or_else(|| {
        app::Error::usage(
            format!(
                "no note `{}` is proposed for this project",
                text::line(name)
            ),
            "`podbay memory list` shows those that are",
        )
    })?;
    let gone = match kept.pruned.as_slice() {
        [] => String::new(),
        pruned => format!(" Removed as the oldest: {}.", pruned.join(", ")),
    };
    Ok(format!(
        "{} is kept; later sessions are shown it.{gone}\n",
        kept.memory.name
    ))
}

fn forget(name: &str, memories: &Memories) -> Result<String, app::Error> {
    let forgotten = memories
        .forget(name)
        .map_err(failed)?
        .ok_or_else(|| unknown(name))?;
    Ok(format!("{} is removed.\n", text::line(&forgotten)))
}

/// Has the user edit a note, or write one that is not there yet.
async fn edit(name: &str, memories: &Memories, face: &Face) -> Result<String, app::Error> {
    let (before, is_new) = match memories.text(name).map_err(failed)? {
        Some(text) => (text, false),
        None => (Memories::template(name), true),
    };
    let edited = if let Some(tui) = face.tui() {
        // `None`: the user left the editor without saving.
        Ok(tui.edit(&before).await.unwrap_or_else(|| before.clone()))
    } else {
        let before = before.clone();
        tokio::task::spawn_blocking(move || edit_text(&before, ".md"))
            .await
            .unwrap_or_else(|_| Err("the editor could not be run".to_owned()))
    };
    match edited {
        Ok(edited) if edited.trim() == before.trim() => {
            Ok("The notes are as they were.".to_owned())
        }
        Ok(edited) => {
            let saved = memories.save_text(name, &edited).map_err(failed)?;
            let how = if is_new { "saved" } else { "changed" };
            Ok(format!(
                "{} is {how}; later sessions are shown it.",
                saved.memory.name
            ))
        }
        Err(problem) => Ok(problem),
    }
}

fn unknown(name: &str) -> app::Error {
    app::Error::usage(
        format!("there is no note `{}` for this project", text::line(name)),
        "`podbay memory list` shows them",
    )
}

/// What is wrong with a note is the user's to correct; all else is about the state folder.
fn failed(error: app::MemoryError) -> app::Error {
    if error.is_usage() {
        app::Error::usage(error.to_string(), error.hint().unwrap_or_default())
    } else {
        app::Error::Session(error)
    }
}
