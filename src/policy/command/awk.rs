//! Programs of `awk` that certainly only print.
//!
//! A program is taken apart letter by letter. What opens a file or starts something (`|`, `>` behind `print`, `getline`, `system`) is not
//! taken, and neither is whatever two kinds of awk may take apart otherwise.

use super::words::may_be_option;
use podbay_code::shell::Word;
use podbay_code::shell::WordKind;

/// Words of the language, and functions that only compute.
const KNOWN: [&str; 36] = [
    "BEGIN", "END", "print", "printf", "if", "else", "while", "for", "do", "in", "next", "nextfile", "exit", "break", "continue", "delete",
    "return", "length", "substr", "index", "split", "sub", "gsub", "match", "sprintf", "tolower", "toupper", "int", "sqrt", "exp", "log",
    "sin", "cos", "atan2", "rand", "gensub",
];

/// Words behind which a `/` begins a pattern, and not a division.
const BEFORE_PATTERN: [&str; 5] = ["print", "printf", "in", "else", "return"];

/// `awk` that prints what it makes of what it reads: no file written, nothing started, no file named but among its words.
pub(super) fn only_reads(arguments: &[Word]) -> bool {
    let mut words = arguments.iter();
    let program = loop {
        let Some(word) = words.next() else { return false };
        let Some(text) = word.known() else { return false };
        match text {
            "-F" | "-v" => {
                let value = words.next().and_then(Word::known);
                if value.is_none_or(|value| text == "-v" && !sets_own(value)) {
                    return false;
                }
            }
            "--" => match words.next().and_then(Word::known) {
                Some(program) => break program,
                None => return false,
            },
            _ if text.starts_with("-F") => {}
            _ if text.starts_with('-') => return false,
            _ => break text,
        }
    };
    // Such a name is a place on the network to some of them.
    let is_file = |word: &Word| match word.kind {
        WordKind::Known => !word.text.starts_with("/inet"),
        WordKind::Pattern => !may_be_option(word) && !word.text.starts_with('/'),
        WordKind::Unknown => word.text.starts_with("<("),
    };
    words.all(is_file) && only_prints(program)
}

/// Returns whether a program may be started by what `awk` is told.
pub(super) fn may_start(arguments: &[Word]) -> bool {
    let mut words = arguments.iter();
    let program = loop {
        let Some(word) = words.next() else { return false };
        let Some(text) = word.known() else { return true };
        match text {
            // Whatever the value is, it is one word where it is known or in quotes.
            "-F" | "-v" if words.next().is_some_and(|value| value.known().is_some() || value.quoted) => {}
            "--version" | "--help" | "-V" => return false,
            "--" => match words.next().map(Word::known) {
                Some(Some(program)) => break program,
                Some(None) => return true,
                None => return false,
            },
            _ if text.starts_with("-F") || (text.starts_with("-v") && text.contains('=')) => {}
            _ if text.starts_with('-') => return true,
            _ => break text,
        }
    };
    let starts = || program.contains("system") || program.replace("||", "").contains('|') || program.contains(['@', '\\']);
    !only_prints(program) && starts()
}

/// Returns whether `NAME=VALUE` sets no variable that says what is read.
fn sets_own(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| is_plain_name(name))
}

fn is_plain_name(name: &str) -> bool {
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let special = ["ARGV", "ARGC", "ENVIRON", "PROCINFO", "SYMTAB", "FUNCTAB", "getline", "system", "close", "fflush", "func", "function"];
    is_name && !special.contains(&name)
}

/// What stood before: it tells what a `/` and what a `>` is.
#[derive(Clone, Copy, PartialEq)]
enum Before {
    /// Nothing that could be divided.
    Operator,
    Value,
    /// `++` and `--` may belong to either side.
    Either,
}

/// Returns whether a program does nothing but compute and print.
fn only_prints(program: &str) -> bool {
    let mut rest = program;
    let (mut n_braces, mut n_parentheses) = (0_i32, 0_i32);
    let mut before = Before::Operator;
    while let Some(c) = rest.chars().next() {
        let taken = match c {
            ' ' | '\t' => Some((1, before)),
            '+' | '-' if rest.starts_with("++") || rest.starts_with("--") => Some((2, Before::Either)),
            '\n' | ';' | ',' | '!' | '~' | '?' | ':' | '+' | '-' | '*' | '%' | '^' | '=' | '<' | '$' => Some((1, Before::Operator)),
            '{' | '}' | '[' => {
                n_braces += i32::from(c == '{') - i32::from(c == '}');
                Some((1, Before::Operator))
            }
            '(' => {
                n_parentheses += 1;
                Some((1, Before::Operator))
            }
            ')' | ']' => {
                n_parentheses -= i32::from(c == ')');
                Some((1, Before::Value))
            }
            // Behind `print` it names a file; in parentheses, or in front of a body, it compares.
            '>' => (!rest.starts_with(">>") && (n_parentheses > 0 || n_braces == 0)).then_some((1, Before::Operator)),
            '&' | '|' => (rest.starts_with("&&") || rest.starts_with("||")).then_some((2, Before::Operator)),
            '"' => string(rest).map(|end| (end, Before::Value)),
            '/' if before == Before::Operator => pattern(rest).map(|end| (end, Before::Value)),
            // Without another one it begins no pattern.
            '/' => (before == Before::Value && !rest[1..].contains('/')).then_some((1, Before::Operator)),
            c if c.is_ascii_digit() || c == '.' => {
                let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
                Some((end, Before::Value))
            }
            // In parentheses, as in `for (print > f;;)`, its `>` would be taken for one that compares.
            'p' if n_parentheses > 0 && ["print", "printf"].contains(&word(rest)) => None,
            c if c.is_ascii_alphabetic() || c == '_' => name(rest),
            _ => None,
        };
        let Some((taken, now)) = taken else { return false };
        before = now;
        rest = &rest[taken..];
    }
    n_braces == 0 && n_parentheses == 0
}

