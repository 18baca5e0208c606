//! How a call and its end look in a line or a few.

use std::fmt::Write as _;

use serde_json::Value;

use podbay_event::CallStatus;
use podbay_event::is_same_name;

use super::Paint;
use super::look_alike::unmask;
use super::padding;
use super::text;

/// Lines of a command that are shown before the rest is only counted.
const LINES_MAX: usize = 8;
const LINE_CHARS: usize = 160;

/// Longest line of a warning.
const WARNING_CHARS: usize = 1000;

/// Lines at the end of a result that say how its call ended.
const ENDING_LINES: usize = 4;
/// What says most about a call, whatever the tool: the first of these that its arguments have.
const TELLING: [&str; 13] = [
    "command",
    "path",
    "file_path",
    "pattern",
    "query",
    "url",
    "task",
    "plan",
    "prompt",
    "question",
    "name",
    "message",
    "description",
];

/// Returns what was called, in words that fit a line or a few: `bash cargo test`. It looks as it
/// does in the question about it.
pub(super) fn head(name: &str, arguments: &str) -> String {
    let mut head = padding::line(&unmask(name));
    let shown = if name == "spawn_agent" {
        agent(arguments)
    } else {
        telling(arguments)
    };
    if !shown.is_empty() {
        head.push(' ');
        head.push_str(&bounded(&padding::counted(&unmask(&shown)), LINES_MAX));
    }
    head
}

/// Returns how a call ended: `ok, 12 ms`, and how many programs it started where that is known.
pub(super) fn end(status: CallStatus, duration_ms: u64, n_ran: u64, paint: Paint) -> String {
    let word = match status {
        CallStatus::Ok => paint.good("ok"),
        CallStatus::Failed => paint.bad("failed"),
        CallStatus::Conflict => paint.bad("conflict"),
        CallStatus::TimedOut => paint.bad("timed out"),
        CallStatus::Invalid => paint.bad("invalid"),
        CallStatus::Denied => paint.warn("denied"),
        CallStatus::Cancelled => paint.warn("cancelled"),
    };
    let ran = match n_ran {
        0 => String::new(),
        1 => ", 1 program ran".to_owned(),
        n => format!(", {n} programs ran"),
    };
    format!("({word}, {}{ran})", duration(duration_ms))
}

/// Returns foreign text of at most so many lines, each of a bounded length; further lines are
/// counted and start under the first.
pub(super) fn bounded(text: &str, max: usize) -> String {
    bounded_by(text, max, LINE_CHARS)
}

/// Returns words of ours that a user has to read to their end; what is foreign in them is bounded
/// all the same.
pub(super) fn warning(text: &str) -> String {
    bounded_by(text, 20, WARNING_CHARS)
}

/// Returns the start of a failed call's result, of at most so many lines, and how the call ended:
/// which limit it met, with which code it ended. That stands in brackets at the end of the result,
/// however much was printed before it, and is shown in any case.
pub(super) fn result(text: &str, max: usize) -> String {
    let (printed, ending) = text.trim_end().split_at(ending_at(text));
    let parts = [bounded(printed, max), ending_of(ending)];
    parts
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("\n   ")
}

/// Returns how a call ended, which is all that is left to say of one whose output was shown.
pub(super) fn ending(text: &str) -> String {
    ending_of(&text[ending_at(text)..])
}

fn ending_of(lines: &str) -> String {
    bounded_by(lines, ENDING_LINES, WARNING_CHARS)
}

/// Returns where the lines in brackets begin with which a result ends.
fn ending_at(text: &str) -> usize {
    let text = text.trim_end();
    let (mut at, mut end) = (text.len(), text.len());
    for line in text.rsplit('\n').take(ENDING_LINES) {
        if !(line.starts_with('[') && line.ends_with(']')) {
            break;
        }
        at = end - line.len();
        end = at.saturating_sub(1);
    }
    at
}

fn bounded_by(text: &str, max: usize, max_chars: usize) -> String {
    let text = text::escape(text.trim_end());
    let n_lines = text.lines().count();
    let mut out = String::new();
    // One line too many is shown as it is: saying that there is one more takes as much room.
    let shown = if n_lines <= max + 1 { n_lines } else { max };
    for (n, line) in text.lines().take(shown).enumerate() {
        if n > 0 {
            out.push_str("\n   ");
        }
        match line.char_indices().nth(max_chars) {
            Some((end, _)) => write!(
                out,
                "{}… ({} characters)",
                &line[..end],
                line.chars().count()
            ),
            None => write!(out, "{line}"),
        }
        .expect("a string takes all that is written");
    }
    if n_lines > shown {
        write!(out, "\n   … {} more lines", n_lines - shown)
            .expect("a string takes all that is written");
    }
    out
}

