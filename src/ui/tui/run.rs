//! The loop: keys and events in, at most 60 frames a second out.

use std::io;
use std::io::BufWriter;
use std::io::Stdout;
use std::io::Write;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::thread::JoinHandle;
use std::time::Duration;
use std::time::Instant;

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use crossbeam_channel::Receiver;
use crossbeam_channel::RecvTimeoutError;
use crossbeam_channel::Sender;
use crossbeam_channel::never;
use crossbeam_channel::select;
use crossbeam_channel::unbounded;
use crossterm::event;
use crossterm::event::KeyEventKind;
use crossterm::execute;
use crossterm::terminal::BeginSynchronizedUpdate;
use crossterm::terminal::EndSynchronizedUpdate;
use nix::sys::signal::Signal;
use nix::sys::signal::raise;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;

use podbay_event::Command;

use super::handle::OnCommand;
use super::screen::Effect;
use super::screen::Screen;
use super::screen::Told;
use super::terminal;
use crate::edit_text;

/// How often what streams is drawn: 50 times a second. What is typed is drawn at once; at ten keys
/// a second that makes 60 frames.
const FRAME: Duration = Duration::from_millis(20);
/// How often what moves by itself is drawn.
const TICK: Duration = Duration::from_millis(250);
/// How long the reader of keys holds the terminal before somebody else may have it.
const READ: Duration = Duration::from_millis(50);
/// How long what streams is taken before a frame is drawn.
const TAKE: Duration = Duration::from_millis(8);
/// Events that are taken before keys are looked for again.
const BETWEEN_KEYS: usize = 64;
/// Keys that are taken between two frames at most.
const MOST_KEYS: usize = 4096;
/// Terminals take about this much into their clipboard.
const MOST_COPIED: usize = 74_000;

/// What the screen reacts to. Keys overtake events, so that none waits behind a stream.
struct Inputs {
    keys: Receiver<event::Event>,
    told: Receiver<Told>,
}

type Screens = Terminal<CrosstermBackend<BufWriter<Stdout>>>;

pub(super) fn start(
    screen: Screen,
    on_command: OnCommand,
) -> io::Result<(Sender<Told>, JoinHandle<()>)> {
    terminal::restore_on_panic();
    terminal::enter()?;
    let terminal = match new_terminal() {
        Ok(terminal) => terminal,
        Err(error) => {
            terminal::restore();
            return Err(error);
        }
    };
    // What is in it is bounded by what was printed and answered: nothing is sent for nothing.
    let (tell, told) = unbounded();
    let (press, keys) = unbounded();
    let gate = Arc::new(Mutex::new(()));
    read_keys(press, Arc::clone(&gate))?;
    let chat = Chat {
        screen,
        terminal,
        on_command,
        gate,
        drawn: None,
        is_typed: false,
    };
    let thread = std::thread::Builder::new()
        .name("podbay-screen".to_owned())
        .spawn(move || chat.run(Inputs { keys, told }))?;
    Ok((tell, thread))
}

fn new_terminal() -> io::Result<Screens> {
    // A frame goes out in one piece.
    let out = BufWriter::with_capacity(64 << 10, io::stdout());
    let mut terminal = Terminal::new(CrosstermBackend::new(out))?;
    clear(&mut terminal)?;
    Ok(terminal)
}

/// Has the next frame draw all of it on an empty screen.
///
/// `Terminal::clear` would ask the terminal where its cursor is. One that does not answer holds that
/// up for two seconds, and the answer is taken from the keys.
fn clear(terminal: &mut Screens) -> io::Result<()> {
    let size = terminal.size()?;
    terminal.resize(Rect::new(0, 0, size.width, size.height))
}

/// Reads keys while nobody else has the gate.
fn read_keys(press: Sender<event::Event>, gate: Arc<Mutex<()>>) -> io::Result<()> {
    let read = move || {
        loop {
            let key = {
                let _held = gate.lock().unwrap_or_else(PoisonError::into_inner);
                match event::poll(READ) {
                    Ok(true) => event::read(),
                    Ok(false) => {
                        continue_if_wanted();
                        continue;
                    }
                    Err(error) => Err(error),
                }
            };
            match key {
                Ok(key) => {
                    if press.send(key).is_err() {
                        return;
                    }
                }
                // The terminal is gone; the signal that says so ends the chat.
                Err(_) => return,
            }
        }
    };
    std::thread::Builder::new()
        .name("podbay-keys".to_owned())
        .spawn(read)?;
    Ok(())
}

/// Lets a thread that waits for the gate have it.
fn continue_if_wanted() {
    std::thread::yield_now();
}

struct Chat {
    screen: Screen,
    terminal: Screens,
    on_command: OnCommand,
    gate: Arc<Mutex<()>>,
    drawn: Option<Instant>,
    /// Whether something was typed since.
    is_typed: bool,
}

