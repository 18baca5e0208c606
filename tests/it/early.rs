//! Calls that only read begin while the model still writes, and nobody can tell by what is
//! recorded.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;

use podbay::agent::Failure;
use podbay::agent::Outcome;
use podbay::event::Answer;
use podbay::event::CallStatus;
use podbay::event::Kind;
use podbay::event::RunStatus;
use podbay::llm;
use podbay::llm::Message;
use podbay::policy;
use podbay::policy::Mode;
use podbay::sandbox;
use podbay::sandbox::link;
use podbay::sandbox::link::Link;
use podbay::session::ResumeState;
use podbay::tools;
use podbay::tools::HookOptions;
use podbay::tools::Later;
use podbay::tools::OnChunk;
use podbay::tools::Workspace;
use podbay::wire::Call;
use podbay::wire::Fault;
use podbay::wire::Output;
use serde_json::Value;
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::support::Desk;
use crate::support::ScriptedModel;
use crate::support::desk::Wishes;
use crate::support::guest::PATIENCE;
use crate::support::guest::TestGuest;

/// Long enough for a call that should wait to be caught running.
const A_WHILE: Duration = Duration::from_millis(150);

fn delta(delta: &Value) -> String {
    format!(
        "data: {}\n\n",
        json!({"choices": [{"index": 0, "delta": delta}]})
    )
}

/// A call, in two pieces; the first answer's have the ids `c0`, `c1`…
fn call(index: u32, name: &str, arguments: &Value) -> String {
    let text = arguments.to_string();
    let (first, second) = text.split_at(text.len() / 2);
    let begun = json!({"index": index, "id": format!("c{index}"), "function": {"name": name, "arguments": first}});
    delta(&json!({ "tool_calls": [begun] })) + &more(index, second)
}

fn more(index: u32, arguments: &str) -> String {
    delta(&json!({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]}))
}

fn read(index: u32, path: &str) -> String {
    call(index, "read_file", &json!({ "path": path }))
}

fn end() -> String {
    format!(
        "data: {}\n\ndata: [DONE]\n\n",
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    )
}

/// An answer in two halves, and the word to continue the second.
fn halves(first: &[String], second: &[String]) -> (ScriptedModel, CancellationToken) {
    let go_on = CancellationToken::new();
    (
        ScriptedModel::new().raw_sse_in_halves(&first.concat(), &go_on, &second.concat()),
        go_on,
    )
}

async fn desk(model: ScriptedModel, wishes: Wishes) -> Arc<Desk> {
    let desk = Desk::new(model.start().await, wishes).await;
    for name in ["a", "b"] {
        std::fs::write(desk.guest.path(name), format!("this is {name}\n")).expect("written");
    }
    Arc::new(desk)
}

async fn over(
    inner: impl FnOnce(Link) -> Arc<dyn Workspace>,
    model: ScriptedModel,
    wishes: Wishes,
) -> Arc<Desk> {
    let guest = TestGuest::start().await;
    let inner = inner(guest.link.clone());
    Arc::new(Desk::over(guest, inner, model.start().await, wishes).await)
}

fn work(desk: &Arc<Desk>) -> JoinHandle<Outcome> {
    let desk = Arc::clone(desk);
    tokio::spawn(async move { desk.work("look").await })
}

async fn until(what: impl Fn() -> bool) {
    let waiting = async {
        while !what() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting)
        .await
        .expect("comes to pass");
}

/// Returns what is said of calls and answers, in order.
fn said(desk: &Desk) -> Vec<String> {
    let word = |kind| match kind {
        Kind::AssistantMessage { calls, .. } if !calls.is_empty() => Some("answer".to_owned()),
        Kind::PermissionAsked { call, .. } => Some(format!("asked {call}")),
        Kind::CallDecided { call, .. } => Some(format!("decided {call}")),
        Kind::CallStarted { call, .. } => Some(format!("started {call}")),
        Kind::CallFinished { call, .. } => Some(format!("finished {call}")),
        _ => None,
    };
    desk.kinds().into_iter().filter_map(word).collect()
}

fn statuses(desk: &Desk) -> Vec<CallStatus> {
    desk.kinds()
        .into_iter()
        .filter_map(|kind| {
            if let Kind::CallFinished { status, .. } = kind {
                Some(status)
            } else {
                None
            }
        })
        .collect()
}

