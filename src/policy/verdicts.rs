//! Tests of verdicts: the table of modes, and the precedence of rules.

use super::Action;
use super::Approved;
use super::Autonomy;
use super::ExactCall;
use super::HostCall;
use super::Mode;
use super::Options;
use super::Policy;
use super::Question;
use super::RuleDecision;
use super::RuleEntry;
use super::RuleScope;
use super::Verdict;
use podbay_event::Answer;
use podbay_event::Decision;
use podbay_wire::Bash;
use podbay_wire::Call;
use podbay_wire::CopyFile;
use podbay_wire::ExecEffect;
use podbay_wire::ExecGate;
use podbay_wire::Hook;
use podbay_wire::ListDirectory;
use podbay_wire::MoveFile;
use podbay_wire::WriteFile;
use podbay_wire::WriteGate;
use podbay_wire::are_too_many;

pub(super) fn write(path: &str) -> Action {
    Action::Box(Call::WriteFile(WriteFile {
        path: path.into(),
        content: String::new(),
        append: false,
        protected: false,
        known: None,
    }))
}

pub(super) fn moved(source: &str, destination: &str) -> Action {
    let (source, destination) = (source.into(), destination.into());
    Action::Box(Call::MoveFile(MoveFile {
        source,
        destination,
        overwrite: false,
        protected: false,
        known: None,
    }))
}

pub(super) fn copied(source: &str, destination: &str) -> Action {
    let (source, destination) = (source.into(), destination.into());
    Action::Box(Call::CopyFile(CopyFile {
        source,
        destination,
        recursive: false,
        overwrite: false,
        protected: false,
        known: None,
    }))
}

pub(super) fn list() -> Action {
    Action::Box(Call::ListDirectory(ListDirectory {
        path: ".".into(),
        recursive: false,
        show_hidden: false,
        show_size: false,
        max_entries: 1,
    }))
}

fn bash() -> Action {
    let (timeout_ms, grace_ms, stream_bytes, tail_bytes) = (1, 1, 1, 1);
    let command = "make".to_owned();
    Action::Box(Call::Bash(Bash {
        command,
        working_directory: None,
        timeout_ms,
        grace_ms,
        stream_bytes,
        tail_bytes,
        background: false,
        rules: Vec::new(),
        write_gate: None,
    }))
}

#[track_caller]
pub(super) fn check(mode: Mode, options: &Options, action: Action, expected: Decision) {
    let policy = Policy::new(mode, options).expect("good rules");
    let found = match policy.judge(action) {
        Verdict::Allow { .. } => Decision::Allow,
        Verdict::Ask(_) => Decision::Ask,
        Verdict::Deny { .. } => Decision::Deny,
    };
    assert_eq!(found, expected);
}

#[test]
fn the_table_of_modes_is_stable_for_scripts() {
    let none = Options::default();
    let rows = [
        (
            list(),
            [Decision::Ask, Decision::Allow, Decision::Deny].map(|_| Decision::Allow),
        ),
        (
            write("a.rs"),
            [Decision::Ask, Decision::Allow, Decision::Deny],
        ),
        (bash(), [Decision::Ask, Decision::Allow, Decision::Deny]),
        (
            write(".env"),
            [Decision::Ask, Decision::Deny, Decision::Deny],
        ),
        (
            moved("a", "b"),
            [Decision::Ask, Decision::Allow, Decision::Deny],
        ),
        (
            moved("server.key", "b"),
            [Decision::Ask, Decision::Deny, Decision::Deny],
        ),
        (
            moved("a", ".git/hooks/x"),
            [Decision::Ask, Decision::Deny, Decision::Deny],
        ),
        (
            copied(".env", "b"),
            [Decision::Ask, Decision::Deny, Decision::Deny],
        ),
        (
            copied("server.key", "b"),
            [Decision::Ask, Decision::Allow, Decision::Deny],
        ),
    ];
    for (action, [ask, auto, deny]) in rows {
        check(Mode::Ask, &none, action.clone(), ask);
        check(Mode::Auto, &none, action.clone(), auto);
        check(Mode::Deny, &none, action, deny);
    }
}

