//! An answer of the model, as it comes, in lines for the screen.
//!
//! What is complete is parsed and wrapped once for a width: a paragraph at the blank line behind
//! it, code at each line. Only the piece under way is done again for each frame, and it is bounded.

use ratatui::text::Line;
use ratatui::text::Span;

use super::highlight::Highlighter;
use super::prose;
use super::theme::Theme;
use super::theme::span;
use super::wrap;
use crate::text::Cleaner;

/// A paragraph that is longer is shown in pieces.
const MOST_PENDING: usize = 16 << 10;

/// What is left of code at both sides.
const MARGIN: &str = "  ";

#[derive(Clone, Debug, PartialEq, Eq)]
enum Block {
    Prose(String),
    CodeBegin(String),
    Code(String),
    CodeEnd,
}

/// Text that grows at its end.
#[derive(Default)]
pub(super) struct Markdown {
    cleaner: Cleaner,
    blocks: Vec<Block>,
    /// What is no block yet.
    pending: String,
    /// The marks of the fence that is open.
    fence: Option<String>,
    shown: Shown,
}

/// The lines of all blocks, for a width.
#[derive(Default)]
struct Shown {
    width: usize,
    n_blocks: usize,
    lines: Vec<Line<'static>>,
    code: Option<Highlighter>,
}

impl Markdown {
    #[cfg(test)]
    pub(super) fn whole(text: &str) -> Self {
        let mut markdown = Self::default();
        markdown.push(text);
        markdown.finish();
        markdown
    }

    pub(super) fn push(&mut self, text: &str) {
        let clean = self.cleaner.push(text.as_bytes());
        self.pending.push_str(&clean);
        self.settle();
    }

    pub(super) fn finish(&mut self) {
        let rest = self.cleaner.finish();
        self.pending.push_str(&rest);
        if !self.pending.is_empty() && !self.pending.ends_with('\n') {
            self.pending.push('\n');
        }
        self.settle();
        let rest = std::mem::take(&mut self.pending);
        if !rest.trim().is_empty() {
            self.blocks.push(Block::Prose(rest));
        }
        if self.fence.take().is_some() {
            self.blocks.push(Block::CodeEnd);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.pending.trim().is_empty()
    }

    /// Takes from what is pending whatever is complete.
    fn settle(&mut self) {
        loop {
            if let Some(fence) = &self.fence {
                let Some(end) = self.pending.find('\n') else {
                    break;
                };
                let line: String = self.pending.drain(..=end).collect();
                let bare = line.trim();
                if bare.starts_with(fence.as_str()) && bare.chars().all(|c| fence.contains(c)) {
                    self.fence = None;
                    self.blocks.push(Block::CodeEnd);
                } else {
                    self.blocks
                        .push(Block::Code(line.trim_end_matches('\n').to_owned()));
                }
                continue;
            }
            let Some((end, fence)) = self.boundary() else {
                break;
            };
            let prose: String = self.pending.drain(..end).collect();
            if !prose.trim().is_empty() {
                self.blocks.push(Block::Prose(prose));
            }
            if let Some((marks, language)) = fence {
                let end = self
                    .pending
                    .find('\n')
                    .map_or(self.pending.len(), |n| n + 1);
                self.pending.drain(..end);
                self.fence = Some(marks);
                self.blocks.push(Block::CodeBegin(language));
            }
        }
    }

    /// Returns where a paragraph ends for good, and the fence that begins there.
    fn boundary(&self) -> Option<(usize, Option<(String, String)>)> {
        let mut at = 0;
        let mut was_blank = false;
        for line in self.pending.split_inclusive('\n') {
            let is_whole = line.ends_with('\n');
            // A fence further in belongs to a list, and stays with it.
            if is_whole && let Some(fence) = fence(line) {
                return Some((at, Some(fence)));
            }
            let is_blank = line.trim().is_empty();
            let begins = line.starts_with(|c: char| !c.is_whitespace());
            if was_blank && begins && !could_be_fence(line, is_whole) && !goes_on_with_list(line) {
                return Some((at, None));
            }
            was_blank = is_blank && is_whole;
            at += line.len();
        }
        if self.pending.len() > MOST_PENDING {
            let end = self.pending[..MOST_PENDING.min(floor(&self.pending, MOST_PENDING))]
                .rfind(['\n', ' '])
                .map_or_else(|| floor(&self.pending, MOST_PENDING), |at| at + 1);
            return Some((end, None));
        }
        None
    }

    /// Returns the lines for so many cells.
    pub(super) fn lines(&mut self, width: usize, theme: Theme) -> Vec<Line<'static>> {
        if self.shown.width != width {
            self.shown = Shown {
                width,
                ..Shown::default()
            };
        }
        for block in &self.blocks[self.shown.n_blocks..] {
            self.shown.take(block, theme);
        }
        self.shown.n_blocks = self.blocks.len();
        let mut lines = self.shown.lines.clone();
        if !self.pending.trim().is_empty() {
            if self.fence.is_some() {
                lines.extend(code_lines(&[span(&self.pending, theme.plain())], width));
            } else {
                separate(&mut lines);
                lines.extend(prose::lines(&self.pending, width, theme));
            }
        }
        while lines.last().is_some_and(is_blank) {
            lines.pop();
        }
        lines
    }

