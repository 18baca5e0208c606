//! `podbay init`: what it makes, and that it never touches what is there.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::support::TestEnv;
use crate::support::test_env::is_root;
use crate::support::test_env::owner;
use crate::support::test_env::run;

/// What is laid for compose, in the order in which it is named.
const COMPOSE: [&str; 10] = [
    "compose.yaml",
    "docker/compose.gpu.yaml",
    "docker/passwd",
    "docker/seccomp.json",
    "docker/seccomp.workspace.json",
    "images/llama-server/Dockerfile",
    "images/podbay/Dockerfile",
    "images/workspace/Dockerfile",
    "images/workspace/apt-install",
    ".env",
];

#[test]
fn a_fresh_folder_gets_its_files_and_a_second_time_changes_nothing() {
    let env = TestEnv::new();
    let (uid, gid) = owner();
    let done = run(&mut env.here(&["init"]))
        .expect(0)
        .says(&["note: settings of a project may only make things tighter"]);
    let laid = COMPOSE.map(|name| format!("../project-podbay/{name}"));
    let made: Vec<&str> = [".podbay/config.toml"]
        .into_iter()
        .chain(laid.iter().map(String::as_str))
        .collect();
    assert_eq!(
        done.text(),
        made.iter()
            .map(|name| format!("made {name}\n"))
            .collect::<String>()
    );
    for name in [
        &made[..],
        &[
            ".podbay",
            "../project-podbay",
            "../project-podbay/images/workspace",
        ],
    ]
    .concat()
    {
        let facts = fs::symlink_metadata(env.path(name)).expect("made");
        assert_eq!((facts.uid(), facts.gid()), (uid, gid), "{name}");
    }
    // Beside the project; in it there is nothing that compose would read.
    assert_eq!(fs::read_dir(env.project()).expect("a folder").count(), 1);
    let dotenv = env.read("../project-podbay/.env");
    let named = fs::canonicalize(env.project())
        .expect("there")
        .display()
        .to_string();
    assert!(
        dotenv.contains(&format!("\nPODBAY_PROJECT={named}\n")),
        "{dotenv}"
    );
    assert!(
        dotenv.contains(&format!("\nPODBAY_UID={uid}\nPODBAY_GID={gid}\n")),
        "{dotenv}"
    );
    // What a checkout has is what is laid.
    for name in &COMPOSE[..COMPOSE.len() - 1] {
        let own = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).expect(name);
        assert!(
            fs::read(env.beside("project-podbay").join(name)).expect(name) == own,
            "{name}"
        );
    }
    let settings = env.read(".podbay/config.toml");
    let sets = |line: &&str| !line.is_empty() && !line.starts_with('#') && !line.starts_with('[');
    assert_eq!(settings.lines().find(sets), None, "every key is a comment");
    assert!(
        settings.contains("\n[sandbox]\n") && settings.contains("\n#memory = \"2GiB\"\n"),
        "{settings}"
    );
    // It can be named as it is, and reads without a warning.
    let file = env.path(".podbay/config.toml");
    let done = run(env
        .podbay(&["sh", "--image", "Not A Name", "--config"])
        .arg(file))
    .expect(125);
    assert!(!done.stderr.contains("warning"), "{}", done.stderr);

    let again = run(&mut env.here(&["init"])).expect(0);
    let left: String = made
        .iter()
        .map(|name| format!("left {name} as it was\n"))
        .collect();
    assert_eq!(again.text(), left + "nothing to do\n");
    assert_eq!(
        (
            env.read("../project-podbay/.env"),
            env.read(".podbay/config.toml")
        ),
        (dotenv, settings)
    );
    // Nothing of it needs the state folder, so nothing made it.
    assert!(!env.state().exists());
}

