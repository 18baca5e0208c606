//! What is made of a construct once all of it was seen.

use std::ops::Range;

use super::Joint;
use super::Kind;
use super::Last;
use super::Open;
use super::Role;
use super::Walk;
use super::certain::variables;
use super::certain::variables_of_operand;
use crate::shell::Assignment;
use crate::shell::Command;
use crate::shell::Function;
use crate::shell::Redirection;
use crate::shell::Value;
use crate::shell::Word;
use crate::shell::WordKind;
use crate::shell::gap;
use crate::shell::numbers::COMPUTES;
use crate::shell::numbers::Computed;
use crate::shell::read::SHOWN;
use crate::shell::word;

impl Walk<'_> {
    pub(super) fn close(&mut self, open: Open) {
        match open {
            Open::Word { range, opaque, role, joint } => {
                self.before = range.end;
                let n_words = match self.close_word(range.clone(), &opaque, role, joint) {
                    Ok(n_words) => n_words,
                    Err(why) => {
                        let source = self.source;
                        self.found.doubt(&source[range.clone()], why);
                        0
                    }
                };
                self.last = Some(Last { end: range.end, depth: self.depth, takes_more: n_words == 1 });
            }
            Open::Heredoc { at, heredoc } => {
                let text = heredoc.check(self.source).unwrap_or_else(|why| {
                    self.found.doubt(&heredoc.delimiter, why);
                    heredoc.unread(self.source)
                });
                self.found.commands[at].redirections.push(Redirection { operator: "<<".to_owned(), target: Some(text) });
            }
            Open::Redirect { at, operator, has_target: false, .. } => {
                self.found.commands[at].redirections.push(Redirection { operator, target: None });
            }
            Open::Function { name, start, shell, is_certain, body } => {
                self.found.bodies.push((name.clone(), body));
                let body = start..self.found.commands.len();
                self.found.functions.push(Function { name, body, shell, is_certain });
            }
            Open::Command { at, kind, has_body, .. } => self.close_command(at, kind, has_body),
            Open::HeredocBody { end } | Open::Computed { end } => self.before = end,
            Open::Redirect { .. } | Open::Statements | Open::List { .. } | Open::Values { .. } => {}
        }
    }

    /// Returns how many words it gave, of those that others can be added to.
    fn close_word(&mut self, range: Range<usize>, opaque: &[Range<usize>], role: Role, joint: Joint) -> Result<usize, &'static str> {
        let source = self.source;
        match role {
            Role::Argument => {
                let mut words = Vec::new();
                let read = word::read(source, range, opaque, &mut words);
                let n_words = words.len();
                let rest = if joint == Joint::Rest && n_words == 1 { words.pop() } else { None };
                let is_added = rest.is_some_and(|rest| self.add(&rest));
                self.give(words);
                read?;
                if is_added || joint == Joint::Apart { Ok(n_words) } else { Err(gap::JOINED) }
            }
            Role::Assignment => self.close_assignment(range, opaque).map(|()| 0),
            Role::Pattern => {
                let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.^$*+?-/,:%=~@[]".contains(c);
                let text = &source[range];
                let expands = text.split('$').skip(1).any(|rest| !rest.is_empty());
                if text.chars().all(is_plain) && !expands { Ok(0) } else { Err("a pattern that cannot be read for certain") }
            }
        }
    }

    /// Takes `NAME=VALUE`, also for a part of a list: `NAME[INDEX]=VALUE`.
    fn close_assignment(&mut self, range: Range<usize>, opaque: &[Range<usize>]) -> Result<(), &'static str> {
        const MAY_RUN: &str = "an assignment to part of a list may run what a variable holds";
        let source = self.source;
        let text = &source[range.clone()];
        let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
        let (name, behind) = text.split_at(end);
        let index = behind.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(index, _)| index);
        let behind = index.map_or(behind, |index| &behind[index.len() + 2..]);
        let operator = if behind.starts_with("+=") { 2 } else { 1 };
        if name.is_empty() || !behind.trim_start_matches('+').starts_with('=') {
            return Err(MAY_RUN);
        }
        if let Some(index) = index {
            // A declaration reads what stands in the value once more.
            if matches!(self.open.last(), Some((_, Open::Command { at, .. })) if !self.found.commands[*at].words.is_empty()) {
                return Err(MAY_RUN);
            }
            // What it is computed from is looked at when all of the script was read.
            let variables = variables(unquoted(index)).ok_or(MAY_RUN)?;
            self.found.computed.push(Computed { what: text.chars().take(SHOWN + 1).collect(), variables });
        }
        let value = range.end - behind.len() + operator;
        let is_list = source[value..].starts_with('(');
        if is_list && !has_plain_keys(&source[value..range.end]) {
            return Err("a key of a list may run what it holds");
        }
        let within: Vec<Range<usize>> = opaque.iter().filter(|part| part.start >= value).cloned().collect();
        let read = if is_list { Ok(None) } else { word::read_value(source, value..range.end, &within).map(Some) };
        let (value, read) = match read {
            Ok(value) => (value, Ok(())),
            Err(why) => (None, Err(why)),
        };
        let name = name.to_owned();
        // What is added stands behind what is there.
        let value = value.map(|value| match operator {
            2 => Word { text: format!("${{{name}}}{}", value.text), kind: WordKind::Unknown, plain: false, ..value },
            _ => value,
        });
        let value = match index {
            // One of several values, as those are that stand in a list.
            Some(_) => {
                self.found.values.extend(value.map(|word| Value { variable: name.clone(), word }));
                None
            }
            None => value,
        };
        let assignment = Assignment { name, value };
        match self.open.last() {
            Some((_, Open::Command { at, .. })) => self.found.commands[*at].assignments.push(assignment),
            _ => self.found.commands.push(Command { assignments: vec![assignment], ..Command::default() }),
        }
        read
    }

    /// Adds the rest of a word to its beginning; returns whether that was there.
    fn add(&mut self, rest: &Word) -> bool {
        let begun = match self.open.last() {
            Some((_, Open::Redirect { at, .. })) => {
                self.found.commands[*at].redirections.last_mut().and_then(|redirection| redirection.target.as_mut())
            }
            Some((_, Open::Command { at, .. })) => self.found.commands[*at].words.last_mut(),
            Some((_, Open::Values { variable: Some(_) } | Open::List { .. })) => self.found.values.last_mut().map(|value| &mut value.word),
            _ => None,
        };
        let Some(begun) = begun else { return false };
        *begun = Word::unknown(&format!("{}{}", begun.text, rest.text));
        true
    }

    /// Gives words to what they belong to.
    fn give(&mut self, words: Vec<Word>) {
        let mut words = words.into_iter();
        let at = match self.open.last_mut() {
            Some((_, Open::Redirect { at, operator, has_target, .. })) => {
                if !*has_target {
                    *has_target = true;
                    let target = words.next();
                    self.found.commands[*at].redirections.push(Redirection { operator: operator.clone(), target });
                }
                // The grammar takes all that follows for the file's name; the shell only the first word.
                Some(*at)
            }
            Some((_, Open::Command { at, .. } | Open::Heredoc { at, .. })) => Some(*at),
            Some((_, Open::Values { variable: Some(variable) } | Open::List { variable })) => {
                self.found.values.extend(words.map(|word| Value { variable: variable.clone(), word }));
                return;
            }
            _ => None,
        };
        if let Some(at) = at {
            self.found.commands[at].words.extend(words);
        }
    }

    fn close_command(&mut self, at: usize, kind: Kind, has_body: bool) {
        let n_behind = self.found.commands.len() - at - 1;
        let command = &mut self.found.commands[at];
        if kind == Kind::Redirected && has_body {
            command.n_within = n_behind;
        }
        let mut wrong = None;
        match kind {
            Kind::Test { is_double: true } => {
                let computes = |text: &str| matches!(text, "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge");
                let operators = command.words.iter().enumerate().filter(|(_, word)| computes(&word.text));
                let beside = |at: usize| [at.checked_sub(1), Some(at + 1)].map(|at| at.and_then(|at| command.words.get(at)));
                let variables: Option<Vec<Vec<String>>> = operators
                    .flat_map(|(at, _)| beside(at))
                    .map(|word| word.filter(|word| word.kind != WordKind::Pattern).and_then(|word| variables_of_operand(&word.text)))
                    .collect();
                match variables {
                    Some(variables) if variables.iter().all(Vec::is_empty) => {}
                    Some(variables) => {
                        let what = command.words.iter().map(|word| word.text.as_str()).take(8).collect::<Vec<_>>().join(" ");
                        self.found.computed.push(Computed { what, variables: variables.concat() });
                    }
                    None => wrong = Some(COMPUTES),
                }
            }
            Kind::Redirected if has_body && !command.words.is_empty() => wrong = Some("words after a group of commands"),
            _ => {}
        }
        // Words that stand behind a redirection may be assignments.
        if kind == Kind::Redirected {
            let n_assignments = command.words.iter().take_while(|word| assigned(word).is_some()).count();
            let assignments: Vec<Assignment> = command.words.drain(..n_assignments).filter_map(|word| assigned(&word)).collect();
            command.assignments.extend(assignments);
        }
        let shown = command.words.iter().map(|word| word.text.as_str()).take(8).collect::<Vec<_>>().join(" ");
        if let Some(why) = wrong {
            self.found.doubt(&shown, why);
        }
    }
}

/// Returns an index without the quotes around it, which change nothing of what is computed.
fn unquoted(index: &str) -> &str {
    let inside = |quote: char| index.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    inside('"').or_else(|| inside('\'')).unwrap_or(index)
}

/// Returns whether a list has no keys but numbers: others are computed, or expanded once more.
fn has_plain_keys(list: &str) -> bool {
    let ends = list.match_indices("]=").chain(list.match_indices("]+="));
    ends.map(|(at, _)| &list[..at]).all(|before| {
        let key = before.trim_end_matches(|c: char| c.is_ascii_digit());
        key.len() < before.len() && key.ends_with('[') && key[..key.len() - 1].ends_with([' ', '(', '\t', '\n'])
    })
}

/// Reads a word as an assignment, if that is what the shell would take it for in front of a program.
fn assigned(word: &Word) -> Option<Assignment> {
    let (name, value) = word.text.split_once('=').filter(|_| word.plain)?;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name.then(|| Assignment { name: name.to_owned(), value: Some(Word { text: value.to_owned(), ..word.clone() }) })
}
