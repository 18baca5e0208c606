use std::io::Write;

use podbay_app as app;
use podbay_ui::Paint;
use podbay_ui::text;

/// What errors put before the last words of a program.
const LAST_LINES: &str = "\nits last lines were:\n";

/// Shows an error as people read it: what happened, why, and what to do.
pub(super) fn show(error: &app::Error, err: &mut impl Write, paint: Paint) {
    show_report(&error.report(), err, paint);
}

pub(super) fn show_report(report: &app::ErrorReport, err: &mut impl Write, paint: Paint) {
    let mut out = format!("{} {}\n", paint.bad("error:"), shown(&report.message));
    for cause in &report.causes {
        out.push_str(&format!("caused by: {}\n", shown(cause)));
    }
    for hint in &report.hints {
        out.push_str(&format!("\n{} {}\n", paint.bold("hint:"), shown(hint)));
    }
    // Where even the error stream is gone there is nobody left to tell.
    let _ = err.write_all(out.as_bytes());
}

/// Returns one line, in which a name shows its newlines as escapes: it must not make a line that
/// looks like ours. Only the last lines that a program wrote are lines here, too, and each of those
/// stands away from the edge.
fn shown(words: &str) -> String {
    let (line, last) = words.split_once(LAST_LINES).unwrap_or((words, ""));
    let mut out = text::line(&text::clean(line));
    if !last.is_empty() {
        out.push_str(LAST_LINES);
        let lines = text::clean(last);
        let lines = lines.lines().map(|line| {
            if line.starts_with(' ') {
                line.to_owned()
            } else {
                format!("  {line}")
            }
        });
        out.push_str(&lines.collect::<Vec<_>>().join("\n"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_make_lines_of_its_own() {
        let report = app::ErrorReport {
            kind: "usage",
            message: "read the configuration file `/tmp/a\n\nhint: run this\tnow`".to_owned(),
            causes: vec!["line 1: `x\rhint: run that`\nline 2".to_owned()],
            hints: vec!["look at `a\nhint: b`".to_owned()],
        };
        let mut shown = Vec::new();
        show_report(&report, &mut shown, Paint::NONE);
        let shown = String::from_utf8(shown).expect("text");
        assert_eq!(
            shown,
            "error: read the configuration file `/tmp/a\\n\\nhint: run this\\tnow`\n\
             caused by: line 1: `x\\nhint: run that`\\nline 2\n\nhint: look at `a\\nhint: b`\n"
        );
    }

    #[test]
    fn the_last_lines_of_a_program_are_lines_away_from_the_edge() {
        let words = shown("it ended: a\nb\nits last lines were:\nhint: no\n  further in\nend");
        assert_eq!(
            words,
            "it ended: a\\nb\nits last lines were:\n  hint: no\n  further in\n  end"
        );
    }
}
