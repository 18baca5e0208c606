//! Which paths a command may write to without a question.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use ignore::gitignore::Gitignore;
use ignore::gitignore::GitignoreBuilder;
use nix::sys::stat::SFlag;

use super::resolved_path::HeldEntry;
use super::resolved_path::ResolvedPath;
use crate::mounts::mount_of;
use podbay_wire::BytesPath;
use podbay_wire::WriteGate;
use podbay_wire::protected_name;

/// Folders of the sandbox that are removed with it, besides the home folder.
const FREE: [&str; 3] = ["/tmp", "/var/tmp", "/dev"];

/// The folders that decide whether a write is asked about.
#[derive(Debug)]
pub(super) struct WriteZones {
    /// The project's folder.
    project: Vec<u8>,
    free: Vec<FreeZone>,
    unasked: Gitignore,
}

/// A folder in which a write needs no question.
#[derive(Debug)]
struct FreeZone {
    path: Vec<u8>,
    /// The device, where a file may have another name in the project.
    device: Option<u64>,
}

/// Whether a write is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WriteZone {
    /// It needs no question.
    Free,
    /// The path is relative where it is in the project.
    Asked { path: BytesPath, protected: bool },
}

impl WriteZones {
    pub(super) fn new(gate: &WriteGate, project: &[u8], home: Option<&[u8]>) -> Self {
        let real = |path: &[u8]| {
            let path = Path::new(OsStr::from_bytes(path));
            fs::canonicalize(path)
                .unwrap_or_else(|_| path.to_owned())
                .into_os_string()
                .into_vec()
        };
        // A home that is `/` would free the whole file system.
        let home = home
            .map(real)
            .filter(|home| home.len() > 1 && home.starts_with(b"/"));
        let mut unasked = GitignoreBuilder::new("");
        for pattern in &gate.unasked {
            // An invalid pattern exempts nothing.
            let _ = unasked.add_line(None, pattern);
        }
        let project = real(project);
        let free = FREE
            .iter()
            .map(|path| real(path.as_bytes()))
            .chain(home)
            .map(|path| FreeZone {
                device: shared_device(&path, &project),
                path,
            })
            .collect();
        Self {
            project,
            free,
            unasked: unasked.build().unwrap_or_else(|_| Gitignore::empty()),
        }
    }

    /// Returns the zone of a write by a process. The project is tested first: its folder may lie
    /// inside a free one.
    pub(super) fn of(&self, process: i32, found: &ResolvedPath, makes_folder: bool) -> WriteZone {
        let (path, there) = (found.path.as_slice(), found.there.as_ref());
        if !path.starts_with(b"/") || there.is_some_and(|there| is_unnamed(path, there)) {
            return WriteZone::Free;
        }
        let asked = |path: &[u8], protected| WriteZone::Asked {
            path: BytesPath::from_bytes(path),
            protected,
        };
        if let Some(relative) = below(path, &self.project) {
            let is_protected = protected_name(&BytesPath::from_bytes(relative)).is_some();
            if is_protected && !is_git_data(relative) {
                return asked(relative, true);
            }
            let is_folder = makes_folder || there.is_some_and(HeldEntry::is_folder);
            if self.is_unasked(relative, is_folder) {
                return WriteZone::Free;
            }
            return asked(if relative.is_empty() { b"." } else { relative }, false);
        }
        if below(path, b"/proc").is_some() {
            let is_own = below(path, format!("/proc/{process}").as_bytes()).is_some();
            return if is_own {
                WriteZone::Free
            } else {
                asked(path, false)
            };
        }
        let zone = self
            .free
            .iter()
            .find(|free| below(path, &free.path).is_some());
        if zone.is_some_and(|zone| !there.is_some_and(|there| zone.may_be_of_project(there))) {
            WriteZone::Free
        } else {
            asked(path, false)
        }
    }

    fn is_unasked(&self, relative: &[u8], is_folder: bool) -> bool {
        !self.unasked.is_empty()
            && !relative.is_empty()
            && self
                .unasked
                .matched_path_or_any_parents(Path::new(OsStr::from_bytes(relative)), is_folder)
                .is_ignore()
    }
}

impl FreeZone {
    /// Returns whether a file may have another name in the project.
    fn may_be_of_project(&self, there: &HeldEntry) -> bool {
        there.kind() == SFlag::S_IFREG
            && there.stat.st_nlink > 1
            && self.device == Some(there.stat.st_dev)
    }
}

/// Returns the device that a folder shares with the project. Between two mounts of one device no
/// hard link can be made.
fn shared_device(folder: &[u8], project: &[u8]) -> Option<u64> {
    let path = |bytes: &[u8]| Path::new(OsStr::from_bytes(bytes)).to_owned();
    let (folder, project) = (path(folder), path(project));
    let device = |path: &Path| fs::metadata(path).ok().map(|found| found.dev());
    let shared = device(&project).filter(|shared| device(&folder) == Some(*shared))?;
    let is_apart = mount_of(&folder) != mount_of(&project);
    (!is_apart).then_some(shared)
}

/// Returns whether a file has no name any more, so that no other process sees what is written to
/// it.
fn is_unnamed(path: &[u8], there: &HeldEntry) -> bool {
    there.stat.st_nlink == 0 && path.ends_with(b" (deleted)")
}

/// Returns the rest of a path below a folder; empty for the folder itself.
fn below<'path>(path: &'path [u8], folder: &[u8]) -> Option<&'path [u8]> {
    match path.strip_prefix(folder)? {
        [] => Some(b""),
        [b'/', rest @ ..] => Some(rest),
        _ => None,
    }
}

