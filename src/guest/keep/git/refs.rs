//! References, read from git's files. Only what looks exactly like git's own format counts.

use std::collections::BTreeMap;

use super::untrusted_folder::FileKind;
use super::untrusted_folder::UntrustedFolder;
use crate::root::join;
use podbay_wire::BytesPath;
use podbay_wire::Fault;

/// Longest reference file: an object id, or the name of another reference.
const MAX_LOOSE: u64 = 100;
pub(super) const MAX_SYMBOLIC: u64 = 4096;
const MAX_PACKED: u64 = 256 << 20;
/// More references than any real repository has.
const MAX_REFS: usize = 1_000_000;
const MAX_DEPTH: usize = 64;

/// All references of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Refs {
    pub(crate) bound: BTreeMap<BytesPath, String>,
    /// Symbolic references, such as `refs/remotes/origin/HEAD`.
    pub(crate) symbolic: BTreeMap<BytesPath, BytesPath>,
    /// Invalid ones, with the reason.
    pub(crate) odd: Vec<(BytesPath, String)>,
}

/// What is checked out.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "at", rename_all = "snake_case")]
pub enum Head {
    /// A branch, which need not have a commit yet.
    Branch {
        name: BytesPath,
    },
    Commit {
        object: String,
    },
}

impl Head {
    /// Parses a `HEAD`; `None`: it is neither.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let text = text.trim_ascii_end();
        match text.strip_prefix(b"ref:") {
            Some(name) => {
                let name = name.trim_ascii_start();
                (name.starts_with(b"refs/") && is_name(name)).then(|| Self::Branch {
                    name: BytesPath::from_bytes(name),
                })
            }
            None => object(text).map(|object| Self::Commit { object }),
        }
    }

    pub(crate) fn read(folder: &UntrustedFolder, path: &[u8]) -> Result<Option<Self>, Fault> {
        Ok(folder
            .read(path, MAX_SYMBOLIC)?
            .and_then(|text| Self::parse(&text)))
    }

    pub(crate) fn to_text(&self) -> Vec<u8> {
        match self {
            Self::Branch { name } => [b"ref: ", name.as_bytes(), b"\n"].concat(),
            Self::Commit { object } => format!("{object}\n").into_bytes(),
        }
    }

    /// Returns the commit, if there is one.
    pub(crate) fn commit<'a>(
        &'a self,
        bound: &'a BTreeMap<BytesPath, String>,
    ) -> Option<&'a String> {
        match self {
            Self::Branch { name } => bound.get(name),
            Self::Commit { object } => Some(object),
        }
    }
}

/// Reads all references below `refs/` and in `packed-refs`.
pub(crate) fn read(folder: &UntrustedFolder) -> Result<Refs, Fault> {
    read_below(folder, b"refs")
}

