//! `podbay install`: what package managers print goes to standard error, what came of it to
//! standard output.

use std::io::Write;
use std::sync::Arc;

use super::args::InstallArgs;
use super::delivery::Delivery;
use super::delivery::deliver_json;
use super::flags;
use super::front::Nobody;
use super::run::listen;
use super::setup::Setup;
use podbay_app as app;
use podbay_app::InstallReport;
use podbay_app::InstallWish;
use podbay_app::InstalledStep;
use podbay_app::Interrupt;
use podbay_app::StepOutcome;
use podbay_event::ByteSize;
use podbay_event::Kind;
use podbay_ui::text;

pub(super) async fn install(args: InstallArgs) -> Result<u8, app::Error> {
    let mut overrides = Vec::new();
    flags::place(&args.place, &mut overrides)?;
    let folder = args.place.path.as_deref();
    let setup = Setup::in_project(&args.place.config, folder, overrides)?;
    let interrupt = Interrupt::new();
    let signals = listen(&interrupt)?;
    let terminal = setup.terminal(args.format.shown());
    setup.show_warnings(&terminal);
    let place = setup.place_without_key(folder, app::Mode::Auto)?;
    let mut front = terminal.front(&interrupt, Arc::new(Nobody));
    let sink = Arc::clone(&front.sink);
    front.sink = Arc::new(move |event| {
        if matches!(
            event.kind,
            Kind::Warning { .. } | Kind::Progress(_) | Kind::NetworkAttempted(_)
        ) {
            sink(event);
        }
    });
    let wish = InstallWish {
        ecosystems: args.names,
        hosts: args.place.allow_host,
        again: args.again,
    };
    let mut cleaner = text::Cleaner::new();
    let is_json = args.format.is_json();
    let write = move |bytes: &[u8]| {
        if !is_json {
            super::say(&cleaner.push(bytes));
        }
    };
    let report = app::install(&place, &wish, &front, write).await?;
    terminal.finish();
    if is_json {
        deliver_json(&report)?;
    } else {
        print(&report)?;
    }
    Ok(signals.exit_code(report.exit_code))
}

fn print(report: &InstallReport) -> Result<(), app::Error> {
    let mut out = Delivery::default();
    for step in &report.steps {
        let _ = writeln!(out, "{}", words(step));
    }
    out.end()
}

fn words(step: &InstalledStep) -> String {
    let what = match &step.command {
        Some(command) => format!("{} `{}`", text::line(&step.name), text::line(command)),
        None => text::line(&step.name),
    };
    let holds = step.bytes.map_or_else(String::new, |bytes| {
        format!(", its cache holds {}", ByteSize::new(bytes).rounded())
    });
    let seconds = step.duration_ms as f64 / 1000.0;
    match (step.outcome, &step.problem) {
        (StepOutcome::Failed, Some(problem)) => format!("{what} failed: {}", text::line(problem)),
        (StepOutcome::Failed, None) => format!("{what} failed"),
        (StepOutcome::DoneBefore, _) => format!("{what} ran before"),
        (StepOutcome::Done, _) => format!("{what} done in {seconds:.1} s{holds}"),
    }
}
