use std::io;
use std::io::IsTerminal;
use std::io::Write;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use tokio_util::sync::CancellationToken;

use super::args::OutputFormat;
use super::delivery::Delivery;
use podbay_app as app;
use podbay_app::Asker;
use podbay_app::Front;
use podbay_app::Interrupt;
use podbay_app::Later;
use podbay_event::Answer;
use podbay_event::Answered;
use podbay_event::Asked;
use podbay_event::Event;
use podbay_event::PlanAnswer;
use podbay_event::Sink;
use podbay_ui as ui;
use podbay_ui::Keyboard;
use podbay_ui::Look;
use podbay_ui::Paint;
use podbay_ui::Plain;
use podbay_ui::Question;

type Screen = Plain<Box<dyn Write + Send>, Box<dyn Write + Send>>;

/// The terminal, or what stands in for it: shows what happens and asks.
#[derive(Clone)]
pub(super) struct Terminal {
    format: OutputFormat,
    screen: Arc<Mutex<Option<Screen>>>,
    delivery: Delivery,
    pub(super) paint: Paint,
}

/// How it is shown how far slow steps are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProgressForm {
    Bars,
    Lines,
    Hidden,
}

impl ProgressForm {
    /// Bars move by escape codes, which no terminal gets that is to have no colours. A script that
    /// reads JSON has the steps there, or wants none.
    fn of(format: OutputFormat, is_terminal: bool, paint: Paint) -> Self {
        if format != OutputFormat::Text {
            Self::Hidden
        } else if is_terminal && paint != Paint::NONE {
            Self::Bars
        } else {
            Self::Lines
        }
    }
}

impl Terminal {
    pub(super) fn new(format: OutputFormat, options: &ui::Options) -> Self {
        let terminal = Self {
            format,
            screen: Arc::default(),
            delivery: Delivery::default(),
            paint: err_paint(options),
        };
        terminal.begin(options);
        terminal
    }

    /// Begins a picture, the first one or one after [`Self::finish`].
    pub(super) fn begin(&self, options: &ui::Options) {
        let Self {
            format,
            delivery,
            paint,
            ..
        } = self.clone();
        let progress = match ProgressForm::of(format, io::stderr().is_terminal(), paint) {
            ProgressForm::Hidden => ui::Progress::hidden(),
            ProgressForm::Lines => ui::Progress::lines(io::stderr()),
            ProgressForm::Bars => {
                let columns = super::raw::window_size().map_or(80, |(_, columns)| columns);
                ui::Progress::bars(columns)
            }
        };
        // Only text puts the answer on the standard output as it comes; with JSON that stream
        // belongs to the objects.
        let out: Box<dyn Write + Send> = if format == OutputFormat::Text {
            Box::new(delivery.clone())
        } else {
            Box::new(io::sink())
        };
        let look = Look {
            paint,
            stream: io::stdout().is_terminal(),
            tool_output: options.stream_during_tools,
            thinking: options.show_thinking,
        };
        let screen = Plain::new(
            out,
            Box::new(io::stderr()) as Box<dyn Write + Send>,
            look,
            progress,
        );
        *self
            .screen
            .lock()
            .expect("nothing panics while it holds this lock") = Some(screen);
    }

    /// Shows each answer of a conversation as soon as it is complete.
    pub(super) fn show_each_answer(&self) {
        let mut screen = self
            .screen
            .lock()
            .expect("nothing panics while it holds this lock");
        *screen = screen.take().map(Plain::with_each_answer);
    }

    /// Returns where the rooms send their events.
    pub(super) fn sink(&self) -> Sink {
        let terminal = self.clone();
        Arc::new(move |event| terminal.show(&event))
    }

    fn show(&self, event: &Event) {
        let mut screen = self
            .screen
            .lock()
            .expect("nothing panics while it holds this lock");
        // A reader that went away must not end the run: what is done is on disk, and the exit code
        // still tells.
        if let Some(screen) = screen.as_mut() {
            let _ = screen.event(event);
        }
        self.tell(event);
    }

    /// Shows a line of ours on the error stream, between what is shown there.
    pub(super) fn remark(&self, words: &str) {
        let mut screen = self
            .screen
            .lock()
            .expect("nothing panics while it holds this lock");
        if let Some(screen) = screen.as_mut() {
            let _ = screen.remark(words);
        }
    }

    /// Tells a script that reads events, and nobody else.
    pub(super) fn tell(&self, event: &Event) {
        if self.format == OutputFormat::Jsonl {
            let _ = ui::json::event(&mut self.delivery.clone(), event);
        }
    }

    /// Ends the picture, so that whatever follows starts on its own line.
    pub(super) fn finish(&self) {
        let screen = self
            .screen
            .lock()
            .expect("nothing panics while it holds this lock")
            .take();
        if let Some(screen) = screen {
            let _ = screen.finish();
        }
    }

    /// Says whether everything that went to the standard output arrived.
    pub(super) fn delivered(&self) -> Result<(), app::Error> {
        self.delivery.end()
    }

    pub(super) fn front(&self, interrupt: &Interrupt, asker: Arc<dyn Asker>) -> Front {
        Front {
            sink: self.sink(),
            asker,
            interrupt: interrupt.clone(),
        }
    }
}

