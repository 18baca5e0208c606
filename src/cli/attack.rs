use std::sync::Arc;

use super::args::DoctorArgs;
use super::findings;
use super::findings::Findings;
use super::findings::Headings;
use super::front::Nobody;
use super::run::listen;
use super::setup::Setup;
use podbay_app as app;
use podbay_app::Interrupt;
use podbay_app::Mode;
use podbay_app::doctor;
use podbay_app::doctor::Attempt;
use podbay_app::doctor::Outcome;
use podbay_app::doctor::Siege;
use podbay_ui::Paint;
use podbay_ui::text;

/// `podbay doctor --attack`: the rows, and what to do about those that failed.
pub(super) async fn attack(args: DoctorArgs) -> Result<u8, app::Error> {
    let interrupt = Interrupt::new();
    let signals = listen(&interrupt)?;
    let setup = Setup::new(&args.config, Vec::new())?;
    let place = setup.place_without_key(args.path.as_deref(), Mode::Deny)?;
    setup.check_folder(args.path.as_deref())?;
    let terminal = setup.terminal(args.format.shown());
    setup.show_warnings(&terminal);
    let mut front = terminal.front(&interrupt, Arc::new(Nobody));
    front.sink = findings::only_progress(front.sink);
    let siege = Box::pin(doctor::attack(&place, &front)).await;
    findings::show(
        siege,
        args.format.is_json(),
        &terminal,
        &setup.config.ui,
        &signals,
    )
}

impl Findings for Siege {
    fn is_bad(&self) -> bool {
        self.status == Outcome::Failed
    }

    fn words(&self, paint: Paint) -> String {
        words(self, paint)
    }
}

/// Renders the rows by their groups: tried, expected, got, and for those that failed what to do.
fn words(siege: &Siege, paint: Paint) -> String {
    let mut out = String::new();
    let mut headings = Headings::default();
    for attempt in &siege.attacks {
        headings.add(attempt.group, paint, &mut out);
        row(attempt, paint, &mut out);
    }
    let n_failed = siege.n_failed();
    let n_rows = siege.attacks.len();
    let sum = match n_failed {
        0 => paint.good(&format!("all {n_rows} attacks were held off")),
        1 => paint.bad(&format!("one attack of {n_rows} got through")),
        _ => paint.bad(&format!("{n_failed} attacks of {n_rows} got through")),
    };
    out.push_str(&format!("\n{sum}\n"));
    out
}

fn row(attempt: &Attempt, paint: Paint, out: &mut String) {
    let word = match attempt.status {
        Outcome::Held => paint.good("held"),
        Outcome::Failed => paint.bad("FAIL"),
    };
    out.push_str(&format!("  {word}  {:<6}  {}\n", attempt.id, attempt.tried));
    out.push_str(&format!("                expected: {}\n", attempt.expected));
    out.push_str(&format!(
        "                got:      {}\n",
        text::line(&attempt.got)
    ));
    if let Some(remedy) = attempt.remedy {
        out.push_str(&format!("                {} {remedy}\n", paint.bold("->")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_show_what_came_of_them_and_nothing_that_a_terminal_obeys() {
        let attempt = |id, group, status, got: &str| Attempt {
            id,
            group,
            tried: "try it",
            expected: "refused",
            got: got.to_owned(),
            status,
            remedy: (status == Outcome::Failed).then_some("close it"),
        };
        let attacks = vec![
            attempt("ESC-01", "escape", Outcome::Held, "3 refused"),
            attempt("N-01", "network", Outcome::Failed, "a way\u{1b}[2J"),
        ];
        let siege = Siege {
            status: Outcome::Failed,
            attacks,
        };
        let expected = r"escape
  held  ESC-01  try it
                expected: refused
                got:      3 refused

network
  FAIL  N-01    try it
                expected: refused
                got:      a way\x1b[2J
                -> close it

one attack of 2 got through
";
        assert_eq!(words(&siege, Paint::NONE), expected);
    }
}
