//! What the server is, asked before the first message.
//!
//! llama-server says in `/props` how large a slot's window is and what its chat template can do; other servers have only `/v1/models`.
//! Evidence decides how tools are told: a template that cannot show them makes llama-server drop them without a word.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::client::Client;
use super::error::Error;
use super::error::plain;
use super::exchange;
use super::exchange::Limits;
use super::options::ToolModeChoice;
use super::provider::failure::Failure;
use crate::event::ToolMode;

/// Longest answer to a probe, in bytes: chat templates and the model lists of hubs are long.
const MAX_BODY: usize = 4 * 1024 * 1024;
/// A window beyond this is a mistake or a trick, in tokens.
const MAX_CONTEXT: u64 = 16 * 1024 * 1024;
/// Longest model name, in characters.
const MAX_NAME: usize = 200;
/// Pause between two questions while the model loads.
const LOADING: Duration = Duration::from_millis(500);

/// What was found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probed {
    pub model: String,
    /// Tokens per slot; `None` where the server does not say.
    pub context: Option<u64>,
    /// Conversations the server holds at once.
    pub n_slots: Option<u32>,
    pub tools: ToolMode,
    /// Why tools are told that way.
    pub reason: String,
    pub server: Server,
    /// The model can be shown images, as far as the server says.
    pub images: bool,
}

impl Probed {
    /// Returns whether the model's thinking should go back with its messages; other servers may refuse the field.
    pub fn replay_thinking(&self) -> bool {
        self.server == Server::LlamaCpp
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    LlamaCpp,
    /// Any OpenAI-compatible server.
    Other,
}

impl Client {
    /// Asks the server what it is, within `timeout`; waits for its model to load within the same time.
    pub async fn probe(&self, cancel: &CancellationToken, timeout: Duration) -> Result<Probed, Error> {
        self.ask_what_it_is(cancel, timeout).await.map_err(|error| match error {
            // No answer was begun that more time could finish.
            Error::Timeout { after } => Error::NoAnswer { endpoint: self.inner().shown_endpoint.clone(), after },
            other => other,
        })
    }

    async fn ask_what_it_is(&self, cancel: &CancellationToken, timeout: Duration) -> Result<Probed, Error> {
        let begun = Instant::now();
        let limits = Limits { cancel, until: begun.checked_add(timeout), deadline: timeout };
        let props = loop {
            match self.get(self.inner().endpoint.at_root("/props"), &limits).await {
                Ok(value) => break Some(value).filter(is_llama_server),
                Err(Error::ModelLoading { endpoint, .. }) => {
                    limits.pause(LOADING).await.map_err(|error| match error {
                        Error::Timeout { .. } => Error::ModelLoading { endpoint, waited: begun.elapsed() },
                        other => other,
                    })?;
                }
                // It has no such page: another kind of server.
                Err(
                    Error::Status { .. } | Error::NotJson { .. } | Error::Reported { .. } | Error::Redirect { .. } | Error::TooLarge { .. },
                ) => break None,
                // Where `/props` needs a key that is wrong, so does the rest.
                Err(error) => return Err(error),
            }
        };
        let models = match (&props, self.get(self.inner().endpoint.api("/models"), &limits).await) {
            (_, Ok(value)) => value,
            (None, Err(error)) | (_, Err(error @ (Error::Cancelled | Error::Unauthorized { .. }))) => return Err(error),
            (Some(_), Err(_)) => Value::Null,
        };
        let options = &self.inner().options;
        let probed = judge(props.as_ref(), &models, options.model.as_deref(), options.tool_mode);
        self.remember(&probed);
        Ok(probed)
    }

