//! What a task and all the agents that it started have used, together: a budget that the user set
//! holds for their sum.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::time::Duration;
use std::time::Instant;

use super::Options;
use super::budget::BudgetState;
use super::budget::Spent;
use super::budget::budget_state;
use podbay_event::Usage;

/// The accounts of one session: clones share them.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    accounts: Arc<Mutex<Accounts>>,
}

#[derive(Debug, Default)]
struct Accounts {
    /// The limits of the user's task, and when it began.
    task: Option<(Options, Instant)>,
    spent: BTreeMap<u64, Spent>,
    n_opened: u64,
}

impl Ledger {
    fn accounts(&self) -> MutexGuard<'_, Accounts> {
        self.accounts
            .lock()
            .expect("nothing panics while it holds this lock")
    }

    /// Returns how much time the user's task has left; `None`: it has no limit, or there is none.
    pub fn time_left(&self) -> Option<Duration> {
        let accounts = self.accounts();
        let (limits, begun) = accounts.task.as_ref()?;
        let time = limits.timeout.duration();
        (!time.is_zero()).then(|| time.saturating_sub(begun.elapsed()))
    }

    /// Opens an account for an agent that the task starts.
    pub(super) fn open(&self) -> Account {
        let mut accounts = self.accounts();
        accounts.n_opened += 1;
        Account {
            ledger: self.clone(),
            id: accounts.n_opened,
        }
    }

    /// Returns the account of the agent that the user talks to.
    pub(super) fn main(&self) -> Account {
        Account {
            ledger: self.clone(),
            id: MAIN,
        }
    }
}

const MAIN: u64 = 0;

/// One agent's part of a ledger.
#[derive(Debug)]
pub(super) struct Account {
    ledger: Ledger,
    id: u64,
}

/// What counts against which limits.
pub(super) struct Bill {
    pub(super) state: BudgetState,
    pub(super) spent: Spent,
    pub(super) limits: Options,
}

impl Account {
    fn is_main(&self) -> bool {
        self.id == MAIN
    }

    /// Begins a task of the user's: what earlier ones used no longer counts.
    pub(super) fn begin(&self, limits: Options, begun: Instant) {
        if self.is_main() {
            let mut accounts = self.ledger.accounts();
            accounts.task = Some((limits, begun));
            accounts.spent.clear();
        }
    }

    /// Says what this agent has used so far.
    pub(super) fn publish(&self, spent: Spent) {
        self.ledger.accounts().spent.insert(self.id, spent);
    }

    /// Returns what all other agents of the task have used.
    pub(super) fn others(&self) -> Spent {
        let accounts = self.ledger.accounts();
        let others = accounts.spent.iter().filter(|(id, _)| **id != self.id);
        others.fold(Spent::default(), |sum, (_, spent)| sum.and(spent))
    }

    /// Returns what an agent answers for: the one that the user talks to also for all others.
    pub(super) fn total(&self, own: Usage) -> Usage {
        let mut usage = own;
        if self.is_main() {
            usage += self.others().usage;
        }
        usage
    }

    /// Returns what this agent and all others used, and the limits that hold for the sum.
    pub(super) fn shared(&self, own: &Spent, limits: &Options) -> (Spent, Options) {
        let spent = own.and(&self.others());
        if self.is_main() {
            return (spent, limits.clone());
        }
        match &self.ledger.accounts().task {
            Some((limits, begun)) => {
                let time = begun.elapsed();
                (Spent { time, ..spent }, limits.clone())
            }
            None => (spent, limits.clone()),
        }
    }

    /// Compares with the limits of this agent, and with those of the user's task.
    pub(super) fn bill(&self, own: &Spent, limits: &Options) -> Bill {
        let (spent, shared) = self.shared(own, limits);
        let all = Bill {
            state: budget_state(&spent, &shared),
            spent,
            limits: shared,
        };
        if self.is_main() {
            return all;
        }
        let alone = Bill {
            state: budget_state(own, limits),
            spent: *own,
            limits: limits.clone(),
        };
        if rank(alone.state) >= rank(all.state) {
            alone
        } else {
            all
        }
    }
}

fn rank(state: BudgetState) -> u8 {
    match state {
        BudgetState::Good => 0,
        BudgetState::Near(_) => 1,
        BudgetState::Over(_) => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podbay_event::LimitKind;
    use podbay_event::Seconds;

    fn spent(turns: u32, cost: f64) -> Spent {
        Spent {
            turns,
            usage: Usage {
                cost_usd: Some(cost),
                ..Usage::default()
            },
            ..Spent::default()
        }
    }

    fn limits(max_turns: u32, max_cost: f64) -> Options {
        Options {
            max_turns,
            max_cost,
            ..Options::default()
        }
    }

    #[test]
    fn the_sum_counts_against_the_limits_of_the_task() {
        let ledger = Ledger::default();
        let main = ledger.main();
        main.begin(limits(100, 1.0), Instant::now());
        main.publish(spent(1, 0.3));
        let (first, second) = (ledger.open(), ledger.open());
        let own = limits(15, 1.0);
        first.publish(spent(3, 0.3));
        assert_eq!(second.bill(&spent(2, 0.1), &own).state, BudgetState::Good);
        second.publish(spent(3, 0.5));
        for account in [&first, &second] {
            let bill = account.bill(&spent(3, 0.4), &own);
            assert_eq!(bill.state, BudgetState::Over(LimitKind::Cost));
        }
        // The one that asked pays for them too.
        let state = main.bill(&spent(1, 0.3), &limits(100, 1.0)).state;
        assert_eq!(state, BudgetState::Over(LimitKind::Cost));
        assert_eq!(main.others().turns, 6);
        main.begin(limits(100, 1.0), Instant::now());
        assert_eq!(main.others(), Spent::default());
    }

    #[test]
    fn an_agent_has_fewer_requests_than_the_task() {
        let ledger = Ledger::default();
        ledger.main().begin(limits(100, 0.0), Instant::now());
        let account = ledger.open();
        let state = account.bill(&spent(14, 0.0), &limits(15, 0.0)).state;
        assert_eq!(state, BudgetState::Over(LimitKind::Turns));
        ledger.main().publish(spent(99, 0.0));
        let state = account.bill(&spent(0, 0.0), &limits(15, 0.0)).state;
        assert_eq!(state, BudgetState::Over(LimitKind::Turns));
    }

    #[test]
    fn time_is_that_of_the_task() {
        let ledger = Ledger::default();
        assert_eq!(ledger.time_left(), None);
        let begun = Instant::now().checked_sub(Duration::from_secs(60));
        let options = Options {
            timeout: Seconds::new(90),
            ..Options::default()
        };
        ledger.main().begin(options, begun.expect("a past"));
        let left = ledger.time_left().expect("a limit");
        assert!(left <= Duration::from_secs(30) && left > Duration::from_secs(20));
    }
}
