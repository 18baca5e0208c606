use std::io::ErrorKind;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_recursion::async_recursion as boxed;
use bollard::ClientVersion;
use bollard::Docker;
use serde::Deserialize;
use serde::Serialize;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::Error;
use super::Options;
use super::address::Address;
use super::address::ChosenAddress;
use super::clean_up::Shutdown;
use super::details::Component;
use super::kept_facts::KeptFacts;
use super::tcp;

/// Oldest API version that is known to work: Docker 20.10.
const OLDEST: ClientVersion = ClientVersion {
    major_version: 1,
    minor_version: 41,
};

/// What Podman calls itself among the programs that it consists of.
const PODMAN: &str = "Podman Engine";

/// A connection to one container engine. Cloning it is cheap.
#[derive(Clone)]
pub struct Engine {
    pub(super) docker: Docker,
    pub(super) timeout: Duration,
    pub(super) ending: Arc<Shutdown>,
    address: Arc<ChosenAddress>,
    facts: Arc<OnceCell<Facts>>,
    kept: Option<Arc<KeptFacts>>,
}

/// Facts about the engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    pub address: String,
    /// What names this engine: a setting, a variable, a Docker context, a usual socket.
    pub named_by: String,
    /// Usual sockets of other engines, where nothing names one.
    pub others: Vec<String>,
    pub version: String,
    pub api: String,
    /// Whether it is reached by a socket on this machine.
    pub local: bool,
    /// Whether it runs in a virtual machine (Docker Desktop).
    pub desktop: bool,
    pub rootless: bool,
    /// Whether user ids in containers are remapped (`userns-remap`).
    pub userns: bool,
    /// Whether it labels containers for `SELinux` (`--selinux-enabled`).
    pub selinux: bool,
    /// The cgroup version, 1 or 2.
    pub cgroup: u8,
    /// Storage driver.
    pub storage: String,
    /// Whether it uses containerd's image store, which has other image ids.
    pub containerd_images: bool,
    /// Where images and volumes are stored, on the engine's machine.
    pub root: PathBuf,
    /// Memory of the engine's machine in bytes.
    pub memory: u64,
    pub n_cpus: u32,
    /// Limits that the kernel or the engine cannot enforce, in the engine's words.
    pub warnings: Vec<String>,
    /// Its platform, such as `Docker Desktop 4.44.3 (202357)`; often empty.
    pub platform: String,
    /// Architecture of its machine, as images name it: `amd64`, `arm64`.
    pub architecture: String,
    /// The programs it consists of.
    pub components: Vec<Component>,
}

impl Facts {
    /// Returns the facts of an ordinary engine of this machine, for tests.
    #[doc(hidden)]
    pub fn plain() -> Self {
        Self {
            address: "unix:///run/docker.sock".to_owned(),
            named_by: "the usual socket of Docker".to_owned(),
            others: Vec::new(),
            version: "29.5.1".to_owned(),
            api: "1.52".to_owned(),
            local: true,
            desktop: false,
            rootless: false,
            userns: false,
            selinux: false,
            cgroup: 2,
            storage: "overlay2".to_owned(),
            containerd_images: false,
            root: "/".into(),
            memory: 0,
            n_cpus: 2,
            warnings: Vec::new(),
            platform: String::new(),
            architecture: "amd64".to_owned(),
            components: Vec::new(),
        }
    }
}

impl Engine {
    /// Connects to the engine and requests its facts, so that problems show at once.
    #[boxed]
    pub async fn connect(options: &Options, cancel: &CancellationToken) -> Result<Self, Error> {
        let engine = Self::open(options, cancel).await?;
        engine.facts(cancel).await?;
        Ok(engine)
    }

    /// Connects to the engine. Once `cancel` has fired, clean-up has little time. For callers that
    /// have other requests to make during [`Engine::facts`], the slowest one.
    #[boxed]
    pub async fn open(options: &Options, cancel: &CancellationToken) -> Result<Self, Error> {
        let chosen = ChosenAddress::find(options, |name| std::env::var(name).ok())?;
        let timeout = Duration::from_secs(options.timeout_s.max(1));
        let opening = async {
            match &chosen.address {
                Address::Socket(path) => open_socket(path, &chosen, timeout).await,
                Address::Tcp {
                    host,
                    port,
                    certificates,
                } => open_tcp(host, *port, certificates.as_deref(), &chosen, timeout).await,
            }
        };
        let docker = tokio::select! {
            () = cancel.cancelled() => return Err(cancelled()),
            docker = opening => docker?,
        };
        let ending = Arc::new(Shutdown::new(cancel));
        Ok(Self {
            docker,
            timeout,
            ending,
            address: Arc::new(chosen),
            facts: Arc::default(),
            kept: None,
        })
    }

