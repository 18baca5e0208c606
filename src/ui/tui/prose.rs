//! Paragraphs, lists, quotes and tables of Markdown, in lines.

use pulldown_cmark::Alignment;
use pulldown_cmark::Event;
use pulldown_cmark::Options;
use pulldown_cmark::Parser;
use pulldown_cmark::Tag;
use pulldown_cmark::TagEnd;
use ratatui::style::Modifier;
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::text::Span;

use super::highlight::Highlighter;
use super::theme::Theme;
use super::theme::span;
use super::wrap;

const LEAST_COLUMN: usize = 3;

/// Renders complete Markdown.
pub(super) fn lines(source: &str, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut page = Page {
        theme,
        width: width.max(8),
        lines: Vec::new(),
        spans: Vec::new(),
        styles: vec![theme.plain()],
        margins: Vec::new(),
        lists: Vec::new(),
        link: None,
        code: None,
        table: None,
    };
    for event in Parser::new_ext(source, options) {
        page.event(event);
    }
    page.flush();
    while page.lines.last().is_some_and(|line| line.width() == 0) {
        page.lines.pop();
    }
    page.lines
}

/// What stands before the lines of a block: once, then on each further line.
struct Margin {
    first: Option<Span<'static>>,
    rest: Span<'static>,
}

struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Vec<Span<'static>>>>,
}

struct Page {
    theme: Theme,
    width: usize,
    lines: Vec<Line<'static>>,
    spans: Vec<Span<'static>>,
    styles: Vec<Style>,
    margins: Vec<Margin>,
    /// The next number of each open list; `None` for one with dots.
    lists: Vec<Option<u64>>,
    link: Option<String>,
    code: Option<Highlighter>,
    table: Option<Table>,
}

