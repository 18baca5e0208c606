//! What takes the place of older messages.

use std::fmt::Write;

use crate::llm::Message;
use crate::session::History;

/// Characters of one thing the person said that a summary repeats.
const SAID_MAX: usize = 2000;
/// Characters of one message in a transcript.
const LINE_MAX: usize = 400;
const DONE_MAX: usize = 40;

/// How the model is asked for its part.
pub(super) const ASK: &str = "The window is nearly full, so the messages above will be replaced by a summary that you write now. Say what the person \
                              wants; what was done and what came of it; what was found out, with exact names, paths and numbers; and what is to be \
                              done next. Write it for yourself, in plain sentences, without a preface. No tool can be called.";

/// Puts a summary together: what the person said and which files were changed is ours to say, the rest is the model's.
pub(super) fn compose(history: &History, words: Option<&str>) -> String {
    let mut text = String::from("Older messages were replaced by this summary.\n\nWhat the person said, in order:\n");
    for said in history.said() {
        let _ = writeln!(text, "- {}", cut(said.trim(), SAID_MAX));
    }
    if !history.touched().is_empty() {
        let _ = write!(text, "\nFiles changed so far: {}\n", history.touched().join(", "));
    }
    match words.map(str::trim).filter(|words| !words.is_empty()) {
        Some(words) => {
            let _ = write!(text, "\nWhat was done and what is next:\n{words}");
        }
        None => done(&mut text, history),
    }
    text
}

/// Lists the last calls and words: what can be said without the model.
fn done(text: &mut String, history: &History) {
    let mut lines: Vec<String> = Vec::new();
    for message in history.messages().rev() {
        match message {
            Message::Assistant { text, calls, .. } => {
                lines.extend(calls.iter().rev().map(|call| format!("called {} {}", call.name, cut(&call.arguments, 120))));
                if !text.trim().is_empty() {
                    lines.push(format!("said: {}", cut(text.trim(), LINE_MAX)));
                }
            }
            Message::ToolResult { is_error: true, text, .. } => lines.push(format!("that failed: {}", cut(text.trim(), 120))),
            Message::System { .. } | Message::User { .. } | Message::Image { .. } | Message::ToolResult { .. } => {}
        }
        if lines.len() >= DONE_MAX {
            break;
        }
    }
    if !lines.is_empty() {
        text.push_str("\nWhat you did last, in order:\n");
        for line in lines.iter().rev() {
            let _ = writeln!(text, "- {}", line.replace('\n', " "));
        }
    }
}

/// Writes a conversation as text of at most so many characters, the end of it where it is longer: for a summary of what no longer fits.
pub(super) fn transcript(history: &History, most: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut length = 0;
    for message in history.messages().rev() {
        let line = match message {
            Message::Image { text, .. } => format!("image: {text}\n"),
            Message::System { text } | Message::User { text } => format!("person: {}\n", cut(text.trim(), SAID_MAX)),
            Message::ToolResult { name, text, .. } => format!("result of {name}: {}\n", cut(text.trim(), LINE_MAX)),
            Message::Assistant { text, calls, .. } => {
                let mut line = format!("model: {}\n", cut(text.trim(), SAID_MAX));
                for call in calls {
                    let _ = writeln!(line, "call of {}: {}", call.name, cut(&call.arguments, LINE_MAX));
                }
                line
            }
        };
        length += line.len();
        if length > most {
            break;
        }
        lines.push(line);
    }
    lines.reverse();
    lines.concat()
}

/// Cuts a text in its middle.
fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let (head, tail) = (text.floor_char_boundary(most * 2 / 3), text.ceil_char_boundary(text.len() - most / 3));
    format!("{} […] {}", &text[..head], &text[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::ToolCall;

    fn history() -> History {
        let mut history = History::default();
        history.say("fix the test");
        let call = ToolCall { id: "a".into(), name: "write_file".into(), arguments: r#"{"path":"x.txt"}"#.into() };
        history.push(Message::Assistant { text: "I write.".into(), thinking: String::new(), calls: vec![call], raw: None });
        history.push(Message::ToolResult { call: "a".into(), name: "write_file".into(), text: "é".repeat(900), is_error: false });
        history.say("and the other one");
        history
    }

    #[test]
    fn what_the_person_said_and_the_files_are_in_every_summary() {
        for words in [None, Some("  "), Some("I wrote x.txt.")] {
            let text = compose(&history(), words);
            for part in ["- fix the test\n- and the other one", "Files changed so far: x.txt"] {
                assert!(text.contains(part), "{text}");
            }
        }
        assert!(compose(&history(), None).contains("- said: I write.\n- called write_file"), "{}", compose(&history(), None));
        assert!(compose(&history(), Some("I wrote.")).ends_with("\nI wrote."));
    }

    #[test]
    fn a_transcript_keeps_the_end_and_its_bound() {
        let all = transcript(&history(), 10_000);
        assert!(all.starts_with("person: fix") && all.contains("[…]") && all.len() < 1000, "{all}");
        assert_eq!(transcript(&history(), 40), "person: and the other one\n");
    }
}
