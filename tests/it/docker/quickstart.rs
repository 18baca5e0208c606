//! `podbay quickstart` where a hub answers: it loads the machine's default and works with it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use podbay::inference;
use podbay::inference::Paths;

use super::inference::TURN;
use super::inference::models;
use super::inference::smoke;
use super::test_box::TestBox;
use super::test_box::docker;
use crate::inference::hub::Hub;
use crate::inference::hub::sha256;
use crate::support::test_env::run;
use crate::support::test_env::start;

/// Removes the model server of a state folder also where the test fails.
struct Server<'a>(&'a TestBox);

impl Drop for Server<'_> {
    fn drop(&mut self) {
        drop(run(&mut self.0.here(&["down"])));
        let state = self.0.state();
        let folder = state.to_str().expect("UTF-8");
        for id in docker(&[
            "ps",
            "--all",
            "--quiet",
            "--filter",
            "label=dev.podbay.role=model-server",
        ])
        .lines()
        {
            if docker(&["inspect", "--format", "{{json .Mounts}}", id]).contains(folder) {
                docker(&["rm", "--force", id]);
            }
        }
    }
}

#[tokio::test]
async fn quickstart_takes_the_machines_default_where_a_hub_answers() {
    let Some(env) = TestBox::new() else { return };
    let _turn = TURN.lock().await;
    let model = smoke(&inference::Options::default(), &Paths::new(models())).await;
    // The smallest model's bytes under another one's name: what is loaded and served is real, and
    // quick.
    let file = fs::read(&model.files[0]).expect("the smoke model");
    let hash = sha256(&file);
    let hub = Hub::start(file);
    hub.manners().sha256 = Some(hash.clone());
    // The copy of the example is to go with the test.
    let tmp = env.beside("tmp");
    fs::create_dir(&tmp).expect("made");
    let env = tokio::task::spawn_blocking(move || {
        let listed = run(env
            .podbay(&["models", "list", "--json"])
            .env("PODBAY_INFERENCE_HUB", &hub.url))
        .expect(0)
        .json();
        let default = listed["default"]
            .as_str()
            .expect("this machine has one")
            .to_owned();
        let server = Server(&env);
        let mut command = env.podbay(&["quickstart", "--output", "json"]);
        command
            .env("PODBAY_INFERENCE_HUB", &hub.url)
            .env("TMPDIR", &tmp)
            .env("PODBAY_LLM_MAX_OUTPUT_TOKENS", "20")
            .env("PODBAY_AGENT_TIMEOUT", "1m");
        let done = start(&mut command).wait_within(Duration::from_mins(5));
        let done = done.says(&["this loads", &default, "(--model names another)"]);
        assert!(
            !done.stderr.contains("only proves the set-up"),
            "{}",
            done.stderr
        );
        // Whether a model this small uses a tool in time is its own affair; that it was this one
        // which was asked is ours.
        assert!(
            [0, 1, 3].contains(&done.code),
            "{} {}",
            done.text(),
            done.stderr
        );
        assert_eq!(done.json()["model"], default.as_str(), "{}", done.text());
        let info = run(env
            .podbay(&["models", "info", &default, "--json"])
            .env("PODBAY_INFERENCE_HUB", &hub.url))
        .expect(0)
        .json();
        assert_eq!(
            (&info["state"], &info["files"][0]["sha256"]),
            (&"here".into(), &hash.as_str().into())
        );
        // It came over several connections, each with a stretch of its own.
        let ranges = hub.ranges();
        assert!(
            ranges.len() == 5
                && ranges
                    .iter()
                    .any(|range| range.starts_with("bytes=0-") && range != "bytes=0-3"),
            "{ranges:?}"
        );
        let asked = hub.asked();
        assert!(
            asked
                .iter()
                .any(|asked| asked.is_hub && asked.path.contains("/resolve/")),
            "{asked:?}"
        );
        assert!(
            Path::new(info["files"][0]["path"].as_str().expect("a path")).starts_with(env.state())
        );
        drop(server);
        env
    })
    .await
    .expect("no panic");
    drop(env);
}
