//! The file tools on a real folder, through the call that the guest makes.

mod alike;
mod arranging;
mod by_name;
mod editing;
mod encodings;
mod globbing;
mod listing;
mod patching;
mod paths;
mod protected;
mod reading;
mod searching;
mod writing;

use std::fs;
use std::os::unix::fs::FileExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;
use std::time::SystemTime;

use nix::fcntl::AT_FDCWD;
use nix::fcntl::RenameFlags;
use nix::fcntl::renameat2;
use podbay::guest::tools::Workspace;
use podbay::guest::tools::run;
use podbay::wire::ApplyPatch;
use podbay::wire::BytesPath;
use podbay::wire::Call;
use podbay::wire::Change;
use podbay::wire::CopyFile;
use podbay::wire::DeleteFile;
use podbay::wire::EditFile;
use podbay::wire::Edited;
use podbay::wire::Encoding;
use podbay::wire::Fault;
use podbay::wire::FileChange;
use podbay::wire::FilePatch;
use podbay::wire::FileText;
use podbay::wire::FoundFiles;
use podbay::wire::Glob;
use podbay::wire::Grep;
use podbay::wire::GrepOutput;
use podbay::wire::ListDirectory;
use podbay::wire::Matches;
use podbay::wire::Mkdir;
use podbay::wire::MoveFile;
use podbay::wire::Output;
use podbay::wire::PatchAction;
use podbay::wire::Read;
use podbay::wire::ReadFile;
use podbay::wire::Replacement;
use podbay::wire::Tree;
use podbay::wire::WriteFile;
use podbay::wire::Written;
use podbay::wire::frame;

/// A project in a folder of its own, with a folder beside it that nothing may touch.
struct Project {
    _folder: tempfile::TempDir,
    path: PathBuf,
    outside: PathBuf,
    workspace: Workspace,
}

