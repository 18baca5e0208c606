//! One form for all the dresses that a text may wear: what logs, patches, comments, pages and strings put around words and into them does
//! not show in it. Two texts that say the same are alike there, and a few that do not: it is for looking, never for reading.

use super::undecorated::undecorated;

/// How often a text may be escaped, each time in another way.
const MAX_LAYERS: usize = 8;
/// Longest name of a file before the number of a line, in bytes.
const MAX_PATH: usize = 256;
/// How many numbers and names a line may begin with.
const MAX_PREFIXES: usize = 4;
/// Longest name of a character, in bytes: `&quot;`, `&#x1f600;`.
const MAX_ENTITY: usize = 10;
/// What comments, quotations, lists, tables and patches put before a line.
const MARKS: [char; 14] = [' ', '\t', '\r', '+', '-', '#', '>', '*', '|', '%', ';', '!', '/', '\u{2502}'];

/// Returns a text with its characters for escapes and entities, without what only decorates it, in lower case, its lines without what marks and
/// numbers them, one kind of quotation mark, and no blanks but between two words that nothing else parts.
pub fn normal(text: &str) -> String {
    form(text, true)
}

/// Returns the same of a text that begins within a line.
pub fn normal_within(text: &str) -> String {
    form(text, false)
}

fn form(text: &str, is_line_start: bool) -> String {
    let text = undecorated(&all_decoded(text));
    let mut form = Form::default();
    for (n, line) in text.split('\n').enumerate() {
        if n > 0 {
            form.add('\n');
        }
        let line = if n > 0 || is_line_start { undressed(line) } else { line };
        line.chars().for_each(|c| form.add(c));
    }
    form.end()
}

/// Returns whether a character belongs to a word.
pub fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// A text under way.
#[derive(Default)]
struct Form {
    out: String,
    /// What stands behind the last word.
    gap: String,
    has_blank: bool,
    has_line_end: bool,
}

impl Form {
    fn add(&mut self, c: char) {
        match c {
            c if is_of_word(c) => {
                self.close_gap();
                self.out.push(c);
            }
            '\n' if self.has_line_end => {}
            '\n' => {
                self.has_line_end = true;
                self.gap.push('\n');
            }
            c if c.is_whitespace() => self.has_blank = true,
            '"' | '\'' | '`' | '\u{2018}' | '\u{2019}' | '\u{201c}' | '\u{201d}' => {
                if !self.gap.ends_with('"') {
                    self.gap.push('"');
                }
            }
            c => self.gap.push(c),
        }
    }

    fn close_gap(&mut self) {
        if self.gap.is_empty() && self.has_blank && !self.out.is_empty() {
            self.out.push(' ');
        }
        if !is_joint(&self.gap) {
            self.out.push_str(&self.gap);
        }
        self.gap.clear();
        (self.has_blank, self.has_line_end) = (false, false);
    }

    fn end(mut self) -> String {
        self.close_gap();
        self.out.truncate(self.out.trim_end_matches(' ').len());
        self.out
    }
}

/// Returns whether these signs join two pieces of a string: `'a' + 'b'`.
fn is_joint(gap: &str) -> bool {
    let inner = gap.strip_prefix('"').and_then(|gap| gap.strip_suffix('"')).unwrap_or_default();
    let is_operator = |c| matches!(c, '+' | '.' | '&' | '~');
    inner.contains(is_operator) && inner.chars().all(|c| is_operator(c) || c == '\n')
}

/// Returns a line without what stands before it in a log, a patch, a comment, or what a search found.
fn undressed(line: &str) -> &str {
    let mut line = line.trim_start_matches(MARKS);
    for _ in 0..MAX_PREFIXES {
        let Some(rest) = behind_number(line).or_else(|| behind_path(line)) else { break };
        line = rest.trim_start_matches(MARKS);
    }
    line
}

/// Returns what stands behind the number of a line.
fn behind_number(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let rest = if rest.len() < line.len() { rest.trim_start_matches(' ') } else { return None };
    rest.strip_prefix(['\t', ':', '-', '|', '\u{2502}', '\u{2192}'])
}

