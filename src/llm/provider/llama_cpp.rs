//! llama.cpp's own server.
//! Its `/props` reports the window of a slot and the capabilities of its chat template. That
//! decides the tool mode: with a template that cannot show tools the server silently drops them.

use std::time::Duration;

use futures::future::BoxFuture;
use futures::future::FutureExt;
use serde_json::Value;
use serde_json::json;

use super::COMMON;
use super::Provider;
use super::Quirks;
use super::SentWhen;
use super::listed;
use super::listed::Listed;
use super::listed::MAX_NAME;
use crate::control::ControlTokens;
use crate::error::Error;
use crate::error::plain;
use crate::options::Options;
use crate::probe::ProbeResult;
use crate::probe::Server;
use crate::prompt::Prompt;
use crate::server_query::ServerQuery;
use podbay_event::ToolMode;

/// Polling interval while the model loads.
const LOADING: Duration = Duration::from_millis(500);
/// Time limit for `/props`: it answers at once, even while it loads.
const PROPS: Duration = Duration::from_secs(5);
/// Time limit for `/slots`: a server that reads a long prompt answers only between two batches of
/// it.
const SLOTS: Duration = Duration::from_secs(1);
/// Its owner in the model list.
const OWNER: &str = "llamacpp";
/// More slots are a mistake or hostile.
const MAX_SLOTS: u32 = 1024;

#[derive(Debug)]
pub(crate) struct LlamaCpp;

impl Provider for LlamaCpp {
    fn probe<'a>(
        &'a self,
        asking: &'a ServerQuery<'a>,
        options: &'a Options,
    ) -> BoxFuture<'a, Result<Option<ProbeResult>, Error>> {
        async move {
            let props = match props(asking).await {
                Ok(Some(props)) => props,
                Ok(None) => return Ok(None),
                // Some gateways answer so to every unknown path. This server lists its models
                // without a key.
                Err(refused @ Error::Unauthorized { .. }) => {
                    let models = asking.get_api("/models").await.unwrap_or_default();
                    let is_other =
                        models.get("data").is_some() && !Listed::find(&models, None).is_of(OWNER);
                    return if is_other { Ok(None) } else { Err(refused) };
                }
                Err(error) => return Err(error),
            };
            let models = match asking.get_api("/models").await {
                Ok(models) => models,
                Err(error @ (Error::Cancelled | Error::Unauthorized { .. })) => return Err(error),
                // What it reported already is enough.
                Err(_) => Value::Null,
            };
            let probed = read(&props, &models, options.model.as_deref());
            Ok(Some(ProbeResult {
                n_busy: busy(asking, &props).await?,
                ..probed
            }))
        }
        .boxed()
    }

    fn count<'a>(
        &'a self,
        asking: &'a ServerQuery<'a>,
        text: &'a str,
    ) -> BoxFuture<'a, Option<u64>> {
        async move {
            let body = json!({"content": text, "add_special": false}).to_string();
            tokens(asking, body).await
        }
        .boxed()
    }

    fn count_prompt<'a>(
        &'a self,
        asking: &'a ServerQuery<'a>,
        prompt: &'a Prompt,
    ) -> BoxFuture<'a, Option<u64>> {
        async move {
            let head = prompt.head();
            match asking
                .post("/apply-template", format!("{head}]}}"))
                .await
                .as_ref()
                .map(|answer| answer["prompt"].as_str())
            {
                // As it reads a prompt itself: with the token that begins a text, and control
                // tokens recognized.
                Ok(Some(text)) => {
                    tokens(
                        asking,
                        json!({"content": text, "add_special": true, "parse_special": true})
                            .to_string(),
                    )
                    .await
                }
                // Older than that path, or a template that refuses: the JSON has about the same
                // length.
                _ => self.count(asking, &head).await,
            }
        }
        .boxed()
    }

    fn quirks(&self) -> &'static Quirks {
        const QUIRKS: Quirks = Quirks {
            extras: &[
                ("cache_prompt", "true", SentWhen::Always),
                ("return_progress", "true", SentWhen::Streamed),
            ],
            may_be_silent: true,
            replays_thinking: true,
            reads_ahead: true,
            holds_calls: true,
            ..COMMON
        };
        &QUIRKS
    }
}

/// Returns how many tokens `/tokenize` makes of the sent text.
async fn tokens(asking: &ServerQuery<'_>, body: String) -> Option<u64> {
    let answer = asking.post("/tokenize", body).await.ok()?;
    answer
        .get("tokens")?
        .as_array()
        .map(|tokens| tokens.len() as u64)
}

