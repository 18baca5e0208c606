//! Images for another kind of machine, by their own word or by their programs alone.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::json;
use sha2::Digest;

use super::test_box::TestBox;
use super::test_box::docker;
use crate::support::test_env::run;

/// An image of one program, `/bin/sh`.
struct Loaded(String);

impl Loaded {
    /// Makes one that says it is for a kind of machine, as the engine's own archives do: their
    /// recipes make none for another.
    fn new(env: &TestBox, architecture: &str, program: &[u8]) -> Self {
        let folder = env.beside(&format!("image-{architecture}"));
        fs::create_dir_all(folder.join("layer/bin")).expect("made");
        fs::write(folder.join("layer/bin/sh"), program).expect("written");
        fs::set_permissions(
            folder.join("layer/bin/sh"),
            PermissionsExt::from_mode(0o755),
        )
        .expect("ours");
        pack(&folder.join("layer"), "bin", &folder.join("layer.tar"));
        let digest =
            sha2::Sha256::digest(fs::read(folder.join("layer.tar")).expect("just written"));
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let tag = format!("podbay-test-{architecture}:{}", env.key());
        let layers = json!({"type": "layers", "diff_ids": [format!("sha256:{digest}")]});
        let config =
            json!({"architecture": architecture, "os": "linux", "config": {}, "rootfs": layers});
        let manifest =
            json!([{"Config": "config.json", "RepoTags": [tag], "Layers": ["layer.tar"]}]);
        fs::write(folder.join("config.json"), config.to_string()).expect("written");
        fs::write(folder.join("manifest.json"), manifest.to_string()).expect("written");
        let archive = env.beside(&format!("{architecture}.tar"));
        pack(&folder, ".", &archive);
        docker(&["load", "--input", archive.to_str().expect("is text")]);
        Self(tag)
    }
}

fn pack(folder: &Path, what: &str, archive: &Path) {
    let packed = Command::new("tar")
        .arg("-C")
        .arg(folder)
        .arg("-cf")
        .arg(archive)
        .arg(what)
        .status();
    assert!(packed.expect("the `tar` command").success());
}

impl Drop for Loaded {
    fn drop(&mut self) {
        docker(&["rmi", "--force", &self.0]);
    }
}

/// Returns the head of a program for another kind of machine than any that this runs on: of an
/// S/390.
fn foreign() -> Vec<u8> {
    let mut elf = vec![0; 120];
    elf[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 2, 1]);
    // Type 2, a program; machine 22; both with the larger byte first.
    elf[16..20].copy_from_slice(&[0, 2, 0, 22]);
    elf
}

#[test]
fn rel_23_an_image_for_another_machine_is_refused_by_its_name() {
    let Some(env) = TestBox::new() else { return };
    if Path::new("/proc/sys/fs/binfmt_misc/qemu-s390x").exists() {
        return;
    }
    let image = Loaded::new(&env, "s390x", &foreign());
    let words = [
        "made for another kind of machine, s390x",
        "hint: choose another image",
    ];
    run(&mut env.here(&["call", "--image", &image.0, "list_directory", "{}"]))
        .expect(5)
        .says(&words);
    run(&mut env.here(&["sh", "--image", &image.0]))
        .expect(125)
        .says(&words);
    run(&mut env.here(&[
        "up",
        "--image",
        &image.0,
        "--endpoint",
        "http://127.0.0.1:9/v1",
    ]))
    .expect(5)
    .says(&words);
    env.assert_no_container();
}

/// Such an image says that it is for this machine, and its programs are for another.
#[test]
fn rel_23_programs_for_another_machine_say_so_and_the_file_tools_work() {
    let Some(env) = TestBox::new() else { return };
    let image = Loaded::new(
        &env,
        docker(&["version", "--format", "{{.Server.Arch}}"]).trim(),
        &foreign(),
    );
    env.write("file.txt", "content\n");
    let call = |tool: &str, arguments: &str, code| {
        run(&mut env.here(&["call", "--image", &image.0, tool, arguments]))
            .expect(code)
            .text()
    };
    let told = call("bash", r#"{"command":"true"}"#, 1);
    assert!(
        told.contains("`/bin/sh` is not a program for this architecture"),
        "{told}"
    );
    assert!(call("read_file", r#"{"path":"file.txt"}"#, 0).contains("content"));
    run(&mut env.here(&["sh", "--image", &image.0, "--", "sh"]))
        .expect(125)
        .says(&["not a program for this architecture"]);
    env.assert_no_container();
}
