//! The state folder: whose it is, and whether what is written there lasts.

use std::fs;
use std::io;
use std::io::ErrorKind;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::check::Check;
use super::check::Group;
use super::engine::Room;
use podbay_session::State;

const GROUP: Group = Group::State;

/// Below this not even a session's log has room.
const FULL: u64 = 64 << 20;
/// Below this no model has.
const NEARLY_FULL: u64 = 1 << 30;

/// Looks at the folder without leaving anything in it.
pub(super) fn look(path: &Path) -> Vec<Check> {
    let me = nix::unistd::geteuid().as_raw();
    let shown = path.display();
    let facts = match fs::symlink_metadata(path) {
        Ok(facts) => facts,
        Err(error) if error.kind() == ErrorKind::NotFound => return vec![missing(path)],
        Err(error) => {
            return vec![Check::fail(
                GROUP,
                "folder",
                format!("{shown} cannot be looked at: {error}"),
                "check the folders above it, or set PODBAY_HOME",
            )];
        }
    };
    let elsewhere =
        || "set PODBAY_HOME to a folder of your own; what lies there is left alone".to_owned();
    let folder = owner(path, &facts, me, elsewhere).unwrap_or_else(|| {
        State::FOLDERS
            .iter()
            .map(|name| path.join(name))
            .find_map(|part| {
                fs::symlink_metadata(&part)
                    .ok()
                    .and_then(|facts| owner(&part, &facts, me, || away(&part)))
            })
            .unwrap_or_else(|| Check::ok(GROUP, "folder", shown.to_string()))
    });
    let mut checks = vec![folder];
    if !facts.is_dir() {
        return checks;
    }
    checks.push(match write(path) {
        Ok(()) => Check::ok(
            GROUP,
            "writing",
            "files can be written, brought to the disk and locked",
        ),
        Err((doing, error)) => unwritable("writing", path, doing, &error),
    });
    if let Ok(room) = Room::of(path) {
        let remedy = "make room there, or set PODBAY_HOME to a folder on another disk; `models` in it holds the largest files";
        checks.push(room.judge(GROUP, &shown.to_string(), FULL, NEARLY_FULL, remedy));
    }
    checks
}

/// Returns the remedy for what is in the place of one of our own folders; what somebody named by
/// `PODBAY_HOME` may be any file of the machine's.
fn away(path: &Path) -> String {
    format!(
        "move it away, or set PODBAY_HOME to a folder of your own: mv '{0}' '{0}.old'",
        path.display()
    )
}

/// Returns what is wrong with a folder's owner, kind or mode; a run refuses the same. `instead` is
/// the remedy for what is not a folder.
fn owner(
    path: &Path,
    facts: &fs::Metadata,
    me: u32,
    instead: impl Fn() -> String,
) -> Option<Check> {
    let shown = path.display();
    if facts.is_symlink() {
        return Some(Check::fail(
            GROUP,
            "folder",
            format!("{shown} is a link, and what is behind it may change hands"),
            instead(),
        ));
    }
    if !facts.is_dir() {
        return Some(Check::fail(
            GROUP,
            "folder",
            format!("{shown} is not a folder"),
            instead(),
        ));
    }
    if facts.uid() != me {
        let detail = format!(
            "{shown} belongs to uid {}, and you are uid {me}",
            facts.uid()
        );
        return Some(Check::fail(
            GROUP,
            "folder",
            detail,
            format!(
                "was a run started with sudo? sudo chown -R {me} '{shown}', or set PODBAY_HOME"
            ),
        ));
    }
    if facts.mode() & 0o077 != 0 {
        let detail = format!(
            "{shown} has mode {:03o}: others can look into it",
            facts.mode() & 0o777
        );
        return Some(Check::warn(
            GROUP,
            "folder",
            detail,
            format!("the next run closes it; chmod 700 '{shown}' does so now"),
        ));
    }
    None
}

/// Judges a folder that is not there yet: a run will make it, where that can be done.
///
/// Modes alone do not tell: on a read-only file system, or among the kernel's own files, they let
/// root do everything.
fn missing(path: &Path) -> Check {
    let above = path
        .ancestors()
        .skip(1)
        .find(|above| fs::symlink_metadata(above).is_ok())
        .unwrap_or(Path::new("/"));
    // A link to nowhere is there, and no folder can be made behind it.
    let tried = match fs::metadata(above) {
        Ok(facts) if facts.is_dir() => write(above),
        Ok(_) => Err(("make a folder", ErrorKind::NotADirectory.into())),
        Err(error) => Err(("make a folder", error)),
    };
    match tried {
        Ok(()) => Check::ok(
            GROUP,
            "folder",
            format!(
                "{} is not there yet; the first run makes it",
                path.display()
            ),
        ),
        Err((doing, error)) => {
            let found = unwritable("folder", above, doing, &error);
            Check {
                detail: format!("{} cannot be made: {}", path.display(), found.detail),
                ..found
            }
        }
    }
}

