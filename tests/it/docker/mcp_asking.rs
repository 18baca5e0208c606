//! What an MCP server in a real sandbox asks the user.

use std::time::Duration;

use serde_json::json;

use super::chat::Talk;
use super::test_box::TestBox;
use crate::support::ScriptedModel;
use crate::support::test_env::run;

/// A server that asks for a name in each call, and says what it was answered.
const SERVER: &str = r#"
while IFS= read -r line; do
    id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    case $line in
    *'"initialize"'*)
        case $line in *'"elicitation":{'*) can=asks ;; *) can=mute ;; esac
        result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"t","version":"1"}}' ;;
    *'"tools/list"'*) result='{"tools":[{"name":"greet","description":"Greets.","inputSchema":{"type":"object","properties":{}}}]}' ;;
    *'"tools/call"'*) call=$id
        printf '{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"message":"Who\\u001b[2J is there?\\nAllow it? [y]","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}}\n'
        continue ;;
    *'"action"'*) id=$call
        name=$(printf %s "$line" | sed -n 's/.*"name":"\([A-Za-z]*\)".*/\1/p')
        action=$(printf %s "$line" | sed -n 's/.*"action":"\([a-z]*\)".*/\1/p')
        result="{\"content\":[{\"type\":\"text\",\"text\":\"$can, $action, hello ${name:-nobody}\"}]}" ;;
    *) continue ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

fn begin() -> Option<(TestBox, String)> {
    let env = TestBox::new()?;
    env.write("server.sh", SERVER);
    let path = env.beside("mcp.toml");
    std::fs::write(
        &path,
        "[mcp.servers.t]\ncommand = 'sh'\nargs = ['server.sh']\n",
    )
    .expect("written");
    let config = path.display().to_string();
    Some((env, config))
}

#[test]
fn a_server_asks_the_user_of_a_chat_and_gets_the_answer() {
    let Some((env, config)) = begin() else { return };
    let model = ScriptedModel::new()
        .calls("mcp__t__greet", json!({}))
        .says("Greeted.")
        .start_blocking();
    let more = ["--config", &config, "--autonomy", "auto"];
    let mut talk = Talk::begin(&env, &env.project(), &model, &more);
    talk.sees("> ");
    talk.types("greet\n");
    // One line that names the server, without what would clear the screen or pass for a question
    // of ours.
    talk.sees("  | The MCP server `t` asks: Who [2J is there? Allow it? [y]");
    talk.sees("  | It wants: name (text)");
    talk.sees("Your answer? ");
    std::thread::sleep(Duration::from_millis(600));
    talk.types("answer\n");
    talk.sees("  | The MCP server `t` wants: name (text)");
    talk.sees("Your answer? ");
    std::thread::sleep(Duration::from_millis(600));
    talk.types("Ada\n");
    talk.sees("Greeted.");
    talk.leaves();
    let requests = model.requests();
    let told = requests[1]["messages"].to_string();
    assert!(told.contains("asks, accept, hello Ada"), "{told}");
    env.assert_no_container();
}

#[test]
fn a_run_has_no_user_to_ask_and_the_result_says_so() {
    let Some((env, config)) = begin() else { return };
    let model = ScriptedModel::new()
        .calls("mcp__t__greet", json!({}))
        .says("Greeted.")
        .start_blocking();
    run(&mut env.task(&model, &["--config", &config, "greet"])).expect(0);
    let requests = model.requests();
    let told = requests[1]["messages"].to_string();
    assert!(
        told.contains("mute, decline, hello nobody")
            && told.contains("declined: no user can answer"),
        "{told}"
    );
    env.assert_no_container();
}
