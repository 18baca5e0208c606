//! The full-screen chat as the driver sees it: what it tells, and what it is asked.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use podbay_event::Answer;
use podbay_event::Answered;
use podbay_event::Event;
use podbay_event::ExecutionReport;
use podbay_event::MessageQueue;

use super::inbox::Inbox;
use super::modal::Ask;
use super::page::Page;
use super::review::Review;
use super::review::ReviewChoice;
use super::review::ReviewView;
use super::run;
use super::screen::Screen;
use super::screen::Told;
use super::start::Start;
use super::start::StartChoice;
use super::start::StartView;
use super::status::Facts;
use super::theme::Theme;
use crate::Keys;
use crate::Question;
use crate::note::Tone;

/// What the user's keys ask for goes here.
pub type OnCommand = Box<dyn Fn(podbay_event::Command) + Send>;

/// The chat's screen; clones tell the same one.
#[derive(Clone)]
pub struct Tui {
    inbox: Arc<Inbox>,
    thread: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl Tui {
    /// Takes the terminal, draws, and hears keys until [`Self::close`].
    /// What is typed while a message is at work waits in `queue`.
    pub fn open(
        theme: Theme,
        facts: Facts,
        keys: Keys,
        queue: MessageQueue,
        on_command: OnCommand,
    ) -> std::io::Result<Self> {
        let (told, thread) = run::start(Screen::new(theme, facts, keys, queue), on_command)?;
        Ok(Self {
            inbox: Arc::new(Inbox::new(told)),
            thread: Arc::new(Mutex::new(Some(thread))),
        })
    }

    fn tell(&self, told: Told) {
        self.inbox.tell(told);
    }

    pub fn event(&self, event: Event) {
        self.inbox.event(event);
    }

    /// Shows what an earlier run of the session left.
    pub fn past(&self, events: Vec<Event>) {
        self.tell(Told::Past(events));
    }

    pub fn say(&self, words: &str) {
        self.tell(Told::Note(Tone::Plain, words.to_owned()));
    }

    /// Shows the execution report.
    pub fn report(&self, report: ExecutionReport) {
        self.tell(Told::Report(Box::new(report)));
    }

    pub fn hint(&self, words: &str) {
        self.tell(Told::Note(Tone::Dim, words.to_owned()));
    }

    pub fn warn(&self, words: &str) {
        self.tell(Told::Note(Tone::Warn, words.to_owned()));
    }

    pub fn fail(&self, words: &str) {
        self.tell(Told::Note(Tone::Bad, words.to_owned()));
    }

    pub fn facts(&self, facts: Facts) {
        self.tell(Told::Facts(facts));
    }

    /// Says which branch the project is on.
    pub fn branch(&self, branch: &str) {
        self.tell(Told::Branch(branch.to_owned()));
    }

    /// Names the project's files, for completion.
    pub fn files(&self, files: Vec<String>) {
        self.tell(Told::Files(files));
    }

    /// Names commands of the user's own, each with what it is for.
    pub fn custom(&self, commands: Vec<(String, String)>) {
        self.tell(Told::Custom(commands));
    }

    pub fn history(&self, messages: Vec<String>) {
        self.tell(Told::History(messages));
    }

    /// Asks for the next message; it comes as [`podbay_event::Command::Say`].
    pub fn ready(&self) {
        self.tell(Told::Ready);
    }

    pub fn busy(&self) {
        self.tell(Told::Busy);
    }

    pub fn clear(&self) {
        self.tell(Told::Clear);
    }

    /// Shows a message that was not typed here, and that work on it has begun.
    pub fn begin_with(&self, message: &str) {
        self.tell(Told::Begun(message.to_owned()));
    }

    pub fn toggle_thinking(&self) {
        self.tell(Told::ToggleThinking);
    }

    /// Hands text to the clipboard of the terminal.
    pub fn copy(&self, text: &str) {
        self.tell(Told::Copy(text.to_owned()));
    }

    /// Puts text into the editor.
    pub fn prefill(&self, words: &str) {
        self.tell(Told::Prefill(words.to_owned()));
    }

    /// Stops the process as Ctrl-Z does.
    pub fn suspend(&self) {
        self.tell(Told::Suspend);
    }

    pub async fn ask(&self, question: Question) -> Answered {
        let (answer, answered) = oneshot::channel();
        self.tell(Told::Ask(Ask::Permission {
            question: Box::new(question),
            answer,
        }));
        answered.await.unwrap_or(Answer::Deny.into())
    }

    /// Asks a question of the model's; `None`: there is nobody.
    pub async fn pick(&self, question: &str, options: &[String]) -> Option<String> {
        let (answer, answered) = oneshot::channel();
        self.tell(Told::Ask(Ask::Pick {
            question: question.to_owned(),
            options: options.to_vec(),
            answer,
        }));
        answered.await.ok().flatten()
    }

    /// Asks for one of these keys; the first one is what no answer means.
    pub async fn choose(&self, question: &str, choices: &[(char, &str)]) -> Option<char> {
        let (answer, answered) = oneshot::channel();
        let choices = choices
            .iter()
            .map(|(key, meaning)| (*key, (*meaning).to_owned()))
            .collect();
        self.tell(Told::Ask(Ask::Choice {
            question: question.to_owned(),
            choices,
            answer,
        }));
        answered.await.ok()
    }

    /// Has the user edit a text in an editor of their own; `None`: it failed, which is said.
    pub async fn edit(&self, text: &str) -> Option<String> {
        let (answer, edited) = oneshot::channel();
        self.tell(Told::Edit {
            text: text.to_owned(),
            answer,
        });
        edited.await.ok().flatten()
    }

    /// Shows what is pending, on the whole screen, until the user has decided.
    pub async fn review(&self, view: ReviewView) -> ReviewChoice {
        let (answer, answered) = oneshot::channel();
        self.tell(Told::Page(Page::Review {
            review: Box::new(Review::new(view)),
            answer,
        }));
        answered.await.unwrap_or(ReviewChoice::Quit)
    }

    /// Asks the questions of the first start; `None`: they are not answered.
    pub async fn first_start(&self, view: StartView) -> Option<StartChoice> {
        let (answer, answered) = oneshot::channel();
        self.tell(Told::Page(Page::Start {
            start: Box::new(Start::new(view)),
            answer,
        }));
        answered.await.ok().flatten()
    }

    /// Gives the terminal back.
    pub fn close(&self) {
        self.tell(Told::Close);
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
        super::terminal::restore();
    }
}
