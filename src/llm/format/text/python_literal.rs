//! Python string literals: prefixes, escapes, and concatenation of adjacent literals.
//! Only what Python itself would accept is parsed here. Models forget to escape quotes, and what
//! they write then is left to `json`.

use super::cursor::Cursor;
use super::cursor::Read;
use super::cursor::Stop;

/// Parses adjacent literals as one string, in parentheses or not; what can follow an argument must
/// follow.
pub(super) fn strings(c: &mut Cursor) -> Read<String> {
    let in_brackets = c.peek()? == b'(';
    if in_brackets {
        c.next()?;
        c.spaces();
    }
    let mut text = literal(c)?;
    loop {
        c.spaces();
        if in_brackets && c.peek()? == b')' {
            c.next()?;
            c.spaces();
            break;
        }
        if c.peek()? == b'+' {
            c.next()?;
            c.spaces();
        } else if !in_brackets && matches!(c.peek()?, b',' | b')' | b']' | b'}') {
            break;
        }
        text.push_str(&literal(c)?);
    }
    if matches!(c.peek()?, b',' | b')' | b']' | b'}') {
        Ok(text)
    } else {
        Err(Stop::NoMatch)
    }
}

/// Parses one literal; `f'…'` only without a placeholder.
fn literal(c: &mut Cursor) -> Read<String> {
    let prefix =
        c.ahead(|byte| matches!(byte, b'r' | b'R' | b'b' | b'B' | b'u' | b'U' | b'f' | b'F'));
    let (is_raw, is_format) = (prefix.contains(['r', 'R']), prefix.contains(['f', 'F']));
    for _ in 0..prefix.len() {
        c.next()?;
    }
    let quote = match c.peek()? {
        b'"' if c.take("\"\"\"")? => "\"\"\"",
        b'\'' if c.take("'''")? => "'''",
        b'"' if prefix.len() <= 2 => "\"",
        b'\'' if prefix.len() <= 2 => "'",
        _ => return Err(Stop::NoMatch),
    };
    if quote.len() == 1 {
        c.next()?;
    }
    let mut text = String::new();
    while !c.take(quote)? {
        match c.next()? {
            '\\' if is_raw => {
                text.push('\\');
                text.push(c.next()?);
            }
            '\\' => escape(c, &mut text)?,
            '{' | '}' if is_format => return Err(Stop::NoMatch),
            '\n' if quote.len() == 1 => return Err(Stop::NoMatch),
            character => text.push(character),
        }
    }
    Ok(text)
}

fn escape(c: &mut Cursor, text: &mut String) -> Read<()> {
    match c.next()? {
        '\n' => {}
        'n' => text.push('\n'),
        't' => text.push('\t'),
        'r' => text.push('\r'),
        'a' => text.push('\u{7}'),
        'b' => text.push('\u{8}'),
        'f' => text.push('\u{c}'),
        'v' => text.push('\u{b}'),
        escaped @ ('"' | '\'' | '\\') => text.push(escaped),
        'x' => text.push(code(c, 2)?),
        'u' => text.push(code(c, 4)?),
        'U' => text.push(code(c, 8)?),
        digit @ '0'..='7' => {
            let mut n = digit.to_digit(8).unwrap_or(0);
            for _ in 0..2 {
                let Some(digit) = char::from(c.peek()?).to_digit(8) else {
                    break;
                };
                n = n * 8 + digit;
                c.next()?;
            }
            text.push(char::from_u32(n).unwrap_or('\u{fffd}'));
        }
        // Python keeps the backslash of an unknown escape.
        other => {
            text.push('\\');
            text.push(other);
        }
    }
    Ok(())
}

/// Parses a character given by `n_digits` hexadecimal digits.
fn code(c: &mut Cursor, n_digits: usize) -> Read<char> {
    let mut n = 0_u32;
    for _ in 0..n_digits {
        let digit = char::from(c.peek()?).to_digit(16).ok_or(Stop::NoMatch)?;
        n = n.wrapping_mul(16).wrapping_add(digit);
        c.next()?;
    }
    // A lone surrogate is not a character.
    char::from_u32(n).ok_or(Stop::NoMatch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_literals_of_python_are_parsed() {
        let read = |text: &str| strings(&mut Cursor::new(text, 0, true));
        for (text, expected) in [
            (r"r'grep \d+ x')", r"grep \d+ x"),
            (r"R'it\'s')", r"it\'s"),
            ("f'ls',", "ls"),
            ("b\"ls\"]", "ls"),
            ("'ls ' '-l')", "ls -l"),
            ("'ls ' + \"-l\")", "ls -l"),
            ("('ls '\n   '-l'\n), x", "ls -l"),
            (r#"'\x41\u00e9\U0001F980\101\0\q\"')"#, "Aé🦀A\0\\q\""),
            ("'''it's\n\"x\"''')", "it's\n\"x\""),
            ("'one\\\ntwo')", "onetwo"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(expected), "{text}");
        }
        for text in [
            "'it's')",
            "f'ls {x}')",
            "'a' b)",
            "'a' % x)",
            "x)",
            "'one\ntwo')",
            "('a', 'b'))",
            "rbuf'x')",
            r"'\xZZ')",
        ] {
            assert_eq!(read(text), Err(Stop::NoMatch), "{text}");
        }
        for text in ["", "'", "r", "'a", "'a'", "'a' ", "('a'", r"'\x4"] {
            assert_eq!(read(text), Err(Stop::NeedsMore), "{text}");
        }
    }
}
