//! Tests of answers that cover more than one exact call: all edits, and the beginning of a command.

use super::Action;
use super::Autonomy;
use super::ExactCall;
use super::Mode;
use super::Options;
use super::Policy;
use super::Verdict;
use super::verdicts::asked;
use super::verdicts::is_allowed;
use super::verdicts::moved;
use super::verdicts::shell;
use super::verdicts::write;
use podbay_event::Answer;
use podbay_wire::AskedProgram;
use podbay_wire::AskedWrite;
use podbay_wire::Call;
use podbay_wire::EditFile;
use podbay_wire::ExecEffect;
use podbay_wire::ExecGate;
use podbay_wire::ExecRule;
use podbay_wire::WriteChange;

fn edit(path: &str) -> Action {
    Action::Box(Call::EditFile(EditFile {
        path: path.into(),
        edits: Vec::new(),
        create_if_missing: false,
        protected: false,
        known: None,
    }))
}

fn asking(options: &Options) -> Policy {
    let mut policy = Policy::new(Mode::Ask, options).expect("good rules");
    policy.set_exec_gate(ExecGate::Works);
    policy
}

/// Whether a command runs to its end without a question: with no rule for its first write.
fn is_free(policy: &Policy, command: &str) -> bool {
    match policy.judge(shell(command)) {
        Verdict::Allow { action, .. } => match action.get() {
            Action::Box(Call::Bash(bash)) => bash.write_gate.is_none(),
            other => panic!("{other:?}"),
        },
        Verdict::Ask(_) | Verdict::Deny { .. } => false,
    }
}

#[test]
fn all_edits_are_edits_by_the_tools_for_them_and_of_no_protected_name() {
    let options = Options {
        ask: vec!["edit_file(careful/**)".into()],
        deny: vec!["write_file(never/**)".into()],
        ..Options::default()
    };
    let mut policy = asking(&options);
    let question = asked(&policy, edit("a"));
    assert!(question.covers_edits);
    policy.remember(&question, Answer::AllowEdits);
    assert!(question.answered(Answer::AllowEdits).is_some());
    for action in [edit("a"), edit("src/b"), write("c")] {
        assert!(is_allowed(&policy, action.clone()), "{action:?}");
    }
    for action in [
        edit(".env"),
        write("id_rsa"),
        edit("careful/a"),
        write("never/a"),
        moved("a", "b"),
    ] {
        assert!(!is_allowed(&policy, action.clone()), "{action:?}");
    }
    assert!(!is_free(&policy, "touch a"), "no command");
    assert!(
        !asked(&policy, edit("careful/a")).covers_edits,
        "the rule would ask again"
    );
    assert!(!asked(&policy, edit(".env")).covers_edits);
    assert!(!asked(&policy, moved("a", "b")).covers_edits);
    // It is listed, and can be taken back.
    let (session, always) = policy.answers();
    assert_eq!((session.len(), always.len()), (1, 0));
    assert_eq!(
        session[0].words(),
        "edits (all of them, but of protected names)"
    );
    assert!(policy.forget(&session[0]) && !is_allowed(&policy, edit("a")));
    let architect = Options {
        autonomy: Some(Autonomy::Architect),
        ..Options::default()
    };
    assert!(!asked(&asking(&architect), edit("a")).covers_edits);
    // No other answer allows all edits.
    let mut policy = asking(&Options::default());
    for answer in [Answer::Allow, Answer::AllowSession, Answer::AllowAlways] {
        policy.remember(&asked(&policy, edit("once")), answer);
        if answer == Answer::Allow {
            continue;
        }
        assert!(is_allowed(&policy, edit("once")) && !is_allowed(&policy, edit("other")));
        policy = asking(&Options::default());
    }
    // What is no edit cannot be answered so.
    let question = asked(&policy, moved("a", "b"));
    policy.remember(&question, Answer::AllowEdits);
    assert!(!is_allowed(&policy, edit("a")));
}

#[track_caller]
fn check(command: &str, session: &str, free: &[&str], held: &[&str]) {
    let mut policy = asking(&Options::default());
    assert!(!is_free(&policy, command), "it is held at its first write");
    let scope = policy
        .lasting_scope_of(&shell(command))
        .expect("it may last");
    assert_eq!(scope.words(true).session, session);
    assert_eq!(
        scope.words(true).project,
        Some(format!("bash `{command}`")),
        "never a beginning"
    );
    assert_eq!(scope.words(false).project, None);
    policy.remember_scope(&scope, Answer::AllowSession);
    for free in [&[command], free].concat() {
        assert!(is_free(&policy, free), "{free}");
    }
    for held in held {
        assert!(!is_free(&policy, held), "{held}");
    }
    let (answers, _) = policy.answers();
    assert!(policy.forget(&answers[0]) && !is_free(&policy, command));
    policy.remember_scope(&scope, Answer::AllowAlways);
    assert!(is_free(&policy, command));
    for other in free {
        assert!(
            !is_free(&policy, other),
            "{other}: in the project it is exact"
        );
    }
}

