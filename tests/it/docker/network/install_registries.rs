//! Package managers of whole languages, each with a registry of its own that a test serves: what
//! they fetch in an install phase, a session builds with without a network.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use sha2::Digest;
use sha2::Sha256;

use super::super::test_box::TestBox;
use super::super::test_box::build_image;
use super::install::WHEEL;
use super::install::wheel;
use super::outside::Files;
use super::outside::Outside;
use super::outside::Server;
use crate::support::test_env::start;

/// For a package manager that does much with a processor that others use too.
const PATIENCE: Duration = Duration::from_mins(5);

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Returns a gzipped archive of files.
fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let compressed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut archive = tar::Builder::new(compressed);
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(content.len() as u64);
        archive
            .append_data(&mut header, name, content.as_bytes())
            .expect("packed");
    }
    archive
        .into_inner()
        .and_then(flate2::write::GzEncoder::finish)
        .expect("compressed")
}

/// Has an installation fill the cache, and a session without a network use it.
#[track_caller]
fn installs_and_uses(env: &TestBox, image: &str, index: &Server, rule: &str, command: &str) {
    if image.starts_with("podbay/") {
        build_image(env, image).expect(0);
    }
    let all = ["install", "--image", image, "--allow-host", rule];
    let installed = start(&mut env.here(&all)).wait_within(PATIENCE);
    assert_eq!(
        installed.code,
        0,
        "{} {}",
        installed.text(),
        installed.stderr
    );
    let n_requests = index.requests().len();
    let used = ["sh", "--image", image, "--", "sh", "-c", command];
    let used = start(&mut env.here(&used)).wait_within(PATIENCE);
    assert_eq!(used.text(), "from a registry\n", "{}", used.stderr);
    assert!(n_requests > 0 && index.requests().len() == n_requests);
}

/// An image of the test's own, on one of ours.
struct OwnImage(String);

impl OwnImage {
    /// `files`: name and content beside the `Dockerfile`.
    fn build(env: &TestBox, base: &str, lines: &str, files: &[(&str, &[u8])]) -> Self {
        build_image(env, base).expect(0);
        let folder = env.beside("image");
        std::fs::create_dir_all(&folder).expect("made");
        for (name, content) in files {
            let path = folder.join(name);
            std::fs::write(&path, content).expect("written");
            let mode = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(&path, mode).expect("set");
        }
        let dockerfile = format!("FROM {base}\n{lines}\n");
        std::fs::write(folder.join("Dockerfile"), dockerfile).expect("written");
        let name = format!("podbay-test-install-{}", env.key());
        let built = Command::new("docker")
            .args(["build", "--quiet", "--tag", &name])
            .arg(&folder)
            .output()
            .expect("the `docker` command");
        let problem = String::from_utf8_lossy(&built.stderr);
        assert!(built.status.success(), "{problem}");
        Self(name)
    }
}

impl Drop for OwnImage {
    fn drop(&mut self) {
        drop(Command::new("docker").args(["rmi", &self.0]).output());
    }
}

#[test]
#[ignore = "just soak: builds an image with cargo from Debian's archive"]
fn cargo_builds_without_a_network_what_an_install_phase_fetched() {
    let Some(env) = TestBox::new() else { return };
    let outside = Outside::new();
    outside.tell(&env, "");
    let package = archive(&[
        (
            "greeting-1.0.0/Cargo.toml",
            "[package]\nname = \"greeting\"\nversion = \"1.0.0\"\nedition = \"2021\"\n",
        ),
        (
            "greeting-1.0.0/src/lib.rs",
            "pub const WORDS: &str = \"from a registry\";\n",
        ),
    ]);
    let hash = hex(&package);
    let entry = format!(
        "{{\"name\":\"greeting\",\"vers\":\"1.0.0\",\"deps\":[],\"cksum\":\"{hash}\",\"features\":{{}},\"yanked\":false}}\n"
    );
    // Its port is known once it serves, and `config.json` names that: a host of its own.
    let crates = outside.serve(Files::from([(
        "/greeting/1.0.0/download".to_owned(),
        package,
    )]));
    let config = format!("{{\"dl\":\"http://crates.example:{}\"}}", crates.port);
    let index = outside.serve(Files::from([
        ("/index/config.json".to_owned(), config.into_bytes()),
        ("/index/gr/ee/greeting".to_owned(), entry.into_bytes()),
    ]));
    env.write(
        ".cargo/config.toml",
        format!(
            "[registries.local]\nindex = \"sparse+http://crates.example:{}/index/\"\n",
            index.port
        ),
    );
    env.write(
        "Cargo.toml",
        "[package]\nname = \"a\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\ngreeting = { version = \"1\", registry = \"local\" }\n",
    );
    env.write(
        "src/main.rs",
        "fn main() { println!(\"{}\", greeting::WORDS) }\n",
    );
    let rule = format!("crates.example:{},{} private", index.port, crates.port);
    installs_and_uses(&env, "podbay/rust", &index, &rule, "cargo run --quiet");
}

