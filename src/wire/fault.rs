use serde::Deserialize;
use serde::Serialize;
use thiserror::Error;

use super::BytesPath;
use super::limit::n_bytes;

/// Why a call did not do what was asked: something the model should read and can act on.
///
/// The texts name the thing and the remedy; they are shown to the model as they stand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Error)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub enum Fault {
    #[error("{path}: no such file or directory{}{}", no_separator(.path, .similar), hint(.similar, .beside))]
    NotFound {
        path: BytesPath,
        /// Names in the same folder that look alike.
        similar: Vec<BytesPath>,
        /// Some of the names that are there, where none looks alike.
        beside: Vec<BytesPath>,
    },
    #[error("{path}: leads outside of /workspace; only paths inside the project can be used here")]
    Outside { path: BytesPath },
    #[error(
        "{path}: leads to {name}, which is protected by its name; it was neither read nor changed. Permission is needed for that name: \
             name the file itself, so that it can be asked for"
    )]
    Protected {
        path: BytesPath,
        /// What the path led to, from the project's folder.
        name: BytesPath,
    },
    #[error(
        "{path}: leads through a symbolic link to {target}; links with an absolute target are not followed, so use the path it names"
    )]
    AbsoluteLink { path: BytesPath, target: BytesPath },
    #[error(
        "{path}: {} a symbolic link to {target}, which is not there; make what it leads to, or use another path (delete_file takes the link away)",
        link_at(.path, .link)
    )]
    DanglingLink {
        path: BytesPath,
        /// The link, from the project's folder: the path itself, or what it leads through.
        link: BytesPath,
        /// As the link has it.
        target: BytesPath,
    },
    #[error("{path}: is a directory; use list_directory to see what is in it")]
    IsDirectory { path: BytesPath },
    #[error(
        "{path}: is not a directory, or leads through something that is none; use list_directory to see which folders there are"
    )]
    NotDirectory { path: BytesPath },
    #[error(
        "{path}: is not a regular file but a {kind}, which is neither read nor changed; name a regular file, or go on without it"
    )]
    NotRegular { path: BytesPath, kind: String },
    #[error(
        "{path}: is hidden from this sandbox, because a secret is in it; it was neither read nor changed. Go on without it, or say that the \
             person can reveal it with the setting `sandbox.reveal`"
    )]
    Hidden { path: BytesPath },
    #[error(
        "{path}: permission denied; `ls -ld` shows whose it is: what is yours can be changed with chmod, for anything else the person must \
             be asked"
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
        /// What cannot be written for certain: it does not stand in the file yet.
        letter: Option<char>,
    },
    #[error("{path}: old_string was not found (edit {edit}); read the file again and copy the text exactly{}", detail(.closest))]
    NoMatch {
        path: BytesPath,
        /// Which of the edits, counted from 1.
        edit: u32,
        /// The lines that come closest, where there are any.
        closest: String,
    },
    #[error(
        "{path}: old_string stands {count} times (edit {edit}, {}); add surrounding lines to make it unique, or set replace_all",
        places(.lines)
    )]
    Ambiguous {
        path: BytesPath,
        edit: u32,
        count: u64,
        /// Where the first of them begin.
        lines: Vec<u64>,
    },
    #[error("{path}: hunk {hunk} does not fit, so nothing was changed{}{}", if *.applied { "; what it would put there is there already" } else { "" }, instead(.closest))]
    HunkMissed {
        path: BytesPath,
        /// Counted from 1.
        hunk: u32,
        applied: bool,
        /// What stands there instead.
        closest: String,
    },
    #[error(
        "{path}: hunk {hunk} fits in several places ({}), so nothing was changed; add lines around it, or an `@@` line that stands before it",
        places(.lines)
    )]
    HunkAmbiguous {
        path: BytesPath,
        hunk: u32,
        /// Where the first of them begin.
        lines: Vec<u64>,
    },
    #[error(
        "{path}: hunk {hunk} is to stand behind the line `{anchor}`, which is not in the file, so nothing was changed; copy the line behind \
             `@@` from the file, or write `@@` alone where the hunk's own lines stand there once"
    )]
    HunkUnanchored {
        path: BytesPath,
        hunk: u32,
        /// What was written behind `@@`.
        anchor: String,
    },
    #[error("{path}: is there already{}", after(.remedy))]
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
    /// Something does not fit a file that has changed since it was read.
    #[error("{misfit}")]
    Outdated { misfit: Box<Fault> },
    /// Nothing was done yet: the host must first say what it knows of these.
    #[error("{}: the way there changed while it was looked for, so nothing was done; try again", names(.paths))]
    Untold { paths: Vec<BytesPath> },
    #[error("the command cannot be started: {problem}")]
    NotStarted { problem: String },
    #[error("cancelled")]
    Cancelled,
    #[error(
        "{doing}: did not end within {} s and was stopped; a part of it may be done, so look at what is there before you go on",
        *.after_ms as f64 / 1000.0
    )]
    TimedOut { doing: String, after_ms: u64 },
    #[error("{doing}: {problem}{}", again(.problem))]
    Io { doing: String, problem: String },
    #[error("the sandbox was ended: {problem}")]
    BoxEnded { problem: String },
}

