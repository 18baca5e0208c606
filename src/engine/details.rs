use async_recursion::async_recursion as boxed;
use serde::Deserialize;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::Engine;
use super::Error;
use super::bounded::bounded;

/// Details about an engine that a run does not need: its runtime, and the limits it can enforce.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    pub operating_system: String,
    pub kernel: String,
    /// `cgroupfs`, `systemd` or `none`.
    pub cgroup_driver: String,
    /// Security options in the engine's notation, such as `name=seccomp,profile=default`.
    pub security: Vec<String>,
    pub limits: Limits,
    /// The default runtime, such as `runc`; empty if the engine does not report it.
    pub runtime: String,
    /// The engine's clock, in RFC 3339.
    pub time: String,
}

/// A program that an engine consists of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Component {
    /// Such as `Engine`, `containerd` or `runc`.
    pub name: String,
    pub version: String,
    /// The commit or the package it was built from.
    pub build: String,
}

impl From<bollard::models::SystemVersionComponents> for Component {
    fn from(said: bollard::models::SystemVersionComponents) -> Self {
        Self {
            build: said
                .details
                .as_ref()
                .and_then(|details| details.get("GitCommit"))
                .cloned()
                .unwrap_or_default(),
            name: said.name,
            version: said.version,
        }
    }
}

/// Which limits are enforced; `None` if the engine does not report it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    pub memory: Option<bool>,
    pub swap: Option<bool>,
    pub cpu: Option<bool>,
    pub pids: Option<bool>,
}

impl Engine {
    /// Requests the details.
    #[boxed]
    pub async fn details(&self, cancel: &CancellationToken) -> Result<Details, Error> {
        let info = bounded(
            || "describe itself".to_owned(),
            cancel,
            self.timeout,
            self.docker.info(),
        )
        .await?;
        Ok(Details {
            operating_system: info.operating_system.unwrap_or_default(),
            kernel: info.kernel_version.unwrap_or_default(),
            cgroup_driver: info
                .cgroup_driver
                .map(|driver| driver.to_string())
                .unwrap_or_default(),
            security: info.security_options.unwrap_or_default(),
            limits: Limits {
                memory: info.memory_limit,
                swap: info.swap_limit,
                cpu: info.cpu_cfs_quota,
                pids: info.pids_limit,
            },
            runtime: info.default_runtime.unwrap_or_default(),
            time: info.system_time.unwrap_or_default(),
        })
    }
}
