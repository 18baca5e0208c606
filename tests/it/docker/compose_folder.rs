//! The folder of compose.yaml lies apart from the project: who can write it is root on the host.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use serde_json::json;

use super::compose::Compose;
use super::compose::logged;
use super::test_box::docker;
use crate::support::test_env::Done;
use crate::support::test_env::run;

/// Looks as `setup` does, without compose, which takes seconds for it. `more` is mounted too, as
/// (source, place).
fn look(project: &Path, compose: &Path, more: &[(&Path, &str)]) -> Done {
    let bind = |source: &Path, to: &str| {
        format!(
            "--mount=type=bind,source={},target={to},readonly",
            source.display()
        )
    };
    let mut command = Command::new("docker");
    command.args([
        "run",
        "--rm",
        "--network=none",
        "--read-only",
        "--user=0:0",
        "--cap-drop=ALL",
        "--security-opt=no-new-privileges",
    ]);
    command.args([
        bind(project, "/setup/project"),
        bind(compose, "/setup/compose"),
    ]);
    command.args(more.iter().map(|(source, to)| bind(source, to)));
    run(command.args([
        "podbay/podbay",
        "guest",
        "prepare",
        "--apart",
        "/setup/project:/setup/compose",
    ]))
}

#[track_caller]
fn refused(done: Done, words: &[&str]) {
    done.expect(1).says(words).says(&["hint: "]);
}

#[test]
fn a_project_that_reaches_the_compose_folder_is_refused_before_anything_starts() {
    let Some(compose) = Compose::new() else {
        return;
    };
    // The attack: where a tool call reaches the folder, the next start mounts the whole machine. A
    // file that is not there yet is enough.
    let folder = compose.folder.to_str().expect("UTF-8");
    let planted = "services: {key: {volumes: ['/:/host']}}\n";
    let call = json!({"path": "compose.override.yaml", "content": planted}).to_string();
    run(&mut compose
        .env
        .podbay(&["call", "-C", folder, "write_file", &call]))
    .expect(0);
    let merged = run(&mut compose.plain(&["config"])).expect(0).text();
    assert!(
        merged.contains("/:/host") || merged.contains("target: /host"),
        "{merged}"
    );
    fs::remove_file(compose.folder.join("compose.override.yaml")).expect("removed");

    // So no tool call is ever made there: not one container but `setup` has run.
    fs::create_dir(compose.folder.join(".git")).expect("made");
    let around = compose
        .folder
        .parent()
        .expect("one")
        .to_str()
        .expect("UTF-8");
    for (project, git, how) in [
        (".", ".git", "is"),
        (around, "project-podbay/.git", "contains"),
    ] {
        let done = run(compose
            .compose(&["up", "-d", "workspace"])
            .env("PODBAY_PROJECT", project)
            .env("PODBAY_GIT", git));
        assert_ne!(done.code, 0, "{project}: {}", done.stderr);
        let log = logged(&compose.container("setup"));
        let how = format!(") {how} the folder of compose.yaml (");
        for words in [
            how.as_str(),
            "Nothing is started",
            "hint: the two must lie beside each other",
            "PODBAY_PROJECT",
            "docs/guides/compose.md",
        ] {
            assert!(
                log.contains(words),
                "`{words}` is missing: {log} {}",
                done.stderr
            );
        }
        let name = format!("label=com.docker.compose.project={}", compose.name);
        assert_eq!(
            docker(&["ps", "--quiet", "--filter", &name]).trim(),
            "",
            "nothing runs"
        );
        let guest = format!("{}_guest:/guest", compose.name);
        let look = [
            "run",
            "--rm",
            "--network",
            "none",
            "-v",
            &guest,
            "--entrypoint",
            "ls",
            "podbay/workspace",
            "-A",
            "/guest",
        ];
        assert_eq!(docker(&look), "", "without a guest no workspace starts");
        run(&mut compose.compose(&["rm", "--force", "--stop"])).expect(0);
    }
}

