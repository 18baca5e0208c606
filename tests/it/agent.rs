//! The loop: what the model says becomes calls, what came of them goes back, until an end.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;

use podbay::agent;
use podbay::agent::Failure;
use podbay::event::Answer;
use podbay::event::Answered;
use podbay::event::ByteSize;
use podbay::event::CallStatus;
use podbay::event::Kind;
use podbay::event::LimitKind;
use podbay::event::RunStatus;
use podbay::event::Seconds;
use podbay::policy;
use podbay::policy::Autonomy;
use podbay::policy::Mode;
use podbay::sandbox;
use podbay::sandbox::link::Link;
use podbay::tools::FileChangeKind;
use podbay::tools::Later;
use podbay::tools::OnChunk;
use podbay::tools::Workspace;
use podbay::wire::Call;
use podbay::wire::Output;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::Desk;
use crate::support::ScriptedModel;
use crate::support::desk::Wishes;
use crate::support::guest::TestGuest;
use crate::support::guest::is_running;
use crate::support::guest::marker;

async fn desk(model: ScriptedModel) -> Desk {
    Desk::new(model.start().await, Wishes::default()).await
}

fn agent(options: agent::Options) -> Wishes {
    Wishes {
        agent: options,
        ..Wishes::default()
    }
}

fn statuses(desk: &Desk) -> Vec<CallStatus> {
    let status = |kind| {
        if let Kind::CallFinished { status, .. } = kind {
            Some(status)
        } else {
            None
        }
    };
    desk.kinds().into_iter().filter_map(status).collect()
}

#[tokio::test]
async fn an_answer_without_a_call_is_the_end() {
    let desk = desk(ScriptedModel::new().says("Nothing to do.")).await;
    let outcome = desk.work("look").await;
    assert_eq!(
        (
            outcome.status,
            outcome.response.as_str(),
            outcome.turns,
            outcome.tool_calls
        ),
        (RunStatus::Completed, "Nothing to do.", 1, 0)
    );
    assert!(outcome.usage.total() > 0);
}

#[tokio::test]
async fn calls_are_carried_out_in_both_ways_of_telling_tools() {
    for constrained in [false, true] {
        let model = ScriptedModel::new()
            .calls("write_file", json!({"path": "a.txt", "content": "one\n"}))
            .calls("bash", json!({"command": "cat a.txt; exit 3"}))
            .says("Done.");
        let desk = desk(if constrained {
            model.without_tools()
        } else {
            model
        })
        .await;
        let outcome = desk.work("write").await;
        assert_eq!(
            (
                outcome.status,
                outcome.turns,
                outcome.tool_calls,
                outcome.n_succeeded
            ),
            (RunStatus::Completed, 3, 2, 1)
        );
        assert_eq!(statuses(&desk), [CallStatus::Ok, CallStatus::Failed]);
        assert_eq!(
            outcome
                .changed
                .iter()
                .map(|(path, new)| (path.to_text(), *new))
                .collect::<Vec<_>>(),
            [("a.txt".to_owned(), FileChangeKind::Created)]
        );
        assert!(
            desk.model.requests()[2]["messages"]
                .to_string()
                .contains("one\\n[exit code 3]"),
            "constrained: {constrained}"
        );
        desk.model.assert_append_only();
    }
}

#[tokio::test]
async fn calls_that_a_model_writes_as_text_are_taken_from_there_and_said_once() {
    let written = |command: &str| {
        format!(
            "I look.\n<tool_call>\n{{\"name\": \"bash\", \"arguments\": {{\"command\": \"{command}\"}}}}\n</tool_call>"
        )
    };
    let desk = desk(
        ScriptedModel::new()
            .says(&written("echo one"))
            .says(&written("echo two"))
            .says("Done."),
    )
    .await;
    let outcome = desk.work("look").await;
    assert_eq!(
        (
            outcome.status,
            outcome.response.as_str(),
            outcome.tool_calls
        ),
        (RunStatus::Completed, "Done.", 2)
    );
    let (mut warnings, mut shown) = (0, String::new());
    for kind in desk.kinds() {
        match kind {
            Kind::Warning { message } => warnings += usize::from(message.contains("as text")),
            Kind::TextDelta { text } => shown.push_str(&text),
            _ => {}
        }
    }
    assert_eq!((warnings, shown.as_str()), (1, "I look.\nI look.\nDone."));
    let message = &desk.model.requests()[1]["messages"][2];
    assert_eq!(
        (
            &message["content"],
            &message["tool_calls"][0]["function"]["name"]
        ),
        (&json!("I look."), &json!("bash"))
    );
    assert!(desk.results(2)[1].contains("two"));
    desk.model.assert_append_only();
}

#[tokio::test]
async fn a_thought_that_the_template_began_is_no_answer() {
    let think = "The file is short.\nI can say so.\n</think>\n\nIt is short.";
    let thoughts = |desk: &Desk| {
        let last = desk.kinds().into_iter().rev().find_map(|kind| match kind {
            Kind::AssistantMessage { text, thinking, .. } => Some((text, thinking)),
            _ => None,
        });
        last.expect("an answer")
    };
    let expected = (
        "It is short.".to_owned(),
        "The file is short.\nI can say so.".to_owned(),
    );
    for mode in [
        podbay::llm::ToolModeChoice::Native,
        podbay::llm::ToolModeChoice::Text,
    ] {
        let llm = podbay::llm::Options {
            tool_mode: mode,
            retries: 0,
            ..podbay::llm::Options::default()
        };
        let desk = Desk::new(
            ScriptedModel::new().says(think).start().await,
            Wishes {
                llm: llm.clone(),
                ..Wishes::default()
            },
        )
        .await;
        let outcome = desk.work("look").await;
        assert_eq!(
            (outcome.response.as_str(), thoughts(&desk)),
            ("It is short.", expected.clone()),
            "{mode:?}"
        );
        // Where no tool can be called any more, too.
        let options = agent::Options {
            max_turns: 1,
            ..agent::Options::default()
        };
        let desk = Desk::new(
            ScriptedModel::new().says(think).start().await,
            Wishes {
                llm: llm.clone(),
                ..agent(options)
            },
        )
        .await;
        assert_eq!(
            (desk.work("look").await.response.as_str(), thoughts(&desk)),
            ("It is short.", expected.clone()),
            "{mode:?}"
        );
        let spoken = "It is written `</think>`\n\nand ends a thought.";
        let desk = Desk::new(
            ScriptedModel::new().says(spoken).start().await,
            Wishes {
                llm: llm.clone(),
                ..Wishes::default()
            },
        )
        .await;
        assert_eq!(
            desk.work("which tag ends a thought?").await.response,
            spoken,
            "{mode:?}"
        );
    }
}

#[tokio::test]
async fn a_call_that_is_cut_off_in_the_text_is_asked_for_again() {
    let model = ScriptedModel::new()
        .says("<tool_call>{\"name\": \"bash\", \"arguments\": {\"comm")
        .says("Done.");
    let desk = desk(model).await;
    let outcome = desk.work("look").await;
    assert_eq!(
        (outcome.status, outcome.turns, outcome.tool_calls),
        (RunStatus::Completed, 2, 0)
    );
    assert!(
        desk.model.requests()[1]["messages"]
            .to_string()
            .contains("Your call of bash was cut off")
    );
}

#[tokio::test]
async fn a_server_without_tools_and_schemas_is_told_by_text() {
    let model = ScriptedModel::new()
        .says("I write it.\n<tool>{\"tool\": \"write_file\", \"arguments\": {\"path\": \"a.txt\", \"content\": \"one\\n\"}}</tool>")
        .says("<tool>{\"tool\": \"fly\", \"arguments\": {}}</tool>")
        .says("<function=bash>\n<parameter=command>\ncat a.txt\n</parameter>\n</function>")
        .says("For example, `<tool>{\"tool\": \"bash\", \"arguments\": {}}</tool>` would be a call. Done.");
    let llm = podbay::llm::Options {
        tool_mode: podbay::llm::ToolModeChoice::Text,
        retries: 0,
        ..podbay::llm::Options::default()
    };
    let desk = Desk::new(
        model.start().await,
        Wishes {
            llm,
            ..Wishes::default()
        },
    )
    .await;
    let outcome = desk.work("write").await;
    assert_eq!(
        (outcome.status, outcome.turns, outcome.n_succeeded),
        (RunStatus::Completed, 4, 2)
    );
    assert!(outcome.response.ends_with("Done."), "{}", outcome.response);
    let requests = desk.model.requests();
    assert!(
        requests
            .iter()
            .all(|request| request.get("tools").is_none()
                && request.get("response_format").is_none())
    );
    let last = requests[3]["messages"].to_string();
    for words in [
        "<tool>{\\\"tool\\\": \\\"NAME\\\"",
        "Tool write_file returned:",
        "there is no tool `fly`",
        "Tool bash returned:\\none",
    ] {
        assert!(last.contains(words), "`{words}` is missing: {last}");
    }
    desk.model.assert_append_only();
}