#[test]
fn new_auto_run_files_may_be_written_but_not_git_or_secret_ones() {
    for path in [
        ".envrc",
        ".vscode/tasks.json",
        ".husky/pre-commit",
        ".github/workflows/ci.yml",
        "Makefile",
        "package.json",
    ] {
        for (mode, expected) in [
            (Mode::Auto, Decision::Allow),
            (Mode::Ask, Decision::Ask),
            (Mode::Deny, Decision::Deny),
        ] {
            check(mode, &Options::default(), write(path), expected);
        }
        let deny = Options {
            deny: vec![format!("write_file({path})")],
            ..Options::default()
        };
        check(Mode::Auto, &deny, write(path), Decision::Deny);
    }
    for path in [
        ".git/hooks/pre-commit",
        "sub/.git/config",
        ".podbay/config.toml",
        ".env",
        ".env.local",
        "id_rsa",
    ] {
        check(Mode::Auto, &Options::default(), write(path), Decision::Deny);
        check(Mode::Ask, &Options::default(), write(path), Decision::Ask);
    }
}

#[test]
fn denials_win_and_rules_allow_what_the_mode_would_ask() {
    let rules = Options {
        allow: vec!["write_file".into()],
        deny: vec!["write_file(secret/**)".into()],
        ..Options::default()
    };
    check(Mode::Ask, &rules, write("a.rs"), Decision::Allow);
    check(Mode::Ask, &rules, write("secret/a"), Decision::Deny);
    check(Mode::Deny, &rules, write("a.rs"), Decision::Deny);
    // Neither a whole tool nor a folder names what is protected.
    for rule in ["write_file", "write_file(**)"] {
        let bare = Options {
            allow: vec![rule.into()],
            ..Options::default()
        };
        check(Mode::Auto, &bare, write(".env"), Decision::Deny);
        check(Mode::Ask, &bare, write(".env"), Decision::Ask);
    }
    let named = Options {
        allow: vec!["write_file(.env)".into()],
        ..Options::default()
    };
    check(Mode::Auto, &named, write(".env"), Decision::Allow);
    check(Mode::Deny, &named, write(".env"), Decision::Deny);
    check(Mode::Auto, &named, write("sub/.env"), Decision::Deny);
}

pub(super) fn shell(command: &str) -> Action {
    let Action::Box(Call::Bash(bash)) = bash() else {
        unreachable!("it is one")
    };
    Action::Box(Call::Bash(Bash {
        command: command.to_owned(),
        ..bash
    }))
}

#[test]
fn a_gate_asks_each_time_and_denies_in_modes_without_questions() {
    let rules = Options {
        allow: vec!["bash(cargo *)".into()],
        gate: vec!["bash(cargo install *)".into()],
        ..Options::default()
    };
    check(Mode::Ask, &rules, shell("cargo test"), Decision::Allow);
    check(Mode::Ask, &rules, shell("cargo install x"), Decision::Ask);
    check(Mode::Auto, &rules, shell("cargo install x"), Decision::Deny);
    check(Mode::Auto, &rules, shell("$X"), Decision::Deny);
    let mut policy = Policy::new(Mode::Ask, &rules).expect("good rules");
    let question = asked(&policy, shell("cargo install x"));
    assert_eq!(
        question.lasting(),
        Err("the rule `bash(cargo install *)` requires approval each time")
    );
    policy.remember(&question, Answer::AllowAlways);
    // Nor does an answer from before the rule existed.
    policy.restore_answers(ExactCall::of(&shell("cargo install x"), ""));
    assert!(matches!(
        policy.judge(shell("cargo install x")),
        Verdict::Ask(_)
    ));
}

