//! Tracks masked files that the user renames while commands work on a copy-on-write view: commands
//! see them under the new name, and the mask of the old name stays, so nothing else tells of it.

use std::fs;
use std::fs::File;
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::path::PathBuf;

/// Masked files and folders, each held open so that the kernel tells its present name.
#[derive(Debug, Default)]
pub(super) struct Renamed(Vec<Held>);

#[derive(Debug)]
struct Held {
    /// Relative to the project.
    path: String,
    file: File,
    /// Its path from the root when it was opened.
    was: PathBuf,
}

impl Renamed {
    /// Watches these paths of the project, in addition to those watched already.
    pub(super) fn watch(&mut self, project: &Path, hidden: &[String]) {
        for path in hidden {
            if self.0.iter().any(|held| held.path == *path) {
                continue;
            }
            // A missing path was created by the session itself.
            let opened = OpenOptions::new()
                .read(true)
                .custom_flags(libc::O_PATH | libc::O_NOFOLLOW)
                .open(project.join(path));
            let Ok(file) = opened else { continue };
            if let Some(was) = name_of(&file) {
                self.0.push(Held {
                    path: path.clone(),
                    file,
                    was,
                });
            }
        }
    }

    /// Returns the files that were renamed within the project, with old and new paths.
    pub(super) fn now(&self, project: &Path) -> Vec<(String, String)> {
        let renamed = self.0.iter().filter_map(|held| {
            // A deleted file has no name.
            let is_there = held.file.metadata().is_ok_and(|facts| facts.nlink() > 0);
            let now = name_of(&held.file).filter(|now| is_there && *now != held.was)?;
            // Its name may belong to another file by now.
            let is_it = fs::symlink_metadata(&now).is_ok_and(|there| {
                held.file
                    .metadata()
                    .is_ok_and(|facts| (there.dev(), there.ino()) == (facts.dev(), facts.ino()))
            });
            let within = now.strip_prefix(project).ok().filter(|_| is_it)?;
            Some((held.path.clone(), within.to_string_lossy().into_owned()))
        });
        renamed.collect()
    }
}

fn name_of(file: &File) -> Option<PathBuf> {
    fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renames_of_masked_files_are_found_and_editor_saves_are_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = fs::canonicalize(folder.path()).expect("a path");
        let project = root.join("project");
        fs::create_dir_all(project.join("conf")).expect("made");
        let names = [
            ".env",
            "conf/.env",
            "kept.env",
            "gone.env",
            "saved.env",
            "out.env",
        ];
        for name in names {
            fs::write(project.join(name), "A=1").expect("written");
        }
        let mut renamed = Renamed::default();
        renamed.watch(&project, &names.map(ToOwned::to_owned));
        renamed.watch(&project, &["later.env".to_owned(), ".env".to_owned()]);
        assert_eq!(renamed.now(&project), []);
        fs::rename(project.join(".env"), project.join("env.txt")).expect("renamed");
        fs::rename(project.join("conf"), project.join("old")).expect("renamed");
        fs::remove_file(project.join("gone.env")).expect("removed");
        fs::write(project.join("new"), "A=2").expect("written");
        fs::rename(project.join("new"), project.join("saved.env")).expect("renamed");
        fs::rename(project.join("out.env"), root.join("out.env")).expect("renamed");
        fs::write(project.join(".env"), "A=3").expect("written");
        let pair = |was: &str, now: &str| (was.to_owned(), now.to_owned());
        assert_eq!(
            renamed.now(&project),
            [pair(".env", "env.txt"), pair("conf/.env", "old/.env")]
        );
        fs::rename(project.join("old"), project.join("conf")).expect("renamed");
        assert_eq!(renamed.now(&project), [pair(".env", "env.txt")]);
    }
}
