//! Parameters of a request that a server does not accept, learnt from its refusals and omitted from
//! then on.

use super::error::Error;
use super::refusal::Refusal;

/// A limit of fewer tokens is not worth a retry.
const LEAST: u64 = 256;

/// Parameters that may be omitted. Those that define the form of the answer are not among them.
const SPARE: [&str; 10] = [
    "stream_options",
    "temperature",
    "top_p",
    "top_k",
    "presence_penalty",
    "min_p",
    "repeat_penalty",
    "repetition_penalty",
    "tool_choice",
    "usage",
];

/// How requests deviate from the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct UnsupportedParameters {
    /// The limit on output tokens uses `OpenAI`'s newer name.
    has_new_name: bool,
    /// The most output tokens that the server accepts.
    most: Option<u64>,
    without: Vec<&'static str>,
}

impl UnsupportedParameters {
    /// Returns the name of the parameter that limits output tokens.
    pub(super) fn max_tokens_name(&self) -> &'static str {
        if self.has_new_name {
            "max_completion_tokens"
        } else {
            "max_tokens"
        }
    }

    /// Returns the most output tokens that the server accepts, if it has said so.
    pub(super) fn most(&self) -> Option<u64> {
        self.most
    }

    /// Returns whether a request may contain this parameter.
    pub(super) fn has(&self, name: &str) -> bool {
        !self.without.contains(&name)
    }

    /// Learns from a refused request, whose limit on output tokens was `sent`; returns a
    /// description of the change, `None` where nothing can be changed.
    /// Recognizes the messages of `OpenAI`, Azure, vLLM, Mistral, Groq and `FastAPI`'s validation.
    pub(super) fn learn(&mut self, error: &Error, sent: Option<u64>) -> Option<String> {
        let message = match error {
            Error::Status {
                code: 400 | 422,
                message,
                ..
            }
            | Error::Refused {
                what: Refusal::Request,
                message,
                ..
            } => message.to_ascii_lowercase(),
            _ => return None,
        };
        let has = |words: &[&str]| words.iter().any(|word| message.contains(word));
        let is_unknown = has(&[
            "unsupported",
            "not support",
            "unknown",
            "unrecognized",
            "unexpected",
            "not permitted",
            "not allowed",
            "extra input",
            "extra field",
            "only the default",
            "not a valid parameter",
        ]);
        // After these words the accepted ones are listed.
        let head = ["expected one of", "did you mean"]
            .iter()
            .fold(message.as_str(), |head, words| {
                head.split(words).next().unwrap_or_default()
            });
        let is_renamed =
            message.contains("max_completion_tokens") && names_parameter(head, "max_tokens");
        if !self.has_new_name && is_renamed && (is_unknown || message.contains("instead")) {
            self.has_new_name = true;
            return Some("the token limit is sent as max_completion_tokens from now on".to_owned());
        }
        if let Some(sent) = sent
            && has(&[
                "max_tokens",
                "max_completion_tokens",
                "max_output_tokens",
                "completion tokens",
                "output tokens",
            ])
            && has(&[
                "too large",
                "too high",
                "at most",
                "maximum",
                "less than",
                "exceed",
                "must be",
                "<=",
                "range",
            ])
        {
            let told = numbers(&message)
                .filter(|number| (LEAST..sent).contains(number))
                .max();
            let most = told.or((sent / 2 >= LEAST).then_some(sent / 2))?;
            self.most = Some(most);
            return Some(format!("answers are limited to {most} tokens from now on"));
        }
        // The first one that it names.
        let named = |name: &&str| words(head).position(|word| word == *name);
        let known = SPARE
            .into_iter()
            .filter(|name| is_unknown && self.has(name));
        let (_, unwanted) = known.filter_map(|name| Some((named(&name)?, name))).min()?;
        self.without.push(unwanted);
        Some(format!("`{unwanted}` is omitted from now on"))
    }
}

