//! How the arguments of a call look to a user who decides about it: all of them, each letter as
//! what it is.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Map;
use serde_json::Value;

use super::look_alike::unmask;
use super::padding;
use super::text;

/// What is larger than this is shown in part, and can only be allowed once.
const WHOLE_MAX: usize = 100_000;
const LINES_MAX: usize = 200;
const HEAD: usize = 40;
const TAIL: usize = 20;
const CHARS_MAX: usize = 4000;
/// Most files that are named of what is not shown.
const FILES_MAX: usize = 200;
const FIELDS_MAX: usize = 40;
/// What goes into files is text of any script: nothing is started by its look.
const PROSE: [&str; 6] = [
    "content",
    "contents",
    "new_content",
    "old_string",
    "new_string",
    "text",
];
/// Text of any script as well, but for the lines that name files.
const PATCHES: [&str; 2] = ["patch", "diff"];

/// What an edit replaces, and by what.
const EDIT: [&str; 2] = ["old_string", "new_string"];

const TAKES_ALL: &str = "a string takes all that is written";

/// Arguments as they are shown.
pub(super) struct Arguments {
    /// The value as it was given, and as it is shown: without letters that pass for others.
    given: Value,
    shown: Value,
    /// Only a part is shown.
    pub(super) is_large: bool,
}

impl Arguments {
    /// Takes the JSON text of arguments; a text that is none is shown as it is.
    pub(super) fn new(text: &str) -> Self {
        let given = match serde_json::from_str::<Value>(text) {
            Ok(Value::Object(fields)) if fields.len() <= FIELDS_MAX => Value::Object(fields),
            _ => Value::String(text.to_owned()),
        };
        let shown = unmasked("", &given);
        Self {
            given,
            shown,
            is_large: text.len() > WHOLE_MAX,
        }
    }

    /// Writes them down, every field on lines of its own.
    pub(super) fn show(&self, out: &mut String) {
        let shown = Shown {
            is_large: self.is_large,
        };
        match &self.shown {
            Value::Object(fields) => {
                for (key, value) in fields {
                    if replaced(fields).is_some() && EDIT.contains(&key.as_str()) {
                        continue;
                    }
                    shown.field(out, 2, &name(key), value);
                    if let Some(patch) = value.as_str().filter(|_| PATCHES.contains(&key.as_str()))
                    {
                        shown.files_of_patch(out, 4, patch);
                    }
                }
                // Which file it is about stands above.
                shown.edit(out, 2, fields);
            }
            other => shown.block(out, 2, &words(other)),
        }
    }

    /// Returns whether a letter of them only looks like another.
    pub(super) fn pretends(&self) -> bool {
        self.given != self.shown || has_key(&self.given, |key| unmask(key) != key)
    }

    /// Returns whether there is anything in them that cannot be seen.
    pub(super) fn hides(&self) -> bool {
        any(&self.given, |text| text.chars().any(text::is_suspect))
    }

    /// Returns whether something of them is pushed out of sight by what is as good as nothing.
    pub(super) fn pads(&self) -> bool {
        any(&self.given, padding::is_padded)
    }
}

/// Returns both texts of an edit.
fn replaced(fields: &Map<String, Value>) -> Option<(&str, &str)> {
    let of = |key: &str| fields.get(key).and_then(Value::as_str);
    Some((of(EDIT[0])?, of(EDIT[1])?))
}

/// Shows two texts as lines that go, that come, and that both have at their ends.
fn as_diff(before: &str, after: &str) -> String {
    let lines = |text: &str| -> Vec<String> {
        if text.is_empty() {
            return Vec::new();
        }
        text.split('\n').map(str::to_owned).collect()
    };
    let (old, new) = (lines(before), lines(after));
    let n_head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let n_most = old.len().min(new.len()) - n_head;
    let n_tail = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take(n_most)
        .take_while(|(a, b)| a == b)
        .count();
    let marked = |mark: char, lines: &[String]| -> Vec<String> {
        lines.iter().map(|line| format!("{mark} {line}")).collect()
    };
    [
        marked(' ', &old[..n_head]),
        marked('-', &old[n_head..old.len() - n_tail]),
        marked('+', &new[n_head..new.len() - n_tail]),
        marked(' ', &old[old.len() - n_tail..]),
    ]
    .concat()
    .join("\n")
}

