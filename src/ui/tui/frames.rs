//! Frames of the chat, at three sizes.

use std::time::Duration;
use std::time::Instant;

use crossterm::event::KeyCode;
use crossterm::event::KeyEvent;
use crossterm::event::KeyModifiers;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use tokio::sync::oneshot;

use podbay_event::ActionDone;
use podbay_event::Answer;
use podbay_event::Answered;
use podbay_event::CallStatus;
use podbay_event::Capability;
use podbay_event::ChangedLines;
use podbay_event::Command;
use podbay_event::Event;
use podbay_event::ExecutionReport;
use podbay_event::FileTouched;
use podbay_event::Kind;
use podbay_event::Lasting;
use podbay_event::MessageQueue;
use podbay_event::ProjectChanges;
use podbay_event::RunStatus;
use podbay_event::TaskEnd;
use podbay_event::ToolMode;
use podbay_event::Usage;

use super::modal::Ask;
use super::screen::Effect;
use super::screen::Screen;
use super::screen::Told;
use super::status::Facts;
use super::theme::Theme;
use super::vi::Vi;
use crate::Keys;
use crate::Question;

/// A chat with a clock that the test turns.
pub(super) struct Stage {
    pub(super) screen: Screen,
    pub(super) now: Instant,
}

impl Stage {
    pub(super) fn new() -> Self {
        let facts = Facts {
            project: "shop".to_owned(),
            mode: "ask".to_owned(),
            model: String::new(),
            limits: "2 cores, 2 GiB, no network".to_owned(),
            branch: Some("main".to_owned()),
            has_plan_mode: true,
        };
        Self {
            screen: Screen::new(
                Theme::new(false),
                facts,
                Keys::Emacs,
                MessageQueue::default(),
            ),
            now: Instant::now(),
        }
    }

    /// A chat that is ready for a message.
    pub(super) fn ready() -> Self {
        let mut stage = Self::new();
        stage.happens(Kind::SandboxStarted {
            image: "podbay/workspace".to_owned(),
            duration_ms: 300,
            hidden: Vec::new(),
            tracked: Vec::new(),
        });
        stage.happens(Kind::ModelReady {
            model: "qwen".to_owned(),
            context: Some(32_768),
            tools: ToolMode::Native,
            reason: String::new(),
        });
        stage.told(Told::Ready);
        stage
    }

    pub(super) fn told(&mut self, told: Told) -> Vec<Effect> {
        self.screen.told(told, self.now)
    }

    pub(super) fn happens(&mut self, kind: Kind) {
        self.told(Told::Event(Box::new(kind.into())));
    }

    pub(super) fn later(&mut self, ms: u64) {
        self.now += Duration::from_millis(ms);
        self.screen.tick(self.now);
    }

    pub(super) fn types(&mut self, text: &str) -> Vec<Effect> {
        let keys = text.chars().map(|c| match c {
            '\n' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            c => KeyCode::Char(c),
        });
        keys.flat_map(|code| self.key(code, KeyModifiers::NONE))
            .collect()
    }

    pub(super) fn key(&mut self, code: KeyCode, modifiers: KeyModifiers) -> Vec<Effect> {
        self.later(20);
        self.screen.key(KeyEvent::new(code, modifiers), self.now)
    }

    pub(super) fn control(&mut self, letter: char) -> Vec<Effect> {
        self.key(KeyCode::Char(letter), KeyModifiers::CONTROL)
    }

