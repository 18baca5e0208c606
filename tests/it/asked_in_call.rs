//! A call that waits in its middle for the user: what they are asked, and what becomes of the
//! call by each answer, or by none.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use podbay::event::Answer;
use podbay::event::Answered;
use podbay::event::CallStatus;
use podbay::event::Capability;
use podbay::event::Decision;
use podbay::event::Kind;
use podbay::event::LimitKind;
use podbay::event::RunStatus;
use podbay::event::Seconds;
use podbay::policy;
use podbay::policy::Mode;
use podbay::sandbox;
use podbay::sandbox::link::Asks;
use podbay::sandbox::link::Link;
use podbay::tools::Later;
use podbay::tools::OnChunk;
use podbay::tools::Workspace;
use podbay::wire::AskedProgram;
use podbay::wire::AskedWrite;
use podbay::wire::Because;
use podbay::wire::Call;
use podbay::wire::CommandEnded;
use podbay::wire::Denied;
use podbay::wire::End;
use podbay::wire::ExecGate;
use podbay::wire::Output;
use podbay::wire::WriteChange;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::ScriptedModel;
use crate::support::desk::Desk;
use crate::support::desk::Wishes;
use crate::support::guest::TestGuest;

/// A guest whose commands want to write these files, one after the other, and fail without one of
/// them.
struct Writing {
    inner: Link,
    paths: Vec<&'static str>,
    /// Only those that are to be held at their first write.
    only_gated: bool,
}

/// What a guest asks of a write of `make test`; names with a dot in front are protected.
fn held(path: &str) -> AskedProgram {
    AskedProgram {
        argv: vec!["make".into(), "test".into()],
        truncated: false,
        directory: "/workspace".into(),
        file: "/usr/bin/make".into(),
        rule: String::new(),
        write: Some(AskedWrite {
            path: path.into(),
            change: WriteChange::Write,
            protected: path.starts_with('.'),
        }),
    }
}

impl Workspace for Writing {
    fn call<'a>(
        &'a self,
        call: Call,
        on_chunk: OnChunk<'a>,
        cancel: &'a CancellationToken,
        deadline: Duration,
    ) -> Later<'a, Result<Output, sandbox::Error>> {
        Workspace::call(&self.inner, call, on_chunk, cancel, deadline)
    }

    fn call_asking<'a>(
        &'a self,
        call: Call,
        _on_chunk: OnChunk<'a>,
        asks: &'a dyn Asks,
        cancel: &'a CancellationToken,
        _deadline: Duration,
    ) -> Later<'a, Result<Output, sandbox::Error>> {
        let is_gated = matches!(&call, Call::Bash(bash) if bash.write_gate.is_some());
        let asks_about = is_gated || !self.only_gated;
        Box::pin(async move {
            let mut denied = Vec::new();
            for path in self.paths.iter().filter(|_| asks_about) {
                let program = held(path);
                let argv = program.argv.clone();
                let go_on = tokio::select! {
                    biased;
                    go_on = asks.ask(program) => go_on,
                    () = cancel.cancelled() => false,
                };
                if !go_on {
                    denied.push(Denied {
                        argv,
                        truncated: false,
                        count: 1,
                        because: Because::Write {
                            path: (*path).into(),
                        },
                        killed: false,
                    });
                }
            }
            let code = i32::from(!denied.is_empty());
            Ok(Output::Command(CommandEnded {
                denied: denied.into(),
                ..CommandEnded::plain(End::Exited { code })
            }))
        })
    }

    fn exec_gate(&self) -> Later<'_, ExecGate> {
        Box::pin(std::future::ready(ExecGate::Works))
    }
}

/// Has a model call a command that wants to write these files.
async fn writing(paths: &[&'static str], wishes: Wishes) -> Desk {
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "make test"}))
        .says("Done.")
        .start()
        .await;
    let guest = TestGuest::start().await;
    let workspace = Writing {
        inner: guest.link.clone(),
        paths: paths.to_vec(),
        only_gated: false,
    };
    Desk::over(guest, Arc::new(workspace), model, wishes).await
}

fn answers(answers: &[Answer]) -> Wishes {
    Wishes {
        answers: answers.iter().map(|&answer| answer.into()).collect(),
        ..Wishes::default()
    }
}

/// What was asked, as the user reads it.
fn asked(desk: &Desk) -> Vec<String> {
    let wanted = |kind| match kind {
        Kind::PermissionAsked { capabilities, .. } => {
            capabilities.iter().find_map(Capability::wanted)
        }
        _ => None,
    };
    desk.kinds().into_iter().filter_map(wanted).collect()
}

/// The denials that came when the call had begun, each right before its end.
fn denials(desk: &Desk) -> Vec<String> {
    let kinds = desk.kinds();
    let started = kinds
        .iter()
        .position(|kind| matches!(kind, Kind::CallStarted { .. }))
        .expect("started");
    let finished = kinds
        .iter()
        .position(|kind| matches!(kind, Kind::CallFinished { .. }))
        .expect("finished");
    let denied = |kind: &Kind| match kind {
        Kind::CallDecided {
            decision: Decision::Deny,
            reason,
            ..
        } => Some(reason.clone()),
        _ => None,
    };
    assert!(
        kinds[..started]
            .iter()
            .chain(&kinds[finished..])
            .all(|kind| denied(kind).is_none()),
        "{kinds:?}"
    );
    kinds[started..finished].iter().filter_map(denied).collect()
}

