//! What was tried of the network: told as events, and kept for whoever asks what a command was
//! denied.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::PoisonError;

use podbay_event::Kind;
use podbay_event::NetworkAttempt;
use podbay_event::Sink;
use podbay_wire::EgressAccess;
use podbay_wire::EgressAttempt;

/// Of attempts that are alike so many are told; then each that doubles their number.
const ALL_TOLD: u64 = 5;

/// Places that are told apart, of those that were allowed and of those that were denied; a command
/// can make up names without end.
const PLACES: usize = 1000;

/// Stands for all places beyond that.
const MORE: &str = "*";

/// Denials that are kept for the calls under way.
const KEPT: usize = 256;

/// A host that a sandbox was denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeniedHost {
    pub host: String,
    pub port: u16,
    pub because: String,
    /// Whether an address of its name was asked for, and nothing is known of a port.
    pub by_name: bool,
}

/// How far the attempts of a session have been read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark(u64);

#[derive(Default)]
pub(super) struct Attempts(Mutex<State>);

#[derive(Default)]
struct State {
    allowed: Tallies,
    refused: Tallies,
    denied: VecDeque<(u64, DeniedHost)>,
    n_denied: u64,
}

/// What is counted of each place. Those that a command was denied take no room from those that it
/// reached.
type Tallies = BTreeMap<(String, u16), Tally>;

#[derive(Default)]
struct Tally {
    times: u64,
    /// The last that was not told, with the bytes of all that were not.
    untold: Option<EgressAttempt>,
}

impl Attempts {
    /// Takes one that is over.
    pub(super) fn take(&self, attempt: EgressAttempt, sink: &Sink) {
        let told = {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if !attempt.allowed {
                state.deny(&attempt);
            }
            state.count(attempt)
        };
        if let Some(told) = told {
            sink(Kind::NetworkAttempted(told).into());
        }
    }

    /// Tells what was only counted so far, a place at a time.
    pub(super) fn tell_rest(&self, sink: &Sink) {
        let rest: Vec<NetworkAttempt> = {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let State {
                allowed, refused, ..
            } = &mut *state;
            let tallies = allowed.values_mut().chain(refused.values_mut());
            tallies.filter_map(Tally::tell).collect()
        };
        for told in rest {
            sink(Kind::NetworkAttempted(told).into());
        }
    }

    pub(super) fn mark(&self) -> Mark {
        Mark(
            self.0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .n_denied,
        )
    }

    /// Returns the hosts that were denied since then, each once; one of which a port is known, by
    /// that.
    pub(super) fn denied_since(&self, mark: Mark) -> Vec<DeniedHost> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let since = || {
            let denied = state.denied.iter().filter(|(n, _)| *n > mark.0);
            denied.map(|(_, denied)| denied)
        };
        let mut found: Vec<DeniedHost> = Vec::new();
        for denied in since() {
            let is_known =
                |known: &DeniedHost| (&known.host, known.port) == (&denied.host, denied.port);
            let has_port = |other: &DeniedHost| !other.by_name && other.host == denied.host;
            let is_told_better = denied.by_name && since().any(has_port);
            if !is_told_better && !found.iter().any(is_known) {
                found.push(denied.clone());
            }
        }
        found
    }
}

impl State {
    /// Returns what is to be told now.
    fn count(&mut self, mut attempt: EgressAttempt) -> Option<NetworkAttempt> {
        let tallies = if attempt.allowed {
            &mut self.allowed
        } else {
            &mut self.refused
        };
        let place = (attempt.host.clone(), attempt.port);
        if tallies.len() >= PLACES && !tallies.contains_key(&place) {
            (attempt.host, attempt.port) = (MORE.to_owned(), 0);
        }
        let place = (attempt.host.clone(), attempt.port);
        tallies.entry(place).or_default().add(attempt)
    }

    fn deny(&mut self, attempt: &EgressAttempt) {
        self.n_denied += 1;
        if self.denied.len() == KEPT {
            self.denied.pop_front();
        }
        let denied = DeniedHost {
            host: attempt.host.clone(),
            port: attempt.port,
            because: attempt.because.clone(),
            by_name: attempt.access == EgressAccess::Name,
        };
        self.denied.push_back((self.n_denied, denied));
    }
}

impl Tally {
    fn add(&mut self, mut attempt: EgressAttempt) -> Option<NetworkAttempt> {
        self.times += 1;
        if let Some(before) = &self.untold {
            attempt.bytes_sent = attempt.bytes_sent.saturating_add(before.bytes_sent);
            attempt.bytes_received = attempt.bytes_received.saturating_add(before.bytes_received);
        }
        self.untold = Some(attempt);
        if self.times <= ALL_TOLD || self.times.is_power_of_two() {
            self.tell()
        } else {
            None
        }
    }

