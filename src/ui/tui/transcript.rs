//! What was said and done, from the oldest to the newest.
//!
//! Each entry knows how many lines it has for a width; the lines themselves are kept only for those
//! on the screen. So the memory of a long conversation is its text.

use std::time::Instant;

use ratatui::text::Line;
use ratatui::text::Span;

use super::markdown::Markdown;
use super::panel::Panel;
use super::theme::Theme;
use super::theme::span;
use super::wrap;
use crate::execution_report;
use crate::execution_report::Part;
use crate::execution_report::Role;
use crate::note::Tone;
use crate::text;

/// Older entries are dropped; the session's log has all of them.
const MOST_ENTRIES: usize = 10_000;
/// How much of what the model thinks is kept.
const MOST_THOUGHT: usize = 256 << 10;

pub(super) enum Entry {
    User(String),
    Answer(Markdown),
    Thinking(Thinking),
    Call(Box<Panel>),
    Note(Tone, String),
    /// The execution report, by lines of parts.
    Report(Vec<Vec<Part>>),
}

pub(super) struct Thinking {
    text: String,
    cleaner: text::Cleaner,
    n_chars: usize,
    is_over: bool,
}

struct Item {
    entry: Entry,
    width: usize,
    height: usize,
    lines: Option<Vec<Line<'static>>>,
}

#[derive(Default)]
pub(super) struct Transcript {
    items: Vec<Item>,
    n_dropped: usize,
    pub(super) shows_thinking: bool,
}

impl Thinking {
    fn new() -> Self {
        Self {
            text: String::new(),
            cleaner: text::Cleaner::new(),
            n_chars: 0,
            is_over: false,
        }
    }

    /// Returns about how many tokens it is.
    pub(super) fn tokens(&self) -> usize {
        self.n_chars.div_ceil(4)
    }
}

impl Transcript {
    pub(super) fn push(&mut self, entry: Entry) {
        self.items.push(Item {
            entry,
            width: 0,
            height: 0,
            lines: None,
        });
        if self.items.len() > MOST_ENTRIES {
            let n = MOST_ENTRIES / 10;
            self.items.drain(..n);
            self.n_dropped += n;
        }
    }

    pub(super) fn note(&mut self, tone: Tone, words: &str) {
        self.push(Entry::Note(tone, words.to_owned()));
    }

    /// Adds a note, and returns by which number it is changed later.
    pub(super) fn numbered_note(&mut self, tone: Tone, words: &str) -> usize {
        self.note(tone, words);
        self.n_dropped + self.items.len() - 1
    }

    /// Changes the words of a note that is still there.
    pub(super) fn change_note(&mut self, number: usize, changed: &str) {
        let item = number
            .checked_sub(self.n_dropped)
            .and_then(|at| self.items.get_mut(at));
        if let Some(item) = item
            && let Entry::Note(_, words) = &mut item.entry
        {
            changed.clone_into(words);
            item.touch();
        }
    }

    pub(super) fn clear(&mut self) {
        self.n_dropped += self.items.len();
        self.items.clear();
    }

    /// Adds words to the answer under way.
    pub(super) fn push_text(&mut self, text: &str) {
        self.end_thinking();
        if !matches!(self.last(), Some(Entry::Answer(_))) {
            self.push(Entry::Answer(Markdown::default()));
        }
        if let Some(Entry::Answer(markdown)) = self.change_last() {
            markdown.push(text);
        }
    }

    pub(super) fn end_text(&mut self) {
        if let Some(Entry::Answer(_)) = self.last()
            && let Some(Entry::Answer(markdown)) = self.change_last()
        {
            markdown.finish();
        }
    }

    pub(super) fn push_thinking(&mut self, text: &str) {
        let goes_on = matches!(self.last(), Some(Entry::Thinking(thinking)) if !thinking.is_over);
        if !goes_on {
            self.push(Entry::Thinking(Thinking::new()));
        }
        if let Some(Entry::Thinking(thinking)) = self.change_last() {
            thinking.n_chars += text.chars().count();
            if thinking.text.len() < MOST_THOUGHT {
                let clean = thinking.cleaner.push(text.as_bytes());
                thinking.text.push_str(&clean);
            }
        }
    }

    /// It collapses as soon as something else comes.
    pub(super) fn end_thinking(&mut self) {
        if matches!(self.last(), Some(Entry::Thinking(thinking)) if !thinking.is_over)
            && let Some(Entry::Thinking(thinking)) = self.change_last()
        {
            thinking.is_over = true;
        }
    }

    /// Returns how many tokens the model has thought, where it is still at it.
    pub(super) fn thought(&self) -> Option<usize> {
        match self.last()? {
            Entry::Thinking(thinking) if !thinking.is_over => Some(thinking.tokens()),
            _ => None,
        }
    }

