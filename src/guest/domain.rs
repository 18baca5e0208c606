//! Separates the calls of one sandbox: each has a landlock domain of its own.
//!
//! All commands have one user, so the kernel lets each read and write the memory of every other by
//! `/proc/PID/mem`. A process in a landlock domain can access only those of the same domain, and
//! none outside of any domain, such as the guest. That holds whatever the domain restricts. This
//! one restricts nothing: it handles the right to move files between folders, which a domain
//! removes unless it is granted, and grants it everywhere. Signals pass between domains, so a
//! command can end what an earlier one left running.
//!
//! The right was added with landlock ABI 2 (Linux 5.19). Without it commands have no domain.

use std::io;

use landlock::AccessFs;
use landlock::CompatLevel;
use landlock::Compatible;
use landlock::PathBeneath;
use landlock::PathFd;
use landlock::Ruleset;
use landlock::RulesetAttr;
use landlock::RulesetCreated;
use landlock::RulesetCreatedAttr;
use landlock::RulesetError;

/// The ruleset of a domain. The spawner keeps it, and each supervisor enters a new domain with its
/// copy.
#[derive(Debug)]
pub(super) struct Domain(RulesetCreated);

impl Domain {
    /// Returns `None` where the kernel does not support such domains.
    pub(super) fn find() -> io::Result<Option<Self>> {
        let handled = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::Refer);
        let ruleset = match handled {
            Err(RulesetError::HandleAccesses(_)) => return Ok(None),
            handled => handled.map_err(io::Error::other)?,
        };
        let root = PathFd::new("/").map_err(io::Error::other)?;
        let ruleset = ruleset
            .create()
            .and_then(|ruleset| ruleset.add_rule(PathBeneath::new(root, AccessFs::Refer)));
        Ok(Some(Self(ruleset.map_err(io::Error::other)?)))
    }

    /// Puts this process and its descendants into a new domain.
    pub(super) fn enter(self) -> io::Result<()> {
        self.0.restrict_self().map(drop).map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A domain cannot be left, so a thread of its own enters it.
    #[test]
    fn a_domain_permits_moving_and_linking_files_between_folders() {
        let Some(domain) = Domain::find().expect("the kernel answers") else {
            return;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        for name in ["one", "two"] {
            fs::create_dir(at(name)).expect("made");
        }
        fs::write(at("one/file"), "x").expect("written");
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                domain.enter().expect("entered");
                fs::rename(at("one/file"), at("two/file")).expect("moved to another folder");
                fs::hard_link(at("two/file"), at("one/link")).expect("linked from another folder");
                fs::rename(at("one"), at("two/one")).expect("a folder moved");
            });
            inside.join().expect("no panic");
        });
        assert!(at("two/one/link").exists());
    }
}
