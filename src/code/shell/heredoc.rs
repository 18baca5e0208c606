use std::ops::Range;

use super::Word;
use super::WordKind;

/// A text that follows a command on lines of its own, `<<END`.
#[derive(Clone, Debug, Default)]
pub(super) struct Heredoc {
    /// The word that ends it, as it is written.
    pub(super) delimiter: String,
    pub(super) strips_tabs: bool,
    pub(super) body: Option<Range<usize>>,
    pub(super) end: Option<Range<usize>>,
    /// Expansions in it.
    pub(super) opaque: Vec<Range<usize>>,
}

impl Heredoc {
    /// Returns the text, after it was seen that the shell would end it at the same place.
    pub(super) fn check(&self, source: &str) -> Result<Word, &'static str> {
        let (delimiter, is_quoted) = unquote(&self.delimiter)?;
        let Some(end) = &self.end else { return Err("a text that does not end") };
        let start = self.body.as_ref().map_or(end.start, |body| body.start);
        // The grammar leaves out what the first line is indented by.
        let body = source[..start].trim_end_matches([' ', '\t']).len();
        let last = source[..end.end].rfind('\n').map_or(0, |at| at + 1);
        let bare = |line: &str| if self.strips_tabs { line.trim_start_matches('\t').to_owned() } else { line.to_owned() };
        let rest = source[end.end..].chars().next();
        if bare(&source[last..end.end]) != delimiter || !matches!(rest, None | Some('\n' | ')')) {
            return Err("a text whose end is not certain");
        }
        let text = source.get(body..last.max(body)).ok_or("a text whose end is not certain")?;
        if body > 0 && source.as_bytes()[body - 1] != b'\n' {
            return Err("a text whose begin is not certain");
        }
        if text.lines().any(|line| bare(line) == delimiter) {
            return Err("a text whose end is not certain");
        }
        let kind = if is_quoted { WordKind::Known } else { self.plain(source, body..last.max(body))? };
        let bare_text: String = text.split_inclusive('\n').map(bare).collect();
        if is_quoted || !text.contains('\\') {
            return Ok(Word { text: bare_text, kind, plain: false, quoted: false });
        }
        // A line that is joined to the next one may end the text, keep the last one from that, or be an expansion with it; whether its tabs go is not
        // the same to all.
        let joined = without_backslashes(&bare_text);
        let has_end = || joined.lines().any(|line| line == delimiter);
        let is_uncertain = || self.strips_tabs || ends_in_continued(text) || text.contains("$\\\n") || has_end();
        if text.contains("\\\n") && is_uncertain() {
            return Err("a text with a line that goes on in the next");
        }
        let text = if kind == WordKind::Known { joined } else { bare_text };
        Ok(Word { text, kind, plain: false, quoted: false })
    }

    /// Returns the text as it stands there, of one that cannot be read for certain.
    pub(super) fn unread(&self, source: &str) -> Word {
        let range = self.body.clone().unwrap_or_default();
        Word::unknown(source.get(range).unwrap_or_default())
    }

    /// Looks for expansions that nobody followed.
    fn plain(&self, source: &str, body: Range<usize>) -> Result<WordKind, &'static str> {
        let bytes = source.as_bytes();
        let mut opaque = self.opaque.iter().peekable();
        let mut at = body.start;
        let mut kind = WordKind::Known;
        while at < body.end {
            while opaque.next_if(|range| range.start < at).is_some() {}
            if let Some(range) = opaque.next_if(|range| range.start == at) {
                at = range.end;
                kind = WordKind::Unknown;
                continue;
            }
            match bytes[at] {
                b'\\' => at += 2,
                b'`' => return Err("a substitution that cannot be followed"),
                b'$' if bytes.get(at + 1).is_some_and(|next| next.is_ascii_alphanumeric() || b"_{([*@?!#-$".contains(next)) => {
                    return Err("an expansion that cannot be followed");
                }
                _ => at += 1,
            }
        }
        Ok(kind)
    }
}

/// Returns whether the last line of a text goes on in what stands behind it.
fn ends_in_continued(text: &str) -> bool {
    text.strip_suffix('\n').is_some_and(|text| (text.len() - text.trim_end_matches('\\').len()) % 2 == 1)
}

/// Returns a text as the shell makes it, which takes a backslash for one only in front of a few signs, and joins lines by it.
pub(super) fn without_backslashes(text: &str) -> String {
    let mut made = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(c) = letters.next() {
        match (c, letters.as_str().chars().next()) {
            ('\\', Some('\n')) => _ = letters.next(),
            ('\\', Some('\\' | '$' | '`')) => made.extend(letters.next()),
            _ => made.push(c),
        }
    }
    made
}

/// Takes the quotes off the word that ends a text; with any of them the text is taken as it is.
fn unquote(word: &str) -> Result<(String, bool), &'static str> {
    let mut words = Vec::new();
    super::word::read(word, 0..word.len(), &[], &mut words)?;
    match words.as_slice() {
        [single] if !single.text.is_empty() => Ok((single.text.clone(), word.contains(['\'', '"', '\\']))),
        _ => Err("a text whose end is not certain"),
    }
}
