//! What the guest sees of the programs that a call starts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::pin::Pin;
use std::sync::Mutex;
use std::time::Duration;
use std::time::Instant;

use podbay::event::Answer;
use podbay::event::Kind;
use podbay::policy::Mode;
use podbay::sandbox::link::Asks;
use podbay::wire::AskedProgram;
use podbay::wire::Bash;
use podbay::wire::Because;
use podbay::wire::BytesPath;
use podbay::wire::Call;
use podbay::wire::CommandEnded;
use podbay::wire::Denied;
use podbay::wire::End;
use podbay::wire::ExecEffect;
use podbay::wire::ExecRule;
use podbay::wire::ExecScope;
use podbay::wire::Output;
use podbay::wire::Program;
use podbay::wire::message::ExecGate;
use podbay::wire::message::Stream;
use podbay::wire::programs::MAX_PROGRAMS;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::ScriptedModel;
use crate::support::desk::Desk;
use crate::support::desk::Wishes;
use crate::support::guest::PATIENCE;
use crate::support::guest::TestGuest;
use crate::support::guest::bash;
use crate::support::guest::exec;

/// Returns the programs as lines: how often, which, where it was not in the project.
fn lines(guest: &TestGuest, ended: &CommandEnded) -> Vec<String> {
    let top = guest.workspace.path().canonicalize().expect("there");
    let line = |program: &Program| {
        let words: Vec<String> = program.argv.iter().map(BytesPath::to_text).collect();
        let at = program
            .directory
            .as_path()
            .strip_prefix(&top)
            .map_or("?".to_owned(), |path| path.display().to_string());
        let at = if at.is_empty() {
            at
        } else {
            format!(" in {at}")
        };
        let code = program
            .exit_code
            .filter(|&code| code != 0)
            .map_or_else(String::new, |code| format!(" -> {code}"));
        format!(
            "{} {}{}{at}{code}",
            program.count,
            words.join(" "),
            if program.truncated { " …" } else { "" }
        )
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
    for (name, text) in [
        ("one", "#!/bin/sh\n/bin/echo from a script\n"),
        ("two", "#!/usr/bin/env -S sh -c 'exit 4'\n"),
        ("three", "/bin/echo plain\n"),
    ] {
        fs::write(guest.path(name), text).expect("written");
        fs::set_permissions(guest.path(name), fs::Permissions::from_mode(0o755)).expect("ours");
    }
    let command = "v=/bin/ec; w=\"a b\"; \"$v\"ho \"$w\" ''; cd sub; for n in 1 2 3; do /bin/true; done; cd ..; ./one; ./two; ./three; \
                   (exec -a other /bin/cat /dev/null); sh -c 'exit 7'; sh -c 'kill -9 $$'; /bin/echo last";
    let (ended, mut lines, printed) = ran(&guest, command).await;
    assert!(
        ended.end == End::Exited { code: 0 } && printed.ends_with("\nlast\n"),
        "{printed}"
    );
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
    // A call that starts nothing has nothing to tell, and the user's own programs go unseen.
    let (ended, ..) = ran(&guest, "cd sub; echo $((1 + 1)) > file").await;
    assert!(ended.programs.is_empty(), "{:?}", ended.programs);
    let mut printed = Vec::new();
    let output = guest
        .call(
            Call::Exec(exec(&["sh", "-c", "/bin/true; /bin/true"])),
            &mut printed,
        )
        .await
        .expect("answers");
    assert!(
        matches!(&output, Output::Command(ended) if ended.programs.is_empty()),
        "{output:?}"
    );
}

#[tokio::test]
async fn arguments_of_any_bytes_and_any_length_are_told_within_bounds() {
    let guest = TestGuest::start().await;
    let (_, lines, _) = ran(&guest, "/bin/true $'\\xff\\e[31m' 'a\nb'").await;
    assert_eq!(lines, ["1 /bin/true \\xff\\x1b[31m a\\x0ab"]);
    let (ended, lines, printed) = ran(
        &guest,
        "/bin/echo $(seq 100000) | wc -c; x=$(head -c 130000 /dev/zero | tr '\\0' x); /bin/true $x",
    )
    .await;
    assert_eq!(printed.trim(), "588895");
    let echo = lines
        .iter()
        .find(|line| line.starts_with("1 /bin/echo 1 2 3 "))
        .expect("told");
    let long = lines
        .iter()
        .find(|line| line.starts_with("1 /bin/true xxx"))
        .expect("told");
    for line in [echo, long] {
        assert!(
            line.ends_with(" …") && (1900..2200).contains(&line.len()),
            "{} {line}",
            line.len()
        );
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
    assert_eq!(
        (ended.programs.listed.len(), ended.programs.n_more),
        (MAX_PROGRAMS, 352 - 50 - MAX_PROGRAMS as u64)
    );
    assert!(lines.contains(&"51 /bin/true 1".to_owned()), "{lines:?}");
}

#[tokio::test]
async fn who_ends_the_supervisor_ends_the_call_and_nothing_runs_unseen() {
    let guest = TestGuest::start().await;
    let output = guest
        .call(
            Call::Bash(bash(
                "kill -9 $PPID; /bin/echo unseen >> told; sleep 3; /bin/echo unseen >> told",
            )),
            &mut Vec::new(),
        )
        .await;
    assert!(matches!(output, Ok(Output::Fault(_))), "{output:?}");
    assert!(
        !guest.path("told").exists()
            || fs::read_to_string(guest.path("told"))
                .expect("readable")
                .is_empty()
    );
    let (ended, ..) = ran(&guest, "/bin/true").await;
    assert_eq!(ended.end, End::Exited { code: 0 });
}

fn rule(effect: ExecEffect, scope: ExecScope, words: &str) -> ExecRule {
    let words = words.split(' ').map(|word| vec![word.to_owned()]).collect();
    let (rule, justification) = ("bash(the rule)".to_owned(), "not here".to_owned());
    ExecRule {
        effect,
        words,
        more: true,
        options_between: false,
        unless: Vec::new(),
        scope,
        rule,
        justification,
    }
}

fn denies(words: &str) -> Vec<ExecRule> {
    vec![rule(ExecEffect::Deny, ExecScope::Own, words)]
}

/// Returns what was not let run, as lines, and what was printed.
async fn denied(guest: &TestGuest, rules: Vec<ExecRule>, command: &str) -> (Vec<String>, String) {
    let (ended, printed) = guest
        .bash(Bash {
            rules,
            ..bash(command)
        })
        .await;
    let line = |denied: &Denied| {
        let words: Vec<String> = denied.argv.iter().map(BytesPath::to_text).collect();
        let because = if let Because::Rule { justification, .. } = &denied.because {
            justification.clone()
        } else {
            format!("{:?}", denied.because)
        };
        format!(
            "{} {}{}: {because}",
            denied.count,
            words.join(" "),
            if denied.killed { " (killed)" } else { "" }
        )
    };
    (ended.denied.iter().map(line).collect(), printed)
}

#[tokio::test]
async fn a_denied_program_does_not_run_however_it_is_called_and_others_do() {
    let guest = TestGuest::start().await;
    let target = guest.path("touched");
    fs::write(guest.path("script"), "#!/bin/sh\ntouch touched\n").expect("written");
    fs::write(guest.path("by-line"), "#!/usr/bin/touch\n").expect("written");
    for name in ["script", "by-line"] {
        fs::set_permissions(guest.path(name), fs::Permissions::from_mode(0o755)).expect("ours");
    }
    std::os::unix::fs::symlink("/usr/bin/touch", guest.path("link")).expect("linked");
    fs::copy("/usr/bin/touch", guest.path("copy")).expect("copied");
    fs::write(
        guest.path("grown"),
        [fs::read("/usr/bin/touch").expect("there"), b"x".to_vec()].concat(),
    )
    .expect("written");
    fs::set_permissions(guest.path("grown"), fs::Permissions::from_mode(0o755)).expect("ours");
    fs::copy("/lib64/ld-linux-x86-64.so.2", guest.path("loader")).expect("copied");
    let commands = [
        "touch touched",
        "/usr/bin/touch touched",
        "t=tou; \"$t\"ch touched",
        "eval 'tou''ch touched'",
        "echo dG91Y2ggdG91Y2hlZAo= | base64 -d | sh",
        "./script",
        "sh script",
        "env -S 'touch touched'",
        "echo touched | xargs touch",
        "find . -maxdepth 0 -exec touch touched \\;",
        "nice timeout 5 nohup setsid -w touch touched",
        "(exec -a ls touch touched)",
        "./link touched",
        "exec 3</usr/bin/touch; /proc/self/fd/3 touched",
        "exec 3</usr/bin/touch; /dev/fd/3 touched",
        "/lib64/ld-linux-x86-64.so.2 /usr/bin/touch touched",
        "/lib64/ld-linux-x86-64.so.2 --argv0 ls /usr/bin/touch touched",
        "./loader /usr/bin/touch touched",
        "./copy touched",
        "./grown touched",
        "(sleep 0.1; touch touched) & wait",
        "(setsid -f sh -c 'sleep 0.1; touch touched'); sleep 0.2",
    ];
    for command in commands {
        let (lines, printed) = denied(&guest, denies("touch"), command).await;
        assert!(!target.exists(), "{command}: {lines:?} {printed}");
        assert!(
            lines.len() == 1 && lines[0].ends_with(": not here"),
            "{command}: {lines:?} {printed}"
        );
    }
    let (lines, _) = denied(&guest, denies("touch"), "./by-line touched").await;
    assert!(lines.len() == 1 && !target.exists(), "{lines:?}");
    for (command, expected) in [
        ("echo touch touched", "touch touched\n"),
        ("touched() { echo function; }; touched", "function\n"),
        ("$(which cat) < /dev/null; printf '%s\\n' touch", "touch\n"),
        ("sh -c 'echo \"touch touched\"'", "touch touched\n"),
    ] {
        assert_eq!(
            denied(&guest, denies("touch"), command).await,
            (Vec::new(), expected.to_owned()),
            "{command}"
        );
    }
}

#[tokio::test]
async fn what_a_program_starts_is_its_own_unless_the_rule_is_for_anywhere() {
    let guest = TestGuest::start().await;
    let by_program = "python3 -c 'import subprocess; subprocess.run([\"touch\", \"touched\"])'";
    let (lines, _) = denied(&guest, denies("touch"), by_program).await;
    assert!(
        lines.is_empty() && guest.path("touched").exists(),
        "{lines:?}"
    );
    fs::remove_file(guest.path("touched")).expect("made");
    for command in [
        by_program,
        "python3 -c 'import os; os.system(\"touch touched\")'",
        "python3 -c 'import os; os.execv(\"/usr/bin/touch\", [\"ls\", \"touched\"])'",
        "python3 -c 'import os; p = os.posix_spawnp(\"touch\", [\"touch\", \"touched\"], os.environ); os.waitpid(p, 0)'",
        "python3 -c 'import os, threading as t; x = t.Thread(target=lambda: os.execvp(\"touch\", [\"touch\", \"touched\"])); x.start(); x.join()'",
        "python3 -c 'import ctypes, os; ctypes.CDLL(None).prctl(4, 0); os.execvp(\"touch\", [\"touch\", \"touched\"])'",
        "python3 -c 'import os; f = os.memfd_create(\"x\"); os.write(f, open(\"/usr/bin/touch\", \"rb\").read()); os.execve(f, [\"zzz\", \"touched\"], os.environ)'",
        "perl -e 'exec \"touch\", \"touched\"'",
    ] {
        let (lines, printed) = denied(
            &guest,
            vec![rule(ExecEffect::Deny, ExecScope::Anywhere, "touch")],
            command,
        )
        .await;
        assert!(
            lines.len() == 1 && !guest.path("touched").exists(),
            "{command}: {lines:?} {printed}"
        );
    }
}

#[tokio::test]
async fn a_call_whose_own_shell_a_rule_names_runs_and_what_it_starts_does_not() {
    let guest = TestGuest::start().await;
    let (lines, printed) = denied(
        &guest,
        denies("*"),
        "echo built in; /bin/echo started; bash -c 'echo other'",
    )
    .await;
    assert_eq!(
        lines,
        [
            "1 /bin/echo started: not here",
            "1 bash -c echo other: not here"
        ],
        "{printed}"
    );
    assert!(
        printed.starts_with("built in\n") && !printed.contains("started\n"),
        "{printed}"
    );
}

/// Says the same to each question, after a while, and remembers what was asked.
struct Says {
    yes: bool,
    after: Duration,
    asked: Mutex<Vec<AskedProgram>>,
}

impl Says {
    fn new(yes: bool, after_ms: u64) -> Self {
        Self {
            yes,
            after: Duration::from_millis(after_ms),
            asked: Mutex::default(),
        }
    }

    fn asked(&self) -> Vec<String> {
        let asked = self.asked.lock().expect("no panic");
        asked
            .iter()
            .map(|program| {
                program
                    .argv
                    .iter()
                    .map(BytesPath::to_text)
                    .collect::<Vec<_>>()
                    .join(" ")
            })
            .collect()
    }
}

impl Asks for Says {
    fn ask<'a>(&'a self, program: AskedProgram) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>> {
        self.asked.lock().expect("no panic").push(program);
        Box::pin(async {
            tokio::time::sleep(self.after).await;
            self.yes
        })
    }
}

/// Runs a command of whose `echo asked` a user is asked; returns how it ended and what it
/// printed.
async fn asking(
    guest: &TestGuest,
    says: &Says,
    bash: Bash,
    cancel: &CancellationToken,
) -> (CommandEnded, String) {
    let mut printed = Vec::new();
    let rules = vec![rule(ExecEffect::Ask, ExecScope::Anywhere, "echo asked*")];
    let call = Call::Bash(Bash { rules, ..bash });
    let haste = CancellationToken::new();
    let on_chunk = |_: Stream, bytes: &[u8]| printed.extend_from_slice(bytes);
    let output = guest
        .link
        .call_asking(call, on_chunk, says, cancel, &haste, PATIENCE)
        .await
        .expect("answers");
    let Output::Command(ended) = output else {
        panic!("{output:?}")
    };
    (ended, String::from_utf8_lossy(&printed).into_owned())
}

#[tokio::test]
async fn a_program_that_is_asked_about_waits_and_the_time_of_its_call_stands_still() {
    let guest = TestGuest::start().await;
    let says = Says::new(true, 1500);
    let command = Bash {
        timeout_ms: 1000,
        ..bash("/bin/echo asked one; /bin/echo asked one; /bin/echo free")
    };
    let (ended, printed) = asking(&guest, &says, command, &CancellationToken::new()).await;
    assert_eq!(
        (ended.end, printed.as_str()),
        (End::Exited { code: 0 }, "asked one\nasked one\nfree\n")
    );
    assert!(ended.duration_ms < 1000, "{}", ended.duration_ms);
    // The same program is asked about once in a call.
    assert_eq!(says.asked(), ["/bin/echo asked one"]);
    let asked = says.asked.lock().expect("no panic")[0].clone();
    assert_eq!(
        (asked.file.to_text().as_str(), asked.rule.as_str()),
        ("/usr/bin/echo", "bash(the rule)")
    );
    assert_eq!(
        asked.directory.as_path(),
        guest.workspace.path().canonicalize().expect("there")
    );
}

#[tokio::test]
async fn a_no_and_nobody_to_ask_refuse_it_and_the_rest_goes_on() {
    let guest = TestGuest::start().await;
    let says = Says::new(false, 10);
    let (ended, printed) = asking(
        &guest,
        &says,
        bash("/bin/echo asked; echo $?"),
        &CancellationToken::new(),
    )
    .await;
    assert!(
        printed.ends_with("126\n") && !printed.contains("asked\n"),
        "{printed}"
    );
    assert!(
        matches!(
            &ended.denied[..],
            [Denied {
                because: Because::Refused { .. },
                killed: false,
                ..
            }]
        ),
        "{:?}",
        ended.denied
    );
    let rules = vec![rule(ExecEffect::Ask, ExecScope::Own, "echo asked*")];
    let (lines, _) = denied(&guest, rules.clone(), "/bin/echo asked").await;
    assert_eq!(
        lines,
        ["1 /bin/echo asked: Refused { rule: \"bash(the rule)\" }"]
    );
    // Nor can anybody be asked about what runs in the background.
    let (ended, _) = guest
        .bash(Bash {
            rules,
            background: true,
            ..bash("/bin/echo asked || echo refused")
        })
        .await;
    assert_eq!(ended.denied.len(), 1, "{ended:?}");
}

#[tokio::test]
async fn a_call_ends_while_a_program_waits_and_others_get_on_meanwhile() {
    let guest = TestGuest::start().await;
    let (says, cancel) = (Says::new(true, 60_000), CancellationToken::new());
    let held = asking(&guest, &says, bash("/bin/echo asked"), &cancel);
    let other = async {
        let (ended, printed) = guest
            .bash(bash("for n in $(seq 50); do /bin/true; done; echo done"))
            .await;
        assert_eq!(
            (ended.end, printed.as_str()),
            (End::Exited { code: 0 }, "done\n")
        );
        while says.asked().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cancel.cancel();
    };
    let begun = Instant::now();
    let ((ended, printed), ()) = tokio::join!(held, other);
    assert_eq!((ended.end, printed.as_str()), (End::Cancelled, ""));
    assert!(begun.elapsed() < Duration::from_secs(20));
    // One of the same call is asked about while others run, and what waits can be ended.
    let says = Says::new(true, 700);
    let command = "timeout 0.2 /bin/echo asked one; echo $?; (/bin/echo asked two &) ; for n in $(seq 20); do /bin/true; done; echo others; wait; sleep 1.5";
    let (ended, printed) = asking(&guest, &says, bash(command), &CancellationToken::new()).await;
    assert_eq!(ended.end, End::Exited { code: 0 });
    assert!(
        printed.starts_with("124\nothers\n") && printed.ends_with("asked two\n"),
        "{printed}"
    );
}

/// The arguments lie in memory that another thread changes while the user thinks.
#[tokio::test]
async fn what_was_allowed_is_what_runs_or_nothing_does() {
    const SWAP: &str = "import ctypes, threading, time
libc = ctypes.CDLL(None)
name, word, path = [ctypes.create_string_buffer(text, 32) for text in (b'echo', b'asked SAFE', b'/bin/echo')]
argv = (ctypes.c_void_p * 3)(ctypes.addressof(name), ctypes.addressof(word), None)
def swap():
    time.sleep(0.3)
    word.raw = b'asked EVIL'.ljust(32, b'\\0')
threading.Thread(target=swap, daemon=True).start()
libc.execv(path, argv)
";
    let guest = TestGuest::start().await;
    fs::write(guest.path("swap.py"), SWAP).expect("written");
    let says = Says::new(true, 1000);
    let (ended, printed) = asking(
        &guest,
        &says,
        bash("python3 swap.py; echo $?"),
        &CancellationToken::new(),
    )
    .await;
    assert_eq!(says.asked(), ["echo asked SAFE"]);
    assert!(
        printed.ends_with("137\n") && !printed.contains("EVIL\n"),
        "{printed}"
    );
    assert!(
        matches!(
            &ended.denied[..],
            [Denied {
                because: Because::Changed,
                killed: true,
                ..
            }]
        ),
        "{:?}",
        ended.denied
    );
    let quiet = SWAP.replace("EVIL", "SAFE");
    fs::write(guest.path("swap.py"), quiet).expect("written");
    let (ended, printed) = asking(
        &guest,
        &says,
        bash("python3 swap.py"),
        &CancellationToken::new(),
    )
    .await;
    assert_eq!((printed.as_str(), ended.denied.len()), ("asked SAFE\n", 0));
}

/// Nobody can look into this one before its exec, so that it is held when its program stands there.
#[tokio::test]
async fn what_cannot_be_read_before_is_asked_about_where_it_stands() {
    let guest = TestGuest::start().await;
    let command = "python3 -c 'import ctypes, os; ctypes.CDLL(None).prctl(4, 0); os.execv(\"/bin/echo\", [\"echo\", \"asked\"])'; echo $?";
    for yes in [true, false] {
        let says = Says::new(yes, 200);
        let (_, printed) = asking(&guest, &says, bash(command), &CancellationToken::new()).await;
        // Whoever may look into everything, as root does outside of a sandbox, reads it before, and
        // then the exec fails.
        let expected: &[&str] = if yes {
            &["asked\n0\n"]
        } else {
            &["137\n", "1\n"]
        };
        assert!(
            expected.iter().any(|end| printed.ends_with(end))
                && (yes || !printed.contains("asked\n")),
            "{yes} {printed}"
        );
        assert_eq!(says.asked(), ["echo asked"]);
    }
}

/// Lets a model run a script in mode ask, whose `echo asked` a gate wants a word for.
async fn at_work(answer: Answer) -> Desk {
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "sh run.sh"}))
        .says("Done.")
        .start()
        .await;
    let (allow, gate) = (
        vec!["bash(sh run.sh)".to_owned()],
        vec!["bash(echo asked*)".to_owned()],
    );
    let policy = podbay::policy::Options {
        allow,
        gate,
        ..podbay::policy::Options::default()
    };
    let wishes = Wishes {
        mode: Mode::Ask,
        policy,
        answers: vec![answer.into()],
        ..Wishes::default()
    };
    let desk = Desk::new(model, wishes).await;
    fs::write(
        desk.guest.path("run.sh"),
        "/bin/echo asked one\n/bin/echo free\n",
    )
    .expect("written");
    desk.work("run it").await;
    desk
}

