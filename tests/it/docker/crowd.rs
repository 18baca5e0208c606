//! Many controllers at once, names that are no text, and an image that has next to nothing.

use std::fs;
use std::os::unix::ffi::OsStrExt;

use super::test_box::TestBox;
use super::test_box::docker;
use crate::support::test_env::run;
use crate::support::test_env::start;

#[test]
fn sixteen_controllers_at_once_all_work_and_leave_nothing() {
    let Some(first) = TestBox::new() else { return };
    let mut boxes = vec![first];
    boxes.extend((1..16).filter_map(|_| TestBox::new()));
    let script = "echo $$ > mine; cat mine >/dev/null; echo here";
    let begun: Vec<_> = boxes
        .iter()
        .map(|env| start(&mut env.here(&["sh", "--memory", "64m", "--", "sh", "-c", script])))
        .collect();
    for controller in begun {
        assert_eq!(controller.wait().expect(0).text(), "here\n");
    }
    for env in &boxes {
        assert!(env.path("mine").exists());
        env.assert_no_container();
    }
}

#[test]
fn names_that_are_no_text_come_back_as_they_were() {
    let Some(env) = TestBox::new() else { return };
    let names: [&[u8]; 5] = [
        b"new\nline",
        b"esc\x1b[2Jape",
        b"not \xff\xfe text",
        b"back\\slash",
        "b\u{202e}idi".as_bytes(),
    ];
    for (n, name) in names.iter().enumerate() {
        fs::write(
            env.project().join(std::ffi::OsStr::from_bytes(name)),
            format!("content {n}\n"),
        )
        .expect("made");
    }
    let call = |tool: &str, arguments: serde_json::Value| {
        run(&mut env.here(&["call", tool, &arguments.to_string()]))
            .expect(0)
            .text()
    };
    let listed = call("list_directory", serde_json::json!({}));
    assert!(
        listed
            .chars()
            .all(|c| c == '\n' || !podbay::event::is_hidden(c)),
        "{listed:?}"
    );
    for tool in [
        ("list_directory", "{}"),
        ("glob", r#"{"pattern":"*"}"#),
        ("tree", "{}"),
    ] {
        let text = run(&mut env.here(&["call", tool.0, tool.1]))
            .expect(0)
            .text();
        let n_lines = text
            .lines()
            .filter(|line| line.contains("new\\x0aline") || line.contains("back\\\\slash"))
            .count();
        assert!(
            n_lines == 2 && !text.lines().any(|line| line.starts_with("line")),
            "{tool:?}: {text}"
        );
    }
    for (n, name) in names.iter().enumerate() {
        let path = podbay::wire::BytesPath::from_bytes(*name).to_text();
        let read = call("read_file", serde_json::json!({ "path": path }));
        assert!(read.contains(&format!("content {n}")), "{path:?}: {read}");
    }
    env.assert_no_container();
}

/// An image with nothing in it.
struct Empty(String);

impl Drop for Empty {
    fn drop(&mut self) {
        docker(&["rmi", "--force", &self.0]);
    }
}

#[test]
fn an_image_without_a_shell_is_of_use_and_says_what_it_lacks() {
    let Some(env) = TestBox::new() else { return };
    let archive = env.beside("empty.tar");
    // Two blocks of zeros are an archive of nothing; an image needs one file.
    fs::write(env.beside("only"), "").expect("written");
    let packed = std::process::Command::new("tar")
        .arg("-C")
        .arg(env.beside(""))
        .arg("-cf")
        .arg(&archive)
        .arg("only")
        .status();
    assert!(packed.expect("the `tar` command").success());
    let name = format!("podbay-test-empty:{}", env.key());
    docker(&["import", archive.to_str().expect("is text"), &name]);
    let image = Empty(name);
    env.write("file.txt", "content\n");
    let call = |tool: &str, arguments: &str, code: i32| {
        run(&mut env.here(&["call", "--image", &image.0, tool, arguments]))
            .expect(code)
            .text()
    };
    assert!(call("read_file", r#"{"path":"file.txt"}"#, 0).contains("content"));
    let told = call("bash", r#"{"command":"true"}"#, 1);
    assert!(told.contains("shell"), "{told}");
    // Attacks need no shell either.
    let report = run(env
        .here(&["doctor", "--attack", "--json"])
        .env("PODBAY_SANDBOX_IMAGE", &image.0))
    .expect(0)
    .json();
    assert_eq!(report["status"], "held", "{report:#}");
    env.assert_no_container();
}
