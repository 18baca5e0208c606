//! `podbay doctor` with a real engine: a set-up that is well, and images that are missing.

use serde_json::Value;

use super::test_box::TestBox;
use super::test_box::docker;
use crate::doctor::diagnosis;
use crate::doctor::line;
use crate::inference::hub::Hub;
use crate::inference::hub::model;
use crate::support::ScriptedModel;

#[test]
fn a_set_up_that_is_well_has_no_failure_and_is_left_as_it_was() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new().start_blocking();
    let mut command = env.here(&["doctor", "--json", "--endpoint"]);
    let found = diagnosis(command.arg(model.endpoint()), 0);
    line(
        &found,
        "engine",
        "connection",
        "ok",
        &["version ", "API 1."],
    );
    line(&found, "images", "sandbox", "ok", &["podbay/workspace"]);
    line(&found, "images", "guest", "ok", &["podbay-guest-"]);
    line(&found, "model", "endpoint", "ok", &["scripted"]);
    for name in ["users", "cgroups", "seccomp"] {
        line(&found, "isolation", name, "ok", &[]);
    }
    assert_eq!(
        model.requests().len(),
        0,
        "without --model nothing is generated"
    );
    assert!(!env.state().exists());
    assert_eq!(env.containers().len(), 0);
}

#[test]
fn a_trial_loads_no_model_where_the_network_is_not_to_be_used() {
    let Some(env) = TestBox::new() else { return };
    let hub = Hub::start(model(100_000));
    let mut command = env.podbay(&["doctor", "--json", "--model"]);
    command
        .env("PODBAY_OFFLINE", "true")
        .env("PODBAY_INFERENCE_HUB", &hub.url)
        .env("PODBAY_INFERENCE_MODEL", "qwen2.5-coder-7b");
    let found = diagnosis(&mut command, 1);
    line(
        &found,
        "trial",
        "connectivity",
        "fail",
        &["qwen2.5-coder-7b", "`offline` is set", "unset `offline`"],
    );
    assert_eq!(hub.asked(), []);
}

#[test]
fn the_holes_of_this_engine_are_those_of_the_table() {
    let Some(env) = TestBox::new() else { return };
    let version = docker(&["version", "--format", "{{.Server.Version}}"]);
    let found = diagnosis(&mut env.podbay(&["doctor", "--json"]), 0);
    let engine = |check: &&Value| check["group"] == "engine" && check["name"] == "engine";
    let check = found["checks"]
        .as_array()
        .expect("a list")
        .iter()
        .find(engine)
        .expect("a line");
    let detail = check["detail"].as_str().expect("text");
    assert!(detail.starts_with(version.trim()), "{check}");
    assert_eq!(
        check["status"] == "warn",
        detail.contains("CVE-"),
        "{check}"
    );
}

#[test]
fn images_that_are_missing_say_how_they_come() {
    let Some(env) = TestBox::new() else { return };
    let looked = |image: &str, pull: &str, code| {
        let mut command = env.podbay(&["doctor", "--json"]);
        diagnosis(
            command
                .env("PODBAY_SANDBOX_IMAGE", image)
                .env("PODBAY_ENGINE_PULL", pull),
            code,
        )
    };
    line(
        &looked("podbay-test/nosuch:1", "true", 0),
        "images",
        "sandbox",
        "warn",
        &["podbay-test/nosuch:1 is not here", "docker pull"],
    );
    line(
        &looked("podbay-test/nosuch:1", "false", 1),
        "images",
        "sandbox",
        "fail",
        &["`engine.pull` is off", "docker load"],
    );
    line(
        &looked("Not A Name", "true", 1),
        "images",
        "sandbox",
        "fail",
        &["is not the name of an image"],
    );
}
