//! Measures Podbay against what others do, in turns, and writes the table of `docs/performance.md`.
//!
//! `cargo bench --bench compare` (or `just bench`). It needs a container engine, the `docker` command for the peers, and the image
//! `podbay/workspace`. `-- --show` prints the table and leaves the page as it is; `-- --quick` does so with few rounds.

#![expect(clippy::disallowed_methods, reason = "the peers are programs, and so are we in the last rows")]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is a program for a terminal")]

#[path = "../tests/it/support/scripted_model.rs"]
mod scripted_model;

use std::error::Error;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::ExitCode;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use podbay::engine;
use podbay::engine::Engine;
use podbay::engine::Labels;
use podbay::engine::Owner;
use podbay::engine::Provision;
use podbay::engine::Role;
use podbay::event::Answer;
use podbay::event::CallStatus;
use podbay::event::Capability;
use podbay::event::InstanceId;
use podbay::event::ProgressSink;
use podbay::event::Sink;
use podbay::event::ToolCall;
use podbay::policy;
use podbay::policy::Mode;
use podbay::policy::Policy;
use podbay::sandbox;
use podbay::sandbox::Project;
use podbay::sandbox::Sandbox;
use podbay::sandbox::Spec;
use podbay::tools;
use podbay::tools::Asker;
use podbay::tools::Catalogue;
use podbay::tools::Later;
use podbay::tools::Pipeline;
use podbay::tools::Services;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use self::scripted_model::ScriptedModel;

type Outcome<T> = Result<T, Box<dyn Error>>;

const PAGE: &str = "docs/performance.md";
const BEGIN: &str = "<!-- measured: written by `cargo bench --bench compare` -->";
const END: &str = "<!-- end of measured -->";

/// The owner of the test project, where we may choose one.
const SOMEBODY: u32 = 1000;

fn main() -> ExitCode {
    // The box runs the program that made it, which is this one.
    let mut arguments = std::env::args_os();
    if arguments.nth(1).is_some_and(|role| role == "guest") {
        return podbay::guest::main(arguments);
    }
    let has = |flag: &str| std::env::args().any(|argument| argument == flag);
    // `cargo test --benches` starts this program too, and must not rewrite the page.
    if !has("--bench") {
        println!("nothing is measured without `cargo bench`");
        return ExitCode::SUCCESS;
    }
    match measure(has("--quick")) {
        Ok(table) if has("--quick") || has("--show") => print!("{table}"),
        Ok(table) => match write_page(&table) {
            Ok(()) => println!("{table}\nwritten to {PAGE}"),
            Err(error) => return failed(&*error),
        },
        Err(error) => return failed(&*error),
    }
    ExitCode::SUCCESS
}

fn failed(error: &dyn Error) -> ExitCode {
    eprintln!("error: {error}");
    let mut source = error.source();
    while let Some(cause) = source {
        eprintln!("caused by: {cause}");
        source = cause.source();
    }
    ExitCode::FAILURE
}

/// Times of one side of a comparison.
#[derive(Default)]
struct Times(Vec<Duration>);

impl Times {
    fn add<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let result = work();
        self.0.push(begun.elapsed());
        result
    }

    /// Returns the time below which this share of all lies.
    fn at(&self, percent: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        sorted.get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
    }

    /// Least, median and 95th percentile.
    fn show(&self) -> String {
        format!("{} / **{}** / {}", milliseconds(self.at(0)), milliseconds(self.at(50)), milliseconds(self.at(95)))
    }
}

fn milliseconds(time: Duration) -> String {
    let ms = time.as_secs_f64() * 1000.0;
    if ms < 10.0 { format!("{ms:.2}") } else { format!("{ms:.0}") }
}

struct Table(String);

impl Table {
    fn row(&mut self, what: &str, ours: &Times, peer: &Times, bar: Option<f64>) {
        let ratio = ours.at(50).as_secs_f64() / peer.at(50).as_secs_f64();
        let ratio_text = if ratio < 0.1 { format!("1/{:.0}", 1.0 / ratio) } else { format!("{ratio:.2}") };
        let bar_text = bar.map_or(String::new(), |bar| if bar < 0.1 { format!("≤ 1/{:.0}", 1.0 / bar) } else { format!("≤ {bar}") });
        let verdict = bar.map_or("", |bar| if ratio <= bar { "holds" } else { "**missed**" });
        let _ = writeln!(self.0, "| {what} | {} | {} | {ratio_text} | {bar_text} | {verdict} |", ours.show(), peer.show());
    }

