use std::io;
use std::io::IsTerminal;
use std::io::Read;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::SignalKind;
use tokio::signal::unix::signal;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::args::OutputFormat;
use super::args::ShArgs;
use super::flags;
use super::front::Nobody;
use super::held_events::HeldEvents;
use super::raw::RawTerminal;
use super::raw::window_size;
use super::setup::Setup;
use podbay_app as app;
use podbay_app::Interrupt;
use podbay_app::Shell;
use podbay_app::ShellCommand;
use podbay_app::ShellInput;
use podbay_app::ShellUpdate;
use podbay_app::exit_code;
use podbay_event::Kind;
use podbay_event::Seconds;

/// Pieces of input that wait for room in the command's window, so that a Ctrl-C behind them is
/// seen.
const QUEUE: usize = 64;

const CTRL_C: u8 = 3;

/// Rows and columns of a terminal that does not say, as a serial line.
const SIZE: (u16, u16) = (24, 80);

/// A sandbox that lives takes a key at once, also where the machine has much to do.
const ANSWERS: Duration = Duration::from_secs(2);

/// Runs a shell or a command; whatever goes wrong on our side has its own code, so that the
/// command's codes stay its own.
pub(super) async fn sh(args: ShArgs) -> Result<u8, app::Error> {
    sh_hearing(args, Arc::new(|_: &Kind| {})).await
}

/// The same; `hear` knows of what happens meanwhile.
pub(super) async fn sh_hearing(
    args: ShArgs,
    hear: Arc<dyn Fn(&Kind) + Send + Sync>,
) -> Result<u8, app::Error> {
    let mut overrides = Vec::new();
    flags::place(&args.place, &mut overrides)?;
    let setup = Setup::in_project(&args.place.config, args.place.path.as_deref(), overrides)?;
    if args.detach {
        return super::jobs::detach(&args, &setup).await;
    }
    let interrupt = Interrupt::new();
    let terminal = setup.terminal(OutputFormat::Text);
    setup.show_warnings(&terminal);
    let place = setup.place_without_key(args.place.path.as_deref(), app::Mode::Auto)?;
    let mut front = terminal.front(&interrupt, Arc::new(Nobody));
    let events = HeldEvents::new(Arc::clone(&front.sink));
    let sink = events.sink();
    front.sink = Arc::new(move |event| {
        hear(&event.kind);
        if matches!(
            event.kind,
            Kind::Warning { .. } | Kind::Progress(_) | Kind::NetworkAttempted(_)
        ) {
            sink(event);
        }
    });
    let interactive = io::stdin().is_terminal() && io::stdout().is_terminal();
    let size = interactive.then(|| window_size().unwrap_or(SIZE));
    let kind = std::env::var("TERM").unwrap_or_else(|_| "dumb".to_owned());
    let with = size.map(|(rows, columns)| (rows, columns, kind));
    // Until the command runs, a signal ends the start; afterwards it is passed on.
    let starting = super::run::listen(&interrupt)?;
    let command = ShellCommand {
        argv: args.command,
        directory: args.cwd.as_deref().map(in_project),
        environment: args.env,
        timeout: args.timeout.map(Seconds::duration),
        terminal: with,
    };
    if let Some(id) = &args.job {
        return app::hold_job(&place, command, id, &front).await;
    }
    let mut shell = match app::shell(&place, command, &front).await {
        Ok(shell) => shell,
        Err(error) => {
            terminal.finish();
            super::failure::show(&error, &mut io::stderr(), terminal.paint);
            let own = if error.exit_code() == exit_code::INTERRUPTED {
                exit_code::INTERRUPTED
            } else {
                exit_code::SHELL_FAILED
            };
            return Ok(starting.exit_code(own));
        }
    };
    terminal.finish();
    events.hold();
    let raw = if size.is_some() {
        RawTerminal::enter().ok()
    } else {
        None
    };
    let code = converse(&mut shell, &interrupt, size.is_some()).await;
    drop(raw);
    // What cannot be ended is said.
    terminal.begin(&setup.config.ui);
    events.release();
    shell.close().await;
    terminal.finish();
    Ok(starting.exit_code(code))
}

/// Returns a folder as a path from the project's: one that begins with `/workspace` is where commands
/// see it.
fn in_project(folder: &Path) -> PathBuf {
    folder
        .strip_prefix("/workspace")
        .map_or_else(|_| folder.to_owned(), Path::to_owned)
}

/// What can happen next while a command runs.
enum Next {
    Came(ShellUpdate),
    Typed(Option<Vec<u8>>),
    Resized,
    Stopped,
    Late,
}

