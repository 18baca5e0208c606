//! Every kind of event there is, with what a terminal would obey in each of its texts, on each way
//! to a terminal.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use podbay::event::Answer;
use podbay::event::CallStatus;
use podbay::event::Capability;
use podbay::event::ChangedLines;
use podbay::event::ChangedPath;
use podbay::event::Decision;
use podbay::event::Event;
use podbay::event::Evicted;
use podbay::event::HalfCall;
use podbay::event::HookOutcome;
use podbay::event::Kind;
use podbay::event::LimitKind;
use podbay::event::Memory;
use podbay::event::MemoryKind;
use podbay::event::Moment;
use podbay::event::NetworkAttempt;
use podbay::event::OpenAnswer;
use podbay::event::PathChanged;
use podbay::event::PlanDecision;
use podbay::event::Progress as Step;
use podbay::event::ProjectChanges;
use podbay::event::RunStatus;
use podbay::event::TaskEnd;
use podbay::event::ToolCall;
use podbay::event::ToolMode;
use podbay::event::ToolTold;
use podbay::event::Unit;
use podbay::event::Usage;
use podbay::ui;
use podbay::ui::Look;
use podbay::ui::Paint;
use podbay::ui::Plain;
use podbay::ui::Progress;
use podbay::wire::EgressAccess;
use podbay::wire::Memo;
use podbay::wire::Program;
use podbay::wire::WriteChange;

use crate::support::TestEnv;
use crate::support::test_env::run;
use crate::ui::Shared;

const BAD: &str = "a\x1b]52;c;x\x07b\u{9b}31m\u{202e}\rc";

fn bad() -> String {
    BAD.to_owned()
}

fn held() -> Capability {
    Capability::HeldWrite {
        path: bad(),
        change: WriteChange::Write,
        protected: true,
        program: bad(),
        file: bad(),
        directory: bad(),
    }
}

/// Makes one event of each kind. The match has an arm for each of them and no other, so that a kind
/// that is left out does not compile.
macro_rules! every_kind {
    ($($kind:ident { $($fields:tt)* })*) => {
        fn every_kind() -> Vec<Kind> {
            fn _none_is_left_out(kind: &Kind) {
                match kind {
                    $(Kind::$kind { .. } => {})*
                }
            }
            vec![$(Kind::$kind { $($fields)* }),*]
        }
    };
}

