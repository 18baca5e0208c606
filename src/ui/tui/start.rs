//! The first start: which model answers, and how much the agent decides by itself.

use crossterm::event::KeyCode;
use crossterm::event::KeyEvent;
use crossterm::event::KeyModifiers;
use ratatui::text::Line;

use super::editor::Editor;
use super::theme::Theme;
use super::theme::span;
use super::wrap;
use crate::text;

/// What can be chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StartView {
    pub models: Vec<StartOption>,
    pub freedoms: Vec<StartOption>,
    /// The file that the answers go into.
    pub file: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StartOption {
    pub title: String,
    pub detail: String,
    /// The user has to name the model.
    pub asks_for_model: bool,
}

/// What was chosen: the options by their numbers, from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartChoice {
    pub model: Option<usize>,
    /// The name of the model, where it was asked for.
    pub name: String,
    pub freedom: usize,
}

/// What a key came to.
pub(super) enum Answer {
    /// Something is still to be answered.
    Open,
    /// Nothing is to be set.
    Later,
    Chosen(StartChoice),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Model,
    Name,
    Freedom,
}

pub(super) struct Start {
    view: StartView,
    step: Step,
    model: usize,
    freedom: usize,
    name: Editor,
}

impl Start {
    pub(super) fn new(view: StartView) -> Self {
        let step = if view.models.is_empty() {
            Step::Freedom
        } else {
            Step::Model
        };
        Self {
            view,
            step,
            model: 0,
            freedom: 0,
            name: Editor::default(),
        }
    }

    fn asks_for_name(&self) -> bool {
        self.view
            .models
            .get(self.model)
            .is_some_and(|model| model.asks_for_model)
    }

    pub(super) fn paste(&mut self, words: &str) {
        if self.step == Step::Name {
            self.name.insert(words.trim());
        }
    }

    pub(super) fn key(&mut self, key: KeyEvent) -> Answer {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control && matches!(key.code, KeyCode::Char('c' | 'd')) {
            return Answer::Later;
        }
        match key.code {
            KeyCode::Esc => return Answer::Later,
            KeyCode::BackTab => self.back(),
            KeyCode::Enter | KeyCode::Tab => return self.forth(),
            _ if self.step == Step::Name => self.name_key(key),
            KeyCode::Up | KeyCode::Char('k') => self.choose(|at, _| at.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.choose(|at, last| (at + 1).min(last)),
            KeyCode::Char(digit @ '1'..='9') => {
                let n = digit as usize - '1' as usize;
                self.choose(|at, last| if n <= last { n } else { at });
            }
            _ => {}
        }
        Answer::Open
    }

    fn name_key(&mut self, key: KeyEvent) {
        match key.code {
            KeyCode::Backspace => self.name.backspace(),
            KeyCode::Left => self.name.left(),
            KeyCode::Right => self.name.right(),
            KeyCode::Char(c) => self.name.insert(&c.to_string()),
            _ => {}
        }
    }

    fn choose(&mut self, next: impl Fn(usize, usize) -> usize) {
        let (at, all) = match self.step {
            Step::Model | Step::Name => (&mut self.model, &self.view.models),
            Step::Freedom => (&mut self.freedom, &self.view.freedoms),
        };
        *at = next(*at, all.len().saturating_sub(1));
    }

    fn back(&mut self) {
        self.step = match self.step {
            Step::Freedom if self.asks_for_name() => Step::Name,
            Step::Freedom if self.view.models.is_empty() => Step::Freedom,
            _ => Step::Model,
        };
    }

    fn forth(&mut self) -> Answer {
        match self.step {
            Step::Model if self.asks_for_name() => self.step = Step::Name,
            // Without a name the service would answer with any model.
            Step::Name if self.name.text().trim().is_empty() => {}
            Step::Model | Step::Name => self.step = Step::Freedom,
            Step::Freedom => {
                return Answer::Chosen(StartChoice {
                    model: (!self.view.models.is_empty()).then_some(self.model),
                    name: self.name.text().trim().to_owned(),
                    freedom: self.freedom,
                });
            }
        }
        Answer::Open
    }

    pub(super) fn lines(&self, width: usize, height: usize, theme: Theme) -> Vec<Line<'static>> {
        let is_small = height < 20;
        let mut lines = Vec::new();
        let put = |lines: &mut Vec<Line<'static>>, words: &str, style| {
            lines.extend(wrap::wrap(&[span(words, style)], width));
        };
        put(
            &mut lines,
            "Podbay: two questions before the first chat",
            theme.bold(),
        );
        let is_first = self.step != Step::Freedom;
        // A small screen shows the question that is being answered.
        if !is_small || is_first {
            lines.push(Line::default());
            put(&mut lines, "Which model answers?", theme.accent());
            options(
                &self.view.models,
                self.model,
                is_first,
                width,
                is_small,
                theme,
                &mut lines,
            );
            if self.step == Step::Name {
                let words = format!("Name of the model: {}▏", self.name.text());
                put(&mut lines, &words, theme.plain());
            }
        }
        if !is_small || !is_first {
            lines.push(Line::default());
            put(
                &mut lines,
                "How much does the agent decide by itself?",
                theme.accent(),
            );
            options(
                &self.view.freedoms,
                self.freedom,
                !is_first,
                width,
                is_small,
                theme,
                &mut lines,
            );
        }
        let mut foot = Vec::new();
        if !is_small {
            foot.push(Line::default());
            let words = format!(
                "The answers go into {}; `podbay config edit` changes them.",
                text::line(&self.view.file)
            );
            put(&mut foot, &words, theme.dim());
        }
        let keys = if is_first {
            "↑ ↓ or a number · Enter next · Esc decides later"
        } else {
            "↑ ↓ or a number · Enter begins · Shift-Tab back · Esc decides later"
        };
        put(&mut foot, keys, theme.dim());
        lines.truncate(height.saturating_sub(foot.len()));
        lines.extend(foot);
        lines
    }
}

/// Draws a list, of which one is chosen.
fn options(
    options: &[StartOption],
    at: usize,
    is_asked: bool,
    width: usize,
    is_small: bool,
    theme: Theme,
    lines: &mut Vec<Line<'static>>,
) {
    for (n, option) in options.iter().enumerate() {
        let is_chosen = n == at;
        let style = if is_chosen && is_asked {
            theme.chosen()
        } else if is_chosen {
            theme.bold()
        } else {
            theme.plain()
        };
        let pointer = if is_chosen { "›" } else { " " };
        let words = format!("{pointer} {}. {}", n + 1, text::line(&option.title));
        lines.push(Line::from(span(&wrap::cut(&words, width), style)));
        if !is_small || is_chosen {
            for line in wrap::wrap(
                &[span(&text::line(&option.detail), theme.dim())],
                width.saturating_sub(5),
            ) {
                let mut spans = vec![span("     ", theme.plain())];
                spans.extend(line.spans);
                lines.push(Line::from(spans));
            }
        }
    }
}