async fn converse(shell: &mut Shell, interrupt: &Interrupt, with_terminal: bool) -> u8 {
    let mut typed = read_input();
    let input = shell.input();
    // Fed aside: input that a sandbox does not take must keep nobody from what else happens.
    let (queue, waiting) = mpsc::channel(QUEUE);
    let mut queue = Some(queue);
    let _feeding = AbortOnDropHandle::new(tokio::spawn(feed(shell.input(), waiting)));
    let Ok(mut resizes) = signal(SignalKind::window_change()) else {
        return exit_code::SHELL_FAILED;
    };
    let mut unheard = Unheard::default();
    // Until when room is waited for, where there is none.
    let mut full_until: Option<Instant> = None;
    let mut is_dropping = false;
    let mut n_stops = 0;
    // When a command that was asked to end is no longer waited for.
    let mut ends_at: Option<Instant> = None;
    // Why its output cannot be passed on, once that is so; the command is ended then.
    let mut unwritten: Option<io::Error> = None;
    let end = if with_terminal { "\r\n" } else { "\n" };
    loop {
        // Of a terminal nobody waits longer than that: a Ctrl-C may be behind what it pasted.
        full_until = match &queue {
            Some(queue) if with_terminal && queue.capacity() == 0 => {
                full_until.or(Some(Instant::now() + ANSWERS))
            }
            _ => None,
        };
        let late = tokio::time::sleep_until(ends_at.unwrap_or_else(Instant::now));
        let next = tokio::select! {
            came = shell.recv() => Next::Came(came),
            bytes = hear(&mut typed, queue.as_ref(), full_until), if queue.is_some() => Next::Typed(bytes),
            _ = resizes.recv(), if with_terminal => Next::Resized,
            () = interrupt.run().cancelled(), if n_stops == 0 => Next::Stopped,
            () = interrupt.haste().cancelled(), if n_stops == 1 => Next::Stopped,
            () = late, if ends_at.is_some() => Next::Late,
        };
        match next {
            // Raw, the one way past the sanitiser: the user asked for this command's own bytes.
            Next::Came(ShellUpdate::Stdout(bytes)) => {
                let mut out = io::stdout().lock();
                if unwritten.is_none()
                    && let Err(error) = out.write_all(&bytes).and_then(|()| out.flush())
                {
                    unwritten = Some(error);
                    ends_at.get_or_insert(Instant::now() + shell.cancel());
                }
            }
            Next::Came(ShellUpdate::Stderr(bytes)) => {
                let _ = io::stderr().write_all(&bytes);
            }
            Next::Came(ShellUpdate::Ended { code, note }) => {
                if let Some(note) = note {
                    super::say(&format!("podbay: {}{end}", podbay_ui::text::line(&note)));
                }
                return unwritten.map_or(code, |error| undelivered(&error, end));
            }
            Next::Came(ShellUpdate::Failed { problem }) => {
                super::say(&format!("error: {}{end}", podbay_ui::text::line(&problem)));
                return exit_code::SHELL_FAILED;
            }
            Next::Typed(Some(bytes)) => {
                let Some(to) = &queue else { continue };
                let is_taken = to.capacity() == QUEUE && input.is_taken();
                match if with_terminal {
                    unheard.typed(&bytes, is_taken, Instant::now())
                } else {
                    Heard::InTime
                } {
                    Heard::InTime => {}
                    Heard::TooLate => super::say(&format!(
                        "{end}podbay: the sandbox does not answer; Ctrl-C once more leaves it{end}"
                    )),
                    Heard::Never => {
                        super::say(&format!("{end}error: the sandbox does not answer{end}"));
                        return exit_code::SHELL_FAILED;
                    }
                }
                match to.try_send(bytes) {
                    Ok(()) => (full_until, is_dropping) = (None, false),
                    Err(TrySendError::Full(_)) => {
                        if !std::mem::replace(&mut is_dropping, true) {
                            super::say(&format!(
                                "{end}podbay: the command takes no more input; what is typed until it does is lost{end}"
                            ));
                        }
                    }
                    // The command has ended.
                    Err(TrySendError::Closed(_)) => queue = None,
                }
            }
            Next::Typed(None) => queue = None,
            Next::Resized => {
                if let Some((rows, columns)) = window_size() {
                    shell.resize(rows, columns);
                }
            }
            Next::Stopped => {
                n_stops += 1;
                let within = if n_stops == 1 {
                    shell.cancel()
                } else {
                    shell.hurry()
                };
                let at = Instant::now() + within;
                ends_at = Some(ends_at.map_or(at, |before| before.min(at)));
            }
            Next::Late => {
                super::say(&format!(
                    "error: the command was asked to end, and the sandbox does not answer{end}"
                ));
                return unwritten.map_or(exit_code::INTERRUPTED, |error| undelivered(&error, end));
            }
        }
    }
}

