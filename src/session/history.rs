use std::collections::VecDeque;

use serde_json::Value;

use podbay_event::Evicted;
use podbay_event::ToolCall;
use podbay_event::is_same_name;
use podbay_llm::message::Message;
use podbay_wire::FileUse;

use super::images;

/// Most files that are remembered as read.
const READ_MAX: usize = 100;
/// Prefix of a path that names an artifact instead of a file.
const ARTIFACT: &str = "artifact:";
/// Prefixes of lines in a patch that name a file.
const PATCHED: [&str; 5] = [
    "*** Update File: ",
    "*** Add File: ",
    "*** Delete File: ",
    "*** Move to: ",
    "+++ b/",
];
const PATHS: [&str; 4] = ["path", "file_path", "filename", "file"];

/// The messages of one conversation, and the operations on it as a whole.
///
/// The agent loop keeps one while it works, and [`super::ResumeState`] rebuilds one from a log: the
/// same steps give the same messages, so that a resumed session sends the same bytes as before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    entries: Vec<Entry>,
    /// The number of messages at each request, ascending.
    asked: Vec<usize>,
    /// How many messages at the beginning are context about the project; they are never removed.
    n_context: usize,
    said: Vec<String>,
    touched: Vec<String>,
    read: VecDeque<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    message: Message,
    /// A message of the user, which starts a turn.
    is_turn: bool,
}

/// One step of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    Message(&'a Message),
    /// A request was sent with all messages before.
    Asked,
}

impl History {
    /// Appends context about the project, before any other message.
    pub fn tell(&mut self, text: &str) {
        if self.entries.len() == self.n_context {
            self.n_context += 1;
        }
        self.push(Message::user(text));
    }

    /// Returns how many messages at the beginning are context.
    pub fn n_context(&self) -> usize {
        self.n_context
    }

    /// Returns the lengths of the tails that a compaction may keep, the longest first: a tail never
    /// separates a call from its result.
    pub fn tails(&self) -> Vec<usize> {
        let is_cut =
            |entry: &Entry| entry.is_turn || matches!(entry.message, Message::Assistant { .. });
        (self.n_context..self.entries.len())
            .filter(|at| is_cut(&self.entries[*at]))
            .map(|at| self.entries.len() - at)
            .collect()
    }

    /// Appends a message of the user.
    pub fn say(&mut self, text: &str) {
        self.said.push(text.to_owned());
        self.entries.push(Entry {
            message: Message::user(text),
            is_turn: true,
        });
    }

    /// Appends what the user says in the middle of a turn, of which it is a part.
    pub fn say_more(&mut self, text: &str) {
        match self.said.last_mut() {
            Some(said) => {
                said.push_str("\n\n");
                said.push_str(text);
            }
            None => return self.say(text),
        }
        self.push(Message::user(text));
    }

    /// Appends any other message.
    pub fn push(&mut self, message: Message) {
        if let Message::ToolResult {
            call,
            is_error: false,
            ..
        } = &message
        {
            let (touched, read) = self
                .call(call)
                .map(|call| (touched_paths(call), read_path(call)))
                .unwrap_or_default();
            for path in touched {
                if !self.touched.contains(&path) {
                    self.touched.push(path);
                }
            }
            if let Some(path) = read {
                self.read.retain(|other| *other != path);
                self.read.push_back(path);
                if self.read.len() > READ_MAX {
                    self.read.pop_front();
                }
            }
        }
        self.entries.push(Entry {
            message,
            is_turn: false,
        });
    }

    /// Records that a request was sent with all messages so far.
    pub fn asked(&mut self) {
        if self.asked.last() != Some(&self.entries.len()) {
            self.asked.push(self.entries.len());
        }
    }

    pub fn messages(&self) -> impl ExactSizeIterator<Item = &Message> + DoubleEndedIterator {
        self.entries.iter().map(|entry| &entry.message)
    }