/// Returns what stands behind the name of a file, and the number of a line behind that.
fn behind_path(line: &str) -> Option<&str> {
    let head = &line.as_bytes()[..line.len().min(MAX_PATH)];
    let end = head.iter().position(|byte| b" \t\"'{}<>()[]=,`".contains(byte)).unwrap_or(head.len());
    let is_sign = |at: usize| matches!(head.get(at), Some(b':' | b'-'));
    for at in (1..end).filter(|at| is_sign(*at)) {
        let n_digits = head[at + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if n_digits > 0 && is_sign(at + 1 + n_digits) {
            return line.get(at + n_digits + 2..);
        }
    }
    let colon = head[..end].iter().position(|byte| *byte == b':')?;
    head[..colon].iter().any(|byte| matches!(byte, b'.' | b'/')).then(|| line.get(colon + 1..))?
}

/// Decodes what was escaped within something that was escaped.
fn all_decoded(text: &str) -> String {
    let mut text = decoded(text);
    for _ in 1..MAX_LAYERS {
        let next = decoded(&text);
        if next == text {
            break;
        }
        text = next;
    }
    text
}

/// Returns a text with characters in the place of escapes and entities, as strings, pages and addresses have them, however many backslashes stand before one.
fn decoded(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(['\\', '&', '%']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let (c, behind) = match rest.as_bytes()[0] {
            b'\\' => escape(rest.trim_start_matches('\\')),
            b'&' => entity(&rest[1..]),
            _ => percent(&rest[1..]),
        };
        out.extend(c);
        rest = behind;
    }
    out.push_str(rest);
    out
}

/// Returns the character that an escape stands for, whose backslash was passed, and what is behind it. What is none stays.
fn escape(text: &str) -> (Option<char>, &str) {
    let Some(kind) = text.chars().next() else { return (None, text) };
    let behind = &text[kind.len_utf8()..];
    let read = match kind {
        'n' => Some(('\n', behind)),
        't' | 'r' => Some((' ', behind)),
        'e' => Some(('\u{1b}', behind)).filter(|(_, behind)| behind.starts_with(['[', ']'])),
        '0'..='3' => octal(text),
        'x' => hex(behind, 2).and_then(|(unit, rest)| Some((char::from_u32(unit)?, rest))),
        'U' => hex(behind, 8).and_then(|(unit, rest)| Some((char::from_u32(unit)?, rest))),
        'u' => unicode(behind),
        _ => None,
    };
    read.map_or((None, text), |(c, rest)| (Some(c), rest))
}

fn octal(text: &str) -> Option<(char, &str)> {
    let digits = text.get(..3).filter(|digits| digits.bytes().all(|byte| matches!(byte, b'0'..=b'7')))?;
    Some((char::from(u8::from_str_radix(digits, 8).ok()?), &text[3..]))
}

fn unicode(text: &str) -> Option<(char, &str)> {
    if let Some(digits) = text.strip_prefix('{') {
        let n_digits = digits.bytes().take(8).take_while(u8::is_ascii_hexdigit).count();
        let unit = u32::from_str_radix(&digits[..n_digits], 16).ok()?;
        return Some((char::from_u32(unit)?, digits[n_digits..].strip_prefix('}')?));
    }
    let (first, rest) = hex(text, 4)?;
    if let Some(c) = char::from_u32(first) {
        return Some((c, rest));
    }
    let (second, rest) = hex(rest.trim_start_matches('\\').strip_prefix('u')?, 4)?;
    let units = [u16::try_from(first).ok()?, u16::try_from(second).ok()?];
    Some((char::decode_utf16(units).next()?.ok()?, rest))
}

fn hex(text: &str, n_digits: usize) -> Option<(u32, &str)> {
    let digits = text.get(..n_digits).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    Some((u32::from_str_radix(digits, 16).ok()?, &text[n_digits..]))
}

/// Returns the sign that an escape of an address stands for, whose `%` was passed, and what is behind it.
fn percent(text: &str) -> (Option<char>, &str) {
    let read = hex(text, 2).and_then(|(unit, rest)| Some((char::from_u32(unit).filter(char::is_ascii)?, rest)));
    read.map_or((Some('%'), text), |(c, rest)| (Some(c), rest))
}

/// Returns the character that an entity stands for, whose `&` was passed, and what is behind it.
fn entity(text: &str) -> (Option<char>, &str) {
    let end = text.bytes().take(MAX_ENTITY).position(|byte| byte == b';');
    let read = end.and_then(|end| {
        let name = text.get(..end)?;
        let c = match name {
            "quot" => '"',
            "apos" => '\'',
            "lt" => '<',
            "gt" => '>',
            "amp" => '&',
            "nbsp" | "Tab" => ' ',
            "NewLine" => '\n',
            "colon" => ':',
            "comma" => ',',
            "equals" => '=',
            "sol" => '/',
            "lowbar" => '_',
            "lpar" => '(',
            "rpar" => ')',
            "lsqb" | "lbrack" => '[',
            "rsqb" | "rbrack" => ']',
            "lcub" | "lbrace" => '{',
            "rcub" | "rbrace" => '}',
            _ => {
                let number = name.strip_prefix('#')?;
                let code = match number.strip_prefix(['x', 'X']) {
                    Some(digits) => u32::from_str_radix(digits, 16).ok()?,
                    None => number.parse().ok()?,
                };
                char::from_u32(code)?
            }
        };
        Some((Some(c), text.get(end + 1..)?))
    });
    read.unwrap_or((Some('&'), text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_the_same_in_every_dress() {
        let plain = normal("say \"one\"\nand 'two'\nthen <three>");
        assert_eq!(plain, "say\"one\"\nand\"two\"\nthen<three>");
        for dressed in [
            "say \\\"one\\\"\\nand 'two'\\nthen \\u003cthree\\u003e",
            "say \\\\\\\"one\\\\\\\"\\\\nand 'two'\\\\nthen \\\\u003cthree\\\\x3e",
            "say &quot;one&#34;\nand &#x27;two&apos;\nthen &lt;three&gt;",
            "say &amp;quot;one&amp;quot;\nand 'two'\nthen &amp;lt;three&amp;gt;",
            "say%20%22one%22%0Aand%20%27two%27%0Athen%20%3cthree%3E",
            "12:say \"one\"\n13-and 'two'\n14:then <three>",
            "src/a-1.md:12:say \"one\"\nsrc/a-1.md-13-and 'two'\nsrc/a-1.md:14:then <three>",
            "a.md:say \"one\"\na.md:and 'two'\na.md:then <three>",
            "   1\tsay \"one\"\n   2\tand 'two'\n   3\tthen <three>",
            " 1 | say \"one\"\n 2 | and 'two'\n 3 | then <three>",
            "&#115;ay &#x22;one&#34;\n&#97;nd &#39;two&#39;\n\\u0074hen \\u{3c}three\\U0000003e",
            "%73ay%20%22%6Fne%22%0A&amp;#97;nd 'two'\\n%2574hen &lt;three%253E",
            "S\u{200b}ay \"<b>One</b>\"\n\u{1b}[32mAND\\033[0m 'two'\nthen <three>",
            "+say \"one\"\n+and 'two'\n+then <three>",
            "// say \"one\"\n// and 'two'\n// then <three>",
            "say \"o\" +\n  \"ne\"\nand 't' . 'wo'\nthen <three>",
            "# say `one`\n#   and \u{2018}two\u{2019}\n# then < three >",
        ] {
            assert_eq!(normal(dressed), plain, "{dressed}");
        }
        assert_eq!(normal("\\ud83e\\udd80 x"), normal("\u{1f980} x"));
        assert_eq!(normal("&#x1f980; &x; & \\u12 \\"), normal("\u{1f980} &x; & u12"));
        assert_ne!(normal("touch planted"), normal("touch-planted"));
        assert_eq!(normal(""), "");
    }

    /// Whatever begins over and over again is passed once.
    #[test]
    fn what_never_ends_is_looked_at_once() {
        for unit in ["\\", "&", "%", "%2", "#", "1:", "a:1:", "\n", "\"", "\\u", "&#"] {
            let text = unit.repeat(300_000);
            assert!(normal(&text).len() <= text.len(), "{unit}");
        }
    }
}