/// Returns whether a message names a parameter, as a separate word.
fn names_parameter(message: &str, name: &str) -> bool {
    words(message).any(|word| word == name)
}

fn words(message: &str) -> impl Iterator<Item = &str> {
    message
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
}

fn numbers(message: &str) -> impl Iterator<Item = u64> {
    message
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(message: &str) -> Error {
        Error::Status {
            code: 400,
            message: message.to_owned(),
            retry_after: None,
        }
    }

    #[track_caller]
    fn check(message: &str, expected: &UnsupportedParameters) {
        let mut learnt = UnsupportedParameters::default();
        assert!(
            learnt.learn(&refusal(message), Some(16_384)).is_some(),
            "{message}"
        );
        assert_eq!(&learnt, expected, "{message}");
    }

    #[test]
    fn unaccepted_parameters_are_omitted_or_renamed() {
        let renamed = UnsupportedParameters {
            has_new_name: true,
            ..UnsupportedParameters::default()
        };
        check(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            &renamed,
        );
        for (message, most) in [
            (
                "max_tokens is too large: 16384. This model supports at most 4096 completion tokens, whereas you provided 16384.",
                4096,
            ),
            (
                "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
                8192,
            ),
            (
                "`max_tokens` must be less than or equal to `8000`, the maximum value for `max_tokens` is less than the context",
                8000,
            ),
            (
                "max_tokens: 16384 > 4096, which is the maximum allowed number of output tokens",
                4096,
            ),
            ("max_tokens is too large", 8192),
        ] {
            check(
                message,
                &UnsupportedParameters {
                    most: Some(most),
                    ..UnsupportedParameters::default()
                },
            );
        }
        for (message, name) in [
            (
                "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
                "temperature",
            ),
            (
                "[{'type': 'extra_forbidden', 'loc': ('body', 'stream_options'), 'msg': 'Extra inputs are not permitted'}]",
                "stream_options",
            ),
            (
                "Unrecognized request argument supplied: tool_choice",
                "tool_choice",
            ),
            ("unknown field `presence_penalty`", "presence_penalty"),
            (
                "unknown field `top_k`, expected one of `model`, `max_completion_tokens`, `stream_options`, `temperature`, `top_p`",
                "top_k",
            ),
            ("Unsupported parameters: top_k", "top_k"),
            (
                "property 'top_k' is unsupported, did you mean 'top_p'?",
                "top_k",
            ),
            (
                "top_k is not a valid parameter for this model. temperature is",
                "top_k",
            ),
        ] {
            check(
                message,
                &UnsupportedParameters {
                    without: vec![name],
                    ..UnsupportedParameters::default()
                },
            );
        }
    }

    #[test]
    fn required_parameters_stay_and_nothing_is_learnt_twice() {
        for message in [
            "boom",
            "temperature is fine",
            "response_format is not supported by this model",
            "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set",
            "this temperatures is unknown",
            "the model's usages are not supported",
        ] {
            assert_eq!(
                UnsupportedParameters::default().learn(&refusal(message), Some(16_384)),
                None,
                "{message}"
            );
        }
        let mut learnt = UnsupportedParameters::default();
        let unwanted = refusal("Unsupported value: 'temperature'");
        assert!(learnt.learn(&unwanted, None).is_some());
        assert_eq!(learnt.learn(&unwanted, None), None);
        // A server that refuses everything is asked only as often as the limit can be halved.
        let mut n_tried = 0;
        while learnt
            .learn(
                &refusal("max_tokens is too large"),
                learnt.most().or(Some(16_384)),
            )
            .is_some()
        {
            n_tried += 1;
        }
        assert_eq!((n_tried, learnt.most()), (6, Some(256)));
        let busy = Error::Status {
            code: 429,
            message: "max_tokens is too large".to_owned(),
            retry_after: None,
        };
        assert_eq!(
            UnsupportedParameters::default().learn(&busy, Some(16_384)),
            None
        );
    }
}
