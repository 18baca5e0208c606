//! Layout of a repository: names of its parts, submodules and worktrees.

use nix::errno::Errno;

use super::config;
use super::config::ConfigEntry;
use super::prepare::MAX_CONFIG;
use super::untrusted_folder::FileKind;
use super::untrusted_folder::UntrustedFolder;
use crate::root::join;
use crate::root::split;
use podbay_wire::BytesPath;

/// Depth limit of submodules' repositories below `modules`: a submodule's name is a path.
const MAX_DEPTH: usize = 16;
const MAX_MODULES: usize = 1000;

/// Returns whether git would treat this folder as a repository, or could be led to.
///
/// Links count like their targets, and a file `commondir` like all that it replaces.
pub fn is_repository(names: &[(Vec<u8>, FileKind)]) -> bool {
    let has = |name: &[u8]| {
        names
            .iter()
            .any(|(found, kind)| found.eq_ignore_ascii_case(name) && *kind != FileKind::Special)
    };
    has(b"HEAD") && (has(b"commondir") || (has(b"objects") && has(b"refs")))
}

/// Names that git reads or writes in a repository's folder.
const PARTS: [&[u8]; 20] = [
    b"HEAD",
    b"commondir",
    b"objects",
    b"refs",
    b"config",
    b"config.worktree",
    b"hooks",
    b"info",
    b"index",
    b"packed-refs",
    b"reftable",
    b"modules",
    b"worktrees",
    b"shallow",
    b"logs",
    b"branches",
    b"description",
    b"FETCH_HEAD",
    b"ORIG_HEAD",
    b"COMMIT_EDITMSG",
];

/// Returns whether an entry of this name belongs to a repository if its folder is one.
pub(crate) fn is_part(name: &[u8]) -> bool {
    PARTS.iter().any(|part| part.eq_ignore_ascii_case(name))
}

/// Whether a repository has no working tree of its own, only those of its worktrees.
pub(crate) fn is_bare(git: &UntrustedFolder) -> bool {
    let read = |path: &[u8]| {
        git.read(path, MAX_CONFIG)
            .ok()
            .flatten()
            .and_then(|text| config::parse(&text).ok())
            .unwrap_or_default()
    };
    let mut entries = read(b"config");
    if entries
        .iter()
        .any(|entry| entry.is("extensions", "worktreeconfig") && entry.is_true())
    {
        entries.extend(read(b"config.worktree"));
    }
    entries
        .iter()
        .rfind(|entry| entry.is("core", "bare"))
        .is_some_and(ConfigEntry::is_true)
}

/// Returns the submodules' repositories directly in one, as `modules/NAME`.
pub(crate) fn modules(git: &UntrustedFolder, inside: &[u8]) -> Result<Vec<Vec<u8>>, Errno> {
    let mut found = Vec::new();
    let mut folders = vec![(join(inside, b"modules"), 0)];
    while let Some((path, depth)) = folders.pop() {
        for (name, kind) in git.names(&path)? {
            let path = join(&path, &name);
            if kind != FileKind::Folder || found.len() >= MAX_MODULES {
                continue;
            }
            if is_repository(&git.names(&path)?) {
                found.push(path);
            } else if depth < MAX_DEPTH {
                folders.push((path, depth + 1));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Parses a `.git` file; `None`: without `gitdir:`.
pub(crate) fn pointed(text: &[u8]) -> Option<&[u8]> {
    let to = text.strip_prefix(b"gitdir:")?.trim_ascii();
    (!to.is_empty()).then_some(to)
}

/// Returns the repository of a linked worktree and the worktree's name in it, from the target of
/// its `.git` file.
pub fn linked(to: &BytesPath) -> Option<(BytesPath, BytesPath)> {
    let (above, name) = split(to.as_bytes());
    let common = above.strip_suffix(b"/worktrees")?;
    let is_plain = !name.is_empty() && name != b"." && name != b".." && !common.is_empty();
    is_plain.then(|| (BytesPath::from_bytes(common), BytesPath::from_bytes(name)))
}

/// Returns a repository's working tree from its config, relative to the project's folder; `None`:
/// not in the project.
///
/// `git` is the repository's own folder, relative as well.
pub(crate) fn work_tree(git: &[u8], said: &[u8]) -> Option<Vec<u8>> {
    if said.starts_with(b"/") {
        return None;
    }
    let mut parts: Vec<&[u8]> = git
        .split(|byte| *byte == b'/')
        .filter(|part| !part.is_empty())
        .collect();
    for part in said.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join(&b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_trees_are_in_the_project_or_nowhere() {
        let tree = |git: &str, said: &str| {
            work_tree(git.as_bytes(), said.as_bytes())
                .map(|path| String::from_utf8(path).expect("text"))
        };
        assert_eq!(tree(".git/modules/sub", "../../../sub"), Some("sub".into()));
        assert_eq!(
            tree(".git/modules/a/modules/b", "../../../../../a/./b"),
            Some("a/b".into())
        );
        assert_eq!(tree(".git", ".."), Some(String::new()));
        assert_eq!(tree(".git", "../.."), None);
        assert_eq!(tree(".git", "/home"), None);
    }

    #[test]
    fn a_linked_worktree_names_its_repository() {
        let of =
            |to: &str| linked(&to.into()).map(|(common, name)| (common.to_text(), name.to_text()));
        assert_eq!(
            of("/a/.git/worktrees/b"),
            Some(("/a/.git".into(), "b".into()))
        );
        for to in [
            "/a/.git/modules/b",
            "/worktrees/b",
            "/a/.git/worktrees/..",
            "x",
            "",
        ] {
            assert_eq!(of(to), None, "{to}");
        }
        assert_eq!(
            pointed(b"gitdir: ../.git/modules/x\n"),
            Some(b"../.git/modules/x".as_slice())
        );
        assert_eq!(pointed(b"x"), None);
    }
}
