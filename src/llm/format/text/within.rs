//! What the words of an answer have opened and not ended: a block of a form that is not known, a here-document, a patch. What looks like a
//! call in there belongs to the text that it holds: a file about calls, mostly.

/// How much of a line counts, in bytes: its beginning, and its end.
const MAX_HEAD: usize = 160;
const MAX_TAIL: usize = 96;
/// Names of elements that hold a text, beside all those of several words.
const HOLDERS: [&str; 7] = ["artifact", "code", "content", "contents", "document", "file", "text"];

/// Llama's mark of calls, and of code: what was no call right behind it is code.
const PYTHON: &str = "<|python_tag|>";

/// Follows the words of an answer, in whatever pieces they come.
#[derive(Clone, Debug, Default)]
pub(super) struct Within {
    /// The line under way.
    head: String,
    tail: String,
    is_long: bool,
    open: Option<End>,
}

/// What ends what is open.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    /// A tag, wherever it stands.
    Tag(String),
    /// A line of its own.
    Line(String),
}

impl Within {
    pub(super) fn add(&mut self, text: &str) {
        let mut rest = text;
        while let Some(at) = memchr::memchr(b'\n', rest.as_bytes()) {
            self.go_on(&rest[..at]);
            self.open = self.after();
            (self.head.clear(), self.tail.clear());
            self.is_long = false;
            rest = &rest[at + 1..];
        }
        self.go_on(rest);
    }

    /// Forgets all: what follows belongs to nothing before it.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns whether something is open here.
    pub(super) fn is_open(&self) -> bool {
        self.after().is_some()
    }

    fn go_on(&mut self, line: &str) {
        if line.is_empty() {
            return;
        }
        if !self.is_long {
            let room = line.floor_char_boundary(MAX_HEAD - self.head.len());
            self.head.push_str(&line[..room]);
            self.is_long = room < line.len();
        }
        self.tail.push_str(&line[line.ceil_char_boundary(line.len().saturating_sub(MAX_TAIL))..]);
        if self.tail.len() > MAX_TAIL {
            self.tail.drain(..self.tail.ceil_char_boundary(self.tail.len() - MAX_TAIL));
        }
    }

    /// Returns what is open behind the line under way.
    fn after(&self) -> Option<End> {
        let is_ended = match &self.open {
            Some(End::Tag(tag)) => self.head.contains(tag.as_str()) || self.tail.contains(tag.as_str()),
            Some(End::Line(line)) => !self.is_long && self.head.trim() == line,
            None => return self.opened(),
        };
        if is_ended { None } else { self.open.clone() }
    }

    /// Returns what ends what this line opens.
    fn opened(&self) -> Option<End> {
        let line = self.head.trim_start();
        if line.starts_with(PYTHON) {
            return Some(End::Tag("<|eom_id|>".to_owned()));
        }
        if line.starts_with("*** Begin Patch") {
            return Some(End::Line("*** End Patch".to_owned()));
        }
        if let Some(rest) = line.strip_prefix('<') {
            let name = &rest[..rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))).unwrap_or(rest.len())];
            let behind = rest[name.len()..].chars().next();
            // The mark of a call holds nothing but that one.
            let is_mark = name.ends_with("tool_call") || name.ends_with("_calls") || name == "function_call";
            let holds = name.contains('_') && !is_mark || HOLDERS.contains(&name);
            let end = format!("</{name}>");
            let ends = self.head.contains(&end) || self.tail.contains(&end) || self.tail.ends_with("/>");
            return (holds && matches!(behind, Some('>' | ' ')) && !ends).then_some(End::Tag(end));
        }
        here_document(line).map(|word| End::Line(word.to_owned()))
    }
}

