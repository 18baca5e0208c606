use super::Config;
use super::Error;
use super::Loaded;
use super::Origin;

const NAME: &str = "llm.provider";
const ENDPOINT: &str = "llm.endpoint";
const MODEL: &str = "llm.model";
const OWN_MODEL: &str = "inference.model";
/// Keys that a provider sets.
const DECIDED: [&str; 3] = [ENDPOINT, "llm.api_key_env", "llm.api_key_file"];

/// Copies the settings of the chosen provider to `[llm]`.
///
/// An endpoint in a stronger layer overrides the provider; one in the same layer is an error. A key
/// belongs to the endpoint it was named for: the key in `[llm]` is dropped, unless a flag or
/// variable names it for this run.
pub(super) fn choose(loaded: &mut Loaded<Config>) -> Result<(), Error> {
    let Some(name) = loaded
        .config
        .llm
        .provider
        .clone()
        .filter(|name| !name.is_empty())
    else {
        return Ok(());
    };
    let origin = loaded.origins.of(NAME).clone();
    let Some(provider) = loaded.config.providers.get(&name).cloned() else {
        let known: Vec<&str> = loaded.config.providers.keys().map(String::as_str).collect();
        let what = if known.is_empty() {
            format!(
                "there is no provider `{name}`: the settings have none; write a section [providers.{name}]"
            )
        } else {
            format!(
                "there is no provider `{name}`; there are: {}",
                known.join(", ")
            )
        };
        return Err(Error::Value {
            origin,
            key: NAME.to_owned(),
            what,
        });
    };
    if loaded.config.llm.endpoint.is_some() {
        let other = loaded.origins.of(ENDPOINT).clone();
        match rank(&other).cmp(&rank(&origin)) {
            std::cmp::Ordering::Greater => return Ok(()),
            std::cmp::Ordering::Less => {}
            std::cmp::Ordering::Equal => {
                let what = format!(
                    "{other} names an endpoint too (`{ENDPOINT}`), and only one of them can be used: remove one"
                );
                return Err(Error::Value {
                    origin,
                    key: NAME.to_owned(),
                    what,
                });
            }
        }
    }
    let config = &mut loaded.config;
    let of_this_run = |key: &str| rank(loaded.origins.of(key)) > FILE;
    let (named_env, named_file) = (
        config.llm.api_key_env.clone(),
        config.llm.api_key_file.clone(),
    );
    let named_model = config.llm.model.clone();
    provider.apply(&mut config.llm);
    if of_this_run("llm.api_key_env") && loaded.origins.of("llm.api_key_env") != &alias() {
        (config.llm.api_key_env, config.llm.api_key_file) = (named_env, None);
    } else if of_this_run("llm.api_key_file") {
        (config.llm.api_key_env, config.llm.api_key_file) = (None, named_file);
    }
    if of_this_run(MODEL) {
        config.llm.model = named_model;
    }
    let decided: Vec<&str> = DECIDED
        .into_iter()
        .filter(|key| !of_this_run(key) || *key == ENDPOINT)
        .collect();
    for key in decided {
        loaded.origins.set(key, origin.clone());
    }
    Ok(())
}

/// Applies `--model` to the endpoint, if the settings name one and the command line does not.
pub(super) fn ask_for_model(loaded: &mut Loaded<Config>) {
    let flag = loaded.origins.of(OWN_MODEL).clone();
    if loaded.config.llm.endpoint.is_none() || !matches!(flag, Origin::Flag { .. }) {
        return;
    }
    if let Some(name) = loaded.config.inference.model.take() {
        loaded.config.llm.model = Some(name);
        loaded.origins.forget(OWN_MODEL);
        loaded.origins.set(MODEL, flag);
    }
}

