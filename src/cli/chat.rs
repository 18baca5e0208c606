use std::collections::BTreeSet;
use std::io;
use std::io::IsTerminal;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::args::ModeFlag;
use super::args::OutputFormat;
use super::args::SessionFlags;
use super::commands;
use super::commands::Did;
use super::commands::Other;
use super::face;
use super::face::Face;
use super::face::Full;
use super::face::KeepOrDrop;
use super::first_start;
use super::flags;
use super::flags::Overrides;
use super::front::Wishes;
use super::front::err_paint;
use super::history::History;
use super::plan;
use super::prompts;
use super::prompts::Prompts;
use super::run::listen;
use super::run::may_run;
use super::setup::Setup;
use super::turn_commands::help;
use super::turn_commands::obey;
use podbay_app as app;
use podbay_app::Chat;
use podbay_app::Interrupt;
use podbay_app::McpPrompt;
use podbay_app::Place;
use podbay_app::exit_code;
use podbay_config::Origin;
use podbay_event::CallStatus;
use podbay_event::Event;
use podbay_event::Kind;
use podbay_event::MessageQueue;
use podbay_event::RunStatus;
use podbay_ui::Keyboard;
use podbay_ui::Paint;
use podbay_ui::Typed;
use podbay_ui::slash;
use podbay_ui::slash::Line;
use podbay_ui::text;
use podbay_ui::tui;
use podbay_ui::tui::Tui;

pub(super) const HELP: &str = "Type what is to be done; @shot.png shows the model that image. !CMD runs a command in the sandbox, and the agent reads what came of it. A message that begins with a slash has it doubled. Ctrl-C ends the turn and asks whether its changes are kept, twice leaves.\n";

/// The keys of the screen, for its help.
pub(super) const KEYS: &str = "Enter sends · Alt-Enter or \\ at the end begins a line · Ctrl-G opens your editor · ↑ ↓ Ctrl-R history · Tab completes, and expands a paste before the cursor · Shift-Tab auto, plan mode, ask · Esc or Ctrl-C stops · Ctrl-O thinking · Ctrl-X panels, Alt-↑ Alt-↓ Enter one of them · PageUp PageDown Ctrl-End scroll · Ctrl-Z suspends · Ctrl-D leaves\n";

/// What a chat continues as when one line of it was dealt with.
enum Next {
    Message,
    Leave(u8),
    /// The sandbox is lost.
    Lost(app::Error),
    /// This session ends, and another one is opened.
    Other(Other),
}

pub(super) async fn chat(flags: SessionFlags) -> Result<u8, app::Error> {
    Box::pin(begin_with(flags, None)).await
}

