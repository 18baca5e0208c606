//! Where a chat is shown and where its messages come from: lines of a terminal or pipe, or a screen
//! of its own. Both get the same events and give the same messages.

use std::convert::Infallible;
use std::io;
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::signal::unix::SignalKind;
use tokio::signal::unix::signal;
use tokio::sync::mpsc;
use tokio::sync::mpsc::UnboundedReceiver;

use super::args::OutputFormat;
use super::args::SessionFlags;
use super::failure;
use super::front::Person;
use super::front::Terminal;
use super::front::Wishes;
use super::review_screen;
use podbay_app as app;
use podbay_app::Asker;
use podbay_app::Fate;
use podbay_app::Front;
use podbay_app::Interrupt;
use podbay_app::Later;
use podbay_event::Answer;
use podbay_event::Answered;
use podbay_event::Asked;
use podbay_event::Command;
use podbay_event::Event;
use podbay_event::MessageQueue;
use podbay_event::PlanAnswer;
use podbay_ui::Keyboard;
use podbay_ui::Keys;
use podbay_ui::LineEditor;
use podbay_ui::Paint;
use podbay_ui::Question;
use podbay_ui::Typed;
use podbay_ui::read_message;
use podbay_ui::slash;
use podbay_ui::text;
use podbay_ui::tui;
use podbay_ui::tui::Facts;
use podbay_ui::tui::ReviewChoice;
use podbay_ui::tui::ReviewView;
use podbay_ui::tui::Tui;

/// Returns whether the chat has a screen of its own.
pub(super) fn is_full(flags: &SessionFlags) -> Result<bool, app::Error> {
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    if flags.tui && (!is_terminal || flags.output != OutputFormat::Text) {
        return Err(app::Error::usage(
            "--tui needs a terminal for input and output, and no --output",
            "leave it out: the chat then goes line by line",
        ));
    }
    let may = is_terminal && !is_dumb() && flags.output == OutputFormat::Text;
    Ok(flags.tui || (may && !flags.classic))
}

/// Returns an editor for messages, where both ends are a terminal that can show it.
pub(super) fn line_editor(
    flags: &SessionFlags,
    options: &podbay_ui::Options,
    messages: Vec<String>,
    paint: Paint,
) -> Option<Box<LineEditor>> {
    let is_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
    (is_terminal && !is_dumb() && flags.output == OutputFormat::Text)
        .then(|| Box::new(LineEditor::new(messages, options.keys, paint)))
}

/// Returns whether the terminal moves no cursor: it shows no screen.
pub(super) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb")
}

/// How often it is looked for lines that were typed.
const LOOK: Duration = Duration::from_millis(100);

pub(super) enum Face {
    Lines {
        keyboard: Keyboard,
        terminal: Terminal,
        /// Where both ends are a terminal that can show it.
        editor: Option<Box<LineEditor>>,
        /// What is typed while a message is at work.
        queue: MessageQueue,
    },
    Full(Full),
}

pub(super) struct Full {
    tui: Tui,
    queue: MessageQueue,
    commands: UnboundedReceiver<Command>,
    /// A message is at work, so that leaving has to end it first.
    is_busy: Arc<AtomicBool>,
    terminal: Terminal,
}

impl Full {
    /// Takes the terminal.
    pub(super) fn open(
        theme: tui::Theme,
        facts: Facts,
        keys: Keys,
        terminal: Terminal,
        interrupt: &Interrupt,
        wishes: &Arc<Wishes>,
    ) -> Result<Self, app::Error> {
        // What is in it was typed, a message at a time.
        let (send, commands) = mpsc::unbounded_channel();
        let is_busy = Arc::new(AtomicBool::new(true));
        let on_command = {
            let (interrupt, wishes) = (interrupt.clone(), Arc::clone(wishes));
            let is_busy = Arc::clone(&is_busy);
            move |command: Command| {
                match &command {
                    Command::Interrupt => interrupt.press(),
                    Command::Quit if is_busy.load(Ordering::Relaxed) => {
                        wishes.leaves.store(true, Ordering::Relaxed);
                        interrupt.press();
                    }
                    Command::Quit | Command::Say(_) => {}
                }
                let _ = send.send(command);
            }
        };
        let queue = MessageQueue::default();
        let tui = Tui::open(theme, facts, keys, queue.clone(), Box::new(on_command)).map_err(
            |source| app::Error::Io {
                doing: "take the terminal".to_owned(),
                source,
            },
        )?;
        stop_on_signal(&tui)?;
        Ok(Self {
            tui,
            queue,
            commands,
            is_busy,
            terminal,
        })
    }

