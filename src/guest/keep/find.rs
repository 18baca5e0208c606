//! Finds what a box must not be able to read, or not to change.

use std::fs;
use std::fs::File;
use std::io;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use std::time::Instant;

use ignore::gitignore::Gitignore;
use ignore::gitignore::GitignoreBuilder;
use nix::fcntl::OFlag;
use nix::fcntl::openat;
use nix::sys::stat::Mode;
use nix::sys::stat::SFlag;
use nix::sys::stat::fstat;

use crate::guest::beneath::Beneath;
use crate::guest::root::as_path;
use crate::guest::root::file_type;
use crate::guest::tools::ignore_rules::Rules;
use crate::guest::tools::stop::Stop;
use crate::guest::tools::walk::Entry;
use crate::guest::tools::walk::Kind;
use crate::guest::tools::walk::Visitor;
use crate::guest::tools::walk::Walk;
use crate::guest::tools::walk::list;
use crate::wire::BytesPath;
use crate::wire::SecretName;
use crate::wire::keep::Find;
use crate::wire::keep::Found;
use crate::wire::keep::MOST_HIDDEN;
use crate::wire::keep::Secret;
use crate::wire::secret_name;

/// What of a file is looked through for a private key; longer ones hold other things.
const MOST_KEY: u64 = 64 << 10;

/// The words that all forms of private keys in PEM have.
const KEY: &[u8] = b"PRIVATE KEY";

/// Looks through the project for as long as it may.
pub(super) fn find(workspace: &Path, find: &Find) -> io::Result<Found> {
    let folder = OwnedFd::from(File::open(workspace)?);
    let base = Beneath::new(folder);
    let cancelled = AtomicBool::new(false);
    let stop = Stop::new(&cancelled, Some(Instant::now() + Duration::from_millis(find.budget_ms)));
    let finder = Finder { workspace, reveal: patterns(&find.reveal)?, auto_run: patterns(&find.auto_run)?, stop: &stop };
    let walk = Walk { base: &base, prefix: b"", rules: Some(Arc::new(Rules::default())), hidden: true, max_depth: usize::MAX, stop: &stop };
    let walked = walk.run(&finder);
    let mut found = Found { is_whole: !stop.is_late(), n_unreadable: walked.n_unreadable, ..Found::default() };
    for part in walked.states {
        found.secrets.extend(part.secrets);
        found.auto_run.extend(part.auto_run);
        found.repositories.extend(part.repositories);
    }
    found.n_left_out = bound(&mut found.secrets) + bound(&mut found.auto_run) + bound(&mut found.repositories);
    Ok(found)
}

/// Sorts a list and keeps what there is room for, the shortest paths first: what stands near the top matters most.
fn bound<T: Ord + HasPath>(list: &mut Vec<T>) -> u32 {
    list.sort();
    list.dedup();
    let n_over = list.len().saturating_sub(MOST_HIDDEN);
    if n_over > 0 {
        list.sort_by_key(|item| memchr::memchr_iter(b'/', item.path().as_bytes()).count());
        list.truncate(MOST_HIDDEN);
        list.sort();
    }
    n_over as u32
}

trait HasPath {
    fn path(&self) -> &BytesPath;
}

impl HasPath for BytesPath {
    fn path(&self) -> &BytesPath {
        self
    }
}

impl HasPath for Secret {
    fn path(&self) -> &BytesPath {
        &self.path
    }
}

fn patterns(lines: &[String]) -> io::Result<Gitignore> {
    let mut builder = GitignoreBuilder::new("/");
    for line in lines {
        builder.add_line(None, line).map_err(io::Error::other)?;
    }
    // `.ENV` is `.env` on a file system that folds case, and what a person wrote by hand means both.
    builder.case_insensitive(true).map_err(io::Error::other)?;
    builder.build().map_err(io::Error::other)
}

struct Finder<'a> {
    workspace: &'a Path,
    reveal: Gitignore,
    auto_run: Gitignore,
    stop: &'a Stop<'a>,
}

#[derive(Default)]
struct Part {
    secrets: Vec<Secret>,
    auto_run: Vec<BytesPath>,
    repositories: Vec<BytesPath>,
}

impl Visitor for Finder<'_> {
    type State = Part;

    /// Names decide before the rules do: a secret is nearly always ignored.
    fn select(&self, entry: &Entry<'_>) -> Option<bool> {
        (secret_name(entry.name).is_some() || self.is_auto_run(entry)).then_some(true)
    }

    fn visit(&self, part: &mut Part, entry: &Entry<'_>) {
        if self.is_auto_run(entry) {
            part.auto_run.extend(self.place(entry).map(|place| place.path));
        }
        if self.is_secret(entry) {
            part.secrets.extend(self.place(entry));
        }
    }

    /// What is hidden as a whole need not be walked; what is read-only may hold secrets (`.cargo/credentials.toml`).
    fn enters(&self, folder: &Entry<'_>) -> bool {
        !self.is_secret(folder)
    }

    /// Looks at the names in a folder that is ignored, and no deeper: what builds and package managers leave there is much.
    fn pass_over(&self, part: &mut Part, entry: &Entry<'_>) {
        if entry.kind != Kind::Folder || self.stop.is_set() {
            return;
        }
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let Ok(folder) = openat(entry.folder, entry.name, flags, Mode::empty()) else { return };
        let Ok((names, _)) = list(folder.as_fd(), self.stop) else { return };
        for name in &names {
            let full = [entry.full, b"/", &name.name].concat();
            let inner = Entry { full: &full, name: &name.name, kind: name.kind, folder: folder.as_fd() };
            if &*name.name == b".git" {
                self.repository(part, &inner);
            } else if self.select(&inner) == Some(true) {
                self.visit(part, &inner);
            }
        }
    }

    fn repository(&self, part: &mut Part, entry: &Entry<'_>) {
        if entry.path() != b".git" && matches!(entry.kind, Kind::File | Kind::Folder) {
            part.repositories.push(BytesPath::from_bytes(entry.path()));
        }
    }
}

