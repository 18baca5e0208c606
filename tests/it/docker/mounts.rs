//! What the sandbox sees of the project and of its image, and what it cannot get at.

use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use super::test_box::TestBox;
use super::test_box::docker;
use crate::support::TestEnv;
use crate::support::test_env::is_root;
use crate::support::test_env::owner;
use crate::support::test_env::run;
use crate::support::test_env::start;

#[test]
fn git_cannot_be_written_or_moved_and_the_rest_can() {
    let Some(env) = TestBox::new() else { return };
    env.write(".git/HEAD", "ref: refs/heads/main\n");
    env.write(".git/hooks/sample", "");
    env.write("normal/file", "old\n");
    let script = r"
        echo x > .git/hooks/pre-commit; echo x >> .git/HEAD; rm -rf .git; rmdir .git/hooks
        mv .git away; mkdir -p other; mv .git other/
        cat .git/HEAD
        echo new > normal/file && mv normal moved && echo done
    ";
    let done = run(&mut env.here(&["sh", "--", "sh", "-c", script])).expect(0);
    assert_eq!(done.text(), "ref: refs/heads/main\ndone\n");
    assert!(
        done.stderr.contains("Read-only file system")
            && done.stderr.contains("Device or resource busy"),
        "{}",
        done.stderr
    );
    assert_eq!(env.read(".git/HEAD"), "ref: refs/heads/main\n");
    assert!(env.path(".git/hooks/sample").exists() && !env.path(".git/hooks/pre-commit").exists());
    assert_eq!(env.read("moved/file"), "new\n");

    // A worktree has a file in its place.
    let env = TestBox::new().expect("as before");
    env.write(".git", "gitdir: /somewhere\n");
    let script = "echo gitdir: /evil > .git; mv .git away; rm .git; ls";
    let done = run(&mut env.here(&["sh", "--", "sh", "-c", script])).expect(0);
    assert_eq!(
        (done.text().as_str(), env.read(".git").as_str()),
        ("", "gitdir: /somewhere\n")
    );
}

/// An image made for one test.
pub(super) struct Image(pub(super) String);

