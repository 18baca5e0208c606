use std::fs::File;
use std::io;
use std::io::Read;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;
use std::os::fd::OwnedFd;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::fcntl::openat;
use nix::sys::stat::Mode;
use nix::sys::stat::mkdirat;
use nix::unistd::Gid;
use nix::unistd::Uid;
use nix::unistd::UnlinkatFlags;
use nix::unistd::unlinkat;

use super::Error;
use super::bench::open_project_at;
use podbay_config as config;
use podbay_config::Config;
use podbay_sandbox::Project;

const FOLDER: &str = ".podbay";
const SETTINGS: &str = "config.toml";
const COMPOSE: &str = ".env";

/// Longest `.env` that is looked into.
const LONGEST: u64 = 64 * 1024;

/// What was done in a project's folder, by paths in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Initialised {
    pub made: Vec<String>,
    /// Was there already, and is as it was.
    pub kept: Vec<String>,
    /// Lines that a `.env` which was there lacks.
    pub to_add: Vec<String>,
    /// What a person should know, each a sentence.
    pub notes: Vec<String>,
}

/// Puts a settings file and a `.env` for compose into a project's folder; whatever is there stays as it is.
///
/// The folder may have come from anybody: no link in it is followed, and a name that is taken is left alone.
pub fn init(path: &Path, state: &Path) -> Result<Initialised, Error> {
    let project = open_project_at(path, state)?;
    let folder = Folder::open(&project)?;
    let mut done = Initialised::default();
    let inner = folder.folder(FOLDER)?;
    let name = format!("{FOLDER}/{SETTINGS}");
    let made = inner.create(SETTINGS, &name, &settings())?;
    if made { &mut done.made } else { &mut done.kept }.push(name);
    let (uid, gid) = project.owner();
    if folder.create(COMPOSE, COMPOSE, &compose(uid, gid))? {
        done.made.push(COMPOSE.to_owned());
    } else {
        done.kept.push(COMPOSE.to_owned());
        compare(folder.read(COMPOSE), uid, gid, &mut done);
    }
    done.notes.push(format!(
        "settings of a project may only make things tighter; `podbay config trust` lets all of `{}` count",
        config::PROJECT_FILE
    ));
    if uid == 0 {
        done.notes.push("the folder belongs to root, so commands in the sandbox run as uid 0; give it to a user to avoid that".to_owned());
    }
    Ok(done)
}

/// Returns the settings file: everything there is, and nothing set.
fn settings() -> String {
    format!(
        "# Settings of Podbay for this project. Every line is a comment that shows a default: take a `#` away to change one.\n\
         #\n\
         # What makes things tighter counts: lower limits, rules that deny, fewer tools. All else counts once you have run\n\
         # `podbay config trust`, and again after each change. What should hold for all projects goes into\n\
         # ~/.config/podbay/config.toml. In the sandbox this folder is read-only.\n\n{}",
        config::template::<Config>()
    )
}

fn compose(uid: u32, gid: u32) -> String {
    format!(
        "# Read by docker compose, not by Podbay itself.\n\
         # Whom this folder belongs to: what the sandbox writes belongs to the same.\n\
         PODBAY_UID={uid}\n\
         PODBAY_GID={gid}\n\
         # The folder to work on. Default: the one that compose.yaml lies in.\n\
         #PODBAY_PROJECT=.\n\
         # A path in it that is mounted read-only; a project without a `.git` names any file of its own.\n\
         #PODBAY_GIT=.git\n\
         # The model to serve, by its name in `podbay models list`.\n\
         #PODBAY_MODEL=smollm2-135m\n"
    )
}

/// Says what a `.env` that was there lacks. Nothing else in it is shown: such files hold secrets.
fn compare(text: Option<String>, uid: u32, gid: u32, done: &mut Initialised) {
    let wanted = [("PODBAY_UID", uid), ("PODBAY_GID", gid)];
    let Some(text) = text else {
        done.notes.push(format!("{COMPOSE} is no plain file of moderate size, so it was not looked into"));
        done.to_add.extend(wanted.iter().map(|(name, id)| format!("{name}={id}")));
        return;
    };
    let set = super::dotenv::read(&text);
    for (name, id) in wanted {
        // Of several the last one counts.
        match set.iter().rfind(|(key, _)| key == name) {
            None => done.to_add.push(format!("{name}={id}")),
            Some((_, value)) if *value == id.to_string() => {}
            Some(_) => done.notes.push(format!("{name} in {COMPOSE} is not {id}, whom this folder belongs to")),
        }
    }
}

/// A folder that new files go into, held open: nobody can swap it for another meanwhile.
struct Folder {
    fd: OwnedFd,
    /// Whom it belongs to, where this is root: what is made is theirs.
    owner: Option<(Uid, Gid)>,
}

