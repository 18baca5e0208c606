//! One model server for all that happens on a state folder: who works with it keeps it.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use podbay::inference;
use podbay::inference::Paths;

use super::inference::TURN;
use super::inference::models;
use super::inference::smoke;
use super::test_box::TestBox;
use super::test_box::docker;
use crate::support::TestEnv;
use crate::support::test_env::run;
use crate::support::test_env::start;
use crate::support::test_env::within;

/// Removes the server also where the test fails.
struct Server(String);

impl Drop for Server {
    fn drop(&mut self) {
        docker(&["rm", "--force", &self.0]);
    }
}

#[tokio::test]
async fn a_server_that_another_process_works_with_is_not_ended() {
    let Some(env) = TestBox::new() else { return };
    let _turn = TURN.lock().await;
    let model = smoke(&inference::Options::default(), &Paths::new(models())).await;
    let model = model.files[0].to_str().expect("UTF-8").to_owned();
    let test = move || {
        let other = env.beside("other");
        fs::create_dir(&other).expect("made");
        TestEnv::give(&other);
        let with = |arguments: &[&str], context: &str| {
            let mut command = env.podbay(&arguments[..1]);
            command
                .args(&arguments[1..])
                .env("PODBAY_INFERENCE_CONTEXT", context)
                .env("PODBAY_INFERENCE_WARM_UP", "0");
            command
        };
        let (project, other) = (env.project(), other.to_str().expect("UTF-8").to_owned());
        let project = project.to_str().expect("UTF-8");
        let served = || {
            run(&mut with(&["status", "--json", "-C", project], "2048"))
                .expect(0)
                .json()["model_server"]
                .clone()
        };
        let mut chat =
            start(with(&["chat", "-C", project, "--model", &model], "2048").stdin(Stdio::piped()));
        assert!(
            within(Duration::from_mins(2), || served()["detail"] == "ready"),
            "{}",
            served()
        );
        let id = served()["id"].as_str().expect("an id").to_owned();
        let _server = Server(id.clone());

        // Another model or other settings would need another server.
        let named = format!("process {} uses it with the model", chat.pid());
        let done = run(&mut with(
            &[
                "run",
                "--output",
                "json",
                "-C",
                &other,
                "--model",
                &model,
                "say hello",
            ],
            "1024",
        ))
        .expect(6);
        let done = done.says(&[
            "cannot use the model server",
            &named,
            "hint: end that process first",
            "PODBAY_HOME",
        ]);
        assert_eq!(done.json()["error"]["kind"], "inference");
        // It is that of all projects, so one of them cannot take it down.
        run(&mut with(&["down", "-C", &other], "1024"))
            .expect(0)
            .says(&[
                "the model server stays",
                &format!("process {} works", chat.pid()),
            ]);
        assert_eq!(served()["id"], id.as_str(), "it was not touched");

        chat.feed(Vec::new());
        chat.wait().expect(0);
        let ended = run(&mut with(&["down", "-C", &other], "1024")).expect(0);
        assert_eq!(ended.text(), "ended: model server\n", "{}", ended.stderr);
        drop(env);
    };
    tokio::task::spawn_blocking(test).await.expect("no panic");
}

/// It ends by itself, as where memory runs out, while a session works with it: the session continues.
#[tokio::test]
async fn a_server_that_ends_while_a_session_works_with_it_is_started_again() {
    let Some(env) = TestBox::new() else { return };
    let _turn = TURN.lock().await;
    let model = smoke(&inference::Options::default(), &Paths::new(models())).await;
    let model = model.files[0].to_str().expect("UTF-8").to_owned();
    let test = move || {
        let project = env.project();
        let project = project.to_str().expect("UTF-8");
        let with = |arguments: &[&str]| {
            let mut command = env.podbay(&arguments[..1]);
            command
                .args(&arguments[1..])
                .env("PODBAY_INFERENCE_CONTEXT", "4096")
                .env("PODBAY_INFERENCE_WARM_UP", "0");
            command
                .env("PODBAY_AGENT_MAX_TURNS", "1")
                .env("PODBAY_LLM_MAX_OUTPUT_TOKENS", "8");
            command
        };
        let served = || {
            run(&mut with(&["status", "--json", "-C", project]))
                .expect(0)
                .json()["model_server"]
                .clone()
        };
        let mut chat =
            start(with(&["chat", "-C", project, "--model", &model]).stdin(Stdio::piped()));
        assert!(
            within(Duration::from_mins(2), || served()["detail"] == "ready"),
            "{}",
            served()
        );
        let id = served()["id"].as_str().expect("an id").to_owned();
        let server = Server(id.clone());
        // Not before the session has it.
        std::thread::sleep(Duration::from_secs(2));
        docker(&["kill", "--signal", "KILL", &server.0]);
        assert!(
            within(Duration::from_mins(1), || served()["detail"] == "ready"),
            "{}",
            served()
        );
        assert_eq!(
            served()["id"],
            id.as_str(),
            "the same one, with the same key"
        );
        chat.feed(b"Say hello.\n".to_vec());
        let done = chat.wait_within(Duration::from_mins(3)).expect(0);
        let done = done.says(&[
            "the model server ended (it was killed",
            "and is started again",
        ]);
        assert!(!done.stderr.contains("error:"), "{}", done.stderr);
        run(&mut with(&["down", "-C", project])).expect(0);
        drop(env);
    };
    tokio::task::spawn_blocking(test).await.expect("no panic");
}
