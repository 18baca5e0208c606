use std::fmt::Write as _;
use std::io;
use std::io::Write;
use std::time::Duration;

use serde_json::Value;
use sha2::Digest;
use sha2::Sha256;
use tokio_util::sync::CancellationToken;

use crate::event::Answer;
use crate::event::Answered;
use crate::event::Asked;
use crate::event::Capability;
use crate::event::Lasting;

use super::Keyboard;
use super::Paint;
use super::Typed;
use super::look_alike::unmask;
use super::text;

/// Keys that were on their way before the question was read are no answer to it.
pub(super) const GUARD: Duration = Duration::from_millis(300);
/// What is larger than this is shown in part, and can only be allowed once.
const WHOLE_MAX: usize = 100_000;
const LINES_MAX: usize = 200;
const HEAD: usize = 40;
const TAIL: usize = 20;
const CHARS_MAX: usize = 4000;
const FIELDS_MAX: usize = 40;
/// Longest form of what an answer that lasts would be about: all of it stands above.
const WHAT_MAX: usize = 300;
/// Most characters of a reason; whoever has more to say says it in a message.
const REASON_MAX: usize = 2000;
/// What goes into files is text of any script: nothing is started by its look.
const PROSE: [&str; 8] = ["content", "contents", "old_string", "new_string", "edits", "patch", "diff", "text"];
/// A held key must not scroll the question away.
pub(super) const TRIES: usize = 20;

/// A call that a person is asked about.
#[derive(Clone, Debug)]
pub struct Question {
    pub tool: String,
    /// JSON text, as it will be carried out.
    pub arguments: String,
    pub capabilities: Vec<Capability>,
    /// For how long a yes may hold.
    pub lasting: Lasting,
}

impl From<&Asked> for Question {
    fn from(asked: &Asked) -> Self {
        let Asked { call, capabilities, lasting } = asked;
        let (tool, arguments) = (call.name.clone(), call.arguments.clone());
        Self { tool, arguments, capabilities: capabilities.clone(), lasting: lasting.clone() }
    }
}

impl Question {
    /// Renders the question. Every character of the arguments is visible, or it is said how much is not.
    pub fn render(&self, paint: Paint) -> String {
        let mut out = String::new();
        writeln!(out, "The agent wants to use {}:", paint.bold(&text::line(&unmask(&self.tool)))).expect(TAKES_ALL);
        match serde_json::from_str::<Value>(&self.arguments) {
            Ok(Value::Object(fields)) if fields.len() <= FIELDS_MAX => {
                for (key, value) in &fields {
                    if PROSE.contains(&key.as_str()) {
                        field(&mut out, &text::line(key), value);
                    } else {
                        field(&mut out, &text::line(&unmask(key)), &unmasked(value));
                    }
                }
            }
            _ => block(&mut out, &self.arguments),
        }
        if self.is_large() {
            let hash: String = Sha256::digest(self.arguments.as_bytes()).iter().take(8).fold(String::new(), |mut hash, byte| {
                write!(hash, "{byte:02x}").expect(TAKES_ALL);
                hash
            });
            writeln!(out, "  {} bytes in all, SHA-256 {hash}…", self.arguments.len()).expect(TAKES_ALL);
        }
        let needs: Vec<String> = self.capabilities.iter().map(describe).collect();
        if !needs.is_empty() {
            writeln!(out, "It would {}.", needs.join(", and ")).expect(TAKES_ALL);
        }
        if self.hides() {
            writeln!(out, "{}", paint.warn("Careful: it holds hidden characters, shown here by number.")).expect(TAKES_ALL);
        }
        if self.pretends() {
            writeln!(out, "{}", paint.warn("Careful: it holds letters that only look like others, shown here by number."))
                .expect(TAKES_ALL);
        }
        out
    }

