//! Calls that nobody can read: half-quoted, with comments, in a form of the model's own.
//!
//! They stay content, as what cannot be read may be talk. But an answer that ends with nothing done must not pass for one that is done, so
//! what looks like a call of one of the tools is reported, and the model can be asked for it again.

use super::Call;
use super::call;
use super::cursor::Cursor;
use super::cursor::Stop;
use super::json;
use super::markers;
use super::openers::Opener;
use super::parser::Incomplete;
use super::parser::Part;
use super::tools::Tools;

/// How much of it is looked at, in bytes.
const MAX: usize = 2048;
/// What the object of a call holds, by any of its keys.
const KEYS: [&str; 4] = ["name", "tool", "function", "tool_name"];

/// Llama's mark of calls, and of code.
const PYTHON: &str = "<|python_tag|>";

/// The beginning of such a block.
#[derive(Debug)]
pub(super) struct Unread {
    head: String,
    /// How long all of the text is that came since, in bytes.
    len: usize,
    /// Where what is between the tags begins.
    behind: usize,
    closers: &'static [&'static str],
    /// Llama's mark of code for its interpreter, which is no tool of ours, begins it. Who speaks of the mark does so within a line.
    is_code: bool,
    /// What was read as calls since.
    since: Vec<String>,
}

impl Unread {
    /// Begins with what there is from the opener on, which ends at `behind`. `begins_line`: nothing stands before it in its line.
    pub(super) fn new(text: &str, behind: usize, opener: Opener, begins_line: bool) -> Self {
        let closers = match opener {
            Opener::Calls(closers) => closers,
            Opener::Attributed => &["</tool_call>"],
            Opener::Function => &["</function>"],
            Opener::Invoke => &["</invoke>", "</function>"],
            Opener::Marker => markers::ENDS,
            Opener::Channel => &["<|call|>", "<|end|>", "<|return|>"],
            Opener::Opened => &["<|close|>call<|sep|>"],
            Opener::Minimax => &["]<]minimax[>[</invoke>"],
            Opener::Mistral => &["[/TOOL_CALLS]"],
            _ => &[],
        };
        let mut unread =
            Self { head: String::new(), len: 0, behind, closers, is_code: begins_line && text.starts_with(PYTHON), since: Vec::new() };
        unread.add(text);
        unread
    }

    /// Returns whether a token said that a call follows.
    fn is_marked(&self) -> bool {
        !self.closers.is_empty()
    }

    /// Takes more of the text.
    pub(super) fn add(&mut self, text: &str) {
        let room = if self.len == self.head.len() { MAX.saturating_sub(self.len) } else { 0 };
        self.head.push_str(&text[..text.floor_char_boundary(room)]);
        self.len += text.len();
    }

    /// Forgets the last bytes: they are no part of the answer.
    pub(super) fn take_back(&mut self, n: usize) {
        self.head.truncate(self.len.saturating_sub(n).min(self.head.len()));
    }

    /// Notes what was read as calls behind its beginning.
    pub(super) fn note(&mut self, calls: &[Call]) {
        self.since.extend(calls.iter().map(|call| call.name.clone()));
    }