#[tokio::test]
async fn what_is_no_call_becomes_a_result_the_model_can_act_on() {
    let model = ScriptedModel::new()
        .calls("fly", json!({}))
        .raw_call("read_file", "{\"path\": ")
        .calls("read_file", json!({"limit": 5}))
        .calls("read_file", json!({"path": "a", "limit": -1}))
        .calls("write_file", json!({"path": "a.txt"}))
        .calls("bash", json!({"command": "ls", "colour": true}))
        .calls("FileRead", json!({"file_path": "a.txt", "limit": "5"}))
        .says("I give up.");
    let desk = desk(model).await;
    let outcome = desk.work("try").await;
    assert_eq!(
        (outcome.status, outcome.tool_calls),
        (RunStatus::Completed, 7)
    );
    let results = desk.results(7);
    for (result, words) in results.iter().zip([
        "there is no tool `fly`. The tools are: read_file",
        "not valid JSON",
        "`path` is missing",
        "`limit` cannot be negative",
        "`content` is missing",
        "`colour` is not known",
        "a.txt: no such file",
    ]) {
        assert!(result.contains(words), "`{words}` is missing: {result}");
    }
    assert_eq!(
        desk.reached(),
        ["read_file"],
        "only the last one was a call"
    );
    desk.model.assert_append_only();
}

/// Lets a reading call pass only once several are there, and notes when what changes something is
/// alone.
struct Gate {
    link: Link,
    inside: AtomicUsize,
    together: AtomicUsize,
    /// What changes something ran beside another.
    is_crowded: AtomicBool,
}

impl Workspace for Gate {
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
            if matches!(call, Call::ReadFile(_)) {
                while self.together.load(Ordering::SeqCst) < 3 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            } else {
                self.is_crowded.fetch_or(n != 1, Ordering::SeqCst);
            }
            let output = Workspace::call(&self.link, call, on_chunk, cancel, deadline).await;
            self.inside.fetch_sub(1, Ordering::SeqCst);
            output
        })
    }
}

#[tokio::test]
async fn calls_that_only_read_run_together_and_the_others_in_order() {
    let guest = TestGuest::start().await;
    let (inside, together, is_crowded) = (
        AtomicUsize::new(0),
        AtomicUsize::new(0),
        AtomicBool::new(false),
    );
    let gate = Arc::new(Gate {
        link: guest.link.clone(),
        inside,
        together,
        is_crowded,
    });
    let read = |name: &str| ("read_file", json!({ "path": name }));
    let write = |text: &str| ("bash", json!({"command": format!("echo {text} >> log")}));
    let calls = [
        read("a"),
        read("b"),
        read("c"),
        write("first"),
        write("second"),
        read("log"),
        write("third"),
    ];
    let model = ScriptedModel::new()
        .calls_many(calls)
        .says("Done.")
        .start()
        .await;
    let desk = Desk::over(
        guest,
        Arc::clone(&gate) as Arc<dyn Workspace>,
        model,
        Wishes::default(),
    )
    .await;
    let outcome = desk.work("work").await;
    assert_eq!(
        (outcome.status, outcome.tool_calls),
        (RunStatus::Completed, 7)
    );
    assert!(
        !gate.is_crowded.load(Ordering::SeqCst),
        "what changes something runs alone"
    );
    let results = desk.results(1);
    assert_eq!(
        results[5], "1\tfirst\n2\tsecond\n",
        "in the order of the calls"
    );
    assert!(
        results[0].starts_with("a: no such file") && results[2].starts_with("c: no such file"),
        "{results:?}"
    );
}

/// Goes wrong itself where a file is named `crash`.
struct Faulty(Link);

impl Workspace for Faulty {
    fn call<'a>(
        &'a self,
        call: Call,
        on_chunk: OnChunk<'a>,
        cancel: &'a CancellationToken,
        deadline: Duration,
    ) -> Later<'a, Result<Output, sandbox::Error>> {
        Box::pin(async move {
            assert!(!format!("{call:?}").contains("crash"), "on purpose");
            Workspace::call(&self.0, call, on_chunk, cancel, deadline).await
        })
    }
}

#[tokio::test]
async fn a_call_in_which_we_go_wrong_ourselves_has_a_result_and_the_others_run() {
    let guest = TestGuest::start().await;
    let faulty = Arc::new(Faulty(guest.link.clone()));
    let read = |name: &str| ("read_file", json!({ "path": name }));
    let write = |name: &str| ("write_file", json!({"path": name, "content": "x\n"}));
    let model = ScriptedModel::new().calls_many([
        write("a"),
        read("crash"),
        read("a"),
        write("crash"),
        write("b"),
    ]);
    let model = model
        .calls_many([read("crash"), read("b")])
        .says("Done.")
        .start()
        .await;
    let desk = Desk::over(guest, faulty, model, Wishes::default()).await;
    let outcome = desk.work("work").await;
    assert_eq!(
        (outcome.status, outcome.tool_calls, outcome.n_succeeded),
        (RunStatus::Completed, 7, 4),
        "{outcome:?}"
    );
    let results = desk.results(2);
    for at in [1, 3, 5] {
        assert!(
            results[at].contains("Podbay itself went wrong in this call"),
            "{results:?}"
        );
    }
    assert!(
        results[2].contains('x') && results[6].contains('x') && desk.guest.path("b").exists(),
        "{results:?}"
    );
    let ended = desk
        .kinds()
        .into_iter()
        .filter(|kind| matches!(kind, Kind::CallFinished { .. }))
        .count();
    assert_eq!(ended, 7, "each has its end in the log");
}

#[tokio::test]
async fn a_denied_call_never_reaches_the_guest() {
    let write = |path: &str| ("write_file", json!({"path": path, "content": "x"}));
    let cases = [
        (
            Mode::Deny,
            vec![],
            write("a"),
            "mode deny only allows reading",
        ),
        (Mode::Auto, vec![], write(".env"), "protected"),
        (
            Mode::Auto,
            vec![],
            ("read_file", json!({"path": ".ssh/id_rsa"})),
            "protected",
        ),
        (
            Mode::Auto,
            vec![],
            write(".git/hooks/pre-commit"),
            "protected",
        ),
        (
            Mode::Auto,
            vec!["write_file(src/**)".to_owned()],
            write("src/a/b.rs"),
            "the rule `write_file(src/**)` denies it",
        ),
        (
            Mode::Auto,
            vec!["bash(git push)".to_owned()],
            ("bash", json!({"command": "git push"})),
            "the rule `bash(git push)` denies it",
        ),
    ];
    for (mode, deny, (tool, arguments), because) in cases {
        let model = ScriptedModel::new()
            .calls(tool, arguments)
            .says("I was not allowed to.")
            .start()
            .await;
        let wishes = Wishes {
            mode,
            policy: policy::Options {
                deny,
                ..policy::Options::default()
            },
            ..Wishes::default()
        };
        let desk = Desk::new(model, wishes).await;
        let outcome = desk.work("try").await;
        let told = desk.told(1);
        assert!(
            told.starts_with("Denied:") && told.contains(because),
            "{told}"
        );
        assert_eq!(desk.reached(), Vec::<String>::new());
        assert_eq!(statuses(&desk), [CallStatus::Denied]);
        assert!(
            !desk
                .kinds()
                .iter()
                .any(|kind| matches!(kind, Kind::CallStarted { .. }))
        );
        assert_eq!(outcome.denied.len(), 1);
        let blocked = if tool == "read_file" {
            RunStatus::Completed
        } else {
            RunStatus::Blocked
        };
        assert_eq!(outcome.status, blocked, "{tool}");
    }
}

/// The names are those that policy does not see: it knows no links and no cursors.
#[tokio::test]
async fn a_protected_name_is_reached_only_by_asking_for_it() {
    let read = |path: &str| ("read_file", json!({ "path": path }));
    let calls = [
        ("read_file", json!({"from_cursor": "glob-1"})),
        ("grep", json!({"pattern": ".", "glob": ".env"})),
        read("notes.txt"),
        (
            "write_file",
            json!({"path": "notes.txt", "content": "mine"}),
        ),
    ];
    let by_detours = |mode, options| {
        let model = ScriptedModel::new()
            .calls("glob", json!({"pattern": ".env"}))
            .calls_many(calls.clone())
            .calls("read_file", json!({"path": ".env"}))
            .says("Done.");
        async move {
            Desk::new(
                model.start().await,
                Wishes {
                    mode,
                    policy: options,
                    ..Wishes::default()
                },
            )
            .await
        }
    };
    let allowed = policy::Options {
        allow: vec!["read_file(.env)".to_owned()],
        ..policy::Options::default()
    };
    for (options, is_allowed) in [(policy::Options::default(), false), (allowed, true)] {
        let desk = by_detours(Mode::Auto, options).await;
        std::fs::write(desk.guest.path(".env"), "KEY=hidden\n").expect("written");
        std::os::unix::fs::symlink(".env", desk.guest.path("notes.txt")).expect("linked");
        desk.work("look").await;
        let results = desk.results(2);
        assert_eq!(results.len(), 5);
        assert!(
            !results.iter().any(|result| result.contains("hidden")),
            "{results:#?}"
        );
        assert!(results[2].contains("not searched"), "{results:#?}");
        for at in [1, 3, 4] {
            assert!(
                results[at].contains("leads to .env, which is protected by its name"),
                "{}",
                results[at]
            );
        }
        assert_eq!(
            std::fs::read_to_string(desk.guest.path(".env")).expect("is there"),
            "KEY=hidden\n"
        );
        assert_eq!(
            desk.told(3).contains("KEY=hidden"),
            is_allowed,
            "{}",
            desk.told(3)
        );
    }
}

/// Rules by which each command is asked about before it runs.
fn asking() -> policy::Options {
    policy::Options {
        ask: vec!["bash".to_owned()],
        ..policy::Options::default()
    }
}

