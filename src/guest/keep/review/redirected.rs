//! Folders that cannot be followed in what is laid over a project.
//!
//! Earlier versions had the kernel rename a folder of the project by a note of where it lies there.
//! What is laid over it is mounted so that no such note is followed any more, and the kernel leaves
//! the folder out of the list of names: it would be taken for one that was removed.

use nix::dir::Dir;
use nix::dir::Type;
use nix::errno::Errno;

use super::Seen;
use crate::keep::Error;
use crate::keep::Project;
use crate::root::join;
use podbay_wire::BytesPath;

/// Refuses a copy in which there is such a folder.
pub(super) fn refuse(name: &str, seen: Seen<'_>) -> Result<(), Error> {
    let (Some(copy), Some(upper)) = (seen.copy, seen.upper) else {
        return Ok(());
    };
    match first(upper, |path| copy.list(path).err() == Some(Errno::EPERM)) {
        Some(path) => Err(Error::Redirected {
            name: name.to_owned(),
            path: BytesPath::from_bytes(path),
        }),
        None => Ok(()),
    }
}

/// Returns the first folder of what a session changed that is not followed. One that cannot be
/// looked into is no such folder: what is noted of it keeps nobody from listing it.
fn first(upper: &Project, is_redirected: impl Fn(&[u8]) -> bool) -> Option<Vec<u8>> {
    let mut waiting = vec![Vec::new()];
    while let Some(path) = waiting.pop() {
        for name in folders(upper, &path) {
            let path = join(&path, &name);
            if is_redirected(&path) {
                return Some(path);
            }
            waiting.push(path);
        }
    }
    None
}

fn folders(upper: &Project, path: &[u8]) -> Vec<Vec<u8>> {
    let Ok(mut listed) = upper.list(path).and_then(Dir::from_fd) else {
        return Vec::new();
    };
    let entries = listed
        .iter()
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_none_or(|kind| kind == Type::Directory));
    entries
        .map(|entry| entry.file_name().to_bytes().to_vec())
        .filter(|name| !matches!(name.as_slice(), b"." | b".."))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keep::testing::Scene;

    #[test]
    fn a_folder_that_is_not_followed_is_found_wherever_it_lies() {
        let scene = Scene::new();
        for path in ["a/b/file", "c/d/e/file", "c/file"] {
            scene.write(path, "x");
        }
        scene.link("c", "link");
        let found = |odd: &[u8]| first(&scene.project(), |path| path == odd);
        assert_eq!(found(b"c/d/e"), Some(b"c/d/e".to_vec()));
        assert_eq!(found(b"a"), Some(b"a".to_vec()));
        for none in [&b"c/file"[..], b"link", b"other"] {
            assert_eq!(found(none), None, "no folder of the session's");
        }
    }
}
