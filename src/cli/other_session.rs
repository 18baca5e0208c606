//! A question before something is done to another session than the last one of the project.

use std::io;
use std::io::IsTerminal;

use tokio_util::sync::CancellationToken;

use podbay_ui as ui;
use podbay_ui::Keyboard;
use podbay_ui::text;

/// Returns whether to continue. On a terminal the user is asked, unless `yes` was given; a script that
/// names a session means it.
///
/// `others`: the sessions that are concerned and are not the last one.
pub(super) async fn is_meant(
    what: &str,
    others: &[String],
    yes: bool,
    cancel: &CancellationToken,
) -> bool {
    if others.is_empty() || yes || !io::stderr().is_terminal() {
        return true;
    }
    let Ok(keyboard) = Keyboard::stdin() else {
        return true;
    };
    if !keyboard.is_terminal() {
        return true;
    }
    // What was typed before the question is no answer to it.
    keyboard.discard();
    let is_meant = ui::confirm(
        &question(what, others),
        &keyboard,
        &mut io::stderr(),
        cancel,
    )
    .await;
    if !is_meant {
        super::say("nothing was changed\n");
    }
    is_meant
}

fn question(what: &str, others: &[String]) -> String {
    let names: Vec<String> = others.iter().map(|name| text::line(name)).collect();
    format!(
        "{what} session {}, which {} not this project's last one?",
        names.join(", "),
        if names.len() == 1 { "is" } else { "are" }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_names_every_session_that_is_concerned() {
        assert_eq!(
            question("Remove", &["ab12".to_owned()]),
            "Remove session ab12, which is not this project's last one?"
        );
        assert_eq!(
            question("Undo 2 turns of", &["ab12".to_owned(), "x\ny".to_owned()]),
            "Undo 2 turns of session ab12, x\\ny, which are not this project's last one?"
        );
    }
}