/// Says that the command's output could not be passed on, where nobody knows that yet.
fn undelivered(error: &io::Error, end: &str) -> u8 {
    // Whoever read our output has had enough: it is as if the command had written into that pipe
    // itself.
    if error.kind() == io::ErrorKind::BrokenPipe {
        return exit_code::BROKEN_PIPE;
    }
    super::say(&format!(
        "error: cannot write the command's output to the standard output: {error}{end}"
    ));
    exit_code::SHELL_FAILED
}

/// Waits for input, while there is room for it: what the command does not take now waits in its
/// window, beyond that our own end waits, but not longer than `until`. `None`: the input has ended,
/// or nobody takes any more.
async fn hear(
    typed: &mut mpsc::Receiver<Vec<u8>>,
    queue: Option<&mpsc::Sender<Vec<u8>>>,
    until: Option<Instant>,
) -> Option<Vec<u8>> {
    let room = queue?.reserve();
    let _room = match until {
        Some(until) => tokio::time::timeout_at(until, room).await.ok().transpose(),
        None => room.await.map(Some),
    }
    .ok()?;
    typed.recv().await
}

/// Feeds the command until there is no more, or it has ended.
async fn feed(input: ShellInput, mut waiting: mpsc::Receiver<Vec<u8>>) {
    while let Some(bytes) = waiting.recv().await {
        if !input.send(&bytes).await {
            return;
        }
    }
    input.close();
}

/// Ctrl-C that the sandbox has not taken. In a terminal handed through it is a key like any other
/// and for the command to hear, but a sandbox that takes no key at all must not keep the user.
#[derive(Default)]
struct Unheard {
    /// When the first of them was pressed.
    since: Option<Instant>,
    is_said: bool,
}

/// Whether a Ctrl-C still reaches anybody.
#[derive(Debug, PartialEq, Eq)]
enum Heard {
    InTime,
    TooLate,
    Never,
}

impl Unheard {
    /// Takes what was typed; `is_taken` says whether the sandbox has taken all that was typed
    /// before.
    fn typed(&mut self, bytes: &[u8], is_taken: bool, now: Instant) -> Heard {
        if is_taken {
            *self = Self::default();
        }
        if !bytes.contains(&CTRL_C) {
            return Heard::InTime;
        }
        if now.duration_since(*self.since.get_or_insert(now)) < ANSWERS {
            return Heard::InTime;
        }
        if std::mem::replace(&mut self.is_said, true) {
            Heard::Never
        } else {
            Heard::TooLate
        }
    }
}

/// Reads the standard input on a thread of its own: a read that waits for ever must not hold up the
/// end of the program.
fn read_input() -> mpsc::Receiver<Vec<u8>> {
    let (send, receive) = mpsc::channel(4);
    std::thread::spawn(move || {
        let mut buffer = vec![0; 16 * 1024];
        loop {
            match io::stdin().read(&mut buffer) {
                Ok(0) | Err(_) => return,
                Ok(n) => {
                    if send.blocking_send(buffer[..n].to_vec()).is_err() {
                        return;
                    }
                }
            }
        }
    });
    receive
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ctrl_c_that_nobody_took_for_a_while_leaves() {
        let start = Instant::now();
        let mut unheard = Unheard::default();
        let mut typed = |ms: u64, bytes: &[u8], is_taken: bool| {
            unheard.typed(bytes, is_taken, start + Duration::from_millis(ms))
        };
        assert_eq!(typed(0, b"\x03", true), Heard::InTime);
        assert_eq!(
            typed(1900, b"\x03", false),
            Heard::InTime,
            "a busy sandbox has its time"
        );
        assert_eq!(typed(3000, b"x", false), Heard::InTime);
        assert_eq!(typed(3100, b"\x03", false), Heard::TooLate);
        assert_eq!(typed(3200, b"y", true), Heard::InTime, "it has come back");
        // A program that takes every Ctrl-C and ends of none is the user's own.
        for second in 4..20 {
            assert_eq!(typed(second * 1000, b"\x03", true), Heard::InTime);
        }
        assert_eq!(typed(30_000, b"\x03", false), Heard::TooLate);
        assert_eq!(typed(30_001, b"a\x03b", false), Heard::Never);
    }
}