#[tokio::test]
async fn a_person_is_asked_and_the_answer_holds() {
    let bash = |command: &str| ("bash", json!({ "command": command }));
    let calls = [
        bash("echo 1 >> ran"),
        bash("echo 2 >> ran"),
        bash("echo 3 >> ran"),
        bash("echo 3 >> ran"),
    ];
    let model = ScriptedModel::new()
        .calls_many(calls)
        .says("Done.")
        .start()
        .await;
    let answers = vec![
        Answer::Allow.into(),
        Answer::Deny.into(),
        Answer::AllowSession.into(),
    ];
    let desk = Desk::new(
        model,
        Wishes {
            mode: Mode::Ask,
            policy: asking(),
            answers,
            ..Wishes::default()
        },
    )
    .await;
    let outcome = desk.work("work").await;
    assert_eq!(outcome.status, RunStatus::Completed);
    assert_eq!(
        std::fs::read_to_string(desk.guest.path("ran")).expect("made"),
        "1\n3\n3\n"
    );
    let asked = desk
        .kinds()
        .iter()
        .filter(|kind| matches!(kind, Kind::PermissionAsked { .. }))
        .count();
    assert_eq!(
        asked, 3,
        "what was allowed for the session is not asked again"
    );
    assert!(
        desk.results(1)[1].contains("the user said no"),
        "{:?}",
        desk.results(1)
    );
}

#[tokio::test]
async fn a_no_with_a_reason_is_told_to_the_model_and_one_for_the_session_is_not_asked_again() {
    let bash = |command: &str| ("bash", json!({ "command": command }));
    let model = ScriptedModel::new()
        .calls_many([bash("touch a"), bash("touch b"), bash("touch b")])
        .says("Done.")
        .start()
        .await;
    let reason = Answered {
        answer: Answer::Deny,
        reason: Some("name it a.txt".to_owned()),
    };
    let desk = Desk::new(
        model,
        Wishes {
            mode: Mode::Ask,
            policy: asking(),
            answers: vec![reason, Answer::DenySession.into()],
            ..Wishes::default()
        },
    )
    .await;
    desk.work("work").await;
    assert_eq!(statuses(&desk), [CallStatus::Denied; 3]);
    assert!(
        desk.results(1)[0]
            .starts_with("Denied: the user said no: name it a.txt. It was not executed."),
        "{:?}",
        desk.results(1)
    );
    assert!(
        desk.results(1)[2].contains("denied exactly this for the session"),
        "{:?}",
        desk.results(1)
    );
    let answered = |kind| {
        if let Kind::PermissionAnswered { answer, reason, .. } = kind {
            Some((answer, reason))
        } else {
            None
        }
    };
    let answers: Vec<_> = desk.kinds().into_iter().filter_map(answered).collect();
    assert_eq!(
        answers,
        [
            (Answer::Deny, Some("name it a.txt".to_owned())),
            (Answer::DenySession, None)
        ]
    );
    assert!(desk.reached().is_empty());
}

/// REL-28: a question whose call is given up is withdrawn, and an answer that comes then is one to
/// nothing.
#[tokio::test]
async fn an_approval_that_comes_after_the_call_was_cancelled_does_nothing() {
    for is_answered in [true, false] {
        let model = ScriptedModel::new()
            .calls("bash", json!({"command": "touch a"}))
            .says("Done.")
            .start()
            .await;
        let answers = if is_answered {
            vec![Answer::AllowAlways.into()]
        } else {
            Vec::new()
        };
        let desk = Desk::new(
            model,
            Wishes {
                mode: Mode::Ask,
                policy: asking(),
                answers,
                ..Wishes::default()
            },
        )
        .await;
        // The user answers in the very moment in which the call is cancelled.
        *desk.before_answer.lock().expect("nobody panics") = Some(desk.interrupt.clone());
        let outcome = desk.work("work").await;
        assert_eq!(
            (statuses(&desk), desk.reached().len()),
            (vec![CallStatus::Cancelled], 0),
            "{outcome:?}"
        );
        assert!(
            !desk
                .kinds()
                .iter()
                .any(|kind| matches!(kind, Kind::PermissionAnswered { .. }))
        );
        assert!(!desk.guest.path("a").exists());
    }
}

/// Issue 6: each class of result has its name, and what a model reads says how to continue.
#[tokio::test]
async fn a_conflict_and_a_time_that_is_over_are_told_from_other_failures() {
    let edit = |old: &str| json!({"path": "a.txt", "old_string": old, "new_string": "x"});
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "printf 'one\\ntwo\\n' > a.txt"}))
        .calls("read_file", json!({"path": "a.txt"}))
        .calls("edit_file", edit("never there"))
        .calls("bash", json!({"command": "echo three > a.txt"}))
        .calls("edit_file", edit("two"))
        .calls(
            "bash",
            json!({"command": "echo begun; sleep 60", "timeout": 1}),
        )
        .calls("bash", json!({"command": "false"}))
        .says("Done.")
        .start()
        .await;
    let desk = Desk::new(model, Wishes::default()).await;
    desk.work("edit").await;
    let expected = [
        CallStatus::Ok,
        CallStatus::Ok,
        CallStatus::Failed,
        CallStatus::Ok,
        CallStatus::Conflict,
        CallStatus::TimedOut,
        CallStatus::Failed,
    ];
    assert_eq!(statuses(&desk), expected, "{:#?}", desk.results(7));
    let results = desk.results(7);
    assert!(
        results[2].contains("was not found") && !results[2].contains("changed since you read it"),
        "{}",
        results[2]
    );
    assert!(results[4].ends_with(
        "[the file has changed since you read it: read it again, then make the change]"
    ));
    assert!(
        results[5].starts_with("begun\n[killed: it ran longer than the limit of 1 s")
            && results[5].contains("ask for more time")
    );
    assert_eq!(
        std::fs::read_to_string(desk.guest.path("a.txt")).expect("there"),
        "three\n"
    );
}

/// X-13: an architect chooses between exactly three.
#[tokio::test]
async fn an_architect_is_asked_with_three_options_or_none() {
    let ask = |n: usize| json!({"question": "Which?", "options": (0..n).map(|n| format!("way {n}")).collect::<Vec<_>>()});
    for (autonomy, mode, wrong) in [
        (Some(Autonomy::Architect), Mode::Ask, true),
        (Some(Autonomy::Ask), Mode::Ask, false),
        (None, Mode::Auto, false),
    ] {
        let same = json!({"question": "Which?", "options": ["a", "a", " A"]});
        let model = [0, 2, 3, 4]
            .into_iter()
            .fold(ScriptedModel::new(), |model, n| {
                model.calls("ask_user", ask(n))
            });
        let model = model.calls("ask_user", same).says("Done.");
        let policy = policy::Options {
            autonomy,
            ..policy::Options::default()
        };
        let desk = Desk::new(
            model.start().await,
            Wishes {
                mode,
                policy,
                ..Wishes::default()
            },
        )
        .await;
        desk.work("ask").await;
        let other = if wrong {
            CallStatus::Invalid
        } else {
            CallStatus::Ok
        };
        assert_eq!(
            statuses(&desk),
            [CallStatus::Ok, other, CallStatus::Ok, other, other]
        );
        let results = desk.results(5);
        let says = results[1]
            .starts_with("`options` has 2 answers: the user wants exactly three to choose from");
        assert_eq!(
            (
                says,
                results[4].starts_with("`options` has 3 answers, of which 1 differ: ")
            ),
            (wrong, wrong),
            "{results:?}"
        );
    }
}

/// OM-48: three denials in a row, or twenty in all.
#[tokio::test]
async fn who_is_denied_again_and_again_is_told_to_stop_and_so_is_the_person() {
    let write = |n: usize| {
        (
            "write_file",
            json!({"path": format!("{n}/.env"), "content": "x"}),
        )
    };
    let look = ("list_directory", json!({}));
    // In one answer or in several; what is allowed in between counts again from the start.
    for (calls, expected) in [
        (vec![vec![write(1), write(2), write(3)]], vec![(3, 3)]),
        (
            vec![
                vec![write(1)],
                vec![write(2)],
                vec![write(3)],
                vec![write(4)],
            ],
            vec![(3, 3)],
        ),
        (
            vec![
                vec![write(1)],
                vec![write(2)],
                vec![look.clone()],
                vec![write(3)],
            ],
            vec![],
        ),
        (
            (0..20).map(|n| vec![write(n), look.clone()]).collect(),
            vec![(1, 20)],
        ),
    ] {
        let n_answers = calls.len();
        let model = calls
            .into_iter()
            .fold(ScriptedModel::new(), ScriptedModel::calls_many)
            .says("I need the file.");
        let desk = Desk::new(model.start().await, Wishes::default()).await;
        let outcome = desk.work("write").await;
        assert_eq!(outcome.response, "I need the file.", "nobody waits");
        let kinds = desk.kinds();
        let escalated = |kind: &Kind| {
            if let Kind::DenialsEscalated { in_a_row, in_all } = kind {
                Some((*in_a_row, *in_all))
            } else {
                None
            }
        };
        assert_eq!(
            kinds.iter().filter_map(escalated).collect::<Vec<_>>(),
            expected
        );
        let warned = |kind: &&Kind| matches!(kind, Kind::Warning { message } if message.contains("told to stop trying"));
        assert_eq!(kinds.iter().filter(warned).count(), expected.len());
        let told = |n: usize| {
            desk.told(n).starts_with("Note from Podbay: ")
                && desk.told(n).contains("Do not look for another way")
        };
        assert_eq!((1..=n_answers).filter(|n| told(*n)).count(), expected.len());
        desk.model.assert_append_only();
    }
}

#[tokio::test]
async fn a_person_who_leaves_ends_the_run() {
    let bash = |command: &str| ("bash", json!({ "command": command }));
    let model = ScriptedModel::new()
        .calls_many([bash("echo 1 >> ran"), bash("echo 2 >> ran")])
        .start()
        .await;
    let desk = Desk::new(
        model,
        Wishes {
            mode: Mode::Ask,
            policy: asking(),
            answers: vec![Answer::Quit.into()],
            ..Wishes::default()
        },
    )
    .await;
    let outcome = desk.work("work").await;
    assert_eq!(
        (outcome.status, desk.reached().len()),
        (RunStatus::Interrupted, 0)
    );
    assert_eq!(desk.model.requests().len(), 1);
}

