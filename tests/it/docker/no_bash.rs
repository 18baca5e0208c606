//! An image without bash: its `sh` executes commands.

use serde_json::json;

use super::mounts::Image;
use super::test_box::TestBox;
use crate::support::ScriptedModel;
use crate::support::test_env::run;

#[test]
fn in_an_image_without_bash_its_sh_carries_commands_out() {
    let Some(env) = TestBox::new() else { return };
    env.write("sub/a.txt", "one\n");
    let image = Image::new(
        &env,
        "RUN rm -f /bin/bash /usr/bin/bash /usr/local/bin/bash",
    );
    let model = ScriptedModel::new()
        .calls(
            "bash",
            json!({"command": "cd sub && echo $((40+2)) > n; echo \"[$BASH_VERSION]\""}),
        )
        .calls("bash", json!({"command": "pwd; cat a.txt n"}))
        .says("Done.")
        .start_blocking();
    run(env
        .task(&model, &["--image", &image.0, "work"])
        .stdin(std::process::Stdio::null()))
    .expect(0);
    let requests = model.requests();
    let messages = requests[2]["messages"].as_array().expect("messages");
    let results: Vec<&str> = messages
        .iter()
        .filter(|message| message["role"] == "tool")
        .filter_map(|message| message["content"].as_str())
        .collect();
    assert!(results[0].starts_with("[]\n"), "{}", results[0]);
    assert!(
        results[1].starts_with("/workspace/sub\none\n42\n"),
        "{}",
        results[1]
    );
    env.assert_no_container();
}
