use std::collections::VecDeque;
use std::ffi::OsStr;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Component;
use std::path::Path;
use std::path::PathBuf;

use super::Error;
use podbay_wire::BytesPath;

/// System folders: a mistake there would hit more than a project.
const SYSTEM: [&str; 16] = [
    "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/proc", "/root", "/run", "/sbin",
    "/sys", "/usr", "/var", "/opt", "/tmp",
];

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
/// Places in them where people do keep sources. Homes of services, such as a CI server's in
/// `/var/lib`, are not in the list above.
const SOURCES: [&str; 3] = ["/usr/src", "/usr/local/src", "/usr/home"];

/// Most bytes of a file `.git` that are looked at: a word and the longest path that the kernel
/// takes.
const GIT_FILE: u64 = 4200;

/// Most links that are followed from there, as in the kernel.
const MOST_LINKS: u32 = 40;

fn is_below_system(path: &Path) -> bool {
    let in_sources = SOURCES
        .iter()
        .any(|tree| path.starts_with(tree) && path != Path::new(tree));
    !in_sources && SYSTEM_TREES.iter().any(|tree| path.starts_with(tree))
}

/// A folder that a sandbox may have as its `/workspace`.
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
    /// `home` is the user's home folder and `state` Podbay's own: neither it nor a parent of it
    /// may be a project.
    pub fn open(path: &Path, home: Option<&Path>, state: &Path) -> Result<Self, Error> {
        let refuse = |problem: String, hint: &str| Error::Project {
            path: path.to_owned(),
            problem,
            hint: (!hint.is_empty()).then(|| hint.to_owned()),
        };
        let real = fs::canonicalize(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => refuse(
                "it does not exist".to_owned(),
                "check the path, or make the folder first",
            ),
            std::io::ErrorKind::PermissionDenied => refuse(
                "it cannot be reached: permission denied".to_owned(),
                "run as the user it belongs to",
            ),
            _ => refuse(error.to_string(), ""),
        })?;
        let facts = fs::metadata(&real).map_err(|error| refuse(error.to_string(), ""))?;
        if !facts.is_dir() {
            return Err(refuse(
                "it is not a folder".to_owned(),
                "name the folder that holds the file",
            ));
        }
        let Some(text) = real.to_str().map(ToOwned::to_owned) else {
            // The engine's API is JSON: it would mount, and make, another folder than this one.
            return Err(refuse(
                "its path is not UTF-8".to_owned(),
                "rename the folder, or bind it to a path with a plain name (`mount --bind`)",
            ));
        };
        if text == "/" {
            return Err(refuse(
                "it is the root of the file system".to_owned(),
                "name a project folder: -C DIR",
            ));
        }
        let home = home.and_then(|home| fs::canonicalize(home).ok());
        if home.as_deref() == Some(&real) {
            return Err(refuse(
                "it is your home folder, with keys and settings in it".to_owned(),
                "name a project folder in it: -C DIR",
            ));
        }
        if home.is_some_and(|home| home.starts_with(&real)) {
            return Err(refuse(
                "your home folder is in it".to_owned(),
                "name a project folder: -C DIR",
            ));
        }
        if SYSTEM.contains(&text.as_str()) || is_below_system(&real) {
            return Err(refuse(
                "it belongs to the system".to_owned(),
                "name a project folder: -C DIR",
            ));
        }
        let state = fs::canonicalize(state).unwrap_or_else(|_| state.to_owned());
        if state.starts_with(&real) || real.starts_with(&state) {
            return Err(refuse(
                "Podbay keeps its own state there".to_owned(),
                "set PODBAY_HOME to a folder outside of the project",
            ));
        }
        let git = fs::symlink_metadata(real.join(".git"));
        if git.is_ok_and(|git| git.is_symlink()) {
            // What a link leads to can be protected, the link itself cannot: replaced by a folder,
            // it would run on the host at the next `git status`.
            let hint = "put a file `.git` in its place that holds one line, `gitdir: PATH`, where PATH lies outside of the project: git reads it \
                        the same way";
            return Err(refuse(
                "its `.git` is a symbolic link, which cannot be protected".to_owned(),
                hint,
            ));
        }
        if fs::symlink_metadata(real.join(".git")).is_ok_and(|git| !git.is_dir() && !git.is_file())
        {
            // It is no repository, and no project has one by chance; whoever made it may wait for
            // what is read from it.
            let problem = "its `.git` is neither a folder nor a file: git cannot use it";
            return Err(refuse(
                problem.to_owned(),
                "look at who made it, and remove it",
            ));
        }
        match git_folder(&real) {
            Ok(Some(folder)) if leads_inside(&folder, &real, (facts.dev(), facts.ino())) => {
                // Only the file would be protected, and not the repository that git finds by it.
                let problem = format!(
                    "its file `.git` names a folder inside of the project, which would not be protected: {}",
                    folder.display()
                );
                let hint = "move that folder into the place of the file `.git`, or out of the project; or name a worktree of it: -C DIR";
                return Err(refuse(problem, hint));
            }
            Ok(_) => {}
            Err(error) => {
                return Err(refuse(
                    format!("its file `.git` cannot be read: {error}"),
                    "remove it, or change its mode",
                ));
            }
        }
        fs::read_dir(&real).map_err(|error| {
            refuse(
                format!("it cannot be read: {error}"),
                "run as the user it belongs to, or change its mode",
            )
        })?;
        if facts.mode() & 0o500 != 0o500 {
            // Commands in the sandbox run as the owner, without any right to pass over a mode.
            return Err(refuse(
                "its owner may not read or enter it".to_owned(),
                "change its mode: chmod u+rx DIR",
            ));
        }
        Ok(Self {
            path: real,
            text,
            device: facts.dev(),
            inode: facts.ino(),
            uid: facts.uid(),
            gid: facts.gid(),
        })
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
        key(self.identity())
    }

    /// Returns whether a folder that was known by this path and key is still there.
    pub(super) fn is_there(path: &str, known: &str) -> bool {
        fs::metadata(path)
            .is_ok_and(|facts| facts.is_dir() && key((facts.dev(), facts.ino())) == known)
    }

    /// Returns whether its owner may write in it, which is what commands in the sandbox run as.
    pub fn is_writable(&self) -> bool {
        let Ok(facts) = fs::metadata(&self.path) else {
            return false;
        };
        let read_only = nix::sys::statvfs::statvfs(&self.path).is_ok_and(|file_system| {
            file_system
                .flags()
                .contains(nix::sys::statvfs::FsFlags::ST_RDONLY)
        });
        facts.mode() & 0o200 != 0 && !read_only
    }

    /// Returns the names in its top folder as the guest reports them: sorted, the first `most`.
    pub fn names(&self, most: usize) -> Vec<BytesPath> {
        let mut names: Vec<BytesPath> = fs::read_dir(&self.path)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| BytesPath::from(entry.file_name()))
            .collect();
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

