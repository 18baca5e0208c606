use serde::Serialize;
use thiserror::Error;

use super::bundle;
use podbay_agent as agent;
use podbay_config as config;
use podbay_engine as engine;
use podbay_event::RunStatus;
use podbay_inference as inference;
use podbay_llm as llm;
use podbay_policy as policy;
use podbay_sandbox as sandbox;
use podbay_session as session;

/// Everything that keeps a command from doing what it was asked, with the rooms' own errors kept
/// apart.
#[derive(Debug, Error)]
pub enum Error {
    #[error("{problem}")]
    Usage {
        problem: String,
        hint: Option<String>,
    },
    #[error("the configuration cannot be used")]
    Config(#[source] config::Error),
    #[error("a permission rule cannot be used")]
    Rule(#[source] policy::RuleError),
    #[error("{}", if .0.is_about_one() { "cannot use the session" } else { "the state folder cannot be used" })]
    Session(#[source] session::Error),
    #[error("{}", if .0.is_about_image() { "cannot use the image" } else { "the container engine cannot be used" })]
    Engine(#[source] engine::Error),
    #[error("{}", if .0.is_cut() { "it was interrupted" } else { "cannot use the sandbox" })]
    Sandbox(#[source] sandbox::Error),
    #[error("the bundle cannot be used")]
    Bundle(
        #[from]
        #[source]
        bundle::Error,
    ),
    #[error("{}", heading(.0))]
    Inference(#[source] inference::Error),
    #[error("cannot use the model")]
    Model(#[source] llm::Error),
    #[error(transparent)]
    Agent(agent::Failure),
    /// The same, where the model server is our own and its log may say why.
    #[error(transparent)]
    OwnServer(agent::Failure),
    #[error("cannot {doing}")]
    Io {
        doing: String,
        #[source]
        source: std::io::Error,
    },
    #[error("an undo or apply was interrupted; finish it before the next one")]
    Unfinished,
    #[error("the task is done, but the session's log lacks its end: {problem}")]
    LogLost { problem: String },
    #[error("cannot use the review")]
    Review {
        #[source]
        problem: Told,
    },
    #[error("some changes were not applied; they are pending as review {id}")]
    NotApplied {
        id: String,
        has_conflicts: bool,
        is_stopped: bool,
    },
    #[error("the time for the task, {seconds} s, was over before the model could begin")]
    Late { seconds: u64 },
    #[error("interrupted")]
    Interrupted,
    /// The same, in the middle of removing things.
    #[error("{}", given_up(removed, left))]
    GivenUp {
        removed: Vec<String>,
        /// Names of what is left, with what kept it from being removed.
        left: Vec<(String, String)>,
    },
    #[error("this is a bug in Podbay")]
    Bug,
}

/// Words of the keeper's that say what was wrong.
#[derive(Clone, Debug, Error)]
#[error("{0}")]
pub struct Told(pub String);

fn is_refused_key(failure: &agent::Failure) -> bool {
    matches!(failure, agent::Failure::Model(error) if error.is_refused_key())
}

fn given_up(removed: &[String], left: &[(String, String)]) -> String {
    let mut words = "interrupted".to_owned();
    if !removed.is_empty() {
        words.push_str(&format!("; removed: {}", removed.join(", ")));
    }
    for (name, problem) in left {
        words.push_str(&format!("; left: {name} ({problem})"));
    }
    words
}

/// Says what a failure of `inference` kept from being had.
fn heading(error: &inference::Error) -> &'static str {
    match error {
        inference::Error::Cancelled { .. } => "interrupted",
        error if error.is_about_server() => "cannot use the model server",
        _ => "cannot use the model",
    }
}

/// An error as the JSON result shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorReport {
    pub kind: &'static str,
    pub message: String,
    pub causes: Vec<String>,
    pub hints: Vec<String>,
}

impl Error {
    pub fn usage(problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Usage {
            problem: problem.into(),
            hint: Some(hint.into()),
        }
    }

    /// Refuses what a sandbox that Podbay did not start cannot have.
    pub fn not_attached(what: &str) -> Self {
        Self::usage(
            format!(
                "{what} is not offered with `sandbox.backend = attach`: Podbay did not start that sandbox"
            ),
            "compose.yaml and `.env` say what it is like; `docker compose up -d` starts it, `docker compose down` ends it",
        )
    }

    /// Makes an error of an agent's failure. The log of a server that is not ours is not ours to
    /// show either.
    pub(super) fn of_agent(failure: agent::Failure, is_own_server: bool) -> Self {
        if is_own_server && (failure.is_of_server() || is_refused_key(&failure)) {
            Self::OwnServer(failure)
        } else {
            Self::Agent(failure)
        }
    }

    /// Makes an error of what kept the image of the model server from being had; an engine that
    /// cannot be used has none for a sandbox either.
    pub(super) fn of_server_image(error: engine::Error) -> Self {
        if error.is_about_image() {
            Self::Inference(inference::Error::of_image(error))
        } else {
            Self::Engine(error)
        }
    }

    /// Returns whether a model was named that nobody knows.
    pub fn is_unknown_model(&self) -> bool {
        matches!(self, Self::Inference(inference::Error::UnknownModel { .. }))
    }

    /// Returns the exit code that scripts depend on (`docs/cli.md`). It comes from the variant,
    /// never from the text.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage { .. }
            | Self::Config(_)
            | Self::Rule(_)
            | Self::Engine(engine::Error::Setting { .. })
            | Self::Agent(agent::Failure::NoPrice | agent::Failure::Images { .. }) => {
                exit_code::USAGE
            }
            Self::Session(error) if error.is_usage() => exit_code::USAGE,
            Self::Sandbox(error) if error.is_usage() => exit_code::USAGE,
            Self::Bundle(error) if error.is_usage() => exit_code::USAGE,
            Self::Inference(error) if error.is_usage() => exit_code::USAGE,
            Self::Model(error) if error.is_usage() => exit_code::USAGE,
            Self::Sandbox(error) if error.is_cancelled() => exit_code::INTERRUPTED,
            Self::Engine(engine::Error::Cancelled { .. })
            | Self::Model(llm::Error::Cancelled)
            | Self::Inference(inference::Error::Cancelled { .. })
            | Self::Interrupted
            | Self::GivenUp { .. } => exit_code::INTERRUPTED,
            Self::Engine(_) | Self::Sandbox(_) | Self::Agent(agent::Failure::Sandbox(_)) => {
                exit_code::NO_BOX
            }
            Self::Inference(_)
            | Self::Model(_)
            | Self::Agent(agent::Failure::Model(_))
            | Self::OwnServer(agent::Failure::Model(_)) => exit_code::NO_MODEL,
            Self::Late { .. } => exit_code::LIMIT,
            Self::NotApplied {
                is_stopped: false, ..
            } => exit_code::LEFT_OUT,
            Self::Bug => exit_code::BUG,
            Self::Bundle(_)
            | Self::Session(_)
            | Self::Unfinished
            | Self::LogLost { .. }
            | Self::Review { .. }
            | Self::NotApplied {
                is_stopped: true, ..
            }
            | Self::Agent(_)
            | Self::OwnServer(_)
            | Self::Io { .. } => exit_code::FAILED,
        }
    }

    pub fn kind(&self) -> &'static str {
        match self {
            Self::Usage { .. } | Self::Agent(agent::Failure::Images { .. }) => "usage",
            Self::Config(_) | Self::Rule(_) => "config",
            Self::Session(_) | Self::LogLost { .. } => "session",
            Self::Engine(_) => "engine",
            Self::Sandbox(_) | Self::Unfinished | Self::Agent(agent::Failure::Sandbox(_)) => {
                "sandbox"
            }
            Self::Bundle(_) => "bundle",
            Self::Review { .. } | Self::NotApplied { .. } => "review",
            Self::Inference(_) => "inference",
            Self::Model(_) | Self::Agent(_) | Self::OwnServer(_) => "model",
            Self::Io { .. } => "io",
            Self::Late { .. } => "limit",
            Self::Interrupted | Self::GivenUp { .. } => "interrupted",
            Self::Bug => "bug",
        }
    }

    /// Says what a user can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Usage { hint, .. } => hint.clone(),
            Self::Config(error) => Some(error.hint()),
            Self::Rule(_) => Some("rules look like `bash`, `bash(cargo test)` or `write_file(src/**)`".to_owned()),
            Self::Session(error) => error.hint(),
            Self::Engine(error) => error.hint(),
            Self::Sandbox(error) => error.hint(),
            Self::Bundle(error) => Some(error.hint().to_owned()),
            Self::Inference(error) => error.hint(),
            Self::Model(error) => error.hint(),
            Self::Agent(failure) => failure.hint(),
            // We made its key, so it is another server by now.
            Self::OwnServer(failure) if is_refused_key(failure) => Some(
                "another Podbay restarted the model server with other settings and another key; run again with --continue"
                    .to_owned(),
            ),
            Self::OwnServer(failure) => {
                const LOG: &str = "`podbay logs` shows what it printed last";
                Some(failure.hint().map_or_else(|| LOG.to_owned(), |hint| format!("{hint}: {LOG}")))
            }
            Self::LogLost { .. } => Some(
                "make room on that disk, or name another state folder with PODBAY_HOME; the changes in the project are made".to_owned(),
            ),
            Self::NotApplied { id, has_conflicts: true, .. } => {
                Some(format!("`podbay review diff {id}` shows it; `podbay review apply {id} --merge` puts lines together"))
            }
            Self::NotApplied { id, has_conflicts: false, .. } => Some(format!("the warnings say why; `podbay review diff {id}` shows it")),
            Self::Review { .. } => Some("`podbay review list` shows pending reviews".to_owned()),
            Self::Unfinished => Some("`podbay undo resume` finishes it, `podbay undo abandon` gives it up".to_owned()),
            Self::Late { .. } => {
                Some("give it more with --timeout, or have everything ready first, which takes what time it needs: podbay up".to_owned())
            }
            Self::Bug => Some("please report what stands above this on the error stream, with the command you ran".to_owned()),
            Self::GivenUp { left, .. } if !left.is_empty() => {
                Some("`podbay gc` continues once the engine answers; `docker rm --force NAME` removes one by hand".to_owned())
            }
            Self::Io { .. } | Self::Interrupted | Self::GivenUp { .. } => None,
        }
    }

