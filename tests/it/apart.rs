//! Commands of one call and those of another: what they can do to each other, and what a call can
//! do to itself.

use std::fs;
use std::io::Write;
use std::process::Command;

use podbay::wire::Bash;
use podbay::wire::End;

use crate::support::guest::TestGuest;
use crate::support::guest::bash;
use crate::support::guest::marker;
use crate::support::guest::vanishes;
use crate::support::probe::has_domains;

/// Goes for a process in every way that there is, and prints what could be done. Without a number
/// it is a child of its own.
pub(crate) const REACH: &str = r#"
import ctypes, os, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long] * 4
if len(sys.argv) > 1:
    pid = int(sys.argv[1])
else:
    child = subprocess.Popen(["sh", "-c", "echo up; exec sleep 60"], stdout=subprocess.PIPE)
    child.stdout.readline()
    pid = child.pid
def tried(what, act):
    try:
        act()
        print(what)
    except OSError:
        pass
def traced():
    if libc.ptrace(0x4206, pid, 0, 0):
        raise OSError
tried("mem read", lambda: open(f"/proc/{pid}/mem", "rb"))
tried("mem written", lambda: os.open(f"/proc/{pid}/mem", os.O_WRONLY))
tried("environ", lambda: open(f"/proc/{pid}/environ", "rb").read())
tried("maps", lambda: open(f"/proc/{pid}/maps", "rb").read())
for name in ["cwd", "exe", "root", "fd/0"]:
    tried(name, lambda: os.readlink(f"/proc/{pid}/{name}"))
tried("file opened", lambda: os.open(f"/proc/{pid}/fd/0", os.O_RDONLY))
tried("traced", traced)
if len(sys.argv) == 1:
    child.kill()
"#;

pub(crate) const ALL: &str =
    "mem read\nmem written\nenviron\nmaps\ncwd\nexe\nroot\nfd/0\nfile opened\n";

/// Starts a command in the background and returns its number.
async fn wait_beside(guest: &TestGuest, time: &str) -> i32 {
    let (ended, _) = guest
        .bash(Bash {
            background: true,
            ..bash(&format!("exec sleep {time} < /dev/null"))
        })
        .await;
    let End::Running { pid } = ended.end else {
        panic!("{ended:?}")
    };
    pid
}

#[tokio::test]
async fn a_command_reaches_nothing_of_another_call_and_all_of_its_own() {
    let guest = TestGuest::start().await;
    fs::write(guest.path("reach.py"), REACH).expect("written");
    let pid = wait_beside(&guest, &marker()).await;
    let (_, other) = guest.bash(bash(&format!("python3 reach.py {pid}"))).await;
    let (_, own) = guest.bash(bash("python3 reach.py")).await;
    if has_domains() {
        // Root, as nobody is in a sandbox, may read these two of everybody's (`CAP_PERFMON`); those
        // with an engine show that they are closed.
        let of_root = if nix::unistd::geteuid().is_root() {
            "environ\nmaps\n"
        } else {
            ""
        };
        assert_eq!((other.as_str(), own), (of_root, format!("{ALL}traced\n")));
    } else {
        assert_eq!(
            (other.as_str(), own.as_str()),
            (ALL, ALL),
            "without domains nothing keeps them apart, and nobody traces"
        );
    }
}

/// The control, and what a kernel without landlock has.
#[tokio::test]
async fn without_landlock_calls_reach_each_other_and_none_is_traced() {
    let guest = TestGuest::without_landlock().await;
    fs::write(guest.path("reach.py"), REACH).expect("written");
    let pid = wait_beside(&guest, &marker()).await;
    let (_, other) = guest.bash(bash(&format!("python3 reach.py {pid}"))).await;
    let (_, own) = guest.bash(bash("python3 reach.py")).await;
    assert_eq!((other.as_str(), own.as_str()), (ALL, ALL));
}