    pub(super) fn frame(&mut self, width: u16, height: u16) -> String {
        let mut terminal =
            Terminal::new(TestBackend::new(width, height)).expect("a terminal in memory");
        terminal
            .draw(|frame| self.screen.draw(frame, self.now))
            .expect("draws");
        let buffer = terminal.backend().buffer();
        let mut out = String::new();
        for row in buffer.content().chunks(usize::from(width)) {
            let mut skip = 0;
            let mut line = String::new();
            for cell in row {
                if skip > 0 {
                    skip -= 1;
                    continue;
                }
                line.push_str(cell.symbol());
                skip = super::wrap::width(cell.symbol()).saturating_sub(1);
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }

    #[track_caller]
    pub(super) fn check(&mut self, name: &str) {
        for (width, height) in [(80, 24), (140, 45), (40, 12)] {
            let frame = self.frame(width, height);
            insta::assert_snapshot!(format!("{name}_{width}x{height}"), frame);
        }
    }
}

fn said(text: &str, completion: u64) -> Kind {
    Kind::AssistantMessage {
        text: text.to_owned(),
        thinking: String::new(),
        calls: Vec::new(),
        raw: None,
        usage: Usage {
            prompt: 4000,
            cached: 3900,
            completion,
            cost_usd: None,
        },
        interrupted: false,
        cut: false,
        duration_ms: 2000,
    }
}

fn started(call: &str, name: &str, arguments: &str) -> Kind {
    Kind::CallStarted {
        call: call.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    }
}

fn finished(call: &str, name: &str, status: CallStatus, result: &str, duration_ms: u64) -> Kind {
    Kind::CallFinished {
        call: call.to_owned(),
        name: name.to_owned(),
        status,
        result: result.to_owned(),
        artifact: None,
        duration_ms,
        seen: Vec::new(),
    }
}

fn turn(stage: &mut Stage) {
    assert_eq!(
        stage.types("fix the failing test\n"),
        [Effect::Send(Command::Say(
            "fix the failing test".to_owned()
        ))]
    );
    stage.happens(Kind::ThinkingDelta {
        text: "The test expects 3. ".repeat(20),
    });
    stage.happens(Kind::TextDelta {
        text: "I look at the **test** first.\n\n```python\ndef add(a, b):\n    return a - b\n```\n"
            .to_owned(),
    });
    stage.happens(said("", 80));
    stage.happens(started("c1", "grep", r#"{"pattern":"add","path":"src"}"#));
    stage.happens(finished(
        "c1",
        "grep",
        CallStatus::Ok,
        "src/app.py:1:def add\nsrc/app.py:9:add(1, 2)",
        12,
    ));
    stage.happens(started(
        "c2",
        "edit_file",
        r#"{"path":"src/app.py","old_string":"a - b","new_string":"a + b"}"#,
    ));
    stage.happens(finished(
        "c2",
        "edit_file",
        CallStatus::Ok,
        "edited src/app.py (1 place)\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return a + b",
        3,
    ));
    stage.happens(started("c3", "bash", r#"{"command":"make test"}"#));
    stage.happens(Kind::CallOutput {
        call: "c3".to_owned(),
        text: "collecting\ntest_add\x1b[31m FAILED\x1b[0m\n".to_owned(),
    });
}

fn ends(stage: &mut Stage) {
    stage.later(8100);
    stage.happens(finished(
        "c3",
        "bash",
        CallStatus::Failed,
        "collecting\ntest_add FAILED\n[exit code 2]",
        8100,
    ));
    stage.happens(said("It is fixed, but `make test` **fails** still.", 40));
    stage.happens(Kind::TaskEnded(TaskEnd {
        status: RunStatus::Completed,
        response: String::new(),
        denied: Vec::new(),
    }));
    stage.told(Told::Ready);
}

#[test]
fn before_the_first_message_the_editor_is_there() {
    Stage::new().check("first");
}

#[test]
fn a_turn_under_way_says_what_it_does() {
    let mut stage = Stage::ready();
    turn(&mut stage);
    stage.later(8000);
    stage.check("under_way");
}

#[test]
fn a_turn_that_is_over_is_summed_up() {
    let mut stage = Stage::ready();
    turn(&mut stage);
    ends(&mut stage);
    stage.check("over");
}

#[test]
fn what_a_turn_changed_stands_in_its_summary_as_the_comparison_counted_it() {
    let mut stage = Stage::ready();
    turn(&mut stage);
    ends(&mut stage);
    let changes = |n| {
        Kind::ProjectChanged(ProjectChanges {
            n,
            lines: Some(ChangedLines {
                added: 1,
                removed: 1,
            }),
            ..ProjectChanges::default()
        })
    };
    stage.happens(changes(1));
    let frame = stage.frame(80, 24);
    let line = frame.lines().find(|line| line.contains("2 requests"));
    assert!(
        line.is_some_and(|line| line.starts_with("1 file, +1 −1, 2 requests, ")),
        "{frame}"
    );
    // What comes later is no part of it.
    stage.happens(changes(2));
    let frame = stage.frame(80, 24);
    assert!(
        frame.contains("1 file, +1 −1, 2 requests") && frame.contains("\n2 files, +1 −1\n"),
        "{frame}"
    );
}

#[test]
fn the_execution_report_is_a_panel_of_its_own() {
    let mut stage = Stage::ready();
    stage.told(Told::Report(Box::new(ExecutionReport {
        status: Some(RunStatus::Completed),
        model: Some("qwen\x1b[2J".to_owned()),
        actions: std::iter::once(ActionDone {
            tool: "edit_file".to_owned(),
            arguments: r#"{"path":"src/app.py"}"#.to_owned(),
            status: Some(CallStatus::Ok),
            duration_ms: 3,
        })
        .collect(),
        modified: std::iter::once(FileTouched {
            path: "src/a very long name of a file that has to be wrapped somewhere.py".to_owned(),
            lines: Some(ChangedLines {
                added: 12,
                removed: 4,
            }),
        })
        .collect(),
        requests: 2,
        duration_ms: 3100,
        ..ExecutionReport::default()
    })));
    stage.check("report");
}

#[test]
fn a_task_list_is_a_list_of_boxes() {
    let mut stage = Stage::ready();
    stage.types("go\n");
    stage.happens(started("c1", "task_list", r#"{"tasks":[]}"#));
    stage.happens(finished(
        "c1",
        "task_list",
        CallStatus::Ok,
        "[x] read the test\n[>] fix \x1b[31madd\n[ ] run all of them",
        2,
    ));
    stage.check("task_list");
}

#[test]
fn a_message_of_the_history_is_looked_for_by_its_words() {
    let mut stage = Stage::ready();
    stage.told(Told::History(vec![
        "fix the parser".to_owned(),
        "write the docs".to_owned(),
        "fix\x1b[2J the lexer".to_owned(),
    ]));
    stage.control('r');
    stage.types("fix");
    stage.check("history");
}

#[test]
fn what_becomes_of_a_stopped_turn_is_asked_with_its_keys() {
    let mut stage = Stage::ready();
    stage.types("go\n");
    let (answer, _answered) = oneshot::channel();
    stage.told(Told::Ask(Ask::Choice {
        question: "Stopped, with 2 changes so far. Keep or drop them?".to_owned(),
        choices: vec![
            ('k', "keep what was changed".to_owned()),
            (
                'd',
                "drop it: the project is as it was before this turn".to_owned(),
            ),
        ],
        answer,
    }));
    stage.check("choice");
}

#[test]
fn panels_and_thoughts_open() {
    let mut stage = Stage::ready();
    turn(&mut stage);
    ends(&mut stage);
    stage.control('x');
    stage.control('o');
    stage.check("open");
}

fn question(command: &str) -> Question {
    Question {
        agent: None,
        tool: "bash".to_owned(),
        arguments: serde_json::json!({ "command": command }).to_string(),
        capabilities: vec![Capability::RunInSandbox],
        lasting: Lasting::Exactly {
            what: command.lines().next().unwrap_or_default().to_owned(),
            always: true,
            edits: false,
        },
    }
}

fn asks(stage: &mut Stage, command: &str) -> oneshot::Receiver<Answered> {
    let (answer, answered) = oneshot::channel();
    stage.told(Told::Ask(Ask::Permission {
        question: Box::new(question(command)),
        answer,
    }));
    answered
}

#[test]
fn a_question_shows_the_call_and_its_keys() {
    let mut stage = Stage::ready();
    turn(&mut stage);
    let _answered = asks(&mut stage, "npm test");
    stage.check("question");
}

#[test]
fn a_long_question_is_folded_and_opens() {
    let mut stage = Stage::ready();
    stage.types("go\n");
    let command: Vec<String> = (1..=60).map(|n| format!("echo {n}")).collect();
    let _answered = asks(&mut stage, &command.join("\n"));
    stage.check("long_question");
    stage.later(1000);
    stage.types("e");
    assert!(stage.frame(80, 24).contains("e folds it"));
}

#[test]
fn one_key_answers_a_question_that_was_read_and_none_that_was_not() {
    for (key, expected) in [
        ('y', Answer::Allow),
        ('a', Answer::AllowSession),
        ('p', Answer::AllowAlways),
        ('d', Answer::DenySession),
        ('q', Answer::Quit),
    ] {
        let mut stage = Stage::ready();
        stage.types("go\n");
        let mut answered = asks(&mut stage, "npm test");
        stage.types("y");
        assert!(answered.try_recv().is_err(), "it was not on the screen");
        stage.frame(80, 24);
        stage.types("y");
        assert!(answered.try_recv().is_err(), "nobody reads that fast");
        stage.later(300);
        stage.types("y");
        assert!(answered.try_recv().is_err(), "something else is typed");
        assert_eq!(stage.screen.editor.text(), "yyy", "where it was meant for");
        stage.later(1000);
        stage.types(&key.to_string());
        assert_eq!(
            answered.try_recv().expect("answered").answer,
            expected,
            "{key}"
        );
        assert!(!stage.screen.has_modal());
    }
}

#[test]
fn all_edits_are_allowed_by_one_key_where_that_is_offered() {
    for (edits, expected) in [(true, Some(Answer::AllowEdits)), (false, None)] {
        let mut stage = Stage::ready();
        stage.types("go\n");
        let (answer, mut answered) = oneshot::channel();
        let question = Question {
            lasting: Lasting::Exactly {
                what: "edit_file a".to_owned(),
                always: true,
                edits,
            },
            ..question("x")
        };
        stage.told(Told::Ask(Ask::Permission {
            question: Box::new(question),
            answer,
        }));
        let shown = stage.frame(120, 40);
        let says = "s = yes, and all edits until the session ends";
        assert_eq!(shown.contains(says), edits, "{shown}");
        stage.later(1000);
        stage.types("s");
        let answer = answered.try_recv().ok().map(|answered| answered.answer);
        assert_eq!(answer, expected);
    }
}

#[test]
fn a_no_stops_and_a_no_with_a_reason_goes_on() {
    let mut stage = Stage::ready();
    stage.types("go\n");
    let mut answered = asks(&mut stage, "npm test");
    stage.frame(80, 24);
    stage.later(1000);
    assert_eq!(stage.types("n"), [Effect::Send(Command::Interrupt)]);
    assert_eq!(
        answered.try_recv().expect("answered"),
        Answered::from(Answer::Deny)
    );
    let mut answered = asks(&mut stage, "npm test");
    stage.frame(80, 24);
    stage.later(1000);
    assert_eq!(stage.types("wuse make\n"), []);
    let answered = answered.try_recv().expect("answered");
    assert_eq!(
        (answered.answer, answered.reason.as_deref()),
        (Answer::Deny, Some("use make"))
    );
}

#[test]
fn the_models_question_is_a_list_with_a_place_for_own_words() {
    let options = ["Postgres".to_owned(), "SQLite\x1b[2J".to_owned()];
    let ask = |stage: &mut Stage| {
        let (answer, answered) = oneshot::channel();
        stage.told(Told::Ask(Ask::Pick {
            question: "Which database?".to_owned(),
            options: options.to_vec(),
            answer,
        }));
        stage.frame(80, 24);
        stage.later(1000);
        answered
    };
    let mut stage = Stage::ready();
    stage.types("go\n");
    let mut answered = ask(&mut stage);
    stage.key(KeyCode::Down, KeyModifiers::NONE);
    stage.later(1000);
    stage.check("picker");
    stage.key(KeyCode::Enter, KeyModifiers::NONE);
    assert_eq!(
        answered.try_recv().expect("answered"),
        Some(options[1].clone())
    );
    let mut answered = ask(&mut stage);
    stage.types("3");
    stage.types("a file\n");
    assert_eq!(
        answered.try_recv().expect("answered").as_deref(),
        Some("a file")
    );
    let mut answered = ask(&mut stage);
    stage.key(KeyCode::Esc, KeyModifiers::NONE);
    let cancelled = answered.try_recv().expect("answered").expect("words");
    assert!(cancelled.starts_with("[User cancelled"), "{cancelled}");
}

#[test]
fn what_is_typed_while_a_turn_runs_waits_and_is_shown() {
    let mut stage = Stage::ready();
    turn(&mut stage);
    assert_eq!(stage.types("then the docs\nand more\n"), []);
    stage.check("queued");
    let sent = stage.told(Told::Ready);
    assert_eq!(
        sent,
        [Effect::Send(Command::Say("then the docs".to_owned()))]
    );
    stage.key(KeyCode::Up, KeyModifiers::NONE);
    assert_eq!(
        stage.screen.editor.text(),
        "and more",
        "it can be changed yet"
    );
    assert_eq!(stage.told(Told::Ready), []);
}

#[test]
fn commands_and_a_paste_are_shown_in_the_editor() {
    let mut stage = Stage::ready();
    stage.types("/re");
    stage.check("popup");
    stage.types("\t");
    assert_eq!(stage.screen.editor.text(), "/resume ");
    stage.control('u');
    let paste: String = (0..214).map(|n| format!("line {n}\n")).collect();
    stage.screen.paste(&paste, stage.now);
    stage.types(" what is it?");
    assert!(
        stage
            .frame(80, 24)
            .contains("[pasted 214 lines] what is it?")
    );
    let effects = stage.types("\n");
    assert_eq!(
        effects,
        [Effect::Send(Command::Say(format!("{paste} what is it?")))]
    );
}

#[test]
fn control_c_stops_clears_and_leaves_in_that_order() {
    let mut stage = Stage::ready();
    stage.types("go\n");
    assert_eq!(stage.control('c'), [Effect::Send(Command::Interrupt)]);
    stage.told(Told::Ready);
    stage.later(3000);
    stage.types("half a message");
    assert_eq!(stage.control('c'), []);
    assert!(stage.screen.editor.is_empty());
    assert_eq!(stage.control('c'), []);
    assert!(stage.frame(80, 24).contains("press Ctrl-C again to leave"));
    stage.later(2500);
    assert_eq!(stage.control('c'), [], "that was too late");
    assert_eq!(stage.control('c'), [Effect::Send(Command::Quit)]);
    assert_eq!(stage.control('d'), [Effect::Send(Command::Quit)]);
}

#[test]
fn escape_stops_a_turn_once() {
    let mut stage = Stage::ready();
    stage.types("go\n");
    let escape = |stage: &mut Stage| stage.key(KeyCode::Esc, KeyModifiers::NONE);
    assert_eq!(escape(&mut stage), [Effect::Send(Command::Interrupt)]);
    assert_eq!(escape(&mut stage), []);
    assert!(stage.frame(80, 24).contains("stopping"));
}

#[test]
fn the_smallest_terminal_and_a_storm_of_sizes_are_drawn() {
    let mut stage = Stage::ready();
    turn(&mut stage);
    let _answered = asks(&mut stage, &"word ".repeat(500));
    for size in 1..60 {
        stage.frame(size, 60 - size);
        stage.frame(20, 5);
    }
}

/// The names of files come once the sandbox is there, which may be after the first keys.
#[test]
fn a_name_that_was_begun_before_the_files_were_known_is_completed() {
    let mut stage = Stage::ready();
    stage.told(Told::Files(Vec::new()));
    stage.types("read @ap");
    assert!(stage.screen.popup.is_none());
    stage.told(Told::Files(vec!["app.txt".to_owned()]));
    let popup = stage.screen.popup.as_ref().expect("a choice");
    assert_eq!(popup.choices[0].words, "@app.txt");
}

#[test]
fn nothing_that_a_terminal_obeys_is_in_a_frame() {
    let evil = "a\x1b[2Jb\x1b]0;t\x07\u{9b}31m\u{202e}c\r\x08";
    let mut stage = Stage::ready();
    stage.screen.status.facts.branch = Some(evil.to_owned());
    stage.screen.status.facts.model = evil.to_owned();
    stage.told(Told::Files(vec![format!("{evil}.md")]));
    stage.types("go\n");
    stage.happens(Kind::TextDelta { text: evil.into() });
    stage.happens(Kind::ThinkingDelta { text: evil.into() });
    stage.happens(started(evil, evil, &format!(r#"{{"path":"{evil}"}}"#)));
    stage.happens(Kind::CallOutput {
        call: evil.into(),
        text: format!("{evil}\n"),
    });
    stage.happens(Kind::Warning {
        message: evil.into(),
    });
    stage.types("see @");
    let mut frames = stage.frame(140, 45);
    stage.control('x');
    stage.control('o');
    frames.push_str(&stage.frame(140, 45));
    let _answered = asks(&mut stage, evil);
    frames.push_str(&stage.frame(140, 45));
    let bad: Vec<char> = frames
        .chars()
        .filter(|c| *c != '\n' && podbay_event::is_hidden(*c))
        .collect();
    assert!(bad.is_empty(), "{bad:?}");
}

#[test]
fn a_long_conversation_is_scrolled_and_its_lines_are_not_kept() {
    let mut stage = Stage::ready();
    for n in 0..2000 {
        stage.happens(said(&format!("answer {n}"), 1));
        stage.happens(started("c", "bash", r#"{"command":"x"}"#));
        stage.happens(finished("c", "bash", CallStatus::Ok, "y", 1));
    }
    assert!(stage.frame(80, 24).contains("answer 1999"));
    stage.key(KeyCode::PageUp, KeyModifiers::NONE);
    let frame = stage.frame(80, 24);
    assert!(
        !frame.contains("answer 1999") && frame.contains("more lines"),
        "{frame}"
    );
    stage.key(KeyCode::Home, KeyModifiers::CONTROL);
    assert!(stage.frame(80, 24).contains("answer 0"));
}

#[test]
fn shift_tab_goes_from_auto_to_plan_mode_to_ask_and_back() {
    let mut stage = Stage::ready();
    let says = |words: &str| [Effect::Send(Command::Say(words.to_owned()))];
    let tab = |stage: &mut Stage| {
        let sent = stage.key(KeyCode::BackTab, KeyModifiers::NONE);
        // The driver has dealt with it.
        (sent, stage.told(Told::Ready))
    };
    let mode = |stage: &mut Stage, mode: &str| {
        stage.happens(Kind::ModeChanged {
            mode: mode.to_owned(),
        });
    };
    let planning = |stage: &mut Stage, on: bool| {
        stage.happens(Kind::PlanModeChanged {
            on,
            ended: vec!["npm start\x1b[2J".to_owned()],
            duration_ms: 200,
        });
    };
    assert_eq!(tab(&mut stage).0, says("/mode auto"), "it begins with ask");
    mode(&mut stage, "auto");
    assert_eq!(tab(&mut stage).0, says("/plan on"));
    planning(&mut stage, true);
    stage.happens(Kind::PlanMade {
        version: 1,
        text: "# Plan\n- change `a.py`\x1b]52;c;x\x07".to_owned(),
        edited: false,
    });
    stage.check("plan_mode");
    let (first, second) = tab(&mut stage);
    assert_eq!(first, says("/plan off"));
    assert_eq!(second, says("/mode ask"));
    planning(&mut stage, false);
    mode(&mut stage, "ask");
    stage.told(Told::Ready);
    assert_eq!(tab(&mut stage).0, says("/mode auto"));
    // Another session is as it was left.
    planning(&mut stage, true);
    stage.told(Told::Past(Vec::new()));
    assert!(!stage.screen.status.is_planning);
    mode(&mut stage, "ask");
    // Where there is no plan mode, the modes alone take turns.
    stage.screen.status.facts.has_plan_mode = false;
    mode(&mut stage, "auto");
    assert_eq!(tab(&mut stage).0, says("/mode ask"));
    mode(&mut stage, "ask");
    assert_eq!(tab(&mut stage).0, says("/mode deny"));
}

#[test]
fn the_panel_of_an_agent_shows_what_it_does_now() {
    let mut stage = Stage::ready();
    let session: podbay_event::SessionId = "abcdefghjkmn".parse().expect("an id");
    let agent = |kind: Kind| Kind::AgentEvent {
        call: "c1".to_owned(),
        session: session.clone(),
        agent: "explore".to_owned(),
        event: Box::new(Event::now(kind)),
    };
    stage.happens(Kind::CallStarted {
        call: "c1".to_owned(),
        name: "spawn_agent".to_owned(),
        arguments: r#"{"agent_type":"explore","description":"find it","task":"long words"}"#
            .to_owned(),
    });
    stage.happens(agent(Kind::CallStarted {
        call: "c1".to_owned(),
        name: "grep".to_owned(),
        arguments: r#"{"pattern":"fn \u001b[2Jmain"}"#.to_owned(),
    }));
    let frame = stage.frame(80, 24);
    assert!(frame.contains("spawn_agent explore: find it"), "{frame}");
    assert!(frame.contains("│ explore: grep fn"), "{frame}");
    assert!(
        !frame.contains('\u{1b}') && !frame.contains("long words"),
        "{frame}"
    );
    // A call of its own with the same id is no panel of the conversation.
    stage.happens(agent(Kind::CallFinished {
        call: "c1".to_owned(),
        name: "grep".to_owned(),
        status: CallStatus::Failed,
        result: "no".to_owned(),
        artifact: None,
        duration_ms: 5,
        seen: Vec::new(),
    }));
    let frame = stage.frame(80, 24);
    assert!(frame.contains("● spawn_agent explore: find it"), "{frame}");
    assert!(frame.contains("-> grep fn"), "{frame}");
}

#[test]
fn with_keys_of_vi_escape_edits_and_stops_a_turn_where_nothing_is_typed() {
    let mut stage = Stage::ready();
    stage.screen.vi = Some(Vi::default());
    stage.types("fix tge test");
    stage.key(KeyCode::Esc, KeyModifiers::NONE);
    stage.check("vi normal mode");
    stage.types("bbcwthe");
    assert_eq!(stage.screen.editor.text(), "fix the test");
    assert_eq!(
        stage.key(KeyCode::Enter, KeyModifiers::NONE),
        [Effect::Send(Command::Say("fix the test".to_owned()))]
    );
    // The next message begins in insert mode; Escape stops the turn at an empty line.
    stage.types("x");
    assert_eq!(stage.screen.editor.text(), "x");
    assert_eq!(stage.key(KeyCode::Esc, KeyModifiers::NONE), []);
    stage.types("x");
    assert!(stage.screen.editor.is_empty());
    assert_eq!(
        stage.key(KeyCode::Esc, KeyModifiers::NONE),
        [Effect::Send(Command::Interrupt)]
    );
}

#[test]
fn a_message_that_joins_the_task_moves_from_the_queue_to_the_conversation() {
    let mut stage = Stage::ready();
    turn(&mut stage);
    stage.types("also the docs\n/undo\n");
    stage.check("queued for the task");
    let joined = stage.screen.queue.take_for_task().expect("it may join");
    stage.happens(Kind::UserMessageAdded { text: joined.text });
    stage.check("joined the task");
}

#[test]
fn what_waited_for_a_turn_that_was_stopped_goes_back_into_the_editor() {
    let mut stage = Stage::ready();
    turn(&mut stage);
    stage.types("no, the other file\n");
    stage.types("half");
    stage.key(KeyCode::Esc, KeyModifiers::NONE);
    assert_eq!(stage.told(Told::Ready), []);
    assert_eq!(stage.screen.editor.text(), "no, the other file\nhalf");
}
