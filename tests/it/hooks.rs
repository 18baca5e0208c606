//! Commands of the user's settings: what they are told, what they keep back, and that they harm
//! nobody.

use std::time::Duration;
use std::time::Instant;

use podbay::event::CallStatus;
use podbay::event::HookOutcome;
use podbay::event::Kind;
use podbay::event::RunStatus;
use podbay::policy;
use podbay::policy::Mode;
use podbay::tools::HookOptions;
use podbay::wire::BytesPath;
use podbay::wire::Program;
use serde_json::Value;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::Desk;
use crate::support::ScriptedModel;
use crate::support::desk::Wishes;

fn hooks(text: &str) -> HookOptions {
    toml::from_str(text).expect("hooks")
}

fn write(path: &str) -> ScriptedModel {
    ScriptedModel::new()
        .calls("write_file", json!({"file_path": path, "content": "one\n"}))
        .says("Done.")
}

async fn desk(model: ScriptedModel, text: &str) -> Desk {
    Desk::new(
        model.start().await,
        Wishes {
            hooks: hooks(text),
            ..Wishes::default()
        },
    )
    .await
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

fn outcomes(desk: &Desk) -> Vec<HookOutcome> {
    desk.kinds()
        .into_iter()
        .filter_map(|kind| {
            if let Kind::HookEnded { outcome, .. } = kind {
                Some(outcome)
            } else {
                None
            }
        })
        .collect()
}

#[tokio::test]
async fn a_hook_before_a_call_holds_it_back_and_says_why() {
    let desk = desk(
        write("src/a.txt"),
        "[[pre_tool_use]]\nrun = 'echo not in src >&2; exit 1'\nif = { tool = 'write_file', input_contains = 'src/' }",
    )
    .await;
    let outcome = desk.work("write").await;
    assert_eq!(
        (outcome.status, status(&desk), desk.reached()),
        (
            RunStatus::Blocked,
            CallStatus::Denied,
            vec!["hook".to_owned()]
        )
    );
    assert!(
        desk.results(1)[0].contains("a hook of the user blocks it: not in src"),
        "{}",
        desk.results(1)[0]
    );
    assert_eq!(outcomes(&desk), [HookOutcome::Blocked]);
    assert!(!desk.guest.path("src").exists());
}

#[tokio::test]
async fn what_a_hook_started_is_told_as_what_a_call_started_is() {
    let text = "[[session_start]]\nrun = '/bin/echo begins'\n[[pre_tool_use]]\nrun = '/bin/true; /bin/true; sh hook.sh'";
    let policy = policy::Options {
        deny: vec!["hook(touch *)".to_owned()],
        ..policy::Options::default()
    };
    let call = ScriptedModel::new()
        .calls("bash", json!({"command": "/bin/echo called"}))
        .says("Done.");
    let desk = Desk::new(
        call.start().await,
        Wishes {
            hooks: hooks(text),
            policy,
            ..Wishes::default()
        },
    )
    .await;
    std::fs::write(desk.guest.path("hook.sh"), "/bin/touch made || true\n").expect("written");
    desk.work("work").await;
    let ran = |kind| match kind {
        Kind::CallRan {
            call,
            programs,
            hook,
            ..
        } => {
            let words = |program: &Program| {
                format!(
                    "{} {}",
                    program.count,
                    program
                        .argv
                        .iter()
                        .map(BytesPath::to_text)
                        .collect::<Vec<_>>()
                        .join(" ")
                )
            };
            Some((
                call.is_empty(),
                hook.is_some(),
                programs.iter().map(words).collect::<Vec<_>>().join(", "),
            ))
        }
        _ => None,
    };
    let ran: Vec<_> = desk.kinds().into_iter().filter_map(ran).collect();
    let expected = [
        (true, true, "1 /bin/echo begins"),
        (false, true, "2 /bin/true, 1 sh hook.sh"),
        (false, false, "1 /bin/echo called"),
    ];
    assert_eq!(
        ran,
        expected.map(|(empty, hook, words)| (empty, hook, words.to_owned()))
    );
    let warnings: Vec<String> = desk
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
    let expected = "in the hook `/bin/true; /bin/true; sh hook.sh` `/bin/touch made` was not run: the rule `hook(touch *)` denies it";
    assert_eq!(warnings, [expected]);
}

#[tokio::test]
async fn a_hook_of_another_tool_or_input_is_not_started() {
    let text = "[[pre_tool_use]]\nrun = 'exit 1'\nif = { tool = 'bash' }\n[[pre_tool_use]]\nrun = 'exit 1'\nif = { input_contains = 'src/' }";
    let desk = desk(write("a.txt"), text).await;
    assert_eq!(
        (desk.work("write").await.status, desk.reached()),
        (RunStatus::Completed, vec!["write_file".to_owned()])
    );
}

/// As rules have it: otherwise what a hook keeps back would go through by the other tool.
#[tokio::test]
async fn a_hook_of_bash_also_holds_back_what_is_started_in_the_background() {
    for (named, tool, arguments) in [
        (
            "bash",
            "start_background_process",
            json!({"command": "npm run deploy"}),
        ),
        (
            "bash",
            "more_tools",
            json!({"tool": "start_process", "arguments": {"cmd": "npm run deploy"}}),
        ),
        (
            "start_background_process",
            "bash",
            json!({"command": "npm run deploy", "background": true}),
        ),
    ] {
        let text = format!(
            "[[pre_tool_use]]\nrun = 'exit 1'\nif = {{ tool = '{named}', input_contains = 'npm run deploy' }}"
        );
        let desk = desk(
            ScriptedModel::new().calls(tool, arguments).says("Done."),
            &text,
        )
        .await;
        let outcome = desk.work("publish").await;
        assert_eq!(
            (outcome.status, desk.reached()),
            (RunStatus::Blocked, vec!["hook".to_owned()]),
            "{named} {tool}"
        );
    }
}

#[tokio::test]
async fn hooks_are_told_the_call_as_the_tool_takes_it_and_what_came_of_it() {
    let text = "[pre_tool_use]\n'*' = 'cat > before.json; echo $PODBAY_TOOL_NAME > name; echo {{tool_input}} > input'\n\
                [post_tool_use]\nwrite_file = 'cat > after.json; printenv PODBAY_TOOL_RESULT > result'";
    let desk = desk(write("it's a.txt"), text).await;
    assert_eq!(desk.work("write").await.status, RunStatus::Completed);
    desk.agent
        .lock()
        .await
        .settle(&CancellationToken::new())
        .await;
    let read = |name: &str| std::fs::read_to_string(desk.guest.path(name)).expect("written");
    let json = |name: &str| serde_json::from_str::<Value>(&read(name)).expect("JSON");
    let (before, after) = (json("before.json"), json("after.json"));
    let input = json!({"path": "it's a.txt", "content": "one\n"});
    assert_eq!(
        (
            &before["event"],
            &before["tool_name"],
            &before["tool_input"]
        ),
        (&json!("pre_tool_use"), &json!("write_file"), &input)
    );
    assert_eq!(
        (&after["tool_status"], &after["tool_input"]["path"]),
        (&json!("ok"), &json!("it's a.txt"))
    );
    assert!(
        after["tool_result"]
            .as_str()
            .is_some_and(|result| result.contains("it's a.txt"))
    );
    assert_eq!(
        (
            read("name").as_str(),
            serde_json::from_str::<Value>(&read("input")).expect("JSON")
        ),
        ("write_file\n", input)
    );
    assert!(read("result").contains("it's a.txt"));
    assert_eq!(outcomes(&desk), [HookOutcome::Passed, HookOutcome::Passed]);
}

#[tokio::test]
async fn a_hook_that_could_run_what_the_model_wrote_is_not_run_and_holds_the_call_back() {
    for run in [
        "echo \"{{tool_input}}\"",
        "bash -c \"log {{tool_input}}\"",
        "cat <<END\n{{tool_input}}\nEND",
    ] {
        let desk = desk(
            write("$(touch ran)"),
            &format!("[pre_tool_use]\n'*' = {}", json!(run)),
        )
        .await;
        let outcome = desk.work("write").await;
        assert_eq!(
            (outcome.status, status(&desk), desk.reached()),
            (RunStatus::Blocked, CallStatus::Denied, Vec::<String>::new()),
            "{run}"
        );
        assert!(
            desk.results(1)[0].contains("$PODBAY_TOOL_ARGS"),
            "{}",
            desk.results(1)[0]
        );
        assert!(!desk.guest.path("ran").exists(), "{run}");
    }
}

#[tokio::test]
async fn nobody_waits_for_a_hook_after_a_call_but_the_end_of_the_session() {
    let desk = desk(
        write("a.txt"),
        "[post_tool_use]\n'*' = 'while [ ! -e go ]; do sleep 0.05; done; touch marker; exit 3'",
    )
    .await;
    assert_eq!(desk.work("write").await.status, RunStatus::Completed);
    assert!(!desk.guest.path("marker").exists());
    std::fs::write(desk.guest.path("go"), "").expect("written");
    desk.agent
        .lock()
        .await
        .settle(&CancellationToken::new())
        .await;
    assert!(desk.guest.path("marker").exists());
    let says = |kind: &Kind| matches!(kind, Kind::Warning { message } if message.contains("(post_tool_use) failed") && message.contains("exit code 3"));
    assert!(desk.kinds().iter().any(says));
}

#[tokio::test]
async fn a_hook_that_hangs_after_a_call_ends_when_the_session_is_ended() {
    let desk = desk(
        write("a.txt"),
        "[post_tool_use]\n'*' = 'touch began; sleep 600'",
    )
    .await;
    assert_eq!(desk.work("write").await.status, RunStatus::Completed);
    desk.wait_for("began").await;
    let (cancel, begun) = (CancellationToken::new(), Instant::now());
    cancel.cancel();
    desk.agent.lock().await.settle(&cancel).await;
    assert!(
        begun.elapsed() < Duration::from_mins(5),
        "the hook is not waited out"
    );
    assert_eq!(outcomes(&desk), [HookOutcome::Cancelled]);
}

/// They ran on one after the other, each for all of its time, long after the run's own time was
/// over.
#[tokio::test]
async fn the_end_of_a_session_waits_for_all_hooks_as_long_as_for_one() {
    let model = (0..8).fold(ScriptedModel::new(), |model, n| {
        model.calls(
            "write_file",
            json!({"path": format!("{n}.txt"), "content": "x"}),
        )
    });
    let desk = desk(
        model.says("Done."),
        "[[post_tool_use]]\nrun = 'sleep 600'\ntimeout = '2s'",
    )
    .await;
    assert_eq!(desk.work("write").await.status, RunStatus::Completed);
    desk.agent
        .lock()
        .await
        .settle(&CancellationToken::new())
        .await;
    let n_cancelled = outcomes(&desk)
        .iter()
        .filter(|outcome| **outcome == HookOutcome::Cancelled)
        .count();
    assert!(n_cancelled >= 3, "{:?}", outcomes(&desk));
    let says = |kind: &Kind| matches!(kind, Kind::Warning { message } if message.contains("post_tool_use hooks took too long"));
    assert!(desk.kinds().iter().any(says));
}

#[tokio::test]
async fn one_that_takes_too_long_holds_back_unless_it_is_to_pass() {
    for (on_timeout, expected) in [("block", CallStatus::Denied), ("pass", CallStatus::Ok)] {
        let text = format!(
            "on_timeout = '{on_timeout}'\n[[pre_tool_use]]\nrun = 'sleep 600'\ntimeout = '1s'"
        );
        let desk = desk(write("a.txt"), &text).await;
        desk.work("write").await;
        assert_eq!(status(&desk), expected, "{on_timeout}");
    }
}

#[tokio::test]
async fn only_exit_code_two_holds_back_where_that_is_set() {
    for (code, expected) in [
        (1, CallStatus::Ok),
        (2, CallStatus::Denied),
        (127, CallStatus::Ok),
    ] {
        let desk = desk(
            write("a.txt"),
            &format!("block_on = 'exit2'\n[pre_tool_use]\nwrite_file = 'exit {code}'"),
        )
        .await;
        desk.work("write").await;
        assert_eq!(status(&desk), expected, "{code}");
    }
}

#[tokio::test]
async fn one_that_talks_without_end_is_read_and_what_it_says_is_bounded() {
    let desk = desk(
        write("a.txt"),
        "[pre_tool_use]\nwrite_file = 'head -c 20000000 /dev/zero | tr \"\\\\0\" x; exit 1'",
    )
    .await;
    desk.work("write").await;
    assert_eq!(status(&desk), CallStatus::Denied);
    assert!(desk.results(1)[0].len() < 3000);
}

#[tokio::test]
async fn what_one_says_is_shown_as_the_output_of_a_command_is() {
    for (printf, shown) in [
        (r"caf\351 no", r"caf\xe9 no"),
        (r"\033[31mred\033[0m no", "red no"),
        (r"10%%\r100%% no", "100% no"),
        (r"\377\376 no", r"\xff\xfe no"),
    ] {
        let desk = desk(
            write("a.txt"),
            &format!("[pre_tool_use]\nwrite_file = '''printf \"{printf}\" >&2; exit 1'''"),
        )
        .await;
        desk.work("write").await;
        assert!(
            desk.results(1)[0].contains(&format!("blocks it: {shown}")),
            "{}",
            desk.results(1)[0]
        );
        let said = desk.kinds().into_iter().find_map(|kind| {
            if let Kind::HookEnded { said, .. } = kind {
                Some(said)
            } else {
                None
            }
        });
        assert_eq!(said.as_deref(), Some(shown));
    }
}

#[tokio::test]
async fn one_that_removes_the_file_under_an_edit_loses_the_edit_and_no_more() {
    let model = ScriptedModel::new()
        .calls(
            "edit_file",
            json!({"path": "a.txt", "old_string": "a", "new_string": "b"}),
        )
        .says("Done.");
    let desk = desk(model, "[pre_tool_use]\nedit_file = 'rm a.txt'").await;
    std::fs::write(desk.guest.path("a.txt"), "a\n").expect("written");
    desk.work("edit").await;
    assert_eq!(status(&desk), CallStatus::Failed);
    assert!(desk.results(1)[0].contains("a.txt") && !desk.guest.path("a.txt").exists());
}

/// Issue 6: what a call is about may be something else by the time it is executed.
#[tokio::test]
async fn one_that_puts_something_else_in_the_place_of_a_file_has_no_tool_follow_it() {
    let calls = [
        ("read_file", json!({"path": "a.txt"})),
        (
            "edit_file",
            json!({"path": "a.txt", "old_string": "a", "new_string": "b"}),
        ),
        (
            "multi_edit",
            json!({"edits": [{"path": "a.txt", "old_string": "a", "new_string": "b"}]}),
        ),
        (
            "edit_lines",
            json!({"path": "a.txt", "operation": "delete", "start_line": 1}),
        ),
        (
            "apply_patch",
            json!({"patch": "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n+b\n"}),
        ),
        (
            "copy_file",
            json!({"source": "a.txt", "destination": "copy"}),
        ),
        ("grep", json!({"pattern": "a", "path": "a.txt"})),
        (
            "archive",
            json!({"action": "create", "archive_path": "a.zip", "source_path": "a.txt"}),
        ),
    ];
    for (swap, words) in [
        ("true", "no such file"),
        ("mkfifo a.txt", "named pipe"),
        ("ln -s /etc/passwd a.txt", "outside of /workspace"),
        ("ln -s .env a.txt", "protected by its name"),
        ("ln -s a.txt a.txt", "a cycle of symbolic links"),
    ] {
        let model = ScriptedModel::new().calls_many(calls.clone()).says("Done.");
        let hooks = format!("[pre_tool_use]\n'*' = 'rm -f a.txt; {swap}; true'");
        let wishes = Wishes {
            hooks: self::hooks(&hooks),
            tools: podbay::tools::Options {
                set: podbay::tools::ToolSet::Full,
                parallel: 1,
                ..podbay::tools::Options::default()
            },
            ..Wishes::default()
        };
        let desk = Desk::new(model.start().await, wishes).await;
        std::fs::write(desk.guest.path("a.txt"), "a\n").expect("written");
        std::fs::write(desk.guest.path(".env"), "KEY=a\n").expect("written");
        desk.work("work").await;
        for ((tool, _), result) in calls.iter().zip(desk.results(1)) {
            assert!(
                result.contains(words) && !result.contains("KEY=") && !result.contains("root:x:"),
                "{tool} {swap}: {result}"
            );
        }
        assert_eq!(
            std::fs::read_to_string(desk.guest.path(".env")).expect("there"),
            "KEY=a\n",
            "{swap}"
        );
        assert!(
            !desk.guest.path("copy").exists() && !desk.guest.path("a.zip").exists(),
            "{swap}"
        );
    }
}

#[tokio::test]
async fn what_is_held_back_reaches_no_model_and_what_is_said_reaches_it_once() {
    let text = "[[user_prompt]]\nrun = 'echo no deploys; exit 1'\nif = { input_contains = 'deploy' }\n\
                [[user_prompt]]\nrun = 'echo The branch is main.'\n[[session_start]]\nrun = 'echo Speak plainly.'\n[[stop]]\nrun = 'cat >> stops'";
    let desk = desk(ScriptedModel::new().says("One.").says("Two."), text).await;
    let outcome = desk.work("deploy it").await;
    assert_eq!(
        (outcome.status, desk.model.requests().len()),
        (RunStatus::Blocked, 0)
    );
    assert!(
        desk.kinds().iter().any(
            |kind| matches!(kind, Kind::Warning { message } if message.contains("no deploys"))
        )
    );
    assert!(
        !desk
            .kinds()
            .iter()
            .any(|kind| matches!(kind, Kind::UserMessage { .. }))
    );
    assert_eq!(desk.work("look").await.status, RunStatus::Completed);
    assert_eq!(desk.work("again").await.status, RunStatus::Completed);
    let text = desk.model.requests()[1].to_string();
    let count = |words: &str| text.matches(words).count();
    assert_eq!(
        (
            count("Speak plainly."),
            count("The branch is main."),
            count("no deploys")
        ),
        (1, 2, 0)
    );
    assert!(text.contains("look") && text.contains("again"));
    desk.model.assert_append_only();
    let stops = std::fs::read_to_string(desk.guest.path("stops")).expect("written");
    assert_eq!(
        (
            stops.matches("\"blocked\"").count(),
            stops.matches("\"completed\"").count()
        ),
        (1, 2)
    );
}

#[tokio::test]
async fn hooks_are_told_before_a_summary_is_made_and_hold_nothing_up() {
    let model = ScriptedModel::new()
        .context(32_768)
        .sums_up("It echoed numbers.");
    let model = (0..20).fold(model, |model, n| {
        model.calls(
            "bash",
            json!({"command": format!("echo {n}; echo {}", "x".repeat(250))}),
        )
    });
    let desk = desk(
        model.says("Done."),
        "[[pre_compact]]\nrun = 'cat >> told; echo $PODBAY_HOOK >> name; echo wait >&2; exit 1'",
    )
    .await;
    desk.work("echo").await;
    assert!(
        !desk.guest.path("told").exists(),
        "nothing was summed up yet"
    );
    let (_, is_shorter) = desk.agent.lock().await.compact("", &desk.interrupt).await;
    assert!(is_shorter);
    let read = |name: &str| std::fs::read_to_string(desk.guest.path(name)).expect("written");
    let told: Value = serde_json::from_str(&read("told")).expect("one JSON object");
    assert_eq!(
        (&told["event"], &told["tool_name"], read("name").as_str()),
        (&json!("pre_compact"), &Value::Null, "pre_compact\n")
    );
    assert_eq!(outcomes(&desk), [HookOutcome::Failed]);
    let kinds = desk.kinds();
    let at = |found: &dyn Fn(&Kind) -> bool| kinds.iter().position(found).expect("it happened");
    let ended = at(&|kind| matches!(kind, Kind::HookEnded { said, .. } if said == "wait"));
    assert!(
        ended < at(&|kind| matches!(kind, Kind::ConversationCompacted { .. })),
        "before, not after"
    );
    at(
        &|kind| matches!(kind, Kind::Warning { message } if message.contains("(pre_compact) failed, which blocks nothing")),
    );
    // And where the window gets full by itself.
    let model = ScriptedModel::new()
        .context(8192)
        .sums_up("It echoed numbers.");
    let model = (0..20).fold(model, |model, n| {
        model.calls(
            "bash",
            json!({"command": format!("echo {n}; echo {}", "x".repeat(600))}),
        )
    });
    let desk = self::desk(
        model.says("Done."),
        "[[pre_compact]]\nrun = 'echo x >> summed'",
    )
    .await;
    assert_eq!(desk.work("echo").await.status, RunStatus::Completed);
    let n_summed = desk
        .kinds()
        .iter()
        .filter(|kind| matches!(kind, Kind::ConversationCompacted { .. }))
        .count();
    let n_told = std::fs::read_to_string(desk.guest.path("summed"))
        .expect("written")
        .lines()
        .count();
    assert!(n_summed >= 1 && n_told >= n_summed, "{n_told} {n_summed}");
}

#[tokio::test]
async fn no_mode_asks_about_a_hook_and_a_rule_holds_it() {
    let wishes = |deny: &str| Wishes {
        mode: Mode::Deny,
        policy: policy::Options {
            deny: vec![deny.to_owned()],
            ..policy::Options::default()
        },
        hooks: hooks("[pre_tool_use]\nread_file = 'touch marker'"),
        ..Wishes::default()
    };
    for (deny, expected) in [
        ("bash", CallStatus::Ok),
        ("hook(touch *)", CallStatus::Denied),
    ] {
        let model = ScriptedModel::new()
            .calls("read_file", json!({"path": "a.txt"}))
            .says("Done.");
        let desk = Desk::new(model.start().await, wishes(deny)).await;
        std::fs::write(desk.guest.path("a.txt"), "a\n").expect("written");
        desk.work("read").await;
        assert_eq!(
            (status(&desk), desk.guest.path("marker").exists()),
            (expected, expected == CallStatus::Ok),
            "{deny}"
        );
    }
}

#[tokio::test]
async fn a_cancelled_hook_leaves_its_call_out() {
    let desk = desk(
        write("a.txt"),
        "[pre_tool_use]\nwrite_file = 'touch began; sleep 600'",
    )
    .await;
    let work = desk.work("write");
    let press = async {
        desk.wait_for("began").await;
        desk.interrupt.end();
    };
    let (outcome, ()) = tokio::join!(work, press);
    assert_eq!(
        (outcome.status, status(&desk)),
        (RunStatus::Interrupted, CallStatus::Cancelled)
    );
    assert!(!desk.guest.path("a.txt").exists());
}
