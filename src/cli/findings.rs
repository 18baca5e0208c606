//! How what a doctor found is shown: as one object or in groups of rows.

use std::io;
use std::io::IsTerminal;
use std::sync::Arc;

use serde::Serialize;

use super::delivery::Delivery;
use super::delivery::deliver;
use super::front::Terminal;
use super::signals::Signals;
use podbay_app as app;
use podbay_app::exit_code;
use podbay_event::Kind;
use podbay_event::Sink;
use podbay_ui as ui;
use podbay_ui::Paint;

/// What was found, of one kind or another.
pub(super) trait Findings: Serialize {
    /// Whether something is wrong: then the exit code is 1.
    fn is_bad(&self) -> bool;

    /// Renders it for people.
    fn words(&self, paint: Paint) -> String;
}

/// Shows what was found, and returns the exit code.
pub(super) fn show<T: Findings>(
    found: Result<T, app::Error>,
    json: bool,
    terminal: &Terminal,
    options: &ui::Options,
    signals: &Signals,
) -> Result<u8, app::Error> {
    terminal.finish();
    let found = found?;
    if json {
        let mut out = Delivery::default();
        let _ = ui::json::result(&mut out, &found);
        out.end()?;
    } else {
        deliver(&found.words(out_paint(options)))?;
    }
    Ok(signals.exit_code(if found.is_bad() {
        exit_code::FAILED
    } else {
        exit_code::DONE
    }))
}

/// Returns the colours of the standard output.
pub(super) fn out_paint(options: &ui::Options) -> Paint {
    Paint::new(options.color, io::stdout().is_terminal(), |name| {
        std::env::var_os(name)
    })
}

/// Lets only progress through to a sink: what else happens while something is examined is part of
/// what is found.
pub(super) fn only_progress(sink: Sink) -> Sink {
    Arc::new(move |event| {
        if matches!(event.kind, Kind::Progress(_)) {
            sink(event);
        }
    })
}

/// Writes the name of each group in front of its first row.
#[derive(Default)]
pub(super) struct Headings {
    last: Option<&'static str>,
}

impl Headings {
    pub(super) fn add(&mut self, group: &'static str, paint: Paint, out: &mut String) {
        if self.last == Some(group) {
            return;
        }
        let gap = if self.last.is_some() { "\n" } else { "" };
        out.push_str(&format!("{gap}{}\n", paint.bold(group)));
        self.last = Some(group);
    }
}
