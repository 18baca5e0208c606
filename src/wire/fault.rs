use serde::Deserialize;
use serde::Serialize;
use thiserror::Error;

use super::BytesPath;
use super::limit::n_bytes;

/// Why a call did not do what was asked: something that the model should read and can act on.
///
/// The texts name the thing and the remedy; the model reads them unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Error)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub enum Fault {
    #[error("{path}: no such file or directory{}{}", no_separator(.path, .similar), hint(.similar, .beside))]
    NotFound {
        path: BytesPath,
        /// Similar names in the same folder.
        similar: Vec<BytesPath>,
        /// Some of the existing names, where none is similar.
        beside: Vec<BytesPath>,
    },
    #[error("{path}: leads outside of /workspace; only paths inside the project can be used here")]
    Outside { path: BytesPath },
    #[error(
        "{path}: leads to {name}, which is protected by its name; it was neither read nor changed. Permission is needed for that name: \
             name the file itself, so that permission can be asked"
    )]
    Protected {
        path: BytesPath,
        /// Where the path led, from the project's folder.
        name: BytesPath,
    },
    #[error(
        "{path}: leads through a symbolic link to {target}; links with an absolute target are not followed, so use the path it names"
    )]
    AbsoluteLink { path: BytesPath, target: BytesPath },
    #[error(
        "{path}: {} a symbolic link to {target}, which does not exist; create the target, or use another path (delete_file removes the link)",
        link_at(.path, .link)
    )]
    DanglingLink {
        path: BytesPath,
        /// The link, from the project's folder: the path itself, or a link on it.
        link: BytesPath,
        /// The link's target as written.
        target: BytesPath,
    },
    #[error("{path}: is a directory; use list_directory to see what is in it")]
    IsDirectory { path: BytesPath },
    #[error(
        "{path}: is not a directory, or one of its parents is not; use list_directory to see which folders exist"
    )]
    NotDirectory { path: BytesPath },
    #[error(
        "{path}: is not a regular file but a {kind}, which is neither read nor changed; name a regular file, or continue without it"
    )]
    NotRegular { path: BytesPath, kind: String },
    #[error(
        "{path}: is hidden from this sandbox, because it is a secret; it was neither read nor changed. Continue without it, or say that the \
             user can reveal it with the setting `sandbox.reveal`"
    )]
    Hidden { path: BytesPath },
    #[error(
        "{path}: permission denied; `ls -ld` shows whose it is: your own files can be changed with chmod, for others ask the user"
    )]
    PermissionDenied { path: BytesPath },
    #[error(
        "{path}: is read-only here and cannot be changed; leave it as it is and write elsewhere, or say that it must be made writable"
    )]
    ReadOnly { path: BytesPath },
    #[error("{path}: holds {}, more than the {limit} bytes this tool works on; use bash for files of this size", n_bytes(*.bytes))]
    TooLarge {
        path: BytesPath,
        bytes: u64,
        limit: u64,
    },
    #[error("{path}: is not text but a {kind} ({}){}", n_bytes(*.bytes), binary_hint(.kind))]
    Binary {
        path: BytesPath,
        bytes: u64,
        kind: String,
    },
    #[error(
        "{path}: is not UTF-8 text but looks like {encoding}{}; it was left as it is. {} it UTF-8 first with a command that knows its encoding, \
             such as `iconv -f {} -t UTF-8`",
        uncertain(*.letter), kept_letters(*.letter), iconv_name(.encoding)
    )]
    NotUtf8 {
        path: BytesPath,
        encoding: String,
        /// The character that cannot be encoded for certain: it does not occur in the file yet.
        letter: Option<char>,
    },
    #[error("{path}: old_string was not found (edit {edit}); read the file again and copy the text exactly{}", detail(.closest))]
    NoMatch {
        path: BytesPath,
        /// Which of the edits, counted from 1.
        edit: u32,
        /// The most similar lines, if there are any.
        closest: String,
    },
    #[error(
        "{path}: old_string occurs {count} times (edit {edit}, {}); add surrounding lines to make it unique, or set replace_all",
        places(.lines)
    )]
    Ambiguous {
        path: BytesPath,
        edit: u32,
        count: u64,
        /// The lines where they begin.
        lines: Vec<u64>,
    },
    #[error("{path}: hunk {hunk} does not fit, so nothing was changed{}{}", if *.applied { "; its change is already in the file" } else { "" }, instead(.closest))]
    HunkMissed {
        path: BytesPath,
        /// Counted from 1.
        hunk: u32,
        applied: bool,
        /// The lines found there instead.
        closest: String,
    },
    #[error(
        "{path}: hunk {hunk} fits in several places ({}), so nothing was changed; add lines around it, or an `@@` line that precedes it",
        places(.lines)
    )]
    HunkAmbiguous {
        path: BytesPath,
        hunk: u32,
        /// The lines where they begin.
        lines: Vec<u64>,
    },
    #[error(
        "{path}: hunk {hunk} belongs after the line `{anchor}`, which is not in the file, so nothing was changed; copy the line after \
             `@@` from the file, or write `@@` alone where the hunk's own lines occur once"
    )]
    HunkUnanchored {
        path: BytesPath,
        hunk: u32,
        /// The text after `@@`.
        anchor: String,
    },
    #[error("{path}: already exists{}", after(.remedy))]
    Exists { path: BytesPath, remedy: String },
    #[error("{path}: {problem}")]
    Refused { path: BytesPath, problem: String },
    #[error("`{field}`: {problem}")]
    Invalid { field: String, problem: String },
    #[error(
        "no space left on the device while writing {path}; nothing was changed. Remove what is not needed, with a command, then try again"
    )]
    NoSpace { path: BytesPath },
    #[error("{path}: changed while it was being worked on; read it again")]
    Changed { path: BytesPath },
    #[error("{path}: it has changed since you read it, so nothing was written; read it again")]
    Stale { path: BytesPath },
    /// An edit failed in a file that has changed since it was read.
    #[error("{misfit}")]
    Outdated { misfit: Box<Fault> },
    /// Nothing was done yet: the host must first send what it knows of these.
    #[error("{}: the path changed while it was resolved, so nothing was done; try again", names(.paths))]
    Untold { paths: Vec<BytesPath> },
    /// The end of a check: nothing speaks against the edit.
    #[error("it was only checked, and it fits; nothing was written")]
    OnlyChecked,
    #[error("the command cannot be started: {problem}")]
    NotStarted { problem: String },
    #[error("cancelled")]
    Cancelled,
    #[error(
        "{doing}: did not end within {} s and was stopped; a part of it may be done, so check what exists before you continue",
        *.after_ms as f64 / 1000.0
    )]
    TimedOut { doing: String, after_ms: u64 },
    #[error("{doing}: {problem}{}", again(.problem))]
    Io { doing: String, problem: String },
    #[error("the sandbox was ended: {problem}")]
    BoxEnded { problem: String },
}

