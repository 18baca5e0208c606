use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::path::Component;
use std::sync::Mutex;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use podbay_guest::LineDiff;
use podbay_sandbox as sandbox;
use podbay_tools::Later;
use podbay_tools::OnChunk;
use podbay_tools::Workspace;
use podbay_wire::BytesPath;
use podbay_wire::Call;
use podbay_wire::CallKind;
use podbay_wire::DirectoryEntry;
use podbay_wire::DirectoryListing;
use podbay_wire::EditFile;
use podbay_wire::Edited;
use podbay_wire::Encoding;
use podbay_wire::EntryKind;
use podbay_wire::Fault;
use podbay_wire::FileText;
use podbay_wire::LeftOut;
use podbay_wire::ListDirectory;
use podbay_wire::Output;
use podbay_wire::Read;
use podbay_wire::ReadFile;
use podbay_wire::WriteFile;
use podbay_wire::Written;

const NO_COMMANDS: &str =
    "this is a demonstration without a sandbox, so no command is run anywhere; continue without it";

/// Most bytes that all files may hold together.
const MOST: usize = 1 << 20;

/// A workspace whose files are in memory, for showing what a run looks like. It touches no disk and
/// starts no process: whatever is more than listing, reading and changing its own files is refused.
pub(super) struct Files {
    /// By path from the workspace's folder.
    by_path: Mutex<BTreeMap<String, String>>,
}

impl Files {
    pub(super) fn new(files: &[(&str, &str)]) -> Self {
        Self {
            by_path: Mutex::new(
                files
                    .iter()
                    .map(|&(path, text)| (path.to_owned(), text.to_owned()))
                    .collect(),
            ),
        }
    }

    fn carry_out(&self, call: &Call) -> Result<Output, Fault> {
        let mut files = self
            .by_path
            .lock()
            .expect("nothing panics while it holds this lock");
        // There are no links in it.
        match call.plain() {
            Call::ReadFile(call) => read(&files, call).map(Output::Read),
            Call::WriteFile(call) => write(&mut files, call).map(Output::Written),
            Call::EditFile(call) => edit(&mut files, call).map(Output::Edited),
            Call::ListDirectory(call) => list(&files, call).map(Output::Listing),
            call => Err(refusal(call)),
        }
    }
}

/// Returns why the demonstration does not execute a call.
fn refusal(call: &Call) -> Fault {
    let facts = call.facts();
    match facts.kind {
        CallKind::Command | CallKind::Session => Fault::NotStarted {
            problem: NO_COMMANDS.to_owned(),
        },
        CallKind::File | CallKind::LongFile if facts.effect.is_read_only() => Fault::Io {
            doing: "search the files".to_owned(),
            problem: "a demonstration does not search; list_directory and read_file work"
                .to_owned(),
        },
        CallKind::File | CallKind::LongFile => Fault::Io {
            doing: "arrange the files".to_owned(),
            problem: "a demonstration reads, writes and edits files and no more".to_owned(),
        },
    }
}

impl Workspace for Files {
    fn call<'a>(
        &'a self,
        call: Call,
        _on_chunk: OnChunk<'a>,
        _cancel: &'a CancellationToken,
        _deadline: Duration,
    ) -> Later<'a, Result<Output, sandbox::Error>> {
        Box::pin(std::future::ready(Ok(self
            .carry_out(&call)
            .unwrap_or_else(Output::Fault))))
    }
}

/// Returns a path's name among the files; empty is the folder of all.
fn name(path: &BytesPath) -> Result<String, Fault> {
    let outside = || Fault::Outside { path: path.clone() };
    let inner = path
        .as_path()
        .strip_prefix("/workspace")
        .unwrap_or(path.as_path());
    let mut parts = Vec::new();
    for part in inner.components() {
        match part {
            Component::CurDir => {}
            Component::Normal(part) => parts.push(part.to_str().ok_or_else(outside)?),
            Component::ParentDir => {
                parts.pop().ok_or_else(outside)?;
            }
            Component::RootDir | Component::Prefix(_) => return Err(outside()),
        }
    }
    Ok(parts.join("/"))
}

