use std::ops::Range;

use super::Word;
use super::WordKind;
use super::held;

/// Most words that braces may make of one.
const BRACES_MAX: usize = 64;
/// Longest word with braces that are looked into.
const BRACED_MAX: usize = 4096;

/// Reads one word letter by letter, as the shell does, and adds what it becomes.
///
/// `opaque` are the expansions in it, as the grammar found them: an expansion elsewhere, or anything that ends a word, means that the grammar
/// took the text for something else than the shell would.
pub(super) fn read(source: &str, range: Range<usize>, opaque: &[Range<usize>], words: &mut Vec<Word>) -> Result<(), &'static str> {
    let mut reading = Reading::new(source, range, opaque);
    let read = reading.run();
    words.append(&mut reading.done);
    read?;
    reading.finish(words)
}

/// Reads the value of an assignment: neither braces nor blanks make several words of it.
pub(super) fn read_value(source: &str, range: Range<usize>, opaque: &[Range<usize>]) -> Result<Word, &'static str> {
    let mut reading = Reading::new(source, range, opaque);
    reading.is_value = true;
    reading.run()?;
    Ok(reading.take())
}

struct Reading<'a> {
    source: &'a str,
    opaque: std::iter::Peekable<std::slice::Iter<'a, Range<usize>>>,
    at: usize,
    end: usize,
    start: usize,
    is_value: bool,
    /// Words that an expansion split off.
    done: Vec<Word>,
    text: String,
    /// Places in `text` of braces and commas that are not quoted.
    braces: Vec<usize>,
    has_glob: bool,
    in_bracket: bool,
    is_unknown: bool,
    is_plain: bool,
    is_quoted: bool,
    /// An expansion stands outside of quotes.
    splits: bool,
}

impl<'a> Reading<'a> {
    fn new(source: &'a str, range: Range<usize>, opaque: &'a [Range<usize>]) -> Self {
        Self {
            source,
            opaque: opaque.iter().peekable(),
            at: range.start,
            end: range.end,
            start: range.start,
            is_value: false,
            done: Vec::new(),
            text: String::new(),
            braces: Vec::new(),
            has_glob: false,
            in_bracket: false,
            is_unknown: false,
            is_plain: true,
            is_quoted: true,
            splits: false,
        }
    }

    fn peek(&self) -> Option<char> {
        self.source.get(self.at..self.end)?.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn run(&mut self) -> Result<(), &'static str> {
        while self.at < self.end {
            if self.expansion(false) {
                self.is_quoted = false;
                self.splits = true;
                continue;
            }
            let first = self.at == self.start;
            let Some(c) = self.next() else { return Err("it ends within a character") };
            self.is_plain &= c.is_ascii_alphanumeric() || "_-./:@%+=,".contains(c);
            self.is_quoted &= c == '"';
            match c {
                '\\' => match self.next() {
                    Some('\n') => return Err("a word that goes on in the next line"),
                    Some(c) => self.text.push(c),
                    None => return Err("a backslash at its end"),
                },
                '\'' => self.single()?,
                '"' => self.double()?,
                '$' if self.peek() == Some('\'') => {
                    self.at += 1;
                    self.ansi()?;
                }
                '$' if self.peek() == Some('"') => {
                    self.at += 1;
                    self.double()?;
                }
                '$' => self.dollar()?,
                '`' => return Err("a substitution that cannot be followed"),
                '|' | '&' | ';' | '<' | '>' | '(' | ')' | ' ' | '\t' | '\n' => return Err("more than one word where one is expected"),
                '#' if first => return Err("a comment where a word is expected"),
                '~' if first && !matches!(self.peek(), None | Some('/')) => {
                    self.is_unknown = true;
                    self.text.push('~');
                }
                c => {
                    if matches!(c, '{' | '}' | ',') {
                        self.braces.push(self.text.len());
                    }
                    self.has_glob |= matches!(c, '*' | '?') || (c == ']' && self.in_bracket);
                    self.in_bracket |= c == '[';
                    self.text.push(c);
                }
            }
        }
        Ok(())
    }

    /// Steps over an expansion that begins here.
    fn expansion(&mut self, quoted: bool) -> bool {
        while self.opaque.next_if(|range| range.start < self.at).is_some() {}
        let Some(range) = self.opaque.next_if(|range| range.start == self.at && range.end <= self.end) else { return false };
        let text = &self.source[range.clone()];
        self.at = range.end;
        self.is_plain = false;
        if matches!(text, "$IFS" | "${IFS}") && !quoted && !self.is_value {
            // What it splits is said, though another value would split elsewhere: the word stays unknown.
            self.is_unknown = true;
            let word = self.take();
            self.done.push(word);
            self.is_unknown = true;
            return true;
        }
        self.is_unknown = true;
        self.text.push_str(&held::own(text));
        true
    }

