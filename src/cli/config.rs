use std::borrow::Cow;
use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;

use clap::Args;
use clap::Subcommand;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::args::ConfigFlags;
use super::args::FormatFlags;
use super::args::OutputFormat;
use super::confirmed::confirmed;
use super::delivery::deliver;
use super::delivery::deliver_json;
use super::settings;
use super::settings::GetArgs;
use super::settings::ListArgs;
use super::settings::PathArgs;
use super::settings::SetArgs;
use super::settings::UnsetArgs;
use super::setup;
use super::setup::Setup;
use podbay_app as app;
use podbay_app::ProjectSettings;
use podbay_app::exit_code;
use podbay_config as config;
use podbay_config::IgnoredSetting;
use podbay_ui as ui;
use podbay_ui::Keyboard;
use podbay_ui::Paint;
use podbay_ui::counted;
use podbay_ui::is_padded;
use podbay_ui::revealed;
use podbay_ui::text;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct ConfigArgs {
    #[command(subcommand)]
    command: Option<ConfigCommand>,
    #[command(flatten)]
    show: ShowArgs,
}

#[derive(Debug, Args)]
struct ShowArgs {
    /// Project folder
    #[arg(long, short = 'C', value_name = "DIR", aliases = ["working-dir", "workdir"])]
    path: Option<PathBuf>,
    #[command(flatten)]
    config: ConfigFlags,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Show settings with their values, the origin of each, and what it is for
    List(ListArgs),
    /// Print the value of one setting
    Get(GetArgs),
    /// Change a setting in your own file; its comments and layout stay
    Set(SetArgs),
    /// Remove a setting from your own file
    Unset(UnsetArgs),
    /// Open your own file in your editor, and check it before it is written
    Edit,
    /// Print where your own file is
    Path(PathArgs),
    /// Print the JSON Schema of a settings file
    Schema,
    /// Let all of a project's own settings count, once you have read them
    Trust(TrustArgs),
    /// List what you allowed for good in a project, or take it back
    Answers(AnswersArgs),
}

#[derive(Debug, Args)]
struct AnswersArgs {
    /// Project folder
    #[arg(long, short = 'C', value_name = "DIR", aliases = ["working-dir", "workdir"])]
    path: Option<PathBuf>,
    #[command(flatten)]
    format: FormatFlags,
    /// Take the answer of this number back
    #[arg(long, value_name = "N")]
    forget: Option<usize>,
    /// Take all of them back
    #[arg(long, conflicts_with = "forget")]
    forget_all: bool,
}

#[derive(Debug, Args)]
struct TrustArgs {
    /// Project folder
    #[arg(long, short = 'C', value_name = "DIR", aliases = ["working-dir", "workdir"])]
    path: Option<PathBuf>,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Take trust back
    #[arg(long, conflicts_with_all = ["yes", "list"])]
    revoke: bool,
    /// List the projects whose settings are trusted
    #[arg(long, conflicts_with_all = ["yes", "path"])]
    list: bool,
    #[command(flatten)]
    format: FormatFlags,
}

pub(super) async fn config(args: ConfigArgs) -> Result<u8, app::Error> {
    match args.command {
        None => show(&args.show),
        Some(ConfigCommand::List(args)) => settings::list(&args),
        Some(ConfigCommand::Get(args)) => settings::get(&args),
        Some(ConfigCommand::Set(args)) => settings::set(&args),
        Some(ConfigCommand::Unset(args)) => settings::unset(&args),
        Some(ConfigCommand::Edit) => settings::edit().await,
        Some(ConfigCommand::Path(args)) => settings::path(&args),
        Some(ConfigCommand::Schema) => settings::schema(),
        Some(ConfigCommand::Trust(args)) if args.list => list(args.format),
        Some(ConfigCommand::Trust(args)) if args.revoke => revoke(&args),
        Some(ConfigCommand::Trust(args)) => trust(&args).await,
        Some(ConfigCommand::Answers(args)) => answers(&args),
    }
}

fn answers(args: &AnswersArgs) -> Result<u8, app::Error> {
    let setup = Setup::new(&ConfigFlags::default(), Vec::new())?;
    let folder = setup::folder(args.path.as_deref())?;
    if args.forget_all || args.forget.is_some() {
        let forgotten = app::forget_answers(&folder, &setup.state, args.forget)?;
        deliver(
            &forgotten
                .iter()
                .map(|words| format!("asked again: {}\n", revealed(words)))
                .collect::<String>(),
        )?;
        return Ok(exit_code::DONE);
    }
    let all = app::lasting_answers(&folder, &setup.state)?;
    if args.format.is_json() {
        deliver_json(&AnswerList { answers: &all })?;
        return Ok(exit_code::DONE);
    }
    deliver(
        &all.iter()
            .zip(1..)
            .map(|(words, n)| format!("{n}. {}\n", revealed(words)))
            .collect::<String>(),
    )?;
    Ok(exit_code::DONE)
}

/// The lasting answers of a project, as a script reads them.
#[derive(Serialize)]
struct AnswerList<'a> {
    answers: &'a [String],
}

/// The projects whose settings are trusted, as a script reads them.
#[derive(Serialize)]
struct TrustList<'a> {
    projects: Vec<TrustedProject<'a>>,
}

#[derive(Serialize)]
struct TrustedProject<'a> {
    project: Cow<'a, str>,
    sha256: &'a str,
}

