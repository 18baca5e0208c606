use std::iter::Peekable;
use std::mem;
use std::str::Chars;

use super::Command;
use super::Script;

/// Keywords that are followed by a command.
const BEFORE_A_COMMAND: [&str; 9] = [
    "!", "if", "then", "elif", "else", "while", "until", "do", "{",
];

/// Keywords that are not followed by a command.
const OTHER_KEYWORDS: [&str; 8] = ["for", "case", "select", "[[", "fi", "done", "esac", "}"];

/// Keywords that are followed by a command somewhere.
const AROUND_A_COMMAND: [&str; 2] = ["function", "coproc"];

const GLOB: &str = "a glob";
const BRACES: &str = "`{`";
const VARIABLE: &str = "a variable";
const KEYWORD: &str = "a keyword";
const NO_TARGET: &str = "a redirect without a file";
const NO_END: &str = "a quote without an end";
const SUBSTITUTION: &str = "a command substitution";

/// Parses a script, up to what cannot be parsed.
pub fn read(text: &str) -> Script {
    let mut reader = Reader {
        rest: text.chars().peekable(),
        script: Script::default(),
        command: Command::default(),
        word: None,
        redirect: None,
    };
    if let Err(unknown) = reader.read() {
        reader.note(unknown);
        reader.script.is_cut = true;
        // The rest of this word, and of its command, is unknown.
        reader.word = None;
        reader.command.words.push(None);
        reader.script.commands.push(reader.command);
    }
    reader.script
}

struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    script: Script,
    command: Command,
    word: Option<Word>,
    /// A redirect whose file is still to come.
    redirect: Option<Redirect>,
}

#[derive(Default)]
struct Word {
    text: String,
    is_quoted: bool,
    is_assignment: bool,
    /// What in it is not known.
    unknown: Option<&'static str>,
}

#[derive(Clone, Copy)]
struct Redirect {
    writes: bool,
    /// A number in the place of the file is a descriptor.
    duplicates: bool,
}

/// What stopped the parsing, in words.
type Unknown = &'static str;