#[test]
fn hooks_are_allowed_by_settings_and_bound_by_hook_rules() {
    let hook = |command: &str| {
        let hook = Hook {
            command: command.to_owned(),
            input: String::new(),
            environment: Vec::new(),
            timeout_ms: 1000,
            grace_ms: 0,
            output_bytes: 0,
            rules: Vec::new(),
        };
        [
            Action::Box(Call::Hook(hook.clone())),
            Action::Host(HostCall::Hook(hook)),
        ]
    };
    let rules = Options {
        deny: vec!["bash".into(), "hook(curl *)".into()],
        gate: vec!["hook(git push *)".into()],
        ..Options::default()
    };
    for mode in [Mode::Auto, Mode::Ask, Mode::Deny] {
        let policy = Policy::new(mode, &rules).expect("good rules");
        let allows = |command: &str| {
            hook(command).map(|action| matches!(policy.judge_hook(action), Verdict::Allow { .. }))
        };
        assert_eq!(allows("cargo fmt --check"), [true, true]);
        for denied in ["curl x", "git push origin", "sudo ls"] {
            assert_eq!(allows(denied), [false, false], "{denied}");
        }
    }
    let to_the_letter = Options {
        allow: vec!["hook(sudo ls)".into()],
        ..Options::default()
    };
    let policy = Policy::new(Mode::Auto, &to_the_letter).expect("good rules");
    assert!(
        hook("sudo ls")
            .map(|action| matches!(policy.judge_hook(action), Verdict::Allow { .. }))
            .into_iter()
            .all(|allows| allows)
    );
}

#[test]
fn ask_rules_win_over_allow_rules_in_mode_ask() {
    let rules = Options {
        allow: vec!["bash(git *)".into()],
        ask: vec!["bash(git log *)".into()],
        ..Options::default()
    };
    check(Mode::Ask, &rules, shell("git log"), Decision::Ask);
    check(Mode::Ask, &rules, shell("git diff"), Decision::Allow);
    check(Mode::Auto, &rules, shell("git log"), Decision::Allow);
    check(Mode::Deny, &rules, shell("git diff"), Decision::Deny);
}

#[test]
fn a_command_too_long_for_a_question_is_refused_instead_of_asked() {
    let long = |letter: &str, n: usize| format!("make {}", letter.repeat(n));
    let policy = Policy::new(Mode::Ask, &Options::default()).expect("no rules");
    assert!(matches!(
        policy.judge(shell(&long("a", 60_000))),
        Verdict::Ask(_)
    ));
    // Escaped in a call, control characters are longer.
    for command in [
        long("a", 70_000),
        long("\u{1}", 12_000),
        format!("{}touch x", long(" ", 70_000)),
    ] {
        let Verdict::Deny { reason, .. } = policy.judge(shell(&command)) else {
            panic!("{} bytes", command.len())
        };
        assert!(
            reason.contains("longer than a question shows") && reason.contains("write_file"),
            "{reason}"
        );
    }
    let gate = Options {
        gate: vec!["bash(make *)".into()],
        ..Options::default()
    };
    assert!(matches!(
        Policy::new(Mode::Ask, &gate)
            .expect("a rule")
            .judge(shell(&long("a", 70_000))),
        Verdict::Deny { .. }
    ));
    // Allowed commands need no question anyway.
    let allow = Options {
        allow: vec!["bash(make *)".into()],
        ..Options::default()
    };
    assert!(matches!(
        Policy::new(Mode::Ask, &allow)
            .expect("a rule")
            .judge(shell(&long("a", 70_000))),
        Verdict::Allow { .. }
    ));
    check(
        Mode::Auto,
        &Options::default(),
        shell(&long("a", 70_000)),
        Decision::Allow,
    );
}

