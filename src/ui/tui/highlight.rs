//! Colours for source code, by a lexer that knows comments, strings, numbers and keywords.
//!
//! It only helps the eye. It goes line by line and keeps no more than one state between two, so a
//! stream of any length costs what its new lines cost.

use ratatui::text::Span;

use super::theme::Theme;
use super::theme::Token;
use super::theme::span;

struct Language {
    names: &'static [&'static str],
    line_comment: &'static [&'static str],
    block_comment: Option<(&'static str, &'static str)>,
    /// What may stand around a string; three of one kind are a string of several lines.
    quotes: &'static str,
    has_triple: bool,
    keywords: &'static str,
}

const C_LIKE: &str = "auto break case char class const constexpr continue default delete do double else enum export extern false final float for friend goto if import inline int interface long namespace new nullptr operator override private protected public return short signed sizeof static struct switch template this throw true try typedef typename union unsigned using var virtual void volatile while abstract boolean byte extends finally implements instanceof package super throws null record sealed string bool async await foreach in out ref get set fun val when object";

const LANGUAGES: &[Language] = &[
    Language {
        names: &["rust", "rs"],
        line_comment: &["//"],
        block_comment: Some(("/*", "*/")),
        quotes: "\"",
        has_triple: false,
        keywords: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while Some None Ok Err",
    },
    Language {
        names: &["python", "py", "python3"],
        line_comment: &["#"],
        block_comment: None,
        quotes: "\"'",
        has_triple: true,
        keywords: "and as assert async await break class continue def del elif else except False finally for from global if import in is lambda None nonlocal not or pass raise return True try while with yield match case self",
    },
    Language {
        names: &["javascript", "js", "jsx", "typescript", "ts", "tsx", "mjs"],
        line_comment: &["//"],
        block_comment: Some(("/*", "*/")),
        quotes: "\"'`",
        has_triple: false,
        keywords: "as async await break case catch class const continue debugger default delete do else enum export extends false finally for from function if implements import in instanceof interface let new null of return static super switch this throw true try type typeof undefined var void while yield readonly",
    },
    Language {
        names: &["go", "golang"],
        line_comment: &["//"],
        block_comment: Some(("/*", "*/")),
        quotes: "\"'`",
        has_triple: false,
        keywords: "break case chan const continue default defer else fallthrough false for func go goto if import interface map nil package range return select struct switch true type var",
    },
    Language {
        names: &[
            "c", "h", "cpp", "c++", "cc", "hpp", "java", "cs", "csharp", "kotlin", "kt", "swift",
            "php", "scala",
        ],
        line_comment: &["//"],
        block_comment: Some(("/*", "*/")),
        quotes: "\"'",
        has_triple: false,
        keywords: C_LIKE,
    },
    Language {
        names: &["bash", "sh", "shell", "zsh", "console"],
        line_comment: &["#"],
        block_comment: None,
        quotes: "\"'",
        has_triple: false,
        keywords: "case do done elif else esac export fi for function if in local return set then unset until while cd echo exit source sudo",
    },
    Language {
        names: &[
            "toml",
            "ini",
            "yaml",
            "yml",
            "dockerfile",
            "make",
            "makefile",
        ],
        line_comment: &["#"],
        block_comment: None,
        quotes: "\"'",
        has_triple: false,
        keywords: "true false null yes no FROM RUN COPY ADD CMD ENTRYPOINT ENV ARG WORKDIR EXPOSE USER VOLUME LABEL",
    },
    Language {
        names: &["json", "jsonc", "jsonl"],
        line_comment: &["//"],
        block_comment: None,
        quotes: "\"",
        has_triple: false,
        keywords: "true false null",
    },
    Language {
        names: &["sql"],
        line_comment: &["--"],
        block_comment: Some(("/*", "*/")),
        quotes: "'",
        has_triple: false,
        keywords: "select from where insert into values update set delete create table drop alter join left right inner outer on group by order having limit and or not null primary key references index view as distinct union SELECT FROM WHERE INSERT INTO VALUES UPDATE SET DELETE CREATE TABLE DROP ALTER JOIN LEFT RIGHT INNER OUTER ON GROUP BY ORDER HAVING LIMIT AND OR NOT NULL PRIMARY KEY REFERENCES INDEX VIEW AS DISTINCT UNION",
    },
    Language {
        names: &["css", "scss", "less"],
        line_comment: &[],
        block_comment: Some(("/*", "*/")),
        quotes: "\"'",
        has_triple: false,
        keywords: "important media import from to",
    },
    Language {
        names: &["ruby", "rb", "elixir", "ex"],
        line_comment: &["#"],
        block_comment: None,
        quotes: "\"'",
        has_triple: false,
        keywords: "alias and begin break case class def defined do else elsif end ensure false for if in module next nil not or redo require rescue retry return self super then true undef unless until when while yield defmodule fn",
    },
];

/// Where the last line ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Code,
    /// In a comment or a string, until this.
    Until(&'static str, Token),
}

/// Colours the lines of one piece of code, in their order.
pub(super) struct Highlighter {
    language: Option<&'static Language>,
    state: State,
    is_diff: bool,
}

