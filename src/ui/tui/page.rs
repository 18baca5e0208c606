//! What has the whole screen for a while, in the place of the chat.

use crossterm::event::KeyEvent;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use tokio::sync::oneshot;

use super::review::Review;
use super::review::ReviewChoice;
use super::start::Answer;
use super::start::Start;
use super::start::StartChoice;
use super::theme::Theme;

pub(super) enum Page {
    Review {
        review: Box<Review>,
        answer: oneshot::Sender<ReviewChoice>,
    },
    Start {
        start: Box<Start>,
        answer: oneshot::Sender<Option<StartChoice>>,
    },
}

impl Page {
    /// Returns whether the answer is not waited for any longer.
    pub(super) fn is_withdrawn(&self) -> bool {
        match self {
            Self::Review { answer, .. } => answer.is_closed(),
            Self::Start { answer, .. } => answer.is_closed(),
        }
    }

    /// Takes a key; returns the page unless it is answered now.
    pub(super) fn key(self, key: KeyEvent) -> Option<Self> {
        match self {
            Self::Review { mut review, answer } => match review.key(key) {
                Some(choice) => {
                    let _ = answer.send(choice);
                    None
                }
                None => Some(Self::Review { review, answer }),
            },
            Self::Start { mut start, answer } => {
                let choice = match start.key(key) {
                    Answer::Open => return Some(Self::Start { start, answer }),
                    Answer::Later => None,
                    Answer::Chosen(choice) => Some(choice),
                };
                let _ = answer.send(choice);
                None
            }
        }
    }

    pub(super) fn paste(&mut self, text: &str) {
        if let Self::Start { start, .. } = self {
            start.paste(text);
        }
    }

    pub(super) fn draw(&mut self, frame: &mut Frame<'_>, theme: Theme) {
        let area = frame.area();
        let (width, height) = (usize::from(area.width), usize::from(area.height));
        if width == 0 || height == 0 {
            return;
        }
        let lines = match self {
            Self::Review { review, .. } => review.lines(width, height, theme),
            Self::Start { start, .. } => start.lines(width, height, theme),
        };
        for (row, line) in lines.iter().take(height).enumerate() {
            put(frame, line, row as u16);
        }
    }
}

fn put(frame: &mut Frame<'_>, line: &Line<'static>, row: u16) {
    let area = frame.area();
    frame
        .buffer_mut()
        .set_line(area.x, area.y + row, line, area.width);
    if line.style != ratatui::style::Style::default() {
        let row = Rect::new(area.x, area.y + row, area.width, 1);
        frame.buffer_mut().set_style(row, line.style);
    }
}
