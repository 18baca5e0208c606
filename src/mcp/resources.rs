//! Resources of a server, as two tools: one lists them, one reads one.

use rmcp::model::ReadResourceResult;
use rmcp::model::Resource;
use serde_json::json;

use super::ToolDefinition;
use super::content;
use super::definition::ToolKind;
use super::plain_line;

/// Most resources that a list shows.
const MOST_SHOWN: usize = 200;

/// Returns the tools by which a model reaches the resources of a server; a tool of the server's own
/// wins over one of the same name.
pub(super) fn tools(server: &str) -> [ToolDefinition; 2] {
    let tool = |tool: &str, kind: ToolKind, description: String, parameters| ToolDefinition {
        name: format!("mcp__{server}__{tool}"),
        server: server.to_owned(),
        tool: tool.to_owned(),
        kind,
        description,
        parameters,
    };
    [
        tool(
            "list_resources",
            ToolKind::ListResources,
            format!(
                "Lists the resources of the server {server}: a URI, a name and a description of each."
            ),
            json!({"type": "object", "properties": {}}),
        ),
        tool(
            "read_resource",
            ToolKind::ReadResource,
            format!("Reads a resource of the server {server} by its URI."),
            json!({
                "type": "object",
                "properties": {"uri": {"type": "string", "description": "As list_resources shows it."}},
                "required": ["uri"],
            }),
        ),
    ]
}

/// Returns a list of resources as text, a line each.
pub(super) fn list_text(resources: &[Resource]) -> String {
    let line = |resource: &Resource| {
        let about = resource.description.as_deref().unwrap_or_default();
        let parts = [
            (resource.uri.as_str(), 300),
            (&resource.name, 100),
            (about, 200),
        ];
        let parts = parts.map(|(part, most)| plain_line(part, most));
        parts.join("  ").trim_end().to_owned()
    };
    let mut lines: Vec<String> = resources.iter().take(MOST_SHOWN).map(line).collect();
    let n_more = resources.len() - lines.len();
    lines.extend((n_more > 0).then(|| format!("[{n_more} more are left out]")));
    if lines.is_empty() {
        return "(no resources)".to_owned();
    }
    lines.join("\n")
}

/// Returns what a resource holds, as text.
pub(super) fn text(result: &ReadResourceResult) -> String {
    content::joined(result.contents.iter().map(content::resource_text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_bounded_and_plain() {
        assert_eq!(list_text(&[]), "(no resources)");
        let one = Resource::new("file:///a\u{1b}[2J", "a\nb");
        assert_eq!(list_text(std::slice::from_ref(&one)), "file:///a [2J  a b");
        let many = vec![one; MOST_SHOWN + 5];
        let text = list_text(&many);
        assert_eq!(text.lines().count(), MOST_SHOWN + 1);
        assert!(text.ends_with("[5 more are left out]"), "{text}");
    }
}
