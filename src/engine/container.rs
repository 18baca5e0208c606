use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use async_recursion::async_recursion as boxed;
use bollard::models::ContainerCreateBody;
use bollard::models::HealthConfig;
use bollard::models::HostConfig;
use bollard::models::HostConfigCgroupnsModeEnum;
use bollard::models::HostConfigLogConfig;
use bollard::models::MountBindOptions;
use bollard::models::MountBindOptionsPropagationEnum;
use bollard::models::MountType;
use bollard::models::MountVolumeOptions;
use bollard::models::PortBinding;
use bollard::models::ResourcesUlimits;
use bollard::models::RestartPolicy;
use bollard::models::RestartPolicyNameEnum;
use bollard::query_parameters::CreateContainerOptionsBuilder;
use bollard::query_parameters::InspectContainerOptions;
use bollard::query_parameters::LogsOptionsBuilder;
use bollard::query_parameters::RenameContainerOptionsBuilder;
use bollard::query_parameters::StartContainerOptions;
use bollard::query_parameters::StopContainerOptionsBuilder;
use futures::StreamExt;
use tokio_util::sync::CancellationToken;

use super::Engine;
use super::Error;
use super::Labels;
use super::bounded::bounded;

/// The id of a container, or its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ContainerId(pub String);

impl ContainerId {
    /// Returns the first twelve characters of an id, as docker shows it; a name in full.
    pub fn short(&self) -> &str {
        let is_id = self.0.len() == 64 && self.0.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_id { &self.0[..12] } else { &self.0 }
    }
}