#[tokio::test]
async fn a_later_call_sees_and_ends_what_an_earlier_one_left_running() {
    let guest = TestGuest::start().await;
    let time = marker();
    let pid = wait_beside(&guest, &time).await;
    let (_, printed) = guest
        .bash(bash(&format!(
            "tr '\\0' ' ' < /proc/{pid}/cmdline; cut -d' ' -f2 /proc/{pid}/stat; kill {pid}"
        )))
        .await;
    assert_eq!(printed, format!("sleep {time} (sleep)\n"));
    assert!(vanishes(&time).await);
}

#[tokio::test]
async fn files_and_folders_are_moved_and_linked_across_folders() {
    const SCRIPT: &str = "mkdir -p a/b c && echo x > a/b/file && mv a/b/file c/moved && ln c/moved a/link && mv a/b c/ && mv c d && cat a/link && \
                          python3 -c 'import ctypes, os; f = os.open(\"a\", os.O_TMPFILE | os.O_RDWR); \
                          ctypes.CDLL(None).linkat(-100, f\"/proc/self/fd/{f}\".encode(), -100, b\"d/unnamed\", 0x400); \
                          os.rename(\"a/link\", \"d/b/link\")' && \
                          find . -type f | sort";
    let guest = TestGuest::start().await;
    let (ended, printed) = guest.bash(bash(SCRIPT)).await;
    assert_eq!(
        (ended.end, printed.as_str()),
        (
            End::Exited { code: 0 },
            "x\n./d/b/link\n./d/moved\n./d/unnamed\n"
        )
    );
}

/// A debugger, in short: it runs a program under itself, changes its memory and follows its end.
pub(crate) const DEBUG: &str = r#"
import ctypes, os, re, signal
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long] * 4
buffer = ctypes.create_string_buffer(b"before", 16)
pid = os.fork()
if pid == 0:
    libc.ptrace(0, 0, 0, 0)
    os.kill(os.getpid(), signal.SIGSTOP)
    os.write(1, buffer.value + b"\n")
    os._exit(7)
print("stopped", os.WSTOPSIG(os.waitpid(pid, 0)[1]) == signal.SIGSTOP)
TRACE_EXIT = 0x40
print("options", libc.ptrace(0x4200, pid, 0, TRACE_EXIT))
memory = os.open(f"/proc/{pid}/mem", os.O_RDWR)
print("read", os.pread(memory, 6, ctypes.addressof(buffer)), flush=True)
os.pwrite(memory, b"after!", ctypes.addressof(buffer))
continues = libc.ptrace(7, pid, 0, 0)
end = os.waitpid(pid, 0)[1]
print("continues", continues)
print("stops at its end", end >> 8 == signal.SIGTRAP | 6 << 8)
libc.ptrace(7, pid, 0, 0)
print("ended", os.WEXITSTATUS(os.waitpid(pid, 0)[1]))
"#;

pub(crate) const DEBUGGED: &str = "stopped True\noptions 0\nread b'before'\nafter!\ncontinues 0\nstops at its end True\nended 7\n";

#[tokio::test]
async fn a_call_debugs_what_it_has_started() {
    if !has_domains() {
        return;
    }
    let guest = TestGuest::start().await;
    fs::write(guest.path("debug.py"), DEBUG).expect("written");
    let (_, printed) = guest.bash(bash("python3 debug.py 2>&1")).await;
    assert_eq!(printed, DEBUGGED);
}

/// Returns whether a program of this machine can be tried. Past the test's own capture: a run must
/// not be silent about what it leaves out.
fn can_try(program: &str) -> bool {
    let can = has_domains()
        && Command::new(program)
            .arg("--version")
            .output()
            .is_ok_and(|done| done.status.success());
    if !can {
        drop(writeln!(
            std::io::stderr(),
            "left out, because {program} or landlock is not here: what {program} does in a call"
        ));
    }
    can
}

