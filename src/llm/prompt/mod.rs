//! A conversation as the server reads it.

#[cfg(test)]
mod growth;
mod user;

use std::collections::HashSet;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use user::LastUser;

use super::control::ControlTokens;
use super::dialect;
use super::dialect::ChatMessage;
use super::dialect::Dialect;
use super::format::constrained;
use super::format::native;
use super::format::prompted;
use super::format::text;
use super::message::Message;
use super::message::ToolSpec;
use podbay_event::ToolMode;

/// A conversation as the server reads it: its tools and messages, each written once by the API's
/// [`Dialect`] and only ever appended to.
/// A server that caches a prompt re-reads only what differs, so equal conversations must be equal
/// bytes: the JSON of `tools` and of the messages of one request is a prefix of the next one's. Two
/// rules follow. Tools and system prompt never change (see [`Prompt::rebuilt`] for when they must).
/// And consecutive user messages become one message, but only while no request has carried the
/// first: what was sent stays unchanged.
#[derive(Debug)]
pub struct Prompt {
    mode: ToolMode,
    dialect: Dialect,
    replay_thinking: bool,
    /// Control tokens to neutralize in messages: the same for every message, so that what was sent
    /// stays unchanged.
    tokens: ControlTokens,
    system: String,
    is_folded: bool,
    /// The text with which the first user message is to begin.
    folded: Option<String>,
    tools: Vec<ToolSpec>,
    /// The same tools, for parsing calls in a text.
    known: text::Tools,
    /// `[`, then the messages separated by commas, without the closing bracket.
    messages: String,
    /// The JSON of `tools`; `None` in other tool modes or without tools.
    tools_json: Option<String>,
    n_messages: usize,
    /// How many messages some request has carried. Sending takes the conversation as read-only,
    /// hence the atomic.
    n_sent: AtomicUsize,
    /// The last message, if it is a user's.
    last_user: Option<LastUser>,
    ids: HashSet<String>,
}

impl Prompt {
    /// Begins a conversation. Except with native calls the tools are described after the system
    /// prompt.
    pub fn new(system: &str, tools: &[ToolSpec], mode: ToolMode) -> Self {
        let mut prompt = Self {
            mode,
            dialect: dialect::OPENAI,
            replay_thinking: false,
            tokens: ControlTokens::default(),
            system: system.to_owned(),
            is_folded: false,
            folded: None,
            tools: tools.to_vec(),
            known: text::Tools::new(tools),
            messages: String::from("["),
            tools_json: None,
            n_messages: 0,
            n_sent: AtomicUsize::new(0),
            last_user: None,
            ids: HashSet::new(),
        };
        prompt.begin();
        prompt
    }

    /// Writes the system prompt as the first message, or keeps it for the first user message.
    fn begin(&mut self) {
        self.messages.truncate(1);
        self.n_messages = 0;
        self.tools_json = match self.mode {
            ToolMode::Native => (self.dialect.tools)(&self.tools),
            ToolMode::Constrained | ToolMode::Text => None,
        };
        let text = Some(self.beginning()).filter(|text| !text.is_empty());
        if self.is_folded {
            self.folded = text;
        } else if let Some(text) = text {
            self.append(&ChatMessage::new("system", text));
        }
    }

    /// Returns the system prompt with the description of the tools.
    fn beginning(&self) -> String {
        let mut text = self.tokens.neutralise(&self.system).into_owned();
        match self.mode {
            ToolMode::Native => {}
            ToolMode::Constrained => text.push_str(&constrained::instructions(&self.tools)),
            ToolMode::Text => text.push_str(&prompted::instructions(&self.tools)),
        }
        text.trim_start().to_owned()
    }

    /// Begins the first user message with the system prompt, for templates without system messages.
    /// Must be set before the first message.
    #[must_use]
    pub fn with_system_folded(mut self, wanted: bool) -> Self {
        if wanted && !self.is_folded {
            self.is_folded = true;
            self.begin();
        }
        self
    }

    /// Writes the conversation for another API than `OpenAI`'s. Must be set before the first
    /// message.
    #[must_use]
    pub fn with_dialect(mut self, dialect: Dialect) -> Self {
        if self.dialect.name != dialect.name {
            self.dialect = dialect;
            self.begin();
        }
        self
    }

    /// Neutralizes these control tokens too, in every message. Must be set before the first
    /// message.
    #[must_use]
    pub fn with_tokens(mut self, tokens: &ControlTokens) -> Self {
        if self.tokens != *tokens {
            self.tokens = tokens.clone();
            self.begin();
        }
        self
    }

    /// Sends the model's reasoning back with its messages; see
    /// [`super::ProbeResult::replay_thinking`]. Must be set before the first message.
    #[must_use]
    pub fn with_thinking_replayed(mut self, wanted: bool) -> Self {
        self.replay_thinking = wanted;
        self
    }

