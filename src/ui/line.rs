use std::io::Write;

use tokio_util::sync::CancellationToken;

use super::Keyboard;
use super::Typed;

const MESSAGE_MAX: usize = 4 << 20;

/// Prompts for a message and waits for it. A line that ends in a backslash continues the next
/// one.
pub async fn read_message(
    keyboard: &Keyboard,
    err: &mut impl Write,
    prompt: &str,
    cancel: &CancellationToken,
) -> Typed {
    let mut message = String::new();
    loop {
        // A prompt is for a user: in a log of piped input it would only be noise.
        if keyboard.is_terminal() {
            let prompt = if message.is_empty() { prompt } else { "… " };
            let _ = write!(err, "{prompt}").and_then(|()| err.flush());
        }
        match keyboard.line(cancel).await {
            Typed::Line(line) => match line.strip_suffix('\\') {
                Some(start) if message.len() < MESSAGE_MAX => {
                    message.push_str(start);
                    message.push('\n');
                }
                _ => return Typed::Line(message + &line),
            },
            // The end of input also ends a message that was to continue.
            Typed::End if !message.is_empty() => return Typed::Line(message),
            other => return other,
        }
    }
}
