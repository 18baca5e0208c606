//! `archive`: packs files, takes them out, says what is in an archive.
//!
//! An archive is foreign text. Every name in it is looked at before the first file is made, and
//! anything odd refuses the whole of it; what comes out of it is counted, whatever it says of its
//! size; and it all goes to a folder without a name first, so that nothing is there or everything.
//! Nothing that is there is replaced.

mod names;
mod pack;
mod read;
mod unpack;

use std::sync::atomic::AtomicBool;

use super::Workspace;
use super::contents::MAX_COPY;
use super::invalid;
use super::spot::refused;
use super::stop::Stop;
use podbay_wire::Archive;
use podbay_wire::ArchiveAction;
use podbay_wire::BytesPath;
use podbay_wire::DirectoryEntry;
use podbay_wire::DirectoryListing;
use podbay_wire::EntryKind;
use podbay_wire::Fault;
use podbay_wire::LeftOut;
use podbay_wire::Output;

/// Files and folders that an archive may hold.
const MAX_ENTRIES: u64 = 10_000;
/// Bytes of all files in it together, and of the archive.
const MAX_BYTES: u64 = MAX_COPY;

/// What can be done about an archive that is good and is not taken out here, and about one that is
/// not good.
const WITH_BASH: &str = "nothing was unpacked; take out what you need of it with bash (tar, unzip)";
const GET_WHOLE: &str = "look what it is with bash (ls -l, file), and get or make it anew";

/// How an archive is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Zip,
    Tar,
    TarGz,
}

impl Kind {
    fn of(path: &BytesPath) -> Result<Self, Fault> {
        let name = path.to_text().to_ascii_lowercase();
        let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
        if ends(&[".zip", ".jar", ".whl"]) {
            Ok(Self::Zip)
        } else if ends(&[".tar"]) {
            Ok(Self::Tar)
        } else if ends(&[".tar.gz", ".tgz"]) {
            Ok(Self::TarGz)
        } else {
            Err(invalid(
                "archive_path",
                "ends in none of .zip, .tar, .tar.gz and .tgz; for other kinds use bash",
            ))
        }
    }
}

pub(super) fn run(
    workspace: &Workspace,
    call: &Archive,
    stop: &AtomicBool,
) -> Result<Output, Fault> {
    let stop = &Stop::new(stop, None);
    let kind = Kind::of(&call.archive)?;
    match &call.action {
        ArchiveAction::List => list(workspace, call, kind, stop).map(Output::Listing),
        ArchiveAction::Create { source } => {
            pack::run(workspace, call, kind, source, stop).map(Output::Changed)
        }
        ArchiveAction::Extract { into } => {
            unpack::run(workspace, call, kind, into, stop).map(Output::Changed)
        }
    }
}

fn list(
    workspace: &Workspace,
    call: &Archive,
    kind: Kind,
    stop: &Stop<'_>,
) -> Result<DirectoryListing, Fault> {
    let file = read::open(workspace, call)?;
    let mut entries = Vec::new();
    let mut n = 0_u64;
    read::each(&call.archive, file, kind, stop, &mut |entry, _| {
        n += 1;
        if entries.len() < call.max_entries as usize {
            let (kind, target) = match entry.what {
                read::What::File { .. } => (EntryKind::File, None),
                read::What::Folder => (EntryKind::Directory, None),
                read::What::Link { target } => {
                    (EntryKind::Link, Some(BytesPath::from_bytes(target)))
                }
            };
            let bytes = (kind == EntryKind::File).then_some(entry.bytes);
            // As it is written, so that an odd name is seen before anything is taken out; but of a
            // folder without the slash that its kind says.
            let name = if kind == EntryKind::Directory {
                entry.name.strip_suffix(b"/").unwrap_or(&entry.name)
            } else {
                &entry.name
            };
            entries.push(DirectoryEntry {
                path: BytesPath::from_bytes(name),
                kind,
                bytes,
                target,
            });
        }
        Ok(())
    })?;
    let omitted = n - entries.len() as u64;
    Ok(DirectoryListing {
        path: call.archive.clone(),
        entries,
        omitted: Some(omitted),
        truncated: omitted > 0,
        n_unreadable: 0,
        left_out: LeftOut::default(),
    })
}

fn too_many(path: &BytesPath) -> Fault {
    refused(
        path,
        format!(
            "holds more than {MAX_ENTRIES} files and folders; use bash for archives of this size"
        ),
    )
}

fn too_large(path: &BytesPath) -> Fault {
    refused(
        path,
        format!(
            "holds more than {} MiB when unpacked; use bash for archives of this size",
            MAX_BYTES >> 20
        ),
    )
}
