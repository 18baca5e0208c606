//! One tool call on the screen: a line with what matters, and all of it on request.

use std::collections::VecDeque;
use std::time::Instant;

use ratatui::text::Line;
use ratatui::text::Span;
use serde_json::Value;

use podbay_event::CallStatus;

use super::highlight::diff_line;
use super::theme::Theme;
use super::theme::span;
use super::wrap;
use crate::call;
use crate::padding;
use crate::text;
use crate::text::Cleaner;

/// Lines of a running command that are shown, the newest.
const LIVE_LINES: usize = 5;
/// Lines of it that are kept for whoever opens the panel.
const KEPT_LINES: usize = 500;
const LINE_MAX: usize = 4096;
/// How much of a result or of arguments is kept.
const KEPT_BYTES: usize = 256 << 10;

pub(super) struct Panel {
    pub(super) id: String,
    name: String,
    arguments: String,
    begun: Instant,
    output: Output,
    end: Option<End>,
    pub(super) is_open: bool,
}

struct End {
    status: CallStatus,
    result: String,
    duration_ms: u64,
}

#[derive(Default)]
struct Output {
    cleaner: Cleaner,
    lines: VecDeque<String>,
    partial: String,
}

impl Output {
    fn push(&mut self, text: &str) {
        self.partial.push_str(&self.cleaner.push(text.as_bytes()));
        while let Some(end) = self.partial.find('\n') {
            let line: String = self.partial.drain(..=end).collect();
            self.line(line.trim_end());
        }
        if self.partial.len() > LINE_MAX {
            let line = std::mem::take(&mut self.partial);
            self.line(&line);
        }
    }

    fn line(&mut self, line: &str) {
        let end = line.floor_char_boundary(LINE_MAX);
        self.lines.push_back(line[..end].to_owned());
        if self.lines.len() > KEPT_LINES {
            self.lines.pop_front();
        }
    }
}

impl Panel {
    pub(super) fn new(id: &str, name: &str, arguments: &str, now: Instant) -> Self {
        Self {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: bounded(arguments),
            begun: now,
            output: Output::default(),
            end: None,
            is_open: false,
        }
    }

    pub(super) fn is_running(&self) -> bool {
        self.end.is_none()
    }

    pub(super) fn push_output(&mut self, text: &str) {
        self.output.push(text);
    }

    pub(super) fn finish(&mut self, status: CallStatus, result: &str, duration_ms: u64) {
        self.end = Some(End {
            status,
            result: bounded(result),
            duration_ms,
        });
    }

    /// Returns what is being done, for the line that says so: `bash make test`.
    pub(super) fn title(&self) -> String {
        if matches!(self.name.as_str(), "grep" | "glob")
            && let Some(pattern) = argument(&self.arguments, &["pattern"])
        {
            let place = argument(&self.arguments, &["path"]).filter(|path| path != ".");
            let place = place.map_or_else(String::new, |path| format!(" in {}", text::line(&path)));
            return format!("{} '{}'{place}", self.name, text::line(&pattern));
        }
        let head = call::head(&self.name, &self.arguments);
        head.lines().next().unwrap_or_default().to_owned()
    }

    /// Returns files and lines that an edit added and took away.
    pub(super) fn changed(&self) -> Option<(u64, u64)> {
        let end = self
            .end
            .as_ref()
            .filter(|end| end.status == CallStatus::Ok)?;
        match self.name.as_str() {
            "edit_file" | "multi_edit" | "edit_lines" => Some(counted(&end.result)),
            "apply_patch" => Some(summed(&end.result)),
            _ => None,
        }
    }

