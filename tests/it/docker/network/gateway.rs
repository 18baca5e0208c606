//! The gateway's container: what it is given, how long it lives, and what it leaves.

use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::super::test_box::TestBox;
use super::super::test_box::alone_with_gc;
use super::super::test_box::docker;
use super::outside::Files;
use super::outside::Outside;
use crate::support::test_env::run;
use crate::support::test_env::start;
use crate::support::test_env::within;

impl TestBox {
    /// Returns the id of the only gateway, once it runs.
    #[track_caller]
    pub(super) fn gateway(&self) -> String {
        let filter = format!("label=dev.podbay.project={}", self.key());
        let role = "label=dev.podbay.role=gateway";
        let mut found = String::new();
        let runs = within(Duration::from_secs(30), || {
            found = docker(&[
                "ps",
                "--quiet",
                "--no-trunc",
                "--filter",
                &filter,
                "--filter",
                role,
            ]);
            !found.is_empty()
        });
        assert!(runs && found.lines().count() == 1, "{found}");
        found.trim().to_owned()
    }

    fn gateway_volumes(&self) -> String {
        let filter = format!("label=dev.podbay.project={}", self.key());
        let role = "label=dev.podbay.role=gateway";
        docker(&[
            "volume", "ls", "--quiet", "--filter", &filter, "--filter", role,
        ])
    }
}

fn inspect(id: &str) -> Value {
    let found: Value = serde_json::from_str(&docker(&["inspect", id])).expect("JSON");
    found[0].clone()
}

/// N-14: a gateway that is taken over has nothing to take.
#[test]
fn the_gateway_has_no_project_no_secret_no_engine_and_no_capability() {
    let Some(env) = TestBox::new() else { return };
    Outside::new().tell(&env, "");
    let command = "touch begun; while ! test -e over; do sleep 0.1; done";
    let sh = start(&mut env.here(&["sh", "--network", "allowlist", "--", "sh", "-c", command]));
    env.wait_for("begun");
    let found = inspect(&env.gateway());
    let (host, config) = (&found["HostConfig"], &found["Config"]);
    assert_eq!(config["User"], "65532:65532");
    assert_eq!(host["CapDrop"], serde_json::json!(["ALL"]));
    assert_eq!(host["ReadonlyRootfs"], true);
    assert_eq!(host["Privileged"], false);
    assert_eq!(host["PidsLimit"], 32);
    assert_eq!(host["Memory"], 256 << 20);
    assert_eq!(host["MemorySwap"], 256 << 20);
    assert!(host["Binds"].is_null(), "{host}");
    assert_eq!(
        host["PortBindings"]
            .as_object()
            .map_or(0, serde_json::Map::len),
        0
    );
    let security = host["SecurityOpt"].to_string();
    assert!(
        security.contains("no-new-privileges:true") && security.contains("seccomp="),
        "{security}"
    );
    let mounts: Vec<(&str, bool)> = found["Mounts"]
        .as_array()
        .expect("mounts")
        .iter()
        .map(|mount| {
            assert_eq!(mount["Type"], "volume", "{mount}");
            (
                mount["Destination"].as_str().expect("a path"),
                mount["RW"].as_bool().expect("a word"),
            )
        })
        .collect();
    assert!(
        mounts.len() == 2
            && mounts.contains(&("/run/podbay/bin", false))
            && mounts.contains(&("/run/podbay/egress", true)),
        "{mounts:?}"
    );
    let environment = config["Env"].to_string();
    assert!(!environment.contains("PODBAY"), "{environment}");
    // The sandbox itself is as closed as without it.
    let filter = format!("label=dev.podbay.project={}", env.key());
    let role = "label=dev.podbay.role=workspace";
    let id = docker(&["ps", "--quiet", "--filter", &filter, "--filter", role]);
    let sandbox = inspect(id.trim());
    assert_eq!(sandbox["HostConfig"]["NetworkMode"], "none");
    let is_socket = |mount: &&Value| mount["Destination"] == "/run/podbay/egress";
    let socket = sandbox["Mounts"]
        .as_array()
        .and_then(|mounts| mounts.iter().find(is_socket))
        .expect("the gateway's volume");
    assert_eq!(socket["RW"], false);
    env.write("over", "");
    sh.wait().expect(0);
    env.assert_no_container();
    assert_eq!(env.gateway_volumes(), "");
}

