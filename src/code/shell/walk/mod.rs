mod certain;
mod close;

use std::ops::Range;

use tree_sitter::Node;
use tree_sitter::Tree;

use self::certain::is_plain_arithmetic;
use self::certain::is_plain_computation;
use self::certain::is_plain_expansion;
use super::Assignment;
use super::Command;
use super::Value;
use super::Word;
use super::WordKind;
use super::gap;
use super::heredoc::Heredoc;
use super::read::Found;
use super::word;

/// Goes through a tree once, without recursion, and gathers its commands; `shell` is the number of the shell that reads the text.
pub(super) fn walk(source: &str, tree: &Tree, shell: usize, found: &mut Found) {
    let mut walk = Walk { source, found, open: Vec::new(), shells: vec![(usize::MAX, shell)], before: 0, depth: 0, is_piped: false };
    let mut cursor = tree.walk();
    'nodes: loop {
        let descends = walk.enter(cursor.node(), cursor.field_name());
        if descends && cursor.goto_first_child() {
            walk.depth += 1;
            continue;
        }
        loop {
            walk.leave();
            if cursor.goto_next_sibling() {
                break;
            }
            if !cursor.goto_parent() {
                break 'nodes;
            }
            walk.depth -= 1;
        }
    }
    let end = source.trim_end_matches([' ', '\t', '\n']).len();
    if walk.before < end {
        walk.found.doubt(&source[walk.before..], "the end of it cannot be parsed");
    }
}

struct Walk<'a> {
    source: &'a str,
    found: &'a mut Found,
    /// What encloses the node, from the outermost; each at the depth of its node.
    open: Vec<(usize, Open)>,
    /// The shells that the node runs in, from the outermost; each at the depth of the node that begins it.
    shells: Vec<(usize, usize)>,
    /// Where the last token ends.
    before: usize,
    depth: usize,
    /// A `|` was seen, and no command behind it so far.
    is_piped: bool,
}

enum Open {
    /// A simple command, or what redirections belong to: its place in the list.
    Command {
        at: usize,
        start: usize,
        kind: Kind,
        has_body: bool,
    },
    /// A word. Only expansions in it are looked at until it ends.
    Word {
        range: Range<usize>,
        opaque: Vec<Range<usize>>,
        role: Role,
    },
    /// Commands within a word: tokens are looked at again.
    Statements,
    /// The elements of a list that is assigned to this variable.
    List {
        variable: String,
    },
    /// A redirection of this command.
    Redirect {
        at: usize,
        start: usize,
        operator: String,
        has_target: bool,
    },
    Heredoc {
        at: usize,
        heredoc: Heredoc,
    },
    HeredocBody {
        end: usize,
    },
    /// What is computed; only substitutions in it are looked at.
    Computed {
        end: usize,
    },
    /// A function's body, from this place in the list on.
    Function {
        name: String,
        start: usize,
    },
    /// Words that no program gets: what a loop goes through with a variable, or what is compared.
    Values {
        variable: Option<String>,
    },
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Simple,
    /// A command with redirections, whose body may be the simple command itself.
    Redirected,
    Test {
        is_double: bool,
    },
}

/// What a word is for.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    Argument,
    Assignment,
    Pattern,
}

