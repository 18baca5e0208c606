//! Search engines, as rows of a data file.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;

const FILE: &str = include_str!("engines.toml");

/// A search engine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Engine {
    pub(crate) name: String,
    pub(crate) method: Method,
    /// Its usual address; none where users have their own.
    #[serde(default)]
    pub(crate) base: Option<String>,
    pub(crate) path: String,
    pub(crate) query: String,
    #[serde(default)]
    pub(crate) count: Option<String>,
    #[serde(default)]
    pub(crate) fixed: BTreeMap<String, String>,
    /// A header with the key.
    #[serde(default)]
    pub(crate) header: Option<[String; 2]>,
    #[serde(default)]
    pub(crate) key_variable: Option<String>,
    results: String,
    title: String,
    url: String,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) enum Method {
    #[serde(rename = "GET")]
    Get,
    #[serde(rename = "POST")]
    Post,
}

/// One result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) title: String,
    pub(crate) url: String,
    pub(crate) text: String,
}

#[derive(Deserialize)]
struct File {
    engine: Vec<Engine>,
}

static ENGINES: LazyLock<Vec<Engine>> = LazyLock::new(|| {
    toml::from_str::<File>(FILE)
        .expect("our own file, which a test reads")
        .engine
});

pub(crate) fn engines() -> &'static [Engine] {
    &ENGINES
}

pub(crate) fn engine(name: &str) -> Option<&'static Engine> {
    engines().iter().find(|engine| engine.name == name)
}

impl Engine {
    /// Finds the results in an answer; `None`: it has none where they should stand.
    pub(crate) fn results(&self, answer: &Value, most: usize) -> Option<Vec<Found>> {
        let list = at(answer, &self.results)?.as_array()?;
        let text = |result: &Value, path: &str| {
            at(result, path)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let found = list.iter().map(|result| Found {
            title: text(result, &self.title),
            url: text(result, &self.url),
            text: text(result, &self.text),
        });
        // Some lists have other things in them, such as related queries.
        Some(
            found
                .filter(|found| !found.url.is_empty())
                .take(most)
                .collect(),
        )
    }
}

fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.')
        .try_fold(value, |value, part| value.get(part))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn results_stand_where_the_rows_say() {
        let result = |text: &str| json!({"title": "T", "url": "https://a.example/", text: "words"});
        for (name, answer) in [
            ("searxng", json!({"results": [result("content")]})),
            (
                "brave",
                json!({"web": {"results": [result("description")]}}),
            ),
            (
                "tavily",
                json!({"results": [result("content"), {"title": "no address"}]}),
            ),
            (
                "kagi",
                json!({"data": [result("snippet"), {"t": 1, "list": ["related"]}]}),
            ),
        ] {
            let found = engine(name).expect(name).results(&answer, 8);
            let expected = Found {
                title: "T".to_owned(),
                url: "https://a.example/".to_owned(),
                text: "words".to_owned(),
            };
            assert_eq!(found, Some(vec![expected]), "{name}");
            assert_eq!(
                engine(name).expect(name).results(&json!({"error": 1}), 8),
                None
            );
            assert_eq!(
                engine(name).expect(name).results(&answer, 0),
                Some(Vec::new())
            );
        }
    }

    #[test]
    fn an_engine_with_a_key_says_where_it_comes_from_and_where_it_goes() {
        for engine in engines() {
            assert_eq!(
                engine.header.is_some(),
                engine.key_variable.is_some(),
                "{}",
                engine.name
            );
            let has_key = |[_, value]: &[String; 2]| value.contains("{key}");
            assert!(engine.header.as_ref().is_none_or(has_key));
            assert!(engine.path.starts_with('/'));
            let is_secure = |base: &String| base.starts_with("https://");
            assert!(engine.base.as_ref().is_none_or(is_secure));
        }
    }
}
