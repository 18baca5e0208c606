//! Tests of what rules match and what they do not.

use super::Action;
use super::Rule;
use super::parsed_command::ParsedCommand;
use podbay_wire::Call;
use podbay_wire::MoveFile;
use podbay_wire::WriteFile;

fn write(path: &str) -> Action {
    Action::Box(Call::WriteFile(WriteFile {
        path: path.into(),
        content: String::new(),
        append: false,
        protected: false,
        known: None,
    }))
}

#[track_caller]
fn check(rule: &str, allowed: &[&str], not: &[&str]) {
    let rule = Rule::parse(rule).expect("a good rule");
    for command in allowed {
        assert!(rule.speaks_of(command, true), "{command}");
    }
    for command in not {
        assert!(!rule.speaks_of(command, true), "{command}");
    }
}

#[test]
fn a_path_rule_matches_that_path_only() {
    let rule = Rule::parse("write_file(src/**)").expect("a good rule");
    let matches = |path: &str| rule.matches(&write(path), None);
    assert!(matches("src/a/b.rs") && matches("/workspace/src/a.rs"));
    assert!(!matches("srcfoo/a.rs") && !matches("src/../Makefile"));
    assert!(!matches("x/../src/a.rs"), "what is unknown is not allowed");
    assert!(
        rule.may_match(&write("x/../src/a.rs"), None, false),
        "and nothing gets past a denial"
    );
    assert!(rule.may_match(&write("/workspace/x/../src/a.rs"), None, false));
}

#[test]
fn allow_rules_must_match_every_path_and_deny_rules_any() {
    let moved = |source: &str, destination: &str| {
        let (source, destination) = (source.into(), destination.into());
        Action::Box(Call::MoveFile(MoveFile {
            source,
            destination,
            overwrite: false,
            protected: false,
            known: None,
        }))
    };
    let rule = Rule::parse("move_file(src/**)").expect("a good rule");
    assert!(rule.matches(&moved("src/a", "src/b"), None));
    for (source, destination) in [("src/a", "b"), ("a", "src/b")] {
        assert!(
            !rule.matches(&moved(source, destination), None)
                && rule.may_match(&moved(source, destination), None, false)
        );
    }
    assert!(!rule.may_match(&moved("a", "b"), None, false));
}

#[test]
fn regular_expressions_match_project_relative_paths() {
    let rule = Rule::parse("write_file(/^src/.*[.]rs$/)").expect("a good rule");
    let matches = |path: &str| rule.matches(&write(path), None);
    assert!(matches("src/a/b.rs") && matches("/workspace/src/a.rs") && matches("./src/a.rs"));
    assert!(!matches("x/src/a.rs") && !matches("src/a.rsx") && !matches("x/../src/a.rs"));
    assert!(
        rule.may_match(&write("x/../src/a.rs"), None, false)
            && !rule.may_match(&write("a.rs"), None, false)
    );
    assert!(rule.speaks_of("src/a.rs", true) && !rule.speaks_of("a.rs", true));
}

#[test]
fn a_protected_name_is_allowed_only_by_a_rule_that_names_it() {
    for rule in [
        "write_file",
        "write_file(**)",
        "write_file(*)",
        "write_file(/./)",
        "write_file(sub/**)",
        "write_file(sub/.*)",
    ] {
        let rule = Rule::parse(rule).expect("a good rule");
        for path in [".env", "sub/.env", "sub/server.pem", ".ssh/config"] {
            assert!(!rule.matches(&write(path), None), "{} {path}", rule.text());
        }
    }
    for (rule, path) in [
        ("write_file(.env)", ".env"),
        ("write_file(**/.env)", "sub/.env"),
        ("write_file(.env*)", ".env.local"),
        ("write_file({.env,a})", ".env"),
        ("write_file(*.pem)", "server.pem"),
        ("write_file(**/*.pem)", "sub/server.pem"),
        ("write_file(**/*.pem)", "server.pem"),
        ("write_file(.ssh/**)", ".ssh/config"),
        ("write_file(/(^|/)[.]env$/)", "sub/.env"),
    ] {
        assert!(
            Rule::parse(rule)
                .expect("a good rule")
                .matches(&write(path), None),
            "{rule} {path}"
        );
    }
    assert!(
        !Rule::parse("write_file(*.pem)")
            .expect("a good rule")
            .matches(&write("sub/server.pem"), None),
        "a `*` stays within a folder"
    );
    let both = Action::Box(Call::MoveFile(MoveFile {
        source: ".env".into(),
        destination: "server.pem".into(),
        overwrite: false,
        protected: false,
        known: None,
    }));
    let matches = |rule: &str| Rule::parse(rule).expect("a good rule").matches(&both, None);
    assert!(
        matches("move_file({.env,*.pem})")
            && !matches("move_file({.env,*})")
            && !matches("move_file")
    );
}

