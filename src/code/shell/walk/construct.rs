//! Nodes between words: what a construct of the shell opens.

use std::ops::Range;

use tree_sitter::Node;

use super::Joint;
use super::Kind;
use super::Open;
use super::Role;
use super::Walk;
use super::certain::variables_of_computation;
use crate::shell::Assignment;
use crate::shell::Command;
use crate::shell::Value;
use crate::shell::Word;
use crate::shell::heredoc::Heredoc;
use crate::shell::numbers::COMPUTES;
use crate::shell::numbers::Computed;
use crate::shell::read::SHOWN;

impl Walk<'_> {
    /// Takes a node between words: a construct of the shell, a word, or a token.
    pub(super) fn token(&mut self, node: Node<'_>, kind: &str, field: Option<&str>) -> bool {
        match kind {
            "word"
            | "string"
            | "raw_string"
            | "translated_string"
            | "ansi_c_string"
            | "number"
            | "concatenation"
            | "simple_expansion"
            | "expansion"
            | "command_substitution"
            | "process_substitution"
            | "arithmetic_expansion"
            | "brace_expression"
            | "command_name"
            | "variable_name" => {
                if kind == "word"
                    && field == Some("name")
                    && let Some((_, Open::Function { name, .. })) = self.open.last_mut()
                {
                    self.source[node.byte_range()].clone_into(name);
                    self.leaf(node, false);
                    return false;
                }
                let is_obeyed = |name: &str| name.bytes().any(|byte| byte.is_ascii_uppercase());
                if kind == "variable_name" && is_obeyed(self.text(node)) && matches!(self.open.last(), Some((_, Open::Values { .. }))) {
                    // Programs obey what a loop sets like any other variable.
                    let assignment = Assignment { name: self.text(node).to_owned(), value: Some(Word::unknown("…")) };
                    self.found.commands.push(Command { assignments: vec![assignment], ..Command::default() });
                }
                if kind == "variable_name"
                    && let Some((_, Open::Values { variable: Some(variable) })) = self.open.last_mut()
                {
                    self.source[node.byte_range()].clone_into(variable);
                }
                self.unit(node, Role::Argument);
                self.inside(node, kind)
            }
            "variable_assignment" => {
                self.unit(node, Role::Assignment);
                true
            }
            "regex" | "extglob_pattern" => {
                self.unit(node, Role::Pattern);
                true
            }
            "command" | "declaration_command" | "unset_command" | "variable_assignments" => {
                self.open_command(node, Kind::Simple, field);
                true
            }
            "test_command" => {
                let is_double = self.text(node).starts_with("[[");
                self.open_command(node, Kind::Test { is_double }, field);
                true
            }
            "redirected_statement" => {
                self.body(field);
                self.open_command(node, Kind::Redirected, None);
                true
            }
            "file_redirect" => {
                self.named_descriptor(node);
                let at = self.command_of_redirect();
                self.push(Open::Redirect { at, start: node.start_byte(), operator: String::new(), has_target: false });
                true
            }
            "herestring_redirect" => {
                let at = self.command_of_redirect();
                self.push(Open::Redirect { at, start: node.start_byte(), operator: "<<<".to_owned(), has_target: false });
                true
            }
            "heredoc_redirect" => {
                let at = self.command_of_redirect();
                self.push(Open::Heredoc { at, heredoc: Heredoc::default() });
                true
            }
            "heredoc_body" => {
                if let Some((_, Open::Heredoc { heredoc, .. })) = self.open.last_mut() {
                    heredoc.body = Some(node.byte_range());
                }
                self.before = node.end_byte();
                self.push(Open::HeredocBody { end: node.end_byte() });
                true
            }
            "function_definition" => {
                let start = self.found.commands.len();
                // At the top, and not in the background: what is above it and beside it would cost a walk to be asked for.
                let behind = self.source[node.end_byte()..].trim_start_matches([' ', '\t']);
                let is_certain = self.depth == 1 && !behind.starts_with('&');
                let body = node.child_by_field_name("body").map_or(0..0, |body| body.byte_range());
                self.push(Open::Function { name: String::new(), start, shell: self.shell(), is_certain, body });
                true
            }
            "for_statement" | "case_statement" | "case_item" => {
                self.body(field);
                self.push(Open::Values { variable: (kind == "for_statement").then(String::new) });
                self.without_words(node);
                true
            }
            "c_style_for_statement" => {
                self.body(field);
                let head = head(node);
                let variables = head.clone().and_then(|head| variables_of_computation(&self.source[head]));
                self.heads.extend(head.filter(|_| variables.is_some()).map(|head| (self.depth + 1, head)));
                self.computed(node, variables);
                true
            }
            "compound_statement" if variables_of_computation(self.text(node)).is_some() => {
                self.computed(node, variables_of_computation(self.text(node)));
                self.gap(node);
                self.body(field);
                let (shell, piped) = (self.shell(), std::mem::take(&mut self.is_piped));
                self.found.commands.push(Command { piped, shell, ..Command::default() });
                self.before = node.end_byte();
                false
            }
            "compound_statement" if self.text(node).starts_with("((") => {
                self.body(field);
                self.doubt(node, COMPUTES);
                self.before = node.end_byte();
                self.push(Open::Computed { end: node.end_byte() });
                true
            }
            "subshell" => {
                if let Some((_, Open::Command { kind: Kind::Simple, .. })) = self.open.last() {
                    self.doubt(node, "a subshell where a word is expected");
                }
                self.body(field);
                true
            }
            "comment" => {
                self.comment(node);
                false
            }
            _ if node.child_count() == 0 => {
                self.is_piped |= matches!(kind, "|" | "|&");
                self.leaf(node, true);
                false
            }
            _ => {
                self.body(field);
                // Its own commands are no part of the values around it.
                if matches!(self.open.last(), Some((_, Open::Values { .. }))) {
                    self.push(Open::Statements);
                }
                true
            }
        }
    }

    /// Returns whether a node is a part of the head of a `for ((…))` that was read as a whole.
    pub(super) fn is_in_head(&self, node: Node<'_>) -> bool {
        self.heads
            .last()
            .is_some_and(|(depth, head)| *depth == self.depth && head.start <= node.start_byte() && node.end_byte() <= head.end)
    }

    /// Notes what is computed: from these variables, or from something that may run what a variable holds.
    pub(super) fn computed(&mut self, node: Node<'_>, variables: Option<Vec<String>>) {
        match variables {
            Some(variables) if variables.is_empty() => {}
            Some(variables) => {
                // No more than a doubt shows.
                let what = self.text(node).chars().take(SHOWN + 1).collect();
                self.found.computed.push(Computed { what, variables });
            }
            None => self.doubt(node, COMPUTES),
        }
    }

    /// Notes `{NAME}<FILE`, which sets a variable.
    fn named_descriptor(&mut self, node: Node<'_>) {
        let start = node.start_byte();
        if self.text(node).starts_with('{') || self.source.as_bytes()[..start].ends_with(b"}") {
            self.doubt(node, "a redirection that sets a variable");
        }
    }

    /// Notes a loop that names no words: it goes through those of the script.
    fn without_words(&mut self, node: Node<'_>) {
        let name = node.child_by_field_name("variable").map(|name| self.text(name).to_owned());
        let mut cursor = node.walk();
        let has_words = node.children(&mut cursor).any(|child| child.kind() == "in");
        if let Some(variable) = name.filter(|_| !has_words) {
            self.found.values.push(Value { variable, word: Word::unknown("$@") });
        }
    }

    /// Notes that what is redirected is more than a simple command.
    pub(super) fn body(&mut self, field: Option<&str>) {
        if field == Some("body")
            && let Some((_, Open::Command { has_body, .. })) = self.open.last_mut()
        {
            *has_body = true;
        }
    }

    fn open_command(&mut self, node: Node<'_>, kind: Kind, field: Option<&str>) {
        let at = match self.open.last() {
            Some((_, Open::Command { at, kind: Kind::Redirected, .. })) if field == Some("body") && kind != Kind::Redirected => *at,
            _ => {
                let shell = self.shell();
                let piped = std::mem::take(&mut self.is_piped);
                self.found.commands.push(Command { piped, shell, ..Command::default() });
                self.found.commands.len() - 1
            }
        };
        if matches!(node.kind(), "command" | "test_command") {
            self.guard(node, at);
        }
        self.push(Open::Command { at, start: node.start_byte(), kind, has_body: false });
    }

    /// Returns the command that a redirection belongs to; one that belongs to none gets a command without words.
    fn command_of_redirect(&mut self) -> usize {
        for (_, open) in self.open.iter().rev() {
            match open {
                Open::Command { at, .. } | Open::Heredoc { at, .. } => return *at,
                Open::Redirect { .. } => {}
                _ => break,
            }
        }
        self.found.commands.push(Command::default());
        self.found.commands.len() - 1
    }

    /// Begins a word.
    fn unit(&mut self, node: Node<'_>, role: Role) {
        self.gap(node);
        let range = node.byte_range();
        let joint = match self.last.filter(|last| last.end == range.start) {
            None => Joint::Apart,
            Some(last) if last.takes_more && last.depth == self.depth && role == Role::Argument => Joint::Rest,
            Some(_) => Joint::Unclear,
        };
        self.before = range.end;
        self.push(Open::Word { range, opaque: Vec::new(), role, joint });
    }
}

/// Returns where the head of a `for ((…))` is.
fn head(node: Node<'_>) -> Option<Range<usize>> {
    let mut cursor = node.walk();
    let mut parts = node.children(&mut cursor);
    let begin = parts.find(|part| part.kind() == "((")?.start_byte();
    let end = parts.find(|part| part.kind() == "))")?.end_byte();
    Some(begin..end)
}
