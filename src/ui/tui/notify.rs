//! A word to whoever looks elsewhere: a long turn is over, or waits for an answer.

use std::time::Duration;
use std::time::Instant;

use super::screen::Screen;

/// Turns that took less are waited for.
const LONG: Duration = Duration::from_secs(30);

impl Screen {
    pub(super) fn has_modal(&self) -> bool {
        !self.modals.is_empty() || self.over.is_some()
    }

    pub(super) fn set_focus(&mut self, has_focus: bool) {
        self.has_focus = Some(has_focus);
    }

    pub(super) fn set_text(&mut self, text: &str) {
        self.editor.set(text);
        self.popup = None;
    }

    /// Notes that a turn which began then is over.
    pub(super) fn turn_is_over(&mut self, begun: Instant, now: Instant) {
        // A terminal that says nothing of it may well be out of sight.
        let is_looked_at = self.has_focus == Some(true);
        if now.saturating_duration_since(begun) >= LONG && !is_looked_at {
            self.notification = Some("podbay: the turn is over");
        }
    }

    /// Returns what is to be said outside of the screen, once.
    pub(super) fn take_notification(&mut self) -> Option<&'static str> {
        self.notification.take()
    }
}