    /// Returns all that a user can do about it, what is most likely first.
    pub fn hints(&self) -> Vec<String> {
        let mistakes = if let Self::Inference(error) = self {
            error.mistakes()
        } else {
            &[]
        };
        self.hint()
            .into_iter()
            .chain(
                mistakes
                    .iter()
                    .map(|mistake| format!("in your own list of models: {mistake}")),
            )
            .collect()
    }

    /// Returns the chain of causes below this one, each said once.
    pub fn causes(&self) -> Vec<String> {
        let mut causes: Vec<String> = Vec::new();
        let mut source = std::error::Error::source(self);
        while let Some(error) = source {
            let text = error.to_string();
            // Some libraries repeat their cause in their own text.
            if causes.last().is_none_or(|last| !last.contains(&text)) {
                causes.push(text);
            }
            source = error.source();
        }
        causes
    }

    pub fn report(&self) -> ErrorReport {
        ErrorReport {
            kind: self.kind(),
            message: self.to_string(),
            causes: self.causes(),
            hints: self.hints(),
        }
    }

    pub fn status(&self) -> RunStatus {
        match self.exit_code() {
            exit_code::INTERRUPTED => RunStatus::Interrupted,
            exit_code::LIMIT => RunStatus::Limit,
            _ => RunStatus::Failed,
        }
    }
}

