//! Resources, prompts and roots: what a server has besides tools.

use podbay::event::Seconds;
use podbay::mcp::ServerOptions;
use podbay::mcp::ToolFilter;
use serde_json::Value;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::Act;
use super::Fake;
use super::Session;
use super::alone;
use super::answer;
use super::honest;
use super::line;
use super::tool;

const CAPABILITIES: &str = r#"{"tools": {}, "resources": {}, "prompts": {}}"#;

/// A server with a resource, a prompt with an argument, and a question about roots.
fn server(request: &Value) -> Vec<Act> {
    match request["method"].as_str() {
        Some("initialize") => {
            let capabilities: Value = serde_json::from_str(CAPABILITIES).expect("JSON");
            answer(
                request,
                &json!({"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": {"name": "fake", "version": "1"}}),
            )
        }
        Some("notifications/initialized") => {
            line(&json!({"jsonrpc": "2.0", "id": 7, "method": "roots/list"}))
        }
        Some("resources/list") => answer(
            request,
            &json!({"resources": [{"uri": "note://a", "name": "a\u{1b}[2J", "description": "A note."}]}),
        ),
        Some("resources/read") if request["params"]["uri"] == "note://a" => answer(
            request,
            &json!({"contents": [{"uri": "note://a", "text": "Bring\u{202e} milk."}]}),
        ),
        Some("resources/read") => line(
            &json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32002, "message": "no such note"}}),
        ),
        Some("prompts/list") => answer(
            request,
            &json!({"prompts": [{"name": "tidy", "description": "Tidies.", "arguments": [{"name": "file", "required": true}]}]}),
        ),
        Some("prompts/get") => {
            let file = request["params"]["arguments"]["file"].as_str();
            let text = format!("Tidy {} up.", file.unwrap_or("nothing"));
            answer(
                request,
                &json!({"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}),
            )
        }
        _ => honest(request, &[tool("echo", "Repeats.")]),
    }
}

async fn call(session: &Session, tool: &str, arguments: Value) -> (bool, String) {
    let Value::Object(arguments) = arguments else {
        panic!("{arguments}")
    };
    let cancel = CancellationToken::new();
    let called = session
        .servers
        .call_tool(tool, arguments, &mut alone(&mut |_| {}), &cancel)
        .await;
    (called.is_ok, called.text)
}

#[tokio::test]
async fn resources_are_listed_and_read_by_two_tools() {
    let fake = Fake::new(|_, request| server(request));
    let session = Session::begin(&fake, 60).await;
    let names: Vec<&str> = session
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "mcp__x__echo",
            "mcp__x__list_resources",
            "mcp__x__read_resource"
        ]
    );
    assert_eq!(
        call(&session, "mcp__x__list_resources", json!({})).await,
        (true, "note://a  a [2J  A note.".to_owned())
    );
    assert_eq!(
        call(
            &session,
            "mcp__x__read_resource",
            json!({"uri": "note://a"})
        )
        .await,
        (true, "[note://a]\nBring milk.".to_owned())
    );
    let (is_ok, text) = call(&session, "mcp__x__read_resource", json!({"uri": "b"})).await;
    assert!(!is_ok && text.contains("no such note"), "{text}");
}

#[tokio::test]
async fn a_server_without_resources_has_no_tools_for_them() {
    let fake = Fake::new(|_, request| honest(request, &[tool("echo", "Repeats.")]));
    let session = Session::begin(&fake, 60).await;
    assert_eq!(session.tools.len(), 1);
    assert!(
        session
            .servers
            .prompts(&CancellationToken::new())
            .await
            .is_empty()
    );
}

#[tokio::test]
async fn a_prompt_is_filled_with_words_and_is_a_text() {
    let fake = Fake::new(|_, request| server(request));
    let session = Session::begin(&fake, 60).await;
    let cancel = CancellationToken::new();
    let prompts = session.servers.prompts(&cancel).await;
    assert_eq!(prompts.len(), 1);
    assert_eq!(prompts[0].name, "mcp__x__tidy");
    let message = |words: &'static str| session.servers.prompt(&prompts[0], words, &cancel);
    assert_eq!(
        message("src/a.rs").await.as_deref(),
        Ok("Tidy src/a.rs up.")
    );
    assert_eq!(message("").await, Err("it takes FILE".to_owned()));
}

#[tokio::test]
async fn a_server_is_told_the_folder_that_it_works_on_and_no_other() {
    let fake = Fake::new(|_, request| server(request));
    let session = Session::begin(&fake, 60).await;
    // The answer was sent before that of this call.
    session.call("hello").await;
    let got = fake.got.lock().expect("no test panics while it holds this");
    let answer = got.iter().find(|message| message["id"] == 7);
    assert_eq!(
        answer.map(|answer| &answer["result"]),
        Some(&json!({"roots": [{"uri": "file:///workspace"}]}))
    );
    let hello = got.iter().find(|message| message["method"] == "initialize");
    let capabilities = &hello.expect("greeted")["params"]["capabilities"];
    assert!(capabilities.get("sampling").is_none() && capabilities.get("elicitation").is_none());
}

/// The filters of a server's settings hold for what its resources are read by.
#[tokio::test]
async fn a_denied_tool_for_resources_is_not_offered() {
    let fake = Fake::new(|_, request| server(request));
    let options = ServerOptions {
        command: "fake".to_owned(),
        timeout: Seconds::new(60),
        tools: ToolFilter {
            allow: Vec::new(),
            deny: vec!["read_resource".to_owned()],
        },
        ..ServerOptions::default()
    };
    let session = Session::begin_with(&fake, options).await;
    let names: Vec<&str> = session
        .tools
        .iter()
        .map(|tool| tool.tool.as_str())
        .collect();
    assert_eq!(names, ["echo", "list_resources"]);
    let (is_ok, _) = call(
        &session,
        "mcp__x__read_resource",
        json!({"uri": "note://a"}),
    )
    .await;
    assert!(!is_ok);
}
