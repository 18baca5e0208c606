//! Detects what looks like a call but matches no known form: the model is asked about it once per
//! task.
//! Nothing is executed because of this, so it only needs two patterns that are improbable by
//! chance: an object that names a tool beside its arguments, and the name of a tool with a value
//! for each required argument.

use super::tools::Tools;

/// How far after the name of a tool its arguments may stand, in bytes.
const NEAR: usize = 600;
/// The fields of a call's object for its tool, and for its arguments.
const NAMES: [&str; 5] = ["name", "tool", "function", "tool_name", "action"];
const ARGUMENTS: [&str; 6] = [
    "arguments",
    "parameters",
    "params",
    "args",
    "input",
    "action_input",
];

/// Returns the tool that the beginning of an answer seems to call, known or not.
pub(super) fn named(head: &str, tools: &Tools) -> Option<String> {
    let head = &without_code_in_lines(head);
    // A schema describes a tool.
    if head.contains("\"properties\"") || tools.is_empty() {
        return None;
    }
    in_object(head, tools).or_else(|| {
        acted(head, tools)
            .or_else(|| in_fields(head, tools))
            .map(str::to_owned)
    })
}

/// Returns the tool named in a `ReAct` step without an object of arguments: `Action: bash` above
/// `Action Input: ls`.
fn acted<'t>(head: &str, tools: &'t Tools) -> Option<&'t str> {
    let mut lines = head.lines().map(str::trim).filter(|line| !line.is_empty());
    let name = lines.find_map(|line| line.strip_prefix("Action:"))?;
    lines
        .next()
        .filter(|line| line.starts_with("Action Input:"))
        .and_then(|_| tools.resolve(name))
}

/// Removes inline code from a text, where names are only mentioned.
fn without_code_in_lines(text: &str) -> String {
    let outside = |line: &str| {
        let parts: Vec<&str> = line.split('`').collect();
        if line.contains("```") || parts.len().is_multiple_of(2) {
            line.to_owned()
        } else {
            parts.into_iter().step_by(2).collect()
        }
    };
    text.lines().map(|line| outside(line) + "\n").collect()
}

fn in_object(head: &str, tools: &Tools) -> Option<String> {
    let dense: String = head.chars().filter(|c| !c.is_whitespace()).collect();
    let has = |keys: &[&str]| {
        keys.iter()
            .any(|key| dense.contains(&format!("\"{key}\":")))
    };
    let value = |key: &&str| {
        dense
            .split_once(&format!("\"{key}\":\""))?
            .1
            .split('"')
            .next()
    };
    let known = || {
        NAMES
            .iter()
            .filter_map(value)
            .find_map(|name| tools.resolve(name))
    };
    // For another tool only the field names that models are taught count.
    let other = || {
        NAMES[..2]
            .iter()
            .find_map(value)
            .filter(|_| has(&ARGUMENTS[..2]))
    };
    known()
        .filter(|_| has(&ARGUMENTS))
        .or_else(other)
        .map(str::to_owned)
}

fn in_fields<'t>(head: &str, tools: &'t Tools) -> Option<&'t str> {
    let words = head
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| word.contains('_'));
    words
        .filter_map(|word| Some((word, tools.resolve(word)?)))
        .find_map(|(word, name)| {
            let behind = &head[word.as_ptr().addr() - head.as_ptr().addr() + word.len()..];
            let near = &behind[..behind.floor_char_boundary(NEAR)];
            let required = tools
                .required(name)
                .filter(|required| !required.is_empty())?;
            required
                .iter()
                .all(|field| is_field(near, field))
                .then_some(name)
        })
}

/// Returns whether a text gives a value to a name: `"path": …`, `path=…`, `<path>…`.
fn is_field(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let behind = text[at + name.len()..].trim_start_matches(['"', '\'', '\\', ' ']);
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
            && behind.starts_with([':', '=', '>'])
    })
}

#[cfg(test)]
mod tests {
    use super::super::IncompletePart;
    use super::super::format_corpus::tools;
    use super::super::parse;

    #[track_caller]
    fn check(text: &str, name: Option<&str>) {
        let parsed = parse(text, &tools(), None);
        assert_eq!(
            (parsed.calls.len(), parsed.content.as_str()),
            (0, text),
            "{text}"
        );
        let unclear = parsed
            .incomplete
            .map(|incomplete| (incomplete.part, incomplete.name));
        assert_eq!(
            unclear,
            name.map(|name| (IncompletePart::Unclear, Some(name.to_owned()))),
            "{text}"
        );
    }

    #[test]
    fn a_tool_name_with_its_arguments_looks_like_a_call() {
        for text in [
            "<read_file>\n<path>c.txt</path>\n</read_file>",
            "{\"read_file\": {\"path\": \"a\"}}",
            "@read_file {\"path\": \"a\"}",
            "Tool: read_file\nArguments: {\"path\": \"a\"}",
            "tool: read_file\nargs:\n  path: ls",
            "I look.\n```read_file\n{\"path\": \"a\"}\n```",
            "I read it: {\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}",
            "I read it:\n```json\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n```",
        ] {
            check(text, Some("read_file"));
        }
        for text in [
            "{\"name\": \"bash\", \"arguments\": {{\"command\": \"ls\"}}}",
            "I look.\n{\"name\": \"bash\", // lists\n\"arguments\": {\"command\": \"ls\"}}",
            "{\"action\": \"bash\", \"action_input\": \"ls\"}",
            "Thought: I must look.\nAction: bash\nAction Input: ls -l",
            "I look: {\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}",
            "I look.\n[bash(command=\"ls\")]",
            "bash(command=\"ls\")\nlists the files.",
        ] {
            check(text, Some("bash"));
        }
        check(
            "```json\n{\"name\": \"fly\", \"arguments\": {\"to\": \"Rome\"}}\n```",
            Some("fly"),
        );
    }

    #[test]
    fn other_text_does_not_look_like_a_call() {
        for text in [
            "The tag <read_file> takes a path.",
            "`read_file` reads a file; its `path` is the one to read.",
            "A call is written `{\"name\": \"bash\", \"arguments\": {}}` there.",
            "{\"label\": \"build\", \"command\": \"bash build.sh\"}",
            "```yaml\nservices:\n  a:\n    command: bash -c ls\n```",
            "{\"name\": \"bash\", \"version\": \"5.2\"}",
            "{\"name\": \"Launch\", \"program\": \"a.py\", \"args\": []}",
            "The function read_file is in src/a.rs.",
            "name: CI\nshell: bash\ncommand: make",
            "{\"name\": \"bash\", \"parameters\": {\"type\": \"object\", \"properties\": {}}}",
        ] {
            check(text, None);
        }
    }
}
