//! What is asked of the engine, seen on the way to it.

use std::process::Command;
use std::sync::Arc;
use std::sync::Mutex;

use serde_json::Value;
use serde_json::json;

use super::inspect::check_filler;
use super::inspect::inspect;
use super::leftovers::another_build;
use super::test_box::TestBox;
use super::test_box::alone_with_gc;
use super::test_box::docker;
use crate::support::EngineProxy;
use crate::support::ScriptedModel;
use crate::support::test_env::run;

/// Unpacking an archive is the engine's own work, on the host's side of a container; there have
/// been holes in it.
#[test]
fn the_archive_interface_is_used_on_fillers_alone() {
    let Some(env) = TestBox::new() else { return };
    let _alone = alone_with_gc();
    // A build whose guest no engine has yet.
    let (program, volume) = another_build(&env);
    let asked: Arc<Mutex<Vec<Value>>> = Arc::default();
    let proxy = EngineProxy::start(env.beside("engine"), {
        let asked = Arc::clone(&asked);
        move |request| {
            if let Some((id, "archive")) = request.of_container() {
                asked.lock().expect("unshared").push(inspect(id));
            }
        }
    });
    let podbay = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        env.surround(&mut command);
        command
            .arg(arguments[0])
            .arg("-C")
            .arg(env.project())
            .args(&arguments[1..])
            .env("DOCKER_HOST", proxy.address());
        command
    };
    // All ways to a sandbox, with commands and files in each.
    let write = r#"{"path":"a.txt","content":"one\n"}"#;
    run(&mut podbay(&["call", "write_file", write])).expect(0);
    assert_eq!(
        run(&mut podbay(&["call", "bash", r#"{"command":"cat a.txt"}"#]))
            .expect(0)
            .text(),
        "one\n"
    );
    assert_eq!(
        run(&mut podbay(&["sh", "--", "cat", "a.txt"]))
            .expect(0)
            .text(),
        "one\n"
    );
    let model = ScriptedModel::new()
        .calls("read_file", json!({"path": "a.txt"}))
        .calls("bash", json!({"command": "seq 3000 > b.txt"}))
        .says("Done.")
        .start_blocking();
    run(&mut podbay(&[
        "run",
        "--model",
        "scripted",
        "--endpoint",
        &model.endpoint(),
        "look",
    ]))
    .expect(0);
    run(&mut podbay(&[
        "up",
        "--model",
        "scripted",
        "--endpoint",
        &model.endpoint(),
    ]))
    .expect(0);
    run(&mut podbay(&["call", "read_file", r#"{"path":"b.txt"}"#])).expect(0);
    run(&mut podbay(&["down"])).expect(0);
    docker(&["volume", "rm", &volume]);
    // Whoever uses it on one that has run something is seen: this is the engine's own command line.
    let ran = docker(&[
        "create",
        "--network",
        "none",
        "--entrypoint",
        "true",
        "podbay/workspace",
    ])
    .trim()
    .to_owned();
    let n_seen = proxy.seen().len();
    let address = proxy.address();
    docker(&["--host", &address, "start", "--attach", &ran]);
    docker(&[
        "--host",
        &address,
        "cp",
        &format!("{ran}:/etc/hostname"),
        "-",
    ]);
    docker(&["rm", &ran]);

    let asked = asked.lock().expect("unshared").clone();
    let (of_another, asked): (Vec<Value>, Vec<Value>) = asked
        .into_iter()
        .partition(|found| found["Id"] == ran.as_str());
    assert!(!of_another.is_empty(), "it is seen");
    let of_guest = |found: &&Value| found["HostConfig"]["Mounts"][0]["Source"] == volume.as_str();
    assert_eq!(
        asked.iter().filter(of_guest).count(),
        1,
        "the guest was put into its volume once: {asked:#?}"
    );
    let seen = proxy.seen()[..n_seen].to_vec();
    for found in &asked {
        let name = found["HostConfig"]["Mounts"][0]["Source"]
            .as_str()
            .expect("a volume");
        assert!(name == volume || name.starts_with("podbay-keep-"), "{name}");
        check_filler(found, name);
        let filler = found["Id"].as_str().expect("an id");
        let of_filler: Vec<String> = seen
            .iter()
            .filter_map(|request| Some((request, request.path.strip_prefix("/containers/")?)))
            .filter(|(_, rest)| rest.starts_with(filler))
            .map(|(request, rest)| {
                format!(
                    "{} {}",
                    request.method,
                    rest[filler.len()..].split('?').next().unwrap_or_default()
                )
            })
            .collect();
        assert_eq!(
            of_filler,
            ["PUT /archive", "DELETE "],
            "filled and removed, and never started"
        );
    }
    // Nor does anything else that reads or writes a container's files by the engine's hand.
    for request in &seen {
        let what = request.of_container().map_or("", |(_, what)| what);
        assert!(
            !["copy", "export", "changes"].contains(&what) && !request.path.starts_with("/commit"),
            "{request:?}"
        );
    }
    let n_started = seen
        .iter()
        .filter(|request| {
            request
                .of_container()
                .is_some_and(|(_, what)| what == "start")
        })
        .count();
    // Five sandboxes, and the keepers of the run and of the environment: what joins that makes none.
    assert_eq!(
        n_started, 8,
        "the sandboxes were started under the same eyes: {seen:#?}"
    );
    env.assert_no_container();
}

/// Where the folder was taken away after it was looked at, the engine must not make another in its
/// place, as root.
#[test]
fn a_project_that_goes_away_meanwhile_is_an_error_and_not_made_anew() {
    let Some(env) = TestBox::new() else { return };
    let (project, elsewhere) = (env.project(), env.beside("elsewhere"));
    let proxy = EngineProxy::start(env.beside("engine"), {
        let (project, elsewhere) = (project.clone(), elsewhere.clone());
        move |request| {
            if request
                .path
                .starts_with("/containers/create?name=podbay-workspace")
            {
                std::fs::rename(&project, &elsewhere).expect("moved");
            }
        }
    });
    let mut command = env.here(&["call", "write_file", r#"{"path":"a.txt","content":"x"}"#]);
    run(command.env("DOCKER_HOST", proxy.address()))
        .expect(5)
        .says(&["error:", "hint:"]);
    assert!(!project.exists(), "it was made anew");
    assert_eq!(std::fs::read_dir(&elsewhere).expect("a folder").count(), 0);
    std::fs::rename(&elsewhere, &project).expect("moved back");
    env.assert_no_container();
}

/// Whoever works in a folder above can put a link in the project's place while its sandbox starts.
#[test]
fn a_link_that_takes_the_projects_place_meanwhile_leads_nowhere() {
    let Some(env) = TestBox::new() else { return };
    let (project, elsewhere, secret) =
        (env.project(), env.beside("elsewhere"), env.beside("secret"));
    std::fs::create_dir(&secret).expect("made");
    std::fs::write(secret.join("key"), "of the host").expect("written");
    let proxy = EngineProxy::start(env.beside("engine"), {
        let (project, elsewhere, secret) = (project.clone(), elsewhere.clone(), secret.clone());
        move |request| {
            if request
                .path
                .starts_with("/containers/create?name=podbay-workspace")
            {
                std::fs::rename(&project, &elsewhere).expect("moved");
                std::os::unix::fs::symlink(&secret, &project).expect("linked");
            }
        }
    });
    let mut command = env.here(&["call", "bash", r#"{"command":"cat key; touch written"}"#]);
    let done = run(command.env("DOCKER_HOST", proxy.address()))
        .expect(5)
        .says(&["looks different from inside"]);
    assert!(!done.text().contains("of the host") && !secret.join("written").exists());
    // The control: the engine itself follows such a link, and what it is given to run is led there.
    let mount = format!("type=bind,source={},target=/workspace", project.display());
    let led = [
        "run",
        "--rm",
        "--network",
        "none",
        "--mount",
        &mount,
        "--entrypoint",
        "cat",
        "podbay/workspace",
        "/workspace/key",
    ];
    assert_eq!(docker(&led), "of the host");
    std::fs::remove_file(&project).expect("removed");
    std::fs::rename(&elsewhere, &project).expect("moved back");
    env.assert_no_container();
}

/// One that is there already when the engine is to be asked does not even get that far.
#[test]
fn a_link_that_took_a_folders_place_on_the_way_is_refused_before_the_engine_is_asked() {
    let Some(env) = TestBox::new() else { return };
    let (project, elsewhere, secret) =
        (env.project(), env.beside("elsewhere"), env.beside("secret"));
    std::fs::create_dir(&secret).expect("made");
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let proxy = EngineProxy::start(env.beside("engine"), {
        let (project, elsewhere, secret, asked) = (
            project.clone(),
            elsewhere.clone(),
            secret.clone(),
            Arc::clone(&asked),
        );
        move |request| {
            let mut asked = asked.lock().expect("unshared");
            if request.path.contains("/images/") && !elsewhere.exists() {
                std::fs::rename(&project, &elsewhere).expect("moved");
                std::os::unix::fs::symlink(&secret, &project).expect("linked");
            }
            asked.push(request.path.clone());
        }
    });
    let mut command = env.here(&["call", "bash", r#"{"command":"touch written"}"#]);
    let done = run(command.env("DOCKER_HOST", proxy.address())).expect(5);
    done.says(&[
        "does not lead to it any more",
        "a symbolic link is there",
        "hint:",
    ]);
    let made = |path: &String| path.starts_with("/containers/create?name=podbay-workspace");
    assert!(elsewhere.exists() && !asked.lock().expect("unshared").iter().any(made));
    std::fs::remove_file(&project).expect("removed");
    std::fs::rename(&elsewhere, &project).expect("moved back");
    // The same through a link of the user's own, which leads there all the time.
    let link = env.beside("link");
    std::os::unix::fs::symlink(&project, &link).expect("linked");
    let mut command = env.podbay(&["call"]);
    command
        .arg("-C")
        .arg(&link)
        .args(["bash", r#"{"command":"echo works"}"#]);
    assert!(run(&mut command).expect(0).text().contains("works"));
    env.assert_no_container();
}
