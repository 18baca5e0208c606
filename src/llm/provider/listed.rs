//! Parses the model list at `/v1/models`, which every kind of server has.

use serde_json::Value;

use crate::error::plain;

/// A larger window is a mistake or hostile, in tokens.
const MAX_CONTEXT: u64 = 16 * 1024 * 1024;
/// Maximum length of a model name, in characters.
pub(super) const MAX_NAME: usize = 200;

/// One model of the list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listed<'a>(Option<&'a Value>);

impl<'a> Listed<'a> {
    /// Finds the wanted model, or else the first chat model.
    pub(super) fn find(models: &'a Value, wanted: Option<&str>) -> Self {
        let list = models.get("data").and_then(Value::as_array);
        let Some(list) = list else { return Self(None) };
        Self(match wanted {
            Some(wanted) => list
                .iter()
                .find(|entry| entry.get("id").and_then(Value::as_str) == Some(wanted)),
            None => list.iter().find(|entry| chats(entry)).or(list.first()),
        })
    }

    /// Finds the first loaded model of LM Studio that is no embedding model.
    pub(super) fn find_loaded(models: &'a Value) -> Self {
        let list = models.get("data").and_then(Value::as_array);
        let is_loaded = |entry: &&Value| {
            chats(entry) && entry.get("state").and_then(Value::as_str) == Some("loaded")
        };
        Self(list.and_then(|list| list.iter().find(is_loaded)))
    }

    pub(super) fn name(self) -> Option<String> {
        name(self.0?.get("id"))
    }

    /// Returns whether it accepts images, as reported by OpenRouter, Mistral, LM Studio and others.
    pub(super) fn sees(self) -> bool {
        let Some(entry) = self.0 else { return false };
        let at = |path: &str| entry.pointer(path).unwrap_or(&Value::Null);
        let takes = |path: &str| has(at(path), "image");
        let modality = at("/architecture/modality")
            .as_str()
            .and_then(|modality| modality.split_once("->"));
        takes("/architecture/input_modalities")
            || takes("/input_modalities")
            || takes("/supported_input_modalities")
            || modality.is_some_and(|(read, _)| read.split('+').any(|kind| kind == "image"))
            || at("/capabilities/vision").as_bool() == Some(true)
            || has(at("/capabilities"), "multimodal")
            || has(at("/capabilities"), "vision")
            || at("/type").as_str() == Some("vlm")
    }

    /// Returns its context window in tokens, under any of the names that servers use.
    pub(super) fn context(self) -> Option<u64> {
        let names = [
            "max_model_len",
            "loaded_context_length",
            "context_length",
            "context_window",
        ];
        names
            .iter()
            .find_map(|key| self.0?.get(key).and_then(window))
    }

    /// Returns the context window with which it is loaded, which may be smaller than its maximum.
    pub(super) fn loaded(self) -> Option<u64> {
        self.0?.get("loaded_context_length").and_then(window)
    }

    /// Returns whether a server of this owner wrote the list.
    pub(super) fn is_of(self, owner: &str) -> bool {
        self.0
            .and_then(|entry| entry.get("owned_by"))
            .and_then(Value::as_str)
            == Some(owner)
    }
}

/// Returns whether a listed model may be a chat model: embedding models are listed too.
fn chats(entry: &Value) -> bool {
    let says = |key: &str| {
        entry
            .get(key)
            .and_then(Value::as_str)
            .is_some_and(|text| text.to_ascii_lowercase().contains("embed"))
    };
    !says("type") && !says("id")
}

/// Returns whether a list of strings contains this one.
fn has(list: &Value, word: &str) -> bool {
    list.as_array()
        .is_some_and(|list| list.iter().any(|entry| entry.as_str() == Some(word)))
}

/// Returns the names of all models of a list.
pub(super) fn names(models: &Value) -> Vec<String> {
    let list = models.get("data").and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(|entry| name(entry.get("id")))
        .collect()
}

/// Returns a name that is safe to show.
pub(super) fn name(value: Option<&Value>) -> Option<String> {
    value
        .and_then(Value::as_str)
        .map(|name| plain(name, MAX_NAME))
        .filter(|name| !name.is_empty())
}

/// Returns a plausible window size.
pub(super) fn window(value: &Value) -> Option<u64> {
    value
        .as_u64()
        .filter(|tokens| (1..=MAX_CONTEXT).contains(tokens))
}
