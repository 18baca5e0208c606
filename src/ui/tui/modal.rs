//! What waits for an answer: a permission, a question of the model's, a choice of ours.
//!
//! A key answers only once the question could be read and the user has stopped typing something
//! else; until then keys go where they went before.

use std::time::Duration;
use std::time::Instant;

use crossterm::event::KeyCode;
use crossterm::event::KeyEvent;
use crossterm::event::KeyModifiers;
use ratatui::text::Line;
use tokio::sync::oneshot;

use podbay_event::Answer;
use podbay_event::Answered;

use super::editor::Editor;
use super::theme::Theme;
use super::theme::span;
use super::wrap;
use crate::Paint;
use crate::Question;
use crate::text;

/// How long a question is on the screen, and how long no key was pressed, before a key counts.
const GUARD: Duration = Duration::from_millis(400);

/// The answer to a question of the model's that the user called off.
pub const CANCELLED: &str = "[User cancelled the question]";

/// Most characters of a reason.
const REASON_MAX: usize = 2000;

pub(super) enum Ask {
    Permission {
        question: Box<Question>,
        answer: oneshot::Sender<Answered>,
    },
    Pick {
        question: String,
        options: Vec<String>,
        answer: oneshot::Sender<Option<String>>,
    },
    /// One of these keys, each with what it means.
    Choice {
        question: String,
        choices: Vec<(char, String)>,
        answer: oneshot::Sender<char>,
    },
}

pub(super) struct Modal {
    ask: Option<Ask>,
    /// When it was first drawn.
    pub(super) shown: Option<Instant>,
    /// Which option is chosen.
    at: usize,
    pub(super) scroll: usize,
    is_open: bool,
    is_armed: bool,
    /// The reason for a no, or an answer of the user's own.
    words: Option<Editor>,
}

/// What a key did.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// It was not for the question.
    Ignored,
    Taken,
    /// It is answered.
    Answered,
    /// It is answered, and the turn is to end.
    AnsweredAndStop,
}

impl Modal {
    pub(super) fn new(ask: Ask) -> Self {
        Self {
            ask: Some(ask),
            shown: None,
            at: 0,
            scroll: 0,
            is_open: false,
            is_armed: false,
            words: None,
        }
    }

    /// Returns whether nobody waits for the answer any longer.
    pub(super) fn is_withdrawn(&self) -> bool {
        match &self.ask {
            Some(Ask::Permission { answer, .. }) => answer.is_closed(),
            Some(Ask::Pick { answer, .. }) => answer.is_closed(),
            Some(Ask::Choice { answer, .. }) => answer.is_closed(),
            None => true,
        }
    }

    /// Returns whether a key is an answer by now; `typed` is when the last one was pressed.
    pub(super) fn is_armed(&mut self, typed: Option<Instant>, now: Instant) -> bool {
        let is_past = |then: Instant| now.saturating_duration_since(then) >= GUARD;
        // From the first key that counted on, all do.
        self.is_armed |= typed.is_none_or(is_past) && self.shown.is_some_and(is_past);
        self.is_armed
    }

    pub(super) fn paste(&mut self, text: &str) -> bool {
        match &mut self.words {
            Some(words) => {
                words.insert(text);
                true
            }
            None => false,
        }
    }

