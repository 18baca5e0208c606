//! Marked calls that cannot be parsed: half-quoted, with comments, or in a form of the model's own.
//! An answer that did nothing must not count as done, so the model is told to write the call again.

use super::Call;
use super::cursor::Cursor;
use super::markers;
use super::openers;
use super::openers::Opener;
use super::parser::Incomplete;
use super::parser::IncompletePart;
use super::tools::Tools;

/// How much of the block is kept, in bytes.
const MAX: usize = 2048;
/// Llama's mark of calls, and of code for an interpreter, for which there is no tool.
const PYTHON: &str = "<|python_tag|>";

/// The beginning of a block that could not be parsed.
#[derive(Debug)]
pub(super) struct UnreadableBlock {
    head: String,
    /// Length of all text received since, in bytes.
    len: usize,
    /// Where the contents between the tags begin.
    behind: usize,
    closers: &'static [&'static str],
    /// It begins its line.
    begins_line: bool,
    /// The source texts of calls parsed since.
    since: Vec<String>,
}

impl UnreadableBlock {
    /// Starts with the text from the opener on, which ends at `behind`; `None` where the opener
    /// does not mark calls.
    pub(super) fn new(
        text: &str,
        behind: usize,
        opener: Opener,
        begins_line: bool,
    ) -> Option<Self> {
        let closers: &[&str] = match opener {
            Opener::Calls(closers) => closers,
            Opener::Attributed => &["</tool_call>"],
            Opener::Function => &["</function>"],
            Opener::Invoke => &["</invoke>", "</function>"],
            Opener::Marker => markers::ENDS,
            Opener::Channel => &["<|call|>", "<|end|>", "<|return|>"],
            Opener::Opened => &["<|close|>call<|sep|>"],
            Opener::Minimax => &["]<]minimax[>[</invoke>"],
            Opener::Mistral => &["[/TOOL_CALLS]"],
            _ => return None,
        };
        let mut unread = Self {
            head: String::new(),
            len: 0,
            behind,
            closers,
            begins_line,
            since: Vec::new(),
        };
        unread.add(text);
        Some(unread)
    }

    /// Adds more of the text.
    pub(super) fn add(&mut self, text: &str) {
        let room = if self.len == self.head.len() {
            MAX.saturating_sub(self.len)
        } else {
            0
        };
        self.head.push_str(&text[..text.floor_char_boundary(room)]);
        self.len += text.len();
    }

    /// Removes the last bytes: they are not part of the answer.
    pub(super) fn remove_last(&mut self, n: usize) {
        self.head
            .truncate(self.len.saturating_sub(n).min(self.head.len()));
    }

    /// Records calls parsed after its beginning.
    pub(super) fn note(&mut self, calls: &[Call]) {
        self.since
            .extend(calls.iter().map(|call| call.name.clone()));
    }

    /// Returns the suspected call once the answer is complete; `None` where it is prose, or was
    /// parsed after all.
    pub(super) fn settle(self, tools: &Tools) -> Option<Incomplete> {
        let inner = self.head.get(self.behind..)?;
        let end = self
            .closers
            .iter()
            .filter_map(|closer| Some((inner.find(closer)?, closer.len())))
            .min();
        let end = end.map(|(at, len)| (at, at + len));
        let (body, behind) =
            end.map_or((inner, ""), |(at, behind)| (&inner[..at], &inner[behind..]));
        let name = words(body).find_map(|word| tools.resolve(word));
        let begins = body.trim_start();
        let is_object = begins.starts_with(['{', '[', '(', '"']);
        let is_code = self.begins_line && self.head.starts_with(PYTHON) && is_program(begins);
        let tells_of_tool = body.contains("\"description\"") && body.contains("\"parameters\"");
        let is_call = match name {
            Some(name) => {
                !self.since.iter().any(|read| read == name) && (end.is_some() || is_object)
            }
            None => {
                self.since.is_empty() && is_object && end.is_some() && body.contains("\"name\"")
            }
        };
        let text = self.head[..self.behind + body.len()].to_owned();
        let is_one = is_code && self.since.is_empty() || is_call && !tells_of_tool;
        // A model that writes on after it does not wait for its result.
        let is_last = is_noise(behind) && self.len == self.head.len();
        let part = if is_last {
            IncompletePart::Unreadable
        } else {
            IncompletePart::Unclear
        };
        is_one.then(|| Incomplete {
            part,
            name: name.map(str::to_owned),
            text,
        })
    }
}

