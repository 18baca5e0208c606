use std::ffi::OsString;
use std::io::Write;
use std::sync::Arc;

use clap::Subcommand;
use clap::ValueHint;
use serde::Serialize;

use super::args::ConfigFlags;
use super::args::FormatFlags;
use super::args::GcArgs;
use super::args::OutputFormat;
use super::bundle::BundleCommand;
use super::delivery::Delivery;
use super::delivery::deliver_json;
use super::front::Terminal;
use super::later;
use super::run::listen;
use super::setup::Setup;
use podbay_app as app;
use podbay_app::Interrupt;
use podbay_app::exit_code;
use podbay_event::Kind;
use podbay_event::ProgressSink;
use podbay_ui::text;

#[derive(Debug, Subcommand)]
pub(super) enum ImagesCommand {
    /// Build images, by default those that every set-up needs
    Build {
        /// Such as podbay/workspace or podbay/python
        #[arg(value_name = "NAME", value_hint = ValueHint::Other)]
        names: Vec<String>,
        /// Install debootstrap if a base image must be made and it is missing (as root)
        #[arg(long)]
        install: bool,
        #[command(flatten)]
        config: ConfigFlags,
    },
    /// List Podbay's own images
    List {
        #[command(flatten)]
        format: FormatFlags,
        #[command(flatten)]
        config: ConfigFlags,
    },
    /// Take images and models to a machine without a network
    #[command(subcommand)]
    Bundle(BundleCommand),
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

pub(super) async fn images(command: ImagesCommand) -> Result<u8, app::Error> {
    match command {
        ImagesCommand::Build {
            names,
            install,
            config,
        } => build(&names, install, &config).await,
        ImagesCommand::List { format, config } => list(format, &config).await,
        ImagesCommand::Other(words) => {
            Err(later::below("images", &["build", "list", "bundle"], &words))
        }
        ImagesCommand::Bundle(command) => super::bundle::bundle(command).await,
    }
}

async fn build(names: &[String], install: bool, config: &ConfigFlags) -> Result<u8, app::Error> {
    let setup = Setup::new(config, Vec::new())?;
    let interrupt = Interrupt::new();
    let signals = listen(&interrupt)?;
    let terminal = setup.terminal(OutputFormat::Text);
    setup.show_warnings(&terminal);
    let built = app::build_images(
        &setup.config,
        &setup.state,
        names,
        install,
        &progress(&terminal),
        interrupt.run(),
    )
    .await?;
    terminal.finish();
    let mut out = Delivery::default();
    for (name, id) in built {
        let _ = writeln!(out, "{} {}", text::line(&name), text::line(&id));
    }
    out.end()?;
    Ok(signals.exit_code(exit_code::DONE))
}

async fn list(format: FormatFlags, config: &ConfigFlags) -> Result<u8, app::Error> {
    let setup = Setup::new(config, Vec::new())?;
    let interrupt = Interrupt::new();
    let signals = listen(&interrupt)?;
    let terminal = setup.terminal(format.shown());
    setup.show_warnings(&terminal);
    let listed = app::list_images(
        &setup.config,
        &setup.state,
        &progress(&terminal),
        interrupt.run(),
    )
    .await?;
    terminal.finish();
    if format.is_json() {
        deliver_json(&ImageList { images: &listed })?;
        return Ok(signals.exit_code(exit_code::DONE));
    }
    let mut out = Delivery::default();
    for image in listed {
        let size = image
            .size_mib
            .map_or_else(String::new, |mib| format!("{mib} MiB"));
        let _ = writeln!(out, "{:<24} {:<9} {size:>9}", image.name, image.state);
    }
    out.end()?;
    Ok(signals.exit_code(exit_code::DONE))
}

/// Podbay's own images, as a script reads them.
#[derive(Serialize)]
struct ImageList<'a> {
    images: &'a [app::ImageLine],
}

/// Returns where slow steps report to.
pub(super) fn progress(terminal: &Terminal) -> ProgressSink {
    let sink = terminal.sink();
    Arc::new(move |step| sink(Kind::Progress(step).into()))
}

pub(super) async fn gc(arguments: GcArgs) -> Result<u8, app::Error> {
    let setup = Setup::new(&arguments.config, Vec::new())?;
    let interrupt = Interrupt::new();
    let signals = listen(&interrupt)?;
    let mut out = Delivery::default();
    // Old sessions go whether an engine is there or not.
    let pruned = app::prune_sessions(&setup.state, &setup.config)?;
    for session in &pruned {
        let _ = writeln!(out, "removed session {session}");
    }
    let also = app::Also {
        snapshots: arguments.snapshots,
        git: arguments.git,
    };
    let app::Collected {
        swept,
        abandoned,
        left_git,
    } = app::gc(&setup.config, also, interrupt.run()).await?;
    for name in &swept.removed {
        let _ = writeln!(out, "removed {}", text::line(name));
    }
    for (name, problem) in &swept.failed {
        super::say(&format!(
            "could not remove {}: {}\n",
            text::line(name),
            text::line(problem)
        ));
    }
    for kept in &abandoned {
        let _ = writeln!(
            out,
            "kept {}: snapshots of {}, which is not there any more; `podbay gc --snapshots` removes them",
            text::line(&kept.volume),
            text::line(&kept.path)
        );
    }
    for kept in &left_git {
        let place = kept
            .path
            .as_deref()
            .map_or_else(String::new, |path| format!(" in {}", text::line(path)));
        let _ = writeln!(
            out,
            "kept {}: what a session{place} did with git that is not all in its repository; docs/guides/git.md says how to look at it, and \
             `podbay gc --git` removes it",
            text::line(&kept.volume),
        );
    }
    let is_kept = !(abandoned.is_empty() && left_git.is_empty());
    if pruned.is_empty() && swept.removed.is_empty() && swept.failed.is_empty() && !is_kept {
        let _ = writeln!(out, "nothing to remove");
    }
    out.end()?;
    let code = if swept.failed.is_empty() {
        exit_code::DONE
    } else {
        exit_code::FAILED
    };
    Ok(signals.exit_code(code))
}
