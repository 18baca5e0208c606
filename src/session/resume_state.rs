use podbay_event::CallStatus;
use podbay_event::Event;
use podbay_event::Kind;
use podbay_event::OpenAnswer;
use podbay_event::Plan;
use podbay_event::RunStatus;
use podbay_event::TaskEnd;
use podbay_event::ToolCall;
use podbay_event::ToolMode;
use podbay_event::ToolTold;
use podbay_event::Usage;

use super::Artifacts;
use super::History;
use super::images;
use super::replay::Replay;
use podbay_wire::Memo;

/// The model's result of a call that had started when the log ended.
pub(super) const UNKNOWN_END: &str = "It is not known how this call ended: Podbay was stopped while it was under way, or the record of its end is lost. It \
                           was not executed again. Look at what it may have changed before you continue.";
/// The model's result of a call that had not started.
pub(super) const NOT_BEGUN: &str =
    "This call was not executed: Podbay was stopped before it started.";

/// A conversation as its log tells it: enough to resume it.
///
/// Only messages are read from a log. Permissions granted in it do not count, and nothing in it is
/// executed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResumeState {
    /// The fixed prefix of every request; `None` where the log does not have it: it is older, or
    /// ended before.
    pub beginning: Option<PromptPrefix>,
    pub history: History,
    /// Calls at the end without a result.
    pub open: Vec<OpenCall>,
    /// How the last run ended; `None` if it did not end.
    pub status: Option<RunStatus>,
    /// The task that the session began with, or got when it was resumed, as long as it is not a
    /// message yet.
    pub task: Option<String>,
    /// Whether answers were constrained to a schema although tools were passed natively.
    pub is_held: bool,
    /// Whether tools were passed by a schema before they were passed as text.
    pub was_held: bool,
    /// The state of parsing the next answer, where the last one was incomplete.
    pub open_answer: OpenAnswer,
    /// How the last task ended, until another one starts or it is continued.
    pub ended: Option<TaskEnd>,
    /// Whether the run of that task reported its end.
    pub is_told: bool,
    /// Whether the server turned out not to read images.
    pub is_blind: bool,
    /// Images of the last message that come after the end of the log: the model has not seen them.
    pub n_unshown: u32,
    /// How full the context window was.
    pub fullness: Fullness,
    /// Arguments of the calls that made the task list, in order.
    pub tasks: Vec<String>,
    /// What the model knows of files, in order.
    pub seen: Vec<Memo>,
    /// Files whose instructions it was told, in order.
    pub instructions: Vec<String>,
    /// Whether plan mode was on.
    pub planning: bool,
    /// The last plan.
    pub plan: Option<Plan>,
    /// Number of records of unknown types.
    pub n_unknown: usize,
}

/// How full the context window was, since the last compaction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fullness {
    /// The server's count for the last answer, if nothing counted has changed since.
    pub counted: Option<Usage>,
    /// The threshold of the last warning, in percent.
    pub warned: u8,
}

/// The fixed prefix of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptPrefix {
    pub system: String,
    pub tools: Vec<ToolTold>,
    pub mode: ToolMode,
    pub thinking: bool,
    pub folded: bool,
}

/// A call without a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCall {
    pub call: ToolCall,
    /// Whether it may have had effects.
    pub begun: bool,
}

impl OpenCall {
    /// Returns the event that closes it.
    pub fn close(&self) -> Kind {
        let result = if self.begun { UNKNOWN_END } else { NOT_BEGUN };
        Kind::CallFinished {
            call: self.call.id.clone(),
            name: self.call.name.clone(),
            status: CallStatus::Cancelled,
            result: result.to_owned(),
            artifact: None,
            duration_ms: 0,
            seen: Vec::new(),
        }
    }
}

impl ResumeState {
    /// Returns how the last task ended, if its last answer ended it and the run was stopped before
    /// it reported the end.
    pub fn settled(&self) -> Option<&TaskEnd> {
        self.ended
            .as_ref()
            .filter(|ended| ended.is_settled() && !self.is_told)
    }

    /// Returns whether the model speaks next in a task that is not done.
    pub fn is_open(&self) -> bool {
        self.history.is_open() && !self.is_completed()
    }

