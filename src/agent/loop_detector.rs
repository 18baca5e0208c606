//! Detects a model that repeats itself: the model is told first, then the run ends.

use std::collections::VecDeque;
use std::hash::DefaultHasher;
use std::hash::Hash;
use std::hash::Hasher;

use super::Options;
use super::summary::NOTE;

/// The longest cycle that is detected, in answers.
const MAX_PERIOD: usize = 4;
/// Number of remembered answers: enough for the longest cycle at any sensible setting.
const MAX_STEPS: usize = 256;
/// Precedes the cursor in the result of a search.
const CURSOR: &str = "from_cursor \"";

/// One call and its result.
#[derive(Clone, Debug)]
pub(super) struct CallResult {
    /// Equal for calls that mean the same, however their arguments are written.
    pub(super) canonical: String,
    /// The call as shown to users.
    pub(super) shown: String,
    /// The text that the model read.
    pub(super) result: String,
    pub(super) has_failed: bool,
    /// What was wrong with the call itself, as opposed to a command's failure: equal for the same
    /// mistake.
    pub(super) fault: Option<String>,
}

/// The detector's conclusion from the last answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// The model is trying something new.
    Moving,
    /// A message to the model.
    Nudge(String),
    /// The reason to end the run.
    Stuck(String),
}

/// Records the calls of a task, answer by answer.
#[derive(Clone, Debug, Default)]
pub(super) struct LoopDetector {
    steps: VecDeque<Step>,
    /// The model was told about the current cycle.
    is_told: bool,
}

#[derive(Clone, Debug)]
struct Step {
    calls: u64,
    results: u64,
    has_failed: bool,
    /// The mistake, if every call of the answer made the same one.
    fault: Option<String>,
    shown: String,
}

/// How often something was repeated, and the counts at which the model is told and the run ends; 0
/// is never.
#[derive(Clone, Copy)]
struct Repetition {
    n: usize,
    tell_at: usize,
    end_at: usize,
    /// The results were not the same.
    differs: bool,
}

impl Repetition {
    fn ends(self) -> bool {
        self.end_at > 0 && self.n >= self.end_at
    }

    fn tells(self) -> bool {
        self.end_at > 0 && self.n >= self.tell_at.max(2)
    }
}

impl LoopDetector {
    /// Records the calls of one answer with their results.
    pub(super) fn take(&mut self, done: &[CallResult], options: &Options) -> Finding {
        if self.steps.len() == MAX_STEPS {
            self.steps.pop_front();
        }
        self.steps.push_back(Step::of(done));
        let mut finding = Finding::Moving;
        for (period, count) in self.repetitions(options) {
            let how = if self.has_failed(period) {
                "and failed each time"
            } else if count.differs {
                "with results that differed"
            } else {
                "to no new effect"
            };
            let what = self.describe(period, count.n);
            if count.ends() {
                return Finding::Stuck(format!("the model is stuck in a loop: {what} {how}"));
            }
            if count.tells() && finding == Finding::Moving {
                let advice = if count.differs {
                    "Is waiting what you want? One command that waits, with `sleep` in it, waits better"
                } else {
                    "The same once more will come to the same. Try something else"
                };
                finding = Finding::Nudge(format!(
                    "{NOTE} {what} {how}. {advice}; if nothing else is left, answer without a call and say what you found and \
                     what stands in the way."
                ));
            }
        }
        let faults = self.faults(options);
        if faults.ends() {
            let shown = self.steps.back().map_or("", |step| step.shown.as_str());
            return Finding::Stuck(format!(
                "the model makes the same mistake: {} answers in a row failed alike, the last with {shown}",
                faults.n
            ));
        }
        if faults.tells() && finding == Finding::Moving {
            finding = Finding::Nudge(format!(
                "{NOTE} {} calls in a row were refused for the same reason. Read what the last result says and change that, or use \
                 another tool.",
                faults.n
            ));
        }
        let was_told = std::mem::replace(&mut self.is_told, finding != Finding::Moving);
        if was_told { Finding::Moving } else { finding }
    }

