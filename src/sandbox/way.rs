//! Whether a project's path still leads to it, looked at component by component.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Component;
use std::path::Path;
use std::path::PathBuf;

use nix::fcntl::OFlag;
use nix::fcntl::openat;
use nix::sys::stat::Mode;

use super::Error;
use super::Project;

/// Walks from the root to the project without following a link, and refuses to go on if what is there is not the folder that was opened.
///
/// The path had no links when it was opened, so that one that is on it now took a folder's place. The engine looks the path up once more,
/// later: what becomes of it in between is seen from inside the box.
pub(super) fn check(project: &Project) -> Result<(), Error> {
    let moved = |at: &Path, problem: String| Error::Moved { path: project.path().to_owned(), at: at.to_owned(), problem };
    let mut at = PathBuf::from("/");
    let mut folder: OwnedFd = File::open(&at).map_err(|error| moved(&at, error.to_string()))?.into();
    for part in project.path().components() {
        let Component::Normal(name) = part else { continue };
        at.push(name);
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        folder = openat(&folder, name, flags, Mode::empty()).map_err(|errno| moved(&at, why(&at, &errno.into())))?;
    }
    let facts = File::from(folder).metadata().map_err(|error| moved(&at, error.to_string()))?;
    if (facts.dev(), facts.ino()) == project.identity() { Ok(()) } else { Err(moved(&at, "another folder is there".to_owned())) }
}

fn why(at: &Path, error: &io::Error) -> String {
    if at.is_symlink() { "a symbolic link is there".to_owned() } else { error.to_string() }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_path_that_leads_elsewhere_by_now_is_refused_at_the_component() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| fs::canonicalize(folder.path()).expect("a path").join(name);
        fs::create_dir_all(at("work/project/sub")).expect("made");
        fs::create_dir_all(at("secret/project")).expect("made");
        symlink(at("work"), at("shortcut")).expect("linked");
        // Reached by a link, as many a home folder is, it is known by its real path from then on.
        let project = Project::open(&at("shortcut/project"), None, Path::new("/nonexistent")).expect("a project");
        check(&project).expect("nothing has changed");
        fs::write(at("work/project/file"), "x").expect("written");
        check(&project).expect("nor does what is in it matter");

        let refused = |expected: &str| {
            let error = check(&project).expect_err("must be refused").to_string();
            assert!(error.contains(expected), "{error}");
        };
        fs::rename(at("work"), at("moved")).expect("moved");
        refused("/work`: No such file");
        symlink(at("secret"), at("work")).expect("linked");
        refused("/work`: a symbolic link is there");
        // Even one that leads to the very same folder: where it leads can change.
        fs::remove_file(at("work")).expect("removed");
        symlink(at("moved"), at("work")).expect("linked");
        refused("/work`: a symbolic link is there");
        fs::remove_file(at("work")).expect("removed");
        fs::rename(at("secret"), at("work")).expect("moved");
        refused("/work/project`: another folder is there");
        fs::remove_dir(at("work/project")).expect("removed");
        symlink(at("moved/project"), at("work/project")).expect("linked");
        refused("/work/project`: a symbolic link is there");
        fs::remove_dir_all(at("work")).expect("removed");
        fs::rename(at("moved"), at("work")).expect("moved back");
        check(&project).expect("it is back");
    }
}
