use std::time::Duration;

use super::Options;
use podbay_event::LimitKind;
use podbay_event::Usage;
use podbay_llm::Price;

/// What a task has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Spent {
    pub(super) turns: u32,
    pub(super) time: Duration,
    pub(super) usage: Usage,
}

impl Spent {
    /// Adds what another agent has used; the time is this one's.
    pub(super) fn and(mut self, other: &Self) -> Self {
        self.turns = self.turns.saturating_add(other.turns);
        self.usage += other.usage;
        self
    }
}

/// A task's state relative to its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BudgetState {
    Good,
    /// The model should finish.
    Near(LimitKind),
    Over(LimitKind),
}

/// Fewer tokens are too few for an answer; a limit that leaves less is exceeded by the difference.
pub(super) const LEAST_ANSWER: u64 = 256;

/// Precision of the shares of a limit.
const ROUNDING: f64 = 1e-9;

/// Returns in how many turns tools can be called: the last turn of a task is reserved for its final
/// answer, but a task with a single turn has no other. 0 is no limit.
fn working_turns(options: &Options) -> u32 {
    if options.max_turns > 1 {
        options.max_turns - 1
    } else {
        options.max_turns
    }
}

/// Returns the limit that bounds the next answer and how many tokens it may have, if the
/// conversation of `prompt` tokens is read once more. With a known price the cost of an answer is
/// predictable.
pub(super) fn left(
    prompt: u64,
    spent: &Spent,
    options: &Options,
    price: &Price,
) -> Option<(LimitKind, u64)> {
    let tokens = (options.max_tokens > 0).then(|| {
        (
            LimitKind::Tokens,
            options
                .max_tokens
                .saturating_sub(spent.usage.total())
                .saturating_sub(prompt),
        )
    });
    let cost = price
        .completion
        .filter(|price| options.max_cost > 0.0 && *price > 0.0)
        .map(|each| {
            let read = price
                .cost(&Usage {
                    prompt,
                    ..Usage::default()
                })
                .unwrap_or_default();
            let left = options.max_cost - spent.usage.cost_usd.unwrap_or_default() - read;
            // A cast from floating point saturates: a negative rest becomes zero.
            (LimitKind::Cost, (left / each * 1e6) as u64)
        });
    tokens.into_iter().chain(cost).min_by_key(|(_, left)| *left)
}

/// Compares usage with the limits; the limit closest to its end decides.
pub(super) fn budget_state(spent: &Spent, options: &Options) -> BudgetState {
    let most = f64::from(working_turns(options));
    let shares = [
        (LimitKind::Turns, share(f64::from(spent.turns), most)),
        (
            LimitKind::Time,
            share(spent.time.as_secs_f64(), options.timeout.get() as f64),
        ),
        (
            LimitKind::Tokens,
            share(spent.usage.total() as f64, options.max_tokens as f64),
        ),
        (
            LimitKind::Cost,
            share(spent.usage.cost_usd.unwrap_or_default(), options.max_cost),
        ),
    ];
    let (kind, share) = shares
        .into_iter()
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .unwrap_or((LimitKind::Turns, 0.0));
    let near = f64::from(options.wrap_up_percent.min(100)) / 100.0;
    // With few turns the percentage is reached only at the end; the last turn with tools is the
    // latest useful moment.
    let near = if kind == LimitKind::Turns {
        near.min(1.0 - 1.0 / most.max(1.0))
    } else {
        near
    };
    // Sums of costs have rounding errors: ten times 0.1 is below 1.
    if share >= 1.0 - ROUNDING {
        BudgetState::Over(kind)
    } else if share > 0.0 && share >= near - ROUNDING {
        BudgetState::Near(kind)
    } else {
        BudgetState::Good
    }
}

/// Zero means no limit.
fn share(spent: f64, limit: f64) -> f64 {
    if limit > 0.0 { spent / limit } else { 0.0 }
}

/// Returns the message to the model when a limit is near.
pub(super) fn wrap_up(kind: LimitKind, spent: &Spent, options: &Options) -> String {
    let left = match kind {
        LimitKind::Turns => match working_turns(options).saturating_sub(spent.turns) {
            1 => "this answer and one without tools".to_owned(),
            n => format!("{n} more answers with tools"),
        },
        LimitKind::Time => format!(
            "about {} s",
            options.timeout.get().saturating_sub(spent.time.as_secs())
        ),
        LimitKind::Cost => format!(
            "about ${:.4}",
            (options.max_cost - spent.usage.cost_usd.unwrap_or_default()).max(0.0)
        ),
        _ => format!(
            "{} tokens",
            options.max_tokens.saturating_sub(spent.usage.total())
        ),
    };
    format!(
        "Note from Podbay: the limit of this task is near, {left} are left. Finish what matters most, then answer with what is done and what is not."
    )
}

