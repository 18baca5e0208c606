//! An install phase that a session's model asks for: its sandbox gives way to one with the caches
//! writable and registries in reach, and comes back with the caches read-only.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::Error;
use super::bench::Bench;
use super::exit_code;
use super::install::InstallWish;
use super::install::InstalledStep;
use super::install::Phase;
use super::install::PhaseGuest;
use super::install::PhaseSandbox;
use super::install::StepOutcome;
use super::install::check_network;
use super::install::chosen;
use super::install::closed_plan;
use super::install::code_of;
use podbay_config::Config;
use podbay_engine::Engine;
use podbay_event::Sink;
use podbay_sandbox as sandbox;
use podbay_sandbox::Ecosystem;
use podbay_sandbox::Mark;
use podbay_sandbox::Project;
use podbay_sandbox::Sandbox;
use podbay_session::State;
use podbay_tools::Installed;
use podbay_tools::OnChunk;
use podbay_wire::message::Stream;

/// Most bytes of the end of what package managers print that are kept for the model.
const PRINTED: usize = 64 << 10;

/// Hosts that were denied and are named to the model.
const MOST_DENIED: usize = 10;

/// What installs a project's dependencies for one session.
pub(super) struct SessionInstaller {
    config: Config,
    state: State,
    engine: Engine,
    project: Project,
    sandbox: Sandbox,
    sink: Sink,
}

impl SessionInstaller {
    /// `None`: the sandbox is one that Podbay did not start.
    pub(super) fn of(bench: &Bench, sandbox: &Sandbox, sink: Sink) -> Option<Self> {
        Some(Self {
            config: bench.config.clone(),
            state: bench.state.clone(),
            engine: bench.engine().ok()?.clone(),
            project: bench.project().ok()?.clone(),
            sandbox: sandbox.clone(),
            sink,
        })
    }

    fn chosen(&self, wish: &InstallWish) -> Result<(Vec<&'static Ecosystem>, bool), Error> {
        check_network(&self.config)?;
        chosen(&self.project, wish, &self.config)
    }

    /// Says what a phase would run and reach.
    pub(super) fn plan(&self, ecosystems: &[String]) -> Result<String, String> {
        let (rows, has_setup) = self
            .chosen(&wish(ecosystems))
            .map_err(|error| told(&error))?;
        let mut parts: Vec<String> = rows
            .iter()
            .map(|row| format!("{} (`{}`)", row.name, row.summary))
            .collect();
        if has_setup {
            let commands: Vec<String> = self
                .config
                .setup
                .commands
                .iter()
                .map(|command| format!("`{command}`"))
                .collect();
            parts.push(format!(
                "your own {} of `setup.commands`",
                commands.join(", ")
            ));
        }
        let presets = sandbox::presets().iter();
        let hosts: Vec<&str> = presets
            .filter(|preset| {
                rows.iter()
                    .any(|row| row.preset.as_ref() == Some(&preset.name))
            })
            .flat_map(|preset| preset.hosts.iter().map(String::as_str))
            .collect();
        let reaching = if hosts.is_empty() {
            "no host but those of your rules that its files name".to_owned()
        } else {
            format!(
                "{}, and hosts of your rules that its files name",
                hosts.join(", ")
            )
        };
        Ok(format!(
            "{}, reaching {reaching}; code of packages runs and may change the project",
            parts.join(" and ")
        ))
    }