#[test]
fn a_tool_name_alone_denies_the_whole_tool() {
    let rules = |deny: &[&str]| Options {
        deny: deny.iter().map(|rule| (*rule).to_owned()).collect(),
        ..Options::default()
    };
    for (deny, expected) in [
        (
            &["mkdir", "write_file(src/**)", "bash(rm *)"][..],
            &["mkdir"][..],
        ),
        (&["bash"], &["bash", "start_background_process"]),
        (&["start_background_process"], &["start_background_process"]),
        (&[], &[]),
    ] {
        let policy = Policy::new(Mode::Auto, &rules(deny)).expect("good rules");
        assert_eq!(
            policy.denied_tools().into_iter().collect::<Vec<_>>(),
            expected,
            "{deny:?}"
        );
    }
}

#[test]
fn examples_of_a_rule_are_checked_on_load() {
    let example = |speaks_of: &str, not_of: &str| RuleEntry {
        decision: RuleDecision::Allow,
        rule: "bash(git commit *)".to_owned(),
        speaks_of: vec![speaks_of.to_owned()],
        not_of: vec![not_of.to_owned()],
        scope: RuleScope::Own,
        justification: String::new(),
    };
    let new = |example| {
        Policy::new(
            Mode::Ask,
            &Options {
                rules: vec![example],
                ..Options::default()
            },
        )
    };
    let policy = new(example("git commit -m x", "git commit; rm x")).expect("good examples");
    assert!(matches!(
        policy.judge(shell("git commit -m y")),
        Verdict::Allow { .. }
    ));
    for (bad, part) in [
        (
            example("git push", "x"),
            "does not match its example `git push`",
        ),
        (example("git commit", "git commit -a"), "`git commit -a`"),
    ] {
        let error = new(bad).expect_err("a bad example").to_string();
        assert!(
            error.contains("the rule `bash(git commit *)` cannot be used") && error.contains(part),
            "{error}"
        );
    }
}

#[track_caller]
pub(super) fn asked(policy: &Policy, action: Action) -> Question {
    match policy.judge(action) {
        Verdict::Ask(question) => question,
        verdict => panic!("it is not asked: {verdict:?}"),
    }
}

pub(super) fn is_allowed(policy: &Policy, action: Action) -> bool {
    matches!(policy.judge(action), Verdict::Allow { .. })
}

#[test]
fn allowed_paths_are_allowed_by_name_only() {
    let rules = |deny: &[&str], allow: &[&str]| Options {
        deny: deny.iter().map(|&rule| rule.to_owned()).collect(),
        allow: allow.iter().map(|&rule| rule.to_owned()).collect(),
        ..Options::default()
    };
    let is_by_name = |mode, rules: &Options| match Policy::new(mode, rules)
        .expect("good rules")
        .judge(write("src/a"))
    {
        Verdict::Allow { action, .. } => action.is_by_name(),
        Verdict::Ask(question) => question
            .answered(Answer::Allow)
            .expect("a yes")
            .is_by_name(),
        Verdict::Deny { reason, .. } => panic!("{reason}"),
    };
    assert!(
        !is_by_name(Mode::Auto, &Options::default()),
        "the sandbox holds"
    );
    assert!(
        !is_by_name(
            Mode::Auto,
            &rules(
                &["read_file(secret/**)", "bash(rm *)"],
                &["write_file(.env)"]
            )
        ),
        "nothing of what it does"
    );
    assert!(is_by_name(
        Mode::Auto,
        &rules(&["write_file(secret/**)"], &[])
    ));
    assert!(
        is_by_name(Mode::Ask, &rules(&[], &["write_file(src/**)"]))
            && is_by_name(Mode::Ask, &Options::default())
    );
    let policy =
        Policy::new(Mode::Deny, &rules(&["list_directory(secret/**)"], &[])).expect("good rules");
    assert!(
        matches!(policy.judge_by_hand(Action::Box(Call::Cd(podbay_wire::Cd { path: "x".into() }))), Verdict::Allow { action, .. } if !action.is_by_name())
    );
    let list = serde_json::json!({"path": "x", "recursive": false, "show_hidden": false, "show_size": false, "max_entries": 9});
    let list = Action::Box(Call::ListDirectory(
        serde_json::from_value(list).expect("a call"),
    ));
    assert!(
        matches!(policy.judge_by_hand(list), Verdict::Allow { action, .. } if action.is_by_name())
    );
}