    /// Returns how often the last answers were repeated, for each cycle length.
    fn repetitions(&self, options: &Options) -> Vec<(usize, Repetition)> {
        let at = |n: u32| n as usize;
        let mut counts = Vec::new();
        for period in 1..=MAX_PERIOD.min(self.steps.len()) {
            let alike = self.repeats(period, |a, b| a.calls == b.calls);
            if self.has_failed(period) {
                counts.push((
                    period,
                    Repetition {
                        n: alike,
                        tell_at: at(options.redirect_at),
                        end_at: at(options.break_at),
                        differs: false,
                    },
                ));
                continue;
            }
            let same = self.repeats(period, |a, b| a.calls == b.calls && a.results == b.results);
            let end_at = at(options.abort_at);
            counts.push((
                period,
                Repetition {
                    n: same,
                    tell_at: end_at.saturating_sub(1),
                    end_at,
                    differs: false,
                },
            ));
            // Polling until something changes is work, up to a point.
            counts.push((
                period,
                Repetition {
                    n: alike,
                    tell_at: (end_at * 2).saturating_sub(1),
                    end_at: end_at * 4,
                    differs: true,
                },
            ));
        }
        counts
    }

    /// Returns how often the last `period` answers were repeated.
    fn repeats(&self, period: usize, same: impl Fn(&Step, &Step) -> bool) -> usize {
        let steps = &self.steps;
        let run = (period..steps.len())
            .rev()
            .take_while(|at| same(&steps[*at], &steps[at - period]))
            .count();
        run / period + 1
    }

    fn has_failed(&self, period: usize) -> bool {
        self.steps
            .iter()
            .rev()
            .take(period)
            .any(|step| step.has_failed)
    }

    /// Counts the last answers that failed alike, whatever their arguments.
    fn faults(&self, options: &Options) -> Repetition {
        let last = self.steps.back().and_then(|step| step.fault.as_ref());
        let n = if last.is_some() {
            self.steps
                .iter()
                .rev()
                .take_while(|step| step.fault.as_ref() == last)
                .count()
        } else {
            0
        };
        Repetition {
            n,
            tell_at: options.redirect_at as usize,
            end_at: options.break_at as usize,
            differs: false,
        }
    }

    fn describe(&self, period: usize, n: usize) -> String {
        let shown: Vec<&str> = self
            .steps
            .iter()
            .rev()
            .take(period)
            .map(|step| step.shown.as_str())
            .collect();
        match shown.as_slice() {
            [one] => format!("the same call was made {n} times in a row ({one})"),
            several => {
                let list: Vec<&str> = several.iter().rev().copied().collect();
                format!(
                    "the same {} steps were taken {n} times in a row ({})",
                    several.len(),
                    list.join(", ")
                )
            }
        }
    }
}

impl Step {
    fn of(done: &[CallResult]) -> Self {
        let hash = |part: &dyn Fn(&CallResult) -> String| {
            let mut hasher = DefaultHasher::new();
            for one in done {
                part(one).hash(&mut hasher);
            }
            hasher.finish()
        };
        let fault = done
            .first()
            .and_then(|first| first.fault.as_ref())
            .filter(|fault| done.iter().all(|one| one.fault.as_ref() == Some(fault)));
        let shown = match done {
            [] => String::new(),
            [one] => one.shown.clone(),
            [one, rest @ ..] => format!("{} and {} more", one.shown, rest.len()),
        };
        Self {
            calls: hash(&|one| one.canonical.clone()),
            results: hash(&|one| without_cursor(&one.result)),
            has_failed: done.iter().any(|one| one.has_failed),
            fault: fault.cloned(),
            shown,
        }
    }
}

