//! What the guest sees of the programs that a call starts.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use podbay::wire::BytesPath;
use podbay::wire::Call;
use podbay::wire::CommandEnded;
use podbay::wire::End;
use podbay::wire::Output;
use podbay::wire::Program;
use podbay::wire::message::ExecGate;
use podbay::wire::programs::MAX_PROGRAMS;

use crate::support::guest::TestGuest;
use crate::support::guest::bash;
use crate::support::guest::exec;

/// Returns the programs as lines: how often, which, where it was not in the project.
fn lines(guest: &TestGuest, ended: &CommandEnded) -> Vec<String> {
    let top = guest.workspace.path().canonicalize().expect("there");
    let line = |program: &Program| {
        let words: Vec<String> = program.argv.iter().map(BytesPath::to_text).collect();
        let at = program.directory.as_path().strip_prefix(&top).map_or("?".to_owned(), |path| path.display().to_string());
        let at = if at.is_empty() { at } else { format!(" in {at}") };
        let code = program.exit_code.filter(|&code| code != 0).map_or_else(String::new, |code| format!(" -> {code}"));
        format!("{} {}{}{at}{code}", program.count, words.join(" "), if program.truncated { " …" } else { "" })
    };
    ended.programs.listed.iter().map(line).collect()
}

async fn ran(guest: &TestGuest, command: &str) -> (CommandEnded, Vec<String>, String) {
    let (ended, printed) = guest.bash(bash(command)).await;
    let lines = lines(guest, &ended);
    (ended, lines, printed)
}

#[tokio::test]
async fn a_call_tells_each_program_that_it_started_with_its_real_arguments() {
    let guest = TestGuest::start().await;
    assert_eq!(guest.facts.exec_gate, ExecGate::Works);
    fs::create_dir(guest.path("sub")).expect("made");
    for (name, text) in
        [("one", "#!/bin/sh\n/bin/echo from a script\n"), ("two", "#!/usr/bin/env -S sh -c 'exit 4'\n"), ("three", "/bin/echo plain\n")]
    {
        fs::write(guest.path(name), text).expect("written");
        fs::set_permissions(guest.path(name), fs::Permissions::from_mode(0o755)).expect("ours");
    }
    let command = "v=/bin/ec; w=\"a b\"; \"$v\"ho \"$w\" ''; cd sub; for n in 1 2 3; do /bin/true; done; cd ..; ./one; ./two; ./three; \
                   (exec -a other /bin/cat /dev/null); sh -c 'exit 7'; sh -c 'kill -9 $$'; /bin/echo last";
    let (ended, mut lines, printed) = ran(&guest, command).await;
    assert!(ended.end == End::Exited { code: 0 } && printed.ends_with("\nlast\n"), "{printed}");
    // Exit codes are told by kernels from 6.15 on.
    if !lines.iter().any(|line| line.contains("->")) {
        lines = lines.iter().map(|line| line.replace(" -> ", "")).collect();
    }
    let expected = [
        "1 /bin/echo a b ",
        "3 /bin/true in sub",
        "1 /bin/sh ./one",
        "1 /bin/echo from a script",
        "1 /usr/bin/env -S sh -c 'exit 4' ./two -> 4",
        "1 sh -c exit 4 ./two -> 4",
        "1 /bin/echo plain",
        "1 other /dev/null",
        "1 sh -c exit 7 -> 7",
        "1 sh -c kill -9 $$ -> 137",
        "1 /bin/echo last",
    ];
    assert_eq!(lines, expected);
    // A call that starts nothing has nothing to tell, and the person's own programs go unseen.
    let (ended, ..) = ran(&guest, "cd sub; echo $((1 + 1)) > file").await;
    assert!(ended.programs.is_empty(), "{:?}", ended.programs);
    let mut printed = Vec::new();
    let output = guest.call(Call::Exec(exec(&["sh", "-c", "/bin/true; /bin/true"])), &mut printed).await.expect("answers");
    assert!(matches!(&output, Output::Command(ended) if ended.programs.is_empty()), "{output:?}");
}

#[tokio::test]
async fn arguments_of_any_bytes_and_any_length_are_told_within_bounds() {
    let guest = TestGuest::start().await;
    let (_, lines, _) = ran(&guest, "/bin/true $'\\xff\\e[31m' 'a\nb'").await;
    assert_eq!(lines, ["1 /bin/true \\xff\\x1b[31m a\\x0ab"]);
    let (ended, lines, printed) =
        ran(&guest, "/bin/echo $(seq 100000) | wc -c; x=$(head -c 130000 /dev/zero | tr '\\0' x); /bin/true $x").await;
    assert_eq!(printed.trim(), "588895");
    let echo = lines.iter().find(|line| line.starts_with("1 /bin/echo 1 2 3 ")).expect("told");
    let long = lines.iter().find(|line| line.starts_with("1 /bin/true xxx")).expect("told");
    for line in [echo, long] {
        assert!(line.ends_with(" …") && (1900..2200).contains(&line.len()), "{} {line}", line.len());
    }
    assert!(!ended.programs.is_too_much());
}

#[tokio::test]
async fn more_programs_than_are_told_are_counted_and_none_is_lost() {
    let guest = TestGuest::start().await;
    let (ended, lines, _) =
        ran(&guest, "for n in $(seq 300); do /bin/true $n & done; wait; for n in $(seq 50); do /bin/true 1; done").await;
    // `seq` twice.
    assert_eq!(ended.programs.n_started(), 352, "{lines:?}");
    assert_eq!((ended.programs.listed.len(), ended.programs.n_more), (MAX_PROGRAMS, 352 - 50 - MAX_PROGRAMS as u64));
    assert!(lines.contains(&"51 /bin/true 1".to_owned()), "{lines:?}");
}

#[tokio::test]
async fn who_ends_the_supervisor_ends_the_call_and_nothing_runs_unseen() {
    let guest = TestGuest::start().await;
    let output =
        guest.call(Call::Bash(bash("kill -9 $PPID; /bin/echo unseen >> told; sleep 3; /bin/echo unseen >> told")), &mut Vec::new()).await;
    assert!(matches!(output, Ok(Output::Fault(_))), "{output:?}");
    assert!(!guest.path("told").exists() || fs::read_to_string(guest.path("told")).expect("readable").is_empty());
    let (ended, ..) = ran(&guest, "/bin/true").await;
    assert_eq!(ended.end, End::Exited { code: 0 });
}
