//! MCP servers over HTTP: through the gateway of the session, by its rules, and no other way.

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::ServerConnection;
use rustls::StreamOwned;
use rustls::pki_types::PrivateKeyDer;
use serde_json::Value;
use serde_json::json;

use super::super::test_box::TestBox;
use super::outside::Outside;
use crate::support::ScriptedModel;
use crate::support::mcp_http::HttpServer;
use crate::support::scripted_model::Running;
use crate::support::test_env::Done;
use crate::support::test_env::run;

/// Makes a certificate of `mcp.example`, and writes that of the authority that signed it.
fn certify(authority_file: &Path) -> Arc<ServerConfig> {
    let mut authority = rcgen::CertificateParams::new(Vec::new()).expect("no name");
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority_key = rcgen::KeyPair::generate().expect("a key");
    let of_authority = authority.self_signed(&authority_key).expect("signed");
    std::fs::write(authority_file, of_authority.pem()).expect("written");
    let issuer = rcgen::Issuer::new(authority, authority_key);
    let key = rcgen::KeyPair::generate().expect("a key");
    let signed = rcgen::CertificateParams::new(["mcp.example".to_owned()])
        .expect("a name")
        .signed_by(&key, &issuer)
        .expect("signed");
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![signed.der().clone()], key)
        .expect("a certificate");
    Arc::new(config)
}

/// Serves beyond the gateway; returns the port.
fn serve(outside: &Outside, server: &HttpServer, tls: Option<Arc<ServerConfig>>) -> u16 {
    let listener = TcpListener::bind((outside.address(), 0)).expect("a port of the bridge");
    let port = listener.local_addr().expect("its address").port();
    let server = server.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (server, tls) = (server.clone(), tls.clone());
            // A client that hangs up is no fault of the server's.
            std::thread::spawn(move || match tls {
                Some(tls) => {
                    let connection = ServerConnection::new(tls).expect("a connection");
                    drop(server.serve(StreamOwned::new(connection, stream)));
                }
                None => drop(server.serve(stream)),
            });
        }
    });
    port
}

fn result(model: &Running, n: usize) -> String {
    let requests = model.requests();
    let messages = requests[n]["messages"].as_array().expect("messages");
    let last = messages.last().expect("a result");
    last["content"].as_str().unwrap_or_default().to_owned()
}

