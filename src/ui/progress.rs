use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;
use std::time::Instant;

use indicatif::MultiProgress;
use indicatif::ProgressBar;
use indicatif::ProgressDrawTarget;
use indicatif::ProgressStyle;

use podbay_event as event;
use podbay_event::ByteSize;
use podbay_event::GIVEN_UP;
use podbay_event::ProgressSink;
use podbay_event::Unit;

use super::text;

/// Where nobody sees a bar move, a task speaks at most this often.
const PAUSE: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(120);
/// Columns below which there is room for no bar.
const NARROW: u16 = 80;
/// Columns from which on a bar, sizes, a rate and a time fit in one line.
const WIDE: u16 = 120;

/// Shows how far slow steps are, on the error stream. Clones show on the same place.
#[derive(Clone)]
pub struct Progress {
    way: Arc<Way>,
}

enum Way {
    Bars {
        multi: MultiProgress,
        bars: Mutex<HashMap<String, ProgressBar>>,
        working: Mutex<Option<ProgressBar>>,
        columns: u16,
    },
    Lines {
        state: Mutex<(Lines, Box<dyn Write + Send>)>,
    },
    Hidden,
}

impl Progress {
    /// Bars on a terminal of so many columns.
    pub fn bars(columns: u16) -> Self {
        Self::drawn_on(ProgressDrawTarget::stderr(), columns)
    }

    fn drawn_on(target: ProgressDrawTarget, columns: u16) -> Self {
        Self {
            way: Arc::new(Way::Bars {
                multi: MultiProgress::with_draw_target(target),
                bars: Mutex::default(),
                working: Mutex::default(),
                columns,
            }),
        }
    }

    /// A line now and then, for logs.
    pub fn lines(err: impl Write + Send + 'static) -> Self {
        Self {
            way: Arc::new(Way::Lines {
                state: Mutex::new((Lines::default(), Box::new(err))),
            }),
        }
    }

    pub fn hidden() -> Self {
        Self {
            way: Arc::new(Way::Hidden),
        }
    }

    /// Returns what rooms report to.
    pub fn sink(&self) -> ProgressSink {
        let progress = self.clone();
        Arc::new(move |step| progress.show(&step))
    }

    /// Shows how far one step is.
    pub fn show(&self, step: &event::Progress) {
        match &*self.way {
            Way::Bars {
                multi,
                bars,
                columns,
                ..
            } => {
                let mut bars = bars.lock().unwrap_or_else(PoisonError::into_inner);
                if step.finished {
                    if let Some(bar) = bars.remove(&step.task) {
                        bar.finish_and_clear();
                    }
                    return;
                }
                let bar = bars.entry(step.task.clone()).or_insert_with(|| {
                    // Whole before it is seen: as soon as it belongs to the others it is drawn.
                    let bar = step
                        .total
                        .map_or_else(ProgressBar::no_length, ProgressBar::new)
                        .with_style(style(step, *columns));
                    let bar = multi.add(
                        bar.with_prefix(name(&step.task, *columns))
                            .with_position(step.done),
                    );
                    bar.enable_steady_tick(TICK);
                    bar
                });
                if let Some(total) = step.total
                    && (bar.length() != Some(total) || bar.position() == 0)
                {
                    bar.set_length(total);
                    bar.set_style(style(step, *columns));
                }
                bar.set_message(short(&step.detail));
                bar.set_position(step.done);
            }
            Way::Lines { state } => {
                let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(line) = state.0.line(step, Instant::now()) {
                    // Progress that cannot be written is not worth a word.
                    let _ = writeln!(state.1, "{line}").and_then(|()| state.1.flush());
                }
            }
            Way::Hidden => {}
        }
    }

