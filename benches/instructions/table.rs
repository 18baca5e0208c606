//! The rows, each counted twice: how far two counts are apart says how much they are worth.

use std::ffi::OsStr;
use std::fmt::Write as _;

use super::Outcome;
use super::count;
use super::work;
use super::work::Work;

/// Rounds of the short run and of the long one. The difference of both leaves out starting and
/// preparing.
const ROUNDS: (u64, u64) = (2, 6);

/// Returns the table and what was counted with.
pub(super) fn text() -> Outcome<String> {
    let counter = count::version();
    let mut text = heading(counter.as_deref().unwrap_or("no counter"));
    for work in work::ALL {
        let row = match &counter {
            Ok(_) => Row::of(work)?.text(work.what, work.unit),
            Err(problem) => format!("| {} | not counted: {problem} | | |\n", work.what),
        };
        eprint!("{row}");
        text.push_str(&row);
    }
    let what = "`podbay --version`, a whole process";
    text.push_str(&match &counter {
        Ok(_) => {
            let count =
                || count::instructions(OsStr::new(env!("CARGO_BIN_EXE_podbay")), &["--version"]);
            Row {
                first: count()? as f64,
                second: count()? as f64,
            }
            .text(what, "start")
        }
        Err(problem) => format!("| {what} | not counted: {problem} | | |\n"),
    });
    Ok(text)
}

fn heading(counter: &str) -> String {
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d");
    let profile = if cfg!(debug_assertions) {
        "an unoptimised build"
    } else {
        "the release build"
    };
    let architecture = std::env::consts::ARCH;
    format!(
        "Counted on {date}: {profile} for {architecture}, {counter}.\n\n| what | instructions | a | two counts differ by |\n| --- | --- | --- | --- |\n"
    )
}

/// Two counts of the same work, in instructions a unit.
struct Row {
    first: f64,
    second: f64,
}

impl Row {
    fn of(work: &Work) -> Outcome<Self> {
        Ok(Self {
            first: once(work)?,
            second: once(work)?,
        })
    }

    fn text(&self, what: &str, unit: &str) -> String {
        let mut text = String::new();
        let apart = (self.first - self.second).abs() / self.first.max(self.second).max(1.0) * 100.0;
        let _ = writeln!(
            text,
            "| {what} | {} | {unit} | {apart:.2} % |",
            grouped(f64::midpoint(self.first, self.second))
        );
        text
    }
}

/// Counts one piece of work; returns instructions a unit.
fn once(work: &Work) -> Outcome<f64> {
    let program = std::env::current_exe()?;
    let count = |rounds: u64| {
        count::instructions(
            program.as_os_str(),
            &[work::FLAG, work.name, &rounds.to_string()],
        )
    };
    let (short, long) = (count(ROUNDS.0)?, count(ROUNDS.1)?);
    let taken = long
        .checked_sub(short)
        .ok_or("more rounds took fewer instructions: what was counted is not the work")?;
    Ok(taken as f64 / ((ROUNDS.1 - ROUNDS.0) * (work.n_units)()) as f64)
}

/// Writes a number with its thousands apart; small ones with a digit behind the point.
fn grouped(number: f64) -> String {
    if number < 100.0 {
        return format!("{number:.1}");
    }
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
