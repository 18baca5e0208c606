//! What the screen is told, in order. Text that streams is added to the last piece, as long as the
//! screen has not taken that: a screen that is slower than a stream has one piece waiting, and not
//! one for each token.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use crossbeam_channel::Sender;
use podbay_event::Event;
use podbay_event::Kind;

use super::screen::Told;

/// The end of the queue that others write to.
pub(super) struct Inbox {
    told: Sender<Told>,
    /// The last entry of the queue, where that is text.
    last: Mutex<Option<Arc<StreamedText>>>,
}

/// Text of an answer, or of what the model thinks.
pub(super) struct StreamedText {
    is_thinking: bool,
    /// `None`: it was taken.
    text: Mutex<Option<String>>,
}

impl Inbox {
    pub(super) fn new(told: Sender<Told>) -> Self {
        Self {
            told,
            last: Mutex::new(None),
        }
    }

    pub(super) fn tell(&self, told: Told) {
        // Held until it is in the queue: what streams afterwards comes behind it.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = None;
        // A screen that is gone shows nothing.
        let _ = self.told.send(told);
    }

    pub(super) fn event(&self, event: Event) {
        let (is_thinking, text) = match event.kind {
            Kind::TextDelta { text } => (false, text),
            Kind::ThinkingDelta { text } => (true, text),
            kind => return self.tell(Told::Event(Box::new(Event { kind, ..event }))),
        };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_added = last
            .as_ref()
            .is_some_and(|last| last.is_thinking == is_thinking && last.add(&text));
        if !is_added {
            let streamed = Arc::new(StreamedText {
                is_thinking,
                text: Mutex::new(Some(text)),
            });
            *last = Some(Arc::clone(&streamed));
            let _ = self.told.send(Told::Streamed(streamed));
        }
    }
}

impl StreamedText {
    /// Returns whether there was still time for it.
    fn add(&self, more: &str) -> bool {
        let mut text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        text.as_mut().map(|text| text.push_str(more)).is_some()
    }

    pub(super) fn take(&self) -> Kind {
        let mut text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        let text = text.take().unwrap_or_default();
        if self.is_thinking {
            Kind::ThinkingDelta { text }
        } else {
            Kind::TextDelta { text }
        }
    }
}

#[cfg(test)]
mod tests {
    use crossbeam_channel::Receiver;
    use crossbeam_channel::unbounded;

    use super::*;

    fn shown(told: &Receiver<Told>) -> Vec<String> {
        told.try_iter()
            .map(|told| match told {
                Told::Streamed(text) => match text.take() {
                    Kind::TextDelta { text } => format!("text {text}"),
                    Kind::ThinkingDelta { text } => format!("thinking {text}"),
                    _ => unreachable!("text is text"),
                },
                Told::Note(_, words) => format!("note {words}"),
                _ => "another".to_owned(),
            })
            .collect()
    }

    #[test]
    fn what_streams_waits_as_one_piece_and_nothing_changes_its_place() {
        let (tell, told) = unbounded();
        let inbox = Inbox::new(tell);
        let text = |text: &str| inbox.event(Kind::TextDelta { text: text.into() }.into());
        for letter in ["a", "b", "c"] {
            text(letter);
        }
        inbox.event(Kind::ThinkingDelta { text: "d".into() }.into());
        text("e");
        inbox.tell(Told::Note(crate::note::Tone::Plain, "f".to_owned()));
        text("g");
        text("h");
        assert_eq!(told.len(), 5);
        assert_eq!(
            shown(&told),
            ["text abc", "thinking d", "text e", "note f", "text gh"]
        );
        // What was taken is not added to.
        text("i");
        assert_eq!(shown(&told), ["text i"]);
        text("j");
        text("k");
        assert_eq!(shown(&told), ["text jk"]);
    }
}