#[tokio::test]
async fn a_read_begins_while_the_model_still_writes_and_is_recorded_behind_its_answer() {
    // The same twice is no trouble, and what begins late is no different.
    let (model, go_on) = halves(&[read(0, "a"), read(1, "a")], &[read(2, "b"), end()]);
    let desk = desk(model.says("Done."), Wishes::default()).await;
    let working = work(&desk);
    until(|| desk.reached().len() == 2).await;
    tokio::time::sleep(A_WHILE).await;
    assert!(
        !go_on.is_cancelled() && said(&desk).is_empty(),
        "the answer comes first: {:?}",
        said(&desk)
    );
    go_on.cancel();
    let outcome = working.await.expect("no panic");
    assert_eq!(
        (
            outcome.status,
            outcome.tool_calls,
            outcome.n_succeeded,
            outcome.turns
        ),
        (RunStatus::Completed, 3, 3, 2)
    );
    assert_eq!(desk.reached().len(), 3, "each runs once");
    let results = desk.results(1);
    for (result, name) in results.iter().zip(["a", "a", "b"]) {
        assert!(
            result.contains(&format!("this is {name}")),
            "in the order of the calls: {results:?}"
        );
    }
    let said = said(&desk);
    assert_eq!((said[0].as_str(), said.len()), ("answer", 10));
    for id in ["c0", "c1", "c2"] {
        let at = |what: &str| {
            said.iter()
                .position(|word| *word == format!("{what} {id}"))
                .expect("said")
        };
        assert!(
            at("decided") < at("started") && at("started") < at("finished"),
            "{said:?}"
        );
    }
    let began = |event: &podbay::event::Event| matches!(&event.kind, Kind::CallStarted { call, .. } if call == "c0");
    let answered =
        |event: &podbay::event::Event| matches!(&event.kind, Kind::AssistantMessage { .. });
    let events = desk.events();
    let at = |which: &dyn Fn(&podbay::event::Event) -> bool| {
        events.iter().find(|event| which(event)).expect("there").at
    };
    assert!(
        at(&began) < at(&answered),
        "it has the time at which it began"
    );
    let waited = |kind: &Kind| matches!(kind, Kind::CallFinished { duration_ms, .. } if Duration::from_millis(*duration_ms) >= A_WHILE);
    assert!(
        !desk.kinds().iter().any(waited),
        "the model's time to write is not the call's"
    );
    desk.model.assert_append_only();
}

#[tokio::test]
async fn a_log_that_ends_anywhere_is_gone_on_with_after_calls_that_began_early() {
    let (model, go_on) = halves(&[read(0, "a"), read(1, "b")], &[end()]);
    let desk = desk(model.says("Done."), Wishes::default()).await;
    let working = work(&desk);
    until(|| desk.reached().len() == 2).await;
    go_on.cancel();
    working.await.expect("no panic");
    let durable: Vec<_> = desk
        .events()
        .into_iter()
        .filter(podbay::event::Event::durable)
        .collect();
    let whole = ResumeState::of(&durable);
    assert!(whole.open.is_empty());
    let told = |message: &Message| {
        if let Message::ToolResult { text, .. } = message {
            Some(text.clone())
        } else {
            None
        }
    };
    assert_eq!(
        whole
            .history
            .messages()
            .filter_map(told)
            .collect::<Vec<_>>(),
        desk.results(1)
    );
    let answered = durable
        .iter()
        .position(|event| matches!(event.kind, Kind::AssistantMessage { .. }))
        .expect("an answer");
    for end in 0..=durable.len() {
        let open = ResumeState::of(&durable[..end]).open;
        let finished = durable[..end]
            .iter()
            .filter(|event| matches!(event.kind, Kind::CallFinished { .. }))
            .count();
        assert_eq!(
            open.len(),
            if end > answered { 2 - finished } else { 0 },
            "{end}"
        );
    }
}

#[tokio::test]
async fn a_read_behind_a_write_sees_what_was_written() {
    let write = call(
        1,
        "write_file",
        &json!({"path": "new", "content": "written\n"}),
    );
    let (model, go_on) = halves(&[read(0, "a"), write, read(2, "new")], &[end()]);
    let desk = desk(model.says("Done."), Wishes::default()).await;
    let working = work(&desk);
    until(|| !desk.reached().is_empty()).await;
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(desk.reached(), ["read_file"], "what comes before the write");
    assert!(!desk.guest.path("new").exists());
    go_on.cancel();
    assert_eq!(working.await.expect("no panic").n_succeeded, 3);
    assert_eq!(desk.reached(), ["read_file", "write_file", "read_file"]);
    assert!(
        desk.results(1)[2].contains("written"),
        "{:?}",
        desk.results(1)
    );
}

