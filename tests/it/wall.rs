//! The real guest and the real link over a stream in memory.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;
use std::time::Duration;
use std::time::Instant;

use podbay::sandbox::link::CallUpdate;
use podbay::sandbox::link::Error;
use podbay::sandbox::link::Link;
use podbay::sandbox::link::Reason;
use podbay::wire::Bash;
use podbay::wire::BytesPath;
use podbay::wire::Call;
use podbay::wire::End;
use podbay::wire::Fault;
use podbay::wire::Limit;
use podbay::wire::Output;
use podbay::wire::Terminal;
use podbay::wire::message::DiskLimits;
use podbay::wire::message::Stream;
use tokio_util::sync::CancellationToken;

use crate::support::alone::is_alone;
use crate::support::guest::PATIENCE;
use crate::support::guest::TestGuest;
use crate::support::guest::bash;
use crate::support::guest::exec;
use crate::support::guest::is_running;
use crate::support::guest::marker;
use crate::support::guest::setup;
use crate::support::guest::vanishes;

const EXITED: End = End::Exited { code: 0 };

#[tokio::test]
async fn the_hello_tells_which_files_the_box_sees_and_whether_it_has_a_network() {
    let guest = TestGuest::start().await;
    // The kernel's own listing is another way to the same answer: bit 0 is up, bit 3 loopback.
    let is_networked = fs::read_dir("/sys/class/net")
        .expect("listed")
        .flatten()
        .any(|interface| {
            let flags = fs::read_to_string(interface.path().join("flags")).unwrap_or_default();
            u32::from_str_radix(flags.trim().trim_start_matches("0x"), 16)
                .is_ok_and(|flags| flags & 0b1001 == 1)
        });
    assert_eq!(guest.facts.networked, is_networked);
    let metadata = fs::metadata(guest.workspace.path()).expect("metadata");
    assert_eq!(guest.facts.workspace, (metadata.dev(), metadata.ino()));
    assert_eq!(guest.facts.workspace_names, []);
}

#[tokio::test]
async fn another_build_is_refused_by_both_ends() {
    let folder = tempfile::tempdir().expect("folder");
    let (mut spawner, setup) = setup(folder.path());
    let (ours, theirs) = tokio::io::duplex(4096);
    let (reader, writer) = tokio::io::split(theirs);
    let served = tokio::spawn(podbay::guest::serve(reader, writer, setup));
    let error = Link::connect(
        ours,
        "another",
        DiskLimits::default(),
        PATIENCE,
        &CancellationToken::new(),
    )
    .await
    .expect_err("builds differ");
    assert!(
        matches!(&error, Error::Build { ours, .. } if ours == "another"),
        "{error}"
    );
    let ended = served
        .await
        .expect("does not panic")
        .expect_err("builds differ");
    assert!(ended.to_string().contains("another"), "{ended}");
    assert!(spawner.wait().expect("ends").success());
}

#[tokio::test]
async fn output_comes_in_written_order_with_the_exit_code() {
    let guest = TestGuest::start().await;
    let (ended, printed) = guest
        .bash(bash("echo one; echo two >&2; echo three; exit 7"))
        .await;
    assert_eq!(printed, "one\ntwo\nthree\n");
    assert_eq!(ended.end, End::Exited { code: 7 });
    assert_eq!(
        (ended.output_bytes, ended.omitted_bytes, ended.limit),
        (14, 0, None)
    );
}

#[tokio::test]
async fn the_environment_holds_nothing_but_the_list() {
    let guest = TestGuest::start().await;
    let (_, printed) =
        guest.bash(bash("env | cut -d= -f1 | sort | tr '\\n' ' '; echo; tty; cat; echo \"$# $0\"; ls /proc/self/fd | wc -l")).await;
    // PWD, SHLVL and _ are the shell's own; `ls` has the standard three, the report pipe and the
    // folder it lists.
    assert_eq!(
        printed,
        "HOME LANG PATH PWD SHLVL TERM _ \nnot a tty\n0 bash\n5\n"
    );
}

#[tokio::test]
async fn a_command_that_shows_its_steps_shows_its_own_alone() {
    let guest = TestGuest::start().await;
    fs::create_dir(guest.path("a")).expect("folder");
    let (ended, printed) = guest.bash(bash("set -x; cd a; false")).await;
    // Two signs: it is given to the shell's own `eval`.
    assert_eq!(
        (printed.as_str(), ended.end),
        ("++ cd a\n++ false\n", End::Exited { code: 1 })
    );
    assert_eq!(
        ended.working_directory,
        Some(BytesPath::from(guest.path("a")))
    );
}