/// Refuses an invalid price: a negative one would let a bounded run continue forever.
pub(super) fn check_price(loaded: &Loaded<Config>) -> Result<(), Error> {
    let Some((part, price)) = loaded.config.llm.price.mistake() else {
        return Ok(());
    };
    let key = format!("llm.price.{part}");
    let what = format!("{price} is no price: write US dollars for a million tokens, 0 or more");
    let origin = match loaded.origins.of(&key) {
        Origin::Default => loaded.origins.of(NAME),
        named => named,
    };
    Err(Error::Value {
        origin: origin.clone(),
        key,
        what,
    })
}

const FILE: u8 = 1;

/// Returns the precedence of a layer; all files are equal.
fn rank(origin: &Origin) -> u8 {
    match origin {
        Origin::Default => 0,
        Origin::File { .. } => FILE,
        Origin::Environment { .. } => 2,
        Origin::Flag { .. } => 3,
    }
}

/// A variable that many shells have set for another purpose.
fn alias() -> Origin {
    Origin::Environment {
        variable: "OPENAI_API_KEY".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Flag;
    use super::super::Sources;
    use super::*;

    const FILES: &str = r#"
[providers.far]
base_url = "https://far.example/v1"
api_key_env = "FAR_KEY"
model = "big"
price = { prompt = 2.0, completion = 8.0 }
sampling.chat.temperature = 0.5

[providers.near]
base_url = "http://127.0.0.1:8000/v1"
"#;

    fn load(
        text: &str,
        variables: &[(&str, &str)],
        flags: &[(&str, &str, &str)],
    ) -> Result<Config, Error> {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("config.toml");
        std::fs::write(&file, format!("{text}\n{FILES}")).expect("written");
        let sources = Sources {
            user: Some(file),
            variables: variables
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            flags: flags
                .iter()
                .map(|(name, key, value)| Flag::new(*name, *key, *value))
                .collect(),
            ..Sources::default()
        };
        Config::load(&sources).map(|loaded| loaded.config)
    }

    #[track_caller]
    fn check(
        text: &str,
        variables: &[(&str, &str)],
        flags: &[(&str, &str, &str)],
        expected: (&str, Option<&str>, Option<&str>),
    ) {
        let config = load(text, variables, flags).expect("reads");
        let llm = &config.llm;
        assert_eq!(
            (
                llm.endpoint.as_deref().unwrap_or("none"),
                llm.api_key_env.as_deref(),
                llm.model.as_deref()
            ),
            expected
        );
    }

    #[test]
    fn a_provider_brings_its_address_its_key_and_its_model() {
        let far = ("https://far.example/v1", Some("FAR_KEY"), Some("big"));
        check("llm.provider = \"far\"", &[], &[], far);
        check("", &[], &[("--provider", "llm.provider", "far")], far);
        check("", &[("PODBAY_LLM_PROVIDER", "far")], &[], far);
        check("", &[], &[], ("none", None, None));
        check(
            "llm.provider = \"far\"",
            &[],
            &[("--provider", "llm.provider", "near")],
            ("http://127.0.0.1:8000/v1", None, None),
        );
        let flags = [
            ("--provider", "llm.provider", "far"),
            ("--model", "inference.model", "small"),
        ];
        check(
            "",
            &[],
            &flags,
            ("https://far.example/v1", Some("FAR_KEY"), Some("small")),
        );
        // A flag is stronger than a variable.
        check(
            "",
            &[("PODBAY_LLM_MODEL", "other")],
            &flags,
            ("https://far.example/v1", Some("FAR_KEY"), Some("small")),
        );
        let config = load("llm.provider = \"far\"", &[], &[]).expect("reads");
        assert_eq!(
            (
                config.llm.price.completion,
                config.llm.sampling.chat.temperature
            ),
            (Some(8.0), Some(0.5))
        );
    }

    #[test]
    fn a_number_in_place_of_a_word_lists_the_words() {
        let listed = |error: Error| {
            let said = error.to_string();
            assert!(
                said.contains("there is no `1`: write")
                    && said.contains("`constrained`")
                    && !said.contains("variant"),
                "{said}"
            );
        };
        listed(load("", &[("PODBAY_LLM_TOOL_MODE", "1")], &[]).expect_err("is no mode"));
        listed(load("llm.tool_mode = 1", &[], &[]).expect_err("is no mode"));
        listed(
            load(
                "[providers.x]\nbase_url = \"http://127.0.0.1:1\"\ntool_mode = 1",
                &[],
                &[],
            )
            .expect_err("is no mode"),
        );
    }

    #[test]
    fn a_named_model_is_requested_from_the_chosen_endpoint() {
        let own = "llm.endpoint = \"https://own.example/v1\"\nllm.model = \"usual\"";
        let flags = [("--model", "inference.model", "small")];
        check(
            own,
            &[],
            &flags,
            ("https://own.example/v1", None, Some("small")),
        );
        check(
            own,
            &[],
            &[],
            ("https://own.example/v1", None, Some("usual")),
        );
        check(
            "",
            &[("PODBAY_LLM_ENDPOINT", "http://127.0.0.1:1")],
            &flags,
            ("http://127.0.0.1:1", None, Some("small")),
        );
        check(
            "llm.provider = \"far\"",
            &[],
            &flags,
            ("https://far.example/v1", Some("FAR_KEY"), Some("small")),
        );
        // Without an endpoint it selects our own server's model, and a file's choice of that does
        // not apply to an endpoint.
        let config = load("", &[], &flags).expect("reads");
        assert_eq!(
            (config.llm.model, config.inference.model.as_deref()),
            (None, Some("small"))
        );
        check(
            &format!("{own}\ninference.model = \"mine\""),
            &[],
            &[],
            ("https://own.example/v1", None, Some("usual")),
        );
    }

    #[test]
    fn a_key_goes_to_the_server_it_was_named_for() {
        let own = "llm.endpoint = \"https://own.example/v1\"\nllm.api_key_env = \"OWN_KEY\"";
        check(
            own,
            &[],
            &[("--provider", "llm.provider", "near")],
            ("http://127.0.0.1:8000/v1", None, None),
        );
        check(
            "llm.provider = \"near\"",
            &[("OPENAI_API_KEY", "x")],
            &[],
            ("http://127.0.0.1:8000/v1", None, None),
        );
        let flags = [("--endpoint", "llm.endpoint", "https://other.example/v1")];
        check(
            "llm.provider = \"far\"",
            &[],
            &flags,
            ("https://other.example/v1", None, None),
        );
        let flags = [
            ("--provider", "llm.provider", "far"),
            ("--api-key-env", "llm.api_key_env", "OTHER"),
        ];
        check(
            "",
            &[],
            &flags,
            ("https://far.example/v1", Some("OTHER"), Some("big")),
        );
    }

    #[test]
    fn contradictory_provider_settings_are_refused_with_a_remedy() {
        for (text, flags, words) in [
            ("llm.provider = \"fra\"", &[][..], "there are: far, near"),
            (
                "llm.provider = \"far\"\nllm.endpoint = \"http://127.0.0.1:1\"",
                &[][..],
                "only one of them can be used",
            ),
            (
                "",
                &[
                    ("--provider", "llm.provider", "far"),
                    ("--endpoint", "llm.endpoint", "http://127.0.0.1:1"),
                ][..],
                "--endpoint names",
            ),
            ("llm.price.prompt = -1.0", &[][..], "-1 is no price"),
            (
                "llm.provider = \"x\"\nproviders.x = { base_url = \"http://127.0.0.1:1\", price = { completion = nan } }",
                &[][..],
                "no price",
            ),
            ("providers.x = { model = \"m\" }", &[][..], "base_url"),
            (
                "providers.x = { base_url = \"http://127.0.0.1:1\", api_key = \"sk\" }",
                &[][..],
                "looks like a secret",
            ),
        ] {
            let error = load(text, &[], flags).expect_err(text);
            assert!(
                error.to_string().contains(words) && !error.hint().is_empty(),
                "{text}: {error}"
            );
        }
    }
}
