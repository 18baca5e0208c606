//! `podbay install`: an install phase, in a sandbox of its own that reaches registries alone and has
//! the project's caches writable. It is over when this returns.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;
use std::time::Instant;

use serde::Serialize;
use sha2::Digest;
use sha2::Sha256;
use tokio_util::sync::CancellationToken;

use super::Error;
use super::Front;
use super::Place;
use super::bench::Bench;
use super::bench::Ground;
use super::cache::unknown_name;
use super::exit_code;
use super::install_record::InstallRecord;
use super::network;
use super::shell::ENDING;
use super::shell::Program;
use super::shell::ShellCommand;
use super::shell::ShellUpdate;
use super::tried_hosts::TriedHosts;
use podbay_config::Config;
use podbay_engine::Engine;
use podbay_engine::FileLock;
use podbay_event::ByteSize;
use podbay_event::Kind;
use podbay_event::ProgressSink;
use podbay_event::Sink;
use podbay_sandbox as sandbox;
use podbay_sandbox::CacheMount;
use podbay_sandbox::Ecosystem;
use podbay_sandbox::Gateway;
use podbay_sandbox::InstallPhase;
use podbay_sandbox::NamedRegistry;
use podbay_sandbox::NetworkMode;
use podbay_sandbox::Project;
use podbay_sandbox::SETUP;
use podbay_sandbox::Sandbox;
use podbay_session::CommandRecord;
use podbay_session::State;
use podbay_wire::EgressEffect;
use podbay_wire::EgressRule;

/// Names of the project's top folder that are looked at for manifests.
const NAMES: usize = 4096;

/// Most bytes of a lock file that are looked at.
const LONGEST_FILE: usize = 16 << 20;

/// How long a look at the image, or at one file, may take.
const LOOK: Duration = Duration::from_secs(60);

/// What is to be installed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstallWish {
    /// Package managers by name; empty: those that the project's manifests show, and `[setup]`.
    pub ecosystems: Vec<String>,
    /// Hosts that this phase reaches besides, as rules are written.
    pub hosts: Vec<String>,
    /// Runs `[setup]` commands that ran already.
    pub again: bool,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InstallReport {
    pub steps: Vec<InstalledStep>,
    /// The rules that were in force.
    pub hosts: Vec<String>,
    pub network: TriedHosts,
    pub exit_code: u8,
}

/// One package manager, or one command of `[setup]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InstalledStep {
    /// The package manager's name, or `setup`.
    pub name: String,
    /// The command of `[setup]`.
    pub command: Option<String>,
    pub outcome: StepOutcome,
    /// Why it failed.
    pub problem: Option<String>,
    pub duration_ms: u64,
    /// What its cache holds now.
    pub bytes: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepOutcome {
    Done,
    Failed,
    /// It ran before, with the same image, lock files and commands.
    DoneBefore,
}

/// Installs a project's dependencies; `write` gets what the package managers print.
pub async fn install(
    place: &Place,
    wish: &InstallWish,
    front: &Front,
    mut write: impl FnMut(&[u8]) + Send,
) -> Result<InstallReport, Error> {
    let cancel = front.interrupt.run();
    let config = &place.config;
    check_network(config)?;
    let given = given_rules(&wish.hosts)?;
    let ground = Ground::open(place)?;
    if let Ground::Socket(_) = ground {
        return Err(Error::not_attached("an install phase (`podbay install`)"));
    }
    let bench = Bench::reach(config, &place.state, ground, cancel).await?;
    let project = bench.project()?;
    let (chosen, has_setup) = chosen(project, wish, config)?;
    bench.sweep_aside();
    let lock = bench.lock()?;
    let names: Vec<&str> = chosen.iter().map(|row| row.name.as_str()).collect();
    let record = Arc::new(Mutex::new(CommandRecord::begin(
        &place.state,
        &config.session,
        "install",
        bench.ground_text(),
        &names.join(" "),
    )));
    let phase = Phase {
        config,
        state: &place.state,
        engine: bench.engine()?,
        project,
        wish,
        cancel,
        sink: Arc::clone(&front.sink),
        chosen,
        has_setup,
        given,
    };
    let done = Box::pin(phase.run(&bench, front, &record, &mut write)).await;
    let code = done
        .as_ref()
        .map_or_else(Error::exit_code, |report| report.exit_code);
    record
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .end(code);
    bench.tell_left(&front.sink);
    lock.release();
    done
}