/// Reads the references below one part of `refs/`.
pub(crate) fn read_below(folder: &UntrustedFolder, top: &[u8]) -> Result<Refs, Fault> {
    let is_below = |name: &[u8]| {
        name.strip_prefix(top)
            .is_some_and(|rest| rest.starts_with(b"/"))
    };
    let mut refs = Refs::default();
    if let Some(text) = folder.read(b"packed-refs", MAX_PACKED)? {
        for line in text.split(|byte| *byte == b'\n') {
            match packed(line) {
                Some((name, _)) if is_name(name) && !is_below(name) => {}
                Some((name, object)) if is_name(name) => {
                    refs.bound.insert(BytesPath::from_bytes(name), object);
                }
                _ if line.is_empty() || line.starts_with(b"#") || line.starts_with(b"^") => {}
                _ => refs.odd.push((
                    BytesPath::from_bytes("packed-refs"),
                    "it has an invalid line".to_owned(),
                )),
            }
        }
    }
    let mut folders = vec![(top.to_vec(), 0)];
    while let Some((path, depth)) = folders.pop() {
        let names = folder
            .names(&path)
            .map_err(|errno| super::untrusted_folder::failed("list", &path, &errno.into()))?;
        for (name, kind) in names {
            let path = join(&path, &name);
            let odd = |why: &str| (BytesPath::from_bytes(path.clone()), why.to_owned());
            // A lock, and the file in which a reference is being written.
            if name.ends_with(b".lock") {
                continue;
            }
            if refs.bound.len() + folders.len() + refs.odd.len() > MAX_REFS {
                return Err(Fault::TooLarge {
                    path: "refs".into(),
                    bytes: MAX_REFS as u64,
                    limit: MAX_REFS as u64,
                });
            }
            match kind {
                FileKind::Folder if depth < MAX_DEPTH => folders.push((path, depth + 1)),
                FileKind::Folder => refs.odd.push(odd("is nested too deeply")),
                FileKind::File if is_name(&path) => match folder.read(&path, MAX_SYMBOLIC) {
                    Ok(Some(text))
                        if text.len() as u64 <= MAX_LOOSE
                            && object(text.trim_ascii_end()).is_some() =>
                    {
                        let object = object(text.trim_ascii_end()).unwrap_or_default();
                        refs.bound.insert(BytesPath::from_bytes(path), object);
                    }
                    Ok(Some(text)) => match Head::parse(&text) {
                        Some(Head::Branch { name }) => {
                            refs.bound.remove(&BytesPath::from_bytes(path.clone()));
                            refs.symbolic.insert(BytesPath::from_bytes(path), name);
                        }
                        _ => refs.odd.push(odd("holds no object id")),
                    },
                    Ok(None) => {}
                    Err(fault) => refs
                        .odd
                        .push((BytesPath::from_bytes(path), fault.to_string())),
                },
                FileKind::File => refs.odd.push(odd("is not a valid reference name")),
                FileKind::Link => refs.odd.push(odd("is a symbolic link")),
                FileKind::Special => refs.odd.push(odd("is not a file")),
            }
        }
    }
    // A loose reference overrides a packed one, also if it is broken.
    for (name, _) in &refs.odd {
        refs.bound.remove(name);
    }
    Ok(refs)
}

/// Writes references as a `packed-refs` file. Peeled tags are left out, so that git resolves them
/// itself, and so is the first line: `GitPython` refuses one that does not promise them.
pub(crate) fn packed_text(bound: &BTreeMap<BytesPath, String>) -> Vec<u8> {
    let mut text = Vec::new();
    for (name, object) in bound {
        text.extend_from_slice(object.as_bytes());
        text.push(b' ');
        text.extend_from_slice(name.as_bytes());
        text.push(b'\n');
    }
    text
}

fn packed(line: &[u8]) -> Option<(&[u8], String)> {
    let at = line.iter().position(|byte| *byte == b' ')?;
    Some((&line[at + 1..], object(&line[..at])?))
}

/// Returns an object id: 40 lower-case digits, not all of them 0.
pub(crate) fn object(text: &[u8]) -> Option<String> {
    let is_hex = text.len() == 40
        && text
            .iter()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if !is_hex || text.iter().all(|byte| *byte == b'0') {
        return None;
    }
    String::from_utf8(text.to_vec()).ok()
}

