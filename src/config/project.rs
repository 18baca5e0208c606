use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::fcntl::openat;
use nix::sys::stat::Mode;
use sha2::Digest;
use sha2::Sha256;

use super::Error;
use super::document::OTHER_FORMS;

/// The path of a project's settings file.
pub const PROJECT_FILE: &str = ".podbay/config.toml";
const FOLDER: &str = ".podbay";
const NAME: &str = "config.toml";

/// Most bytes of a project's settings file, which is untrusted.
const LONGEST: u64 = 64 << 10;

/// How a folder and a file of a project are opened: through no link, and without waiting.
const AS_FOLDER: OFlag = OFlag::O_PATH
    .union(OFlag::O_DIRECTORY)
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);
const AS_FILE: OFlag = OFlag::O_RDONLY
    .union(OFlag::O_NONBLOCK)
    .union(OFlag::O_NOCTTY)
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);

/// The settings file of a project, read once: the same bytes are shown, hashed and used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectFile {
    path: PathBuf,
    text: String,
}

impl ProjectFile {
    /// Reads the file of a project folder; `None` if it has none.
    ///
    /// The folder is untrusted, and a command may be changing it: each path component is opened
    /// separately, no symlink is followed, and opening a FIFO does not block.
    pub fn read(project: &Path) -> Result<Option<Self>, Error> {
        let opened = nix::fcntl::open(project, AS_FOLDER, Mode::empty())
            .and_then(|project| openat(project, FOLDER, AS_FOLDER, Mode::empty()))
            .map_err(|error| {
                if error == Errno::ENOTDIR && project.join(FOLDER).is_symlink() {
                    Errno::ELOOP
                } else {
                    error
                }
            });
        let names = std::iter::once(NAME.to_owned()).chain(
            OTHER_FORMS.map(|end| Path::new(NAME).with_extension(end).display().to_string()),
        );
        let mut path = project.join(PROJECT_FILE);
        let opened = opened.and_then(|inner| {
            let (mut found, mut second) = (Err(Errno::ENOENT), None);
            for name in names {
                match (
                    openat(&inner, name.as_str(), AS_FILE, Mode::empty()),
                    &found,
                ) {
                    (Err(Errno::ENOENT), _) => {}
                    (other, Err(Errno::ENOENT)) => {
                        path.set_file_name(name);
                        found = other;
                    }
                    _ => second = Some(name),
                }
            }
            found.map(|fd| (fd, second))
        });
        if let Ok((_, Some(second))) = &opened {
            let second = path.with_file_name(second);
            return Err(Error::TwoForms {
                first: path,
                second,
            });
        }
        Self::open(path, opened.map(|(fd, _)| fd))
    }

    /// Reads a file of the project's top folder that names something to be run; `None` if there is
    /// none. It is read like the settings file.
    pub fn read_top(project: &Path, name: &str) -> Result<Option<Self>, Error> {
        let opened = nix::fcntl::open(project, AS_FOLDER, Mode::empty())
            .and_then(|project| openat(project, name, AS_FILE, Mode::empty()));
        Self::open(project.join(name), opened)
    }

    /// Reads a file that was opened, if it is one that may be read.
    fn open(path: PathBuf, opened: Result<OwnedFd, Errno>) -> Result<Option<Self>, Error> {
        let refuse = |problem: &str| Error::Project {
            path: path.clone(),
            problem: problem.to_owned(),
        };
        let file = match opened {
            Ok(fd) => File::from(fd),
            Err(Errno::ENOENT | Errno::ENOTDIR) => return Ok(None),
            Err(Errno::ELOOP) => {
                return Err(refuse("it is, or is reached through, a symbolic link"));
            }
            Err(Errno::ENXIO) => return Err(refuse("it is not a regular file")),
            Err(error) => {
                return Err(Error::Read {
                    path,
                    source: error.into(),
                });
            }
        };
        let failed = |source| Error::Read {
            path: path.clone(),
            source,
        };
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(refuse("it is not a regular file"));
        }
        let mut bytes = Vec::new();
        file.take(LONGEST + 1)
            .read_to_end(&mut bytes)
            .map_err(failed)?;
        if bytes.len() as u64 > LONGEST {
            return Err(refuse(
                "it is longer than the 64 KiB that settings may have",
            ));
        }
        let text = String::from_utf8(bytes).map_err(|_| refuse("it is not UTF-8"))?;
        Ok(Some(Self { path, text }))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the SHA-256 of its bytes, in hexadecimal.
    pub fn hash(&self) -> String {
        hash(&self.text)
    }
}

pub(super) fn hash(text: &str) -> String {
    Sha256::digest(text.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[track_caller]
    fn refused(project: &Path, because: &str) {
        let error = ProjectFile::read(project).expect_err("must be refused");
        assert!(error.to_string().contains(because), "{error}");
        assert!(!error.hint().is_empty(), "{error}");
    }

    #[test]
    fn only_a_regular_file_inside_the_project_is_read() {
        let temp = tempfile::tempdir().expect("a folder");
        let (project, elsewhere) = (temp.path().join("project"), temp.path().join("elsewhere"));
        fs::create_dir_all(&project).expect("made");
        fs::create_dir_all(&elsewhere).expect("made");
        fs::write(elsewhere.join(NAME), "offline = true\n").expect("written");
        assert_eq!(
            ProjectFile::read(&project).expect("no file is no fault"),
            None
        );
        let folder = project.join(FOLDER);
        fs::write(&folder, "").expect("written");
        assert_eq!(
            ProjectFile::read(&project).expect("a file has none below it"),
            None
        );
        fs::remove_file(&folder).expect("removed");
        symlink(&elsewhere, &folder).expect("linked");
        refused(&project, "symbolic link");
        fs::remove_file(&folder).expect("removed");
        fs::create_dir(&folder).expect("made");
        let file = folder.join(NAME);
        symlink(elsewhere.join(NAME), &file).expect("linked");
        refused(&project, "symbolic link");
        fs::remove_file(&file).expect("removed");
        nix::unistd::mkfifo(&file, Mode::S_IRWXU).expect("a pipe");
        refused(&project, "not a regular file");
        fs::remove_file(&file).expect("removed");
        let listener = UnixListener::bind(&file).expect("a socket");
        refused(&project, "not a regular file");
        drop(listener);
        fs::remove_file(&file).expect("removed");
        fs::create_dir(&file).expect("made");
        refused(&project, "not a regular file");
        fs::remove_dir(&file).expect("removed");
        fs::write(&file, "#".repeat((64 << 10) + 1)).expect("written");
        refused(&project, "64 KiB");
        fs::write(&file, b"\xff").expect("written");
        refused(&project, "UTF-8");
        fs::write(&file, "#".repeat(64 << 10)).expect("written");
        let read = ProjectFile::read(&project)
            .expect("reads")
            .expect("is there");
        assert_eq!((read.text().len(), read.path()), (64 << 10, file.as_path()));
        let other = folder.join("config.yaml");
        fs::write(&other, "offline: true\n").expect("written");
        let two = ProjectFile::read(&project).expect_err("which one?");
        assert!(two.to_string().contains("config.yaml"), "{two}");
        fs::remove_file(&file).expect("removed");
        let read = ProjectFile::read(&project)
            .expect("reads")
            .expect("is there");
        assert_eq!(
            (read.text(), read.path()),
            ("offline: true\n", other.as_path())
        );
        fs::remove_file(&other).expect("removed");
        fs::write(&file, "").expect("written");
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(
            ProjectFile::read(&project)
                .expect("reads")
                .expect("is there")
                .hash(),
            empty
        );
    }
}
