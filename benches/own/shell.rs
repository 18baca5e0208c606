//! How many shell commands policy reads and judges in a second.

use std::hint::black_box;

use podbay::policy::Action;
use podbay::policy::Mode;
use podbay::policy::Options;
use podbay::policy::Policy;
use podbay::wire::Bash;
use podbay::wire::Call;

use super::Outcome;
use super::table::Table;
use super::table::Times;

/// The commands that the suite reads, too: ones that hide something, and everyday ones.
const COMMANDS: [&str; 2] = [
    include_str!("../../tests/it/fixtures/shell_commands.txt"),
    include_str!("../../tests/it/fixtures/everyday_commands.txt"),
];
const ROUNDS: usize = 15;
/// Commands that must be read in a second.
const BAR: f64 = 10_000.0;

pub(super) fn rows(table: &mut Table) -> Outcome<()> {
    let is_command =
        |line: &&str| !(line.is_empty() || line.starts_with("# ") || line.starts_with("[judged: "));
    let commands: Vec<Action> = COMMANDS
        .iter()
        .flat_map(|table| table.lines())
        .filter(is_command)
        .map(bash)
        .collect();
    let policy = Policy::new(Mode::Auto, &Options::default())?;
    let mut ours = Times::default();
    for _ in 0..ROUNDS {
        ours.add(|| {
            for command in &commands {
                drop(black_box(policy.judge(command.clone())));
            }
        });
    }
    let a_second = commands.len() as f64 / ours.at(50).as_secs_f64();
    let what = format!("reading and judging {} shell commands", commands.len());
    table.figure(
        &what,
        &format!("{a_second:.0} a second"),
        "≥ 10,000 a second",
        a_second >= BAR,
    );
    Ok(())
}

fn bash(line: &str) -> Action {
    let command = line
        .replace('\u{2424}', "\n")
        .replace('\u{240d}', "\r")
        .replace('\u{2409}', "\t")
        .replace('\u{2400}', "\0");
    let (timeout_ms, grace_ms, stream_bytes, tail_bytes) = (1, 1, 1, 1);
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
