use std::io;
use std::io::IsTerminal;
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use super::args::ModeFlag;
use super::args::OutputFormat;
use super::args::QuickstartArgs;
use super::args::RunArgs;
use super::delivery::Delivery;
use super::execution_report::ReportPlace;
use super::failure;
use super::flags;
use super::front::Nobody;
use super::front::Terminal;
use super::front::err_paint;
use super::piped_input::Piped;
use super::review::paths;
use super::review::summary;
use super::review::wants_auto_run;
use super::setup::Setup;
use super::signals::Signals;
use podbay_app as app;
use podbay_app::Changes;
use podbay_app::Interrupt;
use podbay_app::Report;
use podbay_app::exit_code;
use podbay_ui as ui;
use podbay_ui::text;

/// Most bytes of a task that is read from the standard input.
const MOST_TASK: u64 = 1 << 20;

pub(super) async fn run(args: RunArgs) -> Result<u8, app::Error> {
    let begun = Instant::now();
    let format = args.session.output;
    let interrupt = Interrupt::new();
    let signals = listen(&interrupt)?;
    // What was warned about before the run has a report of its own to put it into.
    let mut warnings = Vec::new();
    let outcome = async {
        let mut overrides = Vec::new();
        flags::session(&args.session, &mut overrides)?;
        let mut setup = Setup::in_project(
            &args.session.place.config,
            args.session.place.path.as_deref(),
            overrides,
        )?;
        setup.end_trust_without_file(args.session.place.path.as_deref())?;
        setup.add_permissions(&args.session);
        if args.demo {
            setup.without_model();
        }
        let task = task(&args, &setup, &interrupt).await?;
        let terminal = setup.terminal(format);
        warnings = setup.show_warnings(&terminal);
        let is_reviewed =
            setup.config.sandbox.changes == Changes::Review && !app::is_attached(&setup.config);
        if flags::picks_session(&args.session) {
            return Err(app::Error::usage(
                "--resume names no session",
                "`podbay sessions list` lists them; --continue takes the one that was worked on last",
            ));
        }
        if args.session.apply && !is_reviewed {
            return Err(app::Error::usage(
                "--apply applies a pending review, and here changes are live",
                "leave it out, or say --changes review",
            ));
        }
        if args.session.accept_auto_run && !args.session.apply {
            return Err(app::Error::usage(
                "--accept-auto-run says yes to what --apply would leave out, and there is no --apply",
                "add --apply, or give it to `podbay review apply`",
            ));
        }
        let mut place = setup.place(
            args.session.place.path.as_deref(),
            flags::mode(
                args.session.mode,
                setup.config.policy.autonomy,
                ModeFlag::Auto,
            ),
        )?;
        place.resume = flags::resume(&args.session);
        place.plan = match (args.session.plan, args.implement) {
            (true, _) => app::PlanStart::On,
            (false, true) => app::PlanStart::Implement,
            (false, false) => app::PlanStart::AsLeft,
        };
        let mut place_of_report = ReportPlace::open(
            args.report.as_deref(),
            setup.config.ui.report,
            &place.project,
        )?;
        let front = terminal.front(&interrupt, Arc::new(Nobody));
        let mut report = if args.demo {
            app::demo(&place, task.as_deref(), &front, begun).await
        } else {
            let may_be_piped = task.is_some() && !is_input(&args);
            let material = Box::pin(material(may_be_piped, terminal.clone(), &interrupt));
            app::run_with(&place, task.as_deref(), material, &front, begun).await
        };
        if args.session.apply && report.exit_code == exit_code::DONE {
            let waits = Box::pin(app::accept(
                &place,
                &mut report,
                args.session.accept_auto_run,
                &front,
            ))
            .await;
            let may_ask = waits && format == OutputFormat::Text && io::stderr().is_terminal();
            if may_ask && wants_auto_run(interrupt.run()).await {
                Box::pin(app::accept(&place, &mut report, true, &front)).await;
            }
        }
        terminal.finish();
        let written = match (&mut place_of_report, &report.session) {
            (Some(place), Some(session)) => {
                place.write(&setup.state, session.as_str(), terminal.paint)
            }
            _ => Ok(()),
        };
        Ok((terminal, report, written))
    };
    match outcome.await {
        Ok((terminal, mut report, written)) => {
            report.warnings.splice(0..0, warnings);
            print(&report, format, &terminal)?;
            // The run is over and told; that its report is not there is a failure of its own.
            written?;
            Ok(report.exit_code)
        }
        Err(error) => {
            // A script that reads JSON gets its object on every path.
            let mut report = Report::failed(&error, None, 0);
            report.exit_code = signals.exit_code(report.exit_code);
            report.warnings = warnings;
            // One error is enough, and this one says more than a result that nobody gets.
            let _ = print_json(&report, format);
            failure::show(
                &error,
                &mut io::stderr(),
                err_paint(&ui::Options::default()),
            );
            Ok(report.exit_code)
        }
    }
}

