use jiff::Timestamp;
use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;

use super::AgentVerdict;
use super::Answer;
use super::CallStatus;
use super::Capability;
use super::Decision;
use super::Evicted;
use super::HookOutcome;
use super::LimitKind;
use super::Memory;
use super::Moment;
use super::NetworkAttempt;
use super::OpenAnswer;
use super::PlanDecision;
use super::Progress;
use super::ProjectChanges;
use super::RunStatus;
use super::SessionId;
use super::TaskEnd;
use super::ToolCall;
use super::ToolMode;
use super::ToolTold;
use super::Usage;
use podbay_wire::Memo;
use podbay_wire::Program;

/// Something that happened, and when.
///
/// As JSON it is one object: the fields of its kind, `type` and `at`.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub at: Timestamp,
    pub kind: Kind,
}

impl Event {
    pub fn now(kind: Kind) -> Self {
        Self {
            at: Timestamp::now(),
            kind,
        }
    }

    /// Returns whether the session log keeps it; the rest is only shown.
    pub fn durable(&self) -> bool {
        !matches!(
            self.kind,
            Kind::TextDelta { .. }
                | Kind::ThinkingDelta { .. }
                | Kind::CallOutput { .. }
                | Kind::AgentEvent { .. }
                | Kind::Progress(_)
        )
    }
}

impl From<Kind> for Event {
    fn from(kind: Kind) -> Self {
        Self::now(kind)
    }
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error;
        let serde_json::Value::Object(fields) =
            serde_json::to_value(&self.kind).map_err(S::Error::custom)?
        else {
            return Err(S::Error::custom("an event is an object"));
        };
        let mut object = serde_json::Map::with_capacity(fields.len() + 1);
        for (key, value) in fields {
            let is_type = key == "type";
            object.insert(key, value);
            if is_type {
                object.insert(
                    "at".to_owned(),
                    serde_json::to_value(self.at).map_err(S::Error::custom)?,
                );
            }
        }
        object.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let mut value = serde_json::Value::deserialize(deserializer)?;
        let at = value
            .as_object_mut()
            .and_then(|object| object.remove("at"))
            .ok_or_else(|| D::Error::missing_field("at"))?;
        Ok(Self {
            at: serde_json::from_value(at).map_err(D::Error::custom)?,
            kind: serde_json::from_value(value).map_err(D::Error::custom)?,
        })
    }
}

