//! Messages that a user typed while the model was at work.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

/// A message that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedMessage {
    /// As it was typed.
    pub text: String,
    /// Whether the model may read it in the middle of a task. Commands of the chat wait for its end.
    pub joins_task: bool,
}

/// What waits, the oldest first; clones share it. A face adds to it and shows it, and the agent
/// takes from it between two requests.
#[derive(Clone, Debug, Default)]
pub struct MessageQueue(Arc<Mutex<VecDeque<QueuedMessage>>>);

impl MessageQueue {
    pub fn push(&self, message: QueuedMessage) {
        self.queue().push_back(message);
    }

    /// Adds a message that goes before all others.
    pub fn push_first(&self, message: QueuedMessage) {
        self.queue().push_front(message);
    }

    pub fn take_oldest(&self) -> Option<QueuedMessage> {
        self.queue().pop_front()
    }

    pub fn take_newest(&self) -> Option<QueuedMessage> {
        self.queue().pop_back()
    }

    /// Takes the texts of all messages.
    pub fn take_all(&self) -> Vec<String> {
        self.queue().drain(..).map(|message| message.text).collect()
    }

    /// Takes the oldest message if it may join the task: none overtakes another.
    pub fn take_for_task(&self) -> Option<QueuedMessage> {
        self.queue().pop_front_if(|message| message.joins_task)
    }

    /// Returns the oldest messages, at most so many, and how many there are.
    pub fn peek(&self, n_most: usize) -> (Vec<QueuedMessage>, usize) {
        let queue = self.queue();
        (queue.iter().take(n_most).cloned().collect(), queue.len())
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<QueuedMessage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str, joins_task: bool) -> QueuedMessage {
        QueuedMessage {
            text: text.to_owned(),
            joins_task,
        }
    }

    #[test]
    fn a_task_takes_the_oldest_and_nothing_behind_a_command() {
        let queue = MessageQueue::default();
        queue.push(message("also the docs", true));
        queue.push(message("/undo", false));
        queue.push(message("go on", true));
        let taken = || queue.take_for_task().map(|message| message.text);
        assert_eq!(taken().as_deref(), Some("also the docs"));
        assert_eq!(taken(), None);
        let (first, n) = queue.peek(1);
        assert_eq!((first[0].text.as_str(), n), ("/undo", 2));
        let oldest = queue.take_oldest().expect("it is there");
        assert_eq!(oldest.text, "/undo");
        assert_eq!(taken().as_deref(), Some("go on"));
    }
}