    /// Returns the panel of a call.
    pub(super) fn panel(&mut self, id: &str) -> Option<&mut Panel> {
        let at = self
            .items
            .iter()
            .rposition(|item| matches!(&item.entry, Entry::Call(panel) if panel.id == id))?;
        let item = &mut self.items[at];
        item.touch();
        match &mut item.entry {
            Entry::Call(panel) => Some(panel),
            _ => None,
        }
    }

    /// Returns the newest call that runs.
    pub(super) fn running(&self) -> Option<&Panel> {
        let mut last = self.items.iter().rev().take(64);
        last.find_map(|item| match &item.entry {
            Entry::Call(panel) if panel.is_running() => Some(&**panel),
            _ => None,
        })
    }

    /// Opens or closes the panels: all those that are closed are opened first.
    pub(super) fn toggle_panels(&mut self) {
        let is_any_closed = self
            .items
            .iter()
            .any(|item| matches!(&item.entry, Entry::Call(panel) if !panel.is_open));
        for item in &mut self.items {
            if let Entry::Call(panel) = &mut item.entry {
                panel.is_open = is_any_closed;
                item.touch();
            }
        }
    }

    /// Returns the panel before or after this one.
    pub(super) fn next_panel(&self, from: Option<usize>, is_back: bool) -> Option<usize> {
        let is_panel = |at: &usize| matches!(self.items[*at].entry, Entry::Call(_));
        match (from, is_back) {
            (None, true) => (0..self.items.len()).rfind(is_panel),
            (None, false) => None,
            (Some(at), true) => (0..at.min(self.items.len())).rfind(is_panel).or(from),
            (Some(at), false) => (at + 1..self.items.len()).find(is_panel),
        }
    }

    pub(super) fn toggle_panel(&mut self, at: usize) {
        if let Some(item) = self.items.get_mut(at)
            && let Entry::Call(panel) = &mut item.entry
        {
            panel.is_open = !panel.is_open;
            item.touch();
        }
    }

    pub(super) fn toggle_thinking(&mut self) {
        self.shows_thinking = !self.shows_thinking;
        for item in &mut self.items {
            if matches!(item.entry, Entry::Thinking(_)) {
                item.touch();
            }
        }
    }

    fn last(&self) -> Option<&Entry> {
        self.items.last().map(|item| &item.entry)
    }

    fn change_last(&mut self) -> Option<&mut Entry> {
        let item = self.items.last_mut()?;
        item.touch();
        Some(&mut item.entry)
    }

    /// Returns how many lines all of it has.
    pub(super) fn height(&mut self, width: usize, theme: Theme, now: Instant) -> usize {
        let shows = self.shows_thinking;
        let mut sum = 0;
        let mut is_after_call = false;
        for item in &mut self.items {
            let is_call = matches!(item.entry, Entry::Call(_));
            item.measure(width, theme, now, shows);
            sum += item.height + gap(item, is_after_call && is_call);
            is_after_call = is_call;
        }
        sum
    }

    /// Returns the lines from `from`, at most `n`; [`Self::height`] was called for the width.
    pub(super) fn view(
        &mut self,
        from: usize,
        n: usize,
        width: usize,
        theme: Theme,
        now: Instant,
        chosen: Option<usize>,
    ) -> Vec<Line<'static>> {
        let shows = self.shows_thinking;
        let mut out = Vec::with_capacity(n);
        let mut at = 0;
        let mut is_after_call = false;
        for (index, item) in self.items.iter_mut().enumerate() {
            let is_call = matches!(item.entry, Entry::Call(_));
            let blank = gap(item, is_after_call && is_call);
            is_after_call = is_call;
            let end = at + blank + item.height;
            if end <= from || at >= from + n {
                item.forget();
                at = end;
                continue;
            }
            for line in at..at + blank {
                if line >= from && line < from + n {
                    out.push(Line::default());
                }
            }
            let begin = at + blank;
            let lines = item.lines(width, theme, now, shows);
            for (offset, line) in lines.iter().enumerate() {
                if begin + offset >= from && begin + offset < from + n {
                    let mut line = line.clone();
                    if chosen == Some(index) && offset == 0 {
                        line = line.style(theme.chosen());
                    }
                    out.push(line);
                }
            }
            at = end;
        }
        out
    }
}

/// How many blank lines stand above an entry.
fn gap(item: &Item, is_next_call: bool) -> usize {
    match item.entry {
        _ if item.height == 0 || is_next_call => 0,
        Entry::Note(..) => 0,
        _ => 1,
    }
}

impl Item {
    fn touch(&mut self) {
        self.width = 0;
        self.lines = None;
    }

    fn is_live(&self) -> bool {
        matches!(&self.entry, Entry::Call(panel) if panel.is_running())
    }

