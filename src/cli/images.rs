use std::io::Write;
use std::sync::Arc;

use super::args::ConfigFlags;
use super::args::ImagesCommand;
use super::args::OutputFormat;
use super::delivery::Delivery;
use super::later;
use super::run::listen;
use super::setup::Setup;
use crate::app;
use crate::app::Interrupt;
use crate::app::exit_code;
use crate::event::Kind;
use crate::event::ProgressSink;

pub(super) async fn images(command: ImagesCommand) -> Result<u8, app::Error> {
    let config = match &command {
        ImagesCommand::Build { config, .. } | ImagesCommand::List { config } => config,
        ImagesCommand::Other(words) => return Err(later::below("images", &["build", "list"], words)),
    };
    let setup = Setup::new(config, Vec::new())?;
    let interrupt = Interrupt::new();
    let signals = listen(&interrupt)?;
    let terminal = setup.terminal(OutputFormat::Text);
    setup.show_warnings(&terminal);
    let sink = terminal.sink();
    let progress: ProgressSink = Arc::new(move |step| sink(Kind::Progress(step).into()));
    let mut out = Delivery::default();
    match command {
        ImagesCommand::Build { names, install, .. } => {
            let built = app::build_images(&setup.config, &setup.state, &names, install, &progress, interrupt.run()).await?;
            terminal.finish();
            for (name, id) in built {
                let _ = writeln!(out, "{name} {id}");
            }
        }
        ImagesCommand::List { .. } => {
            let listed = app::list_images(&setup.config, &setup.state, &progress, interrupt.run()).await?;
            terminal.finish();
            for image in listed {
                let size = image.size_mib.map_or_else(String::new, |mib| format!("{mib} MiB"));
                let _ = writeln!(out, "{:<24} {:<9} {size:>9}", image.name, image.state);
            }
        }
        ImagesCommand::Other(_) => {}
    }
    out.end()?;
    Ok(signals.exit_code(exit_code::DONE))
}

pub(super) async fn gc(flags: ConfigFlags) -> Result<u8, app::Error> {
    let setup = Setup::new(&flags, Vec::new())?;
    let interrupt = Interrupt::new();
    let signals = listen(&interrupt)?;
    let swept = app::gc(&setup.config, interrupt.run()).await?;
    let mut out = Delivery::default();
    for name in &swept.removed {
        let _ = writeln!(out, "removed {name}");
    }
    for (name, problem) in &swept.failed {
        super::say(&format!("could not remove {name}: {problem}\n"));
    }
    if swept.removed.is_empty() && swept.failed.is_empty() {
        let _ = writeln!(out, "nothing to remove");
    }
    out.end()?;
    let code = if swept.failed.is_empty() { exit_code::DONE } else { exit_code::FAILED };
    Ok(signals.exit_code(code))
}