#[test]
fn a_command_rule_matches_exactly_that_command() {
    check(
        "bash(cargo test)",
        &[
            "cargo test",
            " cargo test\n",
            "cargo test && cargo test",
            "cargo test 2>&1 >/dev/null",
            "cargo 'test'",
        ],
        &[
            "cargo test; touch x",
            "cargo test | tail",
            "cargo test\ntouch x",
            "A=b cargo test",
            "cargo test -q",
            "cargo test > x",
        ],
    );
    check(
        "bash(for x in a; do make; done)",
        &["for x in a; do make; done"],
        &["for x in b; do make; done", "make"],
    );
}

#[test]
fn a_pattern_allows_only_if_every_command_is_known_and_allowed() {
    check(
        "bash(git commit *)",
        &[
            "git commit -m x",
            "git commit",
            "git commit -m 'a b' && git commit --amend",
            "git commit -am x 2>&1",
            "g\"\"it commit",
        ],
        &[
            "git status && git commit",
            "git commit | tail -3",
            "git commit; touch X",
            "git commit && touch X",
            "git commit || touch X",
            "git commit | sh",
            "git commit & touch X",
            "git commit\ntouch X",
            "git commit -m $(touch X)",
            "git commit -m `touch X`",
            "git commit -F <(touch X)",
            "git commit > X",
            "git commit # c\ntouch X",
            "git commit \\\n; touch X",
            "git commit -m $X",
            "git commit *.rs",
            "git commit ~",
            "A=b git commit",
            "GIT_EDITOR=x git commit",
            "env -i git commit",
            "command git commit",
            "timeout 5 git commit",
            "$'git' commit",
            "alias git=x; git commit",
            "git() { rm x; }; git commit",
            "git -c core.editor=x commit",
            "./git commit",
            "git commit; source x",
            "git commit {a,b}\u{0}",
            "git commit\r",
            "git commit (",
            "(git commit)",
            "! git commit",
            "git commit <<E\nE",
            "",
            "# git commit",
        ],
    );
    check(
        "bash(/^cargo (test|check)( |$)/)",
        &["cargo test", "cargo check -q"],
        &["cargo testy", "xcargo test", "cargo test; rm x"],
    );
}

#[test]
fn patterns_allow_no_blocked_or_gated_command_they_do_not_name() {
    check("bash(rm *)", &["rm -rf target", "rm .env"], &["sudo rm x"]);
    check(
        "bash(git *)",
        &["git add .", "git reset --hard"],
        &["git push", "git -C . push"],
    );
    check(
        "bash(git push *)",
        &["git push", "git push origin main"],
        &["git push; git send-email", "git push $X"],
    );
    check(
        "bash(npm publish *)",
        &["npm publish --tag x"],
        &["npm deprecate x"],
    );
    check("bash(sudo *)", &[], &["sudo ls"]);
    check(
        "bash",
        &["make", "x=$(y)"],
        &["sudo ls", "git push", "npm publish; x=$(y)"],
    );
    check("bash(sudo ls)", &["sudo ls"], &["sudo ls -l"]);
}

#[track_caller]
fn check_denied(rule: &str, denied: &[&str], not: &[&str]) {
    let rule = Rule::parse(rule).expect("a good rule");
    let missed: Vec<&&str> = denied
        .iter()
        .filter(|command| !rule.speaks_of(command, false))
        .collect();
    let wrong: Vec<&&str> = not
        .iter()
        .filter(|command| rule.speaks_of(command, false))
        .collect();
    assert!(
        missed.is_empty() && wrong.is_empty(),
        "not denied: {missed:#?}\ndenied: {wrong:#?}"
    );
}

#[test]
fn a_denied_command_is_found_anywhere_in_a_script() {
    check_denied(
        "bash(rm *)",
        &[
            "rm x",
            "ls; rm x",
            "/bin/rm x",
            "r\\m 'x'",
            "A=b rm $X",
            "rm *",
            "ls > x && rm -rf a | b",
            "if a; then rm x; fi",
            "rm $(x)",
        ],
        // Other ways of starting it are detected where it runs.
        &[
            "ls",
            "echo rm x",
            "git rm x",
            "grep rm x",
            "env rm x",
            "bash -c 'rm x'",
            "$X y",
            "echo $(rm x)",
            "(rm x)",
            "ls (",
        ],
    );
    check_denied(
        "bash(git push)",
        &["git push", "ls; git push"],
        &["git push $X", "git push origin"],
    );
    check_denied(
        "bash(/curl/)",
        &["curl x", "echo $(curl x)", "echo curl"],
        &["$X y", "ls"],
    );
    check_denied("bash(a && b)", &["a && b"], &["a", "b && a"]);
}

