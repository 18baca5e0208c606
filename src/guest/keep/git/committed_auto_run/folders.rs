//! Finds names of repository parts in the folders of very many commits, with few runs of git.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::keep::bare_repository::RepositoryPart;
use crate::keep::git::git_command::Git;
use crate::keep::git::import::RepositoryImport;
use crate::keep::git::refs::object;
use crate::root::join;
use podbay_wire::BytesPath;
use podbay_wire::Fault;

/// Most bytes of one request to git, and of one answer, which is truncated above a limit.
const MOST_ASKED: usize = 1 << 20;
const MOST_ANSWERED: u64 = 8 << 20;

impl RepositoryImport<'_> {
    /// Returns the entries in folders of commits or trees with names of repository parts; `None`:
    /// too many.
    pub(super) fn parts_within(
        &self,
        git: &Git,
        tips: &[&str],
        folders: &[&[u8]],
    ) -> Result<Option<BTreeSet<BytesPath>>, Fault> {
        let roots = tips
            .iter()
            .map(|tip| format!("{tip}^{{tree}}").into_bytes())
            .collect::<Vec<_>>();
        let Some(roots) = self.trees(git, &roots)? else {
            return Ok(None);
        };
        let roots: BTreeSet<String> = roots.into_iter().map(|(id, _)| id).collect();
        // Many commits have the same folder.
        let mut found: BTreeMap<String, (u64, BTreeSet<&[u8]>)> = BTreeMap::new();
        // Git imports no entry named `.` or `..`.
        let is_dot = |folder: &[u8]| {
            folder
                .split(|byte| *byte == b'/')
                .any(|part| matches!(part, b"." | b".."))
        };
        for folder in folders.iter().filter(|folder| !is_dot(folder)) {
            let places: Vec<Vec<u8>> = roots
                .iter()
                .map(|root| [root.as_bytes(), b":", *folder].concat())
                .collect();
            let Some(trees) = self.trees(git, &places)? else {
                return Ok(None);
            };
            for (id, bytes) in trees {
                found
                    .entry(id)
                    .or_insert_with(|| (bytes, BTreeSet::new()))
                    .1
                    .insert(folder);
            }
        }
        let mut parts = BTreeSet::new();
        let (mut some, mut n_bytes) = (Vec::new(), 0);
        for (id, (bytes, _)) in &found {
            if n_bytes + bytes > MOST_ANSWERED && !some.is_empty() {
                let Some(read) = self.read_parts(git, &some, &found)? else {
                    return Ok(None);
                };
                parts.extend(read);
                (some, n_bytes) = (Vec::new(), 0);
            }
            some.push(id.as_str());
            n_bytes += bytes;
        }
        let Some(read) = self.read_parts(git, &some, &found)? else {
            return Ok(None);
        };
        parts.extend(read);
        Ok(Some(parts))
    }

    /// Returns the trees that some names point to, with their sizes.
    fn trees(&self, git: &Git, names: &[Vec<u8>]) -> Result<Option<Vec<(String, u64)>>, Fault> {
        let mut trees = Vec::new();
        let mut at = 0;
        while at < names.len() {
            let mut asked = Vec::new();
            let begin = at;
            while at < names.len() && asked.len() < MOST_ASKED {
                asked.extend_from_slice(&names[at]);
                asked.push(0);
                at += 1;
            }
            let words = [
                "cat-file",
                "-z",
                "--batch-check=%(objecttype) %(objectname) %(objectsize)",
            ];
            let Some(said) = self.said(git, &words, &asked)? else {
                return Ok(None);
            };
            let mut rest = said.as_slice();
            for name in &names[begin..at] {
                // A missing one is answered with its name, which may contain a line break.
                let length = if rest.starts_with(name) {
                    name.len()
                } else {
                    0
                };
                let end = rest[length..]
                    .iter()
                    .position(|byte| *byte == b'\n')
                    .map_or(rest.len(), |end| length + end);
                let line = &rest[..end];
                rest = rest.get(end + 1..).unwrap_or_default();
                trees.extend((length == 0).then(|| tree(line)).flatten());
            }
        }
        Ok(Some(trees))
    }

    fn read_parts(
        &self,
        git: &Git,
        trees: &[&str],
        found: &BTreeMap<String, (u64, BTreeSet<&[u8]>)>,
    ) -> Result<Option<BTreeSet<BytesPath>>, Fault> {
        let mut parts = BTreeSet::new();
        if trees.is_empty() {
            return Ok(Some(parts));
        }
        let asked: String = trees.iter().map(|id| format!("{id}\n")).collect();
        let Some(said) = self.said(
            git,
            &[
                "cat-file",
                "--batch=%(objecttype) %(objectname) %(objectsize)",
            ],
            asked.as_bytes(),
        )?
        else {
            return Ok(None);
        };
        let mut rest = said.as_slice();
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, after) = (&rest[..end], &rest[end + 1..]);
            let Some((id, bytes)) = tree(line) else {
                rest = after;
                continue;
            };
            let (contents, after) = after.split_at(
                after
                    .len()
                    .min(usize::try_from(bytes).unwrap_or(usize::MAX)),
            );
            rest = after.get(1..).unwrap_or_default();
            for name in names(contents).filter(|name| RepositoryPart::of(name).is_some()) {
                let folders = found.get(&id).into_iter().flat_map(|(_, folders)| folders);
                parts.extend(folders.map(|folder| BytesPath::from_bytes(join(folder, name))));
            }
        }
        Ok(Some(parts))
    }
}

/// Parses a line about a tree.
fn tree(line: &[u8]) -> Option<(String, u64)> {
    let (id, bytes) = line.strip_prefix(b"tree ")?.split_at_checked(40)?;
    Some((
        object(id)?,
        std::str::from_utf8(bytes).ok()?.trim().parse().ok()?,
    ))
}

/// Returns the names in a tree, as far as it is valid.
fn names(contents: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = contents;
    std::iter::from_fn(move || {
        let begin = rest.iter().position(|byte| *byte == b' ')? + 1;
        let end = begin + rest.get(begin..)?.iter().position(|byte| *byte == 0)?;
        let name = &rest[begin..end];
        rest = rest.get(end + 21..).unwrap_or_default();
        Some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_object_is_read_as_far_as_it_is_valid() {
        let entry = |mode: &str, name: &str| {
            [mode.as_bytes(), b" ", name.as_bytes(), b"\0", &[b' '; 20]].concat()
        };
        let whole = [
            entry("100644", "HEAD"),
            entry("40000", "a b"),
            entry("40000", "refs"),
        ]
        .concat();
        assert_eq!(
            names(&whole).collect::<Vec<_>>(),
            [&b"HEAD"[..], b"a b", b"refs"]
        );
        assert_eq!(
            names(&whole[..whole.len() - 22]).collect::<Vec<_>>(),
            [&b"HEAD"[..], b"a b"]
        );
        let id = "1".repeat(40);
        assert_eq!(
            tree(format!("tree {id} 33").as_bytes()),
            Some((id.clone(), 33))
        );
        for line in [
            format!("blob {id} 3"),
            format!("tree {id}"),
            "tree x 3".to_owned(),
            String::new(),
        ] {
            assert_eq!(tree(line.as_bytes()), None, "{line}");
        }
    }
}