    /// Returns whether the last task is done and its end was reported.
    pub fn is_done(&self) -> bool {
        let has_none = self.history.said().is_empty() && self.task.is_none();
        let was_ended = self.status == Some(RunStatus::Completed) && !self.is_open();
        has_none || self.settled().is_none() && (was_ended || self.is_completed() && self.is_told)
    }

    fn is_completed(&self) -> bool {
        self.ended
            .as_ref()
            .is_some_and(|ended| ended.status == RunStatus::Completed)
    }

    /// Replays the events of a log.
    pub fn of(events: &[Event]) -> Self {
        let mut replay = Replay::default();
        for event in events {
            replay.take(&event.kind);
        }
        replay.end()
    }

    /// Loads the images that the log only names; returns how many are missing, of which the
    /// description stays.
    pub fn load_images(&mut self, artifacts: &Artifacts) -> usize {
        self.history
            .load_images(|name| images::load(artifacts, name))
    }
}

#[cfg(test)]
mod tests {
    use super::super::replay::MISSING;
    use super::*;
    use podbay_event::PlanDecision;
    use podbay_llm::message::Message;

    fn call(id: &str) -> ToolCall {
        ToolCall {
            id: id.into(),
            name: "bash".into(),
            arguments: "{}".into(),
        }
    }

    fn answer(text: &str, calls: &[&str]) -> Kind {
        let calls = calls.iter().map(|id| call(id)).collect();
        let (thinking, usage) = ("hm".to_owned(), Usage::default());
        Kind::AssistantMessage {
            text: text.into(),
            thinking,
            calls,
            raw: None,
            usage,
            interrupted: false,
            cut: false,
            duration_ms: 1,
        }
    }

    fn began(id: &str) -> Kind {
        Kind::CallStarted {
            call: id.into(),
            name: "bash".into(),
            arguments: "{}".into(),
        }
    }

    fn ended(id: &str, result: &str) -> Kind {
        let (call, name) = (id.into(), "bash".into());
        Kind::CallFinished {
            call,
            name,
            status: CallStatus::Ok,
            result: result.into(),
            artifact: None,
            duration_ms: 1,
            seen: Vec::new(),
        }
    }

    fn said(text: &str) -> Kind {
        Kind::UserMessage {
            text: text.into(),
            images: 0,
        }
    }

    fn past(kinds: Vec<Kind>) -> ResumeState {
        ResumeState::of(&kinds.into_iter().map(Event::now).collect::<Vec<_>>())
    }

    fn text(message: &Message) -> &str {
        match message {
            Message::System { text }
            | Message::User { text }
            | Message::Image { text, .. }
            | Message::ToolResult { text, .. }
            | Message::Assistant { text, .. } => text,
        }
    }

    fn texts(past: &ResumeState) -> Vec<&str> {
        past.history.messages().map(text).collect()
    }

    #[test]
    fn results_are_in_the_order_of_the_calls() {
        let events = vec![
            said("go"),
            Kind::ModelAsked,
            answer("", &["a", "b"]),
            began("a"),
            began("b"),
            ended("b", "2"),
            ended("a", "1"),
        ];
        let past = past(events);
        assert_eq!(texts(&past), ["go", "", "1", "2"]);
        assert!(past.open.is_empty() && past.history.is_open());
    }

    #[test]
    fn unended_calls_are_open_and_closed_with_what_is_known() {
        let mut events = vec![
            said("go"),
            answer("", &["a", "b", "c"]),
            began("a"),
            ended("a", "1"),
            began("b"),
        ];
        let before = past(events.clone());
        assert_eq!(
            before.open,
            [
                OpenCall {
                    call: call("b"),
                    begun: true
                },
                OpenCall {
                    call: call("c"),
                    begun: false
                }
            ]
        );
        assert_eq!(
            texts(&before),
            ["go", ""],
            "no result stands there before all of them do"
        );
        events.extend(before.open.iter().map(OpenCall::close));
        let after = past(events);
        assert_eq!(texts(&after), ["go", "", "1", UNKNOWN_END, NOT_BEGUN]);
        assert!(after.open.is_empty());
    }

