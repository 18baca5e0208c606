//! The symbolic links in a session's commits, and their targets: one that leads out of the project,
//! or into a `.git`, is checked out with its branch like any other, though a review does not apply
//! it as a file.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::keep::git::git_command::Git;
use crate::keep::git::import::RepositoryImport;
use podbay_wire::BytesPath;

const LINK: &[u8] = b"120000";

/// Longest target of a link on any system, and most that are read.
const MAX_TARGET: u64 = 4096;
const MAX_LINKS: usize = 2000;

/// Length of abbreviated object ids in lists.
pub(super) const ABBREV: &str = "--abbrev=12";

/// A path, and the object id of the link there.
pub(super) type Link = (BytesPath, String);

/// Parses the output of `diff-tree --raw -z` and `ls-tree -z`: every path, and the links among
/// them.
pub(super) fn listed(said: &[u8]) -> (Vec<BytesPath>, Vec<Link>) {
    let (mut paths, mut links) = (Vec::new(), Vec::new());
    let mut parts = said
        .split(|byte| *byte == 0)
        .filter(|part| !part.is_empty());
    while let Some(part) = parts.next() {
        let n_before = part.iter().take_while(|byte| **byte == b':').count();
        // For a listed tree the path follows its facts; for a change it is a separate part behind
        // those of both sides.
        let (facts, path) = match n_before {
            0 => part.split_at(
                part.iter()
                    .position(|byte| *byte == b'\t')
                    .unwrap_or(part.len()),
            ),
            n_before => (&part[n_before..], parts.next().unwrap_or_default()),
        };
        let path = BytesPath::from_bytes(if n_before == 0 {
            path.get(1..).unwrap_or_default()
        } else {
            path
        });
        let fields: Vec<&[u8]> = facts.split(|byte| *byte == b' ').collect();
        let (mode, object) = if n_before == 0 {
            (0, 2)
        } else {
            (n_before, 2 * n_before + 1)
        };
        if fields.get(mode) == Some(&LINK) {
            let object = fields
                .get(object)
                .map(|object| String::from_utf8_lossy(object).into_owned());
            links.push((path.clone(), object.unwrap_or_default()));
        }
        paths.push(path);
    }
    (paths, links)
}

impl RepositoryImport<'_> {
    /// Returns the targets of links; `None`: unreadable, as for a broken object.
    pub(super) fn targets(
        &self,
        git: &Git,
        links: &BTreeSet<Link>,
    ) -> Vec<(BytesPath, Option<Vec<u8>>)> {
        let asked = |objects: &[&str]| {
            objects
                .iter()
                .map(|object| format!("{object}\n"))
                .collect::<String>()
        };
        let said = |words: [&str; 2], objects: &[&str]| {
            let said = if objects.is_empty() {
                None
            } else {
                self.said(git, &words, asked(objects).as_bytes())
                    .ok()
                    .flatten()
            };
            said.unwrap_or_default()
        };
        let objects: BTreeSet<&str> = links
            .iter()
            .map(|(_, object)| object.as_str())
            .filter(|object| !object.is_empty())
            .collect();
        let objects: Vec<&str> = objects.into_iter().take(MAX_LINKS).collect();
        let sizes = said(
            ["cat-file", "--batch-check=%(objecttype) %(objectsize)"],
            &objects,
        );
        let is_short = |line: &[u8]| {
            let bytes = line
                .strip_prefix(b"blob ")
                .and_then(|bytes| std::str::from_utf8(bytes).ok()?.parse::<u64>().ok());
            bytes.is_some_and(|bytes| bytes <= MAX_TARGET)
        };
        let sized = objects.into_iter().zip(sizes.split(|byte| *byte == b'\n'));
        let short: Vec<&str> = sized
            .filter(|(_, line)| is_short(line))
            .map(|(object, _)| object)
            .collect();
        let contents = contents(&said(["cat-file", "--batch=%(objectsize)"], &short));
        let targets: BTreeMap<&str, Vec<u8>> = short.into_iter().zip(contents).collect();
        links
            .iter()
            .map(|(path, object)| (path.clone(), targets.get(object.as_str()).cloned()))
            .collect()
    }
}

/// Parses the contents in the output of `cat-file --batch`, as far as it goes.
fn contents(said: &[u8]) -> Vec<Vec<u8>> {
    let mut contents = Vec::new();
    let mut rest = said;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let bytes = std::str::from_utf8(&rest[..end])
            .ok()
            .and_then(|bytes| bytes.parse::<usize>().ok());
        let Some(content) = bytes.and_then(|bytes| rest.get(end + 1..end + 1 + bytes)) else {
            break;
        };
        contents.push(content.to_vec());
        rest = rest.get(end + 2 + content.len()..).unwrap_or_default();
    }
    contents
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_told_from_files_however_they_are_listed() {
        let said = b":000000 120000 000 a1 A\0up\0:100644 100644 b1 b2 M\0a b\0::100644 120000 120000 c1 c2 c3 MM\0g\x00120000 blob d1\tin/l\x00100644 blob e1\tf\0";
        let (paths, links) = listed(said);
        assert_eq!(paths, ["up", "a b", "g", "in/l", "f"].map(BytesPath::from));
        assert_eq!(
            links,
            [("up", "a1"), ("g", "c3"), ("in/l", "d1")]
                .map(|(path, object)| (path.into(), object.to_owned()))
        );
        assert_eq!(listed(b""), (Vec::new(), Vec::new()));
    }

    #[test]
    fn batch_output_is_read_as_far_as_it_goes() {
        assert_eq!(
            contents(b"3\nabc\n0\n\n2\nx\n\n"),
            [&b"abc"[..], b"", b"x\n"]
        );
        assert_eq!(contents(b"3\nabc\n9\nx"), [b"abc"]);
        assert_eq!(contents(b"x missing\n3\nabc\n"), [b""; 0]);
    }
}
