use std::fmt::Write as _;
use std::io;
use std::io::Write;
use std::time::Duration;

use serde_json::Value;
use sha2::Digest;
use sha2::Sha256;
use tokio_util::sync::CancellationToken;

use crate::event::Answer;
use crate::event::Capability;

use super::Keyboard;
use super::Paint;
use super::Typed;
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
/// A held key must not scroll the question away.
pub(super) const TRIES: usize = 20;

/// A call that a person is asked about.
#[derive(Clone, Debug)]
pub struct Question {
    pub tool: String,
    /// JSON text, as it will be carried out.
    pub arguments: String,
    pub capabilities: Vec<Capability>,
}

impl Question {
    /// Renders the question. Every character of the arguments is visible, or it is said how much is not.
    pub fn render(&self, paint: Paint) -> String {
        let mut out = String::new();
        writeln!(out, "The agent wants to use {}:", paint.bold(&text::line(&self.tool))).expect(TAKES_ALL);
        match serde_json::from_str::<Value>(&self.arguments) {
            Ok(Value::Object(fields)) if fields.len() <= FIELDS_MAX => {
                for (key, value) in &fields {
                    field(&mut out, &text::line(key), value);
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
        out
    }

    fn is_large(&self) -> bool {
        self.arguments.len() > WHOLE_MAX
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
) -> Option<Answer> {
    if !keyboard.is_terminal() {
        let _ = writeln!(err, "{}denied: there is no terminal to ask at", question.render(paint));
        return Some(Answer::Deny);
    }
    let always = if question.is_large() { "" } else { "  a = yes, until the session ends" };
    let choices = format!("y = yes, once{always}  n = no  q = no, and quit");
    if write!(err, "\n{}{choices}\n", question.render(paint)).is_err() {
        // A question that cannot be read cannot be answered.
        return Some(Answer::Deny);
    }
    for _ in 0..TRIES {
        if write!(err, "Allow it? ").and_then(|()| err.flush()).is_err() {
            return Some(Answer::Deny);
        }
        tokio::select! {
            () = cancel.cancelled() => return withdrawn(err),
            () = tokio::time::sleep(GUARD) => {}
        }
        keyboard.discard();
        match keyboard.line(cancel).await {
            Typed::Line(line) => match parse(&line) {
                Some(Answer::AllowSession) if question.is_large() => {
                    let _ = writeln!(err, "This is too large to allow more than once.");
                }
                Some(answer) => return Some(answer),
                None => {
                    let _ = writeln!(err, "Please type y, n{} or q, then Enter.", if question.is_large() { "" } else { ", a" });
                }
            },
            Typed::End => return Some(deny(err, "denied: the input ended")),
            Typed::Cancelled => return withdrawn(err),
        }
    }
    Some(deny(err, "denied: no answer"))
}

const TAKES_ALL: &str = "a string takes all that is written";

fn withdrawn(err: &mut impl Write) -> Option<Answer> {
    let _: io::Result<()> = writeln!(err, "\n(the question is withdrawn)");
    None
}

fn deny(err: &mut impl Write, why: &str) -> Answer {
    let _: io::Result<()> = writeln!(err, "\n{why}");
    Answer::Deny
}

fn parse(line: &str) -> Option<Answer> {
    match line.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Some(Answer::Allow),
        "a" | "always" => Some(Answer::AllowSession),
        "n" | "no" => Some(Answer::Deny),
        "q" | "quit" => Some(Answer::Quit),
        _ => None,
    }
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

fn cut(line: &str) -> String {
    let n_chars = line.chars().count();
    if n_chars <= CHARS_MAX {
        return line.to_owned();
    }
    let head: String = line.chars().take(CHARS_MAX / 2).collect();
    let tail: String = line.chars().skip(n_chars - CHARS_MAX / 4).collect();
    format!("{head} … {} characters are not shown … {tail}", n_chars - CHARS_MAX / 2 - CHARS_MAX / 4)
}