    pub(super) fn lines(&self, width: usize, theme: Theme, now: Instant) -> Vec<Line<'static>> {
        let mut lines = vec![self.summary(width, theme, now)];
        let inner = width.saturating_sub(4).max(8);
        let mut put = |span: Span<'static>| {
            for line in wrap::fold(&[span], inner) {
                let mut spans = vec![Span::styled("  │ ", theme.dim())];
                spans.extend(line.spans);
                lines.push(Line::from(spans));
            }
        };
        if self.is_open {
            for line in self.argument_lines() {
                put(span(&line, theme.accent()));
            }
            match &self.end {
                Some(end) => {
                    for line in text::clean(&end.result).lines() {
                        put(if self.is_edit() {
                            diff_line(line, theme)
                        } else {
                            span(line, theme.plain())
                        });
                    }
                }
                None => {
                    for line in &self.output.lines {
                        put(span(line, theme.dim()));
                    }
                }
            }
        } else if self.is_running() {
            let n = self.output.lines.len();
            for line in self.output.lines.iter().skip(n.saturating_sub(LIVE_LINES)) {
                put(span(&wrap::cut(line, inner), theme.dim()));
            }
        } else if let Some(end) = &self.end
            && !matches!(end.status, CallStatus::Ok | CallStatus::Cancelled)
        {
            // Why it failed is what is looked for next.
            let clean = text::clean(&end.result);
            let lines: Vec<&str> = clean.lines().filter(|line| !line.is_empty()).collect();
            for line in &lines[lines.len().saturating_sub(3)..] {
                put(span(&wrap::cut(line, inner), theme.dim()));
            }
        }
        lines
    }

    fn summary(&self, width: usize, theme: Theme, now: Instant) -> Line<'static> {
        let (mark, style) = match self.end.as_ref().map(|end| end.status) {
            None => ("● ", theme.accent()),
            Some(CallStatus::Ok) => ("✓ ", theme.good()),
            Some(CallStatus::Denied | CallStatus::Cancelled) => ("⊘ ", theme.warn()),
            Some(_) => ("✗ ", theme.bad()),
        };
        let came = match &self.end {
            None => match elapsed_ms(self.begun, now) {
                0 => String::new(),
                ms => format!(" {}", call::duration(ms)),
            },
            Some(end) => self.came(end),
        };
        let room = width.saturating_sub(2 + wrap::width(&came)).max(8);
        let title = wrap::cut(&self.title(), room);
        let (name, rest) = title.split_at(title.find(' ').unwrap_or(title.len()));
        let spans = vec![
            span(mark, style),
            span(name, theme.bold()),
            span(rest, theme.plain()),
            span(&came, theme.dim()),
        ];
        wrap::cut_line(spans, width)
    }

    /// Returns what came of it, in a few words.
    fn came(&self, end: &End) -> String {
        let time = call::duration(end.duration_ms);
        match (end.status, self.changed()) {
            (CallStatus::Ok, Some((added, removed))) => return format!(" +{added} −{removed}"),
            (CallStatus::Ok, None) => {}
            (CallStatus::Failed, _) => {
                let code = end
                    .result
                    .rsplit_once("exit code ")
                    .and_then(|(_, rest)| rest.split(|c: char| !c.is_ascii_digit()).next())
                    .filter(|code| !code.is_empty() && self.name == "bash");
                return match code {
                    Some(code) => format!(": exit {code}, {time}"),
                    None => format!(": failed, {time}"),
                };
            }
            (CallStatus::Conflict, _) => return ": conflict".to_owned(),
            (CallStatus::TimedOut, _) => return format!(": timed out, {time}"),
            (CallStatus::Invalid, _) => return ": invalid".to_owned(),
            (CallStatus::Denied, _) => return ": denied".to_owned(),
            (CallStatus::Cancelled, _) => return format!(": cancelled, {time}"),
        }
        // What the file was before is not said here: no lines that went are counted.
        let written = (self.name == "write_file")
            .then(|| argument(&self.arguments, &["content", "contents", "text"]))
            .flatten();
        let n = if let Some(text) = &written {
            text.lines().count()
        } else {
            let lines = end.result.lines().filter(|line| !line.starts_with('['));
            lines.filter(|line| !line.is_empty()).count()
        };
        let counted = |one: &str, many: &str| {
            if n == 1 {
                format!(": 1 {one}")
            } else {
                format!(": {n} {many}")
            }
        };
        match self.name.as_str() {
            "glob" => counted("file", "files"),
            "list_directory" => counted("entry", "entries"),
            "write_file" if written.is_none() => String::new(),
            "grep" | "read_file" | "write_file" => counted("line", "lines"),
            _ if end.duration_ms >= 100 => format!(", {time}"),
            _ => String::new(),
        }
    }

    fn is_edit(&self) -> bool {
        matches!(
            self.name.as_str(),
            "edit_file" | "multi_edit" | "edit_lines" | "apply_patch" | "git_diff"
        )
    }

    fn argument_lines(&self) -> Vec<String> {
        let Ok(Value::Object(object)) = serde_json::from_str::<Value>(&self.arguments) else {
            return vec![text::line(&self.arguments)];
        };
        let mut lines = Vec::new();
        for (name, value) in object {
            // An edit shows as its diff.
            if self.is_edit() && name != "path" {
                continue;
            }
            let shown = match value {
                Value::String(text) => padding::counted(&text::escape(&text)).into_owned(),
                other => text::escape(&other.to_string()),
            };
            let mut parts = shown.lines();
            lines.push(format!(
                "{}: {}",
                text::line(&name),
                parts.next().unwrap_or_default()
            ));
            lines.extend(parts.map(|line| format!("  {line}")));
        }
        lines
    }
}