impl Page {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text),
            Event::Code(code) => {
                let style = self.style().patch(self.theme.inline_code());
                self.spans.push(span(&code, style));
            }
            Event::Html(html) | Event::InlineHtml(html) => {
                let style = self.style();
                self.spans.push(span(html.trim_end_matches('\n'), style));
                if html.ends_with('\n') {
                    self.flush();
                }
            }
            Event::SoftBreak => self.spans.push(Span::raw(" ")),
            Event::HardBreak => self.flush(),
            Event::Rule => {
                self.blank();
                let rule = "─".repeat(self.inner_width());
                self.spans.push(span(&rule, self.theme.dim()));
                self.flush();
                self.blank();
            }
            Event::TaskListMarker(is_done) => {
                let mark = if is_done { "[x] " } else { "[ ] " };
                self.spans.push(span(mark, self.theme.accent()));
            }
            Event::FootnoteReference(name) => {
                let style = self.style();
                self.spans.push(span(&format!("[{name}]"), style));
            }
            Event::InlineMath(math) | Event::DisplayMath(math) => {
                let style = self.style();
                self.spans.push(span(&math, style));
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.blank_between(),
            Tag::Heading { .. } => {
                self.blank();
                self.push_style(self.theme.bold().patch(self.theme.accent()));
            }
            Tag::BlockQuote(_) => {
                self.blank_between();
                let mark = span("│ ", self.theme.dim());
                self.margins.push(Margin {
                    first: None,
                    rest: mark,
                });
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                self.blank_between();
                let language = match kind {
                    pulldown_cmark::CodeBlockKind::Fenced(language) => language.to_string(),
                    pulldown_cmark::CodeBlockKind::Indented => String::new(),
                };
                self.code = Some(Highlighter::new(&language));
            }
            Tag::List(first) => {
                self.flush();
                if self.lists.is_empty() {
                    self.blank();
                }
                self.lists.push(first);
            }
            Tag::Item => {
                self.flush();
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "• ".to_owned(),
                };
                let rest = " ".repeat(wrap::width(&mark));
                self.margins.push(Margin {
                    first: Some(span(&mark, self.theme.accent())),
                    rest: Span::raw(rest),
                });
            }
            Tag::Emphasis => self.add_modifier(Modifier::ITALIC),
            Tag::Strong => self.add_modifier(Modifier::BOLD),
            Tag::Strikethrough => self.add_modifier(Modifier::CROSSED_OUT),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.link = Some(dest_url.to_string());
                self.add_modifier(Modifier::UNDERLINED);
            }
            Tag::Table(alignments) => {
                self.blank();
                self.table = Some(Table {
                    alignments,
                    rows: Vec::new(),
                });
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => self.flush(),
            TagEnd::Heading(_) => {
                self.flush();
                self.styles.pop();
                self.blank();
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.margins.pop();
            }
            TagEnd::CodeBlock => {
                self.code = None;
                self.blank();
            }
            TagEnd::List(_) => {
                self.flush();
                self.lists.pop();
                if self.lists.is_empty() {
                    self.blank();
                }
            }
            TagEnd::Item => {
                self.flush();
                // An entry without a word has its mark all the same.
                if self
                    .margins
                    .last()
                    .is_some_and(|margin| margin.first.is_some())
                {
                    self.spans.push(Span::raw(""));
                    self.flush();
                }
                self.margins.pop();
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => {
                self.styles.pop();
                let address = self.link.take().unwrap_or_default();
                let is_said = self
                    .spans
                    .last()
                    .is_some_and(|span| address.trim_end_matches('/').ends_with(&*span.content));
                if !is_said && !address.is_empty() {
                    self.spans
                        .push(span(&format!(" ({address})"), self.theme.dim()));
                }
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.spans);
                if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.table_lines(&table);
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        if let Some(mut code) = self.code.take() {
            for line in text.lines() {
                let spans = code.line(line, self.theme);
                let width = self.inner_width().saturating_sub(2);
                for mut line in wrap::fold(&spans, width) {
                    line.spans.insert(0, Span::raw("  "));
                    self.put(line);
                }
            }
            self.code = Some(code);
            return;
        }
        let style = self.style();
        self.spans.push(span(text, style));
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn push_style(&mut self, style: Style) {
        self.styles.push(self.style().patch(style));
    }

    fn add_modifier(&mut self, modifier: Modifier) {
        self.push_style(Style::new().add_modifier(modifier));
    }

    fn inner_width(&self) -> usize {
        let margins: usize = self.margins.iter().map(|margin| margin.rest.width()).sum();
        self.width.saturating_sub(margins).max(8)
    }

    /// Ends the line of words under way.
    fn flush(&mut self) {
        if self.spans.is_empty() {
            return;
        }
        let spans = std::mem::take(&mut self.spans);
        for line in wrap::wrap(&spans, self.inner_width()) {
            self.put(line);
        }
    }

    fn put(&mut self, line: Line<'static>) {
        let mut spans = Vec::new();
        for margin in &mut self.margins {
            spans.push(margin.first.take().unwrap_or_else(|| margin.rest.clone()));
        }
        spans.extend(line.spans);
        self.lines.push(Line::from(spans));
    }

    fn blank(&mut self) {
        self.flush();
        if self.lines.last().is_some_and(|line| line.width() > 0) {
            self.lines.push(Line::default());
        }
    }

    /// A blank line, but for what follows the mark of an entry.
    fn blank_between(&mut self) {
        let is_first = self
            .margins
            .last()
            .is_some_and(|margin| margin.first.is_some());
        if is_first || self.margins.is_empty() {
            self.flush();
            if !is_first {
                self.blank();
            }
        } else {
            self.flush();
        }
    }

    fn table_lines(&mut self, table: &Table) {
        let n_columns = table.rows.iter().map(Vec::len).max().unwrap_or_default();
        if n_columns == 0 {
            return;
        }
        let wide = |cell: &Vec<Span<'static>>| cell.iter().map(Span::width).sum::<usize>();
        let mut widths: Vec<usize> = (0..n_columns)
            .map(|n| {
                let cells = table.rows.iter().filter_map(|row| row.get(n));
                cells.map(wide).max().unwrap_or_default().max(1)
            })
            .collect();
        let room = self.inner_width().saturating_sub(3 * (n_columns - 1));
        while widths.iter().sum::<usize>() > room {
            let Some(widest) = widths.iter_mut().max() else {
                break;
            };
            if *widest <= LEAST_COLUMN {
                break;
            }
            *widest -= 1;
        }
        for (at, row) in table.rows.iter().enumerate() {
            let cells: Vec<Vec<Line<'static>>> = widths
                .iter()
                .enumerate()
                .map(|(n, width)| {
                    let empty = Vec::new();
                    let mut spans = row.get(n).unwrap_or(&empty).clone();
                    if at == 0 {
                        for span in &mut spans {
                            span.style = span.style.add_modifier(Modifier::BOLD);
                        }
                    }
                    wrap::wrap(&spans, *width)
                })
                .collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(1);
            for n_line in 0..height {
                let mut spans = Vec::new();
                for (n, cell) in cells.iter().enumerate() {
                    if n > 0 {
                        spans.push(span(" │ ", self.theme.dim()));
                    }
                    let line = cell.get(n_line).cloned().unwrap_or_default();
                    let space = widths[n].saturating_sub(line.width());
                    let before = match table.alignments.get(n) {
                        Some(Alignment::Right) => space,
                        Some(Alignment::Center) => space / 2,
                        _ => 0,
                    };
                    spans.push(Span::raw(" ".repeat(before)));
                    spans.extend(line.spans);
                    spans.push(Span::raw(" ".repeat(space - before)));
                }
                self.put(Line::from(spans));
            }
            if at == 0 {
                let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                let rule = span(&rule.join("─┼─"), self.theme.dim());
                self.put(Line::from(vec![rule]));
            }
        }
        self.blank();
    }
}
