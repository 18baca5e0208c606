//! vLLM, which can count tokens besides what all such servers can do.

use futures::future::BoxFuture;
use futures::future::FutureExt;
use serde_json::Value;
use serde_json::json;

use super::COMMON;
use super::Compatible;
use super::Provider;
use super::Quirks;
use crate::error::Error;
use crate::options::Options;
use crate::probe::ProbeResult;
use crate::prompt::Prompt;
use crate::server_query::ServerQuery;

/// Its owner in the model list.
pub(super) const OWNER: &str = "vllm";

#[derive(Debug)]
pub(crate) struct Vllm;

impl Provider for Vllm {
    fn probe<'a>(
        &'a self,
        asking: &'a ServerQuery<'a>,
        options: &'a Options,
    ) -> BoxFuture<'a, Result<Option<ProbeResult>, Error>> {
        Compatible.probe(asking, options)
    }

    fn count<'a>(
        &'a self,
        asking: &'a ServerQuery<'a>,
        text: &'a str,
    ) -> BoxFuture<'a, Option<u64>> {
        async move {
            // A server that serves one model needs no name for it.
            let body = json!({"prompt": text, "add_special_tokens": false}).to_string();
            counted(&asking.post("/tokenize", body).await.ok()?)
        }
        .boxed()
    }

    /// As rendered by its template, tools included.
    fn count_prompt<'a>(
        &'a self,
        asking: &'a ServerQuery<'a>,
        prompt: &'a Prompt,
    ) -> BoxFuture<'a, Option<u64>> {
        async move {
            let head = prompt.head();
            let answer = asking
                .post(
                    "/tokenize",
                    format!("{head}],\"add_generation_prompt\":true}}"),
                )
                .await;
            match answer.ok().as_ref().and_then(counted) {
                Some(tokens) => Some(tokens),
                // If a template refuses the conversation: the JSON has about the same length.
                None => self.count(asking, &head).await,
            }
        }
        .boxed()
    }

    fn quirks(&self) -> &'static Quirks {
        const QUIRKS: Quirks = Quirks {
            repeat_penalty: "repetition_penalty",
            ..COMMON
        };
        &QUIRKS
    }
}

fn counted(answer: &Value) -> Option<u64> {
    answer.get("count").and_then(Value::as_u64)
}