    async fn message(&mut self, interrupt: &Interrupt) -> Typed {
        self.is_busy.store(false, Ordering::Relaxed);
        self.tui.ready();
        let typed = loop {
            let command = tokio::select! {
                () = interrupt.run().cancelled() => break Typed::Cancelled,
                command = self.commands.recv() => command,
            };
            match command {
                Some(Command::Say(message)) => break Typed::Line(message),
                Some(Command::Quit) | None => break Typed::End,
                // It came when its turn was over.
                Some(Command::Interrupt) => {}
            }
        };
        self.is_busy.store(true, Ordering::Relaxed);
        self.tui.busy();
        typed
    }
}

/// Ctrl-Z from elsewhere stops the process as the key does: with the terminal as it was.
fn stop_on_signal(tui: &Tui) -> Result<(), app::Error> {
    let stop = SignalKind::from_raw(libc::SIGTSTP);
    let mut stops = signal(stop).map_err(|source| app::Error::Io {
        doing: "listen for signals".to_owned(),
        source,
    })?;
    let tui = tui.clone();
    tokio::spawn(async move {
        while stops.recv().await.is_some() {
            tui.suspend();
        }
    });
    Ok(())
}

impl Face {
    pub(super) fn tui(&self) -> Option<&Tui> {
        match self {
            Self::Lines { .. } => None,
            Self::Full(full) => Some(&full.tui),
        }
    }

    /// Returns the editor of a chat that goes line by line.
    pub(super) fn editor(&self) -> Option<&LineEditor> {
        match self {
            Self::Lines { editor, .. } => editor.as_deref(),
            Self::Full(_) => None,
        }
    }

    /// Returns whether messages are typed by a user, who may want them back.
    pub(super) fn has_history(&self) -> bool {
        self.tui().is_some() || self.editor().is_some()
    }

    pub(super) fn terminal(&self) -> &Terminal {
        match self {
            Self::Lines { terminal, .. } => terminal,
            Self::Full(full) => &full.terminal,
        }
    }

    /// Returns who watches and who is asked.
    pub(super) fn front(&self, interrupt: &Interrupt, wishes: &Arc<Wishes>) -> Front {
        match self {
            Self::Lines {
                keyboard, terminal, ..
            } => {
                let person = Person {
                    keyboard: keyboard.clone(),
                    terminal: terminal.clone(),
                    turn: tokio::sync::Mutex::new(()),
                    wishes: Arc::clone(wishes),
                    stops: Some(interrupt.clone()),
                };
                terminal.front(interrupt, Arc::new(person))
            }
            Self::Full(full) => {
                let tui = full.tui.clone();
                let asker = Viewer {
                    tui: tui.clone(),
                    wishes: Arc::clone(wishes),
                };
                Front {
                    sink: Arc::new(move |event: Event| tui.event(event)),
                    asker: Arc::new(asker),
                    interrupt: interrupt.clone(),
                }
            }
        }
    }

    /// Says what the key for the next mode begins at; the screen knows it from the events.
    pub(super) fn next_mode(&mut self, mode: &str, is_planning: bool, has_plan_mode: bool) {
        if let Self::Lines {
            editor: Some(editor),
            ..
        } = self
        {
            editor.next_mode(tui::next_mode(mode, is_planning, has_plan_mode));
        }
    }

    /// Returns where messages wait that are typed while another one is at work.
    pub(super) fn queue(&self) -> &MessageQueue {
        match self {
            Self::Lines { queue, .. } => queue,
            Self::Full(full) => &full.queue,
        }
    }

    /// Gives back what waited for a turn that was stopped: it may have been about that turn. The screen
    /// does so by itself.
    pub(super) fn return_queued(&mut self) {
        let Self::Lines {
            editor: Some(editor),
            queue,
            ..
        } = self
        else {
            return;
        };
        let texts = queue.take_all();
        if !texts.is_empty() {
            editor.prefill(&texts.join("\n"));
        }
    }

