use std::fs::File;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Error;
use podbay_event::ToolCall;
use podbay_event::json_fault;
use podbay_llm as llm;
use podbay_llm::ToolSpec;
use podbay_llm::text;
use podbay_tools::Catalogue;
use podbay_tools::Options;
use podbay_tools::ToolSet;

/// Longest text that is read, in bytes.
const MOST_TEXT: u64 = 16 << 20;
/// Longest list of tools, in bytes.
const MOST_TOOLS: u64 = 4 << 20;

/// What Podbay understands of a model's text.
#[derive(Debug, Serialize)]
pub struct ParsedText {
    content: String,
    reasoning: String,
    calls: Vec<ParsedCall>,
    incomplete: Option<ParsedIncomplete>,
}

#[derive(Debug, Serialize)]
struct ParsedCall {
    name: String,
    /// As text: a value of ours would lose digits of long numbers.
    arguments: Box<RawValue>,
}

#[derive(Debug, Serialize)]
struct ParsedIncomplete {
    /// `call`, `unreadable`, `unclear` or `reasoning`.
    part: &'static str,
    name: Option<String>,
    text: String,
}

/// Reads a model's raw text as a session would.
///
/// `tools` is a file with `OpenAI`'s list of tools; without one all of our own are known. `hint`
/// names the format of the model's template.
pub fn parse_text(
    input: impl Read,
    tools: Option<&Path>,
    hint: Option<&str>,
) -> Result<ParsedText, Error> {
    let hint = hint.map(find_hint).transpose()?;
    let tools = match tools {
        Some(path) => read_tools(path)?,
        None => own_tools(),
    };
    let bytes = bounded(
        input,
        MOST_TEXT,
        "the text on the standard input",
        "one answer of a model is enough",
    )?;
    let text = String::from_utf8(bytes).map_err(|error| {
        Error::usage(
            format!(
                "the text on the standard input is not UTF-8: byte {} is wrong",
                error.utf8_error().valid_up_to() + 1
            ),
            "hand over what the model wrote, not a compressed or binary answer of its server",
        )
    })?;
    let tools = text::Tools::new(&tools);
    let mut parsed = text::parse(&text, &tools, hint);
    // A marked call of a tool that is not known is one, too. An answer that is longer than a
    // session takes has no such.
    if hint.is_none()
        && let Ok(reply) = llm::understood(&text, &tools)
        && reply.calls.len() != parsed.calls.len()
    {
        let call = |call: ToolCall| text::Call {
            name: call.name,
            arguments: call.arguments,
        };
        let calls = reply.calls.into_iter().map(call).collect();
        parsed = text::Parsed {
            content: reply.text,
            reasoning: reply.thinking,
            calls,
            ..parsed
        };
    }
    Ok(ParsedText {
        content: parsed.content,
        reasoning: parsed.reasoning,
        calls: parsed.calls.into_iter().map(ParsedCall::from).collect(),
        incomplete: parsed.incomplete.map(ParsedIncomplete::from),
    })
}

impl From<text::Call> for ParsedCall {
    fn from(call: text::Call) -> Self {
        let arguments =
            RawValue::from_string(call.compact()).unwrap_or_else(|_| RawValue::NULL.to_owned());
        Self {
            name: call.name,
            arguments,
        }
    }
}

impl From<text::Incomplete> for ParsedIncomplete {
    fn from(incomplete: text::Incomplete) -> Self {
        let part = match incomplete.part {
            text::IncompletePart::Call => "call",
            text::IncompletePart::Unreadable => "unreadable",
            text::IncompletePart::Unclear => "unclear",
            text::IncompletePart::Reasoning => "reasoning",
        };
        Self {
            part,
            name: incomplete.name,
            text: incomplete.text,
        }
    }
}

fn find_hint(name: &str) -> Result<text::Hint, Error> {
    text::Hint::find(name).ok_or_else(|| {
        Error::usage(
            format!("no template is known by the name `{name}`"),
            format!("there are: {}", text::Hint::names().join(", ")),
        )
    })
}

