//! The install phase: what it reaches, what it leaves, and who gets that.

use std::io::Write;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::super::test_box::TestBox;
use super::super::test_box::alone_with_gc;
use super::super::test_box::build_image;
use super::super::test_box::docker;
use super::outside::Files;
use super::outside::Outside;
use super::outside::Server;
use crate::support::test_env::Done;
use crate::support::test_env::run;
use crate::support::test_env::start;

pub(super) const WHEEL: &str = "greeting-1.0-py3-none-any.whl";

/// Returns a wheel with a module and a program.
pub(super) fn wheel() -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    for (name, content) in [
        (
            "greeting.py",
            "WORDS = 'from a wheel'\ndef main():\n    print('as a program')\n",
        ),
        (
            "greeting-1.0.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n",
        ),
        (
            "greeting-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        ),
        (
            "greeting-1.0.dist-info/entry_points.txt",
            "[console_scripts]\ngreet = greeting:main\n",
        ),
        (
            "greeting-1.0.dist-info/RECORD",
            "greeting.py,,\ngreeting-1.0.dist-info/METADATA,,\ngreeting-1.0.dist-info/WHEEL,,\n\
             greeting-1.0.dist-info/entry_points.txt,,\ngreeting-1.0.dist-info/RECORD,,\n",
        ),
    ] {
        zip.start_file(name, options).expect("begun");
        zip.write_all(content.as_bytes()).expect("written");
    }
    zip.finish().expect("a zip").into_inner()
}

/// An index with that wheel, and a project that requires it.
struct Index {
    outside: Outside,
    server: Server,
}

impl Index {
    fn new() -> Self {
        let outside = Outside::new();
        let link = format!("<a href=\"/{WHEEL}\">{WHEEL}</a>").into_bytes();
        let server = outside.serve(Files::from([
            ("/simple/greeting/".to_owned(), link),
            (format!("/{WHEEL}"), wheel()),
            ("/page".to_owned(), b"a page".to_vec()),
        ]));
        Self { outside, server }
    }

    fn place(&self) -> String {
        format!("index.example:{}", self.server.port)
    }

    fn rule(&self) -> String {
        format!("{} private", self.place())
    }

    /// Has the project require the wheel, from this index.
    fn requires(&self, env: &TestBox) {
        env.write(
            "requirements.txt",
            format!(
                "--index-url http://{}/simple\n--trusted-host index.example\ngreeting==1.0\n",
                self.place()
            ),
        );
    }
}

fn install(env: &TestBox, arguments: &[&str]) -> Done {
    let all = [&["install", "--runtime", "python"], arguments].concat();
    start(&mut env.here(&all)).wait_within(Duration::from_secs(180))
}

fn sh(env: &TestBox, command: &str) -> Done {
    run(&mut env.here(&["sh", "--runtime", "python", "--", "sh", "-c", command]))
}

/// Returns a command of commands that takes the project's folder at its end.
fn in_project(env: &TestBox, arguments: &[&str]) -> Command {
    let mut command = env.podbay(arguments);
    command.arg("-C").arg(env.project());
    command
}

fn caches(env: &TestBox) -> Vec<String> {
    let project = format!("label=dev.podbay.project={}", env.key());
    let role = "label=dev.podbay.role=cache";
    let listed = docker(&[
        "volume", "ls", "--quiet", "--filter", &project, "--filter", role,
    ]);
    listed.lines().map(str::to_owned).collect()
}