#[test]
fn a_file_that_was_there_is_left_and_its_missing_lines_are_named() {
    let env = TestEnv::new();
    let compose = env.beside("project-podbay");
    fs::create_dir(&compose).expect("made");
    for (name, content) in [
        ("compose.yaml", "mine too"),
        (
            ".env",
            "DATABASE_PASSWORD=sesame\nPODBAY_UID=77777\nPODBAY_PROJECT=../home\n",
        ),
    ] {
        fs::write(compose.join(name), content).expect("written");
    }
    env.write(".env", "PODBAY_UID=5\n");
    env.write(".podbay/config.toml", "mine");
    let words = [
        "PODBAY_UID in ../project-podbay/.env is not",
        "PODBAY_PROJECT in ../project-podbay/.env names another folder",
    ];
    let done = run(&mut env.here(&["init"])).expect(0).says(&words);
    let (_, gid) = owner();
    let ends = format!(
        "left ../project-podbay/.env as it was\nfor compose, add to ../project-podbay/.env:\nPODBAY_GID={gid}\n"
    );
    assert!(
        done.text().ends_with(&ends)
            && done
                .text()
                .contains("left ../project-podbay/compose.yaml as it was\n"),
        "{}",
        done.text()
    );
    assert_eq!(
        (
            env.read(".env").as_str(),
            env.read(".podbay/config.toml").as_str()
        ),
        ("PODBAY_UID=5\n", "mine")
    );
    assert_eq!(env.read("../project-podbay/compose.yaml"), "mine too");
    assert!(!format!("{}{}", done.text(), done.stderr).contains("sesame"));
    // A relative path starts at compose.yaml, and any path that leads to the project is right.
    let own = format!(
        "PODBAY_UID={}\nPODBAY_GID={gid}\nPODBAY_PROJECT=../project\n",
        owner().0
    );
    fs::write(compose.join(".env"), own).expect("written");
    let done = run(&mut env.here(&["init"])).expect(0);
    assert!(
        done.text().ends_with("nothing to do\n") && !done.stderr.contains("PODBAY_"),
        "{}{}",
        done.text(),
        done.stderr
    );
}

#[test]
fn a_compose_folder_that_somebody_else_made_is_left_alone_and_said() {
    let env = TestEnv::new();
    let compose = env.beside("project-podbay");
    let refused = |words: &[&str]| {
        let done = run(&mut env.here(&["init"]))
            .expect(0)
            .says(&["there is no whole folder for compose beside the project"])
            .says(words);
        assert!(!done.text().contains("project-podbay"), "{}", done.text());
    };
    // A name that is taken: by a link, which would lead elsewhere, and by what is no folder of
    // compose's.
    symlink(env.home(), &compose).expect("linked");
    refused(&["`../project-podbay` is a link or a file", "move it away"]);
    fs::remove_file(&compose).expect("removed");
    fs::create_dir(&compose).expect("made");
    refused(&["has no compose.yaml"]);
    assert_eq!(
        fs::read_dir(env.home())
            .expect("a folder")
            .chain(fs::read_dir(&compose).expect("a folder"))
            .count(),
        0
    );
    // Another user's: they could write what compose starts as root.
    if is_root("a folder for compose that belongs to another user") {
        fs::write(compose.join("compose.yaml"), "services: {}\n").expect("written");
        std::os::unix::fs::chown(&compose, Some(owner().0 + 1), None).expect("root");
        refused(&[&format!(
            "belongs to uid {}, who could write there what compose starts as root",
            owner().0 + 1
        )]);
        assert_eq!(fs::read_dir(&compose).expect("a folder").count(), 1);
    }
}

#[test]
fn a_folder_without_its_flag_is_refused_with_the_flag() {
    let env = TestEnv::new();
    let project = env.project();
    let project = project.to_str().expect("UTF-8");
    run(&mut env.podbay(&["init", project])).expect(2).says(&[
        "stands where no folder is expected",
        &format!("podbay init -C '{project}'"),
    ]);
    assert_eq!(fs::read_dir(env.project()).expect("a folder").count(), 0);
    assert!(
        !run(&mut env.podbay(&["init", "--help"]))
            .expect(0)
            .text()
            .contains("[DIR]"),
        "what is refused is not offered"
    );
}

