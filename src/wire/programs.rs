//! The programs that a call started, as far as they were seen, within bounds.

use serde::Deserialize;
use serde::Serialize;

use super::BytesPath;
use super::Denied;
use super::MAX_DENIED;

/// Most programs of a call that are listed.
pub const MAX_PROGRAMS: usize = 200;

/// Most bytes of the arguments of one program, and of all together.
pub const MAX_ARGUMENTS: usize = 2048;
pub const MAX_ALL_ARGUMENTS: usize = 64 * 1024;

/// The programs of a call, in the order in which each was first seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Programs {
    pub listed: Vec<Program>,
    /// How many starts are not listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub n_more: u64,
}

/// A program with its arguments, started once or more often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Its arguments, `argv[0]` first.
    pub argv: Vec<BytesPath>,
    /// Its working directory.
    pub directory: BytesPath,
    pub count: u64,
    /// Exit code of the last one, as a shell reports it; `None` where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Whether it has more arguments than are reported.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

impl Programs {
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty() && self.n_more == 0
    }

    /// Returns how often a program was started.
    pub fn n_started(&self) -> u64 {
        self.listed.iter().fold(self.n_more, |sum, program| {
            sum.saturating_add(program.count)
        })
    }

    /// Returns whether this exceeds what a guest may report.
    pub fn is_too_much(&self) -> bool {
        let bytes = |program: &Program| {
            program
                .argv
                .iter()
                .map(|word| word.as_bytes().len() + 1)
                .sum::<usize>()
                + program.directory.as_bytes().len()
        };
        self.listed.len() > MAX_PROGRAMS
            || self.listed.iter().map(bytes).sum::<usize>() > 2 * MAX_ALL_ARGUMENTS
    }
}

/// Returns whether these exceed what a guest may report about one command.
pub(super) fn tells_too_much(programs: &Programs, denied: &[Denied]) -> bool {
    let is_long = |denied: &Denied| {
        denied
            .argv
            .iter()
            .map(|word| word.as_bytes().len() + 1)
            .sum::<usize>()
            > 2 * MAX_ARGUMENTS
    };
    programs.is_too_much() || denied.len() > MAX_DENIED || denied.iter().any(is_long)
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_are_counted_and_a_list_beyond_the_bounds_is_too_much() {
        let program = |word: &str, count| Program {
            argv: vec![word.into()],
            directory: "/workspace".into(),
            count,
            exit_code: None,
            truncated: false,
        };
        let programs = Programs {
            listed: vec![program("make", 1), program("cc", 40)],
            n_more: 2,
        };
        assert_eq!(
            (
                programs.n_started(),
                programs.is_empty(),
                programs.is_too_much()
            ),
            (43, false, false)
        );
        assert!(
            Programs {
                listed: vec![program("make", 1); MAX_PROGRAMS + 1],
                n_more: 0
            }
            .is_too_much()
        );
        assert!(
            Programs {
                listed: vec![program(&"x".repeat(3 * MAX_ALL_ARGUMENTS), 1)],
                n_more: 0
            }
            .is_too_much()
        );
    }
}
