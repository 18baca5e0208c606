//! The home folder of one controller, in a sandbox that several use.
//!
//! Programs execute settings in a home folder unasked: git runs what `~/.gitconfig` names. So no
//! controller gets the folder of an earlier one. Each has a folder below the sandbox's own home,
//! with an unpredictable name, which is removed when the controller ends.
//!
//! This separates consecutive controllers. Concurrent ones have the same user, and could write
//! there.

use std::ffi::OsStr;
use std::fs;
use std::fs::File;
use std::fs::Permissions;
use std::io;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;

/// Name prefixes of a finished folder, and of one that is not locked yet: the search for leftovers
/// must not take that for one.
const READY: &str = "controller-";
const UNFINISHED: &str = "unfinished-";

/// Random bytes of a name.
const RANDOM_BYTES: usize = 8;

/// A folder that exists as long as this value. It is locked, and the kernel releases the lock when
/// this process ends.
#[derive(Debug)]
pub(super) struct Home {
    path: PathBuf,
    _lock: Option<File>,
}

impl Home {
    /// Creates a new folder below `HOME` of `environment`, and sets `HOME` to it. Removes those of
    /// controllers that are gone.
    ///
    /// Where none can be created, such as in a sandbox without a home folder, `HOME` names a
    /// missing one: never one that others used.
    pub(super) fn begin(environment: &mut Vec<Vec<u8>>) -> io::Result<Self> {
        const NAME: &[u8] = b"HOME=";
        let shared = environment
            .iter()
            .find_map(|pair| pair.strip_prefix(NAME))
            .unwrap_or(b"/");
        let shared = PathBuf::from(OsStr::from_bytes(shared));
        // A command may have removed its owner's access.
        if let Ok(mode) = fs::metadata(&shared).map(|facts| facts.permissions().mode())
            && mode & 0o700 != 0o700
        {
            let _ = fs::set_permissions(&shared, Permissions::from_mode(mode | 0o700));
        }
        remove_left(&shared);
        let name = random_name()?;
        let path = shared.join(format!("{READY}{name}"));
        let lock = make(&shared.join(format!("{UNFINISHED}{name}")), &path).ok();
        environment.retain(|pair| !pair.starts_with(NAME));
        environment.push([NAME, path.as_os_str().as_bytes()].concat());
        Ok(Self { path, _lock: lock })
    }
}

/// Makes the home folder that an environment names, where that is missing: in an image without one it
/// lies in `/tmp`. A failure is left to the commands that want to write there.
pub(super) fn make_missing(environment: &[Vec<u8>]) {
    let home = environment
        .iter()
        .find_map(|pair| pair.strip_prefix(b"HOME="));
    if let Some(home) = home {
        let _ = fs::DirBuilder::new()
            .mode(0o700)
            .create(OsStr::from_bytes(home));
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

fn random_name() -> io::Result<String> {
    let mut bytes = [0; RANDOM_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Creates a folder that is locked before it gets its name.
fn make(unfinished: &Path, path: &Path) -> io::Result<File> {
    fs::DirBuilder::new().mode(0o700).create(unfinished)?;
    let folder = File::open(unfinished)?;
    folder.try_lock()?;
    fs::rename(unfinished, path)?;
    Ok(folder)
}

/// Removes the folders of controllers that are gone; where locks do not tell, none.
fn remove_left(shared: &Path) {
    for entry in fs::read_dir(shared).into_iter().flatten().flatten() {
        if !entry.file_name().as_bytes().starts_with(READY.as_bytes())
            || !entry.file_type().is_ok_and(|kind| kind.is_dir())
        {
            continue;
        }
        let is_left = File::open(entry.path()).is_ok_and(|folder| folder.try_lock().is_ok());
        if is_left {
            remove(&entry.path());
        }
    }
}

/// Removes a folder, also where its owner removed access to parts of it, as some package managers
/// do. A failure loses nothing.
fn remove(folder: &Path) {
    if fs::remove_dir_all(folder).is_ok() {
        return;
    }
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        let _ = fs::set_permissions(&folder, Permissions::from_mode(0o700));
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        waiting.extend(
            entries
                .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
                .map(|entry| entry.path()),
        );
    }
    let _ = fs::remove_dir_all(folder);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(home: &Path) -> Vec<Vec<u8>> {
        vec![
            b"PATH=/bin".to_vec(),
            [b"HOME=", home.as_os_str().as_bytes()].concat(),
        ]
    }

    fn home_of(environment: &[Vec<u8>]) -> PathBuf {
        let named: Vec<&[u8]> = environment
            .iter()
            .filter_map(|pair| pair.strip_prefix(b"HOME="))
            .collect();
        assert_eq!(named.len(), 1);
        PathBuf::from(OsStr::from_bytes(named[0]))
    }

    #[test]
    fn each_controller_gets_a_fresh_home_that_is_removed_with_it() {
        let shared = tempfile::tempdir().expect("a folder");
        fs::write(shared.path().join(".gitconfig"), "planted").expect("written");
        let (mut one, mut other) = (environment(shared.path()), environment(shared.path()));
        let first = Home::begin(&mut one).expect("begun");
        let second = Home::begin(&mut other).expect("begun");
        let (one, other) = (home_of(&one), home_of(&other));
        assert!(
            one.parent() == Some(shared.path())
                && other.parent() == Some(shared.path())
                && one != other
        );
        for home in [&one, &other] {
            assert_eq!(
                fs::read_dir(home)
                    .expect("there, also beside another")
                    .count(),
                0
            );
            assert_eq!(
                fs::metadata(home).expect("there").permissions().mode() & 0o777,
                0o700
            );
        }
        fs::create_dir_all(one.join("go/pkg/mod")).expect("made");
        fs::write(one.join("go/pkg/mod/file"), "").expect("written");
        fs::set_permissions(one.join("go/pkg/mod"), Permissions::from_mode(0o555)).expect("closed");
        drop(first);
        assert!(!one.exists() && other.exists());
        drop(second);
        assert!(
            !other.exists() && shared.path().join(".gitconfig").exists(),
            "what is not ours stays"
        );
    }

    #[test]
    fn the_home_of_a_killed_controller_is_removed_by_the_next() {
        let shared = tempfile::tempdir().expect("a folder");
        let left = shared.path().join(format!("{READY}0123456789abcdef"));
        fs::create_dir_all(left.join("sub")).expect("made");
        fs::set_permissions(shared.path(), Permissions::from_mode(0o500)).expect("closed");
        let mut names = environment(shared.path());
        let _home = Home::begin(&mut names).expect("begun");
        assert!(!left.exists() && home_of(&names).is_dir());
    }

    #[test]
    fn a_missing_home_is_made_for_its_owner_alone() {
        let place = tempfile::tempdir().expect("a folder");
        let home = place.path().join(".home");
        for _ in 0..2 {
            make_missing(&environment(&home));
            let mode = fs::metadata(&home).expect("there").permissions().mode();
            assert_eq!(mode & 0o777, 0o700);
        }
    }

    #[test]
    fn without_a_creatable_home_a_missing_one_is_named() {
        let mut names = environment(Path::new("/proc/self"));
        let home = Home::begin(&mut names).expect("begun");
        let named = home_of(&names);
        assert!(named.starts_with("/proc/self") && !named.exists());
        drop(home);
    }
}
