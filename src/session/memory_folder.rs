//! Folders of memories: reading all in one, saving one, removing the oldest.

use std::fs;
use std::io::Read;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::time::SystemTime;

use jiff::Timestamp;

use super::Error;
use super::log_file;
use super::memory::MemoryList;
use super::memory::MemoryScope;
use super::memory::SavedMemory;
use super::memory::StoredMemory;
use super::memory_file;
use super::memory_file::FILE_MAX;
use super::state::own;
use podbay_event::Memory;

/// Most memories of a project, and most global ones.
pub(super) const MOST: usize = 20;
/// Most files of a folder that are looked at.
const MOST_FILES: usize = 1000;
/// Most problems that are told of a folder.
const MOST_PROBLEMS: usize = 5;
/// What stands before the name of a proposal.
pub(super) const PROPOSED: &str = "proposed/";
/// What stands before the name of a global memory.
pub(super) const GLOBAL: &str = "global/";

/// A file that is a memory by its name.
struct Entry {
    name: String,
    path: PathBuf,
    modified: SystemTime,
}

/// Reads the memories of some folders.
pub(super) fn read_all<'a>(
    folders: impl Iterator<Item = (MemoryScope, &'a PathBuf)>,
) -> MemoryList {
    let mut list = MemoryList::default();
    for (scope, folder) in folders {
        let mut problems = Vec::new();
        for entry in entries(folder, &mut problems).into_iter().take(MOST) {
            match read(&entry) {
                Ok((memory, problem)) => {
                    problems.extend(problem.map(|problem| about(scope, &entry.name, &problem)));
                    let saved = Timestamp::try_from(entry.modified).unwrap_or_default();
                    list.memories.push(StoredMemory {
                        scope,
                        memory,
                        saved,
                    });
                }
                Err(problem) => problems.push(about(scope, &entry.name, &problem)),
            }
        }
        let more = problems.len().saturating_sub(MOST_PROBLEMS);
        problems.truncate(MOST_PROBLEMS);
        if more > 0 {
            problems.push(format!("and {more} more in `{}`", folder.display()));
        }
        list.problems.append(&mut problems);
    }
    list
}

pub(super) fn no_folder() -> Error {
    Error::BadMemory {
        problem: "this project has no folder here to know it by".to_owned(),
    }
}

pub(super) fn label(scope: MemoryScope, name: &str) -> String {
    match scope {
        MemoryScope::Project => name.to_owned(),
        MemoryScope::Global => format!("{GLOBAL}{name}"),
        MemoryScope::Proposed => format!("{PROPOSED}{name}"),
    }
}

fn about(scope: MemoryScope, name: &str, problem: &str) -> String {
    format!("the memory {}: {problem}", label(scope, name))
}

pub(super) fn save_in(folder: &Path, memory: &Memory) -> Result<SavedMemory, Error> {
    let memory = memory_file::tidy(memory).map_err(|problem| Error::BadMemory { problem })?;
    own(folder)?;
    let path = folder.join(format!("{}.md", memory.name));
    let replaced = fs::symlink_metadata(&path).is_ok();
    write(folder, &path, &memory_file::render(&memory))?;
    let mut pruned = Vec::new();
    let mut others = entries(folder, &mut Vec::new());
    // A clock that was set back does not make this one the oldest.
    others.retain(|entry| entry.name != memory.name);
    for old in others.into_iter().skip(MOST - 1) {
        fs::remove_file(&old.path).map_err(Error::io("remove", &old.path))?;
        pruned.push(old.name);
    }
    Ok(SavedMemory {
        memory,
        replaced,
        pruned,
    })
}

/// Writes a file of a folder as a whole.
pub(super) fn write(folder: &Path, path: &Path, text: &str) -> Result<(), Error> {
    let written = tempfile::NamedTempFile::new_in(folder).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        // The kernel's own time of a file is too coarse to tell which is older.
        file.as_file().set_modified(SystemTime::now())?;
        file.as_file().sync_data()?;
        file.persist(path).map(drop).map_err(|error| error.error)
    });
    written.map_err(Error::io("write", path))
}

/// Returns the files that are memories by their names, the newest first.
fn entries(folder: &Path, problems: &mut Vec<String>) -> Vec<Entry> {
    let Ok(found) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut entries = Vec::new();
    for found in found.take(MOST_FILES).flatten() {
        let path = found.path();
        let file = found.file_name();
        // A file that is being written has a name of this kind.
        if file.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let Some(name) = memory_file::name_of(&path) else {
            problems.push(format!(
                "`{}` is not called like a memory: small letters, digits and hyphens, then .md",
                path.display()
            ));
            continue;
        };
        let modified = found
            .metadata()
            .and_then(|facts| facts.modified())
            .unwrap_or(SystemTime::UNIX_EPOCH);
        entries.push(Entry {
            name: name.to_owned(),
            modified,
            path,
        });
    }
    entries.sort_by(|a, b| b.modified.cmp(&a.modified).then(a.name.cmp(&b.name)));
    entries
}

/// Reads a memory, and says what of it a model is not shown.
fn read(entry: &Entry) -> Result<(Memory, Option<String>), String> {
    let written = memory_file::parse(&read_text(&entry.path)?)?;
    let memory = memory_file::tidy(&written)?;
    if memory.name != entry.name {
        return Err(format!("it calls itself {}", memory.name));
    }
    let is_same = memory.description == written.description.trim()
        && memory.content == written.content.replace("\r\n", "\n").trim();
    let problem = "characters that cannot be seen, or what looks like a key, are left out of it";
    Ok((memory, (!is_same).then(|| problem.to_owned())))
}

pub(super) fn read_text(path: &Path) -> Result<String, String> {
    let file = log_file::open_read(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    file.take(FILE_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    if bytes.len() as u64 > FILE_MAX {
        return Err(format!("it is larger than {FILE_MAX} bytes"));
    }
    String::from_utf8(bytes).map_err(|_| "it is no text in UTF-8".to_owned())
}
