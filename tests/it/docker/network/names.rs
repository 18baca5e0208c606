//! Programs that know nothing of proxies, by the sandbox's own name server.

use std::io::Write;
use std::net::TcpListener;

use serde_json::json;

use super::super::test_box::TestBox;
use super::outside::Files;
use super::outside::Outside;
use crate::support::ScriptedModel;
use crate::support::test_env::run;

/// Takes the proxy away.
const IGNORANT: &str =
    "for name in $(env | grep -i -o '^[a-z_]*proxy='); do unset ${name%=}; done; ";

#[test]
fn a_program_that_ignores_proxies_reaches_an_allowed_host_and_no_other() {
    let Some(env) = TestBox::new() else { return };
    let outside = Outside::new();
    outside.tell(&env, "");
    let web = outside.serve(Files::from([("/page".to_owned(), b"a page".to_vec())]));
    let rule = format!("web.example:{} private", web.port);
    let sh = |command: &str| {
        let command = format!("{IGNORANT}{command}");
        run(&mut env.here(&["sh", "--allow-host", &rule, "--", "sh", "-c", &command]))
    };
    let url = format!("http://web.example:{}/page", web.port);
    let fetched = sh(&format!("curl --silent --show-error --fail {url}")).expect(0);
    assert_eq!(fetched.text(), "a page", "{}", fetched.stderr);
    // Another client, which asks for both families.
    let python = format!(
        "python3 -c 'import urllib.request; print(urllib.request.urlopen(\"{url}\").read())'"
    );
    let fetched = sh(&python).expect(0);
    assert_eq!(fetched.text().trim(), "b'a page'", "{}", fetched.stderr);
    assert_eq!(web.requests().len(), 2);
    // Another name, another port, and the host in a header alone.
    let denied = sh(&format!(
        "curl --silent --write-out '%{{exitcode}} %{{time_total}}\\n' http://other.example:{port}/page; \
         curl --silent --write-out '%{{exitcode}} %{{time_total}}\\n' http://web.example:9/page; \
         curl --silent --header 'Host: other.example' {url}",
        port = web.port
    ));
    let text = denied.text();
    let mut lines = text.lines();
    assert!(
        lines.next().is_some_and(|line| line.starts_with("6 0.")),
        "{text}"
    );
    assert!(
        lines.next().is_some_and(|line| line.starts_with("7 0.")),
        "{text}"
    );
    assert!(
        text.contains("names another host"),
        "{text} {}",
        denied.stderr
    );
    assert_eq!(web.requests().len(), 2);
    assert!(
        denied
            .stderr
            .contains("other.example (curl) was denied: no rule allows this host"),
        "{}",
        denied.stderr
    );
    // Only what is allowed is looked up, and only by the gateway.
    assert!(
        outside.asked().iter().all(|name| name == "web.example"),
        "{:?}",
        outside.asked()
    );
    env.assert_no_container();
}

#[test]
fn a_raw_rule_leads_a_program_to_a_server_that_speaks_first() {
    let Some(env) = TestBox::new() else { return };
    let outside = Outside::new();
    outside.tell(&env, "");
    let listener = TcpListener::bind((outside.address(), 0)).expect("a port of the bridge");
    let port = listener.local_addr().expect("its address").port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // A client that hangs up is no fault of the server's.
            drop(stream.write_all(b"welcome\n"));
        }
    });
    let rule = format!("db.example:{port} raw private");
    let command = format!(
        "python3 -c 'import socket; print(socket.create_connection((\"db.example\", {port})).recv(99))'"
    );
    let done = run(&mut env.here(&["sh", "--allow-host", &rule, "--", "sh", "-c", &command]));
    assert_eq!(done.text(), "b'welcome\\n'\n", "{}", done.stderr);
}

#[test]
fn a_run_ends_with_the_hosts_that_were_tried_and_who_asked() {
    let Some(env) = TestBox::new() else { return };
    let outside = Outside::new();
    outside.tell(&env, "");
    let web = outside.serve(Files::from([("/".to_owned(), b"a page".to_vec())]));
    let fetch = format!(
        "curl --silent http://web.example:{port}/; curl --silent https://evil.example/; {IGNORANT} curl --silent http://other.example/",
        port = web.port
    );
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": fetch}))
        .says("Done.")
        .start_blocking();
    let rule = format!("web.example:{} private", web.port);
    let done = run(&mut env.task(&model, &["--allow-host", &rule, "work"])).expect(0);
    assert_eq!(
        done.json()["network"],
        json!({
            "reached": [format!("web.example:{}", web.port)],
            "failed": [],
            "denied": ["evil.example:443", "other.example"],
            "more": false,
        }),
        "{}",
        done.stderr
    );
    assert!(
        done.stderr.contains(&format!(
            "network: reached web.example:{}; denied evil.example:443, other.example\n",
            web.port
        )),
        "{}",
        done.stderr
    );
    let log = run(&mut env.here(&["logs", "--network"])).expect(0).text();
    assert!(
        log.contains("evil.example:443 (curl) was denied")
            && log.contains("other.example (curl) was denied")
            && log.contains(&format!("web.example:{} (curl) was allowed", web.port)),
        "{log}"
    );
}
