//! Which files a search covers, by path: what `glob` finds, and the argument `glob` of `grep`.
//!
//! Both have the same syntax. Patterns are separated by commas; one with `!` in front excludes. A
//! pattern is matched against the path from the searched folder, and from the project's.

use ignore::gitignore::Gitignore;
use nix::sys::stat::SFlag;

use super::invalid;
use super::pattern::Pattern;
use super::pattern::excluded;
use super::pattern::split_commas;
use super::walk::Entry;
use super::walk::Kind;
use crate::beneath::Beneath;
use crate::lookalike::normalize_bytes;
use crate::root::Root;
use crate::root::as_path;
use crate::root::file_type;
use crate::root::join;
use podbay_wire::BytesPath;
use podbay_wire::Fault;
use podbay_wire::unquoted;

/// ASCII characters that are often replaced by typographic ones.
const LOOKED_LIKE: [char; 4] = ['\'', '"', '-', ' '];

#[derive(Debug, Default)]
pub(super) struct Patterns {
    /// None: all files.
    pub(super) wanted: Vec<Pattern>,
    unwanted: Vec<Gitignore>,
    /// The searched folder, from the project's.
    above: Vec<u8>,
    /// Names are compared in normalized form, as the patterns are.
    by_likeness: bool,
    /// Notes on how the patterns were interpreted.
    pub(super) notes: Vec<String>,
}

/// A folder in which a walk begins.
pub(super) struct Start {
    pub(super) base: Beneath,
    pub(super) path: BytesPath,
}

impl Patterns {
    /// All files of a folder.
    pub(super) fn all(above: &[u8]) -> Self {
        Self {
            above: above.to_vec(),
            ..Self::default()
        }
    }

    /// Parses the argument of a call; `above` is the searched folder, without a trailing slash.
    pub(super) fn new(root: &Root, above: &[u8], field: &str, text: &str) -> Result<Self, Fault> {
        let mut patterns = Self::all(above);
        let stands = |name: &str| {
            !name.is_empty()
                && root
                    .look(&BytesPath::from_bytes(join(
                        above,
                        name.trim_start_matches('/').as_bytes(),
                    )))
                    .is_ok()
        };
        let quoted = if stands(text) { None } else { in_quotes(text) };
        if let Some(name) = &quoted {
            patterns.notes.push(format!(
                "{text} was read as git writes names: {}",
                BytesPath::from_bytes(name.as_bytes())
            ));
        }
        let text = quoted.as_deref().unwrap_or(text);
        // A name may contain a comma.
        let parts = if text.contains(',') && (stands(text) || quoted.is_some()) {
            vec![text]
        } else {
            split_commas(text)
        };
        if parts.is_empty() {
            patterns.wanted.push(Pattern::new(field, text)?);
        }
        for part in parts {
            match part.strip_prefix('!') {
                Some(unwanted) if !stands(part) => {
                    patterns.unwanted.push(excluded(field, unwanted)?);
                }
                _ => patterns.wanted.push(match Pattern::new(field, part) {
                    Err(fault) => {
                        if stands(part) {
                            Pattern::plain(field, part)?
                        } else {
                            return Err(fault);
                        }
                    }
                    Ok(pattern) => pattern,
                }),
            }
        }
        Ok(patterns)
    }

    /// Returns the same patterns for look-alike names; `None`: no other characters look like
    /// theirs.
    pub(super) fn alike(&self) -> Option<Self> {
        let may_be_other = |text: &str| !text.is_ascii() || text.contains(LOOKED_LIKE);
        if !self
            .wanted
            .iter()
            .any(|pattern| may_be_other(&pattern.text))
        {
            return None;
        }
        let wanted = self
            .wanted
            .iter()
            .map(|pattern| Pattern::alike("pattern", &pattern.text))
            .collect::<Result<Vec<_>, _>>()
            .ok()?;
        Some(Self {
            wanted,
            unwanted: self.unwanted.clone(),
            above: self.above.clone(),
            by_likeness: true,
            notes: Vec::new(),
        })
    }

    /// Returns a note on a pattern that found nothing and has backslashes where slashes were
    /// probably meant: before letters, or after a folder's name.
    pub(super) fn backslashes(&self, root: &Root) -> Option<String> {
        let slashed = |pattern: &Pattern| {
            let (folder, rest) = pattern.text.split_once('\\')?;
            let is_folder = || {
                let path = BytesPath::from_bytes(join_some(&self.above, folder.as_bytes()));
                !folder.is_empty()
                    && root
                        .look(&path)
                        .is_ok_and(|stat| file_type(&stat) == SFlag::S_IFDIR)
            };
            let is_meant = rest.starts_with(|letter: char| {
                letter.is_alphanumeric() || letter == '_' || letter == '.'
            }) || is_folder();
            is_meant.then(|| pattern.text.replace('\\', "/"))
        };
        let meant = self.wanted.iter().find_map(slashed)?;
        Some(format!(
            "a backslash is not a separator here but escapes the next character; if a separator was meant, use: {meant}"
        ))
    }

    /// Excludes matches of this as well.
    pub(super) fn without(mut self, unwanted: Gitignore) -> Self {
        self.unwanted.push(unwanted);
        self
    }

    /// Returns whether hidden names are wanted.
    pub(super) fn names_hidden(&self) -> bool {
        self.wanted.iter().any(|pattern| pattern.names_hidden)
    }

