//! Whether a path still leads to what was opened, looked at component by component.

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

/// Where a path leads astray, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Astray {
    pub at: PathBuf,
    pub problem: String,
}

/// Walks to the project, and refuses to continue if what is there is not the folder that was opened.
pub(super) fn check(project: &Project) -> Result<(), Error> {
    walk(project.path(), project.identity()).map_err(|Astray { at, problem }| Error::Moved {
        path: project.path().to_owned(),
        at,
        problem,
    })
}

/// Walks from the project's folder to one in it, and refuses one that is none any more: the engine
/// is about to mount it onto itself.
pub(super) fn check_below(project: &Project, folder: &str) -> Result<(), Error> {
    let path = project.path().join(folder);
    let gone = || Error::Uncovered {
        path: folder.to_owned(),
    };
    let facts = std::fs::symlink_metadata(&path).map_err(|_| gone())?;
    if !facts.is_dir() {
        return Err(gone());
    }
    walk(&path, (facts.dev(), facts.ino())).map_err(|_| gone())
}

/// Walks from the root to a file or folder without following a link; `identity` is its device and
/// inode from when it was opened.
///
/// The path had no links when it was opened, so that one that is on it now took a folder's place.
/// The engine looks the path up once more, later: of a project it is seen from inside the sandbox what
/// became of it in between.
pub fn walk(path: &Path, identity: (u64, u64)) -> Result<(), Astray> {
    let astray = |at: &Path, problem: String| Astray {
        at: at.to_owned(),
        problem,
    };
    let mut at = PathBuf::from("/");
    let mut here: OwnedFd = File::open(&at)
        .map_err(|error| astray(&at, error.to_string()))?
        .into();
    let mut parts = path
        .components()
        .filter_map(|part| {
            if let Component::Normal(name) = part {
                Some(name)
            } else {
                None
            }
        })
        .peekable();
    while let Some(name) = parts.next() {
        at.push(name);
        // The last one may be a file. A link is then opened itself, and known by what it is.
        let kind = if parts.peek().is_some() {
            OFlag::O_DIRECTORY
        } else {
            OFlag::empty()
        };
        let flags = kind | OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        here = openat(&here, name, flags, Mode::empty())
            .map_err(|errno| astray(&at, why(&at, &errno.into())))?;
    }
    let facts = File::from(here)
        .metadata()
        .map_err(|error| astray(&at, error.to_string()))?;
    match (facts.dev(), facts.ino()) == identity {
        true => Ok(()),
        false if facts.is_symlink() => Err(astray(&at, LINK.to_owned())),
        false if facts.is_dir() => Err(astray(&at, "another folder is there".to_owned())),
        false => Err(astray(&at, "another file is there".to_owned())),
    }
}

const LINK: &str = "a symbolic link is there";

fn why(at: &Path, error: &io::Error) -> String {
    if at.is_symlink() {
        LINK.to_owned()
    } else {
        error.to_string()
    }
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
        let project = Project::open(&at("shortcut/project"), None, Path::new("/nonexistent"))
            .expect("a project");
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

    #[test]
    fn a_file_is_walked_to_like_a_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = fs::canonicalize(folder.path()).expect("a path");
        let file = root.join("model");
        fs::write(&file, "x").expect("written");
        let facts = fs::metadata(&file).expect("there");
        let identity = (facts.dev(), facts.ino());
        walk(&file, identity).expect("nothing has changed");
        fs::rename(&file, root.join("other")).expect("moved");
        let refused = |expected: &str| {
            assert!(
                walk(&file, identity)
                    .expect_err("must be refused")
                    .problem
                    .contains(expected)
            );
        };
        refused("No such file");
        symlink(root.join("other"), &file).expect("linked");
        refused("a symbolic link is there");
        fs::remove_file(&file).expect("removed");
        fs::write(&file, "x").expect("written");
        refused("another file is there");
        fs::remove_file(&file).expect("removed");
        fs::create_dir(&file).expect("made");
        refused("another folder is there");
        let below = file.join("below");
        assert_eq!(
            walk(&below, identity).expect_err("must be refused").at,
            below
        );
    }
}