impl Walk<'_> {
    fn text(&self, node: Node<'_>) -> &str {
        &self.source[node.byte_range()]
    }

    fn doubt(&mut self, node: Node<'_>, why: &'static str) {
        let source = self.source;
        self.found.doubt(&source[node.byte_range()], why);
    }

    fn shell(&self) -> usize {
        self.shells.last().map_or(0, |(_, shell)| *shell)
    }

    fn push(&mut self, open: Open) {
        self.open.push((self.depth, open));
    }

    /// Takes a node; returns whether what it consists of is to be looked at.
    fn enter(&mut self, node: Node<'_>, field: Option<&str>) -> bool {
        if node.is_error() || node.is_missing() {
            self.doubt(node, "it cannot be parsed");
            if node.is_missing() {
                return false;
            }
        }
        let kind = node.kind();
        if matches!(kind, "subshell" | "command_substitution" | "process_substitution") {
            self.found.shells.push(self.shell());
            self.shells.push((self.depth, self.found.shells.len()));
        }
        match self.open.last() {
            Some((_, Open::Word { .. } | Open::HeredocBody { .. } | Open::Computed { .. })) => self.inside(node, kind),
            _ => self.token(node, kind, field),
        }
    }

    /// Takes a node in a word: what is opaque in it, and the commands in that.
    fn inside(&mut self, node: Node<'_>, kind: &str) -> bool {
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
                if !is_plain_arithmetic(self.text(node)) {
                    self.doubt(node, "arithmetic may run what a variable holds");
                }
            }
            "array" => {
                self.opaque(node.byte_range());
                self.before = node.start_byte();
                let before = &self.source[..node.start_byte()];
                let name = before.trim_end_matches('=').trim_end_matches('+');
                let begin = name.rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).map_or(0, |at| at + 1);
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

    /// Takes a node between words: a construct of the shell, a word, or a token.
    fn token(&mut self, node: Node<'_>, kind: &str, field: Option<&str>) -> bool {
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
                self.push(Open::Function { name: String::new(), start });
                true
            }
            "for_statement" | "case_statement" | "case_item" => {
                self.body(field);
                self.push(Open::Values { variable: (kind == "for_statement").then(String::new) });
                self.without_words(node);
                true
            }
            "c_style_for_statement" => {
                self.doubt(node, "arithmetic may run what a variable holds");
                true
            }
            "compound_statement" if is_plain_computation(self.text(node)) => {
                self.gap(node);
                self.body(field);
                let (shell, piped) = (self.shell(), std::mem::take(&mut self.is_piped));
                self.found.commands.push(Command { piped, shell, ..Command::default() });
                self.before = node.end_byte();
                false
            }
            "compound_statement" if self.text(node).starts_with("((") => {
                self.body(field);
                self.doubt(node, "arithmetic may run what a variable holds");
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
    fn body(&mut self, field: Option<&str>) {
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
        self.before = range.end;
        self.push(Open::Word { range, opaque: Vec::new(), role });
    }

    fn gap(&mut self, node: Node<'_>) {
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
        // The grammar drops a lone `-` in front of a redirection.
        if let (Some(at), Some(" - ")) = (at, self.source.get(self.before..start)) {
            self.found.commands[at].words.push(Word { text: "-".to_owned(), kind: WordKind::Known, plain: true, quoted: false });
        } else if let Err(why) = gap::check(self.source, self.before, start, is_within) {
            let from = self.before.min(start);
            let source = self.source;
            self.found.doubt(&source[from..node.end_byte()], why);
        }
    }

    fn comment(&mut self, node: Node<'_>) {
        self.gap(node);
        let before = node.start_byte().checked_sub(1).and_then(|at| self.source.as_bytes().get(at));
        if before.is_some_and(|byte| gap::is_in_word(*byte))
            || matches!(self.open.last(), Some((_, Open::Command { kind: Kind::Test { .. }, .. })))
        {
            self.doubt(node, "a comment in the middle of a word");
        }
        self.before = node.end_byte();
    }

    /// Takes a token of the grammar.
    fn leaf(&mut self, node: Node<'_>, counts: bool) {
        self.gap(node);
        let kind = node.kind();
        let text = &self.source[node.byte_range()];
        self.before = node.end_byte();
        let mut wrong = None;
        match self.open.last_mut() {
            Some((_, Open::Redirect { operator, .. })) if kind != "file_descriptor" => text.clone_into(operator),
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
                wrong = word::read(self.source, node.byte_range(), &[], words).err();
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

    /// Ends what was opened at this depth.
    fn leave(&mut self) {
        while self.open.last().is_some_and(|(depth, _)| *depth == self.depth) {
            let Some((_, open)) = self.open.pop() else { return };
            self.close(open);
        }
        while self.shells.last().is_some_and(|(depth, _)| *depth == self.depth) {
            self.shells.pop();
        }
    }
}
