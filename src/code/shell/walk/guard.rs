//! What is not carried out where a change of folders or a test fails: what `&&` joins to it, or all of it where the shell is left then.

use tree_sitter::Node;

use super::Walk;

/// Most commands that this is asked about: what is above a node costs a walk from the top.
const GUARDS_MAX: usize = 64;
/// How deep in the tree one may stand for that: each step above it is one from the top.
const DEPTH_MAX: usize = 256;
/// How many constructs around one are looked at.
const AROUND_MAX: usize = 64;
/// The longest command that is looked at.
const LENGTH_MAX: usize = 1024;

/// What an end in the text is of.
#[derive(Clone, Copy)]
pub(super) enum Mark {
    From,
    Until,
    OnError,
    Passed,
}

/// From where to where in the text nothing follows, to the end of all where the latter is not known.
struct Kept {
    from: Option<usize>,
    until: Option<usize>,
}

impl Kept {
    const NOTHING: Self = Self { from: None, until: None };
}

impl Walk<'_> {
    /// Notes what of that which follows is carried out only if a command worked, or only if it did not.
    pub(super) fn guard(&mut self, node: Node<'_>, at: usize) {
        let text = self.text(node);
        let is_set = text.starts_with("set");
        let changes = text.contains("cd") || text.contains("pushd");
        let tests = text.contains('$') && (text.starts_with('[') || text.contains("test") || text.contains("mkdir"));
        let by_working = tests && !changes && text.contains("-z");
        // Many tests keep no change of folders from being looked at.
        let kind = usize::from(!is_set && !changes);
        if !(is_set || changes || tests) {
            return;
        }
        if text.len() > LENGTH_MAX || self.depth > DEPTH_MAX || self.n_guards[kind] >= GUARDS_MAX {
            // What is not looked at may be passed by.
            self.found.commands[at].guard.passed = if changes { at + 1 } else { 0 };
            return;
        }
        self.n_guards[kind] += 1;
        if is_set {
            self.found.commands[at].is_certain = self.passed_by(node, true).is_none();
        }
        let (kept, ends_on_error) = if by_working { (self.kept_by_working(node), false) } else { self.kept_by_failing(node) };
        self.found.commands[at].guard.by_working = by_working;
        let on_error = (ends_on_error && !self.is_let_pass(node)).then(|| self.passed_by(node, true).unwrap_or(usize::MAX));
        // Behind `&&` a change of folders is passed by where what stands in front of it fails, which hardly anybody goes on behind.
        let passed = changes.then(|| self.passed_by(node, false)).flatten();
        let marks = [(Mark::From, kept.from), (Mark::Until, kept.until), (Mark::OnError, on_error), (Mark::Passed, passed)];
        for (mark, end) in marks.into_iter().filter_map(|(mark, end)| Some((mark, end?))) {
            match end {
                usize::MAX => self.mark(at, mark, usize::MAX),
                end => self.guards.push((at, mark, end)),
            }
        }
    }

    fn mark(&mut self, at: usize, mark: Mark, place: usize) {
        let guard = &mut self.found.commands[at].guard;
        match mark {
            Mark::From => guard.from = place,
            Mark::Until => guard.until = place,
            Mark::OnError => guard.until_on_error = place,
            Mark::Passed => guard.passed = place,
        }
    }

    /// Ends what lies behind.
    pub(super) fn end_guards(&mut self, start: usize) {
        if self.guards.is_empty() {
            return;
        }
        let until = self.found.commands.len();
        let over: Vec<_> = self.guards.extract_if(.., |(.., end)| *end <= start).collect();
        for (at, mark, _) in over {
            self.mark(at, mark, until);
        }
    }

    /// Returns what is not carried out where a command fails, and whether `set -e` would leave the shell then.
    fn kept_by_failing(&self, node: Node<'_>) -> (Kept, bool) {
        let mut node = node;
        let (mut until, mut ends_on_error) = (None, true);
        let kept = |until| Kept { from: None, until };
        for _ in 0..AROUND_MAX {
            let Some(parent) = node.parent() else { break };
            match parent.kind() {
                "redirected_statement" => {}
                "list" => {
                    let (is_left, is_or, last) = joined(parent, node);
                    ends_on_error &= !is_left;
                    match (is_left, is_or) {
                        (true, false) => until = Some(parent.end_byte()),
                        (false, false) => {}
                        // What stands there itself is carried out.
                        (true, true) => match self.left(last, parent) {
                            Some(end) => return (Kept { from: Some(parent.end_byte()), until: Some(end) }, false),
                            None => return (kept(until), false),
                        },
                        (false, true) => return (kept(until), ends_on_error),
                    }
                }
                "if_statement" => {
                    let Some(condition) = Condition::of(parent, node) else { return (kept(until), ends_on_error) };
                    let end = condition.is_last.then_some(condition.end);
                    return (kept(end.or(until)), false);
                }
                "while_statement" | "elif_clause" | "negated_command" => return (kept(until), false),
                _ => return (kept(until), ends_on_error),
            }
            node = parent;
        }
        (kept(until), ends_on_error)
    }

    /// Returns whether `set -e` takes no note of what fails there: in what `||` or `&&` follows, in a condition, and in a function that is called so.
    fn is_let_pass(&self, node: Node<'_>) -> bool {
        let mut node = node;
        for _ in 0..AROUND_MAX {
            let Some(parent) = node.parent() else { return false };
            let is_let_pass = match parent.kind() {
                "list" => joined(parent, node).0,
                "if_statement" => Condition::of(parent, node).is_some(),
                "while_statement" => node.kind() != "do_group",
                "elif_clause" | "negated_command" | "command_substitution" => true,
                "function_definition" => self.may_let_pass(parent),
                _ => false,
            };
            if is_let_pass {
                return true;
            }
            node = parent;
        }
        true
    }

    /// Returns whether there is anything around a function in which what fails is let pass: whoever calls it may be called there.
    fn may_let_pass(&self, function: Node<'_>) -> bool {
        let around = [&self.source[..function.start_byte()], &self.source[function.end_byte()..]];
        let signs = ["||", "&&", "if", "while", "until", "!", "$(", "`"];
        around.iter().any(|text| signs.iter().any(|sign| text.contains(sign)))
    }

    /// Returns what is not carried out where a command works.
    fn kept_by_working(&self, node: Node<'_>) -> Kept {
        let mut node = node;
        let mut kept = Kept::NOTHING;
        for _ in 0..AROUND_MAX {
            let Some(parent) = node.parent() else { break };
            match parent.kind() {
                "list" => {
                    let (is_left, is_or, last) = joined(parent, node);
                    match (is_left, is_or) {
                        (true, true) => kept.until = Some(parent.end_byte()),
                        (false, true) => {}
                        (true, false) => match self.left(last, parent) {
                            Some(end) => return Kept { from: Some(parent.end_byte()), until: Some(end) },
                            None => return kept,
                        },
                        (false, false) => return kept,
                    }
                }
                "if_statement" => {
                    let Some(condition) = Condition::of(parent, node).filter(|condition| condition.is_last) else { return kept };
                    let end = condition.then.and_then(|last| self.left(last, parent));
                    return end.map_or(kept, |end| Kept { from: Some(condition.end), until: Some(end) });
                }
                _ => return kept,
            }
            node = parent;
        }
        kept
    }

    /// Returns where what follows ends that a command leaves: `exit`, `return`, or a group with one at its end. It is all of it only as far as
    /// what is around that certainly is come by.
    fn left(&self, node: Node<'_>, around: Node<'_>) -> Option<usize> {
        let mut node = node;
        while node.kind() != "command" {
            let last = match node.kind() {
                "compound_statement" => {
                    let mut cursor = node.walk();
                    node.named_children(&mut cursor).filter(|child| !child.is_extra()).last()
                }
                "redirected_statement" => node.named_child(0),
                _ => None,
            };
            node = last?;
        }
        let end = match self.text(node).split([' ', '\t', '\n', ';']).next()? {
            "exit" => usize::MAX,
            "return" => self.end_of(node, &["function_definition"])?,
            "break" | "continue" => self.end_of(node, &["for_statement", "while_statement", "c_style_for_statement"])?,
            _ => return None,
        };
        Some(end.min(self.passed_by(around, true).unwrap_or(usize::MAX)))
    }

    /// Returns where the construct of such a kind ends that a node is in. A function that is read where it is called is all of a text.
    fn end_of(&self, node: Node<'_>, kinds: &[&str]) -> Option<usize> {
        let mut node = node;
        for _ in 0..AROUND_MAX {
            let Some(parent) = node.parent() else { return Some(self.source.len()) };
            node = parent;
            if kinds.contains(&node.kind()) {
                return Some(node.end_byte());
            }
        }
        None
    }

    /// Returns where the innermost construct ends that may be come by without the node that is in it; `None` where all of the text has it. What
    /// stands behind `&&` is such a one where that is wanted.
    fn passed_by(&self, node: Node<'_>, counts_and: bool) -> Option<usize> {
        let mut node = node;
        for _ in 0..AROUND_MAX {
            let behind = self.source[node.end_byte()..].trim_start_matches([' ', '\t']);
            if behind.starts_with('&') && !behind.starts_with("&&") && !behind.starts_with("&>") {
                return Some(node.end_byte());
            }
            let parent = node.parent()?;
            let may_be = match parent.kind() {
                "list" => {
                    let (is_left, is_or, _) = joined(parent, node);
                    !is_left && (is_or || counts_and)
                }
                "if_statement" if Condition::of(parent, node).is_none() => return Some(branch_end(parent, node)),
                "while_statement" => node.kind() == "do_group",
                "elif_clause"
                | "else_clause"
                | "case_item"
                | "for_statement"
                | "c_style_for_statement"
                | "case_statement"
                | "function_definition"
                | "pipeline"
                | "subshell"
                | "command_substitution"
                | "process_substitution" => true,
                _ => false,
            };
            if may_be {
                return Some(parent.end_byte());
            }
            node = parent;
        }
        Some(node.start_byte())
    }
}