/// The exit codes; scripts depend on them, and `podbay --help` lists them.
pub mod exit_code {
    use podbay_agent::Interrupt;
    use podbay_event::RunStatus;

    /// Done.
    pub const DONE: u8 = 0;
    /// It was tried and failed.
    pub const FAILED: u8 = 1;
    /// Wrong usage or configuration.
    pub const USAGE: u8 = 2;
    /// A limit was reached.
    pub const LIMIT: u8 = 3;
    /// The last call that was not read-only was denied.
    pub const BLOCKED: u8 = 4;
    /// The sandbox could not be had.
    pub const NO_BOX: u8 = 5;
    /// The model could not be had.
    pub const NO_MODEL: u8 = 6;
    /// An apply left something out.
    pub const LEFT_OUT: u8 = 9;
    /// A bug of ours.
    pub const BUG: u8 = 70;
    /// `podbay sh`: our own failure, so that the command's codes stay its own.
    pub const SHELL_FAILED: u8 = 125;
    /// SIGHUP.
    pub const HUNG_UP: u8 = 129;
    /// Ctrl-C.
    pub const INTERRUPTED: u8 = 130;
    /// Nobody reads the output of `podbay sh` any more, as a shell reports it.
    pub const BROKEN_PIPE: u8 = 141;
    /// SIGTERM.
    pub const TERMINATED: u8 = 143;

    /// Returns the exit code of a task without an error.
    pub fn of_status(status: RunStatus) -> u8 {
        match status {
            RunStatus::Completed => DONE,
            RunStatus::Failed => FAILED,
            RunStatus::Limit => LIMIT,
            RunStatus::Blocked => BLOCKED,
            RunStatus::Interrupted => INTERRUPTED,
        }
    }