every_kind! {
    SessionStarted {
        version: 2,
        session: "abcdefghjkmn".parse().expect("an id"),
        podbay: bad(),
        project: bad(),
        mode: bad(),
        task: Some(bad()),
    }
    SessionForked { from: "mnabcdefghjk".parse().expect("an id") }
    ModelReady { model: bad(), context: None, tools: ToolMode::Text, reason: bad() }
    ToolModeChanged { from: ToolMode::Native, to: ToolMode::Text, reason: bad() }
    SandboxStarted { image: bad(), duration_ms: 1, hidden: vec![bad()], tracked: vec![bad()] }
    SandboxLost { reason: bad() }
    GitTaken { repository: Some(bad()), branches: vec![bad()], n_more: 1, stashes: vec![bad()], head: Some(bad()), staged: true, waited: true }
    PromptBegun {
        system: bad(),
        tools: vec![ToolTold { name: bad(), description: bad(), parameters: BAD.into() }],
        mode: ToolMode::Native,
        thinking: true,
        folded: false,
    }
    ContextAdded { text: bad(), instructions: vec![bad()], seen: vec![] }
    UserMessage { text: bad(), images: 1 }
    UserMessageAdded { text: bad() }
    NoteAdded { text: bad() }
    ImageShown { text: bad(), media_type: bad(), artifact: bad() }
    ImagesTakenOut { blind: true }
    ModelAsked {}
    ThinkingDelta { text: bad() }
    TextDelta { text: bad() }
    AssistantMessage {
        text: bad(),
        thinking: bad(),
        calls: vec![ToolCall { id: bad(), name: bad(), arguments: bad() }],
        raw: Some(bad()),
        usage: Usage::default(),
        interrupted: true,
        cut: false,
        duration_ms: 1,
    }
    AnswerOpen {
        0: OpenAnswer {
            answer: Some(bad()),
            pieces: vec![bad()],
            in_object: true,
            half: Some(HalfCall { before: bad(), begun: bad(), is_reported: true }),
        }
    }
    NetworkAttempted {
        0: NetworkAttempt {
            host: bad(),
            port: 1,
            access: EgressAccess::Tls,
            allowed: true,
            because: bad(),
            failure: Some(bad()),
            bytes_sent: 1,
            bytes_received: 1,
            duration_ms: 1,
            times: 2,
            program: Some(bad()),
        }
    }
    TaskEnded { 0: TaskEnd { status: RunStatus::Completed, response: bad(), denied: vec![bad()] } }
    PermissionAsked { call: bad(), capabilities: vec![Capability::Network { host: bad() }, Capability::BlockedCommand { reason: bad() }, held()] }
    PermissionAnswered { call: bad(), answer: Answer::Deny, reason: Some(bad()) }
    CallDecided { call: bad(), name: bad(), decision: Decision::Deny, reason: bad() }
    CallStarted { call: bad(), name: bad(), arguments: bad() }
    QuestionAsked { call: bad() }
    CallOutput { call: bad(), text: bad() }
    CallRan {
        call: bad(),
        programs: vec![Program { argv: vec![BAD.into()], directory: BAD.into(), count: u64::MAX, exit_code: Some(1), truncated: true }; 20],
        n_more: u64::MAX,
        hook: Some(bad()),
        background: Some(bad()),
    }
    CallFinished {
        call: bad(),
        name: bad(),
        status: CallStatus::Failed,
        result: format!("{BAD}\n[{BAD}]"),
        artifact: Some(bad()),
        duration_ms: 1,
        seen: vec![Memo::Gone { path: bad().as_str().into() }],
    }
    HookEnded { moment: Moment::Stop, call: Some(bad()), run: bad(), outcome: HookOutcome::Failed, said: bad(), duration_ms: 1 }
    ContextNear { percent: 75, used: 3, window: 4 }
    CheckpointMade { summary: bad() }
    ResultsEvicted { results: vec![Evicted { call: bad(), text: bad() }] }
    ConversationCompacted { summary: bad(), head: 1, tail: 1, before: 2, after: 1 }
    ModeChanged { mode: bad() }
    PlanModeChanged { on: true, ended: vec![bad()], duration_ms: 1 }
    PlanMade { version: 1, text: bad(), edited: true }
    PlanDecided { version: 1, decision: PlanDecision::Approved, reason: Some(bad()) }
    MemorySaved {
        memory: Memory { name: bad(), kind: MemoryKind::User, description: bad(), content: bad() },
        replaced: true,
        pruned: vec![bad()],
    }
    SessionSpawned { parent: "mnabcdefghjk".parse().expect("an id"), call: bad(), agent: bad() }
    AgentStarted { call: bad(), session: "mnabcdefghjk".parse().expect("an id"), agent: bad(), description: bad() }
    AgentEvent {
        call: bad(),
        session: "mnabcdefghjk".parse().expect("an id"),
        agent: bad(),
        event: Box::new(Event::now(Kind::Warning { message: bad() })),
    }
    AgentFinished {
        call: bad(),
        session: "mnabcdefghjk".parse().expect("an id"),
        agent: bad(),
        status: RunStatus::Failed,
        limit: None,
        verdict: None,
        turns: 1,
        tool_calls: 1,
        usage: Usage::default(),
        error: Some(bad()),
        duration_ms: 1,
    }
    DenialsEscalated { in_a_row: 1, in_all: 2 }
    LimitReached { limit: LimitKind::Turns, at_end: true }
    Interrupted {}
    ProjectChanged {
        0: ProjectChanges {
            n: 2,
            paths: vec![ChangedPath {
                path: bad(),
                change: PathChanged::Renamed,
                from: Some(bad()),
                is_folder: false,
                lines: Some(ChangedLines { added: 1, removed: 1 }),
            }],
            lines: Some(ChangedLines { added: 1, removed: 1 }),
            may_run: vec![bad()],
            pending: true,
        }
    }
    Warning { message: bad() }
    Progress { 0: Step { task: bad(), done: 1, total: None, unit: Unit::Steps, detail: bad(), finished: false } }
    RunFinished {
        status: RunStatus::Failed,
        exit_code: 1,
        response: bad(),
        turns: 0,
        tool_calls: 0,
        usage: Usage::default(),
        limit: None,
        error: Some(bad()),
        duration_ms: 1,
    }
    SessionRewound { turns: 1 }
    SessionResumed { podbay: bad(), mode: bad(), task: Some(bad()) }
    Unknown {}
}

