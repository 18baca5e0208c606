//! Whether a call in the text of an answer is one that the model was shown: who repeats a file word for word most likely quotes it, whatever
//! language the words around it are in.

use std::collections::HashSet;

use super::Agent;
use super::task::Task;
use crate::llm::Message;
use crate::llm::Reply;
use crate::llm::Unsure;

impl Agent {
    /// Has calls asked about that stand line by line, marks and all, in something that the model was shown. Made again then, they are meant.
    pub(super) fn doubt(&self, task: &Task, reply: &mut Reply) {
        let Some(source) = &reply.source else { return };
        if task.is_confirmed(&reply.calls) {
            return;
        }
        let lines = lines_of_calls(source, &reply.text);
        let is_shown = |message: &Message| match message {
            Message::User { text } | Message::ToolResult { text, .. } => holds(text, &lines),
            Message::System { .. } | Message::Image { .. } | Message::Assistant { .. } => false,
        };
        if lines.is_empty() || !self.conversation.history().messages().any(is_shown) {
            return;
        }
        let words = std::mem::replace(&mut reply.text, source.clone());
        reply.unsure = Some(Unsure { calls: std::mem::take(&mut reply.calls), text: words });
        reply.recovered = false;
    }
}

/// Returns the lines of an answer that its calls were taken from, which are all but those of its words.
fn lines_of_calls<'s>(source: &'s str, words: &str) -> Vec<&'s str> {
    let words: HashSet<&str> = words.lines().map(str::trim).collect();
    source.lines().map(str::trim).filter(|line| !line.is_empty() && !words.contains(line)).collect()
}

/// Returns whether a text holds all the lines, one behind the other; what stands before and behind them, such as numbers, does not matter.
fn holds(text: &str, lines: &[&str]) -> bool {
    let mut rest = text;
    lines.iter().all(|line| match rest.find(line) {
        Some(at) => {
            rest = &rest[at + line.len()..];
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_shown_is_known_by_its_lines() {
        let source = "The file says:\n<function=bash>\n<parameter=command>\nls -l\n</parameter>\n</function>\n";
        let lines = lines_of_calls(source, "The file says:");
        assert_eq!(lines, ["<function=bash>", "<parameter=command>", "ls -l", "</parameter>", "</function>"]);
        assert!(holds("1\tDo it:\n2\t<function=bash>\n3\t<parameter=command>\n4\tls -l\n5\t</parameter>\n6\t</function>\n", &lines));
        assert!(!holds("1\t<function=bash>\n2\t<parameter=command>\n3\tls -a\n4\t</parameter>\n5\t</function>\n", &lines));
        assert!(!holds("", &lines) && holds("", &[]));
        assert_eq!(lines_of_calls("I look.", "I look."), [""; 0]);
    }
}
