//! Whether a call in the text of an answer is one that the model was shown: who repeats what a file says most likely quotes it, whatever
//! language the words around it are in. And whether it is only shown in the answer, by words that came in a piece before it.

use std::collections::HashSet;

use serde_json::Value;

use super::Agent;
use super::alike::Sought;
use super::dense::Dense;
use super::meant::means;
use super::pieces::ends_in_block;
use super::summary::foreign;
use super::task::Task;
use podbay_event::Kind;
use podbay_event::ToolCall;
use podbay_llm as llm;
use podbay_llm::Message;
use podbay_llm::Reply;
use podbay_llm::Unsure;
use podbay_llm::shown;

impl Agent {
    /// Has calls asked about that stand in something which the model was shown or wrote into a file or a command, however they are written there, or that the pieces of the answer
    /// before this one only show, or that the server tells of although they were made before. Made again then, they are meant, and so they are
    /// wherever they come again later in the task.
    pub(super) fn doubt(&self, task: &mut Task, reply: &mut Reply) {
        if self.is_confirmed(task, &reply.calls) {
            task.meant.extend(reply.calls.iter().map(|call| self.meaning(call)));
            return;
        }
        let Some(source) = &reply.source else { return };
        if reply.calls.is_empty() {
            return;
        }
        let was_meant = reply.calls.iter().all(|call| task.meant.contains(&self.meaning(call))) && means(source, reply);
        let is_by_pieces = self.is_shown_by_pieces(task, source, reply);
        if !is_by_pieces && !self.is_told_again(reply) && (was_meant || !self.is_shown(source, reply)) {
            return;
        }
        let words = std::mem::replace(&mut reply.text, source.clone());
        reply.unsure = Some(Unsure { calls: std::mem::take(&mut reply.calls), text: words, is_shown: !is_by_pieces });
        reply.recovered = false;
    }

    /// Returns whether calls of an answer that do more than look stand in something that the model was shown, or wrote itself into a file or a
    /// command. What the person asked for in other words is meant.
    fn is_shown(&self, source: &str, reply: &Reply) -> bool {
        let catalogue = &self.pipeline.catalogue;
        let calls: Vec<&ToolCall> = reply.calls.iter().filter(|call| !catalogue.only_looks(&call.name, &call.arguments)).collect();
        if calls.is_empty() {
            return false;
        }
        let lines = lines_of_calls(source, &reply.text);
        let sought: Vec<Option<Sought>> = calls.iter().map(|call| Sought::of(catalogue, call)).collect();
        let said: Vec<Dense> = self.conversation.history().said().iter().map(|text| Dense::new(text)).collect();
        let is_asked_for =
            |sought: &Sought| said.iter().any(|said| sought.is_asked_for_in(said)) && !said.iter().any(|said| sought.is_in(said));
        if sought.iter().all(|sought| sought.as_ref().is_some_and(is_asked_for)) {
            return false;
        }
        let shows = |text: &str| {
            let dense = Dense::new(text);
            self.shows(text, &dense, &calls, &lines) || sought.iter().flatten().any(|call| call.is_in(&dense))
        };
        self.conversation.history().messages().any(|message| match message {
            Message::User { text } => shows(&foreign(text)),
            Message::ToolResult { text, .. } => shows(text),
            // What it wrote into a file it may well repeat.
            Message::Assistant { calls, .. } => calls.iter().flat_map(|call| shown::written(&call.arguments)).any(|text| shows(&text)),
            Message::System { .. } | Message::Image { .. } => false,
        })
    }

    /// Notes the question about the last answer where the process ended before that was written down: else its calls would be forgotten.
    pub(super) fn recall_question(&mut self) {
        let is_known = !self.open.asked.is_empty() || !self.open.pieces.is_empty() || self.open.half.is_some();
        let last = self.conversation.history().messages().next_back();
        let Some(Message::Assistant { text, calls, raw, .. }) = last.filter(|_| !is_known) else { return };
        // An object of ours says itself what is the answer in it.
        if !calls.is_empty() || raw.as_ref().is_some_and(|raw| raw.trim_start().starts_with('{')) {
            return;
        }
        let parsed = llm::text::parse(text, self.conversation.prompt().known(), None);
        let found = parsed.calls.into_iter().chain(parsed.mentions.into_iter().flat_map(|mention| mention.calls));
        let asked = |(call, n): (llm::text::Call, u32)| ToolCall { id: format!("asked_{n}"), name: call.name, arguments: call.arguments };
        let asked: Vec<ToolCall> = found.zip(1..).map(asked).collect();
        if !asked.is_empty() {
            self.open.answer = Some(text.clone());
            self.open.n_asked += 1;
            self.open.asked = asked;
            self.emit(Kind::AnswerOpen(self.open.clone()));
        }
    }

