//! Another model for a session that is open: looked for before the session ends.

use async_recursion::async_recursion as boxed;
use tokio_util::sync::CancellationToken;

use super::Error;
use super::models::store;
use podbay_config::Config;
use podbay_event::Secret;
use podbay_llm::Client;
use podbay_llm::Endpoint;
use podbay_session::State;

/// Names of models that an error lists.
const MOST_NAMES: usize = 10;

/// Refuses a model that the endpoint does not list, where it lists any, or that Podbay's own list
/// does not know where no endpoint is set.
#[boxed]
pub async fn check_model(
    config: &Config,
    state: &State,
    key: Option<Secret>,
    name: &str,
    cancel: &CancellationToken,
) -> Result<(), Error> {
    let Some(endpoint) = endpoint(config)? else {
        let store = store(config, state)?;
        return store.check(name).await.map_err(Error::Inference);
    };
    let shown = endpoint.to_string();
    let names = names(endpoint, config, key, cancel).await?;
    if names.is_empty() || is_listed(&names, name) {
        return Ok(());
    }
    Err(Error::usage(
        format!("{shown} lists no model `{name}`"),
        format!(
            "it lists {}; one that it does not list can be named at the start: `--model NAME`",
            first(&names)
        ),
    ))
}

/// Says which models could answer instead; nothing where the endpoint lists none.
#[boxed]
pub async fn other_models(
    config: &Config,
    key: Option<Secret>,
    cancel: &CancellationToken,
) -> Result<Option<String>, Error> {
    let Some(endpoint) = endpoint(config)? else {
        return Ok(Some("`podbay models list` names them".to_owned()));
    };
    let names = names(endpoint, config, key, cancel).await?;
    Ok((!names.is_empty()).then(|| first(&names)))
}

fn endpoint(config: &Config) -> Result<Option<Endpoint>, Error> {
    let endpoint = config.llm.endpoint.as_deref().map(Endpoint::parse);
    endpoint
        .transpose()
        .map_err(|error| Error::Model(error.into()))
}

async fn names(
    endpoint: Endpoint,
    config: &Config,
    key: Option<Secret>,
    cancel: &CancellationToken,
) -> Result<Vec<String>, Error> {
    let client = Client::new(endpoint, key, config.llm.clone()).map_err(Error::Model)?;
    client
        .model_names(cancel, config.llm.probe_timeout())
        .await
        .map_err(Error::Model)
}

/// Has another model answer from the next session on.
pub fn set_model(config: &mut Config, name: String) {
    if config.llm.endpoint.is_some() {
        config.llm.model = Some(name);
    } else {
        config.inference.model = Some(name);
    }
}

/// Ollama's names have a tag, which is `latest` where none is said.
fn is_listed(names: &[String], wanted: &str) -> bool {
    names
        .iter()
        .any(|name| name == wanted || name.strip_suffix(":latest") == Some(wanted))
}

fn first(names: &[String]) -> String {
    let listed = names[..names.len().min(MOST_NAMES)].join(", ");
    match names.len().saturating_sub(MOST_NAMES) {
        0 => listed,
        n => format!("{listed} and {n} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podbay_inference as inference;

    #[test]
    fn a_listed_model_is_known_by_its_whole_name() {
        let names = ["qwen3:8b", "llama3:latest"].map(str::to_owned);
        for (wanted, is) in [
            ("qwen3:8b", true),
            ("llama3", true),
            ("llama3:latest", true),
            ("qwen3", false),
            ("qwen3:8", false),
            ("", false),
        ] {
            assert_eq!(is_listed(&names, wanted), is, "{wanted}");
        }
        let many: Vec<String> = (0..12).map(|n| format!("m{n}")).collect();
        assert!(first(&many).ends_with("m9 and 2 more"), "{}", first(&many));
        assert_eq!(first(&names), "qwen3:8b, llama3:latest");
    }

    #[tokio::test]
    async fn without_an_endpoint_a_model_is_one_of_our_list_or_a_file() {
        let temp = tempfile::tempdir().expect("a folder");
        let state = State::open(temp.path()).expect("opens");
        let mut config = Config::default();
        let cancel = CancellationToken::new();
        let check = |name: &'static str| {
            let (config, state, cancel) = (config.clone(), state.clone(), cancel.clone());
            async move { check_model(&config, &state, None, name, &cancel).await }
        };
        check("smollm2-135m").await.expect("it is listed");
        let unknown = check("nope").await.expect_err("no such model");
        assert!(unknown.is_unknown_model(), "{unknown:?}");
        let file = check("/nowhere/m.gguf").await.expect_err("no such file");
        assert!(
            matches!(file, Error::Inference(inference::Error::Model { .. })),
            "{file:?}"
        );
        set_model(&mut config, "smollm2-135m".to_owned());
        assert_eq!(
            (config.inference.model.as_deref(), config.llm.model),
            (Some("smollm2-135m"), None)
        );
    }
}
