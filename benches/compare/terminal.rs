//! A program at a terminal: keys go in, what is shown is waited for, and each frame is counted.

use std::io::Read;
use std::io::Write;
use std::num::NonZero;
use std::process::Command;
use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;
use std::time::Instant;

use portable_pty::Child;
use portable_pty::CommandBuilder;
use portable_pty::MasterPty;
use portable_pty::PtySize;
use portable_pty::native_pty_system;

use super::Outcome;
use super::cold::high_water_mark;

const ROWS: u16 = 40;
const COLUMNS: u16 = 120;
const PATIENCE: Duration = Duration::from_secs(120);
/// How a program begins a frame that the terminal shows as a whole.
const FRAME: &[u8] = b"\x1b[?2026h";

/// What the terminal has taken so far.
struct Shown {
    parser: vt100::Parser,
    n_frames: usize,
    is_over: bool,
}

pub(super) struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    keys: Box<dyn Write + Send>,
    shown: Arc<(Mutex<Shown>, Condvar)>,
    _master: Box<dyn MasterPty + Send>,
}

impl Terminal {
    pub(super) fn start(command: &Command) -> Outcome<Self> {
        let pty = native_pty_system().openpty(PtySize {
            rows: ROWS,
            cols: COLUMNS,
            pixel_width: 0,
            pixel_height: 0,
        })?;
        let mut builder = CommandBuilder::new(command.get_program());
        builder.env_clear();
        builder.args(command.get_args());
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                builder.env(name, value);
            }
        }
        builder.env("TERM", "xterm-256color");
        let child = pty.slave.spawn_command(builder)?;
        drop(pty.slave);
        let mut output = pty.master.try_clone_reader()?;
        let keys = pty.master.take_writer()?;
        let cells = |n| NonZero::new(n).ok_or("a terminal has cells");
        let parser = vt100::Parser::new(cells(ROWS)?, cells(COLUMNS)?, 0);
        let shown = Arc::new((
            Mutex::new(Shown {
                parser,
                n_frames: 0,
                is_over: false,
            }),
            Condvar::new(),
        ));
        let taken = Arc::clone(&shown);
        std::thread::spawn(move || {
            let (lock, changed) = &*taken;
            let mut buffer = vec![0; 64 << 10];
            while let Ok(n @ 1..) = output.read(&mut buffer) {
                let mut shown = lock.lock().unwrap_or_else(PoisonError::into_inner);
                shown.parser.process(&buffer[..n]);
                shown.n_frames += memchr::memmem::find_iter(&buffer[..n], FRAME).count();
                changed.notify_all();
            }
            lock.lock().unwrap_or_else(PoisonError::into_inner).is_over = true;
            changed.notify_all();
        });
        Ok(Self {
            child,
            keys,
            shown,
            _master: pty.master,
        })
    }

    pub(super) fn types(&mut self, keys: &str) -> Outcome<()> {
        Ok(self.keys.write_all(keys.as_bytes())?)
    }

    pub(super) fn shows(&self, words: &str) -> bool {
        let shown = self.shown.0.lock().unwrap_or_else(PoisonError::into_inner);
        shown.parser.screen().contents().contains(words)
    }

    /// Waits until this is on the screen.
    pub(super) fn sees(&self, words: &str) -> Outcome<()> {
        self.waits_for(words, |text| text.contains(words))
    }

    fn waits_for(&self, words: &str, is_there: impl Fn(&str) -> bool) -> Outcome<()> {
        let (lock, changed) = &*self.shown;
        let begun = Instant::now();
        let mut shown = lock.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let text = shown.parser.screen().contents();
            if is_there(&text) {
                return Ok(());
            }
            let left = PATIENCE.saturating_sub(begun.elapsed());
            if shown.is_over || left.is_zero() {
                return Err(format!("waited for `{words}`; the screen shows:\n{text}").into());
            }
            (shown, _) = changed
                .wait_timeout(shown, left)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn n_frames(&self) -> usize {
        let shown = self.shown.0.lock();
        shown.unwrap_or_else(PoisonError::into_inner).n_frames
    }

    /// Returns the most memory that the program had in RAM so far, in bytes.
    pub(super) fn most_memory(&self) -> Outcome<u64> {
        let pid = self.child.process_id().ok_or("the program has ended")?;
        Ok(high_water_mark(pid).ok_or("the kernel does not say how much memory it had")?)
    }

    /// Waits for its end.
    pub(super) fn ends(mut self) -> Outcome<()> {
        let status = self.child.wait()?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("the chat ended with {status:?}").into())
        }
    }
}
