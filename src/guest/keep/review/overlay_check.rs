//! Checks that an overlay really is over the project.
//!
//! The engine finds the project's folder by its path, which may have been replaced by a link at
//! that very moment. Unchanged files show through from the lower layer with their inode numbers;
//! the session's own files lie in the upper one.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;

use podbay_wire::keep::SeenCopy;

/// Most files that are compared.
const ENOUGH: u32 = 64;

/// Most entries that are visited for that.
const MOST_ENTRIES: u32 = 4_000;

/// Returns the identity of the copy, if there is one, and whether it is over the project.
pub(in crate::keep) fn seen(project: &Path, copy: &Path, upper: &Path) -> Option<SeenCopy> {
    let facts = fs::symlink_metadata(copy).ok()?;
    let is_of_project = is_over(project, copy, upper).unwrap_or(false);
    Some(SeenCopy {
        identity: (facts.dev(), facts.ino()),
        is_of_project,
    })
}

fn is_over(project: &Path, copy: &Path, upper: &Path) -> io::Result<bool> {
    let (mut n_same, mut n_other, mut n_entries) = (0, 0, 0);
    for entry in fs::read_dir(copy)? {
        let name = entry?.file_name();
        if !is_there(&upper.join(&name)) && !is_there(&project.join(&name)) {
            n_other += 1;
        }
    }
    let mut folders = VecDeque::from([PathBuf::new()]);
    while let Some(folder) = folders.pop_front() {
        for entry in fs::read_dir(project.join(&folder))? {
            let path = folder.join(entry?.file_name());
            n_entries += 1;
            if n_same >= ENOUGH || n_entries > MOST_ENTRIES {
                return Ok(n_same > n_other);
            }
            if is_there(&upper.join(&path)) {
                continue;
            }
            let (below, above) = (
                fs::symlink_metadata(project.join(&path))?,
                fs::symlink_metadata(copy.join(&path)),
            );
            match above {
                Ok(above) if below.is_dir() && above.is_dir() => folders.push_back(path),
                Ok(above) if below.ino() == above.ino() => n_same += 1,
                _ => n_other += 1,
            }
        }
    }
    // Files may be saved at this very moment; but that all of them differ is no coincidence.
    Ok(n_other == 0 || n_same > n_other)
}

fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates an entry that shows through with a hard link.
    fn through(from: &Path, to: &Path) {
        fs::create_dir_all(to.parent().expect("a folder")).expect("made");
        fs::hard_link(from, to).expect("linked");
    }

    #[test]
    fn an_overlay_over_another_folder_is_detected() {
        let folder = tempfile::tempdir().expect("a folder");
        let [project, copy, upper, other] =
            ["project", "copy", "upper", "other"].map(|name| folder.path().join(name));
        for folder in [&project, &copy, &upper, &other] {
            fs::create_dir_all(folder.join("src")).expect("made");
        }
        fs::remove_dir(upper.join("src")).expect("removed");
        let is = |expected: bool| {
            assert_eq!(is_over(&project, &copy, &upper).expect("looked"), expected);
        };
        is(true);
        for name in ["a", "src/b", "src/c"] {
            fs::write(project.join(name), "x").expect("written");
            fs::write(other.join(name), "x").expect("written");
        }
        for name in ["a", "src/b", "src/c"] {
            through(&other.join(name), &copy.join(name));
        }
        is(false);
        for name in ["a", "src/b", "src/c"] {
            fs::remove_file(copy.join(name)).expect("removed");
            through(&project.join(name), &copy.join(name));
        }
        is(true);
        fs::write(copy.join("strange"), "x").expect("written");
        for name in ["a", "src/b", "src/c"] {
            fs::remove_file(copy.join(name)).expect("removed");
        }
        is(false);
        // The session removed the files and made another one.
        for name in ["a", "strange", "src"] {
            fs::write(upper.join(name), "").expect("written");
        }
        is(true);
    }
}
