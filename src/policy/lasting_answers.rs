//! Tests of answers: how long each lasts, and which calls it covers.

use super::Action;
use super::Autonomy;
use super::ExactCall;
use super::Mode;
use super::Options;
use super::Policy;
use super::Verdict;
use super::verdicts::asked;
use super::verdicts::check;
use super::verdicts::copied;
use super::verdicts::is_allowed;
use super::verdicts::list;
use super::verdicts::moved;
use super::verdicts::shell;
use super::verdicts::write;
use podbay_event::Answer;
use podbay_event::Decision;
use podbay_event::Lasting;
use podbay_wire::ApplyPatch;
use podbay_wire::Call;
use podbay_wire::FilePatch;
use podbay_wire::PatchAction;

#[test]
fn a_one_time_question_names_the_commands_directory() {
    let mut policy = Policy::new(Mode::Ask, &Options::default()).expect("no rules");
    let scope = |policy: &Policy, command: &str| asked(policy, shell(command)).lasting_scope(true);
    let because = "the command cannot be parsed completely (it has a variable)";
    assert_eq!(
        scope(&policy, "touch $x"),
        Lasting::Once {
            because: because.to_owned()
        }
    );
    policy.set_directory(&"/workspace/src".into());
    assert_eq!(
        scope(&policy, "touch $x"),
        Lasting::Once {
            because: format!("it runs in src; {because}")
        }
    );
    assert_eq!(
        scope(&policy, "touch x"),
        Lasting::Exactly {
            what: "bash `touch x` in src".to_owned(),
            always: true,
            edits: false
        }
    );
}

#[test]
fn a_blocked_command_is_asked_about_each_time() {
    let mut policy = Policy::new(Mode::Ask, &Options::default()).expect("no rules");
    for command in ["sudo ls", "git push --force", "npm publish"] {
        let question = asked(&policy, shell(command));
        assert!(
            question
                .lasting()
                .is_err_and(|because| because.ends_with("is asked about each time")),
            "{command}"
        );
        policy.remember(&question, Answer::AllowSession);
        policy.restore_answers(ExactCall::of(&shell(command), ""));
        assert!(
            matches!(policy.judge(shell(command)), Verdict::Ask(_)),
            "{command}"
        );
    }
    let to_the_letter = Options {
        allow: vec!["bash(sudo ls)".into()],
        ..Options::default()
    };
    check(
        Mode::Auto,
        &to_the_letter,
        shell("sudo ls"),
        Decision::Allow,
    );
    let Verdict::Deny { reason, .. } = Policy::new(Mode::Auto, &Options::default())
        .expect("no rules")
        .judge(shell("sudo ls"))
    else {
        panic!("must deny")
    };
    assert_eq!(
        reason,
        "mode auto does not allow to run a blocked command (the sandbox has no other user and no way to gain privileges); do without it"
    );
}

#[test]
fn a_lasting_answer_covers_exactly_the_question() {
    for answer in [Answer::AllowSession, Answer::AllowAlways] {
        let mut policy = Policy::new(Mode::Ask, &Options::default()).expect("no rules");
        for action in [
            shell("cargo test -p 'a*b'"),
            write("src/a*.rs"),
            moved("a", "b"),
        ] {
            let question = asked(&policy, action.clone());
            policy.remember(&question, answer);
            assert!(is_allowed(&policy, action));
            assert!(question.answered(answer).is_some());
        }
        let others = [
            shell("cargo test -p axb"),
            shell("cargo test -p 'a*b' -q"),
            shell("cargo test -p 'a*b'; touch x"),
            shell("cargo"),
            write("src/ab.rs"),
            write("src/a*.rs.bak"),
            write("x/../src/a*.rs"),
            moved("a", "c"),
            moved("b", "a"),
            copied("a", "b"),
        ];
        for other in others {
            assert!(
                matches!(policy.judge(other.clone()), Verdict::Ask(_)),
                "{other:?}"
            );
        }
        policy.set_directory(&"sub".into());
        assert!(
            !is_allowed(&policy, shell("cargo test -p 'a*b'")),
            "in another folder"
        );
        assert!(
            is_allowed(&policy, write("src/a*.rs")),
            "files are named from the project's"
        );
        policy.set_directory(&"/workspace".into());
        assert!(is_allowed(&policy, shell("cargo test -p 'a*b'")));
    }
}

