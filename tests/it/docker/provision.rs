use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use podbay::engine;
use podbay::engine::Engine;
use podbay::engine::Error;
use podbay::engine::ImageState;
use podbay::engine::Provision;
use podbay::event::ProgressSink;
use tokio_util::sync::CancellationToken;

use super::connect;
use super::progress;
use super::test_box::TestBox;
use super::test_box::build_image;
use super::test_box::docker;
use crate::support::ScriptedModel;
use crate::support::TestEnv;
use crate::support::test_env::run;

#[tokio::test]
async fn our_image_is_built_once_and_then_found() {
    let Some(engine) = connect().await else {
        return;
    };
    let locks = tempfile::tempdir().expect("a folder");
    let cancel = CancellationToken::new();
    let provision = Provision::new(
        &engine,
        &engine::Options::default(),
        false,
        locks.path(),
        &progress(),
    )
    .allow_install(true);
    // Both at once: the second waits for the first instead of building too.
    let (first, second) = tokio::join!(
        provision.ensure("podbay/workspace", &cancel),
        provision.ensure("podbay/workspace:latest", &cancel)
    );
    let (first, second) = (first.expect("an image"), second.expect("an image"));
    assert_eq!(first.id, second.id);

    let silent: ProgressSink =
        Arc::new(|step| assert_eq!(step.task, "", "nothing is made any more"));
    let quiet = Provision::new(
        &engine,
        &engine::Options::default(),
        false,
        locks.path(),
        &silent,
    );
    let again = quiet
        .ensure("podbay/workspace", &cancel)
        .await
        .expect("an image");
    assert_eq!(again, first);

    let listed = provision.list(&cancel).await.expect("a list");
    let workspace = listed
        .iter()
        .find(|image| image.name == "podbay/workspace")
        .expect("it is ours");
    assert_eq!(
        (workspace.state, workspace.facts.as_ref()),
        (ImageState::Present, Some(&first))
    );
    let mut names: Vec<&str> = listed.iter().map(|image| image.name.as_str()).collect();
    names.sort_unstable();
    assert!(
        names.windows(2).all(|pair| pair[0] != pair[1]) && names.contains(&"podbay/podbay"),
        "{names:?}"
    );
}

#[tokio::test]
async fn a_base_may_take_longer_to_make_than_an_engine_may_take_to_answer() {
    let Some(_) = connect().await else { return };
    let cancel = CancellationToken::new();
    let hurried = engine::Options {
        timeout_s: 1,
        ..engine::Options::default()
    };
    let engine = Engine::connect(&hurried, &cancel).await.expect("an engine");
    let end_of_tar = async {
        tokio::time::sleep(Duration::from_millis(2500)).await;
        Ok(Bytes::from(vec![0; 1024]))
    };
    let name = format!("podbay-test/slow-{}:1", std::process::id());
    engine
        .import(
            &name,
            futures::stream::once(end_of_tar),
            Vec::new(),
            Duration::from_mins(1),
            &cancel,
        )
        .await
        .expect("imported");
    engine.remove_image(&name, &cancel).await.expect("removed");
}

#[tokio::test]
async fn an_image_that_nobody_has_is_named_with_a_hint() {
    let Some(engine) = connect().await else {
        return;
    };
    let locks = tempfile::tempdir().expect("a folder");
    let options = engine::Options {
        pull: false,
        ..engine::Options::default()
    };
    let provision = Provision::new(&engine, &options, false, locks.path(), &progress());
    let error = provision
        .ensure("podbay-test.invalid/nothing:1", &CancellationToken::new())
        .await
        .expect_err("it does not exist");
    assert!(matches!(error, Error::NoImage { .. }), "{error}");
    assert!(
        error.to_string().contains("podbay-test.invalid/nothing:1"),
        "{error}"
    );
    assert!(error.hint().is_some());
}

#[tokio::test]
async fn offline_nothing_is_pulled_or_built_and_it_is_said() {
    let Some(engine) = connect().await else {
        return;
    };
    let locks = tempfile::tempdir().expect("a folder");
    let cancel = CancellationToken::new();
    let silent: ProgressSink = Arc::new(|step| assert_eq!(step.task, "", "nothing is begun"));
    let current = engine::Options::default();
    Provision::new(&engine, &current, false, locks.path(), &progress())
        .allow_install(true)
        .ensure("podbay/workspace", &cancel)
        .await
        .expect("an image");
    // What is there is used.
    Provision::new(&engine, &current, true, locks.path(), &silent)
        .ensure("podbay/workspace", &cancel)
        .await
        .expect("it is there");
    // One that would be made from other files now.
    let other = engine::Options {
        debian_mirror: Some("http://archive.example/debian".to_owned()),
        ..engine::Options::default()
    };
    for (options, name, words) in [
        (
            &current,
            "podbay-test.invalid/nothing:1",
            "is not here, and `offline` is set",
        ),
        (
            &other,
            "podbay/workspace",
            "would have to be built, and `offline` is set",
        ),
    ] {
        let provision =
            Provision::new(&engine, options, true, locks.path(), &silent).allow_install(true);
        let error = provision.ensure(name, &cancel).await.expect_err("offline");
        assert!(
            error.to_string().contains(words) && error.hint().is_some(),
            "{error}"
        );
    }
    let provision =
        Provision::new(&engine, &current, true, locks.path(), &silent).allow_install(true);
    let error = provision
        .build("podbay/workspace", &cancel)
        .await
        .expect_err("offline");
    assert!(
        matches!(error, Error::Offline { is_own: true, .. }),
        "{error}"
    );
}