/// Takes a minute where the image with pip has to be built first.
#[test]
fn what_an_install_phase_gets_later_sessions_use_without_a_network() {
    let Some(env) = TestBox::new() else { return };
    build_image(&env, "podbay/python").expect(0);
    let index = Index::new();
    index.outside.tell(&env, "");
    index.requires(&env);
    let installed = install(&env, &["--allow-host", &index.rule()]).expect(0);
    assert!(
        installed.text().starts_with("pip done in ")
            && installed.text().contains("its cache holds"),
        "{} {}",
        installed.text(),
        installed.stderr
    );
    env.assert_no_container();
    let n_requests = index.server.requests().len();
    assert!(n_requests > 0);
    let used = "python3 -c 'import greeting; print(greeting.WORDS)'; greet; \
                cd /run/podbay/cache/pip/data && touch site-*/greeting.py 2>&1 | grep -o 'Read-only file system'; \
                rm -rf /run/podbay/cache/pip/data/site-* 2>/dev/null; python3 -c 'import greeting'";
    let second = sh(&env, used);
    assert_eq!(
        second.text(),
        "from a wheel\nas a program\nRead-only file system\n",
        "{}",
        second.stderr
    );
    assert_eq!(second.code, 0, "{}", second.stderr);
    assert_eq!(index.server.requests().len(), n_requests);
    // What it reached is on disk.
    let log = std::fs::read_to_string(env.state().join("events.jsonl")).expect("a log");
    let noted = log.lines().any(|line| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        line["type"] == "network_attempted"
            && line["command"] == "install"
            && line["attempt"]["host"] == "index.example"
            && line["attempt"]["allowed"] == true
    });
    assert!(noted, "{log}");
    // It is wanted as long as its project is there, and goes where the user says so.
    let listed = run(&mut env.podbay(&["cache", "list", "--json"])).json();
    let own = listed["caches"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|cache| cache["volume"] == caches(&env)[0].as_str())
        .expect("it is listed");
    assert!(own["name"] == "pip" && own["bytes"].as_u64().is_some_and(|bytes| bytes > 0));
    let turn = alone_with_gc();
    run(&mut env.podbay(&["gc"])).expect(0);
    drop(turn);
    assert_eq!(caches(&env).len(), 1);
    let removed = run(&mut in_project(&env, &["cache", "rm", "--json"])).json();
    assert_eq!(removed["removed"][0]["name"], "pip", "{removed}");
    assert!(caches(&env).is_empty());
    let gone = sh(
        &env,
        "python3 -c 'import greeting'; ls -d /run/podbay/cache",
    );
    assert!(
        gone.code != 0 && gone.text().is_empty() && gone.stderr.contains("ModuleNotFoundError"),
        "{} {}",
        gone.text(),
        gone.stderr
    );
}

#[test]
fn a_project_has_no_way_to_the_cache_of_another_one() {
    let (Some(one), Some(other)) = (TestBox::new(), TestBox::new()) else {
        return;
    };
    build_image(&one, "podbay/python").expect(0);
    let index = Index::new();
    for env in [&one, &other] {
        index.outside.tell(env, "");
        index.requires(env);
    }
    install(&one, &["--allow-host", &index.rule()]).expect(0);
    let import = "python3 -c 'import greeting; print(greeting.WORDS)'";
    // The same requirement, image and user.
    let without = sh(&other, import);
    assert!(
        without.code != 0 && without.stderr.contains("ModuleNotFoundError"),
        "{} {}",
        without.text(),
        without.stderr
    );
    // And where the other one has a cache, it is its own, in the install phase too.
    let failed = install(&other, &[]);
    assert_eq!(failed.code, 1, "{} {}", failed.text(), failed.stderr);
    assert!(caches(&other).len() == 1 && caches(&one) != caches(&other));
    let seen = sh(
        &other,
        "ls /run/podbay/cache /run/podbay/cache/pip/data; ls -d /run/podbay/cache/pip/data/site-*/greeting.py",
    );
    assert!(!seen.text().contains("greeting"), "{}", seen.text());
    assert_eq!(sh(&one, import).text(), "from a wheel\n");
    let removed = run(&mut in_project(&other, &["cache", "rm", "--json"])).json();
    assert_eq!(removed["removed"].as_array().map(Vec::len), Some(1));
    assert_eq!(caches(&one).len(), 1);
}

