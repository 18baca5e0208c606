//! Secrets of a project, and what runs on the host by itself: hidden from commands, and read-only
//! for them.

use serde_json::json;

use super::second::up;
use super::test_box::TestBox;
use super::test_box::docker;
use crate::support::ScriptedModel;
use crate::support::test_env::Done;
use crate::support::test_env::run;
use crate::support::test_env::start;
use crate::support::test_env::until;

const SECRET: &str = "TOKEN=s3cr3t-of-the-person";
const PEM: &str = "-----BEGIN PRIVATE KEY-----\ns3cr3t-of-the-person\n";

/// Gives a project secrets of all kinds, and files that look like them.
fn fill(env: &TestBox) {
    for (path, content) in [
        (".env", SECRET),
        ("app/.env.production", SECRET),
        ("certs/server.key", PEM),
        ("home/.aws/credentials", SECRET),
        ("build/.npmrc", SECRET),
        (".gitignore", "build/\n.env\n"),
        (".env.example", "TOKEN="),
        ("certs/ca.pem", "-----BEGIN CERTIFICATE-----"),
    ] {
        env.write(path, content);
    }
}

/// Runs a command as a user does: of one that a model gives policy reads what it can, and these
/// are to be judged by what they can do.
fn bash(env: &TestBox, command: &str) -> Done {
    run(&mut env.here(&["sh", "--", "bash", "-c", command]))
}

#[test]
fn s_07_no_command_reads_a_secret_and_all_other_files_are_as_they_were() {
    let Some(env) = TestBox::new() else { return };
    fill(&env);
    let all = "cat .env app/.env.production certs/server.key build/.npmrc; cat home/.aws/*; grep -r s3cr3t . ; tar cf - . | grep -c s3cr3t";
    for _ in 0..2 {
        // The second time the sandbox starts with what is remembered of the first.
        let done = bash(&env, all);
        assert!(!done.text().contains("s3cr3t"), "{}", done.text());
    }
    bash(
        &env,
        "cat .env.example certs/ca.pem && ls home/.aws && echo x >> .env.example",
    )
    .expect(0);
    assert_eq!(
        (env.read(".env"), env.read("certs/server.key")),
        (SECRET.to_owned(), PEM.to_owned())
    );
    // Neither is anything lost by what a command does to them.
    let done = bash(
        &env,
        "exec 2>&1; rm -rf .env certs home; mv .env x; echo y > .env; cp .env.example .env; ls -A",
    );
    assert!(done.text().contains("busy"), "{}", done.text());
    assert_eq!(
        (env.read(".env"), env.read("certs/server.key")),
        (SECRET.to_owned(), PEM.to_owned())
    );
    assert_eq!(env.read("home/.aws/credentials"), SECRET);
    env.assert_no_container();
}

#[test]
fn a_folder_with_a_secret_in_it_cannot_be_moved_and_all_else_in_it_can() {
    let Some(env) = TestBox::new() else { return };
    fill(&env);
    env.write("app/main.js", "x");
    let done = bash(
        &env,
        "exec 2>&1; mv app other; mv home/.aws aws; ln app/.env.production app/l; cat app/l; mv app/.env.production y; cat other/.env.production",
    );
    assert!(
        done.text().contains("busy") && !done.text().contains("s3cr3t"),
        "{}",
        done.text()
    );
    assert_eq!(env.read("app/.env.production"), SECRET);
    bash(
        &env,
        "mkdir app/src && mv app/main.js app/src/ && mv app/src web && cp -r web app/ && rm -r web",
    )
    .expect(0);
    assert_eq!(env.read("app/web/main.js"), "x");
    env.assert_no_container();
}