#[test]
fn a_run_offline_without_its_image_has_no_sandbox_and_a_remedy() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new().says("Never asked.").start_blocking();
    let mut task = env.task(&model, &["look around"]);
    run(task
        .env("PODBAY_OFFLINE", "true")
        .env("PODBAY_SANDBOX_IMAGE", "podbay-test.invalid/nothing:1"))
    .expect(5)
    .says(&[
        "cannot use the image",
        "podbay-test.invalid/nothing:1` is not here, and `offline` is set",
        "docker load",
    ]);
    // Without that of the model server it is the model that is missing.
    let file = env.beside("small.gguf");
    std::fs::write(&file, crate::inference::hub::model(200)).expect("written");
    TestEnv::give(&file);
    let mut task = env.here(&[
        "run",
        "--model",
        file.to_str().expect("UTF-8"),
        "look around",
    ]);
    run(task
        .env("PODBAY_OFFLINE", "true")
        .env("PODBAY_INFERENCE_IMAGE", "podbay-test.invalid/server:1"))
    .expect(6)
    .says(&[
        "cannot use the model server",
        "cannot get its image",
        "podbay-test.invalid/server:1` is not here",
        "docker load",
    ]);
}

#[tokio::test]
async fn another_archive_makes_another_image() {
    let Some(engine) = connect().await else {
        return;
    };
    let locks = tempfile::tempdir().expect("a folder");
    let cancel = CancellationToken::new();
    let state = async |mirror: Option<&str>| {
        let options = engine::Options {
            debian_mirror: mirror.map(str::to_owned),
            ..engine::Options::default()
        };
        let listed = Provision::new(&engine, &options, false, locks.path(), &progress())
            .list(&cancel)
            .await?;
        Ok::<_, Error>(
            listed
                .into_iter()
                .find(|image| image.name == "podbay/workspace")
                .expect("it is ours")
                .state,
        )
    };
    Provision::new(
        &engine,
        &engine::Options::default(),
        false,
        locks.path(),
        &progress(),
    )
    .allow_install(true)
    .ensure("podbay/workspace", &cancel)
    .await
    .expect("an image");
    assert_eq!(state(None).await.expect("a list"), ImageState::Present);
    assert_eq!(
        state(Some("http://archive.example/debian"))
            .await
            .expect("a list"),
        ImageState::Outdated
    );
    let error = state(Some("ftp://archive.example/debian"))
        .await
        .expect_err("no build could load from there");
    assert!(
        matches!(
            error,
            Error::Setting {
                key: "engine.debian_mirror",
                ..
            }
        ),
        "{error}"
    );
}

#[tokio::test]
async fn a_build_leaves_no_stage_of_its_own_behind() {
    let Some(engine) = connect().await else {
        return;
    };
    let cancel = CancellationToken::new();
    // Somebody else's, by the same label: it stays.
    let stranger = format!("podbay-test/stage-{}:1", std::process::id());
    let changes = vec!["LABEL dev.podbay.stage=of-another-build".to_owned()];
    let tar = futures::stream::once(async { Ok(Bytes::from(vec![0; 1024])) });
    engine
        .import(&stranger, tar, changes, Duration::from_mins(1), &cancel)
        .await
        .expect("imported");
    let marked = || {
        docker(&[
            "images",
            "--quiet",
            "--no-trunc",
            "--filter",
            "label=dev.podbay.stage",
        ])
    };
    let before = marked();
    // By the program itself: the image holds whatever builds it, and what stands under this name is
    // the user's.
    build_image(&TestEnv::new(), "podbay/podbay").expect(0);
    assert_eq!(marked(), before);
    let label = docker(&[
        "inspect",
        "--format",
        "{{index .Config.Labels \"dev.podbay.stage\"}}",
        "podbay/podbay",
    ]);
    assert_eq!(label.trim(), "", "the mark is the stage's alone");
    engine
        .remove_image(&stranger, &cancel)
        .await
        .expect("removed");
}