/// Returns all tools of our own under each of their names, as a session knows them.
fn own_tools() -> Vec<ToolSpec> {
    let catalogue = Catalogue::new(&Options {
        set: ToolSet::Full,
        ..Options::default()
    });
    let spec = |tool: &podbay_tools::Tool| ToolSpec {
        name: tool.name.to_owned(),
        description: tool.description.to_owned(),
        parameters: tool.parameters.clone(),
    };
    catalogue
        .tools()
        .iter()
        .map(spec)
        .chain(catalogue.unlisted_tools())
        .collect()
}

fn read_tools(path: &Path) -> Result<Vec<ToolSpec>, Error> {
    const HINT: &str = "it holds a JSON array of names, or of tools as they stand in a request: [{\"type\": \"function\", \"function\": {\"name\": \"…\"}}]";
    let shown = path.display();
    let file = open_file(path).map_err(|problem| {
        Error::usage(
            format!("the list of tools {shown} cannot be read: {problem}"),
            HINT,
        )
    })?;
    let bytes = bounded(
        file,
        MOST_TOOLS,
        &format!("the list of tools {shown}"),
        HINT,
    )?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|error| {
        Error::usage(
            format!("the list of tools {shown} {}", json_fault(&error)),
            HINT,
        )
    })?;
    let list = value.get("tools").unwrap_or(&value);
    let Value::Array(entries) = list else {
        return Err(Error::usage(
            format!("the list of tools {shown} is no list"),
            HINT,
        ));
    };
    let tool = |(n, entry): (usize, &Value)| {
        tool(entry).ok_or_else(|| {
            Error::usage(
                format!("entry {} of the list of tools {shown} has no name", n + 1),
                HINT,
            )
        })
    };
    entries.iter().enumerate().map(tool).collect()
}

fn tool(entry: &Value) -> Option<ToolSpec> {
    let entry = entry.get("function").unwrap_or(entry);
    let name = entry
        .as_str()
        .or_else(|| entry.get("name")?.as_str())
        .filter(|name| !name.trim().is_empty())?;
    let parameters = ["parameters", "input_schema", "inputSchema"]
        .iter()
        .find_map(|key| entry.get(*key))
        .cloned()
        .unwrap_or_default();
    Some(ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        parameters,
    })
}

/// Opens a plain file, and nothing else: nobody may ever write into a pipe, and a device has no
/// end.
fn open_file(path: &Path) -> Result<File, String> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
        .map_err(|error| error.to_string())?;
    let facts = file.metadata().map_err(|error| error.to_string())?;
    match facts.file_type() {
        kind if kind.is_file() => Ok(file),
        kind if kind.is_dir() => Err("it is a folder".to_owned()),
        _ => Err("it is a pipe or a device, and only a plain file is read".to_owned()),
    }
}