#[tokio::test]
async fn the_person_is_asked_in_the_middle_of_a_call_and_what_ran_is_an_event() {
    let desk = at_work(Answer::AllowSession).await;
    assert_eq!(desk.results(1), ["asked one\nfree\n"]);
    let kinds = desk.kinds();
    let asked = kinds
        .iter()
        .position(|kind| matches!(kind, Kind::PermissionAsked { .. }))
        .expect("asked");
    let Kind::PermissionAsked { capabilities, .. } = &kinds[asked] else {
        unreachable!("it is one")
    };
    let told = capabilities[0].describe();
    let words = [
        "`/bin/echo asked one`",
        "(/usr/bin/echo)",
        "about which the rule `bash(echo asked*)` asks",
    ];
    assert!(words.iter().all(|word| told.contains(word)), "{told}");
    let started = kinds
        .iter()
        .position(|kind| matches!(kind, Kind::CallStarted { .. }))
        .expect("started");
    // A yes holds for this program in this call, whatever was meant.
    let answered = kinds
        .iter()
        .position(|kind| {
            matches!(
                kind,
                Kind::PermissionAnswered {
                    answer: Answer::Allow,
                    ..
                }
            )
        })
        .expect("answered");
    let ran = kinds
        .iter()
        .position(|kind| matches!(kind, Kind::CallRan { .. }))
        .expect("told");
    let finished = kinds
        .iter()
        .position(|kind| matches!(kind, Kind::CallFinished { .. }))
        .expect("finished");
    assert!(
        started < asked && asked < answered && answered < ran && ran < finished,
        "{kinds:?}"
    );
    let Kind::CallRan {
        programs,
        n_more: 0,
        ..
    } = &kinds[ran]
    else {
        panic!("{:?}", kinds[ran])
    };
    let programs: Vec<String> = programs
        .iter()
        .map(|program| program.argv[0].to_text())
        .collect();
    assert_eq!(programs, ["sh", "/bin/echo", "/bin/echo"]);
}