/// Says how long something took.
pub fn duration(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1000),
    }
}

/// Returns which agent is started, and what for.
fn agent(arguments: &str) -> String {
    let value = serde_json::from_str::<Value>(arguments).unwrap_or_default();
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let what = text("description").or_else(|| text("task"));
    let (Some(what), agent) = (what, text("agent_type").unwrap_or("general-purpose")) else {
        return telling(arguments);
    };
    format!("{agent}: {}", what.lines().next().unwrap_or_default())
}

fn telling(arguments: &str) -> String {
    let Ok(Value::Object(object)) = serde_json::from_str::<Value>(arguments) else {
        return arguments.trim().to_owned();
    };
    if object.is_empty() {
        return String::new();
    }
    let named = |key: &str| {
        object.get(key).or_else(|| {
            object
                .iter()
                .find(|(name, _)| is_same_name(name, key))
                .map(|(_, value)| value)
        })
    };
    let mut found = TELLING.iter().filter_map(|key| named(key));
    match found.next() {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(words)) if words.iter().all(Value::is_string) => words
            .iter()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join(" "),
        _ => Value::Object(object).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, arguments: &str, shown: &str) {
        assert_eq!(head(name, arguments), shown);
    }

    #[test]
    fn a_call_shows_what_says_most_about_it() {
        check(
            "bash",
            r#"{"timeout":5,"command":"cargo test"}"#,
            "bash cargo test",
        );
        check(
            "read_file",
            r#"{"path":"README.md","offset":3}"#,
            "read_file README.md",
        );
        check("git_status", "{}", "git_status");
        check("odd", r#"{"n":1}"#, r#"odd {"n":1}"#);
        check("bash", "not json", "bash not json");
        check(
            "ba\x1bsh",
            r#"{"command":"a\u001b[31mb\u202e"}"#,
            "ba\\x1bsh a\\x1b[31mb\\u{202e}",
        );
    }

    #[test]
    fn a_call_looks_as_it_does_in_the_question_about_it() {
        check("bash", r#"{"command":"сurl x"}"#, "bash \\u{441}url x");
        check("bаsh", r#"{"command":"ls"}"#, "b\\u{430}sh ls");
        let padded = format!(
            r#"{{"command":"ls{};rm x{}rm y"}}"#,
            " ".repeat(6000),
            "\\n".repeat(81)
        );
        check(
            "bash",
            &padded,
            "bash ls⟨6000 blanks⟩;rm x\n   ⟨80 empty lines⟩\n   rm y",
        );
    }

    #[test]
    fn how_a_call_ended_is_shown_however_much_it_printed() {
        let ended = "[killed: out of memory, the limit of `sandbox.memory` is 64.0 MiB; most of it was seen with `python3`, 60.0 MiB in 8 processes, \
                     which is more than fits one line of the others; exit code 137]\n[use less]";
        let shown = ended.replace('\n', "\n   ");
        assert!(shown.len() > LINE_CHARS);
        let printed: String = (1..=20).map(|n| format!("line {n}\n")).collect();
        assert_eq!(
            result(&format!("{printed}{ended}"), 3),
            format!("line 1\n   line 2\n   line 3\n   … 17 more lines\n   {shown}")
        );
        assert_eq!(
            (result(ended, 3), ending(&format!("{printed}{ended}\n"))),
            (shown.clone(), shown)
        );
        assert_eq!(result("a\n[b]\nc", 3), "a\n   [b]\n   c");
        for nothing in ["", "\n", "a\nb", "[a] b\n"] {
            assert_eq!(ending(nothing), "", "{nothing:?}");
        }
        assert_eq!(ending(&"[x]\n".repeat(100)).lines().count(), ENDING_LINES);
    }

    #[test]
    fn a_long_command_is_shown_up_to_a_bound_and_counted() {
        let command: Vec<String> = (1..=20).map(|n| format!("line {n}")).collect();
        let shown = bounded(&command.join("\n"), 3);
        assert_eq!(shown, "line 1\n   line 2\n   line 3\n   … 17 more lines");
        assert_eq!(bounded("a\nb\nc\nd", 3), "a\n   b\n   c\n   d");
        assert_eq!(warning(&"x".repeat(500)), "x".repeat(500));
        assert!(warning(&"x".repeat(1500)).ends_with("… (1500 characters)"));
        assert_eq!(
            bounded(&"x".repeat(500), 3),
            format!("{}… (500 characters)", "x".repeat(LINE_CHARS))
        );
    }
}