#[tokio::test]
async fn a_question_to_the_person_and_what_stands_behind_it_wait_for_the_answer_to_end() {
    let question = call(1, "ask_user", &json!({"question": "Which one?"}));
    let (model, go_on) = halves(&[read(0, "a"), question, read(2, "b")], &[end()]);
    let desk = desk(model.says("Done."), Wishes::default()).await;
    let working = work(&desk);
    until(|| !desk.reached().is_empty()).await;
    tokio::time::sleep(A_WHILE).await;
    let is_asked = || {
        desk.kinds()
            .iter()
            .any(|kind| matches!(kind, Kind::QuestionAsked { .. }))
    };
    assert!(
        !is_asked() && desk.reached().len() == 1,
        "{:?}",
        desk.reached()
    );
    go_on.cancel();
    assert_eq!(working.await.expect("no panic").tool_calls, 3);
    assert!(
        is_asked() && desk.reached().len() == 2,
        "{:?}",
        desk.reached()
    );
}

#[tokio::test]
async fn what_is_asked_about_denied_or_told_to_a_hook_waits_for_the_answer_to_end() {
    let rules = |rule: &str| vec![rule.to_owned()];
    let asked = policy::Options {
        ask: rules("read_file(a)"),
        ..policy::Options::default()
    };
    let denied = policy::Options {
        deny: rules("read_file(a)"),
        ..policy::Options::default()
    };
    let hooks: HookOptions =
        toml::from_str("[[pre_tool_use]]\nrun = 'true'\nif = { tool = 'bash' }").expect("hooks");
    for (wishes, early, expected) in [
        (
            Wishes {
                mode: Mode::Ask,
                policy: asked,
                answers: vec![Answer::Allow.into()],
                ..Wishes::default()
            },
            1,
            CallStatus::Ok,
        ),
        (
            Wishes {
                policy: denied,
                ..Wishes::default()
            },
            1,
            CallStatus::Denied,
        ),
        (
            Wishes {
                hooks,
                ..Wishes::default()
            },
            0,
            CallStatus::Ok,
        ),
    ] {
        let is_asked = !wishes.answers.is_empty();
        let (model, go_on) = halves(
            &[read(0, "a"), call(1, "glob", &json!({"pattern": "*"}))],
            &[end()],
        );
        let desk = desk(model.says("Done."), wishes).await;
        let working = work(&desk);
        until(|| desk.reached().len() >= early).await;
        tokio::time::sleep(A_WHILE).await;
        assert_eq!(desk.reached(), ["glob"][..early], "before the answer's end");
        assert!(
            said(&desk).is_empty(),
            "nobody is asked while the model speaks: {:?}",
            said(&desk)
        );
        go_on.cancel();
        assert_eq!(working.await.expect("no panic").tool_calls, 2);
        let first = desk.kinds().into_iter().find_map(|kind| match kind {
            Kind::CallFinished { call, status, .. } if call == "c0" => Some(status),
            _ => None,
        });
        assert_eq!(first, Some(expected));
        assert_eq!(said(&desk).iter().any(|word| word == "asked c0"), is_asked);
        assert!(
            desk.results(1)[1].contains('b'),
            "in the order of the calls"
        );
    }
}

#[tokio::test]
async fn what_a_broken_answer_takes_back_was_never_said() {
    let llm = llm::Options {
        retries: 3,
        ..llm::Options::default()
    };
    // So much that it is kept to be read in pages.
    let all = call(0, "glob", &json!({"pattern": "*"}));
    let fill = |desk: &Desk| {
        (0..150).for_each(|n| {
            std::fs::write(desk.guest.path(&format!("{n:0>200}")), "").expect("written");
        });
    };
    let (model, go_on) = halves(std::slice::from_ref(&all), &[]);
    let desk = desk(
        model.says("Again."),
        Wishes {
            llm,
            ..Wishes::default()
        },
    )
    .await;
    fill(&desk);
    let working = work(&desk);
    until(|| !desk.reached().is_empty()).await;
    tokio::time::sleep(A_WHILE).await;
    go_on.cancel();
    let outcome = working.await.expect("no panic");
    // It only read and was undone, so all of the answer can be asked for again.
    assert_eq!(
        (
            outcome.status,
            outcome.response.as_str(),
            outcome.tool_calls
        ),
        (RunStatus::Completed, "Again.", 0)
    );
    assert!(said(&desk).is_empty(), "{:?}", said(&desk));
    assert_eq!(desk.model.requests().len(), 2);
    assert!(
        desk.artifacts.page("c0", 1, 1).is_err(),
        "nothing of it is kept"
    );

    let whole = self::desk(
        ScriptedModel::new().raw_sse(&(all + &end())),
        Wishes::default(),
    )
    .await;
    fill(&whole);
    whole.work("look").await;
    assert!(
        whole.artifacts.page("c0", 1, 1).is_ok(),
        "as it is where the answer holds it"
    );
}

