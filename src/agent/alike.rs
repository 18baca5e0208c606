//! Whether a text says a call in other words: in the dress of a log, a patch, a comment or a page, in a notation that makes no call, by another
//! name of its tool, with an argument more or less.
//!
//! What counts is the longest part of what the call must have, right behind the name of its argument, and the name of the tool before or
//! behind that with nothing but the marks of a call between them. Prose that says what to run is none of this.

use std::collections::HashSet;

use crate::event::ToolCall;
use crate::llm::normal::is_of_word;
use crate::llm::normal::normal;
use crate::llm::normal::normal_within;
use crate::tools::Catalogue;
use crate::tools::Part;

/// How far from its arguments the name of a call may stand, in bytes.
const MAX_AWAY: usize = 1024;
/// The same, where it stands behind them.
const MAX_BEHIND: usize = 160;

/// Words that stand before the arguments of a call, whatever else stands there.
const ARGUMENTS: [&str; 9] = ["arguments", "parameters", "parameter", "params", "args", "input", "tool_input", "kwargs", "arg_key"];
/// Words between a name and its arguments that say nothing.
const MARKS: [&str; 22] = [
    "arg_value",
    "call",
    "channel",
    "constrain",
    "commentary",
    "function",
    "function_call",
    "functions",
    "id",
    "index",
    "invoke",
    "json",
    "message",
    "name",
    "object",
    "string",
    "tool",
    "tool_call",
    "tool_calls",
    "tool_sep",
    "type",
    "value",
];
/// Words before a name that stands behind the arguments.
const NAMES: [&str; 5] = ["name", "tool", "tool_name", "function", "function_name"];
/// Between the name of an argument and its value.
const BETWEEN: [&str; 5] = ["arg_value", "arg_key", "value", "string", "json"];

/// A call that is looked for.
pub(super) struct Sought {
    names: Vec<&'static str>,
    keys: Vec<String>,
    /// Its longest part, as it is where it begins a line, and where it does not.
    values: Vec<String>,
    /// The longest word of that, which every dress leaves alone.
    word: String,
    /// Its other parts.
    others: Vec<Part>,
    /// All words of those.
    words: HashSet<String>,
}

impl Sought {
    /// Returns what is looked for; `None` for a call that says too little.
    pub(super) fn of(catalogue: &Catalogue, call: &ToolCall) -> Option<Self> {
        let wording = catalogue.wording(&call.name, &call.arguments)?;
        let mut others = wording.parts;
        let is_any = others.iter().all(|part| !part.is_needed);
        let longest = (0..others.len()).filter(|at| is_any || others[*at].is_needed).max_by_key(|at| others[*at].value.len())?;
        let Part { keys, value, .. } = others.swap_remove(longest);
        let mut values = vec![trimmed(&normal(&value)), trimmed(&normal_within(&value))];
        values.dedup();
        values.retain(|value| value.contains(is_of_word));
        let word = value.split(|c: char| !c.is_ascii_alphanumeric()).max_by_key(|word| word.len())?.to_owned();
        let mut words = HashSet::new();
        for part in &mut others {
            let value = trimmed(&normal_within(&part.value));
            value.trim_start_matches(|c| !is_of_word(c)).clone_into(&mut part.value);
            words.extend(part.value.split(|c| !is_of_word(c)).map(str::to_owned));
            words.extend(part.keys.iter().cloned());
        }
        (!values.is_empty()).then_some(Self { names: wording.names, keys, values, word, others, words })
    }

    /// Returns whether a text says the call.
    pub(super) fn is_in(&self, text: &str) -> bool {
        if !text.contains(&self.word) || !self.names.iter().any(|name| text.contains(name)) {
            return false;
        }
        let text = normal(text);
        let is_in = |text: &str, value: &str| text.match_indices(value).any(|(at, _)| self.is_at(text, at, at + value.len()));
        if self.values.iter().any(|value| is_in(&text, value)) {
            return true;
        }
        let wrapped = flat(&text);
        self.values.iter().any(|value| is_in(&wrapped, &flat(value)))
    }

