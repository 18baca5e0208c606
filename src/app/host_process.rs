//! Programs of the user's own that run on their machine: their variables, and their end.

use std::time::Duration;

use nix::sys::signal::Signal;
use nix::sys::signal::killpg;
use nix::unistd::Pid;
use tokio::process::Child;

use podbay_config::Config;
use podbay_mcp::ServerOptions;

/// Variables that hold keys by their usual names, whatever the settings name.
const USUAL: [&str; 5] = [
    "PODBAY_LLM_API_KEY",
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "HF_TOKEN",
    "LLAMA_API_KEY",
];

/// Returns the names of the variables that hold keys of ours, which no such program sees.
pub(super) fn hidden_variables(config: &Config) -> Vec<String> {
    let providers = config
        .providers
        .values()
        .filter_map(|provider| provider.api_key_env.as_ref());
    let servers = config.mcp.servers.values();
    providers
        .chain(servers.flat_map(ServerOptions::key_variables))
        .chain(&config.llm.api_key_env)
        .chain(&config.inference.hub_token_env)
        .cloned()
        .chain(USUAL.map(str::to_owned))
        .collect()
}

/// Returns the process group of a program that was started in one of its own.
pub(super) fn group_of(child: &Child) -> Option<Pid> {
    child
        .id()
        .and_then(|id| i32::try_from(id).ok())
        .map(Pid::from_raw)
}

/// Sends a signal to a whole group.
pub(super) fn signal(group: Option<Pid>, signal: Signal) {
    if let Some(group) = group
        && let Err(error) = killpg(group, signal)
    {
        tracing::debug!(%error, "the program had ended already");
    }
}

/// Asks the whole group to end, and ends it when it does not.
pub(super) async fn end(child: &mut Child, group: Option<Pid>, grace: Duration) {
    signal(group, Signal::SIGTERM);
    let in_time = tokio::time::timeout(grace, child.wait()).await.is_ok();
    // What it started may be there although it is not.
    signal(group, Signal::SIGKILL);
    if !in_time && let Err(error) = child.wait().await {
        tracing::warn!(%error, "a program could not be waited for");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_hidden_by_their_usual_names_and_by_those_of_the_settings() {
        let mut config = Config::default();
        config.llm.api_key_env = Some("MY_KEY".to_owned());
        let hidden = hidden_variables(&config);
        for name in ["MY_KEY", "HF_TOKEN", "OPENAI_API_KEY", "PODBAY_LLM_API_KEY"] {
            assert!(hidden.iter().any(|known| known == name), "{name}");
        }
        assert!(!hidden.iter().any(|known| known == "PATH"));
    }
}
