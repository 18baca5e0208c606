//! Git's index: parser, and a writer that changes only flags. Format: `gitformat-index(5)`.

use sha1::Digest;
use sha1::Sha1;

/// Longest index that is read: some ten times that of the largest repositories.
pub(crate) const MAX_INDEX: u64 = 512 << 20;

const HEADER: usize = 12;
/// Times, device, inode, mode, user, group, size; then the object id.
const STAT: usize = 40;
const OBJECT: usize = 20;
const ASSUME_VALID: u16 = 0x8000;
const EXTENDED: u16 = 0x4000;
const STAGE: u16 = 0x3000;
const NAME: u16 = 0x0fff;
pub(crate) const SKIP_WORKTREE: u16 = 0x4000;
pub(crate) const INTENT_TO_ADD: u16 = 0x2000;

/// Extensions that stay valid with other flags. All others are left out, which git allows if the
/// name begins with a capital letter.
const KEPT: [&[u8; 4]; 2] = [b"TREE", b"REUC"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    pub(crate) stat: [u8; STAT],
    pub(crate) object: [u8; OBJECT],
    flags: u16,
    pub(crate) extended: u16,
    pub(crate) name: Vec<u8>,
}

impl IndexEntry {
    /// Returns the object id, in hexadecimal digits.
    pub(super) fn id(&self) -> String {
        self.object
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    pub(crate) fn mode(&self) -> u32 {
        u32::from_be_bytes([self.stat[24], self.stat[25], self.stat[26], self.stat[27]])
    }

    pub(crate) fn stage(&self) -> u16 {
        (self.flags & STAGE) >> 12
    }

    pub(crate) fn is_intended(&self) -> bool {
        self.extended & INTENT_TO_ADD != 0
    }

    /// Returns whether both have the same content and mode.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (self.object, self.mode(), self.stage(), self.is_intended())
            == (
                other.object,
                other.mode(),
                other.stage(),
                other.is_intended(),
            )
    }
}

/// Why an index is neither imported nor changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnsupportedIndex {
    /// A split index: part of it lies in another file.
    Split,
    /// A sparse index: with folders in place of their files.
    Sparse,
    Broken(&'static str),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Index {
    /// Sorted by name and stage.
    pub(crate) entries: Vec<IndexEntry>,
    kept: Vec<u8>,
}

impl Index {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, UnsupportedIndex> {
        let broken = UnsupportedIndex::Broken("it ends too early");
        let body = bytes
            .get(..bytes.len().saturating_sub(OBJECT))
            .ok_or(broken)?;
        let header = body.get(..HEADER).ok_or(broken)?;
        if !header.starts_with(b"DIRC") {
            return Err(UnsupportedIndex::Broken("it does not start like an index"));
        }
        let version = number(&header[4..8]);
        if !(2..=4).contains(&version) {
            return Err(UnsupportedIndex::Broken("its version is unknown"));
        }
        let n_entries = number(&header[8..12]) as usize;
        let mut entries: Vec<IndexEntry> =
            Vec::with_capacity(n_entries.min(body.len() / (STAT + OBJECT)));
        let mut rest = &body[HEADER..];
        for _ in 0..n_entries {
            let previous = entries.last().map_or(&[][..], |entry| &entry.name);
            let (entry, length) = entry(rest, version, previous).ok_or(broken)?;
            rest = rest.get(length..).ok_or(broken)?;
            // It replaces an entry of the shared index.
            if entry.name.is_empty() {
                return Err(UnsupportedIndex::Split);
            }
            if entries
                .last()
                .is_some_and(|last| (&last.name, last.stage()) >= (&entry.name, entry.stage()))
            {
                return Err(UnsupportedIndex::Broken("its entries are not in order"));
            }
            entries.push(entry);
        }
        let mut kept = Vec::new();
        while !rest.is_empty() {
            let signature = rest.get(..4).ok_or(broken)?;
            let length = 8 + number(rest.get(4..8).ok_or(broken)?) as usize;
            let extension = rest.get(..length).ok_or(broken)?;
            match signature {
                b"link" => return Err(UnsupportedIndex::Split),
                b"sdir" => return Err(UnsupportedIndex::Sparse),
                known if KEPT.iter().any(|kept| kept.as_slice() == known) => {
                    kept.extend_from_slice(extension);
                }
                [b'A'..=b'Z', ..] => {}
                _ => {
                    return Err(UnsupportedIndex::Broken("it has an unknown extension"));
                }
            }
            rest = &rest[length..];
        }
        Ok(Self { entries, kept })
    }

