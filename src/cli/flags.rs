use toml::Value;

use super::args::AutonomyFlag;
use super::args::BackendFlag;
use super::args::ChangesFlag;
use super::args::ModeFlag;
use super::args::ModelFlags;
use super::args::NetworkFlag;
use super::args::PlaceFlags;
use super::args::RuntimeFlag;
use super::args::SessionFlags;
use super::args::SetFlag;
use super::later;
use super::presets;
use podbay_app as app;
use podbay_app::Resume;
use podbay_config::Flag;

/// Settings that flags give, by the configuration's own keys: the last layer.
pub(super) type Overrides = Vec<Flag>;

fn set(overrides: &mut Overrides, name: &str, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        overrides.push(Flag::new(name, key, value));
    }
}

pub(super) fn model(flags: &ModelFlags, overrides: &mut Overrides) -> Result<(), app::Error> {
    if flags.api_key.is_some() {
        return Err(app::Error::usage(
            "--api-key is not accepted: everybody on this machine could read the key in the process list",
            "put the key into an environment variable and name it: --api-key-env OPENAI_API_KEY",
        ));
    }
    let named = [
        ("--endpoint", &flags.endpoint),
        ("--provider", &flags.provider),
        ("--api-key-env", &flags.api_key_env),
        ("--model", &flags.model),
    ];
    // A script whose variable is empty would be answered by another model than it means.
    if let Some((flag, _)) = named
        .iter()
        .find(|(_, value)| value.as_ref().is_some_and(|value| value.trim().is_empty()))
    {
        let problem = format!("{flag} is empty");
        return Err(app::Error::usage(
            problem,
            "name one, or leave the flag out; in a script, is the variable behind it set?",
        ));
    }
    set(
        overrides,
        "--endpoint",
        "llm.endpoint",
        flags.endpoint.clone(),
    );
    set(
        overrides,
        "--api-key-env",
        "llm.api_key_env",
        flags.api_key_env.clone(),
    );
    set(
        overrides,
        "--provider",
        "llm.provider",
        flags.provider.clone(),
    );
    if flags.endpoint.is_some() || flags.provider.is_some() {
        set(overrides, "--model", "llm.model", flags.model.clone());
    } else {
        set(overrides, "--model", "inference.model", flags.model.clone());
    }
    Ok(())
}

pub(super) fn place(flags: &PlaceFlags, overrides: &mut Overrides) -> Result<(), app::Error> {
    network(flags, overrides)?;
    model(&flags.model, overrides)?;
    if let Some(image) = flags
        .image
        .as_deref()
        .filter(|image| !app::is_image_name(image))
    {
        return Err(app::Error::usage(
            format!("--image: `{image}` is not the name of an image"),
            "give a name such as debian:13 or ghcr.io/owner/name:tag; `docker images` shows those that are here",
        ));
    }
    let runtime = flags.runtime.map(|runtime| match runtime {
        RuntimeFlag::Python => "podbay/python",
        RuntimeFlag::Node => "podbay/node",
        RuntimeFlag::Go => "podbay/go",
        RuntimeFlag::Java => "podbay/java",
        RuntimeFlag::Rust => "podbay/rust",
    });
    set(
        overrides,
        "--image",
        "sandbox.image",
        flags.image.as_deref().or(runtime),
    );
    set(overrides, "--cpus", "sandbox.cpus", flags.cpus);
    set(
        overrides,
        "--memory",
        "sandbox.memory",
        flags.memory.clone(),
    );
    set(
        overrides,
        "--pids",
        "sandbox.pids",
        flags.pids.map(i64::from),
    );
    let backend = flags.backend.map(|backend| match backend {
        BackendFlag::Docker => "docker",
        BackendFlag::Native => "native",
    });
    set(overrides, "--backend", "sandbox.backend", backend);
    set(
        overrides,
        "--strict",
        "sandbox.strict",
        flags.strict.then_some(true),
    );
    Ok(())
}