#[tokio::test]
async fn the_directory_is_kept_and_nothing_else() {
    let guest = TestGuest::start().await;
    fs::create_dir_all(guest.path("a/b")).expect("folders");
    let (ended, _) = guest.bash(bash("cd a/b; export KEPT=no; exit 3")).await;
    assert_eq!(
        ended.working_directory,
        Some(BytesPath::from(guest.path("a/b")))
    );
    let (_, printed) = guest.bash(bash("pwd; echo \"[$KEPT]\"")).await;
    assert_eq!(printed, format!("{}\n[]\n", guest.path("a/b").display()));

    let elsewhere = Bash {
        working_directory: Some("a".into()),
        ..bash("pwd")
    };
    assert_eq!(
        guest.bash(elsewhere).await.1,
        format!("{}\n", guest.path("a").display())
    );

    fs::remove_dir_all(guest.path("a")).expect("removed");
    let (ended, printed) = guest.bash(bash("pwd")).await;
    assert_eq!(printed, format!("{}\n", guest.workspace.path().display()));
    assert!(ended.note.expect("says so").contains("is no longer usable"));
}

#[tokio::test]
async fn a_directory_outside_of_the_workspace_is_refused() {
    let guest = TestGuest::start().await;
    std::os::unix::fs::symlink("/", guest.path("out")).expect("link");
    for path in ["..", "/etc", "out", "out/etc", "/proc/self/cwd"] {
        let call = Call::Bash(Bash {
            working_directory: Some(path.into()),
            ..bash("pwd")
        });
        let output = guest.call(call, &mut Vec::new()).await.expect("answers");
        assert!(
            matches!(output, Output::Fault(Fault::Outside { .. })),
            "{path}: {output:?}"
        );
    }
    // The control: whoever enters a folder by its name is led out.
    for (path, leads_to) in [("out/etc", "/etc"), ("/etc", "/etc"), ("out", "/")] {
        let entered = Command::new("pwd")
            .arg("-P")
            .current_dir(guest.path(path))
            .output()
            .expect("runs");
        assert_eq!(
            String::from_utf8_lossy(&entered.stdout).trim_end(),
            leads_to,
            "{path}"
        );
    }
}

#[tokio::test]
async fn many_calls_run_at_once() {
    let guest = TestGuest::start().await;
    fs::write(guest.path("gate"), "").expect("file");
    // Each waits for all others: one after the other they would never end.
    let calls = (0..20).map(|number| {
        let command = format!("touch at-{number}; until [ $(ls at-* | wc -l) = 20 ]; do sleep 0.01; done; echo {number}");
        let guest = &guest;
        async move { guest.bash(bash(&command)).await }
    });
    let results = futures::future::join_all(calls).await;
    for (number, (ended, printed)) in results.into_iter().enumerate() {
        assert_eq!((ended.end, printed), (EXITED, format!("{number}\n")));
    }
}

#[tokio::test]
async fn a_reader_that_is_slow_makes_the_command_wait() {
    if !is_alone("wall::a_reader_that_is_slow_makes_the_command_wait") {
        return;
    }
    let guest = TestGuest::start().await;
    let before = resident_bytes();
    let bash = Bash {
        stream_bytes: u64::MAX,
        ..bash("head -c 50000000 /dev/zero; touch printed")
    };
    let mut open = guest.link.open(Call::Bash(bash)).expect("opens");
    // Nothing is read here for a while; the command must be stuck with what fits the window and its
    // pipe.
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!guest.path("printed").exists());
    let mut n_bytes = 0;
    let mut most = 0;
    let output = loop {
        match open.recv().await.expect("continues") {
            CallUpdate::Chunk { data, .. } => n_bytes += data.len(),
            CallUpdate::Asked { program, .. } => panic!("{program:?}"),
            CallUpdate::Done(output) => break output,
        }
        most = most.max(resident_bytes());
    };
    let Output::Command(ended) = output else {
        panic!("{output:?}")
    };
    assert_eq!(
        (n_bytes, ended.end, ended.omitted_bytes),
        (50_000_000, EXITED, 0)
    );
    assert!(most < before + 24_000_000, "{before} grew to {most}");
}

fn resident_bytes() -> usize {
    let text = fs::read_to_string("/proc/self/statm").expect("statm");
    text.split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<usize>().ok())
        .expect("a number")
        * 4096
}

