//! The editor of a chat that goes line by line at a terminal: history, completion, pastes, and
//! messages of several lines.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io;
use std::io::Write;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use reedline::ColumnarMenu;
use reedline::Completer;
use reedline::CompletionResult;
use reedline::EditCommand;
use reedline::EditMode;
use reedline::Emacs;
use reedline::FileBackedHistory;
use reedline::Highlighter;
use reedline::History;
use reedline::HistoryItem;
use reedline::KeyCode;
use reedline::KeyModifiers;
use reedline::Keybindings;
use reedline::MenuBuilder;
use reedline::Prompt;
use reedline::PromptEditMode;
use reedline::PromptHistorySearch;
use reedline::Reedline;
use reedline::ReedlineEvent;
use reedline::ReedlineMenu;
use reedline::Signal;
use reedline::SimpleMatchHighlighter;
use reedline::Span;
use reedline::StyledText;
use reedline::Suggestion;
use reedline::ValidationResult;
use reedline::Validator;
use reedline::Vi;
use tokio_util::sync::CancellationToken;

use super::Keys;
use super::Paint;
use super::Typed;
use super::edit_text;
use super::line_paste::Pastes;
use super::line_paste::WithLabels;
use super::tui::completions;
use podbay_event::is_hidden;

/// Messages of the history that are kept.
const MOST_MESSAGES: usize = 1000;
/// How soon the editor notices that the wait for a message is over.
const POLL: Duration = Duration::from_millis(50);
/// How soon a second Ctrl-C leaves.
const TWICE: Duration = Duration::from_secs(2);
const MENU: &str = "completions";
/// What the keys say that are no keys of the editor.
const NEXT_MODE: &str = "next mode";
const OPEN_EDITOR: &str = "open editor";

/// What can be completed besides the chat's own commands.
#[derive(Default)]
struct Offered {
    files: Vec<String>,
    custom: Vec<(String, String)>,
}

/// Reads messages at a terminal that can move its cursor.
pub struct LineEditor {
    /// Gone while it reads, and for good where the terminal does not say where its cursor is.
    engine: Mutex<Option<Reedline>>,
    stop: Arc<AtomicBool>,
    offered: Arc<Mutex<Offered>>,
    pastes: Pastes,
    pressed: Option<Instant>,
    /// The commands that Shift-Tab stands for.
    next_mode: Vec<&'static str>,
    /// Commands of a key that were not taken yet.
    waiting: VecDeque<&'static str>,
}

