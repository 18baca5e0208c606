//! Attacks that a command could try against its sandbox: `podbay doctor --attack` runs these in it,
//! as commands.
//!
//! They are part of this program because it works in every image, with a shell or without, and sees
//! the kernel's answers. It gives a command nothing that it could not bring along itself. A
//! successful attack does no harm: what was opened is closed, what was created is removed. Attacks
//! trust no statement about the sandbox; the host's table says what each means.
//!
//! One file for each kind; start with [`ATTACKS`].

mod files;
mod neighbours;
mod network;
mod privilege;
mod resources;
mod system_call;

use std::ffi::OsString;
use std::io;
use std::io::Write;

use serde::Deserialize;
use serde::Serialize;

use super::unix::set_dumpable;

/// The result of one attack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Whether the sandbox withstood it.
    pub held: bool,
    /// What happened, in a few words.
    pub got: String,
}

impl Finding {
    fn held(got: impl Into<String>) -> Self {
        Self {
            held: true,
            got: got.into(),
        }
    }

    fn failed(got: impl Into<String>) -> Self {
        Self {
            held: false,
            got: got.into(),
        }
    }

    /// Judges a list of actions that should not have worked.
    fn of(worked: &[String], refused: impl Into<String>) -> Self {
        const MOST: usize = 8;
        if worked.is_empty() {
            return Self::held(refused);
        }
        let more = if worked.len() > MOST {
            format!(" and {} more", worked.len() - MOST)
        } else {
            String::new()
        };
        Self::failed(format!(
            "{}{more}",
            worked[..worked.len().min(MOST)].join(", ")
        ))
    }
}

type Act = fn(&[String]) -> Finding;

/// Every attack that is run as a command, by its id in `docs/security-cases.md`.
pub const ATTACKS: &[(&str, Act)] = &[
    ("C-04", files::settings),
    ("ESC-01", privilege::rights),
    ("ESC-02", privilege::namespaces),
    ("ESC-03", privilege::mounts),
    ("ESC-04", files::devices_made),
    ("ESC-05", files::sockets),
    ("ESC-06", files::kernel_files),
    ("ESC-07", files::set_id),
    ("ESC-08", files::writable),
    ("ESC-09", privilege::system_calls),
    ("ESC-10", privilege::tracing),
    ("ESC-15", files::devices),
    ("ESC-16", files::guest_program),
    ("ESC-20", neighbours::look),
    ("F-12", privilege::guest_secrets),
    ("G-01", files::git),
    ("N-01", network::routes),
    ("N-02", network::interfaces),
    ("N-03", network::resolver),
    ("N-04", network::listeners),
    ("N-05", network::raw),
    ("R-01", resources::processes),
    ("R-02", resources::memory),
    ("R-05", resources::output),
    ("R-06", resources::drip),
    ("R-08", resources::file_size),
    ("R-10", resources::open_files),
    ("R-12", resources::daemon),
    ("R-15", resources::inodes),
    ("R-18", resources::growth),
    ("S-01", files::environment),
];

/// Helpers that the host needs in the sandbox, by id: they attack nothing.
const ERRANDS: &[(&str, Act)] = &[
    ("links", files::make_links),
    ("count", resources::count),
    ("tidy", files::tidy),
    ("neighbour", neighbours::wait),
];

/// Runs one attack and prints its finding as a line of JSON.
pub(super) fn run(id: &str, arguments: &[OsString]) -> io::Result<()> {
    // A process whose file cannot be read is not dumpable. Commands are, and the guest reads their
    // `/proc`.
    set_dumpable(true)?;
    let arguments: Vec<String> = arguments
        .iter()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let found = ATTACKS.iter().chain(ERRANDS).find(|(name, _)| *name == id);
    let (_, act) = found.ok_or_else(|| io::Error::other(format!("there is no attack {id}")))?;
    let finding = act(&arguments);
    let line = serde_json::to_string(&finding).map_err(io::Error::other)?;
    writeln!(io::stdout(), "{line}")
}

/// Returns a number that the host passed, else the default.
fn number(arguments: &[String], at: usize, default: u64) -> u64 {
    arguments
        .get(at)
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn successful_actions_are_listed_and_a_long_list_is_truncated() {
        assert_eq!(Finding::of(&[], "3 refused"), Finding::held("3 refused"));
        let worked: Vec<String> = (0..10).map(|n| n.to_string()).collect();
        assert_eq!(
            Finding::of(&worked, ""),
            Finding::failed("0, 1, 2, 3, 4, 5, 6, 7 and 2 more")
        );
    }

    #[test]
    fn ids_are_unique() {
        let mut ids: Vec<&str> = ATTACKS.iter().chain(ERRANDS).map(|(id, _)| *id).collect();
        ids.sort_unstable();
        assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "{ids:?}");
    }
}