#[test]
fn a_gateway_that_is_killed_is_there_again_with_its_rules() {
    let Some(env) = TestBox::new() else { return };
    let outside = Outside::new();
    outside.tell(&env, "");
    let web = outside.serve(Files::from([("/".to_owned(), b"a page".to_vec())]));
    let rule = format!("web.example:{} private", web.port);
    let fetch = format!(
        "curl --silent --fail --max-time 20 http://web.example:{}/",
        web.port
    );
    let command =
        format!("{fetch} && touch begun; while ! test -e over; do sleep 0.1; done; {fetch}");
    let sh = start(&mut env.here(&["sh", "--allow-host", &rule, "--", "sh", "-c", &command]));
    env.wait_for("begun");
    let before = env.gateway();
    docker(&["kill", &before]);
    env.write("over", "");
    let done = sh.wait();
    assert_eq!(done.text(), "a pagea page", "{}", done.stderr);
    assert!(
        done.stderr.contains("the gateway to the network ended")
            && done.stderr.contains("started anew"),
        "{}",
        done.stderr
    );
    env.assert_no_container();
}

#[test]
fn what_a_killed_controller_leaves_of_its_gateway_is_collected() {
    let Some(env) = TestBox::new() else { return };
    let _alone = alone_with_gc();
    Outside::new().tell(&env, "");
    let sh = start(&mut env.here(&[
        "sh",
        "--network",
        "allowlist",
        "--",
        "sh",
        "-c",
        "touch begun; sleep 600",
    ]));
    env.wait_for("begun");
    env.gateway();
    sh.signal(Signal::SIGKILL);
    sh.wait();
    // Both ends of it see that: the containers end by themselves.
    env.assert_no_container();
    // Another start may have removed its volume already.
    run(&mut env.podbay(&["gc"])).expect(0);
    assert_eq!(env.gateway_volumes(), "");
}

#[test]
fn an_open_network_is_announced_and_reaches_what_the_engine_reaches() {
    let Some(env) = TestBox::new() else { return };
    let outside = Outside::new();
    let web = outside.serve(Files::from([("/".to_owned(), b"a page".to_vec())]));
    let fetch = format!(
        "curl --silent --fail --max-time 20 http://{}:{}/",
        outside.address(),
        web.port
    );
    let done = run(&mut env.here(&["sh", "--network", "open", "--", "sh", "-c", &fetch]));
    assert_eq!(done.text(), "a page", "{}", done.stderr);
    assert!(done.stderr.contains("is OPEN"), "{}", done.stderr);
}

#[test]
fn a_project_cannot_let_hosts_through_and_can_close_the_network() {
    let Some(env) = TestBox::new() else { return };
    let outside = Outside::new();
    let web = outside.serve(Files::from([("/".to_owned(), b"a page".to_vec())]));
    let rule = format!("allow = [\"web.example:{} private\"]", web.port);
    let fetch = format!(
        "curl --silent --max-time 5 http://web.example:{}/; echo \" $?\"",
        web.port
    );
    let sh = || run(&mut env.here(&["sh", "--", "sh", "-c", &fetch]));
    // Its own file allows nothing.
    outside.tell(&env, "");
    env.write(
        ".podbay/config.toml",
        format!("[network]\nmode = \"allowlist\"\n{rule}\n"),
    );
    let done = sh();
    assert!(
        done.text().trim().starts_with('6'),
        "{} {}",
        done.text(),
        done.stderr
    );
    assert!(done.stderr.contains("network.allow"), "{}", done.stderr);
    // The user's file does, by a rule alone.
    env.write(".podbay/config.toml", "");
    outside.tell(&env, &rule);
    assert_eq!(sh().text(), "a page 0\n");
    // What it allows the project's file takes away.
    env.write(
        ".podbay/config.toml",
        "[network]\ndeny = [\"*.web.example\", \"web.example:80\"]\n",
    );
    assert_eq!(sh().text(), "a page 0\n");
    let deny = format!("[network]\ndeny = [\"web.example:{}\"]\n", web.port);
    env.write(".podbay/config.toml", deny);
    let denied = sh().text();
    assert!(
        denied.contains("denies it") && denied.contains("blocked by policy"),
        "{denied}"
    );
    env.write(".podbay/config.toml", "[network]\nmode = \"none\"\n");
    assert!(sh().text().trim().starts_with('6'));
}
