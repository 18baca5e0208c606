use serde_json::Value;
use serde_json::json;

use crate::format::constrained;
use crate::options::Options;
use crate::prompt::Prompt;
use crate::provider::Provider;
use crate::provider::SentWhen;
use crate::provider::assemble::Reading;
use crate::stream::Request;
use crate::unsupported_parameters::UnsupportedParameters;
use podbay_event::ToolMode;

/// Default limit of output tokens, beside a quarter of the window.
const MAX_AUTO_OUTPUT: u64 = 16_384;

/// What is known about the server when a request is written.
#[derive(Clone, Debug)]
pub(crate) struct Manner {
    pub(crate) provider: &'static dyn Provider,
    pub(crate) model: Option<String>,
    pub(crate) context: Option<u64>,
    /// It reports the cost of an answer only on request.
    pub(crate) asks_cost: bool,
    /// The parameters that it does not accept.
    pub(crate) parameters: UnsupportedParameters,
}

/// Returns how the answer to a request is to be parsed.
pub(crate) fn reading(prompt: &Prompt, request: &Request) -> Reading {
    match prompt.mode() {
        _ if request.schema.is_some() => Reading::Schema,
        ToolMode::Native if is_held(prompt, request) => Reading::Held,
        // Without tools there is no schema, but a model that was constrained to one may keep its
        // form.
        ToolMode::Native if request.held => Reading::Json { with_calls: false },
        ToolMode::Native => Reading::Native {
            with_calls: !request.no_tools,
        },
        ToolMode::Text if request.was_held => Reading::Json {
            with_calls: !request.no_tools,
        },
        ToolMode::Constrained => Reading::Json {
            with_calls: !request.no_tools,
        },
        ToolMode::Text => Reading::Text {
            with_calls: !request.no_tools,
        },
    }
}

/// Returns the body of a request: first the conversation's own bytes, then everything that may
/// change.
pub(crate) fn body(
    prompt: &Prompt,
    request: &Request,
    options: &Options,
    manner: &Manner,
    stream: bool,
) -> Vec<u8> {
    let mut body = prompt.head();
    body.push(']');
    let mut put = |key: &str, value: &str| {
        if !manner.parameters.has(key) {
            return;
        }
        for part in [",\"", key, "\":", value] {
            body.push_str(part);
        }
    };
    if let Some(model) = &manner.model {
        put("model", &Value::from(model.as_str()).to_string());
    }
    put("stream", if stream { "true" } else { "false" });
    if stream {
        put("stream_options", "{\"include_usage\":true}");
    }
    if let Some(limit) = max_tokens(request, options, manner) {
        put(manner.parameters.max_tokens_name(), &limit.to_string());
    }
    // Parameters that `OpenAI`'s API does not have are sent to any server they were set for; one
    // that refuses them no longer gets them.
    for (key, value) in [
        ("temperature", request.temperature.or(options.temperature)),
        ("top_p", options.top_p),
        ("presence_penalty", options.presence_penalty),
        ("min_p", options.min_p),
        (
            manner.provider.quirks().repeat_penalty,
            options.repeat_penalty,
        ),
    ] {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            put(key, &json!(value).to_string());
        }
    }
    if let Some(top_k) = options.top_k {
        put("top_k", &top_k.to_string());
    }
    if !options.stop.is_empty() {
        put("stop", &json!(options.stop).to_string());
    }
    let native_tools = prompt.mode() == ToolMode::Native && !prompt.tools().is_empty();
    if let Some(schema) = &request.schema {
        put("response_format", &constrained::wrap("reply", schema));
    } else if is_held(prompt, request) {
        put(
            "response_format",
            &constrained::response_format(prompt.tools()),
        );
    } else if prompt.mode() == ToolMode::Constrained {
        put(
            "response_format",
            &constrained::response_format(if request.no_tools {
                &[]
            } else {
                prompt.tools()
            }),
        );
    }
    if native_tools && (request.no_tools || request.held || request.schema.is_some()) {
        put("tool_choice", "\"none\"");
    }
    for (key, value, when) in manner.provider.quirks().extras {
        if match when {
            SentWhen::Always => true,
            SentWhen::Streamed => stream,
            SentWhen::AsksCost => manner.asks_cost,
        } {
            put(key, value);
        }
    }
    body.push('}');
    body.into_bytes()
}