/// Returns a result without its cursor number, which increases with each search.
fn without_cursor(result: &str) -> String {
    let Some((before, behind)) = result.rsplit_once(CURSOR) else {
        return result.to_owned();
    };
    format!(
        "{before}{CURSOR}{}",
        behind.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '-')
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One answer per character: lower-case letters succeed, upper-case ones fail; a digit after it
    /// is another result.
    #[track_caller]
    fn check(script: &str, expected: &str) {
        let mut stuck = LoopDetector::default();
        let mut found = String::new();
        for step in script.split(' ') {
            let letter = &step[..1];
            let has_failed = letter.chars().all(char::is_uppercase);
            let done = CallResult {
                canonical: letter.into(),
                shown: letter.into(),
                result: step.into(),
                has_failed,
                fault: None,
            };
            found.push(match stuck.take(&[done], &Options::default()) {
                Finding::Moving => '.',
                Finding::Nudge(_) => 'n',
                Finding::Stuck(_) => '!',
            });
        }
        assert_eq!(found, expected, "{script}");
    }

    #[test]
    fn a_successful_call_without_effect_is_stopped_at_the_third() {
        check("a a a", ".n!");
        check("a b a c a d", "......");
        check("a a b a a", ".n..n");
    }

    #[test]
    fn a_failing_call_is_redirected_at_the_third_and_stopped_at_the_fourth() {
        check("A A A A", "..n!");
        check("A1 A2 A3 A4", "..n!");
        check("A A b A A", ".....");
    }

    #[test]
    fn calls_with_new_results_are_allowed_more_repetitions() {
        check("a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12", "....n......!");
        let options = Options::default();
        let found = words(&["a1", "a2", "a3", "a4", "a5"], &options);
        assert!(
            matches!(&found, Finding::Nudge(words) if words.contains("5 times in a row (a) with results that differed. Is waiting"))
        );
        let found = words(&["a", "a"], &options);
        assert!(
            matches!(&found, Finding::Nudge(words) if words.contains("to no new effect. The same once more"))
        );
    }

    /// Returns the last finding.
    fn words(results: &[&str], options: &Options) -> Finding {
        let mut stuck = LoopDetector::default();
        let done = |result: &&str| CallResult {
            canonical: "a".into(),
            shown: "a".into(),
            result: (*result).into(),
            has_failed: false,
            fault: None,
        };
        results.iter().fold(Finding::Moving, |_, result| {
            stuck.take(&[done(result)], options)
        })
    }

    #[test]
    fn cycles_of_two_to_four_answers_are_found() {
        check("a b a b a b", "...n.!");
        check("a b c a b c a b c", ".....n..!");
        check("a b c d a b c d a b c d", ".......n...!");
        check("a b c d e a b c d e a b c d e", "...............");
        check("a B a B a B a B", ".....n.!");
    }

    #[test]
    fn the_same_mistake_with_other_arguments_counts() {
        let mut stuck = LoopDetector::default();
        let fault = |n: u32, fault: &str| {
            let canonical = format!("fly {n}");
            CallResult {
                shown: canonical.clone(),
                canonical,
                result: format!("{fault}: {n}"),
                has_failed: true,
                fault: Some(fault.into()),
            }
        };
        let options = Options::default();
        let found: Vec<Finding> = (0..4)
            .map(|n| stuck.take(&[fault(n, "there is no tool `fly`")], &options))
            .collect();
        assert!(
            matches!(
                &found[..],
                [
                    Finding::Moving,
                    Finding::Moving,
                    Finding::Nudge(_),
                    Finding::Stuck(_)
                ]
            ),
            "{found:?}"
        );
        let mut stuck = LoopDetector::default();
        for n in 0..8 {
            assert_eq!(
                stuck.take(&[fault(n, &format!("wrong in another way: {n}"))], &options),
                Finding::Moving
            );
        }
    }

    #[test]
    fn searches_with_equal_results_are_equal_despite_their_cursors() {
        let found = |n: u32| {
            format!("a.rs:1: x\n[read these files with read_file from_cursor \"grep-{n}\"]")
        };
        let results = [found(1), found(2), found(3)];
        let found = words(&results.each_ref().map(String::as_str), &Options::default());
        assert!(
            matches!(&found, Finding::Stuck(words) if words.contains("3 times in a row (a) to no new effect")),
            "{found:?}"
        );
        assert_eq!(
            without_cursor("from_cursor \"glob-12\"] more"),
            "from_cursor \"\"] more"
        );
    }

    #[test]
    fn zero_disables_loop_detection() {
        let options = Options {
            redirect_at: 0,
            break_at: 0,
            abort_at: 0,
            ..Options::default()
        };
        let mut stuck = LoopDetector::default();
        for has_failed in [false, true].repeat(20).into_iter().chain([true; 20]) {
            let done = CallResult {
                canonical: "a".into(),
                shown: "a".into(),
                result: "a".into(),
                has_failed,
                fault: Some("a".into()),
            };
            assert_eq!(stuck.take(&[done], &options), Finding::Moving);
        }
    }
}
