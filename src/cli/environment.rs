use std::io::Write;
use std::sync::Arc;

use super::args::LogsArgs;
use super::args::OutputFormat;
use super::args::PlaceFlags;
use super::args::StatusArgs;
use super::args::UpArgs;
use super::delivery::Delivery;
use super::delivery::deliver;
use super::flags;
use super::front::Nobody;
use super::run::listen;
use super::setup::Setup;
use super::signals::Signals;
use podbay_app as app;
use podbay_app::Front;
use podbay_app::Interrupt;
use podbay_app::Place;
use podbay_app::Status;
use podbay_app::exit_code;
use podbay_ui as ui;
use podbay_ui::text;

/// What the commands of this file share.
struct Ready {
    place: Place,
    front: Front,
    signals: Signals,
    terminal: super::front::Terminal,
}

/// `asks`: whether a model is asked, and so its key needed.
fn ready(flags: &PlaceFlags, asks: bool, shown: OutputFormat) -> Result<Ready, app::Error> {
    let mut overrides = Vec::new();
    flags::place(flags, &mut overrides)?;
    let setup = Setup::in_project(&flags.config, flags.path.as_deref(), overrides)?;
    ready_with(&setup, flags, asks, shown)
}

fn ready_with(
    setup: &Setup,
    flags: &PlaceFlags,
    asks: bool,
    shown: OutputFormat,
) -> Result<Ready, app::Error> {
    let interrupt = Interrupt::new();
    let signals = listen(&interrupt)?;
    let terminal = setup.terminal(shown);
    setup.show_warnings(&terminal);
    let folder = flags.path.as_deref();
    let place = if asks {
        setup.place(folder, app::Mode::Auto)
    } else {
        setup.place_without_key(folder, app::Mode::Auto)
    }?;
    let front = terminal.front(&interrupt, Arc::new(Nobody));
    Ok(Ready {
        place,
        front,
        signals,
        terminal,
    })
}

pub(super) async fn up(args: UpArgs) -> Result<u8, app::Error> {
    let with_model = !args.no_model;
    let ready = ready(&args.place, with_model, OutputFormat::Text)?;
    let status = Box::pin(app::up(&ready.place, with_model, &ready.front)).await?;
    ready.terminal.finish();
    print(&status)?;
    Ok(ready.signals.exit_code(exit_code::DONE))
}

pub(super) async fn down(flags: PlaceFlags) -> Result<u8, app::Error> {
    let mut overrides = Vec::new();
    flags::place(&flags, &mut overrides)?;
    // Without the project's settings: a command in the sandbox may have broken them.
    let setup = Setup::new(&flags.config, overrides)?;
    let ready = ready_with(&setup, &flags, false, OutputFormat::Text)?;
    let ended = app::down(&ready.place, &ready.front).await?;
    ready.terminal.finish();
    let words = if ended.is_empty() {
        "nothing was running".to_owned()
    } else {
        format!("ended: {}", ended.join(", "))
    };
    deliver(&format!("{words}\n"))?;
    Ok(ready.signals.exit_code(exit_code::DONE))
}

pub(super) async fn status(args: StatusArgs) -> Result<u8, app::Error> {
    let ready = ready(&args.place, false, args.format.shown())?;
    let status = app::status(&ready.place, &ready.front).await?;
    ready.terminal.finish();
    if args.format.is_json() {
        let mut out = Delivery::default();
        let _ = ui::json::result(&mut out, &status);
        out.end()?;
    } else {
        print(&status)?;
    }
    Ok(ready.signals.exit_code(exit_code::DONE))
}

pub(super) async fn logs(args: LogsArgs) -> Result<u8, app::Error> {
    let ready = ready(&args.place, false, OutputFormat::Text)?;
    let mut cleaner = text::Cleaner::new();
    let mut out = Delivery::default();
    let delivered = out.clone();
    let write = |bytes: &[u8]| {
        let _ = write!(out, "{}", cleaner.push(bytes));
    };
    app::logs(&ready.place, args.follow, args.lines, write, &ready.front).await?;
    ready.terminal.finish();
    delivered.end()?;
    Ok(ready.signals.exit_code(exit_code::DONE))
}

fn print(status: &Status) -> Result<(), app::Error> {
    let mut out = format!("engine:       {}\n", text::line(&status.engine));
    match &status.environment {
        Some(up) if status.socket.is_some() => {
            out.push_str(&format!(
                "sandbox:      answers at {} ({})\n",
                text::line(&up.name),
                text::line(&up.detail)
            ));
        }
        None if status.socket.is_some() => {
            let socket = status.socket.as_deref().unwrap_or_default();
            out.push_str(&format!(
                "sandbox:      no answer at {} (`docker compose up -d` starts it)\n",
                text::line(socket)
            ));
        }
        Some(up) => out.push_str(&format!(
            "environment:  up since {} ({})\n",
            text::line(&up.since),
            text::line(&up.detail)
        )),
        None => out.push_str("environment:  not up (podbay up starts it)\n"),
    }
    match (&status.endpoint, &status.model_server) {
        (Some(endpoint), _) => out.push_str(&format!("model:        {}\n", text::line(endpoint))),
        (None, Some(up)) => out.push_str(&format!(
            "model server: up since {} ({})\n",
            text::line(&up.since),
            text::line(&up.detail)
        )),
        (None, None) if status.socket.is_some() => {
            out.push_str("model:        none is named (--endpoint or llm.endpoint)\n");
        }
        (None, None) => out.push_str("model server: not up\n"),
    }
    for id in &status.reviews {
        out.push_str(&format!(
            "pending:      review {id} (podbay review diff {id} shows it)\n",
            id = text::line(id)
        ));
        for line in status
            .waiting
            .iter()
            .filter(|waiting| waiting.review == *id)
            .flat_map(|waiting| &waiting.git)
        {
            out.push_str(&format!("                {}\n", text::line(line)));
        }
    }
    deliver(&out)
}
