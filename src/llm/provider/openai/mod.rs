//! `OpenAI`'s chat completions, as llama-server, LM Studio, vLLM, Ollama and `OpenRouter` serve them.

mod answer;
mod chunk;
mod numbers;
#[cfg(test)]
mod oddities;
mod progress;
mod request;
mod shapes;

pub(in crate::llm) use answer::Parser;
pub(in crate::llm) use answer::whole;
pub(in crate::llm) use request::Manner;
pub(in crate::llm) use request::body;
pub(in crate::llm) use request::max_tokens;
pub(in crate::llm) use request::reading;
