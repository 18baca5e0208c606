use std::collections::BTreeSet;
use std::io;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::args::ChangesFlag;
use super::args::ModeFlag;
use super::args::OutputFormat;
use super::args::SessionFlags;
use super::failure;
use super::flags;
use super::front::Person;
use super::front::Wishes;
use super::front::err_paint;
use super::run::listen;
use super::setup::Setup;
use podbay_app as app;
use podbay_app::Chat;
use podbay_app::Interrupt;
use podbay_app::Undo;
use podbay_app::exit_code;
use podbay_event::CallStatus;
use podbay_ui::Keyboard;
use podbay_ui::Paint;
use podbay_ui::Typed;
use podbay_ui::read_message;
use podbay_ui::revealed;
use podbay_ui::slash;
use podbay_ui::slash::Line;
use podbay_ui::text;

const HELP: &str = "Type what is to be done; @shot.png shows the model that image. !CMD runs a command in the sandbox, and the agent reads what came of it. /answers lists what you have allowed for more than once, /answers forget N takes one back. /mode auto, ask or deny says what is allowed without asking. /undo N takes back what the last N turns changed, /redo N brings it back, /undo retry tries again what was left. /tree PATH shows the folders below one, without PATH those of the project. /context says how full the model's window is; /compact WORDS has a summary replace older messages, one that keeps what is about those words. A message that begins with a slash has it doubled. /help shows this, /quit or an empty end of input leaves. Ctrl-C ends \
     the turn and asks whether its changes are kept, twice leaves.\n";

