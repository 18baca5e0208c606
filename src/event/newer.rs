//! Words that came later than the format of the log, in a form that older readers understand.
//!
//! A reader that meets a word it does not know in a field it knows loses the whole record. So the
//! field keeps the nearest word that was there from the start, and the newer one stands beside it
//! in a field of its own, which older readers pass over.

use serde_json::Map;
use serde_json::Value;

/// A word that came later.
struct Newer {
    kind: &'static str,
    field: &'static str,
    word: &'static str,
    /// What an older reader takes it for.
    older: &'static str,
    /// Where the word itself stands.
    beside: &'static str,
}

const WORDS: [Newer; 4] = [
    Newer {
        kind: "call_finished",
        field: "status",
        word: "conflict",
        older: "failed",
        beside: "class",
    },
    Newer {
        kind: "call_finished",
        field: "status",
        word: "timed_out",
        older: "failed",
        beside: "class",
    },
    Newer {
        kind: "permission_answered",
        field: "answer",
        word: "allow_always",
        older: "allow_session",
        beside: "lasts",
    },
    Newer {
        kind: "permission_answered",
        field: "answer",
        word: "deny_session",
        older: "deny",
        beside: "lasts",
    },
];

/// Capabilities that came later: a question about one of them stands in [`IN_CALL`], and older
/// readers see one about nothing.
const CAPABILITIES: [&str; 2] = ["run_program", "held_write"];

/// Where they stand in a `permission_asked`.
const IN_CALL: &str = "in_call";

/// Writes newer words as older ones with the newer beside them.
pub(super) fn put_apart(fields: &mut Map<String, Value>) {
    put_capabilities_apart(fields);
    let find =
        |newer: &&Newer| is(fields, "type", newer.kind) && is(fields, newer.field, newer.word);
    let Some(newer) = WORDS.iter().find(find) else {
        return;
    };
    fields.insert(newer.field.to_owned(), newer.older.into());
    fields.insert(newer.beside.to_owned(), newer.word.into());
}

/// Reads what [`put_apart`] wrote. A word beside that nobody knows yet is passed over.
pub(super) fn put_together(fields: &mut Map<String, Value>) {
    if is(fields, "type", "permission_asked")
        && let Some(Value::Array(later)) = fields.remove(IN_CALL)
        && let Some(Value::Array(capabilities)) = fields.get_mut("capabilities")
    {
        // One that nobody knows yet is passed over, like a word.
        let is_known = |capability: &Value| {
            capability["capability"]
                .as_str()
                .is_some_and(|word| CAPABILITIES.contains(&word))
        };
        capabilities.extend(later.into_iter().filter(is_known));
    }
    let find = |newer: &&Newer| {
        is(fields, "type", newer.kind)
            && is(fields, newer.field, newer.older)
            && is(fields, newer.beside, newer.word)
    };
    let Some(newer) = WORDS.iter().find(find) else {
        return;
    };
    fields.insert(newer.field.to_owned(), newer.word.into());
    fields.remove(newer.beside);
}

fn put_capabilities_apart(fields: &mut Map<String, Value>) {
    if !is(fields, "type", "permission_asked") {
        return;
    }
    let Some(Value::Array(capabilities)) = fields.get_mut("capabilities") else {
        return;
    };
    let is_later = |capability: &Value| {
        capability["capability"]
            .as_str()
            .is_some_and(|word| CAPABILITIES.contains(&word))
    };
    let (later, first) = std::mem::take(capabilities)
        .into_iter()
        .partition::<Vec<_>, _>(is_later);
    *capabilities = first;
    if !later.is_empty() {
        fields.insert(IN_CALL.to_owned(), Value::Array(later));
    }
}

fn is(fields: &Map<String, Value>, key: &str, word: &str) -> bool {
    fields.get(key).and_then(Value::as_str) == Some(word)
}

#[cfg(test)]
mod tests {
    use super::super::Answer;
    use super::super::CallStatus;
    use super::super::Capability;
    use super::super::Event;
    use super::super::Kind;
    use podbay_wire::WriteChange;

    #[track_caller]
    fn check(kind: Kind, json: &str) {
        let event = Event {
            at: "2026-11-22T10:00:00Z".parse().expect("a time"),
            kind,
        };
        assert_eq!(serde_json::to_string(&event).expect("writes"), json);
        assert_eq!(serde_json::from_str::<Event>(json).expect("reads"), event);
    }

    #[test]
    fn an_older_reader_takes_a_newer_word_for_the_nearest_it_knows() {
        let answered = |answer, reason: Option<&str>| Kind::PermissionAnswered {
            call: "c1".into(),
            answer,
            reason: reason.map(str::to_owned),
        };
        let head = r#"{"type":"permission_answered","at":"2026-11-22T10:00:00Z","call":"c1""#;
        check(
            answered(Answer::Allow, None),
            &format!(r#"{head},"answer":"allow"}}"#),
        );
        check(
            answered(Answer::AllowAlways, None),
            &format!(r#"{head},"answer":"allow_session","lasts":"allow_always"}}"#),
        );
        check(
            answered(Answer::DenySession, Some("no")),
            &format!(r#"{head},"answer":"deny","reason":"no","lasts":"deny_session"}}"#),
        );
    }

    #[test]
    fn a_class_of_result_that_came_later_is_a_failure_to_an_older_reader() {
        let finished = |status| Kind::CallFinished {
            call: "c1".into(),
            name: "bash".into(),
            status,
            result: String::new(),
            artifact: None,
            duration_ms: 1,
            seen: vec![],
        };
        for (status, word) in [
            (CallStatus::Conflict, "conflict"),
            (CallStatus::TimedOut, "timed_out"),
        ] {
            let head = r#"{"type":"call_finished","at":"2026-11-22T10:00:00Z","call":"c1","name":"bash","status":"failed""#;
            check(
                finished(status),
                &format!(
                    r#"{head},"result":"","artifact":null,"duration_ms":1,"class":"{word}"}}"#
                ),
            );
        }
    }

    #[test]
    fn a_word_that_is_newer_still_is_passed_over() {
        let line = r#"{"type":"permission_answered","at":"2026-11-22T10:00:00Z","call":"c1","answer":"deny","lasts":"deny_for_a_year"}"#;
        let event: Event = serde_json::from_str(line).expect("reads");
        assert_eq!(
            event.kind,
            Kind::PermissionAnswered {
                call: "c1".into(),
                answer: Answer::Deny,
                reason: None
            }
        );
    }

    #[test]
    fn what_a_program_of_a_call_wants_stands_in_a_field_of_its_own() {
        let path = || "a".to_owned();
        let held = Capability::HeldWrite {
            path: path(),
            change: WriteChange::Write,
            protected: false,
            program: path(),
            file: path(),
            directory: path(),
        };
        check(
            Kind::PermissionAsked {
                call: "c".into(),
                capabilities: vec![held],
            },
            r#"{"type":"permission_asked","at":"2026-11-22T10:00:00Z","call":"c","capabilities":[],"in_call":[{"capability":"held_write","path":"a","change":"write","program":"a","file":"a","directory":"a"}]}"#,
        );
        let unknown = r#"{"type":"permission_asked","at":"2026-11-22T10:00:00Z","call":"c","capabilities":[],"in_call":[{"capability":"fly"}]}"#;
        let event = serde_json::from_str::<Event>(unknown).expect("reads");
        assert_eq!(
            event.kind,
            Kind::PermissionAsked {
                call: "c".into(),
                capabilities: Vec::new()
            }
        );
    }
}
