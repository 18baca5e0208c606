use podbay_event::Evicted;
use podbay_event::ToolMode;
use podbay_llm::Message;
use podbay_llm::Prompt;
use podbay_session::History;
use podbay_session::Step;

/// The conversation so far, as messages and as the bytes sent to the server; the latter are always
/// derived from the former.
#[derive(Clone, Debug)]
pub struct Conversation {
    prompt: Prompt,
    history: History,
}

impl From<Prompt> for Conversation {
    fn from(prompt: Prompt) -> Self {
        Self {
            prompt,
            history: History::default(),
        }
    }
}

impl Conversation {
    /// Resumes an earlier conversation. The prompt must be new; it becomes the earlier one byte for
    /// byte.
    pub fn resume(mut prompt: Prompt, history: History) -> Self {
        for step in history.steps() {
            match step {
                Step::Message(message) => prompt.push(message),
                Step::Asked => prompt.sent(),
            }
        }
        Self { prompt, history }
    }

    pub fn prompt(&self) -> &Prompt {
        &self.prompt
    }

    pub fn history(&self) -> &History {
        &self.history
    }

    /// Returns the size in bytes before the model's last answer, and including it.
    pub(super) fn around_last_answer(&self) -> (usize, usize) {
        let steps = self.history.steps();
        let Some(last) = steps
            .iter()
            .rposition(|step| matches!(step, Step::Message(Message::Assistant { .. })))
        else {
            return (0, 0);
        };
        let mut prompt = self.prompt.rebuilt(self.prompt.mode(), std::iter::empty());
        let mut before = 0;
        for (at, step) in steps[..=last].iter().enumerate() {
            if at == last {
                before = prompt.n_bytes();
            }
            match step {
                Step::Message(message) => prompt.push(message),
                Step::Asked => prompt.sent(),
            }
        }
        (before, prompt.n_bytes())
    }

    /// Appends the context about the project, before any task.
    pub(super) fn tell(&mut self, text: &str) {
        self.prompt.push(&Message::user(text));
        self.history.tell(text);
    }

    /// Appends the user's message.
    pub(super) fn say(&mut self, text: &str) {
        self.prompt.push(&Message::user(text));
        self.history.say(text);
    }

    /// Appends what the user says in the middle of a task.
    pub(super) fn say_more(&mut self, text: &str) {
        self.prompt.push(&Message::user(text));
        self.history.say_more(text);
    }

    /// Appends any other message.
    pub(super) fn push(&mut self, message: Message) {
        self.prompt.push(&message);
        self.history.push(message);
    }

    /// Marks all messages so far as sent.
    pub(super) fn asked(&mut self) {
        self.history.asked();
    }

    /// Replaces long results by short references. The server reads the conversation again from the
    /// first of them on.
    pub(super) fn evict(&mut self, evicted: &[Evicted]) {
        self.history.evict(evicted);
        self.rebuild();
    }

    /// Replaces all messages but the first `head` and the last `tail` by a summary.
    pub(super) fn compact(&mut self, summary: &str, head: usize, tail: usize) {
        self.history.compact(summary, head, tail);
        self.rebuild();
    }

    /// Rewrites everything for another tool mode, keeping which messages were sent.
    pub(super) fn rewrite(&mut self, mode: ToolMode, system_folded: bool) {
        let prompt = self
            .prompt
            .rebuilt(mode, std::iter::empty())
            .with_system_folded(system_folded);
        *self = Self::resume(prompt, std::mem::take(&mut self.history));
    }

    /// Sends the model's reasoning back with its messages, including earlier ones. Requires a
    /// rewrite afterwards.
    pub(super) fn replay_thinking(&mut self) {
        self.prompt = self
            .prompt
            .rebuilt(self.prompt.mode(), std::iter::empty())
            .with_thinking_replayed(true);
    }

    /// Replaces each image by its description, as in the log; returns how many images there were.
    pub(super) fn remove_images(&mut self) -> usize {
        let n_images = self.history.take_images_out();
        if n_images > 0 {
            let prompt = self.prompt.rebuilt(self.prompt.mode(), std::iter::empty());
            *self = Self::resume(prompt, std::mem::take(&mut self.history));
        }
        n_images
    }

    fn rebuild(&mut self) {
        self.prompt = self
            .prompt
            .rebuilt(self.prompt.mode(), self.history.messages());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use podbay_event::ToolCall;

    #[derive(Clone, Debug)]
    enum Act {
        Say(String),
        Push(Message),
        Ask,
        Evict,
        Compact(usize, usize),
        TakeImagesOut,
    }

    fn act() -> impl Strategy<Value = Act> {
        let call = ToolCall {
            id: "c1".into(),
            name: "bash".into(),
            arguments: "{\"a\": 1}".into(),
        };
        let called = Message::Assistant {
            text: String::new(),
            thinking: "hm".into(),
            calls: vec![call],
            raw: None,
        };
        prop_oneof![
            ".{0,8}".prop_map(Act::Say),
            ".{0,8}".prop_map(|text| Act::Push(Message::user(text))),
            ".{1,8}".prop_map(|text| Act::Push(Message::assistant(text))),
            Just(Act::Push(called)),
            ".{0,8}".prop_map(|text| Act::Push(Message::ToolResult {
                call: "c1".into(),
                name: "bash".into(),
                text,
                is_error: false
            })),
            Just(Act::Ask),
            Just(Act::Ask),
            Just(Act::Evict),
            Just(Act::Push(Message::image("a.png", "image/png", b"abc"))),
            Just(Act::TakeImagesOut),
            (0..3_usize, 0..4_usize).prop_map(|(head, tail)| Act::Compact(head, tail)),
        ]
    }

    proptest! {
        #[test]
        fn a_resumed_conversation_has_the_same_bytes(acts in prop::collection::vec(act(), 0..24), native in any::<bool>()) {
            let mode = if native { ToolMode::Native } else { ToolMode::Constrained };
            let prompt = || Prompt::new("system", &[], mode).with_thinking_replayed(native);
            let mut live = Conversation::from(prompt());
            for act in acts {
                match act {
                    Act::Say(text) => live.say(&text),
                    Act::Push(message) => live.push(message),
                    Act::Ask => {
                        live.asked();
                        live.prompt().sent();
                    }
                    Act::Evict => live.evict(&[Evicted { call: "c1".into(), text: "short".into() }]),
                    Act::Compact(head, tail) => live.compact("summary", head, tail),
                    Act::TakeImagesOut => {
                        live.remove_images();
                        prop_assert!(!live.prompt().head().contains("image_url"));
                    }
                }
                let mut resumed = Conversation::resume(prompt(), live.history().clone());
                prop_assert_eq!(resumed.prompt().head(), live.prompt().head());
                // Later messages are the same too, including whether the last message was sent.
                let mut live = live.clone();
                live.say("next");
                resumed.say("next");
                prop_assert_eq!(resumed.prompt().head(), live.prompt().head());
            }
        }
    }
}
