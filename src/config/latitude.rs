//! What the settings file of an untrusted project may change: it can restrict, never loosen.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use podbay_event::ByteSize;
use podbay_event::Seconds;

/// In which direction an untrusted project may change a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latitude {
    /// Not at all: it would loosen, cost money, contact a server, or concerns the user's machine.
    Never,
    Lower(Unit),
    /// Lower it, where 0 means no limit.
    LowerFromNone(Unit),
    Raise(Unit),
    /// Set it to this value only.
    Switch(bool),
    /// Move it towards the first of these.
    Toward(&'static [&'static str]),
    /// Add to the list.
    Add,
    /// Add rules to the list that do not allow.
    AddStricter,
    /// Once trusted, add what runs in the sandbox.
    AddInSandbox,
}

/// How a number is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Number,
    Size,
    Time,
}

use Latitude::Add;
use Latitude::AddInSandbox;
use Latitude::AddStricter;
use Latitude::Lower;
use Latitude::LowerFromNone;
use Latitude::Never;
use Latitude::Raise;
use Latitude::Switch;
use Latitude::Toward;
use Unit::Number;
use Unit::Size;
use Unit::Time;

/// Every setting; an unlisted one may not be changed by a project.
const TABLE: &[(&str, Latitude)] = &[
    ("offline", Switch(true)),
    ("agent.max_turns", LowerFromNone(Number)),
    ("agent.timeout", LowerFromNone(Time)),
    ("agent.max_tokens", LowerFromNone(Number)),
    ("agent.max_cost", LowerFromNone(Number)),
    ("agent.wrap_up_percent", Lower(Number)),
    ("agent.last_answer", Lower(Time)),
    ("agent.show_files", Switch(false)),
    ("agent.show_entries", Lower(Number)),
    ("agent.show_depth", Lower(Number)),
    ("agent.show_commands", Switch(false)),
    ("agent.show_git", Switch(false)),
    ("agent.read_instructions", Switch(false)),
    ("agent.instruction_lines", Lower(Number)),
    ("agent.instruction_bytes", Lower(Size)),
    ("agent.misunderstandings", Lower(Number)),
    ("agent.redirect_at", LowerFromNone(Number)),
    ("agent.break_at", LowerFromNone(Number)),
    ("agent.abort_at", LowerFromNone(Number)),
    ("agent.denials_in_a_row", LowerFromNone(Number)),
    ("agent.denials_in_all", LowerFromNone(Number)),
    ("agent.deny_is_failure", Switch(true)),
    ("agent.compact_percent", Never),
    ("agent.compact_to_percent", Never),
    ("agent.context_warnings", Never),
    ("agent.keep_turns", Never),
    // The user decides which model reads the project, at what cost and where.
    ("llm.provider", Never),
    ("providers", Never),
    ("llm.price.prompt", Never),
    ("llm.price.cached", Never),
    ("llm.price.completion", Never),
    ("llm.sampling.edit.temperature", Never),
    ("llm.sampling.edit.top_p", Never),
    ("llm.sampling.edit.top_k", Never),
    ("llm.sampling.edit.min_p", Never),
    ("llm.sampling.edit.presence_penalty", Never),
    ("llm.sampling.edit.repeat_penalty", Never),
    ("llm.sampling.chat.temperature", Never),
    ("llm.sampling.chat.top_p", Never),
    ("llm.sampling.chat.top_k", Never),
    ("llm.sampling.chat.min_p", Never),
    ("llm.sampling.chat.presence_penalty", Never),
    ("llm.sampling.chat.repeat_penalty", Never),
    ("llm.endpoint", Never),
    ("llm.model", Never),
    ("llm.api", Never),
    ("llm.api_key_env", Never),
    ("llm.api_key_file", Never),
    ("llm.proxy", Never),
    ("llm.temperature", Never),
    ("llm.top_p", Never),
    ("llm.top_k", Never),
    ("llm.min_p", Never),
    ("llm.presence_penalty", Never),
    ("llm.repeat_penalty", Never),
    ("llm.stop", Never),
    ("llm.context", Never),
    ("llm.images", Never),
    ("llm.max_output_tokens", Never),
    ("llm.idle_timeout_s", Never),
    ("llm.connect_timeout_s", Never),
    ("llm.probe_timeout_s", Never),
    ("llm.request_timeout_s", Never),
    ("llm.retries", Never),
    ("llm.tool_mode", Never),
    ("sandbox.backend", Never),
    ("sandbox.socket", Never),
    ("sandbox.image", Never),
    ("sandbox.cpus", Lower(Number)),
    ("sandbox.memory", Lower(Size)),
    ("sandbox.pids", Lower(Number)),
    ("sandbox.open_files", Lower(Number)),
    ("sandbox.shm", Lower(Size)),
    ("sandbox.file_size", Lower(Size)),
    ("sandbox.disk", LowerFromNone(Size)),
    ("sandbox.disk_files", LowerFromNone(Number)),
    ("sandbox.disk_floor", Raise(Size)),
    ("sandbox.reveal", Never),
    ("sandbox.look_ms", Never),
    ("sandbox.auto_run", Add),
    ("sandbox.chat_changes", Never),
    ("sandbox.changes", Toward(&["review", "live"])),
    ("sandbox.lease", Lower(Time)),
    ("sandbox.start_timeout", Never),
    ("sandbox.grace", Lower(Time)),
    ("sandbox.restarts", Lower(Number)),
    ("sandbox.restart_window", Never),
    ("sandbox.strict", Switch(true)),
    ("network.mode", Toward(&["none", "allowlist", "open"])),
    ("network.allow", Never),
    ("network.deny", Add),
    ("network.name_servers", Never),
    ("network.proxy", Never),
    // Queries go there, with the user's key.
    ("search.engine", Never),
    ("search.url", Never),
    ("search.key_env", Never),
    ("setup.commands", AddInSandbox),
    ("setup.cache_size", Lower(Size)),
    ("setup.timeout", Lower(Time)),
    // Which servers the engine contacts.
    ("engine.host", Never),
    ("engine.cert_path", Never),
    ("engine.timeout_s", Never),
    ("engine.pull", Switch(false)),
    ("engine.pull_timeout", Never),
    ("engine.keep_guest", Never),
    ("engine.debian_mirror", Never),
    ("engine.debian_security_mirror", Never),
    ("engine.apt_options", Never),
    // The model server is shared by all projects.
    ("inference.model", Never),
    ("inference.context", Never),
    ("inference.threads", Never),
    ("inference.memory", Never),
    ("inference.image", Never),
    ("inference.program", Never),
    ("inference.publish", Never),
    ("inference.port", Never),
    ("inference.sleep_idle", Never),
    ("inference.start_timeout", Never),
    ("inference.probe_timeout", Never),
    ("inference.warm_up", Never),
    ("inference.hub", Never),
    ("inference.hub_token_env", Never),
    ("inference.catalogue", Never),
    ("inference.download_connections", Never),
    ("inference.download_timeout", Never),
    ("inference.download_slowest", Never),
    ("inference.download_retries", Never),
    ("inference.proxy", Never),
    ("tools.set", Toward(&["small", "standard", "full"])),
    ("tools.parallel", Lower(Number)),
    ("tools.bash_timeout", Lower(Time)),
    ("tools.bash_timeout_max", Lower(Time)),
    ("tools.bash_grace", Lower(Time)),
    ("tools.bash_output", Lower(Size)),
    ("tools.bash_stream", Lower(Size)),
    ("tools.bash_tail", Lower(Size)),
    ("tools.sandbox_run_memory", Lower(Size)),
    ("tools.read_lines", Lower(Number)),
    ("tools.read_bytes", Lower(Size)),
    ("tools.search_results", Lower(Number)),
    ("tools.search_results_max", Lower(Number)),
    ("tools.search_timeout", Lower(Time)),
    ("tools.list_entries", Lower(Number)),
    ("tools.result_percent", Lower(Number)),
    ("tools.artifact_threshold", Never),
    ("tools.file_timeout", Lower(Time)),
    // Commands that run by themselves, in every mode.
    ("hooks.session_start", AddInSandbox),
    ("hooks.user_prompt", AddInSandbox),
    ("hooks.pre_tool_use", AddInSandbox),
    ("hooks.post_tool_use", AddInSandbox),
    ("hooks.pre_compact", AddInSandbox),
    ("hooks.stop", AddInSandbox),
    ("hooks.timeout", Never),
    ("hooks.block_on", Toward(&["nonzero", "exit2"])),
    ("hooks.on_timeout", Toward(&["block", "pass"])),
    // A project names its servers in `.mcp.json`, which the user enables.
    ("mcp.servers", Never),
    ("mcp.start_timeout", Lower(Time)),
    ("agents.enabled", Switch(false)),
    ("agents.parallel", Lower(Number)),
    ("agents.max_depth", Lower(Number)),
    ("agents.timeout", LowerFromNone(Time)),
    ("skills.enabled", Switch(false)),
    ("skills.project", Switch(false)),
    ("memory.enabled", Switch(false)),
    ("memory.learn", Switch(false)),
    ("policy.autonomy", Never),
    ("policy.chat_autonomy", Never),
    ("policy.allow", Never),
    ("policy.ask", Add),
    ("policy.gate", Add),
    ("policy.deny", Add),
    ("policy.rules", AddStricter),
    ("policy.unasked_writes", Never),
    // Session records are evidence, and display is the user's preference.
    ("session.artifacts_max", Never),
    ("session.events_max", Never),
    ("session.keep_days", Never),
    ("session.keep_sessions", Never),
    ("ui.color", Never),
    ("ui.stream_during_tools", Never),
    ("ui.keys", Never),
    ("ui.report", Never),
    ("ui.show_thinking", Never),
];