    fn dollar(&mut self) -> Result<(), &'static str> {
        match self.peek() {
            Some(c) if c.is_alphanumeric() || "_{([*@?!#-$".contains(c) => Err("an expansion that cannot be followed"),
            _ => {
                self.text.push('$');
                Ok(())
            }
        }
    }

    fn single(&mut self) -> Result<(), &'static str> {
        loop {
            match self.next().ok_or("a quote that does not end")? {
                '\'' => return Ok(()),
                c => self.text.push(c),
            }
        }
    }

    fn double(&mut self) -> Result<(), &'static str> {
        loop {
            if self.expansion(true) {
                continue;
            }
            match self.next().ok_or("a quote that does not end")? {
                '"' => return Ok(()),
                '\\' => match self.next().ok_or("a quote that does not end")? {
                    '\n' => {}
                    c @ ('$' | '`' | '"' | '\\') => self.text.push(c),
                    c => self.text.extend(['\\', c]),
                },
                '$' => self.dollar()?,
                '`' => return Err("a substitution that cannot be followed"),
                c => self.text.push(c),
            }
        }
    }

    /// `$'…'`, after its opening quote.
    fn ansi(&mut self) -> Result<(), &'static str> {
        loop {
            match self.next().ok_or("a quote that does not end")? {
                '\'' => return Ok(()),
                '\\' => {
                    let c = self.next().ok_or("a quote that does not end")?;
                    self.escape(c)?;
                }
                c => self.text.push(c),
            }
        }
    }

    fn escape(&mut self, c: char) -> Result<(), &'static str> {
        let code = match c {
            'a' => 7,
            'b' => 8,
            'e' | 'E' => 27,
            'f' => 12,
            'n' => 10,
            'r' => 13,
            't' => 9,
            'v' => 11,
            '\\' | '\'' | '"' | '?' => c as u32,
            '0'..='7' => {
                self.at -= 1;
                self.digits(8, 3) & 0xff
            }
            'x' => self.digits(16, 2),
            'u' => self.digits(16, 4),
            'U' => self.digits(16, 8),
            'c' => self.next().map_or(0, |c| c as u32 & 0x1f),
            other => {
                self.text.push('\\');
                other as u32
            }
        };
        match char::from_u32(code) {
            // The shell would end the text here, or put a byte that is no character.
            None | Some('\0') => return Err("an escape that ends the text"),
            Some(c) if matches!(code, 0x80..=0xff) => {
                self.is_unknown = true;
                self.text.push(c);
            }
            Some(c) => self.text.push(c),
        }
        Ok(())
    }

    fn digits(&mut self, radix: u32, most: usize) -> u32 {
        let mut value: u32 = 0;
        for _ in 0..most {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(radix)) else { break };
            self.at += 1;
            value = value.saturating_mul(radix).saturating_add(digit);
        }
        value
    }

    fn take(&mut self) -> Word {
        let kind = if self.is_unknown {
            WordKind::Unknown
        } else if self.has_glob && !self.is_value {
            WordKind::Pattern
        } else {
            WordKind::Known
        };
        let plain = self.is_plain && kind == WordKind::Known;
        self.braces.clear();
        let text = std::mem::take(&mut self.text);
        // What surrounds the quotes splits nothing. `"$@"` is as many words as there are.
        let is_one = kind == WordKind::Unknown && !self.splits && !self.has_glob;
        let quoted = (self.is_quoted || is_one) && !text.contains('@');
        Word { text, kind, plain, quoted }
    }

    /// Adds the last word, or those that its braces make.
    fn finish(mut self, words: &mut Vec<Word>) -> Result<(), &'static str> {
        let braces = std::mem::take(&mut self.braces);
        let word = self.take();
        if !braces.iter().any(|&at| word.text.as_bytes()[at] == b'{') {
            words.push(word);
            return Ok(());
        }
        if word.text.len() > BRACED_MAX {
            words.push(Word::unknown(&word.text));
            return Err("braces in a long word");
        }
        let letters: Vec<Letter> = word.text.char_indices().map(|(at, c)| (c, braces.binary_search(&at).is_ok())).collect();
        let mut made = Vec::new();
        let fits = expand(letters, &mut made);
        // `{1..3}` counts; what it counts is not worth knowing.
        let counts = word.text.contains("..");
        let kind = if !fits || counts { WordKind::Unknown } else { word.kind };
        let text = |letters: &[Letter]| letters.iter().map(|(c, _)| *c).collect();
        words.extend(made.iter().map(|letters| Word { text: text(letters), kind, plain: false, quoted: false }));
        if fits { Ok(()) } else { Err("braces that make too many words") }
    }
}

/// A letter, and whether it is a brace or comma that counts.
type Letter = (char, bool);

/// Writes out the first braces with a comma in them, and so on. Returns whether all of it had room.
fn expand(letters: Vec<Letter>, made: &mut Vec<Vec<Letter>>) -> bool {
    let mut queue = vec![letters];
    while let Some(letters) = queue.pop() {
        if made.len() + queue.len() >= BRACES_MAX {
            made.push(letters);
            return false;
        }
        match group(&letters) {
            None => made.push(letters),
            Some((range, commas)) => {
                let mut starts = vec![range.start + 1];
                starts.extend(commas.iter().map(|at| at + 1));
                let mut ends = commas;
                ends.push(range.end);
                for (start, end) in starts.into_iter().zip(ends).rev() {
                    queue.push([&letters[..range.start], &letters[start..end], &letters[range.end + 1..]].concat());
                }
            }
        }
    }
    true
}

/// Returns the first pair of braces with commas between them, as the places of both and of the commas.
fn group(letters: &[Letter]) -> Option<(Range<usize>, Vec<usize>)> {
    let mut open: Vec<(usize, Vec<usize>)> = Vec::new();
    let mut found: Option<(Range<usize>, Vec<usize>)> = None;
    for (at, (c, counts)) in letters.iter().enumerate() {
        match (c, counts) {
            ('{', true) => open.push((at, Vec::new())),
            (',', true) => {
                if let Some((_, commas)) = open.last_mut() {
                    commas.push(at);
                }
            }
            ('}', true) => {
                if let Some((start, commas)) = open.pop()
                    && !commas.is_empty()
                    && found.as_ref().is_none_or(|(range, _)| start < range.start)
                {
                    found = Some((start..at, commas));
                }
            }
            _ => {}
        }
    }
    found
}