    #[test]
    fn a_damaged_log_gives_a_conversation_that_servers_accept() {
        let lost_end = past(vec![
            said("go"),
            answer("", &["a"]),
            began("a"),
            said("and?"),
        ]);
        assert_eq!(texts(&lost_end), ["go", "", UNKNOWN_END, "and?"]);
        let lost_message = past(vec![said("go"), answer("one", &[]), answer("two", &[])]);
        assert_eq!(texts(&lost_message), ["go", "one", MISSING, "two"]);
        let lost_answer = past(vec![
            said("go"),
            began("a"),
            ended("a", "1"),
            ended("a", "1"),
        ]);
        assert_eq!(texts(&lost_answer), ["go"], "a result of nothing is none");
        let headless = past(vec![answer("one", &[])]);
        assert_eq!(texts(&headless), [MISSING, "one"]);
    }

    #[test]
    fn plan_mode_and_the_last_plan_are_restored() {
        let made = |version, text: &str| Kind::PlanMade {
            version,
            text: text.to_owned(),
            edited: false,
        };
        let mode = |on| Kind::PlanModeChanged {
            on,
            ended: Vec::new(),
            duration_ms: 1,
        };
        let decided = |version| Kind::PlanDecided {
            version,
            decision: PlanDecision::Approved,
            reason: None,
        };
        let plan = |version, text: &str, decision| {
            Some(Plan {
                version,
                text: text.to_owned(),
                decision,
            })
        };
        let check = |kinds: Vec<Kind>, is_planning: bool, expected: Option<Plan>| {
            let past = past(kinds);
            assert_eq!((past.planning, past.plan), (is_planning, expected));
        };
        check(vec![said("go")], false, None);
        check(vec![mode(true), said("go")], true, None);
        let one = vec![mode(true), said("go"), made(1, "a")];
        check(one.clone(), true, plan(1, "a", None));
        let two = [one, vec![made(2, "b"), decided(2), mode(false)]].concat();
        check(
            two.clone(),
            false,
            plan(2, "b", Some(PlanDecision::Approved)),
        );
        // A decision about another one is none about this.
        check(
            [two, vec![made(3, "c"), decided(2)]].concat(),
            false,
            plan(3, "c", None),
        );
    }

    #[test]
    fn a_task_that_ended_with_a_plan_is_done() {
        let ended = TaskEnd {
            status: RunStatus::Completed,
            response: "the plan".to_owned(),
            denied: Vec::new(),
        };
        let made = Kind::PlanMade {
            version: 1,
            text: "the plan".to_owned(),
            edited: false,
        };
        let call_ended = || super::tests::ended("a", "ok");
        let log = |made: Vec<Kind>| {
            let before = vec![said("go"), answer("", &["a"]), began("a")];
            let after = vec![Kind::TaskEnded(ended.clone())];
            past([before, made, vec![call_ended()], after].concat())
        };
        assert!(!log(vec![made]).is_open());
        assert!(
            log(Vec::new()).is_open(),
            "a call without an answer to its result is not the end of a task"
        );
    }

    #[test]
    fn the_state_of_the_task_is_restored() {
        let end = |status| Kind::RunFinished {
            status,
            exit_code: 0,
            response: String::new(),
            turns: 1,
            tool_calls: 0,
            usage: Usage::default(),
            limit: None,
            error: None,
            duration_ms: 1,
        };
        assert_eq!(
            past(vec![
                said("go"),
                answer("done", &[]),
                end(RunStatus::Completed)
            ])
            .status,
            Some(RunStatus::Completed)
        );
        assert_eq!(
            past(vec![
                said("go"),
                answer("done", &[]),
                end(RunStatus::Completed),
                said("more")
            ])
            .status,
            None
        );
        let resumed = Kind::SessionResumed {
            podbay: "1".into(),
            mode: "auto".into(),
            task: Some("other".into()),
        };
        let resumed = past(vec![said("go"), end(RunStatus::Failed), resumed]);
        assert_eq!(
            (resumed.status, resumed.task.as_deref()),
            (None, Some("other"))
        );
    }