/// Undo and review revert what a turn does to the session's repository.
#[test]
fn mode_auto_does_not_ask_about_reversible_commands() {
    let stash = |stash| {
        let git = serde_json::json!({"query": {"query": "stash", "stash": stash, "index": 0}, "path": ".", "timeout_ms": 1, "grace_ms": 1, "protected": false, "stream_bytes": 1, "tail_bytes": 1});
        Action::Box(Call::Git(serde_json::from_value(git).expect("a call")))
    };
    let commands = [
        "git checkout -- src/a.rs",
        "git restore .",
        "git reset --hard HEAD~1",
        "git clean -fd",
        "git rebase main",
        "git branch -D old",
        "git stash drop",
        "cp .env.example .env",
        "git ls-files -d | xargs rm",
        "find . -name '*.o' -delete",
        "rm -rf *",
    ];
    for action in [stash("drop"), stash("pop")]
        .into_iter()
        .chain(commands.map(shell))
    {
        check(
            Mode::Auto,
            &Options::default(),
            action.clone(),
            Decision::Allow,
        );
        check(
            Mode::Ask,
            &Options::default(),
            action.clone(),
            Decision::Ask,
        );
        check(Mode::Deny, &Options::default(), action, Decision::Deny);
    }
}

fn where_programs_are_seen(mode: Mode, options: &Options) -> Policy {
    let mut policy = Policy::new(mode, options).expect("good rules");
    policy.set_exec_gate(ExecGate::Works);
    policy
}

/// Returns a command as it may run.
fn allowed(policy: &Policy, command: &str) -> Bash {
    let Verdict::Allow { action, .. } = policy.judge(shell(command)) else {
        panic!("{command} may run")
    };
    let Action::Box(Call::Bash(bash)) = action.into_inner() else {
        unreachable!("it is one")
    };
    bash
}

/// Returns the exec rules of the user's rules: effect, rule and justification of each.
fn own(bash: &Bash) -> Vec<(ExecEffect, String, String)> {
    let rules = bash
        .rules
        .iter()
        .filter(|rule| !rule.rule.starts_with("built in: "));
    rules
        .map(|rule| (rule.effect, rule.rule.clone(), rule.justification.clone()))
        .collect()
}

/// Returns the exec rules of the program table: effects and lines.
fn built_in(bash: &Bash) -> Vec<(ExecEffect, String)> {
    let rules = bash
        .rules
        .iter()
        .filter_map(|rule| Some((rule.effect, rule.rule.strip_prefix("built in: ")?)));
    rules
        .map(|(effect, line)| (effect, line.to_owned()))
        .collect()
}

#[test]
fn allowed_commands_carry_rules_for_their_programs() {
    let [deny, gate, ask] =
        ["bash(git push*)", "bash(cargo publish *)", "bash(npm *)"].map(str::to_owned);
    let options = Options {
        deny: vec![
            deny.clone(),
            "bash(/^x/)".into(),
            "write_file(a)".into(),
            "bash(a && b)".into(),
        ],
        gate: vec![gate.clone()],
        ask: vec![ask.clone()],
        ..Options::default()
    };
    let because = "it needs the user's approval, and mode auto never asks".to_owned();
    assert_eq!(
        own(&allowed(
            &where_programs_are_seen(Mode::Auto, &options),
            "make"
        )),
        [
            (ExecEffect::Deny, deny.clone(), String::new()),
            (ExecEffect::Deny, gate.clone(), because)
        ]
    );
    let asking = [
        (ExecEffect::Deny, deny.clone()),
        (ExecEffect::Ask, gate),
        (ExecEffect::Ask, ask),
    ];
    let found = own(&allowed(
        &where_programs_are_seen(Mode::Ask, &options),
        "ls",
    ));
    assert_eq!(
        found
            .into_iter()
            .map(|(effect, rule, _)| (effect, rule))
            .collect::<Vec<_>>(),
        asking
    );
    // An approval of the whole command covers all parts of it, and a denial stays.
    let policy = where_programs_are_seen(Mode::Ask, &options);
    let Some(Action::Box(Call::Bash(bash))) = asked(&policy, shell("cargo publish x"))
        .answered(Answer::Allow)
        .map(Approved::into_inner)
    else {
        panic!("allowed")
    };
    assert_eq!(
        bash.rules
            .into_iter()
            .map(|rule| rule.rule)
            .collect::<Vec<_>>(),
        [deny]
    );
}