fn is_directory(files: &BTreeMap<String, String>, name: &str) -> bool {
    name.is_empty()
        || files.keys().any(|path| {
            path.strip_prefix(name)
                .is_some_and(|rest| rest.starts_with('/'))
        })
}

fn find<'a>(files: &'a BTreeMap<String, String>, path: &BytesPath) -> Result<&'a str, Fault> {
    let name = name(path)?;
    match files.get(&name) {
        Some(text) => Ok(text),
        None if is_directory(files, &name) => Err(Fault::IsDirectory { path: path.clone() }),
        None => {
            let beside = files
                .keys()
                .take(10)
                .map(|path| BytesPath::from_text(path))
                .collect();
            Err(Fault::NotFound {
                path: path.clone(),
                similar: Vec::new(),
                beside,
            })
        }
    }
}

fn read(files: &BTreeMap<String, String>, call: &ReadFile) -> Result<Read, Fault> {
    let Some(path) = &call.path else {
        return Err(Fault::Invalid {
            field: "from_cursor".to_owned(),
            problem: "a demonstration gives out no cursors".to_owned(),
        });
    };
    let whole = find(files, path)?;
    let most = usize::try_from(call.max_bytes).unwrap_or(usize::MAX);
    let first = usize::try_from(call.offset.max(1)).unwrap_or(usize::MAX);
    let n_wanted = usize::try_from(call.limit).unwrap_or(usize::MAX);
    let (mut text, mut n_lines) = (String::new(), 0);
    for line in whole.split_inclusive('\n').skip(first - 1).take(n_wanted) {
        if text.len() + line.len() > most {
            break;
        }
        text.push_str(line);
        n_lines += 1;
    }
    let total = whole.lines().count() as u64;
    Ok(Read {
        files: vec![FileText {
            path: path.clone(),
            first_line: first as u64,
            n_lines,
            total_lines: Some(total),
            bytes: whole.len() as u64,
            more: (first as u64).saturating_add(n_lines) <= total,
            cut_lines: 0,
            encoding: Encoding::Utf8,
            fault: None,
            text,
        }],
        remaining: 0,
        memos: Vec::new(),
    })
}

/// Puts a file in place, unless memory would not stay bounded or a folder stands there.
fn put(
    files: &mut BTreeMap<String, String>,
    path: &BytesPath,
    name: String,
    text: String,
) -> Result<(), Fault> {
    if is_directory(files, &name) {
        return Err(Fault::IsDirectory { path: path.clone() });
    }
    let above = name.match_indices('/').map(|(at, _)| &name[..at]);
    if above.into_iter().any(|folder| files.contains_key(folder)) {
        return Err(Fault::NotDirectory { path: path.clone() });
    }
    let others: usize = files
        .iter()
        .filter(|(other, _)| **other != name)
        .map(|(other, text)| other.len() + text.len())
        .sum();
    if others + name.len() + text.len() > MOST {
        return Err(Fault::NoSpace { path: path.clone() });
    }
    files.insert(name, text);
    Ok(())
}

fn write(files: &mut BTreeMap<String, String>, call: &WriteFile) -> Result<Written, Fault> {
    let name = name(&call.path)?;
    let before = files.get(&name);
    let created = before.is_none();
    let text = if call.append {
        before.cloned().unwrap_or_default() + &call.content
    } else {
        call.content.clone()
    };
    let bytes = text.len() as u64;
    put(files, &call.path, name, text)?;
    Ok(Written {
        path: call.path.clone(),
        bytes,
        created,
        appended: call.append && !created,
        notes: Vec::new(),
        memos: Vec::new(),
    })
}