    /// Runs a phase. What the user was asked about is what runs: it is planned from the same words.
    pub(super) async fn install(
        &self,
        ecosystems: Vec<String>,
        mut on_chunk: OnChunk<'_>,
        cancel: &CancellationToken,
    ) -> Result<Installed, String> {
        let wish = wish(&ecosystems);
        let (rows, has_setup) = self.chosen(&wish).map_err(|error| told(&error))?;
        let phase = Phase {
            config: &self.config,
            state: &self.state,
            engine: &self.engine,
            project: &self.project,
            wish: &wish,
            cancel,
            sink: Arc::clone(&self.sink),
            chosen: rows,
            has_setup,
            given: Vec::new(),
        };
        let mut printed = VecDeque::new();
        let mut write = |bytes: &[u8]| {
            on_chunk(Stream::Stdout, bytes);
            printed.extend(bytes);
            let over = printed.len().saturating_sub(PRINTED);
            printed.drain(..over);
        };
        let done = Box::pin(self.run(&phase, &mut write)).await;
        let (steps, mut lines) = done.map_err(|error| told(&error))?;
        let mut summary: Vec<String> = steps.iter().map(words).collect();
        summary.append(&mut lines);
        Ok(Installed {
            is_ok: code_of(&steps) == exit_code::DONE,
            summary: summary.join("\n"),
            printed: printed.into(),
        })
    }

    /// Returns the steps, and what else the model must know, one line each.
    async fn run(
        &self,
        phase: &Phase<'_>,
        write: &mut (dyn FnMut(&[u8]) + Send),
    ) -> Result<(Vec<InstalledStep>, Vec<String>), Error> {
        let cancel = phase.cancel;
        let _turn = phase.turn().await?;
        let had_setup = phase.had_setup().await?;
        let plan = closed_plan(&self.config);
        let begun = self
            .sandbox
            .begin_install(&phase.rows(), plan, cancel)
            .await;
        let begun = begun.map_err(Error::Sandbox)?;
        let guest = PhaseSandbox {
            sandbox: PhaseGuest::Session(&begun),
            cancel,
            config: &self.config,
            image: begun.image().to_owned(),
        };
        let done = Box::pin(phase.steps(&guest, had_setup, write)).await;
        let denied = begun.gateway().denied_since(Mark::default()).await;
        let ended = begun.end().await;
        let done = match done {
            Ok((mut steps, _)) => phase.bound(&mut steps).await.map(|()| steps),
            Err(error) => Err(error),
        };
        // Also after a failure: the session continues.
        let background = ended.resume(cancel).await;
        let steps = done?;
        let background = background.map_err(Error::Sandbox)?;
        let mut lines: Vec<String> = denied
            .iter()
            .take(MOST_DENIED)
            .map(|host| {
                let name = host.host.replace(char::is_control, " ");
                let port = host.port;
                format!(
                    "network: the install phase does not reach {name}:{port}; the user lets it with `--allow-host {name}:{port}` or `network.allow`, where a file of \
                     the project names it as a registry"
                )
            })
            .collect();
        lines.push(
            "You work in a new sandbox, with the project as it was and what was installed."
                .to_owned(),
        );
        if !background.is_empty() {
            lines.push(format!(
                "These background commands ended with the sandbox before: {}.",
                background.join(", ")
            ));
        }
        Ok((steps, lines))
    }
}

fn wish(ecosystems: &[String]) -> InstallWish {
    InstallWish {
        ecosystems: ecosystems.to_vec(),
        ..InstallWish::default()
    }
}

/// Returns an error with its causes and remedies in one line.
pub(super) fn told(error: &Error) -> String {
    let mut words = error.to_string();
    for cause in error.causes() {
        words.push_str(&format!(": {cause}"));
    }
    for hint in error.hints() {
        words.push_str(&format!("; the user can: {hint}"));
    }
    words
}

fn words(step: &InstalledStep) -> String {
    let what = match &step.command {
        Some(command) => format!("{} `{command}`", step.name),
        None => step.name.clone(),
    };
    match (step.outcome, &step.problem) {
        (StepOutcome::Done, _) => format!("{what}: done"),
        (StepOutcome::DoneBefore, _) => format!("{what}: it ran before"),
        (StepOutcome::Failed, Some(problem)) => format!("{what}: failed: {problem}"),
        (StepOutcome::Failed, None) => format!("{what}: failed"),
    }
}
