//! The program on a terminal with a screen: keys go in, and what a user sees is read back.

use std::io::Read;
use std::io::Write;
use std::num::NonZero;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::sys::termios;
use nix::sys::termios::Termios;
use nix::unistd::Pid;
use portable_pty::CommandBuilder;
use portable_pty::MasterPty;
use portable_pty::PtySize;
use portable_pty::native_pty_system;

use super::test_env::within;

/// How long anything on the screen may take; an engine is slow at times.
const PATIENCE: Duration = Duration::from_secs(60);

/// A terminal, and what runs in it.
pub(crate) struct Screen {
    child: Box<dyn portable_pty::Child + Send + Sync>,
    hands: Arc<Mutex<Box<dyn Write + Send>>>,
    master: Box<dyn MasterPty + Send>,
    shown: Arc<Mutex<vt100::Parser>>,
    terminal: PathBuf,
    before: Termios,
}

fn size(rows: u16, cols: u16) -> PtySize {
    PtySize {
        rows,
        cols,
        pixel_width: 0,
        pixel_height: 0,
    }
}

fn cells(n: u16) -> NonZero<u16> {
    NonZero::new(n).expect("no test has a terminal without cells")
}

impl Screen {
    /// Starts a command at a terminal of 24 lines.
    pub(crate) fn start(command: &std::process::Command) -> Self {
        let pty = native_pty_system().openpty(size(24, 80)).expect("a pty");
        let mut builder = CommandBuilder::new(command.get_program());
        builder.env_clear();
        builder.args(command.get_args());
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                builder.env(name, value);
            }
        }
        builder.env("TERM", "xterm-256color");
        builder.cwd(command.get_current_dir().expect("a folder of its own"));
        let terminal = pty.master.tty_name().expect("it has a name");
        let before = attributes(&terminal);
        let child = pty.slave.spawn_command(builder).expect("starts");
        drop(pty.slave);
        let mut reader = pty.master.try_clone_reader().expect("a reader");
        let hands = Arc::new(Mutex::new(pty.master.take_writer().expect("a writer")));
        let answers = Arc::clone(&hands);
        let shown = Arc::new(Mutex::new(vt100::Parser::new(cells(24), cells(80), 0)));
        let keep = Arc::clone(&shown);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = reader.read(&mut buffer) {
                let mut parser = keep.lock().expect("not poisoned");
                parser.process(&buffer[..n]);
                // A terminal says where its cursor is.
                if buffer[..n].windows(4).any(|bytes| bytes == b"\x1b[6n") {
                    let (row, column) = parser.screen().cursor_position();
                    let place = format!("\x1b[{};{}R", row + 1, column + 1);
                    let mut hands = answers.lock().expect("not poisoned");
                    let _ = hands.write_all(place.as_bytes());
                }
            }
        });
        Self {
            child,
            hands,
            master: pty.master,
            shown,
            terminal,
            before,
        }
    }

    pub(crate) fn text(&self) -> String {
        self.shown.lock().expect("not poisoned").screen().contents()
    }

    /// Waits until this is on the screen; returns all of it.
    #[track_caller]
    pub(crate) fn sees(&self, words: &str) -> String {
        assert!(
            within(PATIENCE, || self.text().contains(words)),
            "`{words}` is not on the screen:\n{}",
            self.text()
        );
        self.text()
    }

    /// Waits until this is not on the screen any longer.
    #[track_caller]
    pub(crate) fn loses(&self, words: &str) {
        assert!(
            within(PATIENCE, || !self.text().contains(words)),
            "`{words}` is on the screen:\n{}",
            self.text()
        );
    }

    pub(crate) fn types(&mut self, keys: &str) {
        self.hands
            .lock()
            .expect("not poisoned")
            .write_all(keys.as_bytes())
            .expect("the terminal takes keys");
    }

    /// Types when a question has been there long enough for a key to answer it.
    pub(crate) fn answers(&mut self, keys: &str) {
        std::thread::sleep(Duration::from_millis(700));
        self.types(keys);
    }

    pub(crate) fn resize(&mut self, rows: u16, cols: u16) {
        self.shown
            .lock()
            .expect("not poisoned")
            .screen_mut()
            .set_size(cells(rows), cells(cols));
        self.master.resize(size(rows, cols)).expect("resized");
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = self.child.process_id().expect("it runs");
        nix::sys::signal::kill(Pid::from_raw(pid as i32), signal).expect("sent");
    }

    /// Waits for its end; returns the exit code and what is on the terminal then. The terminal is as
    /// it was before: its attributes, its screen, its cursor.
    #[track_caller]
    pub(crate) fn ends(mut self) -> (u32, String) {
        let code = self.child.wait().expect("ends").exit_code();
        let after = attributes(&self.terminal);
        assert_eq!(after, self.before, "the terminal's attributes");
        // What it wrote last may be still under way.
        let is_back = || {
            let parser = self.shown.lock().expect("not poisoned");
            let screen = parser.screen();
            !screen.alternate_screen() && !screen.hide_cursor() && !screen.bracketed_paste()
        };
        assert!(within(Duration::from_secs(5), is_back), "{}", self.text());
        std::thread::sleep(Duration::from_millis(200));
        (code, self.text())
    }
}

/// Returns what `stty -a` shows.
fn attributes(terminal: &std::path::Path) -> Termios {
    let terminal = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NOCTTY)
        .open(terminal)
        .expect("the terminal is there");
    termios::tcgetattr(&terminal).expect("it is a terminal")
}