/// The code of packages runs in the install phase; a command of `[setup]` stands for it.
#[test]
fn the_install_phase_reaches_hosts_of_the_list_alone() {
    let Some(env) = TestBox::new() else { return };
    build_image(&env, "podbay/python").expect(0);
    let index = Index::new();
    let page = |host: &str| {
        format!(
            "curl --silent --show-error --fail http://{host}:{}/page",
            index.server.port
        )
    };
    let settings = format!(
        "allow = [\"other.example:{} private\"]\n[setup]\ncommands = [{:?}, {:?}]",
        index.server.port,
        page("index.example"),
        page("other.example")
    );
    index.outside.tell(&env, &settings);
    index.requires(&env);
    let done = install(&env, &["--json", "--allow-host", &index.rule()]);
    let report = done.json();
    let outcomes: Vec<&str> = report["steps"]
        .as_array()
        .expect("steps")
        .iter()
        .filter_map(|step| step["outcome"].as_str())
        .collect();
    assert_eq!(outcomes, ["done", "done", "failed"], "{report}");
    assert_eq!(done.code, 1);
    // A rule of the settings that no file of the project needs is none of this phase.
    let hosts = report["hosts"].to_string();
    assert!(
        hosts.contains("index.example")
            && hosts.contains("pypi.org")
            && !hosts.contains("other.example"),
        "{hosts}"
    );
    assert_eq!(
        report["network"]["denied"][0],
        format!("other.example:{}", index.server.port),
        "{report}"
    );
    assert!(
        !index
            .outside
            .asked()
            .iter()
            .any(|name| name == "other.example"),
        "{:?}",
        index.outside.asked()
    );
    // The rule is there all the same, where it is meant for.
    let allowed = sh(&env, &page("other.example"));
    assert_eq!(allowed.text(), "a page", "{}", allowed.stderr);
}

#[test]
fn a_project_adds_no_host_and_no_command_until_it_is_trusted() {
    let Some(env) = TestBox::new() else { return };
    build_image(&env, "podbay/python").expect(0);
    let index = Index::new();
    index.outside.tell(&env, "");
    index.requires(&env);
    env.write(
        ".podbay/config.toml",
        format!(
            "[network]\nallow = [\"{}\"]\n[setup]\ncommands = [\"touch ran\"]\n",
            index.rule()
        ),
    );
    let refused = install(&env, &[]);
    assert_eq!(refused.code, 1, "{} {}", refused.text(), refused.stderr);
    for words in [
        "`network.allow` is ignored",
        "`setup.commands` is ignored",
        &format!(
            "requirements.txt names {}, which the install phase does not reach",
            index.place()
        ),
        "index.example",
    ] {
        assert!(
            refused.stderr.contains(words),
            "{words}: {}",
            refused.stderr
        );
    }
    assert!(!env.path("ran").exists() && index.server.requests().is_empty());
    assert!(
        index
            .outside
            .asked()
            .iter()
            .all(|name| name != "index.example")
    );
    run(&mut in_project(&env, &["config", "trust", "--yes"])).expect(0);
    let trusted = install(&env, &[]).expect(0);
    assert!(env.path("ran").exists(), "{}", trusted.stderr);
    assert!(!index.server.requests().is_empty());
}

#[test]
fn setup_commands_run_once_for_an_image_and_its_lock_files() {
    let Some(env) = TestBox::new() else { return };
    Outside::new().tell(
        &env,
        "[setup]\ncommands = [\"echo x >>runs\", \"mkdir -p $PODBAY_SETUP/bin && echo 'echo set up' >$PODBAY_SETUP/bin/tool && chmod +x $PODBAY_SETUP/bin/tool\"]",
    );
    env.write("go.mod", "module a\n");
    let setup = |more: &[&str]| {
        let all = [&["install", "setup"], more].concat();
        run(&mut env.here(&all)).expect(0)
    };
    let runs = || env.read("runs").lines().count();
    setup(&[]);
    assert_eq!(runs(), 1);
    assert_eq!(
        run(&mut env.here(&["sh", "--", "sh", "-c", "tool"])).text(),
        "set up\n"
    );
    assert_eq!(setup(&[]).text().matches("ran before").count(), 2);
    assert_eq!(runs(), 1);
    env.write("go.mod", "module b\n");
    setup(&[]);
    assert_eq!(runs(), 2);
    setup(&["--again"]);
    assert_eq!(runs(), 3);
    // Without what they left they have not run.
    run(&mut in_project(&env, &["cache", "rm", "setup"])).expect(0);
    setup(&[]);
    assert_eq!(runs(), 4);
}