    /// Also recognizes calls of these tools in the model's text, though they are not offered:
    /// examples of such calls are treated like those of offered tools.
    #[must_use]
    pub fn with_untold(mut self, untold: &[ToolSpec]) -> Self {
        self.known = text::Tools::new(self.tools.iter().chain(untold));
        self
    }

    /// Returns a conversation with the same system prompt and tools, but other messages or another
    /// mode: after a compaction, or if the server turned out not to support tools. The server reads
    /// it from the first differing byte.
    #[must_use]
    pub fn rebuilt<'a>(
        &self,
        mode: ToolMode,
        messages: impl IntoIterator<Item = &'a Message>,
    ) -> Self {
        let mut prompt = Self::new(&self.system, &self.tools, mode)
            .with_dialect(self.dialect)
            .with_thinking_replayed(self.replay_thinking)
            .with_tokens(&self.tokens)
            .with_system_folded(self.is_folded);
        prompt.known = self.known.clone();
        for message in messages {
            prompt.push(message);
        }
        prompt
    }

    /// Appends one message.
    pub fn push(&mut self, message: &Message) {
        let native = self.mode == ToolMode::Native;
        let is_users = matches!(
            message,
            Message::System { .. } | Message::User { .. } | Message::Image { .. }
        );
        if !is_users && let Some(system) = self.folded.take() {
            self.append(&ChatMessage::new("user", system));
        }
        match message {
            Message::System { text } | Message::User { text } => self.push_user(text, None),
            Message::Image { text, url } => self.push_user(text, Some(url)),
            Message::Assistant {
                text,
                thinking,
                calls,
                raw,
            } => {
                self.ids.extend(calls.iter().map(|call| call.id.clone()));
                let thinking = self.replay_thinking.then_some(thinking.as_str());
                let message = match self.mode {
                    ToolMode::Native => native::assistant(text, thinking, calls, &self.tokens),
                    ToolMode::Constrained => {
                        constrained::assistant(text, calls, raw.as_deref(), &self.tokens)
                    }
                    ToolMode::Text => {
                        prompted::assistant(text, calls, raw.as_deref(), &self.tokens)
                    }
                };
                self.append(&message);
            }
            Message::ToolResult {
                call, name, text, ..
            } if native => {
                self.append(&native::tool_result(call, name, text, &self.tokens));
            }
            Message::ToolResult {
                name,
                text,
                is_error,
                ..
            } => self.push_user(&constrained::tool_result(name, text, *is_error), None),
        }
    }

    fn append(&mut self, message: &ChatMessage<'_>) {
        if self.n_messages > 0 {
            self.messages.push(',');
        }
        self.messages.push_str(&(self.dialect.message)(message));
        self.n_messages += 1;
        self.last_user = None;
    }

    pub fn mode(&self) -> ToolMode {
        self.mode
    }

    pub fn system(&self) -> &str {
        &self.system
    }

    /// Returns whether the system prompt is part of the first user message.
    pub fn is_folded(&self) -> bool {
        self.is_folded
    }

    /// Returns whether the model's reasoning is sent back with its messages.
    pub fn replays_thinking(&self) -> bool {
        self.replay_thinking
    }

    pub fn tools(&self) -> &[ToolSpec] {
        &self.tools
    }

    /// Returns the tools for parsing calls in a text.
    pub fn known(&self) -> &text::Tools {
        &self.known
    }

    /// Returns the control tokens that are neutralized in it.
    pub fn tokens(&self) -> &ControlTokens {
        &self.tokens
    }

    /// Returns how it is written.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Returns the size of the JSON that the server reads, tools included: a measure of the
    /// prompt's tokens, about four bytes each.
    pub fn n_bytes(&self) -> usize {
        self.head().len()
    }

    /// Returns whether a call of this conversation has this id.
    pub fn has_call(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    /// Returns the beginning of a request: `{"tools":[...],"messages":[...`, without the closing
    /// bracket. It is a prefix of the next one.
    pub fn head(&self) -> String {
        match &self.tools_json {
            Some(tools) => format!("{{\"tools\":{tools},\"messages\":{}", self.messages),
            None => format!("{{\"messages\":{}", self.messages),
        }
    }

    /// Marks all messages so far as carried by a request. When a conversation is rebuilt from a log
    /// this is called where the log says so.
    pub fn sent(&self) {
        self.n_sent.fetch_max(self.n_messages, Ordering::Relaxed);
    }
}

