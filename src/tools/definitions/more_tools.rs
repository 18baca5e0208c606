use serde::Deserialize;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use crate::ToolSet;
use crate::arguments::bounded;
use crate::arguments::parse;
use crate::tool::Tool;
use crate::tool::object;
use podbay_policy::Action;
use podbay_policy::FindTools;
use podbay_policy::HostCall;

/// The tool through which unlisted tools are reached.
pub(crate) const NAME: &str = "more_tools";

/// Most tools shown for a query.
const FOUND: u32 = 10;
/// Most tools of one answer.
const MOST: u32 = 50;

#[derive(Deserialize)]
struct Arguments {
    tool: Option<String>,
    #[serde(default)]
    tools: Vec<String>,
    query: Option<String>,
    max_results: Option<i64>,
}

/// A call of another tool, wrapped in one of this.
#[derive(Debug)]
pub(crate) struct Wrapped {
    pub(crate) name: String,
    /// JSON text.
    pub(crate) arguments: String,
}

/// Finds and calls the tools that are not listed, so that they take no room in every request and
/// the prompt's prefix stays the same.
pub(super) fn tool() -> Tool {
    Tool::new(
        NAME,
        "Find and use other tools. Without arguments it lists them.",
        object(
            &json!({
                "tool": { "type": "string", "description": "Tool to use; without arguments: how to use it" },
                "arguments": { "type": "object" },
                "query": { "type": "string", "description": "Words to find tools by" },
            }),
            &[],
        ),
        |arguments, _, notes| {
            let Arguments { tool, mut tools, query, max_results } = parse(arguments)?;
            tools.extend(tool.filter(|tool| !tool.trim().is_empty()));
            if tools.len() > MOST as usize {
                return Err(format!("`tools` names more than {MOST} tools"));
            }
            let query = query.filter(|query| !query.trim().is_empty());
            if let (Some(name), Some(_)) = (tools.first(), &query) {
                let name: String = name.chars().take(60).collect();
                return Err(format!(
                    "`query` finds tools, and `tool` is one of them: leave out `query` to read how to use `{name}`, or `tool` to search"
                ));
            }
            // A query returns the best matches; without one all are listed.
            let default = if query.is_some() { FOUND } else { MOST };
            let max_results = bounded("max_results", max_results, default, MOST, notes)?;
            Ok(Action::Host(HostCall::FindTools(FindTools { names: tools, query, max_results })))
        },
    )
    .known_as(&["tool_search", "ToolSearch", "use_tool", "call_tool"])
    .renamed(&[("name", "tool"), ("tool_name", "tool"), ("args", "arguments"), ("parameters", "arguments"), ("input", "arguments")])
    .also_takes(&json!({
        "tools": { "type": "array", "items": { "type": "string" } },
        "max_results": { "type": "integer" },
        "list_deferred": { "type": "boolean" },
    }))
    .in_sets_from(ToolSet::Small)
    .such_as(r#"{"tool": "mkdir", "arguments": {"path": "src/new"}}"#)
}

/// Returns the call that is wrapped in this one, if any: a tool is named and its arguments are
/// given, even empty ones.
pub(crate) fn wrapped(arguments: &Map<String, Value>) -> Result<Option<Wrapped>, String> {
    let Some(inner) = arguments.get("arguments") else {
        return Ok(None);
    };
    let Some(name) = arguments.get("tool").and_then(Value::as_str) else {
        return Err("`tool` is missing: the name of the tool that `arguments` are for".to_owned());
    };
    if arguments.contains_key("query") || arguments.contains_key("tools") {
        return Err(
            "`arguments` are for one `tool`; look for others in a call of its own".to_owned(),
        );
    }
    Ok(Some(Wrapped {
        name: name.to_owned(),
        arguments: inner.to_string(),
    }))
}
