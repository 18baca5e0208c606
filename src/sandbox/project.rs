use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;

use super::Error;
use crate::wire::BytesPath;

/// System folders: a mistake there would hit more than a project.
const SYSTEM: [&str; 16] =
    ["/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/proc", "/root", "/run", "/sbin", "/sys", "/usr", "/var", "/opt", "/tmp"];

/// Folders of the system whose sub-folders are no projects either.
const SYSTEM_TREES: [&str; 18] = [
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/proc",
    "/sbin",
    "/sys",
    "/usr",
    "/var/cache",
    "/var/lib/apt",
    "/var/lib/containerd",
    "/var/lib/docker",
    "/var/lib/dpkg",
    "/var/log",
    "/var/spool",
];
/// Places in them where people do keep sources. Homes of services, such as a CI server's in `/var/lib`, are not in the list above.
const SOURCES: [&str; 3] = ["/usr/src", "/usr/local/src", "/usr/home"];

fn is_below_system(path: &Path) -> bool {
    let in_sources = SOURCES.iter().any(|tree| path.starts_with(tree) && path != Path::new(tree));
    !in_sources && SYSTEM_TREES.iter().any(|tree| path.starts_with(tree))
}

/// A folder that a box may have as its `/workspace`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// Absolute, without links.
    path: PathBuf,
    text: String,
    device: u64,
    inode: u64,
    uid: u32,
    gid: u32,
}

impl Project {
    /// Looks at a folder and refuses what must not be handed to a model.
    ///
    /// `home` is the person's home folder and `state` Podbay's own: neither it nor a parent of it may be a project.
    pub fn open(path: &Path, home: Option<&Path>, state: &Path) -> Result<Self, Error> {
        let refuse = |problem: String, hint: &str| Error::Project {
            path: path.to_owned(),
            problem,
            hint: (!hint.is_empty()).then(|| hint.to_owned()),
        };
        let real = fs::canonicalize(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => refuse("it does not exist".to_owned(), "check the path, or make the folder first"),
            std::io::ErrorKind::PermissionDenied => {
                refuse("it cannot be reached: permission denied".to_owned(), "run as the user it belongs to")
            }
            _ => refuse(error.to_string(), ""),
        })?;
        let facts = fs::metadata(&real).map_err(|error| refuse(error.to_string(), ""))?;
        if !facts.is_dir() {
            return Err(refuse("it is not a folder".to_owned(), "name the folder that holds the file"));
        }
        let Some(text) = real.to_str().map(ToOwned::to_owned) else {
            // The engine's API is JSON: it would mount, and make, another folder than this one.
            return Err(refuse(
                "its path is not UTF-8".to_owned(),
                "rename the folder, or bind it to a path with a plain name (`mount --bind`)",
            ));
        };
        if text == "/" {
            return Err(refuse("it is the root of the file system".to_owned(), "name a project folder: -C DIR"));
        }
        let home = home.and_then(|home| fs::canonicalize(home).ok());
        if home.as_deref() == Some(&real) {
            return Err(refuse("it is your home folder, with keys and settings in it".to_owned(), "name a project folder in it: -C DIR"));
        }
        if home.is_some_and(|home| home.starts_with(&real)) {
            return Err(refuse("your home folder is in it".to_owned(), "name a project folder: -C DIR"));
        }
        if SYSTEM.contains(&text.as_str()) || is_below_system(&real) {
            return Err(refuse("it belongs to the system".to_owned(), "name a project folder: -C DIR"));
        }
        let state = fs::canonicalize(state).unwrap_or_else(|_| state.to_owned());
        if state.starts_with(&real) || real.starts_with(&state) {
            return Err(refuse("Podbay keeps its own state there".to_owned(), "set PODBAY_HOME to a folder outside of the project"));
        }
        let git = fs::symlink_metadata(real.join(".git"));
        if git.is_ok_and(|git| git.is_symlink()) {
            // What a link leads to can be protected, the link itself cannot: replaced by a folder, it would run on the host at the next
            // `git status`.
            let hint = "put a file `.git` in its place that holds one line, `gitdir: PATH`: git reads it the same way";
            return Err(refuse("its `.git` is a symbolic link, which cannot be protected".to_owned(), hint));
        }
        fs::read_dir(&real)
            .map_err(|error| refuse(format!("it cannot be read: {error}"), "run as the user it belongs to, or change its mode"))?;
        if facts.mode() & 0o500 != 0o500 {
            // Commands in the sandbox run as the owner, without any right to pass over a mode.
            return Err(refuse("its owner may not read or enter it".to_owned(), "change its mode: chmod u+rx DIR"));
        }
        Ok(Self { path: real, text, device: facts.dev(), inode: facts.ino(), uid: facts.uid(), gid: facts.gid() })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path as the engine is told it.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn owner(&self) -> (u32, u32) {
        (self.uid, self.gid)
    }