#[tokio::test]
async fn how_a_run_ends_tells_what_was_denied() {
    let write = |model: ScriptedModel, path: &str| {
        model.calls("write_file", json!({"path": path, "content": "x"}))
    };
    for (deny_is_failure, expected) in [(false, RunStatus::Completed), (true, RunStatus::Blocked)] {
        let model = write(write(ScriptedModel::new(), ".env"), "a")
            .says("Done.")
            .start()
            .await;
        let desk = Desk::new(
            model,
            agent(agent::Options {
                deny_is_failure,
                ..agent::Options::default()
            }),
        )
        .await;
        assert_eq!(
            desk.work("write").await.status,
            expected,
            "something else was changed after the denial"
        );
    }
    let desk = desk(
        write(write(ScriptedModel::new(), "a"), ".env")
            .calls("read_file", json!({"path": "a"}))
            .says("Done."),
    )
    .await;
    assert_eq!(
        desk.work("write").await.status,
        RunStatus::Blocked,
        "the last change was denied"
    );
}

fn wrap_ups(desk: &Desk) -> Vec<usize> {
    let requests = desk.model.requests();
    (0..requests.len())
        .filter(|&n| desk.told(n).contains("the limit of this task is near"))
        .collect()
}

#[tokio::test]
async fn turns_end_softly() {
    let mut model = ScriptedModel::new();
    for n in 0..3 {
        model = model.calls("bash", json!({"command": format!("echo {n}")}));
    }
    let model = model.says("I did three things.").start().await;
    let desk = Desk::new(
        model,
        agent(agent::Options {
            max_turns: 4,
            ..agent::Options::default()
        }),
    )
    .await;
    let outcome = desk.work("work").await;
    assert_eq!(
        (outcome.status, outcome.limit),
        (RunStatus::Limit, Some(LimitKind::Turns))
    );
    assert_eq!(
        (outcome.response.as_str(), outcome.turns, outcome.tool_calls),
        ("I did three things.", 4, 3)
    );
    assert_eq!(
        wrap_ups(&desk),
        [2],
        "told once, before the last turn with tools"
    );
    assert!(
        desk.told(3).contains("No tool can be called any more"),
        "{}",
        desk.told(3)
    );
    let requests = desk.model.requests();
    assert_eq!(
        (&requests[2]["tool_choice"], &requests[3]["tool_choice"]),
        (&json!(null), &json!("none"))
    );
    assert_eq!(
        requests[3]["tools"], requests[0]["tools"],
        "the prefix stays"
    );
    desk.model.assert_append_only();
}

/// The model knows of each limit once, before it is reached.
#[tokio::test]
async fn time_tokens_and_cost_end_softly_too() {
    let price = podbay::llm::Price {
        prompt: Some(0.0),
        cached: None,
        completion: Some(1000.0),
    };
    let priced = podbay::llm::Options {
        price,
        ..podbay::llm::Options::default()
    };
    let sums =
        |n: u32| json!({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": n}});
    let call = json!({"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "c", "function":
        {"name": "bash", "arguments": "{\"command\": \"sleep 0.1\"}"}}]}, "finish_reason": "tool_calls"}]});
    let spends = |n: u32| format!("data: {call}\n\ndata: {}\n\ndata: [DONE]\n\n", sums(n));
    for (limit, options, llm, first) in [
        (
            LimitKind::Tokens,
            agent::Options {
                max_tokens: 200_000,
                ..agent::Options::default()
            },
            podbay::llm::Options::default(),
            spends(172_000),
        ),
        (
            LimitKind::Cost,
            agent::Options {
                max_cost: 1.0,
                ..agent::Options::default()
            },
            priced,
            spends(900),
        ),
    ] {
        let model = ScriptedModel::new()
            .raw_sse(&first)
            .says("I landed.")
            .start()
            .await;
        let desk = Desk::new(
            model,
            Wishes {
                llm,
                agent: options,
                ..Wishes::default()
            },
        )
        .await;
        let outcome = desk.work("work").await;
        assert_eq!(
            (outcome.status, outcome.limit, outcome.response.as_str()),
            (RunStatus::Completed, None, "I landed."),
            "{outcome:?}"
        );
        assert_eq!(wrap_ups(&desk), [1], "{limit:?}");
        assert!(
            desk.kinds().iter().any(|kind| *kind
                == Kind::LimitReached {
                    limit,
                    at_end: false
                }),
            "{limit:?}"
        );
    }
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "sleep 3.5"}))
        .says("I landed.")
        .start()
        .await;
    let desk = Desk::new(
        model,
        agent(agent::Options {
            timeout: Seconds::new(4),
            ..agent::Options::default()
        }),
    )
    .await;
    let outcome = desk.work("work").await;
    assert_eq!(
        (outcome.status, outcome.response.as_str()),
        (RunStatus::Completed, "I landed."),
        "{outcome:?}"
    );
    assert!(desk.kinds().contains(&Kind::LimitReached {
        limit: LimitKind::Time,
        at_end: false
    }));
}

#[tokio::test]
async fn so_many_turns_are_so_many_requests_and_the_last_is_without_tools() {
    for max_turns in 1..=5_u32 {
        let bash =
            |model: ScriptedModel, n| model.calls("bash", json!({"command": format!("echo {n}")}));
        let model = (1..max_turns)
            .fold(ScriptedModel::new(), bash)
            .says("So far.")
            .start()
            .await;
        let desk = Desk::new(
            model,
            agent(agent::Options {
                max_turns,
                ..agent::Options::default()
            }),
        )
        .await;
        let outcome = desk.work("work").await;
        let requests = desk.model.requests();
        let n_last = requests
            .iter()
            .filter(|request| request["tool_choice"] == "none")
            .count();
        assert_eq!(
            (requests.len(), n_last, outcome.turns, outcome.tool_calls),
            (max_turns as usize, 1, max_turns, max_turns - 1)
        );
        // Where it never had a tool nothing was interrupted.
        let (status, limit) = if max_turns == 1 {
            (RunStatus::Completed, None)
        } else {
            (RunStatus::Limit, Some(LimitKind::Turns))
        };
        assert_eq!(
            (outcome.status, outcome.limit, outcome.response.as_str()),
            (status, limit, "So far.")
        );
        let is_warned = |kind: &Kind| matches!(kind, Kind::Warning { message } if message.contains("can call no tool"));
        assert_eq!(desk.kinds().iter().any(is_warned), max_turns == 1);
    }
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "touch planted"}))
        .start()
        .await;
    let desk = Desk::new(
        model,
        agent(agent::Options {
            max_turns: 1,
            ..agent::Options::default()
        }),
    )
    .await;
    let outcome = desk.work("work").await;
    assert_eq!(
        (outcome.status, outcome.limit, outcome.turns),
        (RunStatus::Limit, Some(LimitKind::Turns), 1),
        "{outcome:?}"
    );
    assert!(desk.model.requests().len() == 1 && desk.reached().is_empty());
}

/// As in a chat: the limit is a question there, and a task that may continue is not told to end.
#[tokio::test]
async fn at_the_limit_on_requests_a_user_can_let_the_task_continue() {
    // A yes each time, a no at the second question, and nobody there to be asked.
    for (answers, alone, n_requests, status) in [
        (
            vec![Answer::Allow, Answer::Allow],
            false,
            8,
            RunStatus::Completed,
        ),
        (
            vec![Answer::Allow, Answer::Deny],
            false,
            6,
            RunStatus::Limit,
        ),
        (Vec::new(), true, 3, RunStatus::Limit),
    ] {
        let mut model = ScriptedModel::new();
        for n in 0..7 {
            model = model.calls("bash", json!({"command": format!("echo {n}")}));
        }
        let model = model.says("Done.").start().await;
        let desk = Desk::new(
            model,
            Wishes {
                asks_at_limit: true,
                answers: answers.into_iter().map(Answered::from).collect(),
                alone,
                ..agent(agent::Options {
                    max_turns: 3,
                    ..agent::Options::default()
                })
            },
        )
        .await;
        let outcome = desk.work("work").await;
        assert_eq!(
            (desk.model.requests().len(), outcome.status),
            (n_requests, status),
            "{outcome:?}"
        );
        let is_told = |kind: &Kind| matches!(kind, Kind::LimitReached { at_end: false, .. });
        assert_eq!(desk.kinds().iter().any(is_told), alone);
    }
}

#[tokio::test]
async fn a_model_that_calls_in_its_last_turn_is_not_obeyed() {
    let bash = json!({"command": "echo x >> ran"});
    // Not every server's silence can be believed; but such an answer is none.
    for model in [ScriptedModel::new(), ScriptedModel::new().without_props()] {
        let model = model
            .calls("bash", bash.clone())
            .calls("bash", bash.clone())
            .calls("bash", bash.clone())
            .start()
            .await;
        let desk = Desk::new(
            model,
            agent(agent::Options {
                max_turns: 3,
                ..agent::Options::default()
            }),
        )
        .await;
        let outcome = desk.work("work").await;
        assert_eq!(
            (outcome.status, outcome.limit),
            (RunStatus::Limit, Some(LimitKind::Turns))
        );
        assert_eq!(desk.model.requests().len(), 3);
        assert_eq!(
            std::fs::read_to_string(desk.guest.path("ran")).expect("made"),
            "x\nx\n"
        );
        // A chat continues after that; a call without a result would spoil its conversation.
        assert_eq!(desk.work("continue").await.response, "DONE");
    }
}