impl Folder {
    fn open(project: &Project) -> Result<Self, Error> {
        let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let fd = nix::fcntl::open(project.path(), flags, Mode::empty()).map_err(failed("open the project folder"))?;
        let (uid, gid) = project.owner();
        let owner = nix::unistd::geteuid().is_root().then(|| (Uid::from_raw(uid), Gid::from_raw(gid)));
        Ok(Self { fd, owner })
    }

    /// Opens the folder of this name, and makes it where there is none.
    fn folder(&self, name: &str) -> Result<Self, Error> {
        let made = match mkdirat(&self.fd, name, Mode::from_bits_truncate(0o755)) {
            Ok(()) => true,
            Err(Errno::EEXIST) => false,
            Err(error) => return Err(failed(&format!("make the folder {name}"))(error)),
        };
        let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let fd = openat(&self.fd, name, flags, Mode::empty()).map_err(|error| match error {
            Errno::ELOOP | Errno::ENOTDIR => Error::usage(
                format!("`{name}` in the project is a link or a file, and settings belong into a folder of that name"),
                format!("move it away: mv {name} {name}.old"),
            ),
            error => failed(&format!("open the folder {name}"))(error),
        })?;
        if made {
            self.give(fd.as_fd()).map_err(failed(&format!("give the folder {name} to the project's owner")))?;
        }
        Ok(Self { fd, owner: self.owner })
    }

    /// Makes a file; returns false where its name is taken, by whatever it may be.
    fn create(&self, name: &str, shown: &str, text: &str) -> Result<bool, Error> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let fd = match openat(&self.fd, name, flags, Mode::from_bits_truncate(0o644)) {
            Ok(fd) => fd,
            Err(Errno::EEXIST) => return Ok(false),
            Err(error) => return Err(failed(&format!("make {shown}"))(error)),
        };
        let mut file = File::from(fd);
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).and_then(|()| Ok(self.give(file.as_fd())?));
        if let Err(source) = written {
            // Half a file would be left alone the next time.
            let _ = unlinkat(&self.fd, name, UnlinkatFlags::NoRemoveDir);
            return Err(Error::Io { doing: format!("write {shown}"), source });
        }
        Ok(true)
    }

    /// Reads a plain file that is not large.
    fn read(&self, name: &str) -> Option<String> {
        // Without waiting: the name may be a pipe's.
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let file = File::from(openat(&self.fd, name, flags, Mode::empty()).ok()?);
        let facts = file.metadata().ok()?;
        if !facts.is_file() || facts.len() > LONGEST {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(LONGEST).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn give(&self, to: BorrowedFd<'_>) -> Result<(), Errno> {
        match self.owner {
            Some((uid, gid)) => nix::unistd::fchown(to, Some(uid), Some(gid)),
            None => Ok(()),
        }
    }
}

fn failed(doing: &str) -> impl Fn(Errno) -> Error {
    let doing = doing.to_owned();
    move |error| Error::Io { doing: doing.clone(), source: io::Error::from(error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: Option<&str>, to_add: &[&str], n_notes: usize) {
        let mut done = Initialised::default();
        compare(text.map(str::to_owned), 1000, 100, &mut done);
        assert_eq!(
            (done.to_add.as_slice(), done.notes.len()),
            (to_add.iter().map(ToString::to_string).collect::<Vec<_>>().as_slice(), n_notes)
        );
        assert!(!format!("{done:?}").contains("sesame"), "nothing of the file is shown");
    }

    #[test]
    fn a_file_that_was_there_is_compared_and_not_shown() {
        check(Some(""), &["PODBAY_UID=1000", "PODBAY_GID=100"], 0);
        check(Some("PASSWORD=sesame\nPODBAY_UID=1000"), &["PODBAY_GID=100"], 0);
        check(Some("export PODBAY_UID = \"1000\"\nPODBAY_GID='100'\n"), &[], 0);
        check(Some("PODBAY_UID=5\nPODBAY_UID=1000\nPODBAY_GID=sesame\n"), &[], 1);
        check(Some("#PODBAY_UID=1000\nXPODBAY_GID=100\n"), &["PODBAY_UID=1000", "PODBAY_GID=100"], 0);
        check(Some("PODBAY_UID=1000 # mine\nPODBAY_GID=\"100\"  # the group's\n"), &[], 0);
        check(Some("SECRET='sesame\nPODBAY_UID=5\nPODBAY_GID=5\n'\nPODBAY_UID=1000\nPODBAY_GID=100"), &[], 0);
        check(None, &["PODBAY_UID=1000", "PODBAY_GID=100"], 1);
    }

    #[test]
    fn the_file_for_compose_has_what_compare_asks_for() {
        let mut done = Initialised::default();
        compare(Some(compose(7, 8)), 7, 8, &mut done);
        assert_eq!(done, Initialised::default());
    }
}
