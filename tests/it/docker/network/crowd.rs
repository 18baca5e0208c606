//! As many connections at once as a sandbox may have, and what they cost while nothing goes.

use std::net::TcpListener;
use std::time::Duration;

use nix::sys::resource::Resource;
use nix::sys::resource::getrlimit;
use nix::sys::resource::setrlimit;

use super::super::test_box::TestBox;
use super::super::test_box::docker;
use super::outside::Outside;
use crate::support::test_env::start;
use crate::support::test_env::within;

/// What the guest carries at once.
const CONNECTIONS: usize = 1000;

/// For the gateway and the guest together, beside the pages of the program, which they share, and of
/// which a build for tests has many. The bar is 64 MiB with them.
const MOST_KIB: u64 = 32 * 1024;

/// Opens all of them, and one more, which waits until another one ends.
const CLIENT: &str = r#"
ask() { printf "CONNECT web.example:$PORT HTTP/1.1\r\nHost: web.example:$PORT\r\n\r\n" >&"$1"; }
for n in $(seq 1000); do
    exec {fd}<>/dev/tcp/127.0.0.1/3128
    ask $fd
    read -r -t 20 line <&$fd && [[ $line == *200* ]] || echo "the connection $n: $line"
    read -r -t 20 line <&$fd
    read -r -t 20 line <&$fd && [[ $line == hello* ]] || echo "the tunnel $n: $line"
done
exec {late}<>/dev/tcp/127.0.0.1/3128
ask $late
read -r -t 1 line <&$late && echo "served beyond the bound: $line"
touch open
while ! test -e looked; do sleep 0.1; done
exec {fd}>&-
read -r -t 20 line <&$late && [[ $line == *200* ]] && echo "the late one is served"
"#;

fn raise_descriptors() {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    let wanted = (4 * CONNECTIONS as u64).min(hard);
    if soft < wanted {
        setrlimit(Resource::RLIMIT_NOFILE, wanted, hard).expect("raised");
    }
}

/// Returns what the first process of a container has resident of its own.
fn resident_kib(container: &str) -> u64 {
    let pid = docker(&["inspect", "--format", "{{.State.Pid}}", container]);
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", pid.trim())).expect("a process");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|text| text.parse().ok()).expect("a number")
}

/// For each connection the guest looks for the program that asks, among all sockets that there are.
#[test]
#[ignore = "just soak: opens a thousand connections one after the other"]
fn a_thousand_idle_connections_cost_little_and_one_more_waits_for_its_place() {
    let Some(env) = TestBox::new() else { return };
    raise_descriptors();
    let outside = Outside::new();
    outside.tell(&env, "");
    let listener = TcpListener::bind((outside.address(), 0)).expect("a port of the bridge");
    let port = listener.local_addr().expect("its address").port();
    std::thread::spawn(move || {
        use std::io::Write;
        let mut held = Vec::new();
        for mut stream in listener.incoming().flatten() {
            // Each has carried something, and is idle from then on.
            drop(stream.write_all(b"hello\n"));
            held.push(stream);
        }
    });
    let rule = format!("web.example:{port} raw private");
    let script = format!("PORT={port}\n{CLIENT}");
    let words = ["sh", "--allow-host", &rule, "--", "bash", "-c", &script];
    let client = start(&mut env.here(&words));
    assert!(
        within(Duration::from_mins(3), || env.path("open").exists()),
        "it opens them"
    );
    let (guest, gateway) = (resident_kib(&env.container()), resident_kib(&env.gateway()));
    assert!(
        guest + gateway <= MOST_KIB,
        "the guest has {guest} KiB, the gateway {gateway} KiB"
    );
    env.write("looked", "");
    let done = client.wait().expect(0);
    assert_eq!(done.text(), "the late one is served\n", "{}", done.stderr);
    env.assert_no_container();
}