    /// Shows, on a terminal, that something is running; `None` ends it.
    pub(super) fn working(&self, what: Option<&str>) {
        let Way::Bars {
            multi,
            working,
            columns,
            ..
        } = &*self.way
        else {
            return;
        };
        let mut working = working.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bar) = working.take() {
            bar.finish_and_clear();
        }
        if let Some(what) = what {
            let bar = multi.add(ProgressBar::new_spinner());
            bar.set_style(spinner());
            bar.set_prefix(name(what, *columns));
            bar.enable_steady_tick(TICK);
            *working = Some(bar);
        }
    }

    /// Takes the bars away while something else is written to the terminal.
    pub fn suspend<R>(&self, write: impl FnOnce() -> R) -> R {
        match &*self.way {
            Way::Bars { multi, .. } => multi.suspend(write),
            Way::Lines { .. } | Way::Hidden => write(),
        }
    }
}

fn short(detail: &str) -> String {
    text::line(detail.trim()).chars().take(60).collect()
}

/// Returns the name of a step, which never fills the line alone.
fn name(task: &str, columns: u16) -> String {
    text::line(task)
        .chars()
        .take(usize::from(columns / 3).max(10))
        .collect()
}

/// Returns how a step is shown in so many columns: what does not fit is left out, the message is
/// clipped.
fn style(step: &event::Progress, columns: u16) -> ProgressStyle {
    let template = match (step.total, step.unit) {
        (Some(_), Unit::Bytes) if columns < NARROW => "{prefix} {bytes}/{total_bytes} {wide_msg}",
        (Some(_), Unit::Bytes) if columns < WIDE => {
            "{prefix} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left {wide_msg}"
        }
        (Some(_), Unit::Bytes) => {
            "{prefix} [{bar:24}] {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left {wide_msg}"
        }
        (Some(_), _) if columns < NARROW => "{prefix} {pos}/{len} {wide_msg}",
        // How long it will be is not known: at most so long.
        (Some(_), Unit::Seconds) => "{prefix} [{bar:24}] {pos} of at most {len} s {wide_msg}",
        // One step of a build takes a second, the next ten minutes: no time is told. Nor is it
        // before the first of something else.
        (Some(_), Unit::Steps) => "{prefix} [{bar:24}] {pos}/{len} {wide_msg}",
        (Some(_), _) if step.done == 0 => "{prefix} [{bar:24}] {pos}/{len} {wide_msg}",
        (Some(_), _) => "{prefix} [{bar:24}] {pos}/{len}, {eta} left {wide_msg}",
        (None, _) => return spinner(),
    };
    ProgressStyle::with_template(template)
        .expect("the template is a constant")
        .progress_chars("=> ")
}

fn spinner() -> ProgressStyle {
    ProgressStyle::with_template("{spinner} {prefix} {elapsed} {wide_msg}")
        .expect("the template is a constant")
}

/// Decides which steps become a line, and words it.
#[derive(Default)]
struct Lines {
    tasks: HashMap<String, Task>,
}

struct Task {
    started: Instant,
    /// A download that is taken up again starts with what is there already.
    done_before: u64,
    last: Instant,
    detail: String,
}