impl Latitude {
    /// Returns what a project may do to a setting.
    pub fn of(key: &str) -> Self {
        Self::listed(key).unwrap_or(Never)
    }

    /// Returns the table's entry; `None` if there is none.
    pub fn listed(key: &str) -> Option<Self> {
        TABLE
            .iter()
            .find(|(known, _)| *known == key)
            .map(|(_, latitude)| *latitude)
    }

    /// Returns whether a project may replace `now` by `new`.
    pub(super) fn lets(self, now: &Value, new: &Value) -> bool {
        match self {
            Never | AddInSandbox => false,
            Add => true,
            AddStricter => new.as_array().is_some_and(|rules| {
                let decides = |rule: &Value| {
                    rule.get("decision")
                        .and_then(Value::as_str)
                        .is_some_and(|decision| decision != "allow")
                };
                rules.iter().all(decides)
            }),
            Switch(to) => new.as_bool() == Some(to) || now == new,
            Lower(unit) => compare(unit, now, new, |now, new| new <= now),
            Raise(unit) => compare(unit, now, new, |now, new| new >= now),
            LowerFromNone(unit) => compare(unit, now, new, |now, new| {
                now == 0.0 || (new > 0.0 && new <= now)
            }),
            Toward(order) => {
                let place =
                    |value: &Value| order.iter().position(|word| value.as_str() == Some(word));
                match (place(now), place(new)) {
                    (Some(now), Some(new)) => new <= now,
                    // What nobody has said may be anything, and the first is the least.
                    (None, new) => now.is_null() && new == Some(0),
                    (Some(_), None) => false,
                }
            }
        }
    }
}