    /// Forgets what was made for the screen; it is made again when it is seen.
    pub(super) fn forget_lines(&mut self) {
        self.shown = Shown::default();
    }
}

impl Shown {
    fn take(&mut self, block: &Block, theme: Theme) {
        match block {
            Block::Prose(text) => {
                separate(&mut self.lines);
                self.lines.extend(prose::lines(text, self.width, theme));
            }
            Block::CodeBegin(language) => {
                separate(&mut self.lines);
                self.code = Some(Highlighter::new(language));
            }
            Block::Code(line) => {
                let spans = match &mut self.code {
                    Some(code) => code.line(line, theme),
                    None => vec![span(line, theme.plain())],
                };
                self.lines.extend(code_lines(&spans, self.width));
            }
            Block::CodeEnd => {
                self.code = None;
                self.lines.push(Line::default());
            }
        }
    }
}

fn code_lines(
    spans: &[Span<'static>],
    width: usize,
) -> impl Iterator<Item = Line<'static>> + use<> {
    wrap::fold(spans, width.saturating_sub(MARGIN.len()))
        .into_iter()
        .map(|mut line| {
            line.spans.insert(0, Span::raw(MARGIN));
            line
        })
}

fn is_blank(line: &Line<'static>) -> bool {
    line.spans.iter().all(|span| span.content.trim().is_empty())
}

fn separate(lines: &mut Vec<Line<'static>>) {
    if lines.last().is_some_and(|line| !is_blank(line)) {
        lines.push(Line::default());
    }
}

/// Returns marks and language of a line that opens a fence.
fn fence(line: &str) -> Option<(String, String)> {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let bare = line.trim();
    let mark = bare.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let n = bare.chars().take_while(|c| *c == mark).count();
    let language = bare[n..].trim();
    (indent == 0 && n >= 3 && !language.contains('`'))
        .then(|| (mark.to_string().repeat(n), language.to_owned()))
}

fn could_be_fence(line: &str, is_whole: bool) -> bool {
    !is_whole && (line.starts_with('`') || line.starts_with('~'))
}

/// Returns whether a line may be the next entry of a list, so that it keeps its number and place.
fn goes_on_with_list(line: &str) -> bool {
    let bare = line.trim_start_matches(|c: char| c.is_ascii_digit());
    if bare.len() < line.len() {
        bare.is_empty() || bare.starts_with(['.', ')'])
    } else {
        line.starts_with(['-', '*', '+'])
    }
}

fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(markdown: &mut Markdown, width: usize) -> String {
        let lines = markdown.lines(width, Theme::new(true));
        let lines: Vec<String> = lines
            .iter()
            .map(|line| line.to_string().trim_end().to_owned())
            .collect();
        lines.join("\n")
    }

    const TEXT: &str = "# Plan\n\nFirst *look* at `src/app.py`, then\nchange it.\n\n1. one\n2. two\n   - in it\n\n\
        ```python\ndef f():\n    return \"a\"  # long enough\n```\n\n| name | what |\n| --- | ---: |\n| a | 1 |\n| bcd | 22 |\n\n\
        > said\n\n[docs](https://example.org) and ~~no~~ **yes**\n\n---\n\n- [x] done\n- [ ] open\n";

    #[test]
    fn an_answer_is_shown_with_its_lists_tables_and_code() {
        insta::assert_snapshot!(shown(&mut Markdown::whole(TEXT), 40));
    }

    #[test]
    fn however_it_comes_it_looks_the_same_in_the_end() {
        let whole = shown(&mut Markdown::whole(TEXT), 31);
        for n in [1, 3, 24] {
            let mut markdown = Markdown::default();
            let letters: Vec<char> = TEXT.chars().collect();
            for piece in letters.chunks(n) {
                markdown.push(&piece.iter().collect::<String>());
                shown(&mut markdown, 31);
            }
            markdown.finish();
            assert_eq!(shown(&mut markdown, 31), whole, "in pieces of {n}");
        }
    }

    #[test]
    fn a_fence_that_never_ends_and_a_line_without_end_are_shown() {
        let mut markdown = Markdown::default();
        markdown.push("```\na\n  b");
        assert_eq!(shown(&mut markdown, 20), "  a\n    b");
        markdown.finish();
        assert_eq!(shown(&mut markdown, 20), "  a\n    b");
        let mut long = Markdown::default();
        long.push(&"word ".repeat(20_000));
        assert!(long.pending.len() <= MOST_PENDING);
        assert_eq!(long.lines(80, Theme::new(false)).len() / 100, 12);
    }

    #[test]
    fn escapes_in_words_entities_and_code_reach_no_terminal() {
        let text = "a\x1b[2Jb &#27;[31m `&#x1b;` \u{202e}\n\n```\n\x1b]0;x\x07y\u{9b}\n```\n";
        let shown = shown(&mut Markdown::whole(text), 60);
        assert!(
            shown
                .chars()
                .all(|c| c == '\n' || !podbay_event::is_hidden(c)),
            "{shown:?}"
        );
        assert!(shown.contains("\\x1b[31m"), "{shown}");
    }
}