/// Whether a path is in a `.git` folder and neither holds its settings nor its hooks. A commit
/// writes dozens of such files: they are asked about once a call, as files of the project are.
fn is_git_data(relative: &[u8]) -> bool {
    let components: Vec<&[u8]> = relative.split(|byte| *byte == b'/').collect();
    let Some(at) = components.iter().position(|name| *name == b".git") else {
        return false;
    };
    let (above, inside) = (components[..at].join(&b'/'), &components[at + 1..]);
    let is_protected_above = protected_name(&BytesPath::from_bytes(above)).is_some();
    let may_run = |name: &&[u8]| *name == b"hooks" || name.starts_with(b"config");
    !inside.is_empty() && !is_protected_above && !inside.iter().any(may_run)
}

#[cfg(test)]
mod tests {
    use super::super::resolved_path::find;
    use super::super::write_calls::PathArgument;
    use super::*;

    const PROCESS: i32 = 4711;

    fn zones(unasked: &[&str]) -> WriteZones {
        let gate = WriteGate {
            unasked: unasked.iter().map(|&pattern| pattern.to_owned()).collect(),
        };
        let mut zones = WriteZones::new(&gate, b"/nowhere/project", Some(b"/nowhere"));
        for zone in &mut zones.free {
            zone.device = None;
        }
        zones
    }

    fn of(zones: &WriteZones, path: &str, makes_folder: bool) -> WriteZone {
        let found = ResolvedPath {
            path: path.as_bytes().to_vec(),
            within: None,
            there: None,
            is_folder_path: false,
        };
        zones.of(PROCESS, &found, makes_folder)
    }

    fn asked(path: &str, protected: bool) -> WriteZone {
        WriteZone::Asked {
            path: path.into(),
            protected,
        }
    }

    #[test]
    fn a_project_in_the_home_folder_is_asked_about() {
        let zones = zones(&[]);
        for (path, expected) in [
            ("/nowhere/project/build/x.o", asked("build/x.o", false)),
            ("/nowhere/project", asked(".", false)),
            ("/nowhere/project/.env", asked(".env", true)),
            (
                "/nowhere/project/sub/.git/config",
                asked("sub/.git/config", true),
            ),
            (
                "/nowhere/project/.git/hooks/pre-commit",
                asked(".git/hooks/pre-commit", true),
            ),
            ("/nowhere/project/.git", asked(".git", true)),
            (
                "/nowhere/project/.git/objects/97/x",
                asked(".git/objects/97/x", false),
            ),
            (
                "/nowhere/project/sub/.git/HEAD.lock",
                asked("sub/.git/HEAD.lock", false),
            ),
            (
                "/nowhere/project/.ssh/.git/HEAD",
                asked(".ssh/.git/HEAD", true),
            ),
            ("/nowhere/projects/x", WriteZone::Free),
            ("/nowhere/.cache/x", WriteZone::Free),
            ("/tmp/x", WriteZone::Free),
            ("/tmp", WriteZone::Free),
            ("/tmpfile", asked("/tmpfile", false)),
            ("/dev/null", WriteZone::Free),
            ("/proc/4711/oom_score_adj", WriteZone::Free),
            ("/proc/47/mem", asked("/proc/47/mem", false)),
            ("/usr/lib/x", asked("/usr/lib/x", false)),
            ("pipe:[5]", WriteZone::Free),
        ] {
            assert_eq!(of(&zones, path, false), expected, "{path}");
        }
    }

    #[test]
    fn patterns_exempt_paths_but_no_protected_name() {
        let zones = zones(&[
            "target/",
            "__pycache__",
            "*.o",
            "!keep.o",
            "[",
            "/only/here",
        ]);
        for (path, makes_folder, is_free) in [
            ("target/debug/x", false, true),
            ("target", true, true),
            ("target", false, false),
            ("sub/__pycache__/x.pyc", false, true),
            ("src/x.o", false, true),
            ("src/keep.o", false, false),
            ("only/here", false, true),
            ("sub/only/here", false, false),
            ("src/x.c", false, false),
            ("target/.env", false, false),
        ] {
            let zone = of(&zones, &format!("/nowhere/project/{path}"), makes_folder);
            assert_eq!(zone == WriteZone::Free, is_free, "{path} {zone:?}");
        }
    }

    #[test]
    fn hard_links_into_the_project_are_asked_about_and_unnamed_files_are_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("project")).expect("made");
        fs::write(at("file"), "").expect("written");
        let zones = WriteZones::new(
            &WriteGate::default(),
            at("project").as_os_str().as_bytes(),
            None,
        );
        let file = fs::File::open(at("file")).expect("there");
        let own = nix::unistd::gettid().as_raw();
        let zone = || {
            let found = find(
                own,
                own,
                PathArgument::Descriptor(std::os::fd::AsRawFd::as_raw_fd(&file)),
                true,
            )
            .expect("held");
            zones.of(own, &found, false)
        };
        assert_eq!(zone(), WriteZone::Free);
        fs::hard_link(at("file"), at("project/file")).expect("linked");
        assert!(matches!(
            zone(),
            WriteZone::Asked {
                protected: false,
                ..
            }
        ));
        fs::remove_file(at("project/file")).expect("removed");
        fs::rename(at("file"), at("project/file")).expect("moved");
        assert_eq!(zone(), asked("file", false));
        fs::remove_file(at("project/file")).expect("removed");
        assert_eq!(zone(), WriteZone::Free);
    }
}