fn status(desk: &Desk) -> CallStatus {
    let status = |kind| {
        if let Kind::CallFinished { status, .. } = kind {
            Some(status)
        } else {
            None
        }
    };
    desk.kinds()
        .into_iter()
        .find_map(status)
        .expect("a call has ended")
}

#[tokio::test]
async fn a_write_is_asked_about_in_words_and_a_yes_lets_the_call_go_on() {
    let desk = writing(
        &["build/x.o", ".env"],
        answers(&[Answer::Allow, Answer::AllowAlways]),
    )
    .await;
    let outcome = desk.work("make it").await;
    assert_eq!(
        (outcome.status, status(&desk)),
        (RunStatus::Completed, CallStatus::Ok)
    );
    assert_eq!(
        asked(&desk),
        [
            "`make test` wants to write build/x.o",
            "`make test` wants to write .env, which is a protected name"
        ]
    );
    let answered = |kind: &Kind| {
        matches!(
            kind,
            Kind::PermissionAnswered {
                answer: Answer::Allow,
                ..
            }
        )
    };
    assert_eq!(
        desk.kinds().iter().filter(|kind| answered(kind)).count(),
        2,
        "nothing lasts beyond the call"
    );
}

/// Issue 33: a yes at the first write that lasts covers the command that waits for it.
#[tokio::test]
async fn a_yes_for_the_session_lets_the_same_command_write_from_then_on() {
    let bash = |command: &str| json!({ "command": command });
    let model = ScriptedModel::new()
        .calls("bash", bash("make test"))
        .calls("bash", bash("make test V=1"))
        .calls("bash", bash("make install"))
        .says("Done.")
        .start()
        .await;
    let guest = TestGuest::start().await;
    let workspace = Writing {
        inner: guest.link.clone(),
        paths: vec!["x.o"],
        only_gated: true,
    };
    let wishes = Wishes {
        mode: Mode::Ask,
        ..answers(&[Answer::AllowSession, Answer::Allow])
    };
    let desk = Desk::over(guest, Arc::new(workspace), model, wishes).await;
    let outcome = desk.work("make it").await;
    assert_eq!(outcome.status, RunStatus::Completed);
    let answered: Vec<Answer> = desk
        .kinds()
        .into_iter()
        .filter_map(|kind| match kind {
            Kind::PermissionAnswered { answer, .. } => Some(answer),
            _ => None,
        })
        .collect();
    assert_eq!(
        answered,
        [Answer::AllowSession, Answer::Allow],
        "`make install` is another command"
    );
}

#[tokio::test]
async fn a_refused_write_is_a_denial_like_one_that_comes_before_a_call() {
    let no = Answered {
        answer: Answer::Deny,
        reason: Some("not\nthere".to_owned()),
    };
    let desk = writing(
        &["build/x.o"],
        Wishes {
            answers: vec![no],
            ..Wishes::default()
        },
    )
    .await;
    let outcome = desk.work("make it").await;
    assert_eq!(
        (outcome.status, status(&desk)),
        (RunStatus::Blocked, CallStatus::Denied)
    );
    assert_eq!(
        denials(&desk),
        [
            "`make test` was denied a write: it was about to change build/x.o, which the user did not allow"
        ]
    );
    let told = desk.results(1).concat();
    assert!(
        told.contains("about to change build/x.o")
            && told.contains("[the user said no: not there]"),
        "{told}"
    );
    assert_eq!(outcome.denied, ["bash {\"command\":\"make test\"}"]);
}

#[tokio::test]
async fn where_nobody_is_there_a_write_is_refused_at_once_and_that_is_told() {
    let desk = writing(
        &["build/x.o"],
        Wishes {
            alone: true,
            ..Wishes::default()
        },
    )
    .await;
    let outcome = desk.work("make it").await;
    assert_eq!(
        (outcome.status, asked(&desk).len()),
        (RunStatus::Blocked, 0)
    );
    let told = denials(&desk).concat();
    assert!(
        told.contains("build/x.o")
            && told.contains("no user can be asked")
            && told.contains("`--mode auto`"),
        "{told}"
    );
    assert!(
        desk.results(1).concat().contains("no user can be asked"),
        "{:?}",
        desk.results(1)
    );
}

#[tokio::test]
async fn who_leaves_in_the_middle_of_a_call_ends_it_and_the_session() {
    let desk = writing(&["a", "b"], answers(&[Answer::Quit])).await;
    let outcome = desk.work("make it").await;
    assert_eq!(
        (outcome.status, status(&desk)),
        (RunStatus::Interrupted, CallStatus::Cancelled)
    );
    assert_eq!(desk.model.requests().len(), 1);
}

