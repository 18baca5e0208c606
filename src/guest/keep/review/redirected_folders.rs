//! Renamed folders in an overlay that cannot be followed.
//!
//! Earlier versions let the kernel rename a folder of the lower layer by a redirect. The overlay is
//! mounted now so that redirects are not followed, and the kernel omits the folder from the list of
//! names: it would be taken for a removed one.

use nix::dir::Dir;
use nix::dir::Type;
use nix::errno::Errno;

use super::SessionView;
use crate::keep::Error;
use crate::keep::Project;
use crate::root::join;
use podbay_wire::BytesPath;

/// Refuses a copy that holds such a folder.
pub(super) fn refuse(name: &str, seen: SessionView<'_>) -> Result<(), Error> {
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

/// Returns the first redirected folder in the upper layer. One that cannot be searched is not
/// redirected: a redirect does not prevent listing.
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
    fn a_redirected_folder_is_found_at_any_depth() {
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
