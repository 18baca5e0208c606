//! Any server with `OpenAI`'s API: vLLM, LM Studio, Ollama, `OpenRouter` and others.

use std::time::Duration;

use futures::future::BoxFuture;
use futures::future::FutureExt;
use serde_json::Value;

use super::COMMON;
use super::Provider;
use super::Quirks;
use super::listed::Listed;
use super::vllm;
use crate::control::ControlTokens;
use crate::error::Error;
use crate::options::Options;
use crate::probe::ProbeResult;
use crate::probe::Server;
use crate::server_query::ServerQuery;
use podbay_event::ToolMode;

/// Time limit for a path that only one kind of server has.
const STUDIO: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Compatible;

impl Provider for Compatible {
    fn probe<'a>(
        &'a self,
        asking: &'a ServerQuery<'a>,
        options: &'a Options,
    ) -> BoxFuture<'a, Result<Option<ProbeResult>, Error>> {
        async move {
            let wanted = options.model.as_deref();
            let models = match asking.get_api("/models").await {
                Ok(models) => models,
                // Some gateways list nothing, and if the model is configured the list is not
                // needed.
                Err(
                    Error::Status {
                        code: 403 | 404 | 405 | 501,
                        ..
                    }
                    | Error::NotJson { .. }
                    | Error::Reported { .. },
                ) if wanted.is_some() => Value::Null,
                Err(error) => return Err(error),
            };
            let probed = read(&models, wanted);
            if probed.context.is_some() || models.is_null() {
                return Ok(Some(probed));
            }
            Ok(Some(as_loaded(asking, probed, wanted).await))
        }
        .boxed()
    }

    /// None of these can count tokens without an answer; only the usage of answers is known.
    fn quirks(&self) -> &'static Quirks {
        &COMMON
    }
}

/// Adds what only LM Studio's own API reports: which of its models is loaded, and with which
/// window.
async fn as_loaded(
    asking: &ServerQuery<'_>,
    probed: ProbeResult,
    wanted: Option<&str>,
) -> ProbeResult {
    let Ok(Ok(models)) =
        tokio::time::timeout(STUDIO.min(asking.left() / 2), asking.get("/api/v0/models")).await
    else {
        return probed;
    };
    let listed = match wanted {
        Some(_) => Listed::find(&models, wanted),
        None => Listed::find_loaded(&models),
    };
    ProbeResult {
        model: wanted
            .map(str::to_owned)
            .or_else(|| listed.name())
            .unwrap_or(probed.model),
        context: listed.loaded(),
        ..probed
    }
}

fn read(models: &Value, wanted: Option<&str>) -> ProbeResult {
    let listed = Listed::find(models, wanted);
    ProbeResult {
        model: wanted
            .map(str::to_owned)
            .or_else(|| listed.name())
            .unwrap_or_else(|| "unknown".to_owned()),
        context: listed.context(),
        n_slots: None,
        n_busy: None,
        tools: ToolMode::Native,
        reason: "the server does not tell what its model's template can do".to_owned(),
        server: if listed.is_of(vllm::OWNER) {
            Server::Vllm
        } else {
            Server::Other
        },
        images: listed.sees(),
        tokens: ControlTokens::default(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn other_servers_report_what_they_can() {
        let models = json!({"data": [{"id": "a", "max_model_len": 4096}, {"id": "b", "context_length": 100}]});
        let expected = ProbeResult {
            model: "b".into(),
            context: Some(100),
            n_slots: None,
            n_busy: None,
            tools: ToolMode::Native,
            reason: "the server does not tell what its model's template can do".into(),
            server: Server::Other,
            images: false,
            tokens: ControlTokens::default(),
        };
        assert_eq!(read(&models, Some("b")), expected);
        let first = read(&models, None);
        assert_eq!((first.model.as_str(), first.context), ("a", Some(4096)));
        let unlisted = read(&models, Some("c"));
        assert_eq!((unlisted.model.as_str(), unlisted.context), ("c", None));
        assert_eq!(read(&json!([1]), None).model, "unknown");
    }

    #[test]
    fn a_model_accepts_images_if_its_server_says_so() {
        let sees = |entry: Value| {
            let mut entry = entry;
            entry["id"] = json!("m");
            read(&json!({"data": [entry]}), None).images
        };
        for entry in [
            json!({"architecture": {"input_modalities": ["text", "image"]}}),
            json!({"architecture": {"modality": "text+image->text"}}),
            json!({"input_modalities": ["image"]}),
            json!({"supported_input_modalities": ["text", "image"]}),
            json!({"capabilities": {"vision": true}}),
            json!({"capabilities": ["completion", "multimodal"]}),
            json!({"type": "vlm"}),
        ] {
            assert!(sees(entry.clone()), "{entry}");
        }
        for entry in [
            json!({}),
            json!({"architecture": {"input_modalities": ["text"], "output_modalities": ["image"]}}),
            json!({"architecture": {"modality": "text->image"}}),
            json!({"capabilities": {"vision": false}}),
            json!({"capabilities": {"vision": "yes"}, "type": "llm", "input_modalities": "image"}),
            json!({"architecture": 7}),
        ] {
            assert!(!sees(entry.clone()), "{entry}");
        }
    }
}