impl Finder<'_> {
    fn is_auto_run(&self, entry: &Entry<'_>) -> bool {
        entry.kind != Kind::Other && matches(&self.auto_run, entry)
    }

    fn is_secret(&self, entry: &Entry<'_>) -> bool {
        let by_name = match (secret_name(entry.name), entry.kind) {
            (Some(SecretName::IfFolder), Kind::Folder) | (Some(SecretName::IfFolder | SecretName::Certain), Kind::File | Kind::Link) => {
                true
            }
            // What a link leads to is found by its own name, if that is one.
            (Some(SecretName::IfKey), Kind::File) => holds_key(entry),
            _ => false,
        };
        by_name && !matches(&self.reveal, entry)
    }

    /// Returns what must be covered, which is not the link itself but what it leads to: the mount would be there anyway.
    fn place(&self, entry: &Entry<'_>) -> Option<Secret> {
        if entry.kind != Kind::Link {
            return Some(Secret { path: BytesPath::from_bytes(entry.path()), is_folder: entry.kind == Kind::Folder });
        }
        let real = fs::canonicalize(self.workspace.join(as_path(entry.path()))).ok()?;
        let is_folder = real.is_dir();
        // What lies outside is not in the box, or belongs to the image.
        let path = real.strip_prefix(fs::canonicalize(self.workspace).ok()?).ok()?.to_owned();
        (!path.as_os_str().is_empty()).then(|| Secret { path: BytesPath::from(path), is_folder })
    }
}

fn matches(patterns: &Gitignore, entry: &Entry<'_>) -> bool {
    patterns.matched(as_path(entry.full), entry.kind == Kind::Folder).is_ignore()
}