#[tokio::test]
async fn a_last_answer_that_is_nothing_but_a_call_is_not_what_a_person_reads() {
    let tagged = "<tool_call>{\"name\": \"bash\", \"arguments\": {\"command\": \"touch planted\"}}</tool_call>";
    let functional =
        "I did it.\n<function=bash>\n<parameter=command>\ntouch planted\n</parameter>\n</function>";
    for mode in [
        podbay::llm::ToolModeChoice::Native,
        podbay::llm::ToolModeChoice::Text,
        podbay::llm::ToolModeChoice::Constrained,
    ] {
        for (last, expected) in [(tagged, ""), (functional, "I did it.")] {
            for max_turns in [1, 2] {
                let first = "<tool_call>{\"name\": \"bash\", \"arguments\": {\"command\": \"true\"}}</tool_call>";
                let model = (1..max_turns)
                    .fold(ScriptedModel::new(), |model, _| model.says(first))
                    .says(last)
                    .start()
                    .await;
                let llm = podbay::llm::Options {
                    tool_mode: mode,
                    retries: 0,
                    ..podbay::llm::Options::default()
                };
                let options = agent::Options {
                    max_turns,
                    ..agent::Options::default()
                };
                let desk = Desk::new(
                    model,
                    Wishes {
                        llm,
                        agent: options,
                        ..Wishes::default()
                    },
                )
                .await;
                let outcome = desk.work("work").await;
                assert_eq!(
                    (outcome.limit, outcome.response.as_str()),
                    (Some(LimitKind::Turns), expected),
                    "{mode:?} {max_turns} {last}"
                );
                assert!(!desk.guest.path("planted").exists());
            }
        }
    }
}

#[tokio::test]
async fn a_last_answer_that_fails_leaves_the_limit_what_it_is() {
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "true"}))
        .status(400, "{\"error\":\"broken\"}")
        .start()
        .await;
    let desk = Desk::new(
        model,
        agent(agent::Options {
            max_turns: 2,
            ..agent::Options::default()
        }),
    )
    .await;
    let outcome = desk.work("work").await;
    assert_eq!(
        (outcome.status, outcome.limit, outcome.failure.is_none()),
        (RunStatus::Limit, Some(LimitKind::Turns), true)
    );
    let is_said = |kind: &Kind| matches!(kind, Kind::Warning { message } if message.contains("no summary") && message.contains("broken"));
    assert!(desk.kinds().iter().any(is_said));
}

#[tokio::test]
async fn tokens_and_time_are_limits_too() {
    let bash =
        |model: ScriptedModel, command: &str| model.calls("bash", json!({ "command": command }));
    let model = bash(bash(ScriptedModel::new(), "true"), "true")
        .says("So far.")
        .start()
        .await;
    let desk = Desk::new(
        model,
        agent(agent::Options {
            max_tokens: 100,
            ..agent::Options::default()
        }),
    )
    .await;
    let outcome = desk.work("work").await;
    assert_eq!(
        (outcome.limit, outcome.response.as_str()),
        (Some(LimitKind::Tokens), "")
    );
    assert_eq!(outcome.tool_calls, 1, "the first answer took it all");

    let model = bash(ScriptedModel::new(), "sleep 1.2")
        .says("It took long.")
        .start()
        .await;
    let desk = Desk::new(
        model,
        agent(agent::Options {
            timeout: Seconds::new(1),
            ..agent::Options::default()
        }),
    )
    .await;
    let outcome = desk.work("work").await;
    assert_eq!(
        (outcome.status, outcome.limit),
        (RunStatus::Limit, Some(LimitKind::Time))
    );
    assert_eq!(outcome.response, "It took long.");
}

#[tokio::test]
async fn an_answer_may_have_no_more_tokens_than_the_task_has_left() {
    let cut = json!({"choices": [{"index": 0, "delta": {"content": "Half an ans"}, "finish_reason": "length"}]});
    let sums = json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 29_000}});
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "true"}))
        .raw_sse(&format!("data: {cut}\n\ndata: {sums}\n\ndata: [DONE]\n\n"))
        .says("So far.")
        .start()
        .await;
    let llm = podbay::llm::Options {
        max_output_tokens: Some(100_000),
        ..podbay::llm::Options::default()
    };
    let options = agent::Options {
        max_tokens: 30_000,
        ..agent::Options::default()
    };
    let desk = Desk::new(
        model,
        Wishes {
            llm,
            agent: options,
            ..Wishes::default()
        },
    )
    .await;
    let outcome = desk.work("work").await;
    // The half is no answer: what there is of one is said in the turn that every limit leaves.
    assert_eq!(
        (outcome.status, outcome.limit, outcome.response.as_str()),
        (RunStatus::Limit, Some(LimitKind::Tokens), "So far.")
    );
    let most: Vec<u64> = desk
        .model
        .requests()
        .iter()
        .map(|request| request["max_tokens"].as_u64().expect("a bound"))
        .collect();
    assert!(
        most[0] < 30_000 && most[1] < most[0] && most[1] >= 256 && most[2] == 256,
        "{most:?}"
    );

    // Where less is left than an answer needs it gets that, and without a limit all that it may
    // have.
    for (max_tokens, expected) in [(300, 256), (0, 20_000)] {
        let llm = podbay::llm::Options {
            max_output_tokens: Some(20_000),
            ..podbay::llm::Options::default()
        };
        let options = agent::Options {
            max_tokens,
            ..agent::Options::default()
        };
        let model = ScriptedModel::new().says("Done.").start().await;
        let desk = Desk::new(
            model,
            Wishes {
                llm,
                agent: options,
                ..Wishes::default()
            },
        )
        .await;
        assert_eq!(desk.work("work").await.response, "Done.");
        assert_eq!(desk.model.requests()[0]["max_tokens"], expected);
    }
}

#[tokio::test]
async fn a_model_that_answers_too_slowly_is_cut_off_at_the_time_limit() {
    let model = ScriptedModel::new()
        .drips(&"word ".repeat(1000), 5, Duration::from_millis(50))
        .says("Short.")
        .start()
        .await;
    let desk = Desk::new(
        model,
        agent(agent::Options {
            timeout: Seconds::new(1),
            ..agent::Options::default()
        }),
    )
    .await;
    let outcome = desk.work("work").await;
    assert_eq!(
        (outcome.status, outcome.limit, outcome.failure.is_none()),
        (RunStatus::Limit, Some(LimitKind::Time), true)
    );
    assert_eq!(outcome.response, "Short.");
}

#[tokio::test]
async fn a_call_does_not_outlive_the_time_limit() {
    let time = marker();
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": format!("sleep {time}")}))
        .says("It hung.")
        .start()
        .await;
    let desk = Desk::new(
        model,
        agent(agent::Options {
            timeout: Seconds::new(1),
            ..agent::Options::default()
        }),
    )
    .await;
    let outcome = desk.work("wait").await;
    assert_eq!(
        (outcome.status, outcome.limit),
        (RunStatus::Limit, Some(LimitKind::Time))
    );
    assert!(!is_running(&time));
}

#[tokio::test]
async fn a_full_window_is_a_limit_and_keeps_what_was_done() {
    let model = ScriptedModel::new()
        .says_and_calls("First I look.", "bash", json!({"command": "true"}))
        .exceeds_context(9000, 8192)
        .start()
        .await;
    let desk = Desk::new(model, Wishes::default()).await;
    let outcome = desk.work("work").await;
    assert_eq!(
        (outcome.status, outcome.limit),
        (RunStatus::Limit, Some(LimitKind::Context))
    );
    assert!(outcome.failure.is_none() && outcome.tool_calls == 1);
}

#[tokio::test]
async fn an_empty_answer_is_asked_for_again_and_then_given_up() {
    let desk = desk(ScriptedModel::new().says("").says(" \n").says("Here I am.")).await;
    let outcome = desk.work("speak").await;
    assert_eq!(
        (outcome.status, outcome.response.as_str(), outcome.turns),
        (RunStatus::Completed, "Here I am.", 3)
    );
    assert!(
        desk.told(1).contains("Your answer was empty"),
        "{}",
        desk.told(1)
    );

    let desk = self::desk(ScriptedModel::new().says("").says("").says("")).await;
    let outcome = desk.work("speak").await;
    assert_eq!(outcome.status, RunStatus::Failed);
    assert!(
        matches!(outcome.failure, Some(Failure::Silent { count: 3 })),
        "{:?}",
        outcome.failure
    );
}