impl LineEditor {
    /// Makes an editor with these messages to go back to, the oldest first.
    pub fn new(messages: Vec<String>, keys: Keys, paint: Paint) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let offered = Arc::new(Mutex::new(Offered::default()));
        let pastes = Pastes::default();
        let mode: Box<dyn EditMode> = match keys {
            Keys::Emacs => {
                let emacs = Emacs::new(with_keys(reedline::default_emacs_keybindings()));
                Box::new(WithLabels::new(emacs, pastes.clone()))
            }
            Keys::Vi => Box::new(Vi::new(
                with_keys(reedline::default_vi_insert_keybindings()),
                with_keys(reedline::default_vi_normal_keybindings()),
                reedline::default_vi_visual_keybindings(),
            )),
        };
        let menu = ColumnarMenu::default().with_name(MENU).with_columns(1);
        let mut engine = Reedline::create()
            .use_bracketed_paste(true)
            .with_ansi_colors(paint != Paint::NONE)
            .with_edit_mode(mode)
            .with_validator(Box::new(Continued))
            .with_highlighter(Box::new(Harmless))
            .with_completer(Box::new(Offers(Arc::clone(&offered))))
            .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
            .with_break_signal(Arc::clone(&stop))
            .with_poll_interval(POLL);
        if let Ok(mut history) = FileBackedHistory::new(MOST_MESSAGES) {
            for message in messages {
                let _ = history.save(HistoryItem::from_command_line(message));
            }
            engine = engine.with_history(Box::new(history));
        }
        Self {
            engine: Mutex::new(Some(engine)),
            stop,
            offered,
            pastes,
            pressed: None,
            next_mode: Vec::new(),
            waiting: VecDeque::new(),
        }
    }

    /// Says which commands Shift-Tab stands for until the next message.
    pub fn next_mode(&mut self, commands: Vec<&'static str>) {
        self.next_mode = commands;
    }

    /// Puts text into the editor, behind what is typed there.
    pub fn prefill(&mut self, text: &str) {
        if let Some(engine) = self.engine() {
            engine.run_edit_commands(&[EditCommand::InsertString(text.to_owned())]);
        }
    }

    /// Names the project's files, and commands of the user's own, for completion.
    pub fn offer(&self, files: Vec<String>, custom: Vec<(String, String)>) {
        let mut offered = self.offered.lock().unwrap_or_else(PoisonError::into_inner);
        *offered = Offered { files, custom };
    }

    /// Only the editor itself is not shared; what holds it is.
    fn engine(&mut self) -> &mut Option<Reedline> {
        self.engine
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a message; `None`: the terminal is none for an editor.
    pub async fn message(&mut self, cancel: &CancellationToken) -> Option<Typed> {
        if let Some(command) = self.waiting.pop_front() {
            return Some(Typed::Line(command.to_owned()));
        }
        loop {
            let mut engine = self.engine().take()?;
            let mut reading = tokio::task::spawn_blocking(move || {
                let read = engine.read_line(&Arrow);
                (engine, read)
            });
            let done = tokio::select! {
                done = &mut reading => done,
                () = cancel.cancelled() => {
                    self.stop.store(true, Ordering::Relaxed);
                    reading.await
                }
            };
            self.stop.store(false, Ordering::Relaxed);
            let (mut engine, read) = done.ok()?;
            let read = read.ok()?;
            if matches!(&read, Signal::HostCommand(key) if key == OPEN_EDITOR) {
                let pastes = self.pastes.clone();
                engine = tokio::task::spawn_blocking(move || edited(engine, &pastes))
                    .await
                    .ok()?;
            }
            *self.engine() = Some(engine);
            match read {
                // What is typed so far stays, for the message after it.
                Signal::HostCommand(key) if key == NEXT_MODE => {
                    // What the command says stands below what is typed.
                    let _ = writeln!(io::stderr());
                    self.waiting.extend(self.next_mode.drain(..));
                    if let Some(command) = self.waiting.pop_front() {
                        return Some(Typed::Line(command.to_owned()));
                    }
                }
                Signal::Success(message) => {
                    self.pressed = None;
                    let message = message.replace("\\\n", "\n");
                    return Some(Typed::Line(self.pastes.whole(&message)));
                }
                Signal::CtrlD => return Some(Typed::End),
                Signal::ExternalBreak(_) => return Some(Typed::Cancelled),
                Signal::CtrlC => {
                    let is_second = self.pressed.is_some_and(|at| at.elapsed() < TWICE);
                    if is_second {
                        return Some(Typed::End);
                    }
                    self.pressed = Some(Instant::now());
                    let _ = writeln!(io::stderr(), "Ctrl-C again leaves");
                }
                _ => {}
            }
        }
    }
}

/// Has the user edit what is typed so far in an editor of their own.
fn edited(mut engine: Reedline, pastes: &Pastes) -> Reedline {
    match edit_text(&pastes.whole(engine.current_buffer_contents()), ".md") {
        Ok(text) => engine.run_edit_commands(&[
            EditCommand::Clear,
            EditCommand::InsertString(text.trim_end().to_owned()),
        ]),
        Err(why) => {
            let _ = writeln!(io::stderr(), "{why}");
        }
    }
    engine
}