#[test]
fn what_is_hidden_is_shown_at_the_start_and_can_be_revealed() {
    let Some(env) = TestBox::new() else { return };
    fill(&env);
    env.write("probe.sh", "cat .env; echo read");
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "bash probe.sh"}))
        .says("Done.")
        .start_blocking();
    let done = run(&mut env.task(&model, &["work"])).expect(0);
    done.says(&["masked: .env, app/.env.production, build/.npmrc, certs/server.key, home/.aws"]);
    assert!(
        !model
            .requests()
            .iter()
            .any(|request| request.to_string().contains("s3cr3t"))
    );
    let cat = [
        "sh",
        "--",
        "cat",
        ".env",
        "app/.env.production",
        "certs/server.key",
    ];
    let done = run(env
        .here(&cat)
        .env("PODBAY_SANDBOX_REVEAL", r#"[".env", "certs/**"]"#));
    assert_eq!(done.text().matches("s3cr3t").count(), 2, "{}", done.text());
    // The project's own settings, which a command could have written, reveal nothing.
    env.write(".podbay/config.toml", "[sandbox]\nreveal = [\".env\"]\n");
    let done = bash(&env, "cat .env");
    assert!(!done.text().contains("s3cr3t"), "{}", done.text());
    env.assert_no_container();
}

#[test]
fn a_secret_that_the_person_replaces_ends_the_sandbox_and_is_hidden_in_the_next() {
    let Some(env) = TestBox::new() else { return };
    env.write(".env", SECRET);
    env.write(
        "watch.sh",
        "touch begun; while :; do cat .env >> seen 2>/dev/null; sleep 0.01; done",
    );
    env.write("probe.sh", "cat .env; echo read");
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "bash watch.sh"}))
        .calls("bash", json!({"command": "bash probe.sh"}))
        .says("Done.")
        .start_blocking();
    let task = start(&mut env.task(&model, &["work"]));
    env.wait_for("begun");
    // As most editors save.
    env.write(".env.new", "TOKEN=s3cr3t-anew");
    std::fs::rename(env.path(".env.new"), env.path(".env")).expect("renamed");
    task.wait().expect(0);
    let told = model
        .requests()
        .iter()
        .map(ToString::to_string)
        .collect::<String>();
    assert!(
        told.contains("`.env` of the project was replaced or removed"),
        "{told}"
    );
    let last = model.requests().last().expect("a request").to_string();
    assert!(last.contains("read") && !last.contains("s3cr3t"), "{last}");
    env.assert_no_container();
}

#[test]
fn what_runs_on_the_host_by_itself_cannot_be_changed_nor_moved_away() {
    let Some(env) = TestBox::new() else { return };
    for path in [
        ".vscode/tasks.json",
        "packages/web/.envrc",
        ".github/workflows/ci.yml",
        ".cargo/config.toml",
    ] {
        env.write(path, "as it was");
    }
    env.write("packages/web/main.js", "x");
    env.write("hooks/pre-commit", "as it was");
    std::os::unix::fs::symlink("hooks", env.path(".husky")).expect("linked");
    let attack = "for f in .vscode/tasks.json packages/web/.envrc .github/workflows/ci.yml .cargo/config.toml; do echo evil > $f; rm -f $f; done; \
                  mv .github .gh; mv packages p; mv packages/web w; mkdir -p .github/workflows; echo evil > .github/workflows/ci.yml; \
                  mv packages/web/.envrc e; rm -rf packages; echo evil > hooks/pre-commit; mv hooks h; ls -R";
    let done = bash(&env, attack);
    for path in [
        ".vscode/tasks.json",
        "packages/web/.envrc",
        ".github/workflows/ci.yml",
        ".cargo/config.toml",
    ] {
        assert_eq!(env.read(path), "as it was", "{path}: {}", done.text());
    }
    assert_eq!(
        env.read("hooks/pre-commit"),
        "as it was",
        "what a link leads to"
    );
    // Beside them all works.
    bash(&env, "echo y > packages/web/main.js; mkdir -p packages/web/src && mv packages/web/main.js packages/web/src/").expect(0);
    assert!(
        bash(&env, "cat .vscode/tasks.json packages/web/.envrc")
            .expect(0)
            .text()
            .contains("as it was")
    );
    // The user's settings say otherwise.
    let change = [
        "sh",
        "--",
        "bash",
        "-c",
        "echo new > .vscode/tasks.json && mv packages p",
    ];
    run(env.here(&change).env("PODBAY_SANDBOX_AUTO_RUN", "[]")).expect(0);
    assert_eq!(env.read(".vscode/tasks.json"), "new\n");
    env.assert_no_container();
}

#[test]
fn the_environment_of_up_hides_secrets_as_well() {
    let Some(env) = TestBox::new() else { return };
    env.write(".env", SECRET);
    let model = ScriptedModel::new().start_blocking();
    up(&env, &model, &[]);
    let done = bash(&env, "cat .env; echo read");
    assert!(
        done.text().contains("read") && !done.text().contains("s3cr3t"),
        "{}",
        done.text()
    );
    run(&mut env.here(&["down"])).expect(0);
    env.assert_no_container();
}

