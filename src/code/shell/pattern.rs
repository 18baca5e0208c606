//! Which names a pattern of the shell stands for.

/// The longest list of letters in a pattern that is read; a longer one stands for any letter.
const LIST_MAX: usize = 64;

/// Returns whether a pattern stands for a name, but for what the shell says of a dot at its beginning. Takes time by the product of both lengths.
pub fn fits(pattern: &[u8], name: &[u8]) -> bool {
    // Which parts of the name the pattern so far may stand for: those of these lengths.
    let mut ends = vec![false; name.len() + 1];
    ends[0] = true;
    let mut rest = pattern;
    while let Some((sign, behind)) = rest.split_first() {
        rest = behind;
        if *sign == b'*' {
            let Some(first) = ends.iter().position(|is_end| *is_end) else { return false };
            ends[first..].fill(true);
            continue;
        }
        let list = if *sign == b'[' { list_of(behind) } else { None };
        rest = list.map_or(behind, |list| &behind[list.len() + 1..]);
        let stands_for = |letter: u8| match (sign, list) {
            (_, Some(list)) => holds(list, letter),
            (b'?', None) => true,
            (sign, None) => letter == *sign,
        };
        ends = (0..=name.len()).map(|at| at > 0 && ends[at - 1] && stands_for(name[at - 1])).collect();
    }
    ends[name.len()]
}

/// Returns what stands in a list of letters, from behind its `[`: a `]` that comes first is a letter, and a class such as `[:alpha:]` has one of
/// its own.
fn list_of(text: &[u8]) -> Option<&[u8]> {
    let text = &text[..text.len().min(LIST_MAX)];
    let start = usize::from(matches!(text.first(), Some(b'!' | b'^')));
    let mut at = start;
    loop {
        let rest = text.get(at..)?;
        match rest.first()? {
            b']' if at > start => return Some(&text[..at]),
            b'[' => at += class(rest).map_or(1, |name| name.len() + 4),
            _ => at += 1,
        }
    }
}

/// Returns the name of the class that stands here.
fn class(text: &[u8]) -> Option<&[u8]> {
    let inside = text.strip_prefix(b"[:")?;
    Some(&inside[..inside.windows(2).position(|pair| pair == b":]")?])
}

fn holds(list: &[u8], letter: u8) -> bool {
    let (is_not, mut rest) = match list.split_first() {
        Some((b'!' | b'^', rest)) => (true, rest),
        _ => (false, list),
    };
    let mut is_held = false;
    while let Some(&first) = rest.first() {
        if let Some(name) = class(rest) {
            is_held |= is_of_class(name, letter);
            rest = &rest[name.len() + 4..];
        } else if let [from, b'-', to, behind @ ..] = rest {
            is_held |= (*from..=*to).contains(&letter);
            rest = behind;
        } else {
            is_held |= first == letter;
            rest = &rest[1..];
        }
    }
    is_held != is_not
}

/// Returns whether a letter is of a class; of one that is not known any is.
fn is_of_class(name: &[u8], letter: u8) -> bool {
    match name {
        b"alnum" => letter.is_ascii_alphanumeric(),
        b"alpha" => letter.is_ascii_alphabetic(),
        b"blank" | b"space" => letter.is_ascii_whitespace(),
        b"cntrl" => letter.is_ascii_control(),
        b"digit" => letter.is_ascii_digit(),
        b"lower" => letter.is_ascii_lowercase(),
        b"punct" => letter.is_ascii_punctuation(),
        b"upper" => letter.is_ascii_uppercase(),
        b"xdigit" => letter.is_ascii_hexdigit(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn a_pattern_stands_for_what_the_shell_finds_by_it() {
        for (pattern, name) in [
            ("r?", "rm"),
            ("*", ""),
            ("a*b*c", "aXbYbc"),
            ("[gh]it", "git"),
            ("[f-h]it", "git"),
            ("[!a-f]it", "git"),
            ("gi[[:alpha:]]", "git"),
            ("[[:lower:]_]i[]t]", "git"),
            ("gi[!]x]", "git"),
            ("gi[^]x]", "git"),
            ("gi[", "gi["),
            ("gi[[:other:]]", "git"),
            ("x[a-]", "x-"),
        ] {
            assert!(fits(pattern.as_bytes(), name.as_bytes()), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("r?", "r"),
            ("", "a"),
            ("a*b", "ac"),
            ("gi[!t]", "git"),
            ("gi[[:digit:]]", "git"),
            ("gi[![:alpha:]]", "git"),
            ("[a-f]it", "git"),
            ("gi[]x]", "git"),
            ("gi[t", "git"),
        ] {
            assert!(!fits(pattern.as_bytes(), name.as_bytes()), "{pattern} {name}");
        }
    }
}
