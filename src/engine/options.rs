use serde::Deserialize;
use serde::Serialize;

use podbay_event::Seconds;

/// How to reach the container engine: the section `[engine]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Options {
    /// Address of the engine, such as `unix:///var/run/docker.sock` or `tcp://192.0.2.7:2376`;
    /// default: `DOCKER_HOST`, else the Docker context, else the first usual socket that is there.
    pub host: Option<String>,
    /// Folder with `ca.pem`, `cert.pem` and `key.pem` for a tcp engine with TLS; default:
    /// `DOCKER_CERT_PATH` when `DOCKER_TLS_VERIFY` is set.
    pub cert_path: Option<String>,
    /// Time limit in seconds for one request to the engine.
    pub timeout_s: u64,
    /// Whether missing images may be pulled from a registry.
    pub pull: bool,
    /// How long a registry may take to answer; after that it counts as unreachable.
    pub pull_timeout: Seconds,
    /// Minimum age at which `podbay gc` removes the guest program of another Podbay build; one in
    /// use always stays.
    pub keep_guest: Seconds,
    /// `http://` address of the Debian archive that Podbay's own images are made from, such as a
    /// near mirror or a frozen archive; images made from another one are built anew. Not set:
    /// `DEBIAN_MIRROR`, else what this machine's apt uses.
    pub debian_mirror: Option<String>,
    /// The same for Debian's security updates. Not set: `DEBIAN_SECURITY_MIRROR`, else what this
    /// machine's apt uses.
    pub debian_security_mirror: Option<String>,
    /// Options of apt in these builds; a frozen archive needs `-o
    /// Acquire::Check-Valid-Until=false`. Not set: `APT_OPTIONS`, else the ones of this kind that
    /// this machine's apt has.
    pub apt_options: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            host: None,
            cert_path: None,
            timeout_s: 60,
            pull: true,
            pull_timeout: Seconds::new(15),
            keep_guest: Seconds::minutes(60),
            debian_mirror: None,
            debian_security_mirror: None,
            apt_options: None,
        }
    }
}