/// Returns whether a text consists only of meaningless tokens.
fn is_noise(text: &str) -> bool {
    let mut c = Cursor::new(text, 0, true);
    loop {
        c.spaces();
        match c.peek_or_end() {
            Ok(Some(byte)) if openers::may_begin(byte) => {}
            other => return other == Ok(None),
        }
        if !matches!(
            openers::find(&mut c),
            Ok(Some(Opener::Noise | Opener::Section))
        ) {
            return false;
        }
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')))
        .filter(|word| !word.is_empty())
}

/// Returns whether a text is code rather than a sentence about the mark.
fn is_program(text: &str) -> bool {
    text.contains(['=', '(']) || text.starts_with("import ") || text.starts_with("from ")
}

#[cfg(test)]
mod tests {
    use super::super::format_corpus::LS;
    use super::super::format_corpus::check;
    use super::super::format_corpus::tools;
    use super::super::parse;
    use super::IncompletePart;

    /// A closing token at the very end means nothing.
    fn said(text: &str) -> String {
        text.trim_end()
            .trim_end_matches("</tool_call>")
            .trim_end()
            .to_owned()
    }

    #[test]
    fn an_unparsable_marked_call_is_reported() {
        for (text, content) in [
            (
                r#"<tool_call>{{"name": "bash", "arguments": {{"command": "ls"}}}}</tool_call>"#,
                None,
            ),
            (
                "<tool_call>\n{\"name\": \"bash\", // lists\n\"arguments\": {\"command\": \"ls\"}}\n</tool_call>",
                None,
            ),
            (
                "<tool_call>{\"name\": bash, \"arguments\": {\"command\": \"ls\"}}</tool_call>",
                None,
            ),
            (
                "I look.\n<tool_call>\n\u{a0}{\"name\": \u{a0}\"bash\", \"arguments\": {\"command\": \"ls\"}}\n</tool_call>",
                None,
            ),
            (
                "<tool_call id=\"1\">{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}</tool_call>",
                None,
            ),
            ("<tool>bash: ls -l</tool>", None),
            (
                "<tool_call>(bash, ls)</tool_call>\n",
                Some("<tool_call>(bash, ls)"),
            ),
            (
                "<function_call>{\"name\" => \"bash\", \"arguments\" => {\"command\" => \"ls\"}}</function_call>",
                None,
            ),
        ] {
            let content = content.map_or_else(|| said(text), str::to_owned);
            check(text, text, &content, "", &[], Some("bash"));
        }
        let unknown = "<tool_call>{{\"name\": \"fly\"}}</tool_call>";
        check(unknown, unknown, &said(unknown), "", &[], Some(""));
    }

    #[test]
    fn interpreter_code_is_an_unparsable_call() {
        for text in [
            "<|python_tag|>import os\nos.system(\"x\")",
            "I look.\n<|python_tag|>print('...')<|eom_id|>",
            "<|python_tag|>x = 1",
        ] {
            let found = parse(text, &tools(), None);
            let incomplete = found.incomplete.expect("something is missing");
            assert_eq!(
                (incomplete.part, incomplete.name, found.calls.len()),
                (IncompletePart::Unreadable, None, 0),
                "{text}"
            );
        }
        for text in [
            "<|python_tag|> marks code in Llama 3",
            "The token <|python_tag|> begins code.",
            "```\n<|python_tag|>import os\n```",
        ] {
            assert_eq!(parse(text, &tools(), None).incomplete, None, "{text}");
        }
    }

    #[test]
    fn an_unparsable_call_with_text_after_it_is_only_unclear() {
        for text in [
            "Before, it wrote:\n\n<tool_call>{{\"name\": \"bash\", \"arguments\": {}}}</tool_call>\n\nNow the braces are single.",
            "<tool_call>{{\"name\": \"bash\"}}</tool_call> Let me wait.",
        ] {
            let incomplete = parse(text, &tools(), None)
                .incomplete
                .expect("looks like one");
            assert_eq!(
                (incomplete.part, incomplete.name.as_deref()),
                (IncompletePart::Unclear, Some("bash")),
                "{text}"
            );
        }
    }

    #[test]
    fn a_mentioned_tag_is_content() {
        for text in [
            "The <tool_call> tag is put around calls of bash.",
            "<tool_call> is the tag. bash is a tool.",
            "```\n<tool_call>{{\"name\": \"bash\"}}</tool_call>\n```",
            "Use <tool_call> {one call} and nothing else.",
        ] {
            check(text, text, text, "", &[], None);
        }
    }

    #[test]
    fn calls_parsed_later_are_not_reported() {
        let call = "{\"name\": \"bash\", \"arguments\": {\"command\": \"ls -l\"}}";
        let text = format!("<tool_call>{{{call}}}</tool_call>\n<tool_call>{call}</tool_call>");
        check(
            &text,
            &text,
            &format!("<tool_call>{{{call}}}"),
            "",
            &[LS],
            None,
        );
    }
}
