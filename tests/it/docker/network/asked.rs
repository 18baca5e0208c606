//! A chat asks about hosts, and what is said of them afterwards.

use serde_json::json;

use super::super::chat::Talk;
use super::super::test_box::TestBox;
use super::outside::Files;
use super::outside::Outside;
use crate::support::ScriptedModel;
use crate::support::test_env::run;

/// The command waits for the gateway, which a chat that allows nothing yet starts behind its
/// sandbox.
const FETCH: &str = "while ! test -S /run/podbay/egress/egress.sock; do sleep 0.1; done; \
                     curl --silent --proxy http://127.0.0.1:3128 http://web.example/page";

#[test]
fn a_denied_host_is_a_question_and_granting_it_needs_no_new_sandbox() {
    let Some(env) = TestBox::new() else { return };
    let outside = Outside::new();
    let web = outside.serve(Files::from([("/page".to_owned(), b"a page".to_vec())]));
    let proxy = format!("proxy = \"http://{}:{}\"", outside.address(), web.port);
    outside.tell(&env, &proxy);
    let fetch = || json!({"command": FETCH});
    let model = ScriptedModel::new()
        .calls("bash", fetch())
        .calls("bash", fetch())
        .calls("bash", fetch())
        .calls("bash", fetch())
        .says("Done.")
        .start_blocking();
    let mut talk = Talk::begin(&env, &env.project(), &model, &[]);
    talk.sees("> ");
    talk.types("work\n");
    talk.sees("reach web.example:80 over the network");
    let sandbox = env.container();
    // Once, which is the next command; then again, for the session.
    talk.answers("y\n");
    talk.sees("reach web.example:80 over the network");
    talk.answers("a\n");
    talk.sees("Done.");
    assert_eq!(env.container(), sandbox);
    talk.leaves();
    let requests = model.requests();
    let result = |n: usize| {
        let messages = requests[n]["messages"].as_array().expect("messages");
        messages.last().expect("a result")["content"].to_string()
    };
    assert!(
        result(1).contains("no rule allows this host")
            && result(1).contains("now allows web.example:80 for the next command"),
        "{}",
        result(1)
    );
    assert!(result(2).contains("a page"), "{}", result(2));
    assert!(
        result(3).contains("now allows web.example:80 for this session"),
        "{}",
        result(3)
    );
    assert!(result(4).contains("a page"), "{}", result(4));
    env.assert_no_container();
    let log = run(&mut env.here(&["logs", "--network"])).expect(0).text();
    assert!(
        log.matches("web.example:80 (curl) was denied").count() == 2
            && log
                .matches("web.example:80 (curl) was allowed by `web.example:80`")
                .count()
                == 2,
        "{log}"
    );
    let why = run(&mut env.here(&["why"])).expect(0).text();
    assert!(
        why.contains("denied by the network: no rule allows this host")
            && why.contains("--allow-host \"web.example:80\""),
        "{why}"
    );
}

#[test]
fn a_name_that_is_asked_for_past_the_proxy_is_a_question_too() {
    let Some(env) = TestBox::new() else { return };
    let outside = Outside::new();
    let web = outside.serve(Files::from([("/page".to_owned(), b"a page".to_vec())]));
    let proxy = format!("proxy = \"http://{}:{}\"", outside.address(), web.port);
    outside.tell(&env, &proxy);
    let fetch = || {
        let command = FETCH.replace("--proxy http://127.0.0.1:3128", "--noproxy '*'");
        json!({"command": command})
    };
    let model = ScriptedModel::new()
        .calls("bash", fetch())
        .calls("bash", fetch())
        .says("Done.")
        .start_blocking();
    let mut talk = Talk::begin(&env, &env.project(), &model, &[]);
    talk.sees("> ");
    talk.types("work\n");
    talk.sees("reach web.example over the network");
    talk.answers("a\n");
    talk.sees("Done.");
    talk.leaves();
    let requests = model.requests();
    let result = |n: usize| {
        let messages = requests[n]["messages"].as_array().expect("messages");
        messages.last().expect("a result")["content"].to_string()
    };
    assert!(
        result(1).contains("now allows web.example for this session")
            && !result(1).contains("the sandbox has no network"),
        "{}",
        result(1)
    );
    assert!(result(2).contains("a page"), "{}", result(2));
}

/// A grant reaches no private network; asking the same again would not help.
#[test]
fn what_a_grant_does_not_reach_is_not_asked_about_again() {
    let Some(env) = TestBox::new() else { return };
    let outside = Outside::new();
    let web = outside.serve(Files::from([("/page".to_owned(), b"a page".to_vec())]));
    outside.tell(&env, "");
    let fetch = || {
        let command = FETCH.replace("web.example", &format!("web.example:{}", web.port));
        json!({"command": command})
    };
    let model = ScriptedModel::new()
        .calls("bash", fetch())
        .calls("bash", fetch())
        .says("Done.")
        .start_blocking();
    let mut talk = Talk::begin(&env, &env.project(), &model, &[]);
    talk.sees("> ");
    talk.types("work\n");
    talk.sees("over the network");
    talk.answers("y\n");
    talk.sees("Done.");
    talk.leaves();
    let requests = model.requests();
    let last = requests[2]["messages"].as_array().expect("messages");
    let result = last.last().expect("a result")["content"].to_string();
    assert!(
        result.contains("only a rule with `private` reaches"),
        "{result}"
    );
}

#[test]
fn an_unattended_run_tells_the_model_to_ask_for_it() {
    let Some(env) = TestBox::new() else { return };
    Outside::new().tell(&env, "");
    let model = ScriptedModel::new()
        .calls(
            "bash",
            json!({"command": "curl --silent https://web.example/"}),
        )
        .says("It is blocked.")
        .start_blocking();
    let done = run(&mut env.task(&model, &["--network", "allowlist", "work"])).expect(0);
    let requests = model.requests();
    let told = requests[1]["messages"].to_string();
    assert!(
        told.contains("network: web.example:443 (no rule allows this host) is blocked by policy: ask for it, do not retry"),
        "{told}"
    );
    assert!(
        done.stderr.contains("web.example:443 (curl) was denied"),
        "{}",
        done.stderr
    );
}

#[test]
fn what_a_command_asks_for_is_learnt_and_proposed() {
    let Some(env) = TestBox::new() else { return };
    let outside = Outside::new();
    outside.tell(&env, "");
    let command = "curl --silent https://pypi.org/ https://files.pythonhosted.org/; \
                   curl --silent http://git.example:8443/; echo its own; exit 3";
    let mut learn = env.podbay(&["network", "learn", "-C"]);
    let done = run(learn.arg(env.project()).args(["--", "sh", "-c", command])).expect(0);
    assert!(done.text().ends_with("its own\n"), "{}", done.text());
    assert!(
        done.stderr
            .contains("--allow-host @pypi --allow-host git.example:8443\n"),
        "{}",
        done.stderr
    );
    assert!(outside.asked().is_empty(), "{:?}", outside.asked());
}
