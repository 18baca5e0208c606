use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use insta::assert_snapshot;
use podbay::event::Answer;
use podbay::event::Answered;
use podbay::event::CUT_OFF;
use podbay::event::CallStatus;
use podbay::event::Capability;
use podbay::event::Decision;
use podbay::event::Event;
use podbay::event::Evicted;
use podbay::event::Kind;
use podbay::event::Lasting;
use podbay::event::LastingCommand;
use podbay::event::Progress as Step;
use podbay::event::RunStatus;
use podbay::event::ToolCall;
use podbay::event::Unit;
use podbay::event::Usage;
use podbay::ui;
use podbay::ui::Keyboard;
use podbay::ui::Look;
use podbay::ui::Paint;
use podbay::ui::Plain;
use podbay::ui::Progress;
use podbay::ui::Question;
use podbay::ui::Typed;
use podbay::wire::Program;
use podbay::wire::WriteChange;
use tokio_util::sync::CancellationToken;

const QUIET: Look = Look {
    paint: Paint::NONE,
    stream: false,
    tool_output: false,
    thinking: false,
};
const STREAM: Look = Look {
    stream: true,
    ..QUIET
};

/// Shows events and returns what came out on each stream.
fn shown(look: Look, kinds: impl IntoIterator<Item = Kind>) -> (String, String) {
    let mut plain = Plain::new(Vec::new(), Vec::new(), look, Progress::hidden());
    for kind in kinds {
        plain.event(&Event::now(kind)).expect("memory takes all");
    }
    let (out, err) = plain.finish().expect("memory takes all");
    let text = |bytes| String::from_utf8(bytes).expect("is text");
    (text(out), text(err))
}

fn delta(text: &str) -> Kind {
    Kind::TextDelta { text: text.into() }
}

fn message(text: &str, calls: &[&str]) -> Kind {
    let calls = calls
        .iter()
        .map(|name| ToolCall {
            id: "c1".into(),
            name: (*name).into(),
            arguments: "{}".into(),
        })
        .collect();
    let usage = Usage {
        prompt: 10,
        cached: 0,
        completion: 5,
        cost_usd: None,
    };
    Kind::AssistantMessage {
        text: text.into(),
        thinking: String::new(),
        calls,
        raw: None,
        usage,
        interrupted: false,
        cut: false,
        duration_ms: 5,
    }
}

fn started(call: &str, name: &str, arguments: &str) -> Kind {
    Kind::CallStarted {
        call: call.into(),
        name: name.into(),
        arguments: arguments.into(),
    }
}

fn finished(call: &str, name: &str, status: CallStatus, result: &str) -> Kind {
    Kind::CallFinished {
        call: call.into(),
        name: name.into(),
        status,
        result: result.into(),
        artifact: None,
        duration_ms: 12,
        seen: vec![],
    }
}

fn ran(program: &str, count: u64) -> Program {
    Program {
        argv: vec![program.into()],
        directory: "/workspace".into(),
        count,
        exit_code: None,
        truncated: false,
    }
}