/// Returns the caches of a project that its sandboxes have mounted.
pub(super) async fn caches_of(
    engine: &Engine,
    project: &Project,
    config: &Config,
    cancel: &CancellationToken,
) -> Result<Vec<CacheMount>, Error> {
    let setup = sandbox::ecosystem(SETUP).filter(|_| !config.setup.commands.is_empty());
    let rows: Vec<&Ecosystem> = ecosystems_of(project).into_iter().chain(setup).collect();
    sandbox::present_caches(engine, project, &rows, cancel)
        .await
        .map_err(Error::Sandbox)
}

fn ecosystems_of(project: &Project) -> Vec<&'static Ecosystem> {
    let names: Vec<String> = project
        .names(NAMES)
        .iter()
        .map(podbay_wire::BytesPath::to_text)
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    sandbox::ecosystems_of(&names)
}

/// Returns the plan of a gateway that denies everything: which hosts the phase reaches is known
/// once the sandbox has read the project's files.
pub(super) fn closed_plan(config: &Config) -> sandbox::NetworkPlan {
    let mut config = config.clone();
    config.network.mode = Some(NetworkMode::Allowlist);
    let mut plan = network::plan(&config, false, None);
    plan.at_once = false;
    plan.rules.retain(|rule| rule.effect == EgressEffect::Deny);
    plan
}

/// Refuses what cannot reach a registry, in one line with what to do.
pub(super) fn check_network(config: &Config) -> Result<(), Error> {
    let what_is_there = "what earlier installations left in the project's caches is used as it is";
    if config.offline {
        return Err(Error::usage(
            "`offline` is set, and dependencies come from registries",
            format!("PODBAY_OFFLINE=false podbay install; without it {what_is_there}"),
        ));
    }
    if config.network.mode == Some(NetworkMode::None) {
        return Err(Error::usage(
            "`network.mode` is `none`, and dependencies come from registries",
            format!("podbay install --network allowlist; without it {what_is_there}"),
        ));
    }
    Ok(())
}

fn given_rules(hosts: &[String]) -> Result<Vec<EgressRule>, Error> {
    let mut rules = Vec::new();
    for host in hosts {
        let read = sandbox::rules_of(host, EgressEffect::Allow);
        rules.extend(read.map_err(|problem| {
            Error::usage(problem, "docs/guides/network.md says how rules are written")
        })?);
    }
    Ok(rules)
}

/// Returns which package managers run, and whether `[setup]` does.
pub(super) fn chosen(
    project: &Project,
    wish: &InstallWish,
    config: &Config,
) -> Result<(Vec<&'static Ecosystem>, bool), Error> {
    let has_commands = !config.setup.commands.is_empty();
    if wish.ecosystems.is_empty() {
        let found = ecosystems_of(project);
        if found.is_empty() && !has_commands {
            let manifests: Vec<&str> = sandbox::ecosystems()
                .iter()
                .flat_map(Ecosystem::manifests)
                .map(String::as_str)
                .collect();
            return Err(Error::usage(
                "there is nothing to install: no manifest in the project's top folder, and no `setup.commands`",
                format!("manifests are {}", manifests.join(", ")),
            ));
        }
        return Ok((found, has_commands));
    }
    let mut rows = Vec::new();
    for name in wish.ecosystems.iter().filter(|name| *name != SETUP) {
        rows.push(sandbox::ecosystem(name).ok_or_else(|| unknown_name(name))?);
    }
    let wants_setup = wish.ecosystems.iter().any(|name| name == SETUP);
    if wants_setup && !has_commands {
        return Err(Error::usage(
            "`setup.commands` is empty",
            "write them below `[setup]` in your settings; those of a project count once it is trusted: `podbay config trust`",
        ));
    }
    Ok((rows, wants_setup))
}