/// Tries what a session needs, on a file without a name: nothing of it stays, however this ends.
fn write(path: &Path) -> Result<(), (&'static str, io::Error)> {
    let mut file = tempfile::tempfile_in(path).map_err(|error| ("make a file", error))?;
    file.write_all(&[0; 4096])
        .map_err(|error| ("write", error))?;
    file.sync_data()
        .map_err(|error| ("bring what is written to the disk (fdatasync)", error))?;
    file.try_lock()
        .map_err(|error| ("lock a file", error.into()))
}

fn unwritable(name: &'static str, path: &Path, doing: &str, error: &io::Error) -> Check {
    let remedy = match error.kind() {
        ErrorKind::ReadOnlyFilesystem => {
            "its file system is read-only: set PODBAY_HOME to a folder on another one"
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "make room on its disk, or set PODBAY_HOME to a folder on another one"
        }
        ErrorKind::PermissionDenied => {
            "give yourself the right to write there (chmod u+rwx), or set PODBAY_HOME"
        }
        // Nobody can give a folder to the kernel's own file systems, nor behind a link to nowhere.
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            "set PODBAY_HOME to a folder that you can write to"
        }
        _ => "set PODBAY_HOME to a folder on a local disk",
    };
    Check::fail(
        GROUP,
        name,
        format!("cannot {doing} in {}: {error}", path.display()),
        remedy,
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::doctor::Status;

    #[track_caller]
    fn check(path: &Path, status: Status, words: &str) {
        let checks = look(path);
        let worst = checks
            .iter()
            .max_by_key(|check| check.status)
            .expect("a check");
        assert_eq!(worst.status, status, "{checks:?}");
        let all = checks
            .iter()
            .map(|check| {
                format!(
                    "{} {}\n",
                    check.detail,
                    check.remedy.clone().unwrap_or_default()
                )
            })
            .collect::<String>();
        assert!(all.contains(words), "`{words}` is missing: {all}");
    }

    #[test]
    fn a_folder_of_one_s_own_is_fine_and_nothing_is_left_in_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        check(&at("absent/podbay"), Status::Ok, "not there yet");
        fs::create_dir(at("state")).expect("made");
        fs::set_permissions(at("state"), fs::Permissions::from_mode(0o700)).expect("ours");
        check(&at("state"), Status::Ok, "brought to the disk");
        assert_eq!(fs::read_dir(at("state")).expect("a folder").count(), 0);
        assert!(!at("absent").exists(), "what is looked for is not made");
        fs::set_permissions(at("state"), fs::Permissions::from_mode(0o755)).expect("ours");
        check(&at("state"), Status::Warn, "mode 755");
    }

    #[test]
    fn what_is_no_folder_of_one_s_own_fails() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "").expect("written");
        check(
            &at("file"),
            Status::Fail,
            "is not a folder set PODBAY_HOME to a folder of your own; what lies there is left alone",
        );
        symlink(folder.path(), at("link")).expect("linked");
        check(&at("link"), Status::Fail, "is a link");
        fs::create_dir(at("state")).expect("made");
        fs::set_permissions(at("state"), fs::Permissions::from_mode(0o700)).expect("ours");
        fs::write(at("state/models"), "").expect("written");
        check(&at("state"), Status::Fail, "is not a folder move it away");
        check(
            Path::new("/proc/version/podbay"),
            Status::Fail,
            "cannot be looked at",
        );
        check(
            &at("file").join("podbay"),
            Status::Fail,
            "cannot be looked at",
        );
        let facts = fs::symlink_metadata(folder.path()).expect("facts");
        let other = owner(folder.path(), &facts, facts.uid() + 1, || {
            away(folder.path())
        })
        .expect("another's");
        assert!(
            other.status == Status::Fail
                && other.remedy.is_some_and(|remedy| remedy.contains("chown"))
        );
        let full = unwritable(
            "writing",
            folder.path(),
            "write",
            &io::Error::from(ErrorKind::StorageFull),
        );
        assert!(
            full.status == Status::Fail
                && full
                    .remedy
                    .is_some_and(|remedy| remedy.starts_with("make room"))
        );
    }

    #[test]
    fn what_a_run_could_not_make_fails_whatever_its_modes_say() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        // Root may write into both, and no folder can be made in either.
        check(
            Path::new("/proc/nope/x"),
            Status::Fail,
            "cannot be made: cannot make a file in /proc: ",
        );
        check(Path::new("/proc/nope/x"), Status::Fail, "set PODBAY_HOME");
        symlink(at("nowhere"), at("dangling")).expect("linked");
        check(
            &at("dangling/podbay"),
            Status::Fail,
            "cannot be made: cannot make a folder in ",
        );
        assert_eq!(
            fs::read_dir(folder.path()).expect("a folder").count(),
            1,
            "nothing is left behind"
        );
        let read_only = unwritable(
            "folder",
            folder.path(),
            "make a file",
            &io::Error::from(ErrorKind::ReadOnlyFilesystem),
        );
        assert!(
            read_only.status == Status::Fail
                && read_only
                    .remedy
                    .is_some_and(|remedy| remedy.contains("read-only"))
        );
    }
}
