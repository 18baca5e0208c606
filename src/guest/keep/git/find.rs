use std::time::Duration;
use std::time::Instant;

use super::folder::Folder;
use super::folder::Kind;
use super::repository::is_repository;
use super::repository::modules;
use super::repository::pointed;
use crate::guest::root::join;
use crate::wire::BytesPath;
use crate::wire::keep::FoundGit;
use crate::wire::keep::FoundRepository;
use crate::wire::keep::GitKind;

/// The longest `.git` file that says something.
pub(crate) const MAX_POINTER: u64 = 8 * 1024;
/// What begins the name of something that is being moved out of the project.
pub(crate) const ON_ITS_WAY: &str = ".podbay-aside-";
/// Longer paths cannot be used from the project's folder, by git neither.
const MAX_PATH: usize = 4000;
const MAX_FOUND: usize = 10_000;

/// Finds every repository of a project, and everything that git takes for the way to one.
///
/// It does not leave the file system, and looks into repositories for those of submodules alone.
pub fn find(project: &Folder, budget: Duration) -> FoundGit {
    let end = Instant::now() + budget;
    let mut found = FoundGit { repositories: Vec::new(), whole: true };
    let Ok(device) = project.stat(b".").map(|stat| stat.st_dev) else { return FoundGit::default() };
    let mut folders = vec![Vec::new()];
    while let Some(path) = folders.pop() {
        if Instant::now() > end || found.repositories.len() > MAX_FOUND {
            found.whole = false;
            break;
        }
        let Ok(names) = project.names(&path) else {
            found.whole = false;
            continue;
        };
        let mut has_git = false;
        for (name, kind) in &names {
            if name.eq_ignore_ascii_case(b".git") {
                has_git = true;
                add(project, &mut found, join(&path, name), *kind);
            }
        }
        // The project itself may be a bare repository, whose hooks are as good as any.
        if is_repository(&names) {
            found.repositories.push(FoundRepository { path: BytesPath::from_bytes(path.clone()), kind: GitKind::Bare });
            add_modules(project, &mut found, &path);
            if !has_git {
                continue;
            }
        }
        for (name, kind) in names {
            if name.starts_with(ON_ITS_WAY.as_bytes()) {
                found.repositories.push(FoundRepository { path: BytesPath::from_bytes(join(&path, &name)), kind: GitKind::OnItsWay });
                continue;
            }
            if kind != Kind::Folder || name.eq_ignore_ascii_case(b".git") {
                continue;
            }
            let inner = join(&path, &name);
            if inner.len() > MAX_PATH {
                found.whole = false;
            } else if project.stat(&inner).is_ok_and(|stat| stat.st_dev == device) {
                folders.push(inner);
            }
        }
    }
    found.repositories.sort();
    found
}

fn add(project: &Folder, found: &mut FoundGit, path: Vec<u8>, kind: Kind) {
    let kind = match kind {
        Kind::Folder => {
            add_modules(project, found, &path);
            GitKind::Folder
        }
        Kind::File => {
            let text = project.read(&path, MAX_POINTER).ok().flatten().unwrap_or_default();
            GitKind::Pointer { to: BytesPath::from_bytes(pointed(&text).unwrap_or_default()) }
        }
        Kind::Link => GitKind::Link { to: BytesPath::from_bytes(project.link_target(&path).unwrap_or_default()) },
        Kind::Special => GitKind::Special,
    };
    found.repositories.push(FoundRepository { path: BytesPath::from_bytes(path), kind });
}

fn add_modules(project: &Folder, found: &mut FoundGit, inside: &[u8]) {
    match modules(project, inside) {
        Ok(paths) => {
            for path in paths {
                add_modules(project, found, &path);
                found.repositories.push(FoundRepository { path: BytesPath::from_bytes(path), kind: GitKind::Module });
            }
        }
        Err(_) => found.whole = false,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::super::sample::Sample;
    use super::*;

    fn found(sample: &Sample) -> FoundGit {
        find(&Folder::open(&sample.path("")).expect("opens"), Duration::from_secs(20))
    }

    fn shown(found: &FoundGit) -> Vec<String> {
        let one = |repository: &FoundRepository| match &repository.kind {
            GitKind::Pointer { to } => format!("{} pointer {to}", repository.path),
            GitKind::Link { to } => format!("{} link {to}", repository.path),
            kind => format!("{} {kind:?}", repository.path),
        };
        found.repositories.iter().map(one).collect()
    }

    #[test]
    fn every_way_to_a_repository_is_found() {
        let sample = Sample::with_submodules();
        sample.git(&["init", "-q", "deep/er/nested"]);
        sample.git(&["init", "-q", "--bare", "bare.git"]);
        sample.git(&["worktree", "add", "-q", "--detach", "tree"]);
        symlink("deep/er/nested/.git", sample.path("deep/.git")).expect("linked");
        // What only leads git on: all but HEAD lies elsewhere.
        sample.write("lure/HEAD", "ref: refs/heads/x\n");
        sample.write("lure/commondir", "../bare.git");
        sample.write("no repository/HEAD", "x");
        sample.write("no repository/objects/x", "x");
        sample.write("src/.gitignore", "x");
        let found = found(&sample);
        assert!(found.whole);
        let worktree = format!("tree/.git pointer {}", sample.path(".git/worktrees/tree").display());
        let expected = [
            ".git Folder",
            ".git/modules/sub Module",
            ".git/modules/sub/modules/deeper Module",
            "bare.git Bare",
            "deep/.git link deep/er/nested/.git",
            "deep/er/nested/.git Folder",
            "lure Bare",
            "sub/.git pointer ../.git/modules/sub",
            "sub/deeper/.git pointer ../../.git/modules/sub/modules/deeper",
            &worktree,
        ];
        assert_eq!(shown(&found), expected);
    }

    #[test]
    fn what_could_not_be_looked_at_is_said() {
        let sample = Sample::new();
        sample.write("a/b/c", "x");
        let project = Folder::open(&sample.path("")).expect("opens");
        assert!(!find(&project, Duration::ZERO).whole);
        assert_eq!(shown(&found(&sample)), [".git Folder"]);
        fs::remove_dir_all(sample.path(".git")).expect("removed");
        sample.write(".git", "nothing that git reads");
        assert_eq!(shown(&found(&sample)), [".git pointer "]);
    }
}