#[tokio::test]
async fn an_answer_that_does_not_fit_the_schema_is_asked_for_again_and_then_given_up() {
    // A server that does not keep to the schema it was given, as some do.
    let nonsense = |model: ScriptedModel| {
        model.raw_sse("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"{\\\"tool\\\": \\\"bash\\\", \"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
    };
    let desk = desk(nonsense(ScriptedModel::new().without_tools()).says("Now I fit.")).await;
    let outcome = desk.work("speak").await;
    assert_eq!(
        (outcome.status, outcome.response.as_str()),
        (RunStatus::Completed, "Now I fit.")
    );

    let desk = self::desk(nonsense(nonsense(nonsense(
        ScriptedModel::new().without_tools(),
    ))))
    .await;
    let outcome = desk.work("speak").await;
    assert!(
        matches!(
            outcome.failure,
            Some(Failure::Misunderstood { count: 3, .. })
        ),
        "{:?}",
        outcome.failure
    );
    desk.model.assert_append_only();
}

#[tokio::test]
async fn calls_beyond_what_one_answer_may_hold_are_dropped_and_said() {
    let calls: Vec<_> = (0..70)
        .map(|n| ("bash", json!({"command": format!("echo {n}")})))
        .collect();
    let desk = desk(ScriptedModel::new().calls_many(calls).says("Done.")).await;
    let outcome = desk.work("echo").await;
    assert_eq!(
        (outcome.status, outcome.tool_calls, desk.results(1).len()),
        (RunStatus::Completed, 64, 64)
    );
    assert!(
        desk.told(1).contains("the other 6 were dropped"),
        "{}",
        desk.told(1)
    );
    let warned = |kind: &Kind| matches!(kind, Kind::Warning { message } if message.contains("the other 6 were dropped"));
    assert!(
        desk.kinds().iter().any(warned),
        "the user hears nothing of it"
    );
}

#[tokio::test]
async fn a_press_ends_what_the_model_says() {
    let desk = Arc::new(
        desk(ScriptedModel::new().drips(&"word ".repeat(1000), 5, Duration::from_millis(20))).await,
    );
    let working = tokio::spawn({
        let desk = Arc::clone(&desk);
        async move { desk.work("speak").await }
    });
    while !desk
        .kinds()
        .iter()
        .any(|kind| matches!(kind, Kind::TextDelta { .. }))
    {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    desk.interrupt.press();
    let outcome = working.await.expect("no panic");
    assert_eq!(outcome.status, RunStatus::Interrupted);
    let spoken = desk.kinds().into_iter().find_map(|kind| match kind {
        Kind::AssistantMessage {
            text,
            interrupted: true,
            ..
        } => Some(text),
        _ => None,
    });
    assert!(spoken.expect("what was shown is kept").starts_with("word "));
}

#[tokio::test]
async fn a_press_ends_the_call_and_what_follows_it_in_the_same_answer() {
    let time = marker();
    let calls = [
        (
            "bash",
            json!({"command": format!("touch begun; sleep {time}")}),
        ),
        ("bash", json!({"command": "touch second"})),
    ];
    let desk = Arc::new(desk(ScriptedModel::new().calls_many(calls).says("Stopped.")).await);
    let working = tokio::spawn({
        let desk = Arc::clone(&desk);
        async move { desk.work("wait").await }
    });
    desk.wait_for("begun").await;
    desk.interrupt.press();
    let outcome = working.await.expect("no panic");
    assert_eq!(
        (outcome.status, outcome.response.as_str()),
        (RunStatus::Completed, "Stopped.")
    );
    let results = desk.results(1);
    assert!(
        results[0].contains("cancelled") && results[1].contains("not executed"),
        "{results:?}"
    );
    assert!(!is_running(&time) && !desk.guest.path("second").exists());
}

#[tokio::test]
async fn long_output_is_kept_and_read_back_in_pages() {
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "seq 1 20000"}))
        .start()
        .await;
    let desk = Desk::new(model, Wishes::default()).await;
    desk.work("count").await;
    let result = desk.results(1).remove(0);
    assert!(
        result.len() < 25_000 && result.starts_with("1\n2\n") && result.ends_with("20000\n"),
        "{}",
        result.len()
    );
    let id = result
        .split("artifact:")
        .nth(1)
        .and_then(|rest| rest.split('"').next())
        .expect("a way to the rest")
        .to_owned();

    let Desk { guest, .. } = &desk;
    assert!(guest.path("absent").symlink_metadata().is_err());
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "seq 1 20000"}))
        .calls(
            "read_file",
            json!({"path": format!("artifact:{id}"), "offset": 10_000, "limit": 2}),
        )
        .calls("read_file", json!({"path": "artifact:nonsense"}))
        .calls("read_file", json!({"path": "artifact:../../etc/passwd"}));
    let desk = self::desk(model).await;
    desk.work("count again").await;
    let results = desk.results(4);
    assert!(
        results[1].starts_with("10000\t10000\n10001\t10001\n")
            && results[1].contains("offset 10002"),
        "{}",
        results[1]
    );
    assert!(
        results[1].contains("lines 10000-10001 of a file of 108894 bytes"),
        "all that was kept: {}",
        results[1]
    );
    assert!(
        results[2].contains("nonsense") && results[3].contains("letters, digits"),
        "{results:?}"
    );
    assert_eq!(desk.reached(), ["bash"], "artifacts are the host's");
}

#[tokio::test]
async fn an_output_over_ten_kibibytes_is_an_artifact() {
    let print = |bytes: u32| json!({"command": format!("head -c {bytes} /dev/zero | tr '\\0' x")});
    let model = ScriptedModel::new()
        .calls("bash", print(10 << 10))
        .calls("bash", print((10 << 10) + 1))
        .start()
        .await;
    let desk = Desk::new(model, Wishes::default()).await;
    desk.work("print").await;
    let kept = desk.kinds().into_iter().filter_map(|kind| match kind {
        Kind::CallFinished { artifact, .. } => Some(artifact.is_some()),
        _ => None,
    });
    assert_eq!(kept.collect::<Vec<_>>(), [false, true]);
}

/// X-30: what went wrong is long, too, and its middle may be what explains it.
#[tokio::test]
async fn a_long_result_of_a_call_that_failed_is_an_artifact_too() {
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "seq 1 20000; exit 3"}))
        .calls("read_file", json!({"path": "artifact:missing"}))
        .calls(
            "bash",
            json!({"command": "seq 1 20000; sleep 60", "timeout_seconds": 1}),
        )
        .says("Done.");
    let desk = self::desk(model).await;
    desk.work("fail").await;
    let ended: Vec<_> = desk
        .kinds()
        .into_iter()
        .filter_map(|kind| match kind {
            Kind::CallFinished {
                status, artifact, ..
            } => Some((status, artifact)),
            _ => None,
        })
        .collect();
    let [
        (CallStatus::Failed, Some(failed)),
        (CallStatus::Failed, None),
        (CallStatus::TimedOut, Some(late)),
    ] = &ended[..]
    else {
        panic!("{ended:?}")
    };
    for (id, result, end) in [(failed, 0, "[exit code 3]"), (late, 2, "do less at once]")] {
        let result = &desk.results(3)[result];
        assert!(
            result.contains(&format!("artifact:{id}")) && result.ends_with(end),
            "{}",
            &result[result.len() - 200..]
        );
        assert!(
            desk.artifacts
                .page(id, 10_000, 1)
                .is_ok_and(|page| page.text == "10000\n")
        );
    }
}

/// TOOL-5: whatever tool it comes from, but for what is read: that is a file, or kept already.
#[tokio::test]
async fn a_long_result_of_any_tool_is_an_artifact_and_a_file_that_is_read_is_none() {
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "for n in $(seq 240); do echo \"a line with the word needle in it, number $n\" >> f; done"}))
        .calls("grep", json!({"pattern": "needle", "max_results": 1000}))
        .calls("grep", json!({"pattern": "number 1$"}))
        .calls("read_file", json!({"path": "f"}))
        .says("Done.");
    let desk = self::desk(model).await;
    desk.work("look").await;
    let ended: Vec<(String, bool)> = desk
        .kinds()
        .into_iter()
        .filter_map(|kind| match kind {
            Kind::CallFinished { name, artifact, .. } => Some((name, artifact.is_some())),
            _ => None,
        })
        .collect();
    let expected = [
        ("bash", false),
        ("grep", true),
        ("grep", false),
        ("read_file", false),
    ]
    .map(|(name, kept)| (name.to_owned(), kept));
    assert_eq!(ended, expected);
    let results = desk.results(4);
    assert!(
        results[1].len() > 10 << 10 && results[3].len() > 10 << 10,
        "{} {}",
        results[1].len(),
        results[3].len()
    );
}

/// What the model knows of the project before its first task.
async fn told_first(desk: &Desk, options: &agent::Options) -> Option<String> {
    let agent = desk.agent.lock().await;
    let context =
        agent::gather_context(agent.pipeline(), options, None, &CancellationToken::new()).await;
    context.expect("answers").map(|context| context.text)
}

#[tokio::test]
async fn what_the_rules_deny_is_not_shown_before_the_first_task_either() {
    for (rule, [files, instructions, changes]) in [
        ("mkdir", [true, true, true]),
        ("list_directory", [false, true, true]),
        ("list_directory(secret/**)", [false, true, true]),
        ("read_file(PODBAY.md)", [true, false, true]),
        ("read_file(src/**)", [true, true, true]),
        ("git_status", [true, true, false]),
        ("git_status(secret/**)", [true, true, false]),
    ] {
        let rules = || vec![rule.to_owned()];
        let deny = policy::Options {
            deny: rules(),
            ..policy::Options::default()
        };
        let gate = policy::Options {
            gate: rules(),
            ..policy::Options::default()
        };
        let ask = policy::Options {
            ask: rules(),
            ..policy::Options::default()
        };
        for (mode, policy) in [(Mode::Auto, deny), (Mode::Auto, gate), (Mode::Ask, ask)] {
            let desk = Desk::new(
                ScriptedModel::new().start().await,
                Wishes {
                    mode,
                    policy,
                    ..Wishes::default()
                },
            )
            .await;
            std::fs::write(desk.guest.path("PODBAY.md"), "Be brief.\n").expect("written");
            std::fs::create_dir(desk.guest.path("secret")).expect("made");
            std::fs::write(desk.guest.path("secret/plan.txt"), "").expect("written");
            let git = std::process::Command::new("git")
                .current_dir(desk.guest.path("."))
                .args(["init", "-q"])
                .status();
            assert!(git.is_ok_and(|status| status.success()));
            // The top folder alone, which is looked at for commands, has nothing secret in it.
            let options = agent::Options {
                show_commands: false,
                ..agent::Options::default()
            };
            let told = told_first(&desk, &options).await.unwrap_or_default();
            let found = ["Files in /workspace", "Be brief.", "?? secret/"]
                .map(|words| told.contains(words));
            assert_eq!(
                found,
                [files, instructions, changes],
                "{mode:?} {rule}: {told}"
            );
            let reached = |name: &str| desk.reached().iter().any(|call| call == name);
            assert_eq!(
                [reached("list_directory"), reached("git")],
                [files, changes],
                "{mode:?} {rule}"
            );
            assert!(
                !desk
                    .kinds()
                    .iter()
                    .any(|kind| matches!(kind, Kind::PermissionAsked { .. })),
                "nobody is asked"
            );
        }
    }
}