#[test]
fn architect_asks_about_each_change_and_command_each_time() {
    let rules = Options {
        autonomy: Some(Autonomy::Architect),
        allow: vec!["bash".into(), "write_file".into(), "update_config".into()],
        ..Options::default()
    };
    let mut policy = Policy::new(Mode::Ask, &rules).expect("good rules");
    let update = serde_json::json!({"section": "A", "content": "b"});
    let update = Action::Box(Call::UpdateConfig(
        serde_json::from_value(update).expect("a call"),
    ));
    for action in [
        shell("ls"),
        shell("cargo test"),
        write("a"),
        moved("a", "b"),
        update.clone(),
    ] {
        let question = asked(&policy, action.clone());
        assert!(
            question
                .lasting()
                .is_err_and(|because| because.contains("`architect`"))
        );
        policy.remember(&question, Answer::AllowSession);
        policy.restore_answers(ExactCall::of(&action, ""));
        asked(&policy, action);
    }
    assert!(is_allowed(&policy, list()) && policy.is_architect());
    let asks = Policy::new(
        Mode::Ask,
        &Options {
            autonomy: Some(Autonomy::Ask),
            ..Options::default()
        },
    )
    .expect("no rules");
    assert!(
        is_allowed(&asks, update),
        "whoever else is asked gets to see it afterwards"
    );
    check(Mode::Auto, &rules, write("a"), Decision::Allow);
    assert!(
        !Policy::new(Mode::Auto, &rules)
            .expect("good rules")
            .is_architect(),
        "a mode that is named wins"
    );
}

#[test]
fn commands_that_cannot_be_parsed_are_allowed_once_only() {
    let mut policy = Policy::new(Mode::Ask, &Options::default()).expect("no rules");
    for command in [
        "$X",
        "rm *.o",
        "make $(cat x)",
        "eval \"$x\"",
        "cargo test $1",
        "A=$B make",
        "make > $X",
        "sh $x; . y",
        "(",
    ] {
        let question = asked(&policy, shell(command));
        assert!(question.lasting().is_err(), "{command}");
        policy.remember(&question, Answer::AllowAlways);
        policy.restore_answers(ExactCall::of(&shell(command), ""));
        assert!(
            matches!(policy.judge(shell(command)), Verdict::Ask(_)),
            "{command}"
        );
        assert!(
            question.answered(Answer::AllowAlways).is_some(),
            "this once"
        );
    }
    assert!(
        asked(&policy, write("x/../a")).lasting().is_err(),
        "nor a path with .."
    );
    let long = format!("make {}", "x".repeat(5000));
    assert!(
        asked(&policy, shell(&long))
            .lasting()
            .is_err_and(|because| because.contains("too long"))
    );
}

#[test]
fn unicode_spaces_make_a_different_command() {
    let rules = Options {
        allow: vec!["bash(./y.sh)".into()],
        ..Options::default()
    };
    let mut policy = Policy::new(Mode::Ask, &rules).expect("good rules");
    policy.restore_answers(ExactCall::of(&shell("./x.sh"), ""));
    for command in ["./x.sh", " ./x.sh\t\n", "./y.sh", "./y.sh "] {
        assert!(is_allowed(&policy, shell(command)), "{command:?}");
    }
    for space in [
        '\u{2003}', '\u{a0}', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{3000}',
    ] {
        for command in [
            format!("./x.sh{space}"),
            format!("{space}./x.sh"),
            format!("./y.sh{space}"),
            format!("{space}./y.sh"),
        ] {
            assert!(!is_allowed(&policy, shell(&command)), "{command:?}");
        }
    }
    assert_ne!(
        ExactCall::of(&shell("./x.sh\\ "), ""),
        ExactCall::of(&shell("./x.sh\\"), "")
    );
}

