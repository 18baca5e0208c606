//! The model's window: warned of, kept free, and never outgrown in silence.

use podbay::agent;
use podbay::agent::Conversation;
use podbay::event::Event;
use podbay::event::GIVEN_UP;
use podbay::event::Kind;
use podbay::event::LimitKind;
use podbay::event::RunStatus;
use podbay::llm;
use podbay::llm::ToolModeChoice;
use podbay::session::OpenCall;
use podbay::session::ResumeState;
use proptest::prelude::*;
use serde_json::Value;
use serde_json::json;

use crate::support::Desk;
use crate::support::ScriptedModel;
use crate::support::desk::Wishes;
use crate::support::scripted_model::exceeded;
use crate::support::scripted_model::serve::asks_to_sum_up;

const SUMMARY: &str = "I printed numbers and found 42.";

/// Returns the requests of the conversation itself, up to the end of their messages: without those
/// for a summary, and without the second question behind a stream that had nothing in it.
fn heads(desk: &Desk) -> Vec<Vec<u8>> {
    let streamed = |body: &[u8]| String::from_utf8_lossy(body).contains(r#","stream":true"#);
    let bodies = desk.model.raw_bodies();
    let both = desk.model.heads().into_iter().zip(bodies);
    both.filter(|(_, body)| streamed(body) && !asks_to_sum_up(body))
        .map(|(head, _)| head)
        .collect()
}

fn makes_room(kind: &Kind) -> bool {
    matches!(
        kind,
        Kind::ResultsEvicted { .. } | Kind::ConversationCompacted { .. }
    )
}

/// Returns whether everything is written anew from here on: room was made, or tools are told
/// otherwise.
fn rewrites(kind: &Kind) -> bool {
    makes_room(kind) || matches!(kind, Kind::PromptBegun { .. })
}

/// Panics unless each request begins with the bytes of the one before, but where all was written
/// anew between them.
#[track_caller]
fn assert_append_only(desk: &Desk) {
    let heads = heads(desk);
    let mut n_asked = 0;
    let mut made_room = false;
    for kind in desk.kinds() {
        made_room |= rewrites(&kind);
        if kind == Kind::ModelAsked {
            if n_asked > 0 && !made_room {
                assert!(
                    heads[n_asked].starts_with(&heads[n_asked - 1]),
                    "request {n_asked} differs from the one before"
                );
            }
            (n_asked, made_room) = (n_asked + 1, false);
        }
    }
    assert_eq!(n_asked, heads.len());
}

/// Panics unless the log, cut anywhere, tells the conversation that was sent.
#[track_caller]
fn assert_resumable(desk: &Desk) {
    let (events, heads) = (desk.events(), heads(desk));
    for cut in 1..=events.len() {
        let mut events: Vec<Event> = events[..cut].to_vec();
        let n_asked = events
            .iter()
            .filter(|event| event.kind == Kind::ModelAsked)
            .count();
        let has_room = events
            .iter()
            .rposition(|event| event.kind == Kind::ModelAsked)
            .is_some_and(|at| events[at..].iter().any(|event| rewrites(&event.kind)));
        let open: Vec<Kind> = ResumeState::of(&events)
            .open
            .iter()
            .map(OpenCall::close)
            .collect();
        events.extend(open.into_iter().map(Event::now));
        let past = ResumeState::of(&events);
        let mode = past
            .beginning
            .as_ref()
            .map_or(desk.prompt.mode(), |beginning| beginning.mode);
        let head = Conversation::resume(desk.prompt.rebuilt(mode, []), past.history)
            .prompt()
            .head();
        if n_asked > 0 && !has_room {
            assert!(
                head.as_bytes().starts_with(&heads[n_asked - 1]),
                "cut at {cut}"
            );
        }
    }
}

fn prints(model: ScriptedModel, n: u32) -> ScriptedModel {
    (0..n).fold(model, |model, n| {
        model.calls("bash", json!({"command": format!("echo {n}; seq 1 700")}))
    })
}

fn agent(options: agent::Options) -> Wishes {
    Wishes {
        agent: agent::Options {
            max_turns: 100,
            ..options
        },
        llm: llm::Options {
            retries: 0,
            ..llm::Options::default()
        },
        ..Wishes::default()
    }
}

#[tokio::test]
async fn a_window_that_nobody_tells_is_taken_for_8192_tokens() {
    let model = ScriptedModel::new().without_props().sums_up(SUMMARY);
    let model = prints(model, 8).says("Done.").start().await;
    let desk = Desk::new(model, agent(agent::Options::default())).await;
    let outcome = desk.work("print numbers").await;
    assert_eq!(outcome.response, "Done.");
    let kinds = desk.kinds();
    assert!(
        kinds
            .iter()
            .any(|kind| matches!(kind, Kind::ContextNear { window: 8192, .. })),
        "nothing was warned of"
    );
    assert!(kinds.iter().any(rewrites), "no room was made");
}

#[tokio::test]
async fn a_window_that_fills_is_warned_of_and_long_old_results_are_set_aside_first() {
    let model = prints(ScriptedModel::new().context(9150).sums_up(SUMMARY), 8);
    let model = model
        .calls(
            "read_file",
            json!({"path": "artifact:call_0_0", "limit": 2}),
        )
        .says("Done.")
        .start()
        .await;
    let desk = Desk::new(model, agent(agent::Options::default())).await;
    let outcome = desk.work("print numbers").await;
    assert_eq!(
        (outcome.status, outcome.response.as_str()),
        (RunStatus::Completed, "Done.")
    );
    let kinds = desk.kinds();
    let at = |found: &dyn Fn(&Kind) -> bool| kinds.iter().position(found).expect("it happened");
    let near = at(&|kind| {
        matches!(
            kind,
            Kind::ContextNear {
                percent: 75,
                window: 9150,
                ..
            }
        )
    });
    let evicted = at(&|kind| matches!(kind, Kind::ResultsEvicted { .. }));
    assert!(near < evicted, "{near} {evicted}");
    let last = heads(&desk).pop().expect("requests");
    let last = String::from_utf8_lossy(&last);
    assert!(
        last.contains("was set aside to make room") && last.contains("artifact:call_0_0"),
        "{last}"
    );
    let requests = desk.model.requests();
    let told = desk.told(requests.len() - 1);
    assert!(
        told.starts_with("1\t0\n2\t1\n"),
        "the model reads it again: {told}"
    );
    // What was warned of is not warned of once more by whoever continues from
    // there.
    let past = ResumeState::of(&desk.events()[..=near]);
    let again = ScriptedModel::new()
        .context(9150)
        .says("Done.")
        .start()
        .await;
    let again = Desk::new(
        again,
        Wishes {
            past,
            ..agent(agent::Options::default())
        },
    )
    .await;
    assert_eq!(again.go_on().await.response, "Done.");
    assert!(
        !again
            .kinds()
            .iter()
            .any(|kind| matches!(kind, Kind::ContextNear { .. }))
    );
    assert_append_only(&desk);
    assert_resumable(&desk);
}

#[tokio::test]
async fn a_summary_keeps_what_the_person_said_and_the_session_goes_on_with_it() {
    for constrained in [false, true] {
        let model = ScriptedModel::new().context(8192).sums_up(SUMMARY);
        let model = (0..60).fold(model, |model, n| {
            model.calls(
                "bash",
                json!({"command": format!("echo {n}; echo {}", "x".repeat(250))}),
            )
        });
        let model = if constrained {
            model.without_tools()
        } else {
            model
        };
        let desk = Desk::new(
            model.says("Done.").start().await,
            agent(agent::Options::default()),
        )
        .await;
        let outcome = desk.work("echo sixty times, exactly").await;
        assert_eq!(
            (outcome.status, outcome.tool_calls),
            (RunStatus::Completed, 60),
            "{outcome:?}"
        );
        let compacted: Vec<(String, u64, u64)> = desk
            .kinds()
            .into_iter()
            .filter_map(|kind| match kind {
                Kind::ConversationCompacted {
                    summary,
                    before,
                    after,
                    ..
                } => Some((summary, before, after)),
                _ => None,
            })
            .collect();
        assert!(compacted.len() >= 2, "{}", compacted.len());
        for (summary, before, after) in compacted {
            assert!(
                summary.contains("- echo sixty times, exactly\n") && summary.contains(SUMMARY),
                "{summary}"
            );
            assert!(after * 10 < before * 9, "{before} -> {after}");
        }
        assert_append_only(&desk);
        assert_resumable(&desk);
        let past = ResumeState::of(&desk.events());
        let wishes = Wishes {
            past,
            ..agent(agent::Options::default())
        };
        let again = ScriptedModel::new().context(8192);
        let again = if constrained {
            again.without_tools()
        } else {
            again
        };
        let again = Desk::new(again.says("42.").start().await, wishes).await;
        assert_eq!(again.work("what did you find?").await.response, "42.");
        assert!(
            again.model.heads()[0].starts_with(heads(&desk).last().expect("requests")),
            "after a compaction too"
        );
    }
}

/// SES-3: a user asks for room, and says what is to be kept.
#[tokio::test]
async fn a_person_can_have_older_messages_summed_up_and_say_what_to_keep() {
    let model = ScriptedModel::new().context(32_768).sums_up(SUMMARY);
    let model = (0..20).fold(model, |model, n| {
        model.calls(
            "bash",
            json!({"command": format!("echo {n}; echo {}", "x".repeat(250))}),
        )
    });
    let model = model.says("Done.").says("42.").start().await;
    let desk = Desk::new(model, agent(agent::Options::default())).await;
    let (_, is_shorter) = desk.agent.lock().await.compact("", &desk.interrupt).await;
    assert!(
        !is_shorter && desk.model.requests().is_empty(),
        "there is nothing yet"
    );
    desk.work("echo twenty times").await;
    let (before, window) = desk.agent.lock().await.fullness(&desk.interrupt).await;
    assert_eq!(window, Some(32_768));
    let (usage, is_shorter) = desk
        .agent
        .lock()
        .await
        .compact(" the number 42 ", &desk.interrupt)
        .await;
    let (after, _) = desk.agent.lock().await.fullness(&desk.interrupt).await;
    assert!(
        is_shorter && usage.total() > 0 && after * 2 < before,
        "{before} -> {after}"
    );
    let asked = desk
        .model
        .requests()
        .into_iter()
        .rev()
        .find(|request| request.to_string().contains("Above all keep"));
    assert!(
        asked
            .expect("it was asked")
            .to_string()
            .contains("Above all keep what is about this: the number 42\"")
    );
    assert_eq!(desk.work("what did you find?").await.response, "42.");
    let last = String::from_utf8_lossy(heads(&desk).last().expect("requests")).into_owned();
    assert!(
        last.contains(SUMMARY) && last.contains("echo twenty times"),
        "{last}"
    );
    assert_append_only(&desk);
    assert_resumable(&desk);
}

type Refuse = fn(ScriptedModel, &Value, &str) -> ScriptedModel;

/// REL-13: recognised in all shapes, room is made, and it is tried once more.
#[tokio::test]
async fn a_conversation_that_a_server_refuses_is_made_shorter_and_sent_once_more() {
    let error = exceeded(9001, 8192);
    let sse = format!("data: {}\n\n", json!({ "error": error }));
    let shapes: [(&str, Refuse); 7] = [
        ("status 400", |model, _, _| {
            model.exceeds_context(9001, 8192)
        }),
        ("status 500", |model, error, _| {
            model.status(500, json!({ "error": error }).to_string())
        }),
        ("status 200", |model, error, _| {
            model.status(200, json!({ "error": error }).to_string())
        }),
        ("a chunk", |model, _, sse| model.raw_sse(sse)),
        ("an event", |model, error, _| model.sse_error(error.clone())),
        ("an empty stream", |model, error, _| {
            model.silent(400, json!({ "error": error }))
        }),
        ("OpenAI", |model, _, _| {
            let message = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.";
            model.status(
                400,
                json!({"error": {"message": message, "code": "context_length_exceeded"}})
                    .to_string(),
            )
        }),
    ];
    for (shape, refuse) in shapes {
        // Its window is not told, as with most servers: the refusal is the first that is heard of
        // it.
        let model = prints(
            ScriptedModel::new()
                .without_props()
                .context(8192)
                .sums_up(SUMMARY),
            6,
        );
        let model = refuse(model, &error, &sse).says("Done.").start().await;
        let desk = Desk::new(model, agent(agent::Options::default())).await;
        let outcome = desk.work("print").await;
        assert_eq!(
            (outcome.status, outcome.response.as_str()),
            (RunStatus::Completed, "Done."),
            "{shape}: {outcome:?}"
        );
        assert!(desk.kinds().iter().any(makes_room), "{shape}");
        assert_resumable(&desk);
        let heads = heads(&desk);
        assert!(
            heads.last().expect("requests").len() < heads[heads.len() - 2].len(),
            "{shape}"
        );
    }
}

/// A refusal in words that nobody knows, of which there are more than can be listed.
#[tokio::test]
async fn a_refusal_that_may_be_about_the_length_makes_room_once() {
    let refusal = |message: &str| {
        json!({"error": {"message": message, "type": "invalid_request_error"}}).to_string()
    };
    let unsure = "This gateway takes no body of that size";
    // A window that is more than half full, or a number near the conversation's length.
    for (n, context, message) in [
        (5, 8192, unsure),
        (5, 100_000, "6000 is over the limit of 4096 units"),
    ] {
        let model = prints(ScriptedModel::new().context(context).sums_up(SUMMARY), n);
        let desk = Desk::new(
            model
                .status(400, refusal(message))
                .says("Done.")
                .start()
                .await,
            agent(agent::Options::default()),
        )
        .await;
        let outcome = desk.work("print").await;
        assert_eq!(
            (outcome.status, outcome.response.as_str()),
            (RunStatus::Completed, "Done."),
            "{message}: {outcome:?}"
        );
        assert!(desk.kinds().iter().any(makes_room), "{message}");
    }
    // Refused once more it is an error.
    let model = prints(ScriptedModel::new().context(8192).sums_up(SUMMARY), 5);
    let model = model
        .status(400, refusal(unsure))
        .status(400, refusal(unsure))
        .status(400, refusal(unsure))
        .start()
        .await;
    let desk = Desk::new(model, agent(agent::Options::default())).await;
    let outcome = desk.work("print").await;
    assert_eq!(outcome.status, RunStatus::Failed, "{outcome:?}");
    assert_eq!(heads(&desk).len(), 7, "tried once more, and no more");
    // Another refusal, or one of a conversation that is short, is an error at once.
    for (n, message) in [
        (5, "The value of top_k is out of range [1, 100]"),
        (0, unsure),
    ] {
        let model = prints(ScriptedModel::new().context(8192).sums_up(SUMMARY), n);
        let desk = Desk::new(
            model.status(400, refusal(message)).start().await,
            agent(agent::Options::default()),
        )
        .await;
        let outcome = desk.work("print").await;
        assert_eq!(outcome.status, RunStatus::Failed, "{message}: {outcome:?}");
        assert_eq!(
            (heads(&desk).len(), desk.kinds().iter().any(makes_room)),
            (n as usize + 1, false),
            "{message}"
        );
    }
}

/// Calls of one answer that read much, each with a word at both ends of its result.
fn reads(n: usize, lines: u32) -> Vec<(&'static str, Value)> {
    (0..n)
        .map(|n| {
            (
                "bash",
                json!({"command": format!("echo FIRST{n}.; seq 1 {lines}; echo LAST{n}.")}),
            )
        })
        .collect()
}

/// Returns how many of these results the request tells from their first to their last word.
fn n_told(head: &[u8], n: usize) -> usize {
    let head = String::from_utf8_lossy(head);
    (0..n)
        .filter(|n| {
            head.contains(&format!("FIRST{n}.\\n")) && head.contains(&format!("LAST{n}.\\n"))
        })
        .count()
}

#[tokio::test]
async fn results_that_the_model_has_not_read_are_not_summed_up() {
    // They fit with an answer; they do not, quite; they do not by far; and what there is beside
    // them is long as well.
    for (window, n, lines, n_before, is_cut) in [
        (12_000, 4, 1500, 0, false),
        (8192, 4, 1500, 0, true),
        (8192, 16, 1500, 0, true),
        (9000, 4, 1200, 3, true),
    ] {
        let model = prints(
            ScriptedModel::new().context(window).sums_up(SUMMARY),
            n_before,
        );
        let model = model
            .calls_many(reads(n, lines))
            .says("Compared.")
            .start()
            .await;
        let desk = Desk::new(model, agent(agent::Options::default())).await;
        let outcome = desk.work("compare them").await;
        assert_eq!(
            (outcome.status, outcome.response.as_str()),
            (RunStatus::Completed, "Compared."),
            "{window} {n}: {outcome:?}"
        );
        let last = heads(&desk).pop().expect("requests");
        assert_eq!(
            n_told(&last, n),
            n,
            "{window} {n}: {}",
            String::from_utf8_lossy(&last)
        );
        let last = String::from_utf8_lossy(&last).into_owned();
        assert_eq!(
            last.contains("were left out here to make room; read_file with path"),
            is_cut,
            "{window} {n}: {last}"
        );
        assert_append_only(&desk);
        assert_resumable(&desk);
    }
}

#[tokio::test]
async fn a_result_that_the_server_refuses_is_shown_as_far_as_it_fits() {
    for told in [true, false] {
        let model = if told {
            ScriptedModel::new()
        } else {
            ScriptedModel::new().without_props()
        };
        let model = model.calls_many(reads(1, 1500));
        let model = if told {
            model.exceeds_context(9001, 8192)
        } else {
            model.status(
                400,
                json!({"error": {"message": "the request exceeds the available context size", "code": "context_length_exceeded"}})
                    .to_string(),
            )
        };
        let desk = Desk::new(
            model.says("Read.").start().await,
            agent(agent::Options::default()),
        )
        .await;
        let outcome = desk.work("read it").await;
        assert_eq!(
            (outcome.status, outcome.response.as_str()),
            (RunStatus::Completed, "Read."),
            "{told}: {outcome:?}"
        );
        let heads = heads(&desk);
        let (refused, last) = (&heads[heads.len() - 2], &heads[heads.len() - 1]);
        assert_eq!(
            n_told(last, 1),
            1,
            "{told}: {}",
            String::from_utf8_lossy(last)
        );
        assert!(last.len() < refused.len(), "{told}");
        assert_resumable(&desk);
    }
}

#[tokio::test]
async fn a_conversation_that_cannot_be_made_shorter_ends_the_run() {
    // Refused again and again.
    let model = prints(ScriptedModel::new().context(8192).sums_up(SUMMARY), 5);
    let model = model
        .exceeds_context(9001, 8192)
        .exceeds_context(9001, 8192)
        .exceeds_context(9001, 8192)
        .start()
        .await;
    let desk = Desk::new(model, agent(agent::Options::default())).await;
    let outcome = desk.work("print").await;
    assert_eq!(
        (outcome.status, outcome.limit),
        (RunStatus::Limit, Some(LimitKind::Context)),
        "{outcome:?}"
    );
    assert_eq!(heads(&desk).len(), 7, "tried once more, and no more");
    // From the start there is nothing that could go.
    let desk = Desk::new(
        ScriptedModel::new()
            .exceeds_context(9001, 8192)
            .start()
            .await,
        agent(agent::Options::default()),
    )
    .await;
    let outcome = desk.work("print").await;
    assert_eq!(
        (outcome.status, outcome.limit),
        (RunStatus::Limit, Some(LimitKind::Context)),
        "{outcome:?}"
    );
    assert_eq!(desk.model.requests().len(), 1);
    // A window that system prompt and tools fill alone.
    let desk = Desk::new(
        ScriptedModel::new().context(300).start().await,
        agent(agent::Options::default()),
    )
    .await;
    let outcome = desk.work("print").await;
    assert_eq!(
        (outcome.status, outcome.limit),
        (RunStatus::Limit, Some(LimitKind::Context)),
        "{outcome:?}"
    );
    assert_eq!(
        desk.model.requests().len(),
        0,
        "a request that cannot fit is not sent"
    );
}

/// What is nearly full from the start is asked as long as an answer fits too; where none does, the
/// person hears what helps.
#[tokio::test]
async fn a_window_that_is_nearly_full_at_the_start_is_used_as_long_as_an_answer_fits() {
    for (left, fits) in [(400, true), (100, false)] {
        let desk = Desk::new(
            ScriptedModel::new().context(100_000).start().await,
            agent(agent::Options::default()),
        )
        .await;
        let task = "read this ".repeat(800);
        let used = (desk.prompt.head().len() + task.len()) as u64 / 4;
        let desk = Desk::new(
            ScriptedModel::new()
                .context(used + left)
                .says("Done.")
                .start()
                .await,
            agent(agent::Options::default()),
        )
        .await;
        let outcome = desk.work(&task).await;
        assert!(
            used * 100 / (used + left) >= 80,
            "room would have to be made"
        );
        let warned = desk.kinds().iter().any(
            |kind| matches!(kind, Kind::Warning { message } if message.contains("`--tools small`")),
        );
        if fits {
            assert_eq!(
                (outcome.status, outcome.response.as_str(), warned),
                (RunStatus::Completed, "Done.", false),
                "{outcome:?}"
            );
        } else {
            assert_eq!(
                (outcome.status, outcome.limit),
                (RunStatus::Limit, Some(LimitKind::Context)),
                "{outcome:?}"
            );
            assert!(warned && desk.model.requests().is_empty());
        }
    }
}

#[tokio::test]
async fn a_model_that_cannot_sum_up_leaves_the_work_to_us() {
    let model = (0..60).fold(ScriptedModel::new().context(8192), |model, n| {
        model.calls(
            "bash",
            json!({"command": format!("echo {n}; echo {}", "x".repeat(250))}),
        )
    });
    // Asked to sum up, it calls a tool: the script continues.
    let desk = Desk::new(model.start().await, agent(agent::Options::default())).await;
    let outcome = desk.work("echo").await;
    assert_eq!(outcome.status, RunStatus::Completed, "{outcome:?}");
    let summary = desk.kinds().into_iter().find_map(|kind| match kind {
        Kind::ConversationCompacted { summary, .. } => Some(summary),
        _ => None,
    });
    let summary = summary.expect("room was made");
    assert!(
        summary.contains("- echo\n") && summary.contains("- called bash"),
        "{summary}"
    );
    let given_up = |kind: &Kind| matches!(kind, Kind::Progress(step) if step.task.contains("summarizes") && step.finished && step.detail == GIVEN_UP);
    assert!(
        desk.kinds().iter().any(given_up),
        "what was not done is not called done"
    );
    assert_resumable(&desk);
}

/// A summary is there to make room: one that is longer than what it stands for is cut, or not taken
/// at all.
#[tokio::test]
async fn a_summary_that_is_longer_than_what_it_replaces_is_cut_or_not_taken() {
    let compacted = |desk: &Desk| -> Vec<(String, u64, u64)> {
        let one = |kind| match kind {
            Kind::ConversationCompacted {
                summary,
                before,
                after,
                ..
            } => Some((summary, before, after)),
            _ => None,
        };
        desk.kinds().into_iter().filter_map(one).collect()
    };
    // Five times the window: whoever wrote it did not keep to what was asked for.
    let endless = "I found the number 42. ".repeat(7000);
    let model = (0..60).fold(
        ScriptedModel::new().context(8192).sums_up(&endless),
        |model, n| {
            model.calls(
                "bash",
                json!({"command": format!("echo {n}; echo {}", "x".repeat(250))}),
            )
        },
    );
    let desk = Desk::new(
        model.says("Done.").start().await,
        agent(agent::Options::default()),
    )
    .await;
    let outcome = desk.work("echo sixty times, exactly").await;
    assert_eq!(
        (outcome.status, outcome.tool_calls),
        (RunStatus::Completed, 60),
        "{outcome:?}"
    );
    let all = compacted(&desk);
    assert!(all.len() >= 2, "{}", all.len());
    for (summary, before, after) in all {
        assert!(after * 10 < before * 9, "{before} -> {after}");
        assert!(
            summary.contains("- echo sixty times, exactly\n")
                && summary.contains("I found the number 42."),
            "{summary}"
        );
    }
    assert_append_only(&desk);
    assert_resumable(&desk);

    // Nearly all of the window is the beginning, which stays: two short calls leave nothing that a
    // summary could be shorter than.
    let head = desk.prompt.head().len() as u64 / 4;
    let model = (0..30).fold(
        ScriptedModel::new()
            .context(head * 100 / 76)
            .sums_up(&endless),
        |model, n| model.calls("bash", json!({"command": format!("echo {n}")})),
    );
    let desk = Desk::new(model.start().await, agent(agent::Options::default())).await;
    let outcome = desk.work("echo").await;
    assert_eq!(
        (outcome.status, outcome.limit),
        (RunStatus::Limit, Some(LimitKind::Context)),
        "{outcome:?}"
    );
    let all = compacted(&desk);
    assert!(
        all.iter().all(|(_, before, after)| after < before),
        "{all:?}"
    );
    assert!(
        desk.model.requests().len() < 20,
        "it ends soon: {}",
        desk.model.requests().len()
    );
    assert_resumable(&desk);
}

/// Before the first answer nobody has counted; the server can, and is asked once.
#[tokio::test]
async fn what_no_answer_has_counted_yet_is_counted_as_the_template_writes_it() {
    let model = ScriptedModel::new()
        .density(3)
        .context(20_000)
        .calls("bash", json!({"command": "echo 1"}))
        .says("Done.")
        .start()
        .await;
    let options = agent::Options {
        compact_percent: 0,
        context_warnings: vec![1],
        max_tokens: 1_000_000,
        ..agent::Options::default()
    };
    let desk = Desk::new(model, agent(options)).await;
    assert_eq!(desk.work(&"read this ".repeat(500)).await.response, "Done.");
    let (templates, texts) = (
        desk.model.sent_to("/apply-template"),
        desk.model.sent_to("/tokenize"),
    );
    assert_eq!(
        (templates.len(), texts.len()),
        (1, 1),
        "asked once, though it is looked at more often"
    );
    assert_eq!(
        templates[0]["messages"],
        desk.model.requests()[0]["messages"]
    );
    let n_tokens = texts[0]["content"].as_str().expect("a text").len() as u64 / 3;
    let near = desk.kinds().into_iter().find_map(|kind| {
        if let Kind::ContextNear { used, .. } = kind {
            Some(used)
        } else {
            None
        }
    });
    assert_eq!(near, Some(n_tokens));
}

/// What fills a window twice as fast as ordinary text must not end a run that could continue.
#[tokio::test]
async fn dense_text_in_a_small_window_is_given_room_too() {
    for (density, window) in [(2, 6000), (1, 12_000)] {
        let numbers = |n: u32| {
            format!("echo {n}; for i in $(seq 1 400); do echo $((i * i * {n} % 99991)); done")
        };
        let model = ScriptedModel::new()
            .density(density)
            .context(window)
            .sums_up(SUMMARY);
        let model = (1..=12).fold(model, |model, n| {
            model.calls("bash", json!({"command": numbers(n)}))
        });
        let desk = Desk::new(
            model.says("Done.").start().await,
            agent(agent::Options::default()),
        )
        .await;
        let outcome = desk.work("print many numbers").await;
        assert_eq!(
            (outcome.status, outcome.tool_calls),
            (RunStatus::Completed, 12),
            "{density}: {outcome:?}"
        );
        for body in desk.model.raw_bodies() {
            assert!(
                body.len() / density < window as usize,
                "{density}: a request of {} tokens was sent",
                body.len() / density
            );
        }
        assert_append_only(&desk);
        assert_resumable(&desk);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// The property that a server's cache lives by, over whole sessions.
    #[test]
    fn tools_and_messages_only_grow_until_room_is_made(
        turns in prop::collection::vec((0..6_u8, 0..900_u32), 1..14),
        mode in prop::sample::select(&[ToolModeChoice::Native, ToolModeChoice::Constrained, ToolModeChoice::Text][..]),
        window in 6000..14_000_u64,
    ) {
        let mut model = ScriptedModel::new().context(window).sums_up(SUMMARY);
        for (what, n) in &turns {
            let bash = json!({"command": format!("seq 1 {n}")});
            model = match what {
                0 => model.says(""),
                1 => model.raw_call("bash", "{\"command\": "),
                2 => model.calls_many([("bash", bash.clone()), ("read_file", json!({"path": "absent"}))]),
                3 => model.thinks("hm").calls("bash", bash),
                4 => model.says("An answer."),
                _ => model.calls("bash", bash),
            };
        }
        let model = if mode == ToolModeChoice::Constrained { model.without_tools() } else { model };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let wishes = agent(agent::Options::default());
            let tool_mode = if mode == ToolModeChoice::Text { mode } else { ToolModeChoice::Auto };
            let llm = llm::Options { tool_mode, ..wishes.llm.clone() };
            let desk = Desk::new(model.start().await, Wishes { llm, ..wishes }).await;
            // What a user writes may hold the tokens of the model's template.
            for task in ["first", "second <|im_end|><tool_call>", "third"] {
                desk.work(task).await;
            }
            assert_append_only(&desk);
            assert_resumable(&desk);
        });
    }
}

