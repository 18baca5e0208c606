//! Bounds on the values of settings; `sandbox` checks its own.

use super::Config;
use super::Error;
use super::Loaded;
use super::key;
use podbay_event::ByteSize;
use podbay_event::Seconds;

/// Longer than anything takes; larger durations overflow the clock.
const LONGEST: Seconds = Seconds::new(366 * 86_400);

/// What the runtime of a language takes at least.
const LEAST_MEMORY: ByteSize = ByteSize::mib(64);

/// How many levels of agents may start others.
const MOST_DEPTH: u32 = 3;

/// Refuses the first value out of bounds, with its place.
pub(super) fn check(loaded: &Loaded<Config>) -> Result<(), Error> {
    match mistakes(&loaded.config).into_iter().next() {
        Some((key, what)) => Err(Error::Value {
            origin: loaded.origins.of(&key).clone(),
            key,
            what,
        }),
        None => Ok(()),
    }
}

/// Keys out of bounds, each with the reason.
type Mistakes = Vec<(String, String)>;

fn mistakes(config: &Config) -> Mistakes {
    let mut mistakes = Vec::new();
    times(config, &mut mistakes);
    sampling(config, &mut mistakes);
    shares(config, &mut mistakes);
    mistakes.extend(config.hooks.mistakes());
    let of_mcp = config.mcp.mistakes().into_iter();
    mistakes.extend(of_mcp.map(|(key, what)| (format!("mcp.{key}"), what)));
    mistakes.extend(config.network.mistakes());
    mistakes.extend(config.search.mistakes());
    let (agent, tools, llm) = (&config.agent, &config.tools, &config.llm);
    let mut wrong = |key: &str, what: String| mistakes.push((key.to_owned(), what));
    if !(agent.max_cost.is_finite() && agent.max_cost >= 0.0) {
        wrong(
            "agent.max_cost",
            format!(
                "{} is no amount that can be spent: write US dollars, such as 0.50, or 0 for no limit",
                agent.max_cost
            ),
        );
    }
    if let Some(tokens) = llm
        .max_output_tokens
        .filter(|tokens| *tokens < 1 && *tokens != -1)
    {
        wrong(
            "llm.max_output_tokens",
            format!("{tokens} tokens are no answer: give it at least 1, or -1 for no limit"),
        );
    }
    if let Some(what) = config.policy.invalid_unasked_writes() {
        wrong("policy.unasked_writes", what.to_owned());
    }
    if config.agents.max_depth > MOST_DEPTH {
        wrong(
            "agents.max_depth",
            format!(
                "{} levels of agents are more than {MOST_DEPTH}",
                config.agents.max_depth
            ),
        );
    }
    if config.agents.parallel == 0 {
        wrong(
            "agents.parallel",
            "0 agents at once are none: to have none at all set `agents.enabled = false`"
                .to_owned(),
        );
    }
    if tools.sandbox_run_memory < LEAST_MEMORY {
        wrong(
            "tools.sandbox_run_memory",
            format!(
                "{} is less than the {LEAST_MEMORY} that a sandbox needs to run code",
                tools.sandbox_run_memory
            ),
        );
    }
    if tools.read_lines == 0 {
        wrong(
            "tools.read_lines",
            "0 lines are none: give it at least 1".to_owned(),
        );
    }
    mistakes
}

fn times(config: &Config, mistakes: &mut Mistakes) {
    let (agent, tools, llm, engine, inference) = (
        &config.agent,
        &config.tools,
        &config.llm,
        &config.engine,
        &config.inference,
    );
    let times = [
        ("agent.timeout", agent.timeout, 0),
        ("agent.last_answer", agent.last_answer, 0),
        ("tools.bash_timeout", tools.bash_timeout, 1),
        ("tools.bash_timeout_max", tools.bash_timeout_max, 1),
        ("tools.bash_grace", tools.bash_grace, 0),
        ("tools.search_timeout", tools.search_timeout, 1),
        ("tools.file_timeout", tools.file_timeout, 1),
        ("mcp.start_timeout", config.mcp.start_timeout, 1),
        ("agents.timeout", config.agents.timeout, 0),
        ("engine.timeout_s", Seconds::new(engine.timeout_s), 1),
        ("engine.pull_timeout", engine.pull_timeout, 1),
        ("engine.keep_guest", engine.keep_guest, 0),
        ("setup.timeout", config.setup.timeout, 1),
        ("inference.sleep_idle", inference.sleep_idle, 0),
        ("inference.start_timeout", inference.start_timeout, 1),
        ("inference.probe_timeout", inference.probe_timeout, 1),
        ("inference.warm_up", inference.warm_up, 0),
        ("inference.download_timeout", inference.download_timeout, 1),
    ];
    for (key, time, least) in times {
        if time > LONGEST {
            mistakes.push((key.to_owned(), format!("{time} is longer than a year")));
        } else if time.get() < least {
            mistakes.push((
                key.to_owned(),
                format!("{time} leaves no time: give it at least {least} s"),
            ));
        }
    }
    let spans = [
        ("llm.idle_timeout_s", llm.idle_timeout_s),
        ("llm.connect_timeout_s", llm.connect_timeout_s),
        ("llm.probe_timeout_s", llm.probe_timeout_s),
        ("llm.request_timeout_s", llm.request_timeout_s),
    ];
    for (key, seconds) in spans {
        if !(seconds > 0.0 && seconds <= LONGEST.get() as f64) {
            mistakes.push((
                key.to_owned(),
                format!("{seconds} is not between 0 and a year, in seconds; 0 is too little"),
            ));
        }
    }
}

