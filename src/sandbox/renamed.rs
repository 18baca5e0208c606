//! Where hidden files of the project went that the person renames while commands work on what is
//! laid over it: they see them there under the new name, and what covers the old one stays in its
//! place, so that nothing tells of it.

use std::fs;
use std::fs::File;
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::path::PathBuf;

/// Files and folders that are hidden from commands, each held so that the kernel tells what it is
/// called.
#[derive(Debug, Default)]
pub(super) struct Renamed(Vec<Held>);

#[derive(Debug)]
struct Held {
    /// From the project's folder.
    path: String,
    file: File,
    /// Where it was, from the root.
    was: PathBuf,
}

impl Renamed {
    /// Watches what has these paths in the project, beside what is watched already.
    pub(super) fn watch(&mut self, project: &Path, hidden: &[String]) {
        for path in hidden {
            if self.0.iter().any(|held| held.path == *path) {
                continue;
            }
            // What is not there now is of the session's own doing.
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

    /// Returns what is called otherwise by now, each with its new path, and is in the project
    /// still.
    pub(super) fn now(&self, project: &Path) -> Vec<(String, String)> {
        let renamed = self.0.iter().filter_map(|held| {
            // One that is gone has no name.
            let is_there = held.file.metadata().is_ok_and(|facts| facts.nlink() > 0);
            let now = name_of(&held.file).filter(|now| is_there && *now != held.was)?;
            // Its name may have become another file's, beside which it is gone.
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
    fn where_a_hidden_file_went_is_told_and_what_editors_do_is_not() {
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