#[test]
fn a_cache_that_grows_beyond_its_bound_is_removed() {
    let Some(env) = TestBox::new() else { return };
    let fill = "[setup]\ncommands = [\"head -c 3000000 /dev/zero >$PODBAY_SETUP/large\"]";
    Outside::new().tell(&env, &format!("{fill}\ncache_size = \"1MiB\""));
    let large = run(&mut env.here(&["install"]));
    assert_eq!(large.code, 1, "{}", large.stderr);
    assert!(
        large
            .text()
            .contains("more than the 1.0 MiB of `setup.cache_size`"),
        "{}",
        large.text()
    );
    assert!(caches(&env).is_empty());
    Outside::new().tell(&env, fill);
    run(&mut env.here(&["install"])).expect(0);
    assert_eq!(caches(&env).len(), 1);
}

#[test]
fn what_an_install_phase_writes_to_a_cache_counts_as_the_sessions() {
    let Some(env) = TestBox::new() else { return };
    let fill = |disk: &str, then: &str| {
        let settings = format!(
            "[sandbox]\ndisk = \"{disk}\"\n[setup]\ncommands = [\"head -c 300000000 /dev/zero >$PODBAY_SETUP/large; {then}\"]"
        );
        Outside::new().tell(&env, &settings);
        run(&mut env.here(&["install"]))
    };
    // The disk is looked at now and then, so that it stays.
    let stopped = fill("20MiB", "sleep 100");
    assert!(
        stopped.code == 1 && stopped.text().contains("the limit of `sandbox.disk`"),
        "{} {}",
        stopped.text(),
        stopped.stderr
    );
    fill("2GiB", "rm $PODBAY_SETUP/large").expect(0);
}

#[test]
fn the_caches_of_a_project_that_is_gone_are_collected() {
    let (Some(gone), Some(there)) = (TestBox::new(), TestBox::new()) else {
        return;
    };
    for env in [&gone, &there] {
        Outside::new().tell(env, "[setup]\ncommands = [\"true\"]");
        run(&mut env.here(&["install"])).expect(0);
    }
    let (of_gone, of_there) = (caches(&gone), caches(&there));
    assert!(of_gone.len() == 1 && of_there.len() == 1);
    std::fs::rename(gone.project(), gone.beside("elsewhere")).expect("moved");
    let turn = alone_with_gc();
    let collected = run(&mut there.podbay(&["gc"])).expect(0);
    drop(turn);
    assert!(
        collected.text().contains(&of_gone[0]) && !collected.text().contains(&of_there[0]),
        "{}",
        collected.text()
    );
    assert_eq!(caches(&there), of_there);
    std::fs::rename(gone.beside("elsewhere"), gone.project()).expect("moved back");
}

#[test]
fn without_a_network_an_install_says_why_and_what_to_do() {
    let Some(env) = TestBox::new() else { return };
    env.write("requirements.txt", "greeting\n");
    let none = run(&mut env.here(&["install", "--network", "none"])).expect(2);
    assert!(
        none.stderr
            .contains("`network.mode` is `none`, and dependencies come from registries")
            && none.stderr.contains("podbay install --network allowlist"),
        "{}",
        none.stderr
    );
    let offline = run(env.here(&["install"]).env("PODBAY_OFFLINE", "true")).expect(2);
    assert!(
        offline.stderr.contains("`offline` is set")
            && offline.stderr.contains("PODBAY_OFFLINE=false"),
        "{}",
        offline.stderr
    );
    assert!(caches(&env).is_empty());
}

/// The workspace has Python, and no pip.
#[test]
fn an_image_without_the_package_manager_is_said_with_one_that_has_it() {
    let Some(env) = TestBox::new() else { return };
    Outside::new().tell(&env, "");
    env.write("requirements.txt", "greeting\n");
    let without = run(&mut env.here(&["install"])).expect(1);
    assert!(
        without.text().contains("pip failed: the image has no pip")
            && without.text().contains("`--runtime python` has it"),
        "{} {}",
        without.text(),
        without.stderr
    );
}
