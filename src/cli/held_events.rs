//! Events of the time in which a command has the terminal to itself: they are shown behind it.

use std::sync::Arc;
use std::sync::Mutex;

use podbay_event::Event;
use podbay_event::Sink;

/// What is held at most; a command can do much.
const MOST: usize = 1000;

/// A way for events that can be closed for a while.
#[derive(Clone)]
pub(super) struct HeldEvents {
    held: Arc<Mutex<Option<Vec<Event>>>>,
    sink: Sink,
}

impl HeldEvents {
    pub(super) fn new(sink: Sink) -> Self {
        Self {
            held: Arc::default(),
            sink,
        }
    }

    pub(super) fn sink(&self) -> Sink {
        let events = self.clone();
        Arc::new(move |event| {
            let mut held = events
                .held
                .lock()
                .expect("nothing panics while it holds this lock");
            match held.as_mut() {
                Some(held) if held.len() < MOST => held.push(event),
                Some(_) => {}
                None => {
                    drop(held);
                    (events.sink)(event);
                }
            }
        })
    }

    /// Holds what comes from now on.
    pub(super) fn hold(&self) {
        *self
            .held
            .lock()
            .expect("nothing panics while it holds this lock") = Some(Vec::new());
    }

    /// Lets what was held go, and what comes pass.
    pub(super) fn release(&self) {
        let held = self
            .held
            .lock()
            .expect("nothing panics while it holds this lock")
            .take();
        held.into_iter()
            .flatten()
            .for_each(|event| (self.sink)(event));
    }
}

#[cfg(test)]
mod tests {
    use podbay_event::Kind;

    use super::*;

    #[test]
    fn what_comes_meanwhile_is_told_in_its_order_once_it_is_released() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let events = HeldEvents::new({
            let told = Arc::clone(&told);
            Arc::new(move |event: Event| told.lock().expect("no panic").push(event.kind))
        });
        let sink = events.sink();
        let warn = |message: &str| {
            let message = message.to_owned();
            sink(Kind::Warning { message }.into());
        };
        warn("a");
        events.hold();
        warn("b");
        warn("c");
        assert_eq!(told.lock().expect("no panic").len(), 1);
        events.release();
        warn("d");
        let words: Vec<String> = told
            .lock()
            .expect("no panic")
            .iter()
            .map(|kind| match kind {
                Kind::Warning { message } => message.clone(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(words, ["a", "b", "c", "d"]);
    }
}