    async fn get(&self, url: String, limits: &Limits<'_>) -> Result<Value, Error> {
        let (endpoint, idle) = (self.inner().shown_endpoint.as_str(), limits.deadline);
        // One limit is enough: what is slower than the deadline is slower than the idle limit.
        let idle = idle.saturating_add(Duration::from_secs(1));
        let response = exchange::send(self.request(reqwest::Method::GET, url), endpoint, idle, limits).await?;
        if !response.status().is_success() {
            return Err(exchange::failed(response, endpoint, self.key(), idle, limits).await);
        }
        let (is_html, packed) = (exchange::is_html(&response), exchange::packing(&response));
        let failure = Failure { endpoint, key: self.key(), code: 200, is_html, packed, ..Failure::default() };
        if packed.is_some() {
            return Err(failure.not_json(&[]));
        }
        let body = exchange::rest(response, Vec::new(), MAX_BODY, endpoint, idle, limits).await?;
        let value: Value = serde_json::from_slice(&body).map_err(|_| failure.not_json(&body))?;
        match failure.of_value(&value) {
            Some(error) => Err(error),
            None => Ok(value),
        }
    }
}

fn is_llama_server(props: &Value) -> bool {
    ["default_generation_settings", "chat_template", "chat_template_caps", "total_slots"].iter().any(|key| props.get(key).is_some())
}

fn judge(props: Option<&Value>, models: &Value, wanted: Option<&str>, choice: ToolModeChoice) -> Probed {
    let entry = model_entry(models, wanted);
    let named = |value: Option<&Value>| value.and_then(Value::as_str).map(|name| plain(name, MAX_NAME)).filter(|name| !name.is_empty());
    let from_props = || {
        let props = props?;
        let file = |path: &str| plain(path.rsplit(['/', '\\']).next().unwrap_or(path).trim_end_matches(".gguf"), MAX_NAME);
        named(props.get("model_alias"))
            .or_else(|| props.get("model_path").and_then(Value::as_str).map(file).filter(|name| !name.is_empty()))
    };
    let model = wanted
        .map(str::to_owned)
        .or_else(from_props)
        .or_else(|| named(entry.and_then(|entry| entry.get("id"))))
        .unwrap_or_else(|| "unknown".to_owned());
    let context = props.and_then(|props| props.pointer("/default_generation_settings/n_ctx")).and_then(window).or_else(|| {
        entry.and_then(|entry| {
            ["max_model_len", "loaded_context_length", "context_length", "context_window"]
                .iter()
                .find_map(|key| entry.get(key).and_then(window))
        })
    });
    let n_slots = props
        .and_then(|props| props.get("total_slots"))
        .and_then(Value::as_u64)
        .and_then(|n| u32::try_from(n).ok())
        .filter(|n| (1..=1024).contains(n));
    let (tools, reason) = tool_mode(props, choice);
    Probed {
        model,
        context,
        n_slots,
        tools,
        reason: reason.to_owned(),
        server: if props.is_some() { Server::LlamaCpp } else { Server::Other },
        images: props.and_then(|props| props.pointer("/modalities/vision")).and_then(Value::as_bool) == Some(true),
    }
}

/// Returns the wanted model's entry in `/v1/models`, or the first.
fn model_entry<'a>(models: &'a Value, wanted: Option<&str>) -> Option<&'a Value> {
    let list = models.get("data").and_then(Value::as_array)?;
    let found = wanted.and_then(|wanted| list.iter().find(|entry| entry.get("id").and_then(Value::as_str) == Some(wanted)));
    match wanted {
        Some(_) => found,
        None => list.first(),
    }
}

/// Returns a window that can be true.
fn window(value: &Value) -> Option<u64> {
    value.as_u64().filter(|tokens| (1..=MAX_CONTEXT).contains(tokens))
}