#[tokio::test]
async fn strace_follows_a_program_and_its_children() {
    if !can_try("strace") {
        return;
    }
    let guest = TestGuest::start().await;
    let (_, printed) = guest
        .bash(bash(
            "strace -f -o trace sh -c 'sh -c true; exit 3'; echo $?; grep -c 'execve(\"' trace",
        ))
        .await;
    assert_eq!(printed, "3\n2\n");
}

#[tokio::test]
async fn gdb_runs_a_program_and_joins_one_that_its_call_has_started() {
    if !can_try("gdb") {
        return;
    }
    let guest = TestGuest::start().await;
    let run = "gdb -nx -batch -ex 'catch exec' -ex run --args sh -c 'exec sleep 0' < /dev/null 2>&1 | grep -c '^Catchpoint 1 (exec.d .*sleep)'";
    let join = "sleep 60 & gdb -nx -batch -p $! -ex 'info proc' < /dev/null 2>&1 | grep -cx \"process $!\"; kill $!";
    assert_eq!(guest.bash(bash(run)).await.1, "1\n");
    assert_eq!(guest.bash(bash(join)).await.1, "1\n");
}

#[tokio::test]
async fn who_asks_to_be_traced_by_the_supervisor_goes_on_as_if_nobody_did() {
    const SCRIPT: &str = r#"
import ctypes, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace(0, 0, 0, 0)
signal.signal(signal.SIGUSR1, lambda *_: print("heard", flush=True))
os.kill(os.getpid(), signal.SIGUSR1)
print("continued", flush=True)
libc.ptrace(0, 0, 0, 0)
os.execvp("sh", ["sh", "-c", "echo executed; exit 5"])
"#;
    let guest = TestGuest::start().await;
    fs::write(guest.path("asks.py"), SCRIPT).expect("written");
    let (ended, printed) = guest.bash(bash("exec python3 asks.py")).await;
    assert_eq!(
        (printed.as_str(), ended.end),
        ("heard\ncontinued\nexecuted\n", End::Exited { code: 5 })
    );
}

/// Two processes that would trace each other so that each stops at its end until the other lets it
/// go. The younger one asks first: if it got that, the older one would not, so that nothing stays
/// for ever on the machine of whoever runs this.
const CIRCLE: &str = r#"
import ctypes, os, signal, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long] * 4
SEIZE, TRACE_EXIT, older = 0x4206, 0x40, os.getpid()
# Nothing that was started within the same hundredth of a second, and nobody's parent.
time.sleep(0.05)
up, asked = os.pipe(), os.pipe()
younger = os.fork()
if younger == 0:
    got = libc.ptrace(SEIZE, older, 0, TRACE_EXIT)
    plain = libc.ptrace(SEIZE, older, 0, 0)
    raised = libc.ptrace(0x4200, older, 0, TRACE_EXIT)
    os.write(asked[1], f"{got} {plain} {raised}".encode())
    time.sleep(1000)
said = os.read(asked[0], 100).decode()
print("younger", said, flush=True)
if said == "-1 0 -1":
    print("older", libc.ptrace(SEIZE, younger, 0, TRACE_EXIT), flush=True)
    os.kill(younger, signal.SIGKILL)
    os.kill(older, signal.SIGKILL)
"#;

#[tokio::test]
async fn r_12_two_that_trace_each_other_to_their_ends_end_with_their_call() {
    if !has_domains() {
        return;
    }
    let guest = TestGuest::start().await;
    let time = marker();
    fs::write(guest.path("circle.py"), CIRCLE).expect("written");
    let (ended, printed) = guest
        .bash(bash(&format!("exec python3 circle.py {time}")))
        .await;
    assert_eq!(
        (printed.as_str(), ended.end),
        (
            "younger -1 0 -1\nolder 0\n",
            End::Signaled {
                signal: libc::SIGKILL
            }
        )
    );
    assert!(vanishes(&time).await);
    assert_eq!(guest.bash(bash("echo on")).await.1, "on\n");
}
