//! What a server asks the user while a call of its tool runs.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use podbay::event::Seconds;
use podbay::mcp::Caller;
use podbay::mcp::Later;
use podbay::mcp::ServerOptions;
use podbay::mcp::User;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::Act;
use super::Fake;
use super::Session;
use super::honest;
use super::line;
use super::says;
use super::tool;

/// A user who answers with these words, each after a time; then with none.
struct Someone {
    answers: Mutex<VecDeque<&'static str>>,
    takes: Duration,
    is_there: bool,
    questions: Mutex<Vec<(String, Vec<String>)>>,
}

impl Someone {
    fn new(answers: &[&'static str]) -> Self {
        Self {
            answers: Mutex::new(answers.iter().copied().collect()),
            takes: Duration::ZERO,
            is_there: true,
            questions: Mutex::default(),
        }
    }

    fn questions(&self) -> Vec<(String, Vec<String>)> {
        self.questions.lock().expect("no test panics here").clone()
    }
}

impl User for Someone {
    fn can_answer(&self) -> bool {
        self.is_there
    }

    fn question<'a>(
        &'a self,
        question: &'a str,
        options: &'a [String],
    ) -> Later<'a, Option<String>> {
        let asked = (question.to_owned(), options.to_vec());
        self.questions
            .lock()
            .expect("no test panics here")
            .push(asked);
        Box::pin(async {
            tokio::time::sleep(self.takes).await;
            let mut answers = self.answers.lock().expect("no test panics here");
            answers.pop_front().map(str::to_owned)
        })
    }
}

fn ask(id: &str, schema: &Value) -> Vec<Act> {
    let params = json!({"message": "Which\u{1b}[2J\nbranch?", "requestedSchema": schema});
    line(&json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params}))
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "branch": {"type": "string", "title": "The branch\u{202e}"},
            "depth": {"type": "integer", "minimum": 1, "maximum": 9},
            "force": {"type": "boolean", "default": false},
        },
        "required": ["branch", "depth"],
    })
}

/// A server that asks with these words of the protocol in each call, and says what came.
fn asks_with(schema: Value) -> Arc<Fake> {
    let call = Mutex::new(Value::Null);
    Fake::with_user(move |_, message| match message["method"].as_str() {
        Some("tools/call") => {
            *call.lock().expect("no test panics here") = message.clone();
            ask("e", &schema)
        }
        None if message["id"] == "e" => {
            let call = call.lock().expect("no test panics here");
            let came = if message["error"].is_object() {
                "error".to_owned()
            } else {
                message["result"].to_string()
            };
            says(&call, &came)
        }
        _ => honest(message, &[tool("echo", "Repeats.")]),
    })
}

/// Calls the tool; returns its text, and the lines that were shown meanwhile.
async fn call(fake: &Arc<Fake>, user: &Someone, timeout: u64) -> (bool, String, Vec<String>) {
    let session = begin(fake, timeout).await;
    call_in(&session, user, &CancellationToken::new()).await
}

async fn begin(fake: &Arc<Fake>, timeout: u64) -> Session {
    let options = ServerOptions {
        command: "fake".to_owned(),
        timeout: Seconds::new(timeout),
        ..ServerOptions::default()
    };
    Session::begin_with(fake, options).await
}

async fn call_in(
    session: &Session,
    user: &Someone,
    cancel: &CancellationToken,
) -> (bool, String, Vec<String>) {
    let mut lines = Vec::new();
    let mut on_progress = |line: &str| lines.push(line.to_owned());
    let mut caller = Caller {
        on_progress: &mut on_progress,
        user: Some(user),
    };
    let called = session
        .servers
        .call_tool("mcp__x__echo", Map::new(), &mut caller, cancel)
        .await;
    (called.is_ok, called.text, lines)
}

#[tokio::test]
async fn what_the_user_answers_reaches_the_server() {
    let user = Someone::new(&["answer", "main", "many", "3", "-"]);
    let fake = asks_with(schema());
    let (is_ok, text, lines) = call(&fake, &user, 60).await;
    assert!(is_ok, "{text}");
    let came: Value = serde_json::from_str(&text).expect("the result that came");
    assert_eq!(
        came,
        json!({"action": "accept", "content": {"branch": "main", "depth": 3, "force": false}})
    );
    assert_eq!(
        lines,
        ["the server asked the user \"Which [2J branch?\": answered"]
    );
    let questions = user.questions();
    assert_eq!(
        questions[0],
        (
            "The MCP server `x` asks: Which [2J branch?\n\
             It wants: The branch (text), depth (a whole number from 1 up to 9), force (yes or no, may be left out)\n\
             What you answer goes to that server: give it no password and no key."
                .to_owned(),
            vec!["answer".to_owned(), "decline".to_owned()]
        )
    );
    assert_eq!(
        questions[1].0,
        "The MCP server `x` wants: The branch (text)"
    );
    // An answer that is none is asked for again.
    assert!(
        questions[3].0.ends_with("\nIt must be a number."),
        "{questions:?}"
    );
    assert_eq!(questions[4].1, ["yes", "no", "-"]);
    let got = fake.got.lock().expect("no test panics here");
    let capabilities = &got[0]["params"]["capabilities"];
    assert_eq!(capabilities, &json!({"roots": {}, "elicitation": {}}));
}