    /// Returns the answers there are, each with its key.
    fn choices(&self) -> String {
        let mut out = String::from("y = yes, once");
        if self.may_last() {
            out.push_str("  a = yes, until the session ends");
        }
        if self.may_be_kept() {
            out.push_str("  p = yes, always in this project");
        }
        out.push_str("\nn = no  n WHY = no, and the agent reads why  d = no, until the session ends  q = no, and quit\n");
        match &self.lasting {
            Lasting::Exactly { what, .. } if self.may_last() => {
                let keys = if self.may_be_kept() { "a and p hold" } else { "a holds" };
                writeln!(out, "{keys} for exactly this: {}", cut_to(&text::line(&unmask(what)), WHAT_MAX)).expect(TAKES_ALL);
            }
            Lasting::Once { because } => {
                writeln!(out, "It can only be allowed once: {}.", cut_to(&text::line(because), WHAT_MAX)).expect(TAKES_ALL);
            }
            Lasting::Exactly { .. } => {}
        }
        out
    }

    fn may_last(&self) -> bool {
        !self.is_large() && matches!(self.lasting, Lasting::Exactly { .. })
    }

    fn may_be_kept(&self) -> bool {
        self.may_last() && matches!(self.lasting, Lasting::Exactly { always: true, .. })
    }

    fn is_large(&self) -> bool {
        self.arguments.len() > WHOLE_MAX
    }

    fn pretends(&self) -> bool {
        let pretends = |text: &str| unmask(text) != text;
        let inside = match serde_json::from_str::<Value>(&self.arguments) {
            Ok(Value::Object(fields)) => {
                fields.iter().any(|(key, value)| !PROSE.contains(&key.as_str()) && (pretends(key) || pretends(&text_of(value))))
            }
            _ => false,
        };
        inside || pretends(&self.tool)
    }

    fn hides(&self) -> bool {
        let decoded = |value: &Value| text_of(value).chars().any(text::is_suspect);
        let inside = match serde_json::from_str::<Value>(&self.arguments) {
            Ok(Value::Object(fields)) => fields.iter().any(|(key, value)| key.chars().any(text::is_suspect) || decoded(value)),
            _ => false,
        };
        inside || self.arguments.chars().any(text::is_suspect) || self.tool.chars().any(text::is_suspect)
    }
}

/// Asks a person about one call.
///
/// Without a terminal, and at the end of input, the answer is no. `None` means that the question was withdrawn. What was typed before the
/// question could be read is thrown away.
pub async fn ask(
    question: &Question,
    keyboard: &Keyboard,
    err: &mut impl Write,
    paint: Paint,
    cancel: &CancellationToken,
) -> Option<Answered> {
    if !keyboard.is_terminal() {
        let _ = writeln!(err, "{}denied: there is no terminal to ask at", question.render(paint));
        return Some(Answer::Deny.into());
    }
    if write!(err, "\n{}{}", question.render(paint), question.choices()).is_err() {
        // A question that cannot be read cannot be answered.
        return Some(Answer::Deny.into());
    }
    for _ in 0..TRIES {
        if write!(err, "Allow it? ").and_then(|()| err.flush()).is_err() {
            return Some(Answer::Deny.into());
        }
        tokio::select! {
            () = cancel.cancelled() => return withdrawn(err),
            () = tokio::time::sleep(GUARD) => {}
        }
        keyboard.discard();
        match keyboard.line(cancel).await {
            Typed::Line(line) => match parse(&line) {
                Some(Answered { answer: Answer::AllowSession | Answer::AllowAlways, .. }) if !question.may_last() => {
                    let why =
                        if question.is_large() { "This is too large to allow more than once." } else { "It can only be allowed once." };
                    let _ = writeln!(err, "{why}");
                }
                Some(Answered { answer: Answer::AllowAlways, .. }) if !question.may_be_kept() => {
                    let _ = writeln!(err, "No answer can be kept for this project; a = until the session ends.");
                }
                Some(answered) => return Some(answered),
                None => {
                    let _ = writeln!(err, "Please type one of the letters above, then Enter.");
                }
            },
            Typed::End => return Some(deny(err, "denied: the input ended").into()),
            Typed::Cancelled => return withdrawn(err),
        }
    }
    Some(deny(err, "denied: no answer").into())
}

const TAKES_ALL: &str = "a string takes all that is written";

fn withdrawn(err: &mut impl Write) -> Option<Answered> {
    let _: io::Result<()> = writeln!(err, "\n(the question is withdrawn)");
    None
}

