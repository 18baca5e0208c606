//! Tests of commands disguised as, or added to, one that a rule allows.

use super::Mode;
use super::Options;
use super::Policy;
use super::Verdict;
use super::action::Action;
use podbay_wire::Bash;
use podbay_wire::Call;

/// Returns a policy that asks about everything except what one rule allows.
fn allowing(rule: &str) -> Policy {
    let options = Options {
        allow: vec![rule.into()],
        ..Options::default()
    };
    Policy::new(Mode::Ask, &options).expect("a rule")
}

fn is_allowed(policy: &Policy, command: &str) -> bool {
    let (command, working_directory, background) = (command.to_owned(), None, false);
    let bash = Bash {
        command,
        working_directory,
        timeout_ms: 1,
        grace_ms: 1,
        stream_bytes: 1,
        tail_bytes: 1,
        background,
        rules: Vec::new(),
        write_gate: None,
    };
    matches!(
        policy.judge(Action::Box(Call::Bash(bash))),
        Verdict::Allow { .. }
    )
}

const RULES: [&str; 3] = ["bash(make check)", "bash(make *)", "bash(/^make check$/)"];

#[test]
fn m_10_commands_beside_an_allowed_one_are_asked_about() {
    for rule in RULES {
        let policy = allowing(rule);
        assert!(is_allowed(&policy, "make check"), "{rule}");
        for command in [
            "make check; touch X",
            "make check && touch X",
            "make check || touch X",
            "make check | tee X",
            "make check & touch X",
            "make check\ntouch X",
            "make check $(touch X)",
            "make check `touch X`",
            "make check <(touch X)",
            "make check >X",
            "make check >>X",
            "make check 2>X",
            "make check <<E\n$(touch X)\nE",
            "make check <<<$(touch X)",
            "make check # no more\ntouch X",
            "make check \\\n; touch X",
            "touch X; make check",
            "(make check; touch X)",
            "{ make check; touch X; }",
            "if make check; then touch X; fi",
            "while make check; do touch X; done",
            "case $(touch X) in *) make check;; esac",
            "make check\r\ntouch X",
            "make check \"$(touch X)\"",
            "make check ${X:=$(touch X)}",
        ] {
            assert!(!is_allowed(&policy, command), "{rule}: {command}");
        }
    }
}

#[test]
fn m_11_commands_disguised_as_an_allowed_one_are_asked_about() {
    for rule in RULES {
        let policy = allowing(rule);
        for command in [
            "A=b make check",
            "PATH=. make check",
            "MAKEFLAGS=-ftouch make check",
            "env -i make check",
            "env MAKEFLAGS=x make check",
            "alias make=touch; make check",
            "make() { touch X; }; make check",
            "function make { touch X; }; make check",
            "export PATH=.; make check",
            ". ./other; make check",
            "eval make check",
            "exec -a x make check",
            "./make check",
            "/tmp/make check",
            "m\u{430}ke check",
            "$M check",
            "${M:-make} check",
            "m?ke check",
        ] {
            assert!(!is_allowed(&policy, command), "{rule}: {command}");
        }
    }
    for rule in ["bash(make check)", "bash(/^make check$/)"] {
        assert!(!is_allowed(&allowing(rule), "make check\u{200b}"), "{rule}");
    }
}
