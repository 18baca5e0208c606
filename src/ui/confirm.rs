use std::io::Write;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Keyboard;
use super::Typed;

/// Keys that were on their way before the question was read are no answer to it.
const GUARD: Duration = Duration::from_millis(300);

/// Asks a question that is answered by yes or no; whatever is not yes is no, as is no terminal.
pub async fn confirm(question: &str, keyboard: &Keyboard, err: &mut impl Write, cancel: &CancellationToken) -> bool {
    if !keyboard.is_terminal() || write!(err, "{question} [y/N] ").and_then(|()| err.flush()).is_err() {
        return false;
    }
    tokio::select! {
        () = cancel.cancelled() => return false,
        () = tokio::time::sleep(GUARD) => {}
    }
    keyboard.discard();
    matches!(keyboard.line(cancel).await, Typed::Line(line) if matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