#[test]
fn exec_rules_carry_scope_and_justification_within_a_limit() {
    let rule = |n: usize| RuleEntry {
        decision: RuleDecision::Deny,
        rule: format!("bash(git push{n} *)"),
        speaks_of: Vec::new(),
        not_of: Vec::new(),
        scope: RuleScope::Anywhere,
        justification: "ask Ann".to_owned(),
    };
    let options = |n| Options {
        rules: (0..n).map(rule).collect(),
        ..Options::default()
    };
    let bash = allowed(&where_programs_are_seen(Mode::Auto, &options(1)), "make");
    assert_eq!(
        own(&bash),
        [(
            ExecEffect::Deny,
            "bash(git push0 *)".to_owned(),
            "ask Ann".to_owned()
        )]
    );
    // What the rule denies as it is written says why as well.
    let written = where_programs_are_seen(Mode::Auto, &options(1)).judge(shell("git push0 origin"));
    let Verdict::Deny { reason, .. } = written else {
        panic!("the rule denies it")
    };
    assert!(reason.ends_with("denies it: ask Ann"), "{reason}");
    let most = 256 - built_in(&bash).len();
    assert!(!are_too_many(
        &allowed(&where_programs_are_seen(Mode::Auto, &options(most)), "make").rules
    ));
    let error = Policy::new(Mode::Auto, &options(most + 1))
        .expect_err("too many")
        .to_string();
    assert!(error.contains("at most 256"), "{error}");
}

#[test]
fn programs_that_reach_others_are_gated_unless_allowed() {
    let with = |allow: &[&str]| Options {
        allow: allow.iter().map(|&rule| rule.to_owned()).collect(),
        ..Options::default()
    };
    let taken = |mode, allow: &[&str], command: &str| {
        built_in(&allowed(
            &where_programs_are_seen(mode, &with(allow)),
            command,
        ))
    };
    let all = taken(Mode::Auto, &[], "make");
    assert!(
        all.contains(&(ExecEffect::Deny, "git push".to_owned()))
            && all.iter().any(|(_, line)| line.starts_with("sudo|")),
        "{all:?}"
    );
    let push = |mode, allow: &[&str], command: &str| {
        let found = taken(mode, allow, command)
            .into_iter()
            .find(|(_, line)| line == "git push");
        found.map(|(effect, _)| effect)
    };
    assert_eq!(push(Mode::Ask, &[], "make"), Some(ExecEffect::Ask));
    // A rule that names it, or that names what starts it.
    assert_eq!(
        (
            push(Mode::Auto, &["bash(git push *)"], "make"),
            push(Mode::Auto, &["bash(git push *)"], "cd a && git push x")
        ),
        (None, None)
    );
    assert!(!taken(Mode::Auto, &["bash(git push *)"], "make").is_empty());
    for (allow, command) in [
        ("bash(make *)", "make all"),
        ("bash(x=$(y))", "x=$(y)"),
        ("bash(sudo ls)", "sudo ls"),
    ] {
        for mode in [Mode::Auto, Mode::Ask] {
            assert_eq!(taken(mode, &[allow], command), [], "{allow}");
        }
    }
    // A rule that names no program allows none of the table.
    for allow in ["bash", "bash(*)", "bash(/./)", "bash(git *)"] {
        assert_eq!(
            push(Mode::Auto, &[allow], "make && sh x"),
            Some(ExecEffect::Deny),
            "{allow}"
        );
    }
    let mut policy = where_programs_are_seen(Mode::Ask, &Options::default());
    policy.restore_answers(ExactCall::of(&shell("make"), ""));
    assert_eq!(
        (
            allowed(&policy, "make").rules,
            allowed(&policy, "make").write_gate
        ),
        (Vec::new(), None)
    );
    // The user decided about a hook already, except for blocked programs.
    let hook = serde_json::json!({"command": "x", "input": "", "environment": [], "timeout_ms": 1, "grace_ms": 1, "output_bytes": 1});
    let hook = Action::Box(Call::Hook(serde_json::from_value(hook).expect("a call")));
    let Verdict::Allow { action, .. } = policy.judge_hook(hook) else {
        panic!("it may run")
    };
    let Action::Box(Call::Hook(hook)) = action.into_inner() else {
        unreachable!("it is one")
    };
    assert!(
        !hook.rules.is_empty()
            && hook
                .rules
                .iter()
                .all(|rule| !rule.rule.contains("push") && rule.effect == ExecEffect::Deny)
    );
}

