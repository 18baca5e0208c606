//! `podbay init`: what it makes, and that it never touches what is there.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::support::TestEnv;
use crate::support::test_env::owner;
use crate::support::test_env::run;

#[test]
fn a_fresh_folder_gets_its_files_and_a_second_time_changes_nothing() {
    let env = TestEnv::new();
    let (uid, gid) = owner();
    let done = run(&mut env.here(&["init"])).expect(0).says(&["note: settings of a project may only make things tighter"]);
    assert_eq!(done.text(), "made .podbay/config.toml\nmade .env\n");
    for name in [".podbay", ".podbay/config.toml", ".env"] {
        let facts = fs::symlink_metadata(env.path(name)).expect("made");
        assert_eq!((facts.uid(), facts.gid()), (uid, gid), "{name}");
    }
    let dotenv = env.read(".env");
    assert!(dotenv.contains(&format!("\nPODBAY_UID={uid}\nPODBAY_GID={gid}\n")), "{dotenv}");
    let settings = env.read(".podbay/config.toml");
    let sets = |line: &&str| !line.is_empty() && !line.starts_with('#') && !line.starts_with('[');
    assert_eq!(settings.lines().find(sets), None, "every key is a comment");
    assert!(settings.contains("\n[sandbox]\n") && settings.contains("\n#memory = \"2GiB\"\n"), "{settings}");
    // It can be named as it is, and reads without a warning.
    let file = env.path(".podbay/config.toml");
    let done = run(env.podbay(&["sh", "--image", "Not A Name", "--config"]).arg(file)).expect(125);
    assert!(!done.stderr.contains("warning"), "{}", done.stderr);

    let again = run(&mut env.here(&["init"])).expect(0);
    assert_eq!(again.text(), "left .podbay/config.toml as it was\nleft .env as it was\nnothing to do\n");
    assert_eq!((env.read(".env"), env.read(".podbay/config.toml")), (dotenv, settings));
    // Nothing of it needs the state folder, so nothing made it.
    assert!(!env.state().exists());
}

#[test]
fn a_file_that_was_there_is_left_and_its_missing_lines_are_named() {
    let env = TestEnv::new();
    env.write(".env", "DATABASE_PASSWORD=sesame\nPODBAY_UID=77777\n");
    env.write(".podbay/config.toml", "mine");
    let done = run(&mut env.here(&["init"])).expect(0).says(&["PODBAY_UID in .env is not"]);
    let (_, gid) = owner();
    let expected = format!("left .podbay/config.toml as it was\nleft .env as it was\nfor compose, add to .env:\nPODBAY_GID={gid}\n");
    assert_eq!(done.text(), expected);
    assert_eq!(
        (env.read(".env").as_str(), env.read(".podbay/config.toml").as_str()),
        ("DATABASE_PASSWORD=sesame\nPODBAY_UID=77777\n", "mine")
    );
    assert!(!format!("{}{}", done.text(), done.stderr).contains("sesame"));
}

#[test]
fn a_folder_without_its_flag_is_refused_with_the_flag() {
    let env = TestEnv::new();
    let project = env.project();
    let project = project.to_str().expect("UTF-8");
    run(&mut env.podbay(&["init", project]))
        .expect(2)
        .says(&["stands where no folder is expected", &format!("podbay init -C '{project}'")]);
    assert_eq!(fs::read_dir(env.project()).expect("a folder").count(), 0);
    assert!(!run(&mut env.podbay(&["init", "--help"])).expect(0).text().contains("[DIR]"), "what is refused is not offered");
}

#[test]
fn no_link_in_the_project_is_followed() {
    let env = TestEnv::new();
    let elsewhere = env.beside("elsewhere");
    fs::create_dir(&elsewhere).expect("made");
    symlink(&elsewhere, env.path(".podbay")).expect("linked");
    run(&mut env.here(&["init"])).expect(2).says(&["`.podbay` in the project is a link or a file", "hint: move it away"]);
    fs::remove_file(env.path(".podbay")).expect("removed");
    env.write(".podbay", "a file");
    run(&mut env.here(&["init"])).expect(2).says(&["`.podbay` in the project is a link or a file"]);
    assert!(!env.path(".env").exists(), "refused before anything is made");
    fs::remove_file(env.path(".podbay")).expect("removed");

    // A link in a file's place is a taken name: even one that leads nowhere yet.
    symlink(elsewhere.join("planted"), env.path(".env")).expect("linked");
    let done = run(&mut env.here(&["init"])).expect(0).says(&[".env is no plain file"]);
    assert!(done.text().contains("left .env as it was\nfor compose, add to .env:\nPODBAY_UID="), "{}", done.text());
    assert_eq!(fs::read_dir(&elsewhere).expect("a folder").count(), 0, "nothing was made there");
}

#[test]
fn a_name_that_is_taken_by_anything_is_left_alone() {
    let env = TestEnv::new();
    fs::create_dir(env.path(".env")).expect("made");
    fs::create_dir(env.path(".podbay")).expect("made");
    nix::unistd::mkfifo(&env.path(".podbay/config.toml"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    let done = run(&mut env.here(&["init"])).expect(0);
    assert!(done.text().starts_with("left .podbay/config.toml as it was\nleft .env as it was\n"), "{}", done.text());
    fs::remove_dir(env.path(".env")).expect("removed");
    nix::unistd::mkfifo(&env.path(".env"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    run(&mut env.here(&["init"])).expect(0).says(&["no plain file"]);
}

#[test]
fn folders_that_cannot_be_projects_are_not_prepared() {
    let env = TestEnv::new();
    let refused = |folder: &Path, words: &str| {
        run(env.podbay(&["init", "-C"]).arg(folder)).expect(2).says(&[words]);
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
    assert!(spaced.join(".env").exists() && !done.text().contains('\u{1b}'), "{}", done.text());
}

#[test]
fn what_cannot_be_written_is_said() {
    let env = TestEnv::new();
    fs::set_permissions(env.project(), fs::Permissions::from_mode(0o555)).expect("ours");
    run(&mut env.by_owner(&env.here(&["init"]))).expect(1).says(&["cannot make the folder .podbay", "ermission denied"]);
}
