use std::env;
use std::io;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;

use super::args::DoctorArgs;
use super::args::ModelFlags;
use super::findings;
use super::findings::Findings;
use super::findings::Headings;
use super::flags;
use super::front::Terminal;
use super::run::listen;
use super::setup;
use podbay_app as app;
use podbay_app::Interrupt;
use podbay_app::doctor;
use podbay_app::doctor::Check;
use podbay_app::doctor::Diagnosis;
use podbay_app::doctor::Status;
use podbay_app::doctor::Subject;
use podbay_config::Sources;
use podbay_event::Kind;
use podbay_event::ProgressSink;
use podbay_ui as ui;
use podbay_ui::Paint;
use podbay_ui::text;

/// Width of the text where there is no terminal that says its own, and the most that is used of
/// one.
const WIDTH: usize = 110;

pub(super) async fn doctor(args: DoctorArgs) -> Result<u8, app::Error> {
    if args.attack {
        return super::attack::attack(args).await;
    }
    let mut sources = Sources::from_env(env::vars_os());
    sources.file.clone_from(&args.config.config);
    let model = ModelFlags {
        endpoint: args.endpoint,
        provider: args.provider,
        api_key_env: args.api_key_env,
        ..ModelFlags::default()
    };
    flags::model(&model, &mut sources.flags)?;
    super::log::begin(args.config.verbose);
    let interrupt = Interrupt::new();
    let signals = listen(&interrupt)?;
    // The settings may be what is broken, so how things are shown goes by the defaults.
    let options = ui::Options::default();
    let terminal = Terminal::new(args.format.shown(), &options);
    let sink = terminal.sink();
    let progress: ProgressSink = Arc::new(move |step| sink(Kind::Progress(step).into()));
    let columns = super::raw::window_size().map(|(_, columns)| columns);
    let subject = Subject {
        sources,
        state: app::find_state(|name| env::var_os(name)),
        project: args.path,
        terminal: facts(columns, findings::out_paint(&options)),
        key: setup::api_key,
        trial: args.model,
    };
    if args.model && !args.format.is_json() {
        super::say(
            "trying the model; our own server is started if no endpoint is set and it does not run\n",
        );
    }
    let diagnosis = Box::pin(doctor::diagnose(subject, &progress, interrupt.run())).await;
    findings::show(
        diagnosis,
        args.format.is_json(),
        &terminal,
        &options,
        &signals,
    )
}

/// Returns the diagnosis of the project of a chat, in lines.
pub(super) async fn in_chat(project: &Path, interrupt: &Interrupt) -> Result<String, app::Error> {
    let columns = super::raw::window_size().map(|(_, columns)| columns);
    let subject = Subject {
        sources: Sources::from_env(env::vars_os()),
        state: app::find_state(|name| env::var_os(name)),
        project: Some(project.to_owned()),
        terminal: facts(columns, Paint::NONE),
        key: setup::api_key,
        trial: false,
    };
    let progress: ProgressSink = Arc::new(|_| {});
    let diagnosis = Box::pin(doctor::diagnose(subject, &progress, interrupt.run())).await?;
    Ok(diagnosis.words(Paint::NONE))
}

impl Findings for Diagnosis {
    fn is_bad(&self) -> bool {
        self.status == Status::Fail
    }

    fn words(&self, paint: Paint) -> String {
        let columns = super::raw::window_size()
            .map_or(WIDTH, |(_, columns)| usize::from(columns).clamp(40, WIDTH));
        words(self, paint, columns)
    }
}

fn facts(columns: Option<u16>, paint: Paint) -> doctor::Terminal {
    let var = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    doctor::Terminal {
        input: io::stdin().is_terminal(),
        output: io::stdout().is_terminal(),
        columns,
        kind: var("TERM"),
        colours: paint != Paint::NONE,
        locale: var("LC_ALL")
            .or_else(|| var("LC_CTYPE"))
            .or_else(|| var("LANG")),
    }
}

/// Renders the lines by their groups, aligned, and what it comes to.
fn words(diagnosis: &Diagnosis, paint: Paint, width: usize) -> String {
    let longest = diagnosis
        .checks
        .iter()
        .map(|check| check.name.chars().count())
        .max()
        .unwrap_or(0);
    let mut out = String::new();
    let mut headings = Headings::default();
    for check in &diagnosis.checks {
        headings.add(check.group.as_str(), paint, &mut out);
        line(check, longest, paint, width, &mut out);
    }
    let n = |status| diagnosis.count(status);
    let (n_failed, n_warned) = (n(Status::Fail), n(Status::Warn));
    let sum = match (n_failed, n_warned) {
        (0, 0) => paint.good("all is well"),
        (0, 1) => paint.good("it works, with one warning"),
        (0, _) => paint.good(&format!("it works, with {n_warned} warnings")),
        (1, _) => paint.bad(&format!("one check failed; {n_warned} warned")),
        (_, _) => paint.bad(&format!("{n_failed} checks failed; {n_warned} warned")),
    };
    out.push_str(&format!("\n{sum}\n"));
    out
}

fn line(check: &Check, longest: usize, paint: Paint, width: usize, out: &mut String) {
    let word = match check.status {
        Status::Ok => paint.good("ok  "),
        Status::Warn => paint.warn("warn"),
        Status::Fail => paint.bad("FAIL"),
    };
    let indent = longest + 10;
    let name = format!("{:<longest$}", check.name);
    let detail = wrap(
        &text::line(&check.detail),
        width.saturating_sub(indent),
        indent,
    );
    out.push_str(&format!("  {word}  {name}  {detail}\n"));
    if let Some(remedy) = &check.remedy {
        let remedy = wrap(
            &text::line(remedy),
            width.saturating_sub(indent + 3),
            indent + 3,
        );
        out.push_str(&format!("{:indent$}{} {remedy}\n", "", paint.bold("->")));
    }
}

/// Breaks text between words; lines after the first are indented.
fn wrap(text: &str, width: usize, indent: usize) -> String {
    let width = width.max(20);
    let (mut out, mut used) = (String::new(), 0);
    for word in text.split(' ') {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > width {
            out.push_str(&format!("\n{:indent$}", ""));
            used = 0;
        } else if !out.is_empty() {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += length;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use podbay_app::doctor::Group;

    #[test]
    fn lines_are_aligned_and_what_is_foreign_is_made_safe() {
        let check = |group, name: &str, status, detail: &str, remedy: Option<&str>| Check {
            group,
            name: name.to_owned(),
            status,
            detail: detail.to_owned(),
            remedy: remedy.map(str::to_owned),
        };
        let diagnosis = Diagnosis {
            status: Status::Fail,
            checks: vec![
                check(
                    Group::Engine,
                    "connection",
                    Status::Ok,
                    "version 29\u{1b}[31m",
                    None,
                ),
                check(
                    Group::Engine,
                    "runc",
                    Status::Warn,
                    "a line that is too long to stand on a single line of the screen",
                    Some("update it"),
                ),
                check(
                    Group::State,
                    "disk",
                    Status::Fail,
                    "full\nof lies",
                    Some("make room"),
                ),
            ],
        };
        let expected = r"engine
  ok    connection  version 29\x1b[31m
  warn  runc        a line that is too long to stand
                    on a single line of the screen
                    -> update it

state
  FAIL  disk        full\nof lies
                    -> make room

one check failed; 1 warned
";
        assert_eq!(words(&diagnosis, Paint::NONE, 54), expected);
    }
}
