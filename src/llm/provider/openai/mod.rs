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

pub(crate) use answer::Parser;
pub(crate) use answer::whole;
pub(crate) use request::Manner;
pub(crate) use request::body;
pub(crate) use request::max_tokens;
pub(crate) use request::reading;