/// Returns the result of `/props`, once the model is loaded; `None` from another kind of server, or
/// one that does not answer soon: the result is useful but not required.
async fn props(asking: &ServerQuery<'_>) -> Result<Option<Value>, Error> {
    let mut is_loading = false;
    loop {
        let most = if is_loading {
            asking.left()
        } else {
            PROPS.min(asking.left() / 2)
        };
        let Ok(answer) = tokio::time::timeout(most, asking.get("/props")).await else {
            return if is_loading {
                Err(asking.timed_out())
            } else {
                Ok(None)
            };
        };
        match answer {
            Ok(value) => return Ok(Some(value).filter(is_props)),
            Err(Error::ModelLoading { endpoint, .. }) => {
                is_loading = true;
                asking.pause(LOADING).await.map_err(|error| match error {
                    Error::Timeout { .. } => Error::ModelLoading {
                        endpoint,
                        waited: asking.waited(),
                    },
                    other => other,
                })?;
            }
            // It has no such path: another kind of server.
            Err(
                Error::Status { .. }
                | Error::NotJson { .. }
                | Error::Reported { .. }
                | Error::Refused { .. }
                | Error::Redirect { .. }
                | Error::TooLarge { .. },
            ) => return Ok(None),
            // If `/props` rejects the key, so does the rest.
            Err(error) => return Err(error),
        }
    }
}

/// Returns the number of busy slots; `None` if the server does not report it (`--no-slots`), or not
/// soon.
async fn busy(asking: &ServerQuery<'_>, props: &Value) -> Result<Option<u32>, Error> {
    if props.get("is_sleeping").and_then(Value::as_bool) == Some(true) {
        // It is asleep, and this query would wake it, unlike the others.
        return Ok(Some(0));
    }
    match tokio::time::timeout(SLOTS, asking.get("/slots")).await {
        Ok(Ok(slots)) => Ok(n_busy(&slots)),
        Ok(Err(Error::Cancelled)) => Err(Error::Cancelled),
        Ok(Err(_)) | Err(_) => Ok(None),
    }
}

/// Reads nothing else from `/slots`: older servers show other users' prompts there.
fn n_busy(slots: &Value) -> Option<u32> {
    let is_busy = |slot: &Value| slot.get("is_processing").and_then(Value::as_bool);
    let busy = slots
        .as_array()?
        .iter()
        .map(is_busy)
        .collect::<Option<Vec<bool>>>()?;
    u32::try_from(busy.into_iter().filter(|is_busy| *is_busy).count()).ok()
}

fn is_props(value: &Value) -> bool {
    [
        "default_generation_settings",
        "chat_template",
        "chat_template_caps",
        "total_slots",
    ]
    .iter()
    .any(|key| value.get(key).is_some())
}

fn read(props: &Value, models: &Value, wanted: Option<&str>) -> ProbeResult {
    let listed = Listed::find(models, wanted);
    let file = |path: &str| {
        plain(
            path.rsplit(['/', '\\'])
                .next()
                .unwrap_or(path)
                .trim_end_matches(".gguf"),
            MAX_NAME,
        )
    };
    let model = wanted
        .map(str::to_owned)
        .or_else(|| listed::name(props.get("model_alias")))
        .or_else(|| {
            props
                .get("model_path")
                .and_then(Value::as_str)
                .map(file)
                .filter(|name| !name.is_empty())
        })
        .or_else(|| listed.name())
        .unwrap_or_else(|| "unknown".to_owned());
    let context = props
        .pointer("/default_generation_settings/n_ctx")
        .and_then(listed::window)
        .or_else(|| listed.context());
    let n_slots = props
        .get("total_slots")
        .and_then(Value::as_u64)
        .and_then(|n| u32::try_from(n).ok());
    let (tools, reason) = tool_mode(props);
    ProbeResult {
        model,
        context,
        n_slots: n_slots.filter(|n| (1..=MAX_SLOTS).contains(n)),
        n_busy: None,
        tools,
        reason: reason.to_owned(),
        server: Server::LlamaCpp,
        images: props.pointer("/modalities/vision").and_then(Value::as_bool) == Some(true),
        tokens: tokens_of(props),
    }
}

/// Returns the control tokens of the model's template and tokenizer.
fn tokens_of(props: &Value) -> ControlTokens {
    let text = |key: &str| props.get(key).and_then(Value::as_str).unwrap_or_default();
    ControlTokens::of_template(text("chat_template"), ["bos_token", "eos_token"].map(text))
}

