//! Assembles the arguments of one call: usually each piece continues the one before. Some servers
//! send everything so far with each piece, some repeat the whole at the end, and some lose the last
//! brace. Repetitions count once.

use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::error::Category;

use super::object::Object;
use super::sameness::is_same;
use super::sameness::is_same_text;

/// Maximum number of separate objects in the arguments of one call.
const MAX_OBJECTS: usize = 64;

/// Collects the arguments of one call.
#[derive(Debug, Default)]
pub(super) struct ArgumentPieces {
    /// Texts that ended where a piece started anew.
    before: Vec<String>,
    text: String,
    object: Object,
    /// The last piece, as long as each piece was an extension of the one before.
    snapshot: Option<String>,
    n_pieces: usize,
}

/// The result for the arguments of one call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Settled {
    /// One object, or an invalid text: executing the call reports what is wrong with it.
    One(String),
    /// Different objects: as many calls.
    Several(Vec<String>),
    /// Objects each of which extends the one before: ambiguous between one call and several.
    Growing,
}

impl ArgumentPieces {
    /// Returns the text since the last piece that started anew.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether nothing came, or an object that may be a placeholder.
    pub(super) fn says_nothing(&self) -> bool {
        matches!(self.text.trim(), "" | "{}")
    }

    /// Returns whether exactly one complete object came.
    pub(super) fn is_whole(&self) -> bool {
        self.object.is_whole()
    }

    /// Returns whether a piece repeats the text.
    pub(super) fn repeats(&self, piece: &str) -> bool {
        piece == self.text || is_same_text(piece, &self.text)
    }

    /// Returns whether a piece is an extension of the unterminated text.
    pub(super) fn is_begun_by(&self, piece: &str) -> bool {
        !self.is_whole() && extends(piece, &self.text)
    }

    /// Adds the next piece, of which at most `room` bytes are kept; returns whether all of it was
    /// kept.
    pub(super) fn push(&mut self, piece: &str, room: usize) -> bool {
        if piece.is_empty() {
            return true;
        }
        self.n_pieces += 1;
        self.snapshot = match self.snapshot.take() {
            None if self.n_pieces == 1 => Some(piece.to_owned()),
            Some(last) if extends(piece, &last) => Some(piece.to_owned()),
            _ => None,
        };
        if self.before.len() < MAX_OBJECTS && self.begins_anew(piece) {
            let old = std::mem::take(&mut self.text);
            self.object = Object::default();
            let is_less = (self.has_snapshots() || extends(piece, &old)) && read(&old).is_none()
                || old.trim() == "{}";
            if !is_less {
                self.before.push(old);
            }
        }
        let room = room.saturating_sub(self.text.len());
        let taken = &piece[..piece.floor_char_boundary(room)];
        self.text.push_str(taken);
        self.object.feed(taken);
        taken.len() == piece.len()
    }

    /// Returns whether a piece cannot continue the text, so that it starts the object anew.
    fn begins_anew(&self, piece: &str) -> bool {
        if !piece.trim_start().starts_with('{') || self.text.trim().is_empty() {
            return false;
        }
        if !self.object.may_hold_object() {
            return true;
        }
        let is_more = self.has_snapshots() || extends(piece, &self.text);
        is_more && !may_begin_json(&format!("{}{piece}", self.text))
    }

    /// Returns whether each of several pieces was an extension of the one before.
    fn has_snapshots(&self) -> bool {
        self.n_pieces > 1 && self.snapshot.is_some()
    }

    /// Returns how many bytes are kept.
    pub(super) fn len(&self) -> usize {
        self.before.iter().map(String::len).sum::<usize>() + self.text.len()
    }

    /// Returns the result. In a truncated answer an unterminated text stays as it is.
    pub(super) fn settle(&self, is_cut: bool) -> Settled {
        let as_it_is = || Settled::One(self.before.concat() + &self.text);
        if self.before.is_empty() && read(&self.text).is_some() {
            return as_it_is();
        }
        let snapshot = self
            .snapshot
            .as_ref()
            .filter(|_| self.has_snapshots() && self.before.is_empty());
        if let Some(whole) = snapshot.and_then(|snapshot| closed(snapshot, is_cut)) {
            return Settled::One(whole);
        }
        let mut objects: Vec<(String, Value)> = Vec::new();
        let mut half: Option<&str> = None;
        for text in self.before.iter().chain([&self.text]) {
            let Some(found) = objects_in(text, is_cut) else {
                // A partial object does not count if the next one repeats it.
                if half.replace(text).is_some() {
                    return as_it_is();
                }
                continue;
            };
            if half
                .take_if(|half| found.first().is_some_and(|(whole, _)| extends(whole, half)))
                .is_none()
                && half.is_some()
            {
                return as_it_is();
            }
            objects.extend(found);
        }
        if let Some(half) = half
            && !(is_cut && objects.iter().any(|(whole, _)| extends(whole, half)))
        {
            return as_it_is();
        }
        let has_more = objects
            .iter()
            .any(|(_, value)| value.as_object().is_some_and(|fields| !fields.is_empty()));
        let mut different: Vec<(String, Value)> = Vec::new();
        for (text, value) in objects {
            let is_placeholder =
                has_more && value.as_object().is_some_and(serde_json::Map::is_empty);
            if !is_placeholder && !different.iter().any(|(_, other)| is_same(other, &value)) {
                different.push((text, value));
            }
        }
        if different.len() > 1
            && different
                .windows(2)
                .all(|pair| grows(&pair[0].1, &pair[1].1))
        {
            return Settled::Growing;
        }
        let mut texts: Vec<String> = different.into_iter().map(|(text, _)| text).collect();
        match texts.len() {
            0 => as_it_is(),
            1 => Settled::One(texts.remove(0)),
            _ => Settled::Several(texts),
        }
    }
}

