//! `make`, and the rules that the text itself has for it.

use std::collections::HashMap;

use super::super::Command;
use super::super::Word;
use super::super::WordKind;
use super::super::expansion_end;
use super::Inner;
use super::Unwrapped;

/// Most lines of rules that are looked through.
const RECIPES_MAX: usize = 64;
/// Most rules of one command that are read.
const EVALUATED_MAX: usize = 16;
/// The longest line that is made of one.
const LINE_MAX: usize = 2 << 10;
/// All that is made of rules.
const MADE_MAX: usize = 16 << 10;
/// How deep variables in the values of variables are followed.
const DEPTH_MAX: usize = 4;
/// Variables that `make` has by itself.
const OWN: [(&str, &str); 9] = [
    ("AR", "ar"),
    ("CC", "cc"),
    ("CURDIR", "$PWD"),
    ("CXX", "g++"),
    ("INSTALL", "install"),
    ("LD", "ld"),
    ("MAKE", "make"),
    ("RM", "rm -f"),
    ("SHELL", "/bin/sh"),
];

/// `make` that is given its rules with the command, and not by a file.
pub(super) fn given(command: &Command, unwrapped: &mut Unwrapped) {
    let arguments = command.arguments();
    let (mut is_read, mut n_evaluated) = (false, 0);
    for (at, word) in arguments.iter().enumerate() {
        let whole = word.text.as_str();
        let option = whole.split('=').next().unwrap_or(whole);
        let before = at.checked_sub(1).and_then(|at| arguments.get(at)).map_or("", |word| word.text.as_str());
        // Long options may be shortened, and letters may stand together.
        let is_long = |option: &str| option.len() > 3 && ["--file", "--makefile"].iter().any(|known| known.starts_with(option));
        let letters = |text: &str| text.strip_prefix('-').is_some_and(|rest| !rest.starts_with('-') && rest.contains('f'));
        let names_file = is_long(before) || (letters(before) && before.ends_with('f')) || letters(whole) || is_long(option);
        let attached = whole.split_once('=').filter(|_| is_long(option)).map(|(_, file)| file);
        let file = attached.or_else(|| whole.split_once('f').filter(|_| letters(whole)).map(|(_, file)| file)).unwrap_or(whole);
        let file = file.trim_start_matches("./");
        let is_given = file.contains("<(")
            || matches!(file, "-" | "/dev/stdin" | "/dev/tty")
            || file.starts_with("/dev/fd/")
            || file.starts_with("/proc/");
        let evaluates = whole.starts_with("-E") || (option.len() > 3 && "--eval".starts_with(option));
        let computes = whole.contains("$(") || whole.contains("${") || whole.starts_with("SHELL") || whole.starts_with(".SHELLFLAGS");
        if (names_file && is_given) || evaluates || (computes && word.kind == WordKind::Known) {
            unwrapped.doubt(whole, "rules that it is given here are not read");
        }
        if names_file
            && is_given
            && let Some(rules) = command.given.as_ref().filter(|_| !std::mem::replace(&mut is_read, true))
        {
            unwrapped.inner.extend(recipes(rules, arguments).into_iter().map(Inner::Text));
        }
        if evaluates && n_evaluated < EVALUATED_MAX {
            n_evaluated += 1;
            let attached =
                whole.split_once('=').map(|(_, rules)| rules).or_else(|| whole.strip_prefix("-E").filter(|rest| !rest.is_empty()));
            let rules = attached.or_else(|| arguments.get(at + 1).map(|word| word.text.as_str()));
            unwrapped.inner.extend(rules.iter().flat_map(|rules| recipes(rules, arguments)).map(Inner::Text));
        }
    }
}

/// Returns what rules for `make` have a shell run, as that gets it where `make` is given these words.
pub(in crate::code::shell) fn recipes(rules: &str, arguments: &[Word]) -> Vec<String> {
    // What `printf` would make of it is not made here.
    let rules = rules.replace("\\t", "\t").replace("\\n", "\n").replace("\\\n\t", " ").replace("\\\n", " ");
    let mut reading = Rules { left: MADE_MAX, ..Rules::default() };
    let (mut recipes, mut others) = (Vec::new(), Vec::new());
    let mut lines = rules.lines().take(RECIPES_MAX);
    while let Some(line) = lines.next() {
        if let Some(recipe) = line.strip_prefix('\t') {
            recipes.push(recipe);
            continue;
        }
        if let Some(name) = line.trim_start().strip_prefix("define ") {
            let text: Vec<&str> = lines.by_ref().take_while(|line| line.trim() != "endef").collect();
            others.extend(text.iter().copied());
            reading.set(name.trim_end_matches([' ', '=', ':']), &text.join("\n"), false);
            continue;
        }
        recipes.extend(line.split_once(':').and_then(|(_, behind)| behind.split_once(';')).map(|(_, recipe)| recipe));
        others.push(line);
        reading.reads_in |= line.trim_start_matches(['-', 's']).starts_with("include ");
        if let Some((name, value)) = assigned(line) {
            reading.set(name, value, line.contains("+="));
            recipes.extend(line.contains("!=").then_some(value));
        }
    }
    for (name, value) in arguments.iter().filter_map(|word| assigned(&word.text)) {
        reading.set(name, value, false);
    }
    let begin = |recipe: String| recipe.trim_start_matches(['@', '-', '+', ' ']).to_owned();
    let mut texts: Vec<String> = recipes.into_iter().map(|recipe| begin(reading.expanded(recipe, 0))).collect();
    // Wherever it stands, `$(shell …)` runs.
    for line in others {
        reading.expanded(line, 0);
    }
    texts.append(&mut reading.run);
    texts
}

