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

pub(super) async fn call(args: CallArgs) -> Result<u8, app::Error> {
    let mut overrides = Vec::new();
    flags::place(&args.place, &mut overrides)?;
    let setup = Setup::in_project(&args.place.config, args.place.path.as_deref(), overrides)?;
    let interrupt = Interrupt::new();
    let signals = listen(&interrupt)?;
    let terminal = setup.terminal(OutputFormat::Text);
    setup.show_warnings(&terminal);
    let place = setup.place_without_key(args.place.path.as_deref(), flags::mode(Some(args.mode), None, args.mode))?;
    let mut front = terminal.front(&interrupt, Arc::new(Nobody));
    // The result goes to the standard output as it is: what a model would read, and nothing about it.
    let sink = Arc::clone(&front.sink);
    front.sink = Arc::new(move |event| {
        if matches!(event.kind, Kind::Warning { .. } | Kind::Progress(_) | Kind::BoxLost { .. }) {
            sink(event);
        }
    });
    let called = Box::pin(app::call(&place, &args.tool, &args.arguments, &front)).await?;
    terminal.finish();
    let newline = if called.text.ends_with('\n') { "" } else { "\n" };
    let text = podbay_ui::text::clean(&called.text);
    deliver(&format!("{text}{newline}"))?;
    Ok(signals.exit_code(called.exit_code))
}