fn string(text: &str) -> Option<usize> {
    let mut letters = text.char_indices().skip(1);
    while let Some((at, c)) = letters.next() {
        match c {
            '"' => return Some(at + 1),
            '\n' => return None,
            '\\' => drop(letters.next()),
            _ => {}
        }
    }
    None
}

/// Reads a pattern between slashes; a list of letters in it must not hold what could end it.
fn pattern(text: &str) -> Option<usize> {
    let mut letters = text.char_indices().skip(1);
    let mut is_in_list = false;
    while let Some((at, c)) = letters.next() {
        match c {
            '/' => return (!is_in_list).then_some(at + 1),
            '\n' => return None,
            '\\' => drop(letters.next()),
            '[' if !is_in_list => {
                is_in_list = true;
                let inside = text[at + 1..].strip_prefix('^').unwrap_or(&text[at + 1..]);
                // Where it ends is not the same to all.
                if inside.starts_with(']') {
                    return None;
                }
            }
            '[' if !text[at..].starts_with("[:") => return None,
            ']' if is_in_list && !text[..at].ends_with(':') => is_in_list = false,
            _ => {}
        }
    }
    None
}

/// Returns the word that a text begins with.
fn word(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
    &text[..end]
}

fn name(text: &str) -> Option<(usize, Before)> {
    let name = word(text);
    let end = name.len();
    let is_called = text[end..].trim_start_matches([' ', '\t']).starts_with('(');
    let is_known = KNOWN.contains(&name);
    if !is_plain_name(name) || (is_called && !is_known) {
        return None;
    }
    let is_operator = BEFORE_PATTERN.contains(&name);
    Some((end, if is_operator { Before::Operator } else { Before::Value }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_certainly_prints_is_known() {
        for program in [
            "{print $1}",
            "{ print $1, $NF }",
            "NR==1",
            "NR > 1 {print}",
            "/^a|b/ {print $2}",
            "!/x/",
            "$3 > 100",
            "$1 ~ /[a-z]+/ && $2 != \"x\" { n++ } END { print n / 2 }",
            "{s+=$1} END {printf \"%d\\n\", s}",
            "BEGIN{FS=\":\"; OFS=\"\\t\"} {print $1,$3}",
            "{ if ($1 > 5) print length($0) }",
            "{ gsub(/a/, \"b\"); print toupper($0) }",
            "!seen[$0]++",
            "{ a[$1] += $2 } END { for (k in a) print k, a[k] }",
            "/[[:space:]]/ { print }",
            "{print ($1 > 2) ? \"a\" : \"b\"}",
            "{ print \"a | b > c\" }",
        ] {
            assert!(only_prints(program), "{program}");
        }
        for program in [
            "{print > \"f\"}",
            "{print $1 >> \"f\"}",
            "{print (1) > \"f\"}",
            "{print | \"sh\"}",
            "BEGIN {system(\"x\")}",
            "BEGIN {system (\"x\")}",
            "{\"date\" | getline x}",
            "{getline x < \"f\"; print x}",
            "BEGIN {ARGV[1]=\".env\"}",
            "@load \"x\"",
            "function f() {}",
            "{f()}",
            "{print a / b; system(\"x\") / c}",
            "{n++ / b; print > \"f\" /c}",
            "{if (x) /\"/; print > \"f\" \"/}",
            "{n / \"/\"; print > \"f\"; x = \"/\"}",
            "/[]/] { system(\"x\") } /]/",
            "/[/]/ { print }",
            "{ print \"a\n\" }",
            "{ x = 1 # }\n print > \"f\" }",
            "{ print `x` }",
            "{ (print) > \"f\" }",
            "{ print } }",
            "{print $1 |& \"x\"}",
            "BEGIN{for(print \"x\" > \"f\";0;);}",
            "BEGIN{for(;0;printf \"x\" > \"f\");}",
        ] {
            assert!(!only_prints(program), "{program}");
        }
    }
}