    /// Returns messages and requests in their order.
    pub fn steps(&self) -> Vec<Step<'_>> {
        let mut asked = self.asked.iter().peekable();
        let mut steps = Vec::with_capacity(self.entries.len() + self.asked.len());
        for at in 0..=self.entries.len() {
            if asked.next_if(|n| **n == at).is_some() {
                steps.push(Step::Asked);
            }
            steps.extend(
                self.entries
                    .get(at)
                    .map(|entry| Step::Message(&entry.message)),
            );
        }
        steps
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns all messages of the user, also those that were compacted.
    pub fn said(&self) -> &[String] {
        &self.said
    }

    /// Returns the files that file tools changed, as the model named them.
    pub fn touched(&self) -> &[String] {
        &self.touched
    }

    /// Returns the files that were read last, as the model named them, the latest last.
    pub fn read(&self) -> impl Iterator<Item = &str> {
        self.read.iter().map(String::as_str)
    }

    /// Returns whether the model speaks next: the last message is the user's or a tool result.
    pub fn is_open(&self) -> bool {
        matches!(
            self.entries.last().map(|entry| &entry.message),
            Some(
                Message::User { .. }
                    | Message::System { .. }
                    | Message::Image { .. }
                    | Message::ToolResult { .. }
            )
        )
    }

    /// Replaces long results by short references.
    pub fn evict(&mut self, evicted: &[Evicted]) {
        for short in evicted {
            // Ids are unique in one conversation; in a damaged log the latest one counts.
            let found = self
                .entries
                .iter_mut()
                .rev()
                .find_map(|entry| match &mut entry.message {
                    Message::ToolResult { call, text, .. } if *call == short.call => Some(text),
                    _ => None,
                });
            if let Some(text) = found {
                text.clone_from(&short.text);
            }
        }
        // Messages that were sent have changed, so the server's cache is of no use.
        self.asked.clear();
    }

    /// Replaces each image by its description; returns how many there were.
    pub fn take_images_out(&mut self) -> usize {
        let mut n_images = 0;
        for Entry { message, .. } in &mut self.entries {
            if let Message::Image { text, .. } = message {
                *message = Message::User {
                    text: std::mem::take(text),
                };
                n_images += 1;
            }
        }
        n_images
    }

    /// Loads the images that a log only names; where `load` returns none, the description stays.
    /// Returns how many those are.
    pub(super) fn load_images(&mut self, load: impl Fn(&str) -> Option<Message>) -> usize {
        let mut n_lost = 0;
        for Entry { message, .. } in &mut self.entries {
            let Message::Image { text, url } = message else {
                continue;
            };
            if !images::is_named(url) {
                continue;
            }
            if let Some(Message::Image { url: found, .. }) = load(url) {
                *url = found;
            } else {
                *message = Message::User {
                    text: std::mem::take(text),
                };
                n_lost += 1;
            }
        }
        n_lost
    }

    /// Replaces all messages by a summary, but for the first `head` and the last `tail`. In an
    /// edited log this may separate a call from its result, which no server accepts: then the
    /// summary replaces both.
    pub fn compact(&mut self, summary: &str, head: usize, tail: usize) {
        let is_result = |at: usize| {
            self.entries
                .get(at)
                .is_some_and(|entry| matches!(entry.message, Message::ToolResult { .. }))
        };
        let mut head = head.min(self.entries.len());
        while head > 0 && is_result(head) {
            head -= 1;
        }
        let mut from = self.entries.len().saturating_sub(tail).max(head);
        while is_result(from) {
            from += 1;
        }
        let summary = Entry {
            message: Message::user(summary),
            is_turn: false,
        };
        self.entries.splice(head..from, [summary]);
        self.asked.clear();
    }

    /// Returns how many turns can be rewound.
    pub fn n_turns(&self) -> usize {
        self.entries.iter().filter(|entry| entry.is_turn).count()
    }

    /// Rewinds the user's last messages and all that followed them, at most all.
    pub fn rewind(&mut self, turns: usize) {
        let begins: Vec<usize> = (0..self.entries.len())
            .filter(|at| self.entries[*at].is_turn)
            .collect();
        let Some(back) = turns.checked_sub(1) else {
            return;
        };
        let Some(at) = begins.iter().rev().nth(back).or(begins.first()).copied() else {
            return;
        };
        let left = begins.len().saturating_sub(turns);
        self.said.truncate(self.said.len() - (begins.len() - left));
        self.entries.truncate(at);
        self.asked.retain(|n| *n <= at);
    }