    /// Has the facts of an engine of this machine kept in a folder for a while, for callers whom a
    /// runtime that was updated since does not matter.
    #[must_use]
    pub fn keeping_facts_in(mut self, folder: &Path) -> Self {
        if let Address::Socket(socket) = &self.address.address {
            self.kept = KeptFacts::of(socket, folder).map(Arc::new);
        }
        self
    }

    /// Returns the engine's facts. Requested once, which also negotiates the API version.
    pub async fn facts(&self, cancel: &CancellationToken) -> Result<&Facts, Error> {
        self.facts
            .get_or_try_init(|| async {
                let kept = self.kept.as_ref();
                if let Some(facts) = kept.and_then(|kept| kept.load()) {
                    return Ok(Facts {
                        named_by: self.address.named_by.clone(),
                        others: self.address.others.clone(),
                        ..facts
                    });
                }
                let facts = self.ask(cancel).await?;
                if let Some(kept) = kept {
                    kept.save(&facts);
                }
                Ok(facts)
            })
            .await
    }

    async fn ask(&self, cancel: &CancellationToken) -> Result<Facts, Error> {
        let address = self.address.as_ref();
        // The first request has a shorter timeout, since it shows whether the engine is reachable.
        let within = self.timeout.min(Duration::from_secs(10));
        let exchange = async {
            // The two are independent, and no request names an API version.
            let (version, info) = tokio::join!(self.docker.version(), self.docker.info());
            Ok::<_, bollard::errors::Error>((version?, info))
        };
        let outcome = tokio::select! {
            () = cancel.cancelled() => return Err(cancelled()),
            outcome = tokio::time::timeout(within, exchange) => outcome,
        };
        let (version, info) = match outcome {
            Ok(Ok(found)) => found,
            Ok(Err(source)) => return Err(explain(address, source, within)),
            Err(_) => {
                return Err(Error::NoAnswer {
                    doing: format!("say its version (at {address})"),
                    within,
                });
            }
        };
        let components: Vec<Component> = version
            .components
            .unwrap_or_default()
            .into_iter()
            .map(Component::from)
            .collect();
        if let Some(podman) = components.iter().find(|part| part.name == PODMAN) {
            return Err(Error::Podman {
                address: address.to_string(),
                version: podman.version.clone(),
            });
        }
        let theirs = version.api_version.unwrap_or_default();
        let agreed = agreed(&theirs, self.docker.client_version()).ok_or_else(|| {
            explain(
                address,
                bollard::errors::Error::APIVersionParseError {},
                within,
            )
        })?;
        let api = agreed.to_string();
        if agreed < OLDEST {
            return Err(Error::TooOld {
                address: address.to_string(),
                found: api,
                needed: "1.41",
            });
        }
        let info = info.map_err(|source| explain(address, source, within))?;
        let options = info.security_options.unwrap_or_default();
        let has = |name: &str| {
            options
                .iter()
                .any(|option| option.split(',').any(|part| part == format!("name={name}")))
        };
        Ok(Facts {
            address: address.address.to_string(),
            named_by: self.address.named_by.clone(),
            others: self.address.others.clone(),
            version: info.server_version.unwrap_or_default(),
            api,
            local: address.address.is_local(),
            desktop: info
                .operating_system
                .as_deref()
                .is_some_and(|name| name.contains("Docker Desktop")),
            rootless: has("rootless"),
            userns: has("userns"),
            selinux: has("selinux"),
            cgroup: info
                .cgroup_version
                .map_or(1, |version| if version.to_string() == "2" { 2 } else { 1 }),
            storage: info.driver.unwrap_or_default(),
            containerd_images: is_snapshotter(&info.driver_status.unwrap_or_default()),
            root: PathBuf::from(info.docker_root_dir.unwrap_or_default()),
            memory: info
                .mem_total
                .and_then(|bytes| u64::try_from(bytes).ok())
                .unwrap_or(0),
            n_cpus: info
                .ncpu
                .and_then(|cpus| u32::try_from(cpus).ok())
                .unwrap_or(1),
            warnings: info.warnings.unwrap_or_default(),
            platform: version
                .platform
                .map(|platform| platform.name)
                .unwrap_or_default(),
            architecture: version.arch.unwrap_or_default(),
            components,
        })
    }
}

/// Returns the newest API version that both sides support; `None` if the engine's is malformed.
fn agreed(theirs: &str, ours: ClientVersion) -> Option<ClientVersion> {
    let (major, minor) = theirs.split_once('.')?;
    let theirs = ClientVersion {
        major_version: major.parse().ok()?,
        minor_version: minor.parse().ok()?,
    };
    Some(if theirs < ours { theirs } else { ours })
}

fn cancelled() -> Error {
    Error::Cancelled {
        doing: "connect to the engine".to_owned(),
    }
}