#[tokio::test]
async fn a_window_that_the_settings_name_is_kept_free_where_the_server_tells_none() {
    let model = prints(ScriptedModel::new().without_props().sums_up(SUMMARY), 8).says("Done.");
    let wishes = agent(agent::Options::default());
    let llm = llm::Options {
        context: 9100,
        ..wishes.llm.clone()
    };
    let desk = Desk::new(model.start().await, Wishes { llm, ..wishes }).await;
    assert_eq!(desk.work("print numbers").await.response, "Done.");
    let kinds = desk.kinds();
    assert!(kinds.iter().any(|kind| matches!(
        kind,
        Kind::ContextNear {
            percent: 75,
            window: 9100,
            ..
        }
    )));
    assert!(
        kinds
            .iter()
            .any(|kind| matches!(kind, Kind::ResultsEvicted { .. }))
    );
    assert_append_only(&desk);
}

#[tokio::test]
async fn a_count_that_no_window_holds_fills_none() {
    let event = |value: Value| format!("data: {value}\n\n");
    let call = json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "bash", "arguments": "{\"command\":\"echo 1\"}"}}]});
    let answer = event(
        json!({"choices": [{"index": 0, "delta": call, "finish_reason": "tool_calls"}]}),
    ) + &event(
        json!({"choices": [], "usage": {"prompt_tokens": u32::MAX, "completion_tokens": 20}}),
    ) + "data: [DONE]\n\n";
    let desk = Desk::new(
        ScriptedModel::new()
            .context(32768)
            .raw_sse(&answer)
            .says("Done.")
            .start()
            .await,
        Wishes::default(),
    )
    .await;
    let outcome = desk.work("print a number").await;
    assert_eq!(
        (outcome.status, outcome.response.as_str()),
        (RunStatus::Completed, "Done."),
        "{outcome:?}"
    );
    assert!(
        !desk
            .kinds()
            .iter()
            .any(|kind| makes_room(kind) || matches!(kind, Kind::ContextNear { .. }))
    );
}

