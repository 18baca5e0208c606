//! What the words of an answer have opened and not ended: a block of a form that is not known, a here-document, a patch. What looks like a
//! call in there belongs to the text that it holds: a file about calls, mostly.

/// How much of a line counts, in bytes: its beginning, and its end.
const MAX_HEAD: usize = 400;
const MAX_TAIL: usize = 96;
/// Names of elements that hold a text, beside all those of several words.
const HOLDERS: [&str; 7] = ["artifact", "code", "content", "contents", "document", "file", "text"];
/// Attributes of an element that holds a file.
const ATTRIBUTES: [&str; 4] = [" path=", " filePath=", " filename=", " file="];
/// Programs that a here-document is given to.
const READERS: [&str; 16] =
    ["bash", "cat", "docker", "ed", "ex", "kubectl", "node", "patch", "perl", "psql", "python", "python3", "ruby", "sh", "ssh", "tee"];

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
    /// The mark of the fence that it is in, and whether what is open was opened there.
    fence: Option<(char, usize)>,
    within_fence: bool,
}

/// What ends what is open.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    /// A tag at the beginning or the end of a line: within one it is spoken of.
    Tag(String),
    /// A line of its own.
    Line(String),
    /// A line that begins so.
    Begin(&'static str),
}

impl Within {
    pub(super) fn add(&mut self, text: &str) {
        let mut rest = text;
        while let Some(at) = memchr::memchr(b'\n', rest.as_bytes()) {
            self.go_on(&rest[..at]);
            self.end_line();
            self.head.clear();
            self.tail.clear();
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

    fn end_line(&mut self) {
        let mark = fence_mark(self.head.trim()).filter(|_| !self.is_long && (self.open.is_none() || self.within_fence));
        match (self.fence, mark) {
            (None, Some(mark)) => self.fence = Some((mark.sign, mark.n)),
            // The end of a fence ends what was opened in it.
            (Some((sign, n)), Some(mark)) if mark.sign == sign && mark.n >= n && mark.is_bare => (self.fence, self.open) = (None, None),
            _ => {
                let open = self.after();
                self.within_fence = open.is_some() && (self.within_fence || self.open.is_none() && self.fence.is_some());
                self.open = open;
            }
        }
    }

    /// Returns what is open behind the line under way.
    fn after(&self) -> Option<End> {
        let line = self.head.trim();
        let is_ended = match &self.open {
            Some(End::Tag(tag)) => line.starts_with(tag.as_str()) || self.tail.trim_end().ends_with(tag.as_str()),
            Some(End::Line(end)) => !self.is_long && line == end,
            Some(End::Begin(end)) => line.starts_with(end),
            None => return self.opened(),
        };
        if is_ended { None } else { self.open.clone() }
    }

    /// Returns what ends what this line opens.
    fn opened(&self) -> Option<End> {
        // Each of them has one of these, and most lines have none.
        memchr::memchr2(b'<', b'*', self.head.as_bytes())?;
        if self.head.starts_with(['\t']) || self.head.starts_with("    ") {
            return None;
        }
        let line = self.head.trim();
        for (begin, end) in [("*** Begin Patch", "*** End"), ("<<<<<<< SEARCH", ">>>>>>> REPLACE")] {
            if line == begin {
                return Some(End::Begin(end));
            }
        }
        if line.strip_prefix(PYTHON).is_some_and(|code| !code.is_empty()) {
            return Some(End::Tag("<|eom_id|>".to_owned()));
        }
        if let Some(name) = opened_tag(line) {
            let end = format!("</{name}>");
            let is_ended = self.head.contains(&end) || self.tail.contains(&end) || self.tail.trim_end().ends_with("/>");
            return (!is_ended).then_some(End::Tag(end));
        }
        here_document(line).map(|word| End::Line(word.to_owned()))
    }
}

/// What begins or ends a fence.
struct Mark {
    sign: char,
    n: usize,
    /// Nothing stands behind it.
    is_bare: bool,
}

fn fence_mark(line: &str) -> Option<Mark> {
    let sign = line.chars().next().filter(|sign| matches!(sign, '`' | '~'))?;
    let rest = line.trim_start_matches(sign);
    let n = line.len() - rest.len();
    (n >= 3).then_some(Mark { sign, n, is_bare: rest.is_empty() })
}

/// Returns the name of the element that a line opens, if it is one that holds a text; behind words, or before some, it is spoken of.
fn opened_tag(line: &str) -> Option<&str> {
    let rest = line.strip_prefix('<')?;
    let name = &rest[..rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))).unwrap_or(rest.len())];
    let Some((attributes, behind)) = rest[name.len()..].split_once('>') else {
        // Its attributes stand below.
        return (rest == name && name.contains('_')).then_some(name);
    };
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !(behind.is_empty() || behind.starts_with('<')) {
        return None;
    }
    // The mark of a call holds nothing but that one.
    let is_mark = name.ends_with("tool_call") || name.ends_with("_calls") || name == "function_call";
    let is_of_words = name.contains(['_', '-']) || name[1..].contains(|c: char| c.is_ascii_uppercase());
    let holds = is_of_words && !is_mark || HOLDERS.contains(&name) || ATTRIBUTES.iter().any(|key| attributes.contains(key));
    (holds && (attributes.is_empty() || attributes.starts_with(' '))).then_some(name)
}