/// Returns the colours of the error stream.
pub(super) fn err_paint(options: &ui::Options) -> Paint {
    Paint::new(options.color, io::stderr().is_terminal(), |name| {
        std::env::var_os(name)
    })
}

/// Nobody is there: what would be asked is denied.
pub(super) struct Nobody;

impl Asker for Nobody {
    fn ask<'a>(&'a self, _asked: &'a Asked) -> Later<'a, Answered> {
        Box::pin(std::future::ready(Answer::Deny.into()))
    }

    fn question<'a>(
        &'a self,
        _question: &'a str,
        _options: &'a [String],
    ) -> Later<'a, Option<String>> {
        Box::pin(std::future::ready(None))
    }

    fn can_answer(&self) -> bool {
        false
    }
}

/// Asks the user at the terminal, one question at a time.
pub(super) struct Person {
    pub(super) keyboard: Keyboard,
    pub(super) terminal: Terminal,
    pub(super) turn: tokio::sync::Mutex<()>,
    pub(super) wishes: Arc<Wishes>,
    /// Where a plain no ends the turn, as it does on the screen.
    pub(super) stops: Option<Interrupt>,
}

/// What the user said of being asked, as whoever reads their next words has to know.
#[derive(Default)]
pub(super) struct Wishes {
    /// Nobody is to be asked anything, though somebody is there.
    pub(super) is_away: AtomicBool,
    /// A question was answered by leaving.
    pub(super) leaves: AtomicBool,
}

/// A question that stands on the screen. Where it is given up before its answer, whoever looks at
/// it sees that.
struct Standing {
    is_answered: bool,
}

impl Drop for Standing {
    fn drop(&mut self) {
        if !self.is_answered {
            super::say("\n(the question is withdrawn)\n");
        }
    }
}

impl Asker for Person {
    fn ask<'a>(&'a self, asked: &'a Asked) -> Later<'a, Answered> {
        Box::pin(async move {
            let _turn = self.turn.lock().await;
            let question = Question::from(asked);
            // Dropping this future withdraws the question; the keyboard gives its line back.
            let withdrawn = CancellationToken::new();
            let _guard = withdrawn.clone().drop_guard();
            let mut standing = Standing { is_answered: false };
            let answered = ui::ask(
                &question,
                &self.keyboard,
                &mut io::stderr(),
                self.terminal.paint,
                &withdrawn,
            )
            .await;
            standing.is_answered = true;
            if let Some(interrupt) = &self.stops
                && answered.as_ref().is_some_and(Answered::is_plain_no)
            {
                interrupt.press();
            }
            let answered: Answered = answered.unwrap_or(Answer::Deny.into());
            self.wishes
                .leaves
                .fetch_or(answered.answer == Answer::Quit, Ordering::Relaxed);
            answered
        })
    }

    fn question<'a>(
        &'a self,
        question: &'a str,
        options: &'a [String],
    ) -> Later<'a, Option<String>> {
        Box::pin(async move {
            if !self.can_answer() {
                return None;
            }
            let _turn = self.turn.lock().await;
            let withdrawn = CancellationToken::new();
            let _guard = withdrawn.clone().drop_guard();
            let mut standing = Standing { is_answered: false };
            let answer = ui::question(
                question,
                options,
                &self.keyboard,
                &mut io::stderr(),
                self.terminal.paint,
                &withdrawn,
            )
            .await;
            standing.is_answered = true;
            answer
        })
    }

    fn may_continue<'a>(&'a self, question: &'a str) -> Later<'a, bool> {
        Box::pin(async move {
            let _turn = self.turn.lock().await;
            let withdrawn = CancellationToken::new();
            let _guard = withdrawn.clone().drop_guard();
            let mut standing = Standing { is_answered: false };
            let mut err = io::stderr();
            let may = ui::may_continue(question, &self.keyboard, &mut err, &withdrawn).await;
            standing.is_answered = true;
            may
        })
    }

    fn plan<'a>(&'a self, plan: &'a str) -> Later<'a, Option<PlanAnswer>> {
        Box::pin(async move {
            let _turn = self.turn.lock().await;
            let withdrawn = CancellationToken::new();
            let _guard = withdrawn.clone().drop_guard();
            let mut standing = Standing { is_answered: false };
            let answer = super::plan::ask_in_lines(&self.keyboard, plan, &withdrawn).await;
            standing.is_answered = true;
            answer
        })
    }

    fn can_answer(&self) -> bool {
        self.keyboard.is_terminal() && !self.wishes.is_away.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_bar_is_drawn_without_colours_and_nothing_is_with_json() {
        let paint = |no_color: &str| {
            Paint::new(ui::Color::Auto, true, |name| {
                (name == "NO_COLOR").then(|| no_color.into())
            })
        };
        let form =
            |format, is_terminal, no_color| ProgressForm::of(format, is_terminal, paint(no_color));
        assert_eq!(form(OutputFormat::Text, true, ""), ProgressForm::Bars);
        assert_eq!(form(OutputFormat::Text, true, "1"), ProgressForm::Lines);
        assert_eq!(form(OutputFormat::Text, false, ""), ProgressForm::Lines);
        for format in [OutputFormat::Json, OutputFormat::Jsonl] {
            assert_eq!(form(format, true, ""), ProgressForm::Hidden);
        }
    }
}