/// Parses one JSON object.
fn read(text: &str) -> Option<Value> {
    serde_json::from_str::<Value>(text)
        .ok()
        .filter(Value::is_object)
}

/// Parses a sequence of objects, the last one of which may lack its last braces; `None` for
/// anything else.
fn objects_in(text: &str, is_cut: bool) -> Option<Vec<(String, Value)>> {
    let mut found = Vec::new();
    let mut rest = text;
    while !rest.trim().is_empty() {
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        if let Some(Ok(value @ Value::Object(_))) = values.next() {
            let end = values.byte_offset();
            found.push((rest[..end].trim().to_owned(), value));
            rest = &rest[end..];
        } else {
            let whole = closed(rest, is_cut)?;
            let value = read(&whole)?;
            found.push((whole, value));
            rest = "";
        }
    }
    (!found.is_empty()).then_some(found)
}

/// Returns a complete object; one that lacks only its last braces gets them. After a number or
/// within a string it is unknown what was lost.
fn closed(text: &str, is_cut: bool) -> Option<String> {
    let text = text.trim();
    if read(text).is_some() {
        return Some(text.to_owned());
    }
    let mut object = Object::default();
    object.feed(text);
    let ends_with_value = text.ends_with(['"', '}', ']'])
        || ["true", "false", "null"]
            .iter()
            .any(|word| text.ends_with(word));
    if is_cut || !ends_with_value {
        return None;
    }
    let whole = text.to_owned() + "}";
    (object.lacks_one_brace() && read(&whole).is_some()).then_some(whole)
}

/// Returns whether an object has all fields of another one, with each string an extension of the
/// other's.
fn grows(less: &Value, more: &Value) -> bool {
    match (less, more) {
        (Value::Object(less), Value::Object(more)) => less
            .iter()
            .all(|(key, value)| more.get(key).is_some_and(|more| grows(value, more))),
        (Value::Array(less), Value::Array(more)) => {
            less.len() <= more.len() && less.iter().zip(more).all(|(less, more)| grows(less, more))
        }
        (Value::String(less), Value::String(more)) => more.starts_with(less.as_str()),
        (less, more) => is_same(less, more),
    }
}

/// Returns whether a text begins with another one, ignoring whitespace between values.
fn extends(text: &str, begin: &str) -> bool {
    let mut all = significant(text);
    significant(begin).all(|byte| all.next() == Some(byte))
}

/// Returns the significant bytes of JSON.
fn significant(text: &str) -> impl Iterator<Item = u8> {
    let (mut in_string, mut is_escaped) = (false, false);
    text.bytes().filter(move |&byte| {
        if !in_string {
            in_string = byte == b'"';
            return !byte.is_ascii_whitespace();
        }
        in_string = byte != b'"' || is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        true
    })
}

