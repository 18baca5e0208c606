//! An image of somebody else's as the model server: what it says of volumes, links and variables is
//! taken as that of any sandbox.

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use podbay::engine;
use podbay::engine::Engine;
use podbay::engine::ImageFacts;
use podbay::engine::Provision;
use podbay::inference;
use podbay::inference::Error;
use podbay::inference::Model;
use podbay::inference::ModelServer;
use podbay::inference::Paths;
use podbay::inference::Serving;
use podbay::llm::http;
use podbay_soak as soak;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::connect;
use super::inference::TURN;
use super::inference::complete;
use super::inference::models;
use super::inference::smoke;
use super::inspect::inspect;
use super::progress;
use super::test_box::TestBox;
use super::test_box::docker;
use crate::support::test_env::run;

/// An image made from our own server's for one test.
struct Image(String);

impl Image {
    async fn new(env: &TestBox, engine: &Engine, lines: &str) -> Self {
        let provision_locks = env.state().join("locks");
        let progress = progress();
        let provision = Provision::new(
            engine,
            &engine::Options::default(),
            false,
            provision_locks,
            &progress,
        )
        .allow_install(true);
        provision
            .ensure(inference::DEFAULT_IMAGE, &CancellationToken::new())
            .await
            .expect("an image");
        let name = format!("podbay-test-server:{}", env.key());
        let folder = env.beside("server-image");
        fs::create_dir_all(&folder).expect("made");
        fs::write(
            folder.join("Dockerfile"),
            format!("FROM {}\nUSER root\n{lines}\n", inference::DEFAULT_IMAGE),
        )
        .expect("written");
        // What another test shares with it, and removes, would be missing in the middle of the
        // build.
        docker(&[
            "build",
            "--quiet",
            "--no-cache",
            "--tag",
            &name,
            folder.to_str().expect("is text"),
        ]);
        Self(name)
    }

    async fn facts(&self, engine: &Engine) -> ImageFacts {
        engine
            .image(&self.0, &CancellationToken::new())
            .await
            .expect("known")
            .expect("just built")
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        docker(&["rmi", "--force", &self.0]);
    }
}

/// Removes the server also where the test fails.
struct Server(String);

impl Drop for Server {
    fn drop(&mut self) {
        docker(&["rm", "--force", "--volumes", &self.0]);
    }
}

fn options(image: &Image) -> inference::Options {
    inference::Options {
        context: Some(1024),
        image: Some(image.0.clone()),
        ..inference::Options::default()
    }
}

async fn ensure(
    env: &TestBox,
    engine: &Engine,
    image: &Image,
    model: &Model,
) -> Result<Serving, Error> {
    let (cancel, progress) = (CancellationToken::new(), progress());
    let facts = image.facts(engine).await;
    ModelServer::new(engine, &options(image), &Paths::new(env.state()))
        .ensure(&facts, model, &progress, &cancel)
        .await
}

/// Returns the folder of the server's socket, in which it may write.
fn socket_folder(env: &TestBox) -> PathBuf {
    env.state()
        .canonicalize()
        .expect("made")
        .join("model-server")
        .join("run")
}

fn n_entries(folder: &Path) -> usize {
    fs::read_dir(folder).map_or(0, Iterator::count)
}

/// Returns how many containers were made from an image and are still there.
fn n_containers(image: &Image) -> usize {
    docker(&[
        "ps",
        "--all",
        "--quiet",
        "--filter",
        &format!("ancestor={}", image.0),
    ])
    .lines()
    .count()
}

#[tokio::test]
async fn an_image_that_would_open_the_model_servers_folders_is_refused() {
    let Some(engine) = connect().await else {
        return;
    };
    let model = smoke(&inference::Options::default(), &Paths::new(models())).await;
    let cases = [
        (
            "VOLUME /run/llama/made",
            "it declares a volume at /run/llama/made, and the engine would make that folder on your disk",
        ),
        ("VOLUME /srv/../run/key", "it declares a volume at /run/key"),
        ("VOLUME /model.gguf", "it declares a volume at /model.gguf"),
        ("VOLUME /sys/made", "it declares a volume at /sys/made"),
        (
            "RUN ln -s /run/llama /srv/data\nVOLUME /srv/data/made/deep",
            "its `/srv/data` is a symbolic link to `/run/llama`",
        ),
        (
            "RUN ln -s /run/llama/made /model.gguf",
            "its `/model.gguf` is a symbolic link to `/run/llama/made`",
        ),
        ("RUN mkdir /model.gguf", "its `/model.gguf` is a folder"),
        (
            "RUN mkdir -p /run && touch /run/llama",
            "its `/run/llama` is a file and no folder",
        ),
        (
            "RUN ln -s /run/llama /run/key",
            "its `/run/key` is a symbolic link to `/run/llama`",
        ),
    ];
    for (lines, words) in soak::sample(cases, 4) {
        let Some(env) = TestBox::new() else { return };
        let image = Image::new(&env, &engine, lines).await;
        // Twice: what was refused is not taken for known.
        for _ in 0..2 {
            let error = ensure(&env, &engine, &image, &model)
                .await
                .expect_err(lines);
            assert!(error.to_string().contains(words), "{lines}: {error}");
            assert!(
                matches!(error, Error::Image { .. }) && error.hint().is_some(),
                "{error:?}"
            );
        }
        assert_eq!(
            (n_entries(&socket_folder(&env)), n_containers(&image)),
            (0, 0),
            "{lines}"
        );
    }
}

