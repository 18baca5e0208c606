//! Reads `{"answer": "..."}` and `{"tool": "...", ...}` while they stream in, so that users see
//! text instead of raw JSON.

/// What a piece of the answer contained.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AnswerPiece {
    /// More of the answer's text.
    Text(String),
    /// The complete name of the called tool.
    Tool(String),
}

/// Parses one answer incrementally, in linear time.
#[derive(Debug, Default)]
pub(crate) struct JsonAnswerReader {
    state: State,
    /// The string being read: a key or a tool's name. Bounded, because every key we look for is
    /// short.
    held: String,
    escape: Option<String>,
    /// First half of a surrogate pair written as two `\u` escapes.
    high: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Start,
    BeforeKey,
    Key,
    AfterKey(Field),
    BeforeValue(Field),
    Value(Field),
    /// The answer is not in the requested form: it is shown unchanged.
    Prose,
    /// Nothing more to show.
    Hidden,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Answer,
    Tool,
}

const MAX_HELD: usize = 256;

impl JsonAnswerReader {
    /// Parses the next piece of the answer.
    pub(crate) fn feed(&mut self, piece: &str, mut on: impl FnMut(AnswerPiece)) {
        let mut text = String::new();
        for c in piece.chars() {
            self.next(c, &mut text, &mut on);
        }
        if !text.is_empty() {
            on(AnswerPiece::Text(text));
        }
    }

    fn next(&mut self, c: char, text: &mut String, on: &mut impl FnMut(AnswerPiece)) {
        let space = matches!(c, ' ' | '\t' | '\n' | '\r');
        self.state = match self.state {
            State::Start if space => State::Start,
            State::Start if c == '{' => State::BeforeKey,
            // A fence or a list: likely JSON in another wrapping, which is parsed once it is
            // complete.
            State::Start if matches!(c, '`' | '[' | '<') => State::Hidden,
            State::Start | State::Prose => {
                text.push(c);
                State::Prose
            }
            State::BeforeKey if space => State::BeforeKey,
            State::BeforeKey if c == '"' => State::Key,
            State::Key => {
                if self.string(c, None) {
                    match std::mem::take(&mut self.held).as_str() {
                        "answer" => State::AfterKey(Field::Answer),
                        "tool" => State::AfterKey(Field::Tool),
                        _ => State::Hidden,
                    }
                } else {
                    State::Key
                }
            }
            State::AfterKey(field) if space => State::AfterKey(field),
            State::AfterKey(field) if c == ':' => State::BeforeValue(field),
            State::BeforeValue(field) if space => State::BeforeValue(field),
            State::BeforeValue(field) if c == '"' => State::Value(field),
            State::Value(Field::Answer) => {
                if self.string(c, Some(text)) {
                    State::Hidden
                } else {
                    State::Value(Field::Answer)
                }
            }
            State::Value(Field::Tool) => {
                if self.string(c, None) {
                    on(AnswerPiece::Tool(std::mem::take(&mut self.held)));
                    State::Hidden
                } else {
                    State::Value(Field::Tool)
                }
            }
            State::BeforeKey | State::AfterKey(_) | State::BeforeValue(_) | State::Hidden => {
                State::Hidden
            }
        };
    }

    /// Processes one character within a string; returns whether it ended the string.
    fn string(&mut self, c: char, out: Option<&mut String>) -> bool {
        if let Some(mut escape) = self.escape.take() {
            escape.push(c);
            if escape.starts_with('u') {
                if escape.len() < 5 && c.is_ascii() {
                    self.escape = Some(escape);
                    return false;
                }
                let unit = escape
                    .get(1..)
                    .and_then(|digits| u32::from_str_radix(digits, 16).ok())
                    .unwrap_or(0xFFFD);
                self.unit(unit, out);
                return false;
            }
            let decoded = match c {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                'b' => '\u{8}',
                'f' => '\u{c}',
                other => other,
            };
            self.put(decoded, out);
            return false;
        }
        match c {
            '"' => return true,
            '\\' => self.escape = Some(String::new()),
            c => self.put(c, out),
        }
        false
    }

    fn unit(&mut self, unit: u32, out: Option<&mut String>) {
        match (self.high.take(), unit) {
            (_, 0xD800..=0xDBFF) => self.high = Some(unit),
            (Some(high), 0xDC00..=0xDFFF) => {
                let joined = 0x10000 + ((high - 0xD800) << 10) + (unit - 0xDC00);
                self.put(char::from_u32(joined).unwrap_or('\u{fffd}'), out);
            }
            (_, unit) => self.put(char::from_u32(unit).unwrap_or('\u{fffd}'), out),
        }
    }

    fn put(&mut self, c: char, out: Option<&mut String>) {
        match out {
            Some(text) => text.push(c),
            None if self.held.len() < MAX_HELD => self.held.push(c),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read<'a>(pieces: impl IntoIterator<Item = &'a str>) -> (String, Vec<String>) {
        let (mut text, mut tools) = (String::new(), Vec::new());
        let mut reader = JsonAnswerReader::default();
        for piece in pieces {
            reader.feed(piece, |seen| match seen {
                AnswerPiece::Text(more) => text.push_str(&more),
                AnswerPiece::Tool(name) => tools.push(name),
            });
        }
        (text, tools)
    }

    #[track_caller]
    fn check(answer: &str, text: &str, tools: &[&str]) {
        let expected = (
            text.to_owned(),
            tools
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>(),
        );
        assert_eq!(read([answer]), expected);
        let single: Vec<String> = answer.chars().map(String::from).collect();
        assert_eq!(
            read(single.iter().map(String::as_str)),
            expected,
            "character by character"
        );
    }

    #[test]
    fn the_text_is_shown_without_the_json_around_it() {
        check(
            r#" { "answer" : "a\n\"b\" \u00e9\ud83e\udd80" } "#,
            "a\n\"b\" \u{e9}\u{1f980}",
            &[],
        );
        check(
            r#"{"tool": "bash", "arguments": {"command": "\"answer\": \"no\""}}"#,
            "",
            &["bash"],
        );
        check(r#"{"answer": "half"#, "half", &[]);
    }

    #[test]
    fn unrequested_forms_are_shown_or_hidden() {
        check("Hello {\"answer\": 1}", "Hello {\"answer\": 1}", &[]);
        check("```json\n{}\n```", "", &[]);
        check(r#"{"thought": "x", "answer": "y"}"#, "", &[]);
        check(r#"{"answer": 5}"#, "", &[]);
    }

    #[test]
    fn broken_escapes_become_replacement_characters() {
        check(r#"{"answer": "\ud83e \uzzzz\q"}"#, " \u{fffd}q", &[]);
    }

    proptest! {
        #[test]
        fn any_text_round_trips_through_the_answer_reader(text in ".{0,60}", step in 1_usize..9) {
            let json = serde_json::to_string(&serde_json::json!({"answer": text})).expect("writes");
            let chars: Vec<char> = json.chars().collect();
            let pieces: Vec<String> = chars.chunks(step).map(|part| part.iter().collect()).collect();
            prop_assert_eq!(read(pieces.iter().map(String::as_str)).0, text);
        }
    }
}
