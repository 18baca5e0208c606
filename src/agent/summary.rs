//! Composes the summary that replaces older messages.

use std::fmt::Write;

use podbay_llm::Message;
use podbay_session::History;

/// Minimum characters of each user message quoted in a summary when not all fit.
const SAID_MIN: usize = 80;
/// Maximum characters of a text message in a transcript.
const SAID_MAX: usize = 2000;
/// Maximum characters of other messages in a transcript.
const LINE_MAX: usize = 400;
const DONE_MAX: usize = 40;
/// Maximum number of open tasks listed.
const TO_DO_MAX: usize = 20;
/// Total bytes of user messages that every summary can quote completely.
const SAID_WHOLE: usize = 1000;

/// The request for the model's part.
const ASK: &str = "To make room, the messages above will be replaced by a summary that you write now. Say what the user wants; what was \
                   done and what came of it; what was found out, with exact names, paths and numbers; and what is to be done next. Write \
                   it for yourself, in plain sentences, without a preface. No tool can be called.";

/// The beginning of a summary.
const HEAD: &str = "Older messages were replaced by this summary.";
/// Precedes the list of what was done.
const DONE: &str = "What you did last, in order:\n";
/// The beginning of a notice from Podbay to the model.
pub(super) const NOTE: &str = "Note from Podbay:";

/// Returns the request for the model's part; `focus` is what the user wants to keep above all, or
/// empty.
pub(super) fn ask(focus: &str) -> String {
    match focus.trim() {
        "" => ASK.to_owned(),
        focus => format!("{ASK} Above all keep what is about this: {focus}"),
    }
}

/// What a summary is composed of besides the conversation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SummaryInput<'a> {
    /// The model's part.
    pub(super) words: Option<&'a str>,
    /// The id of the artifact with all user messages.
    pub(super) said: Option<&'a str>,
    /// Open tasks, if the model did not write its part.
    pub(super) to_do: &'a [String],
}

/// Returns all user messages if they are too long for any summary.
pub(super) fn said_whole(history: &History) -> Option<String> {
    let said = history.said();
    let n_bytes: usize = said.iter().map(String::len).sum();
    (n_bytes > SAID_WHOLE).then(|| {
        said.iter()
            .map(|words| format!("- {}\n", words.trim()))
            .collect()
    })
}

/// Composes a summary of at most `most` bytes, except for a necessary minimum: user messages and
/// changed files are listed by us, the rest is the model's.
pub(super) fn compose(history: &History, parts: &SummaryInput<'_>, most: usize) -> String {
    let files = cut(&history.touched().join(", "), most / 8);
    let read = read(history, most / 16);
    let (what, done) = match parts.words.map(str::trim).filter(|words| !words.is_empty()) {
        Some(words) => ("What was done and what is next:\n", words.to_owned()),
        None => (DONE, done(history)),
    };
    // A part that needs less than half leaves the rest to the other.
    let (whole, room) = (
        said(history.said(), usize::MAX),
        most.saturating_sub(files.len() + read.len()),
    );
    let said = if whole.len() > room / 2 {
        said(
            history.said(),
            room.saturating_sub(done.len()).max(room / 2),
        )
    } else {
        whole
    };
    let done = cut(&done, room.saturating_sub(said.len()));
    let to_do: String = parts
        .to_do
        .iter()
        .take(TO_DO_MAX)
        .map(|task| format!("\n- {}", cut(task.trim(), SAID_MIN)))
        .collect();
    let whole = parts.said.map_or_else(String::new, |id| {
        format!("read_file with path \"artifact:{id}\" shows it")
    });
    let mut text = format!("{HEAD}\n\nWhat the user said, in order:\n{said}");
    for (what, words) in [
        ("All that the user said, uncut: ", whole),
        ("Files changed so far: ", files),
        ("Files read: ", read),
        (what, done),
        ("Still to do, by your list of tasks:", to_do),
    ] {
        if !words.is_empty() {
            let _ = write!(text, "\n{what}{words}\n");
        }
    }
    text.truncate(text.trim_end().len());
    text
}

/// Lists the files that were read and not changed in at most `most` bytes, the latest first.
fn read(history: &History, most: usize) -> String {
    let read: Vec<&str> = history
        .read()
        .filter(|path| !history.touched().iter().any(|touched| touched == path))
        .collect();
    let mut n_bytes = 0;
    let fits = |path: &&&str| {
        n_bytes += path.len() + ", ".len();
        n_bytes <= most
    };
    let n_shown = read.iter().rev().take_while(fits).count();
    read[read.len() - n_shown..].join(", ")
}

