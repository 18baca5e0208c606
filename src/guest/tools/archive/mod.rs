//! `archive`: packs files, unpacks archives, lists their contents.
//!
//! An archive is untrusted. Every name in it is checked before the first file is created, and an
//! odd one refuses the whole archive. Unpacked bytes are counted, whatever sizes it declares.
//! Everything is unpacked into a temporary folder first, so that all of it appears or nothing.
//! Existing files are never replaced.

mod names;
mod pack;
mod read;
mod unpack;

use std::sync::atomic::AtomicBool;

use super::Workspace;
use super::contents::MAX_COPY;
use super::invalid;
use super::stop::Stop;
use super::target_entry::refused;
use podbay_wire::Archive;
use podbay_wire::ArchiveAction;
use podbay_wire::BytesPath;
use podbay_wire::DirectoryEntry;
use podbay_wire::DirectoryListing;
use podbay_wire::EntryKind;
use podbay_wire::Fault;
use podbay_wire::LeftOut;
use podbay_wire::Output;

/// Most files and folders in an archive.
const MAX_ENTRIES: u64 = 10_000;
/// Most bytes of all its files together, and of the archive.
const MAX_BYTES: u64 = MAX_COPY;

/// Remedies: for a valid archive that this tool does not unpack, and for a damaged one.
const WITH_BASH: &str = "nothing was unpacked; extract what you need with bash (tar, unzip)";
const GET_WHOLE: &str = "inspect it with bash (ls -l, file), then download or create it again";

/// Format of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArchiveKind {
    Zip,
    Tar,
    TarGz,
}

impl ArchiveKind {
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
                "does not end in .zip, .tar, .tar.gz or .tgz; for other formats use bash",
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
    let kind = ArchiveKind::of(&call.archive)?;
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
    kind: ArchiveKind,
    stop: &Stop<'_>,
) -> Result<DirectoryListing, Fault> {
    let file = read::open(workspace, call)?;
    let mut entries = Vec::new();
    let mut n = 0_u64;
    read::each(&call.archive, file, kind, stop, &mut |entry, _| {
        n += 1;
        if entries.len() < call.max_entries as usize {
            let (kind, target) = match entry.what {
                read::EntryContent::File { .. } => (EntryKind::File, None),
                read::EntryContent::Folder => (EntryKind::Directory, None),
                read::EntryContent::Link { target } => {
                    (EntryKind::Link, Some(BytesPath::from_bytes(target)))
                }
            };
            let bytes = (kind == EntryKind::File).then_some(entry.bytes);
            // The name as written, so that an odd one is seen before unpacking; of a folder without
            // the trailing slash.
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