/// Everything a container is made from. What is not listed here is as restricted as the engine
/// allows.
#[derive(Clone, Debug, PartialEq)]
pub struct ContainerSpec {
    pub name: String,
    pub image: String,
    /// `UID:GID`.
    pub user: String,
    pub entrypoint: Vec<String>,
    pub env: Vec<String>,
    pub hostname: String,
    pub labels: Labels,
    pub mounts: Vec<Mount>,
    /// Path and options, as for `mount -t tmpfs -o`.
    pub tmpfs: Vec<(String, String)>,
    pub network: Network,
    /// Bytes; there is no swap beyond it.
    pub memory: u64,
    /// Billionths of a core.
    pub nano_cpus: u64,
    /// Weight against other containers when the processor is busy; 1024 is the engine's default.
    pub cpu_shares: u32,
    pub n_processes: u32,
    pub ulimits: Vec<Ulimit>,
    /// Namespaced sysctls, name and value.
    pub sysctls: Vec<(&'static str, &'static str)>,
    /// Bytes of `/dev/shm`.
    pub shm: u64,
    pub oom_score_adj: i32,
    /// The seccomp profile's JSON; `None` leaves the engine's default.
    pub seccomp: Option<String>,
    /// Whether the root file system is writable: for a container that is never started, so that a
    /// folder in it can be given an owner.
    pub writable_root: bool,
    /// Full lists: setting one replaces the engine's.
    pub masked_paths: Vec<String>,
    pub readonly_paths: Vec<String>,
    /// Whether stdin is an attached stream whose end is passed on.
    pub attached: bool,
    /// Whether the engine removes the container when it has ended.
    pub auto_remove: bool,
    pub log: Log,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ulimit {
    pub name: &'static str,
    pub limit: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mount {
    /// A folder or file of the host; it must exist.
    Bind {
        source: String,
        target: String,
        read_only: bool,
    },
    /// A file or folder inside a volume.
    OfVolume {
        source: String,
        target: String,
        read_only: bool,
    },
    /// A named volume; the image's content at the target is not copied into it.
    Volume {
        name: String,
        target: String,
        read_only: bool,
    },
    /// A new volume without a name, on the engine's disk; it begins as in `Seeded`, and is removed
    /// together with the container, also by the engine itself.
    Anonymous { target: String },
    /// A named volume; as long as it is empty, the engine copies into it what the image has at the
    /// target, with owners and modes, when it makes the container.
    Seeded {
        name: String,
        target: String,
        read_only: bool,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Network {
    /// Loopback only, with the engine's /etc/hosts and resolv.conf.
    None,
    /// Loopback only, in a namespace that the engine does not set up: without /etc/hosts and
    /// resolver. Starts in half the time.
    Bare,
    /// The engine's default bridge, with no port published: whatever the host reaches.
    Outward,
    /// The engine's default bridge, with one port published on the host's loopback; with port 0 the
    /// engine chooses.
    Published { host_port: u16, port: u16 },
}

/// What the engine does with the program's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Log {
    None,
    /// Kept by the engine up to a bound.
    Bounded,
}

/// The state of a container, as the engine reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerState {
    pub id: ContainerId,
    pub labels: Option<Labels>,
    pub running: bool,
    pub paused: bool,
    pub exit_code: Option<i64>,
    /// Whether it was killed for memory, as far as the engine knows.
    pub oom_killed: bool,
    pub started_at: String,
    pub image: String,
    /// Published ports: host port and container port.
    pub ports: Vec<(u16, u16)>,
    /// Places inside where something is mounted, each with its source on the engine's machine.
    pub mounts: Vec<(String, PathBuf)>,
    /// Its first process while it runs, as the engine's machine numbers it.
    pub pid: Option<u32>,
    /// The limits that the engine reports.
    pub limits: ReportedLimits,
    /// Paths inside that it was made to mask, and to make read-only.
    pub masked_paths: Vec<String>,
    pub readonly_paths: Vec<String>,
}

/// Limits of a container; `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReportedLimits {
    /// Bytes.
    pub memory: Option<u64>,
    pub n_processes: Option<u64>,
    /// Thousandths of a core.
    pub millicores: Option<u64>,
}

impl Engine {
    /// Creates a container. If the request is cancelled, the container is removed.
    #[boxed]
    pub async fn create(
        &self,
        spec: &ContainerSpec,
        cancel: &CancellationToken,
    ) -> Result<ContainerId, Error> {
        let options = CreateContainerOptionsBuilder::default()
            .name(&spec.name)
            .build();
        let doing = || format!("create the container `{}` from `{}`", spec.name, spec.image);
        if cancel.is_cancelled() {
            return Err(Error::Cancelled { doing: doing() });
        }
        let selinux = self.facts(cancel).await?.selinux;
        let body = body(spec, selinux);
        let mut request = std::pin::pin!(self.docker.create_container(Some(options), body));
        let error = match bounded(doing, cancel, self.timeout, request.as_mut()).await {
            Ok(made) => return Ok(ContainerId(made.id)),
            Err(error) => error,
        };
        // The engine creates it in spite of the cancellation, and it would be orphaned.
        let made = match &error {
            Error::Cancelled { .. } => tokio::select! {
                biased;
                made = tokio::time::timeout(self.timeout.min(super::clean_up::GIVEN_UP), request) => match made {
                    Ok(made) => made.ok().map(|made| made.id),
                    Err(_) => Some(spec.name.clone()),
                },
                () = self.late() => Some(spec.name.clone()),
            },
            Error::NoAnswer { .. } => Some(spec.name.clone()),
            _ => None,
        };
        if let Some(made) = made {
            self.discard_soon(&ContainerId(made)).await;
        }
        Err(error)
    }

    #[boxed]
    pub async fn start(&self, id: &ContainerId, cancel: &CancellationToken) -> Result<(), Error> {
        let doing = || format!("start the container {}", id.short());
        bounded(
            doing,
            cancel,
            self.timeout,
            self.docker
                .start_container(&id.0, None::<StartContainerOptions>),
        )
        .await
    }

    /// Asks the program to end, and kills it after `grace`.
    #[boxed]
    pub async fn stop(
        &self,
        id: &ContainerId,
        grace: Duration,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let options = StopContainerOptionsBuilder::default()
            .t(i32::try_from(grace.as_secs()).unwrap_or(10))
            .build();
        let doing = || format!("stop the container {}", id.short());
        bounded(
            doing,
            cancel,
            self.timeout + grace,
            self.docker.stop_container(&id.0, Some(options)),
        )
        .await
    }

