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

/// Kinds of attempts that are told apart; a command can make up names without end.
const KINDS: usize = 1000;

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
    counts: BTreeMap<(String, u16, bool), u64>,
    denied: VecDeque<(u64, DeniedHost)>,
    n_denied: u64,
}

impl Attempts {
    /// Takes one that is over.
    pub(super) fn take(&self, attempt: EgressAttempt, sink: &Sink) {
        let times = {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if !attempt.allowed {
                state.deny(&attempt);
            }
            state.count(&attempt)
        };
        if times <= ALL_TOLD || times.is_power_of_two() {
            sink(Kind::NetworkAttempted(NetworkAttempt::new(attempt, times)).into());
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
    fn count(&mut self, attempt: &EgressAttempt) -> u64 {
        let key = (attempt.host.clone(), attempt.port, attempt.allowed);
        let is_full = self.counts.len() >= KINDS && !self.counts.contains_key(&key);
        let key = if is_full {
            (String::new(), 0, attempt.allowed)
        } else {
            key
        };
        let count = self.counts.entry(key).or_default();
        *count += 1;
        *count
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
        assert!(told.len() < 12 + KINDS + 20, "{}", told.len());
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