    pub(crate) fn is_unmerged(&self) -> bool {
        self.entries.iter().any(|entry| entry.stage() != 0)
    }

    /// Returns the root tree of the cache-tree extension, which is valid after a commit until
    /// something is staged. A session's may be forged.
    pub(crate) fn tree(&self) -> Option<String> {
        let mut rest = self.kept.as_slice();
        while let Some(length) = rest.get(4..8).map(|length| 8 + number(length) as usize) {
            let extension = rest.get(..length)?;
            if let Some(body) = extension.strip_prefix(b"TREE") {
                // The root has an empty name; a negative count marks it as invalid.
                let root = body.get(4..)?.strip_prefix(b"\0")?;
                let end = memchr::memchr(b'\n', root)?;
                let object = root
                    .get(end + 1..end + 1 + OBJECT)
                    .filter(|_| !root.starts_with(b"-"))?;
                return Some(object.iter().map(|byte| format!("{byte:02x}")).collect());
            }
            rest = &rest[length..];
        }
        None
    }

    /// Drops the cached trees, which belong to the entries as they were read.
    pub(crate) fn forget_trees(&mut self) {
        self.kept.clear();
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        let version: u32 = if self.entries.iter().any(|entry| entry.extended != 0) {
            3
        } else {
            2
        };
        let mut out = b"DIRC".to_vec();
        out.extend_from_slice(&version.to_be_bytes());
        out.extend_from_slice(&(self.entries.len() as u32).to_be_bytes());
        for entry in &self.entries {
            let start = out.len();
            out.extend_from_slice(&entry.stat);
            out.extend_from_slice(&entry.object);
            let length = entry.name.len().min(usize::from(NAME)) as u16;
            let is_extended = entry.extended != 0;
            let flags = (entry.flags & (ASSUME_VALID | STAGE))
                | length
                | if is_extended { EXTENDED } else { 0 };
            out.extend_from_slice(&flags.to_be_bytes());
            if is_extended {
                out.extend_from_slice(&entry.extended.to_be_bytes());
            }
            out.extend_from_slice(&entry.name);
            let padded = start + (out.len() - start) / 8 * 8 + 8;
            out.resize(padded, 0);
        }
        out.extend_from_slice(&self.kept);
        let sum = Sha1::digest(&out);
        out.extend_from_slice(&sum);
        out
    }
}

fn number(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .fold(0, |number, byte| number << 8 | u32::from(*byte))
}

/// Parses one entry; returns it and its length.
fn entry(rest: &[u8], version: u32, previous: &[u8]) -> Option<(IndexEntry, usize)> {
    let stat: [u8; STAT] = rest.get(..STAT)?.try_into().ok()?;
    let object: [u8; OBJECT] = rest.get(STAT..STAT + OBJECT)?.try_into().ok()?;
    let mut at = STAT + OBJECT;
    let flags = number(rest.get(at..at + 2)?) as u16;
    at += 2;
    let mut extended = 0;
    if flags & EXTENDED != 0 {
        extended = number(rest.get(at..at + 2)?) as u16;
        at += 2;
    }
    let mut name = Vec::new();
    if version == 4 {
        let (stripped, length) = varint(rest.get(at..)?)?;
        at += length;
        name.extend_from_slice(previous.get(..previous.len().checked_sub(stripped)?)?);
    }
    let end = memchr::memchr(0, rest.get(at..)?)?;
    name.extend_from_slice(&rest[at..at + end]);
    at += end + 1;
    if version < 4 {
        at = (at - 1) / 8 * 8 + 8;
    }
    Some((
        IndexEntry {
            stat,
            object,
            flags,
            extended,
            name,
        },
        at,
    ))
}