/// Returns whether JSON may begin like this.
fn may_begin_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text)
        .err()
        .is_none_or(|error| error.classify() == Category::Eof)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn settled(pieces: &[&str], is_cut: bool) -> Settled {
        let mut all = ArgumentPieces::default();
        for piece in pieces {
            assert!(all.push(piece, 1 << 20), "{pieces:?}");
        }
        all.settle(is_cut)
    }

    #[track_caller]
    fn check(pieces: &[&str], expected: &str) {
        assert_eq!(
            settled(pieces, false),
            Settled::One(expected.to_owned()),
            "{pieces:?}"
        );
    }

    #[test]
    fn repeated_arguments_count_once() {
        let whole = r#"{"path":"o.txt","content":"hé\n"}"#;
        // The whole again, with other whitespace, in another key order, after an empty object, all
        // in one piece.
        for pieces in [
            vec![r#"{"path":"#, r#""o.txt","content":"#, r#""hé\n"}"#, whole],
            vec![
                r#"{"path":"o.txt","#,
                r#""content":"hé\n"}"#,
                r#"{ "path": "o.txt", "content": "hé\n" }"#,
            ],
            vec![whole, r#"{"content":"hé\n","#, r#""path":"o.txt"}"#],
            vec!["{}", whole],
            vec![whole, "{}", whole],
        ] {
            check(&pieces, whole);
            check(&[&pieces.concat()], whole);
        }
        for again in [
            r#"{"limit": 5.0}"#,
            r#"{"limit":5e0}"#,
            r#"{"limit":50e-1}"#,
        ] {
            check(&[r#"{"limit":5}"#, again], r#"{"limit":5}"#);
        }
        check(&["{}", "{}"], "{}");
        check(&["{}{}"], "{}");
    }

    #[test]
    fn cumulative_pieces_are_one_object() {
        for pieces in [
            vec![r#"{"path"#, r#"{"path":"a"#, r#"{"path":"a","limit":1}"#],
            vec![
                "{",
                r#"{""#,
                r#"{"path":"#,
                r#"{"path":"#,
                r#"{"path":"a","limit":1"#,
                r#"{"path":"a","limit":1}"#,
            ],
            vec![
                r#"{"path":"#,
                r#"{"path":"a","#,
                r#"{"path":"a","limit":"#,
                r#"{"path":"a","limit":1}"#,
            ],
            vec![r#"{ "path""#, r#"{"path":"a""#, r#"{"path":"a","limit":1}"#],
            vec![r#"{"path":"#, r#"{"path":"a","limit":1}"#],
        ] {
            check(&pieces, r#"{"path":"a","limit":1}"#);
        }
        check(
            &[
                r#"{"a":"{"#,
                r#"{"a":"{b"#,
                r#"{"a":"{b}""#,
                r#"{"a":"{b}"}"#,
            ],
            r#"{"a":"{b}"}"#,
        );
    }

    #[test]
    fn a_missing_last_brace_is_added_if_nothing_else_is_missing() {
        check(&[r#"{"path":"a""#], r#"{"path":"a"}"#);
        check(
            &[r#"{"edits":["#, r#"{"path":"a"}]"#],
            r#"{"edits":[{"path":"a"}]}"#,
        );
        check(&[r#"{"path":"a""#, r#"{"path": "a"}"#], r#"{"path": "a"}"#);
        check(
            &[
                r#"{"path":"a","#,
                r#""append":true"#,
                r#"{"path":"a","append":true"#,
            ],
            r#"{"path":"a","append":true}"#,
        );
        check(&[r#"{"path":"a"#, r#"{"path":"a"}"#], r#"{"path":"a"}"#);
        // A number may continue, a string was truncated, and of a list it is unknown what else was
        // in it.
        for text in [
            r#"{"limit":1"#,
            r#"{"path":"a"#,
            r#"{"path":"a","#,
            r#"{"edits":["a""#,
            r#"{"path":"#,
        ] {
            check(&[text], text);
        }
        // In a truncated answer it is unterminated.
        assert_eq!(
            settled(&[r#"{"path":"a""#], true),
            Settled::One(r#"{"path":"a""#.to_owned())
        );
    }

    #[test]
    fn different_objects_are_not_merged() {
        let two = |a: &str, b: &str| Settled::Several(vec![a.to_owned(), b.to_owned()]);
        for pieces in [
            vec![r#"{"a":1}"#, r#"{"b":2}"#],
            vec![r#"{"a":1}{"#, r#""b":2}"#],
            vec![r#"{"a":1}{"b":2}{"a": 1}"#],
        ] {
            assert_eq!(
                settled(&pieces, false),
                two(r#"{"a":1}"#, r#"{"b":2}"#),
                "{pieces:?}"
            );
        }
        assert_eq!(
            settled(&[r#"{"a":1}"#, r#"{"a":2"#, "}"], false),
            two(r#"{"a":1}"#, r#"{"a":2}"#)
        );
        for pieces in [
            [r#"{"path":"a"}"#, r#"{"path":"ab"}"#],
            [r#"{"path":"a"}"#, r#"{"path":"a","content":"b"}"#],
        ] {
            assert_eq!(settled(&pieces, false), Settled::Growing, "{pieces:?}");
        }
    }

    #[test]
    fn a_single_object_keeps_its_bytes() {
        for pieces in [
            vec![r#"{"a":"#, r#"{"a":1}}"#],
            vec![r#"{"a":["#, r#"{"b":1},"#, r#"{"b":1}]}"#],
            vec![r#"{"a":"x"#, r#"{"a":1}"#, r#""}"#],
            vec![r#"{""#, r#"{":1}"#],
            vec!["{'a': '", "{b}'}"],
            vec!["[", "{}", "]"],
            vec!["", " ", "{ }"],
        ] {
            check(&pieces, &pieces.concat());
        }
        check(&[r#""{\"a\":"#, r#"{}}""#], r#""{\"a\":{}}""#);
    }
}