/// The general remedy for a system error. A problem with a better remedy contains it after a
/// semicolon.
fn again(problem: &str) -> &'static str {
    if problem.contains("; ") {
        ""
    } else {
        "; try again; if that fails, continue without it and say so"
    }
}

fn names(paths: &[BytesPath]) -> String {
    paths
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

fn link_at(path: &BytesPath, link: &BytesPath) -> String {
    if path == link {
        "is".to_owned()
    } else {
        format!("leads through {link},")
    }
}

/// Notes that backslashes do not separate names, and which path is probably meant.
fn no_separator(path: &BytesPath, similar: &[BytesPath]) -> String {
    if !path.as_bytes().contains(&b'\\') {
        return String::new();
    }
    let slashed = BytesPath::from_bytes(
        path.as_bytes()
            .iter()
            .map(|byte| if *byte == b'\\' { b'/' } else { *byte })
            .collect::<Vec<u8>>(),
    );
    let write = if similar.contains(&slashed) {
        String::new()
    } else {
        format!(": write {slashed}")
    };
    format!("; a backslash is not a separator here but part of the name{write}")
}

fn hint(similar: &[BytesPath], beside: &[BytesPath]) -> String {
    let names = |paths: &[BytesPath], between: &str| {
        paths
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(between)
    };
    match (similar, beside) {
        ([], []) => "; use list_directory or glob to see what exists".to_owned(),
        ([], beside) => format!("; there are {}", names(beside, ", ")),
        (similar, _) => format!("; did you mean {}?", names(similar, " or ")),
    }
}

fn instead(closest: &str) -> String {
    if closest.is_empty() {
        "; the file is empty".to_owned()
    } else {
        format!(". Found instead:\n{closest}")
    }
}

fn uncertain(letter: Option<char>) -> String {
    letter.map_or_else(String::new, |letter| {
        format!(", and the bytes of `{letter}` in it are not certain")
    })
}

fn kept_letters(letter: Option<char>) -> &'static str {
    if letter.is_some() {
        "Write ASCII and characters that already occur in it, or make"
    } else {
        "Make"
    }
}

/// Returns the name without the alternative in parentheses.
fn iconv_name(encoding: &str) -> &str {
    encoding.split(' ').next().unwrap_or(encoding)
}

fn after(remedy: &str) -> String {
    if remedy.is_empty() {
        String::new()
    } else {
        format!("; {remedy}")
    }
}

fn places(lines: &[u64]) -> String {
    let groups: Vec<&[u64]> = lines.chunk_by(|one, next| one == next).collect();
    let times = |group: &[u64]| {
        if group.len() > 1 {
            format!(" ({} times)", group.len())
        } else {
            String::new()
        }
    };
    match groups.as_slice() {
        [group] if group.len() > 1 => format!("line {}, {} times", group[0], group.len()),
        _ => format!(
            "lines {}",
            groups
                .iter()
                .map(|group| format!("{}{}", group[0], times(group)))
                .collect::<Vec<_>>()
                .join(", ")
        ),
    }
}

/// Where images are not wanted, text and metadata of one can be extracted.
fn binary_hint(kind: &str) -> &'static str {
    if kind.ends_with("image") {
        "; images cannot be shown to you: look for a text that describes it, or read its size, text or pixels with a command"
    } else {
        "; use a command for such files"
    }
}

fn detail(closest: &str) -> String {
    if closest.is_empty() {
        String::new()
    } else {
        format!(". The closest lines are:\n{closest}")
    }
}

#[cfg(test)]
mod tests;