fn tool_mode(props: Option<&Value>, choice: ToolModeChoice) -> (ToolMode, &'static str) {
    match choice {
        ToolModeChoice::Native => return (ToolMode::Native, "set by llm.tool_mode"),
        ToolModeChoice::Constrained => return (ToolMode::Constrained, "set by llm.tool_mode"),
        ToolModeChoice::Text => return (ToolMode::Text, "set by llm.tool_mode"),
        ToolModeChoice::Auto => {}
    }
    let Some(props) = props else { return (ToolMode::Native, "the server does not tell what its model's template can do") };
    let capability = |name: &str| props.get("chat_template_caps").and_then(|caps| caps.get(name)).and_then(Value::as_bool);
    match (capability("supports_tools"), capability("supports_tool_calls")) {
        (Some(false), _) | (_, Some(false)) => (ToolMode::Constrained, "the model's chat template has no tools"),
        (Some(true), _) | (_, Some(true)) => (ToolMode::Native, "the model's chat template has tools"),
        // Servers before `chat_template_caps` show the template itself.
        (None, None) => match props.get("chat_template").and_then(Value::as_str) {
            Some(template) if template.contains("tools") => (ToolMode::Native, "the model's chat template mentions tools"),
            Some(_) => (ToolMode::Constrained, "the model's chat template does not mention tools"),
            None => (ToolMode::Constrained, "the server does not show its model's chat template"),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn props(n_ctx: &Value, caps: &Value) -> Value {
        json!({"default_generation_settings": {"n_ctx": n_ctx}, "total_slots": 2, "model_alias": "qwen", "model_path": "/m/x.gguf", "chat_template_caps": caps})
    }

    #[test]
    fn llama_server_says_it_all() {
        let props = props(&json!(8192), &json!({"supports_tools": true, "supports_tool_calls": true}));
        let expected = Probed {
            model: "qwen".into(),
            context: Some(8192),
            n_slots: Some(2),
            tools: ToolMode::Native,
            reason: "the model's chat template has tools".into(),
            server: Server::LlamaCpp,
            images: false,
        };
        assert_eq!(judge(Some(&props), &Value::Null, None, ToolModeChoice::Auto), expected);
    }

    #[test]
    fn other_servers_say_what_they_can() {
        let models = json!({"data": [{"id": "a", "max_model_len": 4096}, {"id": "b", "context_length": 100}]});
        let expected = Probed {
            model: "b".into(),
            context: Some(100),
            n_slots: None,
            tools: ToolMode::Native,
            reason: "the server does not tell what its model's template can do".into(),
            server: Server::Other,
            images: false,
        };
        assert_eq!(judge(None, &models, Some("b"), ToolModeChoice::Auto), expected);
        let first = judge(None, &models, None, ToolModeChoice::Text);
        assert_eq!((first.model.as_str(), first.context, first.tools), ("a", Some(4096), ToolMode::Text));
    }

    #[test]
    fn the_template_decides_how_tools_are_told() {
        let mode = |props: &Value, choice| tool_mode(Some(props), choice).0;
        let caps = |tools: bool, calls: bool| props(&json!(1), &json!({"supports_tools": tools, "supports_tool_calls": calls}));
        assert_eq!(mode(&caps(true, true), ToolModeChoice::Auto), ToolMode::Native);
        assert_eq!(mode(&caps(false, false), ToolModeChoice::Auto), ToolMode::Constrained);
        assert_eq!(mode(&caps(true, false), ToolModeChoice::Auto), ToolMode::Constrained);
        assert_eq!(mode(&caps(false, false), ToolModeChoice::Native), ToolMode::Native);
        assert_eq!(mode(&json!({"chat_template": "{% if tools %}"}), ToolModeChoice::Auto), ToolMode::Native);
        assert_eq!(mode(&json!({"chat_template": "{{ x }}"}), ToolModeChoice::Auto), ToolMode::Constrained);
    }

    #[test]
    fn hostile_values_are_not_believed() {
        for n_ctx in [json!(0), json!(-1), json!(1_u64 << 63), json!("8192"), json!(1e300), json!(null), json!([8192])] {
            assert_eq!(judge(Some(&props(&n_ctx, &Value::Null)), &Value::Null, None, ToolModeChoice::Auto).context, None, "{n_ctx}");
        }
        let name = |alias: &str, path: &str| {
            let props = json!({"model_alias": alias, "model_path": path, "total_slots": 1e9});
            let probed = judge(Some(&props), &Value::Null, None, ToolModeChoice::Auto);
            assert_eq!(probed.n_slots, None);
            probed.model
        };
        assert_eq!(name("\u{1b}]0;x\u{7}evil\u{202e}", ""), "]0;x evil");
        assert_eq!(name(&"n".repeat(10_000), "").chars().count(), MAX_NAME + 1);
        assert_eq!(name("", "C:\\m\\smol.gguf"), "smol");
        assert_eq!(name(" ", ""), "unknown");
    }
}
