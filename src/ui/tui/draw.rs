//! One frame: the conversation, what continues, the question or the editor, the status.

use std::time::Instant;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::text::Span;

use super::editor::paste_label;
use super::popup::MOST_SHOWN;
use super::screen::Screen;
use super::status::Phase;
use super::theme::span;
use super::transcript::tokens;
use super::wrap;
use crate::call;
use crate::slash;

const PROMPT: &str = "› ";
/// Lines of the editor that are shown at most.
const MOST_EDITOR: usize = 10;
/// Messages that wait, of which a line each is shown.
const MOST_QUEUED: usize = 3;

const SPINNER: [&str; 4] = ["◐", "◓", "◑", "◒"];

/// Lines from the bottom up are more important: a small terminal shows fewer of the others.
struct Foot {
    lines: Vec<Line<'static>>,
    cursor: Option<(usize, usize)>,
}

impl Screen {
    /// Draws all of it.
    pub fn draw(&mut self, frame: &mut Frame<'_>, now: Instant) {
        let area = frame.area();
        let (width, height) = (usize::from(area.width), usize::from(area.height));
        if width == 0 || height == 0 {
            return;
        }
        if let Some(page) = &mut self.over {
            return page.draw(frame, self.theme);
        }
        for modal in self.modals.iter_mut().take(1) {
            modal.shown.get_or_insert(now);
        }
        let foot = self.foot(width, height, now);
        let n_foot = foot.lines.len().min(height);
        let room = height - n_foot;
        self.page = room;
        let theme = self.theme;
        let all = self.transcript.height(width, theme, now);
        self.scroll = self.scroll.min(all.saturating_sub(room));
        let from = all.saturating_sub(room + self.scroll);
        let mut lines = self
            .transcript
            .view(from, room, width, theme, now, self.chosen);
        if self.scroll > 0
            && let Some(last) = lines.last_mut()
        {
            let words = format!("↓ {} more lines (Ctrl-End)", self.scroll);
            *last = Line::from(span(&wrap::cut(&words, width), theme.warn()));
        }
        // What was said last stands right above the editor once there is more than fits; before
        // that it begins at the top.
        for (row, line) in lines.iter().take(room).enumerate() {
            put(frame, line, row, width);
        }
        let top = height - n_foot;
        let skipped = foot.lines.len() - n_foot;
        for (row, line) in foot.lines.iter().skip(skipped).enumerate() {
            put(frame, line, top + row, width);
        }
        if let Some((x, y)) = foot.cursor
            && let Some(y) = (top + y).checked_sub(skipped)
        {
            frame.set_cursor_position((x.min(width - 1) as u16, y.min(height - 1) as u16));
        }
    }

    fn foot(&mut self, width: usize, height: usize, now: Instant) -> Foot {
        let theme = self.theme;
        let mut lines = Vec::new();
        if height > 6 {
            lines.push(Line::default());
        }
        if let Some(line) = self.working_line(width, now) {
            lines.push(line);
        }
        let (queued, n_queued) = self.queue.peek(MOST_QUEUED);
        let n_shown = queued.len();
        for message in queued {
            let words = format!("  {}", slash::queued_words(&message));
            lines.push(Line::from(span(&wrap::cut(&words, width), theme.dim())));
        }
        if n_queued > n_shown {
            let words = format!("  and {} more", n_queued - n_shown);
            lines.push(Line::from(span(&words, theme.dim())));
        }
        let rule = |words: &str| {
            let n = width.saturating_sub(wrap::width(words) + 3);
            Line::from(span(&format!("─ {words}{}", "─".repeat(n)), theme.dim()))
        };
        let cursor;
        if let Some(modal) = self.modals.front_mut() {
            let room = height
                .saturating_sub(lines.len() + 3)
                .max(height / 2)
                .min(height.saturating_sub(2));
            let (asked, at) = modal.lines(width, room, theme);
            lines.push(Line::from(span(&"─".repeat(width), theme.warn())));
            cursor = at.map(|(x, y)| (x, lines.len() + y));
            lines.extend(asked);
        } else if let Some(search) = &self.search {
            let found = search.found(self.editor.history());
            let found = found.map_or("(nothing)", |text| text.lines().next().unwrap_or_default());
            lines.push(rule("history, Ctrl-R older, Enter takes it "));
            let words = format!("search `{}`: {found}", search.words);
            cursor = Some((8 + wrap::width(&search.words), lines.len()));
            lines.push(Line::from(span(&wrap::cut(&words, width), theme.plain())));
        } else {
            let mode = match &self.vi {
                Some(vi) if vi.is_normal() => "vi: normal mode ",
                _ => "",
            };
            lines.push(if mode.is_empty() {
                Line::from(span(&"─".repeat(width), theme.dim()))
            } else {
                rule(mode)
            });
            let (editor, (x, y)) = self.editor_lines(width, height);
            cursor = Some((x, lines.len() + y));
            lines.extend(editor);
            if let Some(popup) = &self.popup {
                let from = popup.at.saturating_sub(MOST_SHOWN - 1);
                let room = MOST_SHOWN.min(height.saturating_sub(4));
                for (n, choice) in popup.choices.iter().enumerate().skip(from).take(room) {
                    let style = if n == popup.at {
                        theme.chosen()
                    } else {
                        theme.plain()
                    };
                    let mut spans = vec![span(&format!("  {:<14}", choice.words), style)];
                    spans.push(span(&format!(" {}", choice.help), theme.dim()));
                    lines.push(wrap::cut_line(spans, width));
                }
            }
        }
        if height > 3 {
            lines.push(self.status_line(width));
        }
        Foot { lines, cursor }
    }

