//! What a session has learnt: the model is asked once, at its end, for notes that later sessions
//! could need. They are proposals, which the user keeps or leaves.

use std::time::Duration;

use async_recursion::async_recursion as boxed;

use super::Agent;
use super::Interrupt;
use super::window_gauge::ASSUMED_WINDOW;
use podbay_event::Memory;
use podbay_event::Usage;
use podbay_llm::Message;
use podbay_llm::Request;

/// Most notes of one session, and most tokens of the answer.
const MOST: usize = 3;
const MAX_TOKENS: u64 = 800;

const ASK: &str = "The session ends now. Which facts should a later session in this project know that its files do not say and that were hard to find \
                   out, such as how it is built, what the user said about the work, or where something is documented? Answer with a JSON array and \
                   nothing else, of at most 3 objects with \"name\" (lower-case letters and hyphens), \"kind\" (user, feedback, project or reference), \
                   \"description\" (one line) and \"content\" (at most 500 letters). Answer [] where there is nothing.";

impl Agent {
    /// Asks the model what is worth keeping. Nothing of it is added to the conversation; a failure
    /// is no one's loss.
    #[boxed]
    pub async fn ask_what_was_learnt(
        &mut self,
        within: Duration,
        interrupt: &Interrupt,
    ) -> (Vec<Memory>, Usage) {
        let mut usage = Usage::default();
        let (used, window) = self.fullness(interrupt).await;
        let window = window.unwrap_or(ASSUMED_WINDOW);
        if used.saturating_add(MAX_TOKENS).saturating_add(300) >= window {
            return (Vec::new(), usage);
        }
        let mut asked = self.conversation.prompt().clone();
        asked.push(&Message::user(ASK));
        let request = Request {
            no_tools: true,
            held: self.quirks.is_held,
            was_held: self.quirks.was_held,
            max_tokens: Some(MAX_TOKENS),
            ..Request::default()
        };
        let cancel = interrupt.step();
        let outcome = self
            .client
            .stream(&asked, &request, &mut |_| {}, &cancel, within)
            .await;
        interrupt.idle();
        match outcome {
            Ok(reply) => {
                usage += self.usage_of(&asked, &reply);
                (notes(&reply.text), usage)
            }
            Err(error) => {
                tracing::debug!(%error, "the model could not say what is worth keeping");
                if let Some(partial) = error.partial() {
                    usage += self.usage_of(&asked, partial);
                }
                (Vec::new(), usage)
            }
        }
    }
}

/// Reads the notes of an answer, also where other words stand around the array. What is no note is
/// left out.
fn notes(answer: &str) -> Vec<Memory> {
    let array = answer.find('[').zip(answer.rfind(']'));
    let array = array.and_then(|(begin, end)| answer.get(begin..=end));
    let values: Vec<serde_json::Value> = array
        .and_then(|array| serde_json::from_str(array).ok())
        .unwrap_or_default();
    let notes = values.into_iter();
    let notes = notes.filter_map(|value| serde_json::from_value(value).ok());
    notes.take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_from_an_answer_and_all_else_is_none() {
        let note = |name: &str| {
            format!(
                r#"{{"name": "{name}", "kind": "project", "description": "d", "content": "c"}}"#
            )
        };
        let of = |answer: &str| -> Vec<String> {
            notes(answer).into_iter().map(|note| note.name).collect()
        };
        assert_eq!(of(&format!("[{}]", note("a"))), ["a"]);
        let around = format!("Here:\n```json\n[{}, 3, {{}}]\n```", note("a"));
        assert_eq!(of(&around), ["a"]);
        let many: Vec<String> = (0..9).map(|n| note(&format!("n{n}"))).collect();
        assert_eq!(of(&format!("[{}]", many.join(","))).len(), MOST);
        for answer in ["", "[]", "nothing", "][", "[[[", "{\"name\": \"a\"}"] {
            assert_eq!(of(answer), Vec::<String>::new(), "{answer}");
        }
    }
}
