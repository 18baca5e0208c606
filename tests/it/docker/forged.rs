//! What commands do to PID 1 and to each other by signals and priorities, and what they take from
//! the user by leases.

use std::time::Duration;

use nix::sys::signal::Signal;

use super::second::up;
use super::test_box::TestBox;
use super::test_box::docker;
use crate::support::ScriptedModel;
use crate::support::test_env::run;
use crate::support::test_env::start;
use crate::support::test_env::within;

/// Sends PID 1 a TERM in every way that hides who sends it, and prints what the kernel said to
/// each.
const FORGE: &str = r#"
import ctypes, errno, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
queue, queue_to, tgkill, tkill, pidfd_open, pidfd_send = map(int, sys.argv[1:])
def call(*numbers):
    ctypes.set_errno(0)
    return "done" if libc.syscall(*numbers) >= 0 else errno.errorcode[ctypes.get_errno()]
def info(number):
    made = (ctypes.c_int * 32)()
    made[0], made[2] = number, -1
    return ctypes.byref(made)
ends = signal.SIGTERM
one = libc.syscall(pidfd_open, 1, 0)
def all_ways():
    return [call(queue, 1, ends, info(ends)), call(queue_to, 1, 1, ends, info(ends)), call(tgkill, 1, 1, ends), call(tkill, 1, ends),
            call(pidfd_send, one, ends, info(ends), 0), call(pidfd_send, one, ends, None, 1)]
said = all_ways()
# With more waiting than may wait the kernel forgets who sent a signal.
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
while call(queue, os.getpid(), 40, info(40)) == "done":
    pass
print(*sorted(set(said + all_ways())))
"#;

fn forge() -> Vec<String> {
    let numbers = [
        libc::SYS_rt_sigqueueinfo,
        libc::SYS_rt_tgsigqueueinfo,
        libc::SYS_tgkill,
        libc::SYS_tkill,
        libc::SYS_pidfd_open,
        libc::SYS_pidfd_send_signal,
    ];
    [
        vec!["python3".to_owned(), "-c".to_owned(), FORGE.to_owned()],
        numbers.map(|number| number.to_string()).to_vec(),
    ]
    .concat()
}

#[test]
fn no_forged_signal_ends_a_box() {
    let Some(env) = TestBox::new() else { return };
    let forge = forge();
    let forge: Vec<&str> = forge.iter().map(String::as_str).collect();
    let own = || {
        run(&mut env.here(&[&["sh", "--"], &forge[..]].concat()))
            .expect(0)
            .text()
    };
    assert_eq!(own(), "EPERM\n", "in a sandbox of its own");

    let model = ScriptedModel::new().start_blocking();
    up(&env, &model, &[]);
    let container = env.container();
    assert_eq!(own(), "EPERM\n");
    // A process that the engine starts has no filter, and PID 1 looks at the signal itself.
    let numbers = format!("{} 15", libc::SYS_rt_sigqueueinfo);
    let script = "import ctypes,sys; m=(ctypes.c_int*32)(15,0,-1); n,s=map(int,sys.argv[1].split()); \
                  print(ctypes.CDLL(None).syscall(n,1,s,ctypes.byref(m)))";
    assert_eq!(
        docker(&["exec", &container, "python3", "-c", script, &numbers]),
        "0\n",
        "it is sent"
    );
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(env.containers(), [container.as_str()]);
    assert_eq!(
        run(&mut env.here(&["sh", "--", "echo", "joined"]))
            .expect(0)
            .text(),
        "joined\n"
    );
    docker(&["kill", "--signal", "TERM", &container]);
    assert!(
        within(Duration::from_secs(20), || env.containers().is_empty()),
        "from outside it is obeyed"
    );
}

