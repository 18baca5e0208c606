//! Dependencies that a session's model asks for: who grants it, what the phase reaches, and what the
//! session has of it.

use serde_json::json;

use super::super::chat::Talk;
use super::super::test_box::TestBox;
use super::outside::Files;
use super::outside::Outside;
use crate::support::ScriptedModel;
use crate::support::scripted_model::Running;
use crate::support::test_env::run;

/// Stands for a package manager and for the code of packages.
fn settings(port: u16) -> String {
    let fetch = |host: &str| {
        format!("curl --silent --show-error --fail http://{host}:{port}/page >$PODBAY_SETUP/{host}")
    };
    format!(
        "allow = [\"index.example:{port} private\"]\n[setup]\ncommands = [\"{}\", \"echo made >from-phase; {} || true\"]",
        fetch("index.example"),
        fetch("other.example"),
    )
}

/// Has a lock file name the index, so that the rule for it counts in the phase.
fn requires(env: &TestBox, port: u16) {
    env.write(
        "requirements.txt",
        format!("--index-url http://index.example:{port}/simple\n"),
    );
}

/// Returns the result that the model was told before its request of this number.
fn result(model: &Running, n: usize) -> String {
    let requests = model.requests();
    let messages = requests[n]["messages"].as_array().expect("messages");
    messages.last().expect("a result")["content"].to_string()
}

const LOOK: &str = "cat $PODBAY_SETUP/index.example from-phase; touch $PODBAY_SETUP/x 2>&1 | grep -o 'Read-only file system'";

/// Two sandboxes are replaced on the way.
#[test]
fn a_session_installs_what_its_user_has_granted_and_nothing_else() {
    let Some(env) = TestBox::new() else { return };
    let outside = Outside::new();
    let web = outside.serve(Files::from([("/page".to_owned(), b"a page\n".to_vec())]));
    outside.tell(&env, &settings(web.port));
    requires(&env, web.port);
    // The image has no pip, whose lock file names the index.
    let install = || json!({"ecosystems": ["pip", "setup"]});
    let model = ScriptedModel::new()
        .calls("install_dependencies", install())
        .calls("bash", json!({"command": LOOK}))
        .says("Done.")
        .start_blocking();
    let denied = run(&mut env.task(&model, &["work"]));
    let first = result(&model, 1);
    assert!(
        first.contains("needs the user's permission to install dependencies")
            && first.contains("--allow install_dependencies"),
        "{first} {}",
        denied.stderr
    );
    assert!(web.requests().is_empty() && !result(&model, 2).contains("a page"));
    let model = ScriptedModel::new()
        .calls("install_dependencies", install())
        .calls("bash", json!({"command": LOOK}))
        .says("Done.")
        .start_blocking();
    let grant = ["--allow", "install_dependencies", "work"];
    let mut task = env.task(&model, &grant);
    let done = run(task.env("PODBAY_SANDBOX_CHANGES", "review")).expect(0);
    let told = result(&model, 1);
    for words in [
        "pip: failed: the image has no pip",
        "setup `curl",
        ": done",
        "You work in a new sandbox",
        "does not reach other.example:",
    ] {
        assert!(told.contains(words), "{words}: {told} {}", done.stderr);
    }
    // What the phase did to the project is pending like any other change, and its cache can be read.
    let look = result(&model, 2);
    assert!(
        look.contains("a page") && look.contains("made") && look.contains("Read-only file system"),
        "{look}"
    );
    assert!(!env.path("from-phase").exists());
    assert!(
        !outside.asked().iter().any(|name| name == "other.example"),
        "{:?}",
        outside.asked()
    );
    env.assert_no_container();
}

#[test]
fn a_chat_asks_with_what_runs_and_what_it_reaches() {
    let Some(env) = TestBox::new() else { return };
    let outside = Outside::new();
    let web = outside.serve(Files::from([("/page".to_owned(), b"a page\n".to_vec())]));
    outside.tell(&env, &settings(web.port));
    requires(&env, web.port);
    let install = || json!({"ecosystems": ["setup", "npm"]});
    let model = ScriptedModel::new()
        .calls("install_dependencies", install())
        .calls(
            "install_dependencies",
            json!({"ecosystems": ["pip", "setup"]}),
        )
        .says("Done.")
        .start_blocking();
    let mut talk = Talk::begin(&env, &env.project(), &model, &[]);
    talk.sees("> ");
    talk.types("work\n");
    let asked = talk.answers("n not now\n");
    for words in ["npm (`npm ci", "registry.npmjs.org", "setup.commands"] {
        assert!(asked.contains(words), "{words}: {asked}");
    }
    talk.answers("y\n");
    talk.sees("Done.");
    talk.leaves();
    assert!(result(&model, 1).contains("the user said no"));
    assert!(
        result(&model, 2).contains(": done"),
        "{}",
        result(&model, 2)
    );
    assert_eq!(web.requests().len(), 1, "{:?}", web.requests());
    env.assert_no_container();
}

#[test]
fn without_a_network_a_session_is_told_why_nothing_is_installed() {
    let Some(env) = TestBox::new() else { return };
    env.write("requirements.txt", "greeting\n");
    let model = || {
        ScriptedModel::new()
            .calls("install_dependencies", json!({}))
            .says("Done.")
            .start_blocking()
    };
    let none = model();
    let grant = [
        "--allow",
        "install_dependencies",
        "--network",
        "none",
        "work",
    ];
    run(&mut env.task(&none, &grant)).expect(0);
    let told = result(&none, 1);
    assert!(
        told.contains("`network.mode` is `none`") && told.contains("--network allowlist"),
        "{told}"
    );
    // Offline, there is no such tool.
    let offline = model();
    run(env.task(&offline, &["work"]).env("PODBAY_OFFLINE", "true")).expect(0);
    let told = result(&offline, 1);
    assert!(
        !told.contains("offline") && told.contains("install_dependencies"),
        "{told}"
    );
}
