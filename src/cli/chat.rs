use std::io;
use std::io::Write;
use std::sync::Arc;

use super::args::ModeFlag;
use super::args::OutputFormat;
use super::args::SessionFlags;
use super::failure;
use super::flags;
use super::front::Nobody;
use super::front::Person;
use super::front::err_paint;
use super::run::listen;
use super::setup::Setup;
use crate::app;
use crate::app::Chat;
use crate::app::Interrupt;
use crate::app::exit_code;
use crate::event::CallStatus;
use crate::ui::Keyboard;
use crate::ui::Typed;
use crate::ui::read_message;
use crate::ui::text;

const HELP: &str = "Type what is to be done; @shot.png shows the model that image. !CMD runs a command in the sandbox, and the agent reads what came of it. /answers lists what you have allowed for more than once, /answers forget N takes one back. /mode auto, ask or deny says what is allowed without asking. /help shows this, /quit or an empty end of input leaves. Ctrl-C stops the \
     answer, twice leaves.\n";

pub(super) async fn chat(flags: SessionFlags) -> Result<u8, app::Error> {
    let mut overrides = Vec::new();
    flags::session(&flags, &mut overrides)?;
    let folder = flags.place.path.as_deref();
    let mut setup = Setup::in_project(&flags.place.config, folder, overrides.clone())?;
    if flags.output == OutputFormat::Json {
        return Err(app::Error::usage("a chat has no single result that JSON could hold", "use --output jsonl, or podbay run"));
    }
    let interrupt = Interrupt::new();
    let signals = listen(&interrupt)?;
    let keyboard = Keyboard::stdin().map_err(|source| app::Error::Io { doing: "open the keyboard".to_owned(), source })?;
    if super::config::ask_again(&setup, &keyboard, err_paint(&setup.config.ui), interrupt.run()).await? {
        setup = Setup::in_project(&flags.place.config, folder, overrides)?;
    }
    setup.end_trust_without_file(folder)?;
    setup.add_permissions(&flags);
    let terminal = setup.terminal(flags.output);
    setup.show_warnings(&terminal);
    let is_unattended = setup.config.policy.autonomy == Some(app::Autonomy::Unattended);
    let person = Person { keyboard: keyboard.clone(), terminal: terminal.clone(), turn: tokio::sync::Mutex::new(()) };
    let mut place = setup.place(folder, flags::mode(flags.mode, setup.config.policy.autonomy, ModeFlag::Ask))?;
    place.resume = flags::resume(&flags);
    let asker: Arc<dyn app::Asker> = if is_unattended { Arc::new(Nobody) } else { Arc::new(person) };
    let mut chat = Chat::open(&place, &terminal.front(&interrupt, asker)).await?;
    super::say(&format!("session {}, model {}. {HELP}", chat.session(), text::line(chat.model())));
    if chat.is_open() {
        super::say("The last task was broken off. Say how to go on, or just that it should.\n");
    }
    let mut lost = None;
    let code = loop {
        interrupt.idle();
        let message = match read_message(&keyboard, &mut io::stderr(), "> ", interrupt.run()).await {
            Typed::Line(line) => line,
            Typed::End => {
                super::say("\n");
                break exit_code::DONE;
            }
            Typed::Cancelled => break exit_code::INTERRUPTED,
        };
        match message.trim() {
            "" => continue,
            "/quit" | "/exit" | "/q" => break exit_code::DONE,
            "/help" | "/h" | "/?" => {
                super::say(HELP);
                continue;
            }
            command if command == "/mode" || command.starts_with("/mode ") => {
                mode(&mut chat, command.trim_start_matches("/mode").trim());
                continue;
            }
            command if command == "/answers" || command.starts_with("/answers ") => {
                super::say(&answers(&mut chat, command.trim_start_matches("/answers").trim()));
                continue;
            }
            command if command.starts_with('/') && !command.contains(char::is_whitespace) => {
                super::say(&format!("{command} is not known. {HELP}"));
                continue;
            }
            command if command.starts_with('!') => {
                let command = command.trim_start_matches('!').trim();
                if command.is_empty() {
                    super::say("Put a command behind the `!`, such as `!git status`.\n");
                    continue;
                }
                match chat.run_by_hand(command, &interrupt).await {
                    Ok(ran) if !setup.config.ui.stream_during_tools || ran.status == CallStatus::Denied => {
                        super::say(&format!("{}\n", text::clean(&ran.text)));
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
            _ => {}
        }
        let said = chat.say(&message, &interrupt).await;
        let _ = writeln!(io::stdout());
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
    };
    let code = signals.exit_code(code);
    chat.close(code, lost.as_ref(), interrupt.run()).await;
    terminal.finish();
    Ok(code)
}

/// Says which mode holds, or changes it.
fn mode(chat: &mut Chat, word: &str) {
    match word {
        "" => super::say(&format!("mode {}\n", chat.mode().as_str())),
        "auto" => chat.set_mode(app::Mode::Auto),
        "ask" => chat.set_mode(app::Mode::Ask),
        "deny" => chat.set_mode(app::Mode::Deny),
        _ => super::say(&format!("There is no mode {}: auto, ask and deny are.\n", text::line(word))),
    }
}

/// Lists the answers that hold, or takes one back.
fn answers(chat: &mut Chat, words: &str) -> String {
    if let Some(number) = words.strip_prefix("forget") {
        return match number
            .trim()
            .parse()
            .map_err(|_| "say which one, by its number: /answers forget 2".to_owned())
            .and_then(|n| chat.forget_answer(n))
        {
            Ok(what) => format!("asked again: {}\n", text::line(&what)),
            Err(problem) => format!("{}\n", text::line(&problem)),
        };
    }
    let all = chat.answers();
    if all.is_empty() {
        return "Nothing was allowed for more than once.\n".to_owned();
    }
    all.iter().zip(1..).map(|(words, n)| format!("{n}. {}\n", text::line(words))).collect()
}
