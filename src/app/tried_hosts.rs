//! The hosts that a run tried to reach, for its report.

use podbay_event::NetworkAttempt;
use serde::Serialize;

/// Hosts of each kind that are named; a command can make up names without end.
const MOST: usize = 100;

/// Hosts that are named in a line for people.
const MOST_SHOWN: usize = 5;

/// The hosts that a run tried to reach, each once, as `HOST:PORT`, or as `HOST` where no port is
/// known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TriedHosts {
    pub reached: Vec<String>,
    /// Allowed, and not reached.
    pub failed: Vec<String>,
    pub denied: Vec<String>,
    /// Whether there are more than are named.
    pub more: bool,
}

impl TriedHosts {
    pub(super) fn take(&mut self, attempt: &NetworkAttempt) {
        let list = match (attempt.allowed, &attempt.failure) {
            (true, None) => &mut self.reached,
            (true, Some(_)) => &mut self.failed,
            (false, _) => &mut self.denied,
        };
        let place = attempt.place();
        if list.contains(&place) {
            return;
        }
        if list.len() < MOST {
            list.push(place);
        } else {
            self.more = true;
        }
    }

    /// Says it in a line.
    pub fn words(&self) -> String {
        let kinds = [
            ("reached", &self.reached),
            ("failed", &self.failed),
            ("denied", &self.denied),
        ];
        let parts: Vec<String> = kinds
            .into_iter()
            .filter(|(_, hosts)| !hosts.is_empty())
            .map(|(word, hosts)| {
                let named: Vec<&str> = hosts.iter().take(MOST_SHOWN).map(String::as_str).collect();
                let more = match hosts.len().saturating_sub(MOST_SHOWN) {
                    0 => String::new(),
                    _ if self.more => " and more".to_owned(),
                    n_more => format!(" and {n_more} more"),
                };
                format!("{word} {}{more}", named.join(", "))
            })
            .collect();
        parts.join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(host: &str, port: u16, allowed: bool, failure: Option<&str>) -> NetworkAttempt {
        let attempt = serde_json::json!({
            "host": host, "port": port, "access": "tls", "allowed": allowed, "because": "",
            "failure": failure, "bytes_sent": 0, "bytes_received": 0, "duration_ms": 0, "times": 1,
        });
        serde_json::from_value(attempt).expect("an attempt")
    }

    #[test]
    fn a_host_is_named_once_by_what_came_of_it() {
        let mut tried = TriedHosts::default();
        for _ in 0..3 {
            tried.take(&attempt("a.example", 443, true, None));
            tried.take(&attempt("b.example", 443, true, Some("it did not answer")));
            tried.take(&attempt("c.example", 0, false, None));
        }
        assert_eq!(
            tried.words(),
            "reached a.example:443; failed b.example:443; denied c.example"
        );
        assert_eq!(TriedHosts::default().words(), "");
    }

    #[test]
    fn names_without_end_have_a_bound() {
        let mut tried = TriedHosts::default();
        for n in 0..10_000 {
            tried.take(&attempt(&format!("{n}.example"), 443, false, None));
        }
        assert!(tried.denied.len() == MOST && tried.more);
        assert!(
            tried.words().ends_with("4.example:443 and more"),
            "{}",
            tried.words()
        );
    }
}
