//! What sessions took, added up: over all of them from `metrics.jsonl`, of one from its events.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::path::Path;

use jiff::Timestamp;
use serde::Serialize;

use podbay_event::Event;
use podbay_event::ExecutionReport;
use podbay_event::SessionId;
use podbay_event::Usage;

use super::Error;
use super::State;
use super::log_file;
use super::metrics::RunMetrics;
use super::metrics::Tally;

/// A longer line is none of ours, in bytes.
const LONGEST_LINE: u64 = 1 << 20;

/// What sessions took.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Stats {
    /// Without those of agents.
    pub sessions: u64,
    /// Runs and chats that have ended, without those of agents.
    pub runs: u64,
    /// When the first of them ended; of one session, when it began.
    pub since: Option<Timestamp>,
    pub requests: u64,
    pub tool_calls: u64,
    pub denied: u64,
    /// How often each tool was executed.
    pub tools: BTreeMap<String, u64>,
    pub usage: Usage,
    /// How long the model's answers took together.
    pub model_ms: u64,
    /// How long runs took, and chats were open.
    pub duration_ms: u64,
    /// Lines that could not be read.
    pub unread: u64,
}

impl Stats {
    /// Adds up what has ended, of one project or of all.
    pub fn of_all(state: &State, project: Option<&str>) -> Result<Self, Error> {
        let mut adding = Adding::default();
        let path = state.metrics();
        let mut aside: OsString = path.clone().into_os_string();
        aside.push(".1");
        for path in [Path::new(&aside), &path] {
            let file = match log_file::open_read(path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(Error::io("open", path)(error)),
            };
            adding
                .read(file, project)
                .map_err(Error::io("read", path))?;
        }
        Ok(adding.stats)
    }

    /// Adds up what one session took, from all of its events.
    pub fn of_session(events: &[Event]) -> Self {
        let mut tally = Tally::default();
        for event in events {
            tally.take(&event.kind);
        }
        let report = ExecutionReport::of(events);
        Self {
            sessions: 1,
            runs: 0,
            since: events.first().map(|event| event.at),
            requests: tally.n_requests,
            tool_calls: tally.n_calls,
            denied: tally.n_denied,
            tools: tally.tools,
            usage: report.usage,
            model_ms: tally.model_ms,
            duration_ms: report.duration_ms,
            unread: 0,
        }
    }
}

#[derive(Default)]
struct Adding {
    stats: Stats,
    sessions: BTreeSet<SessionId>,
}

impl Adding {
    fn read(&mut self, file: File, project: Option<&str>) -> io::Result<()> {
        let mut file = BufReader::new(file);
        let mut line = Vec::new();
        loop {
            line.clear();
            let n = file
                .by_ref()
                .take(LONGEST_LINE)
                .read_until(b'\n', &mut line)?;
            if n == 0 {
                return Ok(());
            }
            match serde_json::from_slice::<RunMetrics>(&line) {
                Ok(run) if project.is_none_or(|project| run.project == project) => self.add(run),
                Ok(_) => {}
                Err(_) => self.stats.unread += u64::from(!line.trim_ascii().is_empty()),
            }
        }
    }

    fn add(&mut self, run: RunMetrics) {
        let stats = &mut self.stats;
        stats.requests = stats.requests.saturating_add(run.requests);
        stats.tool_calls = stats.tool_calls.saturating_add(u64::from(run.tool_calls));
        stats.denied = stats.denied.saturating_add(run.denied);
        stats.model_ms = stats.model_ms.saturating_add(run.model_ms);
        for (tool, n) in run.tools {
            let sum = stats.tools.entry(tool).or_default();
            *sum = sum.saturating_add(n);
        }
        // The session that started an agent has its tokens, its cost and its time.
        if run.parent.is_none() {
            stats.runs += 1;
            stats.usage += run.usage;
            stats.duration_ms = stats.duration_ms.saturating_add(run.duration_ms);
            stats.since = Some(stats.since.map_or(run.at, |since| since.min(run.at)));
            self.sessions.insert(run.session);
            stats.sessions = self.sessions.len() as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::Value;
    use serde_json::json;

    use super::*;

    fn line(session: &str, project: &str, more: &Value) -> String {
        let mut line = json!({
            "at": "2026-11-30T10:00:00Z", "session": session, "project": project, "model": "m",
            "status": "completed", "exit_code": 0, "turns": 2, "requests": 2, "tool_calls": 3,
            "denied": 1, "usage": {"prompt": 100, "cached": 40, "completion": 10, "cost_usd": 0.5},
            "sandbox_ms": 5, "model_ms": 1000, "duration_ms": 4000,
        });
        for (key, value) in more.as_object().expect("an object") {
            line[key] = value.clone();
        }
        format!("{line}\n")
    }

    #[test]
    fn runs_are_added_up_and_an_agents_tokens_count_once() {
        let temp = tempfile::tempdir().expect("a folder");
        let state = State::open(temp.path()).expect("opens");
        assert_eq!(Stats::of_all(&state, None).expect("none"), Stats::default());
        let aside = temp.path().join("metrics.jsonl.1");
        fs::write(
            aside,
            line("aaaa", "/a", &json!({"tools": {"bash": 2, "grep": 1}})),
        )
        .expect("ours");
        let now = [
            line(
                "aaaa",
                "/a",
                &json!({"at": "2026-11-29T10:00:00Z", "tools": {"bash": 1}}),
            ),
            "torn {\"at\"\n".to_owned(),
            line("cccc", "/a", &json!({"parent": "aaaa"})),
            line("bbbb", "/b", &json!({})),
        ];
        fs::write(temp.path().join("metrics.jsonl"), now.concat()).expect("ours");
        let here = Stats::of_all(&state, Some("/a")).expect("reads");
        let expected = Stats {
            sessions: 1,
            runs: 2,
            since: Some("2026-11-29T10:00:00Z".parse().expect("a time")),
            requests: 6,
            tool_calls: 9,
            denied: 3,
            tools: [("bash".to_owned(), 3), ("grep".to_owned(), 1)].into(),
            usage: Usage {
                prompt: 200,
                cached: 80,
                completion: 20,
                cost_usd: Some(1.0),
            },
            model_ms: 3000,
            duration_ms: 8000,
            unread: 1,
        };
        assert_eq!(here, expected);
        let all = Stats::of_all(&state, None).expect("reads");
        assert_eq!((all.sessions, all.runs, all.requests), (2, 3, 8));
    }
}