#[tokio::test]
async fn a_user_may_decline_and_may_leave_a_question() {
    for (answers, action) in [
        (&["decline"] as &[_], "decline"),
        (&["no"], "decline"),
        (&[], "cancel"),
        (&["answer"], "cancel"),
        (&["what?", "why?", "who?"], "cancel"),
        (&["answer", "main", "x", "y", "z"], "cancel"),
    ] {
        let user = Someone::new(answers);
        let (is_ok, text, _) = call(&asks_with(schema()), &user, 60).await;
        let came: Value = serde_json::from_str(&text).expect("the result that came");
        assert!(
            is_ok && came == json!({"action": action}),
            "{answers:?}: {text}"
        );
    }
}

#[tokio::test]
async fn where_no_user_can_answer_a_request_is_declined_and_that_is_said() {
    let user = Someone {
        is_there: false,
        ..Someone::new(&["answer"])
    };
    let (is_ok, text, lines) = call(&asks_with(schema()), &user, 60).await;
    let said = "the server asked the user \"Which [2J branch?\", declined: no user can answer";
    assert_eq!(text, format!("{{\"action\":\"decline\"}}\n[{said}]"));
    assert!(is_ok && lines == [said] && user.questions().is_empty());
}

#[tokio::test]
async fn a_form_that_is_none_is_declined_without_a_question() {
    let many: Map<_, _> = (0..30)
        .map(|n| (format!("f{n}"), json!({"type": "boolean"})))
        .collect();
    let schema = json!({"type": "object", "properties": many});
    let user = Someone::new(&["answer"]);
    let (_, text, _) = call(&asks_with(schema), &user, 60).await;
    assert!(
        text.contains("decline") && text.contains("30 fields"),
        "{text}"
    );
    // What is no form of the protocol is an error at the server.
    let nested =
        json!({"type": "object", "properties": {"a": {"type": "object", "properties": {}}}});
    let (_, text, _) = call(&asks_with(nested), &user, 60).await;
    assert_eq!((text.as_str(), user.questions().len()), ("error", 0));
}

#[tokio::test]
async fn the_time_of_a_question_is_not_the_call_s() {
    let user = Someone {
        takes: Duration::from_millis(1500),
        ..Someone::new(&["decline"])
    };
    let (is_ok, text, _) = call(&asks_with(schema()), &user, 1).await;
    assert!(is_ok && text.contains("decline"), "{text}");
    // Without a question it still counts.
    let silent = super::on_call(|_, _| Vec::new());
    let (is_ok, text, _) = call(&silent, &Someone::new(&[]), 1).await;
    assert!(!is_ok && text.contains("within 1 s"), "{text}");
}

#[tokio::test]
async fn a_question_ends_with_its_call() {
    let user = Someone {
        takes: Duration::from_secs(600),
        ..Someone::new(&["answer"])
    };
    // The call is cancelled.
    let fake = asks_with(schema());
    let session = begin(&fake, 60).await;
    let cancel = CancellationToken::new();
    let (called, ()) = tokio::join!(call_in(&session, &user, &cancel), async {
        while user.questions().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cancel.cancel();
    });
    assert!(called.1.contains("cancelled"), "{}", called.1);
    wait_for_reply(&fake, "e", "cancel").await;
    // The server answers without waiting.
    let hasty = Fake::with_user(|_, message| match message["method"].as_str() {
        Some("tools/call") => {
            let mut acts = ask("e", &schema());
            acts.push(Act::Wait(Duration::from_millis(300)));
            acts.extend(says(message, "never mind"));
            acts
        }
        _ => honest(message, &[tool("echo", "Repeats.")]),
    });
    let (is_ok, text, _) = call(&hasty, &user, 60).await;
    assert!(is_ok && text == "never mind", "{text}");
}

#[tokio::test]
async fn without_a_call_a_server_asks_nobody() {
    let fake = Fake::with_user(|_, message| match message["method"].as_str() {
        Some("notifications/initialized") => ask("early", &schema()),
        _ => honest(message, &[tool("echo", "Repeats.")]),
    });
    let _session = begin(&fake, 60).await;
    wait_for_reply(&fake, "early", "decline").await;
}

#[tokio::test]
async fn a_call_asks_no_more_than_a_few_questions() {
    let call_of = Mutex::new(Value::Null);
    let fake = Fake::with_user(move |_, message| match message["method"].as_str() {
        Some("tools/call") => {
            *call_of.lock().expect("no test panics here") = message.clone();
            ask("1", &schema())
        }
        None if message["result"]["action"].is_string() => {
            let id: usize = message["id"]
                .as_str()
                .expect("an id")
                .parse()
                .expect("a number");
            if id == 7 {
                says(&call_of.lock().expect("no test panics here"), "enough")
            } else {
                ask(&(id + 1).to_string(), &schema())
            }
        }
        _ => honest(message, &[tool("echo", "Repeats.")]),
    });
    let user = Someone::new(&["decline"; 20]);
    let (is_ok, text, _) = call(&fake, &user, 60).await;
    assert!(is_ok && text.starts_with("enough"), "{text}");
    assert_eq!(user.questions().len(), 5);
}

async fn wait_for_reply(fake: &Fake, id: &str, action: &str) {
    for _ in 0..200 {
        let got = fake.got.lock().expect("no test panics here").clone();
        let reply = got
            .iter()
            .find(|message| message["id"] == id && message["method"].is_null());
        if let Some(reply) = reply {
            assert_eq!(reply["result"]["action"], action, "{reply}");
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("no reply to {id}");
}
