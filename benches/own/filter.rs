//! What it costs a command to run under the filter on commands.
//!
//! A sandbox puts the filter on once, on the process that starts commands, and each command
//! inherits it: so it costs a command what its system calls take longer. Here two threads start the
//! same command in turns, and one of them has the filter on, as that process has.

use std::process::Command;
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use super::Outcome;
use super::table::Table;

const ROUNDS: usize = 300;
/// Not counted: files and pages come into the kernel's caches.
const WARM: usize = 20;
const BAR: Duration = Duration::from_micros(300);

pub(super) fn rows(table: &mut Table) -> Outcome<()> {
    let (filtered, putting_on) = Starter::begin(true)?;
    let (plain, _) = Starter::begin(false)?;
    let mut pairs = Vec::new();
    for round in 0..WARM + ROUNDS {
        // Neither is always the one that finds the caches warm.
        let (with, without) = if round.is_multiple_of(2) {
            let with = filtered.time()?;
            (with, plain.time()?)
        } else {
            let without = plain.time()?;
            (filtered.time()?, without)
        };
        if round >= WARM {
            pairs.push((with, without));
        }
    }
    let mut differences: Vec<f64> = pairs
        .iter()
        .map(|(with, without)| with.as_secs_f64() - without.as_secs_f64())
        .collect();
    differences.sort_unstable_by(f64::total_cmp);
    let middle = differences
        .get(differences.len() / 2)
        .copied()
        .unwrap_or_default();
    let mut without: Vec<Duration> = pairs.into_iter().map(|(_, without)| without).collect();
    without.sort_unstable();
    let whole = without.get(without.len() / 2).copied().unwrap_or_default();
    let what = format!(
        "`bash -c true` under the filter on commands, less the same without it, which takes {:.2} ms",
        milliseconds(whole)
    );
    table.figure(
        &what,
        &format!("{:.3} ms", middle * 1000.0),
        "≤ 0.3 ms",
        middle <= BAR.as_secs_f64(),
    );
    table.note(
        "making that filter and putting it on, once for each sandbox",
        &format!("{:.2} ms", milliseconds(putting_on)),
        "",
    );
    Ok(())
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// A thread that starts commands. A filter is a thread's own, and passes to what that thread
/// starts.
struct Starter {
    ask: mpsc::Sender<()>,
    answers: mpsc::Receiver<Result<Duration, String>>,
}

impl Starter {
    /// Returns how long it took to put the filter on, too.
    fn begin(is_filtered: bool) -> Outcome<(Self, Duration)> {
        let (ask, asked) = mpsc::channel();
        let (tell, answers) = mpsc::channel();
        thread::spawn(move || {
            let begun = Instant::now();
            let ready = if is_filtered {
                podbay::guest::filter_commands().map_err(|error| error.to_string())
            } else {
                Ok(())
            };
            let took = begun.elapsed();
            let mut said = tell.send(ready.and_then(|()| is_as_said(is_filtered)).map(|()| took));
            while said.is_ok() && asked.recv().is_ok() {
                said = tell.send(run());
            }
        });
        let starter = Self { ask, answers };
        let took = starter.answers.recv()??;
        Ok((starter, took))
    }

    fn time(&self) -> Outcome<Duration> {
        self.ask.send(())?;
        Ok(self.answers.recv()??)
    }
}

/// The kernel's own word on whether what this thread starts has a filter on.
fn is_as_said(is_filtered: bool) -> Result<(), String> {
    let output = Command::new("grep")
        .args(["-c", "^Seccomp:.2", "/proc/self/status"])
        .output()
        .map_err(|error| error.to_string())?;
    match (output.stdout.starts_with(b"1"), is_filtered) {
        (has, wanted) if has == wanted => Ok(()),
        (true, _) => Err("there is a filter on this machine's processes already, and no command without one to compare with".to_owned()),
        (false, _) => Err("the filter is not on".to_owned()),
    }
}

fn run() -> Result<Duration, String> {
    let begun = Instant::now();
    let status = Command::new("bash")
        .args(["-c", "true"])
        .stdin(Stdio::null())
        .status()
        .map_err(|error| error.to_string())?;
    let took = begun.elapsed();
    if status.success() {
        Ok(took)
    } else {
        Err(format!("`bash -c true`: {status}"))
    }
}