fn tool_mode(props: &Value) -> (ToolMode, &'static str) {
    let capability = |name: &str| {
        props
            .get("chat_template_caps")
            .and_then(|caps| caps.get(name))
            .and_then(Value::as_bool)
    };
    match (
        capability("supports_tools"),
        capability("supports_tool_calls"),
    ) {
        (Some(false), _) | (_, Some(false)) => (
            ToolMode::Constrained,
            "the model's chat template has no tools",
        ),
        (Some(true), _) | (_, Some(true)) => {
            (ToolMode::Native, "the model's chat template has tools")
        }
        // Servers before `chat_template_caps` expose the template itself.
        (None, None) => match props.get("chat_template").and_then(Value::as_str) {
            Some(template) if template.contains("tools") => {
                (ToolMode::Native, "the model's chat template mentions tools")
            }
            Some(_) => (
                ToolMode::Constrained,
                "the model's chat template does not mention tools",
            ),
            None => (
                ToolMode::Constrained,
                "the server does not show its model's chat template",
            ),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn props(n_ctx: &Value, caps: &Value) -> Value {
        json!({"default_generation_settings": {"n_ctx": n_ctx}, "total_slots": 2, "model_alias": "qwen", "model_path": "/m/x.gguf", "chat_template_caps": caps})
    }

    #[test]
    fn llama_servers_properties_are_read() {
        let props = props(
            &json!(8192),
            &json!({"supports_tools": true, "supports_tool_calls": true}),
        );
        let expected = ProbeResult {
            model: "qwen".into(),
            context: Some(8192),
            n_slots: Some(2),
            n_busy: None,
            tools: ToolMode::Native,
            reason: "the model's chat template has tools".into(),
            server: Server::LlamaCpp,
            images: false,
            tokens: ControlTokens::default(),
        };
        assert_eq!(read(&props, &Value::Null, None), expected);
    }

    #[test]
    fn the_template_decides_the_tool_mode() {
        let mode = |props: &Value| tool_mode(props).0;
        let caps = |tools: bool, calls: bool| {
            props(
                &json!(1),
                &json!({"supports_tools": tools, "supports_tool_calls": calls}),
            )
        };
        assert_eq!(mode(&caps(true, true)), ToolMode::Native);
        assert_eq!(mode(&caps(false, false)), ToolMode::Constrained);
        assert_eq!(mode(&caps(true, false)), ToolMode::Constrained);
        assert_eq!(
            mode(&json!({"chat_template": "{% if tools %}"})),
            ToolMode::Native
        );
        assert_eq!(
            mode(&json!({"chat_template": "{{ x }}"})),
            ToolMode::Constrained
        );
    }

    #[test]
    fn control_tokens_come_from_template_and_tokenizer() {
        let said = json!({"chat_template": "{{ '<user>' + content }}", "bos_token": "<@begin@>", "eos_token": "the end", "total_slots": 1});
        let tokens = read(&said, &Value::Null, None).tokens;
        assert_eq!(
            tokens.neutralise("<user> <@begin@> the end"),
            "<\u{200b}user> <\u{200b}@begin@> the end"
        );
        let odd = json!({"chat_template": ["<user>"], "bos_token": null, "total_slots": 1});
        assert_eq!(
            read(&odd, &Value::Null, None).tokens,
            ControlTokens::default()
        );
    }

    #[test]
    fn busy_slots_are_counted_only_if_each_reports_it() {
        assert_eq!(
            n_busy(
                &json!([{"id": 0, "is_processing": true, "prompt": "x"}, {"id": 1, "is_processing": false}])
            ),
            Some(1)
        );
        assert_eq!(n_busy(&json!([])), Some(0));
        for other in [
            json!(null),
            json!({"status": "ok"}),
            json!([{"id": 0, "state": 1}]),
            json!([{"is_processing": 1}]),
            json!([[true]]),
        ] {
            assert_eq!(n_busy(&other), None, "{other}");
        }
    }

    #[test]
    fn hostile_values_are_not_believed() {
        for n_ctx in [
            json!(0),
            json!(-1),
            json!(1_u64 << 63),
            json!("8192"),
            json!(1e300),
            json!(null),
            json!([8192]),
        ] {
            assert_eq!(
                read(&props(&n_ctx, &Value::Null), &Value::Null, None).context,
                None,
                "{n_ctx}"
            );
        }
        let name = |alias: &str, path: &str| {
            let props = json!({"model_alias": alias, "model_path": path, "total_slots": 1e9});
            let probed = read(&props, &Value::Null, None);
            assert_eq!(probed.n_slots, None);
            probed.model
        };
        assert_eq!(name("\u{1b}]0;x\u{7}evil\u{202e}", ""), "]0;x evil");
        assert_eq!(name(&"n".repeat(10_000), "").chars().count(), MAX_NAME + 1);
        assert_eq!(name("", "C:\\m\\smol.gguf"), "smol");
        assert_eq!(name(" ", ""), "unknown");
    }
}
