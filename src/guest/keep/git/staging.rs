//! A repository of our own that borrows a session's objects, so that git never runs where the
//! session wrote the config.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::path::PathBuf;

use nix::unistd::symlinkat;

use super::refs::packed_text;
use super::untrusted_folder::FileKind;
use super::untrusted_folder::UntrustedFolder;
use super::untrusted_folder::failed;
use crate::root::join;
use podbay_wire::BytesPath;
use podbay_wire::Fault;

const MAX_SHALLOW: u64 = 16 << 20;
/// More files than this would be packed by git, or were made to be a burden.
const MAX_FILES: usize = 2_000_000;

/// The object folders of the session and of the real repository, with a path in each.
pub(crate) struct ObjectFolders<'a> {
    pub(crate) real: &'a Path,
    pub(crate) session: &'a Path,
    pub(crate) session_folder: &'a UntrustedFolder,
    pub(crate) real_folder: &'a UntrustedFolder,
}

/// Makes the staging repository in a folder of ours.
///
/// It has links to those of the session's object files that look like git's, and no metadata about
/// them: no commit graphs, no bitmaps, no alternates. Git verifies their contents where it reads
/// them.
pub(crate) fn make(place: &Path, objects: &ObjectFolders<'_>) -> Result<PathBuf, Fault> {
    let scratch = UntrustedFolder::open(place)
        .map_err(|error| failed("open", place.as_os_str().as_bytes(), &error))?;
    let name = bare(&scratch, b"stage.git", objects.real_folder)?;
    let real = [objects.real.join("objects").as_os_str().as_bytes(), b"\n"].concat();
    scratch.write(b"stage.git/objects/info/alternates", &real)?;
    let stage = scratch
        .descend(b"stage.git/objects")
        .map_err(|errno| failed("open", b"stage.git", &errno.into()))?;
    borrow(&stage, objects)?;
    Ok(place.join(name))
}

/// Makes one that has the session's objects alone, to tell them from borrowed ones.
pub(crate) fn own(place: &Path, objects: &ObjectFolders<'_>) -> Result<PathBuf, Fault> {
    let scratch = UntrustedFolder::open(place)
        .map_err(|error| failed("open", place.as_os_str().as_bytes(), &error))?;
    let name = bare(&scratch, b"own.git", objects.real_folder)?;
    let own = scratch
        .descend(b"own.git/objects")
        .map_err(|errno| failed("open", b"own.git", &errno.into()))?;
    borrow(&own, objects)?;
    Ok(place.join(name))
}

/// Makes a repository without references and objects, with the shallow boundary of the real one;
/// returns the name of its folder.
pub(crate) fn bare(
    scratch: &UntrustedFolder,
    name: &'static [u8],
    real: &UntrustedFolder,
) -> Result<&'static OsStr, Fault> {
    scratch.remove(name)?;
    scratch.write(&join(name, b"HEAD"), b"ref: refs/heads/none\n")?;
    scratch.write(
        &join(name, b"config"),
        b"[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
    )?;
    scratch.make(&join(name, b"refs/heads"))?;
    scratch.make(&join(name, b"objects/pack"))?;
    if let Some(shallow) = real.read(b"shallow", MAX_SHALLOW)? {
        scratch.write(&join(name, b"shallow"), &shallow)?;
    }
    Ok(OsStr::from_bytes(name))
}

/// Writes the references that can be fetched from it.
pub(crate) fn name(
    place: &Path,
    names: impl Iterator<Item = (BytesPath, String)>,
) -> Result<(), Fault> {
    let scratch = UntrustedFolder::open(place)
        .map_err(|error| failed("open", place.as_os_str().as_bytes(), &error))?;
    scratch.replace(b"stage.git/packed-refs", &packed_text(&names.collect()))
}

