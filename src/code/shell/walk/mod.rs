mod certain;
mod close;
mod construct;
mod guard;
mod inside;
mod token;

pub(super) use self::certain::variables;

use std::ops::Range;

use tree_sitter::Node;
use tree_sitter::Tree;

use super::heredoc::Heredoc;
use super::read::Found;

/// Goes through a tree once, without recursion, and gathers its commands; `shell` is the number of the shell that reads the text.
pub(super) fn walk(source: &str, tree: &Tree, shell: usize, found: &mut Found) {
    let mut walk = Walk {
        source,
        found,
        open: Vec::new(),
        shells: vec![(usize::MAX, shell)],
        heads: Vec::new(),
        before: 0,
        last: None,
        depth: 0,
        is_piped: false,
        guards: Vec::new(),
        n_guards: [0; 2],
    };
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
    walk.end_guards(usize::MAX);
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
    /// Heads of `for ((…))` that were read as a whole; each at the depth of what it consists of.
    heads: Vec<(usize, Range<usize>)>,
    /// Where the last token ends.
    before: usize,
    /// The last word that was read.
    last: Option<Last>,
    depth: usize,
    /// A `|` was seen, and no command behind it so far.
    is_piped: bool,
    /// Commands that keep what follows from being carried out, each with where in the text that begins or ends.
    guards: Vec<(usize, guard::Mark, usize)>,
    /// How many of them were looked for.
    n_guards: [usize; 2],
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
        joint: Joint,
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
        shell: usize,
        is_certain: bool,
        body: Range<usize>,
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

/// Where a word ended, at the depth of its node; whether what begins right there can be added to it.
#[derive(Clone, Copy)]
struct Last {
    end: usize,
    depth: usize,
    takes_more: bool,
}

/// How a word of the grammar hangs together with the one before.
#[derive(Clone, Copy, PartialEq)]
enum Joint {
    Apart,
    /// To the shell it is the rest of that word: the grammar splits ``r`:`m``, but not `r$(:)m`.
    Rest,
    /// Right behind something that it cannot be added to.
    Unclear,
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
        self.end_guards(node.start_byte());
        // Of `> FILE <<< TEXT` the grammar takes `<<<` for two, the first of which it does not expect.
        if node.is_error() && self.text(node) == "<<" && self.source[node.end_byte()..].starts_with('<') {
            self.gap(node);
            self.before = node.end_byte();
            return false;
        }
        if node.is_error() || node.is_missing() {
            self.doubt(node, "it cannot be parsed");
            if node.is_missing() {
                return false;
            }
        }
        if self.is_in_head(node) {
            self.gap(node);
            self.before = node.end_byte();
            return false;
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

    /// Ends what was opened at this depth.
    fn leave(&mut self) {
        while self.open.last().is_some_and(|(depth, _)| *depth == self.depth) {
            let Some((_, open)) = self.open.pop() else { return };
            self.close(open);
        }
        while self.shells.last().is_some_and(|(depth, _)| *depth == self.depth) {
            self.shells.pop();
        }
        while self.heads.last().is_some_and(|(depth, _)| *depth == self.depth + 1) {
            self.heads.pop();
        }
    }
}