/// Opens a chat whose first message is `first`.
pub(super) async fn begin_with(
    flags: SessionFlags,
    first: Option<String>,
) -> Result<u8, app::Error> {
    let first = first.or_else(|| flags::picks_session(&flags).then(|| "/resume".to_owned()));
    let folder = flags.place.path.as_deref();
    let mut setup = Setup::in_project(&flags.place.config, folder, overrides_of(&flags)?)?;
    if flags.output == OutputFormat::Json {
        return Err(app::Error::usage(
            "a chat has no single result that JSON could hold",
            "use --output jsonl, or podbay run",
        ));
    }
    if flags.apply {
        return Err(app::Error::usage(
            "the changes of a chat go into the project turn by turn",
            "--changes review shows each turn's changes before they are applied; --apply is for `podbay run`",
        ));
    }
    let is_full = face::is_full(&flags)?;
    let interrupt = Interrupt::new();
    let signals = listen(&interrupt)?;
    let keyboard = Keyboard::stdin().map_err(|source| app::Error::Io {
        doing: "open the keyboard".to_owned(),
        source,
    })?;
    if super::config::ask_again(
        &setup,
        &keyboard,
        err_paint(&setup.config.ui),
        interrupt.run(),
    )
    .await?
    {
        setup = Setup::in_project(&flags.place.config, folder, overrides_of(&flags)?)?;
    }
    setup.end_trust_without_file(folder)?;
    if first_start::ask_once(&flags, &setup, is_full, &keyboard, &interrupt).await? {
        setup = Setup::in_project(&flags.place.config, folder, overrides_of(&flags)?)?;
    }
    if interrupt.is_ended() {
        return Ok(signals.exit_code(exit_code::INTERRUPTED));
    }
    let is_autonomy_flag = matches!(
        setup.settings.loaded.origins.of("policy.autonomy"),
        Origin::Flag { .. }
    );
    let is_reviewed = first_start::suit_chat(&mut setup.config, &flags, is_autonomy_flag);
    setup.add_permissions(&flags);
    let terminal = setup.terminal(flags.output);
    terminal.show_each_answer();
    let warnings = if is_full {
        setup.settings.warnings()
    } else {
        setup.show_warnings(&terminal)
    };
    // A mode that is named takes the place of an autonomy, and with it of being asked nothing.
    let is_unattended =
        setup.config.policy.autonomy == Some(app::Autonomy::Unattended) && flags.mode.is_none();
    let wishes = Arc::new(Wishes::default());
    wishes.is_away.store(is_unattended, Ordering::Relaxed);
    let mut place = setup.place(
        folder,
        flags::mode(flags.mode, setup.config.policy.autonomy, ModeFlag::Ask),
    )?;
    place.resume = flags::resume(&flags);
    if flags.plan {
        place.plan = app::PlanStart::On;
    }
    let history = History::of(&setup.state);
    let mut face = if is_full {
        let paint = Paint::new(setup.config.ui.color, io::stdout().is_terminal(), |name| {
            std::env::var_os(name)
        });
        let theme = tui::Theme::new(paint != Paint::NONE);
        let facts = commands::facts(&place);
        let full = Full::open(
            theme,
            facts,
            setup.config.ui.keys,
            terminal,
            &interrupt,
            &wishes,
        )?;
        Face::Full(full)
    } else {
        let options = &setup.config.ui;
        let editor = face::line_editor(&flags, options, history.read(), terminal.paint);
        Face::Lines {
            keyboard,
            terminal,
            editor,
            queue: MessageQueue::default(),
        }
    };
    if let Some(tui) = face.tui() {
        tui.history(history.read());
        tui.custom(Prompts::of(&place.project).help(&[]));
        for warning in &warnings {
            tui.warn(&format!("warning: {}", text::clean(warning)));
        }
        if let Some(resume) = &place.resume {
            tui.past(app::past_events(&setup.state, resume, &place.project));
        }
    } else if let Some(resume) = &place.resume
        && face.editor().is_some()
    {
        let events = app::past_events(&setup.state, resume, &place.project);
        super::say(&last_words(&events));
    }
    let mut talk = Talk {
        wishes,
        asked_about: BTreeSet::new(),
        streams: setup.config.ui.stream_during_tools,
        last: None,
        first,
        is_reviewed,
        mcp_prompts: Vec::new(),
    };
    // Where the session goes back to if the next model cannot be used.
    let mut before: Option<Place> = None;
    let code = loop {
        let opened = Chat::open(&place, &face.front(&interrupt, &talk.wishes)).await;
        // Another session that is opened later is as it was left.
        place.plan = app::PlanStart::AsLeft;
        let mut chat = match opened {
            Ok(chat) => chat,
            Err(error) => match before.take() {
                Some(last) if !interrupt.is_ended() => {
                    face.fail(&error);
                    place = last;
                    continue;
                }
                _ => {
                    face.close();
                    return Err(error);
                }
            },
        };
        before = None;
        chat.read_queue(face.queue().clone());
        if flags.accept_auto_run {
            chat.accept_all_auto_run();
        }
        if is_reviewed && !chat.review_turns() {
            tell(
                &face,
                "The changes of this chat are live: there is no review.\n",
            );
        }
        // A turn is stopped as a whole, wherever its changes go.
        interrupt.end_turns();
        greet(&mut chat, &face, &interrupt).await;
        talk.mcp_prompts = chat.mcp_prompts(interrupt.run()).await;
        if let Some(tui) = face.tui().filter(|_| !talk.mcp_prompts.is_empty()) {
            tui.custom(Prompts::of(&place.project).help(&talk.mcp_prompts));
        }
        if place.resume.is_some() && chat.is_planning() {
            face.say("Plan mode is on, as it was: /plan says what became of the plan.\n");
        }
        let session = chat.session().clone();
        let ended = talk
            .with(&mut chat, &mut face, &interrupt, &setup, &history)
            .await;
        let (code, lost, other) = match ended {
            Next::Leave(code) => (code, None, None),
            Next::Lost(error) => (error.exit_code(), Some(error), None),
            Next::Other(other) => (exit_code::DONE, None, Some(other)),
            Next::Message => (exit_code::DONE, None, None),
        };
        let code = signals.exit_code(code);
        // What is opened next is as careful as this was.
        place.mode = chat.mode();
        let ended = chat.close(code, lost.as_ref(), interrupt.run()).await;
        let words = came_words(ended.came.as_ref())
            + &may_run(&ended.may_run, true)
            + &pending_words(ended.n_pending, session.as_str());
        if let Some(other) = other
            && !interrupt.is_ended()
        {
            tell(&face, &words);
            if matches!(other, Other::Model(_)) {
                let resume = Some(app::Resume::Id(session.to_string()));
                before = Some(Place {
                    resume,
                    ..place.clone()
                });
            }
            match other.prepare(&session, &mut place, &setup) {
                Ok(()) => {
                    if let Some(tui) = face.tui() {
                        tui.clear();
                        if let Some(resume) = &place.resume {
                            tui.past(app::past_events(&setup.state, resume, &place.project));
                        }
                    }
                }
                Err(error) => {
                    face.fail(&error);
                    place.resume = Some(app::Resume::Id(session.to_string()));
                }
            }
            continue;
        }
        face.close();
        // The screen that showed the event is gone.
        if let Some(summary) = ended.came.as_ref().and_then(app::Came::summary)
            && face.tui().is_some()
        {
            super::say(&format!("{summary}\n"));
        }
        if let Some(error) = &lost
            && face.tui().is_some()
        {
            super::failure::show(error, &mut io::stderr(), face.terminal().paint);
        }
        super::say(&words);
        face.terminal().finish();
        if face.tui().is_some() || io::stderr().is_terminal() {
            super::say(&format!("to continue: podbay --resume {session}\n"));
        }
        break code;
    };
    Ok(code)
}

