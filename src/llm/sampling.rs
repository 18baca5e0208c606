use serde::Deserialize;
use serde::Serialize;

use super::Options;

/// How answers are sampled, by what they are for. What is not set is as `[llm]` says, and where
/// that says nothing as the server does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Sampling {
    /// For unattended work (`podbay run`).
    pub edit: Sampled,
    /// For talk with a person (`podbay chat`).
    pub chat: Sampled,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Sampled {
    /// Randomness, 0 to 2.
    pub temperature: Option<f64>,
    /// Share of the probability that is sampled from, 0 to 1.
    pub top_p: Option<f64>,
    /// How many of the likeliest tokens are sampled from. `OpenAI`'s own API does not have it.
    pub top_k: Option<u32>,
    /// Least probability as a share of the likeliest token's, 0 to 1. `OpenAI`'s own API does not
    /// have it.
    pub min_p: Option<f64>,
    /// How much what was said already is held against saying it again, -2 to 2; 0 is not at all.
    pub presence_penalty: Option<f64>,
    /// How much tokens that were just written are made less likely, 0 to 2; 1 is not at all.
    /// `OpenAI`'s own API does not have it.
    pub repeat_penalty: Option<f64>,
}

/// What answers are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskKind {
    Edit,
    Chat,
}

impl Options {
    /// Returns the options for one kind of task.
    #[must_use]
    pub fn for_task(&self, kind: TaskKind) -> Self {
        let sampled = match kind {
            TaskKind::Edit => self.sampling.edit,
            TaskKind::Chat => self.sampling.chat,
        };
        Self {
            temperature: sampled.temperature.or(self.temperature),
            top_p: sampled.top_p.or(self.top_p),
            top_k: sampled.top_k.or(self.top_k),
            min_p: sampled.min_p.or(self.min_p),
            presence_penalty: sampled.presence_penalty.or(self.presence_penalty),
            repeat_penalty: sampled.repeat_penalty.or(self.repeat_penalty),
            ..self.clone()
        }
    }

    /// Returns the keys of sampling in `[llm]` whose values cannot be meant, and why.
    pub fn sampling_mistakes(&self) -> Vec<(String, String)> {
        let own = Sampled {
            temperature: self.temperature,
            top_p: self.top_p,
            top_k: self.top_k,
            min_p: self.min_p,
            presence_penalty: self.presence_penalty,
            repeat_penalty: self.repeat_penalty,
        };
        let stop = stop_mistake(&self.stop).map(|what| ("stop".to_owned(), what));
        let named = self
            .sampling
            .mistakes()
            .into_iter()
            .map(|(key, what)| (format!("sampling.{key}"), what));
        own.mistakes()
            .map(|(key, what)| (key.to_owned(), what))
            .chain(stop)
            .chain(named)
            .collect()
    }
}

/// As many as all servers take.
const MAX_STOP: usize = 4;

/// Returns what is wrong with the words at which an answer is to end.
fn stop_mistake(stop: &[String]) -> Option<String> {
    if stop.len() > MAX_STOP {
        return Some(format!(
            "{} words are more than servers take: give it {MAX_STOP} at most",
            stop.len()
        ));
    }
    stop.iter()
        .any(String::is_empty)
        .then(|| "an empty word would end every answer before it begins".to_owned())
}

impl Sampled {
    fn mistakes(&self) -> impl Iterator<Item = (&'static str, String)> {
        let values = [
            ("temperature", self.temperature, 0.0, 2.0),
            ("top_p", self.top_p, 0.0, 1.0),
            ("min_p", self.min_p, 0.0, 1.0),
            ("presence_penalty", self.presence_penalty, -2.0, 2.0),
            ("repeat_penalty", self.repeat_penalty, 0.0, 2.0),
        ];
        values.into_iter().filter_map(|(name, value, least, most)| {
            let value = value.filter(|value| !(least..=most).contains(value))?;
            Some((name, format!("{value} is not between {least} and {most}")))
        })
    }
}

impl Sampling {
    /// Returns the keys whose values cannot be meant, and why.
    pub fn mistakes(&self) -> Vec<(String, String)> {
        let of = |kind: &'static str, sampled: Sampled| {
            sampled
                .mistakes()
                .map(move |(key, what)| (format!("{kind}.{key}"), what))
                .collect()
        };
        let (edit, chat): (Vec<_>, Vec<_>) = (of("edit", self.edit), of("chat", self.chat));
        edit.into_iter().chain(chat).collect()
    }

    /// Returns these settings, and the others where these say nothing.
    #[must_use]
    pub(super) fn over(self, other: Self) -> Self {
        let one = |above: Sampled, below: Sampled| Sampled {
            temperature: above.temperature.or(below.temperature),
            top_p: above.top_p.or(below.top_p),
            top_k: above.top_k.or(below.top_k),
            min_p: above.min_p.or(below.min_p),
            presence_penalty: above.presence_penalty.or(below.presence_penalty),
            repeat_penalty: above.repeat_penalty.or(below.repeat_penalty),
        };
        Self {
            edit: one(self.edit, other.edit),
            chat: one(self.chat, other.chat),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_task_has_its_own_and_the_rest_is_shared() {
        let sampling = Sampling {
            chat: Sampled {
                temperature: Some(0.7),
                ..Sampled::default()
            },
            ..Sampling::default()
        };
        let options = Options {
            temperature: Some(0.1),
            top_p: Some(0.9),
            sampling,
            ..Options::default()
        };
        let read = |kind| {
            let options = options.for_task(kind);
            (options.temperature, options.top_p)
        };
        assert_eq!(
            [read(TaskKind::Edit), read(TaskKind::Chat)],
            [(Some(0.1), Some(0.9)), (Some(0.7), Some(0.9))]
        );
        let other = Sampling {
            chat: Sampled {
                temperature: Some(1.0),
                top_k: Some(5),
                ..Sampled::default()
            },
            ..Sampling::default()
        };
        let chat = sampling.over(other).chat;
        assert_eq!((chat.temperature, chat.top_k), (Some(0.7), Some(5)));
    }

    #[test]
    fn what_cannot_be_meant_is_named() {
        let chat = Sampled {
            presence_penalty: Some(-2.5),
            repeat_penalty: Some(-0.1),
            ..Sampled::default()
        };
        let edit = Sampled {
            presence_penalty: Some(-2.0),
            repeat_penalty: Some(1.1),
            ..Sampled::default()
        };
        let options = Options {
            min_p: Some(1.5),
            sampling: Sampling { edit, chat },
            ..Options::default()
        };
        let found: Vec<String> = options
            .sampling_mistakes()
            .into_iter()
            .map(|(key, what)| format!("{key}: {what}"))
            .collect();
        let expected = [
            "min_p: 1.5 is not between 0 and 1",
            "sampling.chat.presence_penalty: -2.5 is not between -2 and 2",
            "sampling.chat.repeat_penalty: -0.1 is not between 0 and 2",
        ];
        assert_eq!(found, expected);
        let stop = |words: &[&str]| {
            let stop = words.iter().map(|word| (*word).to_owned()).collect();
            Options {
                stop,
                ..Options::default()
            }
            .sampling_mistakes()
            .into_iter()
            .map(|(key, _)| key)
            .collect::<Vec<_>>()
        };
        assert_eq!(
            [stop(&["END"; 4]), stop(&["END"; 5]), stop(&["END", ""])],
            [vec![], vec!["stop".to_owned()], vec!["stop".to_owned()]]
        );
    }
}