#[tokio::test]
async fn a_server_that_counts_less_of_a_longer_conversation_is_warned_of_once() {
    let event = |value: Value| format!("data: {value}\n\n");
    let answer = |delta: Value, counted: u64| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": "stop"});
        event(json!({"choices": [choice]}))
            + &event(
                json!({"choices": [], "usage": {"prompt_tokens": counted, "completion_tokens": 5}}),
            )
            + "data: [DONE]\n\n"
    };
    let call = |id: &str| json!({"tool_calls": [{"index": 0, "id": id, "function": {"name": "bash", "arguments": "{\"command\":\"seq 1 300\"}"}}]});
    let script = |model: ScriptedModel| {
        let model = model
            .raw_sse(&answer(call("a"), 3900))
            .raw_sse(&answer(call("b"), 4050))
            .raw_sse(&answer(call("c"), 3600));
        model.raw_sse(&answer(json!({"content": "Done."}), 3500))
    };
    let warnings = |desk: &Desk| {
        let of = |kind| {
            if let Kind::Warning { message } = kind {
                Some(message)
            } else {
                None
            }
        };
        desk.kinds()
            .into_iter()
            .filter_map(of)
            .filter(|message| message.contains("counted"))
            .collect::<Vec<String>>()
    };
    let desk = Desk::new(
        script(ScriptedModel::new().without_props()).start().await,
        Wishes::default(),
    )
    .await;
    assert_eq!(desk.work("print numbers").await.response, "Done.");
    let said = warnings(&desk);
    assert_eq!(said.len(), 1, "{said:?}");
    for words in [
        "counted 3600 tokens",
        "counted 4050 before",
        "num_ctx",
        "llm.context",
    ] {
        assert!(said[0].contains(words), "{}", said[0]);
    }
    // llama-server refuses what is too long, and its templates leave old thoughts out.
    let desk = Desk::new(
        script(ScriptedModel::new()).start().await,
        Wishes::default(),
    )
    .await;
    assert_eq!(desk.work("print numbers").await.response, "Done.");
    assert_eq!(warnings(&desk), Vec::<String>::new());
}