    /// Returns the last call with this id.
    pub fn call(&self, id: &str) -> Option<&ToolCall> {
        self.messages().rev().find_map(|message| match message {
            Message::Assistant { calls, .. } => calls.iter().find(|call| call.id == id),
            _ => None,
        })
    }
}

/// Returns the files that a call changes, as the model named them.
fn touched_paths(call: &ToolCall) -> Vec<String> {
    if !is_of(call, FileUse::Changes) {
        return Vec::new();
    }
    let Ok(arguments) = serde_json::from_str::<Value>(&call.arguments) else {
        return Vec::new();
    };
    let one = named_path;
    let named = |name: &str| arguments.get(name).and_then(Value::as_str);
    let edits = arguments
        .get("edits")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(one);
    let moved = ["source", "destination"]
        .into_iter()
        .filter_map(named)
        .map(str::to_owned);
    let lines = named("patch").unwrap_or_default().lines();
    let patched = lines
        .filter_map(|line| PATCHED.iter().find_map(|word| line.strip_prefix(word)))
        .map(|path| path.trim_end().to_owned());
    one(&arguments)
        .into_iter()
        .chain(edits)
        .chain(moved)
        .chain(patched)
        .collect()
}

/// Returns the file that a call shows, as the model named it.
fn read_path(call: &ToolCall) -> Option<String> {
    let arguments =
        is_of(call, FileUse::Shows).then(|| serde_json::from_str(&call.arguments).ok())??;
    named_path(&arguments).filter(|path| !path.starts_with(ARTIFACT))
}

/// Returns whether the model called a tool that does this with the files it names, by any name.
fn is_of(call: &ToolCall, file_use: FileUse) -> bool {
    podbay_wire::tools()
        .filter(|tool| tool.file_use == file_use)
        .any(|tool| tool.name == call.name || tool.aliases.contains(&call.name.as_str()))
}