/// Has a model run a script in mode ask, whose `echo asked` a gate wants a word for.
async fn scripted(script: &str, wishes: Wishes) -> Desk {
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "sh run.sh"}))
        .says("Done.")
        .start()
        .await;
    let strings = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    let (allow, gate, deny) = (
        strings(&["bash(sh run.sh)"]),
        strings(&["bash(echo asked*)"]),
        strings(&["bash(touch *)"]),
    );
    let policy = policy::Options {
        allow,
        gate,
        deny,
        ..policy::Options::default()
    };
    let desk = Desk::new(
        model,
        Wishes {
            mode: Mode::Ask,
            policy,
            ..wishes
        },
    )
    .await;
    fs::write(desk.guest.path("run.sh"), script).expect("written");
    desk
}

#[tokio::test]
async fn a_rule_that_is_met_in_the_middle_denies_the_call_whatever_comes_after() {
    let desk = scripted("/bin/touch made\necho continued\n", Wishes::default()).await;
    let outcome = desk.work("run it").await;
    assert_eq!(
        (
            outcome.status,
            status(&desk),
            desk.guest.path("made").exists()
        ),
        (RunStatus::Blocked, CallStatus::Denied, false)
    );
    assert_eq!(
        denials(&desk),
        ["`/bin/touch made` was not run: the rule `bash(touch *)` denies it"]
    );
    assert!(
        desk.results(1).concat().contains("continued\n"),
        "{:?}",
        desk.results(1)
    );
    // The same commands without what the rule speaks of.
    let desk = scripted("echo continued\n", Wishes::default()).await;
    assert_eq!(
        (desk.work("run it").await.status, denials(&desk).len()),
        (RunStatus::Completed, 0)
    );
}

#[tokio::test]
async fn two_questions_in_a_row_are_answered_each_for_itself() {
    let desk = scripted(
        "/bin/echo asked one\n/bin/echo asked two\n",
        answers(&[Answer::Allow, Answer::Deny]),
    )
    .await;
    desk.work("run it").await;
    assert_eq!(asked(&desk).len(), 2);
    let told = desk.results(1).concat();
    assert!(
        told.contains("asked one\n") && told.contains("`/bin/echo asked two` was not run"),
        "{told}"
    );
    let denials = denials(&desk);
    assert!(
        denials.len() == 1
            && denials[0].contains("asked two")
            && denials[0].contains("requires approval"),
        "{denials:?}"
    );
}

#[tokio::test]
async fn who_never_answers_is_waited_for_until_the_time_of_the_run_is_over() {
    let agent = podbay::agent::Options {
        timeout: Seconds::new(2),
        ..podbay::agent::Options::default()
    };
    let desk = scripted(
        "/bin/echo asked one\ntouch made\n",
        Wishes {
            agent,
            ..Wishes::default()
        },
    )
    .await;
    let outcome = desk.work("run it").await;
    assert_eq!(
        (outcome.status, outcome.limit, status(&desk)),
        (
            RunStatus::Limit,
            Some(LimitKind::Time),
            CallStatus::Cancelled
        )
    );
    assert_eq!(asked(&desk).len(), 1);
    assert!(
        !desk
            .kinds()
            .iter()
            .any(|kind| matches!(kind, Kind::PermissionAnswered { .. }))
    );
}

#[tokio::test]
async fn an_answer_to_a_call_that_is_given_up_is_one_to_nothing() {
    let desk = scripted(
        "/bin/echo asked one > said\n/bin/echo free > free\n",
        answers(&[Answer::Allow]),
    )
    .await;
    *desk
        .before_answer
        .lock()
        .expect("no test panics while it holds this") = Some(desk.interrupt.clone());
    let outcome = desk.work("run it").await;
    assert_eq!(
        (outcome.status, status(&desk), asked(&desk).len()),
        (RunStatus::Completed, CallStatus::Cancelled, 1)
    );
    assert!(
        !desk
            .kinds()
            .iter()
            .any(|kind| matches!(kind, Kind::PermissionAnswered { .. }))
    );
    assert!(
        fs::read_to_string(desk.guest.path("said"))
            .unwrap_or_default()
            .is_empty()
            && !desk.guest.path("free").exists()
    );
}

#[tokio::test]
async fn a_question_stands_while_hundreds_of_others_start_and_all_of_them_run() {
    let script = "(for n in $(seq 300); do /bin/true $n & done; wait; echo storm over) &\n/bin/echo asked one\nwait\n";
    let desk = scripted(script, answers(&[Answer::Allow])).await;
    desk.work("run it").await;
    let told = desk.results(1).concat();
    assert!(
        told.contains("asked one\n") && told.contains("storm over\n"),
        "{told}"
    );
    let n_started = |kind: Kind| match kind {
        Kind::CallRan {
            programs, n_more, ..
        } => Some(programs.iter().map(|program| program.count).sum::<u64>() + n_more),
        _ => None,
    };
    // With the script itself, `seq` and the one that was asked about.
    assert_eq!(desk.kinds().into_iter().find_map(n_started), Some(303));
    assert_eq!(asked(&desk).len(), 1);
}