pub(super) async fn quickstart(args: QuickstartArgs) -> Result<u8, app::Error> {
    let mut overrides = Vec::new();
    flags::model(&args.model, &mut overrides)?;
    let setup = Setup::new(&args.config, overrides)?;
    let interrupt = Interrupt::new();
    listen(&interrupt)?;
    let terminal = setup.terminal(args.output);
    let warnings = setup.show_warnings(&terminal);
    if app::is_attached(&setup.config) {
        return Err(app::Error::not_attached("`podbay quickstart`"));
    }
    // The folder is chosen by quickstart itself.
    let place = setup.place(Some(std::path::Path::new("/nonexistent")), app::Mode::Auto)?;
    let outcome = app::quickstart(&place, &terminal.front(&interrupt, Arc::new(Nobody))).await;
    terminal.finish();
    let done = outcome?;
    let mut report = done.report;
    report.warnings.splice(0..0, warnings);
    print(&report, args.output, &terminal)?;
    if report.exit_code == exit_code::DONE {
        let folder = done.folder.display();
        if done.softly {
            super::say(&format!(
                "{} the model was stopped after five turns; for this first try that counts as done\n",
                terminal.paint.dim("note:")
            ));
        }
        super::say(&format!(
            "\nThe set-up works: a model in one container chose what to do, and it was done in another one.\n\
             Files: {folder}\n\
             Next:\n  \
             podbay chat -C {folder}\n  \
             podbay run -C {folder} \"make the tests pass\" --endpoint URL --model NAME\n  \
             podbay sh -C {folder}\n"
        ));
    }
    Ok(report.exit_code)
}

pub(super) fn listen(interrupt: &Interrupt) -> Result<Signals, app::Error> {
    Signals::listen(interrupt).map_err(|source| app::Error::Io {
        doing: "listen for signals".to_owned(),
        source,
    })
}

/// Returns whether the task itself is on the standard input.
fn is_input(args: &RunArgs) -> bool {
    args.task.as_deref().or(args.prompt.as_deref()) == Some("-")
}

/// Reads what a pipe or a file on the standard input adds to the task, and says so. It is read
/// beside the start of the sandbox: begun at once, and waited for only then.
fn material(
    may_be_piped: bool,
    terminal: Terminal,
    interrupt: &Interrupt,
) -> impl Future<Output = Option<String>> + Send + use<> {
    // Nothing ends a read that waits for more; a thread of its own may be left behind with it.
    let reading = may_be_piped.then(|| tokio::task::spawn_blocking(Piped::read));
    let interrupt = interrupt.run().clone();
    async move {
        let read = tokio::select! {
            () = interrupt.cancelled() => return None,
            read = reading? => read.map_err(io::Error::from).flatten(),
        };
        let notice = match &read {
            Ok(piped) => piped.notice(),
            Err(error) => Some(format!("the standard input cannot be read: {error}")),
        };
        if let Some(notice) = notice {
            terminal.remark(&text::line(&notice));
        }
        read.ok().and_then(Piped::material)
    }
}