#[test]
#[ignore = "just soak: builds an image with npm from Debian's archive"]
fn node_uses_without_a_network_what_an_install_phase_got_by_npm() {
    let Some(env) = TestBox::new() else { return };
    let outside = Outside::new();
    outside.tell(&env, "");
    let package = archive(&[
        (
            "package/package.json",
            "{\"name\": \"greeting\", \"version\": \"1.0.0\"}",
        ),
        ("package/index.js", "module.exports = 'from a registry';\n"),
    ]);
    let index = outside.serve(Files::from([("/greeting.tgz".to_owned(), package)]));
    let lock = format!(
        "{{\"name\": \"a\", \"version\": \"1.0.0\", \"lockfileVersion\": 3, \"requires\": true, \"packages\": {{\
         \"\": {{\"name\": \"a\", \"version\": \"1.0.0\", \"dependencies\": {{\"greeting\": \"1.0.0\"}}}},\
         \"node_modules/greeting\": {{\"version\": \"1.0.0\", \"resolved\": \"http://npm.example:{}/greeting.tgz\"}}}}}}",
        index.port
    );
    env.write(
        "package.json",
        "{\"name\": \"a\", \"version\": \"1.0.0\", \"dependencies\": {\"greeting\": \"1.0.0\"}}",
    );
    env.write("package-lock.json", lock);
    let rule = format!("npm.example:{} private", index.port);
    let command = "node -e \"console.log(require('greeting'))\"";
    installs_and_uses(&env, "podbay/node", &index, &rule, command);
}

/// Returns the program of uv, which Debian does not have: from the wheel that this machine's pip
/// gets.
fn uv(env: &TestBox) -> Vec<u8> {
    use std::io::Read;
    let folder = env.beside("wheels");
    let got = Command::new("python3")
        .args(["-m", "pip", "download", "--quiet", "--no-deps", "--dest"])
        .arg(&folder)
        .arg("uv")
        .output()
        .expect("the `python3` command");
    let problem = String::from_utf8_lossy(&got.stderr);
    assert!(got.status.success(), "{problem}");
    let mut wheels = std::fs::read_dir(&folder).expect("a folder");
    let wheel = wheels.next().expect("a wheel").expect("readable").path();
    let file = std::fs::File::open(wheel).expect("readable");
    let mut zip = zip::ZipArchive::new(file).expect("a zip");
    let name = {
        let mut names = zip.file_names().flatten();
        let found = names.find(|name| name.ends_with("scripts/uv"));
        found.expect("a program").into_owned()
    };
    let mut program = Vec::new();
    let mut entry = zip.by_name(&name).expect("it is there");
    entry.read_to_end(&mut program).expect("readable");
    program
}

#[test]
#[ignore = "just soak: takes uv from PyPI, by this machine's own pip"]
fn uv_syncs_in_an_install_phase_what_programs_use_without_a_network() {
    let Some(env) = TestBox::new() else { return };
    let outside = Outside::new();
    outside.tell(&env, "");
    let wheel = wheel();
    let hash = hex(&wheel);
    let index = outside.serve(Files::from([(format!("/{WHEEL}"), wheel)]));
    let address = format!("http://index.example:{}", index.port);
    env.write(
        "pyproject.toml",
        format!(
            "[project]\nname = \"a\"\nversion = \"0.1.0\"\nrequires-python = \">=3.11\"\n\
             dependencies = [\"greeting\"]\n[[tool.uv.index]]\nurl = \"{address}/simple\"\ndefault = true\n"
        ),
    );
    env.write(
        "uv.lock",
        format!(
            "version = 1\nrevision = 3\nrequires-python = \">=3.11\"\n\n\
             [[package]]\nname = \"a\"\nversion = \"0.1.0\"\nsource = {{ virtual = \".\" }}\n\
             dependencies = [{{ name = \"greeting\" }}]\n\n\
             [package.metadata]\nrequires-dist = [{{ name = \"greeting\" }}]\n\n\
             [[package]]\nname = \"greeting\"\nversion = \"1.0\"\nsource = {{ registry = \"{address}/simple\" }}\n\
             wheels = [{{ url = \"{address}/{WHEEL}\", hash = \"sha256:{hash}\" }}]\n"
        ),
    );
    let copy = "COPY uv /usr/local/bin/uv";
    let image = OwnImage::build(&env, "podbay/python", copy, &[("uv", &uv(&env))]);
    let rule = format!("index.example:{} private", index.port);
    let words = "uv run python -c 'import greeting; print(greeting.WORDS.replace(\"wheel\", \"registry\"))'";
    installs_and_uses(&env, &image.0, &index, &rule, words);
}