/// Returns whether a node is the first part of a list, whether `||` joins that, and its last part.
fn joined<'a>(list: Node<'a>, node: Node<'a>) -> (bool, bool, Node<'a>) {
    let mut cursor = list.walk();
    let parts: Vec<Node<'a>> = list.children(&mut cursor).collect();
    let is_left = parts.first().is_some_and(|first| first.id() == node.id());
    (is_left, parts.iter().any(|part| part.kind() == "||"), parts.last().copied().unwrap_or(list))
}

/// Returns where the branch of an `if` ends that a node is in.
fn branch_end(statement: Node<'_>, node: Node<'_>) -> usize {
    let mut cursor = statement.walk();
    let other = statement.children(&mut cursor).find(|part| is_other_branch(*part) && part.start_byte() >= node.end_byte());
    other.map_or(statement.end_byte(), |other| other.start_byte())
}

fn is_other_branch(part: Node<'_>) -> bool {
    matches!(part.kind(), "else_clause" | "elif_clause")
}

/// What a node in the condition of an `if` decides.
struct Condition<'a> {
    /// It is the last part of the condition: the others decide nothing.
    is_last: bool,
    /// Where that ends which is carried out if the condition holds.
    end: usize,
    /// The last command of that.
    then: Option<Node<'a>>,
}

impl<'a> Condition<'a> {
    /// Returns what it decides; `None` where it is no part of the condition.
    fn of(statement: Node<'a>, node: Node<'a>) -> Option<Self> {
        let mut cursor = statement.walk();
        let parts: Vec<Node<'a>> = statement.children(&mut cursor).collect();
        let then = parts.iter().position(|part| part.kind() == "then")?;
        let at = parts.iter().position(|part| part.id() == node.id()).filter(|at| *at < then)?;
        let other = parts[then..].iter().position(|part| is_other_branch(*part)).map(|n| then + n);
        let last = parts[then..other.unwrap_or(parts.len())].iter().rfind(|part| part.is_named() && !part.is_extra());
        Some(Self {
            is_last: !parts[at + 1..then].iter().any(|part| part.is_named() && !part.is_extra()),
            end: other.map_or(statement.end_byte(), |other| parts[other].start_byte()),
            then: last.copied(),
        })
    }
}
