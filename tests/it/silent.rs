//! `podbay sh` against a guest that takes the call and then neither says nor hears anything.

use std::fs::File;
use std::io::Read;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Child;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::mpsc;
use std::sync::mpsc::Receiver;
use std::time::Duration;
use std::time::Instant;

use nix::pty::Winsize;
use nix::sys::signal::Signal;
use nix::sys::termios::LocalFlags;
use nix::sys::termios::Termios;
use nix::sys::termios::tcgetattr;
use portable_pty::CommandBuilder;
use portable_pty::PtySize;
use portable_pty::native_pty_system;

use crate::hostile::attached;
use crate::hostile::facts;
use crate::hostile::listen;
use crate::support::TestEnv;
use crate::support::guest::PATIENCE;
use crate::support::test_env::start;
use crate::support::test_env::until;
use crate::support::test_env::within;

/// Far more than the grace of a command and what a sandbox has beyond it.
const BOUND: Duration = Duration::from_mins(1);

const SIZE: Winsize = Winsize {
    ws_row: 40,
    ws_col: 100,
    ws_xpixel: 0,
    ws_ypixel: 0,
};

/// Listens as a sandbox of which nothing more is heard once it has its call; tells when that is.
fn silence(socket: &Path) -> Receiver<()> {
    let (tell, told) = mpsc::channel();
    listen(socket, Some(facts()), move |guest| {
        guest.call()?;
        let _ = tell.send(());
        loop {
            std::thread::park();
        }
    });
    told
}

#[test]
fn a_shell_in_a_silent_sandbox_ends_with_a_signal() {
    let ways = [
        (Signal::SIGTERM, 143, 0),
        (Signal::SIGHUP, 129, 0),
        (Signal::SIGINT, 130, 0),
        (Signal::SIGTERM, 143, 2 << 20),
    ];
    std::thread::scope(|scope| {
        for (signal, code, n_bytes) in ways {
            scope.spawn(move || {
                let env = TestEnv::new();
                let told = silence(&env.beside("guest.sock"));
                let mut command = env.podbay(&["sh", "--", "cat"]);
                attached(
                    &env,
                    command
                        .env("PODBAY_SANDBOX_GRACE", "1s")
                        .stdin(Stdio::piped()),
                );
                let mut shell = start(&mut command);
                // Input that nobody takes holds nobody up either.
                shell.feed(vec![b'x'; n_bytes]);
                told.recv_timeout(PATIENCE).expect("it calls");
                if n_bytes > 0 {
                    std::thread::sleep(Duration::from_millis(500));
                }
                shell.signal(signal);
                shell
                    .wait()
                    .expect(code)
                    .says(&["the sandbox does not answer"]);
            });
        }
    });
}

/// `podbay sh` at a terminal of the test's.
struct Seat {
    child: Child,
    hands: File,
    terminal: OwnedFd,
    /// How the terminal was.
    before: Termios,
    screen: Arc<Mutex<String>>,
}

impl Seat {
    fn take(env: &TestEnv) -> Self {
        Self::at(env, SIZE, "1s")
    }

    fn at(env: &TestEnv, size: Winsize, grace: &str) -> Self {
        let told = silence(&env.beside("guest.sock"));
        let pty = nix::pty::openpty(Some(&size), None).expect("a terminal");
        let before = tcgetattr(&pty.slave).expect("a mode");
        let end = || Stdio::from(pty.slave.try_clone().expect("clones"));
        let mut command = env.podbay(&["sh"]);
        attached(
            env,
            command
                .env("PODBAY_SANDBOX_GRACE", grace)
                .stdin(end())
                .stdout(end())
                .stderr(end()),
        );
        let child = command.spawn().expect("starts");
        told.recv_timeout(PATIENCE).expect("it calls");
        let screen = Arc::new(Mutex::new(String::new()));
        let hands = File::from(pty.master);
        let mut eyes = hands.try_clone().expect("clones");
        let seen = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = eyes.read(&mut buffer) {
                seen.lock()
                    .expect("not poisoned")
                    .push_str(&String::from_utf8_lossy(&buffer[..n]));
            }
        });
        let seat = Self {
            child,
            hands,
            terminal: pty.slave,
            before,
            screen,
        };
        assert!(
            until(|| !seat.mode().local_flags.contains(LocalFlags::ICANON)),
            "keys are handed through: {}",
            seat.text()
        );
        seat
    }

    fn mode(&self) -> Termios {
        tcgetattr(&self.terminal).expect("a mode")
    }

    fn text(&self) -> String {
        self.screen.lock().expect("not poisoned").clone()
    }

    fn types(&mut self, keys: &str) {
        self.hands
            .write_all(keys.as_bytes())
            .expect("the terminal takes keys");
    }

    fn signal(&self, signal: Signal) {
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.child.id() as i32), signal);
    }

    /// Waits for the end; the terminal is then as it was.
    #[track_caller]
    fn ends(mut self, code: i32) {
        let mut status = None;
        let ended = within(BOUND, || {
            status = self.child.try_wait().expect("our own child");
            status.is_some()
        });
        if !ended {
            let _ = self.child.kill();
        }
        assert_eq!(
            status.and_then(|status| status.code()),
            Some(code),
            "{}",
            self.text()
        );
        assert_eq!(self.mode(), self.before, "{}", self.text());
    }
}