fn is_held(prompt: &Prompt, request: &Request) -> bool {
    request.held
        && !request.no_tools
        && prompt.mode() == ToolMode::Native
        && !prompt.tools().is_empty()
}

/// Returns the limit of output tokens for a request, if there is one.
pub(crate) fn max_tokens(request: &Request, options: &Options, manner: &Manner) -> Option<u64> {
    let usual = match (request.max_tokens, options.max_output_tokens) {
        (Some(limit), _) => Some(limit),
        (None, Some(limit)) => u64::try_from(limit).ok().filter(|&limit| limit > 0),
        (None, None) => manner
            .context
            .map(|context| (context / 4).clamp(1, MAX_AUTO_OUTPUT)),
    };
    // Without any limit the server's own applies, and its window ends the answer.
    let most = usual.into_iter().chain(request.at_most).min()?;
    Some(
        [manner.parameters.most(), request.room]
            .into_iter()
            .flatten()
            .fold(most, u64::min),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Message;
    use crate::message::ToolSpec;
    use crate::provider::Compatible;
    use crate::provider::LlamaCpp;
    use crate::provider::Vllm;

    fn tools() -> Vec<ToolSpec> {
        vec![ToolSpec {
            name: "bash".into(),
            description: "Runs.".into(),
            parameters: json!({"type": "object"}),
        }]
    }

    fn llama() -> Manner {
        Manner {
            provider: &LlamaCpp,
            model: Some("m\"".into()),
            context: Some(8192),
            asks_cost: false,
            parameters: UnsupportedParameters::default(),
        }
    }

    #[track_caller]
    fn written(mode: ToolMode, request: &Request, options: &Options, manner: &Manner) -> Value {
        let mut prompt = Prompt::new("", &tools(), mode);
        prompt.push(&Message::user("Hi"));
        let body = body(&prompt, request, options, manner, true);
        assert!(body.starts_with(prompt.head().as_bytes()));
        let mut value: Value = serde_json::from_slice(&body).expect("a body is JSON");
        let object = value.as_object_mut().expect("an object");
        object.remove("messages");
        object.remove("tools");
        value
    }

    #[test]
    fn only_llama_server_gets_its_extra_fields() {
        let options = Options {
            temperature: Some(0.5),
            top_k: Some(40),
            min_p: Some(0.25),
            presence_penalty: Some(-0.5),
            repeat_penalty: Some(1.125),
            stop: vec!["END".into(), "\n\n".into()],
            ..Options::default()
        };
        assert_eq!(
            written(ToolMode::Native, &Request::default(), &options, &llama()),
            json!({"model": "m\"", "stream": true, "stream_options": {"include_usage": true}, "max_tokens": 2048, "temperature": 0.5, "top_k": 40, "min_p": 0.25, "presence_penalty": -0.5, "repeat_penalty": 1.125, "stop": ["END", "\n\n"], "cache_prompt": true, "return_progress": true})
        );
        let other = Manner {
            provider: &Compatible,
            model: None,
            context: None,
            asks_cost: false,
            parameters: UnsupportedParameters::default(),
        };
        let request = Request {
            temperature: Some(0.0),
            max_tokens: Some(5),
            no_tools: true,
            ..Request::default()
        };
        assert_eq!(
            written(ToolMode::Native, &request, &options, &other),
            json!({"stream": true, "stream_options": {"include_usage": true}, "max_tokens": 5, "temperature": 0.0, "top_k": 40, "min_p": 0.25, "presence_penalty": -0.5, "repeat_penalty": 1.125, "stop": ["END", "\n\n"], "tool_choice": "none"})
        );
    }

    #[test]
    fn vllm_gets_the_repeat_penalty_under_its_own_name() {
        let options = Options {
            repeat_penalty: Some(1.125),
            top_k: Some(40),
            min_p: Some(0.25),
            ..Options::default()
        };
        let manner = Manner {
            provider: &Vllm,
            model: None,
            context: None,
            asks_cost: false,
            parameters: UnsupportedParameters::default(),
        };
        let body = written(ToolMode::Native, &Request::default(), &options, &manner);
        assert_eq!(
            (&body["repetition_penalty"], &body["repeat_penalty"]),
            (&json!(1.125), &Value::Null)
        );
        assert_eq!((&body["top_k"], &body["min_p"]), (&json!(40), &json!(0.25)));
    }

    #[test]
    fn a_server_that_reports_cost_on_request_is_asked_for_it() {
        let manner = Manner {
            provider: &Compatible,
            model: None,
            context: None,
            asks_cost: true,
            parameters: UnsupportedParameters::default(),
        };
        let body = written(
            ToolMode::Native,
            &Request::default(),
            &Options::default(),
            &manner,
        );
        assert_eq!(body["usage"], json!({"include": true}));
        let is_at = |url: &str| {
            crate::Endpoint::parse(url)
                .expect("an address")
                .is_at("openrouter.ai")
        };
        assert!(is_at("https://openrouter.ai/api/v1") && is_at("https://eu.OpenRouter.ai/v1"));
        assert!(
            !is_at("https://notopenrouter.ai/v1") && !is_at("https://openrouter.ai.example/v1")
        );
    }

    #[test]
    fn the_schema_is_requested_in_constrained_mode_only() {
        let format = |mode, request: &Request| {
            written(mode, request, &Options::default(), &llama())["response_format"]["json_schema"]
                ["schema"]
                .clone()
        };
        assert_eq!(format(ToolMode::Native, &Request::default()), Value::Null);
        assert_eq!(format(ToolMode::Text, &Request::default()), Value::Null);
        assert_eq!(
            format(ToolMode::Constrained, &Request::default())["anyOf"]
                .as_array()
                .map(Vec::len),
            Some(2)
        );
        assert_eq!(
            format(
                ToolMode::Constrained,
                &Request {
                    no_tools: true,
                    ..Request::default()
                }
            )["required"],
            json!(["answer"])
        );
        let held = Request {
            held: true,
            ..Request::default()
        };
        assert_eq!(
            format(ToolMode::Native, &held)["anyOf"]
                .as_array()
                .map(Vec::len),
            Some(2)
        );
        assert_eq!(
            written(ToolMode::Native, &held, &Options::default(), &llama())["tool_choice"],
            "none"
        );
        assert_eq!(
            format(
                ToolMode::Native,
                &Request {
                    no_tools: true,
                    ..held
                }
            ),
            Value::Null
        );
        assert_eq!(
            format(
                ToolMode::Native,
                &Request {
                    schema: Some(json!({"type": "null"})),
                    ..Request::default()
                }
            ),
            json!({"type": "null"})
        );
    }

    #[test]
    fn output_is_limited_by_request_or_a_quarter_of_the_window() {
        let limit = |asked, option, context| {
            let options = Options {
                max_output_tokens: option,
                ..Options::default()
            };
            max_tokens(
                &Request {
                    max_tokens: asked,
                    ..Request::default()
                },
                &options,
                &Manner { context, ..llama() },
            )
        };
        assert_eq!(
            [
                limit(Some(7), Some(9), None),
                limit(None, Some(9), None),
                limit(None, Some(-1), Some(8192))
            ],
            [Some(7), Some(9), None]
        );
        assert_eq!(
            [
                limit(None, None, Some(8192)),
                limit(None, None, Some(1 << 20)),
                limit(None, None, None)
            ],
            [Some(2048), Some(16_384), None]
        );
    }
}