    /// Renames it.
    #[boxed]
    pub async fn rename(
        &self,
        id: &ContainerId,
        name: &str,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let options = RenameContainerOptionsBuilder::default().name(name).build();
        let doing = || format!("name the container {} `{name}`", id.short());
        bounded(
            doing,
            cancel,
            self.timeout,
            self.docker.rename_container(&id.0, options),
        )
        .await
    }

    /// Returns the container's state; `None` if there is none of that id or name.
    #[boxed]
    pub async fn state(
        &self,
        name: &str,
        cancel: &CancellationToken,
    ) -> Result<Option<ContainerState>, Error> {
        let doing = || format!("look at the container `{name}`");
        let found = bounded(
            doing,
            cancel,
            self.timeout,
            self.docker
                .inspect_container(name, None::<InspectContainerOptions>),
        )
        .await;
        let found = match found {
            Ok(found) => found,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        let state = found.state.unwrap_or_default();
        let config = found.config.unwrap_or_default();
        let host_config = found.host_config.unwrap_or_default();
        // An engine that cannot enforce a limit warns once and reports it as 0.
        let given = |limit: Option<i64>| {
            limit
                .and_then(|limit| u64::try_from(limit).ok())
                .filter(|&limit| limit > 0)
        };
        let limits = ReportedLimits {
            memory: given(host_config.memory),
            n_processes: given(host_config.pids_limit),
            millicores: given(host_config.nano_cpus).map(|nano| nano / 1_000_000),
        };
        let ports = found
            .network_settings
            .and_then(|settings| settings.ports)
            .unwrap_or_default();
        Ok(Some(ContainerState {
            id: ContainerId(found.id.unwrap_or_default()),
            labels: Labels::from_map(&config.labels.unwrap_or_default()),
            running: state.running.unwrap_or(false),
            paused: state.paused.unwrap_or(false),
            exit_code: state.exit_code,
            oom_killed: state.oom_killed.unwrap_or(false),
            started_at: state.started_at.unwrap_or_default(),
            pid: state
                .pid
                .and_then(|pid| u32::try_from(pid).ok())
                .filter(|&pid| pid > 0),
            limits,
            masked_paths: host_config.masked_paths.unwrap_or_default(),
            readonly_paths: host_config.readonly_paths.unwrap_or_default(),
            image: found.image.unwrap_or_default(),
            ports: ports
                .iter()
                .filter_map(|(port, bindings)| published(port, bindings.as_deref()))
                .collect(),
            mounts: found
                .mounts
                .unwrap_or_default()
                .into_iter()
                .filter_map(|mount| Some((mount.destination?, mount.source?.into())))
                .collect(),
        }))
    }

    /// Returns the last lines of its output, both streams.
    #[boxed]
    pub async fn last_lines(
        &self,
        id: &ContainerId,
        lines: u32,
        cancel: &CancellationToken,
    ) -> Result<String, Error> {
        const MOST: usize = 256 * 1024;
        let options = LogsOptionsBuilder::default()
            .stdout(true)
            .stderr(true)
            .tail(&lines.to_string())
            .build();
        let mut stream = self.docker.logs(&id.0, Some(options));
        let read = async {
            let mut text = Vec::new();
            while let Some(part) = stream.next().await {
                text.extend_from_slice(&part?.into_bytes());
                if text.len() > MOST {
                    break;
                }
            }
            Ok(String::from_utf8_lossy(&text).into_owned())
        };
        bounded(
            || format!("read the log of the container {}", id.short()),
            cancel,
            self.timeout,
            read,
        )
        .await
    }

    /// Streams its output from now on, until it ends or `cancel` fires.
    pub async fn follow_log(
        &self,
        id: &ContainerId,
        lines: u32,
        mut write: impl FnMut(&[u8]),
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let options = LogsOptionsBuilder::default()
            .stdout(true)
            .stderr(true)
            .follow(true)
            .tail(&lines.to_string())
            .build();
        let mut stream = self.docker.logs(&id.0, Some(options));
        loop {
            let part = tokio::select! {
                () = cancel.cancelled() => return Ok(()),
                part = stream.next() => part,
            };
            match part {
                Some(Ok(part)) => write(&part.into_bytes()),
                Some(Err(source)) => {
                    return Err(Error::from_engine(
                        format!("follow the log of the container {}", id.short()),
                        source,
                    ));
                }
                None => return Ok(()),
            }
        }
    }
}

fn published(port: &str, bindings: Option<&[PortBinding]>) -> Option<(u16, u16)> {
    let inside = port.split('/').next()?.parse().ok()?;
    let outside = bindings?.first()?.host_port.as_deref()?.parse().ok()?;
    Some((inside, outside))
}

fn body(spec: &ContainerSpec, selinux: bool) -> ContainerCreateBody {
    let mut security = vec!["no-new-privileges:true".to_owned()];
    // A labelled container reads no file of the user's home. To give the files a label would change
    // the user's project.
    if selinux
        && spec
            .mounts
            .iter()
            .any(|mount| matches!(mount, Mount::Bind { .. }))
    {
        security.push("label=disable".to_owned());
    }
    if let Some(profile) = &spec.seccomp {
        security.push(format!("seccomp={profile}"));
    }
    let (network_mode, port_bindings, exposed_ports) = match spec.network {
        Network::None | Network::Bare => ("none", None, None),
        Network::Outward => ("bridge", None, None),
        Network::Published { host_port, port } => {
            let key = format!("{port}/tcp");
            let host_port = if host_port == 0 {
                String::new()
            } else {
                host_port.to_string()
            };
            let binding = PortBinding {
                host_ip: Some("127.0.0.1".to_owned()),
                host_port: Some(host_port),
            };
            (
                "bridge",
                Some(HashMap::from([(key.clone(), Some(vec![binding]))])),
                Some(vec![key]),
            )
        }
    };
    let host_config = HostConfig {
        memory: i64::try_from(spec.memory).ok(),
        memory_swap: i64::try_from(spec.memory).ok(),
        nano_cpus: i64::try_from(spec.nano_cpus).ok(),
        cpu_shares: Some(i64::from(spec.cpu_shares)),
        pids_limit: Some(i64::from(spec.n_processes)),
        ulimits: Some(spec.ulimits.iter().map(ulimit).collect()),
        sysctls: Some(
            spec.sysctls
                .iter()
                .map(|&(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        ),
        shm_size: i64::try_from(spec.shm).ok(),
        oom_score_adj: Some(i64::from(spec.oom_score_adj)),
        log_config: Some(log_config(spec.log)),
        network_mode: Some(network_mode.to_owned()),
        port_bindings,
        restart_policy: Some(RestartPolicy {
            name: Some(RestartPolicyNameEnum::NO),
            maximum_retry_count: None,
        }),
        auto_remove: Some(spec.auto_remove),
        mounts: Some(
            spec.mounts
                .iter()
                .map(|mount| mount_of(mount, &spec.labels))
                .collect(),
        ),
        tmpfs: Some(spec.tmpfs.iter().cloned().collect()),
        cap_add: Some(Vec::new()),
        cap_drop: Some(vec!["ALL".to_owned()]),
        cgroupns_mode: Some(HostConfigCgroupnsModeEnum::PRIVATE),
        ipc_mode: Some("private".to_owned()),
        privileged: Some(false),
        readonly_rootfs: Some(!spec.writable_root),
        security_opt: Some(security),
        init: Some(false),
        devices: Some(Vec::new()),
        device_requests: Some(Vec::new()),
        device_cgroup_rules: Some(Vec::new()),
        group_add: Some(Vec::new()),
        masked_paths: Some(spec.masked_paths.clone()),
        readonly_paths: Some(spec.readonly_paths.clone()),
        ..HostConfig::default()
    };
    ContainerCreateBody {
        image: Some(spec.image.clone()),
        user: Some(spec.user.clone()),
        hostname: Some(spec.hostname.clone()),
        entrypoint: Some(spec.entrypoint.clone()),
        cmd: Some(Vec::new()),
        env: Some(spec.env.clone()),
        // The engine would create a working folder inside a bind mount on the host, as root.
        working_dir: Some("/".to_owned()),
        healthcheck: Some(HealthConfig {
            test: Some(vec!["NONE".to_owned()]),
            ..HealthConfig::default()
        }),
        stop_signal: Some("SIGTERM".to_owned()),
        stop_timeout: Some(3),
        tty: Some(false),
        open_stdin: Some(spec.attached),
        stdin_once: Some(spec.attached),
        attach_stdin: Some(spec.attached),
        attach_stdout: Some(spec.attached),
        attach_stderr: Some(spec.attached),
        exposed_ports,
        network_disabled: Some(spec.network == Network::Bare),
        labels: Some(spec.labels.to_map()),
        host_config: Some(host_config),
        ..ContainerCreateBody::default()
    }
}

fn ulimit(ulimit: &Ulimit) -> ResourcesUlimits {
    let limit = i64::try_from(ulimit.limit).ok();
    ResourcesUlimits {
        name: Some(ulimit.name.to_owned()),
        soft: limit,
        hard: limit,
    }
}

fn log_config(log: Log) -> HostConfigLogConfig {
    match log {
        Log::None => HostConfigLogConfig {
            typ: Some("none".to_owned()),
            config: None,
        },
        Log::Bounded => HostConfigLogConfig {
            typ: Some("json-file".to_owned()),
            config: Some(HashMap::from([
                ("max-size".to_owned(), "4m".to_owned()),
                ("max-file".to_owned(), "2".to_owned()),
            ])),
        },
    }
}

fn mount_of(mount: &Mount, labels: &Labels) -> bollard::models::Mount {
    match mount {
        Mount::Bind {
            source,
            target,
            read_only,
        } => bind(
            source,
            target,
            *read_only,
            MountBindOptionsPropagationEnum::RPRIVATE,
        ),
        // For a file in its own folder the engine accepts no private propagation.
        Mount::OfVolume {
            source,
            target,
            read_only,
        } => bind(
            source,
            target,
            *read_only,
            MountBindOptionsPropagationEnum::RSLAVE,
        ),
        Mount::Volume {
            name,
            target,
            read_only,
        } => volume(Some(name), target, *read_only, true, None),
        Mount::Seeded {
            name,
            target,
            read_only,
        } => volume(Some(name), target, *read_only, false, None),
        Mount::Anonymous { target } => volume(None, target, false, false, Some(labels.to_map())),
    }
}

fn volume(
    name: Option<&str>,
    target: &str,
    read_only: bool,
    no_copy: bool,
    labels: Option<HashMap<String, String>>,
) -> bollard::models::Mount {
    bollard::models::Mount {
        typ: Some(MountType::VOLUME),
        source: name.map(ToOwned::to_owned),
        target: Some(target.to_owned()),
        read_only: Some(read_only),
        volume_options: Some(MountVolumeOptions {
            no_copy: Some(no_copy),
            labels,
            ..MountVolumeOptions::default()
        }),
        ..bollard::models::Mount::default()
    }
}

fn bind(
    source: &str,
    target: &str,
    read_only: bool,
    propagation: MountBindOptionsPropagationEnum,
) -> bollard::models::Mount {
    bollard::models::Mount {
        typ: Some(MountType::BIND),
        source: Some(source.to_owned()),
        target: Some(target.to_owned()),
        read_only: Some(read_only),
        bind_options: Some(MountBindOptions {
            propagation: Some(propagation),
            // A mount inside the project is kept out of the sandbox; older engines would not make
            // it read-only.
            non_recursive: Some(true),
            ..MountBindOptions::default()
        }),
        ..bollard::models::Mount::default()
    }
}
