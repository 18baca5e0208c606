use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use clap::Subcommand;

use super::args::ConfigFlags;
use super::args::OutputFormat;
use super::delivery::Delivery;
use super::run::listen;
use super::setup::Setup;
use podbay_app as app;
use podbay_app::Interrupt;
use podbay_app::bundle;
use podbay_app::bundle::Bundled;
use podbay_app::bundle::LoadBundle;
use podbay_app::bundle::SaveBundle;
use podbay_app::exit_code;
use podbay_event::ByteSize;
use podbay_ui::text;

#[derive(Debug, Subcommand)]
pub(super) enum BundleCommand {
    /// Save images and models into one file
    Save(SaveArgs),
    /// Load a file that `save` has made
    Load(LoadArgs),
}

#[derive(Debug, Args)]
pub(super) struct SaveArgs {
    /// File to write
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Image to save, instead of those that every set-up needs; again for more
    #[arg(long, value_name = "REF")]
    image: Vec<String>,
    /// Model to save, by name or path, instead of the one that the settings name; again for more
    #[arg(long, value_name = "NAME")]
    model: Vec<String>,
    /// Save no model
    #[arg(long, conflicts_with = "model")]
    no_model: bool,
    /// Replace the file if it is there
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    config: ConfigFlags,
}

#[derive(Debug, Args)]
pub(super) struct LoadArgs {
    /// File to read
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Only check it and say what is in it
    #[arg(long)]
    check: bool,
    /// Replace images and models that have the same names
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    config: ConfigFlags,
}

pub(super) async fn bundle(command: BundleCommand) -> Result<u8, app::Error> {
    let config = match &command {
        BundleCommand::Save(args) => &args.config,
        BundleCommand::Load(args) => &args.config,
    };
    let setup = Setup::new(config, Vec::new())?;
    let interrupt = Interrupt::new();
    let signals = listen(&interrupt)?;
    let terminal = setup.terminal(OutputFormat::Text);
    setup.show_warnings(&terminal);
    let progress = super::images::progress(&terminal);
    let (done, bundled) = match command {
        BundleCommand::Save(args) => {
            if let Some(image) = args.image.iter().find(|image| !app::is_image_name(image)) {
                let problem = format!("--image: `{image}` is not the name of an image");
                return Err(app::Error::usage(
                    problem,
                    "give a name such as podbay/python; `docker images` shows those that are here",
                ));
            }
            let models = (!args.no_model).then_some(args.model);
            let request = SaveBundle {
                file: args.file,
                images: args.image,
                models,
                force: args.force,
            };
            (
                "saved",
                bundle::save_bundle(
                    &setup.config,
                    &setup.state,
                    &request,
                    &progress,
                    interrupt.run(),
                )
                .await?,
            )
        }
        BundleCommand::Load(args) => {
            let done = if args.check { "checked" } else { "loaded" };
            let request = LoadBundle {
                file: args.file,
                force: args.force,
                check: args.check,
            };
            (
                done,
                bundle::load_bundle(
                    &setup.config,
                    &setup.state,
                    &request,
                    &progress,
                    interrupt.run(),
                )
                .await?,
            )
        }
    };
    terminal.finish();
    let Bundled {
        size,
        images,
        models,
        notes,
    } = bundled;
    for note in notes {
        super::say(&format!("note: {}\n", text::line(&note)));
    }
    let mut out = Delivery::default();
    let _ = writeln!(out, "{done} {}", ByteSize::new(size).rounded());
    for (name, id) in images {
        let _ = writeln!(out, "image {} {}", text::line(&name), text::line(&id));
    }
    for (name, path) in models {
        let _ = writeln!(
            out,
            "model {} {}",
            text::line(&name),
            text::line(&path.to_string_lossy())
        );
    }
    out.end()?;
    Ok(signals.exit_code(exit_code::DONE))
}