    /// Queues what is typed at a terminal, line by line, and says so, until this is dropped. A screen
    /// does that by itself; lines of a pipe wait there.
    pub(super) async fn queue_typed(&self) -> Infallible {
        let Self::Lines {
            keyboard,
            editor: Some(_),
            queue,
            ..
        } = self
        else {
            return std::future::pending().await;
        };
        loop {
            tokio::time::sleep(LOOK).await;
            while let Some(line) = keyboard.typed() {
                if !line.trim().is_empty() {
                    let message = slash::queued(line);
                    super::say(&format!("{}\n", slash::queued_words(&message)));
                    queue.push(message);
                }
            }
        }
    }

    /// Waits for the next message.
    pub(super) async fn message(&mut self, interrupt: &Interrupt) -> Typed {
        match self {
            Self::Lines {
                keyboard,
                editor,
                queue,
                ..
            } => {
                if let Some(message) = queue.take_oldest() {
                    super::say(&format!("> {}\n", text::clean(&message.text)));
                    return Typed::Line(message.text);
                }
                if let Some(editor) = editor {
                    if let Some(line) = keyboard.waiting() {
                        return Typed::Line(line);
                    }
                    if let Some(typed) = editor.message(interrupt.run()).await {
                        return typed;
                    }
                }
                // The terminal does not say where its cursor is, or there is none.
                *editor = None;
                read_message(keyboard, &mut io::stderr(), "> ", interrupt.run()).await
            }
            Self::Full(full) => full.message(interrupt).await,
        }
    }

    /// Shows a message that came otherwise than by its keys.
    pub(super) fn begin_with(&self, message: &str) {
        match self {
            Self::Lines { .. } => super::say(&format!("> {}\n", podbay_ui::text::clean(message))),
            Self::Full(full) => full.tui.begin_with(message),
        }
    }

    /// Says something of ours.
    pub(super) fn say(&self, words: &str) {
        match self {
            Self::Lines { .. } => super::say(words),
            Self::Full(full) => full.tui.say(words),
        }
    }

    pub(super) fn fail(&self, error: &app::Error) {
        match self {
            Self::Lines { terminal, .. } => {
                failure::show(error, &mut io::stderr(), terminal.paint);
            }
            Self::Full(full) => {
                let mut shown = Vec::new();
                failure::show(error, &mut shown, Paint::NONE);
                full.tui.fail(&String::from_utf8_lossy(&shown));
            }
        }
    }

    /// Asks for a yes; where nobody is there it is no.
    pub(super) async fn confirm(&self, question: &str, interrupt: &Interrupt) -> bool {
        match self {
            Self::Lines { keyboard, .. } => {
                let question = format!("{question} [y/N] ");
                keyboard.is_terminal()
                    && matches!(
                        read_message(keyboard, &mut io::stderr(), &question, interrupt.run()).await,
                        Typed::Line(line) if matches!(line.trim(), "y" | "Y" | "yes")
                    )
            }
            Self::Full(full) => {
                let choices = [('n', "no"), ('y', "yes")];
                full.tui.choose(question, &choices).await == Some('y')
            }
        }
    }

    /// Ends what is shown; what follows stands on the terminal as it was.
    pub(super) fn close(&self) {
        if let Self::Full(full) = self {
            full.tui.close();
        }
    }
}

/// Asks what becomes of a turn that was interrupted; where nobody sits at a terminal it is kept.
pub(super) struct KeepOrDrop<'a> {
    pub(super) face: &'a Face,
    pub(super) interrupt: &'a Interrupt,
}