    pub(super) fn key(&mut self, key: KeyEvent) -> Came {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control && key.code == KeyCode::Char('c') {
            self.deny();
            return Came::AnsweredAndStop;
        }
        if self.words.is_some() {
            return self.word_key(key);
        }
        match (&self.ask, key.code) {
            (_, KeyCode::PageUp) => self.scroll = self.scroll.saturating_sub(5),
            (_, KeyCode::PageDown) => self.scroll += 5,
            (Some(Ask::Pick { options, .. }), code) => {
                let n = options.len() + 1;
                match code {
                    KeyCode::Up => self.at = (self.at + n - 1) % n,
                    KeyCode::Down | KeyCode::Tab => self.at = (self.at + 1) % n,
                    KeyCode::Enter => return self.pick(self.at),
                    KeyCode::Esc => {
                        self.cancel_pick();
                        return Came::Answered;
                    }
                    KeyCode::Char(c) => match c.to_digit(10) {
                        Some(digit @ 1..) if (digit as usize) <= n => {
                            return self.pick(digit as usize - 1);
                        }
                        _ => return Came::Ignored,
                    },
                    _ => return Came::Ignored,
                }
            }
            (Some(Ask::Choice { choices, .. }), code) => {
                let key = match code {
                    KeyCode::Char(c) => c.to_ascii_lowercase(),
                    // What is named first is what happens where nothing is said.
                    KeyCode::Enter | KeyCode::Esc => choices.first().map_or(' ', |(key, _)| *key),
                    _ => return Came::Ignored,
                };
                if !choices.iter().any(|(known, _)| *known == key) {
                    return Came::Ignored;
                }
                if let Some(Ask::Choice { answer, .. }) = self.ask.take() {
                    let _ = answer.send(key);
                }
                return Came::Answered;
            }
            (Some(Ask::Permission { question, .. }), code) => {
                let answer = match code {
                    KeyCode::Char('e') => {
                        self.is_open = !self.is_open;
                        return Came::Taken;
                    }
                    KeyCode::Char('w') => {
                        self.words = Some(Editor::default());
                        return Came::Taken;
                    }
                    KeyCode::Char('y') => Answer::Allow,
                    KeyCode::Char('a') if question.may_last() => Answer::AllowSession,
                    KeyCode::Char('s') if question.may_cover_edits() => Answer::AllowEdits,
                    KeyCode::Char('p') if question.may_be_kept() => Answer::AllowAlways,
                    KeyCode::Char('n') | KeyCode::Esc => {
                        self.deny();
                        return Came::AnsweredAndStop;
                    }
                    KeyCode::Char('d') if !question.is_in_call() => Answer::DenySession,
                    KeyCode::Char('q') => Answer::Quit,
                    _ => return Came::Ignored,
                };
                self.answer(answer.into());
                return Came::Answered;
            }
            (None, _) => return Came::Ignored,
        }
        Came::Taken
    }

    /// A key of the reason, or of an answer in the user's own words.
    fn word_key(&mut self, key: KeyEvent) -> Came {
        let Some(words) = &mut self.words else {
            return Came::Ignored;
        };
        match key.code {
            KeyCode::Esc => self.words = None,
            KeyCode::Enter => {
                let said: String = words.whole().trim().chars().take(REASON_MAX).collect();
                if said.is_empty() {
                    return Came::Taken;
                }
                match self.ask.take() {
                    Some(Ask::Permission { answer, .. }) => {
                        let _ = answer.send(Answered {
                            answer: Answer::Deny,
                            reason: Some(said),
                        });
                    }
                    Some(Ask::Pick { answer, .. }) => {
                        let _ = answer.send(Some(said));
                    }
                    other => self.ask = other,
                }
                return Came::Answered;
            }
            KeyCode::Backspace => words.backspace(),
            KeyCode::Left => words.left(),
            KeyCode::Right => words.right(),
            KeyCode::Char(c) => words.insert(&c.to_string()),
            _ => {}
        }
        Came::Taken
    }

    fn pick(&mut self, at: usize) -> Came {
        let Some(Ask::Pick { options, .. }) = &self.ask else {
            return Came::Ignored;
        };
        let Some(chosen) = options.get(at).cloned() else {
            self.words = Some(Editor::default());
            return Came::Taken;
        };
        if let Some(Ask::Pick { answer, .. }) = self.ask.take() {
            let _ = answer.send(Some(chosen));
        }
        Came::Answered
    }

    fn cancel_pick(&mut self) {
        if let Some(Ask::Pick { answer, .. }) = self.ask.take() {
            let _ = answer.send(Some(CANCELLED.to_owned()));
        }
    }

    fn answer(&mut self, answered: Answered) {
        if let Some(Ask::Permission { answer, .. }) = self.ask.take() {
            let _ = answer.send(answered);
        }
    }

    fn deny(&mut self) {
        match self.ask.take() {
            Some(Ask::Permission { answer, .. }) => {
                let _ = answer.send(Answer::Deny.into());
            }
            Some(Ask::Pick { answer, .. }) => {
                let _ = answer.send(Some(CANCELLED.to_owned()));
            }
            // Dropped, it has no answer.
            Some(Ask::Choice { .. }) | None => {}
        }
    }