#[track_caller]
fn check(shown: &str) {
    let raw: Vec<char> = shown
        .chars()
        .filter(|&c| !matches!(c, '\n' | '\t') && podbay::event::is_hidden(c))
        .collect();
    assert!(raw.is_empty(), "{raw:?} in {shown:?}");
}

/// T-01, T-03: the screen of a run or a chat, however it is set.
#[test]
fn no_escape_reaches_the_terminal_whatever_the_source() {
    let quiet = Look {
        paint: Paint::NONE,
        stream: false,
        tool_output: false,
        thinking: false,
    };
    let stream = Look {
        stream: true,
        ..quiet
    };
    for look in [
        quiet,
        stream,
        Look {
            tool_output: true,
            thinking: true,
            ..stream
        },
    ] {
        // In their order, in which they belong together, and each by itself.
        for kinds in
            std::iter::once(every_kind()).chain(every_kind().into_iter().map(|kind| vec![kind]))
        {
            let (out, err) = (Shared::default(), Shared::default());
            let mut plain =
                Plain::new(out.clone(), err.clone(), look, Progress::lines(err.clone()));
            for kind in kinds {
                plain.event(&Event::now(kind)).expect("memory takes all");
            }
            plain.finish().expect("memory takes all");
            check(&out.text());
            check(&err.text());
        }
    }
}

/// T-05: what scripts read.
#[test]
fn every_event_is_one_line_of_json_without_a_raw_control() {
    for kind in every_kind() {
        let mut out = Vec::new();
        ui::json::event(&mut out, &Event::now(kind)).expect("memory takes all");
        let line = String::from_utf8(out).expect("text");
        check(line.strip_suffix('\n').expect("a line"));
        assert_eq!(line.lines().count(), 1, "{line}");
    }
}

/// T-03: what is read of a session when it is over.
#[test]
fn no_escape_reaches_the_terminal_from_a_log() {
    let env = TestEnv::new();
    let sessions = env.state().join("sessions");
    fs::create_dir_all(&sessions).expect("made");
    fs::set_permissions(env.state(), fs::Permissions::from_mode(0o700)).expect("ours");
    let path = sessions.join("2026-11-21_abcdefghjkmn.jsonl");
    let mut log = fs::File::create(&path).expect("made");
    for kind in every_kind() {
        let event = Event::now(kind);
        if event.durable() && event.kind != Kind::Unknown {
            writeln!(log, "{}", podbay::event::json_line(&event).expect("JSON")).expect("written");
        }
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("ours");
    for arguments in [
        &["list"][..],
        &["list", "--json"],
        &["show"],
        &["show", "--json"],
        &["export", "last"],
        &["report"],
        &["report", "--format", "markdown"],
        &["report", "--format", "html"],
        &["report", "--format", "json"],
    ] {
        let done = run(env.podbay(&["sessions"]).args(arguments)).expect(0);
        assert!(
            done.text().contains("]52;c;x") || matches!(arguments[0], "show" | "export" | "report"),
            "{}",
            done.text()
        );
        check(&done.text());
        check(&done.stderr);
    }
}
