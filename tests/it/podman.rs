//! Podman answers Docker's requests and leaves out what protects: it is refused before anything is
//! made.

use std::io::BufRead;
use std::io::BufReader;
use std::io::Write;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;

use serde_json::json;

use crate::doctor::diagnosis;
use crate::support::TestEnv;
use crate::support::test_env::run;

/// Answers as Podman does; returns the first lines of all requests.
fn podman(socket: &Path) -> Arc<Mutex<Vec<String>>> {
    let listener = UnixListener::bind(socket).expect("a free path");
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let heard = Arc::clone(&asked);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let heard = Arc::clone(&heard);
            std::thread::spawn(move || {
                let mut lines = BufReader::new(stream.try_clone().expect("cloned")).lines();
                while let Some(Ok(first)) = lines.next() {
                    let is_version = first.contains("/version");
                    heard.lock().expect("not poisoned").push(first);
                    while lines
                        .next()
                        .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
                    {
                    }
                    let body = if is_version {
                        json!({
                            "ApiVersion": "1.41",
                            "Version": "4.3.1",
                            "Components": [{"Name": "Podman Engine", "Version": "4.3.1"}, {"Name": "Conmon", "Version": "2.1.6"}],
                        })
                    } else {
                        json!({"ServerVersion": "4.3.1"})
                    };
                    let body = body.to_string();
                    let answer = format!(
                        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                        body.len()
                    );
                    if stream.write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    asked
}

#[test]
fn podman_is_refused_with_the_reason_and_nothing_is_made() {
    let env = TestEnv::new();
    let socket = env.beside("podman.sock");
    let asked = podman(&socket);
    let host = format!("unix://{}", socket.display());
    for arguments in [
        &["call", "read_file", "{\"path\":\"a\"}"][..],
        &["sh", "--", "true"],
        &["run", "--endpoint", "http://127.0.0.1:1", "work"],
    ] {
        let done = run(env
            .podbay(arguments)
            .current_dir(env.project())
            .env("DOCKER_HOST", &host));
        // A shell's own codes tell what its command did.
        let code = if arguments[0] == "sh" { 125 } else { 5 };
        let done = done.expect(code);
        assert!(done.stderr.contains("is Podman 4.3.1"), "{}", done.stderr);
        assert!(done.stderr.contains("hint: use Docker"), "{}", done.stderr);
    }
    let asked = asked.lock().expect("not poisoned");
    assert!(
        asked.iter().all(|line| line.starts_with("GET ")),
        "{asked:?}"
    );
    drop(asked);
    let found = diagnosis(
        env.podbay(&["doctor", "--json"]).env("DOCKER_HOST", &host),
        1,
    );
    let said = found.to_string();
    assert!(said.contains("is Podman 4.3.1"), "{said}");
}
