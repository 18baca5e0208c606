use std::io::Write;

use crate::app;
use crate::ui::Paint;
use crate::ui::text;

/// Shows an error as people read it: what happened, why, and what to do.
pub(super) fn show(error: &app::Error, err: &mut impl Write, paint: Paint) {
    show_report(&error.report(), err, paint);
}

pub(super) fn show_report(report: &app::ErrorReport, err: &mut impl Write, paint: Paint) {
    let mut out = format!("{} {}\n", paint.bad("error:"), text::clean(&report.message));
    for cause in &report.causes {
        out.push_str(&format!("caused by: {}\n", text::clean(cause)));
    }
    for hint in &report.hints {
        out.push_str(&format!("\n{} {}\n", paint.bold("hint:"), text::clean(hint)));
    }
    // Where even the error stream is gone there is nobody left to tell.
    let _ = err.write_all(out.as_bytes());
}