/// Returns a value in which no letter passes for another, but for what goes into files.
fn unmasked(key: &str, value: &Value) -> Value {
    match value {
        Value::String(text) if PROSE.contains(&key) => Value::String(text.clone()),
        Value::String(text) if PATCHES.contains(&key) => {
            Value::String(text.split_inclusive('\n').map(header).collect())
        }
        Value::String(text) => Value::String(unmask(text)),
        Value::Array(values) => values.iter().map(|value| unmasked(key, value)).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (key.clone(), unmasked(key, value)))
            .collect(),
        other => other.clone(),
    }
}

/// Unmasks a line of a patch, unless it certainly is text of a file.
fn header(line: &str) -> Cow<'_, str> {
    let names_files = ["+++ ", "--- "].iter().any(|mark| line.starts_with(mark));
    if line.starts_with(['+', '-', ' ']) && !names_files {
        Cow::Borrowed(line)
    } else {
        Cow::Owned(unmask(line))
    }
}

/// Returns whether a line of a patch says which file is changed, and how.
fn names_a_file(line: &str) -> bool {
    const SAYING: [&str; 8] = [
        "*** Add File:",
        "*** Update File:",
        "*** Delete File:",
        "*** Move to:",
        "--- ",
        "+++ ",
        "rename ",
        "deleted file",
    ];
    SAYING.iter().any(|start| line.starts_with(start))
}