    /// Returns whether calls are none where the text that they were taken from goes on with the pieces of the answer before: in a block of code
    /// that began there, or behind words that show them.
    fn is_shown_by_pieces(&self, task: &Task, source: &str, reply: &Reply) -> bool {
        if task.open.pieces.is_empty() {
            return false;
        }
        let pieces = task.open.pieces.concat();
        let whole = llm::text::parse(&(pieces.clone() + source), self.conversation.prompt().known(), None);
        let is_made = |call: &ToolCall| whole.calls.iter().any(|made| made.name == call.name && made.arguments == call.arguments);
        ends_in_block(&pieces) || llm::text::only_shows(&(pieces + &reply.text)) || !reply.calls.iter().all(is_made)
    }

    /// Returns whether a call of what the server could not read was made before: it may speak of the conversation, and not of this answer.
    fn is_told_again(&self, reply: &Reply) -> bool {
        let told: HashSet<String> = reply.calls.iter().filter(|_| reply.is_of_failure).map(|call| self.meaning(call)).collect();
        !told.is_empty()
            && self.conversation.history().messages().any(|message| match message {
                Message::Assistant { calls, .. } => calls.iter().any(|call| told.contains(&self.meaning(call))),
                _ => false,
            })
    }

    /// Returns whether a text holds one of the calls, or the lines that they were taken from.
    fn shows(&self, text: &str, dense: &Dense, calls: &[&ToolCall], lines: &[String]) -> bool {
        let names =
            |call: &ToolCall| self.pipeline.catalogue.wording(&call.name, &call.arguments).map_or_else(Vec::new, |wording| wording.names);
        let may_hold: Vec<&&ToolCall> = calls.iter().filter(|call| may_hold(dense, call, &names(call))).collect();
        if may_hold.is_empty() {
            return false;
        }
        if holds(&self::dense(&shown::undressed(text)), lines) {
            return true;
        }
        let there = shown::calls(text, self.conversation.prompt().known());
        let meaning = |call: &llm::text::Call| self.pipeline.catalogue.canonical(&call.name, &call.arguments);
        let there: HashSet<String> = there.iter().map(meaning).collect();
        may_hold.iter().any(|call| there.contains(&self.meaning(call)))
    }
}

/// Returns whether a text has a name of a call, of which `names` are others, and the longest word of its arguments, however they are escaped. Most
/// have not, and need not be read.
fn may_hold(text: &Dense, call: &ToolCall, names: &[&str]) -> bool {
    let mut longest = String::new();
    if let Ok(arguments) = serde_json::from_str(&call.arguments) {
        find_longest(&arguments, &mut longest);
    }
    (text.may_have(&call.name) || names.iter().any(|name| text.may_have(name))) && text.may_have(&longest)
}

