//! A model that is denied again and again: it is told to stop trying, and so is the person.

use super::Agent;
use super::Options;
use super::summary::NOTE;
use podbay_event::CallStatus;
use podbay_event::Kind;

/// The denials of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Denials {
    in_a_row: u32,
    in_all: u32,
}

impl Denials {
    /// Takes how a call ended; returns whether that is once too often.
    fn take(&mut self, status: CallStatus, options: &Options) -> bool {
        match status {
            CallStatus::Denied => {
                self.in_a_row = self.in_a_row.saturating_add(1);
                self.in_all = self.in_all.saturating_add(1);
            }
            // What somebody stopped says nothing of what is allowed.
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
    /// Counts the denials among the calls of an answer, and says so where there are too many.
    /// Nobody is waited for.
    pub(super) fn escalate(&mut self, statuses: &[CallStatus]) {
        // As it was then: a call that was allowed may have come behind it.
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
            0 | 1 => format!("{in_all} calls were denied by now"),
            n => format!("{n} calls in a row were denied, {in_all} in all"),
        };
        self.emit(Kind::DenialsEscalated { in_a_row, in_all });
        let message =
            format!("{count}: the agent was told to stop trying and to say what it needs");
        self.emit(Kind::Warning { message });
        self.note(&format!(
            "{NOTE} {count}. Do not look for another way to the same end. Go on with what is allowed; if the task cannot be done so, \
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
    fn three_in_a_row_or_twenty_in_all_are_too_many() {
        use CallStatus::Cancelled;
        use CallStatus::Denied;
        use CallStatus::Ok;
        check([Denied; 7], &[3, 6]);
        check([Denied, Denied, Ok, Denied, Denied, Ok], &[]);
        check([Denied, Denied, Cancelled, Denied], &[4]);
        check([Denied, Ok].repeat(21), &[39]);
    }

    #[test]
    fn nothing_is_never_too_many() {
        let options = Options {
            denials_in_a_row: 0,
            denials_in_all: 0,
            ..Options::default()
        };
        let mut denials = Denials::default();
        assert!((0..100).all(|_| !denials.take(CallStatus::Denied, &options)));
    }
}
