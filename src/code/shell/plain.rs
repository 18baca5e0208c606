//! A text as a shell reads it that does not know what bash has besides: where no bash is installed, `sh` runs it.
//!
//! The text is written anew so that bash, as which everything is read here, takes it for what the plain shell makes of it. Only what may
//! start or write something else counts: where a plain shell would refuse a line, nothing of that line or behind it runs.

use std::collections::HashSet;

use super::Command;
use super::Doubt;
use super::Script;
use super::read;

/// Without one of these both read the same.
const OF_BASH: [&str; 4] = ["$'", "[[", "&>", "(("];

/// What may be open at once; with more, the parser gives up as well.
const OPEN_MAX: usize = 400;

/// Reads a text as a plain shell does; `None` where that makes no difference.
pub fn read_plain(text: &str) -> Option<Script> {
    if text.len() > super::LENGTH_MAX || !OF_BASH.iter().any(|what| text.contains(what)) {
        return None;
    }
    let mut rewriting = Rewriting::new(text);
    rewriting.run();
    if rewriting.out == text {
        return None;
    }
    let mut script = read(&rewriting.out);
    // Quotes that end elsewhere hide what they like. All else only fails, or is no program.
    if !rewriting.ends_elsewhere {
        script.doubts.clear();
    }
    script.doubts.retain(|doubt: &Doubt| !doubt.what.starts_with("[["));
    let assigned = script.commands.iter().flat_map(|command| &command.assignments).filter(|set| starts(set)).map(|set| set.name.as_str());
    let set: HashSet<&str> = assigned.chain(text.split("for ").filter_map(goes_through)).collect();
    let fails: Vec<bool> = script.commands.iter().map(|command| is_no_program(command, &set)).collect();
    for (command, _) in script.commands.iter_mut().zip(fails).filter(|(_, fails)| *fails) {
        command.words.clear();
        command.redirections.retain(super::Redirection::writes);
    }
    Some(script)
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns whether a value may be a program.
fn starts(set: &super::Assignment) -> bool {
    set.value.as_ref().is_some_and(|value| match value.known() {
        Some(text) => !is_number(text),
        None => value.text.contains('/'),
    })
}

/// Returns the variable of a loop over paths, which may be programs, from what stands behind `for`.
fn goes_through(text: &str) -> Option<&str> {
    let (name, words) = text.split([';', '\n']).next()?.split_once(" in ")?;
    words.contains('/').then_some(name.trim())
}

/// Words of `[[` that stand where a plain shell looks for a program, and are none: operators, and values that the text does not set.
fn is_no_program(command: &Command, set: &HashSet<&str>) -> bool {
    let Some(program) = command.program() else { return false };
    if matches!(program.text.as_str(), "[[" | "]]" | "") || program.text.starts_with('-') || is_number(&program.text) {
        return true;
    }
    let Some(name) = program.text.strip_prefix('$') else { return false };
    let name = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name);
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name && !set.contains(name)
}

#[derive(Clone, Copy, PartialEq)]
enum Within {
    /// Commands up to this letter.
    Commands(char),
    Double,
    /// `${…}`.
    Braces,
}

/// `[[` and what stands up to `]]`.
#[derive(Clone, Copy)]
struct Test {
    depth: usize,
    /// What follows `&&` runs: the program `[[`, which there is not, was negated, or another one stands before.
    goes_on: bool,
}

struct Rewriting<'a> {
    text: &'a str,
    at: usize,
    out: String,
    /// What is open, and where in `out` the line begins in which that was opened.
    open: Vec<(Within, usize)>,
    line: usize,
    at_word: bool,
    /// The word before.
    last: String,
    test: Option<Test>,
    heredocs: Vec<(String, bool)>,
    /// A quote ends elsewhere than in bash.
    ends_elsewhere: bool,
}