/// Returns the variable that a line sets, and to what: `D = .`, `export D := .`, `a: D=.`.
fn assigned(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let name = name.trim_end_matches([':', '?', '+', '!', ' ', '\t']).rsplit([' ', ':', '\t']).next()?;
    is_name(name).then(|| (name, value.trim()))
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
}

/// What rules say of variables, and have run on the way.
#[derive(Default)]
struct Rules {
    variables: HashMap<String, String>,
    /// They read others in, which may set any variable.
    reads_in: bool,
    run: Vec<String>,
    /// How much may still be made.
    left: usize,
}

impl Rules {
    fn set(&mut self, name: &str, value: &str, adds: bool) {
        let before = self.variables.get(name).filter(|_| adds).map_or(String::new(), |before| format!("{before} "));
        if before.len() + value.len() <= LINE_MAX {
            self.variables.insert(name.to_owned(), before + value);
        }
    }

    /// Returns a text with the values of variables in their places; of one that nothing sets, the environment may have a value.
    fn expanded(&mut self, text: &str, depth: usize) -> String {
        let (mut made, mut rest) = (String::new(), text);
        while let Some(at) = rest.find('$') {
            made.push_str(&rest[..at]);
            rest = &rest[at..];
            if let Some(behind) = rest.strip_prefix("$$") {
                made.push('$');
                rest = behind;
                continue;
            }
            let (whole, behind) = rest.split_at(if rest.starts_with("$(") || rest.starts_with("${") { expansion_end(rest) } else { 1 });
            let inside = whole.get(2..whole.len().saturating_sub(1)).unwrap_or_default().trim();
            rest = behind;
            if depth >= DEPTH_MAX || whole.len() > self.left {
                made.push_str(whole);
                continue;
            }
            self.left -= whole.len();
            if let Some(command) = inside.strip_prefix("shell ") {
                let command = self.expanded(command, depth + 1);
                made.push_str(&format!("$({command})"));
                self.run.push(command);
            } else if !is_name(inside) {
                // Its other functions say something of what they are given.
                self.expanded(inside, depth + 1);
                made.push_str(whole);
            } else if let Some(value) = self.variables.get(inside).cloned() {
                made.push_str(&self.expanded(&value, depth + 1));
            } else if let Some((_, value)) = OWN.iter().find(|(name, _)| *name == inside) {
                made.push_str(value);
            } else if self.reads_in {
                made.push_str(whole);
            } else {
                made.push_str(&format!("${{{inside}}}"));
            }
        }
        made.push_str(rest);
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rules: &str, expected: &[&str]) {
        assert_eq!(recipes(rules, &[]), expected, "{rules}");
    }

    #[test]
    fn a_recipe_is_what_the_shell_gets() {
        check("a:\n\trm $$x $@", &["rm $x $@"]);
        check("a: b ; @rm x", &["rm x"]);
        check("D=.\na:\n\t-rm $(D)/* ${E}", &["rm ./* ${E}"]);
        check("D := a\nD += b\na:\n\trm $(D)", &["rm a b"]);
        check("a: D=b\na:\n\trm $(D)/*", &["rm b/*"]);
        check("A = $(B)/x\nB = y\na:\n\trm $(A)", &["rm y/x"]);
        check("a:\n\t$(RM) -r $(CURDIR)/x", &["rm -f -r $PWD/x"]);
        check("define R\nrm x\nendef\na:\n\t$(R)", &["rm x"]);
        check("$(shell rm x)", &["rm x"]);
        check("X := $(strip $(shell rm x))", &["rm x"]);
        check("X != rm x", &["rm x"]);
        check("include a.mk\na:\n\trm $(D)/*", &["rm $(D)/*"]);
        check("a:\n\trm \\\n\tx", &["rm  x"]);
    }

    #[test]
    fn variables_of_variables_end() {
        let rules = format!("A=$(A)$(A)\n{}", "a:\n\t$(A)\n".repeat(30));
        assert!(recipes(&rules, &[]).iter().map(String::len).sum::<usize>() < 4 * MADE_MAX);
    }
}
