//! Parses the value of an argument written as bare text between tags.
//! It extends to its own closing tag, past the elements within it: a file being written may
//! describe calls. A closing tag is the value's own only where the call continues or ends after it;
//! else it is part of the value. Models forget closing tags, so a line that begins with the next
//! element ends a value as well, and where an element within it is unterminated, or claims the
//! value's closing tag, no elements are matched. A value may even quote the end of its own call:
//! where another such end follows with no call begun between them, the first one is part of the
//! value.

use super::cursor::Cursor;
use super::cursor::Read;
use super::cursor::Stop;

/// Everything besides the call's own closing tag that may follow an argument: what ends a call, or
/// begins the next one.
pub(super) const AROUND: [&str; 16] = [
    "</tool_call>",
    "</seed:tool_call>",
    "</minimax:tool_call>",
    "</longcat_tool_call>",
    "</tool_calls>",
    "</function_calls>",
    "</function_call>",
    "</tool>",
    "</think>",
    "<tool_call>",
    "<function=",
    "<invoke name=",
    "<function name=",
    "<|im_end|>",
    "<|eot_id|>",
    "</s>",
];

/// Begins a call: a closing tag after it is that call's.
const CALLS: [&str; 10] = [
    "<tool_call>",
    "<seed:tool_call>",
    "<minimax:tool_call>",
    "<tool_calls>",
    "<function_calls>",
    "<function=",
    "<function name=",
    "<invoke name=",
    "<\u{ff5c}DSML\u{ff5c}invoke name=",
    "<|DSML|invoke name=",
];

/// Elements that may occur in a value as a whole, with their closing tags.
const INNER: [(&str, &str); 7] = [
    ("<tool_call>", "</tool_call>"),
    ("<seed:tool_call>", "</seed:tool_call>"),
    ("<function=", "</function>"),
    ("<function name=", "</function>"),
    ("<invoke name=", "</invoke>"),
    (
        "<\u{ff5c}DSML\u{ff5c}invoke name=",
        "</\u{ff5c}DSML\u{ff5c}invoke>",
    ),
    ("<|DSML|invoke name=", "</|DSML|invoke>"),
];
/// Deeper nesting than any text about calls has.
const MAX_INNER: usize = 32;

/// The tags around the arguments of a call.
pub(super) struct ValueTags<'a> {
    /// The beginning of the tag that opens an argument.
    pub(super) opener: String,
    pub(super) closer: String,
    /// What ends an argument without its closing tag, at the beginning of a line.
    pub(super) ends: &'a [&'a str],
    /// The call's own closing tag.
    pub(super) end: String,
    /// A line end after the value is part of it, even where none precedes it.
    pub(super) keeps_line_end: bool,
}

/// Returns whether an argument of this name usually contains lines of a file: there a final line
/// end is kept, while after a path or a command it is a slip of the model.
pub(super) fn is_text(name: &str) -> bool {
    const TEXTS: [&str; 15] = [
        "content",
        "contents",
        "file_text",
        "text",
        "new_text",
        "old_text",
        "insert_text",
        "old_str",
        "new_str",
        "old_string",
        "new_string",
        "patch",
        "diff",
        "search",
        "replace",
    ];
    TEXTS.contains(&name)
}

/// Parses the text of a parameter up to its closing tag, or up to a line that begins with one of
/// `ends` or with the next argument. `next` reads the name of an argument and returns whether it is
/// the next one.
pub(super) fn value(
    c: &mut Cursor,
    tags: &ValueTags,
    next: impl Fn(&mut Cursor) -> Read<bool>,
) -> Read<String> {
    let begin = c.at();
    if !c.is_flat() {
        match balanced(c, tags, &next) {
            Err(Stop::NeedsMore) if c.flatten() => c.go(begin),
            Ok(None) => {
                c.stay_flat();
                c.go(begin);
            }
            Ok(Some(value)) => return Ok(value),
            Err(stop) => return Err(stop),
        }
    }
    balanced(c, tags, &next)?.ok_or(Stop::NoMatch)
}