/// Reads everything, as long as it is not too much.
fn bounded(input: impl Read, most: u64, what: &str, hint: &str) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let read = input.take(most + 1).read_to_end(&mut bytes);
    read.map_err(|error| {
        Error::usage(
            format!("{what} cannot be read: {error}"),
            "name a file, or pipe one in",
        )
    })?;
    if bytes.len() as u64 > most {
        return Err(Error::usage(
            format!("{what} is over {} MiB", most >> 20),
            hint,
        ));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tools_are_listed_in_several_ways() {
        let folder = tempfile::tempdir().expect("made");
        let path = folder.path().join("tools.json");
        let read = |text: &str| {
            std::fs::write(&path, text).expect("written");
            read_tools(&path).map(|tools| {
                tools
                    .into_iter()
                    .map(|tool| (tool.name, tool.parameters))
                    .collect::<Vec<_>>()
            })
        };
        let expected = vec![("a".to_owned(), json!({"x": 1}))];
        for text in [
            r#"[{"type": "function", "function": {"name": "a", "parameters": {"x": 1}}}]"#,
            r#"[{"name": "a", "input_schema": {"x": 1}}]"#,
            r#"{"model": "m", "tools": [{"name": "a", "parameters": {"x": 1}}]}"#,
        ] {
            assert_eq!(read(text).expect("is a list"), expected);
        }
        assert_eq!(
            read(r#"["a"]"#).expect("is a list"),
            [("a".to_owned(), Value::Null)]
        );
        for (text, words) in [
            ("{", "ends in the middle"),
            ("[\n]]", "is no JSON from line 2, column 2 on"),
            ("{}", "is no list"),
            (r#"["a", {"x": 1}]"#, "entry 2"),
            (r#"[""]"#, "entry 1"),
        ] {
            let error = read(text).expect_err("is none");
            assert!(
                error.to_string().contains(words) && error.exit_code() == 2,
                "{error}"
            );
        }
    }

    #[test]
    fn a_marked_call_is_one_whatever_words_are_around_it_and_any_other_only_alone() {
        let bare = "{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}";
        let call = format!("<tool_call>{bare}</tool_call>");
        let read = |text: &str| {
            let parsed = parse_text(text.as_bytes(), None, None).expect("is read");
            (
                parsed.calls.len(),
                parsed.content,
                parsed.incomplete.map(|incomplete| incomplete.part),
            )
        };
        assert_eq!(
            read(&format!("I look.\n{call}")),
            (1, "I look.".to_owned(), None)
        );
        assert_eq!(read(&format!("You write {call} to see it.")).0, 1);
        let other = call.replace("ls", "pwd");
        assert_eq!(
            read(&format!("I look.\n{call}\nThen it is:\n{other}\nDone.")).0,
            2
        );
        assert_eq!(
            read(&format!("I look.\n{call}\nAs I said:\n{call}\nDone.")).0,
            1,
            "said twice"
        );
        assert_eq!(read(bare), (1, String::new(), None));
        for text in [
            format!("I look:\n{bare}"),
            format!("The model emits:\n\n```json\n{bare}\n```\n\nThe client runs it."),
        ] {
            assert_eq!(read(&text), (0, text.clone(), Some("unclear")));
        }
        assert_eq!(
            read(&format!("<think>I should not {call} at all.</think>")).0,
            0
        );
    }

    #[test]
    fn a_marked_call_of_a_tool_that_is_not_known_is_one_as_in_a_session() {
        for text in [
            r#"<tool_call>{"name": "get_weather", "arguments": {"city": "x"}}</tool_call>"#,
            "<function=get_weather>\n<parameter=city>\nx\n</parameter>\n</function>",
            r#"[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "x"}}]"#,
        ] {
            let parsed = parse_text(text.as_bytes(), None, None).expect("is read");
            let calls: Vec<(&str, &str)> = parsed
                .calls
                .iter()
                .map(|call| (call.name.as_str(), call.arguments.get()))
                .collect();
            assert_eq!(
                (calls, parsed.content.as_str()),
                (vec![("get_weather", r#"{"city":"x"}"#)], ""),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_plain_file_is_refused_at_once_and_why() {
        let folder = tempfile::tempdir().expect("made");
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("made");
        let large = folder.path().join("large.json");
        File::create(&large)
            .and_then(|file| file.set_len(MOST_TOOLS + 1))
            .expect("written");
        for (path, words) in [
            (pipe.as_path(), "it is a pipe or a device"),
            (Path::new("/dev/zero"), "it is a pipe or a device"),
            (folder.path(), "it is a folder"),
            (&large, "is over 4 MiB"),
        ] {
            let report = read_tools(path).expect_err("is no list").report();
            assert!(report.message.contains(words), "{report:?}");
            assert!(
                report
                    .hints
                    .iter()
                    .any(|hint| hint.contains("a JSON array of names")),
                "{report:?}"
            );
        }
    }

    #[test]
    fn too_much_is_refused() {
        let error = parse_text(std::io::repeat(b'x'), None, None).expect_err("is endless");
        assert_eq!(
            (error.exit_code(), error.to_string()),
            (
                2,
                "the text on the standard input is over 16 MiB".to_owned()
            )
        );
    }
}
