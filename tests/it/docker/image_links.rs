//! Images whose own links would lead a mount into the project, where the engine makes folders as
//! root.

use std::time::Duration;

use podbay_soak as soak;

use super::mounts::Image;
use super::test_box::TestBox;
use super::test_box::docker;
use crate::support::EngineProxy;
use crate::support::engine_proxy::Fate;
use crate::support::test_env::run;

fn n_entries(env: &TestBox) -> usize {
    std::fs::read_dir(env.project()).expect("a folder").count()
}

#[test]
fn an_image_whose_links_lead_a_mount_astray_is_refused() {
    let cases = [
        (
            "RUN rm -rf /home/agent && ln -s /workspace/made/deep /home/agent",
            "`/home/agent` is a symbolic link to `/workspace/made/deep`",
        ),
        (
            "RUN rm -rf /run && ln -s workspace /run",
            "`/run` is a symbolic link to `/workspace`",
        ),
        (
            "RUN rm -rf /workspace && ln -s /srv /workspace",
            "`/workspace` is a symbolic link to `/srv`",
        ),
        (
            "RUN ln -s /workspace /srv/one && ln -s /srv/one/made /srv/two\nVOLUME /srv/two",
            "`/srv/two` is a symbolic link to `/workspace/made`",
        ),
        (
            "VOLUME /srv/../workspace/made",
            "a volume at /workspace/made",
        ),
        (
            "RUN ln -s /workspace/made /srv/data\nVOLUME /a/../srv/data",
            "`/srv/data` is a symbolic link to `/workspace/made`",
        ),
        (
            "RUN ln -s /proc/self/root/workspace/made /srv/data\nVOLUME /srv/data",
            "`/srv/data` is a symbolic link to `/proc/self/root/",
        ),
        (
            "RUN mkdir /srv/real && ln -s /srv/real /srv/link\nVOLUME /srv/link/data",
            "`/srv/link` is a symbolic link to `/srv/real`",
        ),
        (
            "RUN rm -rf /home/agent && ln -s agent /home/agent",
            "the symbolic links at its `/home/agent` lead in a circle",
        ),
        (
            "VOLUME /srv/..",
            "it declares its root as a volume (`/srv/..`)",
        ),
        ("VOLUME /proc/made", "a volume at /proc/made"),
        ("VOLUME /run/podbay/bin", "a volume at /run/podbay/bin"),
    ];
    for (lines, words) in soak::sample(cases, 6) {
        let Some(env) = TestBox::new() else { return };
        let image = Image::new(&env, lines);
        // All ways to a sandbox, and twice: what was refused is not taken for known.
        for (arguments, code) in [
            (
                &["call", "--image", &image.0, "list_directory", "{}"][..],
                5,
            ),
            (&["sh", "--image", &image.0, "--", "true"], 125),
        ] {
            run(&mut env.here(arguments))
                .expect(code)
                .says(&[words, "hint:"]);
        }
        assert_eq!(n_entries(&env), 0, "{lines}");
        env.assert_no_container();
    }
}

#[test]
fn an_image_with_a_file_where_a_folder_is_mounted_is_refused_in_our_words() {
    let cases = [
        (
            "RUN rm -rf /workspace && touch /workspace",
            "its `/workspace` is a file and no folder, so that the project cannot be mounted there",
        ),
        ("RUN rm -rf /home && touch /home", "its `/home` is a file"),
    ];
    for (lines, words) in cases {
        let Some(env) = TestBox::new() else { return };
        let image = Image::new(&env, lines);
        let done =
            run(&mut env.here(&["call", "--image", &image.0, "list_directory", "{}"])).expect(5);
        assert!(
            !done.stderr.contains("OCI") && !done.stderr.contains("rootfs"),
            "{}",
            done.stderr
        );
        done.says(&[words, "hint: choose another image"]);
        env.assert_no_container();
    }
}

/// The engine makes no image like this from a recipe, and takes one all the same.
#[test]
fn an_image_whose_volume_lies_behind_links_in_a_circle_is_refused() {
    let Some(env) = TestBox::new() else { return };
    let image = Image::new(
        &env,
        "RUN ln -s /srv/two /srv/one && ln -s /srv/one /srv/two",
    );
    let container = docker(&["create", &image.0, "true"]);
    docker(&[
        "commit",
        "--change",
        r#"VOLUME ["/srv/one/data"]"#,
        container.trim(),
        &image.0,
    ]);
    docker(&["rm", container.trim()]);
    let done = run(&mut env.here(&["call", "--image", &image.0, "list_directory", "{}"])).expect(5);
    done.says(&[
        "the symbolic links at its `/srv/one/data` lead in a circle",
        "hint: choose another image",
    ]);
    env.assert_no_container();
}

#[test]
fn a_long_first_look_at_an_image_shows_how_far_it_is() {
    let Some(env) = TestBox::new() else { return };
    let volumes: Vec<String> = (0..60).map(|n| format!("\"/vol/{n}\"")).collect();
    let image = Image::new(&env, &format!("VOLUME [{}]", volumes.join(",")));
    let proxy = EngineProxy::judging(env.beside("slow"), |request| {
        if request.method == "HEAD" {
            std::thread::sleep(Duration::from_millis(100));
        }
        Fate::Pass
    });
    let look = || {
        let mut command = env.here(&["sh", "--image", &image.0, "--", "true"]);
        run(command.env("DOCKER_HOST", proxy.address())).expect(0)
    };
    look().says(&["looking at the image"]);
    let n_asked = proxy
        .seen()
        .iter()
        .filter(|request| request.method == "HEAD")
        .count();
    assert!(n_asked > 60, "{n_asked}");
    let again = look();
    assert!(
        !again.stderr.contains("looking at the image"),
        "{}",
        again.stderr
    );
    env.assert_no_container();
}

/// What the engine would do with such an image.
#[test]
fn without_the_look_an_image_makes_folders_in_the_project() {
    let Some(env) = TestBox::new() else { return };
    let image = Image::new(
        &env,
        "RUN rm -rf /home/agent && ln -s /workspace/made/deep /home/agent",
    );
    let mount = format!("{}:/workspace", env.project().display());
    docker(&[
        "run",
        "--rm",
        "--network",
        "none",
        "--volume",
        &mount,
        "--tmpfs",
        "/home/agent",
        &image.0,
        "true",
    ]);
    assert_eq!(n_entries(&env), 1, "it made `made/deep`");
}

#[test]
fn an_image_with_links_of_another_kind_works_and_is_looked_at_once() {
    let Some(env) = TestBox::new() else { return };
    let image = Image::new(
        &env,
        "RUN mkdir /srv/real && ln -s /srv/real /srv/link && ln -s /workspace /srv/project\nVOLUME /srv/real/data",
    );
    let seen = env.state().join("images");
    for _ in 0..2 {
        let script =
            "touch /srv/link/data/x && stat -f -c %T /srv/real/data && ls -d /srv/project/";
        let done =
            run(&mut env.here(&["sh", "--image", &image.0, "--", "sh", "-c", script])).expect(0);
        assert_eq!(done.text(), "tmpfs\n/srv/project/\n", "{}", done.stderr);
        assert_eq!(std::fs::read_dir(&seen).expect("a folder").count(), 1);
    }
    env.assert_no_container();
}
