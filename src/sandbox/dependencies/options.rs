//! How a project's dependencies are installed: the section `[setup]`.

use podbay_event::ByteSize;
use podbay_event::Seconds;
use serde::Deserialize;
use serde::Serialize;

/// How `podbay install` gets a project's dependencies: the section `[setup]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct SetupOptions {
    /// Commands for the shell that `podbay install` runs last, in the install phase, once for each
    /// image and content of lock files. What they put into `$PODBAY_SETUP` stays, with the programs in its
    /// `bin`.
    pub commands: Vec<String>,
    /// Most that one cache of a project may hold; what is larger after an installation is removed.
    pub cache_size: ByteSize,
    /// How long one package manager, or one command, may take.
    pub timeout: Seconds,
}

impl Default for SetupOptions {
    fn default() -> Self {
        Self {
            commands: Vec::new(),
            cache_size: ByteSize::gib(8),
            timeout: Seconds::new(30 * 60),
        }
    }
}