/// Returns whether this is a valid reference name below `refs/`.
pub(crate) fn is_name(name: &[u8]) -> bool {
    let is_part = |part: &[u8]| {
        !part.is_empty()
            && !part.starts_with(b".")
            && !part.ends_with(b".lock")
            && !part.windows(2).any(|pair| pair == b"..")
    };
    let is_bad = |byte: &u8| *byte <= b' ' || *byte == 0x7f || b"~^:?*[\\".contains(byte);
    name.starts_with(b"refs/")
        && name.len() < 1024
        && !name.ends_with(b".")
        && !name.iter().any(is_bad)
        && !name.windows(2).any(|pair| pair == b"@{")
        && name.split(|byte| *byte == b'/').all(is_part)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    const ONE: &str = "1111111111111111111111111111111111111111";
    const TWO: &str = "2222222222222222222222222222222222222222";

    #[test]
    fn a_packed_file_is_written_without_a_header() {
        let name = BytesPath::from("refs/heads/main");
        let text = packed_text(&BTreeMap::from([(name, ONE.to_owned())]));
        assert_eq!(text, format!("{ONE} refs/heads/main\n").into_bytes());
    }

    #[test]
    fn reference_names_are_those_that_git_allows() {
        for name in [
            "refs/heads/main",
            "refs/heads/a/b",
            "refs/heads/gr\u{fc}n",
            "refs/heads/a-b_c.d",
            "refs/stash",
            "refs/heads/@",
        ] {
            assert!(is_name(name.as_bytes()), "{name}");
        }
        for name in [
            "HEAD",
            "heads/main",
            "refs/",
            "refs/heads/",
            "refs/heads/../../../etc/x",
            "refs/heads/a..b",
            "refs//a",
            "refs/heads/.a",
            "refs/heads/a.lock",
            "refs/heads/a.lock/b",
            "refs/heads/a b",
            "refs/heads/a\nb",
            "refs/heads/a:b",
            "refs/heads/a@{1}",
            "refs/heads/a.",
            "refs/heads/a*",
            "refs/heads/a\\b",
        ] {
            assert!(!is_name(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn only_references_in_gits_own_format_are_read() {
        let place = tempfile::tempdir().expect("a temporary folder");
        let path = place.path();
        fs::create_dir_all(path.join("refs/heads/deep")).expect("made");
        fs::create_dir_all(path.join("refs/remotes/origin")).expect("made");
        let packed = format!(
            "# pack-refs with: peeled\n{ONE} refs/heads/main\n{ONE} refs/heads/old\n{ONE} refs/tags/v1\n^{TWO}\n{ONE} refs/heads/../../x\nnonsense\n{ONE} refs/heads/linked\n"
        );
        fs::write(path.join("packed-refs"), packed).expect("written");
        fs::write(path.join("refs/heads/main"), format!("{TWO}\n")).expect("written");
        fs::write(path.join("refs/heads/deep/er"), TWO).expect("written");
        fs::write(path.join("refs/heads/main.lock"), "").expect("written");
        fs::write(path.join("refs/heads/huge"), vec![b'1'; 1 << 20]).expect("written");
        fs::write(path.join("refs/heads/words"), format!("{TWO} and more")).expect("written");
        fs::write(
            path.join("refs/remotes/origin/HEAD"),
            "ref: refs/remotes/origin/main\n",
        )
        .expect("written");
        fs::write(path.join("secret"), format!("{TWO}\n")).expect("written");
        symlink("../../secret", path.join("refs/heads/linked")).expect("linked");
        nix::unistd::mkfifo(
            &path.join("refs/heads/pipe"),
            nix::sys::stat::Mode::from_bits_truncate(0o600),
        )
        .expect("made");
        let refs = read(&UntrustedFolder::open(path).expect("opens")).expect("read");
        let bound: Vec<(String, &str)> = refs
            .bound
            .iter()
            .map(|(name, object)| (name.to_text(), object.as_str()))
            .collect();
        let expected = [
            ("refs/heads/deep/er", TWO),
            ("refs/heads/main", TWO),
            ("refs/heads/old", ONE),
            ("refs/tags/v1", ONE),
        ];
        assert_eq!(
            bound,
            expected.map(|(name, object)| (name.to_owned(), object))
        );
        assert_eq!(
            refs.symbolic,
            BTreeMap::from([(
                "refs/remotes/origin/HEAD".into(),
                "refs/remotes/origin/main".into()
            )])
        );
        let mut odd: Vec<String> = refs.odd.iter().map(|(name, _)| name.to_text()).collect();
        odd.sort();
        assert_eq!(
            odd,
            [
                "packed-refs",
                "packed-refs",
                "refs/heads/huge",
                "refs/heads/linked",
                "refs/heads/pipe",
                "refs/heads/words"
            ]
        );
    }

    #[test]
    fn head_is_a_branch_or_a_commit() {
        assert_eq!(
            Head::parse(b"ref: refs/heads/main\n"),
            Some(Head::Branch {
                name: "refs/heads/main".into()
            })
        );
        assert_eq!(
            Head::parse(format!("{ONE}\n").as_bytes()),
            Some(Head::Commit { object: ONE.into() })
        );
        for text in ["", "ref: /etc/passwd", "ref: refs/../../x", "x"] {
            assert_eq!(Head::parse(text.as_bytes()), None, "{text}");
        }
    }
}
