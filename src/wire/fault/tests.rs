use super::*;

/// Returns the words of a fault that name the cause, and those that name the remedy.
///
/// Every new fault must be added here, and to the examples below. `None`: its text comes from
/// where it is created.
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
        Fault::Binary { kind, .. } if kind.ends_with("image") => ("is not text", "with a command"),
        Fault::Binary { .. } => ("is not text", "use a command"),
        Fault::NotUtf8 {
            letter: Some(_), ..
        } => ("the bytes of `é` in it", "`iconv -f windows-1252 -t"),
        Fault::NotUtf8 { .. } => ("looks like UTF-16LE", "such as `iconv -f UTF-16LE -t"),
        Fault::NoMatch { .. } => ("was not found", "copy the text exactly"),
        Fault::Ambiguous { .. } => ("occurs 2 times", "add surrounding lines"),
        Fault::HunkMissed { applied: true, .. } => ("does not fit", "is already in the file"),
        Fault::HunkMissed { .. } => ("does not fit", "Found instead"),
        Fault::HunkAmbiguous { .. } => ("fits in several places", "add lines around it"),
        Fault::HunkUnanchored { .. } => ("`fn a`, which is not in the file", "copy the line"),
        Fault::Exists { .. } => ("already exists", "set overwrite"),
        Fault::NoSpace { .. } => ("no space left", "Remove what is not needed"),
        Fault::Changed { .. } => ("changed while", "read it again"),
        Fault::Stale { .. } => ("has changed since you read it", "read it again"),
        Fault::Outdated { .. } => ("was not found", "read the file again"),
        Fault::Untold { .. } => ("the path changed", "try again"),
        Fault::TimedOut { .. } => ("did not end within 1.5 s", "check what exists"),
        Fault::Io { problem, .. } if problem.contains(';') => {
            ("a part of the new text", "write all of it once more")
        }
        Fault::Io { .. } => ("no such device", "try again"),
        Fault::Refused { .. }
        | Fault::Invalid { .. }
        | Fault::OnlyChecked
        | Fault::NotStarted { .. }
        | Fault::Cancelled
        | Fault::BoxEnded { .. } => {
            return None;
        }
    })
}

#[test]
fn a_line_with_several_matches_is_listed_once() {
    for (lines, expected) in [
        (&[1, 4][..], "lines 1, 4"),
        (&[1, 1, 1], "line 1, 3 times"),
        (&[1, 1, 4, 5, 5], "lines 1 (2 times), 4, 5 (2 times)"),
    ] {
        assert_eq!(places(lines), expected);
    }
}

/// Every fault names a remedy after the cause.
#[test]
fn each_fault_about_a_path_names_it_and_a_remedy() {
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
    // A fault in `words` without an example would be untested.
    let kinds: std::collections::HashSet<_> = examples.iter().map(std::mem::discriminant).collect();
    assert_eq!(kinds.len(), 27);
}
