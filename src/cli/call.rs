use std::borrow::Cow;
use std::io;
use std::io::IsTerminal;
use std::io::Read;
use std::sync::Arc;

use super::args::CallArgs;
use super::args::OutputFormat;
use super::delivery::deliver;
use super::flags;
use super::front::Nobody;
use super::run::listen;
use super::setup::Setup;
use podbay_app as app;
use podbay_app::Interrupt;
use podbay_event::Kind;

/// Longest arguments on the standard input: a frame of the protocol holds no more.
const MOST_BYTES: u64 = 8 << 20;

pub(super) async fn call(args: CallArgs) -> Result<u8, app::Error> {
    let mut overrides = Vec::new();
    flags::place(&args.place, &mut overrides)?;
    let setup = Setup::in_project(&args.place.config, args.place.path.as_deref(), overrides)?;
    let interrupt = Interrupt::new();
    let signals = listen(&interrupt)?;
    let terminal = setup.terminal(OutputFormat::Text);
    setup.show_warnings(&terminal);
    let place = setup.place_without_key(
        args.place.path.as_deref(),
        flags::mode(Some(args.mode), None, args.mode),
    )?;
    let mut front = terminal.front(&interrupt, Arc::new(Nobody));
    // The result goes to the standard output as it is: what a model would read, and nothing about
    // it.
    let sink = Arc::clone(&front.sink);
    front.sink = Arc::new(move |event| {
        if matches!(
            event.kind,
            Kind::Warning { .. }
                | Kind::Progress(_)
                | Kind::SandboxLost { .. }
                | Kind::NetworkAttempted(_)
        ) {
            sink(event);
        }
    });
    let arguments = arguments(args.arguments, &interrupt).await?;
    let called = Box::pin(app::call(&place, &args.tool, &arguments, &front)).await?;
    terminal.finish();
    deliver(&shown(&called.text, io::stdout().is_terminal()))?;
    Ok(signals.exit_code(called.exit_code))
}

/// Returns the arguments: those on the command line, or all of the standard input.
async fn arguments(given: String, interrupt: &Interrupt) -> Result<String, app::Error> {
    if given != "-" {
        return Ok(given);
    }
    // Nothing ends a read that waits for more; a thread of its own may be left behind with it.
    let reading = tokio::task::spawn_blocking(|| {
        let mut text = String::new();
        io::stdin()
            .lock()
            .take(MOST_BYTES + 1)
            .read_to_string(&mut text)
            .map(|_| text)
    });
    let read = tokio::select! {
        () = interrupt.run().cancelled() => return Err(app::Error::Interrupted),
        read = reading => read.map_err(io::Error::from).flatten(),
    };
    let problem = match read {
        Ok(text) if text.len() as u64 > MOST_BYTES => "they are longer than 8 MiB".to_owned(),
        Ok(text) => return Ok(text),
        Err(error) => error.to_string(),
    };
    Err(app::Error::usage(
        format!("the arguments on the standard input cannot be used: {problem}"),
        "give one JSON object, such as `echo '{\"path\":\"README.md\"}' | podbay call read_file -`",
    ))
}

/// Returns what is written of a result: on a terminal a line that it does not obey, and elsewhere
/// what a model reads, byte for byte.
fn shown(text: &str, is_terminal: bool) -> Cow<'_, str> {
    if !is_terminal {
        return Cow::Borrowed(text);
    }
    let newline = if text.ends_with('\n') { "" } else { "\n" };
    Cow::Owned(format!("{}{newline}", podbay_ui::text::clean(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_gets_what_a_model_reads_and_a_terminal_what_it_can_show() {
        for text in [
            "a\r\nb\u{1b}[31m",
            "\u{202e}x\n",
            "1\tx\n[no newline at the end]",
            "",
        ] {
            assert_eq!(shown(text, false), text);
        }
        assert_eq!(shown("a\u{1b}[31mb\u{1b}[0m", true), "ab\n");
        assert_eq!(shown("a\rb\n", true), "a\nb\n");
    }
}
