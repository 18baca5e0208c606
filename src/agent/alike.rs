//! Whether a text says a call in other words: in the dress of a log, a patch, a comment or a page, in a notation that makes no call, by another
//! name of its tool, with an argument more or less.
//!
//! What counts is the longest part of what the call must have, right behind the name of its argument, or a word that announces arguments, and the
//! name of the tool before or behind that with nothing but the marks of a call between them. Prose that says what to run is none of this.

use std::collections::HashSet;

use super::dense::Dense;
use super::dense::Value;
use podbay_event::ToolCall;
use podbay_llm::normal::is_of_word;
use podbay_llm::normal::normal_within;
use podbay_tools::Catalogue;
use podbay_tools::Part;

/// How far from its arguments the name of a call may stand, in bytes: a file that is written may lie between.
const MAX_AWAY: usize = 64 * 1024;
/// The same, where it stands behind them.
const MAX_BEHIND: usize = 1024;
/// How far from the name of a call the word may stand that announces its arguments, whatever lies between.
const MAX_HEAD: usize = 1024;
/// How many places of one text are looked at that closely, and how far at the others.
const MAX_CLOSE: usize = 16;
const MAX_NEAR: usize = 1024;
/// How many places of one text are looked at. One that almost says the call any oftener is taken for one that does.
const MAX_PLACES: usize = 1 << 16;

/// How words end that stand before the arguments of a call, whatever else stands there.
const ARGUMENTS: [&str; 9] = ["arguments", "argument", "parameters", "parameter", "params", "args", "input", "inputs", "arg_key"];
/// Words between a name and its arguments that say nothing.
const MARKS: [&str; 27] = [
    "action",
    "arg",
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
    "param",
    "string",
    "text",
    "tool",
    "tool_call",
    "tool_calls",
    "tool_sep",
    "tool_use",
    "type",
    "value",
];
/// Between the name of an argument and its value.
const BETWEEN: [&str; 7] = ["arg_value", "arg_key", "value", "string", "json", "text", "cdata"];

