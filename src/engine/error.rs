use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

/// Why a request to the engine failed.
#[derive(Debug, Error)]
pub enum Error {
    #[error("no container engine answers at {address}: there is no such socket")]
    NoSocket { address: String },
    #[error("this user may not use the container engine at {address}")]
    PermissionDenied { address: String },
    #[error("no container engine answers at {address}: the connection was refused")]
    Refused { address: String },
    #[error("no container engine answers at {address}")]
    Unreachable {
        address: String,
        #[source]
        source: std::io::Error,
    },
    #[error("the engine address `{address}` cannot be used: {problem}")]
    BadAddress { address: String, problem: String },
    #[error("the Docker context `{name}`, which {named_by} names, cannot be used: {problem}")]
    Context {
        name: String,
        named_by: String,
        problem: String,
    },
    #[error("the settings of Docker's command line in {} cannot be read: {problem}", path.display())]
    CliConfig { path: PathBuf, problem: String },
    #[error("the secure connection to the engine at {address} failed")]
    Tls {
        address: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("what answers at {address} is not a container engine")]
    NotAnEngine {
        address: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error(
        "the engine at {address} speaks API {found}; Podbay needs {needed} (Docker 20.10) or newer"
    )]
    TooOld {
        address: String,
        found: String,
        needed: &'static str,
    },
    #[error(
        "the engine at {address} is Podman {version}, which makes containers without the read-only and masked paths that Podbay asks for: commands \
         could write the project's `.git` and read masked files"
    )]
    Podman { address: String, version: String },
    #[error("the engine did not answer within {} s while asked to {doing}", within.as_secs())]
    NoAnswer { doing: String, within: Duration },
    #[error("{doing}: the engine reported success, but it still exists after {} s", within.as_secs())]
    Stays { doing: String, within: Duration },
    #[error("{doing}: cancelled")]
    Cancelled { doing: String },
    #[error("{doing}: not found")]
    NotFound { doing: String, message: String },
    #[error("{doing}: no space left on the engine's disk")]
    NoSpace { doing: String, message: String },
    #[error("{doing}: the engine refused ({status}): {message}")]
    Answer {
        doing: String,
        status: u16,
        message: String,
    },
    #[error("{doing}")]
    Lost {
        doing: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("building the image `{image}` failed: {message}")]
    Build { image: String, message: String },
    #[error("pulling the image `{image}` failed: {message}")]
    Pull { image: String, message: String },
    #[error("the image `{image}` is not here, and {problem}")]
    NoImage { image: String, problem: String },
    #[error("the image `{image}` {}, and `offline` is set", if *is_outdated { "would have to be built" } else { "is not here" })]
    Offline {
        image: String,
        is_own: bool,
        is_outdated: bool,
    },
    #[error("there is no base image of Debian {suite}: {problem}")]
    NoBase { suite: String, problem: String },
    #[error("making a base image of Debian {suite} needs programs that are not on this machine: {}", packages.join(", "))]
    MissingTools {
        suite: String,
        packages: Vec<String>,
    },
    #[error("the setting `{key}` cannot be used: {problem}")]
    Setting { key: &'static str, problem: String },
    #[error("running `{program}` failed")]
    Program {
        program: &'static str,
        #[source]
        source: std::io::Error,
    },
    #[error("the lock file `{}` cannot be used", path.display())]
    Lock {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
}

impl Error {
    pub(super) fn from_engine(doing: String, source: bollard::errors::Error) -> Self {
        match source {
            bollard::errors::Error::DockerResponseServerError {
                status_code,
                message,
            } => {
                if message.contains("no space left on device") {
                    Self::NoSpace { doing, message }
                } else if status_code == 404 {
                    Self::NotFound { doing, message }
                } else {
                    Self::Answer {
                        doing,
                        status: status_code,
                        message,
                    }
                }
            }
            bollard::errors::Error::DockerStreamError { error } => Self::Answer {
                doing,
                status: 200,
                message: error,
            },
            other => Self::Lost {
                doing,
                source: Box::new(other),
            },
        }
    }

    /// Returns whether the object does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }

    /// Returns whether an image is unavailable, while the engine itself may work.
    pub fn is_about_image(&self) -> bool {
        matches!(
            self,
            Self::Build { .. }
                | Self::Pull { .. }
                | Self::NoImage { .. }
                | Self::Offline { .. }
                | Self::NoBase { .. }
                | Self::MissingTools { .. }
        )
    }

    /// Returns whether the engine is already removing the object.
    pub(super) fn is_under_way(&self) -> bool {
        matches!(self, Self::Answer { status: 409, message, .. } if message.contains("already in progress"))
    }

    /// Returns the message with its causes, on one line.
    pub fn with_causes(&self) -> String {
        let mut words = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(error) = source {
            words = format!("{words}: {error}");
            source = error.source();
        }
        words
    }

    /// Returns whether the object's state conflicts with the request, such as a removal in
    /// progress.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Answer { status: 409, .. })
    }

    /// Returns the remedy.
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            Self::NoSocket { .. } => {
                "is Docker installed and running? try `docker info`; another engine is named by a Docker context, DOCKER_HOST or `engine.host`"
            }
            Self::PermissionDenied { .. } => {
                "add yourself to the group `docker` (`sudo usermod -aG docker $USER`, then log in again), or use a rootless engine"
            }
            Self::Refused { .. } => {
                "is the engine stopped? start it (`sudo systemctl start docker`) and try `docker info`"
            }
            Self::Unreachable { .. } => {
                "check the address in DOCKER_HOST or `engine.host` and that the engine runs; try `docker info`"
            }
            Self::BadAddress { .. } => {
                "write it as unix:///path/to/socket or tcp://HOST:PORT; an engine behind ssh is reached by forwarding its socket"
            }
            Self::Context { .. } => {
                "`docker context ls` shows those that there are, and `docker context use NAME` chooses one; DOCKER_HOST or `engine.host` name an engine without a context"
            }
            Self::CliConfig { .. } => {
                "repair that file, which may name the engine; DOCKER_HOST or `engine.host` name one without it"
            }
            Self::Tls { .. } => {
                "check ca.pem, cert.pem and key.pem in DOCKER_CERT_PATH or in the Docker context, and that the engine's certificate names this host"
            }
            Self::NotAnEngine { .. } => {
                "check DOCKER_HOST: the port may belong to another program, or want TLS (DOCKER_TLS_VERIFY=1)"
            }
            Self::TooOld { .. } => "update the engine to Docker 20.10 or newer",
            Self::Podman { .. } => {
                "use Docker, which runs without root too (`dockerd-rootless-setuptool.sh install`), and name it by DOCKER_HOST, a Docker context or \
                 `engine.host` where both are there"
            }
            Self::NoAnswer { .. } => {
                "the engine hangs or is overloaded; try `docker info`, restart it, or raise `engine.timeout_s`"
            }
            Self::Stays { .. } => {
                "it may hold a process that cannot be killed; try `docker rm --force`, or restart the engine"
            }
            Self::NoSpace { .. } => {
                "free space on the engine's disk: `docker system df` shows what uses it, `podbay gc` removes leftovers of ours"
            }
            Self::Pull { .. } => {
                "check the image's name and your connection; without a registry use an image that `docker images` lists"
            }
            Self::Lost { .. } => {
                "the connection to the engine broke; did it restart? try `docker info`"
            }
            Self::NoImage { .. } => "check the name: `docker images` lists what is here",
            Self::Offline { is_own: true, .. } => {
                "bring it here with `podbay images bundle load FILE`, or unset `offline` once and run `podbay images build`"
            }
            Self::Offline { .. } => {
                "bring it here (`docker save` elsewhere, `docker load` here), or unset `offline` for this"
            }
            Self::NoBase { suite, .. } => {
                return Some(format!(
                    "pull it where a registry answers and bring it here (`docker save debian:{suite}-slim`, `docker load`), or run \
                     `podbay images build` as root: it makes one from Debian's archive"
                ));
            }
            Self::MissingTools { packages, .. } => {
                return Some(format!(
                    "install them: `sudo apt-get install -y {}`",
                    packages.join(" ")
                ));
            }
            Self::Lock { .. } => {
                "check that the state folder is yours and on a local disk; PODBAY_HOME names another"
            }
            Self::Program { .. } => {
                "check that this machine can reach Debian's archive: `apt-get update`"
            }
            Self::Build { .. } => "run `podbay images build --verbose` to see every step",
            Self::Setting { .. }
            | Self::Cancelled { .. }
            | Self::NotFound { .. }
            | Self::Answer { .. } => return None,
        };
        Some(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removal_in_progress_is_distinguished_from_a_conflict() {
        let answer = |status, message: &str| Error::Answer {
            doing: "remove it".to_owned(),
            status,
            message: message.to_owned(),
        };
        assert!(answer(409, "removal of container 0123 is already in progress").is_under_way());
        let stuck = answer(
            409,
            "You cannot remove a paused container 0123. Unpause and then stop the container",
        );
        assert!(stuck.is_conflict() && !stuck.is_under_way());
        assert!(
            !answer(
                500,
                "Could not kill running container 0123, cannot remove - already in progress"
            )
            .is_under_way()
        );
    }

    #[test]
    fn a_broken_connection_names_its_cause() {
        let source = Box::new(std::io::Error::other("the peer went away"));
        let words = Error::Lost {
            doing: "remove it".to_owned(),
            source,
        }
        .with_causes();
        assert_eq!(words, "remove it: the peer went away");
    }
}