fn edit(files: &mut BTreeMap<String, String>, call: &EditFile) -> Result<Edited, Fault> {
    let name = name(&call.path)?;
    let created = call.create_if_missing && !files.contains_key(&name);
    let old = if created {
        String::new()
    } else {
        find(files, &call.path)?.to_owned()
    };
    let (mut text, mut replaced) = (old.clone(), 0);
    for (edit, number) in call.edits.iter().zip(1_u32..) {
        let places: Vec<usize> = match edit.old_string.as_str() {
            "" if text.is_empty() => vec![0],
            "" => {
                return Err(Fault::Invalid {
                    field: "old_string".to_owned(),
                    problem: "is empty".to_owned(),
                });
            }
            wanted => text.match_indices(wanted).map(|(at, _)| at).collect(),
        };
        match places.len() {
            0 => {
                return Err(Fault::NoMatch {
                    path: call.path.clone(),
                    edit: number,
                    closest: String::new(),
                });
            }
            n if n > 1 && !edit.replace_all => {
                let lines = places
                    .iter()
                    .take(5)
                    .map(|&at| text[..at].matches('\n').count() as u64 + 1)
                    .collect();
                return Err(Fault::Ambiguous {
                    path: call.path.clone(),
                    edit: number,
                    count: n as u64,
                    lines,
                });
            }
            n => replaced += n as u64,
        }
        // From the end, so that the places before stay where they are.
        for &at in places.iter().rev() {
            text.replace_range(at..at + edit.old_string.len(), &edit.new_string);
        }
        if text.len() > MOST {
            return Err(Fault::NoSpace {
                path: call.path.clone(),
            });
        }
    }
    let diff = LineDiff::of(&old, &text).unified(&format!("a/{name}"), &format!("b/{name}"));
    put(files, &call.path, name, text)?;
    Ok(Edited {
        path: call.path.clone(),
        replaced,
        created,
        tolerant: Vec::new(),
        unescaped: Vec::new(),
        alike: Vec::new(),
        notes: Vec::new(),
        diff,
        memos: Vec::new(),
    })
}

