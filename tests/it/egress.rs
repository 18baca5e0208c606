//! The role `podbay egress`: rules in, attempts out, clients at the socket. What the gateway does
//! with a connection is tested in its own crate.

use std::fs;
use std::io;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Child;
use std::process::ChildStdin;
use std::process::Command;
use std::process::Stdio;

use podbay::wire::BLOCKED;
use podbay::wire::EgressAccess;
use podbay::wire::EgressAttempt;
use podbay::wire::EgressEvent;
use podbay::wire::MAX_RULES_LINE;
use podbay::wire::PROTOCOL;

struct Role {
    child: Child,
    rules: Option<ChildStdin>,
    events: BufReader<Box<dyn Read>>,
    socket: PathBuf,
    _folder: tempfile::TempDir,
}

impl Role {
    fn start() -> Self {
        Self::start_with("")
    }

    /// Starts it behind words of a shell.
    fn start_with(before: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("egress.sock");
        let mut child = Command::new("/bin/sh")
            .args([
                "-c",
                &format!("{before}exec \"$0\" egress \"$1\""),
                env!("CARGO_BIN_EXE_podbay"),
            ])
            .arg(&socket)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("podbay");
        let (rules, events) = (child.stdin.take(), child.stdout.take().expect("a pipe"));
        let mut role = Self {
            child,
            rules,
            events: BufReader::new(Box::new(events)),
            socket,
            _folder: folder,
        };
        assert_eq!(role.event(), EgressEvent::Ready { protocol: PROTOCOL });
        role
    }

    fn tell(&mut self, line: &str) {
        writeln!(self.rules.as_ref().expect("it is open"), "{line}").expect("told");
    }

    fn event(&mut self) -> EgressEvent {
        let mut line = String::new();
        self.events.read_line(&mut line).expect("a line");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    fn attempt(&mut self) -> EgressAttempt {
        match self.event() {
            EgressEvent::Attempt(attempt) => attempt,
            other => panic!("{other:?}"),
        }
    }

    fn send(&self, request: &str) -> UnixStream {
        let mut stream = UnixStream::connect(&self.socket).expect("it listens");
        stream.write_all(request.as_bytes()).expect("sent");
        stream
    }

    fn answer(&self, request: &str) -> String {
        let mut answer = String::new();
        self.send(request)
            .read_to_string(&mut answer)
            .expect("an answer");
        answer
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        // A test that fails leaves it behind otherwise.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

const GET: &str = "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n";

/// A proxy of the host, behind which each server answers with the same words.
fn upstream() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a client");
            let mut head = [0; 64];
            let length = stream.read(&mut head).expect("a head");
            assert!(
                head[..length].starts_with(b"CONNECT a.example:"),
                "{:?}",
                String::from_utf8_lossy(&head)
            );
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").expect("sent");
            std::thread::spawn(move || {
                // Whatever it is asked for, if it is.
                if stream.read(&mut [0; 1024]).is_ok_and(|length| length > 0) {
                    drop(stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nword"));
                    drop(stream.read(&mut [0; 1024]));
                }
            });
        }
    });
    port
}

fn rules(generation: u64, rule: &str, port: u16) -> String {
    format!(
        r#"{{"type":"rules","generation":{generation},"rules":[{rule}],"upstream":{{"host":"127.0.0.1","port":{port}}}}}"#
    )
}

