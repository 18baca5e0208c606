//! Answers that are a block in no form that is known, and name a tool with all that it must have: `<write_file><path>a</path>…`,
//! `@read_file {…}`, a list of fields. There are more of those forms than can be listed.
//!
//! Nothing is carried out by such a guess. But an answer that ends with nothing done must not pass for one that is done, so the model is asked.

use super::tools::Tools;

/// How far from the beginning such a block begins, and how far from there its tool stands, in bytes.
const NEAR: usize = 300;
/// How much of an answer is looked at, in bytes.
pub(super) const MAX: usize = 4096;
/// Words before a colon that begin such a block.
const LABELS: [&str; 7] = ["tool", "tool_name", "tool_call", "action", "function", "call", "name"];

/// Returns the tool that an answer seems to call by a block that is all of it but for a few words before; `head` is its beginning.
pub(super) fn named<'t>(head: &str, tools: &'t Tools) -> Option<&'t str> {
    if let Some(name) = acted(head, tools) {
        return Some(name);
    }
    let block = &head[begin(head, tools)?..];
    // A sentence at its end is about it, and a schema tells of a tool.
    if block.trim_end().ends_with(['.', '!', '?', ':']) || block.contains("\"properties\"") {
        return None;
    }
    let near = &block[..block.floor_char_boundary(NEAR)];
    let (word, name) = words(near).find_map(|word| Some((word, tools.resolve(word).filter(|name| is_telling(name))?)))?;
    let behind = &block[word.as_ptr().addr() - block.as_ptr().addr() + word.len()..];
    let required = tools.required(name)?;
    let has_all = required.iter().all(|field| is_field(behind, field));
    // What needs nothing has a value all the same, or nothing beside its name, and that name is what the block is about.
    let has_some = || tools.parameters(name).any(|field| is_field(behind, field)) || is_bare(behind, name);
    (has_all && (!required.is_empty() || is_head(block, word, behind) && has_some())).then_some(name)
}

/// Returns whether a word that stands before `behind` heads a block: `<word>…`, `{"word": {…}}`, `Tool: word`, `@word`, but for a few words such as
/// marks are made of. Many a file has such a word for a key, or in a list.
fn is_head(block: &str, word: &str, behind: &str) -> bool {
    let before = &block[..block.len() - behind.len() - word.len()];
    if block.starts_with('{') {
        let is_first = before.trim_start_matches('{').trim() == "\"";
        return is_first && behind.trim_start_matches(['"', ':', ' ', '\n']).starts_with('{') && behind.trim_end().ends_with("}}");
    }
    // What a page tells of one begins so, too.
    let is_of_page = ["function", "name", "call"].contains(&before.trim_end_matches([':', ' ']).to_ascii_lowercase().as_str());
    !is_of_page && !before.contains('>') && words(before).count() <= 4
}

/// Returns whether nothing stands behind a tool's name but what ends its block, or says that there are no arguments.
fn is_bare(behind: &str, name: &str) -> bool {
    words(behind).all(|word| word == name || ["args", "arguments", "input", "parameters", "params", "tool_call"].contains(&word))
}

/// Returns the tool that an agent's turn names which has no object for its arguments: `Action: bash` above `Action Input: ls`, or both in an
/// object.
fn acted<'t>(head: &str, tools: &'t Tools) -> Option<&'t str> {
    let (action, is_input_next) = if head.trim_start().starts_with('{') {
        let is_one = head.trim_end().ends_with('}') && !head.contains('[');
        (head.split_once("\"action\"")?.1, is_one && head.contains("\"action_input\""))
    } else {
        let at = if head.starts_with("Action:") { 0 } else { head.find("\nAction:")? + 1 };
        let mut lines = head[at..].lines().map(str::trim).filter(|line| !line.is_empty());
        let action = lines.next()?.strip_prefix("Action:")?;
        let is_input_next = lines.next().is_some_and(|line| line.starts_with("Action Input:"));
        // In a fence, behind a page of words or before others it is shown.
        let is_last = lines.next().is_none_or(|line| line.trim_end_matches(':') == "Observation") && lines.next().is_none();
        (action, is_input_next && is_last && at <= NEAR && !head[..at].contains("```") && !head.contains("Final Answer:"))
    };
    let name = words(action).next()?;
    tools.resolve(name).filter(|_| is_input_next)
}

/// Returns where the first line begins that is no words. Code is none of it, unless its fence has the name of a tool.
fn begin(head: &str, tools: &Tools) -> Option<usize> {
    let near = &head[..head.floor_char_boundary(NEAR)];
    let is_code = |line: &&str| {
        let text = line.trim_start();
        let word = text.trim_start_matches(['`', '~']);
        text.len() - word.len() >= 3 && !tools.has(word)
    };
    near.split_inclusive('\n').take_while(|line| !is_code(line)).find_map(|line| {
        let text = line.trim_start();
        let label = text.split_once(':').map(|(label, _)| label.trim().to_ascii_lowercase());
        let is_block = text.starts_with(['<', '{', '@', '&', '\u{273f}'])
            || text.starts_with("```")
            || text.contains("to=functions.")
            || label.is_some_and(|label| LABELS.contains(&label.as_str()));
        is_block.then(|| line.as_ptr().addr() - head.as_ptr().addr())
    })
}