/// Parses a value; `None` where an element within it claimed the tag that ends the value, so that
/// elements cannot be matched.
fn balanced(
    c: &mut Cursor,
    tags: &ValueTags,
    next: &impl Fn(&mut Cursor) -> Read<bool>,
) -> Read<Option<String>> {
    let begin = c.at();
    // Only at the beginning of a line: within one it is more likely what the value is about.
    let mut is_line_start = false;
    // Closing tags of the open elements, the innermost last.
    let mut inner: Vec<&str> = Vec::new();
    // Arguments that the value opens itself. They may be unterminated, so they only decide where
    // nothing else does.
    let mut n_open = 0_usize;
    // The same within the elements, and whether one of them was closed there.
    let mut n_inner = 0_usize;
    let mut has_ended = false;
    let any_opener = format!("<{}", &tags.closer[2..tags.closer.len() - 1]);
    let mut later = EndLookahead::of(tags);
    loop {
        let at = c.at();
        match c.peek()? {
            b'<' => {
                let text = c.since(begin);
                if inner.is_empty() {
                    if c.close(&tags.closer)? {
                        let behind = c.at();
                        let goes_on = follows(c, tags, n_open > 0, next)?;
                        c.go(behind);
                        if goes_on && !later.is_quoted(c, false)? {
                            c.go(behind);
                            return Ok(Some(trimmed(text, tags.keeps_line_end).to_owned()));
                        }
                        n_open = n_open.saturating_sub(1);
                        is_line_start = false;
                        continue;
                    }
                    c.go(at);
                    if is_line_start && c.close_any(tags.ends)? {
                        let behind = c.at();
                        let token = c.since(at);
                        if ends_repeat(c, tags, token)? {
                            c.go(behind);
                            is_line_start = false;
                            continue;
                        }
                        c.go(at);
                        if later.is_quoted(c, true)? {
                            is_line_start = false;
                            continue;
                        }
                        c.go(at);
                        if has_ended && !c.take(&tags.end)? {
                            // Neither the argument nor the call would have an end.
                            return Ok(None);
                        }
                        c.go(at);
                        return Ok(Some(cut_short(text).to_owned()));
                    }
                    c.go(at);
                    if is_line_start && c.take(&tags.opener)? && next(c)? {
                        c.go(at);
                        return Ok(Some(cut_short(text).to_owned()));
                    }
                    c.go(at);
                    if c.take(&tags.opener)? {
                        n_open += 1;
                        is_line_start = false;
                        continue;
                    }
                } else if c.take(&any_opener)? {
                    n_inner += 1;
                    is_line_start = false;
                    continue;
                } else if c.take(&tags.closer)? {
                    let behind = c.at();
                    if n_inner == 0 && follows(c, tags, false, next)? {
                        return Ok(None);
                    }
                    c.go(behind);
                    has_ended |= n_inner > 0;
                    n_inner = n_inner.saturating_sub(1);
                    is_line_start = false;
                    continue;
                }
                is_line_start = false;
                if let Some(end) = inner.last()
                    && c.take(end)?
                {
                    inner.pop();
                    if inner.is_empty() {
                        n_inner = 0;
                    }
                    continue;
                }
                if !c.is_flat()
                    && inner.len() < MAX_INNER
                    && let Some(end) = inner_element(c)?
                {
                    inner.push(end);
                    continue;
                }
                c.go(at + 1);
            }
            byte => {
                c.next()?;
                is_line_start = byte == b'\n' || is_line_start && matches!(byte, b' ' | b'\t');
            }
        }
    }
}

/// Looks past the end of a call for another end.
pub(super) struct EndLookahead<'a> {
    closer: &'a str,
    /// What ends the call after its last argument.
    ends: Vec<&'a str>,
    /// What begins another call, or another argument.
    begins: Vec<&'a str>,
    /// Cached result: how far the search went, and what it found.
    known: Option<(usize, bool)>,
}

impl<'a> EndLookahead<'a> {
    fn of(tags: &'a ValueTags) -> Self {
        Self::new(&tags.closer, &[&tags.end], &[&tags.opener])
    }

    pub(super) fn new(closer: &'a str, ends: &[&'a str], begins: &[&'a str]) -> Self {
        let around = AROUND.into_iter().filter(|token| token.starts_with("</"));
        let (ends, begins) = (
            ends.iter().copied().chain(around).collect(),
            begins.iter().copied().chain(CALLS).collect(),
        );
        Self {
            closer,
            ends,
            begins,
            known: None,
        }
    }

