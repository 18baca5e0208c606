//! A text as it is searched for a call: in its normal form, and without anything but letters and digits, so that it does not matter where blanks,
//! line ends and the joints of strings stand.

use podbay_llm::normal::normal;
use podbay_llm::normal::normal_within;

/// A text in both forms.
pub(super) struct Dense {
    /// Its normal form.
    pub(super) text: String,
    letters: String,
    /// Where in the normal form each byte of the letters stands.
    places: Vec<u32>,
}

impl Dense {
    pub(super) fn new(text: &str) -> Self {
        let text = normal(text);
        let mut letters = String::with_capacity(text.len());
        let mut places = Vec::with_capacity(text.len());
        for (at, c) in text.char_indices().filter(|(_, c)| c.is_alphanumeric()) {
            // Nothing that a model was shown comes near that size.
            let Ok(at) = u32::try_from(at) else { break };
            letters.push(c);
            places.resize(letters.len(), at);
        }
        Self { text, letters, places }
    }

    /// Returns where a value stands in the normal form, as whole words: from where to where.
    pub(super) fn find<'a>(&'a self, value: &'a Value) -> impl Iterator<Item = (usize, usize)> + 'a {
        let found = memchr::memmem::find_iter(self.letters.as_bytes(), value.letters.as_bytes());
        found.filter(|_| !value.letters.is_empty()).filter_map(|at| {
            let (first, last) = (*self.places.get(at)? as usize, *self.places.get(at + value.letters.len() - 1)? as usize);
            let end = last + self.text[last..].chars().next()?.len_utf8();
            let is_whole = !self.text[..first].ends_with(char::is_alphanumeric) && !self.text[end..].starts_with(char::is_alphanumeric);
            // The signs that end it belong to it.
            is_whole.then(|| (first, end + if self.text[end..].starts_with(&value.tail) { value.tail.len() } else { 0 }))
        })
    }

    pub(super) fn has(&self, value: &Value) -> bool {
        self.find(value).next().is_some()
    }

    /// Returns whether a word of letters and digits alone stands in it, maybe within another one.
    pub(super) fn may_have(&self, word: &str) -> bool {
        let is_letter = |c: &char| c.is_alphanumeric();
        self.letters.contains(&word.chars().filter(is_letter).flat_map(char::to_lowercase).collect::<String>())
    }
}

/// A value that is looked for.
#[derive(PartialEq)]
pub(super) struct Value {
    letters: String,
    /// The signs at its end.
    tail: String,
}

impl Value {
    /// Returns the forms that a value has: where it begins a line, marks and numbers before it are none of it, else they are. Of one without a
    /// letter there is none.
    pub(super) fn forms(value: &str) -> Vec<Self> {
        let of = |text: String| Self {
            letters: text.chars().filter(|c| c.is_alphanumeric()).collect(),
            tail: text[text.trim_end_matches(|c: char| !c.is_alphanumeric()).len()..].trim_end_matches(['"', '\n', ' ']).to_owned(),
        };
        let mut forms = vec![of(normal(value)), of(normal_within(value))];
        forms.dedup();
        forms.retain(|form| !form.letters.is_empty());
        forms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_whole_and_wherever_it_is_joined_or_wrapped() {
        let has = |text: &str, value: &str| Value::forms(value).iter().any(|value| Dense::new(text).has(value));
        for text in ["touch planted", "\"tou\" + \"ch plan\" + 'ted'", "touch\n   planted", "touch\\nplanted;", "Touch&#32;planted"] {
            assert!(has(text, "touch planted"), "{text}");
        }
        for text in ["touch planted2", "retouch planted", "touch it", ""] {
            assert!(!has(text, "touch planted"), "{text}");
        }
        assert!(has("echo \u{e9}t\u{e9} now", "\u{c9}T\u{c9}") && !has("ls /", "/") && Value::forms("/*").is_empty());
        let text = Dense::new("run: ls src/*\"");
        let ends: Vec<(usize, usize)> = Value::forms("ls src/*").iter().flat_map(|value| text.find(value).collect::<Vec<_>>()).collect();
        assert_eq!(ends.first().map(|(begin, end)| &text.text[*begin..*end]), Some("ls src/*"));
    }
}