#[test]
fn a_project_beside_the_compose_folder_is_let_through_and_one_that_overlaps_it_in_any_way_is_not() {
    let Some(compose) = Compose::new() else {
        return;
    };
    let (env, folder, project) = (&compose.env, &compose.folder, compose.env.project());
    // What `podbay init` laid, and a fresh checkout.
    look(&project, folder, &[]).expect(0);
    look(&project, Path::new(env!("CARGO_MANIFEST_DIR")), &[]).expect(0);

    let here = "the folder of compose.yaml (";
    refused(look(folder, folder, &[]), &["is", here]);
    refused(look(&env.beside(""), folder, &[]), &["contains", here]);
    for part in ["docker", "images", "images/workspace", "own"] {
        fs::create_dir_all(folder.join(part)).expect("made");
        refused(look(&folder.join(part), folder, &[]), &["lies in", here]);
    }
    // By whatever path: a link that leads there, and something that is mounted further down.
    symlink(env.beside(""), env.beside("link")).expect("linked");
    refused(look(&env.beside("link"), folder, &[]), &["contains", here]);
    for name in ["sub", "docker"] {
        fs::create_dir_all(project.join(name)).expect("made");
    }
    refused(
        look(&project, folder, &[(folder, "/setup/project/sub")]),
        &["contains", here],
    );
    refused(
        look(&project, folder, &[(&env.beside(""), "/setup/project/sub")]),
        &["contains", here],
    );
    refused(
        look(
            &project,
            folder,
            &[(&folder.join("images"), "/setup/project/sub")],
        ),
        &["shares files with", here],
    );
    refused(
        look(
            &project,
            folder,
            &[(&project.join("docker"), "/setup/compose/docker")],
        ),
        &["shares files with", here],
    );
    look(&project, folder, &[(&env.home(), "/setup/project/sub")]).expect(0);
}

#[test]
fn what_compose_reads_under_a_name_in_the_project_is_refused_and_the_hint_mends_it() {
    let Some(compose) = Compose::new() else {
        return;
    };
    let (env, folder, project) = (&compose.env, &compose.folder, compose.env.project());
    let mended = |done: Done, name: &str| {
        let hint = done
            .stderr
            .lines()
            .find_map(|line| line.strip_prefix("hint: put a copy in its place, in that folder: "));
        let hint = hint
            .unwrap_or_else(|| panic!("{name}: {}", done.stderr))
            .to_owned();
        refused(
            done,
            &[&format!("`{name}` in the folder of compose.yaml is")],
        );
        assert_eq!(
            run(Command::new("sh").args(["-c", &hint]).current_dir(folder)).code,
            0,
            "{hint}"
        );
        look(&project, folder, &[]).expect(0);
    };
    env.write("environment", fs::read(folder.join(".env")).expect("laid"));
    env.write("override", "services: {}\n");
    for (name, target) in [
        (".env", "environment"),
        ("docker-compose.override.yml", "override"),
    ] {
        let _ = fs::remove_file(folder.join(name));
        symlink(Path::new("../project").join(target), folder.join(name)).expect("linked");
        mended(look(&project, folder, &[]), name);
    }
    let moved: PathBuf = project.join("images");
    fs::rename(folder.join("images"), &moved).expect("moved");
    symlink(&moved, folder.join("images")).expect("linked");
    mended(look(&project, folder, &[]), "images");
    fs::hard_link(
        folder.join("docker/seccomp.json"),
        project.join("seccomp.json"),
    )
    .expect("linked");
    mended(look(&project, folder, &[]), "docker/seccomp.json");

    // A folder that `setup` may not look into is no folder without links.
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).expect("ours");
    refused(
        look(&project, folder, &[]),
        &["Permission denied", "chmod go+rx ."],
    );
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).expect("ours");
    look(&project, folder, &[]).expect(0);
}

#[test]
fn there_is_no_default_project_and_what_init_writes_names_one_of_any_name() {
    let Some(compose) = Compose::new() else {
        return;
    };
    let odd = compose.env.beside("my \"shop\" #2 = größe");
    fs::create_dir(&odd).expect("made");
    crate::support::TestEnv::give(&odd);
    run(compose.env.podbay(&["init", "-C"]).arg(&odd)).expect(0);
    let folder = compose.env.beside("my \"shop\" #2 = größe-podbay");
    let read = || run(compose.plain(&["config"]).current_dir(&folder));
    let merged = read().expect(0).text();
    let merged = merged
        .replace("\\\"", "\"")
        .replace("\\xF6", "ö")
        .replace("\\xDF", "ß");
    assert!(merged.contains("my \"shop\" #2 = größe"), "{merged}");
    fs::write(folder.join(".env"), "PODBAY_UID=1000\n").expect("written");
    let done = read();
    assert!(
        done.code != 0 && done.stderr.contains("set it in .env"),
        "{}",
        done.stderr
    );
}