#[tokio::test]
async fn of_a_long_output_start_and_end_are_kept() {
    let guest = TestGuest::start().await;
    let bash = Bash {
        stream_bytes: 1000,
        tail_bytes: 100,
        ..bash("seq 1000000")
    };
    let (mut head, mut tail) = (Vec::<u8>::new(), Vec::<u8>::new());
    let on_chunk = |stream, data: &[u8]| {
        if stream == Stream::Tail {
            tail.extend(data);
        } else {
            head.extend(data);
        }
    };
    let output = guest
        .link
        .call(
            Call::Bash(bash),
            on_chunk,
            &CancellationToken::new(),
            PATIENCE,
        )
        .await
        .expect("answers");
    let Output::Command(ended) = output else {
        panic!("{output:?}")
    };
    assert_eq!((head.len(), tail.len()), (1000, 100));
    assert!(tail.ends_with(b"999999\n1000000\n"));
    assert_eq!(ended.output_bytes, 6_888_896);
    assert_eq!(ended.omitted_bytes, 6_888_896 - 1100);
}

#[tokio::test]
async fn cancel_ends_all_that_a_command_started() {
    let guest = TestGuest::start().await;
    let time = marker();
    let command = format!(
        "trap '' TERM; setsid sleep {time} & (setsid nohup sleep {time} & ) ; (trap '' TERM; sleep {time}) & touch running; sleep {time}; sleep {time}"
    );
    let cancel = CancellationToken::new();
    let call = guest.link.call(
        Call::Bash(bash(&command)),
        |_, _: &[u8]| {},
        &cancel,
        PATIENCE,
    );
    let cancelled = async {
        until(|| guest.path("running").exists()).await;
        assert!(is_running(&time));
        cancel.cancel();
    };
    let (output, ()) = tokio::join!(call, cancelled);
    let Output::Command(ended) = output.expect("answers") else {
        panic!("no command")
    };
    assert_eq!(ended.end, End::Cancelled);
    // Not "soon": when the answer is there, all of it is gone.
    assert!(!is_running(&time));
}

async fn until(condition: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "did not come to be");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn time_runs_out_for_a_command_that_drips() {
    let guest = TestGuest::start().await;
    let drip = Bash {
        timeout_ms: 300,
        ..bash("while :; do printf .; sleep 0.05; done")
    };
    let (ended, printed) = guest.bash(drip).await;
    assert_eq!(ended.limit, Some(Limit::Time { ms: 300 }));
    assert_eq!(ended.end, End::Signaled { signal: 15 });
    assert!(
        printed.starts_with("..") && ended.duration_ms < 5000,
        "{ended:?}"
    );

    let deaf = Bash {
        timeout_ms: 100,
        grace_ms: 100,
        ..bash("trap '' TERM; while :; do :; done")
    };
    let (ended, _) = guest.bash(deaf).await;
    assert_eq!(
        (ended.limit, ended.end),
        (Some(Limit::Time { ms: 100 }), End::Signaled { signal: 9 })
    );
}

#[tokio::test]
async fn a_daemon_that_holds_the_output_does_not_hold_the_call() {
    let guest = TestGuest::start().await;
    let time = marker();
    let (ended, printed) = guest
        .bash(bash(&format!(
            "setsid sleep {time} & (sleep {time} &); echo done"
        )))
        .await;
    assert_eq!(
        (ended.end, printed.as_str(), ended.n_survivors),
        (EXITED, "done\n", 2)
    );
    assert!(ended.duration_ms < 5000, "{ended:?}");
    assert!(!is_running(&time));
}

#[tokio::test]
async fn what_ends_by_itself_is_waited_for() {
    let guest = TestGuest::start().await;
    let (ended, printed) = guest
        .bash(bash("printf 'b\\na\\n' > >(sort; sleep 0.05; echo end)"))
        .await;
    assert_eq!((printed.as_str(), ended.n_survivors), ("a\nb\nend\n", 0));
}

#[tokio::test]
async fn a_background_command_outlives_its_call_and_not_the_stream() {
    let guest = TestGuest::start().await;
    let time = marker();
    let (ended, _) = guest
        .bash(Bash {
            background: true,
            ..bash(&format!("echo up; exec sleep {time}"))
        })
        .await;
    let End::Running { pid } = ended.end else {
        panic!("{ended:?}")
    };
    let log = guest.path("podbay-background-0.log");
    assert!(
        ended
            .note
            .expect("says where")
            .contains("podbay-background-0.log")
    );
    assert_eq!(fs::read_to_string(log).expect("log"), "up\n");
    let (_, printed) = guest
        .bash(bash(&format!("kill -0 {pid} && echo alive")))
        .await;
    assert_eq!(printed, "alive\n");
    guest.link.close();
    assert!(vanishes(&time).await);
}