impl app::Decide for KeepOrDrop<'_> {
    fn decide(&mut self, n_changes: u64) -> Later<'_, Fate> {
        Box::pin(async move {
            if self.interrupt.is_ended() {
                return Fate::Keep;
            }
            let paths = if n_changes == 1 {
                "1 change".to_owned()
            } else {
                format!("{n_changes} changes")
            };
            let is_dropped = match self.face {
                Face::Lines { keyboard, .. } => {
                    if !keyboard.is_terminal() {
                        return Fate::Keep;
                    }
                    let question = format!("{paths} so far: [k]eep or [d]rop? ");
                    let mut err = io::stderr();
                    let typed =
                        read_message(keyboard, &mut err, &question, self.interrupt.run()).await;
                    matches!(
                        typed,
                        Typed::Line(line) if matches!(line.trim().to_ascii_lowercase().as_str(), "d" | "drop")
                    )
                }
                Face::Full(full) => {
                    let question = format!("Stopped, with {paths} so far. Keep or drop them?");
                    let choices = [
                        ('k', "keep what was changed"),
                        ('d', "drop it: the project is as it was before this turn"),
                    ];
                    tokio::select! {
                        () = self.interrupt.run().cancelled() => false,
                        chosen = full.tui.choose(&question, &choices) => chosen == Some('d'),
                    }
                }
            };
            if is_dropped { Fate::Drop } else { Fate::Keep }
        })
    }

    fn review<'a>(
        &'a mut self,
        pending: &'a app::ReviewedTurn,
        can_drop: bool,
    ) -> Later<'a, app::Verdict> {
        Box::pin(async move {
            if self.interrupt.is_ended() {
                return app::Verdict::Leave;
            }
            let discard = can_drop.then_some("Drop all of it: the project is as it was before");
            let title = "changes of this turn, not in your files yet".to_owned();
            let view = review_screen::view(title, &pending.came, &pending.text, discard);
            let choice = match self.face {
                Face::Full(full) => tokio::select! {
                    () = self.interrupt.run().cancelled() => ReviewChoice::Quit,
                    choice = full.tui.review(view.clone()) => choice,
                },
                Face::Lines { .. } => self.review_in_lines(&view).await,
            };
            match choice {
                ReviewChoice::Quit => app::Verdict::Leave,
                ReviewChoice::Discard => app::Verdict::Drop,
                ReviewChoice::Apply(chosen) => {
                    app::Verdict::Apply(review_screen::selection(&pending.came, &view, &chosen))
                }
            }
        })
    }
}

impl KeepOrDrop<'_> {
    /// Has the user decide in lines.
    async fn review_in_lines(&self, view: &ReviewView) -> ReviewChoice {
        let Face::Lines { keyboard, .. } = self.face else {
            return ReviewChoice::Quit;
        };
        self.face.say(&review_screen::lines(view));
        if !keyboard.is_terminal() {
            return ReviewChoice::Quit;
        }
        for file in &view.files {
            self.face.say(&text::escape(&file.hunks.concat()));
        }
        let may_drop = if view.discard.is_some() {
            ", [d]rop"
        } else {
            ""
        };
        let question = format!("[a]pply{may_drop} or [l]eave pending? ");
        let typed =
            read_message(keyboard, &mut io::stderr(), &question, self.interrupt.run()).await;
        let Typed::Line(line) = typed else {
            return ReviewChoice::Quit;
        };
        match line.trim().to_ascii_lowercase().as_str() {
            // What runs by itself needs a yes of its own.
            "a" | "apply" => ReviewChoice::Apply(
                view.files
                    .iter()
                    .map(|file| {
                        let n = file.hunks.len().max(1) as u32;
                        (!file.runs_by_itself).then(|| (0..n).collect())
                    })
                    .collect(),
            ),
            "d" | "drop" if view.discard.is_some() => ReviewChoice::Discard,
            _ => ReviewChoice::Quit,
        }
    }
}

/// The user before a screen.
struct Viewer {
    tui: Tui,
    wishes: Arc<Wishes>,
}

impl Asker for Viewer {
    fn ask<'a>(&'a self, asked: &'a Asked) -> Later<'a, Answered> {
        Box::pin(async move {
            let answered = self.tui.ask(Question::from(asked)).await;
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
            self.tui.pick(question, options).await
        })
    }

    fn may_continue<'a>(&'a self, question: &'a str) -> Later<'a, bool> {
        Box::pin(async move {
            let choices = [('y', "yes"), ('n', "no: stop here")];
            self.tui.choose(question, &choices).await == Some('y')
        })
    }

    fn plan<'a>(&'a self, plan: &'a str) -> Later<'a, Option<PlanAnswer>> {
        Box::pin(super::plan::ask_on_screen(&self.tui, plan))
    }

    fn can_answer(&self) -> bool {
        !self.wishes.is_away.load(Ordering::Relaxed)
    }
}