#[tokio::test]
async fn a_broken_answer_of_which_nothing_began_is_tried_again() {
    let llm = llm::Options {
        retries: 1,
        ..llm::Options::default()
    };
    let bash = call(0, "bash", &json!({"command": "echo once >> log"}));
    let model = ScriptedModel::new()
        .raw_sse(&(bash + &read(1, "a")))
        .raw_sse(&(read(0, "a") + &end()))
        .says("Done.");
    let desk = desk(
        model,
        Wishes {
            llm,
            ..Wishes::default()
        },
    )
    .await;
    let outcome = desk.work("look").await;
    assert_eq!(
        (outcome.status, outcome.tool_calls, desk.reached()),
        (RunStatus::Completed, 1, vec!["read_file".to_owned()])
    );
}

#[tokio::test]
async fn a_call_that_gets_longer_is_carried_out_as_it_is_in_the_end() {
    let (model, go_on) = halves(&[read(0, "a"), read(1, "b")], &[more(0, " "), end()]);
    let desk = desk(model.says("Done."), Wishes::default()).await;
    let working = work(&desk);
    until(|| desk.reached().len() == 2).await;
    go_on.cancel();
    assert_eq!(working.await.expect("no panic").n_succeeded, 2);
    let arguments = |kind| {
        if let Kind::CallStarted { arguments, .. } = kind {
            Some(arguments)
        } else {
            None
        }
    };
    let begun: Vec<String> = desk.kinds().into_iter().filter_map(arguments).collect();
    assert!(
        begun.len() == 2 && begun.contains(&"{\"path\":\"a\"} ".to_owned()),
        "{begun:?}"
    );
    assert_eq!(said(&desk).len(), 7, "of what was undone nothing is said");
    assert_eq!(desk.reached().len(), 3);
}

/// Answers nothing until it is cancelled.
#[derive(Default)]
struct Deaf {
    ended: AtomicUsize,
}

impl Workspace for Deaf {
    fn call<'a>(
        &'a self,
        _call: Call,
        _on_chunk: OnChunk<'a>,
        cancel: &'a CancellationToken,
        _deadline: Duration,
    ) -> Later<'a, Result<Output, sandbox::Error>> {
        Box::pin(async move {
            cancel.cancelled().await;
            self.ended.fetch_add(1, Ordering::SeqCst);
            Ok(Output::Fault(Fault::Cancelled))
        })
    }
}

#[tokio::test]
async fn a_press_ends_what_began_early() {
    // While the model writes nothing was said yet; once the answer is there it is a call like any
    // other.
    for is_whole in [false, true] {
        let (model, go_on) = halves(&[read(0, "a"), read(1, "b")], &[end()]);
        let deaf = Arc::<Deaf>::default();
        let inner = Arc::clone(&deaf);
        let desk = over(|_| inner, model.says("Stopped."), Wishes::default()).await;
        let working = work(&desk);
        until(|| desk.reached().len() == 2).await;
        if is_whole {
            go_on.cancel();
            until(|| said(&desk).contains(&"started c1".to_owned())).await;
        }
        desk.interrupt.press();
        let outcome = working.await.expect("no panic");
        assert_eq!(
            deaf.ended.load(Ordering::SeqCst),
            2,
            "both were told to end, and waited for"
        );
        if is_whole {
            assert_eq!(
                (outcome.status, outcome.response.as_str()),
                (RunStatus::Completed, "Stopped.")
            );
            assert_eq!(statuses(&desk), [CallStatus::Cancelled; 2]);
        } else {
            assert_eq!(
                (outcome.status, said(&desk)),
                (RunStatus::Interrupted, Vec::new())
            );
            go_on.cancel();
        }
    }
}

/// Loses the sandbox with the first call.
struct Lost;

impl Workspace for Lost {
    fn call<'a>(
        &'a self,
        _call: Call,
        _on_chunk: OnChunk<'a>,
        _cancel: &'a CancellationToken,
        _deadline: Duration,
    ) -> Later<'a, Result<Output, sandbox::Error>> {
        let doing = "read a".to_owned();
        Box::pin(std::future::ready(Err(sandbox::Error::Link(
            link::Error::CallEnded { doing },
        ))))
    }
}