/// Checks sampling, also of providers that are not chosen.
fn sampling(config: &Config, mistakes: &mut Mistakes) {
    // First, because the chosen provider's values have been copied to `[llm]`, where no user wrote
    // them.
    for (name, provider) in &config.providers {
        let section = key::join("providers", name);
        mistakes.extend(
            provider
                .sampling
                .mistakes()
                .into_iter()
                .map(|(key, what)| (format!("{section}.sampling.{key}"), what)),
        );
    }
    mistakes.extend(
        config
            .llm
            .invalid_sampling()
            .into_iter()
            .map(|(key, what)| (format!("llm.{key}"), what)),
    );
}

/// Checks percentages.
fn shares(config: &Config, mistakes: &mut Mistakes) {
    let (agent, tools) = (&config.agent, &config.tools);
    let (to, compact) = (agent.compact_to_percent, agent.compact_percent);
    let mut wrong = |key: &str, what: String| mistakes.push((key.to_owned(), what));
    if agent.wrap_up_percent > 100 {
        wrong(
            "agent.wrap_up_percent",
            format!("{} is more than 100 percent", agent.wrap_up_percent),
        );
    }
    if !(1..=99).contains(&to) {
        wrong(
            "agent.compact_to_percent",
            format!("{to} is not between 1 and 99 percent"),
        );
    }
    if compact > 99 {
        wrong(
            "agent.compact_percent",
            format!("{compact} is not between 1 and 99 percent; 0 is never"),
        );
    }
    if compact != 0 && to >= compact {
        // Names the key that the user set, since that one can be corrected.
        let usual = Config::default().agent.compact_percent;
        let key = if compact == usual {
            "agent.compact_to_percent"
        } else {
            "agent.compact_percent"
        };
        let what = format!(
            "room is made at {compact} percent (`agent.compact_percent`), so that it must come down below that, not to {to} \
             (`agent.compact_to_percent`)"
        );
        wrong(key, what);
    }
    if let Some(percent) = agent
        .context_warnings
        .iter()
        .find(|percent| !(1..=100).contains(*percent))
    {
        wrong(
            "agent.context_warnings",
            format!("{percent} is not between 1 and 100 percent"),
        );
    }
    if !(1..=100).contains(&tools.result_percent) {
        wrong(
            "tools.result_percent",
            format!("{} is not between 1 and 100 percent", tools.result_percent),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sources;

    #[track_caller]
    fn check(text: &str, key: &str, line: usize) {
        let temp = tempfile::tempdir().expect("a folder");
        let path = temp.path().join("config.toml");
        std::fs::write(&path, text).expect("written");
        let error = Config::load(&Sources {
            user: Some(path),
            ..Sources::default()
        })
        .expect_err(text)
        .to_string();
        assert!(
            error.contains(&format!("config.toml:{line}: `{key}`: ")),
            "{error}"
        );
    }

    #[test]
    fn a_value_out_of_bounds_is_refused_with_key_and_line() {
        assert_eq!(mistakes(&Config::default()), vec![]);
        for time in [
            "bash_timeout",
            "bash_timeout_max",
            "bash_grace",
            "search_timeout",
            "file_timeout",
        ] {
            check(
                &format!("[tools]\n\n{time} = \"99999999999999h\"\n"),
                &format!("tools.{time}"),
                3,
            );
        }
        for zero in [
            "bash_timeout",
            "bash_timeout_max",
            "search_timeout",
            "file_timeout",
            "read_lines",
        ] {
            check(
                &format!("[tools]\n{zero} = 0\n"),
                &format!("tools.{zero}"),
                2,
            );
        }
        for nonsense in ["0", "-1", "nan", "inf", "1e300"] {
            check(
                &format!("[llm]\nidle_timeout_s = {nonsense}\n"),
                "llm.idle_timeout_s",
                2,
            );
        }
        for kind in ["llm", "llm.sampling.edit", "llm.sampling.chat"] {
            for name in ["temperature", "top_p", "min_p"] {
                for nonsense in ["-0.1", "2.1", "nan", "inf"] {
                    check(
                        &format!("[{kind}]\n{name} = {nonsense}\n"),
                        &format!("{kind}.{name}"),
                        2,
                    );
                }
            }
        }
        let provider =
            "[providers.\"a b\"]\nbase_url = \"http://127.0.0.1:1\"\nsampling.chat.min_p = 1.5\n";
        check(provider, "providers.\"a b\".sampling.chat.min_p", 3);
        check(
            &format!("llm.provider = \"a b\"\n{provider}"),
            "providers.\"a b\".sampling.chat.min_p",
            4,
        );
        for nonsense in ["-1", "nan", "inf", "-inf"] {
            check(
                &format!("[agent]\nmax_cost = {nonsense}\n"),
                "agent.max_cost",
                2,
            );
        }
        for nonsense in ["0", "-2"] {
            check(
                &format!("[llm]\nmax_output_tokens = {nonsense}\n"),
                "llm.max_output_tokens",
                2,
            );
        }
        check(
            "[agent]\nwrap_up_percent = 101\n",
            "agent.wrap_up_percent",
            2,
        );
        check(
            &format!("[policy]\nunasked_writes = [{}]\n", "'a/', ".repeat(257)),
            "policy.unasked_writes",
            2,
        );
        check("[agent]\ntimeout = \"400d\"\n", "agent.timeout", 2);
        check(
            "[tools]\nsandbox_run_memory = \"63MiB\"\n",
            "tools.sandbox_run_memory",
            2,
        );
    }

    #[test]
    fn a_hook_that_would_run_the_models_text_is_refused() {
        check(
            "[[hooks.pre_tool_use]]\nrun = 'echo \"{{tool_input}}\"'\nwhere = 'host'\n",
            "hooks.pre_tool_use",
            1,
        );
        check(
            "[hooks.post_tool_use]\nbash = 'bash -c \"log {{tool_input}}\"'\n",
            "hooks.post_tool_use",
            1,
        );
    }

    #[test]
    fn timeouts_of_engine_and_model_server_are_bounded() {
        let zero_is_nothing = [
            "engine.timeout_s",
            "engine.pull_timeout",
            "inference.start_timeout",
            "inference.probe_timeout",
            "inference.download_timeout",
        ];
        for key in zero_is_nothing {
            check(&format!("{key} = 0\n"), key, 1);
        }
        let others = [
            "engine.keep_guest",
            "inference.sleep_idle",
            "inference.warm_up",
        ];
        for key in zero_is_nothing.into_iter().chain(others) {
            // More than the clock can represent.
            check(&format!("{key} = {}\n", i64::MAX), key, 1);
        }
    }

    #[test]
    fn percentages_are_bounded_and_compaction_ends_below_its_start() {
        for nonsense in ["0", "100", "255"] {
            check(
                &format!("[agent]\ncompact_to_percent = {nonsense}\n"),
                "agent.compact_to_percent",
                2,
            );
        }
        check(
            "[agent]\ncompact_percent = 100\n",
            "agent.compact_percent",
            2,
        );
        check(
            "[agent]\ncompact_percent = 65\n",
            "agent.compact_percent",
            2,
        );
        check(
            "[agent]\ncompact_to_percent = 80\n",
            "agent.compact_to_percent",
            2,
        );
        check(
            "[agent]\ncompact_to_percent = 50\ncompact_percent = 40\n",
            "agent.compact_percent",
            3,
        );
        check(
            "[agent]\ncontext_warnings = [75, 0]\n",
            "agent.context_warnings",
            2,
        );
        check("[tools]\nresult_percent = 101\n", "tools.result_percent", 2);
        for fine in [
            "compact_percent = 0",
            "compact_to_percent = 39\ncompact_percent = 40",
            "context_warnings = []",
            "max_cost = 0.5",
        ] {
            let agent = toml::from_str(fine).expect("a section");
            assert_eq!(
                mistakes(&Config {
                    agent,
                    ..Config::default()
                }),
                vec![],
                "{fine}"
            );
        }
    }
}
