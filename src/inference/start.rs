//! Starts a model server: creates its container, waits until it answers, and explains why it did
//! not.

use std::net::Ipv4Addr;
use std::net::TcpListener;
use std::time::Duration;
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::Error;
use super::Health;
use super::ModelServer;
use super::atomic_file;
use super::health::Probe;
use super::limit_check;
use super::paths::SOCKET;
use super::plan::Plan;
use super::server::ANSWER;
use super::server::Sources;
use podbay_engine as engine;
use podbay_engine::ContainerId;
use podbay_engine::ContainerState;
use podbay_engine::Network;
use podbay_event::Secret;
use podbay_sandbox as sandbox;
use podbay_sandbox::Astray;

/// Pause between two checks of a server that starts.
const PAUSE: Duration = Duration::from_millis(50);

/// Lines of its log in the error of a failed start.
const LOG_LINES: u32 = 15;

/// A server that was just started.
pub(super) struct Started {
    pub(super) state: ContainerState,
    pub(super) key: Secret,
    pub(super) warnings: Vec<String>,
}

impl ModelServer {
    pub(super) async fn start(
        &self,
        plan: &Plan,
        sources: &Sources,
        show: &impl Fn(&str, bool),
        cancel: &CancellationToken,
    ) -> Result<Started, Error> {
        self.remove(|| show("ending the one with other settings", false), cancel)
            .await?;
        let (uid, gid) = self.paths.user()?;
        let key = self.paths.write_key((uid, gid))?;
        let mut container = plan.container.clone();
        match container.network {
            Network::None | Network::Bare => {
                // llama.cpp does not start if a file has its socket's name.
                atomic_file::remove(&self.paths.socket_folder().join(SOCKET))?;
            }
            Network::Outward => {}
            Network::Published { host_port, port } => {
                let is_free = TcpListener::bind((Ipv4Addr::LOCALHOST, host_port)).is_ok();
                container.network = Network::Published {
                    host_port: if is_free { host_port } else { 0 },
                    port,
                };
            }
        }
        show("", false);
        for (path, identity) in sources {
            let moved = |Astray { at, problem }| Error::Moved {
                path: path.clone(),
                at,
                problem,
            };
            sandbox::walk(path, *identity).map_err(moved)?;
        }
        let id = self
            .engine
            .create(&container, cancel)
            .await
            .map_err(Error::engine("make the model server's container"))?;
        let started = async {
            self.engine
                .start(&id, cancel)
                .await
                .map_err(|error| match error {
                    engine::Error::Answer { ref message, .. }
                        if message.contains("executable file not found")
                            || message.contains("no such file") =>
                    {
                        let problem = format!(
                            "the image `{}` has no program `{}`",
                            self.options.image_name(),
                            self.options.program
                        );
                        Error::Setting {
                            key: "inference.program",
                            problem,
                        }
                    }
                    error => Error::engine("start the model server")(error),
                })?;
            let gone = || Error::NotStarted {
                problem: "it was removed".to_owned(),
                log: String::new(),
            };
            // The engine chooses the port when the container starts.
            let state = self.container(cancel).await?.ok_or_else(gone)?;
            let probe = Probe::new(self.endpoint(&state), key.clone())?;
            self.wait(
                &id,
                &probe,
                self.options.start_timeout.duration(),
                show,
                cancel,
            )
            .await?;
            let warnings = limit_check::missing(&container, &state);
            Ok(Started {
                state,
                key,
                warnings,
            })
        };
        match started.await {
            Ok(started) => Ok(started),
            Err(error) => {
                self.engine.discard(&id).await;
                Err(error)
            }
        }
    }

    /// Waits until the server is ready: for `inference.start_timeout` while it loads, and for
    /// `silence` without an answer.
    pub(super) async fn wait(
        &self,
        id: &ContainerId,
        probe: &Probe,
        silence: Duration,
        show: &impl Fn(&str, bool),
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let within = self.options.start_timeout.duration();
        let began = Instant::now();
        let (mut heard_at, mut looked_at) = (began, began);
        loop {
            match cancelled(cancel, probe.ask(ANSWER)).await? {
                Health::Ready => return Ok(()),
                Health::Loading => {
                    heard_at = Instant::now();
                    show(
                        &format!("loading the model, {} s", began.elapsed().as_secs()),
                        false,
                    );
                }
                Health::NoAnswer(problem) => {
                    tracing::trace!(problem, "the model server is not there yet");
                }
            }
            if looked_at.elapsed() > Duration::from_millis(250) {
                looked_at = Instant::now();
                let state = self
                    .engine
                    .state(&id.0, cancel)
                    .await
                    .map_err(Error::engine("look at the model server"))?;
                if state.as_ref().is_none_or(|state| !state.running) {
                    return Err(Error::NotStarted {
                        problem: ending(state.as_ref()),
                        log: self.log(id).await,
                    });
                }
            }
            if began.elapsed() > within || heard_at.elapsed() > silence {
                return Err(Error::TooSlow {
                    within: began.elapsed(),
                    log: self.log(id).await,
                });
            }
            cancelled(cancel, tokio::time::sleep(PAUSE)).await?;
        }
    }

    async fn log(&self, id: &ContainerId) -> String {
        let text = self
            .engine
            .last_lines(id, LOG_LINES, &CancellationToken::new())
            .await;
        let text = text.unwrap_or_else(|error| error.to_string());
        // The log is untrusted: the server reads model files from anywhere.
        let clean = |line: &str| {
            line.chars()
                .filter(|c| !c.is_control())
                .take(300)
                .collect::<String>()
        };
        text.lines()
            .map(|line| format!("  {}", clean(line)))
            .collect::<Vec<_>>()
            .join("\n")
    }
}

pub(super) async fn cancelled<T>(
    cancel: &CancellationToken,
    future: impl Future<Output = T>,
) -> Result<T, Error> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(Error::Cancelled { doing: "wait for the model server".to_owned() }),
        value = future => Ok(value),
    }
}

pub(super) fn ending(state: Option<&ContainerState>) -> String {
    match state {
        None => "it was removed".to_owned(),
        Some(state) if state.oom_killed => "it exceeded its memory limit".to_owned(),
        Some(state) => match state.exit_code {
            Some(137) => {
                "it was killed, most likely because it exceeded its memory limit".to_owned()
            }
            Some(132) => "it uses instructions that this processor does not have".to_owned(),
            Some(code) => format!("its exit code was {code}"),
            None => "it gave no exit code".to_owned(),
        },
    }
}
