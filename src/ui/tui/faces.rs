//! One recorded run in three faces: the screen, lines, and JSON. Each event says what a reader must
//! find of it in every face, or why it is not for a reader; a kind of event that is new does not
//! compile here before that is decided.

use podbay_event::Answer;
use podbay_event::CallStatus;
use podbay_event::ChangedLines;
use podbay_event::Decision;
use podbay_event::Event;
use podbay_event::Evicted;
use podbay_event::HalfCall;
use podbay_event::HookOutcome;
use podbay_event::Kind;
use podbay_event::LimitKind;
use podbay_event::Memory;
use podbay_event::MemoryKind;
use podbay_event::Moment;
use podbay_event::OpenAnswer;
use podbay_event::PlanDecision;
use podbay_event::Progress as Step;
use podbay_event::ProjectChanges;
use podbay_event::RunStatus;
use podbay_event::TaskEnd;
use podbay_event::ToolCall;
use podbay_event::ToolMode;
use podbay_event::Unit;
use podbay_event::Usage;

use super::frames::Stage;
use crate::Look;
use crate::Paint;
use crate::Plain;
use crate::Progress;

/// What is found of an event.
enum Fact {
    /// The same words in each face.
    Everywhere(&'static str),
    Each {
        lines: &'static str,
        screen: &'static str,
        json: &'static str,
    },
    /// In JSON alone, for this reason.
    Data(&'static str),
}

/// The events in the order of a run. The match has an arm for each kind and no other.
macro_rules! recorded {
    ($($kind:ident { $($fields:tt)* } => $fact:expr;)*) => {
        fn recorded() -> Vec<(Kind, Fact)> {
            fn _none_is_left_out(kind: &Kind) {
                match kind {
                    $(Kind::$kind { .. } => {})*
                }
            }
            vec![$((Kind::$kind { $($fields)* }, $fact)),*]
        }
    };
}

fn text(words: &str) -> String {
    words.to_owned()
}

const USAGE: Usage = Usage {
    prompt: 12_000,
    cached: 6000,
    completion: 345,
    cost_usd: None,
};

recorded! {
    SessionStarted {
        version: 2,
        session: "abcdefghjkmn".parse().expect("an id"),
        podbay: text("0.1.0"),
        project: text("/shop"),
        mode: text("ask"),
        task: None,
    } => Fact::Data("the face knows where it was opened");
    SessionForked { from: "mnabcdefghjk".parse().expect("an id") } => Fact::Data("of a log");
    SessionSpawned {
        parent: "mnabcdefghjk".parse().expect("an id"),
        call: text("c1"),
        agent: text("explore"),
    } => Fact::Data("of a log");
    SessionRewound { turns: 1 } => Fact::Data("of a log");
    SessionResumed { podbay: text("0.1.0"), mode: text("ask"), task: None }
        => Fact::Data("the screen shows what was said before instead");
    ModelReady {
        model: text("fact-model"),
        context: Some(100_000),
        tools: ToolMode::Native,
        reason: String::new(),
    } => Fact::Everywhere("fact-model");
    SandboxStarted {
        image: text("fact-image"),
        duration_ms: 300,
        hidden: vec![text("fact-hidden")],
        tracked: Vec::new(),
    } => Fact::Everywhere("fact-hidden");
    PromptBegun {
        system: text("s"),
        tools: Vec::new(),
        mode: ToolMode::Native,
        thinking: false,
        folded: false,
    } => Fact::Data("for the model");
    ContextAdded { text: text("c"), instructions: vec![text("fact-instructions.md")], seen: Vec::new() }
        => Fact::Everywhere("fact-instructions.md");
    UserMessage { text: text("go"), images: 0 } => Fact::Data("it was typed in the face");
    ImageShown { text: text("i"), media_type: text("image/png"), artifact: text("a") }
        => Fact::Data("for the model; the message names the image");
    ImagesTakenOut { blind: false } => Fact::Data("a warning beside it says so");
    ModelAsked {} => Fact::Data("it moves the working line alone");
    ThinkingDelta { text: text("thought") } => Fact::Data("shown on request in each face");
    TextDelta { text: text("fact-answer") } => Fact::Everywhere("fact-answer");
    AssistantMessage {
        text: text("fact-answer"),
        thinking: String::new(),
        calls: vec![ToolCall {
            id: text("c2"),
            name: text("bash"),
            arguments: text("{\"command\":\"rm x\"}"),
        }],
        raw: None,
        usage: USAGE,
        interrupted: false,
        cut: false,
        duration_ms: 5,
    } => Fact::Data("its words were streamed, its numbers are in the sum");
    AnswerOpen {
        0: OpenAnswer {
            answer: None,
            pieces: Vec::new(),
            in_object: false,
            half: None::<HalfCall>,
        }
    } => Fact::Data("what follows says it");
    UserMessageAdded { text: text("fact-added") } => Fact::Everywhere("fact-added");
    NoteAdded { text: text("n") } => Fact::Data("for the model");
    ToolModeChanged { from: ToolMode::Native, to: ToolMode::Text, reason: text("fact-tool-mode") }
        => Fact::Everywhere("fact-tool-mode");
    PermissionAsked { call: text("c1"), capabilities: Vec::new() }
        => Fact::Data("the question is shown by those who ask it");
    PermissionAnswered { call: text("c1"), answer: Answer::Allow, reason: None }
        => Fact::Data("it was typed in the face");
    QuestionAsked { call: text("c1") } => Fact::Data("the question is shown by those who ask it");
    CallDecided {
        call: text("c2"),
        name: text("bash"),
        decision: Decision::Deny,
        reason: text("fact-denied"),
    } => Fact::Everywhere("fact-denied");
    CallStarted {
        call: text("c1"),
        name: text("bash"),
        arguments: text("{\"command\":\"make fact-command\"}"),
    } => Fact::Everywhere("make fact-command");
    CallOutput { call: text("c1"), text: text("out\n") } => Fact::Data("shown while it runs");
    CallRan {
        call: text("c1"),
        programs: Vec::new(),
        n_more: 3,
        hook: None,
        background: None,
    } => Fact::Data("the execution report names the programs");
    CallFinished {
        call: text("c1"),
        name: text("bash"),
        status: CallStatus::Failed,
        result: text("fact-result\n[exit code 2]"),
        artifact: None,
        duration_ms: 8100,
        seen: Vec::new(),
    } => Fact::Everywhere("fact-result");
    HookEnded {
        moment: Moment::Stop,
        call: None,
        run: text("h"),
        outcome: HookOutcome::Passed,
        said: String::new(),
        duration_ms: 1,
    } => Fact::Data("visible by its effect");
    NetworkAttempted {
        0: serde_json::from_value(serde_json::json!({
            "host": "fact-host",
            "port": 443,
            "access": "tls",
            "allowed": false,
            "because": "no rule",
            "bytes_sent": 0,
            "bytes_received": 0,
            "duration_ms": 1,
            "times": 1,
        })).expect("an attempt")
    } => Fact::Each { lines: "fact-host:443", screen: "fact-host:443", json: "fact-host" };
    SandboxLost { reason: text("fact-lost") } => Fact::Everywhere("fact-lost");
    CheckpointMade { summary: text("s") } => Fact::Data("for the reader of the log");
    ResultsEvicted { results: vec![Evicted { call: text("c1"), text: text("fact-evicted") }] }
        => Fact::Each { lines: "1 old result", screen: "1 old result", json: "fact-evicted" };
    ConversationCompacted { summary: text("s"), head: 1, tail: 1, before: 77_777, after: 1 }
        => Fact::Everywhere("77777");
    ContextNear { percent: 75, used: 81_000, window: 100_000 }
        => Fact::Each { lines: "81 %", screen: "81 %", json: "81000" };
    ModeChanged { mode: text("fact-mode") } => Fact::Everywhere("fact-mode");
    PlanModeChanged { on: true, ended: vec![text("fact-ended")], duration_ms: 1 }
        => Fact::Everywhere("fact-ended");
    PlanMade { version: 7, text: text("p"), edited: false }
        => Fact::Each { lines: "plan 7", screen: "plan 7", json: "\"version\":7" };
    PlanDecided { version: 7, decision: PlanDecision::Revise, reason: Some(text("fact-decided")) }
        => Fact::Everywhere("fact-decided");
    MemorySaved {
        memory: Memory {
            name: text("fact-memory"),
            kind: MemoryKind::User,
            description: text("d"),
            content: text("c"),
        },
        replaced: false,
        pruned: Vec::new(),
    } => Fact::Everywhere("fact-memory");
    DenialsEscalated { in_a_row: 3, in_all: 3 } => Fact::Data("a warning beside it says so");
    LimitReached { limit: LimitKind::Cost, at_end: false }
        => Fact::Each { lines: "limit of cost", screen: "limit of cost", json: "\"cost\"" };
    Interrupted {} => Fact::Everywhere("interrupted");
    GitTaken {
        repository: None,
        branches: vec![text("fact-branch")],
        n_more: 0,
        stashes: Vec::new(),
        head: None,
        staged: false,
        waited: false,
    } => Fact::Everywhere("fact-branch");
    Warning { message: text("fact-warning") } => Fact::Everywhere("fact-warning");
    AgentStarted {
        call: text("c9"),
        session: "mnabcdefghjk".parse().expect("an id"),
        agent: text("explore"),
        description: text("look"),
    } => Fact::Data("shown in the panel of its call, which has frames of its own");
    AgentEvent {
        call: text("c9"),
        session: "mnabcdefghjk".parse().expect("an id"),
        agent: text("explore"),
        event: Box::new(Event::now(Kind::ModelAsked)),
    } => Fact::Data("shown in the panel of its call, which has frames of its own");
    AgentFinished {
        call: text("c9"),
        session: "mnabcdefghjk".parse().expect("an id"),
        agent: text("explore"),
        status: RunStatus::Completed,
        limit: None,
        verdict: None,
        turns: 1,
        tool_calls: 0,
        usage: USAGE,
        error: None,
        duration_ms: 5,
    } => Fact::Data("shown in the panel of its call, which has frames of its own");
    TaskEnded {
        0: TaskEnd { status: RunStatus::Completed, response: String::new(), denied: Vec::new() }
    } => Fact::Data("the sum says it");
    ProjectChanged {
        0: ProjectChanges {
            n: 31,
            lines: Some(ChangedLines { added: 41, removed: 59 }),
            ..ProjectChanges::default()
        }
    } => Fact::Each { lines: "31 files, +41 −59", screen: "31 files, +41 −59", json: "\"added\":41" };
    Progress {
        0: Step {
            task: text("t"),
            done: 1,
            total: None,
            unit: Unit::Steps,
            detail: String::new(),
            finished: true,
        }
    } => Fact::Data("shown while it lasts");
    RunFinished {
        status: RunStatus::Completed,
        exit_code: 0,
        response: text("fact-answer"),
        turns: 1,
        tool_calls: 1,
        usage: USAGE,
        limit: None,
        error: None,
        duration_ms: 9000,
    } => Fact::Each { lines: "12345 tokens", screen: "12.3 k tokens", json: "\"prompt\":12000" };
    Unknown {} => Fact::Data("of a newer Podbay");
}

fn lines_of(events: &[(Kind, Fact)]) -> String {
    let look = Look {
        paint: Paint::NONE,
        stream: true,
        tool_output: false,
        thinking: false,
    };
    let plain = Plain::new(Vec::new(), Vec::new(), look, Progress::hidden());
    let mut plain = plain.with_each_answer();
    for (kind, _) in events {
        plain
            .event(&Event::now(kind.clone()))
            .expect("memory takes all");
    }
    let (out, err) = plain.finish().expect("memory takes all");
    String::from_utf8([out, err].concat()).expect("text")
}

fn screen_of(events: &[(Kind, Fact)]) -> String {
    let mut stage = Stage::ready();
    stage.types("go\n");
    for (kind, _) in events {
        stage.happens(kind.clone());
    }
    stage.frame(250, 120)
}

fn json_of(events: &[(Kind, Fact)]) -> String {
    let mut out = Vec::new();
    for (kind, _) in events {
        crate::json::event(&mut out, &Event::now(kind.clone())).expect("memory takes all");
    }
    String::from_utf8(out).expect("text")
}

#[test]
fn one_recorded_run_shows_the_same_facts_in_three_faces() {
    let events = recorded();
    let (lines, screen, json) = (lines_of(&events), screen_of(&events), json_of(&events));
    let mut missing = Vec::new();
    for (kind, fact) in &events {
        let looked_for = match fact {
            Fact::Everywhere(words) => [*words; 3],
            Fact::Each {
                lines,
                screen,
                json,
            } => [*lines, *screen, *json],
            Fact::Data(why) => {
                assert!(!why.is_empty());
                continue;
            }
        };
        for ((face, shown), words) in [("lines", &lines), ("screen", &screen), ("JSON", &json)]
            .into_iter()
            .zip(looked_for)
        {
            if !shown.contains(words) {
                missing.push(format!("{face} lacks `{words}` of {kind:?}"));
            }
        }
    }
    assert!(
        missing.is_empty(),
        "{}\n\n{lines}\n\n{screen}",
        missing.join("\n")
    );
    assert_eq!(json.lines().count(), events.len(), "{json}");
}
