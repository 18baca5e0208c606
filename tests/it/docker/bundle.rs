//! Images and models in one file: out of a real engine, and into it.

use std::fs;
use std::path::Path;
use std::path::PathBuf;

use bytes::Bytes;
use podbay::engine::Engine;
use serde_json::Value;
use serde_json::json;
use sha2::Digest;
use sha2::Sha256;
use tokio_util::sync::CancellationToken;

use super::connect;
use crate::inference::hub::model;
use crate::support::test_env::Done;
use crate::support::test_env::TestEnv;
use crate::support::test_env::run;

/// A small image with a name that nobody else has, and a user's machine.
struct Ready {
    env: TestEnv,
    engine: Engine,
    name: String,
}

impl Ready {
    async fn new() -> Option<Self> {
        let engine = connect().await?;
        let env = TestEnv::new();
        let name = format!("podbay-test-bundle-{}:1", env.key());
        let ready = Self { env, engine, name };
        ready.import(&ready.name, b"first").await;
        Some(ready)
    }

    /// Makes an image of one file.
    async fn import(&self, name: &str, content: &[u8]) {
        let mut root = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(content.len() as u64);
        root.append_data(&mut header, "file", content)
            .expect("written");
        let bytes = Bytes::from(root.into_inner().expect("written"));
        let tar = futures::stream::iter([Ok::<_, std::io::Error>(bytes)]);
        let within = std::time::Duration::from_secs(60);
        self.engine
            .import(name, tar, Vec::new(), within, &CancellationToken::new())
            .await
            .expect("imported");
    }

    async fn id(&self, name: &str) -> Option<String> {
        self.engine
            .image(name, &CancellationToken::new())
            .await
            .expect("an answer")
            .map(|facts| facts.id)
    }

    async fn forget(&self, name: &str) {
        self.engine
            .remove_image(name, &CancellationToken::new())
            .await
            .expect("removed");
    }

    fn model(&self) -> PathBuf {
        let path = self.env.beside("tiny.gguf");
        fs::write(&path, gguf()).expect("written");
        path
    }

    fn bundle(&self) -> PathBuf {
        self.env.beside("bundle.tar")
    }

    /// Saves the image and a model.
    fn save(&self, more: &[&str]) -> Done {
        let model = self.model();
        let mut command = self.env.podbay(&["images", "bundle", "save"]);
        command
            .arg(self.bundle())
            .args(["--image", &self.name, "--model"])
            .arg(model)
            .args(more);
        run(command.env("SECRET_KEY", "sesame-open"))
    }

    fn load(&self, more: &[&str]) -> Done {
        let mut command = self.env.podbay(&["images", "bundle", "load"]);
        run(command.arg(self.bundle()).args(more))
    }

    fn models(&self) -> Vec<String> {
        let entries = fs::read_dir(self.env.state().join("models"))
            .into_iter()
            .flatten()
            .flatten();
        entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect()
    }

    /// Loads what must not be loaded, and looks whether anything of it stayed.
    async fn refused(&self, code: i32, words: &[&str]) {
        let done = self.load(&[]).expect(code);
        assert!(done.stderr.contains("hint:"), "{}", done.stderr);
        done.says(words);
        assert_eq!(self.id(&self.name).await, None, "{words:?}");
        assert_eq!(self.models(), Vec::<String>::new(), "{words:?}");
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        // The runtime of the test is not ours to block on here.
        let _ = std::process::Command::new("docker")
            .args(["rmi", "-f", &self.name])
            .output();
    }
}