#[tokio::test]
async fn a_background_command_that_fails_at_once_says_so() {
    let guest = TestGuest::start().await;
    let (ended, printed) = guest
        .bash(Bash {
            background: true,
            ..bash("echo no such server; exit 3")
        })
        .await;
    assert_eq!(
        (ended.end, printed.as_str(), ended.output_bytes),
        (End::Exited { code: 3 }, "no such server\n", 15)
    );
}

#[tokio::test]
async fn a_background_command_that_stops_who_starts_commands_does_not_hold_up_the_next() {
    let guest = TestGuest::start().await;
    let stop = "kill -STOP $(awk '/^PPid/ {print $2}' /proc/$PPID/status); echo done > stopped; exec sleep 600";
    let (ended, _) = guest
        .bash(Bash {
            background: true,
            ..bash(stop)
        })
        .await;
    assert!(matches!(ended.end, End::Running { .. }), "{ended:?}");
    until(|| guest.path("stopped").exists()).await;
    let began = Instant::now();
    let (ended, printed) = guest.bash(bash("echo next")).await;
    assert_eq!((ended.end, printed.as_str()), (EXITED, "next\n"));
    assert!(
        began.elapsed() < Duration::from_mins(5),
        "it does not wait for the first: {:?}",
        began.elapsed()
    );
}

#[tokio::test]
async fn all_bytes_pass_both_ways_exactly() {
    let guest = TestGuest::start().await;
    let sent: Vec<u8> = (0..300_000_u32)
        .map(|number| (number.wrapping_mul(2_654_435_761) >> 13) as u8)
        .chain(0..=255)
        .collect();
    let mut open = guest
        .link
        .open(Call::Exec(exec(&["sh", "-c", "cat; echo err >&2; exit 4"])))
        .expect("opens");
    let input = open.input_handle();
    let feed = async {
        input.send(&sent).await.expect("is taken");
        input.close();
    };
    let mut received = Vec::new();
    let mut errors = Vec::new();
    let read = async {
        loop {
            match open.recv().await.expect("continues") {
                CallUpdate::Chunk {
                    stream: Stream::Stdout,
                    data,
                } => received.extend(data),
                CallUpdate::Chunk { data, .. } => errors.extend(data),
                CallUpdate::Asked { program, .. } => panic!("{program:?}"),
                CallUpdate::Done(output) => break output,
            }
        }
    };
    let ((), output) = tokio::join!(feed, read);
    let Output::Command(ended) = output else {
        panic!("{output:?}")
    };
    assert_eq!(ended.end, End::Exited { code: 4 });
    assert!(
        received == sent,
        "{} of {} bytes",
        received.len(),
        sent.len()
    );
    assert_eq!(errors, b"err\n");
}

#[tokio::test]
async fn a_terminal_has_a_size_that_changes_and_ends_like_one() {
    let guest = TestGuest::start().await;
    let terminal = Terminal {
        rows: 30,
        columns: 90,
        kind: "xterm-256color".to_owned(),
    };
    let script = "stty size; echo $TERM; read line; stty size; cat";
    let mut open = guest
        .link
        .open(Call::Exec(podbay::wire::Exec {
            terminal: Some(terminal),
            ..exec(&["bash", "-c", script])
        }))
        .expect("opens");
    let mut printed = String::new();
    let mut stage = 0;
    let output = loop {
        match open.recv().await.expect("continues") {
            CallUpdate::Chunk { data, .. } => printed.push_str(&String::from_utf8_lossy(&data)),
            CallUpdate::Asked { program, .. } => panic!("{program:?}"),
            CallUpdate::Done(output) => break output,
        }
        if stage == 0 && printed.contains("30 90\r\nxterm-256color\r\n") {
            open.resize(40, 100);
            open.input(b"go\n").await.expect("is taken");
            stage = 1;
        }
        if stage == 1 && printed.contains("40 100") {
            open.close_input();
            stage = 2;
        }
    };
    let Output::Command(ended) = output else {
        panic!("{output:?}")
    };
    assert_eq!((ended.end, stage), (EXITED, 2), "{printed}");
}

