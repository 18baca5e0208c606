//! What the gate costs the programs of a call: a command under rules, each of its programs looked
//! at before and after its exec, against the same command of a user's own, which has no gate.

use std::path::Path;
use std::time::Duration;

use podbay::wire::Bash;
use podbay::wire::Call;
use podbay::wire::End;
use podbay::wire::ExecEffect;
use podbay::wire::ExecRule;
use podbay::wire::ExecScope;
use podbay::wire::Output;
use podbay::wire::message::ExecGate;

use super::Outcome;
use super::guest::TestGuest;
use super::guest::bash;
use super::guest::exec;
use super::table::Table;
use super::table::Times;

const ROUNDS: usize = 7;
/// Programs that one command starts, one after the other.
const N_EXECS: u32 = 500;
const MAX_PER_EXEC_MS: f64 = 0.25;

pub(super) fn rows(table: &mut Table) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let guest = TestGuest::start().await;
        if guest.link.exec_gate() != ExecGate::Works {
            return Err("the kernel asks nobody about programs here, so that there is no gate to measure".into());
        }
        prepare(guest.workspace.path())?;
        let (gated, free) = compare(&guest, &format!("for n in $(seq {N_EXECS}); do /bin/true; done")).await?;
        let mut differences: Vec<f64> =
            gated.0.iter().zip(&free.0).map(|(with, without)| milliseconds(*with) - milliseconds(*without)).collect();
        differences.sort_unstable_by(f64::total_cmp);
        let each = differences.get(ROUNDS / 2).copied().unwrap_or_default() / f64::from(N_EXECS);
        let plain = milliseconds(free.at(50)) / f64::from(N_EXECS);
        let what = format!("a program under the gate, less the same without it, which takes {plain:.2} ms");
        table.figure(&what, &format!("{each:.3} ms"), "≤ 0.25 ms", each <= MAX_PER_EXEC_MS);
        let (gated, free) = compare(&guest, "make -s -j8 -f execs.mk").await?;
        table.row("`make -j8` of 400 targets with three empty programs each, under the gate, against none", &gated, &free, Some(1.35));
        let (gated, free) = compare(&guest, "rm -f *.o && make -s -j2 -f objects.mk").await?;
        table.row("`make -j2` of 24 C files, under the gate, against none", &gated, &free, Some(1.05));
        Ok(())
    })
}

/// Writes what `make` is given.
fn prepare(folder: &Path) -> Outcome<()> {
    let names = |stem: &str, n: usize| {
        (0..n)
            .map(|n| format!("{stem}{n}"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let execs = format!(
        "all: {0}\n{0}:\n\t@/bin/true\n\t@/bin/true\n\t@/bin/true\n.PHONY: {0}\n",
        names("t", 400)
    );
    std::fs::write(folder.join("execs.mk"), execs)?;
    let objects: String = (0..24).map(|n| format!("f{n}.o ")).collect();
    std::fs::write(
        folder.join("objects.mk"),
        format!("all: {objects}\n%.o: %.c\n\tgcc -O1 -c $< -o $@\n"),
    )?;
    for n in 0..24 {
        let functions: String = (0..40)
            .map(|f| format!("int f{n}_{f}(int x) {{ return x * {f} + printf(\"%d\", x); }}\n"))
            .collect();
        std::fs::write(
            folder.join(format!("f{n}.c")),
            format!("#include <stdio.h>\n#include <stdlib.h>\n{functions}"),
        )?;
    }
    Ok(())
}

/// Runs a command under the gate and without it, in turns.
async fn compare(guest: &TestGuest, command: &str) -> Outcome<(Times, Times)> {
    let (mut gated, mut free) = (Times::default(), Times::default());
    // The first of each brings the files into the kernel's caches.
    for round in 0..=ROUNDS {
        let calls = [
            Call::Bash(Bash {
                rules: vec![rule()],
                ..bash(command)
            }),
            Call::Exec(exec(&["bash", "-c", command])),
        ];
        for (call, times) in calls.into_iter().zip([&mut gated, &mut free]) {
            let begun = std::time::Instant::now();
            let output = guest.call(call, &mut Vec::new()).await?;
            let took = begun.elapsed();
            match output {
                Output::Command(ended) if ended.end == (End::Exited { code: 0 }) => {}
                other => return Err(format!("`{command}`: {other:?}").into()),
            }
            if round > 0 {
                times.0.push(took);
            }
        }
    }
    Ok((gated, free))
}

/// A rule that none of the programs is about, so that each is judged and continues.
fn rule() -> ExecRule {
    let words = [&["git"][..], &["push"]]
        .map(|words| words.iter().map(|&word| word.to_owned()).collect())
        .to_vec();
    let (rule, justification) = ("bash(git push*)".to_owned(), String::new());
    ExecRule {
        effect: ExecEffect::Deny,
        words,
        more: true,
        options_between: false,
        unless: Vec::new(),
        scope: ExecScope::Anywhere,
        rule,
        justification,
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