fn elapsed_ms(begun: Instant, now: Instant) -> u64 {
    // Tenths that change with each frame would only flicker.
    let ms = now.saturating_duration_since(begun).as_millis() as u64;
    ms / 1000 * 1000
}

fn bounded(text: &str) -> String {
    text[..text.floor_char_boundary(KEPT_BYTES)].to_owned()
}

fn argument(arguments: &str, names: &[&str]) -> Option<String> {
    let value = serde_json::from_str::<Value>(arguments).ok()?;
    let text = names.iter().find_map(|name| value.get(name)?.as_str())?;
    Some(text.to_owned())
}

/// Counts the lines of a diff.
fn counted(diff: &str) -> (u64, u64) {
    let mut sum = (0, 0);
    for line in diff.lines().skip(1) {
        if line.starts_with("+++") || line.starts_with("---") {
            continue;
        }
        sum.0 += u64::from(line.starts_with('+'));
        sum.1 += u64::from(line.starts_with('-'));
    }
    sum
}

/// Adds up what is said of each file: `(+3 -1 lines)`.
fn summed(result: &str) -> (u64, u64) {
    let mut sum = (0, 0);
    for line in result.lines() {
        let Some((_, counts)) = line.rsplit_once("(+") else {
            continue;
        };
        let mut numbers = counts
            .split(|c: char| !c.is_ascii_digit())
            .filter_map(|n| n.parse::<u64>().ok());
        sum.0 += numbers.next().unwrap_or_default();
        sum.1 += numbers.next().unwrap_or_default();
    }
    sum
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn shown(panel: &Panel, width: usize) -> Vec<String> {
        let lines = panel.lines(
            width,
            Theme::new(false),
            panel.begun + Duration::from_secs(8),
        );
        lines.iter().map(ToString::to_string).collect()
    }

    fn ended(name: &str, arguments: &str, status: CallStatus, result: &str) -> Panel {
        let mut panel = Panel::new("c1", name, arguments, Instant::now());
        panel.finish(status, result, 8100);
        panel
    }

    #[test]
    fn a_panel_is_a_line_with_what_matters() {
        let edited = ended(
            "edit_file",
            r#"{"path":"src/app.py","old_string":"a","new_string":"b"}"#,
            CallStatus::Ok,
            "edited src/app.py (1 place)\n@@ -1,2 +1,3 @@\n a\n-b\n+c\n+d\n",
        );
        assert_eq!(shown(&edited, 60), ["✓ edit_file src/app.py +2 −1"]);
        let failed = ended(
            "bash",
            r#"{"command":"make test"}"#,
            CallStatus::Failed,
            "no rule\n[exit code 2]",
        );
        assert_eq!(
            shown(&failed, 60),
            [
                "✗ bash make test: exit 2, 8.1 s",
                "  │ no rule",
                "  │ [exit code 2]"
            ]
        );
        let patched = ended(
            "apply_patch",
            r#"{"patch":"*** Begin"}"#,
            CallStatus::Ok,
            "edited a (+3 -1 lines)\ncreated b (+4 -0 lines)",
        );
        assert!(shown(&patched, 60)[0].ends_with("+7 −1"));
    }

    #[test]
    fn a_running_command_shows_its_last_lines_and_all_on_request() {
        let mut panel = Panel::new("c1", "bash", r#"{"command":"a\nb"}"#, Instant::now());
        panel.push_output(&(1..=9).map(|n| format!("{n}\x1b[2J\n")).collect::<String>());
        assert_eq!(
            shown(&panel, 40),
            [
                "● bash a 8.0 s",
                "  │ 5",
                "  │ 6",
                "  │ 7",
                "  │ 8",
                "  │ 9"
            ]
        );
        panel.is_open = true;
        assert_eq!(shown(&panel, 40).len(), 1 + 2 + 9);
        panel.push_output(&"x".repeat(1 << 20));
        assert!(panel.output.lines.iter().all(|line| line.len() <= LINE_MAX));
    }
}