impl Chat {
    fn run(mut self, mut inputs: Inputs) {
        self.draw();
        while self.wait(&mut inputs) {
            self.take(&inputs);
            // What streams waits for its frame; what is typed does not.
            if !self.is_typed
                && let Some(drawn) = self.drawn
                && let Some(left) = FRAME.checked_sub(drawn.elapsed())
            {
                match inputs.keys.recv_timeout(left) {
                    Ok(key) => self.key(key),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => std::thread::sleep(left),
                }
                self.take(&inputs);
            }
            self.screen.tick(Instant::now());
            if self.is_over() {
                break;
            }
            self.draw();
        }
        terminal::restore();
        if terminal::is_lost() {
            (self.on_command)(Command::Quit);
        }
    }

    /// Waits until something is there to react to, or it is time to draw what moves by itself.
    /// Returns whether the screen is still there.
    fn wait(&mut self, inputs: &mut Inputs) -> bool {
        let wait = if self.screen.is_live() || self.screen.has_modal() {
            TICK
        } else {
            Duration::from_secs(3600)
        };
        select! {
            recv(inputs.keys) -> key => match key {
                Ok(key) => self.key(key),
                // The terminal is gone.
                Err(_) => inputs.keys = never(),
            },
            recv(inputs.told) -> told => match told {
                Ok(told) => self.told(told),
                Err(_) => return false,
            },
            default(wait) => {}
        }
        !self.is_over()
    }

    fn is_over(&self) -> bool {
        self.screen.is_closed() || terminal::is_lost()
    }

    /// Takes what is there, until a key was typed or it is time for a frame.
    fn take(&mut self, inputs: &Inputs) {
        let begun = Instant::now();
        loop {
            for key in inputs.keys.try_iter().take(MOST_KEYS) {
                self.key(key);
            }
            if self.is_typed || begun.elapsed() >= TAKE {
                return;
            }
            let events = inputs.told.try_iter().take(BETWEEN_KEYS);
            if events.map(|told| self.told(told)).count() < BETWEEN_KEYS {
                return;
            }
        }
    }

    fn told(&mut self, told: Told) {
        if let Told::Edit { text, answer } = told {
            let mut edited = Ok(String::new());
            self.outside(|| edited = edit_text(&text, ".md"));
            if let Err(problem) = &edited {
                self.screen.say(problem, Instant::now());
            }
            let _ = answer.send(edited.ok());
        } else {
            let effects = self.screen.told(told, Instant::now());
            self.react(effects);
        }
    }

    fn key(&mut self, key: event::Event) {
        self.is_typed = true;
        let now = Instant::now();
        let effects = match key {
            event::Event::Key(key) if key.kind != KeyEventKind::Release => {
                self.screen.key(key, now)
            }
            event::Event::Paste(text) => {
                self.screen.paste(&text, now);
                Vec::new()
            }
            event::Event::FocusGained => {
                self.screen.set_focus(true);
                Vec::new()
            }
            event::Event::FocusLost => {
                self.screen.set_focus(false);
                Vec::new()
            }
            // The next frame asks for the size.
            _ => Vec::new(),
        };
        self.react(effects);
    }

    fn react(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            self.carry_out(effect);
        }
        if let Some(words) = self.screen.take_notification() {
            let mut out = io::stdout();
            // BEL for a user who looks elsewhere, OSC 9 for terminals that show a message.
            let _ = write!(out, "\x07\x1b]9;{words}\x1b\\").and_then(|()| out.flush());
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Send(command) => (self.on_command)(command),
            Effect::Copy(text) => {
                let end = text.floor_char_boundary(MOST_COPIED);
                let encoded = BASE64.encode(&text[..end]);
                let mut out = io::stdout();
                // OSC 52 goes through ssh and tmux, which no program of this machine does.
                let _ = write!(out, "\x1b]52;c;{encoded}\x07").and_then(|()| out.flush());
            }
            Effect::Redraw => {
                let _ = clear(&mut self.terminal);
            }
            Effect::Suspend => self.outside(|| {
                let _ = raise(Signal::SIGSTOP);
            }),
            Effect::Edit(text) => {
                let mut edited = Ok(String::new());
                self.outside(|| edited = edit_text(&text, ".md"));
                match edited {
                    Ok(text) => self.screen.set_text(text.trim_end_matches('\n')),
                    Err(problem) => self.screen.say(&problem, Instant::now()),
                }
            }
        }
    }

    /// Gives the terminal to somebody else for a while.
    fn outside(&mut self, work: impl FnOnce()) {
        let gate = Arc::clone(&self.gate);
        let _held = gate.lock().unwrap_or_else(PoisonError::into_inner);
        terminal::restore();
        work();
        let _ = terminal::enter();
        let _ = clear(&mut self.terminal);
    }

    fn draw(&mut self) {
        let now = Instant::now();
        // A terminal that can, shows the frame as a whole.
        let _ = execute!(self.terminal.backend_mut(), BeginSynchronizedUpdate);
        let _ = self.terminal.draw(|frame| self.screen.draw(frame, now));
        let _ = execute!(self.terminal.backend_mut(), EndSynchronizedUpdate);
        self.drawn = Some(now);
        self.is_typed = false;
    }
}
