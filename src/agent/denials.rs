//! Detects repeated denials, and tells both the model and the user to stop trying.

use super::Agent;
use super::Options;
use super::summary::NOTE;
use podbay_event::CallStatus;
use podbay_event::Kind;

/// Counts the denials of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Denials {
    in_a_row: u32,
    in_all: u32,
}

impl Denials {
    /// Records how a call ended; returns whether a limit of denials was reached.
    fn take(&mut self, status: CallStatus, options: &Options) -> bool {
        match status {
            CallStatus::Denied => {
                self.in_a_row = self.in_a_row.saturating_add(1);
                self.in_all = self.in_all.saturating_add(1);
            }
            // Cancelled calls say nothing about permissions.
            CallStatus::Cancelled => return false,
            _ => {
                self.in_a_row = 0;
                return false;
            }
        }
        let is_due = |n: u32, each: u32| each > 0 && n.is_multiple_of(each);
        is_due(self.in_a_row, options.denials_in_a_row)
            || is_due(self.in_all, options.denials_in_all)
    }
}

impl Agent {
    /// Counts the denials among the calls of an answer, and emits a notice if there are too many.
    /// Nothing waits for an answer to it.
    pub(super) fn escalate(&mut self, statuses: &[CallStatus]) {
        // The count at that moment: an allowed call may have followed.
        let mut due = None;
        for status in statuses {
            if self.denials.take(*status, &self.options) {
                due = Some(self.denials);
            }
        }
        let Some(Denials { in_a_row, in_all }) = due else {
            return;
        };
        let count = match in_a_row {
            0 | 1 => format!("{in_all} calls were denied so far"),
            n => format!("{n} calls in a row were denied, {in_all} in all"),
        };
        self.emit(Kind::DenialsEscalated { in_a_row, in_all });
        let message =
            format!("{count}: the agent was told to stop trying and to say what it needs");
        self.emit(Kind::Warning { message });
        self.note(&format!(
            "{NOTE} {count}. Do not look for another way to the same end. Continue with what is allowed; if the task cannot be done so, \
             end your answer and say which permission you need, and what for."
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(statuses: impl IntoIterator<Item = CallStatus>, due: &[usize]) {
        let mut denials = Denials::default();
        let options = Options::default();
        let found: Vec<usize> = statuses
            .into_iter()
            .enumerate()
            .filter(|(_, status)| denials.take(*status, &options))
            .map(|(n, _)| n + 1)
            .collect();
        assert_eq!(found, due);
    }

    #[test]
    fn three_denials_in_a_row_or_twenty_in_all_are_too_many() {
        use CallStatus::Cancelled;
        use CallStatus::Denied;
        use CallStatus::Ok;
        check([Denied; 7], &[3, 6]);
        check([Denied, Denied, Ok, Denied, Denied, Ok], &[]);
        check([Denied, Denied, Cancelled, Denied], &[4]);
        check([Denied, Ok].repeat(21), &[39]);
    }

    #[test]
    fn zero_disables_the_limit_of_denials() {
        let options = Options {
            denials_in_a_row: 0,
            denials_in_all: 0,
            ..Options::default()
        };
        let mut denials = Denials::default();
        assert!((0..100).all(|_| !denials.take(CallStatus::Denied, &options)));
    }
}