    #[test]
    fn a_tasks_end_counts_once_and_only_after_an_answer() {
        let ended_as = |status| {
            Kind::TaskEnded(TaskEnd {
                status,
                response: "So far.".into(),
                denied: Vec::new(),
            })
        };
        let one = |status| {
            vec![
                said("one"),
                Kind::ModelAsked,
                answer("So far.", &[]),
                ended_as(status),
            ]
        };
        assert!(past(one(RunStatus::Completed)).settled().is_some());
        // Rewound to where a limit had ended the first task, it is open; to where it was done, it
        // is done and reported.
        let back_to = |status| {
            past(
                [
                    one(status),
                    one(RunStatus::Completed),
                    vec![Kind::SessionRewound { turns: 1 }],
                ]
                .concat(),
            )
        };
        let (limited, done) = (back_to(RunStatus::Limit), back_to(RunStatus::Completed));
        assert_eq!(
            (limited.settled(), limited.is_done(), limited.status),
            (None, false, Some(RunStatus::Limit))
        );
        assert_eq!((done.settled(), done.is_done()), (None, true));
        // A chat that is left without a message ends no task.
        let usage = Usage::default();
        let left = Kind::RunFinished {
            status: RunStatus::Completed,
            exit_code: 0,
            response: String::new(),
            turns: 0,
            tool_calls: 0,
            usage,
            limit: None,
            error: None,
            duration_ms: 1,
        };
        let chat = Kind::SessionResumed {
            podbay: "1".into(),
            mode: "auto".into(),
            task: None,
        };
        assert!(!past([one(RunStatus::Limit), vec![chat, left]].concat()).is_done());
        // In a damaged log: after a call, after a question, and after nothing.
        let end = || ended_as(RunStatus::Completed);
        assert_eq!(
            past(vec![
                said("one"),
                Kind::ModelAsked,
                answer("", &["a"]),
                began("a"),
                end()
            ])
            .settled(),
            None
        );
        assert_eq!(
            past(vec![said("one"), Kind::ModelAsked, end()]).settled(),
            None
        );
        assert_eq!(past(vec![said("one"), end()]).settled(), None);
    }

    #[test]
    fn what_was_learnt_of_the_model_is_restored() {
        let changed = |from, to| Kind::ToolModeChanged {
            from,
            to,
            reason: String::new(),
        };
        let begun = |mode, folded| Kind::PromptBegun {
            system: "s".into(),
            tools: Vec::new(),
            mode,
            thinking: true,
            folded,
        };
        let (native, constrained) = (ToolMode::Native, ToolMode::Constrained);
        let held = vec![
            begun(native, false),
            said("go"),
            changed(native, constrained),
        ];
        assert!(
            past(held.clone()).is_held,
            "nothing but the reading has changed"
        );
        assert!(
            past([held.clone(), vec![begun(native, true)]].concat()).is_held,
            "the system prompt alone was moved"
        );
        assert!(
            past([held.clone(), vec![begun(native, true)]].concat())
                .beginning
                .is_some_and(|beginning| beginning.folded)
        );
        assert!(!past([held, vec![begun(constrained, false)]].concat()).is_held);
        assert!(
            past(vec![
                Kind::ImagesTakenOut { blind: true },
                Kind::ImagesTakenOut { blind: false }
            ])
            .is_blind
        );
    }

    #[test]
    fn the_windows_fullness_is_restored_until_messages_change() {
        let counted = Usage {
            prompt: 700,
            cached: 0,
            completion: 30,
            cost_usd: None,
        };
        let mut full = answer("so", &[]);
        let Kind::AssistantMessage { usage, .. } = &mut full else {
            panic!("an answer is one")
        };
        *usage = counted;
        let silent = answer("", &[]);
        let near = Kind::ContextNear {
            percent: 75,
            used: 730,
            window: 1000,
        };
        let events = vec![said("go"), full, silent, near];
        let known = Fullness {
            counted: Some(counted),
            warned: 75,
        };
        assert_eq!(past(events.clone()).fullness, known);
        let taken_out =
            past([events.clone(), vec![Kind::ImagesTakenOut { blind: false }]].concat()).fullness;
        assert_eq!(
            taken_out,
            Fullness {
                counted: None,
                ..known
            }
        );
        assert_eq!(
            past(
                [
                    events,
                    vec![Kind::ResultsEvicted {
                        results: Vec::new()
                    }]
                ]
                .concat()
            )
            .fullness,
            Fullness::default()
        );
    }