    /// Returns what it seems to call, once all of the answer is there; `None` where it is talk, or was read after all.
    pub(super) fn settle(self, tools: &Tools) -> Option<Incomplete> {
        let inner = self.head.get(self.behind..)?;
        let end = self.closers.iter().filter_map(|closer| Some((inner.find(closer)?, closer.len()))).min();
        let (body, after) = end.map_or((inner, ""), |(at, len)| (&inner[..at], &inner[at + len..]));
        let after = after.trim_start_matches([' ', '\t']);
        let code = unfenced(body);
        if self.is_code && self.since.is_empty() && is_program(code) && !begins_call(code, tools) {
            let text = self.head[..self.behind + body.len()].to_owned();
            return Some(Incomplete { part: Part::Unreadable, name: None, text });
        }
        if after.starts_with([',', '.', ';', ':', '!', '?', '"', '\'', ')']) || is_pattern(body) {
            return None;
        }
        let name = if self.is_marked() {
            named(body, tools)
        } else {
            // In the open nothing else says that it is a call.
            Some(call::begun_name(body).and_then(|name| tools.resolve(name)).filter(|_| has_arguments(body))?)
        };
        if name.map_or(!self.since.is_empty(), |name| self.since.iter().any(|read| read == name)) {
            return None;
        }
        // What comes at the end was meant to be carried out, whatever it is; with words behind it nobody knows.
        let behind = if self.is_marked() { after } else { after_object(body) };
        let is_last = behind.trim().is_empty() && self.len == self.head.len();
        let part = match name {
            Some(_) if self.is_marked() && begins_call(body, tools) || !self.is_marked() && is_object(body) => {
                if is_last {
                    Part::Unreadable
                } else {
                    Part::Unclear
                }
            }
            Some(_) if self.is_marked() && end.is_some() && is_last => Part::Unclear,
            None if is_object(body) && is_last && end.is_some() => Part::Unreadable,
            _ => return None,
        };
        let text = self.head[..self.behind + body.len()].to_owned();
        Some(Incomplete { part, name: name.map(str::to_owned), text })
    }
}

/// Returns whether a text is code rather than a sentence about the mark of it.
fn is_program(body: &str) -> bool {
    let body = body.trim();
    let is_sentence = body.ends_with(['.', '!', '?']) || body.starts_with(char::is_uppercase);
    !body.is_empty()
        && !is_sentence
        && (body.contains(['=', '(']) || ["import ", "from ", "print "].iter().any(|word| body.starts_with(word)))
}

/// Returns what stands in a fence that code begins with.
fn unfenced(body: &str) -> &str {
    let body = body.trim();
    body.strip_prefix("```").and_then(|rest| rest.split_once('\n')).map_or(body, |(_, code)| code.trim_end_matches('`').trim_end())
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))).filter(|word| !word.is_empty())
}

/// Returns the first of the tools that a call speaks of, unless it names another one before: what its arguments hold is no name then.
fn named<'t>(body: &str, tools: &'t Tools) -> Option<&'t str> {
    let (word, name) = words(body).find_map(|word| Some((word, tools.resolve(word)?)))?;
    let before = &body[..word.as_ptr().addr() - body.as_ptr().addr()];
    let is_of_another = call::begun_name(before).is_some_and(|written| tools.resolve(written).is_none());
    (!is_of_another).then_some(name)
}

/// Returns whether a text begins as calls do, and not as a sentence.
fn begins_call(body: &str, tools: &Tools) -> bool {
    let body = body.trim_start();
    let body = body.strip_prefix("call:").unwrap_or(body);
    if body.starts_with(['{', '[', '(', '<', '"', '\'', '`', '=']) {
        return true;
    }
    // An attribute, or a name with something behind it that is no word.
    let end = body.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))).unwrap_or(body.len());
    let (word, behind) = body.split_at(end);
    behind.starts_with('=')
        || tools.resolve(word).is_some() && (behind.is_empty() || behind.starts_with(['(', '{', ':', '[', '<', '\n', '"']))
}

fn has_arguments(body: &str) -> bool {
    call::ARGUMENTS.iter().any(|key| body.contains(&format!("\"{key}\"")))
}

/// Returns whether it is the pattern that models are shown of a call, or what they are told of a tool.
fn is_pattern(body: &str) -> bool {
    let is_schema = body.contains("\"description\"") && body.contains("\"parameters\"");
    is_schema || ["NAME", "<function-name>", "...", "\u{2026}", "\"<"].iter().any(|mark| body.contains(mark))
}

/// Returns what stands behind an object without a mark: behind the end of its fence, or behind its last bracket.
fn after_object(body: &str) -> &str {
    let end = body.find("\n```").map(|at| at + 4).or_else(|| body.rfind('}').map(|at| at + 1));
    end.map_or("", |end| &body[end..])
}

