//! `OpenAI`'s chat completions, as llama-server, LM Studio, vLLM, Ollama and `OpenRouter` serve
//! them.

mod answer;
mod chunk;
mod numbers;
#[cfg(test)]
mod oddities;
mod progress;
mod request;
mod shapes;

use futures::future::BoxFuture;
use futures::future::FutureExt;

use super::Compatible;
use super::LlamaCpp;
use super::Provider;
use super::api::ChatApi;
use super::api::EventParser;
use super::api::Framing;
use super::assemble::Assembler;
use super::failure::Failure;
use super::listed;
use crate::dialect;
use crate::dialect::Dialect;
use crate::error::Error;
use crate::http::Endpoint;
use crate::options::Options;
use crate::prompt::Prompt;
use crate::server_query::ServerQuery;
use crate::stream::Request;
use crate::stream::Update;
pub(crate) use request::Manner;
pub(crate) use request::max_tokens;
pub(crate) use request::reading;

#[derive(Debug)]
pub(super) struct OpenAi;

impl ChatApi for OpenAi {
    fn kinds(&self) -> &'static [&'static dyn Provider] {
        &[&LlamaCpp, &Compatible]
    }

    fn model_names<'a>(
        &'a self,
        asking: &'a ServerQuery<'a>,
    ) -> BoxFuture<'a, Result<Vec<String>, Error>> {
        async move { Ok(listed::names(&asking.get_api("/models").await?)) }.boxed()
    }

    fn dialect(&self) -> Dialect {
        dialect::OPENAI
    }

    fn route(&self, endpoint: &Endpoint) -> String {
        endpoint.api("/chat/completions")
    }

    fn body(
        &self,
        prompt: &Prompt,
        request: &Request,
        options: &Options,
        manner: &Manner,
        stream: bool,
    ) -> Vec<u8> {
        request::body(prompt, request, options, manner, stream)
    }

    fn framing(&self) -> Framing {
        Framing::Events
    }

    fn parser(&self) -> Box<dyn EventParser> {
        Box::<answer::Parser>::default()
    }

    fn whole(
        &self,
        body: &[u8],
        failure: &Failure<'_>,
        to: &mut Assembler,
        on: &mut (dyn FnMut(Update) + Send),
    ) -> Result<(), Error> {
        answer::whole(body, failure, to, on)
    }
}