/// One install phase.
pub(super) struct Phase<'a> {
    pub(super) config: &'a Config,
    pub(super) state: &'a State,
    pub(super) engine: &'a Engine,
    pub(super) project: &'a Project,
    pub(super) wish: &'a InstallWish,
    pub(super) cancel: &'a CancellationToken,
    pub(super) sink: Sink,
    pub(super) chosen: Vec<&'static Ecosystem>,
    pub(super) has_setup: bool,
    pub(super) given: Vec<EgressRule>,
}

/// Its sandbox.
pub(super) struct PhaseSandbox<'a> {
    pub(super) sandbox: PhaseGuest<'a>,
    pub(super) cancel: &'a CancellationToken,
    pub(super) config: &'a Config,
    pub(super) image: String,
}

/// Who serves it.
pub(super) enum PhaseGuest<'a> {
    /// A sandbox of the command's own.
    Own(Sandbox),
    /// One that takes the place of a session's.
    Session(&'a InstallPhase),
}

impl PhaseGuest<'_> {
    fn gateway(&self) -> Option<&Gateway> {
        match self {
            Self::Own(sandbox) => sandbox.gateway(),
            Self::Session(phase) => Some(phase.gateway()),
        }
    }
}

type Write<'a> = dyn FnMut(&[u8]) + Send + 'a;