    #[test]
    fn rewinding_restores_the_task_list() {
        let list = |id: &str| {
            let began = Kind::CallStarted {
                call: id.into(),
                name: "task_list".into(),
                arguments: format!("{{\"task\": \"{id}\"}}"),
            };
            vec![answer("", &[id]), began, ended(id, "1. [ ] it")]
        };
        let turn = |words: &str, ids: &[&str]| {
            [
                vec![said(words)],
                ids.iter().flat_map(|id| list(id)).collect(),
                vec![answer("ok", &[])],
            ]
            .concat()
        };
        let all = [
            turn("one", &["a"]),
            turn("two", &["b", "c"]),
            turn("three", &[]),
        ]
        .concat();
        for (back, left) in [(1, 3), (2, 1), (3, 0), (9, 0)] {
            let kinds = [all.clone(), vec![Kind::SessionRewound { turns: back }]].concat();
            assert_eq!(past(kinds).tasks.len(), left, "{back} undone");
        }
        let twice = [
            all,
            vec![Kind::SessionRewound { turns: 2 }],
            turn("other", &["d"]),
            vec![Kind::SessionRewound { turns: 1 }],
        ]
        .concat();
        assert_eq!(past(twice).tasks, [r#"{"task": "a"}"#]);
    }

    #[test]
    fn rewinding_forgets_files_that_were_seen_later() {
        let read = |id: &str| {
            let seen = vec![Memo::Gone { path: id.into() }];
            let (call, name, result) = (id.into(), "read_file".into(), "1".into());
            let ended = Kind::CallFinished {
                call,
                name,
                status: CallStatus::Ok,
                result,
                artifact: None,
                duration_ms: 1,
                seen,
            };
            vec![answer("", &[id]), began(id), ended]
        };
        let turn = |words: &str, ids: &[&str]| {
            [
                vec![said(words)],
                ids.iter().flat_map(|id| read(id)).collect(),
                vec![answer("ok", &[])],
            ]
            .concat()
        };
        let all = [
            turn("one", &["a"]),
            turn("two", &["b", "c"]),
            turn("three", &[]),
        ]
        .concat();
        for (back, left) in [(0, 3), (1, 3), (2, 1), (3, 0), (9, 0)] {
            let kinds = [all.clone(), vec![Kind::SessionRewound { turns: back }]].concat();
            assert_eq!(past(kinds).seen.len(), left, "{back} undone");
        }
    }

    #[test]
    fn images_missing_at_the_end_of_a_log_are_counted() {
        let message = Kind::UserMessage {
            text: "look".into(),
            images: 3,
        };
        let image = Kind::ImageShown {
            text: "a".into(),
            media_type: "image/png".into(),
            artifact: "a".into(),
        };
        let note = Kind::NoteAdded {
            text: "b, which is not kept".into(),
        };
        let events = vec![message, image.clone(), note];
        assert_eq!(past(events.clone()).n_unshown, 1);
        assert_eq!(
            past([events.clone(), vec![image.clone(), image]].concat()).n_unshown,
            0
        );
        let resumed = Kind::SessionResumed {
            podbay: "1".into(),
            mode: "auto".into(),
            task: None,
        };
        assert_eq!(past([events, vec![resumed]].concat()).n_unshown, 0);
    }

    #[test]
    fn images_have_placeholders_until_they_are_loaded() {
        let image = |name: &str| Kind::ImageShown {
            text: name.into(),
            media_type: "image/png".into(),
            artifact: name.into(),
        };
        let events = vec![
            said("look"),
            image("a"),
            Kind::ModelAsked,
            answer("a cat", &[]),
        ];
        let url = |past: &ResumeState| {
            past.history.messages().find_map(|message| match message {
                Message::Image { url, .. } => Some(url.clone()),
                _ => None,
            })
        };
        assert_eq!(
            url(&past(events.clone())).as_deref(),
            Some("artifact:a,image/png")
        );
        let blind = past(
            [
                events,
                vec![Kind::ImagesTakenOut { blind: false }, said("and?")],
            ]
            .concat(),
        );
        assert_eq!(
            (url(&blind), texts(&blind)),
            (None, vec!["look", "a", "a cat", "and?"])
        );
    }
}
