//! The slash commands that are about the turns of this session.

use std::sync::atomic::Ordering;

use super::chat::HELP;
use super::chat::KEYS;
use super::chat::tell;
use super::face::Face;
use super::front::Wishes;
use podbay_app as app;
use podbay_app::Chat;
use podbay_app::Interrupt;
use podbay_app::Undo;
use podbay_ui::revealed;
use podbay_ui::slash;
use podbay_ui::slash::Line;
use podbay_ui::text;

/// Lists keys and commands; `prompts` are the lines of those that files and servers define.
pub(super) fn help(face: &Face, prompts: &str) {
    let keys = if face.tui().is_some() { KEYS } else { "" };
    face.say(&format!("{HELP}{keys}{}{prompts}", slash::help()));
}

/// Does what a slash command asks for.
pub(super) async fn obey(
    chat: &mut Chat,
    command: Line,
    face: &Face,
    interrupt: &Interrupt,
    wishes: &Wishes,
) {
    let order = match command {
        Line::Mode(word) => {
            return tell(
                face,
                &mode(chat, word.as_deref(), wishes).unwrap_or_default(),
            );
        }
        Line::Answers => return face.say(&answers(chat)),
        Line::Forget(number) => {
            return face.say(&match chat.forget_answer(number) {
                Ok(what) => format!("asked again: {}\n", revealed(&what)),
                Err(problem) => format!("{}\n", text::line(&problem)),
            });
        }
        Line::Context => {
            let (used, window) = chat.fullness(interrupt).await;
            return face.say(&context(used, window));
        }
        Line::Compact(focus) => {
            if !chat.compact(&focus, interrupt).await && !interrupt.is_ended() {
                face.say("Nothing was replaced: a summary would be no shorter.\n");
            }
            return;
        }
        Line::Undo(n) => Undo::Back {
            n,
            merge: false,
            is_beside: true,
        },
        Line::Retry => Undo::Retry {
            merge: false,
            is_beside: true,
        },
        Line::Redo(n) => Undo::Forward {
            n,
            merge: false,
            is_beside: true,
        },
        Line::Wrong(why) => return face.say(&format!("{}\n", text::line(&why))),
        // The loop has seen to these.
        Line::Nothing
        | Line::Help
        | Line::Quit
        | Line::Run(_)
        | Line::Tree(_)
        | Line::Say(_)
        | Line::Other(..) => return,
    };
    match chat.undo(order, interrupt).await {
        Ok(answer) => face.say(&super::undo::told(&answer).0),
        Err(error) => face.fail(&error),
    }
}

/// Says which mode holds, or changes it; a user who names one is no longer away.
fn mode(chat: &mut Chat, word: Option<&str>, wishes: &Wishes) -> Option<String> {
    let mode = match word {
        Some("auto") => app::Mode::Auto,
        Some("ask") => app::Mode::Ask,
        Some("deny") => app::Mode::Deny,
        _ => return Some(format!("mode {}\n", chat.mode().as_str())),
    };
    chat.set_mode(mode);
    wishes.is_away.store(false, Ordering::Relaxed);
    None
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
