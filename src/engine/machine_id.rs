//! Identifies this machine across reboots, so that leftovers of its earlier boots are distinguished
//! from objects of other machines.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::OnceLock;

use sha2::Digest;
use sha2::Sha256;

/// Where a system stores its machine id.
const FILES: [&str; 2] = ["/etc/machine-id", "/var/lib/dbus/machine-id"];

/// Name of the file with our own id, for systems without one, such as many containers.
const OWN: &str = "machine-id";

/// Hexadecimal digits of an id.
const LENGTH: usize = 32;

/// Our own id, once a folder for it was named.
static KEPT: OnceLock<Option<String>> = OnceLock::new();

/// Stores an id of our own in a folder if the machine has none. Until this is called, such a
/// machine has no name.
pub fn keep_machine_id(folder: &Path) {
    if given().is_none() {
        KEPT.get_or_init(|| kept(folder));
    }
}

/// Returns a name of this machine that survives reboots; `None` if there is no id.
///
/// It includes the host's name, since copies of a machine may have the same id. It is a hash, since
/// every user of the engine sees it and the id is confidential.
pub(super) fn machine() -> Option<String> {
    let id = given().or_else(|| KEPT.get().cloned().flatten())?;
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    Some(name(&id, host.trim()))
}

fn name(id: &str, host: &str) -> String {
    let digest = Sha256::digest(format!("podbay machine\n{id}\n{host}\n"));
    digest
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn given() -> Option<String> {
    FILES.iter().find_map(|path| read(Path::new(path)))
}

/// Reads an id; a file may also contain `uninitialized`, or be empty.
fn read(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let id = text.trim();
    (id.len() == LENGTH && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
        .then(|| id.to_ascii_lowercase())
}

/// Returns the id stored in a folder; creates one if there is none.
fn kept(folder: &Path) -> Option<String> {
    let path = folder.join(OWN);
    if let Some(id) = read(&path) {
        return Some(id);
    }
    let mut bytes = [0_u8; LENGTH / 2];
    getrandom::fill(&mut bytes).ok()?;
    let id: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let part = folder.join(format!("{OWN}.{}", std::process::id()));
    let written = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&part);
    written
        .and_then(|mut file| file.write_all(format!("{id}\n").as_bytes()))
        .ok()?;
    // Of two concurrent processes one creates it, and both read that one.
    let placed = match fs::hard_link(&part, &path) {
        Err(_) if read(&path).is_none() => fs::rename(&part, &path).is_ok(),
        _ => true,
    };
    // A leftover temporary file does no harm.
    let _ = fs::remove_file(&part);
    if placed { read(&path) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_machine_id_is_stable_and_replaced_if_damaged() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = kept(folder.path()).expect("an id");
        assert_eq!(kept(folder.path()), Some(first.clone()));
        fs::write(folder.path().join(OWN), "half an").expect("written");
        let second = kept(folder.path()).expect("another id");
        assert_ne!(second, first);
        assert_eq!(kept(folder.path()), Some(second));
        assert_eq!(
            fs::read_dir(folder.path()).expect("a folder").count(),
            1,
            "nothing but the id is left"
        );
        assert_eq!(kept(Path::new("/nonexistent")), None);
    }

    #[test]
    fn concurrent_processes_get_the_same_machine_id() {
        let folder = tempfile::tempdir().expect("a folder");
        // In one process all would use the same temporary file, so they run one after another.
        let id = kept(folder.path());
        let ids: Vec<_> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| kept(folder.path())))
                .collect();
            all.into_iter()
                .map(|one| one.join().expect("no panic"))
                .collect()
        });
        assert!(
            id.is_some() && ids.iter().all(|other| *other == id),
            "{ids:?}"
        );
    }

    #[test]
    fn a_malformed_machine_id_is_ignored() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("id");
        for (text, expected) in [
            (
                "3D1219c7c4c5404aaa1f6d2a48adfda4\n",
                Some("3d1219c7c4c5404aaa1f6d2a48adfda4"),
            ),
            ("uninitialized\n", None),
            ("", None),
            ("3d1219c7c4c5404aaa1f6d2a48adfda", None),
            ("3d1219c7c4c5404aaa1f6d2a48adfdag", None),
        ] {
            fs::write(&path, text).expect("written");
            assert_eq!(read(&path).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn copies_of_a_machine_have_different_names_without_the_id() {
        let id = "3d1219c7c4c5404aaa1f6d2a48adfda4";
        assert_eq!(name(id, "one"), name(id, "one"));
        assert_ne!(name(id, "one"), name(id, "two"));
        assert!(!id.contains(&name(id, "one")[..6]));
    }
}