/// Compares two values; a value that is no number never fits.
fn compare(unit: Unit, now: &Value, new: &Value, fits: impl Fn(f64, f64) -> bool) -> bool {
    matches!((number(unit, now), number(unit, new)), (Some(now), Some(new)) if fits(now, new))
}

fn number(unit: Unit, value: &Value) -> Option<f64> {
    match (value, unit) {
        (Value::Number(number), _) => number.as_f64(),
        (Value::String(text), Size) => ByteSize::from_str(text)
            .ok()
            .map(|size| size.bytes() as f64),
        (Value::String(text), Time) => Seconds::from_str(text).ok().map(|time| time.get() as f64),
        _ => None,
    }
}

impl fmt::Display for Latitude {
    /// Completes the sentence "a project may ...".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Never => f.write_str("not set it"),
            Lower(_) | LowerFromNone(_) => f.write_str("only lower it"),
            Raise(_) => f.write_str("only raise it"),
            Switch(to) => write!(f, "only set it to {to}"),
            Toward([only]) => write!(f, "only set it to {only}"),
            Toward(order) => write!(f, "only choose less, in the order {}", order.join(", ")),
            Add => f.write_str("add to it"),
            AddStricter => f.write_str("add to it what does not allow"),
            AddInSandbox => {
                f.write_str("only add to it what runs in the sandbox, and only once it is trusted")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(latitude: Latitude, now: &Value, may: &[Value], may_not: &[Value]) {
        for new in may {
            assert!(latitude.lets(now, new), "{latitude:?}: {now} to {new}");
        }
        for new in may_not {
            assert!(!latitude.lets(now, new), "{latitude:?}: {now} to {new}");
        }
    }

    #[test]
    fn a_project_can_move_a_setting_in_one_direction_only() {
        check(
            Never,
            &json!("a"),
            &[],
            &[json!("a"), json!("b"), json!(null)],
        );
        check(
            Lower(Number),
            &json!(8),
            &[json!(8), json!(2), json!(0.5)],
            &[json!(9), json!("2"), json!(null), json!(true)],
        );
        check(
            Lower(Size),
            &json!("2GiB"),
            &[json!("2g"), json!("512m"), json!(1024)],
            &[json!("3GiB"), json!(4_000_000_000_u64), json!("x")],
        );
        check(
            Lower(Time),
            &json!("2m"),
            &[json!("90s"), json!("2m"), json!(5)],
            &[json!("3m"), json!("1h"), json!(121)],
        );
        check(
            LowerFromNone(Time),
            &json!("1h"),
            &[json!("5m")],
            &[json!(0), json!("0s"), json!("2h")],
        );
        check(
            LowerFromNone(Number),
            &json!(0),
            &[json!(0), json!(1_000_000)],
            &[json!("x")],
        );
        check(
            Raise(Size),
            &json!("1GiB"),
            &[json!("2GiB")],
            &[json!("1m"), json!(0)],
        );
        check(
            Switch(true),
            &json!(false),
            &[json!(true), json!(false)],
            &[json!("true")],
        );
        check(Switch(true), &json!(true), &[json!(true)], &[json!(false)]);
        check(
            Toward(&["none", "some", "all"]),
            &json!("some"),
            &[json!("none"), json!("some")],
            &[json!("all"), json!("other")],
        );
        check(
            Toward(&["none", "some", "all"]),
            &json!(null),
            &[json!("none")],
            &[json!("some"), json!("other"), json!(null)],
        );
        let rule = |decision: &str| json!({"decision": decision, "rule": "bash"});
        check(
            AddStricter,
            &json!([]),
            &[json!([]), json!([rule("deny"), rule("gate"), rule("ask")])],
            &[
                json!([rule("allow")]),
                json!([rule("deny"), rule("allow")]),
                json!([{"rule": "bash"}]),
                json!("x"),
                json!(["bash"]),
            ],
        );
        check(
            Toward(&["none"]),
            &json!("open"),
            &[],
            &[json!("none"), json!("open")],
        );
    }

    #[test]
    fn no_setting_is_listed_twice() {
        let mut keys: Vec<&str> = TABLE.iter().map(|(key, _)| *key).collect();
        keys.sort_unstable();
        let all = keys.len();
        keys.dedup();
        assert_eq!(keys.len(), all);
    }
}