#[test]
fn in_mode_ask_commands_run_until_their_first_write() {
    let options = Options {
        unasked_writes: vec!["target/".into()],
        allow: vec!["bash(make *)".into()],
        ..Options::default()
    };
    let policy = where_programs_are_seen(Mode::Ask, &options);
    for command in [
        "ls",
        "cargo test",
        "for x in *; do rm $x; done",
        "cat <<E > f\nE",
        "git commit -m x",
        "$X",
    ] {
        let Verdict::Allow { action, reason } = policy.judge(shell(command)) else {
            panic!("{command}")
        };
        let Action::Box(Call::Bash(bash)) = action.into_inner() else {
            unreachable!("it is one")
        };
        assert_eq!(
            (bash.write_gate, &*reason),
            (
                Some(WriteGate {
                    unasked: vec!["target/".into()]
                }),
                "it asks at its first write"
            )
        );
    }
    assert_eq!(
        allowed(&policy, "make all").write_gate,
        None,
        "a rule allows it"
    );
    // Commands that are asked about before they run, and then write without a further question.
    let background = |command: &str| {
        let Action::Box(Call::Bash(bash)) = shell(command) else {
            unreachable!("it is one")
        };
        Action::Box(Call::Bash(Bash {
            background: true,
            ..bash
        }))
    };
    for action in [
        shell("git push"),
        shell("x=$y; sudo ls"),
        shell("npm publish"),
        background("npm start"),
    ] {
        let answered = asked(&policy, action)
            .answered(Answer::Allow)
            .map(Approved::into_inner);
        assert!(matches!(
            answered,
            Some(Action::Box(Call::Bash(Bash {
                write_gate: None,
                ..
            })))
        ));
    }
    let rules = Options {
        ask: vec!["bash(cargo *)".into()],
        gate: vec!["bash(docker *)".into()],
        ..Options::default()
    };
    let ruled = where_programs_are_seen(Mode::Ask, &rules);
    for command in ["cargo test", "ls; docker ps"] {
        asked(&ruled, shell(command));
    }
    assert!(allowed(&ruled, "sh x").write_gate.is_some());
    let architect = where_programs_are_seen(
        Mode::Ask,
        &Options {
            autonomy: Some(Autonomy::Architect),
            ..Options::default()
        },
    );
    asked(&architect, shell("ls"));
    // Without a write gate the user is asked first; the other modes never ask.
    check(Mode::Ask, &options, shell("ls"), Decision::Ask);
    assert_eq!(
        allowed(&where_programs_are_seen(Mode::Auto, &options), "ls").write_gate,
        None
    );
    check(Mode::Deny, &options, shell("ls"), Decision::Deny);
}