    fn working_line(&self, width: usize, now: Instant) -> Option<Line<'static>> {
        let theme = self.theme;
        let Some(working) = &self.working else {
            let starting = || "starting the sandbox and the model".to_owned();
            let step = match self.step() {
                Some(step) => step,
                None if !self.status.is_ready => starting(),
                None => return None,
            };
            let spans = vec![
                span("◌ ", theme.accent()),
                span(&wrap::cut(&step, width.saturating_sub(2)), theme.dim()),
            ];
            return Some(Line::from(spans));
        };
        let elapsed = now.saturating_duration_since(working.begun);
        let spinner = SPINNER[(elapsed.as_millis() / 250) as usize % SPINNER.len()];
        let phase = self.phase_words(&working.phase);
        let stop = if working.is_stopping {
            "stopping"
        } else {
            "esc to interrupt"
        };
        let mut tail = String::new();
        if elapsed.as_secs() > 0 {
            tail.push_str(&format!(" · {}", call::duration(elapsed.as_secs() * 1000)));
        }
        let used = working.count.usage.total();
        if used > 0 {
            tail.push_str(&format!(" · {} tokens", tokens(used)));
        }
        tail.push_str(&format!(" · {stop}"));
        let room = width.saturating_sub(2 + wrap::width(&tail)).max(8);
        let spans = vec![
            span(&format!("{spinner} "), theme.accent()),
            span(&wrap::cut(&phase, room), theme.bold()),
            span(&tail, theme.dim()),
        ];
        Some(wrap::cut_line(spans, width))
    }

    fn phase_words(&self, phase: &Phase) -> String {
        if self.has_modal() {
            return "waiting for your answer".to_owned();
        }
        if let Some(panel) = self.transcript.running()
            && *phase != Phase::Asking
        {
            return format!("running {}", panel.title());
        }
        match phase {
            Phase::Step(step) => step.clone(),
            Phase::Waiting if !self.status.is_ready => "starting".to_owned(),
            Phase::Waiting => "waiting for the model".to_owned(),
            Phase::Thinking => {
                let n = self.transcript.thought().unwrap_or_default();
                format!("thinking, {} tokens", tokens(n as u64))
            }
            Phase::Writing => "writing".to_owned(),
            Phase::Asking => "waiting for your answer".to_owned(),
            Phase::Ending => "ending the turn".to_owned(),
        }
    }

    /// Returns the lines of the editor and where the cursor is in them.
    fn editor_lines(&self, width: usize, height: usize) -> (Vec<Line<'static>>, (usize, usize)) {
        let theme = self.theme;
        let inner = width.saturating_sub(2).max(1);
        let mut lines: Vec<Line<'static>> = Vec::new();
        let mut cursor = (2, 0);
        let text = self.editor.text();
        let mut begin = 0;
        for line in text.split('\n') {
            let end = begin + line.len();
            if (begin..=end).contains(&self.editor.cursor()) {
                let before = wrap::width(&self.shown(&text[begin..self.editor.cursor()]));
                // A cursor behind a full line is on the next one.
                cursor = (2 + before % inner, lines.len() + before / inner);
            }
            let spans = self.editor_spans(line);
            let mut wrapped = wrap::fold(&spans, inner);
            if cursor.1 == lines.len() + wrapped.len() && end == self.editor.cursor() {
                wrapped.push(Line::default());
            }
            lines.extend(wrapped);
            begin = end + 1;
        }
        let room = MOST_EDITOR.min((height / 2).max(1));
        let from = (cursor.1 + 1).saturating_sub(room);
        let is_empty = text.is_empty();
        let lines = lines
            .into_iter()
            .enumerate()
            .skip(from)
            .take(room)
            .map(|(n, line)| {
                let mark = if n == 0 { PROMPT } else { "  " };
                let mut spans = vec![Span::styled(mark, theme.user())];
                if is_empty {
                    let help = "type a task; / for commands, @ for files, ! for a command";
                    spans.push(span(&wrap::cut(help, inner), theme.dim()));
                }
                spans.extend(line.spans);
                Line::from(spans)
            })
            .collect();
        (lines, (cursor.0, cursor.1 - from))
    }

    fn shown(&self, text: &str) -> String {
        self.editor_spans(text)
            .iter()
            .map(|span| span.content.as_ref())
            .collect()
    }

    fn editor_spans(&self, line: &str) -> Vec<Span<'static>> {
        let mut spans = Vec::new();
        let mut plain = String::new();
        for c in line.chars() {
            match self.editor.paste(c) {
                Some(paste) => {
                    if !plain.is_empty() {
                        spans.push(span(&std::mem::take(&mut plain), self.theme.plain()));
                    }
                    spans.push(span(&paste_label(paste), self.theme.accent()));
                }
                None => plain.push(c),
            }
        }
        if !plain.is_empty() {
            spans.push(span(&plain, self.theme.plain()));
        }
        spans
    }

    fn status_line(&self, width: usize) -> Line<'static> {
        let theme = self.theme;
        if let Some((hint, _)) = &self.hint {
            return Line::from(span(&wrap::cut(hint, width), theme.warn()));
        }
        let mut words = String::new();
        for part in self.status.parts() {
            let more = if words.is_empty() {
                part
            } else {
                format!(" · {part}")
            };
            if wrap::width(&words) + wrap::width(&more) > width {
                break;
            }
            words.push_str(&more);
        }
        Line::from(span(&words, theme.dim()))
    }
}

fn put(frame: &mut Frame<'_>, line: &Line<'static>, row: usize, width: usize) {
    let area = frame.area();
    if row < usize::from(area.height) {
        let area = Rect::new(area.x, area.y + row as u16, width as u16, 1);
        frame
            .buffer_mut()
            .set_line(area.x, area.y, line, area.width);
        if line.style != ratatui::style::Style::default() {
            frame.buffer_mut().set_style(area, line.style);
        }
    }
}