#[tokio::test]
async fn a_no_in_the_middle_of_a_call_is_told_to_the_model_with_the_program_and_the_rule() {
    let desk = at_work(Answer::Deny).await;
    let told = desk.results(1).concat();
    assert!(
        told.contains("free\n") && !told.contains("\nasked one"),
        "{told}"
    );
    assert!(
        told.contains(
            "`/bin/echo asked one` was not run: the rule `bash(echo asked*)` requires approval, which was not given"
        ),
        "{told}"
    );
}

#[tokio::test]
async fn what_a_background_command_started_is_an_event_once_it_has_ended() {
    let command = "/bin/echo up; /bin/sleep 60; /bin/echo down";
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": command, "background": true}))
        .calls("stop_process", json!({"process_id": "last"}))
        .calls("list_processes", json!({}))
        .says("Done.")
        .start()
        .await;
    let desk = Desk::new(model, Wishes::default()).await;
    desk.work("serve").await;
    let ran: Vec<(String, Vec<String>)> = desk
        .kinds()
        .into_iter()
        .filter_map(|kind| match kind {
            Kind::CallRan {
                programs,
                background: Some(background),
                ..
            } => Some((
                background,
                programs
                    .iter()
                    .map(|program| program.argv[0].to_text())
                    .collect(),
            )),
            _ => None,
        })
        .collect();
    let [(background, programs)] = ran.as_slice() else {
        panic!("it is told once: {ran:?}")
    };
    assert_eq!(background, command);
    // What the command was to start after `sleep` was not started.
    assert!(
        programs.ends_with(&["/bin/echo".to_owned(), "/bin/sleep".to_owned()]),
        "{programs:?}"
    );
}
