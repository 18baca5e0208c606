//! The user of a sandbox has a name, whatever its number is and whatever image it is in.

use super::mounts::Image;
use super::test_box::TestBox;
use super::test_box::docker;
use crate::support::test_env::is_root;
use crate::support::test_env::owner;
use crate::support::test_env::run;

const WHO: &str = "whoami; id -un; id -gn; echo $USER $LOGNAME $SHELL; \
                   python3 -c 'import getpass, os, pwd; print(getpass.getuser(), pwd.getpwuid(os.getuid()).pw_dir == os.environ[\"HOME\"])'";

#[track_caller]
fn sh(env: &TestBox, flags: &[&str], script: &str) -> String {
    let arguments = [&["sh"][..], flags, &["--", "sh", "-c", script]].concat();
    run(&mut env.here(&arguments)).expect(0).text()
}

#[test]
fn the_user_has_a_name_by_any_number() {
    let Some(env) = TestBox::new() else { return };
    let named =
        |name: &str| format!("{name}\n{name}\n{name}\n{name} {name} /bin/bash\n{name} True\n");
    assert_eq!(sh(&env, &[], WHO), named("agent"));
    let lists = sh(&env, &[], "cat /etc/passwd; cat /etc/group");
    assert!(
        lists.contains("\nroot:x:0:0:root:/root:/bin/bash\n") && lists.contains("\ndaemon:x:1:"),
        "the image's own lines stay: {lists}"
    );
    let refused = sh(&env, &[], "echo x 2>&1 >> /etc/passwd || echo refused");
    assert!(refused.ends_with("refused\n"), "{refused}");
    if !is_root("projects of other users") {
        return;
    }
    for (uid, gid, name) in [(54321, 54322, "agent"), (0, 0, "root")] {
        std::os::unix::fs::chown(env.project(), Some(uid), Some(gid)).expect("root");
        assert_eq!(sh(&env, &[], WHO), named(name), "uid {uid}");
    }
    env.assert_no_container();
}

/// What Podbay says about its own image without looking.
#[test]
fn the_workspace_image_has_the_users_that_are_known() {
    let Some(_env) = TestBox::new() else { return };
    for (file, known) in [
        ("passwd", include_str!("../../../src/sandbox/debian/passwd")),
        ("group", include_str!("../../../src/sandbox/debian/group")),
    ] {
        let path = format!("/etc/{file}");
        let found = docker(&[
            "run",
            "--rm",
            "--network",
            "none",
            "podbay/workspace",
            "cat",
            &path,
        ]);
        assert_eq!(found, known, "{path}");
    }
    let modes = [
        "run",
        "--rm",
        "--network",
        "none",
        "podbay/workspace",
        "stat",
        "-c",
        "%a %N",
    ];
    let modes = docker(&[&modes[..], &["/tmp", "/home/agent", "/var/tmp"]].concat());
    assert!(
        modes.starts_with("1777 '/tmp'\n1777 '/home/agent'\n")
            && modes.contains("'/var/tmp' -> '/tmp'"),
        "{modes}"
    );
}

/// A name that the image has given to that number is kept, and programs find a home folder that they
/// can write to.
#[test]
fn an_image_with_a_user_of_that_number_keeps_its_name() {
    let Some(env) = TestBox::new() else { return };
    let image = Image::new(
        &env,
        "RUN rm -rf /home/agent && for id in 0 1000 1001; do echo \"u$id:x:$id:$id::/nonexistent:/bin/sh\" >> /etc/passwd; done",
    );
    let uid = owner().0;
    let script = "whoami; echo $HOME; getent passwd $(whoami) | cut -d: -f6; touch ~/x && ls -A ~";
    let text = sh(&env, &["--image", &image.0], script);
    let name = if uid == 0 {
        "root".to_owned()
    } else {
        format!("u{uid}")
    };
    assert_eq!(text, format!("{name}\n/tmp/.home\n/tmp/.home\nx\n"));
    env.assert_no_container();
}