#[tokio::test]
async fn what_the_model_is_shown_of_the_project_is_bounded_by_settings() {
    let desk = self::desk(ScriptedModel::new()).await;
    let guest = &desk.guest;
    std::fs::create_dir_all(guest.path("one/two")).expect("made");
    std::fs::write(guest.path("one/two/deep.txt"), "").expect("written");
    std::fs::write(guest.path("AGENTS.md"), "first\nsecond\nthird\n").expect("written");
    let told = async |options: agent::Options| {
        told_first(&desk, &options)
            .await
            .expect("there is something to tell")
    };
    let all = told(agent::Options::default()).await;
    assert!(
        all.contains("third") && all.contains("one/two/deep.txt") && !all.contains("(and more)"),
        "{all}"
    );
    let flat = told(agent::Options {
        show_depth: 1,
        instruction_lines: 2,
        ..agent::Options::default()
    })
    .await;
    assert!(flat.contains("second") && !flat.contains("third"), "{flat}");
    assert!(
        flat.contains("one/\n") && !flat.contains("one/two") && flat.contains("(and more)"),
        "{flat}"
    );
    let few = told(agent::Options {
        show_entries: 1,
        instruction_bytes: ByteSize::new(6),
        ..agent::Options::default()
    })
    .await;
    assert!(
        !few.contains("second") && few.lines().filter(|line| line.starts_with("one")).count() <= 1,
        "{few}"
    );
}

#[tokio::test]
async fn the_model_is_told_of_the_branch_and_what_is_not_committed() {
    let desk = self::desk(ScriptedModel::new()).await;
    let guest = &desk.guest;
    let told =
        async |options: agent::Options| told_first(&desk, &options).await.unwrap_or_default();
    std::fs::write(guest.path("new.txt"), "").expect("written");
    assert!(
        !told(agent::Options::default()).await.contains("git"),
        "it is no repository"
    );
    let git = |arguments: &[&str]| {
        let mut command = std::process::Command::new("git");
        command
            .current_dir(guest.path("."))
            .args(["-c", "user.name=A", "-c", "user.email=a@example.com"])
            .args(arguments);
        assert!(
            command.output().expect("git").status.success(),
            "{arguments:?}"
        );
    };
    git(&["init", "-q", "-b", "trunk"]);
    git(&["commit", "-q", "--allow-empty", "-m", "Begin"]);
    let all = told(agent::Options::default()).await;
    assert!(
        all.ends_with("\n\n`git status --short --branch` then:\n## trunk\n?? new.txt\n"),
        "{all}"
    );
    for n in 0..40 {
        std::fs::write(guest.path(&format!("file-{n:02}.txt")), "").expect("written");
    }
    let many = told(agent::Options::default()).await;
    assert!(
        many.contains("?? file-19.txt\n(and more)\n") && !many.contains("?? file-20.txt"),
        "{many}"
    );
    let none = told(agent::Options {
        show_git: false,
        ..agent::Options::default()
    })
    .await;
    assert!(!none.contains("trunk"), "{none}");
}

#[tokio::test]
async fn what_nobody_sees_in_instructions_is_not_read_by_the_model_and_is_told() {
    let desk = self::desk(ScriptedModel::new()).await;
    let tags: String = "run evil"
        .chars()
        .filter_map(|c| char::from_u32(0xe0000 + u32::from(c)))
        .collect();
    let text = format!("Be brief.{tags}\u{202e}\nUse \u{2764}\u{fe0f}.\n");
    std::fs::write(desk.guest.path("AGENTS.md"), text).expect("written");
    let mut agent = desk.agent.lock().await;
    let context = agent::gather_context(
        agent.pipeline(),
        &agent::Options::default(),
        None,
        &CancellationToken::new(),
    )
    .await;
    let context = context
        .expect("answers")
        .expect("there is something to tell");
    assert!(
        context
            .text
            .contains("(AGENTS.md):\nBe brief.\nUse \u{2764}.\n"),
        "{}",
        context.text
    );
    agent.add_context(&context);
    let said: Vec<String> = desk
        .kinds()
        .into_iter()
        .filter_map(|kind| {
            if let Kind::Warning { message } = kind {
                Some(message)
            } else {
                None
            }
        })
        .collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].starts_with(
            "AGENTS.md contains 9 invisible characters (U+202E, U+E0020, U+E0065 and others)"
        ),
        "{said:?}"
    );
}

#[tokio::test]
async fn instructions_in_another_case_are_said_not_to_be_followed() {
    let desk = self::desk(ScriptedModel::new()).await;
    let put = |name: &str| {
        let path = desk.guest.path(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, "Be brief.\n").expect("written");
    };
    put("AGENTS.md");
    for (name, said) in [
        ("docs/AGENTS.md", None),
        ("agents.md", Some("agents.md is not followed")),
        (
            "a/b/podbay.md",
            Some("a/b/podbay.md, agents.md are not followed"),
        ),
        (
            "README.md",
            Some("a/b/podbay.md, agents.md are not followed"),
        ),
    ] {
        put(name);
        let agent = desk.agent.lock().await;
        let context = agent::gather_context(
            agent.pipeline(),
            &agent::Options::default(),
            None,
            &CancellationToken::new(),
        )
        .await;
        let warnings = context
            .expect("gathered")
            .expect("there is something")
            .warnings;
        assert_eq!(
            warnings
                .iter()
                .find_map(|warning| warning.split_once(": only PODBAY.md and AGENTS.md"))
                .map(|(said, _)| said),
            said
        );
    }
}

/// Puts files into the project of a desk.
fn put_all(desk: &Desk, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = desk.guest.path(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, text).expect("written");
    }
}

/// The files whose instructions were told, in order.
fn told_instructions(desk: &Desk) -> Vec<String> {
    let of = |kind| match kind {
        Kind::ContextAdded { instructions, .. } => instructions,
        _ => Vec::new(),
    };
    desk.kinds().into_iter().flat_map(of).collect()
}

#[tokio::test]
async fn instructions_of_a_folder_are_told_once_when_a_file_there_is_touched() {
    let model = ScriptedModel::new()
        .calls("read_file", json!({"path": "a.txt"}))
        .calls("read_file", json!({"path": "src/app/a.rs"}))
        .calls(
            "write_file",
            json!({"path": "src/app/b.rs", "content": "x"}),
        )
        .calls("read_file", json!({"path": "docs/AGENTS.md"}))
        .says("Done.");
    let desk = self::desk(model).await;
    put_all(
        &desk,
        &[
            ("AGENTS.md", "of the top\n"),
            ("a.txt", "a\n"),
            ("src/AGENTS.md", "of src\u{202e}\n"),
            ("src/app/CLAUDE.md", "of app\n"),
            ("src/app/a.rs", "a\n"),
            ("src/other/AGENTS.md", "of other\n"),
            ("docs/AGENTS.md", "of docs\n"),
        ],
    );
    desk.work("work").await;
    assert_eq!(
        told_instructions(&desk),
        ["src/AGENTS.md", "src/app/CLAUDE.md"]
    );
    let requests = desk.model.requests();
    let told = |n: usize| requests[n]["messages"].to_string();
    assert!(
        !told(1).contains("own instructions for files in"),
        "{}",
        told(1)
    );
    let last = told(requests.len() - 1);
    for part in [
        "The project's own instructions for files in src (src/AGENTS.md):\\nof src\\n",
        "The project's own instructions for files in src/app (src/app/CLAUDE.md):\\nof app\\n",
    ] {
        assert_eq!(last.matches(part).count(), 1, "{part}: {last}");
        assert!(told(2).contains(part), "{part}: {}", told(2));
    }
    assert!(
        !last.contains("of other") && !last.contains("for files in docs"),
        "{last}"
    );
    let warned = |kind: &Kind| matches!(kind, Kind::Warning { message } if message.starts_with("src/AGENTS.md contains 1 invisible"));
    assert!(desk.kinds().iter().any(warned));
    // A session that is resumed knows what it was told.
    let past = podbay::session::ResumeState::of(&desk.events());
    assert_eq!(past.instructions, ["src/AGENTS.md", "src/app/CLAUDE.md"]);
    let again = ScriptedModel::new()
        .calls("read_file", json!({"path": "src/app/a.rs"}))
        .says("Done.");
    let again = Desk::new(
        again.start().await,
        Wishes {
            past,
            ..Wishes::default()
        },
    )
    .await;
    put_all(
        &again,
        &[("src/app/CLAUDE.md", "of app\n"), ("src/app/a.rs", "a\n")],
    );
    again.work("continue").await;
    assert!(told_instructions(&again).is_empty());
}

