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

use super::write_path::Found;
use super::write_path::There;
use podbay_wire::BytesPath;
use podbay_wire::WriteGate;
use podbay_wire::protected_name;

/// Of the sandbox, beside the home folder: what lies there is gone with it.
const FREE: [&str; 2] = ["/tmp", "/dev"];

/// What is asked about, and what is not.
#[derive(Debug)]
pub(super) struct Zones {
    /// The project's folder, and its device.
    project: Vec<u8>,
    device: Option<u64>,
    free: Vec<Vec<u8>>,
    unasked: Gitignore,
}

/// Where a write leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Zone {
    /// It needs no question.
    Free,
    /// The path is relative where it is in the project.
    Asked { path: BytesPath, protected: bool },
}

impl Zones {
    pub(super) fn new(gate: &WriteGate, project: &[u8], home: Option<&[u8]>) -> Self {
        let real = |path: &[u8]| {
            let path = Path::new(OsStr::from_bytes(path));
            fs::canonicalize(path)
                .unwrap_or_else(|_| path.to_owned())
                .into_os_string()
                .into_vec()
        };
        // A home that is the whole file system is none.
        let home = home
            .map(real)
            .filter(|home| home.len() > 1 && home.starts_with(b"/"));
        let mut unasked = GitignoreBuilder::new("");
        for pattern in &gate.unasked {
            // What is no pattern names nothing, and is asked about.
            let _ = unasked.add_line(None, pattern);
        }
        let project = real(project);
        Self {
            device: fs::metadata(Path::new(OsStr::from_bytes(&project)))
                .ok()
                .map(|found| found.dev()),
            project,
            free: FREE
                .iter()
                .map(|path| real(path.as_bytes()))
                .chain(home)
                .collect(),
            unasked: unasked.build().unwrap_or_else(|_| Gitignore::empty()),
        }
    }

    /// Returns where a write of a process leads. The project comes first: its folder may lie in one
    /// that is free.
    pub(super) fn of(&self, process: i32, found: &Found, makes_folder: bool) -> Zone {
        let (path, there) = (found.path.as_slice(), found.there.as_ref());
        if !path.starts_with(b"/") || there.is_some_and(|there| is_unnamed(path, there)) {
            return Zone::Free;
        }
        let asked = |path: &[u8], protected| Zone::Asked {
            path: BytesPath::from_bytes(path),
            protected,
        };
        if let Some(relative) = below(path, &self.project) {
            if protected_name(&BytesPath::from_bytes(relative)).is_some() {
                return asked(relative, true);
            }
            let is_folder = makes_folder || there.is_some_and(There::is_folder);
            if self.is_unasked(relative, is_folder) {
                return Zone::Free;
            }
            return asked(if relative.is_empty() { b"." } else { relative }, false);
        }
        if below(path, b"/proc").is_some() {
            let is_own = below(path, format!("/proc/{process}").as_bytes()).is_some();
            return if is_own {
                Zone::Free
            } else {
                asked(path, false)
            };
        }
        let is_free = self.free.iter().any(|free| below(path, free).is_some());
        if is_free && !there.is_some_and(|there| self.may_be_of_project(there)) {
            Zone::Free
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

    /// Returns whether a file may have another name in the project.
    fn may_be_of_project(&self, there: &There) -> bool {
        there.kind() == SFlag::S_IFREG
            && there.stat.st_nlink > 1
            && self.device == Some(there.stat.st_dev)
    }
}

/// Returns whether no name leads to a file any more, so that no other process sees what is written
/// to it.
fn is_unnamed(path: &[u8], there: &There) -> bool {
    there.stat.st_nlink == 0 && path.ends_with(b" (deleted)")
}

/// Returns the rest of a path below a folder, which is empty for the folder itself.
fn below<'path>(path: &'path [u8], folder: &[u8]) -> Option<&'path [u8]> {
    match path.strip_prefix(folder)? {
        [] => Some(b""),
        [b'/', rest @ ..] => Some(rest),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::write_calls::At;
    use super::super::write_path::find;
    use super::*;

    const PROCESS: i32 = 4711;

    fn zones(unasked: &[&str]) -> Zones {
        let gate = WriteGate {
            unasked: unasked.iter().map(|&pattern| pattern.to_owned()).collect(),
        };
        Zones {
            device: None,
            ..Zones::new(&gate, b"/nowhere/project", Some(b"/nowhere"))
        }
    }

    fn of(zones: &Zones, path: &str, makes_folder: bool) -> Zone {
        let found = Found {
            path: path.as_bytes().to_vec(),
            within: None,
            there: None,
            is_folder_path: false,
        };
        zones.of(PROCESS, &found, makes_folder)
    }

    fn asked(path: &str, protected: bool) -> Zone {
        Zone::Asked {
            path: path.into(),
            protected,
        }
    }

    #[test]
    fn the_project_is_asked_about_though_it_lies_in_the_home_folder() {
        let zones = zones(&[]);
        for (path, expected) in [
            ("/nowhere/project/build/x.o", asked("build/x.o", false)),
            ("/nowhere/project", asked(".", false)),
            ("/nowhere/project/.env", asked(".env", true)),
            (
                "/nowhere/project/sub/.git/config",
                asked("sub/.git/config", true),
            ),
            ("/nowhere/projects/x", Zone::Free),
            ("/nowhere/.cache/x", Zone::Free),
            ("/tmp/x", Zone::Free),
            ("/tmp", Zone::Free),
            ("/tmpfile", asked("/tmpfile", false)),
            ("/dev/null", Zone::Free),
            ("/proc/4711/oom_score_adj", Zone::Free),
            ("/proc/47/mem", asked("/proc/47/mem", false)),
            ("/usr/lib/x", asked("/usr/lib/x", false)),
            ("pipe:[5]", Zone::Free),
        ] {
            assert_eq!(of(&zones, path, false), expected, "{path}");
        }
    }

    #[test]
    fn patterns_name_what_is_not_asked_about_and_open_no_protected_name() {
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
            assert_eq!(zone == Zone::Free, is_free, "{path} {zone:?}");
        }
    }

    #[test]
    fn a_file_that_may_have_a_name_in_the_project_is_asked_about_and_one_without_a_name_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("project")).expect("made");
        fs::write(at("file"), "").expect("written");
        let zones = Zones::new(
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
                At::Descriptor(std::os::fd::AsRawFd::as_raw_fd(&file)),
                true,
            )
            .expect("held");
            zones.of(own, &found, false)
        };
        assert_eq!(zone(), Zone::Free);
        fs::hard_link(at("file"), at("project/file")).expect("linked");
        assert!(matches!(
            zone(),
            Zone::Asked {
                protected: false,
                ..
            }
        ));
        fs::remove_file(at("project/file")).expect("removed");
        fs::rename(at("file"), at("project/file")).expect("moved");
        assert_eq!(zone(), asked("file", false));
        fs::remove_file(at("project/file")).expect("removed");
        assert_eq!(zone(), Zone::Free);
    }
}