impl Lines {
    fn line(&mut self, step: &event::Progress, now: Instant) -> Option<String> {
        let task = text::line(&step.task);
        if step.finished {
            let started = self
                .tasks
                .remove(&step.task)
                .map_or(now, |task| task.started);
            let how = if step.detail == GIVEN_UP {
                "given up after"
            } else {
                "done in"
            };
            return Some(format!("{task}: {how} {}", elapsed(now - started)));
        }
        let detail = text::line(step.detail.trim());
        let Some(known) = self.tasks.get_mut(&step.task) else {
            self.tasks.insert(
                step.task.clone(),
                Task {
                    started: now,
                    done_before: step.done,
                    last: now,
                    detail: detail.clone(),
                },
            );
            let size = step
                .total
                .filter(|_| step.unit == Unit::Bytes)
                .map(|total| ByteSize::new(total).rounded());
            let parts: Vec<String> = size
                .into_iter()
                .chain(Some(detail).filter(|detail| !detail.is_empty()))
                .collect();
            return Some(format!(
                "{task}: {}",
                if parts.is_empty() {
                    "…".to_owned()
                } else {
                    parts.join(", ")
                }
            ));
        };
        if now - known.last < PAUSE
            || (step.total.is_none() && step.done == known.done_before && known.detail == detail)
        {
            return None;
        }
        known.last = now;
        known.detail.clone_from(&detail);
        let mut parts = vec![match (step.total, step.unit) {
            (Some(total), Unit::Seconds) => {
                format!(
                    "{} of at most {}",
                    elapsed(Duration::from_secs(step.done)),
                    elapsed(Duration::from_secs(total))
                )
            }
            (None, Unit::Seconds) => elapsed(now - known.started),
            (Some(total), Unit::Percent) => format!("{} of {total} %", step.done),
            (Some(total), Unit::Bytes) => {
                format!(
                    "{} of {}{}",
                    ByteSize::new(step.done).rounded(),
                    ByteSize::new(total).rounded(),
                    percent(step.done, total)
                )
            }
            (Some(total), _) => format!("{} of {total}{}", step.done, percent(step.done, total)),
            (None, Unit::Bytes) => ByteSize::new(step.done).rounded(),
            (None, _) if step.done == 0 => elapsed(now - known.started),
            (None, _) => step.done.to_string(),
        }];
        let rate = step.done.saturating_sub(known.done_before) as f64
            / (now - known.started).as_secs_f64();
        if rate > 0.0 && step.unit != Unit::Seconds {
            if step.unit == Unit::Bytes {
                parts.push(format!("{}/s", ByteSize::new(rate as u64).rounded()));
            }
            if let Some(total) = step.total
                && step.unit != Unit::Steps
            {
                parts.push(format!(
                    "{} left",
                    elapsed(Duration::from_secs_f64(
                        total.saturating_sub(step.done) as f64 / rate
                    ))
                ));
            }
        }
        if !detail.is_empty() {
            parts.push(detail);
        }
        Some(format!("{task}: {}", parts.join(", ")))
    }
}

fn percent(done: u64, total: u64) -> String {
    done.saturating_mul(100)
        .checked_div(total)
        .map(|percent| format!(" ({} %)", percent.min(100)))
        .unwrap_or_default()
}

