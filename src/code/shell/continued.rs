//! Lines that go on in the next one, perhaps in the middle of a word, of which the grammar makes two.

use std::ops::Range;

use tree_sitter::Tree;

use super::parse;

/// Returns a text with its continued lines joined as the shell joins them, which leaves comments and what is quoted; `None` where none is joined, or
/// the text cannot be parsed.
pub(super) fn joined(text: &str) -> Option<String> {
    if !text.contains("\\\n") {
        return None;
    }
    let kept = kept(text, &parse::parse(text)?);
    let mut kept = kept.iter().peekable();
    let mut joined = String::with_capacity(text.len());
    let mut from = 0;
    for end in ends(text) {
        while kept.next_if(|range| range.end <= end).is_some() {}
        if kept.peek().is_none_or(|range| end < range.start) {
            joined.push_str(&text[from..end]);
            from = end + 2;
        }
    }
    joined.push_str(&text[from..]);
    (joined.len() < text.len()).then_some(joined)
}

/// Returns where a backslash stands in front of a line's end, and no other one in front of it that takes its meaning.
fn ends(text: &str) -> impl Iterator<Item = usize> {
    let is_meant = |at: usize| (at - text[..at].trim_end_matches('\\').len()).is_multiple_of(2);
    text.match_indices("\\\n").map(|(at, _)| at).filter(move |at| is_meant(*at))
}

/// Returns the parts of a text in which a backslash joins no lines, in their order.
fn kept(text: &str, tree: &Tree) -> Vec<Range<usize>> {
    let mut kept = Vec::new();
    let mut is_quoted = false;
    let mut cursor = tree.walk();
    'nodes: loop {
        let node = cursor.node();
        match node.kind() {
            "comment" | "raw_string" | "ansi_c_string" => kept.push(node.byte_range()),
            "heredoc_start" => is_quoted = text[node.byte_range()].contains(['\'', '"', '\\']),
            "heredoc_body" if is_quoted => kept.push(node.byte_range()),
            _ => {}
        }
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                break 'nodes;
            }
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_joined_as_the_shell_joins_them() {
        for (text, expected) in [
            ("r\\\nm x", Some("rm x")),
            ("git \\\n  log \\\n -5", Some("git   log  -5")),
            ("\"r\\\nm\" x", Some("\"rm\" x")),
            ("ls `r\\\nm`", Some("ls `rm`")),
            ("# x \\\nr\\\nm x", Some("# x \\\nrm x")),
            ("cat <<E\na\\\nb\nE\nr\\\nm x", Some("cat <<E\nab\nE\nrm x")),
            ("cat <<'E'\na\\\nb\nE\nr\\\nm x", Some("cat <<'E'\na\\\nb\nE\nrm x")),
            ("'a\\\nb'", None),
            ("$'a\\\nb'", None),
            ("echo a\\\\\nrm x", None),
            ("echo a\\\\\\\nrm x", Some("echo a\\\\rm x")),
            ("ls; pwd", None),
        ] {
            assert_eq!(joined(text).as_deref(), expected, "{text}");
        }
    }
}