#[test]
fn a_file_tool_says_of_a_hidden_file_that_it_is_one() {
    let Some(env) = TestBox::new() else { return };
    env.write("settings", SECRET);
    std::os::unix::fs::symlink("settings", env.path(".env")).expect("linked");
    for (tool, arguments) in [
        ("read_file", json!({"path": "settings"})),
        (
            "edit_file",
            json!({"path": "settings", "old_string": "TOKEN", "new_string": "X"}),
        ),
        ("write_file", json!({"path": "settings", "content": "X"})),
    ] {
        let done = run(&mut env.here(&["call", tool, &arguments.to_string()])).expect(1);
        assert!(
            done.text()
                .contains("settings: is hidden from this sandbox"),
            "{tool}: {}",
            done.text()
        );
    }
    // What a program says of it is no help, so that is said besides.
    for command in [
        "cp -r settings /tmp/x",
        "tar cf /tmp/a.tar settings && mkdir /tmp/y && tar xf /tmp/a.tar -C /tmp/y",
    ] {
        let done = run(&mut env.here(&["call", "bash", &json!({"command": command}).to_string()]))
            .expect(1);
        assert!(
            done.text()
                .contains("hidden from this sandbox, such as .env: leave it out"),
            "{command}: {}",
            done.text()
        );
    }
    let done = run(&mut env.here(&[
        "call",
        "bash",
        &json!({"command": "mv settings other"}).to_string(),
    ]))
    .expect(1);
    assert!(
        done.text().contains("then stays in its place"),
        "{}",
        done.text()
    );
    assert_eq!(env.read("settings"), SECRET);
    env.assert_no_container();
}

#[test]
fn what_one_sandbox_covered_is_covered_by_the_next_whatever_commands_did() {
    let Some(env) = TestBox::new() else { return };
    fill(&env);
    env.write("shared/.env", SECRET);
    env.write("pkgs/app/.git/config", "");
    env.write("pkgs/app/.envrc", "as it was");
    std::os::unix::fs::symlink("shared", env.path(".ssh")).expect("linked");
    let probe = "exec 2>&1; grep -r s3cr3[t] .; ls -A shared; echo evil > pkgs/app/.envrc; echo evil > pkgs/app/.git/config; true";
    let attack = "printf '/app/\\n/certs/\\n/home/\\n/pkgs/\\n/shared/\\n' | tee .ignore >> .gitignore; rm .ssh; mkdir -p f; cd f; \
                  seq 300 | sed s/^/.env./ | xargs touch; seq 2000 | xargs mkdir";
    for command in [probe, attack, probe] {
        // Also by what a keeper finds, which sees what is hidden.
        let model = ScriptedModel::new()
            .calls("bash", json!({"command": format!("eval \"$(cat do)\"")}))
            .says("Done.")
            .start_blocking();
        env.write("do", command);
        run(&mut env.task(&model, &["work"])).expect(0);
        let all = model
            .requests()
            .iter()
            .map(ToString::to_string)
            .collect::<String>();
        assert!(!all.contains("s3cr3t"), "{command}: {all}");
        let done = bash(&env, probe).expect(0);
        assert!(
            !done.text().contains("s3cr3t"),
            "{command}: {}",
            done.text()
        );
        assert_eq!(
            (
                env.read("pkgs/app/.envrc"),
                env.read("pkgs/app/.git/config")
            ),
            ("as it was".to_owned(), String::new()),
            "{command}"
        );
    }
    // The user says what is none.
    let done = run(env
        .here(&["sh", "--", "cat", "shared/.env"])
        .env("PODBAY_SANDBOX_REVEAL", r#"["/shared", "shared/.env"]"#));
    assert!(done.text().contains("s3cr3t"), "{}", done.text());
    env.assert_no_container();
}

#[test]
fn a_key_that_is_none_any_more_is_shown_once_somebody_has_looked_who_sees_it() {
    let Some(env) = TestBox::new() else { return };
    env.write("certs/server.key", PEM);
    assert!(!bash(&env, "cat certs/server.key").text().contains("s3cr3t"));
    env.write("certs/server.key", "-----BEGIN CERTIFICATE-----");
    assert!(
        !bash(&env, "cat certs/server.key")
            .text()
            .contains("CERTIFICATE"),
        "a guest cannot tell"
    );
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "true"}))
        .says("Done.")
        .start_blocking();
    run(&mut env.task(&model, &["work"])).expect(0);
    let done = bash(&env, "cat certs/server.key").expect(0);
    assert!(done.text().contains("CERTIFICATE"), "{}", done.text());
    env.assert_no_container();
}