impl Reader<'_> {
    fn read(&mut self) -> Result<(), Unknown> {
        while let Some(c) = self.rest.next() {
            match c {
                ' ' | '\t' => self.end_word()?,
                ';' if self.rest.peek() == Some(&';') => return Err(KEYWORD),
                '\n' | ';' => self.end_command()?,
                '&' if self.rest.next_if_eq(&'>').is_some() => {
                    self.rest.next_if_eq(&'>');
                    self.end_word()?;
                    self.expect(Redirect {
                        writes: true,
                        duplicates: false,
                    });
                }
                '&' | '|' => {
                    self.rest
                        .next_if(|next| *next == c || (c, *next) == ('|', '&'));
                    self.end_command()?;
                }
                '<' | '>' => self.read_redirect(c)?,
                '#' if self.word.is_none() => while self.rest.next_if(|c| *c != '\n').is_some() {},
                '\'' => self.read_single()?,
                '"' => self.read_double()?,
                '\\' => match self.rest.next() {
                    Some('\n') => {}
                    Some(c) => self.quoted().text.push(c),
                    None => return Err(NO_END),
                },
                '$' => self.read_dollar(false)?,
                '`' => return Err(SUBSTITUTION),
                '(' | ')' => return Err("a parenthesis"),
                '\0' => return Err("a byte that is zero"),
                c => self.read_letter(c),
            }
        }
        self.end_command()
    }

    fn read_letter(&mut self, c: char) {
        let word = self.word.get_or_insert_default();
        let is_start = word.text.is_empty() && !word.is_quoted;
        let unknown = match c {
            '*' | '?' | '[' => Some(GLOB),
            '{' => Some(BRACES),
            '~' if is_start || word.text.ends_with(['=', ':']) => Some("a home folder"),
            _ => None,
        };
        if c == '=' && !word.is_quoted && is_name(word.text.strip_suffix('+').unwrap_or(&word.text))
        {
            word.is_assignment = true;
        }
        word.unknown = word.unknown.or(unknown);
        word.text.push(c);
    }

    fn read_single(&mut self) -> Result<(), Unknown> {
        loop {
            match self.rest.next().ok_or(NO_END)? {
                '\'' => break,
                '\0' => return Err("a byte that is zero"),
                c => self.quoted().text.push(c),
            }
        }
        self.quoted();
        Ok(())
    }

    fn read_double(&mut self) -> Result<(), Unknown> {
        loop {
            match self.rest.next().ok_or(NO_END)? {
                '"' => break,
                '`' => return Err(SUBSTITUTION),
                '\0' => return Err("a byte that is zero"),
                '$' => self.read_dollar(true)?,
                '\\' => match self.rest.next().ok_or(NO_END)? {
                    '\n' => {}
                    c @ ('$' | '`' | '"' | '\\') => self.quoted().text.push(c),
                    c => self.quoted().text.extend(['\\', c]),
                },
                c => self.quoted().text.push(c),
            }
        }
        self.quoted();
        Ok(())
    }

    /// Parses what follows a `$`: a variable makes its word unknown; where anything else ends is
    /// not determined.
    fn read_dollar(&mut self, is_quoted: bool) -> Result<(), Unknown> {
        let Some(&next) = self.rest.peek() else {
            self.quoted().text.push('$');
            return Ok(());
        };
        match next {
            '(' => return Err(SUBSTITUTION),
            '[' => return Err("`$[`"),
            '\'' | '"' if !is_quoted => return Err("a quote behind `$`"),
            '{' => {
                self.rest.next();
                while self
                    .rest
                    .next_if(|c| c.is_ascii_alphanumeric() || *c == '_')
                    .is_some()
                {}
                if self.rest.next() != Some('}') {
                    return Err("`${`");
                }
            }
            c if c.is_ascii_alphanumeric() || "_@*#?-$!".contains(c) => drop(self.rest.next()),
            _ => {
                self.quoted().text.push('$');
                return Ok(());
            }
        }
        let word = self.quoted();
        word.text.push('$');
        word.unknown = word.unknown.or(Some(VARIABLE));
        Ok(())
    }

    fn read_redirect(&mut self, c: char) -> Result<(), Unknown> {
        // A number directly before it is a descriptor, not a word.
        let is_descriptor = |word: &mut Word| {
            !word.is_quoted
                && word.unknown.is_none()
                && word.text.bytes().all(|b| b.is_ascii_digit())
        };
        self.word.take_if(is_descriptor);
        self.end_word()?;
        if c == '<' && self.rest.peek() == Some(&'<') {
            return Err("a here-document");
        }
        let next = self
            .rest
            .next_if(|next| matches!((c, *next), (_, '&' | '>') | ('>', '|')));
        self.expect(Redirect {
            writes: c == '>' || next == Some('>'),
            duplicates: next == Some('&'),
        });
        Ok(())
    }

    fn expect(&mut self, redirect: Redirect) {
        if self.redirect.replace(redirect).is_some() {
            self.note(NO_TARGET);
        }
    }

    /// Returns the current word, a part of which is quoted.
    fn quoted(&mut self) -> &mut Word {
        let word = self.word.get_or_insert_default();
        word.is_quoted = true;
        word
    }

    fn note(&mut self, unknown: Unknown) {
        self.script.unknown = self.script.unknown.or(Some(unknown));
    }

    fn end_word(&mut self) -> Result<(), Unknown> {
        let Some(mut word) = self.word.take() else {
            return Ok(());
        };
        // `[` alone is a program, and `{}` is a placeholder of `find` and `xargs`.
        if matches!(word.text.as_str(), "[" | "{}") {
            word.unknown = None;
        }
        let Word {
            text,
            is_quoted,
            is_assignment,
            unknown,
        } = word;
        if let Some(redirect) = self.redirect.take() {
            let is_descriptor = redirect.duplicates
                && text
                    .trim_end_matches('-')
                    .bytes()
                    .all(|byte| byte.is_ascii_digit());
            let is_nowhere = unknown.is_none() && text == "/dev/null";
            self.command.writes |= redirect.writes && !is_descriptor && !is_nowhere;
        } else if self.command.words.is_empty() && is_assignment {
            self.command.sets_variables = true;
        } else if self.command.words.is_empty()
            && !is_quoted
            && BEFORE_A_COMMAND.contains(&text.as_str())
        {
            self.note(KEYWORD);
            return Ok(());
        } else if self.command.words.is_empty()
            && !is_quoted
            && OTHER_KEYWORDS.contains(&text.as_str())
        {
            self.command.words.push(Some(text));
            self.note(KEYWORD);
            return Ok(());
        } else if self.command.words.is_empty()
            && !is_quoted
            && AROUND_A_COMMAND.contains(&text.as_str())
        {
            return Err(KEYWORD);
        } else {
            self.command.words.push(unknown.is_none().then_some(text));
        }
        if let Some(unknown) = unknown {
            self.note(unknown);
        }
        Ok(())
    }

    fn end_command(&mut self) -> Result<(), Unknown> {
        self.end_word()?;
        if self.redirect.take().is_some() {
            self.note(NO_TARGET);
        }
        let command = mem::take(&mut self.command);
        if command != Command::default() {
            self.script.commands.push(command);
        }
        Ok(())
    }
}

/// Returns whether a text is a valid variable name.
fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
