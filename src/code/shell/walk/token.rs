//! Tokens, and what stands between them.

use tree_sitter::Node;

use super::Kind;
use super::Last;
use super::Open;
use super::Walk;
use crate::shell::Word;
use crate::shell::WordKind;
use crate::shell::gap;
use crate::shell::word;

impl Walk<'_> {
    pub(super) fn gap(&mut self, node: Node<'_>) {
        // What opens a substitution may stand in the middle of a word.
        if node.start_byte() == self.before && matches!(node.kind(), "$(" | "`" | "<(" | ">(") {
            return;
        }
        let (is_within, at) = match self.open.last() {
            Some((_, Open::Command { at, start, kind: Kind::Simple | Kind::Test { .. }, .. } | Open::Redirect { at, start, .. })) => {
                (self.before > *start, Some(*at))
            }
            Some((_, Open::Heredoc { at, .. })) => (node.kind() != "heredoc_end", Some(*at)),
            Some((_, Open::Command { at, kind: Kind::Redirected, .. })) => (false, Some(*at)),
            _ => (false, None),
        };
        let start = node.start_byte();
        // The sign belongs to `<<-`, whose word may stand right behind it.
        if node.kind() == "heredoc_start" && start == self.before && self.source[..start].ends_with("<<-") {
            return;
        }
        // The grammar drops a lone `-` in front of a redirection.
        if let (Some(at), Some(" - ")) = (at, self.source.get(self.before..start)) {
            self.found.commands[at].words.push(Word { text: "-".to_owned(), kind: WordKind::Known, plain: true, quoted: false });
        } else if let Err(why) = gap::check(self.source, self.before, start, is_within) {
            let from = self.before.min(start);
            let source = self.source;
            self.found.doubt(&source[from..node.end_byte()], why);
        }
    }

    pub(super) fn comment(&mut self, node: Node<'_>) {
        self.gap(node);
        let before = node.start_byte().checked_sub(1).and_then(|at| self.source.as_bytes().get(at));
        if before.is_some_and(|byte| gap::is_in_word(*byte))
            || matches!(self.open.last(), Some((_, Open::Command { kind: Kind::Test { .. }, .. })))
        {
            self.doubt(node, "a comment in the middle of a word");
        }
        self.before = node.end_byte();
    }

    /// Takes back a number right in front of what is read into a command, which the grammar takes for a word: `sh 0< FILE`.
    fn drop_descriptor(&mut self, end: usize) {
        let Some((_, Open::Redirect { at, .. })) = self.open.last() else { return };
        let before = self.source[..end].trim_end_matches(|c: char| c.is_ascii_digit());
        let words = &mut self.found.commands[*at].words;
        let is_number = before.len() < end && before.chars().next_back().is_none_or(|c| c.is_whitespace() || ";|&({".contains(c));
        if is_number && words.last().is_some_and(|word| word.text == self.source[before.len()..end]) {
            words.pop();
        }
    }

    /// Takes a token of the grammar.
    pub(super) fn leaf(&mut self, node: Node<'_>, counts: bool) {
        self.gap(node);
        let kind = node.kind();
        let text = &self.source[node.byte_range()];
        self.before = node.end_byte();
        let goes_on = self.last.is_some_and(|last| last.end == node.start_byte()) && text.bytes().next().is_some_and(gap::is_in_word);
        let mut wrong = goes_on.then_some(gap::JOINED);
        if text.starts_with('<') {
            self.drop_descriptor(node.start_byte());
        }
        match self.open.last_mut() {
            Some((_, Open::Redirect { operator, .. })) if kind != "file_descriptor" => {
                let is_rest = text == "<" && self.source[..node.start_byte()].ends_with("<<");
                if is_rest { "<<<" } else { text }.clone_into(operator);
            }
            Some((_, Open::Heredoc { heredoc, .. })) => match kind {
                "heredoc_start" => text.clone_into(&mut heredoc.delimiter),
                "heredoc_end" => {
                    heredoc.end = Some(node.byte_range());
                }
                "<<-" => heredoc.strips_tabs = true,
                _ => {}
            },
            Some((_, Open::Command { at, kind: Kind::Simple, .. })) if counts => {
                let words = &mut self.found.commands[*at].words;
                wrong = word::read(self.source, node.byte_range(), &[], words).err().or(wrong);
                self.last = Some(Last { end: node.end_byte(), depth: self.depth, takes_more: false });
            }
            Some((_, Open::Command { at, kind: Kind::Test { is_double }, .. })) => {
                let is_double = *is_double;
                let is_allowed = match text {
                    "[" | "]" => !is_double,
                    "[[" | "]]" | "&&" | "||" | "(" | ")" | "=~" | "<" | ">" => is_double,
                    "=" | "==" | "!=" | "!" => true,
                    operator => kind == "test_operator" && !matches!(operator, "-v" | "-R"),
                };
                if !is_allowed {
                    wrong = Some("a test that may do more");
                }
                let words = &mut self.found.commands[*at].words;
                words.push(Word { text: text.to_owned(), kind: WordKind::Known, plain: true, quoted: false });
            }
            _ => {
                if kind == "{" && !self.source[node.end_byte()..].starts_with([' ', '\t', '\n']) {
                    wrong = Some("braces that begin no group");
                }
            }
        }
        if let Some(why) = wrong {
            self.doubt(node, why);
        }
    }
}