/// A model, and a small one.
fn gguf() -> Vec<u8> {
    model(200)
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// A bundle taken apart.
struct Parts {
    manifest: Value,
    entries: Vec<(String, Vec<u8>)>,
}

impl Parts {
    fn of(path: &Path) -> Self {
        let mut entries = entries(&fs::read(path).expect("a bundle"));
        let manifest = serde_json::from_slice(&entries.remove(0).1).expect("a manifest");
        Self { manifest, entries }
    }

    /// Puts it together again, with hashes that are right: what somebody would do who means harm.
    fn write(&mut self, path: &Path) {
        let (size, sha256) = (self.entries[0].1.len(), hash(&self.entries[0].1));
        self.manifest["archive"] = json!({"size": size, "sha256": sha256});
        let manifest = (
            "podbay-bundle.json".to_owned(),
            serde_json::to_vec(&self.manifest).expect("JSON"),
        );
        fs::write(path, pack([&manifest].into_iter().chain(&self.entries))).expect("written");
    }

    /// Changes the list in the engine's archive.
    fn change_list(&mut self, change: impl FnOnce(&mut Value)) {
        let mut inner = entries(&self.entries[0].1);
        let list = inner
            .iter_mut()
            .find(|entry| entry.0 == "manifest.json")
            .expect("the engine's list");
        let mut value = serde_json::from_slice(&list.1).expect("JSON");
        change(&mut value);
        list.1 = serde_json::to_vec(&value).expect("JSON");
        self.entries[0].1 = pack(&inner);
    }
}

fn entries(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut archive = tar::Archive::new(bytes);
    let mut found = Vec::new();
    for entry in archive.entries().expect("a tar") {
        let mut entry = entry.expect("an entry");
        let mut content = Vec::new();
        std::io::Read::read_to_end(&mut entry, &mut content).expect("read");
        if entry.header().entry_type().is_file() {
            found.push((
                entry.path().expect("a path").to_string_lossy().into_owned(),
                content,
            ));
        }
    }
    found
}

fn pack<'a>(entries: impl IntoIterator<Item = &'a (String, Vec<u8>)>) -> Vec<u8> {
    let mut out = tar::Builder::new(Vec::new());
    for (path, content) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(content.len() as u64);
        out.append_data(&mut header, path, content.as_slice())
            .expect("written");
    }
    out.into_inner().expect("written")
}

#[tokio::test]
async fn a_bundle_brings_images_and_models_and_nothing_of_the_person() {
    let Some(ready) = Ready::new().await else {
        return;
    };
    let id = ready.id(&ready.name).await.expect("it was imported");
    let saved = ready.save(&[]).expect(0);
    assert!(
        saved.text().contains(&format!("image {} {id}", ready.name)),
        "{}",
        saved.text()
    );
    let bytes = fs::read(ready.bundle()).expect("saved");
    for private in [
        "sesame-open",
        ready.env.home().to_str().expect("UTF-8"),
        "tiny.gguf\0root",
    ] {
        assert!(
            !bytes
                .windows(private.len())
                .any(|window| window == private.as_bytes()),
            "{private} is in it"
        );
    }
    assert_eq!(entries(&bytes)[0].0, "podbay-bundle.json");

    // Twice the same name is a mistake, unless one says so; nothing unfinished stays.
    ready
        .save(&[])
        .expect(2)
        .says(&["bundle.tar", "there already", "--force"]);
    ready.save(&["--force"]).expect(0);
    assert!(!ready.env.beside("bundle.tar.part").exists());
    let digest = run(ready
        .env
        .podbay(&["images", "bundle", "save", "x.tar", "--no-model", "--image"])
        .arg(format!("a@sha256:{}", "0".repeat(64))));
    digest.expect(2).says(&["names no tag"]);

    ready.forget(&ready.name).await;
    let checked = ready.load(&["--check"]).expect(0).text();
    assert!(checked.contains(&ready.name), "{checked}");
    assert_eq!(
        (ready.id(&ready.name).await, ready.models()),
        (None, Vec::new()),
        "--check loads nothing"
    );
    let loaded = ready.load(&[]).expect(0).text();
    assert_eq!(ready.id(&ready.name).await, Some(id), "{loaded}");
    assert_eq!(
        fs::read(ready.env.state().join("models/tiny.gguf")).expect("the model"),
        gguf()
    );
    // What is here already is no obstacle.
    ready.load(&[]).expect(0);
    assert_eq!(ready.models(), ["tiny.gguf"]);
}