    fn absolute(&mut self, what: &str, value: &str, bar: &str, holds: bool) {
        let verdict = if holds { "holds" } else { "**missed**" };
        let _ = writeln!(self.0, "| {what} | {value} | | | ≤ {bar} | {verdict} |");
    }
}

fn measure(quick: bool) -> Outcome<String> {
    podbay::app::install_crypto();
    let rounds = |n: usize| if quick { (n / 10).max(2) } else { n };
    let place = Place::make()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut table =
        Table("| what | ours, ms (least / p50 / p95) | peer, ms | ratio | bar | |\n| --- | --- | --- | --- | --- | --- |\n".to_owned());

    let warm = runtime.block_on(Warm::start(&place))?;
    let facts = warm.machine.clone();
    let result = warm_rows(&runtime, &warm, &mut table, rounds(200));
    runtime.block_on(warm.sandbox.close());
    result?;

    cold_row(&place, &mut table, rounds(20))?;
    version_row(&mut table, rounds(40))?;
    memory_row(&place, &mut table)?;

    let date = jiff::Timestamp::now().strftime("%Y-%m-%d");
    let rest = "Other work may have been going on there meanwhile; the ratios say more than the times.";
    Ok(format!("Measured on {date}: {facts}. {rest}\n\n{}", table.0))
}