/// The same by the command line, with its code, and what the engine would do with such an image.
#[tokio::test]
async fn without_the_look_an_image_makes_folders_beside_the_model_servers_socket() {
    let Some(env) = TestBox::new() else { return };
    let Some(engine) = connect().await else {
        return;
    };
    let model = smoke(&inference::Options::default(), &Paths::new(models())).await;
    let image = Image::new(
        &env,
        &engine,
        "RUN ln -s /run/llama /srv/data\nVOLUME /srv/data/made/deep",
    )
    .await;
    let file = model.files[0].to_str().expect("UTF-8");
    let mut command = env.here(&["run", "--model", file, "say hello"]);
    let done = run(command.env("PODBAY_INFERENCE_IMAGE", &image.0)).expect(6);
    done.says(&[
        "cannot use the model server",
        "its `/srv/data` is a symbolic link to `/run/llama`",
        "hint: choose another image",
    ]);
    env.assert_no_container();
    let folder = socket_folder(&env);
    assert_eq!((n_entries(&folder), n_containers(&image)), (0, 0));

    let mount = format!("{}:/run/llama", folder.display());
    docker(&[
        "run",
        "--rm",
        "--network",
        "none",
        "--volume",
        &mount,
        "--entrypoint",
        "true",
        &image.0,
    ]);
    assert_eq!(n_entries(&folder), 1, "it made `made/deep`");
}

#[tokio::test]
async fn what_an_image_says_of_volumes_variables_and_its_start_does_not_count_for_the_model_server()
{
    let Some(env) = TestBox::new() else { return };
    let Some(engine) = connect().await else {
        return;
    };
    let _turn = TURN.lock().await;
    let model = smoke(&inference::Options::default(), &Paths::new(models())).await;
    let lines = "RUN mkdir /srv/real && ln -s /srv/real /srv/link\nVOLUME /data /srv/real/deep /var/tmp/..//more\n\
                 ENV LD_LIBRARY_PATH=/evil LD_AUDIT=/evil.so BASH_ENV=/evil.sh PROMPT_COMMAND=evil LC_ALL=C.UTF-8\n\
                 WORKDIR /run/llama/made\nHEALTHCHECK --interval=1s CMD touch /run/llama/healthy\nENTRYPOINT [\"touch\", \"/run/llama/entered\"]\n\
                 STOPSIGNAL SIGKILL\nEXPOSE 80\nLABEL dev.podbay.owner=nobody dev.podbay.role=workspace";
    let image = Image::new(&env, &engine, lines).await;
    let serving = ensure(&env, &engine, &image, &model)
        .await
        .expect("a server");
    let server = Server(serving.container.0.clone());
    let [warning] = &serving.warnings[..] else {
        panic!("{:?}", serving.warnings)
    };
    assert!(
        warning.contains("BASH_ENV")
            && warning.contains("LD_AUDIT")
            && warning.contains("LD_LIBRARY_PATH"),
        "{warning}"
    );

    let container = inspect(&server.0);
    let cover = "rw,noexec,nosuid,nodev,size=1048576,nr_inodes=1000,mode=1777";
    let expected = json!({
        "/data": cover, "/srv/real/deep": cover, "/var/more": cover,
        "/dev/shm": "rw,noexec,nosuid,nodev,size=1m,nr_inodes=1k,mode=1777",
    });
    assert_eq!(container["HostConfig"]["Tmpfs"], expected);
    let kinds: Vec<&str> = container["Mounts"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|mount| mount["Type"].as_str().expect("text"))
        .collect();
    assert!(kinds.len() >= 3 && !kinds.contains(&"volume"), "{kinds:?}");
    let config = &container["Config"];
    assert_eq!(
        (&config["WorkingDir"], &config["StopSignal"]),
        (&json!("/"), &json!("SIGTERM"))
    );
    assert_eq!(config["Healthcheck"]["Test"], json!(["NONE"]));
    assert_eq!(config["Labels"]["dev.podbay.role"], "model-server");
    let environment = docker(&["exec", &server.0, "cat", "/proc/1/environ"]);
    let set: Vec<&str> = environment
        .split('\0')
        .filter(|pair| pair.contains("evil"))
        .collect();
    assert!(
        set.is_empty() && environment.contains("LC_ALL=C.UTF-8"),
        "{environment:?}"
    );
    let written = docker(&[
        "exec",
        &server.0,
        "sh",
        "-c",
        "stat -f -c %T /data /srv/link/deep /var/more; cd /data && ls -A /run/llama",
    ]);
    assert_eq!(
        written, "tmpfs\ntmpfs\ntmpfs\ns.sock\n",
        "nothing was made in the folder of its socket"
    );
    assert!(
        ["red", "blue"].contains(
            &complete(&serving).await["colour"]
                .as_str()
                .expect("a colour")
        )
    );
    // Looked at once.
    assert_eq!(n_entries(&env.state().join("images")), 1);
}