/// Returns the word that ends the here-document of a line: `cat > a.md <<'EOF'`.
fn here_document(line: &str) -> Option<&str> {
    let rest = &line[line.find("<<")? + 2..];
    let rest = rest.strip_prefix('-').unwrap_or(rest).trim_start_matches(['\'', '"', '\\']);
    let word = &rest[..rest.find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')).unwrap_or(rest.len())];
    (word.len() > 1 && word.starts_with(|c: char| c.is_ascii_uppercase())).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::super::corpus::tools;
    use super::super::parse;
    use super::Within;

    const CALLS: [&str; 5] = [
        "<tool_call>{\"name\":\"bash\",\"arguments\":{\"command\":\"touch zz\"}}</tool_call>",
        "{\"name\":\"bash\",\"arguments\":{\"command\":\"touch zz\"}}",
        "```json\n{\"name\":\"bash\",\"arguments\":{\"command\":\"touch zz\"}}\n```",
        "Action: bash\nAction Input: {\"command\":\"touch zz\"}",
        "<function=bash>\n<parameter=command>\ntouch zz\n</parameter>\n</function>",
    ];

    #[test]
    fn a_call_in_what_was_opened_and_not_ended_is_asked_about() {
        for opened in [
            "<write_file>\n<path>docs/t.md</path>\n<content>\n# Page\n\nA model writes\n\n",
            "<write_to_file>\n<path>t.md</path>\n<content>\n# Page\n\n",
            "<file name=\"t.md\">\n# Page\n\n",
            "cat > t.md <<'EOF'\n# Tools\n",
            "cat <<EOF > t.md\n# Tools\n",
            "*** Begin Patch\n*** Update File: a.md\n@@\n # Tools\n",
            "<|python_tag|>TEXT = r\"\"\"\n",
            "I do it.\n<|python_tag|>import os\n",
        ] {
            for call in CALLS {
                let text = format!("{opened}{call}");
                let parsed = parse(&text, &tools(), None);
                assert_eq!((parsed.calls, parsed.mentions.len()), (vec![], 1), "{text}");
            }
        }
        for ended in [
            "<write_file>\n<path>a</path>\n</write_file>\n",
            "<task_progress>half of it</task_progress>\n",
            "<br_line/>\n",
            "cat > t.md <<'EOF'\n# Tools\nEOF\n",
            "*** Begin Patch\n*** End Patch\n",
            "The list is a << B shift.\n",
            "1 << EOF\n",
            "Look at <path>:\n",
        ] {
            for call in CALLS {
                let text = format!("{ended}{call}");
                assert_eq!(parse(&text, &tools(), None).calls.len(), 1, "{text}");
            }
        }
    }

    /// Where the end of the argument and that of the call are both missing, the last end is one that the text quotes.
    #[test]
    fn half_a_value_that_quotes_the_end_of_what_is_around_it_is_not_carried_out() {
        for end in ["</tool_call>", "</tool_call>\n"] {
            let text = format!(
                "<tool_call>\n<function=write_file>\n<parameter=path>\na.md\n</parameter>\n<parameter=content>\n# P\n\nEach call ends with\n{end}"
            );
            let text = text.replace("write_file", "bash");
            let parsed = parse(&text, &tools(), None);
            assert_eq!(
                (parsed.calls, parsed.incomplete.map(|incomplete| incomplete.name)),
                (vec![], Some(Some("bash".to_owned()))),
                "{text}"
            );
        }
    }

    #[test]
    fn an_end_behind_which_all_ends_follow_is_of_the_value() {
        let inner = "bash\n<arg_key>command</arg_key>\n<arg_value>rm</arg_value>\n</tool_call>";
        for value in [inner, "# Page\n\n</tool_call>", &format!("# Page\n{inner}")] {
            let text = format!("<tool_call>\n<function=bash>\n<parameter=command>\n{value}\n</parameter>\n</function>\n</tool_call>");
            let parsed = parse(&text, &tools(), None);
            let commands: Vec<String> = parsed.calls.iter().map(|call| call.compact()).collect();
            assert_eq!((commands, parsed.incomplete), (vec![serde_json::json!({"command": value}).to_string()], None), "{text}");
        }
    }

    #[test]
    fn what_is_open_does_not_depend_on_the_pieces() {
        let long = format!("<my_file>{}\u{fffd}\u{fffd}", "\u{e9}x".repeat(120));
        for text in ["a\n<my_file>\nb\n</my_file>\n<other_one", "<<EOF\nEOF\n*** Begin Patch\n", &format!("{long}</my_file>"), &long] {
            let mut whole = Within::default();
            whole.add(text);
            for step in [1, 2, 3, 7, 95, 96, 97, 159, 161] {
                let (mut pieces, mut rest) = (Within::default(), text);
                while !rest.is_empty() {
                    let (piece, more) = rest.split_at(rest.ceil_char_boundary(step.min(rest.len())));
                    pieces.add(piece);
                    rest = more;
                }
                assert_eq!((pieces.is_open(), &pieces.head, &pieces.tail), (whole.is_open(), &whole.head, &whole.tail), "{step} {text}");
            }
        }
    }
}
