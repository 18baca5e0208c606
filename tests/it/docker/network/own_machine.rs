//! A service of the user's machine, on its loopback.

use std::io::Read;
use std::io::Write;
use std::net::TcpListener;

use super::super::test_box::TestBox;
use super::outside::Outside;
use crate::support::test_env::run;

/// Sends back what comes, behind a greeting, on this machine's loopback.
fn service(greeting: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                // A client that hangs up is no fault of the server's.
                drop(stream.write_all(greeting.as_bytes()));
                let mut buffer = [0; 4096];
                while let Ok(length @ 1..) = stream.read(&mut buffer) {
                    if stream.write_all(&buffer[..length]).is_err() {
                        break;
                    }
                }
            });
        }
    });
    port
}

/// Says what a port of the machine answers, and sends it a mebibyte that must come back.
fn talk(port: u16) -> String {
    format!(
        "python3 -c '
import socket, sys, threading
try:
    s = socket.create_connection((\"host.docker.internal\", {port}), 5)
    print(s.recv(5).decode())
    sent = bytes(range(256)) * 4096
    threading.Thread(target=s.sendall, args=(sent,)).start()
    seen = b\"\"
    while len(seen) < len(sent):
        part = s.recv(65536)
        if not part: break
        seen += part
    print(seen == sent)
except OSError as error:
    print(\"none:\", error)
'"
    )
}

#[test]
fn a_service_of_the_users_machine_needs_a_rule_that_names_its_port() {
    let Some(env) = TestBox::new() else { return };
    Outside::new().tell(&env, "");
    let (service, other) = (service("hello"), self::service("other"));
    let rule = format!("host.docker.internal:{service}");
    let sh = |rules: &[&str], command: &str| {
        let mut arguments = vec!["sh", "--network", "allowlist"];
        for rule in rules {
            arguments.extend(["--allow-host", rule]);
        }
        arguments.extend(["--", "sh", "-c", command]);
        run(&mut env.here(&arguments))
    };
    let reached = sh(&[&rule], &format!("{}; {}", talk(service), talk(other)));
    let text = reached.text();
    assert!(
        text.starts_with("hello\nTrue\nnone: "),
        "{text} {}",
        reached.stderr
    );
    // By the proxy as well, and nothing else there.
    let proxied = |port: u16| {
        format!(
            "python3 -c '
import socket
s = socket.create_connection((\"127.0.0.1\", 3128), 5)
s.sendall(b\"CONNECT host.docker.internal:{port} HTTP/1.1\\r\\nHost: host.docker.internal:{port}\\r\\n\\r\\n\")
f = s.makefile(\"rb\")
print(f.readline().decode().strip(), f.readline().decode().strip(), f.read(5).decode())
'"
        )
    };
    let done = sh(
        &[&rule],
        &format!("{}; {}", proxied(service), proxied(other)),
    );
    let text = done.text();
    assert!(
        text.starts_with("HTTP/1.1 200 OK  hello\nHTTP/1.1 403 Blocked by policy "),
        "{text} {}",
        done.stderr
    );
    // Neither a wildcard nor no rule at all means the machine.
    let wildcard = format!("*.docker.internal:{service} raw private");
    for rules in [&[][..], &[wildcard.as_str()]] {
        let done = sh(rules, &talk(service));
        assert!(
            done.text().starts_with("none: "),
            "{rules:?}: {} {}",
            done.text(),
            done.stderr
        );
        assert!(
            done.stderr.contains("host.docker.internal (python"),
            "{}",
            done.stderr
        );
    }
    let unnamed = sh(&["host.docker.internal"], "true");
    assert!(
        unnamed.code != 0 && unnamed.stderr.contains("host.docker.internal:5432"),
        "{}",
        unnamed.stderr
    );
    env.assert_no_container();
}

#[test]
fn a_port_of_the_machine_at_which_nothing_listens_fails_with_the_reason() {
    let Some(env) = TestBox::new() else { return };
    Outside::new().tell(&env, "");
    let port = {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.local_addr().expect("its address").port()
    };
    let rule = format!("host.docker.internal:{port}");
    let command = format!("curl --silent http://host.docker.internal:{port}/");
    let done = run(&mut env.here(&["sh", "--allow-host", &rule, "--", "sh", "-c", &command]));
    assert!(
        done.text().contains("is allowed and was not reached") && done.text().contains("refused"),
        "{} {}",
        done.text(),
        done.stderr
    );
}
