//! Joins surrogate pairs: JSON writes a character beyond U+FFFF as two escapes, and a server that
//! splits its answer by UTF-16 units splits between them. A JSON parser refuses such a text as a
//! whole; here the halves are joined, and a lone one becomes U+FFFD.

use std::borrow::Cow;
use std::ops::Range;

/// Replaces a lone surrogate.
const LOST: char = char::REPLACEMENT_CHARACTER;

/// Text, with surrogates at its ends whose other half may be in the piece before or after it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Halved {
    low: Option<u16>,
    text: String,
    high: Option<u16>,
}

impl Halved {
    /// Parses a quoted JSON string; `None` if it is none.
    pub(super) fn of_json(raw: &str) -> Option<Self> {
        let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
        let alone = alone(inner);
        let low = alone.first().filter(|half| half.at == 0 && !half.is_high());
        let high = alone
            .last()
            .filter(|half| half.at + ESCAPE == inner.len() && half.is_high());
        let text = &inner[low.map_or(0, |_| ESCAPE)..high.map_or(inner.len(), |half| half.at)];
        let text = serde_json::from_str(&format!("\"{}\"", mended(text))).ok()?;
        Some(Self {
            low: low.map(|half| half.unit),
            text,
            high: high.map(|half| half.unit),
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the complete characters.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Appends more of the same piece.
    pub(super) fn push(&mut self, next: Self) {
        if self.is_empty() {
            *self = next;
            return;
        }
        let mut joint = Joint(self.high.take());
        let next = joint.join(&next);
        self.text.push_str(&next);
        self.high = joint.0;
    }
}

impl From<String> for Halved {
    fn from(text: String) -> Self {
        Self {
            low: None,
            text,
            high: None,
        }
    }
}

/// Joins the pieces of one text: keeps a high surrogate until the low one arrives.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Joint(Option<u16>);

impl Joint {
    /// Returns the text that is certain now.
    pub(crate) fn join(&mut self, piece: &Halved) -> String {
        if piece.is_empty() {
            return String::new();
        }
        let begin = match (self.0.take(), piece.low) {
            (None, None) => None,
            (Some(high), Some(low)) => Some(
                char::decode_utf16([high, low])
                    .next()
                    .and_then(Result::ok)
                    .unwrap_or(LOST),
            ),
            (Some(_), None) | (None, Some(_)) => Some(LOST),
        };
        self.0 = piece.high;
        begin.map_or_else(String::new, String::from) + &piece.text
    }

    /// Ends the text; returns the rest.
    pub(crate) fn end(&mut self) -> String {
        self.0.take().map_or_else(String::new, |_| LOST.to_string())
    }
}

/// Length of an escape such as `\ud83d`, in bytes.
const ESCAPE: usize = 6;
/// Low surrogates.
const LOW: Range<u16> = 0xDC00..0xE000;

/// An escape of a surrogate without the other half.
struct Alone {
    at: usize,
    unit: u16,
}

impl Alone {
    fn is_high(&self) -> bool {
        !LOW.contains(&self.unit)
    }
}

/// Returns JSON with lone surrogates replaced, so that it can be parsed.
pub(super) fn mended(json: &str) -> Cow<'_, str> {
    let alone = alone(json);
    if alone.is_empty() {
        return Cow::Borrowed(json);
    }
    let (mut text, mut from) = (String::with_capacity(json.len()), 0);
    for half in alone {
        text.push_str(&json[from..half.at]);
        text.push(LOST);
        from = half.at + ESCAPE;
    }
    text.push_str(&json[from..]);
    Cow::Owned(text)
}

fn alone(json: &str) -> Vec<Alone> {
    let (bytes, mut found, mut at) = (json.as_bytes(), Vec::new(), 0);
    while let Some(next) = json[at..].find('\\') {
        at += next;
        match unit(&bytes[at..]) {
            Some(0xD800..0xDC00)
                if unit(&bytes[at + ESCAPE..]).is_some_and(|next| LOW.contains(&next)) =>
            {
                at += 2 * ESCAPE;
            }
            Some(unit @ 0xD800..0xE000) => {
                found.push(Alone { at, unit });
                at += ESCAPE;
            }
            // A backslash and one ASCII character; anything else will be refused by the parser of
            // the whole.
            _ => at += 1 + json[at + 1..].chars().next().map_or(0, char::len_utf8),
        }
    }
    found
}

/// Returns the number in an escape at the beginning of `bytes`.
fn unit(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |unit, digit| {
        Some(unit << 4 | u16::try_from(char::from(*digit).to_digit(16)?).ok()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pieces: &[&str], expected: &str) {
        let mut joint = Joint::default();
        let mut text: String = pieces
            .iter()
            .map(|piece| {
                joint.join(&Halved::of_json(&format!("\"{piece}\"")).expect("a JSON string"))
            })
            .collect();
        text.push_str(&joint.end());
        assert_eq!(text, expected, "{pieces:?}");
        let mut all = Halved::default();
        for piece in pieces {
            all.push(Halved::of_json(&format!("\"{piece}\"")).expect("a JSON string"));
        }
        assert_eq!(
            joint.join(&all) + &joint.end(),
            expected,
            "{pieces:?} as one"
        );
    }

    #[test]
    fn surrogates_are_joined_wherever_the_text_is_split() {
        check(&[r"a \ud83d\ude00 b"], "a \u{1f600} b");
        check(&[r"a \ud83d", r"\uDE00 b"], "a \u{1f600} b");
        check(
            &[r"a \ud83d", "", r"\ude00", r"\ud83d", r"\ude00"],
            "a \u{1f600}\u{1f600}",
        );
        check(&[r"\ude00 \ud83d", "b"], "\u{fffd} \u{fffd}b");
        check(
            &[r"\ud83d", r"\ud83d", r"\ude00\ude00"],
            "\u{fffd}\u{1f600}\u{fffd}",
        );
        check(&[r"a\ud83db\ude00c"], "a\u{fffd}b\u{fffd}c");
        check(&[r"a\ud83d"], "a\u{fffd}");
    }

    #[test]
    fn other_escapes_are_unchanged() {
        check(&[r#"{\"a\": \"\\ud83d\"}"#], r#"{"a": "\ud83d"}"#);
        check(&[r"\\\ud83d", r"\ude00\n\u00e9"], "\\\u{1f600}\n\u{e9}");
        check(&[r"\ud83d", r"\ude00\\ude00 \\u"], "\u{1f600}\\ude00 \\u");
        assert_eq!(Halved::of_json(r#""\"#), None);
        assert_eq!(Halved::of_json(r#""\é""#), None);
        assert_eq!(Halved::of_json("7"), None);
        assert_eq!(
            mended(r#"{"a\ud83d": "\ude00\\ude00"}"#),
            "{\"a\u{fffd}\": \"\u{fffd}\\\\ude00\"}"
        );
    }
}