fn list(files: &BTreeMap<String, String>, call: &ListDirectory) -> Result<DirectoryListing, Fault> {
    let name = name(&call.path)?;
    if files.contains_key(&name) {
        return Err(Fault::NotDirectory {
            path: call.path.clone(),
        });
    }
    if !is_directory(files, &name) {
        find(files, &call.path)?;
    }
    let prefix = if name.is_empty() {
        String::new()
    } else {
        format!("{name}/")
    };
    let mut found = BTreeSet::new();
    for (path, text) in files {
        let Some(inner) = path.strip_prefix(&prefix) else {
            continue;
        };
        for (end, is_folder) in inner
            .match_indices('/')
            .map(|(at, _)| (at, true))
            .chain([(inner.len(), false)])
        {
            found.insert((
                inner[..end].to_owned(),
                (!is_folder).then_some(text.len() as u64),
            ));
            if !call.recursive {
                break;
            }
        }
    }
    let n_found = found.len();
    let entry = |(path, bytes): (String, Option<u64>)| DirectoryEntry {
        path: BytesPath::from_text(&path),
        kind: if bytes.is_some() {
            EntryKind::File
        } else {
            EntryKind::Directory
        },
        bytes: bytes.filter(|_| call.show_size),
        target: None,
    };
    let entries: Vec<DirectoryEntry> = found
        .into_iter()
        .take(call.max_entries as usize)
        .map(entry)
        .collect();
    let omitted = (n_found - entries.len()) as u64;
    Ok(DirectoryListing {
        path: BytesPath::from_text(&name),
        entries,
        omitted: Some(omitted),
        truncated: omitted > 0,
        n_unreadable: 0,
        left_out: LeftOut::default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use podbay_wire::Bash;
    use podbay_wire::Replacement;

    fn files() -> Files {
        Files::new(&[("a.txt", "one\ntwo\n"), ("src/b.txt", "b\n")])
    }

    fn read(files: &Files, path: &str) -> Result<String, Fault> {
        let call = ReadFile {
            path: Some(path.into()),
            offset: 1,
            limit: 100,
            max_bytes: 1000,
            cursor: None,
            max_files: 1,
            protected: false,
            images: false,
        };
        match files.carry_out(&Call::ReadFile(call))? {
            Output::Read(read) => Ok(read.files[0].text.clone()),
            other => panic!("{other:?}"),
        }
    }

    fn write(files: &Files, path: &str, content: &str) -> Result<Output, Fault> {
        files.carry_out(&Call::WriteFile(WriteFile {
            path: path.into(),
            content: content.into(),
            append: false,
            protected: false,
            known: None,
        }))
    }

    #[test]
    fn no_path_leads_to_a_file_of_the_host() {
        let files = files();
        for path in [
            "/etc/passwd",
            "../etc/passwd",
            "src/../../etc/passwd",
            "/workspace/../etc/passwd",
            "/workspacex/a.txt",
        ] {
            assert!(
                matches!(read(&files, path), Err(Fault::Outside { .. })),
                "{path}"
            );
            assert!(
                matches!(write(&files, path, "x"), Err(Fault::Outside { .. })),
                "{path}"
            );
        }
        for path in ["a.txt", "./a.txt", "/workspace/a.txt", "src/../a.txt"] {
            assert_eq!(read(&files, path).as_deref(), Ok("one\ntwo\n"), "{path}");
        }
        assert!(
            matches!(read(&files, "Cargo.toml"), Err(Fault::NotFound { .. })),
            "the folder of this test has one"
        );
    }

    #[test]
    fn no_command_is_run() {
        let marker = tempfile::tempdir().expect("a folder").path().join("marker");
        let bash = Bash {
            command: format!("touch {}", marker.display()),
            working_directory: None,
            timeout_ms: 1000,
            grace_ms: 100,
            stream_bytes: 100,
            tail_bytes: 100,
            background: false,
            rules: Vec::new(),
            write_gate: None,
        };
        assert!(matches!(
            files().carry_out(&Call::Bash(bash)),
            Err(Fault::NotStarted { .. })
        ));
        assert!(!marker.exists());
    }

    #[test]
    fn files_are_written_edited_and_listed() {
        let files = files();
        write(&files, "src/deep/c.txt", "c\n").expect("written");
        assert!(matches!(
            write(&files, "src", "x"),
            Err(Fault::IsDirectory { .. })
        ));
        assert!(matches!(
            write(&files, "a.txt/b", "x"),
            Err(Fault::NotDirectory { .. })
        ));
        assert!(matches!(
            write(&files, "large", &"x".repeat(MOST)),
            Err(Fault::NoSpace { .. })
        ));
        let edit = |old: &str, new: &str, replace_all| {
            let edits = vec![Replacement {
                old_string: old.into(),
                new_string: new.into(),
                replace_all,
            }];
            files.carry_out(&Call::EditFile(EditFile {
                path: "a.txt".into(),
                edits,
                create_if_missing: false,
                protected: false,
                known: None,
            }))
        };
        assert!(matches!(
            edit("three", "", false),
            Err(Fault::NoMatch { .. })
        ));
        assert!(matches!(
            edit("o", "0", false),
            Err(Fault::Ambiguous { count: 2, .. })
        ));
        let Ok(Output::Edited(edited)) = edit("o", "0", true) else {
            panic!("edited")
        };
        assert_eq!(
            (edited.replaced, read(&files, "a.txt").as_deref()),
            (2, Ok("0ne\ntw0\n"))
        );
        assert!(
            edited.diff.contains("-one\n") && edited.diff.contains("+0ne\n"),
            "{}",
            edited.diff
        );
        let list = |path: &str, recursive| {
            let call = ListDirectory {
                path: path.into(),
                recursive,
                show_hidden: false,
                show_size: false,
                max_entries: 9,
            };
            match files.carry_out(&Call::ListDirectory(call)) {
                Ok(Output::Listing(listing)) => listing
                    .entries
                    .iter()
                    .map(|entry| entry.path.to_text())
                    .collect::<Vec<_>>(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(list(".", false), ["a.txt", "src"]);
        assert_eq!(
            list("", true),
            ["a.txt", "src", "src/b.txt", "src/deep", "src/deep/c.txt"]
        );
        assert_eq!(list("src/", false), ["b.txt", "deep"]);
    }
}