/// Lists the user messages in at most `most` bytes: the longest are truncated, then those in the
/// middle dropped. The last one is the current task, and gets up to half.
fn said(said: &[String], most: usize) -> String {
    let Some((last, earlier)) = said.split_last() else {
        return String::new();
    };
    let size = |words: &String| words.trim().len() + "- \n".len();
    let line = |words: &str, most: usize| {
        format!(
            "- {}\n",
            cut(
                words.trim(),
                most.saturating_sub("- \n".len()).max(SAID_MIN)
            )
        )
    };
    let room = most - size(last).min(most / 2);
    let each = level(earlier.iter().map(size).collect(), room);
    let n_shown = if each < SAID_MIN {
        (room / (SAID_MIN + 4)).max(1)
    } else {
        earlier.len()
    };
    let n_left_out = earlier.len().saturating_sub(n_shown);
    let mut text = String::new();
    for (at, words) in earlier.iter().enumerate() {
        // The first message started everything.
        if at == 0 || at > n_left_out {
            text.push_str(&line(words, each));
        } else if at == 1 {
            let _ = writeln!(text, "- [{n_left_out} more]");
        }
    }
    text.push_str(&line(last, most.saturating_sub(text.len())));
    text
}

/// Returns the maximum length of each so that all of them fit.
fn level(mut lengths: Vec<usize>, mut room: usize) -> usize {
    lengths.sort_unstable();
    for (at, length) in lengths.iter().enumerate() {
        let share = room / (lengths.len() - at);
        if *length > share {
            return share;
        }
        room -= length;
    }
    usize::MAX
}

/// Lists the last calls and messages: what can be said without the model.
fn done(history: &History) -> String {
    let mut lines: Vec<String> = Vec::new();
    for message in history.messages().rev() {
        match message {
            Message::Assistant { text, calls, .. } => {
                lines.extend(
                    calls
                        .iter()
                        .rev()
                        .map(|call| format!("called {} {}", call.name, cut(&call.arguments, 120))),
                );
                if !text.trim().is_empty() {
                    lines.push(format!("said: {}", cut(text.trim(), LINE_MAX)));
                }
            }
            Message::ToolResult {
                is_error: true,
                text,
                ..
            } => lines.push(format!("that failed: {}", cut(text.trim(), 120))),
            Message::System { .. }
            | Message::User { .. }
            | Message::Image { .. }
            | Message::ToolResult { .. } => {}
        }
        if lines.len() >= DONE_MAX {
            break;
        }
    }
    let mut text = String::new();
    for line in lines.iter().rev() {
        let _ = writeln!(text, "- {}", line.replace('\n', " "));
    }
    text
}

