//! Programs that start others from a text in a language of their own, which no shell reads: `sed` and `awk`.

use super::awk;
use super::words::may_be_option;
use podbay_code::shell::Command;
use podbay_code::shell::Doubt;
use podbay_code::shell::Script;
use podbay_code::shell::SedScripts;

/// Returns why a script may start more than its commands, for what their own languages may start.
pub(super) fn doubt(script: &Script) -> Option<Doubt> {
    script.commands.iter().find_map(|command: &Command| {
        let name = command.name()?;
        let may_start = match name {
            "sed" | "gsed" => {
                let scripts = SedScripts::of(command.arguments());
                scripts.may_start() || scripts.unknown.iter().any(|word| may_be_option(word))
            }
            "awk" | "gawk" | "mawk" | "nawk" | "original-awk" => awk::may_start(command.arguments()),
            _ => false,
        };
        may_start.then(|| Doubt { what: name.to_owned(), why: "its own script may start programs that cannot be read" })
    })
}
