use std::collections::HashMap;
use std::sync::Mutex;

use podbay_event::Event;
use podbay_event::Kind;
use podbay_event::Secret;
use podbay_event::json_line;

/// Blots out the API key in what leaves for those who watch: a model may repeat what it was told.
///
/// A stream comes in pieces, and a key may stand in two of them. So the end of a piece that could
/// be the beginning of the key waits for the next one, or for the end of the stream.
#[derive(Debug)]
pub(super) struct Veil {
    key: Option<Secret>,
    /// What waits, by the stream that it belongs to.
    held: Mutex<HashMap<Stream, String>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Stream {
    Text,
    Thinking,
    Output(String),
}

impl Stream {
    fn piece(&self, text: String) -> Kind {
        match self {
            Self::Text => Kind::TextDelta { text },
            Self::Thinking => Kind::ThinkingDelta { text },
            Self::Output(call) => Kind::CallOutput {
                call: call.clone(),
                text,
            },
        }
    }
}

impl Veil {
    pub(super) fn new(key: Option<&Secret>) -> Self {
        Self {
            key: key.filter(|key| key.hides()).cloned(),
            held: Mutex::default(),
        }
    }

    /// Returns what may be shown now, in its order.
    pub(super) fn pass(&self, event: Event) -> Vec<Event> {
        let Some(key) = &self.key else {
            return vec![event];
        };
        let at = event.at;
        let mut held = self
            .held
            .lock()
            .expect("nothing panics while it holds this lock");
        let mut events = Vec::new();
        let mut end = |held: &mut HashMap<Stream, String>, stream: Stream| {
            if let Some(rest) = held.remove(&stream) {
                events.push(Event {
                    at,
                    kind: stream.piece(rest),
                });
            }
        };
        let (stream, text) = match event.kind {
            Kind::TextDelta { text } => {
                end(&mut held, Stream::Thinking);
                (Stream::Text, text)
            }
            Kind::ThinkingDelta { text } => {
                end(&mut held, Stream::Text);
                (Stream::Thinking, text)
            }
            Kind::CallOutput { call, text } => (Stream::Output(call), text),
            // Comes in the midst of all the others.
            kind @ Kind::Progress(_) => return vec![hidden(Event { at, kind }, key)],
            kind => {
                end(&mut held, Stream::Thinking);
                end(&mut held, Stream::Text);
                if let Kind::CallFinished { call, .. } = &kind {
                    end(&mut held, Stream::Output(call.clone()));
                }
                events.push(hidden(Event { at, kind }, key));
                return events;
            }
        };
        let mut text = key.hide_in(held.remove(&stream).unwrap_or_default() + &text);
        let rest = text.split_off(text.len() - beginning(&text, key.expose()));
        if !text.is_empty() {
            events.push(Event {
                at,
                kind: stream.piece(text),
            });
        }
        if !rest.is_empty() {
            held.insert(stream, rest);
        }
        events
    }
}

/// Returns how many bytes at the end of a text could be the beginning of the key.
fn beginning(text: &str, key: &str) -> usize {
    let longest = text.len().min(key.len().saturating_sub(1));
    (1..=longest)
        .rev()
        .find(|&n| {
            key.as_bytes()
                .starts_with(&text.as_bytes()[text.len() - n..])
        })
        .unwrap_or(0)
}

/// Blots out the key wherever it stands as a whole.
fn hidden(event: Event, key: &Secret) -> Event {
    let Ok(line) = json_line(&event) else {
        return event;
    };
    let hidden = key.hide_in_json(line.clone());
    if hidden == line {
        event
    } else {
        serde_json::from_str(&hidden).unwrap_or(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(key: &str, kinds: impl IntoIterator<Item = Kind>) -> Vec<Kind> {
        let veil = Veil::new(Some(&Secret::new(key)));
        kinds
            .into_iter()
            .flat_map(|kind| veil.pass(Event::now(kind)))
            .map(|event| event.kind)
            .collect()
    }

    fn said(text: &str) -> Kind {
        Kind::TextDelta {
            text: text.to_owned(),
        }
    }

    fn over() -> Kind {
        Kind::Warning {
            message: "over".to_owned(),
        }
    }

    #[test]
    fn a_key_that_is_repeated_as_a_whole_is_not_seen() {
        let event = |text: &str| Kind::UserMessage {
            text: text.to_owned(),
            images: 0,
        };
        assert_eq!(
            shown("sk-\"sesame", [event("it is sk-\"sesame, I think")]),
            [event("it is ***, I think")]
        );
        assert_eq!(shown("sk-\"sesame", [event("nothing")]), [event("nothing")]);
    }

    #[test]
    fn a_key_in_pieces_is_not_seen_however_it_is_cut() {
        let text = "My key is sk-sesame, and sk-sesam is none: é sk-s";
        let whole = "My key is ***, and sk-sesam is none: é sk-s";
        let all = |kinds: Vec<Kind>| {
            let texts = kinds.into_iter().filter_map(|kind| {
                if let Kind::TextDelta { text } = kind {
                    Some(text)
                } else {
                    None
                }
            });
            texts.collect::<String>()
        };
        for n in 1..8 {
            let characters: Vec<char> = text.chars().collect();
            let pieces = characters
                .chunks(n)
                .map(|piece| said(&piece.iter().collect::<String>()));
            let kinds = shown("sk-sesame", pieces.chain([over()]));
            assert_eq!(
                kinds.last(),
                Some(&over()),
                "nothing comes after what ended it"
            );
            assert_eq!(all(kinds), whole, "pieces of {n}");
        }
        assert_eq!(
            shown("sk-sesame", [said("a sk-"), said("other")]),
            [said("a "), said("sk-other")]
        );
        assert_eq!(
            shown("short", [said("a sho"), said("rt")]),
            [said("a sho"), said("rt")],
            "too short to be hidden at all"
        );
    }

    #[test]
    fn streams_that_come_at_once_are_kept_apart() {
        let output = |call: &str, text: &str| Kind::CallOutput {
            call: call.to_owned(),
            text: text.to_owned(),
        };
        let kinds = [
            output("a", "sk-ses"),
            output("b", "am"),
            output("a", "ame!"),
            said("x sk-"),
            Kind::ThinkingDelta {
                text: "so".to_owned(),
            },
        ];
        let expected = [
            output("b", "am"),
            output("a", "***!"),
            said("x "),
            said("sk-"),
            Kind::ThinkingDelta {
                text: "so".to_owned(),
            },
        ];
        assert_eq!(shown("sk-sesame", kinds), expected);
    }
}