/// Takes the task from the command line, or from the standard input where it is `-`.
async fn task(
    args: &RunArgs,
    setup: &Setup,
    interrupt: &Interrupt,
) -> Result<Option<String>, app::Error> {
    let task = args.task.as_deref().or(args.prompt.as_deref());
    if task != Some("-") {
        return Ok(task.map(str::to_owned));
    }
    // Nothing ends a read that waits for more; a thread of its own may be left behind with it.
    let reading = tokio::task::spawn_blocking(|| {
        let mut text = Vec::new();
        io::stdin()
            .lock()
            .take(MOST_TASK + 1)
            .read_to_end(&mut text)
            .map(|_| text)
    });
    let seconds = setup.config.agent.timeout.get();
    let late = async {
        if seconds == 0 {
            std::future::pending::<()>().await;
        } else {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
        }
    };
    let read = tokio::select! {
        () = interrupt.run().cancelled() => return Err(app::Error::Interrupted),
        () = late => return Err(app::Error::Late { seconds }),
        read = reading => read.map_err(io::Error::from).flatten(),
    };
    let text = read.map_err(|source| app::Error::Io {
        doing: "read the task from the standard input".to_owned(),
        source,
    })?;
    if text.len() as u64 > MOST_TASK {
        return Err(app::Error::usage(
            "the task on the standard input is longer than 1 MiB",
            "put long material into a file of the project",
        ));
    }
    String::from_utf8(text).map(Some).map_err(|_| {
        app::Error::usage(
            "the task on the standard input is not UTF-8",
            "convert it, for example with iconv",
        )
    })
}

/// Prints the result in the form that was asked for; an error is for people too, whatever a script
/// reads.
fn print(report: &Report, format: OutputFormat, terminal: &Terminal) -> Result<(), app::Error> {
    let printed = print_json(report, format);
    match (&report.review, &report.pending) {
        (Some(id), Some(pending)) if !pending.is_empty() => super::say(&summary(id, pending)),
        (None, Some(pending)) => super::say(&format!(
            "{} changed, applied to your project\n",
            paths(pending.changes.n)
        )),
        _ => {}
    }
    show_may_run(&report.may_run, report.may_run_known);
    if let (Some(plan), Some(session)) = (&report.plan, &report.session) {
        super::say(&format!(
            "plan {} waits for you, nothing was changed; to implement it: podbay run --resume {session} --implement\n",
            plan.version
        ));
    }
    if let Some(hosts) = &report.network {
        super::say(&format!("network: {}\n", text::line(&hosts.words())));
    }
    if let Some(error) = &report.error {
        failure::show_report(error, &mut io::stderr(), terminal.paint);
        if let Some(session) = &report.session {
            super::say(&format!(
                "{} `podbay sessions show {session}`\n",
                terminal.paint.dim("log:")
            ));
        }
    }
    // What was done is done, but whoever asked does not get to know of it: that is a failure of its
    // own.
    terminal.delivered().and(printed)
}

/// Names what the run left for programs of the user's to run.
pub(super) fn show_may_run(files: &[String], is_known: bool) {
    super::say(&may_run(files, is_known));
}

/// Names what was left for programs of the user's to run.
pub(super) fn may_run(files: &[String], is_known: bool) -> String {
    let mut out = String::new();
    if !is_known {
        out.push_str(
            "what of the changes may run on your machine is not known: look at what changed before you run anything there\n",
        );
    }
    if !files.is_empty() {
        let lines: Vec<String> = files
            .iter()
            .map(|file| format!("  {}\n", text::line(file)))
            .collect();
        out.push_str(&format!("may run on your machine:\n{}", lines.concat()));
    }
    out
}

fn print_json(report: &Report, format: OutputFormat) -> Result<(), app::Error> {
    let mut out = Delivery::default();
    // The output keeps its own errors, and a report is always JSON.
    let _ = match format {
        OutputFormat::Text => Ok(()),
        OutputFormat::Json => ui::json::result(&mut out, report),
        OutputFormat::Jsonl => ui::json::result_line(&mut out, report),
    };
    out.end()
}