/// The fallback described in `docs/security.md`.
#[test]
fn without_an_exec_gate_hidden_programs_evade_word_rules() {
    let rule = Rule::parse("bash(rm *)").expect("a good rule");
    let is_refused = |command: &str| {
        let reading = ParsedCommand::new(command);
        rule.may_match(&super::verdicts::shell(command), Some(&reading), false)
    };
    for command in [
        "env rm x",
        "find . -exec rm {} +",
        "xargs rm < list",
        "sh -c 'rm x'",
        "sh -c \"$X\"",
        "eval 'rm x'",
        "make clean",
        "./clean.sh",
        "echo 'rm x' > s; sh s",
        "cp /bin/rm y; ./y x",
        "alias y=rm; y x",
        "python3 -c 'import os; os.remove(\"x\")'",
        "git -c core.pager='rm x' log",
    ] {
        assert!(!is_refused(command), "{command}");
    }
    for command in [
        "rm x",
        "$X y",
        "r$X y",
        "rm $X",
        "echo $(rm x)",
        "(rm x)",
        "f() { rm x; }; f",
        "sh <<E\nrm x\nE",
        "ls; r'm' x",
    ] {
        assert!(is_refused(command), "{command}");
    }
    for command in [
        "ls $X",
        "ls *.rs",
        "for x in *; do ls $x; done",
        "x=$y make",
        "A=~ ls",
    ] {
        assert!(!is_refused(command), "{command}");
    }
}

#[test]
fn word_order_matters_except_for_gits_options() {
    check_denied(
        "bash(cargo run *)",
        &["cargo run", "cargo run -q"],
        &["cargo -q run", "cargo +nightly run"],
    );
    check_denied(
        "bash(cargo *run *)",
        &["cargo run", "cargo -q run", "cargo +nightly run --release"],
        &["cargo test", "cargo build"],
    );
    check_denied("bash(rm -rf *)", &["rm -rf x"], &["rm -fr x", "rm -r -f x"]);
    check_denied(
        "bash(npm *install *)",
        &["npm install", "npm --silent install x"],
        &["npm test"],
    );
    check_denied(
        "bash(git push *)",
        &[
            "git push",
            "git -C x push",
            "git -C $X push",
            "git -c a=b push -f",
        ],
        &["git log", "git $X"],
    );
    check_denied(
        "bash(git commit *)",
        &[
            "/usr/lib/git-core/git-commit -m x",
            "git -c user.name=x commit -m y",
        ],
        &["git -C . log"],
    );
}

#[test]
fn a_denial_matches_every_version_of_a_program() {
    check_denied(
        "bash(python3 *)",
        &[
            "python x.py",
            "python2 x",
            "python3.13 x",
            "/usr/bin/python x",
        ],
        &["python3-config --libs"],
    );
    check_denied(
        "bash(python *)",
        &["python3 x", "python3.12 -c x"],
        &["pythonic x"],
    );
    check_denied(
        "bash(pip install *)",
        &["pip3 install x"],
        &["pip list", "pip3 show install"],
    );
    check_denied("bash(base64 *)", &["base64 f"], &["base32 f"]);
    check_denied(
        "bash(gcc *)",
        &["gcc-12 -o a a.c", "gcc-4.8.5 a.c"],
        &["gccgo-12 a.go"],
    );
}

#[test]
fn senseless_rules_are_refused() {
    for bad in [
        "env(x)",
        "update_config(AGENTS.md)",
        "think(*)",
        "write_file(src/)",
        "write_file(/etc/)",
        "write_file(/workspace/src/)",
    ] {
        let error = Rule::parse(bad)
            .expect_err("it can match nothing")
            .to_string();
        assert!(error.contains("write `"), "{error}");
    }
    for bad in [
        "write_file(/(/)",
        "",
        "Bash",
        "bash(",
        "bash()",
        "bash( )",
        "bash(//)",
        "write_file(//)",
        "glob( )",
        "bash(/(/)",
        "write_file([)",
        "rm -rf",
        "bash(/a{1000}{1000}{1000}/)",
    ] {
        assert!(Rule::parse(bad).is_err(), "{bad}");
    }
    for bad in [
        "bash(git *)(x)",
        "bash(git *) x)",
        "write_file(src/**)(x)",
        r"write_file(/^\/workspace/)",
        "write_file(/^/etc/)",
    ] {
        assert!(Rule::parse(bad).is_err(), "{bad}");
    }
    for good in [
        "bash(/^cargo (test|check)/)",
        "bash(echo $(ls))",
        "bash(echo ')')",
        "write_file(/src/.*/)",
    ] {
        assert!(Rule::parse(good).is_ok(), "{good}");
    }
}