/// The warnings about MCP servers; this machine's engine has others.
fn warnings(done: &Done) -> String {
    let result = done.json();
    let warnings = result["warnings"].as_array().expect("warnings").iter();
    let ours = warnings
        .filter_map(Value::as_str)
        .filter(|text| text.contains("MCP"));
    ours.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_server_over_https_is_called_through_the_gateway_and_the_sandbox_does_not_see_its_key() {
    let Some(env) = TestBox::new() else { return };
    let outside = Outside::new();
    outside.tell(&env, "");
    let authority = env.beside("authority.pem");
    let server = HttpServer::new(|_| None);
    let port = serve(&outside, &server, Some(certify(&authority)));
    let config = env.beside("mcp.toml");
    let settings = format!(
        "[mcp.servers.w]\nurl = 'https://mcp.example:{port}/mcp'\nbearer_token_env = 'MINE'\n"
    );
    std::fs::write(&config, settings).expect("written");
    let config = config.display().to_string();
    let rule = format!("mcp.example:{port} private");
    // It is in the environment or the arguments of no process, nor of the one that carries the call.
    let look = "cat /proc/*/environ /proc/*/cmdline 2>/dev/null | grep -ac '[s]esame'; ps ax | grep -c '[w]eb gateway w'";
    let model = ScriptedModel::new()
        .calls("mcp__w__echo", json!({"text": "hello"}))
        .calls("bash", json!({"command": look}))
        .says("Done.")
        .start_blocking();
    let words = [
        "--config",
        &config,
        "--allow-host",
        &rule,
        "--allow",
        "mcp__w__echo",
        "work",
    ];
    let mut command = env.task(&model, &words);
    let done = run(command
        .env("MINE", "sesame")
        .env("SSL_CERT_FILE", &authority))
    .expect(0);
    assert_eq!(result(&model, 1), "it heard hello", "{}", warnings(&done));
    assert!(
        result(&model, 2).starts_with("0\n1\n"),
        "{}",
        result(&model, 2)
    );
    let requests = server.requests();
    assert!(requests.len() >= 4, "{requests:?}");
    for request in requests.iter().filter(|request| request.method == "POST") {
        assert_eq!(request.headers["authorization"], "Bearer sesame");
        assert_eq!(request.target, "/mcp");
    }
    let log = run(&mut env.here(&["logs", "--network"])).expect(0).text();
    assert!(log.contains("(mcp w) was allowed by"), "{log}");
    // With the user's key it acts outside of the sandbox: without a rule, nobody there lets it.
    let model = ScriptedModel::new()
        .calls("mcp__w__echo", json!({"text": "hello"}))
        .says("Done.")
        .start_blocking();
    let without = ["--config", &config, "--allow-host", &rule, "work"];
    let mut command = env.task(&model, &without);
    run(command
        .env("MINE", "sesame")
        .env("SSL_CERT_FILE", &authority));
    let denied = result(&model, 1);
    assert!(
        denied.contains("does not allow to change something outside of the sandbox"),
        "{denied}"
    );
    // Who is not who the address says gets nothing.
    let n_before = server.requests().len();
    let model = ScriptedModel::new().says("Done.").start_blocking();
    let mut command = env.task(&model, &words);
    let done = run(command.env("MINE", "sesame")).expect(0);
    let told = warnings(&done);
    assert!(
        told.contains(
            "the MCP server `w` has no tools: no answer comes from it: TLS with mcp.example"
        ),
        "{told}"
    );
    assert_eq!(server.requests().len(), n_before);
    env.assert_no_container();
}

#[test]
fn a_server_over_http_is_reached_only_by_a_rule_about_its_host_and_one_of_a_project_once_enabled() {
    let Some(env) = TestBox::new() else { return };
    let outside = Outside::new();
    outside.tell(&env, "");
    let server = HttpServer::new(|_| None);
    let port = serve(&outside, &server, None);
    let url = format!("http://mcp.example:{port}/mcp");
    env.write(
        ".mcp.json",
        json!({"mcpServers": {"w": {"type": "http", "url": url}}}).to_string(),
    );
    let rule = format!("mcp.example:{port} private");
    let task = |words: &[&str]| {
        let model = ScriptedModel::new()
            .calls("mcp__w__echo", json!({"text": "hello"}))
            .says("Done.")
            .start_blocking();
        let words = [words, &["work"]].concat();
        let done = run(&mut env.task(&model, &words));
        (result(&model, 1), warnings(&done))
    };
    // It is the project's, and not enabled.
    let (_, told) = task(&["--allow-host", &rule]);
    assert!(
        told.contains("names MCP servers (w)") && server.requests().is_empty(),
        "{told}"
    );
    let shown = run(env
        .podbay(&["mcp", "trust", "--yes", "-C"])
        .arg(env.project()))
    .expect(0);
    assert!(
        shown.stderr.contains(&format!("w: {url}")),
        "{}",
        shown.stderr
    );
    // No gateway, then one whose rules are about others, then one that lets it.
    let (_, told) = task(&[]);
    assert!(
        told.contains("no gateway to the network") && told.contains("--allow-host"),
        "{told}"
    );
    let (_, told) = task(&["--allow-host", "other.example"]);
    assert!(told.contains("no rule allows this host"), "{told}");
    assert!(server.requests().is_empty());
    assert!(!outside.asked().iter().any(|name| name == "mcp.example"));
    let (result, told) = task(&["--allow-host", &rule]);
    assert_eq!(result, "it heard hello", "{told}");
    env.assert_no_container();
}
