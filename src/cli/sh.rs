use std::io;
use std::io::IsTerminal;
use std::io::Read;
use std::io::Write;
use std::sync::Arc;

use tokio::signal::unix::SignalKind;
use tokio::signal::unix::signal;
use tokio::sync::mpsc;

use super::args::OutputFormat;
use super::args::ShArgs;
use super::flags;
use super::front::Nobody;
use super::raw::RawTerminal;
use super::raw::window_size;
use super::setup::Setup;
use crate::app;
use crate::app::Interrupt;
use crate::app::Shell;
use crate::app::ShellUpdate;
use crate::app::exit_code;
use crate::event::Kind;

/// Runs a shell or a command; whatever goes wrong on our side has its own code, so that the command's codes stay its own.
pub(super) async fn sh(args: ShArgs) -> Result<u8, app::Error> {
    let mut overrides = Vec::new();
    flags::place(&args.place, &mut overrides)?;
    let setup = Setup::in_project(&args.place.config, args.place.path.as_deref(), overrides)?;
    let interrupt = Interrupt::new();
    let terminal = setup.terminal(OutputFormat::Text);
    setup.show_warnings(&terminal);
    let place = setup.place_without_key(args.place.path.as_deref(), app::Mode::Auto)?;
    let mut front = terminal.front(&interrupt, Arc::new(Nobody));
    let sink = Arc::clone(&front.sink);
    front.sink = Arc::new(move |event| {
        if matches!(event.kind, Kind::Warning { .. } | Kind::Progress(_)) {
            sink(event);
        }
    });
    let interactive = io::stdin().is_terminal() && io::stdout().is_terminal();
    let size = interactive.then(window_size).flatten();
    let kind = std::env::var("TERM").unwrap_or_else(|_| "dumb".to_owned());
    let with = size.map(|(rows, columns)| (rows, columns, kind));
    // Until the command runs, a signal ends the start; afterwards it is passed on.
    let starting = super::run::listen(&interrupt)?;
    let mut shell = match app::shell(&place, args.command, with, &front).await {
        Ok(shell) => shell,
        Err(error) => {
            terminal.finish();
            super::failure::show(&error, &mut io::stderr(), terminal.paint);
            let own = if error.exit_code() == exit_code::INTERRUPTED { exit_code::INTERRUPTED } else { exit_code::SHELL_FAILED };
            return Ok(starting.exit_code(own));
        }
    };
    terminal.finish();
    let raw = if size.is_some() { RawTerminal::enter().ok() } else { None };
    let code = converse(&mut shell, &interrupt, size.is_some()).await;
    drop(raw);
    shell.close().await;
    Ok(starting.exit_code(code))
}

/// What can happen next while a command runs.
enum Next {
    Came(ShellUpdate),
    Typed(Option<Vec<u8>>),
    Resized,
    Stopped,
}

async fn converse(shell: &mut Shell, interrupt: &Interrupt, with_terminal: bool) -> u8 {
    let mut typed = read_input();
    let input = shell.input();
    let Ok(mut resizes) = signal(SignalKind::window_change()) else { return exit_code::SHELL_FAILED };
    let mut n_stops = 0;
    let mut open = true;
    // Why its output cannot be passed on, once that is so; the command is ended then.
    let mut unwritten: Option<io::Error> = None;
    let end = if with_terminal { "\r\n" } else { "\n" };
    loop {
        let next = tokio::select! {
            came = shell.recv() => Next::Came(came),
            bytes = typed.recv(), if open => Next::Typed(bytes),
            _ = resizes.recv(), if with_terminal => Next::Resized,
            () = interrupt.run().cancelled(), if n_stops == 0 => Next::Stopped,
            () = interrupt.haste().cancelled(), if n_stops == 1 => Next::Stopped,
        };
        match next {
            // Raw, the one way past the sanitiser: the person asked for this command's own bytes.
            Next::Came(ShellUpdate::Stdout(bytes)) => {
                let mut out = io::stdout().lock();
                if unwritten.is_none()
                    && let Err(error) = out.write_all(&bytes).and_then(|()| out.flush())
                {
                    unwritten = Some(error);
                    shell.cancel();
                }
            }
            Next::Came(ShellUpdate::Stderr(bytes)) => {
                let _ = io::stderr().write_all(&bytes);
            }
            Next::Came(ShellUpdate::Ended { code, note }) => {
                if let Some(note) = note {
                    super::say(&format!("podbay: {}{end}", crate::ui::text::line(&note)));
                }
                return match unwritten {
                    None => code,
                    // Whoever read our output has had enough: it is as if the command had written into that pipe itself.
                    Some(error) if error.kind() == io::ErrorKind::BrokenPipe => exit_code::BROKEN_PIPE,
                    Some(error) => {
                        super::say(&format!("error: cannot write the command's output to the standard output: {error}{end}"));
                        exit_code::SHELL_FAILED
                    }
                };
            }
            Next::Came(ShellUpdate::Failed { problem }) => {
                super::say(&format!("error: {}{end}", crate::ui::text::line(&problem)));
                return exit_code::SHELL_FAILED;
            }
            Next::Typed(Some(bytes)) => {
                // What the command does not take now waits in its window; beyond that our own end waits.
                if !input.send(&bytes).await {
                    open = false;
                }
            }
            Next::Typed(None) => {
                open = false;
                input.close();
            }
            Next::Resized => {
                if let Some((rows, columns)) = window_size() {
                    shell.resize(rows, columns);
                }
            }
            Next::Stopped => {
                n_stops += 1;
                shell.cancel();
            }
        }
    }
}

/// Reads the standard input on a thread of its own: a read that waits for ever must not hold up the end of the program.
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