    /// Consumes the closing tags that are here, and returns whether they are part of the value: the
    /// call has another end after them, and no call begins before that. `with_closer`: the
    /// argument's own closing tag may be among them, where models mix up the order.
    /// Consumes nothing where nothing ends.
    pub(super) fn is_quoted(&mut self, c: &mut Cursor, with_closer: bool) -> Read<bool> {
        let mut behind = c.at();
        let begin = behind;
        loop {
            c.spaces();
            if !(c.close_any(&self.ends)? || with_closer && c.close(self.closer)?) {
                break;
            }
            behind = c.at();
        }
        c.go(behind);
        let is_quoted = behind > begin && self.another(c)?;
        c.go(if is_quoted { behind } else { begin });
        Ok(is_quoted)
    }

    fn another(&mut self, c: &mut Cursor) -> Read<bool> {
        if let Some((until, found)) = self.known
            && c.at() <= until
        {
            return Ok(found);
        }
        let found = loop {
            let Some(at) = c.ahead_to(b'<')? else {
                self.known = Some((usize::MAX, false));
                return Ok(false);
            };
            if c.take_any(&self.begins)? {
                break (at, false);
            }
            if c.take(self.closer)? {
                c.spaces();
                if c.close_any(&self.ends)? {
                    break (at, true);
                }
                continue;
            }
            c.go(at + 1);
        };
        self.known = Some(found);
        Ok(found.1)
    }
}

/// Returns whether all closing tags follow in order right after the end of the enclosing element,
/// that one included: the one before is part of the value. The call's own closing tag may be
/// doubled by mistake.
fn ends_repeat(c: &mut Cursor, tags: &ValueTags, token: &str) -> Read<bool> {
    c.spaces();
    if !c.take(&tags.closer)? {
        return Ok(false);
    }
    c.spaces();
    if !c.take(&tags.end)? {
        return Ok(false);
    }
    c.spaces();
    Ok(token != tags.end && c.take(token)?)
}

/// Returns whether the call continues or ends after a closing tag, so that the tag ends a value. An
/// argument unknown to the tool may follow too, as models invent them, but not where the value
/// itself has opened one.
fn follows(
    c: &mut Cursor,
    tags: &ValueTags,
    is_within: bool,
    next: &impl Fn(&mut Cursor) -> Read<bool>,
) -> Read<bool> {
    c.spaces();
    if c.peek_or_end()?.is_none()
        || c.close(&tags.end)?
        || c.close_any(tags.ends)?
        || c.close_any(&AROUND)?
    {
        return Ok(true);
    }
    if c.close(&tags.opener)? {
        return Ok(!is_within || next(c)?);
    }
    Ok(false)
}

/// Consumes the beginning of an element and returns its closing tag.
fn inner_element(c: &mut Cursor) -> Read<Option<&'static str>> {
    for (begin, end) in INNER {
        if c.take(begin)? {
            return Ok(Some(end));
        }
    }
    Ok(None)
}

/// Strips the line ends that belong to a value's tags: where it begins on its own line, also the
/// one before the closing tag. A one-line value elsewhere keeps its final line end only where
/// `keeps_line_end` is set: a file name does not end in a line end.
pub(super) fn trimmed(text: &str, keeps_line_end: bool) -> &str {
    let begun = text
        .strip_prefix("\r\n")
        .or_else(|| text.strip_prefix('\n'));
    let ended = ended(begun.unwrap_or(text));
    if begun.is_none() && (keeps_line_end || ended.contains('\n')) {
        text
    } else {
        ended
    }
}

/// Returns a value whose closing tag is missing, so that the line of the next element begins right
/// after it.
fn cut_short(text: &str) -> &str {
    let text = text.trim_end_matches([' ', '\t']);
    ended(
        text.strip_prefix("\r\n")
            .or_else(|| text.strip_prefix('\n'))
            .unwrap_or(text),
    )
}

fn ended(text: &str) -> &str {
    text.strip_suffix("\r\n")
        .or_else(|| text.strip_suffix('\n'))
        .unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_around_a_value_belong_to_its_tags() {
        for keeps_line_end in [false, true] {
            assert_eq!(trimmed("\none\n", keeps_line_end), "one");
            assert_eq!(trimmed("\r\none\r\n", keeps_line_end), "one");
            assert_eq!(trimmed("\n\none\n\n", keeps_line_end), "\none\n");
            assert_eq!(trimmed("one\ntwo\n", keeps_line_end), "one\ntwo\n");
        }
        assert_eq!(
            (trimmed("one\n", false), trimmed("one\n", true)),
            ("one", "one\n")
        );
    }
}