/// Gives everybody else the lowest priority, then keeps all processors busy.
const STARVE: &str = r#"
import ctypes, os, time
libc = ctypes.CDLL(None, use_errno=True)
for pid in filter(str.isdigit, os.listdir("/proc")):
    if int(pid) != os.getpid():
        for task in os.listdir(f"/proc/{pid}/task"):
            try: os.sched_setscheduler(int(task), os.SCHED_IDLE, os.sched_param(0))
            except OSError: pass
            try: os.setpriority(os.PRIO_PROCESS, int(task), 19)
            except OSError: pass
try: os.setpriority(os.PRIO_USER, 0, 19)
except OSError: pass
end = time.time() + 600
for _ in range(40):
    if os.fork() == 0:
        while time.time() < end: pass
        os._exit(0)
while time.time() < end: pass
"#;

#[test]
fn commands_take_no_priority_from_who_is_to_end_them() {
    let Some(env) = TestBox::new() else { return };
    env.write("starve.py", STARVE);
    let begun = std::time::Instant::now();
    let done = run(&mut env.here(&[
        "call",
        "bash",
        r#"{"command": "python3 starve.py", "timeout_seconds": 2}"#,
    ]))
    .expect(1);
    let (text, took) = (done.text(), begun.elapsed());
    assert!(
        text.contains("it ran longer than the limit of 2 s"),
        "{text}"
    );
    assert!(
        took < Duration::from_mins(5),
        "it was over only with its own end: {took:?}"
    );
    env.assert_no_container();
    // To step back oneself is everybody's right.
    let own = "nice -n 10 nice && ionice -c 3 true && python3 -c 'import os; os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))'";
    assert_eq!(
        run(&mut env.here(&["sh", "--", "sh", "-c", own]))
            .expect(0)
            .text(),
        "19\n"
    );
}

#[test]
fn commands_step_back_for_the_guest() {
    let Some(env) = TestBox::new() else { return };
    // The command, and whatever priority it asks for back.
    let command =
        "nice; python3 -c 'import os; os.setpriority(os.PRIO_PROCESS, 0, 0)' 2>&1 | tail -n 1";
    let text = run(&mut env.here(&["sh", "--", "bash", "-c", command]))
        .expect(0)
        .text();
    assert!(text.starts_with("19\nPermissionError"), "{text}");
    // Who is to end them has the usual one: PID 1 of a run's own sandbox serves the calls, and its
    // child starts the commands.
    let others = r#"{"command": "for pid in 1 $(cat /proc/1/task/1/children); do cut -d ' ' -f 19 /proc/$pid/stat; done"}"#;
    let text = run(&mut env.here(&["call", "bash", others]))
        .expect(0)
        .text();
    assert_eq!(text, "0\n0\n");
}

#[test]
fn commands_lease_no_files() {
    let Some(env) = TestBox::new() else { return };
    env.write("kept.txt", "kept");
    let script = "import fcntl, os, sys\n\
                  for command in (1024, 1040):\n    \
                      try: fcntl.fcntl(os.open('kept.txt', os.O_RDONLY), command, 1); print('leased')\n    \
                      except OSError as error: print(error.errno)\n\
                  fcntl.lockf(open('kept.txt', 'r+'), fcntl.LOCK_EX); print('locked', flush=True)\n\
                  open('begun', 'w').close()\n\
                  import time; time.sleep(60)";
    let holder = start(&mut env.here(&["sh", "--", "python3", "-c", script]));
    env.wait_for("begun");
    let (done, reads) = std::sync::mpsc::channel();
    let path = env.path("kept.txt");
    std::thread::spawn(move || done.send(std::fs::read_to_string(path)));
    let read = reads
        .recv_timeout(Duration::from_secs(10))
        .expect("nobody waits for a lease")
        .expect("reads");
    assert_eq!(read, "kept");
    holder.signal(Signal::SIGTERM);
    let ended = holder.wait();
    assert_eq!(
        ended.text(),
        format!("{0}\n{0}\nlocked\n", libc::EPERM),
        "an ordinary lock is everybody's"
    );
    env.assert_no_container();
}