impl<'a> Rewriting<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            out: String::with_capacity(text.len() + 16),
            open: Vec::new(),
            line: 0,
            at_word: true,
            last: String::new(),
            test: None,
            heredocs: Vec::new(),
            ends_elsewhere: false,
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn copy(&mut self, n_bytes: usize) {
        self.out.push_str(&self.text[self.at..self.at + n_bytes]);
        self.at += n_bytes;
    }

    fn push(&mut self, within: Within) {
        self.open.push((within, self.line));
    }

    /// Goes on behind what stands here, with something else in its place.
    fn put(&mut self, n_bytes: usize, instead: &str) {
        self.out.push_str(instead);
        self.at += n_bytes;
    }

    fn run(&mut self) {
        while let Some(c) = self.rest().chars().next() {
            let goes_on = match self.open.last().map_or(Within::Commands('\0'), |(within, _)| *within) {
                Within::Commands(end) => self.commands(c, end),
                within => self.quoted(c, within),
            };
            if !goes_on || self.open.len() > OPEN_MAX {
                return self.out.truncate(self.line);
            }
        }
        // What does not end is refused, from the line on in which it began.
        if let Some((_, line)) = self.open.first() {
            self.out.truncate(*line);
        }
    }

    /// Takes what is the same in quotes and outside of them; `None` where nothing of that stands here.
    fn expansion(&mut self, c: char) -> Option<bool> {
        let rest = self.rest();
        if c == '\\' {
            let n_next = rest[1..].chars().next().map_or(0, char::len_utf8);
            self.copy(1 + n_next);
        } else if rest.starts_with("$((") {
            let mut depth = 0_usize;
            let end = rest.char_indices().find(|(_, c)| {
                depth = if *c == '(' { depth + 1 } else { depth - usize::from(*c == ')') };
                *c == ')' && depth == 0
            });
            let Some((end, _)) = end else { return Some(false) };
            self.copy(end + 1);
        } else if rest.starts_with("$(") {
            self.copy(2);
            self.push(Within::Commands(')'));
            self.at_word = true;
            return Some(true);
        } else if rest.starts_with("${") {
            self.copy(2);
            self.push(Within::Braces);
        } else if c == '`' {
            self.copy(1);
            match self.open.iter().rposition(|(within, _)| *within == Within::Commands('`')) {
                Some(at) => self.open.truncate(at),
                None => self.push(Within::Commands('`')),
            }
        } else {
            return None;
        }
        self.at_word = false;
        Some(true)
    }

    fn quoted(&mut self, c: char, within: Within) -> bool {
        if let Some(goes_on) = self.expansion(c) {
            return goes_on;
        }
        let in_double = self.open.iter().any(|(within, _)| *within == Within::Double);
        match (c, within) {
            ('"', Within::Double) | ('}', Within::Braces) => {
                self.open.pop();
            }
            ('"', _) => self.push(Within::Double),
            ('\'', Within::Braces) if !in_double => return self.single(),
            _ => {}
        }
        self.copy(c.len_utf8());
        true
    }

    fn single(&mut self) -> bool {
        let Some(end) = self.rest()[1..].find('\'') else { return false };
        self.copy(end + 2);
        self.at_word = false;
        true
    }

    fn commands(&mut self, c: char, end: char) -> bool {
        let rest = self.rest();
        if let Some(quote) = rest.strip_prefix("$'") {
            let Some(end) = quote.find('\'') else { return false };
            let n_slashes = quote[..end].bytes().rev().take_while(|byte| *byte == b'\\').count();
            if n_slashes % 2 == 1 {
                self.ends_elsewhere = true;
                self.put(1, "\\$");
            } else {
                self.copy(1);
            }
            return self.single();
        }
        if let Some(goes_on) = self.expansion(c) {
            return goes_on;
        }
        if self.at_word && !c.is_whitespace() {
            let word = rest.split([' ', '\t', '\n', ';', '&', '|', '<', '>', '(', ')']).next().unwrap_or_default();
            let before = std::mem::replace(&mut self.last, word.to_owned());
            if word == "[[" {
                self.put(2, "'[['");
                self.test = Some(Test { depth: self.open.len(), goes_on: before == "!" });
                self.at_word = false;
                return true;
            }
            // To the grammar these would make a pattern of what follows.
            if self.test.is_some() && matches!(word, "==" | "=~") {
                self.put(2, if word == "==" { "'=='" } else { "'=~'" });
                self.at_word = false;
                return true;
            }
            if word == "]]" {
                self.test = None;
            }
            if rest.starts_with("((") && before != "for" {
                self.put(1, "( ");
                self.push(Within::Commands(')'));
                return true;
            }
        }
        self.letter(c, end)
    }

    fn letter(&mut self, c: char, end: char) -> bool {
        let rest = self.rest();
        let test = self.test.filter(|test| test.depth == self.open.len());
        self.at_word = matches!(c, ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>');
        match c {
            '\'' => return self.single(),
            '"' => self.push(Within::Double),
            '#' if self.out.is_empty() || self.out.ends_with([' ', '\t', '\n', ';', '&', '|', '(', ')']) => {
                self.copy(rest.find('\n').unwrap_or(rest.len()));
                return true;
            }
            // A list of words, or what `[[` groups: no plain shell takes it.
            '(' if test.is_some() => return false,
            '(' => self.push(Within::Commands(')')),
            ')' if end == ')' => {
                self.open.pop();
            }
            '\n' => return self.line_end(),
            ';' => self.test = None,
            '&' if rest.starts_with("&&") => {
                // There is no program `[[`, so that what follows does not run.
                let is_left_out = test.is_some_and(|test| !test.goes_on);
                self.put(2, if is_left_out { "  " } else { "&&" });
                return true;
            }
            '|' => {
                if let Some(test) = &mut self.test {
                    test.goes_on = true;
                }
                self.copy(if rest.starts_with("||") { 2 } else { 1 });
                return true;
            }
            '&' if rest.starts_with("&>") => {
                self.put(1, "& ");
                return true;
            }
            '>' | '<' if rest[1..].starts_with('&') => {
                self.copy(2);
                return true;
            }
            '<' if rest.starts_with("<<<") => {
                self.copy(3);
                return true;
            }
            '<' if rest.starts_with("<<") => {
                self.heredoc();
                return true;
            }
            _ => {}
        }
        self.copy(c.len_utf8());
        true
    }

    /// Notes a text that follows from the next line on.
    fn heredoc(&mut self) {
        let rest = self.rest();
        let is_indented = rest.starts_with("<<-");
        let begin = rest.len() - rest[2 + usize::from(is_indented)..].trim_start_matches([' ', '\t']).len();
        let word = rest[begin..].split([' ', '\t', '\n', ';', '&', '|', '<', '>', '(', ')']).next().unwrap_or_default();
        self.heredocs.push((word.replace(['\'', '"', '\\'], ""), is_indented));
        self.copy(begin + word.len());
        self.at_word = false;
    }

    fn line_end(&mut self) -> bool {
        self.test = None;
        self.copy(1);
        for (delimiter, is_indented) in std::mem::take(&mut self.heredocs) {
            while !self.rest().is_empty() {
                let line = self.rest().split('\n').next().unwrap_or_default();
                let bare = if is_indented { line.trim_start_matches('\t') } else { line };
                let is_end = bare == delimiter;
                let n_bytes = (line.len() + 1).min(self.rest().len());
                self.copy(n_bytes);
                if is_end {
                    break;
                }
            }
        }
        self.line = self.out.len();
        true
    }
}