impl Phase<'_> {
    async fn run(
        &self,
        bench: &Bench,
        front: &Front,
        record: &Arc<Mutex<CommandRecord>>,
        write: &mut Write<'_>,
    ) -> Result<InstallReport, Error> {
        let (engine, project, cancel) = (self.engine, self.project, self.cancel);
        let _turn = self.turn().await?;
        let sink = Arc::clone(&self.sink);
        let progress: ProgressSink = Arc::new(move |step| sink(Kind::Progress(step).into()));
        let spec = bench.spec(&progress, cancel).await?;
        let setup = sandbox::ecosystem(SETUP).filter(|_| self.has_setup);
        let had_setup = self.had_setup().await?;
        let mut caches = caches_of(engine, project, self.config, cancel).await?;
        caches.retain(|cache| {
            !self.chosen.contains(&cache.ecosystem) && setup != Some(cache.ecosystem)
        });
        for row in self.rows() {
            let cache = sandbox::make_cache(engine, &spec, row, cancel).await;
            caches.push(cache.map_err(Error::Sandbox)?.writable());
        }
        let spec = spec
            .with_network(closed_plan(self.config))
            .with_caches(caches);
        let tried = Arc::new(Mutex::new(TriedHosts::default()));
        let (sandbox, started) = bench
            .sandbox(&spec, None, self.sink(record, &tried), cancel)
            .await?;
        sandbox.hurry_at(front.interrupt.haste());
        for message in started.warnings {
            (self.sink)(Kind::Warning { message }.into());
        }
        let guest = PhaseSandbox {
            sandbox: PhaseGuest::Own(sandbox.clone()),
            cancel,
            config: self.config,
            image: spec.image().to_owned(),
        };
        let done = Box::pin(self.steps(&guest, had_setup, write)).await;
        sandbox.close().await;
        let (mut steps, hosts) = done?;
        self.bound(&mut steps).await?;
        let network = tried.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(InstallReport {
            exit_code: code_of(&steps),
            steps,
            hosts,
            network,
        })
    }

    /// Returns the package managers that run, and what `[setup]` commands keep.
    pub(super) fn rows(&self) -> Vec<&'static Ecosystem> {
        let setup = sandbox::ecosystem(SETUP).filter(|_| self.has_setup);
        self.chosen.iter().copied().chain(setup).collect()
    }

    /// Waits until no other phase writes to the project's caches.
    pub(super) async fn turn(&self) -> Result<FileLock, Error> {
        let name = format!("install-{}", self.project.key());
        FileLock::wait(&self.state.locks(), &name, || {}, self.cancel)
            .await
            .map_err(Error::Engine)
    }

    /// Whether what `[setup]` commands left is there.
    pub(super) async fn had_setup(&self) -> Result<bool, Error> {
        let Some(row) = sandbox::ecosystem(SETUP).filter(|_| self.has_setup) else {
            return Ok(false);
        };
        let found = sandbox::present_caches(self.engine, self.project, &[row], self.cancel).await;
        found
            .map(|caches| !caches.is_empty())
            .map_err(Error::Sandbox)
    }

    /// Returns a sink that also notes attempts to reach hosts.
    fn sink(&self, record: &Arc<Mutex<CommandRecord>>, tried: &Arc<Mutex<TriedHosts>>) -> Sink {
        let (record, tried) = (Arc::clone(record), Arc::clone(tried));
        let sink = Arc::clone(&self.sink);
        Arc::new(move |event| {
            if let Kind::NetworkAttempted(attempt) = &event.kind {
                record
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .network(attempt);
                tried
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .take(attempt);
            }
            sink(event);
        })
    }

    /// Runs one step after the other; returns them and the rules that were in force.
    pub(super) async fn steps(
        &self,
        guest: &PhaseSandbox<'_>,
        had_setup: bool,
        write: &mut Write<'_>,
    ) -> Result<(Vec<InstalledStep>, Vec<String>), Error> {
        let (named, lock_hash) = self.look(guest).await?;
        let settings = guest.config.network.rules();
        let hosts = sandbox::install_hosts(&self.chosen, &named, &settings, &self.given);
        self.tell_unreached(&hosts.unreached);
        let rules: Vec<String> = hosts.rules.iter().map(sandbox::written_rule).collect();
        let gateway = guest.sandbox.gateway().ok_or(Error::Bug)?;
        gateway
            .set_rules(hosts.rules, self.cancel)
            .await
            .map_err(Error::Sandbox)?;
        let mut steps = Vec::new();
        for row in &self.chosen {
            let begun = Instant::now();
            let problem = Box::pin(guest.install(row, write)).await?;
            let bytes = guest.bytes(row).await?;
            steps.push(step(&row.name, None, problem, begun, bytes));
        }
        if self.has_setup {
            let setup = self.setup(guest, had_setup, &lock_hash, write);
            steps.extend(Box::pin(setup).await?);
        }
        Ok((steps, rules))
    }

    /// Reads the files that name registries; returns those, and a hash of the files.
    async fn look(&self, guest: &PhaseSandbox<'_>) -> Result<(Vec<NamedRegistry>, String), Error> {
        let mut named = BTreeSet::new();
        let mut hash = Sha256::new();
        let mut rows = ecosystems_of(self.project);
        let more = self.chosen.iter().filter(|row| !rows.contains(row));
        let more: Vec<&Ecosystem> = more.copied().collect();
        rows.extend(more);
        for row in rows {
            for file in &row.files {
                let Some(content) = guest.read(&file.name).await? else {
                    continue;
                };
                hash.update(file.name.as_bytes());
                hash.update(content.len().to_le_bytes());
                hash.update(&content);
                if self.chosen.contains(&row) {
                    named.extend(sandbox::named_registries(file, &content));
                }
            }
        }
        Ok((named.into_iter().collect(), hex(hash)))
    }

    fn tell_unreached(&self, unreached: &[NamedRegistry]) {
        for registry in unreached {
            let (file, place) = (&registry.file, registry.place());
            let message = format!(
                "{file} names {place}, which the install phase does not reach: a file of the project opens no host; \
                 `--allow-host {place}` does"
            );
            (self.sink)(Kind::Warning { message }.into());
        }
    }

    /// Runs the commands of `[setup]`, where they have not run like this before.
    async fn setup(
        &self,
        guest: &PhaseSandbox<'_>,
        had_setup: bool,
        lock_hash: &str,
        write: &mut Write<'_>,
    ) -> Result<Vec<InstalledStep>, Error> {
        let key = self.project.key();
        let commands = &guest.config.setup.commands;
        let mut hash = Sha256::new();
        for part in [guest.image.as_str(), lock_hash]
            .into_iter()
            .chain(commands.iter().map(String::as_str))
        {
            hash.update(part.len().to_le_bytes());
            hash.update(part.as_bytes());
        }
        let hash = hex(hash);
        let mut record = InstallRecord::read(self.state, &key);
        if had_setup && !self.wish.again && record.setup.as_deref() == Some(hash.as_str()) {
            let before = |command: &String| InstalledStep {
                outcome: StepOutcome::DoneBefore,
                ..step(SETUP, Some(command), None, Instant::now(), None)
            };
            return Ok(commands.iter().map(before).collect());
        }
        record.setup = None;
        record.write(self.state, &key)?;
        let row = sandbox::ecosystem(SETUP).ok_or(Error::Bug)?;
        let mut steps = Vec::new();
        for command in commands {
            let begun = Instant::now();
            let problem = Box::pin(guest.script(command, Vec::new(), write)).await?;
            let failed = problem.is_some();
            let bytes = guest.bytes(row).await?;
            steps.push(step(SETUP, Some(command), problem, begun, bytes));
            if failed {
                return Ok(steps);
            }
        }
        record.setup = Some(hash);
        record.write(self.state, &key)?;
        Ok(steps)
    }

    /// Notes what the caches hold, and removes those that hold too much.
    pub(super) async fn bound(&self, steps: &mut [InstalledStep]) -> Result<(), Error> {
        let (engine, project) = (self.engine, self.project);
        let most = self.config.setup.cache_size;
        let mut record = InstallRecord::read(self.state, &project.key());
        let cancel = CancellationToken::new();
        let all = sandbox::caches(engine, &cancel)
            .await
            .map_err(Error::Engine)?;
        for step in steps {
            let Some(bytes) = step.bytes else { continue };
            record.caches.insert(step.name.clone(), bytes);
            if bytes <= most.bytes() {
                continue;
            }
            let volume = all
                .iter()
                .find(|cache| cache.ecosystem == step.name && cache.is_of(project));
            if let Some(cache) = volume {
                let removed = engine.remove_volume(&cache.volume, &cancel).await;
                removed.map_err(Error::Engine)?;
            }
            record.caches.remove(&step.name);
            if step.name == SETUP {
                record.setup = None;
            }
            step.outcome = StepOutcome::Failed;
            step.problem = Some(format!(
                "its cache held {}, more than the {} of `setup.cache_size`, and was removed",
                ByteSize::new(bytes).rounded(),
                most.rounded()
            ));
            step.bytes = None;
        }
        record.write(self.state, &project.key())
    }
}

