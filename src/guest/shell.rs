//! Which shell the sandbox has, and how it runs a command.

use std::path::Path;

use nix::unistd::AccessFlags;
use nix::unistd::access;

const BASH: &[&str] = &["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"];
const SH: &[&str] = &["/bin/sh", "/usr/bin/sh", "/bin/ash", "/bin/dash"];

/// A shell of the sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shell {
    pub(super) path: String,
    is_bash: bool,
}

impl Shell {
    /// Looks for bash, then for any other; an image may have none.
    pub(super) fn find() -> Option<Self> {
        let first = |paths: &[&str]| {
            paths
                .iter()
                .find(|path| access(Path::new(path), AccessFlags::X_OK).is_ok())
                .map(|&path| path.to_owned())
        };
        let bash = first(BASH).map(|path| Self {
            path,
            is_bash: true,
        });
        bash.or_else(|| {
            first(SH).map(|path| Self {
                path,
                is_bash: false,
            })
        })
    }

    /// Number of the descriptor on which the shell reports its working directory.
    ///
    /// High, so that it does not collide with a command's own descriptors; shells other than bash
    /// accept one digit only.
    pub(super) fn report_descriptor(&self) -> u32 {
        if self.is_bash { 99 } else { 9 }
    }

    /// Returns the arguments that run `command` and report the directory at its end.
    ///
    /// The command is an argument, never part of the script. `shift` hides it from the command
    /// itself, which sees no positional parameters.
    pub(super) fn reporting(&self, command: &str) -> Vec<Vec<u8>> {
        // The report must not appear in the trace of `set -x`.
        let script = format!(
            "trap '{{ set +x; pwd -P >&{}; }} 2>/dev/null' EXIT; eval \"shift;$1\"",
            self.report_descriptor()
        );
        [self.name(), "-c", &script, self.name(), command]
            .map(|word| word.as_bytes().to_vec())
            .to_vec()
    }

    /// Returns the arguments that run `command` and nothing else.
    pub(super) fn plain(&self, command: &str) -> Vec<Vec<u8>> {
        [self.name(), "-c", command]
            .map(|word| word.as_bytes().to_vec())
            .to_vec()
    }

    /// Returns the arguments of a login shell: its name starts with a dash.
    pub(super) fn login(&self) -> Vec<Vec<u8>> {
        vec![format!("-{}", self.name()).into_bytes()]
    }

    fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}
