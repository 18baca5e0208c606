use std::io;
use std::io::Write;
use std::sync::Arc;

use clap::Subcommand;
use clap::ValueHint;

use super::args::ConfigFlags;
use super::args::FormatFlags;
use super::args::OutputFormat;
use super::delivery::Delivery;
use super::run::listen;
use super::setup::Setup;
use podbay_app as app;
use podbay_app::Interrupt;
use podbay_app::ModelLine;
use podbay_app::exit_code;
use podbay_event::ByteSize;
use podbay_event::Kind;
use podbay_event::ProgressSink;
use podbay_ui as ui;
use podbay_ui::text;

#[derive(Debug, Subcommand)]
pub(super) enum ModelsCommand {
    /// List the models that have a name, and which of them are here
    List {
        #[command(flatten)]
        format: FormatFlags,
        #[command(flatten)]
        config: ConfigFlags,
    },
    /// Load a model, continuing where an earlier try ended; check one that is here
    Pull {
        /// A name from the list, hf:OWNER/REPOSITORY/FILE.gguf, or the path or https:// address of
        /// a GGUF file; by default the largest model that fits this machine
        #[arg(value_name = "MODEL")]
        model: Option<String>,
        #[command(flatten)]
        config: ConfigFlags,
    },
    /// Remove a model's files
    Rm {
        /// A name from the list
        #[arg(value_name = "NAME", value_hint = ValueHint::Other)]
        name: String,
        #[command(flatten)]
        config: ConfigFlags,
    },
    /// Show what is known of a model
    Info {
        /// A name from the list
        #[arg(value_name = "NAME", value_hint = ValueHint::Other)]
        name: String,
        #[command(flatten)]
        format: FormatFlags,
        #[command(flatten)]
        config: ConfigFlags,
    },
}

pub(super) async fn models(command: ModelsCommand) -> Result<u8, app::Error> {
    let flags: &ConfigFlags = match &command {
        ModelsCommand::List { config, .. }
        | ModelsCommand::Pull { config, .. }
        | ModelsCommand::Rm { config, .. }
        | ModelsCommand::Info { config, .. } => config,
    };
    let setup = Setup::new(flags, Vec::new())?;
    let interrupt = Interrupt::new();
    let signals = listen(&interrupt)?;
    let shown = match &command {
        ModelsCommand::List { format, .. } | ModelsCommand::Info { format, .. } => format.shown(),
        ModelsCommand::Pull { .. } | ModelsCommand::Rm { .. } => OutputFormat::Text,
    };
    let terminal = setup.terminal(shown);
    setup.show_warnings(&terminal);
    let mut out = Delivery::default();
    let outcome = match command {
        ModelsCommand::List { format, .. } => list(&setup, format.is_json(), &mut out),
        ModelsCommand::Info { name, format, .. } => {
            app::model_info(&setup.config, &setup.state, &name).map(|model| {
                let _ = if format.is_json() {
                    ui::json::result(&mut out, &model)
                } else {
                    info(&mut out, &model)
                };
            })
        }
        ModelsCommand::Pull { model, .. } => {
            let sink = terminal.sink();
            let progress: ProgressSink = Arc::new(move |step| sink(Kind::Progress(step).into()));
            let outcome = pull(&setup, model, &progress, &interrupt, &mut out).await;
            terminal.finish();
            outcome
        }
        ModelsCommand::Rm { name, .. } => {
            app::remove_model(&setup.config, &setup.state, &name, interrupt.run())
                .await
                .map(|was_here| {
                    let words = if was_here {
                        "removed"
                    } else {
                        "nothing of it was here:"
                    };
                    let _ = writeln!(out, "{words} {}", text::line(&name));
                })
        }
    };
    // An unknown model's hint has them already.
    if !matches!(&outcome, Err(error) if error.is_unknown_model()) {
        for mistake in app::model_mistakes(&setup.config) {
            super::say(&format!("warning: {}\n", text::line(&mistake)));
        }
    }
    outcome?;
    out.end()?;
    Ok(signals.exit_code(exit_code::DONE))
}

async fn pull(
    setup: &Setup,
    model: Option<String>,
    progress: &ProgressSink,
    interrupt: &Interrupt,
    out: &mut impl Write,
) -> Result<(), app::Error> {
    let name = if let Some(name) = model {
        name
    } else {
        let (name, reason) = app::model_to_pull(&setup.config, &setup.state).await?;
        super::say(&format!("{}\n", text::line(&reason)));
        name
    };
    let model = app::pull_model(
        &setup.config,
        &setup.state,
        &name,
        progress,
        interrupt.run(),
    )
    .await?;
    for damage in &model.replaced {
        super::say(&format!(
            "warning: {}: that file was damaged, and was loaded again\n",
            text::line(damage)
        ));
    }
    for file in &model.files {
        let sha256 = file.sha256.as_deref().unwrap_or_default();
        // The result of a command that may have taken an hour; the output keeps its own errors.
        let _ = writeln!(
            out,
            "{}  {sha256}  {}",
            text::line(&model.name),
            text::line(&file.path.to_string_lossy())
        );
        if !file.checked {
            super::say(
                "note: no hash was known for this file; the one it has now is checked from now on\n",
            );
        }
    }
    Ok(())
}