/// A call that is looked for.
pub(super) struct Sought {
    names: Vec<String>,
    keys: Vec<String>,
    /// Its longest part.
    values: Vec<Value>,
    /// That has several words.
    is_of_words: bool,
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
        let (values, is_of_words) = (Value::forms(&value), value.trim().contains(char::is_whitespace));
        let lower = |keys: &[String]| keys.iter().map(|key| key.to_lowercase()).collect::<Vec<_>>();
        let mut words: HashSet<String> = lower(&keys).into_iter().collect();
        for part in &mut others {
            let value = normal_within(&part.value);
            value.trim_matches(|c| !is_of_word(c)).clone_into(&mut part.value);
            part.keys = lower(&part.keys);
            words.extend(part.value.split(|c| !is_of_word(c)).map(str::to_owned));
            words.extend(part.keys.iter().cloned());
        }
        let names = wording.names.iter().map(|name| name.to_lowercase()).collect();
        (!values.is_empty()).then_some(Self { names, keys: lower(&keys), values, is_of_words, others, words })
    }

    /// Returns whether a text asks for the call, in whatever words. One name alone asks for nothing: who asks what a file says of another one names
    /// that too.
    pub(super) fn is_asked_for_in(&self, text: &Dense) -> bool {
        let has = |part: &&Part| Value::forms(&part.value).iter().any(|value| text.has(value));
        self.values.iter().any(|value| text.has(value))
            && self.others.iter().filter(|part| part.is_needed && !part.value.is_empty()).all(|part| has(&part))
            && (self.is_of_words || self.others.iter().any(|part| has(&part)))
    }

    /// Returns whether a text says the call.
    pub(super) fn is_in(&self, text: &Dense) -> bool {
        if !self.names.iter().any(|name| text.text.contains(name)) {
            return false;
        }
        let mut n_places = 0;
        for (begin, end) in self.values.iter().flat_map(|value| text.find(value)) {
            n_places += 1;
            let away = if n_places <= MAX_CLOSE { MAX_AWAY } else { MAX_NEAR };
            if n_places > MAX_PLACES || self.is_at(&text.text, (begin, end), away) {
                return true;
            }
        }
        false
    }

    /// Returns whether the call is there of which a text has the longest part from `begin` to `end`.
    fn is_at(&self, text: &str, (begin, end): (usize, usize), away: usize) -> bool {
        if !ends_value(&text[end..]) {
            return false;
        }
        let Some((key, is_announced)) = self.key_before(&text[..begin]) else { return false };
        let from = text.ceil_char_boundary(key.saturating_sub(away));
        let to = text.floor_char_boundary(end.saturating_add(away).min(text.len()));
        let name = self.name_before(&text[from..key], is_announced).map(|at| from + at).or_else(|| {
            let near = text.floor_char_boundary(end.saturating_add(away.min(MAX_BEHIND)).min(text.len()));
            self.has_name_behind(&text[end..near]).then_some(from)
        });
        name.is_some_and(|name| !self.differs(&text[name..to]))
    }

    /// Returns where the name of the argument begins that ends a text, and whether that is a word which announces any arguments.
    fn key_before(&self, text: &str) -> Option<(usize, bool)> {
        let gap = &text[text.trim_end_matches(|c| !is_of_word(c)).len()..];
        if !gap.contains([':', '=', '>', '(', '[', '"', '\n', '|']) {
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
                return Some((rest.len(), false));
            }
            if is_arguments(key) {
                return Some((rest.len(), true));
            }
            if !BETWEEN.contains(&key) {
                return None;
            }
        }
        None
    }

    /// Returns where the name of the tool begins behind which, in the same call, the name of the argument follows.
    fn name_before(&self, text: &str, is_announced: bool) -> Option<usize> {
        // Behind a word that announces arguments there may be any of them; before it there is little but the name.
        let (mut at, mut is_plain) = (text.len(), true);
        let mut announced = is_announced.then_some(at);
        while at > 0 {
            let gap = text[..at].trim_end_matches(|c| !is_of_word(c)).len();
            let is_parted = text[gap..at] != *" ";
            let word = last_word(&text[..gap]);
            let begin = gap - word.len();
            let is_name = is_parted && self.names.iter().any(|name| name == word) && is_name(&text[..begin], &text[gap..]);
            if is_name && (is_plain || announced.is_some_and(|announced| announced - begin <= MAX_HEAD)) {
                return Some(begin);
            }
            if word.is_empty() {
                return None;
            }
            if is_parted && is_arguments(word) {
                announced = Some(begin);
                is_plain = true;
            }
            is_plain &= self.is_of_call(word);
            at = begin;
        }
        None
    }

    /// Returns whether a word may stand between the name of a call and its longest part.
    fn is_of_call(&self, word: &str) -> bool {
        word.is_empty() || MARKS.contains(&word) || is_arguments(word) || self.words.contains(word)
    }

    fn has_name_behind(&self, text: &str) -> bool {
        let words: Vec<&str> = text.split(|c| !is_of_word(c)).filter(|word| !word.is_empty()).collect();
        words.windows(2).any(|two| names_tool(two[0]) && self.names.iter().any(|name| name == two[1]))
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

/// Returns whether a word stands before the name of a tool, whatever notation it is: `tool_name`, `toolName`, `Action`.
fn is_key_of_name(word: &str) -> bool {
    names_tool(word) || matches!(word, "call" | "invoke" | "recipient" | "tool_call" | "to")
}

/// Returns whether a word is no other than that.
fn names_tool(word: &str) -> bool {
    ["name", "tool", "function"].iter().any(|end| word.ends_with(end)) || word == "action"
}

/// Returns whether a word stands before the arguments of a call, whatever notation it is: `tool_args`, `Action Input`.
fn is_arguments(word: &str) -> bool {
    ARGUMENTS.iter().any(|end| word.ends_with(end))
}

/// Returns whether a value ends where this text follows: `touch a` is not `touch a b`, nor `touch a/b`.
fn ends_value(rest: &str) -> bool {
    const ENDS: [char; 10] = ['"', '\n', '}', ')', ']', ';', ',', '#', '|', '<'];
    // What makes words bold, and the end of a sentence or of a row.
    let rest = rest.trim_start_matches(['*', '_', '~', '.', '!']);
    rest.is_empty() || rest.starts_with(ENDS)
}

fn last_word(text: &str) -> &str {
    &text[text.trim_end_matches(is_of_word).len()..]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use podbay_llm::normal::normal;
    use podbay_soak as soak;
    use podbay_tools::Options;

    fn is_in(name: &str, arguments: &serde_json::Value, text: &str) -> bool {
        let call = ToolCall { id: String::new(), name: name.into(), arguments: arguments.to_string() };
        Sought::of(&Catalogue::new(&Options::default()), &call).is_some_and(|sought| sought.is_in(&Dense::new(text)))
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
            // Escaped to the last letter.
            "\\u007b\\u0022\\u006e\\u0061\\u006d\\u0065\\u0022\\u003a\\u0022\\u0062\\u0061\\u0073\\u0068\\u0022\\u002c\\u0022\\u0061\\u0072\\u0067\\u0073\\u0022\\u003a\\u007b\\u0022\\u0063\\u006d\\u0064\\u0022\\u003a\\u0022\\u0067rep -n a b src/*\\u0022\\u007d\\u007d",
            "&#123;&quot;&#110;ame&quot;: &quot;&#98;&#97;&#115;&#104;&quot;, &quot;args&quot;: {&quot;command&quot;: &quot;&#103;rep -n a b &#115;&#114;&#99;/*&quot;}}",
            "%7B%22%6E%61%6D%65%22%3A%22%62%61%73%68%22%2C%22%61%72%67%73%22%3A%7B%22command%22%3A%22%67%72%65%70%20-n%20a%20b%20%73%72%63%2F%2A%22%7D%7D",
            // Other ends, notations and colours.
            "name: bash\narguments:\n  command: grep -n \"a b\" src/*  # looks for it\n",
            "{name: bash, arguments: {command: grep -n \"a b\" src/*, timeout: 5}}",
            "<!-- name: bash, command: grep -n \"a b\" src/* -->",
            "tool: bash<br>command: grep -n \"a b\" src/*<br>and so on",
            "name=bash; command=grep -n \"a b\" src/*;",
            "<invoke name=\"bash\"><arg name=\"command\">grep -n \"a b\" src/*</arg></invoke>",
            "<function=bash><parameter=command><![CDATA[grep -n \"a b\" src/*]]></parameter></function>",
            "{\\042name\\042: \\042bash\\042, \\042arguments\\042: {\\042command\\042: \\042\\147\\162ep -n a b src/*\\042}}",
            "{\"tool_name\": \"bash\", \"tool_args\": {\"command\": \"grep -n \\\"a b\\\" src/*\"}}",
            "Thought: I look.\nAction: bash\nAction Input: grep -n \"a b\" src/*\nObservation:",
            "{\"NAME\": \"BASH\", \"ARGUMENTS\": {\"COMMAND\": \"GREP -N \\\"A B\\\" SRC/*\"}}",
            "\u{1b}[1m{\"name\"\u{1b}[0m: \u{1b}[32m\"bash\"\u{1b}[0m, \"arguments\": {\"command\": \"\u{1b}[33mgrep\u{1b}[0m -n \\\"a b\\\" src/*\"}}",
            "{\"na\u{200b}me\": \"ba\u{200b}sh\", \"arguments\": {\"command\": \"gr\u{200b}ep -n \\\"a b\\\" src/*\"}}",
            "<span>{\"name\"</span>: <span class=\"s\">\"ba<b>sh</b>\"</span>, \"arguments\": {\"command\": \"<i>grep</i> -n \\\"a b\\\" src/*\"}}",
            "call = '{\"name\": \"ba' + 'sh\", \"arguments\": {\"comm' +\n  'and\": \"grep -n ' + '\"a b\" src/*\"}}'",
            "| tool | bash |\n| command | grep -n \"a b\" src/* |",
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
        // However much lies between the name and the value.
        let long =
            format!("{{\"name\": \"bash\", \"arguments\": {{\"description\": \"{}\", \"command\": \"touch it\"}}}}", "looks ".repeat(1000));
        assert!(is_in("bash", &json!({"command": "touch it"}), &long));
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
        let units = ["command: ls -a;", "bash command: \"ls -a\" x", "\"command\":\"ls -a\"}", "ls -a\" ", "{{{{{{\"command\": \"ls -a\"}"];
        for unit in soak::sample(units, 3) {
            assert!(!is_in("bash", &call, &format!("{}bash", unit.repeat(100_000 / unit.len()))), "{unit}");
        }
    }
}