pub(super) async fn chat(flags: SessionFlags) -> Result<u8, app::Error> {
    let mut overrides = Vec::new();
    flags::session(&flags, &mut overrides)?;
    let folder = flags.place.path.as_deref();
    let mut setup = Setup::in_project(&flags.place.config, folder, overrides.clone())?;
    if flags.output == OutputFormat::Json {
        return Err(app::Error::usage(
            "a chat has no single result that JSON could hold",
            "use --output jsonl, or podbay run",
        ));
    }
    if flags.changes == Some(ChangesFlag::Review) || flags.apply {
        return Err(app::Error::usage(
            "the changes of a chat go into the project turn by turn",
            "/undo takes a turn back; `podbay run` holds its changes back until you accept them",
        ));
    }
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
        setup = Setup::in_project(&flags.place.config, folder, overrides)?;
    }
    setup.end_trust_without_file(folder)?;
    setup.add_permissions(&flags);
    let terminal = setup.terminal(flags.output);
    terminal.show_each_answer();
    setup.show_warnings(&terminal);
    // A mode that is named takes the place of an autonomy, and with it of being asked nothing.
    let is_unattended =
        setup.config.policy.autonomy == Some(app::Autonomy::Unattended) && flags.mode.is_none();
    let wishes = Arc::new(Wishes::default());
    wishes.is_away.store(is_unattended, Ordering::Relaxed);
    let (keys, turn) = (keyboard.clone(), tokio::sync::Mutex::new(()));
    let person = Person {
        keyboard: keys,
        terminal: terminal.clone(),
        turn,
        wishes: Arc::clone(&wishes),
    };
    let mut place = setup.place(
        folder,
        flags::mode(flags.mode, setup.config.policy.autonomy, ModeFlag::Ask),
    )?;
    place.resume = flags::resume(&flags);
    let mut chat = Chat::open(&place, &terminal.front(&interrupt, Arc::new(person))).await?;
    if flags.accept_auto_run {
        chat.accept_all_auto_run();
    }
    super::say(&format!(
        "session {}, model {}. {HELP}",
        chat.session(),
        text::line(chat.model())
    ));
    if chat.is_open() {
        super::say("The last task was broken off. Say how to go on, or just that it should.\n");
    }
    let mut lost = None;
    let mut asked_about = BTreeSet::new();
    let code = loop {
        interrupt.idle();
        let message = match read_message(&keyboard, &mut io::stderr(), "> ", interrupt.run()).await
        {
            Typed::Line(line) => line,
            Typed::End => {
                super::say("\n");
                break exit_code::DONE;
            }
            Typed::Cancelled => break exit_code::INTERRUPTED,
        };
        let message = match slash::read(&message) {
            Line::Say(message) => message,
            Line::Quit => break exit_code::DONE,
            Line::Run(command) => {
                match chat.run_by_hand(&command, &interrupt).await {
                    // Why stands above already; what else the model reads of it is said to a model.
                    Ok(ran) if ran.status == CallStatus::Denied && !ran.has_begun => {
                        super::say("The command was not run.\n");
                    }
                    Ok(ran) if !setup.config.ui.stream_during_tools => {
                        super::say(&format!("{}\n", text::clean(&ran.text)));
                    }
                    Ok(_) => {}
                    Err(error) => {
                        failure::show(&error, &mut io::stderr(), terminal.paint);
                        lost = Some(error);
                        break exit_code::NO_BOX;
                    }
                }
                show_came(chat.came_by_hand().as_ref());
                if interrupt.is_ended() {
                    break exit_code::INTERRUPTED;
                }
                if wishes.leaves.load(Ordering::Relaxed) {
                    break exit_code::DONE;
                }
                continue;
            }
            Line::Tree(path) => {
                match chat.tree_by_hand(&path, &interrupt).await {
                    // What became of one that was not shown stands above already.
                    Ok(shown) if shown.status == CallStatus::Ok => {
                        super::say(&format!("{}\n", text::clean(&shown.text)));
                    }
                    Ok(_) => {}
                    Err(error) => {
                        failure::show(&error, &mut io::stderr(), terminal.paint);
                        lost = Some(error);
                        break exit_code::NO_BOX;
                    }
                }
                if interrupt.is_ended() {
                    break exit_code::INTERRUPTED;
                }
                continue;
            }
            command => {
                obey(&mut chat, command, &interrupt, &wishes, terminal.paint).await;
                if interrupt.is_ended() {
                    break exit_code::INTERRUPTED;
                }
                continue;
            }
        };
        let mut decision = KeepOrDrop {
            keyboard: &keyboard,
            interrupt: &interrupt,
        };
        let said = chat.say(&message, &interrupt, &mut decision).await;
        let _ = writeln!(io::stdout());
        if said.is_dropped {
            super::say("Dropped: the project is as it was before this turn.\n");
        }
        show_came(said.came.as_ref());
        // A person who said no is not asked again about the same files: they stay pending, and the
        // screen says how they come.
        let left: Vec<_> = said
            .came
            .iter()
            .flat_map(app::Came::left_to_be_run)
            .cloned()
            .collect();
        if !asked_about.is_superset(&left.iter().cloned().collect()) && !interrupt.is_ended() {
            asked_about.extend(left);
            let question = "also apply files that run by themselves on your machine? [y/N] ";
            if keyboard.is_terminal()
                && matches!(read_message(&keyboard, &mut io::stderr(), question, interrupt.run()).await, Typed::Line(line) if is_yes(&line))
            {
                let came = chat.accept_auto_run(&message, &interrupt).await;
                show_came(came.as_ref());
                if let Some(came) = &came {
                    super::run::show_may_run(&came.may_run(), came.is_may_run_known());
                }
            }
        }
        super::run::show_may_run(&said.may_run(), said.is_may_run_known());
        if let Some(error) = said.error {
            failure::show(&error, &mut io::stderr(), terminal.paint);
            // A model that does not answer may come back; a lost sandbox does not.
            if error.exit_code() == exit_code::NO_BOX {
                let code = error.exit_code();
                lost = Some(error);
                break code;
            }
        }
        if interrupt.is_ended() {
            break exit_code::INTERRUPTED;
        }
        if wishes.leaves.load(Ordering::Relaxed) {
            break exit_code::DONE;
        }
    };
    let code = signals.exit_code(code);
    let (may_run, came) = chat.close(code, lost.as_ref(), interrupt.run()).await;
    show_came(came.as_ref());
    super::run::show_may_run(&may_run, true);
    terminal.finish();
    Ok(code)
}

/// Asks what becomes of a turn that was broken off; where nobody sits at a terminal it is kept.
struct KeepOrDrop<'a> {
    keyboard: &'a Keyboard,
    interrupt: &'a Interrupt,
}

impl app::Decide for KeepOrDrop<'_> {
    fn decide(&mut self, n_changes: u64) -> app::Later<'_, app::Fate> {
        Box::pin(async move {
            if !self.keyboard.is_terminal() || self.interrupt.is_ended() {
                return app::Fate::Keep;
            }
            let paths = if n_changes == 1 {
                "1 change".to_owned()
            } else {
                format!("{n_changes} changes")
            };
            let question = format!("{paths} so far: [k]eep or [d]rop? ");
            match read_message(
                self.keyboard,
                &mut io::stderr(),
                &question,
                self.interrupt.run(),
            )
            .await
            {
                Typed::Line(line)
                    if line.trim().eq_ignore_ascii_case("d")
                        || line.trim().eq_ignore_ascii_case("drop") =>
                {
                    app::Fate::Drop
                }
                _ => app::Fate::Keep,
            }
        })
    }
}