/// Rows 1 and 2: a box that runs already.
fn warm_rows(runtime: &tokio::runtime::Runtime, warm: &Warm, table: &mut Table, rounds: usize) -> Outcome<()> {
    let read = ToolCall { id: "read".to_owned(), name: "read_file".to_owned(), arguments: r#"{"path":"four_kb.txt"}"#.to_owned() };
    let command = ToolCall { id: "true".to_owned(), name: "bash".to_owned(), arguments: r#"{"command":"true"}"#.to_owned() };
    // How long a shell of the box takes for the same, by its own clock.
    let script = "s=$(date +%s%N); for n in 1 2 3 4 5; do bash -c true; done; e=$(date +%s%N); echo $(((e - s) / 5))";
    let own_loop = ToolCall { id: "loop".to_owned(), name: "bash".to_owned(), arguments: json!({"command": script}).to_string() };
    let call = |call: &ToolCall| runtime.block_on(warm.call(call));
    for _ in 0..5 {
        call(&read)?;
        call(&command)?;
    }
    let (mut ours, mut peer) = (Times::default(), Times::default());
    for _ in 0..rounds.min(50) {
        for _ in 0..8 {
            ours.add(|| call(&read))?;
        }
        peer.add(|| run("docker", &["exec", &warm.container, "cat", "/workspace/four_kb.txt"]))?;
    }
    table.row("`read_file` of 4 KB in a running sandbox, against `docker exec … cat`", &ours, &peer, Some(0.01));

    let (mut ours, mut peer, mut inside) = (Times::default(), Times::default(), Times::default());
    for _ in 0..rounds {
        ours.add(|| call(&command))?;
        peer.add(|| run("bash", &["-c", "true"]))?;
        inside.0.push(Duration::from_nanos(call(&own_loop)?.trim().parse()?));
    }
    table.row("`bash` with `true` in a running sandbox, against `bash -c true` on the host", &ours, &peer, Some(2.0));
    table.row(
        "the same, against `bash -c true` started by a shell in that sandbox: what the image's file system costs",
        &ours,
        &inside,
        None,
    );
    Ok(())
}

/// Row 3: everything from nothing.
fn cold_row(place: &Place, table: &mut Table, rounds: usize) -> Outcome<()> {
    let folder = place.project.to_string_lossy().into_owned();
    let ours_once = || place.podbay(&["call", "-C", &folder, "read_file", r#"{"path":"four_kb.txt"}"#]);
    let image = sandbox::DEFAULT_IMAGE;
    let peer_once = || run("docker", &["run", "--rm", "--network", "none", image, "true"]);
    // The first of a build brings the guest's volume along.
    ours_once()?;
    peer_once()?;
    let (mut ours, mut peer) = (Times::default(), Times::default());
    for _ in 0..rounds {
        ours.add(ours_once)?;
        peer.add(peer_once)?;
    }
    table.row("whole `podbay call` of one read, cold, against `docker run --rm --network none … true`", &ours, &peer, Some(0.7));
    Ok(())
}

/// Row 4.
fn version_row(table: &mut Table, rounds: usize) -> Outcome<()> {
    let mut ours = Times::default();
    for _ in 0..rounds {
        ours.add(|| run(program(), &["--version"]))?;
    }
    table.absolute("`podbay --version`", &ours.show(), "10 ms", ours.at(50) <= Duration::from_millis(10));
    Ok(())
}

/// Row 5: resident memory of the controller while a run goes on.
fn memory_row(place: &Place, table: &mut Table) -> Outcome<()> {
    let mut all = Vec::new();
    for _ in 0..3 {
        // Bringing the guest's volume along, once a build, takes more.
        place.podbay(&["call", "-C", &place.project.to_string_lossy(), "read_file", r#"{"path":"four_kb.txt"}"#])?;
        all.push(memory_of_a_run(place)?);
    }
    all.sort_unstable();
    let megabytes = all[all.len() / 2] as f64 / 1e6;
    let what = "controller's resident memory, at its most during a run (median of three)";
    table.absolute(what, &format!("{megabytes:.1} MB"), "40 MB", megabytes <= 40.0);
    Ok(())
}

fn memory_of_a_run(place: &Place) -> Outcome<u64> {
    let text = "word ".repeat(4000);
    let script = ScriptedModel::new()
        .calls("read_file", json!({"path": "four_kb.txt"}))
        .calls("bash", json!({"command": "seq 200000; sleep 1"}))
        .says(&text);
    let model = script.start_blocking();
    let folder = place.project.to_string_lossy().into_owned();
    let mut child = place
        .command(&["run", "-C", &folder, "--endpoint", &model.endpoint(), "--output", "json", "read and count"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let mut most = 0;
    let status = loop {
        // The high water mark is the kernel's own; it can be read until the process has ended.
        most = most.max(high_water_mark(child.id()).unwrap_or(0));
        if let Some(status) = child.try_wait()? {
            break status;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    if !status.success() {
        return Err(format!("the run that was to be measured ended with {status}").into());
    }
    Ok(most)
}

fn high_water_mark(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()? * 1024)
}

/// The program of the same build.
fn program() -> &'static str {
    env!("CARGO_BIN_EXE_podbay")
}

/// Runs a program to its end; what it prints is read and thrown away, as a runner would read it.
fn run(program: &str, arguments: &[&str]) -> Outcome<()> {
    check(program, Command::new(program).args(arguments))
}

fn check(name: &str, command: &mut Command) -> Outcome<()> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{name} ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr)).into())
}

/// A project of ten files, and folders for everything that Podbay keeps.
struct Place {
    project: PathBuf,
    state: PathBuf,
    _folder: tempfile::TempDir,
}

impl Place {
    fn make() -> Outcome<Self> {
        let folder = tempfile::tempdir()?;
        let place = Self { project: folder.path().join("project"), state: folder.path().join("state"), _folder: folder };
        fs::create_dir(&place.project)?;
        for number in 0..9 {
            fs::write(place.project.join(format!("file_{number}.txt")), format!("file {number}\n"))?;
        }
        fs::write(place.project.join("four_kb.txt"), "sixty-three letters, and one for the end of the line: a page.\n".repeat(66))?;
        if nix::unistd::geteuid().is_root() {
            for entry in fs::read_dir(&place.project)? {
                chown(entry?.path(), Some(SOMEBODY), Some(SOMEBODY))?;
            }
            chown(&place.project, Some(SOMEBODY), Some(SOMEBODY))?;
        }
        Ok(place)
    }

    /// Returns our own program with nothing of the person's settings.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.args(arguments).env_clear().env("PODBAY_HOME", &self.state).env("HOME", &self.state).stdin(Stdio::null());
        let kept: Vec<(OsString, OsString)> =
            std::env::vars_os().filter(|(name, _)| name == "PATH" || name.to_string_lossy().starts_with("DOCKER_")).collect();
        command.envs(kept);
        command
    }

    fn podbay(&self, arguments: &[&str]) -> Outcome<()> {
        check("podbay", &mut self.command(arguments))
    }
}

/// A running box with the whole pipeline in front of it.
struct Warm {
    sandbox: Sandbox,
    pipeline: Pipeline,
    container: String,
    /// What the figures were measured on, in a few words.
    machine: String,
}

impl Warm {
    async fn start(place: &Place) -> Outcome<Self> {
        let cancel = CancellationToken::new();
        let options = engine::Options::default();
        let engine = Engine::connect(&options, &cancel).await?;
        let progress: ProgressSink = Arc::new(|step| eprintln!("{}: {}", step.task, step.detail));
        let locks = tempfile::tempdir()?;
        let image = Provision::new(&engine, &options, locks.path(), &progress).ensure(sandbox::DEFAULT_IMAGE, &cancel).await?;
        let project = Project::open(&place.project, None, &place.state)?;
        let box_options = sandbox::Options::default();
        let spec = Spec::new(&project, &image, engine.facts(), &box_options, &sandbox::guest_volume_name())?;
        let labels = Labels { instance: Some(InstanceId::random()), owner: Some(Owner::current()), ..Labels::new(Role::Workspace) };
        let sink: Sink = Arc::new(|_event| {});
        let (sandbox, _started) = Sandbox::start(&engine, &spec, &box_options, labels, Arc::clone(&sink), &cancel).await?;
        let (container, guest) = sandbox.describe().await.ok_or("the sandbox has ended")?;
        let tool_options = tools::Options::default();
        let pipeline = Pipeline::new(
            Catalogue::new(&tool_options),
            Policy::new(Mode::Auto, &policy::Options::default())?,
            Arc::new(sandbox.clone()),
            Arc::new(Nothing),
            Arc::new(Nobody),
            sink,
            tool_options,
        );
        let machine = machine(guest.cgroup);
        Ok(Self { sandbox, pipeline, container, machine })
    }

    /// Carries a call out and returns what a model would read.
    async fn call(&self, call: &ToolCall) -> Outcome<String> {
        let finished = self.pipeline.run(call, &CancellationToken::new()).await?;
        if finished.status == CallStatus::Ok { Ok(finished.text) } else { Err(format!("{}: {}", call.name, finished.text).into()) }
    }
}

/// Says what the machine is, in general words.
fn machine(cgroup: u8) -> String {
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let ask = |format: &str| {
        let output = Command::new("docker").args(["info", "--format", format]).output();
        output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
    };
    let memory = ask("{{.MemTotal}}").parse::<f64>().map_or(0.0, |bytes| bytes / 1024f64.powi(3));
    format!(
        "{cores} cores, {memory:.0} GiB of memory, Docker {}, cgroup v{cgroup}, storage driver {}, Linux {}",
        ask("{{.ServerVersion}}"),
        ask("{{.Driver}}"),
        ask("{{.KernelVersion}}").split('-').next().unwrap_or_default()
    )
}

fn write_page(table: &str) -> Outcome<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = fs::read_to_string(&path)?;
    let (before, rest) = page.split_once(BEGIN).ok_or("the page has lost the mark of its table")?;
    let (_old, after) = rest.split_once(END).ok_or("the page has lost the mark of its table's end")?;
    fs::write(&path, format!("{before}{BEGIN}\n\n{table}\n{END}{after}"))?;
    Ok(())
}

struct Nothing;

impl Services for Nothing {
    fn store_artifact(&self, _call: &str, _bytes: &[u8]) -> Option<String> {
        None
    }

    fn read_artifact(&self, id: &str, _offset: u64, _limit: u64) -> Result<(String, Option<u64>), String> {
        Err(format!("there is no artifact {id}"))
    }
}

struct Nobody;

impl Asker for Nobody {
    fn ask<'a>(&'a self, _call: &'a ToolCall, _capabilities: &'a [Capability]) -> Later<'a, Answer> {
        Box::pin(async { Answer::Deny })
    }

    fn is_somebody_there(&self) -> bool {
        false
    }
}
