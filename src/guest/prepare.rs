//! Prepares the volumes of a sandbox that compose keeps: done once, by uid 0 without any
//! capability.
//!
//! A fresh volume belongs to root. Root needs no capability to write its own files, so no owner is
//! changed: the program stays root's, as it must, and folders that others use get the mode of
//! `/tmp`.

use std::fs;
use std::fs::File;
use std::io;
use std::io::Read;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Name of the program in its folder.
const PROGRAM: &str = "podbay";

/// Name of the empty file that keeps an opened volume from being empty.
const OPENED: &str = ".opened-by-podbay";

/// Random bytes of a key.
const KEY_BYTES: usize = 32;

/// Copies this program into a folder: readable only by its owner, executable by all, and with its
/// name only when it is complete.
pub(super) fn install(folder: &Path) -> io::Result<()> {
    let failed = |error: io::Error| {
        io::Error::new(
            error.kind(),
            format!("put the program into {}: {error}", folder.display()),
        )
    };
    let part = folder.join(format!("{PROGRAM}.new"));
    let copy = || {
        match fs::remove_file(&part) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        // The path may have been replaced meanwhile; this link leads to the running file.
        let mut from = File::open("/proc/self/exe")?;
        let mut to = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&part)?;
        io::copy(&mut from, &mut to)?;
        to.set_permissions(fs::Permissions::from_mode(0o711))?;
        to.sync_all()?;
        fs::rename(&part, folder.join(PROGRAM))
    };
    copy().map_err(failed)
}

/// Lets all users of a volume create files in it, but not remove those of others.
pub(super) fn open(folder: &Path) -> io::Result<()> {
    let failed = |error: io::Error| {
        io::Error::new(error.kind(), format!("open {}: {error}", folder.display()))
    };
    fs::set_permissions(folder, fs::Permissions::from_mode(0o1777)).map_err(failed)?;
    if fs::read_dir(folder).map_err(failed)?.next().is_none() {
        // The engine resets the mode of an empty volume to that of its mount point each time.
        fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o444)
            .open(folder.join(OPENED))
            .map_err(failed)?;
    }
    Ok(())
}

/// Opens a folder like [`open`], unless a folder of the user's own is mounted in place of a volume:
/// its mode is the user's decision, also where it is root's. Compose takes a source for a path only
/// by its first characters.
pub(super) fn open_volume(source: &str, folder: &Path) -> io::Result<()> {
    if source.starts_with(['/', '.', '~']) {
        Ok(())
    } else {
        open(folder)
    }
}

/// Refuses a path that belongs to another user than the one the services run as: none of them could
/// use it. A missing path is created for them; root's was placed there by hand.
pub(super) fn check(path: &Path, uid: u32) -> io::Result<()> {
    let owner = match fs::symlink_metadata(path) {
        Ok(facts) => facts.uid(),
        // A folder of the user's own may be closed to all others.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
            ) =>
        {
            return Ok(());
        }
        Err(error) => {
            return Err(io::Error::new(
                error.kind(),
                format!("look at {}: {error}", path.display()),
            ));
        }
    };
    if [0, uid].contains(&owner) {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "{} belongs to uid {owner}, and PODBAY_UID is {uid} now: it was changed after the volumes were made.\n\
         hint: set PODBAY_UID={owner} again, or remove the volumes with `docker compose down -v`, the loaded models and all sessions with \
         them; docs/guides/compose.md (\"Another owner\") says how to keep those, and what to do with a folder of your own",
        path.display()
    )))
}

/// Creates a key file that only its owner can read, unless it exists.
pub(super) fn key(file: &Path) -> io::Result<()> {
    let failed = |error: io::Error| {
        io::Error::new(
            error.kind(),
            format!("write the key {}: {error}", file.display()),
        )
    };
    if fs::symlink_metadata(file).is_ok_and(|facts| facts.is_file() && facts.len() > 0) {
        return Ok(());
    }
    let write = || {
        let mut bytes = [0; KEY_BYTES];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut out = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(file)?;
        writeln!(out, "{text}")?;
        out.sync_all()
    };
    write().map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_owner_is_reported_with_both_ids_and_a_remedy() {
        let file = std::env::temp_dir().join(format!("podbay-check-{}", std::process::id()));
        fs::write(&file, "").expect("written");
        let own = nix::unistd::geteuid().as_raw();
        check(&file, own).expect("our own");
        check(Path::new("/nonexistent/key"), own).expect("not there yet");
        check(Path::new("/etc/passwd"), 4711).expect("root's");
        // For any user of this test: the file has another owner than uid + 1, unless it is root's.
        let outcome = check(&file, own + 1);
        if own == 0 {
            outcome.expect("root's");
            std::os::unix::fs::chown(&file, Some(7), None).expect("root");
        }
        let (owner, error) = (
            if own == 0 { 7 } else { own },
            check(&file, own + 1)
                .expect_err("somebody else's")
                .to_string(),
        );
        for words in [
            format!("uid {owner}, and PODBAY_UID is {}", own + 1),
            format!("PODBAY_UID={owner}"),
            "down -v".to_owned(),
        ] {
            assert!(error.contains(&words), "{words}: {error}");
        }
        fs::remove_file(file).expect("removed");
    }

    #[test]
    fn a_users_folder_in_place_of_a_volume_is_not_changed() {
        let folder = std::env::temp_dir().join(format!("podbay-volume-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).expect("a folder");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("ours");
        let mode = || fs::metadata(&folder).expect("there").mode() & 0o7777;
        for own in ["/srv/models", "./models", "../models", "~/models", "."] {
            open_volume(own, &folder).expect("left alone");
            assert_eq!(
                (mode(), fs::read_dir(&folder).expect("readable").count()),
                (0o755, 0),
                "{own}"
            );
        }
        open_volume("models", &folder).expect("opened");
        assert_eq!(mode(), 0o1777);
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn the_program_is_executable_and_an_existing_key_is_kept() {
        let folder = std::env::temp_dir().join(format!("podbay-prepare-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).expect("a folder");
        open(&folder).expect("opened");
        assert_eq!(
            fs::metadata(&folder).expect("there").mode() & 0o7777,
            0o1777
        );
        assert!(
            folder.join(OPENED).is_file(),
            "an empty volume would be closed again"
        );
        open(&folder).expect("opened again");
        for _ in 0..2 {
            install(&folder).expect("installed");
        }
        let program = fs::metadata(folder.join("podbay")).expect("there");
        let own = fs::metadata("/proc/self/exe").expect("there");
        assert_eq!((program.mode() & 0o7777, program.len()), (0o711, own.len()));
        let file = folder.join("key");
        key(&file).expect("made");
        let first = fs::read_to_string(&file).expect("readable");
        assert!(
            first.trim().len() == 64 && fs::metadata(&file).expect("there").mode() & 0o777 == 0o600
        );
        key(&file).expect("kept");
        assert_eq!(fs::read_to_string(&file).expect("readable"), first);
        fs::remove_dir_all(folder).expect("removed");
    }
}
