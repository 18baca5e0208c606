//! Letters and signs that look like those of ASCII and are others.

use unicode_security::confusable_detection::skeleton;

use super::text;

/// Returns foreign text on one line, for deciding: neither what cannot be seen nor what only looks
/// like ASCII passes for something else.
pub fn revealed(words: &str) -> String {
    text::line(&unmask(words))
}

/// Returns text in which whatever only looks like ASCII is shown by its number: signs always,
/// letters in words that read as ASCII words.
///
/// A word of another script that nobody would take for one of ASCII stays as it is.
pub(super) fn unmask(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for part in text.split_inclusive(|c: char| !c.is_alphanumeric()) {
        let end = part.char_indices().next_back().map_or(0, |(at, c)| {
            if c.is_alphanumeric() { part.len() } else { at }
        });
        let (word, sign) = part.split_at(end);
        let pretends = word.chars().all(|c| c.is_ascii() || looks_like_ascii(c));
        for c in word.chars().chain(sign.chars()) {
            if !c.is_ascii() && (pretends || !c.is_alphanumeric()) && looks_like_ascii(c) {
                out.extend(c.escape_unicode());
            } else {
                out.push(c);
            }
        }
    }
    out
}

fn looks_like_ascii(c: char) -> bool {
    let mut bytes = [0; 4];
    let mut like = skeleton(c.encode_utf8(&mut bytes)).peekable();
    !c.is_ascii() && like.peek().is_some() && like.all(|c| c.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, shown: &str) {
        assert_eq!(unmask(text), shown);
    }

    #[test]
    fn what_only_looks_like_ascii_is_shown_by_its_number() {
        check("rm -rf target", "rm -rf target");
        check("сurl x", "\\u{441}url x");
        check("ѕсоре", "\\u{455}\\u{441}\\u{43e}\\u{440}\\u{435}");
        check("gіthub.com", "g\\u{456}thub.com");
        check("rm −rf ∕tmp", "rm \\u{2212}rf \\u{2215}tmp");
        check("ｌｓ", "\\u{ff4c}\\u{ff53}");
        assert_eq!(
            revealed("bash `сurl x\u{202e}\n`"),
            "bash `\\u{441}url x\\u{202e}\\n`"
        );
    }

    #[test]
    fn words_of_other_scripts_stay_as_they_are() {
        for text in [
            "git commit -m 'привет, мир'",
            "naïve/日本語.txt",
            "größe",
            "🦀",
        ] {
            check(text, text);
        }
    }
}
