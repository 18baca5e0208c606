//! Our own diagnostics, on the error stream.

use std::io;
use std::io::Write;

use tracing::Subscriber;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::SubscriberInitExt;

use podbay_ui::text;

/// Shows our own diagnostics with `--verbose` or as `PODBAY_LOG` says.
pub(super) fn begin(verbose: bool) {
    let default = if verbose { "podbay=debug" } else { "off" };
    let filter = EnvFilter::try_from_env("PODBAY_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    // A second command in the same process keeps the first one's choice.
    let _ = subscriber(filter, io::stderr).try_init();
}

/// Returns what writes them, each on a line of its own. What they tell of may hold anything: names,
/// words of a guest, of an engine, of a server.
fn subscriber<W: Write + 'static>(
    filter: EnvFilter,
    out: impl Fn() -> W + Send + Sync + 'static,
) -> impl Subscriber + Send + Sync + 'static {
    let writer = move || Lines(out());
    // Colours would be escapes among those that are not to pass.
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer)
        .with_ansi(false)
        .without_time()
        .finish()
}

/// Makes each piece that is written one line that a terminal can be shown. The formatter writes a
/// message in one piece.
struct Lines<W>(W);

impl<W: Write> Write for Lines<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let message = String::from_utf8_lossy(bytes);
        writeln!(self.0, "{}", text::line(message.trim_end_matches('\n')))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::Mutex;

    use super::*;
    use podbay_event::is_hidden;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("one thread").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_a_terminal_would_obey_is_shown_in_the_log_by_its_number() {
        let kept = Kept::default();
        let to = kept.clone();
        let bad = "a\x1b]52;c;x\x07b\u{9b}31m\u{202e}c\rd\x08e\nERROR f";
        tracing::subscriber::with_default(
            subscriber(EnvFilter::new("debug"), move || to.clone()),
            || {
                let error = io::Error::other(bad);
                tracing::debug!(%error, name = bad, "{bad}");
                tracing::info!(path = ?std::path::Path::new(bad), "next");
            },
        );
        let log = String::from_utf8(kept.0.lock().expect("one thread").clone()).expect("text");
        assert!(log.chars().all(|c| c == '\n' || !is_hidden(c)), "{log:?}");
        assert_eq!(log.lines().count(), 2, "a message is one line: {log}");
        for part in [
            "\\u{202e}c\\x0dd\\x08e\\nERROR f",
            "error=a\\x1b]52;c;x\\x07b",
            "name=\"a\\u{1b}]52",
            "path=\"a\\u{1b}]52",
        ] {
            assert!(log.contains(part), "`{part}` is missing: {log}");
        }
    }
}