/// Returns whether nobody writes a tool's name by chance: the names of programs stand in many a file that was asked for.
fn is_telling(name: &str) -> bool {
    name.contains('_')
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

/// Returns whether a text gives a value to a name: `"path": …`, `path=…`, `<path>…`.
fn is_field(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let behind = text[at + name.len()..].trim_start_matches(['"', '\'', '\\', ' ']);
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_') && behind.starts_with([':', '=', '>'])
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Tools;
    use super::super::corpus::tools;
    use super::super::parse;
    use super::super::parser::Part;
    use crate::message::ToolSpec;

    /// As our own are: `read_file` takes one path or several.
    fn lenient() -> Tools {
        let spec = |name: &str, parameters| ToolSpec { name: name.into(), description: String::new(), parameters };
        let string = json!({"type": "string"});
        Tools::new(&[
            spec("bash", json!({"type": "object", "properties": {"command": string}, "required": ["command"]})),
            spec("read_file", json!({"type": "object", "properties": {"path": string, "paths": {"type": "array"}}})),
            spec("git_log", json!({"type": "object", "properties": {"limit": {"type": "integer"}}})),
        ])
    }

    #[track_caller]
    fn asked(tools: &Tools, text: &str, name: &str) {
        let parsed = parse(text, tools, None);
        assert_eq!(parsed.calls.len(), 0, "{text}");
        // Where its arguments can be read they are those of a call that may be confirmed.
        let read = parsed.mentions.iter().flat_map(|mention| &mention.calls).map(|call| (Part::Unclear, Some(call.name.as_str())));
        let asked: Vec<_> = read.chain(parsed.incomplete.iter().map(|one| (one.part, one.name.as_deref()))).collect();
        assert_eq!(asked, [(Part::Unclear, Some(name))], "{text}");
    }

    #[test]
    fn a_block_that_names_a_tool_and_all_it_must_have_is_asked_about() {
        for text in [
            "<read_file>\n<path>c.txt</path>\n</read_file>",
            "I look.\n\n<read_file>\n<path>ls -l</path>\n</read_file>",
            "{\"read_file\": {\"path\": \"a\"}}",
            "assistantcommentary to=functions.read_file json{\"path\":\"a\"}",
            "&lt;tool_call&gt;{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}&lt;/tool_call&gt;",
            "```read_file\n{\"path\": \"a\"}\n```",
            "Tool: read_file\nArguments: {\"path\": \"a\"}",
            "@read_file {\"path\": \"a\"}",
            "\u{273f}FUNCTION\u{273f}: read_file\n\u{273f}ARGS\u{273f}: {\"path\": \"a\"}",
            "tool: read_file\nargs:\n  path: ls",
        ] {
            asked(&tools(), text, "read_file");
            asked(&lenient(), text, "read_file");
        }
        asked(&tools(), "{\"thought\": \"hm\", \"step\": {\"do\": \"read_file\", \"with\": {\"path\": \"a\"}}}", "read_file");
        // With nothing that must be there one argument says as much, or none at all.
        for text in [
            "<git_log>\n<limit>3</limit>\n</git_log>",
            "<git_log></git_log>",
            "{\"git_log\": {\"limit\": 3}}",
            "{\"git_log\": {}}",
            "Tool: git_log\nArguments: {\"limit\": 3}",
            "@git_log {}",
        ] {
            asked(&lenient(), text, "git_log");
        }
        for text in [
            "Thought: I must make the file.\nAction: bash\nAction Input: touch zz.txt",
            "Action: bash\nAction Input: \"touch zz.txt\"\nObservation:",
            "{\"action\": \"bash\", \"action_input\": \"touch zz.txt\"}",
        ] {
            asked(&tools(), text, "bash");
        }
        for text in [
            "The tag <read_file> takes <path>c.txt</path>, as the page says.",
            "`read_file` reads a file; its `path` is the one to read.",
            "{\"label\": \"build\", \"command\": \"bash build.sh\"}",
            "```yaml\nservices:\n  a:\n    command: bash -c ls\n```",
            "```sh\nbash run.sh --path=x\n```",
            "[1] The function read_file is in src/a.rs: it takes path and limit.",
            "<p>bash</p>",
            "{\"shell\": \"bash\", \"command\": \"make test\"}",
            "<h1>How to use bash</h1>\n<p>command: run it</p>",
            "`src/read_file.rs` had the bug; it is fixed\n\n```rust\nlet path = x;\n```",
            "name: CI\nshell: bash\ncommand: make",
            "{\"version\": \"1.4.2\", \"git_log\": \"3f2a1bc\", \"limit\": 3}",
            "{\n  \"build\": {\n    \"version\": \"1\",\n    \"git_log\": \"main\",\n    \"limit\": 3\n  }\n}",
            "<ul>\n<li>git_log: limit=3</li>\n</ul>",
            "It describes the format:\n\n```\nThought: I list\nAction: bash\nAction Input: ls\n```\n\nThe agent parses these lines.",
            "Action: bash\nAction Input: ls\nObservation: a.txt\nThought: I know.\nFinal Answer: there is one file.",
            "{\"steps\": [{\"action\": \"bash\", \"action_input\": \"ls\"}]}",
            "Thought: I look.\nAction: bash\nAction Input: ls\nObservation: total 0\nThought: empty\nAction: bash\nAction Input: ls\nObservation: ok\n",
            "Action: bash\nAction Input: ls\nis what it writes.\nIt is an old form.",
        ] {
            for tools in [tools(), lenient()] {
                let parsed = parse(text, &tools, None);
                assert_eq!((parsed.incomplete, parsed.mentions), (None, Vec::new()), "{text}");
            }
        }
        let config = "Here is the config:\n\n{\n  \"allow\": [\"read_file\", \"bash\"],\n  \"path\": \"/workspace\"\n}";
        let page = "Function: read_file\nFile: src/tools/read_file.rs\nCause: `path: None` is passed on\nFix: check it first";
        for text in [config, page] {
            assert_eq!(parse(text, &lenient(), None).incomplete, None, "{text}");
        }
    }
}