#[test]
fn a_secret_that_the_person_puts_beside_or_makes_meanwhile_is_hidden_or_told_of() {
    let Some(env) = TestBox::new() else { return };
    env.write(".env", SECRET);
    env.write(
        "watch.sh",
        "touch begun; while sleep 0.05; do cat .env; done >> seen 2>/dev/null",
    );
    env.write("probe.sh", "cat .env; echo read");
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "bash watch.sh"}))
        .calls("bash", json!({"command": "bash probe.sh"}))
        .says("Done.")
        .start_blocking();
    let task = start(&mut env.task(&model, &["work"]));
    env.wait_for("begun");
    // As editors do that keep what was there: nothing is unmounted by that, and nobody woken.
    std::fs::rename(env.path(".env"), env.path("kept")).expect("renamed");
    env.write(".env", "TOKEN=s3cr3t-anew");
    env.write("sub/.env.local", "TOKEN=s3cr3t-as-well");
    let done = task.wait().expect(0);
    let told = model
        .requests()
        .iter()
        .map(ToString::to_string)
        .collect::<String>();
    assert!(
        told.contains("`.env` of the project was replaced or removed"),
        "{told}"
    );
    let last = model.requests().last().expect("a request").to_string();
    assert!(last.contains("read") && !last.contains("s3cr3t"), "{last}");
    assert!(
        !done.text().contains("came after the sandbox was made"),
        "the second sandbox hides both: {}",
        done.text()
    );

    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "touch begun.2; sleep 2"}))
        .says("Done.")
        .start_blocking();
    let task = start(&mut env.task(&model, &["work"]));
    env.wait_for("begun.2");
    env.write("sub/.env.more", "TOKEN=s3cr3t-more");
    task.wait().expect(0).says(&[
        "commands of this session can read sub/.env.more, which came after the sandbox was made",
    ]);
    env.assert_no_container();
}

#[test]
fn what_there_was_no_time_for_is_found_beside_the_session_and_hidden_from_then_on() {
    let Some(env) = TestBox::new() else { return };
    env.write("deep/er/.env", SECRET);
    env.write("deep/wait.sh", "until [ -e on ]; do sleep 0.05; done");
    env.write("deep/read.sh", "cat deep/er/.env; echo was read");
    let read = || json!({"command": "bash deep/read.sh"});
    let wait = || json!({"command": "bash deep/wait.sh"});
    // One of them finds that it gets another sandbox, and is not executed.
    let model = ScriptedModel::new()
        .calls("bash", wait())
        .calls("bash", wait())
        .calls("bash", read())
        .calls("bash", read())
        .says("Done.")
        .start_blocking();
    let no_time = |command: &mut std::process::Command| {
        command.env("PODBAY_SANDBOX_LOOK_MS", "0");
    };
    let mut task = env.task(&model, &["work"]);
    no_time(&mut task);
    let task = start(&mut task);
    let is_searched = || {
        let records = std::fs::read_dir(env.state().join("covers"))
            .into_iter()
            .flatten()
            .flatten();
        records
            .filter_map(|record| std::fs::read_to_string(record.path()).ok())
            .any(|text| text.contains("\"is_whole\":true"))
    };
    assert!(until(is_searched), "it continues beside a command");
    env.write("on", "");
    let done = task.wait().expect(0).says(&[
        "the rest is looked through meanwhile",
        "there was no time to look through the whole project before the first command: commands could read deep/er/.env until now",
    ]);
    assert!(
        !done.text().contains("came after the sandbox"),
        "{}",
        done.text()
    );
    let told = model
        .requests()
        .iter()
        .map(ToString::to_string)
        .collect::<String>();
    // Where the search is over before the model has made a call, none finds another sandbox, and
    // the model has nothing to be told.
    let is_told = told.contains("commands could read deep/er/.env until now");
    assert_eq!(
        is_told,
        told.contains("This call was not executed"),
        "{told}"
    );
    assert!(
        told.contains("was read") && !told.contains("s3cr3t"),
        "{told}"
    );

    // The next one knows it from its start, and has nothing to say of it.
    let model = ScriptedModel::new()
        .calls("bash", read())
        .says("Done.")
        .start_blocking();
    let mut task = env.task(&model, &["work"]);
    no_time(&mut task);
    let done = run(&mut task).expect(0);
    assert!(
        !done.text().contains("time to look through"),
        "{}",
        done.text()
    );
    let told = model
        .requests()
        .iter()
        .map(ToString::to_string)
        .collect::<String>();
    assert!(
        told.contains("was read") && !told.contains("s3cr3t"),
        "{told}"
    );
    env.assert_no_container();
}