    fn measure(&mut self, width: usize, theme: Theme, now: Instant, shows_thinking: bool) {
        if self.width == width && !self.is_live() {
            return;
        }
        let lines = make(&mut self.entry, width, theme, now, shows_thinking);
        self.height = lines.len();
        self.width = width;
        self.lines = Some(lines);
    }

    fn lines(
        &mut self,
        width: usize,
        theme: Theme,
        now: Instant,
        shows_thinking: bool,
    ) -> &[Line<'static>] {
        let entry = &mut self.entry;
        self.lines
            .get_or_insert_with(|| make(entry, width, theme, now, shows_thinking))
    }

    fn forget(&mut self) {
        self.lines = None;
        if let Entry::Answer(markdown) = &mut self.entry {
            markdown.forget_lines();
        }
    }
}

fn make(
    entry: &mut Entry,
    width: usize,
    theme: Theme,
    now: Instant,
    shows_thinking: bool,
) -> Vec<Line<'static>> {
    match entry {
        Entry::User(text) => user_lines(text, width, theme),
        Entry::Answer(markdown) if markdown.is_empty() => Vec::new(),
        Entry::Answer(markdown) => markdown.lines(width, theme),
        Entry::Thinking(thinking) => thinking_lines(thinking, width, theme, shows_thinking),
        Entry::Call(panel) => panel.lines(width, theme, now),
        Entry::Report(lines) => report_lines(lines, width, theme),
        Entry::Note(tone, words) => {
            let style = match tone {
                Tone::Plain => theme.plain(),
                Tone::Dim => theme.dim(),
                Tone::Warn => theme.warn(),
                Tone::Bad => theme.bad(),
            };
            text::clean(words)
                .trim_end()
                .lines()
                .flat_map(|line| wrap::wrap(&[span(line, style)], width))
                .collect()
        }
    }
}

fn report_lines(lines: &[Vec<Part>], width: usize, theme: Theme) -> Vec<Line<'static>> {
    let shown = |(role, words): &Part| {
        let style = match role {
            Role::Delimiter => theme.good().patch(theme.bold()),
            Role::Heading => theme.dim().patch(theme.bold()),
            Role::Path => theme.accent(),
            Role::Function => theme.warn(),
            Role::Code | Role::Plain | Role::Line => theme.plain(),
        };
        span(&execution_report::shown(*role, words), style)
    };
    lines
        .iter()
        .flat_map(|line| {
            let spans: Vec<Span<'static>> = line.iter().map(shown).collect();
            wrap::wrap(&spans, width)
        })
        .collect()
}

/// Lines of a message that are shown; the rest is counted.
const USER_LINES: usize = 30;

fn user_lines(text: &str, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let clean = text::clean(text);
    let mut lines = Vec::new();
    for line in clean.trim_end().lines().take(USER_LINES) {
        for wrapped in wrap::wrap(&[span(line, theme.user())], width.saturating_sub(2)) {
            let mark = if lines.is_empty() { "› " } else { "  " };
            let mut spans = vec![Span::styled(mark, theme.user())];
            spans.extend(wrapped.spans);
            lines.push(Line::from(spans));
        }
    }
    let n = clean.trim_end().lines().count();
    if n > USER_LINES {
        lines.push(Line::from(span(
            &format!("  … {} more lines", n - USER_LINES),
            theme.dim(),
        )));
    }
    lines
}

fn thinking_lines(
    thinking: &Thinking,
    width: usize,
    theme: Theme,
    shows: bool,
) -> Vec<Line<'static>> {
    let count = tokens(thinking.tokens() as u64);
    if !shows {
        // While it lasts the working line says so.
        return if thinking.is_over {
            vec![Line::from(span(
                &format!("thought for about {count} tokens (Ctrl-O shows)"),
                theme.dim(),
            ))]
        } else {
            Vec::new()
        };
    }
    let mut lines = vec![Line::from(span(
        &format!("thinking, {count} tokens"),
        theme.dim(),
    ))];
    for line in thinking.text.trim_end().lines() {
        for wrapped in wrap::wrap(&[span(line, theme.dim())], width.saturating_sub(2)) {
            let mut spans = vec![Span::styled("│ ", theme.dim())];
            spans.extend(wrapped.spans);
            lines.push(Line::from(spans));
        }
    }
    lines
}

/// Returns a number of tokens as it is said: `1.2 k`.
pub(crate) fn tokens(n: u64) -> String {
    match n {
        0..1000 => n.to_string(),
        1000..1_000_000 => format!("{}.{} k", n / 1000, n % 1000 / 100),
        _ => format!("{}.{} M", n / 1_000_000, n % 1_000_000 / 100_000),
    }
}