    fn tell(&mut self) -> Option<NetworkAttempt> {
        let untold = self.untold.take()?;
        Some(NetworkAttempt::new(untold, self.times))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn attempt(host: &str, allowed: bool) -> EgressAttempt {
        EgressAttempt {
            host: host.to_owned(),
            port: 443,
            access: EgressAccess::Tls,
            allowed,
            because: "no rule allows this host".to_owned(),
            failure: None,
            bytes_sent: 0,
            bytes_received: 0,
            milliseconds: 1,
            program: None,
        }
    }

    #[test]
    fn a_flood_of_attempts_is_told_by_its_number() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let sink: Sink = {
            let told = Arc::clone(&told);
            Arc::new(move |event| told.lock().expect("no panic").push(event.kind))
        };
        let attempts = Attempts::default();
        for _ in 0..1000 {
            attempts.take(attempt("a.example", false), &sink);
        }
        for n in 0..5000 {
            attempts.take(attempt(&format!("{n}.example"), false), &sink);
        }
        let told = told.lock().expect("no panic");
        let times: Vec<u64> = told
            .iter()
            .map(|kind| match kind {
                Kind::NetworkAttempted(attempt) => attempt.times,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(times[..12], [1, 2, 3, 4, 5, 8, 16, 32, 64, 128, 256, 512]);
        assert!(told.len() < 12 + PLACES + 20, "{}", told.len());
    }

    fn kept() -> (Sink, Arc<Mutex<Vec<NetworkAttempt>>>) {
        let told = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&told);
        let sink: Sink = Arc::new(move |event| match event.kind {
            Kind::NetworkAttempted(attempt) => kept.lock().expect("no panic").push(attempt),
            other => panic!("{other:?}"),
        });
        (sink, told)
    }

    #[test]
    fn a_flood_of_denials_hides_no_host_that_was_reached() {
        let (sink, told) = kept();
        let attempts = Attempts::default();
        for n in 0..5000 {
            attempts.take(attempt(&format!("{n}.example"), false), &sink);
        }
        attempts.take(attempt("reached.example", true), &sink);
        let last = told.lock().expect("no panic").pop().expect("told");
        assert_eq!((last.host.as_str(), last.times), ("reached.example", 1));
        for n in 0..5000 {
            attempts.take(attempt(&format!("{n}.example"), true), &sink);
        }
        attempts.tell_rest(&sink);
        let told = told.lock().expect("no panic");
        let more = told.iter().rfind(|one| one.allowed && one.host == MORE);
        assert_eq!(more.expect("the others").times, 5001 - PLACES as u64);
    }

    #[test]
    fn the_bytes_of_all_attempts_are_told() {
        let (sink, told) = kept();
        let attempts = Attempts::default();
        for n in 0..100 {
            let attempt = EgressAttempt {
                bytes_sent: n,
                ..attempt("a.example", true)
            };
            attempts.take(attempt, &sink);
        }
        attempts.tell_rest(&sink);
        attempts.tell_rest(&sink);
        let told = told.lock().expect("no panic");
        let sent: u64 = told.iter().map(|one| one.bytes_sent).sum();
        assert_eq!((sent, told.last().map(|one| one.times)), (4950, Some(100)));
        assert_eq!(told.len(), 5 + 4 + 1, "8, 16, 32, 64, and the rest");
    }

    #[test]
    fn what_was_denied_since_a_mark_is_each_host_once() {
        let sink: Sink = Arc::new(|_| {});
        let attempts = Attempts::default();
        attempts.take(attempt("before.example", false), &sink);
        let mark = attempts.mark();
        assert!(attempts.denied_since(mark).is_empty());
        for host in ["a.example", "b.example", "a.example"] {
            attempts.take(attempt(host, false), &sink);
        }
        attempts.take(attempt("allowed.example", true), &sink);
        // A program that asks for the address first, and then another way.
        for host in ["a.example", "c.example"] {
            let by_name = EgressAttempt {
                port: 0,
                access: EgressAccess::Name,
                ..attempt(host, false)
            };
            attempts.take(by_name, &sink);
        }
        let hosts: Vec<String> = attempts
            .denied_since(mark)
            .into_iter()
            .map(|denied| format!("{}:{}", denied.host, denied.port))
            .collect();
        assert_eq!(hosts, ["a.example:443", "b.example:443", "c.example:0"]);
    }
}