#[test]
fn who_takes_no_turns_waits_for_no_second_container() {
    let Some(env) = TestBox::new() else { return };
    env.write(".env", SECRET);
    let command = start(&mut env.here(&[
        "sh",
        "--",
        "bash",
        "-c",
        "touch begun; read -t 60 < <(sleep 60)",
    ]));
    env.wait_for("begun");
    assert_eq!((env.boxes().len(), env.containers().len()), (1, 1));
    command.signal(nix::sys::signal::Signal::SIGTERM);
    command.wait();
    env.assert_no_container();
}

#[test]
fn the_keeper_can_change_nothing_and_is_gone_with_its_controller() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "touch begun; sleep 600"}))
        .start_blocking();
    let task = start(&mut env.task(&model, &["work"]));
    env.wait_for("begun");
    let keeper = env.keeper();
    let told = docker(&["inspect", "--format", "{{json .}}", &keeper]);
    let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
    let writable: Vec<&str> = told["Mounts"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|mount| mount["RW"] == true)
        .filter_map(|mount| mount["Destination"].as_str())
        .collect();
    // Its own volume is all that it can write.
    assert_eq!(writable, ["/keep"]);
    let host = &told["HostConfig"];
    assert_eq!(
        (
            host["NetworkMode"].as_str(),
            host["ReadonlyRootfs"].as_bool()
        ),
        (Some("none"), Some(true))
    );
    assert_eq!(host["CapDrop"], json!(["ALL"]));
    task.signal(nix::sys::signal::Signal::SIGKILL);
    task.wait();
    env.assert_no_container();
}

#[test]
fn a_secret_that_a_session_moves_in_its_copy_is_hidden_there_and_not_said_to_have_been_read() {
    let Some(env) = TestBox::new() else { return };
    env.write("cfg/credentials.json", SECRET);
    env.write("plain.txt", "plain\n");
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "mv cfg cfg2; rm -rf cfg; mv cfg/credentials.json cfg2/"}))
        .calls("bash", json!({"command": "cat cfg2/credentials.json cfg/credentials.json; ls cfg2; echo more >> plain.txt"}))
        .says("Done.")
        .start_blocking();
    let done = run(&mut env.task(&model, &["work", "--changes", "review"])).expect(0);
    assert!(
        !done.text().contains("commands of this session could read"),
        "{}",
        done.text()
    );
    let last = model.requests().last().expect("a request").to_string();
    assert!(
        last.contains("credentials.json") && !last.contains("s3cr3t"),
        "{last}"
    );
    env.assert_no_container();
}

#[test]
fn a_secret_that_the_person_renames_or_makes_while_changes_are_held_back_is_told_of_at_the_end() {
    let Some(env) = TestBox::new() else { return };
    env.write(".env", SECRET);
    env.write("other.env", SECRET);
    env.write("saved.env", SECRET);
    // What the user puts beside is not sure to be seen in the copy, so that time alone says when
    // to continue.
    env.write("until.sh", "sleep 8; cat .env saved.env; echo read");
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "true"}))
        .calls("bash", json!({"command": "bash until.sh"}))
        .says("Done.")
        .start_blocking();
    let task = start(&mut env.task(&model, &["work", "--changes", "review"]));
    // With the second one the sandbox is there.
    for _ in 0..600 {
        if model.requests().len() >= 2 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    std::fs::rename(env.path(".env"), env.path("env.txt")).expect("renamed");
    std::fs::rename(env.path("other.env"), env.path("moved.env")).expect("renamed");
    env.write("sub/.env.more", "TOKEN=s3cr3t-more");
    env.write("new", "TOKEN=s3cr3t-anew");
    std::fs::rename(env.path("new"), env.path("saved.env")).expect("renamed");
    let done = task.wait().expect(0).says(&[
        "commands of this session could read moved.env, sub/.env.more, which came after the sandbox was made",
        "commands of this session could read env.txt, which was .env, and hidden, until it was renamed",
    ]);
    assert!(!done.text().contains("saved.env, "), "{}", done.text());
    let last = model.requests().last().expect("a request").to_string();
    assert!(last.contains("read") && !last.contains("s3cr3t"), "{last}");
    env.assert_no_container();
}
