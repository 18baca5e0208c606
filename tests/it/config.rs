use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use insta::assert_snapshot;
use podbay::config;
use podbay::config::Config;
use podbay::config::Error;
use podbay::config::Flag;
use podbay::config::Loaded;
use podbay::config::Sources;
use podbay::event::ByteSize;
use podbay::event::Seconds;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;
use tempfile::TempDir;
use toml::Value;

/// Settings of no room: these tests are about layers, not about which keys there are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct Settings {
    /// Contact nothing.
    offline: bool,
    sandbox: Sandbox,
    llm: Llm,
    policy: Policy,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct Sandbox {
    /// Memory of the sandbox;
    /// the engine enforces it.
    memory: ByteSize,
    timeout: Seconds,
    pids: Option<u32>,
    hosts: Vec<String>,
}

impl Default for Sandbox {
    fn default() -> Self {
        Self {
            memory: ByteSize::gib(4),
            timeout: Seconds::minutes(2),
            pids: None,
            hosts: Vec::new(),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct Llm {
    endpoint: Option<String>,
    model: Option<String>,
    api_key_env: Option<String>,
    api_key_file: Option<PathBuf>,
    providers: BTreeMap<String, Provider>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Provider {
    url: String,
    #[serde(default)]
    slots: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct Policy {
    deny: Vec<String>,
}

struct Files {
    temp: TempDir,
    sources: Sources,
}

impl Files {
    fn new() -> Self {
        Self {
            temp: tempfile::tempdir().expect("a folder"),
            sources: Sources::default(),
        }
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.temp.path().join(name);
        fs::write(&path, text).expect("writes");
        path
    }

    fn user(mut self, text: &str) -> Self {
        self.sources.user = Some(self.write("user.toml", text));
        self
    }

    fn system(mut self, text: &str) -> Self {
        self.sources.system = Some(self.write("system.toml", text));
        self
    }

    fn file(mut self, text: &str) -> Self {
        self.sources.file = Some(self.write("given.toml", text));
        self
    }

    fn var(mut self, name: &str, value: &str) -> Self {
        self.sources.variables.push((name.into(), value.into()));
        self
    }

    fn flag(mut self, name: &str, key: &str, value: impl Into<Value>) -> Self {
        self.sources.flags.push(Flag::new(name, key, value));
        self
    }

    fn load(&self) -> Loaded<Settings> {
        config::load(&self.sources).expect("loads")
    }

    fn warnings(&self) -> String {
        self.hide(&self.load().warnings.join("\n"))
    }

    fn error(&self) -> String {
        let error: Error = config::load::<Settings>(&self.sources).expect_err("is refused");
        let mut text = format!("error: {error}");
        if let Some(cause) = std::error::Error::source(&error) {
            text += &format!("\ncaused by: {cause}");
        }
        text += &format!("\nhint: {}", error.hint());
        self.hide(&text)
    }

    fn hide(&self, text: &str) -> String {
        text.replace(&*self.temp.path().to_string_lossy(), "TEMP")
    }
}

#[test]
fn nothing_set_means_the_defaults() {
    let mut files = Files::new();
    files.sources.system = Some("/nowhere/system.toml".into());
    files.sources.user = Some("/nowhere/user.toml".into());
    let loaded = files.load();
    assert_eq!(
        (loaded.config, loaded.warnings),
        (Settings::default(), vec![])
    );
}

#[test]
fn each_layer_wins_over_the_weaker_ones_and_is_remembered() {
    let files = Files::new()
        .system("offline = true\n[sandbox]\nmemory = \"1g\"\ntimeout = 10\npids = 10\nhosts = [\"system\"]\n")
        .user("[sandbox]\nmemory = \"2g\"\n\npids = 20\nhosts = [\"a\", \"b\"]\n[llm]\nmodel = \"user\"\n")
        .file("sandbox.memory = \"3g\"\n")
        .var("PODBAY_SANDBOX_PIDS", "40")
        .var("PODBAY_LLM_MODEL", "variable")
        .flag("--memory", "sandbox.memory", "5GiB");
    let loaded = files.load();
    let sandbox = Sandbox {
        memory: ByteSize::gib(5),
        timeout: Seconds::new(10),
        pids: Some(40),
        hosts: vec!["a".into(), "b".into()],
    };
    assert_eq!(loaded.config.sandbox, sandbox);
    assert_eq!(loaded.config.llm.model.as_deref(), Some("variable"));
    assert_snapshot!(files.hide(&config::render(&loaded)), @r#"
    offline = true  (TEMP/system.toml:1)
        Contact nothing.
    sandbox.memory = "5GiB"  (--memory)
        Memory of the sandbox; the engine enforces it.
    sandbox.timeout = "10s"  (TEMP/system.toml:4)
    sandbox.pids = 40  (PODBAY_SANDBOX_PIDS)
    sandbox.hosts = ["a","b"]  (TEMP/user.toml:5)
    llm.endpoint = not set  (default)
    llm.model = "variable"  (PODBAY_LLM_MODEL)
    llm.api_key_env = not set  (default)
    llm.api_key_file = not set  (default)
    llm.providers = {}  (default)
    policy.deny = []  (default)
    "#);
}

#[test]
fn rules_of_all_layers_add_up() {
    let files = Files::new()
        .system("[policy]\ndeny = [\"one\"]\n")
        .user("policy.deny = [\"two\"]\n")
        .flag("--deny", "policy.deny", vec!["three"]);
    let loaded = files.load();
    assert_eq!(loaded.config.policy.deny, ["one", "two", "three"]);
    let from: Vec<String> = loaded
        .origins
        .all("policy.deny")
        .iter()
        .map(|origin| files.hide(&origin.to_string()))
        .collect();
    assert_eq!(from, ["TEMP/system.toml:2", "TEMP/user.toml:1", "--deny"]);
}

#[test]
fn tables_of_free_names_are_merged_and_may_be_split_over_files() {
    let files = Files::new()
        .user("[llm.providers.home]\nurl = \"u\"\n[llm.providers.work]\nurl = \"w\"\n")
        .file("[llm.providers.home]\nslots = 4\n");
    let loaded = files.load();
    assert_eq!(
        loaded.config.llm.providers["home"],
        Provider {
            url: "u".into(),
            slots: 4
        }
    );
    assert_eq!(loaded.warnings, Vec::<String>::new());
    assert_eq!(
        files.hide(&loaded.origins.of("llm.providers.home.slots").to_string()),
        "TEMP/given.toml:2"
    );
    assert_snapshot!(Files::new().user("[llm.providers.home]\nslots = 4\n").error(), @r"
    error: TEMP/user.toml:1: `llm.providers.home`: `url` is missing
    hint: docs/configuration.md lists every key with its default and its meaning
    ");
}

#[test]
fn unknown_keys_warn_with_their_line_and_the_nearest_key() {
    let files = Files::new()
        .user("colour = 1\n[sandbox]\nmemroy = \"2g\"\n\n[sandbx]\npids = 3\n[llm.providers.x]\nurl = \"u\"\nslot = 1\n")
        .var("PODBAY_SANDBOX_MEMRY", "1g")
        .var("PODBAY_HOME", "/somewhere")
        .var("PODBAY_TEST_DOCKER", "0");
    assert_snapshot!(files.warnings(), @r"
    TEMP/user.toml:1: there is no setting `colour`
    TEMP/user.toml:3: there is no setting `sandbox.memroy`; did you mean `sandbox.memory`?
    TEMP/user.toml:5: there is no setting `sandbx`; did you mean `sandbox`?
    TEMP/user.toml:9: there is no setting `llm.providers.x.slot`
    PODBAY_SANDBOX_MEMRY: there is no such setting; did you mean `PODBAY_SANDBOX_MEMORY`?
    ");
    assert_snapshot!(Files::new().flag("-c", "sandbox.memroy", "1g").error(), @r"
    error: -c: there is no setting `sandbox.memroy`
    hint: did you mean `sandbox.memory`?
    ");
}

#[test]
fn values_that_do_not_fit_say_where_they_stand_and_what_fits() {
    assert_snapshot!(Files::new().user("[sandbox]\nmemory = \"1g\"\npids = \"many\"\n").error(), @r#"
    error: TEMP/user.toml:3: `sandbox.pids`: "many" does not fit: write a whole number from 0 to 4294967295
    hint: docs/configuration.md lists every key with its default and its meaning
    "#);
    assert_snapshot!(Files::new().system("# a comment\n[sandbox]\nmemory = \"lots\"\n").error(), @r"
    error: TEMP/system.toml:3: `sandbox.memory`: `lots` is no size: write `2GiB`, `512m` or a number of bytes
    hint: docs/configuration.md lists every key with its default and its meaning
    ");
    assert_snapshot!(Files::new().var("PODBAY_SANDBOX_TIMEOUT", "soon").error(), @r"
    error: PODBAY_SANDBOX_TIMEOUT: `sandbox.timeout`: `soon` is no length of time: write `120s`, `5m`, `1h30m` or a number of seconds
    hint: docs/configuration.md lists every key with its default and its meaning
    ");
    assert_snapshot!(Files::new().flag("--pids", "sandbox.pids", -1).error(), @r"
    error: --pids: `sandbox.pids`: `-1` does not fit: write a whole number from 0 to 4294967295
    hint: docs/configuration.md lists every key with its default and its meaning
    ");
    assert_snapshot!(Files::new().user("[sandbox]\nhosts = [\"a\",\n  7]\n").error(), @r"
    error: TEMP/user.toml:2: `sandbox.hosts`: `7` does not fit: write a text, in double quotes
    hint: docs/configuration.md lists every key with its default and its meaning
    ");
}

#[test]
fn files_that_are_no_toml_or_missing_say_so() {
    assert_snapshot!(Files::new().user("[sandbox]\nmemory = 2g\n").error(), @r"
    error: read the configuration file `TEMP/user.toml`: line 2: string values must be quoted, expected literal string
    hint: the file is TOML: `[section]`, then `key = value`; text stands in double quotes
    ");
    let mut files = Files::new();
    files.sources.file = Some(files.temp.path().join("missing.toml"));
    assert_snapshot!(files.error(), @r"
    error: read the configuration file `TEMP/missing.toml`
    caused by: No such file or directory (os error 2)
    hint: the file does not exist: check the path given to `--config`
    ");
    let mut files = Files::new();
    files.sources.file = Some("/dev/zero".into());
    assert!(matches!(
        config::load::<Settings>(&files.sources),
        Err(Error::Read { .. })
    ));
    files.sources.file = Some(files.write("big.toml", &"#\n".repeat(1 << 20)));
    assert!(matches!(
        config::load::<Settings>(&files.sources),
        Err(Error::Read { .. })
    ));
}

#[test]
fn a_secret_in_a_file_is_refused_and_never_repeated() {
    for text in [
        "[llm]\napi_key = \"sk-canary\"\n",
        "[llm]\nproviders.x = { url = \"u\", token = \"sk-canary\" }\n",
    ] {
        let error = Files::new().user(text).error();
        assert!(
            error.starts_with("error: TEMP/user.toml:2: `llm.")
                && error.contains("api_key_file")
                && !error.contains("canary"),
            "{error}"
        );
    }
    assert_snapshot!(Files::new().flag("--api-key", "llm.api_key", "sk-canary").error(), @r"
    error: --api-key: `llm.api_key` looks like a secret, and a secret does not belong there
    hint: put the key into an environment variable and name it with `--api-key-env VAR` (or `llm.api_key_env`), or put it into a file of mode 0600 and name that with `llm.api_key_file`
    ");
    let loaded = Files::new().var("PODBAY_LLM_API_KEY", "sk-canary").load();
    assert_eq!(
        loaded.config.llm.api_key_env.as_deref(),
        Some("PODBAY_LLM_API_KEY"),
        "only the variable's name becomes a setting"
    );
    assert!(!format!("{loaded:?}").contains("canary"));
}

#[test]
fn variables_are_read_as_what_the_key_wants() {
    let loaded = Files::new()
        .var("PODBAY_LLM_MODEL", "123")
        .var("PODBAY_SANDBOX_MEMORY", "512m")
        .var("PODBAY_SANDBOX_TIMEOUT", "90")
        .var("PODBAY_SANDBOX_HOSTS", "a.org, b.org")
        .var("PODBAY_OFFLINE", "true")
        .var("PODBAY_SANDBOX_PIDS", "")
        .flag("--model", "llm.endpoint", "456")
        .load();
    assert_eq!(loaded.config.llm.model.as_deref(), Some("123"));
    assert_eq!(loaded.config.llm.endpoint.as_deref(), Some("456"));
    assert_eq!(
        (loaded.config.sandbox.memory, loaded.config.sandbox.timeout),
        (ByteSize::mib(512), Seconds::new(90))
    );
    assert_eq!(loaded.config.sandbox.hosts, ["a.org", "b.org"]);
    assert_eq!(
        (loaded.config.offline, loaded.config.sandbox.pids),
        (true, None),
        "an empty variable sets nothing"
    );
    assert_eq!(
        Files::new()
            .var("PODBAY_SANDBOX_HOSTS", r#"["x"]"#)
            .load()
            .config
            .sandbox
            .hosts,
        ["x"]
    );
}

#[test]
fn what_other_tools_call_the_endpoint_counts_least_of_the_variables() {
    let llm = |files: Files| {
        let llm = files.load().config.llm;
        (
            llm.endpoint.unwrap_or_default(),
            llm.model.unwrap_or_default(),
            llm.api_key_env.unwrap_or_default(),
        )
    };
    let others = || {
        Files::new()
            .var("OPENAI_BASE_URL", "http://other")
            .var("OPENAI_MODEL", "m")
            .var("OPENAI_API_KEY", "sk")
    };
    let same = |endpoint: &str, model: &str, key: &str| {
        (endpoint.to_owned(), model.to_owned(), key.to_owned())
    };
    assert_eq!(
        llm(others().user("llm.model = \"file\"\n")),
        same("http://other", "m", "OPENAI_API_KEY")
    );
    assert_eq!(
        llm(others().var("PODBAY_LLM_MODEL", "ours")),
        same("http://other", "ours", "OPENAI_API_KEY")
    );
}

#[test]
fn a_key_meant_for_one_endpoint_never_goes_to_another() {
    let key = |files: Files| {
        files
            .var("OPENAI_API_KEY", "sk")
            .load()
            .config
            .llm
            .api_key_env
    };
    assert_eq!(key(Files::new()), None, "the server of our own needs none");
    assert_eq!(
        key(Files::new().user("llm.endpoint = \"https://elsewhere.org\"\n")),
        None
    );
    assert_eq!(
        key(Files::new().var("PODBAY_LLM_ENDPOINT", "https://api.openai.com.evil.org/v1")),
        None
    );
    assert_eq!(
        key(Files::new().var("OPENAI_BASE_URL", "http://x").flag(
            "--endpoint",
            "llm.endpoint",
            "http://y"
        )),
        None
    );
    let named = Files::new()
        .var("OPENAI_BASE_URL", "http://x")
        .user("llm.api_key_env = \"MINE\"\n");
    assert_eq!(key(named).as_deref(), Some("MINE"));
    let meant = Some("OPENAI_API_KEY");
    assert_eq!(
        key(Files::new().flag("--endpoint", "llm.endpoint", "https://api.openai.com/v1"))
            .as_deref(),
        meant
    );
    assert_eq!(
        key(Files::new().user("llm.endpoint = \"https://api.openai.com/v1\"\n")).as_deref(),
        meant
    );
}

#[test]
fn files_are_found_by_the_environment_alone() {
    let sources = |vars: &[(&str, &str)]| {
        Sources::from_env(
            vars.iter()
                .map(|(name, value)| ((*name).into(), (*value).into())),
        )
    };
    assert_eq!(
        sources(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/x")]).user,
        Some("/x/podbay/config.toml".into())
    );
    assert_eq!(
        sources(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "relative")]).user,
        Some("/h/.config/podbay/config.toml".into())
    );
    assert_eq!(sources(&[]).user, None);
    assert_eq!(sources(&[]).system, Some("/etc/podbay/config.toml".into()));
}

#[test]
fn every_setting_of_podbay_is_known_documented_and_loads() {
    let loaded = Config::load(&Sources::default()).expect("defaults load");
    assert_eq!(loaded.warnings, Vec::<String>::new());
    let undocumented: Vec<String> = config::settings::<Config>()
        .into_iter()
        .filter(|setting| setting.doc.is_empty())
        .map(|setting| setting.key)
        .collect();
    assert_eq!(undocumented, Vec::<String>::new());
    let page = config::markdown::<Config>();
    assert!(
        page.contains("| `color` | `\"auto\"` | `PODBAY_UI_COLOR` | Whether text is coloured"),
        "{page}"
    );
    let mut variables: Vec<String> = config::settings::<Config>()
        .into_iter()
        .map(|setting| setting.variable)
        .collect();
    variables.sort();
    variables.dedup();
    assert_eq!(
        variables.len(),
        config::settings::<Config>().len(),
        "no two keys share a variable"
    );
}