/// Returns whether it holds for any text of a value, the names of fields among them.
fn any(value: &Value, is_it: fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => is_it(text),
        Value::Array(values) => values.iter().any(|value| any(value, is_it)),
        Value::Object(fields) => fields
            .iter()
            .any(|(key, value)| is_it(key) || any(value, is_it)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn has_key(value: &Value, is_it: fn(&str) -> bool) -> bool {
    match value {
        Value::Array(values) => values.iter().any(|value| has_key(value, is_it)),
        Value::Object(fields) => fields
            .iter()
            .any(|(key, value)| is_it(key) || has_key(value, is_it)),
        _ => false,
    }
}

/// Returns how a field is called in front of its value.
fn name(key: &str) -> String {
    format!("{}:", padding::line(&unmask(key)))
}

fn words(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

/// Writes values; only of what is large a part is left out.
struct Shown {
    is_large: bool,
}

impl Shown {
    /// Writes a value behind its name; what belongs to it on further lines stands deeper.
    fn field(&self, out: &mut String, indent: usize, label: &str, value: &Value) {
        let (deep, begin) = (indent + 2, format!("{:indent$}{label}", ""));
        match value {
            Value::String(text) if text.contains('\n') => {
                writeln!(out, "{begin}").expect(TAKES_ALL);
                self.block(out, deep, text);
            }
            Value::Array(values) if !values.is_empty() => {
                writeln!(out, "{begin}").expect(TAKES_ALL);
                self.some(out, deep, values.iter(), |out, value| {
                    self.field(out, deep, "-", value);
                });
                if self.is_large && values.len() > LINES_MAX {
                    let paths: BTreeSet<&str> = values[HEAD..values.len() - TAIL]
                        .iter()
                        .filter_map(|value| value["path"].as_str())
                        .collect();
                    self.files(out, deep, paths.into_iter().map(padding::line));
                }
            }
            Value::Object(fields) if !fields.is_empty() => {
                writeln!(out, "{begin}").expect(TAKES_ALL);
                let others: Vec<_> = fields
                    .iter()
                    .filter(|(key, _)| replaced(fields).is_none() || !EDIT.contains(&key.as_str()))
                    .collect();
                self.some(out, deep, others.into_iter(), |out, (key, value)| {
                    self.field(out, deep, &name(key), value);
                });
                self.edit(out, deep, fields);
            }
            other => writeln!(out, "{begin} {}", self.cut(&padding::line(&words(other))))
                .expect(TAKES_ALL),
        }
    }

    /// Writes what an edit takes away and what it puts there, line by line.
    fn edit(&self, out: &mut String, indent: usize, fields: &Map<String, Value>) {
        if let Some((before, after)) = replaced(fields) {
            writeln!(out, "{:indent$}change:", "").expect(TAKES_ALL);
            self.block(out, indent + 2, &as_diff(before, after));
        }
    }

    /// Writes items, of too many the first and the last.
    fn some<T>(
        &self,
        out: &mut String,
        indent: usize,
        items: impl ExactSizeIterator<Item = T>,
        mut write: impl FnMut(&mut String, T),
    ) {
        let n = items.len();
        for (at, item) in items.enumerate() {
            if !self.is_large || n <= LINES_MAX || at < HEAD || at >= n - TAIL {
                write(out, item);
            } else if at == HEAD {
                writeln!(
                    out,
                    "{:indent$}… {} of {n} are not shown …",
                    "",
                    n - HEAD - TAIL
                )
                .expect(TAKES_ALL);
            }
        }
    }

    /// Shows text with a bar before each line, so that no line of it can pass for one of ours.
    fn block(&self, out: &mut String, indent: usize, content: &str) {
        let escaped = text::escape(&padding::counted(content));
        let lines: Vec<&str> = escaped.split('\n').collect();
        let mut show = |lines: &[&str]| {
            for line in lines {
                writeln!(out, "{:indent$}| {}", "", self.cut(line)).expect(TAKES_ALL);
            }
        };
        if !self.is_large || lines.len() <= LINES_MAX {
            show(&lines);
            return;
        }
        let (head, rest) = lines.split_at(HEAD);
        let (middle, tail) = rest.split_at(rest.len() - TAIL);
        show(head);
        let hidden: usize = middle.iter().map(|line| line.len() + 1).sum();
        show(&[&format!(
            "… {} lines ({hidden} bytes) are not shown …",
            middle.len()
        )]);
        show(tail);
    }

    /// Names the files of a patch that are not among the lines of it that are shown.
    fn files_of_patch(&self, out: &mut String, indent: usize, patch: &str) {
        let escaped = text::escape(&padding::counted(patch));
        let lines: Vec<&str> = escaped.split('\n').collect();
        if self.is_large && lines.len() > LINES_MAX {
            let hidden = &lines[HEAD..lines.len() - TAIL];
            self.files(
                out,
                indent,
                hidden
                    .iter()
                    .filter(|line| names_a_file(line))
                    .map(|line| (*line).to_owned()),
            );
        }
    }

    /// Names the files that what is not shown is about: one that is deleted there must not be
    /// overlooked.
    fn files(&self, out: &mut String, indent: usize, lines: impl Iterator<Item = String>) {
        let lines: Vec<String> = lines.collect();
        if lines.is_empty() {
            return;
        }
        writeln!(out, "{:indent$}what is not shown is about:", "").expect(TAKES_ALL);
        for line in lines.iter().take(FILES_MAX) {
            writeln!(out, "{:indent$}| {}", "", self.cut(line)).expect(TAKES_ALL);
        }
        if lines.len() > FILES_MAX {
            writeln!(out, "{:indent$}… {} more", "", lines.len() - FILES_MAX).expect(TAKES_ALL);
        }
    }

    fn cut<'a>(&self, line: &'a str) -> Cow<'a, str> {
        let n_chars = line.chars().count();
        if !self.is_large || n_chars <= CHARS_MAX {
            return Cow::Borrowed(line);
        }
        let head: String = line.chars().take(CHARS_MAX / 2).collect();
        let tail: String = line.chars().skip(n_chars - CHARS_MAX / 4).collect();
        format!(
            "{head} … {} characters are not shown … {tail}",
            n_chars - CHARS_MAX / 2 - CHARS_MAX / 4
        )
        .into()
    }
}