    /// Returns the exit code of what ended with `code`: that of the signal which interrupted it, if
    /// one did.
    pub fn after(interrupt: &Interrupt, code: u8) -> u8 {
        interrupt
            .exit_code()
            .filter(|_| code == INTERRUPTED)
            .unwrap_or(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podbay_agent::Interrupt;

    #[test]
    fn a_key_that_our_own_server_refuses_is_not_the_persons_to_name() {
        let failure = || {
            agent::Failure::Model(llm::Error::Unauthorized {
                code: Some(401),
                message: "Invalid API Key".to_owned(),
                key: llm::KeySource::default(),
            })
        };
        let hint = |is_own| Error::of_agent(failure(), is_own).hint().expect("a hint");
        assert!(
            hint(true).contains("another Podbay") && !hint(true).contains("--api-key-env"),
            "{}",
            hint(true)
        );
        assert!(hint(false).contains("--api-key-env"), "{}", hint(false));
        assert_eq!(
            Error::of_agent(failure(), true).exit_code(),
            exit_code::NO_MODEL
        );
    }

    #[test]
    fn whatever_was_under_way_an_interruption_has_the_code_of_its_signal() {
        let greeting = sandbox::link::Error::Cancelled {
            doing: "greet the sandbox".to_owned(),
        };
        let errors = [
            Error::Sandbox(sandbox::Error::Link(greeting)),
            Error::Sandbox(sandbox::Error::Cancelled),
            Error::Interrupted,
        ];
        for error in errors {
            for signal in [exit_code::HUNG_UP, exit_code::TERMINATED] {
                let interrupt = Interrupt::new();
                assert_eq!(
                    exit_code::after(&interrupt, error.exit_code()),
                    exit_code::INTERRUPTED,
                    "{error}"
                );
                interrupt.end_by(signal);
                assert_eq!(
                    exit_code::after(&interrupt, error.exit_code()),
                    signal,
                    "{error}"
                );
            }
            assert_eq!(error.status(), RunStatus::Interrupted);
        }
        let report = super::super::Report::failed(&Error::Bug, None, 0);
        assert_eq!(
            (report.exit_code, report.status),
            (exit_code::BUG, RunStatus::Failed),
            "a bug is no interruption"
        );
        let ended = sandbox::link::Error::Greet {
            reason: sandbox::link::Reason::EndOfStream,
        };
        assert_eq!(
            Error::Sandbox(sandbox::Error::Link(ended)).exit_code(),
            exit_code::NO_BOX
        );
    }

    #[test]
    fn of_what_was_cut_off_it_is_said_what_it_was_and_what_goes_on_with_it() {
        let gone = || sandbox::LineError::Ended {
            reason: "its container is gone".to_owned(),
        };
        for (source, code, why) in [
            (
                sandbox::LineError::Cancelled,
                exit_code::INTERRUPTED,
                "cancelled",
            ),
            (gone(), exit_code::NO_BOX, "it ended: its container is gone"),
        ] {
            let (what, again) = ("an apply".to_owned(), "podbay review apply id".to_owned());
            let report = Error::Sandbox(sandbox::Error::Cut {
                what,
                again,
                source,
            })
            .report();
            let causes = ["an apply was interrupted, and part of it may be done", why];
            assert_eq!(
                (report.message.as_str(), report.causes),
                ("it was interrupted", causes.map(str::to_owned).to_vec())
            );
            assert!(
                report.hints[0].starts_with("`podbay review apply id` finishes it; "),
                "{:?}",
                report.hints
            );
            let (what, again) = <_>::default();
            let source = if code == exit_code::NO_BOX {
                gone()
            } else {
                sandbox::LineError::Cancelled
            };
            assert_eq!(
                Error::Sandbox(sandbox::Error::Cut {
                    what,
                    again,
                    source
                })
                .exit_code(),
                code
            );
        }
    }

    #[test]
    fn the_log_is_shown_for_our_own_server_alone() {
        let failures = [
            || agent::Failure::Silent { count: 3 },
            || {
                agent::Failure::Model(llm::Error::Reported {
                    message: "no".to_owned(),
                })
            },
            || {
                let source = "reset".into();
                agent::Failure::Model(llm::Error::Connection {
                    endpoint: "unix:/s".to_owned(),
                    source,
                })
            },
        ];
        for failure in failures {
            let hint = |is_own| Error::of_agent(failure(), is_own).hint().expect("a hint");
            assert!(
                hint(true).contains("`podbay logs`") && !hint(false).contains("podbay logs"),
                "{} {}",
                hint(true),
                hint(false)
            );
            let facts = |is_own| {
                (
                    Error::of_agent(failure(), is_own).exit_code(),
                    Error::of_agent(failure(), is_own).kind(),
                )
            };
            assert_eq!(facts(true), facts(false));
        }
        let full = agent::Failure::Model(llm::Error::ContextExceeded {
            prompt: None,
            context: None,
        });
        assert!(
            !Error::of_agent(full, true)
                .hint()
                .expect("a hint")
                .contains("podbay logs"),
            "its log knows nothing of that"
        );
    }
}
