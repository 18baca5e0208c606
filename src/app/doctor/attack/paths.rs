//! Attacks by the file tools: paths that lead out of the project.

use super::inside::Inside;
use super::inside::Terms;
use crate::Error;
use podbay_guest::attack::Finding;
use podbay_wire::BytesPath;
use podbay_wire::Call;
use podbay_wire::EditFile;
use podbay_wire::Fault;
use podbay_wire::Grep;
use podbay_wire::GrepOutput;
use podbay_wire::ListDirectory;
use podbay_wire::Output;
use podbay_wire::ReadFile;
use podbay_wire::Replacement;
use podbay_wire::WriteFile;

#[cfg(test)]
pub(super) const IDS: &[&str] = &[
    "ESC-12", "P-01", "P-02", "P-03", "P-04", "P-05", "P-06", "P-07", "P-09",
];

/// Executes one of them; `None` where the id is not one of these.
pub(super) async fn attack(inside: &Inside<'_>, id: &str) -> Result<Option<Finding>, Error> {
    let own = |name: &str| format!("{}/{name}", inside.folder);
    let calls = match id {
        "ESC-12" => return folders(inside).await.map(Some),
        "P-01" => {
            let up = "../".repeat(inside.folder.split('/').count() + 1);
            let paths = [
                "../../etc/passwd".to_owned(),
                "/workspace/../etc/passwd".to_owned(),
                own(&format!("{up}etc/passwd")),
            ];
            paths.iter().flat_map(|path| every_tool(path)).collect()
        }
        "P-02" => [
            "/etc/passwd",
            "/etc/shadow",
            "/proc/self/environ",
            "/proc/1/environ",
            "/root",
        ]
        .map(read)
        .to_vec(),
        "P-03" => vec![
            write(&own("home/podbay-attack")),
            read(&own("above/passwd")),
            read(&own("home/.profile")),
            list(&own("above")),
        ],
        "P-04" => vec![
            write(&own("dangling")),
            read(&own("dangling")),
            read(&own("circle")),
            write(&own("circle/x")),
        ],
        "P-05" => return twin(inside).await.map(Some),
        "P-06" => ["/workspacefoo/x", "/workspace-evil/../x", "/workspace.old"]
            .iter()
            .flat_map(|path| [read(path), write(path)])
            .collect(),
        "P-07" => [
            ".GIT/config",
            ".git./config",
            ".git /config",
            ".g\u{200c}it/config",
        ]
        .map(|path| write(&own(path)))
        .to_vec(),
        "P-09" => {
            let (long, deep) = ("n".repeat(300), "d/".repeat(3000));
            let names = [
                "",
                &own(&long),
                &own(&deep),
                &own("inside"),
                &own("inside/file/x"),
                "a\0b",
            ];
            names
                .iter()
                .map(|name| read(name))
                .chain([write(&own("inside")), read(&own("fifo"))])
                .collect()
        }
        _ => return Ok(None),
    };
    refused(inside, calls).await.map(Some)
}

/// Makes calls of which each must be a fault.
async fn refused(inside: &Inside<'_>, calls: Vec<Call>) -> Result<Finding, Error> {
    let n_calls = calls.len();
    let mut worked = Vec::new();
    for call in calls {
        let what = describe(&call);
        match inside.call(call).await? {
            Output::Fault(Fault::BoxEnded { problem }) => {
                return Ok(Finding {
                    held: false,
                    got: problem,
                });
            }
            Output::Fault(_) => {}
            _ => worked.push(what),
        }
    }
    let held = worked.is_empty();
    Ok(Finding {
        held,
        got: if held {
            format!("{n_calls} refused")
        } else {
            format!("worked: {}", worked.join(", "))
        },
    })
}

/// Commands that would start outside of the project.
async fn folders(inside: &Inside<'_>) -> Result<Finding, Error> {
    let mut worked = Vec::new();
    let link = format!("{}/home", inside.folder);
    let folders = ["/proc/self/fd/8", "/proc/1/root", "..", "/", link.as_str()];
    for folder in folders {
        let terms = Terms {
            folder: Some(folder),
            ..inside.terms()
        };
        if inside
            .attack_with("count", &[], &terms)
            .await?
            .ended()
            .is_some()
        {
            worked.push(folder.to_owned());
        }
    }
    let held = worked.is_empty();
    Ok(Finding {
        held,
        got: if held {
            format!("{} refused", folders.len())
        } else {
            format!("started in {}", worked.join(", "))
        },
    })
}

/// What must continue working while all of these are refused.
async fn twin(inside: &Inside<'_>) -> Result<Finding, Error> {
    let path = format!("{}/good/new", inside.folder);
    let written = inside.call(write(&path)).await?;
    let was_read = inside
        .call(read(&format!("{}/good/file", inside.folder)))
        .await?;
    let is_there = matches!(&was_read, Output::Read(read) if read.files.iter().any(|file| file.text == "inside\n"));
    Ok(match (written, is_there) {
        (Output::Written(_), true) => Finding {
            held: true,
            got: "read and written".to_owned(),
        },
        (Output::Fault(fault), _) => Finding {
            held: false,
            got: fault.to_string(),
        },
        _ => Finding {
            held: false,
            got: "what is inside could not be read".to_owned(),
        },
    })
}

fn every_tool(path: &str) -> Vec<Call> {
    let path_bytes = BytesPath::from_text(path);
    let edit = Replacement {
        old_string: "root".to_owned(),
        new_string: "root".to_owned(),
        replace_all: true,
    };
    vec![
        read(path),
        write(path),
        list(path),
        Call::EditFile(EditFile {
            path: path_bytes.clone(),
            edits: vec![edit],
            create_if_missing: false,
            protected: true,
            known: None,
        }),
        Call::Grep(Grep {
            pattern: "root".to_owned(),
            path: path_bytes,
            glob: None,
            include_ignored: false,
            context: 0,
            case_insensitive: false,
            output: GrepOutput::Content,
            max_results: 10,
            timeout_ms: 1000,
            protected: true,
        }),
    ]
}

fn read(path: &str) -> Call {
    Call::ReadFile(ReadFile {
        path: Some(BytesPath::from_bytes(path.as_bytes())),
        offset: 1,
        limit: 10,
        max_bytes: 1000,
        cursor: None,
        max_files: 1,
        images: false,
        protected: true,
    })
}

/// Not allowed to touch protected names, as nobody was asked.
fn write(path: &str) -> Call {
    Call::WriteFile(WriteFile {
        path: BytesPath::from_bytes(path.as_bytes()),
        content: "x\n".to_owned(),
        append: true,
        protected: false,
        known: None,
    })
}

fn list(path: &str) -> Call {
    let path = BytesPath::from_bytes(path.as_bytes());
    Call::ListDirectory(ListDirectory {
        path,
        recursive: false,
        show_hidden: true,
        show_size: false,
        max_entries: 10,
    })
}

fn describe(call: &Call) -> String {
    let (what, path) = match call {
        Call::ReadFile(read) => ("reading", read.path.as_ref()),
        Call::WriteFile(write) => ("writing", Some(&write.path)),
        Call::EditFile(edit) => ("editing", Some(&edit.path)),
        Call::ListDirectory(list) => ("listing", Some(&list.path)),
        Call::Grep(grep) => ("searching", Some(&grep.path)),
        _ => ("a call", None),
    };
    let path: String = path
        .map(BytesPath::to_text)
        .unwrap_or_default()
        .chars()
        .take(60)
        .collect();
    format!("{what} {path}")
}