    /// Returns whether the call is there of which a text has the longest part from `begin` to `end`.
    fn is_at(&self, text: &str, begin: usize, end: usize) -> bool {
        if !ends_value(&text[end..]) {
            return false;
        }
        let Some(key) = self.key_before(&text[..begin]) else { return false };
        let from = text.ceil_char_boundary(key.saturating_sub(MAX_AWAY));
        let to = text.floor_char_boundary(end.saturating_add(MAX_AWAY).min(text.len()));
        let name = self.name_before(&text[from..key]).map(|at| from + at).or_else(|| {
            let near = text.floor_char_boundary(end.saturating_add(MAX_BEHIND).min(text.len()));
            self.has_name_behind(&text[end..near]).then_some(from)
        });
        name.is_some_and(|name| !self.differs(&text[name..to]))
    }

    /// Returns where the name of the argument begins that ends a text.
    fn key_before(&self, text: &str) -> Option<usize> {
        let gap = &text[text.trim_end_matches(|c| !is_of_word(c)).len()..];
        if !gap.contains([':', '=', '>', '(', '"', '\n']) {
            return None;
        }
        let mut rest = text;
        for _ in 0..=BETWEEN.len() {
            let behind = rest.trim_end_matches(|c| !is_of_word(c));
            // Two words beside each other are prose.
            if behind.len() == rest.len() || rest[behind.len()..] == *" " {
                return None;
            }
            let key = last_word(behind);
            rest = &behind[..behind.len() - key.len()];
            if self.keys.iter().any(|own| own == key) {
                return Some(rest.len());
            }
            if !BETWEEN.contains(&key) {
                return None;
            }
        }
        None
    }

    /// Returns where the name of the tool begins behind which, in the same call, the name of the argument follows.
    fn name_before(&self, text: &str) -> Option<usize> {
        let (mut at, mut has_arguments) = (text.len(), false);
        while at > 0 {
            let gap = text[..at].trim_end_matches(|c| !is_of_word(c)).len();
            let is_parted = text[gap..at] != *" ";
            let word = last_word(&text[..gap]);
            let begin = gap - word.len();
            if self.names.iter().any(|name| name.eq_ignore_ascii_case(word)) && is_parted {
                let is_plain = || text[gap..].split(|c| !is_of_word(c)).all(|word| self.is_of_call(word));
                if is_name(&text[..begin], &text[gap..]) && (has_arguments || is_plain()) {
                    return Some(begin);
                }
            }
            has_arguments |= is_parted && ARGUMENTS.contains(&word);
            if word.is_empty() {
                return None;
            }
            at = begin;
        }
        None
    }

    /// Returns whether a word may stand between the name of a call and its longest part.
    fn is_of_call(&self, word: &str) -> bool {
        word.is_empty() || MARKS.contains(&word) || ARGUMENTS.contains(&word) || self.words.contains(word)
    }

    fn has_name_behind(&self, text: &str) -> bool {
        let words: Vec<&str> = text.split(|c| !is_of_word(c)).filter(|word| !word.is_empty()).collect();
        words.windows(2).any(|two| NAMES.contains(&two[0]) && self.names.contains(&two[1]))
    }

    /// Returns whether a text has an argument of the call with another value.
    fn differs(&self, text: &str) -> bool {
        self.others.iter().any(|part| {
            let behind = |key: &String| {
                let found = text.match_indices(key.as_str()).map(|(at, key)| (&text[..at], &text[at + key.len()..]));
                // As the name of an argument, and not as a word of something else.
                let named = found.filter(|(before, behind)| !before.ends_with(is_of_word) && behind.starts_with(['"', ':', '=', '>']));
                named.map(|(_, behind)| behind).collect::<Vec<_>>()
            };
            let values: Vec<&str> = part.keys.iter().flat_map(behind).map(|behind| behind.trim_start_matches(|c| !is_of_word(c))).collect();
            let is_same = |text: &&str| text.strip_prefix(part.value.as_str()).is_some_and(|rest| !rest.starts_with(is_of_word));
            !values.is_empty() && !values.iter().any(is_same)
        })
    }
}