/// Writes a conversation as text of at most `most` characters, keeping its end: the input for a
/// summary of what no longer fits.
pub(super) fn transcript(history: &History, most: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut length = 0;
    // A few long results are then the main content.
    let each = (most / history.messages().count().max(1)).max(LINE_MAX);
    for message in history.messages().rev() {
        let line = match message {
            Message::Image { text, .. } => format!("image: {text}\n"),
            Message::System { text } | Message::User { text } => {
                format!("person: {}\n", cut(text.trim(), SAID_MAX))
            }
            Message::ToolResult { name, text, .. } => {
                format!("result of {name}: {}\n", cut(text.trim(), each))
            }
            Message::Assistant { text, calls, .. } => {
                let mut line = format!("model: {}\n", cut(text.trim(), SAID_MAX));
                for call in calls {
                    let _ = writeln!(
                        line,
                        "call of {}: {}",
                        call.name,
                        cut(&call.arguments, LINE_MAX)
                    );
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

/// Truncates a text in its middle.
fn cut(text: &str, most: usize) -> String {
    const GAP: &str = " […] ";
    if text.len() <= most {
        return text.to_owned();
    }
    let most = most.saturating_sub(GAP.len());
    let (head, tail) = (
        text.floor_char_boundary(most * 2 / 3),
        text.ceil_char_boundary(text.len() - most / 3),
    );
    format!("{}{GAP}{}", &text[..head], &text[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use podbay_event::ToolCall;

    fn history() -> History {
        let mut history = History::default();
        history.say("fix the test");
        let call = ToolCall {
            id: "a".into(),
            name: "write_file".into(),
            arguments: r#"{"path":"x.txt"}"#.into(),
        };
        history.push(Message::Assistant {
            text: "I write.".into(),
            thinking: String::new(),
            calls: vec![call],
            raw: None,
        });
        history.push(Message::ToolResult {
            call: "a".into(),
            name: "write_file".into(),
            text: "é".repeat(900),
            is_error: false,
        });
        history.say("and the other one");
        history
    }

    fn composed(history: &History, words: Option<&str>, most: usize) -> String {
        compose(
            history,
            &SummaryInput {
                words,
                ..SummaryInput::default()
            },
            most,
        )
    }

    #[test]
    fn summaries_refer_to_all_messages_and_open_tasks() {
        let to_do = ["write the test".to_owned(), "x".repeat(500)];
        let text = compose(
            &history(),
            &SummaryInput {
                words: None,
                said: Some("said_2"),
                to_do: &to_do,
            },
            usize::MAX,
        );
        assert!(
            text.contains("path \"artifact:said_2\" shows it\n")
                && text.contains("list of tasks:\n- write the test\n- xxx"),
            "{text}"
        );
        assert!(text.len() < 1000, "{text}");
        assert_eq!(said_whole(&history()), None, "it stands in every summary");
        let mut talk = history();
        talk.say(&"word ".repeat(500));
        let whole = said_whole(&talk).expect("it is long");
        assert!(
            whole.starts_with("- fix the test\n- and the other one\n- word word")
                && whole.len() > 2500,
            "{whole}"
        );
    }

    #[test]
    fn user_messages_and_files_are_in_every_summary() {
        for words in [None, Some("  "), Some("I wrote x.txt.")] {
            let text = composed(&history(), words, usize::MAX);
            for part in [
                "- fix the test\n- and the other one",
                "Files changed so far: x.txt",
            ] {
                assert!(text.contains(part), "{text}");
            }
        }
        let own = composed(&history(), None, usize::MAX);
        assert!(
            own.contains("- said: I write.\n- called write_file"),
            "{own}"
        );
        assert!(composed(&history(), Some("I wrote."), usize::MAX).ends_with("\nI wrote."));
    }

    #[test]
    fn files_read_are_listed_the_latest_first_if_space_is_short() {
        let mut history = history();
        for (n, path) in ["old.rs", "x.txt", "new.rs", "old.rs"].iter().enumerate() {
            let (id, arguments) = (
                format!("r{n}"),
                serde_json::json!({ "path": path }).to_string(),
            );
            let call = ToolCall {
                id: id.clone(),
                name: "read_file".into(),
                arguments,
            };
            history.push(Message::Assistant {
                text: String::new(),
                thinking: String::new(),
                calls: vec![call],
                raw: None,
            });
            history.push(Message::ToolResult {
                call: id,
                name: "read_file".into(),
                text: "text".into(),
                is_error: false,
            });
        }
        let text = composed(&history, None, usize::MAX);
        assert!(
            text.contains("Files changed so far: x.txt\n\nFiles read: new.rs, old.rs\n"),
            "{text}"
        );
        assert!(composed(&history, None, 16 * 10).contains("Files read: old.rs\n"));
        assert!(!composed(&history, None, 0).contains("Files read"));
    }

    #[test]
    fn a_long_task_gets_the_space_left_or_half_of_it() {
        let task = format!(
            "{} THE MIDDLE {}",
            "first ".repeat(600),
            "second ".repeat(600)
        );
        let mut talk = history();
        talk.say(&task);
        let text = composed(&talk, Some("I wrote."), 40_000);
        assert!(
            text.contains(&format!("- and the other one\n- {}\n", task.trim())),
            "{text}"
        );
        (0..20).for_each(|n| talk.say(&format!("{n}: {}", "word ".repeat(40))));
        talk.say(&task);
        let text = composed(&talk, Some(&"done ".repeat(4000)), 16_000);
        let (_, last) = text.rsplit_once("\n- first").expect("the task is there");
        let last = last.split_once('\n').expect("it has an end").0;
        assert!(
            (3500..8100).contains(&last.len()) && text.len() < 16_400,
            "{} {}",
            last.len(),
            text.len()
        );
        assert!(
            text.contains("- fix the test\n- and the other one\n"),
            "what is short stays whole: {text}"
        );
    }

    #[test]
    fn a_summary_is_bounded_and_long_parts_yield_to_short_ones() {
        let long = "éa".repeat(20_000);
        let text = composed(&history(), Some(&long), 600);
        assert!(
            text.len() < 800
                && text.contains("- fix the test\n- and the other one")
                && text.contains("x.txt"),
            "{text}"
        );
        let mut talk = History::default();
        (0..100).for_each(|n| talk.say(&format!("{n}: {}", "word ".repeat(100))));
        let text = composed(&talk, Some("I wrote."), 4000);
        assert!(
            text.len() < 4200 && text.contains("- 0: word") && text.contains("- 99: word"),
            "{text}"
        );
        assert!(
            text.contains("more]\n") && text.ends_with("I wrote."),
            "{text}"
        );
        let text = composed(&talk, Some(&long), 40_000);
        assert!(
            (30_000..40_200).contains(&text.len()) && text.contains("- 50: word"),
            "{}",
            text.len()
        );
        assert!(composed(&talk, Some(&long), 0).len() < 500);
    }

    #[test]
    fn a_transcript_keeps_the_end_and_its_bound() {
        let all = transcript(&history(), 2_000);
        assert!(
            all.starts_with("person: fix") && all.contains("[…]") && all.len() < 1000,
            "{all}"
        );
        let all = transcript(&history(), 10_000);
        assert!(
            all.starts_with("person: fix") && !all.contains("[…]"),
            "a result has the room that there is: {all}"
        );
        assert_eq!(transcript(&history(), 40), "person: and the other one\n");
    }
}