impl PhaseSandbox<'_> {
    /// Runs a package manager; returns what went wrong.
    async fn install(
        &self,
        row: &Ecosystem,
        write: &mut Write<'_>,
    ) -> Result<Option<String>, Error> {
        let probe = vec!["sh".into(), "-c".into(), OsString::from(&row.probe)];
        let (code, _) = self.program(probe, Vec::new(), LOOK, &mut |_| {}).await?;
        if code != exit_code::DONE {
            let remedy = match &row.runtime {
                Some(runtime) => format!("`--runtime {runtime}` has it"),
                None => "name one that has it: `--image REF`".to_owned(),
            };
            return Ok(Some(format!(
                "the image has no {} (`{}` ended with {code}); {remedy}",
                row.name, row.probe
            )));
        }
        let script = row.script(&self.image);
        let variables = row.install_variables(&self.image);
        Box::pin(self.script(&script, variables, write)).await
    }

    /// Runs a script of the shell; returns what went wrong.
    async fn script(
        &self,
        script: &str,
        variables: Vec<(String, String)>,
        write: &mut Write<'_>,
    ) -> Result<Option<String>, Error> {
        let argv = vec!["sh".into(), "-euc".into(), OsString::from(script)];
        let within = self.config.setup.timeout.duration();
        let (code, note) = self.program(argv, variables, within, write).await?;
        Ok((code != exit_code::DONE).then(|| match note {
            Some(note) => format!("it ended with {code}: {note}"),
            None => format!("it ended with {code}"),
        }))
    }

    /// Reads a file of the project, as far as it is looked at; `None` if there is none.
    async fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let bytes = LONGEST_FILE.to_string();
        let argv = ["head", "-c", &bytes, "--", name].map(OsString::from);
        self.output(argv.into()).await
    }

    /// Returns how much a cache holds.
    async fn bytes(&self, row: &Ecosystem) -> Result<Option<u64>, Error> {
        let argv = ["du", "-sk", &row.folder()].map(OsString::from);
        let said = self.output(argv.into()).await?.unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let kib: Option<u64> = said
            .split_whitespace()
            .next()
            .and_then(|word| word.parse().ok());
        Ok(kib.map(|kib| kib.saturating_mul(1024)))
    }

    /// Returns what a program prints that succeeds.
    async fn output(&self, argv: Vec<OsString>) -> Result<Option<Vec<u8>>, Error> {
        let mut content = Vec::new();
        let mut keep = |bytes: &[u8]| {
            let left = LONGEST_FILE.saturating_sub(content.len());
            content.extend_from_slice(&bytes[..bytes.len().min(left)]);
        };
        let (code, _) = self.program(argv, Vec::new(), LOOK, &mut keep).await?;
        Ok((code == exit_code::DONE).then_some(content))
    }

    /// Runs a program to its end; returns its code, and why it has that where the code alone does
    /// not say.
    async fn program(
        &self,
        argv: Vec<OsString>,
        environment: Vec<(String, String)>,
        timeout: Duration,
        write: &mut Write<'_>,
    ) -> Result<(u8, Option<String>), Error> {
        let cancel = self.cancel;
        let grace = self.config.sandbox.grace;
        let command = ShellCommand {
            argv,
            environment,
            timeout: Some(timeout),
            ..ShellCommand::default()
        };
        let mut program = match &self.sandbox {
            PhaseGuest::Own(sandbox) => Program::start(sandbox, command, grace, cancel).await?,
            PhaseGuest::Session(phase) => Program::start_in_phase(phase, command, grace)?,
        };
        loop {
            let update = tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    program.cancel();
                    let ending = async {
                        while !matches!(program.recv().await, ShellUpdate::Ended { .. } | ShellUpdate::Failed { .. }) {}
                    };
                    // One that does not end by then ends with its sandbox.
                    drop(tokio::time::timeout(grace.duration() + ENDING, ending).await);
                    return Err(Error::Interrupted);
                }
                update = program.recv() => update,
            };
            match update {
                ShellUpdate::Stdout(bytes) | ShellUpdate::Stderr(bytes) => write(&bytes),
                ShellUpdate::Ended { code, note } => return Ok((code, note)),
                ShellUpdate::Failed { problem } => {
                    return Ok((exit_code::SHELL_FAILED, Some(problem)));
                }
            }
        }
    }
}