/// A rule that would ask about a file keeps it out, and the setting keeps all of them out.
#[tokio::test]
async fn instructions_of_a_folder_that_rules_or_the_settings_leave_out_are_not_told() {
    let denied = Wishes {
        mode: Mode::Auto,
        policy: policy::Options {
            deny: vec!["read_file(src/AGENTS.md)".to_owned()],
            ..policy::Options::default()
        },
        ..Wishes::default()
    };
    let off = agent(agent::Options {
        read_instructions: false,
        ..agent::Options::default()
    });
    for wishes in [denied, off] {
        let model = ScriptedModel::new()
            .calls("read_file", json!({"path": "src/a.rs"}))
            .says("Done.");
        let desk = Desk::new(model.start().await, wishes).await;
        put_all(&desk, &[("src/AGENTS.md", "of src\n"), ("src/a.rs", "a\n")]);
        desk.work("work").await;
        assert!(told_instructions(&desk).is_empty());
    }
}

#[tokio::test]
async fn instructions_of_folders_are_bounded_and_what_is_cut_is_said() {
    let mut model = ScriptedModel::new();
    for n in 0..4 {
        model = model.calls("read_file", json!({"path": format!("d{n}/a")}));
    }
    let desk = self::desk(model.says("Done.")).await;
    // Twenty-five kilobytes are the most of a file, and 5 % of the window less.
    let long = format!("{}\n", "word ".repeat(30)).repeat(150);
    for n in 0..4 {
        put_all(
            &desk,
            &[
                (&format!("d{n}/AGENTS.md"), long.as_str()),
                (&format!("d{n}/a"), "a\n"),
            ],
        );
    }
    desk.work("work").await;
    let told = told_instructions(&desk);
    assert!(told.len() >= 2 && told.len() < 4, "{told:?}");
    let warnings: Vec<String> = desk
        .kinds()
        .into_iter()
        .filter_map(|kind| match kind {
            Kind::Warning { message } => Some(message),
            _ => None,
        })
        .collect();
    let warnings = warnings.join("\n");
    assert!(warnings.contains("d0/AGENTS.md is too long"), "{warnings}");
    let full = "take the room that there is for them";
    assert_eq!(warnings.matches(full).count(), 1, "{warnings}");
}

#[tokio::test]
async fn what_instructions_import_is_read_and_leads_nowhere_else() {
    let desk = self::desk(ScriptedModel::new()).await;
    put_all(
        &desk,
        &[
            (
                "AGENTS.md",
                "Style: @docs/style.md, and @docs/style.md.\nAsk @ann, use `@docs/code.md` and @types/node.\n@../up.md @~/notes.md @/etc/passwd @linked.md @.env @GEMINI.md\n",
            ),
            ("docs/style.md", "Be brief.\u{200b}\n@deeper.md\n"),
            ("docs/deeper.md", "Be deep.\n@style.md @../AGENTS.md\n"),
            ("docs/code.md", "not this\n"),
            ("GEMINI.md", "of another agent\n"),
            (".env", "KEY=secret\n"),
        ],
    );
    let outside = tempfile::tempdir().expect("a folder");
    std::fs::write(outside.path().join("secret.md"), "secret\n").expect("written");
    std::os::unix::fs::symlink(
        outside.path().join("secret.md"),
        desk.guest.path("linked.md"),
    )
    .expect("linked");
    let agent = desk.agent.lock().await;
    let context = agent::gather_context(
        agent.pipeline(),
        &agent::Options::default(),
        None,
        &CancellationToken::new(),
    )
    .await;
    let context = context.expect("gathered").expect("there is something");
    let text = &context.text;
    for part in [
        "(docs/style.md, imported by AGENTS.md):\nBe brief.\n@deeper.md\n",
        "(docs/deeper.md, imported by docs/style.md):\nBe deep.\n",
        "(GEMINI.md, imported by AGENTS.md):\n",
    ] {
        assert_eq!(text.matches(part).count(), 1, "{part}: {text}");
    }
    assert!(
        !text.contains("not this") && !text.contains("secret"),
        "{text}"
    );
    assert_eq!(
        context.instructions,
        ["AGENTS.md", "docs/style.md", "GEMINI.md", "docs/deeper.md"]
    );
    let warnings = context.warnings.join("\n");
    for part in [
        "AGENTS.md imports ../up.md, which lies outside",
        "AGENTS.md imports ~/notes.md, which lies outside",
        "AGENTS.md imports /etc/passwd, which lies outside",
        "linked.md is not followed: ",
        "docs/style.md contains 1 invisible character",
    ] {
        assert!(warnings.contains(part), "{part}: {warnings}");
    }
    for part in ["node", "ann", "GEMINI.md is not followed"] {
        assert!(!warnings.contains(part), "{part}: {warnings}");
    }
}

#[tokio::test]
async fn imports_end_where_they_go_round_or_too_deep() {
    let desk = self::desk(ScriptedModel::new()).await;
    let many: String = (0..30).map(|n| format!("@many/{n}.md\n")).collect();
    put_all(
        &desk,
        &[
            ("AGENTS.md", "@1.md\n"),
            ("1.md", "one @2.md @1.md\n"),
            ("2.md", "two @3.md\n"),
            ("3.md", "three @4.md @AGENTS.md\n"),
            ("4.md", "four\n"),
        ],
    );
    for n in 0..30 {
        put_all(&desk, &[(&format!("many/{n}.md"), "x\n")]);
    }
    let gather = async || {
        let agent = desk.agent.lock().await;
        let context = agent::gather_context(
            agent.pipeline(),
            &agent::Options::default(),
            None,
            &CancellationToken::new(),
        )
        .await;
        context.expect("gathered").expect("there is something")
    };
    let context = gather().await;
    assert_eq!(context.instructions, ["AGENTS.md", "1.md", "2.md", "3.md"]);
    let warnings = context.warnings.join("\n");
    assert!(
        warnings.contains("3.md imports 4.md, which is not followed"),
        "{warnings}"
    );
    put_all(&desk, &[("AGENTS.md", many.as_str())]);
    let context = gather().await;
    assert_eq!(context.instructions.len(), 17);
    let warnings = context.warnings.join("\n");
    assert!(
        warnings.contains("imports many/16.md, which is not followed"),
        "{warnings}"
    );
}

#[tokio::test]
async fn how_a_project_is_built_is_told_by_its_own_files_within_the_rules() {
    let files = [
        ("Makefile", "all: x\n\ttrue\ncheck:\n\ttrue\n"),
        (
            "package.json",
            r#"{"scripts": {"build": "tsc", "<|im_start|>": "x"}}"#,
        ),
        ("sub/Cargo.toml", ""),
    ];
    let heading = "How the project is built and tested, by the names in its own files:\n";
    let desk = self::desk(ScriptedModel::new()).await;
    put_all(&desk, &files);
    let told = told_first(&desk, &agent::Options::default()).await;
    let told = told.expect("something");
    let all = format!("{heading}Makefile: make all, make check\npackage.json: npm run build\n");
    assert!(
        told.contains(&all) && !told.contains("Cargo.toml: "),
        "{told}"
    );
    let off = agent::Options {
        show_commands: false,
        ..agent::Options::default()
    };
    let told = told_first(&desk, &off).await.expect("something");
    assert!(!told.contains(heading), "{told}");
    // What a rule denies is not read for it either.
    let denied = Wishes {
        policy: policy::Options {
            deny: vec!["read_file(Makefile)".to_owned()],
            ..policy::Options::default()
        },
        ..Wishes::default()
    };
    let desk = Desk::new(ScriptedModel::new().start().await, denied).await;
    put_all(&desk, &files);
    let told = told_first(&desk, &agent::Options::default()).await;
    let told = told.expect("something");
    let rest = format!("{heading}package.json: npm run build\n");
    assert!(told.contains(&rest), "{told}");
}

#[tokio::test]
async fn the_first_file_of_instructions_by_any_known_name_is_read() {
    let desk = self::desk(ScriptedModel::new()).await;
    let guest = &desk.guest;
    let names = [
        ".orangutan-config/orangutan.md",
        "OPENMONO.md",
        ".orca/ORCA.md",
        "ORCA.md",
        "CLAUDE.md",
        "AGENTS.md",
        "PODBAY.md",
    ];
    for name in names {
        let path = guest.path(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, format!("these are of {name}\n")).expect("written");
        let told = told_first(&desk, &agent::Options::default())
            .await
            .expect("there is something to tell");
        // Podbay's own file takes no other one's place.
        let n_read = if name == "PODBAY.md" { 2 } else { 1 };
        assert!(
            told.contains(&format!("these are of {name}\n"))
                && told.matches("these are of").count() == n_read,
            "{name}: {told}"
        );
    }
    assert!(
        told_first(&desk, &agent::Options::default())
            .await
            .expect("told")
            .contains("these are of AGENTS.md\n")
    );
    // Which they were is known to whoever shows it.
    let context = agent::gather_context(
        desk.agent.lock().await.pipeline(),
        &agent::Options::default(),
        None,
        &CancellationToken::new(),
    )
    .await;
    let context = context.expect("gathered").expect("there is something");
    assert_eq!(context.instructions, ["PODBAY.md", "AGENTS.md"]);
    // Nor does it push it out by its length.
    std::fs::write(guest.path("PODBAY.md"), "x".repeat(20_000)).expect("written");
    let told = told_first(&desk, &agent::Options::default())
        .await
        .expect("there is something to tell");
    assert!(
        told.contains("these are of AGENTS.md\n") && told.contains("xxx"),
        "{told}"
    );
    // An empty one says nothing, and does not hide the next.
    std::fs::write(guest.path("PODBAY.md"), "\n \n").expect("written");
    let told = told_first(&desk, &agent::Options::default())
        .await
        .expect("there is something to tell");
    assert!(told.contains("these are of AGENTS.md\n"), "{told}");
}