#[test]
fn rules_come_as_lines_and_attempts_leave_as_lines() {
    let mut role = Role::start();
    assert_eq!(
        fs::metadata(&role.socket)
            .expect("a socket")
            .permissions()
            .mode()
            & 0o777,
        0o666
    );
    let denied = role.answer(GET);
    assert!(
        denied.starts_with("HTTP/1.1 403 Blocked by policy\r\n") && denied.contains(BLOCKED),
        "{denied}"
    );
    assert_eq!(role.attempt().because, "no rule allows this host");
    role.tell(&rules(7, r#"{"host":"a.example"}"#, upstream()));
    assert_eq!(role.event(), EgressEvent::RulesSet { generation: 7 });
    assert!(role.answer(GET).ends_with("\r\n\r\nword"));
    let attempt = role.attempt();
    assert_eq!(
        (
            attempt.host.as_str(),
            attempt.access,
            attempt.allowed,
            attempt.bytes_received
        ),
        ("a.example", EgressAccess::Http, true, 4)
    );
}

#[test]
fn a_line_that_is_not_understood_allows_nothing_any_more() {
    let mut role = Role::start();
    role.tell(&rules(
        7,
        r#"{"host":"a.example:80","raw":true}"#,
        upstream(),
    ));
    assert_eq!(role.event(), EgressEvent::RulesSet { generation: 7 });
    let mut tunnel = role.send("CONNECT a.example:80 HTTP/1.1\r\nHost: a.example:80\r\n\r\nx");
    let mut head = [0; 19];
    tunnel.read_exact(&mut head).expect("an answer");
    assert_eq!(&head, b"HTTP/1.1 200 OK\r\n\r\n");
    role.tell(r#"{"type":"rules","generation":8,"rules":[{"host":"*"}]}"#);
    assert!(matches!(role.event(), EgressEvent::RulesRefused { .. }));
    drop(tunnel.read_to_end(&mut Vec::new()));
    assert!(
        role.attempt()
            .failure
            .is_some_and(|failure| failure.contains("withdrawn"))
    );
    assert!(role.answer(GET).starts_with("HTTP/1.1 403 "));
    role.attempt();
    role.tell(&"x".repeat(MAX_RULES_LINE + 1));
    assert!(matches!(role.event(), EgressEvent::RulesRefused { .. }));
    assert!(
        role.child.wait().expect("it ends").success(),
        "the controller is not what it should be"
    );
}

#[test]
fn the_end_of_its_input_ends_it_and_its_streams_are_told() {
    let mut role = Role::start();
    role.tell(&rules(
        1,
        r#"{"host":"a.example:80","raw":true}"#,
        upstream(),
    ));
    role.event();
    let mut tunnel = role.send("CONNECT a.example:80 HTTP/1.1\r\nHost: a.example:80\r\n\r\n");
    tunnel.read_exact(&mut [0; 19]).expect("an answer");
    role.rules = None;
    drop(tunnel.read_to_end(&mut Vec::new()));
    assert!(
        role.attempt()
            .failure
            .is_some_and(|failure| failure.starts_with("cut: "))
    );
    assert!(role.child.wait().expect("it ends").success());
    assert!(!role.socket.exists());
}

#[test]
fn it_ends_once_its_attempts_are_not_heard() {
    let mut role = Role::start();
    role.events = BufReader::new(Box::new(io::empty()));
    drop(role.answer(GET));
    assert!(
        !role.child.wait().expect("it ends").success(),
        "a controller that is gone"
    );
}

/// The bound of the page: 1,000 idle connections in 64 MiB. As many descriptors as that takes,
/// whatever it was started with.
#[test]
fn a_thousand_idle_tunnels_need_little_memory() {
    let mut role = Role::start_with("ulimit -Sn 256 && ");
    role.tell(&rules(
        1,
        r#"{"host":"a.example:80","raw":true}"#,
        upstream(),
    ));
    role.event();
    let mut tunnels = Vec::new();
    for number in 0..1000 {
        let mut tunnel = role.send("CONNECT a.example:80 HTTP/1.1\r\nHost: a.example:80\r\n\r\n");
        let mut head = [0; 19];
        tunnel.read_exact(&mut head).expect("an answer");
        assert_eq!(&head, b"HTTP/1.1 200 OK\r\n\r\n", "{number}");
        tunnels.push(tunnel);
    }
    let status = fs::read_to_string(format!("/proc/{}/status", role.child.id())).expect("it runs");
    let resident = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .expect("a figure");
    let kibibytes: u64 = resident
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .expect("a number");
    assert!(kibibytes <= 64 * 1024, "{kibibytes} KiB");
}

#[test]
fn it_says_how_it_is_started() {
    let done = Command::new(env!("CARGO_BIN_EXE_podbay"))
        .arg("egress")
        .output()
        .expect("podbay");
    assert_eq!(
        (
            done.status.code(),
            String::from_utf8_lossy(&done.stderr).as_ref()
        ),
        (
            Some(1),
            "podbay egress: usage: podbay egress SOCKET [--name-server ADDRESS:PORT]…\n"
        )
    );
}
