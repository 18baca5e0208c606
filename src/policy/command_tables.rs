//! Tests over the complete tables of commands in `tests/it/fixtures`.

use super::Action;
use super::Mode;
use super::Options;
use super::Policy;
use super::Verdict;
use super::verdicts::shell;
use podbay_wire::Call;
use podbay_wire::ExecGate;

/// Commands with verdicts, evasions among them.
const TABLE: &str = include_str!("../../tests/it/fixtures/shell_commands.txt");

/// Commands as agents typically run them.
const EVERYDAY: &str = include_str!("../../tests/it/fixtures/everyday_commands.txt");

/// Returns the lines of a table that are commands, or their headers.
fn lines(table: &str) -> impl Iterator<Item = String> {
    let lines = table
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("# "));
    lines.map(|line| {
        line.replace('␤', "\n")
            .replace('␍', "\r")
            .replace('␉', "\t")
            .replace('␀', "\0")
    })
}

fn policy(mode: Mode, gate: ExecGate, deny: &[&str]) -> Policy {
    let deny = deny.iter().map(|&rule| rule.to_owned()).collect();
    let mut policy = Policy::new(
        mode,
        &Options {
            deny,
            ..Options::default()
        },
    )
    .expect("a good rule");
    policy.set_exec_gate(gate);
    policy
}

fn verdict(policy: &Policy, command: &str) -> &'static str {
    match policy.judge(shell(command)) {
        Verdict::Allow { action, .. } => match action.into_inner() {
            Action::Box(Call::Bash(bash)) if bash.write_gate.is_some() => "held",
            _ => "allow",
        },
        Verdict::Ask(_) => "ask",
        Verdict::Deny { .. } => "deny",
    }
}

#[test]
fn every_command_of_the_table_gets_its_verdict() {
    let policies = [
        policy(Mode::Auto, ExecGate::Works, &[]),
        policy(Mode::Ask, ExecGate::Works, &[]),
        policy(Mode::Auto, ExecGate::Absent, &["bash(rm *)"]),
    ];
    let (mut expected, mut n_commands, mut wrong) = (String::new(), 0, Vec::new());
    for line in lines(TABLE) {
        if let Some(header) = line
            .strip_prefix("[judged: ")
            .and_then(|rest| rest.strip_suffix(']'))
        {
            header.clone_into(&mut expected);
            continue;
        }
        n_commands += 1;
        let verdicts = policies
            .each_ref()
            .map(|policy| verdict(policy, &line))
            .join(" ");
        if verdicts != expected {
            wrong.push(format!("{line:?} is {verdicts} and not {expected}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {n_commands} commands are judged otherwise:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!((400..=700).contains(&n_commands), "{n_commands}");
}

#[test]
fn everyday_commands_are_allowed() {
    let auto = [ExecGate::Works, ExecGate::Absent, ExecGate::Taken]
        .map(|gate| policy(Mode::Auto, gate, &[]));
    let ask = policy(Mode::Ask, ExecGate::Works, &[]);
    let with_a_rule = policy(Mode::Auto, ExecGate::Works, &["bash(git push*)"]);
    let mut n_commands = 0;
    for line in lines(EVERYDAY) {
        n_commands += 1;
        assert!(
            auto.iter().all(|policy| verdict(policy, &line) == "allow"),
            "{line}"
        );
        assert_eq!(verdict(&ask, &line), "held", "{line}");
        // A command that only mentions it is not meant.
        let is_push = line == "git push --dry-run";
        assert_eq!(
            verdict(&with_a_rule, &line),
            if is_push { "deny" } else { "allow" },
            "{line}"
        );
    }
    assert!(n_commands >= 400, "{n_commands}");
}
