use serde::Deserialize;
use serde::Serialize;

use super::engine::engine;
use super::engine::engines;

/// A search engine for `web_search`: the section `[search]`. Without `engine` the model has no
/// such tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Options {
    /// `searxng`, `brave`, `tavily` or `kagi`. Queries go there from your machine, not through the
    /// gateway.
    pub engine: Option<String>,
    /// Its address, such as `https://searx.example.org`; needed for `searxng` alone.
    pub url: Option<String>,
    /// Environment variable that holds the key. Default: `BRAVE_API_KEY`, `TAVILY_API_KEY` or
    /// `KAGI_API_KEY`.
    pub key_env: Option<String>,
}

impl Options {
    /// Returns everything that is wrong with these settings: the key and why.
    pub fn mistakes(&self) -> Vec<(String, String)> {
        let mut mistakes = Vec::new();
        let Some(name) = &self.engine else {
            return mistakes;
        };
        let Some(engine) = engine(name) else {
            let known: Vec<&str> = engines()
                .iter()
                .map(|engine| engine.name.as_str())
                .collect();
            let problem = format!(
                "`{name}` is no search engine; there are {}",
                known.join(", ")
            );
            mistakes.push(("search.engine".to_owned(), problem));
            return mistakes;
        };
        match &self.url {
            None if engine.base.is_none() => mistakes.push((
                "search.url".to_owned(),
                format!("`{name}` needs the address of a server of it"),
            )),
            Some(url) if !url.starts_with("https://") && !url.starts_with("http://") => mistakes
                .push((
                    "search.url".to_owned(),
                    "it is no address; write `https://HOST`".to_owned(),
                )),
            _ => {}
        }
        mistakes
    }
}