/// Parses a variable-length offset as in packs.
fn varint(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value = usize::from(bytes.first()? & 0x7f);
    let mut at = 0;
    while bytes.get(at)? & 0x80 != 0 {
        at += 1;
        value = value
            .checked_add(1)?
            .checked_mul(128)?
            .checked_add(usize::from(bytes.get(at)? & 0x7f))?;
    }
    Some((value, at + 1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::sample::Sample;
    use super::*;

    #[track_caller]
    fn check(version: &str) {
        let sample = Sample::new();
        for at in 0..40 {
            sample.write(
                &format!("folder {}/file{at}{}", at % 7, "x".repeat(at)),
                "x",
            );
        }
        sample.write(&format!("deep/{}", "long/".repeat(30)), "");
        sample.git(&["add", "-A"]);
        sample.git(&["commit", "-q", "-m", "one"]);
        let tree = || {
            Index::parse(&std::fs::read(sample.path(".git/index")).expect("an index"))
                .expect("readable")
                .tree()
        };
        assert_eq!(
            tree().as_deref(),
            Some(sample.git(&["rev-parse", "HEAD^{tree}"]).trim())
        );
        sample.write("intended", "x");
        sample.git(&["add", "-N", "intended"]);
        assert_eq!(tree(), None);
        sample.git(&["update-index", "--skip-worktree", "folder 1/file1x"]);
        sample.git(&["update-index", "--assume-unchanged", "folder 2/file2xx"]);
        sample.git(&["update-index", "--index-version", version]);
        let listed = |sample: &Sample| sample.git(&["ls-files", "--stage", "--debug", "-v", "-z"]);
        let before = listed(&sample);
        let bytes = std::fs::read(sample.path(".git/index")).expect("an index");
        assert_eq!(bytes[7], version.as_bytes()[0] - b'0');
        let index = Index::parse(&bytes).expect("readable");
        assert!(!index.is_unmerged());
        let written = index.write();
        assert_eq!(Index::parse(&written).as_ref(), Ok(&index));
        std::fs::write(sample.path(".git/index"), &written).expect("written");
        assert_eq!(listed(&sample), before);
        sample.git(&["fsck", "--strict"]);
        // Git's own version 3 is the same, byte for byte, if it has no extension that we drop.
        if version == "3" {
            assert_eq!(written, bytes);
        }
    }

    #[test]
    fn every_index_version_is_read_and_git_reads_what_is_written() {
        check("3");
        check("4");
    }

    #[test]
    fn split_and_sparse_indexes_are_recognized() {
        let sample = Sample::new();
        sample.write("a", "x");
        sample.git(&["add", "-A"]);
        sample.git(&["commit", "-q", "-m", "one"]);
        let read = |sample: &Sample| {
            Index::parse(&std::fs::read(sample.path(".git/index")).expect("an index"))
        };
        assert!(read(&sample).is_ok());
        sample.git(&["update-index", "--split-index"]);
        assert_eq!(read(&sample), Err(UnsupportedIndex::Split));
        assert_eq!(
            Index::parse(b""),
            Err(UnsupportedIndex::Broken("it ends too early"))
        );
        assert!(matches!(
            Index::parse(&[b'x'; 64]),
            Err(UnsupportedIndex::Broken(_))
        ));
    }

    proptest! {
        #[test]
        fn no_input_makes_the_reader_panic(version in 2_u32..5, n in 0_u32..9, rest in proptest::collection::vec(any::<u8>(), 0..400)) {
            let mut bytes = b"DIRC".to_vec();
            bytes.extend(version.to_be_bytes());
            bytes.extend(n.to_be_bytes());
            bytes.extend(rest);
            let _ = Index::parse(&bytes);
        }
    }
}