#[test]
fn no_link_in_the_project_is_followed() {
    let env = TestEnv::new();
    let elsewhere = env.beside("elsewhere");
    fs::create_dir(&elsewhere).expect("made");
    symlink(&elsewhere, env.path(".podbay")).expect("linked");
    run(&mut env.here(&["init"]))
        .expect(2)
        .says(&["`.podbay` is a link or a file", "hint: move it away"]);
    fs::remove_file(env.path(".podbay")).expect("removed");
    env.write(".podbay", "a file");
    run(&mut env.here(&["init"]))
        .expect(2)
        .says(&["`.podbay` is a link or a file"]);
    assert!(
        !env.beside("project-podbay").exists(),
        "refused before anything is made"
    );
    fs::remove_file(env.path(".podbay")).expect("removed");

    // A link in a file's place is a taken name: even one that leads nowhere yet.
    run(&mut env.here(&["init"])).expect(0);
    let dotenv = env.beside("project-podbay/.env");
    fs::remove_file(&dotenv).expect("removed");
    symlink(elsewhere.join("planted"), &dotenv).expect("linked");
    let done = run(&mut env.here(&["init"]))
        .expect(0)
        .says(&["../project-podbay/.env is not a regular file"]);
    let words = "left ../project-podbay/.env as it was\nfor compose, add to ../project-podbay/.env:\nPODBAY_PROJECT=";
    assert!(done.text().contains(words), "{}", done.text());
    assert_eq!(
        fs::read_dir(&elsewhere).expect("a folder").count(),
        0,
        "nothing was made there"
    );
}

#[test]
fn a_name_that_is_taken_by_anything_is_left_alone() {
    let env = TestEnv::new();
    let compose = env.beside("project-podbay");
    for folder in [
        env.path(".podbay"),
        compose.join("compose.yaml"),
        compose.join(".env"),
    ] {
        fs::create_dir_all(folder).expect("made");
    }
    nix::unistd::mkfifo(
        &env.path(".podbay/config.toml"),
        nix::sys::stat::Mode::S_IRWXU,
    )
    .expect("a pipe");
    let done = run(&mut env.here(&["init"])).expect(0);
    for name in [
        ".podbay/config.toml",
        "../project-podbay/compose.yaml",
        "../project-podbay/.env",
    ] {
        assert!(
            done.text().contains(&format!("left {name} as it was\n")),
            "{}",
            done.text()
        );
    }
    fs::remove_dir(compose.join(".env")).expect("removed");
    nix::unistd::mkfifo(&compose.join(".env"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    run(&mut env.here(&["init"]))
        .expect(0)
        .says(&["not a regular file"]);
}

#[test]
fn folders_that_cannot_be_projects_are_not_prepared() {
    let env = TestEnv::new();
    let refused = |folder: &Path, words: &str| {
        run(env.podbay(&["init", "-C"]).arg(folder))
            .expect(2)
            .says(&[words]);
    };
    refused(Path::new("/"), "root of the file system");
    refused(&env.home(), "home folder");
    refused(Path::new("/etc"), "belongs to the system");
    refused(&env.path("absent"), "does not exist");
    assert_eq!(fs::read_dir(env.home()).expect("a folder").count(), 0);
    let odd = env.beside("odd").join(OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir_all(&odd).expect("made");
    refused(&odd, "not UTF-8");
    // Odd, but a name.
    let spaced = env.beside("a b\n\u{1b}[31m'$(touch x)");
    fs::create_dir(&spaced).expect("made");
    let done = run(env.podbay(&["init", "-C"]).arg(&spaced)).expect(0);
    assert!(!done.text().contains('\u{1b}'), "{}", done.text());
    let dotenv = fs::read_to_string(env.beside("a b\n\u{1b}[31m'$(touch x)-podbay").join(".env"))
        .expect("made");
    assert!(
        dotenv.contains("\n#PODBAY_PROJECT=\n") && done.stderr.contains("a `.env` cannot carry"),
        "{dotenv} {}",
        done.stderr
    );
}

#[test]
fn what_cannot_be_written_is_said() {
    let env = TestEnv::new();
    fs::set_permissions(env.project(), fs::Permissions::from_mode(0o555)).expect("ours");
    run(&mut env.by_owner(&env.here(&["init"])))
        .expect(1)
        .says(&["cannot make the folder .podbay", "ermission denied"]);
    // Beside the project is somebody else's place: the settings are made all the same.
    fs::set_permissions(env.project(), fs::Permissions::from_mode(0o755)).expect("ours");
    fs::set_permissions(
        env.project().parent().expect("one"),
        fs::Permissions::from_mode(0o555),
    )
    .expect("ours");
    let done = run(&mut env.by_owner(&env.here(&["init"]))).expect(0);
    fs::set_permissions(
        env.project().parent().expect("one"),
        fs::Permissions::from_mode(0o755),
    )
    .expect("ours");
    let done = done.says(&[
        "no whole folder for compose",
        "cannot make the folder ../project-podbay: Permission denied",
    ]);
    assert_eq!(done.text(), "made .podbay/config.toml\n");
}