/// Has Tab show what can be completed, and then go from one to the next; Ctrl-G and Shift-Tab do
/// what they do on the screen.
fn with_keys(mut keys: Keybindings) -> Keybindings {
    keys.add_binding(
        KeyModifiers::CONTROL,
        KeyCode::Char('g'),
        ReedlineEvent::ExecuteHostCommand(OPEN_EDITOR.to_owned()),
    );
    // Terminals name the key either way.
    for modifiers in [KeyModifiers::NONE, KeyModifiers::SHIFT] {
        keys.add_binding(
            modifiers,
            KeyCode::BackTab,
            ReedlineEvent::ExecuteHostCommand(NEXT_MODE.to_owned()),
        );
    }
    keys.add_binding(
        KeyModifiers::NONE,
        KeyCode::Tab,
        ReedlineEvent::UntilFound(vec![
            ReedlineEvent::Menu(MENU.to_owned()),
            ReedlineEvent::MenuNext,
        ]),
    );
    keys
}

/// A line that ends in a backslash continues in the next one.
struct Continued;

impl Validator for Continued {
    fn validate(&self, message: &str) -> ValidationResult {
        if message.ends_with('\\') {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Complete
        }
    }
}

/// Shows what a terminal would obey, such as an escape in a paste, as a character of as many bytes.
struct Harmless;

impl Highlighter for Harmless {
    fn highlight(&self, message: &str, cursor: usize) -> StyledText {
        SimpleMatchHighlighter::default().highlight(&harmless(message), cursor)
    }
}

fn harmless(message: &str) -> String {
    let shown = |c: char| match c.len_utf8() {
        _ if c == '\n' || !is_hidden(c) => c,
        1 => '?',
        2 => '¿',
        3 => '\u{fffd}',
        _ => '🯄',
    };
    message.chars().map(shown).collect()
}

/// Completes as the screen does.
struct Offers(Arc<Mutex<Offered>>);

impl Completer for Offers {
    fn complete(&mut self, line: &str, at: usize) -> CompletionResult {
        let offered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = &line[..line.floor_char_boundary(at)];
        let Some((from, found)) = completions(before, &offered.files, &offered.custom) else {
            return CompletionResult::fresh(Vec::new());
        };
        let suggestions: Vec<Suggestion> = found
            .into_iter()
            .filter(|(words, help)| !words.chars().chain(help.chars()).any(is_hidden))
            .map(|(words, help)| Suggestion {
                value: words,
                description: (!help.is_empty()).then_some(help),
                span: Span::new(from, at),
                append_whitespace: true,
                ..Suggestion::default()
            })
            .collect();
        CompletionResult::fresh(suggestions)
    }
}

/// The prompt, which is the one of a chat without an editor.
struct Arrow;

impl Prompt for Arrow {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _mode: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed("> ")
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("… ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        Cow::Owned(format!("search `{}`: ", harmless(&search.term)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completion_is_that_of_the_screen_and_offers_no_hostile_name() {
        let offered = Arc::new(Mutex::new(Offered {
            files: vec!["src/app.py".to_owned(), "src/app\x1b[2J.py".to_owned()],
            custom: vec![("deploy".to_owned(), "ship it".to_owned())],
        }));
        let mut offers = Offers(offered);
        let mut names = |line: &str| -> Vec<String> {
            offers
                .complete(line, line.len())
                .suggestions()
                .iter()
                .map(|found| found.value.clone())
                .collect()
        };
        assert_eq!(names("read @app"), ["@src/app.py"]);
        assert_eq!(names("/depl"), ["/deploy"]);
        assert_eq!(names("/resu"), ["/resume"]);
        assert!(names("no").is_empty());
    }

    #[test]
    fn an_escape_in_a_paste_is_shown_and_takes_as_many_bytes() {
        let paste = "a\x1b]52;c;x\x07\nb\u{9b}\u{202e}\u{e0041}é";
        let shown = harmless(paste);
        assert_eq!(shown.len(), paste.len());
        assert!(
            !shown.chars().any(|c| c != '\n' && is_hidden(c)),
            "{shown:?}"
        );
        assert!(shown.ends_with('é') && shown.contains('\n'));
    }

    #[test]
    fn a_backslash_at_the_end_continues_a_message() {
        assert!(matches!(
            Continued.validate("a\\"),
            ValidationResult::Incomplete
        ));
        assert!(matches!(
            Continued.validate("a\\\nb"),
            ValidationResult::Complete
        ));
    }
}