/// Returns the word that ends the here-document of a line: `cat > a.md << 'EOF'`.
fn here_document(line: &str) -> Option<&str> {
    let (before, rest) = line.split_once("<<")?;
    let command = before.rsplit(['&', ';', '|', '(']).map(str::trim_start).find(|part| !part.is_empty())?;
    let command = ["$ ", "sudo "].iter().fold(command, |command, prefix| command.strip_prefix(prefix).unwrap_or(command));
    let program = command.split_whitespace().next()?;
    let rest = rest.strip_prefix('-').unwrap_or(rest).trim_start();
    let quoted = rest.trim_start_matches(['\'', '"', '\\']);
    let word = &quoted[..quoted.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(quoted.len())];
    (READERS.contains(&program) && word.len() > 1 && (quoted.len() < rest.len() || word.starts_with(|c: char| c.is_ascii_uppercase())))
        .then_some(word)
}

#[cfg(test)]
mod tests {
    use super::super::Call;
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
            "cat > docs/t.md << 'EOF'\n# Tools\n",
            "cat > docs/t.md<<'EOF'\n# Tools\n",
            "$ sudo tee t.md <<- 'end'\n# Tools\n",
            &format!("mkdir -p {} && cat > t.md <<'EOF'\n# Tools\n", "x".repeat(180)),
            "<boltArtifact id=\"docs\" title=\"Docs\">\n<boltAction type=\"file\" filePath=\"t.md\">\n",
            "<dyad-write path=\"t.md\" description=\"page\">\n# Tools\n",
            "<write path=\"t.md\">\n# Tools\n",
            "<write_file\n path=\"t.md\">\n# Tools\n",
            "t.md\n<<<<<<< SEARCH\nfoo\n=======\n",
            "<write_file>\n<path>t.md</path>\n<content>\nA block ends with `</write_file>`. Hermes writes:\n\n",
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
            "The header has:\n```c\n#define A (1<<BITS)\n```\nI look for its use.\n",
            "The template begins with:\n```html\n<content>\n<p>x</p>\n```\nLet me look.\n",
            "It says:\n```sh\ncat > a <<EOF\n...\n```\nLet me look.\n",
            "The line `cat <<EOF` lacks its end. I look.\n",
            "Ruby adds with `items <<ITEM`. I look.\n",
            "It has cout <<\"ERROR\". I look.\n",
            "<text> elements are not escaped by the renderer. Let me look at it.\n",
            "<file_path> must be set.\n",
            "<task_progress>\n- [x] one\n</task_progress>\n",
            "The page begins with:\n\n````markdown\n```html\n<my-app>\n```\n````\n\nI fix it.\n\n",
            "The page begins with:\n\n~~~html\n<my-app>\n~~~\n\nI fix it.\n\n",
            "The first line is\n\n    <my-app>\n\nand it has no end.\n\n",
            "I will use:\n\n<MyButton\n  onClick={save}\n/>\n\nNow I write it.\n\n",
            "*** Begin Patch\n*** End of Patch\n",
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
    fn half_a_call_in_a_fence_that_words_follow_is_shown() {
        let half = "```xml\n<tool_call>\n<function=bash>\n<parameter=command>\nls\n</tool_call>\n```";
        for (before, behind) in
            [("It writes:\n\n", "\n\nBoth ends are missing there."), ("For example:\n\n", ""), ("", "\nThat is half of one.")]
        {
            let text = format!("{before}{half}{behind}");
            let parsed = parse(&text, &tools(), None);
            assert_eq!((parsed.content.as_str(), parsed.calls.len(), parsed.incomplete), (text.as_str(), 0, None), "{text}");
        }
        assert!(parse(&format!("I list:\n\n{half}"), &tools(), None).incomplete.is_some());
    }

    #[test]
    fn an_end_behind_which_all_ends_follow_is_of_the_value() {
        let inner = "bash\n<arg_key>command</arg_key>\n<arg_value>rm</arg_value>\n</tool_call>";
        for value in [inner, "# Page\n\n</tool_call>", &format!("# Page\n{inner}")] {
            let text = format!("<tool_call>\n<function=bash>\n<parameter=command>\n{value}\n</parameter>\n</function>\n</tool_call>");
            let parsed = parse(&text, &tools(), None);
            let commands: Vec<String> = parsed.calls.iter().map(Call::compact).collect();
            assert_eq!((commands, parsed.incomplete), (vec![serde_json::json!({"command": value}).to_string()], None), "{text}");
        }
    }

    #[test]
    fn a_message_to_somebody_else_is_in_nothing_that_the_one_before_opened() {
        let arguments = "{\"command\": \"touch zz\"}";
        for text in [
            format!(
                "<|channel|>commentary<|message|>It begins with\n\n<my-app>\n\nand has no end.<|end|><|start|>assistant<|channel|>commentary to=functions.bash <|constrain|>json<|message|>{arguments}<|call|>"
            ),
            format!(">>>all\nThe first line is\n\n<my-app>\n\nand it has no end.\n>>>bash\n{arguments}"),
        ] {
            assert_eq!(parse(&text, &tools(), None).calls.len(), 1, "{text}");
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