impl Project {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("project");
        let outside = folder.path().join("outside");
        fs::create_dir(&path).expect("made");
        fs::create_dir(&outside).expect("made");
        fs::write(outside.join("secret"), "secret\n").expect("written");
        let workspace = Workspace::open(&path).expect("opens");
        let project = Self {
            _folder: folder,
            path,
            outside,
            workspace,
        };
        for (name, text) in files {
            project.put(name, text);
        }
        project
    }

    fn put(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path.join(name);
        fs::create_dir_all(path.parent().expect("has one")).expect("made");
        fs::write(path, bytes).expect("written");
    }

    #[track_caller]
    fn git(&self, words: &[&str]) {
        let done = std::process::Command::new("git")
            .arg("-C")
            .arg(&self.path)
            .args(words)
            .output()
            .expect("git runs");
        assert!(
            done.status.success(),
            "{words:?}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path.join(name)).expect("is there")
    }

    fn text(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name)).expect("is text")
    }

    fn call(&self, call: impl std::borrow::Borrow<Call>) -> Output {
        let output = run(&self.workspace, call.borrow(), &AtomicBool::new(false));
        frame::encode(&output).expect("every output fits its frame");
        output
    }

    #[track_caller]
    fn read_page(&self, path: &str, offset: u64, limit: u64) -> Result<FileText, Fault> {
        match self.call(Call::ReadFile(ReadFile {
            offset,
            limit,
            ..read(path)
        })) {
            Output::Read(Read { mut files, .. }) => Ok(files.remove(0)),
            Output::Fault(fault) => Err(fault),
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn read(&self, path: &str) -> Result<FileText, Fault> {
        self.read_page(path, 1, 2000)
    }

    #[track_caller]
    fn write(&self, path: &str, content: &str) -> Result<Written, Fault> {
        match self.call(Call::WriteFile(WriteFile {
            path: path.into(),
            content: content.into(),
            append: false,
            protected: false,
            known: None,
        })) {
            Output::Written(written) => Ok(written),
            Output::Fault(fault) => Err(fault),
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn append(&self, path: &str, content: &str) -> Result<Written, Fault> {
        match self.call(Call::WriteFile(WriteFile {
            path: path.into(),
            content: content.into(),
            append: true,
            protected: false,
            known: None,
        })) {
            Output::Written(written) => Ok(written),
            Output::Fault(fault) => Err(fault),
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn edits(
        &self,
        path: &str,
        edits: &[(&str, &str)],
        create_if_missing: bool,
    ) -> Result<Edited, Fault> {
        let edits = edits.iter().map(|(old, new)| Replacement {
            old_string: (*old).into(),
            new_string: (*new).into(),
            replace_all: false,
        });
        match self.call(Call::EditFile(EditFile {
            path: path.into(),
            edits: edits.collect(),
            create_if_missing,
            protected: false,
            known: None,
        })) {
            Output::Edited(edited) => Ok(edited),
            Output::Fault(fault) => Err(fault),
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn edit(&self, path: &str, old: &str, new: &str) -> Result<Edited, Fault> {
        self.edits(path, &[(old, new)], false)
    }

    /// Makes a call that can touch several files.
    #[track_caller]
    fn change(&self, call: Call) -> Result<Vec<FileChange>, Fault> {
        match self.call(call) {
            Output::Changed(changed) => Ok(changed.files),
            Output::Fault(fault) => Err(fault),
            other => panic!("{other:?}"),
        }
    }

    /// Every name in the project with what it holds: the text of a file, `/` for a folder, `->
    /// TARGET` for a link.
    fn tree(&self) -> Vec<(String, String)> {
        fn look(root: &Path, folder: &Path, all: &mut Vec<(String, String)>) {
            for entry in fs::read_dir(folder).expect("lists").flatten() {
                let path = entry.path();
                let name = path
                    .strip_prefix(root)
                    .expect("is in it")
                    .to_string_lossy()
                    .into_owned();
                let kind = entry.file_type().expect("has one");
                if kind.is_dir() {
                    all.push((name, "/".to_owned()));
                    look(root, &path, all);
                } else if kind.is_symlink() {
                    all.push((
                        name,
                        format!("-> {}", fs::read_link(&path).expect("is one").display()),
                    ));
                } else if kind.is_file() {
                    all.push((
                        name,
                        String::from_utf8_lossy(&fs::read(&path).expect("reads")).into_owned(),
                    ));
                } else {
                    all.push((name, "special".to_owned()));
                }
            }
        }
        let mut all = Vec::new();
        look(&self.path, &self.path, &mut all);
        all.sort();
        all
    }

    /// One line for each entry, and how many are left out.
    #[track_caller]
    fn list(&self, call: ListDirectory) -> (Vec<String>, u64) {
        match self.call(Call::ListDirectory(call)) {
            Output::Listing(listing) => {
                let entries = listing.entries.iter().map(|entry| {
                    let bytes = entry
                        .bytes
                        .map(|bytes| format!(" {bytes}"))
                        .unwrap_or_default();
                    let target = entry
                        .target
                        .as_ref()
                        .map(|target| format!(" -> {target}"))
                        .unwrap_or_default();
                    format!("{:?} {}{bytes}{target}", entry.kind, entry.path)
                });
                (entries.collect(), listing.omitted.expect("is counted"))
            }
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn found(&self, call: Glob) -> FoundFiles {
        match self.call(Call::Glob(call)) {
            Output::Files(found) => found,
            other => panic!("{other:?}"),
        }
    }

    /// The names found, sorted.
    #[track_caller]
    fn glob(&self, pattern: &str) -> Vec<String> {
        let mut paths: Vec<String> = self
            .found(glob(pattern))
            .paths
            .iter()
            .map(BytesPath::to_text)
            .collect();
        paths.sort();
        paths
    }

    #[track_caller]
    fn matches(&self, call: Grep) -> Matches {
        match self.call(Call::Grep(call)) {
            Output::Matches(matches) => matches,
            other => panic!("{other:?}"),
        }
    }

    /// One line for each line shown, in ripgrep's manner.
    #[track_caller]
    fn grep(&self, call: Grep) -> Vec<String> {
        let files = self.matches(call).files;
        let lines = files.iter().flat_map(|file| {
            file.lines.iter().map(move |line| {
                let mark = if line.matched { ':' } else { '-' };
                format!("{}{mark}{}{mark}{}", file.path, line.number, line.text)
            })
        });
        lines.collect()
    }

    /// Nothing was made, changed or left beside the project, and no temporary file in it.
    #[track_caller]
    fn check_untouched(&self) {
        let names: Vec<_> = fs::read_dir(&self.outside)
            .expect("lists")
            .flatten()
            .map(|entry| entry.file_name())
            .collect();
        assert_eq!(names, ["secret"]);
        assert_eq!(
            fs::read(self.outside.join("secret")).expect("is there"),
            b"secret\n"
        );
        Self::check_tidy(&self.path);
    }

    #[track_caller]
    fn check_tidy(folder: &Path) {
        for entry in fs::read_dir(folder).expect("lists").flatten() {
            assert!(
                !entry.file_name().to_string_lossy().starts_with(".podbay-"),
                "{entry:?} was left"
            );
            if entry.file_type().expect("has one").is_dir() {
                Self::check_tidy(&entry.path());
            }
        }
    }
}

fn read(path: &str) -> ReadFile {
    ReadFile {
        path: Some(path.into()),
        offset: 1,
        limit: 2000,
        max_bytes: 50_000,
        cursor: None,
        max_files: 5,
        images: false,
        protected: false,
    }
}

fn list(path: &str) -> ListDirectory {
    ListDirectory {
        path: path.into(),
        recursive: false,
        show_hidden: false,
        show_size: true,
        max_entries: 1000,
    }
}

fn glob(pattern: &str) -> Glob {
    Glob {
        pattern: pattern.into(),
        path: "".into(),
        exclude: None,
        include_ignored: false,
        max_results: 500,
    }
}

fn grep(pattern: &str) -> Grep {
    Grep {
        pattern: pattern.into(),
        path: "".into(),
        glob: None,
        include_ignored: false,
        context: 0,
        case_insensitive: false,
        output: GrepOutput::Content,
        max_results: 500,
        timeout_ms: 60_000,
        protected: false,
    }
}

fn delete(path: &str) -> Call {
    Call::DeleteFile(DeleteFile {
        path: path.into(),
        recursive: false,
        protected: false,
        known: None,
    })
}

fn delete_all(path: &str) -> Call {
    Call::DeleteFile(DeleteFile {
        path: path.into(),
        recursive: true,
        protected: false,
        known: None,
    })
}

fn copy(source: &str, destination: &str) -> CopyFile {
    CopyFile {
        source: source.into(),
        destination: destination.into(),
        recursive: false,
        overwrite: false,
        protected: false,
        known: None,
    }
}

fn rename(source: &str, destination: &str) -> MoveFile {
    MoveFile {
        source: source.into(),
        destination: destination.into(),
        overwrite: false,
        protected: false,
        known: None,
    }
}

fn mkdir(path: &str) -> Call {
    Call::Mkdir(Mkdir {
        path: path.into(),
        protected: false,
    })
}
