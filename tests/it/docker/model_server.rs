//! The container of our own model server: it reads a file from anywhere, so it is taken for as
//! hostile as a command.

use podbay::engine;
use podbay::engine::Provision;
use podbay::inference;
use podbay::inference::ModelServer;
use podbay::inference::Paths;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::connect;
use super::inference::TURN;
use super::inference::complete;
use super::inference::models;
use super::inference::smoke;
use super::inspect::check_settings;
use super::inspect::inspect;
use super::progress;
use super::test_box::TestBox;
use super::test_box::docker;

/// Removes the server also where the test fails.
struct Server(String);

impl Drop for Server {
    fn drop(&mut self) {
        docker(&["rm", "--force", &self.0]);
    }
}

#[tokio::test]
async fn a_port_that_is_taken_is_left_to_whoever_has_it() {
    let Some(env) = TestBox::new() else { return };
    let Some(engine) = connect().await else {
        return;
    };
    let _turn = TURN.lock().await;
    let (cancel, progress) = (CancellationToken::new(), progress());
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let options = inference::Options {
        context: Some(1024),
        publish: true,
        port,
        ..inference::Options::default()
    };
    let model = smoke(&options, &Paths::new(models())).await;
    let paths = Paths::new(env.state());
    let provision = Provision::new(
        &engine,
        &engine::Options::default(),
        false,
        paths.locks(),
        &progress,
    )
    .allow_install(true);
    let image = provision
        .ensure(options.image_name(), &cancel)
        .await
        .expect("an image");
    let serving = ModelServer::new(&engine, &options, &paths)
        .ensure(&image, &model, &progress, &cancel)
        .await
        .expect("a server");
    let server = Server(serving.container.0.clone());
    let endpoint = serving.endpoint.to_string();
    assert!(
        endpoint.starts_with("http://127.0.0.1:") && !endpoint.contains(&format!(":{port}")),
        "{endpoint}"
    );
    // Nobody but this machine reaches it; it has a network then, and no names in it.
    let container = inspect(&server.0);
    assert_eq!(container["HostConfig"]["NetworkMode"], "bridge");
    let bindings = &container["HostConfig"]["PortBindings"];
    assert_eq!(
        bindings.as_object().map(serde_json::Map::len),
        Some(1),
        "{bindings}"
    );
    assert_eq!(
        (&bindings["8080/tcp"][0]["HostIp"], &bindings["8080/tcp"][1]),
        (&json!("127.0.0.1"), &json!(null)),
        "{bindings}"
    );
    assert_eq!(docker(&["exec", &server.0, "cat", "/etc/resolv.conf"]), "");
}

/// Looks around in the container, by the few programs that its image has.
const LOOK: &str = "cat /proc/1/status; ls /sys/class/net; cat /etc/resolv.conf; \
                    for path in /x /tmp/x /run/x /dev/x /run/key/x /run/llama/x; do (echo x > $path) 2>/dev/null && echo made $path; done; \
                    for path in /model.gguf /run/key/key /etc/hosts; do (echo x >> $path) 2>/dev/null && echo wrote $path; done; \
                    echo key: && cat /run/key/key";

#[tokio::test]
async fn the_model_server_is_as_closed_as_the_workspace() {
    let Some(env) = TestBox::new() else { return };
    let Some(engine) = connect().await else {
        return;
    };
    let _turn = TURN.lock().await;
    let (cancel, progress) = (CancellationToken::new(), progress());
    // The model is the other tests' own, the server and its key are this one's.
    let options = inference::Options {
        context: Some(2048),
        ..inference::Options::default()
    };
    let model = smoke(&options, &Paths::new(models())).await;
    let paths = Paths::new(env.state());
    let provision = Provision::new(
        &engine,
        &engine::Options::default(),
        false,
        paths.locks(),
        &progress,
    )
    .allow_install(true);
    let image = provision
        .ensure(options.image_name(), &cancel)
        .await
        .expect("an image");
    let serving = ModelServer::new(&engine, &options, &paths)
        .ensure(&image, &model, &progress, &cancel)
        .await
        .expect("a server");
    let server = Server(serving.container.0.clone());
    let container = inspect(&server.0);

    let n_cpus: u64 = docker(&["info", "--format", "{{.NCPU}}"])
        .trim()
        .parse()
        .expect("a number");
    let (state, memory) = (
        env.state().canonicalize().expect("made"),
        &container["HostConfig"]["Memory"],
    );
    let own = state.join("model-server");
    let folder = |name: &str| own.join(name);
    let only = json!({"Propagation": "rprivate", "NonRecursive": true});
    let bind = |source: &std::path::Path, target: &str| json!({"Type": "bind", "Source": source, "Target": target, "ReadOnly": true, "BindOptions": only});
    let mut socket = bind(&folder("run"), "/run/llama");
    socket
        .as_object_mut()
        .expect("an object")
        .remove("ReadOnly");
    assert!(
        memory.as_u64().is_some_and(|bytes| bytes > 256 << 20),
        "{memory}"
    );
    check_settings(
        &container,
        json!({
            "CpuShares": 1024,
            "LogConfig": {"Type": "json-file", "Config": {"max-size": "4m", "max-file": "2"}},
            "Memory": memory,
            "MemorySwap": memory,
            "Mounts": [bind(&folder("key"), "/run/key"), bind(&model.files[0], "/model.gguf"), socket],
            "NanoCpus": n_cpus * 1_000_000_000,
            "OomScoreAdj": 200,
            "PidsLimit": 64 + 4 * n_cpus,
            "ShmSize": 1 << 20,
            "Ulimits": [
                {"Name": "core", "Hard": 0, "Soft": 0},
                {"Name": "nofile", "Hard": 1024, "Soft": 1024},
                {"Name": "fsize", "Hard": 0, "Soft": 0},
                {"Name": "memlock", "Hard": 65536, "Soft": 65536},
                {"Name": "msgqueue", "Hard": 0, "Soft": 0},
                {"Name": "sigpending", "Hard": 4096, "Soft": 4096},
            ],
            "Tmpfs": {"/dev/shm": "rw,noexec,nosuid,nodev,size=1m,nr_inodes=1k,mode=1777"},
        }),
    );
    assert_eq!(
        serving.warnings, [""; 0],
        "its limits are in force, read back from the kernel"
    );
    let key = serving.key.expose();
    assert!(
        !container.to_string().contains(key),
        "the key is neither in its arguments nor in its environment"
    );

    let found = docker(&["exec", &server.0, "sh", "-c", LOOK]);
    let status = |name: &str| {
        let line = found
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap_or_else(|| panic!("{name} is missing: {found}"));
        line.split_whitespace()
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    assert_ne!(status("Uid:"), "0", "never root");
    for name in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        assert_eq!(status(name), "0000000000000000", "{name}");
    }
    assert_eq!(
        (status("NoNewPrivs:").as_str(), status("Seccomp:").as_str()),
        ("1", "2")
    );
    let rest: Vec<&str> = found
        .lines()
        .skip_while(|line| line.contains(':'))
        .collect();
    assert_eq!(
        rest,
        ["lo", "key:", key],
        "it can write nowhere, also not beside its socket"
    );

    // And so it answers.
    assert!(
        ["red", "blue"].contains(
            &complete(&serving).await["colour"]
                .as_str()
                .expect("a colour")
        )
    );
}
