//! The regular expression of a search: how it is compiled, and hints for one that is invalid or
//! finds nothing.

use grep_regex::RegexMatcher;
use grep_regex::RegexMatcherBuilder;
use regex_syntax::ast;
use regex_syntax::ast::Ast;
use regex_syntax::ast::ClassSetItem;

use super::invalid;
use super::pattern::check_length;
use podbay_wire::Fault;
use podbay_wire::Grep;

/// Most bytes of a compiled expression and its tables.
const MAX_REGEX: usize = 16 * 1024 * 1024;

/// Longest expression that is repeated in a hint.
const MAX_HINTED: usize = 200;

/// How lines end in the text that is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineEnds {
    /// In a line feed alone, as they are shown.
    Plain,
    AsTheyAre,
}

pub(super) struct Expression {
    pub(super) matcher: RegexMatcher,
    /// It matches line ends, so the search spans several lines.
    pub(super) is_multi_line: bool,
    pub(super) ends: LineEnds,
}

/// Compiles the expression of a search.
pub(super) fn compile(call: &Grep) -> Result<Expression, Fault> {
    check_length("pattern", &call.pattern)?;
    let build = |terminator: Option<u8>| {
        RegexMatcherBuilder::new()
            .case_insensitive(call.case_insensitive)
            .multi_line(true)
            .line_terminator(terminator)
            .size_limit(MAX_REGEX)
            .dfa_size_limit(MAX_REGEX)
            .build(&call.pattern)
    };
    let ends = if asks_for_carriage_return(&call.pattern) {
        LineEnds::AsTheyAre
    } else {
        LineEnds::Plain
    };
    match build(Some(b'\n')) {
        Ok(matcher) => Ok(Expression {
            matcher,
            is_multi_line: false,
            ends,
        }),
        Err(error) => match build(None) {
            Ok(matcher) => Ok(Expression {
                matcher,
                is_multi_line: true,
                ends,
            }),
            Err(_) => Err(invalid(
                "pattern",
                format!(
                    "{error}{}",
                    as_plain_text(&call.pattern, &error.to_string())
                ),
            )),
        },
    }
}

/// Suggests the pattern as literal text, which is mostly what an invalid expression meant.
fn as_plain_text(pattern: &str, error: &str) -> String {
    if error.contains("size limit") {
        return "\nuse fewer or smaller repetitions such as {1000}".into();
    }
    if pattern.len() > MAX_HINTED {
        return String::new();
    }
    let mut text = String::with_capacity(2 * pattern.len());
    for char in pattern.chars() {
        if is_operator(char) {
            text.push('\\');
        }
        text.push(char);
    }
    format!("\nto search for this very text, use: {text}")
}

/// Returns whether a character is an operator unless it is escaped.
pub(super) fn is_operator(char: char) -> bool {
    r"\.+*?()|[]{}^$".contains(char)
}

/// Returns whether a pattern searches for a carriage return: `\r$`, `a\r\nb`, but not `[^\r\n]`.
fn asks_for_carriage_return(pattern: &str) -> bool {
    struct Look(bool);

    impl ast::Visitor for Look {
        type Output = bool;
        type Err = ();

        fn finish(self) -> Result<bool, ()> {
            Ok(self.0)
        }

        fn visit_pre(&mut self, ast: &Ast) -> Result<(), ()> {
            match ast {
                Ast::Literal(literal) => self.0 |= literal.c == '\r',
                Ast::ClassBracketed(class) if !class.negated => self.0 |= class_names(&class.kind),
                _ => {}
            }
            Ok(())
        }
    }

    ast::parse::Parser::new()
        .parse(pattern)
        .is_ok_and(|ast| ast::visit(&ast, Look(false)).unwrap_or_default())
}

/// Returns whether a character class names a carriage return.
fn class_names(class: &ast::ClassSet) -> bool {
    let ast::ClassSet::Item(item) = class else {
        return false;
    };
    let items = match item {
        ClassSetItem::Union(union) => union.items.as_slice(),
        item => std::slice::from_ref(item),
    };
    items
        .iter()
        .any(|item| matches!(item, ClassSetItem::Literal(literal) if literal.c == '\r'))
}

/// Characters that `grep` and `sed` treat as operators after a backslash, and that are literal here
/// after one.
const GNU: &str = "|(){}+?";

/// Returns the hint for an expression that found nothing and is written in GNU grep's basic syntax:
/// `foo\|bar`.
pub(super) fn hint(pattern: &str) -> Option<String> {
    let (mut meant, mut named) = (String::with_capacity(pattern.len()), Vec::new());
    let mut chars = pattern.chars().peekable();
    while let Some(char) = chars.next() {
        match (char, chars.peek().copied()) {
            ('\\', Some(sign)) if GNU.contains(sign) => {
                chars.next();
                meant.push(sign);
                if !named.contains(&sign) {
                    named.push(sign);
                }
            }
            ('\\', Some(other)) => {
                chars.next();
                meant.extend(['\\', other]);
            }
            // Without a backslash it is literal to GNU grep.
            (sign, _) if GNU.contains(sign) => meant.extend(['\\', sign]),
            (other, _) => meant.push(other),
        }
    }
    if named.is_empty() || pattern.len() > MAX_HINTED || RegexMatcher::new(&meant).is_err() {
        return None;
    }
    let named: Vec<String> = named.iter().map(|sign| format!("`\\{sign}`")).collect();
    let is = if named.len() == 1 {
        "is plain text here"
    } else {
        "are plain text here"
    };
    Some(format!(
        "{} {is}, without the backslash it is an operator; if that is meant, use: {meant}",
        named.join(" ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carriage_returns_are_searched_only_where_the_pattern_names_them() {
        for pattern in [
            r"\r",
            r"two\r$",
            r"a\r\nb",
            r"a\x0d",
            "a\r",
            r"[\r\n]+",
            r"(x|\r?\n)",
            r"\x{D}",
            r"(?:a\u000d)+",
        ] {
            assert!(asks_for_carriage_return(pattern), "{pattern}");
        }
        for pattern in [
            "two$",
            r"\s+$",
            r"[^\r\n]+$",
            r"\n",
            r"\\r",
            r"[a-z\s]",
            "(",
            "^$",
            r"\w\W",
            ".",
        ] {
            assert!(!asks_for_carriage_return(pattern), "{pattern}");
        }
    }

    #[track_caller]
    fn check(pattern: &str, meant: Option<&str>) {
        let said = hint(pattern);
        assert_eq!(
            said.as_deref()
                .and_then(|said| said.split_once("use: "))
                .map(|(_, meant)| meant),
            meant,
            "{said:?}"
        );
    }

    #[test]
    fn gnu_basic_expressions_are_recognized() {
        check(r"foo\|bar", Some("foo|bar"));
        check(r"\(a\)\+", Some("(a)+"));
        check(r"x\{2,3\}", Some("x{2,3}"));
        check(r"colou\?r", Some("colou?r"));
        check(r"f(x)\|g", Some(r"f\(x\)|g"));
        check(r"^\(\w\+\)\.rs$", Some(r"^(\w+)\.rs$"));
        for pattern in ["foo|bar", r"a\\|b", r"\bword\b", r"\d+", "(a|b)", r"1\.5\$"] {
            check(pattern, None);
        }
        check(r"\(", None);
        assert!(hint(r"a\|b").is_some_and(|said| said.starts_with(r"`\|` is plain text here")));
        assert!(
            hint(r"\(a\|b\)")
                .is_some_and(|said| said.starts_with(r"`\(` `\|` `\)` are plain text here"))
        );
    }
}