impl Clone for Prompt {
    fn clone(&self) -> Self {
        Self {
            mode: self.mode,
            dialect: self.dialect,
            replay_thinking: self.replay_thinking,
            tokens: self.tokens.clone(),
            system: self.system.clone(),
            is_folded: self.is_folded,
            folded: self.folded.clone(),
            tools: self.tools.clone(),
            known: self.known.clone(),
            messages: self.messages.clone(),
            tools_json: self.tools_json.clone(),
            n_messages: self.n_messages,
            n_sent: AtomicUsize::new(self.n_sent.load(Ordering::Relaxed)),
            last_user: self.last_user.clone(),
            ids: self.ids.clone(),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::Value;
    use serde_json::json;

    use super::*;
    use podbay_event::ToolCall;

    pub(in super::super) fn tools() -> Vec<ToolSpec> {
        vec![ToolSpec {
            name: "bash".into(),
            description: "Runs.".into(),
            parameters: json!({"type": "object", "properties": {}}),
        }]
    }

    pub(in super::super) fn body(prompt: &Prompt) -> Value {
        serde_json::from_str(&format!("{}]}}", prompt.head())).expect("a request is JSON")
    }

    pub(in super::super) fn result(text: &str) -> Message {
        Message::ToolResult {
            call: "c1".into(),
            name: "bash".into(),
            text: text.into(),
            is_error: false,
        }
    }

    pub(in super::super) fn call(arguments: &str) -> Message {
        let call = ToolCall {
            id: "c1".into(),
            name: "bash".into(),
            arguments: arguments.into(),
        };
        Message::Assistant {
            text: String::new(),
            thinking: "hm".into(),
            calls: vec![call],
            raw: None,
        }
    }

    #[test]
    fn a_native_conversation_follows_openais_format() {
        let mut prompt = Prompt::new("Be good.", &tools(), ToolMode::Native);
        for message in [
            Message::user("Hi"),
            call("{\"command\":\"ls\"}"),
            result("a.txt"),
            call("{\"command\":"),
            result("bad arguments"),
        ] {
            prompt.push(&message);
        }
        let calls = |arguments: &str| json!([{"id": "c1", "type": "function", "function": {"name": "bash", "arguments": arguments}}]);
        assert_eq!(
            body(&prompt),
            json!({
                "tools": [{"type": "function", "function": {"name": "bash", "description": "Runs.", "parameters": {"type": "object", "properties": {}}}}],
                "messages": [
                    {"role": "system", "content": "Be good."},
                    {"role": "user", "content": "Hi"},
                    {"role": "assistant", "content": "", "tool_calls": calls("{\"command\":\"ls\"}")},
                    {"role": "tool", "content": "a.txt", "tool_call_id": "c1", "name": "bash"},
                    {"role": "assistant", "content": "", "tool_calls": calls(native::INVALID)},
                    {"role": "tool", "content": "bad arguments", "tool_call_id": "c1", "name": "bash"},
                ],
            })
        );
    }

    #[test]
    fn a_constrained_conversation_has_only_texts_in_alternating_roles() {
        let mut prompt = Prompt::new("Be good.", &[], ToolMode::Constrained);
        for message in [
            Message::user("Hi"),
            call("{}"),
            result("a.txt"),
            Message::user("Wrap up."),
        ] {
            prompt.push(&message);
        }
        let system = "Be good.\n\n# How to answer\n\nEvery reply is one JSON object and nothing else.\nReply with {\"answer\": \"your text\"}.";
        assert_eq!(
            body(&prompt),
            json!({"messages": [
                {"role": "system", "content": system},
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": "{\"tool\": \"bash\", \"arguments\": {}}"},
                {"role": "user", "content": "Tool bash returned:\na.txt\n\nWrap up."},
            ]})
        );
    }

    #[test]
    fn a_system_prompt_may_be_part_of_the_first_user_message() {
        for mode in [ToolMode::Native, ToolMode::Constrained, ToolMode::Text] {
            let mut prompt = Prompt::new("Be good.", &tools(), mode).with_system_folded(true);
            prompt.push(&Message::user("Hi"));
            let again = prompt.rebuilt(mode, [&Message::user("Hi")]);
            assert_eq!(prompt.head(), again.head());
            let body = body(&prompt);
            let messages = body["messages"].as_array().expect("messages");
            let text = messages[0]["content"].as_str().expect("a text");
            assert_eq!((messages.len(), &messages[0]["role"]), (1, &json!("user")));
            assert!(
                text.starts_with("Be good.") && text.ends_with("\n\nHi"),
                "{text}"
            );
        }
        let mut prompt = Prompt::new("Be good.", &[], ToolMode::Native).with_system_folded(true);
        prompt.push(&Message::assistant("I was here."));
        assert_eq!(
            body(&prompt)["messages"][0],
            json!({"role": "user", "content": "Be good."})
        );
    }

    #[test]
    fn reasoning_is_sent_back_only_if_requested() {
        for wanted in [true, false] {
            let mut prompt = Prompt::new("", &[], ToolMode::Native).with_thinking_replayed(wanted);
            prompt.push(&call("{}"));
            assert_eq!(prompt.head().contains("reasoning_content"), wanted);
        }
    }
}