/// A limit that is met with a nearly full window left the user without a word of what was done.
#[tokio::test]
async fn a_last_answer_has_room_made_for_it_without_a_question() {
    // Full at once: what was read last fills the window.
    let big = |model: ScriptedModel| {
        model
            .calls("bash", json!({"command": "seq 1 9000"}))
            .calls("bash", json!({"command": "seq 1 9000"}))
    };
    let turns = agent::Options {
        max_turns: 3,
        compact_percent: 0,
        ..agent::Options::default()
    };
    let desk = Desk::new(
        big(ScriptedModel::new().context(9100))
            .says("Half of it.")
            .start()
            .await,
        agent_with(turns.clone()),
    )
    .await;
    let outcome = desk.work("print numbers").await;
    assert_eq!(
        (outcome.status, outcome.limit, outcome.response.as_str()),
        (RunStatus::Limit, Some(LimitKind::Turns), "Half of it.")
    );
    let last = desk.model.raw_bodies().pop().expect("requests");
    assert!(last.len() / 4 < 9100, "{} bytes", last.len());

    // Refused, though nobody had told how large the window is.
    let model = big(ScriptedModel::new().context_value(Value::Null))
        .exceeds_context(9001, 8192)
        .says("Half of it.");
    let desk = Desk::new(model.start().await, agent_with(turns)).await;
    let outcome = desk.work("print numbers").await;
    assert_eq!(
        (outcome.status, outcome.response.as_str()),
        (RunStatus::Limit, "Half of it.")
    );
    let bodies = desk.model.raw_bodies();
    assert!(bodies[3].len() < bodies[2].len(), "it was made shorter");
}

