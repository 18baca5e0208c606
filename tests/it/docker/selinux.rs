//! An engine that labels containers for `SELinux`: those with folders of the host ask for no label.

use std::process::Command;

use serde_json::Value;
use serde_json::json;

use super::test_box::TestBox;
use super::test_box::docker;
use crate::support::EngineProxy;
use crate::support::engine_proxy::Fate;
use crate::support::engine_proxy::engine_socket;
use crate::support::test_env::run;

/// Puts a socket in front of the engine behind which it says that it uses `SELinux`.
fn with_selinux(env: &TestBox) -> EngineProxy {
    let asked = Command::new("curl")
        .args(["--silent", "--fail", "--unix-socket"])
        .arg(engine_socket())
        .arg("http://engine/info")
        .output();
    let mut said: Value =
        serde_json::from_slice(&asked.expect("the `curl` command").stdout).expect("JSON");
    let options = said["SecurityOptions"].as_array_mut().expect("a list");
    options.push(json!("name=selinux"));
    // For as long as the test: the proxy's threads have no end.
    let said: &'static str = Box::leak(said.to_string().into_boxed_str());
    EngineProxy::judging(env.beside("engine"), move |request| {
        match request.path.as_str() {
            "/info" => Fate::Say(said),
            _ => Fate::Pass,
        }
    })
}

fn security_options(env: &TestBox) -> String {
    docker(&[
        "inspect",
        "--format",
        "{{.HostConfig.SecurityOpt}}",
        &env.container(),
    ])
}

#[test]
fn an_engine_with_selinux_is_asked_for_no_label() {
    let Some(env) = TestBox::new() else { return };
    env.write("a.txt", "read\n");
    let engine = with_selinux(&env);
    for (host, is_labelled) in [(None, true), (Some(engine.address()), false)] {
        let podbay = |words: &[&str]| {
            let mut command = env.here(words);
            command.envs(host.iter().map(|host| ("DOCKER_HOST", host)));
            run(&mut command).expect(0)
        };
        podbay(&["up", "--no-model"]);
        let options = security_options(&env);
        assert_eq!(!options.contains("label=disable"), is_labelled, "{options}");
        assert!(options.contains("no-new-privileges"), "{options}");
        assert_eq!(podbay(&["sh", "--", "cat", "a.txt"]).text(), "read\n");
        podbay(&["down"]);
    }
    let report = run(env
        .podbay(&["doctor", "--json"])
        .env("DOCKER_HOST", engine.address()))
    .json();
    assert!(
        report.to_string().contains("run without its label"),
        "{report}"
    );
    env.assert_no_container();
}