#[test]
fn a_terminal_is_as_it_was_after_a_signal_to_a_silent_shell() {
    for (signal, code) in [(Signal::SIGTERM, 143), (Signal::SIGHUP, 129)] {
        let env = TestEnv::new();
        let seat = Seat::take(&env);
        seat.signal(signal);
        seat.ends(code);
    }
}

#[test]
fn a_terminal_is_as_it_was_where_nothing_is_waited_for_any_more() {
    let env = TestEnv::new();
    let mut seat = Seat::at(&env, SIZE, "10m");
    let begun = Instant::now();
    // The fourth ends the process where it stands.
    while seat.child.try_wait().expect("our own child").is_none() && begun.elapsed() < BOUND {
        seat.signal(Signal::SIGTERM);
        std::thread::sleep(Duration::from_millis(50));
    }
    seat.ends(143);
}

#[test]
fn ctrl_c_that_a_silent_sandbox_does_not_take_leaves_it() {
    let env = TestEnv::new();
    let mut seat = Seat::take(&env);
    seat.types("ls\n\x03\x03\x03");
    std::thread::sleep(Duration::from_millis(2500));
    assert!(
        seat.child.try_wait().expect("our own child").is_none(),
        "a busy sandbox has its time: {}",
        seat.text()
    );
    seat.types("\x03");
    assert!(
        until(|| seat
            .text()
            .contains("the sandbox does not answer; Ctrl-C once more leaves it")),
        "{}",
        seat.text()
    );
    seat.types("\x03");
    seat.ends(125);
}

#[test]
fn ctrl_c_behind_more_than_a_silent_sandbox_has_room_for_leaves_it() {
    let env = TestEnv::new();
    let mut seat = Seat::take(&env);
    let begun = Instant::now();
    // The terminal takes no more while nobody reads it.
    let mut hands = seat.hands.try_clone().expect("clones");
    let pasted = std::thread::spawn(move || hands.write_all(&b"x".repeat(1 << 20)));
    let is_read = within(BOUND, || pasted.is_finished());
    assert!(is_read, "what is pasted is read: {}", seat.text());
    assert!(
        begun.elapsed() > Duration::from_secs(1),
        "a busy sandbox has its time: {:?}",
        begun.elapsed()
    );
    assert!(
        until(|| seat.text().contains("the command takes no more input")),
        "{}",
        seat.text()
    );
    seat.types("\x03");
    std::thread::sleep(Duration::from_millis(2500));
    assert!(
        seat.child.try_wait().expect("our own child").is_none(),
        "{}",
        seat.text()
    );
    seat.types("\x03");
    assert!(
        until(|| seat
            .text()
            .contains("the sandbox does not answer; Ctrl-C once more leaves it")),
        "{}",
        seat.text()
    );
    seat.types("\x03");
    assert_eq!(
        seat.text()
            .matches("the command takes no more input")
            .count(),
        1,
        "{}",
        seat.text()
    );
    seat.ends(125);
}

#[test]
fn a_terminal_that_does_not_say_its_size_is_one() {
    let env = TestEnv::new();
    // It waits until keys are handed through.
    let seat = Seat::at(
        &env,
        Winsize {
            ws_row: 0,
            ws_col: 0,
            ws_xpixel: 0,
            ws_ypixel: 0,
        },
        "1s",
    );
    seat.signal(Signal::SIGTERM);
    seat.ends(143);
}

#[test]
fn a_terminal_that_is_closed_ends_a_silent_shell() {
    let env = TestEnv::new();
    let told = silence(&env.beside("guest.sock"));
    let pty = native_pty_system()
        .openpty(PtySize {
            rows: 40,
            cols: 100,
            pixel_width: 0,
            pixel_height: 0,
        })
        .expect("a pty");
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_podbay"));
    let mut like = env.podbay(&[]);
    attached(&env, like.env("PODBAY_SANDBOX_GRACE", "1s"));
    command.env_clear();
    for (name, value) in like.get_envs() {
        command.env(name, value.expect("none is taken away"));
    }
    command.arg("sh");
    let mut child = pty.slave.spawn_command(command).expect("starts");
    drop(pty.slave);
    told.recv_timeout(PATIENCE).expect("it calls");
    drop(pty.master);
    let mut status = None;
    let ended = within(BOUND, || {
        status = child.try_wait().expect("our own child");
        status.is_some()
    });
    if !ended {
        let _ = child.kill();
    }
    assert_eq!(status.map(|status| status.exit_code()), Some(129));
}