fn list(setup: &Setup, json: bool, out: &mut impl Write) -> Result<(), app::Error> {
    let listed = app::list_models(&setup.config, &setup.state)?;
    if json {
        let _ = ui::json::result(out, &listed);
        return Ok(());
    }
    let width = listed
        .models
        .iter()
        .map(|model| model.name.chars().count())
        .max()
        .unwrap_or(0)
        .clamp(5, 40);
    let _ = writeln!(
        out,
        "{:width$}  {:>9}  {:>9}  {:>10}  {:<8}  STATE",
        "NAME", "SIZE", "MEMORY", "PARAMETERS", "QUANT"
    );
    for model in &listed.models {
        let _ = writeln!(
            out,
            "{:width$}  {:>9}  {:>9}  {:>10}  {:<8}  {}",
            text::line(&model.name),
            size(model.size),
            size(model.memory),
            parameters(model),
            text::line(model.quantization.as_deref().unwrap_or("-")),
            state(model)
        );
    }
    for model in &listed.models {
        if let Some(damage) = &model.damage {
            super::say(&format!(
                "warning: the model {}: {}\n",
                text::line(&model.name),
                text::line(damage)
            ));
        }
    }
    if let Some(reason) = &listed.reason {
        let _ = writeln!(out, "\n`podbay models pull` takes {}", text::line(reason));
    }
    Ok(())
}

fn info(out: &mut impl Write, model: &ModelLine) -> io::Result<()> {
    let unknown = || "unknown".to_owned();
    let mut rows = vec![("name", model.name.clone())];
    if !model.title.is_empty() {
        rows.push(("model", model.title.clone()));
    }
    rows.extend([
        ("state", state(model)),
        ("size", whole_size(model).unwrap_or_else(unknown)),
        (
            "memory",
            if model.memory == 0 {
                unknown()
            } else {
                format!("{} with 8k of context", size(model.memory))
            },
        ),
        ("parameters", parameters(model)),
        (
            "quantization",
            model.quantization.clone().unwrap_or_else(unknown),
        ),
        (
            "context",
            model
                .context
                .map_or_else(unknown, |tokens| format!("{tokens} tokens")),
        ),
        ("license", model.license.clone().unwrap_or_else(unknown)),
    ]);
    rows.extend(model.damage.clone().map(|damage| ("damage", damage)));
    rows.extend(model.note.clone().map(|note| ("note", note)));
    for file in &model.files {
        rows.push(("source", file.source.clone()));
        rows.push(("file", file.path.to_string_lossy().into_owned()));
        rows.push((
            "sha256",
            file.sha256
                .clone()
                .unwrap_or_else(|| "known once it is pulled".to_owned()),
        ));
    }
    for (name, value) in rows {
        writeln!(out, "{name:<13} {}", text::line(&value))?;
    }
    Ok(())
}

/// Returns the size of a model, `None` where nobody knows it.
fn whole_size(model: &ModelLine) -> Option<String> {
    match model.size {
        0 => None,
        bytes if model.tried || model.is_local => Some(format!("{} ({bytes} bytes)", size(bytes))),
        bytes => Some(format!("about {}", size(bytes))),
    }
}

fn state(model: &ModelLine) -> String {
    match (model.state, model.loaded) {
        ("partial", Some(bytes)) => format!("{} are here", size(bytes)),
        ("absent", _) if model.is_local => "not copied yet".to_owned(),
        ("absent", _) if model.tried => "not here".to_owned(),
        ("absent", _) => "not here, untried".to_owned(),
        (state, _) => state.to_owned(),
    }
}

fn parameters(model: &ModelLine) -> String {
    match (model.parameters, model.active) {
        (None, _) => "-".to_owned(),
        (Some(all), None) => billions(all),
        (Some(all), Some(active)) => format!("{}/{}", billions(all), billions(active)),
    }
}

/// Writes billions with at most one digit behind the point, where they are not below one.
fn billions(number: f64) -> String {
    let step = if number < 1.0 { 1000.0 } else { 10.0 };
    format!("{}B", (number * step).round() / step)
}

/// The size of a file that nobody knows yet is no zero.
fn size(bytes: u64) -> String {
    if bytes == 0 {
        "-".to_owned()
    } else {
        ByteSize::new(bytes).rounded()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fit_their_columns() {
        for (number, shown) in [
            (7.6, "7.6B"),
            (7.615_616_512, "7.6B"),
            (0.135, "0.135B"),
            (30.0, "30B"),
            (99_999.99, "100000B"),
        ] {
            assert_eq!(billions(number), shown);
        }
        for (bytes, shown) in [
            (0, "-"),
            (1 << 20, "1.0 MiB"),
            (5 << 30, "5.0 GiB"),
            (1 << 42, "4.0 TiB"),
        ] {
            assert_eq!(size(bytes), shown);
        }
    }
}