#[tokio::test]
async fn arguments_that_are_too_long_for_a_program_are_refused_with_what_to_do() {
    let guest = TestGuest::start().await;
    let output = guest
        .call(
            Call::Exec(exec(&["echo", &"x".repeat(200_000)])),
            &mut Vec::new(),
        )
        .await
        .expect("answers");
    let Output::Fault(fault) = output else {
        panic!("{output:?}")
    };
    assert!(
        fault.to_string().contains("longer than 128 KiB")
            && fault.to_string().contains("write the text to a file"),
        "{fault}"
    );
    let mut printed = Vec::new();
    guest
        .call(
            Call::Exec(exec(&["echo", &"x".repeat(100_000)])),
            &mut printed,
        )
        .await
        .expect("answers");
    assert_eq!(printed.len(), 100_001);
}

/// An image can have much in its environment.
#[tokio::test]
async fn a_long_command_runs_beside_a_long_environment() {
    let guest = TestGuest::with(&[format!("LARGE={}", "x".repeat(100_000))]).await;
    let output = guest
        .call(
            Call::Bash(bash(&format!("true {}", "x".repeat(110_000)))),
            &mut Vec::new(),
        )
        .await
        .expect("answers");
    let Output::Command(ended) = output else {
        panic!("{output:?}")
    };
    assert_eq!(ended.end, EXITED);
    assert_eq!(guest.bash(bash("echo ${#LARGE}")).await.1, "100000\n");
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let guest = TestGuest::start().await;
    let output = guest
        .call(Call::Exec(exec(&["no-such-program"])), &mut Vec::new())
        .await
        .expect("answers");
    assert_eq!(
        output,
        Output::Fault(Fault::NotFound {
            path: "no-such-program".into(),
            similar: Vec::new(),
            beside: Vec::new()
        })
    );
    let long = Call::Bash(bash(&"x".repeat(130_000)));
    let output = guest.call(long, &mut Vec::new()).await.expect("answers");
    assert!(
        matches!(&output, Output::Fault(Fault::Invalid { field, .. }) if field == "command"),
        "{output:?}"
    );
    let close = bash(&format!(": {}; echo fits", "x".repeat(120_000)));
    assert_eq!(guest.bash(close).await.1, "fits\n");
}

#[tokio::test]
async fn a_command_that_kills_its_supervisor_takes_only_itself_along() {
    let guest = TestGuest::start().await;
    let time = marker();
    let mut printed = Vec::new();
    let call = Call::Bash(bash(&format!(
        "setsid sleep {time} & kill -9 $PPID; sleep {time}"
    )));
    let output = guest.call(call, &mut printed).await.expect("answers");
    assert!(
        matches!(&output, Output::Fault(Fault::Io { problem, .. }) if problem.contains("supervisor")),
        "{output:?}"
    );
    assert!(vanishes(&time).await);
    assert_eq!(guest.bash(bash("echo on")).await.1, "on\n");
}

#[tokio::test]
async fn a_stopped_supervisor_does_not_save_a_command() {
    let guest = TestGuest::start().await;
    let time = marker();
    let (ended, _) = guest
        .bash(Bash {
            timeout_ms: 300,
            ..bash(&format!(
                "kill -STOP $PPID; trap '' TERM; sleep {time}; sleep {time}"
            ))
        })
        .await;
    assert_eq!(ended.limit, Some(Limit::Time { ms: 300 }));
    assert!(!is_running(&time));
}

