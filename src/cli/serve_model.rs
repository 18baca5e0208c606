use std::convert::Infallible;
use std::ffi::CString;
use std::sync::Arc;

use super::args::OutputFormat;
use super::args::ServeModelArgs;
use super::front::Terminal;
use super::run::listen;
use podbay_app as app;
use podbay_app::Interrupt;
use podbay_config::Config;
use podbay_config::Sources;
use podbay_event::Kind;
use podbay_event::ProgressSink;
use podbay_ui::text;

/// Becomes the model server; returns only if that fails.
///
/// Nothing but the settings is read: this container has no state folder to write in.
pub(super) async fn serve_model(args: ServeModelArgs) -> Result<u8, app::Error> {
    let loaded =
        Config::load(&Sources::from_env(std::env::vars_os())).map_err(app::Error::Config)?;
    for warning in &loaded.warnings {
        super::say(&format!("warning: {}\n", text::line(warning)));
    }
    let interrupt = Interrupt::new();
    let _signals = listen(&interrupt)?;
    let terminal = Terminal::new(OutputFormat::Text, &loaded.config.ui);
    let sink = terminal.sink();
    let progress: ProgressSink = Arc::new(move |step| sink(Kind::Progress(step).into()));
    let argv = app::model_server(
        &loaded.config,
        &args.home,
        &args.socket,
        &args.api_key_file,
        &progress,
        interrupt.run(),
    )
    .await?;
    terminal.finish();
    let Err(source) = execute(&argv);
    Err(app::Error::Io {
        doing: format!(
            "run `{}` (`inference.program`)",
            argv.first().map_or("", String::as_str)
        ),
        source,
    })
}

fn execute(argv: &[String]) -> std::io::Result<Infallible> {
    let words = argv
        .iter()
        .map(|word| CString::new(word.as_str()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(std::io::Error::other)?;
    let program = words.first().ok_or(std::io::ErrorKind::InvalidInput)?;
    Ok(nix::unistd::execvp(program, &words)?)
}