impl Talk {
    /// Takes messages until the session is to end.
    async fn with(
        &mut self,
        chat: &mut Chat,
        face: &mut Face,
        interrupt: &Interrupt,
        setup: &Setup,
        history: &History,
    ) -> Next {
        loop {
            interrupt.idle();
            let typed = if let Some(first) = self.first.take() {
                face.begin_with(&first);
                Typed::Line(first)
            } else {
                let has_plan_mode = !app::is_attached(&setup.config);
                face.next_mode(chat.mode().as_str(), chat.is_planning(), has_plan_mode);
                face.message(interrupt).await
            };
            let message = match typed {
                Typed::Line(line) => line,
                Typed::End => {
                    if face.tui().is_none() {
                        super::say("\n");
                    }
                    return Next::Leave(exit_code::DONE);
                }
                Typed::Cancelled => return Next::Leave(exit_code::INTERRUPTED),
            };
            if face.has_history() {
                history.add(&message);
            }
            let prompts = Prompts::of(chat.project());
            let line = match slash::read(&message) {
                Line::Wrong(why) => match prompts.message(&message) {
                    Some(prompt) => {
                        if prompt.is_of_project {
                            face.begin_with(&prompt.text);
                        }
                        Line::Say(prompt.text)
                    }
                    None => self
                        .of_server(&message, chat, face, interrupt)
                        .await
                        .unwrap_or(Line::Wrong(why)),
                },
                line => line,
            };
            let next = match line {
                Line::Quit => return Next::Leave(exit_code::DONE),
                Line::Other("review", _) => self.review(chat, face, interrupt).await,
                Line::Other("plan", rest) => match plan::obey(&rest, chat, face, interrupt).await {
                    Some(task) => self.say(&task, chat, face, interrupt).await,
                    None => Next::Message,
                },
                Line::Other(name, rest) => {
                    let last = self.last.as_deref();
                    match commands::other(name, &rest, chat, face, setup, last, interrupt).await {
                        Did::Said => Next::Message,
                        Did::Message(message) => self.say(&message, chat, face, interrupt).await,
                        Did::Other(other) => Next::Other(other),
                    }
                }
                Line::Say(message) => self.say(&message, chat, face, interrupt).await,
                Line::Run(command) => self.run(&command, chat, face, interrupt).await,
                Line::Tree(path) => tree(&path, chat, face, interrupt).await,
                Line::Help => {
                    help(face, &prompts.lines(&self.mcp_prompts));
                    Next::Message
                }
                command => {
                    obey(chat, command, face, interrupt, &self.wishes).await;
                    Next::Message
                }
            };
            if !matches!(next, Next::Message) {
                return next;
            }
            if interrupt.is_ended() {
                return Next::Leave(exit_code::INTERRUPTED);
            }
            if self.wishes.leaves.load(Ordering::Relaxed) {
                return Next::Leave(exit_code::DONE);
            }
        }
    }
}
/// Says what there is, once all of it is there.
async fn greet(chat: &mut Chat, face: &Face, interrupt: &Interrupt) {
    let Some(tui) = face.tui() else {
        super::say(&format!(
            "session {}, model {}. {HELP}",
            chat.session(),
            text::line(chat.model())
        ));
        if chat.is_open() {
            super::say("The last task was interrupted. Tell the agent how to continue.\n");
        }
        if let Some(editor) = face.editor() {
            let prompts = Prompts::of(chat.project());
            editor.offer(chat.files(interrupt).await, prompts.help(&[]));
        }
        return;
    };
    tui.hint(&format!(
        "session {} · /help lists keys and commands",
        chat.session()
    ));
    if chat.is_open() {
        tui.say("The last task was interrupted. Tell the agent how to continue.");
    }
    tui.files(chat.files(interrupt).await);
    chat.look_for_branch(interrupt).await;
    show_branch(chat, tui);
}

