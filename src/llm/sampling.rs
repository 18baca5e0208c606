use serde::Deserialize;
use serde::Serialize;

use super::Options;

/// Sampling by purpose of the answer. Unset keys are as in `[llm]`, and if unset there, the
/// server's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Sampling {
    /// For unattended work (`podbay run`).
    pub edit: SamplingParameters,
    /// For conversations (`podbay chat`).
    pub chat: SamplingParameters,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct SamplingParameters {
    /// Randomness, 0 to 2.
    pub temperature: Option<f64>,
    /// Nucleus sampling: share of the probability mass to sample from, 0 to 1.
    pub top_p: Option<f64>,
    /// How many of the most likely tokens to sample from. `OpenAI`'s own API does not support it.
    pub top_k: Option<u32>,
    /// Minimum probability relative to the most likely token, 0 to 1. `OpenAI`'s own API does not
    /// support it.
    pub min_p: Option<f64>,
    /// Penalty for tokens that occurred before, -2 to 2; 0 is none.
    pub presence_penalty: Option<f64>,
    /// Penalty for recently generated tokens, 0 to 2; 1 is none. `OpenAI`'s own API does not
    /// support it.
    pub repeat_penalty: Option<f64>,
}

/// The purpose of an answer.
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

    /// Returns the sampling keys in `[llm]` with invalid values, and what is wrong with them.
    pub fn invalid_sampling(&self) -> Vec<(String, String)> {
        let own = SamplingParameters {
            temperature: self.temperature,
            top_p: self.top_p,
            top_k: self.top_k,
            min_p: self.min_p,
            presence_penalty: self.presence_penalty,
            repeat_penalty: self.repeat_penalty,
        };
        let stop = invalid_stop(&self.stop).map(|what| ("stop".to_owned(), what));
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

/// The most that every server accepts.
const MAX_STOP: usize = 4;

/// Returns what is wrong with the stop words.
fn invalid_stop(stop: &[String]) -> Option<String> {
    if stop.len() > MAX_STOP {
        return Some(format!(
            "servers accept at most {MAX_STOP} stop words, not {}",
            stop.len()
        ));
    }
    stop.iter()
        .any(String::is_empty)
        .then(|| "an empty stop word would end every answer before it begins".to_owned())
}

impl SamplingParameters {
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
    /// Returns the keys with invalid values, and what is wrong with them.
    pub fn mistakes(&self) -> Vec<(String, String)> {
        let of = |kind: &'static str, sampled: SamplingParameters| {
            sampled
                .mistakes()
                .map(move |(key, what)| (format!("{kind}.{key}"), what))
                .collect()
        };
        let (edit, chat): (Vec<_>, Vec<_>) = (of("edit", self.edit), of("chat", self.chat));
        edit.into_iter().chain(chat).collect()
    }

    /// Returns these settings, with those of `other` where unset.
    #[must_use]
    pub(super) fn over(self, other: Self) -> Self {
        let one = |above: SamplingParameters, below: SamplingParameters| SamplingParameters {
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
    fn each_task_kind_overrides_the_shared_sampling() {
        let sampling = Sampling {
            chat: SamplingParameters {
                temperature: Some(0.7),
                ..SamplingParameters::default()
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
            chat: SamplingParameters {
                temperature: Some(1.0),
                top_k: Some(5),
                ..SamplingParameters::default()
            },
            ..Sampling::default()
        };
        let chat = sampling.over(other).chat;
        assert_eq!((chat.temperature, chat.top_k), (Some(0.7), Some(5)));
    }

    #[test]
    fn invalid_sampling_values_are_named() {
        let chat = SamplingParameters {
            presence_penalty: Some(-2.5),
            repeat_penalty: Some(-0.1),
            ..SamplingParameters::default()
        };
        let edit = SamplingParameters {
            presence_penalty: Some(-2.0),
            repeat_penalty: Some(1.1),
            ..SamplingParameters::default()
        };
        let options = Options {
            min_p: Some(1.5),
            sampling: Sampling { edit, chat },
            ..Options::default()
        };
        let found: Vec<String> = options
            .invalid_sampling()
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
            .invalid_sampling()
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
