//! The first start: which model answers, and how much the agent decides by itself.

use std::fs;

use nix::sys::signal::Signal;
use podbay::app::ModelOffer;
use podbay::app::servers_at;
use tokio_util::sync::CancellationToken;

use crate::support::ScriptedModel;
use crate::support::TestEnv;
use crate::support::screen::Screen;

/// A chat where nothing is configured, and no engine is.
fn chat(env: &TestEnv, more: &[&str]) -> Screen {
    let mut command = env.podbay(&["chat"]);
    command
        .args(more)
        .env_remove("PODBAY_SANDBOX_CHANGES")
        .env("DOCKER_HOST", "unix:///nonexistent/docker.sock")
        .env("OPENROUTER_API_KEY", "sk-canary")
        .current_dir(env.project());
    Screen::start(&command)
}

fn settings(env: &TestEnv) -> Option<String> {
    fs::read_to_string(env.home().join(".config/podbay/config.toml")).ok()
}

#[test]
fn the_answers_of_a_first_start_are_settings_and_asked_once() {
    let env = TestEnv::new();
    let mut screen = chat(&env, &[]);
    let shown = screen.sees("Esc decides later");
    assert!(
        shown.contains("Which model answers?")
            && shown.contains("openrouter, by the key in OPENROUTER_API_KEY")
            && !shown.contains("canary"),
        "{shown}"
    );
    // The service is the last of the models.
    screen.types("\x1b[B\x1b[B\x1b[B\x1b[B\x1b[B\r");
    screen.sees("Name of the model");
    screen.types("qwen/qwen3-coder\r");
    screen.sees("Enter begins");
    screen.types("2\r");
    let (code, left) = screen.ends();
    assert_eq!(code, 5, "there is no engine: {left}");
    assert!(left.contains("The answers are in"), "{left}");
    assert_eq!(
        settings(&env).expect("written"),
        "[providers.openrouter]\nbase_url = \"https://openrouter.ai/api/v1\"\napi_key_env = \"OPENROUTER_API_KEY\"\nmodel = \"qwen/qwen3-coder\"\n\n[llm]\nprovider = \"openrouter\"\n\n[policy]\nchat_autonomy = \"auto\"\n\n[sandbox]\nchat_changes = \"review\"\n"
    );
    let (code, left) = chat(&env, &[]).ends();
    assert_eq!(code, 5);
    assert!(!left.contains("Which model"), "{left}");
}

#[test]
fn a_first_start_that_is_put_off_writes_nothing_and_is_not_asked_again() {
    let env = TestEnv::new();
    let mut screen = chat(&env, &["--classic"]);
    screen.sees("Which model answers?");
    screen.sees("Number [1]:");
    // The end of the input.
    screen.types("\x04");
    let (code, left) = screen.ends();
    assert_eq!(code, 5, "{left}");
    assert!(left.contains("Nothing was set"), "{left}");
    assert_eq!(settings(&env), None);
    let (_, left) = chat(&env, &[]).ends();
    assert!(!left.contains("Which model"), "{left}");
}

#[test]
fn what_is_configured_is_not_asked_and_a_signal_gives_the_terminal_back() {
    let env = TestEnv::new();
    let (code, left) = chat(&env, &["--mode", "ask"]).ends();
    assert_eq!(code, 5);
    assert!(!left.contains("Which model"), "{left}");
    let screen = chat(&env, &[]);
    screen.sees("Esc decides later");
    screen.signal(Signal::SIGTERM);
    let (code, left) = screen.ends();
    assert_eq!(code, 143, "{left}");
    assert_eq!(settings(&env), None);
}

#[tokio::test]
async fn a_model_server_of_this_machine_is_offered_with_its_model() {
    let model = ScriptedModel::new().start().await;
    let port = model.address().port();
    let offers = servers_at(
        &[(port, "Ollama"), (1, "nobody")],
        &CancellationToken::new(),
    )
    .await;
    assert_eq!(
        offers,
        [ModelOffer::Server {
            name: "Ollama",
            endpoint: format!("http://127.0.0.1:{port}/v1"),
            model: "scripted".to_owned(),
        }]
    );
}