/// What happened. A kind this version does not know reads as [`Kind::Unknown`], so that an older
/// Podbay opens a newer log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Kind {
    /// First record of a log.
    SessionStarted {
        /// Version of the log's format.
        version: u32,
        session: SessionId,
        podbay: String,
        /// The project folder; bytes that are not UTF-8 are shown as U+FFFD.
        project: String,
        /// `auto`, `ask` or `deny`.
        mode: String,
        /// The task, where the session is one task.
        task: Option<String>,
    },
    /// The session continues from here, in a new process.
    SessionResumed {
        podbay: String,
        mode: String,
        /// A new task, where one was given.
        task: Option<String>,
    },
    /// What stands above was copied from this session.
    SessionForked {
        from: SessionId,
    },
    /// The session is that of an agent, which a call of this session started.
    SessionSpawned {
        parent: SessionId,
        call: String,
        agent: String,
    },
    /// The last messages of the user were undone, with all that came of them. Files were left
    /// as they are.
    SessionRewound {
        turns: u32,
    },
    /// The model that answers and how it is told about tools.
    ModelReady {
        model: String,
        /// Tokens per slot; `None` where the server does not say.
        context: Option<u64>,
        tools: ToolMode,
        /// Why tools are told that way.
        reason: String,
    },
    /// From here on the model is told about tools, or its answers are read, in another way.
    ToolModeChanged {
        from: ToolMode,
        to: ToolMode,
        reason: String,
    },
    SandboxStarted {
        image: String,
        duration_ms: u64,
        /// Paths of the project that commands in it cannot read.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        hidden: Vec<String>,
        /// Those of them that git tracks, so that what was committed of them can be read.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tracked: Vec<String>,
    },
    /// The sandbox ended under us; a new one takes its place.
    SandboxLost {
        reason: String,
    },
    /// What every request begins with from here on.
    PromptBegun {
        system: String,
        tools: Vec<ToolTold>,
        mode: ToolMode,
        /// Whether the model's thinking goes back with its messages.
        thinking: bool,
        /// Whether `system` goes with the first words of the user, for templates that know no
        /// system message.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        folded: bool,
    },
    /// What the model knows of the project besides the task: before it, and the instructions of a
    /// folder once a file there was touched.
    ContextAdded {
        text: String,
        /// The files whose instructions are in it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        instructions: Vec<String>,
        /// What it knows of files by it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        seen: Vec<Memo>,
    },
    UserMessage {
        text: String,
        /// How many images follow that belong to it.
        #[serde(default, skip_serializing_if = "is_zero")]
        images: u32,
    },
    /// A message that the user typed while the task runs. The model reads it with the next request.
    UserMessageAdded {
        text: String,
    },
    /// What Podbay itself tells the model: that a limit is near, that an answer was not understood.
    NoteAdded {
        text: String,
    },
    /// The model is shown an image, as a user's message.
    ImageShown {
        /// What it is, in words.
        text: String,
        /// Such as `image/png`.
        media_type: String,
        /// Where its bytes are kept.
        artifact: String,
    },
    /// The images so far were taken out of the conversation; the words about each stand in its
    /// place.
    ImagesTakenOut {
        /// Whether the server reads none at all, so that none is shown from here on.
        blind: bool,
    },
    /// The conversation so far was sent: from here on these messages are never written otherwise.
    ModelAsked,
    TextDelta {
        text: String,
    },
    ThinkingDelta {
        text: String,
    },
    AssistantMessage {
        text: String,
        /// What the model thought aloud, where the server tells it apart.
        thinking: String,
        calls: Vec<ToolCall>,
        /// The answer as the model wrote it, where tools are told by text or schema.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raw: Option<String>,
        usage: Usage,
        /// Whether it was cut short by an interrupt.
        interrupted: bool,
        /// Whether it reached the most tokens that one answer may have.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cut: bool,
        duration_ms: u64,
    },
    /// The last answer is not all: the model is asked about it, or continues it, by the note
    /// that follows.
    AnswerOpen(OpenAnswer),
    /// A task came to its end; what follows is the end of the run, which the model has no part in.
    TaskEnded(TaskEnd),
    PermissionAsked {
        call: String,
        capabilities: Vec<Capability>,
    },
    PermissionAnswered {
        call: String,
        answer: Answer,
        /// What the user said about it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// What was decided about a call before it begins, or was denied to it in its middle: then it
    /// stands right before its end.
    CallDecided {
        call: String,
        name: String,
        decision: Decision,
        reason: String,
    },
    /// Written before anything of the call runs; of one that only reads and began while its answer
    /// still came, right behind that answer, with the time at which it began.
    CallStarted {
        call: String,
        name: String,
        /// The model's own bytes.
        arguments: String,
    },
    /// The call asks the user something; their answer is its result.
    QuestionAsked {
        call: String,
    },
    /// Some of a command's output, as it comes.
    CallOutput {
        call: String,
        text: String,
    },
    /// Which programs the call started, as the sandbox tells it; right before its end.
    CallRan {
        /// Empty for a hook that is about no call.
        call: String,
        programs: Vec<Program>,
        /// How often others were started than are listed.
        #[serde(default, skip_serializing_if = "is_none")]
        n_more: u64,
        /// The command of the settings that started them, where it was not the call itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hook: Option<String>,
        /// The background command that started them, told when it has ended; `call` is the one that
        /// asked about it, or empty.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        background: Option<String>,
    },
    CallFinished {
        call: String,
        name: String,
        status: CallStatus,
        /// What the model reads.
        result: String,
        /// Where all of it is kept, when `result` was cut.
        artifact: Option<String>,
        duration_ms: u64,
        /// What the model knows of files by it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        seen: Vec<Memo>,
    },
    /// A command of the user's settings ran, or was not let.
    HookEnded {
        /// The moment it is tied to.
        moment: Moment,
        /// The tool call it was about.
        call: Option<String>,
        /// The command as the settings have it.
        run: String,
        outcome: HookOutcome,
        /// The start of what it said: its standard error, else its standard output.
        said: String,
        duration_ms: u64,
    },
    /// The conversation takes this much of the model's window: a warning, once for each threshold.
    ContextNear {
        percent: u8,
        used: u64,
        window: u64,
    },
    /// What the session has come to, put together without the model, for the reader of the log.
    CheckpointMade {
        summary: String,
    },
    /// Long results were replaced by short references, to make room.
    ResultsEvicted {
        results: Vec<Evicted>,
    },
    /// A summary took the place of all messages but the first `head` and the last `tail`.
    ConversationCompacted {
        summary: String,
        head: u32,
        tail: u32,
        /// Tokens before and after, as far as they can be counted.
        before: u64,
        after: u64,
    },
    /// The user chose how much is allowed without asking from here on.
    ModeChanged {
        /// `auto`, `ask` or `deny`.
        mode: String,
    },
    /// From here on commands can write to the project or, in plan mode, not.
    PlanModeChanged {
        on: bool,
        /// Commands in the background that ended with the sandbox before.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ended: Vec<String>,
        /// How long there was no sandbox; 0 where the first one was made this way.
        duration_ms: u64,
    },
    /// A plan, or another version of it.
    PlanMade {
        /// From 1.
        version: u32,
        /// Markdown.
        text: String,
        /// The user changed it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        edited: bool,
    },
    PlanDecided {
        version: u32,
        decision: PlanDecision,
        /// What the user said about it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The model saved a note that later sessions are shown.
    MemorySaved {
        memory: Memory,
        /// There was one of this name.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        replaced: bool,
        /// The oldest ones, which were removed to make room.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pruned: Vec<String>,
    },
    /// A call started an agent, which has a session of its own.
    AgentStarted {
        call: String,
        session: SessionId,
        /// Its type.
        agent: String,
        /// What it is for, in a few words.
        description: String,
    },
    /// Something that happened in the session of an agent, whose own log keeps it.
    AgentEvent {
        call: String,
        session: SessionId,
        agent: String,
        event: Box<Event>,
    },
    /// An agent came to its end.
    AgentFinished {
        call: String,
        session: SessionId,
        agent: String,
        status: RunStatus,
        limit: Option<LimitKind>,
        /// What it found, where it was to check something.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        verdict: Option<AgentVerdict>,
        turns: u32,
        tool_calls: u32,
        usage: Usage,
        error: Option<String>,
        duration_ms: u64,
    },
    /// So many calls were denied that the model was told to stop trying.
    DenialsEscalated {
        in_a_row: u32,
        in_all: u32,
    },
    /// The model was told that a limit is near, or that it is reached.
    LimitReached {
        limit: LimitKind,
        /// `false`: the note at 85 %; `true`: no further calls.
        at_end: bool,
    },
    Interrupted,
    /// The sandbox tried to reach a host; not all know of many that are alike.
    NetworkAttempted(NetworkAttempt),
    /// What a session did with git is in the user's repository now.
    GitTaken {
        /// Where it is below the project, if it is not the one at its top.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repository: Option<String>,
        /// Branches and tags, each with what it was and is.
        branches: Vec<String>,
        /// How many more there are than are named.
        #[serde(default, skip_serializing_if = "is_zero")]
        n_more: u32,
        /// What new stashes say of themselves.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        stashes: Vec<String>,
        /// What is checked out now, where that is another branch.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        head: Option<String>,
        /// Whether what is staged is as the session left it.
        staged: bool,
        /// Whether it waited in a review, which named all of it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        waited: bool,
    },
    /// What a turn of a chat or a run changed in the project; nothing where it changed nothing.
    ProjectChanged(ProjectChanges),
    Warning {
        message: String,
    },
    Progress(Progress),
    RunFinished {
        status: RunStatus,
        exit_code: u8,
        response: String,
        turns: u32,
        tool_calls: u32,
        usage: Usage,
        limit: Option<LimitKind>,
        error: Option<String>,
        duration_ms: u64,
    },
    #[serde(other)]
    Unknown,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks with a reference"
)]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks with a reference"
)]
fn is_none(n: &u64) -> bool {
    *n == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, kind: Kind) {
        let event = Event {
            at: "2026-11-21T10:00:00Z".parse().expect("a time"),
            kind,
        };
        assert_eq!(serde_json::to_string(&event).expect("writes"), json);
        assert_eq!(serde_json::from_str::<Event>(json).expect("reads"), event);
    }

    #[test]
    fn an_event_is_one_flat_object() {
        check(
            r#"{"type":"call_started","at":"2026-11-21T10:00:00Z","call":"c1","name":"bash","arguments":"{}"}"#,
            Kind::CallStarted {
                call: "c1".into(),
                name: "bash".into(),
                arguments: "{}".into(),
            },
        );
        check(
            r#"{"type":"user_message","at":"2026-11-21T10:00:00Z","text":"a"}"#,
            Kind::UserMessage {
                text: "a".into(),
                images: 0,
            },
        );
        check(
            r#"{"type":"interrupted","at":"2026-11-21T10:00:00Z"}"#,
            Kind::Interrupted,
        );
    }

    #[test]
    fn a_newer_kind_is_read_as_unknown() {
        let event: Event =
            serde_json::from_str(r#"{"type":"moon_rose","at":"2026-11-21T10:00:00Z","phase":3}"#)
                .expect("reads");
        assert_eq!(event.kind, Kind::Unknown);
    }

    #[test]
    fn only_what_happened_is_durable() {
        assert!(!Event::now(Kind::TextDelta { text: "a".into() }).durable());
        assert!(Event::now(Kind::Interrupted).durable());
    }
}