    /// Returns device and inode, which name the folder whatever it is called.
    pub fn identity(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// Returns the identity as labels and lock files have it.
    pub fn key(&self) -> String {
        format!("{}-{}", self.device, self.inode)
    }

    /// Returns whether its owner may write in it, which is what commands in the box run as.
    pub fn is_writable(&self) -> bool {
        let Ok(facts) = fs::metadata(&self.path) else { return false };
        let read_only = nix::sys::statvfs::statvfs(&self.path)
            .is_ok_and(|file_system| file_system.flags().contains(nix::sys::statvfs::FsFlags::ST_RDONLY));
        facts.mode() & 0o200 != 0 && !read_only
    }

    /// Returns the names in its top folder as the guest reports them: sorted, the first `most`.
    pub fn names(&self, most: usize) -> Vec<BytesPath> {
        let mut names: Vec<BytesPath> =
            fs::read_dir(&self.path).into_iter().flatten().flatten().map(|entry| BytesPath::from(entry.file_name())).collect();
        names.sort();
        names.truncate(most);
        names
    }

    /// Returns whether it has a folder of settings of its own.
    pub fn has_settings(&self) -> bool {
        fs::symlink_metadata(self.path.join(".podbay")).is_ok()
    }

    /// Returns whether there is a `.git` of any kind at its top.
    pub fn has_git(&self) -> bool {
        fs::symlink_metadata(self.path.join(".git")).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[track_caller]
    fn refused(path: &Path, home: &Path, state: &Path, because: &str) {
        let error = Project::open(path, Some(home), state).expect_err("must be refused");
        assert!(error.to_string().contains(because), "{error}");
        assert!(error.is_usage());
    }

    #[test]
    fn what_must_not_be_a_project_is_refused_with_its_reason() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        for name in ["home/me/code", "state", "sub/podbay"] {
            fs::create_dir_all(at(name)).expect("made");
        }
        fs::write(at("file"), "x").expect("written");
        let odd = folder.path().join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
        fs::create_dir(&odd).expect("made");
        let (home, state) = (at("home/me"), at("state"));
        refused(&at("absent"), &home, &state, "does not exist");
        refused(&at("file"), &home, &state, "not a folder");
        refused(Path::new("/"), &home, &state, "root of the file system");
        refused(&home, &home, &state, "home folder");
        refused(&at("home"), &home, &state, "home folder is in it");
        refused(Path::new("/etc"), &home, &state, "system");
        refused(Path::new("/proc/self"), &home, &state, "system");
        refused(Path::new("/usr/lib"), &home, &state, "system");
        refused(Path::new("/var/log"), &home, &state, "system");
        std::os::unix::fs::symlink("/elsewhere/.git", at("linked-git")).expect("linked");
        fs::create_dir(at("with-link")).expect("made");
        fs::rename(at("linked-git"), at("with-link/.git")).expect("moved");
        refused(&at("with-link"), &home, &state, "symbolic link");
        fs::create_dir(at("closed")).expect("made");
        fs::set_permissions(at("closed"), std::os::unix::fs::PermissionsExt::from_mode(0o000)).expect("closed");
        refused(&at("closed"), &home, &state, "may not read");
        refused(&odd, &home, &state, "not UTF-8");
        refused(&at("sub"), &home, &at("sub/podbay"), "its own state");
        let project = Project::open(&at("home/me/code"), Some(&home), &state).expect("a good folder");
        assert!(project.is_writable());
    }

    #[test]
    fn a_link_to_the_home_folder_is_the_home_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = folder.path().join("home");
        fs::create_dir(&home).expect("made");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&home, &link).expect("linked");
        refused(&link, &home, Path::new("/nonexistent"), "home folder");
    }
}
