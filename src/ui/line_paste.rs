//! Long pastes in the editor of lines: each stands there as `[pasted 214 lines]`, and is put in its
//! place when the message is sent.
//!
//! The label is ordinary text: what the user changes of it is what they typed.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use crossterm::event::Event;
use reedline::EditCommand;
use reedline::EditMode;
use reedline::Emacs;
use reedline::PromptEditMode;
use reedline::ReedlineEvent;
use reedline::ReedlineRawEvent;

use super::tui::is_long_paste;
use super::tui::paste_label;

/// Bytes of pastes that are kept by their labels; what is pasted beyond that stands whole.
const MOST_BYTES: usize = 32 << 20;

/// The long pastes of a chat, by the labels that stand for them.
#[derive(Clone, Default)]
pub(super) struct Pastes(Arc<Mutex<Vec<Paste>>>);

struct Paste {
    label: String,
    text: String,
}

impl Pastes {
    /// Takes a paste; returns what stands for it.
    fn label(&self, text: String) -> String {
        if !is_long_paste(&text) {
            return text;
        }
        let mut pastes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = pastes.iter().find(|known| known.text == text) {
            return known.label.clone();
        }
        let kept: usize = pastes.iter().map(|paste| paste.text.len()).sum();
        if kept.saturating_add(text.len()) > MOST_BYTES {
            return text;
        }
        let first = paste_label(&text);
        let is_taken = |label: &str| pastes.iter().any(|paste| paste.label == label);
        let mut label = first.clone();
        let mut n = 1;
        while is_taken(&label) {
            n += 1;
            label = format!("{}, {n}]", first.trim_end_matches(']'));
        }
        pastes.push(Paste {
            label: label.clone(),
            text,
        });
        label
    }

    /// Returns a message with its pastes in full.
    pub(super) fn whole(&self, message: &str) -> String {
        let pastes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut out, mut rest) = (String::new(), message);
        while let Some((at, paste)) = pastes
            .iter()
            .filter_map(|paste| Some((rest.find(&paste.label)?, paste)))
            .min_by_key(|(at, _)| *at)
        {
            out.push_str(&rest[..at]);
            out.push_str(&paste.text);
            rest = &rest[at + paste.label.len()..];
        }
        out.push_str(rest);
        out
    }
}

/// The keys of Emacs, with long pastes as labels. Those of vi change their mode through a method
/// that a wrapper cannot pass on.
pub(super) struct WithLabels {
    inner: Emacs,
    pastes: Pastes,
}

impl WithLabels {
    pub(super) fn new(inner: Emacs, pastes: Pastes) -> Self {
        Self { inner, pastes }
    }
}

impl EditMode for WithLabels {
    fn parse_event(&mut self, event: ReedlineRawEvent) -> ReedlineEvent {
        match Event::from(event) {
            Event::Paste(text) => {
                let text = text.replace("\r\n", "\n").replace('\r', "\n");
                let label = self.pastes.label(text);
                ReedlineEvent::Edit(vec![EditCommand::InsertString(label)])
            }
            other => match ReedlineRawEvent::try_from(other) {
                Ok(event) => self.inner.parse_event(event),
                Err(()) => ReedlineEvent::None,
            },
        }
    }

    fn edit_mode(&self) -> PromptEditMode {
        self.inner.edit_mode()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pasted(mode: &mut WithLabels, text: &str) -> String {
        let event = ReedlineRawEvent::try_from(Event::Paste(text.to_owned())).expect("an event");
        match mode.parse_event(event) {
            ReedlineEvent::Edit(edits) => match edits.as_slice() {
                [EditCommand::InsertString(text)] => text.clone(),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_long_paste_stands_as_how_much_it_is_and_is_sent_whole() {
        let pastes = Pastes::default();
        let mut mode = WithLabels::new(Emacs::default(), pastes.clone());
        let long: String = (0..214).map(|n| format!("line {n}\r\n")).collect();
        let other: String = (0..214)
            .map(|n| format!("[pasted 214 lines] {n}\n"))
            .collect();
        assert_eq!(pasted(&mut mode, &long), "[pasted 214 lines]");
        assert_eq!(pasted(&mut mode, &other), "[pasted 214 lines, 2]");
        assert_eq!(pasted(&mut mode, &long), "[pasted 214 lines]", "again");
        assert_eq!(pasted(&mut mode, "two\rlines"), "two\nlines");
        let long = long.replace("\r\n", "\n");
        assert_eq!(
            pastes.whole("see [pasted 214 lines, 2] and [pasted 214 lines]."),
            format!("see {other} and {long}.")
        );
        assert_eq!(pastes.whole("[pasted 213 lines]"), "[pasted 213 lines]");
        assert_eq!(pasted(&mut mode, &"x".repeat(MOST_BYTES)).len(), MOST_BYTES);
    }
}