#[tokio::test]
async fn a_bundle_that_is_not_whole_leaves_nothing_behind() {
    let Some(ready) = Ready::new().await else {
        return;
    };
    ready.save(&[]).expect(0);
    ready.forget(&ready.name).await;
    let whole = fs::read(ready.bundle()).expect("saved");
    let total = whole.len();
    for at in [total - 1, total / 2, 1024, 600] {
        fs::write(ready.bundle(), &whole[..at]).expect("written");
        ready
            .refused(1, &["truncated", &format!("it has {at} of")])
            .await;
    }
    for at in [100, 0] {
        fs::write(ready.bundle(), &whole[..at]).expect("written");
        ready.refused(1, &["is no bundle"]).await;
    }
    fs::remove_file(ready.bundle()).expect("there");
    nix::unistd::mkfifo(&ready.bundle(), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    ready.refused(1, &["not a regular file"]).await;
    fs::remove_file(ready.bundle()).expect("there");
    // A byte in the archive of images, and one in the model.
    for (at, name) in [
        (total / 4, "images.tar"),
        (total - 1024 - 400, "models/tiny.gguf"),
    ] {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        fs::write(ready.bundle(), &damaged).expect("written");
        ready.refused(1, &["is damaged", name, "hash"]).await;
    }
    let mut longer = whole.clone();
    longer.extend([0; 512]);
    fs::write(ready.bundle(), &longer).expect("written");
    ready.refused(1, &["512 bytes follow its end"]).await;
    fs::write(
        ready.bundle(),
        pack(&[("manifest.json".to_owned(), b"[]".to_vec())]),
    )
    .expect("written");
    ready.refused(1, &["is no bundle", "docker load"]).await;
    fs::remove_file(ready.bundle()).expect("removed");
    ready.refused(1, &["bundle.tar", "No such file"]).await;
}

#[tokio::test]
async fn a_bundle_of_another_version_or_machine_says_which() {
    let Some(ready) = Ready::new().await else {
        return;
    };
    ready.save(&[]).expect(0);
    ready.forget(&ready.name).await;
    let mut parts = Parts::of(&ready.bundle());
    // Also where nothing else in it is as it is now.
    parts.manifest = json!({"format": 2, "podbay": "9.9.9", "all": "different"});
    parts.write(&ready.bundle());
    ready
        .refused(
            1,
            &[
                "format 2",
                "podbay 9.9.9",
                concat!("podbay ", env!("CARGO_PKG_VERSION")),
                "format 1",
            ],
        )
        .await;

    let mut parts = Parts::of(&ready.bundle());
    ready.import(&ready.name, b"first").await;
    ready.save(&["--force"]).expect(0);
    ready.forget(&ready.name).await;
    parts.manifest = Parts::of(&ready.bundle()).manifest;
    parts.manifest["architecture"] = json!("pdp11");
    parts.write(&ready.bundle());
    ready.refused(1, &["pdp11", std::env::consts::ARCH]).await;
}

#[tokio::test]
async fn a_bundle_cannot_name_what_its_manifest_does_not() {
    let Some(ready) = Ready::new().await else {
        return;
    };
    let other = format!("podbay-test-victim-{}:1", ready.env.key());
    ready.save(&[]).expect(0);
    ready.forget(&ready.name).await;
    let whole = fs::read(ready.bundle()).expect("saved");

    // One name more, another name, none.
    for names in [json!([ready.name, other]), json!([other]), json!(null)] {
        fs::write(ready.bundle(), &whole).expect("written");
        let mut parts = Parts::of(&ready.bundle());
        parts.change_list(|list| list[0]["RepoTags"] = names.clone());
        parts.write(&ready.bundle());
        ready.refused(1, &["is refused"]).await;
        assert_eq!(ready.id(&other).await, None, "{names}");
    }
    // Names where only some engines look for them go nowhere: the list is written anew.
    fs::write(ready.bundle(), &whole).expect("written");
    let mut parts = Parts::of(&ready.bundle());
    parts.change_list(|list| list[0]["repoTags"] = json!([ready.name, other]));
    let mut inner = entries(&parts.entries[0].1);
    inner.retain(|entry| entry.0 != "repositories");
    let (repository, tag) = other.split_once(':').expect("a tag");
    inner.push((
        "repositories".to_owned(),
        json!({ repository: { tag: "0".repeat(64) } })
            .to_string()
            .into_bytes(),
    ));
    parts.entries[0].1 = pack(&inner);
    parts.write(&ready.bundle());
    ready.load(&[]).expect(0);
    assert!(ready.id(&ready.name).await.is_some());
    assert_eq!(ready.id(&other).await, None);
    ready.forget(&ready.name).await;
    fs::remove_dir_all(ready.env.state().join("models")).expect("removed");

    // Files that no engine writes, and a model that wants to lie elsewhere.
    fs::write(ready.bundle(), &whole).expect("written");
    let mut parts = Parts::of(&ready.bundle());
    let mut inner = entries(&parts.entries[0].1);
    inner.push(("hooks/pre-load".to_owned(), vec![1]));
    parts.entries[0].1 = pack(&inner);
    parts.write(&ready.bundle());
    ready.refused(1, &["hooks/pre-load"]).await;
    fs::write(ready.bundle(), &whole).expect("written");
    let mut parts = Parts::of(&ready.bundle());
    parts.manifest["models"][0]["file"] = json!("../../evil.gguf");
    parts.write(&ready.bundle());
    ready.refused(1, &["../../evil.gguf"]).await;
    // A model that is none, and two by one name.
    for (content, words) in [
        (b"#!/bin/sh".to_vec(), "not a GGUF file"),
        (
            gguf()[..150].to_vec(),
            "it has 150 bytes, and its head tells of 200",
        ),
    ] {
        fs::write(ready.bundle(), &whole).expect("written");
        let mut parts = Parts::of(&ready.bundle());
        parts.manifest["models"][0]["size"] = json!(content.len());
        parts.manifest["models"][0]["sha256"] = json!(hash(&content));
        parts.entries[1].1 = content;
        parts.write(&ready.bundle());
        ready
            .refused(1, &["models/tiny.gguf", "is no model", words])
            .await;
        ready.load(&["--check"]).expect(1).says(&["is no model"]);
    }
    fs::write(ready.bundle(), &whole).expect("written");
    let mut parts = Parts::of(&ready.bundle());
    let mut second = parts.manifest["models"][0].clone();
    second["file"] = json!("other.gguf");
    parts.manifest["models"]
        .as_array_mut()
        .expect("a list")
        .push(second);
    parts.entries.push(("models/other.gguf".to_owned(), gguf()));
    parts.write(&ready.bundle());
    ready.refused(1, &["`tiny` names two models"]).await;
    // The name of a model that Podbay knows, with other bytes.
    fs::write(ready.bundle(), &whole).expect("written");
    let mut parts = Parts::of(&ready.bundle());
    let known = "SmolLM2-135M-Instruct.Q4_1.gguf";
    parts.manifest["models"][0]["file"] = json!(known);
    parts.entries[1].0 = format!("models/{known}");
    parts.write(&ready.bundle());
    ready.refused(1, &[known, "another"]).await;
    // Under another file name it is taken, for what it is: it cannot pass for the model that has
    // this name.
    fs::write(ready.bundle(), &whole).expect("written");
    let mut parts = Parts::of(&ready.bundle());
    parts.manifest["models"][0]["name"] = json!("smollm2-135m");
    parts.write(&ready.bundle());
    let text = ready.load(&[]).expect(0).text();
    assert!(
        text.contains("model tiny.gguf ") && !text.contains("smollm2-135m"),
        "{text}"
    );
    let info = run(&mut ready
        .env
        .podbay(&["models", "info", "smollm2-135m", "--json"]))
    .expect(0)
    .json();
    assert_eq!(info["state"], "absent");
}

#[tokio::test]
async fn what_is_here_under_the_same_name_is_not_replaced_unasked() {
    let Some(ready) = Ready::new().await else {
        return;
    };
    let first = ready.id(&ready.name).await.expect("it was imported");
    ready.save(&[]).expect(0);
    ready.forget(&ready.name).await;
    ready.import(&ready.name, b"second").await;
    let second = ready.id(&ready.name).await.expect("it was imported");
    assert_ne!(first, second);
    ready
        .load(&[])
        .expect(2)
        .says(&[&ready.name, "here already", "--force"]);
    assert_eq!(ready.id(&ready.name).await, Some(second.clone()));
    ready.load(&["--force"]).expect(0);
    assert_eq!(ready.id(&ready.name).await, Some(first));
    ready
        .engine
        .remove_image(&second, &CancellationToken::new())
        .await
        .expect("nobody needs it");

    let model = ready.env.state().join("models/tiny.gguf");
    fs::write(&model, "another").expect("written");
    ready
        .load(&[])
        .expect(2)
        .says(&["tiny.gguf", "here already"]);
    assert_eq!(fs::read(&model).expect("read"), b"another");
    ready.load(&["--force"]).expect(0);
    assert_eq!(fs::read(&model).expect("read"), gguf());
}

#[tokio::test]
async fn nothing_is_loaded_for_a_bundle_where_the_network_is_not_to_be_used() {
    let Some(ready) = Ready::new().await else {
        return;
    };
    let mut command = ready.env.podbay(&["images", "bundle", "save"]);
    command
        .arg(ready.bundle())
        .args(["--image", &ready.name, "--model", "smollm2-135m"])
        .env("PODBAY_OFFLINE", "true");
    run(&mut command)
        .expect(2)
        .says(&["smollm2-135m", "unset `offline`"]);
    assert!(!ready.bundle().exists());
    assert_eq!(ready.models(), Vec::<String>::new());
}
