//! What a command leaves behind in memory, without a process that could be ended for it, does not
//! lock the sandbox.

use serde_json::json;

use super::second::up;
use super::test_box::TestBox;
use crate::support::ScriptedModel;
use crate::support::test_env::run;

const MEMORY: &str = "128m";

/// A sandbox of little memory that stays between calls.
struct Small(TestBox);

impl Small {
    fn new() -> Option<Self> {
        let env = TestBox::new()?;
        up(
            &env,
            &ScriptedModel::new().start_blocking(),
            &["--memory", MEMORY],
        );
        Some(Self(env))
    }

    #[track_caller]
    fn call(&self, tool: &str, arguments: &serde_json::Value) -> String {
        run(&mut self
            .0
            .here(&["call", "--memory", MEMORY, tool, &arguments.to_string()]))
        .expect(0)
        .text()
    }

    #[track_caller]
    fn bash(&self, command: &str) -> String {
        self.call("bash", &json!({ "command": command }))
    }

    /// Panics unless a command may still have so much memory and the guest's own tools work.
    #[track_caller]
    fn is_of_use(&self, mib: u32) {
        let text = self.bash(&format!(
            "python3 -c 'x = bytearray({mib} << 20); print(\"fits\")'"
        ));
        assert_eq!(text, "fits\n");
        self.call("write_file", &json!({"path": "a.txt", "content": "one\n"}));
        assert_eq!(
            self.call("read_file", &json!({"path": "a.txt"})),
            "1\tone\n"
        );
    }

    #[track_caller]
    fn end(self, container: &str) {
        assert_eq!(self.0.container(), container, "all in one box");
        run(&mut self.0.here(&["down"])).expect(0);
        self.0.assert_no_container();
    }
}

#[test]
fn full_shared_memory_does_not_lock_the_box() {
    let Some(small) = Small::new() else { return };
    let container = small.0.container();
    let script = "head -c 500000000 /dev/zero > /dev/shm/large; stat -c %s /dev/shm/large";
    let text = small.bash(script);
    assert_eq!(text.matches("No space left on device").count(), 1, "{text}");
    let sizes: Vec<u64> = text.lines().filter_map(|line| line.parse().ok()).collect();
    assert_eq!(sizes, [64 << 20], "half of the memory, and of use: {text}");
    small.is_of_use(32);

    // Files without content take memory as well.
    let script = r#"
import os
for folder in ["/dev/shm"]:
    made = 0
    try:
        while made < 100_000:
            os.close(os.open(f"{folder}/{made:0100}", os.O_CREAT | os.O_WRONLY))
            made += 1
    except OSError as error:
        print(error.strerror, made > 1000)
"#;
    let text = small.call(
        "write_file",
        &json!({"path": "files.py", "content": script}),
    );
    assert!(text.contains("created"), "{text}");
    assert_eq!(
        small.bash("python3 files.py"),
        "No space left on device True\n"
    );
    small.is_of_use(8);

    let script = r#"
import os
for folder in ["/dev/shm"]:
    for entry in os.scandir(folder):
        if entry.is_file():
            os.unlink(entry)
    print("x", file=open(f"{folder}/y", "w"))
    print("room")
"#;
    small.call("write_file", &json!({"path": "tidy.py", "content": script}));
    assert_eq!(small.bash("python3 tidy.py"), "room\n");
    small.end(&container);
}

/// Shared memory, messages and semaphores outlive the command that made them.
#[test]
fn what_a_command_leaves_in_the_kernel_does_not_lock_the_box() {
    let Some(small) = Small::new() else { return };
    let container = small.0.container();
    let script = r#"
import ctypes
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
for _ in range(8):
    memory = libc.shmat(libc.shmget(0, 8 << 20, 0o1600), None, 0)
    assert memory and ctypes.memset(memory, 1, 8 << 20)
    print(ctypes.string_at(memory, 1))
queues = 0
message = ctypes.create_string_buffer(b"\1" * 8 + b"x" * 8000)
while (queue := libc.msgget(0, 0o1600)) >= 0 and queues < 5000:
    while libc.msgsnd(queue, message, 8000, 0o4000) == 0:
        pass
    queues += 1
sets = 0
while libc.semget(0, 250, 0o1600) >= 0 and sets < 5000:
    sets += 1
print(1 < queues < 5000, 1 < sets < 5000)
"#;
    small.call(
        "write_file",
        &json!({"path": "leave.py", "content": script}),
    );
    let text = small.bash("python3 leave.py");
    assert_eq!(
        text,
        "b'\\x01'\n".repeat(8) + "True True\n",
        "all three work, and none without end"
    );
    small.is_of_use(64);
    assert_eq!(
        small.bash("wc -l < /proc/sysvipc/shm"),
        "1\n",
        "no more than the list's head"
    );
    small.end(&container);
}