fn show_branch(chat: &Chat, tui: &Tui) {
    if let Some(branch) = chat.branch() {
        tui.branch(branch);
    }
}

/// What a chat keeps in mind from one message to the next.
struct Talk {
    wishes: Arc<Wishes>,
    /// Files that a no was said about; they are not asked about again.
    asked_about: BTreeSet<app::BytesPath>,
    /// Output of commands is shown as it comes.
    streams: bool,
    /// The last message to the model.
    last: Option<String>,
    /// A message of the command line.
    first: Option<String>,
    /// Each turn's changes are looked at before they are applied.
    is_reviewed: bool,
    /// Those of the MCP servers, as the session began.
    mcp_prompts: Vec<McpPrompt>,
}

impl Talk {
    /// Returns what a message stands for that names a prompt of an MCP server. The text of the server is
    /// shown before it is sent.
    async fn of_server(
        &self,
        message: &str,
        chat: &Chat,
        face: &Face,
        interrupt: &Interrupt,
    ) -> Option<Line> {
        let (prompt, words) = prompts::of_server(message, &self.mcp_prompts)?;
        let text = chat.mcp_message(prompt, words, interrupt.run()).await;
        Some(match text {
            Ok(text) => {
                face.begin_with(&text);
                Line::Say(text)
            }
            Err(why) => Line::Wrong(format!("/{}: {why}", prompt.name)),
        })
    }

    async fn say(
        &mut self,
        message: &str,
        chat: &mut Chat,
        face: &mut Face,
        interrupt: &Interrupt,
    ) -> Next {
        self.last = Some(message.to_owned());
        let (message, notes) = chat.attach(message, interrupt).await;
        for note in notes {
            face.say(&format!("{}\n", text::line(&note)));
        }
        let message = message.as_str();
        let mut decision = KeepOrDrop { face, interrupt };
        let said = tokio::select! {
            said = chat.say(message, interrupt, &mut decision) => said,
            never = face.queue_typed() => match never {},
        };
        match face.tui() {
            Some(tui) => show_branch(chat, tui),
            None => drop(writeln!(io::stdout())),
        }
        if said.status == RunStatus::Interrupted {
            face.return_queued();
        }
        let next = self.ended(said, message, chat, face, interrupt).await;
        tell(face, &plan::waits(chat).unwrap_or_default());
        next
    }

    /// Says what a turn left, and asks about what runs by itself.
    async fn ended(
        &mut self,
        said: app::Said,
        message: &str,
        chat: &mut Chat,
        face: &Face,
        interrupt: &Interrupt,
    ) -> Next {
        if said.is_dropped {
            face.say("Dropped: the project is as it was before this turn.\n");
        }
        tell(face, &came_words(said.came.as_ref()));
        if said.n_pending > 0 && self.is_reviewed {
            face.say(&format!(
                "{} pending: /review decides on it.\n",
                super::review::paths(said.n_pending)
            ));
        }
        // A user who said no is not asked again about the same files: they stay pending, and the
        // screen says how they come.
        let left: Vec<_> = said
            .came
            .iter()
            .flat_map(app::Came::left_to_be_run)
            .cloned()
            .collect();
        let is_new = !self
            .asked_about
            .is_superset(&left.iter().cloned().collect());
        if is_new && !self.is_reviewed && !interrupt.is_ended() {
            self.asked_about.extend(left);
            let question = "also apply files that run by themselves on your machine?";
            if face.confirm(question, interrupt).await {
                let came = chat.accept_auto_run(message, interrupt).await;
                tell(face, &came_words(came.as_ref()));
                if let Some(came) = &came {
                    tell(face, &may_run(&came.may_run(), came.is_may_run_known()));
                }
            }
        }
        tell(face, &may_run(&said.may_run(), said.is_may_run_known()));
        if let Some(error) = said.error {
            face.fail(&error);
            // A model that does not answer may come back; a lost sandbox does not.
            if error.exit_code() == exit_code::NO_BOX {
                return Next::Lost(error);
            }
        }
        Next::Message
    }