/// Returns the folder that a file `.git` names, as git reads it; `None` where there is no such
/// file, or one that git refuses.
pub(super) fn git_folder(project: &Path) -> io::Result<Option<PathBuf>> {
    let path = project.join(".git");
    if !fs::symlink_metadata(&path).is_ok_and(|facts| facts.is_file()) {
        return Ok(None);
    }
    // It may be something else by now: no link is followed and no pipe waited for.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
    let file = fs::OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Ok(None);
    }
    let mut text = Vec::new();
    file.take(GIT_FILE + 1).read_to_end(&mut text)?;
    let Some(named) = text.strip_prefix(b"gitdir: ") else {
        return Ok(None);
    };
    if text.len() as u64 > GIT_FILE {
        return Err(io::Error::other("it is longer than a path can be"));
    }
    let named = named.split(|&byte| byte == 0).next().unwrap_or_default();
    let end = named
        .iter()
        .rposition(|byte| !b"\r\n".contains(byte))
        .map_or(0, |last| last + 1);
    Ok((end > 0).then(|| PathBuf::from(OsStr::from_bytes(&named[..end]))))
}

/// Returns whether a path, seen from a project, leads to it, or anywhere below it on the way: what
/// is there can be replaced by a command, and what is not there yet can be made by one.
fn leads_inside(path: &Path, project: &Path, identity: (u64, u64)) -> bool {
    let parts = |path: &Path| -> Vec<OsString> {
        path.components()
            .map(|part| part.as_os_str().to_owned())
            .collect()
    };
    // By inode, because a folder may have several paths.
    let is_project = |at: &Path| {
        at == project
            || fs::symlink_metadata(at).is_ok_and(|facts| (facts.dev(), facts.ino()) == identity)
    };
    let mut at = project.to_owned();
    let mut waiting = VecDeque::from(parts(path));
    let mut n_links = 0;
    while let Some(part) = waiting.pop_front() {
        match Path::new(&part).components().next() {
            Some(Component::RootDir) => at = PathBuf::from("/"),
            Some(Component::ParentDir) => {
                at.pop();
            }
            Some(Component::Normal(name)) => {
                if is_project(&at) {
                    return true;
                }
                let next = at.join(name);
                let Ok(target) = fs::read_link(&next) else {
                    at = next;
                    continue;
                };
                n_links += 1;
                if n_links > MOST_LINKS {
                    // Git gets nowhere either.
                    return false;
                }
                for part in parts(&target).into_iter().rev() {
                    waiting.push_front(part);
                }
            }
            Some(Component::CurDir | Component::Prefix(_)) | None => {}
        }
    }
    is_project(&at)
}