/// Scripts that mention more than they start, and scripts that do not say what they start.
#[test]
fn with_an_exec_gate_scripts_are_not_denied_for_their_text() {
    let rules = Options {
        deny: vec!["bash(git push*)".into()],
        ..Options::default()
    };
    let judge = |gate: ExecGate, command: &str| {
        let mut policy = Policy::new(Mode::Auto, &rules).expect("good rules");
        policy.set_exec_gate(gate);
        matches!(policy.judge(shell(command)), Verdict::Allow { .. })
    };
    for command in [
        "sh \"$F\"",
        "ls *.rs; git log $X",
        "for f in *; do rm $f; done",
        "python3 -c 'print(\"git push\")'",
        "grep -r 'git push' docs",
        "git commit -m 'git push'",
        "bash run.sh git push",
        "git log",
    ] {
        assert!(
            judge(ExecGate::Works, command) && judge(ExecGate::Absent, command),
            "{command}"
        );
    }
    for command in [
        "$PY -c 'print(1)'",
        "$(which python3) x.py",
        "$cmd",
        "git $VERB",
        "git -C $D $V",
        "ls (",
        "cat <<E\nE",
        "echo $(x)",
    ] {
        assert!(judge(ExecGate::Works, command), "{command}");
        assert!(
            !judge(ExecGate::Absent, command) && !judge(ExecGate::Taken, command),
            "{command}"
        );
    }
    for command in [
        "git push",
        "ls; git -C . push -f",
        "x=$y; git push",
        "if a; then git push; fi",
    ] {
        assert!(!judge(ExecGate::Works, command), "{command}");
    }
    // A rule that matches scripts only is certain.
    for rule in ["bash(/curl/)", "bash(a && b)", "write_file(a)"] {
        let policy = Policy::new(
            Mode::Auto,
            &Options {
                deny: vec![rule.into()],
                ..Options::default()
            },
        )
        .expect("a good rule");
        assert!(is_allowed(&policy, shell("$X y")), "{rule}");
    }
    let denied = Policy::new(Mode::Auto, &rules)
        .expect("good rules")
        .judge(shell("echo $(x)"));
    let Verdict::Deny { reason, .. } = denied else {
        panic!("it is not said what it starts")
    };
    assert!(
        reason.contains(
            "the command cannot be parsed completely: it has a command substitution; write it out"
        ),
        "{reason}"
    );
}

#[test]
fn plan_mode_leaves_reading_and_commands_and_denies_every_tool_that_changes_something() {
    let judged = |mode: Mode, is_planning: bool, action: Action| {
        let mut policy = where_programs_are_seen(mode, &Options::default());
        policy.set_planning(is_planning);
        policy.judge(action)
    };
    for mode in [Mode::Auto, Mode::Ask] {
        for action in [list(), bash(), shell("git log"), shell("rm -rf src")] {
            let Verdict::Allow { action, .. } = judged(mode, true, action) else {
                panic!("{mode:?} allows it")
            };
            // It cannot write, so that nobody has to be asked about it.
            if let Action::Box(Call::Bash(bash)) = action.into_inner() {
                assert_eq!(bash.write_gate, None);
            }
        }
        for action in [write("a.rs"), moved("a", "b")] {
            let Verdict::Deny { reason, .. } = judged(mode, true, action.clone()) else {
                panic!("plan mode denies it")
            };
            assert!(
                reason.contains("plan mode is on") && reason.contains("create_plan"),
                "{reason}"
            );
            assert!(!matches!(judged(mode, false, action), Verdict::Deny { .. }));
        }
    }
    // Rules and modes that deny more still do.
    assert!(matches!(
        judged(Mode::Deny, true, bash()),
        Verdict::Deny { .. }
    ));
    assert!(matches!(
        judged(Mode::Auto, true, shell("git push")),
        Verdict::Deny { .. }
    ));
}
