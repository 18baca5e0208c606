use serde::Deserialize;
use serde::Serialize;

use crate::event::Seconds;

/// How the engine is reached: the section `[engine]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Options {
    /// Address of the engine, such as `unix:///var/run/docker.sock` or `tcp://192.0.2.7:2376`; default: `DOCKER_HOST`, else the local socket.
    pub host: Option<String>,
    /// Folder with `ca.pem`, `cert.pem` and `key.pem` for a tcp engine with TLS; default: `DOCKER_CERT_PATH` when `DOCKER_TLS_VERIFY` is set.
    pub cert_path: Option<String>,
    /// Seconds the engine may take to answer one request.
    pub timeout_s: u64,
    /// Whether images that are not here may be pulled from a registry.
    pub pull: bool,
    /// How long a registry may take to say anything; one that says nothing is taken for one that is not there.
    pub pull_timeout: Seconds,
}

impl Default for Options {
    fn default() -> Self {
        Self { host: None, cert_path: None, timeout_s: 60, pull: true, pull_timeout: Seconds::new(15) }
    }
}