fn deny(err: &mut impl Write, why: &str) -> Answer {
    let _: io::Result<()> = writeln!(err, "\n{why}");
    Answer::Deny
}

/// Reads an answer: a letter or a word, and behind a no the reason for it.
fn parse(line: &str) -> Option<Answered> {
    let line = line.trim();
    let end = line.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(line.len());
    let (word, rest) = line.split_at(end);
    let reason = rest.trim_start_matches([',', ':', ';', '.']).trim();
    let answer = match word.to_ascii_lowercase().as_str() {
        "n" | "no" if !reason.is_empty() => {
            let reason = reason.chars().take(REASON_MAX).collect();
            return Some(Answered { answer: Answer::Deny, reason: Some(reason) });
        }
        // Whoever says more than yes may mean less than that.
        _ if !reason.is_empty() => return None,
        "y" | "yes" => Answer::Allow,
        "a" => Answer::AllowSession,
        "p" | "always" => Answer::AllowAlways,
        "n" | "no" => Answer::Deny,
        "d" => Answer::DenySession,
        "q" | "quit" => Answer::Quit,
        _ => return None,
    };
    Some(answer.into())
}

fn describe(capability: &Capability) -> String {
    match capability {
        // A name that only looks like a well-known one must not look so here.
        Capability::Network { host } => Capability::Network { host: text::ascii(host) }.describe(),
        other => text::line(&other.describe()),
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => {
            let mut all = String::new();
            collect(other, &mut all);
            all
        }
    }
}

/// Gathers the decoded strings inside of a value: in its JSON text hidden characters may stand escaped.
fn collect(value: &Value, all: &mut String) {
    match value {
        Value::String(text) => all.push_str(text),
        Value::Array(values) => values.iter().for_each(|value| collect(value, all)),
        Value::Object(fields) => {
            for (key, value) in fields {
                all.push_str(key);
                collect(value, all);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns a value in which no letter passes for another.
fn unmasked(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(unmask(text)),
        Value::Array(values) => values.iter().map(unmasked).collect(),
        Value::Object(fields) => fields.iter().map(|(key, value)| (unmask(key), unmasked(value))).collect(),
        other => other.clone(),
    }
}

fn field(out: &mut String, key: &str, value: &Value) {
    match value {
        Value::String(text) if text.contains('\n') => {
            writeln!(out, "  {key}:").expect(TAKES_ALL);
            block(out, text);
        }
        Value::String(text) => writeln!(out, "  {key}: {}", cut(&text::escape(text))).expect(TAKES_ALL),
        other => writeln!(out, "  {key}: {}", cut(&text::line(&other.to_string()))).expect(TAKES_ALL),
    }
}

/// Shows text with a bar before each line, so that no line of it can pass for one of ours.
fn block(out: &mut String, content: &str) {
    let escaped = text::escape(content);
    let lines: Vec<&str> = escaped.split('\n').collect();
    let mut show = |lines: &[&str]| {
        for line in lines {
            writeln!(out, "    | {}", cut(line)).expect(TAKES_ALL);
        }
    };
    if lines.len() <= LINES_MAX {
        show(&lines);
        return;
    }
    let (head, rest) = lines.split_at(HEAD);
    let (middle, tail) = rest.split_at(rest.len() - TAIL);
    show(head);
    let hidden: usize = middle.iter().map(|line| line.len() + 1).sum();
    show(&[&format!("… {} lines ({hidden} bytes) are not shown …", middle.len())]);
    show(tail);
}

fn cut_to(line: &str, most: usize) -> String {
    let cut = line.char_indices().nth(most).map(|(end, _)| format!("{}…", &line[..end]));
    cut.unwrap_or_else(|| line.to_owned())
}

fn cut(line: &str) -> String {
    let n_chars = line.chars().count();
    if n_chars <= CHARS_MAX {
        return line.to_owned();
    }
    let head: String = line.chars().take(CHARS_MAX / 2).collect();
    let tail: String = line.chars().skip(n_chars - CHARS_MAX / 4).collect();
    format!("{head} … {} characters are not shown … {tail}", n_chars - CHARS_MAX / 2 - CHARS_MAX / 4)
}