fn agent_with(options: agent::Options) -> Wishes {
    Wishes {
        agent: options,
        ..agent(agent::Options::default())
    }
}

/// A summary is an answer too: it was asked for when the budget had nothing left for it, and was
/// free where nobody counts.
#[tokio::test]
async fn a_summary_counts_and_is_not_asked_for_where_the_budget_has_no_room_for_it() {
    let filled = || prints(ScriptedModel::new().context(9100).sums_up(SUMMARY), 12);
    let asked = |desk: &Desk| {
        desk.model
            .raw_bodies()
            .iter()
            .filter(|body| asks_to_sum_up(body))
            .count()
    };
    let options = agent::Options {
        keep_turns: 100,
        ..agent::Options::default()
    };
    let desk = Desk::new(filled().says("Done.").start().await, agent(options.clone())).await;
    let free = desk.work("print numbers").await;
    assert!(asked(&desk) > 0, "{:?}", desk.kinds());
    let told: u64 = desk
        .kinds()
        .iter()
        .filter_map(|kind| {
            if let Kind::AssistantMessage { usage, .. } = kind {
                Some(usage.total())
            } else {
                None
            }
        })
        .sum();
    assert!(
        free.usage.total() > told,
        "{} is more than the {told} of the answers",
        free.usage.total()
    );

    // Enough until the window is full, and not for a summary then.
    let before = desk
        .kinds()
        .iter()
        .take_while(|kind| !makes_room(kind))
        .filter_map(|kind| {
            if let Kind::AssistantMessage { usage, .. } = kind {
                Some(usage.total())
            } else {
                None
            }
        })
        .sum::<u64>();
    let desk = Desk::new(
        filled().says("Done.").start().await,
        agent(agent::Options {
            max_tokens: before + 7000,
            ..options
        }),
    )
    .await;
    desk.work("print numbers").await;
    assert_eq!(asked(&desk), 0, "{before}");
    let says = |kind: &Kind| matches!(kind, Kind::Warning { message } if message.contains("is too small for the model to summarize"));
    assert!(desk.kinds().iter().any(says), "{:?}", desk.kinds());
}
