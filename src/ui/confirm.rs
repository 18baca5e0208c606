use std::io::Write;

use tokio_util::sync::CancellationToken;

use super::Keyboard;
use super::Typed;
use super::answer::answer;

/// Asks a question that is answered by yes or no; whatever is not yes is no, as is no terminal.
pub async fn confirm(
    question: &str,
    keyboard: &Keyboard,
    err: &mut impl Write,
    cancel: &CancellationToken,
) -> bool {
    if !keyboard.is_terminal() {
        return false;
    }
    let typed = answer(&format!("{question} [y/N] "), keyboard, err, cancel).await;
    matches!(typed, Typed::Line(line) if matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
