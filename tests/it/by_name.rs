//! What rules and persons say of a path holds for that path: no link makes another one of it.

use std::os::unix::fs::symlink;

use podbay::event::Answer;
use podbay::event::Answered;
use podbay::event::CallStatus;
use podbay::event::Kind;
use podbay::policy;
use podbay::policy::Mode;
use serde_json::Value;
use serde_json::json;

use crate::support::Desk;
use crate::support::ScriptedModel;
use crate::support::desk::Wishes;

/// Has a model make these calls in a project with links; returns how each ended, and the desk.
async fn made(wishes: Wishes, calls: &[(&str, Value)]) -> (Vec<CallStatus>, Desk) {
    let mut model = ScriptedModel::new();
    for (name, arguments) in calls {
        model = model.calls(name, arguments.clone());
    }
    let desk = Desk::new(model.says("Done.").start().await, wishes).await;
    for folder in ["secret", "src"] {
        std::fs::create_dir(desk.guest.path(folder)).expect("made");
    }
    for (name, text) in [("secret/k.txt", "hidden\n"), ("Makefile", "all:\n")] {
        std::fs::write(desk.guest.path(name), text).expect("written");
    }
    for (target, name) in [
        ("secret", "lnk"),
        ("secret/k.txt", "kl"),
        ("../Makefile", "src/l"),
        ("..", "src/d"),
    ] {
        symlink(target, desk.guest.path(name)).expect("linked");
    }
    desk.work("go").await;
    let ended = desk.kinds().into_iter().filter_map(|kind| match kind {
        Kind::CallFinished { status, .. } => Some(status),
        _ => None,
    });
    (ended.collect(), desk)
}

#[tokio::test]
async fn a_rule_that_denies_is_passed_through_no_link() {
    let tools = || podbay::tools::Options {
        set: podbay::tools::ToolSet::Full,
        ..podbay::tools::Options::default()
    };
    let deny = [
        "write_file(secret/**)",
        "read_file(secret/**)",
        "grep(secret/**)",
        "cd(secret/**)",
    ]
    .map(str::to_owned)
    .to_vec();
    let options = || policy::Options {
        deny: deny.clone(),
        ..policy::Options::default()
    };
    let wishes = || Wishes {
        policy: options(),
        tools: tools(),
        ..Wishes::default()
    };
    let calls = [
        ("write_file", json!({"path": "lnk/new", "content": "x"})),
        ("read_file", json!({"path": "lnk/k.txt"})),
        ("read_file", json!({"path": "kl"})),
        ("grep", json!({"pattern": "hidden", "path": "lnk"})),
        ("cd", json!({"path": "lnk"})),
    ];
    let (ended, desk) = made(wishes(), &calls).await;
    assert_eq!(ended.len(), calls.len());
    assert!(
        ended.iter().all(|status| *status != CallStatus::Ok),
        "{ended:?}"
    );
    assert!(!desk.guest.path("secret/new").exists());
    let calls = [
        ("write_file", json!({"path": "src/new", "content": "x"})),
        ("read_file", json!({"path": "Makefile"})),
    ];
    let (ended, _desk) = made(wishes(), &calls).await;
    assert_eq!(ended, [CallStatus::Ok; 2], "what no rule speaks of");
    // Without such a rule a link of the project is a path like another.
    let (ended, _desk) = made(Wishes::default(), &[("read_file", json!({"path": "kl"}))]).await;
    assert_eq!(ended, [CallStatus::Ok]);
}

/// A folder by letters that look alike is found by no tool of whose paths a rule speaks.
#[tokio::test]
async fn a_rule_that_denies_is_passed_by_no_name_that_looks_alike() {
    let tools = || podbay::tools::Options {
        set: podbay::tools::ToolSet::Full,
        ..podbay::tools::Options::default()
    };
    let deny = [
        "write_file(secret/**)",
        "read_file(secret/**)",
        "grep(secret/**)",
        "cd(secret/**)",
        "git_log(secret/**)",
    ]
    .map(str::to_owned);
    let options = policy::Options {
        deny: deny.to_vec(),
        ..policy::Options::default()
    };
    let name = "\u{ff53}ecret";
    let calls = [
        ("read_file", json!({"path": format!("{name}/k.txt")})),
        ("grep", json!({"pattern": "hidden", "path": name})),
        ("cd", json!({"path": name})),
        (
            "write_file",
            json!({"path": format!("{name}/k.txt"), "content": "x"}),
        ),
    ];
    let (ended, desk) = made(
        Wishes {
            policy: options,
            tools: tools(),
            ..Wishes::default()
        },
        &calls,
    )
    .await;
    // The last one makes a folder of that very name.
    assert!(
        ended[..3].iter().all(|status| *status != CallStatus::Ok),
        "{ended:?}"
    );
    assert_eq!(
        std::fs::read_to_string(desk.guest.path("secret/k.txt")).expect("there"),
        "hidden\n"
    );
    let (ended, desk) = made(
        Wishes {
            tools: tools(),
            ..Wishes::default()
        },
        &calls,
    )
    .await;
    assert_eq!(ended, [CallStatus::Ok; 4], "where no rule speaks of them");
    assert_eq!(
        std::fs::read_to_string(desk.guest.path("secret/k.txt")).expect("there"),
        "x"
    );
}

#[tokio::test]
async fn what_a_rule_allows_is_the_path_that_it_names() {
    let options = policy::Options {
        allow: vec!["write_file(src/**)".into()],
        ..policy::Options::default()
    };
    let wishes = Wishes {
        mode: Mode::Ask,
        policy: options,
        ..Wishes::default()
    };
    let calls = [
        ("write_file", json!({"path": "src/l", "content": "x"})),
        ("write_file", json!({"path": "src/d/new", "content": "x"})),
        ("write_file", json!({"path": "src/mine", "content": "x"})),
    ];
    let (ended, desk) = made(wishes, &calls).await;
    assert!(
        ended[0] != CallStatus::Ok && ended[1] != CallStatus::Ok && ended[2] == CallStatus::Ok,
        "{ended:?}"
    );
    assert_eq!(
        std::fs::read_to_string(desk.guest.path("Makefile")).expect("there"),
        "all:\n"
    );
    assert!(!desk.guest.path("new").exists());
}

#[tokio::test]
async fn a_person_who_says_yes_to_a_link_is_not_taken_to_mean_what_it_leads_to() {
    let yes = || Answered {
        answer: Answer::AllowSession,
        reason: None,
    };
    let wishes = Wishes {
        mode: Mode::Ask,
        answers: vec![yes(), yes()],
        ..Wishes::default()
    };
    let calls = [
        ("write_file", json!({"path": "src/l", "content": "x"})),
        ("write_file", json!({"path": "src/l", "content": "y"})),
        ("write_file", json!({"path": "Makefile", "content": "z"})),
    ];
    let (ended, desk) = made(wishes, &calls).await;
    assert!(
        ended[0] != CallStatus::Ok && ended[1] != CallStatus::Ok && ended[2] == CallStatus::Ok,
        "{ended:?}"
    );
    assert_eq!(
        std::fs::read_to_string(desk.guest.path("Makefile")).expect("there"),
        "z"
    );
}
