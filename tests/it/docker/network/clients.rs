//! Programs in a sandbox that reach what rules allow, and are denied all else at once and with the
//! reason.

use std::io::Write;
use std::process::Command;
use std::time::Duration;

use super::super::test_box::TestBox;
use super::super::test_box::build_image;
use super::outside::Files;
use super::outside::Outside;
use crate::support::test_env::run;
use crate::support::test_env::start;

fn page(path: &str, body: &str) -> Files {
    Files::from([(path.to_owned(), body.as_bytes().to_vec())])
}

#[test]
fn curl_reaches_an_allowed_host_and_no_other() {
    let Some(env) = TestBox::new() else { return };
    let outside = Outside::new();
    outside.tell(&env, "");
    let web = outside.serve(page("/page", "a page"));
    let rule = format!("web.example:{} private", web.port);
    let sh = |command: &str| {
        run(&mut env.here(&["sh", "--allow-host", &rule, "--", "sh", "-c", command]))
    };
    let url = format!("http://web.example:{}/page", web.port);
    let fetched = sh(&format!("curl --silent --show-error --fail {url}")).expect(0);
    assert_eq!(fetched.text(), "a page", "{}", fetched.stderr);
    // The same server by another name and by its address, another port, TLS that is none.
    for denied in [
        format!("http://other.example:{}/page", web.port),
        format!("http://{}:{}/page", outside.address(), web.port),
        "http://web.example:9/".to_owned(),
        "http://localhost.example/".to_owned(),
    ] {
        let command =
            format!("curl --silent --write-out '%{{http_code}} %{{time_total}}' {denied}");
        let done = sh(&command);
        let text = done.text();
        assert!(
            text.contains("blocked by policy: ask for it, do not retry") && text.contains("403 0."),
            "{denied}: {text} {}",
            done.stderr
        );
    }
    assert_eq!(web.requests(), ["GET /page HTTP/1.1"]);
    // Nothing but the allowed name was looked up.
    assert!(
        outside.asked().iter().all(|name| name == "web.example"),
        "{:?}",
        outside.asked()
    );
    env.assert_no_container();
}

#[test]
fn without_a_rule_everything_is_denied_and_nothing_looked_up() {
    let Some(env) = TestBox::new() else { return };
    let outside = Outside::new();
    outside.tell(&env, "");
    let command = "for n in 1 2 3 4 5; do curl --silent --show-error https://$n.secret.example/; done 2>&1; \
                   git ls-remote https://git.example/x.git 2>&1";
    let done = run(&mut env.here(&["sh", "--network", "allowlist", "--", "sh", "-c", command]));
    assert_eq!(
        done.text().matches("403").count(),
        6,
        "{}\n{}",
        done.text(),
        done.stderr
    );
    assert!(
        done.stderr
            .contains("1.secret.example:443 (curl) was denied: no rule allows this host"),
        "{}",
        done.stderr
    );
    assert!(outside.asked().is_empty(), "{:?}", outside.asked());
}

#[test]
fn in_none_nothing_tells_of_a_proxy_and_nothing_listens() {
    let Some(env) = TestBox::new() else { return };
    let command = "env | grep -i -c -e proxy -e JAVA_TOOL; ls -d /run/podbay/egress; \
                   curl --silent --max-time 5 http://127.0.0.1:3128/; echo $?";
    let done = run(&mut env.here(&["sh", "--", "sh", "-c", command]));
    assert_eq!(done.text(), "0\n7\n", "{}", done.stderr);
}

#[test]
fn git_clones_over_http_from_an_allowed_host() {
    let Some(env) = TestBox::new() else { return };
    let outside = Outside::new();
    outside.tell(&env, "");
    let source = env.beside("source");
    let git = |arguments: &[&str]| {
        let done = Command::new("git")
            .args(arguments)
            .current_dir(&source)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .envs([
                ("GIT_AUTHOR_NAME", "a"),
                ("GIT_AUTHOR_EMAIL", "a@example"),
                ("GIT_COMMITTER_NAME", "a"),
                ("GIT_COMMITTER_EMAIL", "a@example"),
                ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ])
            .output()
            .expect("git");
        assert!(done.status.success(), "{arguments:?}: {done:?}");
    };
    std::fs::create_dir(&source).expect("made");
    std::fs::write(source.join("file"), "cloned").expect("written");
    git(&["init", "--quiet"]);
    git(&["add", "file"]);
    git(&["commit", "--quiet", "--message", "one"]);
    git(&["update-server-info"]);
    let mut files = Files::new();
    let repository = source.join(".git");
    let mut folders = vec![repository.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(&repository).expect("below it");
                files.insert(
                    format!("/repo.git/{}", name.display()),
                    std::fs::read(&path).expect("read"),
                );
            }
        }
    }
    let web = outside.serve(files);
    let rule = format!("git.example:{} private", web.port);
    let command = format!(
        "cd /tmp && git clone --quiet http://git.example:{}/repo.git && cat repo/file",
        web.port
    );
    let done = run(&mut env.here(&["sh", "--allow-host", &rule, "--", "sh", "-c", &command]));
    assert_eq!(done.text(), "cloned", "{}", done.stderr);
}

/// Returns a wheel, as pip takes it.
fn wheel() -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    for (name, content) in [
        ("greeting.py", "WORDS = 'from a wheel'\n"),
        (
            "greeting-1.0.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n",
        ),
        (
            "greeting-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        ),
        (
            "greeting-1.0.dist-info/RECORD",
            "greeting.py,,\ngreeting-1.0.dist-info/METADATA,,\ngreeting-1.0.dist-info/WHEEL,,\ngreeting-1.0.dist-info/RECORD,,\n",
        ),
    ] {
        zip.start_file(name, options).expect("begun");
        zip.write_all(content.as_bytes()).expect("written");
    }
    zip.finish().expect("a zip").into_inner()
}

/// Takes a minute where the image with pip has to be built first.
#[test]
fn pip_installs_from_an_allowed_index_and_is_denied_another_at_once() {
    let Some(env) = TestBox::new() else { return };
    build_image(&env, "podbay/python").expect(0);
    let outside = Outside::new();
    outside.tell(&env, "");
    let name = "greeting-1.0-py3-none-any.whl";
    let link = |name: &str| format!("<a href=\"/{name}\">{name}</a>").into_bytes();
    let index = outside.serve(Files::from([
        ("/simple/greeting/".to_owned(), link(name)),
        (format!("/{name}"), wheel()),
    ]));
    let rule = format!("index.example:{} private", index.port);
    let sh = |command: &str| {
        let arguments = [
            "sh",
            "--runtime",
            "python",
            "--allow-host",
            &rule,
            "--",
            "sh",
            "-c",
            command,
        ];
        start(&mut env.here(&arguments)).wait_within(Duration::from_secs(120))
    };
    let pip = |host: &str| {
        format!(
            "pip install --quiet --trusted-host {host} --index-url http://{host}:{}/simple greeting 2>&1",
            index.port
        )
    };
    let installed = sh(&format!(
        "{} && python3 -c 'import greeting; print(greeting.WORDS)'",
        pip("index.example")
    ));
    assert_eq!(
        installed.text().lines().last(),
        Some("from a wheel"),
        "{} {}",
        installed.text(),
        installed.stderr
    );
    let denied = sh(&pip("evil.example"));
    assert!(
        denied.code != 0 && denied.stderr.contains("evil.example"),
        "{} {}",
        denied.text(),
        denied.stderr
    );
    assert!(
        !outside.asked().iter().any(|name| name == "evil.example"),
        "{:?}",
        outside.asked()
    );
}
