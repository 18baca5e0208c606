//! Programs that give rights to who runs them, from the image and from the project.

use std::os::unix::fs::PermissionsExt;

use super::mounts::Image;
use super::test_box::TestBox;
use super::test_box::docker;
use crate::support::test_env::is_root;
use crate::support::test_env::owner;
use crate::support::test_env::run;

/// Programs of root's with each kind of right: the set-user-id bit, the set-group-id bit, and every
/// capability on the file.
const LINES: &str = r#"
RUN cp /usr/bin/id /usr/bin/as-root && chmod 4755 /usr/bin/as-root && cp /usr/bin/id /usr/bin/as-group && chmod 2755 /usr/bin/as-group
RUN cp $(readlink -f /usr/bin/python3) /usr/bin/capable && python3 -c \
    'import os, struct; os.setxattr("/usr/bin/capable", "security.capability", struct.pack("<5I", 0x02000001, 0x2003, 0, 0, 0))'
"#;

const SCRIPT: &str = r#"
as-root -u; as-group -g
capable -c 'print(open("/proc/self/status").read().split("CapEff:")[1].split()[0].lstrip("0") or "none")' || echo none
"#;

#[test]
fn a_setuid_program_in_the_image_gives_nothing() {
    let Some(env) = TestBox::new() else { return };
    let image = Image::new(&env, LINES);
    let (uid, gid) = owner();
    // Without our settings they do give what they promise.
    let user = format!("{uid}:{gid}");
    let open = [
        "run",
        "--rm",
        "--network",
        "none",
        "--user",
        &user,
        "--entrypoint",
        "sh",
        &image.0,
        "-c",
        SCRIPT,
    ];
    assert_eq!(docker(&open), "0\n0\n2003\n");

    let closed = |script: &str| {
        run(&mut env.here(&["sh", "--image", &image.0, "--", "sh", "-c", script]))
            .expect(0)
            .text()
    };
    assert_eq!(closed(SCRIPT), format!("{uid}\n{gid}\nnone\n"));
    let script = "su -c id root < /dev/null; newgrp root < /dev/null; passwd -d root; mount -t tmpfs none /tmp; grep -c 'Cap.*:.*[1-9a-f]' /proc/self/status; true";
    // `su` knows the user, and asks for a password that there is none of.
    let told = closed(script);
    assert_eq!(
        told.trim_start_matches("Password: "),
        "0\n",
        "nor do those that every system has"
    );

    // One that somebody left in the project, in a folder that knows the bit.
    if is_root("a program of root's in the project") {
        assert_eq!(
            closed("cp /usr/bin/id own && chmod 755 own && ./own -u"),
            format!("{uid}\n")
        );
        std::os::unix::fs::chown(env.path("own"), Some(0), Some(0)).expect("root");
        std::fs::set_permissions(env.path("own"), PermissionsExt::from_mode(0o6755)).expect("root");
        assert_eq!(closed("./own -u; ./own -g"), format!("{uid}\n{gid}\n"));
    }
    env.assert_no_container();
}