fn whole_run() -> Vec<Kind> {
    vec![
        Kind::ModelReady {
            model: "smol\x1b[2Jlm".into(),
            context: Some(8192),
            tools: podbay::event::ToolMode::Native,
            reason: "the template has tools".into(),
        },
        Kind::SandboxStarted {
            image: "podbay/workspace".into(),
            duration_ms: 312,
            hidden: vec!["a.pem".into(), ".env".into()],
            tracked: vec![".env".into()],
        },
        delta("\n\nI look at "),
        delta("the readme.\n"),
        delta("\n"),
        message("I look at the readme.", &["read_file"]),
        started("c1", "read_file", r#"{"path":"README.md"}"#),
        finished("c1", "read_file", CallStatus::Ok, "# Demo"),
        started(
            "c2",
            "bash",
            r#"{"command":"cargo test \\\n  --all\nfalse"}"#,
        ),
        Kind::CallOutput {
            call: "c2".into(),
            text: "run\x1b[32mning".into(),
        },
        Kind::CallOutput {
            call: "c2".into(),
            text: "\n1 fai".into(),
        },
        Kind::CallRan {
            call: "c2".into(),
            programs: vec![ran("cargo", 1), ran("rustc", 2)],
            n_more: 4,
            hook: None,
            background: None,
        },
        finished(
            "c2",
            "bash",
            CallStatus::Failed,
            "\x1b[31mone\x1b[0m\ntwo\nthree\nfour\nfive\nsix",
        ),
        Kind::CallDecided {
            call: "c3".into(),
            name: "bash".into(),
            decision: Decision::Deny,
            reason: "git push is gated".into(),
        },
        Kind::Warning {
            message: "the disk is\nnearly full".into(),
        },
        delta("It is a "),
        delta("demo.\n\nIt has one test.\n"),
        message("It is a demo.\n\nIt has one test.", &[]),
        Kind::RunFinished {
            status: RunStatus::Completed,
            exit_code: 0,
            response: "It is a demo.\n\nIt has one test.".into(),
            turns: 2,
            tool_calls: 1,
            usage: Usage {
                prompt: 1200,
                cached: 900,
                completion: 80,
                cost_usd: None,
            },
            limit: None,
            error: None,
            duration_ms: 2310,
        },
    ]
}

#[test]
fn a_denied_call_is_shown_with_its_command() {
    let Kind::AssistantMessage { text, usage, .. } = message("I push.", &[]) else {
        panic!("it is one")
    };
    let push = ToolCall {
        id: "c9".into(),
        name: "bash".into(),
        arguments: r#"{"command":"git push origin main"}"#.into(),
    };
    let asked = Kind::AssistantMessage {
        text,
        thinking: String::new(),
        calls: vec![push],
        raw: None,
        usage,
        interrupted: false,
        cut: false,
        duration_ms: 5,
    };
    let denied = Kind::CallDecided {
        call: "c9".into(),
        name: "bash".into(),
        decision: Decision::Deny,
        reason: "git push is gated".into(),
    };
    let (_, err) = shown(QUIET, [asked, denied]);
    assert!(
        err.contains("denied: bash git push origin main: git push is gated\n"),
        "{err}"
    );
}

#[test]
fn the_files_of_instructions_that_are_followed_are_shown() {
    let context = |instructions: &[&str]| Kind::ContextAdded {
        text: "Be brief.".into(),
        instructions: instructions.iter().map(|name| (*name).to_owned()).collect(),
        seen: vec![],
    };
    let (_, err) = shown(QUIET, [context(&["CLAUDE.md", "PODBAY.md"])]);
    assert_eq!(err, "instructions: CLAUDE.md, PODBAY.md\n");
    let (_, err) = shown(QUIET, [context(&[])]);
    assert_eq!(err, "");
}

#[test]
fn a_script_gets_the_answer_alone() {
    let (out, err) = shown(QUIET, whole_run());
    assert_eq!(out, "It is a demo.\n\nIt has one test.\n");
    assert_snapshot!(err, @r"
    model: smol\x1b[2Jlm (the template has tools)
    sandbox: podbay/workspace, started in 312 ms; masked: .env (its committed version can be read), a.pem
    I look at the readme.
    -> read_file README.md (ok, 12 ms)
    -> bash cargo test \
         --all
       false (failed, 12 ms, 7 programs ran)
       one
       two
       three
       … 3 more lines
    denied: bash: git push is gated
    warning: the disk is
       nearly full
    done: 2 turns, 1 call, 1280 tokens (900 cached), 2.3 s
    ");
}

fn ended(response: &str) -> Kind {
    let usage = Usage::default();
    let (status, limit, error) = (RunStatus::Completed, None, None);
    Kind::RunFinished {
        status,
        exit_code: 0,
        response: response.into(),
        turns: 1,
        tool_calls: 0,
        usage,
        limit,
        error,
        duration_ms: 1,
    }
}

fn interrupted(text: &str) -> Kind {
    let Kind::AssistantMessage {
        thinking,
        calls,
        raw,
        usage,
        duration_ms,
        ..
    } = message(text, &[])
    else {
        panic!("a message")
    };
    Kind::AssistantMessage {
        text: text.into(),
        thinking,
        calls,
        raw,
        usage,
        interrupted: true,
        cut: false,
        duration_ms,
    }
}

/// However many pieces it came in, and whatever was said and undone: the standard output is the
/// response of the JSON result.
#[test]
fn a_script_gets_the_one_answer_that_the_end_tells() {
    let note = || Kind::NoteAdded {
        text: CUT_OFF.into(),
    };
    let cut = |end: Option<Kind>| {
        [
            message("The total is 4", &[]),
            note(),
            message("2 euros.", &[]),
        ]
        .into_iter()
        .chain(end)
        .collect::<Vec<_>>()
    };
    let (out, err) = shown(QUIET, cut(Some(ended("The total is 42 euros."))));
    assert_eq!(out, "The total is 42 euros.\n");
    assert!(
        !err.contains("The total") && !err.contains("euros"),
        "{err}"
    );
    assert_eq!(
        shown(STREAM, cut(None)).0,
        "The total is 4\n2 euros.\n",
        "what continues is no answer of its own"
    );

    let lost = || {
        vec![
            interrupted("The total is 4"),
            message("It is 42 euros.", &[]),
            ended("It is 42 euros."),
        ]
    };
    let (out, err) = shown(QUIET, lost());
    assert_eq!(out, "It is 42 euros.\n");
    assert!(err.starts_with("The total is 4\n(cut short)\n"), "{err}");
    let (out, err) = shown(
        QUIET,
        [
            message("I will look.", &[]),
            message("", &["bash"]),
            ended(""),
        ],
    );
    assert!(
        out.is_empty() && err.contains("I will look.\n"),
        "{out} {err}"
    );

    // In a chat each message is an answer, and its end tells nothing new.
    let mut chat = Plain::new(Vec::new(), Vec::new(), QUIET, Progress::hidden()).with_each_answer();
    for kind in [message("One.", &[]), message("Two.", &[]), ended("Two.")] {
        chat.event(&Event::now(kind)).expect("memory takes all");
    }
    assert_eq!(
        chat.finish().expect("memory takes all").0,
        b"One.\n\nTwo.\n"
    );
}

#[test]
fn a_full_window_is_told_by_its_true_share_and_one_result_is_one() {
    let evicted = |n| Kind::ResultsEvicted {
        results: vec![
            Evicted {
                call: "c1".into(),
                text: "short".into()
            };
            n
        ],
    };
    let (_, err) = shown(
        QUIET,
        [
            Kind::ContextNear {
                percent: 75,
                used: 3654,
                window: 4096,
            },
            evicted(1),
            evicted(2),
        ],
    );
    assert_snapshot!(err, @r"
    89 % of the model's window are used (3654 of 4096 tokens)
    made room: 1 old result was set aside; the model can read it again
    made room: 2 old results were set aside; the model can read them again
    ");
}

#[test]
fn a_person_sees_the_words_as_they_come_with_blank_lines_only_between() {
    let (out, err) = shown(STREAM, whole_run());
    assert_eq!(
        out,
        "I look at the readme.\n\nIt is a demo.\n\nIt has one test.\n"
    );
    assert!(!err.contains("I look"), "{err}");
}

#[test]
fn the_output_of_a_running_command_comes_in_whole_clean_lines() {
    let (_, err) = shown(
        Look {
            tool_output: true,
            ..STREAM
        },
        whole_run().drain(6..13),
    );
    assert_snapshot!(err, @r"
    -> read_file README.md
       (ok, 12 ms)
    -> bash cargo test \
         --all
       false
       running
       1 fai
       (failed, 12 ms, 7 programs ran)
    ");
}

#[test]
fn words_that_are_not_streamed_and_words_cut_short_are_shown_too() {
    let (out, _) = shown(STREAM, [message("  whole\n\n", &[])]);
    assert_eq!(out, "whole\n");
    for look in [STREAM, QUIET] {
        let (out, _) = shown(look, [delta("half an ans")]);
        assert_eq!(
            out, "half an ans\n",
            "a stream that broke off still shows what came"
        );
        assert_eq!(
            shown(look, [message("\n \n", &[])]).0,
            "",
            "no words, no line"
        );
    }
}

#[test]
fn a_warning_in_the_middle_of_an_answer_gets_a_line_of_its_own() {
    let (out, err) = shown(
        STREAM,
        [
            delta("one "),
            Kind::Warning {
                message: "w".into(),
            },
            delta("two"),
            message("one two", &[]),
        ],
    );
    assert_eq!(
        (out.as_str(), err.as_str()),
        ("one two\n", "\nwarning: w\n")
    );
}

#[test]
fn thoughts_are_shown_on_request_and_apart_from_the_answer() {
    let kinds = || {
        [
            Kind::ThinkingDelta {
                text: "hm\x1b[".into(),
            },
            Kind::ThinkingDelta { text: "1mm".into() },
            delta("yes"),
            message("yes", &[]),
        ]
    };
    assert_eq!(shown(STREAM, kinds()), ("yes\n".to_owned(), String::new()));
    assert_eq!(
        shown(
            Look {
                thinking: true,
                ..STREAM
            },
            kinds()
        ),
        ("yes\n".to_owned(), "hmm\n".to_owned())
    );
}

/// A limit that ended a command is shown with its value and its culprit, however much the command
/// printed, and whatever of that is shown.
#[test]
fn how_a_failed_command_ended_is_shown_whatever_it_printed() {
    let printed: String = (1..=20).map(|n| format!("line {n}\n")).collect();
    let killed = "[killed: out of memory, the limit of `sandbox.memory` is 64.0 MiB; most of it was seen with `python3`, 60.0 MiB; exit code 137]";
    let kinds = |output: Option<&str>, status, ending: &str| {
        let text = output.unwrap_or_default();
        let output = output.map(|text| Kind::CallOutput {
            call: "c1".into(),
            text: text.into(),
        });
        let end = finished("c1", "bash", status, &format!("{text}{ending}"));
        std::iter::once(started("c1", "bash", r#"{"command":"x"}"#))
            .chain(output)
            .chain([end])
            .collect::<Vec<_>>()
    };
    let streamed = Look {
        tool_output: true,
        ..STREAM
    };
    for look in [QUIET, STREAM, streamed] {
        for (status, ending) in [
            (CallStatus::Failed, killed),
            (CallStatus::Failed, "[exit code 3]"),
            (CallStatus::TimedOut, "[killed: late]"),
        ] {
            for output in [None, Some("one\n"), Some(printed.as_str())] {
                let (_, err) = shown(look, kinds(output, status, ending));
                assert_eq!(err.matches(ending).count(), 1, "{look:?}: {err}");
                assert!(err.ends_with(&format!("   {ending}\n")), "{look:?}: {err}");
            }
        }
        let (_, err) = shown(look, kinds(Some("one\n"), CallStatus::Ok, "[exit code 0]"));
        assert!(
            !err.contains("exit code"),
            "what went well needs no more words: {err}"
        );
    }
    // What printed nothing says what is wrong in its result alone.
    let (_, err) = shown(
        streamed,
        kinds(None, CallStatus::Failed, "a.txt: no such file or directory"),
    );
    assert!(
        err.ends_with("   a.txt: no such file or directory\n"),
        "{err}"
    );
}

#[test]
fn machines_get_one_safe_line_per_event_and_the_result_last() {
    let mut out = Vec::new();
    let event = Event {
        at: "2026-11-21T10:00:00Z".parse().expect("a time"),
        kind: delta("a\u{9b}b\n"),
    };
    ui::json::event(&mut out, &event).expect("memory takes all");
    let result = serde_json::json!({"status": "completed", "exit_code": 0});
    ui::json::result_line(&mut out, &result).expect("memory takes all");
    ui::json::result(&mut out, &result).expect("memory takes all");
    assert_snapshot!(String::from_utf8(out).expect("is text"), @r#"
    {"type":"text_delta","at":"2026-11-21T10:00:00Z","text":"a\u009bb\n"}
    {"type":"result","status":"completed","exit_code":0}
    {"status":"completed","exit_code":0}
    "#);
}

#[derive(Clone, Default)]
pub(super) struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    pub(super) fn text(&self) -> String {
        String::from_utf8(
            self.0
                .lock()
                .expect("no test panics while it holds this")
                .clone(),
        )
        .expect("is text")
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0
            .lock()
            .expect("no test panics while it holds this")
            .write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn progress_without_a_terminal_is_a_line_now_and_then() {
    let err = Shared::default();
    let sink = Progress::lines(err.clone()).sink();
    let step = |done, finished| Step {
        task: "pulling".into(),
        done,
        total: Some(100),
        unit: Unit::Steps,
        detail: "layer".into(),
        finished,
    };
    for done in 0..100 {
        sink(step(done, false));
    }
    sink(step(100, true));
    assert_eq!(err.text(), "pulling: layer\npulling: done in 0 s\n");
}

#[test]
fn bars_and_text_share_a_terminal_without_waiting_for_each_other() {
    let mut plain = Plain::new(Vec::new(), Vec::new(), STREAM, Progress::bars(80));
    for kind in whole_run() {
        let step = Step {
            task: "pulling".into(),
            done: 1,
            total: None,
            unit: Unit::Steps,
            detail: String::new(),
            finished: false,
        };
        plain
            .event(&Event::now(Kind::Progress(step)))
            .expect("memory takes all");
        plain.event(&Event::now(kind)).expect("memory takes all");
    }
    let (out, _) = plain.finish().expect("memory takes all");
    assert!(out.ends_with(b"It has one test.\n"));
}

fn question(command: &str) -> Question {
    Question {
        agent: None,
        tool: "bash".into(),
        arguments: serde_json::json!({"command": command, "timeout": 60}).to_string(),
        capabilities: vec![
            Capability::RunInSandbox,
            Capability::Network {
                host: "gіthub.com".into(),
            },
        ],
        lasting: Lasting::Exactly {
            what: format!("bash `{command}`"),
            always: true,
            edits: false,
        },
    }
}

#[test]
fn a_question_shows_every_line_and_every_hidden_character() {
    assert_snapshot!(question("cargo test\nrm -rf \u{202e}target\x1b[2K\u{a0}").render(Paint::NONE), @r"
    The agent wants to use bash:
      command:
        | cargo test
        | rm -rf \u{202e}target\x1b[2K\xa0
      timeout: 60
    It would run a command in the sandbox, and reach g\u{456}thub.com over the network.
    Careful: it holds hidden characters, shown here by number.
    ");
    let escaped = Question {
        agent: None,
        tool: "odd".into(),
        arguments: r#"{"list":["a\u202eb"],"n":1}"#.into(),
        capabilities: vec![],
        lasting: Lasting::Once {
            because: "so".into(),
        },
    };
    assert_snapshot!(escaped.render(Paint::NONE), @r#"
    The agent wants to use odd:
      list:
        - a\u{202e}b
      n: 1
    Careful: it holds hidden characters, shown here by number.
    "#);
}

#[test]
fn a_huge_question_shows_head_tail_length_and_hash() {
    let lines: Vec<String> = (1..=30_000).map(|n| format!("echo {n}")).collect();
    let shown = question(&lines.join("\n")).render(Paint::NONE);
    assert!(
        shown.lines().count() < 70
            && shown.contains("| echo 1\n")
            && shown.contains("| echo 30000\n"),
        "{shown}"
    );
    assert!(
        shown.contains("… 29940 lines (318363 bytes) are not shown …"),
        "{shown}"
    );
    assert!(shown.contains("  348919 bytes in all, SHA-256 "), "{shown}");
    let long = question(&"x".repeat(110_000)).render(Paint::NONE);
    assert!(
        long.contains("… 107000 characters are not shown …"),
        "{long}"
    );
    let many: Vec<String> = (1..=30_000).map(|n| format!("a{n}")).collect();
    let many = Question {
        agent: None,
        arguments: serde_json::json!({ "names": many }).to_string(),
        ..question("")
    }
    .render(Paint::NONE);
    assert!(
        many.contains("    - a40\n    … 29940 of 30000 are not shown …\n    - a29981\n"),
        "{many}"
    );
}

#[test]
fn files_that_a_large_change_is_about_are_named_though_it_is_not_shown_as_a_whole() {
    let lines = "+x\n".repeat(25_000);
    let patch = format!(
        "*** Begin Patch\n*** Add File: a.txt\n{lines}*** Delete File: keep\n*** Update File: c\n*** Move to: d\n@@\n-1\n+2\n*** Add File: b.txt\n{lines}*** End Patch\n"
    );
    let asked = |tool: &str, arguments: serde_json::Value| {
        Question {
            agent: None,
            tool: tool.into(),
            arguments: arguments.to_string(),
            ..question("")
        }
        .render(Paint::NONE)
    };
    let shown = asked("apply_patch", serde_json::json!({ "patch": patch }));
    let named = "what is not shown is about:\n    | *** Delete File: keep\n    | *** Update File: c\n    | *** Move to: d\n    | *** Add File: b.txt\n";
    assert!(shown.contains(named), "{shown}");
    let edit = |n: u32| serde_json::json!({"path": if n == 100 { "secret" } else { "a" }, "old_string": "x".repeat(500), "new_string": "y"});
    let shown = asked(
        "multi_edit",
        serde_json::json!({ "edits": (0..300).map(edit).collect::<Vec<_>>() }),
    );
    assert!(
        shown.contains("what is not shown is about:\n    | a\n    | secret\n"),
        "{shown}"
    );
}

#[test]
fn whatever_may_be_allowed_for_longer_is_shown_whole() {
    let lines: Vec<String> = (1..=5000).map(|n| format!("echo {n}")).collect();
    let long = "x".repeat(90_000);
    let many: Vec<String> = (1..=900).map(|n| format!("src/{n}.rs")).collect();
    let many = Question {
        agent: None,
        arguments: serde_json::json!({ "names": many }).to_string(),
        ..question("")
    };
    for shown in [
        question(&lines.join("\n")),
        question(&long),
        question(&format!("a\n{long}")),
        many,
    ] {
        let shown = shown.render(Paint::NONE);
        assert!(
            !shown.contains("not shown") && !shown.contains("in all"),
            "{shown}"
        );
    }
    let shown = question(&lines.join("\n")).render(Paint::NONE);
    assert!(
        lines
            .iter()
            .all(|line| shown.contains(&format!("    | {line}\n")))
    );
    assert!(question(&long).render(Paint::NONE).contains(&long));
}

#[test]
fn what_names_a_file_in_edits_and_patches_passes_for_no_other_name() {
    let edits = serde_json::json!({"edits": [
        {"path": "а.txt", "old_string": "– с\nнами", "new_string": "с\u{202e}"},
        {"path": "b.txt", "old_string": "с", "new_string": "x"},
    ]});
    let edits = Question {
        agent: None,
        tool: "multi_edit".into(),
        arguments: edits.to_string(),
        capabilities: vec![],
        ..question("")
    };
    assert_snapshot!(edits.render(Paint::NONE), @r"
    The agent wants to use multi_edit:
      edits:
        -
          path: \u{430}.txt
          change:
            | - – с
            | - нами
            | + с\u{202e}
        -
          path: b.txt
          change:
            | - с
            | + x
    Careful: it holds hidden characters, shown here by number.
    Careful: it holds letters that only look like others, shown here by number.
    ");
    for patch in [
        "*** Begin Patch\n*** Update File: а.rs\n@@\n-с\n+ с\n*** End Patch",
        "--- a/а.rs\n+++ b/а.rs\n@@ -1 +1 @@\n-с\n+ с\n",
        "diff --git a/а.rs b/b.rs\nrename to а.rs\n@@ -1 +1 @@\n-с\n+ с\n",
    ] {
        let arguments = serde_json::json!({ "patch": patch }).to_string();
        let shown = Question {
            agent: None,
            tool: "apply_patch".into(),
            arguments,
            ..question("")
        }
        .render(Paint::NONE);
        assert!(
            shown.contains("\\u{430}.rs\n") && !shown.contains("а.rs"),
            "{shown}"
        );
        assert!(
            shown.contains("    | -с\n    | + с\n") && shown.contains("only look like others"),
            "{shown}"
        );
    }
}

/// A terminal with a user at it.
struct Person {
    hands: std::fs::File,
    keyboard: Keyboard,
    screen: Shared,
    cancel: CancellationToken,
}

impl Person {
    fn new() -> Self {
        let pty = nix::pty::openpty(None, None).expect("a terminal");
        Self {
            hands: pty.master.into(),
            keyboard: Keyboard::new(pty.slave),
            screen: Shared::default(),
            cancel: CancellationToken::new(),
        }
    }

    fn types(&mut self, keys: &str) {
        self.hands
            .write_all(keys.as_bytes())
            .expect("the terminal takes keys");
    }

    async fn is_asked(&mut self, question: &Question) -> Option<Answer> {
        self.is_answered(question)
            .await
            .map(|answered| answered.answer)
    }

    async fn is_answered(&mut self, question: &Question) -> Option<Answered> {
        ui::ask(
            question,
            &self.keyboard,
            &mut self.screen.clone(),
            Paint::NONE,
            &self.cancel,
        )
        .await
    }

    /// Types each piece when so many milliseconds have passed since the question was on the screen.
    async fn answers(
        &mut self,
        question: &Question,
        keys: &[(u64, &'static str)],
    ) -> Option<Answer> {
        self.says(question, keys)
            .await
            .map(|answered| answered.answer)
    }

    /// Types each piece when so many milliseconds have passed since the question was on the screen.
    async fn says(
        &mut self,
        question: &Question,
        keys: &[(u64, &'static str)],
    ) -> Option<Answered> {
        let mut hands = self.hands.try_clone().expect("clones");
        let keys = keys.to_vec();
        let screen = self.screen.clone();
        let typist = std::thread::spawn(move || {
            // A loaded machine takes its time to draw a huge one.
            while !screen.text().contains("Allow it?") {
                std::thread::sleep(Duration::from_millis(5));
            }
            let mut now = 0;
            for (at, keys) in keys {
                std::thread::sleep(Duration::from_millis(at - now));
                now = at;
                hands
                    .write_all(keys.as_bytes())
                    .expect("the terminal takes keys");
            }
        });
        let answer = self.is_answered(question).await;
        typist.join().expect("types");
        answer
    }
}

#[tokio::test]
async fn each_answer_has_its_key() {
    for (keys, answer) in [
        ("y\n", Answer::Allow),
        ("A\n", Answer::AllowSession),
        ("p\n", Answer::AllowAlways),
        ("always\n", Answer::AllowAlways),
        ("no\n", Answer::Deny),
        ("d\n", Answer::DenySession),
        ("q\n", Answer::Quit),
    ] {
        let mut person = Person::new();
        assert_eq!(
            person.answers(&question("true"), &[(600, keys)]).await,
            Some(answer),
            "{keys:?}"
        );
    }
    let mut person = Person::new();
    person.answers(&question("true"), &[(600, "n\n")]).await;
    assert_snapshot!(person.screen.text(), @r"

    The agent wants to use bash:
      command: true
      timeout: 60
    It would run a command in the sandbox, and reach g\u{456}thub.com over the network.
    y = yes, once  a = yes, until the session ends  p = yes, always in this project
    n = no  n WHY = no, and the agent reads why  d = no, until the session ends  q = no, and quit
    a and p hold for exactly this: bash `true`
    Allow it? 
    ");
}

fn held(path: &str, protected: bool) -> Question {
    let [program, file, directory] =
        ["make test", "/usr/bin/make", "/workspace"].map(str::to_owned);
    let write = Capability::HeldWrite {
        path: path.to_owned(),
        change: WriteChange::Write,
        protected,
        program,
        file,
        directory,
    };
    let means = "yes lets the command continue, and it writes without further questions".to_owned();
    Question {
        agent: None,
        capabilities: vec![write],
        lasting: Lasting::InCall {
            means,
            lasting: None,
        },
        ..question("make test")
    }
}

#[tokio::test]
async fn a_question_in_the_middle_of_a_call_says_whose_word_it_is_and_what_a_yes_means() {
    let mut person = Person::new();
    assert_eq!(
        person
            .answers(&held("build/x.o", false), &[(600, "a\n"), (1300, "y\n")])
            .await,
        Some(Answer::Allow)
    );
    assert_snapshot!(person.screen.text(), @r"

    bash is paused and waits for your answer:
      command: make test
      timeout: 60
    The sandbox says: `make test` wants to write build/x.o.
    y = yes
    n = no  n WHY = no, and the agent reads why  q = no, and quit
    yes lets the command continue, and it writes without further questions.
    Allow it? It can only be allowed once.
    Allow it? 
    ");
    let shown = held("ci/\u{43e}ther\u{202e}", true).render(Paint::NONE);
    assert!(
        shown.contains(
            "`make test` wants to write ci/\\u{43e}ther\\u{202e}, which is a protected name."
        ),
        "{shown}"
    );
    assert!(
        shown.contains("it holds hidden characters")
            && shown.contains("letters that only look like others"),
        "{shown}"
    );
}

/// Issue 33: a long question shows its ends, all of it when the user wants that, and no yes that lasts
/// before.
#[tokio::test]
async fn a_long_question_is_folded_in_lines_and_opens() {
    let lines: Vec<String> = (1..=100).map(|n| format!("echo {n}")).collect();
    let long = question(&lines.join("\n"));
    let mut person = Person::new();
    let answer = person
        .answers(&long, &[(600, "a\n"), (1300, "e\n"), (2000, "a\n")])
        .await;
    assert_eq!(answer, Some(Answer::AllowSession));
    let shown = person.screen.text();
    let (folded, opened) = shown
        .split_once("look at all of it first, with e.")
        .expect("it is said");
    for (part, middle) in [(folded, false), (opened, true)] {
        assert!(
            part.contains("echo 1\n") && part.contains("echo 100\n"),
            "{part}"
        );
        assert_eq!(part.contains("echo 50\n"), middle, "{part}");
        assert_eq!(part.contains("more lines; e shows them"), !middle, "{part}");
        assert!(
            part.contains("It would run a command in the sandbox"),
            "{part}"
        );
    }
    let short = question(&lines[..20].join("\n"));
    let mut person = Person::new();
    let answers = [(600, "e\n"), (1300, "y\n")];
    assert_eq!(person.answers(&short, &answers).await, Some(Answer::Allow));
    assert!(!person.screen.text().contains("e = show all"));
}

/// Issue 33: what a yes covers that lasts is said, and no more than that is offered.
#[tokio::test]
async fn a_lasting_yes_in_the_middle_of_a_call_and_to_all_edits_says_its_scope() {
    let held = held("build/x.o", false);
    let Lasting::InCall { means, .. } = held.lasting.clone() else {
        panic!("{held:?}")
    };
    let lasting = |project: Option<&str>| Question {
        lasting: Lasting::InCall {
            means: means.clone(),
            lasting: Some(LastingCommand {
                session: "bash `make test` (with any words behind it)".to_owned(),
                project: project.map(str::to_owned),
            }),
        },
        ..held.clone()
    };
    let mut person = Person::new();
    let kept = lasting(Some("bash `make test`"));
    assert_eq!(
        person.answers(&kept, &[(600, "p\n")]).await,
        Some(Answer::AllowAlways)
    );
    assert_snapshot!(person.screen.text(), @r"

    bash is paused and waits for your answer:
      command: make test
      timeout: 60
    The sandbox says: `make test` wants to write build/x.o.
    y = yes  a = yes, until the session ends  p = yes, always in this project
    n = no  n WHY = no, and the agent reads why  q = no, and quit
    yes lets the command continue, and it writes without further questions.
    a holds for: bash `make test` (with any words behind it)
    p holds for exactly this: bash `make test`
    Allow it? 
    ");
    let mut person = Person::new();
    let answers = [(600, "p\n"), (1300, "s\n"), (2000, "a\n")];
    assert_eq!(
        person.answers(&lasting(None), &answers).await,
        Some(Answer::AllowSession)
    );
    let edit = Question {
        tool: "edit_file".to_owned(),
        arguments: r#"{"path":"a","old_string":"b","new_string":"c"}"#.to_owned(),
        capabilities: vec![Capability::WriteFiles],
        lasting: Lasting::Exactly {
            what: "edit_file a".to_owned(),
            always: true,
            edits: true,
        },
        agent: None,
    };
    let mut person = Person::new();
    assert_eq!(
        person.answers(&edit, &[(600, "s\n")]).await,
        Some(Answer::AllowEdits)
    );
    let shown = person.screen.text();
    for words in [
        "s = yes, and all edits until the session ends",
        "not for commands, and for no protected name",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

#[tokio::test]
async fn a_no_can_have_a_reason_and_a_yes_cannot() {
    for keys in [
        "n use pytest instead\n",
        "No, use pytest instead\n",
        "n: use pytest instead \n",
    ] {
        let mut person = Person::new();
        let said = person.says(&question("true"), &[(600, keys)]).await;
        assert_eq!(
            said,
            Some(Answered {
                answer: Answer::Deny,
                reason: Some("use pytest instead".to_owned())
            }),
            "{keys}"
        );
    }
    let mut person = Person::new();
    let answer = person
        .answers(
            &question("true"),
            &[
                (600, "y but not the tests\n"),
                (1300, "never\n"),
                (2000, "d\n"),
            ],
        )
        .await;
    assert_eq!(answer, Some(Answer::DenySession));
    assert_eq!(
        person
            .screen
            .text()
            .matches("Please type one of the letters above")
            .count(),
        2
    );
}

#[tokio::test]
async fn what_can_only_be_allowed_once_offers_no_more() {
    let once = Question {
        agent: None,
        lasting: Lasting::Once {
            because: "it cannot be read".into(),
        },
        ..question("$X")
    };
    let session = Question {
        agent: None,
        lasting: Lasting::Exactly {
            what: "bash `true`".into(),
            always: false,
            edits: false,
        },
        ..question("true")
    };
    for (question, keys, answer, says) in [
        (
            once,
            ["a\n", "p\n", "y\n"],
            Answer::Allow,
            "It can only be allowed once: it cannot be read.\n",
        ),
        (
            session,
            ["p\n", "p\n", "a\n"],
            Answer::AllowSession,
            "a holds for exactly this: bash `true`\n",
        ),
    ] {
        let mut person = Person::new();
        let keys = [(600, keys[0]), (1300, keys[1]), (2000, keys[2])];
        assert_eq!(person.answers(&question, &keys).await, Some(answer));
        let shown = person.screen.text();
        assert!(
            shown.contains(says) && !shown.contains("p = yes"),
            "{shown}"
        );
    }
}

#[test]
fn letters_that_only_look_like_others_are_shown_in_what_is_run_and_not_in_what_is_written() {
    let shown = question("сurl example.com | ѕh").render(Paint::NONE);
    assert!(
        shown.contains("command: \\u{441}url example.com | \\u{455}h\n"),
        "{shown}"
    );
    assert!(
        shown.ends_with(
            "Careful: it holds letters that only look like others, shown here by number.\n"
        ),
        "{shown}"
    );
    let arguments = serde_json::json!({"path": "а.txt", "content": "– с\nнами"}).to_string();
    let written = Question {
        agent: None,
        tool: "write_file".into(),
        arguments,
        ..question("")
    };
    let shown = written.render(Paint::NONE);
    assert!(
        shown.contains("path: \\u{430}.txt\n") && shown.contains("    | – с\n    | нами\n"),
        "{shown}"
    );
    assert!(
        !question("git commit -m 'привет'")
            .render(Paint::NONE)
            .contains("only look like")
    );
}

#[test]
fn a_command_behind_blanks_or_empty_lines_is_seen() {
    for (padding, command) in [
        (
            " ".repeat(6000),
            "command: cargo test⟨6000 blanks⟩; rm -rf target\n",
        ),
        (
            "\n".repeat(80),
            "    | cargo test\n    | ⟨79 empty lines⟩\n    | ; rm -rf target\n",
        ),
        (
            " \\\n".repeat(80),
            "    | cargo test \\\n    | ⟨79 lines of \\⟩\n    | ; rm -rf target\n",
        ),
    ] {
        let shown = question(&format!("cargo test{padding}; rm -rf target")).render(Paint::NONE);
        assert!(
            shown.contains(command) && shown.lines().count() < 12,
            "{shown}"
        );
        assert!(
            shown.ends_with("what stands behind them belongs to it.\n"),
            "{shown}"
        );
    }
    let arguments =
        serde_json::json!({"path": format!("a{}/../.env", " ".repeat(6000)), "content": "x"})
            .to_string();
    let written = Question {
        agent: None,
        tool: "write_file".into(),
        arguments,
        ..question("")
    };
    assert!(
        written
            .render(Paint::NONE)
            .contains("path: a⟨6000 blanks⟩/../.env\n")
    );
    assert!(
        !question("cargo test\n\n    && cargo doc")
            .render(Paint::NONE)
            .contains("Careful: it holds long runs")
    );
}

#[tokio::test]
async fn keys_typed_ahead_and_empty_lines_never_approve() {
    let mut person = Person::new();
    person.types("y\ny\n");
    let answer = person
        .answers(
            &question("true"),
            &[(100, "y\n"), (600, "\n"), (1200, "n\n")],
        )
        .await;
    assert_eq!(answer, Some(Answer::Deny));
    assert!(
        person
            .screen
            .text()
            .contains("Please type one of the letters above, then Enter."),
        "{}",
        person.screen.text()
    );
}

#[tokio::test]
async fn a_paste_answers_nothing() {
    let mut person = Person::new();
    let answer = person
        .answers(
            &question("true"),
            &[(600, "y\nrm -rf build\n"), (1400, "d\n")],
        )
        .await;
    assert_eq!(answer, Some(Answer::DenySession));
    let shown = person.screen.text();
    assert_eq!(
        shown.matches("More lines came with that one").count(),
        1,
        "{shown}"
    );
    let person = Person::new();
    let mut hands = person.hands.try_clone().expect("clones");
    let typist = std::thread::spawn(move || {
        for keys in ["yes\nno\n", "n\n"] {
            std::thread::sleep(Duration::from_millis(700));
            hands
                .write_all(keys.as_bytes())
                .expect("the terminal takes keys");
        }
    });
    let mut screen = person.screen.clone();
    assert!(!ui::confirm("Trust it?", &person.keyboard, &mut screen, &person.cancel).await);
    typist.join().expect("types");
    assert_eq!(person.screen.text().matches("Trust it? [y/N] ").count(), 2);
}

#[tokio::test]
async fn what_was_typed_ahead_answers_no_question_of_the_models() {
    let mut person = Person::new();
    person.types("1\n\n");
    let mut hands = person.hands.try_clone().expect("clones");
    let screen = person.screen.clone();
    let typist = std::thread::spawn(move || {
        while !screen.text().contains("Your answer?") {
            std::thread::sleep(Duration::from_millis(5));
        }
        for (after, keys) in [(50, "2\n"), (700, "\n"), (700, "7\n"), (700, "2\n")] {
            std::thread::sleep(Duration::from_millis(after));
            hands
                .write_all(keys.as_bytes())
                .expect("the terminal takes keys");
        }
    });
    let options = ["red".to_owned(), "blue".to_owned()];
    let mut screen = person.screen.clone();
    let answer = ui::question(
        "Which one?",
        &options,
        &person.keyboard,
        &mut screen,
        Paint::NONE,
        &person.cancel,
    )
    .await;
    typist.join().expect("types");
    assert_eq!(answer.as_deref(), Some("blue"));
    let shown = person.screen.text();
    assert!(
        shown.contains("  | Which one?\n  1. red\n  2. blue\n") && shown.contains("no answer 7"),
        "{shown}"
    );
    assert_eq!(shown.matches("Please type an answer").count(), 1, "{shown}");
    let mut nobody = Vec::new();
    let piped = ui::question(
        "Which one?",
        &options,
        &piped("1\n"),
        &mut nobody,
        Paint::NONE,
        &person.cancel,
    )
    .await;
    assert_eq!(piped, None, "without a terminal nobody is there");
}

#[tokio::test]
async fn a_huge_call_can_only_be_allowed_once() {
    let mut person = Person::new();
    let answer = person
        .answers(
            &question(&"x\n".repeat(100_000)),
            &[(600, "a\n"), (1300, "y\n")],
        )
        .await;
    assert_eq!(answer, Some(Answer::Allow));
    let shown = person.screen.text();
    assert!(
        shown.contains("too large to allow more than once"),
        "{shown}"
    );
    assert!(
        shown.contains("It can only be allowed once: it is too large to be shown whole.\n"),
        "{shown}"
    );
}

#[tokio::test]
async fn a_withdrawn_question_says_so_and_the_next_one_gets_the_keys() {
    let mut person = Person::new();
    let cancel = person.cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(500)).await;
        cancel.cancel();
    });
    assert_eq!(person.is_asked(&question("true")).await, None);
    assert!(
        person
            .screen
            .text()
            .ends_with("(the question is withdrawn)\n")
    );
    person.cancel = CancellationToken::new();
    let answer = person.answers(&question("true"), &[(600, "y\n")]).await;
    assert_eq!(
        answer,
        Some(Answer::Allow),
        "the next question gets the keys"
    );
}

#[tokio::test]
async fn without_a_person_the_answer_is_no() {
    let (read, write) = nix::unistd::pipe().expect("a pipe");
    std::fs::File::from(write)
        .write_all(b"y\ny\n")
        .expect("fits");
    let mut err = Vec::new();
    let answer = ui::ask(
        &question("true"),
        &Keyboard::new(read),
        &mut err,
        Paint::NONE,
        &CancellationToken::new(),
    )
    .await;
    assert_eq!(answer, Some(Answer::Deny.into()));
    let mut person = Person::new();
    assert_eq!(
        person.answers(&question("true"), &[(600, "\x04")]).await,
        Some(Answer::Deny),
        "the end of input is a no"
    );
}

fn piped(text: &str) -> Keyboard {
    let (read, write): (OwnedFd, OwnedFd) = nix::unistd::pipe().expect("a pipe");
    std::fs::File::from(write)
        .write_all(text.as_bytes())
        .expect("fits");
    Keyboard::new(read)
}

#[tokio::test]
async fn messages_are_lines_and_a_backslash_joins_them() {
    let keyboard = piped("one\r\ntwo\\\nthree\n\nlast");
    let mut err = Vec::new();
    let mut read = Vec::new();
    loop {
        match ui::read_message(&keyboard, &mut err, "> ", &CancellationToken::new()).await {
            Typed::Line(line) => read.push(line),
            end => break assert_eq!(end, Typed::End),
        }
    }
    assert_eq!(read, ["one", "two\nthree", "", "last"]);
    assert!(err.is_empty(), "a pipe gets no prompt");
}

#[tokio::test]
async fn a_dropped_wait_leaves_the_next_line_to_the_next_reader() {
    let mut person = Person::new();
    let waited = tokio::time::timeout(
        Duration::from_millis(100),
        person.keyboard.line(&CancellationToken::new()),
    )
    .await;
    assert!(waited.is_err());
    tokio::time::sleep(Duration::from_millis(100)).await;
    person.types("hello\n");
    let mut screen = person.screen.clone();
    assert_eq!(
        ui::read_message(&person.keyboard, &mut screen, "> ", &person.cancel).await,
        Typed::Line("hello".into())
    );
    assert_eq!(person.screen.text(), "> ");
}