fn elapsed(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds < 60 {
        format!("{seconds} s")
    } else {
        format!("{} min {} s", seconds / 60, seconds % 60)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use indicatif::TermLike;

    use super::*;

    fn step(
        task: &str,
        done: u64,
        total: Option<u64>,
        unit: Unit,
        detail: &str,
    ) -> event::Progress {
        event::Progress {
            task: task.into(),
            done,
            total,
            unit,
            detail: detail.into(),
            finished: false,
        }
    }

    #[test]
    fn a_log_gets_a_line_now_and_then() {
        let mut lines = Lines::default();
        let start = Instant::now();
        let mut said = Vec::new();
        for second in 0..=6_u32 {
            let at = start + Duration::from_secs(second.into());
            said.extend(lines.line(
                &step(
                    "download",
                    10 << 20 << second,
                    Some(1 << 30),
                    Unit::Bytes,
                    "",
                ),
                at,
            ));
            said.extend(lines.line(
                &step(
                    "build",
                    0,
                    None,
                    Unit::Steps,
                    ["one", "one", "two\x1b[2J"][second as usize / 3],
                ),
                at,
            ));
        }
        let end = event::Progress {
            finished: true,
            ..step("download", 1 << 30, Some(1 << 30), Unit::Bytes, "")
        };
        said.extend(lines.line(&end, start + Duration::from_secs(75)));
        assert_eq!(
            said,
            [
                "download: 1.0 GiB",
                "build: one",
                "download: 40.0 MiB of 1.0 GiB (3 %), 15.0 MiB/s, 1 min 5 s left",
                "download: 160.0 MiB of 1.0 GiB (15 %), 37.5 MiB/s, 23 s left",
                "download: 640.0 MiB of 1.0 GiB (62 %), 105.0 MiB/s, 3 s left",
                "build: 6 s, two\\x1b[2J",
                "download: done in 1 min 15 s",
            ]
        );
    }

    #[test]
    fn a_wait_says_how_long_it_may_be_and_that_it_was_in_vain() {
        let mut lines = Lines::default();
        let start = Instant::now();
        let mut said = Vec::new();
        for second in [0, 20, 58_u32] {
            let at = start + Duration::from_secs(second.into());
            said.extend(lines.line(
                &step("waiting", second.into(), Some(60), Unit::Seconds, ""),
                at,
            ));
            said.extend(lines.line(&step("loads", second.into(), None, Unit::Seconds, ""), at));
        }
        for (task, detail) in [("waiting", GIVEN_UP), ("loads", "")] {
            let end = event::Progress {
                finished: true,
                ..step(task, 0, None, Unit::Seconds, detail)
            };
            said.extend(lines.line(&end, start + Duration::from_mins(1)));
        }
        assert_eq!(
            said,
            [
                "waiting: …",
                "loads: …",
                "waiting: 20 s of at most 1 min 0 s",
                "loads: 20 s",
                "waiting: 58 s of at most 1 min 0 s",
                "loads: 58 s",
                "waiting: given up after 1 min 0 s",
                "loads: done in 1 min 0 s",
            ]
        );
    }

    /// Keeps the lines that are drawn.
    #[derive(Clone, Debug)]
    struct Drawn {
        columns: u16,
        lines: Arc<Mutex<Vec<String>>>,
    }

    impl TermLike for Drawn {
        fn width(&self) -> u16 {
            self.columns
        }

        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn write_line(&self, line: &str) -> io::Result<()> {
            self.write_str(line)
        }

        fn write_str(&self, line: &str) -> io::Result<()> {
            self.lines.lock().expect("unshared").push(line.to_owned());
            Ok(())
        }

        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Draws a step as if the terminal had so many columns.
    fn drawn(step: &event::Progress, columns: u16) -> String {
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let terminal = Drawn {
            columns,
            lines: Arc::clone(&lines),
        };
        let target = ProgressDrawTarget::term_like(Box::new(terminal));
        let progress = Progress::drawn_on(target, columns);
        progress.show(step);
        let all = lines.lock().expect("unshared");
        // A line is filled up with blanks, which are written by themselves.
        all.iter()
            .map(|line| line.trim_end())
            .max_by_key(|line| line.chars().count())
            .expect("a line was drawn")
            .to_owned()
    }

    #[test]
    fn every_bar_fits_the_width_of_the_terminal() {
        let detail = "Step 7/12 : RUN apt-get install a-package-with-a-name-that-is-very-long";
        let task = "build the image podbay/workspace with a name that is long as well";
        for columns in [40, 80, 100, 120, 200] {
            for (total, unit) in [
                (Some(u64::from(u32::MAX)), Unit::Bytes),
                (Some(120), Unit::Steps),
                (Some(120), Unit::Tokens),
                (Some(120), Unit::Seconds),
                (None, Unit::Tokens),
            ] {
                let line = drawn(&step(task, 7, total, unit, detail), columns);
                let width = line.chars().count();
                assert!(width <= usize::from(columns), "{columns}: {width}: {line}");
            }
        }
    }

    #[test]
    fn steps_of_a_build_tell_no_time() {
        for columns in [60, 100, 200] {
            let line = drawn(&step("build", 7, Some(12), Unit::Steps, "RUN"), columns);
            assert!(line.contains("7/12") && !line.contains("left"), "{line}");
        }
        let mut lines = Lines::default();
        let start = Instant::now();
        lines.line(&step("build", 1, Some(12), Unit::Steps, ""), start);
        let later = lines.line(
            &step("build", 7, Some(12), Unit::Steps, "RUN"),
            start + Duration::from_secs(9),
        );
        assert_eq!(later.as_deref(), Some("build: 7 of 12 (58 %), RUN"));
    }

    #[test]
    fn what_is_written_while_bars_are_drawn_comes_back() {
        let progress = Progress::bars(80);
        progress.show(&step("x", 1, Some(10), Unit::Bytes, "y"));
        assert_eq!(progress.suspend(|| 7), 7);
    }
}