#[tokio::test]
async fn a_command_that_stopped_everything_ends_when_it_is_over() {
    let guest = TestGuest::start().await;
    let began = Instant::now();
    // The processes that it would reach with -1 are those of this machine, so it names the two of
    // ours.
    let script = "kill -STOP $PPID $(awk '/^PPid/ {print $2}' /proc/$PPID/status); echo alive";
    let (ended, printed) = guest.bash(bash(script)).await;
    assert_eq!(
        (ended.end, ended.limit, printed.as_str()),
        (EXITED, None, "alive\n")
    );
    let (ended, printed) = guest.bash(bash("echo next")).await;
    assert_eq!((ended.end, printed.as_str()), (EXITED, "next\n"));
    assert!(
        began.elapsed() < Duration::from_mins(1),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test]
async fn the_death_of_the_spawner_ends_the_box_with_a_reason() {
    let mut guest = TestGuest::start().await;
    guest.spawner.kill().expect("kills");
    let reason = guest.link.wait_ended().await;
    assert!(
        matches!(&reason, Reason::Closing(text) if text.contains("killed from inside")),
        "{reason}"
    );
    let error = guest
        .call(Call::Bash(bash("true")), &mut Vec::new())
        .await
        .expect_err("is over");
    assert!(
        error
            .to_string()
            .starts_with("run `true`: the sandbox ended itself"),
        "{error}"
    );
}

#[tokio::test]
async fn no_room_is_reserved_beyond_a_files_end() {
    const SCRIPT: &str = r#"
import ctypes, errno, fcntl, os, struct
libc = ctypes.CDLL(None, use_errno=True)
file = os.open("reserved", os.O_RDWR | os.O_CREAT, 0o644)
os.write(file, b"x" * 65536)
def reserve(mode, length=1 << 20):
    failed = libc.fallocate(file, mode, ctypes.c_long(0), ctypes.c_long(length))
    return errno.errorcode[ctypes.get_errno()] if failed else "done"
for mode in [0x01, 0x11, 0x40, 0x41]:
    print(hex(mode), reserve(mode))
for request in [0x40305828, 0x4030582a, 0x40305839]:
    try:
        fcntl.ioctl(file, request, struct.pack("hh4xqqiI4i", 0, 0, 0, 1 << 20, 0, 0, 0, 0, 0, 0))
        print(hex(request), "done")
    except OSError as error:
        print(hex(request), errno.errorcode[error.errno])
facts = os.fstat(file)
print("small", facts.st_size == 65536 and facts.st_blocks * 512 <= 131072)
print("plain", reserve(0), "hole", reserve(0x03, 4096))
"#;
    let guest = TestGuest::start().await;
    fs::write(guest.path("probe.py"), SCRIPT).expect("written");
    let (_, printed) = guest.bash(bash("python3 probe.py 2>&1")).await;
    let mut expected: String = [
        "0x1",
        "0x11",
        "0x40",
        "0x41",
        "0x40305828",
        "0x4030582a",
        "0x40305839",
    ]
    .map(|name| format!("{name} ENOTSUP\n"))
    .concat();
    expected.push_str("small True\nplain done hole done\n");
    assert_eq!(printed, expected);
}

#[tokio::test]
async fn no_mark_is_put_on_a_file_and_no_snapshot_is_made() {
    // The same with and without the filter, but for the answers; what reads is asked too, and works
    // with both.
    const SCRIPT: &str = r#"
import ctypes, errno, fcntl, os, struct
libc = ctypes.CDLL(None, use_errno=True)
file = os.open("marked", os.O_RDWR | os.O_CREAT, 0o644)
def ask(request, argument):
    try:
        fcntl.ioctl(file, request, argument)
        return "done"
    except OSError as error:
        return errno.errorcode[error.errno]
for request, size in [(0x401c5820, 28), (0x40086602, 8), (0x40046602, 4), (0x50009401, 512), (0x5000940e, 512), (0x50009417, 512), (0x50009418, 512)]:
    print(hex(request), ask(request, bytes(size)))
flags = ask(0x80086601, bytearray(8))
print("reads", flags in ["done", "ENOTTY"], ask(0x5451, 0))
for number in [444, 445, 446, 469]:
    failed = libc.syscall(number, ctypes.c_long(-1), ctypes.c_long(0), ctypes.c_long(0), ctypes.c_long(0), ctypes.c_long(-1))
    print(number, errno.errorcode[ctypes.get_errno()] if failed else "done")
"#;
    let guest = TestGuest::start().await;
    fs::write(guest.path("probe.py"), SCRIPT).expect("written");
    let (_, printed) = guest.bash(bash("python3 probe.py 2>&1")).await;
    let requests = [
        "0x401c5820",
        "0x40086602",
        "0x40046602",
        "0x50009401",
        "0x5000940e",
        "0x50009417",
        "0x50009418",
    ];
    let expected: String = requests.map(|name| format!("{name} ENOTSUP\n")).concat();
    assert_eq!(
        printed,
        expected + "reads True done\n444 ENOSYS\n445 ENOSYS\n446 ENOSYS\n469 ENOSYS\n"
    );
    // No file system and no kernel gives all of these answers by itself: it is the filter that
    // does.
    let plain = Command::new("python3")
        .args(["-c", SCRIPT])
        .current_dir(guest.workspace.path())
        .output()
        .expect("runs");
    let plain = String::from_utf8_lossy(&plain.stdout).into_owned();
    assert!(
        plain.contains("reads True done") && !plain.contains("0x50009401 ENOTSUP"),
        "{plain}"
    );
}

#[tokio::test]
async fn no_device_can_be_made_not_even_the_one_of_no_number() {
    const SCRIPT: &str = r#"
import ctypes, errno, os, stat
libc = ctypes.CDLL(None, use_errno=True)
def made(kind):
    try:
        os.mknod("node", 0o666 | kind, 0)
        os.remove("node")
        return "made"
    except OSError as error:
        return errno.errorcode[error.errno]
for kind in [stat.S_IFCHR, stat.S_IFBLK, stat.S_IFIFO, stat.S_IFREG, stat.S_IFSOCK]:
    print(oct(kind), made(kind))
for flags in [4, 5, 1]:
    open("one", "w").close()
    failed = libc.renameat2(-100, b"one", -100, b"two", flags)
    print("rename", flags, errno.errorcode[ctypes.get_errno()] if failed else "done")
"#;
    let guest = TestGuest::start().await;
    fs::write(guest.path("probe.py"), SCRIPT).expect("written");
    let (_, printed) = guest.bash(bash("python3 probe.py 2>&1")).await;
    let expected = "0o20000 EPERM\n0o60000 EPERM\n0o10000 made\n0o100000 made\n0o140000 made\nrename 4 EPERM\nrename 5 EPERM\nrename 1 done\n";
    assert_eq!(printed, expected);
}

#[tokio::test]
async fn commands_cannot_make_calls_that_the_filter_denies() {
    let guest = TestGuest::start().await;
    fs::write(guest.path("file"), "").expect("file");
    let script = "chmod 4755 file 2>&1; chmod g+s file 2>&1; mkdir -m 0755 folder && echo made; chmod 755 file && echo plain; \
                  unshare -Ur true 2>&1; python3 -c 'import os; os.open(\"new\", os.O_CREAT | os.O_WRONLY, 0o4755)' 2>&1 | tail -1; \
                  grep -E '^(SigBlk|SigIgn|NoNewPrivs|Seccomp):' /proc/self/status | tr '\\t\\n' '  '; cat /proc/self/oom_score_adj; ulimit -c";
    let (_, printed) = guest.bash(bash(script)).await;
    assert_eq!(
        printed.matches("peration not permitted").count(),
        4,
        "{printed}"
    );
    assert!(printed.contains("made\nplain\n"), "{printed}");
    assert!(
        printed.ends_with(
            "SigBlk: 0000000000000000 SigIgn: 0000000000000000 NoNewPrivs: 1 Seccomp: 2 1000\n0\n"
        ),
        "{printed}"
    );
}

#[tokio::test]
async fn a_call_that_takes_too_long_for_its_caller_is_stopped() {
    let guest = TestGuest::start().await;
    let cancel = CancellationToken::new();
    let call = guest.link.call(
        Call::Bash(bash("sleep 1000")),
        |_, _: &[u8]| {},
        &cancel,
        Duration::from_millis(200),
    );
    let error = call.await.expect_err("takes too long");
    assert!(matches!(error, Error::TimedOut { .. }), "{error}");
    assert_eq!(guest.bash(bash("echo on")).await.1, "on\n");
}

#[tokio::test]
async fn searches_without_end_keep_neither_a_read_nor_a_cancel_waiting() {
    let guest = TestGuest::start().await;
    fs::File::create(guest.path("endless"))
        .and_then(|file| file.set_len(200 << 30))
        .expect("made");
    fs::write(guest.path("a"), "one\n").expect("written");
    let (cancelled, searching) = (CancellationToken::new(), CancellationToken::new());
    cancelled.cancel();
    let search = |cancel| {
        let grep = serde_json::json!({
            "type": "grep", "pattern": "x", "path": "endless", "glob": null, "context": 0, "case_insensitive": false,
            "output": "content", "max_results": 9, "timeout_ms": 600_000, "protected": false,
        });
        guest.link.call(
            serde_json::from_value(grep).expect("a call"),
            |_, _: &[u8]| {},
            cancel,
            PATIENCE,
        )
    };
    let read = serde_json::json!({
        "type": "read_file", "path": "a", "offset": 1, "limit": 9, "max_bytes": 999, "cursor": null, "max_files": 1, "protected": false,
    });
    let searches = futures::future::join_all((0..8).map(|_| search(&searching)));
    let others = async {
        let one = guest
            .call(
                serde_json::from_value(read).expect("a call"),
                &mut Vec::new(),
            )
            .await
            .expect("is read meanwhile");
        assert!(matches!(one, Output::Read(_)), "{one:?}");
        let waiting = search(&cancelled).await.expect("the sandbox stays");
        assert!(
            matches!(waiting, Output::Fault(Fault::Cancelled)),
            "{waiting:?}"
        );
        searching.cancel();
    };
    for output in tokio::join!(searches, others).0 {
        assert!(
            matches!(&output, Ok(Output::Fault(Fault::Cancelled))),
            "{output:?}"
        );
    }
    assert_eq!(guest.bash(bash("echo on")).await.1, "on\n");
}

#[tokio::test]
async fn a_dropped_call_is_cancelled() {
    let guest = TestGuest::start().await;
    let time = marker();
    let open = guest
        .link
        .open(Call::Bash(bash(&format!(
            "touch running; while :; do echo flood; done; sleep {time}"
        ))))
        .expect("opens");
    until(|| guest.path("running").exists()).await;
    drop(open);
    assert!(vanishes(&time).await);
    assert_eq!(guest.bash(bash("echo on")).await.1, "on\n");
}

#[tokio::test]
async fn a_command_that_ends_with_its_time_has_one_end() {
    let guest = TestGuest::start().await;
    let calls = (0..48_u64).map(|n| {
        let bash = Bash {
            timeout_ms: 170 + n,
            ..bash("sleep 0.19; echo done")
        };
        let guest = &guest;
        // The link gives out one end or panics; here it is whichever came first, and whole.
        async move { guest.bash(bash).await }
    });
    let (mut n_done, mut n_late) = (0, 0);
    for (ended, printed) in futures::future::join_all(calls).await {
        match (ended.end, ended.limit) {
            (EXITED, None) => {
                assert_eq!(printed, "done\n");
                n_done += 1;
            }
            (_, Some(Limit::Time { .. })) => n_late += 1,
            other => panic!("{other:?}: {printed}"),
        }
    }
    assert_eq!(n_done + n_late, 48);
    assert_eq!(guest.link.ended(), None);
}

#[tokio::test]
async fn thousands_of_orphans_are_taken_and_the_next_call_works() {
    let guest = TestGuest::start().await;
    // Each loses its parent at once, and half of them leave the session as well.
    let command = "for n in $(seq 1000); do (true &); (setsid true &); done; echo made";
    let (ended, printed) = guest.bash(bash(command)).await;
    assert_eq!((ended.end, printed.as_str()), (EXITED, "made\n"));
    let spawner = guest.spawner.id();
    let is_ours = |stat: &str| {
        let fields: Vec<&str> = stat
            .rsplit_once(')')
            .map(|(_, rest)| rest.split_whitespace().collect())
            .unwrap_or_default();
        fields.first() == Some(&"Z") && fields.get(1) == Some(&spawner.to_string().as_str())
    };
    let zombies = || {
        let all = fs::read_dir("/proc").expect("/proc").flatten();
        all.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok())
            .filter(|stat| is_ours(stat))
            .count()
    };
    until(|| zombies() == 0).await;
    assert_eq!(guest.bash(bash("echo next")).await.1, "next\n");
}