fn is_yes(line: &str) -> bool {
    matches!(line.trim(), "y" | "Y" | "yes")
}

/// Says what came into the project, and what did not.
fn show_came(came: Option<&app::Came>) {
    let Some(came) = came else { return };
    if let Some(summary) = came.summary() {
        super::say(&format!("{summary}\n"));
    }
    for note in came.notes() {
        super::say(&format!("{}\n", text::line(&note)));
    }
}

/// Does what a slash command asks for.
async fn obey(
    chat: &mut Chat,
    command: Line,
    interrupt: &Interrupt,
    wishes: &Wishes,
    paint: Paint,
) {
    match command {
        Line::Help => super::say(HELP),
        Line::Mode(word) => mode(chat, word.as_deref(), wishes),
        Line::Answers => super::say(&answers(chat)),
        Line::Forget(number) => super::say(&match chat.forget_answer(number) {
            Ok(what) => format!("asked again: {}\n", revealed(&what)),
            Err(problem) => format!("{}\n", text::line(&problem)),
        }),
        Line::Context => {
            let (used, window) = chat.fullness(interrupt).await;
            super::say(&context(used, window));
        }
        Line::Compact(focus) => {
            if !chat.compact(&focus, interrupt).await && !interrupt.is_ended() {
                super::say("Nothing was replaced: a summary would be no shorter.\n");
            }
        }
        Line::Undo(n) => {
            undo(
                chat,
                Undo::Back {
                    n,
                    merge: false,
                    is_beside: true,
                },
                interrupt,
                paint,
            )
            .await;
        }
        Line::Retry => {
            undo(
                chat,
                Undo::Retry {
                    merge: false,
                    is_beside: true,
                },
                interrupt,
                paint,
            )
            .await;
        }
        Line::Redo(n) => {
            undo(
                chat,
                Undo::Forward {
                    n,
                    merge: false,
                    is_beside: true,
                },
                interrupt,
                paint,
            )
            .await;
        }
        Line::Wrong(why) => super::say(&format!("{}\n", text::line(&why))),
        // The loop has seen to these.
        Line::Nothing | Line::Quit | Line::Run(_) | Line::Tree(_) | Line::Say(_) => {}
    }
}

async fn undo(chat: &mut Chat, order: Undo, interrupt: &Interrupt, paint: Paint) {
    match chat.undo(order, interrupt).await {
        Ok(answer) => super::say(&super::undo::told(&answer).0),
        Err(error) => failure::show(&error, &mut io::stderr(), paint),
    }
}

/// Says which mode holds, or changes it; whoever names one is there again.
fn mode(chat: &mut Chat, word: Option<&str>, wishes: &Wishes) {
    let mode = match word {
        Some("auto") => app::Mode::Auto,
        Some("ask") => app::Mode::Ask,
        Some("deny") => app::Mode::Deny,
        _ => return super::say(&format!("mode {}\n", chat.mode().as_str())),
    };
    chat.set_mode(mode);
    wishes.is_away.store(false, Ordering::Relaxed);
}

/// Says how full the model's window is.
fn context(used: u64, window: Option<u64>) -> String {
    const CELLS: u64 = 20;
    let Some(window) = window.filter(|window| *window > 0) else {
        return format!(
            "about {used} tokens; the server does not say how many the model reads at once\n"
        );
    };
    let full =
        usize::try_from((used.saturating_mul(CELLS) / window).min(CELLS)).unwrap_or_default();
    let bar = "#".repeat(full) + &".".repeat(CELLS as usize - full);
    format!(
        "[{bar}] about {used} of {window} tokens, {} %\n",
        used.saturating_mul(100) / window
    )
}

/// Lists the answers that hold.
fn answers(chat: &Chat) -> String {
    let all = chat.answers();
    if all.is_empty() {
        return "Nothing was allowed for more than once.\n".to_owned();
    }
    all.iter()
        .zip(1..)
        .map(|(words, n)| format!("{n}. {}\n", revealed(words)))
        .collect()
}