/// A rule means an allow-list.
fn network(flags: &PlaceFlags, overrides: &mut Overrides) -> Result<(), app::Error> {
    let mode = flags.network.map(|network| match network {
        NetworkFlag::None => "none",
        NetworkFlag::Allowlist => "allowlist",
        NetworkFlag::Open => "open",
    });
    if flags.allow_host.is_empty() {
        set(overrides, "--network", "network.mode", mode);
        return Ok(());
    }
    if let Some(mode) = mode.filter(|mode| *mode != "allowlist") {
        return Err(app::Error::usage(
            format!("--allow-host lets single hosts through, and --network {mode} does not"),
            "leave out one of them; a rule means --network allowlist",
        ));
    }
    for rule in &flags.allow_host {
        if let Err(problem) = app::check_network_rule(rule) {
            return Err(app::Error::usage(
                format!("--allow-host: {problem}"),
                "write HOST, HOST:PORT, *.HOST or @PRESET, once for each: --allow-host @npm --allow-host git.example.com:8443",
            ));
        }
    }
    let rules: Vec<Value> = flags.allow_host.iter().cloned().map(Value::from).collect();
    set(overrides, "--allow-host", "network.mode", Some("allowlist"));
    set(overrides, "--allow-host", "network.allow", Some(rules));
    Ok(())
}

/// Refuses flags that say what a sandbox is to be like where it runs already and is somebody
/// else's.
pub(super) fn check_attached(overrides: &Overrides) -> Result<(), app::Error> {
    const MAKING: [&str; 4] = [
        "sandbox.image",
        "sandbox.cpus",
        "sandbox.memory",
        "sandbox.pids",
    ];
    match overrides
        .iter()
        .find(|flag| MAKING.contains(&flag.key.as_str()))
    {
        _ if overrides
            .iter()
            .any(|flag| flag.key == "sandbox.changes" && flag.value.as_str() == Some("review")) =>
        {
            Err(app::Error::not_attached(
                "a review of changes (--changes review)",
            ))
        }
        Some(flag) if flag.key == "sandbox.image" => Err(app::Error::not_attached(
            "another image (--image, --runtime)",
        )),
        Some(flag) => Err(app::Error::not_attached(&format!(
            "a limit of one's own ({})",
            flag.name
        ))),
        None => Ok(()),
    }
}

pub(super) fn session(flags: &SessionFlags, overrides: &mut Overrides) -> Result<(), app::Error> {
    later::session(flags)?;
    place(&flags.place, overrides)?;
    autonomy(flags, overrides);
    let changes = flags.changes.map(|changes| match changes {
        ChangesFlag::Live => "live",
        ChangesFlag::Review => "review",
        ChangesFlag::Turn => "turn",
    });
    set(overrides, "--changes", "sandbox.changes", changes);
    let tools = flags.tools.map(|tools| match tools {
        SetFlag::Small => "small",
        SetFlag::Standard => "standard",
        SetFlag::Full => "full",
    });
    set(overrides, "--tools", "tools.set", tools);
    set(
        overrides,
        "--max-turns",
        "agent.max_turns",
        flags.max_turns.map(i64::from),
    );
    set(
        overrides,
        "--timeout",
        "agent.timeout",
        flags.timeout.clone(),
    );
    set(
        overrides,
        "--max-tokens",
        "agent.max_tokens",
        flags
            .max_tokens
            .map(|tokens| i64::try_from(tokens).unwrap_or(i64::MAX)),
    );
    set(
        overrides,
        "--deny-is-failure",
        "agent.deny_is_failure",
        flags.deny_is_failure.then_some(true),
    );
    if let Some(cost) = flags
        .max_cost
        .filter(|cost| !cost.is_finite() || *cost <= 0.0)
    {
        return Err(app::Error::usage(
            format!("--max-cost {cost} is no amount that can be spent"),
            "give US dollars, such as --max-cost 0.50; without the flag there is no limit",
        ));
    }
    set(overrides, "--max-cost", "agent.max_cost", flags.max_cost);
    if flags.max_turns == Some(0) {
        return Err(app::Error::usage(
            "--max-turns 0 leaves the model no turn",
            "give it at least one turn; `agent.max_turns = 0` in your own configuration is no limit",
        ));
    }
    preset(flags, overrides)
}

