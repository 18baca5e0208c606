//! Which shell this box has, and how a command is handed to it.

use std::path::Path;

use nix::unistd::AccessFlags;
use nix::unistd::access;

const BASH: &[&str] = &["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"];
const SH: &[&str] = &["/bin/sh", "/usr/bin/sh", "/bin/ash", "/bin/dash"];

/// A shell of the box.
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

    /// Under which number the shell finds the pipe on which it tells where it left off.
    ///
    /// High, so that a command that uses descriptors of its own does not meet it; other shells than
    /// bash know one digit only.
    pub(super) fn report_descriptor(&self) -> u32 {
        if self.is_bash { 99 } else { 9 }
    }

    /// Returns the arguments that run `command` and report the directory at its end.
    ///
    /// The command is an argument, never part of the script. `shift` hides it from the command
    /// itself, which sees no arguments.
    pub(super) fn reporting(&self, command: &str) -> Vec<Vec<u8>> {
        // Of a command that has its steps shown (`set -x`) this one is none.
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
