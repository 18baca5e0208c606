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
    #[error("somebody else works on this project's snapshots; try again when that is done")]
    Busy,
    #[error("an undo or an application of changes was interrupted; resume or abandon it first")]
    Unfinished,
    #[error(
        "an undo or an application of changes that was interrupted stopped once more: {why}; try again when that is set right, or give it up \
         (`podbay undo abandon`)"
    )]
    StoppedAgain { why: String },
    #[error("the project has more than {most} entries; snapshots are taken of smaller ones only")]
    TooMany { most: usize },
    #[error(
        "the snapshots of this project take all of the {most_bytes} bytes they may take; take back without putting lines together"
    )]
    Full { most_bytes: u64 },
    #[error(
        "there is no room for the copy of the project that this run would work on: it takes {mib} MiB in {n_files} files, and where the engine \
         keeps its volumes {free}; make room there (`podbay gc`, `podbay review list`), or work in the project itself with `--changes live`"
    )]
    NoRoom {
        mib: u64,
        n_files: u64,
        free: String,
    },
    #[error("no turn was begun")]
    NoTurn,
    #[error(
        "there is no review `{name}` of this project; `podbay review list` shows those that wait"
    )]
    NoReview { name: String },
    #[error(
        "the session of the review `{name}` was cut off, and what it worked on is gone; `podbay review discard {name}` ends it"
    )]
    NoCopy { name: String },
    #[error(
        "the folder `{path}` was renamed in the copy of the review `{name}` by an earlier Podbay, which noted only where it came from: what is in \
         it is gone as soon as that changes in the project, so nothing goes on in this copy; what waits can be brought in \
         (`podbay review apply {name}`) or dropped (`podbay review discard {name}`), and a new run begun"
    )]
    Redirected { name: String, path: BytesPath },
    #[error("nothing can be chosen by `{pattern}`: {problem}")]
    Pattern { pattern: BytesPath, problem: String },
}

fn remedy(errno: Errno) -> &'static str {
    match errno {
        Errno::ENOSPC | Errno::EDQUOT => {
            "; the disk is full: what was stored before is whole, so make room and try again"
        }
        Errno::EACCES | Errno::EPERM => {
            "; it belongs to the user who owned the project's folder when it was made: give the folder back to that user (`chown`) and try again"
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
            (Errno::ENOSPC, "make room and try again"),
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