async fn open_socket(
    path: &Path,
    address: &ChosenAddress,
    timeout: Duration,
) -> Result<Docker, Error> {
    let text = path.to_str().ok_or_else(|| Error::BadAddress {
        address: address.to_string(),
        problem: "the socket's path is not UTF-8".to_owned(),
    })?;
    // A plain connect returns the cause, which the HTTP client hides. It is non-blocking: where a
    // stopped engine has a full queue, an ordinary one would block forever.
    match tokio::net::UnixStream::connect(path).await {
        Ok(_) => {}
        Err(source) => return Err(unreachable(address, source)),
    }
    Docker::connect_with_socket(text, timeout.as_secs(), bollard::API_DEFAULT_VERSION)
        .map_err(|source| explain(address, source, timeout))
}

async fn open_tcp(
    host: &str,
    port: u16,
    certificates: Option<&Path>,
    address: &ChosenAddress,
    timeout: Duration,
) -> Result<Docker, Error> {
    match tokio::time::timeout(
        timeout.min(Duration::from_secs(10)),
        tcp::connect(host, port),
    )
    .await
    {
        Ok(Ok(_)) => {}
        Ok(Err(source)) => return Err(unreachable(address, source)),
        Err(_) => {
            return Err(unreachable(
                address,
                std::io::Error::from(ErrorKind::TimedOut),
            ));
        }
    }
    tcp::open(host, port, certificates, timeout).map_err(|source| Error::Tls {
        address: address.to_string(),
        source,
    })
}

fn unreachable(address: &ChosenAddress, source: std::io::Error) -> Error {
    let address = address.to_string();
    match source.kind() {
        ErrorKind::NotFound => Error::NoSocket { address },
        ErrorKind::PermissionDenied => Error::PermissionDenied { address },
        ErrorKind::ConnectionRefused => Error::Refused { address },
        _ => Error::Unreachable { address, source },
    }
}

/// Finds the cause of a failed first request.
fn explain(address: &ChosenAddress, source: bollard::errors::Error, within: Duration) -> Error {
    use bollard::errors::Error as Cause;
    let text = address.to_string();
    match source {
        Cause::SocketNotFoundError(_) => Error::NoSocket { address: text },
        // An engine that refuses our oldest request names the API it requires.
        Cause::DockerResponseServerError {
            status_code: 400,
            message,
        } if message.contains("API") || message.contains("version") => Error::TooOld {
            address: text,
            found: message,
            needed: "1.41",
        },
        Cause::RequestTimeoutError => Error::NoAnswer {
            doing: format!("say its version (at {text})"),
            within,
        },
        other
            if matches!(
                address.address,
                Address::Tcp {
                    certificates: Some(_),
                    ..
                }
            ) && format!("{other:?}").contains("ertificate") =>
        {
            Error::Tls {
                address: text,
                source: Box::new(other),
            }
        }
        other => Error::NotAnEngine {
            address: text,
            source: Box::new(other),
        },
    }
}

/// Returns whether a storage driver's status is that of containerd's image store. The driver's name
/// does not tell: `fuse-overlayfs` and `overlayfs` are snapshotters there, and the engine's own
/// driver has a similar name.
fn is_snapshotter(status: &[Vec<String>]) -> bool {
    status.iter().any(|pair| matches!(&pair[..], [name, value] if name == "driver-type" && value.starts_with("io.containerd.snapshotter")))
}

#[cfg(test)]
mod tests {
    use super::ClientVersion;
    use super::OLDEST;
    use super::agreed;
    use super::is_snapshotter;

    #[test]
    fn the_older_api_version_is_negotiated() {
        let ours = ClientVersion {
            major_version: 1,
            minor_version: 52,
        };
        let check = |theirs: &str| agreed(theirs, ours).map(|version| version.to_string());
        assert_eq!(
            [check("1.41"), check("1.60"), check("2.0")],
            [
                Some("1.41".into()),
                Some("1.52".into()),
                Some("1.52".into())
            ]
        );
        for odd in ["", "1", "1.x", "-1.41", "1.41.2"] {
            assert_eq!(check(odd), None, "{odd}");
        }
        assert!(agreed("1.40", ours).is_some_and(|version| version < OLDEST));
    }

    #[track_caller]
    fn check(status: &[(&str, &str)], expected: bool) {
        let status: Vec<Vec<String>> = status
            .iter()
            .map(|(name, value)| vec![(*name).to_owned(), (*value).to_owned()])
            .collect();
        assert_eq!(is_snapshotter(&status), expected);
    }

    #[test]
    fn containerds_image_store_is_recognized_by_its_type() {
        check(&[("driver-type", "io.containerd.snapshotter.v1")], true);
        check(
            &[("Backing Filesystem", "extfs"), ("Supports d_type", "true")],
            false,
        );
        check(&[("driver-type", "other")], false);
        check(&[], false);
        assert!(!is_snapshotter(&[
            Vec::new(),
            vec!["driver-type".to_owned()]
        ]));
    }
}
