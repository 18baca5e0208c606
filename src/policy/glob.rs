/// Returns whether a text matches a pattern in which `*` matches any text of any length.
/// Linear except for texts that repeat what the pattern repeats, and never worse than the product
/// of both lengths.
pub fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut read) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while read < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, read));
                at += 1;
            }
            Some(&c) if c == text[read] => {
                at += 1;
                read += 1;
            }
            _ => {
                let Some((star_at, from)) = star else {
                    return false;
                };
                star = Some((star_at, from + 1));
                at = star_at + 1;
                read = from + 1;
            }
        }
    }
    pattern[at..].iter().all(|&c| c == '*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_matches_anything_or_nothing() {
        for (pattern, text) in [
            ("git *", "git log -p"),
            ("*", ""),
            ("a*c", "abbc"),
            ("a*b*c", "axbxbxc"),
            ("*x", "xxx"),
            ("", ""),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("git *", "git"),
            ("git *", "agit log"),
            ("a*c", "abcb"),
            ("?", "a"),
            ("", "a"),
            ("a", ""),
        ] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }
}