/// Links those of a session's object files that are regular files with a name that git gives.
fn borrow(stage: &UntrustedFolder, objects: &ObjectFolders<'_>) -> Result<(), Fault> {
    let session = objects.session_folder;
    let list = |path: &[u8]| {
        session
            .names(path)
            .map_err(|errno| failed("list", path, &errno.into()))
    };
    let mut n_files = 0;
    for (folder, kind) in list(b"objects")? {
        let is_wanted: fn(&[u8]) -> bool = match folder.as_slice() {
            b"pack" => is_pack,
            [high, low] if is_hex(&[*high, *low]) => |name| name.len() == 38 && is_hex(name),
            _ => continue,
        };
        if kind != FileKind::Folder {
            continue;
        }
        stage.make(&folder)?;
        let here = stage
            .descend(&folder)
            .map_err(|errno| failed("open", &folder, &errno.into()))?;
        for (name, kind) in list(&join(b"objects", &folder))? {
            if kind != FileKind::File || !is_wanted(&name) {
                continue;
            }
            n_files += 1;
            if n_files > MAX_FILES {
                return Err(Fault::TooLarge {
                    path: "objects".into(),
                    bytes: n_files as u64,
                    limit: MAX_FILES as u64,
                });
            }
            let target = join(
                objects.session.as_os_str().as_bytes(),
                &join(b"objects", &join(&folder, &name)),
            );
            symlinkat(target.as_slice(), &here, name.as_slice())
                .map_err(|errno| failed("link", &name, &errno.into()))?;
        }
    }
    Ok(())
}

fn is_pack(name: &[u8]) -> bool {
    let Some(rest) = name.strip_prefix(b"pack-") else {
        return false;
    };
    let stem = rest
        .strip_suffix(b".pack")
        .or_else(|| rest.strip_suffix(b".idx"));
    stem.is_some_and(|stem| stem.len() == 40 && is_hex(stem))
}

fn is_hex(text: &[u8]) -> bool {
    text.iter()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::super::sample::Sample;
    use super::*;

    #[test]
    fn only_object_files_like_gits_own_are_borrowed() {
        let sample = Sample::new();
        let commit = sample.commit("a", "1");
        let session = sample.path(".git");
        fs::create_dir_all(session.join("objects/info")).expect("made");
        for (path, text) in [
            ("objects/info/alternates", "/etc\n"),
            ("objects/info/commit-graph", "lies"),
            ("objects/pack/multi-pack-index", "lies"),
            (
                "objects/pack/pack-0000000000000000000000000000000000000000.bitmap",
                "lies",
            ),
            (
                "objects/pack/pack-0000000000000000000000000000000000000000.pack",
                "a pack",
            ),
            ("objects/pack/pack-evil.pack", "x"),
        ] {
            fs::write(session.join(path), text).expect("written");
        }
        fs::create_dir_all(session.join("objects/ff")).expect("made");
        symlink(
            "/etc/passwd",
            session.join(format!("objects/ff/{}", "0".repeat(38))),
        )
        .expect("linked");
        // The existing folders depend on the commit time.
        let free = ["fe", "fd", "fc", "fb"]
            .into_iter()
            .find(|name| !session.join("objects").join(name).exists())
            .expect("one is free");
        symlink("/etc", session.join("objects").join(free)).expect("linked");
        let pipe = session.join(format!("objects/ff/{}", "1".repeat(38)));
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::from_bits_truncate(0o600)).expect("made");
        let empty = sample.beside("empty");
        fs::create_dir_all(empty.join("objects")).expect("made");
        let open = |path: &Path| UntrustedFolder::open(path).expect("opens");
        let objects = ObjectFolders {
            real: &empty,
            session: &session,
            session_folder: &open(&session),
            real_folder: &open(&empty),
        };
        let scratch = sample.beside("scratch");
        fs::create_dir(&scratch).expect("made");
        let stage = make(&scratch, &objects).expect("made");
        let stage_folder = open(&stage.join("objects"));
        let names = |path: &str| -> Vec<String> {
            stage_folder
                .names(path.as_bytes())
                .expect("listed")
                .into_iter()
                .map(|(name, _)| String::from_utf8(name).expect("text"))
                .collect()
        };
        assert_eq!(names("info"), ["alternates"]);
        assert_eq!(
            names("pack"),
            ["pack-0000000000000000000000000000000000000000.pack"]
        );
        assert!(
            names("ff")
                .iter()
                .all(|name| *name != "0".repeat(38) && *name != "1".repeat(38))
        );
        assert!(!names("").contains(&free.to_owned()));
        assert!(names(&commit[..2]).contains(&commit[2..].to_owned()));
        assert_eq!(
            fs::read_to_string(stage.join("objects/info/alternates")).expect("read"),
            format!("{}\n", empty.join("objects").display())
        );
    }
}