#[test]
fn answers_about_a_patch_cover_its_files_and_actions() {
    let update = |to: Option<&str>| PatchAction::Update {
        hunks: Vec::new(),
        to: to.map(Into::into),
    };
    let add = || PatchAction::Add {
        content: "x".to_owned(),
    };
    let delete = || PatchAction::Delete { hunks: Vec::new() };
    let patch = |files: Vec<(&str, PatchAction)>, dry_run: bool| {
        let files = files
            .into_iter()
            .map(|(path, action)| FilePatch {
                path: path.into(),
                action,
                notes: Vec::new(),
            })
            .collect();
        Action::Box(Call::ApplyPatch(ApplyPatch {
            files,
            dry_run,
            protected: false,
            known: None,
        }))
    };
    let all = [
        patch(vec![("a", update(None)), ("b", add())], false),
        patch(vec![("a", update(Some("b")))], false),
        patch(vec![("a", add()), ("b", update(None))], false),
        patch(vec![("a", update(None)), ("b", update(None))], false),
        patch(vec![("a", add()), ("b", delete())], false),
        patch(vec![("a", delete()), ("b", add())], false),
        patch(vec![("a", delete()), ("b", delete())], false),
    ];
    for answered in &all {
        let mut policy = Policy::new(Mode::Ask, &Options::default()).expect("no rules");
        policy.remember(&asked(&policy, answered.clone()), Answer::AllowSession);
        for action in &all {
            assert_eq!(
                is_allowed(&policy, action.clone()),
                action == answered,
                "{answered:?} {action:?}"
            );
        }
    }
    // A dry run writes nothing; it does not read secrets.
    let policy = Policy::new(Mode::Ask, &Options::default()).expect("no rules");
    assert!(is_allowed(
        &policy,
        patch(vec![("a", update(None)), ("b", add())], true)
    ));
    assert!(!is_allowed(
        &policy,
        patch(vec![("a", update(None)), (".env", update(None))], true)
    ));
}

#[test]
fn a_denial_for_the_session_wins_and_is_not_asked_again() {
    let rules = Options {
        allow: vec!["bash(make *)".into()],
        ask: vec!["bash(make *)".into()],
        ..Options::default()
    };
    let mut policy = Policy::new(Mode::Ask, &rules).expect("good rules");
    for command in ["make install", "make $X"] {
        let question = asked(&policy, shell(command));
        policy.remember(&question, Answer::DenySession);
        assert!(question.answered(Answer::DenySession).is_none());
        assert!(matches!(policy.judge(shell(command)), Verdict::Deny { .. }));
    }
    assert!(matches!(policy.judge(shell("make all")), Verdict::Ask(_)));
}

#[test]
fn a_permanent_approval_changes_no_mode_and_no_denial() {
    let answers = [
        ExactCall::of(&shell("git push"), ""),
        ExactCall::of(&write("a"), ""),
        ExactCall::of(&shell("make"), ""),
    ];
    let rules = Options {
        deny: vec!["write_file(a)".into()],
        ..Options::default()
    };
    for (mode, allowed) in [
        (Mode::Ask, [false, false, true]),
        (Mode::Auto, [false, false, true]),
        (Mode::Deny, [false; 3]),
    ] {
        let mut policy = Policy::new(mode, &rules).expect("good rules");
        policy.restore_answers(answers.iter().flatten().cloned());
        assert_eq!(
            [shell("git push"), write("a"), shell("make")]
                .map(|action| is_allowed(&policy, action)),
            allowed,
            "{mode:?}"
        );
    }
    let mut policy = Policy::new(Mode::Ask, &Options::default()).expect("no rules");
    policy.restore_answers(answers.into_iter().flatten());
    let make = ExactCall::of(&shell("make"), "").expect("exact");
    assert!(policy.forget(&make) && !policy.forget(&make) && !is_allowed(&policy, shell("make")));
}

#[test]
fn answers_inside_the_project_do_not_apply_outside() {
    let mut policy = Policy::new(Mode::Ask, &Options::default()).expect("no rules");
    for (here, other) in [("/workspace/usr", "/usr"), ("/workspace", "/")] {
        policy.set_directory(&here.into());
        policy.remember(&asked(&policy, shell("make")), Answer::AllowSession);
        assert!(is_allowed(&policy, shell("make")));
        policy.set_directory(&other.into());
        assert!(!is_allowed(&policy, shell("make")), "{other}");
    }
}
