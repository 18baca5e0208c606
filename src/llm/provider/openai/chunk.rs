//! The wire format of an answer: a chunk of its stream, or the whole body.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::shapes;
use super::shapes::Words;
use crate::provider::assemble::Assembler;
use crate::provider::calls::Piece;
use crate::provider::half::Halved;

#[derive(Deserialize)]
pub(super) struct Chunk<'a> {
    /// Missing if this is no chunk of an answer.
    #[serde(borrow, default, deserialize_with = "shapes::some_list")]
    pub(super) choices: Option<Vec<Choice<'a>>>,
    #[serde(default, deserialize_with = "shapes::maybe")]
    pub(super) usage: Option<WireUsage>,
    #[serde(default, deserialize_with = "shapes::maybe")]
    pub(super) timings: Option<WireTimings>,
    #[serde(default, deserialize_with = "shapes::maybe")]
    pub(super) prompt_progress: Option<WireProgress>,
    #[serde(default, deserialize_with = "shapes::value")]
    pub(super) error: Value,
}

#[derive(Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(default, deserialize_with = "shapes::index")]
    pub(super) index: Option<u64>,
    #[serde(borrow, default, deserialize_with = "shapes::maybe")]
    pub(super) delta: Option<Delta<'a>>,
    /// Instead of `delta` if the answer is not streamed.
    #[serde(borrow, default, deserialize_with = "shapes::maybe")]
    pub(super) message: Option<Delta<'a>>,
    #[serde(default, deserialize_with = "shapes::text")]
    pub(super) finish_reason: Option<String>,
    /// Beside the text if an upstream server failed.
    #[serde(default, deserialize_with = "shapes::value")]
    pub(super) error: Value,
}

#[derive(Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(default)]
    pub(super) content: Option<Words>,
    /// Instead of `content` if the model declines.
    #[serde(default)]
    pub(super) refusal: Option<Words>,
    #[serde(default)]
    pub(super) reasoning_content: Option<Words>,
    /// The name that vLLM, Ollama and `OpenRouter` use.
    #[serde(default)]
    pub(super) reasoning: Option<Words>,
    #[serde(borrow, default, deserialize_with = "shapes::list")]
    pub(super) tool_calls: Vec<CallDelta<'a>>,
    /// The only call of an answer, from the API before it supported several.
    #[serde(borrow, default, deserialize_with = "shapes::maybe")]
    pub(super) function_call: Option<FunctionDelta<'a>>,
}

impl Delta<'_> {
    pub(super) fn is_empty(&self) -> bool {
        let words = [
            &self.content,
            &self.refusal,
            &self.reasoning_content,
            &self.reasoning,
        ];
        words.into_iter().flatten().all(Words::is_empty)
            && self.tool_calls.is_empty()
            && self.function_call.is_none()
    }
}

impl Delta<'_> {
    /// Returns whether it has text, or bytes of a call's arguments.
    pub(super) fn says_more(&self) -> bool {
        let words = [
            &self.content,
            &self.refusal,
            &self.reasoning_content,
            &self.reasoning,
        ];
        let functions = self
            .tool_calls
            .iter()
            .filter_map(|call| call.function.as_ref())
            .chain(&self.function_call);
        let mut arguments = self
            .tool_calls
            .iter()
            .map(|call| call.arguments)
            .chain(functions.map(|function| function.arguments));
        !words.into_iter().flatten().all(Words::is_empty)
            || arguments.any(|raw| raw.is_some_and(|raw| !matches!(raw.get(), "\"\"" | "null")))
    }

    /// Returns whether it names a call.
    pub(super) fn names_a_call(&self) -> bool {
        let functions = self
            .tool_calls
            .iter()
            .filter_map(|call| call.function.as_ref())
            .chain(&self.function_call);
        let mut names = self
            .tool_calls
            .iter()
            .map(|call| &call.name)
            .chain(functions.map(|function| &function.name));
        names.any(|name| name.as_ref().is_some_and(|name| !name.is_empty()))
    }

    /// Returns whether it repeats the answer so far.
    pub(super) fn repeats(&self, answer: &Assembler) -> bool {
        let text = self
            .content
            .as_ref()
            .map_or("", |words| words.text.text())
            .trim();
        let has_calls = !self.tool_calls.is_empty() || self.function_call.is_some();
        answer.has_all(text, has_calls)
    }
}

