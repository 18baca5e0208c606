//! Code in a sandbox of its own reaches what the session reaches where it is asked for, and nothing
//! without.

use serde_json::json;

use super::super::test_box::TestBox;
use super::outside::Files;
use super::outside::Outside;
use crate::support::ScriptedModel;
use crate::support::scripted_model::Running;
use crate::support::test_env::run;

fn result(model: &Running, n: usize) -> String {
    let requests = model.requests();
    let messages = requests[n]["messages"].as_array().expect("messages");
    let last = messages.last().expect("a result");
    last["content"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn code_reaches_the_hosts_of_the_session_where_it_asks_and_no_others() {
    let Some(env) = TestBox::new() else { return };
    let outside = Outside::new();
    let files = Files::from([("/a".to_owned(), b"from outside".to_vec())]);
    let web = outside.serve(files);
    outside.tell(&env, "");
    let fetch = |host: &str, network: bool| {
        let code = format!(
            "import urllib.request\nprint(urllib.request.urlopen('http://{host}:{}/a', timeout=5).read())",
            web.port
        );
        json!({"language": "python", "code": code, "network": network})
    };
    let model = ScriptedModel::new()
        .calls("sandbox_run", fetch("web.example", true))
        .calls("sandbox_run", fetch("web.example", false))
        .calls("sandbox_run", fetch("other.example", true))
        .says("Done.")
        .start_blocking();
    let rule = format!("web.example:{} private", web.port);
    let words = ["--tools", "full", "--allow-host", &rule, "work"];
    run(&mut env.task(&model, &words)).expect(0);
    let reached = result(&model, 1);
    assert!(reached.contains("from outside"), "{reached}");
    for n in [2, 3] {
        let told = result(&model, n);
        assert!(
            !told.contains("from outside") && told.contains("Error"),
            "{told}"
        );
    }
    assert!(
        result(&model, 3).contains("no rule allows"),
        "{}",
        result(&model, 3)
    );
    assert_eq!(web.requests().len(), 1, "{:?}", web.requests());
    // A session without a network has none to give.
    let model = ScriptedModel::new()
        .calls("sandbox_run", fetch("web.example", true))
        .says("Done.")
        .start_blocking();
    let words = ["--tools", "full", "--network", "none", "work"];
    run(&mut env.task(&model, &words)).expect(0);
    assert!(!result(&model, 1).contains("from outside"));
    assert_eq!(web.requests().len(), 1, "{:?}", web.requests());
    env.assert_no_container();
}