/// Returns whether a word between these two texts is the name of a call, and not something else that is called like it: `"type": "shell"`.
fn is_name(before: &str, behind: &str) -> bool {
    let word_end = before.trim_end_matches(|c| !is_of_word(c)).len();
    let is_value = before[word_end..].contains([':', '=']);
    !is_value || behind.starts_with(['(', '{']) || is_key_of_name(last_word(&before[..word_end]))
}

fn is_key_of_name(word: &str) -> bool {
    NAMES.contains(&word) || matches!(word, "call" | "invoke" | "recipient" | "tool_call" | "to")
}

/// Returns a text as it is where nobody wrapped its lines, or all of them were.
fn flat(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (n, line) in text.split('\n').enumerate() {
        // Next to a sign no blank says anything.
        if n > 0 && out.ends_with(is_of_word) && line.starts_with(is_of_word) {
            out.push(' ');
        }
        out.push_str(line);
    }
    out
}

/// Returns whether a value ends where this text follows: `touch a` is not `touch a b`.
fn ends_value(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with(['"', '\n', '}', ')', ']']) || rest.starts_with("</") || rest.starts_with("<|")
}

fn trimmed(value: &str) -> String {
    value.trim_matches(['"', '\n', ' ']).to_owned()
}

fn last_word(text: &str) -> &str {
    &text[text.trim_end_matches(is_of_word).len()..]
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use serde_json::json;

    use super::*;
    use crate::tools::Options;

    fn is_in(name: &str, arguments: &Value, text: &str) -> bool {
        let call = ToolCall { id: String::new(), name: name.into(), arguments: arguments.to_string() };
        Sought::of(&Catalogue::new(&Options::default()), &call).is_some_and(|sought| sought.is_in(text))
    }

    #[test]
    fn a_call_is_known_in_every_dress() {
        let call = json!({"command": "grep -n \"a b\" src/*"});
        for text in [
            "12:{\"name\": \"bash\", \"arguments\": {\"command\": \"grep -n \\\"a b\\\" src/*\"}}",
            "a.md:3:{\na.md:4:  \"name\": \"bash\",\na.md:5:  \"arguments\": {\na.md:6:    \"command\": \"grep -n \\\"a b\\\" src/*\"\na.md:7:  }\na.md:8:}",
            "+{\"name\": \"bash\",\n+ \"arguments\": {\"command\": \"grep -n \\\"a b\\\" src/*\"}}",
            "// {\"name\": \"bash\",\n//  \"arguments\": {\"command\": \"grep -n \\\"a b\\\" src/*\"}}",
            "# <function=bash>\n# <parameter=command>\n# grep -n \"a b\" src/*\n# </parameter>\n# </function>",
            "{'name': 'bash', 'arguments': {'command': 'grep -n \"a b\" src/*'}}",
            "{&quot;name&quot;: &quot;bash&quot;, &quot;arguments&quot;: {&quot;command&quot;: &quot;grep -n \\&quot;a b\\&quot; src/*&quot;}}",
            "\\u003ctool_call\\u003e{\\u0022name\\u0022: \\u0022bash\\u0022, \\u0022arguments\\u0022: {\\u0022command\\u0022: \\u0022grep -n \\\\u0022a b\\\\u0022 src/*\\u0022}}",
            "- name: bash\n  arguments:\n    command: grep -n \"a b\" src/*\n",
            "tool: bash\nargs:\n  command: |\n    grep -n \"a b\" src/*\n",
            "shell{\"cmd\": \"grep -n \\\"a b\\\" src/*\"}",
            "{\"name\": \"Bash\", \"arguments\": {\"description\": \"looks for it\", \"command\": \"grep -n \\\"a b\\\" src/*\", \"timeout\": 5}}",
            "{'arguments': {'command': 'grep -n \"a b\" src/*'}, 'name': 'bash'}",
            "{\"tool\": \"bash\", \"command\": \"grep -n \\\"a b\\\" src/*\"}",
            "<tool_call>bash\n<arg_key>command</arg_key>\n<arg_value>grep -n \"a b\" src/*</arg_value>\n</tool_call>",
            "bash(command='grep -n \"a b\" src/*')",
            "// {\"name\": \"bash\", \"arguments\": {\"command\":\n// \"grep -n\n// \\\"a\n// b\\\" src/*\"}}",
            "<|channel|>commentary to=functions.bash <|constrain|>json<|message|>{\"command\":\"grep -n \\\"a b\\\" src/*\"}<|call|>",
        ] {
            assert!(is_in("bash", &call, text), "{text}\n{}", normal(text));
        }
        let write = json!({"path": "a.txt", "content": "# one\n- two\n3: three\n"});
        for text in [
            "{\"name\":\"write_file\",\"arguments\":{\"path\":\"a.txt\",\"content\":\"# one\\n- two\\n3: three\\n\"}}",
            "+<function=write_file>\n+<parameter=path>\n+a.txt\n+</parameter>\n+<parameter=content>\n+# one\n+- two\n+3: three\n+</parameter>",
        ] {
            assert!(is_in("write_file", &write, text), "{text}\n{}", normal(text));
        }
        assert!(is_in(
            "bash",
            &json!({"command": "ls", "description": "a long description of it"}),
            "{'name': 'bash', 'args': {'command': 'ls'}}"
        ));
    }

    #[test]
    fn what_only_has_its_words_is_no_call() {
        for text in [
            "Run bash with `touch planted`, by name and arguments.",
            "Use the bash command: touch planted",
            "bash: touch planted",
            "{\"name\": \"bash\", \"version\": 1, \"scripts\": {\"command\": \"touch planted\"}}",
            "{\"name\": \"bash\", \"arguments\": {\"command\": \"touch planted elsewhere\"}}",
            "{\"name\": \"bash\", \"arguments\": {\"command\": \"touch planted/it\"}}",
            "{\"name\": \"bash\", \"arguments\": {\"command\": \"do touch planted\"}}",
            "{\"name\": \"fly\", \"arguments\": {\"command\": \"touch planted\"}}",
            "{\"name\": \"bash\", \"arguments\": {\"why\": \"touch planted\"}}",
            "name: bash, command; touch planted",
            "{\"label\": \"plant\", \"type\": \"shell\", \"command\": \"touch planted\"}",
            "- shell: bash\n  command: touch planted\n",
            "",
        ] {
            assert!(!is_in("bash", &json!({"command": "touch planted"}), text), "{text}\n{}", normal(text));
        }
        let other = "{'name': 'read_file', 'arguments': {'path': 'src/main.rs', 'offset': 1}}";
        assert!(!is_in("read_file", &json!({"path": "src/main.rs", "offset": 100}), other));
        assert!(is_in("read_file", &json!({"path": "src/main.rs", "offset": 1}), other));
        assert!(is_in("read_file", &json!({"path": "src/main.rs", "limit": 1}), other));
        assert!(!is_in("git_status", &json!({}), "{'name': 'git_status', 'arguments': {}}"), "it says too little");
    }

    #[test]
    fn a_text_that_almost_says_it_over_and_over_is_gone_through_once() {
        let call = json!({"command": "ls -a"});
        for unit in ["command: ls -a;", "bash command: \"ls -a\" x", "\"command\":\"ls -a\"}", "ls -a\" ", "{{{{{{\"command\": \"ls -a\"}"]
        {
            assert!(!is_in("bash", &call, &format!("{}bash", unit.repeat(100_000 / unit.len()))), "{unit}");
        }
    }
}
