//! The tools that a server lists, as a model may be told of them.

use std::collections::BTreeSet;

use rmcp::model::Tool;
use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;
use sha2::Digest;
use sha2::Sha256;

use super::ServerOptions;
use super::plain_line;
use super::resources;
use super::schema;

/// Most tools of one server that are offered.
const MOST_TOOLS: usize = 128;

/// Longest name of a tool, as servers of models take it.
const LONGEST_NAME: usize = 64;

/// Longest description of a tool, in characters.
const LONGEST_DESCRIPTION: usize = 1024;

/// A tool of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// `mcp__SERVER__TOOL`.
    pub name: String,
    pub server: String,
    /// As the server calls it.
    pub tool: String,
    #[serde(default)]
    pub(super) kind: ToolKind,
    pub description: String,
    /// The JSON schema of its arguments.
    pub parameters: Value,
}

/// What a call of a tool asks the server for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ToolKind {
    /// To call its tool.
    #[default]
    Tool,
    ListResources,
    ReadResource,
}

/// The tools of a list that are offered, and why others are not.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    pub(super) tools: Vec<ToolDefinition>,
    pub(super) notes: Vec<String>,
}

/// Returns the tools that can be offered, in the order of the server.
pub(super) fn definitions(
    server: &str,
    options: &ServerOptions,
    listed: &[Tool],
    has_resources: bool,
) -> Definitions {
    let mut found = Definitions::default();
    let mut names = BTreeSet::new();
    let (mut n_unnamed, mut n_double, mut n_more) = (0, 0, 0);
    for tool in listed {
        if !options.tools.lets(&tool.name) {
            continue;
        }
        let Some(name) = full_name(server, &tool.name) else {
            n_unnamed += 1;
            continue;
        };
        if found.tools.len() == MOST_TOOLS {
            n_more += 1;
            continue;
        }
        if !names.insert(name.to_ascii_lowercase()) {
            n_double += 1;
            continue;
        }
        found.tools.push(ToolDefinition {
            name,
            server: server.to_owned(),
            tool: tool.name.clone().into_owned(),
            kind: ToolKind::Tool,
            description: plain_line(
                tool.description.as_deref().unwrap_or_default(),
                LONGEST_DESCRIPTION,
            ),
            parameters: schema::bounded(&tool.input_schema),
        });
    }
    let of_resources = has_resources.then(|| resources::tools(server));
    found.tools.extend(
        of_resources
            .into_iter()
            .flatten()
            .filter(|tool| options.tools.lets(&tool.tool) && !names.contains(&tool.name)),
    );
    let notes = [
        (
            n_unnamed,
            "are left out, since their names have other characters than letters, digits, `_`, `-`, `.` and `/`",
        ),
        (n_double, "are left out, since others have their names"),
        (
            n_more,
            "are left out: `tools.allow` of the server's settings chooses others",
        ),
    ];
    found.notes = notes
        .into_iter()
        .filter(|(n_tools, _)| *n_tools > 0)
        .map(|(n_tools, why)| format!("{n_tools} of its tools {why}"))
        .collect();
    found
}

/// Returns the name that a model calls a tool by; `None` for one that no tool should have.
fn full_name(server: &str, tool: &str) -> Option<String> {
    let is_usual =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/');
    if tool.is_empty() || tool.len() > 256 || !tool.bytes().all(is_usual) {
        return None;
    }
    let name = format!("mcp__{server}__{}", tool.replace(['.', '/'], "_"));
    if name.len() <= LONGEST_NAME {
        return Some(name);
    }
    // Of two long names that begin alike each stays itself.
    let digest = Sha256::digest(tool.as_bytes());
    let mark = format!(
        "_{:02x}{:02x}{:02x}{:02x}",
        digest[0], digest[1], digest[2], digest[3]
    );
    Some(format!("{}{mark}", &name[..LONGEST_NAME - mark.len()]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ToolFilter;
    use serde_json::json;

    fn tool(name: &str) -> Tool {
        serde_json::from_value(json!({"name": name, "description": "Does <it>\u{1b}[0m.\nNow", "inputSchema": {"type": "object"}}))
            .expect("a tool")
    }

    fn names(server: &str, options: &ServerOptions, listed: &[&str]) -> (Vec<String>, Vec<String>) {
        let listed: Vec<Tool> = listed.iter().map(|name| tool(name)).collect();
        let found = definitions(server, options, &listed, false);
        let names = found.tools.into_iter().map(|tool| tool.name).collect();
        (names, found.notes)
    }

    #[test]
    fn names_are_bounded_plain_and_different() {
        let options = ServerOptions::default();
        let (long, other) = (
            format!("a{}", "b".repeat(80)),
            format!("a{}c", "b".repeat(79)),
        );
        let (found, notes) = names(
            "x",
            &options,
            &[
                "now",
                "a.b/c",
                "a_b_c",
                "bash",
                "clear\u{1b}[2J",
                "ⅰ",
                "",
                &long,
                &other,
                "Now",
            ],
        );
        assert_eq!(found[..3], ["mcp__x__now", "mcp__x__a_b_c", "mcp__x__bash"]);
        assert!(
            found.len() == 5
                && found[3] != found[4]
                && found[3..].iter().all(|name| name.len() == 64),
            "{found:?}"
        );
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(
            notes[0].starts_with("3 of its tools are left out, since their names"),
            "{notes:?}"
        );
        assert!(
            notes[1].starts_with("2 of its tools are left out, since others"),
            "{notes:?}"
        );
    }

    #[test]
    fn of_ten_thousand_tools_those_that_are_chosen_count() {
        let listed: Vec<String> = (0..10_000).map(|n| format!("t{n}")).collect();
        let listed: Vec<&str> = listed.iter().map(String::as_str).collect();
        let (found, notes) = names("x", &ServerOptions::default(), &listed);
        assert_eq!((found.len(), notes.len()), (MOST_TOOLS, 1));
        let options = ServerOptions {
            tools: ToolFilter {
                allow: vec!["t9999".into()],
                deny: Vec::new(),
            },
            ..ServerOptions::default()
        };
        assert_eq!(
            names("x", &options, &listed),
            (vec!["mcp__x__t9999".to_owned()], Vec::new())
        );
    }

    #[test]
    fn resources_are_two_tools_beside_those_of_the_server() {
        let listed = [tool("read_resource")];
        let names = |options: &ServerOptions| -> Vec<(String, ToolKind)> {
            let found = definitions("x", options, &listed, true);
            found
                .tools
                .into_iter()
                .map(|tool| (tool.tool, tool.kind))
                .collect()
        };
        let (own, list) = (
            ("read_resource".to_owned(), ToolKind::Tool),
            ("list_resources".to_owned(), ToolKind::ListResources),
        );
        assert_eq!(names(&ServerOptions::default()), [own.clone(), list]);
        let denied = ServerOptions {
            tools: ToolFilter {
                allow: Vec::new(),
                deny: vec!["list_*".into()],
            },
            ..ServerOptions::default()
        };
        assert_eq!(names(&denied), [own]);
    }

    #[test]
    fn a_description_is_one_plain_line() {
        let found = definitions("x", &ServerOptions::default(), &[tool("a")], false);
        assert_eq!(found.tools[0].description, "Does <it> [0m. Now");
    }
}