fn named_path(arguments: &Value) -> Option<String> {
    let fields = arguments.as_object()?;
    let named = |name: &str| {
        fields.get(name).or_else(|| {
            fields
                .iter()
                .find(|(key, _)| is_same_name(key, name))
                .map(|(_, value)| value)
        })
    };
    PATHS
        .iter()
        .find_map(|name| Some(named(name)?.as_str()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(id: &str, name: &str, arguments: &str) -> Message {
        let call = ToolCall {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
        };
        Message::Assistant {
            text: String::new(),
            thinking: String::new(),
            calls: vec![call],
            raw: None,
        }
    }

    fn result(id: &str, text: &str) -> Message {
        Message::ToolResult {
            call: id.into(),
            name: "x".into(),
            text: text.into(),
            is_error: false,
        }
    }

    fn history() -> History {
        let mut history = History::default();
        history.push(Message::user("context"));
        history.say("one");
        history.asked();
        history.push(called("a", "write_file", r#"{"path":"x.txt"}"#));
        history.push(result("a", "written"));
        history.asked();
        history.push(Message::assistant("done"));
        history.say("two");
        history.asked();
        history.push(called("b", "read_file", r#"{"path":"y.txt"}"#));
        history.push(result("b", "long"));
        history
    }

    fn texts(history: &History) -> Vec<String> {
        let text = |message: &Message| match message {
            Message::System { text }
            | Message::User { text }
            | Message::Image { text, .. }
            | Message::ToolResult { text, .. } => text.clone(),
            Message::Assistant { text, calls, .. } => format!("{text}{}", calls.len()),
        };
        history.messages().map(text).collect()
    }

    #[test]
    fn all_files_changed_by_one_call_are_listed() {
        #[track_caller]
        fn check(name: &str, arguments: &serde_json::Value, expected: &[&str]) {
            let mut history = History::default();
            history.push(called("a", name, &arguments.to_string()));
            history.push(result("a", "done"));
            assert_eq!(history.touched(), expected);
        }
        check(
            "multi_edit",
            &serde_json::json!({ "edits": [{ "path": "a" }, { "filePath": "b" }, { "path": "a" }] }),
            &["a", "b"],
        );
        check(
            "move_file",
            &serde_json::json!({ "source": "a", "destination": "b" }),
            &["a", "b"],
        );
        let patch = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n";
        check(
            "apply_patch",
            &serde_json::json!({ "patch": patch }),
            &["x"],
        );
        let patch = "*** Begin Patch\n*** Update File: a\n*** Move to: b\n*** Add File: c\n+x\n*** End Patch";
        check(
            "apply_patch",
            &serde_json::json!({ "patch": patch }),
            &["a", "b", "c"],
        );
        check(
            "grep",
            &serde_json::json!({ "pattern": "x", "path": "a" }),
            &[],
        );
    }

    #[test]
    fn read_files_are_listed_latest_last_and_bounded() {
        let mut history = History::default();
        let paths = ["a", "artifact:c1", "b", "a"]
            .map(str::to_owned)
            .into_iter();
        for (n, path) in paths
            .chain((0..READ_MAX - 1).map(|n| format!("more{n}")))
            .enumerate()
        {
            history.push(called(
                &format!("c{n}"),
                "Read",
                &serde_json::json!({ "file_path": path }).to_string(),
            ));
            history.push(result(&format!("c{n}"), "text"));
        }
        let read: Vec<&str> = history.read().collect();
        assert_eq!(
            (read.len(), &read[..2], read.last()),
            (READ_MAX, &["a", "more0"][..], Some(&"more98"))
        );
        history.push(called("x", "write_file", r#"{"path":"y"}"#));
        history.push(result("x", "written"));
        assert!(history.read().all(|path| path != "y"));
    }

    #[test]
    fn a_turn_is_rewound_with_all_that_followed() {
        let mut rewound = history();
        rewound.rewind(1);
        assert_eq!(texts(&rewound), ["context", "one", "1", "written", "done0"]);
        assert_eq!(
            (rewound.said(), rewound.n_turns(), rewound.is_open()),
            (&["one".to_owned()][..], 1, false)
        );
        rewound.rewind(5);
        assert_eq!(
            (texts(&rewound), rewound.said().len()),
            (vec!["context".to_owned()], 0)
        );
    }

    #[test]
    fn compaction_replaces_the_middle_and_keeps_the_users_messages() {
        let mut compacted = history();
        compacted.compact("summary", 1, 2);
        assert_eq!(texts(&compacted), ["context", "summary", "1", "long"]);
        assert_eq!(
            (compacted.said(), compacted.touched()),
            (
                &["one".to_owned(), "two".to_owned()][..],
                &["x.txt".to_owned()][..]
            )
        );
        assert!(
            !compacted.steps().contains(&Step::Asked),
            "all of it is sent anew"
        );
        compacted.compact("again", 9, 9);
        assert_eq!(
            texts(&compacted).last().map(String::as_str),
            Some("again"),
            "counts that are too large do no harm"
        );
    }

    #[test]
    fn an_edited_log_separates_no_call_from_its_result() {
        for (head, tail, expected) in [
            (1, 1, &["context", "summary"][..]),
            (3, 0, &["context", "one", "summary"]),
            (3, 1, &["context", "one", "summary"]),
            (
                4,
                2,
                &["context", "one", "1", "written", "summary", "1", "long"],
            ),
        ] {
            let mut edited = history();
            edited.compact("summary", head, tail);
            assert_eq!(texts(&edited), expected, "{head} {tail}");
        }
    }

    #[test]
    fn only_evicted_results_are_replaced() {
        let mut evicted = history();
        evicted.evict(&[
            Evicted {
                call: "a".into(),
                text: "short".into(),
            },
            Evicted {
                call: "unknown".into(),
                text: "?".into(),
            },
        ]);
        assert_eq!(texts(&evicted)[3], "short");
        assert_eq!(texts(&evicted)[7], "long");
    }

    #[test]
    fn requests_keep_their_position_among_the_messages() {
        let history = history();
        let at: Vec<usize> = history
            .steps()
            .iter()
            .enumerate()
            .filter(|(_, step)| **step == Step::Asked)
            .map(|(at, _)| at)
            .collect();
        assert_eq!(at, [2, 5, 8]);
        assert!(history.is_open());
    }
}