pub(super) fn code_of(steps: &[InstalledStep]) -> u8 {
    if steps.iter().any(|step| step.outcome == StepOutcome::Failed) {
        exit_code::FAILED
    } else {
        exit_code::DONE
    }
}

fn step(
    name: &str,
    command: Option<&String>,
    problem: Option<String>,
    begun: Instant,
    bytes: Option<u64>,
) -> InstalledStep {
    InstalledStep {
        name: name.to_owned(),
        command: command.cloned(),
        outcome: if problem.is_some() {
            StepOutcome::Failed
        } else {
            StepOutcome::Done
        },
        problem,
        duration_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        bytes,
    }
}

fn hex(hash: Sha256) -> String {
    hash.finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_network_it_says_why_and_what_to_do() {
        let mut config = Config::default();
        assert!(check_network(&config).is_ok());
        config.network.mode = Some(NetworkMode::None);
        let error = check_network(&config).expect_err("no network");
        assert!(
            error.to_string().contains("`network.mode` is `none`")
                && error.hints().concat().contains("--network allowlist"),
            "{error}"
        );
        config.network.mode = None;
        config.offline = true;
        let error = check_network(&config).expect_err("offline");
        assert!(
            error.to_string().contains("`offline` is set")
                && error.hints().concat().contains("PODBAY_OFFLINE=false"),
            "{error}"
        );
    }
}
