//! Nodes within a word: expansions, and the commands in them.

use std::ops::Range;

use tree_sitter::Node;

use super::Open;
use super::Walk;
use super::certain::is_plain_expansion;
use super::certain::variables_of_arithmetic;

impl Walk<'_> {
    /// Takes a node in a word: what is opaque in it, and the commands in that.
    pub(super) fn inside(&mut self, node: Node<'_>, kind: &str) -> bool {
        match kind {
            "command_substitution" | "process_substitution" => {
                self.opaque(node.byte_range());
                let text = self.text(node);
                if text.starts_with(['`']) && text.contains('\\') {
                    self.doubt(node, "a backslash between backquotes");
                } else if text.starts_with("$`") {
                    self.doubt(node, "a substitution that cannot be followed");
                }
                self.before = node.start_byte();
                self.push(Open::Statements);
            }
            "simple_expansion" => self.opaque(node.byte_range()),
            "expansion" => {
                self.opaque(node.byte_range());
                if !is_plain_expansion(self.text(node)) {
                    self.doubt(node, "an expansion that may do more than insert a value");
                }
            }
            "arithmetic_expansion" => {
                self.opaque(node.byte_range());
                self.computed(node, variables_of_arithmetic(self.text(node)));
            }
            "array" => {
                self.opaque(node.byte_range());
                self.before = node.start_byte();
                let before = &self.source[..node.start_byte()];
                let name = before.trim_end_matches('=').trim_end_matches('+');
                let begin = name.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || c == '_').len();
                self.push(Open::List { variable: name[begin..].to_owned() });
            }
            _ => {}
        }
        true
    }

    /// Notes an expansion, unless it is part of one.
    fn opaque(&mut self, range: Range<usize>) {
        let list = match self.open.iter_mut().rev().map(|(_, open)| open).find(|open| !matches!(open, Open::HeredocBody { .. })) {
            Some(Open::Word { opaque, .. }) => opaque,
            Some(Open::Heredoc { heredoc, .. }) => &mut heredoc.opaque,
            _ => return,
        };
        if list.last().is_none_or(|last| last.end <= range.start) {
            list.push(range);
        }
    }
}
