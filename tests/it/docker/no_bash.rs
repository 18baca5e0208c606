//! An image without bash: its `sh` carries commands out, and what it may read otherwise than bash is refused where nobody is asked.

use serde_json::json;

use super::mounts::Image;
use super::test_box::TestBox;
use crate::support::ScriptedModel;
use crate::support::test_env::run;

#[test]
fn in_an_image_without_bash_its_sh_carries_commands_out() {
    let Some(env) = TestBox::new() else { return };
    env.write("sub/a.txt", "one\n");
    let image = Image::new(&env, "RUN rm -f /bin/bash /usr/bin/bash /usr/local/bin/bash");
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "cd sub && echo $((40+2)) > n; echo \"[$BASH_VERSION]\""}))
        .calls("bash", json!({"command": "pwd; cat a.txt n"}))
        .calls("bash", json!({"command": "! [[ -n x && ( touch == made ) && b ]]"}))
        .says("Done.")
        .start_blocking();
    // One of its calls was refused.
    run(env.task(&model, &["--image", &image.0, "work"]).stdin(std::process::Stdio::null())).expect(4);
    let requests = model.requests();
    let messages = requests[3]["messages"].as_array().expect("messages");
    let results: Vec<&str> =
        messages.iter().filter(|message| message["role"] == "tool").filter_map(|message| message["content"].as_str()).collect();
    assert!(results[0].starts_with("[]\n"), "{}", results[0]);
    assert!(results[1].starts_with("/workspace/sub\none\n42\n"), "{}", results[1]);
    assert!(results[2].contains("the sandbox has no bash, and its sh may read `[[` otherwise"), "{}", results[2]);
    assert!(!env.path("made").exists() && !env.path("sub/made").exists());
    env.assert_no_container();
}
