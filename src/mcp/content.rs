//! The result of a tool, as text.

use rmcp::model::CallToolResult;
use rmcp::model::ContentBlock;
use rmcp::model::ResourceContents;

use super::plain_line;
use super::plain_text::plain_text;

/// Longest text of a result; the model then reads less of it.
const LONGEST: usize = 1 << 20;

/// Most parts of a result that are read.
const MOST_PARTS: usize = 1000;

/// Returns the text of a result, without characters that are not seen. What is no text is named.
pub(super) fn text(result: &CallToolResult) -> String {
    let mut text = joined(result.content.iter().map(part_text));
    // Servers that give both give the same twice.
    if result.content.is_empty()
        && let Some(structured) = &result.structured_content
    {
        text = plain_text(&structured.to_string(), LONGEST);
    }
    if text.trim().is_empty() {
        return "(no output)".to_owned();
    }
    text
}

/// Joins the parts of an answer, as many as there is room for.
pub(super) fn joined(parts: impl ExactSizeIterator<Item = String>) -> String {
    let n_parts = parts.len();
    let mut text = String::new();
    for (n_part, part) in parts.enumerate() {
        if text.len() >= LONGEST || n_part == MOST_PARTS {
            let n_more = n_parts - n_part;
            text.push_str(&format!("\n[{n_more} more parts are left out]"));
            break;
        }
        if n_part > 0 {
            text.push('\n');
        }
        text.push_str(&part);
    }
    text
}

pub(super) fn part_text(part: &ContentBlock) -> String {
    match part {
        ContentBlock::Text(part) => plain_text(&part.text, LONGEST),
        ContentBlock::Image(part) => not_shown("an image", &part.mime_type, part.data.len()),
        ContentBlock::Audio(part) => not_shown("a sound", &part.mime_type, part.data.len()),
        ContentBlock::Resource(part) => resource_text(&part.resource),
        ContentBlock::ResourceLink(link) => format!(
            "[the resource {}, {}: not read]",
            plain_line(&link.uri, 300),
            plain_line(&link.name, 100)
        ),
        _ => "[a part of an unknown kind]".to_owned(),
    }
}

pub(super) fn resource_text(resource: &ResourceContents) -> String {
    match resource {
        ResourceContents::TextResourceContents { uri, text, .. } => {
            format!("[{}]\n{}", plain_line(uri, 300), plain_text(text, LONGEST))
        }
        ResourceContents::BlobResourceContents {
            uri,
            mime_type,
            blob,
            ..
        } => not_shown(
            &format!("the resource {}", plain_line(uri, 300)),
            mime_type.as_deref().unwrap_or("of no known type"),
            blob.len(),
        ),
        _ => "[a resource of an unknown kind]".to_owned(),
    }
}

/// Names what is not shown; its bytes are base64, four for three.
fn not_shown(what: &str, kind: &str, n_encoded: usize) -> String {
    format!(
        "[{what}, {}, {} bytes: not shown]",
        plain_line(kind, 60),
        n_encoded / 4 * 3
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use serde_json::json;

    #[track_caller]
    fn check(result: Value, expected: &str) {
        let result = serde_json::from_value(result).expect("a result");
        assert_eq!(text(&result), expected);
    }

    #[test]
    fn text_is_plain_and_what_is_no_text_is_named() {
        check(
            json!({"content": [
                {"type": "text", "text": "a\u{1b}[2J\u{202e}b"},
                {"type": "image", "data": "AAAA", "mimeType": "image/png\n"},
                {"type": "resource", "resource": {"uri": "file:///a", "text": "c"}},
                {"type": "resource", "resource": {"uri": "file:///b", "blob": "AAAAAAAA"}},
            ]}),
            "a[2Jb\n[an image, image/png, 3 bytes: not shown]\n[file:///a]\nc\n[the resource file:///b, of no known type, 6 bytes: not shown]",
        );
        check(json!({"content": []}), "(no output)");
        check(
            json!({"content": [], "structuredContent": {"a": 1}}),
            "{\"a\":1}",
        );
        check(
            json!({"content": [{"type": "text", "text": "1"}], "structuredContent": {"a": 1}}),
            "1",
        );
    }

    #[test]
    fn many_parts_are_bounded() {
        let part = json!({"type": "text", "text": "x"});
        let result =
            serde_json::from_value(json!({"content": vec![part; 5000]})).expect("a result");
        assert!(text(&result).ends_with("[4000 more parts are left out]"));
    }
}