fn key((device, inode): (u64, u64)) -> String {
    format!("{device}-{inode}")
}

#[cfg(test)]
mod tests {
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
        for name in ["with-fifo", "with-socket"] {
            fs::create_dir(at(name)).expect("made");
        }
        nix::unistd::mkfifo(&at("with-fifo/.git"), nix::sys::stat::Mode::S_IRUSR).expect("made");
        let _listens =
            std::os::unix::net::UnixListener::bind(at("with-socket/.git")).expect("bound");
        refused(
            &at("with-fifo"),
            &home,
            &state,
            "neither a folder nor a file",
        );
        refused(
            &at("with-socket"),
            &home,
            &state,
            "neither a folder nor a file",
        );
        fs::create_dir(at("closed")).expect("made");
        fs::set_permissions(
            at("closed"),
            std::os::unix::fs::PermissionsExt::from_mode(0o000),
        )
        .expect("closed");
        refused(&at("closed"), &home, &state, "may not read");
        refused(&odd, &home, &state, "not UTF-8");
        refused(&at("sub"), &home, &at("sub/podbay"), "its own state");
        let project =
            Project::open(&at("home/me/code"), Some(&home), &state).expect("a good folder");
        assert!(project.is_writable());
    }

    #[test]
    fn a_git_file_may_only_name_a_folder_outside() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = fs::canonicalize(folder.path()).expect("a path");
        let project = root.join("project");
        fs::create_dir_all(project.join("repo/.git")).expect("made");
        fs::create_dir_all(root.join("main/.git/worktrees/project")).expect("made");
        std::os::unix::fs::symlink(root.join("main/.git"), project.join("out")).expect("linked");
        std::os::unix::fs::symlink("../project/repo", root.join("main/back")).expect("linked");
        let check = |named: &str, is_refused: bool| {
            fs::write(project.join(".git"), format!("gitdir: {named}\n")).expect("written");
            let opened = Project::open(&project, None, Path::new("/nonexistent"));
            let is_named = opened
                .as_ref()
                .is_err_and(|error| error.to_string().contains("inside of the project"));
            assert_eq!(
                (is_named, opened.is_err()),
                (is_refused, is_refused),
                "{named}"
            );
        };
        for inside in [
            "repo/.git",
            "./repo/.git\r",
            "not/there/yet",
            "../project/repo/.git",
            "out",
            ".",
            "../main/back/.git",
        ] {
            check(inside, true);
        }
        check(&project.join("repo/.git").display().to_string(), true);
        check("../main/.git/worktrees/project", false);
        check(
            &root
                .join("main/.git/worktrees/project")
                .display()
                .to_string(),
            false,
        );
        check("../main/not-there", false);
        fs::write(project.join(".git"), "no word that git knows").expect("written");
        assert!(Project::open(&project, None, Path::new("/nonexistent")).is_ok());
        fs::write(
            project.join(".git"),
            format!("gitdir: /{}", "x".repeat(5000)),
        )
        .expect("written");
        refused(
            &project,
            Path::new("/nonexistent"),
            Path::new("/nonexistent"),
            "longer than a path",
        );
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