#[tokio::test]
async fn an_image_sets_no_key_and_nothing_else_for_the_model_server() {
    let Some(env) = TestBox::new() else { return };
    let Some(engine) = connect().await else {
        return;
    };
    let _turn = TURN.lock().await;
    let model = smoke(&inference::Options::default(), &Paths::new(models())).await;
    let lines = "ENV LLAMA_API_KEY=weak LLAMA_ARG_HOST=0.0.0.0 LLAMA_ARG_PORT=odd LLAMA_ARG_MODEL=/evil LLAMA_ARG_SLOT_SAVE_PATH=/run/llama \
                 LLAMA_ARG_ENDPOINT_SLOTS=1 GGML_BACKEND_PATH=/evil.so HF_TOKEN=evil PATH=/models:/run/llama:/tmp:/usr/bin";
    let image = Image::new(&env, &engine, lines).await;
    let serving = ensure(&env, &engine, &image, &model)
        .await
        .expect("a server");
    let server = Server(serving.container.0.clone());
    let [warning] = &serving.warnings[..] else {
        panic!("{:?}", serving.warnings)
    };
    for name in [
        "GGML_BACKEND_PATH",
        "HF_TOKEN",
        "LLAMA_API_KEY",
        "LLAMA_ARG_PORT",
        "LLAMA_ARG_SLOT_SAVE_PATH",
        "PATH",
    ] {
        assert!(warning.contains(name), "{warning}");
    }
    let environment = docker(&["exec", &server.0, "cat", "/proc/1/environ"]);
    let names: Vec<&str> = environment
        .split('\0')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, _)| name)
        .collect();
    let is_theirs = |name: &&&str| {
        ["LLAMA_", "GGML_", "HF_"]
            .iter()
            .any(|beginning| name.starts_with(beginning))
    };
    assert_eq!(
        names.iter().find(is_theirs),
        None,
        "an empty value is one too: {environment:?}"
    );
    assert!(
        environment.split('\0').any(|pair| pair == "PATH=/usr/bin"),
        "{environment:?}"
    );

    let client =
        http::client(&serving.endpoint.settings(Duration::from_secs(5), None)).expect("a client");
    for (key, status) in [("weak", 401), ("", 401), (serving.key.expose(), 200)] {
        let asked = client
            .post(serving.endpoint.api("/completions"))
            .bearer_auth(key)
            .json(&json!({"prompt": "a", "max_tokens": 1}));
        let asked = asked.send().await.expect("an answer").status().as_u16();
        assert_eq!(asked, status, "{key:?}");
    }
}

#[tokio::test]
async fn a_link_that_takes_the_models_place_is_refused_before_the_engine_is_asked() {
    let Some(env) = TestBox::new() else { return };
    let Some(engine) = connect().await else {
        return;
    };
    let image = Image::new(&env, &engine, "").await;
    let smoke = smoke(&inference::Options::default(), &Paths::new(models())).await;
    let folder = env.beside("own-models");
    fs::create_dir(&folder).expect("made");
    let file = folder.join("m.gguf");
    fs::copy(&smoke.files[0], &file).expect("copied");
    let store = inference::Store::new(
        &inference::Options {
            model: Some(file.to_str().expect("UTF-8").to_owned()),
            ..options(&image)
        },
        &Paths::new(env.state()),
        true,
    );
    let model = store
        .expect("a store")
        .resolve(&progress(), &CancellationToken::new())
        .await
        .expect("a model");
    fs::rename(&folder, env.beside("moved")).expect("moved");
    std::os::unix::fs::symlink(env.beside("moved"), &folder).expect("linked");
    let error = ensure(&env, &engine, &image, &model)
        .await
        .expect_err("must be refused");
    assert!(
        matches!(error, Error::Moved { .. }) && error.hint().is_some(),
        "{error:?}"
    );
    assert!(
        error
            .to_string()
            .contains("own-models`: a symbolic link is there"),
        "{error}"
    );
    assert_eq!(n_containers(&image), 0);
}
