//! A frame of the review: the files, the diff of the chosen one, and the keys.

use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::text::Span;

use super::review::Asking;
use super::review::Focus;
use super::review::Part;
use super::review::Review;
use super::review::ReviewFile;
use super::theme::Theme;
use super::theme::span;
use super::wrap;
use crate::text;

/// From so many columns on, files and diff stand side by side.
const SIDE_BY_SIDE: usize = 110;

const KEYS: [&str; 6] = [
    "space takes or leaves",
    "tab files, hunks",
    "a all",
    "n none",
    "enter applies",
    "q leaves it pending",
];

impl Review {
    pub(super) fn lines(
        &mut self,
        width: usize,
        height: usize,
        theme: Theme,
    ) -> Vec<Line<'static>> {
        let mut lines = vec![self.title(width, theme)];
        let foot = self.foot(width, height, theme);
        let room = height.saturating_sub(lines.len() + foot.len());
        if width >= SIDE_BY_SIDE {
            let left = width * 2 / 5;
            let files = self.files(left, room, theme);
            let diff = self.diff(width - left - 3, room, theme);
            for row in 0..room {
                let file = files.get(row).cloned().unwrap_or_default();
                let mut spans = padded(file, left);
                spans.push(span(" │ ", theme.dim()));
                spans.extend(diff.get(row).cloned().unwrap_or_default().spans);
                lines.push(Line::from(spans));
            }
        } else {
            let n_files = self.view.files.len().min((room / 3).max(2)).min(room);
            lines.extend(self.files(width, n_files, theme));
            if room > n_files {
                lines.push(Line::from(span(&"─".repeat(width), theme.dim())));
                lines.extend(self.diff(width, room - n_files - 1, theme));
            }
        }
        lines.truncate(height.saturating_sub(foot.len()));
        lines.resize(height.saturating_sub(foot.len()), Line::default());
        lines.extend(foot);
        lines
    }

    fn title(&self, width: usize, theme: Theme) -> Line<'static> {
        let files = &self.view.files;
        let sum = |pick: fn(&(u64, u64)) -> u64| -> u64 {
            files
                .iter()
                .filter_map(|file| file.lines.as_ref())
                .map(pick)
                .sum()
        };
        let what = if files.len() == 1 { "path" } else { "paths" };
        let count = format!(
            "  {} {what}, +{} −{}",
            files.len(),
            sum(|lines| lines.0),
            sum(|lines| lines.1)
        );
        let room = width.saturating_sub(wrap::width(&count));
        let title = wrap::cut(&text::line(&self.view.title), room);
        wrap::cut_line(
            vec![span(&title, theme.bold()), span(&count, theme.dim())],
            width,
        )
    }

    fn foot(&self, width: usize, height: usize, theme: Theme) -> Vec<Line<'static>> {
        let mut lines = vec![Line::from(span(&"─".repeat(width), theme.dim()))];
        if height > 15 {
            for note in &self.view.notes {
                let note = wrap::cut(&text::line(note), width);
                lines.push(Line::from(span(&note, theme.warn())));
            }
        }
        let question = match self.asking {
            Some(Asking::Apply) => {
                let (n, all) = (self.n_taken(), self.view.files.len());
                let left = (0..all)
                    .filter(|file| self.part(*file) != Part::All)
                    .count();
                let rest = match left {
                    0 => String::new(),
                    n => format!(", {n} stay pending in whole or in part"),
                };
                Some(format!(
                    "Apply {n} of {all} paths{rest}? y applies; any other key goes back"
                ))
            }
            Some(Asking::Discard) => self
                .view
                .discard
                .as_ref()
                .map(|words| format!("{words}? y discards; any other key goes back")),
            None => None,
        };
        if let Some(question) = question {
            lines.extend(wrap::wrap(&[span(&question, theme.warn())], width));
            return lines;
        }
        let mut keys: Vec<&str> = KEYS.to_vec();
        if self.view.discard.is_some() {
            keys.insert(5, "d discards");
        }
        lines.extend(wrap::wrap(
            &[span(&keys.join(" · "), theme.accent())],
            width,
        ));
        lines
    }

    fn files(&self, width: usize, room: usize, theme: Theme) -> Vec<Line<'static>> {
        let from = (self.file + 1).saturating_sub(room);
        let files = self.view.files.iter().enumerate().skip(from).take(room);
        files
            .map(|(n, file)| self.file_line(n, file, width, theme))
            .collect()
    }

    fn file_line(&self, n: usize, file: &ReviewFile, width: usize, theme: Theme) -> Line<'static> {
        let mark = match self.part(n) {
            Part::All => "[x]",
            Part::Some => "[~]",
            Part::None => "[ ]",
        };
        let lines = file
            .lines
            .map(|(added, removed)| format!(" +{added} −{removed}"))
            .unwrap_or_default();
        let mut warnings = String::new();
        if file.is_conflict {
            warnings.push_str(" changed since");
        }
        if file.runs_by_itself {
            warnings.push_str(" runs by itself");
        } else if file.runs.is_some() {
            warnings.push_str(" may run");
        }
        let is_chosen = n == self.file;
        let pointer = if is_chosen { "›" } else { " " };
        let head = format!("{pointer}{mark} {} ", file.sign);
        let used = wrap::width(&head) + wrap::width(&lines) + wrap::width(&warnings);
        let name = text::line(&file.name);
        let name = if wrap::width(&name) > width.saturating_sub(used) {
            cut_front(&name, width.saturating_sub(used))
        } else {
            name
        };
        let style = if is_chosen && self.focus == Focus::Files {
            theme.chosen()
        } else {
            theme.plain()
        };
        wrap::cut_line(
            vec![
                span(&head, theme.plain()),
                span(&name, style),
                span(&lines, theme.dim()),
                span(&warnings, theme.warn()),
            ],
            width,
        )
    }

    /// Returns a page of the chosen file's diff.
    fn diff(&mut self, width: usize, room: usize, theme: Theme) -> Vec<Line<'static>> {
        let (lines, starts) = self.whole_diff(width, theme);
        self.starts = starts;
        self.page = room;
        self.scroll = self.scroll.min(lines.len().saturating_sub(room));
        let n_below = lines.len().saturating_sub(self.scroll + room);
        let mut page: Vec<Line<'static>> = lines.into_iter().skip(self.scroll).take(room).collect();
        if n_below > 0
            && let Some(last) = page.last_mut()
        {
            let words = format!("… {} more lines; PageDown", n_below + 1);
            *last = Line::from(span(&wrap::cut(&words, width), theme.warn()));
        }
        page
    }

    fn whole_diff(&self, width: usize, theme: Theme) -> (Vec<Line<'static>>, Vec<usize>) {
        let (mut lines, mut starts) = (Vec::new(), Vec::new());
        let Some(file) = self.view.files.get(self.file) else {
            return (lines, starts);
        };
        let put = |lines: &mut Vec<Line<'static>>, words: &str, style: Style| {
            lines.extend(wrap::fold(&[span(words, style)], width));
        };
        put(&mut lines, &text::line(&file.name), theme.bold());
        if let Some(why) = &file.runs {
            let when = if file.runs_by_itself {
                "runs by itself on your machine"
            } else {
                "may run on your machine"
            };
            put(
                &mut lines,
                &text::line(&format!("{when}: {why}")),
                theme.warn(),
            );
        }
        if file.is_conflict {
            let words = "changed in the project since: it is left, unless `podbay review apply --merge` can put both together";
            lines.extend(wrap::wrap(&[span(words, theme.warn())], width));
        }
        for line in &file.head {
            put(&mut lines, &text::escape(line), theme.dim());
        }
        for (n, hunk) in file.hunks.iter().enumerate() {
            starts.push(lines.len());
            self.hunk(n, hunk, file, width, theme, &mut lines);
        }
        (lines, starts)
    }

    fn hunk(
        &self,
        n: usize,
        hunk: &str,
        file: &ReviewFile,
        width: usize,
        theme: Theme,
        lines: &mut Vec<Line<'static>>,
    ) {
        let is_chosen = self.focus == Focus::Hunks && n == self.hunk;
        for (row, line) in hunk.lines().enumerate() {
            // What a terminal would obey, or what is not seen, is shown by its number: a change that
            // is out of sight would be applied unread.
            let shown = text::escape(line);
            if row == 0 {
                let mark = match self.taken[self.file].get(if file.is_divisible { n } else { 0 }) {
                    Some(true) => "[x] ",
                    _ => "[ ] ",
                };
                let style = if is_chosen {
                    theme.chosen()
                } else {
                    theme.accent()
                };
                let pointer = if is_chosen { "›" } else { " " };
                let words = format!("{pointer}{mark}{shown}");
                lines.extend(wrap::fold(&[span(&words, style)], width));
                continue;
            }
            let style = match line.as_bytes().first() {
                Some(b'+') => theme.good(),
                Some(b'-') => theme.bad(),
                Some(b'\\') => theme.dim(),
                _ => theme.plain(),
            };
            lines.extend(wrap::fold(&[span(&shown, style)], width));
        }
    }
}

/// Cuts a path at its front: its end says more.
fn cut_front(name: &str, width: usize) -> String {
    let mut kept = String::new();
    for c in name.chars().rev() {
        let longer = format!("{c}{kept}");
        if wrap::width(&longer) + 1 > width {
            break;
        }
        kept = longer;
    }
    format!("…{kept}")
}

/// Fills a line with blanks up to a column.
fn padded(line: Line<'static>, width: usize) -> Vec<Span<'static>> {
    let used = wrap::width(&line.to_string());
    let mut spans = line.spans;
    if used < width {
        spans.push(Span::raw(" ".repeat(width - used)));
    }
    spans
}