/// Returns whether a private key is in a file; a file that cannot be read cannot be read in the box either.
fn holds_key(entry: &Entry<'_>) -> bool {
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let Ok(fd) = openat(entry.folder, entry.name, flags, Mode::empty()) else { return false };
    if !fstat(&fd).is_ok_and(|facts| file_type(&facts) == SFlag::S_IFREG) {
        return false;
    }
    let mut bytes = Vec::new();
    let read = File::from(fd).take(MOST_KEY).read_to_end(&mut bytes);
    read.is_ok() && memchr::memmem::find(&bytes, KEY).is_some()
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    use super::*;

    fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (path, content) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, content).expect("written");
        }
        folder
    }

    fn looked(folder: &Path, reveal: &[&str], auto_run: &[&str]) -> Found {
        let owned = |lines: &[&str]| lines.iter().map(|&line| line.to_owned()).collect();
        find(folder, &Find { reveal: owned(reveal), auto_run: owned(auto_run), budget_ms: 10_000 }).expect("looked through")
    }

    fn secrets(found: &Found) -> Vec<String> {
        found.secrets.iter().map(|secret| secret.path.to_text()).collect()
    }

    const PEM: &str = "-----BEGIN EC PRIVATE KEY-----\nMHcC\n";

    #[test]
    fn secrets_are_found_by_name_and_keys_by_what_is_in_them() {
        let folder = project(&[
            (".env", "A=1"),
            (".env.example", "A="),
            ("deploy/.env.production", "A=1"),
            ("certs/ca.pem", "-----BEGIN CERTIFICATE-----"),
            ("certs/server.key", PEM),
            ("home/.ssh/config", "Host x"),
            ("src/credentials.rs", ""),
            ("gcp-credentials.json", "{}"),
        ]);
        let found = looked(folder.path(), &[], &[]);
        assert_eq!(secrets(&found), [".env", "certs/server.key", "deploy/.env.production", "gcp-credentials.json", "home/.ssh"]);
        assert!(found.secrets[4].is_folder && !found.secrets[0].is_folder && found.is_whole);
    }

    #[test]
    fn what_is_ignored_is_found_at_its_top_and_no_deeper() {
        let folder = project(&[
            (".gitignore", ".env\nbuild/\nnode_modules/\n"),
            (".env", "A=1"),
            ("build/.env", "A=1"),
            ("node_modules/.npmrc", "token"),
            ("node_modules/tool/test/server.pem", PEM),
            ("node_modules/tool/.vscode/tasks.json", "{}"),
        ]);
        let found = looked(folder.path(), &[], &[".vscode"]);
        assert_eq!(secrets(&found), [".env", "build/.env", "node_modules/.npmrc"]);
        assert_eq!(found.auto_run, Vec::<BytesPath>::new());
    }

    #[test]
    fn what_the_person_reveals_is_not_hidden() {
        let folder = project(&[(".env", "A=1"), (".env.test", "A=1"), ("fixtures/a/server.key", PEM), ("home/.aws/config", "")]);
        assert_eq!(secrets(&looked(folder.path(), &[".env.test", "fixtures/**", "/home/.aws"], &[])), [".env"]);
        assert_eq!(secrets(&looked(folder.path(), &[".env"], &[])), [".env.test", "fixtures/a/server.key", "home/.aws"]);
    }

    #[test]
    fn what_runs_by_itself_is_found_as_a_whole_wherever_it_lies() {
        let folder = project(&[
            (".vscode/tasks.json", "{}"),
            ("sub/.vscode/settings.json", "{}"),
            (".envrc", "echo"),
            (".github/workflows/ci.yml", ""),
            ("sub/.github/x", ""),
            ("sub/.mcp.json", "{}"),
            (".cargo/credentials.toml", "token"),
        ]);
        let found = looked(folder.path(), &[], &[".vscode", ".envrc", "/.github", ".mcp.json", ".cargo"]);
        let paths: Vec<String> = found.auto_run.iter().map(BytesPath::to_text).collect();
        assert_eq!(paths, [".cargo", ".envrc", ".github", ".vscode", "sub/.mcp.json", "sub/.vscode"]);
        assert_eq!(secrets(&found), [".cargo/credentials.toml"], "what is read-only may be a secret as well");
    }

    #[test]
    fn what_a_link_of_such_a_name_leads_to_is_found_too() {
        let folder = project(&[("hooks/pre-commit", "x")]);
        symlink("hooks", folder.path().join(".husky")).expect("linked");
        symlink("/etc", folder.path().join(".vscode")).expect("linked");
        let found = looked(folder.path(), &[], &[".husky", ".vscode"]);
        assert_eq!(found.auto_run.iter().map(BytesPath::to_text).collect::<Vec<_>>(), ["hooks"]);
    }

    #[test]
    fn repositories_below_the_top_are_named_whether_folder_or_file() {
        let folder = project(&[
            (".gitignore", "vendor/\n"),
            (".git/config", ""),
            ("sub/.git", "gitdir: ../.git/modules/sub"),
            ("tools/deep/.git/config", ""),
            ("vendor/.git/config", ""),
        ]);
        let paths: Vec<String> = looked(folder.path(), &[], &[]).repositories.iter().map(BytesPath::to_text).collect();
        assert_eq!(paths, ["sub/.git", "tools/deep/.git", "vendor/.git"]);
    }

    #[test]
    fn of_a_link_it_is_the_target_that_is_hidden_where_that_lies_in_the_project() {
        let folder = project(&[("shared/settings", "A=1")]);
        symlink("shared/settings", folder.path().join(".env")).expect("linked");
        symlink("/etc/passwd", folder.path().join(".env.out")).expect("linked");
        symlink("nothing", folder.path().join(".env.dangling")).expect("linked");
        symlink(".", folder.path().join(".ssh")).expect("linked");
        assert_eq!(secrets(&looked(folder.path(), &[], &[])), ["shared/settings"]);
    }

    #[test]
    fn names_of_any_bytes_and_files_that_are_none_do_no_harm() {
        let folder = project(&[(".env.a\nb", "A=1")]);
        let bad = std::ffi::OsStr::from_bytes(b".env.\xff");
        fs::write(folder.path().join(bad), "A=1").expect("written");
        nix::unistd::mkfifo(&folder.path().join("server.key"), Mode::from_bits_truncate(0o600)).expect("made");
        nix::unistd::mkfifo(&folder.path().join(".env"), Mode::from_bits_truncate(0o600)).expect("made");
        assert_eq!(secrets(&looked(folder.path(), &[], &[])), [".env.a\\x0ab", ".env.\\xff"]);
    }

    #[test]
    fn a_long_list_keeps_what_stands_near_the_top_and_says_how_much_it_lacks() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(folder.path().join("deep")).expect("made");
        for number in 0..MOST_HIDDEN {
            fs::write(folder.path().join(format!("deep/.env.{number}")), "A=1").expect("written");
        }
        fs::write(folder.path().join("zz-credentials.json"), "{}").expect("written");
        let found = looked(folder.path(), &[], &[]);
        assert_eq!((found.secrets.len(), found.n_left_out), (MOST_HIDDEN, 1));
        assert!(secrets(&found).contains(&"zz-credentials.json".to_owned()));
    }

    #[test]
    fn without_time_it_says_that_it_did_not_see_all() {
        let folder = project(&[("a/b/c/.env", "A=1")]);
        let found = find(folder.path(), &Find { reveal: Vec::new(), auto_run: Vec::new(), budget_ms: 0 }).expect("looked through");
        assert!(!found.is_whole, "{found:?}");
    }
}
