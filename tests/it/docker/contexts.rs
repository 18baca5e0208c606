//! Which engine is used: that of a Docker context, or none.

use super::test_box::TestBox;
use crate::support::EngineProxy;
use crate::support::test_env::run;

/// Adds a context, as `docker context create` does. Returns the name of its folders.
pub(super) fn add(env: &TestBox, name: &str, host: &str) -> String {
    use sha2::Digest;
    let id: String = sha2::Sha256::digest(name.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let folder = env.home().join(".docker/contexts/meta").join(&id);
    std::fs::create_dir_all(&folder).expect("made");
    let meta = serde_json::json!({"Name": name, "Metadata": {}, "Endpoints": {"docker": {"Host": host, "SkipTLSVerify": false}}});
    std::fs::write(folder.join("meta.json"), meta.to_string()).expect("written");
    id
}

#[test]
fn a_docker_context_is_followed() {
    let Some(env) = TestBox::new() else { return };
    let other = EngineProxy::start(env.beside("other"), |_| {});
    add(&env, "other", &other.address());
    let mut command = env.here(&["sh", "--", "true"]);
    run(command
        .env_remove("DOCKER_HOST")
        .env("DOCKER_CONTEXT", "other"))
    .expect(0);
    let n_seen = other.seen().len();
    assert!(n_seen > 0, "by the variable");

    let config = env.home().join(".docker/config.json");
    std::fs::write(&config, r#"{"auths": {}, "currentContext": "other"}"#).expect("written");
    run(env.here(&["sh", "--", "true"]).env_remove("DOCKER_HOST")).expect(0);
    assert!(other.seen().len() > n_seen, "by the settings");
    let report = run(env.podbay(&["doctor", "--json"]).env_remove("DOCKER_HOST")).json();
    let text = report.to_string();
    assert!(
        text.contains("chosen by the Docker context `other` (`currentContext` in "),
        "{text}"
    );
    env.assert_no_container();
}

#[test]
fn a_context_that_cannot_be_followed_is_refused_and_no_other_engine_used() {
    let Some(env) = TestBox::new() else { return };
    add(&env, "far", "ssh://me@far");
    for (name, words) in [
        (
            "unknown",
            "the Docker context `unknown`, which DOCKER_CONTEXT names, cannot be used",
        ),
        ("far", "ssh is not supported"),
    ] {
        let mut command = env.here(&["call", "list_directory", "{}"]);
        run(command
            .env_remove("DOCKER_HOST")
            .env("DOCKER_CONTEXT", name))
        .expect(5)
        .says(&[words, "docker context ls"]);
    }
    add(&env, "gone", "unix:///nonexistent/gone.sock");
    let mut command = env.here(&["call", "list_directory", "{}"]);
    run(command
        .env_remove("DOCKER_HOST")
        .env("DOCKER_CONTEXT", "gone"))
    .expect(5)
    .says(&[
        "no container engine answers at unix:///nonexistent/gone.sock (the Docker context `gone`)",
    ]);
    let config = env.home().join(".docker/config.json");
    std::fs::write(config, "{").expect("written");
    run(env
        .here(&["call", "list_directory", "{}"])
        .env_remove("DOCKER_HOST"))
    .expect(5)
    .says(&["config.json"]);
    env.assert_no_container();
}
