//! What a server does not take of a request beside the conversation, learnt from its refusals: the
//! same request goes without it from then on.

use super::error::Error;
use super::refusal::Refusal;

/// Fewer tokens than these are no answer to try.
const LEAST: u64 = 256;

/// Parameters that a request can do without. Those that say what the answer is are not among them.
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

/// How requests are written otherwise than by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Parameters {
    /// The most tokens of an answer are told by `OpenAI`'s newer name for them.
    has_new_name: bool,
    /// Most tokens of an answer that the server takes.
    most: Option<u64>,
    without: Vec<&'static str>,
}

impl Parameters {
    /// Returns the name by which the most tokens of an answer are told.
    pub(super) fn name_of_most(&self) -> &'static str {
        if self.has_new_name {
            "max_completion_tokens"
        } else {
            "max_tokens"
        }
    }

    /// Returns the most tokens of an answer that the server takes, where it has said so.
    pub(super) fn most(&self) -> Option<u64> {
        self.most
    }

    /// Returns whether a request may hold this parameter.
    pub(super) fn has(&self, name: &str) -> bool {
        !self.without.contains(&name)
    }

    /// Takes why a request was refused, in which an answer could have `sent` tokens; returns what
    /// is done about it, `None` where nothing can be.
    ///
    /// The words are those of `OpenAI`, Azure, vLLM, Mistral, Groq and the validation of `FastAPI`.
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
        // Behind these words stand those that it takes.
        let head = ["expected one of", "did you mean"]
            .iter()
            .fold(message.as_str(), |head, words| {
                head.split(words).next().unwrap_or_default()
            });
        let is_renamed = message.contains("max_completion_tokens") && is_named(head, "max_tokens");
        if !self.has_new_name && is_renamed && (is_unknown || message.contains("instead")) {
            self.has_new_name = true;
            return Some(
                "the most tokens of an answer are told as max_completion_tokens from here on"
                    .to_owned(),
            );
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
            return Some(format!("an answer may have {most} tokens from here on"));
        }
        // The first one that it names.
        let named = |name: &&str| words(head).position(|word| word == *name);
        let known = SPARE
            .into_iter()
            .filter(|name| is_unknown && self.has(name));
        let (_, unwanted) = known.filter_map(|name| Some((named(&name)?, name))).min()?;
        self.without.push(unwanted);
        Some(format!("requests go without `{unwanted}` from here on"))
    }
}

/// Returns whether a message names a parameter, as a word of its own.
fn is_named(message: &str, name: &str) -> bool {
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
    fn check(message: &str, expected: &Parameters) {
        let mut learnt = Parameters::default();
        assert!(
            learnt.learn(&refusal(message), Some(16_384)).is_some(),
            "{message}"
        );
        assert_eq!(&learnt, expected, "{message}");
    }

    #[test]
    fn what_a_server_does_not_take_is_left_out_or_said_otherwise() {
        let renamed = Parameters {
            has_new_name: true,
            ..Parameters::default()
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
                &Parameters {
                    most: Some(most),
                    ..Parameters::default()
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
                &Parameters {
                    without: vec![name],
                    ..Parameters::default()
                },
            );
        }
    }

    #[test]
    fn what_cannot_be_done_without_is_no_parameter_and_nothing_is_learnt_twice() {
        for message in [
            "boom",
            "temperature is fine",
            "response_format is not supported by this model",
            "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set",
            "this temperatures is unknown",
            "the model's usages are not supported",
        ] {
            assert_eq!(
                Parameters::default().learn(&refusal(message), Some(16_384)),
                None,
                "{message}"
            );
        }
        let mut learnt = Parameters::default();
        let unwanted = refusal("Unsupported value: 'temperature'");
        assert!(learnt.learn(&unwanted, None).is_some());
        assert_eq!(learnt.learn(&unwanted, None), None);
        // A server that refuses whatever is said is asked no more often than numbers can be halved.
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
        assert_eq!(Parameters::default().learn(&busy, Some(16_384)), None);
    }
}