#[derive(Deserialize)]
pub(super) struct CallDelta<'a> {
    #[serde(default, deserialize_with = "shapes::index")]
    pub(super) index: Option<u64>,
    #[serde(default, deserialize_with = "shapes::text")]
    pub(super) id: Option<String>,
    #[serde(borrow, default, deserialize_with = "shapes::maybe")]
    pub(super) function: Option<FunctionDelta<'a>>,
    /// Belongs into `function`, but some servers put it beside that.
    #[serde(default, deserialize_with = "shapes::text")]
    pub(super) name: Option<String>,
    #[serde(borrow, default)]
    pub(super) arguments: Option<&'a RawValue>,
}

impl CallDelta<'_> {
    pub(super) fn piece(self) -> Piece {
        let function = self.function.unwrap_or(FunctionDelta {
            name: None,
            arguments: None,
        });
        FunctionDelta {
            name: function.name.or(self.name),
            arguments: function.arguments.or(self.arguments),
        }
        .piece(self.index, self.id)
    }
}

#[derive(Deserialize)]
pub(super) struct FunctionDelta<'a> {
    #[serde(default, deserialize_with = "shapes::text")]
    pub(super) name: Option<String>,
    /// A string, or from some servers the object itself.
    #[serde(borrow, default)]
    pub(super) arguments: Option<&'a RawValue>,
}

impl FunctionDelta<'_> {
    pub(super) fn piece(self, index: Option<u64>, id: Option<String>) -> Piece {
        let arguments = self
            .arguments
            .map(RawValue::get)
            .filter(|raw| *raw != "null")
            .map_or_else(Halved::default, |raw| {
                // Never a JSON string as written: its quotes and escapes are not part of the
                // arguments.
                if raw.starts_with('"') {
                    Halved::of_json(raw).unwrap_or_default()
                } else {
                    raw.to_owned().into()
                }
            });
        Piece {
            index,
            id,
            name: self.name,
            arguments,
        }
    }
}

/// Counts are parsed as any number, since servers write -1 for "unknown" and 12.0 for 12.
#[derive(Deserialize)]
pub(super) struct WireUsage {
    #[serde(default, deserialize_with = "shapes::number")]
    pub(super) prompt_tokens: Option<f64>,
    #[serde(default, deserialize_with = "shapes::number")]
    pub(super) completion_tokens: Option<f64>,
    #[serde(default, deserialize_with = "shapes::maybe")]
    pub(super) prompt_tokens_details: Option<WireDetails>,
    /// In US dollars, from `OpenRouter`.
    #[serde(default, deserialize_with = "shapes::number")]
    pub(super) cost: Option<f64>,
}

#[derive(Deserialize)]
pub(super) struct WireDetails {
    #[serde(default, deserialize_with = "shapes::number")]
    pub(super) cached_tokens: Option<f64>,
}

#[derive(Deserialize)]
pub(super) struct WireTimings {
    #[serde(default, deserialize_with = "shapes::number")]
    pub(super) cache_n: Option<f64>,
    #[serde(default, deserialize_with = "shapes::number")]
    pub(super) prompt_n: Option<f64>,
    #[serde(default, deserialize_with = "shapes::number")]
    pub(super) predicted_n: Option<f64>,
    #[serde(default, deserialize_with = "shapes::number")]
    pub(super) prompt_ms: Option<f64>,
    #[serde(default, deserialize_with = "shapes::number")]
    pub(super) predicted_ms: Option<f64>,
}

#[derive(Deserialize)]
pub(super) struct WireProgress {
    #[serde(default, deserialize_with = "shapes::number")]
    pub(super) total: Option<f64>,
    #[serde(default, deserialize_with = "shapes::number")]
    pub(super) processed: Option<f64>,
}

/// No window and no bill comes near this: a server that says more says nothing.
const MAX_COUNT: f64 = (1_u64 << 40) as f64;

/// A cast from floating point saturates: what is negative or not a number becomes 0, as does what
/// cannot be meant.
pub(super) fn count(number: Option<f64>) -> u64 {
    number
        .filter(|number| *number <= MAX_COUNT)
        .unwrap_or_default() as u64
}