impl Image {
    pub(super) fn new(env: &TestBox, lines: &str) -> Self {
        let name = format!("podbay-test:{}", env.key());
        let folder = env.beside("image");
        std::fs::create_dir(&folder).expect("made");
        std::fs::write(
            folder.join("Dockerfile"),
            format!("FROM podbay/workspace\n{lines}\n"),
        )
        .expect("written");
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
}

impl Drop for Image {
    fn drop(&mut self) {
        docker(&["rmi", "--force", &self.0]);
    }
}

#[test]
fn what_an_image_sets_for_its_tools_reaches_commands_and_what_loads_code_does_not() {
    let Some(env) = TestBox::new() else { return };
    let lines = "ENV JAVA_HOME=/opt/java BASH_ENV=/evil.sh LD_LIBRARY_PATH=/evil GCONV_PATH=/evil PROMPT_COMMAND=evil\nENV PATH=/opt/java/bin:/usr/bin:/bin";
    let image = Image::new(&env, lines);
    let done = run(&mut env.here(&[
        "sh",
        "--image",
        &image.0,
        "--",
        "sh",
        "-c",
        "echo $JAVA_HOME $PATH; env | grep -c evil",
    ]))
    .expect(1);
    assert_eq!(
        done.text(),
        "/opt/java /opt/java/bin:/usr/bin:/bin\n0\n",
        "{}",
        done.stderr
    );
}

#[test]
fn what_an_image_would_run_from_the_project_is_not_passed_on_and_that_is_said() {
    let Some(env) = TestBox::new() else { return };
    let lines = "ENV PATH=/workspace/bin:bin:.:/usr/bin:/bin PERL5OPT=-Mevil PERL5LIB=/workspace PYTHONPATH=/workspace:/opt/python \
                 LD_PRELOAD=/workspace/x.so BASH_ENV=/workspace/evil NODE_OPTIONS=--require=/workspace/x.js KEPT=1";
    let image = Image::new(&env, lines);
    // What the project would have run in the place of a command that only reads.
    for name in ["bin/ls", "ls", "evil"] {
        env.write(name, "#!/bin/sh\ntouch /workspace/pwned\n");
        let path = env.path(name);
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .expect("ours");
    }
    let script = "ls >/dev/null; perl -e 1; env | grep -E '^(PATH|PERL|PYTHON|LD_|BASH_ENV|NODE|KEPT)' | sort";
    let bash = serde_json::json!({ "command": script }).to_string();
    let done = run(&mut env.here(&["call", "--image", &image.0, "bash", &bash])).expect(0);
    assert_eq!(
        done.text(),
        "KEPT=1\nPATH=/usr/bin:/bin\nPYTHONDONTWRITEBYTECODE=1\nPYTHONPATH=/opt/python\n",
        "{}",
        done.stderr
    );
    assert!(!env.path("pwned").exists());
    done.says(&["commands do not get all that the image sets: BASH_ENV, LD_PRELOAD, NODE_OPTIONS, PATH, PERL5LIB, PERL5OPT, PYTHONPATH"]);
    // The control: the engine alone would have run it.
    let mount = format!("{}:/workspace", env.project().display());
    docker(&[
        "run",
        "--rm",
        "--network",
        "none",
        "--volume",
        &mount,
        "--workdir",
        "/workspace",
        &image.0,
        "sh",
        "-c",
        "ls",
    ]);
    assert!(env.path("pwned").exists());
    env.assert_no_container();
}

#[test]
fn what_else_an_image_says_of_how_it_starts_does_not_count() {
    let Some(env) = TestBox::new() else { return };
    let lines = "WORKDIR /workspace/made\nHEALTHCHECK --interval=1s CMD touch /workspace/healthy\nENTRYPOINT [\"touch\", \"/workspace/entered\"]\n\
                 CMD [\"/workspace/command\"]\nUSER root\nEXPOSE 80\nSTOPSIGNAL SIGKILL\nONBUILD RUN false\nSHELL [\"/bin/false\"]";
    let image = Image::new(&env, lines);
    let done = run(&mut env.here(&[
        "sh",
        "--image",
        &image.0,
        "--",
        "sh",
        "-c",
        "sleep 2.5; pwd; id -u",
    ]))
    .expect(0);
    assert_eq!(
        done.text(),
        format!("/workspace\n{}\n", owner().0),
        "{}",
        done.stderr
    );
    assert_eq!(
        std::fs::read_dir(env.project()).expect("a folder").count(),
        0
    );
    // The control: each of them would have made something.
    let mount = format!("{}:/workspace", env.project().display());
    docker(&[
        "run",
        "--rm",
        "--network",
        "none",
        "--volume",
        &mount,
        &image.0,
    ]);
    assert!(env.path("made").is_dir() && env.path("entered").exists());
    env.assert_no_container();
}

#[test]
fn volumes_of_an_image_are_covered() {
    let Some(env) = TestBox::new() else { return };
    let image = Image::new(
        &env,
        "ENV LD_PRELOAD=/evil.so\nVOLUME /data /srv/more\nENTRYPOINT [\"/bin/false\"]\nUSER 65534",
    );
    let script = "stat -f -c %T /data /srv/more; touch /data/x /srv/more/x && echo written; id -u; echo \"[$LD_PRELOAD]\"";
    let done = run(&mut env.here(&["sh", "--image", &image.0, "--", "sh", "-c", script])).expect(0);
    assert_eq!(
        done.text(),
        format!("tmpfs\ntmpfs\nwritten\n{}\n[]\n", owner().0),
        "{}",
        done.stderr
    );
    env.assert_no_container();
}

#[test]
fn an_image_that_would_make_folders_in_the_project_is_refused() {
    let Some(env) = TestBox::new() else { return };
    let image = Image::new(&env, "VOLUME /workspace/data");
    run(&mut env.here(&["call", "--image", &image.0, "list_directory", "{}"]))
        .expect(5)
        .says(&["a volume at /workspace/data", "hint:"]);
    assert_eq!(
        std::fs::read_dir(env.project()).expect("a folder").count(),
        0
    );
    env.assert_no_container();
}

#[test]
fn a_link_in_the_project_leads_nowhere_outside() {
    let Some(env) = TestBox::new() else { return };
    let canary = env.beside("canary");
    std::fs::write(&canary, "host secret\n").expect("written");
    std::os::unix::fs::symlink(&canary, env.path("link")).expect("linked");
    std::os::unix::fs::symlink(Path::new(".."), env.path("up")).expect("linked");
    let link = run(&mut env.here(&["call", "read_file", r#"{"path":"link"}"#]))
        .expect(1)
        .text();
    let up = run(&mut env.here(&["call", "read_file", r#"{"path":"up/canary"}"#]))
        .expect(1)
        .text();
    assert!(
        !format!("{link}{up}").contains("host secret") && up.contains("outside"),
        "{link}{up}"
    );
    let text = run(&mut env.here(&[
        "sh",
        "--",
        "sh",
        "-c",
        "cat link up/canary 2>&1; ls ../workspace",
    ]))
    .expect(0)
    .text();
    assert!(!text.contains("host secret"), "{text}");
}

/// Another file system in a folder of the project.
pub(super) struct Mounted(PathBuf);

impl Mounted {
    pub(super) fn over(path: PathBuf) -> Self {
        let done = Command::new("mount")
            .args(["-t", "tmpfs", "none"])
            .arg(&path)
            .status();
        assert!(
            done.expect("the `mount` command").success(),
            "{}",
            path.display()
        );
        std::fs::write(path.join("secret"), "of another disk\n").expect("written");
        Self(path)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
fn a_mount_inside_the_project_stays_out() {
    let Some(env) = TestBox::new() else { return };
    if !is_root("a mount in the project") {
        return;
    }
    env.write("disk/beneath", "of the project\n");
    env.write("later/beneath", "of the project\n");
    let mounted = Mounted::over(env.path("disk"));
    let script = "touch begun; while ! test -e go; do sleep 0.05; done; cat later/*; ls -A disk; echo x > disk/made; rm -rf disk; mv disk away; ls -d disk";
    let begun = start(&mut env.here(&["sh", "--", "sh", "-c", script]));
    env.wait_for("begun");
    // One that comes while the sandbox runs does not come in either.
    let later = Mounted::over(env.path("later"));
    env.write("go", "");
    let text = begun.wait().expect(0).text();
    assert_eq!(text, "of the project\ndisk\n");
    // It is as it was, and still there: with the folder below it the kernel would have taken it
    // away.
    assert_eq!(env.read("disk/secret"), "of another disk\n");
    run(&mut env.here(&["call", "delete_file", r#"{"path":"disk","recursive":true}"#])).expect(1);
    assert_eq!(env.read("disk/secret"), "of another disk\n");
    drop((mounted, later));
    assert_eq!(env.read("disk/beneath"), "of the project\n");
    env.assert_no_container();
}

#[test]
fn odd_names_of_projects_are_mounted_as_they_are() {
    let Some(env) = TestBox::new() else { return };
    let names = [
        "a:b",
        "a:b:ro",
        "two words",
        " ends ",
        "ünïcödé",
        "new\nline",
        "tab\tand\\back",
        "x,source=etc",
        "$(touch made) `x`",
        "-C",
        "\"quoted\" 'twice'",
        "%s",
        "...",
        "*",
        "~",
    ];
    let parent = env.beside("odd");
    std::fs::create_dir(&parent).expect("made");
    for name in names {
        let project = parent.join(name);
        std::fs::create_dir(&project).expect("made");
        std::fs::write(project.join("name"), name).expect("written");
        TestEnv::give(&project);
        let mut command = env.podbay(&["sh", "-C"]);
        let done = run(command.arg(&project).args([
            "--",
            "sh",
            "-c",
            "cat name; echo here > answer; ls -a",
        ]))
        .expect(0);
        assert_eq!(
            done.text(),
            format!("{name}.\n..\nanswer\nname\n"),
            "{name:?}: {}",
            done.stderr
        );
        assert_eq!(
            std::fs::read_to_string(project.join("answer")).expect("written"),
            "here\n",
            "{name:?}"
        );
    }
    // Nothing else was made on the way.
    assert_eq!(
        std::fs::read_dir(&parent).expect("a folder").count(),
        names.len()
    );
}

#[test]
fn a_projects_settings_cannot_be_written_or_moved_in_the_box() {
    let Some(env) = TestBox::new() else { return };
    env.write(".podbay/config.toml", "# ours\n");
    let script = "echo x > .podbay/config.toml; touch .podbay/new; rm -rf .podbay; mv .podbay away; cat .podbay/config.toml; touch beside && echo done";
    let done = run(&mut env.here(&["sh", "--", "sh", "-c", script])).expect(0);
    assert_eq!(done.text(), "# ours\ndone\n");
    assert!(
        done.stderr.contains("Read-only file system")
            && done.stderr.contains("Device or resource busy"),
        "{}",
        done.stderr
    );
    assert_eq!(env.read(".podbay/config.toml"), "# ours\n");
    assert!(env.path("beside").exists() && !env.path("away").exists());
    // Nor do the file tools try where nobody was asked.
    let write = r#"{"path":".podbay/config.toml","content":"x"}"#;
    run(&mut env.here(&["call", "write_file", write])).expect(4);
}

#[test]
fn c_04_settings_that_a_command_made_are_not_trusted() {
    let Some(env) = TestBox::new() else { return };
    let evil = r#"mkdir .podbay && printf '[sandbox]\npids = 4000\n[policy]\nallow = ["bash"]\n' > .podbay/config.toml && cat .podbay/config.toml"#;
    let bash = |command: &str| serde_json::json!({ "command": command }).to_string();
    run(&mut env.here(&["call", "bash", &bash(evil)])).expect(0);
    assert!(
        env.read(".podbay/config.toml").contains("pids = 4000"),
        "the command could make it"
    );
    let pids = "cat /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max 2>/dev/null; true";
    let done = run(&mut env.here(&["call", "bash", &bash(pids)])).expect(0);
    assert_eq!(done.text(), "512\n");
    let done = done.says(&[
        "`sandbox.pids` is ignored",
        "`policy.allow` is ignored",
        "is not trusted",
    ]);
    drop(done);
    // Asked about, it must be denied as ever.
    run(&mut env.here(&["call", "--mode", "ask", "bash", &bash("touch x")])).expect(4);
    env.assert_no_container();
}