    /// Has the user decide on what is pending in this session.
    async fn review(&mut self, chat: &mut Chat, face: &Face, interrupt: &Interrupt) -> Next {
        let mut decide = KeepOrDrop { face, interrupt };
        let Some(said) = chat.review(interrupt, &mut decide).await else {
            face.say("Nothing of this session is pending; `podbay review list`, in another terminal, lists the reviews of others.\n");
            return Next::Message;
        };
        let n_pending = said.n_pending;
        let next = self.ended(said, "/review", chat, face, interrupt).await;
        if n_pending > 0 && !self.is_reviewed {
            face.say(&format!("{} pending\n", super::review::paths(n_pending)));
        }
        next
    }

    /// Runs a command of the user's own.
    async fn run(
        &self,
        command: &str,
        chat: &mut Chat,
        face: &Face,
        interrupt: &Interrupt,
    ) -> Next {
        match chat.run_by_hand(command, interrupt).await {
            // Why stands above already; what else the model reads of it is said to a model.
            Ok(ran) if ran.status == CallStatus::Denied && !ran.has_begun => {
                face.say("The command was not run.\n");
            }
            Ok(ran) if !self.streams || face.tui().is_some() => {
                face.say(&format!("{}\n", text::clean(&ran.text)));
            }
            Ok(_) => {}
            Err(error) => {
                face.fail(&error);
                return Next::Lost(error);
            }
        }
        tell(face, &came_words(chat.came_by_hand().as_ref()));
        if interrupt.is_ended() {
            return Next::Leave(exit_code::INTERRUPTED);
        }
        Next::Message
    }
}

async fn tree(path: &str, chat: &mut Chat, face: &Face, interrupt: &Interrupt) -> Next {
    match chat.tree_by_hand(path, interrupt).await {
        // What became of one that was not shown stands above already.
        Ok(shown) if shown.status == CallStatus::Ok => {
            face.say(&format!("{}\n", text::clean(&shown.text)));
        }
        Ok(_) => {}
        Err(error) => {
            face.fail(&error);
            return Next::Lost(error);
        }
    }
    Next::Message
}

/// Says what was left pending, and how it is decided on.
fn pending_words(n: u64, session: &str) -> String {
    match n {
        0 => String::new(),
        n => format!(
            "{} pending: podbay review --id {session}\n",
            super::review::paths(n)
        ),
    }
}

fn overrides_of(flags: &SessionFlags) -> Result<Overrides, app::Error> {
    let mut overrides = Vec::new();
    flags::session(flags, &mut overrides)?;
    Ok(overrides)
}

pub(super) fn tell(face: &Face, words: &str) {
    if !words.is_empty() {
        face.say(words);
    }
}

/// Says what a user should know of what came into the project; how much it is, is an event.
fn came_words(came: Option<&app::Came>) -> String {
    let Some(came) = came else {
        return String::new();
    };
    let mut out = String::new();
    for note in came.notes() {
        out.push_str(&format!("{}\n", text::line(&note)));
    }
    out
}

/// Returns the last message of a session and the answer to it, as a chat in lines begins with them.
fn last_words(events: &[Event]) -> String {
    let last =
        |of: fn(&Kind) -> Option<&str>| events.iter().rev().find_map(|event| of(&event.kind));
    let said = last(|kind| match kind {
        Kind::UserMessage { text, .. } => Some(text),
        _ => None,
    });
    let answered = last(|kind| match kind {
        Kind::AssistantMessage { text, .. } if !text.trim().is_empty() => Some(text),
        _ => None,
    });
    let shown = |mark: &str, words: Option<&str>| {
        words.map_or_else(String::new, |words| {
            format!("{mark}{}\n", text::clean(words.trim()))
        })
    };
    shown("> ", said) + &shown("", answered)
}