/// What can be done where the system itself fails. Whoever knows a better way on says it behind a
/// semicolon.
fn again(problem: &str) -> &'static str {
    if problem.contains("; ") {
        ""
    } else {
        "; try again, and where that does not help, go on without it and say so"
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

/// Says of a path with backslashes that they part no names, and which path would be meant.
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
    format!("; a backslash is no separator here but a letter of the name{write}")
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
        ([], []) => "; use list_directory or glob to see what is there".to_owned(),
        ([], beside) => format!("; there are {}", names(beside, ", ")),
        (similar, _) => format!("; did you mean {}?", names(similar, " or ")),
    }
}

fn instead(closest: &str) -> String {
    if closest.is_empty() {
        "; the file is empty".to_owned()
    } else {
        format!(". There stands instead:\n{closest}")
    }
}

fn uncertain(letter: Option<char>) -> String {
    letter.map_or_else(String::new, |letter| {
        format!(", and which bytes `{letter}` has there is not certain")
    })
}

fn kept_letters(letter: Option<char>) -> &'static str {
    if letter.is_some() {
        "Write ASCII and letters that stand in it already, or make"
    } else {
        "Make"
    }
}

/// Without what is said behind the name for those who know another one.
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

/// Where no image is wanted, what can be had of one is its text and its numbers.
fn binary_hint(kind: &str) -> &'static str {
    if kind.ends_with("image") {
        "; images cannot be shown to you: look for a text that describes it, or read its size, text or pixels with a command"
    } else {
        "; use a command that knows such files"
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
mod tests {
    use super::*;

    /// Returns the words of a fault that say what is the matter, and those that say what can be
    /// done about it.
    ///
    /// A fault that is new has to be put here, and then among the examples below. None: its words
    /// are those of whoever makes it.
    fn words(fault: &Fault) -> Option<(&'static str, &'static str)> {
        Some(match fault {
            Fault::NotFound {
                similar, beside, ..
            } => match (similar.is_empty(), beside.is_empty()) {
                (false, _) => ("no such file", "did you mean src/b"),
                (true, false) => ("no such file", "there are src/c"),
                (true, true) => ("no such file", "use list_directory"),
            },
            Fault::Outside { .. } => ("outside of /workspace", "only paths inside the project"),
            Fault::Protected { .. } => ("leads to .env", "name the file itself"),
            Fault::AbsoluteLink { .. } => ("a symbolic link", "use the path it names"),
            Fault::DanglingLink { .. } => ("is a symbolic link to b", "use another path"),
            Fault::IsDirectory { .. } => ("is a directory", "use list_directory"),
            Fault::NotDirectory { .. } => ("is not a directory", "use list_directory"),
            Fault::NotRegular { .. } => ("but a socket", "name a regular file"),
            Fault::Hidden { .. } => ("is hidden", "`sandbox.reveal`"),
            Fault::PermissionDenied { .. } => ("permission denied", "chmod"),
            Fault::ReadOnly { .. } => ("is read-only", "write elsewhere"),
            Fault::TooLarge { .. } => ("holds 9 bytes", "use bash"),
            Fault::Binary { kind, .. } if kind.ends_with("image") => {
                ("is not text", "with a command")
            }
            Fault::Binary { .. } => ("is not text", "use a command"),
            Fault::NotUtf8 {
                letter: Some(_), ..
            } => ("which bytes `é` has there", "`iconv -f windows-1252 -t"),
            Fault::NotUtf8 { .. } => ("looks like UTF-16LE", "such as `iconv -f UTF-16LE -t"),
            Fault::NoMatch { .. } => ("was not found", "copy the text exactly"),
            Fault::Ambiguous { .. } => ("stands 2 times", "add surrounding lines"),
            Fault::HunkMissed { applied: true, .. } => ("does not fit", "is there already"),
            Fault::HunkMissed { .. } => ("does not fit", "There stands instead"),
            Fault::HunkAmbiguous { .. } => ("fits in several places", "add lines around it"),
            Fault::HunkUnanchored { .. } => ("`fn a`, which is not in the file", "copy the line"),
            Fault::Exists { .. } => ("is there already", "set overwrite"),
            Fault::NoSpace { .. } => ("no space left", "Remove what is not needed"),
            Fault::Changed { .. } => ("changed while", "read it again"),
            Fault::Stale { .. } => ("has changed since you read it", "read it again"),
            Fault::Outdated { .. } => ("was not found", "read the file again"),
            Fault::Untold { .. } => ("the way there changed", "try again"),
            Fault::TimedOut { .. } => ("did not end within 1.5 s", "look at what is there"),
            Fault::Io { problem, .. } if problem.contains(';') => {
                ("a part of the new text", "write all of it once more")
            }
            Fault::Io { .. } => ("no such device", "try again"),
            Fault::Refused { .. }
            | Fault::Invalid { .. }
            | Fault::NotStarted { .. }
            | Fault::Cancelled
            | Fault::BoxEnded { .. } => {
                return None;
            }
        })
    }

    #[test]
    fn a_line_in_which_a_text_stands_often_is_named_once() {
        for (lines, expected) in [
            (&[1, 4][..], "lines 1, 4"),
            (&[1, 1, 1], "line 1, 3 times"),
            (&[1, 1, 4, 5, 5], "lines 1 (2 times), 4, 5 (2 times)"),
        ] {
            assert_eq!(places(lines), expected);
        }
    }

    /// Whoever reads a fault can do something about it: each says what, behind what is the matter.
    #[test]
    fn each_fault_about_a_path_names_it_and_a_way_on() {
        let path = || BytesPath::from("src/a");
        let no_match = || Fault::NoMatch {
            path: path(),
            edit: 1,
            closest: String::new(),
        };
        let missed = |applied| Fault::HunkMissed {
            path: path(),
            hunk: 1,
            applied,
            closest: "x".into(),
        };
        let io = |problem: &str| Fault::Io {
            doing: "write src/a".into(),
            problem: problem.into(),
        };
        let binary = |kind: &str| Fault::Binary {
            path: path(),
            bytes: 9,
            kind: kind.into(),
        };
        let examples = [
            Fault::NotFound {
                path: path(),
                similar: vec!["src/b".into()],
                beside: Vec::new(),
            },
            Fault::NotFound {
                path: path(),
                similar: Vec::new(),
                beside: vec!["src/c".into()],
            },
            Fault::NotFound {
                path: path(),
                similar: Vec::new(),
                beside: Vec::new(),
            },
            Fault::Outside { path: path() },
            Fault::Protected {
                path: path(),
                name: ".env".into(),
            },
            Fault::AbsoluteLink {
                path: path(),
                target: "/workspace/b".into(),
            },
            Fault::DanglingLink {
                path: path(),
                link: path(),
                target: "b".into(),
            },
            Fault::IsDirectory { path: path() },
            Fault::NotDirectory { path: path() },
            Fault::NotRegular {
                path: path(),
                kind: "socket".into(),
            },
            Fault::Hidden { path: path() },
            Fault::PermissionDenied { path: path() },
            Fault::ReadOnly { path: path() },
            Fault::TooLarge {
                path: path(),
                bytes: 9,
                limit: 8,
            },
            binary("PNG image"),
            binary("binary file"),
            Fault::NotUtf8 {
                path: path(),
                encoding: "UTF-16LE".into(),
                letter: None,
            },
            Fault::NotUtf8 {
                path: path(),
                encoding: "windows-1252 (Latin-1)".into(),
                letter: Some('é'),
            },
            no_match(),
            Fault::Ambiguous {
                path: path(),
                edit: 1,
                count: 2,
                lines: vec![1, 2],
            },
            missed(true),
            missed(false),
            Fault::HunkAmbiguous {
                path: path(),
                hunk: 1,
                lines: vec![1, 2],
            },
            Fault::HunkUnanchored {
                path: path(),
                hunk: 1,
                anchor: "fn a".into(),
            },
            Fault::Exists {
                path: path(),
                remedy: "set overwrite".into(),
            },
            Fault::NoSpace { path: path() },
            Fault::Changed { path: path() },
            Fault::Stale { path: path() },
            Fault::Outdated {
                misfit: Box::new(no_match()),
            },
            Fault::Untold {
                paths: vec![path()],
            },
            Fault::TimedOut {
                doing: "copy src/a".into(),
                after_ms: 1500,
            },
            io("no such device"),
            io("broken; the file now holds a part of the new text, so write all of it once more"),
        ];
        for fault in &examples {
            let (cause, way) = words(fault).expect("these have words of their own");
            let text = fault.to_string();
            let (at, behind) = (text.find(cause), text.find(way));
            assert!(
                text.contains("src/a") && at.is_some() && at < behind,
                "{text}"
            );
        }
        // What `words` knows and no example shows would be told of by nobody.
        let kinds: std::collections::HashSet<_> =
            examples.iter().map(std::mem::discriminant).collect();
        assert_eq!(kinds.len(), 27);
    }
}
