//! `podbay skills` and `/skills`: the skills that the model may read.

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
use super::later;
use super::setup;
use super::setup::Setup;
use podbay_app as app;
use podbay_app::Chat;
use podbay_app::SkillList;
use podbay_app::SkillSource;
use podbay_app::exit_code;
use podbay_ui::text;

#[derive(Debug, Subcommand)]
pub(super) enum SkillsCommand {
    /// List the skills that sessions in this project have
    List(SkillsListArgs),
    /// Show the steps of a skill
    Show(SkillsShowArgs),
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

#[derive(Debug, Args)]
pub(super) struct SkillsListArgs {
    #[command(flatten)]
    place: SkillsPlace,
    #[command(flatten)]
    format: FormatFlags,
}

#[derive(Debug, Args)]
pub(super) struct SkillsShowArgs {
    /// The skill's name
    #[arg(value_name = "NAME", value_hint = ValueHint::Other)]
    name: String,
    #[command(flatten)]
    place: SkillsPlace,
}

#[derive(Debug, Args)]
struct SkillsPlace {
    /// Project folder
    #[arg(long, short = 'C', value_name = "DIR", aliases = ["working-dir", "workdir"])]
    path: Option<PathBuf>,
    #[command(flatten)]
    config: ConfigFlags,
}

impl SkillsPlace {
    fn read(&self) -> Result<SkillList, app::Error> {
        let setup = Setup::in_project(&self.config, self.path.as_deref(), Vec::new())?;
        setup.check_folder(self.path.as_deref())?;
        Ok(app::skills(
            &setup.config,
            &setup::folder(self.path.as_deref())?,
        ))
    }
}

pub(super) fn skills(command: &SkillsCommand) -> Result<u8, app::Error> {
    match command {
        SkillsCommand::List(args) => {
            let list = args.place.read()?;
            if args.format.is_json() {
                deliver_json(&list)?;
            } else {
                deliver(&words(&list))?;
            }
        }
        SkillsCommand::Show(args) => {
            let list = args.place.read()?;
            deliver(&show(&args.name, &list)?)?;
        }
        SkillsCommand::Other(words) => {
            return Err(later::below("skills", &["list", "show"], words));
        }
    }
    Ok(exit_code::DONE)
}

/// Does what `/skills` asks for, and returns what it says.
pub(super) fn in_chat(rest: &str, chat: &Chat, setup: &Setup) -> Result<String, app::Error> {
    let list = app::skills(&setup.config, chat.project());
    let (verb, name) = rest.split_once(' ').unwrap_or((rest, ""));
    match (verb, name.trim()) {
        ("" | "list", "") => Ok(words(&list)),
        ("show", name) if !name.is_empty() => show(name, &list),
        _ => Ok("/skills lists the skills; /skills show takes the NAME of one.".to_owned()),
    }
}

fn words(list: &SkillList) -> String {
    let mut out = String::new();
    for line in &list.skills {
        let whose = match line.source {
            SkillSource::User => "yours",
            SkillSource::Project => "the project's",
        };
        let _ = writeln!(
            out,
            "{} ({whose})  {}",
            text::line(&line.name),
            text::line(&line.description)
        );
    }
    if list.skills.is_empty() {
        out.push_str("no skills for this project\n");
    }
    for problem in &list.problems {
        let _ = writeln!(out, "careful: {}", text::line(problem));
    }
    if !list.enabled {
        out.push_str("they are switched off: the model is offered none (`skills.enabled`)\n");
    }
    out
}

fn show(name: &str, list: &SkillList) -> Result<String, app::Error> {
    let line = list.skills.iter().find(|line| line.name == name);
    let line = line.ok_or_else(|| {
        app::Error::usage(
            format!("there is no skill `{}` for this project", text::line(name)),
            "`podbay skills list` shows them",
        )
    })?;
    let (steps, files) = line.steps_and_files().map_err(|problem| {
        let path = text::line(&line.path);
        app::Error::usage(format!("{path} cannot be read: {problem}"), "correct it")
    })?;
    let mut out = format!(
        "{}: {}\n{}\n\n{}\n",
        text::line(&line.name),
        text::line(&line.description),
        text::line(&line.path),
        text::clean(&steps)
    );
    if !files.is_empty() {
        out.push_str("\nits files:\n");
    }
    for file in &files {
        let _ = writeln!(out, "  {}", text::line(file));
    }
    Ok(out)
}