/// Returns the message to the model when a limit is reached.
pub(super) fn limit_message(kind: LimitKind, task: &str) -> String {
    // A small model forgets its task; repeating it makes the last text an answer. Tried on the
    // smallest one: a longer preface makes it repeat the preface.
    let end = task.floor_char_boundary(2000);
    let why = match kind {
        LimitKind::Time => "The time for this task is over. ",
        LimitKind::Tokens | LimitKind::Cost => "The budget of this task is used up. ",
        LimitKind::Stuck => "You went round in circles. ",
        LimitKind::Turns | LimitKind::Context => "",
    };
    format!(
        "{why}No tool can be called any more. Answer now, in a few sentences, from what you have read: {}",
        &task[..end]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(turns: u32, seconds: u64, tokens: u64, expected: BudgetState) {
        let options = Options {
            max_turns: 20,
            timeout: podbay_event::Seconds::new(100),
            max_tokens: 1000,
            ..Options::default()
        };
        let usage = Usage {
            prompt: tokens,
            ..Usage::default()
        };
        assert_eq!(
            budget_state(
                &Spent {
                    turns,
                    time: Duration::from_secs(seconds),
                    usage
                },
                &options
            ),
            expected
        );
    }

    #[test]
    fn the_closest_limit_counts() {
        check(0, 0, 0, BudgetState::Good);
        check(10, 50, 100, BudgetState::Good);
        check(16, 0, 0, BudgetState::Good);
        check(17, 0, 0, BudgetState::Near(LimitKind::Turns));
        check(18, 0, 0, BudgetState::Near(LimitKind::Turns));
        check(19, 0, 0, BudgetState::Over(LimitKind::Turns));
        check(3, 85, 0, BudgetState::Near(LimitKind::Time));
        check(3, 10, 900, BudgetState::Near(LimitKind::Tokens));
        check(20, 0, 900, BudgetState::Over(LimitKind::Turns));
        check(1, 10, 1200, BudgetState::Over(LimitKind::Tokens));
    }

    #[test]
    fn cost_is_a_limit_like_the_others() {
        let options = Options {
            max_cost: 0.5,
            ..Options::default()
        };
        let spent = |cost| Spent {
            usage: Usage {
                cost_usd: cost,
                ..Usage::default()
            },
            ..Spent::default()
        };
        let all = [None, Some(0.4), Some(0.43), Some(0.5)]
            .map(|cost| budget_state(&spent(cost), &options));
        assert_eq!(
            all,
            [
                BudgetState::Good,
                BudgetState::Good,
                BudgetState::Near(LimitKind::Cost),
                BudgetState::Over(LimitKind::Cost)
            ]
        );
        let of_one = Options {
            max_cost: 1.0,
            ..Options::default()
        };
        let ten_times = std::iter::repeat_n(0.1, 10).sum::<f64>();
        assert!(
            ten_times < 1.0
                && budget_state(&spent(Some(ten_times)), &of_one)
                    == BudgetState::Over(LimitKind::Cost)
        );
        assert!(
            wrap_up(LimitKind::Cost, &spent(Some(0.43)), &options)
                .contains("about $0.0700 are left")
        );
    }

    #[test]
    fn a_limit_of_few_turns_is_near_before_the_last() {
        let budget_state = |turns, max_turns| {
            budget_state(
                &Spent {
                    turns,
                    ..Spent::default()
                },
                &Options {
                    max_turns,
                    ..Options::default()
                },
            )
        };
        assert_eq!(
            [0, 1, 2].map(|turns| budget_state(turns, 3)),
            [
                BudgetState::Good,
                BudgetState::Near(LimitKind::Turns),
                BudgetState::Over(LimitKind::Turns)
            ]
        );
        assert_eq!(
            [0, 1].map(|turns| budget_state(turns, 2)),
            [BudgetState::Good, BudgetState::Over(LimitKind::Turns)]
        );
        assert_eq!(
            [0, 1].map(|turns| budget_state(turns, 1)),
            [BudgetState::Good, BudgetState::Over(LimitKind::Turns)]
        );
    }

    #[test]
    fn an_answer_is_bounded_by_remaining_tokens_and_cost() {
        let usage = Usage {
            prompt: 400,
            completion: 100,
            cost_usd: Some(0.25),
            ..Usage::default()
        };
        let spent = Spent {
            usage,
            ..Spent::default()
        };
        let options = |max_tokens, max_cost| Options {
            max_tokens,
            max_cost,
            ..Options::default()
        };
        let price = Price {
            prompt: Some(100.0),
            cached: None,
            completion: Some(1000.0),
        };
        assert_eq!(left(500, &spent, &options(0, 0.0), &price), None);
        assert_eq!(
            left(500, &spent, &options(2000, 0.0), &price),
            Some((LimitKind::Tokens, 1000))
        );
        assert_eq!(
            left(500, &spent, &options(0, 0.5), &price),
            Some((LimitKind::Cost, 200))
        );
        assert_eq!(
            left(500, &spent, &options(1100, 0.5), &price),
            Some((LimitKind::Tokens, 100))
        );
        assert_eq!(
            left(500, &spent, &options(600, 0.25), &price).map(|(_, left)| left),
            Some(0)
        );
        for price in [Price::default(), Price::FREE] {
            assert_eq!(
                left(500, &spent, &options(0, 0.5), &price),
                None,
                "what nothing is known of bounds nothing"
            );
        }
    }

    #[test]
    fn no_limit_is_never_near() {
        let options = Options {
            timeout: podbay_event::Seconds::new(0),
            ..Options::default()
        };
        let spent = Spent {
            turns: 1,
            time: Duration::from_secs(1_000_000),
            usage: Usage {
                prompt: u64::MAX / 2,
                ..Usage::default()
            },
        };
        assert_eq!(budget_state(&spent, &options), BudgetState::Good);
    }
}