/// Returns whether a text is meant as the object of a call, but is none. What is an object was read, and names nothing that is known, or has words behind it.
fn is_object(body: &str) -> bool {
    let body = body.trim_start();
    let is_unreadable = || json::value(&mut Cursor::new(body, 0, true), 0) == Err(Stop::No);
    body.starts_with(['{', '[']) && KEYS.iter().any(|key| body.contains(&format!("\"{key}\""))) && is_unreadable()
}

#[cfg(test)]
mod tests {
    use super::super::corpus::LS;
    use super::super::corpus::check;
    use super::super::corpus::tools;
    use super::super::parse;
    use super::Part;

    #[test]
    fn a_marked_call_that_nobody_can_read_is_reported() {
        for (text, content) in [
            (r#"<tool_call>{{"name": "bash", "arguments": {{"command": "ls"}}}}</tool_call>"#, None),
            ("<tool_call>\n{\"name\": \"bash\", // lists\n\"arguments\": {\"command\": \"ls\"}}\n</tool_call>", None),
            ("<tool_call>{\"name\": bash, \"arguments\": {\"command\": \"ls\"}}</tool_call>", None),
            ("I look.\n<tool_call>\n\u{a0}{\"name\": \u{a0}\"bash\", \"arguments\": {\"command\": \"ls\"}}\n</tool_call>", None),
            ("<tool_call id=\"1\">{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}</tool_call>", None),
            ("<tool>bash: ls -l</tool>", None),
            ("<tool_call>(bash, ls)</tool_call>\n", Some("<tool_call>(bash, ls)")),
            ("<function_call>{\"name\" => \"bash\", \"arguments\" => {\"command\" => \"ls\"}}</function_call>", None),
        ] {
            let content = content.map_or_else(|| said(text), str::to_owned);
            check(text, text, &content, "", &[], Some("bash"));
        }
        for text in [
            "{\"name\": \"bash\", \"arguments\": {{\"command\": \"ls\"}}}",
            "I look.\n```json\n{\"name\": \"bash\", // lists\n\"arguments\": {\"command\": \"ls\"}}\n```",
            "<start_function_call>call:bash{command:<escape>echo <escape>x<escape><escape>}<end_function_call>",
        ] {
            check(text, text, text, "", &[], Some("bash"));
        }
        let unknown = "<tool_call>{{\"name\": \"fly\"}}</tool_call>";
        check(unknown, unknown, &said(unknown), "", &[], Some(""));
    }

    /// A closing token at the very end says nothing.
    fn said(text: &str) -> String {
        text.trim_end().trim_end_matches("</tool_call>").trim_end().to_owned()
    }

    #[test]
    fn code_for_an_interpreter_is_a_call_that_nobody_can_read() {
        for text in ["<|python_tag|>import os\nos.system(\"bash\")", "I look.\n<|python_tag|>print('...')<|eom_id|>", "<|python_tag|>x = 1"]
        {
            let found = parse(text, &tools(), None);
            let incomplete = found.incomplete.expect("something is missing");
            assert_eq!((incomplete.part, incomplete.name, found.calls.len()), (Part::Unreadable, None, 0), "{text}");
        }
        for text in [
            "<|python_tag|> marks code in Llama 3",
            "The tag that starts code is:\n<|python_tag|>\nIt is used by Llama.",
            "The token <|python_tag|> begins code.",
            "> <|python_tag|>import os",
            "```\n<|python_tag|>import os\n```",
        ] {
            assert_eq!(parse(text, &tools(), None).incomplete, None, "{text}");
        }
    }

    #[test]
    fn talk_of_the_tag_is_talk() {
        for text in [
            "The <tool_call> tag is put around calls of bash.",
            "<tool_call> is the tag. bash is a tool.",
            "The schema is\n```jsonc\n{\"name\": \"bash\", // its name\n \"description\": \"runs\", \"parameters\": {\"type\": \"object\"}}\n```",
            "Format:\n<tool_call>{\"name\": \"<tool name>\", \"arguments\": {\u{2026}}}</tool_call>\nis the form",
            "<tool_call>{{\"name\": \"bash\"}}</tool_call>, with braces doubled, is what you must not write.",
            "> <tool_call>{{\"name\": \"bash\"}}</tool_call>\n\nis a quotation.",
            "For example:\n<tool_call>{{\"name\": \"bash\"}}</tool_call>\nis wrong.",
            "```\n<tool_call>{{\"name\": \"bash\"}}</tool_call>\n```",
            "<tool_call>{\"name\": NAME, \"arguments\": {...}}</tool_call> is the form.",
            "A package's file:\n```json\n{\"name\": \"bash\", // it is\n\"version\": 1}\n```",
            "The form is this:\n```json\n{\"name\": \"bash\", \"arguments\": {...}}\n```",
            "Use <tool_call> {one call} and nothing else.",
        ] {
            check(text, text, text, "", &[], None);
        }
    }

    #[test]
    fn with_words_behind_it_nobody_knows_whether_it_was_meant() {
        let part = |text: &str| parse(text, &tools(), None).incomplete.map(|incomplete| incomplete.part);
        for text in [
            "Before, it wrote:\n\n<tool_call>{{\"name\": \"bash\", \"arguments\": {}}}</tool_call>\n\nNow the braces are single.",
            "<tool_call>{{\"name\": \"bash\"}}</tool_call> Let me wait.",
            "The test sends\n```python\n{\"name\": \"bash\", \"arguments\": {\"command\": cmd}}\n```\nand expects a result.",
            "<tool_call>\nname: bash\narguments:\n  command: ls\n</tool_call>",
            "<tool_call>bash ls -la</tool_call>",
        ] {
            assert_eq!(part(text), Some(Part::Unclear), "{text}");
            check(text, text, &parse(text, &tools(), None).content, "", &[], Some("bash"));
        }
        for text in [
            "I look.\n<tool_call>{{\"name\": \"bash\"}}</tool_call>\n",
            "<|channel|>commentary to=functions.bash code<|message|>ls -l<|call|>",
        ] {
            assert_eq!(part(text), Some(Part::Unreadable), "{text}");
        }
    }

    #[test]
    fn a_call_of_another_tool_is_not_one_of_what_its_arguments_name() {
        for text in [
            "<tool_call>{\"name\": \"fly\", \"arguments\": {\"command\": \"bash\"}}</tool_call>",
            "<tool_call>{\"tool\": \"fly\", \"arguments\": {\"command\": \"bash -c ls\"}}</tool_call>",
        ] {
            assert_eq!(parse(text, &tools(), None).incomplete, None, "{text}");
        }
        let broken = "<tool_call>{{\"name\": \"fly\", \"arguments\": {\"command\": \"bash\"}}}</tool_call>";
        check(broken, broken, &said(broken), "", &[], Some(""));
        let named_behind = "<tool_call>{{\"tool\": \"bash\", \"arguments\": {\"name\": \"x\"}}}</tool_call>";
        check(named_behind, named_behind, &said(named_behind), "", &[], Some("bash"));
    }

    #[test]
    fn what_is_read_after_all_is_not_reported() {
        let call = "{\"name\": \"bash\", \"arguments\": {\"command\": \"ls -l\"}}";
        let text = format!("<tool_call>{{{call}}}</tool_call>\n<tool_call>{call}</tool_call>");
        check(&text, &text, &format!("<tool_call>{{{call}}}"), "", &[LS], None);
        let other = format!("<tool_call>{{{{\"name\": \"read_file\"}}}}</tool_call>\n<tool_call>{call}</tool_call>");
        check(&other, &other, "<tool_call>{{\"name\": \"read_file\"}}", "", &[LS], Some("read_file"));
    }
}
