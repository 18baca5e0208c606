//! `podbay stats`: what the sessions of a project took, and those of all.

use podbay::event::Event;
use podbay::event::Kind;
use podbay::event::RunStatus;
use podbay::event::SessionId;
use podbay::event::Usage;
use podbay::session::Log;
use podbay::session::Options;
use podbay::session::State;
use podbay::session::Stats;
use serde_json::json;

use crate::support::TestEnv;
use crate::support::test_env::run;

fn finished() -> Event {
    let usage = Usage {
        prompt: 100,
        cached: 50,
        completion: 10,
        cost_usd: None,
    };
    Kind::RunFinished {
        status: RunStatus::Completed,
        exit_code: 0,
        response: String::new(),
        turns: 1,
        tool_calls: 1,
        usage,
        limit: None,
        error: None,
        duration_ms: 3000,
    }
    .into()
}

fn called(name: &str) -> [Event; 2] {
    [
        Kind::ModelAsked.into(),
        Kind::CallStarted {
            call: "c".to_owned(),
            name: name.to_owned(),
            arguments: "{}".to_owned(),
        }
        .into(),
    ]
}

/// A run of a project, and that its session was continued in another process.
fn two_runs(state: &State, project: &str) {
    let header = Kind::SessionStarted {
        version: 2,
        session: SessionId::random(),
        podbay: "0.1.0".to_owned(),
        project: project.to_owned(),
        mode: "auto".to_owned(),
        task: None,
    };
    let options = Options::default();
    let mut log = Log::create(state, &header.into(), &options, None).expect("made");
    let path = log.path().to_owned();
    let [asked, started] = called("bash");
    for event in [asked, started, finished()] {
        log.append(&event).expect("written");
    }
    drop(log);
    let (mut log, ..) = Log::resume(state, &path, &options).expect("resumes");
    let [asked, started] = called("grep");
    for event in [asked, started, finished()] {
        log.append(&event).expect("written");
    }
}

#[test]
fn what_the_sessions_of_a_project_took_is_added_up() {
    let env = TestEnv::new();
    let state = State::open(&env.state()).expect("opens");
    let project = env.project().canonicalize().expect("it is there");
    two_runs(&state, &project.to_string_lossy());
    two_runs(&state, "/elsewhere");
    let here = run(&mut env.here(&["stats", "--json"])).expect(0).json();
    for (key, value) in [
        ("sessions", json!(1)),
        ("runs", json!(2)),
        ("requests", json!(2)),
        ("tool_calls", json!(2)),
        ("tools", json!({"bash": 1, "grep": 1})),
        ("duration_ms", json!(6000)),
        (
            "usage",
            json!({"prompt": 200, "cached": 100, "completion": 20, "cost_usd": null}),
        ),
    ] {
        assert_eq!(here[key], value, "{key}: {here}");
    }
    let all = run(&mut env.podbay(&["stats", "--all", "--json"])).expect(0);
    assert_eq!(all.json()["runs"], json!(4));
    let text = run(&mut env.here(&["stats"])).expect(0).text();
    assert!(
        text.contains("sessions    1 (2 runs and chats")
            && text.contains("    1 bash\n")
            && text.contains("prompt      200 tokens, 50 % of them cached\n"),
        "{text}"
    );
    let other = env.beside("other");
    std::fs::create_dir(&other).expect("made");
    let none = Stats::of_all(&state, Some("/nowhere")).expect("reads");
    assert_eq!(none, Stats::default());
    let other = other.to_string_lossy();
    let elsewhere = run(&mut env.podbay(&["stats", "-C", &other]))
        .expect(0)
        .text();
    assert!(elsewhere.starts_with("sessions    0 "), "{elsewhere}");
    run(&mut env.podbay(&["stats", "-C", "/no/such/folder"])).expect(2);
}