    /// Returns its lines, at most `room` of them, and where the cursor is.
    pub(super) fn lines(
        &mut self,
        width: usize,
        room: usize,
        theme: Theme,
    ) -> (Vec<Line<'static>>, Option<(usize, usize)>) {
        let mut body: Vec<Line<'static>> = Vec::new();
        let mut foot: Vec<Line<'static>> = Vec::new();
        let put = |out: &mut Vec<Line<'static>>, words: &str, style| {
            for line in words.lines() {
                out.extend(wrap::wrap(&[span(line, style)], width));
            }
        };
        match &self.ask {
            Some(Ask::Permission { question, .. }) => {
                put(&mut body, &question.render(Paint::NONE), theme.plain());
                if let Some(first) = body.first_mut() {
                    *first = first.clone().style(theme.bold());
                }
                if self.words.is_none() {
                    put(&mut foot, &question.keys(), theme.accent());
                }
            }
            Some(Ask::Pick {
                question, options, ..
            }) => {
                put(&mut body, "The agent asks:", theme.bold());
                put(&mut body, &text::escape(question), theme.plain());
                if self.words.is_none() {
                    let other = "Other: in your own words".to_owned();
                    for (n, option) in options.iter().chain([&other]).enumerate() {
                        let style = if n == self.at {
                            theme.chosen()
                        } else {
                            theme.plain()
                        };
                        let mark = if n == self.at { "›" } else { " " };
                        let words = format!("{mark} {}. {}", n + 1, text::line(option));
                        put(&mut foot, &words, style);
                    }
                    put(
                        &mut foot,
                        "↑ ↓ Enter, or a number; Esc cancels",
                        theme.dim(),
                    );
                }
            }
            Some(Ask::Choice {
                question, choices, ..
            }) => {
                put(&mut body, &text::clean(question), theme.bold());
                for (key, meaning) in choices {
                    put(&mut foot, &format!("{key}  {meaning}"), theme.accent());
                }
            }
            None => {}
        }
        // On a small terminal what is asked goes before what each key means in full.
        let least = body.len().min(room / 2);
        if let Some(Ask::Permission { question, .. }) = &self.ask
            && self.words.is_none()
            && room.saturating_sub(foot.len()) < least
        {
            foot.clear();
            put(&mut foot, &question.short_keys(), theme.accent());
        }
        let mut cursor = None;
        if let Some(words) = &self.words {
            let label = match self.ask {
                Some(Ask::Permission { .. }) => "No, because: ",
                _ => "Your answer: ",
            };
            let before = format!("{label}{}", &words.text()[..words.cursor()]);
            let all = format!("{label}{}", words.text());
            foot.extend(wrap::fold(&[span(&all, theme.plain())], width));
            let column = wrap::width(&before);
            cursor = Some((column % width.max(1), column / width.max(1)));
        }
        let n_foot = foot.len().min(room);
        let n_body = room - n_foot;
        let first_foot = n_body.min(body.len());
        let body = self.folded(body, n_body, theme);
        let cursor = cursor.map(|(x, y)| (x, body.len().min(first_foot) + y));
        let mut lines = body;
        lines.extend(foot.into_iter().take(n_foot));
        (lines, cursor)
    }

    /// Shows head and tail, or a page of all of it.
    fn folded(
        &mut self,
        mut body: Vec<Line<'static>>,
        room: usize,
        theme: Theme,
    ) -> Vec<Line<'static>> {
        if body.len() <= room || room == 0 {
            self.scroll = 0;
            body.truncate(room);
            return body;
        }
        if self.is_open {
            self.scroll = self.scroll.min(body.len() - room);
            let mut page: Vec<Line<'static>> =
                body.drain(self.scroll..self.scroll + room).collect();
            if let Some(last) = page.last_mut() {
                *last = Line::from(span("… PageUp, PageDown; e folds it", theme.dim()));
            }
            return page;
        }
        let n_head = room.saturating_sub(1).div_ceil(2);
        let n_tail = room.saturating_sub(1) - n_head;
        let hidden = body.len() - n_head - n_tail;
        let tail = body.split_off(body.len() - n_tail);
        body.truncate(n_head);
        body.push(Line::from(span(
            &format!("… {hidden} more lines; e shows them"),
            theme.warn(),
        )));
        body.extend(tail);
        body
    }
}