#[tokio::test]
async fn thousands_of_calls_leave_the_spawner_as_it_was() {
    let guest = TestGuest::start().await;
    fs::write(guest.path("file"), "content\n").expect("written");
    let descriptors =
        || fs::read_dir(format!("/proc/{}/fd", guest.spawner.id())).map_or(0, Iterator::count);
    let pages = || {
        let text =
            fs::read_to_string(format!("/proc/{}/statm", guest.spawner.id())).expect("it runs");
        text.split(' ')
            .nth(1)
            .and_then(|pages| pages.parse::<usize>().ok())
            .expect("a number")
    };
    let commands = async |count: usize| {
        for _ in 0..count {
            let round = (0..8).map(|_| guest.bash(bash("true")));
            for (ended, _) in futures::future::join_all(round).await {
                assert_eq!(ended.end, EXITED);
            }
        }
    };
    commands(10).await;
    let before = (descriptors(), pages());
    commands(125).await;
    let list = || {
        Call::ListDirectory(podbay::wire::ListDirectory {
            path: ".".into(),
            recursive: false,
            show_hidden: false,
            show_size: false,
            max_entries: 10,
        })
    };
    for _ in 0..4000 {
        assert!(matches!(
            guest.call(list(), &mut Vec::new()).await,
            Ok(Output::Listing(_))
        ));
    }
    // What ended last may still be on its way.
    until(|| descriptors() <= before.0).await;
    assert!(
        pages() <= before.1 + 64,
        "{} pages became {}",
        before.1,
        pages()
    );
}
