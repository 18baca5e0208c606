//! `podbay sh --detach` and `podbay jobs`: commands that stay in the sandbox of `podbay up`.

use std::ffi::OsString;
use std::io;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::process::Stdio;
use std::sync::Arc;

use clap::Subcommand;
use clap::ValueHint;
use serde::Serialize;

use super::args::ConfigFlags;
use super::args::FormatFlags;
use super::args::OutputFormat;
use super::args::ShArgs;
use super::delivery::deliver;
use super::delivery::deliver_json;
use super::front::Nobody;
use super::later;
use super::run::listen;
use super::setup;
use super::setup::Setup;
use podbay_app as app;
use podbay_app::Interrupt;
use podbay_app::JobRecord;
use podbay_app::exit_code;
use podbay_ui::text;

#[derive(Debug, Subcommand)]
pub(super) enum JobsCommand {
    /// List the commands that were detached, of all projects
    List {
        #[command(flatten)]
        format: FormatFlags,
        #[command(flatten)]
        config: ConfigFlags,
    },
    /// Print what one has printed
    Logs {
        /// The id, or its beginning
        #[arg(value_name = "ID", value_hint = ValueHint::Other)]
        id: String,
        /// Continue until it ends
        #[arg(long, short)]
        follow: bool,
        #[command(flatten)]
        config: ConfigFlags,
    },
    /// End one, and wait until it has
    Stop {
        /// The id, or its beginning
        #[arg(value_name = "ID", value_hint = ValueHint::Other)]
        id: String,
        #[command(flatten)]
        config: ConfigFlags,
    },
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

/// The jobs, as a script reads them.
#[derive(Serialize)]
struct JobList<'a> {
    jobs: &'a [JobRecord],
}

pub(super) async fn jobs(command: JobsCommand) -> Result<u8, app::Error> {
    match command {
        JobsCommand::List { format, config } => list(format, &config),
        JobsCommand::Logs { id, follow, config } => logs(&id, follow, &config).await,
        JobsCommand::Stop { id, config } => {
            let setup = Setup::new(&config, Vec::new())?;
            let job = app::stop_job(&setup.state, &id).await?;
            deliver(&line(&job))?;
            Ok(exit_code::DONE)
        }
        JobsCommand::Other(words) => Err(later::below("jobs", &["list", "logs", "stop"], &words)),
    }
}

fn list(format: FormatFlags, config: &ConfigFlags) -> Result<u8, app::Error> {
    let setup = Setup::new(config, Vec::new())?;
    let jobs = app::list_jobs(&setup.state)?;
    if format.is_json() {
        deliver_json(&JobList { jobs: &jobs })?;
    } else if jobs.is_empty() {
        super::say("no jobs; `podbay sh --detach -- CMD` starts one\n");
    } else {
        deliver(&jobs.iter().map(line).collect::<String>())?;
    }
    Ok(exit_code::DONE)
}

async fn logs(id: &str, follow: bool, config: &ConfigFlags) -> Result<u8, app::Error> {
    let setup = Setup::new(config, Vec::new())?;
    let interrupt = Interrupt::new();
    let signals = listen(&interrupt)?;
    let front = setup
        .terminal(OutputFormat::Text)
        .front(&interrupt, Arc::new(Nobody));
    // The command's own bytes, as `podbay sh` shows them.
    let write = |bytes: &[u8]| {
        let mut out = io::stdout().lock();
        out.write_all(bytes).and_then(|()| out.flush()).is_ok()
    };
    app::job_output(&setup.state, id, follow, write, &front).await?;
    Ok(signals.exit_code(exit_code::DONE))
}

fn line(job: &JobRecord) -> String {
    format!(
        "{}  {}  {}  ({})\n",
        job.id,
        text::line(&job.state.to_string()),
        text::line(&job.command),
        text::line(&job.project)
    )
}

/// Starts a process in the background that holds a command, waits until that has started, and prints
/// its id.
pub(super) async fn detach(args: &ShArgs, setup: &Setup) -> Result<u8, app::Error> {
    let project = setup::folder(args.place.path.as_deref())?;
    let words: Vec<_> = args
        .command
        .iter()
        .map(|word| word.to_string_lossy())
        .collect();
    let command: String = words.join(" ").chars().take(1000).collect();
    let job = app::begin_job(&setup.state, &project, &command)?;
    let failed = |source| app::Error::Io {
        doing: "start the process that holds the job".to_owned(),
        source,
    };
    let program = std::env::current_exe().map_err(failed)?;
    #[expect(
        clippy::disallowed_methods,
        reason = "this very program, which holds the job in the background"
    )]
    let mut holder = Command::new(program)
        .args(holding(std::env::args_os().skip(1), &job.id))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // A Ctrl-C here is not for it.
        .process_group(0)
        .spawn()
        .map_err(failed)?;
    let is_alive = || matches!(holder.try_wait(), Ok(None));
    app::started_job(&setup.state, &job.id, is_alive).await?;
    deliver(&format!("{}\n", job.id))?;
    Ok(exit_code::DONE)
}

/// Returns our own arguments with the job in the place of the flag that asked for one.
fn holding(arguments: impl Iterator<Item = OsString>, id: &str) -> Vec<OsString> {
    let mut is_flag = true;
    let mut all: Vec<OsString> = arguments
        .filter(|word| {
            is_flag &= word != "--";
            !(is_flag && (word == "--detach" || word == "-d"))
        })
        .collect();
    let at = all
        .iter()
        .position(|word| word == "sh")
        .map_or(0, |at| at + 1);
    all.insert(at, format!("--job={id}").into());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_job_takes_the_place_of_the_flag_and_of_nothing_else() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        let held = |text: &str| holding(words(text).into_iter(), "abc");
        assert_eq!(
            held("sh --detach -C dir -- rm --detach -d"),
            words("sh --job=abc -C dir -- rm --detach -d")
        );
        assert_eq!(held("sh -C sh -d -- sh"), words("sh --job=abc -C sh -- sh"));
    }
}
