//! The programs that rules name, as files: looked up as a shell does, once for all calls with the
//! same rules.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use serde::Deserialize;
use serde::Serialize;

use super::identity::head_of;
use super::matching::base;
use podbay_wire::ExecRule;

/// Dynamic loaders, by which a program started under another name is recognized.
const LOADERS: [&str; 4] = [
    "/lib64/ld-linux-x86-64.so.2",
    "/lib/ld-linux-aarch64.so.1",
    "/lib/ld-musl-x86_64.so.1",
    "/lib/ld-musl-aarch64.so.1",
];

/// A program that rules name, as a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KnownProgram {
    pub(crate) name: String,
    pub(crate) device: u64,
    pub(crate) inode: u64,
    /// The linker's build id.
    pub(crate) build: Option<Vec<u8>>,
}

/// What was found for the rules and the `PATH` of the last call.
///
/// Most calls of a session come with the same rules. About 70 names in six folders are over 400
/// looks at the file system, which take milliseconds on a layered one.
#[derive(Debug, Default)]
pub(crate) struct KnownPrograms {
    last: Mutex<Option<(Lookup, Arc<[KnownProgram]>)>>,
}

/// What the lookup depends on.
#[derive(Debug, PartialEq, Eq)]
struct Lookup {
    names: Vec<String>,
    path: Vec<u8>,
    /// The state of each folder of `PATH`: a file that is added or removed changes it.
    folders: Vec<Option<FolderState>>,
}

#[derive(Debug, PartialEq, Eq)]
struct FolderState {
    device: u64,
    inode: u64,
    changed: (i64, i64),
}

impl KnownPrograms {
    /// Returns the programs that `rules` name, as a shell with this `PATH` finds them.
    pub(crate) fn of(&self, rules: &[ExecRule], path: &[u8]) -> Arc<[KnownProgram]> {
        let lookup = Lookup {
            names: names_in(rules),
            path: path.to_vec(),
            folders: folders_of(path).map(state_of).collect(),
        };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, programs)) = last.as_ref()
            && *known == lookup
        {
            return Arc::clone(programs);
        }
        let programs: Arc<[KnownProgram]> = find(&lookup.names, path).into();
        *last = Some((lookup, Arc::clone(&programs)));
        programs
    }
}

fn names_in(rules: &[ExecRule]) -> Vec<String> {
    let mut names: Vec<String> = rules
        .iter()
        .filter_map(|rule| rule.words.first())
        .flatten()
        .filter(|name| !name.contains(['*', '/']))
        .cloned()
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn folders_of(path: &[u8]) -> impl Iterator<Item = &Path> {
    path.split(|&byte| byte == b':')
        .filter(|folder| !folder.is_empty())
        .map(|folder| Path::new(OsStr::from_bytes(folder)))
}

fn state_of(folder: &Path) -> Option<FolderState> {
    let metadata = fs::metadata(folder).ok()?;
    Some(FolderState {
        device: metadata.dev(),
        inode: metadata.ino(),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
    })
}

fn find(names: &[String], path: &[u8]) -> Vec<KnownProgram> {
    let in_path = names.iter().filter_map(|name| {
        folders_of(path).find_map(|folder| known_program(name, &folder.join(name)))
    });
    let loaders = LOADERS
        .iter()
        .filter_map(|loader| known_program("ld.so", Path::new(loader)));
    in_path.chain(loaders).collect()
}

/// Returns `None` where there is no such file, or where it is a multi-call program, which only its
/// names tell apart.
fn known_program(name: &str, file: &Path) -> Option<KnownProgram> {
    const MANY_NAMES: u64 = 2;
    // Most names are missing in most folders: one `stat` is enough.
    fs::metadata(file).ok()?;
    let file = file.canonicalize().ok()?;
    let metadata = file.metadata().ok().filter(fs::Metadata::is_file)?;
    let own = base(file.as_os_str().as_bytes());
    // `gcc` is a link to `x86_64-linux-gnu-gcc-14`; `ls` may be one to `busybox`, a multi-call
    // program.
    let is_part = || {
        own.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'+')
            .any(|part| part == name.as_bytes())
    };
    let is_its_own = own.starts_with(name.as_bytes()) || is_part() || name == "ld.so";
    if !is_its_own || metadata.nlink() > MANY_NAMES {
        return None;
    }
    Some(KnownProgram {
        name: name.to_owned(),
        device: metadata.dev(),
        inode: metadata.ino(),
        build: head_of(&file).build,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use podbay_wire::ExecEffect;
    use podbay_wire::ExecScope;

    use super::*;

    fn rules(names: &[&str]) -> Vec<ExecRule> {
        let rule = |name: &&str| ExecRule {
            effect: ExecEffect::Deny,
            words: vec![vec![(*name).to_owned()]],
            more: true,
            options_between: false,
            unless: Vec::new(),
            scope: ExecScope::Own,
            rule: (*name).to_owned(),
            justification: String::new(),
        };
        names.iter().map(rule).collect()
    }

    fn inodes(programs: &[KnownProgram], name: &str) -> Vec<u64> {
        programs
            .iter()
            .filter(|program| program.name == name)
            .map(|program| program.inode)
            .collect()
    }

    #[test]
    fn programs_are_looked_up_again_only_when_rules_path_or_folders_change() {
        let folder = tempfile::tempdir().expect("a folder");
        let (first, second) = (folder.path().join("first"), folder.path().join("second"));
        for folder in [&first, &second] {
            fs::create_dir(folder).expect("made");
        }
        fs::write(second.join("tool"), "x").expect("written");
        let path = [
            first.as_os_str().as_bytes(),
            b":",
            second.as_os_str().as_bytes(),
        ]
        .concat();
        let known = KnownPrograms::default();
        let tool = rules(&["tool", "absent", "to*", "a/b"]);
        let found = known.of(&tool, &path);
        let inode = |path: &Path| fs::metadata(path).expect("there").ino();
        assert_eq!(inodes(&found, "tool"), [inode(&second.join("tool"))]);
        assert!(
            Arc::ptr_eq(&found, &known.of(&tool, &path)),
            "it was looked up again"
        );
        // A program that appears in an earlier folder counts from then on.
        fs::write(first.join("tool"), "y").expect("written");
        assert_eq!(
            inodes(&known.of(&tool, &path), "tool"),
            [inode(&first.join("tool"))]
        );
        let other = known.of(&rules(&["absent"]), &path);
        assert_eq!(inodes(&other, "tool"), [0; 0]);
        let elsewhere = known.of(&tool, second.as_os_str().as_bytes());
        assert_eq!(inodes(&elsewhere, "tool"), [inode(&second.join("tool"))]);
    }

    #[test]
    fn a_multi_call_program_is_known_by_its_names_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("manybox"), "x").expect("written");
        symlink("manybox", at("wget")).expect("linked");
        fs::write(at("rm"), "y").expect("written");
        for name in ["ls", "cp"] {
            fs::hard_link(at("rm"), at(name)).expect("linked");
        }
        let path = folder.path().as_os_str().as_bytes();
        let found = KnownPrograms::default().of(&rules(&["wget", "rm"]), path);
        assert!(found.iter().all(|program| program.name == "ld.so"));
    }
}