    /// Decides on an entry of a walk; `None`: the rules about hidden and ignored names decide.
    pub(super) fn select(&self, entry: &Entry<'_>) -> Option<bool> {
        if entry.kind == Kind::Folder {
            self.select_folder(entry)
        } else {
            self.select_file(entry)
        }
    }

    fn select_folder(&self, entry: &Entry<'_>) -> Option<bool> {
        if self.is_unwanted(entry) {
            return Some(false);
        }
        if self.wanted.is_empty() {
            return None;
        }
        let path = entry.path();
        if !self
            .wanted
            .iter()
            .any(|pattern| self.seen(path).any(|path| pattern.reaches(path)))
        {
            return Some(false);
        }
        self.wanted
            .iter()
            .any(|pattern| self.seen(path).any(|path| pattern.leads_through(path)))
            .then_some(true)
    }

    fn select_file(&self, entry: &Entry<'_>) -> Option<bool> {
        // The patterns are cheaper than the rules and exclude more.
        let path = entry.path();
        let mut is_named = false;
        if !self.wanted.is_empty() {
            let mut matching = self
                .wanted
                .iter()
                .filter(|pattern| self.is_match(pattern, path))
                .peekable();
            if matching.peek().is_none() {
                return Some(false);
            }
            is_named = matching.any(|pattern| {
                pattern.names_files && (pattern.names_hidden || entry.name[0] != b'.')
            });
        }
        if self.is_unwanted(entry) {
            return Some(false);
        }
        is_named.then_some(true)
    }

    fn is_match(&self, pattern: &Pattern, path: &[u8]) -> bool {
        self.seen(path).any(|path| {
            if self.by_likeness {
                pattern.is_match(&normalize_bytes(path))
            } else {
                pattern.is_match(path)
            }
        })
    }

    /// Returns the forms of a path that the patterns are matched against.
    fn seen<'a>(&self, path: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let from_above = match path.strip_prefix(self.above.as_slice()) {
            Some([b'/', rest @ ..]) if !self.above.is_empty() => Some(rest),
            _ => None,
        };
        from_above.into_iter().chain([path])
    }

    fn is_unwanted(&self, entry: &Entry<'_>) -> bool {
        let is_folder = entry.kind == Kind::Folder;
        let full = if self.above.is_empty() {
            entry.full
        } else {
            entry.full.get(self.above.len() + 1..).unwrap_or(entry.full)
        };
        self.unwanted.iter().any(|unwanted| {
            unwanted.matched(as_path(full), is_folder).is_ignore()
                || unwanted.matched(as_path(entry.full), is_folder).is_ignore()
        })
    }

    /// Returns where to walk: each folder that a pattern names before its first wildcard, also
    /// through links. A missing one needs no walk.
    pub(super) fn starts(&self, root: &Root) -> Result<Vec<Start>, Fault> {
        if self.wanted.is_empty() {
            let path = BytesPath::from_bytes(self.above.as_slice());
            return Ok(vec![Start {
                base: root.descend(&path)?,
                path,
            }]);
        }
        let mut paths = Vec::new();
        for pattern in &self.wanted {
            let from_above = join_some(&self.above, pattern.folder.as_bytes());
            let from_root = pattern.folder.as_bytes();
            if from_root
                .split(|byte| *byte == b'/')
                .any(|name| name == b"..")
            {
                // The call may search the folder `path` only. A path out of the project is an
                // error.
                root.descend(&BytesPath::from_bytes(from_above.as_slice()))?;
                return Err(invalid(
                    "pattern",
                    format!(
                        "`{}` leads out of the folder that is searched; name that folder in `path`",
                        pattern.folder
                    ),
                ));
            }
            paths.push(from_above);
            if !self.above.is_empty() && lies_in(from_root, &self.above) {
                paths.push(from_root.to_vec());
            } else if !self.above.is_empty()
                && !from_root.is_empty()
                && lies_in(&self.above, from_root)
            {
                paths.push(self.above.clone());
            }
        }
        paths.sort();
        paths.dedup();
        let mut starts: Vec<Start> = Vec::new();
        for path in paths {
            let path = root.relative(&BytesPath::from_bytes(path))?;
            let path = BytesPath::from_bytes(
                path.as_bytes()
                    .strip_suffix(b"/")
                    .unwrap_or(path.as_bytes()),
            );
            match root.descend(&path) {
                _ if starts
                    .iter()
                    .any(|start| lies_in(path.as_bytes(), start.path.as_bytes())) => {}
                Ok(base) => starts.push(Start { base, path }),
                Err(fault @ Fault::Outside { .. }) => return Err(fault),
                Err(_) => {}
            }
        }
        Ok(starts)
    }
}

/// Returns the unquoted name of a pattern in git's quotes.
fn in_quotes(text: &str) -> Option<String> {
    let (name, rest) = unquoted(text.trim().as_bytes())?;
    if rest.is_empty() && !name.is_empty() {
        String::from_utf8(name).ok()
    } else {
        None
    }
}

fn join_some(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if name.is_empty() {
        folder.to_vec()
    } else {
        join(folder, name)
    }
}

/// Returns whether a path is that of a folder, or below it.
fn lies_in(path: &[u8], folder: &[u8]) -> bool {
    folder.is_empty()
        || path
            .strip_prefix(folder)
            .is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}
