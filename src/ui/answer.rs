use std::io::Write;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Keyboard;
use super::Typed;

/// Keys that were on their way before the question was read are no answer to it.
const GUARD: Duration = Duration::from_millis(300);
/// A held key must not scroll the question away.
pub(super) const TRIES: usize = 20;

/// Waits for the line that answers what is on the screen, behind `prompt`.
///
/// What was typed before it could be read is thrown away, and so are several lines at once:
/// somebody pasted what was meant for another place.
pub(super) async fn answer(
    prompt: &str,
    keyboard: &Keyboard,
    err: &mut impl Write,
    cancel: &CancellationToken,
) -> Typed {
    for _ in 0..TRIES {
        if write!(err, "{prompt}").and_then(|()| err.flush()).is_err() {
            // A question that cannot be read cannot be answered.
            return Typed::End;
        }
        tokio::select! {
            () = cancel.cancelled() => return Typed::Cancelled,
            () = tokio::time::sleep(GUARD) => {}
        }
        keyboard.discard();
        match keyboard.line(cancel).await {
            Typed::Line(_) if keyboard.has_more().await => {
                let _ = writeln!(
                    err,
                    "More lines came with that one, as in a paste, so it counts as no answer."
                );
            }
            typed => return typed,
        }
    }
    Typed::End
}
