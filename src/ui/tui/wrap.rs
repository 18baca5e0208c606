use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::text::Span;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Returns how many cells a text takes.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// Wraps a paragraph at words; a word that is longer than the line is broken.
pub(super) fn wrap(spans: &[Span<'static>], width: usize) -> Vec<Line<'static>> {
    let width = width.max(1);
    let mut cells: Vec<Cell<'_>> = Vec::new();
    for span in spans {
        for cluster in span.content.graphemes(true) {
            let wide = cluster.width();
            cells.push(Cell {
                cluster,
                width: wide,
                style: span.style,
            });
        }
    }
    let mut lines = Vec::new();
    let mut rest = cells.as_slice();
    while !rest.is_empty() {
        let (line, after) = split(rest, width);
        lines.push(build(line));
        rest = after;
    }
    if lines.is_empty() {
        lines.push(Line::default());
    }
    lines
}

/// Breaks text at any cell, keeping blanks: for what is code.
pub(super) fn fold(spans: &[Span<'static>], width: usize) -> Vec<Line<'static>> {
    let width = width.max(1);
    let mut lines = Vec::new();
    let mut line: Vec<Cell<'_>> = Vec::new();
    let mut used = 0;
    for span in spans {
        for cluster in span.content.graphemes(true) {
            let wide = cluster.width();
            if used + wide > width && !line.is_empty() {
                lines.push(build(&line));
                line.clear();
                used = 0;
            }
            used += wide;
            line.push(Cell {
                cluster,
                width: wide,
                style: span.style,
            });
        }
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(build(&line));
    }
    lines
}

/// Cuts text to so many cells, and says so by a last `…`.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for cluster in text.graphemes(true) {
        if used + cluster.width() + 1 > width {
            break;
        }
        used += cluster.width();
        out.push_str(cluster);
    }
    if width > 0 {
        out.push('…');
    }
    out
}

/// Cuts a line of several styles to so many cells.
pub(super) fn cut_line(spans: Vec<Span<'static>>, width: usize) -> Line<'static> {
    let all: usize = spans.iter().map(|span| span.content.width()).sum();
    if all <= width {
        return Line::from(spans);
    }
    let mut left = width;
    let mut out = Vec::new();
    for span in spans {
        let wide = span.content.width();
        if wide < left {
            left -= wide;
            out.push(span);
        } else {
            // One cell is for the mark.
            let mut shorter = cut(&span.content, left);
            if wide == left {
                shorter = cut(&format!("{} ", span.content), left);
            }
            out.push(Span::styled(shorter, span.style));
            break;
        }
    }
    Line::from(out)
}

#[derive(Clone, Copy)]
struct Cell<'a> {
    cluster: &'a str,
    width: usize,
    style: Style,
}

/// Returns the first line, and what comes after the blanks at which it ends.
fn split<'a, 'b>(cells: &'b [Cell<'a>], width: usize) -> (&'b [Cell<'a>], &'b [Cell<'a>]) {
    let mut used = 0;
    let mut last_blank = None;
    for (at, cell) in cells.iter().enumerate() {
        let is_blank = cell.cluster == " ";
        if used + cell.width > width && at > 0 {
            if is_blank {
                return (&cells[..at], skip_blanks(&cells[at..]));
            }
            return match last_blank {
                // A line that would be nothing but blanks is no better for it.
                Some(blank) if blank > 0 => (&cells[..blank], skip_blanks(&cells[blank..])),
                _ => (&cells[..at], &cells[at..]),
            };
        }
        if is_blank && at > 0 && cells[at - 1].cluster != " " {
            last_blank = Some(at);
        }
        used += cell.width;
    }
    (cells, &[])
}

fn skip_blanks<'a, 'b>(cells: &'b [Cell<'a>]) -> &'b [Cell<'a>] {
    let n = cells.iter().take_while(|cell| cell.cluster == " ").count();
    &cells[n..]
}

fn build(cells: &[Cell<'_>]) -> Line<'static> {
    let mut spans: Vec<Span<'static>> = Vec::new();
    let mut text = String::new();
    let mut style = None;
    for cell in cells {
        if style != Some(cell.style) {
            if let Some(style) = style.take() {
                spans.push(Span::styled(std::mem::take(&mut text), style));
            }
            style = Some(cell.style);
        }
        text.push_str(cell.cluster);
    }
    if let Some(style) = style {
        spans.push(Span::styled(text, style));
    }
    Line::from(spans)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(lines: &[Line<'_>]) -> Vec<String> {
        lines.iter().map(ToString::to_string).collect()
    }

    #[track_caller]
    fn check(text: &str, width: usize, lines: &[&str]) {
        assert_eq!(shown(&wrap(&[Span::raw(text.to_owned())], width)), lines);
    }

    #[test]
    fn a_paragraph_is_wrapped_at_words_and_long_words_are_broken() {
        check("one two three", 7, &["one two", "three"]);
        check("one two three", 8, &["one two", "three"]);
        check("abcdefghij kl", 4, &["abcd", "efgh", "ij", "kl"]);
        check("", 4, &[""]);
        check("   ", 2, &["  "]);
        check("a  b", 3, &["a", "b"]);
    }

    #[test]
    fn wide_and_combined_letters_take_their_cells() {
        check("日本語です", 4, &["日本", "語で", "す"]);
        check(
            "e\u{301}e\u{301}e\u{301}",
            2,
            &["e\u{301}e\u{301}", "e\u{301}"],
        );
        check("日", 1, &["日"]);
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abc", 0), "");
    }

    #[test]
    fn styles_stay_with_their_letters_and_code_keeps_its_blanks() {
        let bold = Style::new().bold();
        let spans = [
            Span::raw("one ".to_owned()),
            Span::styled("two three".to_owned(), bold),
        ];
        let lines = wrap(&spans, 7);
        assert_eq!(lines[0].spans[1], Span::styled("two", bold));
        assert_eq!(lines[1].spans, [Span::styled("three", bold)]);
        assert_eq!(
            shown(&fold(&[Span::raw("    a  b".to_owned())], 6)),
            ["    a ", " b"]
        );
        assert_eq!(cut_line(spans.to_vec(), 8).to_string(), "one two…");
        assert_eq!(cut_line(spans.to_vec(), 4).to_string(), "one…");
    }
}
