use nix::errno::Errno;

use super::object::ObjectId;
use podbay_wire::BytesPath;
use podbay_wire::Fault;

/// Errors that keep a whole snapshot from being taken, read or applied. Errors of a single path are
/// part of the answer instead.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {doing} `{path}` of the project")]
    Project {
        doing: &'static str,
        path: BytesPath,
        #[source]
        source: Errno,
    },
    #[error("cannot {doing} `{name}` in the folder of snapshots{}", remedy(*.source))]
    State {
        doing: &'static str,
        name: String,
        #[source]
        source: Errno,
    },
    #[error(
        "the stored object {id} is missing or broken; the snapshots that hold it cannot be used, newer ones can"
    )]
    Broken { id: ObjectId },
    #[error("`{name}` in the folder of snapshots is broken: {problem}")]
    Unreadable { name: String, problem: String },
    #[error("another Podbay uses this project's snapshots; try again when it is done")]
    Busy,
    #[error("an undo or apply was interrupted; resume or abandon it first")]
    Unfinished,
    #[error(
        "an interrupted undo or apply stopped again: {why}; try again when that is fixed, or give \
        it up (`podbay undo abandon`)"
    )]
    StoppedAgain { why: String },
    #[error("the project has more than {most} entries, which is too many for snapshots")]
    TooMany { most: usize },
    #[error(
        "the snapshots of this project use all of their {most_bytes} bytes; undo without merging"
    )]
    Full { most_bytes: u64 },
    #[error(
        "no space for this run's copy of the project: it takes {mib} MiB in {n_files} files, and \
        on the disk of the engine's volumes {free}; free space there (`podbay gc`, `podbay review \
        list`), or work in the project itself with `--changes live`"
    )]
    NoRoom {
        mib: u64,
        n_files: u64,
        free: String,
    },
    #[error("no turn is open")]
    NoTurn,
    #[error("no such review: `{name}`; `podbay review list` shows those that are pending")]
    NoReview { name: String },
    #[error(
        "the session of the review `{name}` was interrupted, and its copy of the project is gone; \
        `podbay review discard {name}` removes it"
    )]
    NoCopy { name: String },
    #[error(
        "the folder `{path}` was renamed in the copy of the review `{name}` under an earlier \
        Podbay, which this one cannot follow, so the copy cannot be used any more; apply (`podbay \
        review apply {name}`) or discard (`podbay review discard {name}`) what is pending, and \
        start a new run"
    )]
    Redirected { name: String, path: BytesPath },
    #[error("cannot select by `{pattern}`: {problem}")]
    Pattern { pattern: BytesPath, problem: String },
    #[error(
        "{path}: its changes are no longer those that were shown, so no hunk of it is taken; look at them again"
    )]
    Hunks { path: BytesPath },
}

fn remedy(errno: Errno) -> &'static str {
    match errno {
        Errno::ENOSPC | Errno::EDQUOT => {
            "; the disk is full: earlier snapshots are intact; free space and try again"
        }
        Errno::EACCES | Errno::EPERM => {
            "; it belongs to the former owner of the project's folder: give the folder back to \
            that user (`chown`) and try again"
        }
        _ => "",
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let problem = match std::error::Error::source(&error) {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        };
        Self::Io {
            doing: "keep the project's files".into(),
            problem,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_opening_and_writing_name_a_remedy() {
        let told = |source| {
            Error::State {
                doing: "open",
                name: "lock".to_owned(),
                source,
            }
            .to_string()
        };
        for (errno, remedy) in [
            (Errno::EACCES, "give the folder back to that user (`chown`)"),
            (Errno::ENOSPC, "free space and try again"),
        ] {
            assert!(
                told(errno).starts_with("cannot open `lock` in the folder of snapshots; ")
                    && told(errno).contains(remedy)
            );
        }
        assert_eq!(
            told(Errno::EIO),
            "cannot open `lock` in the folder of snapshots"
        );
    }
}