fn autonomy(flags: &SessionFlags, overrides: &mut Overrides) {
    let named = flags.autonomy.map(|autonomy| match autonomy {
        AutonomyFlag::Architect => "architect",
        AutonomyFlag::Ask => "ask",
        AutonomyFlag::Auto => "auto",
        AutonomyFlag::Unattended => "unattended",
    });
    set(overrides, "--autonomy", "policy.autonomy", named);
}

/// Sets what a preset stands for, but for what a flag has set itself.
fn preset(flags: &SessionFlags, overrides: &mut Overrides) -> Result<(), app::Error> {
    let Some(preset) = flags.preset.as_deref().and_then(presets::find) else {
        return Ok(());
    };
    if preset.asks && (flags.mode.is_some() || flags.autonomy.is_some()) {
        return Err(app::Error::usage(
            "this --preset says how much is asked, and so does --mode or --autonomy",
            "give one of them; turns alone are --max-turns",
        ));
    }
    for (key, value) in preset.settings {
        if !overrides.iter().any(|flag| flag.key == key) {
            set(overrides, "--preset", &key, Some(value));
        }
    }
    Ok(())
}

/// Returns the mode: the one that is named, else that of the autonomy, else the command's own.
pub(super) fn mode(
    flag: Option<ModeFlag>,
    autonomy: Option<app::Autonomy>,
    default: ModeFlag,
) -> app::Mode {
    match (flag, autonomy) {
        (None, Some(autonomy)) => autonomy.mode(),
        (flag, _) => match flag.unwrap_or(default) {
            ModeFlag::Auto => app::Mode::Auto,
            ModeFlag::Ask => app::Mode::Ask,
            ModeFlag::Deny => app::Mode::Deny,
        },
    }
}

/// Whether an earlier session is to be continued, and none is named.
pub(super) fn picks_session(flags: &SessionFlags) -> bool {
    flags.resume.as_deref() == Some("")
}

/// Returns the session to continue, where one is named.
pub(super) fn resume(flags: &SessionFlags) -> Option<Resume> {
    match &flags.resume {
        Some(_) if picks_session(flags) => None,
        Some(id) => Some(Resume::Id(id.clone())),
        None => flags.go_on.then_some(Resume::Latest),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        flags: SessionFlags,
    }

    /// What the flags set, as `key = value`; nothing where they do not go together.
    fn set_by(flags: &[&str]) -> Option<Vec<String>> {
        let line = Line::parse_from([&["podbay"], flags].concat());
        let mut overrides = Overrides::new();
        session(&line.flags, &mut overrides).ok()?;
        Some(
            overrides
                .iter()
                .map(|flag| format!("{} = {}", flag.key, flag.value))
                .collect(),
        )
    }

    #[test]
    fn a_preset_sets_what_it_stands_for_unless_another_flag_does() {
        for (flags, expected) in [
            (
                &["--preset", "architect"][..],
                &["agent.max_turns = 10", "policy.autonomy = \"architect\""][..],
            ),
            (&["--preset", "standard"], &["agent.max_turns = 25"]),
            (
                &["--preset", "unattended", "--max-turns", "7"],
                &["agent.max_turns = 7", "policy.autonomy = \"unattended\""],
            ),
            (
                &["--preset", "strict", "--mode", "ask"],
                &["tools.bash_timeout = \"30s\""],
            ),
            (
                &["--preset", "small-context"],
                &[
                    "tools.read_lines = 200",
                    "tools.search_results = 50",
                    "tools.set = \"small\"",
                ],
            ),
            (
                &[
                    "--preset",
                    "small-context",
                    "--tools",
                    "full",
                    "--autonomy",
                    "ask",
                ],
                &[
                    "policy.autonomy = \"ask\"",
                    "tools.set = \"full\"",
                    "tools.read_lines = 200",
                    "tools.search_results = 50",
                ],
            ),
        ] {
            assert_eq!(
                set_by(flags).expect("they go together"),
                expected,
                "{flags:?}"
            );
        }
        assert_eq!(set_by(&["--preset", "standard", "--mode", "ask"]), None);
        assert_eq!(
            set_by(&["--preset", "unattended", "--autonomy", "ask"]),
            None
        );
    }
}
