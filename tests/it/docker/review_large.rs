//! Files that are too large to be kept, in a run whose changes are pending.

use super::review::held_back;
use super::review::noise;
use super::review::review;
use super::review::volumes;
use super::test_box::TestBox;

#[test]
fn a_file_that_is_too_large_to_be_kept_comes_from_what_the_session_worked_on() {
    let Some(env) = TestBox::new() else { return };
    env.write("was", noise(1, 70 << 20));
    let make = "head -c 80000000 /dev/urandom > made; chmod 750 made; sha256sum made > sums; head -c 90000000 /dev/urandom > was; sha256sum was >> sums";
    let result = held_back(&env, make, &[]);
    assert!(
        result["changes"]["created"].to_string().contains("made"),
        "{result}"
    );
    assert!(
        result["warnings"]
            .to_string()
            .contains("was (larger than 64 MiB)"),
        "it is said at the start: {result}"
    );
    let done = review(&env, &["apply"]).expect(0).text();
    assert!(
        done.contains("  made\n") && done.contains("  was\n"),
        "{done}"
    );
    let check = "cd \"$0\" && sha256sum --check --quiet sums && stat -c %a made";
    let output = std::process::Command::new("sh")
        .args(["-c", check])
        .arg(env.project())
        .output()
        .expect("sh");
    assert_eq!(
        (
            String::from_utf8_lossy(&output.stdout),
            output.status.success()
        ),
        ("750\n".into(), true)
    );
    assert_eq!(volumes(&env), [""; 0], "nothing waits any more");
    env.assert_no_container();
}