fn find_longest(value: &Value, longest: &mut String) {
    match value {
        Value::String(text) => {
            // Other signs may be escaped.
            let word = text.split(|c: char| !c.is_ascii_alphanumeric()).max_by_key(|word| word.len()).unwrap_or_default();
            if word.len() > longest.len() {
                word.clone_into(longest);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| find_longest(item, longest)),
        Value::Object(fields) => fields.values().for_each(|field| find_longest(field, longest)),
        _ => {}
    }
}

/// Returns the lines of an answer that its calls were taken from, which are all but those of its words, each without what differs from dress
/// to dress.
fn lines_of_calls(source: &str, words: &str) -> Vec<String> {
    let words: HashSet<&str> = words.lines().map(str::trim).filter(|words| !words.is_empty()).collect();
    let source = shown::undressed(source);
    let lines: Vec<&str> = source.lines().map(str::trim).filter(|line| !words.contains(line)).collect();
    let words = words_before(&lines, words);
    lines.iter().zip(words).map(|(line, before)| dense(&line[before..])).filter(|line| !line.is_empty()).collect()
}

/// Returns how far the longest words go that each line begins with.
///
/// In their order all that begins with some words stands right behind them, so that each words are put down and taken up once: an answer may have
/// many thousand lines of either kind.
fn words_before(lines: &[&str], words: HashSet<&str>) -> Vec<usize> {
    let words = words.into_iter().map(|words| (words, None));
    let mut all: Vec<(&str, Option<usize>)> = words.chain(lines.iter().copied().zip((0..).map(Some))).collect();
    all.sort_unstable();
    let (mut before, mut begun) = (vec![0; lines.len()], Vec::new());
    for (text, line) in all {
        while begun.last().is_some_and(|words| !text.starts_with(words)) {
            begun.pop();
        }
        match line {
            None => begun.push(text),
            Some(line) => before[line] = begun.last().map_or(0, |words| words.len()),
        }
    }
    before
}

/// Returns a text without blanks and without the signs that escape something.
fn dense(text: &str) -> String {
    let (mut out, mut is_escaped) = (String::with_capacity(text.len()), false);
    for c in text.chars() {
        if c == '\\' {
            is_escaped = true;
            continue;
        }
        // A blank that is written as an escape is one.
        let is_blank = c.is_whitespace() || is_escaped && matches!(c, 'n' | 't' | 'r');
        is_escaped = false;
        if !is_blank {
            out.push(c);
        }
    }
    out
}

/// Returns whether a text holds all the lines, one behind the other.
fn holds(text: &str, lines: &[String]) -> bool {
    let mut rest = text;
    let is_next = |line: &String| match rest.find(line.as_str()) {
        Some(at) => {
            rest = &rest[at + line.len()..];
            true
        }
        None => false,
    };
    !lines.is_empty() && lines.iter().all(is_next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_shown_is_known_by_its_lines() {
        let source = "The file says:\n<function=bash>\n<parameter=command>\nls -l\n</parameter>\n</function>\n";
        let lines = lines_of_calls(source, "The file says:");
        assert_eq!(lines, ["<function=bash>", "<parameter=command>", "ls-l", "</parameter>", "</function>"]);
        let holds = |text: &str| super::holds(&dense(&shown::undressed(text)), &lines);
        assert!(holds("1\tDo it:\n2\t<function=bash>\n3\t<parameter=command>\n4\tls -l\n5\t</parameter>\n6\t</function>\n"));
        assert!(holds("\"<function=bash>\\n<parameter=command>ls  -l</parameter>\\n</function>\""));
        assert!(!holds("1\t<function=bash>\n2\t<parameter=command>\n3\tls -a\n4\t</parameter>\n5\t</function>\n"));
        assert!(!holds("") && !super::holds("", &[]));
        assert_eq!(lines_of_calls("I look.", "I look."), [""; 0]);
        assert_eq!(lines_of_calls("It says: <tool>x</tool>\n```\ny\n```", "It says:"), ["<tool>x</tool>", "y"]);
    }

    #[test]
    fn the_longest_words_before_a_call_are_left_out() {
        let source = "It\nIt says\nIt says: <a>\nItem <b>\nOther <c>";
        assert_eq!(lines_of_calls(source, "It\nIt says\nIt says:\nIte\nIten"), ["<a>", "m<b>", "Other<c>"]);
    }

    /// Found in an attack: each line of the calls was held against each line of the words, which stalled the loop.
    #[test]
    fn an_answer_of_many_lines_is_read_once() {
        let n = 200_000;
        let words: Vec<String> = (0..n).map(|n| format!("words {n}")).collect();
        let calls: Vec<String> = (0..n).map(|n| format!("call {n}")).collect();
        let (words, calls) = (words.join("\n"), calls.join("\n"));
        assert_eq!(lines_of_calls(&format!("{words}\n{calls}"), &words).len(), n);
    }

    #[test]
    fn a_text_without_the_words_of_a_call_need_not_be_read() {
        let call = |arguments: &str| ToolCall { id: "c1".into(), name: "bash".into(), arguments: arguments.into() };
        let text = Dense::new("bash: \"touch pl&#97;nted\"");
        assert!(may_hold(&text, &call("{\"command\": \"touch planted\"}"), &[]) && may_hold(&text, &call("{}"), &[]));
        assert!(!may_hold(&text, &call("{\"command\": \"touch it-elsewhere\"}"), &[]));
        assert!(!may_hold(&Dense::new("touch planted"), &call("{\"command\": \"touch planted\"}"), &["shell"]));
    }
}