impl Highlighter {
    /// `name` is what stands behind a fence, or a file's suffix.
    pub(super) fn new(name: &str) -> Self {
        let name = name
            .split(|c: char| !(c.is_ascii_alphanumeric() || c == '+'))
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase();
        Self {
            language: LANGUAGES
                .iter()
                .find(|language| language.names.contains(&name.as_str())),
            state: State::Code,
            is_diff: matches!(name.as_str(), "diff" | "patch"),
        }
    }

    pub(super) fn line(&mut self, line: &str, theme: Theme) -> Vec<Span<'static>> {
        if self.is_diff {
            return vec![diff_line(line, theme)];
        }
        let Some(language) = self.language else {
            return vec![span(line, theme.plain())];
        };
        let mut out = Pieces {
            spans: Vec::new(),
            theme,
        };
        let mut rest = line;
        while !rest.is_empty() {
            rest = match self.state {
                State::Until(end, token) => match rest.find(end) {
                    Some(at) => {
                        self.state = State::Code;
                        out.take(rest, at + end.len(), token)
                    }
                    None => out.take(rest, rest.len(), token),
                },
                State::Code => self.code(language, rest, &mut out),
            };
        }
        out.spans
    }

    /// Takes one word, string or comment.
    fn code<'a>(&mut self, language: &Language, rest: &'a str, out: &mut Pieces) -> &'a str {
        if language
            .line_comment
            .iter()
            .any(|mark| rest.starts_with(mark))
        {
            return out.take(rest, rest.len(), Token::Comment);
        }
        if let Some((begin, end)) = language.block_comment
            && rest.starts_with(begin)
        {
            self.state = State::Until(end, Token::Comment);
            return out.take(rest, begin.len(), Token::Comment);
        }
        for triple in ["\"\"\"", "'''"] {
            if language.has_triple && rest.starts_with(triple) {
                self.state = State::Until(triple, Token::Text);
                return out.take(rest, triple.len(), Token::Text);
            }
        }
        let first = rest.chars().next().unwrap_or(' ');
        if language.quotes.contains(first) {
            return out.take(rest, string_end(rest, first), Token::Text);
        }
        if first.is_alphabetic() || first == '_' {
            let end = rest
                .find(|c: char| !(c.is_alphanumeric() || c == '_'))
                .unwrap_or(rest.len());
            let is_keyword = language
                .keywords
                .split(' ')
                .any(|word| word == &rest[..end]);
            let token = if is_keyword {
                Token::Keyword
            } else {
                Token::Plain
            };
            return out.take(rest, end, token);
        }
        if first.is_ascii_digit() {
            let end = rest
                .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_')))
                .unwrap_or(rest.len());
            return out.take(rest, end, Token::Number);
        }
        out.take(rest, first.len_utf8(), Token::Plain)
    }
}

/// Colours a line of a unified diff.
pub(super) fn diff_line(line: &str, theme: Theme) -> Span<'static> {
    let style = match line.as_bytes().first() {
        _ if line.starts_with("+++") || line.starts_with("---") => theme.bold(),
        Some(b'+') => theme.good(),
        Some(b'-') => theme.bad(),
        Some(b'@') => theme.accent(),
        _ => theme.plain(),
    };
    span(line, style)
}

fn string_end(rest: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

struct Pieces {
    spans: Vec<Span<'static>>,
    theme: Theme,
}

impl Pieces {
    fn take<'a>(&mut self, text: &'a str, n: usize, token: Token) -> &'a str {
        let (now, later) = text.split_at(n);
        let made = span(now, self.theme.token(token));
        match self.spans.last_mut() {
            Some(last) if last.style == made.style => last.content.to_mut().push_str(&made.content),
            _ => self.spans.push(made),
        }
        later
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(language: &str, lines: &[&str], expected: &[&[(&str, Token)]]) {
        let theme = Theme::new(true);
        let mut highlighter = Highlighter::new(language);
        for (line, expected) in lines.iter().zip(expected) {
            let spans: Vec<Span<'static>> = expected
                .iter()
                .map(|(words, token)| span(words, theme.token(*token)))
                .collect();
            assert_eq!(highlighter.line(line, theme), spans, "{line}");
        }
    }

    #[test]
    fn code_is_coloured_line_by_line() {
        use Token::Comment;
        use Token::Keyword;
        use Token::Number;
        use Token::Plain;
        use Token::Text;
        check(
            "rust",
            &[r#"let x = "a\"b"; // why"#, "/* a", "b */ 12"],
            &[
                &[
                    ("let", Keyword),
                    (" x = ", Plain),
                    (r#""a\"b""#, Text),
                    ("; ", Plain),
                    ("// why", Comment),
                ],
                &[("/* a", Comment)],
                &[("b */", Comment), (" ", Plain), ("12", Number)],
            ],
        );
        check(
            "python",
            &["'''doc", "end''' def f"],
            &[
                &[("'''doc", Text)],
                &[
                    ("end'''", Text),
                    (" ", Plain),
                    ("def", Keyword),
                    (" f", Plain),
                ],
            ],
        );
        check("brainfuck", &["let x"], &[&[("let x", Plain)]]);
    }
}
