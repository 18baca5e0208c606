//! A question before something that the user was just shown is trusted.

use std::io;

use tokio_util::sync::CancellationToken;

use podbay_app as app;
use podbay_ui as ui;
use podbay_ui::Keyboard;

/// Returns whether the user agrees at the terminal. Where there is none, `without` says what was not
/// done, and the remedy is `--yes`.
pub(super) async fn confirmed(question: &str, without: &str) -> Result<bool, app::Error> {
    let keyboard = Keyboard::stdin().map_err(|source| app::Error::Io {
        doing: "open the keyboard".to_owned(),
        source,
    })?;
    if !keyboard.is_terminal() {
        return Err(app::Error::usage(
            format!("there is no terminal to ask at, so {without}"),
            "read it, then give --yes",
        ));
    }
    let cancel = CancellationToken::new();
    let is_wanted = ui::confirm(question, &keyboard, &mut io::stderr(), &cancel).await;
    if !is_wanted {
        super::say("nothing was changed\n");
    }
    Ok(is_wanted)
}