#[tokio::test]
async fn a_sandbox_that_is_lost_early_fails_the_task_as_it_does_later() {
    for is_early in [true, false] {
        let (model, go_on) = if is_early {
            halves(&[read(0, "a")], &[end()])
        } else {
            halves(&[], &[read(0, "a"), end()])
        };
        let desk = over(|_| Arc::new(Lost), model, Wishes::default()).await;
        let working = work(&desk);
        if is_early {
            until(|| !desk.reached().is_empty()).await;
            assert!(said(&desk).is_empty());
        }
        go_on.cancel();
        let outcome = working.await.expect("no panic");
        assert!(
            matches!(outcome.failure, Some(Failure::Sandbox(_))),
            "{outcome:?}"
        );
        assert_eq!(
            said(&desk),
            ["answer", "decided c0", "started c0", "finished c0"]
        );
        assert_eq!(statuses(&desk), [CallStatus::Failed]);
    }
}

/// Counts how many are there at once, and lets none go before the word.
struct Counted {
    link: Link,
    open: CancellationToken,
    inside: AtomicUsize,
    together: AtomicUsize,
}

impl Workspace for Counted {
    fn call<'a>(
        &'a self,
        call: Call,
        on_chunk: OnChunk<'a>,
        cancel: &'a CancellationToken,
        deadline: Duration,
    ) -> Later<'a, Result<Output, sandbox::Error>> {
        Box::pin(async move {
            let n = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
            self.together.fetch_max(n, Ordering::SeqCst);
            self.open.cancelled().await;
            tokio::time::sleep(Duration::from_millis(5)).await;
            let output = Workspace::call(&self.link, call, on_chunk, cancel, deadline).await;
            self.inside.fetch_sub(1, Ordering::SeqCst);
            output
        })
    }
}

/// LOOP: eight at once where nothing is set.
#[tokio::test]
async fn of_many_reads_eight_run_at_once() {
    let reads = (0..10).map(|n| {
        (
            "read_file",
            serde_json::json!({"path": if n % 2 == 0 { "a" } else { "b" }}),
        )
    });
    let open = CancellationToken::new();
    let (inside, together) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let guest = TestGuest::start().await;
    let counted = Arc::new(Counted {
        link: guest.link.clone(),
        open: open.clone(),
        inside,
        together,
    });
    let inner = Arc::clone(&counted);
    let model = ScriptedModel::new()
        .calls_many(reads)
        .says("Done.")
        .start()
        .await;
    let desk = Arc::new(Desk::over(guest, inner, model, Wishes::default()).await);
    let working = work(&desk);
    until(|| counted.inside.load(Ordering::SeqCst) == 8).await;
    tokio::time::sleep(A_WHILE).await;
    open.cancel();
    assert_eq!(working.await.expect("no panic").tool_calls, 10);
    assert_eq!(
        (
            counted.together.load(Ordering::SeqCst),
            desk.reached().len()
        ),
        (8, 10)
    );
}

#[tokio::test]
async fn not_more_run_at_once_than_the_settings_say_whenever_they_begin() {
    let (model, go_on) = halves(
        &[read(0, "a"), read(1, "b"), read(2, "a")],
        &[read(3, "b"), read(4, "a"), end()],
    );
    let tools = tools::Options {
        parallel: 2,
        ..tools::Options::default()
    };
    let open = CancellationToken::new();
    let (inside, together) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let guest = TestGuest::start().await;
    let counted = Arc::new(Counted {
        link: guest.link.clone(),
        open: open.clone(),
        inside,
        together,
    });
    let inner = Arc::clone(&counted);
    let desk = Arc::new(
        Desk::over(
            guest,
            inner,
            model.says("Done.").start().await,
            Wishes {
                tools,
                ..Wishes::default()
            },
        )
        .await,
    );
    let working = work(&desk);
    until(|| counted.inside.load(Ordering::SeqCst) == 2).await;
    go_on.cancel();
    until(|| said(&desk).contains(&"answer".to_owned())).await;
    tokio::time::sleep(A_WHILE).await;
    open.cancel();
    assert_eq!(working.await.expect("no panic").tool_calls, 5);
    assert_eq!(
        (
            counted.together.load(Ordering::SeqCst),
            desk.reached().len()
        ),
        (2, 5)
    );
}
