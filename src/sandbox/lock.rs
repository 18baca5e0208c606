use std::fs;
use std::fs::File;
use std::fs::OpenOptions;
use std::fs::TryLockError;
use std::io;
use std::io::Read;
use std::io::Seek;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use super::Error;
use super::Project;
use super::Socket;

/// How often it is looked who holds a lock, and how long in between.
const ASKED: u32 = 20;
const PAUSE: Duration = Duration::from_millis(10);

/// Says that one live controller is at work in a project; it ends with the process, however that
/// ends.
///
/// The file is named by the folder's device and inode: two paths to one folder are one project. The
/// file itself stays, because removing it would let two processes hold locks on two files of the
/// same name.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Lock {
    /// Takes the lock of a project, or says who has it.
    pub fn take(folder: &Path, project: &Project) -> Result<Self, Error> {
        Self::take_named(folder, &project.key(), |pid, since| Error::Busy {
            path: project.path().to_owned(),
            pid,
            since,
        })
    }

    /// Takes the lock of a sandbox that Podbay did not start. Who has it may be in another
    /// container, where its number means nothing.
    pub fn take_socket(folder: &Path, socket: &Socket) -> Result<Self, Error> {
        Self::take_named(folder, &socket.key(), |_, since| Error::BusySocket {
            socket: socket.path().to_owned(),
            since,
        })
    }

    /// Takes the lock of what one session changes that waits to be accepted.
    pub fn take_review(folder: &Path, name: &str) -> Result<Self, Error> {
        Self::take_named(folder, &format!("review-{name}"), |pid, since| {
            Error::BusyReview {
                name: name.to_owned(),
                pid,
                since,
            }
        })
    }

    fn take_named(
        folder: &Path,
        key: &str,
        busy: impl FnOnce(u32, String) -> Error,
    ) -> Result<Self, Error> {
        let path = folder.join(format!("{key}.lock"));
        let failed = |source| Error::Lock {
            path: path.clone(),
            source,
        };
        fs::create_dir_all(folder).map_err(failed)?;
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let (pid, since) = holder(&mut file).map_err(failed)?;
                return Err(busy(pid, since));
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        let now = jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M:%S UTC");
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{} {now}", std::process::id()))
            .map_err(failed)?;
        Ok(Self { file })
    }

    /// Gives it back before the process ends.
    pub fn release(self) {
        drop(self.file);
    }
}

/// Returns who holds the lock, and since when; 0 where nobody can tell.
///
/// Whoever has just taken it may not have written that yet, and what stands there is then of one
/// who is gone.
fn holder(file: &mut File) -> io::Result<(u32, String)> {
    for _ in 0..ASKED {
        let mut text = String::new();
        file.rewind()?;
        file.read_to_string(&mut text)?;
        if let Some((pid, since)) = text
            .strip_suffix('\n')
            .and_then(|line| line.split_once(' '))
            && let Ok(pid) = pid.parse()
            && Path::new(&format!("/proc/{pid}")).exists()
        {
            return Ok((pid, since.to_owned()));
        }
        std::thread::sleep(PAUSE);
    }
    Ok((0, "just now".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_who_holds_it_and_gets_it_afterwards() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("project");
        fs::create_dir(&place).expect("made");
        let project = Project::open(&place, None, Path::new("/nonexistent")).expect("a project");
        let locks = folder.path().join("locks");
        let first = Lock::take(&locks, &project).expect("free");
        match Lock::take(&locks, &project) {
            Err(Error::Busy { pid, .. }) => assert_eq!(pid, std::process::id()),
            other => panic!("{other:?}"),
        }
        first.release();
        Lock::take(&locks, &project).expect("free again");
    }

    #[test]
    fn one_who_has_not_said_its_number_yet_is_no_process_to_be_killed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("review-x.lock");
        // None is ever given such a number.
        for text in ["", "4194305 2026-01-01 00:00:00 UTC\n", "12"] {
            fs::write(&path, text).expect("written");
            let first = File::open(&path).expect("there");
            first.lock().expect("free");
            let error = Lock::take_review(folder.path(), "x").expect_err("it is taken");
            assert!(
                matches!(error, Error::BusyReview { pid: 0, .. }),
                "{text:?}: {error:?}"
            );
            let hint = error.hint().expect("a hint");
            assert!(
                !hint.contains("kill") && !error.to_string().contains("process 0"),
                "{error}: {hint}"
            );
        }
    }
}