fn show(args: &ShowArgs) -> Result<u8, app::Error> {
    let setup = Setup::in_project(&args.config, args.path.as_deref(), Vec::new())?;
    setup.check_folder(args.path.as_deref())?;
    let terminal = setup.terminal(OutputFormat::Text);
    setup.show_warnings(&terminal);
    setup::warn_of(&app::rule_problems(&setup.config), &terminal);
    deliver(&text::clean(&config::render(&setup.settings.loaded)))?;
    Ok(exit_code::DONE)
}

fn list(format: FormatFlags) -> Result<u8, app::Error> {
    let setup = Setup::new(&ConfigFlags::default(), Vec::new())?;
    if format.is_json() {
        let all = app::trusted_settings(&setup.state)?;
        let projects = all.iter().map(|trusted| TrustedProject {
            project: trusted.project.to_string_lossy(),
            sha256: &trusted.sha256,
        });
        deliver_json(&TrustList {
            projects: projects.collect(),
        })?;
        return Ok(exit_code::DONE);
    }
    let mut out = String::new();
    for trusted in app::trusted_settings(&setup.state)? {
        // A string takes all that is written.
        let _ = writeln!(
            out,
            "{}  SHA-256 {}",
            text::line(&trusted.project.to_string_lossy()),
            trusted.sha256
        );
    }
    deliver(&out)?;
    Ok(exit_code::DONE)
}

fn revoke(args: &TrustArgs) -> Result<u8, app::Error> {
    let setup = Setup::new(&ConfigFlags::default(), Vec::new())?;
    let revoked = app::revoke_settings(&setup::folder(args.path.as_deref())?, &setup.state)?;
    deliver(if revoked {
        "not trusted any more\n"
    } else {
        "it was not trusted\n"
    })?;
    Ok(exit_code::DONE)
}

async fn trust(args: &TrustArgs) -> Result<u8, app::Error> {
    let setup = Setup::in_project(&ConfigFlags::default(), args.path.as_deref(), Vec::new())?;
    setup.check_folder(args.path.as_deref())?;
    let Some(own) = &setup.settings.project else {
        setup.end_trust_without_file(args.path.as_deref())?;
        return Err(app::Error::usage(
            format!(
                "there is no `{}` here that could be trusted",
                config::PROJECT_FILE
            ),
            "name the project with -C DIR; `podbay init` makes the file",
        ));
    };
    let path = text::line(&own.file.path().to_string_lossy());
    if own.standing == config::TrustState::Trusted {
        deliver(&format!("{path} is trusted already\n"))?;
        return Ok(exit_code::DONE);
    }
    super::say(&describe(
        own,
        &setup.settings.loaded.passed_over,
        super::front::err_paint(&setup.config.ui),
    ));
    if !args.yes && !confirmed("Trust it as it is shown here?", "nothing was trusted").await? {
        return Ok(exit_code::FAILED);
    }
    app::trust_settings(own, &setup.state)?;
    deliver(&format!("{path} is trusted, until it changes\n"))?;
    Ok(exit_code::DONE)
}

/// Asks about settings that were trusted and have changed; returns whether they are trusted now.
pub(super) async fn ask_again(
    setup: &Setup,
    keyboard: &Keyboard,
    paint: Paint,
    cancel: &CancellationToken,
) -> Result<bool, app::Error> {
    let Some(own) = setup
        .settings
        .project
        .as_ref()
        .filter(|own| own.has_changed() && keyboard.is_terminal())
    else {
        return Ok(false);
    };
    super::say(&describe(own, &setup.settings.loaded.passed_over, paint));
    let trusted = ui::confirm(
        "Trust it as it is now?",
        keyboard,
        &mut io::stderr(),
        cancel,
    )
    .await;
    if trusted {
        app::trust_settings(own, &setup.state)?;
    } else {
        // What was trusted before is over too: else it would count again as soon as somebody put it
        // back.
        app::distrust_settings(own, &setup.state)?;
    }
    Ok(trusted)
}

/// Shows what is to be trusted: what has changed, or all of it, with every hidden character, and
/// what counts only then.
fn describe(own: &ProjectSettings, passed_over: &[IgnoredSetting], paint: Paint) -> String {
    let path = text::line(&own.file.path().to_string_lossy());
    let difference = own.difference();
    let mut out = match difference {
        Some(_) => format!("{path} has changed since you trusted it:\n\n"),
        None => format!("{path}:\n\n"),
    };
    for line in counted(difference.as_deref().unwrap_or(own.file.text())).lines() {
        let line = text::line(line);
        let line = match (difference.is_some(), line.chars().next()) {
            (true, Some('+')) => paint.good(&line),
            (true, Some('-')) => paint.bad(&line),
            _ => line,
        };
        out.push_str(&format!("  {line}\n"));
    }
    if own.file.text().chars().any(text::is_suspect) {
        out.push_str(&format!(
            "\n{}\n",
            paint.warn("Careful: it holds hidden characters, shown here by number.")
        ));
    }
    if is_padded(own.file.text()) {
        out.push_str(&format!(
            "\n{}\n",
            paint.warn(
                "Careful: it holds long runs of blanks or empty lines, shown here as ⟨how many⟩."
            )
        ));
    }
    if !passed_over.is_empty() {
        out.push_str("\nWith your trust these count too, which a project alone may not set:\n");
        for IgnoredSetting {
            key, value, holds, ..
        } in passed_over
        {
            out.push_str(&format!(
                "  {} = {}  (now {})\n",
                text::line(key),
                text::line(value),
                text::line(holds)
            ));
        }
    }
    out.push('\n');
    out
}