#[test]
fn a_command_that_waits_is_allowed_by_its_plain_beginning_or_exactly() {
    check(
        "npm test",
        "bash `npm test` (with any words behind it)",
        &["npm test -- --watch", "npm test unit"],
        &[
            "npm run test",
            "npm test > log",
            "npm test; touch x",
            "npm test | tee x",
            "X=1 npm test",
            "npm testing",
            "npm test $X",
        ],
    );
    check(
        "cargo run --release",
        "bash `cargo run` (with any words behind it)",
        &["cargo run", "cargo run --bin x"],
        &["cargo build", "cargo"],
    );
    for exact in [
        "make",
        "rm -rf build",
        "python3 -c 'print(1)'",
        "./configure test",
        "touch a; touch b",
        "make test > log",
    ] {
        check(
            exact,
            &format!("bash `{exact}`"),
            &[],
            &[&format!("{exact} x"), "touch a"],
        );
    }
}

#[test]
fn a_beginning_covers_no_rule_no_other_folder_and_no_blocked_command() {
    let options = Options {
        ask: vec!["bash(npm run deploy*)".into()],
        deny: vec!["bash(npm run wipe*)".into()],
        ..Options::default()
    };
    let mut policy = asking(&options);
    let scope = policy.lasting_scope_of(&shell("npm run x")).expect("lasts");
    assert_eq!(
        scope.words(false).session,
        "bash `npm run x` (with any words behind it)"
    );
    let begun = ExactCall::of(&shell("npm run"), "")
        .expect("exact")
        .beginning("npm run");
    policy.allowed.insert(begun);
    assert!(is_free(&policy, "npm run build"));
    // Rules for the programs that a command starts hold in it as before.
    let Verdict::Allow { action, .. } = policy.judge(shell("npm run build")) else {
        panic!("it is allowed")
    };
    let Action::Box(Call::Bash(bash)) = action.get() else {
        panic!("{action:?}")
    };
    for (rule, effect) in [
        ("bash(npm run deploy*)", ExecEffect::Ask),
        ("bash(npm run wipe*)", ExecEffect::Deny),
    ] {
        let is_there = |own: &ExecRule| own.rule == rule && own.effect == effect;
        assert!(bash.rules.iter().any(is_there), "{rule}: {:?}", bash.rules);
    }
    policy.set_directory(&"sub".into());
    assert!(!is_free(&policy, "npm run build"));
    let git = ExactCall::of(&shell("git push"), "sub")
        .expect("exact")
        .beginning("git push");
    policy.allowed.insert(git);
    assert!(!is_free(&policy, "git push --force"));
    for once in ["git push origin", "make $X", "sudo make install"] {
        assert_eq!(policy.lasting_scope_of(&shell(once)), None, "{once}");
    }
    policy.set_mode(Mode::Auto);
    assert_eq!(policy.lasting_scope_of(&shell("make all")), None);
}

#[test]
fn a_program_that_a_rule_asks_about_is_allowed_with_exactly_its_arguments() {
    let options = Options {
        ask: vec!["bash(gh issue *)".into(), "bash(gh pr *)".into()],
        gate: vec!["bash(gh pr *)".into()],
        ..Options::default()
    };
    let mut policy = asking(&options);
    let program = |rule: &str, argv: &[&str]| AskedProgram {
        argv: argv.iter().map(|&word| word.into()).collect(),
        truncated: false,
        directory: "/workspace".into(),
        file: "/usr/bin/gh".into(),
        rule: rule.to_owned(),
        write: None,
    };
    let asked = program("bash(gh issue *)", &["gh", "issue", "a b"]);
    let scope = policy.lasting_scope_of_program(&asked).expect("it lasts");
    assert_eq!(
        (scope.words(true).session.as_str(), scope.project()),
        ("program `'gh' 'issue' 'a b'` in /workspace", None)
    );
    assert!(!policy.allows_program(&asked));
    policy.remember_scope(&scope, Answer::AllowSession);
    assert!(policy.allows_program(&asked));
    let others = [
        program("bash(gh issue *)", &["gh", "issue", "a", "b"]),
        program("bash(gh issue *)", &["gh", "issue", "a b", ""]),
        program("bash(gh issue *)", &["gh", "issue", "a' 'b"]),
        AskedProgram {
            directory: "/tmp".into(),
            ..asked.clone()
        },
        AskedProgram {
            truncated: true,
            ..asked.clone()
        },
        AskedProgram {
            write: Some(AskedWrite {
                path: "x".into(),
                change: WriteChange::Write,
                protected: false,
            }),
            ..asked.clone()
        },
    ];
    for other in &others {
        assert!(!policy.allows_program(other), "{other:?}");
    }
    for each_time in ["bash(gh pr *)", "a rule of the guest's own", ""] {
        let program = program(each_time, &["gh", "pr", "list"]);
        assert_eq!(policy.lasting_scope_of_program(&program), None);
    }
}
